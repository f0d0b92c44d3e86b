"""Everything about an experiment right after one event, in one record: what a page to print or to keep shows."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from equipoise.analysis.results import Comparison, Report
from equipoise.experiment.course import Timeline
from equipoise.experiment.records import Event, Fidelity, Status, Verification
from equipoise.serialization import json_data

MOST_CHANGES = 200
"""Changes and notes in a report; of more, the latest."""


@dataclass(frozen=True)
class FullReport:
    """Everything about an experiment, right after an event.

    Attributes
    ----------
    name : str
        The experiment.
    event, hash : int, and str or None
        The last event that the report knows of, and its hash in hexadecimal, which stands for the log up to it.
    at, made_at : datetime
        The time that it is about, and when it was made; the same unless it is about the past.
    settings : dict
        What the experiment was made with, and as it was changed: as in `Experiment.describe`.
    status : Status
        Arms, intervals, stopping rules, description.
    comparison : Comparison
        Which arms differ, and which may be best.
    report : Report or None
        What the log says besides; None if it was not read for this.
    timeline : Timeline or None
        People, rewards, means and shares over time; None if there are too many arms for it.
    changes : tuple of Event
        Changes, notes and decisions up to the event, oldest first; of very many, the latest.
    has_earlier_changes : bool
        Whether there were more.
    fidelity : Fidelity or None
        Comparison with the plan it was made from, if it was.
    verification : Verification or None
        Result of replaying the whole log, if that was asked for.
    """

    name: str
    event: int
    hash: str | None
    at: datetime
    made_at: datetime
    settings: dict[str, Any]
    status: Status
    comparison: Comparison
    report: Report | None
    timeline: Timeline | None
    changes: tuple[Event, ...]
    has_earlier_changes: bool
    fidelity: Fidelity | None
    verification: Verification | None

    @property
    def is_past(self) -> bool:
        """Whether it is about the past."""
        return self.at != self.made_at

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold."""
        found: dict[str, Any] = json_data(self)
        return found
