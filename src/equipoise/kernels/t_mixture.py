"""Compute evidence from t statistics that holds at all times: Lai's t mixture, mixed over scales  [ours].

For Gaussian rewards of unknown spread, a mixture over possible means gives a martingale in the t statistic alone
(Lai 1976, Ann. Stat. 4; Wang and Ramdas 2025, "Anytime-valid t-tests"). Each is narrowest at one number of rewards, so
nine of them are mixed, for 32 to two million. They depend on nothing but the number of rewards and the statistic:
neither the order of rewards nor the confidence asked for matters, so one function gives intervals of every confidence,
p-values and e-values that agree with each other.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled

_SCALES = 9
_COUNT: FloatArray = 32.0 * np.power(4.0, np.arange(_SCALES, dtype=np.float64))
"""The numbers of rewards at which each part is narrowest."""
# For which failure probability: 1 % lies between that of one arm at 5 % and of many arms together; others lose little.
_DOUBLED = -2.0 * math.log(0.01)
_G: FloatArray = _COUNT / (_DOUBLED + math.log1p(_DOUBLED))
_AWAY: FloatArray = np.log(_COUNT / 200.0) / math.log(8.0)
_WEIGHT: FloatArray = 1.0 / (1.0 + _AWAY * _AWAY)
_LOG_WEIGHT: FloatArray = np.log(_WEIGHT / _WEIGHT.sum())

SKEWNESS_WITHIN = 1.5
"""Skewness may be larger than that of a sample by this factor."""
_NO_SKEWNESS, _LARGEST_EXPONENT = 1e-9, 500.0

_MOST_STEPS = 200
_LARGEST_SQUARE = 1e200


@compiled
def log_t_evidence(n: float, t: float) -> float:
    """Return the log evidence against a mean that lies t standard errors from that of n rewards.

    `n` may be any number above 1: for a difference of two means it is Welch's degrees of freedom plus 1.
    """
    if not n > 1.0:
        return 0.0
    freedom = n - 1.0
    square = min(t * t, _LARGEST_SQUARE)
    outside = math.log1p(square / freedom)
    best, total = -np.inf, 0.0
    for j in range(_SCALES):
        r = _G[j] / (_G[j] + n)
        log_part = _LOG_WEIGHT[j] + 0.5 * math.log(r) + 0.5 * n * (outside - math.log1p(r * square / freedom))
        if log_part > best:
            total = 1.0 + (total * math.exp(best - log_part) if total > 0.0 else 0.0)
            best = log_part
        else:
            total += math.exp(log_part - best)
    return best + math.log(total)


@compiled
def t_radius(n: float, log_threshold: float) -> float:
    """Return the t statistic at which the log evidence reaches a threshold; infinite if it never does.

    The evidence grows with the statistic, up to a limit that depends on n: a few rewards prove nothing.
    """
    if not n > 1.0 or log_t_evidence(n, 1e100) <= log_threshold:
        return np.inf
    # Up to here the evidence is below the threshold: a single part with all the weight and the best scale.
    low, at_low = 0.0, log_t_evidence(n, 0.0) - log_threshold
    if at_low >= 0.0:
        return 0.0
    high = math.sqrt(2.0 * max(log_threshold, 0.1)) + 1.0
    at_high = log_t_evidence(n, high) - log_threshold
    while at_high < 0.0:
        low, at_low = high, at_high
        high *= 1.5
        at_high = log_t_evidence(n, high) - log_threshold
    return _root(n, log_threshold, low, at_low, high, at_high)


@compiled
def _root(n: float, log_threshold: float, low: float, at_low: float, high: float, at_high: float) -> float:
    """Return where the evidence reaches the threshold, from both sides of it, by the Illinois method."""
    side = 0
    for _ in range(_MOST_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high or high - low <= 1e-12 * high:
            break
        there = log_t_evidence(n, middle) - log_threshold
        if there >= 0.0:
            high, at_high = middle, there
            if side == 1:
                at_low *= 0.5
            side = 1
            if there <= 1e-12:
                break
        else:
            low, at_low = middle, there
            if side == -1:
                at_high *= 0.5
            side = -1
    return high


@compiled
def without_skewness(t: float, skew: float) -> float:
    """Return a t statistic without the effect of skewness, to the order of 1 / n  (Hall 1992, JRSS B 54, p. 221).

    `skew` is the skewness of the rewards divided by sqrt(n). The result grows with t.
    """
    return t + skew * t * t * (1.0 / 3.0) + skew * skew * t * t * t * (1.0 / 27.0) + skew * (1.0 / 6.0)


@compiled
def with_skewness(h: float, skew: float) -> float:
    """Return the t statistic that `without_skewness` takes to h."""
    if abs(skew) < 1e-9:
        return h - skew * (h * h * (1.0 / 3.0) + 1.0 / 6.0)
    return float((3.0 / skew) * (np.cbrt(1.0 + skew * (h - skew * (1.0 / 6.0))) - 1.0))


@compiled
def skewness_bounds(skew: float) -> tuple[float, float]:
    """Return the least and the largest skewness that there may be, from that of a sample (over the root of its size).

    The skewness of a sample is too small for most distributions with a long tail: half of what it should be, in 100
    lognormal rewards.
    """
    more = SKEWNESS_WITHIN * skew
    return min(skew, more), max(skew, more)


@compiled
def least_without_skewness(t: float, least: float, largest: float) -> float:
    """Return the t statistic without the effect of skewness, at the bound that leaves less of it.

    By Hall's second transformation, exp(2/3 skew t), beside the cubic one of `without_skewness`: it has a limit on the
    side of the long tail, where a sample proves the less the more skewed it is.
    """
    return min(_without_skewness(t, least), _without_skewness(t, largest))


@compiled
def most_with_skewness(h: float, least: float, largest: float) -> float:
    """Return the t statistic that `least_without_skewness` takes to h, at least 0; infinite if none does."""
    if not h < np.inf:
        return np.inf
    return max(_with_skewness(h, least), _with_skewness(h, largest), 0.0)


@compiled
def _without_skewness(t: float, skew: float) -> float:
    if abs(skew) < _NO_SKEWNESS:
        return t + skew * (t * t * (1.0 / 3.0) + 1.0 / 6.0)
    return math.expm1(min(2.0 / 3.0 * skew * t, _LARGEST_EXPONENT)) * (1.5 / skew) + skew * (1.0 / 6.0)


@compiled
def _with_skewness(h: float, skew: float) -> float:
    if abs(skew) < _NO_SKEWNESS:
        return h - skew * (h * h * (1.0 / 3.0) + 1.0 / 6.0)
    inside = 2.0 / 3.0 * skew * (h - skew * (1.0 / 6.0))
    return math.log1p(inside) * (1.5 / skew) if inside > -1.0 else np.inf
