"""Missing rewards: whether arms differ in silence, the worst case, tipping points, and corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.nonresponse import (
    check_responses,
    corrections,
    missing_rewards,
    tipping_point,
    with_rewards,
    worst_cases,
)
from equipoise.analysis.observations import Observations
from equipoise.experiment.observed_log import read_observations
from equipoise.stats import ArmStats
from equipoise.store.schema import microseconds
from equipoise.testing.unit_contract import StoppedClock
from equipoise.unit_lifecycle import STATES

DAY = 86_400.0


def stats_of(rewards):
    stats = ArmStats(len(rewards))
    for arm, values in enumerate(rewards):
        for value in values:
            stats.update(arm, value)
    return stats


def observed(experiment, clock):
    now = microseconds(clock())
    return experiment.store.read(lambda t: read_observations(t, experiment.number, experiment.name, now=now))


# --- the worst case ---------------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0]), max_size=6), min_size=1, max_size=3),
    st.lists(st.integers(0, 70), min_size=3, max_size=3),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_counting_a_reward_many_times_at_once_is_counting_it_that_often(rewards, count, reward):
    count = np.array(count[: len(rewards)])
    found = with_rewards(stats_of(rewards), count, reward)
    wanted = stats_of([[*values, *[reward] * times] for values, times in zip(rewards, count, strict=True)])
    assert found.pulls.tolist() == wanted.pulls.tolist()
    assert [found.exact_sums(arm) for arm in range(len(rewards))] == [
        wanted.exact_sums(arm) for arm in range(len(rewards))
    ]
    np.testing.assert_array_equal(found.mean, wanted.mean)


def test_a_million_missing_rewards_are_counted_at_once():
    found = with_rewards(stats_of([[0.25] * 3]), np.array([1_000_003]), 1.0)
    assert found.pulls[0] == 1_000_006 and found.mean[0] == pytest.approx((1_000_003 + 0.75) / 1_000_006, rel=1e-15)


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_the_worst_case_contains_the_interval_of_all_rewards_whatever_was_missing(seen, missing):
    [case] = worst_cases(stats_of([seen]), ("a",), [len(missing)], reward_range=(0, 1), failure_probability=0.05)
    everything = Evidence.of(stats_of([[*seen, *missing]]), reward_range=(0, 1))
    [low], [high] = everything.intervals(0.05)
    assert case.low <= low + 1e-9 and high <= case.high + 1e-9
    assert case.low_mean <= everything.mean[0] + 1e-12 and everything.mean[0] <= case.high_mean + 1e-12
    total, n = sum(seen), len(seen) + len(missing)
    assert case.low_mean == pytest.approx(total / n) and case.high_mean == pytest.approx((total + len(missing)) / n)


def test_without_a_range_the_worst_case_of_an_arm_with_missing_rewards_is_open():
    rng = np.random.default_rng(1)
    stats = stats_of([rng.normal(size=100), rng.normal(size=100)])
    first, second = worst_cases(stats, ("a", "b"), [1, 0], reward_range=(-9, None), failure_probability=0.05)
    assert math.isfinite(first.low) and first.high == first.high_mean == math.inf
    assert second.low_mean == second.high_mean == pytest.approx(stats.mean[1])
    assert second.low < stats.mean[1] < second.high < math.inf


def test_where_small_rewards_are_good_the_worst_case_is_the_same():
    values = [[0.2, 0.4, 0.9] * 10, [0.1] * 5]
    plain = worst_cases(stats_of(values), ("a", "b"), [4, 2], reward_range=(0, 1), failure_probability=0.05)
    negative = stats_of([[-value for value in arm] for arm in values])
    mirrored = worst_cases(negative, ("a", "b"), [4, 2], reward_range=(0, 1), failure_probability=0.05, sign=-1.0)
    for one, other in zip(plain, mirrored, strict=True):
        for name in ("low", "high", "low_mean", "high_mean"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


@given(st.integers(1, 50), st.integers(1, 50), st.floats(0, 1), st.floats(0, 1))
def test_at_the_tipping_point_the_arms_are_equal(counted, missing, mean, other_mean):
    point = tipping_point(counted + missing, counted * mean, missing, other_mean)
    assert (counted * mean + missing * point) / (counted + missing) == pytest.approx(other_mean, abs=1e-9)


def test_a_tipping_point_needs_missing_rewards():
    with pytest.raises(eq.errors.InvalidInput, match="n_missing must be from 1 to n_units; got 0"):
        tipping_point(10, 5.0, 0, 0.5)


# --- silence ----------------------------------------------------------------------------------------------------------


def answers(rng, n, rates):
    """Each unit is assigned at random and answers with its arm's probability."""
    arm = rng.integers(len(rates), size=n)
    said = rng.random(n) < np.array(rates)[arm]
    return Observations(arms=tuple("abc"[: len(rates)]), arm=arm, reward=np.where(said, rng.random(n), np.nan))


def test_arms_that_are_equally_silent_are_left_in_peace():
    rng = np.random.default_rng(2)
    low = [check_responses(answers(rng, 300, [0.7, 0.7, 0.7])).p_value <= 0.05 for _ in range(300)]
    assert np.mean(low) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)


