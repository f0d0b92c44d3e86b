"""Settle units whose window has passed: count a reward that was held back, or apply the rule for missing ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.experiment.missing import DefaultReward
from equipoise.experiment.units import Unit, state_after_expiry
from equipoise.log_codes import DEFAULTED, HELD, IN_ESTIMATES, WAITING

if TYPE_CHECKING:
    from equipoise.experiment.draft import Draft

MOST_SETTLED = 1_000
"""How many overdue units one transaction deals with, so that none takes long; the next goes on with the rest."""


def settle(draft: Draft, due_at: int, decision: int, name: str, arm: int, reward: float | None) -> None:
    """Deal with a unit whose window has passed: count the reward held back, or apply the rule for missing ones."""
    unit = draft.units.get(name)
    if unit is None:
        unit = Unit(arm, decision, due_at, 0.0, False)
        unit.state, unit.reward = WAITING if reward is None else HELD, reward
    missing = draft.state.configuration.missing
    if reward is not None:
        draft.log("counted", None, name, unit, reward=reward, counted=True)
        draft.count(unit, reward)
        draft.move(unit, IN_ESTIMATES)
    elif isinstance(missing, DefaultReward):
        draft.log("expired", None, name, unit, reward=missing.value, counted=True)
        draft.count(unit, missing.value)
        draft.move(unit, DEFAULTED)
    else:
        draft.log("expired", None, name, unit, counted=False)
        draft.move(unit, state_after_expiry(missing))
    draft.forget(due_at, decision)


def settle_if_due(draft: Draft, name: str, unit: Unit) -> None:
    """Settle a unit that is due but was not among those dealt with first."""
    if draft.window is not None and unit.state in (WAITING, HELD) and draft.due_at(unit) <= draft.now:
        settle(draft, draft.due_at(unit), unit.decision, name, unit.arm, unit.reward)
