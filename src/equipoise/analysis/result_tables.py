"""Show comparisons and reports as tables with the decimals that intervals justify: printed, in notebooks, as rows."""

from __future__ import annotations

import dataclasses
import html
import math
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from equipoise.analysis.sentences import decimals_beside_zero, decimals_for
from equipoise.errors import visible
from equipoise.text_layout import Column, table_lines

if TYPE_CHECKING:
    from equipoise.analysis.results import (
        ArmEstimate,
        Comparison,
        Difference,
        GroupDifference,
        Interaction,
        Report,
        Subgroups,
    )

Pair = TypeVar("Pair", bound=Any)
"""A record of a difference: of `compare`, at the end, or over the same people."""

MOST_ARMS = 60
"""Of more arms, those with the best means are shown."""
MOST_PAIRS = 15
"""Of more pairs, only those with the arm of the best mean are shown."""
WIDEST = 120

_CHECKED = {
    "drift": "change over time",
    "draws": "assignment as recorded",
    "balance": "balance of attributes",
    "silence": "silence by arm",
    "quick news": "good news first",
    "delays": "delays by arm",
    "missing": "missing rewards",
}
"""What a check that found nothing has looked at, in words."""
_TYPES = {str: "String", int: "Int64", float: "Float64", bool: "Boolean"}
_METHODS = {"t": "t", "hall": "Hall", "wilson": "Wilson", "welch": "Welch", "newcombe": "Newcombe", "none": "-"}


@dataclass(frozen=True)
class Section:
    """A part of a page: sentences, then a table, then notes."""

    title: str = ""
    sentences: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.sentences or self.notes or (self.columns and self.columns[0].cells))


def comparison_sections(found: Comparison) -> list[Section]:
    """Return what to show of a comparison."""
    return [
        Section(sentences=found.sentences or ("One arm: there is nothing to compare it with.",)),
        _arms(found),
        differences_section(found),
        Section("What this assumes", notes=found.assumptions),
    ]


def report_sections(report: Report) -> list[Section]:
    """Return what to show of a report: what may be said first, what it rests on last."""
    arms = _arms(report.comparison)
    more = ("Rewards change over time: these means are of different people.",) if report.trend.speaks else ()
    arms = dataclasses.replace(arms, notes=(*more, *arms.notes, *winner_notes(report)))
    at_all_times = [arms, differences_section(report.comparison)]
    return [
        Section(report.name or "", sentences=(_about(report),)),
        Section(sentences=said(report)),
        Section("Checks", notes=check_notes(report)),
        *([*_same_people(report), *at_all_times] if report.trend.speaks else at_all_times),
        *further_sections(report),
        Section("What this assumes", notes=report.comparison.assumptions),
    ]


def further_sections(report: Report) -> list[Section]:
    """Return what a report has besides its sentences, checks, arms and differences."""
    return [
        *_at_end(report),
        *([] if report.trend.speaks else _same_people(report)),
        _adjusted(report),
        *(section for found in report.subgroups for section in _subgroups(report, found)),
        _explored(report),
        _worst_cases(report),
        Section("Not known", notes=report.notes),
    ]


def text_of(sections: Sequence[Section], width: int | None = None) -> str:
    """Return sections as text no wider than a terminal, or than `width`."""
    room = min(max(shutil.get_terminal_size().columns if width is None else width, 40), WIDEST)
    parts = []
    for section in sections:
        if section.is_empty:
            continue
        lines = textwrap.wrap(visible(section.title), room)
        for sentence in section.sentences:
            lines += textwrap.wrap(visible(sentence), room)
        if section.columns and section.columns[0].cells:
            shown = [one._replace(cells=[visible(text) for text in one.cells]) for one in section.columns]
            lines += table_lines(shown, room)
        for note in section.notes:
            lines += textwrap.wrap(f"- {visible(note)}", room, subsequent_indent="  ")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def html_of(sections: Sequence[Section]) -> str:
    """Return sections as HTML for a notebook, which brings its own colours."""
    return "\n".join(part for section in sections if not section.is_empty for part in _html(section))


def report_rows(report: Report) -> list[dict[str, Any]]:
    """Return one row per arm and per difference of every section of a report, with the same columns in all.

    Each row has its `section`; `estimate` is a mean, or the mean of `arm` minus that of `other`.
    """
    return [dict.fromkeys(ROW_COLUMNS) | row for row in _rows(report)]


