"""Format how an experiment goes over time as text: its timeline by period, and what lies ahead."""

from __future__ import annotations

import shutil
import textwrap
from datetime import datetime

from equipoise.analysis.sentences import decimals_for
from equipoise.errors import visible
from equipoise.experiment.records import Outlook, RuleOutlook, Timeline
from equipoise.text_layout import Column, left_out, shortened, table_lines

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
    gone = left_out(columns, room)
    notes = ["of each arm: its share of the people of the period, and the mean of its rewards so far"]
    notes += [f"{gone} --csv has all."] if gone else []
    return [*lines, *(part for note in notes for part in textwrap.wrap(note, max(room, 20)))]


def outlook_lines(found: Outlook, *, width: int | None = None) -> list[str]:
    """Format an outlook: the pace, and a line for each stopping rule."""
    room = shutil.get_terminal_size().columns if width is None else width
    pace = found.people_per_day
    head = "The pace is not known yet." if pace is None else f"{pace_text(pace)} people a day."
    if not found.rules:
        return [head, "There is no stopping rule."]
    columns = [
        Column("rule", [one.rule for one in found.rules], 0, True),
        Column("goal", [_goal(one) for one in found.rules]),
        Column("people to go", ["" if one.people is None else f"{one.people:,}" for one in found.rules]),
        Column("expected", [expected_text(one) or "-" for one in found.rules], 0, True),
    ]
    unknown = [f"{one.rule}: {one.reason}" for one in found.rules if one.reason]
    return [head, "", *table_lines(columns, room), *([""] if unknown else []), *unknown]


def pace_text(people_per_day: float) -> str:
    """Return a pace without more digits than it has.

    Examples
    --------
    >>> pace_text(95.71), pace_text(3.14)
    ('96', '3.1')
    """
    return f"{people_per_day:,.0f}" if people_per_day >= 10 else f"{people_per_day:.2g}"


def expected_text(one: RuleOutlook) -> str:
    """Return when a rule will be met; empty if nobody can say."""
    if one.met:
        return "met"
    if one.expected_at is None:
        return ""
    when = f"{one.expected_at:%Y-%m-%d}"
    return when if one.days is None else f"about {when}, in {days_text(one.days)}"


def days_text(days: float) -> str:
    """Return a number of days, in hours if they are few.

    Examples
    --------
    >>> days_text(0.3), days_text(1.04), days_text(26.4)
    ('7 hours', '25 hours', '26 days')
    """
    if days < 2:
        hours = max(1, round(24 * days))
        return f"{hours} hour{'s' * (hours != 1)}"
    return f"{days:.0f} days"


def _goal(one: RuleOutlook) -> str:
    if isinstance(one.goal, str):
        return str(datetime.fromisoformat(one.goal).date())
    return f"{one.goal:,}" if isinstance(one.goal, int) else f"{one.goal:g}"


def _start(start: datetime, every: str) -> str:
    return f"{start:%Y-%m-%d}" if every in ("day", "week") else f"{start:%Y-%m-%d %H:%M}"


def _share(share: float) -> str:
    return f"{100 * share:.0f}%" if share == share else "-"


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if value == value else "-"
