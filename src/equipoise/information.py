"""Measure how much information an allocation keeps: how few units the best design needs to be as accurate  [Sect. 2].

An allocation keeps the share q of the information if it is as accurate as the best design with q times as many units.
Accurate about what is a choice: the average error (the paper's Eq. 2), every arm, or which arm is best.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import GoalOutOfReach, InvalidInput

# A goal that exceeds what is possible by rounding only is met.
_ROUNDING = 1e-9


def information_for_half_width(
    std: ArrayLike, *, half_width: float, units: int, about: str = "every-arm", failure_probability: float = 0.05
) -> float:
    """Return the share of the information to keep so that confidence intervals are this narrow after so many units.

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

    Returns
    -------
    float
        The `information_kept` of a policy, in (0, 1].

    Raises
    ------
    GoalOutOfReach
        If no allocation of so many units is that accurate. The error carries the smallest half-width that they reach,
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
    smallest = quantile * widest * _smallest_error(stds / widest, about) / math.sqrt(n_units)
    ratio = smallest / width
    kept = ratio * ratio
    if kept > 1.0 + _ROUNDING:
        raise _out_of_reach(half_width, smallest, n_units, n_units * kept * (1.0 - _ROUNDING))
    return min(max(kept, float(np.finfo(float).tiny)), 1.0)


def _smallest_error(std: FloatArray, about: str) -> float:
    """Return the smallest error possible, times sqrt(n): the largest of the arms, or their average."""
    if about == "every-arm":
        return float(np.sqrt((std * std).sum()))
    return float(np.cbrt(std * std).sum() ** 1.5 / std.size)


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
