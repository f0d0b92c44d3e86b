"""Draw what a forecast says of the ways to run an experiment: their price, precision over time, rules, and guesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise._types import FloatArray
from equipoise.charts import style
from equipoise.errors import InvalidInput
from equipoise.planner.plan_words import day_of, days, out_of, width
from equipoise.planner.recommendation import chosen_way, effect_in_words, goal_in_words

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.planner.figures import Range
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.question import Question
    from equipoise.planner.way_forecast import WayForecast

WIDTH = 560
"""Pixels of a picture that stands alone."""
NARROW = 420
"""Pictures below this width have fewer ticks and smaller gaps."""
EQUAL, DIAL, OTHER = "equal shares", "dial", "other"
"""Kinds of ways: equal shares, settings of a dial, other policies."""
_COLOURS = {EQUAL: "black", DIAL: style.BLUE, OTHER: style.VERMILION}
_SHAPES = {EQUAL: "diamond", DIAL: "circle", OTHER: "square"}
_LETTER = 6.6
"""Pixels that a letter of a label takes, about."""
_MOST_EFFECTS = 8
_SIGNED = "datum.value == 0 ? '0' : format(datum.value, '+.3~r')"


class Ends(NamedTuple):
    """A figure of every way: its median, and the ends that hold 8 in 10; infinite where it is never reached."""

    median: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, ranges: Sequence[Range]) -> Ends:
        """Return the figures of ranges."""
        return cls(*(np.array([getattr(one, name) for one in ranges], np.float64) for name in cls._fields))


# The price of the dial


@dataclass(frozen=True)
class PriceRecord:
    """What each way gains per 100 people, against what it takes; arrays are (n_ways,).

    `taken` is in days until the goal, in people where there is no calendar, or without a goal the widest half-width in
    the end. `sure_taken` and `sure_gain` are the same if every guess is right; None where guesses have no ranges.
    """

    ways: tuple[str, ...]
    kinds: tuple[str, ...]
    chosen: str | None
    unit: str
    """Of what is taken: "days", "people" or "half-width"."""
    taken: Ends
    gain: Ends
    sure_taken: Ends | None
    sure_gain: Ends | None
    goal: str
    limit: float | None
    """The deadline in days."""
    limit_text: str
    is_yes_no: bool


def price_record(forecast: Forecast) -> PriceRecord:
    """Return what the chart of the price of the dial shows.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(arms={"plain": "10%", "prize": "20%"}, people=3000, goals=0.06, ways={"weights": [0.5]})
    >>> record = price_record(plan.simulate(replications=20))
    >>> record.ways, record.unit, record.goal
    (('equal shares', 'weight 0.5'), 'people', 'every arm to ±0.06')
    >>> bool(record.gain.median[1] > 0)
    True
    """
    question, ways = forecast.question, list(forecast.ways.values())
    chosen = chosen_way(forecast)
    unit = unit_of(question)
    has_sure = all(way.luck_alone is not None for way in ways)
    sure = [way.luck_alone for way in ways if way.luck_alone is not None] if has_sure else []
    return PriceRecord(
        ways=tuple(way.name for way in ways),
        kinds=tuple(_kind(way, forecast) for way in ways),
        chosen=None if chosen is None else chosen.name,
        unit=unit,
        taken=Ends.of([_taken(way, unit) for way in ways]),
        gain=Ends.of([way.gain_per_100 for way in ways]),
        sure_taken=Ends.of([_taken(way, unit) for way in sure]) if sure else None,
        sure_gain=Ends.of([way.gain_per_100 for way in sure]) if sure else None,
        goal=goal_in_words(question),
        limit=question.deadline_days if unit == "days" else None,
        limit_text=deadline_text(question),
        is_yes_no=question.is_yes_no,
    )


def unit_of(question: Question) -> str:
    """Return in which unit ways are compared: days or people until the goal, or the half-width without a goal."""
    if not question.has_goal:
        return "half-width"
    return "days" if question.has_calendar else "people"


def deadline_text(question: Question) -> str:
    """Return the deadline in words, such as "30 June", or "day 122" without dates; nothing if there is none.

    Examples
    --------
    >>> from equipoise.planner.question import Question
    >>> deadline_text(Question(ways=("equal shares",), arms=("a", "b"), deadline_seconds=122 * 86_400.0))
    'day 122'
    """
    if question.deadline_days is None or not question.has_calendar:
        return ""
    last = question.date_of(question.deadline_days - 1e-6)
    return f"day {days(question.deadline_days).text}" if last is None else day_of(last, question.start).text


def _taken(way: WayForecast, unit: str) -> Range:
    return {"days": way.days, "people": way.people, "half-width": way.widest}[unit]


def _kind(way: WayForecast, forecast: Forecast) -> str:
    if way is forecast.equal_shares:
        return EQUAL
    return DIAL if _dial(way) else OTHER


def _dial(way: WayForecast) -> tuple[str, float] | None:
    for name in ("information_kept", "reward_weight"):
        value = way.setting.get(name)
        if isinstance(value, (int, float)):
            return name, float(value)
    return None


def price_chart(forecast: Forecast | PriceRecord, *, width: int = WIDTH) -> AnyChart:
    """Draw gain over days until the goal, one point per way, with ranges that hold 8 in 10.

    Thick bars are what luck alone leaves open, thin bars luck and guesses. A way that most experiments never finish
    with stands at the right edge, with an open mark.

    Parameters
    ----------
    width : int
        Pixels of the picture, without what is beside it.
    """
    record = _price(forecast)
    return style.finished(_price_panel(record, width), *_price_words(record))


def _price(forecast: Forecast | PriceRecord) -> PriceRecord:
    return forecast if isinstance(forecast, PriceRecord) else price_record(forecast)


def _price_words(record: PriceRecord) -> tuple[str, list[str]]:
    title = f"What each way gains, and {_TAKEN_WORDS[record.unit]}"
    notes = ["point: median; lines hold 8 in 10 simulated experiments"]
    if (record.gain.low == record.gain.high).all():
        notes = ["by formula: before the cost of learning"]
    if record.sure_taken is not None:
        notes.append("thick line: if all guesses are right")
    if not np.isfinite(record.taken.median).all():
        notes.append("open mark, on grey: most do not get there")
    return title, notes


_TAKEN_WORDS = {"days": "how long it takes", "people": "how many people it takes", "half-width": "how precise it is"}


_TAKEN_TITLES = {
    "days": "days until one knows",
    "people": "people until one knows",
    "half-width": "widest ± in the end",
}


def _price_panel(record: PriceRecord, picture: int) -> Any:
    alt = style.altair()
    height = 340 if picture >= NARROW else 300
    n_unreached = int(np.sum(~np.isfinite(record.taken.median)))
    room = min(20 * n_unreached + 12, picture // 2) if n_unreached else 0
    taken, gain = _Axis(record.taken, record.limit, picture, room=room), _Axis(record.gain, None, -height)
    x_title = _TAKEN_TITLES[record.unit] + (f" {record.goal}" if record.goal else "")
    x = alt.X(
        "taken:Q",
        title=wrapped(x_title, picture),
        scale=taken.scale,
        axis=alt.Axis(grid=False, values=taken.ticks(7 if picture >= NARROW else 4), format=",.3~r"),
    )
    above = {"titleAngle": 0, "titleAlign": "left", "titleX": 0, "titleY": -26 if record.limit is not None else -10}
    y = alt.Y(
        "gain:Q",
        title="more per 100 people than with equal shares"
        if record.is_yes_no
        else "gain per 100 people, against equal shares",
        scale=gain.scale,
        axis=alt.Axis(tickCount=6, labelExpr=_SIGNED, **above),
    )
    rows = _price_rows(record, taken)
    names, halos = _names(rows, record.chosen, taken, gain, picture, height)
    layers: list[Any] = []
    if room:
        zone = style.chart_of([{"from": taken.value(picture - room), "to": taken.high}])
        layers.append(
            zone.mark_rect(color=style.GREY, opacity=0.12).encode(x=alt.X("from:Q", scale=taken.scale), x2="to:Q")
        )
    if record.limit is not None:
        layers.append(
            style.chart_of([{"taken": record.limit}]).mark_rule(color=style.GREY, strokeDash=[5, 4]).encode(x="taken:Q")
        )
    for dial in sorted({row["dial"] for row in rows if row["dial"]}):
        some = [row for row in rows if row["dial"] == dial and row["is_reached"]]
        base = style.chart_of(some).encode(x=x, y=y, order="gain:Q")
        layers.append(base.mark_line(color=style.BLUE, strokeWidth=1.5, opacity=0.35))
    tooltip = [
        alt.Tooltip("way:N"),
        alt.Tooltip("taken_text:N", title=record.unit),
        alt.Tooltip("gain_text:N", title="per 100"),
    ]
    for kind, colour in _COLOURS.items():
        some = [row for row in rows if row["kind"] == kind]
        if not some:
            continue
        base = style.chart_of(some)
        for prefix, thickness in (("", 1.2), ("sure_", 3.5)):
            if prefix and record.sure_taken is None:
                continue
            across = base.transform_filter(f"isValid(datum.{prefix}low)")
            layers.append(
                across.mark_rule(color=colour, strokeWidth=thickness, opacity=0.75).encode(
                    x=alt.X(f"{prefix}low:Q", scale=taken.scale), x2=f"{prefix}high:Q", y=y
                )
            )
            layers.append(
                base.mark_rule(color=colour, strokeWidth=thickness, opacity=0.75).encode(
                    x=x, y=alt.Y(f"{prefix}gain_low:Q", scale=gain.scale), y2=f"{prefix}gain_high:Q"
                )
            )
    layers += halos
    for kind, colour in _COLOURS.items():
        for is_reached in (True, False):
            points = [row for row in rows if row["kind"] == kind and row["is_reached"] is is_reached]
            if points:
                mark = {"shape": _SHAPES[kind], "stroke": colour, "fill": colour if is_reached else "white"}
                layers.append(
                    style.chart_of(points)
                    .mark_point(**mark, size=90, opacity=1, strokeWidth=1.5)
                    .encode(x=x, y=y, tooltip=tooltip)
                )
    layers += names
    if record.limit is not None:
        side = "right" if taken.place(record.limit) > 0.6 * picture else "left"
        layers.append(
            style.chart_of([{"taken": record.limit, "text": f"deadline {record.limit_text}"}])
            .mark_text(align=side, baseline="bottom", color=style.GREY)
            .encode(x="taken:Q", y=alt.value(-4), text="text:N")
        )
    return alt.layer(*layers).properties(width=picture, height=height)


_ROUND = [float(f"{factor}e{power}") for power in range(-9, 12) for factor in (1, 2, 5)]


class _Axis:
    """A linear axis: its domain, and where values lie on it in pixels, from left to right or (negative) from the top.

    At the right there is `room` in pixels for what has no value.
    """

    def __init__(self, found: Ends, limit: float | None, pixels: int, *, room: float = 0.0) -> None:
        values = np.concatenate([found.median, found.low, found.high, [] if limit is None else [limit]])
        known = values[np.isfinite(values)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        low = min(low, 0.0) if low < 0.6 * high or limit is not None or pixels < 0 else low
        gap = (high - low) or abs(high) or 1.0
        self.low = 0.0 if low == 0 and pixels > 0 else low - 0.07 * gap
        high += 0.04 * gap if room else 0.07 * gap
        self.last = high
        self.high = high + (high - self.low) * room / (abs(pixels) - room)
        self.pixels, self.room = pixels, room

    @property
    def scale(self) -> Any:
        """The scale; without `zero=False` a layer that begins elsewhere would pull it to 0."""
        return style.altair().Scale(domain=[self.low, self.high], nice=False, zero=False)

    def place(self, value: float) -> float:
        """Return the pixel of a value; of one outside, that of the end."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return part * self.pixels if self.pixels > 0 else (part - 1.0) * self.pixels

    def ticks(self, most: int) -> list[float]:
        """Return round values, as many or a few less, where there are any to read off."""
        step = next(one for one in _ROUND if (self.last - self.low) / one <= most)
        first, last = math.ceil(self.low / step), math.floor(self.last / step)
        return [float(f"{k * step:.12g}") for k in range(first, last + 1)]

    def value(self, pixel: float) -> float:
        """Return the value at a pixel from the left."""
        return self.low + (self.high - self.low) * pixel / self.pixels


