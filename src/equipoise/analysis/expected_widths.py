"""Predict the half-widths that `status` will show after so many people: planning speaks in the unit of the result."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.analysis.evidence import Evidence, RewardRange, tightest_for
from equipoise.analysis.multiplicity import arm_failures
from equipoise.errors import InvalidInput


def expected_half_widths(
    people_per_arm: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_range: RewardRange = None,
    failure_probability: float = 0.05,
    skewness: ArrayLike | None = None,
    budget: int | None = None,
) -> FloatArray:
    """Return the half-width of each arm's interval at all times, as `status` will show it; NaN where it shows none.

    The intervals are those of a live experiment: all arms together hold at all times with 1 - `failure_probability`,
    and a tenth of that is kept for arms that are added later.

    Parameters
    ----------
    people_per_arm : array (n_arms,)
        Rewards of each arm, one per person who answers.
    mean, std : array (n_arms,)
        Of the rewards.
    reward_range : pair, optional
        The range that the experiment declares; (0, 1) for yes/no rewards. Rewards between the ends have narrower
        intervals than this: of them, more is known then than mean and spread.
    failure_probability : float, default 0.05
        For all arms together.
    skewness : array (n_arms,), optional
        Of rewards without a range; 0 by default.
    budget : int, optional
        Number of people that the experiment declares by a `Budget`, at which its intervals in a range are narrowest.

    Examples
    --------
    >>> rate = np.array([0.1, 0.12, 0.14])
    >>> expected_half_widths([1000, 1000, 1000], rate, np.sqrt(rate * (1 - rate)), reward_range=(0, 1)).round(4)
    array([0.0373, 0.04  , 0.0424])
    >>> expected_half_widths([1000, 10], [1, 2], [1, 1]).round(4)
    array([0.1108,    nan])
    """
    counts = np.rint(checks.non_negative("people_per_arm", people_per_arm))
    means, stds = checks.means_and_stds(mean, std)
    if means.size != counts.size:
        raise InvalidInput.of("mean", f"must have {counts.size} entries, one per arm", means.size)
    checks.number_between("failure_probability", failure_probability, 0, 1, open_low=True)
    tuned = tightest_for([] if budget is None else [budget], counts.size)
    # The std of a sample (n - 1) of yes/no rewards is this much larger than the one that follows from its rate.
    stds = stds * np.sqrt(counts / np.maximum(counts - 1.0, 1.0))
    evidence = Evidence.from_summary(
        counts, means, stds, skewness=skewness, reward_range=reward_range, tightest_at=tuned
    )
    return half_widths(evidence, arm_failures(failure_probability, counts.size, counts.size))


def half_widths(evidence: Evidence, failures: FloatArray) -> FloatArray:
    """Return the larger distance from each arm's mean to an end of its interval, NaN without an interval."""
    low, high = evidence.intervals(failures)
    return np.maximum(evidence.mean - low, high - evidence.mean)


def steered(assigned: ArrayLike, target: ArrayLike, floor: ArrayLike, more: ArrayLike) -> FloatArray:
    """Return how many of the next people each arm gets from a policy that steers all shares towards its target.

    Arms below their target catch up with those above, which get their floors meanwhile.

    Parameters
    ----------
    assigned, floor : array (n_arms,)
        People of each arm so far, and the share that is reserved for it.
    target : array (..., n_arms)
        The shares to steer towards.
    more : number or array (...)
        How many people come, for each target.

    Examples
    --------
    >>> steered([100, 100], [0.9, 0.1], [0.0, 0.0], 200)
    array([200.,   0.])
    >>> steered([100, 100], [0.8, 0.2], [0.1, 0.1], 600).round(1)
    array([540.,  60.])
    >>> steered([100, 100], [[0.8, 0.2], [0.5, 0.5]], [0.0, 0.0], [600, 60])
    array([[540.,  60.],
           [ 30.,  30.]])
    """
    had, shares, reserved = (np.asarray(values, np.float64) for values in (assigned, target, floor))
    come = np.asarray(more, np.float64)[..., None]
    sure = reserved * come
    lacking = np.maximum(shares * (had.sum() + come) - had - sure, 0.0)
    free = np.maximum(come - sure.sum(axis=-1, keepdims=True), 0.0)
    total = lacking.sum(axis=-1, keepdims=True)
    found: FloatArray = sure + free * np.where(total > 0.0, lacking / np.where(total > 0.0, total, 1.0), shares)
    return found


def rewards_needed(evidence: Evidence, failures: FloatArray, half_width: float) -> FloatArray:
    """Return how many rewards each arm needs until its interval is this narrow, if they go on like those so far.

    NaN for an arm without any reward.

    Examples
    --------
    >>> evidence = Evidence.from_summary([100, 400], [0.1, 0.5], [0.3, 0.5], reward_range=(0, 1))
    >>> needed = rewards_needed(evidence, np.array([0.025, 0.025]), 0.05)
    >>> needed.round(), half_widths(evidence.continued(needed), np.array([0.025, 0.025])).round(4)
    (array([ 526., 1212.]), array([0.05, 0.05]))
    """
    low, high = np.zeros(evidence.n_arms), np.full(evidence.n_arms, np.inf)
    guess = np.maximum(evidence.pulls, evidence.rewards_needed())
    for _ in range(_STEPS):
        width = half_widths(evidence.continued(guess), failures)
        enough = width <= half_width
        low, high = np.where(enough, low, guess), np.where(enough, guess, high)
        is_found = np.isfinite(high) & (high - low <= np.maximum(1.0, 1e-3 * np.where(np.isfinite(high), high, 0.0)))
        if (is_found | (guess >= _MOST_REWARDS) | (evidence.pulls == 0)).all():
            break
        # Widths shrink with the root of the number, and a little more slowly.
        next_guess = np.rint(guess * np.where(width > 0.0, (width / half_width) ** 2, 0.5))
        next_guess = np.where(np.isfinite(next_guess), np.minimum(next_guess, _MOST_REWARDS), 2.0 * guess)
        inside = (next_guess > low) & (next_guess < high)
        halved = np.where(np.isfinite(high), np.rint(0.5 * (low + high)), np.minimum(2.0 * guess + 1.0, _MOST_REWARDS))
        guess = np.where(inside, next_guess, halved)
    found: FloatArray = np.where(evidence.pulls > 0, high, np.nan)
    return found


_STEPS, _MOST_REWARDS = 60, 1e12
