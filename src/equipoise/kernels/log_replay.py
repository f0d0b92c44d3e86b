"""Replay of an experiment's log: every unit's state and every arm's statistics again, from the events alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.kernels.assignment import Design, next_assignment
from equipoise.kernels.compiler import compiled
from equipoise.kernels.moments import add_reward
from equipoise.unit_lifecycle import (
    ASSIGNED,
    COUNTED,
    DEFAULT,
    DEFAULTED,
    DROP,
    DROPPED,
    EXPIRED,
    HELD,
    IN_ESTIMATES,
    LATE_DEFAULTED,
    LATE_DROPPED,
    N_DEFAULTED,
    N_DROPPED,
    N_HELD,
    N_OVERDUE,
    OTHER,
    OVERDUE,
    REWARDED,
    WAIT,
    WAITING,
)

if TYPE_CHECKING:
    from equipoise._types import FloatArray, IntArray
    from equipoise.kernels.rules import Rule

COMPARE, PAUSE, TRUST = 0, 1, 2
"""What to do about a decision: take it again and compare, stop before it, or believe it."""

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
) = range(12)
"""Why a replay stopped: at the end, at an event it does not know, or at the first difference."""


class Events(NamedTuple):
    """A piece of the log, one entry per event; `replaced` is NaN where nothing was taken out of the estimates."""

    kind: IntArray
    unit: IntArray
    arm: IntArray
    decision: IntArray
    reward: FloatArray
    probability: FloatArray
    forced: IntArray
    counted: IntArray
    replaced: FloatArray


class Missing(NamedTuple):
    """The rule for missing rewards as plain numbers; `sign` is -1 where small rewards are good."""

    kind: int
    value: float
    late_counts: bool
    hold: bool
    sign: float


class Units(NamedTuple):
    """One entry per decision: whose it was (a hash), its arm, the unit's state and its reward as told last."""

    unit: IntArray
    arm: IntArray
    state: IntArray
    reward: FloatArray


class Tally(NamedTuple):
    """What replay computes for every arm."""

    assigned: IntArray
    pulls: IntArray
    mean: FloatArray
    std: FloatArray
    sums: FloatArray
    counters: IntArray


def new_units(size: int) -> Units:
    """Return room for this many decisions."""
    return Units(np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size, np.int64), np.zeros(size))


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
    missing: Missing,
    units: Units,
    tally: Tally,
) -> tuple[int, int, int]:
    """Replay events `first` to `last` (not included); return (where it stopped, why, decisions so far).

    With a difference it stops at the event that differs, before counting it.
    """
    kinds, unit_of, arms, decisions = events.kind, events.unit, events.arm, events.decision
    rewards, probabilities, forced_flags = events.reward, events.probability, events.forced
    counted_flags, replaced_values = events.counted, events.replaced
    owner, arm_of, state_of, reward_of = units.unit, units.arm, units.state, units.reward
    assigned, pulls, mean, std = tally.assigned, tally.pulls, tally.mean, tally.std
    sums, counters = tally.sums, tally.counters
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
                wanted, probability, forced = next_assignment(
                    rule, design, warm_up, seed, decision, assigned, pulls, mean, std
                )
                if wanted != arm:
                    return at, BAD_ARM, n_decisions
                if probability != probabilities[at]:
                    return at, BAD_PROBABILITY, n_decisions
                if forced != (forced_flags[at] != 0):
                    return at, BAD_FORCED, n_decisions
            owner[decision], arm_of[decision] = unit_of[at], arm
            state_of[decision], reward_of[decision] = WAITING, np.nan
            assigned[arm] += 1
            n_decisions += 1
            continue
        if decision < 0 or decision >= n_decisions or owner[decision] != unit_of[at]:
            return at, BAD_UNIT, n_decisions
        if arm_of[decision] != arm:
            return at, BAD_ARM, n_decisions
        state = state_of[decision]
        # What the event should have done: whether its reward counts now, and which one it takes the place of.
        counts, replaces = False, np.nan
        if kind == REWARDED:
            if state == WAITING:
                counts = not missing.hold
                after = HELD if missing.hold else IN_ESTIMATES
            elif state == OVERDUE:
                counts, after = True, IN_ESTIMATES
            elif state == DEFAULTED:
                counts = missing.late_counts
                replaces = missing.value if counts else np.nan
                after = IN_ESTIMATES if counts else LATE_DEFAULTED
            elif state == DROPPED:
                counts = missing.late_counts
                after = IN_ESTIMATES if counts else LATE_DROPPED
            else:
                return at, BAD_STATE, n_decisions
        elif kind == COUNTED:
            if state != HELD:
                return at, BAD_STATE, n_decisions
            if reward != reward_of[decision]:
                return at, BAD_REWARD, n_decisions
            counts, after = True, IN_ESTIMATES
        elif kind == EXPIRED:
            if state != WAITING:
                return at, BAD_STATE, n_decisions
            after = OVERDUE if missing.kind == WAIT else (DROPPED if missing.kind == DROP else DEFAULTED)
            counts = missing.kind == DEFAULT
            if counts and reward != missing.value:
                return at, BAD_REWARD, n_decisions
        else:
            if state in (WAITING, OVERDUE, DEFAULTED, DROPPED):
                return at, BAD_STATE, n_decisions
            after = state
            counts = state == IN_ESTIMATES
            replaces = reward_of[decision] if counts else np.nan
        if counts != (counted_flags[at] != 0):
            return at, BAD_COUNTED, n_decisions
        recorded = replaced_values[at]
        if recorded != replaces and not (np.isnan(recorded) and np.isnan(replaces)):
            return at, BAD_REPLACED, n_decisions
        if not np.isnan(replaces):
            add_reward(arm, missing.sign * replaces, -1.0, pulls, mean, std, sums)
        if counts:
            add_reward(arm, missing.sign * reward, 1.0, pulls, mean, std, sums)
        if kind != EXPIRED:
            reward_of[decision] = reward
        if after != state:
            _count_state(state, arm, -1, counters)
            _count_state(after, arm, 1, counters)
            state_of[decision] = after
    return last, SAME, n_decisions


@compiled
def _count_state(state: int, arm: int, change: int, counters: IntArray) -> None:
    if state == HELD:
        counters[N_HELD, arm] += change
    elif state == OVERDUE:
        counters[N_OVERDUE, arm] += change
    elif state in (DEFAULTED, LATE_DEFAULTED):
        counters[N_DEFAULTED, arm] += change
    elif state in (DROPPED, LATE_DROPPED):
        counters[N_DROPPED, arm] += change
