"""Turn commands into events: a pure function from a state and commands, in order, to events and the next state.

Nothing here reads a clock or a database. A batch has exactly the result of its commands run one by one, repeats
included, and a refused command leaves no trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.errors import (
    EnrolmentClosed,
    EquipoiseError,
    ExperimentFinished,
    Hint,
    NotRewarded,
    RewardConflict,
    UnitWithdrawn,
    UnknownUnit,
)
from equipoise.experiment import changes, commands
from equipoise.experiment.commands import Ask, Correct, Request, Tell, Withdraw
from equipoise.experiment.event_log import Unit
from equipoise.experiment.names import refuse_dots
from equipoise.experiment.records import Assignment, ToldReward, UnitStatus
from equipoise.experiment.state import ENROLLING, FINISHED, PAUSED, State
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import DEFAULT_VALUE, GONE, HELD, REWARD, STATES, UNIT_EVENTS

if TYPE_CHECKING:
    from equipoise.experiment.decider import Decision


def transition(
    state: State,
    units: dict[str, Unit],
    due: Iterable[Sequence[Any]],
    requests: Sequence[commands.Request | EquipoiseError],
    now: int,
    last_window: int | None = None,
    latest: Iterable[Sequence[Any]] = (),
) -> Transition:
    """Return the events, the next state and the results.

    Parameters
    ----------
    state : State
        The current state; not changed.
    units : dict of Unit by name
        The units that the commands name, as known so far; updated in place.
    due : rows of the table of pending units
        Units whose window has passed, in that order.
    requests : commands, or errors instead of commands that were refused before
        In the order they came.
    now : int
        The time, in microseconds.
    last_window : int, optional
        When the last open window passes; only needed to finish.
    latest : rows of the log
        The latest event that is not about a unit, and the latest that changed the experiment, in the order of the log;
        only needed for notes and for changes that expect no other.
    """
    draft = Draft(Transition(state.copy()), units, requests, now, last_window)
    draft.latest.extend(latest)
    if state.state != FINISHED:
        for row in due:
            settle(draft, *row)
    for draft.place, request in enumerate(requests):
        result: Any = request
        if not isinstance(request, EquipoiseError):
            try:
                result = HANDLERS[type(request)](draft, request)
            except EquipoiseError as error:
                result = error
        draft.transition.results.append(result)
    return draft.transition


def _only_settle(draft: Draft, request: commands.Settle) -> None:
    """Do nothing more: due units were settled first."""


@dataclass
class Transition:
    """The changes to write, and the results to return once they are durable."""

    state: State
    events: list[tuple[Any, ...]] = field(default_factory=list)
    results: list[Any] = field(default_factory=list)
    """One entry per command: its result or its error."""
    touched: set[int] = field(default_factory=set)
    """Positions of the arms that changed."""
    put_pending: dict[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    forget_pending: list[tuple[int, int]] = field(default_factory=list)
    configured: int | None = None
    """The event that changed the configuration, if one did."""
    after_others: bool = False
    """Whether another process wrote to the experiment since this one last did."""


class Draft:
    """The transition so far. Handlers check everything before they change anything."""

    def __init__(
        self,
        transition: Transition,
        units: dict[str, Unit],
        requests: Sequence[Request | EquipoiseError],
        now: int,
        last_window: int | None = None,
    ) -> None:
        self.transition = transition
        self.state = transition.state
        self.units = units
        self.requests = requests
        self.place = 0
        """Index of the current command."""
        self.now = now
        self.last_window = last_window
        self.latest: list[Sequence[Any]] = []
        """The latest events that are not about a unit, as rows."""
        self.ahead: list[Decision] = []
        """Decisions taken ahead for the asks that follow, the next one last; discarded when anything else changes."""
        self.at = instant(now)
        self.missing = transition.state.configuration.missing
        self.window = self.missing.window_microseconds
        self.life = self.missing.life

    def require_unfinished(self) -> None:
        """Raise if the experiment is finished."""
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
        weight: float | None = None,
    ) -> None:
        """Append an event; an event of a unit carries its arm and decision."""
        self.state.n_events += 1
        assigned = kind == "assigned"
        self.transition.events.append(
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
                weight,
            )
        )
        if name is None:
            self.latest.append(self.transition.events[-1])
        position = arm if unit is None else unit.arm
        if position is not None:
            self.transition.touched.add(position)

    def happen(
        self,
        kind: str,
        who: str | None,
        name: str,
        unit: Unit,
        reward: float | None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """Log an event of a unit, and apply it to the unit and its arm as `unit_lifecycle` says."""
        before = STATES[unit.state]
        step = self.life.steps[unit.state, UNIT_EVENTS[kind]]
        after = STATES[step.after]
        replaced = {REWARD: unit.reward, DEFAULT_VALUE: self.missing.default}.get(step.replaces)
        self.log(kind, who, name, unit, reward=reward, counted=step.counts, replaced=replaced, details=details)
        if step.counts and reward is not None:
            self._count(unit, reward, replaced)
        elif replaced is not None:
            self.ahead.clear()
            stats = self.state.stats
            stats.remove(unit.arm, self._value(replaced), probability=unit.probability, number=unit.decision)
        if kind == "rewarded":
            unit.told = reward
        if kind != "expired":
            unit.reward = reward
        for counter, change in ((before.counter, -1), (after.counter, 1)):
            if counter is not None:
                self.state.counters[counter, unit.arm] += change
        unit.state = step.after
        if after.is_open:
            self.expect(name, unit)
        elif before.is_open and self.window is not None:
            self.forget(self.due_at(unit), unit.decision)

    def _count(self, unit: Unit, reward: float, replaced: float | None) -> None:
        """Add a reward to the estimates, or replace one."""
        self.ahead.clear()
        stats, value = self.state.stats, self._value(reward)
        if replaced is None:
            stats.update(unit.arm, value, probability=unit.probability, number=unit.decision)
        else:
            old = self._value(replaced)
            stats.replace(unit.arm, old, value, probability=unit.probability, number=unit.decision)

    def _value(self, reward: float) -> float:
        """Return what a reward counts as, on the policy's scale."""
        configuration = self.state.configuration
        return configuration.sign * configuration.counted(reward)

    def next_decision(self) -> Decision:
        """Return the next decision of the decider; consecutive asks are decided in one go."""
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
        """Remove a unit from the pending table."""
        self.transition.put_pending.pop((due_at, decision), None)
        self.transition.forget_pending.append((due_at, decision))

    def expect(self, name: str, unit: Unit) -> None:
        """Add a unit to the pending table, or update its entry."""
        if self.window is not None:
            due_at = self.due_at(unit)
            self.transition.put_pending[due_at, unit.decision] = (due_at, unit.decision, name, unit.arm, unit.reward)


