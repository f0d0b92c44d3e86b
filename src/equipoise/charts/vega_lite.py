"""Build charts as plain Vega-Lite dicts, without Altair: their frame, axes and time, and their data as a table.

The title of a chart is a sentence that says what it shows. Its colours are those of a light page: `themes.themed`
exchanges them for a dark one, or the style sheet of a page does. Altair would take some 100 ms to build a chart; a dict
takes microseconds.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from equipoise.charts.themes import CONFIG
from equipoise.errors import InvalidInput

Chart: TypeAlias = dict[str, Any]
"""A Vega-Lite chart as plain data that JSON can hold."""
Kind: TypeAlias = Literal["text", "time", "date", "count", "percent", "number", "signed", "interval", "estimate"]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 640, 260
"""Pixels of a chart, axes and names included in the width."""
AXIS_ROOM = 60
"""Pixels of a y axis of numbers, with its title."""
NARROW = 420
"""Narrower charts have fewer ticks."""
DASHES = ((1, 0), (7, 3), (2, 2), (9, 3, 2, 3), (14, 4), (4, 2, 1, 2, 1, 2))
MOST_ARMS = 12
"""Arms drawn one by one; the others are together."""
_BOLD_LETTER = 7.6
"""Pixels that a bold letter takes, about."""
_TABLE = "table"


class Column(NamedTuple):
    """A column of the table of a chart: its heading, and the fields of a row that its cells show.

    An interval has two fields, its ends, and an estimate three, a middle and its ends; all others have one.
    """

    head: str
    fields: tuple[str, ...]
    kind: Kind
    decimals: int | None = None


@dataclass(frozen=True)
class ChartTable:
    """The numbers of a chart, as texts for a table; the first column names the rows.

    `kinds` has what each column holds: text, time, date, count, percent, number, signed, interval or estimate. Times
    are in UTC.
    """

    caption: str
    columns: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: tuple[tuple[str, ...], ...]


def chart(
    title: str,
    notes: Sequence[str],
    rows: list[dict[str, Any]],
    layers: Sequence[dict[str, Any]],
    columns: Sequence[Column],
    *,
    caption: str,
    width: int,
    plot: int,
    height: int | dict[str, Any] = HEIGHT,
    series: str | None = None,
    **more: Any,
) -> Chart:
    """Return a chart of rows, drawn by layers; `columns` say what its table shows, one group for each of a `series`.

    `width` is that of the whole chart, `plot` that of its plot, in pixels.
    """
    letters = max(int(width / 8.2), 24)
    subtitle = [line for note in notes for line in textwrap.wrap(note, int(letters * 1.22))]
    return {
        "$schema": SCHEMA,
        "title": {"text": textwrap.wrap(title, letters) or [""], "subtitle": subtitle},
        "width": plot,
        "height": height,
        "data": {"values": rows},
        "layer": list(layers),
        **more,
        "config": CONFIG,
        "usermeta": {
            "title": title,
            "notes": list(notes),
            _TABLE: {
                "caption": caption,
                "columns": [[one.head, list(one.fields), one.kind, one.decimals] for one in columns],
                "series": series,
            },
        },
    }


def title_of(drawn: Chart) -> str:
    """Return the sentence that says what a chart shows."""
    return str(drawn["usermeta"]["title"])


def notes_of(drawn: Chart) -> tuple[str, ...]:
    """Return what stands below the title of a chart: how to read it."""
    return tuple(drawn["usermeta"]["notes"])


def without_title(drawn: Chart) -> Chart:
    """Return a chart for a page that has its title as a heading, and a background of its own."""
    rest = {key: part for key, part in drawn.items() if key not in ("title", "usermeta")}
    return rest | {"background": "transparent", "padding": 4}


def rows_of(drawn: Chart) -> list[dict[str, Any]]:
    """Return the rows that a chart draws, at full precision."""
    found: list[dict[str, Any]] = drawn["data"]["values"]
    return found


def table_of(drawn: Chart, most_rows: int | None = None) -> ChartTable:
    """Return the numbers of a chart as a table; of more than `most_rows` rows, some that are evenly spaced.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise import charts
    >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    >>> for unit, reward in enumerate([1.0, 2.0, 3.0]):
    ...     told = experiment.tell(experiment.ask(f"student-{unit}").unit, reward)
    >>> found = charts.table_of(charts.live_arms_chart(experiment.status()))
    >>> found.columns, found.rows[0]
    (('arm', 'mean', 'interval', 'rewards', 'standing'), ('a', '2', '-', '2', 'may be best'))
    """
    described = drawn["usermeta"][_TABLE]
    columns = [Column(head, tuple(fields), kind, decimals) for head, fields, kind, decimals in described["columns"]]
    first, rest = columns[0], columns[1:]
    rows, series = rows_of(drawn), described["series"]
    if series is None:
        chosen = _some(rows, most_rows)
        kinds = tuple(column.kind for column in columns)
        texts = tuple(tuple(cell(row, column) for column in columns) for row in chosen)
        return ChartTable(described["caption"], tuple(column.head for column in columns), kinds, texts)
    names = list(dict.fromkeys(row[series] for row in rows))
    by_place: dict[Any, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_place.setdefault(row[first.fields[0]], {})[row[series]] = row
    places = _some(list(by_place), most_rows)
    heads = [name if len(rest) == 1 else f"{name}: {column.head}" for name in names for column in rest]
    texts = tuple(
        (
            cell({first.fields[0]: place}, first),
            *(cell(by_place[place].get(name, {}), column) for name in names for column in rest),
        )
        for place in places
    )
    kinds = (first.kind, *(column.kind for _ in names for column in rest))
    return ChartTable(described["caption"], (first.head, *heads), kinds, texts)


def _some(found: list[Any], most: int | None) -> list[Any]:
    """Return some of many, evenly, with the first and the last."""
    if most is None or len(found) <= most:
        return found
    if most < 2:
        raise InvalidInput.of("most_rows", "must be at least 2", most)
    step = (len(found) - 1) / (most - 1)
    return [found[round(k * step)] for k in range(most)]


def cell(row: dict[str, Any], column: Column) -> str:
    """Return what a row shows in a column; a dash for what is not known.

    Examples
    --------
    >>> cell({"share": 0.256}, Column("share", ("share",), "percent")), cell({}, Column("people", ("n",), "count"))
    ('25.6%', '-')
    """
    values = [row.get(field) for field in column.fields]
    if column.kind == "interval":
        low, high = values
        return interval_text(low, high, column.decimals)
    if column.kind == "estimate":
        middle, low, high = values
        if middle is None:
            return "-"
        ends = interval_text(low, high, column.decimals)
        return number_text(middle, column.decimals) + ("" if ends == "-" else f" ({ends})")
    (value,) = values
    if value is None:
        return "-"
    match column.kind:
        case "time":
            return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%d %H:%M}"
        case "date":
            return str(value)[:10]
        case "count":
            return f"{value:,.0f}"
        case "percent":
            return f"{100 * value:.1f}%"
        case "number":
            return number_text(value, column.decimals)
        case "signed":
            return number_text(value, column.decimals, sign=True)
        case _:
            return str(value)


def number_text(value: float, decimals: int | None, *, sign: bool = False) -> str:
    """Return a number with so many decimals, or four digits; with a true minus.

    Examples
    --------
    >>> number_text(0.1234, 2), number_text(0.0, 1, sign=True), number_text(1234.5678, None)
    ('0.12', '+0.0', '1,235')
    """
    plus = "+" if sign else ""
    text = f"{value:{plus},.4g}" if decimals is None else f"{round(value, decimals) + 0.0:{plus},.{decimals}f}"
    return text.replace("-", "\u2212") if "e" not in text else text


def interval_text(low: float | None, high: float | None, decimals: int | None) -> str:
    """Return an interval, of which an end may be open.

    Examples
    --------
    >>> interval_text(0.123, 0.456, 2), interval_text(None, 0.456, 2), interval_text(None, None, 2)
    ('0.12 to 0.46', 'up to 0.46', '-')
    """
    if low is None or high is None:
        if low is not None:
            return f"from {number_text(low, decimals)}"
        return "-" if high is None else f"up to {number_text(high, decimals)}"
    return f"{number_text(low, decimals)} to {number_text(high, decimals)}"


def decimals_of(ends: Iterable[tuple[float | None, float | None]]) -> int | None:
    """Return the decimals that show two digits of the narrowest interval; None without one.

    Examples
    --------
    >>> decimals_of([(0.1, 0.2), (0.0, 20.0)]), decimals_of([(None, 1.0)])
    (2, None)
    """
    widths = [high - low for low, high in ends if low is not None and high is not None]
    widths = [width for width in widths if 1e-6 <= width < 1e9]
    return max(0, 1 - math.floor(math.log10(min(widths)))) if widths else None


def known(value: Any) -> float | None:
    """Return a number as JSON can hold it: None if it is not known or not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


