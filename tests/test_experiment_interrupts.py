"""Ctrl-C at any moment: it is all that comes out, nothing is there by half, and work goes on at once."""

from __future__ import annotations

import contextlib
import gc
import signal
import sqlite3
import time
from random import Random

import pytest
from endurance import short_and_full

import equipoise as eq
from equipoise.store import sqlite
from equipoise.store import sqlite as waiting

N_CALLS = {"memory": 600, "sqlite": 150, "postgresql": 150}


@pytest.fixture(params=list(N_CALLS))
def kind(request):
    return request.param


@pytest.fixture
def url(kind, request, tmp_path):
    if kind == "memory":
        return "memory:"
    return f"sqlite:///{tmp_path}/store.db" if kind == "sqlite" else request.getfixturevalue("postgresql_url")


@pytest.fixture
def interrupted(monkeypatch):
    """A function that makes a call and interrupts it after some seconds; it says whether that came in time."""

    def interrupt(*_):
        raise KeyboardInterrupt

    def call(function, after):
        try:
            signal.setitimer(signal.ITIMER_REAL, after)
            function()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            return True
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        return False

    before = signal.signal(signal.SIGALRM, interrupt)
    yield call
    signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
# An interrupt that falls into a finalizer of SQLAlchemy's cannot be raised there; Python tells it and goes on.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("share", short_and_full(0.2, 1.0))
def test_an_experiment_that_is_interrupted_again_and_again_goes_on(kind, url, interrupted, share):
    n_calls = int(share * N_CALLS[kind])
    with eq.open_store(url) as store:
        missing = eq.WaitForReward(window_seconds=1e6)
        policy = eq.ForcingBalance(reward_weight=0.6)
        experiment = eq.Experiment.create(store, "exam", arms=["a", "b"], policy=policy, seed=7, missing=missing)
        for number in range(6):
            experiment.tell(experiment.ask(f"first-{number}").unit, float(number))
        # Compiled code is loaded before: numba's own tables do not survive an interrupt while it loads.
        experiment.ask_many(["one", "two"])
        experiment.status()
        experiment.verify()
        rng, n_interrupts = Random(3), 0
        for number in range(n_calls):
            calls = (
                lambda number=number: experiment.ask(f"unit-{number}"),
                lambda number=number: experiment.tell(f"unit-{number - 1}", 1.0),
                lambda number=number: experiment.ask_many([f"many-{number}-{i}" for i in range(3)]),
                experiment.status,
            )
            if number:
                experiment.ask(f"unit-{number - 1}")
            started = time.perf_counter()
            experiment.ask(f"other-{number}")
            usual = time.perf_counter() - started
            n_interrupts += interrupted(calls[number % 4], after=rng.uniform(1e-6, min(usual, 0.01)))
            assert experiment.ask(f"after-{number}").new
        assert n_interrupts > n_calls / 4
        assert experiment.verify().n_decisions == experiment.status().n_assigned
        together = {}
        for event in experiment.events():
            if event.kind == "assigned" and event.unit.startswith("many"):
                together.setdefault(event.unit.rsplit("-", 1)[0], []).append(event.unit)
        assert {len(units) for units in together.values()} <= {3}
    # A connection that was interrupted before anybody knew of it closes itself, and says so in this test and no other.
    gc.collect()


def test_what_is_in_memory_survives_an_interrupt_in_a_statement(monkeypatch):
    """SQLAlchemy closes the connection that it was interrupted in, which is all there is of a store in memory."""
    with eq.open_store("memory:") as store:
        experiment = eq.Experiment.create(store, "exam", arms=["a", "b"], policy=eq.Uniform(), seed=7)
        experiment.ask("a")

        def interrupted_in_a_statement(transaction):
            def stop(*_):
                raise KeyboardInterrupt

            transaction.connection.dialect.do_execute = stop
            try:
                transaction.find("exam")
            finally:
                del transaction.connection.dialect.do_execute

        with pytest.raises(KeyboardInterrupt):
            store.change(None, interrupted_in_a_statement)
        assert experiment.assignment("a") == experiment.ask("a")
        experiment.verify()


def test_work_after_an_interrupt_is_not_taken_for_it(tmp_path, monkeypatch):
    """Who tidies up after Ctrl-C is told what is wrong with the database, and not that somebody pressed Ctrl-C."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.01)
    with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
        experiment = eq.Experiment.create(store, "exam", arms=["a", "b"], policy=eq.Uniform(), seed=7)
        with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                with pytest.raises(eq.StoreUnavailable, match="another process has been writing"):
                    experiment.ask("a")


class BusyDriver:
    """A connection to a file that others write to, so many times."""

    def __init__(self, busy, code=sqlite3.SQLITE_BUSY):
        self.busy, self.code, self.timeout, self.began = busy, code, None, False

    def execute(self, statement):
        if statement.startswith("PRAGMA busy_timeout"):
            self.timeout = int(statement.split("=")[1])
            return
        assert (statement, self.timeout) == ("BEGIN IMMEDIATE", 0)
        if self.busy:
            self.busy -= 1
            error = sqlite3.OperationalError("busy")
            error.sqlite_errorcode = self.code
            raise error
        self.began = True


class TestWaiting:
    @pytest.fixture
    def slept(self, monkeypatch):
        """How long was slept, on a clock that goes by that alone."""
        slept = []
        monkeypatch.setattr(waiting.time, "sleep", slept.append)
        monkeypatch.setattr(waiting.time, "monotonic", lambda: sum(slept))
        return slept

    def test_who_waits_longer_asks_more_often(self, slept):
        driver = BusyDriver(8_000)
        waiting.begin_writing(driver, 60.0)
        assert (driver.began, driver.timeout, len(slept)) == (True, 60_000, 8_000)
        assert 0.0025 <= slept[0] <= 0.0075
        assert max(slept[12:1_000]) <= 0.0003
        # Somebody does something long: spare the machine.
        assert 0.001 <= min(slept[-100:]) <= max(slept[-100:]) <= 0.003
        assert len(set(slept)) > 7_900

    def test_patience_ends_and_other_errors_are_not_waited_for(self, slept):
        for driver, most in ((BusyDriver(10**9), 10_000), (BusyDriver(1, sqlite3.SQLITE_FULL), 0)):
            slept.clear()
            with pytest.raises(sqlite3.OperationalError):
                waiting.begin_writing(driver, 2.0)
            assert (driver.began, driver.timeout) == (False, 60_000)
            assert len(slept) <= most
            assert sum(slept) < 2.01

    def test_ctrl_c_ends_the_waiting(self, tmp_path, interrupted):
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = eq.Experiment.create(store, "exam", arms=["a", "b"], policy=eq.Uniform(), seed=7)
            other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            started = time.monotonic()
            assert interrupted(lambda: experiment.ask("a"), after=0.2)
            assert time.monotonic() - started < sqlite.BUSY_SECONDS / 2
            other.close()
            assert experiment.ask("a").new
