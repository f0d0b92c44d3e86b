"""Compute evidence about the mean of bounded rewards from four moments: the wealth of bets, whatever the order  [ours].

Bet on rewards u >= 0 that their mean is above m: a stake b in (0, 1) multiplies the wealth by 1 + b (u / m - 1) at
every reward. If the mean is m the wealth is a martingale, and a mixture over stakes too. It depends on every reward,
but has a lower bound that depends on count and the first four moments alone: `docs/evidence.md` has the proof. The
bound is attained by rewards of at most three values, 0 among them, so it is exact for yes/no rewards, and it is the
best that four moments allow. As a lower bound of a mixture of martingales it keeps the promise of Ville's inequality,
at all times.

What depends on the moments only goes through sums, so rewards may come late, in any order, and be corrected.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled

_N_STAKES = 34
_RATIO = 1.5
_STAKE: FloatArray = 0.97 * np.power(_RATIO, -np.arange(_N_STAKES, dtype=np.float64))
_LOG_STAKE: FloatArray = np.log(_STAKE)
_LOG_LOST: FloatArray = np.log1p(-_STAKE)
"""The logarithm of what is left after a reward of 0."""

# Stakes are weighted by a Cauchy density of their logarithm, around the best stake for this much evidence after 500
# rewards; wider above, where few rewards or rare ones need larger stakes.
_TUNED_LOG_EVIDENCE = 5.5
_BELOW, _ABOVE = 1.0, 3.0
_LARGEST_CENTRE = 0.5

_SMALL = 0.02
"""A bet that changes the wealth by less than this share is a small one."""

_SMALLEST_SPREAD = 1e-13
_SMALLEST_POWER = 1e-290
_MOST_STEPS = 200


@compiled
def points(m1: float, m2: float, m3: float, m4: float) -> tuple[float, float, float, float]:
    """Return (y1, p1, y2, p2): with the rest of the mass at 0, the distribution with these four moments.

    It is the lower principal representation of the moments (Karlin and Studden 1966, Tchebycheff Systems, ch. 2), by
    the Gauss quadrature of u dF(u). Moments that no distribution has, by rounding, lead to one point instead of two,
    and rewards whose squares are too small or too large for a double to none: all are taken for 0.
    """
    if not (m1 > 0.0 and _SMALLEST_POWER < m2 < np.inf):
        return 1.0, 0.0, 1.0, 0.0
    a0 = m2 / m1
    b1 = m3 / m1 - a0 * a0
    if not b1 > _SMALLEST_SPREAD * a0 * a0 or not _SMALLEST_POWER < m4 < np.inf:
        return a0, m1 / a0, a0, 0.0
    a1 = (m4 / m1 - 2.0 * a0 * m3 / m1 + a0 * a0 * a0) / b1
    root = math.sqrt((a0 - a1) * (a0 - a1) + 4.0 * b1)
    y2 = 0.5 * (a0 + a1 + root)
    # The product of the points, a0 a1 - b1, would lose digits for a small first point; the difference does not.
    y1 = (a0 * a1 - b1) / y2
    if not y1 > 1e-12 * y2:
        return a0, m1 / a0, a0, 0.0
    w1 = m1 * (y2 - a0) / (y2 - y1)
    return y1, w1 / y1, y2, (m1 - w1) / y2


@compiled
def log_wealth(n: float, y1: float, p1: float, y2: float, p2: float, m: float, tuned_at: float, top: float) -> float:
    """Return the log wealth of bets that the mean is above m, for n rewards of which `points` describes the moments.

    `top` is the largest reward there can be, infinite if there is none. `tuned_at` is the number of rewards for which
    the stakes are best.
    """
    if n <= 0.0 or not m > 0.0:
        return 0.0 if n <= 0.0 or p1 + p2 <= 0.0 else np.inf
    r1, r2 = y1 / m - 1.0, y2 / m - 1.0
    p0 = max(0.0, 1.0 - p1 - p2)
    odds = m / (top - m) if m < top else np.inf
    if not top < np.inf:
        odds = 1.0  # without a top, as if the spread were about the mean
    centre = math.log(min(_LARGEST_CENTRE, math.sqrt(2.0 * _TUNED_LOG_EVIDENCE * odds / tuned_at)))
    # For small stakes the logarithm of what a bet returns is a short series, which takes a third of the time.
    q1, q2 = p1 * r1, p2 * r2
    c1 = n * (q1 + q2 - p0)
    q1, q2 = q1 * r1, q2 * r2
    c2 = n * (q1 + q2 + p0) * (-1.0 / 2.0)
    q1, q2 = q1 * r1, q2 * r2
    c3 = n * (q1 + q2 - p0) * (1.0 / 3.0)
    q1, q2 = q1 * r1, q2 * r2
    c4 = n * (q1 + q2 + p0) * (-1.0 / 4.0)
    q1, q2 = q1 * r1, q2 * r2
    c5 = n * (q1 + q2 - p0) * (1.0 / 5.0)
    q1, q2 = q1 * r1, q2 * r2
    c6 = n * (q1 + q2 + p0) * (-1.0 / 6.0)
    small = _SMALL / max(1.0, abs(r1), abs(r2))
    unit, best, total, total_weight = 0.0, -np.inf, 0.0, 0.0
    is_over = False
    for k in range(_N_STAKES - 1, -1, -1):
        z = _LOG_STAKE[k] - centre
        z = z * (1.0 / _ABOVE) if z > 0.0 else z * (1.0 / _BELOW)
        weight = 1.0 / (1.0 + z * z)
        total_weight += weight
        if is_over:
            continue
        stake = _STAKE[k]
        if stake < small:
            grown = stake * (c1 + stake * (c2 + stake * (c3 + stake * (c4 + stake * (c5 + stake * c6)))))
        else:
            grown = p0 * _LOG_LOST[k]
            if p1 > 0.0:
                grown += p1 * math.log(1.0 + stake * r1)
            if p2 > 0.0:
                grown += p2 * math.log(1.0 + stake * r2)
            grown *= n
        if best == -np.inf or grown > unit + 600.0:
            total *= math.exp(unit - grown)
            unit = grown
        best = max(best, grown)
        if grown < best - 45.0:
            is_over = True  # the log wealth is a concave function of the stake
        else:
            total += weight * math.exp(grown - unit)
    return unit + math.log(total / total_weight)


@compiled
def lowest_mean(
    n: float, y1: float, p1: float, y2: float, p2: float, log_threshold: float, tuned_at: float, top: float
) -> float:
    """Return the largest m below the mean at which the log wealth reaches the threshold; 0 if there is none."""
    mean = p1 * y1 + p2 * y2
    if n <= 0.0 or not mean > 0.0:
        return 0.0
    # The wealth is convex: the root of what it has grown since the mean is nearly a straight line.
    least = log_wealth(n, y1, p1, y2, p2, mean, tuned_at, top)
    goal = math.sqrt(max(log_threshold - least, 0.0))
    if not goal > 0.0:  # no confidence asked for
        return mean
    # Down by steps that grow, from where a normal approximation puts it.
    spread = p1 * y1 * y1 + p2 * y2 * y2 - mean * mean
    step = max(1.5 * math.sqrt(max(spread, 0.0) * 2.0 * max(log_threshold, 0.5) / n), 1e-12 * mean)
    high, at_high, low, at_low = mean, -goal, mean, -goal
    for _ in range(_MOST_STEPS):
        # Towards 0 the wealth may grow beyond any bound, or not reach the threshold at all.
        low = high - step if step < high else 0.5 * high
        if not low > 1e-30 * mean:
            return 0.0
        at_low = math.sqrt(max(log_wealth(n, y1, p1, y2, p2, low, tuned_at, top) - least, 0.0)) - goal
        if at_low >= 0.0:
            break
        high, at_high = low, at_low
        step *= 2.0
    if not at_low >= 0.0:
        return 0.0
    side = 0
    for _ in range(_MOST_STEPS):
        if high - low <= 1e-14 * high or at_low <= 1e-7:
            break
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
        there = math.sqrt(max(log_wealth(n, y1, p1, y2, p2, middle, tuned_at, top) - least, 0.0)) - goal
        if there >= 0.0:
            low, at_low = middle, there
            if side == 1:
                at_high *= 0.5
            side = 1
        else:
            high, at_high = middle, there
            if side == -1:
                at_low *= 0.5
            side = -1
    return low
