"""PooledBalance: its beliefs against an independent computation, its pulls, and that no arm is starved."""

from __future__ import annotations

import math

import golden
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.kernels.decision import MARGIN_ROWS, RANDOM, best_pull, follow_margins
from equipoise.kernels.pooling import believe, common_success, write_logarithms
from equipoise.paper.instances import FIVE_ARMS, TWO_ARMS
from equipoise.policies.pooled_balance import recommended

CAUTION = 2.0


def summary(pulls, mean, std):
    return eq.ArmStats.from_summary(pulls, mean, std)


def beliefs(pulls, mean, std, *, pooling=True, caution=CAUTION):
    """Return what the kernel believes, moved back to the unit of the rewards as far as that matters: differences."""
    pulls, mean, std = np.array(pulls), np.array(mean, dtype=float), np.array(std, dtype=float)
    believed = np.empty((2, pulls.size))
    believe(int(pooling), caution, pulls, mean, std, np.empty((2, pulls.size)), *believed)
    return believed


def told(bandit, rewards):
    """Play rewards[arm][k] to a bandit until an arm has no more."""
    while True:
        arm = bandit.peek().arm
        count = bandit.stats.pulls[arm]
        if count >= len(rewards[arm]):
            return
        bandit.tell(bandit.ask(), rewards[arm][count])


# Beliefs, against the formulas of docs/pooled-balance.md in NumPy and SciPy


def allowed_squares(n_arms, caution):
    return n_arms - 3 + caution * (n_arms - 3) / n_arms * math.sqrt(2 * (n_arms - 3))


def shrunk(mean, noise, least, caution):
    """Paule and Mandel by bisection, in long doubles."""
    mean, noise = np.asarray(mean, np.longdouble), np.asarray(noise, np.longdouble)
    allowed = allowed_squares(mean.size, caution)

    def centre(between):
        return np.average(mean, weights=1 / (noise + between))

    def excess(between):
        return ((mean - centre(between)) ** 2 / (noise + between)).sum() - allowed

    low, high = np.longdouble(0), ((mean - mean.mean()) ** 2).sum() + noise.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    between = max(low, least)
    return mean + noise / (noise + between) * (centre(between) - mean)


def tempered(pulls, mean, std):
    """Return means and stds with one extreme reward made smaller, and no spread where there are rounding errors."""
    largest, others = np.argmax(std), np.arange(std.size) != np.argmax(std)
    n, second, centre = pulls[largest], std[others].max(), mean[others].mean()
    most = 6 * n**0.25 * second
    if 0 < most < std[largest]:
        errors = np.abs(mean[largest] - centre) / (std[largest] / np.sqrt(n))
        unsure = 3 * second / std[largest] + np.abs(mean[others] - centre).max() / (std[largest] / np.sqrt(n))
        if np.abs(errors - 1) <= 0.02 + unsure:
            mean = np.where(others, mean, centre + (mean - centre) * most / std[largest])
            std = np.where(others, std, most)
    return mean, np.where(std < 1e-9 * std.max(), 0, std)


def expected_beliefs(pulls, mean, std, caution):
    pulls, mean, std = (np.asarray(some, dtype=float) for some in (pulls, mean, std))
    origin = mean.mean()
    mean, std = tempered(pulls, mean, std)
    seen, d = std > 0, pulls - 1
    z = np.log(std[seen] ** 2) + 1 / d[seen] + 1 / (3 * d[seen] ** 2)
    u = 2 * (2 / d[seen] + 2 / d[seen] ** 2 + 4 / (3 * d[seen] ** 3))
    v = 9.0
    if seen.sum() > 3:
        v = np.clip(((z - z.mean()) ** 2).sum() / allowed_squares(seen.sum(), caution) - u.mean(), 0.0025, 9.0)
    typical = np.average(z, weights=1 / (u + v))
    strength = (1 + math.sqrt(1 + 2 * v)) / v
    prior = math.exp(typical - 1 / strength - 1 / (3 * strength**2))
    unit = math.exp(typical / 2)
    rare = max(strength, 4)
    spread = np.where(
        seen, np.sqrt((strength * prior + d * std**2) / (strength + d - 1.5)), unit * np.sqrt(rare / (rare + d))
    )
    found = mean
    if mean.size > 3:
        found = shrunk(mean, spread**2 / pulls, 0.001 * math.exp(typical), caution)
    return np.asarray((found - origin) / unit, float), spread / unit


