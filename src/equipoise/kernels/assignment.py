"""Decide the next assignment of a live experiment: warm-up, shares reserved for arms, then the policy's decision.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.decision import RANDOM, WORK_ROWS, decide, draw
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rules import PLAIN

if TYPE_CHECKING:
    from equipoise.kernels.rules import Rule

ASSIGNED, PULLS, TRACKED = 0, 1, 2
MEAN, STD, PROBABILITY = 0, 1, 2


class Design(NamedTuple):
    """The fixed part of an assignment: positions of the active arms, their reserved shares, and scratch space.

    `tracked_from` is how often each arm had been assigned when tracking began. With `steering` other than `PLAIN`,
    `write_estimates` writes what decisions read of all arms to the last three arrays; see `kernels.drift_sums`.
    """

    active: IntArray
    share: FloatArray
    tracked_from: IntArray
    per_arm: FloatArray
    counts: IntArray
    numbers: FloatArray
    work: FloatArray
    steering: int
    seen_pulls: IntArray
    seen_mean: FloatArray
    seen_std: FloatArray


def new_design(
    active: IntArray,
    share: FloatArray,
    tracked_from: IntArray,
    per_arm: FloatArray,
    steering: int = PLAIN,
    n_arms: int = 0,
) -> Design:
    """Return a design with its scratch space allocated; `n_arms`, all of them, matters for steering only."""
    n = active.size
    counts, numbers, work = np.empty((3, n), np.int64), np.empty((3, n)), np.empty((WORK_ROWS, n))
    seen = np.zeros(n_arms, np.int64), np.full(n_arms, np.nan), np.full(n_arms, np.nan)
    return Design(active, share, tracked_from, per_arm, counts, numbers, work, steering, *seen)


@compiled
def warm_up_chances(assigned: IntArray, warm_up: int, probability: FloatArray) -> bool:
    """Write the warm-up probabilities, equal for all arms assigned least; return False once the warm-up is over.

    This is block randomisation: within one round over the arms the order cannot be guessed.
    """
    fewest, ties = assigned[0], 0
    for i in range(assigned.size):
        if assigned[i] < fewest:
            fewest, ties = assigned[i], 1
        elif assigned[i] == fewest:
            ties += 1
    if fewest >= warm_up:
        return False
    for i in range(assigned.size):
        probability[i] = 1.0 / ties if assigned[i] == fewest else 0.0
    return True


@compiled
def next_assignment(
    rule: Rule,
    design: Design,
    warm_up: int,
    seed: int,
    index: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
) -> tuple[int, float, bool, float]:
    """Return (arm, probability, forced, weight) of the decision with this index.

    The weight is the one that the policy solved for, or NaN if it solved for none or did not decide.

    Reserved shares are mixed in: probability = share + (1 - sum of shares) * the probability of the warm-up, or
    after it of the policy. One uniform number serves both draws; what is left of it after the first is uniform again.
    """
    active, share, counts, numbers = design.active, design.share, design.counts, design.numbers
    own_assigned, own_pulls, own_mean, own_std = counts[ASSIGNED], counts[PULLS], numbers[MEAN], numbers[STD]
    tracked, probability = counts[TRACKED], numbers[PROBABILITY]
    total, total_tracked, kept = 0, 0, 0.0
    for i in range(active.size):
        arm = active[i]
        own_assigned[i], own_pulls[i], own_mean[i], own_std[i] = assigned[arm], pulls[arm], mean[arm], std[arm]
        tracked[i] = assigned[arm] - design.tracked_from[i]
        total += assigned[arm]
        total_tracked += tracked[i]
        kept += share[i]
    uniform = decision_uniform(seed, 0, index)
    wanted, forced, weight = RANDOM, True, np.nan
    if not warm_up_chances(own_assigned, warm_up, probability):
        wanted, forced, weight = decide(
            rule,
            design.per_arm,
            total + 1,
            own_assigned,
            own_pulls,
            own_mean,
            own_std,
            total_tracked + 1,
            tracked,
            design.work,
            probability,
        )
    if wanted != RANDOM:
        for i in range(active.size):
            probability[i] = 0.0
        probability[wanted] = 1.0
    if uniform < kept:
        place, forced = draw(share, uniform), False
    elif wanted != RANDOM:
        place = wanted
    else:
        place = draw(probability, (uniform - kept) / (1.0 - kept))
    return active[place], share[place] + (1.0 - kept) * probability[place], forced, weight


@compiled
def write_chances(design: Design, chances: FloatArray) -> None:
    """Write what the last call of `next_assignment` gave every arm in play as its probability, among all arms.

    Arms that are not in play keep what is in `chances`. An arm's entry equals the probability returned with it, bit
    for bit: it is the same sum.
    """
    active, share, probability = design.active, design.share, design.numbers[PROBABILITY]
    kept = 0.0
    for i in range(active.size):
        kept += share[i]
    for i in range(active.size):
        chances[active[i]] = share[i] + (1.0 - kept) * probability[i]


@compiled
def next_assignments(
    rule: Rule,
    design: Design,
    warm_up: int,
    seed: int,
    index: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    arms: IntArray,
    probabilities: FloatArray,
    forced: IntArray,
    weights: FloatArray,
) -> None:
    """Write the decisions from this index on, assuming no reward arrives in between; count them in `assigned`."""
    for i in range(arms.size):
        arm, probability, was_forced, weight = next_assignment(
            rule, design, warm_up, seed, index + i, assigned, pulls, mean, std
        )
        arms[i], probabilities[i], forced[i], weights[i] = arm, probability, was_forced, weight
        assigned[arm] += 1
