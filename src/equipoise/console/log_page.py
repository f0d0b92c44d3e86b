"""Show the log of an experiment, newest first: changes and notes, or every event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from equipoise.console.addresses import address
from equipoise.console.visits import Download, Shown, Visit
from equipoise.experiment import sentence_of
from equipoise.experiment.event_kinds import CHANGES, KINDS
from equipoise.experiment.records import Event

ROWS = 50


@dataclass(frozen=True)
class EventLine:
    """An event as a sentence."""

    number: int
    kind: str
    at: datetime
    sentence: str
    is_decision: bool
    unit: str | None


@dataclass(frozen=True)
class LogView:
    """A page of the log."""

    events: tuple[EventLine, ...]
    kind: str
    """Which events: changes, all, or those of one kind."""
    kinds: tuple[tuple[str, str], ...]
    """What can be chosen: value and words."""
    newer: str | None
    """Address of the newest page, on others."""
    older: str | None
    lines: str
    """Address of the same events as JSON lines."""


def show(visit: Visit) -> Shown:
    """Show a page of the log."""
    kind = visit.query.get("kind", "changes")
    kind = kind if kind in ("changes", "all", *KINDS) else "changes"
    found = events_of(visit)
    here = address("e/{name}/log", name=visit.names["name"])
    shown = found[:ROWS]
    older = {"kind": kind, "before": str(shown[-1].number)} if len(found) > ROWS else None
    query = {"kind": kind} | ({"before": visit.query["before"]} if visit.query.get("before") else {})
    title = {"changes": "What was changed", "all": "Everything that happened"}.get(kind, f"Events: {kind_words(kind)}")
    view = LogView(
        tuple(map(event_line, shown)),
        kind,
        (("changes", "changes and notes"), ("all", "all events"), *((one, kind_words(one)) for one in KINDS)),
        f"{here}?{urlencode({'kind': kind})}" if visit.query.get("before") else None,
        None if older is None else f"{here}?{urlencode(older)}",
        f"{here}.jsonl?{urlencode(query)}",
    )
    return Shown("log.html", view, title)


def events_of(visit: Visit) -> list[Event]:
    """Return the events that the query of the address names, newest first, and one more if there are more."""
    kind, given = visit.query.get("kind", "changes"), visit.query.get("before", "")
    before = int(given) if given.isdecimal() and 0 < len(given) < 19 and int(given) > 0 else None
    if kind == "all":
        return list(visit.the.events_page(0, ROWS + 1, before=before, newest_first=True))
    if kind in KINDS and kind not in CHANGES:
        return list(visit.the.events_page(0, ROWS + 1, before=before, kinds=(kind,), newest_first=True))
    return list(visit.the.changes(ROWS + 1, before=before, kinds=(kind,) if kind in CHANGES else ()))


def as_lines(visit: Visit) -> Download:
    """Return the events of the page as the API gives them, as lines of JSON."""
    lines = [json.dumps(event.to_dict(), ensure_ascii=True) for event in events_of(visit)[:ROWS]]
    return Download("application/x-ndjson", "".join(f"{line}\n" for line in lines).encode(), "events.jsonl")


def event_line(event: Event) -> EventLine:
    """Return an event as a line of the log."""
    is_decision = event.kind == "noted" and event.details.get("kind") == "decision"
    return EventLine(event.number, event.kind, event.at, sentence_of(event), is_decision, event.unit)


def kind_words(kind: str) -> str:
    """Return a kind of event in words.

    Examples
    --------
    >>> kind_words("arm_paused")
    'arm paused'
    """
    return kind.replace("_", " ")
