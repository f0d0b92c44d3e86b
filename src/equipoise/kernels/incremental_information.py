"""Keep the shares that keep a stated share of the information up to date as estimates change one arm at a time.

The shares are those of `kernels.information_solver` for the average error, without floors and with spread in every
arm: with z = level + gap and factor = std^(2/3) they are factor z^(-2/3) / S. The level solves
log(kept P^2 S / A^3) = 0 with

    P = sum factor z^(1/3), S = sum factor z^(-2/3), T = sum factor z^(-5/3), U = sum factor z^(-8/3), A = sum factor.

A change of one arm changes the sums in one term; a step of second order from these leads close to the new level, and
one sweep over the arms, as in `kernels.incremental_solver`, does the rest.
"""

from __future__ import annotations

import math

from equipoise._types import FloatArray
from equipoise.kernels.compiler import approximate, approximate_inlined
from equipoise.kernels.incremental_solver import (
    COST_ROOT,
    COUNT,
    FACTOR,
    GAP,
    MAX_SWEEPS,
    ROOT,
    SCORE,
    SCRATCH,
    SHARE,
    fill_roots,
    root_near,
)
from equipoise.kernels.information_solver import allocate_for_information
from equipoise.kernels.rules import AVERAGE
from equipoise.kernels.solver import inverse_cube_roots

LEVEL, REFERENCE, BEST, LOWEST, KEPT, P, S, T, U, A = range(10)
SCALARS = 10
"""Entries of the scalars: level, mean whose gap is 0, best arm, a gap that none is below, share of the information to
keep, and the sums."""

MOST_KEPT, MOST_KEPT_BY_RATIO = 0.999, 0.95
"""Closer to 1 the level loses digits. Shares lose few, but small ones more relative to their size."""

# Outside these, powers of spreads and distances might leave the range of doubles.
_SMALL, _LARGE = 1e-20, 1e20
# The cube of this relative step, which the series for the last step drops, is below 1e-14.
_SMALL_STEP = 1e-5
# With every |miss| below 6e-3 the fifth-order correction of a root is right to 1e-14, and with every one below 0.1 a
# second correction is.
_LARGEST_MISS_SQUARED, _LARGEST_MISS_TO_REFINE = 4e-5, 1e-2
# Up to this relative step the sums lead close to the new level.
_CLOSE_STEP = 0.05
# Instead of a longer step, start from scratch.
_LONGEST_STEP = 0.3


@approximate
def start_keeping(
    mean: FloatArray,
    std: FloatArray,
    kept: float,
    importance: FloatArray,
    floor: FloatArray,
    work: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
    per_step: float,
) -> bool:
    """Solve from scratch and write the state; return False if this cannot be kept up to date.

    That is so while an arm has no spread, all means are equal, or sizes are extreme. `per_step` is as in `change` of
    `kernels.incremental_solver`. No arm has a floor, and all have the same importance.
    """
    n_arms = mean.size
    narrowest, widest, lowest, best = std[0], std[0], mean[0], 0
    for i in range(n_arms):
        narrowest, widest, lowest = min(narrowest, std[i]), max(widest, std[i]), min(lowest, mean[i])
        best = i if mean[i] > mean[best] else best
    reach = mean[best] - lowest
    if not (narrowest > _SMALL and widest < _LARGE and _SMALL < reach < _LARGE and kept <= MOST_KEPT):
        return False
    weight = allocate_for_information(AVERAGE, kept, 0.0, 0.5, mean, std, importance, floor, work, state[SHARE])
    if not 0.0 < weight < 1.0:
        return False
    # As in `kernels.information_solver`: share = (cost / z)^(2/3).
    cost = 0.5 * (1.0 - weight) / weight * importance[best] * std[best]
    level = cost / (state[SHARE, best] * math.sqrt(state[SHARE, best]))
    if not _SMALL < level < _LARGE:
        return False
    scalars[LEVEL], scalars[REFERENCE], scalars[BEST] = level, mean[best], best
    scalars[LOWEST], scalars[KEPT] = 0.0, kept
    for i in range(n_arms):
        state[GAP, i] = mean[best] - mean[i]
        state[SCRATCH, i] = std[i]
    inverse_cube_roots(state[SCRATCH], state[COST_ROOT])
    for i in range(n_arms):
        state[FACTOR, i] = std[i] * state[COST_ROOT, i]
    fill_roots(level, state)
    return _solve(level, state, scalars, per_step)


@approximate_inlined
def change_keeping(
    arm: int, std: float, mean: FloatArray, state: FloatArray, scalars: FloatArray, per_step: float
) -> bool:
    """Update shares and scores after one arm's mean and std changed; return False if that needs a new start."""
    if not _SMALL < std < _LARGE:
        return False
    level = scalars[LEVEL]
    old_z = level + state[GAP, arm]
    gap = scalars[REFERENCE] - mean[arm]
    state[GAP, arm] = gap
    # Keep measuring gaps from the same mean while that costs no digits, as in `kernels.incremental_solver`.
    scalars[LOWEST] = min(scalars[LOWEST], gap)
    if scalars[LOWEST] < -0.5 * level or state[GAP, int(scalars[BEST])] > 0.5 * level:
        _refer_to_the_best(mean, state, scalars)
        gap, level = state[GAP, arm], scalars[LEVEL]
    z = level + gap
    if not (level > _SMALL and z > 0.0):
        return False
    old_y = state[ROOT, arm]
    y, cost_root = root_near(z, old_y), root_near(std, state[COST_ROOT, arm])
    factor, old_factor = std * cost_root, state[FACTOR, arm]
    share, old_share = factor * (y * y), old_factor * (old_y * old_y)
    cube, old_cube = y * y * y, old_y * old_y * old_y
    steep, old_steep = share * cube, old_share * old_cube
    state[FACTOR, arm], state[ROOT, arm], state[COST_ROOT, arm] = factor, y, cost_root
    first, bend = newton(
        scalars[KEPT],
        scalars[P] + (share * z - old_share * old_z),
        scalars[S] + (share - old_share),
        scalars[T] + (steep - old_steep),
        scalars[U] + (steep * cube - old_steep * old_cube),
        scalars[A] + (factor - old_factor),
    )
    step, moved = second_order(first, bend), z - old_z
    if abs(step) <= _CLOSE_STEP * level:
        level += step
    elif arm == int(scalars[BEST]) and level - moved + scalars[LOWEST] > 0.0:
        level -= moved  # where the best arm alone has most of a sum, its distance stays about the same
    elif abs(step) <= _LONGEST_STEP * level:
        level += step
    else:
        return False
    return _solve(level, state, scalars, per_step)


