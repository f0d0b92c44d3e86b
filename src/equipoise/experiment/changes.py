"""Handlers of commands that change the experiment or its arms, or only say something about it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from equipoise.errors import EnrolmentClosed, Hint, InvalidInput, RewardsHeld, StaleChange, WindowsOpen
from equipoise.experiment.configuration import MOST_ARMS, check_shares
from equipoise.experiment.description import require_arms
from equipoise.experiment.event_kinds import CHANGES_NOTHING, DESCRIBED, MUTED, NOTED, UNMUTED
from equipoise.experiment.event_log import read_event
from equipoise.experiment.event_sentences import sentence_of
from equipoise.experiment.state import (
    ACTIVE,
    ENROLLING,
    FINISHED,
    PAUSED,
    RETIRED,
    STOPPED,
    apply_change,
    checked_change,
    dial_from,
)
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import N_HELD

if TYPE_CHECKING:
    from equipoise.experiment import commands
    from equipoise.experiment.transitions import Draft


def pause(draft: Draft, request: commands.Pause) -> None:
    """Accept no new units for a while."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(f"experiment {draft.state.name!r} is stopped; there is nothing to pause")
    if draft.state.state == ENROLLING:
        _change(draft, "paused", request)


def resume(draft: Draft, request: commands.Resume) -> None:
    """Accept new units again."""
    draft.require_unfinished()
    if draft.state.state == STOPPED:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} is stopped for good; only a paused one can be resumed",
            hint="make a new experiment",
        )
    if draft.state.state == PAUSED:
        _change(draft, "resumed", request)


def stop(draft: Draft, request: commands.Stop) -> None:
    """Accept no more new units."""
    draft.require_unfinished()
    if draft.state.state != STOPPED:
        _change(draft, "stopped", request)


