"""Every policy keeps the contract, and each does what its paper says."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass

import golden
import numpy as np
import pytest
from own_policies import CHANCE, DOptimal, LeastAssigned, W

import equipoise as eq
from equipoise.policies.compiled import CompiledPolicy
from equipoise.testing import PolicyContract

EXACT = [
    eq.ForcingBalance(**W),
    eq.ForcingBalance(**W, tracking="ratio"),
    eq.ForcingBalance(**CHANCE, tracking="windowed"),
    eq.ForcingBalance(**CHANCE, tracking="windowed", window=1.5, mixing=0.2),
    eq.ForcingBalance(**W, forcing=0.1, floor=0.1),
    eq.ForcingBalance(**W, forcing=0.1, floor=[0.1, 0.2, 0.0, 0.3]),
    eq.ForcingBalance(**W, forcing=0.1, objective=eq.MEAN_SQUARE),
    eq.ForcingBalance(**W, forcing=0.1, objective=eq.PowerObjective(power=0.75, importance=[1, 2, 3, 4])),
    eq.ForcingBalance(**W, forcing=0.1, objective=DOptimal()),
    eq.ForcingBalance(**CHANCE, tracking="sample", objective=DOptimal()),
    eq.PooledBalance(**W),
    eq.PooledBalance(**W, forcing=1.0, pooling=False, first_rewards=6, caution=0.0),
    eq.PooledBalance(**W, tracking="difference", floor=[0.1, 0.2, 0.0, 0.3]),
    eq.PooledBalance(**CHANCE, tracking="windowed"),
    eq.PooledBalance(**CHANCE, tracking="windowed", window=3, mixing=0.2, floor=0.1),
    eq.PooledBalance(**CHANCE, tracking="windowed", prior=eq.ArmPrior(means_apart=0.3, weight=10)),
    eq.GAFS(),
    eq.GAFSMax(forcing=0.3),
    eq.UCB(scale=0.7),
    eq.NaiveUCB(**W),
    eq.OptimisticBalance(**W, scale=0.5),
    eq.UCBExplore(**W, horizon=500),
    eq.EpsilonGreedy(exploration=0.2),
    eq.Uniform(),
    eq.Fixed(allocation=[0.1, 0.2, 0.3, 0.4]),
    eq.Fixed(allocation=[0.1, 0.2, 0.3, 0.4], tracking="windowed"),
    LeastAssigned(patience=3),
]


class TestExactPolicies(PolicyContract):
    policies = EXACT


class TestSampledPolicies(PolicyContract):
    """Thompson's draws belong to places, so permuting arms changes the draws; 6 standard errors of 2 x 1,500 draws."""

    policies = (
        eq.ThompsonBalance(**W, draws=1500),
        eq.ThompsonSampling(draws=1500),
        eq.ClippedThompson(draws=1500, floor=[0.05, 0.1, 0.0, 0.02]),
        eq.PostDiff(small_difference=0.2, draws=1500),
        eq.SARP(**W, draws=1500),
        eq.NARP(**W, draws=1500),
    )
    tolerance = 6 * math.sqrt(2 * 0.25 / 1500)


class TestPoliciesThatGiveUp(PolicyContract):
    """Forcing is what protects the paper's algorithm from first rewards that are all the same; here it is off."""

    policies = (eq.ForcingBalance(**CHANCE, tracking="sample"), eq.EpsilonGreedy(exploration=0.0))
    gives_up = True


@dataclass(frozen=True, kw_only=True, repr=False)
class ReferencePrior(eq.ThompsonSampling):
    """Thompson sampling as it was: without a prior, equal rewards count as a known spread of 0."""

    def rule(self):
        return super().rule()._replace(version=2)


@pytest.mark.parametrize("policy", [*TestPoliciesThatGiveUp.policies, ReferencePrior()])
def test_the_contract_finds_policies_that_give_up_arms(policy):
    contract = type("Contract", (PolicyContract,), {"policies": (policy,)})()
    with pytest.raises(AssertionError, match=type(policy).__name__):
        contract.test_an_arm_whose_first_rewards_are_all_the_same_is_pulled_again()


def test_the_contract_covers_every_policy():
    covered = {type(policy).__name__ for policy in (*EXACT, *TestSampledPolicies.policies)}
    shipped = {name for name in eq.__all__ if name in eq.Policy.names()}
    assert shipped <= covered
    assert len(shipped) == 17


def summary(pulls, mean, std):
    return eq.ArmStats.from_summary(pulls, mean, std)


def arm_of(policy, stats, uniform=0.5):
    return policy.choose(stats, uniform).arm


# ForcingBalance: Fig. 2 line by line, against a transcription in plain Python


def fig_2(reward_weight, forcing, rewards, horizon):
    """Fig. 2 with the estimates recomputed from all rewards at every step; rewards[i][s] is X_{i,s}."""
    n_arms = len(rewards)
    pulls, seen, arms = [0] * n_arms, [[] for _ in range(n_arms)], []
    for t in range(1, horizon + 1):
        least = min(range(n_arms), key=lambda i: (pulls[i], i))
        if pulls[least] < max(forcing * math.sqrt(t), 2):
            arm = least
        else:
            mean, std = [np.mean(x) for x in seen], [np.std(x, ddof=1) for x in seen]
            target = eq.optimal_allocation(mean, std, reward_weight=reward_weight)
            arm = int(np.argmax([target[i] - pulls[i] / (t - 1) for i in range(n_arms)]))
        arms.append(arm)
        seen[arm].append(rewards[arm][pulls[arm]])
        pulls[arm] += 1
    return arms


