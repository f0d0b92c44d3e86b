"""Curves over pulls in panels side by side, with one legend: the look of the paper's figures on regret and tracking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray, IntArray
from equipoise.charts import style
from equipoise.paper.findings import Figure


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve; `spread`, if given, is the half-width of a band around it."""

    name: str
    step: IntArray
    value: FloatArray
    spread: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves that share axes.

    Attributes
    ----------
    title : str
    y_title : str
    lines : list of Line
        Those of the same name look the same in all panels.
    log_scale : bool
        Whether the y axis is logarithmic; that of pulls always is.
    rules : dict of float to str
        Numbers of pulls to mark with a vertical line, and what to write above it.
    """

    title: str
    y_title: str
    lines: list[Line]
    log_scale: bool = True
    rules: dict[float, str] = field(default_factory=dict)


def curve_figure(panels: Sequence[Panel], *, key: str, caption: str, title: str, subtitle: str | list[str]) -> Figure:
    """Draw panels side by side; lines differ in colour and dashes, in the order in which they first appear."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    width = {1: 520, 2: 330}.get(len(panels), 250)
    drawn = [_panel(panel, names, width, total=width * len(panels)) for panel in panels]
    chart = style.finished(style.altair().hconcat(*drawn, spacing=32), title, subtitle)
    return Figure(key=key, caption=caption, chart=chart.to_dict())


def _panel(panel: Panel, names: list[str], width: int, total: int) -> Any:
    alt = style.altair()
    lowest = 0.0 if panel.log_scale else -np.inf
    values = np.concatenate([line.value[np.isfinite(line.value) & (line.value > lowest)] for line in panel.lines])
    bottom, top = float(values.min()), float(values.max())
    rows = [row for line in panel.lines for row in _rows(line, log_scale=panel.log_scale)]
    # No label sits at the upper edge, where it would push the panel's title up.
    scale = (
        alt.Scale(type="log", nice=False) if panel.log_scale else alt.Scale(zero=True, nice=False, domainMax=1.05 * top)
    )
    axis = alt.Axis(values=style.log_ticks(bottom, top), format="~g") if panel.log_scale else alt.Axis(tickCount=6)
    y = alt.Y("value:Q", title=panel.y_title, scale=scale, axis=axis)
    base = style.chart_of(rows).encode(x=style.pulls_axis(np.concatenate([line.step for line in panel.lines])))
    banded = {line.name for line in panel.lines if line.spread is not None}
    colours = {name: colour for name, colour in zip(names, cycle(style.LINES), strict=False) if name in banded}
    areas = style.band_areas(base, "line", colours, alt.Y("low:Q", scale=scale), opacity=0.2)
    lines = base.mark_line(strokeWidth=2).encode(
        y=y,
        **style.told_apart("line", names, total),
        tooltip=[alt.Tooltip("line:N"), *style.numbers("step", digits=","), *style.numbers("value")],
    )
    heading = alt.Title(panel.title, fontSize=13, anchor="start", offset=8)
    return alt.layer(*areas, lines, *_rule_layers(panel.rules)).properties(width=width, height=280, title=heading)


def _rows(line: Line, *, log_scale: bool) -> list[dict[str, Any]]:
    lowest = 0.0 if log_scale else -np.inf
    spread = np.full_like(line.value, np.nan) if line.spread is None else line.spread
    with np.errstate(divide="ignore", invalid="ignore"):
        # On a logarithmic axis the error is that of the logarithm, so that no band goes below zero.
        factor = np.exp(spread / line.value)
    low, high = (line.value / factor, line.value * factor) if log_scale else (line.value - spread, line.value + spread)
    return [
        {
            "line": line.name,
            "step": int(step),
            **{
                name: style.finite(values[k], above=lowest)
                for name, values in (("value", line.value), ("low", low), ("high", high))
            },
        }
        for k, step in enumerate(line.step)
    ]


def _rule_layers(rules: dict[float, str]) -> list[Any]:
    if not rules:
        return []
    base = style.chart_of([{"step": step, "text": text} for step, text in rules.items()]).encode(x="step:Q")
    return [
        base.mark_rule(color=style.GREY, strokeDash=[1, 3], strokeWidth=1.5),
        # Above the picture, where there are no curves.
        base.mark_text(baseline="bottom", color=style.GREY, fontSize=11).encode(
            y=style.altair().value(-4), text="text:N"
        ),
    ]


def settled_from(step: ArrayLike, value: ArrayLike, bound: float) -> int | None:
    """Return the step from which the curve stays below a bound; None if it ends above it.

    Examples
    --------
    >>> settled_from([10, 20, 30, 40], [0.5, 0.1, 0.4, 0.2], 0.3), settled_from([10, 20], [1, 2], 0.3)
    (40, None)
    """
    steps, is_above = np.asarray(step), ~(np.asarray(value) < bound)
    place = int(np.flatnonzero(is_above)[-1]) + 1 if is_above.any() else 0
    return int(steps[place]) if place < steps.size else None


def growth_power(step: ArrayLike, value: ArrayLike) -> float:
    """Return the power of the number of pulls that a curve grows with: a least-squares line on logarithmic axes.

    Examples
    --------
    >>> round(growth_power([100, 200, 400], [10, 20, 40]), 6), round(growth_power([1, 4], [1, 2]), 6)
    (1.0, 0.5)
    """
    slope, _ = np.polyfit(np.log(np.asarray(step, dtype=float)), np.log(np.asarray(value, dtype=float)), 1)
    return float(slope)