ROW_COLUMNS: dict[str, type] = {
    "section": str,
    "attribute": str,
    "group": str,
    "arm": str,
    "other": str,
    "n": int,
    "estimate": float,
    "standard_error": float,
    "low": float,
    "high": float,
    "p_value": float,
    "p_adjusted": float,
    "verdict": str,
    "method": str,
}
"""Columns of the rows of a report, and their types."""


def frame_of(rows: Sequence[dict[str, Any]], columns: dict[str, type]) -> Any:
    """Return rows as a polars frame; numbers that are not finite are null."""
    from equipoise.files import polars

    pl = polars()
    data = {name: [_or_none(row[name]) for row in rows] for name in columns}
    return pl.DataFrame(data, schema={name: getattr(pl, _TYPES[kind]) for name, kind in columns.items()})


def number(value: float | None, decimals: int | None, *, sign: bool = False) -> str:
    """Format a number; a dash for None or one that is not finite.

    Examples
    --------
    >>> number(0.1234, 2), number(-0.001, 2), number(0.1234, 2, sign=True), number(None, 2), number(1234.5678, None)
    ('0.12', '0.00', '+0.12', '-', '1235')
    """
    if value is None or not math.isfinite(value):
        return "-"
    plus = "+" if sign else ""
    if decimals is None:
        return f"{value:{plus}.4g}"
    return f"{round(value, decimals) + 0.0:{plus}.{decimals}f}"


def interval(low: float | None, high: float | None, decimals: int | None, *, sign: bool = False) -> str:
    """Format an interval, of which an end may be open.

    Examples
    --------
    >>> interval(0.123, 0.456, 2), interval(0.123, None, 2), interval(None, 0.456, 2), interval(None, None, 2)
    ('0.12 to 0.46', 'from 0.12', 'up to 0.46', '-')
    """
    low_text, high_text = (number(end, decimals, sign=sign) for end in (low, high))
    if low_text == "-":
        return "-" if high_text == "-" else f"up to {high_text}"
    return f"from {low_text}" if high_text == "-" else f"{low_text} to {high_text}"


def p_text(p_value: float) -> str:
    """Format a p-value.

    Examples
    --------
    >>> p_text(0.02341), p_text(1e-9), p_text(1.0), p_text(float("nan"))
    ('0.023', '<0.0001', '1', '-')
    """
    if math.isnan(p_value):
        return "-"
    return "<0.0001" if p_value < 1e-4 else f"{p_value:.2g}"


def _decimals(intervals: Sequence[tuple[float | None, float | None]]) -> int | None:
    """Return the decimals that show two digits of the narrowest interval; None for numbers with an exponent."""
    widths = [high - low for low, high in intervals if low is not None and high is not None]
    widths = [width for width in widths if 0 < width < math.inf]
    if not widths:
        return None
    return decimals_for(min(widths)) if 1e-6 <= min(widths) < 1e9 else None


def _arms(found: Comparison) -> Section:
    """Return the table of the arms; of many, of those with the best means."""
    arms, notes = list(found.arms), []
    if len(arms) > MOST_ARMS:
        up = 1.0 if found.direction == "maximise" else -1.0
        arms = sorted(arms, key=lambda arm: -math.inf if arm.mean is None else up * arm.mean, reverse=True)[:MOST_ARMS]
        notes = [f"The {MOST_ARMS} arms with the best means; {len(found.arms) - MOST_ARMS:,} more are not shown."]
    decimals = _decimals([(arm.low, arm.high) for arm in arms])
    columns = [
        Column("arm", [arm.arm for arm in arms], names=True),
        Column("rewards", [f"{arm.rewarded:,}" for arm in arms], 2),
        Column("mean", [number(arm.mean, decimals) for arm in arms]),
        Column("interval", [interval(arm.low, arm.high, decimals) for arm in arms]),
    ]
    if len(found.arms) > 1:
        columns += [
            Column("best?", [_may_be_best(arm, found) for arm in arms]),
            Column("rank", [rank_text(arm) for arm in arms], 3),
            Column("loses at most", [number(arm.most_lost, decimals) for arm in arms], 1),
            Column("belief", ["-" if arm.chance_of_best is None else f"{arm.chance_of_best:.0%}" for arm in arms], 4),
        ]
        shown = [one for one in columns if one.head not in ("loses at most", "belief") or set(one.cells) != {"-"}]
        columns = shown if any(arm.rewarded for arm in arms) else columns[:4]
    if any(column.head == "belief" for column in columns):
        notes.append("Belief is the chance of being the best arm in a pooled model (empirical Bayes), not a guarantee.")
    kind = {
        "guaranteed": "guaranteed for rewards in the declared range",
        "low guaranteed": "low ends guaranteed, high ends asymptotic",
        "high guaranteed": "high ends guaranteed, low ends asymptotic",
    }.get(found.interval, "asymptotic")
    title = f"Arms: {100 * found.confidence:g}% for all of them together, at all times (confidence sequences, {kind})"
    return Section(title, columns=tuple(columns), notes=tuple(notes))


