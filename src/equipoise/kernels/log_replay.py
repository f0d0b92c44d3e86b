"""Replay an experiment's log: rebuild every unit's state and every arm's statistics from the events alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.assignment import Design, next_assignment, write_chances
from equipoise.kernels.compiler import compiled
from equipoise.kernels.drift_sums import add_weighted, write_estimates
from equipoise.kernels.exact_sums import add_reward_exactly
from equipoise.kernels.rules import PLAIN
from equipoise.unit_lifecycle import ASSIGNED, COUNTED, DEFAULT_VALUE, EXPIRED, NOTHING, OTHER, REWARD, WAITING

if TYPE_CHECKING:
    from equipoise.kernels.rules import Rule

COMPARE, PAUSE, TRUST = 0, 1, 2
"""What to do with a decision: recompute and compare it, stop before it, or trust it."""

(
    SAME,
    SPECIAL,
    BAD_NUMBER,
    BAD_ARM,
    BAD_PROBABILITY,
    BAD_FORCED,
    BAD_UNIT,
    BAD_STATE,
    BAD_COUNTED,
    BAD_REPLACED,
    BAD_REWARD,
    CLOSED,
    BAD_WEIGHT,
) = range(13)
"""Why a replay stopped: at the end, at an unknown event, or at the first difference."""


class Events(NamedTuple):
    """A slice of the log, one entry per event.

    `replaced` is NaN where no reward was removed from the estimates, `weight` where no weight was solved for. `unit`,
    `forced`, `replaced` and `weight` may be empty together: they are not compared then, and `arm` is read at
    assignments only.
    """

    kind: IntArray
    unit: IntArray
    arm: IntArray
    decision: IntArray
    reward: FloatArray
    probability: FloatArray
    forced: IntArray
    counted: IntArray
    replaced: FloatArray
    weight: FloatArray


class Lives(NamedTuple):
    """The tables of `unit_lifecycle` for the rule in force, the default reward, and how rewards count.

    A reward counts as `cap` if it is larger. `sign` is -1 where small rewards are good; `exact` is whether removals are
    rounded from exact sums. The tables are arguments, not constants, because numba would not notice a change of a
    constant.
    """

    steps: IntArray
    counter_of: IntArray
    default: float
    cap: float
    sign: float
    exact: bool


class Units(NamedTuple):
    """One entry per decision: a hash of the unit, its arm, state, latest recorded reward, and probability."""

    unit: IntArray
    arm: IntArray
    state: IntArray
    reward: FloatArray
    probability: FloatArray


class Tally(NamedTuple):
    """Statistics that replay computes for every arm; `drift` has no rows if the policy reads no weighted rewards."""

    assigned: IntArray
    pulls: IntArray
    mean: FloatArray
    std: FloatArray
    sums: FloatArray
    digits: IntArray
    counters: IntArray
    drift: FloatArray


def new_units(size: int) -> Units:
    """Allocate space for this many decisions."""
    unit, arm, state = (np.zeros(size, np.int64) for _ in range(3))
    return Units(unit, arm, state, np.zeros(size), np.zeros(size))


@compiled
def replay(
    events: Events,
    first: int,
    last: int,
    mode: int,
    n_decisions: int,
    enrolling: bool,
    rule: Rule,
    design: Design,
    warm_up: int,
    seed: int,
    lives: Lives,
    units: Units,
    tally: Tally,
    chances: FloatArray,
) -> tuple[int, int, int]:
    """Replay events `first` to `last` (exclusive); return (where it stopped, why, decisions so far).

    On a difference it stops at that event, before counting it. The probabilities of all arms at each decision that is
    recomputed go to its row of `chances`, unless that has no rows.
    """
    kinds, unit_of, arms, decisions = events.kind, events.unit, events.arm, events.decision
    rewards, probabilities, forced_flags = events.reward, events.probability, events.forced
    counted_flags, replaced_values, weights = events.counted, events.replaced, events.weight
    owner, arm_of, state_of, reward_of = units.unit, units.arm, units.state, units.reward
    assigned, pulls, mean, std = tally.assigned, tally.pulls, tally.mean, tally.std
    sums, digits, counters, drift = tally.sums, tally.digits, tally.counters, tally.drift
    drifts = drift.shape[0] > 0
    steps, counter_of, default = lives.steps, lives.counter_of, lives.default
    cap, sign, exact = lives.cap, lives.sign, lives.exact
    complete = unit_of.size > 0
    for at in range(first, last):
        kind, arm, decision, reward = kinds[at], arms[at], decisions[at], rewards[at]
        if kind == OTHER:
            return at, SPECIAL, n_decisions
        if arm < 0 or arm >= assigned.size:
            return at, BAD_ARM, n_decisions
        if kind == ASSIGNED:
            if mode == PAUSE:
                return at, SPECIAL, n_decisions
            if decision != n_decisions:
                return at, BAD_NUMBER, n_decisions
            if not enrolling:
                return at, CLOSED, n_decisions
            if mode == COMPARE:
                read = pulls, mean, std
                if drifts and design.steering != PLAIN:
                    read = design.seen_pulls, design.seen_mean, design.seen_std
                    write_estimates(
                        design.steering, rule.rewards_needed, design.active, pulls, mean, std, sums, drift, *read
                    )
                wanted, probability, forced, weight = next_assignment(
                    rule, design, warm_up, seed, decision, assigned, *read
                )
                if wanted != arm:
                    return at, BAD_ARM, n_decisions
                if probability != probabilities[at]:
                    return at, BAD_PROBABILITY, n_decisions
                if complete and forced != (forced_flags[at] != 0):
                    return at, BAD_FORCED, n_decisions
                if complete and weight != weights[at] and not (np.isnan(weight) and np.isnan(weights[at])):
                    return at, BAD_WEIGHT, n_decisions
                if chances.shape[0] > 0:
                    write_chances(design, chances[decision])
            owner[decision], arm_of[decision] = unit_of[at] if complete else 0, arm
            state_of[decision], reward_of[decision] = WAITING, np.nan
            units.probability[decision] = probabilities[at]
            assigned[arm] += 1
            n_decisions += 1
            continue
        if decision < 0 or decision >= n_decisions or (complete and owner[decision] != unit_of[at]):
            return at, BAD_UNIT, n_decisions
        if complete and arm_of[decision] != arm:
            return at, BAD_ARM, n_decisions
        arm = arm_of[decision]
        state = state_of[decision]
        # What the event should have done: whether its reward counts now, and which reward it replaces.
        after, counts, takes = steps[state, kind, 0], steps[state, kind, 1] == 1, steps[state, kind, 2]
        if after < 0:
            return at, BAD_STATE, n_decisions
        if kind == COUNTED and reward != reward_of[decision]:
            return at, BAD_REWARD, n_decisions
        if kind == EXPIRED and counts and reward != default:
            return at, BAD_REWARD, n_decisions
        replaces = default if takes == DEFAULT_VALUE else reward_of[decision] if takes == REWARD else np.nan
        if counts != (counted_flags[at] != 0):
            return at, BAD_COUNTED, n_decisions
        recorded = replaced_values[at] if complete else replaces
        if recorded != replaces and not (np.isnan(recorded) and np.isnan(replaces)):
            return at, BAD_REPLACED, n_decisions
        if takes != NOTHING:
            old = sign * min(replaces, cap)
            add_reward_exactly(arm, old, -1.0, pulls, mean, std, sums, digits[arm], exact)
            if drifts:
                add_weighted(arm, old, units.probability[decision], decision, -1.0, pulls, drift)
        if counts:
            new = sign * min(reward, cap)
            add_reward_exactly(arm, new, 1.0, pulls, mean, std, sums, digits[arm], exact)
            if drifts:
                add_weighted(arm, new, units.probability[decision], decision, 1.0, pulls, drift)
        if kind != EXPIRED:
            reward_of[decision] = reward
        if after != state:
            if counter_of[state] >= 0:
                counters[counter_of[state], arm] -= 1
            if counter_of[after] >= 0:
                counters[counter_of[after], arm] += 1
            state_of[decision] = after
    return last, SAME, n_decisions
