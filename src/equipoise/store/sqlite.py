"""The SQLite database, in a file or in memory: one writer at a time, durable before a transaction ends."""

from __future__ import annotations

import json
import logging
import random
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from equipoise.errors import Hint, StoreError, StoreMismatch, StoreUnavailable, VerificationFailed
from equipoise.store.database import RESTORE, Database, StoreSize, close_if_interrupted
from equipoise.store.schema import VERSION_TABLE, on_conflict
from equipoise.store.transaction import UNIT_COLUMNS, Transaction

log = logging.getLogger(__name__)

BUSY_SECONDS = 60.0
"""Seconds to wait for another process to finish writing, in one attempt at a transaction."""

_LOG = "equipoise_log"
"""Where a connection keeps which write-ahead log it has open."""
_FIND_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
_CHUNK_ROWS = 5_000
_INSERT_ROWS = 64
"""Most rows of one INSERT; SQLite accepts more, but without any gain."""
_CACHED_STATEMENTS = 512
"""Prepared statements that a connection caches: one INSERT for each number of rows, and some more."""


class SQLiteTransaction(Transaction):
    """A transaction over the sqlite3 module."""

    def execute(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows."""
        return self.driver.execute(statement, values).fetchall()  # type: ignore[no-any-return]

    def lock(self, experiment: int, seen: int) -> None:
        """Read the experiment's head once: we hold the file's lock, so it cannot change."""
        self._locked = self.head(experiment, seen)

    def unit_events(self, experiment: int, units: list[str]) -> Sequence[Sequence[Any]]:
        """Look up each unit by the index; the list is passed as one JSON value."""
        statement = (
            f"SELECT {UNIT_COLUMNS} FROM json_each(?) AS wanted CROSS JOIN events {self.database.by_unit} "  # noqa: S608
            "WHERE experiment = ? AND unit = wanted.value ORDER BY number"
        )
        return self.execute(statement, json.dumps(units), experiment)

    def put(self, table: sa.Table, experiment: int, rows: Sequence[Sequence[Any]]) -> None:
        """Insert many rows per statement: each waits for Python's lock (GIL), which is scarce on a busy server."""
        for start in range(0, len(rows), _INSERT_ROWS):
            some = rows[start : start + _INSERT_ROWS]
            self.driver.execute(_insertion(table, len(some)), [value for row in some for value in (experiment, *row)])

    def stream(self, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield plain tuples; rows with column names take twice the time."""
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
    """The parts that files and memory share."""

    attempts = 5  # five minutes for one lock: after that, something else is wrong
    # Without a hint, SQLite may scan the whole log, which it assumes to be ten events long.
    by_unit = "INDEXED BY one_event_of_a_kind_per_unit"
    by_change = "INDEXED BY changes_of_an_experiment"

    def _new_locks(self) -> None:
        super()._new_locks()
        self._lock = threading.RLock()

    @contextmanager
    def writing(
        self, experiment: int | None, units: list[str] | None = None, seen: int = 0, lock_seconds: float | None = None
    ) -> Iterator[SQLiteTransaction]:
        """Lock the file first: a reader that becomes a writer would fail if another has the lock."""
        engine = self.engine
        # Threads of this process wait for each other here; only one of them waits for other processes.
        with self._lock, _transaction(self, engine, writing=True) as transaction:
            if experiment is not None:
                transaction.lock(experiment, seen)
            yield transaction
            self._check_files(transaction.connection)

    @contextmanager
    def reading(self) -> Iterator[SQLiteTransaction]:
        """Read a snapshot."""
        with _transaction(self, self.engine, writing=False) as transaction:
            yield transaction
            self._check_files(transaction.connection)

    def size(self, transaction: Transaction) -> StoreSize:
        """Return the bytes of all pages."""
        sizes = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
        return StoreSize(int(transaction.execute(sizes)[0][0]))

    def check_integrity(self, transaction: Transaction) -> None:
        """Run SQLite's own check of every page, row and index."""
        found = [row[0] for row in transaction.execute("PRAGMA integrity_check(3)")]
        if found != ["ok"]:
            raise VerificationFailed(f"{self.shown_url} is damaged: {'; '.join(found)}", hint=RESTORE)

    def _check_files(self, connection: sa.Connection) -> None:
        """Raise if the files are no longer those that the connection has open; memory has none."""

    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Distinguish busy, full, read-only, damaged and foreign files."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        # An error about a damaged schema quotes it, and then it is the message that cannot be decoded.
        if _is_no_text(cause) or isinstance(cause, UnicodeDecodeError):
            return StoreMismatch(f"{self.shown_url} is damaged: it holds a text that is not UTF-8", hint=RESTORE), False
        code = getattr(cause, "sqlite_errorcode", None)
        if code is None:
            return None, False
        primary = code & 0xFF
        if primary == sqlite3.SQLITE_ERROR and str(cause).startswith("no such "):  # table, column or index
            return StoreMismatch(f"{self.shown_url} is damaged: {cause}", hint=RESTORE), False
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

    def forget_values(self, error: BaseException) -> None:
        """Remove the text that could not be decoded, the only value in any of SQLite's errors."""
        if _is_no_text(error.orig if isinstance(error, sa.exc.DBAPIError) else error):
            error.args = (_NO_TEXT,)


_NO_TEXT = "Could not decode to UTF-8"
"""How the sqlite3 module begins its error for damaged text; the error has no code."""


def _is_no_text(error: BaseException | None) -> bool:
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith(_NO_TEXT)


@contextmanager
def _transaction(database: SQLiteDatabase, engine: sa.Engine, *, writing: bool) -> Iterator[SQLiteTransaction]:
    """Begin a transaction, to read or to write."""
    with engine.connect() as connection:
        transaction = SQLiteTransaction(database, connection)
        driver = transaction.driver
        try:
            if driver.in_transaction:  # left when the rollback below was interrupted
                driver.execute("ROLLBACK")
            # Begin inside this block, since an interrupt may be raised as it returns.
            if writing:
                begin_writing(driver, BUSY_SECONDS)
            else:
                driver.execute("BEGIN")
            yield transaction
            driver.execute("COMMIT")
        except BaseException as error:
            close_if_interrupted(connection, error)
            # The connection may be closed, by us or by SQLAlchemy, which also rolls back.
            with suppress(sqlite3.ProgrammingError):
                if driver.in_transaction:  # a full disk rolls back on its own
                    driver.execute("ROLLBACK")
            raise


class FileDatabase(SQLiteDatabase):
    """An SQLite file."""

    def __init__(self, url: sa.URL, path: Path) -> None:
        super().__init__()
        self.path = path
        self.shown_url = f"sqlite:///{path}"
        self._url = url
        self._log = path.with_name(f"{path.name}-wal")
        """The write-ahead log: the newest changes."""
        self._file: tuple[int, int] | None = None
        """The file that was opened first."""

    def require_store(self) -> None:
        """Raise unless the file is there and holds a store; opening it would create it, or change its journal mode."""
        if not self.path.exists():
            raise StoreUnavailable(f"there is no store {self.path}", hint=Hint.NO_STORE)
        if self.path.stat().st_size == 0:
            raise StoreMismatch(f"there is no store in {self.path}, which is an empty file", hint=Hint.NO_STORE)
        try:
            with closing(connect_existing(self.path, "ro")) as connection:
                found = connection.execute(_FIND_TABLE, [VERSION_TABLE]).fetchone()
        except sqlite3.Error as error:
            failure, _ = self.failure(error)
            if isinstance(failure, StoreMismatch):
                raise failure from error
            return  # a log that only a writer can open, say: opening the store will tell
        if found is None:
            raise StoreMismatch(
                f"there is no store in {self.path}, which is a database of another program", hint=Hint.NO_STORE
            )

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return the inode of the file."""
        return ("sqlite", self._file)

    def size(self, transaction: Transaction) -> StoreSize:
        """Return the bytes of the pages and of the write-ahead log."""
        try:
            in_log = self._log.stat().st_size
        except FileNotFoundError:
            in_log = 0
        return super().size(transaction)._replace(log=in_log)

    def _check_files(self, connection: sa.Connection) -> None:
        """Check before each answer that the paths still lead to the files: an open file outlives its name."""
        self._check_file()
        if _place(self._log) != connection.info[_LOG]:
            raise StoreUnavailable(
                f"the file {self._log} was deleted or replaced while {self.path} was open; nothing is read or written",
                hint="stop every program that uses the store, which saves what they have still open; then start again "
                "and verify every experiment",
            )

    def _check_file(self) -> None:
        if _place(self.path) != self._file:
            raise StoreUnavailable(
                f"the file {self.path} was deleted or replaced after it was opened; nothing is read or written",
                hint="put it back, or open the store again to use what is there now",
            )

    def discard_old_pages(self) -> None:
        """Write the WAL into the file and empty it, unless somebody reads just now; the next close does it then."""
        with self.engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA busy_timeout = 0")
            try:
                driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.OperationalError:
                log.info("the write-ahead log could not be emptied just now")
            finally:
                driver.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")

    def _before_connecting(self, *_: Any) -> None:
        """Keep SQLite from creating a new file in case ours was deleted."""
        if self._file is not None:
            self._check_file()

    def _after_connecting(self, connection: Any, record: Any) -> None:
        self._file = self._file or _place(self.path)
        _set_up(connection, record)
        record.info[_LOG] = _place(self._log)

    def _new_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            self._url,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",  # this module begins and ends transactions itself
            pool_size=8,
            max_overflow=-1,
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "cached_statements": _CACHED_STATEMENTS},
        )
        sa.event.listen(engine, "do_connect", self._before_connecting)
        sa.event.listen(engine, "connect", self._after_connecting)
        return engine


def _place(path: Path) -> tuple[int, int] | None:
    """Return the device and inode of a file, if it exists."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect_existing(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """Connect to a file that must exist, and leave its settings alone.

    With mode "ro" not even SQLite's own housekeeping changes it; then what SQLite keeps beside it may stay there.
    """
    url = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(url, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


class MemoryDatabase(SQLiteDatabase):
    """A private in-memory database, lost when closed; one connection, used by one thread at a time."""

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
        """The engine; raises if the database was closed, and its data lost."""
        if self._closed:
            raise StoreError("this store in memory is closed, and what was in it is gone", hint="use a file to keep it")
        return super().engine

    def close(self) -> None:
        """Close the connection and lose all data."""
        super().close()
        self._closed = True
        self._kept.end()

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return the id of this object."""
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
    """A connection that SQLAlchemy cannot close, as it would after Ctrl-C: all data would be lost."""

    def close(self) -> None:
        """Do nothing."""

    def end(self) -> None:
        """Close the connection."""
        super().close()


def _set_up(connection: Any, _record: Any) -> None:
    """Configure a new connection: readers never wait (WAL), and a commit is on disk (FULL)."""
    cursor = connection.cursor()
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA secure_delete = ON")  # what is erased or deleted must not stay in free space
    cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # opens the write-ahead log
    cursor.close()


_FIRST, _SHRINK, _SHORTEST, _RESTING = 0.005, 0.7, 0.0002, 0.002
_RESTING_AFTER = 1.0
"""Seconds after which the other process must be busy for long, so that frequent retries only burn CPU time."""


def begin_writing(driver: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that holds the lock; raise SQLite's "busy" after `patience` seconds.

    SQLite's own backoff retries less and less often, so the process that has waited longest is the least likely to get
    the lock: of eight busy processes, one waited for 4 s. This retries more and more often; the longest wait was 0.1 s.
    Ctrl-C interrupts it.
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
    """Return how long to sleep, with jitter, so that waiting processes do not retry in step."""
    typical = _RESTING if waited > _RESTING_AFTER else max(_SHORTEST, _FIRST * _SHRINK**attempt)
    return typical * random.uniform(0.5, 1.5)  # noqa: S311
