"""Optimal shares of the power family, sum_i [r_i share_i - a_i share_i^-power], over the floored simplex  [Sect. 2].

With r_i = w mean_i, cost_i = power a_i, gap_i = max(r) - r_i and the multiplier written as max(r) + level, an arm
above its floor has share_i = (cost_i / (level + gap_i))^(1 / (1 + power)): sums of non-negative numbers only, so
nothing cancels however large the means are. One unknown is left, the level at which the shares add up to 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray


WORK_ROWS = 6
"""Rows of scratch that `allocate` needs, each one number per arm."""

COLD = -1.0
"""The `start` that means: no earlier level is known."""

# Below any level + gap that occurs after scaling; keeps 0 / 0 away from zero-cost arms.
TINY = 1e-290
# Bits of the first guess at x^(-1/3): minus a third of the exponent, plus the constant that balances its error (11%).
_GUESS = np.uint64(0x553F0000 << 32)
_THIRD = np.uint64(0x55555556)
_HALF_WORD = np.uint64(32)
# Newton's method climbs to the level from below and each step roughly squares the error; instances over 24 orders of
# magnitude need about 30 steps. The limit only guards against a loop that rounding keeps alive.
_MAX_SWEEPS = 200


@compiled
def inverse_cube_roots(x: FloatArray, out: FloatArray) -> None:
    """Write x^(-1/3), right to 1 ulp, for positive normal numbers.

    A guess from the bits and two fifth-order corrections: no library call, so the loops vectorise and the bits do
    not depend on the machine's mathematical library.
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
    """Write gap and cost, brought to a common scale where neither they nor their powers overflow or vanish."""
    largest_cost = 0.0
    for i in range(mean.size):
        if power == 0.5:
            spread = std[i]
        elif power == 1.0:
            spread = std[i] * std[i]
        else:
            spread = std[i] ** (2.0 * power)
        # The factor 1/2 here and below cancels; without it the largest and smallest double have no difference.
        cost[i] = 0.5 * power * (1.0 - reward_weight) * importance[i] * spread
        largest_cost = max(largest_cost, cost[i])
    best = mean[0]
    for i in range(mean.size):
        best = max(best, mean[i])
    # Without costs only the order of the means counts: a weight of 1e-320 must not round their differences away.
    slope = 0.5 if largest_cost == 0.0 and reward_weight > 0.0 else 0.5 * reward_weight
    largest = largest_cost
    for i in range(mean.size):
        gap[i] = slope * best - slope * mean[i] if abs(best) > 1e307 else slope * (best - mean[i])
        largest = max(largest, gap[i])
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
def _sweep(
    level: float,
    power: float,
    gap: FloatArray,
    factor: FloatArray,
    floor: FloatArray,
    shifted: FloatArray,
    root: FloatArray,
    slope: FloatArray,
    share: FloatArray,
) -> tuple[float, float, float]:
    """Write the shares at a level; return the mass above floors, the mass on floors, and the slope of the former."""
    for i in range(gap.size):
        x = level + gap[i]
        shifted[i] = x if x > TINY else TINY
    if power == 0.5:
        inverse_cube_roots(shifted, root)
        for i in range(gap.size):
            y = root[i]
            free_share = factor[i] * y * y
            share[i] = free_share
            slope[i] = free_share * y * y * y
    elif power == 1.0:
        for i in range(gap.size):
            share[i] = factor[i] / math.sqrt(shifted[i])
            slope[i] = share[i] / shifted[i]
    else:
        for i in range(gap.size):
            share[i] = factor[i] * shifted[i] ** (-1.0 / (1.0 + power))
            slope[i] = share[i] / shifted[i]
    free = 0.0
    held = 0.0
    steepness = 0.0
    for i in range(gap.size):
        if share[i] > floor[i]:
            free += share[i]
            steepness += slope[i]
        else:
            share[i] = floor[i]
            held += floor[i]
    return free, held, steepness


@compiled
def _lowest_level(power: float, gap: FloatArray, cost: FloatArray, factor: FloatArray) -> float:
    """Return a level at or below the solution: no share exceeds 1, and no gap the largest."""
    lowest = 0.0
    widest = 0.0
    total = 0.0
    for i in range(gap.size):
        lowest = max(lowest, cost[i] - gap[i])
        widest = max(widest, gap[i])
        total += factor[i]
    return max(lowest, float(total ** (1.0 + power)) - widest, TINY)


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
    """Write the optimal shares and return their level, from which a similar problem may start.

    `importance` adds up to 1 (1 / n_arms each in the paper); `start` is the level of a similar problem or `COLD`;
    `work` has `WORK_ROWS` rows.
    """
    gap, cost, factor, shifted, root, slope = work[0], work[1], work[2], work[3], work[4], work[5]
    n_arms = mean.size
    floor_mass = 0.0
    for i in range(n_arms):
        floor_mass += floor[i]
    if floor_mass >= 1.0 - 1e-15:
        for i in range(n_arms):
            share[i] = floor[i] / floor_mass
        return start

    _fill_problem(mean, std, importance, reward_weight, power, gap, cost)
    if power == 0.5:
        for i in range(n_arms):
            shifted[i] = max(cost[i], TINY)
        inverse_cube_roots(shifted, root)
        for i in range(n_arms):
            factor[i] = cost[i] * root[i]
    else:
        for i in range(n_arms):
            factor[i] = cost[i] ** (1.0 / (1.0 + power))

    # Arms without error: the best of them take what is left when all others have enough at level 0.
    n_takers = 0
    for i in range(n_arms):
        if gap[i] == 0.0 and cost[i] == 0.0:
            n_takers += 1
    if n_takers > 0:
        free, held, steepness = _sweep(0.0, power, gap, factor, floor, shifted, root, slope, share)
        if free + held <= 1.0:
            for i in range(n_arms):
                if gap[i] == 0.0 and cost[i] == 0.0:
                    share[i] += (1.0 - free - held) / n_takers
            return 0.0

    # With the arms above their floors fixed, (free mass)^-(1 + power) is a power mean of lines in the level: concave
    # and increasing. A Newton step on it lands at or below the solution from anywhere and then climbs; an arm that
    # reaches its floor on the way only moves the solution up.
    lowest = _lowest_level(power, gap, cost, factor)
    level = max(start, lowest)
    tolerance = 4e-16 * (4.0 + math.sqrt(n_arms))
    free = 1.0
    held = 0.0
    for sweep in range(_MAX_SWEEPS):
        free, held, steepness = _sweep(level, power, gap, factor, floor, shifted, root, slope, share)
        ratio = free / (1.0 - held)
        if abs(ratio - 1.0) <= tolerance:
            break
        if free == 0.0:
            level = lowest
            continue
        growth = ratio * math.sqrt(ratio) if power == 0.5 else ratio ** (1.0 + power)
        step = free / steepness * (growth - 1.0)
        if sweep > 0 and step <= 0.0:
            break
        previous = level
        level = max(level + step, lowest)
        if level == previous:
            break
    correction = (1.0 - held) / free
    for i in range(n_arms):
        if share[i] > floor[i]:
            share[i] = max(share[i] * correction, floor[i])
    return level