def same_beliefs(pulls, mean, std, caution=CAUTION):
    ours, wanted = beliefs(pulls, mean, std, caution=caution), expected_beliefs(pulls, mean, std, caution)
    assert ours[1] == pytest.approx(wanted[1], rel=1e-7)
    # The variance between means is found to 1e-3.
    assert ours[0] == pytest.approx(wanted[0], rel=2e-3, abs=2e-3 * max(1.0, np.abs(wanted[0]).max()))


@pytest.mark.parametrize("seed", range(8))
def test_beliefs_follow_their_formulas(seed):
    rng = np.random.default_rng(seed)
    n_arms = int(rng.integers(4, 40))
    pulls = rng.integers(4, 60, n_arms)
    std, mean = rng.lognormal(0, rng.choice([0.1, 1.0]), n_arms), rng.normal(5, rng.choice([0.1, 3.0]), n_arms)
    for caution in (0.0, 2.0):
        same_beliefs(pulls, mean, std, caution)


@pytest.mark.parametrize("n_arms", [2, 3])
def test_beliefs_of_few_arms_follow_their_formulas(n_arms):
    rng = np.random.default_rng(n_arms)
    for _ in range(20):
        same_beliefs(rng.integers(4, 40, n_arms), rng.normal(size=n_arms), rng.lognormal(0, 2, n_arms))


@pytest.mark.parametrize("n_arms", [3, 5, 12])
def test_beliefs_of_arms_without_spread_follow_their_formulas(n_arms):
    rng = np.random.default_rng(n_arms)
    for _ in range(20):
        std = rng.lognormal(0, 1, n_arms)
        std[: int(rng.integers(1, n_arms))] = 0
        same_beliefs(rng.integers(4, 40, n_arms), rng.normal(size=n_arms), std)


