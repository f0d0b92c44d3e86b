"""Events that change the experiment itself, not a unit: what each does to the state, live and in a replay alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import EnrolmentClosed, Hint, InvalidInput, RewardsHeld
from equipoise.experiment.configuration import MOST_ARMS, Configuration, check_shares
from equipoise.experiment.state import ACTIVE, ENROLLING, FINISHED, PAUSED, RETIRED, STOPPED, State
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import N_HELD, UNIT_EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.experiment import commands
    from equipoise.experiment.plan import Draft

_STATE_AFTER = {"paused": PAUSED, "resumed": ENROLLING, "stopped": STOPPED, "finished": FINISHED}
_ARM_STATE_AFTER = {"arm_paused": PAUSED, "arm_resumed": ACTIVE, "arm_retired": RETIRED}
KINDS = ("created", *UNIT_EVENTS, *_STATE_AFTER, "arm_added", *_ARM_STATE_AFTER, "weight_changed", "rebuilt")
"""Every kind of event in a log."""


def created_state(name: str, at: int, details: dict[str, Any]) -> State:
    """Return the state after the first event of a log."""
    state = State(name, at, Configuration.from_dict(details["configuration"]))
    names, floors = [arm["name"] for arm in details["arms"]], [float(arm["floor"]) for arm in details["arms"]]
    state.set_arms(names, [ACTIVE] * len(names), floors)
    state.n_events = 1
    return state


def apply_change(state: State, kind: str, arm: int | None, details: dict[str, Any]) -> None:
    """Change a state as an event of this kind does."""
    if kind in _STATE_AFTER:
        state.state = _STATE_AFTER[kind]
    elif kind in _ARM_STATE_AFTER:
        arm_states = list(state.arm_states)
        arm_states[_known(arm, len(arm_states))] = _ARM_STATE_AFTER[kind]
        state.change_arms(state.names, arm_states, state.floors)
    elif kind == "arm_added":
        state.change_arms(
            [*state.names, details["name"]], [*state.arm_states, ACTIVE], [*state.floors, float(details["floor"])]
        )
    elif kind == "weight_changed":
        state.set_configuration(state.configuration.with_weight(details["reward_weight"]))
    elif kind != "rebuilt":  # which tells other processes to read the tables again, and changes nothing else
        raise InvalidInput(f"unknown kind of event {kind!r}; known are {', '.join(KINDS)}")


def checked_change(state: State, make: Callable[[State], None]) -> None:
    """Apply a change only if decisions can be taken after it."""
    twin = state.copy()
    make(twin)
    twin.decider  # noqa: B018  (raises if the policy does not fit the arms)
    make(state)


def _known(arm: int | None, n_arms: int) -> int:
    if arm is None or not 0 <= arm < n_arms:
        raise InvalidInput(f"an event names arm {arm}; there are {n_arms}")
    return arm


def pause(draft: Draft, request: commands.Pause) -> None:
    """Take no new units for a while."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(f"experiment {draft.state.name!r} is stopped; there is nothing to pause")
    if draft.state.state == ENROLLING:
        _change(draft, "paused", request)


def resume(draft: Draft, request: commands.Resume) -> None:
    """Take new units again."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} is stopped for good; only a paused one can be resumed",
            hint="make a new experiment",
        )
    if draft.state.state == PAUSED:
        _change(draft, "resumed", request)


def stop(draft: Draft, request: commands.Stop) -> None:
    """Take no new units any more."""
    draft.require_unfinished()
    if draft.state.state != STOPPED:
        _change(draft, "stopped", request)


def finish(draft: Draft, request: commands.Finish) -> None:
    """Let nothing change any more; what is held back by then would never be counted."""
    if draft.state.state == FINISHED:
        return
    n_held = int(draft.state.counters[N_HELD].sum())
    if n_held and not request.anyway:
        told_now = [due_at for due_at, _, _, _, reward in draft.plan.put_pending.values() if reward is not None]
        last = instant(max([draft.last_held or 0, *told_now]))
        raise RewardsHeld(
            f"experiment {draft.state.name!r} holds back {n_held:,} reward{'s' * (n_held != 1)} that would never be "
            f"counted if it were finished now; the last window passes at {last:%Y-%m-%d %H:%M:%S} UTC",
            hint=Hint.FINISH_ANYWAY,
        )
    _change(draft, "finished", request)


def add_arm(draft: Draft, request: commands.AddArm) -> None:
    """Add an arm."""
    draft.require_unfinished()
    state = draft.state
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
    _check_kept(draft, [(ACTIVE, floor)])
    _change(draft, "arm_added", request, arm=len(state.names), details={"name": request.name, "floor": floor})


def pause_arm(draft: Draft, request: commands.PauseArm) -> None:
    """Take an arm out of play."""
    _change_arm(draft, "arm_paused", request, ACTIVE, PAUSED)


def resume_arm(draft: Draft, request: commands.ResumeArm) -> None:
    """Bring an arm back into play."""
    _change_arm(draft, "arm_resumed", request, PAUSED, ACTIVE)


def retire_arm(draft: Draft, request: commands.RetireArm) -> None:
    """Take an arm out of play for good."""
    _change_arm(draft, "arm_retired", request, None, RETIRED)


def change_weight(draft: Draft, request: commands.ChangeWeight) -> None:
    """Change the policy's weight."""
    draft.require_unfinished()
    before = draft.state.configuration.reward_weight
    if before is not None and before == request.reward_weight:
        return
    _change(draft, "weight_changed", request, details={"reward_weight": float(request.reward_weight), "was": before})
    draft.plan.configured = draft.state.n_events


def _change_arm(draft: Draft, kind: str, request: commands.ArmRequest, before: str | None, after: str) -> None:
    """Bring an arm from one state into another; it may be there already."""
    draft.require_unfinished()
    arm = draft.state.position(request.name)
    now = draft.state.arm_states[arm]
    if now == after:
        return
    if now == RETIRED or (before is not None and now != before):
        raise InvalidInput(
            f"arm {request.name!r} is {now} and cannot become {after}", hint="a changed arm is a new arm: add one"
        )
    if after == ACTIVE:
        _check_kept(draft, [(ACTIVE, draft.state.floors[arm])])
    elif now == ACTIVE and draft.state.arm_states.count(ACTIVE) == 1:
        raise InvalidInput(f"arm {request.name!r} is the last one in play", hint=Hint.PAUSE_OR_STOP)
    _change(draft, kind, request, arm=arm)


def _check_kept(draft: Draft, more: list[tuple[str, float]]) -> None:
    """Raise if shares kept for the arms in play would leave nothing to decide."""
    arms = [*zip(draft.state.arm_states, draft.state.floors, strict=True), *more]
    check_shares([floor for state, floor in arms if state == ACTIVE])


def _change(
    draft: Draft, kind: str, request: commands.Request, *, arm: int | None = None, details: dict[str, Any] | None = None
) -> None:
    """Change the experiment and log it."""
    draft.ahead.clear()
    before = draft.state.tracked_from
    checked_change(draft.state, lambda state: apply_change(state, kind, arm, details or {}))
    draft.log(kind, request.who, arm=arm, details=details)
    if draft.state.tracked_from is not before:
        draft.plan.touched.update(range(len(draft.state.names)))