def test_an_arm_that_keeps_people_silent_is_found():
    rng = np.random.default_rng(3)
    found = [check_responses(answers(rng, 2400, [0.8, 0.65, 0.8])) for _ in range(50)]
    assert np.mean([one.p_value < 0.01 and one.least == "b" for one in found]) > 0.95
    assert found[0].rate[1] == found[0].answered[1] / found[0].due[1] == pytest.approx(0.65, abs=0.1)


RULES = [
    eq.WaitForReward(window_seconds=DAY),
    eq.WaitForReward(window_seconds=DAY, hold=True),
    eq.DefaultReward(value=0, window_seconds=DAY),
    eq.DefaultReward(value=0, window_seconds=DAY, hold=True),
    eq.DropUnit(window_seconds=DAY),
    eq.DropUnit(window_seconds=DAY, hold=True),
]


@pytest.mark.parametrize("missing", RULES, ids=repr)
def test_of_a_live_experiment_units_past_their_window_count(missing):
    """Half of b's units are silent, whatever the rule makes of that."""
    clock = StoppedClock()
    store = eq.open_store("memory:", clock=clock)
    policy = eq.Fixed(allocation=[0.5, 0.5], tracking="sample")
    experiment = eq.Experiment.create(
        store, "x", arms=["a", "b"], policy=policy, seed=1, missing=missing, reward_range=(0, 1)
    )
    rng = np.random.default_rng(4)
    arm_of = {}
    for number in range(500):
        arm_of[f"unit-{number}"] = experiment.ask(f"unit-{number}").arm
        clock.advance(60)
        if arm_of[f"unit-{number}"] == "a" or rng.random() < 0.5:
            experiment.tell(f"unit-{number}", float(rng.random()))
    clock.advance(DAY - 100 * 60)  # the last hundred are within their window
    late = next(
        name
        for name in arm_of
        if experiment.unit(name).reward is None
        and microseconds(clock()) > experiment.unit(name).at.timestamp() * 1e6 + DAY * 1e6
    )
    experiment.tell(late, 1.0)  # too late to be an answer
    experiment.withdraw("unit-3", "asked to")
    found = observed(experiment, clock)
    responses = check_responses(found)
    due = found.arm[:400]
    assert sum(responses.due) in (400, 401)
    assert responses.rate[0] == 1.0 and responses.rate[1] == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(due.sum()))
    assert responses.least == "b" and responses.p_value < 1e-6
    # What is missing, by the states that status shows.
    names = np.array([STATES[state].name for state in found.state])
    open_states = ("withdrawn", "dropped", "overdue") if missing.default is None else ("withdrawn", "dropped")
    wanted = np.isin(names, open_states if missing.hold else (*open_states, "waiting"))
    assert (missing_rewards(found) == wanted).all()
    assert not (missing_rewards(found) & found.counted).any()


def test_without_a_window_no_unit_is_due():
    experiment = eq.Experiment.create("memory:", "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    experiment.ask_many(["u", "v"])
    found = experiment.store.read(lambda t: read_observations(t, experiment.number, "x"))
    assert check_responses(found) is None
    assert missing_rewards(found).tolist() == [True, True]


# --- corrections ------------------------------------------------------------------------------------------------------


def test_corrections_are_counted_and_weighed():
    rule = eq.DefaultReward(value=0.5, window_seconds=DAY, late="ignore")
    clock = StoppedClock()
    store = eq.open_store("memory:", clock=clock)
    experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1, missing=rule)
    units = [f"unit-{number}" for number in range(12)]
    arms = [one.arm for one in experiment.ask_many(units)]
    experiment.tell_many(dict.fromkeys(units[:8], 1.0))
    experiment.correct(units[0], 0.0, "misread")
    experiment.correct(units[1], 0.2, "misread")
    experiment.correct(units[1], 0.4, "misread again")
    experiment.correct(units[2], 0.0, "misread")
    experiment.correct(units[2], 1.0, "it was right")  # back to what it was
    experiment.withdraw(units[3], "asked to")
    clock.advance(2 * DAY)
    experiment.settle()
    experiment.tell(units[9], 0.9)  # too late: the default counts
    found = corrections(observed(experiment, clock))
    values = [0.0, 0.4, 1.0, None, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    first = [1.0, 1.0, 1.0, None, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    for i, arm in enumerate(("a", "b")):
        mine = [k for k in range(12) if arms[k] == arm and values[k] is not None]
        assert found.corrected[i] == sum(values[k] != first[k] for k in mine)
        assert found.mean[i] == pytest.approx(np.mean([values[k] for k in mine]))
        assert found.first_mean[i] == pytest.approx(np.mean([first[k] for k in mine]))
    assert sum(found.corrected) == 2
    assert found.difference_changed("a", "b") == pytest.approx(found.changed[0] - found.changed[1])


def test_data_frames_know_no_corrections():
    assert corrections(Observations(arms=("a", "b"), arm=[0, 1], reward=[1.0, 2.0])) is None
