"""Read columns of numbers, names and times from data frames, mappings, rows or CSV files; errors name the row."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.attributes import array_of, is_missing, number_text
from equipoise.checks import LARGEST_REWARD
from equipoise.errors import EquipoiseError, InvalidInput, visible
from equipoise.files import decoded, number_in

_TOLERANCE = 1e-6
"""By how much probabilities may differ that should be equal, or should add up to 1: files hold rounded ones."""


class DataTable:
    """A table with one row per decision.

    Parameters
    ----------
    source : pandas, polars or Arrow table, mapping of columns, sequence of mappings, or path of a CSV file
        What to read from.
    columns, may_have : sequence of str
        The columns that must be there, and those that are read if they are.

    Examples
    --------
    >>> table = DataTable({"arm": ["pie", "line"], "reward": [0.5, "much"]}, ["arm", "reward"])
    >>> table.rewards("reward", None)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: column 'reward' must be a number or empty; got 'much' (row 1)
    """

    def __init__(self, source: Any, columns: Sequence[str], may_have: Sequence[str] = ()) -> None:
        names: Any
        self._lines: list[int] | None = None
        if isinstance(source, (str, os.PathLike)):
            source = self._read_csv(Path(source))
        elif hasattr(source, "collect"):  # a lazy frame of polars
            source = source.collect()
        elif isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
            names = dict.fromkeys(name for row in source for name in row)
            source = {name: [row.get(name) for row in source] for name in names}
        names = getattr(source, "column_names", None) or getattr(source, "columns", None)
        if names is None and isinstance(source, Mapping):
            names = list(source)
        if names is None:
            raise InvalidInput.of("frame", "must be a data frame or a mapping of columns", type(source).__name__)
        self.columns = [str(name) for name in names]
        self._arrays: dict[str, NDArray[Any]] = {}
        for name in [*columns, *(name for name in may_have if name in self.columns)]:
            if self.columns.count(name) != 1:
                problem = "has no column" if name not in self.columns else "has several columns"
                got = visible(", ".join(self.columns)) or "none"
                hint = None
                if len(self.columns) == 1 and ";" in self.columns[0]:
                    hint = "separate the columns by commas, not by semicolons"
                elif alike := [one for one in self.columns if one.casefold() == name.casefold() and one != name]:
                    hint = f"name the column as the frame does: {alike[0]!r}"
                raise InvalidInput(f"the frame {problem} {name!r}; its columns are {got}", hint=hint)
            self._arrays[name] = array_of(source[name])
        sizes = {array.shape for array in self._arrays.values()}
        if len(sizes) > 1 or any(array.ndim != 1 for array in self._arrays.values()):
            lengths = ", ".join(f"{name} has {len(array)}" for name, array in self._arrays.items())
            raise InvalidInput(f"all columns must have one value per row; got: {lengths}")
        if sizes in (set(), {(0,)}):
            raise InvalidInput.of("frame", "must have at least one row", 0)

    def __contains__(self, column: str) -> bool:
        return column in self._arrays

    def _read_csv(self, path: Path) -> dict[str, list[str | None]]:
        """Read a CSV file as texts, None for empty cells, and keep the lines of its rows."""
        if path.is_dir():
            raise InvalidInput.of("frame", "must be a data frame, or the path of a CSV file", str(path))
        try:
            text = decoded(path.read_bytes(), str(path))
        except OSError as error:
            raise EquipoiseError(f"cannot read {path}: {error.strerror or error}") from error
        reader = csv.reader(io.StringIO(text, newline=""))
        try:
            header = [cell.strip() for cell in next(reader, [])]
            rows = [(reader.line_num, row) for row in reader if any(map(str.strip, row))]
        except csv.Error as error:
            raise EquipoiseError(f"{path}, line {reader.line_num}: expected CSV; {error}") from error
        twice = [name for name in header if header.count(name) > 1]
        if not header or twice:
            raise InvalidInput(f"{path}, line 1: expected a header of different names; got {','.join(header)!r}")
        self._lines = [line for line, _ in rows]
        return {
            name: [(row[at].strip() or None) if at < len(row) else None for _, row in rows]
            for at, name in enumerate(header)
        }

    def where(self, row: int) -> str:
        """Return how to name a row in an error."""
        return f"row {row}" if self._lines is None else f"line {self._lines[row]}"

    def refuse(self, wrong: NDArray[np.bool_], column: str, expected: str) -> None:
        """Raise if any row is wrong, and name the first."""
        if wrong.any():
            row = int(wrong.argmax())
            value = self._arrays[column][row : row + 1].tolist()[0]
            got = number_text(value) if isinstance(value, float) else repr(value)
            raise InvalidInput(f"column {column!r} {expected}; got {got} ({self.where(row)})")

    def values(self, column: str) -> Any:
        """Return a column for an attribute: of numbers where a file has nothing else in it."""
        array = self._arrays[column]
        if self._lines is None:
            return array
        numbers = [None if text is None else number_in(text) for text in array]
        is_number = all(number is not None or text is None for number, text in zip(numbers, array, strict=True))
        return numbers if is_number else array

    def numbers(self, column: str) -> FloatArray:
        """Return a column of numbers, NaN where it is empty; truth values are 0 and 1."""
        array = self._arrays[column]
        if array.dtype.kind in "fiub":
            return array.astype(np.float64)
        found = np.full(array.size, np.nan)
        for row, value in enumerate(array.tolist()):
            if is_missing(value):
                continue
            try:
                if isinstance(value, (str, bytes)) and self._lines is None:
                    raise ValueError
                found[row] = float(value)
            except (TypeError, ValueError, OverflowError):
                raise InvalidInput(
                    f"column {column!r} must be a number or empty; got {value!r} ({self.where(row)})",
                    hint=_number_hint(value),
                ) from None
        return found

    def rewards(self, column: str, reward_range: tuple[float | None, float | None] | None) -> FloatArray:
        """Return a column of rewards, NaN where there is none."""
        rewards = self.numbers(column)
        self.refuse(np.abs(rewards) > LARGEST_REWARD, column, f"must be finite and at most {LARGEST_REWARD:g} in size")
        low, high = (None, None) if reward_range is None else reward_range
        if low is not None:
            self.refuse(rewards < low, column, f"must be at least {low:g}, as reward_range says")
        if high is not None:
            self.refuse(rewards > high, column, f"must be at most {high:g}, as reward_range says")
        if np.isnan(rewards).all():
            raise InvalidInput(f"column {column!r} must have at least one reward; it is empty")
        return rewards

    def arms(self, column: str, names: Sequence[str] | None) -> tuple[tuple[str, ...], IntArray]:
        """Return the names of the arms, those given or else in order of appearance, and the arm of each row."""
        items = self._arrays[column].tolist()
        rows: dict[Any, int] = {}
        for row, item in enumerate(items):
            if item not in rows:
                rows[item] = row
        label = {item: "" if is_missing(item) else _name(item) for item in rows}
        for item, row in rows.items():
            if not label[item]:
                raise InvalidInput(f"column {column!r} must name the arm of every row; got none ({self.where(row)})")
        found = tuple(dict.fromkeys(label.values())) if names is None else _distinct(names)
        place = {name: i for i, name in enumerate(found)}
        for item, row in rows.items():
            if label[item] not in place:
                known = ", ".join(found[:12]) + (", ..." if len(found) > 12 else "")
                raise InvalidInput(f"column {column!r} must be one of {known}; got {item!r} ({self.where(row)})")
        if len(found) < 2:
            raise InvalidInput(f"column {column!r} must name at least two arms to compare; got only {found[0]!r}")
        code = {item: place[name] for item, name in label.items()}
        return found, np.array([code[item] for item in items], np.int64)

    def shares(self, columns: Mapping[str, str | float], arms: Sequence[str]) -> FloatArray:
        """Return the probabilities of all arms: an array (n, K), from a column or a number for each."""
        if set(columns) != set(arms):
            raise InvalidInput(
                f"probabilities must name every arm once: {', '.join(arms)}; got {', '.join(map(str, columns))}"
            )
        n_rows = len(next(iter(self._arrays.values())))
        found = np.empty((n_rows, len(arms)))
        for i, arm in enumerate(arms):
            column = columns[arm]
            if isinstance(column, str):
                found[:, i] = self.numbers(column)
                inside = (found[:, i] >= 0) & (found[:, i] <= 1 + _TOLERANCE)
                self.refuse(~inside, column, "must be a probability")
            else:
                found[:, i] = checked_share(arm, column)
        total = found.sum(axis=1)
        wrong = np.abs(total - 1) > _TOLERANCE
        if wrong.any():
            row = int(wrong.argmax())
            raise InvalidInput(f"probabilities must add up to 1 in every row; got {total[row]:.9g} ({self.where(row)})")
        return found

    def chances(self, column: str) -> FloatArray:
        """Return the probabilities of the chosen arms."""
        chances = self.numbers(column)
        inside = (chances > 0) & (chances <= 1 + _TOLERANCE)
        self.refuse(~inside, column, "must be in (0, 1], as it is the probability of the chosen arm")
        return np.minimum(chances, 1.0)

    def times(self, column: str) -> FloatArray:
        """Return a column of times in seconds since 1970, NaN where it is empty."""
        array = self._arrays[column]
        if array.dtype.kind in "fiu":
            seconds = array.astype(np.float64)
        elif array.dtype.kind == "M":
            since = array.astype("datetime64[us]")
            seconds = np.where(np.isnat(since), np.nan, since.astype(np.int64) / 1e6)
        else:
            seconds = np.array([self._seconds(column, row, value) for row, value in enumerate(array.tolist())])
        self.refuse(np.isinf(seconds), column, "must be a time")
        return seconds

    def _seconds(self, column: str, row: int, value: Any) -> float:
        if is_missing(value):
            return np.nan
        try:
            if isinstance(value, str):
                number = None if self._lines is None else number_in(value)
                if number is not None:
                    return number
                value = datetime.fromisoformat(value)
            if isinstance(value, datetime):
                return value.timestamp() if value.tzinfo else value.replace(tzinfo=UTC).timestamp()
            if isinstance(value, date):
                return datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp()
            if not isinstance(value, bool):
                return float(value)
        except (TypeError, ValueError):
            pass
        raise InvalidInput(
            f"column {column!r} must be a time, as 2026-01-31T08:00 or in seconds since 1970; "
            f"got {value!r} ({self.where(row)})"
        )


def same_chances(first: FloatArray, second: FloatArray) -> NDArray[np.bool_]:
    """Return where two columns of probabilities agree."""
    return np.abs(first - second) <= _TOLERANCE


def checked_share(arm: str, share: Any) -> float:
    """Return an arm's constant probability."""
    if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 <= share <= 1:
        raise InvalidInput(f"probabilities must name a column or a number in [0, 1]; got {share!r} for arm {arm!r}")
    return float(share)


def _number_hint(value: Any) -> str | None:
    """Return what to write instead of a text that people take for a number."""
    text = str(value).strip().casefold()
    if text in ("yes", "no", "true", "false", "y", "n"):
        return "write 1 for yes and 0 for no"
    return "write numbers with a decimal point" if text.count(",") == 1 and text.replace(",", "").isdecimal() else None


def _name(item: Any) -> str:
    """Return the name of an arm; one that is a number is named as a whole number where it is one."""
    return number_text(item) if isinstance(item, float) else str(item).strip()


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    found = tuple(str(name).strip() for name in names)
    if isinstance(names, str) or not found or len(set(found)) < len(found) or not all(found):
        raise InvalidInput.of("arms", "must be different names", names)
    return found
