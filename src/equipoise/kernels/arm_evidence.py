"""Compute evidence about arms from their moments, one column per arm: about one mean, and about the difference of two.

One-sided evidence that a mean is above a value falls as the value grows; evidence that it is below grows. Everything
else is read from these: an interval holds the values against which neither reaches a threshold. Where the range of
rewards is declared they are the wealth of bets (`wealth`), elsewhere twice the evidence of a t statistic on its side
(`t_mixture`), without the effect of skewness.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.t_mixture import (
    least_without_skewness,
    log_t_evidence,
    most_with_skewness,
    skewness_bounds,
    t_radius,
)
from equipoise.kernels.wealth import log_wealth, lowest_mean

(
    COUNT,
    LOW,
    HIGH,
    SCALE,
    LOW_Y1,
    LOW_P1,
    LOW_Y2,
    LOW_P2,
    HIGH_Y1,
    HIGH_P1,
    HIGH_Y2,
    HIGH_P2,
    MEAN,
    STD,
    SKEW,
    TUNED,
) = range(16)
ROWS = 16
"""Rows per arm: rewards counted; the ends of their range, infinite where there is none; the unit of the points; the
points of `wealth.points` from the low end and from the high end; mean, std (n - 1), skewness (NaN if unknown); and the
number of rewards at which bets are narrowest."""

FEWEST, FEWEST_OF_EVIDENCE = 30.0, 10.0
"""With fewer rewards no normal approximation gives an interval, or the difference of two arms; but evidence begins
earlier, with a spread that counts as larger than it seems."""
PER_SQUARED_SKEWNESS = 16.0
"""Skewed rewards need this many times the squared skewness; of two arms, that of the more skewed."""

KEPT_FOR_LATER = 0.1
"""Share of a failure probability kept for arms that are added later."""

_LOG_2 = math.log(2.0)
_NOTHING = 0.0
_MOST_STEPS = 100
_SMALLEST_GAIN, _LARGEST_DOUBT = 1e-8, 1e-4
"""The search for the least evidence ends when another step promises less than this, and cannot bring more than that."""
_MOST_GAINED = 1e4


@compiled
def is_enough(arms: FloatArray, a: int) -> bool:
    """Return whether an arm has the rewards that a normal approximation takes, given their skewness, as evidence."""
    skew = arms[SKEW, a]
    if not arms[STD, a] > 0.0 or np.isnan(skew):
        return False
    return bool(arms[COUNT, a] >= max(FEWEST_OF_EVIDENCE, PER_SQUARED_SKEWNESS * skew * skew))


@compiled
def _error(arms: FloatArray, a: int) -> float:
    """Return the standard error of a mean, which counts as larger the fewer rewards there are below `FEWEST`.

    A few rewards of a long tail may all come from its other end, with a spread far too small. So evidence begins
    gradually: an arm that differs by many standard errors need not wait, and one that differs by a few has to.
    """
    n = arms[COUNT, a]
    few = max(1.0, FEWEST / n)
    return float(few * few * arms[STD, a] / math.sqrt(n))


@compiled
def _t_evidence(arms: FloatArray, a: int, value: float, sign: float) -> float:
    """Return the log evidence that the mean is above the value (sign 1) or below it (-1), from the t statistic."""
    n = arms[COUNT, a]
    if not is_enough(arms, a):
        return _NOTHING
    least, largest = skewness_bounds(sign * arms[SKEW, a] / math.sqrt(n))
    h = least_without_skewness(sign * (arms[MEAN, a] - value) / _error(arms, a), least, largest)
    return _LOG_2 + log_t_evidence(n, max(h, 0.0))


@compiled
def log_above(arms: FloatArray, a: int, value: float) -> float:
    """Return the log evidence that an arm's mean is above a value."""
    low = arms[LOW, a]
    if not low > -np.inf:
        return _t_evidence(arms, a, value, 1.0)
    if value < low:
        return np.inf
    top = (arms[HIGH, a] - low) / arms[SCALE, a]
    m = min((value - low) / arms[SCALE, a], top)
    return log_wealth(
        arms[COUNT, a], arms[LOW_Y1, a], arms[LOW_P1, a], arms[LOW_Y2, a], arms[LOW_P2, a], m, arms[TUNED, a], top
    )


