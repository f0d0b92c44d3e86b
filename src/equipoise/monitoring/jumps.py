"""Tell whether the rewards of an arm changed of late, and whether one reward moves its mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equipoise._types import FloatArray


class Moments(NamedTuple):
    """Counts, sums and sums of squares of rewards: arrays (..., K)."""

    n: FloatArray
    total: FloatArray
    squares: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The means; NaN without rewards."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.total / self.n)

    @property
    def variance(self) -> FloatArray:
        """The variances, with n - 1; NaN with fewer than two rewards."""
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = self.squares - self.total * self.total / self.n
            return np.asarray(np.maximum(spread, 0.0) / np.where(self.n > 1, self.n - 1.0, np.nan))


class Jump(NamedTuple):
    """A change of the rewards of the last days against those before: arrays (..., K)."""

    z: FloatArray
    size: FloatArray


def mean_jump(recent: Moments, before: Moments) -> Jump:
    """Return the change of the means, in standard errors and in standard deviations of before.

    Examples
    --------
    >>> before = Moments(np.array([100.0]), np.array([50.0]), np.array([50.0]))
    >>> recent = Moments(np.array([100.0]), np.array([80.0]), np.array([80.0]))
    >>> found = mean_jump(recent, before)
    >>> found.z.round(2), found.size.round(2)
    (array([4.22]), array([0.6]))
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # The larger variance for both: a rare reward that did not come of late leaves no variance behind.
        both = Moments(*(a + b for a, b in zip(recent, before, strict=True)))
        usual = np.maximum(np.maximum(before.variance, recent.variance), both.variance * (1.0 - 1.0 / both.n))
        error = np.sqrt(usual * (1.0 / recent.n + 1.0 / before.n))
        gap = recent.mean - before.mean
        z = gap / error
        size = gap / np.sqrt(before.variance)
    return Jump(np.where(np.isfinite(z), z, 0.0), np.where(np.isnan(size), 0.0, size))


def kurtosis(
    n: FloatArray, total: FloatArray, squares: FloatArray, cubes: FloatArray, fourths: FloatArray
) -> FloatArray:
    """Return the fourth central moments over the squared variances, from sums of powers: 3 if they are not known.

    Where rewards have two values only, it is infinite: their spread follows from their mean and says nothing by itself.

    Examples
    --------
    >>> rewards = np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 1.0, 1.0]]).T
    >>> kurtosis(*((rewards**power).sum(axis=0) for power in range(5)))
    array([1.64,  inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        m, m2, m3, m4 = (one / n for one in (total, squares, cubes, fourths))
        variance = m2 - m * m
        found = (m4 - 4 * m * m3 + 6 * m * m * m2 - 3 * m**4) / variance**2
        skewness = (m3 - 3 * m * m2 + 2 * m**3) / variance**1.5
    found = np.where(np.isfinite(found) & (variance > 0), found, 3.0)
    # No distribution has less than 1 + skewness^2, and only two values have that.
    return np.where(found - skewness * skewness - 1.0 < 1e-6 * found, np.inf, found)


def variance_jump(recent: Moments, before: Moments, kurtosis: FloatArray) -> Jump:
    """Return the change of the standard deviations: z of their logarithms' difference, and the ratio.

    The error of a log variance depends on the fourth moment: ``(kurtosis - 1) / n``. For a smaller variance z is that
    of the difference, not of the logarithms.

    Parameters
    ----------
    recent, before : Moments
        Of the last days, and of those before.
    kurtosis : float array (..., K)
        Of all rewards: the fourth central moment over the squared variance, 3 for normal ones.

    Examples
    --------
    >>> before = Moments(np.array([400.0]), np.array([0.0]), np.array([399.0]))
    >>> recent = Moments(np.array([100.0]), np.array([0.0]), np.array([396.0]))
    >>> found = variance_jump(recent, before, np.array([3.0]))
    >>> found.z.round(1), found.size.round(2)
    (array([8.8]), array([2.]))
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.log(recent.variance / before.variance)
        # The logarithm of a small variance has a long tail to the left.
        reach = np.where(gap < 0, np.expm1(gap), gap)
        # Yes and no in equal parts have a kurtosis of 1 and a variance that hardly varies; a sample's is too low.
        error = np.sqrt(np.maximum(kurtosis - 1.0, 1.0) * (1.0 / recent.n + 1.0 / before.n))
        z = reach / error
        size = np.exp(gap / 2.0)
    return Jump(np.where(np.isfinite(z), z, 0.0), np.where(np.isnan(size), 1.0, size))


def influence(all_rewards: Moments, extreme: FloatArray, half_width: FloatArray) -> FloatArray:
    """Return how far one reward moves the mean of its arm, in multiples of the arm's half-width without it.

    A reward far out widens the interval that it is compared with: it could hide behind itself for ever. So the
    half-width is scaled to the standard deviation of the other rewards.

    Parameters
    ----------
    all_rewards : Moments
        Of all rewards of each arm.
    extreme : float array (..., K)
        The reward.
    half_width : float array (..., K)
        Of the arm's interval, with the reward.

    Examples
    --------
    >>> rewards = np.r_[np.tile([0.0, 1.0], 50), 60.0]
    >>> found = Moments(np.array([101.0]), np.array([rewards.sum()]), np.array([(rewards**2).sum()]))
    >>> influence(found, np.array([60.0]), np.array([2.0])).round(1)
    array([3.5])
    """
    count = all_rewards.n
    others = Moments(count - 1.0, all_rewards.total - extreme, all_rewards.squares - extreme * extreme)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.abs(extreme - others.mean) / count
        usual = half_width * np.sqrt(others.variance / all_rewards.variance)
        found = moved / usual
    return np.where(np.isfinite(found), found, 0.0)