@pytest.mark.parametrize("apart", [1e3, 1e6, 1e9, 1e12])
def test_arms_of_very_different_size_keep_their_means(apart):
    """Squares of large means must not drown those of well-known small ones."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        size = rng.choice([1 / apart, 1.0, apart], 6)
        same_beliefs(rng.integers(4, 400, 6), rng.normal(2, 1, 6) * size, rng.lognormal(0, 0.5, 6) * size)


def test_beliefs_of_rates_follow_their_formulas():
    rng = np.random.default_rng(4)
    for n_arms in (2, 3, 4, 10, 30):
        pulls = rng.integers(8, 300, n_arms)
        rate = rng.binomial(pulls, rng.uniform(0.01, 0.4, n_arms)) / pulls
        rate[0] = max(rate[0], 1 / pulls[0])
        typical = (0.5 + (pulls * rate).sum()) / (1 + pulls.sum())
        variance = typical * (1 - typical)
        found = typical + (rate - typical) * pulls / (pulls + 2)
        if n_arms > 3:
            found = np.asarray(shrunk(found, variance / pulls, 0.001 * variance, CAUTION), float)
        mean, spread = beliefs(pulls, rate, np.sqrt(rate * (1 - rate) * pulls / (pulls - 1)))
        assert mean == pytest.approx(found - typical, rel=2e-3, abs=1e-5)
        assert spread == pytest.approx(np.sqrt(found * (1 - found)), rel=1e-3)


def test_arms_that_differ_by_noise_alone_are_believed_to_be_alike():
    rng = np.random.default_rng(3)
    rewards = rng.normal(2.0, 1.0, size=(30, 6))
    policy = eq.PooledBalance(reward_weight=0.9)
    stats = summary([6] * 30, rewards.mean(axis=1), rewards.std(axis=1, ddof=1))
    pooled, plain = policy.target(stats), eq.ForcingBalance(reward_weight=0.9).target(stats)
    assert np.abs(30 * pooled - 1).max() < 0.1
    assert np.abs(30 * plain - 1).max() > 3


def test_with_many_rewards_an_arm_speaks_for_itself():
    mean, std = [1.0, 1.1, 1.2, 1.3, 5.0], [1.0, 1.1, 0.9, 1.0, 0.1]
    wanted = eq.optimal_allocation(mean, std, reward_weight=0.8)
    far = [
        np.abs(eq.PooledBalance(reward_weight=0.8).target(summary([n] * 5, mean, std)) - wanted).max()
        for n in (10, 1_000, 100_000)
    ]
    assert far[0] > far[1] > far[2]
    assert far[2] < 1e-3


def test_three_arms_are_too_few_to_learn_from_each_other():
    mean, std = [0.0, 1.0, 3.0], [1.0, 2.0, 0.5]
    pooled, alone = (beliefs([9, 9, 9], mean, std, pooling=pooling) for pooling in (True, False))
    np.testing.assert_array_equal(pooled, alone)


def test_without_pooling_only_the_unit_comes_from_the_other_arms():
    mean, std, pulls = [0.0, 1.0, 3.0, 2.0, 1.5], [1.0, 2.0, 0.5, 1.0, 1.0], [200] * 5
    _, spread = beliefs(pulls, mean, std, pooling=False)
    assert spread / spread[0] == pytest.approx(std, rel=0.01)


@given(
    scale=st.floats(1e-9, 1e9), shift=st.floats(-1e3, 1e3), pulls=st.lists(st.integers(4, 500), min_size=6, max_size=6)
)
def test_the_unit_of_the_rewards_makes_no_difference(scale, shift, pulls):
    mean, std = np.array([0.3, 1.0, 1.2, 0.1, 2.0, 1.1]), np.array([1.0, 0.4, 1.3, 0.9, 1.0, 0.6])
    policy = eq.PooledBalance(reward_weight=0.8)
    moved = summary(pulls, scale * (mean + shift), scale * std)
    assert policy.target(moved) == pytest.approx(policy.target(summary(pulls, mean, std)), rel=1e-6)


@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e12, 1e99])
def test_tiny_and_huge_rewards_give_a_target(size):
    target = eq.PooledBalance(reward_weight=0.5).target(summary([9] * 5, np.arange(5) * size, [size] * 5))
    assert target.sum() == pytest.approx(1)
    assert (target > 0).all()


def test_logarithms_are_right_to_a_billionth():
    x = np.exp(np.random.default_rng(1).uniform(-300, 300, 1000))
    out = np.empty_like(x)
    write_logarithms(x, np.empty_like(x), out)
    assert np.abs(out - np.log(x)).max() < 1e-9


# Rewards of 0 or 1


@pytest.mark.parametrize("success", [1.0, -1.0, 100.0])
def test_rewards_of_two_values_are_noticed(success):
    rng = np.random.default_rng(1)
    rewards = success * (rng.random((5, 20)) < 0.3)
    pulls, mean, std = np.full(5, 20), rewards.mean(axis=1), rewards.std(axis=1, ddof=1)
    assert common_success(pulls, mean, std) == pytest.approx(success)
    std[2] *= 1 + 1e-6
    assert common_success(pulls, mean, std) == 0


def test_other_rewards_are_not_taken_for_successes():
    rng = np.random.default_rng(2)
    for rewards in (rng.normal(size=(4, 20)), rng.integers(0, 3, (4, 20)), 1 + rng.integers(0, 2, (4, 20))):
        mean, std = rewards.mean(axis=1), rewards.std(axis=1, ddof=1)
        assert common_success(np.full(4, 20), mean, std) == 0
    assert common_success(np.full(4, 20), np.zeros(4), np.zeros(4)) == 0


def test_an_arm_whose_rewards_cancel_makes_no_successes_of_the_others():
    rewards = np.array([[0.1, 0.2, -0.3, 0.0], [0.5, -0.2, 0.1, 0.7], [2.0, 1.0, -1.0, 0.4], [0.3, 0.3, 0.1, 0.2]])
    mean, std = rewards.mean(axis=1), rewards.std(axis=1, ddof=1)
    assert 0 < abs(mean[0]) < 1e-15
    assert common_success(np.full(4, 4), mean, std) == 0
    for first in (1e13, 1e6):  # an outlier, and an arm of another size
        mean, std = np.array([first / 4, 1e-6, 2e-6, 3e-6]), np.array([first / 2, 1e-6, 2e-6, 1e-6])
        assert common_success(np.full(4, 4), mean, std) == 0


@pytest.mark.parametrize("n", [10**3, 10**6, 10**8])
def test_many_successes_are_still_noticed(n):
    pulls, successes = np.full(4, n), np.array([1, n // 1000, n // 3, n - 1])
    rate = successes / n
    assert common_success(pulls, rate, np.sqrt(rate * (1 - rate) * n / (n - 1))) == pytest.approx(1)


def test_the_spread_of_yes_or_no_rewards_follows_from_the_rate():
    rate, pulls = np.array([0.1, 0.2, 0.3, 0.5, 0.8]), np.full(5, 100_000)
    std = np.sqrt(rate * (1 - rate) * pulls / (pulls - 1))
    mean, spread = beliefs(pulls, rate, std)
    assert spread == pytest.approx(np.sqrt(rate * (1 - rate)), rel=1e-3)
    assert mean - mean[0] == pytest.approx(rate - 0.1, abs=1e-3)
    lower, _ = beliefs(pulls, -rate, std)  # a cost: small ones are good
    assert lower - lower[0] == pytest.approx(0.1 - rate, abs=1e-3)


def test_an_arm_without_a_success_is_believed_to_have_some():
    pulls = np.array([50] * 8)
    rate = np.array([0, 1, 2, 1, 0, 3, 1, 2]) / 50
    _, spread = beliefs(pulls, rate, np.sqrt(rate * (1 - rate) * 50 / 49))
    assert spread.min() > 0.8 * spread.max()


# Pulls


@pytest.mark.parametrize("weight", [0.0, 0.5, 0.95])
def test_a_pull_is_the_one_that_raises_the_trade_off_most(weight):
    rng = np.random.default_rng(5)
    per_arm = np.array([np.zeros(6), np.full(6, 1 / 6), np.zeros(6)])
    for _ in range(50):
        mean, std, counts = rng.normal(size=6), rng.gamma(3, 0.3, 6), rng.integers(4, 60, 6).astype(float)
        t = int(counts.sum()) + 1
        after = (counts + np.eye(6)) / t
        for curiosity in (0.0, 2.0):
            hoped = weight * curiosity * std / (counts + 0.5) / t
            value = hoped + [eq.tradeoff(shares, mean, std, reward_weight=weight) for shares in after]
            arm = best_pull(weight, curiosity, per_arm, t, counts, mean, std)
            # It goes by the slope in the middle of the pull, within 1% of the difference.
            assert max(value) - value[arm] <= 0.01 * (max(value) - min(value))


@pytest.mark.parametrize("n_arms", [2, 5, 30])
def test_windowed_no_arm_is_certain_or_impossible(n_arms):
    policy, orders = eq.PooledBalance(reward_weight=0.8, tracking="windowed"), set()
    for seed in range(10):
        bandit, order = eq.Bandit(policy, n_arms, seed=seed), []
        for _ in range(20 * n_arms):  # no reward comes back
            chances = policy.probabilities(bandit.stats)
            assert chances.min() >= 0.02 / n_arms
            assert chances.max() < 0.75
            order.append(bandit.ask())
            lag = bandit.stats.assigned - bandit.stats.n_assigned / n_arms
            assert np.abs(lag).max() < max(10, 0.05 * len(order))  # as equal as the pulls of a window could make them
        orders.add(tuple(order))
    assert len(orders) == 10
    # Forced for lack of pulls, not of rewards.
    few = summary([4, 5_000], [0.0, 1.0], [0.1, 0.1])
    assert policy.probabilities(few) == pytest.approx([0.99, 0.01])


def next_pulls(pulls, mean, std, reward_weight, caution, curiosity, window, window_growth):
    """Return chances by the next pulls, one by one, from beliefs and gains computed here."""
    believed_mean, believed_std = expected_beliefs(pulls, mean, std, caution)
    counts, t, n_arms = pulls.astype(float), pulls.sum() + 1, pulls.size
    window = max(window, int(min(window_growth * t, 100)))
    for k in range(window) if window_growth == 0 else [window - 1] * window:
        middle = counts + 0.5
        hoped = reward_weight * (believed_mean + curiosity * believed_std / middle)
        lacking = (1 - reward_weight) / (2 * n_arms) * believed_std * ((t + k) / middle) ** 1.5
        counts[np.argmax(hoped + lacking)] += 1
    return 0.02 / n_arms + 0.98 * (counts - pulls) / window


def test_every_parameter_reaches_the_decision():
    matters = {"caution": 0, "curiosity": 0, "window": 0, "window_growth": 0}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        pulls, mean, std = rng.integers(4, 20, 12), rng.normal(0, 0.4, 12), rng.lognormal(0, 0.4, 12)
        known = {"reward_weight": 0.9, "caution": 2.0, "curiosity": 2.0, "window": 40, "window_growth": 0.0}
        found = []
        for changed in ({}, {"caution": 0.0}, {"curiosity": 0.0}, {"window": 7}, {"window_growth": 0.5}):
            policy = eq.PooledBalance(tracking="windowed", **known | changed)
            found.append(policy.probabilities(summary(pulls, mean, std)))
            assert found[-1] == pytest.approx(next_pulls(pulls, mean, std, **known | changed))
        for name, other in zip(matters, found[1:], strict=True):
            matters[name] += not np.array_equal(found[0], other)
    assert min(matters.values()) > 5


def length_of_window(policy, t):
    return max(policy.window, int(min(policy.window_growth * t, 100)))


def chances_one_by_one(policy, per_arm, t, assigned, mean, std, among=slice(None)):
    """Return the windowed chances by one best pull after the other, of all arms or only of some.

    Each pull is the best at its own step if the window is constant, and at the window's last step if it grows.
    """
    n_arms, counts, window = assigned.size, assigned[among].astype(float), length_of_window(policy, t)
    drawn = np.zeros(n_arms)
    chances = np.full(n_arms, policy.mixing / n_arms)
    for k in range(window):
        step = t + (k if policy.window_growth == 0 else window - 1)
        arm = best_pull(policy.reward_weight, policy.curiosity, per_arm[:, among], step, counts, mean, std)
        counts[arm] += 1
        drawn[np.arange(n_arms)[among][arm]] += 1
        chances[np.arange(n_arms)[among][arm]] += (1 - policy.mixing) / window
    if policy.window_growth == 0:
        return chances
    return policy.mixing / n_arms + (1 - policy.mixing) / window * drawn


def arms_to_pull(rng):
    """Return beliefs and counts with ties, arms without spread, and counts from none to thousands."""
    n_arms = int(rng.integers(2, 80))
    assigned = rng.integers(0, 10 ** rng.integers(1, 5), n_arms)
    mean, std = rng.normal(size=n_arms), rng.gamma(2, 0.5, n_arms)
    same = rng.integers(n_arms, size=n_arms)
    if rng.random() < 0.3:
        assigned, mean, std = assigned[same], mean[same], std[same]
    if rng.random() < 0.3:
        std[rng.random(n_arms) < 0.5] = 0.0
    return assigned, mean, std


@pytest.mark.parametrize("growth", [0.0, 1e-9, 0.05])
@pytest.mark.parametrize("weight", [0.0, 0.5, 0.9, 1.0])
def test_the_pulls_of_a_window_are_the_best_ones_one_by_one(weight, growth):
    rng, too_few_notices = np.random.default_rng(8), 0
    for _ in range(300):
        assigned, mean, std = arms_to_pull(rng)
        n_arms, t = assigned.size, int(assigned.sum()) + 1
        per_arm = np.array([np.zeros(n_arms), np.full(n_arms, 1 / n_arms), np.zeros(n_arms)])
        if rng.random() < 0.2:
            per_arm[0] = 0.9 * rng.dirichlet(np.ones(n_arms)) * rng.integers(2, size=n_arms)
        windowed = {"tracking": "windowed", "window": int(rng.integers(1, 30)), "window_growth": growth}
        policy = eq.PooledBalance(reward_weight=weight, **windowed)
        chances = np.empty(n_arms)
        known = (policy.rule(), weight, per_arm, t, assigned, mean, std, np.empty((MARGIN_ROWS, n_arms)), chances)
        assert follow_margins(*known) == RANDOM
        assert chances.tolist() == chances_one_by_one(policy, per_arm, t, assigned, mean, std).tolist()
        # The check must notice a choice among too few arms: those that are best now, without their rivals to be.
        middle = assigned + 0.5
        lacking = (1 - weight) / (2 * n_arms) * std * (t / middle) ** 1.5
        among = np.sort(np.argsort(weight * (mean + 2 * std / middle) + lacking)[-length_of_window(policy, t) :])
        fewer = chances_one_by_one(policy, per_arm, t, assigned, mean[among], std[among], among)
        too_few_notices += chances.tolist() != fewer.tolist()
        if growth == 0:  # experiments of before windows grew have no other rule, whatever their policy says
            grown = policy.rule()._replace(window_growth=0.5, version=3)
            before = chances.copy()
            follow_margins(grown, *known[1:])
            assert chances.tolist() == before.tolist()
    if growth == 0:
        assert too_few_notices > 10


@pytest.mark.parametrize(("t", "window"), [(100, 10), (219, 10), (221, 11), (1_001, 50), (2_001, 100), (90_001, 100)])
def test_the_window_grows_with_the_experiment_up_to_100(t, window):
    share = np.array([0.1, 0.2, 0.3, 0.4])
    pulls = (share * (t - 1)).astype(int)
    pulls[0] += t - 1 - pulls.sum()
    policy = eq.PooledBalance(reward_weight=0.5, tracking="windowed", mixing=0.0)
    drawn = policy.probabilities(summary(pulls, [1.0, 1.1, 1.2, 1.3], [0.5, 0.6, 0.7, 0.8])) * window
    assert drawn == pytest.approx(np.round(drawn), abs=1e-9)
    assert drawn.sum() == pytest.approx(window)
    constant = eq.PooledBalance(reward_weight=0.5, tracking="windowed", mixing=0.0, window=50)
    drawn = constant.probabilities(summary(pulls, [1.0, 1.1, 1.2, 1.3], [0.5, 0.6, 0.7, 0.8])) * max(window, 50)
    assert drawn == pytest.approx(np.round(drawn), abs=1e-9)


def test_a_growing_window_leaves_few_arms_without_a_chance_of_their_own():
    """Estimates divide by probabilities, so an arm's should seldom fall to its part of the mixing."""
    starved = []
    for growth in (0.0, 0.05):
        policy = eq.PooledBalance(reward_weight=0.5, tracking="windowed", window_growth=growth)
        bandit, rng, low = eq.Bandit(policy, 5, seed=4), np.random.default_rng(4), 0
        for k in range(3_000):
            if k >= 1_000:
                low += int((policy.probabilities(bandit.stats) < 0.005).sum())
            arm = bandit.ask()
            bandit.tell(arm, rng.normal(golden.FIVE_MEANS[arm], golden.FIVE_STDS[arm]))
        starved.append(low / 10_000)
    assert starved[0] > 0.2
    assert starved[1] < 0.5 * starved[0]


