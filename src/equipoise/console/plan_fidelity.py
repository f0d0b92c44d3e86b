"""Show what was planned for an experiment beside what happened so far, for experiments that were made from a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from equipoise.console.visits import Visit
from equipoise.errors import InvalidInput
from equipoise.experiment.fidelity import FIGURES, PLAN, fidelity_of, figure_text
from equipoise.experiment.records import PlannedFigure

_WIDTH, _EDGE = 100.0, 4.0
_ROOM = 0.3
"""How much room the picture leaves on both sides, of what it shows."""


@dataclass(frozen=True)
class PlannedMark:
    """Where a planned range and the present value lie on a line from 0 to 100."""

    low: float
    high: float
    now: float


@dataclass(frozen=True)
class FidelityLine:
    """A figure: what was planned for today, and what it is."""

    figure: str
    planned: str
    now: str
    is_inside: bool | None
    mark: PlannedMark | None


@dataclass(frozen=True)
class FidelityView:
    """Plan against now."""

    day: float
    way: str
    sentences: tuple[str, ...]
    lines: tuple[FidelityLine, ...]
    of_arms: tuple[FidelityLine, ...]
    again: str
    """Address of a new plan for the people still to come; empty for those who see no plans."""


def fidelity_view(visit: Visit) -> FidelityView | None:
    """Return plan against now; None for an experiment that was not made from a plan."""
    metadata: Mapping[str, Any] = visit.description["configuration"].get("metadata") or {}
    if PLAN not in metadata:
        return None
    try:
        found = fidelity_of(visit.status, metadata)
    except InvalidInput:  # a plan of somebody's own, which is none of ours
        return None
    may_plan = visit.viewer.reads and visit.viewer.experiment is None
    return FidelityView(
        day=found.day,
        way=found.way,
        sentences=found.sentences,
        lines=_lines(one for one in found.figures if one.arm is None),
        of_arms=_lines(one for one in found.figures if one.arm is not None),
        again=f"plans/new?from={quote(found.name, safe='')}" if may_plan else "",
    )


def _lines(figures: Iterable[PlannedFigure]) -> tuple[FidelityLine, ...]:
    return tuple(_line(one) for one in figures if one.actual is not None or one.middle is not None)


def _line(one: PlannedFigure) -> FidelityLine:
    low, middle, high = (figure_text(one.figure, value) for value in (one.low, one.middle, one.high))
    name = FIGURES[one.figure] + ("" if one.arm is None else f" {one.arm}")
    planned = "" if one.low is None else f"{middle} ({low} to {high})" if one.middle is not None else f"{low} to {high}"
    return FidelityLine(name, planned, figure_text(one.figure, one.actual), one.inside, mark_of(one))


def mark_of(one: PlannedFigure) -> PlannedMark | None:
    """Return where a planned range and the present value lie; None if either is not known.

    Examples
    --------
    >>> mark_of(PlannedFigure("people", None, 80.0, 96.0, 112.0, 62.0, False))
    PlannedMark(low=42.0, high=78.8, now=21.2)
    """
    if one.low is None or one.high is None or one.actual is None:
        return None
    first, last = min(one.low, one.actual), max(one.high, one.actual)
    spread = (last - first) or abs(last) or 1.0
    first, last = first - _ROOM * spread, last + _ROOM * spread

    def place(value: float) -> float:
        return round(_EDGE + (_WIDTH - 2 * _EDGE) * (value - first) / (last - first), 1)

    return PlannedMark(place(one.low), place(one.high), place(one.actual))
