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
from equipoise.kernels import exact_digits, exact_moments
from equipoise.kernels.exact_digits import ExactSums
from equipoise.kernels.exact_moments import Moments

_PER_ARM = ("assigned", "pulls", "mean", "std", "_sums", "_digits")
"""Names of the arrays whose last axis is the arm."""
_ONE = exact_digits.units(1.0)
_DRIFT_ROWS = 14
"""As in `kernels.drift_sums`, which is imported late."""


class ArmStats:
    """Running statistics of every arm.

    Rewards may be added in any order, replaced or removed, and merged from several sources; the result is that of one
    pass over the rewards that count. Sums are kept to twice the precision of a double, and also without any rounding,
    so a mistake of any size leaves no trace once it is replaced or removed. The sums without rounding are those of
    rewards, squares, cubes and fourth powers: `central_moments` and `moments_within` read them.

    Parameters
    ----------
    n_arms : int
        Number of arms.
    exact : bool, default True
        Whether mean and std are those of the sums without rounding once a reward was removed. Otherwise a removal
        subtracts from the rounded sums, as the first experiments did, and leaves up to 2^-104 of the largest there
        were.
    weighted : bool, default False
        Whether to keep `drift_sums` too, which `PooledBalance` reads under drift.

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

    __slots__ = ("_digits", "_drift", "_sums", "assigned", "exact", "mean", "n_assigned", "pulls", "std")

    def __init__(self, n_arms: int, *, exact: bool = True, weighted: bool = False) -> None:
        n_arms = checks.whole_number("n_arms", n_arms, 1)
        self.assigned: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.mean: FloatArray = np.full(n_arms, np.nan)
        self.std: FloatArray = np.full(n_arms, np.nan)
        self.n_assigned = 0
        self._sums: FloatArray = np.zeros((4, n_arms))
        self.exact = exact
        # Digits of each arm's exact sums, None without rewards. Copies share them: replace, never change them.
        self._digits: NDArray[np.object_] = np.full(n_arms, None)
        self._drift: FloatArray | None = np.zeros((_DRIFT_ROWS, n_arms)) if weighted else None

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
    def digits(self) -> NDArray[np.object_]:
        """Digits of the exact sums of each arm, None for an arm without rewards."""
        return self._digits

    @property
    def drift_sums(self) -> FloatArray | None:
        """Sums by which choices can be steered where rewards drift; None unless `weighted`.

        With w = 1 / probability, reward Y, and t the number of its decision: w, w^2, wY, wY^2, t, t^2 and tY, each as a
        high and a low part: 14 rows, one column per arm. Removals subtract, which leaves up to 2^-104 of the largest
        sum there was. See `kernels.drift_sums`.

        Examples
        --------
        >>> stats = ArmStats(1, weighted=True)
        >>> stats.update(0, 3.0, probability=0.5, number=7)
        >>> stats.drift_sums[::2, 0]
        array([ 2.,  4.,  6., 18.,  7., 49., 21.])
        """
        return self._drift

    def exact_sums(self, arm: int) -> ExactSums:
        """Return the sums of an arm's rewards, squares, cubes and fourth powers, in units of 2^-1074.

        They have no rounding: each cube and fourth power is cut off below a few units, which no reward of at least
        1e-65 in size reaches. There are only the first two if the rewards are known by count, mean and spread alone,
        from `from_summary` or a file of an earlier version.

        Examples
        --------
        >>> stats = ArmStats(1)
        >>> for reward in (0.1, 1e60, -1e60):
        ...     stats.update(0, reward)
        >>> stats.exact_sums(0)[0] / 2**1074
        0.1
        """
        digits = self._digits[arm]
        return (0, 0, 0, 0) if digits is None else exact_digits.from_digits(digits)

    def central_moments(self, arm: int) -> Moments:
        """Return an arm's mean, and the averages of the 2nd, 3rd and 4th powers of its rewards' distances from it.

        Each is the nearest double to the exact value, whatever cancels. NaN stands for what is unknown: without
        rewards, or of the last two where rewards are known by count, mean and spread alone.

        Examples
        --------
        >>> stats = ArmStats(1)
        >>> for reward in (1e9, 1e9, 1e9 + 4.0):
        ...     stats.update(0, reward)
        >>> mean, variance, third, fourth = stats.central_moments(0)
        >>> mean - 1e9, variance, third / variance**1.5
        (1.3333333730697632, 3.5555555555555554, 0.7071067811865475)
        """
        return exact_moments.central_moments(int(self.pulls[arm]), self.exact_sums(arm))

    def scaled_moments(self, arm: int, zero: float, one: float) -> Moments:
        """Return the averages of u, u^2, u^3 and u^4 over an arm's rewards, on the scale where `zero` is 0 and `one` 1.

        That is u = (reward - zero) / (one - zero); `one` may be below `zero`. Precision and NaN are as in
        `central_moments`.

        Examples
        --------
        >>> stats = ArmStats(1)
        >>> for reward in (10.0, 20.0):
        ...     stats.update(0, reward)
        >>> stats.scaled_moments(0, zero=10.0, one=20.0)
        (0.5, 0.5, 0.5, 0.5)
        >>> stats.scaled_moments(0, zero=20.0, one=0.0)
        (0.25, 0.125, 0.0625, 0.03125)
        """
        return self.moments_within(arm, zero, one)[0]

    def moments_within(self, arm: int, low: float, high: float) -> tuple[Moments, Moments]:
        """Return the averages of u, u^2, u^3, u^4, and of 1 - u, ..., (1 - u)^4, for u = (reward - low) / (high - low).

        See `scaled_moments`, which counts from one end.

        Examples
        --------
        >>> stats = ArmStats(1)
        >>> stats.update(0, 0.25)
        >>> stats.moments_within(0, 0.0, 1.0)
        ((0.25, 0.0625, 0.015625, 0.00390625), (0.75, 0.5625, 0.421875, 0.31640625))
        """
        for end in (low, high):
            checks.number_between("an end of a scale", end, -LARGEST_REWARD, LARGEST_REWARD)
        if low == high:
            raise InvalidInput.of("the ends of a scale", "must differ", (low, high))
        return exact_moments.moments_within(int(self.pulls[arm]), self.exact_sums(arm), float(low), float(high))

    def put(
        self,
        arm: int,
        assigned: int,
        pulls: int,
        sums: Sequence[float],
        exact_sums: ExactSums | None = None,
        drift_sums: Sequence[float] | None = None,
    ) -> None:
        """Set one arm's statistics from counts and sums stored elsewhere, such as in a database."""
        if self._drift is not None:
            if drift_sums is None or len(drift_sums) != _DRIFT_ROWS:
                raise InvalidInput.of("drift_sums", f"must be {_DRIFT_ROWS} numbers", drift_sums)
            self._drift[:, arm] = drift_sums
        self.n_assigned += assigned - int(self.assigned[arm])
        self.assigned[arm], self.pulls[arm], self._sums[:, arm] = assigned, pulls, sums
        self._put_exact(arm, exact_sums)
        _moments().refresh(arm, self.pulls, self.mean, self.std, self._sums)

    def assign(self, arm: int) -> None:
        """Count a decision for an arm."""
        self.assigned[self._checked_arm(arm)] += 1
        self.n_assigned += 1

    def update(self, arm: int, reward: float, *, probability: float | None = None, number: int | None = None) -> None:
        """Count a reward of an arm.

        The probability of its decision and the decision's number matter to `drift_sums` alone. Without a probability
        the reward has weight 1; without a number it counts as one of decision 0.
        """
        self._add(self._checked_arm(arm), checked_reward(reward), 1.0, probability, number)

    def remove(self, arm: int, reward: float, *, probability: float | None = None, number: int | None = None) -> None:
        """Remove a counted reward; reject one that cannot have been counted, as far as the sums show.

        Probability and number must be those it was counted with.
        """
        arm, reward = self._checked_arm(arm), checked_reward(reward)
        if self.pulls[arm] == 0:
            raise InvalidInput(f"arm {arm} has no rewards to remove; got {reward!r}")
        if not self._may_contain(arm, reward):
            raise InvalidInput(f"{reward!r} cannot be among the rewards of arm {arm}")
        self._add(arm, reward, -1.0, probability, number)

    def replace(
        self, arm: int, old: float, new: float, *, probability: float | None = None, number: int | None = None
    ) -> None:
        """Replace a counted reward by another of the same decision."""
        new = checked_reward(new)
        self.remove(arm, old, probability=probability, number=number)
        self.update(arm, new, probability=probability, number=number)

    def merge(self, other: ArmStats) -> ArmStats:
        """Return the statistics of both streams together."""
        if not isinstance(other, ArmStats):
            raise InvalidInput(f"only statistics can be merged; got {other!r}")
        if other.n_arms != self.n_arms:
            raise InvalidInput(f"both statistics must have the same arms; got {self.n_arms} and {other.n_arms}")
        if (self._drift is None) != (other._drift is None):
            raise InvalidInput("both statistics must be weighted, or neither")
        merged = ArmStats(self.n_arms, weighted=self._drift is not None)
        merged.assigned += self.assigned + other.assigned
        merged.pulls += self.pulls + other.pulls
        merged.n_assigned = self.n_assigned + other.n_assigned
        for arm in range(self.n_arms):
            for whole, one, two in (
                (merged._sums, self._sums, other._sums),
                (merged._drift, self._drift, other._drift),
            ):
                if whole is None or one is None or two is None:
                    continue
                for row in range(0, len(whole), 2):
                    whole[row : row + 2, arm] = _moments().add_pairs(*one[row : row + 2, arm], *two[row : row + 2, arm])
            # Cubes and fourth powers are known of both together if they are known of each.
            merged._put_exact(arm, tuple(map(sum, zip(self.exact_sums(arm), other.exact_sums(arm), strict=False))))
        merged._refresh()
        return merged

    def copy(self) -> ArmStats:
        """Return an independent copy."""
        # Not by `extended`, which takes four times as long: each transaction of an experiment copies its statistics.
        twin = object.__new__(ArmStats)
        twin.assigned, twin.pulls, twin.n_assigned = self.assigned.copy(), self.pulls.copy(), self.n_assigned
        twin.mean, twin.std, twin._sums = self.mean.copy(), self.std.copy(), self._sums.copy()
        twin._digits, twin.exact = self._digits.copy(), self.exact
        twin._drift = None if self._drift is None else self._drift.copy()
        return twin

    def extended(self, n_arms: int) -> ArmStats:
        """Return a copy with new arms after the present ones, `n_arms` in all."""
        twin = ArmStats(n_arms, exact=self.exact, weighted=self._drift is not None)
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
        part = ArmStats(indices.size, exact=self.exact, weighted=self._drift is not None)
        for name in self._per_arm:
            getattr(part, name)[...] = getattr(self, name)[..., indices]
        part.n_assigned = int(part.assigned.sum())
        return part

    @classmethod
    def from_rewards(cls, arm: ArrayLike, reward: ArrayLike, n_arms: int) -> Self:
        """Count many rewards at once.

        Parameters
        ----------
        arm : int array (n_rewards,)
            The arm of each reward.
        reward : array (n_rewards,)
            The rewards.
        n_arms : int
            Number of arms.

        Examples
        --------
        >>> stats = ArmStats.from_rewards([0, 1, 0], [1.0, 5.0, 3.0], n_arms=2)
        >>> stats.pulls, stats.mean
        (array([2, 1]), array([2., 5.]))
        """
        stats = cls(n_arms)
        arms, rewards = np.asarray(arm, np.int64), np.ascontiguousarray(reward, np.float64)
        if arms.shape != rewards.shape or arms.ndim != 1:
            raise InvalidInput.of("reward", f"must have {arms.size} entries, one per arm given", rewards.size)
        if arms.size and not 0 <= arms.min() <= arms.max() < stats.n_arms:
            raise UnknownArm(f"arm must be between 0 and {stats.n_arms - 1}; got {int(arms.max())}")
        if not (np.abs(rewards) <= LARGEST_REWARD).all():
            raise InvalidInput.of("reward", "must be finite", float(rewards[~np.isfinite(rewards)][0]))
        digits = np.stack([exact_digits.new_digits() for _ in range(stats.n_arms)])
        _exact_sums().add_rewards(rewards, np.ones(rewards.size), arms, digits)
        stats.assigned[:] = stats.pulls[:] = np.bincount(arms, minlength=stats.n_arms)
        stats.n_assigned = arms.size
        for i in np.flatnonzero(stats.pulls).tolist():
            stats._digits[i] = digits[i]
            stats._sums[:, i] = [part for row in digits[i][:2] for part in _exact_sums().rounded(row)]
        stats._refresh()
        return stats

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
        data = {
            "assigned": self.assigned.tolist(),
            "pulls": self.pulls.tolist(),
            "mean": [None if math.isnan(x) else x for x in self.mean.tolist()],
            "std": [None if math.isnan(x) else x for x in self.std.tolist()],
            "sums": self._sums.tolist(),
            "exact_sums": [exact_digits.to_text(self.exact_sums(arm)) for arm in range(self.n_arms)],
        }
        return data if self._drift is None else data | {"drift_sums": self._drift.tolist()}

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
        stats = cls(n_arms, weighted="drift_sums" in data)
        stats.assigned[:], stats.pulls[:], stats._sums[:] = assigned, pulls, sums
        if stats._drift is not None:
            stats._drift[:] = _checked_drift(data["drift_sums"], n_arms)
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
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("assigned", "pulls", "_sums", "_drift")
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
        return _PER_ARM if self._drift is None else (*_PER_ARM, "_drift")

    def _add(self, arm: int, reward: float, sign: float, probability: float | None, number: int | None) -> None:
        weighted = self._drift is not None
        chance, count = 1.0, 0
        if weighted:  # checked before anything is counted
            chance = 1.0 if probability is None else checks.number_between("probability", probability, 0, 1)
            count = 0 if number is None else checks.whole_number("number", number, 0, LARGEST_COUNT)
        before = self._digits[arm]
        digits = exact_digits.new_digits() if before is None else before.copy()
        arrays = (self.pulls, self.mean, self.std, self._sums, digits)
        _exact_sums().add_reward_exactly(arm, reward, sign, *arrays, self.exact)
        self._digits[arm] = digits if self.pulls[arm] else None
        if weighted:
            _drift_sums().add_weighted(arm, reward, chance, count, sign, self.pulls, self._drift)

    def _rounded_sums(self, arm: int) -> ExactSums:
        """Return what the rounded sums of an arm hold."""
        high, low, square_high, square_low = map(exact_digits.units, self._sums[:, arm].tolist())
        return high + low, square_high + square_low

    def _put_exact(self, arm: int, sums: ExactSums | None) -> None:
        """Set the exact sums of an arm; without any, take its rounded ones for exact."""
        if self.pulls[arm] == 0:
            self._digits[arm] = None
        else:
            self._digits[arm] = exact_digits.to_digits(self._rounded_sums(arm) if sums is None else sums)

    def _checked_exact_sums(self, arm: int, text: Any) -> ExactSums:
        """Return an arm's exact sums from plain data; raise unless its rounded sums can be theirs."""
        try:
            sums = exact_digits.from_text(text)
        except ValueError as error:
            raise InvalidInput.of("exact_sums", "must be text such as '-5p-1 19p-2', one per arm", text) from error
        rewards, squares, *higher = sums
        count, (rounded, rounded_squares) = int(self.pulls[arm]), self._rounded_sums(arm)
        most = count * _ONE * rounded_squares  # of the sum of rewards, squared
        if abs(squares - rounded_squares) * 10**9 > rounded_squares or ((rewards - rounded) * 10**9) ** 2 > most:
            raise InvalidInput.of("exact_sums", f"must equal the sums up to rounding; arm {arm} differs", text)
        if higher:
            cubes, fourths = higher
            cut = 8 * count  # of powers below the unit
            if (abs(cubes) - cut) ** 2 > (squares + cut) * (fourths + cut) or (
                (squares - cut) ** 2 > count * (fourths + cut) * _ONE
            ):
                raise InvalidInput.of("exact_sums", f"must be those of real rewards; arm {arm} differs", text)
        return sums

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


def _counts(values: Any) -> IntArray:
    """Return counts from plain data; raise ValueError for anything but a list of whole numbers."""
    if not isinstance(values, list) or not all(type(x) is int and 0 <= x <= LARGEST_COUNT for x in values):
        raise ValueError("counts must be a list of whole numbers")
    return np.array(values, dtype=np.int64)


def _checked_drift(rows: Any, n_arms: int) -> FloatArray:
    """Return the sums under drift from plain data."""
    expected = f"must be {_DRIFT_ROWS} rows of finite numbers, one per arm each"
    try:
        sums = np.array(rows, np.float64)
    except (TypeError, ValueError):
        raise InvalidInput.of("drift_sums", expected, rows) from None
    if sums.shape != (_DRIFT_ROWS, n_arms) or not np.isfinite(sums).all():
        raise InvalidInput.of("drift_sums", expected, rows)
    return sums


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


@cache
def _drift_sums() -> ModuleType:
    """Import the kernel on first use too."""
    from equipoise.kernels import drift_sums

    return drift_sums
