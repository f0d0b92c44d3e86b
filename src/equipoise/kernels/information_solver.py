"""Compute the allocation with the most reward that keeps a stated share of the information  [Sect. 2].

An experiment that keeps the share q is as accurate as the best design with q times as many people. What "accurate"
means is the criterion: the average error (the paper's Eq. 2), the error of the arm known worst, or how surely the best
arm differs from the others. docs/dial.md has the algebra; floors hold for the best design too.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.rules import BEST_ARM, EVERY_ARM, SMALLEST_DIFFERENCE
from equipoise.kernels.solver import COLD, TINY, allocate, inverse_cube_roots, sum_of
from equipoise.kernels.solver import WORK_ROWS as SOLVER_ROWS

WORK_ROWS = SOLVER_ROWS + 2
"""Rows of scratch that `allocate_for_information` needs: the solver's, and two for a problem with floors."""

# Each Newton step roughly squares the error; the limit only guards against a loop that rounding keeps alive.
_MAX_STEPS = 200
# The square of this relative step is below the rounding of a double.
_SMALL_STEP = 1e-9
# An error this close to its limit, relative to it, is at the limit.
_SMALL_EXCESS = 4e-16


@compiled
def allocate_for_information(
    criterion: int,
    kept: float,
    smallest_difference: float,
    power: float,
    mean: FloatArray,
    std: FloatArray,
    importance: FloatArray,
    floor: FloatArray,
    work: FloatArray,
    share: FloatArray,
) -> float:
    """Write the shares with the most reward that keep this share of the information.

    Return the reward weight of which they are the optimum, or NaN for criteria other than the average error, which no
    weight leads to. `work` has `WORK_ROWS` rows.
    """
    if criterion == EVERY_ARM:
        _allocate_for_every_arm(kept, mean, std, floor, work, share)
        return np.nan
    if criterion == BEST_ARM:
        _allocate_for_best_arm(kept, smallest_difference, mean, std, floor, work, share)
        return np.nan
    if sum_of(floor) > 0.0:
        return _allocate_for_average_above_floors(kept, power, mean, std, importance, floor, work, share)
    return _allocate_for_average(kept, power, mean, std, importance, work, share)


@compiled
def _best_of(mean: FloatArray) -> int:
    """Return the position of the largest mean, the first on a tie."""
    best = 0
    for i in range(mean.size):
        if mean[i] > mean[best]:
            best = i
    return best


@compiled
def _give_rest_to_best(rest: float, mean: FloatArray, share: FloatArray) -> None:
    """Add what is left to the arm with the largest mean; tied arms split it."""
    best, ties = mean[_best_of(mean)], 0
    for i in range(mean.size):
        ties += 1 if mean[i] == best else 0
    for i in range(mean.size):
        if mean[i] == best:
            share[i] += rest / ties


@compiled
def _sums_at(
    level: float, power: float, gap: FloatArray, factor: FloatArray, distance: FloatArray, root: FloatArray
) -> tuple[float, float, float]:
    """Return the sums of factor z^(1 - b), factor z^-b and factor z^-(1 + b) with z = level + gap, b = 1 / (1 + power).

    `root` becomes factor z^-b: the shares, but for their sum.
    """
    for i in range(gap.size):
        z = level + gap[i]
        distance[i] = z if z > TINY else TINY
    if power == 0.5:
        inverse_cube_roots(distance, root)
        for i in range(gap.size):
            root[i] = factor[i] * root[i] * root[i]
    else:
        for i in range(gap.size):
            root[i] = factor[i] * distance[i] ** (-1.0 / (1.0 + power))
    first, second, third = 0.0, 0.0, 0.0
    for i in range(gap.size):
        first += root[i] * distance[i]
        second += root[i]
        third += root[i] / distance[i]
    return first, second, third


