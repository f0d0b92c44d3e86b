"""ArmPrior, what one expects of arms before any reward: how far apart means and spreads usually are  [ours]."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, UnknownName, within
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_BOUNDS = {"means_apart": (0.001, 100.0), "spreads_apart": (0.05, 3.0), "weight": (1.0, 1e6)}
"""Those of spreads are the roots of what pooling keeps to without a prior."""
_USUAL_SPREADS, _USUAL_WEIGHT = 0.3, 4.0
_MOST_WEIGHT = 10.0
"""Most that earlier experiments count for: the next one may differ from all of them, however many arms they had."""
_FEWEST_REWARDS = 4


class Reports(Protocol):
    """An experiment, as far as a prior reads it."""

    def status(self) -> Any:
        """Return a record whose `arms` have `rewarded`, `mean` and `std`."""


@dataclass(frozen=True, kw_only=True)
class ArmPrior:
    """How much arms usually differ, for `PooledBalance(prior=...)`.

    It says nothing of which arm is better, nor of the size of rewards. Decisions use the average of what it says and
    what the arms show, weighted by `weight` and by the number of arms as far as their rewards are not noise.

    Parameters
    ----------
    means_apart : float
        Standard deviation between arms' means, in units of the typical standard deviation of rewards, from 0.001 to
        100.
        Messages, incentives and lessons are mostly 0.02 to 0.2 apart.
    spreads_apart : float, default 0.3
        Standard deviation between the logarithms of arms' variances, from 0.05 to 3: standard deviations differ by
        about half of it. It is not used while rewards are yes or no, whose spreads follow from the rates.
    weight : float, default 4
        How many arms that are known without noise the prior is worth, from 1 to a million.

    Examples
    --------
    Four rewards each say little about arms that usually are a tenth of a standard deviation apart:

    >>> import equipoise as eq
    >>> stats = eq.ArmStats.from_summary([4, 4], [1.0, 2.0], [1.0, 1.0])
    >>> eq.PooledBalance(reward_weight=0.5).target(stats).round(3)
    array([0.335, 0.665])
    >>> eq.PooledBalance(reward_weight=0.5, prior=ArmPrior(means_apart=0.1)).target(stats).round(3)
    array([0.492, 0.508])
    """

    means_apart: float
    spreads_apart: float = _USUAL_SPREADS
    weight: float = _USUAL_WEIGHT

    def __post_init__(self) -> None:
        for name, (low, high) in _BOUNDS.items():
            object.__setattr__(self, name, checks.number_between(name, getattr(self, name), low, high))

    @classmethod
    def from_experiments(cls, experiments: Iterable[ArmStats | Reports], *, weight: float | None = None) -> Self:
        """Return what earlier experiments of the same kind say about how much arms differ.

        Only arms of the same experiment are compared, and the noise of their means and spreads is taken out (Paule and
        Mandel 1982). Rewards may be in other units in each.

        Parameters
        ----------
        experiments : Experiment or ArmStats, one or more
            Of published figures, give ``ArmStats.from_summary(counts, means, stds)``. Arms with fewer than four rewards
            are left out, and experiments with fewer than two other arms.
        weight : float, optional
            By default the number of their arms, less one per experiment and as far as they are not noise, from 1 to 10.

        Examples
        --------
        >>> import equipoise as eq
        >>> spring = eq.ArmStats.from_summary([400, 380, 420], [0.61, 0.55, 0.58], [0.3, 0.31, 0.29])
        >>> autumn = eq.ArmStats.from_summary([900, 950], [7.1, 7.9], [4.0, 4.4])
        >>> ArmPrior.from_experiments([spring, autumn])
        ArmPrior(means_apart=0.1042, spreads_apart=0.05855, weight=1.913)
        """
        if isinstance(experiments, ArmStats) or hasattr(experiments, "status"):
            raise InvalidInput.of("experiments", "must be a list of them, even of one", experiments)
        given = [_figures(k, experiment) for k, experiment in enumerate(experiments)]
        found = [one for one in given if one is not None]
        if not found:
            expected = f"must have one with rewards that differ and two arms with {_FEWEST_REWARDS} rewards or more"
            raise InvalidInput.of("experiments", f"{expected}; got {len(given)} without")
        spreads = _differences([_logarithms(one) for one in found if one.rate_of is None])
        means = _differences([_means(one, spreads.variance) for one in found])
        return cls(
            means_apart=_within_bounds("means_apart", math.sqrt(means.variance)),
            spreads_apart=_within_bounds("spreads_apart", math.sqrt(spreads.variance))
            if spreads.n_arms
            else _USUAL_SPREADS,
            weight=_within_bounds("weight", min(means.n_arms, _MOST_WEIGHT)) if weight is None else weight,
        )

    @classmethod
    def from_guesses(
        cls,
        mean: ArrayLike,
        std: ArrayLike | None = None,
        *,
        mean_unsure: ArrayLike = 0.0,
        std_unsure: ArrayLike = 0.0,
        weight: float = _USUAL_WEIGHT,
    ) -> Self:
        """Return how much arms differ if guesses of each are right within what one is sure of.

        Parameters
        ----------
        mean, std : array (n_arms,)
            Guessed means and standard deviations of rewards; leave out `std` if rewards are yes or no.
        mean_unsure, std_unsure : float or array (n_arms,)
            Standard deviation of how far off each guess may be. An "8 in 10 sure" range is 2.56 of them wide.
        weight : float, default 4

        Examples
        --------
        Messages that 10, 12 and 14 % might answer, give or take 2 %:

        >>> ArmPrior.from_guesses([0.10, 0.12, 0.14], mean_unsure=0.02)
        ArmPrior(means_apart=0.08704, spreads_apart=0.3, weight=4.0)
        """
        means = checks.vector("mean", mean)
        size, is_rate = means.size, std is None
        if is_rate and not (means.min() >= 0 and means.max() <= 1 and 0 < means.mean() < 1):
            raise InvalidInput.of(
                "mean", "must be rates from 0 to 1, not all 0 or all 1, where std is left out", means.tolist()
            )
        stds = np.full(size, math.sqrt(means.mean() * (1 - means.mean()))) if is_rate else _positive("std", std, size)
        doubts = (_per_arm("mean_unsure", mean_unsure, size), _per_arm("std_unsure", std_unsure, size))
        logarithm = 2.0 * np.log(stds)
        typical = math.exp(0.5 * float(logarithm.mean()))
        apart = math.sqrt(_variance(means) + float(np.mean(doubts[0] ** 2))) / typical
        if apart == 0.0:
            raise InvalidInput(
                "mean_unsure must say how far off the guesses may be where all are the same; got 0",
                hint="or state means_apart itself",
            )
        spreads = math.sqrt(_variance(logarithm) + float(np.mean((2.0 * doubts[1] / stds) ** 2)))
        return cls(
            means_apart=_within_bounds("means_apart", apart),
            spreads_apart=_USUAL_SPREADS if is_rate else _within_bounds("spreads_apart", spreads),
            weight=weight,
        )

    def to_dict(self) -> dict[str, float]:
        """Return the parameters as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read a prior that `to_dict` wrote; omitted parameters keep their defaults."""
        allowed = [field.name for field in fields(cls)]
        if not isinstance(data, dict):
            raise InvalidInput(f"expected {', '.join(allowed)}; got {data!r}")
        unknown = sorted(set(data) - set(allowed))
        if unknown:
            raise UnknownName(f"ArmPrior has no parameter {', '.join(unknown)}; allowed are {', '.join(allowed)}")
        if "means_apart" not in data:
            raise InvalidInput("ArmPrior needs the parameter means_apart")
        return cls(**data)


class _Figures(NamedTuple):
    """Numbers of rewards, means and stds of an experiment's arms; the value of a success if rewards are yes or no."""

    pulls: FloatArray
    mean: FloatArray
    std: FloatArray
    rate_of: float | None


