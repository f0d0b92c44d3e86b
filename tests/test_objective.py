"""The trade-off and its optimum say what Sect. 2 says, to rounding, in every case."""

from __future__ import annotations

import itertools

import golden
import numpy as np
import pytest
import reference
from endurance import given_short_and_full, short_and_full
from hypothesis import assume, example
from hypothesis import strategies as st

import equipoise as eq

PAPER = eq.ROOT_MEAN_SQUARE


@st.composite
def problems(draw, max_arms=9, noisy_only=False):
    """Arms and weights of every kind: zero spread, ties, 24 orders of magnitude, weights next to 0 and 1."""
    n_arms = draw(st.integers(1, max_arms))
    scale = 10.0 ** draw(st.integers(-6, 6))
    offset = draw(st.sampled_from([0.0, 0.0, 1.0, -1e9, 1e9]))
    steps = draw(st.lists(st.integers(-8, 8) | st.floats(-8, 8), min_size=n_arms, max_size=n_arms))
    mean = offset + scale * np.array(steps, dtype=float)
    positive = st.floats(-12, 12).map(lambda x: 10.0**x) | st.floats(0.5, 2.0)
    spread = positive if noisy_only else st.just(0.0) | positive
    std = np.array(draw(st.lists(spread, min_size=n_arms, max_size=n_arms)))
    ordinary = st.floats(0.01, 0.99)
    weight = draw(ordinary if noisy_only else ordinary | st.sampled_from([0.0, 1.0, 1e-9, 1 - 1e-9, 0.5]))
    kind = draw(st.sampled_from(["none", "one", "each"]))
    if kind == "none":
        floor = np.zeros(n_arms)
    elif kind == "one":
        floor = np.full(n_arms, draw(st.floats(0, 1)) / n_arms)
    else:
        parts = np.array(draw(st.lists(st.floats(0, 1), min_size=n_arms, max_size=n_arms)))
        floor = parts / max(parts.sum(), 1) * draw(st.floats(0, 1))
    return mean, std, weight, floor


@pytest.mark.parametrize("case", golden.OPTIMA)
def test_golden_optima(case):
    share = eq.optimal_allocation(case.mean, np.sqrt(case.variance), reward_weight=case.reward_weight)
    assert share == pytest.approx(case.allocation, abs=0.5e-7)
    value = eq.tradeoff(share, case.mean, np.sqrt(case.variance), reward_weight=case.reward_weight)
    assert value == pytest.approx(case.tradeoff, abs=0.5e-10)


def test_the_papers_printed_optimum_is_worse_by_seven_millionths():
    printed = np.array(golden.PAPER_FIVE_AT_09)
    assert eq.regret(printed, golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.9) == pytest.approx(6.7e-6, abs=1e-6)


@given_short_and_full(300, 2000, problems())
@example((np.array([0.0]), np.array([0.0]), 0.0, np.array([0.0])))
@example((np.array([1.0, 2.0]), np.array([0.0, 0.0]), 1e-300, np.zeros(2)))
def test_optimum_is_on_the_simplex_and_stationary(problem):
    mean, std, weight, floor = problem
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    assert abs(share.sum() - 1) <= 1e-12
    assert (share >= floor - 1e-15).all()
    if floor.sum() < 1 - 1e-12:
        assert reference.stationarity_gap(share, mean, std, weight, floor) <= 1e-9


def test_optimum_is_stationary_for_thousands_of_ordinary_instances():
    rng = np.random.default_rng(20170420)
    for _ in range(5000):
        n_arms = int(rng.integers(1, 80))
        mean, std = rng.normal(0, 3, n_arms), rng.gamma(1.5, 1.0, n_arms) * (rng.random(n_arms) > 0.1)
        weight, floor = rng.beta(0.5, 0.5), np.full(n_arms, rng.choice([0.0, 0.3, 0.9]) / n_arms)
        share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
        assert abs(share.sum() - 1) <= 1e-12
        assert reference.stationarity_gap(share, mean, std, weight, floor) <= 1e-9


