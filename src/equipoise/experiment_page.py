"""Write everything about an experiment as one HTML page, to print or to keep: it holds no script and loads nothing."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise import charts
from equipoise._version import __version__
from equipoise.analysis.result_tables import (
    Section,
    check_notes,
    comparison_sections,
    differences_section,
    further_sections,
    said,
    winner_notes,
)
from equipoise.charts.drawings import can_draw, drawn
from equipoise.charts.pages import NARROW, WIDE, Cell, Table, dark_colours, plain_specification, templates
from equipoise.errors import InvalidInput
from equipoise.experiment.dial import dial_words
from equipoise.experiment.event_sentences import sentence_of
from equipoise.experiment.fidelity import figure_text
from equipoise.experiment.gain_words import gain_sentence, is_yes_no
from equipoise.experiment.rule_progress import rule_lines
from equipoise.files import write_file

if TYPE_CHECKING:
    from equipoise.charts.vega_lite import Chart
    from equipoise.experiment.full_report import FullReport
    from equipoise.experiment.records import Event, Status, Timeline

ENDINGS = (".html", ".htm", ".json")
_MOST_ROWS = 16

Draw = Callable[[Mapping[str, "Chart"]], dict[str, str]]


class Drawing(NamedTuple):
    """A chart on the page: its words, its SVG for wide and narrow pages ("" if there is none), and its numbers."""

    key: str
    title: str
    notes: tuple[str, ...]
    wide: str
    narrow: str
    data: Table

    @property
    def description(self) -> str:
        """What it is, for those who do not see it."""
        return ". ".join([self.title.rstrip("."), *self.notes, "The numbers are in the table below"])


class Entry(NamedTuple):
    """An event of the log on the page."""

    number: int
    at: str
    text: str
    is_decision: bool


def checked_report_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a report to write; call it before work that would be lost otherwise."""
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InvalidInput(f"the file of a report must end in .html or .json; got {os.fspath(path)!r}")
    if target.suffix.lower() != ".json":
        templates("equipoise.charts")  # raises if what pages need is not installed
    return target


def write_report_page(found: FullReport, path: str | os.PathLike[str]) -> Path:
    """Write a report as a page, or as JSON with the same numbers; replace an existing file.

    Parameters
    ----------
    found : FullReport
        From `Experiment.full_report`.
    path : path
        Ends in ``.html`` or ``.json``.

    Returns
    -------
    Path
        Of the file.
    """
    target = checked_report_path(path)
    if target.suffix.lower() == ".json":
        text = json.dumps(found.to_dict(), indent=2, allow_nan=False) + "\n"
    else:
        text = report_page(found)
    write_file(target, text.encode("utf-8", "replace"))
    return target


def report_page(found: FullReport, draw: Draw | None = drawn) -> str:
    """Return the page as HTML; where nothing can draw, its charts are tables alone."""
    status, report = found.status, found.report
    arms, differences = comparison_sections(found.comparison)[1], differences_section(found.comparison)
    text: str = (
        templates("equipoise.charts")
        .get_template("experiment-report.html")
        .render(
            found=found,
            status=status,
            described=status.description,
            facts=facts(found),
            headline=status.sentence or "Nothing can be said yet.",
            sentences=list(sentences(found)),
            decisions=[one for one in entries(found.changes) if one.is_decision],
            drawings=drawings(found, draw if can_draw() else None),
            arms=table_of_section(arms),
            arm_notes=[*arms.notes, *(() if report is None else winner_notes(report))],
            differences=table_of_section(differences),
            difference_notes=differences.notes,
            checks=() if report is None else check_notes(report),
            further=[] if report is None else [one for one in further_sections(report) if not one.is_empty],
            table_of=table_of_section,
            heading_of=heading_of,
            rules=rules(status),
            plan=plan_table(found),
            entries=entries(found.changes),
            settings=settings(found),
            record=record(found),
            shell_name=shlex.quote(found.name),
            version=__version__,
            dark=dark_colours(),
        )
    )
    return text


