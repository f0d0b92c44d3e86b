"""Moments of an arm's rewards are the nearest doubles to the exact values, wherever the rewards lie."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq

rewards = (
    st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-60)
    | st.integers(-3, 3).map(float)
    | st.floats(1e9, 1e9 + 4)
    | st.floats(1e60, 1e70)
)
streams = st.lists(rewards, min_size=1, max_size=30)


def filled(values):
    stats = eq.ArmStats(1)
    for value in values:
        stats.update(0, value)
    return stats


def average(values):
    return sum(values) / len(values)


def nearest(number):
    return number.numerator / number.denominator


@given(streams)
def test_central_moments_are_exact(values):
    numbers = [Fraction(value) for value in values]
    mean = average(numbers)
    expected = [mean, *(average([(x - mean) ** power for x in numbers]) for power in (2, 3, 4))]
    assert filled(values).central_moments(0) == tuple(map(nearest, expected))


@given(streams, rewards, rewards)
def test_moments_within_a_range_are_exact(values, low, high):
    if low == high:
        return
    u = [(Fraction(value) - Fraction(low)) / (Fraction(high) - Fraction(low)) for value in values]
    expected = [[average([x**power for x in part]) for power in range(1, 5)] for part in (u, [1 - x for x in u])]
    stats = filled(values)
    assert stats.moments_within(0, low, high) == tuple(tuple(map(nearest, part)) for part in expected)
    assert stats.scaled_moments(0, zero=low, one=high) == stats.moments_within(0, low, high)[0]


def test_nothing_cancels_in_a_narrow_range_far_from_zero():
    rng = np.random.default_rng(0)
    u = np.round(rng.beta(2, 5, size=500) * 2**20) / 2**20
    near, far = filled(u.tolist()), filled((1e9 + u).tolist())
    assert far.moments_within(0, 1e9, 1e9 + 1) == near.moments_within(0, 0.0, 1.0)
    assert far.central_moments(0)[1:] == near.central_moments(0)[1:]


def test_skewness_and_kurtosis_are_those_of_scipy():
    scipy_stats = pytest.importorskip("scipy.stats")
    values = np.random.default_rng(1).lognormal(size=1000)
    mean, variance, third, fourth = filled(values.tolist()).central_moments(0)
    assert mean == pytest.approx(values.mean(), rel=1e-14)
    assert variance == pytest.approx(values.var(), rel=1e-13)
    assert third / variance**1.5 == pytest.approx(scipy_stats.skew(values), rel=1e-12)
    assert fourth / variance**2 == pytest.approx(scipy_stats.kurtosis(values, fisher=False), rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.sampled_from([1e18, -1e18, 1e70, 1e100, 1e-100]))
def test_a_mistake_leaves_no_trace_in_any_moment(values, mistake):
    clean, stats = filled(values), filled([mistake, *values])
    stats.remove(0, mistake)
    for one in (clean, stats):
        assert np.array_equal(one.central_moments(0), clean.central_moments(0), equal_nan=True)
        assert np.array_equal(one.moments_within(0, 0, 1), clean.moments_within(0, 0, 1), equal_nan=True)


def test_what_is_not_known_is_nan():
    stats = eq.ArmStats.from_summary([10, 0], [2.0, 0.0], [0.5, 0.0])
    mean, variance, third, fourth = stats.central_moments(0)
    assert (mean, variance) == pytest.approx((2.0, 0.25 * 9 / 10), rel=1e-15)
    assert math.isnan(third) and math.isnan(fourth)
    assert np.isnan(stats.central_moments(1)).all()
    assert np.isnan(stats.moments_within(1, 0, 1)).all()
    # The fourth powers of these are far below the smallest double.
    tiny = filled([1e-100, 2e-100, 4e-100])
    assert np.isnan(tiny.central_moments(0)).tolist() == [False, False, True, True]


def test_moments_beyond_the_largest_double_are_infinite():
    assert filled([1e100, -1e100]).central_moments(0) == (0.0, 1e200, 0.0, math.inf)
    assert filled([-1e100, 0.0, 0.0]).scaled_moments(0, 0.0, 1e-10)[2:] == (-math.inf, math.inf)


@pytest.mark.parametrize("ends", [(1.0, 1.0), (0.0, math.inf), (math.nan, 1.0), (0.0, "1"), (0.0, None)])
def test_a_scale_needs_two_finite_ends(ends):
    for moments in (filled([0.5]).moments_within, filled([0.5]).scaled_moments):
        with pytest.raises(eq.InvalidInput, match=r"ends? of a scale must"):
            moments(0, *ends)
