"""Show the report of an experiment, and give it away as a file: what was found, decided and changed, and why."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from equipoise import charts
from equipoise.analysis.result_tables import check_notes, comparison_sections, differences_section, further_sections
from equipoise.charts.drawings import drawn_apart
from equipoise.charts.pages import Table
from equipoise.charts.vega_lite import Chart
from equipoise.console.addresses import address
from equipoise.console.course_pictures import pictures_of
from equipoise.console.pictures import Picture, drawn_for, picture
from equipoise.console.visits import Download, Shown, Visit
from equipoise.experiment.full_report import FullReport
from equipoise.experiment.records import Alert
from equipoise.experiment_page import (
    Entry,
    entries,
    facts,
    heading_of,
    plan_table,
    record,
    report_page,
    rules,
    sentences,
    settings,
    table_of_section,
)

PATH = "e/{name}/report"
LOG_EVENTS = 10_000
"""Logs up to this long are read for the page; the checks of longer ones come when they are asked for."""


@dataclass(frozen=True)
class Part:
    """A part of what the log says besides: sentences, a table, notes."""

    heading: str
    sentences: tuple[str, ...]
    table: Table | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ReportView:
    """The report of an experiment."""

    title: str
    question: str
    headline: str
    sentences: tuple[str, ...]
    provisional: tuple[str, ...]
    alerts: tuple[Alert, ...]
    facts: tuple[tuple[str, str], ...]
    decisions: tuple[Entry, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...]
    arm_texts: dict[str, str]
    rules: Table | None
    plan: Table | None
    plan_sentences: tuple[str, ...]
    checks: tuple[str, ...]
    further: tuple[Part, ...]
    entries: tuple[Entry, ...]
    has_earlier_changes: bool
    assumptions: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    record: tuple[str, ...]
    query: str
    """What the addresses of the files have, to be about the same event."""
    has_log: bool


def show(visit: Visit) -> Shown:
    """Show the report; the checks of a long log only if they are asked for."""
    has_log = visit.query.get("log") == "1" or visit.status.n_events <= LOG_EVENTS
    view = view_of(_read(visit, has_log), _pictures(visit), query=_query(visit))
    return Shown("report-page.html", view, "Report")


def as_page(visit: Visit) -> Download:
    """Return the report as one HTML file, with charts and the result of verifying the log."""
    found = visit.the.full_report()
    return Download(
        "text/html; charset=utf-8", report_page(found, drawn_apart).encode("utf-8", "replace"), "report.html"
    )


def as_numbers(visit: Visit) -> Download:
    """Return the numbers of that file."""
    text = json.dumps(visit.the.full_report().to_dict(), indent=2, allow_nan=False)
    return Download("application/json", text.encode(), "report.json")


def arms_chart(visit: Visit) -> dict[str, Any]:
    """Return the chart of the arms."""
    return drawn_for(visit, lambda width: _arms_chart(visit, width))


def _arms_chart(visit: Visit, width: int) -> Chart:
    control = visit.description["configuration"]["control"]
    return charts.live_arms_chart(visit.status, control=control, width=width)


def _read(visit: Visit, has_log: bool) -> FullReport:
    what = "report with the log" if has_log else "report"
    return visit.remember(what, visit.the, lambda: visit.the.full_report(log=has_log, verify=False))


def _query(visit: Visit) -> str:
    return "" if visit.at is None else f"?at={visit.at}"


def _pictures(visit: Visit) -> tuple[Picture, ...]:
    name = visit.names["name"]
    arms = picture("arms", address(f"{PATH}/arms.json", name=name), lambda: _arms_chart(visit, 640), visit.past_query)
    differences = picture(
        "differences",
        address("e/{name}/compare/differences.json", name=name),
        lambda: charts.live_differences_chart(visit.the.compare()),
        visit.past_query,
    )
    return tuple(one for one in (arms, differences, *pictures_of(visit)) if one is not None)


def view_of(found: FullReport, pictures: tuple[Picture, ...], *, query: str = "") -> ReportView:
    """Return what the page shows of a report."""
    status, report = found.status, found.report
    tables = [comparison_sections(found.comparison)[1], differences_section(found.comparison)]
    said = entries(found.changes)
    return ReportView(
        title=status.description.title or found.name,
        question=status.description.question,
        headline=status.sentence or "Nothing can be said yet.",
        sentences=tuple(sentences(found)),
        provisional=status.provisional,
        alerts=status.alerts,
        facts=tuple(facts(found)),
        decisions=tuple(one for one in reversed(said) if one.is_decision),
        pictures=pictures,
        tables=tuple(table for section in tables if (table := table_of_section(section)) is not None),
        arm_texts=status.description.arms,
        rules=rules(status),
        plan=plan_table(found),
        plan_sentences=() if found.fidelity is None else found.fidelity.sentences,
        checks=() if report is None else check_notes(report),
        further=()
        if report is None
        else tuple(
            Part(heading_of(one), one.sentences, table_of_section(one), one.notes)
            for one in further_sections(report)
            if not one.is_empty
        ),
        entries=tuple(reversed(said)),
        has_earlier_changes=found.has_earlier_changes,
        assumptions=found.comparison.assumptions,
        settings=tuple(settings(found)),
        record=tuple(record(found)),
        query=query,
        has_log=report is not None,
    )
