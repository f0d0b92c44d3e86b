"""The guarantees of Sect. 4, App. A and B: against other arithmetic, and against what really happens."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import mpmath as mp
import numpy as np
import pytest
from endurance import short_and_full
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import equipoise as eq
from equipoise import theory

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise._types import FloatArray, IntArray

    Tracker = Callable[[IntArray], int]

TWO_ARMS: dict[str, Any] = {"mean": [0.4, 0.6], "std": [0.4, 0.5], "reward_weight": 0.5, "floor": 0.25}
FOUR_ARMS: dict[str, Any] = {
    "mean": [0.1, 0.3, 0.5, 0.8],
    "std": [0.5, 0.1, 0.3, 0.2],
    "reward_weight": 0.7,
    "floor": 0.04,
}


def tradeoff(allocation: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> float:
    """f_w, written out once more."""
    error = sum(s / math.sqrt(share) for s, share in zip(std, allocation, strict=True)) / len(mean)
    return reward_weight * float(allocation @ mean) - (1 - reward_weight) * float(error)


def log_inverse(horizon: Any, n_arms: int, delta: float, *, power: int = 1) -> Any:
    return mp.log(4 * n_arms * mp.mpf(horizon) ** power * (horizon + 1) / mp.mpf(delta))


@st.composite
def instances(draw: st.DrawFn) -> tuple[FloatArray, FloatArray, float]:
    """Means in [0, 1], stds in [0.01, 0.5] and a weight below 1."""
    n_arms = draw(st.integers(2, 6))
    mean = draw(st.lists(st.floats(0, 1), min_size=n_arms, max_size=n_arms))
    std = draw(st.lists(st.floats(0.01, 0.5), min_size=n_arms, max_size=n_arms))
    return np.array(mean), np.array(std), draw(st.floats(0, 0.95))


@st.composite
def allocations(draw: st.DrawFn, n_arms: int, floor: float = 1e-6) -> FloatArray:
    """A point of the simplex whose shares are at least the floor."""
    parts = np.array(draw(st.lists(st.floats(1e-3, 1), min_size=n_arms, max_size=n_arms)))
    shares: FloatArray = floor + (1 - n_arms * floor) * parts / parts.sum()
    return shares


class TestFailureProbability:
    @pytest.mark.parametrize(("over_allocations", "power"), [(False, 1), (True, 2)])
    def test_is_the_paper_formula(self, over_allocations: bool, power: int) -> None:
        got = theory.step_failure_probability(37, n_arms=5, failure_probability=0.05, over_allocations=over_allocations)
        assert got == pytest.approx(float(mp.e ** -log_inverse(37, 5, 0.05, power=power)), rel=1e-14)

    def test_adds_up_to_a_quarter_of_delta_over_all_arms_and_steps(self) -> None:
        total = sum(theory.step_failure_probability(n, n_arms=3, failure_probability=0.2) for n in range(1, 5000))
        # sum of 1/(n(n+1)) up to N is 1 - 1/(N+1)
        assert 3 * total == pytest.approx(0.2 / 4 * (1 - 1 / 5000), rel=1e-12)

    def test_ends_at_zero_rather_than_in_an_error(self) -> None:
        assert theory.step_failure_probability(10**300, n_arms=2, failure_probability=0.5) == 0


class TestConfidenceRadii:
    """Prop. 1."""

    def test_are_the_paper_formulas(self) -> None:
        pulls = [2, 17, 301]
        setting: dict[str, Any] = {"horizon": 400, "failure_probability": 0.03, "reward_range": 7.0}
        log_term = log_inverse(400, 3, 0.03)
        mean = [float(7 * mp.sqrt(log_term / (2 * pull))) for pull in pulls]
        std = [float(7 * mp.sqrt(2 * (mp.log(2) + log_term) / pull)) for pull in pulls]
        np.testing.assert_allclose(theory.mean_confidence_radius(pulls, **setting), mean, rtol=1e-14)
        np.testing.assert_allclose(theory.std_confidence_radius(pulls, **setting), std, rtol=1e-14)

    def test_are_infinite_without_an_estimate(self) -> None:
        setting: dict[str, Any] = {"horizon": 9, "failure_probability": 0.1}
        assert np.isinf(theory.mean_confidence_radius([0, 1, 2], **setting)).tolist() == [True, False, False]
        assert np.isinf(theory.std_confidence_radius([0, 1, 2], **setting)).tolist() == [True, True, False]

    @pytest.mark.parametrize("pulls", [40, 80, 160])
    def test_fail_no_more_often_than_promised_for_coins(self, pulls: int) -> None:
        """Exact binomial probabilities: two-sided 2 delta_n for the mean, 1.14 delta_n for the std.

        The std's radius has T where Maurer and Pontil (2009, Theorem 10) have T - 1. It costs the factor
        exp(log(2/delta_n) / T), at most 1.14 wherever the radius is not larger than any std can be off.
        """
        delta_n = theory.step_failure_probability(pulls, n_arms=1, failure_probability=0.9)
        setting: dict[str, Any] = {"horizon": pulls, "failure_probability": 0.9}
        mean_radius = theory.mean_confidence_radius([pulls], **setting)[0]
        std_radius = theory.std_confidence_radius([pulls], **setting)[0]
        heads = np.arange(pulls + 1)
        sample_mean = heads / pulls
        sample_std = np.sqrt(heads * (pulls - heads) / (pulls * (pulls - 1)))
        worst = {"mean": 0.0, "std": 0.0, "mean, half the radius": 0.0, "std, half the radius": 0.0}
        for chance in np.linspace(0.001, 0.999, 999):
            weight = stats.binom.pmf(heads, pulls, chance)
            mean_off = np.abs(sample_mean - chance)
            std_off = np.abs(sample_std - math.sqrt(chance * (1 - chance)))
            for name, off, radius in [("mean", mean_off, mean_radius), ("std", std_off, std_radius)]:
                worst[name] = max(worst[name], float(weight[off > radius].sum()))
                half = f"{name}, half the radius"
                worst[half] = max(worst[half], float(weight[off > radius / 2].sum()))
        assert 0 < worst["mean"] <= 2 * delta_n < worst["mean, half the radius"]
        assert worst["std"] <= 1.14 * delta_n < worst["std, half the radius"]

    def test_hold_for_all_arms_and_steps_at_once(self) -> None:
        """Round robin over a coin, a uniform and a skewed arm; one failure anywhere spoils a replication."""
        delta, replications, rounds = 0.3, 3000, 150
        rng = np.random.default_rng(20170420)
        shape = (replications, rounds)
        arms = [
            (rng.integers(0, 2, shape).astype(float), 0.5, 0.5),
            (rng.random(shape), 0.5, math.sqrt(1 / 12)),
            (rng.beta(0.3, 1.2, shape), 0.2, math.sqrt(0.3 * 1.2 / (1.5**2 * 2.5))),
        ]
        count = np.arange(1, rounds + 1)
        radii = [
            (
                theory.mean_confidence_radius([n] * 3, horizon=3 * n, failure_probability=delta)[0],
                theory.std_confidence_radius([n] * 3, horizon=3 * n, failure_probability=delta)[0],
            )
            for n in count.tolist()
        ]
        mean_radius, std_radius = np.array(radii).T

        def failures(shrink: float) -> float:
            failed = np.zeros(replications, dtype=bool)
            for rewards, mean, std in arms:
                sample_mean = rewards.cumsum(axis=1) / count
                square = np.maximum((rewards**2).cumsum(axis=1) - count * sample_mean**2, 0)
                sample_std = np.sqrt(square / np.maximum(count - 1, 1))
                sample_std[:, 0] = std
                failed |= (np.abs(sample_mean - mean) > shrink * mean_radius).any(axis=1)
                failed |= (np.abs(sample_std - std) > shrink * std_radius).any(axis=1)
            return float(failed.mean())

        standard_error = math.sqrt(delta * (1 - delta) / replications)
        assert failures(1.0) <= delta + 3 * standard_error
        assert failures(0.4) > delta + 3 * standard_error  # the test can see radii that are too small


class TestTradeoffError:
    """Lemma 2, Cor. 1 and Lemma 5."""

    @given(st.data())
    def test_bounds_the_error_of_any_estimates_within_the_radii(self, data: st.DataObject) -> None:
        mean, std, weight = data.draw(instances())
        allocation = data.draw(allocations(mean.size))
        numbers = st.lists(st.floats(0, 0.5), min_size=mean.size, max_size=mean.size)
        signs = st.lists(st.floats(-1, 1), min_size=mean.size, max_size=mean.size)
        mean_radius, std_radius = np.array(data.draw(numbers)), np.array(data.draw(numbers))
        estimated_mean = mean + mean_radius * data.draw(signs)
        estimated_std = np.maximum(0, std + std_radius * data.draw(signs))
        error = abs(
            tradeoff(allocation, mean, std, weight) - tradeoff(allocation, estimated_mean, estimated_std, weight)
        )
        bound = theory.tradeoff_error(allocation, mean_radius=mean_radius, std_radius=std_radius, reward_weight=weight)
        assert error <= bound * (1 + 1e-9) + 1e-9

    def test_is_reached_by_equal_errors_at_equal_shares(self) -> None:
        shares, mean, std = np.full(4, 0.25), np.array([0.1, 0.2, 0.3, 0.9]), np.array([0.1, 0.2, 0.3, 0.4])
        error = tradeoff(shares, mean, std, 0.3) - tradeoff(shares, mean - 0.05, std + 0.02, 0.3)
        bound = theory.tradeoff_error(shares, mean_radius=[0.05] * 4, std_radius=[0.02] * 4, reward_weight=0.3)
        assert bound == pytest.approx(error, rel=1e-12)

    def test_is_infinite_when_an_arm_is_unknown(self) -> None:
        setting: dict[str, Any] = {"mean_radius": [0.1, 0.1], "reward_weight": 0.5}
        assert theory.tradeoff_error([0.5, 0.5], std_radius=[math.inf, 0.1], **setting) == math.inf
        assert theory.tradeoff_error([0.0, 1.0], std_radius=[0.1, 0.1], **setting) == math.inf

    def test_counts_nothing_that_has_no_weight(self) -> None:
        no_std: dict[str, Any] = {"mean_radius": [0.1, 0.2], "std_radius": [math.inf, 0.1]}
        no_mean: dict[str, Any] = {"mean_radius": [math.inf, 0.2], "std_radius": [0.1, 0.1]}
        assert theory.tradeoff_error([0.0, 1.0], **no_std, reward_weight=1) == 0.2
        assert theory.tradeoff_error([0.25, 0.75], **no_mean, reward_weight=0) == 0.2

    def test_uniform_error_is_the_paper_formula(self) -> None:
        setting: dict[str, Any] = {"horizon": 1000, "floor": 0.05, "failure_probability": 0.02}
        log_term = mp.log(2) + log_inverse(1000, 3, 0.02, power=2)
        wanted = float(2.5 * mp.sqrt(2 * 3 * log_term / (mp.mpf(0.05) * 40)))
        error = theory.uniform_tradeoff_error([900, 40, 60], **setting, reward_range=2.5)
        assert error == pytest.approx(wanted, rel=1e-14)
        gap = theory.estimated_optimum_gap([900, 40, 60], **setting, reward_range=2.5)
        assert gap == pytest.approx(2 * wanted, rel=1e-14)
        assert theory.uniform_tradeoff_error([998, 1, 1], **setting) == math.inf

    @given(st.data())
    def test_uniform_error_is_wider_than_needed_by_the_root_of_the_number_of_arms(self, data: st.DataObject) -> None:
        """Lemma 2 with the radii of Prop. 1 holds for all allocations at once already."""
        pulls = np.array(data.draw(st.lists(st.integers(2, 10_000), min_size=2, max_size=6)))
        floor = data.draw(st.floats(0.01, 1)) / pulls.size
        setting: dict[str, Any] = {"horizon": int(pulls.sum()), "failure_probability": 0.1}
        fixed = theory.tradeoff_error(
            data.draw(allocations(pulls.size, floor)),
            mean_radius=theory.mean_confidence_radius(pulls, **setting),
            std_radius=theory.std_confidence_radius(pulls, **setting),
            reward_weight=data.draw(st.floats(0, 1)),
        )
        uniform = theory.uniform_tradeoff_error(pulls, floor=floor, **setting)
        assert fixed <= uniform / math.sqrt(pulls.size) * (1 + 1e-9)

    def test_gap_of_the_estimated_optimum_holds_on_rewards(self) -> None:
        """The bound is so wide that this can only see a bound that is wrong by an order of magnitude."""
        rng = np.random.default_rng(7)
        chance, weight, floor, pulls = np.array([0.2, 0.5, 0.9]), 0.3, 0.1, np.array([400, 500, 600])
        std = np.sqrt(chance * (1 - chance))
        bound = theory.estimated_optimum_gap(pulls, horizon=1500, floor=floor, failure_probability=0.1)
        best = eq.optimal_allocation(chance, std, reward_weight=weight, floor=floor)
        gaps = []
        for _ in range(200):
            seen = rng.binomial(pulls, chance) / pulls
            seen_std = np.sqrt(seen * (1 - seen) * pulls / (pulls - 1))
            chosen = eq.optimal_allocation(seen, seen_std, reward_weight=weight, floor=floor)
            gaps.append(tradeoff(best, chance, std, weight) - tradeoff(chosen, chance, std, weight))
        assert 0 < max(gaps) <= bound
        assert min(gaps) >= -1e-12


class TestBetweenValueAndAllocation:
    """Lemmas 3 and 4."""

    def test_are_the_paper_formulas(self) -> None:
        std, weight = [0.1, 0.5, 0.3], 0.6
        alpha = 3 * mp.mpf(0.4) * mp.mpf(0.1) / 12
        beta = 3 * mp.mpf(0.4) * mp.mpf(0.5) / (12 * mp.mpf(0.2) ** 2.5)
        proved = theory.allocation_distance(0.01, std, reward_weight=weight)
        printed = theory.allocation_distance(0.01, std, reward_weight=weight, as_printed=True)
        assert proved == pytest.approx(float(mp.sqrt(2 * mp.mpf(0.01) / alpha)), rel=1e-14)
        assert printed == pytest.approx(float(mp.sqrt(2 * 3 * mp.mpf(0.01) / alpha)), rel=1e-14)
        gap = theory.value_gap(0.05, std, reward_weight=weight, floor=0.2)
        assert gap == pytest.approx(float(1.5 * beta * mp.mpf(0.05) ** 2), rel=1e-14)

    @given(st.data())
    def test_an_allocation_that_loses_little_is_near_the_optimum(self, data: st.DataObject) -> None:
        mean, std, weight = data.draw(instances())
        floor = data.draw(st.floats(0, 0.9)) / mean.size
        allocation = data.draw(allocations(mean.size, max(floor, 1e-6)))
        best = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
        gap = tradeoff(best, mean, std, weight) - tradeoff(allocation, mean, std, weight)
        distance = float(np.linalg.norm(allocation - best))
        # f_w is computed to about 1e-13, which the square root of Lemma 3 turns into something visible.
        bound = theory.allocation_distance(max(gap, 0) + 1e-12, std, reward_weight=weight)
        assert distance <= bound * (1 + 1e-9)

    @given(st.data())
    def test_an_allocation_near_the_optimum_loses_little(self, data: st.DataObject) -> None:
        mean, std, weight = data.draw(instances())
        best = eq.optimal_allocation(mean, std, reward_weight=weight)
        floor = float(best.min()) * data.draw(st.floats(0.1, 1))
        allocation = data.draw(allocations(mean.size, floor))
        gap = tradeoff(best, mean, std, weight) - tradeoff(allocation, mean, std, weight)
        bound = theory.value_gap(float(np.linalg.norm(allocation - best)), std, reward_weight=weight, floor=floor)
        assert gap <= bound / 3 * (1 + 1e-9) + 1e-12

    def test_a_third_of_lemma_4_is_what_equal_arms_lose(self) -> None:
        """With equal arms and a floor at their equal shares, f_w curves by smoothness in every direction."""
        allocation, std = np.array([0.501, 0.499]), np.array([0.3, 0.3])
        gap = tradeoff(np.full(2, 0.5), np.zeros(2), std, 0.2) - tradeoff(allocation, np.zeros(2), std, 0.2)
        bound = theory.value_gap(0.001 * math.sqrt(2), std, reward_weight=0.2, floor=0.499)
        assert gap == pytest.approx(bound / 3, rel=0.01)

    def test_lemma_4_needs_the_optimum_above_the_floor(self) -> None:
        """A floor that cuts the optimum off leaves a loss linear in the distance, which no square bounds."""
        mean, std, weight, floor = np.array([0.0, 1.0]), np.array([0.1, 0.1]), 0.9, 0.4
        best = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
        assert best == pytest.approx([0.4, 0.6])
        allocation = best + np.array([0.01, -0.01])
        gap = tradeoff(best, mean, std, weight) - tradeoff(allocation, mean, std, weight)
        bound = theory.value_gap(0.01 * math.sqrt(2), std, reward_weight=weight, floor=floor)
        assert gap > 10 * bound


def pull_always(arm: int) -> Tracker:
    return lambda _: arm


def pull_the_richest(pulls: IntArray) -> int:
    return int(pulls.argmax())


def pull_at_random(seed: int) -> Tracker:
    rng = np.random.default_rng(seed)
    return lambda pulls: int(rng.integers(pulls.size))


def counts_over_time(
    n_arms: int, forcing: float, horizon: int, tracker: Tracker, *, at_least: float = 0, plus: float = 0
) -> tuple[IntArray, int]:
    """Return the least pulls of an arm after 0, 1, ... steps, and the first step that was not forced."""
    pulls, least, first = np.zeros(n_arms, dtype=np.int64), [0], 0
    for step in range(1, horizon + 1):
        if pulls.min() < max(at_least, forcing * math.sqrt(step) + plus):
            arm = int(pulls.argmin())
        else:
            arm, first = tracker(pulls), first or step
        pulls[arm] += 1
        least.append(int(pulls.min()))
    return np.array(least), first


FORCED = [(n_arms, forcing) for n_arms in (1, 2, 3, 7) for forcing in (0.05, 0.3, 1.0, 2.2)] + [(20, 0.5)]


class TestForcing:
    """Lemma 6 and Cor. 2, with trackers that starve all arms but one."""

    @given(n_arms=st.integers(1, 1000), forcing=st.floats(0, 21))
    def test_exploration_bound_is_the_paper_formula(self, n_arms: int, forcing: float) -> None:
        wanted = n_arms * (n_arms * mp.mpf(forcing) ** 2 + mp.mpf(forcing) * mp.sqrt(n_arms) + 1)
        assert theory.exploration_bound(n_arms, forcing=forcing) == pytest.approx(float(wanted), rel=1e-14)

    @pytest.mark.parametrize(("n_arms", "forcing"), FORCED)
    def test_exploration_ends_where_it_ends(self, n_arms: int, forcing: float) -> None:
        end = theory.exploration_end(n_arms, forcing=forcing)
        _, first = counts_over_time(n_arms, forcing, end + 5, pull_always(0), at_least=2)
        assert first == end

    @pytest.mark.parametrize(("n_arms", "forcing"), FORCED)
    def test_printed_end_is_the_smallest_that_lemma_6_describes(self, n_arms: int, forcing: float) -> None:
        rounds = next(r for r in range(1, 10**6) if r >= forcing * math.sqrt(r * n_arms) + 1)
        end = theory.exploration_end(n_arms, forcing=forcing, as_printed=True)
        assert end == rounds * n_arms + 1
        # Cor. 2 drops the rounding to whole rounds.
        assert end <= theory.exploration_bound(n_arms, forcing=forcing) + n_arms + 1

    def test_the_printed_end_may_come_after_n_0(self) -> None:
        assert theory.exploration_end(2, forcing=0.07, as_printed=True) == 5
        assert theory.exploration_bound(2, forcing=0.07) < 3

    def test_without_forcing_each_arm_gets_two_pulls(self) -> None:
        assert theory.exploration_end(6, forcing=0) == 13
        assert theory.exploration_end(6, forcing=0, as_printed=True) == 7
        assert theory.least_pulls(10**6, n_arms=6, forcing=0) == 2

    @pytest.mark.parametrize("tracker", [pull_always(0), pull_the_richest, pull_at_random(3)])
    @pytest.mark.parametrize(("n_arms", "forcing"), FORCED)
    def test_every_arm_has_the_least_pulls(self, n_arms: int, forcing: float, tracker: Tracker) -> None:
        horizon = int(4 * theory.exploration_bound(n_arms, forcing=forcing)) + 2000
        least, _ = counts_over_time(n_arms, forcing, horizon, tracker, at_least=2)
        promised = [theory.least_pulls(n, n_arms=n_arms, forcing=forcing) for n in range(1, horizon + 1)]
        assert (least[1:] >= promised).all()

    @pytest.mark.parametrize(("n_arms", "forcing"), [(2, 1.0), (5, 1.0), (7, 0.3)])
    def test_starved_arms_get_the_least_pulls_and_no_more(self, n_arms: int, forcing: float) -> None:
        least, _ = counts_over_time(n_arms, forcing, 20_000, pull_always(0), at_least=2)
        promised = [theory.least_pulls(n, n_arms=n_arms, forcing=forcing) for n in range(1, 20_001)]
        assert least[1:].tolist() == promised

    @pytest.mark.parametrize(("n_arms", "forcing"), FORCED)
    def test_corollary_2_holds_for_the_rule_of_lemma_6(self, n_arms: int, forcing: float) -> None:
        start = math.ceil(theory.exploration_bound(n_arms, forcing=forcing))
        least, _ = counts_over_time(n_arms, forcing, 4 * start + 2000, pull_always(0), plus=1)
        steps = np.arange(start, least.size + 1)
        assert (least[start - 1 :] >= forcing * np.sqrt(steps)).all()

    def test_corollary_2_misses_by_less_than_one_pull_for_the_rule_of_fig_2(self) -> None:
        """An arm is forced only once it is behind, so eta sqrt(n) cannot be what it always has."""
        start = math.ceil(theory.exploration_bound(5, forcing=1.0))
        least, _ = counts_over_time(5, 1.0, 5000, pull_always(0))
        short = np.sqrt(np.arange(start, least.size + 1)) - least[start - 1 :]
        assert 0 < short.max() < 1


class TestTracking:
    """Lemma 7."""

    def test_is_the_paper_formula_with_one_over_n(self) -> None:
        assert theory.tracking_error(0.02, horizon=1000, n_arms=4, settled_from=30) == pytest.approx(3 * 0.041)
        assert theory.tracking_error(0.001, horizon=1000, n_arms=4, settled_from=30) == pytest.approx(3 * 0.03)
        assert theory.tracking_error(0.02, horizon=1000, n_arms=1, settled_from=30) == 0

    @pytest.mark.parametrize("n_arms", [2, 3, 6])
    @pytest.mark.parametrize("forcing", [0.2, 1.0])
    def test_holds_after_the_worst_start_and_with_bad_targets(self, n_arms: int, forcing: float) -> None:
        rng = np.random.default_rng(n_arms)
        best = rng.dirichlet(np.ones(n_arms))
        start, horizon = 60, 4000
        pulls = np.zeros(n_arms)
        pulls[best.argmin()] = start  # the first steps all went to the arm that deserves them least
        closest = math.inf
        for step in range(start, horizon):
            error = np.abs(pulls / step - best).max()
            # Smallest omega of this shape with 2 n omega(n) >= eta sqrt(n) + 1 throughout.
            omega = (forcing * math.sqrt(step) + 1) / (2 * step)
            bound = theory.tracking_error(omega, horizon=step, n_arms=n_arms, settled_from=start)
            assert error <= bound
            closest = min(closest, bound - error)
            if pulls.min() < forcing * math.sqrt(step + 1):
                arm = int(pulls.argmin())
            else:
                target = best + omega * rng.choice([-1, 1], n_arms)
                arm = int((target - pulls / step).argmax())
            pulls[arm] += 1
        if n_arms == 2:
            assert closest < 0.03  # the bound is not vacuous: a slightly smaller one would fail

    @pytest.mark.parametrize("n_arms", [2, 3, 10, 100])
    @pytest.mark.parametrize("forcing", [0.01, 0.3, 1.0, 5.0, 21.0])
    def test_the_targets_of_step_5_meet_its_condition_from_n_0_on(self, n_arms: int, forcing: float) -> None:
        """Lemma 8 says so for another omega. The worst arms have std 1/2, weight 0 and equal shares.

        Also n omega(n) >= 4, which makes (2 omega + 1/n)^2 at most (9/4 omega)^2, and the constant 43.
        """
        alpha = eq.strong_concavity(np.full(n_arms, 0.5), reward_weight=0)
        start = math.floor(theory.exploration_bound(n_arms, forcing=forcing)) + 1
        for n in [start + k for k in range(50)] + [start * 2**k for k in range(40)]:
            log_term = float(mp.log(2) + log_inverse(n, n_arms, 0.999))
            omega = 2 / math.sqrt(alpha) * (2 * n_arms**2 * log_term / (forcing * math.sqrt(n))) ** 0.25
            assert 2 * n * omega >= forcing * math.sqrt(n) + 1
            assert n * omega >= 4

    def test_the_condition_of_lemma_8_can_fail_before_n_0(self) -> None:
        """Two arms of std 1/2, weight 0, equal shares and the largest forcing, at n = 4."""
        gap = 2 * math.sqrt(2 * 2 * float(mp.log(2) + log_inverse(4, 2, 0.5, power=2)) / (0.5 * 21 * 2))
        omega = theory.allocation_distance(gap, [0.5, 0.5], reward_weight=0)
        assert 2 * 4 * omega < 21 * 2 + 1


def exact_bound(n: int, arms: dict[str, Any], forcing: float, delta: float, constant: Any) -> tuple[int, Any, Any]:
    """Theorem 1 once more, in 40 digits, with its own optimum; returns phase, value and n_2."""
    with mp.workdps(40):
        mean, std = [mp.mpf(x) for x in arms["mean"]], [mp.mpf(x) for x in arms["std"]]
        weight, floor, k = mp.mpf(arms["reward_weight"]), mp.mpf(arms["floor"]), len(arms["mean"])
        share = min(exact_optimum(mean, std, weight))
        alpha = 3 * (1 - weight) * min(std) / (4 * k)
        beta = 3 * (1 - weight) * max(std) / (4 * k * floor ** (mp.mpf(5) / 2))
        log_1 = log_inverse(n, k, delta)
        log_2 = mp.log(2) + log_1
        n_0 = k * (k * mp.mpf(forcing) ** 2 + mp.mpf(forcing) * mp.sqrt(k) + 1)
        n_2 = constant / share**8 * mp.mpf(k) ** 10 / alpha**4 * log_1**2 / floor**2
        shape = mp.mpf(k) ** mp.mpf("2.5") * beta / alpha
        if n <= n_0:
            return 1, mp.mpf(1), n_2
        if n <= n_2:
            return 2, 43 * shape * mp.sqrt(log_2 / (mp.mpf(forcing) * floor)) / mp.mpf(n) ** mp.mpf("0.25"), n_2
        return 3, 153 * shape * mp.sqrt(log_2 / (floor * share)) / mp.sqrt(n), n_2


def exact_optimum(mean: list[Any], std: list[Any], weight: Any) -> list[Any]:
    """Bisection on the multiplier of the simplex."""
    scale = [(1 - weight) * s / (2 * len(mean)) for s in std]

    def shares(multiplier: Any) -> list[Any]:
        return [(c / (multiplier - weight * m)) ** (mp.mpf(2) / 3) for c, m in zip(scale, mean, strict=True)]

    low = max(c + weight * m for c, m in zip(scale, mean, strict=True))
    high = max(weight * m for m in mean) + len(mean) ** 2 * max(scale)
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(shares(middle)) > 1 else (low, middle)
    return shares(low)


class TestTheorem:
    """Theorem 1."""

    @pytest.mark.parametrize("arms", [TWO_ARMS, FOUR_ARMS])
    @pytest.mark.parametrize("n", [1, 9, 10, 27, 29, 10**6, 10**20, 10**27, 10**35, 10**90])
    def test_is_the_paper_formula(self, arms: dict[str, Any], n: int) -> None:
        setting: dict[str, Any] = {"failure_probability": 0.02, "constant": 1000.0}
        phase, value, n_2 = exact_bound(n, arms, 1.3, 0.02, 1000)
        got = theory.regret_bound(n, **arms, forcing=1.3, **setting)
        assert got.phase == phase
        assert got.value == pytest.approx(float(value), rel=1e-12)
        threshold = theory.third_phase_threshold(n, **arms, **setting)
        assert threshold == pytest.approx(float(n_2), rel=1e-11)

    def test_the_constant_is_that_of_step_8_unless_told(self) -> None:
        _, _, n_2 = exact_bound(10**9, FOUR_ARMS, 1.0, 0.05, 4**8)
        assert theory.third_phase_threshold(10**9, **FOUR_ARMS) == pytest.approx(float(n_2), rel=1e-11)

    def test_the_first_phase_ends_at_n_0(self) -> None:
        assert theory.exploration_bound(4, forcing=1) == 28
        assert theory.regret_bound(28, **FOUR_ARMS).phase == 1
        assert theory.regret_bound(29, **FOUR_ARMS).phase == 2

    @pytest.mark.parametrize("arms", [TWO_ARMS, FOUR_ARMS])
    @pytest.mark.parametrize("constant", [theory.STEP_8_CONSTANT, 1e-3])
    def test_the_third_phase_starts_above_its_own_threshold(self, arms: dict[str, Any], constant: float) -> None:
        start = theory.third_phase_start(**arms, constant=constant)
        assert theory.regret_bound(start, **arms, constant=constant).phase == 3
        assert theory.regret_bound(start - 1, **arms, constant=constant).phase == 2
        # The fixed point of n = n_2(n), iterated in 40 digits.
        with mp.workdps(40):
            exact = mp.mpf(10) ** 9
            for _ in range(60):
                _, _, exact = exact_bound(exact, arms, 1.0, 0.05, mp.mpf(constant))
        assert start == pytest.approx(float(exact), rel=1e-11)

    @pytest.mark.parametrize("arms", [TWO_ARMS, FOUR_ARMS])
    def test_falls_within_the_second_and_third_phase_and_between_them(self, arms: dict[str, Any]) -> None:
        start = theory.third_phase_start(**arms)
        horizons = sorted({29, 30, 31, start - 1, start, start + start // 100, *(29 * 2**k for k in range(120))})
        bounds = [theory.regret_bound(n, **arms) for n in horizons]
        phases = [bound.phase for bound in bounds]
        values = [bound.value for bound in bounds]
        assert phases == sorted(phases)
        assert set(phases) == {2, 3}
        assert all(later < earlier for earlier, later in itertools.pairwise(values))
        # The rates: n^(-1/4) and n^(-1/2), up to the logarithm.
        last, before = theory.regret_bound(2**20 * start, **arms), theory.regret_bound(2**18 * start, **arms)
        assert 0.5 < last.value / before.value < 0.5 * 1.02
        late, early = theory.regret_bound(2**24, **arms), theory.regret_bound(2**20, **arms)
        assert 0.5 < late.value / early.value < 0.5 * 1.1

    @pytest.mark.parametrize("horizon", [10, 10**6, 10**45])
    def test_scales_with_the_rewards(self, horizon: int) -> None:
        arms = dict(FOUR_ARMS)
        unit = theory.regret_bound(horizon, **arms)
        arms["mean"] = [100 + 8 * x for x in arms["mean"]]
        arms["std"] = [8 * x for x in arms["std"]]
        scaled = theory.regret_bound(horizon, **arms, reward_range=8)
        assert scaled.phase == unit.phase
        assert scaled.value == pytest.approx(8 * unit.value, rel=1e-9)
        wanted = theory.third_phase_start(**FOUR_ARMS)
        assert theory.third_phase_start(**arms, reward_range=8) == pytest.approx(wanted, rel=1e-9)

    @pytest.mark.parametrize("n_arms", range(2, 40))
    def test_equal_arms_may_have_their_equal_share_as_floor(self, n_arms: int) -> None:
        """The optimal shares may be a rounding below 1/K."""
        bound = theory.regret_bound(10**6, [0.5] * n_arms, [0.1] * n_arms, reward_weight=0.5, floor=1 / n_arms)
        assert bound.phase == 2

    def test_the_horizon_may_be_as_large_as_floats_go(self) -> None:
        assert theory.regret_bound(10**300, **TWO_ARMS).phase == 3
        narrow = {**TWO_ARMS, "std": [1e-70, 0.5], "floor": 1e-60}
        assert theory.regret_bound(10**300, **narrow).phase == 2
        with pytest.raises(eq.InvalidInput, match="third phase must start before 1e\\+300 steps; got a smallest"):
            theory.third_phase_start(**narrow)

    @pytest.mark.parametrize("forcing", [0.3, 1.0, 4.0])
    def test_step_6_needs_a_larger_constant_than_step_8_has(self, forcing: float) -> None:
        """Every arm has half its share once the tracking error is at most half the smallest share."""
        mean, std, weight, floor = (FOUR_ARMS[name] for name in ("mean", "std", "reward_weight", "floor"))
        smallest = float(eq.optimal_allocation(mean, std, reward_weight=weight).min())

        def tracking_error(constant: float) -> float:
            n = theory.third_phase_start(**FOUR_ARMS, constant=constant)
            pulls = [forcing * math.sqrt(n)] * 4
            gap = theory.estimated_optimum_gap(pulls, horizon=n, floor=floor, failure_probability=0.05)
            target_error = theory.allocation_distance(gap, std, reward_weight=weight)
            n_0 = theory.exploration_bound(4, forcing=forcing)
            return theory.tracking_error(target_error, horizon=n, n_arms=4, settled_from=n_0)

        assert tracking_error(theory.STEP_8_CONSTANT) > smallest / 2
        # 2 omega in place of omega and a lost 2^(1/4), both to the eighth power; eta; log(2/delta_n) of Cor. 1.
        assert tracking_error(2.5 * 2**10 * theory.STEP_8_CONSTANT / forcing**2) <= smallest / 2

    def test_says_nothing_about_two_coins_for_longer_than_one_can_wait(self) -> None:
        mean = np.array([0.4, 0.6])
        coins: dict[str, Any] = {"std": np.sqrt(mean * (1 - mean)), "reward_weight": 0.5, "floor": 0.25}
        assert theory.regret_bound(10**20, mean, **coins).value > 1
        assert theory.regret_bound(2 * 10**20, mean, **coins).value < 1

    def test_the_first_phase_is_not_bounded_by_1_for_many_arms(self) -> None:
        """Uniform exploration of 450 arms, 200 of them noisy: regret 1.5 with rewards in [0, 1]."""
        n_arms = 450
        mean, std = np.full(n_arms, 0.5), np.where(np.arange(n_arms) < 200, 0.5, 1e-9)
        best = eq.optimal_allocation(mean, std, reward_weight=0)
        uniform = np.full(n_arms, 1 / n_arms)
        assert 10 * n_arms <= theory.exploration_bound(n_arms, forcing=1)
        assert tradeoff(best, mean, std, 0) - tradeoff(uniform, mean, std, 0) > 1.5


GOOD: dict[str, Any] = {"horizon": 100, **TWO_ARMS}
RADII: dict[str, Any] = {"pulls": [3, 4], "horizon": 10, "failure_probability": 0.1}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.regret_bound(**GOOD | {"horizon": 0}), "horizon must be at least 1; got 0"),
        (lambda: theory.regret_bound(**GOOD | {"horizon": 1.5}), "horizon must be a whole number; got 1.5"),
        (lambda: theory.regret_bound(**GOOD | {"horizon": 10**301}), "horizon must be at most 1e+300; got 1000 bits"),
        (lambda: theory.regret_bound(**GOOD, forcing=22), "forcing must be in (0, 21]; got 22"),
        (lambda: theory.regret_bound(**GOOD, forcing=0), "forcing must be in (0, 21]; got 0"),
        (lambda: theory.regret_bound(**GOOD, constant=0), "constant must be in (0, inf); got 0"),
        (lambda: theory.regret_bound(**GOOD, failure_probability=1), "failure_probability must be in (0, 1); got 1"),
        (lambda: theory.regret_bound(**GOOD, failure_probability=0), "failure_probability must be in (0, 1); got 0"),
        (lambda: theory.regret_bound(**GOOD | {"reward_weight": 1}), "reward_weight must be in [0, 1); got 1"),
        (lambda: theory.regret_bound(**GOOD | {"reward_weight": -0.1}), "reward_weight must be in [0, 1); got -0.1"),
        (lambda: theory.regret_bound(**GOOD | {"floor": 0}), "floor must be in (0, 1]; got 0"),
        (
            lambda: theory.regret_bound(**GOOD | {"floor": 0.45}),
            "floor must be at most the smallest optimal share, 0.367652 (Asm. 1); got 0.45",
        ),
        (
            lambda: theory.regret_bound(**GOOD | {"floor": 0.6}),
            "floor must add up to at most 1 over all arms; got 1.2 for 2 arms",
        ),
        (
            lambda: theory.regret_bound(**GOOD | {"mean": [0.5], "std": [0.5]}),
            "mean must have at least 2 entries, one per arm (Theorem 1); got 1",
        ),
        (
            lambda: theory.regret_bound(**GOOD | {"std": [0.0, 0.5]}),
            "std must be positive for every arm (Lemma 1); got 0 for arm 0",
        ),
        (
            lambda: theory.regret_bound(**GOOD | {"std": [0.4, 0.6]}),
            "reward_range must be at least 1.2 for these means and stds; got 1.0",
        ),
        (
            lambda: theory.regret_bound(**GOOD | {"mean": [-2.0, 0.5]}),
            "reward_range must be at least 2.5 for these means and stds; got 1.0",
        ),
        (
            lambda: theory.third_phase_start(**TWO_ARMS, reward_range=0.5),
            "reward_range must be at least 1 for these means and stds; got 0.5",
        ),
        (lambda: theory.third_phase_threshold(**GOOD, reward_range=0), "reward_range must be in (0, inf); got 0"),
        (
            lambda: theory.mean_confidence_radius(**RADII | {"horizon": 6}),
            "pulls must add up to at most horizon, 6; got 7",
        ),
        (
            lambda: theory.std_confidence_radius(**RADII | {"pulls": [-1, 2]}),
            "pulls must not be negative; got -1.0 for arm 0",
        ),
        (lambda: theory.mean_confidence_radius(**RADII, reward_range=-1), "reward_range must be in (0, inf); got -1"),
        (lambda: theory.uniform_tradeoff_error(**RADII, floor=0.0), "floor must be in (0, 1]; got 0.0"),
        (
            lambda: theory.tradeoff_error([0.5, 0.5], mean_radius=[0.1], std_radius=[0, 0], reward_weight=0.5),
            "mean_radius must be 2 numbers of at least 0, one per arm; got [0.1]",
        ),
        (
            lambda: theory.tradeoff_error([0.5, 0.5], mean_radius=[0, 0], std_radius="ab", reward_weight=0.5),
            "std_radius must be 2 numbers, one per arm; got 'ab'",
        ),
        (
            lambda: theory.tradeoff_error([0.5, 0.6], mean_radius=[0, 0], std_radius=[0, 0], reward_weight=0.5),
            "allocation must add up to 1; got 1.1",
        ),
        (lambda: theory.allocation_distance(-1, [1, 1], reward_weight=0.5), "gap must be in [0, inf); got -1"),
        (
            lambda: theory.allocation_distance(1, [1, 0], reward_weight=0.5),
            "std must be positive for every arm (Lemma 1); got 0 for arm 1",
        ),
        (
            lambda: theory.value_gap(0.1, [1, 1], reward_weight=1.0, floor=0.1),
            "reward_weight must be in [0, 1); got 1.0",
        ),
        (lambda: theory.exploration_bound(0, forcing=1), "n_arms must be at least 1; got 0"),
        (lambda: theory.exploration_end(2, forcing=-1), "forcing must be in [0, 1e+09]; got -1"),
        (lambda: theory.least_pulls(5, n_arms=2, forcing=math.nan), "forcing must be in [0, 1e+09]; got nan"),
        (
            lambda: theory.tracking_error(0.1, horizon=10, n_arms=2, settled_from=11),
            "settled_from must be in [0, 10]; got 11",
        ),
    ],
)
def test_wrong_input_is_told_what_was_expected(call: Callable[[], object], message: str) -> None:
    with pytest.raises(eq.InvalidInput) as caught:
        call()
    assert caught.value.message == message


@pytest.mark.parametrize("trials", short_and_full(60, 1000))
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_least_error_at_a_loss_is_that_of_a_conic_solver(trials):
    import cvxpy as cp

    rng, agreed = np.random.default_rng(21), 0
    for _ in range(trials):
        mean, std = rng.normal(size=rng.integers(2, 9)), np.exp(rng.normal(size=9))
        std = std[: mean.size] * (rng.random(mean.size) > rng.choice([0, 0.3]))
        gap, noisy = mean.max() - mean, std > 0
        if not noisy.any():
            continue
        loss = float(gap.mean() * rng.choice([2, 0.5, 0.1, 0.01]))
        share = cp.Variable(mean.size)
        error = std[noisy] @ cp.power(share[noisy], -0.5) / mean.size
        limits = [cp.sum(share) == 1, share >= 0, gap @ share / loss <= 1]
        try:
            cp.Problem(cp.Minimize(error), limits).solve(solver=cp.CLARABEL)
        except cp.SolverError:
            continue
        found = theory.least_error(mean, std, loss=loss)
        assert found <= float(error.value) * (1 + 1e-5)  # the solver may exceed the loss by its tolerance
        agreed += found >= float(error.value) * (1 - 1e-5)
    assert agreed > 0.7 * trials


def test_the_least_error_is_on_the_frontier():
    mean, std = [1, 1.5, 2, 4, 5], [0.22, 0.32, 0.45, 2, 0.71]
    for weight in (0.1, 0.5, 0.9, 0.999):
        share = eq.optimal_allocation(mean, std, reward_weight=weight)
        loss = 5 - eq.reward(share, mean)
        assert theory.least_error(mean, std, loss=loss) == pytest.approx(eq.error(share, std), rel=1e-9)
    assert theory.least_error([1, 1], [1, 1], loss=0) == pytest.approx(np.sqrt(2))
    assert theory.least_error([1, 2], [0, 0], loss=0) == 0
    assert theory.least_error([1, 2], [0, 1], loss=0) == 0.5
    assert theory.least_error([1, 2], [1, 0], loss=0.25) == pytest.approx(0.5 / np.sqrt(0.25))


@pytest.mark.parametrize("about", ["average", "every-arm", "best-arm"])
def test_error_and_loss_cannot_both_be_small(about):
    rng = np.random.default_rng(22)
    for _ in range(300):
        n_arms = int(rng.integers(2, 9))
        mean, std = rng.normal(size=n_arms), np.exp(rng.normal(size=n_arms))
        share = rng.dirichlet(np.full(n_arms, rng.choice([0.1, 1, 10])))
        gap, own, best = mean.max() - mean, std**2 / share, int(mean.argmax())
        others = np.arange(n_arms) != best
        squared_error = {
            "average": np.sqrt(own).mean() ** 2,
            "every-arm": own.max(),
            "best-arm": ((own[others] + own[best]) / gap[others] ** 2).max(),
        }[about]
        assert squared_error * (share @ gap) >= theory.error_and_loss(mean, std, about=about) * (1 - 1e-12)


def test_the_product_of_error_and_loss_is_reached_as_the_loss_falls():
    mean, std = np.array([1, 1.5, 2, 4, 5]), np.array([0.22, 0.32, 0.45, 2, 0.71])
    product, gap = theory.error_and_loss(mean, std), 5 - mean
    found = [theory.least_error(mean, std, loss=loss) ** 2 * loss for loss in (1e-2, 1e-6, 1e-10)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(product, rel=1e-4)
    # Nearly all pulls to the best arm; the rest in proportion to (std / gap)^(2/3), to the variances, or to
    # (std / gap)^2.
    kinds = {
        "average": ((std[:4] / gap[:4]) ** (2 / 3), lambda own: np.sqrt(own).mean() ** 2),
        "every-arm": (std[:4] ** 2, np.max),
        "best-arm": ((std[:4] / gap[:4]) ** 2, lambda own: ((own[:4] + own[4]) / gap[:4] ** 2).max()),
    }
    for about, (rest, squared_error) in kinds.items():
        share = np.append(1e-8 * rest / rest.sum(), 1 - 1e-8)
        product = squared_error(std**2 / share) * (share @ gap)
        assert product == pytest.approx(theory.error_and_loss(mean, std, about=about), rel=1e-2)


def test_ucb_pays_for_its_small_loss():
    arms = eq.Gaussian(mean=[0, 1], std=[1, 1])
    runs = eq.simulate(eq.UCB(), arms, horizon=20_000, replications=20, checkpoints=[200, 2_000, 20_000], seed=1)
    total_loss = runs.checkpoints * (1 - runs.reward()[0])
    standard_error = runs.error()[0] / np.sqrt(runs.checkpoints)
    assert (standard_error**2 * total_loss >= theory.error_and_loss([0, 1], [1, 1])).all()
    assert theory.least_total_loss([0, 1], [1, 1], standard_error=0.05) == pytest.approx(100)
    with pytest.raises(eq.InvalidInput, match="must have one best arm"):
        theory.least_total_loss([1, 1], [1, 1], standard_error=0.1, about="best-arm")


def test_reward_and_error_are_exchanged_at_the_multiplier():
    """Whatever the pulls: what is lost in reward is at most what is gained in accuracy, at the price of Sect. 2."""
    rng = np.random.default_rng(23)
    for _ in range(200):
        mean, std = rng.normal(size=4), np.exp(rng.normal(size=4))
        kept = float(rng.uniform(0.1, 0.99))
        best = eq.optimal_allocation(mean, std, information_kept=kept)
        price = eq.multiplier_for_information(mean, std, information_kept=kept)
        step = 1e-3 * rng.normal(size=4) * best
        near, far = best + step - best * step.sum(), rng.dirichlet(np.ones(4))
        limit = eq.error(best, std)
        near, far = ((best - x) @ mean + price * (eq.error(x, std) - limit) for x in (near, far))
        assert far >= -1e-9
        assert -1e-12 <= near < 1e-4 * price * limit  # of second order
