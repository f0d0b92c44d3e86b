"""A table on its way from a service to a file, which is replaced when all of it has come."""

from __future__ import annotations

import codecs
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from equipoise.errors import MissingExtra
from equipoise.experiment.export import export_target

if TYPE_CHECKING:
    from collections.abc import Mapping

ROWS = "X-Equipoise-Rows"
"""The header by which a service says how many rows a Parquet file has, if it does."""


class Download:
    """What is written so far; a context, at whose good end the file is there and after a bad one nothing is.

    Parameters
    ----------
    target : path or open file
        Where to; a file that is open gets text as it comes, and Parquet when it is complete.
    form : str or None
        One of the formats, or None to go by the path's ending.
    """

    def __init__(self, target: str | os.PathLike[str] | IO[str] | IO[bytes], form: str | None) -> None:
        self.form, path = export_target(target, form)
        self.n_bytes = 0
        self._target: Any = target if path is None else path
        self._n_lines = 0
        self._n_rows: int | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._partial: Path | None = None
        if path is not None:
            self._partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        elif self.form == "parquet":
            self._partial = Path(tempfile.mkdtemp()) / "table.parquet"
        self._file: Any = target

    def begin(self, headers: Mapping[str, str]) -> None:
        """Take note of what the service says of the table, before anything of it comes."""
        rows = headers.get(ROWS, "")
        self._n_rows = int(rows) if rows.isascii() and rows.isdigit() else None
        if self.form == "parquet" and self._n_rows is None:
            _polars()  # which will have to count them

    def write(self, chunk: bytes) -> None:
        """Write the next piece."""
        self.n_bytes += len(chunk)
        self._n_lines += chunk.count(b"\n")
        self._file.write(self._decode(chunk) if self._partial is None else chunk)

    def n_rows(self) -> int:
        """Return how many rows there are; no text in a table has line breaks, so lines are rows."""
        if self.form != "parquet":
            return self._n_lines - (self.form == "csv")
        if self._n_rows is None:
            pl = _polars()
            self._file.flush()
            self._n_rows = int(pl.scan_parquet(self._partial).select(pl.len()).collect().item())
        return self._n_rows

    def __enter__(self) -> Self:
        if self._partial is not None:
            self._file = self._partial.open("wb")
        return self

    def __exit__(self, kind: object, *details: object) -> None:
        if self._partial is None:
            return
        self._file.close()
        try:
            if kind is None and isinstance(self._target, Path):
                self._partial.replace(self._target)
            elif kind is None:
                with self._partial.open("rb") as table:
                    shutil.copyfileobj(table, self._target)
        finally:
            self._partial.unlink(missing_ok=True)
            if not isinstance(self._target, Path):
                self._partial.parent.rmdir()


def _polars() -> Any:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingExtra("Parquet needs the package polars", hint="pip install 'equipoise[frames]'") from error
    return pl
