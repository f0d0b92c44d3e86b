"""Compute tails and quantiles of Student's t distribution, to some 1e-13 of themselves for any degrees of freedom.

With nu degrees of freedom, the tail beyond t is half the incomplete beta function I_x(nu/2, 1/2) at x = nu/(nu + t^2).
"""

from __future__ import annotations

import math

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.random import normal

_CENTRE = 1.2
"""Below this the tail is a half minus a series; beyond it, a continued fraction, which loses no digits."""

_MOST_TERMS = 10_000
_ACCURACY = 1e-16
_MANY = 20.0
_NEWTON_STEPS = 60


@compiled
def log_upper_tail(t: float, freedom: float) -> float:
    """Return the logarithm of the probability of a value beyond t >= 0."""
    if t < _CENTRE:
        return math.log(0.5 - centre(t, freedom))
    if math.isinf(t):
        return -math.inf
    # Didonato and Morris (1992), ACM TOMS 18, eq. 9, with a = nu/2, b = 1/2. Everything is written in y = 1 - x:
    # x itself is 1 but for a few digits when there are many degrees of freedom.
    a, b = 0.5 * freedom, 0.5
    y = t / freedom * t / (1.0 + t / freedom * t)
    x = 1.0 - y if y < 0.5 else 1.0 / (1.0 + t / freedom * t)
    above = (a + b) * y - b
    # The modified method of Lentz.
    fraction = a / (a + 1.0) * (above + 1.0)
    c, d = fraction, 0.0
    for n in range(1, _MOST_TERMS):
        two = a + 2.0 * n
        numerator = (a + n - 1.0) / (two - 1.0) * ((a + b + n - 1.0) / (two - 1.0)) * n * (b - n) * x * x
        denominator = n + n * (b - n) * x / (two - 1.0) + (a + n) / (two + 1.0) * (above + 1.0 + n * (1.0 + y))
        d = 1.0 / (denominator + numerator * d)
        c = denominator + numerator / c
        fraction *= c * d
        if abs(c * d - 1.0) <= _ACCURACY:
            break
    return _log_density(t, freedom) + math.log(0.5 * t) - math.log(fraction)


@compiled
def centre(t: float, freedom: float) -> float:
    """Return the probability of a value between 0 and t >= 0, by a series of positive terms; t is not far out."""
    square = t / freedom * t
    # Each term is the one before times (nu/2 + 1/2 + n) z / (3/2 + n), with z = t^2 / (nu + t^2).
    term, total = 1.0, 1.0
    for n in range(_MOST_TERMS):
        term *= (1.0 + (1.0 + 2.0 * n) / freedom) * (t * t / (1.0 + square)) / (3.0 + 2.0 * n)
        total += term
        if term <= 0.1 * _ACCURACY * total:
            break
    return t * math.exp(_log_density(t, freedom)) * total


@compiled
def _log_density(t: float, freedom: float) -> float:
    """Return the logarithm of the density."""
    a = 0.5 * freedom
    if a < _MANY:
        ratio = math.lgamma(a + 0.5) - math.lgamma(a) - 0.5 * math.log(a)
    else:  # two large logarithms would leave no digits
        i = 1.0 / a
        square = i * i
        ratio = i * (-1 / 8 + square * (1 / 192 + square * (-1 / 640 + square * (17 / 14336 - square * (31 / 18432)))))
    return ratio - 0.5 * math.log(2.0 * math.pi) - (a + 0.5) * math.log1p(t / freedom * t)


@compiled
def upper_quantile(probability: float, freedom: float) -> float:
    """Return the t beyond which there is this probability, in (0, 0.5], by Newton's method."""
    t = max(-normal(probability), 0.0)
    if probability > 0.2:
        # The probability between 0 and t is concave in t, and the normal quantile is too small: it climbs to the root.
        for _ in range(_NEWTON_STEPS):
            step = ((0.5 - probability) - centre(t, freedom)) / math.exp(_log_density(t, freedom))
            t += step
            if abs(step) <= 4.0 * _ACCURACY * t:
                break
        return t
    # The logarithm of the tail is concave in log t: after one step, it comes down to the root.
    target = math.log(probability)
    for _ in range(_NEWTON_STEPS):
        tail = log_upper_tail(t, freedom)
        step = (tail - target) / (t * math.exp(_log_density(t, freedom) - tail))
        t *= math.exp(step)
        if abs(step) <= 4.0 * _ACCURACY:
            break
    return t


@compiled
def write_upper_tails(t: FloatArray, freedom: FloatArray, tail: FloatArray) -> None:
    """Write the probabilities of values beyond t, of either sign."""
    for i in range(t.size):
        beyond = math.exp(log_upper_tail(abs(t[i]), freedom[i]))
        tail[i] = beyond if t[i] >= 0.0 else 1.0 - beyond


@compiled
def write_upper_quantiles(probability: FloatArray, freedom: FloatArray, t: FloatArray) -> None:
    """Write the t beyond which there are these probabilities, in (0, 1)."""
    for i in range(t.size):
        upper = probability[i] <= 0.5
        value = upper_quantile(probability[i] if upper else 1.0 - probability[i], freedom[i])
        t[i] = value if upper else -value
