"""Statistics are those of one pass over the rewards that count, in any order, corrected and merged at will."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

rewards = st.floats(-1e6, 1e6) | st.integers(-3, 3).map(float) | st.floats(1e9, 1e9 + 4)
streams = st.lists(rewards, min_size=0, max_size=40)


def filled(values):
    stats = eq.ArmStats(1)
    for value in values:
        stats.update(0, value)
    return stats


def exact_moments(values):
    """Mean and standard deviation in rational arithmetic."""
    numbers = [Fraction(v) for v in values]
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / (len(numbers) - 1)
    return float(mean), math.sqrt(variance)


def assert_same(stats, values):
    """Compare with exact moments."""
    assert stats.pulls[0] == len(values)
    if not values:
        assert math.isnan(stats.mean[0]) and math.isnan(stats.std[0])
    elif len(values) == 1:
        assert stats.mean[0] == values[0] and math.isnan(stats.std[0])
    else:
        mean, std = exact_moments(values)
        size = max(map(abs, values))
        # The sums lose 2^-104 of their size per addition; a spread below 2^-49 of the rewards counts as none.
        assert stats.mean[0] == pytest.approx(mean, rel=1e-15, abs=1e-25 * size)
        assert stats.std[0] == pytest.approx(std, rel=1e-9, abs=1e-14 * size)


@given(streams)
def test_one_at_a_time_gives_the_exact_moments(values):
    assert_same(filled(values), values)


@given(streams, st.randoms())
def test_the_order_of_rewards_makes_no_difference(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    one, other = filled(values), filled(shuffled)
    assert np.array_equal(one.mean, other.mean, equal_nan=True)
    assert other.std[0] == pytest.approx(one.std[0], rel=1e-12, abs=1e-20, nan_ok=True)


@given(streams, streams)
def test_merge_equals_one_pass(first, second):
    merged = filled(first).merge(filled(second))
    assert_same(merged, first + second)


@given(streams.filter(len), rewards, st.data())
def test_replacing_a_reward_leaves_no_trace_of_it(values, new, data):
    place = data.draw(st.integers(0, len(values) - 1))
    stats = filled(values)
    stats.replace(0, values[place], new)
    assert_same(stats, [*values[:place], *values[place + 1 :], new])


@given(streams.filter(len), st.data())
def test_removing_a_reward_undoes_it(values, data):
    place = data.draw(st.integers(0, len(values) - 1))
    stats = filled(values)
    stats.remove(0, values[place])
    assert_same(stats, [*values[:place], *values[place + 1 :]])


def test_a_typing_error_a_million_times_too_large_is_undone_exactly():
    stats = filled([1.25, 2.5, 1e12])
    stats.replace(0, 1e12, 3.75)
    assert (stats.mean[0], stats.std[0]) == (2.5, 1.25)


@pytest.mark.parametrize(("values", "wrong"), [([1.0, 1.1, 1.2], 50.0), ([5.0], 3.0), ([0.0, 0.0], 1.0)])
def test_a_reward_that_cannot_have_been_told_is_not_removed(values, wrong):
    stats = filled(values)
    before = stats.copy()
    for change in (lambda: stats.remove(0, wrong), lambda: stats.replace(0, wrong, 1.0)):
        with pytest.raises(eq.InvalidInput, match="cannot be among the rewards of arm 0"):
            change()
    assert stats == before


def test_small_spread_around_a_large_mean():
    rng = np.random.default_rng(0)
    values = (1e9 + rng.normal(size=2000)).tolist()
    stats = filled(values)
    mean, std = exact_moments(values)
    assert stats.mean[0] == mean
    assert stats.std[0] == pytest.approx(std, rel=1e-12)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, -7e-9, 0.0])
@pytest.mark.parametrize("count", [2, 3, 1000])
def test_equal_rewards_have_exactly_no_spread(value, count):
    stats = filled([value] * count)
    assert (stats.mean[0], stats.std[0]) == (value, 0.0)


def test_assigned_and_rewarded_are_counted_apart():
    stats = eq.ArmStats(2)
    stats.assign(1)
    stats.assign(1)
    stats.update(1, 0.5)
    assert stats.assigned.tolist() == [0, 2]
    assert stats.pulls.tolist() == [0, 1]
    assert stats.pending.tolist() == [0, 1]
    assert stats.n_assigned == 2


def test_merge_and_copy_keep_the_assignments():
    stats = eq.ArmStats(2)
    for arm in (0, 1, 1):
        stats.assign(arm)
    other = stats.copy()
    other.assign(0)
    assert (other.n_assigned, stats.n_assigned) == (4, 3)
    merged = stats.merge(other)
    assert merged.assigned.tolist() == [3, 4]
    assert merged.n_assigned == 7


@given(streams)
def test_plain_data_round_trip(values):
    stats = filled(values)
    for _ in range(len(values) + 2):
        stats.assign(0)
    twin = eq.ArmStats.from_dict(json.loads(json.dumps(stats.to_dict(), allow_nan=False)))
    assert twin == stats
    assert np.array_equal(twin.std, stats.std, equal_nan=True)
    assert twin.n_assigned == stats.n_assigned


def test_published_figures_become_statistics():
    stats = eq.ArmStats.from_summary([10, 1, 0], [2.0, 3.0, 0.0], [0.5, 0.0, 0.0])
    assert stats.assigned.tolist() == [10, 1, 0]
    assert stats.mean[:2].tolist() == [2.0, 3.0]
    assert stats.std[0] == pytest.approx(0.5, rel=1e-15)
    assert math.isnan(stats.std[1]) and math.isnan(stats.mean[2])


def test_permuted_and_copy_are_independent():
    stats = eq.ArmStats.from_summary([5, 6, 7], [1, 2, 3], [1, 1, 1])
    moved = stats.permuted([2, 0, 1])
    assert moved.pulls.tolist() == [7, 5, 6]
    moved.update(0, 100.0)
    assert stats == eq.ArmStats.from_summary([5, 6, 7], [1, 2, 3], [1, 1, 1])


def test_shows_what_it_knows():
    assert repr(filled([1.0, 3.0])) == "ArmStats(assigned=[0], pulls=[2], mean=[2.0], std=[1.4142135623730951])"
    assert filled([1.0]) != "something else"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.update(0, float("nan")), "reward must be finite and at most 1e.100 in size; got nan"),
        (lambda s: s.update(0, float("inf")), "reward must be finite"),
        (lambda s: s.update(0, 1e101), "reward must be finite and at most"),
        (lambda s: s.update(0, "three"), "reward must be a number; got 'three'"),
        (lambda s: s.update(0, None), "reward must be a number; got None"),
        (lambda s: s.update(0, "0.5"), "reward must be a number; got '0.5'"),
        (lambda s: s.update(0, 10**400), "reward must be a number"),
        (lambda s: s.merge(3), "only statistics can be merged; got 3"),
        (lambda s: s.update(2, 1.0), "arm must be between 0 and 1; got 2"),
        (lambda s: s.update(-1, 1.0), "arm must be"),
        (lambda s: s.update(0.5, 1.0), "arm must be a whole number; got 0.5"),
        (lambda s: s.assign(7), "arm must be between 0 and 1; got 7"),
        (lambda s: s.remove(1, 1.0), "arm 1 has no rewards to remove"),
        (lambda s: s.replace(0, 1.0, float("nan")), "reward must be finite"),
        (lambda s: s.replace(1, 1.0, 2.0), "arm 1 has no rewards"),
        (lambda s: s.merge(eq.ArmStats(3)), "same arms; got 2 and 3"),
        (lambda s: s.permuted([0, 0]), "order must hold each of 0..1 once"),
    ],
)
def test_bad_input_changes_nothing(call, message):
    stats = eq.ArmStats(2)
    stats.update(0, 1.0)
    before = stats.copy()
    with pytest.raises(eq.InvalidInput, match=message):
        call(stats)
    assert stats == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "statistics must have assigned, pulls and sums"),
        (None, "statistics must have assigned, pulls and sums"),
        ({"assigned": [1], "pulls": [1], "sums": [[1]]}, r"sums \(4, n_arms\)"),
        ({"assigned": [1, 2], "pulls": [1], "sums": [[0.0]] * 4}, "must have shape"),
        ({"assigned": [-1], "pulls": [1], "sums": [[0.0]] * 4}, "statistics must have"),
        ({"assigned": [1.7], "pulls": [1], "sums": [[0.0]] * 4}, "statistics must have"),
        ({"assigned": ["1"], "pulls": [1], "sums": [[0.0]] * 4}, "statistics must have"),
        ({"assigned": [10**30], "pulls": [1], "sums": [[0.0]] * 4}, "statistics must have"),
        ({"assigned": [2], "pulls": [2], "sums": [[1e300]] * 4}, "sums must be finite"),
        ({"assigned": [2], "pulls": [2], "sums": [[1.0], [0.0], [-1.0], [0.0]]}, "sums must be those of as many"),
        ({"assigned": [2], "pulls": [0], "sums": [[1.0], [0.0], [1.0], [0.0]]}, "sums must be those of as many"),
        ({"assigned": [1], "pulls": [1], "sums": [[math.nan]] * 4}, "sums must be finite"),
        ({"assigned": ["x"], "pulls": [1], "sums": [[0.0]] * 4}, "statistics must have"),
    ],
)
def test_bad_plain_data_is_refused(data, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.ArmStats.from_dict(data)


@pytest.mark.parametrize(
    ("pulls", "mean", "message"),
    [
        ([1.5, 2], [1, 2], "whole numbers"),
        ([1], [1, 2], "pulls must have 2 entries"),
        (["a", 2], [1, 2], "pulls must be one number per arm"),
        ([math.nan, 2], [1, 2], "pulls must be finite"),
        ([1, 2], [1, 1e200], "at most 1e.100"),
    ],
)
def test_bad_published_figures_are_refused(pulls, mean, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.ArmStats.from_summary(pulls, mean, [1, 1])


def test_arms_must_be_a_positive_number():
    with pytest.raises(eq.InvalidInput, match="n_arms must be at least 1; got 0"):
        eq.ArmStats(0)
