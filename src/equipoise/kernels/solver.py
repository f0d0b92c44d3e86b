"""Solve for the optimal shares of the power family, sum_i [r_i share_i - a_i share_i^-power], with floors  [Sect. 2].

With r_i = w mean_i, cost_i = power a_i, gap_i = max(r) - r_i and the multiplier written as max(r) + level, an arm
above its floor has share_i = (cost_i / (level + gap_i))^(1 / (1 + power)): sums of non-negative numbers only, so
nothing cancels however large the means are. One unknown is left, the level at which the shares add up to 1.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled

WORK_ROWS = 6
"""Rows of scratch that `allocate` needs, each one number per arm."""

COLD = -1.0
"""Value of `start` when no earlier level is known."""

# Below any level + gap that occurs after scaling; avoids 0 / 0 for zero-cost arms.
TINY = 1e-290
# Bits of the first guess at x^(-1/3): minus a third of the exponent, plus the constant that balances its error (11%).
_GUESS = np.uint64(0x553F0000 << 32)
_THIRD = np.uint64(0x55555556)
_HALF_WORD = np.uint64(32)
# Newton's method climbs to the level from below and each step roughly squares the error; instances over 24 orders of
# magnitude need about 30 steps. The limit only guards against a loop that rounding keeps alive.
_MAX_SWEEPS = 200
# The cube of this is below the rounding of a double.
_SMALL_STEP = 4e-6


@compiled
def are_arms(mean: FloatArray, std: FloatArray) -> bool:
    """Return whether means are finite and standard deviations finite and not negative."""
    for i in range(mean.size):
        if not (abs(mean[i]) < np.inf and 0.0 <= std[i] < np.inf):
            return False
    return True


@compiled
def inverse_cube_roots(x: FloatArray, out: FloatArray) -> None:
    """Write x^(-1/3), accurate to 1 ulp, for positive normal numbers.

    A guess from the bits and two fifth-order corrections: no library call, so the loops vectorise and the bits do not
    depend on the machine's maths library.
    """
    x_bits = x.view(np.uint64)
    out_bits = out.view(np.uint64)
    for i in range(x.size):
        out_bits[i] = _GUESS - ((((x_bits[i] >> _HALF_WORD) * _THIRD) >> _HALF_WORD) << _HALF_WORD)
    for i in range(x.size):
        y = out[i]
        miss = 1.0 - x[i] * y * y * y
        y += y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81 + miss * (35 / 243))))
        miss = 1.0 - x[i] * y * y * y
        out[i] = y + y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81)))


@compiled
def _fill_problem(
    mean: FloatArray,
    std: FloatArray,
    importance: FloatArray,
    reward_weight: float,
    power: float,
    gap: FloatArray,
    cost: FloatArray,
) -> None:
    """Write gap and cost, scaled together so that neither they nor their powers overflow or underflow."""
    best, worst, widest_std = mean[0], mean[0], 0.0
    for i in range(mean.size):
        best = max(best, mean[i])
        worst = min(worst, mean[i])
        widest_std = max(widest_std, std[i])
    # The factor 1/2 here and below cancels; without it the difference of the largest and smallest double would
    # overflow.
    coefficient = 0.5 * power * (1.0 - reward_weight)
    unit_of_cost = 1.0
    if power == 0.5:
        for i in range(mean.size):
            cost[i] = coefficient * importance[i] * std[i]
    elif widest_std > 0.0:
        # Powers of relative spreads neither overflow nor underflow; the gaps are divided by the factor left out.
        for i in range(mean.size):
            cost[i] = coefficient * importance[i] * (std[i] / widest_std) ** (2.0 * power)
        unit_of_cost = min(max(widest_std ** (2.0 * power), 1e-300), 1e300)
    else:
        for i in range(mean.size):
            cost[i] = 0.0
    largest_cost = 0.0
    for i in range(mean.size):
        largest_cost = max(largest_cost, cost[i])
    # Without costs only the order of the means counts: a weight of 1e-320 must not round their differences away.
    slope = 0.5 if largest_cost == 0.0 and reward_weight > 0.0 else 0.5 * reward_weight / unit_of_cost
    if best - worst < np.inf:
        for i in range(mean.size):
            gap[i] = slope * (best - mean[i])
    else:
        for i in range(mean.size):
            gap[i] = slope * best - slope * mean[i]
    largest = max(largest_cost, slope * best - slope * worst)
    if largest > 0.0:
        scale = 1.0
        while largest * scale < 1e-100:
            scale *= 1e100
        while largest * scale > 1e100:
            scale *= 1e-100
        if scale != 1.0:
            for i in range(mean.size):
                gap[i] *= scale
                cost[i] *= scale


@compiled
def sum_of(values: FloatArray) -> float:
    """Return the sum, using four accumulators: faster than one and, with many arms, more accurate."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = values.size - values.size % 4
    for i in range(0, whole, 4):
        first += values[i]
        second += values[i + 1]
        third += values[i + 2]
        fourth += values[i + 3]
    for i in range(whole, values.size):
        first += values[i]
    return (first + second) + (third + fourth)


