"""Keep the beliefs of PooledBalance and the gains of its pulls up to date as one arm at a time changes.

What depends on one arm alone is kept: the logarithm of its variance, its noise, its rate, what its next pulls are
worth. Three or four passes over the arms without a branch, in relaxed arithmetic, are left for a step, where
`kernels.pooling.believe` takes ten or more, one addition after the other. `next_pull` returns an arm only if the strict
rule, `decide` of `kernels.decision`, returns the same for certain; otherwise `UNCLEAR`, and the caller asks that rule.

Two kinds of differences lie between this copy and the strict rule. Rounding, below `_ROUNDING` of the quantities
involved. And the variance between means: the strict rule stops short of the solution of its equation by up to 1e-6 of
it, and this copy comes from the solution of the step before, up to 1e-7 away. Newton's step on the reciprocal of the
weighted squares Q, which is concave with |(1/Q)''| <= 2 (1/Q)' / between, leaves at most (its length)^2 / between; so
both bounds follow from the lengths of last steps, 1e-3 and `_SHORT_STEP` of the variance.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import approximate, approximate_inlined
from equipoise.kernels.incremental_information import newton, second_order
from equipoise.kernels.pooling import (
    ALONE,
    FRACTION,
    FRACTION_BITS,
    LEAST_DISTANCE,
    LEAST_SPREAD,
    LOG_OF_TWO,
    LOST,
    MOST_SPREAD,
    NO_SPREAD,
    ONE,
    ROOT_OF_TWO,
    TAILS,
)
from equipoise.kernels.solver import inverse_cube_roots

UNCLEAR = -1
"""Returned instead of an arm where only the strict rule can decide."""

HOPE, LACK, INVERSE, FREEDOM, LOGARITHM, LOG_NOISE, RATE, SUCCESSES, PLANNED = range(9)
"""Rows kept per arm: a pull's bonus and its effect on the error, both per std; 1 / pulls; pulls - 1; logarithm of the
variance and its noise; rate of success and successes; pulls in what is left of the window of the step before."""
_VALUE, _VARIANCE, _NOISE, _WEIGHT, GAIN, UNSURE = range(9, 15)
"""Rows written at every step: mean; variance, then spread; noise of the mean; weight of the mean; the most that the
gain of a pull may be, and how far below that it may be."""
_PLACE, _CANDIDATE_VALUE, _CANDIDATE_SPREAD, _CANDIDATE_UNSURE, _MIDDLE, _PLAN, _NEXT, _LAST = range(15, 23)
"""The same for the arms that can be among the best, next to each other: the middle of the first pull that is not
planned, the pulls that are, and the most that the gains of that pull and of the one before may be."""
_UNSURE_SPREAD, _DISTANCE_ROOT, _SPREAD_ROOT = range(23, 26)
"""How unsure a spread is, relative to it. To keep information: distance^(-1/3) and spread^(-1/3)."""
ROWS = 26

_FEW = 16
"""Up to this number, all arms are looked at."""

(
    MODE,
    _SUCCESS,
    _FIRST,
    _WITNESS,
    _ODD,
    _FLAT,
    _LARGEST,
    _SECOND,
    _SMALLEST,
    _CENTRE,
    _ORIGIN,
    _BETWEEN,
    _BAR,
    _MARGIN,
    _BEST,
    _LEVEL,
) = range(16)
SCALARS = 16
"""Entries of the scalars. How rewards look (below); the success they share; the first arm with a mean, which determines
it; an arm whose rewards are no successes of that size; numbers of arms out of range and without spread; the arms of
largest spread and next; a spread that none is below; of the last step the centre of logarithms, the origin of means and
the variance between means in multiples of the least; the gain that arms need to be looked at, and how far that is below
the last best ones; to keep information, an arm with about the largest mean, and its distance, 0 if there is none."""

UNKNOWN, _RATES, _SPREADS, _NEITHER = 0.0, 1.0, 2.0, 3.0
"""How rewards look: failures and successes; neither the one nor the other, for certain; or hard to tell."""

# Differences of 6e-14 were found with up to 3,000 arms.
_ROUNDING = 1e-11
_ROUNDING_PER_ARM = 1e-15
# A rate is known to this: its success may have moved by 1e-13 since the rate was computed.
_RATE_ROUNDING = 1e-12
# How far short of the solution the strict rule may stop, relative to it.
_STOPPED_SHORT = 1.02e-6
_SHORT_STEP = 3e-4
_MAX_STEPS = 8
# The strict rule may take 20 steps to the variance between means. Each at least doubles variance + noise or squares
# its relative distance, so it needs no more than log2(7 * largest / smallest) from the second on.
_MOST_NOISE_RATIO = 3e4
# Spreads and means outside these, or their squares, might leave the range where relaxed arithmetic is right.
_SMALL, _LARGE = 1e-20, 1e20
_MANY_PULLS = 1e8
_NO_BAR = -1e300
# With every |miss| below 3e-3 the correction of a root is right to 1e-13, and with every one below 0.1 a second one is.
_LARGEST_MISS_SQUARED, _LARGEST_MISS_TO_REFINE = 1e-5, 1e-2
# What a last step to the odds may leave, relative to them; and how far they may be moved by what is unsure.
_SMALL_LEFT, _SMALL_CHANGE = 1e-9, 0.01
_MOST_STEPS_FROM_SCRATCH = 60


@approximate
def begin(
    curiosity: float,
    importance: float,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
) -> None:
    """Write what is kept, for all arms."""
    n_arms = pulls.size
    for i in range(n_arms):
        _renew_worth(i, curiosity, importance, assigned, state)
        _renew_beliefs(i, pulls, std, state)
        state[PLANNED, i] = 0.0
    _sort_spreads(std, scalars)
    _count_odd(mean, std, scalars)
    scalars[MODE] = UNKNOWN
    scalars[_CENTRE], scalars[_ORIGIN], scalars[_BETWEEN] = state[LOGARITHM, 0], mean[0], 1.0
    scalars[_BAR], scalars[_MARGIN] = _NO_BAR, 0.0
    scalars[_BEST], scalars[_LEVEL] = 0.0, 0.0


@approximate_inlined
def _renew_worth(arm: int, curiosity: float, importance: float, assigned: IntArray, state: FloatArray) -> None:
    """Write what an arm's next pull is worth, per std; see `best_pull` of `kernels.decision`."""
    middle = assigned[arm] + 0.5
    state[HOPE, arm], state[LACK, arm] = curiosity / middle, importance / (middle * math.sqrt(middle))


