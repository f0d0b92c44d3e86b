"""Read the log of an experiment: its events, its history for charts, and the state of its units."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import StoreMismatch
from equipoise.experiment.event_kinds import CHANGES, CHANGES_NOTHING
from equipoise.experiment.records import Event, History, UnitStatus
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import OTHER, OVERDUE, REWARD, STATES, UNIT_EVENTS, WAITING

if TYPE_CHECKING:
    from equipoise.experiment.missing_rewards import MissingReward
    from equipoise.experiment.state import State
    from equipoise.store import Transaction


def read_event(row: Sequence[Any], names: list[str]) -> Event:
    """Return an event from a row of the log, given the names of the arms."""
    number, kind, at, who, unit, arm, decision, reward, probability, forced, counted, replaced, details, *chain = row
    *_, weight = chain
    return Event(
        number=number,
        kind=kind,
        at=instant(at),
        who=who,
        unit=unit,
        arm=None if arm is None else names[arm],
        decision=decision,
        reward=reward,
        probability=probability,
        forced=None if forced is None else bool(forced),
        counted=None if counted is None else bool(counted),
        replaced=replaced,
        details={} if details is None else json.loads(details),
        reward_weight=weight,
    )


def latest_changes(transaction: Transaction, experiment: int) -> list[Sequence[Any]]:
    """Return the latest event that is not about a unit, and before it the latest that changed the experiment."""

    def latest(kinds: Sequence[str]) -> list[Sequence[Any]]:
        found = transaction.selected_events(experiment, 0, None, 1, kinds=kinds, changes_only=True, newest_first=True)
        return list(found)

    found = latest(())
    return [*latest(_CHANGE_SOMETHING), *found] if found and found[0][1] in CHANGES_NOTHING else found


_CHANGE_SOMETHING = tuple(kind for kind in CHANGES if kind not in CHANGES_NOTHING)

# Sum differences from a value close to all rewards, so that the squares do not lose their digits to cancellation.
# The centre is a literal in the query: both databases read the digits that Python writes exactly.
_SUMS = """
SELECT {point}, arm, COUNT(probability), SUM(counted), COUNT(replaced),
    SUM(CASE WHEN counted = 1 THEN reward - {centre} END),
    SUM(CASE WHEN counted = 1 THEN (reward - {centre}) * (reward - {centre}) END),
    SUM(replaced - {centre}), SUM((replaced - {centre}) * (replaced - {centre}))
FROM events WHERE experiment = ? AND number > ? AND number <= ? AND arm IS NOT NULL
GROUP BY {groups}
"""
_TIMES = """
SELECT number, at FROM events WHERE experiment = ? AND number > ? AND number <= ?
AND (number / {step} * {step} = number OR number = {last})
"""

_TOGETHER = 10_000
"""Events per query: SQLite sorts to group, and sorting a long log as a whole takes half of the time."""


def read_history(transaction: Transaction, experiment: int, state: State, points: int) -> History:
    """Return the history of an experiment in at most `points` points; the last is the present."""
    step = max(1, -(-state.n_events // points))
    n_points, n_arms = -(-state.n_events // step), len(state.names)
    pulls = state.stats.pulls
    centre = state.configuration.sign * float(state.stats.sums[0].sum() / pulls.sum()) if pulls.any() else 0.0
    counts = np.zeros((2, n_points, n_arms), np.int64)
    sums = np.zeros((2, n_points, n_arms))
    number = np.minimum(np.arange(1, n_points + 1) * step, state.n_events)
    at = np.zeros(n_points, np.int64)
    together = step * max(1, _TOGETHER // step)
    alone = together == step  # one point per query: no need to group by point
    point = f"(number - 1) / {step}"
    statement = _SUMS.format(
        point="0" if alone else point,
        groups="arm" if alone else f"{point}, arm",
        centre=f"CAST('{centre!r}' AS DOUBLE PRECISION)",
    )
    times = _TIMES.format(step=step, last=state.n_events)
    for first in range(0, state.n_events, together):
        last = min(first + together, state.n_events)
        for rows in transaction.stream(statement, experiment, first, last):
            for place, arm, assigned, counted, replaced, added, added_squares, taken, taken_squares in rows:
                where = first // step if alone else place
                counts[:, where, arm] = assigned, (counted or 0) - replaced
                sums[:, where, arm] = (added or 0.0) - (taken or 0.0), (added_squares or 0.0) - (taken_squares or 0.0)
        for rows in transaction.stream(times, experiment, last - 1 if alone else first, last):
            for event, when in rows:
                at[(event - 1) // step] = when
    (assigned, rewarded), (total, squares) = counts.cumsum(axis=1), sums.cumsum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(rewarded > 0, centre + total / rewarded, np.nan)
        variance = (squares - total**2 / rewarded) / (rewarded - 1)
        std = np.where(rewarded > 1, np.sqrt(np.maximum(variance, 0.0)), np.nan)
    return History(
        tuple(state.names), number, tuple(instant(when) for when in at.tolist()), assigned, rewarded, mean, std
    )


class Unit:
    """An assigned unit."""

    __slots__ = ("arm", "assigned_at", "decision", "forced", "probability", "reward", "state", "told")

    def __init__(self, arm: int, decision: int, assigned_at: int, probability: float, forced: bool) -> None:
        self.arm = arm
        self.decision = decision
        self.assigned_at = assigned_at
        self.probability = probability
        self.forced = forced
        self.state = WAITING
        self.told: float | None = None
        """The reward as first reported; `reward` is the latest correction."""
        self.reward: float | None = None

    @property
    def counted(self) -> bool:
        """Whether the unit's reward is in the estimates."""
        return STATES[self.state].estimate == REWARD

    def status(self, name: str, arms: Sequence[str], missing: MissingReward, now: int) -> UnitStatus:
        """Return the record of the unit at `now`; past its window it is overdue even if it is not settled yet."""
        state, window = self.state, missing.window_microseconds
        if state == WAITING and window is not None and self.assigned_at + window <= now:
            state = OVERDUE
        return UnitStatus(
            unit=name,
            arm=arms[self.arm],
            number=self.decision,
            probability=self.probability,
            forced=self.forced,
            at=instant(self.assigned_at),
            state=STATES[state].name,
            reward=self.reward,
            counted=self.counted,
        )


def read_units(rows: Iterable[Sequence[Any]], missing: MissingReward) -> dict[str, Unit]:
    """Build units from their events in log order, as `Transaction.unit_events` returns them."""
    units: dict[str, Unit] = {}
    unit: Unit | None
    life = missing.life
    for name, kind, arm, decision, at, reward, probability, forced, _ in rows:
        if kind == "assigned":
            units[name] = Unit(arm, decision, at, probability, bool(forced))
            continue
        unit = units.get(name)
        if unit is None:
            raise StoreMismatch(
                f"the log has no assignment of unit {name!r}, but later events: the store is damaged",
                hint="equipoise verify tells more; restore the last backup that verifies",
            )
        unit.state = life.after(unit.state, UNIT_EVENTS.get(kind, OTHER))
        if kind == "rewarded":
            unit.told = unit.reward = reward
        elif kind in ("corrected", "withdrawn"):
            unit.reward = reward
    return units


def read_unit(transaction: Transaction, experiment: int, state: State, name: str, now: int) -> UnitStatus | None:
    """Return the record of a unit at `now`, or None if it was never assigned."""
    missing = state.configuration.missing
    found = read_units(transaction.unit_events(experiment, [name]), missing).get(name)
    return None if found is None else found.status(name, state.names, missing, now)