def _may_be_best(arm: ArmEstimate, found: Comparison) -> str:
    if arm.retired:
        return "retired"
    if not arm.may_be_best:
        return "no"
    return "yes" if found.best is not None else "maybe"


def rank_text(arm: ArmEstimate, between: str = "-") -> str:
    """Return the ranks that an arm may have; a dash for a retired one."""
    if arm.rank_low is None:
        return "-"
    return f"{arm.rank_low}" if arm.rank_low == arm.rank_high else f"{arm.rank_low}{between}{arm.rank_high}"


def differences_section(found: Comparison) -> Section:
    """Return the table of the differences; of many, those with the arm of the best mean."""
    pairs, notes = shown_pairs(found, found.differences)
    if all(pair.difference is None for pair in pairs):
        return Section()
    ends = [(pair.low, pair.high) for pair in pairs]
    decimals = _decimals(ends)
    if decimals is not None:
        decimals = decimals_beside_zero(decimals, (end for pair in ends for end in pair if end is not None))
    between, names = _names(pairs)
    columns = [
        *names,
        Column("difference", [number(pair.difference, decimals, sign=True) for pair in pairs]),
        Column("interval", [interval(pair.low, pair.high, decimals, sign=True) for pair in pairs]),
        Column("p", [p_text(pair.p_adjusted) for pair in pairs], 2),
        Column("verdict", [pair.verdict for pair in pairs], 1),
    ]
    if any(pair.lift is not None for pair in pairs):
        columns.append(Column("lift", [_lift(pair) for pair in pairs], 4))
    kinds = {pair.interval for pair in pairs} - {"none"}
    if len(kinds) > 1:
        columns.append(Column("kind", [pair.interval for pair in pairs], 3))
    kind = f", {kinds.pop()}" if len(kinds) == 1 else ""
    title = f"Differences{between}: {100 * found.confidence:g}% for all of them together, at all times{kind}"
    if len(found.differences) > 1:
        notes = [*notes, "p is adjusted for the number of pairs (Bonferroni), as intervals are."]
    open_pairs = [pair for pair in found.differences if found.best in (pair.arm, pair.other)]
    if any(pair.verdict == "undecided" and not _is_retired(pair, found) for pair in open_pairs):
        notes = [*notes, f"{found.best!r} is best by all comparisons at once, before each is decided by itself."]
    return Section(title, columns=tuple(columns), notes=tuple(notes))


def _is_retired(pair: Difference, found: Comparison) -> bool:
    return any(arm.retired and arm.arm in (pair.arm, pair.other) for arm in found.arms)


def shown_pairs(found: Comparison, pairs: Sequence[Pair]) -> tuple[list[Pair], list[str]]:
    """Return the pairs to show, the better arm first unless all are compared with a control; and a note on others."""
    up = 1.0 if found.direction == "maximise" else -1.0
    mean = {arm.arm: -math.inf if arm.mean is None else up * arm.mean for arm in found.arms}
    leader = max(mean, key=lambda arm: mean[arm])
    shown = [pair for pair in pairs if len(pairs) <= MOST_PAIRS or leader in (pair.arm, pair.other)]
    if found.compared == "control":
        shown = [pair for pair in pairs if found.control in (pair.arm, pair.other)]
        shown = [_flipped(pair) if pair.arm == found.control else pair for pair in shown]
    elif found.compared != "pair":
        shown = [_flipped(pair) if mean[str(pair.other)] > mean[str(pair.arm)] else pair for pair in shown]
    if found.compared != "pair":
        shown.sort(key=lambda pair: (-mean[str(pair.arm)], -mean[str(pair.other)]))
    n_more = len(pairs) - len(shown[:MOST_ARMS])
    return shown[:MOST_ARMS], [f"{n_more:,} more pairs are not shown: see CSV, JSON or to_frame()."] if n_more else []


