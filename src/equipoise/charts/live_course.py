"""Draw how a live experiment went, as plain Vega-Lite dicts: shares, means, precision, people and rewards a day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.charts.themes import STYLES
from equipoise.charts.vega_lite import (
    AXIS_ROOM,
    HEIGHT,
    MOST_ARMS,
    NARROW,
    WIDTH,
    Chart,
    Column,
    chart,
    decimals_of,
    end_labels,
    interval_text,
    known,
    label_room,
    number_text,
    people_axis,
    series_scale,
    time_axis,
)
from equipoise.errors import InvalidInput

MOST_BANDS = 4
"""Arms whose intervals are all drawn over time; of more, only those of the two best means."""
_DIGITS = 6
"""Significant digits of numbers over time: a page has thousands of them."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_SHORTEST = timedelta(minutes=1)
"""An experiment that took less time is drawn over people."""
_MOST_OTHERS = 1.5
"""The others are drawn together if they have no more people than the largest arm this many times."""


@dataclass(frozen=True)
class Mark:
    """A change or a note to mark on charts: when it was, after how many people, and what."""

    at: datetime
    people: int
    text: str


@dataclass(frozen=True)
class Course:
    """How an experiment went, at some points in time; arrays are (n_points, n_arms), NaN where nothing is known.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    at : tuple of datetime
        The times.
    assigned, rewarded : int arrays
        People assigned and rewards counted by then.
    wanted : float array
        The share of people that each arm should get.
    mean, low, high : float arrays
        Mean of the rewards, and both ends of its interval.
    direction, confidence
        As in `Status`.
    marks : tuple of Mark
        Changes and notes.
    """

    arms: tuple[str, ...]
    at: tuple[datetime, ...]
    assigned: IntArray
    rewarded: IntArray
    wanted: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    direction: str = "maximise"
    confidence: float = 0.95
    marks: tuple[Mark, ...] = ()

    @property
    def people(self) -> IntArray:
        """People assigned by each point in time."""
        return np.asarray(self.assigned.sum(axis=1))

    @property
    def half_width(self) -> FloatArray:
        """The larger distance from each mean to an end of its interval."""
        return np.maximum(self.mean - self.low, self.high - self.mean)

    @property
    def shown(self) -> list[int]:
        """Positions of the arms that are drawn one by one, those with the most people, in their own order."""
        n_arms = len(self.arms)
        if n_arms <= MOST_ARMS:
            return list(range(n_arms))
        order = np.argsort(-self.assigned[-1], kind="stable")
        return sorted(order[: MOST_ARMS - 1].tolist())

    @property
    def is_timed(self) -> bool:
        """Whether it took long enough to be drawn over time; otherwise it is drawn over people."""
        return self.at[-1] - self.at[0] >= _SHORTEST