@compiled
def _allocate_for_average(
    kept: float,
    power: float,
    mean: FloatArray,
    std: FloatArray,
    importance: FloatArray,
    work: FloatArray,
    share: FloatArray,
) -> float:
    """Write the shares whose average error is the smallest possible one divided by kept^power; return their weight.

    Shares proportional to (cost / (level + gap))^b, with b = 1 / (1 + power) and the gap to the best mean, are optimal
    for some weight at every level > 0: for equal weight on all gaps as the level grows, for the best arm as it falls.
    With P = sum factor z^(1 - b), S = sum factor z^-b and A = sum factor, their error relative to the smallest is
    (P / A) (S / A)^power, so one equation in the level is left: (P / A)^(1 / power) S / A = 1 / kept.
    """
    gap, cost, factor, distance, root = work[0], work[1], work[2], work[3], work[4]
    n_arms = mean.size
    best = mean[_best_of(mean)]
    widest, widest_gap, largest_cost = 0.0, 0.0, 0.0
    for i in range(n_arms):
        widest = max(widest, std[i])
        gap[i] = 0.5 * best - 0.5 * mean[i]  # halved: the difference of two doubles may overflow
        widest_gap = max(widest_gap, gap[i])
    for i in range(n_arms):
        relative = std[i] / widest if widest > 0.0 else 0.0
        cost[i] = importance[i] * (relative if power == 0.5 else relative ** (2.0 * power))
        largest_cost = max(largest_cost, cost[i])
    if largest_cost == 0.0:  # nothing to measure
        for i in range(n_arms):
            share[i] = 0.0
        _give_rest_to_best(1.0, mean, share)
        return 1.0
    if power == 0.5:
        for i in range(n_arms):
            distance[i] = cost[i] if cost[i] > TINY else TINY
        inverse_cube_roots(distance, root)
        for i in range(n_arms):
            factor[i] = cost[i] * root[i]
    else:
        for i in range(n_arms):
            factor[i] = cost[i] ** (1.0 / (1.0 + power))
    all_factors = sum_of(factor)
    excess = 1.0 / kept - 1.0
    if widest_gap == 0.0 or excess <= 0.0:
        for i in range(n_arms):
            share[i] = factor[i] / all_factors
        return 0.0

    average, variance, takers = 0.0, 0.0, 0
    for i in range(n_arms):
        gap[i] /= widest_gap
        average += factor[i] / all_factors * gap[i]
    for i in range(n_arms):
        variance += factor[i] / all_factors * (gap[i] - average) * (gap[i] - average)
        takers += 1 if gap[i] == 0.0 else 0
    measured_takers = False
    for i in range(n_arms):
        if gap[i] == 0.0 and factor[i] > 0.0:
            measured_takers = True
    used = 1.0
    level, total = 0.0, 0.0
    if not measured_takers:
        # The best arms need no pulls to be known, so at level 0 the others may have too many still.
        first, total, _ = _sums_at(0.0, power, gap, factor, distance, root)
        reached = _relative_information(power, first / all_factors, total / all_factors)
        if reached <= excess:
            used = (1.0 + reached) / (1.0 + excess)
            for i in range(n_arms):
                share[i] = 0.0 if gap[i] == 0.0 else used * root[i] / total
            _give_rest_to_best(1.0 - used, mean, share)
    if used == 1.0:
        level = math.sqrt(0.5 / (1.0 + power) * variance / excess)
        level = _level_for(excess, level, power, all_factors, gap, factor, distance, root)
        _, total, _ = _sums_at(level, power, gap, factor, distance, root)
        for i in range(n_arms):
            share[i] = root[i] / total
    # The shares of weight w are (power (1 - w) / w cost / (level + gap))^b: solve for the odds of w.
    unit = 0.5 * widest / widest_gap if power == 0.5 else 0.5 * widest ** (2.0 * power) / widest_gap
    ratio = total / used
    odds = power * unit * (ratio * math.sqrt(ratio) if power == 0.5 else ratio ** (1.0 + power))
    return odds / (1.0 + odds) if odds < 1e300 else 1.0


@compiled
def _relative_information(power: float, first: float, second: float) -> float:
    """Return by how much more people are needed than with the best design, as a share of its people."""
    if power == 0.5:
        return first * first * second - 1.0
    return float(first ** (1.0 / power) * second - 1.0)


