"""What the parts of a plan share: they are checked when they are made, and read and written as mappings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from types import NoneType
from typing import Any, ClassVar, Self, cast

from equipoise import checks, quantities
from equipoise.errors import InvalidInput, UnknownName, within
from equipoise.planner.guesses import Guess, plain_duration

DAY = 86_400.0


class Part:
    """A part of a plan, which can be written as a mapping with the same keys."""

    _name: str
    _meant: ClassVar[Mapping[str, str]] = {}
    """Keys that people may write, with those that are meant."""

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the part that was given, or make it from a mapping; errors name keys that do not exist."""
        return given if isinstance(given, cls) else cls(**cls._checked_table(given, cls.keys()))

    @classmethod
    def _checked_table(cls, given: Any, allowed: Sequence[str]) -> dict[str, Any]:
        with within(cls._name):
            if not isinstance(given, (Mapping, NoneType)):
                raise InvalidInput(f"must be a table with {', '.join(allowed)}; got {given!r}")
            check_keys(given or {}, allowed, cls._meant)
        return dict(given or {})

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys that a mapping may have."""
        return tuple(field.name for field in dataclasses.fields(cast(Any, cls)) if field.init)

    def table(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data, to be read by `of`."""
        found = {}
        for field in dataclasses.fields(cast(Any, self)):
            value = getattr(self, field.name)
            is_required = field.default is dataclasses.MISSING
            if is_required or plain(value) != plain(field.default):
                found[field.name] = plain(value)
        return found

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def plain(value: Any) -> Any:
    """Return a value of a plan as plain data; dates stay dates, durations become text."""
    if isinstance(value, Guess):
        return value.plain()
    if isinstance(value, timedelta):
        return plain_duration(value.total_seconds())
    if isinstance(value, Part):
        return value.table()
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def check_keys(table: Mapping[str, Any], allowed: Sequence[str], meant: Mapping[str, str] | None = None) -> None:
    """Raise if a table has a key that is not allowed, and say which is meant."""
    import difflib

    for key in table:
        if key not in allowed:
            near = [meant[key]] if meant and key in meant else difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean {near[0]}?" if near else None
            raise UnknownName(f"unknown key {key!r}; allowed are {', '.join(allowed)}", hint=hint)


def amount(name: str, value: Any, *, open_low: bool = False) -> float | None:
    """Return an amount of at least 0, or None where there is none."""
    if value is None:
        return None
    return checks.number_between(name, quantities.fraction(value, name), 0, math.inf, open_low=open_low)


def checked_date(name: str, value: Any) -> date:
    """Return a date, given as one or as text; a datetime gives its own date."""
    try:
        found = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, date):
        raise InvalidInput.of(name, "must be a date such as 2027-06-30", value)
    return found.date() if isinstance(found, datetime) else found