def ask(draft: Draft, request: Ask) -> Assignment:
    """Return the arm of a unit, assigning one if it has none."""
    name = request.unit
    unit = draft.units.get(name)
    new = unit is None
    if unit is None:
        _require_enrolling(draft, name)
        refuse_dots("unit", name)
        state = draft.state
        decision = state.n_decisions
        arm, probability, forced, weight = draft.next_decision()
        unit = draft.units[name] = Unit(arm, decision, draft.now, probability, forced)
        details = None if request.attributes is None else {"attributes": request.attributes}
        draft.log("assigned", request.who, name, unit, details=details, weight=weight)
        state.stats.assign(arm)
        state.n_decisions += 1
        draft.expect(name, unit)
    at = draft.at if new else instant(unit.assigned_at)
    arm_name = draft.state.names[unit.arm]
    return Assignment(name, arm_name, unit.decision, unit.probability, unit.forced, at, new)


def tell(draft: Draft, request: Tell) -> ToldReward:
    """Record a unit's reward."""
    name, unit = request.unit, _present(draft, request.unit)
    reward = draft.state.configuration.checked_reward(request.reward)
    if unit.told is not None and unit.reward is not None:
        if reward not in (unit.told, unit.reward):
            raise RewardConflict(
                f"the reward of unit {name!r} was told before and is {unit.reward!r}; got {reward!r}",
                hint=None if draft.state.state == FINISHED else Hint.CORRECT,
            )
        return _told(draft, name, unit, new=False)
    draft.require_unfinished()
    settle_if_due(draft, name, unit)
    draft.happen("rewarded", request.who, name, unit, reward)
    return _told(draft, name, unit, new=True)


