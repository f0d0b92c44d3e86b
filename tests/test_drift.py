"""Drift: the check, and differences over the same people, against brute force and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import equipoise as eq
from equipoise.analysis.drift import ASSUMES, over_the_same_people, trend

seeds = st.integers(0, 2**32 - 1)


def experiment(seed, steps=300, n_arms=3, missing=0.0, late=0):
    """Random probabilities, arms, rewards, and when they were counted."""
    rng = np.random.default_rng(seed)
    probability = rng.dirichlet(np.ones(n_arms), steps)
    arm = np.array([rng.choice(n_arms, p=chances) for chances in probability])
    reward = rng.normal(5 + arm, 1.0 + arm)
    reward[rng.random(steps) < missing] = np.nan
    counted = np.arange(1, steps + 1) + (rng.integers(0, late, steps) if late else 0)
    counted[np.isnan(reward) | (rng.random(steps) < missing)] = -1
    return arm, reward, probability, counted


def forecasts(arm, reward, counted, n_arms):
    """At each decision the average of each arm's last 25 rewards counted before, slowly."""
    found = np.zeros((arm.size, n_arms))
    for t in range(arm.size):
        known = [s for s in range(arm.size) if 0 <= counted[s] <= t]
        known.sort(key=lambda s: (counted[s], s))
        for a in range(n_arms):
            own = [reward[s] for s in known if arm[s] == a]
            found[t, a] = np.mean(own[-25:]) if own else np.mean(reward[known]) if known else np.nanmean(reward)
    return found


def noise(arm, reward, counted, n_arms):
    """How far rewards were from the average of the latest 25 before them."""
    entered = sorted((s for s in range(arm.size) if counted[s] >= 0), key=lambda s: (counted[s], s))
    found = []
    for a in range(n_arms):
        own = [reward[s] for s in entered if arm[s] == a]
        squares = [
            (own[k] - np.mean(own[max(k - 25, 0) : k])) ** 2 * min(k, 25) / (min(k, 25) + 1) for k in range(1, len(own))
        ]
        found.append(sum(squares) / len(squares))
    return np.array(found)


