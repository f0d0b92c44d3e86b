"""The paper's optimal shares kept up to date while estimates change one arm at a time, as pulls change them.

Usually one sweep over the arms per change, without a cube root, a division or a branch per arm. Covers the paper's
objective without floors and with spread in every arm; `start` and `change` say when they cannot help, and
`kernels.shares.allocate` does the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
# Below this relative step the series is also the better guess; Newton's step is right from anywhere.
_SERIES_STEP = 0.05
_MAX_SWEEPS = 60


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
    narrowest = std[0]
    for i in range(n_arms):
        narrowest = min(narrowest, std[i])
    coefficient = 0.5 * (1.0 - reward_weight) / n_arms
    if n_arms < 2 or narrowest == 0.0 or coefficient == 0.0 or sum_of(floor) > 0.0:
        return False
    scalars[WEIGHT], scalars[COEFFICIENT] = reward_weight, coefficient
    scalars[REFERENCE] = mean[0]
    scalars[LEVEL] = 0.0
    _refer_to_the_best(mean, state, scalars)
    gap, factor, root, slope, cost = state[GAP], state[FACTOR], state[ROOT], state[SLOPE], state[CURVE]
    widest = 0
    for i in range(n_arms):
        cost[i] = coefficient * std[i]
        if share[i] > share[widest]:
            widest = i
    inverse_cube_roots(cost, root)
    for i in range(n_arms):
        factor[i] = cost[i] * root[i]
    # The level at which the widest arm has its share: share = (cost / (level + gap))^(2/3).
    level = cost[widest] / (share[widest] * math.sqrt(share[widest])) - gap[widest]
    if not level > 0.0:
        return False
    scalars[LEVEL] = level
    _sweep_from_scratch(level, state, share)
    scalars[STEEPNESS] = sum_of(slope)
    return True


@compiled
def _refer_to_the_best(mean: FloatArray, state: FloatArray, scalars: FloatArray) -> None:
    """Measure gaps from the best mean again; the multiplier stays, so the level moves."""
    gap, weight = state[GAP], scalars[WEIGHT]
    best = mean[0]
    for i in range(mean.size):
        best = max(best, mean[i])
    for i in range(mean.size):
        gap[i] = weight * (best - mean[i])
    scalars[LEVEL] -= weight * (best - scalars[REFERENCE])
    scalars[REFERENCE] = best


@compiled
def _sweep_from_scratch(level: float, state: FloatArray, share: FloatArray) -> None:
    """Write roots for any positive level, and shares, slopes and curvatures."""
    gap, factor, root = state[GAP], state[FACTOR], state[ROOT]
    slope, curve = state[SLOPE], state[CURVE]
    for i in range(gap.size):
        curve[i] = level + gap[i]
    inverse_cube_roots(curve, root)
    for i in range(gap.size):
        y = root[i]
        cube = y * y * y
        free_share = factor[i] * (y * y)
        share[i] = free_share
        slope[i] = free_share * cube
        curve[i] = free_share * cube * cube


@compiled
def _sweep(level: float, state: FloatArray, share: FloatArray) -> None:
    """Refine every root for a level close to the last; write shares, slopes, curvatures and squared misses."""
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
    slope, curve, pair = state[SLOPE], state[CURVE], state[MISS][:2]
    if std[arm] == 0.0:
        return False
    # Gaps are measured from one mean for as long as that costs no digits: while the smallest is close to 0.
    new_gap = scalars[WEIGHT] * (scalars[REFERENCE] - mean[arm])
    if new_gap < -0.5 * scalars[LEVEL] or (gap[arm] <= 0.0 and new_gap > 0.5 * scalars[LEVEL]):
        _refer_to_the_best(mean, state, scalars)
        new_gap = gap[arm]
    level = scalars[LEVEL]
    pair[0] = scalars[COEFFICIENT] * std[arm]
    pair[1] = level + new_gap
    close = pair[1] > 0.0 and level > 0.0
    if not close:  # the multiplier fell below the best mean: start where the changed arm alone has a share of 1
        level = max(level, pair[0] - new_gap, 1e-3 * pair[0])
        pair[1] = level + new_gap
    inverse_cube_roots(pair, curve[:2])
    new_factor, y = pair[0] * curve[0], curve[1]
    if close:
        moved = new_factor * y * y - share[arm]
        steepness = scalars[STEEPNESS] - slope[arm] + new_factor * y * y * y * y * y
        predicted = level + 1.5 * moved / steepness
        close = abs(predicted - level) < 0.3 * level
        if close:
            level = predicted
    gap[arm], factor[arm], root[arm] = new_gap, new_factor, y
    for _ in range(_MAX_SWEEPS):
        if close:
            _sweep(level, state, share)
            close = sum_of(state[MISS]) <= _LARGEST_MISS_SQUARED
        if not close:
            _sweep_from_scratch(level, state, share)
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
        close = abs(step) <= _SERIES_STEP * level
        if not close:
            step = total / steepness * (total * math.sqrt(total) - 1.0)
        # Newton's step never overshoots upwards, but from far above it may lead below every level.
        level = max(level + step, 0.1 * level)
    return False
