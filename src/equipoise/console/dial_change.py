"""Say, after the dial was turned, what changed, and let it be undone."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.console.visits import Visit
from equipoise.experiment.dial import dial_words
from equipoise.experiment.records import Event

DONE = "done=dial"
"""What the address of the overview has after the dial was turned."""
KINDS = ("weight_changed", "dial_changed")


@dataclass(frozen=True)
class DialChange:
    """A change of the dial: from which person on, to what, what it was, and the fields of the form that undoes it."""

    now: str
    was: str
    person: int
    undo: dict[str, str]


def change_just_made(visit: Visit) -> DialChange | None:
    """Return the change after which the viewer came to a page; None if they came from elsewhere."""
    if visit.query.get("done") != "dial":
        return None
    found = visit.the.changes(1, kinds=KINDS)
    return change_of(found[0], visit.status.n_assigned) if found else None


def change_of(event: Event, n_assigned: int) -> DialChange:
    """Return a change in words, when so many people were assigned.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> details = {"reward_weight": 0.88, "was": 0.6}
    >>> event = Event(9, "weight_changed", datetime(2027, 1, 1, tzinfo=UTC), "Ada", *[None] * 8, details)
    >>> change_of(event, 1500)
    DialChange(now='reward weight 0.88', was='reward weight 0.6', person=1501, undo={'reward_weight': '0.6'})
    """
    if event.kind == "weight_changed":
        now, was = ({"reward_weight": event.details[name]} for name in ("reward_weight", "was"))
    else:
        now, was = event.details["dial"], event.details["was"]
    undo = {name: f"{value:.12g}" if isinstance(value, float) else str(value) for name, value in was.items()}
    return DialChange(dial_words(now), dial_words(was), n_assigned + 1, undo)