def test_floors_come_first_and_are_kept():
    for tracking in ("marginal", "windowed", "difference"):
        policy = eq.PooledBalance(reward_weight=0.95, floor=[0.2, 0.1, 0, 0, 0], tracking=tracking)
        shares = eq.simulate(policy, FIVE_ARMS, 4_000, 3, seed=1).frequency[0, :, -1]
        assert (shares[:, 0] > 0.199).all()
        assert (shares[:, 1] > 0.099).all()
        wanted = eq.optimal_allocation(
            golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.95, floor=[0.2, 0.1, 0, 0, 0]
        )
        assert np.abs(shares - wanted).max() < 0.02


def test_windowed_pulls_have_chances_and_go_where_the_marginal_ones_go():
    policy = eq.PooledBalance(reward_weight=0.8, tracking="windowed", mixing=0.05)
    bandit, rng = eq.Bandit(policy, 5, seed=4), np.random.default_rng(4)
    lowest = 1.0
    for k in range(3_000):
        if k >= 20:
            lowest = min(lowest, policy.probabilities(bandit.stats).min())
        arm = bandit.ask()
        bandit.tell(arm, rng.normal(golden.FIVE_MEANS[arm], golden.FIVE_STDS[arm]))
    assert lowest == pytest.approx(0.01)
    wanted = eq.optimal_allocation(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.8)
    assert np.abs(bandit.stats.pulls / 3_000 - wanted).max() < 0.02