@pytest.mark.parametrize(("weight", "forcing"), [(0.9, 1.0), (0.9, 0.1), (0.3, 0.0), (0.0, 2.0), (1.0, 1.0)])
def test_forcing_balance_is_fig_2(weight, forcing):
    rng = np.random.default_rng(4)
    rewards = rng.normal(golden.FIVE_MEANS, golden.FIVE_STDS, size=(600, 5)).T
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=weight, forcing=forcing), 5)
    arms = []
    for _ in range(600):
        arm = bandit.ask()
        bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
        arms.append(arm)
    assert arms == fig_2(weight, forcing, rewards, 600)


def test_an_arm_with_fewer_than_two_rewards_is_forced_whatever_the_forcing():
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=1.0, forcing=0.0), 3)
    choices = []
    for _ in range(7):
        choices.append(bandit.peek())
        bandit.tell(bandit.ask(), 1.0)
    assert [choice.arm for choice in choices[:6]] == [0, 1, 2, 0, 1, 2]
    assert [choice.forced for choice in choices] == [True] * 6 + [False]


def test_forcing_counts_assignments_and_estimates_count_rewards():
    policy = eq.ForcingBalance(reward_weight=0.5, forcing=1.0)
    stats = summary([30, 30, 30], [1, 2, 3], [1, 1, 1])
    assert not policy.choose(stats, 0.5).forced
    target = policy.target(stats)
    for _ in range(400):
        stats.assign(2)
    assert policy.target(stats) == pytest.approx(target, abs=0)  # no reward came, so the estimates say the same
    lacking = int(np.argmax(target - stats.assigned / 490))
    assert lacking != 2
    assert policy.choose(stats, 0.5) == (lacking, 1.0, False)  # 30 >= sqrt(491), and arm 2 has more than its share
    for _ in range(500):
        stats.assign(2)
    assert policy.choose(stats, 0.5) == (0, 1.0, True)  # 30 < sqrt(991)


def test_rewards_that_never_come_leave_a_balanced_experiment():
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=0.9), 4)
    bandit.ask(400)
    assert bandit.stats.assigned.tolist() == [100] * 4


def test_tracking_rules_choose_as_their_names_say():
    # Target (1/3, 2/3) by weight 0 and stds 1 : 2^1.5; 40 and 60 pulls so far.
    stats = summary([40, 60], [0, 0], [1, 2**1.5])
    options = {"reward_weight": 0.0, "forcing": 0.0}
    assert eq.ForcingBalance(**options).target(stats) == pytest.approx([1 / 3, 2 / 3])
    assert arm_of(eq.ForcingBalance(**options), stats) == 1
    assert arm_of(eq.ForcingBalance(**options, tracking="ratio"), stats) == 1
    sample = eq.ForcingBalance(**options, tracking="sample")
    assert sample.probabilities(stats) == pytest.approx([1 / 3, 2 / 3])
    windowed = eq.ForcingBalance(**options, tracking="windowed", window=50, mixing=0.1)
    # 50 pulls ahead the target asks for (50, 100): 10 more of the first, 40 more of the second.
    assert windowed.probabilities(stats) == pytest.approx([0.05 + 0.9 * 0.2, 0.05 + 0.9 * 0.8])
    narrow = eq.ForcingBalance(**options, tracking="windowed", window=1, mixing=0.0)
    assert narrow.probabilities(stats) == pytest.approx([0, 1])


def test_difference_and_ratio_disagree_where_they_should():
    # Frequencies (0.1, 0.5, 0.4): the second arm lacks most, the first lacks most in proportion.
    stats, shares = summary([10, 50, 40], [0] * 3, [1] * 3), [0.15, 0.65, 0.2]
    assert arm_of(eq.Fixed(allocation=shares), stats) == 1
    assert arm_of(eq.Fixed(allocation=shares, tracking="ratio"), stats) == 0


def test_a_fixed_allocation_uses_its_window_and_mixing():
    stats = summary([40, 60], [0, 0], [1, 1])
    policy = eq.Fixed(allocation=[1 / 3, 2 / 3], tracking="windowed", window=50, mixing=0.1)
    assert policy.probabilities(stats) == pytest.approx([0.05 + 0.9 * 0.2, 0.05 + 0.9 * 0.8])


@pytest.mark.parametrize(("t", "window"), [(101, 10), (1_001, 50.05), (100_001, 5_000.05)])
@pytest.mark.parametrize("kind", ["solved", "by its derivative", "fixed"])
def test_a_window_grows_with_the_experiment(kind, t, window):
    """Chances go by what each arm lacks to meet the target a twentieth of the steps so far from now."""
    pulls = np.array([0.35, 0.65]) * (t - 1)
    stats = summary(pulls.astype(int), [0, 0], [1, 2**1.5])
    windowed = {"tracking": "windowed", "mixing": 0.0}
    policy = {
        "solved": eq.ForcingBalance(reward_weight=0.0, forcing=0.0, **windowed),
        "by its derivative": eq.ForcingBalance(reward_weight=0.0, forcing=0.0, objective=DOptimal(), **windowed),
        "fixed": eq.Fixed(allocation=[0.4, 0.6], **windowed),
    }[kind]
    lack = np.maximum(policy.target(stats) * (t - 1 + window) - stats.pulls, 0)
    assert policy.probabilities(stats) == pytest.approx(lack / lack.sum())
    constant = dataclasses.replace(policy, window_growth=0.0)
    lack = np.maximum(policy.target(stats) * (t - 1 + 10) - stats.pulls, 0)
    assert constant.probabilities(stats) == pytest.approx(lack / lack.sum())


