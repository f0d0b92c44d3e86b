"""Which arms may still be the best, what choosing one can cost, ranks, and the chance of being best as a belief.

An arm is ruled out when the average evidence that the others are better reaches 1 / delta. The best arm is beaten by
none, so it is ever ruled out with probability delta at most, without a union over pairs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import best_arm_failures, holm, pair_failures
from equipoise.analysis.shrinkage import shrink

MOST_RIVALS = 20
"""With more arms than this, each is compared with this many of the best means only, as the others prove little."""
_GRID = 400


def may_be_best(
    evidence: Evidence,
    delta: float,
    *,
    larger_is_better: bool = True,
    n_first: int | None = None,
    in_play: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return for each arm whether it may still be the best, with probability 1 - delta at all times.

    An arm without rewards always may, and so may one whose rewards are too few or too skewed to say anything.

    Parameters
    ----------
    evidence : Evidence
        About each arm.
    delta : float
        The probability that the best arm is ever ruled out.
    larger_is_better : bool, default True
        Whether large rewards are good.
    n_first : int, optional
        How many arms there were at first, if more may be added later. Then an arm that is ruled out remains so, however
        many are added.
    in_play : bool array (n_arms,), optional
        The arms among which the best one is sought: those that are not retired. The others are False in the result.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> may_be_best(evidence, 0.05)
    array([False,  True,  True])
    >>> may_be_best(evidence, 0.05, in_play=np.array([True, True, False]))
    array([False,  True, False])
    """
    found = facing_up(evidence, larger_is_better)
    chosen = np.ones(found.n_arms, bool) if in_play is None else in_play
    if np.count_nonzero(chosen) < 2:
        return chosen.copy()
    from equipoise.kernels.arm_evidence import KEPT_FOR_LATER, write_log_beaten

    seen = np.flatnonzero(chosen & (found.pulls > 0))
    rivals = seen[np.argsort(-found.mean[seen], kind="stable")[: MOST_RIVALS + 1]]
    beaten = np.full(found.n_arms, -np.inf)
    out = np.empty(seen.size)
    write_log_beaten(found.moments, seen, rivals, (found.n_arms if n_first is None else n_first) - 1, False, out)
    # Where no arm will be added, nothing need be kept for later ones.
    beaten[seen] = out - (math.log1p(-KEPT_FOR_LATER) if n_first is None else 0.0)
    return chosen & (beaten < -math.log(delta))


def most_lost(
    evidence: Evidence,
    delta: float,
    *,
    larger_is_better: bool = True,
    n_first: int | None = None,
    in_play: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return for each arm how much its mean is below the best one at most, with 1 - delta for all arms and times.

    Only differences from the one best arm can be wrong, so these share delta, as `best_arm_failures` says. NaN where
    nothing can be said, and for arms that are not in play. See `may_be_best` for the parameters.
    """
    chosen = np.ones(evidence.n_arms, bool) if in_play is None else in_play
    lost = np.full(evidence.n_arms, np.nan)
    for arm in np.flatnonzero(chosen).tolist():
        lost[arm] = loss_of_choosing(
            evidence, arm, delta, larger_is_better=larger_is_better, n_first=n_first, in_play=in_play
        )
    return lost


def loss_of_choosing(
    evidence: Evidence,
    arm: int,
    delta: float,
    *,
    larger_is_better: bool = True,
    n_first: int | None = None,
    in_play: NDArray[np.bool_] | None = None,
) -> float:
    """Return `most_lost` of one arm.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> round(loss_of_choosing(evidence, 2, 0.05), 3)
    0.063
    """
    from equipoise.kernels.arm_evidence import least_difference

    found = facing_up(evidence, larger_is_better)
    n_arms = found.n_arms
    chosen = range(n_arms) if in_play is None else np.flatnonzero(in_play).tolist()
    lost = [0.0]
    for other in chosen:
        if other != arm:
            failure = best_arm_failures(delta, other, n_first, n_arms=n_arms)[arm]
            lost.append(-least_difference(found.moments, arm, other, -math.log(failure), False))
    return math.nan if any(map(math.isnan, lost)) else max(lost)


def rank_bounds(
    first: IntArray,
    second: IntArray,
    p_above: FloatArray,
    p_below: FloatArray,
    delta: float,
    *,
    n_arms: int,
    n_first: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Return the best and the worst rank of each arm from the p-values of pairs, with 1 - delta for all at all times.

    `p_above` are the p-values of mean first being above mean second; 1 is the rank of the largest mean. Arms that are
    in no pair have no rank: 0. See `may_be_best` for `n_first`.
    """
    p_values = np.minimum(1.0, 2.0 * np.minimum(p_above, p_below))
    adjusted = holm(p_values.tolist(), pair_failures(delta, first, second, n_first, n_arms=n_arms), delta)
    low, high = np.zeros(n_arms, np.int64), np.zeros(n_arms, np.int64)
    ranked = np.union1d(first, second)
    low[ranked], high[ranked] = 1, ranked.size
    for k, p in enumerate(adjusted):
        if p <= delta:
            winner, loser = (first[k], second[k]) if p_above[k] < p_below[k] else (second[k], first[k])
            high[winner] -= 1
            low[loser] += 1
    return low, high


def chance_of_best(evidence: Evidence, *, larger_is_better: bool = True) -> FloatArray:
    """Return each arm's chance of being the best, as a belief: means are shrunk towards each other, noise is normal.

    It is no guarantee, and no decision should rest on it alone: peeking makes it too sure. NaN before every arm has two
    rewards that differ.

    Examples
    --------
    >>> evidence = Evidence.from_summary([100, 100], [0.0, 0.1], [1.0, 1.0])
    >>> chance_of_best(evidence).round(2)
    array([0.39, 0.61])
    """
    found = facing_up(evidence, larger_is_better)
    n_arms = found.n_arms
    if n_arms == 1:
        return np.ones(1)
    noise = found.std**2 / np.maximum(found.pulls, 1)
    if not (noise > 0).all():
        return np.full(n_arms, np.nan)
    believed = shrink(found.mean, np.sqrt(noise))
    mean, error = np.array(believed.estimate), np.array(believed.standard_error)
    if not (error > 0).all():
        return np.full(n_arms, np.nan)
    reach = np.linspace(-6.0, 6.0, _GRID)
    chance = np.empty(n_arms)
    for a in range(n_arms):
        at = mean[a] + error[a] * reach
        below = _normal_cdf((at[:, None] - mean) / error).astype(np.float64)
        below[:, a] = 1.0
        chance[a] = float(np.exp(-0.5 * reach * reach) @ below.prod(axis=1))
    total: float = chance.sum()
    return chance / total


def facing_up(evidence: Evidence, larger_is_better: bool) -> Evidence:
    """Return the evidence such that large means are good: mirrored if small ones are."""
    return evidence if larger_is_better else evidence.mirrored()


_normal_cdf = np.frompyfunc(lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)), 1, 1)
