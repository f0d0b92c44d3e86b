"""Evidence about two arms at once: differences, ratios, and who is beaten, against a search over all values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.analysis import Evidence
from equipoise.analysis.multiplicity import best_arm_failures
from equipoise.kernels import arm_evidence

LOG_40 = math.log(40)
nasty = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-300, 1e160, 1e300, math.inf, -math.inf])
counts = st.tuples(st.integers(1, 3000), st.floats(0, 1)).map(lambda pair: (pair[0], round(pair[0] * pair[1])))
two_arms = st.tuples(counts, counts)


def yes_no(*arms):
    """Evidence about arms with some successes among some rewards: (rewards, successes)."""
    n = np.array([rewards for rewards, _ in arms], float)
    mean = np.array([successes for _, successes in arms]) / n
    std = np.sqrt(mean * (1 - mean) * n / np.maximum(n - 1, 1))
    return Evidence.from_summary(n, mean, std, reward_range=(0, 1))


def joint(evidence, a, b, factor, shift, points=2001):
    """The joint evidence that a > factor b + shift, by a grid over all means of b that is refined twice."""
    low, high = 0.0, 1.0
    for _ in range(3):
        grid = np.linspace(low, high, points)
        found = [evidence.log_above(a, factor * x + shift) + evidence.log_below(b, x) for x in grid]
        best = int(np.argmin(found))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, points - 1)]
    return min(found)


def log_larger(evidence, a, b, shift=0.0, guaranteed=True):
    return arm_evidence.log_larger(evidence.moments, a, b, shift, guaranteed)


def least_difference(evidence, a, b, threshold=LOG_40, guaranteed=True):
    return arm_evidence.least_difference(evidence.moments, a, b, threshold, guaranteed)


@settings(max_examples=25)
@given(two_arms, st.floats(-0.9, 0.9))
def test_evidence_of_a_difference_is_the_least_over_all_values_of_the_other_mean(arms, shift):
    evidence = yes_no(*arms)
    found = log_larger(evidence, 0, 1, shift)
    if evidence.mean[0] - evidence.mean[1] <= shift:
        assert found == 0
    elif found < 200:
        expected = joint(evidence, 0, 1, 1.0, shift, points=301)
        assert expected - 1e-5 * (1 + abs(expected)) <= found <= expected + 1e-5 * (1 + abs(expected))


def test_that_value_may_lie_beyond_both_means():
    """The second arm has so few rewards that its mean may well be above the first one's, at hardly any evidence."""
    evidence = yes_no((8297, 1102), (12, 1))
    within = min(evidence.log_above(0, x) + evidence.log_below(1, x) for x in np.linspace(1 / 12, 1102 / 8297, 1001))
    assert log_larger(evidence, 0, 1) < within - 0.5
    assert log_larger(evidence, 0, 1) == pytest.approx(joint(evidence, 0, 1, 1.0, 0.0), abs=1e-5)


def test_evidence_of_skewed_and_half_open_rewards_is_the_least_too():
    rng = np.random.default_rng(6)
    means, stds = rng.uniform(1, 2, 8), rng.uniform(0.5, 2, 8)
    for ends in ((0.0, None), None):
        evidence = Evidence.from_summary(
            rng.integers(60, 900, 8), means, stds, skewness=rng.uniform(-1, 1, 8), reward_range=ends
        )
        for a, b in ((0, 1), (2, 3), (4, 5), (6, 7), (1, 0), (3, 2), (5, 4), (7, 6)):
            found = log_larger(evidence, a, b)
            if 0 != found < 12:
                grid = np.linspace(0.01, 4, 8001)
                expected = min(evidence.log_above(a, x) + evidence.log_below(b, x) for x in grid)
                assert expected - 1e-3 <= found <= expected + 1e-3