@compiled
def log_below(arms: FloatArray, a: int, value: float) -> float:
    """Return the log evidence that an arm's mean is below a value."""
    high = arms[HIGH, a]
    if not high < np.inf:
        return _t_evidence(arms, a, value, -1.0)
    if value > high:
        return np.inf
    top = (high - arms[LOW, a]) / arms[SCALE, a]
    m = min((high - value) / arms[SCALE, a], top)
    return log_wealth(
        arms[COUNT, a], arms[HIGH_Y1, a], arms[HIGH_P1, a], arms[HIGH_Y2, a], arms[HIGH_P2, a], m, arms[TUNED, a], top
    )


@compiled
def write_intervals(arms: FloatArray, failure: FloatArray, low: FloatArray, high: FloatArray) -> None:
    """Write the ends of each arm's interval; NaN where nothing can be said, and the range's end where it bounds it."""
    for a in range(arms.shape[1]):
        n, mean = arms[COUNT, a], arms[MEAN, a]
        low[a], high[a] = np.nan, np.nan
        if not n > 0.0:
            continue
        threshold = _LOG_2 - math.log(failure[a])
        from_below, from_above = arms[LOW, a] > -np.inf, arms[HIGH, a] < np.inf
        if not (from_below and from_above) and n >= FEWEST and is_enough(arms, a):
            radius = t_radius(n, threshold - _LOG_2)
            least, largest = skewness_bounds(arms[SKEW, a] / math.sqrt(n))
            below, above = most_with_skewness(radius, least, largest), most_with_skewness(radius, -largest, -least)
            if max(below, above) < np.inf:
                low[a], high[a] = mean - _error(arms, a) * below, mean + _error(arms, a) * above
        top = (arms[HIGH, a] - arms[LOW, a]) / arms[SCALE, a]
        if from_below:
            y1, p1, y2, p2 = arms[LOW_Y1, a], arms[LOW_P1, a], arms[LOW_Y2, a], arms[LOW_P2, a]
            end = arms[LOW, a] + arms[SCALE, a] * lowest_mean(n, y1, p1, y2, p2, threshold, arms[TUNED, a], top)
            low[a] = min(end, mean)
        if from_above:
            y1, p1, y2, p2 = arms[HIGH_Y1, a], arms[HIGH_P1, a], arms[HIGH_Y2, a], arms[HIGH_P2, a]
            end = arms[HIGH, a] - arms[SCALE, a] * lowest_mean(n, y1, p1, y2, p2, threshold, arms[TUNED, a], top)
            high[a] = max(end, mean)
        if low[a] > high[a]:  # the moments are none that rewards can have
            low[a], high[a] = np.nan, np.nan


@compiled
def welch(arms: FloatArray, a: int, b: int) -> tuple[float, float, float, float, float]:
    """Return the difference of means a - b, its standard error, and Welch's degrees of freedom plus 1.

    After these the least and the largest skewness that the difference may have: the third cumulants of both means add.
    """
    n_a, n_b = arms[COUNT, a], arms[COUNT, b]
    error_a, error_b = arms[STD, a] / math.sqrt(n_a), arms[STD, b] / math.sqrt(n_b)
    error = math.hypot(error_a, error_b)
    part_a, part_b = (error_a / error) ** 2, (error_b / error) ** 2
    freedom = 1.0 / (part_a * part_a / (n_a - 1.0) + part_b * part_b / (n_b - 1.0))
    least_a, largest_a = skewness_bounds(arms[SKEW, a] / math.sqrt(n_a) * part_a * (error_a / error))
    least_b, largest_b = skewness_bounds(arms[SKEW, b] / math.sqrt(n_b) * part_b * (error_b / error))
    return arms[MEAN, a] - arms[MEAN, b], error, freedom + 1.0, least_a - largest_b, largest_a - least_b


