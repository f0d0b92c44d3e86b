"""Describe and draw what is believed of arms given their rewards, and choose by it: Beta for yes/no, Student otherwise.

Both have proper priors, learnt from all arms: an arm whose first rewards are all the same is not known without noise.
The reference prior says that it is, and a policy that samples from it never pulls such an arm again.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.pooling import common_success
from equipoise.kernels.random import POSTERIOR, log_gamma_draw, normal

# A spread smaller than the largest by this factor is rounding error.
_ROUNDING = 1e-9
_TINY = 1e-300
_HALVINGS = 40


@compiled
def describe(pulls: IntArray, mean: FloatArray, std: FloatArray, first: FloatArray, second: FloatArray) -> float:
    """Write the posterior of every arm; each needs two rewards. Return the reward of a success, or 0.

    If rewards are failures and successes, `first` and `second` are the parameters of a Beta posterior of the rate.
    Otherwise they are a spread and its degrees of freedom: freedom * spread^2 / variance has a chi-square distribution.
    """
    success = common_success(pulls, mean, std)
    if success != 0.0:
        _describe_rates(success, pulls, mean, first, second)
    else:
        _describe_spreads(pulls, mean, std, first, second)
    return success


@compiled
def _describe_rates(success: float, pulls: IntArray, mean: FloatArray, alpha: FloatArray, beta: FloatArray) -> None:
    """Write Beta posteriors. The prior's mean is the rate of all arms, and its weight one success or one failure.

    The rarer of the two: with rare successes, a prior of one success and one failure would take hundreds of pulls of
    every arm to unlearn.
    """
    successes, total = 0.5, 1.0
    for i in range(pulls.size):
        successes += pulls[i] * (mean[i] / success)
        total += pulls[i]
    rarer = min(successes, total - successes)
    for i in range(pulls.size):
        own = pulls[i] * (mean[i] / success)
        alpha[i] = successes / rarer + own
        beta[i] = (total - successes) / rarer + (pulls[i] - own)


@compiled
def _describe_spreads(
    pulls: IntArray, mean: FloatArray, std: FloatArray, spread: FloatArray, freedom: FloatArray
) -> None:
    """Write posteriors of spreads. The prior counts as one more degree of freedom, of typical spread.

    An arm whose n rewards were all the same may still get another one, with a probability of some 1/n. If that is as
    far away as the rewards of other arms are, by D, the arm's variance is D^2 / n; but it is no more than is typical.
    """
    n_arms = pulls.size
    unit, centre = 0.0, 0.0
    for i in range(n_arms):
        unit = max(unit, std[i])
        centre += mean[i] / n_arms
    if unit == 0.0:  # no arm has shown any spread: only the differences between arms give a scale
        for i in range(n_arms):
            unit = max(unit, abs(mean[i] - centre))
        for i in range(n_arms):
            freedom[i] = pulls[i]
            spread[i] = (unit if unit > 0.0 else 1.0) / math.sqrt(freedom[i])
        return
    # Of the rewards of all arms with any spread: their number, and the sums of distances from the centre and squares.
    total, distances, squares = 0.0, 0.0, 0.0
    logarithm, n_spread = 0.0, 0
    for i in range(n_arms):
        if std[i] > _ROUNDING * unit:
            ratio, distance = std[i] / unit, (mean[i] - centre) / unit
            total += pulls[i]
            distances += pulls[i] * distance
            squares += pulls[i] * distance * distance + (pulls[i] - 1.0) * ratio * ratio
            logarithm += math.log(ratio)
            n_spread += 1
    typical = math.exp(2.0 * logarithm / n_spread)
    for i in range(n_arms):
        freedom[i] = pulls[i]
        if std[i] > _ROUNDING * unit:
            ratio = std[i] / unit
            spread[i] = unit * math.sqrt((typical + (pulls[i] - 1.0) * ratio * ratio) / freedom[i])
        else:
            value = (mean[i] - centre) / unit
            # How far those rewards are from this arm's: squares over sum, which is exact if they have two values.
            sum_away = max(abs(distances - total * value), _TINY)
            away = (squares - 2.0 * value * distances + total * value * value) / sum_away
            variance = away * away / freedom[i]
            spread[i] = unit * math.sqrt(variance if variance < typical else typical)


@compiled
def draw_beliefs(
    key: np.uint64, index: int, arm: int, success: float, n: int, mean: float, first: float, second: float
) -> tuple[float, float]:
    """Return one posterior draw of (mean, std) of an arm, as described by `describe`."""
    place, count, zero, one = np.uint64(arm), np.uint64(index), np.uint64(0), np.uint64(1)
    if success != 0.0:
        log_successes, _ = log_gamma_draw(first, key, zero, place, count, POSTERIOR, 1)
        log_failures, _ = log_gamma_draw(second, key, one, place, count, POSTERIOR, 1)
        odds = math.exp(min(log_successes - log_failures, 700.0))
        rate = odds / (1.0 + odds)
        return success * rate, abs(success) * math.sqrt(rate * (1.0 - rate))
    log_gamma, spare = log_gamma_draw(0.5 * second, key, zero, place, count, POSTERIOR, 1)
    std = first * math.sqrt(0.5 * second / max(math.exp(log_gamma), _TINY))
    return mean + std / math.sqrt(n) * normal(spare), std


@compiled
def add_chances_to_be_best(
    weight: float,
    key: np.uint64,
    draws: int,
    success: float,
    pulls: IntArray,
    mean: FloatArray,
    first: FloatArray,
    second: FloatArray,
    probability: FloatArray,
) -> None:
    """Add to each arm's probability the share of draws in which its mean is the largest, times a weight."""
    for k in range(draws):
        arm, most = 0, -np.inf
        for i in range(pulls.size):
            drawn, _ = draw_beliefs(key, k, i, success, pulls[i], mean[i], first[i], second[i])
            if drawn > most:
                arm, most = i, drawn
        probability[arm] += weight / draws