@settings(max_examples=40)
@given(two_arms)
def test_the_least_difference_is_where_the_evidence_reaches_the_threshold(arms):
    evidence = yes_no(*arms)
    low = least_difference(evidence, 0, 1)
    assert -1 <= low <= evidence.mean[0] - evidence.mean[1]
    if low > -1:
        assert log_larger(evidence, 0, 1, low) == pytest.approx(LOG_40, abs=1e-4)
        assert log_larger(evidence, 0, 1, low - 0.01) > LOG_40
    assert log_larger(evidence, 0, 1, low + 0.01) < LOG_40


@settings(max_examples=40)
@given(two_arms)
def test_both_ends_of_a_difference_and_the_evidence_agree(arms):
    evidence = yes_no(*arms)
    out = np.empty((4, 2))
    pair = np.array([0, 1]), np.array([1, 0])
    arm_evidence.write_differences(evidence.moments, *pair, np.array([0.05, 0.05]), True, out)
    assert out[0, 0] <= evidence.mean[0] - evidence.mean[1] <= out[1, 0]
    assert out[:2, 0].tolist() == [-out[1, 1], -out[0, 1]]
    assert out[2:, 0].tolist() == out[2:, 1][::-1].tolist()
    assert (out[0, 0] > 1e-6) <= (out[2, 0] >= LOG_40 - 1e-6)
    assert (out[1, 0] < -1e-6) <= (out[3, 0] >= LOG_40 - 1e-6)
    assert 0 in out[2:, 0]


@settings(max_examples=40)
@given(two_arms, st.floats(0.1, 20), st.floats(0.01, 20))
def test_more_confidence_widens_a_difference(arms, threshold, more):
    evidence = yes_no(*arms)
    low = least_difference(evidence, 0, 1, threshold)
    assert least_difference(evidence, 0, 1, threshold + more) <= low + 1e-9


@settings(max_examples=40)
@given(two_arms)
def test_the_mirror_image_has_the_mirrored_difference(arms):
    evidence, turned = yes_no(*arms), yes_no(*[(n, n - k) for n, k in arms])
    assert least_difference(turned, 1, 0) == pytest.approx(least_difference(evidence, 0, 1), abs=1e-5)


def test_the_intervals_of_both_arms_bound_their_difference_less_well():
    """Each arm at half the failure probability, against the joint evidence at the whole."""
    for arms in (((400, 120), (400, 200)), ((100, 3), (900, 500)), ((5, 5), (5, 0))):
        evidence = yes_no(*arms)
        low, high = evidence.intervals(0.025)
        assert least_difference(evidence, 1, 0) >= low[1] - high[0] - 1e-9
        assert least_difference(evidence, 0, 1) >= low[0] - high[1] - 1e-9


def test_the_narrow_interval_of_a_difference_is_welchs_with_its_degrees_of_freedom():
    n, mean, std = np.array([60, 200]), np.array([1.0, 1.4]), np.array([1.0, 2.0])
    evidence = Evidence.from_summary(n, mean, std)
    difference, error, count = arm_evidence.welch(evidence.moments, 1, 0)[:3]
    expected = stats.ttest_ind_from_stats(mean[1], std[1], n[1], mean[0], std[0], n[0], equal_var=False)
    assert difference / error == pytest.approx(expected.statistic)
    assert 2 * stats.t.sf(difference / error, count - 1) == pytest.approx(expected.pvalue)
    low = least_difference(evidence, 1, 0, guaranteed=False)
    assert log_larger(evidence, 1, 0, low, guaranteed=False) == pytest.approx(LOG_40, abs=1e-6)
    assert math.isnan(least_difference(Evidence.from_summary([9, 9], [1, 2], [1, 1]), 1, 0, guaranteed=False))


@pytest.mark.parametrize("scale", [1e-90, 1e-9, 1e9, 1e90])
def test_welchs_degrees_of_freedom_do_not_depend_on_the_unit(scale):
    here = Evidence.from_summary([60, 200], [1.0, 1.4], [1.0, 2.0])
    there = Evidence.from_summary([60, 200], [scale, 1.4 * scale], [scale, 2 * scale])
    assert least_difference(there, 1, 0, guaranteed=False) / scale == pytest.approx(
        least_difference(here, 1, 0, guaranteed=False)
    )