@compiled
def _level_for(
    excess: float,
    start: float,
    power: float,
    all_factors: float,
    gap: FloatArray,
    factor: FloatArray,
    distance: FloatArray,
    root: FloatArray,
) -> float:
    """Return the level at which the people needed exceed those of the best design by this share.

    The excess falls like a power of the level, with exponents between 2 (high levels) and 1 / (1 + power) (low ones),
    so Newton's method is applied to its inverse square root, which is close to a line at high levels. A bracket holds
    it where that is a poor guess.
    """
    exponent = 1.0 / (1.0 + power)
    low, high, level = 0.0, np.inf, start
    for _ in range(_MAX_STEPS):
        first, second, third = _sums_at(level, power, gap, factor, distance, root)
        now = _relative_information(power, first / all_factors, second / all_factors)
        if now > excess:
            low = max(low, level)
        else:
            high = min(high, level)
        step = np.inf
        if now > 0.0:
            # d log(1 + now) / d level = exponent (second / first - third / second), which is negative.
            slope = (1.0 + now) * exponent * (second / first - third / second)
            step = -2.0 * now / slope * (math.sqrt(now / excess) - 1.0)
        following = level + step
        if abs(step) <= _SMALL_STEP * level:
            return following
        if not low < following < high:
            if high == np.inf:
                following = 8.0 * level
            elif low == 0.0:
                following = 0.125 * level
            else:
                following = math.sqrt(low) * math.sqrt(high)
        if following == level:
            break
        level = following
    return level


@compiled
def _allocate_for_average_above_floors(
    kept: float,
    power: float,
    mean: FloatArray,
    std: FloatArray,
    importance: FloatArray,
    floor: FloatArray,
    work: FloatArray,
    share: FloatArray,
) -> float:
    """Do as `_allocate_for_average` with floors: solve for the odds of the weight, and for the shares at each.

    Odds are tried by stretching the gaps at equal weights, so that they have all digits however far from 1 they are.
    """
    n_arms = mean.size
    gap, relative = work[SOLVER_ROWS], work[SOLVER_ROWS + 1]
    best = mean[_best_of(mean)]
    widest, widest_gap = 0.0, 0.0
    for i in range(n_arms):
        widest = max(widest, std[i])
        widest_gap = max(widest_gap, 0.5 * best - 0.5 * mean[i])  # halved: the difference may overflow
    for i in range(n_arms):
        relative[i] = std[i] / widest if widest > 0.0 else 0.0
    allocate(mean, relative, importance, floor, 0.0, power, COLD, work, share)
    least = _average_error(power, relative, importance, share)
    limit = least / (math.sqrt(kept) if power == 0.5 else kept**power)
    if least > 0.0 and (kept == 1.0 or widest_gap == 0.0):
        return 0.0
    allocate(mean, relative, importance, floor, 1.0, power, COLD, work, share)
    if _average_error(power, relative, importance, share) <= limit:
        return 1.0
    # The error grows with the odds. Enclose them, then regula falsi, in which an end that stays twice counts less
    # (Anderson and Bjoerck 1973). Each third step bisects: the error may be flat at one end, with arms on their floors.
    # `low` always keeps the limit. No logarithms: their last digit is not the same everywhere.
    low, high, odds, factor = 0.0, np.inf, 1.0, 16.0
    low_value, high_value, side = 0.0, 0.0, 0
    for step in range(_MAX_STEPS):
        _stretch_gaps(odds, best, widest_gap, mean, gap)
        allocate(gap, relative, importance, floor, 0.5, power, COLD, work, share)
        value = _average_error(power, relative, importance, share) / limit - 1.0
        if value <= 0.0:
            if side < 0:
                ratio = 1.0 - value / low_value
                high_value *= ratio if ratio > 0.0 else 0.5
            low, low_value, side = odds, value, -1
            if value >= -_SMALL_EXCESS:
                break
        else:
            if side > 0:
                ratio = 1.0 - value / high_value
                low_value *= ratio if ratio > 0.0 else 0.5
            high, high_value, side = odds, value, 1
        if high == np.inf or low == 0.0:
            odds = low * factor if high == np.inf else high / factor
            factor *= factor
        elif high > 16.0 * low:
            odds = math.sqrt(low) * math.sqrt(high)
        else:
            odds = low + (high - low) * (low_value / (low_value - high_value))
            if step % 3 == 2 or not low < odds < high:
                odds = 0.5 * (low + high)
            if not low < odds < high:
                break
        if odds > 1e280 or odds < 1e-280:
            break
    odds = low
    _stretch_gaps(odds, best, widest_gap, mean, gap)
    allocate(gap, relative, importance, floor, 0.5, power, COLD, work, share)
    odds *= 0.5 * widest / widest_gap if power == 0.5 else 0.5 * widest ** (2.0 * power) / widest_gap
    return odds / (1.0 + odds) if odds < 1e300 else 1.0


