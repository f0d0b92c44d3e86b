"""Places in a study file: what is wrong is blamed on one, and its line is found in the text."""

from __future__ import annotations

import re
from typing import Any

from equipoise.errors import InvalidInput

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
    """Return the place of the first of `keys` that a message names, or of its first word if no keys are known.

    A key in a table within, such as the power of an objective, is found too.
    """
    words = [{"floors": "floor"}.get(word, word) for word in re.findall(r"\w+", message.partition(";")[0])]
    if keys is None:
        return (*place, *words[:1])
    named: list[Place] = [(word,) for word in words if word in keys]
    named += [(key, word) for word in words for key, value in keys.items() if isinstance(value, dict) and word in value]
    return (*place, *named[0]) if named else place


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"[ \t]*(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([\w-]+))[ \t]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_OTHER = re.compile(r"[^,\]}\n#]*")


class _Reader:
    """Goes through valid TOML and notes the line of each table, key and element of a list."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Place, int] = {}
        self._counts: dict[Place, int] = {}

    def document(self) -> dict[Place, int]:
        table: Place = ()
        while self._next():
            if self._next() == "[":
                table = self._header()
            else:
                self._entry(table)
        return self.lines

    def _header(self) -> Place:
        """Read [a.b] or [[a.b]]; where a list of tables has the name, its last table is meant."""
        start, is_listed = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if is_listed else 1
        parts = self._keys()
        self.at = self.text.index("\n", self.at) if "\n" in self.text[self.at :] else len(self.text)
        place: Place = ()
        for k, part in enumerate(parts):
            place = (*place, part)
            if is_listed and k == len(parts) - 1:
                self._counts[place] = self._counts.get(place, -1) + 1
            if place in self._counts:
                self._note(place, start)
                place = (*place, self._counts[place])
            self._note(place, start)
        return place

    def _entry(self, table: Place) -> None:
        start, place = self.at, table
        for part in self._keys():
            place = (*place, part)
            self._note(place, start)
        self.at += 1  # the equals sign
        self._value(place)

    def _value(self, place: Place) -> None:
        kind = self._next()
        if kind in "[{":
            self._list(place) if kind == "[" else self._inline(place)
        else:
            found = _STRING.match(self.text, self.at) or _OTHER.match(self.text, self.at)
            self.at = found.end() if found else len(self.text)

    def _list(self, place: Place) -> None:
        self.at, k = self.at + 1, 0
        while self._next() not in ("]", ""):
            self._note((*place, k), self.at)
            self._value((*place, k))
            self._comma()
            k += 1
        self.at += 1

    def _inline(self, place: Place) -> None:
        self.at += 1
        while self._next() not in ("}", ""):
            self._entry(place)
            self._comma()
        self.at += 1

    def _comma(self) -> None:
        if self._next() == ",":
            self.at += 1

    def _keys(self) -> list[str]:
        """Read a key, dotted or not."""
        parts: list[str] = []
        while found := _KEY.match(self.text, self.at):
            parts.append(next(group for group in found.groups() if group is not None))
            self.at = found.end()
            if self.text[self.at : self.at + 1] != ".":
                break
            self.at += 1
        return parts

    def _next(self) -> str:
        """Return the next character that is not blank, or nothing at the end."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.text[self.at : self.at + 1]

    def _note(self, place: Place, at: int) -> None:
        self.lines.setdefault(place, self.text.count("\n", 0, at) + 1)


def line_of(place: Place, text: str) -> int | None:
    """Return the line of a place of valid TOML, or of the nearest place around it."""
    lines = _Reader(text).document()
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return None
