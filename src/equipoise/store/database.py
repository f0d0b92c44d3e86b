"""Choose a database by its URL; the interface that SQLite and PostgreSQL implement."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from equipoise.errors import InvalidInput, MissingExtra, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from equipoise.store.transaction import Transaction

RESTORE = "restore the last backup that verifies, and keep the damaged store to look into"
"""What to do about damage."""

_HINT = "use sqlite:///file.db, postgresql://user@host/database or memory:"


class StoreSize(NamedTuple):
    """Bytes of a store."""

    data: int
    log: int | None = None
    """Of the write-ahead log beside an SQLite file."""


class Database(ABC):
    """One database: its connections, transactions and errors."""

    shown_url: str
    attempts: int
    """How often to try a transaction before raising its error."""
    locks_rows = False
    """Whether different experiments can be written concurrently."""
    by_unit = ""
    """Index hint to put after the table `events` in a query by unit."""
    by_change = ""
    """The same in a query for the events without a unit."""
    checks_clock = True
    """Whether to compare the machine's clock with the server's; not for a store with a clock of the caller's own."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._engine: sa.Engine | None = None
        self._new_locks()

    def _new_locks(self) -> None:
        """Create new locks; after a fork, the old ones may be held by threads that exist only in the parent."""
        self._starting = threading.Lock()

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process; connections inherited through a fork are left to the parent."""
        if self._pid != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._pid = os.getpid()
            self._new_locks()
        if self._engine is not None:
            return self._engine
        with self._starting:
            if self._engine is None:
                self._engine = self._new_engine()
            return self._engine

    @abstractmethod
    def _new_engine(self) -> sa.Engine: ...

    def close(self) -> None:
        """Close all connections; using the database again opens new ones."""
        if self._engine is not None:
            # Closing connections inherited through a fork would end the parent's.
            self._engine.dispose(close=self._pid == os.getpid())

    @abstractmethod
    def writing(
        self, experiment: int | None, units: list[str] | None = None, seen: int = 0, lock_seconds: float | None = None
    ) -> AbstractContextManager[Transaction]:
        """Begin a transaction that holds the lock of an experiment (None: of the schema and of new experiments).

        It commits durably when the block ends, and rolls back if the block raises. Naming the `units` to be looked up,
        and the event `seen` last, may save round trips. Where experiments have locks of their own, raise `StoreBusy`
        after `lock_seconds` without the lock; otherwise wait as long as this database ever does.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that reads one snapshot and never waits for a writer."""

    def require_store(self) -> None:  # noqa: B027  (a PostgreSQL database is not created by opening it)
        """Raise unless a store is there, as far as that can be seen without changing anything."""

    def discard_old_pages(self) -> None:  # noqa: B027  (PostgreSQL does so when it vacuums and recycles its WAL)
        """Do what is possible now to remove erased text from the files of the database."""

    @abstractmethod
    def size(self, transaction: Transaction) -> StoreSize:
        """Return how many bytes the database takes."""

    @abstractmethod
    def check_integrity(self, transaction: Transaction) -> None:
        """Raise `VerificationFailed` if the database's own check finds damage, such as an index that misses rows."""

    @abstractmethod
    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return a value that is equal only for connections to the same database."""

    @abstractmethod
    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Translate a driver's error for the user (None: not a failure of the store); say whether a retry may help."""

    @abstractmethod
    def forget_values(self, error: BaseException) -> None:
        """Remove row values from a driver's error: units and attributes do not belong in a log."""


def close_if_interrupted(connection: sa.Connection, error: BaseException) -> None:
    """Close a connection after Ctrl-C: it may be in the middle of a statement, so do not ask it to roll back."""
    if not isinstance(error, Exception) and not connection.closed:
        connection.invalidate()


def database_at(url: Any) -> Database:
    """Return the database at a URL, without opening it.

    Examples
    --------
    >>> database_at("memory:").shown_url
    'memory:'
    >>> database_at("mysql://localhost/school")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: a store must be SQLite, PostgreSQL or memory; got 'mysql://localhost/school'
    hint: use sqlite:///file.db, postgresql://user@host/database or memory:
    """
    from equipoise.store import sqlite

    if url == "memory:":
        return sqlite.MemoryDatabase()
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, TypeError, ValueError):
        raise InvalidInput(f"a store must be given by a URL; got {url!r}", hint=_HINT) from None
    if parsed.drivername == "sqlite":
        if parsed.query:
            options = str(parsed).partition("?")[2]
            raise InvalidInput(f"the URL of an SQLite file takes no options; got ?{options}", hint=_HINT)
        if parsed.host:
            right = f"sqlite:///{parsed.host}" + (f"/{parsed.database}" if parsed.database else "")
            got = without_password(parsed)
            raise InvalidInput(f"the URL of an SQLite file has three slashes; got {got!r}", hint=right)
        path = _checked_path(parsed.database)
        return sqlite.FileDatabase(parsed.set(database=str(path)), path)
    if parsed.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            hint = "pip install 'equipoise[postgres]'"
            raise MissingExtra("a PostgreSQL store needs the package psycopg", hint=hint) from error
        from equipoise.store.postgresql import PostgreSQLDatabase

        return PostgreSQLDatabase(parsed.set(drivername="postgresql+psycopg"))
    hint = "use equipoise.Client for a service" if parsed.drivername in ("http", "https") else _HINT
    raise InvalidInput(f"a store must be SQLite, PostgreSQL or memory; got {without_password(parsed)!r}", hint=hint)


def without_password(url: sa.URL) -> str:
    """Return a URL for printing, with `***` for every password, in the query too."""
    hidden = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def _checked_path(path: str | None) -> Path:
    if not path or path == ":memory:":
        raise InvalidInput("an SQLite store must name a file; got none", hint=_HINT)
    if "\0" in path:
        raise InvalidInput(f"an SQLite store must name a file; got {path!r}")
    try:
        file = Path(path).expanduser()
    except RuntimeError:
        raise InvalidInput(f"an SQLite store must name a file; {path!r} is in a home directory unknown here") from None
    if not file.parent.is_dir():
        raise StoreUnavailable(f"the directory of {file} does not exist", hint=f"mkdir -p {file.parent}")
    if file.is_dir():
        raise StoreUnavailable(f"{file} is a directory, not an SQLite file")
    return file
