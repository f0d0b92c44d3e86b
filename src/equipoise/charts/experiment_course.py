"""Read from an experiment how it went, to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts.live_course import Course, Mark
from equipoise.experiment.course import period_between
from equipoise.experiment.event_sentences import sentence_of
from equipoise.experiment.records import Event, Status, Timeline

if TYPE_CHECKING:
    from equipoise.experiment import Experiment

_MOST_MARKS = 12
_UNMARKED = frozenset({"created", "described", "noted", "rebuilt"})


def course_of(experiment: Experiment) -> Course:
    """Return how an experiment went so far, for `live_shares_chart` and the other charts over time.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise import charts
    >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], reward_weight=0.5, seed=1)
    >>> for unit in range(100):
    ...     one = experiment.ask(f"student-{unit}")
    ...     told = experiment.tell(one.unit, unit % 3)
    >>> charts.course_of(experiment).people.tolist()
    [100]
    """
    status = experiment.status()
    timeline = experiment.timeline(period_for(status))
    return course_of_timeline(timeline, status, experiment.changes(_MOST_MARKS))


def period_for(status: Status) -> str:
    """Return the length of the periods by which an experiment is best drawn."""
    return period_between(status.created_at, status.at)


def course_of_timeline(timeline: Timeline, status: Status, changes: Sequence[Event] = ()) -> Course:
    """Return the course that a timeline describes, with marks at the latest changes.

    Parameters
    ----------
    timeline : Timeline
        Of the experiment.
    status : Status
        Of about the same time; it says which direction is better.
    changes : sequence of Event
        The latest changes, newest first; notes are marked if they are decisions.
    """
    ends = (*timeline.start[1:], timeline.at)
    rows = np.flatnonzero(timeline.assigned_so_far.sum(axis=1) > 0)
    marked = [one for one in reversed(changes) if one.kind not in _UNMARKED or _is_decision(one)]
    return Course(
        arms=timeline.arms,
        at=tuple(ends[row] for row in rows.tolist()),
        assigned=timeline.assigned_so_far[rows],
        rewarded=timeline.counted_so_far[rows],
        wanted=timeline.share_wanted[rows],
        mean=timeline.mean[rows],
        low=timeline.low[rows],
        high=timeline.high[rows],
        direction=status.direction,
        confidence=status.confidence,
        marks=tuple(Mark(one.at, _people_at(timeline, one.at), sentence_of(one)) for one in marked[-_MOST_MARKS:]),
    )


def _is_decision(event: Event) -> bool:
    return event.kind == "noted" and (event.details or {}).get("kind") == "decision"


def _people_at(timeline: Timeline, at: datetime) -> int:
    """Return about how many people had been assigned at an instant."""
    ends = [end.timestamp() for end in (*timeline.start[1:], timeline.at)]
    people = timeline.assigned_so_far.sum(axis=1)
    return round(float(np.interp(at.timestamp(), [timeline.start[0].timestamp(), *ends], [0, *people])))