def test_rewards_that_never_come_leave_a_balanced_experiment():
    for tracking, off in (("marginal", 0), ("windowed", 10)):
        bandit = eq.Bandit(eq.PooledBalance(reward_weight=0.9, tracking=tracking), 4)
        bandit.ask(400)
        assert np.abs(bandit.stats.assigned - 100).max() <= off


def test_a_batch_is_spread_as_its_pulls_would_be_one_by_one():
    rng = np.random.default_rng(6)
    bandit = eq.Bandit(eq.PooledBalance(reward_weight=0.9), 5)
    told(bandit, rng.normal(golden.FIVE_MEANS, golden.FIVE_STDS, size=(400, 5)).T)
    before = bandit.stats.assigned.copy()
    bandit.ask(2_000)
    target = np.array(list(bandit.target().values()))
    share = bandit.stats.assigned / bandit.stats.n_assigned
    assert np.abs(share - target).max() < 0.01
    assert (bandit.stats.assigned >= before).all()


# No arm is starved


def test_rare_successes_starve_no_arm():
    rates = [0.004, 0.006, 0.01, 0.012, 0.02, 0.03]
    arms, n = eq.Bernoulli(mean=rates), 20_000
    wanted = eq.optimal_allocation(arms.mean, arms.std, reward_weight=0.5)
    policies = [eq.PooledBalance(reward_weight=0.5), eq.ForcingBalance(reward_weight=0.5, forcing=0.1)]
    for seed in range(3):
        runs = eq.simulate(policies, arms, n, 20, seed=seed, checkpoints=[2_000, n])
        least = (runs.frequency / wanted).min(axis=(1, 3))
        assert (least[0] > 0.4).all()
        assert (least[1] < 0.1).any()  # the paper's rule with little forcing does starve one


