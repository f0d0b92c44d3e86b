"""Processes and servers that are killed at random moments, full disks, and databases that go away and come back.

Processes are ended by SIGKILL while they ask and tell, over a hundred of them for endurance. Afterwards everything they
were told is there, nothing is there by half, and the log replays. That a process is killed says nothing about a
power failure; for that `benchmarks/store.py` counts the calls that bring data to the disk.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path
from random import Random

import crash_worker
import psutil
import pytest
from crash_checker import create, problems
from endurance import short_and_full
from patience import wait_until

import equipoise as eq
from equipoise.experiment import Ask

N_WORKERS = 4
ROUNDS_PER_LOOK = 4
MOST_ROUNDS_OF_EARLY_ONES = 20
PATIENCE = 60.0


@pytest.fixture
def processes(monkeypatch):
    """What makes processes: forked from a server that has everything loaded and compiled."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["crash_worker", "pytest"])
    return context


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgresql_url")


@pytest.fixture
def crowd_of(processes, tmp_path):
    """What makes a crowd that works on a store; who is left of it at the end is killed, whatever went wrong."""
    crowds = []

    def made(url):
        crowds.append(Crowd(processes, url, tmp_path))
        return crowds[-1]

    yield made
    for process, _ in (one for crowd in crowds for one in crowd.running):
        process.kill()
        process.join(PATIENCE)


class Crowd:
    """Processes at work, each with a file of the answers it got."""

    def __init__(self, context, url, directory):
        self.context, self.url, self.directory = context, url, directory
        self.running = []
        self.n_started = 0

    def start(self, count=N_WORKERS, **options):
        for _ in range(count):
            path = self.directory / f"worker-{self.n_started}.jsonl"
            path.touch()
            arguments = (self.url, f"w{self.n_started}", self.n_started, path)
            process = self.context.Process(target=crash_worker.live, args=arguments, kwargs=options, daemon=True)
            process.start()
            self.running.append((process, path))
            self.n_started += 1

    def n_answers(self):
        return [path.read_bytes().count(b"\n") for _, path in self.running]

    def wait_for_answers(self, more=1):
        """Wait until every process has got answers since now."""
        before = self.n_answers()
        wait_until(lambda: all(now >= old + more for now, old in zip(self.n_answers(), before, strict=True)))

    def kill(self, rng, within):
        """Kill all, each at a moment of its own; each must have been alive until then."""
        moments = sorted((rng.uniform(0, within), process) for process, _ in self.running)
        started = time.monotonic()
        for moment, process in moments:
            time.sleep(max(0.0, started + moment - time.monotonic()))
            os.kill(process.pid, signal.SIGKILL)
        for process, _ in self.running:
            process.join(PATIENCE)
            assert process.exitcode == -signal.SIGKILL
        self.running.clear()

    def answers(self):
        """Return every answer that was got: kind, experiment, pairs of a unit and its arm or reward."""
        found = []
        for path in sorted(self.directory.glob("worker-*.jsonl")):
            *lines, _ = path.read_bytes().split(b"\n")  # the last one may have been cut short
            found += map(json.loads, lines)
        return found


def kill_in_rounds(crowd, rounds, rng, **options):
    """Start processes and kill them, some while they start, most while they work; return what is wrong then.

    It looks after every few rounds, since that takes as long as one, and ends early once something is wrong.
    """
    found = []
    for number in range(rounds):
        crowd.start(**options)
        if number % 4:
            wait_until(lambda: sum(crowd.n_answers()) > 2 * N_WORKERS)
        crowd.kill(rng, within=0.08)
        if (number + 1) % ROUNDS_PER_LOOK == 0 or number + 1 == rounds:
            found = problems(crowd.url, crowd.answers())
        if found:
            break
    return found


@pytest.mark.parametrize("rounds", short_and_full(4, 20))
def test_processes_killed_at_random_moments_lose_nothing(crowd_of, url, rounds):
    create(url)
    crowd = crowd_of(url)
    assert kill_in_rounds(crowd, rounds, Random(1)) == []
    assert crowd.n_started == rounds * N_WORKERS
    assert len(crowd.answers()) > crowd.n_started


def test_answers_before_the_commit_would_be_found_out(crowd_of, url):
    """The negative control: with this mistake the tests above fail."""
    create(url)
    crowd = crowd_of(url)
    found = kill_in_rounds(crowd, MOST_ROUNDS_OF_EARLY_ONES, Random(3), early=True)
    assert any("recorded None" in one for one in found)
    assert not any("verify" in one or "half" in one for one in found)


@pytest.mark.parametrize("kills", short_and_full(1, 6))
def test_a_server_killed_again_and_again_loses_nothing(crowd_of, own_postgresql, own_postgresql_url, kills):
    """Processes wait for it to come back and go on where they were."""
    server, url = own_postgresql, own_postgresql_url
    create(url)
    crowd, rng = crowd_of(url), Random(4)
    crowd.start()
    for _ in range(kills):
        crowd.wait_for_answers(3)
        time.sleep(rng.uniform(0, 0.1))
        kill_server(server)
        server.ensure_postgres_running()
    crowd.wait_for_answers(3)
    crowd.kill(rng, within=0.05)
    assert problems(url, crowd.answers()) == []