@compiled
def chance_of_small_difference(
    small: float,
    key: np.uint64,
    draws: int,
    success: float,
    pulls: IntArray,
    mean: FloatArray,
    first: FloatArray,
    second: FloatArray,
) -> float:
    """Return the share of draws in which no two means differ by `small` or more; other draws than those of choices."""
    n_small = 0
    for k in range(draws, 2 * draws):
        least, most = np.inf, -np.inf
        for i in range(pulls.size):
            drawn, _ = draw_beliefs(key, k, i, success, pulls[i], mean[i], first[i], second[i])
            least, most = min(least, drawn), max(most, drawn)
        if most - least < small:
            n_small += 1
    return n_small / draws


@compiled
def expect(
    success: float,
    mean: FloatArray,
    first: FloatArray,
    second: FloatArray,
    expected_mean: FloatArray,
    expected_std: FloatArray,
) -> None:
    """Write what a posterior says of means and stds: of rates their expectation, of spreads the prior's and own."""
    for i in range(mean.size):
        if success != 0.0:
            rate = first[i] / (first[i] + second[i])
            expected_mean[i] = success * rate
            expected_std[i] = abs(success) * math.sqrt(rate * (1.0 - rate))
        else:
            expected_mean[i], expected_std[i] = mean[i], first[i]


@compiled
def best_rate(reward_weight: float, mean: FloatArray, std: FloatArray, allocation: FloatArray) -> float:
    """Return the share of pulls by an allocation, the rest going to the best arm, at which the trade-off is largest.

    The trade-off is concave along this line, so the sign of its slope says on which side the best rate is.
    """
    if _slope(1.0, reward_weight, mean, std, allocation) >= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if _slope(middle, reward_weight, mean, std, allocation) > 0.0:
            low = middle
        else:
            high = middle
    return low


@compiled
def _slope(rate: float, reward_weight: float, mean: FloatArray, std: FloatArray, allocation: FloatArray) -> float:
    """Return the derivative of w * reward - (1 - w) * error in the rate, per largest std."""
    best, unit = 0, 0.0
    for i in range(mean.size):
        unit = max(unit, std[i])
        if mean[i] > mean[best]:
            best = i
    coefficient = 0.5 * (1.0 - reward_weight) / mean.size
    total = 0.0
    for i in range(mean.size):
        change = allocation[i] - 1.0 if i == best else allocation[i]
        share = 1.0 + rate * change if i == best else rate * change
        total += reward_weight * allocation[i] * ((mean[i] - mean[best]) / unit)
        if change != 0.0 and share > 0.0:
            total += coefficient * (std[i] / unit) * change / (share * math.sqrt(share))
    return total


@compiled
def keep_floors(floor: FloatArray, probability: FloatArray) -> None:
    """Raise probabilities below their floors to these, and scale the others down, so that they add up to 1."""
    held, scale = 0.0, 1.0
    for i in range(floor.size):
        held += floor[i]
    if held == 0.0:
        return
    for _ in range(floor.size):
        held, free = 0.0, 0.0
        for i in range(floor.size):
            if scale * probability[i] <= floor[i]:
                held += floor[i]
            else:
                free += probability[i]
        # Scaling the others down may push some of them below their floors: then once more.
        smaller = (1.0 - held) / free if free > 0.0 else 0.0
        if smaller >= scale:
            break
        scale = smaller
    for i in range(floor.size):
        probability[i] = max(floor[i], scale * probability[i])
