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

    @property
    def reads(self) -> frozenset[str]:
        """The fields of `Status` that are only filled in for rules that read them, as they take long to compute."""
        return frozenset()

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
    """Stop when every arm's mean, or every difference between arms, is known to within a half-width.

    The intervals hold together and at all times, as those of `status` and `compare`, so peeking is safe. Retired arms
    are ignored. While the numbers are provisional the rule is not met: see `Status.provisional`.

    Parameters
    ----------
    half_width : float
        The largest distance from an estimate to an end of its interval.
    of : {"arms", "differences"}
        Of each arm's mean; or of the differences between arms, from the control if there is one, otherwise of all
        pairs.

    Examples
    --------
    >>> Precision(half_width=0.03)
    Precision(half_width=0.03)
    """

    half_width: float
    of: str = "arms"

    def __post_init__(self) -> None:
        width = checks.number_between("half_width", self.half_width, 0, math.inf, open_low=True)
        self._set(half_width=width, of=checks.one_of("of", self.of, ("arms", "differences")))

    @property
    def reads(self) -> frozenset[str]:
        """The widest difference, if the rule is about differences."""
        return frozenset({"widest_difference"} if self.of == "differences" else ())

    def progress(self, status: Status) -> Progress:
        """Compare the widest interval with the goal; the value is None while some arm has no interval."""
        if self.of == "differences":
            widest, rule = status.widest_difference, "precision of differences"
        else:
            widths = [arm.half_width for arm in status.arms if arm.state != "retired"]
            known = [width for width in widths if width is not None]
            widest, rule = max(known) if known and len(known) == len(widths) else None, "precision"
        met = widest is not None and widest <= self.half_width and not status.provisional
        return Progress(rule, met, widest, self.half_width)


@dataclass(frozen=True, kw_only=True, repr=False)
class Decided(StoppingRule):
    """Stop when it is clear which arm to choose: one is left that may be best, or choosing costs little at most.

    Parameters
    ----------
    margin : float, default 0.0
        Also stop when the arm with the best mean is at most this much worse than the best one.

    Examples
    --------
    >>> Decided(margin=0.01)
    Decided(margin=0.01)
    """

    margin: float = 0.0

    def __post_init__(self) -> None:
        self._set(margin=checks.number_between("margin", self.margin, 0, math.inf))

    @property
    def reads(self) -> frozenset[str]:
        """The most that choosing can cost, if there is a margin."""
        return frozenset({"most_lost"} if self.margin else ())

    def progress(self, status: Status) -> Progress:
        """Return how many arms may still be best, or with a margin what choosing the best so far can cost."""
        one_left = len(status.may_be_best) == 1
        if not self.margin:
            return Progress("decided", one_left and not status.provisional, len(status.may_be_best), 1)
        lost = status.most_lost
        met = (one_left or (lost is not None and lost <= self.margin)) and not status.provisional
        return Progress("decided within a margin", met, lost, self.margin)