def _flipped(pair: Pair) -> Pair:
    """Return the difference seen from the other arm."""
    changed: dict[str, Any] = {"arm": pair.other, "other": pair.arm}
    for name in ("difference", "plain_difference", "shrunken"):
        if hasattr(pair, name):
            value = getattr(pair, name)
            changed[name] = None if value is None else -value
    for low, high in (("low", "high"), ("low_at_end", "high_at_end")):
        if hasattr(pair, low):
            ends = getattr(pair, low), getattr(pair, high)
            changed[high], changed[low] = (None if end is None else -end for end in ends)
    if hasattr(pair, "verdict"):
        changed["verdict"] = {"better": "worse", "worse": "better"}.get(pair.verdict, pair.verdict)
        lifts = pair.lift, pair.lift_high, pair.lift_low
        if pair.lift is not None:
            changed["lift"], changed["lift_low"], changed["lift_high"] = map(_flipped_lift, lifts)
    if hasattr(pair, "mean"):
        changed |= {"mean": pair.other_mean, "other_mean": pair.mean}
    return dataclasses.replace(pair, **changed)


def _flipped_lift(lift: float | None) -> float | None:
    """Return the lift of b over a for that of a over b; None for no bound, on either side.

    Examples
    --------
    >>> _flipped_lift(1.0), _flipped_lift(None), _flipped_lift(-1.0)
    (-0.5, -1.0, None)
    """
    if lift is None:
        return -1.0
    return None if lift <= -1 else 1 / (1 + lift) - 1


def _names(pairs: Sequence[Pair]) -> tuple[str, list[Column]]:
    """Return what to say of the arms of all pairs in the title, and the columns of those that differ."""
    arms, others = [str(pair.arm) for pair in pairs], [str(pair.other) for pair in pairs]
    if len(pairs) > 1 and len(set(others)) == 1:
        return f" from {others[0]!r}", [Column("arm", arms, names=True)]
    if len(pairs) > 1 and len(set(arms)) == 1:
        return f", {arms[0]!r} minus another arm", [Column("minus", others, names=True)]
    return "", [Column("arm", arms, names=True), Column("minus", others, names=True)]


def _lift(pair: Difference) -> str:
    if pair.lift is None or pair.lift_low is None:
        return "-"
    if pair.lift_high is None:
        return f"{pair.lift:+.0%} (from {pair.lift_low:+.0%})"
    return f"{pair.lift:+.0%} ({pair.lift_low:+.0%} to {pair.lift_high:+.0%})"


def _about(report: Report) -> str:
    """Return what a report is about: how many people, and when."""
    units = "1 unit" if report.n_decisions == 1 else f"{report.n_decisions:,} units"
    rewards = "1 reward counts" if report.n_rewarded == 1 else f"{report.n_rewarded:,} rewards count"
    text = f"{units}, of which {rewards}" if report.n_decisions else "No units yet"
    if report.since is not None and report.until is not None:
        text += f"; from {report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC"
    return f"{text}."


def said(report: Report) -> tuple[str, ...]:
    """Return the sentences that are not about checks."""
    checked = {check.sentence for check in report.checks}
    return tuple(sentence for sentence in report.sentences if sentence not in checked)


def check_notes(report: Report) -> tuple[str, ...]:
    """Return what the checks found; those that found nothing are only named."""
    speaking = [check.sentence for check in report.checks if check.speaks]
    silent = dict.fromkeys(_CHECKED.get(check.name, check.name) for check in report.checks if not check.speaks)
    notes = list(speaking)
    if silent:
        notes.append(f"Nothing {'else ' if speaking else ''}found in: {', '.join(silent)}.")
    return tuple(notes)