def live_shares_chart(course: Course, *, width: int = WIDTH, utc: bool = True) -> Chart:
    """Draw the share of people that each arm has got, and the share wanted for it, over time.

    Parameters
    ----------
    course : Course
    width : int
        Pixels of the chart.
    utc : bool, default True
        Whether times are in UTC, or in the zone of whoever reads the page.
    """
    _check_people(course)
    people = course.people.astype(np.float64)
    points = np.flatnonzero(people > 0)
    given = course.assigned[points] / people[points, None]
    names, shares = _with_others(course, given)
    _, wanted = _with_others(course, course.wanted[points])
    rows = [
        {**_place(course, int(point)), "arm": name, "given": _rounded(shares[j, k]), "wanted": _rounded(wanted[j, k])}
        for j, point in enumerate(points)
        for k, name in enumerate(names)
    ]
    room = label_room(names, width)
    plot = width - AXIS_ROOM - room
    n_shown = len(course.shown)
    drawn = slice(None) if shares[-1].max() <= _MOST_OTHERS * shares[-1, :n_shown].max() else slice(n_shown)
    values = np.concatenate([shares[:, drawn].ravel(), wanted[:, drawn].ravel()])
    top = min(1.0, 1.08 * float(np.nanmax(values)))
    x, (colour, dash) = _x(course, width, utc), series_scale(names)
    y = {
        "field": "given",
        "type": "quantitative",
        "title": "share of people",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"format": "%", "tickCount": 5},
    }
    common = {"x": x, "color": colour, "strokeDash": dash}
    lines = [{"mark": {"type": "line", "strokeWidth": 2.5, "clip": True}, "encoding": {**common, "y": y}}]
    notes = ["Share of all people so far."]
    if np.isfinite(wanted).any():
        thin = {"type": "line", "strokeWidth": 1, "clip": True}
        lines.insert(0, {"mark": thin, "encoding": {**common, "y": {**y, "field": "wanted"}}})
        notes = ["Thick: share of all people so far. Thin: share wanted."]
    lines.append(_tooltips(common, y, [("given", "given", ".1%"), ("wanted", "wanted", ".1%")], x))
    layers = [
        *_mark_layers(course, x),
        *lines,
        *end_labels(names[drawn], shares[-1, drawn].tolist(), 0, top, plot=plot, room=room, height=HEIGHT),
    ]
    most = int(np.argmax(given[-1]))
    said = f"{course.arms[most]!r} has got {_of_100(given[-1][most])} of 100 people so far"
    last = course.wanted[points[-1], most]
    if np.isfinite(last):
        said += f"; {_of_100(float(last))} of 100 are wanted for it now"
    columns = [_place_column(course), Column("given", ("given",), "percent"), Column("wanted", ("wanted",), "percent")]
    return chart(
        said,
        [
            *notes,
            *_other_note(course, f"have {_of_100(float(shares[-1, -1]))} of 100 people together"),
            *_mark_notes(course),
        ],
        rows,
        layers,
        columns if np.isfinite(wanted).any() else columns[:2],
        caption="Share of people by arm",
        width=width,
        plot=plot,
        series="arm",
    )