@compiled
def _stretch_gaps(odds: float, best: float, widest_gap: float, mean: FloatArray, stretched: FloatArray) -> None:
    """Write means below 0 by `odds` times the gap to the best, in units of half the widest gap."""
    for i in range(mean.size):
        stretched[i] = -odds * ((0.5 * best - 0.5 * mean[i]) / widest_gap)


@compiled
def _average_error(power: float, std: FloatArray, importance: FloatArray, share: FloatArray) -> float:
    """Return the sum of importance std^(2 power) share^-power; arms without spread have no error."""
    total = 0.0
    for i in range(std.size):
        if std[i] > 0.0 and importance[i] > 0.0:
            if power == 0.5:
                total += importance[i] * std[i] / math.sqrt(share[i]) if share[i] > 0.0 else np.inf
            else:
                total += importance[i] * (std[i] * std[i] / share[i]) ** power if share[i] > 0.0 else np.inf
    return total


@compiled
def _write_relative_variances(std: FloatArray, variance: FloatArray) -> float:
    """Write variances in units of the largest; return their sum, 0 if no arm has spread."""
    widest, total = 0.0, 0.0
    for i in range(std.size):
        widest = max(widest, std[i])
    for i in range(std.size):
        relative = std[i] / widest if widest > 0.0 else 0.0
        variance[i] = relative * relative
        total += variance[i]
    return total


@compiled
def _allocate_for_every_arm(
    kept: float, mean: FloatArray, std: FloatArray, floor: FloatArray, work: FloatArray, share: FloatArray
) -> None:
    """Write `kept` of the people in proportion to the variances, and the rest to the best arm.

    That is the most reward such that no arm's error exceeds the smallest possible largest error / sqrt(kept). With
    floors, the best design gives each arm max(floor, rate * variance).
    """
    variance = work[0]
    total = _write_relative_variances(std, variance)
    n_arms = std.size
    for i in range(n_arms):
        share[i] = floor[i]
    if total > 0.0:
        rate = _rate_above_floors(variance, floor)
        for i in range(n_arms):
            share[i] = max(floor[i], kept * (rate * variance[i]))
    _give_rest_to_best(max(1.0 - sum_of(share), 0.0), mean, share)


@compiled
def _rate_above_floors(variance: FloatArray, floor: FloatArray) -> float:
    """Return the rate at which max(floor, rate * variance) adds up to 1, for floors that add up to at most 1.

    Each pass gives up the arms that are on their floors; the rate only falls, so no arm comes back.
    """
    rate = np.inf
    for _ in range(variance.size + 1):
        free, total = 1.0, 0.0
        for i in range(variance.size):
            if variance[i] > 0.0 and (rate == np.inf or rate * variance[i] > floor[i]):
                total += variance[i]
            else:
                free -= floor[i]
        if total == 0.0 or free <= 0.0:
            return 0.0
        following = free / total
        if following == rate:
            break
        rate = following
    return rate