@pytest.mark.parametrize("seed", range(4))
def test_differences_are_those_of_the_definition(seed):
    arm, reward, probability, counted = experiment(seed, missing=0.1 * (seed % 2), late=40 * (seed // 2))
    found = over_the_same_people(arm, reward, probability, counted_after=counted, failure_probability=0.1)
    forecast, variance = forecasts(arm, reward, counted, 3), noise(arm, reward, counted, 3)
    for one in found.differences:
        sums = np.zeros(3)
        gaps, weights = [], []
        for t in range(arm.size):
            chances = probability[t, [one.arm, one.other]]
            if chances.min() < 0.001 or np.isnan(reward[t]):
                continue
            score = forecast[t].copy()
            score[arm[t]] += (reward[t] - score[arm[t]]) / probability[t, arm[t]]
            weight = (variance[one.arm] / chances[0] + variance[one.other] / chances[1]) ** -0.5
            sums += [weight, weight * score[one.arm], weight * score[one.other]]
            gaps.append(score[one.arm] - score[one.other])
            weights.append(weight)
        difference = (sums[1] - sums[2]) / sums[0]
        error = math.sqrt(sum(w**2 * (g - difference) ** 2 for w, g in zip(weights, gaps, strict=True))) / sums[0]
        assert one.difference == pytest.approx(difference, rel=1e-9)
        assert one.standard_error == pytest.approx(error, rel=1e-9)
        assert (one.mean, one.other_mean) == pytest.approx((sums[1] / sums[0], sums[2] / sums[0]), rel=1e-9)
        n = min(one.n_rewards, one.n_other_rewards)
        assert one.high_at_end - one.difference == pytest.approx(special.stdtrit(n - 1, 1 - 0.1 / 6) * error, rel=1e-9)
        assert one.n_used == len(gaps)
        assert one.n_used + one.n_without_reward + one.n_left_out == arm.size
        assert one.low < one.low_at_end < one.difference < one.high_at_end < one.high


def test_with_equal_fixed_probabilities_it_is_a_difference_of_means():
    """Then forecasts only take noise away, so both agree to much less than a standard error."""
    rng = np.random.default_rng(3)
    arm = rng.integers(2, size=20_000)
    reward = rng.normal(arm * 0.3, 1.0)
    [found] = over_the_same_people(arm, reward, np.full((arm.size, 2), 0.5)).differences
    plain = reward[arm == 1].mean() - reward[arm == 0].mean()
    error = math.sqrt(reward[arm == 1].var() / (arm == 1).sum() + reward[arm == 0].var() / (arm == 0).sum())
    assert abs(found.difference - plain) < 0.3 * error
    assert found.standard_error == pytest.approx(error, rel=0.05)


@given(seeds, st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.permutations(range(3)))
def test_units_and_names_do_not_matter(seed, shift, scale, order):
    arm, reward, probability, counted = experiment(seed, steps=80)
    order = np.array(order)
    here = over_the_same_people(arm, reward, probability, counted_after=counted, pairs=[(1, 0)], n_arms=3)
    there = over_the_same_people(
        np.argsort(order)[arm],
        shift + scale * reward,
        probability[:, order],
        counted_after=counted,
        pairs=[(int(np.argsort(order)[1]), int(np.argsort(order)[0]))],
        n_arms=3,
    )
    [one], [other] = here.differences, there.differences
    size = scale * one.standard_error + 1e-9 * (abs(shift) + scale)
    assert other.difference == pytest.approx(scale * one.difference, abs=1e-6 * size)
    assert other.standard_error == pytest.approx(scale * one.standard_error, abs=1e-6 * size)


def test_a_reward_counts_for_the_forecast_only_once_it_was_there():
    """A forecast from a later reward would know the draw: with `counted_after` at its latest, forecasts stay empty."""
    arm, reward, probability, _ = experiment(1)
    never = over_the_same_people(arm, reward, probability, counted_after=np.full(arm.size, -1))
    latest = over_the_same_people(arm, reward, probability, counted_after=np.full(arm.size, arm.size))
    assert never.differences[0].standard_error == pytest.approx(latest.differences[0].standard_error, rel=0.05)
    assert (
        never.differences[0].standard_error
        > over_the_same_people(arm, reward, probability).differences[0].standard_error
    )


def test_decisions_at_which_an_arm_was_not_in_play_are_left_out():
    rng = np.random.default_rng(4)
    early, late = np.tile([0.5, 0.5, np.nan], (1_000, 1)), np.tile([0.3, 0.3, 0.4], (1_000, 1))
    probability = np.concatenate([early, late])
    arm = np.array([rng.choice(3, p=np.nan_to_num(chances)) for chances in probability])
    level = np.where(np.arange(2_000) < 1_000, 0.0, 10.0)
    reward = rng.normal(level + 0.5 * arm, 1.0)
    first, added, other = over_the_same_people(arm, reward, probability).differences
    assert [(one.arm, one.other, one.n_left_out) for one in (first, added, other)] == [
        (1, 0, 0),
        (2, 0, 1000),
        (2, 1, 1000),
    ]
    assert abs(added.difference - 1.0) < 4 * added.standard_error
    assert added.standard_error < 0.15
    chosen = over_the_same_people(arm, reward, probability[np.arange(2_000), arm])
    assert chosen.basis == "chosen-probabilities"
    assert abs(chosen.differences[1].difference - 1.0) < 4 * chosen.differences[1].standard_error
    assert chosen.differences[1].n_left_out == np.flatnonzero(arm == 2)[0] + 1
    until = np.array([[0, 0, 1_000], [2_000, 500, 2_000]])
    said = over_the_same_people(arm, reward, probability, in_play=until, pairs=[(1, 0)])
    assert said.differences[0].n_used == 500
    assert np.isfinite([one.mean for one in over_the_same_people(arm, reward, probability).means]).all()


def adaptive(seed, rise, steps=2_000):
    """Two arms 0.1 apart, shares that follow the latest rewards, and a level that rises by so many deviations."""
    rng = np.random.default_rng(seed)
    drawn, deviation = rng.random(steps).tolist(), (rng.normal(size=steps) + rise * np.linspace(0, 1, steps)).tolist()
    latest, arms, rewards, shares = [0.0, 0.0], [], [], []
    for uniform, value in zip(drawn, deviation, strict=True):
        share = 0.85 if latest[1] > latest[0] else 0.15
        arm = int(uniform < share)
        reward = value + 0.1 * arm
        latest[arm] += 0.05 * (reward - latest[arm])
        arms.append(arm)
        rewards.append(reward)
        shares.append(share)
    chance = np.array(shares)
    return np.array(arms), np.array(rewards), np.column_stack([1 - chance, chance])


@pytest.mark.parametrize("rise", [0.0, 1.0, 3.0])
def test_a_trend_does_not_bias_differences_over_the_same_people(rise):
    runs = 120
    found = []
    for seed in range(runs):
        arm, reward, probability = adaptive(seed, rise)
        [same] = over_the_same_people(arm, reward, probability).differences
        [chosen] = over_the_same_people(arm, reward, probability[np.arange(arm.size), arm]).differences
        found.append(
            [[one.difference, one.standard_error, one.low_at_end <= 0.1 <= one.high_at_end] for one in (same, chosen)]
        )
    for one in np.array(found).transpose(1, 2, 0):
        assert abs(one[0].mean() - 0.1) <= 3.5 * one[0].std() / math.sqrt(runs)
        assert one[2].mean() >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / runs)
        assert one[1].mean() == pytest.approx(one[0].std(), rel=3.5 / math.sqrt(2 * runs))


def test_plain_means_are_wrong_where_shares_follow_rewards_that_rise():
    """The test above can fail: it does for plain means."""
    covered = []
    for seed in range(100):
        arm, reward, _ = adaptive(seed, 3.0)
        own = [reward[arm == a] for a in (0, 1)]
        error = math.sqrt(sum(one.var(ddof=1) / one.size for one in own))
        covered.append(abs(own[1].mean() - own[0].mean() - 0.1) <= 1.96 * error)
    assert np.mean(covered) < 0.5


def test_the_check_is_a_pooled_regression():
    """Least squares with an intercept per arm and one slope, arms weighing by their variances."""
    rng = np.random.default_rng(6)
    arm, time = rng.integers(3, size=500), np.arange(500.0)
    reward = rng.normal(arm * 2.0, 1.0 + arm) + 0.002 * time
    reward[::7] = np.nan
    seen = ~np.isnan(reward)
    std = np.array([reward[seen & (arm == a)].std(ddof=1) for a in range(3)])
    design = np.column_stack([arm == 0, arm == 1, arm == 2, time])[seen] / std[arm[seen], None]
    slope = np.linalg.lstsq(design, reward[seen] / std[arm[seen]], rcond=None)[0][3]
    error = math.sqrt(np.linalg.inv(design.T @ design)[3, 3])
    found = trend(arm, reward)
    assert found.change == pytest.approx(499 * slope, rel=1e-9)
    assert found.standard_error == pytest.approx(499 * error, rel=1e-9)
    assert found.z == pytest.approx(slope / error, rel=1e-9)
    assert found.n_used == seen.sum()


@given(seeds, st.floats(-1e6, 1e6), st.floats(1e-3, 1e3))
def test_the_check_does_not_depend_on_the_unit(seed, shift, scale):
    rng = np.random.default_rng(seed)
    arm, reward = rng.integers(3, size=120), rng.normal(size=120)
    here, there = trend(arm, reward), trend(arm, shift + scale * reward)
    assert there.log_evidence == pytest.approx(here.log_evidence, abs=1e-5)
    assert there.z == pytest.approx(here.z, abs=1e-5)


def test_the_check_rarely_speaks_without_drift_however_often_it_is_read():
    runs, looks = 300, np.unique(np.geomspace(20, 2_000, 25).astype(int))
    spoke = 0
    for seed in range(runs):
        arm, reward, _ = adaptive(seed, 0.0)
        spoke += any(trend(arm[:n], reward[:n], n_arms=2, false_alarms=0.1).speaks for n in looks)
    assert spoke / runs <= 0.1


@pytest.mark.parametrize("rise", [-1.0, 0.5])
def test_the_check_speaks_when_it_matters(rise):
    spoke = [trend(*adaptive(seed, rise)[:2]).speaks for seed in range(40)]
    assert np.mean(spoke) >= 0.95


def test_the_check_hears_a_single_arm():
    """One arm's reward wears off while the other's stays: their slopes almost cancel, or are drowned, when pooled."""
    rng = np.random.default_rng(2)
    arm, time = rng.integers(2, size=4_000), np.linspace(-0.5, 0.5, 4_000)
    found = trend(arm, rng.normal(np.where(arm == 0, 0.5 * time, -0.5 * time), 1.0))
    assert abs(found.z) < 3
    assert found.speaks


def test_without_spread_or_data_the_check_is_silent():
    assert not trend([], []).speaks
    assert not trend([0, 1, 0, 1], [1.0, 2.0, 1.0, 2.0]).speaks
    assert not trend([0, 1, 0, 1], [np.nan] * 4).speaks


def test_periods_are_compared_where_there_are_no_probabilities():
    rng = np.random.default_rng(8)
    period = np.arange(1_000) // 100
    arm = (rng.random(1_000) < np.linspace(0.2, 0.8, 10)[period]).astype(int)
    reward = rng.normal(period + 0.5 * arm, 1.0)
    found = over_the_same_people(arm, reward)
    assert (found.basis, found.assumes, found.means) == ("periods", ASSUMES["periods"], ())
    [one] = found.differences
    gaps = [reward[(period == p) & (arm == 1)].mean() - reward[(period == p) & (arm == 0)].mean() for p in range(10)]
    assert one.difference == pytest.approx(np.mean(gaps))
    assert abs(one.difference - 0.5) < 4 * one.standard_error
    assert one.n_used == 1_000


def test_too_few_rewards_have_no_interval():
    [one] = over_the_same_people([0, 0, 0], [1.0, 2.0, 3.0], np.full((3, 2), 0.5)).differences
    assert (one.low, one.high_at_end) == (-math.inf, math.inf)
    [one] = over_the_same_people([0, 1, 0, 1], [1.0, 2.0, np.nan, 4.0], n_periods=2).differences
    assert (one.low_at_end, one.n_left_out) == (-math.inf, 4)
    assert over_the_same_people([0, 0], [1.0, 2.0], np.ones((2, 1))).differences == ()


def test_rare_rewards_have_no_interval_before_there_are_enough():
    """Where an arm's rare reward has not come yet, it looks as if it had no noise: 25 arms that one in 300 clicks."""
    missed, shown = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arm, reward = rng.integers(25, size=2_000), (rng.random(2_000) < 0.003).astype(float)
        found = over_the_same_people(arm, reward, np.full((2_000, 25), 1 / 25))
        missed.append(any(not one.low <= 0.0 <= one.high for one in found.differences))
        shown += [math.isfinite(one.low_at_end) for one in found.differences]
    assert np.mean(missed) <= 0.05
    assert np.mean(shown) < 0.01
    clicks = (np.random.default_rng(1).random(60_000) < 0.003).astype(float)
    [one] = over_the_same_people(np.arange(60_000) % 2, clicks, np.full((60_000, 2), 0.5)).differences
    assert one.low < 0.0 < one.high < 0.01


def test_a_million_decisions_are_read_at_once():
    rng = np.random.default_rng(0)
    arm = rng.integers(5, size=1_000_000)
    found = over_the_same_people(arm, rng.normal(size=arm.size), np.full((arm.size, 5), 0.2))
    assert all(one.low <= 0 <= one.high for one in found.differences)
    assert found.differences[0].n_used == arm.size


GOOD = {"arm": [0, 1, 1], "reward": [1.0, 2.0, 3.0], "probability": [[0.5, 0.5]] * 3}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arm": [0.5, 1, 1]}, "arm must be positions of arms"),
        ({"arm": [0, -1, 1]}, "arm must be from 0 to 1"),
        ({"reward": [1.0, 2.0]}, "reward must have 3 entries"),
        ({"reward": ["a", "b", "c"]}, "reward must be numbers"),
        ({"reward": [1.0, math.inf, 2.0]}, "reward must be finite, or NaN"),
        ({"probability": [[0.5, 0.6]] * 3}, "probability must add up to 1 over the arms; got 1.1 at decision 0"),
        ({"probability": [[1.0, 0.0]] * 3}, "probability must be in (0, 1] for the chosen arm; got 0 at decision 1"),
        ({"probability": [0.5, 0.5]}, "probability must have shape (3, 2)"),
        ({"probability": [0.5, math.nan, 0.5]}, "got nan at decision 1"),
        (
            {"counted_after": [1, 1, 3]},
            "counted_after must be after the decision itself, 2 or more; got 1 at decision 1",
        ),
        ({"counted_after": [1.0, 2.0, 3.0]}, "counted_after must be 3 whole numbers"),
        ({"in_play": [[0, 0]]}, "in_play must be whole numbers of shape (2, 2)"),
        ({"control": 5}, "control must be at most 1"),
        ({"failure_probability": 1.0}, "failure_probability must be in (0, 1)"),
    ],
)
def test_what_makes_no_sense_is_refused(change, words):
    with pytest.raises(eq.InvalidInput) as error:
        over_the_same_people(**GOOD | change)
    assert words in str(error.value)
