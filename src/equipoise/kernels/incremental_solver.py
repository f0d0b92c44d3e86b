"""Keep the paper's optimal shares up to date as estimates change one arm at a time, as pulls change them.

A change usually takes one sweep over the arms, without a cube root, division or branch per arm. Covers the paper's
objective without floors and with spread in every arm; otherwise `start` and `change` return False and the caller
falls back to `kernels.solver.allocate`.
"""

from __future__ import annotations

import math

from equipoise._types import FloatArray
from equipoise.kernels.compiler import approximate, approximate_inlined
from equipoise.kernels.solver import COLD, allocate, inverse_cube_roots, sum_of

GAP, FACTOR, ROOT, COST_ROOT, SHARE, COUNT, SCORE, SCRATCH = 0, 1, 2, 3, 4, 5, 6, 7
ROWS = 8
"""Rows of an incremental state: share = factor * root^2 with root = (level + gap)^(-1/3), factor = cost^(2/3).

The caller keeps the pulls in `COUNT`; tracking compares `SCORE`. All share one array, because every array argument
costs time, which matters with few arms.
"""

LEVEL, INVERSE_SLOPE, REFERENCE, COEFFICIENT, WEIGHT, BEST = 0, 1, 2, 3, 4, 5
SCALARS = 6
"""Entries of its scalars: level, 1 / slope of the shares' sum, mean whose gap is 0, cost per std, weight, best arm."""

# With every |miss| below 1e-3 the fourth-order correction of a root is right to rounding.
_LARGEST_MISS_SQUARED = 1e-6
# The cube of this relative step, which the series for the last step drops, is below the rounding of a double.
_SMALL_STEP = 4e-6
# Below this relative step the series is also the better guess; Newton's step is right from anywhere.
_SERIES_STEP = 0.05
MAX_SWEEPS = 20


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
    per_step: float,
) -> bool:
    """Solve from scratch and write the state; return False if later changes must be solved from scratch too.

    That is so as long as an arm has no spread, when this one is not solved either. `per_step` is as in `change`.
    """
    n_arms = mean.size
    narrowest = std[0]
    for i in range(n_arms):
        narrowest = min(narrowest, std[i])
    if narrowest == 0.0:
        return False
    share = state[SHARE]
    allocate(mean, std, importance, floor, reward_weight, 0.5, COLD, work, share)
    coefficient = 0.5 * (1.0 - reward_weight) / n_arms
    if coefficient == 0.0 or sum_of(floor) > 0.0:
        return False
    scalars[WEIGHT], scalars[COEFFICIENT] = reward_weight, coefficient
    scalars[REFERENCE], scalars[LEVEL] = mean[0], 0.0
    _refer_to_the_best(mean, state, scalars)
    cost, widest = state[SCRATCH], 0
    for i in range(n_arms):
        cost[i] = coefficient * std[i]
        if share[i] > share[widest]:
            widest = i
    inverse_cube_roots(cost, state[COST_ROOT])
    for i in range(n_arms):
        state[FACTOR, i] = cost[i] * state[COST_ROOT, i]
    # The level at which the widest arm has its share: share = (cost / (level + gap))^(2/3).
    level = cost[widest] / (share[widest] * math.sqrt(share[widest])) - state[GAP, widest]
    if not level > 0.0:
        return False
    scalars[LEVEL] = level
    fill_roots(level, state)
    _, steepness, _, _ = _sweep(level, state)
    scalars[INVERSE_SLOPE] = 1.0 / steepness
    _settle(0.0, per_step, state)
    return True


@approximate
def _refer_to_the_best(mean: FloatArray, state: FloatArray, scalars: FloatArray) -> None:
    """Measure gaps from the current best mean; the multiplier stays, so the level moves."""
    weight = scalars[WEIGHT]
    arm = 0
    for i in range(mean.size):
        arm = i if mean[i] > mean[arm] else arm
    best = mean[arm]
    for i in range(mean.size):
        state[GAP, i] = weight * (best - mean[i])
    scalars[LEVEL] -= weight * (best - scalars[REFERENCE])
    scalars[REFERENCE], scalars[BEST] = best, arm


@approximate
def fill_roots(level: float, state: FloatArray) -> None:
    """Write roots for any positive level."""
    scratch = state[SCRATCH]
    for i in range(scratch.size):
        scratch[i] = level + state[GAP, i]
    inverse_cube_roots(scratch, state[ROOT])


