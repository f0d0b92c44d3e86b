"""Copy an SQLite file while others write to it, and set one aside before another takes its name."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from equipoise.errors import StoreMismatch, StoreUnavailable
from equipoise.store.sqlite import connect_existing

_STEP_PAGES = 1_000
"""Pages copied between two looks at Ctrl-C and the progress."""
_SIDE_FILES = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file; its newest changes may be in the first one."""


def copy_file(source: Path, target: Path, progress: Callable[[int, int], None] | None = None) -> None:
    """Copy a database as it is at one moment; `progress` is called with the bytes copied and the bytes in all.

    The copy is made inside one read transaction. Without it, SQLite starts again whenever another process writes, and
    under load it never ends.
    """
    with (
        closing(connect_existing(source)) as reading,
        closing(sqlite3.connect(target, isolation_level=None)) as writing,
    ):
        page_bytes = reading.execute("PRAGMA page_size").fetchone()[0]

        def show(_status: int, n_left: int, n_pages: int) -> None:
            if progress is not None:
                progress((n_pages - n_left) * page_bytes, n_pages * page_bytes)

        reading.execute("BEGIN")
        reading.execute("SELECT 1 FROM sqlite_master").fetchone()  # only now the transaction has its snapshot
        reading.backup(writing, pages=_STEP_PAGES, progress=show)
        reading.execute("COMMIT")


def check_pages(path: Path) -> None:
    """Raise unless SQLite finds the file intact: pages, indexes and constraints."""
    with closing(connect_existing(path)) as connection:
        [(found,), *_] = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if found != "ok":
        raise StoreMismatch(f"{path} is damaged: {found}")


def make_one_file(path: Path) -> None:
    """Move everything that SQLite keeps beside a file into it; raise if another program has it open."""
    try:
        with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise
        raise StoreUnavailable(
            f"another program has {path} open",
            hint="stop every service and program that uses the store, then try again",
        ) from None


def require_unused(path: Path) -> None:
    """Raise if another program has a database open; a file that is damaged, or no database, counts as unused."""
    with suppress(sqlite3.Error):
        make_one_file(path)


def set_aside(path: Path) -> Path | None:
    """Rename a file and all that SQLite keeps beside it, and return the new name of the file, if there was one.

    What is left beside a file that was deleted is renamed too: SQLite would take it for a part of the next file.
    """
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}"
    kept = path.with_name(f"{path.name}.replaced-{stamp}")
    was_there = path.exists()
    for suffix in ("", *_SIDE_FILES):
        part = path.with_name(path.name + suffix)
        if part.exists():
            part.rename(kept.with_name(kept.name + suffix))
    return kept if was_there else None


def remove_side_files(path: Path) -> None:
    """Remove what SQLite left beside a file that is removed too."""
    for suffix in _SIDE_FILES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