def test_windowed_tracking_stays_close_to_the_target_and_never_gives_probability_zero():
    bandit = eq.Bandit(eq.Fixed(allocation=[0.1, 0.2, 0.7], tracking="windowed", window=10, mixing=0.03), 3, seed=9)
    lowest = 1.0
    for _ in range(3000):
        lowest = min(lowest, bandit.policy.probabilities(bandit.stats).min())
        bandit.ask()
    assert lowest >= 0.01 - 1e-12
    # Plain sampling would miss by about sqrt(n p (1 - p)) = 25 pulls; the gap here is corrected within the window.
    assert np.abs(bandit.stats.assigned - [300, 600, 2100]).max() <= 12


# The other policies, against their formulas


def test_uniform_is_round_robin():
    assert eq.Bandit(eq.Uniform(), 3).ask(7) == [0, 1, 2, 0, 1, 2, 0]


def test_ucb_maximises_its_index():
    stats = summary([20, 30, 50], [1.0, 1.1, 1.2], [1, 1, 1])
    for scale in (0.0, 0.5, 1.0, 5.0):
        index = stats.mean + scale * np.sqrt(np.log(101) / stats.pulls)
        assert arm_of(eq.UCB(scale=scale), stats) == index.argmax()


def test_ucb_counts_pending_assignments_in_its_bonus():
    stats = summary([50, 50], [1.0, 1.01], [1, 1])
    assert arm_of(eq.UCB(scale=1.0), stats) == 1
    for _ in range(10):
        stats.assign(1)
    assert arm_of(eq.UCB(scale=1.0), stats) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda floor: eq.NaiveUCB(reward_weight=0.99, floor=floor),
        lambda floor: eq.OptimisticBalance(reward_weight=0.9999, floor=floor),
        lambda floor: eq.UCBExplore(reward_weight=0.99, horizon=10_000, floor=floor),
        lambda floor: eq.ForcingBalance(reward_weight=0.99, floor=floor),
        lambda floor: eq.PooledBalance(reward_weight=0.99, floor=floor),
    ],
)
def test_every_target_keeps_its_floors(make):
    stats = summary([4000, 4000, 4000], [0.0, 5.0, 1.0], [0.1, 0.1, 0.1])
    assert make(0.0).target(stats)[0] < 0.2
    assert make([0.2, 0.0, 0.1]).target(stats)[[0, 2]] == pytest.approx([0.2, 0.1])


def test_thompson_balance_keeps_its_floors():
    # Below its floor of 0.3, the worst arm is the furthest behind in every draw; without floors it never is.
    stats = summary([400, 4000, 4000], [0.0, 5.0, 1.0], [0.1, 0.1, 0.1])
    options = {"reward_weight": 0.99, "draws": 200}
    assert eq.ThompsonBalance(**options).probabilities(stats)[0] == 0
    assert eq.ThompsonBalance(**options, floor=[0.3, 0, 0]).probabilities(stats)[1] < 1


def test_thompson_draws_anew_at_every_step():
    policy, stats = eq.ThompsonSampling(draws=64), summary([9, 9], [0.0, 0.0], [1, 1])
    before = policy.probabilities(stats)
    stats.assign(0)
    assert policy.probabilities(stats).tolist() != before.tolist()


@pytest.mark.parametrize(
    "policy",
    [
        eq.OptimisticBalance(reward_weight=0.5, scale=1e100),
        eq.NaiveUCB(reward_weight=0.5, failure_probability=1e-320),
        eq.ForcingBalance(reward_weight=0.5, objective=eq.PowerObjective(power=4.0)),
        eq.UCBExplore(reward_weight=0.5, horizon=10**15, failure_probability=1e-320),
    ],
)
def test_extreme_parameters_still_give_a_target(policy):
    target = policy.target(summary([50, 50, 50], [0, 1e3, 2e3], [1e3, 2e3, 5e3]))
    assert target.sum() == pytest.approx(1)
    assert (target >= 0).all()


def test_gafs_shares():
    stats = summary([50, 50], [0, 0], [1, 8])
    assert eq.GAFS().target(stats) == pytest.approx([0.2, 0.8])
    assert eq.GAFSMax().target(stats) == pytest.approx([1 / 65, 64 / 65])
    assert eq.GAFSMax().target(summary([50, 50], [0, 0], [0, 0])) == pytest.approx([0.5, 0.5])
    assert eq.GAFS().target(summary([50, 50], [0, 0], [0, 0])) == pytest.approx([0.5, 0.5])


def test_naive_and_optimistic_balance_solve_for_their_bounds():
    stats = summary([40, 60, 30], [1.0, 1.1, 1.2], [1.0, 2.0, 0.02])
    t, n_arms, failure = 131, 3, 0.05
    d = failure / (4 * n_arms * t * (t + 1))
    upper = stats.mean + 2 * np.sqrt(np.log(1 / d) / (2 * stats.pulls))
    radius = 2 * np.sqrt(2 * np.log(2 / d) / stats.pulls)
    for policy, bound in [
        (eq.NaiveUCB(reward_weight=0.4, failure_probability=0.05, scale=2), np.maximum(0.01, stats.std - radius)),
        (eq.OptimisticBalance(reward_weight=0.4, failure_probability=0.05, scale=2), stats.std + radius),
    ]:
        expected = eq.optimal_allocation(upper, bound, reward_weight=0.4)
        assert policy.target(stats) == pytest.approx(expected, rel=1e-12)


