"""Draw the price of the dial of a live experiment, as a plain Vega-Lite dict: what each position gains, and takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from equipoise.charts.themes import STYLES
from equipoise.charts.vega_lite import AXIS_ROOM, NARROW, WIDTH, Chart, Column, chart, number_text
from equipoise.errors import InvalidInput

FREE = 1.05
"""Positions that take up to this many times as many people cost nothing to speak of."""


class PricePoint(NamedTuple):
    """A position of the dial: its weight, the gain per 100 people with its range, and times as many people."""

    weight: float
    gain: float
    low: float | None
    high: float | None
    times_people: float


def live_prices_chart(
    points: Sequence[PricePoint],
    *,
    present: float,
    chosen: float | None = None,
    most_times: float = 6.0,
    gain_title: str = "gain per 100 people",
    people_title: str = "times as many people until every arm is as well known",
    position_title: str = "weight",
    place_to_look_at: str = "",
    width: int = WIDTH,
) -> Chart:
    """Draw what every position of the dial gains against how many times as many people it takes.

    Parameters
    ----------
    points : sequence of PricePoint
        The positions, by weight.
    present, chosen : float
        The weight of the experiment now, and another one to point out.
    most_times : float, default 6
        Positions that take more people than this are left out.
    gain_title, people_title : str
        What the axes show.
    position_title : str
        What `weight` is, where it is no weight.
    place_to_look_at : str
        Name of an empty data set, with fields `times` and `gain`, whose point a script moves.
    width : int
        Pixels of the chart.

    Examples
    --------
    >>> from equipoise import charts
    >>> points = [charts.PricePoint(0.6, 0.0, 0.0, 0.0, 1.0), charts.PricePoint(0.9, 4.1, 3.2, 5.0, 1.8)]
    >>> drawn = charts.live_prices_chart(points, present=0.6, chosen=0.9)
    >>> charts.title_of(drawn)
    'Weight 0.9 gains 4.1 per 100 people and takes 1.8 times as many'
    >>> charts.table_of(drawn).rows[1]
    ('0.9', '+4.1', '3.2 to 5.0', '1.80')
    """
    rows: list[dict[str, Any]] = [
        {
            "weight": point.weight,
            "gain": point.gain,
            "low": point.low,
            "high": point.high,
            "times": point.times_people,
            "kind": "here" if point.weight == chosen else "now" if point.weight == present else "other",
        }
        for point in points
        if point.times_people <= most_times or point.weight in (present, chosen)
    ]
    if len(rows) < 2:
        raise InvalidInput("there is no chart to draw: the price of no other position of the dial is known yet")
    plot = width - AXIS_ROOM - 20
    times = [row["times"] for row in rows]
    low, high = min(times), max(times)
    edge = 0.03 * (high - low) or 0.05
    x = {
        "field": "times",
        "type": "quantitative",
        "title": people_title,
        "scale": {"domain": [low - edge, high + edge], "nice": False, "zero": False},
        "axis": {"tickCount": 4 if width < NARROW else 7, "format": ".2~f"},
    }
    y = {"field": "gain", "type": "quantitative", "title": gain_title, "axis": {"tickCount": 5, "format": "+.2~f"}}
    tooltip = [
        {"field": "weight", "type": "quantitative", "title": position_title, "format": ".3~f"},
        {"field": "gain", "type": "quantitative", "format": "+.1f"},
        {"field": "times", "type": "quantitative", "title": "times as many people", "format": ".2f"},
    ]
    if place_to_look_at:  # an empty data set has no extent
        ends = [end for row in rows for end in (row["low"], row["high"], row["gain"]) if end is not None]
        y["scale"] = {"domain": [min(ends), max(ends)], "nice": True}
    encoding = {"x": x, "y": y}
    layers: list[dict[str, Any]] = []
    if low < FREE < high:
        free = {"x": {"datum": low - edge, "type": "quantitative"}, "x2": {"datum": FREE}}
        once: dict[str, Any] = {"data": {"values": [{}]}}  # not once for every row
        layers.append(once | {"mark": {"type": "rect", **STYLES["free"]}, "encoding": free})
        words = {"x": {"datum": FREE, "type": "quantitative"}, "y": {"value": 12}, "text": {"value": "as cheap as now"}}
        mark = {"type": "text", **STYLES["small words"], "align": "left", "dx": 4}
        layers.append(once | {"mark": mark, "encoding": words})
    if any(row["low"] is not None and row["high"] is not None for row in rows):
        layers.append(
            {
                "mark": {"type": "area", **STYLES["single band"]},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            }
        )
    layers += [
        {"mark": {"type": "line", **STYLES["single"]}, "encoding": {**encoding, "order": {"field": "weight"}}},
        {
            "mark": {"type": "point", "size": 16, "filled": True, **STYLES["single"]},
            "encoding": {**encoding, "tooltip": tooltip},
        },
    ]
    for kind, style, shape in (("now", "hollow point", "circle"), ("here", "worse point", "diamond")):
        if any(row["kind"] == kind for row in rows):
            only = [{"filter": {"field": "kind", "equal": kind}}]
            mark = {"type": "point", **STYLES[style], "shape": shape, "size": 140}
            label = {"type": "text", "align": "left", "dx": 9, "dy": 12, "fontWeight": "bold"}
            layers += [
                {"transform": only, "mark": mark, "encoding": {**encoding, "tooltip": tooltip}},
                {
                    "transform": only,
                    "mark": label,
                    "encoding": {**encoding, "text": {"field": "kind", "type": "nominal"}},
                },
            ]
    if place_to_look_at:
        mark = {"type": "point", **STYLES["worse point"], "shape": "diamond", "size": 140}
        layers.append({"data": {"name": place_to_look_at, "values": []}, "mark": mark, "encoding": encoding})
    here = next((row for row in rows if row["kind"] == "here"), None)
    if here is None:
        title = "What each position of the dial gains, and how many people it takes"
    else:
        sign = "loses" if here["gain"] < 0 else "gains"
        title = f"Weight {here['weight']:.3g} {sign} {number_text(abs(here['gain']), 1)} per 100 people and takes "
        title += f"{here['times']:.1f} times as many"
    has_band = any(row["low"] is not None for row in rows)
    notes = ["Band: 8 in 10 values that the data allow." if has_band else "By the means as they are."]
    columns = [
        Column(position_title, ("weight",), "number"),
        Column("gain per 100", ("gain",), "signed", 1),
        Column("8 in 10", ("low", "high"), "interval", 1),
        Column("times as many people", ("times",), "number", 2),
    ]
    return chart(
        title, notes, rows, layers, columns, caption="The price of the dial", width=width, plot=plot, height=220
    )
