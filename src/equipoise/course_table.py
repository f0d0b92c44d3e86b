"""Format how an experiment goes over time as text: its timeline by period."""

from __future__ import annotations

import shutil
from datetime import datetime

from equipoise.analysis.sentences import decimals_for
from equipoise.errors import visible
from equipoise.experiment.records import Timeline
from equipoise.text_layout import Column, shortened, table_lines

_PERIODS = 30
"""Most periods of a table; the file formats have all."""
_WIDEST_ARM = 16


def timeline_lines(found: Timeline, *, width: int | None = None) -> list[str]:
    """Format a timeline: people and rewards of each period, and each arm's share of people and mean so far."""
    room = shutil.get_terminal_size().columns if width is None else width
    first = max(0, len(found.start) - _PERIODS)
    rows = range(first, len(found.start))
    people, rewards = found.assigned.sum(axis=1), found.rewarded.sum(axis=1)
    columns = [
        Column(found.every, [_start(found.start[row], found.every) for row in rows], 0, True),
        Column("people", [f"{people[row]:,}" for row in rows]),
        Column("rewards", [f"{rewards[row]:,}" for row in rows]),
    ]
    shown = found.mean[first:]
    known = shown[shown == shown]
    digits = decimals_for(float(known.max() - known.min()) if known.size else 1.0)
    for place, arm in enumerate(found.arms):
        cells = [f"{_share(found.share_given[row, place])} {_number(found.mean[row, place], digits)}" for row in rows]
        columns.append(Column(shortened(visible(arm), _WIDEST_ARM), cells, 1 + place))
    lines = table_lines(columns, room)
    if first:
        lines.insert(1, f"... {first:,} earlier {found.every}{'s' * (first != 1)}")
    return [*lines, "of each arm: its share of the people of the period, and the mean of its rewards so far"]


def _start(start: datetime, every: str) -> str:
    return f"{start:%Y-%m-%d}" if every in ("day", "week") else f"{start:%Y-%m-%d %H:%M}"


def _share(share: float) -> str:
    return f"{100 * share:.0f}%" if share == share else "-"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if value == value else "-"
