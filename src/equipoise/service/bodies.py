"""Bodies as data: the JSON of the standard, where a name stands once in an object and no number is infinite."""

from __future__ import annotations

import json
from typing import Any

import msgspec


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
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise NotJson(_sentence(error)) from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    repeated = repeated_name(body)
    if repeated is not None:
        raise NotJson(f"the name {repeated!r} stands twice in one object")
    return data


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


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    text = str(error).removeprefix("JSON is malformed: ").split(" - at ")[0]
    return text[:1].lower() + text[1:]