@compiled
def is_narrow(arms: FloatArray, a: int, b: int) -> bool:
    """Return whether both arms have the rewards that Welch's statistic takes.

    Both need those of the more skewed: an arm whose few rewards lack the long tail looks bad, gets few more, and goes
    on looking so, while the others show what it lacks.
    """
    if not (is_enough(arms, a) and is_enough(arms, b)):
        return False
    skew = max(abs(arms[SKEW, a]), abs(arms[SKEW, b]))
    return bool(min(arms[COUNT, a], arms[COUNT, b]) >= max(FEWEST, PER_SQUARED_SKEWNESS * skew * skew))


@compiled
def _both(arms: FloatArray, a: int, b: int, factor: float, shift: float, x: float) -> float:
    """Return the joint log evidence that a is above factor * x + shift and b below x."""
    return log_above(arms, a, factor * x + shift) + log_below(arms, b, x)


@compiled
def _noise(arms: FloatArray, a: int) -> float:
    """Return the squared standard error of a mean."""
    return arms[STD, a] * arms[STD, a] / arms[COUNT, a] if arms[COUNT, a] > 1.0 else 0.0


@compiled
def _has_wealth(arms: FloatArray, a: int, b: int) -> bool:
    """Return whether both parts of the joint evidence that a is larger are wealth, which is convex in the mean."""
    return bool(arms[LOW, a] > -np.inf and arms[HIGH, b] < np.inf)


