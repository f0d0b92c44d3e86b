"""Show the reproduction on the terminal: a progress bar, each finding when it is done, and a summary or JSON."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from equipoise._version import __version__
from equipoise.errors import visible
from equipoise.paper.findings import Comparison, Finding, Item, duration
from equipoise.progress import StepBar
from equipoise.terminal import print_json, print_table

if TYPE_CHECKING:
    from equipoise.paper.reproduction import Progress, Reproduction


class TerminalReport:
    """Show the progress of items, and print what they find; a context manager.

    Parameters
    ----------
    items : tuple of Item
    quick : bool
    quiet : bool
        Whether to leave out progress and notes.
    results : bool
        Whether to print findings.
    """

    def __init__(self, items: tuple[Item, ...], *, quick: bool, quiet: bool, results: bool) -> None:
        self.results = results
        # A quick run has a tenth of the replications, but at least 20: about this share of the steps.
        share = 0.17 if quick else 1.0
        self._steps = {item.name: int(item.n_steps * share) for item in items}
        self._done: list[str] = []
        self._bar = None if quiet else StepBar(sum(self._steps.values()))

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*details)

    def show(self, progress: Progress) -> None:
        """Move the bar, and print the finding of an item that is done."""
        item, n_steps, finding = progress
        before, part = sum(self._steps[name] for name in self._done), self._steps[item.name]
        if finding is not None:
            self._done.append(item.name)
            with nullcontext() if self._bar is None else self._bar.away():
                if self.results:
                    print_finding(item, finding)
            n_steps = part
        if self._bar is None:
            return
        if finding is None and n_steps == 0:
            place = f"{item.name} ({len(self._done) + 1} of {len(self._steps)})"
            self._bar.turn_to(place, sum(self._steps.values()))
        else:  # an item with more steps than planned stays within its part of the bar
            self._bar.show(before + min(n_steps, part))


def print_finding(item: Item, finding: Finding) -> None:
    """Print our numbers beside the paper's, and the claims with their evidence."""
    print(f"{item.name}: {item.title} ({item.place})")
    if finding.measured:
        _print_numbers(finding.comparisons)
    width = max(60, min(110, shutil.get_terminal_size().columns))
    for claim in finding.claims:
        verdict = "holds" if claim.holds else "FAILS"
        for start, text in ((f"{verdict}  ", claim.text), (" " * 7, claim.evidence)):
            print(textwrap.fill(visible(text), width, initial_indent=start, subsequent_indent=" " * 7))
    print(flush=True)


def _print_numbers(comparisons: list[Comparison]) -> None:
    rows = [one.texts | {"verdict": one.verdict} for one in comparisons]
    columns = {"+/-" if name == "standard_error" else name: [row[name] or "-" for row in rows] for name in rows[0]}
    if columns["expected"] == columns["paper"]:
        del columns["expected"]
    if set(columns["+/-"]) == {"-"}:
        del columns["+/-"]
    width = sum(2 + max(map(len, (head, *column))) for head, column in columns.items())
    room = shutil.get_terminal_size().columns - width
    expected = [one.expected for one in comparisons]
    long, short = [one.what for one in expected], [one.key.partition(".")[2] for one in expected]
    names = long if max(map(len, long)) <= room else short
    print_table([("number", names), *columns.items()])


def print_summary(result: Reproduction, report: Path, *, quiet: bool) -> None:
    """Print the verdicts in one line, with time and steps unless quiet, and on stderr what was missed."""
    line = result.summary
    if not quiet:
        before = f" ({result.n_kept} of {len(result.items)} items kept from before)" if result.n_kept else ""
        line += f"; {duration(result.seconds)}, {result.n_steps:,} simulated steps{before}"
    print(f"{line}; report in {report}", flush=True)
    if result.missed:
        print(f"missed: {', '.join(result.missed)}", file=sys.stderr)


def print_as_json(result: Reproduction, report: Path) -> None:
    """Print everything at full precision, except tables and charts, which are files beside the report."""
    print_json(
        {
            "version": __version__,
            "quick": result.quick,
            "seconds": result.seconds,
            "n_steps": result.n_steps,
            "counts": result.counts,
            "missed": result.missed,
            "report": str(report),
            "items": [_as_json(item, finding) for item, finding in zip(result.items, result.findings, strict=True)],
        }
    )


def _as_json(item: Item, finding: Finding) -> dict[str, Any]:
    return {
        **{name: getattr(item, name) for name in ("name", "title", "place", "claim")},
        "found": finding.found,
        "differs": finding.differs,
        "numbers": [
            dataclasses.asdict(one.expected)
            | {"ours": one.measured.value, "standard_error": one.measured.standard_error, "verdict": one.verdict}
            for one in finding.comparisons
        ],
        "claims": [dataclasses.asdict(claim) for claim in finding.claims],
        "n_steps": finding.n_steps,
        "seconds": finding.seconds,
    }
