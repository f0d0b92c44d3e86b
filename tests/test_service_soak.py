"""Mixed traffic for minutes: a server's memory, files and threads stay as they were, and it gets no slower.

By default some twenty seconds. `EQUIPOISE_SOAK_SECONDS=300` plays for five minutes, which at a thousand requests a
second is what a busy hour of a hundred a second brings.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from random import Random
from urllib.parse import quote

import httpx
import psutil
import pytest
from service_runner import Service

import equipoise as eq
from equipoise.service.api_keys import create_key

SECONDS = float(os.environ.get("EQUIPOISE_SOAK_SECONDS", "16"))
WARM_UP = max(5.0, SECONDS / 6)
N_CLIENTS = 6
LATE = 60
"""How many of its units a client assigns before it rewards the first of them."""

MEMORY_GROWTH = 16e6
"""Bytes by which the median of the last quarter may exceed that of the first: caches and buffers settle."""
FILE_GROWTH = 6
"""Connections of clients that just went away, and a file that a request reads, may be open when we look."""
SLOWER = 2.0
"""How many times the first quarter's median latency the last one's may be, on a machine that is as busy as it was."""
MOST_BUSIER = 2.0
"""What a busier machine excuses at most: the server waits less for the processor than what we compare it with."""


class Traffic:
    """Clients on threads that ask, reward late, repeat, err, look, export and break off."""

    def __init__(self, service, key):
        self.service, self.key = service, key
        self.latencies, self.efforts, self.counts, self.failures = [], [], Counter(), []
        self.assigned, self.rewarded = set(), set()
        self._ending = threading.Event()
        self._threads = [threading.Thread(target=self._live, args=(i,), daemon=True) for i in range(N_CLIENTS)]
        self._threads += [threading.Thread(target=one, daemon=True) for one in (self._break_off, self._measure)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ending.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()

    def _live(self, place):
        rng, waiting, numbers = Random(place), deque(), count()
        with closing(http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=60)) as connection:
            try:
                while not self._ending.is_set():
                    self._request(connection, rng, waiting, f"{place}/{next(numbers)}")
            except Exception as error:  # noqa: BLE001  (shown by the test)
                self.failures.append(repr(error))

    def _request(self, connection, rng, waiting, unit):
        kind = rng.random()
        if kind < 0.45:
            self._send(connection, "assign", 201, "POST", "/experiments/live/assignments", {"unit": unit})
            self.assigned.add(unit)
            waiting.append(unit)
        elif kind < 0.85:
            if len(waiting) <= LATE:
                return
            late = waiting.popleft()
            self._send(connection, "reward", 200, "PUT", of(late) + "/reward", {"reward": float(len(late))})
            self.rewarded.add(late)
            if rng.random() < 0.2:  # the same again
                self._send(connection, "reward", 200, "PUT", of(late) + "/reward", {"reward": float(len(late))})
                self._send(connection, "assign", 200, "POST", "/experiments/live/assignments", {"unit": late})
            if rng.random() < 0.1:  # and now something else
                self._send(connection, "mistake", 409, "PUT", of(late) + "/reward", {"reward": -1.0})
        elif kind < 0.95:
            self._send(connection, "mistake", *rng.choice(MISTAKES))
        elif kind < 0.975:
            self._send(connection, "look", 200, "GET", "/experiments/live/status")
        elif kind < 0.99:
            after = rng.randrange(1 + len(self.assigned))
            self._send(connection, "look", 200, "GET", f"/experiments/live/events?after={after}&limit=50")
        elif kind < 0.997:
            self._send(connection, "look", 200, "GET", rng.choice(["/metrics", "/readyz", "/experiments"]))
        else:
            path = f"/experiments/past/export?format={rng.choice(['csv', 'jsonl', 'parquet'])}"
            self._send(connection, "export", 200, "GET", path)

    def _send(self, connection, kind, expected, method, path, body=None, **headers):
        own = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        started = time.monotonic()
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body), own | headers)
        response = connection.getresponse()
        answer = response.read()
        if kind in ("assign", "reward"):
            self.latencies.append((started, time.monotonic() - started))
        self.counts[kind] += 1
        too_many_exports = kind == "export" and response.status == 503 and b"exports are under way" in answer
        if response.status != expected and not too_many_exports:
            raise AssertionError(f"{method} {path}: {response.status} {answer!r}")

    def _break_off(self):
        """Go away in the middle: of the head, of the body, before the answer, in the middle of an export."""
        rng = Random(1)
        head = f"Host: x\r\nAuthorization: Bearer {self.key}\r\nContent-Type: application/json\r\n"
        beginnings = [
            f"POST /experiments/live/assignments HTTP/1.1\r\n{head[:30]}",
            f'POST /experiments/live/assignments HTTP/1.1\r\n{head}Content-Length: 100\r\n\r\n{{"unit": ',
            f'POST /experiments/past/assignments HTTP/1.1\r\n{head}Content-Length: 15\r\n\r\n{{"unit": "gone"}}',
            f"GET /experiments/past/export HTTP/1.1\r\n{head}\r\n",
            f"GET /experiments/live/status HTTP/1.1\r\n{head}\r\n",
        ]
        while not self._ending.wait(0.03):
            with (
                suppress(OSError),
                socket.create_connection(("127.0.0.1", self.service.port), timeout=10) as connection,
            ):
                beginning = rng.choice(beginnings)
                connection.sendall(beginning.encode())
                if "export" in beginning:
                    connection.recv(100)
                self.counts["broken off"] += 1

    def _measure(self):
        """Note how long another process takes to compute a little and sync a file: how busy machine and disk are."""
        with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as echo:
            while not self._ending.wait(0.05):
                started = time.monotonic()
                echo.stdin.write(b"line\n")
                echo.stdin.flush()
                echo.stdout.readline()
                self.efforts.append((started, time.monotonic() - started))


ECHO = """
import os, sys, tempfile
with tempfile.TemporaryFile() as file:
    for line in sys.stdin:
        sum(number * number for number in range(50_000))
        file.seek(0)
        file.write(bytes(4096))
        file.flush()
        os.fsync(file.fileno())
        print(end=line, flush=True)
