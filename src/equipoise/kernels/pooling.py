"""Estimate arms jointly by empirical Bayes: learn how much arms differ, and shrink their estimates accordingly.

Spreads are shrunk towards their typical value and means towards their average, the more so the less the arms seem to
differ by anything but noise. The algebra is in docs/pooled-balance.md. Beliefs are written in units of the typical
spread and relative to the average mean, which leaves the optimal allocation unchanged and keeps squares in range.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled

# Bounds on the variance, between arms, of the logarithm of an arm's variance. The lower ensures that an arm's own
# rewards win in the end (spreads differ by at least 2.5%); the upper (a factor of 4.5) is where few arms start.
LEAST_SPREAD, MOST_SPREAD = 0.0025, 9.0
# The same for means, as a variance in units of the typical one: they differ by at least 3% of the spread.
LEAST_DISTANCE = 0.001
# With heavier tails than the Gaussian the logarithm of a sample variance is noisier: 2.5 times for a Laplace
# distribution. Too large a factor would take real differences for noise, and for longer.
TAILS = 2.0
# An arm whose rewards were all the same is treated as if it had this many more, of typical spread.
_UNSEEN = 4.0
# Limit on the largest spread, in multiples of the next largest times the fourth root of its arm's rewards, if a single
# reward may have caused it.
ALONE = 6.0
# A spread smaller than the largest by this factor is rounding error.
NO_SPREAD = 1e-9
# Morris (1983): with k arms and their centre estimated, k - 1 shrinks too much on average, and k - 3 is right.
LOST = 3
_MAX_STEPS, _MAX_SCORING_STEPS = 20, 30
FRACTION = np.uint64((1 << 52) - 1)
ONE = np.uint64(1023 << 52)
FRACTION_BITS = np.uint64(52)
ROOT_OF_TWO, LOG_OF_TWO = math.sqrt(2.0), math.log(2.0)


@compiled
def believe(
    pooling: int,
    caution: float,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    believed_mean: FloatArray,
    believed_std: FloatArray,
    prior_weight: float = 0.0,
    prior_means: float = 0.0,
    prior_spreads: float = 0.0,
) -> float:
    """Write the expected mean and std of every arm given the rewards; return their unit. Each arm needs three rewards.

    `work` has two rows of scratch. `caution` is the number of standard deviations by which the differences between arms
    must exceed their noise to count. It has no effect with a prior, which has a weight above 0: the variance expected
    between means, in units of the typical variance, and between the logarithms of variances, and how many arms known
    without noise that is worth.
    """
    n_arms = pulls.size
    centre = 0.0
    for i in range(n_arms):
        centre += mean[i] / n_arms
    success = common_success(pulls, mean, std)
    if success != 0.0:
        prior = prior_weight, prior_means
        _believe_rates(pooling, caution, success, pulls, mean, work[0], believed_mean, believed_std, *prior)
        return abs(success)
    for i in range(n_arms):
        believed_mean[i], believed_std[i] = mean[i] - centre, std[i]
    _temper(pulls, believed_mean, believed_std)
    unit = _believe_spreads(pooling, caution, pulls, believed_std, work[0], work[1], prior_weight, prior_spreads)
    if unit == 0.0:
        return _believe_without_spread(pulls, believed_mean, believed_std)
    for i in range(n_arms):
        believed_mean[i] /= unit
    if pooling != 0 and (n_arms > LOST or prior_weight > 0.0):
        for i in range(n_arms):
            work[0, i] = believed_std[i] * believed_std[i] / pulls[i]
        if prior_weight > 0.0:
            _shrink_by(expected_between(prior_weight, prior_means, work[0], believed_mean), work[0], believed_mean)
        else:
            _shrink(caution, LEAST_DISTANCE, work[0], believed_mean)
    return unit


@compiled
def common_success(pulls: IntArray, mean: FloatArray, std: FloatArray) -> float:
    """Return the one non-zero value, such as 1, that rewards take if each is 0 or that value; return 0 otherwise.

    With n rewards of 0 or c and mean m, the squares around m add up to n m (c - m), which determines c. All arms share
    it if their squares are those of a whole number of successes.
    """
    success = 0.0
    for i in range(pulls.size):
        if success == 0.0 and mean[i] != 0.0:
            success = mean[i] + std[i] * (std[i] / mean[i]) * ((pulls[i] - 1.0) / pulls[i])
    for i in range(pulls.size):
        n = float(pulls[i])
        successes = np.round(n * (mean[i] / success))
        squares = (n - 1.0) * (std[i] / success) * (std[i] / success)
        expected = successes * (n - successes) / n
        tolerance = max(1e-9, 1e-15 * n)
        if not (
            abs(n * (mean[i] / success) - successes) <= 1e-9 * n and abs(squares - expected) <= tolerance * expected
        ):
            return 0.0
    return success


@compiled
def _believe_rates(
    pooling: int,
    caution: float,
    success: float,
    pulls: IntArray,
    mean: FloatArray,
    noise: FloatArray,
    believed_mean: FloatArray,
    believed_std: FloatArray,
    prior_weight: float,
    prior_means: float,
) -> None:
    """Write beliefs of arms whose rewards are failures or successes: their spreads follow from their rates.

    A sample variance of rare successes is far noisier than one of Gaussian rewards; a rate can be pooled directly.
    """
    n_arms = pulls.size
    successes, total = 0.5, 1.0
    for i in range(n_arms):
        successes += pulls[i] * (mean[i] / success)
        total += pulls[i]
    typical = successes / total
    for i in range(n_arms):
        # As if there were two more rewards, at the typical rate: never 0 or 1.
        believed_mean[i] = (mean[i] / success - typical) * (pulls[i] / (pulls[i] + 2.0))
        # From the typical rate: an arm without successes would otherwise seem to be known without noise.
        noise[i] = typical * (1.0 - typical) / pulls[i]
    if prior_weight > 0.0:
        between = expected_between(prior_weight, prior_means * typical * (1.0 - typical), noise, believed_mean)
        _shrink_by(between, noise, believed_mean)
    elif pooling != 0 and n_arms > LOST:
        _shrink(caution, LEAST_DISTANCE * typical * (1.0 - typical), noise, believed_mean)
    sign = 1.0 if success > 0.0 else -1.0
    for i in range(n_arms):
        rate = typical + believed_mean[i]
        believed_std[i] = math.sqrt(max(rate * (1.0 - rate), 0.0))
        believed_mean[i] *= sign


@compiled
def _temper(pulls: IntArray, mean: FloatArray, std: FloatArray) -> None:
    """Reduce one extreme reward, if one arm's spread is far beyond all others and a single reward explains it.

    A reward that far exceeds all others moves the spread of its arm, and moves its mean by exactly one standard error:
    by D / n and D / sqrt(n) in n rewards. An arm with a truly large spread soon shows it, as its mean lies elsewhere;
    if the mean does not show it, the limit does in the end, as it grows with the rewards.
    """
    largest, second = 0, -1
    for i in range(1, std.size):
        if std[i] > std[largest]:
            largest, second = i, largest
        elif second < 0 or std[i] > std[second]:
            second = i
    if second >= 0 and std[second] > 0.0:
        root = math.sqrt(pulls[largest])
        most = ALONE * math.sqrt(root) * std[second]
        if std[largest] > most:
            centre, furthest = 0.0, 0.0
            for i in range(std.size):
                if i != largest:
                    centre += mean[i] / (std.size - 1)
            for i in range(std.size):
                if i != largest:
                    furthest = max(furthest, abs(mean[i] - centre))
            errors = root * abs(mean[largest] - centre) / std[largest]
            # Tolerance around one standard error: the arm's other rewards, and its mean without that reward.
            if abs(errors - 1.0) <= 0.02 + (3.0 * std[second] + root * furthest) / std[largest]:
                mean[largest] = centre + (mean[largest] - centre) * (most / std[largest])
                std[largest] = most
    nothing = NO_SPREAD * std[largest]
    for i in range(std.size):
        if std[i] < nothing:
            std[i] = 0.0


@compiled
def _believe_without_spread(pulls: IntArray, mean: FloatArray, std: FloatArray) -> float:
    """Form beliefs when no arm has shown any spread: only the differences of their means give a unit, returned."""
    unit = 0.0
    for i in range(mean.size):
        unit = max(unit, abs(mean[i]))
    for i in range(mean.size):
        mean[i] = mean[i] / unit if unit > 0.0 else 0.0
        std[i] = math.sqrt(1.0 / (1.0 + pulls[i]))
    return unit if unit > 0.0 else 1.0


@compiled
def expected_squares(caution: float, n_arms: int) -> float:
    """Return how large the sum of squared standardised differences may be before they count as real.

    Caution is for many arms, where equal shares are a good start and chance differences are many. With few arms it
    would overlook real differences for long, so it is phased in with their number.
    """
    freedom = float(n_arms - LOST)
    return freedom + caution * (freedom / (freedom + 3.0)) * math.sqrt(2.0 * freedom)


@compiled
def write_logarithms(x: FloatArray, scratch: FloatArray, out: FloatArray) -> None:
    """Write log(x), accurate to 1e-9, for positive normal numbers; a finite value for others.

    Written by hand because it is the costliest part of a step, and to be the same on every machine: x = 2^e m with m
    from 1 to 2, and log(m) by its series in (m - sqrt 2) / (m + sqrt 2), whose first omitted term is below 1e-9.
    """
    bits, mantissa_bits = x.view(np.uint64), scratch.view(np.uint64)
    for i in range(x.size):
        mantissa_bits[i] = (bits[i] & FRACTION) | ONE
        out[i] = float(np.int64(bits[i] >> FRACTION_BITS)) - 1022.5
    for i in range(x.size):
        y = (scratch[i] - ROOT_OF_TWO) / (scratch[i] + ROOT_OF_TWO)
        square = y * y
        series = 1.0 + square * (1 / 3 + square * (1 / 5 + square * (1 / 7 + square * (1 / 9))))
        out[i] = out[i] * LOG_OF_TWO + 2.0 * y * series


@compiled
def _believe_spreads(
    pooling: int,
    caution: float,
    pulls: IntArray,
    std: FloatArray,
    logarithm: FloatArray,
    noise: FloatArray,
    prior_weight: float,
    prior_spreads: float,
) -> float:
    """Replace stds by their expectations in units of the typical one; return that, or 0 if no arm has any spread."""
    n_arms = pulls.size
    write_logarithms(std, noise, logarithm)
    n_spread, total, total_noise = 0, 0.0, 0.0
    for i in range(n_arms):
        if std[i] > 0.0:
            # With d degrees of freedom the logarithm of a sample variance is below that of the variance by
            # log(d/2) - digamma(d/2) and has variance trigamma(d/2); both by their series in 1/d.
            inverse = 1.0 / (pulls[i] - 1.0)
            logarithm[i] = 2.0 * logarithm[i] + inverse * (1.0 + inverse * (1 / 3))
            noise[i] = TAILS * inverse * (2.0 + inverse * (2.0 + inverse * (4 / 3)))
            n_spread += 1
            total += logarithm[i]
            total_noise += noise[i]
    if n_spread == 0:
        return 0.0
    centre = total / n_spread
    between = MOST_SPREAD
    if prior_weight > 0.0:
        for i in range(n_arms):
            if not std[i] > 0.0:
                logarithm[i], noise[i] = centre, np.inf
        between = expected_between(prior_weight, prior_spreads, noise, logarithm)
        between = min(max(between, LEAST_SPREAD), MOST_SPREAD)
    elif pooling != 0 and n_spread > LOST:
        squares = 0.0
        for i in range(n_arms):
            if std[i] > 0.0:
                squares += (logarithm[i] - centre) * (logarithm[i] - centre)
        expected = expected_squares(caution, n_spread)
        between = min(max(squares / expected - total_noise / n_spread, LEAST_SPREAD), MOST_SPREAD)
    total, total_weight = 0.0, 0.0
    for i in range(n_arms):
        if std[i] > 0.0:
            weight = 1.0 / (noise[i] + between)
            total_weight += weight
            total += weight * (logarithm[i] - centre)
    centre += total / total_weight
    unit = math.exp(0.5 * centre)
    # A scaled inverse chi-square prior whose logarithm has that variance: trigamma(strength / 2) = between, again by
    # its series. Its scale follows from the centre of the logarithms.
    strength = (1.0 + math.sqrt(1.0 + 2.0 * between)) / between
    inverse = 1.0 / strength
    prior = strength * math.exp(-inverse * (1.0 + inverse * (1 / 3)))
    unseen = max(strength, _UNSEEN)
    for i in range(n_arms):
        freedom = pulls[i] - 1.0
        if std[i] > 0.0:
            ratio = std[i] / unit
            # The expectation of the std, not the root of the expected variance: hence 3/2.
            std[i] = math.sqrt((prior + freedom * ratio * ratio) / (strength + freedom - 1.5))
        else:
            std[i] = math.sqrt(unseen / (unseen + freedom))
    return unit


@compiled
def _shrink(caution: float, least: float, noise: FloatArray, value: FloatArray) -> None:
    """Move values towards their weighted average, by the share of their variance that is noise.

    The variance between arms is the one at which the weighted squares are as large as expected (Paule and Mandel
    1982), found by Newton's method on their reciprocal, which is concave: it climbs from 0 to the solution. It is
    at least `least`.
    """
    n_arms = value.size
    expected = expected_squares(caution, n_arms)
    # Measured from the centre of the well-known arms, or the squares of the others would drown theirs.
    between, origin = 0.0, _weighted_squares(0.0, noise, value)[2]
    for i in range(n_arms):
        value[i] -= origin
    for _ in range(_MAX_STEPS):
        squares, slope, _ = _weighted_squares(between, noise, value)
        if squares <= expected or slope == 0.0:
            break
        step = (squares - expected) / slope * (squares / expected)
        between += step
        if step <= 1e-3 * between:
            break
    between = max(between, least)
    _, _, centre = _weighted_squares(between, noise, value)
    for i in range(n_arms):
        value[i] += noise[i] / (noise[i] + between) * (centre - value[i]) + origin


@compiled
def expected_between(weight: float, prior: float, noise: FloatArray, value: FloatArray) -> float:
    """Return the variance between arms that a prior and the arms' values, with their noise, make likely.

    It is the average of the prior's variance, which counts as `weight` arms, and of what each value says of it by
    itself, its squared distance from the centre less its noise. A value of which the part r is not noise counts as r^2
    of an arm, all of them as one fewer since their centre is estimated. That is the mode, for its logarithm, of the
    posterior under a scaled inverse chi-square prior and restricted likelihood, found by Fisher's scoring, within the
    bounds that its steps have shown. It starts from above: where prior and values contradict each other there may be
    two modes, and the larger one shrinks less. Noise may be infinite, for arms that say nothing; the weight is at
    least 1.
    """
    n_known, centre, squares = 0, 0.0, 0.0
    for i in range(value.size):
        if noise[i] < np.inf:
            n_known += 1
            step = value[i] - centre
            centre += step / n_known
            squares += step * (value[i] - centre)
    between, low, high = max(prior, squares / max(n_known - 1, 1)), 0.0, np.inf
    for _ in range(_MAX_SCORING_STEPS):
        total, total_square, weighted = 0.0, 0.0, 0.0
        for i in range(value.size):
            part = between / (noise[i] + between)
            total += part
            total_square += part * part
            weighted += part * value[i]
        centre = weighted / total
        found = weight * prior
        for i in range(value.size):
            part = between / (noise[i] + between)
            if part > 0.0:
                distance = value[i] - centre
                found += part * part * (distance * distance - noise[i])
        following = found / (weight + total_square - total_square / total)
        if abs(following - between) <= 1e-3 * between:
            return following
        if following > between:
            low = between
        else:
            high = between
            following = max(following, 0.25 * between)
        if not low < following < high:
            following = math.sqrt(low * high)
        between = following
    return between


@compiled
def _shrink_by(between: float, noise: FloatArray, value: FloatArray) -> None:
    """Move values towards their weighted average, by the share of their variance that is noise."""
    total, weighted = 0.0, 0.0
    for i in range(value.size):
        weight = 1.0 / (noise[i] + between)
        total += weight
        weighted += weight * value[i]
    centre = weighted / total
    for i in range(value.size):
        value[i] += noise[i] / (noise[i] + between) * (centre - value[i])


@compiled
def _weighted_squares(between: float, noise: FloatArray, value: FloatArray) -> tuple[float, float, float]:
    """Return the sum of weight * (value - centre)^2, minus its derivative in `between`, and the weighted centre."""
    w0, w1, w2, v0, v1, v2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(noise.size):
        weight, x = 1.0 / (noise[i] + between), value[i]
        w0 += weight
        w1 += weight * x
        w2 += weight * x * x
        v0 += weight * weight
        v1 += weight * weight * x
        v2 += weight * weight * x * x
    centre = w1 / w0
    return max(w2 - centre * w1, 0.0), max(v2 - centre * (2.0 * v1 - centre * v0), 0.0), centre
