"""Short random histories with faults of processes, network, clocks and store, each checked from the outside.

What was answered is there, a unit keeps its arm, a reward counts once, an answer is seen by every later call, and
`verify` is green. A failure prints the seed and the shortest history found that still fails. For every property there
is a store that is broken on purpose, and the checker must find it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import fault_injection
import pytest
from endurance import short_and_full
from fault_injection import (
    ALL_FAULTS,
    BEFORE_COMMIT,
    PUT_BACK_RUNNING,
    FaultyDatabase,
    Simulation,
    create_template,
    scenario,
    shrink,
)
from history_checker import PROPERTIES, Arm, Call, History, Logged, Loss, Seen, violations

from equipoise.experiment import execution
from equipoise.experiment.backends import StoreBackend

NOTICES_OLD_LOGS = True
"""Whether a process always notices that the log it remembers was replaced by an older one."""
FAULTS = ALL_FAULTS if NOTICES_OLD_LOGS else ALL_FAULTS - {PUT_BACK_RUNNING}
MOST_HISTORIES_OF_BROKEN_ONES = 200


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """The store that every history begins with."""
    path = tmp_path_factory.mktemp("template") / "store.db"
    create_template(path)
    return path


@pytest.fixture
def wrong_with(template, tmp_path):
    """What returns the violations of a scenario."""
    return lambda scenario: violations(Simulation(scenario, template, tmp_path).play())


def first_failure(wrong_with, seeds, faults, of=""):
    """Return the first seed that fails with its shrunk history, as text; empty if none does."""
    for seed in seeds:
        drawn = scenario(seed, faults)
        found = [one for one in wrong_with(drawn) if one.startswith(of)]
        if found:
            kind = found[0].partition(":")[0]
            small = shrink(drawn, lambda one, kind=kind: any(wrong.startswith(kind) for wrong in wrong_with(one)))
            return f"seed {seed}: {found}\n{small}\n{wrong_with(small)}"
    return ""


@pytest.mark.parametrize("seeds", short_and_full(range(200), range(200, 5_000)))
def test_histories_with_faults_keep_the_promise(wrong_with, seeds):
    assert first_failure(wrong_with, seeds, FAULTS) == ""


def test_a_seed_gives_the_same_history_every_time(template, tmp_path):
    drawn = scenario(7, FAULTS)
    assert drawn == scenario(7, FAULTS)
    assert Simulation(drawn, template, tmp_path).play() == Simulation(drawn, template, tmp_path).play()


def test_histories_meet_every_fault_and_most_calls_are_answered(template, tmp_path):
    drawn = [scenario(seed, FAULTS) for seed in range(30)]
    histories = [Simulation(one, template, tmp_path).play() for one in drawn]
    calls = [call for history in histories for call in history.calls]
    assert {step.fault for one in drawn for step in one.steps} == {None, *fault_injection.STORE_FAULTS}
    assert {"jump", "restart", "snapshot", "restore"} <= {step.verb for one in drawn for step in one.steps}
    assert {event.kind for one in histories for event in one.log} >= {"assigned", "rewarded", "corrected", "expired"}
    assert sum(call.answered for call in calls) > len(calls) / 2
    assert any(call.deliveries > 1 for call in calls)
    assert any(one.losses for one in histories)


# Stores that are broken on purpose


def without_unique_index(path):
    """Take away the index that refuses a second event of a kind; the queries that use it work on."""
    with closing(sqlite3.connect(path)) as connection:
        [(sql,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'one_event_of_a_kind_per_unit'")
        connection.execute("DROP INDEX one_event_of_a_kind_per_unit")
        connection.execute(sql.replace("UNIQUE ", ""))
        connection.commit()


def forget_units(patch):
    """Look up no unit: whoever asks again is assigned again."""
    patch.setattr(execution, "read_units", lambda rows, missing: {})


def forget_rewards(patch):
    """Look up units without their rewards: whoever reports one again is counted again."""
    read = execution.read_units
    patch.setattr(
        execution, "read_units", lambda rows, missing: read([row for row in rows if row[1] == "assigned"], missing)
    )


def answer_before_the_commit(patch):
    """Answer although the transaction was rolled back."""
    original = FaultyDatabase.writing

    @contextmanager
    def writing(self, experiment, *more):
        undo, self.fault = self.fault == BEFORE_COMMIT, None if self.fault == BEFORE_COMMIT else self.fault
        with original(self, experiment, *more) as transaction:
            yield transaction
            if undo:
                transaction.driver.execute("ROLLBACK")
                transaction.driver.execute("BEGIN")

    patch.setattr(FaultyDatabase, "writing", writing)


def read_old_snapshots(patch):
    """Answer every reading of a unit as the process answered it first."""
    original = StoreBackend.unit

    def unit(self, unit):
        memory = self.__dict__.setdefault("memory", {})
        if unit not in memory:
            memory[unit] = original(self, unit)
        return memory[unit]

    patch.setattr(StoreBackend, "unit", unit)


def decide_on_old_statistics(patch):
    """Notice that others wrote, and keep the statistics of before."""
    original = execution.load_state

    def load_state(store, transaction, experiment, name):
        state, cached = original(store, transaction, experiment, name), store.states.get(experiment)
        if cached is not None and cached is not state:
            state.stats = cached.stats.copy()
        return state

    patch.setattr(execution, "load_state", load_state)


def keep_the_cache(patch):
    """Never notice that others wrote."""
    original = execution.load_state

    def load_state(store, transaction, experiment, name):
        return store.states.get(experiment) or original(store, transaction, experiment, name)

    patch.setattr(execution, "load_state", load_state)


@pytest.mark.parametrize(
    ("break_it", "of"),
    [
        (forget_units, "stickiness"),
        (forget_rewards, "once"),
        (answer_before_the_commit, "acknowledged"),
        (read_old_snapshots, "real_time"),
        (decide_on_old_statistics, "replay"),
        (keep_the_cache, "refusals"),
    ],
)
def test_a_broken_store_would_be_found_out(template, tmp_path, monkeypatch, break_it, of):
    broken = tmp_path / "template"
    broken.write_bytes(template.read_bytes())
    if break_it in (forget_units, forget_rewards):
        without_unique_index(broken)
    break_it(monkeypatch)
    found = (
        violations(Simulation(scenario(seed, FAULTS), broken, tmp_path).play())
        for seed in range(MOST_HISTORIES_OF_BROKEN_ONES)
    )
    assert any(one.startswith(f"{of}:") for wrong in found for one in wrong)


def test_a_failure_is_shrunk_to_what_matters(wrong_with, monkeypatch):
    """Two calls are enough to lose an answer, and only the one that is lost needs a fault."""
    answer_before_the_commit(monkeypatch)
    message = first_failure(wrong_with, range(MOST_HISTORIES_OF_BROKEN_ONES), FAULTS, of="acknowledged")
    steps = [line for line in message.splitlines() if line.startswith("  ")]
    assert len(steps) <= 2
    assert [BEFORE_COMMIT in step for step in steps].count(True) == 1
    assert not any("delay" in step or "again" in step or "lost_answers" in step for step in steps)


# Histories that are wrong in one way only


AT = datetime(2027, 1, 1, tzinfo=UTC)


def ask(unit, arm, number, invoked, new=True):
    return Call("ask", ((unit, None),), invoked, invoked + 1, (Seen(unit, arm, None, number, AT, new),))


def assigned(unit, arm, number):
    return Logged("assigned", unit, arm, None, number, AT, False)


RIGHT = History(
    (
        ask("a", "line", 0, 1),
        ask("b", "pie", 1, 3),
        Call("tell", (("a", 1.0),), 5, 6, (Seen("a", "line", 1.0),)),
        Call("correct", (("a", 3.0),), 7, 8, (Seen("a", "line", 3.0),)),
        Call("unit", (("a", None),), 9, 10, (Seen("a", "line", 3.0),)),
        Call("status", (), 11, 12, n_assigned=2),
    ),
    (
        assigned("a", "line", 0),
        assigned("b", "pie", 1),
        Logged("rewarded", "a", "line", 1.0, 0, AT, True),
        Logged("corrected", "a", "line", 3.0, 0, AT, True),
    ),
    (Arm("line", 1, 1, 3.0), Arm("pie", 1, 0, None)),
)
A, B, TELL, CORRECT, UNIT, STATUS = RIGHT.calls
LOST = Loss(2.5, 20, 20)
"""Everything after the first answer."""
REST = replace(RIGHT, log=RIGHT.log[:1], arms=(Arm("line", 1, 0, None), Arm("pie", 0, 0, None)), losses=(LOST,))


def with_calls(history, *calls):
    return replace(history, calls=(*history.calls, *calls))


def without(history, call, *instead):
    return replace(history, calls=tuple(one for one in history.calls if one != call) + instead)


def test_right_histories_are_accepted():
    again = ask("b", "line", 1, 21)
    after_loss = replace(
        with_calls(REST, again),
        log=(*REST.log, assigned("b", "line", 1)),
        arms=(Arm("line", 2, 0, None), Arm("pie", 0, 0, None)),
    )
    unanswered = with_calls(RIGHT, Call("ask", (("c", None),), 1), Call("tell", (("b", 2.0),), 1))
    for history in (RIGHT, REST, after_loss, unanswered):
        assert violations(history) == []


@pytest.mark.parametrize(
    ("history", "of"),
    [
        (with_calls(RIGHT, ask("a", "pie", 0, 13, new=False)), "stickiness"),
        (with_calls(REST, ask("a", "pie", 0, 13, new=False)), "stickiness"),
        (replace(RIGHT, log=(*RIGHT.log, assigned("a", "pie", 2))), "stickiness"),
        (replace(RIGHT, log=RIGHT.log[1:]), "acknowledged"),
        (replace(RIGHT, log=RIGHT.log[:2] + RIGHT.log[3:]), "acknowledged"),
        (replace(RIGHT, log=RIGHT.log[:3]), "acknowledged"),
        (replace(REST, losses=(Loss(3.5, 20, 20),), log=()), "acknowledged"),
        (replace(RIGHT, log=(*RIGHT.log, RIGHT.log[2])), "once"),
        (replace(RIGHT, log=(*RIGHT.log, RIGHT.log[3])), "once"),
        (replace(RIGHT, log=(*RIGHT.log, assigned("c", "pie", 2))), "once"),
        (replace(RIGHT, arms=(Arm("line", 1, 2, 3.0), RIGHT.arms[1])), "once"),
        (replace(RIGHT, arms=(Arm("line", 1, 1, 2.0), RIGHT.arms[1])), "once"),
        (without(RIGHT, UNIT, replace(UNIT, seen=(Seen("a"),))), "real_time"),
        (without(RIGHT, UNIT, replace(UNIT, seen=(Seen("a", "line"),))), "real_time"),
        (without(RIGHT, UNIT, replace(UNIT, seen=(Seen("a", "line", 1.0),))), "real_time"),
        (without(RIGHT, UNIT, replace(UNIT, seen=(Seen("a", "line", 7.0),))), "real_time"),
        (with_calls(RIGHT, Call("tell", (("b", 1.0),), 13, 14, error="UnknownUnit")), "real_time"),
        (with_calls(RIGHT, Call("correct", (("a", 9.0),), 13, 14, error="NotRewarded")), "real_time"),
        (without(RIGHT, STATUS, replace(STATUS, n_assigned=1)), "real_time"),
        (without(RIGHT, STATUS, replace(STATUS, n_assigned=3)), "real_time"),
        (replace(RIGHT, log=(RIGHT.log[1], RIGHT.log[0], *RIGHT.log[2:])), "real_time"),
        (replace(RIGHT, log=(RIGHT.log[1],), losses=(Loss(0, 20, 20),)), "suffix"),
        (replace(RIGHT, verify="event 2 should assign 'line'"), "replay"),
        (with_calls(RIGHT, Call("tell", (("a", 1.0),), 13, 14, error="IntegrityError")), "refusals"),
    ],
)
def test_a_wrong_history_is_rejected(history, of):
    assert of in {one.partition(":")[0] for one in violations(history)}


def test_there_is_a_wrong_history_for_every_property():
    [marker] = test_a_wrong_history_is_rejected.pytestmark
    assert {of for _, of in marker.args[1]} == set(PROPERTIES)