@approximate
def _refer_to_the_best(mean: FloatArray, state: FloatArray, scalars: FloatArray) -> None:
    """Measure gaps from the current best mean."""
    best = 0
    for i in range(mean.size):
        best = i if mean[i] > mean[best] else best
    for i in range(mean.size):
        state[GAP, i] = mean[best] - mean[i]
    scalars[LEVEL] -= mean[best] - scalars[REFERENCE]
    scalars[REFERENCE], scalars[BEST], scalars[LOWEST] = mean[best], best, 0.0


@approximate_inlined
def newton(kept: float, p: float, s: float, t: float, u: float, a: float) -> tuple[float, float]:
    """Return Newton's step from the level of these sums to the one that keeps the information, and F'' / F'.

    With F = log(kept P^2 S / A^3): F' = (2/3) (S / P - T / S), and F'' likewise from P' = S / 3, S' = -(2/3) T and
    T' = -(5/3) U.
    """
    x = kept * (p * p) * s / (a * a * a) - 1.0
    # The logarithm; its series is right to rounding for last steps, and right enough for others.
    f = x * (1.0 - x * (1 / 2 - x * (1 / 3 - x * (1 / 4)))) if abs(x) < 0.02 else math.log(max(1.0 + x, 1e-300))
    ps, tp = p * s, t * p
    # F' is (2/3) (S^2 - T P) / (P S), and F'' / F' is `bend` times `inverse`.
    inverse = 1.0 / (ps * (s * s - tp))
    bend = (5 / 3) * (u * p) * ps - (2 / 3) * tp * (s * s + tp) - (1 / 3) * (s * s) * (s * s)
    return -1.5 * f * (ps * ps) * inverse, bend * inverse


@approximate_inlined
def second_order(first: float, bend: float) -> float:
    """Return the step of second order, or Newton's if that is too long for it."""
    curved = 0.5 * first * bend
    return first * (1.0 - curved) if abs(curved) < 0.2 else first


@approximate_inlined
def _solve(level: float, state: FloatArray, scalars: FloatArray, per_step: float) -> bool:
    """Find the level from one close to it, for which roots are about right; write shares and scores.

    What is kept belongs to the last level that was swept; the shares to a small step from there.
    """
    for _ in range(MAX_SWEEPS):
        p, s, t, u, a, missed = _sweep(level, state)
        if not missed <= _LARGEST_MISS_SQUARED:
            if not missed <= _LARGEST_MISS_TO_REFINE:
                fill_roots(level, state)
            p, s, t, u, a, missed = _sweep(level, state)
        first, bend = newton(scalars[KEPT], p, s, t, u, a)
        step, size = second_order(first, bend), abs(first)
        if size <= _SMALL_STEP * (level + scalars[LOWEST]) and size * abs(bend) <= 3.0 * _SMALL_STEP:
            scalars[LEVEL], scalars[P], scalars[S], scalars[T], scalars[U], scalars[A] = level, p, s, t, u, a
            _settle(step, 1.0 / (s - step * ((2 / 3) * t - (5 / 9) * step * u)), per_step, state)
            return True
        if not size <= _LONGEST_STEP * level:
            return False
        level += step
    return False


@approximate_inlined
def _sweep(level: float, state: FloatArray) -> tuple[float, float, float, float, float, float]:
    """Refine every root for a level close to the last; return the five sums, and that of squared misses."""
    p, s, t, u, a, missed = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(state.shape[1]):
        y, z, factor = state[ROOT, i], level + state[GAP, i], state[FACTOR, i]
        h = 1.0 - z * (y * y * y)
        y += y * h * (1 / 3 + h * (2 / 9 + h * (14 / 81 + h * (35 / 243 + h * (91 / 729)))))
        square = y * y
        cube = square * y
        share = factor * square
        state[ROOT, i] = y
        p += share * z
        s += share
        t += share * cube
        u += share * cube * cube
        a += factor
        missed += h * h
    return p, s, t, u, a, missed


@approximate_inlined
def _settle(step: float, scale: float, per_step: float, state: FloatArray) -> None:
    """Write the shares after a small last step of the level, and the scores; see `kernels.incremental_solver`."""
    for i in range(state.shape[1]):
        y = state[ROOT, i]
        relative = step * (y * y * y)
        share = scale * state[FACTOR, i] * (y * y)
        share -= share * (2 / 3 * relative) * (1.0 - 5 / 6 * relative)
        state[SHARE, i] = share
        state[SCORE, i] = 2.0 + (share - state[COUNT, i] * per_step)
    if per_step == 0.0:
        for i in range(state.shape[1]):
            state[SCORE, i] = state[SHARE, i] / state[COUNT, i]
