"""Radii that hold at all times at once: by simulation, and against what they must not fall below."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.theory import asymptotic_mean_radius, bounded_mean_radius

DELTA = 0.1
REPLICATIONS = 600


def share_ever_missed(rewards, mean, radius, looks):
    """How often the interval misses the mean at any of the looks."""
    counts = np.arange(1, rewards.shape[1] + 1)
    means = rewards.cumsum(axis=1) / counts
    variances = np.maximum((rewards**2).cumsum(axis=1) - counts * means**2, 0) / np.maximum(counts - 1, 1)
    missed = np.zeros(len(rewards), bool)
    for n in looks:
        width = radius(np.full(len(rewards), n), np.sqrt(variances[:, n - 1]), failure_probability=DELTA)
        missed |= np.abs(means[:, n - 1] - mean) > width
    return missed.mean()


def draw(kind):
    rng = np.random.default_rng(5)
    size = (REPLICATIONS, 1500)
    return {
        "fair coin": lambda: ((rng.random(size) < 0.5).astype(float), 0.5),
        "rare event": lambda: ((rng.random(size) < 0.03).astype(float), 0.03),
        "uniform": lambda: (rng.random(size), 0.5),
        "beta": lambda: (rng.beta(0.5, 2.0, size), 0.2),
        "normal": lambda: (rng.normal(3.0, 2.0, size), 3.0),
        "exponential": lambda: (rng.exponential(1.0, size), 1.0),
    }[kind]()


LOOKS = np.unique(np.geomspace(1, 1500, 40).astype(int))
# Four standard errors of a share that is DELTA at most.
SLACK = 4 * math.sqrt(DELTA * (1 - DELTA) / REPLICATIONS)


@pytest.mark.parametrize("kind", ["fair coin", "rare event", "uniform", "beta"])
def test_bounded_rewards_are_covered_at_all_times_jointly(kind):
    assert share_ever_missed(*draw(kind), bounded_mean_radius, LOOKS) <= DELTA + SLACK


@pytest.mark.parametrize("kind", ["normal", "exponential", "uniform"])
def test_unbounded_rewards_are_covered_at_all_times_jointly(kind):
    assert share_ever_missed(*draw(kind), asymptotic_mean_radius, LOOKS) <= DELTA + SLACK


def test_a_fixed_interval_is_not_covered_at_all_times():
    """The test above can fail: it does for the textbook interval."""

    def textbook(counts, std, *, failure_probability):
        return 1.645 * std / np.sqrt(counts) + (counts < 30)

    assert share_ever_missed(*draw("fair coin"), textbook, LOOKS) > 2 * DELTA


@given(st.integers(1, 10**9), st.floats(0, 0.5), st.floats(1e-4, 0.5), st.floats(1e-6, 1e6))
def test_bounded_radius_shrinks_with_rewards_and_grows_with_spread(n, std, delta, scale):
    counts, stds = [n, 2 * n, n, n], [std * scale, std * scale, std * scale / 2, 0.5 * scale]
    here, more, calmer, wildest = bounded_mean_radius(counts, stds, failure_probability=delta, reward_range=scale)
    assert more <= here * (1 + 1e-9)
    assert calmer <= here * (1 + 1e-9)
    assert here <= wildest * (1 + 1e-9)
    assert here <= scale * (1 + 1e-12)
    # Never below the interval for one look, whose level it has to keep as well.
    assert here >= min(scale, math.sqrt(2 * math.log(1 / delta) / n) * std * scale) * (1 - 1e-9)


@pytest.mark.parametrize(("n", "std", "times"), [(1_000, 0.5, 2.0), (100_000, 0.5, 2.0), (10_000, 0.1, 2.2)])
def test_bounded_radius_is_about_twice_that_of_one_look(n, std, times):
    [radius] = bounded_mean_radius([n], [std], failure_probability=0.05)
    assert radius < times * 1.96 * std / math.sqrt(n)


def test_too_few_rewards_have_no_radius():
    assert bounded_mean_radius([0], [np.nan], failure_probability=0.05)[0] == math.inf
    assert bounded_mean_radius([1], [np.nan], failure_probability=0.05)[0] == 1.0
    assert (asymptotic_mean_radius([0, 29, 100], [np.nan, 1.0, 0.0], failure_probability=0.05) == math.inf).all()


def test_ten_thousand_arms_at_once():
    radius = bounded_mean_radius(np.arange(1, 10_001), np.full(10_000, 0.3), failure_probability=0.05)
    assert (np.diff(radius) <= 1e-12).all()


@pytest.mark.parametrize(
    ("pulls", "std", "settings"),
    [
        ([-1], [1.0], {}),
        ([5], [-1.0], {}),
        ([5], [math.nan], {}),
        ([5, 6], [1.0], {}),
        ([5], ["a"], {}),
        ([5], [1.0], {"failure_probability": 0}),
        ([5], [1.0], {"reward_range": 0}),
    ],
)
def test_what_makes_no_sense_is_refused(pulls, std, settings):
    with pytest.raises(eq.InvalidInput):
        bounded_mean_radius(pulls, std, **{"failure_probability": 0.05, **settings})
