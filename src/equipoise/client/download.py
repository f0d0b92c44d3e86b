"""A table on its way from a service to a file, which is replaced only when the table is complete."""

from __future__ import annotations

import codecs
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.files import polars, replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Download:
    """What has arrived so far."""

    def __init__(self, form: str, write: Callable[[bytes], object]) -> None:
        self.n_bytes = 0
        self.n_rows = -1 if form == "csv" else 0  # a header is not a row
        self._write = write

    def write(self, chunk: bytes) -> None:
        """Write the next piece; no text in a table has line breaks, so lines are rows."""
        self.n_bytes += len(chunk)
        self.n_rows += chunk.count(b"\n")
        self._write(chunk)


@contextmanager
def downloading(target: Any, form: str, path: Path | None) -> Iterator[Download]:
    """Write to a path, or else to an open target, which gets text as it arrives and Parquet when it is complete.

    After an error, the file at the path is as it was before.
    """
    if path is None and form != "parquet":
        decode = codecs.getincrementaldecoder("utf-8")().decode
        yield Download(form, lambda chunk: target.write(decode(chunk)))
        return
    pl = polars() if form == "parquet" else None  # better missed now than after the download
    with ExitStack() as stack:
        if path is None:
            partial = Path(stack.enter_context(tempfile.TemporaryDirectory()), "table.parquet")
        else:
            partial = stack.enter_context(replacing(path))
        with partial.open("wb") as file:
            download = Download(form, file.write)
            yield download
        if pl is not None:
            download.n_rows = int(pl.scan_parquet(partial).select(pl.len()).collect().item())
        if path is None:
            with partial.open("rb") as table:
                shutil.copyfileobj(table, target)
