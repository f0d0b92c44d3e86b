"""Show the log of an experiment, newest events first."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.console.visits import Shown, Visit
from equipoise.experiment.records import Event

MOST_EVENTS = 50


@dataclass(frozen=True)
class LogView:
    """Events, newest first."""

    events: tuple[Event, ...]


def show(visit: Visit) -> Shown:
    """Show the last events."""
    after = max(0, visit.status.n_events - MOST_EVENTS)
    return Shown("log.html", LogView(tuple(reversed(list(visit.the.events_page(after, MOST_EVENTS))))), "Log")
