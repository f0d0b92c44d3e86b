"""Draw arms and their differences with intervals: what is known of each, and which may still be best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.analysis.result_tables import interval, number, shown_pairs
from equipoise.analysis.sentences import decimals_for
from equipoise.charts import style
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.analysis.results import Comparison
    from equipoise.charts.style import AnyChart

MOST_SHOWN = 60
"""Most arms shown, those with the best means; and most differences."""
_FEW_ROWS = 15
_WIDTH = 420
_STANDINGS = ("is best", "may be best", "ruled out")
_VERDICTS = ("better", "worse", "undecided")
_PALE = "#8C8C8C"


@dataclass(frozen=True)
class ComparisonRecord:
    """Arms and differences with their intervals; the best mean comes first, and an end that is open is NaN.

    Arrays are (n_arms,) of arms and (n_pairs,) of differences: the mean of `pairs[i][0]` minus that of `pairs[i][1]`.
    """

    name: str | None
    confidence: float
    is_provisional: bool
    control: str | None
    arms: tuple[str, ...]
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    standing: tuple[str, ...]
    """Of each arm: "is best", "may be best" or "ruled out"."""
    pairs: tuple[tuple[str, str], ...]
    difference: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray
    verdict: tuple[str, ...]
    """Of each difference: whether its first arm is "better" or "worse" than its second, or "undecided"."""


def comparison_record(found: Comparison) -> ComparisonRecord:
    """Return what the chart of a comparison shows.

    Differences from a control are drawn as they are; of others, the better mean minus the worse. Of many pairs, only
    those of the arm with the best mean.

    Examples
    --------
    >>> from equipoise.analysis import Evidence, compare
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> record = comparison_record(compare(evidence, ["plain", "prize", "personal"]))
    >>> record.arms, record.standing
    (('personal', 'prize', 'plain'), ('may be best', 'may be best', 'ruled out'))
    >>> record.pairs[1], float(record.difference[1].round(2)), record.verdict[1]
    (('personal', 'plain'), 0.35, 'better')
    """
    up = 1.0 if found.direction == "maximise" else -1.0
    ranked = sorted(found.arms, key=lambda arm: -math.inf if arm.mean is None else up * arm.mean, reverse=True)
    known = [pair for pair in shown_pairs(found, found.differences)[0] if pair.difference is not None]
    best = "is best" if found.best is not None else "may be best"
    return ComparisonRecord(
        name=found.name,
        confidence=found.confidence,
        is_provisional=bool(found.provisional),
        control=found.control,
        arms=tuple(arm.arm for arm in ranked),
        mean=_numbers([arm.mean for arm in ranked]),
        low=_numbers([arm.low for arm in ranked]),
        high=_numbers([arm.high for arm in ranked]),
        standing=tuple("retired" if arm.retired else best if arm.may_be_best else "ruled out" for arm in ranked),
        pairs=tuple((pair.arm, pair.other) for pair in known),
        difference=_numbers([pair.difference for pair in known]),
        difference_low=_numbers([pair.low for pair in known]),
        difference_high=_numbers([pair.high for pair in known]),
        verdict=tuple(pair.verdict for pair in known),
    )


def comparison_chart(found: Comparison | ComparisonRecord) -> AnyChart:
    """Draw the arms with their intervals, best mean on top, and below them the differences with a line at zero.

    Arms that are ruled out as the best are hollow and lighter, and the control is named. A difference that is undecided
    is hollow and lighter too. An interval without an end runs to the edge.
    """
    record = found if isinstance(found, ComparisonRecord) else comparison_record(found)
    if not np.isfinite(record.mean).any():
        raise InvalidInput("there is no chart to draw: no arm has a reward yet")
    parts = [_arms(record), _differences(record)] if record.pairs else [_arms(record)]
    notes = [f"lines: {100 * record.confidence:g}% intervals, for all of them together and at all times"]
    if record.is_provisional:
        notes.append("provisional: rewards are missing or still to come")
    title = "What is known of the arms" if len(record.arms) > 1 else "What is known of the arm"
    if record.name:
        title = f"{record.name}: {title[0].lower()}{title[1:]}"
    chart = style.altair().vconcat(*parts, spacing=28).resolve_scale(fill="independent", stroke="independent")
    return style.finished(chart, title, "; ".join(notes))


def _arms(record: ComparisonRecord) -> Any:
    shown = range(min(len(record.arms), MOST_SHOWN))
    rows = [
        {
            "label": f"{record.arms[i]} (control)" if record.arms[i] == record.control else record.arms[i],
            "arm": record.arms[i],
            "kind": record.standing[i],
            "middle": style.finite(record.mean[i]),
            "low": style.finite(record.low[i]),
            "high": style.finite(record.high[i]),
        }
        for i in shown
    ]
    title = "mean reward"
    if len(record.arms) > MOST_SHOWN:
        title += f" of the {MOST_SHOWN} best of {len(record.arms):,} arms"
    kinds = [kind for kind in _STANDINGS if kind in record.standing] if len(record.arms) > 1 else []
    return _panel(rows, "arm", title, kinds, pale=("ruled out",))


def _differences(record: ComparisonRecord) -> Any:
    others = {other for _, other in record.pairs}
    firsts = {arm for arm, _ in record.pairs}
    if len(others) == 1:
        names, title = [arm for arm, _ in record.pairs], f"mean reward minus that of {others.pop()}"
    elif len(firsts) == 1:
        names, title = [other for _, other in record.pairs], f"mean reward of {firsts.pop()} minus that of the arm"
    else:
        names, title = [f"{arm} \u2212 {other}" for arm, other in record.pairs], "difference of mean rewards"
    rows = [
        {
            "label": names[i],
            "arm": " \u2212 ".join(record.pairs[i]),
            "kind": record.verdict[i],
            "middle": style.finite(record.difference[i]),
            "low": style.finite(record.difference_low[i]),
            "high": style.finite(record.difference_high[i]),
        }
        for i in range(min(len(record.pairs), MOST_SHOWN))
    ]
    kinds = [kind for kind in _VERDICTS if kind in record.verdict]
    return _panel(rows, "difference", title, kinds, pale=("undecided",), zero=True)


def _panel(
    rows: list[dict[str, Any]], what: str, title: str, kinds: list[str], *, pale: tuple[str, ...], zero: bool = False
) -> Any:
    """Return points with lines for their intervals, and the numbers beside them."""
    alt = style.altair()
    ends = [row[key] for row in rows for key in ("middle", "low", "high") if row[key] is not None]
    ends += [0.0] if zero else []
    edge = 0.03 * (max(ends) - min(ends) or abs(max(ends)) or 1.0)
    left, right = min(ends) - edge, max(ends) + edge
    widths = [row["high"] - row["low"] for row in rows if None not in (row["low"], row["high"])]
    decimals = decimals_for(min(widths)) if widths and min(widths) > 0 else None
    for row in rows:
        row["numbers"] = _numbers_of(row, decimals, sign=zero)
        known = row["low"] is not None or row["high"] is not None
        row["from"] = row["low"] if row["low"] is not None else left if known else row["middle"]
        row["to"] = row["high"] if row["high"] is not None else right if known else row["middle"]
    axis = alt.Axis(labelLimit=260, ticks=False, labelPadding=6, domain=False, grid=len(rows) > _FEW_ROWS)
    y = alt.Y("label:N", sort=[row["label"] for row in rows], title=None, axis=axis)
    x = alt.X("middle:Q", title=title, scale=alt.Scale(domain=[left, right], nice=False), axis=alt.Axis(tickCount=5))
    strong = {kind: style.VERMILION if kind == "worse" else style.BLUE for kind in kinds}
    ink = [_PALE if kind in pale else strong[kind] for kind in kinds] or [style.BLUE]
    inside = ["white" if kind in pale else strong[kind] for kind in kinds] or [style.BLUE]
    domain = kinds or [row["kind"] for row in rows[:1]]
    legend = alt.Legend(title=None, orient="top", symbolSize=90, symbolStrokeWidth=2) if len(kinds) > 1 else None
    inks = alt.Scale(domain=domain, range=ink)
    stroke = alt.Stroke("kind:N", scale=inks, legend=legend)
    fill = alt.Fill("kind:N", scale=alt.Scale(domain=domain, range=inside), legend=legend)
    tooltip = [
        alt.Tooltip("arm:N", title=what),
        alt.Tooltip("kind:N", title=" "),
        *style.numbers("middle", "low", "high"),
    ]
    base = style.chart_of(rows).encode(y=y, tooltip=tooltip)
    lines = base.mark_rule(strokeWidth=2.5).encode(
        x=alt.X("from:Q", title=title), x2="to:Q", stroke=alt.Stroke("kind:N", scale=inks, legend=legend)
    )
    points = base.mark_point(size=70, opacity=1, strokeWidth=2).encode(x=x, stroke=stroke, fill=fill)
    texts = base.mark_text(align="left", color="black", fontSize=12 if len(rows) <= _FEW_ROWS else 11).encode(
        x=alt.value(_WIDTH + 12), text="numbers:N"
    )
    layers = [lines, points, texts]
    if zero:
        layers.insert(0, style.chart_of([{"zero": 0.0}]).mark_rule(color="black", strokeDash=[4, 3]).encode(x="zero:Q"))
    height = alt.Step(24 if len(rows) <= _FEW_ROWS else 17)
    return alt.layer(*layers).properties(width=_WIDTH, height=height)


def _numbers_of(row: dict[str, Any], decimals: int | None, *, sign: bool) -> str:
    """Return a mean or a difference with its interval, as text."""
    if row["middle"] is None:
        return "no rewards"
    middle = number(row["middle"], decimals, sign=sign)
    ends = interval(row["low"], row["high"], decimals, sign=sign)
    return middle if ends == "-" else f"{middle} ({ends})"


def _numbers(values: list[float | None]) -> FloatArray:
    return np.array([math.nan if value is None else value for value in values], np.float64)