@compiled
def _sweep(
    level: float,
    power: float,
    floored: bool,
    gap: FloatArray,
    factor: FloatArray,
    floor: FloatArray,
    inverse: FloatArray,
    root: FloatArray,
    slope: FloatArray,
    share: FloatArray,
) -> tuple[float, float, float]:
    """Write the shares at a level; return the mass above floors, the mass on floors, and the slope of the former.

    `inverse` becomes 1 / (level + gap) and `slope` share / (level + gap).
    """
    for i in range(gap.size):
        x = level + gap[i]
        inverse[i] = x if x > TINY else TINY
    if power == 0.5:
        inverse_cube_roots(inverse, root)
        for i in range(gap.size):
            y = root[i]
            free_share = factor[i] * y * y
            share[i] = free_share
            inverse[i] = y * y * y
            slope[i] = free_share * (y * y * y)
    else:
        for i in range(gap.size):
            if power == 1.0:
                share[i] = factor[i] / math.sqrt(inverse[i])
            else:
                share[i] = factor[i] * inverse[i] ** (-1.0 / (1.0 + power))
            inverse[i] = 1.0 / inverse[i]
            slope[i] = share[i] * inverse[i]
    if not floored:
        return sum_of(share), 0.0, sum_of(slope)
    free, held, steepness = 0.0, 0.0, 0.0
    for i in range(gap.size):
        if share[i] > floor[i]:
            free += share[i]
            steepness += slope[i]
        else:
            share[i] = floor[i]
            held += floor[i]
    return free, held, steepness


@compiled
def _power(x: float, power: float) -> float:
    """Return x^(1 + power); the paper's power uses a square root, which is faster and the same on every machine."""
    return x * math.sqrt(x) if power == 0.5 else float(x ** (1.0 + power))


@compiled
def _lowest_level(power: float, gap: FloatArray, cost: FloatArray, factor: FloatArray) -> float:
    """Return a level at or below the solution, since no share exceeds 1 and no gap the largest."""
    lowest = TINY
    widest = 0.0
    for i in range(gap.size):
        lowest = max(lowest, cost[i] - gap[i])
        widest = max(widest, gap[i])
    return max(lowest, _power(sum_of(factor), power) - widest)


