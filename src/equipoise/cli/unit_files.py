"""Files of units and of rewards: CSV with a header, or just one per line; what is wrong is told with its line."""

import csv
import io
import math
import sys
from pathlib import Path
from typing import NamedTuple

from equipoise.arms.csv_rows import CsvRows, decoded
from equipoise.errors import EquipoiseError


class Row(NamedTuple):
    """A unit of a file, its reward if the file has rewards, and where it stands."""

    line: int
    unit: str
    reward: float | None = None


def read_units(path: str) -> tuple[str, list[Row]]:
    """Return how to call a file, and its units: the column `unit` of a CSV, or else every line that is not blank."""
    source, text = _read(path)
    if "unit" not in _header(text):
        lines = enumerate(text.splitlines(), start=1)
        return source, [Row(number, line.strip()) for number, line in lines if line.strip()]
    rows = CsvRows(text, source, ("unit",))
    found = []
    for (unit,) in rows:
        if not unit:
            raise rows.wrong("each row needs a unit; got none")
        found.append(Row(rows.line, unit))
    return source, found


def read_rewards(path: str) -> tuple[str, list[Row]]:
    """Return how to call a file, and its units with rewards: columns `unit` and `reward`, or two without a header."""
    source, text = _read(path)
    header = _header(text)
    if "unit" not in header and len(header) == 2 and _number(header[1]) is not None:
        # Without a header the columns are those; the line that is put before counts as line 0.
        text, shift = f"unit,reward\n{text}", -1
    else:
        shift = 0
    rows = CsvRows(text, source, ("unit", "reward"))
    found = []
    for unit, reward in rows:
        line, value = rows.line + shift, _number(reward)
        if not unit:
            raise EquipoiseError(f"{source}, line {line}: each row needs a unit; got none")
        if value is None:
            got = f"reward must be a number; got {reward!r}" if reward else "reward is missing"
            raise EquipoiseError(f"{source}, line {line}: {got}")
        found.append(Row(line, unit, value))
    return source, found


def _read(path: str) -> tuple[str, str]:
    source = "standard input" if path == "-" else path
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise EquipoiseError(f"cannot read {source}: {error.strerror or error}") from error
    return source, decoded(data, source)


def _header(text: str) -> list[str]:
    """Return the cells of the first line that is not blank, in small letters."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return [cell.strip().lower() for cell in next(csv.reader(io.StringIO(first)), [])]
    except csv.Error:
        return []


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
