"""Draw what participants gain against what researchers lose: one labelled point per way to run an experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from equipoise._types import FloatArray
from equipoise.charts.style import BLUE, GREY, VERMILION, AnyChart, altair, chart_of, finished
from equipoise.errors import InvalidInput

DIAL, RIVAL, OTHER, START = "dial", "rival", "other", "start"
"""Kinds of points: settings of the dial and of a rival dial, each joined by a line; other ways; and the start."""

_SHAPES = {RIVAL: "triangle-up", OTHER: "square", DIAL: "circle", START: "diamond"}
_COLOURS = {RIVAL: VERMILION, OTHER: VERMILION, DIAL: BLUE, START: "black"}


class WayToRun(NamedTuple):
    """A way to run an experiment: its name, and how it compares with another way.

    The name is drawn to the right of the point, or with `name_left` to the left. A point among many without `is_named`
    shows it only in its tooltip. Errors are standard errors.
    """

    kind: str
    name: str
    words: str
    gain: float
    loss: float
    gain_error: float = 0.0
    loss_error: float = 0.0
    name_left: bool = False
    is_named: bool = True


@dataclass(frozen=True)
class GainsAndLossesRecord:
    """Ways to run an experiment, and the largest possible gain at each loss.

    Attributes
    ----------
    title : str
    subtitle : list of str
    ways : tuple of WayToRun
    gain_title, gain_format : str
        Title and number format of the axis.
    best_gain, best_loss : arrays
        The curve of the optimum; empty for no curve.
    loss_title : str
    """

    title: str
    subtitle: list[str]
    ways: tuple[WayToRun, ...]
    gain_title: str
    gain_format: str
    best_gain: FloatArray
    best_loss: FloatArray
    loss_title: str = "What researchers lose: how much larger the average error of an estimate is than in the trial"

    def __post_init__(self) -> None:
        for way in self.ways:
            if way.kind not in _SHAPES:
                raise InvalidInput(f"kind must be one of {', '.join(_SHAPES)}; got {way.kind!r}")


def gains_and_losses_chart(record: GainsAndLossesRecord, *, big: bool = False) -> AnyChart:
    """Draw gain over loss, with names beside the points instead of a legend.

    Parameters
    ----------
    big : bool
        Use larger letters and marks, and words below the names, for the top of a page. The line of the dial then
        begins at the start.
    """
    alt = altair()
    size = 16 if big else 12
    far = max(way.loss + way.loss_error for way in record.ways)
    is_shown = np.isfinite(record.best_loss) & (record.best_loss <= 1.02 * far)
    best = [(float(a), float(b)) for a, b in zip(record.best_loss[is_shown], record.best_gain[is_shown], strict=True)]
    high = max([way.gain + way.gain_error for way in record.ways] + [gain for _, gain in best])
    low = min(way.gain for way in record.ways)
    # Names need space: below the lowest point, and to the right of points that are far out.
    is_wide = any(way.loss > 0.8 * far and way.is_named and not way.name_left for way in record.ways) or bool(best)
    x = alt.X(
        "loss:Q",
        title=record.loss_title,
        scale=alt.Scale(domain=[-0.03 * far, (1.25 if is_wide else 1.06) * far], nice=False),
        axis=alt.Axis(format="+~%", tickCount=6, grid=False),
    )
    y = alt.Y(
        "gain:Q",
        title=record.gain_title,
        scale=alt.Scale(domain=[min(low - 0.04 * high, -0.13 * high), 1.08 * high], nice=False),
        axis=alt.Axis(format=record.gain_format, tickCount=6, titleAngle=0, titleAlign="left", titleX=0, titleY=-14),
    )
    joined = (_rows(record, START) if big else []) + _rows(record, DIAL)
    rival = _rows(record, RIVAL)
    layers = [
        *_best(best, x, y, size),
        *([_line(rival, x, y, color=VERMILION, strokeWidth=1.5, strokeDash=[2, 2])] if rival else []),
        _line(joined, x, y, color=BLUE, strokeWidth=4 if big else 2.5),
    ]
    for kind, colour in _COLOURS.items():
        rows = _rows(record, kind)
        if not rows:
            continue
        base = chart_of(rows).encode(x=x, y=y)
        layers += _errors(base, colour) if any(row["has_error"] for row in rows) else []
        mark = {"shape": _SHAPES[kind], "color": colour, "size": 12 * size if big else 6 * size}
        layers.append(base.mark_point(**mark, filled=True, opacity=1).encode(tooltip=["name:N", "words:N"]))
        layers += _names(rows, x, y, colour, size, with_words=big)
    width, height = (820, 430) if big else (620, 380)
    layers.append(
        chart_of([{"text": "up and to the left is better"}])
        .mark_text(align="left", baseline="top", fontSize=size, color=GREY)
        .encode(x=alt.value(10), y=alt.value(8), text="text:N")
    )
    chart: Any = finished(alt.layer(*layers).properties(width=width, height=height), record.title, record.subtitle)
    title: dict[str, Any] = {"fontSize": 16, "subtitleFontSize": 12, "offset": 30}
    if big:
        letters = {"labelFontSize": size - 2, "titleFontSize": size - 1, "titleFontWeight": "normal"}
        chart = chart.configure_axis(**letters, gridColor="#E6E6E6").configure_axisX(labelFlush=False, titlePadding=10)
        title = {"fontSize": 24, "subtitleFontSize": 15, "subtitlePadding": 8, "offset": 34}
    with_title: AnyChart = chart.configure_title(anchor="start", subtitleColor=GREY, **title)
    return with_title


def _rows(record: GainsAndLossesRecord, kind: str) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "name": way.name,
            "words": way.words,
            "gain": way.gain,
            "loss": way.loss,
            "low": way.loss - way.loss_error,
            "high": way.loss + way.loss_error,
            "gain_low": way.gain - way.gain_error,
            "gain_high": way.gain + way.gain_error,
            "has_error": way.loss_error > 0 or way.gain_error > 0,
            "is_left": way.name_left,
            "is_named": way.is_named,
        }
        for place, way in enumerate(record.ways)
        if way.kind == kind
    ]


def _errors(base: Any, colour: str) -> list[Any]:
    """Return horizontal and vertical bars of one standard error each way."""
    return [
        base.mark_rule(color=colour, strokeWidth=1.2).encode(x="low:Q", x2="high:Q"),
        base.mark_rule(color=colour, strokeWidth=1.2).encode(y="gain_low:Q", y2="gain_high:Q"),
    ]


def _line(rows: list[dict[str, Any]], x: Any, y: Any, **style: Any) -> Any:
    return chart_of(rows).mark_line(**style).encode(x=x, y=y, order="place:Q")


def _names(rows: list[dict[str, Any]], x: Any, y: Any, colour: str, size: int, *, with_words: bool) -> list[Any]:
    """Return the names and words of points, clear of the points and their error bars."""
    layers = []
    for is_left in (False, True):
        some = [row for row in rows if row["is_named"] and row["is_left"] is is_left]
        if not some:
            continue
        base = chart_of([row | {"loss": row["low" if is_left else "high"]} for row in some]).encode(x=x, y=y)
        style = {"align": "right", "dx": -0.8 * size} if is_left else {"align": "left", "dx": 0.8 * size}
        style |= {"dy": 0.35 * size, "fontSize": size, "fontWeight": "bold"}
        # A white outline behind the letters keeps lines away from them.
        layers += [
            base.mark_text(**style, color="white", stroke="white", strokeWidth=4).encode(text="name:N"),
            base.mark_text(**style, color=colour).encode(text="name:N"),
        ]
        if with_words:
            style |= {"dy": 1.55 * size, "fontSize": size - 2, "fontWeight": "normal"}
            layers.append(base.mark_text(**style, color="#404040").encode(text="words:N"))
    return layers


def _best(best: list[tuple[float, float]], x: Any, y: Any, size: int) -> list[Any]:
    """Return the curve of the optimum, labelled at its end."""
    if not best:
        return []
    rows = [{"place": place, "loss": loss, "gain": gain} for place, (loss, gain) in enumerate(best)]
    last = chart_of([rows[-1] | {"name": "the best there is"}]).encode(x=x, y=y)
    return [
        _line(rows, x, y, color=GREY, strokeWidth=1.5, strokeDash=[5, 4]),
        last.mark_text(align="left", dx=6, fontSize=size, color=GREY).encode(text="name:N"),
    ]