@compiled
def _allocate_for_best_arm(
    kept: float,
    smallest_difference: float,
    mean: FloatArray,
    std: FloatArray,
    floor: FloatArray,
    work: FloatArray,
    share: FloatArray,
) -> None:
    """Write the shares with the most reward that tell the best arm b from each other arm with `kept` of the surety.

    The surety is the smallest gap_i^2 / (var_i / share_i + var_b / share_b): squared differences in units of their
    noise. Differences below the smallest that matters count as that one, so ties are told apart only to within it.
    """
    variance, squared_gap, scratch = work[0], work[1], work[2]
    n_arms, best = mean.size, _best_of(mean)
    total = _write_relative_variances(std, variance)
    for i in range(n_arms):
        share[i] = floor[i]
    if n_arms == 1 or total == 0.0:
        _give_rest_to_best(max(1.0 - sum_of(share), 0.0), mean, share)
        return
    widest = 0.0
    for i in range(n_arms):
        widest = max(widest, std[i])
    smallest = smallest_difference / widest
    if smallest_difference <= 0.0:
        smallest = SMALLEST_DIFFERENCE * math.sqrt(total / n_arms)
    # In units of the smallest difference, so that no square overflows or vanishes.
    nearest = np.inf
    for i in range(n_arms):
        squared_gap[i] = max(mean[best] / widest - mean[i] / widest, smallest)
        if i != best:
            nearest = min(nearest, squared_gap[i])
    for i in range(n_arms):
        gap = min(squared_gap[i] / nearest, 1e100)
        squared_gap[i] = gap * gap
    if sum_of(floor) > 0.0:
        _allocate_for_best_arm_above_floors(kept, best, variance, squared_gap, floor, scratch, share)
        return
    # With x = var_b / share_b in units of the surety, the other arms need var_i / (squared_gap_i - x) each, and the
    # best arm var_b / x. The best design minimises their sum; the most reward is where the sum has grown by 1 / kept on
    # the side of small x, where the best arm has more and all others less.
    turn = _turning_point(best, variance, squared_gap)
    if variance[best] == 0.0:
        needed = _needed(0.0, best, variance, squared_gap)[0]
        for i in range(n_arms):
            share[i] = kept * variance[i] / squared_gap[i] / needed if i != best else 0.0
        share[best] = max(1.0 - sum_of(share), 0.0)
        return
    fewest = _needed(turn, best, variance, squared_gap)[0]
    wanted = fewest / kept
    x = variance[best] / wanted if kept < 1.0 else turn
    for _ in range(_MAX_STEPS):
        # Convex and falling in x: from the left, Newton's method climbs to the solution.
        people, slope = _needed(x, best, variance, squared_gap)
        if people <= wanted or slope >= 0.0:
            break
        following = min(x + (wanted - people) / slope, turn)
        if following <= x * (1.0 + 1e-16):
            break
        x = following
    for i in range(n_arms):
        if i != best:
            share[i] = variance[i] / (squared_gap[i] - x) / wanted if variance[i] > 0.0 else 0.0
    share[best] = 0.0
    share[best] = max(1.0 - sum_of(share), 0.0)


@compiled
def _needed(x: float, best: int, variance: FloatArray, squared_gap: FloatArray) -> tuple[float, float]:
    """Return the people needed per unit of surety if var_b / share_b is x of it, and the derivative in x."""
    people, slope = 0.0, 0.0
    if variance[best] > 0.0:
        people, slope = variance[best] / x, -variance[best] / (x * x)
    for i in range(variance.size):
        if i != best and variance[i] > 0.0:
            room = squared_gap[i] - x
            people += variance[i] / room
            slope += variance[i] / (room * room)
    return people, slope


@compiled
def _turning_point(best: int, variance: FloatArray, squared_gap: FloatArray) -> float:
    """Return the x at which the fewest people are needed (Glynn and Juneja 2004).

    Where x sqrt(sum var_i / (squared_gap_i - x)^2), convex and increasing, reaches std_b. One arm of the sum alone
    reaches it at or right of there, from where Newton's method descends to it.
    """
    if variance[best] == 0.0:
        return 0.0
    std_best = math.sqrt(variance[best])
    x, bound = np.inf, np.inf
    for i in range(variance.size):
        if i != best:
            bound = min(bound, squared_gap[i])
            if variance[i] > 0.0:
                x = min(x, std_best * squared_gap[i] / (math.sqrt(variance[i]) + std_best))
    if x == np.inf:
        return bound
    for _ in range(_MAX_STEPS):
        second, third = 0.0, 0.0
        for i in range(variance.size):
            if i != best and variance[i] > 0.0:
                room = squared_gap[i] - x
                second += variance[i] / (room * room)
                third += variance[i] / (room * room * room)
        root = math.sqrt(second)
        following = x - (x * root - std_best) / (root + x * third / root)
        if not following < x:
            break
        done = x - following <= _SMALL_STEP * x
        x = following
        if done:
            break
    return min(x, bound)


