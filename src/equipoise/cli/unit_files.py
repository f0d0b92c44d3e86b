"""Files of units and of rewards: CSV with a header, or just one per line; what is wrong is told with its line."""

import csv
import io
from typing import NamedTuple

from equipoise.errors import EquipoiseError
from equipoise.files import CsvRows, name_of, number_in, read_text


class Row(NamedTuple):
    """A unit of a file, its reward or its attributes if the file has them, and where it stands."""

    line: int
    unit: str
    reward: float | None = None
    attributes: dict[str, str] | None = None


def read_units(path: str) -> tuple[str, list[Row]]:
    """Return how to call a file, and its units: the column `unit` of a CSV, or else every line that is not blank.

    The other columns of a CSV are attributes of the unit, as text; an empty cell is none.
    """
    source, text = name_of(path), read_text(path)
    header = _header(text)
    if "unit" not in map(str.lower, header):
        lines = enumerate(text.splitlines(), start=1)
        return source, [Row(number, line.strip()) for number, line in lines if line.strip()]
    names = [name for name in header if name and name.lower() != "unit"]
    rows = CsvRows(text, source, ("unit", *names))
    found = []
    for unit, *cells in rows:
        if not unit:
            raise rows.wrong("each row needs a unit; got none")
        attributes = {name: cell for name, cell in zip(names, cells, strict=True) if cell}
        found.append(Row(rows.line, unit, attributes=attributes or None))
    return source, found


def read_rewards(path: str) -> tuple[str, list[Row]]:
    """Return how to call a file, and its units with rewards: columns `unit` and `reward`, or two without a header."""
    source, text = name_of(path), read_text(path)
    header = _header(text)
    if "unit" not in map(str.lower, header) and len(header) == 2 and number_in(header[1]) is not None:
        # Without a header the columns are those; the line that is put before counts as line 0.
        text, shift = f"unit,reward\n{text}", -1
    else:
        shift = 0
    rows = CsvRows(text, source, ("unit", "reward"))
    found = []
    for unit, reward in rows:
        line, value = rows.line + shift, number_in(reward)
        if not unit:
            raise EquipoiseError(f"{source}, line {line}: each row needs a unit; got none")
        if value is None:
            got = f"reward must be a number; got {reward!r}" if reward else "reward is missing"
            raise EquipoiseError(f"{source}, line {line}: {got}")
        found.append(Row(line, unit, value))
    return source, found


def _header(text: str) -> list[str]:
    """Return the cells of the first line that is not blank."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    try:
        return [cell.strip() for cell in next(csv.reader(io.StringIO(first)), [])]
    except csv.Error:
        return []
