"""Plan requests about one unit: its assignment, its reward, and another reward in the place of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.errors import EnrolmentClosed, NotRewarded, RewardConflict, UnknownUnit
from equipoise.experiment.instants import instant
from equipoise.experiment.missing import DefaultReward
from equipoise.experiment.requests import Assignment, ToldReward
from equipoise.experiment.settling import settle_if_due
from equipoise.experiment.state import ENROLLING, FINISHED, PAUSED
from equipoise.experiment.units import Unit, state_after_reward
from equipoise.log_codes import DEFAULTED, HELD, IN_ESTIMATES, WAITING

if TYPE_CHECKING:
    from equipoise.experiment.draft import Draft
    from equipoise.experiment.requests import Ask, Correct, Tell


def ask(draft: Draft, request: Ask) -> Assignment:
    """Return the arm a unit has, or give it one."""
    name = request.unit
    unit = draft.units.get(name)
    new = unit is None
    if unit is None:
        _require_enrolling(draft, name)
        state = draft.state
        decision = state.n_decisions
        arm, probability, forced = draft.next_decision()
        unit = draft.units[name] = Unit(arm, decision, draft.now, probability, forced)
        details = None if request.attributes is None else {"attributes": request.attributes}
        draft.log("assigned", request.who, name, unit, details=details)
        state.stats.assign(arm)
        state.n_decisions += 1
        draft.expect(name, unit)
    at = draft.at if new else instant(unit.assigned_at)
    arm_name = draft.state.names[unit.arm]
    return Assignment(name, arm_name, unit.decision, unit.probability, unit.forced, at, new)


def tell(draft: Draft, request: Tell) -> ToldReward:
    """Record a unit's reward."""
    name, unit = request.unit, _known(draft, request.unit)
    reward = draft.state.configuration.checked_reward(request.reward)
    if unit.told is not None and unit.reward is not None:
        if reward not in (unit.told, unit.reward):
            raise RewardConflict(
                f"the reward of unit {name!r} was told before and is {unit.reward!r}; got {reward!r}",
                hint=None
                if draft.state.state == FINISHED
                else "correct(unit, reward, reason) replaces it, and logs why",
            )
        return _told(draft, name, unit, new=False)
    draft.require_unfinished()
    settle_if_due(draft, name, unit)
    missing = draft.state.configuration.missing
    before, after = unit.state, state_after_reward(unit.state, missing, window_open=draft.window is not None)
    counted = after == IN_ESTIMATES
    replaced = missing.value if counted and before == DEFAULTED and isinstance(missing, DefaultReward) else None
    unit.told = unit.reward = reward
    draft.log("rewarded", request.who, name, unit, reward=reward, counted=counted, replaced=replaced)
    if replaced is not None:
        draft.replace(unit, replaced, reward)
    elif counted:
        draft.count(unit, reward)
    draft.move(unit, after)
    if after == HELD:
        draft.expect(name, unit)
    elif before == WAITING and draft.window is not None:
        draft.forget(draft.due_at(unit), unit.decision)
    return _told(draft, name, unit, new=True)


def correct(draft: Draft, request: Correct) -> ToldReward:
    """Replace a reward that was told."""
    name, unit = request.unit, _known(draft, request.unit)
    reward = draft.state.configuration.checked_reward(request.reward)
    if unit.reward is None:
        raise NotRewarded(f"unit {name!r} has no reward that could be corrected", hint="tell(unit, reward)")
    draft.require_unfinished()
    if reward == unit.reward:
        return _told(draft, name, unit, new=False)
    settle_if_due(draft, name, unit)
    counted = unit.state == IN_ESTIMATES
    replaced, unit.reward = unit.reward, reward
    draft.log(
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
        draft.replace(unit, replaced, reward)
    elif unit.state == HELD:
        draft.expect(name, unit)
    return _told(draft, name, unit, new=True)


def _known(draft: Draft, name: str) -> Unit:
    """Return a unit that was assigned."""
    unit = draft.units.get(name)
    if unit is None:
        raise UnknownUnit(
            f"unit {name!r} was never assigned in experiment {draft.state.name!r}", hint="ask(unit) comes first"
        )
    return unit


def _told(draft: Draft, name: str, unit: Unit, *, new: bool) -> ToldReward:
    """Return what is known of a unit's reward."""
    assert unit.reward is not None  # noqa: S101
    return ToldReward(name, draft.state.names[unit.arm], unit.reward, unit.state == IN_ESTIMATES, new)


def _require_enrolling(draft: Draft, name: str) -> None:
    """Raise unless new units are welcome."""
    if draft.state.state != ENROLLING:
        raise EnrolmentClosed(
            f"experiment {draft.state.name!r} is {draft.state.state} and takes no new units; got {name!r}",
            hint="resume() takes new units again" if draft.state.state == PAUSED else None,
        )
