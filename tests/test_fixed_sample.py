"""Intervals at the end: against SciPy and brute force, and by simulation of adaptive experiments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, special, stats

import equipoise as eq
from equipoise.analysis.fixed_sample import (
    FEWEST_OF_EACH,
    FEWEST_OF_EACH_OF_MANY,
    compared_pairs,
    differences_at_end,
    means_at_end,
    refusals,
)

summaries = st.lists(
    st.tuples(st.integers(5, 10_000), st.floats(-100, 100), st.floats(0.01, 50)), min_size=2, max_size=6
)


@given(summaries, st.floats(0.001, 0.5))
def test_means_have_the_textbook_interval(arms, delta):
    pulls, mean, std = zip(*arms, strict=True)
    for found, (n, centre, spread) in zip(means_at_end(pulls, mean, std, failure_probability=delta), arms, strict=True):
        radius = -special.stdtrit(n - 1, delta / len(arms) / 2) * spread / math.sqrt(n)
        assert (found.low, found.high) == pytest.approx((centre - radius, centre + radius), rel=1e-9, abs=1e-9)
        assert (found.n_used, found.method) == (n, "t")


@given(summaries)
def test_differences_are_welchs(arms):
    pulls, mean, std = zip(*arms, strict=True)
    together = differences_at_end(pulls, mean, std, failure_probability=0.1)
    assert len(together) == len(arms) * (len(arms) - 1) // 2
    for found in together:
        (n_a, mean_a, std_a), (n_b, mean_b, std_b) = arms[found.arm], arms[found.other]
        part_a, part_b = std_a**2 / n_a, std_b**2 / n_b
        freedom = (part_a + part_b) ** 2 / (part_a**2 / (n_a - 1) + part_b**2 / (n_b - 1))
        error = math.sqrt(part_a + part_b)
        p_value = 2 * special.stdtr(freedom, -abs(mean_a - mean_b) / error)
        assert found.p_value == pytest.approx(p_value, rel=1e-8, abs=1e-290)
        radius = special.stdtrit(freedom, 1 - 0.05 / len(together)) * error
        assert found.low == pytest.approx(mean_a - mean_b - radius, rel=1e-9, abs=1e-7)
        assert found.high == pytest.approx(mean_a - mean_b + radius, rel=1e-9, abs=1e-7)


@given(st.integers(1, 3000), st.floats(0, 1), st.floats(0.001, 0.5))
def test_rewards_of_two_values_have_wilsons_interval(n, rate, delta):
    successes = round(rate * n)
    mean = successes / n
    std = math.sqrt(mean * (1 - mean) * n / max(n - 1, 1))
    [found] = means_at_end([n], [mean], [std], failure_probability=delta, two_values=(0, 1))
    oracle = stats.binomtest(successes, n).proportion_ci(1 - delta, method="wilson")
    assert (found.low, found.high) == pytest.approx((oracle.low, oracle.high), abs=1e-12)
    # Whichever two values they are: in another unit, and with the larger first.
    [moved] = means_at_end([n], [5 - 2 * mean], [2 * std], failure_probability=delta, two_values=(5, 3))
    assert (5 - moved.high, 5 - moved.low) == pytest.approx((2 * found.low, 2 * found.high), abs=1e-9)


def test_rewards_of_two_values_are_recognised():
    pulls, successes = np.array([40, 300]), np.array([0, 12])
    rate = successes / pulls
    std = np.sqrt(rate * (1 - rate) * pulls / (pulls - 1))
    assert {one.method for one in means_at_end(pulls, 10 * rate, 10 * std)} == {"wilson"}
    [difference] = differences_at_end(pulls, 10 * rate, 10 * std)
    assert difference.method == "newcombe"


def test_differences_of_rates_are_newcombes():
    """His example: 56 of 70 against 48 of 80 gives 0.0524 to 0.3339 (Newcombe 1998, table II, method 10)."""
    rate, pulls = np.array([48 / 80, 56 / 70]), [80, 70]
    std = np.sqrt(rate * (1 - rate) * np.array(pulls) / (np.array(pulls) - 1))
    [found] = differences_at_end(pulls, rate, std, two_values=(0, 1))
    assert (round(found.low, 4), round(found.high, 4)) == (0.0524, 0.3339)
    # The p-value is the level at which the interval reaches 0.
    [touching] = differences_at_end(pulls, rate, std, two_values=(0, 1), failure_probability=found.p_value)
    assert touching.low == pytest.approx(0, abs=1e-9)


@given(st.integers(20, 2000), st.floats(0.2, 0.8), st.floats(-0.9, 0.9).filter(lambda c: abs(c) > 0.11))
def test_skewed_rewards_have_halls_interval(n, quantile, ratio):
    """The ends are where his polynomial, which grows everywhere, takes the quantiles of t: found by a root finder."""
    skew = ratio * math.sqrt(n)
    [found] = means_at_end([n], [1.0], [2.0], skewness=[skew], failure_probability=quantile)
    error = 2 / math.sqrt(n)

    def transformed(mean, target):
        t = (1.0 - mean) / error
        return t + ratio * t**2 / 3 + ratio**2 * t**3 / 27 + ratio / 6 - target

    target = stats.t.isf(quantile / 2, n - 1)
    for end, wanted in ((found.low, target), (found.high, -target)):
        root = optimize.brentq(transformed, 1 - 100 * error, 1 + 100 * error, args=(wanted,), xtol=1e-14)
        assert end == pytest.approx(root, abs=1e-6 * error)
    assert found.method == "hall"


def test_a_little_skewness_changes_nothing():
    [plain], [skewed] = means_at_end([400], [1.0], [2.0]), means_at_end([400], [1.0], [2.0], skewness=[1.9])
    assert plain == skewed


@given(st.lists(st.tuples(st.integers(20, 400), st.floats(0, 1)), min_size=2, max_size=4), st.booleans(), st.booleans())
def test_p_is_at_most_delta_where_the_interval_leaves_zero_out_and_only_there(arms, simultaneous, two_values):
    pulls, rate = np.array(arms).T
    mean = np.round(pulls * rate) / pulls
    std = np.sqrt(mean * (1 - mean) * pulls / (pulls - 1))
    values = (0.0, 1.0) if two_values else None
    for found in differences_at_end(pulls, mean, std, two_values=values, simultaneous=simultaneous):
        assume(abs(found.p_adjusted - 0.05) > 1e-6)
        assert (found.p_adjusted < 0.05) == (found.low > 0 or found.high < 0)
        assert found.p_adjusted >= found.p_value


def test_comparisons_that_hold_together_are_as_wide_as_their_number_asks():
    one = differences_at_end([50, 60, 70], [0, 1, 2], [1, 1, 1], pairs=[(2, 0)])
    with_control = differences_at_end([50, 60, 70], [0, 1, 2], [1, 1, 1], control=0)
    every = differences_at_end([50, 60, 70], [0, 1, 2], [1, 1, 1])
    alone = differences_at_end([50, 60, 70], [0, 1, 2], [1, 1, 1], simultaneous=False)
    width = [
        next(f.high - f.low for f in found if (f.arm, f.other) == (2, 0)) for found in (one, with_control, every, alone)
    ]
    assert width[0] < width[1] < width[2]
    assert width[0] == width[3]
    assert compared_pairs(4, control=2) == [(0, 2), (1, 2), (3, 2)]


def test_too_little_data_says_nothing():
    unknown = means_at_end([0, 1, 5], [math.nan, 2.0, 3.0], [math.nan, math.nan, 0.0])
    assert [(one.low, one.high, one.method) for one in unknown] == [(-math.inf, math.inf, "none")] * 3
    within = means_at_end([0, 1], [math.nan, 2.0], [math.nan, math.nan], reward_range=(0, 5))
    assert [(one.low, one.high) for one in within] == [(0, 5), (0, 5)]
    [difference] = differences_at_end([1, 5], [1.0, 2.0], [math.nan, 1.0])
    assert (difference.low, difference.p_value, difference.method) == (-math.inf, 1.0, "none")
    assert differences_at_end([10], [1.0], [1.0]) == ()


def test_rewards_all_at_one_end_of_their_range_have_wilsons_interval():
    """P(all are 0) is at most (1 - mean)^n for any rewards in [0, 1], so those of two values show least."""
    zeros, other = means_at_end([100, 50], [0.0, 0.4], [0.0, 0.2], reward_range=(0, 1))
    assert (zeros.low, zeros.method, other.method) == (0.0, "wilson", "t")
    assert 0.03 < zeros.high < 0.06


def play(arms, steps, runs, **dial):
    """Counts, means, standard deviations and skewnesses at the end of adaptive experiments."""
    found = eq.simulate(eq.PooledBalance(tracking="windowed", **dial), arms, steps, runs, seed=3, checkpoints=[steps])
    return found.pulls[0, :, -1], found.mean[0, :, -1], found.std[0, :, -1]


@pytest.mark.parametrize(("weight", "steps"), [(0.4, 500), (0.9, 1000)])
def test_adaptive_experiments_are_covered_at_the_end(weight, steps):
    means = np.array([1.0, 1.5, 2.0, 2.2])
    arms = eq.Gaussian(mean=means, std=[1.0, 0.5, 1.0, 2.0])
    runs = 500
    pulls, mean, std = play(arms, steps, runs, reward_weight=weight)
    every, each, pairs = 0, 0.0, 0
    for one in zip(pulls, mean, std, strict=True):
        every += all(found.low <= means[found.arm] <= found.high for found in means_at_end(*one))
        each += np.mean([f.low <= means[f.arm] <= f.high for f in means_at_end(*one, simultaneous=False)])
        pairs += all(f.low <= means[f.arm] - means[f.other] <= f.high for f in differences_at_end(*one))
    slack = 2 * math.sqrt(0.05 * 0.95 / runs)
    assert every / runs >= 0.94 - slack
    assert abs(each / runs - 0.95) <= 0.01 + slack
    assert pairs / runs >= 0.94 - slack


def test_rare_successes_are_covered_at_the_end_where_plain_t_fails():
    rates = np.array([0.01, 0.02, 0.03])
    pulls, mean, std = play(eq.Bernoulli(mean=rates), 1500, 400, reward_weight=0.9)
    wilson = [
        [f.low <= r <= f.high for f, r in zip(means_at_end(*one, simultaneous=False), rates, strict=True)]
        for one in zip(pulls, mean, std, strict=True)
    ]
    t = np.abs(mean - rates) <= stats.t.isf(0.025, pulls - 1) * std / np.sqrt(pulls)
    assert np.mean(wilson) >= 0.95 - 2 * math.sqrt(0.05 * 0.95 / 400)
    assert t.mean() < 0.9


FINE = {"pulls": [400, 500], "std": [1.0, 0.8], "stopped_by_budget": True, "reward_weight": 0.9}


def test_what_holds_is_not_refused():
    assert (
        refusals(**FINE, pending=[0, 0], missing=[0, 3], skewness=[1.0, 2.0], simulated_shares=[[0.4, 0.6]] * 5) == ()
    )


@pytest.mark.parametrize(
    ("change", "code", "words", "arms"),
    [
        ({"reward_weight": 1.0}, "reward-weight", "The reward weight is 1; above 0.95", ()),
        ({"shares_converge": False}, "policy", "need not settle", ()),
        ({"stopped_by_budget": False}, "stopped-early", "declared beforehand", ()),
        ({"pending": [0, 3]}, "pending", "Of 3 units the reward may still come", (1,)),
        ({"missing": [30, 3]}, "missing", "Of 33 units the reward is missing", (0, 1)),
        ({"pulls": [400, 9]}, "few-rewards", "'B' has 9 rewards; intervals at the end need 10", (1,)),
        ({"std": [0.0, 1.0]}, "no-spread", "All rewards of 'A' were the same", (0,)),
        ({"skewness": [8.0, 1.0]}, "skewed", "'A' needs 576 and has 400", (0,)),
        ({"skewness": [5.0, 1.0], "of_differences": True}, "skewed", "'A' needs 625 and has 400", (0,)),
        ({"simulated_shares": lambda: [[0.1, 0.9], [0.9, 0.1]]}, "shares", "differs by 0.57", (0, 1)),
    ],
)
def test_what_would_not_hold_is_refused_with_the_reason(change, code, words, arms):
    [reason] = refusals(**FINE | change, names=["A", "B"])
    assert reason.code == code
    assert words in reason.sentence
    assert reason.arms == arms


def test_nothing_is_simulated_where_something_else_is_wrong():
    [reason] = refusals(**FINE | {"reward_weight": 1.0}, simulated_shares=lambda: 1 / 0)
    assert reason.code == "reward-weight"


def test_skewness_of_two_values_does_no_harm():
    assert refusals(**FINE, skewness=[30.0, 30.0], rarer=[40, 5]) == ()


def test_intervals_of_two_values_need_some_of_the_rarer_one():
    [found] = refusals(**FINE, rarer=[40, 4])
    assert (found.code, found.arms) == ("rare", (1,))
    assert found.sentence == "Of the rarer of two values, arm 1 has 4; intervals at the end need 5 of each."


@pytest.mark.parametrize(("n_arms", "fewest"), [(2, FEWEST_OF_EACH), (25, FEWEST_OF_EACH_OF_MANY)])
def test_from_so_few_on_wilsons_interval_nearly_holds(n_arms, fewest):
    delta = 0.05 / n_arms
    for n in (200, 300, 500, 1000):
        seen = np.arange(n + 1)
        found = means_at_end(
            np.full(n + 1, n),
            seen / n,
            np.zeros(n + 1),
            failure_probability=delta,
            two_values=(0, 1),
            simultaneous=False,
        )
        low, high = (np.array([getattr(one, end) for one in found]) for end in ("low", "high"))
        rate = fewest / n
        missed = stats.binom.pmf(seen, n, rate)[(rate < low) | (rate > high)].sum()
        assert missed <= 2.5 * delta, (n, missed / delta)


@pytest.mark.parametrize(
    "change",
    [
        {"pulls": [-1, 5]},
        {"mean": [1.0]},
        {"mean": [math.inf, 1.0]},
        {"std": [-1.0, 1.0]},
        {"failure_probability": 0},
        {"skewness": [1.0]},
    ],
)
def test_what_makes_no_sense_is_refused(change):
    given = {"pulls": [50, 60], "mean": [1.0, 2.0], "std": [1.0, 1.0]} | change
    with pytest.raises(eq.InvalidInput):
        means_at_end(**given)


@pytest.mark.parametrize(
    "change", [{"control": 2}, {"control": True}, {"pairs": [(0, 0)]}, {"pairs": [(0, 5)]}, {"control": 0, "pairs": []}]
)
def test_comparisons_of_arms_that_are_none_are_refused(change):
    with pytest.raises(eq.InvalidInput):
        differences_at_end([50, 60], [1.0, 2.0], [1.0, 1.0], **change)