def _price_rows(record: PriceRecord, taken: _Axis) -> list[dict[str, Any]]:
    unreached = [k for k in range(len(record.ways)) if not np.isfinite(record.taken.median[k])]
    unreached.sort(key=lambda k: float(record.gain.median[k]))
    step = (taken.room - 12) / max(len(unreached), 1)
    spots = {k: taken.value(taken.pixels - step * (len(unreached) - place - 0.2)) for place, k in enumerate(unreached)}
    rows = []
    for k, name in enumerate(record.ways):
        row: dict[str, Any] = {
            "way": name,
            "kind": record.kinds[k],
            "dial": name.rsplit(" ", 1)[0] if record.kinds[k] == DIAL else "",
            "is_reached": k not in spots,
            "taken": spots[k] if k in spots else float(record.taken.median[k]),
            "gain": style.finite(record.gain.median[k]),
            "taken_text": _range_text(record.taken, k, record.unit),
            "gain_text": _range_text(record.gain, k, "gain"),
        }
        for prefix, took, gained in (("", record.taken, record.gain), ("sure_", record.sure_taken, record.sure_gain)):
            if took is not None and gained is not None:
                row[f"{prefix}low"] = style.finite(took.low[k])
                row[f"{prefix}high"] = float(took.high[k]) if np.isfinite(took.high[k]) else spots.get(k, taken.high)
                row[f"{prefix}gain_low"] = style.finite(gained.low[k])
                row[f"{prefix}gain_high"] = style.finite(gained.high[k])
        rows.append(row)
    return rows