def live_means_chart(course: Course, *, width: int = WIDTH, utc: bool = True) -> Chart:
    """Draw the mean of each arm over time, with intervals of the best ones.

    The parameters are those of `live_shares_chart`.
    """
    if not np.isfinite(course.mean).any():
        raise InvalidInput("there is no chart to draw: no arm has a reward yet")
    shown = [k for k in course.shown if np.isfinite(course.mean[:, k]).any()]
    up = 1.0 if course.direction == "maximise" else -1.0
    last = {k: float(course.mean[:, k][np.isfinite(course.mean[:, k])][-1]) for k in shown}
    ranked = sorted(shown, key=lambda k: -up * last[k])
    most = MOST_BANDS if len(shown) <= MOST_BANDS else 2
    banded = [k for k in ranked[:most] if (np.isfinite(course.low[:, k]) & np.isfinite(course.high[:, k])).any()]
    low, high = _range_of_means(course, shown, banded)
    names = [course.arms[k] for k in shown]
    rows = [
        {
            **_place(course, point),
            "arm": course.arms[k],
            "mean": _rounded(course.mean[point, k]),
            "low": _rounded(course.low[point, k]),
            "high": _rounded(course.high[point, k]),
            "rewards": int(course.rewarded[point, k]),
        }
        for k in shown
        for point in np.flatnonzero(np.isfinite(course.mean[:, k])).tolist()
    ]
    room = label_room(names, width)
    plot = width - AXIS_ROOM - room
    x, (colour, dash) = _x(course, width, utc), series_scale(names)
    y = {
        "field": "mean",
        "type": "quantitative",
        "title": "mean reward",
        "scale": {"domain": [low, high], "nice": False, "zero": False},
        "axis": {"tickCount": 5},
    }
    common = {"x": x, "color": colour, "strokeDash": dash}
    band = {"x": x, "color": colour, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    bands = [
        {
            "transform": [{"filter": {"field": "arm", "equal": course.arms[k]}}, {"filter": _BOTH_ENDS}],
            "mark": {"type": "area", "opacity": 0.14, "clip": True},
            "encoding": band,
        }
        for k in reversed(banded)
    ]
    fields = [("mean", "mean", ".4~g"), ("low", "low", ".4~g"), ("high", "high", ".4~g"), ("rewards", "rewards", ",")]
    layers = [
        *_mark_layers(course, x),
        *bands,
        {"mark": {"type": "line", "strokeWidth": 2.5, "clip": True}, "encoding": {**common, "y": y}},
        _tooltips(common, y, fields, x),
        *end_labels(names, [last[k] for k in shown], low, high, plot=plot, room=room, height=HEIGHT),
    ]
    best = ranked[0]
    ends = known(course.low[-1, best]), known(course.high[-1, best])
    decimals = decimals_of((known(course.low[-1, k]), known(course.high[-1, k])) for k in shown)
    between = interval_text(*ends, decimals)
    said = f"{course.arms[best]!r} has the best mean so far: {number_text(last[best], decimals)}"
    said += "" if between == "-" else f", {between}"
    confidence = f"{100 * course.confidence:g}%"
    notes = []
    if banded:
        which = "" if len(banded) == len(shown) else f" of the {len(banded)} arms with the best means"
        notes.append(f"Bands: {confidence} intervals{which}, for all arms together and at all times.")
    columns = [_place_column(course), Column("mean", ("mean", "low", "high"), "estimate", decimals)]
    return chart(
        said,
        [*notes, *_other_note(course, "are left out"), *_mark_notes(course)],
        rows,
        layers,
        columns,
        caption=f"Means over time, with {confidence} intervals",
        width=width,
        plot=plot,
        series="arm",
    )


def live_precision_chart(course: Course, *, goal: float | None = None, width: int = WIDTH, utc: bool = True) -> Chart:
    """Draw the half-width of the widest interval over time, and the goal.

    `goal` is the half-width that every arm should have; the other parameters are those of `live_shares_chart`.
    """
    widest = course.half_width.max(axis=1)  # NaN until every arm has an interval
    points = np.flatnonzero(np.isfinite(widest))
    if not points.size:
        raise InvalidInput("there is no chart to draw: not every arm has an interval yet")
    which = course.half_width[points].argmax(axis=1)
    rows = [
        {**_place(course, int(point)), "widest": _rounded(widest[point]), "arm": course.arms[k]}
        for point, k in zip(points, which.tolist(), strict=True)
    ]
    plot = width - AXIS_ROOM - 20
    x = _x(course, width, utc)
    top = 1.05 * max(min(float(widest[points].max()), 6 * float(widest[points[-1]])), goal or 0.0)
    y = {
        "field": "widest",
        "type": "quantitative",
        "title": "widest \u00b1",
        "scale": {"domain": [0, top], "nice": False},
        "axis": {"tickCount": 5},
    }
    encoding = {"x": x, "y": y}
    layers: list[dict[str, Any]] = [*_mark_layers(course, x)]
    now = float(widest[points[-1]])
    decimals = decimals_of([(0.0, now)])
    said = f"Every arm is known to \u00b1{number_text(now, decimals)} now"
    notes = ["The widest of all intervals."]
    if goal is not None:
        rule = {"y": {"datum": goal, "type": "quantitative"}}
        layers.append({"mark": {"type": "rule", **STYLES["goal"]}, "encoding": rule})
        said += f"; the goal is \u00b1{goal:g}" if now > goal else f", which meets the goal of \u00b1{goal:g}"
        notes = ["The widest of all intervals; dashed: the goal."]
    line = {"type": "line", **STYLES["single"], "clip": True}
    layers.append({"mark": line, "encoding": encoding})
    layers.append(_tooltips(encoding, y, [("widest", "widest \u00b1", ".3~g"), ("arm", "of", "")], x))
    columns = [
        _place_column(course),
        Column("widest \u00b1", ("widest",), "number", decimals),
        Column("of", ("arm",), "text"),
    ]
    return chart(
        said,
        [*notes, *_mark_notes(course)],
        rows,
        layers,
        columns,
        caption="The widest interval",
        width=width,
        plot=plot,
        height=200,
    )


def live_pace_chart(
    days: Sequence[date], people: Sequence[int], rewards: Sequence[int], *, width: int = WIDTH, so_far: bool = True
) -> Chart:
    """Draw people assigned and rewards reported on each day, in UTC.

    Parameters
    ----------
    days : sequence of date
        The days, one after the other.
    people, rewards : sequence of int
        People assigned, and rewards reported, on each.
    width : int
        Pixels of the chart.
    so_far : bool, default True
        Whether the last day is not over yet.

    Examples
    --------
    >>> from datetime import date
    >>> from equipoise import charts
    >>> drawn = charts.live_pace_chart([date(2027, 3, 1), date(2027, 3, 2)], [90, 40], [60, 50], so_far=True)
    >>> charts.title_of(drawn), charts.table_of(drawn).rows[1]
    ('90 people and 60 rewards on the last whole day', ('2027-03-02', '40', '50'))
    """
    if not days or not sum(people):
        raise InvalidInput("there is no chart to draw: nobody has been assigned yet")
    rows: list[dict[str, Any]] = [
        {"day": day.isoformat(), "people": int(n), "rewards": int(m)}
        for day, n, m in zip(days, people, rewards, strict=True)
    ]
    whole = rows[:-1] if so_far and len(rows) > 1 else rows
    recent = whole[-7:]
    n, m = (float(np.mean([row[key] for row in recent])) for key in ("people", "rewards"))
    if so_far and len(rows) == 1:
        said = f"{_counted(n, 'person', 'people')} and {_counted(m, 'reward', 'rewards')} on the first day so far"
    elif len(recent) == 1:
        said = f"{_counted(n, 'person', 'people')} and {_counted(m, 'reward', 'rewards')} on the last whole day"
    else:
        said = f"{_a_day(n)} people and {_a_day(m)} rewards a day, on average over the last {len(recent)} whole days"
    plot = width - AXIS_ROOM - 20
    many = len(rows) > 40
    axis = {"labelOverlap": True, "format": "%-d %b", "tickCount": 3 if width < NARROW else 6}
    x = {"field": "day", "type": "temporal", "title": None, "scale": {"type": "utc"}, "axis": axis}
    x |= {} if many else {"timeUnit": "utcyearmonthdate"}
    y = {"field": "people", "type": "quantitative", "title": "a day", "axis": {"tickCount": 5, "format": ",.0f"}}
    tooltip = [
        {"field": "day", "type": "temporal", "format": "%-d %B %Y"},
        {"field": "people", "format": ","},
        {"field": "rewards", "format": ","},
    ]
    bars = {"type": "area", **STYLES["bar"], "interpolate": "step"} if many else {"type": "bar", **STYLES["bar"]}
    layers = [
        {"mark": bars, "encoding": {"x": x, "y": y, **({} if many else {"tooltip": tooltip})}},
        {
            "mark": {"type": "line", **STYLES["other line"], "point": len(rows) == 1},
            "encoding": {"x": {**x, "bandPosition": 0.5} if not many else x, "y": {**y, "field": "rewards"}},
        },
    ]
    notes = ["Bars: people assigned. Line: rewards reported." + (" The last day is not over." if so_far else "")]
    columns = [
        Column("day (UTC)", ("day",), "date"),
        Column("people", ("people",), "count"),
        Column("rewards", ("rewards",), "count"),
    ]
    caption = "People and rewards by day"
    return chart(said, notes, rows, layers, columns, caption=caption, width=width, plot=plot, height=180)


_BOTH_ENDS = {"and": [{"field": "low", "valid": True}, {"field": "high", "valid": True}]}


def _check_people(course: Course) -> None:
    if not course.at or not course.people[-1]:
        raise InvalidInput("there is no chart to draw: nobody has been assigned yet")


def _with_others(course: Course, values: FloatArray) -> tuple[list[str], FloatArray]:
    """Return the names of the arms that are shown with their values, and the others added up."""
    shown = course.shown
    names = [course.arms[k] for k in shown]
    if len(shown) == len(course.arms):
        return names, values
    rest = [k for k in range(len(course.arms)) if k not in set(shown)]
    return [*names, _others_name(course)], np.concatenate(
        [values[:, shown], values[:, rest].sum(axis=1, keepdims=True)], axis=1
    )


def _others_name(course: Course) -> str:
    name = f"{len(course.arms) - len(course.shown):,} others"
    return name if name not in course.arms else f"({name})"


def _other_note(course: Course, what: str) -> list[str]:
    others = len(course.arms) - len(course.shown)
    return [f"The {len(course.shown)} arms with the most people; the other {others:,} {what}."] if others else []


def _range_of_means(course: Course, shown: list[int], banded: list[int]) -> tuple[float, float]:
    """Return the ends of the axis of means: those of the intervals after a fifth of the points, as they start wide."""
    later = slice(len(course.at) // 5, None)
    values = [course.mean[later, shown].ravel(), course.mean[-1, shown]]
    values += [ends[later, banded].ravel() for ends in (course.low, course.high)]
    found = np.concatenate(values)
    found = found[np.isfinite(found)]
    low, high = float(found.min()), float(found.max())
    edge = 0.04 * (high - low) or 0.5 * abs(high) or 0.5
    return low - edge, high + edge


def _place(course: Course, point: int) -> dict[str, Any]:
    if course.is_timed:
        return {"at": course.at[point].astimezone(UTC).strftime(_TIME)}
    return {"people": int(course.people[point])}


def _place_column(course: Course) -> Column:
    return Column("time (UTC)", ("at",), "time") if course.is_timed else Column("people", ("people",), "count")


def _x(course: Course, width: int, utc: bool) -> dict[str, Any]:
    return time_axis(course.at, width, utc=utc) if course.is_timed else people_axis(width)


def _tooltips(
    encoding: dict[str, Any], y: dict[str, Any], fields: Sequence[tuple[str, str, str]], x: dict[str, Any]
) -> dict[str, Any]:
    """Return a layer of points that cannot be seen, but show their numbers when they are pointed at."""
    when = {"field": x["field"], "title": "time" if x["field"] == "at" else "people", "type": x["type"]}
    when |= {"format": "%-d %b %Y %H:%M"} if x["field"] == "at" else {"format": ","}
    numbers = [
        {"field": field, "title": title, "type": "quantitative", "format": digits}
        if digits
        else {"field": field, "title": title, "type": "nominal"}
        for field, title, digits in fields
    ]
    arm = [{"field": "arm", "type": "nominal"}] if not any(field == "arm" for field, _, _ in fields) else []
    keys = {key: part for key, part in encoding.items() if key != "strokeDash"}
    return {
        "mark": {"type": "point", "size": 120, "opacity": 0, "filled": True, "clip": True},
        "encoding": {**keys, "y": y, "tooltip": [*arm, when, *numbers]},
    }


def _mark_layers(course: Course, x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return lines at changes and notes, numbered at the top."""
    if not course.marks:
        return []
    rows = [
        {"at": mark.at.astimezone(UTC).strftime(_TIME), "people": mark.people, "number": str(k), "text": mark.text}
        for k, mark in enumerate(course.marks, 1)
    ]
    tooltip = [{"field": "text", "type": "nominal", "title": "change"}]
    data = {"values": rows}
    return [
        {"data": data, "mark": {"type": "rule", **STYLES["change"]}, "encoding": {"x": x, "tooltip": tooltip}},
        {
            "data": data,
            "mark": {"type": "text", **STYLES["small words"], "baseline": "bottom", "dy": -2},
            "encoding": {"x": x, "y": {"value": 0}, "text": {"field": "number", "type": "nominal"}, "tooltip": tooltip},
        },
    ]


def _mark_notes(course: Course) -> list[str]:
    if not course.marks:
        return []
    listed = "; ".join(f"{k}: {mark.text}" for k, mark in enumerate(course.marks, 1))
    return [f"Dotted: changes. {listed}."]


def _rounded(value: float) -> float | None:
    number = known(value)
    return None if number is None else float(f"{number:.{_DIGITS}g}")


def _of_100(share: float) -> str:
    percent = 100 * share
    return f"{percent:.0f}" if 1 <= percent <= 99 or percent in (0.0, 100.0) else f"{percent:.1f}"


def _a_day(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.5 else f"{value:.1f}"


def _counted(value: float, one: str, several: str) -> str:
    return f"{value:,.0f} {one if round(value) == 1 else several}"
