"""The paper's optimal shares kept up to date while estimates change one arm at a time, as pulls change them.

Usually one sweep over the arms per change, without a cube root, a division or a branch per arm. Covers the paper's
objective without floors and with spread in every arm; `start` and `change` say when they cannot help, and
`kernels.shares.allocate` does the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import approximate
from equipoise.kernels.shares import COLD, allocate, inverse_cube_roots, sum_of

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray

GAP, FACTOR, ROOT, COST_ROOT = 0, 1, 2, 3
ROWS = 4
"""Rows of an incremental state: share = factor * root^2 with root = (level + gap)^(-1/3), factor = cost^(2/3)."""

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


@approximate
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
    scalars[REFERENCE], scalars[LEVEL] = mean[0], 0.0
    gap, factor, root, cost_root = state[GAP], state[FACTOR], state[ROOT], state[COST_ROOT]
    _refer_to_the_best(mean, gap, scalars)
    cost = work[0]
    widest = 0
    for i in range(n_arms):
        cost[i] = coefficient * std[i]
        if share[i] > share[widest]:
            widest = i
    inverse_cube_roots(cost, cost_root)
    for i in range(n_arms):
        factor[i] = cost[i] * cost_root[i]
    # The level at which the widest arm has its share: share = (cost / (level + gap))^(2/3).
    level = cost[widest] / (share[widest] * math.sqrt(share[widest])) - gap[widest]
    if not level > 0.0:
        return False
    scalars[LEVEL] = level
    _fill_roots(level, gap, root, work[0])
    _, scalars[STEEPNESS], _, _ = _sweep(level, gap, factor, root, share)
    return True


@approximate
def _refer_to_the_best(mean: FloatArray, gap: FloatArray, scalars: FloatArray) -> None:
    """Measure gaps from the best mean again; the multiplier stays, so the level moves."""
    weight = scalars[WEIGHT]
    best = mean[0]
    for i in range(mean.size):
        best = max(best, mean[i])
    for i in range(mean.size):
        gap[i] = weight * (best - mean[i])
    scalars[LEVEL] -= weight * (best - scalars[REFERENCE])
    scalars[REFERENCE] = best


@approximate
def _fill_roots(level: float, gap: FloatArray, root: FloatArray, scratch: FloatArray) -> None:
    """Write roots for any positive level."""
    for i in range(gap.size):
        scratch[i] = level + gap[i]
    inverse_cube_roots(scratch, root)


@approximate
def _sweep(
    level: float, gap: FloatArray, factor: FloatArray, root: FloatArray, share: FloatArray
) -> tuple[float, float, float, float]:
    """Refine every root for a level close to the last and write the shares.

    Return the sums of shares, of share / (level + gap), of share / (level + gap)^2, and of squared misses.
    """
    total, steepness, bend, missed = 0.0, 0.0, 0.0, 0.0
    for i in range(gap.size):
        y = root[i]
        h = 1.0 - (level + gap[i]) * (y * y * y)
        y += y * h * (1 / 3 + h * (2 / 9 + h * (14 / 81 + h * (35 / 243))))
        square = y * y
        cube = square * y
        free_share = factor[i] * square
        root[i] = y
        share[i] = free_share
        total += free_share
        steepness += free_share * cube
        bend += free_share * cube * cube
        missed += h * h
    return total, steepness, bend, missed


@approximate
def _root_near(x: float, guess: float) -> float:
    """Return x^(-1/3) from a guess, or NaN if the guess is too far off."""
    y = guess
    miss = 1.0 - x * (y * y * y)
    if not abs(miss) < 0.1:
        return np.nan
    y += y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81 + miss * (35 / 243))))
    miss = 1.0 - x * (y * y * y)
    return y + y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81)))


@approximate
def change(
    arm: int,
    mean: FloatArray,
    std: FloatArray,
    gap: FloatArray,
    factor: FloatArray,
    root: FloatArray,
    cost_root: FloatArray,
    scalars: FloatArray,
    share: FloatArray,
    scratch: FloatArray,
) -> bool:
    """Bring the shares up to date after one arm's mean and std have changed; return False if that was too much.

    The rows of the state come one by one: taking them out of it here would cost more than the rest for a few arms.
    """
    if std[arm] == 0.0:
        return False
    # Gaps are measured from one mean for as long as that costs no digits: while the smallest is close to 0.
    new_gap = scalars[WEIGHT] * (scalars[REFERENCE] - mean[arm])
    if new_gap < -0.5 * scalars[LEVEL] or (gap[arm] <= 0.0 and new_gap > 0.5 * scalars[LEVEL]):
        _refer_to_the_best(mean, gap, scalars)
        new_gap = gap[arm]
    level = scalars[LEVEL]
    cost = scalars[COEFFICIENT] * std[arm]
    close = level > 0.0 and level + new_gap > 0.0
    if not close:  # the multiplier fell below the best mean: start where the changed arm alone has a share of 1
        level = max(level, max(cost - new_gap, 1e-3 * cost))
    new_cost_root = _root_near(cost, cost_root[arm])
    if math.isnan(new_cost_root):
        new_cost_root = cost ** (-1 / 3)
    old = root[arm]
    y = _root_near(level + new_gap, old)
    if math.isnan(y):
        y = (level + new_gap) ** (-1 / 3)
    new_factor = cost * new_cost_root
    if close:
        new_share = new_factor * y * y
        steepness = scalars[STEEPNESS] - share[arm] * (old * old * old) + new_share * (y * y * y)
        predicted = level + 1.5 * (new_share - share[arm]) / steepness
        close = abs(predicted - level) < 0.3 * level
        if close:
            level = predicted
    gap[arm], factor[arm], root[arm], cost_root[arm] = new_gap, new_factor, y, new_cost_root
    for _ in range(_MAX_SWEEPS):
        if not close:
            _fill_roots(level, gap, root, scratch)
        total, steepness, bend, missed = _sweep(level, gap, factor, root, share)
        if not missed <= _LARGEST_MISS_SQUARED:
            _fill_roots(level, gap, root, scratch)
            total, steepness, bend, missed = _sweep(level, gap, factor, root, share)
        inverse = 1.0 / steepness
        first = 1.5 * (total - 1.0) * inverse
        step = first * (1.0 + (5 / 6) * first * bend * inverse)
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