@approximate_inlined
def _renew_beliefs(arm: int, pulls: IntArray, std: FloatArray, state: FloatArray) -> None:
    """Write what depends on an arm's number of rewards and spread alone."""
    count = float(pulls[arm])
    state[INVERSE, arm], state[FREEDOM, arm] = 1.0 / count, count - 1.0
    # As in `write_logarithms` and `_believe_spreads` of `kernels.pooling`.
    bits = std.view(np.uint64)[arm]
    state[_VALUE].view(np.uint64)[arm] = (bits & FRACTION) | ONE
    mantissa = state[_VALUE, arm]
    y = (mantissa - ROOT_OF_TWO) / (mantissa + ROOT_OF_TWO)
    square = y * y
    series = 1.0 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9))))
    logarithm = (float(np.int64(bits >> FRACTION_BITS)) - 1022.5) * LOG_OF_TWO + 2.0 * y * series
    inverse = 1.0 / (count - 1.0)
    state[LOGARITHM, arm] = 2.0 * logarithm + inverse * (1.0 + inverse * (1 / 3))
    state[LOG_NOISE, arm] = TAILS * inverse * (2.0 + inverse * (2.0 + inverse * (4 / 3)))


@approximate
def _sort_spreads(std: FloatArray, scalars: FloatArray) -> None:
    """Find the two largest spreads and the smallest."""
    largest, second = (0, 1) if std[0] >= std[1] else (1, 0)
    smallest = min(std[0], std[1])
    for i in range(2, std.size):
        if std[i] > std[largest]:
            largest, second = i, largest
        elif std[i] > std[second]:
            second = i
        smallest = min(smallest, std[i])
    scalars[_LARGEST], scalars[_SECOND], scalars[_SMALLEST] = largest, second, smallest


@approximate_inlined
def _is_odd(mean: float, std: float) -> bool:
    """Return whether an arm's estimates are neither 0 nor of a size that relaxed arithmetic can take."""
    size = abs(mean)
    return (size != 0.0 and not _SMALL < size < _LARGE) or (std != 0.0 and not _SMALL < std < _LARGE)


@approximate
def _count_odd(mean: FloatArray, std: FloatArray, scalars: FloatArray) -> None:
    """Count the arms out of range, and those without spread."""
    odd, flat = 0, 0
    for i in range(mean.size):
        odd += 1 if _is_odd(mean[i], std[i]) else 0
        flat += 1 if std[i] == 0.0 else 0
    scalars[_ODD], scalars[_FLAT] = odd, flat


@approximate_inlined
def count_pull(arm: int, curiosity: float, importance: float, assigned: IntArray, state: FloatArray) -> None:
    """Write what is kept, after a pull of one arm."""
    _renew_worth(arm, curiosity, importance, assigned, state)
    state[PLANNED, arm] = max(state[PLANNED, arm] - 1.0, 0.0)


@approximate_inlined
def learn(
    arm: int,
    old_mean: float,
    old_std: float,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
) -> None:
    """Write what is kept, after the rewards of one arm changed."""
    _renew_beliefs(arm, pulls, std, state)
    if old_std == 0.0 or std[arm] == 0.0 or _is_odd(old_mean, old_std) or _is_odd(mean[arm], std[arm]):
        _count_odd(mean, std, scalars)
    largest, second = int(scalars[_LARGEST]), int(scalars[_SECOND])
    if arm == largest:
        stale = std[arm] < std[second]
    elif arm == second:
        stale = std[arm] < old_std or std[arm] > std[largest]
    else:
        stale = std[arm] > std[second]
    if stale:
        _sort_spreads(std, scalars)
    scalars[_SMALLEST] = min(scalars[_SMALLEST], std[arm])

    mode, first = scalars[MODE], int(scalars[_FIRST])
    if mode == _RATES:
        if arm <= first and mean[arm] != 0.0:
            scalars[_FIRST] = arm
            success = _success(pulls[arm], mean[arm], std[arm])
            if not abs(success - scalars[_SUCCESS]) <= 0.1 * _RATE_ROUNDING * abs(success):
                scalars[MODE] = UNKNOWN
        if _are_successes(scalars[_SUCCESS], pulls[arm], mean[arm], std[arm]) <= 0 or mean[first] == 0.0:
            scalars[MODE] = UNKNOWN
        rate = mean[arm] / scalars[_SUCCESS]
        state[RATE, arm], state[SUCCESSES, arm] = rate, rate * pulls[arm]
    elif mode != _SPREADS or arm <= first or arm == int(scalars[_WITNESS]):
        scalars[MODE] = UNKNOWN


