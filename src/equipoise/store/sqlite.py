"""SQLite: one file, one writer at a time, durable before a transaction ends; or the same in memory."""

from __future__ import annotations

import json
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from equipoise.errors import StoreError, StoreMismatch, StoreUnavailable
from equipoise.store.database import Database, close_if_interrupted
from equipoise.store.schema import on_conflict
from equipoise.store.transaction import HEAD, UNIT_COLUMNS, Head, Transaction

BUSY_SECONDS = 60.0
"""Seconds to wait for another process to finish writing, in one attempt at a transaction."""

_CHUNK_ROWS = 5_000
_INSERT_ROWS = 64
"""Rows of one INSERT; SQLite takes more, but gains nothing by it."""
_CACHED_STATEMENTS = 512
"""Prepared statements that a connection keeps: one INSERT for each number of rows, and some more."""


class SQLiteTransaction(Transaction):
    """A transaction in the words of the sqlite3 module."""

    def execute(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows."""
        return self.driver.execute(statement, values).fetchall()  # type: ignore[no-any-return]

    def lock(self, experiment: int) -> None:
        """Read the experiment's head once: the file's lock is taken, so it cannot change."""
        [row] = self.execute(HEAD, experiment)
        self._locked = Head(*row)

    def unit_events(self, experiment: int, units: list[str]) -> Sequence[Sequence[Any]]:
        """Look up each unit by its index; the list is passed as one value."""
        statement = (
            f"SELECT {UNIT_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN events {self.database.by_unit} "  # noqa: S608
            "WHERE experiment = ? AND unit = wanted.value ORDER BY number"
        )
        return self.execute(statement, json.dumps(units), experiment)

    def put(self, table: sa.Table, experiment: int, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows with one statement: each waits for Python's lock, which a busy server is short of."""
        for start in range(0, len(rows), _INSERT_ROWS):
            some = rows[start : start + _INSERT_ROWS]
            self.driver.execute(_insertion(table, len(some)), [value for row in some for value in (experiment, *row)])

    def stream(self, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield plain tuples; rows that know their columns' names take twice the time."""
        with closing(self.driver.execute(statement, values)) as cursor:
            while chunk := cursor.fetchmany(_CHUNK_ROWS):
                yield chunk


@cache
def _insertion(table: sa.Table, n_rows: int) -> str:
    names = table.columns.keys()
    row = f"({', '.join('?' * len(names))})"
    values = ", ".join([row] * n_rows)
    return f"INSERT INTO {table.name} ({', '.join(names)}) VALUES {values}{on_conflict(table)}"  # noqa: S608


class SQLiteDatabase(Database):
    """What files and memory have in common."""

    attempts = 5  # five minutes of waiting for one lock: something else is wrong by then
    # Without a hint, SQLite may scan a whole log, which it takes to be ten events long.
    by_unit = "INDEXED BY one_event_of_a_kind_per_unit"

    def _new_locks(self) -> None:
        super()._new_locks()
        self._lock = threading.RLock()

    @contextmanager
    def writing(
        self, experiment: int | None, units: list[str] | None = None, *, wait: bool = True
    ) -> Iterator[SQLiteTransaction]:
        """Lock the file first: a reader that turns into a writer would fail if another has the lock."""
        engine, lock = self.engine, self._lock
        if not wait:
            # The thread that commits could not release the lock, so only see that no other thread has it.
            if not lock.acquire(blocking=False):
                raise BlockingIOError("another thread is writing, or waits for another process")
            lock.release()
        # Threads of this process wait for each other here, and only one of them for other processes.
        with lock if wait else nullcontext(), _transaction(self, engine, BUSY_SECONDS if wait else 0.0) as transaction:
            if experiment is not None:
                transaction.lock(experiment)
            yield transaction
            self._check_file()

    @contextmanager
    def reading(self) -> Iterator[SQLiteTransaction]:
        """Read a snapshot."""
        with _transaction(self, self.engine) as transaction:
            yield transaction

    def _check_file(self) -> None:
        """Raise if the file is not the one that was opened; there is none in memory."""

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


@contextmanager
def _transaction(
    database: SQLiteDatabase, engine: sa.Engine, patience: float | None = None
) -> Iterator[SQLiteTransaction]:
    """Read; or write, if there is `patience` to wait for other writers, in seconds."""
    with engine.connect() as connection:
        transaction = SQLiteTransaction(database, connection)
        driver = transaction.driver
        try:
            if driver.in_transaction:  # left by an interrupt of the rollback below
                driver.execute("ROLLBACK")
            # In this block, since an interrupt may be raised as it returns.
            if patience is None:
                driver.execute("BEGIN")
            else:
                begin_writing(driver, patience)
            yield transaction
            driver.execute("COMMIT")
        except BaseException as error:
            close_if_interrupted(connection, error)
            # Closing a connection, by us or by SQLAlchemy, rolls back too.
            with suppress(sqlite3.ProgrammingError):
                if driver.in_transaction:  # a full disk ends a transaction by itself
                    driver.execute("ROLLBACK")
            raise


class FileDatabase(SQLiteDatabase):
    """An SQLite file."""

    can_prepare = True

    def __init__(self, url: sa.URL, path: Path) -> None:
        super().__init__()
        self.path = path
        self.shown_url = f"sqlite:///{path}"
        self._url = url
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that was opened first."""

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return the inode of the file."""
        return ("sqlite", self._file)

    def _check_file(self) -> None:
        """See before each commit that the file can still be found: an open file outlives its name."""
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
        """Do not let SQLite create a new file where one is gone."""
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
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "cached_statements": _CACHED_STATEMENTS},
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
    def reading(self) -> Iterator[SQLiteTransaction]:
        """Wait for the one connection."""
        with self._lock, super().reading() as transaction:
            yield transaction

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
        """Return the number of this object."""
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
    """A connection that SQLAlchemy cannot close, as it does after Ctrl-C: all data would be gone."""

    def close(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Close it."""
        super().close()


def _set_up(connection: Any, _record: Any) -> None:
    """Prepare a new connection: readers never wait (WAL), and what is committed is on the disk (FULL)."""
    cursor = connection.cursor()
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


_FIRST, _SHRINK, _SHORTEST, _RESTING = 0.005, 0.7, 0.0002, 0.002
_RESTING_AFTER = 1.0
"""Seconds after which another process must be doing something long, and trying often only burns time."""


def begin_writing(driver: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that holds the lock; raise SQLite's "busy" after `patience` seconds.

    SQLite's own backoff tries ever more rarely, so the process that has waited longest is the least likely to get the
    lock: of eight busy processes one waited for 4 s. This tries ever more often; the longest wait was 0.1 s. And Ctrl-C
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
    """Return how long to sleep, with jitter, so that no two waiting processes keep step."""
    typical = _RESTING if waited > _RESTING_AFTER else max(_SHORTEST, _FIRST * _SHRINK**attempt)
    return typical * random.uniform(0.5, 1.5)  # noqa: S311