@compiled
def _least_both(arms: FloatArray, a: int, b: int, factor: float, shift: float, enough: float) -> float:
    """Return the least joint evidence over all means of b, or any that is below `enough`.

    The least often lies beyond the mean of b, or that of a, where the evidence about the other arm alone falls below 1.
    Wealth is convex in the mean (but for the weights of stakes, which hardly change), so steps downhill and parabolas
    find it.
    """
    lowest, highest = max(arms[LOW, b], (arms[LOW, a] - shift) / factor), arms[HIGH, b]
    if lowest > highest:
        return np.inf  # no two means in the range are that close
    mean_b, at_a = arms[MEAN, b], (arms[MEAN, a] - shift) / factor
    gap = at_a - mean_b
    noise_a = max(_noise(arms, a) / (factor * factor), 1e-6 * gap * gap)
    noise_b = max(_noise(arms, b), 1e-6 * gap * gap)
    part = noise_b / (noise_a + noise_b)
    middle = mean_b + part * gap
    step = min(math.sqrt(noise_a * part), 0.25 * gap)
    if highest - lowest < np.inf:
        step = min(step, 0.25 * (highest - lowest))
    if not lowest < middle < highest:
        middle = 0.5 * (max(lowest, mean_b) + min(highest, at_a))
    at_middle = _both(arms, a, b, factor, shift, middle)
    if not at_middle >= enough:
        return at_middle
    edges = np.inf
    if not _has_wealth(arms, a, b):  # the evidence of t is convex up to t = sqrt(n) only
        edges = min(_both(arms, a, b, factor, shift, mean_b), _both(arms, a, b, factor, shift, at_a))
    left, right = max(lowest, middle - step), min(highest, middle + step)
    at_left, at_right = _both(arms, a, b, factor, shift, left), _both(arms, a, b, factor, shift, right)
    for _ in range(_MOST_STEPS):
        step *= 2.0
        if at_left < at_middle and left > lowest:
            right, at_right, middle, at_middle = middle, at_middle, left, at_left
            left = max(lowest, middle - step)
            at_left = _both(arms, a, b, factor, shift, left)
        elif at_right < at_middle and right < highest:
            left, at_left, middle, at_middle = middle, at_middle, right, at_right
            right = min(highest, middle + step)
            at_right = _both(arms, a, b, factor, shift, right)
        else:
            break
        if not at_middle >= enough:
            return at_middle
    if not left < middle < right:  # at an end of the range: is it lower just beside it?
        beside = middle + (1e-6 * (right - left) if middle == left else 1e-6 * (left - right))
        at_beside = _both(arms, a, b, factor, shift, beside)
        if not at_beside < at_middle:
            return min(at_middle, edges)
        middle, at_middle = beside, at_beside
    stretch, last = 1.0, 0.0
    for _ in range(_MOST_STEPS):
        # To the lowest point of the parabola through the three. Steps in one direction mean that the end ahead is too
        # far away for a good parabola: stretch them until they get past the lowest point.
        fall, rise = (at_middle - at_left) / (middle - left), (at_right - at_middle) / (right - middle)
        bend = (rise - fall) / (right - left)
        move = 0.5 * (left - middle - fall / bend)
        if not bend < np.inf:
            move = 0.5 * (right - middle if at_right > at_left else left - middle)
        elif not bend * move * move > _SMALLEST_GAIN * (1.0 + abs(at_middle)):
            # A convex function lies above the lines through two of its points: how much lower can it be?
            most = max(-fall * (right - middle), rise * (middle - left))
            if not most > _LARGEST_DOUBT * (1.0 + abs(at_middle)):
                break
            move = math.sqrt(0.1 * _LARGEST_DOUBT * (1.0 + abs(at_middle)) / bend)
            if right - middle < middle - left:
                move = -move
        stretch = min(2.0 * stretch, 64.0) if move * last > 0.0 else 1.0
        last = move
        ahead = right - middle if move > 0.0 else left - middle
        move *= stretch
        if not abs(move) < abs(0.5 * ahead):
            move = 0.5 * ahead
        x = middle + move
        if x == middle:
            break
        at_x = _both(arms, a, b, factor, shift, x)
        if at_x <= at_middle:
            if move < 0.0:
                right, at_right = middle, at_middle
            else:
                left, at_left = middle, at_middle
            middle, at_middle = x, at_x
        elif move < 0.0:
            left, at_left = x, at_x
        else:
            right, at_right = x, at_x
        if not at_middle >= enough:
            break
    return min(at_left, at_middle, at_right, edges)


@compiled
def log_joint(arms: FloatArray, a: int, b: int, factor: float, shift: float, enough: float) -> float:
    """Return the log evidence that mean a is above factor * mean b + shift, for a factor > 0, whatever the mean of b.

    Both means are unknown, so it is the least joint evidence over all values of the second. The product of two arms'
    martingales is a martingale under any way to choose whose turn it is. If it is below `enough`, the result may be any
    number between it and `enough`.
    """
    if not (arms[COUNT, a] > 0.0 and arms[COUNT, b] > 0.0 and arms[MEAN, a] > factor * arms[MEAN, b] + shift):
        return _NOTHING
    return _least_both(arms, a, b, factor, shift, enough)


@compiled
def log_larger(arms: FloatArray, a: int, b: int, shift: float, guaranteed: bool) -> float:
    """Return the log evidence that mean a exceeds mean b by more than `shift`; 0 while nothing can be said.

    By Welch's statistic where both arms have enough rewards for it, unless a guarantee is asked for; otherwise by the
    joint evidence of both.
    """
    return _log_larger(arms, a, b, shift, guaranteed, -np.inf)


@compiled
def _log_larger(arms: FloatArray, a: int, b: int, shift: float, guaranteed: bool, enough: float) -> float:
    if not guaranteed and is_narrow(arms, a, b):
        difference, error, n, least, largest = welch(arms, a, b)
        h = least_without_skewness((difference - shift) / error, least, largest)
        return _LOG_2 + log_t_evidence(n, max(h, 0.0))
    return log_joint(arms, a, b, 1.0, shift, enough)


