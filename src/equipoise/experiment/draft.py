"""A plan, and the draft of one: the steps that all requests are made of, from an event to a counter of an arm."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.errors import ExperimentFinished
from equipoise.experiment.instants import instant
from equipoise.experiment.requests import Ask
from equipoise.experiment.state import FINISHED
from equipoise.log_codes import (
    DEFAULTED,
    DROPPED,
    HELD,
    LATE_DEFAULTED,
    LATE_DROPPED,
    N_DEFAULTED,
    N_DROPPED,
    N_HELD,
    N_OVERDUE,
    OVERDUE,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.errors import EquipoiseError
    from equipoise.experiment.requests import Request
    from equipoise.experiment.state import State
    from equipoise.experiment.units import Unit

_COUNTER = {
    HELD: N_HELD,
    OVERDUE: N_OVERDUE,
    DEFAULTED: N_DEFAULTED,
    LATE_DEFAULTED: N_DEFAULTED,
    DROPPED: N_DROPPED,
    LATE_DROPPED: N_DROPPED,
}


@dataclass
class Plan:
    """What is to be written, and what to answer once it is."""

    state: State
    events: list[tuple[Any, ...]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    """One entry per request: its result, or the error that it met."""
    touched: set[int] = field(default_factory=set)
    """Positions of the arms that changed."""
    put_pending: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    forget_pending: list[tuple[int, int]] = field(default_factory=list)
    configured: int | None = None
    """The event that changed the configuration, if one did."""
    after_others: bool = False
    """Whether another process wrote to the experiment since this one last did."""


class Draft:
    """The plan so far. Whoever adds to it checks all there is to check before changing anything."""

    def __init__(
        self,
        plan: Plan,
        units: dict[str, Unit],
        requests: Sequence[Request | EquipoiseError],
        now: int,
        last_held: int | None = None,
    ) -> None:
        self.plan = plan
        self.state = plan.state
        self.units = units
        self.requests = requests
        self.place = 0
        """Which of the requests it is the turn of."""
        self.now = now
        self.last_held = last_held
        self.ahead: list[tuple[int, float, bool]] = []
        """Decisions taken ahead for the asks that follow, the next one last; void when anything else changes."""
        self.at = instant(now)
        self.window = plan.state.configuration.missing.window_microseconds

    def require_unfinished(self) -> None:
        """Raise if the experiment is over."""
        if self.state.state == FINISHED:
            raise ExperimentFinished(f"experiment {self.state.name!r} is finished; nothing about it can change")

    def log(
        self,
        kind: str,
        who: str | None,
        name: str | None = None,
        unit: Unit | None = None,
        *,
        arm: int | None = None,
        reward: float | None = None,
        counted: bool | None = None,
        replaced: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Append an event; those of a unit carry its arm and decision."""
        self.state.n_events += 1
        assigned = kind == "assigned"
        self.plan.events.append(
            (
                self.state.n_events,
                kind,
                self.now,
                who,
                name,
                arm if unit is None else unit.arm,
                None if unit is None else unit.decision,
                reward,
                unit.probability if assigned and unit else None,
                int(unit.forced) if assigned and unit else None,
                None if counted is None else int(counted),
                replaced,
                None if details is None else json.dumps(details, allow_nan=False),
            )
        )
        position = arm if unit is None else unit.arm
        if position is not None:
            self.plan.touched.add(position)

    def move(self, unit: Unit, after: int) -> None:
        """Bring a unit into another state, and the counters of its arm with it."""
        for state, change in ((unit.state, -1), (after, 1)):
            if state in _COUNTER:
                self.state.counters[_COUNTER[state], unit.arm] += change
        unit.state = after

    def count(self, unit: Unit, reward: float) -> None:
        """Let a reward into the estimates."""
        self.ahead.clear()
        self.state.stats.update(unit.arm, self.state.configuration.sign * reward)

    def replace(self, unit: Unit, replaced: float, reward: float) -> None:
        """Put a reward in the place of one that is in the estimates."""
        self.ahead.clear()
        sign = self.state.configuration.sign
        self.state.stats.replace(unit.arm, sign * replaced, sign * reward)

    def next_decision(self) -> tuple[int, float, bool]:
        """Return arm, probability and whether it was forced; for a row of asks all are taken at once."""
        if not self.ahead:
            last = self.place + 1
            while last < len(self.requests) and type(self.requests[last]) is Ask:
                last += 1
            state = self.state
            self.ahead = state.decider.decide_ahead(state.stats, state.n_decisions, last - self.place)
            self.ahead.reverse()
        return self.ahead.pop()

    def due_at(self, unit: Unit) -> int:
        """Return when a unit's window passes."""
        assert self.window is not None  # noqa: S101
        return unit.assigned_at + self.window

    def forget(self, due_at: int, decision: int) -> None:
        """Take a unit off the list of what is pending."""
        self.plan.put_pending.pop((due_at, decision), None)
        self.plan.forget_pending.append((due_at, decision))

    def expect(self, name: str, unit: Unit) -> None:
        """Put a unit on the list of what is pending, or change its entry."""
        if self.window is not None:
            due_at = self.due_at(unit)
            self.plan.put_pending[due_at, unit.decision] = (due_at, unit.decision, name, unit.arm, unit.reward)
