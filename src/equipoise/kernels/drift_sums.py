"""Keep sums of rewards weighted by what their probability was, and estimate arms from them where levels drift.

If rewards rise or fall with time, arms that were assigned at different times are averaged over different people, and
the arm assigned last looks best. Each reward weighted by 1 / its probability makes every arm's average one over the
same people (Horvitz and Thompson 1952, J. Am. Stat. Assoc. 47; Hajek 1971). It is noisier: n rewards with weights w
tell as much as (sum w)^2 / sum w^2 of equal weight (Kish 1965).

Only sums, products, quotients and square roots, which every machine rounds alike. A wire format: if you change a result
here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.moments import add_pairs, product_error
from equipoise.kernels.rules import DETECTED

WEIGHT, WEIGHT_SQUARED, REWARD, REWARD_SQUARED, TIME, TIME_SQUARED, TIME_REWARD = range(0, 14, 2)
DRIFT_ROWS = 14
"""Rows of the sums per arm, each a high and a low part: w, w^2, wY, wY^2; t, t^2, tY, where t is the decision's number
and Y the reward."""

SMALLEST_PROBABILITY = 0.001
"""Probabilities below this are weighted as this."""

_LOUD = 3.9
"""The check for drift speaks beyond this many standard errors: by chance, once in 10,000 looks."""

_ROUNDING = 2.0**-102


@inlined
def _product(x_high: float, x_low: float, y_high: float, y_low: float) -> tuple[float, float]:
    """Return the product of two pairs as a pair."""
    high = x_high * y_high
    return high, product_error(x_high, y_high) + (x_high * y_low + x_low * y_high)


@inlined
def _add(row: int, arm: int, high: float, low: float, drift: FloatArray) -> None:
    drift[row, arm], drift[row + 1, arm] = add_pairs(drift[row, arm], drift[row + 1, arm], high, low)


@compiled
def add_weighted(
    arm: int, reward: float, probability: float, number: int, sign: float, pulls: IntArray, drift: FloatArray
) -> None:
    """Count a reward of the decision with this number (sign 1.0) or remove it again (sign -1.0).

    `pulls` are counted already; an arm without any keeps no residue.
    """
    if pulls[arm] == 0:
        for row in range(DRIFT_ROWS):
            drift[row, arm] = 0.0
        return
    weight, t = 1.0 / max(probability, SMALLEST_PROBABILITY), float(number)
    weighted = weight * reward
    error = product_error(weight, reward)
    square = weighted * reward
    square_error = product_error(weighted, reward) + error * reward
    _add(WEIGHT, arm, sign * weight, 0.0, drift)
    _add(WEIGHT_SQUARED, arm, sign * (weight * weight), sign * product_error(weight, weight), drift)
    _add(REWARD, arm, sign * weighted, sign * error, drift)
    _add(REWARD_SQUARED, arm, sign * square, sign * square_error, drift)
    _add(TIME, arm, sign * t, 0.0, drift)
    _add(TIME_SQUARED, arm, sign * (t * t), sign * product_error(t, t), drift)
    _add(TIME_REWARD, arm, sign * (t * reward), sign * product_error(t, reward), drift)


@inlined
def _minus_product(
    x: tuple[float, float], y: tuple[float, float], v: tuple[float, float], w: tuple[float, float]
) -> float:
    """Return x y - v w for pairs: what is left where both products are close is not rounding."""
    first, first_low = _product(x[0], x[1], y[0], y[1])
    second, second_low = _product(v[0], v[1], w[0], w[1])
    return (first - second) + (first_low - second_low)


@compiled
def trend_speaks(active: IntArray, pulls: IntArray, std: FloatArray, sums: FloatArray, drift: FloatArray) -> bool:
    """Return whether rewards rise or fall with time within arms, pooled over the arms in play.

    With S_tt and S_ty an arm's centred sums of squared times and of times by rewards, and s its spread,
    z = sum(S_ty / s^2) / sqrt(sum(S_tt / s^2)); the check speaks at |z| > 3.9.
    """
    along, spread = 0.0, 0.0
    for k in range(active.size):
        arm = active[k]
        if pulls[arm] < 2 or not std[arm] > 0.0:
            continue
        n, variance = float(pulls[arm]), std[arm] * std[arm]
        count, time = (n, 0.0), (drift[TIME, arm], drift[TIME + 1, arm])
        squares, products = (
            (drift[TIME_SQUARED, arm], drift[TIME_SQUARED + 1, arm]),
            (drift[TIME_REWARD, arm], drift[TIME_REWARD + 1, arm]),
        )
        along += _minus_product(count, products, time, (sums[0, arm], sums[1, arm])) / n / variance
        spread += _minus_product(count, squares, time, time) / n / variance
    return spread > 0.0 and abs(along) > _LOUD * math.sqrt(spread)


@compiled
def write_estimates(
    steering: int,
    rewards_needed: int,
    active: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    sums: FloatArray,
    drift: FloatArray,
    seen_pulls: IntArray,
    seen_mean: FloatArray,
    seen_std: FloatArray,
) -> bool:
    """Write what decisions are to read of the arms in play; return whether that is weighted.

    The plain estimates are written until every arm has the rewards that estimates need and, with `DETECTED`, unless the
    check for drift speaks. Else pulls are the effective number of rewards, at least as many as are needed.
    """
    weighted = steering != DETECTED or trend_speaks(active, pulls, std, sums, drift)
    for k in range(active.size):
        weighted = weighted and pulls[active[k]] >= max(rewards_needed, 2)
    for k in range(active.size):
        arm = active[k]
        if not weighted:
            seen_pulls[arm], seen_mean[arm], seen_std[arm] = pulls[arm], mean[arm], std[arm]
            continue
        weight, weight_low = weights = drift[WEIGHT, arm], drift[WEIGHT + 1, arm]
        total, total_low = totals = drift[REWARD, arm], drift[REWARD + 1, arm]
        squares = drift[REWARD_SQUARED, arm], drift[REWARD_SQUARED + 1, arm]
        quotient = total / weight
        rest = (total - quotient * weight) - product_error(quotient, weight) + (total_low - quotient * weight_low)
        seen_mean[arm] = quotient + rest / weight
        deviations = _minus_product(weights, squares, totals, totals)
        if deviations <= _ROUNDING * pulls[arm] * weight * squares[0]:
            deviations = 0.0
        of_squares = drift[WEIGHT_SQUARED, arm]
        # deviations / weight^2 is the weighted variance; times n / (n - 1), with the effective number n.
        seen_std[arm] = math.sqrt(deviations / max(weight * weight - of_squares, of_squares))
        effective = int(weight * weight / of_squares + 0.5)
        seen_pulls[arm] = max(rewards_needed, effective)
    return weighted