def kill_server(server):
    postmaster = psutil.Process(server.get_pid())
    everyone = [postmaster, *postmaster.children(recursive=True)]
    for process in everyone:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(everyone, timeout=PATIENCE)


def test_a_server_that_is_stopped_is_told_and_work_goes_on_when_it_is_back(own_postgresql):
    server = own_postgresql
    with eq.open_store(server.get_uri()) as store:
        policy = eq.ForcingBalance(reward_weight=0.6)
        experiment = eq.Experiment.create(store, "stopped", arms=["line", "pie"], policy=policy, seed=7)
        experiment.ask_many(["a", "b"])
        before = experiment.status().arms
        server.stop()
        for call in (
            lambda: experiment.ask("c"),
            lambda: experiment.tell("a", 1.0),
            experiment.status,
            lambda: eq.Experiment.open(server.get_uri(), "stopped"),
        ):
            with pytest.raises(eq.StoreUnavailable, match="cannot be reached or written") as refused:
                call()
            assert "see that the server runs" in refused.value.hint
        server.ensure_postgres_running()
        assert experiment.status().arms == before
        assert experiment.ask("c").number == 2
        assert experiment.tell("a", 1.0).new
        assert experiment.verify().n_events == 5


def test_a_file_that_cannot_grow_is_told_and_work_goes_on_when_it_can(processes, tmp_path):
    """The limit of the system on the size of files is met in the middle of a write, as the end of a disk would be."""
    url = f"sqlite:///{tmp_path}/store.db"
    create(url)
    results = processes.SimpleQueue()
    process = processes.Process(target=crash_worker.fill_the_disk, args=(url, results), daemon=True)
    process.start()
    process.join(PATIENCE)
    assert process.exitcode == 0
    kept, refused, while_full = results.get()
    assert len(refused) == 3
    assert all("cannot be read or written" in error and "disk has room" in error for error in refused)
    assert while_full == len(kept) - 1 > 0
    with eq.open_store(url) as store:
        experiment = eq.Experiment.open(store, "one")
        assert [event.unit for event in experiment.events() if event.kind == "assigned"] == kept
        experiment.verify()


def test_a_server_whose_files_cannot_grow_is_told_and_work_goes_on_when_they_can(own_postgresql):
    server = own_postgresql
    rng = Random(5)
    restart(server, largest_file=16 * 1024**2)  # the size of a piece of the server's own log, which must still fit
    with eq.open_store(server.get_uri()) as store:
        policy = eq.ForcingBalance(reward_weight=0.6)
        experiment = eq.Experiment.create(store, "full", arms=["line", "pie"], policy=policy, seed=7)
        kept, refused = [], None
        for number in range(100):
            requests = [Ask(f"{number}-{i}", {"text": rng.randbytes(4000).hex()}) for i in range(64)]
            try:
                kept += [answer.unit for answer in experiment.apply(requests)]
            except eq.StoreUnavailable as error:
                refused = error
                break
        assert "cannot be reached or written: could not" in str(refused)
        assert "has room" in refused.hint
        assert experiment.status().n_assigned == len(kept) > 0
        restart(server)
        kept.append(experiment.ask("after").unit)
        assert [event.unit for event in experiment.events() if event.kind == "assigned"] == kept
        experiment.verify()


def restart(server, largest_file=resource.RLIM_INFINITY):
    """Stop the server and start it with a limit, which it takes over from us, on the size of its files."""
    server.stop()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, hard))
    try:
        server.ensure_postgres_running()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_directory_that_goes_away_and_comes_back(tmp_path):
    place, away = tmp_path / "mounted", tmp_path / "away"
    place.mkdir()
    create(f"sqlite:///{place}/store.db")
    with eq.open_store(f"sqlite:///{place}/store.db") as store:
        experiment = eq.Experiment.open(store, "one")
        kept = experiment.ask("a")
        store.close()
        place.rename(away)
        with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
            experiment.ask("b")
        away.rename(place)
        assert experiment.ask("a").arm == kept.arm
        assert experiment.ask("b").number == 1
        experiment.verify()


def test_eight_processes_at_once_get_exactly_what_is_recorded(crowd_of, url):
    """On two experiments, alone and together, for the same units and for their own: no error, nothing more or less."""
    create(url)
    crowd = crowd_of(url)
    crowd.start(8, steps=20)
    for process, _ in crowd.running:
        process.join(PATIENCE)
        assert process.exitcode == 0
    answers = crowd.answers()
    assert problems(url, answers) == []
    with eq.open_store(url) as store:
        for name in ("one", "other"):
            status = eq.Experiment.open(store, name).status()
            for kind, count in (("asked", status.n_assigned), ("told", status.n_rewarded)):
                assert count == len(
                    {unit for of, at, pairs in answers if (of, at) == (kind, name) for unit, _ in pairs}
                )