@compiled
def least_difference(arms: FloatArray, a: int, b: int, log_threshold: float, guaranteed: bool) -> float:
    """Return the lower end for mean a - mean b: the largest shift against which one-sided evidence reaches a threshold.

    NaN while nothing can be said; the difference of the declared ends where the evidence never reaches it.
    """
    if not guaranteed and is_narrow(arms, a, b):
        difference, error, n, least, largest = welch(arms, a, b)
        return difference - error * most_with_skewness(t_radius(n, log_threshold - _LOG_2), least, largest)
    if not (arms[COUNT, a] > 0.0 and arms[COUNT, b] > 0.0):
        return np.nan
    difference = arms[MEAN, a] - arms[MEAN, b]
    bottom = arms[LOW, a] - arms[HIGH, b]
    if not bottom > -np.inf:
        # Without both ends of the range the evidence may stay at nothing: find out far away.
        width = abs(arms[MEAN, a]) + abs(arms[MEAN, b]) + arms[STD, a] + arms[STD, b]
        bottom = difference - 1e6 * width
        if not log_joint(arms, a, b, 1.0, bottom, log_threshold) >= log_threshold:
            return np.nan
    noise = math.sqrt(_noise(arms, a) + _noise(arms, b))
    step = max(1.5 * noise * math.sqrt(2.0 * max(log_threshold, 0.5)), 1e-9 * (difference - bottom))
    least = min(0.0, _both(arms, a, b, 1.0, difference, arms[MEAN, b]))
    goal = math.sqrt(max(log_threshold - least, 0.0))
    if not goal > 0.0:
        return float(difference)
    high, at_high, low, at_low = difference, -goal, difference, -goal
    for _ in range(_MOST_STEPS):
        low = max(low - step, bottom)
        at_low = _root_gain(arms, a, b, 1.0, low, least) - goal
        if at_low >= 0.0:
            return _crossing(arms, a, b, False, least, goal, low, at_low, high, at_high)
        if low <= bottom:
            break
        high, at_high = low, at_low
        step *= 2.0
    return float(bottom)


@compiled
def _root_gain(arms: FloatArray, a: int, b: int, factor: float, shift: float, least: float) -> float:
    """Return the root of what the joint evidence has gained, nearly a straight line in the shift."""
    return math.sqrt(min(max(log_joint(arms, a, b, factor, shift, least) - least, 0.0), _MOST_GAINED))


@compiled
def _crossing(
    arms: FloatArray,
    a: int,
    b: int,
    is_ratio: bool,
    least: float,
    goal: float,
    low: float,
    at_low: float,
    high: float,
    at_high: float,
) -> float:
    """Return the largest shift, or log of the factor, with the evidence of the goal: the Illinois method."""
    side = 0
    for _ in range(_MOST_STEPS):
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
        if at_low <= 1e-7 or high - low <= 1e-14 * (abs(low) + abs(high)):
            break
        if is_ratio:
            there = _root_gain(arms, a, b, math.exp(middle), 0.0, least) - goal
        else:
            there = _root_gain(arms, a, b, 1.0, middle, least) - goal
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


@compiled
def least_ratio(arms: FloatArray, a: int, b: int, log_threshold: float) -> float:
    """Return the lower end for mean a / mean b: the largest factor against which joint evidence reaches a threshold.

    For rewards that cannot be negative: 0 if the evidence reaches it against no factor, NaN if nothing can be said.
    """
    mean_a, mean_b = arms[MEAN, a], arms[MEAN, b]
    if not (arms[COUNT, a] > 0.0 and arms[COUNT, b] > 0.0 and arms[LOW, a] >= 0.0 and arms[LOW, b] >= 0.0):
        return np.nan
    if not mean_a > 0.0:
        return 0.0
    least = min(0.0, log_above(arms, a, mean_a) + log_below(arms, b, mean_b))
    goal = math.sqrt(max(log_threshold - least, 0.0))
    if mean_b > 0.0:
        high = math.log(mean_a) - math.log(mean_b)
        if not goal > 0.0:
            return float(mean_a / mean_b)
    else:
        # Against a mean of b so small that its rewards say nothing: with n zeros they do below range / n only.
        high = math.log(mean_a) - math.log(1e-3 * arms[SCALE, b] / arms[COUNT, b])
    low, at_low, at_high, step = high, -goal, -goal, 0.1
    for _ in range(_MOST_STEPS):
        low = high - step
        if low < -600.0:
            break
        at_low = _root_gain(arms, a, b, math.exp(low), 0.0, least) - goal
        if at_low >= 0.0:
            return math.exp(_crossing(arms, a, b, True, least, goal, low, at_low, high, at_high))
        high, at_high = low, at_low
        step *= 2.0
    return 0.0


