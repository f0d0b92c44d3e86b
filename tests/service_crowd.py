"""Clients that never rest: they assign and reward over HTTP, and keep every answer that came back whole."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from collections import Counter
from contextlib import closing
from random import Random
from urllib.parse import quote

N_CONTESTED = 40
PATIENCE = 60.0


def reward_of(unit):
    """Every client would tell the same reward of a unit."""
    return zlib.crc32(unit.encode()) % 1000 / 100


class _Ending(Exception):
    """The clients were asked to stop while one waited for a server."""


class Crowd:
    """Clients on threads; what they were answered is in `answers`: kind, experiment, pairs of a unit and a value.

    A client whose request gets no answer sends it again, to the next of the ports, until there is one. How many answers
    came from each port is in `n_answers`.
    """

    def __init__(self, ports, key, *, size=8, names=("one", "other")):
        self.ports, self.key, self.names = ports, key, names
        self.answers, self.failures, self.counts = [], [], Counter()
        self.n_answers = dict.fromkeys(ports, 0)
        self._ending = threading.Event()
        self._n_answered = [0] * size
        self._threads = [threading.Thread(target=self._live, args=(number,), daemon=True) for number in range(size)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def wait_for_answers(self, more=1):
        """Wait until every client has got answers since now."""
        before = list(self._n_answered)
        self._wait(lambda: all(now >= old + more for now, old in zip(self._n_answered, before, strict=True)))

    def wait_for_load(self, port, since, more=1):
        """Wait until so many answers have come from a port since there were `since` of them."""
        self._wait(lambda: self.n_answers[port] >= since + more)

    def _wait(self, is_so):
        until = time.monotonic() + PATIENCE
        while not is_so():
            assert not self.failures, self.failures[:3]
            assert time.monotonic() < until, "waited in vain for answers"
            time.sleep(0.002)

    def _live(self, number):
        rng, step = Random(number), 0
        with closing(_Caller(self, number)) as caller:
            try:
                while not self._ending.is_set():
                    step += 1
                    self._step(caller, rng, rng.choice(self.names), f"c{number}/{step}")
                    self._n_answered[number] += 1
            except _Ending:
                pass
            except Exception as error:  # noqa: BLE001  (shown by the test)
                self.failures.append(repr(error))

    def _step(self, caller, rng, name, tag):
        """Assign and perhaps reward; units of one request are called tag/place/size, so that a half would show."""
        size = rng.choice([1, 1, 1, 2, 5])
        units = [f"{tag}/{place}/{size}" for place in range(size)]
        if rng.random() < 0.3:  # units that others ask for too, in another order
            units = rng.sample([f"contested-{i}" for i in range(N_CONTESTED)], size)
        path = f"/experiments/{name}/assignments"
        if size == 1:
            assigned = [caller("POST", path, {"unit": units[0]})]
        else:
            assigned = caller("POST", f"{path}/many", {"units": units})["assignments"]
        self.answers.append(("asked", name, [(one["unit"], one["arm"]) for one in assigned]))
        if rng.random() < 0.2:
            return
        if size == 1:
            of_unit = f"{path}/{quote(units[0], safe='')}"
            told = [caller("PUT", f"{of_unit}/reward", {"reward": reward_of(units[0])})]
        else:
            rewards = [{"unit": unit, "reward": reward_of(unit)} for unit in units]
            told = caller("POST", f"/experiments/{name}/rewards/many", {"rewards": rewards})["rewards"]
        self.answers.append(("told", name, [(one["unit"], one["reward"]) for one in told]))
        if size == 1 and units[0].startswith(tag) and rng.random() < 0.2:
            mended = caller("POST", f"{of_unit}/corrections", {"reward": 50.0, "reason": "misread"})
            self.answers.append(("corrected", name, [(mended["unit"], mended["reward"])]))

    def pause(self, seconds):
        """Wait a moment before trying again, unless all is over."""
        if self._ending.wait(seconds):
            raise _Ending


class _Caller:
    """One client's connection, made anew when it breaks."""

    def __init__(self, crowd, place):
        self._crowd, self._place = crowd, place
        self._headers = {"Authorization": f"Bearer {crowd.key}", "Content-Type": "application/json"}
        self._connection = None

    def __call__(self, method, path, body):
        """Return the answer to a request, which is sent until there is one."""
        counts = self._crowd.counts
        while True:
            try:
                status, answer = self._send(method, path, json.dumps(body))
            except ConnectionRefusedError:
                counts["refused"] += 1
            except (OSError, http.client.HTTPException):
                counts["broken off"] += 1
            else:
                counts[status] += 1
                if status in (200, 201):
                    self._crowd.n_answers[self._port] += 1
                    return json.loads(answer)
                if status != 503:
                    raise AssertionError(f"{method} {path}: {status} {answer!r}")
            self.close()
            self._place += 1
            self._crowd.pause(0.02)

    @property
    def _port(self):
        return self._crowd.ports[self._place % len(self._crowd.ports)]

    def _send(self, method, path, body):
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def close(self):
        """Leave."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
