"""Numbers and verdicts in the words that the terminal, the report and the page of the documentation share."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from equipoise.paper.findings import Cell, Claim, Comparison, Finding, Table
    from equipoise.paper.item import Item
    from equipoise.paper.reproduction import Reproduction

MOST_DECIMALS = 12
_NUMBER = re.compile(r"(?:[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?%?|[-+]?inf|-)?")
EPSILON = 1e-300  # a logarithm must not be taken of zero

HOW_JUDGED = (
    "A number matches if it is no further from the expected one than the tolerance and four standard errors of our "
    "mean, of which there are none where nothing is random. Where the printed number cannot be matched, the expected "
    "one is another, and the reason stands beside it."
)


class NumberTexts(NamedTuple):
    """A number beside the paper's, in columns of text."""

    what: str
    paper: str
    expected: str
    ours: str
    standard_error: str
    tolerance: str
    verdict: str


class Counts(NamedTuple):
    """How many numbers and claims came out how."""

    matched: int
    known: int
    missed: int
    hold: int
    fail: int

    def __str__(self) -> str:
        return (
            f"numbers: {self.matched} match, {self.known} differ as known, {self.missed} missed; "
            f"claims: {self.hold} hold, {self.fail} fail"
        )


def counts(result: Reproduction) -> Counts:
    """Return how many numbers and claims came out how."""
    verdicts = [comparison.verdict for comparison in result.comparisons]
    hold = [claim.holds for claim in result.claims]
    return Counts(
        verdicts.count("matches"),
        verdicts.count("differs, as known"),
        verdicts.count("missed"),
        hold.count(True),
        hold.count(False),
    )


def number_texts(comparison: Comparison) -> NumberTexts:
    """Return a comparison in words; our number has two digits more than decide."""
    expected, measured = comparison.expected, comparison.measured
    error = measured.standard_error
    decimals = decimals_for(error or expected.tolerance)
    return NumberTexts(
        what=expected.what,
        paper="" if expected.paper is None else plain(expected.paper),
        expected=plain(expected.value),
        ours=f"{measured.value:.{decimals}f}",
        standard_error="" if error is None else f"{error:.2g}",
        tolerance=f"{expected.tolerance:.2g}",
        verdict=comparison.verdict,
    )


def claim_verdict(claim: Claim) -> str:
    """Return whether a claim holds, in one word."""
    return "holds" if claim.holds else "fails"


def decimals_for(spread: float) -> int:
    """Return how many decimals show two digits of a spread.

    Examples
    --------
    >>> decimals_for(0.013), decimals_for(5e-5), decimals_for(25.0)
    (3, 6, 0)
    """
    return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(max(abs(spread), EPSILON)))))


def plain(value: float) -> str:
    """Return a number as a person types it.

    Examples
    --------
    >>> plain(0.0073), plain(20.0), plain(3.9848346259), plain(1e-7)
    ('0.0073', '20', '3.9848346259', '1e-07')
    """
    return f"{value:.12g}"


def cell_text(value: Cell, digits: str | None = None) -> str:
    """Return an entry of a table.

    Examples
    --------
    >>> cell_text(0.12345), cell_text(25000), cell_text(0.5, ".3f"), cell_text("UCB"), cell_text(None)
    ('0.1235', '25000', '0.500', 'UCB', '')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float) and math.isnan(value):
        return ""
    if digits is None:
        return str(value) if isinstance(value, int) else f"{value:.4g}"
    return format(value, digits)


def table_texts(table: Table) -> list[list[str]]:
    """Return the rows of a table as they are shown."""
    return [
        [cell_text(value, table.digits.get(column)) for column, value in zip(table.columns, row, strict=True)]
        for row in table.rows
    ]


def is_numeric(table: Table) -> list[bool]:
    """Return which columns of a table hold numbers, which are set flush right; those may be text, such as "+1,024"."""
    columns = [list(column) for column in zip(*table_texts(table), strict=True)] or [[]] * len(table.columns)
    return [any(column) and all(map(_NUMBER.fullmatch, column)) for column in columns]


def claim_heading(item: Item) -> str:
    """Return what to call the claim of an item."""
    return "The idea" if "beyond the paper" in item.place else "What the paper says"


def played(item: Item, finding: Finding) -> str:
    """Return how much was simulated for an item."""
    if finding.n_steps:
        return f"{finding.n_steps:,} simulated steps"
    return "runs of the items above" if item.n_steps else "nothing simulated"


def duration(seconds: float) -> str:
    """Return a time as people read it.

    Examples
    --------
    >>> duration(3.14159), duration(75)
    ('3.1 s', '75 s')
    """
    return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