"""

MISTAKES = [
    (404, "GET", "/nowhere"),
    (404, "GET", "/experiments/nothing/status"),
    (404, "PUT", "/experiments/live/assignments/nobody/reward", {"reward": 1.0}),
    (405, "PATCH", "/experiments/live"),
    (422, "POST", "/experiments/live/assignments", {"unit": 7}),
    (422, "POST", "/experiments/live/assignments", {"unit": ""}),
    (422, "GET", "/experiments/live/events?after=-1"),
    (409, "POST", "/experiments/past/assignments", {"unit": "too late"}),
]


def of(unit):
    return f"/experiments/live/assignments/{quote(unit, safe='')}"


class LeakyService(Service):
    """The server that keeps something of every request."""

    def __init__(self, store_url, *options, port=0):
        popen = subprocess.Popen

        def other_program(command, **more):
            return popen([sys.executable, Path(__file__).with_name("leaky_service.py"), *command[3:]], **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "Popen", other_program)
            super().__init__(store_url, *options, port=port)


def create(url):
    """Make an experiment that goes on and one that is over, and return a key."""
    with eq.open_store(url) as store:
        for name in ("live", "past"):
            policy = eq.ForcingBalance(reward_weight=0.6, tracking="windowed")
            eq.Experiment.create(store, name, arms=["line", "pie", "none"], policy=policy, seed=7)
        past = eq.Experiment.open(store, "past")
        units = [f"pupil-{i}" for i in range(3_000)]
        past.ask_many(units)
        past.tell_many([(unit, float(len(unit))) for unit in units])
        past.stop()
        return create_key(store, role="admin", name="crowd")[1]


def observe(service, traffic, seconds, warm_up):
    """Return what was seen of a server: per quarter medians, and the largest counts."""
    process, samples = psutil.Process(service.process.pid), []
    time.sleep(warm_up)
    begun = time.monotonic()
    while time.monotonic() < begun + seconds and not traffic.failures:
        with process.oneshot():
            memory, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
        samples.append((time.monotonic(), memory, files, threads))
        time.sleep(seconds / 200)
    assert traffic.failures == []
    quarters = []
    for number in range(4):
        low, high = begun + number * seconds / 4, begun + (number + 1) * seconds / 4
        seen = [sample[1:] for sample in samples if low <= sample[0] < high]
        memory, files, threads = zip(*seen, strict=True)
        latencies = sorted(took for at, took in list(traffic.latencies) if low <= at < high)
        quarters.append(
            {
                "memory": statistics.median(memory),
                "files": statistics.median(files),
                "threads": statistics.median(threads),
                "latency": statistics.median(latencies),
                "p99": latencies[int(0.99 * len(latencies))],
                "effort": statistics.median(took for at, took in list(traffic.efforts) if low <= at < high),
                "requests": len(latencies),
            }
        )
    return quarters


def growth(quarters):
    """Return what grew from the first quarter to the last by more than it may."""
    first, last = quarters[0], quarters[-1]
    grown = []
    if last["memory"] > first["memory"] + MEMORY_GROWTH:
        grown.append("memory")
    if last["files"] > first["files"] + FILE_GROWTH:
        grown.append("files")
    if last["threads"] > first["threads"] + FILE_GROWTH:
        grown.append("threads")
    busier = min(max(1.0, last["effort"] / first["effort"]), MOST_BUSIER)
    if last["latency"] > SLOWER * busier * first["latency"]:
        grown.append("latency")
    return grown


def report(traffic, quarters):
    for quarter in quarters:
        print(
            f"{quarter['memory'] / 2**20:7.1f} MiB {quarter['files']:5.0f} files {quarter['threads']:4.0f} threads  "
            f"median {1000 * quarter['latency']:6.2f} ms  p99 {1000 * quarter['p99']:6.2f} ms  "
            f"{quarter['requests']:8,} assigned or rewarded  effort {1000 * quarter['effort']:6.2f} ms"
        )
    print(dict(traffic.counts))


def close(service):
    service.kill()
    if not service.process.stderr.closed:
        service.process.stderr.close()


@pytest.mark.endurance
def test_hours_of_mixed_traffic_leave_a_server_as_it_was(tmp_path):
    url = f"sqlite:///{tmp_path}/store.db"
    key = create(url)
    service = Service(url)
    try:
        with httpx.Client(base_url=service.url, headers={"authorization": f"Bearer {key}"}, timeout=60) as client:
            client.get("/readyz").raise_for_status()
            process = psutil.Process(service.process.pid)
            with Traffic(service, key) as traffic:
                quarters = observe(service, traffic, SECONDS, WARM_UP)
            report(traffic, quarters)
            assert growth(quarters) == []
            assert all(traffic.counts[kind] for kind in ("assign", "reward", "mistake", "look", "export", "broken off"))
            # Nothing is left of those who went away.
            most, until = quarters[0]["files"] - N_CLIENTS + 2, time.monotonic() + 20
            while process.num_fds() > most or in_flight(client) > 1:
                assert time.monotonic() < until, (most, process.num_fds(), in_flight(client))
                time.sleep(0.1)
            status = client.get("/experiments/live/status").json()
            assert (status["n_assigned"], status["n_rewarded"]) == (len(traffic.assigned), len(traffic.rewarded))
            assert client.get("/experiments/live/verify").status_code == 200
            assert client.get("/experiments/past/status").json()["n_assigned"] == 3_000
        assert service.stop() == 0
        assert not [line for line in service.lines if " error " in line or "Traceback" in line]
    finally:
        close(service)


def in_flight(client):
    return int(re.search(r"^equipoise_requests_in_flight (\d+)$", client.get("/metrics").text, flags=re.MULTILINE)[1])


@pytest.mark.endurance
def test_a_server_that_forgets_nothing_would_be_found_out(tmp_path):
    """The negative control: memory, files and time that grow with every request are seen."""
    url = f"sqlite:///{tmp_path}/store.db"
    key = create(url)
    service = LeakyService(url)
    try:
        httpx.get(f"{service.url}/readyz", timeout=60).raise_for_status()
        with Traffic(service, key) as traffic:
            quarters = observe(service, traffic, 6.0, 1.0)
        report(traffic, quarters)
        assert {"memory", "files", "latency"} <= set(growth(quarters))
    finally:
        close(service)
