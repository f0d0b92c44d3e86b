"""Compute count, mean and standard deviation of a stream from sums with twice the precision of a double.

Sums of rewards and of their squares are unevaluated pairs high + low of doubles (Dekker 1971, Numer. Math. 18). That
makes the moments independent of the order of arrival, and merges two streams as if they had been one, to about 2^-100
of the sums where Welford's update keeps 2^-52. A removal leaves as much of the largest sum there was; `exact_sums`
removes without that residue.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import fused_multiply_add, inlined

SUM_ROWS = 4
"""Rows of sums: rewards high and low, squares high and low."""

# Each addition may lose 2^-104 of the squares' sum; a difference below that times the additions is rounding, not
# spread.
_ROUNDING = 2.0**-102


@inlined
def product_error(x: float, y: float) -> float:
    """Return x * y (exact) minus x * y (rounded)."""
    return fused_multiply_add(x, y, -(x * y))


@inlined
def add_pairs(x_high: float, x_low: float, y_high: float, y_low: float) -> tuple[float, float]:
    """Return the sum of two pairs as a pair."""
    total = x_high + y_high
    part = total - x_high
    low = (x_high - (total - part)) + (y_high - part) + (x_low + y_low)
    high = total + low
    return high, low - (high - total)


@inlined
def refresh(arm: int, pulls: IntArray, mean: FloatArray, std: FloatArray, sums: FloatArray) -> None:
    """Write an arm's mean and standard deviation from its sums; NaN where there are too few rewards."""
    count = pulls[arm]
    if count == 0:
        for row in range(SUM_ROWS):
            sums[row, arm] = 0.0
        mean[arm] = np.nan
        std[arm] = np.nan
        return
    n = float(count)
    total_high, total_low, square_high, square_low = sums[0, arm], sums[1, arm], sums[2, arm], sums[3, arm]
    # The mean in two parts: `rest` holds what the rounded quotient misses.
    reciprocal = 1.0 / n
    mean_high = total_high * reciprocal
    product = mean_high * n
    rest = (total_high - product) - product_error(mean_high, n) + total_low
    mean[arm] = mean_high + rest * reciprocal
    if count == 1:
        std[arm] = np.nan
        return
    # n times the squares minus the squared total, both as pairs: the subtraction that ruins the textbook formula is
    # exact here where the high parts are close, and harmless where they are not. It does not depend on the mean
    # computed above.
    scaled = n * square_high
    scaled_low = product_error(n, square_high) + n * square_low
    squared = total_high * total_high
    squared_low = product_error(total_high, total_high) + 2.0 * total_high * total_low
    deviations = (scaled - squared) + (scaled_low - squared_low)
    if deviations <= _ROUNDING * n * scaled:
        deviations = 0.0
    std[arm] = math.sqrt(deviations * (1.0 / (n * (n - 1.0))))


@inlined
def add_reward(
    arm: int, reward: float, sign: float, pulls: IntArray, mean: FloatArray, std: FloatArray, sums: FloatArray
) -> None:
    """Count a reward (sign 1.0) or remove it again (sign -1.0)."""
    square = reward * reward
    sums[0, arm], sums[1, arm] = add_pairs(sums[0, arm], sums[1, arm], sign * reward, 0.0)
    sums[2, arm], sums[3, arm] = add_pairs(
        sums[2, arm], sums[3, arm], sign * square, sign * product_error(reward, reward)
    )
    pulls[arm] += 1 if sign > 0.0 else -1
    refresh(arm, pulls, mean, std, sums)