@settings(max_examples=40)
@given(two_arms)
def test_the_least_ratio_is_where_the_evidence_reaches_the_threshold(arms):
    evidence = yes_no(*arms)
    low = arm_evidence.least_ratio(evidence.moments, 0, 1, LOG_40)
    if evidence.mean[0] == 0:
        assert low == 0
        return
    assert 0 < low < math.inf
    if evidence.mean[1] > 0:
        assert low <= evidence.mean[0] / evidence.mean[1] * (1 + 1e-9)
    at = joint(evidence, 0, 1, low, 0.0, points=301)
    assume(at < 1e3)
    assert at == pytest.approx(LOG_40, abs=1e-4)


def test_ratios_of_arms_without_rewards_of_negative_rewards_and_of_zeros():
    evidence = yes_no((200, 60), (50, 0), (30, 30))
    ratio = lambda e, a, b: arm_evidence.least_ratio(e.moments, a, b, LOG_40)  # noqa: E731
    assert ratio(evidence, 1, 0) == 0  # nothing but zeros: no factor is too small
    assert 1 < ratio(evidence, 0, 1) < 60  # the mean of the second may be some 8 %
    assert ratio(evidence, 2, 0) > 1.5
    assert math.isnan(ratio(Evidence.from_summary([0, 9], [0, 0.5], [0, 0.1], reward_range=(0, 1)), 0, 1))
    assert math.isnan(ratio(Evidence.from_summary([90, 90], [1, 2], [1, 1]), 1, 0))
    assert math.isnan(ratio(Evidence.from_summary([90, 90], [0.1, 0.2], [0.3, 0.3], reward_range=(-1, 1)), 1, 0))
    # Without a largest reward, a mean of zeros may be anything.
    assert ratio(Evidence.from_summary([90, 90], [1, 0], [1, 0], reward_range=(0, None)), 0, 1) == 0


def beaten(evidence, *, others=None, guaranteed=True, n_first=None):
    n_arms = evidence.n_arms
    first, out = n_arms if n_first is None else n_first, np.empty(n_arms)
    places = np.arange(n_arms) if others is None else np.array(others)
    arm_evidence.write_log_beaten(evidence.moments, np.arange(n_arms), places, first - 1, guaranteed, out)
    return out


@settings(max_examples=40)
@given(st.lists(counts, min_size=2, max_size=6), st.integers(1, 6), st.booleans())
def test_an_arm_is_beaten_by_the_weighted_average_evidence_that_others_are_better(arms, n_first, guaranteed):
    evidence, n_first = yes_no(*arms), min(n_first, len(arms))
    found = beaten(evidence, guaranteed=guaranteed, n_first=n_first)
    for a in range(len(arms)):
        better = [b for b in range(len(arms)) if evidence.mean[b] > evidence.mean[a]]
        shares = best_arm_failures(1.0, a, n_first, n_arms=len(arms))
        values = [math.log(shares[b]) + log_larger(evidence, b, a, guaranteed=guaranteed) for b in better]
        if not values:
            assert found[a] == -math.inf
            continue
        expected = np.logaddexp.reduce(values)
        # What hardly adds anything may be left out, which only lowers the evidence.
        assert expected - 0.01 <= found[a] <= expected + 1e-6 * (1 + abs(expected))


def test_leaving_out_arms_lowers_the_evidence():
    evidence = yes_no((300, 30), (300, 60), (300, 100), (300, 110))
    assert (beaten(evidence, others=[3]) <= beaten(evidence) + 1e-12).all()
    assert beaten(evidence, others=[3])[3] == -math.inf


def test_an_arm_without_rewards_beats_none_and_is_beaten_by_none():
    evidence = Evidence.from_summary([0, 100, 100], [0, 0.2, 0.7], [0, 0.4, 0.46], reward_range=(0, 1))
    found = beaten(evidence)
    assert found[0] == found[2] == -math.inf
    assert found[1] > LOG_40
    assert log_larger(evidence, 0, 1) == log_larger(evidence, 1, 0) == 0
    assert math.isnan(least_difference(evidence, 0, 1))


