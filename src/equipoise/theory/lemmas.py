"""Compute the paper's lemmas: value gaps, distances, forced exploration and tracking  [Lemma 3, 4, 6, 7, Cor. 2]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.objective import smoothness, strong_concavity
from equipoise.theory.assumptions import checked_horizon, positive_floor, positive_stds, weight_below_one

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def allocation_distance(gap: float, std: ArrayLike, *, reward_weight: float, as_printed: bool = False) -> float:
    """Return the largest distance from the optimal allocation of one that loses at most `gap` (Lemma 3).

    The Euclidean distance, so also the largest difference of one arm's shares, is at most
    `sqrt(2 gap / strong_concavity)`. This is what the paper proves; its statement has an extra factor K.

    Parameters
    ----------
    gap : float
        Largest shortfall of the trade-off from the optimum.
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

    That is `3/2 smoothness distance^2`, for allocations with shares of at least `floor`, if the optimal allocation is
    one of them (Asm. 1): a floor that excludes the optimum makes the loss linear in the distance. Under Asm. 1 a third
    of this value is enough.

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
    length = checks.number_between("distance", distance, 0, 2)  # the distance of two allocations cannot exceed this
    stds = positive_stds(std)
    curvature = smoothness(stds, reward_weight=weight_below_one(reward_weight), floor=positive_floor(floor, stds.size))
    return 1.5 * curvature * length**2


LARGEST_EXPLORATION = 1e9
"""A larger value would force every arm for longer than any experiment lasts."""


def exploration_bound(n_arms: int, *, forcing: float) -> float:
    """Return n_0 = K (K eta^2 + eta sqrt(K) + 1), the end of the first phase of Theorem 1 (Cor. 2).

    Parameters
    ----------
    n_arms : int
        K.
    forcing : float
        eta, not negative.

    Examples
    --------
    >>> exploration_bound(4, forcing=1)
    28.0
    """
    arms = checks.whole_number("n_arms", n_arms, 1)
    eta = checks.number_between("forcing", forcing, 0, LARGEST_EXPLORATION)
    return arms * (arms * eta**2 + eta * math.sqrt(arms) + 1)


def exploration_end(n_arms: int, *, forcing: float, as_printed: bool = False) -> int:
    """Return the first step that is not forced; all arms then have the same number of pulls (Lemma 6).

    Parameters
    ----------
    n_arms : int
        K.
    forcing : float
        eta, not negative.
    as_printed : bool
        False for the rule in use: pulls < eta sqrt(t) (Fig. 2 line 4), and an arm with fewer than two rewards is
        forced at any eta. True for n_0 of Lemma 6, whose rule is pulls < eta sqrt(t) + 1.

    Examples
    --------
    >>> exploration_end(4, forcing=1)
    21
    >>> exploration_end(4, forcing=1, as_printed=True)
    25
    """
    arms = checks.whole_number("n_arms", n_arms, 1)
    eta = checks.number_between("forcing", forcing, 0, LARGEST_EXPLORATION)

    def forced(rounds: int) -> bool:
        if as_printed:
            return rounds < eta * math.sqrt(rounds * arms) + 1
        return rounds < max(2.0, eta * math.sqrt(rounds * arms + 1))

    # rounds - eta sqrt(...) is convex and starts below zero, so it changes sign once: search from above.
    rounds = max(2, math.ceil(exploration_bound(arms, forcing=eta) / arms) + 1)
    low = 0
    while rounds - low > 1:
        middle = (low + rounds) // 2
        low, rounds = (middle, rounds) if forced(middle) else (low, middle)
    return rounds * arms + 1


def least_pulls(horizon: int, *, n_arms: int, forcing: float) -> int:
    """Return how many pulls every arm has at least after `horizon` steps, whatever the tracking rule does.

    Cor. 2 promises eta sqrt(n), for a forcing rule that Fig. 2 does not have. The rule of Fig. 2, with two pulls of
    each arm at the start, guarantees `min(floor(n / K), max(2, ceil(eta sqrt(n + 2 - K))))`.

    Parameters
    ----------
    horizon : int
        The number of steps n.
    n_arms : int
        K.
    forcing : float
        eta, not negative.

    Examples
    --------
    >>> least_pulls(10_000, n_arms=5, forcing=1)
    100
    """
    steps = checked_horizon(horizon)
    arms = checks.whole_number("n_arms", n_arms, 1)
    eta = checks.number_between("forcing", forcing, 0, LARGEST_EXPLORATION)
    if steps < arms:
        return 0
    return min(steps // arms, max(2, math.ceil(eta * math.sqrt(steps + 2 - arms))))


def tracking_error(target_error: float, *, horizon: int, n_arms: int, settled_from: float) -> float:
    """Return how far an arm's frequency may be from its optimal share when tracking (Lemma 7).

    That is `(K - 1) max(settled_from / n, 2 target_error + 1/n)`. (The paper prints 1 where only 1/n can be meant.)

    Parameters
    ----------
    target_error : float
        omega(n): largest difference between an arm's target share and its optimal share, from `settled_from` on.
        n omega(n) must not fall with n and 2 n omega(n) must be at least eta sqrt(n) + 1.
    horizon : int
        The number of steps n, at least `settled_from`.
    n_arms : int
        K.
    settled_from : float
        n_1, the step from which the targets are that accurate.

    Examples
    --------
    >>> tracking_error(0.01, horizon=10_000, n_arms=3, settled_from=50)
    0.0402
    """
    omega = checks.number_between("target_error", target_error, 0, math.inf)
    steps = checked_horizon(horizon)
    arms = checks.whole_number("n_arms", n_arms, 1)
    start = checks.number_between("settled_from", settled_from, 0, float(steps))
    return (arms - 1) * max(start / steps, 2 * omega + 1 / steps)