def correct(draft: Draft, request: Correct) -> ToldReward:
    """Replace a reward reported before."""
    name, unit = request.unit, _present(draft, request.unit)
    reward = draft.state.configuration.checked_reward(request.reward)
    if unit.reward is None:
        raise NotRewarded(f"unit {name!r} has no reward that could be corrected", hint=Hint.TELL)
    draft.require_unfinished()
    if reward == unit.reward:
        return _told(draft, name, unit, new=False)
    settle_if_due(draft, name, unit)
    draft.happen("corrected", request.who, name, unit, reward, {"reason": request.reason})
    return _told(draft, name, unit, new=True)


def withdraw(draft: Draft, request: Withdraw) -> UnitStatus:
    """Take a unit out of the estimates for good."""
    name, unit = request.unit, _known(draft, request.unit)
    if unit.state != GONE:
        draft.require_unfinished()
        settle_if_due(draft, name, unit)
        draft.happen("withdrawn", request.who, name, unit, None, {"reason": request.reason})
    return unit.status(name, draft.state.names, draft.missing, draft.now)


def _present(draft: Draft, name: str) -> Unit:
    """Return an assigned unit that was not withdrawn."""
    unit = _known(draft, name)
    if unit.state == GONE:
        raise UnitWithdrawn(f"unit {name!r} was withdrawn from experiment {draft.state.name!r}; it has no reward")
    return unit


def _known(draft: Draft, name: str) -> Unit:
    """Return an assigned unit, or raise `UnknownUnit`."""
    unit = draft.units.get(name)
    if unit is None:
        raise UnknownUnit(f"unit {name!r} was never assigned in experiment {draft.state.name!r}", hint=Hint.CHECK_UNIT)
    return unit


def _told(draft: Draft, name: str, unit: Unit, *, new: bool) -> ToldReward:
    """Return the record of a unit's reward."""
    assert unit.reward is not None  # noqa: S101
    return ToldReward(name, draft.state.names[unit.arm], unit.reward, unit.counted, new)


def _require_enrolling(draft: Draft, name: str) -> None:
    """Raise unless the experiment accepts new units."""
    if draft.state.state != ENROLLING:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} is {draft.state.state} and takes no new units; got {name!r}",
            hint=Hint.RESUME if draft.state.state == PAUSED else None,
        )
    most = draft.state.configuration.most_units
    if most is not None and draft.state.n_decisions >= most:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} has all of its {most:,} units and takes no new ones; got {name!r}"
        )


MOST_SETTLED = 1_000
"""Most units that one transaction settles, so that none takes long; the next transaction continues."""


def settle(draft: Draft, due_at: int, decision: int, name: str, arm: int, reward: float | None) -> None:
    """Settle a row of the pending table whose window has passed."""
    unit = draft.units.get(name)
    if unit is None:
        unit = Unit(arm, decision, due_at - (draft.window or 0), 0.0, False)
        if reward is not None:
            unit.state, unit.reward = HELD, reward
    _close_window(draft, name, unit)


def _close_window(draft: Draft, name: str, unit: Unit) -> None:
    """Count a held reward, or apply the rule for missing ones."""
    if unit.state == HELD:
        draft.happen("counted", None, name, unit, unit.reward)
    else:
        draft.happen("expired", None, name, unit, draft.missing.default)


def settle_if_due(draft: Draft, name: str, unit: Unit) -> None:
    """Settle a unit that is due but was not in this transaction's batch of due units."""
    if draft.window is not None and STATES[unit.state].is_open and draft.due_at(unit) <= draft.now:
        _close_window(draft, name, unit)


HANDLERS: dict[type, Callable[[Draft, Any], Any]] = {
    commands.Ask: ask,
    commands.Tell: tell,
    commands.Correct: correct,
    commands.Withdraw: withdraw,
    commands.Settle: _only_settle,
    commands.Pause: changes.pause,
    commands.Resume: changes.resume,
    commands.Stop: changes.stop,
    commands.Finish: changes.finish,
    commands.AddArm: changes.add_arm,
    commands.PauseArm: changes.pause_arm,
    commands.ResumeArm: changes.resume_arm,
    commands.RetireArm: changes.retire_arm,
    commands.ChangeWeight: changes.change_weight,
    commands.ChangeDial: changes.change_dial,
    commands.ChangeDescription: changes.change_description,
    commands.Note: changes.note,
    commands.Mute: changes.mute,
    commands.Unmute: changes.unmute,
}