@compiled
def write_differences(
    arms: FloatArray, first: IntArray, second: IntArray, failure: FloatArray, guaranteed: bool, out: FloatArray
) -> None:
    """Write for each pair both ends of mean first - mean second, and the log evidence that it is above and below 0."""
    for k in range(first.size):
        a, b = first[k], second[k]
        threshold = _LOG_2 - math.log(failure[k])
        out[0, k] = least_difference(arms, a, b, threshold, guaranteed)
        out[1, k] = -least_difference(arms, b, a, threshold, guaranteed)
        out[2, k] = log_larger(arms, a, b, 0.0, guaranteed)
        out[3, k] = log_larger(arms, b, a, 0.0, guaranteed)


@compiled
def share_of_other(best: int, other: int, n_first_others: int) -> float:
    """Return the share of the failure probability for a false statement about the best arm and this other one.

    The others among the first arms share what is not kept for later ones, and the j-th later arm has the part
    1 / (j (j + 1)) of what is. For each best arm that adds up to 1 at most, and no share changes when arms are added.
    `n_first_others` is the number of arms there were at first, less one.
    """
    if other > n_first_others:
        later = other - n_first_others
        return KEPT_FOR_LATER / (later * (later + 1.0))
    n_others = n_first_others if best <= n_first_others else n_first_others + 1
    return (1.0 - KEPT_FOR_LATER) / n_others


@compiled
def write_log_beaten(
    arms: FloatArray, candidates: IntArray, others: IntArray, n_first_others: int, guaranteed: bool, out: FloatArray
) -> None:
    """Write for each candidate the log of the weighted average evidence that others are better.

    The best arm is beaten by none, so each part is evidence against a true hypothesis, and so is their average: the
    probability that it ever reaches 1 / delta is at most delta, without a union over pairs. The weights are those of
    `share_of_other`. `others` may be some of the arms; the rest count as no evidence.
    """
    for i in range(candidates.size):
        a = candidates[i]
        # First the one that is likely to say most. What all others below a 150th of it could add is left out.
        first, furthest = -1, 0.0
        for j in range(others.size):
            b = others[j]
            gap = arms[MEAN, b] - arms[MEAN, a]
            apart = gap / math.sqrt(_noise(arms, a) + _noise(arms, b))
            if gap > 0.0 and not apart <= furthest:
                first, furthest = b, apart
        best, total = -np.inf, 0.0
        if first >= 0:
            weight = math.log(share_of_other(a, first, n_first_others))
            best, total = weight + _log_larger(arms, first, a, 0.0, guaranteed, -np.inf), 1.0
        for j in range(others.size):
            b = others[j]
            if b == first or not arms[MEAN, b] > arms[MEAN, a]:
                continue
            weight = math.log(share_of_other(a, b, n_first_others))
            enough = best - 5.0 - math.log(others.size)
            found = weight + _log_larger(arms, b, a, 0.0, guaranteed, enough - weight)
            if found > best:
                total = 1.0 + total * math.exp(best - found)
                best = found
            elif found > enough:
                total += math.exp(found - best)
        out[i] = best + math.log(total) if total > 0.0 else -np.inf
