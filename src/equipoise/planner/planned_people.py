"""The people of a plan: how many come, when, and until when."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Self

import numpy as np

from equipoise import checks, quantities
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, within
from equipoise.planner.guesses import POSITIVE, Guess
from equipoise.planner.plan_parts import DAY, Part, checked_date

WEEK = 7
LONGEST_DAYS = 36_525
MOST_PEOPLE = 10**7
"""Most people that a plan may have: those of one simulated experiment are kept in memory."""


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput.of(name, "must be true or false", value)
    return value


def _people(name: str, value: Any) -> int:
    count = quantities.whole_number(value, name) if isinstance(value, str) else value
    return checks.whole_number(name, count, 1, MOST_PEOPLE)


@dataclass(frozen=True, kw_only=True)
class People(Part):
    """Who comes: how many a day, from when until when.

    Parameters
    ----------
    per_day : Guess, optional
        People on an average day.
    weekdays : seven numbers, optional
        How busy the days of the week are, Monday first, compared with each other; `per_day` is their average.
    ramp : duration, optional
        How long it takes at the start until all come, with steady growth.
    counts : sequence of float, optional
        People on each day, instead of `per_day`; enrolment ends with the last. A file names one with such a column.
    start : date, or datetime with a zone, optional
        The first day, which begins at midnight UTC or at the time given.
    until : date, optional
        The last day on which people are assigned.
    days : int, optional
        How many days people are assigned, instead of `until`.
    most : int, optional
        Nobody is assigned after this many people. Without `per_day`, this is all that is known: there is no calendar.
    exact : bool, default False
        Whether exactly so many come, evenly over the day, instead of a random (Poisson) number at random times.

    Examples
    --------
    >>> people = People(per_day="80 to 112", start="2027-03-01", until="2027-06-30")
    >>> people.enrolment_days, people.deadline.isoformat()
    (122, '2027-07-01T00:00:00+00:00')
    """

    _name = "people"
    _meant = dict.fromkeys(("people", "total", "number", "n", "max", "at_most", "units"), "most")
    per_day: Any = None
    weekdays: Any = None
    ramp: Any = None
    counts: Any = None
    start: Any = None
    until: Any = None
    days: Any = None
    most: Any = None
    exact: bool = False

    def __post_init__(self) -> None:
        with within("people"):
            self._check()

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return people from a table, or from their number."""
        if isinstance(given, (int, str)) and not isinstance(given, bool):
            return cls(most=given)
        return super().of(given)

    def _check(self) -> None:
        self._set(exact=_flag("exact", self.exact))
        if self.most is not None:
            self._set(most=_people("most", self.most))
        if self.per_day is not None:
            self._set(per_day=Guess.of("per_day", self.per_day, POSITIVE, at_ends=False))
        if self.counts is not None:
            self._set(counts=self._checked_counts())
        elif self.per_day is None and self.most is None:
            raise InvalidInput.of(
                "per_day", "is missing", hint="give per_day: how many people come a day, or most: how many in all"
            )
        if self.ramp is not None:
            ramp = quantities.duration_seconds(self.ramp, "ramp", needs_unit=True)
            ramp = checks.number_between("ramp", ramp, 0, LONGEST_DAYS * DAY, open_low=True)
            self._set(ramp=timedelta(seconds=ramp))
        if self.weekdays is not None:
            factors = checks.non_negative("weekdays", self.weekdays)
            if factors.size != WEEK or not factors.any():
                raise InvalidInput.of("weekdays", "must be seven numbers, Monday first, not all 0", self.weekdays)
            self._set(weekdays=tuple(factors.tolist()))
        for name in ("weekdays", "ramp", "start", "until", "days"):
            if getattr(self, name) is not None and not self.has_calendar:
                raise InvalidInput.of(name, "needs per_day: how many people come a day", getattr(self, name))
        self._check_dates()

    def _checked_counts(self) -> tuple[float, ...]:
        for name in ("per_day", "weekdays", "ramp"):
            if getattr(self, name) is not None:
                raise InvalidInput.of(
                    name, "must be left out where counts say how many come each day", getattr(self, name)
                )
        if isinstance(self.counts, str):
            raise InvalidInput.of(
                "counts", "must be numbers, one for each day; read_plan reads them from a file", self.counts
            )
        counts = checks.non_negative("counts", self.counts)
        if not counts.any():
            raise InvalidInput.of("counts", "must not all be 0: nobody would come")
        return tuple(counts.tolist())

    def _check_dates(self) -> None:
        start = self.start
        if isinstance(start, str):
            try:
                start = date.fromisoformat(start) if len(start) == len("2027-03-01") else datetime.fromisoformat(start)
            except ValueError:
                start = None
        if self.start is not None:
            is_local = isinstance(start, datetime) and start.tzinfo is None
            if not isinstance(start, date) or is_local:
                expected = "must be a date such as 2027-03-01, or a time with a zone such as 2027-03-01T08:00+01:00"
                raise InvalidInput.of("start", expected, self.start)
            self._set(start=start)
        if self.until is not None:
            until = checked_date("until", self.until)
            if self.days is not None:
                raise InvalidInput.of("days", "must be left out where until is given", self.days)
            if self.start is None:
                raise InvalidInput.of("start", "is missing: without it, until has no meaning", hint="or give days")
            if until < self.first_day:
                raise InvalidInput.of("until", f"must not be before the start, {self.first_day}", until.isoformat())
            self._set(until=until)
        if self.days is not None:
            days = quantities.whole_number(self.days, "days") if isinstance(self.days, str) else self.days
            self._set(days=checks.whole_number("days", days, 1, LONGEST_DAYS))
        found = self.enrolment_days
        if found is not None and found > LONGEST_DAYS:
            raise InvalidInput.of("until", "must be within 100 years of the start", self.until.isoformat())
        if self.counts is not None:
            stated = self.days if self.days is not None else None if self.until is None else found
            if stated is not None and stated > len(self.counts):
                name = "days" if self.days is not None else "until"
                words = f"must be within the {len(self.counts)} days that counts has"
                raise InvalidInput.of(name, words, self.days or self.until.isoformat())
            if not any(self.counts[:found]):
                raise InvalidInput.of("counts", f"must not all be 0 in the {found} days until the end")

    @property
    def has_calendar(self) -> bool:
        """Whether it is known when people come, not only how many."""
        return self.per_day is not None or self.counts is not None

    @property
    def first_day(self) -> date:
        """The first day; a Monday if it is not known."""
        start: date | None = self.start
        if start is None:
            return date(2001, 1, 1)
        return start.date() if isinstance(start, datetime) else start

    @property
    def starts_at(self) -> datetime | None:
        """When the first day begins."""
        if self.start is None or isinstance(self.start, datetime):
            return self.start
        return datetime.combine(self.start, time(), UTC)

    @property
    def enrolment_days(self) -> int | None:
        """How many days people are assigned, if dates or counts say that."""
        if self.days is not None:
            return int(self.days)
        if self.until is not None:
            return int((self.until - self.first_day).days) + 1
        return None if self.counts is None else len(self.counts)

    @property
    def deadline(self) -> datetime | None:
        """When the last day ends, if dates say that."""
        if self.starts_at is None or self.enrolment_days is None:
            return None
        return self.starts_at + timedelta(days=self.enrolment_days)

    def expected(self, per_day: float, days: int) -> FloatArray:
        """Return how many people are expected on each of the first days, at this pace."""
        if self.counts is not None:
            return np.array(self.counts[:days])
        found = np.full(days, float(per_day))
        if self.weekdays is not None:
            factors = np.array(self.weekdays)
            found *= (factors / factors.mean())[(self.first_day.weekday() + np.arange(days)) % WEEK]
        if self.ramp is not None:
            found *= np.minimum((np.arange(days) + 0.5) * DAY / self.ramp.total_seconds(), 1.0)
        return found

    def slower(self, factor: float) -> People:
        """Return the same with this part of the people a day; of the people in all, where nothing else is known."""
        if self.counts is not None:
            return dataclasses.replace(self, counts=tuple(factor * count for count in self.counts))
        if self.per_day is not None:
            return dataclasses.replace(self, per_day=self.per_day.times(factor))
        return dataclasses.replace(self, most=max(1, round(factor * self.most)))