def _range_text(found: Ends, k: int, unit: str) -> str:
    """Return a figure with its range as text."""

    def text(value: float) -> str:
        if not math.isfinite(value):
            return "not reached"
        if unit == "half-width":
            return f"±{width(value).text}"
        return f"{value:+.1f}" if unit == "gain" else f"{value:,.0f}"

    middle, low, high = (float(end[k]) for end in found)
    if math.isnan(middle):
        return ""
    return text(middle) if low == high else f"{text(middle)} ({text(low)} to {text(high)})"


def _names(
    rows: list[dict[str, Any]], chosen: str | None, taken: _Axis, gain: _Axis, picture: int, height: int
) -> tuple[list[Any], list[Any]]:
    """Return the names of points where they cover least, with lines to those that stand apart, and their halos."""
    alt = style.altair()
    known = [row for row in rows if row["gain"] is not None]
    known.sort(key=lambda row: (row["way"] != chosen, -row["gain"]))
    points = [(taken.place(row["taken"]), gain.place(row["gain"])) for row in known]
    bars = []
    for row, (px, py) in zip(known, points, strict=True):
        if row["low"] is not None:
            bars.append((taken.place(row["low"]), py - 2, taken.place(row["high"]), py + 2))
        bars.append((px - 2, gain.place(row["gain_high"]), px + 2, gain.place(row["gain_low"])))
    spots = label_places([row["way"] for row in known], points, bars, picture, height)
    names, halos = [], []
    for row, (px, py), (left, middle) in zip(known, points, spots, strict=True):
        base = style.chart_of([{"text": row["way"]}])
        if abs(middle - py) > 16:
            near = min(max(px, left), left + _LETTER * len(row["way"]))
            below = middle + (6 if middle < py else -6)
            ends = {"x": alt.value(px), "y": alt.value(py), "x2": alt.value(near), "y2": alt.value(below)}
            names.append(base.mark_rule(color=style.GREY, strokeWidth=0.8).encode(**ends))
        weight = "bold" if row["way"] == chosen else "normal"
        mark = {"align": "left", "baseline": "middle", "fontSize": 12, "fontWeight": weight}
        at = {"x": alt.value(left), "y": alt.value(middle), "text": "text:N"}
        halos.append(base.mark_text(**mark, color="white", stroke="white", strokeWidth=3).encode(**at))
        names.append(base.mark_text(**mark, color=_COLOURS[row["kind"]]).encode(**at))
    return names, halos