@given_short_and_full(20, 60, problems(max_arms=6, noisy_only=True))
def test_optimum_agrees_with_fifty_digit_bisection(problem):
    mean, std, weight, floor = problem
    assume(np.ptp(floor) == 0 and floor.sum() < 0.999)
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor[0])
    exact = [float(x) for x in reference.optimum_to_fifty_digits(mean, std, weight, floor[0])]
    assert share == pytest.approx(exact, rel=1e-11, abs=0)


@pytest.mark.parametrize("trials", short_and_full(40, 150))
def test_never_beaten_by_a_conic_solver(trials):
    rng = np.random.default_rng(7)
    for trial in range(trials):
        n_arms = int(rng.choice([2, 3, 5, 12, 40]))
        mean, std = rng.normal(0, 2, n_arms), rng.gamma(2.0, 0.5, n_arms)
        if trial % 3 == 0:
            std[rng.integers(n_arms)] = 0.0
        weight = float(rng.choice([0.0, 0.05, 0.4, 0.9, 0.99]))
        floor = np.full(n_arms, rng.choice([0.0, 0.5 / n_arms]))
        share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
        rival = reference.conic_optimum(mean, std, weight, floor)
        ours, theirs = (reference.tradeoff(x, mean, std, weight) for x in (share, rival))
        assert ours >= theirs - 1e-9 * abs(theirs)
        assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6), "the rival should come close, or it proves nothing"


@given_short_and_full(60, 200, problems(), st.integers(0, 2**32 - 1))
def test_never_beaten_by_a_random_feasible_allocation(problem, seed):
    mean, std, weight, floor = problem
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    best = reference.tradeoff(share, mean - mean.max(), std, weight)
    rng = np.random.default_rng(seed)
    for concentration in (0.1, 1.0, 100.0):
        direction = rng.dirichlet(np.full(mean.size, concentration))
        rival = floor + (1 - floor.sum()) * direction
        nearby = share + 1e-3 * (rival - share)
        for other in (rival, nearby):
            value = reference.tradeoff(other, mean - mean.max(), std, weight)
            assert not value > best + 1e-9 * abs(best) + 1e-300


@given_short_and_full(60, 200, problems(), st.randoms())
def test_permuting_the_arms_permutes_the_optimum(problem, random):
    mean, std, weight, floor = problem
    order = list(range(mean.size))
    random.shuffle(order)
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    moved = eq.optimal_allocation(mean[order], std[order], reward_weight=weight, floor=floor[order])
    assert moved == pytest.approx(share[order], rel=1e-12, abs=1e-15)


@given_short_and_full(60, 200, problems(), st.integers(-40, 40), st.integers(-3, 3))
def test_shifting_and_scaling_all_rewards_leaves_the_optimum(problem, exponent, shift):
    mean, std, weight, floor = problem
    assume(np.abs(mean).max() < 1e8)  # beyond that the shift itself rounds the differences
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    scale = 2.0**exponent  # a power of two, so that scaling is exact
    moved = eq.optimal_allocation(scale * mean, scale * std, reward_weight=weight, floor=floor)
    assert moved == pytest.approx(share, rel=1e-11, abs=1e-300)
    if np.array_equal((mean + shift) - shift, mean):
        moved = eq.optimal_allocation(mean + shift, std, reward_weight=weight, floor=floor)
        assert moved == pytest.approx(share, rel=1e-9, abs=1e-15)


def test_shifting_rewards_changes_the_tradeoff_by_weight_times_shift():
    share = [0.2, 0.8]
    values = [eq.tradeoff(share, np.array([1.0, 2.0]) + shift, [1, 1], reward_weight=0.3) for shift in (0, 10)]
    assert values[1] - values[0] == pytest.approx(0.3 * 10)


