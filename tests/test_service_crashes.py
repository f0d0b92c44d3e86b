"""Servers that are killed at random moments while clients assign and reward, and a database that is restarted.

Whatever a client was answered is in the database afterwards, nothing is there by half or twice, the counters are those
of the log, the log replays, and the next server starts as if nothing had been.

For endurance there are some twenty kills in all, else one for each database. `EQUIPOISE_KILLS=20 ./run endurance` kills
the servers of each set-up twenty times.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import crash_checker
import httpx
import psutil
import pytest
from crash_checker import problems, recorded
from endurance import short_and_full
from patience import wait_until
from service_crowd import PATIENCE, Crowd
from service_runner import Service

import equipoise as eq
from equipoise.service.api_keys import create_key

TWO_SERVERS = "postgresql, two servers"
USUAL_KILLS = {"sqlite, one": 6, "sqlite, two": 2, "postgresql, one": 4, "postgresql, two": 2, TWO_SERVERS: 5}
KILLS = {case: int(os.environ.get("EQUIPOISE_KILLS", usual)) for case, usual in USUAL_KILLS.items()}
"""How often the server of a store is killed; "two" is one server with two processes that answer."""
KILLS_OF_PARTS, MOST_KILLS_OF_EARLY_ONE = 2, 5


class EarlyService(Service):
    """The server that answers before its commit."""

    def __init__(self, store_url, *options, port=0):
        popen = subprocess.Popen

        def other_program(command, **more):
            return popen([sys.executable, Path(__file__).with_name("early_service.py"), *command[3:]], **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(subprocess, "Popen", other_program)
            super().__init__(store_url, *options, port=port)


@pytest.fixture
def url(request, tmp_path):
    """The URL of an empty store of the kind that the test's parameter begins with."""
    if request.param.startswith("sqlite"):
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgresql_url")


def create(url):
    """Make two experiments and a key, and return the key."""
    crash_checker.create(url)
    with eq.open_store(url) as store:
        return create_key(store, role="admin", name="crowd")[1]


def wrong_counters(url, service, key):
    """Return where the counters that a server shows differ from a recount of the log."""
    wrong = []
    with eq.open_store(url) as store, httpx.Client(base_url=service.url, timeout=PATIENCE) as client:
        client.headers["authorization"] = f"Bearer {key}"
        for name in ("one", "other"):
            facts = recorded(eq.Experiment.open(store, name))
            rewards = defaultdict(list)
            for unit, (arm,) in facts["asked"].items():
                if unit in facts["told"]:
                    rewards[arm].append((facts["corrected"].get(unit) or facts["told"][unit])[-1])
            assigned = Counter(arm for (arm,) in facts["asked"].values())
            for arm in client.get(f"/experiments/{name}/status").raise_for_status().json()["arms"]:
                found = rewards[arm["arm"]]
                if (arm["assigned"], arm["rewarded"]) != (assigned[arm["arm"]], len(found)):
                    wrong.append(f"{arm}: recounted {assigned[arm['arm']]}, {len(found)}")
                if not math.isclose(arm["mean"], math.fsum(found) / len(found), rel_tol=1e-12):
                    wrong.append(f"{arm}: recounted mean {math.fsum(found) / len(found)}")
            verified = client.get(f"/experiments/{name}/verify")
            if verified.status_code != 200:
                wrong.append(f"verify: {verified.text}")
    return wrong


def complaints(service):
    """Return what a server said that one which starts clean does not say."""
    return [line for line in service.lines if " error " in line or "warning" in line or "Traceback" in line]


class Servers:
    """Servers of one store, each of which comes back at its port after it was killed."""

    def __init__(self, url, *options, count=1, kind=Service):
        self.url, self.options, self.kind = url, options, kind
        self.running = [kind(url, *options) for _ in range(count)]
        self.ports = [service.port for service in self.running]
        self.complaints = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for service in self.running:
            service.kill()
            service.process.stderr.close()

    def kill(self, place):
        service = self.running[place]
        assert service.process.poll() is None, service.lines
        service.kill()
        service.process.stderr.close()
        assert service.process.returncode == -signal.SIGKILL
        self.complaints += complaints(service)

    def start(self, place):
        self.running[place] = self.kind(self.url, *self.options, port=self.ports[place])

    def stop(self):
        codes = [service.stop() for service in self.running]
        self.complaints += [line for service in self.running for line in complaints(service)]
        return codes


def kill_again_and_again(servers, crowd, kills, rng):
    """Kill servers in turn, each under load; return what is wrong, once something is.

    Load is: since it was started, the server that is killed has given answers. Mostly it is at full speed by then;
    every third is killed at its first answers, while it fills its caches.
    """
    since = dict.fromkeys(servers.ports, 0)
    for number in range(kills):
        place = number % len(servers.running)
        port = servers.ports[place]
        if number % 3 != 2:
            crowd.wait_for_answers(3)
        crowd.wait_for_load(port, since[port])
        time.sleep(rng.uniform(0, 0.1))
        servers.kill(place)
        since[port] = crowd.n_answers[port]
        if len(servers.running) > 1:
            crowd.wait_for_answers()  # which the others give
        # Sometimes the next server is the first to see what the last one left, sometimes we are.
        if number % 2:
            servers.start(place)
        found = problems(servers.url, list(crowd.answers))
        if not number % 2:
            servers.start(place)
        if found:
            return found
    return []