def facts(found: FullReport) -> list[tuple[str, str]]:
    """Return what the experiment is, in short."""
    status, described = found.status, found.status.description
    rows = [("Experiment", found.name), ("State", status.state)]
    if described.owner:
        rows.append(("Responsible", described.owner))
    rows.append(("Began", _instant(status.created_at)))
    people = f"{status.n_assigned:,}, with {status.n_rewarded:,} rewards counted"
    rows.append(("People", people + (f" and {status.n_pending:,} still to come" if status.n_pending else "")))
    if described.outcome:
        rows.append(("A reward", f"1 if somebody {described.outcome}" if is_yes_no(status) else described.outcome))
    elif described.reward_unit:
        rows.append(("A reward", f"a number of {described.reward_unit}"))
    rows += [("As of", _instant(found.at)), ("Last event", f"{found.event:,}")]
    return rows


def sentences(found: FullReport) -> Iterator[str]:
    """Yield what may be said besides the headline, and besides why it is provisional."""
    status = found.status
    gain = status.gain_over_equal_shares
    if gain is not None:
        yield gain_sentence(status, gain)
    known = {_plain(one) for one in (status.sentence, *status.provisional)}
    for one in found.comparison.sentences if found.report is None else said(found.report):
        if _plain(one) not in known:
            yield one


def _plain(sentence: str) -> str:
    """Return a sentence without what it may begin and end with."""
    return sentence.removeprefix("Provisional: ").rstrip(".").casefold()


def entries(events: tuple[Event, ...]) -> list[Entry]:
    """Return events of the log as sentences."""
    return [
        Entry(
            event.number,
            _instant(event.at),
            sentence_of(event),
            event.kind == "noted" and event.details.get("kind") == "decision",
        )
        for event in events
    ]


# Tables


def table_of_section(section: Section) -> Table | None:
    """Return the table of a section; None if it has none."""
    if not section.columns or not section.columns[0].cells:
        return None
    rows = [tuple(map(Cell, row)) for row in zip(*(column.cells for column in section.columns), strict=True)]
    return Table(section.title, tuple(column.head for column in section.columns), rows)


def heading_of(section: Section) -> str:
    """Return a section's title without what its table says in more words."""
    return section.title.partition(":")[0].partition(" (")[0] or "Besides"


def rules(status: Status) -> Table | None:
    """Return the stopping rules that were declared, and how far they are."""
    rows = [(Cell(one.goal), Cell(one.now), Cell("met" if one.is_met else "not met")) for one in rule_lines(status)]
    return Table("Declared before there were data", ("it may end with", "now", ""), rows) if rows else None


def plan_table(found: FullReport) -> Table | None:
    """Return what was planned for this day, and what is."""
    fidelity = found.fidelity
    if fidelity is None:
        return None
    rows = [
        (
            Cell(one.figure if one.arm is None else f"{one.figure} {one.arm}"),
            *(Cell(figure_text(one.figure, value)) for value in (one.actual, one.middle, one.low, one.high)),
            Cell("outside" if one.inside is False else ""),
        )
        for one in fidelity.figures
    ]
    caption = f"Day {fidelity.day:.0f} of {fidelity.last_day:.0f}; planned as {fidelity.way}"
    return Table(caption, ("figure", "now", "planned", "8 in 10 from", "to", ""), rows)


def settings(found: FullReport) -> list[tuple[str, str]]:
    """Return what the experiment was made with."""
    status, configuration = found.status, found.settings["configuration"]
    policy = configuration["policy"]
    rows = [("Policy", str(policy["name"]))]
    names = ("information_kept", "information_about", "smallest_difference", "reward_weight")
    dial = {name: policy[name] for name in names if policy.get(name) is not None}
    if dial:
        if "information_kept" in dial:
            dial.setdefault("information_about", "average")
            dial.pop("reward_weight", None)
        rows.append(("Dial", dial_words(dial)))
    rows.append(("Good rewards are", "large" if status.direction == "maximise" else "small"))
    low, high = configuration["reward_range"] or (None, None)
    if low is not None or high is not None:
        rows.append(("Range of rewards", f"{_end(low, 'any')} to {_end(high, 'any')}"))
    rows.append(("Missing rewards", status.missing))
    if configuration["control"] is not None:
        share = configuration["control_share"]
        rows.append(("Control", configuration["control"] + (f", at least {share:.0%}" if share else "")))
    if configuration["warm_up"]:
        rows.append(("Warm-up", f"{configuration['warm_up']:,} people for every arm first"))
    if configuration.get("covariates"):
        rows.append(("Declared attributes", ", ".join(configuration["covariates"])))
    rows.append(("Intervals", f"hold together with {100 * status.confidence:.4g}% at all times; {status.interval}"))
    rows.append(("Seed", str(configuration["seed"])))
    return rows


