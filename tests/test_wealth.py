"""The evidence about bounded rewards is the wealth of bets on them, or a little less, and never more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.kernels import wealth

LOG_20 = math.log(20)

values = st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1e-3, 0.25]) | st.floats(0, 1)
rewards = st.lists(values, min_size=1, max_size=25).map(np.array)
candidates = st.floats(1e-6, 1 - 1e-6)
nasty = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-300, 1e-160, 1e160, 1e300, math.inf, -math.inf])


def powers(u):
    return [float(np.mean(u**j)) for j in (1, 2, 3, 4)]


def weights(m, tuned_at=500.0, top=1.0):
    """The weights of the stakes, as documented: Cauchy in the logarithm, wider above."""
    odds = m / (top - m) if top < math.inf else 1.0
    centre = min(wealth._LARGEST_CENTRE, math.sqrt(2 * wealth._TUNED_LOG_EVIDENCE * odds / tuned_at))
    z = np.log(wealth._STAKE / centre)
    z = np.where(z > 0, z / wealth._ABOVE, z / wealth._BELOW)
    return (1 / (1 + z * z)) / (1 / (1 + z * z)).sum()


def exact(u, m, tuned_at=500.0, top=1.0):
    """The log wealth of the same bets, from every reward."""
    grown = np.log1p(wealth._STAKE[:, None] * (np.asarray(u)[None, :] / m - 1)).sum(axis=1)
    best = grown.max()
    return best + math.log(float(weights(m, tuned_at, top) @ np.exp(grown - best)))


def from_moments(u, m, tuned_at=500.0, top=1.0, known=4):
    moments = powers(u)[:known] + [math.inf] * (4 - known)
    return wealth.log_wealth(float(len(u)), *wealth.points(*moments), m, tuned_at, top)


@settings(max_examples=80)
@given(rewards, candidates)
def test_four_moments_never_show_more_than_every_reward_does(u, m):
    assert from_moments(u, m) <= exact(u, m) + 1e-8 * (1 + abs(exact(u, m)))


@settings(max_examples=80)
@given(rewards, candidates)
def test_two_moments_show_no_more_than_four(u, m):
    assert from_moments(u, m, known=2) <= from_moments(u, m) + 1e-8 * (1 + abs(from_moments(u, m)))


@settings(max_examples=80)
@given(rewards.map(lambda u: u * 40), st.floats(1e-3, 100))
def test_without_a_largest_reward_they_show_no_more_either(u, m):
    shown = exact(u, m, top=math.inf)
    assert from_moments(u, m, top=math.inf) <= shown + 1e-8 * (1 + abs(shown))


@settings(max_examples=80)
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=60).map(np.array), candidates)
def test_yes_or_no_rewards_lose_nothing(u, m):
    assert from_moments(u, m) == pytest.approx(exact(u, m), rel=1e-8, abs=1e-8)
    assert from_moments(u, m, known=2) == pytest.approx(exact(u, m), rel=1e-8, abs=1e-8)


@settings(max_examples=80)
@given(
    st.floats(0.01, 0.9),
    st.floats(0.01, 1),
    st.lists(st.integers(0, 2), min_size=1, max_size=50),
    st.floats(0.01, 0.99),
)
def test_rewards_of_zero_and_two_more_values_lose_nothing(share, y2, which, m):
    u = np.array([0.0, share * y2, y2])[which]
    assert from_moments(u, m) == pytest.approx(exact(u, m), rel=1e-6, abs=1e-6)


def test_four_moments_lose_little_of_other_rewards():
    u = np.random.default_rng(1).beta(8, 3, 400)
    for m in (0.6, 0.68, 0.705):
        assert 0.85 * exact(u, m) <= from_moments(u, m) <= exact(u, m)
        assert from_moments(u, m, known=2) < from_moments(u, m)


@settings(max_examples=80)
@given(st.lists(st.floats(1e-3, 1) | st.just(0.0), min_size=1, max_size=30).map(np.array))
def test_the_points_have_the_moments(u):
    y1, p1, y2, p2 = wealth.points(*powers(u))
    assert 0 < y1 <= y2 * (1 + 1e-12)
    assert min(p1, p2) >= 0
    assert p1 + p2 <= 1 + 1e-9
    m1, m2, m3, m4 = powers(u)
    found = [p1 * y1**j + p2 * y2**j for j in (1, 2, 3, 4)]
    assert found[:2] == pytest.approx([m1, m2], rel=1e-10)
    # Nearly equal rewards are taken for equal: their third and fourth moments are known to rounding only.
    spread = m1 * m3 - m2 * m2
    assert found[2:] == pytest.approx([m3, m4], rel=1e-10 if spread > 1e-6 * m2 * m2 else 1e-6)


def test_equal_rewards_are_one_point():
    y1, p1, _, p2 = wealth.points(0.3, 0.09, 0.027, 0.0081)
    assert (y1, p1, p2) == pytest.approx((0.3, 1.0, 0.0))


@pytest.mark.parametrize("count", [1, 2, 10, 100])
@pytest.mark.parametrize("mean", [0.01, 0.3, 0.5, 0.97])
def test_the_wealth_is_one_on_average_if_the_mean_is_right(count, mean):
    """Summed over all outcomes of yes/no rewards, where the bound is exact."""
    expected = 0.0
    for successes in range(count + 1):
        share = successes / count
        found = wealth.points(*[share] * 4)
        chance = stats.binom.pmf(successes, count, mean)
        expected += chance * math.exp(wealth.log_wealth(float(count), *found, mean, 500.0, 1.0))
    assert expected == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=80)
@given(rewards, st.floats(0.5, 20), st.sampled_from([20.0, 500.0, 1e5]))
def test_the_lowest_mean_is_where_the_wealth_reaches_the_threshold(u, threshold, tuned_at):
    found = wealth.points(*powers(u))
    low = wealth.lowest_mean(float(len(u)), *found, threshold, tuned_at, 1.0)
    assert 0 <= low <= u.mean() * (1 + 1e-12)
    if low > 0:
        assert wealth.log_wealth(float(len(u)), *found, low, tuned_at, 1.0) == pytest.approx(threshold, abs=1e-6)
        exact_there = exact(u, low, tuned_at)
        assert exact_there >= threshold - 1e-6


@settings(max_examples=80)
@given(rewards, st.floats(math.log(3.2), 20), st.sampled_from([20.0, 500.0, 1e5]), st.sampled_from([1.0, math.inf]))
def test_all_values_below_the_lowest_mean_are_rejected_and_none_between_it_and_the_mean(u, threshold, tuned_at, top):
    """As docs/evidence.md proves for failure probabilities up to 0.62."""
    found = wealth.points(*powers(u))
    low = wealth.lowest_mean(float(len(u)), *found, threshold, tuned_at, top)
    for part in np.linspace(0.001, 0.999, 60):
        below, above = low * part, low + (u.mean() - low) * part
        if below > 0:
            assert wealth.log_wealth(float(len(u)), *found, below, tuned_at, top) >= threshold - 1e-6
        if above > low:
            assert wealth.log_wealth(float(len(u)), *found, above, tuned_at, top) <= threshold + 1e-6


@settings(max_examples=80)
@given(rewards, candidates, candidates)
def test_evidence_of_some_size_falls_as_the_value_grows(u, one, other):
    small, large = sorted((one, other))
    more, less = from_moments(u, small), from_moments(u, large)
    assert less <= max(more, math.log(12)) + 1e-8


def test_the_weights_of_stakes_move_too_little_to_spoil_that():
    """The proof needs (1 - 1/W) (1 - m) > k or m log W > k for every m, at W = 12: k bounds what the weights do."""
    k = 0.5 * (1 / wealth._BELOW + 1 / wealth._ABOVE)
    m = np.linspace(0, 1, 10_001)[:-1]
    assert (np.maximum((1 - 1 / 12) * (1 - m), m * math.log(12)) > k).all()


@settings(max_examples=80)
@given(rewards)
def test_rewards_speak_for_no_mean_above_their_own(u):
    mean = float(u.mean())
    for m in (mean, mean + 0.3 * (1 - mean), 1 - 1e-9):
        if 0 < m < 1:
            assert from_moments(u, m) <= 1e-9


def test_a_trillion_rewards_are_not_too_many():
    found = wealth.points(0.5, 0.5, 0.5, 0.5)
    low = wealth.lowest_mean(1e12, *found, LOG_20, 500.0, 1.0)
    z = (0.5 - low) / (0.5 / 1e6)
    assert 2.5 < z < 6


@pytest.mark.parametrize("n", [0.0, 1.0, 2.0])
def test_hardly_any_rewards_show_hardly_anything(n):
    found = wealth.points(1.0, 1.0, 1.0, 1.0) if n else wealth.points(math.nan, math.nan, math.nan, math.nan)
    low = wealth.lowest_mean(n, *found, LOG_20, 500.0, 1.0)
    # A mean of m shows n ones with probability m^n.
    assert 0 <= low <= math.exp(-LOG_20) ** (1 / max(n, 1))
    assert (low == 0) == (n == 0)


@settings(max_examples=80)
@given(nasty, nasty, nasty, nasty, nasty, nasty, nasty, nasty, nasty)
def test_numbers_that_no_rewards_have_end_in_an_answer(n, m1, m2, m3, m4, m, threshold, tuned_at, top):
    found = wealth.points(m1, m2, m3, m4)
    wealth.log_wealth(n, *found, m, tuned_at, top)
    low = wealth.lowest_mean(n, *found, threshold, tuned_at, top)
    assert not low < 0
