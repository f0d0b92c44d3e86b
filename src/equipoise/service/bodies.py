"""Bodies as data: the JSON of the standard, where a name stands once in an object and no number is infinite."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from equipoise.errors import InvalidInput
from equipoise.experiment.names import DEEPEST_DATA, is_deeper

_DEEPEST = 2 * DEEPEST_DATA
"""More than free data may have with all that is around it, and less than any of those can take that read a body."""
_TOO_DEEP = f"it is nested deeper than {_DEEPEST}"
_MOST_NAMES = 100
"""More than any object of a request has, but for free data and floors of arms."""


class NotJson(ValueError):
    """A body that is no JSON; the text says where and why."""


def decoded_body(body: bytes) -> Any:
    """Return what a body says; raise `NotJson` if it says nothing, or two things at once.

    Examples
    --------
    >>> decoded_body(b'{"reward": 0.75}')
    {'reward': 0.75}
    >>> decoded_body(b'{"reward": 0, "reward": 1}')
    Traceback (most recent call last):
    ...
    equipoise.service.bodies.NotJson: the name 'reward' stands twice in one object
    """
    try:
        data = msgspec.json.decode(body)
        if may_be_deep(body) and is_deeper(data, _DEEPEST):
            raise NotJson(_TOO_DEEP)
        repeated = repeated_name(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(_sentence(error)) from None
    except RecursionError:
        raise NotJson(_TOO_DEEP) from None
    if repeated is not None:
        raise NotJson(f"the name {repeated!r} stands twice in one object")
    return data


def may_be_deep(body: bytes) -> bool:
    """Return whether a body has so many brackets that it may be nested too deeply, which few have."""
    return body.count(b"{") + body.count(b"[") > _DEEPEST


def repeated_name(body: bytes) -> str | None:
    """Return a name that stands twice in one object, for a body that is JSON: no two readers agree on what it means.

    Examples
    --------
    >>> repeated_name(b'{"unit": "a", "attributes": {"unit": "b"}}'), repeated_name(b'[{"a": 1, "a": 1}]')
    (None, 'a')
    """
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    found.append(name)
                    break
                seen.add(name)

    json.loads(body, object_pairs_hook=look)
    return found[0] if found else None


def check_size(data: Any, most_units: int) -> None:
    """Raise if what a body says is larger than its route may take; to find all that is wrong with it would take long.

    Examples
    --------
    >>> check_size({"units": ["ada", "bob", "eve"]}, most_units=2)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: a request may have at most 2 units; got 3
    """
    if not isinstance(data, dict):
        return
    objects = [data]
    for name in ("units", "rewards"):
        units = data.get(name)
        if isinstance(units, list):
            if len(units) > most_units:
                raise InvalidInput(f"a request may have at most {most_units:,} units; got {len(units):,}")
            objects += [one for one in units if isinstance(one, dict)]
    most = max(map(len, objects))
    if most > _MOST_NAMES:
        raise InvalidInput(f"an object may have at most {_MOST_NAMES} names where each has a meaning; got {most:,}")


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    text = str(error).removeprefix("JSON is malformed: ").split(" - at ")[0]
    return text[:1].lower() + text[1:]
