"""Draw what is known of arms now: every mean with its interval, and every difference, as plain Vega-Lite dicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from equipoise.analysis.result_tables import MOST_ARMS as MOST_ROWS
from equipoise.analysis.result_tables import shown_pairs
from equipoise.charts.themes import STYLES
from equipoise.charts.vega_lite import NARROW, WIDTH, Chart, Column, chart, decimals_of, interval_text, number_text
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.experiment.records import Comparison, Status

_STEP = 26
_STRONG, _WORSE, _HOLLOW = "strong", "worse", "hollow"


def live_arms_chart(status: Status, *, control: str | None = None, width: int = WIDTH) -> Chart:
    """Draw every arm's mean with its interval, the best on top; arms that are ruled out as the best are hollow.

    Parameters
    ----------
    status : Status
        Of at least one reward.
    control : str, optional
        The arm to mark as the control.
    width : int
        Pixels of the chart.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise import charts
    >>> experiment = eq.Experiment.create(
    ...     "memory:", "mail", arms=["plain", "prize"], policy=eq.Uniform(), seed=1, reward_range=(0, 1)
    ... )
    >>> for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(400)])):
    ...     told = experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
    >>> drawn = charts.live_arms_chart(experiment.status())
    >>> charts.title_of(drawn)
    "'prize' is the best arm: better than 'plain', by 0.03 to 0.36."
    >>> [row["arm"] for row in charts.rows_of(drawn)]
    ['prize', 'plain']
    """
    if all(arm.mean is None for arm in status.arms):
        raise InvalidInput("there is no chart to draw: no arm has a reward yet")
    up = 1.0 if status.direction == "maximise" else -1.0
    ranked = sorted(status.arms, key=lambda arm: -math.inf if arm.mean is None else up * arm.mean, reverse=True)
    decimals = decimals_of([(arm.low, arm.high) for arm in status.arms])
    best = "is best" if len(status.may_be_best) == 1 else "may be best"
    rows = [
        {
            "label": f"{arm.arm} (control)" if arm.arm == control else arm.arm,
            "arm": arm.arm,
            "middle": arm.mean,
            "low": arm.low,
            "high": arm.high,
            "rewards": arm.rewarded,
            "kind": "retired" if arm.state == "retired" else best if arm.arm in status.may_be_best else "ruled out",
            "look": _STRONG if arm.arm in status.may_be_best else _HOLLOW,
        }
        for arm in ranked[:MOST_ROWS]
    ]
    confidence = f"{100 * status.confidence:g}%"
    notes = [f"Lines: {confidence} intervals, for all arms together and at all times."]
    if any(row["look"] == _HOLLOW for row in rows):
        notes.append("Hollow: ruled out as the best, or retired.")
    if len(ranked) > MOST_ROWS:
        notes.append(f"The {MOST_ROWS} arms with the best means of {len(ranked):,}.")
    if status.provisional:
        notes.append("Provisional: rewards are missing or still to come.")
    columns = [
        Column("arm", ("arm",), "text"),
        Column("mean", ("middle",), "number", decimals),
        Column("interval", ("low", "high"), "interval", decimals),
        Column("rewards", ("rewards",), "count"),
        Column("standing", ("kind",), "text"),
    ]
    title = status.sentence if len(status.arms) > 1 and status.sentence else _alone(rows[0], decimals)
    return _forest(title, notes, rows, columns, f"Means with {confidence} intervals", "mean reward", width, decimals)


def live_differences_chart(found: Comparison, *, width: int = WIDTH) -> Chart:
    """Draw the differences that a comparison found, with their intervals and a line at zero; undecided ones are hollow.

    Of many pairs, those of the arm with the best mean.

    Examples
    --------
    >>> from equipoise import charts
    >>> from equipoise.analysis import Evidence, compare
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> drawn = charts.live_differences_chart(compare(evidence, ["plain", "prize", "personal"]))
    >>> charts.table_of(drawn).rows[1][1:]
    ('+0.35', '0.25 to 0.45', 'better')
    """
    pairs, more = shown_pairs(found, found.differences)
    pairs = [pair for pair in pairs if pair.difference is not None]
    if not pairs:
        raise InvalidInput("there is no chart to draw: no two arms have rewards yet")
    decimals = decimals_of([(pair.low, pair.high) for pair in pairs])
    looks = {"better": _STRONG, "worse": _WORSE}
    others = {pair.other for pair in pairs}
    rows = [
        {
            "label": pair.arm if len(others) == 1 and len(pairs) > 1 else f"{pair.arm} \u2212 {pair.other}",
            "arm": f"{pair.arm} \u2212 {pair.other}",
            "middle": pair.difference,
            "low": pair.low,
            "high": pair.high,
            "kind": pair.verdict,
            "look": looks.get(pair.verdict, _HOLLOW),
        }
        for pair in pairs
    ]
    confidence = f"{100 * found.confidence:g}%"
    notes = [f"Lines: {confidence} intervals, for all differences together and at all times."]
    if any(row["look"] == _HOLLOW for row in rows):
        notes.append("Hollow: undecided, as the line crosses zero or has no end.")
    notes += more
    if found.provisional:
        notes.append("Provisional: rewards are missing or still to come.")
    columns = [
        Column("difference", ("arm",), "text"),
        Column("estimate", ("middle",), "signed", decimals),
        Column("interval", ("low", "high"), "interval", decimals),
        Column("verdict", ("kind",), "text"),
    ]
    axis = f"mean reward minus that of {others.pop()}" if len(others) == 1 and len(pairs) > 1 else "difference of means"
    caption = f"Differences with {confidence} intervals"
    title = found.sentences[0] if found.sentences else "Differences between arms"
    return _forest(title, notes, rows, columns, caption, axis, width, decimals, zero=True)


def _alone(row: dict[str, Any], decimals: int | None) -> str:
    ends = interval_text(row["low"], row["high"], decimals)
    between = "" if ends == "-" else f", {ends}"
    return f"The mean of {row['arm']!r} is {number_text(row['middle'], decimals)}{between}"


def _forest(
    title: str,
    notes: Sequence[str],
    rows: list[dict[str, Any]],
    columns: Sequence[Column],
    caption: str,
    axis: str,
    width: int,
    decimals: int | None,
    *,
    zero: bool = False,
) -> Chart:
    """Return points with lines for their intervals, a row each; an interval without an end runs to the edge."""
    ends = [row[key] for row in rows for key in ("middle", "low", "high") if row[key] is not None]
    ends += [0.0] if zero else []
    edge = 0.03 * (max(ends) - min(ends) or abs(max(ends)) or 1.0)
    left, right = min(ends) - edge, max(ends) + edge
    narrow = width < NARROW
    for row in rows:
        has_end = row["low"] is not None or row["high"] is not None
        row["from"] = row["low"] if row["low"] is not None else left if has_end else row["middle"]
        row["to"] = row["high"] if row["high"] is not None else right if has_end else row["middle"]
        row["numbers"] = _numbers(row, decimals, sign=zero, short=narrow)
    names = min(max(round(6.6 * max(len(row["label"]) for row in rows)) + 14, 50), round(0.34 * width))
    texts = round(6.6 * max(len(row["numbers"]) for row in rows)) + 14
    plot = max(width - names - texts - 24, 80)
    y = {
        "field": "label",
        "type": "nominal",
        "sort": [row["label"] for row in rows],
        "title": None,
        "axis": {"labelLimit": names, "ticks": False, "domain": False, "labelPadding": 6},
    }
    x = {
        "field": "middle",
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [left, right], "nice": False},
        "axis": {"tickCount": 3 if narrow else 5, "grid": False},
    }
    tooltip = [{"field": "arm", "title": columns[0].head}, {"field": "numbers"}, {"field": "kind", "title": " "}]
    layers: list[dict[str, Any]] = []
    if zero:
        line = {"mark": {"type": "rule", **STYLES["zero"]}, "encoding": {"x": {"datum": 0.0, "type": "quantitative"}}}
        layers.append(line)
    for look in (_HOLLOW, _WORSE, _STRONG):
        if any(row["look"] == look for row in rows):
            only = [{"filter": {"field": "look", "equal": look}}]
            ends_of = {"x": {**x, "field": "from"}, "x2": {"field": "to"}, "y": y}
            layers += [
                {
                    "transform": only,
                    "mark": {"type": "rule", **STYLES[f"{look} interval"], "clip": True},
                    "encoding": ends_of,
                },
                {
                    "transform": only,
                    "mark": {"type": "point", **STYLES[f"{look} point"]},
                    "encoding": {"x": x, "y": y, "tooltip": tooltip},
                },
            ]
    text = {"type": "text", "align": "left"}
    layers.append(
        {"mark": text, "encoding": {"x": {"value": plot + 10}, "y": y, "text": {"field": "numbers", "type": "nominal"}}}
    )
    return chart(title, notes, rows, layers, columns, caption=caption, width=width, plot=plot, height={"step": _STEP})


def _numbers(row: dict[str, Any], decimals: int | None, *, sign: bool, short: bool) -> str:
    """Return a mean or a difference with its interval, as text."""
    if row["middle"] is None:
        return "no rewards"
    middle, ends = number_text(row["middle"], decimals, sign=sign), interval_text(row["low"], row["high"], decimals)
    return middle if ends == "-" or short else f"{middle} ({ends})"
