"""Plan requests: a pure function from a state and requests in the order they came to events and the next state.

Nothing here reads a clock or a database. A batch gives exactly what its requests would give one by one, repeats
included, and a request that is refused leaves no trace in it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from equipoise.errors import (
    EnrolmentClosed,
    EquipoiseError,
    ExperimentFinished,
    InvalidInput,
    NotRewarded,
    RewardConflict,
    RewardsHeld,
    UnknownUnit,
)
from equipoise.experiment import requests as ask_for
from equipoise.experiment.changes import apply_change, checked_change
from equipoise.experiment.configuration import MOST_ARMS, check_shares
from equipoise.experiment.instants import instant
from equipoise.experiment.missing import DefaultReward
from equipoise.experiment.requests import Assignment, ToldReward
from equipoise.experiment.state import ACTIVE, ENROLLING, FINISHED, PAUSED, RETIRED, STOPPED
from equipoise.experiment.units import Unit, state_after_expiry, state_after_reward
from equipoise.kernels.replay import (
    DEFAULTED,
    DROPPED,
    HELD,
    IN_ESTIMATES,
    LATE_DEFAULTED,
    LATE_DROPPED,
    N_DEFAULTED,
    N_DROPPED,
    N_HELD,
    N_OVERDUE,
    OVERDUE,
    WAITING,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from equipoise.experiment.state import State

MOST_SETTLED = 1_000
"""How many overdue units one transaction deals with, so that none takes long; the next goes on with the rest."""

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


def plan(
    state: State,
    units: dict[str, Unit],
    due: Iterable[Sequence[Any]],
    requests: Sequence[ask_for.Request | EquipoiseError],
    now: int,
    last_held: int | None = None,
) -> Plan:
    """Return events, next state and results.

    Parameters
    ----------
    state : State
        Where the experiment stands; it is not changed.
    units : dict of Unit by name
        What is known of the units that the requests name; brought up to date in place.
    due : rows of the table of what is pending
        Units whose window has passed, in the order in which it did.
    requests : requests, or errors in the place of those that were refused before
        In the order they came.
    now : int
        The time, in microseconds.
    last_held : int, optional
        When the last window of a reward held back passes; needed to finish only.
    """
    planner = _Planner(Plan(state.copy()), units, requests, now)
    planner.last_held = last_held
    if state.state != FINISHED:
        for row in due:
            planner.settle(*row)
    for planner.place, request in enumerate(requests):
        result: Any = request
        if not isinstance(request, EquipoiseError):
            try:
                result = HANDLERS[type(request)](planner, request)
            except EquipoiseError as error:
                result = error
        planner.plan.results.append(result)
    return planner.plan


class _Planner:
    """The plan so far. Every `handle` checks all it has to before it changes anything."""

    def __init__(
        self, plan: Plan, units: dict[str, Unit], requests: Sequence[ask_for.Request | EquipoiseError], now: int
    ) -> None:
        self.plan = plan
        self.state = plan.state
        self.units = units
        self.requests = requests
        self.place = 0
        self.now = now
        self.last_held: int | None = None
        self.ahead: list[tuple[int, float, bool]] = []
        """Decisions taken ahead for the asks that follow, the next one last; void when anything else changes."""
        self.at = instant(now)
        self.window = plan.state.configuration.missing.window_microseconds

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

    def next_decision(self) -> tuple[int, float, bool]:
        """Return arm, probability and whether it was forced; for a row of asks all are taken at once."""
        if not self.ahead:
            last = self.place + 1
            while last < len(self.requests) and type(self.requests[last]) is ask_for.Ask:
                last += 1
            state = self.state
            self.ahead = state.decider.decide_ahead(state.stats, state.n_decisions, last - self.place)
            self.ahead.reverse()
        return self.ahead.pop()

    def count(self, unit: Unit, reward: float) -> None:
        """Let a reward into the estimates."""
        self.ahead.clear()
        self.state.stats.update(unit.arm, self.state.configuration.sign * reward)

    # Time

    def settle(self, due_at: int, decision: int, name: str, arm: int, reward: float | None) -> None:
        """Deal with a unit whose window has passed: count the reward held back, or apply the rule for missing ones."""
        unit = self.units.get(name)
        if unit is None:
            unit = Unit(arm, decision, due_at, 0.0, False)
            unit.state, unit.reward = WAITING if reward is None else HELD, reward
        missing = self.state.configuration.missing
        if reward is not None:
            self.log("counted", None, name, unit, reward=reward, counted=True)
            self.count(unit, reward)
            self.move(unit, IN_ESTIMATES)
        elif isinstance(missing, DefaultReward):
            self.log("expired", None, name, unit, reward=missing.value, counted=True)
            self.count(unit, missing.value)
            self.move(unit, DEFAULTED)
        else:
            self.log("expired", None, name, unit, counted=False)
            self.move(unit, state_after_expiry(missing))
        self.forget(due_at, decision)

    def settle_if_due(self, name: str, unit: Unit) -> None:
        """Settle a unit that is due but was not among those dealt with first."""
        if self.window is not None and unit.state in (WAITING, HELD) and self.due_at(unit) <= self.now:
            self.settle(self.due_at(unit), unit.decision, name, unit.arm, unit.reward)

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

    # Units

    def ask(self, request: ask_for.Ask) -> Assignment:
        """Return the arm a unit has, or give it one."""
        name = request.unit
        unit = self.units.get(name)
        new = unit is None
        if unit is None:
            self.require_enrolling(name)
            state = self.state
            decision = state.n_decisions
            arm, probability, forced = self.next_decision()
            unit = self.units[name] = Unit(arm, decision, self.now, probability, forced)
            details = None if request.attributes is None else {"attributes": request.attributes}
            self.log("assigned", request.who, name, unit, details=details)
            state.stats.assign(arm)
            state.n_decisions += 1
            self.expect(name, unit)
        at = self.at if new else instant(unit.assigned_at)
        arm_name = self.state.names[unit.arm]
        return Assignment(name, arm_name, unit.decision, unit.probability, unit.forced, at, new)

    def tell(self, request: ask_for.Tell) -> ToldReward:
        """Record a unit's reward."""
        name, unit = request.unit, self.known(request.unit)
        reward = self.state.configuration.checked_reward(request.reward)
        if unit.told is not None and unit.reward is not None:
            if reward not in (unit.told, unit.reward):
                raise RewardConflict(
                    f"the reward of unit {name!r} was told before and is {unit.reward!r}; got {reward!r}",
                    hint="correct(unit, reward, reason) replaces it, and logs why",
                )
            return self.told(name, unit, new=False)
        self.require_unfinished()
        self.settle_if_due(name, unit)
        missing = self.state.configuration.missing
        before, after = unit.state, state_after_reward(unit.state, missing, window_open=self.window is not None)
        counted = after == IN_ESTIMATES
        replaced = missing.value if counted and before == DEFAULTED and isinstance(missing, DefaultReward) else None
        unit.told = unit.reward = reward
        self.log("rewarded", request.who, name, unit, reward=reward, counted=counted, replaced=replaced)
        if replaced is not None:
            sign = self.state.configuration.sign
            self.ahead.clear()
            self.state.stats.replace(unit.arm, sign * replaced, sign * reward)
        elif counted:
            self.count(unit, reward)
        self.move(unit, after)
        if after == HELD:
            self.expect(name, unit)
        elif before == WAITING and self.window is not None:
            self.forget(self.due_at(unit), unit.decision)
        return self.told(name, unit, new=True)

    def correct(self, request: ask_for.Correct) -> ToldReward:
        """Replace a reward that was told."""
        name, unit = request.unit, self.known(request.unit)
        reward = self.state.configuration.checked_reward(request.reward)
        if unit.reward is None:
            raise NotRewarded(f"unit {name!r} has no reward that could be corrected", hint="tell(unit, reward)")
        self.require_unfinished()
        if reward == unit.reward:
            return self.told(name, unit, new=False)
        self.settle_if_due(name, unit)
        counted = unit.state == IN_ESTIMATES
        replaced, unit.reward = unit.reward, reward
        self.log(
            "corrected",
            request.who,
            name,
            unit,
            reward=reward,
            counted=counted,
            replaced=replaced if counted else None,
            details={"reason": request.reason},
        )
        if counted:
            sign = self.state.configuration.sign
            self.ahead.clear()
            self.state.stats.replace(unit.arm, sign * replaced, sign * reward)
        elif unit.state == HELD:
            self.expect(name, unit)
        return self.told(name, unit, new=True)

    def known(self, name: str) -> Unit:
        """Return a unit that was assigned."""
        unit = self.units.get(name)
        if unit is None:
            raise UnknownUnit(
                f"unit {name!r} was never assigned in experiment {self.state.name!r}", hint="ask(unit) comes first"
            )
        return unit

    def told(self, name: str, unit: Unit, *, new: bool) -> ToldReward:
        """Return what is known of a unit's reward."""
        assert unit.reward is not None  # noqa: S101
        return ToldReward(name, self.state.names[unit.arm], unit.reward, unit.state == IN_ESTIMATES, new)

    def require_enrolling(self, name: str) -> None:
        """Raise unless new units are welcome."""
        if self.state.state != ENROLLING:
            raise EnrolmentClosed(
                f"experiment {self.state.name!r} is {self.state.state} and takes no new units; got {name!r}",
                hint="resume() takes new units again" if self.state.state == PAUSED else None,
            )

    def require_unfinished(self) -> None:
        """Raise if the experiment is over."""
        if self.state.state == FINISHED:
            raise ExperimentFinished(f"experiment {self.state.name!r} is finished; nothing about it can change")

    # The experiment

    def settle_only(self, request: ask_for.Settle) -> None:
        """Do nothing more: what is due was settled first."""

    def pause(self, request: ask_for.Pause) -> None:
        """Take no new units for a while."""
        self.require_unfinished()
        if self.state.state == STOPPED:
            raise EnrolmentClosed(f"experiment {self.state.name!r} is stopped; there is nothing to pause")
        if self.state.state == ENROLLING:
            self.change("paused", request)

    def resume(self, request: ask_for.Resume) -> None:
        """Take new units again."""
        self.require_unfinished()
        if self.state.state == STOPPED:
            raise EnrolmentClosed(
                f"experiment {self.state.name!r} is stopped for good; only a paused one can be resumed",
                hint="make a new experiment",
            )
        if self.state.state == PAUSED:
            self.change("resumed", request)

    def stop(self, request: ask_for.Stop) -> None:
        """Take no new units any more."""
        self.require_unfinished()
        if self.state.state != STOPPED:
            self.change("stopped", request)

    def finish(self, request: ask_for.Finish) -> None:
        """Let nothing change any more; what is held back by then would never be counted."""
        if self.state.state == FINISHED:
            return
        n_held = int(self.state.counters[N_HELD].sum())
        if n_held and not request.anyway:
            told_now = [due_at for due_at, _, _, _, reward in self.plan.put_pending.values() if reward is not None]
            last = instant(max([self.last_held or 0, *told_now]))
            raise RewardsHeld(
                f"experiment {self.state.name!r} holds back {n_held:,} reward{'s' * (n_held != 1)} that would never be "
                "counted if it were finished now",
                hint=f"finish after {last:%Y-%m-%d %H:%M:%S} UTC, when the last window has passed; or now, with "
                "anyway=True (--anyway)",
            )
        self.change("finished", request)

    def add_arm(self, request: ask_for.AddArm) -> None:
        """Add an arm."""
        self.require_unfinished()
        state = self.state
        place = state.positions.get(request.name)
        if place is not None:
            arm_state, kept = state.arm_states[place], state.floors[place]
            if (arm_state, kept) == (ACTIVE, float(request.floor)):
                return  # a repetition, by the caller or after a lost connection
            but = f"with floor {kept:g}" if arm_state == ACTIVE else f"and it is {arm_state}"
            raise InvalidInput(
                f"experiment {state.name!r} has an arm {request.name!r} already, {but}",
                hint="a changed arm is a new arm",
            )
        if len(state.names) >= MOST_ARMS:
            raise InvalidInput(f"an experiment can have {MOST_ARMS:,} arms at most")
        floor = float(request.floor)
        self.check_kept([(ACTIVE, floor)])
        self.change("arm_added", request, arm=len(state.names), details={"name": request.name, "floor": floor})

    def pause_arm(self, request: ask_for.PauseArm) -> None:
        """Take an arm out of play."""
        self.change_arm("arm_paused", request, ACTIVE, PAUSED)

    def resume_arm(self, request: ask_for.ResumeArm) -> None:
        """Bring an arm back into play."""
        self.change_arm("arm_resumed", request, PAUSED, ACTIVE)

    def retire_arm(self, request: ask_for.RetireArm) -> None:
        """Take an arm out of play for good."""
        self.change_arm("arm_retired", request, None, RETIRED)

    def change_arm(self, kind: str, request: ask_for.ArmRequest, before: str | None, after: str) -> None:
        """Bring an arm from one state into another; it may be there already."""
        self.require_unfinished()
        arm = self.state.position(request.name)
        now = self.state.arm_states[arm]
        if now == after:
            return
        if now == RETIRED or (before is not None and now != before):
            raise InvalidInput(
                f"arm {request.name!r} is {now} and cannot become {after}", hint="a changed arm is a new arm: add one"
            )
        if after == ACTIVE:
            self.check_kept([(ACTIVE, self.state.floors[arm])])
        elif now == ACTIVE and self.state.arm_states.count(ACTIVE) == 1:
            raise InvalidInput(
                f"arm {request.name!r} is the last one in play", hint="pause() or stop() the experiment instead"
            )
        self.change(kind, request, arm=arm)

    def check_kept(self, more: list[tuple[str, float]]) -> None:
        """Raise if shares kept for the arms in play would leave nothing to decide."""
        arms = [*zip(self.state.arm_states, self.state.floors, strict=True), *more]
        check_shares([floor for state, floor in arms if state == ACTIVE])

    def change_weight(self, request: ask_for.ChangeWeight) -> None:
        """Change the policy's weight."""
        self.require_unfinished()
        before = self.state.configuration.reward_weight
        if before is not None and before == request.reward_weight:
            return
        self.change("weight_changed", request, details={"reward_weight": float(request.reward_weight), "was": before})
        self.plan.configured = self.state.n_events

    def change(
        self, kind: str, request: ask_for.Request, *, arm: int | None = None, details: dict[str, Any] | None = None
    ) -> None:
        """Change the experiment and log it."""
        self.ahead.clear()
        before = self.state.tracked_from
        checked_change(self.state, lambda state: apply_change(state, kind, arm, details or {}))
        self.log(kind, request.who, arm=arm, details=details)
        if self.state.tracked_from is not before:
            self.plan.touched.update(range(len(self.state.names)))


HANDLERS: dict[type, Callable[[_Planner, Any], Any]] = {
    ask_for.Ask: _Planner.ask,
    ask_for.Tell: _Planner.tell,
    ask_for.Correct: _Planner.correct,
    ask_for.Settle: _Planner.settle_only,
    ask_for.Pause: _Planner.pause,
    ask_for.Resume: _Planner.resume,
    ask_for.Stop: _Planner.stop,
    ask_for.Finish: _Planner.finish,
    ask_for.AddArm: _Planner.add_arm,
    ask_for.PauseArm: _Planner.pause_arm,
    ask_for.ResumeArm: _Planner.resume_arm,
    ask_for.RetireArm: _Planner.retire_arm,
    ask_for.ChangeWeight: _Planner.change_weight,
}
