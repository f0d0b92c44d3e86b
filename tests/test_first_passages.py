"""First passages are read off paths whose passages are known exactly, and `provisional` is that of `status`."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_paths import paths_of

import equipoise as eq
from equipoise.experiment.provisional import provisional_reasons
from equipoise.planner.figures import mean_of, quantile, quantile_error, range_of, share_of
from equipoise.planner.first_passages import (
    between,
    decided_passages,
    look_times,
    precision_passages,
    provisional,
    widest,
)
from equipoise.planner.question import SECONDS_A_DAY


def passages(paths, goals, **given):
    never = np.zeros(paths.n_may_be_best.shape, bool)
    return precision_passages(paths, goals, given.pop("provisional", never), look_times(paths), **given)


def test_a_width_that_falls_as_one_over_the_root_of_people_is_passed_exactly_when_it_is_reached():
    paths = paths_of([[0.5, 0.5], [0.2, 0.8]], [0.3, 0.5], noise=2.0, looks=[3, 7, 20, 31, 40])
    goals = np.array([0.3, 0.2, 0.11, 0.08])
    found = passages(paths, goals)
    for way, share in enumerate((0.5, 0.2)):
        days = (2.0 / goals) ** 2 / share / 100.0
        assert found.seconds[:, way, 0] / SECONDS_A_DAY == pytest.approx(np.where(days <= 40, days, np.inf))
        assert found.people[:, way, 0] == pytest.approx(np.where(days <= 40, 100 * days, np.inf))


def test_a_goal_that_is_never_reached_takes_for_ever():
    found = passages(paths_of([[0.5, 0.5]], [0.3, 0.5]), [1e-6])
    assert not found.is_met.any()
    assert np.isinf(found.people).all()


def test_rewards_that_come_late_delay_the_passage_but_not_the_people_before_it():
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], noise=2.0, delay_days=5)
    found = passages(paths, [0.1])
    days = (2.0 / 0.1) ** 2 / 0.5 / 100.0 + 5
    assert found.seconds[0, 0, 0] / SECONDS_A_DAY == pytest.approx(days, abs=1e-9)
    assert found.people[0, 0, 0] == pytest.approx(100 * days)


def test_the_last_look_is_when_the_last_reward_comes():
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], noise=2.0, delay_days=5)
    reached = 2.0 / math.sqrt(0.5 * 4000)  # by all rewards together
    found = passages(paths, [1.0001 * reached, 0.9999 * reached])
    assert 44.9 < found.seconds[0, 0, 0] / SECONDS_A_DAY <= 45.0
    assert found.people[0, 0, 0] == 4000
    assert math.isinf(found.seconds[1, 0, 0])


def test_precision_of_differences_reads_the_widest_difference():
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], noise=2.0)
    arms, pairs = passages(paths, [0.1]), passages(paths, [0.15], of="differences")
    assert pairs.seconds == pytest.approx(arms.seconds)
    assert widest(paths, "differences") == pytest.approx(1.5 * widest(paths))


def test_no_goal_is_met_while_numbers_are_provisional():
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], noise=2.0, looks=range(1, 41))
    until = np.broadcast_to(np.arange(41) < 20, (1, 40, 41))  # before day 21
    found = passages(paths, [0.2, 0.1], provisional=until)  # reached on days 2 and 8
    assert found.look[:, 0, 0].tolist() == [20, 20]
    assert found.seconds[:, 0, 0] / SECONDS_A_DAY == pytest.approx([20.5, 20.5])


def test_a_finer_precision_is_never_reached_earlier():
    paths = paths_of([[0.3, 0.7]], [0.3, 0.5], noise=np.linspace(1, 3, 40))
    found = passages(paths, np.linspace(0.3, 0.03, 50))
    assert (np.diff(np.where(found.is_met, found.seconds, 1e300), axis=0) >= 0).all()


def test_it_is_decided_between_the_look_before_and_the_look_at_which_one_arm_is_left():
    since = np.full((1, 40), 12.0)
    since[0, 1] = np.inf
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], best_from_day=since)
    never = np.zeros(paths.n_may_be_best.shape, bool)
    found = decided_passages(paths, 0.0, never, look_times(paths))
    assert found.seconds[0, 0] / SECONDS_A_DAY == 11.5
    assert math.isinf(found.seconds[0, 1])
    lost = np.full(paths.n_may_be_best.shape, 0.2)
    lost[..., 5:] = 0.01
    within = dataclasses.replace(paths, most_lost=lost)
    assert decided_passages(within, 0.02, never, look_times(within)).seconds[0, 1] / SECONDS_A_DAY == 5.5


def test_values_between_looks_are_on_the_line_and_start_at_zero():
    values = np.array([[[10.0, 30.0, 60.0]]])
    for look, part, wanted in ((0, 0.5, 5.0), (1, 0.25, 15.0), (2, 1.0, 60.0), (3, 0.0, 60.0)):
        assert between(values, np.array([[look]]), np.array([[part]])) == wanted


@settings(max_examples=60, deadline=None)
@given(data=st.data(), holds=st.booleans(), bounded=st.sampled_from([None, (0.0, 1.0), (0.0, None)]))
def test_provisional_is_what_status_says(data, holds, bounded):
    """The records of `status` are made from the same numbers, and `experiment.provisional` judges them."""
    missing = eq.DropUnit(window_seconds=60, hold=holds)
    experiment = eq.Experiment.create(
        "memory:", "exam", arms=["a", "b"], seed=1, missing=missing, reward_range=bounded, policy=eq.Uniform()
    )
    status, configuration = experiment.status(), experiment.configuration
    counts = st.integers(0, 60)
    paths = paths_of([[0.5, 0.5]], [0.3, 0.5], n_replications=1, days=1)
    values = {name: getattr(paths, name).copy() for name in ("assigned", "counted", "open", "held", "missing")}
    numbers = {name: getattr(paths, name).copy() for name in ("estimate", "spread", "low", "high")}
    arms = []
    for arm in range(2):
        counted, n_open, lost = data.draw(counts), data.draw(counts), data.draw(st.integers(0, 12))
        held = data.draw(counts) if holds else 0
        mean = data.draw(st.none() | st.floats(0, 1)) if counted else None
        width = data.draw(st.none() | st.floats(0.01, 1.0)) if mean is not None else None
        std = data.draw(st.none() | st.floats(0, 1))
        assigned = counted + n_open + lost + held
        at = (0, 0, 0, arm)
        for name, value in zip(values, (assigned, counted, n_open, held, lost), strict=True):
            values[name][at] = value
        numbers["estimate"][at], numbers["spread"][at] = (math.nan if one is None else one for one in (mean, std))
        numbers["low"][at] = math.nan if width is None else mean - width
        numbers["high"][at] = math.nan if width is None else mean + width
        change = {"assigned": assigned, "rewarded": counted, "pending": n_open + held, "held": held, "dropped": lost}
        arms.append(
            dataclasses.replace(
                status.arms[arm], **change, mean=mean, std=std, half_width=width, overdue=0, withdrawn=0
            )
        )
    status = dataclasses.replace(status, arms=tuple(arms))
    paths = dataclasses.replace(paths, **values, **numbers)
    found = provisional(paths, holds=holds, reward_range=configuration.counted_range)
    assert bool(found[0, 0, 0]) == bool(provisional_reasons(status, configuration))


def test_quantiles_count_what_never_happens():
    values = np.array([5.0, 3.0, np.inf, 4.0, np.inf, 1.0, 2.0, np.inf, 6.0])
    assert quantile(values, 0.5) == 5.0
    assert quantile(values, 0.6) == 6.0
    assert quantile(values, 0.66) == 6.0  # two thirds got there
    assert math.isinf(quantile(values, 0.67))
    assert range_of(values).low == 1.0
    assert math.isinf(quantile_error(values, 0.9))


def test_a_further_experiment_lies_below_a_quantile_with_its_probability():
    rng = np.random.default_rng(1)
    below = [rng.normal() <= quantile(rng.normal(size=19), 0.8) for _ in range(4000)]
    assert np.mean(below) == pytest.approx(0.8, abs=3 * math.sqrt(0.16 / 4000))


def test_standard_errors_of_quantiles_are_those_of_repetitions():
    rng = np.random.default_rng(2)
    samples = rng.exponential(size=(600, 400))
    for p in (0.1, 0.5, 0.9):
        spread = np.std([quantile(one, p) for one in samples])
        assert np.mean([quantile_error(one, p) for one in samples]) == pytest.approx(spread, rel=0.1)


def test_averages_and_shares_have_standard_errors():
    assert mean_of(np.array([1.0, 3.0, np.nan])) == (2.0, 1.0)
    assert share_of(np.array([True] * 50 + [False] * 50)).error == pytest.approx(0.05, rel=0.03)
    assert share_of(np.array([True] * 100)).error > 0
