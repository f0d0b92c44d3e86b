"""Bound how accurate an experiment can be that loses little reward  [conclusions of the paper: an open question].

The loss is the best mean minus the reward per pull. `docs/theory.md` has the statements with their proofs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput

_TWO_THIRDS = 2.0 / 3.0


def least_error(mean: ArrayLike, std: ArrayLike, *, loss: float) -> float:
    """Return the smallest average error (Eq. 2) of the allocations that lose at most this much reward per pull.

    Exact: it is attained by shares proportional to (std / (level + gap))^(2/3) with the gap to the best mean, at the
    level where the loss is the one allowed.

    Examples
    --------
    >>> mean, std = [1, 1.5, 2, 4, 5], [0.22, 0.32, 0.45, 2, 0.71]
    >>> [round(least_error(mean, std, loss=loss), 3) for loss in (2, 0.5, 0.05, 0.005)]
    [1.483, 2.201, 6.57, 20.462]

    A loss of nothing leaves nothing to learn about the other arms:

    >>> least_error(mean, std, loss=0)
    inf
    """
    means, stds = checks.means_and_stds(mean, std)
    allowed = checks.number_between("loss", loss, 0, math.inf)
    gap, noisy = means.max() - means, stds > 0
    factor = stds**_TWO_THIRDS
    if not noisy.any():
        return 0.0
    if factor @ gap <= allowed * factor.sum():
        return _average_error(factor / factor.sum(), stds)
    if allowed == 0.0:
        return math.inf
    if not noisy[gap == 0].any():
        # The best arms need no pulls to be known: at level 0 the others share what the loss allows.
        others = np.where(noisy, factor * np.where(gap > 0, gap, 1.0) ** -_TWO_THIRDS, 0.0)
        others /= others.sum()
        if others @ gap >= allowed:
            return _average_error(others * (allowed / float(others @ gap)), stds)
    # The loss grows with the level; bisect on its logarithm.
    low, high = (math.log(float(gap.max())) + sign * 600.0 for sign in (-1, 1))
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        shares = _shares_at(math.exp(middle), gap, factor)
        low, high = (middle, high) if shares @ gap <= allowed else (low, middle)
    return _average_error(_shares_at(math.exp(low), gap, factor), stds)


def error_and_loss(mean: ArrayLike, std: ArrayLike, *, about: str = "average") -> float:
    """Return the least product of the squared error and the loss: neither can be small unless the other is large.

    After n pulls with a total loss L, the squared standard error of the arms' means, by formula, is at least this
    number divided by L, whatever n is:

    - "average": of the average standard error, ``(sum_i std_i^(2/3) gap_i^(1/3))^3 / n_arms^2``;
    - "every-arm": of the largest standard error, ``sum_i std_i^2 gap_i``;
    - "best-arm": of the largest standard error of a comparison with the best arm, relative to its gap,
      ``sum_i std_i^2 / gap_i`` (infinite if other arms are as good).

    So a total loss that grows like log n, the smallest possible for an algorithm that maximises reward, leaves errors
    that fall like 1 / sqrt(log n) and no faster.

    Examples
    --------
    Two arms with a gap of 1 and spreads of 1: after a total loss of 100 the average standard error is at least 0.05,
    that of the worse arm 0.1.

    >>> product = error_and_loss([1, 2], [1, 1])
    >>> product, math.sqrt(product / 100)
    (0.25, 0.05)
    >>> math.sqrt(error_and_loss([1, 2], [1, 1], about="every-arm") / 100)
    0.1
    """
    means, stds = checks.means_and_stds(mean, std)
    checks.one_of("about", about, checks.INFORMATION_ABOUT)
    gap = means.max() - means
    if about == "average":
        return float((stds**_TWO_THIRDS @ np.cbrt(gap)) ** 3 / stds.size**2)
    if about == "every-arm":
        return float((stds * stds) @ gap)
    others = (np.arange(stds.size) != means.argmax()) & (stds > 0)
    with np.errstate(divide="ignore"):
        return float((stds[others] ** 2 / gap[others]).sum())


def least_total_loss(mean: ArrayLike, std: ArrayLike, *, standard_error: float, about: str = "average") -> float:
    """Return the reward that must be lost in all, at least, to reach a standard error, however many pulls there are.

    Examples
    --------
    Four messages with reply rates of 10 to 14%: to know each rate to within a standard error of 1 point costs at
    least 86 replies.

    >>> rate = np.array([0.10, 0.11, 0.12, 0.14])
    >>> std = np.sqrt(rate * (1 - rate))
    >>> round(least_total_loss(rate, std, standard_error=0.01, about="every-arm"))
    86
    """
    wanted = checks.number_between("standard_error", standard_error, 0, math.inf, open_low=True)
    product = error_and_loss(mean, std, about=about)
    if not math.isfinite(product):
        raise InvalidInput.of("mean", "must have one best arm for about 'best-arm'; got a tie")
    return product / wanted / wanted


def _shares_at(level: float, gap: FloatArray, factor: FloatArray) -> FloatArray:
    root = factor * (level + gap) ** -_TWO_THIRDS
    return np.asarray(root / root.sum())


def _average_error(share: FloatArray, std: FloatArray) -> float:
    noisy = std > 0
    return float((std[noisy] / np.sqrt(share[noisy])).sum() / std.size)