def _same_people(report: Report) -> list[Section]:
    found = report.same_people
    if found is None or not any(pair.n_used for pair in found.differences):
        return []
    pairs, notes = shown_pairs(report.comparison, found.differences)
    between, names = _names(pairs)
    columns = (*names, *_both_intervals(pairs), Column("units", [f"{pair.n_used:,}" for pair in pairs], 3))
    how = {
        "probabilities": "weighted by the probabilities of all arms: AIPW",
        "chosen-probabilities": "weighted by the probabilities of the arms assigned",
        "periods": "within periods",
    }[found.basis]
    return [
        Section(f"Differences{between}, over the same people ({how})", columns=columns, notes=(found.assumes, *notes))
    ]


def _both_intervals(pairs: Sequence[Any]) -> list[Column]:
    """Return columns of differences and of their intervals, at all times and for one look; none that is empty."""
    at_all_times = [(pair.low, pair.high) for pair in pairs]
    for_one_look = [(pair.low_at_end, pair.high_at_end) for pair in pairs]
    decimals = _decimals([*at_all_times, *for_one_look])
    intervals = [
        Column(head, [interval(*ends, decimals, sign=True) for ends in each], spare)
        for head, each, spare in (("at all times", at_all_times, 0), ("for one look", for_one_look, 2))
    ]
    known = [one for one in intervals if set(one.cells) != {"-"}]
    differences = Column("difference", [number(pair.difference, decimals, sign=True) for pair in pairs])
    return [differences, *(known if len(known) == 2 else [one._replace(spare=0) for one in known])]


def _adjusted(report: Report) -> Section:
    found = report.adjusted
    if found is None or not found.differences:
        return Section()
    pairs, notes = shown_pairs(report.comparison, found.differences)
    between, names = _names(pairs)
    decimals = _decimals([(pair.low_at_end, pair.high_at_end) for pair in pairs])
    plain = Column("not adjusted", [number(pair.plain_difference, decimals, sign=True) for pair in pairs], 3)
    how = f"they explain {found.explained:.0%} of the variance within arms"
    title = f"Differences{between}, adjusted for {', '.join(found.columns)} ({how}: regression adjustment)"
    return Section(title, columns=(*names, *_both_intervals(pairs), plain), notes=tuple(notes))


def _subgroups(report: Report, found: Subgroups) -> list[Section]:
    pairs: list[GroupDifference] = []
    n_more = 0
    for group in found.groups:
        own = [pair for pair in found.differences if pair.group == group]
        shown, _ = shown_pairs(report.comparison, own)
        n_more += len(own) - len(shown)
        pairs += shown
    notes = [f"{n_more:,} more differences are not shown: see CSV, JSON or to_frame()."] if n_more else []
    if found.n_left_out:
        notes.append(f"{found.n_left_out:,} units with a reward are left out: their {found.attribute!r} is not known.")
    between, names = _names(pairs)
    decimals = _decimals([(pair.low_at_end, pair.high_at_end) for pair in pairs])
    columns = (
        Column(found.attribute, [pair.group for pair in pairs], names=True),
        *names,
        *_both_intervals(pairs),
        Column("shrunk", [number(pair.shrunken, decimals, sign=True) for pair in pairs], 4),
        Column("rewards", [f"{pair.n_used:,}" for pair in pairs], 3),
    )
    if pairs:
        notes.append("Shrunk: moved towards the other groups as far as it may be chance (empirical Bayes).")
    title = f"Differences{between} within the groups of {found.attribute!r}"
    return [
        Section(title, columns=columns, notes=tuple(notes)),
        _interactions(
            f"By how much differences differ between the groups of {found.attribute!r} (interactions)", found
        ),
    ]


def _interactions(title: str, found: Subgroups) -> Section:
    rows = sorted(found.interactions, key=lambda one: one.p_value)[:MOST_PAIRS]
    columns = (
        Column(found.attribute, [one.group for one in rows], names=True),
        Column("arm", [str(one.arm) for one in rows], names=True),
        Column("minus", [str(one.other) for one in rows], names=True),
        *_both_intervals(rows),
        Column("p", [p_text(one.p_value) for one in rows], 3),
    )
    n_more = len(found.interactions) - len(rows)
    notes = (f"{n_more:,} more, with larger p, are not shown.",) if n_more else ()
    return Section(title, columns=columns, notes=notes)