@approximate_inlined
def _success(pulls: int, mean: float, std: float) -> float:
    """Return the one value other than 0 that rewards may have had; see `common_success` of `kernels.pooling`."""
    return mean + std * (std / mean) * ((pulls - 1.0) / pulls)


@approximate_inlined
def _are_successes(success: float, pulls: int, mean: float, std: float) -> int:
    """Return whether rewards were 0 or this value: 1 if for certain, -1 if for certain not, 0 if it is hard to tell."""
    n = float(pulls)
    if n > _MANY_PULLS:
        return 0
    count = n * (mean / success)
    successes = math.floor(count + 0.5)
    squares = (n - 1.0) * (std / success) * (std / success)
    expected = successes * (n - successes) / n
    off, off_squares = abs(count - successes), abs(squares - expected)
    if off > 2e-9 * n or off_squares > 2e-9 * expected:
        return -1
    return 1 if off <= 0.5e-9 * n and off_squares <= 0.5e-9 * expected else 0


@approximate
def _see_rewards(pulls: IntArray, mean: FloatArray, std: FloatArray, state: FloatArray, scalars: FloatArray) -> None:
    """Find out whether all rewards are failures and successes; if so, write rates."""
    n_arms = pulls.size
    first = 0
    while first < n_arms and mean[first] == 0.0:
        first += 1
    scalars[MODE] = _NEITHER
    if first == n_arms or scalars[_ODD] > 0.0:
        return
    success = _success(pulls[first], mean[first], std[first])
    scalars[_FIRST], scalars[_SUCCESS] = first, success
    certain = 0
    for i in range(n_arms):
        verdict = _are_successes(success, pulls[i], mean[i], std[i])
        if verdict < 0:
            scalars[MODE], scalars[_WITNESS] = _SPREADS, i
            return
        certain += verdict
    if certain == n_arms:
        scalars[MODE] = _RATES
        for i in range(n_arms):
            state[RATE, i] = mean[i] / success
            state[SUCCESSES, i] = state[RATE, i] * pulls[i]


@approximate_inlined
def next_pull(
    t: int,
    n_rewards: int,
    uniform: float,
    window: int,
    mixing: float,
    stated_weight: float,
    information_kept: float,
    curiosity: float,
    importance: float,
    pooling: int,
    squares_expected: float,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
) -> int:
    """Return the arm of step t: the best pull if `window` is 0, otherwise one drawn from the next best; or `UNCLEAR`.

    `n_rewards` is the number of all rewards so far; `assigned` counts pulls whose reward is still to come, too.

    The weight is the stated one if `information_kept` is 0, otherwise the one that keeps that information.
    `squares_expected` is `expected_squares` of the caution and the number of arms.
    """
    if scalars[MODE] == UNKNOWN:
        _see_rewards(pulls, mean, std, state, scalars)
    shrinks = pooling != 0 and pulls.size > LOST
    clear, reach = False, 0.0
    if scalars[MODE] == _RATES:
        clear = believe_rates(n_rewards, squares_expected, shrinks, state, scalars)
    elif scalars[MODE] == _SPREADS and _are_spreads_plain(pulls, std, scalars):
        clear, reach = believe_spreads(squares_expected, shrinks, mean, std, state, scalars)
    if not clear:
        return UNCLEAR
    reward_weight, unsure_odds = stated_weight, 0.0
    if information_kept > 0.0:
        odds, unsure_odds = odds_that_keep(information_kept, importance, reach, state, scalars)
        if not odds > 0.0:
            return UNCLEAR
        reward_weight = odds / (1.0 + odds)
    last = t + max(window, 1) - 1
    coefficient = 0.5 * (1.0 - reward_weight) * last * math.sqrt(last)
    _weigh(reward_weight, coefficient, reach, unsure_odds, state)
    if window == 0:
        return _best_pull(assigned, pulls, mean, std, state, scalars)
    hope, lack = reward_weight * curiosity, coefficient * importance
    n_candidates = _plan(window, hope, lack, assigned, pulls, mean, std, state, scalars)
    return UNCLEAR if n_candidates == 0 else _drawn(uniform, window, mixing, n_candidates, state)


@approximate_inlined
def _are_spreads_plain(pulls: IntArray, std: FloatArray, scalars: FloatArray) -> bool:
    """Return whether no spread is 0, next to 0 or far beyond all others; see `_temper` of `kernels.pooling`."""
    if scalars[_ODD] + scalars[_FLAT] > 0.0:
        return False
    largest = int(scalars[_LARGEST])
    widest = std[largest]
    if scalars[_SMALLEST] <= 2.0 * NO_SPREAD * widest:
        _sort_spreads(std, scalars)  # that bound only falls; this raises it again
        if scalars[_SMALLEST] <= 2.0 * NO_SPREAD * widest:
            return False
    second = std[int(scalars[_SECOND])]
    return bool(widest < ALONE * second or widest < 0.999 * ALONE * second * math.sqrt(math.sqrt(pulls[largest])))


