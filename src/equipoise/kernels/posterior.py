"""Describe and draw what is believed of arms given their rewards: Beta for yes/no rewards, Student otherwise.

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
