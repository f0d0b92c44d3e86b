"""Validate names, units and free-form data: any Unicode text that both databases can keep, within limits."""

from __future__ import annotations

import json
import re
from typing import Any

from equipoise.errors import InvalidInput, visible

LONGEST_NAME = 200
LONGEST_UNIT = 500
LONGEST_REASON = 2_000
LONGEST_NOTE = 5_000
LARGEST_ATTRIBUTES = 10_000
LARGEST_METADATA = 100_000
"""Limits in characters; a unit at four bytes per character still fits into a PostgreSQL index."""
MOST_LISTED = 1_000
"""Most units on a page of a list."""
DEEPEST_DATA = 100
"""Deepest nesting of objects and lists: every JSON parser has a limit, Python's is about a thousand."""

# Control characters, NUL included, and lone surrogates, which are not valid Unicode text.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def checked_text(what: str, value: Any, longest: int, *, trimmed: bool = True) -> str:
    r"""Return text that is not empty or too long, has no control characters and, if `trimmed`, no blanks around it.

    Examples
    --------
    >>> checked_text("unit", "élève 42", 500)
    'élève 42'
    >>> checked_text("unit", "a\0b", 500)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: unit must be text without control characters; got 'a\x00b'
    """
    if type(value) is not str:
        hint = f"pass str({what})" if isinstance(value, int) else None
        raise InvalidInput.of(what, f"must be text; got {_short(repr(value))}", hint=hint)
    if not value:
        raise InvalidInput.of(what, "must not be empty")
    if len(value) > longest:
        raise InvalidInput.of(
            what, f"must have at most {longest} characters; got {len(value):,}, starting {_short(repr(value))}"
        )
    if _FORBIDDEN.search(value):
        raise InvalidInput.of(what, f"must be text without control characters; got {_short(ascii(value))}")
    stripped = value.strip()
    if not stripped:
        raise InvalidInput.of(what, f"must not be blank; got {_short(ascii(value))}")
    if trimmed and stripped != value:
        # 'a' and 'a ' look the same on a screen but would be two units.
        raise InvalidInput.of(what, f"must not begin or end with blanks; got {_short(ascii(value))}")
    return value


def checked_lines(what: str, value: Any, longest: int) -> str:
    r"""Return text of one line or several, checked like `checked_text`.

    Examples
    --------
    >>> checked_lines("text", "We take 'prize'.\nIt costs more.", 500)
    "We take 'prize'.\nIt costs more."
    """
    if type(value) is str and "\n" in value:
        checked_text(what, value.replace("\n", " "), longest, trimmed=False)
        return value
    return checked_text(what, value, longest, trimmed=False)


def refuse_dots(what: str, name: str) -> None:
    """Refuse "." and ".." as the name of something new.

    Browsers and proxies resolve them in a path, also when they are percent-encoded (RFC 3986, 6.2.2), so the HTTP API
    could never reach what has such a name. What was named so earlier stays readable.

    Examples
    --------
    >>> refuse_dots("unit", "..")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: unit must not be . or .., which no URL can hold; got '..'
    """
    if name in _DOTS:
        raise InvalidInput.of(what, "must not be . or .., which no URL can hold", name)


_DOTS = frozenset((".", ".."))


def checked_new_name(what: str, value: Any) -> str:
    """Return the name of a new experiment or arm, checked."""
    name = checked_text(what, value, LONGEST_NAME)
    refuse_dots(what, name)
    return name


def checked_unit(value: Any) -> str:
    """Return the name of a unit, checked."""
    return checked_text("unit", value, LONGEST_UNIT)


def checked_who(value: Any) -> str | None:
    """Return the author of a change, checked, or None if unknown."""
    if value is None or (type(value) is str and value in _SEEN):
        return value
    who = checked_text("who", value, LONGEST_NAME)
    if len(_SEEN) < _MOST_SEEN:
        _SEEN.add(who)
    return who


_SEEN: set[str] = set()
_MOST_SEEN = 1_000
"""Cache of validated names; a server sees the same few callers."""


def checked_data(what: str, value: Any, largest: int) -> dict[str, Any] | None:
    """Return an object that JSON can hold, or None; keys must be text and numbers finite."""
    if value is None:
        return None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput.of(what, f"must be a dictionary with text as keys; got {_short(repr(value))}")
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput.of(what, f"must be plain data that JSON can hold; {error}") from None
    except RecursionError:
        raise _too_deep(what) from None
    if len(text) > largest:
        raise InvalidInput.of(what, f"must take at most {largest:,} characters as JSON; got {len(text):,}")
    if text.count("{") + text.count("[") > DEEPEST_DATA and is_deeper(value, DEEPEST_DATA):
        raise _too_deep(what)
    return value


def is_deeper(value: Any, most: int) -> bool:
    """Return whether objects and lists are nested deeper than `most` levels.

    Examples
    --------
    >>> is_deeper({"a": [1, {}]}, 3), is_deeper({"a": [1, {}]}, 2)
    (False, True)
    """
    level = [value]
    for _ in range(most + 1):
        level = [one for one in level if isinstance(one, (dict, list, tuple))]
        if not level:
            return False
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one)]
    return True


def _too_deep(what: str) -> InvalidInput:
    return InvalidInput.of(what, f"must not be nested deeper than {DEEPEST_DATA}")


def _short(text: str) -> str:
    return visible(text if len(text) <= 60 else f"{text[:57]}...")
