"""Put a finding into text: the sections that the terminal, the HTML report and the documentation page all show."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from equipoise.paper.findings import Cell, Comparison, Figure, Finding, Item, Table, compare

if TYPE_CHECKING:
    from equipoise.paper.reproduction import Reproduction

TABLES = "tables"
"""Folder of the CSV files, in that of the report."""

HOW_JUDGED = (
    "A number matches if it differs from the expected one by no more than the tolerance plus four standard errors of "
    "our mean, which are zero where nothing is random. Where the printed number cannot be matched, we expect another "
    "one, and the reason stands beside it."
)


class NumberText(NamedTuple):
    """A row of the table of numbers: ours beside the paper's."""

    key: str
    what: str
    paper: str
    expected: str
    ours: str
    standard_error: str
    tolerance: str
    verdict: str
    differs: str
    reason: str


class ClaimText(NamedTuple):
    """A claim with its verdict: "holds" or "fails"."""

    verdict: str
    text: str
    evidence: str


class TableText(NamedTuple):
    """A table as shown; numeric columns are flush right."""

    title: str
    file: str
    columns: list[str]
    rows: list[list[str]]
    is_numeric: list[bool]
    note: str


@dataclass(frozen=True, kw_only=True)
class Section:
    """Everything a report says about one item."""

    name: str
    title: str
    place: str
    claim_heading: str
    claim: str
    found: list[str]
    differs: list[str]
    numbers: list[NumberText]
    claims: list[ClaimText]
    tables: list[TableText]
    figures: list[Figure]
    duration: str
    simulated: str

    @property
    def n_missed(self) -> int:
        """Numbers missed and claims that fail."""
        verdicts = [number.verdict for number in self.numbers] + [claim.verdict for claim in self.claims]
        return verdicts.count("missed") + verdicts.count("fails")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary of a whole reproduction.

    `counts` says how many numbers are matched, known to differ, or missed, and how many claims hold or fail.
    """

    counts: dict[str, int]
    n_steps: int
    seconds: float

    def __str__(self) -> str:
        return (
            "numbers: {matched} match, {known} differ as known, {missed} missed; claims: {hold} hold, {fail} fail"
        ).format(**self.counts)


def summary_of(result: Reproduction) -> Summary:
    """Summarise a reproduction."""
    verdicts = [comparison.verdict for comparison in result.comparisons]
    hold = [claim.holds for claim in result.claims]
    return Summary(
        counts={
            "matched": verdicts.count("matches"),
            "known": verdicts.count("differs, as known"),
            "missed": verdicts.count("missed"),
            "hold": hold.count(True),
            "fail": hold.count(False),
        },
        n_steps=sum(finding.n_steps for finding in result.findings),
        seconds=sum(finding.seconds for finding in result.findings),
    )


def sections_of(result: Reproduction) -> list[Section]:
    """Return a section for each item, in the order of the report."""
    return [section_of(item, finding) for item, finding in zip(result.items, result.findings, strict=True)]


def section_of(item: Item, finding: Finding) -> Section:
    """Put a finding into words."""
    simulated = "runs of the items above" if item.n_steps else "nothing simulated"
    return Section(
        name=item.name,
        title=item.title,
        place=item.place,
        claim_heading="The idea" if "beyond the paper" in item.place else "What the paper says",
        claim=item.claim,
        found=finding.found,
        differs=finding.differs,
        numbers=[_number_text(comparison) for comparison in compare(finding.measured)],
        claims=[ClaimText("holds" if one.holds else "fails", one.text, one.evidence) for one in finding.claims],
        tables=[_table_text(table, file_name(finding, table)) for table in finding.tables],
        figures=finding.figures,
        duration=duration(finding.seconds),
        simulated=f"{finding.n_steps:,} simulated steps" if finding.n_steps else simulated,
    )


def file_name(finding: Finding, table: Table) -> str:
    """Return the CSV file of a table within the report's folder; keys of tables are unique within their items only."""
    return f"{TABLES}/{finding.item}-{table.key}.csv"


def _number_text(comparison: Comparison) -> NumberText:
    """Format a comparison; our number gets two digits more than the comparison needs."""
    expected, measured = comparison.expected, comparison.measured
    error = measured.standard_error
    return NumberText(
        key=expected.key,
        what=expected.what,
        paper="" if expected.paper is None else f"{expected.paper:.12g}",
        expected=f"{expected.value:.12g}",
        ours=f"{measured.value:.{decimals_for(error or expected.tolerance)}f}",
        standard_error="" if error is None else f"{error:.2g}",
        tolerance=f"{expected.tolerance:.2g}",
        verdict=comparison.verdict,
        differs=expected.differs,
        reason=expected.reason,
    )


def _table_text(table: Table, file: str) -> TableText:
    rows = [
        [cell_text(value, table.digits.get(column)) for column, value in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(table.columns)
    # Text such as "+1,024" counts as a number, too.
    number = re.compile(r"(?:[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?%?|[-+]?inf|-)?")
    is_numeric = [any(column) and all(map(number.fullmatch, column)) for column in columns]
    return TableText(table.title, file, table.columns, rows, is_numeric, table.note)


def cell_text(value: Cell, digits: str | None = None) -> str:
    """Format an entry of a table.

    Examples
    --------
    >>> cell_text(0.12345), cell_text(25000), cell_text(0.5, ".3f"), cell_text("UCB"), cell_text(None)
    ('0.1235', '25000', '0.500', 'UCB', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and math.isnan(value):
        return ""
    return format(value, digits or ("d" if isinstance(value, int) else ".4g"))


def decimals_for(spread: float) -> int:
    """Return how many decimals show two digits of a spread, 12 at most.

    Examples
    --------
    >>> decimals_for(0.013), decimals_for(5e-5), decimals_for(25.0)
    (3, 6, 0)
    """
    smallest = 1e-300  # zero has no logarithm
    return min(12, max(0, 1 - math.floor(math.log10(max(abs(spread), smallest)))))


def duration(seconds: float) -> str:
    """Format a time.

    Examples
    --------
    >>> duration(3.14159), duration(75)
    ('3.1 s', '75 s')
    """
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
