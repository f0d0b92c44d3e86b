"""Metrics against direct formulas, written as loops."""

from __future__ import annotations

import math

import golden
import mpmath
import numpy as np
import pytest
import reference
from scipy import stats

import equipoise as eq
from equipoise import metrics

FIVE = eq.Gaussian(mean=golden.FIVE_MEANS, std=golden.FIVE_STDS)


@pytest.fixture(scope="module")
def runs():
    policies = [eq.ForcingBalance(reward_weight=0.9), eq.Uniform()]
    return eq.simulate(policies, FIVE, 800, 6, seed=2, checkpoints=[3, 10, 40, 800])


def each(runs):
    for k in range(len(runs.policies)):
        for r in range(runs.replications.size):
            for c, n in enumerate(runs.checkpoints.tolist()):
                yield (k, r, c), n, runs.pulls[k, r, c].tolist()


def test_reward_and_error_are_eq_1_and_2(runs):
    reward, error = runs.reward(), runs.error()
    for place, n, pulls in each(runs):
        share = [mpmath.mpf(count) / n for count in pulls]
        assert reward[place] == pytest.approx(
            float(sum(x * mpmath.mpf(m) for x, m in zip(share, FIVE.mean.tolist(), strict=True))), rel=1e-14
        )
        if 0 in pulls:
            assert error[place] == math.inf
        else:
            terms = [mpmath.mpf(s) / mpmath.sqrt(x) for x, s in zip(share, FIVE.std.tolist(), strict=True)]
            assert error[place] == pytest.approx(float(sum(terms) / 5), rel=1e-14)
    assert np.isinf(error[:, :, 0]).all() and np.isfinite(error[:, :, 1:]).all()


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.9, 1.0])
def test_tradeoff_and_regret_are_eq_3(runs, weight):
    tradeoff, regret = runs.tradeoff(reward_weight=weight), runs.regret(reward_weight=weight)
    rescaled = runs.rescaled_regret(reward_weight=weight)
    best = eq.optimal_allocation(FIVE.mean, FIVE.std, reward_weight=weight)
    most = reference.tradeoff(best, FIVE.mean, FIVE.std, weight)
    for place, n, pulls in each(runs):
        value = reference.tradeoff(np.array(pulls) / n, FIVE.mean, FIVE.std, weight)
        assert tradeoff[place] == pytest.approx(value, rel=1e-13)
        assert regret[place] == pytest.approx(most - value, rel=1e-9, abs=1e-13)
        assert rescaled[place] == pytest.approx(math.sqrt(n) * (most - value), rel=1e-9, abs=1e-12)
        assert regret[place] >= -1e-13


@pytest.mark.parametrize("optimum", golden.OPTIMA)
def test_the_optimum_has_no_regret_and_the_known_value(optimum):
    mean, std = np.array(optimum.mean), np.sqrt(optimum.variance)
    share = eq.optimal_allocation(mean, std, reward_weight=optimum.reward_weight)
    weight = {"reward_weight": optimum.reward_weight}
    assert metrics.tradeoff(share, mean, std, **weight) == pytest.approx(optimum.tradeoff, abs=1e-10)
    assert metrics.regret(share, mean, std, **weight) == 0
    assert metrics.distance(share, mean, std, **weight) == 0


def test_distances_are_sup_norms(runs):
    best = eq.optimal_allocation(FIVE.mean, FIVE.std, reward_weight=0.9)
    frequency, target = runs.frequency_distance(reward_weight=0.9), runs.target_distance(reward_weight=0.9)
    for place, n, pulls in each(runs):
        assert frequency[place] == pytest.approx(max(abs(pulls[i] / n - best[i]) for i in range(5)), abs=1e-15)
        if np.isnan(runs.target[place]).any():
            assert np.isnan(target[place])
        else:
            assert target[place] == pytest.approx(
                max(abs(runs.target[place][i] - best[i]) for i in range(5)), abs=1e-15
            )
    # ForcingBalance has a target as soon as every arm has two rewards, Uniform never.
    assert np.isnan(target[0, :, 0]).all() and np.isfinite(target[0, :, 1:]).all()
    assert np.isnan(target[1]).all()