@approximate_inlined
def _sweep(level: float, state: FloatArray) -> tuple[float, float, float, float]:
    """Refine every root for a level close to the last.

    Return the sums of shares, of share / (level + gap), of share / (level + gap)^2, and of squared misses.
    """
    total, steepness, bend, missed = 0.0, 0.0, 0.0, 0.0
    for i in range(state.shape[1]):
        y = state[ROOT, i]
        h = 1.0 - (level + state[GAP, i]) * (y * y * y)
        y += y * h * (1 / 3 + h * (2 / 9 + h * (14 / 81 + h * (35 / 243))))
        square = y * y
        cube = square * y
        share = state[FACTOR, i] * square
        state[ROOT, i] = y
        total += share
        steepness += share * cube
        bend += share * cube * cube
        missed += h * h
    return total, steepness, bend, missed


@approximate_inlined
def _settle(step: float, per_step: float, state: FloatArray) -> None:
    """Write the shares after a small last step of the level, by their series, and the scores.

    Scores are positive, so that their bits sort like the numbers: 2 + share - frequency, or share / pulls.
    """
    for i in range(state.shape[1]):
        y = state[ROOT, i]
        relative = step * (y * y * y)
        share = state[FACTOR, i] * (y * y)
        share -= share * (2 / 3 * relative) * (1.0 - 5 / 6 * relative)
        state[SHARE, i] = share
        state[SCORE, i] = 2.0 + (share - state[COUNT, i] * per_step)
    if per_step == 0.0:
        for i in range(state.shape[1]):
            state[SCORE, i] = state[SHARE, i] / state[COUNT, i]


@approximate_inlined
def root_near(x: float, guess: float) -> float:
    """Return x^(-1/3) from a guess, or by the power function if the guess is too far off."""
    y = guess
    miss = 1.0 - x * (y * y * y)
    if not abs(miss) < 0.1:
        return float(x ** (-1 / 3))
    y += y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81 + miss * (35 / 243))))
    if abs(miss) < 1e-3:
        return y
    miss = 1.0 - x * (y * y * y)
    return y + y * miss * (1 / 3 + miss * (2 / 9 + miss * (14 / 81)))


@approximate_inlined
def change(arm: int, std: float, mean: FloatArray, state: FloatArray, scalars: FloatArray, per_step: float) -> bool:
    """Update shares and scores after one arm's mean and std changed; return False if the change was too large.

    `per_step` is 1 / (number of pulls so far) for difference tracking, 0 for ratio tracking.
    """
    if std == 0.0:
        return False
    # Keep measuring gaps from the same mean while that costs no digits: while the smallest gap is close to 0.
    gap = scalars[WEIGHT] * (scalars[REFERENCE] - mean[arm])
    state[GAP, arm] = gap
    if gap < -0.5 * scalars[LEVEL] or state[GAP, int(scalars[BEST])] > 0.5 * scalars[LEVEL]:
        _refer_to_the_best(mean, state, scalars)
        gap = state[GAP, arm]
    level = scalars[LEVEL]
    cost = scalars[COEFFICIENT] * std
    close = level > 0.0 and level + gap > 0.0
    if not close:  # the multiplier fell below the best mean: start where the changed arm alone has a share of 1
        level = max(level, max(cost - gap, 1e-3 * cost))
    cost_root = root_near(cost, state[COST_ROOT, arm])
    y = root_near(level + gap, state[ROOT, arm])
    factor = cost * cost_root
    if close:
        predicted = level + 1.5 * (factor * y * y - state[SHARE, arm]) * scalars[INVERSE_SLOPE]
        close = abs(predicted - level) < 0.3 * level
        if close:
            level = predicted
    state[FACTOR, arm], state[ROOT, arm], state[COST_ROOT, arm] = factor, y, cost_root
    for _ in range(MAX_SWEEPS):
        if not close:
            fill_roots(level, state)
        total, steepness, bend, missed = _sweep(level, state)
        if not missed <= _LARGEST_MISS_SQUARED:
            fill_roots(level, state)
            total, steepness, bend, missed = _sweep(level, state)
        inverse = 1.0 / steepness
        first = 1.5 * (total - 1.0) * inverse
        step = first * (1.0 + (5 / 6) * first * bend * inverse)
        # Far from the solution the two terms may cancel, so a step is as long as its first term.
        if abs(first) <= _SMALL_STEP * level:
            _settle(step, per_step, state)
            scalars[LEVEL] = level + step
            scalars[INVERSE_SLOPE] = inverse
            return True
        close = abs(first) <= _SERIES_STEP * level
        if not close:
            step = total / steepness * (total * math.sqrt(total) - 1.0)
        # Newton's step never overshoots upwards, but from far above it may lead below every level.
        level = max(level + step, 0.1 * level)
    return False