def test_ucb_explore_mixes_uniform_and_ucb_by_the_horizon():
    stats = summary([40, 60, 30], [1.0, 1.1, 1.2], [1.0, 2.0, 0.02])
    width = np.sqrt(np.log(2 / 0.05) / 2)
    policy = eq.UCBExplore(reward_weight=0.4, horizon=1000)
    expected = eq.optimal_allocation(
        stats.mean + width / np.sqrt(stats.pulls), np.full(3, width / np.sqrt(1000)), reward_weight=0.4
    )
    assert policy.target(stats) == pytest.approx(expected, rel=1e-12)
    # For the objective itself: the value of T pulls is w sum(T mean)/n - (1 - w)/K sum(half-widths).
    spread = [np.ptp(eq.UCBExplore(reward_weight=0.4, horizon=n).target(stats)) for n in (10, 1_000, 100_000)]
    assert spread == sorted(spread)


def test_epsilon_greedy_explores_every_arm():
    stats = summary([10, 10, 10], [1, 3, 2], [1, 1, 1])
    assert eq.EpsilonGreedy(exploration=0.3).probabilities(stats) == pytest.approx([0.1, 0.8, 0.1])
    assert eq.EpsilonGreedy(exploration=0.0).probabilities(stats) == pytest.approx([0, 1, 0])
    assert arm_of(eq.EpsilonGreedy(exploration=0.3), stats, uniform=1 - 2.0**-53) == 2


def test_fixed_with_the_optimum_is_the_oracle():
    share = eq.optimal_allocation(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.9)
    bandit = eq.Bandit(eq.Fixed(allocation=share), 5)
    bandit.ask(10_000)
    assert np.abs(bandit.stats.assigned - 10_000 * share).max() < 2


def chance_of_second(first, second, low, high):
    """P(second > first) of independent continuous variables, by integration."""
    x = np.linspace(low, high, 200_001)
    return np.trapezoid(second.pdf(x) * first.cdf(x), x)


def assert_sampled(state, exact, draws=100_000):
    share = eq.ThompsonSampling(draws=draws).probabilities(state)[1]
    assert abs(share - exact) < 4 * math.sqrt(exact * (1 - exact) / draws)


def test_thompson_sampling_draws_from_student_posteriors():
    from scipy import stats as distributions

    # The prior is one more degree of freedom, of typical spread: the geometric mean of the variances, 0.8^2 x 1.0^2.
    pulls, mean, std = np.array([12, 20]), [0.0, 0.4], np.array([1.0, 0.8])
    spread = np.sqrt((0.8 + (pulls - 1) * std**2) / pulls)
    first, second = (distributions.t(pulls[i], mean[i], spread[i] / np.sqrt(pulls[i])) for i in range(2))
    assert_sampled(summary(pulls, mean, std), chance_of_second(first, second, -8, 8))


def test_an_arm_without_spread_may_still_get_what_other_arms_get():
    from scipy import stats as distributions

    # Eight rewards of 1; the other arm has -1 and 2, 1.5 times as many of the latter, which is not yes or no.
    other = [-1.0, 2.0, 2.0, -1.0, 2.0]
    state = eq.ArmStats(2)
    for arm, rewards in enumerate([[1.0] * 8, other]):
        for reward in rewards:
            state.assign(arm)
            state.update(arm, reward)
    away = np.sum((np.array(other) - 1) ** 2) / abs(np.sum(np.array(other) - 1))
    typical = np.var(other, ddof=1)
    first = distributions.t(8, 1.0, math.sqrt(min(away**2 / 8, typical) / 8))
    second = distributions.t(5, np.mean(other), math.sqrt((typical + 4 * typical) / 5 / 5))
    assert_sampled(state, chance_of_second(first, second, -60, 60))


@pytest.mark.parametrize("success", [1.0, -2.5, 1e-30])
@pytest.mark.parametrize(("pulls", "successes"), [([40, 5], [2, 0]), ([30, 9], [29, 9]), ([12, 20], [5, 11])])
def test_thompson_sampling_draws_rates_of_yes_or_no_from_beta_posteriors(success, pulls, successes):
    from scipy import stats as distributions

    n, s = np.array(pulls), np.array(successes)
    rate = (s.sum() + 0.5) / (n.sum() + 1)
    first, second = (
        distributions.beta(s[i] + rate / min(rate, 1 - rate), n[i] - s[i] + (1 - rate) / min(rate, 1 - rate))
        for i in range(2)
    )
    exact = chance_of_second(first, second, 0, 1)
    std = abs(success) * np.sqrt(s * (n - s) / n / (n - 1))
    assert_sampled(summary(n, success * s / n, std), exact if success > 0 else 1 - exact)


@pytest.mark.parametrize("reward", [0.0, 3.0, -1.0])
def test_arms_without_any_difference_are_equally_likely(reward):
    stats = summary([5, 5, 5], [reward] * 3, [0.0] * 3)
    assert eq.ThompsonSampling(draws=6000).probabilities(stats) == pytest.approx([1 / 3] * 3, abs=0.03)