def dcg(order, gains):
    return sum(mpmath.mpf(gains[arm]) / mpmath.log(rank + 1) for rank, arm in enumerate(order, start=1))


def test_ranking_metrics():
    rng = np.random.default_rng(3)
    true = rng.gamma(2.0, size=12)
    estimate = true + rng.normal(scale=0.8, size=(4, 7, 12))
    loss, error = metrics.relative_dcg(estimate, true), metrics.rank_error(estimate, true)
    best = dcg(sorted(range(12), key=lambda i: -true[i]), true)
    for place in np.ndindex(4, 7):
        order = sorted(range(12), key=lambda i: -estimate[place][i])
        assert loss[place] == pytest.approx(float(100 * (best - dcg(order, true)) / best), rel=1e-9, abs=1e-12)
        ranks = stats.rankdata(-estimate[place]) - stats.rankdata(-true)
        assert error[place] == pytest.approx(np.abs(ranks).mean(), rel=1e-14)
    assert loss.min() >= 0 and loss.max() > 1
    assert metrics.relative_dcg(true, true) == pytest.approx(0, abs=1e-13)
    assert metrics.rank_error(true, true) == 0
    assert metrics.rank_error(-true, true) == pytest.approx(6)  # the order reversed: 11, 9, ..., 9, 11 on average


def test_arms_without_an_estimate_are_ranked_last():
    true = np.array([3.0, 2.0, 1.0])
    assert metrics.rank_error(np.array([np.nan, 2.0, 1.0]), true) == pytest.approx(4 / 3)
    assert metrics.relative_dcg(np.array([3.0, np.nan, np.nan]), true) == pytest.approx(0, abs=1e-13)


def test_a_worse_ranking_is_a_loss_whatever_the_sign_of_the_means():
    for true in ([1.0, 2.0], [-2.0, -1.0]):
        assert metrics.relative_dcg(np.array([2.0, 1.0]), np.array(true)) > 1
    assert np.isnan(metrics.relative_dcg(np.array([2.0, 1.0]), np.zeros(2)))


def test_realised_error_is_the_root_mean_square_over_replications(runs):
    realised = runs.realised_error()
    for k, (c, n) in ((k, cn) for k in range(2) for cn in enumerate(runs.checkpoints.tolist())):
        per_arm = []
        for i in range(5):
            misses = [(runs.mean[k, r, c, i] - FIVE.mean[i]) ** 2 for r in range(6)]
            per_arm.append(math.inf if any(map(math.isnan, misses)) else math.sqrt(sum(misses) / 6))
        assert realised[k, c] == pytest.approx(math.sqrt(n) * sum(per_arm) / 5, rel=1e-12)
    assert np.isinf(realised[:, 0]).all() and np.isfinite(realised[:, 1:]).all()


def test_for_a_fixed_allocation_the_realised_error_is_that_of_the_formula():
    n_replications, shares = 2000, [0.1, 0.1, 0.2, 0.4, 0.2]
    fixed = eq.simulate(eq.Fixed(allocation=shares), FIVE, 200, n_replications, seed=4, checkpoints=[50, 200])
    assert np.ptp(fixed.error(), axis=1).max() == 0
    formula = fixed.error()[0, 0]
    # The root mean square of m Gaussian errors has the relative standard error 1 / sqrt(2 m); arms are independent.
    spread = [
        math.sqrt(sum((s**2 / x) for s, x in zip(FIVE.std, fixed.frequency[0, 0, c], strict=True))) / 5 for c in (0, 1)
    ]
    difference = fixed.realised_error()[0] - formula
    assert (np.abs(difference) < 4 * np.array(spread) / math.sqrt(2 * n_replications)).all()


