"""What is known of one unit, from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.experiment.missing import DefaultReward, DropUnit
from equipoise.kernels.replay import (
    DEFAULTED,
    DROPPED,
    HELD,
    IN_ESTIMATES,
    LATE_DEFAULTED,
    LATE_DROPPED,
    OVERDUE,
    WAITING,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from equipoise.experiment.missing import MissingReward

STATE_NAMES = {
    WAITING: "waiting",
    HELD: "held",
    IN_ESTIMATES: "counted",
    OVERDUE: "overdue",
    DEFAULTED: "defaulted",
    DROPPED: "dropped",
    LATE_DEFAULTED: "defaulted",
    LATE_DROPPED: "dropped",
}


class Unit:
    """A unit that was assigned."""

    __slots__ = ("arm", "assigned_at", "decision", "forced", "probability", "reward", "state", "told")

    def __init__(self, arm: int, decision: int, assigned_at: int, probability: float, forced: bool) -> None:
        self.arm = arm
        self.decision = decision
        self.assigned_at = assigned_at
        self.probability = probability
        self.forced = forced
        self.state = WAITING
        self.told: float | None = None
        """The reward as it was told first; `reward` is what it was corrected to since."""
        self.reward: float | None = None


def state_after_expiry(missing: MissingReward) -> int:
    """Return the state of a unit without a reward when its window has passed."""
    if isinstance(missing, DefaultReward):
        return DEFAULTED
    return DROPPED if isinstance(missing, DropUnit) else OVERDUE


def state_after_reward(state: int, missing: MissingReward, *, window_open: bool) -> int:
    """Return the state of a unit when its first reward is told."""
    if state == WAITING:
        return HELD if missing.hold and window_open else IN_ESTIMATES
    if state == OVERDUE or missing.late == "count":
        return IN_ESTIMATES
    return LATE_DEFAULTED if state == DEFAULTED else LATE_DROPPED


def read_units(rows: Iterable[Sequence[Any]], missing: MissingReward) -> dict[str, Unit]:
    """Return units from their events in the order of the log, as `Transaction.unit_events` gives them."""
    units: dict[str, Unit] = {}
    for name, kind, arm, decision, at, reward, probability, forced, counted in rows:
        if kind == "assigned":
            units[name] = Unit(arm, decision, at, probability, bool(forced))
            continue
        unit = units[name]
        if kind == "rewarded":
            unit.told = unit.reward = reward
            unit.state = IN_ESTIMATES if counted else state_after_reward(unit.state, missing, window_open=True)
        elif kind == "expired":
            unit.state = state_after_expiry(missing)
        elif kind == "counted":
            unit.state = IN_ESTIMATES
        elif kind == "corrected":
            unit.reward = reward
    return units