RARE, COMMON = np.linspace(0.01, 0.06, 10), np.linspace(0.3, 0.7, 5)
RIVER = {"rare": (RARE, 5000, 0.04793, 0.00020), "common": (COMMON, 1000, 0.67092, 0.00065)}
"""Rates, steps, and mean reward with its standard error of river 0.26.1: Beta Thompson sampling, 400 and 1,000 runs."""


@pytest.mark.parametrize("rates", RIVER)
@pytest.mark.parametrize("policy", [eq.ThompsonSampling(draws=1), eq.ThompsonBalance(reward_weight=1.0, draws=1)])
def test_posterior_sampling_earns_at_least_what_rivers_does(policy, rates):
    mean, horizon, reward, error = RIVER[rates]
    pulls = eq.simulate(policy, eq.Bernoulli(mean=mean), horizon, 60, seed=1, checkpoints=[horizon]).pulls[0, :, 0]
    ours = pulls @ mean / horizon
    assert ours.mean() > reward - 3 * math.hypot(error, ours.std(ddof=1) / math.sqrt(60))
    assert pulls.min() > 4  # no arm is given up, in any run


def test_probability_clipping_keeps_floors_and_the_proportions_of_the_rest():
    stats = summary([50] * 4, [0.0, 1.0, 1.1, 1.2], [1.0] * 4)
    free = eq.ThompsonSampling(draws=500).probabilities(stats)
    assert free[0] == 0 < free[1] < 0.2
    clipped = eq.ClippedThompson(draws=500, floor=[0.1, 0.0, 0.05, 0.0]).probabilities(stats)
    assert clipped == pytest.approx([0.1, *(0.9 * free[1:])])
    # Making room for the first arm pushes the second below its floor.
    room = float(free[1]) - 0.001
    twice = eq.ClippedThompson(draws=500, floor=[0.1, room, 0.0, 0.0]).probabilities(stats)
    assert twice == pytest.approx([0.1, room, *((0.9 - room) * free[2:] / free[2:].sum())])
    assert eq.ClippedThompson(floor=0.25).probabilities(stats) == pytest.approx([0.25] * 4)
    two = summary([50, 50], [0.0, 0.1], [1.0, 1.0])
    low = eq.ThompsonSampling(draws=500).probabilities(two)
    assert low.min() > 0.2
    assert eq.ClippedThompson(draws=500, floor=0.2).probabilities(two) == pytest.approx(low)


@pytest.mark.parametrize("n_arms", [2, 4])
def test_post_diff_assigns_evenly_as_often_as_arms_hardly_differ(n_arms):
    from scipy import stats as distributions

    rng, draws, small = np.random.default_rng(8), 20_000, 0.15
    pulls, mean, std = np.full(n_arms, 60), np.linspace(1.0, 1.1, n_arms), np.full(n_arms, 0.3)
    # The posterior by another route: with equal spreads, the prior's is the same.
    beliefs = distributions.t(60, mean, 0.3 / math.sqrt(60)).rvs(size=(draws, n_arms), random_state=rng)
    rate = np.mean(np.ptp(beliefs, axis=1) < small)
    best = np.bincount(beliefs.argmax(axis=1), minlength=n_arms) / draws
    found = eq.PostDiff(small_difference=small, draws=draws).probabilities(summary(pulls, mean, std))
    assert 0.1 < rate < 0.9
    assert found == pytest.approx(rate / n_arms + (1 - rate) * best, abs=6 * math.sqrt(0.25 / draws))


def test_post_diff_is_thompson_sampling_at_one_end_and_even_at_the_other():
    stats = summary([50, 60, 70], [0.0, 0.1, 0.2], [1.0, 1.0, 1.0])
    thompson = eq.ThompsonSampling(draws=64).probabilities(stats)
    assert eq.PostDiff(small_difference=0.0, draws=64).probabilities(stats) == pytest.approx(thompson, abs=1e-15)
    assert eq.PostDiff(small_difference=1e6, draws=64).probabilities(stats) == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("policy", [eq.SARP, eq.NARP])
def test_rate_policies_mix_at_the_rate_with_the_best_trade_off(policy, weight):
    from scipy.optimize import minimize_scalar

    pulls, mean, std = np.array([400, 500, 600]), np.array([1.0, 2.0, 1.5]), np.array([1.0, 0.5, 2.0])
    typical = np.exp(np.log(std**2).mean())
    spread = np.sqrt((typical + (pulls - 1) * std**2) / pulls)
    allocation = np.full(3, 1 / 3) if policy is eq.SARP else spread / spread.sum()

    def loss(rate):
        share = rate * allocation + (1 - rate) * np.eye(3)[1]
        with np.errstate(divide="ignore"):
            return -(weight * share @ mean - (1 - weight) * np.mean(spread / np.sqrt(share)))

    rate = 0.0 if weight == 1 else minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    # So many rewards that the second arm is the best in every draw.
    found = policy(reward_weight=weight, draws=8).probabilities(summary(pulls, mean, std))
    assert found == pytest.approx(rate * allocation + (1 - rate) * np.eye(3)[1], abs=1e-6)


