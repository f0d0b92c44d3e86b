"""Keep the statistics of each arm: how often it was assigned, and count, mean and spread of its rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.checks import LARGEST_COUNT, LARGEST_REWARD, checked_reward
from equipoise.errors import InvalidInput, UnknownArm
from equipoise.kernels import exact_digits
from equipoise.kernels.exact_digits import ExactSums


class ArmStats:
    """Running statistics of every arm.

    Rewards may be added in any order, replaced or removed, and merged from several sources; the result is that of one
    pass over the rewards that count. Sums are kept to twice the precision of a double, and also without any rounding,
    so a mistake of any size leaves no trace once it is replaced or removed.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    exact : bool, default True
        Whether to keep the sums without rounding too. Nothing differs until a reward is removed; without them, that
        leaves up to 2^-104 of the largest sums there were.

    Attributes
    ----------
    assigned : int array (n_arms,)
        Decisions made for each arm; forcing and tracking count these.
    pulls : int array (n_arms,)
        Rewards seen of each arm; estimates are based on these.
    mean : float array (n_arms,)
        Average reward, NaN before the first.
    std : float array (n_arms,)
        Unbiased-variance standard deviation (n - 1), NaN before the second reward.

    Examples
    --------
    >>> stats = ArmStats(2)
    >>> for value in (1.0, 2.0, 4.0):
    ...     stats.update(0, value)
    >>> stats.replace(0, 4.0, 3.0)
    >>> stats.pulls[0], stats.mean[0], stats.std[0]
    (np.int64(3), np.float64(2.0), np.float64(1.0))
    >>> stats.update(0, 1e80)
    >>> stats.remove(0, 1e80)
    >>> stats.std[0]
    np.float64(1.0)
    """

    __slots__ = ("_digits", "_sums", "assigned", "mean", "n_assigned", "pulls", "std")

    def __init__(self, n_arms: int, *, exact: bool = True) -> None:
        n_arms = checks.whole_number("n_arms", n_arms, 1)
        self.assigned: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.mean: FloatArray = np.full(n_arms, np.nan)
        self.std: FloatArray = np.full(n_arms, np.nan)
        self.n_assigned = 0
        self._sums: FloatArray = np.zeros((4, n_arms))
        # Digits of each arm's exact sums, None before the first reward. Copies share them: replace, never change them.
        self._digits: NDArray[np.object_] | None = np.full(n_arms, None) if exact else None

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.assigned.size

    @property
    def pending(self) -> IntArray:
        """Assignments of each arm whose reward has not arrived."""
        return self.assigned - self.pulls

    @property
    def sums(self) -> FloatArray:
        """Sums of rewards and of squared rewards, each as a high and a low part: four rows, one column per arm."""
        return self._sums

    @property
    def digits(self) -> NDArray[np.object_] | None:
        """Digits of the exact sums of each arm, None for an arm without any; None if exact sums are not kept."""
        return self._digits

    def exact_sums(self, arm: int) -> ExactSums | None:
        """Return the exact sums of an arm's rewards and squared rewards, or None if they are not kept."""
        if self._digits is None:
            return None
        digits = self._digits[arm]
        return (0, 0) if digits is None else exact_digits.from_digits(digits)

    def put(
        self, arm: int, assigned: int, pulls: int, sums: Sequence[float], exact_sums: ExactSums | None = None
    ) -> None:
        """Set one arm's statistics from counts and sums stored elsewhere, such as in a database."""
        self.n_assigned += assigned - int(self.assigned[arm])
        self.assigned[arm], self.pulls[arm], self._sums[:, arm] = assigned, pulls, sums
        self._put_exact(arm, exact_sums)
        _moments().refresh(arm, self.pulls, self.mean, self.std, self._sums)

    def assign(self, arm: int) -> None:
        """Count a decision for an arm."""
        self.assigned[self._checked_arm(arm)] += 1
        self.n_assigned += 1

    def update(self, arm: int, reward: float) -> None:
        """Count a reward of an arm."""
        self._add(self._checked_arm(arm), checked_reward(reward), 1.0)

    def remove(self, arm: int, reward: float) -> None:
        """Remove a counted reward; reject one that cannot have been counted, as far as the sums show."""
        arm, reward = self._checked_arm(arm), checked_reward(reward)
        if self.pulls[arm] == 0:
            raise InvalidInput(f"arm {arm} has no rewards to remove; got {reward!r}")
        if not self._may_contain(arm, reward):
            raise InvalidInput(f"{reward!r} cannot be among the rewards of arm {arm}")
        self._add(arm, reward, -1.0)

    def replace(self, arm: int, old: float, new: float) -> None:
        """Replace a counted reward by another."""
        new = checked_reward(new)
        self.remove(arm, old)
        self.update(arm, new)

    def merge(self, other: ArmStats) -> ArmStats:
        """Return the statistics of both streams together."""
        if not isinstance(other, ArmStats):
            raise InvalidInput(f"only statistics can be merged; got {other!r}")
        if other.n_arms != self.n_arms:
            raise InvalidInput(f"both statistics must have the same arms; got {self.n_arms} and {other.n_arms}")
        merged = ArmStats(self.n_arms)
        merged.assigned += self.assigned + other.assigned
        merged.pulls += self.pulls + other.pulls
        merged.n_assigned = self.n_assigned + other.n_assigned
        for arm in range(self.n_arms):
            for row in (0, 2):
                merged._sums[row : row + 2, arm] = _moments().add_pairs(
                    *self._sums[row : row + 2, arm], *other._sums[row : row + 2, arm]
                )
            merged._put_exact(arm, _total(self._exact_or_rounded(arm), other._exact_or_rounded(arm)))
        merged._refresh()
        return merged

    def copy(self) -> ArmStats:
        """Return an independent copy."""
        # Not by `extended`, which takes four times as long: each transaction of an experiment copies its statistics.
        twin = object.__new__(ArmStats)
        twin.assigned, twin.pulls, twin.n_assigned = self.assigned.copy(), self.pulls.copy(), self.n_assigned
        twin.mean, twin.std, twin._sums = self.mean.copy(), self.std.copy(), self._sums.copy()
        twin._digits = None if self._digits is None else self._digits.copy()
        return twin

    def extended(self, n_arms: int) -> ArmStats:
        """Return a copy with new arms after the present ones, `n_arms` in all."""
        twin = self._empty(n_arms)
        for name in self._per_arm:
            getattr(twin, name)[..., : self.n_arms] = getattr(self, name)
        twin.n_assigned = self.n_assigned
        return twin

    def permuted(self, order: ArrayLike) -> ArmStats:
        """Return the statistics with arms reordered: entry i is the current arm order[i]."""
        indices = np.asarray(order, dtype=np.int64)
        if sorted(indices.tolist()) != list(range(self.n_arms)):
            raise InvalidInput.of("order", f"must hold each of 0..{self.n_arms - 1} once", order)
        twin = self.copy()
        for name in self._per_arm:
            getattr(twin, name)[...] = getattr(self, name)[..., indices]
        return twin

    def only(self, arms: ArrayLike) -> ArmStats:
        """Return the statistics of some of the arms: entry i is the current arm arms[i]."""
        indices = np.asarray(arms, dtype=np.int64)
        part = self._empty(indices.size)
        for name in self._per_arm:
            getattr(part, name)[...] = getattr(self, name)[..., indices]
        part.n_assigned = int(part.assigned.sum())
        return part

    @classmethod
    def from_summary(cls, pulls: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Self:
        """Build statistics from published counts, means and standard deviations (n - 1).

        Examples
        --------
        >>> stats = ArmStats.from_summary([10, 20], [0.5, 0.25], [0.1, 0.2])
        >>> stats.update(0, 1.6)
        >>> round(stats.mean[0], 3)
        np.float64(0.6)
        """
        moments = _moments()
        means, stds = checks.means_and_stds(mean, std)
        counts = checks.non_negative("pulls", pulls, size=means.size)
        if (counts != np.rint(counts)).any() or counts.max() > LARGEST_COUNT:
            raise InvalidInput.of("pulls", "must be whole numbers", pulls)
        if means.max() > LARGEST_REWARD or means.min() < -LARGEST_REWARD or stds.max() > LARGEST_REWARD:
            raise InvalidInput(f"means and stds must be at most {LARGEST_REWARD:g} in size")
        stats = cls(means.size)
        stats.pulls[:] = stats.assigned[:] = counts
        stats.n_assigned = int(counts.sum())
        for arm, count in enumerate(counts.tolist()):
            if count == 0:
                continue
            total = count * means[arm]
            total_low = moments.product_error(count, means[arm])
            square = total * means[arm]
            square_low = moments.product_error(total, means[arm]) + total_low * means[arm]
            deviations = (count - 1) * stds[arm] ** 2
            stats._sums[:2, arm] = total, total_low
            stats._sums[2:, arm] = moments.add_pairs(square, square_low, deviations, 0.0)
            stats._put_exact(arm, None)
        stats._refresh()
        return stats

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which `from_dict` rebuilds equal statistics; mean and std are for human readers."""
        return {
            "assigned": self.assigned.tolist(),
            "pulls": self.pulls.tolist(),
            "mean": [None if math.isnan(x) else x for x in self.mean.tolist()],
            "std": [None if math.isnan(x) else x for x in self.std.tolist()],
            "sums": self._sums.tolist(),
            "exact_sums": [exact_digits.to_text(self._exact_or_rounded(arm)) for arm in range(self.n_arms)],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Rebuild statistics from the data of `to_dict`."""
        try:
            assigned, pulls = (_counts(data[name]) for name in ("assigned", "pulls"))
            sums = np.array(data["sums"], dtype=np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput.of(
                "statistics", "must have assigned, pulls and sums, one number per arm each"
            ) from error
        n_arms = assigned.size
        if pulls.shape != (n_arms,) or sums.shape != (4, n_arms) or n_arms == 0:
            shapes = f"{assigned.shape}, {pulls.shape} and {sums.shape}"
            raise InvalidInput(f"assigned and pulls must have shape (n_arms,), sums (4, n_arms); got {shapes}")
        if not (np.abs(sums) <= LARGEST_COUNT * LARGEST_REWARD**2).all():
            raise InvalidInput("sums must be finite")
        total, squares = sums[0], sums[2]
        if (squares * pulls - total**2 < -1e-9 * squares * (pulls + 1)).any() or sums[:, pulls == 0].any():
            raise InvalidInput("sums must be those of as many rewards as there are pulls")
        stats = cls(n_arms)
        stats.assigned[:], stats.pulls[:], stats._sums[:] = assigned, pulls, sums
        stats.n_assigned = int(assigned.sum())
        texts = data.get("exact_sums", [None] * n_arms)  # which saved data of earlier versions lack
        if not isinstance(texts, list) or len(texts) != n_arms:
            raise InvalidInput.of("exact_sums", "must be a list with one text per arm", texts)
        for arm, text in enumerate(texts):
            stats._put_exact(arm, None if text is None else stats._checked_exact_sums(arm, text))
        stats._refresh()
        return stats

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArmStats):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("assigned", "pulls", "_sums")
        ) and all(self.exact_sums(arm) == other.exact_sums(arm) for arm in range(self.n_arms))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ("assigned", "pulls", "mean", "std")
        return f"ArmStats({', '.join(f'{name}={getattr(self, name).tolist()}' for name in shown)})"

    def _may_contain(self, arm: int, reward: float) -> bool:
        """Return whether the reward can be one of the arm's: equal to a single one, or leaving a variance >= 0."""
        rest = int(self.pulls[arm]) - 1
        total, squares = self._sums[0, arm], self._sums[2, arm]
        if rest == 0:
            return bool(total == reward)
        return bool((squares - reward**2) * rest - (total - reward) ** 2 >= -1e-9 * squares * (rest + 1))

    @property
    def _per_arm(self) -> tuple[str, ...]:
        """Names of the arrays whose last axis is the arm."""
        kept = () if self._digits is None else ("_digits",)
        return ("assigned", "pulls", "mean", "std", "_sums", *kept)

    def _empty(self, n_arms: int) -> ArmStats:
        return ArmStats(n_arms, exact=self._digits is not None)

    def _add(self, arm: int, reward: float, sign: float) -> None:
        arrays = (self.pulls, self.mean, self.std, self._sums)
        if self._digits is None:
            _moments().add_reward(arm, reward, sign, *arrays)
            return
        before = self._digits[arm]
        digits = exact_digits.new_digits() if before is None else before.copy()
        _exact_sums().add_reward_exactly(arm, reward, sign, *arrays, digits)
        self._digits[arm] = digits

    def _exact_or_rounded(self, arm: int) -> ExactSums:
        """Return the exact sums of an arm, or what the rounded ones hold where no others are kept."""
        kept = self.exact_sums(arm)
        return self._rounded_sums(arm) if kept is None else kept

    def _rounded_sums(self, arm: int) -> ExactSums:
        high, low, square_high, square_low = map(exact_digits.units, self._sums[:, arm].tolist())
        return high + low, square_high + square_low

    def _put_exact(self, arm: int, sums: ExactSums | None) -> None:
        """Set the exact sums of an arm; without any, take its rounded ones for exact."""
        if self._digits is not None:
            self._digits[arm] = exact_digits.to_digits(self._rounded_sums(arm) if sums is None else sums)

    def _checked_exact_sums(self, arm: int, text: Any) -> ExactSums:
        """Return an arm's exact sums from plain data; raise unless its rounded sums can be theirs."""
        try:
            rewards, squares = exact_digits.from_text(text)
        except ValueError as error:
            raise InvalidInput.of("exact_sums", "must be text such as '-5p-1 19p-2', one per arm", text) from error
        rounded, rounded_squares = self._rounded_sums(arm)
        most = int(self.pulls[arm]) * exact_digits.units(1.0) * rounded_squares  # of the sum of rewards, squared
        if abs(squares - rounded_squares) * 10**9 > rounded_squares or ((rewards - rounded) * 10**9) ** 2 > most:
            raise InvalidInput.of("exact_sums", f"must equal the sums up to rounding; arm {arm} differs", text)
        return rewards, squares

    def _refresh(self) -> None:
        for arm in range(self.n_arms):
            _moments().refresh(arm, self.pulls, self.mean, self.std, self._sums)

    def _checked_arm(self, arm: int) -> int:
        if type(arm) is not int:
            try:
                arm = checks.whole_number("arm", arm, 0)
            except InvalidInput as error:
                raise UnknownArm(error.message) from None
        if not 0 <= arm < self.assigned.size:
            raise UnknownArm(f"arm must be between 0 and {self.n_arms - 1}; got {arm}")
        return arm


def _total(one: ExactSums, other: ExactSums) -> ExactSums:
    return one[0] + other[0], one[1] + other[1]


def _counts(values: Any) -> IntArray:
    """Return counts from plain data; raise ValueError for anything but a list of whole numbers."""
    if not isinstance(values, list) or not all(type(x) is int and 0 <= x <= LARGEST_COUNT for x in values):
        raise ValueError("counts must be a list of whole numbers")
    return np.array(values, dtype=np.int64)


@cache
def _moments() -> ModuleType:
    """Import the kernel on first use, when the first reward arrives; later calls are cheap."""
    from equipoise.kernels import moments

    return moments


@cache
def _exact_sums() -> ModuleType:
    """Import the kernel on first use too."""
    from equipoise.kernels import exact_sums

    return exact_sums
