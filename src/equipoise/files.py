"""Read and write files: atomic replacement, UTF-8 text, CSV by column names, TOML; errors say where in the file."""

from __future__ import annotations

import codecs
import csv
import io
import math
import os
import sys
import tomllib
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra, UnknownName, visible

STDIN = "-"
"""The path that means standard input."""


def read_text(path: str | Path) -> str:
    """Return the text of a file, or of standard input for "-"."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise EquipoiseError(f"cannot read {path}: {error.strerror or error}") from error
    return decoded(data, name_of(path))


def name_of(path: str | Path) -> str:
    """Return the name of a file for errors."""
    return "standard input" if path == STDIN else str(path)


def decoded(data: bytes, source: str) -> str:
    """Decode the text of a file, or name the line that is not UTF-8; errors call the file `source`."""
    for start, what in _NO_TEXT.items():
        if data.startswith(start):
            raise EquipoiseError(f"{source}: expected text in UTF-8; got {what}", hint=_SAVE_AS_UTF8)
    try:
        return data.decode("utf-8-sig")  # spreadsheets write a byte order mark before the first column name
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        byte = data[error.start : error.start + 1]
        likely = byte.decode("cp1252", "ignore")
        meant = f", which is {likely!r} in Windows-1252 (cp1252), the likely encoding" if likely.isprintable() else ""
        message = f"{source}, line {line}: expected text in UTF-8; got the byte {byte[0]:#04x}{meant if likely else ''}"
        raise EquipoiseError(message, hint=_SAVE_AS_UTF8) from error


_SAVE_AS_UTF8 = "save the file in UTF-8; in Excel: Save As, CSV UTF-8"
_NO_TEXT = {
    codecs.BOM_UTF16_LE: "UTF-16, which Excel calls Unicode Text",
    codecs.BOM_UTF16_BE: "UTF-16, which Excel calls Unicode Text",
    b"PK\x03\x04": "a workbook of a spreadsheet, or another zip archive",
    b"\xd0\xcf\x11\xe0": "a workbook of an old version of Excel",
}
"""How files start that are no text in UTF-8, and what they are."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside `path` to write to; its file replaces `path` atomically if the block ends without an error.

    The new file is synced to disk before it replaces the old one, so that a power cut leaves one of the two, and their
    directory after that, so that the new one stays.
    """
    target = Path(path)
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        yield partial
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(target)
        _sync_directory(target.parent)
    finally:
        partial.unlink(missing_ok=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, and create its folder if needed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise EquipoiseError(f"cannot write {path}: {error.strerror or error}") from error


def _sync_directory(directory: Path) -> None:
    """Sync the names in a directory to disk, where the system can do that."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # Windows opens no directories; others may not be read
        return
    try:
        with suppress(OSError):  # nor do some file systems sync them
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def polars() -> Any:
    """Import and return polars, or say how to install it."""
    try:
        import polars as package
    except ImportError as error:
        raise MissingExtra("frames and Parquet files need polars", hint="pip install 'equipoise[frames]'") from error
    return package


class CsvRows:
    r"""The rows of CSV text below its header; iterating yields the stripped cells of the wanted columns.

    Columns are found in any order and case; other columns and blank lines are skipped. A missing cell is "".

    Examples
    --------
    >>> rows = CsvRows("Reward, arm\n\n0.5,a\n", "people.csv", ["arm", "reward"])
    >>> [(rows.line, cells) for cells in rows]
    [(3, ['a', '0.5'])]
    """

    def __init__(self, text: str, source: str, columns: Sequence[str]) -> None:
        self._reader = csv.reader(io.StringIO(text, newline=""))
        self._source, self._columns = source, tuple(columns)

    @property
    def line(self) -> int:
        """Number of the line read last, from 1."""
        return max(self._reader.line_num, 1)

    def wrong(self, message: str, *, hint: str | None = None) -> EquipoiseError:
        """Return an error about the line read last."""
        return EquipoiseError(f"{self._source}, line {self.line}: {message}", hint=hint)

    def __iter__(self) -> Iterator[list[str]]:
        names = [name.strip().lower() for name in self._columns]
        expected = f"expected a header with columns {', '.join(self._columns[:-1])} and {self._columns[-1]}"
        places: list[int] = []
        try:
            for row in self._reader:
                if not any(map(str.strip, row)):
                    continue
                if places:
                    yield [row[at].strip() if at < len(row) else "" for at in places]
                    continue
                header = [cell.strip() for cell in row]
                found = [cell.lower() for cell in header]
                if any(found.count(name) != 1 for name in names):
                    raise self.wrong(f"{expected}, each once; got {visible(','.join(header))}")
                places = [found.index(name) for name in names]
        except csv.Error as error:
            raise self.wrong(f"expected CSV; {error}", hint="look for a quotation mark that is not closed") from error
        if not places:
            raise self.wrong(f"{expected}; got nothing")


def number_in(text: str) -> float | None:
    """Parse the finite number in a cell or an option; return None if there is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def parse_toml(text: str, source: str) -> dict[str, Any]:
    """Parse TOML text; errors call the file `source`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EquipoiseError(f"{source}: expected TOML; {error}") from error


def check_keys(table: Any, allowed: Sequence[str], *, needed: Sequence[str] = ()) -> None:
    """Raise unless a table has all the needed keys and only allowed ones.

    Examples
    --------
    >>> check_keys({"sead": 7}, ["seed", "arms"])
    Traceback (most recent call last):
    ...
    equipoise.errors.UnknownName: unknown key 'sead'; allowed are seed, arms
    """
    if not isinstance(table, dict):
        raise InvalidInput(f"expected a table with {', '.join(allowed)}; got {table!r}")
    for key in table:
        if key not in allowed:
            raise UnknownName(f"unknown key {key!r}; allowed are {', '.join(allowed)}")
    for key in needed:
        if key not in table:
            raise InvalidInput.of(key, f"is missing; needed are {', '.join(needed)}")


@contextmanager
def errors_in(source: str, *, unless: Container[Any] = ()) -> Iterator[None]:
    """Report `InvalidInput` as an error in the file `source`, unless its key is in `unless`."""
    try:
        yield
    except InvalidInput as error:
        if error.parameter and error.parameter[0] in unless:
            raise
        raise EquipoiseError(f"{source}: {error.message}", hint=error.hint) from None