@pytest.mark.parametrize("outlier", [1e6, -1e6, 1e9])
@pytest.mark.parametrize(("n_arms", "place"), [(2, 9), (3, 1), (5, 1), (5, 60), (20, 9)])
def test_an_extreme_reward_starves_no_arm(outlier, n_arms, place):
    """By the rule of the paper the others get the hundred pulls of 10,000 that are forced; by ours several hundred."""
    for tracking in ("marginal", "windowed", "difference"):
        for reward_weight in (0.2, 0.9):
            rewards = np.random.default_rng(7).normal(0, 1, size=(n_arms, 10_001))
            rewards[0, place] = outlier
            policy = eq.PooledBalance(reward_weight=reward_weight, tracking=tracking)
            bandit = eq.Bandit(policy, n_arms, seed=1)
            for _ in range(10_000):
                arm = bandit.ask()
                bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
            assert bandit.stats.pulls[0] > place
            assert bandit.stats.pulls.min() >= 250
            bandit.correct(0, outlier, 0.0)
            assert min(bandit.target().values()) > 0.5 / n_arms


def test_a_reward_is_put_down_as_extreme_only_where_it_explains_what_is_seen():
    pulls, std = np.full(5, 16), np.array([1.0, 2.0, 1.0, 0.5, 400.0])
    mean = np.array([0.0, 0.5, 1.0, 1.5, 0.75 + 400 / 4])  # one standard error from the others
    limit = 6 * 2 * 2.0  # six times the fourth root of 16 times the next largest
    smaller = np.array([*mean[:4], 0.75 + 100 * limit / 400]), np.array([*std[:4], limit])
    same_beliefs(pulls, mean, std)
    ours, wanted = beliefs(pulls, mean, std), beliefs(pulls, *smaller)
    assert ours[1] == pytest.approx(wanted[1])
    assert np.diff(ours[0]) == pytest.approx(np.diff(wanted[0]))
    for other_mean, other_std in (
        ([*mean[:4], 0.75 + 1.1 * 400 / 4], std),  # further away: several rewards
        ([*mean[:4], 0.75], std),  # not moved at all
        (mean, [1.0, 300.0, 1.0, 0.5, 400.0]),  # not alone
        ([*mean[:4], 0.75 + 23 / 4], [*std[:4], 23.0]),  # not as large
    ):
        other_mean, other_std = np.array(other_mean), np.array(other_std)
        np.testing.assert_array_equal(tempered(pulls, other_mean, other_std)[1], other_std)
        same_beliefs(pulls, other_mean, other_std)