def label_places(
    texts: Sequence[str],
    points: Sequence[tuple[float, float]],
    bars: Sequence[tuple[float, float, float, float]],
    picture: float,
    height: float,
) -> list[tuple[float, float]]:
    """Return left end and middle of the label of each point, where it covers little else; all in pixels.

    Parameters
    ----------
    texts, points : sequences
        Labels and the points they belong to, the most important first.
    bars : sequence of (left, top, right, bottom)
        What is better not covered.

    Examples
    --------
    >>> label_places(["one", "two"], [(50, 50), (50, 52)], [], 200, 100)
    [(57.0, 38.0), (57.0, 64.0)]
    """
    placed: list[tuple[float, float, float, float]] = []
    found = []
    for text, (px, py) in zip(texts, points, strict=True):
        wide = _LETTER * len(text)
        best, least = (px + 7.0, py - 11.0), math.inf
        for step, dy in enumerate((12, 26, 40, 54, 68)):
            for side, (left, sign) in enumerate(((px + 7, -1), (px + 7, 1), (px - 7 - wide, -1), (px - 7 - wide, 1))):
                middle = py + sign * dy
                box = (left, middle - 7, left + wide, middle + 7)
                cost = 0.1 * side + 4.0 * step
                cost += 100.0 * (box[0] < 0) + 60.0 * (box[2] > picture + 24) + 100.0 * (box[1] < 0 or box[3] > height)
                cost += 50.0 * sum(_overlap(box, other) for other in placed)
                cost += 15.0 * sum(_overlap(box, (ox - 5, oy - 5, ox + 5, oy + 5)) for ox, oy in points)
                cost += 2.5 * sum(_overlap(box, bar) for bar in bars)
                if cost < least:
                    best, least = (float(left), float(middle)), cost
        placed.append((best[0], best[1] - 7, best[0] + wide, best[1] + 7))
        found.append(best)
    return found


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def wrapped(text: str, picture: float, *, letter: float = 6.0) -> str | list[str]:
    """Return a text in lines that a picture of this width holds.

    Examples
    --------
    >>> wrapped("days until one knows every arm", 120), wrapped("days", 120)
    (['days until one knows', 'every arm'], 'days')
    """
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and letter * len(longer) > picture:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines if len(lines) > 1 else lines[0]


