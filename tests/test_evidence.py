"""Evidence about the means of arms: its intervals contain the mean, and depend on nothing but the rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_wealth import exact

import equipoise as eq
from equipoise.analysis import Evidence
from equipoise.kernels import arm_evidence

UNIT = (0.0, 1.0)
shares = st.sampled_from([0.0, 1.0, 0.5, 1e-6]) | st.floats(0, 1)
plain = st.lists(st.floats(0, 1).map(lambda x: round(x, 6)), min_size=1, max_size=20)
in_range = st.lists(shares, min_size=1, max_size=20)
failures = st.floats(1e-6, 0.5)
# Enough of them for the t statistic, of moderate skewness.
many = st.lists(st.floats(-10, 10).map(lambda x: round(x, 6)), min_size=2, max_size=6).map(
    lambda x: x * (200 // len(x))
)


def stats_of(*arms):
    stats = eq.ArmStats(len(arms))
    for arm, values in enumerate(arms):
        for value in values:
            stats.update(arm, float(value))
    return stats


def evidence_of(*arms, **settings):
    return Evidence.of(stats_of(*arms), **settings)


def interval(values, failure=0.05, **settings):
    low, high = evidence_of(values, **settings).intervals(failure)
    return float(low[0]), float(high[0])


@settings(max_examples=60)
@given(in_range, failures)
def test_within_a_range_every_interval_holds_the_mean_and_stays_in_the_range(values, failure):
    low, high = interval(values, failure, reward_range=UNIT)
    assert 0 <= low <= np.mean(values) * (1 + 1e-15)
    assert np.mean(values) * (1 - 1e-15) <= high <= 1


@settings(max_examples=60)
@given(many, failures)
def test_without_a_range_every_interval_holds_the_mean(values, failure):
    low, high = interval(values, failure)
    if not math.isnan(low):
        assert low < np.mean(values) < high


@settings(max_examples=60)
@given(in_range, st.tuples(failures, failures).map(sorted), st.sampled_from([UNIT, (0.0, None), (None, 1.0), None]))
def test_more_confidence_means_wider_intervals(values, chances, reward_range):
    values = values * 10
    wide = interval(values, chances[0], reward_range=reward_range)
    narrow = interval(values, chances[1], reward_range=reward_range)
    for outer, inner, sign in ((wide[0], narrow[0], 1), (wide[1], narrow[1], -1)):
        # A t statistic has an end at this confidence, and may have none at more.
        assert math.isnan(outer) or sign * outer <= sign * inner + 1e-9


@settings(max_examples=60)
@given(in_range, st.randoms())
def test_the_order_of_rewards_does_not_matter(values, random):
    shuffled = list(values)
    random.shuffle(shuffled)
    assert interval(values, reward_range=UNIT) == interval(shuffled, reward_range=UNIT)


@settings(max_examples=60)
@given(in_range, in_range)
def test_merged_statistics_are_those_of_all_rewards(first, second):
    merged = Evidence.of(stats_of(first).merge(stats_of(second)), reward_range=UNIT)
    low, high = merged.intervals(0.05)
    assert (low[0], high[0]) == interval(first + second, reward_range=UNIT)


@settings(max_examples=60)
@given(in_range, st.sampled_from([2.0**-30, 1e-9, 0.1, 7.0, 1e9]), st.sampled_from([0.0, -3.0, 100.0]))
def test_units_do_not_matter_within_a_range(values, scale, shift):
    here = np.array(interval(values, reward_range=UNIT))
    ends = (scale * shift, scale * (1 + shift))
    there = np.array(interval([scale * (x + shift) for x in values], reward_range=ends))
    assert there / scale - shift == pytest.approx(here, abs=1e-6)


@settings(max_examples=60)
@given(many, st.sampled_from([1e-9, 0.1, 1e9]), st.sampled_from([0.0, -3.0, 100.0]))
def test_units_do_not_matter_without_a_range(values, scale, shift):
    here = np.array(interval(values))
    there = np.array(interval([scale * (x + shift) for x in values]))
    spread = np.std(values) + 1e-9
    # A few rewards of nearly the same size lose the digits of their spread when shifted.
    if spread > 1e-4:
        assert (there / scale - shift) == pytest.approx(here, abs=1e-6 * spread, nan_ok=True)


@settings(max_examples=60)
@given(plain, st.sampled_from([1e-9, 0.1, 1e9]), st.sampled_from([0.0, -3.0, 1e5]))
def test_units_do_not_matter_in_a_half_open_range(values, scale, shift):
    here, _ = interval(values, reward_range=(0.0, None))
    there, _ = interval([scale * (x + shift) for x in values], reward_range=(scale * shift, None))
    assert there / scale - shift == pytest.approx(here, abs=1e-6)


@settings(max_examples=60)
@given(in_range, failures)
def test_the_mirror_image_has_the_mirrored_interval(values, failure):
    low, high = interval(values, failure, reward_range=UNIT)
    mirrored = interval([1 - x for x in values], failure, reward_range=UNIT)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-6)


@settings(max_examples=60)
@given(in_range, failures, st.sampled_from([UNIT, (0.0, None), (None, 1.0), None]))
def test_mirrored_evidence_is_that_of_the_rewards_times_minus_one(values, failure, reward_range):
    values = values * 8
    here = evidence_of(values, reward_range=reward_range)
    ends = None if reward_range is None else tuple(None if end is None else -end for end in reward_range[::-1])
    turned = evidence_of([-x for x in values], reward_range=ends)
    for twin in (here.mirrored(), Evidence.of(stats_of([-x for x in values]), reward_range=ends)):
        assert [end[0] for end in twin.intervals(failure)] == pytest.approx(
            [end[0] for end in turned.intervals(failure)], nan_ok=True, abs=1e-9
        )
    low, high = here.intervals(failure)
    assert [-turned.intervals(failure)[1][0], -turned.intervals(failure)[0][0]] == pytest.approx(
        [low[0], high[0]], nan_ok=True, abs=1e-6
    )


@settings(max_examples=60)
@given(in_range, failures)
def test_statistics_of_negated_rewards_give_the_same(values, failure):
    """Experiments in which small rewards are good keep them times -1."""
    negated = Evidence.of(stats_of([-x for x in values]), reward_range=UNIT, sign=-1.0)
    low, high = negated.intervals(failure)
    assert (low[0], high[0]) == pytest.approx(interval(values, failure, reward_range=UNIT), abs=1e-9)
    assert negated.mean[0] == pytest.approx(np.mean(values))
    assert negated.skewness == pytest.approx(evidence_of(values).skewness, rel=1e-6, abs=1e-6)


@settings(max_examples=60)
@given(in_range, failures)
def test_moments_never_make_an_interval_narrower_than_all_rewards_do(values, failure):
    """Just outside the ends, every single reward speaks against the value at least as much."""
    low, high = interval(values, failure, reward_range=UNIT)
    threshold, u = math.log(2 / failure), np.array(values)
    if low > 1e-12:
        assert exact(u, low) >= threshold - 1e-5
    if high < 1 - 1e-12:
        assert exact(1 - u, 1 - high) >= threshold - 1e-5


@settings(max_examples=60)
@given(in_range, failures)
def test_two_moments_make_no_interval_narrower_than_four(values, failure):
    low, high = interval(values, failure, reward_range=UNIT)
    n, std = len(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
    few = Evidence.from_summary([n], [np.mean(values)], [std], reward_range=UNIT).intervals(failure)
    assert few[0][0] <= low + 1e-7
    assert few[1][0] >= high - 1e-7


@settings(max_examples=60)
@given(in_range, st.floats(1e-6, 0.6))
def test_an_interval_holds_what_is_not_rejected_and_nothing_else(values, failure):
    evidence = evidence_of(values, reward_range=UNIT)
    (low,), (high,) = evidence.intervals(failure)
    grid = np.linspace(0, 1, 301)
    rejected = np.array([evidence.log_against(0, m) >= -math.log(failure) for m in grid])
    assert not rejected[(grid > low + 1e-9) & (grid < high - 1e-9)].any()
    assert rejected[(grid < low - 1e-9) | (grid > high + 1e-9)].all()
    p = np.array([evidence.p_value(0, m) for m in grid])
    assert (p[(grid < low - 1e-6) | (grid > high + 1e-6)] <= failure * (1 + 1e-9)).all()


@settings(max_examples=60)
@given(in_range, failures)
def test_the_ends_have_the_evidence_that_the_confidence_asks_for(values, failure):
    evidence = evidence_of(values, reward_range=UNIT)
    (low,), (high,) = evidence.intervals(failure)
    threshold = math.log(2 / failure)
    if low > 0:
        assert evidence.log_above(0, low) == pytest.approx(threshold, abs=1e-6)
    else:
        # So it stays down to the very end of the range.
        assert evidence.log_above(0, 1e-25) <= threshold + 1e-6 or np.mean(values) < 1e-20
    if 1e-3 < high < 1:
        assert evidence.log_below(0, high) == pytest.approx(threshold, abs=1e-5)


@settings(max_examples=60)
@given(many, st.floats(0.001, 0.5))
def test_the_ends_have_the_evidence_without_a_range_too(values, failure):
    evidence = evidence_of(values)
    (low,), (high,) = evidence.intervals(failure)
    if not math.isnan(low):
        assert evidence.log_against(0, low) == pytest.approx(-math.log(failure), abs=1e-6)
        assert evidence.log_against(0, high) == pytest.approx(-math.log(failure), abs=1e-6)
        assert evidence.p_value(0, low) == pytest.approx(failure, rel=1e-5)


@pytest.mark.parametrize("values", [[0.0] * 50, [1.0] * 50, [0.3] * 50])
def test_equal_rewards_in_a_range_have_an_interval(values):
    low, high = interval(values, reward_range=UNIT)
    assert low <= values[0] <= high
    assert 0 < high - low < 0.4
    assert all(map(math.isnan, interval(values)))  # without a range they may be anything


def test_a_hundred_zeros():
    """Someone who sees k successes in n with chance m: 100 zeros have probability (1 - m)^100."""
    low, high = interval([0.0] * 100, reward_range=UNIT)
    assert low == 0
    assert 1 - (0.05 / 2) ** (1 / 100) < high < 0.07


@pytest.mark.parametrize("values", [[], [0.4], [0.4, 0.7]])
def test_no_rewards_and_one_and_two(values):
    low, high = interval(values, reward_range=UNIT)
    if values:
        assert 0 <= low < np.mean(values) < high <= 1
    else:
        assert math.isnan(low)
        assert math.isnan(high)
    assert all(map(math.isnan, interval(values)))


def test_a_trillion_rewards():
    low, high = Evidence.from_summary([1e12], [0.3], [0.45], reward_range=UNIT).intervals(0.05)
    assert 2.5 < (0.3 - low[0]) / 0.45e-6 < 6
    assert 2.5 < (high[0] - 0.3) / 0.45e-6 < 6
    low, high = Evidence.from_summary([1e12], [0.3], [0.45]).intervals(0.05)
    assert 2.5 < (0.3 - low[0]) / 0.45e-6 < 6


def test_a_half_open_range_guarantees_its_end():
    values = np.random.default_rng(3).exponential(1.0, 400)
    evidence = evidence_of(values, reward_range=(0.0, None))
    low, high = evidence.intervals(0.05)
    assert evidence.kind == "low guaranteed"
    assert exact(values, low[0], top=math.inf) >= math.log(40) - 1e-6
    assert high[0] == interval(values)[1]
    assert interval(values[:12], reward_range=(0.0, None))[0] > 0  # from the first rewards on
    assert math.isnan(interval(values[:12], reward_range=(0.0, None))[1])
    mirrored = evidence_of(-values, reward_range=(None, 0.0))
    assert mirrored.kind == "high guaranteed"
    assert -mirrored.intervals(0.05)[1][0] == pytest.approx(low[0])


def test_an_infinite_end_is_an_open_one():
    stats = stats_of(list(range(40)))
    for infinite, meant in (((-math.inf, math.inf), None), ((0.0, math.inf), (0.0, None))):
        ends = [Evidence.of(stats, reward_range=one).intervals(0.05) for one in (infinite, meant)]
        np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize("end", [1e12 + 0.3, -1e12, 1e17])
def test_a_half_open_range_may_begin_far_from_zero(end):
    values = np.random.default_rng(3).integers(0, 5, 300) * 1000.0
    low, _ = interval(values + end, reward_range=(end, None))
    assert low - end == pytest.approx(interval(values, reward_range=(0.0, None))[0], rel=2e-3, abs=np.spacing(abs(end)))


def test_skewed_rewards_need_more_of_them():
    values = np.random.default_rng(0).lognormal(0, 1.5, 3000)
    skewness = evidence_of(values).skewness[0]
    enough = int(evidence_of(values).rewards_needed()[0])
    assert enough == math.ceil(arm_evidence.PER_SQUARED_SKEWNESS * skewness**2) > 100
    few = Evidence.from_summary([enough - 1, enough], [1, 1], [1, 1], skewness=[skewness, skewness])
    assert np.isnan(few.intervals(0.05)[0]).tolist() == [True, False]
    assert few.rewards_needed(of_pairs=True)[0] >= enough


def test_skewness_moves_the_interval_towards_the_long_tail():
    low, high = Evidence.from_summary([1000, 1000], [0, 0], [1, 1], skewness=[0, 3]).intervals(0.05)
    assert low[0] == -high[0]
    assert low[1] > low[0]
    assert high[1] > high[0]


def test_unknown_third_and_fourth_moments_are_none():
    """Published figures in an ArmStats: two moments within a range, and silence where skewness matters."""
    stats = eq.ArmStats.from_summary([400], [0.3], [0.2])
    few = Evidence.from_summary([400], [0.3], [0.2], reward_range=UNIT)
    assert np.allclose(Evidence.of(stats, reward_range=UNIT).intervals(0.05), few.intervals(0.05), rtol=1e-9)
    assert np.isnan(Evidence.of(stats).intervals(0.05)).all()


def test_evidence_of_yes_or_no_rewards_is_an_e_value():
    """At the true mean it is 1 on average, after any number of rewards; either direction."""
    mean, n = 0.3, 40
    chances = [math.comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(n + 1)]
    found = [evidence_of([1.0] * k + [0.0] * (n - k), reward_range=UNIT) for k in range(n + 1)]
    assert sum(c * math.exp(e.log_above(0, mean)) for c, e in zip(chances, found, strict=True)) == pytest.approx(1)
    assert sum(c * math.exp(e.log_below(0, mean)) for c, e in zip(chances, found, strict=True)) == pytest.approx(1)


def test_only_some_of_the_arms():
    evidence = Evidence.from_summary([100, 50, 80], [0.3, 0.1, 0.6], [0.4, 0.2, 0.4], reward_range=UNIT)
    part = evidence.only([2, 0])
    assert part.n_arms == 2
    assert part.intervals(0.05)[0].tolist() == evidence.intervals(0.05)[0][[2, 0]].tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.log_above(3, 0.5), "arm must be between 0 and 2; got 3"),
        (lambda e: e.log_below(-1, 0.5), "arm must be"),
        (lambda e: e.p_value(0, math.nan), "value must be"),
        (lambda e: e.intervals(0.0), r"failure_probability must be in \(0, 1\)"),
        (lambda e: e.intervals([0.1, math.nan, 0.1]), "failure_probability must be"),
        (lambda e: e.intervals([0.1, 0.1]), "failure_probability must be"),
        (lambda e: Evidence.from_summary([9], [2.0], [0.1], reward_range=(0, 1)), "mean must be within reward_range"),
        (lambda e: Evidence.from_summary([9], [0.5], [-0.1]), "std must not be negative"),
        (lambda e: Evidence.from_summary([9], [0.5], [0.1], reward_range=(1, 0)), "reward_range must be a lowest"),
        (lambda e: Evidence.from_summary([9], [0.5], [0.1], reward_range=(0, math.nan)), "reward_range must be"),
        (lambda e: Evidence.from_summary([9], [0.5], [0.1], reward_range=3), "reward_range must be"),
        (lambda e: Evidence.of(eq.ArmStats(2), reward_range=(1, 1)), "reward_range must be"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(eq.InvalidInput, match=message):
        call(Evidence.from_summary([100, 50, 80], [0.3, 0.1, 0.6], [0.4, 0.2, 0.4], reward_range=UNIT))


def test_an_open_end_may_be_given_as_none_or_as_infinite():
    values = [0.5, 1.0, 4.0] * 20
    for ends, same in (((-math.inf, math.inf), None), ((0.0, math.inf), (0.0, None)), ((-math.inf, 9.0), (None, 9.0))):
        np.testing.assert_array_equal(interval(values, reward_range=ends), interval(values, reward_range=same))
    for wrong in ((math.inf, 3.0), (1.0, 0.0), (0.0, math.nan), (0.0,)):
        with pytest.raises(eq.errors.InvalidInput, match="reward_range must be a lowest and a highest reward"):
            interval(values, reward_range=wrong)
