"""The PostgreSQL database, for many machines: one writer per experiment at a time, by a lock on its row."""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import InterfaceError, InternalError, OperationalError
from psycopg.errors import (
    DataCorrupted,
    DuplicatePreparedStatement,
    FeatureNotSupported,
    IndexCorrupted,
    InsufficientPrivilege,
    InvalidSchemaName,
    InvalidSqlStatementName,
    LockNotAvailable,
    ReadOnlySqlTransaction,
)

from equipoise.errors import StoreBusy, StoreError, StoreMismatch, StoreUnavailable, VerificationFailed
from equipoise.store import schema
from equipoise.store.database import RESTORE, Database, StoreSize, close_if_interrupted, without_password
from equipoise.store.libpq import SNAPSHOT, Connection, Statement, as_array, as_text
from equipoise.store.postgresql_session import set_up
from equipoise.store.transaction import HEAD, UNIT_COLUMNS, Transaction

LOCK_SECONDS = 50
"""Seconds to wait for another writer of the experiment, in one attempt; less than `libpq.SILENCE_SECONDS`."""
IDLE_SECONDS = 60
"""Seconds after which the server ends an idle transaction, and so releases the locks of a lost client."""

_CHUNK_ROWS = 10_000
# We and the server give up on a machine that does not answer after half a minute; otherwise the server would keep the
# locks of a lost machine for hours. A URL can override this.
_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_TYPES: dict[type[Any], str] = {
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.SmallInteger: "smallint",
    sa.Double: "double precision",
    sa.Text: "text",
    sa.LargeBinary: "bytea",
}
# The extension may be in a schema that is not in our search path.
_FIND_CHECK = """
SELECT found::oid::regproc::text FROM pg_extension
    JOIN pg_namespace ON pg_namespace.oid = extnamespace,
    to_regprocedure(format('%I.bt_index_check(regclass, boolean)', nspname)) AS found
WHERE extname = 'amcheck' AND has_schema_privilege(extnamespace, 'USAGE') AND has_function_privilege(found, 'EXECUTE')
"""
_CHECK_INDEXES = """
SELECT {bt_index_check}(indexrelid, true) FROM pg_index
WHERE indrelid IN ('experiments'::regclass, 'arms'::regclass, 'events'::regclass, 'pending'::regclass, 'keys'::regclass)
"""
_STAY_IDLE = Statement("SET LOCAL idle_in_transaction_session_timeout = 0")
_LOCK_TIMEOUT = "SELECT set_config('lock_timeout', $1, true)"
_SCHEMA_LOCK = 5_146_717_025_170  # arbitrary, but the same in every process


