"""The fast copy of PooledBalance and of windowed draws in the simulator takes every decision of the strict rule."""

from __future__ import annotations

import numpy as np
import pytest
from endurance import short_and_full

import equipoise as eq
from equipoise.kernels import incremental_pooling as kept
from equipoise.kernels import play
from equipoise.kernels.decision import WORK_ROWS
from equipoise.kernels.information_solver import allocate_for_information
from equipoise.kernels.pooling import believe, expected_squares
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rules import AVERAGE
from equipoise.simulation import players

WINDOWED = {"tracking": "windowed"}


def arms_of(kind, n_arms):
    """Return arms of many kinds: with ties, without spread, with outliers, with rewards of all sizes."""
    rng = np.random.default_rng(n_arms)
    mean, std, place = rng.normal(1, 0.5, n_arms), rng.gamma(2, 0.3, n_arms), np.arange(n_arms)
    match kind:
        case "gaussian":
            return eq.Gaussian(mean=mean, std=std)
        case "far from 0":
            return eq.Gaussian(mean=1e6 + mean, std=std)
        case "tied":
            return eq.Gaussian(mean=np.full(n_arms, 2.0), std=np.full(n_arms, 0.5))
        case "of all sizes":
            return eq.Gaussian(mean=mean, std=10.0 ** rng.uniform(-8, 3, n_arms))
        case "tiny":
            return eq.Gaussian(mean=1e-200 * mean, std=1e-200 * std)
        case "constant":
            return eq.Gaussian(mean=mean, std=np.zeros(n_arms))
        case "half constant":
            return eq.Gaussian(mean=mean, std=np.where(place % 2, 0.0, 1.0))
        case "bernoulli":
            return eq.Bernoulli(mean=np.linspace(0.05, 0.6, n_arms))
        case "rare":
            return eq.Bernoulli(mean=np.linspace(0.005, 0.03, n_arms))
        case "certain":
            return eq.Bernoulli(mean=np.choose(place % 3, [1.0, 0.0, 0.4]))
        case "losses":
            return eq.Empirical(values=[[0.0] * (1 + i % 5) + [-0.3] for i in range(n_arms)])
        case "once neither 0 nor 1":
            odd = eq.Empirical(values=[[0.0] * 300 + [1.0] * 200 + [0.5]])
            return eq.Mixed(parts=[eq.Bernoulli(mean=np.linspace(0.2, 0.6, n_arms - 1)), odd])
        case "beta":
            return eq.Beta(a=rng.gamma(2, 1, n_arms) + 0.2, b=rng.gamma(2, 1, n_arms) + 0.2)
        case "heavy tails":
            return eq.Empirical(values=[rng.standard_cauchy(300).tolist() for _ in range(n_arms)])
        case _:
            raise AssertionError(kind)


KINDS = ["gaussian", "far from 0", "tied", "of all sizes", "tiny", "constant", "half constant", "bernoulli", "rare"]
KINDS += ["certain", "losses", "once neither 0 nor 1", "beta", "heavy tails"]