def finish(draft: Draft, request: commands.Finish) -> None:
    """Close the experiment; rewards within open windows would never be counted, so that takes `anyway`."""
    if draft.state.state == FINISHED:
        return
    n_open = draft.state.n_open_windows
    if n_open and not request.anyway:
        n_held = int(draft.state.counters[N_HELD].sum())
        held = f" and holds back {n_held:,} reward{'s' * (n_held != 1)}" if n_held else ""
        last = instant(max([draft.last_window or 0, *(due_at for due_at, _ in draft.transition.put_pending)]))
        raise (RewardsHeld if n_held else WindowsOpen)(
            f"experiment {draft.state.name!r} has {n_open:,} unit{'s' * (n_open != 1)} whose window is open{held}; "
            f"if it were finished now, their rewards would never be counted; the last window passes at "
            f"{last:%Y-%m-%d %H:%M:%S} UTC",
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
            return  # a retry, by the caller or after a lost connection
        but = f"with floor {kept:g}" if arm_state == ACTIVE else f"and it is {arm_state}"
        raise InvalidInput(
            f"experiment {state.name!r} has an arm {request.name!r} already, {but}", hint="a changed arm is a new arm"
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
    """Take an arm out of play permanently."""
    _change_arm(draft, "arm_retired", request, None, RETIRED)


def change_weight(draft: Draft, request: commands.ChangeWeight) -> None:
    """Change the policy's weight."""
    draft.require_unfinished()
    _turn(draft, request, {"reward_weight": float(request.reward_weight)})


def change_dial(draft: Draft, request: commands.ChangeDial) -> None:
    """Set the policy's dial in any way."""
    draft.require_unfinished()
    stated = request.stated()
    goal = {name: stated[name] for name in ("half_width", "units") if name in stated}
    _turn(draft, request, dial_from(draft.state, stated), {"goal": goal} if goal else {})


def _turn(draft: Draft, request: commands.Change, dial: dict[str, Any], more: dict[str, Any] | None = None) -> None:
    """Set the policy's dial; from one weight to another, the event is the one that there was before other dials."""
    before, after = draft.state.configuration.dial, draft.state.configuration.with_dial(dial).dial
    if before == after:
        return
    if set(before) == set(after) == {"reward_weight"}:
        _change(draft, "weight_changed", request, details=after | {"was": before["reward_weight"]})
    else:
        _change(draft, "dial_changed", request, details={"dial": after, "was": before} | (more or {}))
    draft.transition.configured = draft.state.n_events


def change_description(draft: Draft, request: commands.ChangeDescription) -> None:
    """Change what the experiment is about, in words, of a finished one too: it changes nothing that was measured."""
    state, texts = draft.state, request.texts()
    for arm in texts.get("arms", {}):
        state.position(arm)
    description = state.configuration.description
    new, old = description.difference(texts)
    if not new:
        return
    require_arms(description.changed(new), state.names)
    _change(draft, DESCRIBED, request, details={"description": new, "was": old})
    draft.transition.configured = state.n_events


def note(draft: Draft, request: commands.Note) -> None:
    """Write a note into the log, of a finished experiment too."""
    _log_once(draft, NOTED, request, {"text": request.text, "kind": request.kind})


def mute(draft: Draft, request: commands.Mute) -> None:
    """Log that alerts of a check are muted, for a year at most."""
    draft.require_unfinished()
    until = datetime.fromisoformat(request.until)
    if not draft.at < until <= draft.at + LONGEST_MUTE:
        expected = f"must be in the future, and at most a year away; got {request.until}"
        raise InvalidInput.of("until", expected, hint="mute it again then, if it still does not matter")
    details = {"check": request.check_name, "until": request.until, "reason": request.reason}
    _log_once(draft, MUTED, request, details, _arm_of(draft, request))


def unmute(draft: Draft, request: commands.Unmute) -> None:
    """Log that alerts of a check are no longer muted."""
    draft.require_unfinished()
    details = {"check": request.check_name} | ({} if request.reason is None else {"reason": request.reason})
    _log_once(draft, UNMUTED, request, details, _arm_of(draft, request))


LONGEST_MUTE = timedelta(days=366)
"""Nothing is muted for ever: who muted it may be gone by then."""


def _arm_of(draft: Draft, request: commands.Mute | commands.Unmute) -> int | None:
    return None if request.arm is None else draft.state.position(request.arm)


def _log_once(
    draft: Draft, kind: str, request: commands.Request, details: dict[str, Any], arm: int | None = None
) -> None:
    """Log what was said; the same again at once is a retry."""
    name = None if arm is None else draft.state.names[arm]
    last = read_event(draft.latest[-1], draft.state.names) if draft.latest else None
    if last is not None and (last.kind, last.who, last.arm, last.details) == (kind, request.who, name, details):
        return
    draft.log(kind, request.who, arm=arm, details=details)


def _change_arm(draft: Draft, kind: str, request: commands.ArmRequest, before: str | None, after: str) -> None:
    """Move an arm from one state to another; idempotent if it is there already."""
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
    """Raise if the floors of the arms in play would leave nothing for the policy to decide."""
    arms = [*zip(draft.state.arm_states, draft.state.floors, strict=True), *more]
    check_shares([floor for state, floor in arms if state == ACTIVE])


def _change(
    draft: Draft, kind: str, request: commands.Change, *, arm: int | None = None, details: dict[str, Any] | None = None
) -> None:
    """Apply a change to the experiment and log it, with its reason."""
    _refuse_stale(draft, request)
    if request.reason is not None:
        details = (details or {}) | {"reason": request.reason}
    draft.ahead.clear()
    before = draft.state.tracked_from
    checked_change(draft.state, lambda state: apply_change(state, kind, arm, details or {}))
    draft.log(kind, request.who, arm=arm, details=details)
    if draft.state.tracked_from is not before:
        draft.transition.touched.update(range(len(draft.state.names)))


def _refuse_stale(draft: Draft, request: commands.Change) -> None:
    """Raise if the experiment was changed after the event that the caller knows of."""
    known = request.expected_change
    last = next((row for row in reversed(draft.latest) if row[1] not in CHANGES_NOTHING), None)
    if known is None or last is None or last[0] <= known:
        return
    event = read_event(last, draft.state.names)
    raise StaleChange(
        f"experiment {draft.state.name!r} was changed since event {known:,}: {sentence_of(event)} "
        f"(event {event.number:,}, at {event.at:%Y-%m-%d %H:%M:%S} UTC)",
        event=event.number,
        hint=Hint.LOOK_AGAIN,
    )