@pytest.mark.parametrize(
    ("mean", "std", "weight", "floor", "expected"),
    [
        ([3], [2], 0.5, 0.0, [1]),  # one arm
        ([1, 2], [1, 1], 1.0, 0.0, [0, 1]),  # weight 1: the best mean
        ([1, 2, 2], [1, 5, 1], 1.0, 0.0, [0, 0.5, 0.5]),  # weight 1, tie: equal shares
        ([1, 2, 2], [1, 5, 1], 1.0, 0.1, [0.1, 0.45, 0.45]),  # all mass above the floor
        ([1, 2, 2], [1, 5, 1], 1.0, [0.2, 0.1, 0.3], [0.2, 0.3, 0.5]),  # ties share what is above their floors
        ([5, 1, 1], [1, 8, 27], 0.0, 0.0, np.array([1, 4, 9]) / 14),  # weight 0: std^(2/3)
        ([5, 1, 1], [0, 8, 27], 0.0, 0.0, np.array([0, 4, 9]) / 13),  # weight 0, no spread: nothing
        ([1, 2, 2], [0, 0, 0], 0.5, 0.0, [0, 0.5, 0.5]),  # no spread at all: best mean
        ([1, 2, 3], [0, 0, 0], 0.0, 0.0, [1 / 3, 1 / 3, 1 / 3]),  # and weight 0: uniform
        ([1, 2, 3], [0, 0, 0], 1e-320, 0.0, [0, 0, 1]),  # any positive weight counts
        ([1, 2, 3], [1, 1, 1], 0.5, 1 / 3, [1 / 3, 1 / 3, 1 / 3]),  # floors that leave nothing to choose
        ([1, 2, 3], [1, 1, 1], 0.5, [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
        ([7, 7, 7], [2, 2, 2], 0.77, 0.0, [1 / 3, 1 / 3, 1 / 3]),  # all alike
        ([0, 0], [1, 1], 0.5, [0.9, 0.0], [0.9, 0.1]),  # one arm held at its floor
        ([1.7e308, -1.7e308], [0, 0], 0.5, 0.0, [1, 0]),  # differences beyond the largest double
        ([1e-310, 0], [0, 0], 0.5, 0.0, [1, 0]),  # and among the smallest
    ],
)
def test_cases_with_a_known_answer(mean, std, weight, floor, expected):
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    assert share == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_a_best_arm_without_spread_takes_what_the_others_leave():
    # The others' shares follow from multiplier = weight * best mean: (c_i / (w (best - mean_i)))^(2/3).
    mean, std, weight = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0]), 0.5
    share = eq.optimal_allocation(mean, std, reward_weight=weight)
    cost = (1 - weight) * std / (2 * 3)
    others = (cost[:2] / (weight * (3 - mean[:2]))) ** (2 / 3)
    assert share == pytest.approx([*others, 1 - others.sum()], rel=1e-14)


def test_a_best_arm_without_spread_gets_nothing_when_the_others_need_everything():
    assert eq.optimal_allocation([1, 2, 2.01], [1, 1, 0], reward_weight=0.1)[2] == 0


def test_equal_best_arms_without_spread_share_what_is_left():
    share = eq.optimal_allocation([1, 3, 3], [1, 0, 0], reward_weight=0.9, floor=[0, 0.1, 0.2])
    assert share[1] - 0.1 == pytest.approx(share[2] - 0.2)
    assert share[0] == pytest.approx((0.1 / 6 / (0.9 * 2)) ** (2 / 3))


def test_means_of_a_billion_with_differences_of_one():
    near = eq.optimal_allocation([0, 1, 2], [1, 2, 3], reward_weight=0.7)
    far = eq.optimal_allocation([1e9, 1e9 + 1, 1e9 + 2], [1, 2, 3], reward_weight=0.7)
    assert far == pytest.approx(near, rel=1e-14)


def test_spreads_over_24_orders_of_magnitude():
    std = 10.0 ** np.linspace(-12, 12, 25)
    mean = np.linspace(0, 1, 25)
    share = eq.optimal_allocation(mean, std, reward_weight=0.5)
    exact = [float(x) for x in reference.optimum_to_fifty_digits(mean, std, 0.5)]
    assert share == pytest.approx(exact, rel=1e-11, abs=0)