def test_means_standard_errors_and_quantiles_over_replications(runs):
    values = runs.rescaled_regret(reward_weight=0.9)[:, :, 1:]
    summary = metrics.summarise(values, quantiles=[0.05, 0.5, 0.95])
    assert summary.mean.shape == summary.standard_error.shape == (2, 3)
    assert summary.quantiles.shape == (3, 2, 3)
    for k, c in np.ndindex(2, 3):
        sample = sorted(values[k, :, c].tolist())
        mean = sum(sample) / 6
        assert summary.mean[k, c] == pytest.approx(mean)
        deviations = sum((x - mean) ** 2 for x in sample)
        assert summary.standard_error[k, c] == pytest.approx(math.sqrt(deviations / 5 / 6))
        assert summary.quantiles[1, k, c] == pytest.approx((sample[2] + sample[3]) / 2)
        assert summary.quantiles[0, k, c] == pytest.approx(sample[0] + 0.25 * (sample[1] - sample[0]))


def test_infinite_values_are_summarised_without_a_warning():
    values = np.array([[[np.inf, 1.0, 1.0]], [[np.inf, 2.0, 2.0]], [[np.inf, 3.0, np.inf]]])
    summary = metrics.summarise(values, quantiles=[0.0, 0.5, 0.9], axis=0)
    assert summary.mean.tolist() == [[np.inf, 2.0, np.inf]]
    assert np.isnan(summary.standard_error[0, [0, 2]]).all()
    assert summary.standard_error[0, 1] == pytest.approx(1 / math.sqrt(3))
    assert summary.quantiles[:, 0].tolist() == [[np.inf, 1.0, 1.0], [np.inf, 2.0, 2.0], [np.inf, 2.8, np.inf]]


def test_one_replication_has_no_standard_error():
    summary = metrics.summarise(np.array([[2.0]]))
    assert summary.mean.tolist() == [2.0]
    assert np.isnan(summary.standard_error).all()
    assert summary.quantiles.tolist() == [[2.0]] * 3


def test_bad_levels_and_weights_are_refused(runs):
    with pytest.raises(eq.InvalidInput, match=r"quantiles must be in \[0, 1\]; got 5"):
        metrics.summarise(np.ones((1, 2)), quantiles=[5])
    for method in (runs.tradeoff, runs.regret, runs.rescaled_regret, runs.frequency_distance, runs.target_distance):
        with pytest.raises(eq.InvalidInput, match=r"reward_weight must be in \[0, 1\]; got 1.3"):
            method(reward_weight=1.3)


def test_runs_can_be_judged_by_another_objective(runs):
    best = eq.optimal_allocation(FIVE.mean, FIVE.std, reward_weight=0.9, objective=eq.MEAN_SQUARE)
    judged = {"reward_weight": 0.9, "objective": eq.MEAN_SQUARE}
    values, regret, rescaled = runs.tradeoff(**judged), runs.regret(**judged), runs.rescaled_regret(**judged)
    distance, to_target = runs.frequency_distance(**judged), runs.target_distance(**judged)
    most = eq.tradeoff(best, FIVE.mean, FIVE.std, **judged)
    for place, n, pulls in each(runs):
        share = np.array(pulls) / n
        value = eq.tradeoff(share, FIVE.mean, FIVE.std, **judged)
        assert values[place] == pytest.approx(value, rel=1e-13)
        assert regret[place] == pytest.approx(most - value, rel=1e-9, abs=1e-13)
        assert rescaled[place] == pytest.approx(math.sqrt(n) * (most - value), rel=1e-9, abs=1e-12)
        assert distance[place] == pytest.approx(np.abs(share - best).max(), abs=1e-15)
        assert to_target[place] == pytest.approx(np.abs(runs.target[place] - best).max(), abs=1e-15, nan_ok=True)
    assert not np.allclose(regret[:, :, -1], runs.regret(reward_weight=0.9)[:, :, -1])
    with pytest.raises(eq.InvalidInput, match="importance must have 5 entries"):
        runs.regret(reward_weight=0.9, objective=eq.PowerObjective(importance=[1, 2]))
    with pytest.raises(eq.InvalidInput, match="objective must be an Objective such as ROOT_MEAN_SQUARE; got 'mse'"):
        runs.regret(reward_weight=0.9, objective="mse")


def test_a_policy_that_follows_another_objective_has_little_regret_by_it():
    policy = eq.ForcingBalance(reward_weight=0.5, objective=eq.MEAN_SQUARE)
    runs = eq.simulate(policy, FIVE, 20_000, 3, seed=1, checkpoints=[20_000])
    assert runs.regret(reward_weight=0.5, objective=eq.MEAN_SQUARE).max() < 1e-3
    assert runs.regret(reward_weight=0.5).min() > 0.01


