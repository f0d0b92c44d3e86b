"""What an experiment's log says of each decision: what the store knows otherwise, and the probabilities of all arms."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from own_policies import Contrary, DOptimal, LeastAssigned

import equipoise as eq
from equipoise.experiment import observed_log
from equipoise.experiment.observed_log import read_observations
from equipoise.store import upgrade
from equipoise.store.schema import microseconds
from equipoise.testing.unit_contract import StoppedClock
from equipoise.unit_lifecycle import STATES

DAY = 86_400.0
DATA = Path(__file__).parent / "data"
RULES = {
    "wait": eq.WaitForReward(),
    "wait, held": eq.WaitForReward(window_seconds=DAY, hold=True),
    "default": eq.DefaultReward(value=0.25, window_seconds=DAY),
    "default, held": eq.DefaultReward(value=0.25, window_seconds=DAY, hold=True),
    "default, late ignored": eq.DefaultReward(value=0.25, window_seconds=DAY, late="ignore"),
    "drop": eq.DropUnit(window_seconds=DAY),
    "drop, late counts": eq.DropUnit(window_seconds=DAY, late="count"),
}


def observed(experiment, **settings):
    return experiment.store.read(
        lambda transaction: read_observations(transaction, experiment.number, experiment.name, **settings)
    )


def live(missing, clock, **settings):
    """An experiment in which all happens that can: arms come and go, rewards are late, corrected and withdrawn."""
    store = eq.open_store("memory:", clock=clock)
    settings = {"reward_weight": 0.7, "seed": 3, "floor": {"b": 0.05}, "control": "a", "control_share": 0.1} | settings
    experiment = eq.Experiment.create(store, "x", arms=["a", "b", "c"], missing=missing, warm_up=2, **settings)
    chance, told = random.Random(5), {}
    for number in range(400):
        unit = f"unit-{number}"
        experiment.ask(unit, {"age": chance.randrange(8, 12)} if number % 3 else None)
        if number == 100:
            experiment.add_arm("d", floor=0.02)
        if number == 200:
            experiment.retire_arm("c")
        if number == 250:
            experiment.pause_arm("a")
        if number == 300:
            experiment.resume_arm("a")
            experiment.change_dial(reward_weight=0.4)
        for other in chance.sample(range(number + 1), min(2, number + 1)):
            name = f"unit-{other}"
            if experiment.unit(name).state != "withdrawn" and name not in told and other % 5:
                told[name] = round(chance.random(), 2)
                experiment.tell(name, told[name])
        if number % 20 == 7:
            name = chance.choice(sorted(told))
            if experiment.unit(name).state != "withdrawn":
                experiment.correct(name, round(chance.random(), 2), "typing error")
        if number % 50 == 13:
            experiment.withdraw(f"unit-{chance.randrange(number + 1)}", "asked to")
        clock.advance(DAY / 60)
    return experiment


@pytest.mark.parametrize("missing", RULES.values(), ids=RULES)
@pytest.mark.parametrize("direction", ["maximise", "minimise"])
def test_the_log_says_of_every_decision_what_the_store_knows(missing, direction):
    clock = StoppedClock()
    experiment = live(missing, clock, direction=direction)
    found = observed(experiment, attributes=["age"], now=microseconds(clock()))
    status = experiment.status()
    assert found.arms == tuple(arm.arm for arm in status.arms) == ("a", "b", "c", "d")
    assert found.direction == direction and found.default == missing.default and found.hold == missing.hold
    for number in range(400):
        unit = experiment.unit(f"unit-{number}")
        assert found.arms[found.arm[number]] == unit.arm
        assert found.probability[number] == unit.probability
        assert found.at[number] == unit.at.timestamp()
        assert STATES[found.state[number]].name == unit.state
        if unit.counted:
            assert found.reward[number] == unit.reward
        else:
            wanted = missing.default if unit.state == "defaulted" else math.nan
            np.testing.assert_equal(found.reward[number], math.nan if wanted is None else wanted)
    for i, arm in enumerate(status.arms):
        mine = found.reward[found.counted & (found.arm == i)]
        assert mine.size == arm.rewarded and mine.mean() == pytest.approx(arm.mean, rel=1e-12)
    events = list(experiment.events())
    first = {event.decision: event for event in events if event.kind == "rewarded"}
    for number in range(400):
        event = first.get(number)
        np.testing.assert_equal(found.first_reward[number], math.nan if event is None else event.reward)
        np.testing.assert_equal(found.rewarded_at[number], math.nan if event is None else event.at.timestamp())
    assigned = [event for event in events if event.kind == "assigned"]
    ages = [event.details.get("attributes", {}).get("age", math.nan) for event in assigned]
    np.testing.assert_array_equal(found.attributes["age"].values, ages)


@pytest.mark.parametrize("missing", RULES.values(), ids=RULES)
def test_estimates_before_any_decision_are_those_of_the_rewards_counted_by_then(missing):
    """Replayed from the columns alone, as the analysis of a drift reads them; corrected rewards enter again."""
    experiment = live(missing, StoppedClock())
    found = observed(experiment)
    entered: dict[int, tuple[int, int]] = {}
    taken = 0
    for event in experiment.events():
        taken += event.kind == "assigned"
        if event.counted:
            entered[event.decision] = (event.number, taken)
    counted = np.flatnonzero(found.counted)
    assert found.counted_after[counted].tolist() == [entered[decision][1] for decision in counted]
    assert found.counted_order.tolist() == sorted(counted, key=lambda decision: entered[decision][0])
    assert (found.counted_after[~found.counted] == -1).all()


def test_probabilities_of_all_arms_are_those_that_decided():
    experiment = live(eq.WaitForReward(), StoppedClock())
    found = observed(experiment)
    chances = found.probabilities
    assert found.notes == () and chances.shape == (400, 4)
    assert (chances[np.arange(400), found.arm] == found.probability).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    # In play or not, and the share that is kept for an arm while it is.
    assert (chances[:101, 3] == 0).all() and (chances[101:, 3] >= 0.02).all()
    assert (chances[:201, 2] >= 0).all() and (chances[201:, 2] == 0).all()
    assert (chances[251:301, 0] == 0).all() and (chances[301:, 0] >= 0.1).all()
    assert (chances[:, 1] >= 0.05).all()
    # The first two rounds are blocks: an arm that had its unit waits for the others.
    first = found.arm[0]
    kept = np.array([0.1, 0.05, 0.0])
    np.testing.assert_allclose(chances[0, :3], kept + 0.85 / 3)
    assert chances[1, first] == kept[first]


def test_probabilities_are_those_of_each_decision_asked_of_the_policy(tmp_path):
    """Every prefix of the log, opened as an experiment of its own, is about to decide with these probabilities."""
    with eq.open_store(f"sqlite:///{tmp_path / 'x.db'}") as store:
        experiment = eq.Experiment.create(store, "x", arms=["a", "b", "c"], reward_weight=0.8, seed=2, floor=0.03)
        for number in range(60):
            unit = experiment.ask(f"unit-{number}").unit
            found = observed(experiment).probabilities
            if number % 4:
                experiment.tell(unit, number % 7)
            state = experiment.store.read(lambda t: observed_log.ObservedLog("x").read(t, experiment.number).state)
            ahead = state.decider.chances(state.stats)
            experiment.ask(f"another-{number}")
            assert (observed(experiment).probabilities[:-1] == found).all()
            assert (observed(experiment).probabilities[-1] == ahead).all()


OWN = {
    "python": LeastAssigned(patience=2),
    "solver": eq.ForcingBalance(reward_weight=0.7, objective=DOptimal(), tracking="sample"),
    "thompson": eq.ThompsonSampling(draws=20),
    "uniform": eq.Uniform(),
    "epsilon": eq.EpsilonGreedy(exploration=0.2),
}


@pytest.mark.parametrize("policy", OWN.values(), ids=OWN)
def test_probabilities_of_any_policy(policy):
    store = eq.open_store("memory:")
    experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=policy, seed=1, floor=0.1, warm_up=1)
    for number in range(40):
        unit = experiment.ask(f"unit-{number}").unit
        if number % 3:
            experiment.tell(unit, (number % 5) / 4)
        if number == 20:
            experiment.add_arm("c", floor=0.1)
    found = observed(experiment)
    assert found.notes == ()
    assert (found.probabilities[np.arange(40), found.arm] == found.probability).all()
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert (found.probabilities[:21, 2] == 0).all() and (found.probabilities[21:, 2] >= 0.1).all()


def test_a_policy_that_does_not_choose_by_its_probabilities_leaves_them_out():
    policy = Contrary(reward_weight=0.5, tracking="windowed")
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=policy, seed=1)
    for number in range(20):
        experiment.tell(experiment.ask(f"unit-{number}").unit, number % 2)
    found = observed(experiment)
    assert found.probabilities is None and len(found.probability) == 20
    assert found.notes == (
        "the probabilities of all arms are not known: Contrary.probabilities says otherwise than Contrary.choose",
    )


def filled(url, n_units=30):
    with eq.open_store(url) as store:
        experiment = eq.Experiment.create(store, "x", arms=["a", "b", "c"], reward_weight=0.6, seed=1)
        for number in range(n_units):
            unit = experiment.ask(f"unit-{number}", {"age": number, "class": "4b"}).unit
            if number % 3:
                experiment.tell(unit, number / 40)


def change(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET arm = (arm + 1) % 3 WHERE decision = 7",
        "UPDATE events SET probability = probability / 2 WHERE kind = 'assigned' AND decision = 7",
        "UPDATE events SET counted = 0 WHERE kind = 'rewarded' AND decision = 7",
        "UPDATE events SET reward = 100 WHERE kind = 'rewarded' AND decision = 1",
        "UPDATE events SET reward = 'much' WHERE kind = 'rewarded' AND decision = 1",
        "UPDATE events SET decision = NULL WHERE kind = 'rewarded' AND decision = 1",
        "UPDATE events SET decision = 99 WHERE kind = 'rewarded' AND decision = 1",
        "UPDATE events SET details = '{}' WHERE kind = 'created'",
        "DELETE FROM events WHERE decision = 7",
        "DELETE FROM events WHERE decision = 29",
        "DELETE FROM events WHERE number = 1",
        "UPDATE experiments SET n_decisions = 29",
    ],
)
def test_a_log_that_does_not_replay_is_refused(tmp_path, statement):
    path = tmp_path / "x.db"
    filled(f"sqlite:///{path}")
    change(path, statement)
    with eq.open_store(f"sqlite:///{path}") as store:
        number = store.read(lambda transaction: transaction.find("x"))
        with pytest.raises(eq.errors.VerificationFailed):
            store.read(lambda transaction: read_observations(transaction, number, "x"))


def test_decisions_of_an_unknown_version_are_read_without_the_probabilities_of_all_arms(tmp_path):
    path = tmp_path / "x.db"
    filled(f"sqlite:///{path}")
    with eq.open_store(f"sqlite:///{path}") as store:
        before = observed(eq.Experiment.open(store, "x"))
    change(
        path, "UPDATE events SET details = replace(details, '\"kernels\": ', '\"kernels\": 9') WHERE kind = 'created'"
    )
    with eq.open_store(f"sqlite:///{path}") as store:
        found = observed(eq.Experiment.open(store, "x"), attributes=["age"])
    assert found.probabilities is None
    assert [note for note in found.notes if "the probabilities of all arms are not known: the decisions of" in note]
    np.testing.assert_array_equal(found.reward, before.reward)
    np.testing.assert_array_equal(found.probability, before.probability)
    assert found.attributes["age"].values.tolist() == list(range(30))


def test_logs_of_older_versions_are_read_with_all_probabilities(tmp_path):
    for file in DATA.glob("*.db"):
        path = tmp_path / file.name
        shutil.copy(file, path)
        upgrade(f"sqlite:///{path}")
        with eq.open_store(f"sqlite:///{path}") as store:
            for summary in eq.Experiment.list(store):
                experiment = eq.Experiment.open(store, summary.name)
                found = observed(experiment, attributes=None)
                assert found.n_decisions == summary.n_assigned and found.counted.sum() == summary.n_rewarded
                assert found.probabilities is not None


def test_erased_units_keep_arm_and_reward():
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    for number in range(6):
        experiment.tell(experiment.ask(f"unit-{number}", {"age": number}).unit, number)
    before = observed(experiment, attributes=["age"])
    experiment.finish()
    experiment.erase("unit-2")
    after = observed(experiment, attributes=["age"])
    np.testing.assert_array_equal(after.reward, before.reward)
    np.testing.assert_array_equal(after.arm, before.arm)
    np.testing.assert_array_equal(after.attributes["age"].values, [0, 1, np.nan, 3, 4, 5])


def test_attributes_are_read_by_name_or_all_of_them():
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    people = [{"age": 9, "class": "4b", "odd": 1}, {"class": "4a", "odd": "x"}, None, {"late": True, "age": 10}]
    for number, attributes in enumerate(people):
        experiment.ask(f"unit-{number}", attributes)
    assert observed(experiment).attributes == {}
    named = observed(experiment, attributes=["class", "age", "class"])
    assert list(named.attributes) == ["class", "age"]
    np.testing.assert_array_equal(named.attributes["age"].values, [9, np.nan, np.nan, 10])
    every = observed(experiment, attributes=None)
    assert sorted(every.attributes) == ["age", "class", "late"]
    assert every.attributes["late"].codes.tolist() == [-1, -1, -1, 0]
    mixed = "attribute 'odd' must be of one type; got the number 1 (unit 'unit-0') and the text 'x' (unit 'unit-1')"
    assert every.notes == (mixed,)
    with pytest.raises(eq.errors.InvalidInput) as failed:
        observed(experiment, attributes=["odd"])
    assert failed.value.message == mixed
    with pytest.raises(eq.errors.InvalidInput, match="no unit of experiment 'x' has an attribute 'size'"):
        observed(experiment, attributes=["size"])


def test_an_experiment_before_its_first_unit_has_no_decisions():
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    found = observed(experiment, attributes=["age"])
    assert found.n_decisions == 0 and found.probabilities.shape == (0, 2) and found.attributes["age"].values.size == 0


def test_rewards_above_the_cap_are_read_as_they_count():
    settings = {"policy": eq.Uniform(), "seed": 1, "reward_range": (0, None), "reward_cap": 10}
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], **settings)
    experiment.tell_many(list(zip([one.unit for one in experiment.ask_many(["u", "v"])], [400, 3], strict=True)))
    found = observed(experiment)
    assert found.reward.tolist() == found.first_reward.tolist() == [10, 3] and found.reward_range == (0, 10)
    assert [arm.mean for arm in experiment.status().arms] == [10, 3]


def test_too_many_probabilities_are_left_out(monkeypatch):
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    experiment.ask_many(["u", "v", "w"])
    monkeypatch.setattr(observed_log, "LARGEST_TABLE", 5)
    found = observed(experiment)
    assert found.probabilities is None and found.probability.tolist() == [1.0] * 3
    assert found.notes[0].endswith("3 decisions among 2 arms are too many to keep in memory")


def test_units_past_their_window_are_overdue_before_anyone_settles_them():
    clock = StoppedClock()
    store = eq.open_store("memory:", clock=clock)
    rule = eq.WaitForReward(window_seconds=DAY)
    experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1, missing=rule)
    experiment.ask_many(["u", "v"])
    clock.advance(2 * DAY)
    names = [STATES[state].name for state in observed(experiment, now=microseconds(clock())).state]
    assert names == ["overdue", "overdue"] == [experiment.unit(unit).state for unit in "uv"]
    assert [STATES[state].name for state in observed(experiment).state] == ["waiting", "waiting"]


def test_postgresql_has_the_same_observations(postgresql_url):
    clock = StoppedClock()
    here = live(RULES["default"], clock)
    with eq.open_store(postgresql_url) as store:
        there = here.copy_to(store)
        wanted, found = (observed(one, attributes=None) for one in (here, there))
        for name in ("arm", "reward", "probabilities", "at", "rewarded_at", "counted_after", "counted_order", "state"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
        assert found.attributes["age"].values.tolist() == pytest.approx(wanted.attributes["age"].values, nan_ok=True)