def test_a_hundred_thousand_arms():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=100_000), rng.gamma(2, size=100_000)
    share = eq.optimal_allocation(mean, std, reward_weight=0.9)
    assert abs(share.sum() - 1) <= 1e-12
    assert reference.stationarity_gap(share, mean, std, 0.9, np.zeros(100_000)) <= 1e-9


def test_reward_and_error_of_many_allocations_at_once():
    rows = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])
    assert eq.reward(rows, [1, 2]).tolist() == pytest.approx([1.5, 1.9, 1.0])
    assert eq.error(rows, [1, 1]).tolist() == [eq.error(row, [1, 1]) for row in rows]
    assert eq.regret(rows, [1, 2], [1, 1], reward_weight=0.5)[2] == np.inf


def test_tradeoff_where_an_arm_has_no_share():
    assert eq.tradeoff([1, 0], [1, 2], [1, 1], reward_weight=0.5) == -np.inf
    assert eq.tradeoff([1, 0], [1, 2], [1, 0], reward_weight=0.5) == 0.5 - 0.25
    assert eq.tradeoff([0, 1], [1, 2], [1, 1], reward_weight=1.0) == 2.0
    assert eq.regret([0, 1], [1, 2], [1, 1], reward_weight=1.0) == 0.0


# Whole numbers of pulls


def best_in_box_by_enumeration(mean, std, weight, horizon, wanted):
    ranges = [range(max(0, int(np.ceil(x - 1 - 1e-9))), int(np.floor(x + 1 + 1e-9)) + 1) for x in wanted]
    counts = [c for c in itertools.product(*ranges) if sum(c) == horizon]
    return max(reference.tradeoff(np.array(c) / horizon, mean, std, weight) for c in counts)


def test_whole_pulls_are_the_best_within_one_pull():
    rng = np.random.default_rng(11)
    for _ in range(200):
        n_arms, horizon = int(rng.integers(1, 6)), int(rng.integers(5, 60))
        mean, std, weight = rng.normal(size=n_arms), rng.gamma(2, size=n_arms), float(rng.choice([0.0, 0.3, 0.9, 1.0]))
        pulls = eq.optimal_pulls(mean, std, horizon=horizon, reward_weight=weight)
        floor = 1 / horizon if weight < 1 else 0.0
        wanted = horizon * eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
        assert pulls.sum() == horizon
        assert np.abs(pulls - wanted).max() <= 1 + 1e-9
        value = reference.tradeoff(pulls / horizon, mean, std, weight)
        assert value >= best_in_box_by_enumeration(mean, std, weight, horizon, wanted) - 1e-12


def test_whole_pulls_lose_at_most_a_constant_over_the_squared_horizon():
    mean, std = golden.FIVE_MEANS, golden.FIVE_STDS
    lost = []
    for horizon in (300, 3_000, 30_000, 300_000):
        pulls = eq.optimal_pulls(mean, std, horizon=horizon, reward_weight=0.9)
        lost.append(eq.regret(pulls / horizon, mean, std, reward_weight=0.9) * horizon**2)
    # Lemma 4 with the curvature at the optimum: half of 3 (1 - w) std / (4 K share^2.5) per squared pull, 5 arms.
    share = eq.optimal_allocation(mean, std, reward_weight=0.9)
    assert max(lost) <= (3 * 0.1 * golden.FIVE_STDS / (20 * share**2.5)).sum()
    assert min(lost) >= -1e-4