@approximate_inlined
def believe_spreads(
    squares_expected: float, shrinks: bool, mean: FloatArray, std: FloatArray, state: FloatArray, scalars: FloatArray
) -> tuple[bool, float]:
    """Write the beliefs of `believe` in `kernels.pooling`; return whether they are certain, and a bound on values."""
    n_arms = mean.size
    centre = scalars[_CENTRE]
    total, squares, total_noise = 0.0, 0.0, 0.0
    for i in range(n_arms):
        x = state[LOGARITHM, i] - centre
        total += x
        squares += x * x
        total_noise += state[LOG_NOISE, i]
    shift = total / n_arms
    between = MOST_SPREAD
    if shrinks:
        excess = (squares - total * shift) / squares_expected - total_noise / n_arms
        between = min(max(excess, LEAST_SPREAD), MOST_SPREAD)
    total, total_weight = 0.0, 0.0
    for i in range(n_arms):
        weight = 1.0 / (state[LOG_NOISE, i] + between)
        total_weight += weight
        total += weight * (state[LOGARITHM, i] - centre)
    scalars[_CENTRE] = centre + shift
    inverse_unit = math.exp(-0.5 * (centre + total / total_weight))
    strength = (1.0 + math.sqrt(1.0 + 2.0 * between)) / between
    inverse = 1.0 / strength
    prior = strength * math.exp(-inverse * (1.0 + inverse * (1 / 3)))

    # Only differences between means count, so any origin will do: the centre of an earlier step, near that of this one.
    origin = scalars[_ORIGIN]
    for i in range(n_arms):
        ratio = std[i] * inverse_unit
        variance = (prior + state[FREEDOM, i] * ratio * ratio) / (strength + state[FREEDOM, i] - 1.5)
        state[_VARIANCE, i] = variance
        state[_NOISE, i] = variance * state[INVERSE, i]
        state[_VALUE, i] = (mean[i] - origin) * inverse_unit
    centre, step, reach, unsure_between, unsure_centre = 0.0, 0.0, 0.0, 0.0, 0.0
    if shrinks:
        clear, centre, step, reach, unsure_between, unsure_centre = _shrink(
            LEAST_DISTANCE, squares_expected, state, scalars
        )
        if not clear:
            return False, 0.0
    else:
        for i in range(n_arms):
            reach += state[_VALUE, i] * state[_VALUE, i]
            state[_WEIGHT, i] = 0.0
        reach = math.sqrt(reach)
    for i in range(n_arms):
        weight = state[_WEIGHT, i]
        part = state[_NOISE, i] * weight * (1.0 - step * weight * (1.0 - step * weight))
        moved = part * (centre - state[_VALUE, i])
        state[_VALUE, i] += moved
        state[_VARIANCE, i] = math.sqrt(state[_VARIANCE, i])
        state[UNSURE, i] = unsure_between * abs(moved) + unsure_centre * part
        state[_UNSURE_SPREAD, i] = 0.0
    if abs(centre) > 0.1 * reach:
        # Gains are measured from another origin from now on.
        scalars[_ORIGIN] = origin + centre / inverse_unit
        scalars[_BAR] = _NO_BAR
    return True, reach


@approximate_inlined
def believe_rates(
    n_rewards: int, squares_expected: float, shrinks: bool, state: FloatArray, scalars: FloatArray
) -> bool:
    """Write the beliefs of `_believe_rates` in `kernels.pooling`; return False if they are not certain."""
    n_arms = state.shape[1]
    successes = 0.0
    for i in range(n_arms):
        successes += state[SUCCESSES, i]
    typical = (successes + 0.5) / (n_rewards + 1.0)
    variance = typical * (1.0 - typical)
    for i in range(n_arms):
        state[_VALUE, i] = (state[RATE, i] - typical) / (1.0 + 2.0 * state[INVERSE, i])
        state[_NOISE, i] = variance * state[INVERSE, i]
    centre, step, unsure_between, unsure_centre = 0.0, 0.0, 0.0, 0.0
    if shrinks:
        clear, centre, step, _, unsure_between, unsure_centre = _shrink(
            LEAST_DISTANCE * variance, squares_expected, state, scalars
        )
        if not clear:
            return False
    else:
        for i in range(n_arms):
            state[_WEIGHT, i] = 0.0
    sign = 1.0 if scalars[_SUCCESS] > 0.0 else -1.0
    for i in range(n_arms):
        weight = state[_WEIGHT, i]
        part = state[_NOISE, i] * weight * (1.0 - step * weight * (1.0 - step * weight))
        moved = part * (centre - state[_VALUE, i])
        value = state[_VALUE, i] + moved
        rate = typical + value
        variance = rate * (1.0 - rate)
        variance = variance if variance > 1e-30 else 1e-30
        unsure = unsure_between * abs(moved) + unsure_centre * part + _RATE_ROUNDING
        state[_VALUE, i], state[_VARIANCE, i], state[UNSURE, i] = sign * value, math.sqrt(variance), unsure
        # A rate that is unsure makes the spread unsure too: by half of that, divided by the variance.
        state[_UNSURE_SPREAD, i] = unsure / variance
    return True


