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


def steered(assigned: ArrayLike, target: ArrayLike, floor: ArrayLike, more: float) -> FloatArray:
    """Return how many of the next people each arm gets from a policy that steers all shares towards its target.

    Arms below their target catch up with those above, which get their floors meanwhile.

    Examples
    --------
    >>> steered([100, 100], [0.9, 0.1], [0.0, 0.0], 200)
    array([200.,   0.])
    >>> steered([100, 100], [0.8, 0.2], [0.1, 0.1], 600).round(1)
    array([540.,  60.])
    """
    had, shares, reserved = (np.asarray(values, np.float64) for values in (assigned, target, floor))
    sure = reserved * more
    lacking = np.maximum(shares * (had.sum() + more) - had - sure, 0.0)
    free = max(more - float(sure.sum()), 0.0)
    total = float(lacking.sum())
    found: FloatArray = sure + free * (lacking / total if total > 0.0 else shares)
    return found