def test_every_noisy_arm_gets_a_pull_when_there_are_enough():
    mean, std = np.array([5.0, 1.0, 1.0, 1.0]), np.array([1.0, 0.1, 0.1, 0.0])
    assert eq.optimal_pulls(mean, std, horizon=3, reward_weight=0.99).tolist() == [1, 1, 1, 0]
    assert eq.optimal_pulls(mean, std, horizon=10, reward_weight=0.99).tolist() == [8, 1, 1, 0]
    assert eq.optimal_pulls(mean, std, horizon=2, reward_weight=0.99).sum() == 2
    assert eq.optimal_pulls([1, 9], [1, 1], horizon=1, reward_weight=0.9).tolist() == [0, 1]
    assert eq.optimal_pulls(mean, std, horizon=10, reward_weight=1.0).tolist() == [10, 0, 0, 0]


def test_whole_pulls_keep_the_floors():
    assert eq.optimal_pulls([1, 2, 3], [1, 1, 1], horizon=500, reward_weight=0.9, floor=0.1).tolist()[0] == 50
    rng = np.random.default_rng(12)
    for _ in range(200):
        n_arms, horizon = int(rng.integers(1, 9)), int(rng.integers(20, 300))
        floor = rng.dirichlet(np.ones(n_arms)) * rng.choice([0.1, 0.5, 0.9])
        pulls = eq.optimal_pulls(
            rng.normal(size=n_arms), rng.gamma(2, size=n_arms), horizon=horizon, reward_weight=0.8, floor=floor
        )
        assert pulls.sum() == horizon
        if np.ceil(horizon * np.maximum(floor, 1 / horizon)).sum() <= horizon:
            assert (pulls >= horizon * floor - 1e-6).all()


# The frontier, and weights for a goal


def test_frontier_trades_error_for_reward():
    curve = eq.frontier(golden.FIVE_MEANS, golden.FIVE_STDS)
    assert curve.reward_weight[[0, -1]].tolist() == [0, 1]
    assert (np.diff(curve.reward) >= 0).all()
    assert (np.diff(curve.error[:-1]) >= 0).all()
    assert curve.error[-1] == np.inf
    row = curve.allocation[90]
    assert row == pytest.approx(eq.optimal_allocation(golden.FIVE_MEANS, golden.FIVE_STDS, reward_weight=0.9))
    assert curve.tradeoff[90] == pytest.approx(3.9848346259, abs=1e-9)


@given_short_and_full(60, 200, problems(noisy_only=True), st.floats(0.001, 0.999))
def test_the_weight_for_an_error_gives_that_error(problem, weight):
    mean, std, _, floor = problem
    floor = 0.5 * floor
    wanted = eq.error(eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor), std)
    found = eq.weight_for_error(mean, std, error=wanted, floor=floor)
    assert eq.error(eq.optimal_allocation(mean, std, reward_weight=found, floor=floor), std) == pytest.approx(
        wanted, rel=1e-8
    )


@given_short_and_full(60, 200, problems(noisy_only=True), st.floats(0.001, 0.999))
def test_the_weight_for_a_reward_gives_that_reward(problem, weight):
    mean, std, _, floor = problem
    floor = 0.5 * floor
    wanted = eq.reward(eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor), mean)
    found = eq.weight_for_reward(mean, std, reward=wanted, floor=floor)
    reached = eq.reward(eq.optimal_allocation(mean, std, reward_weight=found, floor=floor), mean)
    assert abs(reached - wanted) <= 2e-9 * np.ptp(mean) + 2e-15 * np.abs(mean).max()


def test_goals_that_no_weight_meets():
    with pytest.raises(eq.NoSuchWeight, match=r"no reward weight has error 1; it runs from 1\.41421 .* to inf"):
        eq.weight_for_error([1, 2], [1, 1], error=1.0)
    with pytest.raises(eq.NoSuchWeight, match=r"reward 2\.5; it runs from 1\.5 \(weight 0\) to 2 \(weight 1\)"):
        eq.weight_for_reward([1, 2], [1, 1], reward=2.5)
    with pytest.raises(eq.NoSuchWeight, match="error 9"):  # with floors the error is bounded
        eq.weight_for_error([1, 2], [1, 1], error=9.0, floor=0.25)
    with pytest.raises(eq.NoSuchWeight, match=r"reward 1\.7"):  # without spread the reward jumps from 1.5 to 2
        eq.weight_for_reward([1, 2], [0, 0], reward=1.7)