@approximate_inlined
def _weigh(reward_weight: float, coefficient: float, reach: float, unsure_odds: float, state: FloatArray) -> None:
    """Write gains by the beliefs, for odds of the weight that may be wrong by this much, relative to them."""
    n_arms = state.shape[1]
    rounding = _ROUNDING + _ROUNDING_PER_ARM * n_arms
    of_reward = rounding + unsure_odds
    for i in range(n_arms):
        spread, slope = state[_VARIANCE, i], state[LACK, i] * state[_VARIANCE, i]
        value, hope = reward_weight * state[_VALUE, i], reward_weight * state[HOPE, i] * spread
        doubt = reward_weight * (state[UNSURE, i] + rounding * reach) + of_reward * (abs(value) + hope)
        doubt += state[_UNSURE_SPREAD, i] * (hope + coefficient * slope) + rounding * coefficient * slope
        state[_VALUE, i] = value + doubt
        state[GAIN, i], state[UNSURE, i] = value + hope + doubt + coefficient * slope, 2.0 * doubt


@approximate_inlined
def odds_that_keep(
    kept: float, importance: float, reach: float, state: FloatArray, scalars: FloatArray
) -> tuple[float, float]:
    """Return the odds of the weight that keeps this share of the information, and how unsure they are, relatively.

    See `kernels.incremental_information` for the equation; here every belief may have changed since the last step. The
    odds are 0 where they are not certain.
    """
    n_arms = state.shape[1]
    rounding = _ROUNDING + _ROUNDING_PER_ARM * n_arms
    level, started = scalars[_LEVEL], False
    for _ in range(_MAX_STEPS):
        if not level > 0.0:
            if started:
                break
            started = True
            level = _level_from_scratch(kept, state, scalars)
            if not level > 0.0:
                break
        top = state[_VALUE, int(scalars[_BEST])] + level
        p, s, t, u, a, near, missed = _sweep(top, state)
        if missed > _LARGEST_MISS_SQUARED:
            level = level if missed <= _LARGEST_MISS_TO_REFINE else 0.0
            continue
        first, bend = newton(kept, p, s, t, u, a)
        step = second_order(first, bend)
        nearest = math.sqrt(near)  # no 1 / distance is larger
        relative = 1.3 * abs(first) * nearest
        if not relative < 0.3:
            level = 0.0
            continue
        cube_of_step = relative * relative * relative
        slope = s / p - t / s
        # What the step leaves of F is below 1.3 cubes; and that of the quadratic equation it solves.
        left = 4.0 * cube_of_step / abs(slope) + abs(first) * (first * bend) * (first * bend)
        if left * t > _SMALL_LEFT * s or relative > 0.05:
            level += step
            continue
        scalars[_LEVEL] = level + step
        # By how much the logarithm of the odds changes with each value and with each logarithm of a spread, given that
        # the level goes along: d log S = (sum s_i d log f_i) - (2/3) (sum s_i d z_i / z_i) with shares s_i.
        steepness, along = abs(slope), t / s / slope
        by_value, mean_cube = 1.0 / (p * steepness), t / s
        by_first, by_second, by_factor = 2.0 / p, 1.0 / s, 3.0 / a
        best = int(scalars[_BEST])
        of_best = state[UNSURE, best] + rounding * (reach + abs(state[_VALUE, best]))
        unsure, roughly, moved, squares = 0.0, 0.0, 0.0, 0.0
        for i in range(n_arms):
            y, value = state[_DISTANCE_ROOT, i], state[_VALUE, i]
            cube, factor = y * y * y, state[_VARIANCE, i] * state[_SPREAD_ROOT, i]
            share = factor * (y * y)
            of_value = state[UNSURE, i] + rounding * (reach + abs(value))
            of_spread = state[_UNSURE_SPREAD, i] + rounding
            of_gap = 0.0 if i == best else of_value + of_best
            first_part, factor_part = share * ((top - value) * by_first + by_second), factor * by_factor
            unsure += abs(share * (mean_cube - cube)) * by_value * of_value
            unsure += abs(share * by_second + along * (first_part - factor_part)) * of_spread
            roughly += share * (mean_cube + cube) * by_value * of_gap
            roughly += (share * by_second - along * (first_part + factor_part)) * of_spread
            moved += share * (1.0 / p + cube / s) * of_gap + (first_part + factor_part) * of_spread
            squares += of_gap * of_gap * (cube * cube) + of_spread * of_spread
        # That is right to first order. Distances from a level that is measured from the best mean move by `furthest`,
        # relative to them, which changes the factors of what is unsure in proportion, and the slope by more.
        furthest = moved / steepness * nearest + math.sqrt(squares)
        furthest *= (s / p + mean_cube) / steepness
        if not furthest < _SMALL_CHANGE:
            break
        unsure = 1.2 * unsure + 10.0 * furthest * roughly
        unsure += 1.5 * abs(along) * rounding + left * t / s + 4.0 * cube_of_step + rounding
        total = s - step * ((2 / 3) * t - (5 / 9) * step * u)
        return 0.5 * importance * total * math.sqrt(total), unsure
    scalars[_LEVEL] = 0.0
    return 0.0, 0.0


