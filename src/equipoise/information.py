"""Measure how much information an allocation keeps: how few units the best design needs to be as accurate  [Sect. 2].

An allocation keeps the share q of the information if it is as accurate as the best design with q times as many units.
Accurate about what is a choice: the average error (the paper's Eq. 2), every arm, or which arm is best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import GoalOutOfReach, InvalidInput
from equipoise.kernels.rules import SMALLEST_DIFFERENCE
from equipoise.objective import as_number, checked_allocations, checked_arms
from equipoise.objective_families import ROOT_MEAN_SQUARE, PowerObjective, check_measured

# A goal that exceeds what is possible by rounding only is met.
_ROUNDING = 1e-9


def information_kept(
    allocation: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    about: str = "average",
    smallest_difference: float | None = None,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> Any:
    """Return the share of the information that an allocation keeps: how few units the best design needs instead.

    It has an inverse: ``optimal_allocation(..., information_kept=q)`` is the allocation with the most reward that keeps
    q. If no arm has spread there is nothing to learn, and every allocation keeps 1.

    Parameters
    ----------
    allocation : array (..., n_arms)
        Shares that add up to 1; further axes are kept.
    mean, std : array (n_arms,)
        Expected reward and standard deviation of each arm.
    about : {"average", "every-arm", "best-arm"}
        What the information is about: the average error of the arms (Eq. 2), every arm, or which arm is best.
    smallest_difference, floor, objective
        As in `optimal_allocation`. Only an allocation below the floors can keep more than 1.

    Examples
    --------
    >>> mean, std = [0.10, 0.11, 0.12, 0.14], [0.30, 0.31, 0.33, 0.35]
    >>> round(information_kept([0.25, 0.25, 0.25, 0.25], mean, std), 4)
    0.9988
    >>> information_kept([[0.1, 0.1, 0.1, 0.7], [0, 0, 0, 1]], mean, std, about="every-arm").round(4)
    array([0.3834, 0.    ])

    An allocation that keeps 90% about the average may say little about the best arm:

    >>> from equipoise import optimal_allocation
    >>> share = optimal_allocation(mean, std, information_kept=0.9)
    >>> round(information_kept(share, mean, std), 4), round(information_kept(share, mean, std, about="best-arm"), 4)
    (0.9, 0.7133)
    """
    checks.one_of("about", about, checks.INFORMATION_ABOUT)
    difference = checks.smallest_difference_for("about", about, smallest_difference)
    means, stds = checked_arms(mean, std, objective)
    check_measured(objective, checks.Dial(None, 1.0, about, difference))
    lowest = checks.floors(floor, means.size)
    shares = checked_allocations(allocation, means.size)
    return as_number(share_of_information(shares, means, stds, about, difference, lowest, objective))


def share_of_information(
    shares: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    about: str,
    difference: float | None,
    floor: FloatArray,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> Any:
    """Do as `information_kept` with checked arrays."""
    if not std.any():
        return np.ones(shares.shape[:-1])  # nothing to learn
    best_design, _ = objective.solve_for_information(mean, std, 1.0, about, difference, floor)
    most, here = (_information(x, mean, std, about, difference, objective) for x in (best_design, shares))
    with np.errstate(invalid="ignore"):
        kept = np.where(here == most, 1.0, here / most)  # also where both are infinite: nothing to learn
    return np.where((kept > 1.0) & (kept < 1.0 + _ROUNDING), 1.0, kept)


def _information(
    shares: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    about: str,
    difference: float | None,
    objective: PowerObjective,
) -> Any:
    """Return the information per unit, in a unit of its own: twice as many units have twice as much."""
    widest = float(std.max()) or 1.0
    relative = std / widest
    with np.errstate(divide="ignore", over="ignore"):
        if about == "average":
            return np.asarray(objective.error(shares, relative)) ** (-1.0 / objective.power)
        noise = np.zeros(shares.shape)
        np.divide(relative * relative, shares, out=noise, where=relative > 0)
        if about == "every-arm":
            return 1.0 / noise.max(axis=-1)
        smallest = SMALLEST_DIFFERENCE * math.sqrt(relative @ relative / std.size)
        best, smallest = int(mean.argmax()), smallest if difference is None else difference / widest
        noise, others = noise + noise[..., best, None], np.arange(std.size) != best
        gap = np.maximum(mean[best] / widest - mean[others] / widest, smallest)
        gap = np.minimum(gap / gap.min(initial=np.inf), 1e100)
        unsurety = noise[..., others] / (gap * gap)
        return 1.0 / unsurety.max(axis=-1, initial=0.0)


def weight_for_information(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    information_kept: float,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> float:
    """Return the reward weight whose optimum keeps this share of the information about the average error  [Sect. 2].

    The trade-off is the Lagrangian of the problem "the most reward at a given error"; see `multiplier_for_information`.

    Examples
    --------
    The same accuracy takes different weights on different arms:

    >>> round(weight_for_information([1, 1.5, 2, 4, 5], [0.22, 0.32, 0.45, 2, 0.71], information_kept=0.7), 4)
    0.4549
    >>> round(weight_for_information([0.010, 0.012, 0.014], [0.1, 0.11, 0.12], information_kept=0.7), 4)
    0.989
    """
    return _solved(mean, std, information_kept, floor, objective)[1]


def information_for_weight(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> float:
    """Return the share of the information about the average error that the optimum of a weight keeps.

    The inverse of `weight_for_information`: it falls from 1 at weight 0 to 0 at weight 1.

    Examples
    --------
    >>> [round(information_for_weight([1, 2], [1, 1], reward_weight=w), 4) for w in (0, 0.5, 0.9, 1)]
    [1.0, 0.8908, 0.4161, 0.0]
    """
    means, stds = checked_arms(mean, std, objective)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    _check_power(objective)
    lowest = checks.floors(floor, means.size)
    shares = objective.solve(means, stds, weight, lowest)
    return float(share_of_information(shares, means, stds, "average", None, lowest, objective))


def multiplier_for_information(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    information_kept: float,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> float:
    """Return the Lagrange multiplier of the constraint on the error: the reward that a unit less of error costs.

    The most reward with an error of at most `limit` is the smallest, over multipliers m, of the largest reward - m
    (error - limit). At the optimum m = (1 - w) / w with its weight w  [Sect. 2]. It is infinite where no error less
    can be had (all information kept), and 0 where the constraint costs nothing.

    Examples
    --------
    >>> mean, std = [1, 2], [1, 1]
    >>> round(multiplier_for_information(mean, std, information_kept=0.7), 4)
    0.39
    >>> round(1 / (1 + 0.39), 3) == round(weight_for_information(mean, std, information_kept=0.7), 3)
    True
    """
    shares, weight = _solved(mean, std, information_kept, floor, objective)
    if weight == 0.0:
        return math.inf
    if weight < 0.5:
        return (1.0 - weight) / weight
    # Close to weight 1, 1 - w has few digits left. The shares have them: above its floor each arm has m times the
    # slope of its error = level + gap, so two arms give m.
    means, stds = checks.means_and_stds(mean, std)
    importance = objective.normalised_importance(means.size)
    above = shares > checks.floors(floor, means.size)
    with np.errstate(divide="ignore", over="ignore"):
        error = importance[above] * (stds[above] / np.sqrt(shares[above])) ** (2 * objective.power)
        slope = objective.power * error / shares[above]
    steep, flat = (int(pick(slope)) for pick in (np.argmax, np.argmin)) if slope.size else (0, 0)
    rise = float(slope[steep] - slope[flat]) if slope.size else 0.0
    if not 0.0 < rise < math.inf:
        return (1.0 - weight) / weight
    return float((means[above][flat] - means[above][steep]) / rise)


def information_for_multiplier(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    multiplier: float,
    floor: ArrayLike = 0.0,
    objective: PowerObjective = ROOT_MEAN_SQUARE,
) -> float:
    """Return the share of the information to keep if a unit less of error is worth this much reward.

    Examples
    --------
    >>> round(information_for_multiplier([1, 2], [1, 1], multiplier=0.39), 3)
    0.7
    """
    m = checks.number_between("multiplier", multiplier, 0, math.inf)
    return information_for_weight(mean, std, reward_weight=1.0 / (1.0 + m), floor=floor, objective=objective)


def _solved(
    mean: ArrayLike, std: ArrayLike, information_kept: float, floor: ArrayLike, objective: PowerObjective
) -> tuple[FloatArray, float]:
    """Return the shares that keep this information about the average, and their weight."""
    kept = checks.share_kept("information_kept", information_kept)
    means, stds = checked_arms(mean, std, objective)
    _check_power(objective)
    return objective.solve_for_information(means, stds, kept, "average", None, checks.floors(floor, means.size))


def _check_power(objective: PowerObjective) -> None:
    check_measured(objective, checks.Dial(None, 1.0, "average", None))


class DialPrice(NamedTuple):
    """What a setting of the dial costs, in units for the same accuracy, and what it gains, in reward per unit."""

    information_about: str
    information_kept: float
    units_needed: float
    """Units for the accuracy of the best design, relative to that design: 1 / `information_kept`."""
    reward: float
    gain_over_best_design: float
    gain_over_equal_shares: float
    best_arm_share: float
    allocation: FloatArray


def dial_prices(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    information_kept: Sequence[float] = (1.0, 0.9, 0.7, 0.5, 0.25),
    information_about: Sequence[str] = checks.INFORMATION_ABOUT,
    smallest_difference: float | None = None,
    floor: ArrayLike = 0.0,
) -> list[DialPrice]:
    """Return prices side by side: for each criterion and each share of the information, units needed and reward gained.

    Parameters
    ----------
    mean, std : array (n_arms,)
        Expected reward and standard deviation of each arm.
    information_kept : sequence of float
        Shares to compare.
    information_about : sequence of {"average", "every-arm", "best-arm"}
        Criteria to compare; all by default.
    smallest_difference, floor
        As in `optimal_allocation`; the difference is used for "best-arm".

    Examples
    --------
    >>> prices = dial_prices([0.10, 0.11, 0.12, 0.14], [0.30, 0.31, 0.33, 0.35], information_kept=[0.9, 0.5])
    >>> for row in prices:
    ...     print(f"{row.information_about:9} {row.information_kept} x{row.units_needed:.2f} "
    ...           f"{row.gain_over_equal_shares:+.4f} {row.best_arm_share:.2f}")
    average   0.9 x1.11 +0.0064 0.44
    average   0.5 x2.00 +0.0152 0.74
    every-arm 0.9 x1.11 +0.0038 0.36
    every-arm 0.5 x2.00 +0.0121 0.65
    best-arm  0.9 x1.11 +0.0130 0.60
    best-arm  0.5 x2.00 +0.0181 0.82
    """
    means, stds = checks.means_and_stds(mean, std)
    lowest = checks.floors(floor, means.size)
    best, rows = float(means.max()), []
    loss = means - best  # small differences lose no digits to a reward that all arms share
    for about in information_about:
        checks.one_of("information_about", about, checks.INFORMATION_ABOUT)
        difference = smallest_difference if about == "best-arm" else None
        checks.smallest_difference_for("information_about", about, difference)
        design, _ = ROOT_MEAN_SQUARE.solve_for_information(means, stds, 1.0, about, difference, lowest)
        for share_kept in information_kept:
            kept = checks.share_kept("information_kept", share_kept)
            shares, _ = ROOT_MEAN_SQUARE.solve_for_information(means, stds, kept, about, difference, lowest)
            row = DialPrice(
                information_about=about,
                information_kept=kept,
                units_needed=1.0 / kept,
                reward=float(shares @ means),
                gain_over_best_design=float(shares @ loss - design @ loss),
                gain_over_equal_shares=float(shares @ loss - loss.mean()),
                best_arm_share=float(shares[means == best].sum()),
                allocation=shares,
            )
            rows.append(row)
    return rows


def information_for_half_width(
    std: ArrayLike,
    *,
    half_width: float,
    units: int,
    about: str = "every-arm",
    failure_probability: float = 0.05,
    floor: ArrayLike = 0.0,
) -> float:
    """Return the share of the information to keep so that confidence intervals are this narrow in the end.

    An interval is mean ± z std / sqrt(pulls), with z the normal quantile at `failure_probability` / 2.

    Parameters
    ----------
    std : array (n_arms,)
        Standard deviation of each arm's rewards, as known or guessed before; 0.5 is the largest of yes/no rewards.
    half_width : float
        The half-width wanted, in the unit of the rewards.
    units : int
        How many units there will be.
    about : {"every-arm", "average"}, default "every-arm"
        Whether every arm's half-width, or their average, should be at most that.
    failure_probability : float, default 0.05
        For each arm: 0.05 is the usual interval of 95 %.
    floor : float or array (n_arms,), default 0
        Smallest share of every arm, or of each, as in `optimal_allocation`; it holds for the best design too.

    Returns
    -------
    float
        The `information_kept` of a policy, in (0, 1].

    Raises
    ------
    GoalOutOfReach
        If no allocation of the units is that accurate. The error carries the smallest half-width that they reach,
        and how many units the one wanted takes.

    Examples
    --------
    Four messages with yes/no replies, 6,000 people, and every reply rate known to within 3 points:

    >>> round(information_for_half_width([0.5] * 4, half_width=0.03, units=6000), 3)
    0.711
    >>> information_for_half_width([0.5] * 4, half_width=0.03, units=3000)
    Traceback (most recent call last):
    ...
    equipoise.errors.GoalOutOfReach: half_width must be at least 0.0358 for 3,000 units; got 0.03
    hint: a half_width of 0.03 takes at least 4,269 units
    """
    stds = checks.non_negative("std", std)
    width = checks.number_between("half_width", half_width, 0, math.inf, open_low=True)
    n_units = checks.whole_number("units", units, 1, checks.LARGEST_COUNT)
    checks.one_of("about", about, ("every-arm", "average"))
    failure = checks.number_between("failure_probability", failure_probability, -math.inf, math.inf)
    if not 0 < failure < 1:
        raise InvalidInput.of("failure_probability", "must be in (0, 1)", failure_probability)
    widest = float(stds.max())
    if widest == 0.0:
        raise InvalidInput.of("std", "must be positive for at least one arm; got only zeros")
    quantile = -NormalDist().inv_cdf(max(failure / 2, 5e-324))
    least = _smallest_error(stds / widest, about, checks.floors(floor, stds.size))
    smallest = quantile * widest * least / math.sqrt(n_units)
    ratio = smallest / width
    kept = ratio * ratio
    if kept > 1.0 + _ROUNDING:
        raise _out_of_reach(half_width, smallest, n_units, n_units * kept * (1.0 - _ROUNDING))
    return min(max(kept, float(np.finfo(float).tiny)), 1.0)


def _smallest_error(std: FloatArray, about: str, floor: FloatArray) -> float:
    """Return the smallest error possible, times sqrt(n): the largest of the arms, or their average."""
    if not floor.any():
        if about == "every-arm":
            return float(np.sqrt((std * std).sum()))
        return float(np.cbrt(std * std).sum() ** 1.5 / std.size)
    design, _ = ROOT_MEAN_SQUARE.solve_for_information(np.zeros(std.size), std, 1.0, about, None, floor)
    own = std[std > 0] / np.sqrt(design[std > 0])
    return float(own.max() if about == "every-arm" else own.sum() / std.size)


def _out_of_reach(half_width: float, smallest: float, units: int, needed: float) -> GoalOutOfReach:
    """Return an error that says what is possible: another half-width, or another number of units."""
    units_needed = math.ceil(needed) if needed <= checks.LARGEST_COUNT else None
    # Four digits, rounded up: the number printed is one that can be reached.
    least = f"{smallest * (1 + 5e-4):.4g}"
    error = GoalOutOfReach.of(
        "half_width",
        f"must be at least {least} for {units:,} units",
        half_width,
        hint=None if units_needed is None else f"a half_width of {half_width:g} takes at least {units_needed:,} units",
    )
    error.smallest_half_width, error.units_needed = smallest, units_needed
    return error