@pytest.mark.parametrize("pulls", [2, 3, 4, 30])
def test_posterior_draws_have_the_right_distribution(pulls):
    from scipy import stats as distributions

    from equipoise.kernels.random import draw_posterior

    counts, mean, std = np.array([pulls]), np.array([2.0]), np.array([1.5])
    draws = np.array([draw_posterior(np.uint64(5), k, 0, counts, mean, std) for k in range(20_000)])
    student = distributions.t(pulls - 1, 2.0, 1.5 / math.sqrt(pulls))
    assert distributions.kstest(draws[:, 0], student.cdf).pvalue > 1e-3
    chi_square = (pulls - 1) * 1.5**2 / draws[:, 1] ** 2
    assert distributions.kstest(chi_square, distributions.chi2(pulls - 1).cdf).pvalue > 1e-3


def test_thompson_draws_differ_between_experiments_at_the_same_step():
    policy = eq.ThompsonSampling(draws=64)
    one, other = summary([9, 9], [0.0, 0.0], [1, 1]), summary([9, 9], [1e-9, 0.0], [1, 1])
    assert policy.probabilities(one).tolist() != policy.probabilities(other).tolist()


def test_other_objectives_steer_forcing_balance_elsewhere():
    stats = summary([200, 200, 200], [1.0, 1.5, 2.0], [0.5, 1.0, 2.0])
    targets = {
        objective: eq.ForcingBalance(reward_weight=0.3, objective=objective).target(stats)
        for objective in (eq.ROOT_MEAN_SQUARE, eq.MEAN_SQUARE, eq.PowerObjective(importance=[8, 1, 1]), DOptimal())
    }
    for objective, target in targets.items():
        expected = eq.optimal_allocation(stats.mean, stats.std, reward_weight=0.3, objective=objective)
        assert target == pytest.approx(expected, rel=1e-12)
    shares = np.array(list(targets.values()))
    assert len(np.unique(shares.round(3), axis=0)) == 4


def test_a_compiled_rule_and_the_same_rule_as_a_users_objective_choose_alike():
    """The paper's objective given by its derivative only, against the compiled kernel, decision by decision."""

    @dataclass(frozen=True, kw_only=True, repr=False)
    class PaperByDerivative(eq.SeparableObjective):
        def derivative(self, share, mean, std, reward_weight):
            return reward_weight * mean + (1 - reward_weight) * std / (2 * mean.size) / share**1.5

    rng = np.random.default_rng(6)
    bandits = [
        eq.Bandit(eq.ForcingBalance(reward_weight=0.8, forcing=0.2, objective=objective), 3, seed=1)
        for objective in (eq.ROOT_MEAN_SQUARE, PaperByDerivative())
    ]
    for _ in range(100):
        arms = [bandit.ask() for bandit in bandits]
        assert arms[0] == arms[1]
        reward = rng.normal(arms[0], 1 + arms[0])
        for bandit in bandits:
            bandit.tell(arms[0], reward)


# Names, JSON and bad parameters


def test_json_holds_the_name_and_all_parameters():
    policy = eq.ForcingBalance(reward_weight=0.9, floor=[0.1, 0.2], objective=eq.PowerObjective(power=1.0))
    assert json.loads(policy.to_json()) == {
        "name": "ForcingBalance",
        "reward_weight": 0.9,
        "forcing": 1.0,
        "floor": [0.1, 0.2],
        "objective": {"name": "PowerObjective", "power": 1.0, "importance": None},
        "tracking": "difference",
        "window": 10.0,
        "window_growth": 0.05,
        "mixing": 0.02,
    }
    assert repr(policy) == "ForcingBalance(reward_weight=0.9, floor=(0.1, 0.2), objective=PowerObjective(power=1.0))"