@approximate_inlined
def _sweep(top: float, state: FloatArray) -> tuple[float, float, float, float, float, float, float]:
    """Refine every root; return the sums of `kernels.incremental_information`, and of 1 / z^2 and squared misses."""
    p, s, t, u, a, near, missed = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(state.shape[1]):
        y, x = state[_DISTANCE_ROOT, i], state[_SPREAD_ROOT, i]
        z, spread = top - state[_VALUE, i], state[_VARIANCE, i]
        h, g = 1.0 - z * (y * y * y), 1.0 - spread * (x * x * x)
        y += y * h * (1 / 3 + h * (2 / 9 + h * (14 / 81 + h * (35 / 243))))
        x += x * g * (1 / 3 + g * (2 / 9 + g * (14 / 81 + g * (35 / 243))))
        state[_DISTANCE_ROOT, i], state[_SPREAD_ROOT, i] = y, x
        factor, cube = spread * x, y * y * y
        share = factor * (y * y)
        p += share * z
        s += share
        t += share * cube
        u += share * cube * cube
        a += factor
        near += cube * cube
        missed += h * h + g * g
    return p, s, t, u, a, near, missed


@approximate
def _level_from_scratch(kept: float, state: FloatArray, scalars: FloatArray) -> float:
    """Return the distance of the best arm within a thousandth, or 0; write roots. See `kernels.information_solver`."""
    n_arms, distance, factor = state.shape[1], state[_NOISE], state[_WEIGHT]
    inverse_cube_roots(state[_VARIANCE], state[_SPREAD_ROOT])
    best, a, first, second = 0, 0.0, 0.0, 0.0
    for i in range(n_arms):
        best = i if state[_VALUE, i] > state[_VALUE, best] else best
    for i in range(n_arms):
        factor[i] = state[_VARIANCE, i] * state[_SPREAD_ROOT, i]
        gap = state[_VALUE, best] - state[_VALUE, i]
        a += factor[i]
        first += factor[i] * gap
        second += factor[i] * gap * gap
    scalars[_BEST] = best
    excess = 1.0 / kept - 1.0
    variance = (second - first * first / a) / a
    if not variance > 1e-30:
        return 0.0
    level, low, high = math.sqrt(variance / (3.0 * excess)), 0.0, 1e300
    for _ in range(_MOST_STEPS_FROM_SCRATCH):
        for i in range(n_arms):
            distance[i] = level + (state[_VALUE, best] - state[_VALUE, i])
        inverse_cube_roots(distance, state[_DISTANCE_ROOT])
        p, s, t = 0.0, 0.0, 0.0
        for i in range(n_arms):
            y = state[_DISTANCE_ROOT, i]
            share = factor[i] * y * y
            p += share * distance[i]
            s += share
            t += share * (y * y * y)
        now = p * p * s / (a * a * a) - 1.0
        if now > excess:
            low = level
        else:
            high = level
        following = -1.0
        if now > 0.0:
            slope = (1.0 + now) * (2 / 3) * (s / p - t / s)
            following = level - 2.0 * now / slope * (math.sqrt(now / excess) - 1.0)
        if abs(following - level) <= 1e-3 * level:
            return level
        if not low < following < high:
            following = 8.0 * level if high == 1e300 else 0.125 * level if low == 0.0 else math.sqrt(low * high)
        if not 1e-15 < following < 1e15:
            break
        level = following
    return 0.0


@approximate_inlined
def _shrink(
    least: float, squares_expected: float, state: FloatArray, scalars: FloatArray
) -> tuple[bool, float, float, float, float, float]:
    """Find the variance between means, and write weights for one close to it; see `_shrink` of `kernels.pooling`.

    Return whether that worked, the weighted centre, how much the variance is above that of the weights, a bound on
    values, and by how much the variance (relative) and the centre may differ from those of the strict rule.
    """
    n_arms = state.shape[1]
    between = scalars[_BETWEEN] * least
    for _ in range(_MAX_STEPS):
        w0, w1, w2, v0, v1, v2, reach = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(n_arms):
            x = state[_VALUE, i]
            weight = 1.0 / (state[_NOISE, i] + between)
            state[_WEIGHT, i] = weight
            w0 += weight
            w1 += weight * x
            w2 += weight * x * x
            v0 += weight * weight
            v1 += weight * weight * x
            v2 += weight * weight * x * x
            reach += x * x
        centre = w1 / w0
        squares = w2 - centre * w1
        reach = math.sqrt(reach)
        if between == least and squares <= (1.0 - 1e-9) * squares_expected:
            # The solution is below the least variance, which the strict rule then takes too.
            return True, centre, 0.0, reach, 0.0, 0.0
        slope = v2 - centre * (2.0 * v1 - centre * v0)
        if not slope > 0.0:
            break
        step = (squares - squares_expected) / slope * (squares / squares_expected)
        following = between + step if between + step > least else least
        step = following - between
        scalars[_BETWEEN] = 1.0 if following == least else following / least
        if abs(step) <= _SHORT_STEP * between:
            fall = (v1 - centre * v0) / w0  # of the centre, per variance
            relative = step / between
            unsure = _STOPPED_SHORT + 1.1 * relative * relative
            # What a series of first order leaves of the centre's move is no more than the values' size times that.
            unsure_centre = unsure * abs(fall) * between + 4.0 * (reach + abs(centre)) * relative * relative
            clear = between < _MOST_NOISE_RATIO * _least_noise(state) or _noise_ratio(state) < _MOST_NOISE_RATIO
            return clear, centre - step * fall, step, reach, unsure, unsure_centre
        between = following
    return False, 0.0, 0.0, 0.0, 0.0, 0.0