def _end(value: float | None, other: str) -> str:
    return other if value is None else f"{value:g}"


def record(found: FullReport) -> list[str]:
    """Return how the report can be checked against the log."""
    hashed = "" if found.hash is None else f", whose hash is {found.hash}"
    lines = [f"This report says what the log said after event {found.event:,}{hashed}."]
    checked = found.verification
    if checked is None:
        lines.append("The log was not verified for it.")
    else:
        lines.append(
            f"The log was replayed from its beginning: {checked.n_events:,} events with {checked.n_decisions:,} "
            "decisions. Every decision, probability and statistic is as recorded."
        )
    if found.is_past:
        lines.append(f"It was made on {_instant(found.made_at)}, from the log as it was then.")
    return lines


# Charts


def drawings(found: FullReport, draw: Draw | None) -> dict[str, Drawing]:
    """Return the charts that there are data for, by name."""
    makers = _makers(found)
    wide, narrow = (
        {key: chart for key, make in makers.items() if (chart := _made(make, width)) is not None}
        for width in (WIDE, NARROW)
    )
    specifications = {
        f"{key}{part}": plain_specification(_without_tooltips(charts.without_title(chart)))
        for part, group in (("wide", wide), ("narrow", narrow))
        for key, chart in group.items()
    }
    shown = draw(specifications) if draw is not None and specifications else {}
    return {key: _drawing(key, chart, shown) for key, chart in wide.items()}


def _without_tooltips(chart: Chart) -> Chart:
    """Return a chart without the points that can only be pointed at, which are most of it."""
    layers = [layer for layer in chart["layer"] if layer["mark"].get("opacity") != 0]
    return chart | {"layer": layers}


def _drawing(key: str, chart: Chart, shown: dict[str, str]) -> Drawing:
    table = charts.table_of(chart, _MOST_ROWS)
    data = Table(table.caption, table.columns, [tuple(map(Cell, row)) for row in table.rows])
    notes = charts.notes_of(chart)
    return Drawing(key, charts.title_of(chart), notes, shown.get(f"{key}wide", ""), shown.get(f"{key}narrow", ""), data)


def _made(make: Callable[[int], Chart], width: int) -> Chart | None:
    try:
        return make(width)
    except InvalidInput:  # there is nothing to draw yet
        return None


def _makers(found: FullReport) -> dict[str, Callable[[int], Chart]]:
    status, comparison, timeline = found.status, found.comparison, found.timeline
    control = found.settings["configuration"]["control"]
    makers: dict[str, Callable[[int], Chart]] = {
        "arms": lambda width: charts.live_arms_chart(status, control=control, width=width),
        "differences": lambda width: charts.live_differences_chart(comparison, width=width),
    }
    if timeline is None or not timeline.start:
        return makers
    course = charts.course_of_timeline(timeline, status, found.changes[::-1])
    makers["shares"] = lambda width: charts.live_shares_chart(course, width=width)
    makers["means"] = lambda width: charts.live_means_chart(course, width=width)
    if timeline.every != "week":
        days, people, rewards = _by_day(timeline)
        so_far = status.state != "finished"
        makers["pace"] = lambda width: charts.live_pace_chart(days, people, rewards, width=width, so_far=so_far)
    return makers


def _by_day(timeline: Timeline) -> tuple[list[date], list[int], list[int]]:
    """Return the days of a timeline, with the people assigned and the rewards reported on each."""
    found: dict[date, list[int]] = {}
    counts = timeline.assigned.sum(axis=1).tolist(), timeline.rewarded.sum(axis=1).tolist()
    for start, people, rewards in zip(timeline.start, *counts, strict=True):
        day = found.setdefault(start.date(), [0, 0])
        day[0] += people
        day[1] += rewards
    return list(found), [people for people, _ in found.values()], [rewards for _, rewards in found.values()]


def _instant(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
