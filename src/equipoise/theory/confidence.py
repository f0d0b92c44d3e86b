"""Bound the error of estimates, and of the trade-off computed from them  [Prop. 1, Lemma 2, Lemma 5, Cor. 1]."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.theory.assumptions import (
    checked_horizon,
    checked_probability,
    checked_pulls,
    largest_radius,
    positive_floor,
)


def step_failure_probability(
    horizon: int, *, n_arms: int, failure_probability: float, over_allocations: bool = False
) -> float:
    """Return delta_n, the share of the failure probability that one arm gets at one step (Prop. 1).

    Parameters
    ----------
    horizon : int
        The step n.
    n_arms : int
        K.
    failure_probability : float
        delta, for all arms and all steps together, in (0, 1).
    over_allocations : bool
        False for delta / (4 K n (n+1)), of Prop. 1 and Theorem 1; True for delta / (4 K n^2 (n+1)), of Cor. 1
        and Lemma 5.

    Examples
    --------
    >>> step_failure_probability(10, n_arms=5, failure_probability=0.11)
    5e-05
    >>> step_failure_probability(10, n_arms=5, failure_probability=0.11, over_allocations=True)
    5e-06
    """
    steps = checked_horizon(horizon)
    arms = checks.whole_number("n_arms", n_arms, 1)
    delta = checked_probability(failure_probability)
    # Exact until the last rounding; underflows to 0 instead of raising.
    return float(Fraction(delta) / (4 * arms * steps ** (2 if over_allocations else 1) * (steps + 1)))


def mean_confidence_radius(
    pulls: ArrayLike, *, horizon: int, failure_probability: float, reward_range: float = 1.0
) -> FloatArray:
    """Return how far each arm's sample mean may be from its mean: sqrt(log(1/delta_n) / (2 T)) (Prop. 1).

    Holds for all arms and all steps at once, together with `std_confidence_radius`, with probability
    `1 - failure_probability`, under any adaptive rule.

    Parameters
    ----------
    pulls : array (n_arms,)
        Rewards seen of each arm; without rewards the radius is infinite.
    horizon : int
        The step n, at least the sum of `pulls`.
    failure_probability : float
        delta, in (0, 1).
    reward_range : float
        Length of the interval the rewards lie in.

    Examples
    --------
    >>> mean_confidence_radius([0, 50, 200], horizon=250, failure_probability=0.05).round(4)
    array([   inf, 0.4065, 0.2033])
    """
    counts, steps, scale = checked_pulls(pulls, horizon, reward_range)
    log_term = log_inverse_failure(steps, counts.size, checked_probability(failure_probability))
    return _root_over(log_term / 2, counts, fewest=1) * scale


def std_confidence_radius(
    pulls: ArrayLike, *, horizon: int, failure_probability: float, reward_range: float = 1.0
) -> FloatArray:
    """Return how far each arm's sample std may be from its std: sqrt(2 log(2/delta_n) / T) (Prop. 1).

    Parameters
    ----------
    pulls : array (n_arms,)
        Rewards seen of each arm; an arm with fewer than two has no sample std, so its radius is infinite.
    horizon : int
        The step n, at least the sum of `pulls`.
    failure_probability : float
        delta, in (0, 1).
    reward_range : float
        Length of the interval the rewards lie in.

    Examples
    --------
    >>> std_confidence_radius([1, 50, 200], horizon=251, failure_probability=0.05).round(4)
    array([   inf, 0.8301, 0.4151])
    """
    counts, steps, scale = checked_pulls(pulls, horizon, reward_range)
    log_term = math.log(2) + log_inverse_failure(steps, counts.size, checked_probability(failure_probability))
    return _root_over(2 * log_term, counts, fewest=2) * scale


def tradeoff_error(
    allocation: ArrayLike, *, mean_radius: ArrayLike, std_radius: ArrayLike, reward_weight: float
) -> float:
    """Return how far the estimated trade-off of one allocation may be from the true one (Lemma 2).

    That is `w max(mean_radius) + (1 - w) max(std_radius) / sqrt(min(allocation))`.

    Parameters
    ----------
    allocation : array (n_arms,)
        lambda, a point of the simplex.
    mean_radius, std_radius : array (n_arms,)
        Largest difference between each estimated mean and std and the true one.
    reward_weight : float
        w, in [0, 1].

    Examples
    --------
    >>> tradeoff_error([0.25, 0.75], mean_radius=[0.1, 0.2], std_radius=[0.3, 0.1], reward_weight=0.5)
    0.4
    """
    shares = checks.allocation("allocation", allocation)
    mean_term = largest_radius("mean_radius", mean_radius, shares.size)
    std_term = largest_radius("std_radius", std_radius, shares.size)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    smallest = float(shares.min())
    error = weight * mean_term if weight > 0 else 0.0
    if weight < 1 and std_term > 0:
        error += (1 - weight) * std_term / math.sqrt(smallest) if smallest > 0 else math.inf
    return error


def uniform_tradeoff_error(
    pulls: ArrayLike, *, horizon: int, floor: float, failure_probability: float, reward_range: float = 1.0
) -> float:
    """Return how far the estimated trade-off may be from the true one, for all allocations at once (Cor. 1).

    That is `max_i sqrt(2 K log(2/delta_n) / (floor T_i))`, for every allocation with shares of at least
    `floor`, with delta_n = delta / (4 K n^2 (n+1)).

    Parameters
    ----------
    pulls : array (n_arms,)
        Rewards seen of each arm; with fewer than two of one arm the error is infinite.
    horizon : int
        The step n, at least the sum of `pulls`.
    floor : float
        lambda_min, in (0, 1/K].
    failure_probability : float
        delta, in (0, 1).
    reward_range : float
        Length of the interval the rewards lie in.

    Examples
    --------
    >>> error = uniform_tradeoff_error([4000, 6000], horizon=10_000, floor=0.1, failure_probability=0.05)
    >>> round(error, 4)
    0.5779
    """
    counts, steps, scale = checked_pulls(pulls, horizon, reward_range)
    delta = checked_probability(failure_probability)
    log_term = math.log(2) + log_inverse_failure(steps, counts.size, delta, over_allocations=True)
    share = positive_floor(floor, counts.size)
    return float(_root_over(2 * counts.size * log_term / share, counts, fewest=2).max()) * scale


def estimated_optimum_gap(
    pulls: ArrayLike, *, horizon: int, floor: float, failure_probability: float, reward_range: float = 1.0
) -> float:
    """Return how much worse than the optimum the estimated optimal allocation may be (Lemma 5).

    It is twice `uniform_tradeoff_error` and takes the same parameters.

    Examples
    --------
    >>> gap = estimated_optimum_gap([4000, 6000], horizon=10_000, floor=0.1, failure_probability=0.05)
    >>> round(gap, 4)
    1.1558
    """
    return 2 * uniform_tradeoff_error(
        pulls, horizon=horizon, floor=floor, failure_probability=failure_probability, reward_range=reward_range
    )


def log_inverse_failure(steps: int, n_arms: int, delta: float, *, over_allocations: bool = False) -> float:
    """Return log(1/delta_n), even where delta_n itself is too small for a float."""
    log_steps = math.log(steps) * (2 if over_allocations else 1)
    return math.log(4 * n_arms / delta) + log_steps + math.log(steps + 1)


def _root_over(numerator: float, counts: FloatArray, *, fewest: int) -> FloatArray:
    """Return sqrt(numerator / counts), infinite where there are fewer counts than an estimate needs."""
    enough = counts >= fewest
    return np.where(enough, np.sqrt(numerator / np.where(enough, counts, 1.0)), np.inf)
