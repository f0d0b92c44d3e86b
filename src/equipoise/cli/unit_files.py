"""Read files of units and rewards as people have them: a list, or a table with commas, semicolons or tabs.

A file is read whole and checked before anything is sent. What may mean two things is refused, since an assignment is
for good.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from equipoise.errors import EquipoiseError, InvalidInput, visible
from equipoise.files import name_of, number_in, read_text

UNIT, REWARD = "unit", "reward"
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
# fmt: off
_HEADER_WORDS = frozenset({
    "adresse", "code", "customer", "email", "ident", "identifier", "key", "kunde", "login", "mail", "member",
    "name", "nom", "nombre", "nome", "number", "participant", "patient", "person", "phone", "pupil", "schüler",
    "student", "subject", "teilnehmer", "unit", "user", "username",
})
# fmt: on
"""Words that are names of columns rather than units."""
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_MOST_LISTED = 20
"""Wrong cells that an error lists."""


class Row(NamedTuple):
    """A line of a file: the unit, and its reward or attributes if the file has them."""

    line: int
    unit: str
    reward: float | None = None
    attributes: dict[str, str] | None = None


class WrongCell(NamedTuple):
    """A cell that cannot be used."""

    line: int
    column: str
    expected: str
    got: str

    def __str__(self) -> str:
        got = repr(self.got) if self.got else "nothing"
        column = f", column {visible(self.column)}" if self.column else ""
        return f"line {self.line}{column}: expected {self.expected}; got {got}"


class UnitFile(NamedTuple):
    """The rows of a file, and the cells that are wrong."""

    source: str
    column: str | None
    """The column of the units; None if every line is a unit."""
    rows: list[Row]
    wrong: list[WrongCell]
    n_blank: int = 0
    """Lines without anything."""
    note: str | None = None
    """How something was read that could have been read differently."""

    def require_right(self, hint: str | None = None) -> None:
        """Raise an error that lists the wrong cells, if there are any."""
        if not self.wrong:
            return
        if len(self.wrong) == 1:
            raise EquipoiseError(f"{self.source}, {self.wrong[0]}; nothing is recorded", hint=hint)
        listed = [f"  {one}" for one in self.wrong[:_MOST_LISTED]]
        if len(self.wrong) > _MOST_LISTED:
            listed.append(f"  and {len(self.wrong) - _MOST_LISTED:,} more")
        count = f"{len(self.wrong):,} cells are not as expected; nothing is recorded"
        raise EquipoiseError("\n".join([f"{self.source}: {count}", *listed]), hint=hint)


class _Table(NamedTuple):
    """The cells of a text, by lines; its first line may be a header."""

    source: str
    delimiter: str
    text_lines: list[str]
    lines: list[tuple[int, list[str]]]
    n_blank: int

    @property
    def header(self) -> list[str]:
        return self.lines[0][1] if self.lines else []


def read_units(path: str, column: str | None = None, *, has_header: bool | None = None) -> UnitFile:
    """Read the units of a file, and the other columns of a table as their attributes.

    Without a `column`, a column `unit` is needed, or one unit per line. `has_header=False` says that every line is a
    unit, whatever it looks like.
    """
    table = _table(path)
    if has_header is False:
        if column is not None:
            raise InvalidInput("give --column or --no-header; got both")
        return _listed(_require_no_table(table))
    if column is None and UNIT not in map(str.lower, table.header):
        _require_plain_list(table)
        return _listed(table)
    wanted = column or UNIT
    place = _place(table, wanted, [wanted], "--column")
    names = [(at, name) for at, name in enumerate(table.header) if name and at != place]
    _require_different(table, [name for _, name in names])
    rows, wrong = [], []
    for line, cells in table.lines[1:]:
        bad = list(_too_many(table, line, cells))
        unit = _cell(cells, place)
        if not unit:
            bad.append(WrongCell(line, wanted, "a unit", ""))
        wrong += bad
        attributes = {name: cell for at, name in names if (cell := _cell(cells, at))}
        if not bad:
            rows.append(Row(line, unit, attributes=attributes or None))
    return UnitFile(table.source, table.header[place], rows, wrong, table.n_blank)


def read_rewards(path: str, column: str | None = None, reward_column: str | None = None) -> UnitFile:
    """Read units and rewards: the named columns, or `unit` and `reward`, or two columns without a header."""
    table = _table(path)
    body = table.lines[1:]
    wanted, paid = column or UNIT, reward_column or REWARD
    if column is reward_column is None and UNIT not in map(str.lower, table.header) and _starts_with_a_reward(table):
        place, reward_place, body = 0, 1, table.lines
        table = table._replace(lines=[(0, [UNIT, REWARD]), *body])
    else:
        place = _place(table, wanted, [wanted, paid], "--column")
        reward_place = _place(table, paid, [wanted, paid], "--reward-column")
    decimal_comma = _uses_decimal_commas(table, [_cell(cells, reward_place) for _, cells in body])
    rows, wrong = [], []
    for line, cells in body:
        bad = list(_too_many(table, line, cells))
        unit, text = _cell(cells, place), _cell(cells, reward_place)
        value = number_in(text.replace(",", ".") if decimal_comma and _WITH_COMMA.fullmatch(text) else text)
        if not unit:
            bad.append(WrongCell(line, wanted, "a unit", ""))
        if value is None:
            bad.append(WrongCell(line, paid, _number_expected(text), text))
        wrong += bad
        if not bad:
            rows.append(Row(line, unit, value))
    note = f"{table.source}: commas in rewards are read as decimal marks" if decimal_comma else None
    return UnitFile(table.source, wanted, rows, wrong, table.n_blank, note)


def _table(path: str) -> _Table:
    """Read a file as a table; the first line decides what separates its cells."""
    source, text = name_of(path), read_text(path)
    text_lines = text.splitlines()
    first_at = next((at for at, line in enumerate(text_lines) if line.strip()), 0)
    named = re.fullmatch(r"sep=(.)", text_lines[first_at].strip("\r\n "), re.IGNORECASE) if text_lines else None
    if named:  # Excel reads and writes this line; keep the number of lines
        text_lines[first_at] = ""
        text = "\n".join(text_lines)
    lines: list[tuple[int, list[str]]] = []
    n_blank = 0
    line_number = 1
    try:
        delimiter = named[1] if named else _delimiter(text_lines[first_at] if text_lines else "", source)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        for row in reader:
            line_number = reader.line_num
            cells = [cell.strip() for cell in row]
            if any(cells):
                lines.append((line_number, cells))
            else:
                n_blank += 1
    except csv.Error as error:
        raise EquipoiseError(
            f"{source}, line {line_number}: expected CSV; {error}", hint="look for a quotation mark that is not closed"
        ) from error
    return _Table(source, delimiter, text_lines, lines, n_blank)


def _delimiter(line: str, source: str) -> str:
    """Return what separates the cells of a line; a comma if there is one cell."""
    cells = {sign: [cell.strip().lower() for cell in next(csv.reader([line], delimiter=sign), [])] for sign in _NAMES}
    several = [sign for sign, found in cells.items() if len(found) > 1]
    with_unit = [sign for sign in several if UNIT in cells[sign]]
    if len(several) > 1 and len(with_unit) != 1:
        found = " and ".join(_NAMES[sign] for sign in several)
        raise EquipoiseError(
            f"{source}, line 1: expected cells separated by commas, semicolons or tabs; got {found}: {visible(line)}",
            hint="put quotation marks around cells that contain them",
        )
    return (with_unit or several or [","])[0]


def _listed(table: _Table) -> UnitFile:
    """Return every line that is not blank as a unit."""
    lines = enumerate(table.text_lines, start=1)
    rows = [Row(number, line.strip()) for number, line in lines if line.strip()]
    return UnitFile(table.source, None, rows, [], table.n_blank)


def _place(table: _Table, wanted: str, needed: Sequence[str], option: str) -> int:
    """Return the place of a column, which must be there once."""
    found = [at for at, name in enumerate(table.header) if name.lower() == wanted.strip().lower()]
    if len(found) == 1:
        return found[0]
    names = f"column{'s' * (len(needed) > 1)} {' and '.join(needed)}"
    got = f", each once; got {', '.join(map(visible, table.header))}" if table.header else "; got nothing"
    raise EquipoiseError(
        f"{table.source}, line {_first(table)}: expected a header with {names}{got}",
        hint=f"{option} NAME says which column it is" if table.header else None,
    )


def _require_different(table: _Table, names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1:
            raise EquipoiseError(
                f"{table.source}, line {_first(table)}: expected different columns; got {name!r} twice"
            )


def _require_plain_list(table: _Table) -> None:
    """Raise unless a file without a column `unit` is clearly one unit per line."""
    if len(table.header) > 1:
        raise EquipoiseError(
            f"{table.source} has {len(table.header)} columns, and none is called unit; got "
            f"{', '.join(map(visible, table.header))}",
            hint=f"say which one has the units, as in: --column {_quoted(table.header[0])}",
        )
    for line, cells in table.lines:
        if len(cells) > 1:
            raise EquipoiseError(
                f"{table.source}, line {line}: expected one unit per line, as in line {_first(table)}; got "
                f"{len(cells)} cells: {visible(table.delimiter.join(cells))}",
                hint="a table needs a header with a column unit; if every line is a unit, commas and all: --no-header",
            )
    if table.header and _looks_like_a_header(table.header[0], [cells[0] for _, cells in table.lines[1:]]):
        first = table.header[0]
        raise EquipoiseError(
            f"{table.source}, line {_first(table)}: {first!r} may be a unit or the name of the column",
            hint=f"if it is the name: --column {_quoted(first)}; if it is a unit: --no-header",
        )


def _require_no_table(table: _Table) -> _Table:
    """Raise if every line has the same number of cells, more than one: then --no-header means something else."""
    counts = {len(cells) for _, cells in table.lines}
    if len(counts) == 1 and counts != {1}:
        raise EquipoiseError(
            f"{table.source}: --no-header is for one unit per line; every line here has {counts.pop()} cells",
            hint="add a first line with the names of the columns, and call that of the units unit",
        )
    return table


def _looks_like_a_header(first: str, others: Sequence[str]) -> bool:
    words = re.split(r"[\W_]+", first.lower())
    named = [word for word in words if word == "id" or word in _HEADER_WORDS or word.removesuffix("s") in _HEADER_WORDS]
    if named and not re.search(r"[@\d]", first):
        return not any(named[0] in other.lower() for other in others)
    # A word above lines that all have a digit, or all an @, is hardly one of them.
    return len(others) > 1 and any(
        re.search(sign, first) is None and all(re.search(sign, other) for other in others) for sign in (r"\d", "@")
    )


def _starts_with_a_reward(table: _Table) -> bool:
    return len(table.header) == 2 and number_in(table.header[1]) is not None


def _too_many(table: _Table, line: int, cells: list[str]) -> Iterator[WrongCell]:
    """Yield an error for a line with more cells than columns, such as a number with a decimal comma gives."""
    n_columns = len(table.header)
    if any(cells[n_columns:]):
        yield WrongCell(line, "", f"{n_columns} cells, as in the header", table.delimiter.join(cells))


def _uses_decimal_commas(table: _Table, cells: Sequence[str]) -> bool:
    """Return whether commas in numbers are decimal marks, as spreadsheets write them where semicolons separate cells.

    Commas and points in one column are refused, and so are commas that may all separate thousands.
    """
    if table.delimiter == ",":
        return False
    with_comma = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    if not with_comma or any("." in cell and number_in(cell) is not None for cell in cells):
        return False
    return not all(_THOUSANDS.fullmatch(cell) for cell in with_comma)


def _number_expected(text: str) -> str:
    return "a number with a decimal point" if "," in text else "a number"


def _cell(cells: Sequence[str], place: int) -> str:
    return cells[place] if place < len(cells) else ""


def _first(table: _Table) -> int:
    return table.lines[0][0] if table.lines else 1


def _quoted(name: str) -> str:
    return shlex.quote(visible(name))
