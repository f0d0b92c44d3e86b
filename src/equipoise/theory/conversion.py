"""From values to allocations and back  [Lemma 3, Lemma 4]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.objective import smoothness, strong_concavity
from equipoise.theory.inputs import (
    positive_floor,
    positive_stds,
    weight_below_one,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def allocation_distance(gap: float, std: ArrayLike, *, reward_weight: float, as_printed: bool = False) -> float:
    """Return how far from the optimal allocation one may be that loses at most `gap` (Lemma 3).

    The Euclidean distance, so also the largest difference of one arm's shares, is at most
    `sqrt(2 gap / strong_concavity)`. This is what the paper proves; its statement has a K more.

    Parameters
    ----------
    gap : float
        How much lower the trade-off is than at the optimum, at most.
    std : array (n_arms,)
        Standard deviations of the arms, all positive.
    reward_weight : float
        w, in [0, 1).
    as_printed : bool
        True for the statement, `sqrt(2 K gap / strong_concavity)`.

    Examples
    --------
    >>> round(allocation_distance(0.001, [0.5, 0.4], reward_weight=0.5), 4)
    0.1633
    >>> round(allocation_distance(0.001, [0.5, 0.4], reward_weight=0.5, as_printed=True), 4)
    0.2309
    """
    loss = checks.number_between("gap", gap, 0, math.inf)
    stds = positive_stds(std)
    concavity = strong_concavity(stds, reward_weight=weight_below_one(reward_weight))
    return math.sqrt(2 * (stds.size if as_printed else 1) * loss / concavity)


def value_gap(distance: float, std: ArrayLike, *, reward_weight: float, floor: float) -> float:
    """Return how much an allocation at most `distance` from the optimal one may lose (Lemma 4).

    That is `3/2 smoothness distance^2`, for allocations with shares of at least `floor`, if the optimal
    allocation is one of them (Asm. 1): a floor that cuts the optimum off makes the loss linear in the
    distance. Under Asm. 1 a third of this value is enough.

    Parameters
    ----------
    distance : float
        Euclidean distance between the two allocations.
    std : array (n_arms,)
        Standard deviations of the arms, all positive.
    reward_weight : float
        w, in [0, 1).
    floor : float
        lambda_min, in (0, 1/K].

    Examples
    --------
    >>> round(value_gap(0.01, [0.5, 0.4], reward_weight=0.5, floor=0.25), 6)
    0.00045
    """
    length = checks.number_between("distance", distance, 0, 2)  # no two allocations are further apart
    stds = positive_stds(std)
    curvature = smoothness(stds, reward_weight=weight_below_one(reward_weight), floor=positive_floor(floor, stds.size))
    return 1.5 * curvature * length**2
