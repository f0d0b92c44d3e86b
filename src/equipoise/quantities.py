"""Quantities as people write them: 10% for a share or a rate, 2 days for a duration, 1,000 for a number."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import timedelta
from decimal import Decimal
from typing import Any

from equipoise.errors import InvalidInput

_PERCENT = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*%\s*")
_THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?\s*")
_DURATION = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)[\s,]*(?:and\s+)?")
_SECONDS = {"s": 1, "sec": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hr": 3600, "hour": 3600}
_SECONDS |= {"d": 86_400, "day": 86_400, "w": 604_800, "week": 604_800}


def number(value: Any, parameter: str = "number") -> float:
    """Return a finite number, which may be text with commas between thousands.

    Examples
    --------
    >>> number("1,000"), number("2.5"), number(7)
    (1000.0, 2.5, 7.0)
    >>> number("1,5")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: number must be a number, such as 1000, 1,000 or 2.5; got '1,5'
    """
    found = _number(value)
    if found is None:
        raise InvalidInput.of(parameter, "must be a number, such as 1000, 1,000 or 2.5", value)
    return found


def whole_number(value: Any, parameter: str = "number") -> int:
    """Return a whole number, which may be text such as 1,000 or 1e5.

    Examples
    --------
    >>> whole_number("3,000"), whole_number("1e5"), whole_number(12)
    (3000, 100000, 12)
    """
    if type(value) is int:
        return value
    found = _number(value)
    if found is None or not found.is_integer():
        raise InvalidInput.of(parameter, "must be a whole number, such as 1000 or 1,000", value)
    return int(found)


def fraction(value: Any, parameter: str = "fraction") -> float:
    """Return a finite number, which may be text in percent: what has a range of its own, such as a difference of rates.

    Examples
    --------
    >>> fraction("12%"), fraction("0.1%"), fraction("0.12"), fraction(-0.5)
    (0.12, 0.001, 0.12, -0.5)
    """
    found = _fraction(value)
    if found is None:
        raise InvalidInput.of(parameter, "must be a number, or a percentage such as 10%", value)
    return found


def share(value: Any, parameter: str = "share") -> float:
    """Return a share in [0, 1], which may be text in percent.

    Examples
    --------
    >>> share("10%"), share(0.1), share("0.1")
    (0.1, 0.1, 0.1)
    >>> share(10)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: share must be from 0 to 1, or 0% to 100%; got 10
    hint: 10 in a hundred is 10%
    """
    found = _fraction(value)
    if found is None or not 0.0 <= found <= 1.0:
        raise InvalidInput.of(parameter, "must be from 0 to 1, or 0% to 100%", value, hint=of_a_hundred(value))
    return found


def of_a_hundred(value: Any) -> str | None:
    """Return the hint for a share that was written as a number of a hundred; None if it was not.

    Examples
    --------
    >>> of_a_hundred(70), of_a_hundred("70%"), of_a_hundred(0.7)
    ('70 in a hundred is 70%', None, None)
    """
    found = _number(value)
    return f"{found:g} in a hundred is {found:g}%" if found is not None and 1.0 < found <= 100.0 else None


def rate(value: Any, parameter: str = "rate") -> float:
    """Return the rate of a yes/no reward, in [0, 1], which may be text in percent.

    Examples
    --------
    >>> rate("12 %"), rate(0.12)
    (0.12, 0.12)
    """
    return share(value, parameter)


def spread_of_rate(rate: float) -> float:
    """Return the standard deviation of yes/no rewards with a rate.

    Examples
    --------
    >>> spread_of_rate(0.5), round(spread_of_rate(0.1), 6)
    (0.5, 0.3)
    """
    return math.sqrt(rate * (1.0 - rate))


def duration_seconds(value: Any, parameter: str = "duration", *, needs_unit: bool = False) -> float:
    """Return a duration in seconds from text with units, a number of seconds, or a timedelta.

    With `needs_unit` a number alone is refused, unless it is 0: whoever writes 7 may mean days.

    Examples
    --------
    >>> duration_seconds("2 days"), duration_seconds("36h"), duration_seconds("1 week"), duration_seconds(90)
    (172800.0, 129600.0, 604800.0, 90.0)
    >>> duration_seconds("1 day 12 hours"), duration_seconds("1.5 min"), duration_seconds(timedelta(hours=2))
    (129600.0, 90.0, 7200.0)
    >>> duration_seconds("2 moons", "window")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: window must be a duration such as 7 days, 36h or 90 (seconds); got '2 moons'
    >>> duration_seconds(7, "delay", needs_unit=True)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: delay must be a duration with its unit, such as 8h or 7 days; got 7
    hint: write "7 days", or "7 seconds"
    """
    if needs_unit:
        bare = _number(value)
        if bare:
            hint = f'write "{bare:g} days", or "{bare:g} seconds"'
            raise InvalidInput.of(parameter, "must be a duration with its unit, such as 8h or 7 days", value, hint=hint)
    if isinstance(value, timedelta):
        return value.total_seconds()
    seconds = _seconds(value) if isinstance(value, str) else _number(value)
    if seconds is None:
        examples = "8h or 7 days" if needs_unit else "7 days, 36h or 90 (seconds)"
        raise InvalidInput.of(parameter, f"must be a duration such as {examples}", value)
    return seconds


def duration_text(seconds: float) -> str:
    """Format a duration in the largest unit that divides it.

    Examples
    --------
    >>> duration_text(86_400), duration_text(5400), duration_text(0.5)
    ('1 day', '90 minutes', '0.5 seconds')
    """
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and math.fmod(seconds, size) == 0:
            return f"{seconds / size:,.0f} {unit}{'s' * (seconds != size)}"
    number = f"{seconds:,.0f}" if float(seconds).is_integer() else f"{seconds:g}"
    return f"{number} second{'s' * (seconds != 1)}"


def read_percentages(data: Any, keys: Collection[str]) -> Any:
    """Return the data of a file with the percentages under these keys as numbers, in tables and lists within it too.

    Everything else stays, also what is no number: whoever reads it says what it must be.

    Examples
    --------
    >>> read_percentages({"floor": ["2%", 0.1], "name": "50%", "policy": {"floor": "1%"}}, {"floor"})
    {'floor': [0.02, 0.1], 'name': '50%', 'policy': {'floor': 0.01}}
    """
    if isinstance(data, dict):
        return {
            key: _without_percent(value) if key in keys else read_percentages(value, keys)
            for key, value in data.items()
        }
    return [read_percentages(value, keys) for value in data] if isinstance(data, list) else data


def _without_percent(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_percent(one) for one in value]
    if isinstance(value, dict):  # one per arm, by name
        return {key: _without_percent(one) for key, one in value.items()}
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return value if found is None else _hundredth(found[1])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
        return None
    try:
        found = float(value.replace(",", "") if isinstance(value, str) and _THOUSANDS.fullmatch(value) else value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def _fraction(value: Any) -> float | None:
    found = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    return _number(value) if found is None else _hundredth(found[1])


def _hundredth(text: str) -> float:
    """Return the double next to a percentage; dividing by 100 would round twice."""
    return float(Decimal(text).scaleb(-2))


def _seconds(text: str) -> float | None:
    """Return the seconds of a text such as 1 day 12 hours; only a single number needs no unit."""
    text, place, total = text.strip(), 0, 0.0
    while place < len(text):
        part = _DURATION.match(text, place)
        if part is None:
            return None
        unit, place = part[2].lower(), part.end()
        size = _SECONDS.get(unit, _SECONDS.get(unit.removesuffix("s")))
        if not unit and part.span() == (0, len(text)):
            size = 1
        if size is None:
            return None
        total += float(part[1].replace(",", "")) * size
    return total if text else None