@pytest.mark.parametrize(
    ("mean", "std", "error"), [([1, 2], [1, 1], 1000.0), ([1, 2], [1e9, 1e9], 1.5e9), ([1, 2], [1, 1], 1e4)]
)
def test_goals_so_close_to_weight_one_that_weights_are_coarse(mean, std, error):
    weight = eq.weight_for_error(mean, std, error=error)
    reached = [
        eq.error(eq.optimal_allocation(mean, std, reward_weight=w), std)
        for w in (np.nextafter(weight, 0), weight, np.nextafter(weight, 1))
    ]
    assert reached[0] <= error <= reached[2]
    assert abs(reached[1] - error) == min(abs(x - error) for x in reached)


def test_a_reward_so_close_to_weight_one_that_weights_are_coarse():
    weight = eq.weight_for_reward([1, 2], [1e9, 1e9], reward=1.9)
    share = eq.optimal_allocation([1, 2], [1e9, 1e9], reward_weight=weight)
    assert eq.reward(share, [1, 2]) == pytest.approx(1.9, abs=1e-5)


def test_goals_at_the_ends():
    assert eq.weight_for_reward([1, 2], [1, 1], reward=1.5) == 0.0
    assert eq.weight_for_reward([1, 2], [1, 1], reward=2.0) == pytest.approx(1.0)
    assert eq.weight_for_error([3, 3], [1, 1], error=np.sqrt(2)) == 0.0


def test_lemma_1_constants_are_those_printed():
    assert eq.strong_concavity([0.5, 1.0], reward_weight=0.6) == pytest.approx(3 * 0.4 * 0.5 / 8)
    assert eq.smoothness([0.5, 1.0], reward_weight=0.6, floor=0.1) == pytest.approx(3 * 0.4 / 8 / 0.1**2.5)
    assert eq.smoothness([0.5, 1.0], reward_weight=0.6, floor=1e-100) == pytest.approx(0.15e250)


def test_lemma_1_bounds_the_curvature():
    rng = np.random.default_rng(5)
    for _ in range(200):
        n_arms, weight = int(rng.integers(2, 8)), float(rng.random() * 0.99)
        std, floor = rng.gamma(2, size=n_arms), 0.5 / n_arms
        share = floor + 0.5 * rng.dirichlet(np.ones(n_arms))
        second_derivative = 3 * (1 - weight) * std / (4 * n_arms * share**2.5)
        assert eq.strong_concavity(std, reward_weight=weight) <= second_derivative.min() + 1e-15
        assert eq.smoothness(std, reward_weight=weight, floor=floor) >= second_derivative.max() - 1e-12