# Precision over time


@dataclass(frozen=True)
class PrecisionRecord:
    """The widest half-width over time, for every way; arrays are (n_ways, n_looks), NaN while it is unknown."""

    ways: tuple[str, ...]
    chosen: str | None
    equal_shares: int
    unit: str
    """Of time: "days" or "people"."""
    time: FloatArray
    """(n_ways, n_looks)."""
    median: FloatArray
    low: FloatArray
    high: FloatArray
    goal: float | None
    of_differences: bool
    limit: float | None
    limit_text: str


def precision_record(forecast: Forecast) -> PrecisionRecord:
    """Return the widest half-width at each look, as its median and the range that holds 8 in 10.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(arms={"plain": "10%", "prize": "20%"}, people=3000, goals=0.06, ways={"weights": [0.5]})
    >>> record = precision_record(plan.simulate(replications=20))
    >>> record.unit, record.goal, bool(record.median[0, -1] < record.median[0, 20])
    ('people', 0.06, True)
    """
    question = forecast.question
    bands = [way.bands for way in forecast.ways.values() if way.bands is not None]
    if not bands or len(bands) < len(forecast.ways):
        raise InvalidInput("there is no chart to draw: precision over time needs simulated experiments")
    chosen = chosen_way(forecast)
    low, median, high = (np.stack([band.widest[place] for band in bands]) for place in range(3))
    has_days = question.has_calendar
    return PrecisionRecord(
        ways=tuple(forecast.ways),
        chosen=None if chosen is None else chosen.name,
        equal_shares=question.equal_shares,
        unit="days" if has_days else "people",
        time=np.stack([band.days if has_days else band.people[1] for band in bands]),
        median=median,
        low=low,
        high=high,
        goal=question.precision,
        of_differences=question.precision_of == "differences",
        limit=question.deadline_days if has_days else None,
        limit_text=deadline_text(question),
    )


