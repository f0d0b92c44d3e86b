"""Items to reproduce, what each one finds as plain data and as text, and the expected numbers it is compared with."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.paper.instances import Work

Cell = str | float | int | None
"""An entry of a table; numbers keep their digits until they are printed."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One thing to reproduce: a table or figure of the paper, or a study beyond it.

    Attributes
    ----------
    name : str
        As typed: "fig3-left".
    title : str
    place : str
        Where it is in the paper; "beyond the paper" where it is not.
    claim : str
        What the paper says about it, in our words.
    compute : function
        Computes it with the simulations of a `Work`; the result does not depend on the number of workers.
    n_steps : int
        Approximate number of steps the full reproduction simulates for it; sets its part of the progress bar.
    """

    name: str
    title: str
    place: str
    claim: str
    compute: Callable[[Work], Finding]
    n_steps: int = 0

    @property
    def claim_heading(self) -> str:
        """Heading of the claim in a report."""
        return "The idea" if "beyond the paper" in self.place else "What the paper says"

    def simulated(self, finding: Finding) -> str:
        """Return how much was simulated for its finding, in words."""
        if finding.n_steps:
            return f"{finding.n_steps:,} simulated steps"
        return "runs of the items above" if self.n_steps else "nothing simulated"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Our value of a number in `expected.toml`; the standard error is that of the mean over replications.

    With `as_printed` it must match the printed number, whatever is expected of the data in this package: for users who
    supply the paper's own data.
    """

    key: str
    value: float
    standard_error: float | None = None
    as_printed: bool = field(default=False, repr=False)

    @classmethod
    def mean_of(cls, key: str, values: ArrayLike) -> Measured:
        """Return the mean over replications, with its standard error.

        Examples
        --------
        >>> Measured.mean_of("fig3-left.at-50", [8.0, 9.0, 8.5, 8.5])
        Measured(key='fig3-left.at-50', value=8.5, standard_error=0.2041241452319315)
        """
        replications = np.asarray(values, dtype=float)
        error = replications.std(ddof=1) / np.sqrt(replications.size)
        return cls(key=key, value=float(replications.mean()), standard_error=float(error))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement of the paper about its curves, in our words, and whether it holds on our data.

    Attributes
    ----------
    key : str
        Short and stable, like "fig3-left.three-phases".
    text : str
        What is claimed.
    holds : bool
    evidence : str
        The numbers that decide, in words.
    """

    key: str
    text: str
    holds: bool
    evidence: str

    @property
    def verdict(self) -> str:
        """Either "holds" or "fails"."""
        return "holds" if self.holds else "fails"


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of the report.

    Attributes
    ----------
    key : str
        Unique within the item; also the name of its CSV file.
    title : str
    columns : list of str
    rows : list of lists, one entry per column
    digits : dict
        Format of the numbers of a column, such as ".4f"; ".4g" by default.
    note : str
    """

    key: str
    title: str
    columns: list[str]
    rows: list[list[Cell]]
    digits: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def texts(self) -> list[list[str]]:
        """The rows as shown."""
        digits = [self.digits.get(column) for column in self.columns]
        return [[cell_text(value, how) for value, how in zip(row, digits, strict=True)] for row in self.rows]

    @property
    def is_numeric(self) -> list[bool]:
        """For each column whether it is flush right: text such as "+1,024" counts as a number, too."""
        number = re.compile(r"(?:[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?%?|[-+]?inf|-)?")
        columns = list(zip(*self.texts, strict=True)) or [()] * len(self.columns)
        return [any(column) and all(map(number.fullmatch, column)) for column in columns]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure of the report: a Vega-Lite specification, rendered as HTML, PNG and SVG.

    Attributes
    ----------
    key : str
        Unique over all items; also the name of its files.
    caption : str
        What the figure shows.
    chart : dict
        Output of `to_dict` of an Altair chart.
    """

    key: str
    caption: str
    chart: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Everything an item found.

    Attributes
    ----------
    found : list of str
        What we find, one paragraph each.
    differs : list of str
        Where that differs from the paper, and why.
    n_steps : int
        Steps simulated for it.
    seconds : float
    """

    item: str
    found: list[str]
    differs: list[str] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    n_steps: int = 0
    seconds: float = 0.0

    @property
    def comparisons(self) -> list[Comparison]:
        """Our numbers beside the expected ones."""
        return compare(self.measured)

    @property
    def missed(self) -> list[str]:
        """Keys of numbers that are missed and of claims that fail."""
        return missed_keys(self.comparisons, self.claims)

    def to_json(self) -> str:
        """Return the finding as text that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Finding:
        """Return a finding that `to_json` wrote.

        Examples
        --------
        >>> finding = Finding(item="fig4", found=["as printed"], measured=[Measured(key="fig4.arm-1", value=0.007)])
        >>> Finding.from_json(finding.to_json()) == finding
        True
        """
        data = json.loads(text)
        parts = {"measured": Measured, "claims": Claim, "tables": Table, "figures": Figure}
        return cls(**data | {name: [part(**entry) for entry in data[name]] for name, part in parts.items()})


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A number to reproduce.

    Attributes
    ----------
    key : str
        The item and what it is: "fig4.arm-4".
    place : str
        Where the paper prints it: "Fig. 4".
    what : str
        The quantity, in our words.
    paper : float, optional
        As printed; None if the number was computed independently and the paper only draws it.
    value : float
        The number to compare with: the printed one, or the correct one where the printed one cannot be matched.
    tolerance : float
        Largest difference, besides four standard errors.
    reason : str
        Why that tolerance.
    replications : int
        Needed to measure it that accurately; 0 if it is computed exactly.
    differs : str
        Why the printed number cannot be matched; empty if it is.
    rounding : float
        Half a unit of the last digit printed, used when the paper's own data are compared with the printed number.
    """

    key: str
    place: str
    what: str
    paper: float | None = None
    value: float
    tolerance: float
    reason: str
    replications: int = 0
    differs: str = ""
    rounding: float = 0.0

    @property
    def item(self) -> str:
        """The item it belongs to."""
        return self.key.partition(".")[0]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Our number beside the expected one."""

    expected: Expected
    measured: Measured

    @property
    def allowed(self) -> float:
        """Largest difference that still matches: the tolerance plus four standard errors of our mean."""
        return self.expected.tolerance + 4 * (self.measured.standard_error or 0.0)

    @property
    def holds(self) -> bool:
        """Whether our number is close enough to the expected one."""
        return math.isfinite(self.measured.value) and abs(self.measured.value - self.expected.value) <= self.allowed

    @property
    def verdict(self) -> str:
        """Either "matches", "differs, as known" (from what the paper prints) or "missed"."""
        if not self.holds:
            return "missed"
        return "differs, as known" if self.expected.differs else "matches"

    @property
    def texts(self) -> dict[str, str]:
        """The numbers as shown, empty where there is none; ours has two digits more than the comparison needs."""
        paper, error = self.expected.paper, self.measured.standard_error
        return {
            "paper": "" if paper is None else f"{paper:.12g}",
            "expected": f"{self.expected.value:.12g}",
            "ours": f"{self.measured.value:.{decimals_for(error or self.expected.tolerance)}f}",
            "standard_error": "" if error is None else f"{error:.2g}",
            "tolerance": f"{self.expected.tolerance:.2g}",
        }


def missed_keys(comparisons: list[Comparison], claims: list[Claim]) -> list[str]:
    """Return the keys of numbers that are missed and of claims that fail."""
    numbers = [comparison.expected.key for comparison in comparisons if not comparison.holds]
    return numbers + [claim.key for claim in claims if not claim.holds]


@cache
def expected_numbers() -> dict[str, Expected]:
    """Return every expected number by its key.

    Examples
    --------
    >>> number = expected_numbers()["fig4.arm-4"]
    >>> number.place, number.paper, number.value
    ('Fig. 4', 0.0794, 0.078553)
    """
    text = files("equipoise.paper").joinpath("expected.toml").read_text(encoding="utf-8")
    # A printed number that can be matched appears only once in the file.
    numbers = [Expected(**{"value": table.get("paper")} | table) for table in tomllib.loads(text)["number"]]
    by_key = {number.key: number for number in numbers}
    if len(by_key) != len(numbers):
        raise InvalidInput("expected.toml: keys must be unique")
    return by_key


def compare(measured: list[Measured]) -> list[Comparison]:
    """Return our numbers beside the expected ones."""
    numbers = expected_numbers()
    return [Comparison(expected=_for_data(numbers[one.key], one), measured=one) for one in measured]


def _for_data(expected: Expected, measured: Measured) -> Expected:
    """Return the expected value; on the paper's own data, the printed number."""
    if not measured.as_printed or expected.paper is None:
        return expected
    reason = "half a unit of the last digit printed"
    return replace(expected, value=expected.paper, tolerance=expected.rounding, reason=reason, differs="")


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