@pytest.mark.parametrize("ratio", [30, 100, 1_000])
def test_an_arm_that_really_has_a_large_spread_gets_its_share(ratio):
    arms = eq.Gaussian(mean=[0, 0, 0], std=[1, 1, ratio])
    runs = eq.simulate(eq.PooledBalance(reward_weight=0.2), arms, 10_000, 100, seed=5, checkpoints=[1_000, 10_000])
    wanted = eq.optimal_allocation(arms.mean, arms.std, reward_weight=0.2)[2]
    # In a tenth of the steps its mean is where one extreme reward would have put it, and the others are pulled.
    lack = wanted - runs.frequency[0, :, :, 2]
    assert np.median(lack, axis=0).max() < 0.15
    assert lack.max() < 0.3


def test_rounding_errors_are_no_spread():
    for noise in (1e-10, 1e-14):
        rewards = np.random.default_rng(9).normal(0, 1, size=(5, 4_001))
        rewards[2, :10] = 0.3 + noise * rewards[2, :10]
        bandit = eq.Bandit(eq.PooledBalance(reward_weight=0.0), 5)
        for _ in range(4_000):
            arm = bandit.ask()
            bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
        assert bandit.stats.pulls.min() > 0.8 * 4_000 / 5


def test_one_tight_pair_of_rewards_starves_no_arm():
    # The first rewards of an arm happen to be nearly the same: its sample spread is a hundred times too small.
    rng = np.random.default_rng(8)
    rewards = rng.normal([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 1.0, size=(4_000, 6)).T.copy()
    rewards[3, :4] = 0.3 + 0.01 * rewards[3, :4]
    for weight in (0.0, 0.8):
        bandit = eq.Bandit(eq.PooledBalance(reward_weight=weight, forcing=0.0), 6)
        for _ in range(1_200):
            arm = bandit.ask()
            bandit.tell(arm, rewards[arm][bandit.stats.pulls[arm]])
        assert (
            bandit.stats.pulls[3]
            > 0.5 * 1_200 * eq.optimal_allocation([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], [1.0] * 6, reward_weight=weight)[3]
        )


def test_arms_without_any_spread_take_turns_until_they_differ():
    bandit = eq.Bandit(eq.PooledBalance(reward_weight=0.9), 4)
    for _ in range(80):
        bandit.tell(bandit.ask(), 7.0)
    assert bandit.stats.pulls.tolist() == [20] * 4
    mean, spread = beliefs([20, 4, 8, 80], [7.0, 7.0, 8.0, 6.0], [0.0] * 4)
    assert mean == pytest.approx([0, 0, 1, -1])
    assert spread == pytest.approx(np.sqrt([1 / 21, 1 / 5, 1 / 9, 1 / 81]))
    other = eq.Bandit(eq.PooledBalance(reward_weight=0.9), 3)
    for _ in range(2_000):
        arm = other.ask()
        other.tell(arm, [1.0, 2.0, 4.0][arm])
    assert other.stats.pulls[2] > 1_700
    assert other.stats.pulls.min() >= 10


@pytest.mark.parametrize("weight", [0.0, 0.9, 0.999, 1.0])
def test_every_arm_gets_at_least_what_is_forced(weight):
    policy = eq.PooledBalance(reward_weight=weight)
    runs = eq.simulate(policy, FIVE_ARMS, 40_000, 4, seed=2, checkpoints=[5_000, 40_000])
    assert (runs.pulls.min(axis=3)[0] >= 0.1 * np.sqrt([5_000, 40_000])).all()


# What it is for


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.9])
def test_shares_converge_to_the_optimum(weight):
    policy = eq.PooledBalance(reward_weight=weight)
    runs = eq.simulate(policy, FIVE_ARMS, 100_000, 10, seed=3, checkpoints=[1_000, 10_000, 100_000])
    far = runs.frequency_distance(reward_weight=weight)[0].mean(axis=0)
    assert far[0] > far[1] > far[2]
    assert far[2] < 0.004