@pytest.mark.parametrize(
    ("url", "case", "kills"),
    [pytest.param(case, case, 1, id=f"{case}, once") for case in ("sqlite, one", TWO_SERVERS)]
    + [pytest.param(case, case, kills, id=case, marks=pytest.mark.endurance) for case, kills in KILLS.items()],
    indirect=["url"],
)
def test_a_server_killed_again_and_again_loses_nothing(url, case, kills):
    key, rng = create(url), Random(case)
    options = ["--workers", "2"] if case.endswith("two") else []
    with Servers(url, *options, count=2 if case == TWO_SERVERS else 1) as servers:
        with Crowd(servers.ports, key) as crowd:
            assert kill_again_and_again(servers, crowd, kills, rng) == []
            crowd.wait_for_answers(3)
        assert crowd.failures == []
        assert crowd.counts["broken off"] >= kills, "each kill should meet requests under way"
        assert len(crowd.answers) >= 20 * kills
        assert problems(url, crowd.answers) == []
        for service in servers.running:
            assert wrong_counters(url, service, key) == []
        assert servers.stop() == [0] * len(servers.running)
        assert servers.complaints == []


def test_the_kills_are_at_least_twenty():
    assert sum(USUAL_KILLS.values()) + KILLS_OF_PARTS >= 20


@pytest.mark.endurance
def test_a_part_of_a_server_is_killed(postgresql_url):
    """A worker is replaced while the other goes on; without what started them, both end and free the port."""
    key = create(postgresql_url)
    with Servers(postgresql_url, "--workers", "2") as servers:
        with Crowd(servers.ports, key) as crowd:
            crowd.wait_for_answers(3)
            parent = psutil.Process(servers.running[0].process.pid)
            before = workers(parent)
            assert len(before) == 2
            before[0].kill()
            wait_until(lambda: set(workers(parent)) - set(before))
            crowd.wait_for_answers(3)
            everyone = parent.children()
            parent.kill()
            assert psutil.wait_procs(everyone, timeout=PATIENCE)[1] == []
            servers.running[0].kill()
            servers.running[0].process.stderr.close()
            servers.start(0)
            crowd.wait_for_answers(3)
        assert crowd.failures == []
        # A worker may be killed between two requests; while nothing listens, every client is refused.
        assert crowd.counts["broken off"] + crowd.counts["refused"] >= KILLS_OF_PARTS
        assert problems(postgresql_url, crowd.answers) == []
        assert wrong_counters(postgresql_url, servers.running[0], key) == []
        assert servers.stop() == [0]


def workers(parent):
    """Return the processes that answer requests."""
    found = []
    for one in parent.children():
        with suppress(psutil.ZombieProcess):  # one that was killed, until its parent notices
            if "spawn_main" in " ".join(one.cmdline()):
                found.append(one)
    return found


@pytest.mark.endurance
@pytest.mark.parametrize("url", ["sqlite", "postgresql"], indirect=True)
def test_answers_before_the_commit_would_be_found_out(url):
    """The negative control: with this mistake the tests above fail."""
    key, rng, found = create(url), Random(3), []
    with ExitStack() as stack:
        servers = stack.enter_context(Servers(url, kind=EarlyService))
        crowd = stack.enter_context(Crowd(servers.ports, key))
        for _ in range(MOST_KILLS_OF_EARLY_ONE):
            crowd.wait_for_answers(3)
            time.sleep(rng.uniform(0, 0.1))
            servers.kill(0)
            found = problems(url, list(crowd.answers))
            if found:
                break
            servers.start(0)
    assert any("recorded None" in one for one in found), crowd.failures
    assert not any("verify" in one or "half" in one for one in found)


@pytest.mark.parametrize("restarts", short_and_full(2, 4))
def test_a_database_restarted_under_load_is_waited_for(own_postgresql, own_postgresql_url, restarts):
    """Clients get 503 or wait meanwhile, nothing else; afterwards they go on, and nothing was lost."""
    url, rng = own_postgresql_url, Random(4)
    key = create(url)
    with Servers(url) as servers, httpx.Client(base_url=servers.running[0].url, timeout=PATIENCE) as client:
        with Crowd(servers.ports, key) as crowd:
            for how in (signal.SIGQUIT, signal.SIGINT) * (restarts // 2):  # "immediate" and "fast"
                crowd.wait_for_answers(3)
                time.sleep(rng.uniform(0, 0.1))
                postmaster = psutil.Process(own_postgresql.get_pid())
                postmaster.send_signal(how)
                postmaster.wait(PATIENCE)
                ready = client.get("/readyz")
                assert (ready.status_code, ready.headers["retry-after"]) == (503, "1")
                assert "hint" in ready.json()
                assert client.get("/healthz").status_code == 200
                own_postgresql.ensure_postgres_running()
            crowd.wait_for_answers(3)
            assert client.get("/readyz").status_code == 200
        assert crowd.failures == []
        assert crowd.counts[503] > 0
        assert crowd.counts["broken off"] == crowd.counts["refused"] == 0
        assert problems(url, crowd.answers) == []
        assert wrong_counters(url, servers.running[0], key) == []
        assert servers.stop() == [0]
