"""Show charts on pages: as wide as their place, without their title, which is a heading, and with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from equipoise.charts import ChartTable, notes_of, table_of, title_of, without_title
from equipoise.charts.vega_lite import WIDTH, Chart
from equipoise.console.visits import Visit
from equipoise.errors import InvalidInput

NARROWEST, WIDEST = 240, 1000
"""Pixels of a chart."""
MOST_ROWS = 24
"""Rows of the table beside a chart; the data have all."""


@dataclass(frozen=True)
class Picture:
    """A chart on a page: its id, the address of its data below the console, its words, and its numbers as a table."""

    id: str
    source: str
    title: str
    note: str
    table: ChartTable


def picture(id_: str, source: str, draw: Callable[[], Chart], query: dict[str, str] | None = None) -> Picture | None:
    """Return a chart for a page; None if there is nothing to draw yet."""
    try:
        drawn = draw()
    except InvalidInput:
        return None
    address = f"{source}?{urlencode(query)}" if query else source
    return Picture(id_, address, title_of(drawn), " ".join(notes_of(drawn)), table_of(drawn, MOST_ROWS))


def drawn_for(visit: Visit, draw: Callable[[int], Chart]) -> dict[str, Any]:
    """Return a chart as the script of the page draws it, as wide as it asks for; all its numbers with ``?rows``."""
    if "rows" in visit.query:
        return {"rows": draw(WIDTH)["data"]["values"]}
    return without_title(draw(width_of(visit)))


def width_of(visit: Visit) -> int:
    """Return how many pixels a chart shall be wide."""
    given = visit.query.get("width", "")
    if not given:
        return WIDTH
    if not given.isdecimal() or len(given) > 6:
        raise InvalidInput.of("width", f"must be a whole number from {NARROWEST} to {WIDEST}", given)
    return max(NARROWEST, min(int(given), WIDEST))
