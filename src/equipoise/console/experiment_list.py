"""Show the list of experiments: first those with a problem, then those where a decision waits, then the latest."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from equipoise.console.visits import Download, Shown, Visit
from equipoise.experiment.records import ExperimentSummary, Status
from equipoise.experiment.rule_progress import RuleLine, nearest, rule_lines

ROWS = 50
_MOST_READ = 400
"""Experiments that are looked at in full; of more, those made last."""
STATES = ("enrolling", "paused", "stopped", "finished")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class ListLine:
    """An experiment in the list."""

    name: str
    state: str
    created_at: datetime
    last_at: datetime | None
    """When the last event was."""
    people: int
    rewards: int
    sentence: str
    problem: str
    decision: str
    """What waits for a decision; empty if nothing does."""
    rule: RuleLine | None

    @property
    def urgency(self) -> tuple[int, float]:
        """What the list is sorted by."""
        last = self.last_at or self.created_at
        return (0 if self.problem else 1 if self.decision else 2, -last.timestamp())


@dataclass(frozen=True)
class ListView:
    """A page of the list."""

    lines: tuple[ListLine, ...]
    n_all: int
    n_found: int
    search: str
    state: str
    states: tuple[str, ...]
    page: int
    n_pages: int
    now: datetime
    changes: bool
    """Whether the viewer may make experiments."""


def show(visit: Visit) -> Shown:
    """Show the experiments that the viewer may see."""
    lines, search, state = found_lines(visit), visit.query.get("q", "").strip(), visit.query.get("state", "")
    n_pages = max(1, -(-len(lines) // ROWS))
    given = visit.query.get("page", "")
    page = max(1, min(n_pages, int(given))) if given.isdecimal() and len(given) < 8 else 1
    view = ListView(
        lines=tuple(lines[ROWS * (page - 1) : ROWS * page]),
        n_all=len(visit.listed()),
        n_found=len(lines),
        search=search,
        state=state if state in STATES else "",
        states=STATES,
        page=page,
        n_pages=n_pages,
        now=visit.now,
        changes=visit.viewer.changes,
    )
    n_problems, n_decisions = sum(bool(line.problem) for line in lines), sum(bool(line.decision) for line in lines)
    news = [_counted(n_problems, "problem"), _counted(n_decisions, "decision") + (" waiting" if n_decisions else "")]
    title = "Experiments" + (
        f": {' and '.join(one for one in news if one.strip())}" if n_problems or n_decisions else ""
    )
    return Shown("list.html", view, title, is_alerted=n_problems > 0)


def found_lines(visit: Visit) -> list[ListLine]:
    """Return the experiments that the query of the address finds, in the order of the list."""
    search, state = visit.query.get("q", "").strip().casefold(), visit.query.get("state", "")
    found = [
        one
        for one in reversed(visit.listed())
        if search in one.name.casefold() and (state not in STATES or one.state == state)
    ]
    lines = [line_of(one, *_read(visit, one)) for one in found[:_MOST_READ]]
    lines += [line_of(one, None, None) for one in found[_MOST_READ:]]
    return sorted(lines, key=lambda line: line.urgency)


def _read(visit: Visit, summary: ExperimentSummary) -> tuple[Status, datetime | None]:
    """Return an experiment's status and the time of its last event, from the cache while nothing happens."""
    experiment = visit.open(summary.name)

    def read() -> tuple[Status, datetime | None]:
        status = experiment.status()
        last = experiment.events_page(max(0, status.n_events - 1), 1)
        return status, last[-1].at if last else None

    return visit.remember("list", experiment, read)


def line_of(summary: ExperimentSummary, status: Status | None, last_at: datetime | None) -> ListLine:
    """Return a line of the list, from the summary of an experiment and, if it was read, its status."""
    rules = [] if status is None else rule_lines(status)
    alerts = [] if status is None else [one for one in status.alerts if one.severity == "problem"]
    return ListLine(
        name=summary.name,
        state=summary.state,
        created_at=summary.created_at,
        last_at=last_at,
        people=summary.n_assigned,
        rewards=summary.n_rewarded,
        sentence="" if status is None or not status.n_rewarded else status.sentence,
        problem=alerts[0].sentence if alerts else "",
        decision="" if status is None else decision_waiting(status, rules),
        rule=nearest(rules) if summary.state in ("enrolling", "paused") else None,
    )


def decision_waiting(status: Status, rules: Sequence[RuleLine]) -> str:
    """Return what waits for a decision; empty if nothing does."""
    if status.state in ("enrolling", "paused"):
        met = [rule for rule in rules if rule.is_met]
        return f"it may end: {met[0].goal}, met" if met else ""
    if status.state == "stopped" and not status.n_pending:
        return "it may be finished: no more rewards are to come"
    return ""


def as_csv(visit: Visit) -> Download:
    """Return the list as CSV; a name that a spreadsheet would take for a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "state", "created_at", "last_event_at", "people", "rewards", "problem", "decision"])
    for line in found_lines(visit):
        last = "" if line.last_at is None else line.last_at.isoformat(timespec="seconds")
        cells = [line.name, line.state, line.created_at.isoformat(timespec="seconds"), last]
        row = [*cells, str(line.people), str(line.rewards), line.problem, line.decision]
        writer.writerow([f"'{cell}" if cell.startswith(_FORMULA) else cell for cell in row])
    return Download("text/csv; charset=utf-8", text.getvalue().encode("utf-8", "replace"), "experiments.csv")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}" if number else ""
