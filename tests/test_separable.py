"""Objectives can be exchanged: the power family by the kernel, any other by its derivative."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import reference
from endurance import given_short_and_full
from hypothesis import strategies as st

import equipoise as eq


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerByDerivative(eq.SeparableObjective):
    """A member of the power family that is known by its derivative only."""

    power: float = 0.5

    def derivative(self, share, mean, std, reward_weight):
        steepness = self.power * (1 - reward_weight) / mean.size * std ** (2 * self.power)
        return reward_weight * mean + steepness / share ** (1 + self.power)


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerByInverse(PowerByDerivative):
    """The same with the inverse of the derivative."""

    def inverse_derivative(self, slope, mean, std, reward_weight):
        steepness = self.power * (1 - reward_weight) / mean.size * std ** (2 * self.power)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (steepness / (slope - reward_weight * mean)) ** (1 / (1 + self.power))
        return np.where(slope > reward_weight * mean, share, np.inf)


@dataclass(frozen=True, kw_only=True, repr=False)
class CappedReward(eq.SeparableObjective):
    """Reward alone, worth nothing beyond a share of one half per arm: flat pieces and a jump."""

    def derivative(self, share, mean, std, reward_weight):
        return np.where(share < 0.5, mean, 0.0)


arms = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.floats(-3, 3), min_size=n, max_size=n),
        st.lists(st.floats(0.05, 5), min_size=n, max_size=n),
        st.floats(0, 0.98),
        st.floats(0, 0.95).map(lambda x: x / n),
    )
)


@given_short_and_full(40, 200, arms, st.sampled_from([0.25, 0.5, 1.0, 2.0]))
def test_the_kernel_and_the_derivative_agree(problem, power):
    mean, std, weight, floor = problem
    shares = [
        eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor, objective=objective)
        for objective in (eq.PowerObjective(power=power), PowerByDerivative(power=power), PowerByInverse(power=power))
    ]
    assert shares[1] == pytest.approx(shares[0], rel=1e-7, abs=1e-12)
    assert shares[2] == pytest.approx(shares[0], rel=1e-7, abs=1e-12)


def test_mean_square_error_is_never_beaten_by_a_conic_solver():
    rng = np.random.default_rng(3)
    for _ in range(40):
        n = int(rng.integers(2, 12))
        mean, std, weight, floor = rng.normal(size=n), rng.gamma(2, size=n), float(rng.random()), np.full(n, 0.2 / n)
        share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor, objective=eq.MEAN_SQUARE)
        rival = reference.conic_optimum(mean, std, weight, floor, power=1.0)
        value = [eq.tradeoff(x, mean, std, reward_weight=weight, objective=eq.MEAN_SQUARE) for x in (share, rival)]
        assert value[0] >= value[1] - 1e-9 * abs(value[1])
        assert value[0] == pytest.approx(value[1], rel=1e-5, abs=1e-6)


def test_mean_square_error_at_weight_zero_allocates_by_std():
    share = eq.optimal_allocation([1, 2, 3], [1, 2, 5], reward_weight=0.0, objective=eq.MEAN_SQUARE)
    assert share == pytest.approx([1 / 8, 2 / 8, 5 / 8], rel=1e-14)
    assert eq.error(share, [1, 2, 5], objective=eq.MEAN_SQUARE) == pytest.approx(8**2 / 3)


def test_importance_moves_pulls_to_the_arms_that_matter():
    plain = eq.optimal_allocation([1, 1, 1], [1, 1, 1], reward_weight=0.5)
    weighted = eq.optimal_allocation(
        [1, 1, 1], [1, 1, 1], reward_weight=0.5, objective=eq.PowerObjective(importance=[8, 1, 1])
    )
    assert plain == pytest.approx([1 / 3] * 3)
    assert weighted == pytest.approx(np.array([4, 1, 1]) / 6, rel=1e-14)
    ignored = eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, objective=eq.PowerObjective(importance=[0, 1]))
    assert ignored == pytest.approx([0, 1])
    assert eq.error([0, 1], [1, 1], objective=eq.PowerObjective(importance=[0, 1])) == 1.0


def test_equal_importance_is_the_paper():
    objective = eq.PowerObjective(importance=[3, 3])
    assert eq.tradeoff([0.3, 0.7], [1, 2], [1, 2], reward_weight=0.4, objective=objective) == pytest.approx(
        reference.tradeoff([0.3, 0.7], [1, 2], [1, 2], 0.4), rel=1e-15
    )


def test_flat_pieces_and_jumps_still_add_up_to_one():
    share = eq.optimal_allocation([1.0, 3.0, 2.0], [1, 1, 1], reward_weight=1.0, objective=CappedReward())
    assert share.sum() == pytest.approx(1, abs=1e-12)
    assert share == pytest.approx([0, 0.5, 0.5], abs=1e-9)


@pytest.mark.parametrize("kind", [PowerByDerivative, PowerByInverse])
@pytest.mark.parametrize(
    ("mean", "std", "weight", "floor"),
    [
        ([1, 3], [1, 1], 1.0, 0.2),
        ([1, 2, 3], [1, 1, 0], 0.5, 0.0),
        ([1, 2, 3], [1, 1, 0], 0.5, [0.3, 0.0, 0.1]),
        ([1, 2, 2.01], [1, 1, 0], 0.1, 0.0),
        ([1, 2, 3], [0, 0, 0], 0.0, 0.0),
        ([2, 2, 1], [0, 0, 0], 0.5, 0.1),
        ([2, 2, 1], [1, 1, 1], 1.0, 0.0),
    ],
)
def test_arms_without_spread_and_weight_one_by_derivative_too(kind, mean, std, weight, floor):
    options = {"reward_weight": weight, "floor": floor}
    expected = eq.optimal_allocation(mean, std, **options)
    assert eq.optimal_allocation(mean, std, **options, objective=kind()) == pytest.approx(expected, abs=1e-9)


def test_a_derivative_may_be_one_number_for_all_arms():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Indifferent(eq.SeparableObjective):
        def derivative(self, share, mean, std, reward_weight):
            return 1.0

    share = eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, objective=Indifferent())
    assert share == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("power", [1.0, 2.5, 4.0])
def test_large_and_small_spreads_do_not_leave_the_range_of_doubles(power):
    objective = eq.PowerObjective(power=power)
    for size in (1e-160, 1e-30, 1e30, 1e160):
        share = eq.optimal_allocation([0, 0, 0], size * np.array([1, 2, 4]), reward_weight=0.0, objective=objective)
        expected = np.array([1, 2, 4]) ** (2 * power / (1 + power))
        assert share == pytest.approx(expected / expected.sum(), rel=1e-12)
    huge = eq.optimal_allocation([1, 2, 3], [1e160] * 3, reward_weight=0.5, objective=objective)
    assert huge == pytest.approx([1 / 3] * 3)
    tiny = eq.optimal_allocation([1, 2, 3], [1e-160] * 3, reward_weight=0.5, objective=objective)
    assert tiny == pytest.approx([0, 0, 1], abs=1e-20)


def test_importance_of_any_size():
    objective = eq.PowerObjective(importance=[1e308, 1e308])
    assert eq.optimal_allocation([1, 1], [1, 1], reward_weight=0.5, objective=objective) == pytest.approx([0.5, 0.5])


def test_floors_that_leave_nothing_to_choose():
    share = eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, floor=0.5, objective=PowerByDerivative())
    assert share.tolist() == [0.5, 0.5]


def test_values_need_a_value():
    with pytest.raises(eq.InvalidInput, match="PowerByDerivative is known by its derivative only\nhint: define"):
        eq.regret([0.5, 0.5], [1, 2], [1, 1], reward_weight=0.5, objective=PowerByDerivative())


def test_a_derivative_that_is_not_finite_is_refused():
    @dataclass(frozen=True, kw_only=True, repr=False)
    class Infinite(eq.SeparableObjective):
        def derivative(self, share, mean, std, reward_weight):
            return np.full(mean.size, np.inf)

    with pytest.raises(eq.InvalidInput, match="must be finite for positive shares"):
        eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, objective=Infinite())


def test_objectives_are_values():
    assert eq.PowerObjective(importance=[1, 2]) == eq.PowerObjective(importance=(1.0, 2.0))
    assert hash(eq.MEAN_SQUARE) == hash(eq.PowerObjective(power=1))
    assert repr(eq.PowerObjective(importance=[1, 2])) == "PowerObjective(importance=(1.0, 2.0))"
    assert eq.Objective.from_json(eq.MEAN_SQUARE.to_json()) == eq.MEAN_SQUARE
    assert eq.Objective.from_dict(PowerByInverse(power=2.0).to_dict()) == PowerByInverse(power=2.0)