def test_parameters_left_out_of_json_keep_their_defaults():
    assert eq.Policy.from_dict({"name": "GAFS"}) == eq.GAFS(forcing=1.0)
    assert eq.Policy.from_dict({"name": "UCB", "scale": 2}) == eq.UCB(scale=2.0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"name": "Exp3"}, "unknown policy 'Exp3'; known are .*ForcingBalance, GAFS, GAFSMax.*Uniform"),
        ({"name": "CompiledPolicy"}, "unknown policy 'CompiledPolicy'"),
        ({"name": "UCB", "alpha": 1}, "UCB has no parameter alpha; allowed are scale"),
        ({"name": "Uniform", "alpha": 1}, "Uniform has no parameter alpha; allowed are none"),
        ({"name": "ForcingBalance"}, "give either reward_weight or information_kept; got neither"),
        ({"scale": 1}, "a policy must be an object with a name"),
        ([1], "a policy must be an object with a name"),
        ({"name": "ForcingBalance", "reward_weight": 0.5, "objective": {"name": "Huber"}}, "unknown objective 'Huber'"),
        ({"name": "ForcingBalance", "reward_weight": 0.5, "objective": 3}, "objective must be one of .*PowerObjective"),
    ],
)
def test_bad_names_list_what_is_allowed(data, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.Policy.from_dict(data)


def test_bad_json_is_said_to_be_bad_json():
    with pytest.raises(eq.InvalidInput, match="a policy must be valid JSON"):
        eq.Policy.from_json("{")


def test_a_family_member_of_another_kind_is_refused():
    with pytest.raises(eq.InvalidInput, match="expected a GAFS; got UCB"):
        eq.GAFS.from_dict({"name": "UCB"})


def test_a_second_policy_of_the_same_name_is_refused():
    with pytest.raises(eq.InvalidInput, match="policy names must be unique; UCB is already defined in equipoise"):
        type("UCB", (CompiledPolicy,), {"__module__": "elsewhere"})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: eq.ForcingBalance(reward_weight=1.3), r"reward_weight must be in \[0, 1\]; got 1\.3"),
        (lambda: eq.ForcingBalance(reward_weight=0.5, forcing=-1), r"forcing must be in \[0, inf\); got -1"),
        (lambda: eq.ForcingBalance(reward_weight=0.5, forcing=math.inf), r"forcing must be in \[0, inf\); got inf"),
        (
            lambda: eq.ForcingBalance(reward_weight=0.5, floor=[0.6, 0.6]),
            r"floor must add up to at most 1 over all arms; got 1\.2",
        ),
        (lambda: eq.ForcingBalance(reward_weight=0.5, floor=1.5), r"floor must be in \[0, 1\]; got 1\.5"),
        (
            lambda: eq.ForcingBalance(reward_weight=0.5, tracking="greedy"),
            "tracking must be one of difference, ratio, sample, windowed; got 'greedy'",
        ),
        (lambda: eq.ForcingBalance(reward_weight=0.5, window=0.5), r"window must be in \[1, inf\); got 0\.5"),
        (lambda: eq.ForcingBalance(reward_weight=0.5, mixing=2), r"mixing must be in \[0, 1\]; got 2"),
        (lambda: eq.NaiveUCB(reward_weight=0.5, failure_probability=0), r"failure_probability must be in \(0, 1\]"),
        (lambda: eq.UCBExplore(reward_weight=0.5, horizon=0), "horizon must be at least 1; got 0"),
        (lambda: eq.UCB(scale=-1), r"scale must be in \[0, 1e\+100\]; got -1"),
        (lambda: eq.EpsilonGreedy(exploration=1.1), r"exploration must be in \[0, 1\]; got 1\.1"),
        (lambda: eq.ThompsonSampling(draws=0), "draws must be at least 1; got 0"),
        (lambda: eq.ClippedThompson(floor=1.5), r"floor must be in \[0, 1\]; got 1\.5"),
        (lambda: eq.PostDiff(small_difference=-0.1), r"small_difference must be in \[0, 1e\+100\]; got -0\.1"),
        (lambda: eq.SARP(reward_weight=1.1), r"reward_weight must be in \[0, 1\]; got 1\.1"),
        (lambda: eq.Fixed(allocation=[0.5, 0.6]), r"allocation must add up to 1; got 1\.1"),
        (lambda: eq.PowerObjective(power=0), r"power must be in \(0, 4\]; got 0"),
        (lambda: eq.OptimisticBalance(reward_weight=0.5, scale=1e308), r"scale must be in \[0, 1e\+100\]"),
        (lambda: eq.UCBExplore(reward_weight=0.5, horizon=10**400), "horizon must be at most"),
        (lambda: eq.PowerObjective(importance=[0, 0]), "importance must be positive for at least one arm"),
        (lambda: eq.PowerObjective(importance=[1, -1]), "importance must not be negative"),
    ],
)
def test_bad_parameters_are_refused(make, message):
    with pytest.raises(eq.InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    "policy",
    [
        eq.Fixed(allocation=[0.5, 0.5]),
        eq.ForcingBalance(reward_weight=0.5, floor=[0.1, 0.1]),
        eq.ForcingBalance(reward_weight=0.5, floor=0.4),
        eq.ForcingBalance(reward_weight=0.5, objective=eq.PowerObjective(importance=[1, 2])),
    ],
)
def test_parameters_that_do_not_fit_the_arms_are_refused_at_once(policy):
    with pytest.raises(eq.InvalidInput, match=r"3 arms|3 entries"):
        eq.Bandit(policy, 3)


def test_a_users_policy_with_bad_probabilities_is_told_so():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Broken(eq.Policy):
        def probabilities(self, stats):
            return np.full(stats.n_arms, 0.5)

    with pytest.raises(eq.InvalidInput, match=r"Broken\.probabilities must give 3 probabilities that add up to 1"):
        eq.Bandit(Broken(), 3).ask()


def test_methods_of_a_subclass_of_a_built_in_policy_count():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class LastOnly(eq.ForcingBalance):
        def probabilities(self, stats):
            return np.eye(stats.n_arms)[-1]

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Backwards(eq.UCB):
        def choose(self, stats, uniform):
            choice = super().choose(stats, uniform)
            return choice._replace(arm=stats.n_arms - 1 - choice.arm)

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Hesitant(eq.EpsilonGreedy):
        def probabilities(self, stats):
            return 0.5 * super().probabilities(stats) + 0.5 / stats.n_arms

    @dataclass(frozen=True, kw_only=True, repr=False)
    class Both(Backwards):
        def probabilities(self, stats):
            return np.eye(stats.n_arms)[0]

    for policy in (LastOnly(**W), Backwards(), Both()):
        assert eq.Bandit(policy, 3).ask(4) == [2, 2, 2, 2]
    bandit = eq.Bandit(Hesitant(exploration=0.0), 2)
    for arm, reward in ((0, 0.0), (1, 1.0)):
        bandit.record(arm, reward)
    assert bandit.peek().probability in (0.25, 0.75)
    arms = eq.Gaussian(mean=[1, 2, 3], std=[1, 1, 1])
    runs = eq.simulate([LastOnly(**W), Backwards(), Both()], arms, 4, checkpoints=[4])
    assert runs.pulls[:, 0, 0].tolist() == [[0, 0, 4]] * 3