class PostgreSQLTransaction(Transaction):
    """A transaction over libpq that sends as many statements as possible in one message."""

    driver: Connection

    def __init__(self, database: Database, connection: sa.Connection) -> None:
        super().__init__(database, connection)
        self._found: tuple[list[str], Sequence[Sequence[Any]]] | None = None
        self._buffer: list[Statement] | None = None
        self._cursors: list[psycopg.ServerCursor[Any]] = []

    def lock(self, experiment: int, units: list[str] | None, seen: int, lock_seconds: float | None) -> None:
        """Begin, lock and look up units in one message; each statement sees what was committed before it began."""
        head = Statement(_numbered(f"{HEAD} FOR UPDATE"), as_text(experiment), as_text(seen), as_text(experiment))
        statements = [head]
        if units:
            statements.append(_unit_query(experiment, units))
        if lock_seconds is not None:
            statements.insert(0, Statement(_LOCK_TIMEOUT, as_text(f"{1000 * lock_seconds:.0f}")))
        try:
            found = self.driver.send(*statements)
        except LockNotAvailable:
            if lock_seconds is None:
                raise
            raise _busy(lock_seconds) from None
        if lock_seconds is not None:
            del found[0]
        rows, *found = found
        self._locked = self.read_head(rows, seen)
        if units:
            self._found = units, found[0]

    def execute(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows, or buffer it for the commit."""
        return self._run(Statement(_numbered(statement), *map(as_text, values)))

    def _run(self, statement: Statement) -> Sequence[Sequence[Any]]:
        if self._buffer is None:
            return self.driver.send(statement)[0]
        self._buffer.append(statement)
        return ()

    def unit_events(self, experiment: int, units: list[str]) -> Sequence[Sequence[Any]]:
        """Look up each unit by the index, unless `lock` did so already."""
        if self._found is not None and units is self._found[0]:
            return self._found[1]
        return self._run(_unit_query(experiment, units))

    def put(self, table: sa.Table, experiment: int, rows: Sequence[Sequence[Any]]) -> None:
        """Insert one array per column, perhaps with the commit; or COPY a log, a third of the work of inserting it."""
        if self._buffer is None and table is schema.events:
            columns = ", ".join(table.columns.keys())
            with self.driver.cursor() as cursor, cursor.copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row((experiment, *row))
            return
        arrays = map(as_array, zip(*rows, strict=True))
        self._run(Statement(_insertion(table), as_array([experiment] * len(rows)), *arrays))

    def stream(self, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Read through a server-side cursor, so that a long log need not fit into memory."""
        with self.driver.cursor(name="equipoise_stream") as cursor:
            self._cursors.append(cursor)
            cursor.execute(statement.replace("?", "%s"), values, binary=True)
            while chunk := cursor.fetchmany(_CHUNK_ROWS):
                yield chunk

    def buffer_writes(self) -> None:
        """Buffer writes until the commit, to save round trips: one message there, one back."""
        self._buffer = []

    def commit_buffer(self) -> None:
        """Send the buffered writes with the commit."""
        if self._buffer:
            self.driver.send(*self._buffer, Statement("COMMIT"))

    def close(self) -> None:
        """Close cursors that were not read to the end.

        Garbage collection would close them later, with the last reference to an error, in the connection's next
        transaction.
        """
        while self._cursors:
            self._cursors.pop().close()


def _unit_query(experiment: int, units: list[str]) -> Statement:
    """Return the query that looks up units.

    Until the server has analyzed the table, it assumes a short log and prefers to scan all of it. OFFSET 0 forces a
    look-up per unit, and the query is planned each time, since a plan for a short log would be kept. Ordering by a sum
    rules out the index of the primary key, which is in that order: `verify` must see what the index of units finds.
    """
    query = (
        "SELECT found.* FROM unnest($1::text[]) AS wanted(name) CROSS JOIN LATERAL "  # noqa: S608
        f"(SELECT {UNIT_COLUMNS} FROM events WHERE experiment = $2::bigint AND unit = wanted.name "
        "ORDER BY number + 0 OFFSET 0) AS found"
    )
    return Statement(query, as_array(units), as_text(experiment), prepare=False)


@cache
def _numbered(statement: str) -> str:
    """Replace the placeholders `?` by $1, $2, ..."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)


@cache
def _insertion(table: sa.Table) -> str:
    """Return an INSERT that takes one array per column."""
    arrays = ", ".join(f"${n}::{_TYPES[type(column.type)]}[]" for n, column in enumerate(table.columns, 1))
    names = ", ".join(table.columns.keys())
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}){schema.on_conflict(table)}"  # noqa: S608


class PostgreSQLDatabase(Database):
    """A PostgreSQL database."""

    attempts = 3
    locks_rows = True

    def __init__(self, url: sa.URL) -> None:
        super().__init__()
        self.shown_url = without_password(url)
        self.application_name = f"equipoise-{os.getpid()}"
        """The name of our connections in `pg_stat_activity`, for administrators."""
        self._url = url

    def _new_locks(self) -> None:
        super()._new_locks()
        self._locks: defaultdict[int | None, threading.RLock] = defaultdict(threading.RLock)

    def _new_engine(self) -> sa.Engine:
        engine = sa.create_engine(
            self._url,
            hide_parameters=True,
            pool_size=16,
            max_overflow=48,
            pool_timeout=300,
            connect_args={
                "connect_timeout": 10,
                "client_encoding": "utf8",
                "application_name": self.application_name,
                "prepare_threshold": None,  # otherwise a rollback would discard our own prepared statements too
            }
            | {name: value for name, value in _KEEPALIVE.items() if name not in self._url.query},
        )

        def connect(_dialect: Any, _record: Any, address: Any, options: Any) -> Connection:
            timeouts = {"lock_timeout": LOCK_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
            connection = Connection.connect(*address, **options)
            try:
                set_up(connection, self.shown_url, timeouts, check_clock=self.checks_clock)
            except BaseException:
                connection.close()
                raise
            return connection

        sa.event.listen(engine, "do_connect", connect)
        return engine

    @contextmanager
    def writing(
        self, experiment: int | None, units: list[str] | None = None, seen: int = 0, lock_seconds: float | None = None
    ) -> Iterator[PostgreSQLTransaction]:
        """Lock the experiment's row, or the schema and all new experiments."""
        engine = self.engine
        # Threads of this process queue here, so that they do not hold connections while they wait.
        with _held(self._locks[experiment], lock_seconds), self._transaction(engine) as transaction:
            if experiment is None:
                transaction.driver.send(Statement("SELECT pg_advisory_xact_lock($1::bigint)", as_text(_SCHEMA_LOCK)))
            else:
                transaction.lock(experiment, units, seen, lock_seconds)
            yield transaction
            transaction.commit_buffer()

    @contextmanager
    def reading(self) -> Iterator[PostgreSQLTransaction]:
        """Read a snapshot."""
        with self._transaction(self.engine) as transaction:
            # For this transaction only: an interrupt could come before we reset a setting of the connection. Readers
            # hold no locks, so they may stay idle between reads.
            transaction.driver.send(_STAY_IDLE, begin=SNAPSHOT)
            yield transaction

    @contextmanager
    def _transaction(self, engine: sa.Engine) -> Iterator[PostgreSQLTransaction]:
        """Begin a transaction; after a lost connection close the idle ones too, as SQLAlchemy would."""
        with engine.begin() as connection:
            transaction = PostgreSQLTransaction(self, connection)
            try:
                yield transaction
            except BaseException as error:
                close_if_interrupted(connection, error)
                if not connection.invalidated and (transaction.driver.closed or transaction.driver.broken):
                    connection.invalidate()
                    self.engine.dispose()
                raise
            finally:
                transaction.close()

    def size(self, transaction: Transaction) -> StoreSize:
        """Return the bytes of the database on the server."""
        return StoreSize(int(transaction.execute("SELECT pg_database_size(current_database())")[0][0]))

    def check_integrity(self, transaction: Transaction) -> None:
        """Compare every index with its table by the extension amcheck, where it is installed and we may use it."""
        check = transaction.execute(_FIND_CHECK)
        if not check:
            return
        try:
            transaction.execute(_CHECK_INDEXES.format(bt_index_check=check[0][0]))
        except (DataCorrupted, IndexCorrupted) as error:
            found = str(error).split("\n")[0]
            raise VerificationFailed(f"{self.shown_url} is damaged: {found}", hint=RESTORE) from error

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Return the server's start time, the database, and the table that its search path finds."""
        query = (
            "SELECT extract(epoch FROM pg_postmaster_start_time())::text, current_database(), "
            "'experiments'::regclass::oid::bigint"
        )
        return ("postgresql", *connection.exec_driver_sql(query).one())

    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Distinguish a server that is gone from one that refuses."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        if isinstance(cause, LockNotAvailable):
            return StoreUnavailable(
                f"another process has been writing to {self.shown_url} for {self.attempts * LOCK_SECONDS:g} seconds",
                hint="wait, or find in pg_stat_activity which session holds the lock",
            ), True
        if isinstance(cause, (ReadOnlySqlTransaction, FeatureNotSupported)):  # the latter is what a standby says
            text = str(cause).split("\n")[0]
            hint = "if this is a standby, name the primary in the URL, or both with target_session_attrs=read-write"
            return StoreUnavailable(f"{self.shown_url} cannot be written: {text}", hint=hint), False
        if isinstance(cause, (InvalidSqlStatementName, DuplicatePreparedStatement)):
            return StoreMismatch(
                f"{self.shown_url} is a pooler that lends another session to each transaction and hides it from us",
                hint="set the pooler to session mode, or name the server itself in the URL",
            ), False
        if isinstance(cause, (InsufficientPrivilege, InvalidSchemaName)):
            text = str(cause).split("\n")[0]
            hint = "see that the schema exists (CREATE SCHEMA) and that its tables may be read and written"
            return StoreUnavailable(f"{self.shown_url} cannot be used: {text}", hint=hint), False
        if not isinstance(cause, (OperationalError, InterfaceError, InternalError)):
            return None, False
        text = str(cause).strip().split("\n")[0]
        # Retry after a deadlock (40), or on a new connection if lost or closed by the server (none, 08, 25P03, 57).
        again = (cause.sqlstate or "")[:2] in ("", "08", "40", "57") or cause.sqlstate == "25P03"
        return StoreUnavailable(
            f"{self.shown_url} cannot be reached or written: {text}",
            hint="see that the server runs and has room, then try again",
        ), again

    def forget_values(self, error: BaseException) -> None:
        """Keep the first part of the server's message; the details contain the refused row."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        if not isinstance(cause, psycopg.Error) or cause.diag.message_primary is None:
            return
        state, text = cause.sqlstate, cause.diag.message_primary
        kind = f"({type(cause).__module__}.{type(cause).__name__}) " if cause is not error else ""
        error.args = (f"{kind}{text} [{state}]",)


@contextmanager
def _held(lock: threading.RLock, seconds: float | None) -> Iterator[None]:
    if not lock.acquire(timeout=-1 if seconds is None else seconds):
        raise _busy(seconds or 0.0)
    try:
        yield
    finally:
        lock.release()


def _busy(seconds: float) -> StoreBusy:
    return StoreBusy(f"another writer of this experiment has held its lock for {seconds:g} seconds", hint="try again")