def policies_for(n_arms):
    pooled, forcing = eq.PooledBalance, eq.ForcingBalance
    return [
        pooled(reward_weight=0.9, **WINDOWED),
        pooled(information_kept=1.0, **WINDOWED),
        pooled(information_kept=1.0),
        pooled(reward_weight=0.0, **WINDOWED, forcing=0.0, window=3),
        pooled(reward_weight=1.0, **WINDOWED, mixing=0.0, forcing=0.5),
        pooled(reward_weight=0.7, **WINDOWED, pooling=False, first_rewards=3, window=15),
        pooled(reward_weight=0.5, **WINDOWED, caution=0.0, curiosity=0.0, window=30),
        pooled(reward_weight=0.8, **WINDOWED, floor=0.5 / n_arms),
        pooled(reward_weight=0.9, **WINDOWED, window_growth=0.1),
        pooled(reward_weight=0.4, **WINDOWED, window=1, window_growth=1.0, forcing=0.0),
        pooled(reward_weight=0.9, **WINDOWED, window_growth=0.0),
        pooled(reward_weight=0.9, **WINDOWED, prior=eq.ArmPrior(means_apart=0.1)),
        pooled(reward_weight=0.9),
        pooled(reward_weight=0.5, caution=0.0, curiosity=0.0, forcing=0.0),
        pooled(reward_weight=1.0, pooling=False, first_rewards=3),
        forcing(reward_weight=0.9, **WINDOWED, forcing=0.01),
        forcing(reward_weight=0.99, **WINDOWED, forcing=0.3, window=1.5, mixing=0.2),
        forcing(reward_weight=0.3, **WINDOWED, mixing=0.0),
        forcing(reward_weight=1.0, **WINDOWED),
        forcing(reward_weight=0.9, forcing=0.1),
        pooled(information_kept=0.9, **WINDOWED),
        pooled(information_kept=0.5, **WINDOWED, forcing=0.0, window=3),
        pooled(information_kept=0.1, forcing=0.0),
        pooled(information_kept=0.01, caution=0.0, curiosity=0.0, forcing=0.0),
        pooled(information_kept=0.7, **WINDOWED, pooling=False, first_rewards=3),
        pooled(information_kept=0.7, **WINDOWED, window_growth=0.2),
        forcing(reward_weight=0.9, **WINDOWED, forcing=0.1, window_growth=0.3),
        forcing(information_kept=0.9, forcing=0.05, tracking="ratio"),
        forcing(information_kept=0.5, forcing=0.01),
        forcing(information_kept=0.1, **WINDOWED, forcing=0.05),
        forcing(information_kept=0.01, forcing=0.01, tracking="ratio"),
        forcing(information_kept=0.99, **WINDOWED, mixing=0.0),
    ]


def simulated_pulls(policy, arms, horizon, seed):
    return eq.simulate(policy, arms, horizon, 1, seed=seed, checkpoints=range(1, horizon + 1)).pulls[0, 0]


def strict_pulls(policy, arms, horizon, seed):
    """Return the pulls after each step when every decision is that of `decide`."""
    rewards = [arms.rewards(i, seed=seed, replication=0, count=horizon) for i in range(arms.n_arms)]
    stats, choose = eq.ArmStats(arms.n_arms, exact=False), policy.prepare(arms.n_arms)
    pulls = np.empty((horizon, arms.n_arms), np.int64)
    for k in range(horizon):
        arm = choose(stats, decision_uniform(seed, 0, k)).arm
        stats.assign(arm)
        stats.update(arm, rewards[arm][stats.pulls[arm]])
        pulls[k] = stats.pulls
    return pulls


