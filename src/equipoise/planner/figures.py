"""Summaries of a figure over simulated experiments: its median and 8-in-10 range, a probability, an average."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equipoise._types import FloatArray

LOW, MEDIAN, HIGH = 0.1, 0.5, 0.9
"""Quantiles at the ends of a range that holds 8 in 10, and in its middle."""


class Range(NamedTuple):
    """A figure over simulated experiments: its median and the range that holds 8 in 10, with standard errors.

    Infinite where that many experiments never reach it.
    """

    median: float
    low: float
    high: float
    median_error: float
    low_error: float
    high_error: float


class Mean(NamedTuple):
    """An average or a probability over simulated experiments, with its standard error."""

    value: float
    error: float


def quantile(values: FloatArray, probability: float) -> float:
    """Return the value that a further experiment stays at or below with this probability.

    It interpolates between the values of rank r, below which a further one lies with probability r / (n + 1). Infinite
    values stand for experiments that never got there; the last finite one is the quantile if this many got there.

    Examples
    --------
    >>> quantile(np.array([3.0, 1.0, 2.0]), 0.5), quantile(np.array([1.0, 2.0, np.inf]), 0.9)
    (2.0, inf)
    >>> quantile(np.append(np.arange(23.0), [np.inf, np.inf]), 0.9)  # 92 % got there
    22.0
    """
    ordered = np.sort(values)
    found = float(_at(ordered, _rank(ordered.size, probability)[0]))
    n_finite = int(np.count_nonzero(ordered < math.inf))
    if found == math.inf and n_finite and n_finite >= probability * ordered.size:
        return float(ordered[n_finite - 1])
    return found


def quantile_error(values: FloatArray, probability: float) -> float:
    """Return the standard error of a quantile: half the distance of the values one standard error of the rank away."""
    ordered = np.sort(values)
    middle, spread = _rank(ordered.size, probability)
    low, high = _at(ordered, middle - spread), _at(ordered, middle + spread)
    return float(0.5 * (high - low)) if math.isfinite(low) else math.inf


def _rank(n: int, probability: float) -> tuple[float, float]:
    return probability * (n + 1) - 1, math.sqrt(n * probability * (1.0 - probability))


def _at(ordered: FloatArray, rank: float) -> float:
    rank = min(max(rank, 0.0), ordered.size - 1.0)
    below = math.floor(rank)
    first, part = float(ordered[below]), rank - below
    if part < 1e-9:
        return first
    second = float(ordered[below + 1])
    return first + part * (second - first) if math.isfinite(second) else second


def range_of(values: FloatArray) -> Range:
    """Return the range of a figure; values that are unknown (NaN) are left out.

    Examples
    --------
    >>> range_of(np.arange(1.0, 10.0))[:3]
    (5.0, 1.0, 9.0)
    """
    known = values[~np.isnan(values)]
    if known.size == 0:
        return Range(*[math.nan] * 6)
    return Range(
        *(quantile(known, p) for p in (MEDIAN, LOW, HIGH)), *(quantile_error(known, p) for p in (MEDIAN, LOW, HIGH))
    )


def share_of(happened: FloatArray) -> Mean:
    """Return how often something happened, with a standard error that is not 0 when it always or never did.

    Examples
    --------
    >>> value, error = share_of(np.array([True, True, True, True]))
    >>> value, round(error, 3)
    (1.0, 0.153)
    """
    n, count = happened.size, float(np.sum(happened))
    if n == 0:
        return Mean(math.nan, math.nan)
    nearer = (count + 2.0) / (n + 4.0)  # Agresti and Coull
    return Mean(count / n, math.sqrt(nearer * (1.0 - nearer) / (n + 4.0)))


def mean_of(values: FloatArray) -> Mean:
    """Return an average; values that are unknown (NaN) are left out."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return Mean(math.nan, math.nan)
    error = float(known.std(ddof=1)) / math.sqrt(known.size) if known.size > 1 else math.inf
    return Mean(float(known.mean()), error)


def bands_of(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return low end, median and high end of each column of an array (replications, looks)."""
    ends = np.full((3, values.shape[1]), math.nan)
    for look in range(values.shape[1]):
        known = values[~np.isnan(values[:, look]), look]
        if known.size:
            ends[:, look] = [quantile(known, p) for p in (LOW, MEDIAN, HIGH)]
    return ends[0], ends[1], ends[2]