def _explored(report: Report) -> Section:
    found = [one for one in report.explored if one.is_discovery]
    title = "Exploratory: differences that differ between groups of attributes not declared beforehand"
    share = f"on average at most {1 - report.confidence:.0%} of such discoveries are false (e-BH)"
    if not found:
        names = ", ".join(dict.fromkeys(one.attribute for one in report.explored))
        return Section(title, notes=(f"Nothing found by {names}.",) if names else ())
    rows = sorted(found, key=lambda one: one.p_value)[:MOST_PAIRS]
    columns = (
        Column("attribute", [one.attribute for one in rows], names=True),
        Column("group", [one.group for one in rows], names=True),
        Column("arm", [str(one.arm) for one in rows], names=True),
        Column("minus", [str(one.other) for one in rows], names=True),
        *_both_intervals(rows),
        Column("p", [p_text(one.p_value) for one in rows], 3),
    )
    return Section(title, columns=columns, notes=(f"Test them in new people: {share}.",))


def winner_notes(report: Report) -> tuple[str, ...]:
    """Return what the best mean is worth after the luck of being best, if that makes a difference."""
    found = report.winner
    if found is None or report.trend.speaks:
        return ()
    decimals = _decimals([(found.low, found.high)])
    mean, shrunken = number(found.mean, decimals), number(found.shrunken, decimals)
    if mean == shrunken:
        return ()
    return (f"The best of several means is partly luck: expect {shrunken} from {found.arm!r}, not {mean} (shrunk).",)


def _at_end(report: Report) -> list[Section]:
    found, title = report.at_end, "At the number of units declared beforehand"
    if found.refused:
        return [Section(f"{title}: no narrower intervals", notes=found.refused)]
    decimals = _decimals([(one.low, one.high) for one in found.means])
    means = (
        Column("arm", [str(one.arm) for one in found.means], names=True),
        Column("rewards", [f"{one.n_used:,}" for one in found.means], 2),
        Column("mean", [number(one.mean, decimals) for one in found.means]),
        Column("interval", [interval(one.low, one.high, decimals) for one in found.means]),
        Column("method", [_METHODS[one.method] for one in found.means], 3),
    )
    together = f"{100 * report.confidence:g}% for all of them together, for one look (fixed sample)"
    sections = [Section(f"{title}, arms: {together}", columns=means)]
    pairs, notes = shown_pairs(report.comparison, found.differences)
    if not pairs:
        return sections
    decimals = _decimals([(one.low, one.high) for one in pairs])
    between, names = _names(pairs)
    differences = (
        *names,
        Column("difference", [number(one.difference, decimals, sign=True) for one in pairs]),
        Column("interval", [interval(one.low, one.high, decimals, sign=True) for one in pairs]),
        Column("p", [p_text(one.p_adjusted) for one in pairs], 2),
        Column("method", [_METHODS[one.method] for one in pairs], 3),
    )
    title = f"{title}, differences{between}: {together}"
    return [*sections, Section(title, columns=differences, notes=tuple(notes))]


def _worst_cases(report: Report) -> Section:
    cases = report.worst_cases
    decimals = _decimals([(case.low, case.high) for case in cases])
    columns = (
        Column("arm", [case.arm for case in cases], names=True),
        Column("counted", [f"{case.counted:,}" for case in cases], 2),
        Column("missing", [f"{case.missing:,}" for case in cases]),
        Column("mean is in", [interval(case.low_mean, case.high_mean, decimals) for case in cases], 1),
        Column("interval", [interval(case.low, case.high, decimals) for case in cases]),
    )
    return Section("Worst cases: whatever the missing rewards would have been (Manski bounds)", columns=columns)


def _html(section: Section) -> Iterator[str]:
    def escaped(text: str) -> str:
        return html.escape(visible(text))

    if section.title:
        yield f"<p><strong>{escaped(section.title)}</strong></p>"
    for sentence in section.sentences:
        yield f"<p>{escaped(sentence)}</p>"
    if section.columns and section.columns[0].cells:
        aligned = ['style="text-align: left"' if one.names else 'style="text-align: right"' for one in section.columns]
        heads = "".join(
            f"<th {look}>{escaped(one.head)}</th>" for one, look in zip(section.columns, aligned, strict=True)
        )
        yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
        for row in zip(*(one.cells for one in section.columns), strict=True):
            cells = "".join(f"<td {look}>{escaped(text)}</td>" for text, look in zip(row, aligned, strict=True))
            yield f"<tr>{cells}</tr>"
        yield "</tbody></table>"
    if section.notes:
        yield "<ul>" + "".join(f"<li>{escaped(note)}</li>" for note in section.notes) + "</ul>"