@approximate_inlined
def _least_noise(state: FloatArray) -> float:
    least = state[_NOISE, 0]
    for i in range(state.shape[1]):
        least = state[_NOISE, i] if state[_NOISE, i] < least else least
    return float(least)


@approximate_inlined
def _noise_ratio(state: FloatArray) -> float:
    most = state[_NOISE, 0]
    for i in range(state.shape[1]):
        most = state[_NOISE, i] if state[_NOISE, i] > most else most
    return float(most / _least_noise(state))


@approximate_inlined
def _select(bar: float, state: FloatArray) -> int:
    """Write the places of the arms whose gain may reach a bar; return how many they are."""
    n_candidates = 0
    for i in range(state.shape[1]):
        state[_PLACE, n_candidates] = i
        n_candidates += 1 if state[GAIN, i] >= bar else 0
    return n_candidates


@approximate_inlined
def _move_bar(lowest: float, n_candidates: int, scalars: FloatArray) -> None:
    """Keep the bar just low enough: too many candidates cost time, and too few cost a second round."""
    if lowest <= scalars[_BAR]:
        scalars[_MARGIN] += 2.0 * (scalars[_BAR] - lowest)
    elif n_candidates > _FEW:
        scalars[_MARGIN] *= 0.8
    scalars[_BAR] = lowest - scalars[_MARGIN]


@approximate_inlined
def _best_pull(
    assigned: IntArray, pulls: IntArray, mean: FloatArray, std: FloatArray, state: FloatArray, scalars: FloatArray
) -> int:
    """Return the arm with the largest gain, or `UNCLEAR` if gains are too close.

    Candidates are the arms whose gain is above a bar that is guessed from the step before. If the best is above it too,
    no other arm could be the best; if not, all arms are candidates.
    """
    bar = scalars[_BAR] if pulls.size > _FEW else _NO_BAR
    n_candidates = _select(bar, state)
    if n_candidates == 0:
        bar = _NO_BAR
        n_candidates = _select(bar, state)
    arm, best, second = 0, -1e300, -1e300
    for j in range(n_candidates):
        i = int(state[_PLACE, j])
        gain = state[GAIN, i]
        less = gain if gain < best else best
        second = less if less > second else second
        arm = i if gain > best else arm
        best = gain if gain > best else best
    sure = best - state[UNSURE, arm]
    # The arms left out are below the bar, but those that may be best are not.
    if sure <= bar:
        n_candidates, second = _select(_NO_BAR, state), best
    if second >= sure:
        arm = _first_of_equals(arm, sure, n_candidates, assigned, pulls, mean, std, state)
    _move_bar(sure, n_candidates, scalars)
    return arm


@approximate
def _first_of_equals(
    best: int,
    bar: float,
    n_candidates: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
) -> int:
    """Return the first arm with a gain above the bar if all of these have the same statistics, otherwise `UNCLEAR`.

    Such arms have the same gain in the strict rule too, where the first of them is pulled.
    """
    found = UNCLEAR
    for j in range(n_candidates):
        i = int(state[_PLACE, j])
        if state[GAIN, i] >= bar:
            if not _are_equal(i, best, assigned, pulls, mean, std):
                return UNCLEAR
            found = i if found < 0 else found
    return found