class _Values(NamedTuple):
    """Estimates of one experiment, and the variances of their noise."""

    value: FloatArray
    noise: FloatArray


class _Differences(NamedTuple):
    """A variance between arms, and how many arms without noise would tell as much."""

    variance: float
    n_arms: float


def _figures(place: int, experiment: ArmStats | Reports) -> _Figures | None:
    """Return the figures of the arms of an experiment that have enough rewards; None if they say nothing."""
    from equipoise.kernels.pooling import common_success

    with within("experiments", place):
        if isinstance(experiment, ArmStats):
            rows = list(zip(experiment.pulls.tolist(), experiment.mean.tolist(), experiment.std.tolist(), strict=True))
        elif hasattr(experiment, "status"):
            rows = [(arm.rewarded, arm.mean, arm.std) for arm in experiment.status().arms]
        else:
            raise InvalidInput(f"expected an Experiment, or the ArmStats of one; got {experiment!r}")
        enough = [row for row in rows if row[0] >= _FEWEST_REWARDS]
        if len(enough) < 2 or not any(row[2] > 0 for row in enough):
            return None
        pulls, mean, std = (np.array(column, dtype=np.float64) for column in zip(*enough, strict=True))
        success = common_success(pulls.astype(np.int64), mean, std)
        return _Figures(pulls, mean, std, success or None)


