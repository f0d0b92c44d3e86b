"""Plan requests that change the experiment itself: its enrolment, its arms and its weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import EnrolmentClosed, InvalidInput, RewardsHeld
from equipoise.experiment.changes import apply_change, checked_change
from equipoise.experiment.configuration import MOST_ARMS, check_shares
from equipoise.experiment.instants import instant
from equipoise.experiment.state import ACTIVE, ENROLLING, FINISHED, PAUSED, RETIRED, STOPPED
from equipoise.log_codes import N_HELD

if TYPE_CHECKING:
    from equipoise.experiment import requests as ask_for
    from equipoise.experiment.draft import Draft


def pause(draft: Draft, request: ask_for.Pause) -> None:
    """Take no new units for a while."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(f"experiment {draft.state.name!r} is stopped; there is nothing to pause")
    if draft.state.state == ENROLLING:
        _change(draft, "paused", request)


def resume(draft: Draft, request: ask_for.Resume) -> None:
    """Take new units again."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} is stopped for good; only a paused one can be resumed",
            hint="make a new experiment",
        )
    if draft.state.state == PAUSED:
        _change(draft, "resumed", request)


def stop(draft: Draft, request: ask_for.Stop) -> None:
    """Take no new units any more."""
    draft.require_unfinished()
    if draft.state.state != STOPPED:
        _change(draft, "stopped", request)


def finish(draft: Draft, request: ask_for.Finish) -> None:
    """Let nothing change any more; what is held back by then would never be counted."""
    if draft.state.state == FINISHED:
        return
    n_held = int(draft.state.counters[N_HELD].sum())
    if n_held and not request.anyway:
        told_now = [due_at for due_at, _, _, _, reward in draft.plan.put_pending.values() if reward is not None]
        last = instant(max([draft.last_held or 0, *told_now]))
        raise RewardsHeld(
            f"experiment {draft.state.name!r} holds back {n_held:,} reward{'s' * (n_held != 1)} that would never be "
            "counted if it were finished now",
            hint=f"finish after {last:%Y-%m-%d %H:%M:%S} UTC, when the last window has passed; or now, with "
            "anyway=True (--anyway)",
        )
    _change(draft, "finished", request)


def add_arm(draft: Draft, request: ask_for.AddArm) -> None:
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


def pause_arm(draft: Draft, request: ask_for.PauseArm) -> None:
    """Take an arm out of play."""
    _change_arm(draft, "arm_paused", request, ACTIVE, PAUSED)


def resume_arm(draft: Draft, request: ask_for.ResumeArm) -> None:
    """Bring an arm back into play."""
    _change_arm(draft, "arm_resumed", request, PAUSED, ACTIVE)


def retire_arm(draft: Draft, request: ask_for.RetireArm) -> None:
    """Take an arm out of play for good."""
    _change_arm(draft, "arm_retired", request, None, RETIRED)


def change_weight(draft: Draft, request: ask_for.ChangeWeight) -> None:
    """Change the policy's weight."""
    draft.require_unfinished()
    before = draft.state.configuration.reward_weight
    if before is not None and before == request.reward_weight:
        return
    _change(draft, "weight_changed", request, details={"reward_weight": float(request.reward_weight), "was": before})
    draft.plan.configured = draft.state.n_events


def _change_arm(draft: Draft, kind: str, request: ask_for.ArmRequest, before: str | None, after: str) -> None:
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
        raise InvalidInput(
            f"arm {request.name!r} is the last one in play", hint="pause() or stop() the experiment instead"
        )
    _change(draft, kind, request, arm=arm)


def _check_kept(draft: Draft, more: list[tuple[str, float]]) -> None:
    """Raise if shares kept for the arms in play would leave nothing to decide."""
    arms = [*zip(draft.state.arm_states, draft.state.floors, strict=True), *more]
    check_shares([floor for state, floor in arms if state == ACTIVE])


def _change(
    draft: Draft, kind: str, request: ask_for.Request, *, arm: int | None = None, details: dict[str, Any] | None = None
) -> None:
    """Change the experiment and log it."""
    draft.ahead.clear()
    before = draft.state.tracked_from
    checked_change(draft.state, lambda state: apply_change(state, kind, arm, details or {}))
    draft.log(kind, request.who, arm=arm, details=details)
    if draft.state.tracked_from is not before:
        draft.plan.touched.update(range(len(draft.state.names)))