# Bad input


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mean": [1, float("nan")]}, "mean must be finite; got nan for arm 1"),
        ({"mean": [float("inf"), 1]}, "mean must be finite; got inf for arm 0"),
        ({"mean": [float("inf"), float("-inf")]}, "mean must be finite; got inf for arm 0"),
        ({"mean": [], "std": []}, "mean must have at least one arm; got none"),
        ({"mean": [[1, 2]]}, r"mean must be one number per arm; got an array of shape \(1, 2\)"),
        ({"mean": 3.0}, "mean must be one number per arm"),
        ({"mean": ["a", "b"]}, "mean must be one number per arm"),
        ({"mean": ["1", "2"]}, "mean must be one number per arm"),
        ({"mean": [True, False]}, "mean must be one number per arm"),
        ({"mean": [[1], [1, 2]]}, "mean must be one number per arm"),
        ({"mean": [10**400, 1]}, "mean must be one number per arm"),
        ({"floor": "0.1"}, "floor must be a number; got '0.1'"),
        ({"std": [1, -2]}, r"std must not be negative; got -2\.0 for arm 1"),
        ({"std": [1, float("nan")]}, "std must be finite; got nan for arm 1"),
        ({"std": [1, 2, 3]}, "std must have 2 entries, one per arm; got 3"),
        ({"reward_weight": 1.3}, r"reward_weight must be in \[0, 1\]; got 1\.3"),
        ({"reward_weight": -0.1}, r"reward_weight must be in \[0, 1\]; got -0\.1"),
        ({"reward_weight": float("nan")}, r"reward_weight must be in \[0, 1\]; got nan"),
        ({"reward_weight": "0.5"}, "reward_weight must be a number; got '0.5'"),
        ({"floor": 0.6}, r"floor must add up to at most 1 over all arms; got 1\.2 for 2 arms"),
        ({"floor": [0.9, 0.2]}, r"floor must add up to at most 1 over all arms; got 1\.1"),
        ({"floor": [0.1, -0.2]}, r"floor must not be negative; got -0\.2 for arm 1"),
        ({"floor": [0.1]}, "floor must have 2 entries, one per arm; got 1"),
        ({"floor": -0.1}, r"floor must be in \[0, 1\]; got -0\.1"),
        ({"objective": "mse"}, "objective must be an Objective"),
        ({"objective": eq.PowerObjective(importance=[1, 2, 3])}, "importance must have 2 entries"),
    ],
)
def test_bad_input_says_what_was_expected(change, message):
    arguments = {"mean": [1.0, 2.0], "std": [1.0, 1.0], "reward_weight": 0.5} | change
    with pytest.raises(eq.InvalidInput, match=message):
        eq.optimal_allocation(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eq.reward([0.5, 0.6], [1, 2]), r"allocation must add up to 1; got 1\.1"),
        (lambda: eq.reward([1.5, -0.5], [1, 2]), "allocation must not be negative"),
        (lambda: eq.reward([1.0], [1, 2]), "allocation must have 2 entries"),
        (lambda: eq.reward(np.ones((2, 3)) / 3, [1, 2]), r"2 arms on its last axis; got shape \(2, 3\)"),
        (lambda: eq.reward(np.ones((2, 2)), [1, 2]), "add up to 1 over its last axis"),
        (lambda: eq.error([0.5, 0.5], [1, -1]), "std must not be negative"),
        (lambda: eq.error([0.5, 0.5], [1, 1], objective=None), "objective must be a PowerObjective"),
        (lambda: eq.reward([["a", "b"]], [1, 2]), "allocation must hold numbers"),
        (lambda: eq.reward([[1.0], [0.5, 0.5]], [1, 2]), "allocation must hold numbers"),
        (lambda: eq.reward(np.ones((0, 2)), [1, 2]), "allocation must"),
        (lambda: eq.optimal_pulls([1, 2], [1, 1], horizon=True, reward_weight=0.5), "horizon must be a whole number"),
        (lambda: eq.optimal_pulls([1, 2], [1, 1], horizon=0, reward_weight=0.5), "horizon must be at least 1; got 0"),
        (lambda: eq.optimal_pulls([1, 2], [1, 1], horizon=2.5, reward_weight=0.5), "horizon must be a whole number"),
        (
            lambda: eq.optimal_pulls([1, 2], [1, 1], horizon=10**21, reward_weight=0.5),
            "horizon must be at most 1000000000000000; got",
        ),
        (lambda: eq.frontier([1, 2], [1, 1], reward_weights=[0, 2]), r"reward_weights must be in \[0, 1\]; got 2"),
        (lambda: eq.smoothness([1, 2], reward_weight=0.5, floor=0.0), r"floor must be in \(0, 1\]; got 0\.0"),
        (lambda: eq.weight_for_error([1, 2], [1, 1], error=-1), r"error must be in \[0, inf\); got -1"),
        (lambda: eq.weight_for_reward([1, 2], [1, 1], reward=np.nan), "reward must be in"),
    ],
)
def test_other_functions_check_their_input_too(call, message):
    with pytest.raises(eq.InvalidInput, match=message):
        call()
