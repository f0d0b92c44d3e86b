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
from equipoise.analysis.multiplicity import holm
from equipoise.analysis.shrinkage import shrink

MOST_RIVALS = 20
"""With more arms than this, each is compared with this many of the best means only, as the others prove little."""
_GRID = 400


def may_be_best(evidence: Evidence, delta: float, *, larger_is_better: bool = True) -> NDArray[np.bool_]:
    """Return for each arm whether it may still be the best, with probability 1 - delta at all times.

    An arm without rewards always may, and so may one whose rewards are too few or too skewed to say anything.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> may_be_best(evidence, 0.05)
    array([False,  True,  True])
    """
    found = facing_up(evidence, larger_is_better)
    if found.n_arms < 2:
        return np.ones(found.n_arms, bool)
    from equipoise.kernels.arm_evidence import write_log_beaten

    seen = np.flatnonzero(found.pulls > 0)
    rivals = seen[np.argsort(-found.mean[seen], kind="stable")[: MOST_RIVALS + 1]]
    beaten = np.full(found.n_arms, -np.inf)
    out = np.empty(seen.size)
    write_log_beaten(found.moments, seen, rivals, found.n_arms - 1, False, out)
    beaten[seen] = out
    return beaten < -math.log(delta)


def most_lost(evidence: Evidence, delta: float, *, larger_is_better: bool = True) -> FloatArray:
    """Return for each arm how much its mean is below the best one at most, with 1 - delta for all arms and times.

    Only differences from the one best arm can be wrong, so each has delta / (K - 1). NaN where nothing can be said.
    """
    found = facing_up(evidence, larger_is_better)
    n_arms = found.n_arms
    lost = np.zeros(n_arms)
    if n_arms < 2:
        return lost
    from equipoise.kernels.arm_evidence import write_differences

    first, second = np.divmod(np.arange(n_arms * n_arms), n_arms)
    pairs = first < second
    out = np.empty((4, int(pairs.sum())))
    # One-sided ends at delta / (K - 1): two-sided ones at twice that.
    failures = np.full(out.shape[1], min(2.0 * delta / (n_arms - 1), 0.999))
    write_differences(found.moments, first[pairs], second[pairs], failures, False, out)
    for k, (a, b) in enumerate(zip(first[pairs].tolist(), second[pairs].tolist(), strict=True)):
        lost[a] = max(lost[a], -out[0, k]) if not math.isnan(lost[a] - out[0, k]) else math.nan
        lost[b] = max(lost[b], out[1, k]) if not math.isnan(lost[b] + out[1, k]) else math.nan
    return lost + 0.0


def loss_of_choosing(evidence: Evidence, arm: int, delta: float, *, larger_is_better: bool = True) -> float:
    """Return `most_lost` of one arm.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> round(loss_of_choosing(evidence, 2, 0.05), 3)
    0.063
    """
    from equipoise.kernels.arm_evidence import least_difference

    found = facing_up(evidence, larger_is_better)
    threshold = math.log(max(found.n_arms - 1, 1) / delta)
    lost = [-least_difference(found.moments, arm, b, threshold, False) for b in range(found.n_arms) if b != arm]
    return math.nan if any(map(math.isnan, lost)) else max([0.0, *lost])


def rank_bounds(
    first: IntArray, second: IntArray, p_above: FloatArray, p_below: FloatArray, delta: float, n_arms: int
) -> tuple[IntArray, IntArray]:
    """Return the best and the worst rank of each arm from the p-values of pairs, with 1 - delta for all at all times.

    `p_above` are the p-values of mean first being above mean second; 1 is the rank of the largest mean.
    """
    p_values = np.minimum(1.0, 2.0 * np.minimum(p_above, p_below))
    adjusted = holm(p_values.tolist())
    low, high = np.ones(n_arms, np.int64), np.full(n_arms, n_arms, np.int64)
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
