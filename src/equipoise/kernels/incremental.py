"""The paper's optimal shares kept up to date while estimates change one arm at a time, as pulls change them.

About one sweep over the arms per change, without a cube root, a division or a branch per arm. Covers the paper's
objective without floors and with spread in every arm; `start` and `change` say when they cannot help, and
`kernels.shares.allocate` does the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.shares import COLD, allocate, inverse_cube_roots, sum_of

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray

GAP, FACTOR, ROOT, SLOPE, CURVE, MISS = 0, 1, 2, 3, 4, 5
ROWS = 6
"""Rows of an incremental state: numbers per arm as in `kernels.shares`, and what a root missed."""

LEVEL, STEEPNESS, REFERENCE, COEFFICIENT, WEIGHT = 0, 1, 2, 3, 4
SCALARS = 5
"""Entries of its scalars: level, slope of the shares' sum, mean whose gap is 0, cost per std, reward weight."""

# With every |miss| below 1e-3 the fourth-order correction of a root is right to rounding.
_LARGEST_MISS_SQUARED = 1e-6
# The cube of this relative step, which the series for the last step drops, is below the rounding of a double.
_SMALL_STEP = 4e-6
_MAX_SWEEPS = 20


@compiled
def start(
    mean: FloatArray,
    std: FloatArray,
    reward_weight: float,
    importance: FloatArray,
    floor: FloatArray,
    work: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
    share: FloatArray,
) -> bool:
    """Solve from scratch and write the state; return False if later changes must be solved from scratch too."""
    n_arms = mean.size
    allocate(mean, std, importance, floor, reward_weight, 0.5, COLD, work, share)
    best, narrowest = mean[0], std[0]
    for i in range(n_arms):
        best = max(best, mean[i])
        narrowest = min(narrowest, std[i])
    coefficient = 0.5 * (1.0 - reward_weight) / n_arms
    if n_arms < 2 or narrowest == 0.0 or coefficient == 0.0 or sum_of(floor) > 0.0:
        return False
    scalars[WEIGHT], scalars[COEFFICIENT], scalars[REFERENCE] = reward_weight, coefficient, best
    gap, factor, root, slope, curve = state[GAP], state[FACTOR], state[ROOT], state[SLOPE], state[CURVE]
    for i in range(n_arms):
        gap[i] = reward_weight * (best - mean[i])
        curve[i] = coefficient * std[i]
    inverse_cube_roots(curve, root)
    widest = 0
    for i in range(n_arms):
        factor[i] = curve[i] * root[i]
        if share[i] > share[widest]:
            widest = i
    # The level at which the widest arm has its share: share = (cost / (level + gap))^(2/3).
    level = curve[widest] / (share[widest] * np.sqrt(share[widest])) - gap[widest]
    if not level > 0.0:
        return False
    scalars[LEVEL] = level
    for i in range(n_arms):
        curve[i] = level + gap[i]
    inverse_cube_roots(curve, root)
    for i in range(n_arms):
        slope[i] = share[i] * (root[i] * root[i] * root[i])
    scalars[STEEPNESS] = sum_of(slope)
    return True


@compiled
def _sweep(level: float, state: FloatArray, share: FloatArray) -> None:
    """Refine every root for a new level and write shares, slopes, curvatures and squared misses."""
    gap, factor, root = state[GAP], state[FACTOR], state[ROOT]
    slope, curve, miss = state[SLOPE], state[CURVE], state[MISS]
    for i in range(gap.size):
        y = root[i]
        h = 1.0 - (level + gap[i]) * (y * y * y)
        y += y * h * (1 / 3 + h * (2 / 9 + h * (14 / 81 + h * (35 / 243))))
        cube = y * y * y
        free_share = factor[i] * (y * y)
        root[i] = y
        share[i] = free_share
        slope[i] = free_share * cube
        curve[i] = free_share * cube * cube
        miss[i] = h * h


@compiled
def change(
    arm: int, mean: FloatArray, std: FloatArray, state: FloatArray, scalars: FloatArray, share: FloatArray
) -> bool:
    """Bring the shares up to date after one arm's mean and std have changed; return False if that was too much."""
    gap, factor, root = state[GAP], state[FACTOR], state[ROOT]
    slope, curve, one = state[SLOPE], state[CURVE], state[MISS]
    level, weight = scalars[LEVEL], scalars[WEIGHT]
    if std[arm] == 0.0:
        return False
    # Gaps are measured from one mean for as long as that costs no digits: while no gap is far below 0.
    new_gap = weight * (scalars[REFERENCE] - mean[arm])
    if new_gap < -0.5 * level or (gap[arm] <= 0.0 and new_gap > 0.5 * level):
        return False
    one[0] = scalars[COEFFICIENT] * std[arm]
    one[1] = level + new_gap
    inverse_cube_roots(one[:2], curve[:2])
    new_factor, y = one[0] * curve[0], curve[1]
    moved = new_factor * y * y - share[arm]
    steepness = scalars[STEEPNESS] - slope[arm] + new_factor * y * y * y * y * y
    gap[arm], factor[arm], root[arm] = new_gap, new_factor, y
    level += 1.5 * moved / steepness
    for _ in range(_MAX_SWEEPS):
        if level <= 0.5 * scalars[LEVEL] or level >= 2.0 * scalars[LEVEL]:
            return False
        _sweep(level, state, share)
        if not sum_of(state[MISS]) <= _LARGEST_MISS_SQUARED:
            return False
        total, steepness, bend = sum_of(share), sum_of(slope), sum_of(curve)
        first = 1.5 * (total - 1.0) / steepness
        step = first * (1.0 + (5 / 6) * first * bend / steepness)
        if abs(step) <= _SMALL_STEP * level:
            for i in range(share.size):
                y = root[i]
                relative = step * (y * y * y)
                share[i] -= share[i] * (2 / 3 * relative) * (1.0 - 5 / 6 * relative)
                root[i] = y - y * (1 / 3 * relative)
            scalars[LEVEL] = level + step
            scalars[STEEPNESS] = steepness - (5 / 3) * step * bend
            return True
        level += step
    return False