def time_axis(times: Sequence[datetime], width: int, *, utc: bool) -> dict[str, Any]:
    """Return the x axis of times: in UTC, or in the zone of whoever reads the page."""
    span = max(times) - min(times)
    few = width < NARROW
    if span <= timedelta(hours=36):
        marks: dict[str, Any] = {"format": "%H:%M", "tickCount": 3 if few else 6}
    elif span <= timedelta(days=9):
        step = math.ceil(span / timedelta(days=4 if few else 9))
        marks = {"format": "%-d %b", "tickCount": {"interval": "day", "step": step}}
    else:
        marks = {"format": "%-d %b" if span < timedelta(days=300) else "%b %Y", "tickCount": 3 if few else 6}
    return {
        "field": "at",
        "type": "temporal",
        "title": "time (UTC)" if utc else None,
        "scale": {"type": "utc" if utc else "time", "nice": False},
        "axis": {**marks, "labelOverlap": True},
    }


def people_axis(width: int) -> dict[str, Any]:
    """Return the x axis of people assigned so far, where an experiment took no time to speak of."""
    axis = {"format": ",.0f", "tickCount": 3 if width < NARROW else 6}
    return {"field": "people", "type": "quantitative", "title": "people so far", "scale": {"nice": False}, "axis": axis}


