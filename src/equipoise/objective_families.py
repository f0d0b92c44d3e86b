"""Interchangeable objectives: sums of one concave function of each arm's share  [Sect. 1, contribution 3].

The paper's objective is the member `power=0.5` of the power family. For another, subclass and give the derivative.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput
from equipoise.kernels.rules import CRITERIA
from equipoise.serialization import Value

# Lower end of the bisection for an objective known only by its derivative: smaller shares are negligible.
_SMALLEST_SHARE = 1e-18


LARGEST_POWER = 4.0
"""With a larger power, spreads over 24 orders of magnitude would overflow when raised to twice the power."""


class Objective(Value):
    """The value of an allocation, for arms with given means and standard deviations.

    Methods take checked arrays; `equipoise.tradeoff` and `equipoise.optimal_allocation` do the checks.
    """

    @abstractmethod
    def value(self, allocation: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> Any:
        """Return the value of an allocation, to be maximised; arms are on the last axis."""

    @abstractmethod
    def solve(self, mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray) -> FloatArray:
        """Return the allocation with the largest value and every share at or above its floor."""

    def check_arms(self, n_arms: int) -> None:
        """Raise if the objective's parameters do not fit this number of arms."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerObjective(Objective):
    """Weighted reward minus a weighted sum of (variance / share)^power over the arms.

    ``w sum_i share_i mean_i - (1 - w) sum_i v_i (std_i^2 / share_i)^power`` with v_i = importance_i / sum(importance).

    Parameters
    ----------
    power : float, default 0.5
        0.5 is the root-mean-square error of the paper (Eq. 2), 1 the mean-square error; at most 4.
    importance : sequence of float, optional
        How much the accuracy of each arm matters; equal by default.

    Examples
    --------
    >>> import equipoise as eq
    >>> eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, objective=eq.MEAN_SQUARE).round(4)
    array([0.4393, 0.5607])
    """

    power: float = 0.5
    importance: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        self._set(power=checks.number_between("power", self.power, 0, LARGEST_POWER, open_low=True))
        if self.importance is not None:
            weights = checks.non_negative("importance", self.importance)
            if weights.max() == 0:
                raise InvalidInput.of("importance", "must be positive for at least one arm; got only zeros")
            self._set(importance=tuple(weights.tolist()))

    def check_arms(self, n_arms: int) -> None:
        """Raise unless there is one importance per arm."""
        if self.importance is not None and len(self.importance) != n_arms:
            raise InvalidInput.of("importance", f"must have {n_arms} entries, one per arm", len(self.importance))

    def normalised_importance(self, n_arms: int) -> FloatArray:
        """Return one weight per arm, adding up to 1."""
        if self.importance is None:
            weights = np.empty(n_arms)
            weights.fill(1.0 / n_arms)  # a third of the time of numpy.full, which matters with few arms
            return weights
        weights = np.array(self.importance) / max(self.importance)
        return np.asarray(weights / weights.sum())

    def error(self, allocation: FloatArray, std: FloatArray) -> Any:
        """Return the error term; infinite where an arm with spread and importance has no share."""
        weights = self.normalised_importance(std.size)
        matters = (weights > 0) & (std > 0)
        with np.errstate(divide="ignore", over="ignore"):
            per_arm = (std[matters] / np.sqrt(allocation[..., matters])) ** (2 * self.power)
        return per_arm @ weights[matters]

    def value(self, allocation: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> Any:
        """Return reward_weight * reward - (1 - reward_weight) * error."""
        gain = reward_weight * (allocation @ mean)
        # At weight 1 errors do not count, not even infinite ones.
        return gain if reward_weight == 1 else gain - (1 - reward_weight) * self.error(allocation, std)

    def solve(self, mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray) -> FloatArray:
        """Return the optimal allocation, from the compiled kernel."""
        kernel, n_arms = _kernel(), mean.size
        share, work = np.empty(n_arms), np.empty((kernel.WORK_ROWS, n_arms))
        importance = self.normalised_importance(n_arms)
        kernel.allocate(mean, std, importance, floor, reward_weight, self.power, kernel.COLD, work, share)
        return share

    def solve_for_information(
        self, mean: FloatArray, std: FloatArray, kept: float, about: str, difference: float | None, floor: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return the allocation with the most reward that keeps this share of the information, and its weight.

        The weight is NaN for information about something else than the average error, which is this objective's.
        """
        from equipoise.kernels.information_solver import WORK_ROWS, allocate_for_information

        n_arms, importance = mean.size, self.normalised_importance(mean.size)
        share, work = np.empty(n_arms), np.empty((WORK_ROWS, n_arms))
        dial = CRITERIA[about], kept, difference or 0.0, self.power
        weight = allocate_for_information(*dial, mean, std, importance, floor, work, share)
        return share, float(weight)


ROOT_MEAN_SQUARE = PowerObjective()
"""The paper's objective (Eq. 4): the error is the average root-mean-square error of the arms' means."""

MEAN_SQUARE = PowerObjective(power=1.0)
"""The error is the average mean-square error. Unlike the paper's it is not invariant to the rewards' scale."""


def check_measured(objective: Objective, dial: checks.Dial) -> None:
    """Raise if the information to keep is not something that the objective measures."""
    if dial.information_kept is None:
        return
    if not isinstance(objective, PowerObjective):
        raise InvalidInput.of("information_kept", "needs a PowerObjective such as ROOT_MEAN_SQUARE", objective)
    if dial.information_about != "average" and objective != ROOT_MEAN_SQUARE:
        raise InvalidInput.of("objective", "goes with information_about 'average'", objective)


class SeparableObjective(Objective):
    """A sum over arms of any concave function of the arm's share, given by its derivative.

    Subclass it as a frozen dataclass and write `derivative`; add `inverse_derivative` if there is a formula for it
    (solving is then some thirty times faster) and `value` if you need values and regrets.

    Examples
    --------
    Reward against the average logarithm of the shares (D-optimality, the determinant of the information):

    >>> from dataclasses import dataclass
    >>> import equipoise as eq
    >>> @dataclass(frozen=True, kw_only=True, repr=False)
    ... class LogShares(eq.SeparableObjective):
    ...     def derivative(self, share, mean, std, reward_weight):
    ...         return reward_weight * mean + (1 - reward_weight) / mean.size / share
    >>> eq.optimal_allocation([1, 2], [1, 1], reward_weight=0.5, objective=LogShares()).round(4)
    array([0.2929, 0.7071])
    """

    @abstractmethod
    def derivative(self, share: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> FloatArray:
        """Return the derivative of each arm's term at its share, which must not increase with the share."""

    def inverse_derivative(
        self, slope: float, mean: FloatArray, std: FloatArray, reward_weight: float
    ) -> FloatArray | None:
        """Return each arm's share at which the derivative is `slope`, or None if there is no formula."""
        return None

    def value(self, allocation: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> Any:
        """Return the value of an allocation; override it if you need values and regrets."""
        raise InvalidInput(
            f"{type(self).__name__} is known by its derivative only", hint="define its method `value` as well"
        )

    def solve(self, mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray) -> FloatArray:
        """Return the optimal allocation, by bisection on the common derivative of the arms above their floors."""
        spare = 1.0 - floor.sum()
        if spare <= 1e-15:
            return np.asarray(floor / floor.sum())
        # At these shares, which add up to 1, the extreme derivatives enclose the common one of the solution. Move one
        # step outwards, so that no arm is exactly at a slope where its derivative may be flat and its share
        # undetermined.
        middle = np.broadcast_to(self.derivative(floor + spare / mean.size, mean, std, reward_weight), mean.shape)
        if not np.isfinite(middle).all():
            raise InvalidInput(f"the derivative of {self!r} must be finite for positive shares; got {middle}")
        low, high = np.nextafter(middle.min(), -np.inf), np.nextafter(middle.max(), np.inf)
        most, least = (self._shares_at(slope, mean, std, reward_weight, floor) for slope in (low, high))
        while True:
            slope = 0.5 * (low + high)
            if not low < slope < high:
                break
            shares = self._shares_at(slope, mean, std, reward_weight, floor)
            if shares.sum() >= 1.0:
                low, most = slope, shares
            else:
                high, least = slope, shares
        # The two sides differ by rounding, or by a jump where an arm's derivative is flat; any mixture of them is
        # optimal, and one of them adds up to 1.
        surplus, lack = max(most.sum() - 1.0, 0.0), max(1.0 - least.sum(), 0.0)
        if surplus + lack == 0.0:
            return np.asarray(most / most.sum())
        return np.asarray((lack * most + surplus * least) / (surplus + lack))

    def _shares_at(
        self, slope: float, mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray
    ) -> FloatArray:
        """Return the shares at which each arm's derivative is `slope`, clipped between its floor and 1."""
        known = self.inverse_derivative(slope, mean, std, reward_weight)
        if known is not None:
            return np.clip(np.where(np.isnan(known), floor, known), floor, 1.0)
        # Bisect on the logarithm, so that small shares have as many correct digits as large ones.
        low = np.log(np.maximum(floor, _SMALLEST_SHARE))
        high = np.zeros(mean.size)
        too_steep_at_floor = self.derivative(np.exp(low), mean, std, reward_weight) <= slope
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = self.derivative(np.exp(middle), mean, std, reward_weight) > slope
            low = np.where(above, middle, low)
            high = np.where(above, high, middle)
        return np.where(too_steep_at_floor, floor, np.exp(0.5 * (low + high)))


@cache
def _kernel() -> ModuleType:
    """Import the compiled solver on first use; later calls are cheap."""
    from equipoise.kernels import solver as shares

    return shares
