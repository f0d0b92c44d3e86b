"""Compute confidence sequences: radii around an arm's sample mean that hold at all times, however often it is checked.

The radii hold for all numbers of rewards at once, so they stay valid under any adaptive policy and any stopping rule
(optional stopping): whatever a policy does, the rewards of one arm are independent draws, and it decides only how many
there are. The radii depend on count and standard deviation alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput
from equipoise.theory.assumptions import checked_probability, checked_range

FEWEST_FOR_ASYMPTOTICS = 30
"""With fewer rewards a normal approximation is unreliable."""

# Bets on a geometric grid, up to the largest for which the wealth below grows with the distance over the whole range:
# psi(bet) <= bet / 2. Their weights add up to 1 in the limit, and fall slowly, so that no count is much favoured.
_LARGEST_BET = 0.58
_RATIO = 1.5
_N_BETS = 44
_SLOWNESS = 5.0
_NUMBER = np.arange(_N_BETS)
_BETS = _LARGEST_BET * _RATIO**-_NUMBER
_LOG_WEIGHTS = np.log(_SLOWNESS / ((_NUMBER + _SLOWNESS) * (_NUMBER + _SLOWNESS + 1)))
_PSI = -np.log1p(-_BETS) - _BETS


def bounded_mean_radius(
    pulls: ArrayLike, std: ArrayLike, *, failure_probability: float, reward_range: float = 1.0
) -> FloatArray:
    """Return an empirical-Bernstein radius for rewards in an interval, a confidence sequence valid at all times.

    For rewards within a range of 1 and any bet b in [0, 1), the product over rewards X of
    ``exp(b (X - m) - psi(b) (X - m)^2)`` with ``psi(b) = -log(1 - b) - b`` is a supermartingale if m is their mean
    (Fan, Grama, Liu 2015). So is a mixture over bets, which by Ville's inequality ever exceeds 1 / failure_probability
    with at most that probability. The interval consists of all means for which neither the mixture nor its mirror image
    exceeds twice that. Squared deviations around a candidate m follow from count, sample mean and std, so no running
    sequence is needed.

    Parameters
    ----------
    pulls : array (n_arms,)
        Rewards seen of each arm; without any the radius is infinite.
    std : array (n_arms,)
        Their standard deviations (n - 1); ignored for a single reward.
    failure_probability : float
        For each arm and all times together, in (0, 1).
    reward_range : float
        Length of the interval the rewards lie in; the radius is never longer.

    References
    ----------
    Howard, Ramdas, McAuliffe, Sekhon (2021). Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of
    Statistics 49. Waudby-Smith and Ramdas (2023). Estimating means of bounded random variables by betting. JRSS B 86.

    Examples
    --------
    >>> bounded_mean_radius([0, 100, 10_000, 10_000], [0, 0.5, 0.5, 0.05], failure_probability=0.05).round(4)
    array([   inf, 0.2126, 0.0181, 0.002 ])
    """
    counts, stds = _checked(pulls, std)
    scale, threshold = checked_range(reward_range), math.log(2.0 / checked_probability(failure_probability))
    some = counts > 0
    radius = np.full(counts.size, np.inf)
    if not some.any():
        return radius
    # Rewards of few values, such as clicks, have the same count and spread again and again; solve for each pair once.
    pairs, place = np.unique(np.stack([counts[some], stds[some]]), axis=1, return_inverse=True)
    n = pairs[0, :, None]
    deviations = np.maximum(n - 1, 0) * (np.where(n > 1, pairs[1, :, None], 0.0) / scale) ** 2

    def is_reached(distance: FloatArray) -> NDArray[np.bool_]:
        wealth = _LOG_WEIGHTS + n * (_BETS * distance) - _PSI * (deviations + n * distance**2)
        largest: FloatArray = wealth.max(axis=1, keepdims=True)
        return np.asarray(largest + np.log(np.exp(wealth - largest).sum(axis=1, keepdims=True)) >= threshold)

    # The wealth grows with the distance, so bisection finds where it reaches the threshold; return the far end.
    near, far = np.zeros_like(n), np.ones_like(n)
    for _ in range(52):
        middle = 0.5 * (near + far)
        reached = is_reached(middle)
        near, far = np.where(reached, near, middle), np.where(reached, middle, far)
    radius[some] = scale * far[place.ravel(), 0]
    return radius


def asymptotic_mean_radius(
    pulls: ArrayLike, std: ArrayLike, *, failure_probability: float, tightest_at: int = 500
) -> FloatArray:
    """Return an asymptotic confidence sequence for rewards of any range: like a z-interval, but valid at all times.

    Parameters
    ----------
    pulls : array (n_arms,)
        Rewards seen of each arm; with fewer than 30 the radius is infinite.
    std : array (n_arms,)
        Their standard deviations (n - 1); while it is 0 the radius is infinite, as the spread is unknown.
    failure_probability : float
        For each arm and all times together, in (0, 1).
    tightest_at : int
        Count at which the radius is as small as possible; other counts lose little.

    References
    ----------
    Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas (2021). Time-uniform central limit theory and asymptotic confidence
    sequences. arXiv:2103.06476.

    Examples
    --------
    >>> asymptotic_mean_radius([20, 500, 50_000], [1.0, 1.0, 1.0], failure_probability=0.05).round(4)
    array([   inf, 0.1357, 0.0159])
    """
    counts, stds = _checked(pulls, std)
    delta = checked_probability(failure_probability)
    tuned = checks.whole_number("tightest_at", tightest_at, 1)
    doubled = -2.0 * math.log(delta)
    rho_squared = (doubled + math.log1p(doubled)) / tuned
    enough = (counts >= FEWEST_FOR_ASYMPTOTICS) & (stds > 0)
    n = np.where(enough, counts, 1.0)
    grown = n * rho_squared + 1.0
    width = np.sqrt(2.0 * grown / (n * n * rho_squared) * (0.5 * np.log(grown) - math.log(delta)))
    return np.where(enough, stds * width, np.inf)


def _checked(pulls: ArrayLike, std: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return counts and standard deviations; with fewer than two rewards the std is undefined and becomes 0."""
    counts = checks.non_negative("pulls", pulls)
    try:
        stds = np.asarray(std, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"std must be one number per arm; got {std!r}") from None
    if stds.shape != counts.shape:
        raise InvalidInput(f"std must have {counts.size} entries, one per arm; got shape {stds.shape}")
    return counts, checks.non_negative("std", np.where(counts > 1, stds, 0.0), size=counts.size)