@compiled
def _allocate_for_best_arm_above_floors(
    kept: float,
    best: int,
    variance: FloatArray,
    squared_gap: FloatArray,
    floor: FloatArray,
    scratch: FloatArray,
    share: FloatArray,
) -> None:
    """Do as `_allocate_for_best_arm` with floors, by bisection: the largest surety, then the largest share of the best.

    For a surety s and a share of the best arm, another arm needs max(floor_i, s var_i / (squared_gap_i - s var_b /
    share_b)); the sum is convex in the share of the best arm.
    """
    most = 1.0 - (sum_of(floor) - floor[best])
    low, high = 0.0, 1.0
    while _best_share(high, True, best, most, variance, squared_gap, floor, scratch) > 0.0 and high < 1e300:
        low, high = high, 4.0 * high
    while low == 0.0 and high > TINY:
        if _best_share(0.25 * high, True, best, most, variance, squared_gap, floor, scratch) > 0.0:
            low = 0.25 * high
        else:
            high = 0.25 * high
    for _ in range(_MAX_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _best_share(middle, True, best, most, variance, squared_gap, floor, scratch) > 0.0:
            low = middle
        else:
            high = middle
    surety = kept * low
    given = _best_share(surety, False, best, most, variance, squared_gap, floor, scratch)
    given = given if given > 0.0 else _best_share(surety, True, best, most, variance, squared_gap, floor, scratch)
    _people_at(given, surety, best, variance, squared_gap, floor, share)
    share[best] = 0.0
    share[best] = max(1.0 - sum_of(share), 0.0)


@compiled
def _people_at(
    given: float,
    surety: float,
    best: int,
    variance: FloatArray,
    squared_gap: FloatArray,
    floor: FloatArray,
    share: FloatArray,
) -> tuple[float, float]:
    """Write what each arm needs if the best arm has a share; return their sum and its derivative in that share."""
    x = surety * variance[best] / given if given > 0.0 else np.inf if variance[best] > 0.0 else 0.0
    people, slope = given, 1.0
    share[best] = given
    for i in range(variance.size):
        if i == best:
            continue
        share[i] = floor[i]
        if variance[i] > 0.0 or variance[best] > 0.0:
            room = squared_gap[i] - x
            if room < 0.0 or (room == 0.0 and variance[i] > 0.0):
                return np.inf, -np.inf
            need = surety * variance[i] / room if variance[i] > 0.0 else 0.0
            if need > floor[i]:
                share[i] = need
                slope -= need / room * x / given if given > 0.0 else 0.0
        people += share[i]
    return people, slope


@compiled
def _best_share(
    surety: float,
    smallest: bool,
    best: int,
    most: float,
    variance: FloatArray,
    squared_gap: FloatArray,
    floor: FloatArray,
    scratch: FloatArray,
) -> float:
    """Return the share of the best arm at which the fewest people are needed, or the largest at which all fit; or 0."""
    low, high = floor[best], most
    for _ in range(_MAX_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _people_at(middle, surety, best, variance, squared_gap, floor, scratch)[1] < 0.0:
            low = middle
        else:
            high = middle
    turn = high
    if _people_at(turn, surety, best, variance, squared_gap, floor, scratch)[0] > 1.0 + 1e-15:
        return 0.0
    if smallest:
        return turn if turn > 0.0 else TINY
    low, high = turn, most
    for _ in range(_MAX_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _people_at(middle, surety, best, variance, squared_gap, floor, scratch)[0] <= 1.0:
            low = middle
        else:
            high = middle
    return low if low > 0.0 else TINY
