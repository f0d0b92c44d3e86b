"""The backend of an experiment as it was right after an event: it can be read, and nothing of it can be changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, NoReturn

from equipoise.errors import InvalidInput
from equipoise.experiment.backends import StoreBackend
from equipoise.experiment.checkpoints import past_rollup
from equipoise.experiment.event_log import read_history
from equipoise.experiment.pace import pace_of
from equipoise.experiment.past import Past, past_of
from equipoise.experiment.timeline import timeline_of

if TYPE_CHECKING:
    from equipoise.experiment import commands
    from equipoise.experiment.records import Event, Health, History, Status, Timeline, UnitPage, UnitStatus
    from equipoise.experiment.state import State
    from equipoise.experiment.transitions import Transition
    from equipoise.store import Store


class PastBackend(StoreBackend):
    """One experiment of a store, as of an event."""

    def __init__(self, store: Store, number: int, name: str, event: int) -> None:
        super().__init__(store, number, name)
        self.event = event

    @property
    def _past(self) -> Past:
        return past_of(self.store, self.number, self.name, self.event)

    def _state(self) -> State:
        return self._past.state

    def _standing(self) -> tuple[State, Status]:
        return self._past

    def _now(self) -> datetime:
        return self._past.status.at

    def _last(self) -> int | None:
        return self.event

    def events_page(self, after: int, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Read a page of the log up to the event."""
        return super().events_page(after, limit, self._up_to(selected))

    def changes(self, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Read the latest changes up to the event."""
        return super().changes(limit, self._up_to(selected))

    def _up_to(self, selected: dict[str, Any]) -> dict[str, Any]:
        end = self.event + 1
        return selected | {"before": min(selected.get("before", end), end)}

    def history(self, points: int) -> History:
        """Sum the log up to the event."""
        state = self._state()
        return self.store.read(lambda transaction: read_history(transaction, self.number, state, points))

    def timeline(self, every: str, since: datetime | None) -> Timeline:
        """Add up the log by period, up to the event."""
        kept = past_rollup(self.store, self.number, self.name, self.event)
        return timeline_of(kept, self._now(), every, since)

    def _pace(self, state: State, now: datetime) -> float | None:
        return pace_of(past_rollup(self.store, self.number, self.name, self.event).rollup, state, now)

    # What there is of the present only

    def unit(self, unit: str) -> UnitStatus | None:
        """Raise: units are read as they are now."""
        self._refuse("has no units; the experiment itself has")

    def units(self, state: str | None, prefix: str | None, limit: int, after: str | None) -> UnitPage:
        """Raise: units are read as they are now."""
        self._refuse("has no units; the experiment itself has")

    def unit_events(self, unit: str) -> list[Event]:
        """Raise: units are read as they are now."""
        self._refuse("has no units; the experiment itself has")

    def export(self, target: str | os.PathLike[str] | IO[str] | IO[bytes], form: str | None) -> int:
        """Raise: units are read as they are now."""
        self._refuse("has no units to export; the experiment itself has")

    def health(self) -> Health:
        """Raise: alerts are of the present."""
        self._refuse("has no health; the experiment itself has")

    def _carry_out(self, requests: Sequence[commands.Request], *, together: bool) -> Transition:
        self._refuse("cannot be changed")

    def rebuild(self) -> bool:
        """Raise: nothing can be changed."""
        self._refuse("cannot be changed")

    def erase(self, unit: str) -> None:
        """Raise: nothing can be changed."""
        self._refuse("cannot be changed")

    def delete(self) -> None:
        """Raise: nothing can be changed."""
        self._refuse("cannot be changed")

    def copy_to(self, store: Store | str, progress: Callable[[int, int], None] | None) -> StoreBackend:
        """Raise: a copy has the whole log."""
        self._refuse("cannot be copied")

    def _refuse(self, what: str) -> NoReturn:
        raise past_refusal(self.name, self.event, what)


def past_refusal(name: str, event: int, what: str) -> InvalidInput:
    """Return the error for what a view of the past cannot do."""
    return InvalidInput(
        f"the view of experiment {name!r} as of event {event:,} {what}", hint="open the experiment itself"
    )