def test_it_beats_the_papers_rule_where_that_forces_too_much_and_equals_it_where_not():
    def regret(arms, weight, step):
        policies = [eq.ForcingBalance(reward_weight=weight), eq.PooledBalance(reward_weight=weight)]
        runs = eq.simulate(policies, arms, step, 100, seed=4, checkpoints=[step])
        return runs.rescaled_regret(reward_weight=weight)[:, :, 0]

    paper, ours = regret(FIVE_ARMS, 0.9, 1_000)
    assert paper.mean() > 20 * (ours.mean() + 2 * ours.std() / 10)
    for arms in TWO_ARMS:
        paper, ours = regret(arms, 0.4, 2_000)
        difference = ours - paper
        assert difference.mean() < 3 * difference.std() / 10


def test_a_weight_is_all_that_an_experiment_needs():
    made = eq.Experiment.create("memory:", "x", arms=["a", "b"], reward_weight=0.8, seed=1)
    assert made.configuration.policy == recommended(0.8) == eq.PooledBalance(reward_weight=0.8, tracking="windowed")
    for wrong, message in (
        ({}, "give either reward_weight or information_kept; got neither"),
        ({"policy": eq.Uniform(), "reward_weight": 0.5}, "give a policy or reward_weight, .* got both"),
    ):
        with pytest.raises(eq.InvalidInput, match=message):
            eq.Experiment.create("memory:", "x", arms=["a", "b"], **wrong)


def test_a_live_experiment_with_late_rewards_can_be_replayed():
    experiment = eq.Experiment.create(
        "memory:", "late", arms=["a", "b", "c", "d"], reward_weight=0.8, seed=3, floor=0.01
    )
    rng, waiting = np.random.default_rng(3), []
    for i in range(300):
        one = experiment.ask(f"unit-{i}")
        waiting.append((one.unit, rng.normal("abcd".index(one.arm), 1.0)))
        if len(waiting) > 12:
            experiment.tell(*waiting.pop(0))
    assert experiment.verify().n_decisions == 300
    decisions = [event for event in experiment.events() if event.kind == "assigned"]
    assert all(0 < event.probability <= 1 for event in decisions)
    assert all(event.probability < 1 for event in decisions)


def test_an_arm_added_later_gets_its_share_of_those_who_come():
    arms, rng = ["a", "b", "c"], np.random.default_rng(5)
    experiment = eq.Experiment.create("memory:", "grows", arms=arms, policy=recommended(0.5), seed=3)

    def newcomers(first, last):
        for i in range(first, last):
            one = experiment.ask(f"unit-{i}")
            experiment.tell(one.unit, rng.normal(0.1 * "abcd".index(one.arm), 1.0))

    newcomers(0, 600)
    experiment.add_arm("d")
    newcomers(600, 1_000)
    status = {arm.arm: arm.assigned for arm in experiment.status().arms}
    assert 0.15 * 400 < status["d"] < 0.45 * 400
    assert experiment.verify().n_decisions == 1_000


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tracking": "ratio"}, "tracking must be one of marginal, difference, windowed; got 'ratio'"),
        ({"window": 0}, "window must be at least 1; got 0"),
        ({"first_rewards": 2}, "first_rewards must be at least 3; got 2"),
        ({"caution": -1}, r"caution must be in \[0, 100\]; got -1"),
        ({"pooling": 1}, "pooling must be true or false; got 1"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.PooledBalance(reward_weight=0.5, **parameters)