def test_joint_evidence_holds_when_the_choice_of_arms_chases_it():
    """Two equal arms, the next reward always that of the arm which looks worse: a claim is wrong rarely enough."""
    rng = np.random.default_rng(2)
    runs, looks, delta = 300, 120, 0.1
    wrong = 0
    for _ in range(runs):
        successes, n = np.zeros(2), np.zeros(2)
        for step in range(looks):
            arm = step % 2 if step < 4 else int(np.argmin(successes / n))
            n[arm] += 1
            successes[arm] += rng.random() < 0.3
            if step >= 4 and step % 4 == 0:
                evidence = yes_no(*zip(n.astype(int), successes, strict=True))
                if max(log_larger(evidence, 0, 1), log_larger(evidence, 1, 0)) >= math.log(2 / delta):
                    wrong += 1
                    break
    assert wrong / runs <= delta + 4 * math.sqrt(delta * (1 - delta) / runs)


@settings(max_examples=150)
@given(
    st.lists(nasty, min_size=2 * arm_evidence.ROWS, max_size=2 * arm_evidence.ROWS), nasty, nasty, nasty, st.booleans()
)
def test_numbers_that_no_rewards_have_end_in_an_answer(cells, threshold, shift, factor, guaranteed):
    arms = np.array(cells).reshape(arm_evidence.ROWS, 2)
    _call_everything(arms, threshold, shift, factor, guaranteed)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.integers(0, 10**15), nasty, nasty, nasty), min_size=2, max_size=2),
    st.sampled_from([(0.0, 1.0), (0.0, math.inf), (-math.inf, 0.0), (-math.inf, math.inf), (0.0, 1e300), (1.0, 1.0)]),
    nasty,
    nasty,
    nasty,
    st.booleans(),
)
def test_figures_that_no_rewards_have_end_in_an_answer(figures, ends, threshold, shift, factor, guaranteed):
    arms = np.full((arm_evidence.ROWS, 2), np.nan)
    arms[arm_evidence.LOW], arms[arm_evidence.HIGH], arms[arm_evidence.TUNED] = *ends, 500.0
    arms[arm_evidence.SCALE] = ends[1] - ends[0] if ends[1] - ends[0] < math.inf else 1.0
    for a, (n, mean, std, skew) in enumerate(figures):
        arms[[arm_evidence.COUNT, arm_evidence.MEAN, arm_evidence.STD, arm_evidence.SKEW], a] = n, mean, std, skew
        from equipoise.kernels.wealth import points

        with np.errstate(all="ignore"):
            arms[arm_evidence.LOW_Y1 : arm_evidence.LOW_P2 + 1, a] = points(mean, std, skew, mean)
            arms[arm_evidence.HIGH_Y1 : arm_evidence.HIGH_P2 + 1, a] = points(std, mean, skew, mean)
    _call_everything(arms, threshold, shift, factor, guaranteed)


def _call_everything(arms, threshold, shift, factor, guaranteed):
    low, high = np.empty(2), np.empty(2)
    arm_evidence.write_intervals(arms, np.array([0.05, 1e-300]), low, high)
    assert not (low > high).any()
    arm_evidence.write_differences(
        arms, np.array([0, 1]), np.array([1, 0]), np.array([0.05, 1e-300]), guaranteed, np.empty((4, 2))
    )
    arm_evidence.write_log_beaten(arms, np.array([0, 1]), np.array([0, 1]), 1, guaranteed, np.empty(2))
    for a, b in ((0, 1), (1, 0)):
        arm_evidence.log_above(arms, a, shift)
        arm_evidence.log_below(arms, a, shift)
        arm_evidence.log_joint(arms, a, b, factor, shift, -math.inf)
        arm_evidence.log_larger(arms, a, b, shift, guaranteed)
        arm_evidence.least_difference(arms, a, b, threshold, guaranteed)
        arm_evidence.least_ratio(arms, a, b, threshold)
