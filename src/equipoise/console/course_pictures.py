"""Show on the overview how an experiment went: shares, means, precision, and people by day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from equipoise import charts
from equipoise.charts.vega_lite import WIDTH, Chart
from equipoise.console.addresses import address
from equipoise.console.pictures import Picture, drawn_for, picture
from equipoise.console.visits import Visit
from equipoise.experiment.records import Status, Timeline

_MOST_MARKS = 12
_FEWEST_POINTS = 2
"""An experiment of a single period has no course to draw yet."""


class _Course(NamedTuple):
    """What the charts are drawn from."""

    course: charts.Course
    days: Timeline
    goal: float | None


def _shares(read: _Course, width: int) -> Chart:
    return charts.live_shares_chart(read.course, width=width)


def _means(read: _Course, width: int) -> Chart:
    return charts.live_means_chart(read.course, width=width)


def _precision(read: _Course, width: int) -> Chart:
    return charts.live_precision_chart(read.course, goal=read.goal, width=width)


def _pace(read: _Course, width: int) -> Chart:
    days = [start.date() for start in read.days.start]
    people, rewards = (table.sum(axis=1).tolist() for table in (read.days.assigned, read.days.rewarded))
    return charts.live_pace_chart(days, people, rewards, width=width)


CHARTS: dict[str, Callable[[_Course, int], Chart]] = {
    "shares": _shares,
    "means": _means,
    "precision": _precision,
    "pace": _pace,
}
"""The charts of the overview by the name of their data, in the order of the page."""


def pictures_of(visit: Visit) -> tuple[Picture, ...]:
    """Return the charts of the overview that can be drawn already."""
    read = _read(visit)
    if len(read.course.at) < _FEWEST_POINTS:
        return ()
    found = []
    for name, draw in CHARTS.items():
        source = address(f"e/{{name}}/{name}.json", name=visit.the.name)
        found.append(picture(name, source, lambda draw=draw: draw(read, WIDTH), visit.past_query))  # type: ignore[misc]
    return tuple(one for one in found if one is not None)


def chart(name: str, visit: Visit) -> dict[str, Any]:
    """Return the data of a chart."""
    read = _read(visit)
    return drawn_for(visit, lambda width: CHARTS[name](read, width))


def _read(visit: Visit) -> _Course:
    """Return how the experiment went; the page and its charts read it once for each event."""

    def read() -> _Course:
        status = visit.status
        timeline = visit.the.timeline(charts.period_for(status))
        course = charts.course_of_timeline(timeline, status, visit.the.changes(_MOST_MARKS))
        days = timeline if timeline.every == "day" else visit.the.timeline("day")
        return _Course(course, days, _goal(status))

    return visit.remember("course", visit.the, read)


def _goal(status: Status) -> float | None:
    """Return the finest precision that is declared for the arms."""
    goals = [float(one.goal) for one in status.stopping if one.rule == "precision"]
    return min(goals, default=None)
