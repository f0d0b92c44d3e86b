"""Stopping rules, declared when an experiment is created; `status` reports them, nothing acts on them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from equipoise import checks
from equipoise.checks import LARGEST_COUNT
from equipoise.errors import InvalidInput
from equipoise.experiment.records import Progress, Status
from equipoise.serialization import Value


class StoppingRule(Value):
    """Base class of the stopping rules."""

    @abstractmethod
    def progress(self, status: Status) -> Progress:
        """Return the progress of the rule, given the status of the experiment."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Budget(StoppingRule):
    """Stop once this many units are assigned.

    Examples
    --------
    >>> Budget(units=500)
    Budget(units=500)
    """

    units: int

    def __post_init__(self) -> None:
        self._set(units=checks.whole_number("units", self.units, 1, LARGEST_COUNT))

    def progress(self, status: Status) -> Progress:
        """Compare assignments with the budget."""
        return Progress("budget", status.n_assigned >= self.units, status.n_assigned, self.units)


@dataclass(frozen=True, kw_only=True, repr=False)
class Deadline(StoppingRule):
    """Stop at an instant, given as a datetime with a zone or as ISO 8601 text.

    Examples
    --------
    >>> Deadline(at="2027-06-30T18:00:00+02:00")
    Deadline(at='2027-06-30T16:00:00+00:00')
    """

    at: str | datetime

    def __post_init__(self) -> None:
        instant: Any = self.at
        try:
            instant = datetime.fromisoformat(instant) if isinstance(instant, str) else instant
            if not isinstance(instant, datetime) or instant.tzinfo is None:
                raise ValueError("no zone")
            instant = instant.astimezone(UTC)
        except (ValueError, OverflowError):
            raise InvalidInput.of(
                "at", "must be an instant with a zone, such as 2027-06-30T18:00:00+02:00", self.at
            ) from None
        self._set(at=instant.isoformat())

    def progress(self, status: Status) -> Progress:
        """Compare the present with the deadline."""
        goal = str(self.at)
        return Progress("deadline", status.at >= datetime.fromisoformat(goal), status.at.isoformat(), goal)


@dataclass(frozen=True, kw_only=True, repr=False)
class Precision(StoppingRule):
    """Stop when every arm's mean is known to within a half-width; retired arms are ignored.

    The intervals are the confidence sequences of `status`, valid at all times at once: peeking is safe.

    Examples
    --------
    >>> Precision(half_width=0.03)
    Precision(half_width=0.03)
    """

    half_width: float

    def __post_init__(self) -> None:
        width = checks.number_between("half_width", self.half_width, 0, math.inf, open_low=True)
        self._set(half_width=width)

    def progress(self, status: Status) -> Progress:
        """Compare the widest interval with the goal; the value is None while some arm has no interval."""
        widths = [arm.half_width for arm in status.arms if arm.state != "retired"]
        known = [width for width in widths if width is not None]
        widest = max(known) if known and len(known) == len(widths) else None
        return Progress("precision", widest is not None and widest <= self.half_width, widest, self.half_width)