def series_scale(names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the colours and dashes of series, without a legend: `end_labels` name them."""
    colour = {"field": "arm", "type": "nominal", "legend": None, "scale": {"domain": list(names), "range": "category"}}
    dashes = [list(DASHES[k % len(DASHES)]) for k in range(len(names))]
    return colour, {**colour, "scale": {"domain": list(names), "range": dashes}}


def label_room(names: Sequence[str], width: int) -> int:
    """Return the pixels to keep at the right for the names of series."""
    longest = max((len(name) for name in names), default=0)
    return min(round(_BOLD_LETTER * longest) + 14, round((0.34 if width < NARROW else 0.3) * width))


def end_labels(
    names: Sequence[str], places: Sequence[float], low: float, high: float, *, plot: int, room: int, height: int
) -> list[dict[str, Any]]:
    """Return the names of series beside their last points, which lie at `places` on an axis from low to high."""
    spots = spread_apart([height * (1 - (place - low) / ((high - low) or 1.0)) for place in places], 14.0, height)
    colour, _ = series_scale(names)
    return [
        {
            "data": {"values": [{"arm": name}]},
            "mark": {"type": "text", "align": "left", "baseline": "middle", "limit": room - 8, "fontWeight": "bold"},
            "encoding": {
                "x": {"value": plot + 6},
                "y": {"value": round(spot, 1)},
                "text": {"field": "arm", "type": "nominal"},
                "color": colour,
            },
        }
        for name, spot in zip(names, spots, strict=True)
    ]


def spread_apart(places: Sequence[float], gap: float, room: float) -> list[float]:
    """Return places near the given ones that are at least a gap apart, from 0 to `room` if they fit in it.

    Examples
    --------
    >>> spread_apart([50.0, 52.0, 90.0], 15.0, 100.0)
    [43.5, 58.5, 90.0]
    """
    order = sorted(range(len(places)), key=lambda k: places[k])
    # Each place minus its rank times the gap must not fall: the closest such sequence pools those that do (PAVA).
    pools: list[tuple[float, int]] = []
    for rank, k in enumerate(order):
        value, weight = places[k] - rank * gap, 1
        while pools and pools[-1][0] > value:
            other, others = pools.pop()
            value, weight = (value * weight + other * others) / (weight + others), weight + others
        pools.append((value, weight))
    most = max(room - gap * (len(places) - 1), 0.0)
    flat = [min(max(value, 0.0), most) for value, weight in pools for _ in range(weight)]
    found = [0.0] * len(places)
    for rank, k in enumerate(order):
        found[k] = flat[rank] + gap * rank
    return found
