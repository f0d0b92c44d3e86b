"""Transactions whose commit another thread makes: never waiting, never half, and only where that is quick."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing

import pytest

import equipoise as eq
from equipoise.experiment import Ask, Tell
from equipoise.experiment import execution as carrying_out

UNITS = [f"u{number}" for number in range(8)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.db"


@pytest.fixture
def experiment(path):
    return eq.Experiment.create(
        f"sqlite:///{path}", "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1
    )


def prepare(experiment, requests):
    return carrying_out.prepare(experiment.store, experiment.number, requests)


def elsewhere(work):
    """Return what work returns on another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join(30)
    assert found
    return found[0]


def n_assigned(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("SELECT count(*) FROM events WHERE kind = 'assigned'").fetchone()[0]


def test_it_gives_what_apply_gives_once_another_thread_has_committed_it(experiment, path):
    prepared = prepare(experiment, [Ask("u0"), Tell("u0", 1.0), Tell("nobody", 1.0), Ask("u0")])
    assert n_assigned(path) == 0
    answers = elsewhere(prepared.commit).results
    assert [type(answer).__name__ for answer in answers] == ["Assignment", "ToldReward", "UnknownUnit", "Assignment"]
    assert answers[0].arm == answers[3].arm and not answers[3].new
    assert n_assigned(path) == 1
    twin = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    assert [one.arm for one in twin.ask_many(UNITS)] == [
        answers[0].arm,
        *(one.arm for one in elsewhere(prepare(experiment, [Ask(unit) for unit in UNITS[1:]]).commit).results),
    ]
    assert experiment.verify().n_decisions == 8


def test_undone_it_leaves_no_trace_and_others_go_on(experiment, path):
    prepared = prepare(experiment, [Ask("u0")])
    elsewhere(lambda: prepared.undo() or True)
    assert n_assigned(path) == 0
    assert experiment.ask("u1").number == 0
    assert experiment.verify().n_decisions == 1


def test_while_another_process_writes_it_does_not_wait(experiment, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert prepare(experiment, [Ask("u0")]) is None
        other.execute("ROLLBACK")
    assert prepare(experiment, [Ask("u0")]).commit().results[0].new


def test_while_another_thread_writes_it_does_not_wait(experiment):
    held, go_on = threading.Event(), threading.Event()

    def hold():
        with experiment.store.database.writing(None):
            held.set()
            assert go_on.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    assert prepare(experiment, [Ask("u0")]) is None
    go_on.set()
    thread.join()
    assert prepare(experiment, [Ask("u0")]).commit().results[0].new


def test_who_writes_meanwhile_waits_for_the_commit(experiment):
    prepared = prepare(experiment, [Ask("u0")])
    asked = []
    thread = threading.Thread(target=lambda: asked.append(experiment.ask("u1")))
    thread.start()
    thread.join(0.2)
    assert not asked
    assert prepared.commit().results[0].number == 0
    thread.join(30)
    assert asked[0].number == 1
    assert experiment.verify().n_decisions == 2


def test_a_file_that_was_moved_away_is_noticed_before_the_commit(experiment, path):
    prepared = prepare(experiment, [Ask("u0")])
    path.rename(path.with_suffix(".away"))
    with pytest.raises(eq.StoreUnavailable, match="deleted or replaced"):
        prepared.commit()
    path.with_suffix(".away").rename(path)
    assert n_assigned(path) == 0
    assert experiment.ask("u0").new


def test_what_goes_wrong_is_left_to_apply_to_tell(experiment, monkeypatch):
    monkeypatch.setattr("equipoise.experiment.execution.write_plan", lambda *_: 1 / 0)
    assert prepare(experiment, [Ask("u0")]) is None
    with pytest.raises(ZeroDivisionError):
        experiment.apply([Ask("u0")])
    monkeypatch.undo()
    assert experiment.ask("u0").new


def test_memory_has_one_connection_and_a_server_elsewhere_takes_its_time(postgresql_url):
    for url in ("memory:", postgresql_url):
        experiment = eq.Experiment.create(url, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        assert prepare(experiment, [Ask("u0")]) is None
        assert experiment.ask("u0").number == 0