@pytest.mark.parametrize("horizon", short_and_full(600, 6_000))
@pytest.mark.parametrize("n_arms", [2, 4, 5, 17, 64, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_every_decision_is_that_of_the_strict_rule(kind, n_arms, horizon):
    arms = arms_of(kind, n_arms)
    for index, policy in enumerate(policies_for(n_arms)):
        # A different half of the policies for each number of arms, in the short size; each kind meets all of them.
        if horizon > 600 or (index + n_arms) % 2 == 0:
            steps, seed = horizon + 5 * n_arms, n_arms + index
            expected = strict_pulls(policy, arms, steps, seed)
            np.testing.assert_array_equal(simulated_pulls(policy, arms, steps, seed), expected, repr(policy))


@pytest.mark.parametrize("n_arms", [3, 22])
@pytest.mark.parametrize("kind", ["gaussian", "tied", "bernoulli", "rare", "beta"])
def test_windows_that_have_grown_long_are_those_of_the_strict_rule(kind, n_arms):
    """Over 5,500 steps windows grow from 10 to 100, or to 275 where nothing limits them."""
    arms = arms_of(kind, n_arms)
    for index, policy in enumerate(
        [
            eq.PooledBalance(reward_weight=0.9, **WINDOWED),
            eq.PooledBalance(information_kept=0.6, **WINDOWED),
            eq.ForcingBalance(reward_weight=0.9, **WINDOWED, forcing=0.05),
        ]
    ):
        expected = strict_pulls(policy, arms, 5_500, index)
        np.testing.assert_array_equal(simulated_pulls(policy, arms, 5_500, index), expected, repr(policy))


def test_the_comparison_would_notice_another_rule():
    arms = arms_of("gaussian", 17)
    for tracking in ("marginal", "windowed"):
        policy, other = (eq.PooledBalance(reward_weight=w, tracking=tracking) for w in (0.9, 0.9 + 1e-3))
        assert not np.array_equal(simulated_pulls(other, arms, 2_000, 1), strict_pulls(policy, arms, 2_000, 1))


def strict_steps(policy, arms, horizon):
    """Return how many steps of a simulation the strict rule decided."""
    n_arms, arena = arms.n_arms, players.new_arena(arms)
    outputs = (np.zeros((1, n_arms), np.int64), *np.zeros((3, 1, n_arms)))
    replication = players.Replication(arms, 3, 0, np.array([horizon]), arena, outputs)
    players.play(policy, replication, horizon, tick=lambda _: True, pace=players.Pace())
    return int(arena.counters[play.STRICT])


@pytest.mark.parametrize("kind", ["gaussian", "tied", "bernoulli", "rare", "losses", "beta"])
@pytest.mark.parametrize("n_arms", [2, 5, 64])
def test_few_steps_need_the_strict_rule(kind, n_arms):
    arms, steps = arms_of(kind, n_arms), 20_000
    turns = 4 * n_arms  # forced, in random order
    for tracking, forced in (("windowed", turns), ("marginal", 0)):
        for dial in ({"reward_weight": 0.9}, *({"information_kept": q} for q in (0.9, 0.5, 0.1))):
            if n_arms > 5 and tracking == "windowed" and dial == {"information_kept": 0.1}:
                continue  # where little is kept of many arms, a window of 100 pulls has gains closer than can be told
            policy = eq.PooledBalance(**dial, tracking=tracking, forcing=0.0)
            assert strict_steps(policy, arms, steps) - forced <= 0.03 * steps
    if kind in ("gaussian", "tied", "beta"):  # spread in every arm from the second reward on
        for tracking in ("difference", "ratio", "windowed"):
            for q in (0.9, 0.5, 0.1, 0.01):
                policy = eq.ForcingBalance(information_kept=q, tracking=tracking, forcing=0.01)
                assert strict_steps(policy, arms, steps) <= 0.001 * steps


def beliefs_to_weigh(rng, rates):
    n_arms = int(rng.integers(2, 90))
    pulls = rng.integers(4, 10 ** rng.integers(1, 5) + 4, n_arms)
    if rates:
        mean = rng.binomial(pulls, rng.beta(1, 8, n_arms)) / pulls
        std = np.sqrt(mean * (1 - mean) * pulls / (pulls - 1))
        if mean.max() == 0.0:
            mean[0], std[0] = 1 / pulls[0], np.sqrt(1 / pulls[0])
        return pulls, mean, std
    std = rng.lognormal(0, rng.choice([0.05, 0.5]), n_arms)
    return pulls, 5 + rng.choice([0.01, 1.0, 10.0]) * rng.normal(size=n_arms), std


def change_an_arm(rng, rates, curiosity, pulls, mean, std, state, scalars):
    """Tell a random arm a reward."""
    changed = int(rng.integers(pulls.size))
    before = float(mean[changed]), float(std[changed])
    count, pulls[changed] = pulls[changed], pulls[changed] + 1
    if rates:
        mean[changed] = (round(mean[changed] * count) + (rng.random() < 0.1)) / pulls[changed]
        std[changed] = np.sqrt(mean[changed] * (1 - mean[changed]) * pulls[changed] / count)
    else:
        mean[changed] += rng.normal() * std[changed] / count
        std[changed] *= 1 + 0.5 * rng.normal() / count
    kept.count_pull(changed, curiosity, 1 / pulls.size, pulls, state)
    kept.learn(changed, *before, pulls, mean, std, state, scalars)


@pytest.mark.parametrize("rates", [False, True])
@pytest.mark.parametrize("n_steps", [1, 30])
def test_gains_differ_from_the_strict_ones_by_no_more_than_they_say(rates, n_steps):
    """After one step from scratch, and after many in which one arm at a time changed."""
    rng, weighed, sure = np.random.default_rng(9), 0, 0
    weight, caution, curiosity = 0.8, 2.0, 2.0
    for _ in range(200):
        pulls, mean, std = beliefs_to_weigh(rng, rates)
        n_arms = pulls.size
        state, scalars = np.empty((kept.ROWS, n_arms)), np.empty(kept.SCALARS)
        kept.begin(curiosity, 1 / n_arms, pulls, pulls, mean, std, state, scalars)
        expected = expected_squares(caution, n_arms) if n_arms > 3 else 1.0
        for _ in range(n_steps):
            t = int(pulls.sum()) + 1
            known = (pulls, mean, std, state, scalars)
            arm = kept.next_pull(t, t - 1, 0.0, 0, 0.0, weight, 0.0, curiosity, 1 / n_arms, 1, expected, pulls, *known)
            if _ < n_steps - 1:
                change_an_arm(rng, rates, curiosity, *known)
        if arm < 0:
            continue
        weighed += 1
        believed_mean, believed_std = np.empty((2, n_arms))
        believe(1, caution, pulls, mean, std, np.empty((2, n_arms)), believed_mean, believed_std)
        middle, coefficient = pulls + 0.5, 0.5 * (1 - weight) * t * np.sqrt(t)
        strict = weight * (believed_mean + curiosity * believed_std / middle)
        strict += coefficient / n_arms * believed_std / middle**1.5
        highest = state[kept.GAIN]
        # All gains may be shifted, as only differences between means count.
        least_shift, most_shift = strict - highest, strict - highest + state[kept.UNSURE]
        assert least_shift.max() <= most_shift.min()
        assert arm == np.argmax(strict)
        sure += np.ptp(strict) > 1e4 * state[kept.UNSURE].min()
    assert weighed > 150
    assert sure > 0.9 * weighed


@pytest.mark.parametrize("rates", [False, True])
@pytest.mark.parametrize("information", [0.9, 0.5, 0.1, 0.01])
def test_odds_that_keep_information_are_the_strict_ones_within_what_they_say(rates, information):
    rng, solved, sure = np.random.default_rng(7), 0, 0
    caution, curiosity = 2.0, 2.0
    for _ in range(40):
        pulls, mean, std = beliefs_to_weigh(rng, rates)
        n_arms = pulls.size
        state, scalars = np.empty((kept.ROWS, n_arms)), np.empty(kept.SCALARS)
        known = (pulls, mean, std, state, scalars)
        kept.begin(curiosity, 1 / n_arms, pulls, *known)
        expected = expected_squares(caution, n_arms) if n_arms > 3 else 1.0
        n = int(pulls.sum())
        kept.next_pull(n + 1, n, 0.0, 0, 0.0, 0.0, information, curiosity, 1 / n_arms, 1, expected, pulls, *known)
        for _ in range(10):
            change_an_arm(rng, rates, curiosity, *known)
            if scalars[kept.MODE] == kept.UNKNOWN:
                break
            reach = 0.0
            if rates:
                clear = kept.believe_rates(int(pulls.sum()), expected, n_arms > 3, state, scalars)
            else:
                clear, reach = kept.believe_spreads(expected, n_arms > 3, mean, std, state, scalars)
            odds, unsure = kept.odds_that_keep(information, 1 / n_arms, reach, state, scalars) if clear else (0.0, 0.0)
            if odds == 0.0:
                continue
            believed_mean, believed_std, share, no_floor = np.zeros((4, n_arms))
            even, work = np.full(n_arms, 1 / n_arms), np.empty((WORK_ROWS, n_arms))
            believe(1, caution, pulls, mean, std, np.empty((2, n_arms)), believed_mean, believed_std)
            beliefs = (believed_mean, believed_std, even, no_floor, work, share)
            weight = allocate_for_information(AVERAGE, information, 0.0, 0.5, *beliefs)
            strict = weight / (1 - weight)
            assert abs(odds - strict) <= (unsure + 1e-15 / (1 - weight)) * strict
            solved, sure = solved + 1, sure + (unsure < 1e-4)
    assert solved > 250
    assert sure > 0.8 * solved