def _rows(report: Report) -> Iterator[dict[str, Any]]:
    for arm in report.comparison.arms:
        yield {
            "section": "arms",
            "arm": arm.arm,
            "n": arm.rewarded,
            "estimate": arm.mean,
            "low": arm.low,
            "high": arm.high,
            "verdict": _may_be_best(arm, report.comparison) if len(report.comparison.arms) > 1 else None,
            "method": report.comparison.interval,
        }
    for pair in report.comparison.differences:
        copied = {name: getattr(pair, name) for name in ("arm", "other", "low", "high", "p_value", "p_adjusted")}
        more = {"estimate": pair.difference, "verdict": pair.verdict, "method": pair.interval}
        yield {"section": "differences"} | copied | more
    for mean in report.at_end.means:
        yield _mean_row("at_end.means", mean) | {"method": mean.method}
    for last in report.at_end.differences:
        ps = {"p_value": last.p_value, "p_adjusted": last.p_adjusted}
        yield _pair_row("at_end.differences", last) | ps | {"method": last.method}
    if report.same_people is not None:
        for same_mean in report.same_people.means:
            yield _mean_row("same_people.means", same_mean) | {"method": report.same_people.basis}
        for same in report.same_people.differences:
            for row in _twice("same_people.differences", same, _pair_row):
                yield row | {"n": same.n_used, "method": report.same_people.basis}
    if report.adjusted is not None:
        for adjusted in report.adjusted.means:
            yield from _twice("adjusted.means", adjusted, _mean_row)
        for adjusted_pair in report.adjusted.differences:
            yield from _twice("adjusted.differences", adjusted_pair, _pair_row)
    for groups in report.subgroups:
        for group_mean in groups.means:
            for row in _twice("subgroups.means", group_mean, _mean_row):
                yield row | {"attribute": groups.attribute, "group": group_mean.group}
        for difference in groups.differences:
            for row in _twice("subgroups.differences", difference, _pair_row):
                yield row | {"attribute": groups.attribute, "group": difference.group, "n": difference.n_used}
        for one in groups.interactions:
            yield from _interaction_rows("subgroups.interactions", one)
    for one in report.explored:
        for row in _interaction_rows("explored", one):
            yield row | {"verdict": "discovery" if one.is_discovery else "undecided"}
    for case in report.worst_cases:
        yield {"section": "worst_cases", "arm": case.arm, "n": case.counted, "low": case.low, "high": case.high}


def _mean_row(section: str, found: Any) -> dict[str, Any]:
    row = {"section": section, "arm": found.arm, "n": found.n_used, "estimate": found.mean}
    return row | {name: getattr(found, name, None) for name in ("standard_error", "low", "high")}


def _pair_row(section: str, found: Any) -> dict[str, Any]:
    row = {"section": section, "arm": found.arm, "other": found.other, "estimate": found.difference}
    return row | {name: getattr(found, name) for name in ("standard_error", "low", "high")}


def _twice(section: str, found: Any, row_of: Callable[[str, Any], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a row with the interval at all times, and one with that for one look, in a section of its own."""
    yield row_of(section, found)
    yield row_of(f"{section}_at_end", found) | {"low": found.low_at_end, "high": found.high_at_end}


def _interaction_rows(section: str, found: Interaction) -> Iterator[dict[str, Any]]:
    for row in _twice(section, found, _pair_row):
        yield row | {"attribute": found.attribute, "group": found.group, "p_value": found.p_value}


def record_columns(kind: type) -> dict[str, type]:
    """Return the fields of a record and their types, leaving aside that a value may be None."""
    hints = get_type_hints(kind)
    return {name: next(one for one in (*get_args(hint), hint) if one in _TYPES) for name, hint in hints.items()}


def record_frame(records: Sequence[Any], kind: type) -> Any:
    """Return a polars frame with one row per record, and its fields as columns."""
    return frame_of([vars(one) for one in records], record_columns(kind))


def _or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