def test_a_policy_without_parameters_may_be_a_plain_class():
    class Alternating(eq.Policy):
        period = 2

        def probabilities(self, stats):
            return np.eye(stats.n_arms)[stats.n_assigned % self.period]

    policy = Alternating()
    assert policy.to_dict() == {"name": "Alternating"}
    assert repr(policy) == "Alternating()"
    assert eq.Policy.from_json(policy.to_json()) == policy == Alternating()
    assert hash(policy) == hash(Alternating())
    assert policy != eq.Uniform()
    assert eq.simulate(policy, eq.Bernoulli(mean=[0.1, 0.2]), 5).to_frame().height > 0
    policy.period = 1
    with pytest.raises(
        eq.InvalidInput, match=r"Alternating must be a dataclass.*; got a plain class with the attribute pe"
    ):
        policy.to_dict()


def test_a_plain_class_with_parameters_is_told_to_be_a_dataclass():
    class Patient(eq.Policy):
        def __init__(self, patience):
            self.patience = patience

        def probabilities(self, stats):
            return np.full(stats.n_arms, 1 / stats.n_arms)

    message = (
        r"Patient must be a dataclass.*__init__\nhint: decorate the class with @dataclass\(frozen=True, kw_only=True\)"
    )
    for act in (
        Patient(3).to_dict,
        lambda: eq.simulate(Patient(3), eq.Bernoulli(mean=[0.1, 0.2]), 5),
        lambda: eq.Policy.from_dict({"name": "Patient"}),
    ):
        with pytest.raises(eq.InvalidInput, match=message):
            act()
    assert "Patient object at" in repr(Patient(3))


FLOORED = [
    eq.ForcingBalance(reward_weight=1.0, forcing=0.0, floor=0.2, floor_decay=0.3),
    eq.ForcingBalance(information_kept=0.001, forcing=0.0, floor=0.2, floor_decay=0.3),
    eq.PooledBalance(reward_weight=1.0, floor=0.2, floor_decay=0.3, tracking="difference"),
    eq.NaiveUCB(reward_weight=1.0, floor=0.2, floor_decay=0.3),
    eq.OptimisticBalance(reward_weight=1.0, floor=0.2, floor_decay=0.3),
    eq.UCBExplore(reward_weight=1.0, horizon=1000, floor=0.2, floor_decay=0.3),
]


@pytest.mark.parametrize("policy", FLOORED, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("step", [21, 1_000, 10**6])
def test_a_floor_decreases_with_the_steps(policy, step):
    pulls = [(step - 1) // 3] * 3
    pulls[0] += step - 1 - sum(pulls)
    target = policy.target(eq.ArmStats.from_summary(pulls, [0.1, 0.2, 5.0], [0.001, 0.001, 0.001]))
    floor = 0.2 * step**-0.3
    assert policy.floors_at(step, 3) == pytest.approx([floor] * 3, rel=1e-13)
    assert target[:2] == pytest.approx([floor, floor], rel=1e-12)


def test_probabilities_of_thompson_sampling_keep_the_floor_of_the_step():
    policy = eq.ClippedThompson(floor=0.2, floor_decay=0.5)
    stats = eq.ArmStats.from_summary([50, 50], [0.0, 5.0], [0.1, 0.1])
    assert policy.probabilities(stats)[0] == pytest.approx(0.2 / np.sqrt(101))


def test_a_floor_decreases_for_an_objective_written_in_python():
    policy = eq.ForcingBalance(reward_weight=0.9, objective=DOptimal(), floor=0.3, floor_decay=0.5, forcing=0.0)
    stats = eq.ArmStats.from_summary([2, 2], [0.0, 900.0], [1.0, 1.0])
    assert policy.target(stats)[0] == pytest.approx(0.3 / np.sqrt(5))


@pytest.mark.endurance
@pytest.mark.parametrize("tracking", ["marginal", "windowed"])
def test_pulls_follow_a_floor_that_decreases(tracking):
    policy = eq.PooledBalance(reward_weight=1.0, floor=0.3, floor_decay=0.25, tracking=tracking, forcing=0.0, mixing=0)
    arms = eq.Gaussian(mean=[0, 1, 2], std=[0.1, 0.1, 0.1])
    runs = eq.simulate(policy, arms, horizon=10_000, checkpoints=[1_000, 10_000], seed=1)
    # The floor of the last step, as a share of all pulls; what was pulled before, at higher floors, counts.
    floor = 0.3 * runs.checkpoints**-0.25
    share = runs.frequency[0, 0, :, 0]
    assert (share >= floor * 0.99).all() and (share <= floor * 1.02 + 0.003).all()


def test_a_decay_of_0_changes_nothing_and_1_is_refused():
    assert "floor_decay" not in eq.PooledBalance(reward_weight=0.5).to_dict()
    assert eq.PooledBalance(reward_weight=0.5, floor_decay=0.5).to_dict()["floor_decay"] == 0.5
    assert eq.ForcingBalance(reward_weight=0.5, floor=0.1, floor_decay=0.0).rule().floor_decay == 0.0
    with pytest.raises(eq.InvalidInput, match="floor_decay must be below 1; got 1"):
        eq.PooledBalance(reward_weight=0.5, floor_decay=1)
    with pytest.raises(eq.InvalidInput, match=r"floor_decay must be in \[0, 1\]; got -0.1"):
        eq.UCBExplore(reward_weight=0.5, horizon=10, floor_decay=-0.1)