def _logarithms(figures: _Figures) -> _Values:
    """Return the logarithms of variances and their noise; see `believe` in `kernels.pooling`."""
    from equipoise.kernels.pooling import TAILS

    seen = figures.std > 0
    inverse = 1.0 / (figures.pulls[seen] - 1.0)
    value = 2.0 * np.log(figures.std[seen]) + inverse * (1.0 + inverse / 3)
    return _Values(value, TAILS * inverse * (2.0 + inverse * (2.0 + inverse * 4 / 3)))


def _means(figures: _Figures, spreads: float) -> _Values:
    """Return means and their noise in units of the typical spread, if logarithms of variances vary by this much."""
    if figures.rate_of is not None:
        rate = figures.mean / figures.rate_of
        typical = float((0.5 + figures.pulls @ rate) / (1.0 + figures.pulls.sum()))
        return _Values(rate / math.sqrt(typical * (1.0 - typical)), 1.0 / figures.pulls)
    logarithm = _logarithms(figures)
    unit = math.exp(0.5 * float(np.average(logarithm.value, weights=1.0 / (logarithm.noise + spreads))))
    std = np.where(figures.std > 0, figures.std, unit) / unit
    return _Values((figures.mean - figures.mean.mean()) / unit, std**2 / figures.pulls)


def _differences(groups: Sequence[_Values]) -> _Differences:
    """Return the variance between the arms of an experiment, the same in all, beyond noise (Paule and Mandel 1982).

    If noise explains all differences, it is what they could be without showing: half a standard error of its estimate.
    """
    freedom = sum(one.value.size - 1 for one in groups)
    if freedom <= 0:
        return _Differences(0.0, 0.0)

    def squares(between: float) -> float:
        total = 0.0
        for value, noise in groups:
            weight = 1.0 / (noise + between)
            total += float(weight @ (value - weight @ value / weight.sum()) ** 2)
        return total

    low, high = 0.0, sum(float(np.ptp(one.value)) ** 2 for one in groups) + 1e-12
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if squares(middle) > freedom else (low, middle)
    unseen = math.sqrt(0.5 / sum(float(np.sum(one.noise**-2.0)) for one in groups))
    variance, n_arms = max(low, unseen), 0.0
    for one in groups:
        part = variance / (one.noise + variance)
        n_arms += float(np.sum(part**2) - np.sum(part**2) / np.sum(part))
    return _Differences(variance, n_arms)


def _within_bounds(name: str, value: float) -> float:
    """Return a parameter's value with four digits, as more would pretend; none outside its bounds."""
    low, high = _BOUNDS[name]
    return min(max(float(f"{value:.4g}"), low), high)


def _variance(values: FloatArray) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def _per_arm(name: str, values: ArrayLike, size: int) -> FloatArray:
    if np.ndim(values) == 0:
        return np.full(size, checks.number_between(name, values, 0, math.inf))
    return checks.non_negative(name, values, size=size)


def _positive(name: str, values: Any, size: int) -> FloatArray:
    array = checks.non_negative(name, values, size=size)
    if array.min() == 0:
        raise InvalidInput.of(name, "must be above 0", 0.0, arm=int(array.argmin()))
    return array
