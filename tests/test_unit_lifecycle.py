"""The table of a unit's life: what follows from it, spelled out once more by hand."""

from __future__ import annotations

import itertools

import pytest

import equipoise as eq
from equipoise import unit_lifecycle as life
from equipoise.kernels import VERSION

RULES = [
    eq.WaitForReward(),
    *(
        kind(window_seconds=10, hold=hold, **more)
        for kind, more in (
            (eq.WaitForReward, {}),
            (eq.DefaultReward, {"value": 1.0, "late": "count"}),
            (eq.DefaultReward, {"value": 1.0, "late": "ignore"}),
            (eq.DropUnit, {"late": "count"}),
            (eq.DropUnit, {"late": "ignore"}),
        )
        for hold in (False, True)
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_has_a_life_in_which_everything_has_an_end(rule):
    """Whatever happens first, a unit ends in a state in which only corrections happen, and each state is reached.

    From each it can be withdrawn, and nothing happens after that.
    """
    steps = rule.life.steps
    reached, ends = {life.WAITING}, set()
    todo = [life.WAITING]
    while todo:
        state = todo.pop()
        following = {
            step.after for (before, event), step in steps.items() if before == state and event != life.WITHDRAWN
        }
        following -= {state}
        ends |= set() if following else {state}
        todo += following - reached
        reached |= following
    assert life.IN_ESTIMATES in ends
    assert not any(life.STATES[state].is_open for state in ends)
    assert (life.HELD in reached) == rule.hold
    assert (ends == {life.IN_ESTIMATES}) == (rule.late == "count")
    assert all(steps[state, life.WITHDRAWN].after == life.GONE for state in reached)
    assert not any(before == life.GONE for before, _ in steps)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_compiled_code_reads_the_same_table(rule):
    for state, event in itertools.product(life.STATES, range(life.OTHER)):
        step = rule.life.steps.get((state, event))
        row = rule.life.array[state, event].tolist()
        assert row == ([-1, -1, -1] if step is None else list(step))
        assert rule.life.after(state, event) == (state if step is None else step.after)


def test_what_a_late_reward_does():
    """By hand, for a default that is replaced, one that stays, a unit that comes back and one that does not."""
    expected = {
        ("default", "count"): (life.DEFAULTED, life.Step(life.IN_ESTIMATES, True, life.DEFAULT_VALUE)),
        ("default", "ignore"): (life.DEFAULTED, life.Step(life.LATE_DEFAULTED, False, life.NOTHING)),
        ("drop", "count"): (life.DROPPED, life.Step(life.IN_ESTIMATES, True, life.NOTHING)),
        ("drop", "ignore"): (life.DROPPED, life.Step(life.LATE_DROPPED, False, life.NOTHING)),
        ("wait", "count"): (life.OVERDUE, life.Step(life.IN_ESTIMATES, True, life.NOTHING)),
    }
    for (kind, late), (passed, step) in expected.items():
        for hold in (False, True):
            table = life.LIVES[kind, late, hold]
            assert table.steps[life.WAITING, life.EXPIRED].after == passed
            assert table.steps[passed, life.REWARDED] == step


def write_version(experiment, value):
    """Change what the log says of the kernels."""
    statement = f"UPDATE events SET details = {value} WHERE kind = 'created'"  # noqa: S608
    without_chain = (
        "UPDATE events SET salt = NULL, hash = NULL",
        "UPDATE experiments SET hash = NULL, chained_from = n_events",
    )
    for one in (statement, *without_chain):
        experiment.store.change(None, lambda t, one=one: t.connection.exec_driver_sql(one))
    experiment.store.states.clear()


def test_a_log_records_the_version_of_the_kernels_and_another_is_refused():
    experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.UCB(), seed=1)
    experiment.ask_many(["x", "y", "z"])
    assert next(iter(experiment.events())).details["configuration"]["kernels"] == VERSION
    write_version(experiment, f"json_set(details, '$.configuration.kernels', {VERSION + 1})")
    text = f"by version {VERSION + 1} of the kernels; equipoise {eq.__version__} has version {VERSION} "
    with pytest.raises(eq.VerificationFailed, match=text) as error:
        experiment.verify()
    assert error.value.event == 1
    assert "verify with a newer equipoise" in error.value.hint
    experiment.rebuild()  # decisions that were taken are believed
    assert not experiment.rebuild()
    write_version(experiment, "json_set(details, '$.configuration.kernels', 0)")
    with pytest.raises(eq.VerificationFailed, match="by version 0 of the kernels") as error:
        experiment.verify()
    assert "verify with the equipoise that the experiment was made with" in error.value.hint


@pytest.mark.parametrize(
    "value", ["json_remove(details, '$.configuration.kernels')", "json_set(details, '$.configuration.kernels', 1)"]
)
def test_a_log_of_the_first_version_verifies(value):
    """Which the first logs do not record."""
    experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.UCB(), seed=1)
    experiment.ask_many(["x", "y", "z"])
    write_version(experiment, value)
    experiment.rebuild()  # arms of the first version have no exact sums
    experiment.tell_many({"x": 0.1, "y": 0.2})
    experiment.correct("x", 0.3, "misread")
    assert experiment.verify().n_decisions == 3
