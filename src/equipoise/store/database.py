"""What a kind of database must offer: transactions that hold, its own words for the hot statements, clear errors."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    import sqlalchemy as sa

    from equipoise.errors import StoreError


class Busy(Exception):
    """Somebody else is writing, and we were told not to wait."""


class Database(ABC):
    """One database. What is here is all that differs between kinds of databases."""

    shown_url: str
    attempts: int = 2
    """How often a transaction is begun anew before its error reaches the caller."""
    locks_rows: bool = False
    """Whether writers of different experiments do not wait for each other."""
    answers_at_once: bool = False
    """Whether statements take microseconds, as in a file of this machine, and only a commit takes long."""
    by_unit: str = ""
    """What to write behind the name of the table of events where it is searched by unit."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._engine: sa.Engine | None = None
        self._starting = threading.Lock()

    @property
    def engine(self) -> sa.Engine:
        """The engine of this process; connections inherited by a fork are left to the parent."""
        if self._pid != os.getpid():
            if self._engine is not None:
                self._engine.dispose(close=False)
            self._pid, self._starting = os.getpid(), threading.Lock()
            self._forget_locks()
        if self._engine is not None:
            return self._engine
        with self._starting:
            if self._engine is None:
                self._engine = self._new_engine()
            return self._engine

    def close(self) -> None:
        """Close all connections; the database may be used again, which opens new ones."""
        if self._engine is not None:
            # Closing what a fork inherited would end the connections of the parent.
            self._engine.dispose(close=self._pid == os.getpid())

    @abstractmethod
    def writing(self, experiment: int | None, *, at_once: bool = False) -> AbstractContextManager[sa.Connection]:
        """Return a transaction that no other writer of the experiment (None: of any) can interleave with.

        It is committed, and durable, when the block ends, which another thread may do; it is undone if that raises.
        `at_once`, for those that answer at once, is not to wait for another writer but to raise.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[sa.Connection]:
        """Return a transaction that sees one state of the database and waits for no writer."""

    @abstractmethod
    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return what is equal for two connections to one database, and differs otherwise."""

    @abstractmethod
    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Return what to tell a user about a driver's error (None: it is no failure), and whether to try again."""

    def forget_values(self, error: BaseException) -> None:  # noqa: B027  (SQLite tells none)
        """Take the values of rows out of what a driver's error says: a log is no place for units and attributes."""

    def begin_last_writes(self, connection: sa.Connection) -> None:  # noqa: B027  (most have nothing to prepare)
        """Note that nothing is read any more before the commit, so that what is written may go with it."""

    @abstractmethod
    def execute(self, connection: sa.Connection, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement that every transaction runs, by the shortest way; `?` stands for a value in it."""

    def lock(
        self, connection: sa.Connection, head: str, experiment: int, units: list[str], columns: str
    ) -> tuple[Sequence[Any], Sequence[Sequence[Any]]]:
        """Return the row that a query gives, once no other transaction writes to the experiment, and events of units.

        What is here is for databases that have one writer anyway.
        """
        [row] = self.execute(connection, head, experiment)
        return row, self.unit_events(connection, experiment, units, columns) if units else ()

    @abstractmethod
    def unit_events(
        self, connection: sa.Connection, experiment: int, units: list[str], columns: str
    ) -> Sequence[Sequence[Any]]:
        """Return the events of some units; those of one unit in the order of the log."""

    @abstractmethod
    def put(
        self,
        connection: sa.Connection,
        table: sa.Table,
        experiment: int,
        rows: Sequence[Sequence[Any]],
        *,
        replace: bool,
    ) -> None:
        """Insert rows, all columns but the experiment in order; with `replace` in place of those with the same key."""

    @abstractmethod
    def stream(self, connection: sa.Connection, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query in pieces; `?` stands for a value in the statement."""

    @abstractmethod
    def _new_engine(self) -> sa.Engine: ...

    @abstractmethod
    def _forget_locks(self) -> None:
        """Make new locks; those of the parent process may be held by threads that do not exist here."""