@pytest.mark.parametrize("shift", [0.0, 1e6, 1e12, -1e12])
def test_regret_does_not_depend_on_a_reward_that_all_arms_share(shift):
    mean, std = np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.5, 2.0])
    rng = np.random.default_rng(1)
    frequency = rng.dirichlet(np.ones(3), size=50)
    for weight in (0.0, 0.5, 1.0):
        expected = metrics.regret(frequency, mean, std, reward_weight=weight)
        shifted = metrics.regret(frequency, mean + shift, std, reward_weight=weight)
        np.testing.assert_allclose(shifted, expected, rtol=1e-9, atol=1e-13)
        assert shifted.min() > -1e-13


def test_arms_that_are_equally_good_may_be_ranked_in_any_order():
    true = np.array([1.0, 3.0, 3.0, 3.0, 0.0])
    assert metrics.rank_error(np.array([1.0, 3.0, 4.0, 5.0, 0.0]), true) == 0
    assert metrics.rank_error(np.array([1.0, 5.0, 4.0, 3.0, 0.0]), true) == 0
    # The first arm is ranked one place too high, so an equal one is one place too low, beside its group.
    assert metrics.rank_error(np.array([3.5, 3.0, 4.0, 5.0, 0.0]), true) == pytest.approx(2 / 5)
    assert metrics.rank_error(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([1.0, 1.0])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("about", ["average", "every-arm", "best-arm"])
def test_shortfall_and_excess_are_0_at_the_optimum_and_trade_against_each_other(about):
    mean, std, kept = np.array([1.0, 1.5, 3.0]), np.array([1.0, 2.0, 1.5]), [0.3, 0.6, 0.9]
    frequency = np.array([eq.optimal_allocation(mean, std, information_kept=q, information_about=about) for q in kept])
    dial = {"information_kept": 0.6, "information_about": about}
    shortfall = metrics.reward_shortfall(frequency, mean, std, **dial)
    excess = metrics.error_excess(frequency, mean, std, **dial)
    assert shortfall[1] == pytest.approx(0, abs=1e-12) and excess[1] == pytest.approx(0, abs=1e-9)
    assert shortfall[0] < 0 < shortfall[2]
    # The error may be the smallest / sqrt(q).
    np.testing.assert_allclose(excess, np.sqrt(0.6 / np.array(kept)) - 1, atol=1e-9)


def test_excess_over_the_average_limit_is_that_of_the_error():
    mean, std = np.array([1.0, 2.0]), np.array([1.0, 3.0])
    frequency = np.array([[0.5, 0.5], [0.9, 0.1]])
    smallest = eq.error(eq.optimal_allocation(mean, std, reward_weight=0), std)
    expected = metrics.error(frequency, std) / (smallest / np.sqrt(0.4)) - 1
    np.testing.assert_allclose(metrics.error_excess(frequency, mean, std, information_kept=0.4), expected, rtol=1e-12)


def test_runs_report_shortfall_and_excess_rescaled_too():
    policy = eq.ForcingBalance(information_kept=0.7, information_about="every-arm", forcing=0.3)
    arms = eq.Gaussian(mean=[1, 1.5, 2], std=[1, 1, 2])
    runs = eq.simulate(policy, arms, horizon=4000, replications=8, checkpoints=[400, 4000], seed=2)
    dial = {"information_kept": 0.7, "information_about": "every-arm"}
    assert runs.reward_shortfall(**dial).shape == (1, 8, 2)
    assert np.abs(runs.error_excess(**dial)[..., -1]).mean() < 0.05
    assert np.abs(runs.reward_shortfall(**dial)[..., -1]).mean() < 0.02
    root = np.sqrt(runs.checkpoints)
    np.testing.assert_array_equal(runs.rescaled_error_excess(**dial), root * runs.error_excess(**dial))
    np.testing.assert_array_equal(runs.rescaled_reward_shortfall(**dial), root * runs.reward_shortfall(**dial))