def precision_chart(forecast: Forecast | PrecisionRecord, *, width: int = WIDTH) -> AnyChart:
    """Draw the widest half-width over time, a panel per way: the median, and a band that holds 8 in 10.

    A grey line in every panel repeats the median of equal shares.
    """
    record = forecast if isinstance(forecast, PrecisionRecord) else precision_record(forecast)
    alt = style.altair()
    most = 2 if width < NARROW else 4 if width > 700 else 3
    columns = style.even_columns(len(record.ways), most)
    panel = (width - 28 * (columns - 1)) // columns
    top = _highest(record)
    x = alt.X(
        "time:Q",
        title=record.unit,
        axis=alt.Axis(tickCount=max(2, panel // 45), format="~s" if record.unit == "people" else ",.3~r"),
    )
    y = alt.Y(
        "middle:Q",
        title="widest \u00b1",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(tickCount=5, format="~g"),
    )
    rows = _precision_rows(record)
    base = alt.Chart().encode(x=x)
    is_way = base.transform_filter("datum.kind == 'way'")
    layers = [
        is_way.mark_area(opacity=0.25, color=style.BLUE, clip=True).encode(
            y=alt.Y("low:Q", title="widest \u00b1"), y2="high:Q"
        ),
        base.transform_filter("datum.kind == 'equal shares'")
        .mark_line(color=style.GREY, strokeWidth=1, clip=True)
        .encode(y=y),
        is_way.mark_line(color=style.BLUE, strokeWidth=2, clip=True).encode(
            y=y,
            tooltip=[
                "way:N",
                *style.numbers("time", digits=",.0f"),
                *style.numbers("middle", "low", "high", digits=".3~g"),
            ],
        ),
    ]
    if record.goal is not None:
        goals = alt.Chart().transform_filter("datum.kind == 'goal'")
        layers.append(goals.mark_rule(color=style.VERMILION, strokeDash=[6, 3]).encode(y=y))
    if record.limit is not None:
        limits = alt.Chart().transform_filter("datum.kind == 'deadline'")
        layers.append(limits.mark_rule(color="black", strokeDash=[2, 3]).encode(x=x))
    picture = alt.layer(*layers, data=alt.Data(values=rows)).properties(width=panel, height=130 if panel < 200 else 160)
    return style.finished(style.panels(picture, "way", record.ways, columns=columns), *_precision_words(record))


def _highest(record: PrecisionRecord) -> float:
    """Return the highest half-width to draw: the first ones are as wide as the range of rewards."""
    known = record.median[np.isfinite(record.median)]
    if not known.size:
        return 1.0
    ends = [row[np.isfinite(row)][-1] for row in record.median if np.isfinite(row).any()]
    return float(min(max(3.5 * (record.goal or min(ends)), 1.3 * max(ends)), known.max()))


def _precision_rows(record: PrecisionRecord) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for k, way in enumerate(record.ways):
        shared = {"way": way}
        kinds = [("way", k)] + ([("equal shares", record.equal_shares)] if k != record.equal_shares else [])
        for kind, place in kinds:
            for j in range(record.time.shape[1]):
                values = [style.finite(ends[place, j]) for ends in (record.median, record.low, record.high)]
                if values[0] is None:
                    continue
                row = shared | {"kind": kind, "time": float(record.time[place, j]), "middle": values[0]}
                if kind == "way":
                    row |= {"low": values[1], "high": values[2] if values[2] is not None else 1e3 * values[0]}
                rows.append(row)
        if record.goal is not None:
            rows.append(shared | {"kind": "goal", "middle": record.goal})
        if record.limit is not None:
            rows.append(shared | {"kind": "deadline", "time": record.limit})
    return rows


def _precision_words(record: PrecisionRecord) -> tuple[str, list[str]]:
    what = "difference" if record.of_differences else "interval"
    notes = [f"blue: the widest {what}, median and 8 in 10 experiments; grey: equal shares"]
    marks = []
    if record.goal is not None:
        marks.append(f"dashed: the goal, \u00b1{width(record.goal).text}")
    if record.limit is not None:
        marks.append(f"dotted: the deadline, {record.limit_text}")
    if marks:
        notes.append("; ".join(marks))
    if record.chosen is not None:
        notes.append(f"recommended: {record.chosen}")
    return "How precise each way is, and when", notes


# Rules to declare


@dataclass(frozen=True)
class ChanceRecord:
    """The chance to reach each half-width by the deadline, for every way; `chance` is (n_ways, n_half_widths)."""

    ways: tuple[str, ...]
    half_width: FloatArray
    chance: FloatArray
    days: FloatArray
    """Median days until then."""
    sureness: float
    goal: float | None
    of_differences: bool
    limit_text: str
    has_calendar: bool


def chance_record(forecast: Forecast) -> ChanceRecord:
    """Return how likely each half-width is by the deadline.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(arms={"plain": "10%", "prize": "20%"}, people=3000, goals=0.06, ways={"weights": [0.5]})
    >>> record = chance_record(plan.simulate(replications=20))
    >>> bool((np.diff(record.half_width) > 0).all()), bool((np.diff(record.chance) >= 0).all()), record.sureness
    (True, True, 0.8)
    """
    if not forecast.stopping:
        raise InvalidInput("there is no chart to draw: the chance of a precision needs simulated experiments")
    question = forecast.question
    return ChanceRecord(
        ways=tuple(choice.way for choice in forecast.stopping),
        half_width=forecast.stopping[0].half_widths[::-1],
        chance=np.stack([choice.goal_chances[::-1] for choice in forecast.stopping]),
        days=np.stack([choice.goal_days[::-1] for choice in forecast.stopping]),
        sureness=question.sureness,
        goal=question.precision,
        of_differences=question.precision_of == "differences",
        limit_text=deadline_text(question),
        has_calendar=question.has_calendar,
    )


def chance_chart(forecast: Forecast | ChanceRecord, *, width: int = WIDTH) -> AnyChart:
    """Draw the chance to reach a half-width by the deadline, one line per way, to read a stopping rule off."""
    record = _chance(forecast)
    return style.finished(_chance_panel(record, width), *_chance_words(record))


def _chance(forecast: Forecast | ChanceRecord) -> ChanceRecord:
    return forecast if isinstance(forecast, ChanceRecord) else chance_record(forecast)


def _chance_words(record: ChanceRecord) -> tuple[str, list[str]]:
    by = f"by {record.limit_text}" if record.limit_text else "in the end"
    wanted, of = out_of(record.sureness)
    notes = [f"where a line crosses {wanted.text} of {of.text}: the finest precision to declare for that way"]
    return f"How likely each precision is {by}", notes


def _chance_panel(record: ChanceRecord, picture: int) -> Any:
    alt = style.altair()
    height = 300 if picture >= NARROW else 260
    in_time = " in time" if record.limit_text else ""
    low, high = _shown_widths(record)
    ticks = [one for one in style.log_ticks(low, high) if low <= one <= high]
    of = "every difference" if record.of_differences else "every arm"
    x = alt.X(
        "half_width:Q",
        title=f"precision: {of} known to \u00b1",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(format="~g", values=ticks) if len(ticks) > 2 else alt.Axis(format="~g", tickCount=5),
    )
    y = alt.Y(
        "chance:Q",
        title=f"of 100 experiments get there{in_time}",
        scale=alt.Scale(domain=[0, 100], nice=False),
        axis=alt.Axis(values=[0, 20, 40, 60, 80, 100]),
    )
    rows = [
        {
            "way": way,
            "half_width": float(record.half_width[j]),
            "chance": 100.0 * float(record.chance[k, j]),
            "days": style.finite(record.days[k, j]),
        }
        for k, way in enumerate(record.ways)
        for j in range(record.half_width.size)
    ]
    tooltip = [alt.Tooltip("way:N"), *style.numbers("half_width", "chance", digits=".3~g")]
    tooltip += style.numbers("days", digits=".0f") if record.has_calendar else []
    lines = (
        style.chart_of(rows)
        .mark_line(strokeWidth=2, clip=True)
        .encode(x=x, y=y, **style.told_apart("way", record.ways, picture + 40), tooltip=tooltip)
    )
    rule = {"color": style.GREY, "strokeWidth": 1.2}
    layers = [
        style.chart_of([{"chance": 100.0 * record.sureness}]).mark_rule(**rule, strokeDash=[5, 4]).encode(y="chance:Q")
    ]
    if record.goal is not None and low <= record.goal <= high:
        base = style.chart_of([{"half_width": record.goal, "text": f"goal \u00b1{width(record.goal).text}"}]).encode(
            x="half_width:Q"
        )
        layers += [
            base.mark_rule(**rule, strokeDash=[2, 3]),
            base.mark_text(baseline="bottom", color=style.GREY).encode(y=alt.value(-3), text="text:N"),
        ]
    return alt.layer(*layers, lines).properties(width=picture, height=height)


def _shown_widths(record: ChanceRecord) -> tuple[float, float]:
    """Return the half-widths to draw: from where nobody gets to where everybody does, or not far above the goal."""
    widths, chance = record.half_width, record.chance
    somebody, everybody = np.flatnonzero(chance.max(axis=0) > 0), np.flatnonzero(chance.min(axis=0) >= 0.995)
    first = max(int(somebody[0]) - 1, 0) if somebody.size else 0
    last = int(everybody[0]) if everybody.size else widths.size - 1
    low, high = float(widths[first]), float(widths[min(last + 1, widths.size - 1)])
    if record.goal is not None:
        low, high = min(low, 0.9 * record.goal), max(high, 1.2 * record.goal)
    return low, max(min(high, 6.0 * low), 1.5 * low)


# Which guess matters


@dataclass(frozen=True)
class EffectsRecord:
    """What changes under one way if a guess is off; the most important first, arrays (n_guesses,)."""

    way: str
    figure: str
    """"days" or "gain_per_100"."""
    guesses: tuple[str, ...]
    """In words: what would be the case."""
    change: FloatArray
    error: FloatArray
    """Standard errors."""


def effects_record(forecast: Forecast, way: str | None = None) -> EffectsRecord:
    """Return which guesses matter under a way, by default the recommended one: for the days, or else for the gain."""
    name = shown_way(forecast, way).name
    own = [effect for effect in forecast.effects if effect.way == name]
    figure = "days" if any(effect.figure == "days" for effect in own) else "gain_per_100"
    shown = [effect for effect in own if effect.figure == figure][:_MOST_EFFECTS]
    return EffectsRecord(
        way=name,
        figure=figure,
        guesses=tuple(f"if {effect_in_words(effect)}" for effect in shown),
        change=np.array([effect.change for effect in shown], np.float64),
        error=np.array([effect.error for effect in shown], np.float64),
    )


def shown_way(forecast: Forecast, name: str | None = None) -> WayForecast:
    """Return the way of this name; without one the recommended way, or equal shares if none is."""
    if name is not None:
        if name not in forecast.ways:
            raise InvalidInput.of("way", f"must be one of {', '.join(forecast.ways)}", name)
        return forecast.ways[name]
    return chosen_way(forecast) or forecast.equal_shares


def effects_chart(forecast: Forecast | EffectsRecord, *, way: str | None = None, width: int = WIDTH) -> AnyChart:
    """Draw by how much days or the gain change if a guess is off, as bars with two standard errors each way."""
    record = forecast if isinstance(forecast, EffectsRecord) else effects_record(forecast, way)
    if not record.guesses:
        raise InvalidInput("there is no chart to draw: no guess stands out")
    alt = style.altair()
    unit = "days" if record.figure == "days" else "per 100 people"
    low, high = record.change - 2 * record.error, record.change + 2 * record.error
    left, right = min(float(low.min()), 0.0), max(float(high.max()), 0.0)
    room = 0.04 * (right - left)
    words = {True: "longer", False: "shorter"} if record.figure == "days" else {True: "more", False: "less"}
    texts = [
        wrapped(f"{guess}: {change:+.1f} {unit}".replace("-", "\u2212"), width + 20)
        for guess, change in zip(record.guesses, record.change, strict=True)
    ]
    n_lines = max(len(text) if isinstance(text, list) else 1 for text in texts)
    rows = [
        {
            "guess": guess,
            "place": k,
            "change": float(record.change[k]),
            "low": float(low[k]),
            "high": float(high[k]),
            "direction": words[bool(record.change[k] > 0)],
            "text": texts[k],
        }
        for k, guess in enumerate(record.guesses)
    ]
    step, below = 32 + 14 * n_lines, 7 * n_lines + 1
    x = alt.X(
        "change:Q",
        title=f"change of the {'days until the goal' if record.figure == 'days' else 'gain per 100 people'}",
        scale=alt.Scale(domain=[left - room, right + room], nice=False),
        axis=alt.Axis(labelExpr=_SIGNED, tickCount=5, grid=False),
    )
    y = alt.Y("place:O", axis=None)
    bad = "longer" if record.figure == "days" else "less"
    colour = alt.condition(f"datum.direction == '{bad}'", alt.value(style.VERMILION), alt.value(style.BLUE))
    tooltip = [alt.Tooltip("guess:N"), *style.numbers("change", "low", "high", digits="+.2~f")]
    base = style.chart_of(rows).encode(y=y, tooltip=tooltip)
    text = {"align": "left", "baseline": "top", "dy": 3 - step / 2, "lineHeight": 14}
    layers = [
        style.chart_of([{"zero": 0.0}]).mark_rule(color=style.GREY).encode(x="zero:Q"),
        base.mark_bar(height=12, yOffset=below).encode(x=x, color=colour),
        base.mark_rule(color="black", strokeWidth=1.5, yOffset=below).encode(x="low:Q", x2="high:Q"),
        base.mark_text(**text, color="white", stroke="white", strokeWidth=3).encode(x=alt.value(0), text="text:N"),
        base.mark_text(**text, color="black").encode(x=alt.value(0), text="text:N"),
    ]
    picture = alt.layer(*layers).properties(width=width, height=alt.Step(step))
    title = f"What to be surer of: {record.way}"
    return style.finished(
        picture,
        title,
        "bar: how much longer it takes; thin line: two standard errors"
        if record.figure == "days"
        else "thin line: two standard errors",
    )


# The whole


def forecast_chart(forecast: Forecast) -> AnyChart:
    """Draw the price of the dial and, from simulated experiments, the chance of each precision below it."""
    price = price_record(forecast)
    if not forecast.stopping:
        return price_chart(price)
    chance = chance_record(forecast)
    parts = (
        style.titled(_price_panel(price, WIDTH), *_price_words(price)),
        style.titled(_chance_panel(chance, WIDTH), *_chance_words(chance)),
    )
    joined = style.altair().vconcat(*parts, spacing=40).resolve_scale(color="independent", strokeDash="independent")
    whole: AnyChart = style.styled(joined)
    return whole