@approximate_inlined
def _plan(
    window: int,
    hope: float,
    lack: float,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
    scalars: FloatArray,
) -> int:
    """Plan the best pulls of a window; return the number of candidates, or 0 if gains are too close.

    An arm's gain with m pulls is its value and, times its spread, hope / (m + 1/2) + lack / (m + 1/2)^(3/2). It falls
    with every pull, so a plan is best if the last planned pull of no arm has a smaller gain than the next of another.
    It differs little from what is left of the plan of the step before: pulls are moved one by one until that holds.
    Candidates are found as in `_best_pull`; no other arm has a planned pull.
    """
    bar = scalars[_BAR] if pulls.size > _FEW else _NO_BAR
    for _ in range(2):
        n_candidates = _select(bar, state)
        planned = 0.0
        for j in range(n_candidates):
            i = int(state[_PLACE, j])
            plan = state[PLANNED, i]
            planned += plan
            state[_PLAN, j], state[_MIDDLE, j] = plan, assigned[i] + plan + 0.5
            state[_CANDIDATE_VALUE, j], state[_CANDIDATE_SPREAD, j] = state[_VALUE, i], state[_VARIANCE, i]
            state[_CANDIDATE_UNSURE, j] = state[UNSURE, i]
        for j in range(n_candidates):
            state[_NEXT, j] = _gain(j, state[_MIDDLE, j], hope, lack, state)
            last = _gain(j, state[_MIDDLE, j] - 1.0, hope, lack, state)
            state[_LAST, j] = last if state[_PLAN, j] > 0.0 else 1e300
        low, high, settled = 1e300, -1e300, False
        for _ in range(4 * window + _FEW):
            add, remove, most, least = 0, 0, -1e300, 1e300
            low, high = 1e300, -1e300
            for j in range(n_candidates):
                following, last = state[_NEXT, j], state[_LAST, j]
                add = j if following > most else add
                most = following if following > most else most
                remove = j if last < least else remove
                least = last if last < least else least
                sure = last - state[_CANDIDATE_UNSURE, j]
                low = sure if sure < low else low
            high = most
            if n_candidates == 0 or (planned == window and most - state[_CANDIDATE_UNSURE, add] <= least):
                settled = n_candidates > 0
                break
            if planned <= window:
                _change_plan(add, 1.0, hope, lack, state)
                planned += 1.0
            if planned > window:
                _change_plan(remove, -1.0, hope, lack, state)
                planned -= 1.0
        if settled and low > bar:
            break
        bar, settled = _NO_BAR, False
    if not settled or (high >= low and not _settle_equals(low, high, n_candidates, assigned, pulls, mean, std, state)):
        return 0
    for i in range(pulls.size):
        state[PLANNED, i] = 0.0
    for j in range(n_candidates):
        state[PLANNED, int(state[_PLACE, j])] = state[_PLAN, j]
    _move_bar(low, n_candidates, scalars)
    return n_candidates


@approximate_inlined
def _are_equal(one: int, other: int, assigned: IntArray, pulls: IntArray, mean: FloatArray, std: FloatArray) -> bool:
    """Return whether two arms have the same statistics, and so the same gains."""
    same = assigned[one] == assigned[other] and pulls[one] == pulls[other]
    return bool(same and mean[one] == mean[other] and std[one] == std[other])


@approximate_inlined
def _gain(place: int, middle: float, hope: float, lack: float, state: FloatArray) -> float:
    """Return the most that the gain of a candidate's pull may be, by the middle of that pull."""
    inverse = 1.0 / middle
    worth: float = inverse * (hope + lack * math.sqrt(inverse))
    return float(state[_CANDIDATE_VALUE, place] + state[_CANDIDATE_SPREAD, place] * worth)


@approximate_inlined
def _change_plan(place: int, change: float, hope: float, lack: float, state: FloatArray) -> None:
    """Plan one more pull of a candidate, or one fewer."""
    state[_PLAN, place] += change
    state[_MIDDLE, place] += change
    state[_NEXT, place] = _gain(place, state[_MIDDLE, place], hope, lack, state)
    last = _gain(place, state[_MIDDLE, place] - 1.0, hope, lack, state)
    state[_LAST, place] = last if state[_PLAN, place] > 0.0 else 1e300


@approximate
def _settle_equals(
    low: float,
    high: float,
    n_candidates: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    state: FloatArray,
) -> bool:
    """Give pulls of equal gain to the first arms; return False if the arms that compete for them are not all the same.

    Arms with the same statistics have the same gains in the strict rule too, where the first of them is pulled first.
    """
    first, before, n_pulls = -1, 0.0, 0
    for j in range(n_candidates):
        has_next, has_last = state[_NEXT, j] >= low, state[_LAST, j] - state[_CANDIDATE_UNSURE, j] <= high
        if not (has_next or has_last):
            continue
        if has_next and has_last:
            return False
        i, count = int(state[_PLACE, j]), state[_PLAN, j] - (1.0 if has_last else 0.0)
        if first < 0:
            first, before = i, count
        if not (_are_equal(i, first, assigned, pulls, mean, std) and count == before):
            return False
        n_pulls += 1 if has_last else 0
    for j in range(n_candidates):
        if state[_NEXT, j] >= low or state[_LAST, j] - state[_CANDIDATE_UNSURE, j] <= high:
            state[_PLAN, j] = before + (1.0 if n_pulls > 0 else 0.0)
            n_pulls -= 1
    return True


@approximate_inlined
def _drawn(uniform: float, window: int, mixing: float, n_candidates: int, state: FloatArray) -> int:
    """Return the arm that a uniform number falls on, or `UNCLEAR` if it falls next to the border between two."""
    n_arms = state.shape[1]
    even, share = mixing / n_arms, (1.0 - mixing) / window
    margin = _ROUNDING + _ROUNDING_PER_ARM * n_arms
    below = 0.0  # of the probability, what the pulls of the arms before add up to
    for j in range(n_candidates):
        chance = share * state[_PLAN, j]
        if chance > 0.0:
            start = even * state[_PLACE, j] + below
            if uniform < start:
                break
            end = start + even + chance
            if uniform < end:
                clear = uniform - start > margin and end - uniform > margin
                return int(state[_PLACE, j]) if clear else UNCLEAR
            below += chance
    if even * n_arms <= margin:
        return UNCLEAR
    place = (uniform - below) / even
    arm = int(place)
    inside = place - arm
    clear = place > 0.0 and arm < n_arms and inside * even > margin and (1.0 - inside) * even > margin
    return arm if clear else UNCLEAR
