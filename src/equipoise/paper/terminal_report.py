"""The reproduction as the terminal shows it: a bar while it runs, each item when it is done, and the sum of it all."""

from __future__ import annotations

import dataclasses
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__
from equipoise.errors import visible
from equipoise.paper import words as texts
from equipoise.paper.findings import compare
from equipoise.progress import StepBar
from equipoise.terminal import print_json, print_table

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

    from equipoise.paper.findings import Claim, Finding
    from equipoise.paper.item import Item
    from equipoise.paper.reproduction import Reproduction


class Show:
    """Shows items as they come; a context manager.

    Parameters
    ----------
    items : tuple of Item
    quick : bool
    quiet : bool
        Whether to leave out progress and notes.
    results : bool
        Whether to print what was found.
    """

    def __init__(self, items: tuple[Item, ...], *, quick: bool, quiet: bool, results: bool) -> None:
        self.items, self.quiet, self.results = items, quiet, results
        # Of the steps of the full reproduction: a tenth, but 20 replications at least.
        self.share = 0.17 if quick else 1.0
        self.n_done, self.n_steps, self.n_kept = 0, 0, 0
        self._bar = None if quiet else StepBar(0)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*details)

    def start(self, item: Item, kept: bool) -> None:
        """Say what is computed now."""
        self.n_kept += kept
        if self._bar is not None:
            to_come = sum(self._steps(later) for later in self.items[self.n_done :])
            place = f"{item.name} ({self.n_done + 1} of {len(self.items)})"
            self._bar.turn_to(place, self.n_steps + to_come)

    def progress(self, item: Item, n_steps: int) -> None:
        """Move the bar; an item that turns out longer than was thought does not go beyond its part."""
        if self._bar is not None:
            self._bar.show(self.n_steps + min(n_steps, self._steps(item)))

    def end(self, item: Item, finding: Finding) -> None:
        """Print what an item found."""
        self.n_done += 1
        self.n_steps += self._steps(item)
        if self._bar is None:
            self._print(item, finding)
        else:
            with self._bar.away():
                self._print(item, finding)
            self._bar.show(self.n_steps)

    def _print(self, item: Item, finding: Finding) -> None:
        if self.results:
            print_finding(item, finding)

    def _steps(self, item: Item) -> int:
        return int(item.n_steps * self.share)


def print_finding(item: Item, finding: Finding) -> None:
    """Print our numbers beside the paper's, and the claims with what decides them."""
    print(f"{item.name}: {item.title} ({item.place})")
    _print_numbers(finding)
    for claim in finding.claims:
        _print_claim(claim)
    print(flush=True)


def _print_numbers(finding: Finding) -> None:
    comparisons = compare(finding.measured)
    if not comparisons:
        return
    rows = [texts.number_texts(one) for one in comparisons]
    columns = {
        "paper": [row.paper or "-" for row in rows],
        "expected": [row.expected for row in rows],
        "ours": [row.ours for row in rows],
        "+/-": [row.standard_error or "-" for row in rows],
        "tolerance": [row.tolerance for row in rows],
        "verdict": [row.verdict for row in rows],
    }
    if all(row.expected == row.paper for row in rows):
        del columns["expected"]
    if not any(row.standard_error for row in rows):
        del columns["+/-"]
    width = sum(2 + max(map(len, (head, *column))) for head, column in columns.items())
    room = shutil.get_terminal_size().columns - width
    long, short = [row.what for row in rows], [one.expected.key.partition(".")[2] for one in comparisons]
    names = long if max(map(len, long)) <= room else short
    print_table([("number", names), *columns.items()])


def _print_claim(claim: Claim) -> None:
    width = max(60, min(110, shutil.get_terminal_size().columns))
    verdict = "holds" if claim.holds else "FAILS"
    for start, text in ((f"{verdict}  ", claim.text), (" " * 7, claim.evidence)):
        print(textwrap.fill(visible(text), width, initial_indent=start, subsequent_indent=" " * 7))


def print_summary(result: Reproduction, report: Path, *, quiet: bool) -> None:
    """Print one line: verdicts and, unless quiet, what it took; and what was missed, if anything was."""
    line = str(texts.counts(result))
    if not quiet:
        seconds = texts.duration(sum(finding.seconds for finding in result.findings))
        n_steps = sum(finding.n_steps for finding in result.findings)
        before = f" ({result.n_kept} of {len(result.items)} items kept from before)" if result.n_kept else ""
        line += f"; {seconds}, {n_steps:,} simulated steps{before}"
    print(f"{line}; report in {report}", flush=True)
    if result.missed:
        print(f"missed: {', '.join(result.missed)}", file=sys.stderr)


def print_as_json(result: Reproduction, report: Path) -> None:
    """Print everything but tables and charts, which are files beside the report, at full precision."""
    print_json(
        {
            "version": __version__,
            "quick": result.quick,
            "seconds": sum(finding.seconds for finding in result.findings),
            "n_steps": sum(finding.n_steps for finding in result.findings),
            "counts": texts.counts(result)._asdict(),
            "missed": result.missed,
            "report": str(report),
            "items": [_as_json(item, finding) for item, finding in zip(result.items, result.findings, strict=True)],
        }
    )


def _as_json(item: Item, finding: Finding) -> dict[str, Any]:
    about = {"name": item.name, "title": item.title, "place": item.place, "claim": item.claim}
    numbers = [
        dataclasses.asdict(one.expected)
        | {"ours": one.measured.value, "standard_error": one.measured.standard_error, "verdict": one.verdict}
        for one in compare(finding.measured)
    ]
    return about | {
        "found": finding.found,
        "differs": finding.differs,
        "numbers": numbers,
        "claims": [dataclasses.asdict(claim) for claim in finding.claims],
        "n_steps": finding.n_steps,
        "seconds": finding.seconds,
    }
