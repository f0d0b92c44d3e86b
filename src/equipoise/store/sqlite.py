"""SQLite: one file, one writer at a time, durable before a transaction ends; or the same in memory."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from equipoise.errors import StoreError, StoreMismatch, StoreUnavailable
from equipoise.store.database import Busy, Database

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_PIECE = 5_000
_MOST_ROWS = 64
"""Rows of one statement; SQLite takes more, but gains nothing by it."""
_STATEMENTS = 512
"""Prepared statements that a connection keeps: one for each number of rows, and some more."""


class SQLiteDatabase(Database):
    """What files and memory have in common."""

    attempts = 5  # five minutes of waiting for one lock: something else is wrong by then
    # Left alone, SQLite may prefer to walk through a whole log, which it takes to be ten events long.
    by_unit = "INDEXED BY one_event_of_a_kind_per_unit"

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.RLock()

    def _forget_locks(self) -> None:
        self._lock = threading.RLock()

    @contextmanager
    def writing(self, experiment: int | None, *, at_once: bool = False) -> Iterator[sa.Connection]:
        """Take the lock of the file first: a reader that turns into a writer would fail when it is held."""
        engine = self.engine
        # Threads of this process wait for each other here, and only one of them for other processes.
        with self._lock, engine.connect() as connection, _transaction(connection, BUSY_SECONDS):
            yield connection

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read a snapshot."""
        with self.engine.connect() as connection, _transaction(connection):
            yield connection

    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Tell busy, full, read-only, broken and foreign files apart."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        code = getattr(cause, "sqlite_errorcode", None)
        if code is None:
            return None, False
        primary = code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return StoreUnavailable(
                f"another process has been writing to {self.shown_url} for {self.attempts * BUSY_SECONDS:g} seconds",
                hint="find the process that holds the file, or use PostgreSQL for many writers",
            ), True
        if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return StoreMismatch(f"{self.shown_url} is no SQLite database, or is damaged: {cause}"), False
        if primary in (
            sqlite3.SQLITE_FULL,
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_PERM,
        ):
            return StoreUnavailable(
                f"{self.shown_url} cannot be read or written: {cause}",
                hint="see that the disk has room and the file and its directory may be written, then try again",
            ), False
        return None, False

    def execute(self, connection: sa.Connection, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Go past SQLAlchemy."""
        return _driver(connection).execute(statement, values).fetchall()

    def unit_events(
        self, connection: sa.Connection, experiment: int, units: list[str], columns: str
    ) -> Sequence[Sequence[Any]]:
        """Look every unit up in the index of units; a list goes in as one value."""
        statement = (
            f"SELECT {columns} FROM json_each(?) AS wanted CROSS JOIN events {self.by_unit} "  # noqa: S608
            "WHERE experiment = ? AND unit = wanted.value ORDER BY number"
        )
        return self.execute(connection, statement, json.dumps(units), experiment)

    def put(
        self,
        connection: sa.Connection,
        table: sa.Table,
        experiment: int,
        rows: Sequence[Sequence[Any]],
        *,
        replace: bool,
    ) -> None:
        """Insert rows, many with one statement: each statement waits for Python's lock, which a server is short of."""
        driver, start = _driver(connection), 0
        while start < len(rows):
            size = min(len(rows) - start, _MOST_ROWS)
            values = [value for row in rows[start : start + size] for value in (experiment, *row)]
            driver.execute(_insertion(table, replace, size), values)
            start += size

    def stream(self, connection: sa.Connection, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield plain tuples; rows that know their columns' names take twice the time."""
        with closing(_driver(connection).execute(statement, values)) as cursor:
            while piece := cursor.fetchmany(_PIECE):
                yield piece


class FileDatabase(SQLiteDatabase):
    """An SQLite file."""

    answers_at_once = True

    def __init__(self, url: sa.URL, path: Path) -> None:
        super().__init__()
        self.path = path
        self.shown_url = f"sqlite:///{path}"
        self._url = url
        self._file: tuple[int, int] | None = None
        """Device and number of the file that was opened first."""

    @contextmanager
    def writing(self, experiment: int | None, *, at_once: bool = False) -> Iterator[sa.Connection]:
        """See before each commit that what is written can still be found: an open file outlives its name."""
        with self._writing_at_once() if at_once else super().writing(experiment) as connection:
            yield connection
            self._check_file()

    @contextmanager
    def _writing_at_once(self) -> Iterator[sa.Connection]:
        """Take the lock of the file alone: that of our threads could be given back by the one that took it only."""
        if not self._lock.acquire(blocking=False):
            raise Busy  # one of them is at it, or waits for another process
        self._lock.release()
        with self.engine.connect() as connection, _transaction(connection, 0.0):
            yield connection

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return what tells the file from all others."""
        return ("sqlite", self._file)

    def _check_file(self) -> None:
        try:
            found = self.path.stat()
        except OSError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._file:
            raise StoreUnavailable(
                f"the file {self.path} was deleted or replaced after it was opened; nothing was written",
                hint="put it back, or open the store again to use what is there now",
            )

    def _before_connecting(self, *_: Any) -> None:
        """Do not let SQLite make a new file in the place of one that is gone."""
        if self._file is not None:
            self._check_file()

    def _after_connecting(self, connection: Any, record: Any) -> None:
        found = self.path.stat()
        self._file = self._file or (found.st_dev, found.st_ino)
        _set_up(connection, record)

    def _new_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            self._url,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",  # transactions begin and end where this module says so
            pool_size=8,
            max_overflow=-1,
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "cached_statements": _STATEMENTS},
        )
        sa.event.listen(engine, "do_connect", self._before_connecting)
        sa.event.listen(engine, "connect", self._after_connecting)
        return engine


class MemoryDatabase(SQLiteDatabase):
    """A database of this process alone, gone when it is closed; one connection, used by one thread at a time."""

    shown_url = "memory:"
    _closed = False

    def __init__(self) -> None:
        super().__init__()
        self._kept = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=_Kept)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Wait for the one connection."""
        with self._lock, super().reading() as connection:
            yield connection

    @property
    def engine(self) -> sa.Engine:
        """The engine, unless what it held is gone."""
        if self._closed:
            raise StoreError("this store in memory is closed, and what was in it is gone", hint="use a file to keep it")
        return super().engine

    def close(self) -> None:
        """Forget everything."""
        super().close()
        self._closed = True
        self._kept.end()

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return what tells this database from all others."""
        return ("memory", id(self))

    def _new_engine(self) -> sa.Engine:
        return sa.create_engine(
            "sqlite://",
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",
            poolclass=sa.pool.StaticPool,
            creator=lambda: self._kept,
        )


class _Kept(sqlite3.Connection):
    """A connection that SQLAlchemy cannot close, which it does after Ctrl-C: all that it holds would be gone."""

    def close(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Close it."""
        super().close()


@contextmanager
def _transaction(connection: sa.Connection, patience: float | None = None) -> Iterator[None]:
    """Read; or write, with so much patience for others that do."""
    driver = _driver(connection)
    try:
        if driver.in_transaction:  # what an interrupt of the rollback below has left
            driver.execute("ROLLBACK")
        # In here, since an interrupt may be raised as it returns.
        if patience is None:
            driver.execute("BEGIN")
        else:
            begin_writing(driver, patience)
        yield
        driver.execute("COMMIT")
    except BaseException:
        # A connection that SQLAlchemy was interrupted in is closed by it, and the transaction undone with that.
        with suppress(sqlite3.ProgrammingError):
            # A full disk ends the transaction by itself; then there is nothing to roll back.
            if driver.in_transaction:
                driver.execute("ROLLBACK")
        raise


def _driver(connection: sa.Connection) -> sqlite3.Connection:
    """Return the connection below SQLAlchemy's, which takes as long for a statement as SQLite itself."""
    driver: Any = connection.connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _set_up(connection: Any, _record: Any) -> None:
    """Prepare a new connection: readers never wait (WAL), and what is committed is on the disk (FULL)."""
    cursor = connection.cursor()
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


@cache
def _insertion(table: sa.Table, replace: bool, n_rows: int) -> str:
    names = [column.name for column in table.columns]
    row = f"({', '.join('?' * len(names))})"
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {', '.join([row] * n_rows)}"  # noqa: S608
    return statement + (on_conflict(table) if replace else "")


def on_conflict(table: sa.Table) -> str:
    """Return the clause that puts a row in the place of one with the same key; both databases understand it."""
    keys = [column.name for column in table.primary_key]
    others = [column.name for column in table.columns if column.name not in keys]
    changes = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"


BUSY_SECONDS = 60.0
"""How long to wait for another process to finish writing, before a transaction is begun anew."""

_FIRST, _SHRINK, _SHORTEST, _RESTING = 0.005, 0.7, 0.0002, 0.002
_RESTING_AFTER = 1.0
"""Seconds after which somebody must be doing something long, and asking often only burns time."""


def begin_writing(driver: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that holds the lock; raise SQLite's "busy" after so many seconds.

    SQLite's own waiting asks ever more rarely, so that whoever has waited longest is the least likely to get the lock:
    of eight busy processes one waited for 4 s. Here it asks ever more often; the longest wait was 0.1 s. And Ctrl-C
    ends it.
    """
    driver.execute("PRAGMA busy_timeout = 0")
    started = time.monotonic()
    try:
        for attempt in count():
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                waited = time.monotonic() - started
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= patience:
                    raise
            else:
                return
            time.sleep(_pause(attempt, waited))
    finally:
        driver.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def _pause(attempt: int, waited: float) -> float:
    """Return how long to sleep; by chance, so that no two that wait keep step."""
    typical = _RESTING if waited > _RESTING_AFTER else max(_SHORTEST, _FIRST * _SHRINK**attempt)
    return typical * random.uniform(0.5, 1.5)  # noqa: S311
