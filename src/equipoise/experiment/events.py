"""The log as it is read: one record per event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.experiment.instants import instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes
    ----------
    number : int
        Its place in the log of the experiment, from 1.
    kind : str
        created, assigned, rewarded, counted, expired, corrected, paused, resumed, stopped, finished, arm_added,
        arm_paused, arm_resumed, arm_retired, weight_changed or rebuilt.
    at : datetime
        When, in UTC.
    who : str or None
        Who did it, if that was given.
    unit, arm, decision : str, str, int, or None
        Whom it is about, and the number of the decision that assigned the unit.
    reward : float or None
        The reward that was told, corrected to, counted, or taken by default.
    probability, forced
        Of an assignment.
    counted : bool or None
        Whether the reward entered the estimates with this event.
    replaced : float or None
        The reward that left the estimates with this event.
    details : dict
        Attributes of an assignment, reason of a correction, settings of a creation or a change.
    """

    number: int
    kind: str
    at: datetime
    who: str | None
    unit: str | None
    arm: str | None
    decision: int | None
    reward: float | None
    probability: float | None
    forced: bool | None
    counted: bool | None
    replaced: float | None
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data that JSON can hold."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"at": self.at.isoformat()}


def read_event(row: Sequence[Any], names: list[str]) -> Event:
    """Return an event from a row of the log and the names of the arms."""
    number, kind, at, who, unit, arm, decision, reward, probability, forced, counted, replaced, details = row
    return Event(
        number=number,
        kind=kind,
        at=instant(at),
        who=who,
        unit=unit,
        arm=None if arm is None else names[arm],
        decision=decision,
        reward=reward,
        probability=probability,
        forced=None if forced is None else bool(forced),
        counted=None if counted is None else bool(counted),
        replaced=replaced,
        details={} if details is None else json.loads(details),
    )
