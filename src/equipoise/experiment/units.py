"""What is known of one unit, from its events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.experiment.records import UnitStatus
from equipoise.store.schema import instant
from equipoise.unit_lifecycle import OTHER, OVERDUE, REWARD, STATES, UNIT_EVENTS, WAITING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from equipoise.experiment.missing_rewards import MissingReward
    from equipoise.experiment.state import State
    from equipoise.store import Transaction


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

    @property
    def counted(self) -> bool:
        """Whether its reward is in the estimates."""
        return STATES[self.state].estimate == REWARD

    def status(self, name: str, arms: Sequence[str], missing: MissingReward, now: int) -> UnitStatus:
        """Return the unit as people see it at a time; one that nobody has settled yet is overdue all the same."""
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
    """Return units from their events in the order of the log, as `Transaction.unit_events` gives them."""
    units: dict[str, Unit] = {}
    life = missing.life
    for name, kind, arm, decision, at, reward, probability, forced, _ in rows:
        if kind == "assigned":
            units[name] = Unit(arm, decision, at, probability, bool(forced))
            continue
        unit = units[name]
        unit.state = life.after(unit.state, UNIT_EVENTS.get(kind, OTHER))
        if kind == "rewarded":
            unit.told = unit.reward = reward
        elif kind == "corrected":
            unit.reward = reward
    return units


def read_unit(transaction: Transaction, experiment: int, state: State, name: str, now: int) -> UnitStatus | None:
    """Return a unit as people see it at a time, or None if it was never assigned."""
    missing = state.configuration.missing
    found = read_units(transaction.unit_events(experiment, [name]), missing).get(name)
    return None if found is None else found.status(name, state.names, missing, now)