@compiled
def allocate(
    mean: FloatArray,
    std: FloatArray,
    importance: FloatArray,
    floor: FloatArray,
    reward_weight: float,
    power: float,
    start: float,
    work: FloatArray,
    share: FloatArray,
) -> float:
    """Write the optimal shares and return their level, from which a similar problem can start.

    `importance` adds up to 1 (1 / n_arms each in the paper); `start` is the level of a similar problem or `COLD`;
    `work` has `WORK_ROWS` rows.
    """
    gap, cost, factor, inverse, root, slope = work[0], work[1], work[2], work[3], work[4], work[5]
    n_arms = mean.size
    floor_mass = sum_of(floor)
    if floor_mass >= 1.0 - 1e-15:
        for i in range(n_arms):
            share[i] = floor[i] / floor_mass
        return start
    floored = floor_mass > 0.0

    _fill_problem(mean, std, importance, reward_weight, power, gap, cost)
    if power == 0.5:
        for i in range(n_arms):
            inverse[i] = cost[i] if cost[i] > TINY else TINY
        inverse_cube_roots(inverse, root)
        for i in range(n_arms):
            factor[i] = cost[i] * root[i]
    else:
        for i in range(n_arms):
            factor[i] = cost[i] ** (1.0 / (1.0 + power))

    n_takers = 0
    for i in range(n_arms):
        if gap[i] + cost[i] == 0.0:
            n_takers += 1

    # With the arms above their floors fixed, (free mass)^-(1 + power) is a power mean of lines in the level: concave
    # and increasing. A Newton step on it lands at or below the solution from anywhere and then climbs; an arm that
    # reaches its floor on the way only moves the solution up. If arms without error are the best, the first level to
    # try is 0: if the other arms have enough there, these take the rest.
    level = 0.0 if n_takers > 0 else start
    if n_takers == 0 and not level > 0.0:
        level = _lowest_level(power, gap, cost, factor)
    tolerance = 4e-16 * (4.0 + math.sqrt(n_arms))
    exponent = 1.0 / (1.0 + power)
    free, held = 1.0, 0.0
    for sweep in range(_MAX_SWEEPS):
        free, held, steepness = _sweep(level, power, floored, gap, factor, floor, inverse, root, slope, share)
        if level == 0.0:
            if free + held <= 1.0:
                for i in range(n_arms):
                    if gap[i] + cost[i] == 0.0:
                        share[i] += (1.0 - free - held) / n_takers
                return 0.0
            level = _lowest_level(power, gap, cost, factor)
            continue
        ratio = free / (1.0 - held)
        if abs(ratio - 1.0) <= tolerance:
            break
        step = free / steepness * (_power(ratio, power) - 1.0)
        if sweep > 1 and step <= 0.0:  # climbing ended; the first two sweeps may start above the solution
            break
        previous = level
        if not floored and abs(step) <= _SMALL_STEP * level:
            level = _finish(free, exponent, steepness, level, inverse, root, slope, share)
            free = sum_of(share)
            break
        level += step
        if not level > 0.0:  # negative after a start far too high; NaN (0 / 0) if all arms were on their floors
            level = _lowest_level(power, gap, cost, factor)
        if level == previous:
            break
    correction = (1.0 - held) / free
    if not floored:
        for i in range(n_arms):
            share[i] *= correction
        return level
    for i in range(n_arms):
        if share[i] > floor[i]:
            share[i] = max(share[i] * correction, floor[i])
    return level


@compiled
def _finish(
    total: float,
    exponent: float,
    steepness: float,
    level: float,
    inverse: FloatArray,
    curve: FloatArray,
    slope: FloatArray,
    share: FloatArray,
) -> float:
    """Move the shares along a small last step by their series instead of another sweep; return the level reached.

    With e the relative step of an arm, its share becomes share (1 + e)^-exponent; dropping e^3 costs less than an ulp.
    """
    for i in range(share.size):
        curve[i] = slope[i] * inverse[i]
    first = (total - 1.0) / (exponent * steepness)
    step = first * (1.0 + 0.5 * (exponent + 1.0) * first * sum_of(curve) / steepness)
    for i in range(share.size):
        relative = step * inverse[i]
        share[i] -= share[i] * (exponent * relative) * (1.0 - 0.5 * (exponent + 1.0) * relative)
    return level + step
