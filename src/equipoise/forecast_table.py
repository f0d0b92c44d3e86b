"""Format the forecast of a plan for a terminal: what to do in sentences, then the price list, then what to declare."""

from __future__ import annotations

import math
import shutil
import textwrap
from typing import TYPE_CHECKING

from equipoise.errors import visible
from equipoise.status_table import Line
from equipoise.text_layout import Column, left_out, table_lines

if TYPE_CHECKING:
    from equipoise.planner.figures import Range
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.way_forecast import WayForecast

_SELDOM_WANTED = 7
"""A column that is as spare as this, or more, may be left out without a word."""


def forecast_lines(forecast: Forecast, *, width: int | None = None) -> list[Line]:
    """Format a forecast as lines no wider than `width`."""
    room = shutil.get_terminal_size().columns if width is None else width
    question = forecast.question
    title = visible(question.title or "Plan")
    lines = [Line(f"{title}: {_goal(forecast)}", "bold"), Line("")]
    said = [visible(sentence.text) for sentence in forecast.recommendation()]
    lines += [Line(part) for part in textwrap.wrap(" ".join(said), max(room, 20))]
    columns = _price_list(forecast)
    lines += [Line(""), *(Line(text) for text in table_lines(columns, room)), Line("")]
    # "Intervals hold" is of interest only where they do not, which a sentence says then.
    gone = left_out([one for one in columns if one.spare < _SELDOM_WANTED], room)
    notes = [f"{gone} --csv has all." if gone else "", _source(forecast)]
    return lines + [Line(part, "dim") for note in notes for part in textwrap.wrap(note, max(room, 20))]


def _goal(forecast: Forecast) -> str:
    question = forecast.question
    goals = []
    if question.precision is not None:
        what = "every arm" if question.precision_of == "arms" else "every difference"
        goals.append(f"{what} known to +/- {question.precision:g}")
    if question.margin is not None:
        goals.append("the best arm known" + (f" to within {question.margin:g}" if question.margin else ""))
    n_arms = f"{len(question.arms)} arms"
    return f"{n_arms}; {' and '.join(goals)}" if goals else f"{n_arms}, without a goal"


def _price_list(forecast: Forecast) -> list[Column]:
    """Return the columns: what each way takes, and what people get for it."""
    question, ways = forecast.question, list(forecast.ways.values())
    columns = [Column("way", [visible(way.name) for way in ways], names=True)]
    if question.has_goal:
        if question.has_calendar:
            columns.append(Column("days", [ranged(way.days, 0, sign=False) for way in ways]))
        people = [ranged(way.people, 0, sign=False) for way in ways]
        # Without days, people are the price.
        columns.append(Column("people", people, spare=4 if question.has_calendar else 0))
        columns.append(Column("in time", [_percent(way.chance.value) for way in ways]))
    gains = [_gain(way, is_rate=question.is_yes_no) for way in ways]
    columns.append(Column("gain per 100", gains))
    columns.append(Column("best arm", [_percent(way.best_share.median) for way in ways], spare=2))
    if question.control is not None:
        worse = [way.worse_than_control for way in ways]
        columns.append(
            Column("worse than control", ["-" if one is None else ranged(one, 0, sign=False) for one in worse], spare=6)
        )
    columns.append(Column("widest +/-", [_width(way.widest.median) for way in ways], spare=1))
    columns.append(Column("names best", [_percent(way.names_best.value) for way in ways], spare=5))
    columns.append(Column("intervals hold", [_percent(way.coverage.value) for way in ways], spare=7))
    costs = [way.cost for way in ways]
    if any(cost is not None for cost in costs):
        columns.append(
            Column("cost", ["-" if cost is None else ranged(cost, 0, sign=False) for cost in costs], spare=3)
        )
    return columns


def ranged(found: Range, decimals: int, *, sign: bool) -> str:
    """Format a median with its 8-in-10 range; a goal that is not met in so many experiments is never reached.

    Examples
    --------
    >>> from equipoise.planner.figures import Range
    >>> ranged(Range(66.7, 64.2, 69.8, 0.4, 0.6, 0.5), 0, sign=False)
    '67 (64 to 70)'
    >>> ranged(Range(102.0, 96.0, float("inf"), 0, 0, 0), 0, sign=False)
    '102 (96 to never)'
    """
    if math.isnan(found.median):
        return "-"
    texts = [_number(value, decimals, sign) for value in (found.median, found.low, found.high)]
    if texts[0] == texts[1] == texts[2] or math.isnan(found.low):
        return texts[0]
    return f"{texts[0]} ({texts[1]} to {texts[2]})"


def _gain(way: WayForecast, *, is_rate: bool) -> str:
    found = way.gain_per_100
    largest = max(abs(value) for value in (found.median, found.low, found.high) if math.isfinite(value) or value == 0)
    decimals = 1 if is_rate or largest >= 1 else min(6, 1 - math.floor(math.log10(largest))) if largest > 0 else 0
    return ranged(found, decimals, sign=True)


def _number(value: float, decimals: int, sign: bool) -> str:
    if not math.isfinite(value):
        return "never"
    rounded = round(value, decimals) + 0.0
    return f"{rounded:{'+' if sign and rounded else ''},.{decimals}f}"


def _percent(share: float) -> str:
    return "-" if not math.isfinite(share) else f"{share:.0%}"


def _width(width: float) -> str:
    return "-" if not math.isfinite(width) else f"{width:.3g}"


def _source(forecast: Forecast) -> str:
    if forecast.by_formula:
        return "By formula, before the cost of learning; without --formula it is simulated."
    ended = " Interrupted: more simulations would narrow the errors." if forecast.interrupted else ""
    return f"Ranges hold 8 in 10 simulated experiments; gains are above equal shares.{ended}"
