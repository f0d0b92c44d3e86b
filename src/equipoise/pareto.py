"""Compute the Pareto frontier of reward and error, and the weight that reaches a given point  [Sect. 2, Fig. 3]."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import NoSuchWeight
from equipoise.objective import checked_problem
from equipoise.objective_families import ROOT_MEAN_SQUARE, PowerObjective


@dataclass(frozen=True)
class Frontier:
    """Optimal allocations over a range of weights, with reward, error and trade-off; one entry or row per weight.

    `information_kept` is about the average error: as accurate as the best design with that share of the units.
    """

    reward_weight: FloatArray
    reward: FloatArray
    error: FloatArray
    tradeoff: FloatArray
    allocation: FloatArray
    information_kept: FloatArray

    @property
    def units_needed(self) -> FloatArray:
        """Units for the accuracy of the best design, relative to that design."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.information_kept


def frontier(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weights: ArrayLike | None = None,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> Frontier:
    """Return the Pareto frontier of reward and error: the optimum for each weight (Fig. 1, Fig. 3 right).

    Parameters
    ----------
    mean, std : array (n_arms,)
        Expected reward and standard deviation of each arm.
    reward_weights : array, optional
        Weights to solve for; 0, 0.01, ..., 1 by default.
    floor, objective
        As in `optimal_allocation`.

    Examples
    --------
    >>> curve = frontier([1, 2], [1, 1], reward_weights=[0, 0.5, 0.9])
    >>> curve.reward.round(3), curve.error.round(3)
    (array([1.5  , 1.688, 1.91 ]), array([1.414, 1.498, 2.192]))
    >>> curve.information_kept.round(3), curve.units_needed.round(2)
    (array([1.   , 0.891, 0.416]), array([1.  , 1.12, 2.4 ]))
    """
    weights = np.linspace(0, 1, 101) if reward_weights is None else checks.vector("reward_weights", reward_weights)
    for weight in (weights.min(), weights.max()):
        checks.number_between("reward_weights", float(weight), 0, 1)
    means, stds, _ = checked_problem(mean, std, 0.0, objective)
    lowest = checks.floors(floor, means.size)
    allocation = np.array([objective.solve(means, stds, float(weight), lowest) for weight in weights])
    value = [objective.value(row, means, stds, float(w)) for row, w in zip(allocation, weights, strict=True)]
    errors = objective.error(allocation, stds)
    least = float(objective.error(objective.solve(means, stds, 0.0, lowest), stds))
    with np.errstate(invalid="ignore"):
        kept = np.where(errors <= least, 1.0, (least / errors) ** (1.0 / objective.power))
    return Frontier(weights, allocation @ means, errors, np.array(value), allocation, kept)


def weight_for_error(mean: ArrayLike, std: ArrayLike, *, error: float, floor: ArrayLike = 0.0) -> float:
    """Return the reward weight whose optimum has this error: the most reward at a given accuracy (Sect. 2).

    Examples
    --------
    >>> round(weight_for_error([1, 2], [1, 1], error=1.5), 4)
    0.5031
    >>> weight_for_error([1, 2], [1, 1], error=1.0)
    Traceback (most recent call last):
    ...
    equipoise.errors.NoSuchWeight: no reward weight has error 1; it runs from 1.41421 (weight 0) to inf (weight 1)
    """
    wanted = checks.number_between("error", error, 0, math.inf)
    means, stds, _ = checked_problem(mean, std, 0.0, ROOT_MEAN_SQUARE)
    error_of = partial(ROOT_MEAN_SQUARE.error, std=stds)
    return _weight_where(error_of, "error", wanted, 1e-9 * wanted, means, stds, floor)


def weight_for_reward(mean: ArrayLike, std: ArrayLike, *, reward: float, floor: ArrayLike = 0.0) -> float:
    """Return the reward weight whose optimum has this reward: the best accuracy at a given reward (Sect. 2).

    Examples
    --------
    >>> round(weight_for_reward([1, 2], [1, 1], reward=1.9), 4)
    0.8839
    """
    wanted = checks.number_between("reward", reward, -math.inf, math.inf)
    means, stds, _ = checked_problem(mean, std, 0.0, ROOT_MEAN_SQUARE)
    # Compare rewards by their differences: means of 1e9 that differ by 1 must work too.
    tolerance = 1e-9 * float(np.ptp(means)) + 1e-15 * float(np.abs(means).max())
    return _weight_where(means.dot, "reward", wanted, tolerance, means, stds, floor)


def _weight_where(
    measure: Callable[[FloatArray], Any],
    name: str,
    wanted: float,
    tolerance: float,
    mean: FloatArray,
    std: FloatArray,
    floor: ArrayLike,
) -> float:
    """Return the weight at which a measure of the optimum, increasing in the weight, has the wanted value."""
    lowest = checks.floors(floor, mean.size)

    def at(weight: float) -> float:
        return float(measure(ROOT_MEAN_SQUARE.solve(mean, std, weight, lowest)))

    def is_wanted(value: float) -> bool:
        return abs(value - wanted) <= tolerance

    first, last = at(0.0), at(1.0)
    if is_wanted(first):
        return 0.0
    if first < wanted < last or is_wanted(last):
        # Bisect on the log-odds: close to weight 1 the error keeps doubling.
        low, high = -745.0, 37.0
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            low, high = (middle, high) if at(_from_log_odds(middle)) < wanted else (low, middle)
        around = [_from_log_odds(low), _from_log_odds(high)]
        around = [float(np.nextafter(around[0], 0)), *around, float(np.nextafter(around[1], 1))]
        values = {weight: at(weight) for weight in around}
        nearest = min(around, key=lambda weight: abs(values[weight] - wanted))
        # With spread in some arm the optimum changes continuously below weight 1. Neighbouring weights on both sides of
        # the goal are then as close as possible, however far apart their values.
        inside = [values[weight] for weight in around if weight < 1]
        enclosed = std.max() > 0 and min(inside, default=np.inf) <= wanted <= max(inside, default=-np.inf)
        if is_wanted(values[nearest]) or enclosed:
            return nearest
    raise NoSuchWeight(
        f"no reward weight has {name} {wanted:g}; it runs from {first:g} (weight 0) to {last:g} (weight 1)"
    )


def _from_log_odds(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1 + math.exp(log_odds))
