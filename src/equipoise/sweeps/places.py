"""Places in a study file: what is wrong is blamed on one, and its line is found in the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value, such as ("policies", 0, "forcing")."""


class Misplaced(Exception):
    """Something is wrong at a place of the configuration; the file is named by who knows it."""

    def __init__(self, place: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place, self.message, self.hint = place, message, hint


def blaming(place: Place, call: Any, keys: dict[str, Any] | None = None) -> Any:
    """Return what a call returns; blame invalid input on the key that the message starts with, or on the place."""
    try:
        return call()
    except InvalidInput as error:
        raise Misplaced(named_place(place, keys, error.message), error.message, error.hint) from error


def named_place(place: Place, keys: dict[str, Any] | None, message: str) -> Place:
    """Return the place of the first of `keys` that a message names, or of its first word if no keys are known."""
    words = [{"floors": "floor"}.get(word, word) for word in re.findall(r"\w+", message.partition(";")[0])]
    if keys is None:
        return (*place, *words[:1])
    named = [word for word in words if word in keys]
    return (*place, *named[:1])


_HEADER = re.compile(r"\s*\[(\[)?\s*([\w.\"'-]+)\s*\]")
_ENTRY = re.compile(r"\s*([\w.\"'-]+)\s*=")
_QUIET = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*")


def _lines(text: str) -> dict[Place, int]:
    """Return the line of each table and key of valid TOML; keys inside inline tables are left to their owner."""
    lines: dict[Place, int] = {}
    table: Place = ()
    counts: dict[str, int] = {}
    depth = 0
    for number, raw in enumerate(text.split("\n"), start=1):
        line = _QUIET.sub("''", raw)
        if depth == 0:
            header, entry = _HEADER.match(line), _ENTRY.match(raw)
            if header:
                table = tuple(_parts(header[2]))
                if header[1]:
                    counts[header[2]] = counts.get(header[2], -1) + 1
                    table = (*table, counts[header[2]])
                elif table and table[0] in counts:
                    table = (table[0], counts[str(table[0])], *table[1:])
                lines.setdefault(table, number)
                lines.setdefault(table[:1], number)
                continue
            if entry:
                lines.setdefault((*table, *_parts(entry[1])), number)
        depth += line.count("[") + line.count("{") - line.count("]") - line.count("}")
    return lines


def _parts(dotted: str) -> Iterator[str]:
    return (part.strip().strip("\"'") for part in dotted.split("."))


def line_of(place: Place, text: str) -> int | None:
    """Return the line of a place of valid TOML, or of the nearest place around it."""
    lines = _lines(text)
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return None
