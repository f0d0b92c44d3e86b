"""Compute the trade-off between reward and error, and the allocation that maximises it  [Sect. 2]."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput
from equipoise.objective_families import ROOT_MEAN_SQUARE, Objective, PowerObjective, check_measured

LARGEST_HORIZON = 10**15
"""Beyond this, numbers of pulls and their differences are not exact in double precision."""


def reward(allocation: ArrayLike, mean: ArrayLike) -> Any:
    """Return the average reward of an allocation (rho, Eq. 1).

    Parameters
    ----------
    allocation : array (..., n_arms)
        Shares that add up to 1; further axes are kept.
    mean : array (n_arms,)
        Expected reward of each arm.

    Examples
    --------
    >>> reward([0.5, 0.5], [1, 2])
    1.5
    """
    means = checks.vector("mean", mean)
    return as_number(checked_allocations(allocation, means.size) @ means)


def error(allocation: ArrayLike, std: ArrayLike, *, objective: PowerObjective = ROOT_MEAN_SQUARE) -> Any:
    """Return the average error of the arms' means, times sqrt(n) (epsilon, Eq. 2).

    Infinite if an arm with spread has no share; an arm without spread has no error at any share.

    Examples
    --------
    >>> error([0.5, 0.5], [1, 1])  # doctest: +ELLIPSIS
    1.414213562373...
    >>> error([1.0, 0.0], [1, 0]), error([0.0, 1.0], [1, 0])
    (0.5, inf)
    """
    stds = checks.non_negative("std", std)
    if not isinstance(objective, PowerObjective):
        raise InvalidInput.of("objective", "must be a PowerObjective such as ROOT_MEAN_SQUARE", objective)
    objective.check_arms(stds.size)
    return as_number(objective.error(checked_allocations(allocation, stds.size), stds))


def tradeoff(
    allocation: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> Any:
    """Return reward_weight * reward - (1 - reward_weight) * error (f_w, Eq. 4).

    Examples
    --------
    >>> tradeoff([0.5, 0.5], [1, 2], [1, 1], reward_weight=0.5)  # doctest: +ELLIPSIS
    0.042893218813...
    """
    means, stds, weight = checked_problem(mean, std, reward_weight, objective)
    return as_number(objective.value(checked_allocations(allocation, means.size), means, stds, weight))


def regret(
    allocation: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: ArrayLike = 0.0,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> Any:
    """Return how much an allocation falls short of the optimal one (R_n of Sect. 2).

    Examples
    --------
    >>> regret([0.5, 0.5], [1, 2], [1, 1], reward_weight=0.5)  # doctest: +ELLIPSIS
    0.052133623941803764
    >>> regret([0.0, 1.0], [1, 2], [1, 1], reward_weight=0.5)
    inf
    """
    means, stds, weight = checked_problem(mean, std, reward_weight, objective)
    best = objective.solve(means, stds, weight, checks.floors(floor, means.size))
    value = objective.value(checked_allocations(allocation, means.size), means, stds, weight)
    return as_number(objective.value(best, means, stds, weight) - value)


def optimal_allocation(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float | None = None,
    information_kept: float | None = None,
    information_about: str = "average",
    smallest_difference: float | None = None,
    floor: ArrayLike = 0.0,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> FloatArray:
    """Return the allocation with the largest trade-off (lambda*, Sect. 2), or the most reward at a stated accuracy.

    Parameters
    ----------
    mean, std : array (n_arms,)
        Expected reward and standard deviation of each arm.
    reward_weight : float
        The dial w: 0 measures all arms as accurately as possible, 1 pulls the best arm only.
    information_kept : float
        The dial in other words, instead of `reward_weight`: the most reward such that the experiment stays as accurate
        as the best design with this share of the units. 1 is all accuracy, towards 0 all reward.
    information_about : {"average", "every-arm", "best-arm"}
        What that accuracy is about: the average error of the arms (Eq. 2), every arm, or which arm is best.
    smallest_difference : float, optional
        For "best-arm": differences between means below this count as this; a twentieth of the typical spread by
        default.
    floor : float or array (n_arms,), default 0
        Smallest share of every arm, or of each. Arms tied for the largest mean split what is above their floors. With
        `information_kept`, floors hold for the best design too.
    objective : Objective
        The paper's by default. Another goes with a weight, or with information about the average error it measures.

    Returns
    -------
    array (n_arms,)
        Shares that add up to 1, exact to rounding.

    Examples
    --------
    The five arms of Fig. 4; the last has the best mean, the fourth the largest spread:

    >>> mean, std = [1, 1.5, 2, 4, 5], np.sqrt([0.05, 0.1, 0.2, 4, 0.5])
    >>> optimal_allocation(mean, std, reward_weight=0.9).round(4)
    array([0.0073, 0.01  , 0.014 , 0.0786, 0.8902])

    As accurate as the best design with 70 of 100 units; the best arm gets more than half of them:

    >>> optimal_allocation(mean, std, information_kept=0.7).round(4)
    array([0.0343, 0.047 , 0.0652, 0.3368, 0.5168])
    >>> optimal_allocation(mean, std, information_kept=0.7, information_about="every-arm").round(4)
    array([0.0072, 0.0144, 0.0289, 0.5773, 0.3722])
    """
    dial = checks.dial(reward_weight, information_kept, information_about, smallest_difference)
    means, stds = checked_arms(mean, std, objective)
    return _best_shares(means, stds, dial, checks.floors(floor, means.size), objective)[0]


def _best_shares(
    mean: FloatArray, std: FloatArray, dial: checks.Dial, floor: FloatArray, objective: Objective
) -> tuple[FloatArray, float]:
    """Return the best allocation and its weight; NaN if no weight leads to it."""
    check_measured(objective, dial)
    if dial.information_kept is None or not isinstance(objective, PowerObjective):
        weight = dial.reward_weight or 0.0
        return objective.solve(mean, std, weight, floor), weight
    about, difference = dial.information_about, dial.smallest_difference
    return objective.solve_for_information(mean, std, dial.information_kept, about, difference, floor)


def optimal_pulls(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    horizon: int,
    reward_weight: float | None = None,
    information_kept: float | None = None,
    information_about: str = "average",
    smallest_difference: float | None = None,
    floor: ArrayLike = 0.0,
) -> IntArray:
    """Return whole numbers of pulls for a horizon: the best within one pull of horizon * allocation.

    Every arm with spread gets at least one pull if the horizon allows, since its error is infinite otherwise; where
    that binds, the allocation is the optimal one under that constraint. Floors hold for the whole numbers too, unless
    rounding each of them up takes more pulls than there are.

    The dial is that of `optimal_allocation`. Information about the average error is kept by a weight, which decides
    how shares are rounded; other shares are rounded by their largest remainders.

    Examples
    --------
    >>> optimal_pulls([1, 2, 3], [1, 1, 1], horizon=20, reward_weight=0.5)
    array([ 3,  5, 12])
    >>> optimal_pulls([1, 2, 3], [1, 1, 1], horizon=20, information_kept=0.6, information_about="every-arm")
    array([ 4,  4, 12])
    """
    dial = checks.dial(reward_weight, information_kept, information_about, smallest_difference)
    means, stds = checked_arms(mean, std, ROOT_MEAN_SQUARE)
    n_pulls = checks.whole_number("horizon", horizon, 1, LARGEST_HORIZON)
    lowest = checks.floors(floor, means.size)
    if dial.reward_weight != 1:
        with_one_pull = np.maximum(lowest, (stds > 0) / n_pulls)
        if with_one_pull.sum() <= 1:
            lowest = with_one_pull
    rounded_up = np.ceil(n_pulls * lowest - 1e-9) / n_pulls
    whole_floors = bool(rounded_up.sum() <= 1)
    if whole_floors:
        lowest = rounded_up
    shares, weight = _best_shares(means, stds, dial, lowest, ROOT_MEAN_SQUARE)
    wanted = n_pulls * shares
    # A share of exactly 1/horizon may be slightly below one pull after rounding.
    wanted = np.where(np.abs(wanted - np.rint(wanted)) < 1e-9, np.rint(wanted), wanted)
    if np.isnan(weight):
        return _by_largest_remainders(wanted, n_pulls)
    least = np.maximum(np.ceil(wanted - 1), 0)
    most = np.floor(wanted + 1)
    if whole_floors:
        least = np.maximum(least, np.rint(n_pulls * lowest))

    def gain_of_one_more(pulls: FloatArray) -> FloatArray:
        gain: FloatArray = weight * (means - means.max()) / n_pulls
        if weight < 1:
            noisy = stds > 0
            with np.errstate(divide="ignore"):
                saved = np.sqrt(n_pulls / pulls[noisy]) - np.sqrt(n_pulls / (pulls[noisy] + 1))
            gain[noisy] += (1 - weight) / means.size * stds[noisy] * saved
        return gain

    # The objective is concave in each count, so taking the largest gains in turn is optimal in the box. At most two
    # more pulls fit between the bounds of an arm.
    gains = np.concatenate([np.where(least + k < most, gain_of_one_more(least + k), -np.inf) for k in (0, 1)])
    remaining = n_pulls - int(least.sum())
    # With fewer pulls than noisy arms every first pull has an infinite gain; then spread and mean decide.
    finite = np.tile(weight * means / n_pulls + (1 - weight) / means.size * stds * np.sqrt(n_pulls), 2)
    chosen = np.lexsort((-finite, -gains))[:remaining]
    pulls = least.astype(np.int64)
    np.add.at(pulls, chosen % means.size, 1)
    return pulls


def _by_largest_remainders(wanted: FloatArray, n_pulls: int) -> IntArray:
    """Return whole numbers that add up: each wanted number rounded down, and one more where most is cut off."""
    pulls = np.floor(wanted).astype(np.int64)
    cut_off = np.argsort(pulls - wanted, kind="stable")
    np.add.at(pulls, cut_off[: max(n_pulls - int(pulls.sum()), 0)], 1)
    return pulls


def strong_concavity(std: ArrayLike, *, reward_weight: float) -> float:
    """Return alpha of Lemma 1: the smallest curvature of the trade-off in any direction.

    Examples
    --------
    >>> round(strong_concavity([0.5, 1.0], reward_weight=0.6), 6)
    0.075
    """
    stds = checks.non_negative("std", std)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    return float(3 * (1 - weight) * stds.min() / (4 * stds.size))


def smoothness(std: ArrayLike, *, reward_weight: float, floor: float) -> float:
    """Return beta of Lemma 1: the largest curvature of the trade-off where every share is at least `floor`.

    Examples
    --------
    >>> round(smoothness([0.5, 1.0], reward_weight=0.6, floor=0.25), 6)
    4.8
    """
    stds = checks.non_negative("std", std)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    lowest = checks.number_between("floor", floor, 0, 1, open_low=True)
    # Divide twice: the power of a tiny floor would underflow, while the quotient only overflows to infinity.
    return float(3 * (1 - weight) * stds.max() / (4 * stds.size) / lowest**1.25) / float(lowest**1.25)


def checked_problem(
    mean: ArrayLike, std: ArrayLike, reward_weight: float, objective: Objective
) -> tuple[FloatArray, FloatArray, float]:
    """Return means, standard deviations and weight; raise unless they fit together and suit the objective."""
    means, stds = checked_arms(mean, std, objective)
    return means, stds, checks.number_between("reward_weight", reward_weight, 0, 1)


def checked_arms(mean: ArrayLike, std: ArrayLike, objective: Objective) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations; raise unless they fit together and suit the objective."""
    means, stds = checks.means_and_stds(mean, std)
    if not isinstance(objective, Objective):
        raise InvalidInput.of("objective", "must be an Objective such as ROOT_MEAN_SQUARE", objective)
    objective.check_arms(means.size)
    return means, stds


def checked_allocations(allocation: Any, n_arms: int) -> FloatArray:
    """Check one allocation or an array of them with arms on the last axis."""
    if not hasattr(allocation, "__len__") or len(allocation) == 0 or np.ndim(allocation[0]) == 0:
        return checks.allocation("allocation", allocation, size=n_arms)
    try:
        array = np.asarray(allocation, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput.of("allocation", "must hold numbers, arms on the last axis", allocation) from None
    if array.shape[-1] != n_arms or array.size == 0:
        raise InvalidInput.of("allocation", f"must have {n_arms} arms on its last axis; got shape {array.shape}")
    if not (array.min() >= 0 and np.abs(array.sum(axis=-1) - 1).max() <= 1e-9):
        raise InvalidInput.of("allocation", "must be non-negative and add up to 1 over its last axis")
    return array


def as_number(value: Any) -> Any:
    """Turn a 0-dimensional result into a float."""
    return float(value) if np.ndim(value) == 0 else value
