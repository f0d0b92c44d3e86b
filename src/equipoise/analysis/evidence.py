"""Evidence about the mean of each arm, a function of sums: intervals, p-values and e-values are readings of it.

However a policy chooses, the rewards of one arm are independent draws, and the policy decides only how many there are.
So evidence that holds for all numbers of rewards at once holds under any policy and any stopping rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.checks import LARGEST_REWARD, checked_reward
from equipoise.errors import InvalidInput, UnknownArm
from equipoise.kernels import exact_moments
from equipoise.stats import ArmStats

Kind: TypeAlias = Literal["guaranteed", "low guaranteed", "high guaranteed", "asymptotic"]
"""Which ends of an interval are guaranteed for any rewards in the declared range; the rest are asymptotic."""

RewardRange: TypeAlias = tuple[float | None, float | None] | None
"""The declared lowest and highest reward; None for an end that is open."""

TIGHTEST_AT = 500
"""Number of rewards per arm at which intervals are narrowest, unless a budget says better; others lose little."""
_FEWEST_TO_TUNE = 30

_ROUNDED = 1.05  # published figures are rounded
_SMALLEST_VARIANCE = 1e-190  # of rewards whose third powers are no doubles the skewness is unknown


def tightest_for(budgets: Sequence[int], n_first: int) -> float:
    """Return the number of rewards per arm at which to be most precise, by the declared budgets and the first arms.

    Examples
    --------
    >>> tightest_for([], 3), tightest_for([6000, 3000], 3), tightest_for([30], 3)
    (500, 1000.0, 30)
    """
    return max(_FEWEST_TO_TUNE, min(budgets) / n_first) if budgets else TIGHTEST_AT


class Evidence:
    """Evidence about the means of arms.

    Parameters
    ----------
    moments : array (rows, n_arms)
        As `kernels.arm_evidence` describes them; use `of` or `from_summary`.

    Examples
    --------
    100 rewards, of which 30 were 1 and the rest 0, and 200 of which 90 were 1:

    >>> evidence = Evidence.from_summary([100, 200], [0.3, 0.45], [0.4606, 0.4987], reward_range=(0, 1))
    >>> low, high = evidence.intervals(0.05)
    >>> low.round(3), high.round(3)
    (array([0.17 , 0.341]), array([0.456, 0.562]))
    >>> round(evidence.p_value(0, 0.5), 4)
    0.003
    """

    def __init__(self, moments: FloatArray) -> None:
        self.moments = moments

    @classmethod
    def of(
        cls, stats: ArmStats, *, reward_range: RewardRange = None, sign: float = 1.0, tightest_at: float = TIGHTEST_AT
    ) -> Evidence:
        """Return the evidence in the statistics of arms.

        Parameters
        ----------
        stats : ArmStats
            Their sums.
        reward_range : pair, optional
            The lowest and the highest reward there can be, None for an open end. With both, everything is guaranteed;
            with one, the interval's end on its side.
        sign : float, default 1.0
            -1 if the statistics are of rewards times -1, as those of experiments are in which small rewards are good.
        tightest_at : float, default 500
            Number of rewards per arm at which to be most precise. It must not depend on the rewards.
        """
        rows = _rows()
        low, high = _ends(reward_range)
        moments = np.full((rows.ROWS, stats.n_arms), np.nan)
        moments[rows.COUNT], moments[rows.LOW], moments[rows.HIGH] = stats.pulls, low, high
        unit = moments[rows.SCALE] = _unit(low, high)
        moments[rows.TUNED] = tightest_at
        moments[rows.STD] = stats.std
        moments[rows.MEAN] = sign * stats.mean
        is_bounded = math.isfinite(low), math.isfinite(high)
        # Where the range is open at an end, the scale from the other one is the unit of rewards.
        start, end = (low if is_bounded[0] else high - unit), (high if is_bounded[1] else low + unit)
        from_low, from_high = slice(rows.LOW_Y1, rows.LOW_Y1 + 4), slice(rows.HIGH_Y1, rows.HIGH_Y1 + 4)
        for arm, count in enumerate(stats.pulls.tolist()):
            if count == 0:
                continue
            sums = stats.exact_sums(arm)
            _, second, third, _ = exact_moments.central_moments(count, sums)
            if second > _SMALLEST_VARIANCE:
                moments[rows.SKEW, arm] = sign * third / (second * math.sqrt(second))
            elif second == 0:
                moments[rows.SKEW, arm] = 0.0
            if any(is_bounded):
                powers = exact_moments.moments_within(count, sums, sign * start, sign * end)
                for place, one, is_end in zip((from_low, from_high), powers, is_bounded, strict=True):
                    if is_end:
                        moments[place, arm] = _wealth().points(*one)
        return cls(moments)

    @classmethod
    def from_summary(
        cls,
        pulls: ArrayLike,
        mean: ArrayLike,
        std: ArrayLike,
        *,
        skewness: ArrayLike | None = None,
        kurtosis: ArrayLike | None = None,
        reward_range: RewardRange = None,
        tightest_at: float = TIGHTEST_AT,
    ) -> Evidence:
        """Return the evidence in published counts, means and standard deviations (n - 1).

        Within a range it is what two moments allow, less than four do: give skewness and kurtosis (3 for a normal
        distribution) if both are known. Without a range, give the skewness if it is known: intervals of skewed rewards
        do not hold without it.
        """
        rows = _rows()
        counts = checks.non_negative("pulls", pulls)
        for name, values in (("mean", mean), ("std", std)):
            if np.size(values) != counts.size:
                raise InvalidInput.of(name, f"must have {counts.size} entries, one per arm", values)
        means = checks.vector("mean", np.where(counts > 0, mean, 0.0), size=counts.size)
        stds = checks.non_negative("std", np.where(counts > 1, std, 0.0), size=counts.size)
        skews = np.zeros(counts.size) if skewness is None else checks.vector("skewness", skewness, size=counts.size)
        tails = None if kurtosis is None else checks.vector("kurtosis", kurtosis, size=counts.size)
        low, high = _ends(reward_range)
        unit = _unit(low, high)
        seen = counts > 0
        most = 0.5 * (high - low) * np.sqrt(np.maximum(counts, 1) / np.maximum(counts - 1, 1)) * _ROUNDED
        if (counts > 1)[stds > most].any():
            arm = int(np.flatnonzero((counts > 1) & (stds > most))[0])
            raise InvalidInput.of("std", f"must be at most {most[arm]:.4g}, as reward_range says", stds[arm], arm=arm)
        if ((means < low) | (means > high))[seen].any():
            arm = int(np.flatnonzero(seen & ((means < low) | (means > high)))[0])
            raise InvalidInput.of("mean", "must be within reward_range", float(means[arm]), arm=arm)
        moments = np.full((rows.ROWS, counts.size), np.nan)
        moments[rows.COUNT], moments[rows.LOW], moments[rows.HIGH], moments[rows.SCALE] = counts, low, high, unit
        moments[rows.MEAN], moments[rows.STD], moments[rows.SKEW] = (
            np.where(seen, means, np.nan),
            np.where(counts > 1, stds, np.nan),
            skews,
        )
        moments[rows.TUNED] = tightest_at
        for arm in np.flatnonzero(seen).tolist():
            n = counts[arm]
            variance = stds[arm] ** 2 * (n - 1) / n
            for place, end, first, sign in (
                (rows.LOW_Y1, low, (means[arm] - low) / unit, 1.0),
                (rows.HIGH_Y1, high, (high - means[arm]) / unit, -1.0),
            ):
                if math.isinf(end):
                    continue
                second = first * first + variance / unit**2
                if math.isfinite(high - low):
                    second = min(second, first)  # published figures are rounded
                third = fourth = math.inf
                if tails is not None:
                    spread = max(second - first * first, 0.0)
                    cubed = sign * skews[arm] * spread**1.5
                    third = first**3 + 3.0 * first * spread + cubed
                    fourth = first**4 + 6.0 * first**2 * spread + 4.0 * first * cubed + tails[arm] * spread**2
                moments[place : place + 4, arm] = _wealth().points(first, second, third, fourth)
        return cls(moments)

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return int(self.moments.shape[1])

    def _row(self, row: int) -> FloatArray:
        found: FloatArray = self.moments[row]
        return found

    @property
    def pulls(self) -> FloatArray:
        """Rewards counted of each arm."""
        return self._row(_rows().COUNT)

    @property
    def mean(self) -> FloatArray:
        """Average reward of each arm, NaN before the first."""
        return self._row(_rows().MEAN)

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each arm (n - 1), NaN before the second reward."""
        return self._row(_rows().STD)

    @property
    def skewness(self) -> FloatArray:
        """Skewness of each arm's rewards."""
        return self._row(_rows().SKEW)

    @property
    def kind(self) -> Kind:
        """Which ends of intervals are guaranteed."""
        rows = _rows()
        low, high = (bool(np.isfinite(self.moments[row, 0])) for row in (rows.LOW, rows.HIGH))
        if low and high:
            return "guaranteed"
        if low or high:
            return "low guaranteed" if low else "high guaranteed"
        return "asymptotic"

    def rewards_needed(self, *, of_pairs: bool = False) -> FloatArray:
        """Return how many rewards each arm needs before a normal approximation is used, by its skewness so far."""
        rows = _rows()
        skewness = np.nan_to_num(self.skewness, nan=0.0)
        if of_pairs:
            skewness = np.full(self.n_arms, np.abs(skewness).max(initial=0.0))
        needed: FloatArray = np.ceil(rows.PER_SQUARED_SKEWNESS * skewness**2)
        return np.clip(needed, rows.FEWEST, None)

    def log_above(self, arm: int, value: float) -> float:
        """Return the log of the evidence that an arm's mean is above a value; negative if it speaks against it.

        Within a range it is an e-value at every time. Without one it is so at fixed numbers of rewards only, and `1 /
        evidence` is a p-value at all times.
        """
        return float(_rows().log_above(self.moments, self._checked_arm(arm), _checked_value(value)))

    def log_below(self, arm: int, value: float) -> float:
        """Return the log of the evidence that an arm's mean is below a value, as `log_above`."""
        return float(_rows().log_below(self.moments, self._checked_arm(arm), _checked_value(value)))

    def log_against(self, arm: int, value: float) -> float:
        """Return the log of the evidence that an arm's mean is not this value.

        The probability that the evidence against the true mean ever exceeds 1 / delta is at most delta.
        """
        return max(self.log_above(arm, value), self.log_below(arm, value)) - math.log(2.0)

    def p_value(self, arm: int, value: float) -> float:
        """Return the p-value of a mean at all times: the least failure probability whose interval excludes it."""
        return min(1.0, math.exp(-max(self.log_against(arm, value), 0.0)))

    def intervals(self, failure_probability: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return both ends of each arm's interval, which holds at all times; NaN where nothing can be said yet.

        Parameters
        ----------
        failure_probability : float or array (n_arms,)
            For each arm; see `analysis.multiplicity` for intervals of several arms that hold together.
        """
        failures = np.asarray(failure_probability, np.float64)
        if failures.shape not in ((), (self.n_arms,)) or not ((failures > 0) & (failures < 1)).all():
            raise InvalidInput.of("failure_probability", "must be in (0, 1), one or one per arm", failure_probability)
        failures = np.broadcast_to(failures, (self.n_arms,))
        low, high = np.empty(self.n_arms), np.empty(self.n_arms)
        _rows().write_intervals(self.moments, np.ascontiguousarray(failures), low, high)
        return low, high

    def mirrored(self) -> Evidence:
        """Return the evidence about the rewards times -1."""
        rows, twin = _rows(), self.moments.copy()
        twin[rows.LOW], twin[rows.HIGH] = -self.moments[rows.HIGH], -self.moments[rows.LOW]
        for ours, theirs in ((rows.LOW_Y1, rows.HIGH_Y1), (rows.HIGH_Y1, rows.LOW_Y1)):
            twin[ours : ours + 4] = self.moments[theirs : theirs + 4]
        twin[rows.MEAN], twin[rows.SKEW] = -self.moments[rows.MEAN], -self.moments[rows.SKEW]
        return Evidence(twin)

    def continued(self, pulls: ArrayLike) -> Evidence:
        """Return the evidence there will be with these numbers of rewards, if they go on like those so far."""
        twin, counts = self.moments.copy(), checks.non_negative("pulls", pulls, size=self.n_arms)
        seen = self.pulls > 0
        twin[_rows().COUNT, seen] = np.rint(counts[seen])
        return Evidence(twin)

    def only(self, arms: Sequence[int]) -> Evidence:
        """Return the evidence about some of the arms."""
        return Evidence(np.ascontiguousarray(self.moments[:, list(arms)]))

    def _checked_arm(self, arm: int) -> int:
        place = checks.whole_number("arm", arm, 0)
        if place >= self.n_arms:
            raise UnknownArm(f"arm must be between 0 and {self.n_arms - 1}; got {arm}")
        return place


def _ends(reward_range: RewardRange) -> tuple[float, float]:
    """Return both ends of a range, infinite where it is open."""
    if reward_range is None:
        return -math.inf, math.inf
    try:
        first, last = reward_range  # an open end may be given as None or as infinite
        low = None if first is None or first == -math.inf else checked_reward(first)
        high = None if last is None or last == math.inf else checked_reward(last)
    except (TypeError, ValueError):
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward", reward_range) from None
    if low is not None and high is not None and not low < high:
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward", reward_range)
    return -math.inf if low is None else low, math.inf if high is None else high


def _unit(low: float, high: float) -> float:
    """Return the unit in which rewards are counted from an end of their range: its width if it has one."""
    if math.isfinite(low) and math.isfinite(high):
        return high - low
    # A power of two that can be added to the end without rounding it away.
    end = low if math.isfinite(low) else high
    return 2.0 ** math.frexp(end)[1] if math.isfinite(end) and abs(end) > 1.0 else 1.0


def _checked_value(value: float) -> float:
    return checks.number_between("value", value, -LARGEST_REWARD, LARGEST_REWARD)


@cache
def _rows() -> ModuleType:
    """Import the kernel on first use."""
    from equipoise.kernels import arm_evidence

    return arm_evidence


@cache
def _wealth() -> ModuleType:
    from equipoise.kernels import wealth

    return wealth
