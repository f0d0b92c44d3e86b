"""The numbers printed in the paper, and how close ours must come: `expected.toml`, read and compared."""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.paper.findings import Measured

FILE = "expected.toml"


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A number that must come out.

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
        What ours is compared with: the printed number, or the right one where the printed one cannot be matched.
    tolerance : float
        Largest difference, besides four standard errors.
    reason : str
        Why that tolerance.
    replications : int
        Needed to measure it so closely; 0 if it is computed exactly.
    differs : str
        Why the printed number cannot be matched; empty if it is.
    rounding : float
        Half a unit of the last digit printed, where the number is compared as printed for those with the paper's data.
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
    """Ours beside theirs."""

    expected: Expected
    measured: Measured

    @property
    def allowed(self) -> float:
        """Largest difference that is no miss: the tolerance and four standard errors of our mean."""
        return self.expected.tolerance + 4 * (self.measured.standard_error or 0.0)

    @property
    def holds(self) -> bool:
        """Whether ours is what it must be."""
        return math.isfinite(self.measured.value) and abs(self.measured.value - self.expected.value) <= self.allowed

    @property
    def verdict(self) -> str:
        """One word or two: "matches", "differs, as known" from what the paper prints, or "missed"."""
        if not self.holds:
            return "missed"
        return "differs, as known" if self.expected.differs else "matches"


@cache
def expected_numbers() -> dict[str, Expected]:
    """Return every expected number by its key.

    Examples
    --------
    >>> number = expected_numbers()["fig4.arm-4"]
    >>> number.place, number.paper, number.value
    ('Fig. 4', 0.0794, 0.078553)
    """
    text = files("equipoise.paper").joinpath(FILE).read_text(encoding="utf-8")
    numbers = [_expected(table) for table in tomllib.loads(text)["number"]]
    by_key = {number.key: number for number in numbers}
    if len(by_key) != len(numbers):
        raise InvalidInput(f"{FILE}: keys must be unique")
    return by_key


def _expected(table: dict[str, Any]) -> Expected:
    # A printed number that can be matched is written once.
    fields: dict[str, Any] = {"value": table.get("paper")} | table
    return Expected(**fields)


def compare(measured: list[Measured]) -> list[Comparison]:
    """Return our numbers beside the expected ones."""
    numbers = expected_numbers()
    return [Comparison(expected=_for_data(numbers[one.key], one), measured=one) for one in measured]


def _for_data(expected: Expected, measured: Measured) -> Expected:
    """Return what is expected of the paper's own data if the number was measured on them: what is printed."""
    if not measured.as_printed or expected.paper is None:
        return expected
    reason = "half a unit of the last digit printed"
    return replace(expected, value=expected.paper, tolerance=expected.rounding, reason=reason, differs="")
