"""Give charts that are plain dicts their look: the styles of their marks, and their colours on light and dark pages."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from equipoise.charts.colours import IN_CHARTS, SERIES
from equipoise.errors import InvalidInput

Theme: TypeAlias = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = get_args(Theme)

_INK, _SOFT, _BACK, _GRID, _PALE, _BLUE, _VERMILION = (
    IN_CHARTS[name][0] for name in ("black", "grey", "white", "grid", "pale", "blue", "vermilion")
)
_DARK = {light.lower(): dark for light, dark in IN_CHARTS.values()}
_HOLD_COLOURS = {"background", "fill", "stroke", "range", "category"}
"""Parts of a chart whose texts are colours, besides those that are named so; all others may be texts of users."""

_LINE = {"strokeWidth": 2.5, "opacity": 1}
_POINT = {"size": 70, "strokeWidth": 2, "opacity": 1}
STYLES: dict[str, dict[str, Any]] = {
    "strong point": {"fill": _BLUE, "stroke": _BLUE, **_POINT},
    "worse point": {"fill": _VERMILION, "stroke": _VERMILION, **_POINT},
    "hollow point": {"fill": _BACK, "stroke": _PALE, **_POINT},
    "strong interval": {"color": _BLUE, **_LINE},
    "worse interval": {"color": _VERMILION, **_LINE},
    "hollow interval": {"color": _PALE, **_LINE},
    "goal": {"color": _INK, "strokeDash": [6, 4], "strokeWidth": 1.5},
    "zero": {"color": _INK, "strokeDash": [4, 3], "strokeWidth": 1},
    "change": {"color": _SOFT, "strokeDash": [2, 3], "strokeWidth": 1},
    "small words": {"color": _SOFT, "fontSize": 11},
    "single": {"color": _BLUE, "strokeWidth": 2.5},
    "single band": {"color": _BLUE, "opacity": 0.18},
    "bar": {"color": _BLUE, "opacity": 0.5},
    "other line": {"color": _VERMILION, "strokeWidth": 2.5},
    "free": {"color": _GRID, "opacity": 0.8},
}
"""Properties of marks by what they are for."""

CONFIG: dict[str, Any] = {
    "background": _BACK,
    "padding": 12,
    "font": "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif",
    "view": {"stroke": None},
    "title": {
        "anchor": "start",
        "color": _INK,
        "fontSize": 15,
        "subtitleColor": _SOFT,
        "subtitleFontSize": 12,
        "offset": 14,
    },
    "axis": {
        "labelColor": _INK,
        "titleColor": _SOFT,
        "domainColor": _PALE,
        "tickColor": _PALE,
        "gridColor": _GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "axisX": {"labelFlush": False, "grid": False},
    "range": {"category": list(SERIES)},
    "text": {"color": _INK, "fontSize": 12},
}
"""The look of a chart on a light page."""


def themed(drawn: dict[str, Any], theme: Theme = "light") -> dict[str, Any]:
    """Return a chart in the colours of a theme. Charts are made in those of a light page.

    Examples
    --------
    >>> themed({"mark": {"type": "rule", "color": "#0072B2"}, "title": {"text": "#0072B2"}}, "dark")
    {'mark': {'type': 'rule', 'color': '#4fb0ea'}, 'title': {'text': '#0072B2'}}
    """
    if theme not in THEMES:
        raise InvalidInput.of("theme", "must be light or dark", theme)
    found: dict[str, Any] = drawn if theme == "light" else _in_the_dark(drawn)
    return found


def _in_the_dark(part: Any, key: str = "") -> Any:
    if isinstance(part, dict):
        return {name: _in_the_dark(inner, name) for name, inner in part.items()}
    if isinstance(part, list):
        return [_in_the_dark(inner, key) for inner in part]
    is_colour = isinstance(part, str) and (key in _HOLD_COLOURS or key.lower().endswith("color"))
    return _DARK.get(part.lower(), part) if is_colour else part
