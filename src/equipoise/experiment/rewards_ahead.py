"""Predict how many rewards each arm will have, and how many people it takes until arms are known well enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise._types import FloatArray
from equipoise.analysis.expected_widths import rewards_needed, steered
from equipoise.analysis.multiplicity import arm_failures
from equipoise.experiment.inference import evidence_of, retired_arms, widest_difference
from equipoise.unit_lifecycle import N_DROPPED, N_WITHDRAWN

if TYPE_CHECKING:
    from equipoise.analysis.evidence import Evidence
    from equipoise.experiment.state import State
    from equipoise.experiment.stopping import Precision

MOST_PEOPLE = 10**9
"""What takes more people than this is never reached."""
_TOLERANCE = 0.001
"""How close to the goal the widest difference must be, relative to it."""


def rewards_ahead(state: State, shares: FloatArray, more: float | FloatArray) -> FloatArray:
    """Return the rewards of each arm after so many further people, if the policy steers towards shares from now on.

    Units that are still open, and further ones, bring a reward as often as those did that are not open any more.

    Parameters
    ----------
    state : State
        Of the experiment.
    shares : array (..., n_arms)
        Floors included.
    more : number or array (...)
        Further people, for each row of shares.
    """
    stats, counters, active = state.stats, state.counters, state.decider.active
    lost = counters[N_DROPPED] + counters[N_WITHDRAWN]
    answered = float(stats.pulls.sum()) / max(float((stats.pulls + lost).sum()), 1.0)
    further = np.zeros(shares.shape)
    since = (stats.assigned - state.tracked_from)[active]
    further[..., active] = steered(since, shares[..., active], state.decider.share, more)
    found: FloatArray = stats.pulls + answered * (stats.assigned - stats.pulls - lost + further)
    return found


def people_until(state: State, rule: Precision, shares: FloatArray) -> FloatArray:
    """Return how many further people it takes until a precision is reached, with each of some shares from now on.

    It is the expectation if rewards go on, and are missing, as so far; infinite where it is never reached, NaN where
    nothing can be said yet.

    Parameters
    ----------
    state : State
        Of the experiment.
    rule : Precision
        What is to be reached.
    shares : array (n, n_arms)
        Floors included; of arms that are not in play they are 0.
    """
    evidence = evidence_of(state)
    if rule.of == "differences":
        found, guess = [], float(max(state.stats.n_assigned, 1))
        for row in shares:
            found.append(_until_differences(state, evidence, rule.half_width, row, guess))
            guess = found[-1] if 0.0 < found[-1] < MOST_PEOPLE else guess
        return np.array(found)
    failures = arm_failures(state.configuration.failure_probability, state.stats.n_arms, state.n_first)
    needed = rewards_needed(evidence, failures, rule.half_width)
    needed[[state.position(arm) for arm in retired_arms(state)]] = 0.0
    if np.isnan(needed).any():
        return np.full(len(shares), np.nan)
    low, high = np.zeros(len(shares)), np.full(len(shares), float(MOST_PEOPLE))

    def enough(more: FloatArray) -> FloatArray:
        # Half a reward less than a whole number counts as that number, as intervals are computed.
        return np.asarray((rewards_ahead(state, shares, more) >= needed - 0.5).all(axis=-1))

    at_once, ever = enough(low), enough(high)
    while (high - low > 1.0).any():
        middle = np.floor(0.5 * (low + high))
        reached = enough(middle)
        low, high = np.where(reached, low, middle), np.where(reached, middle, high)
    return np.where(at_once, 0.0, np.where(ever, high, np.inf))


def _until_differences(state: State, evidence: Evidence, half_width: float, shares: FloatArray, guess: float) -> float:
    """Return how many further people it takes until all differences are known, with these shares; begin at a guess."""
    retired = retired_arms(state)

    def widest(more: float) -> float | None:
        later = evidence.continued(rewards_ahead(state, shares, more))
        return widest_difference(state.configuration, state.names, later, n_first=state.n_first, retired=retired)

    now = widest(0.0)
    if now is not None and now <= half_width:
        return 0.0
    low, high, more, assigned = 0.0, np.inf, guess, float(state.stats.n_assigned)
    while high - low > 1.0:
        found = widest(more)
        if found is not None and abs(found / half_width - 1.0) < _TOLERANCE:
            return float(np.ceil(more))
        low, high = (low, more) if found is not None and found <= half_width else (more, high)
        if low >= MOST_PEOPLE:
            return np.inf if now is not None else np.nan
        # Widths shrink with the root of the number of people.
        guess = np.inf if found is None else (assigned + more) * (found / half_width) ** 2 - assigned
        halved = 0.5 * (low + high) if np.isfinite(high) else 2.0 * more + 1.0
        more = guess if low < guess < min(high, MOST_PEOPLE) else halved
    return float(np.ceil(high))
