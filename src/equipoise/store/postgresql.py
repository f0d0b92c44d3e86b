"""PostgreSQL: one writer per experiment at a time, by a lock on the experiment's row; many machines."""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import psycopg
import sqlalchemy as sa
from psycopg import InterfaceError, InternalError, OperationalError
from psycopg.errors import InsufficientPrivilege, InvalidSchemaName

from equipoise.errors import StoreError, StoreUnavailable
from equipoise.store import url as addresses
from equipoise.store.connection import Connection
from equipoise.store.database import Database
from equipoise.store.libpq import Statement, as_array, as_text, send
from equipoise.store.sqlite import on_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PIECE = 10_000
_WORTH_COPYING = 4
_LAST_WRITES = "equipoise_last_writes"
# A machine that does not answer is given up after half a minute, by us and by the server, which would otherwise keep
# the locks of a machine that was lost for hours. An address may say otherwise.
_KEEPALIVE = {
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_SERVERS_KEEPALIVE = (
    "SELECT set_config(name, wanted, false) FROM (VALUES ('tcp_keepalives_idle', '15'), "
    "('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '30000')) "
    "AS ours(name, wanted) JOIN pg_settings USING (name)"  # servers before 12 do not know the last one
)
_TYPES: dict[type[Any], str] = {
    sa.BigInteger: "bigint",
    sa.Integer: "integer",
    sa.SmallInteger: "smallint",
    sa.Double: "double precision",
    sa.Text: "text",
}
_SCHEMA_LOCK = 5_146_717_025_170  # any number that is the same in every process


class PostgreSQLDatabase(Database):
    """A PostgreSQL database."""

    attempts = 3
    locks_rows = True

    def __init__(self, url: sa.URL) -> None:
        super().__init__()
        self.shown_url = addresses.shown(url)
        self.application_name = f"equipoise-{os.getpid()}"
        """What the server calls our connections, for whoever looks at them there."""
        self._url = url
        self._lanes: defaultdict[int | None, threading.RLock] = defaultdict(threading.RLock)

    def _forget_locks(self) -> None:
        self._lanes.clear()

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
                "prepare_threshold": None,  # or a rollback would forget our own prepared statements too
            }
            | {name: value for name, value in _KEEPALIVE.items() if name not in self._url.query},
        )
        sa.event.listen(engine, "do_connect", _connected)
        sa.event.listen(engine, "connect", _set_up)
        return engine

    @contextmanager
    def writing(self, experiment: int | None, *, at_once: bool = False) -> Iterator[sa.Connection]:
        """Begin; `Transaction.lock` locks the experiment's row. None locks the schema and all new experiments."""
        engine = self.engine
        # Threads of this process queue up here, so that they do not use up the connections while they wait.
        with self._lanes[experiment], engine.begin() as connection, self._watched(connection):
            if experiment is None:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            yield connection
            last: list[Statement] | None = connection.info.pop(_LAST_WRITES, None)
            if last:
                _send(connection, *last, Statement("COMMIT"))

    @contextmanager
    def _watched(self, connection: sa.Connection) -> Iterator[None]:
        """Forget what was to be written; after a lost connection forget all others too, as SQLAlchemy would.

        What is still read piece by piece is closed here: a cursor that is closed later, when somebody lets go of an
        error, would do so in the transaction of whoever has the connection then.
        """
        driver = _driver(connection)
        try:
            yield
        except BaseException:
            if connection.invalidated:  # closed already, and there is nothing to ask it any more
                raise
            connection.info.pop(_LAST_WRITES, None)
            if driver.closed or driver.broken:
                connection.invalidate()
                self.engine.dispose()
            raise
        finally:
            while driver.streams:
                driver.streams.pop().close()

    def begin_last_writes(self, connection: sa.Connection) -> None:
        """Keep what is written until the commit: all goes to the server in one message, and one comes back."""
        connection.info[_LAST_WRITES] = []

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read a snapshot."""
        with self.engine.begin() as connection, self._watched(connection):
            # Of this transaction only: what is set for a connection stays when an interrupt comes before it is unset.
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield connection

    def identity(self, connection: sa.Connection) -> tuple[Any, ...]:
        """Tell servers apart by when they were started, and schemas by the table that is found in them."""
        [row] = self.execute(
            connection, "SELECT pg_postmaster_start_time(), current_database(), 'experiments'::regclass::oid::bigint"
        )
        return ("postgresql", *row)

    def failure(self, error: Exception) -> tuple[StoreError | None, bool]:
        """Tell a server that is gone from one that refuses."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        if isinstance(cause, (InsufficientPrivilege, InvalidSchemaName)):
            text = str(cause).split("\n")[0]
            hint = "see that the schema exists (CREATE SCHEMA) and that its tables may be read and written"
            return StoreUnavailable(f"{self.shown_url} cannot be used: {text}", hint=hint), False
        if not isinstance(cause, (OperationalError, InterfaceError, InternalError)):
            return None, False
        text = str(cause).strip().split("\n")[0]
        # A deadlock (40), or a connection that was lost or that the server ended (none, 08, 57): try on a new one.
        again = (cause.sqlstate or "")[:2] in ("", "08", "40", "57")
        return StoreUnavailable(
            f"{self.shown_url} cannot be reached or written: {text}",
            hint="see that the server runs and has room, then try again",
        ), again

    def forget_values(self, error: BaseException) -> None:
        """Keep the first part of the server's message; the details are the row that it did not take."""
        cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
        if not isinstance(cause, psycopg.Error) or cause.diag.message_primary is None:
            return
        state, text = cause.sqlstate, cause.diag.message_primary
        kind = f"({type(cause).__module__}.{type(cause).__name__}) " if cause is not error else ""
        error.args = (f"{kind}{text} [{state}]",)

    def execute(self, connection: sa.Connection, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Send a query together with the BEGIN that may precede it, and a change perhaps with the commit."""
        known = Statement(_numbered(statement), *map(as_text, values))
        last: list[Statement] | None = connection.info.get(_LAST_WRITES)
        if last is not None:
            last.append(known)
            return ()
        [rows] = _send(connection, known)
        return rows

    def lock(
        self, connection: sa.Connection, head: str, experiment: int, units: list[str], columns: str
    ) -> tuple[Sequence[Any], Sequence[Sequence[Any]]]:
        """Begin, lock and look up units with one message; each statement sees what was committed before it began."""
        lock = Statement(_numbered(f"{head} FOR UPDATE"), as_text(experiment))
        queries = [lock, _unit_events(experiment, units, columns)] if units else [lock]
        [row], *found = _send(connection, *queries)
        return row, found[0] if found else ()

    def unit_events(
        self, connection: sa.Connection, experiment: int, units: list[str], columns: str
    ) -> Sequence[Sequence[Any]]:
        """Look every unit up in the index of units."""
        return _send(connection, _unit_events(experiment, units, columns))[0]

    def put(
        self,
        connection: sa.Connection,
        table: sa.Table,
        experiment: int,
        rows: Sequence[Sequence[Any]],
        *,
        replace: bool,
    ) -> None:
        """Send rows with the commit, or else copy many new ones in, a third of the work of inserting them."""
        last: list[Statement] | None = connection.info.get(_LAST_WRITES)
        if last is not None:
            columns = map(as_array, zip(*rows, strict=True))
            last.append(Statement(_array_insertion(table, replace), as_array([experiment] * len(rows)), *columns))
            return
        with _driver(connection).cursor() as cursor:
            given = [(experiment, *row) for row in rows]
            if replace or len(rows) < _WORTH_COPYING:
                cursor.executemany(_insertion(table, replace), given)
                return
            with cursor.copy(f"COPY {table.name} ({', '.join(table.columns.keys())}) FROM STDIN") as copy:
                for row in given:
                    copy.write_row(row)

    def stream(self, connection: sa.Connection, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Read through a cursor of the server, so that a long log never has to fit into memory."""
        driver = _driver(connection)
        with driver.cursor(name="equipoise_stream") as cursor:
            driver.streams.append(cursor)
            cursor.execute(statement.replace("?", "%s"), values, binary=True)
            while piece := cursor.fetchmany(_PIECE):
                yield piece


def _connected(_dialect: Any, _record: Any, address: Any, options: Any) -> Connection:
    """Make a connection of our own kind."""
    return Connection.connect(*address, **options)


def _set_up(connection: Connection, _record: Any) -> None:
    """Prepare a new connection."""
    connection.identify()
    with connection.cursor() as cursor:
        cursor.execute(_SERVERS_KEEPALIVE)
        # A plan made while a table was small is kept when it is large; going by the index is right for both.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET jit = off")
        # Durable before acknowledged, whatever the server's default; a stricter setting is left alone.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


def _driver(connection: sa.Connection) -> Connection:
    """Return the connection below SQLAlchemy's."""
    driver: Any = connection.connection.driver_connection
    return driver  # type: ignore[no-any-return]


def _send(connection: sa.Connection, *statements: Statement) -> list[Sequence[Sequence[Any]]]:
    return send(_driver(connection), connection.info, statements)


def _unit_events(experiment: int, units: list[str], columns: str) -> Statement:
    """Return the query for units.

    Until the server has looked at the table by itself, it takes a log to be short and would rather read all of it.
    OFFSET 0 makes it go unit by unit, and a plan is made each time, as one for a short log would be kept.
    """
    query = (
        "SELECT found.* FROM unnest($1::text[]) AS wanted(name) CROSS JOIN LATERAL "  # noqa: S608
        f"(SELECT {columns} FROM events WHERE experiment = $2::bigint AND unit = wanted.name "
        "ORDER BY number OFFSET 0) AS found"
    )
    return Statement(query, as_array(units), as_text(experiment), prepare=False)


@cache
def _numbered(statement: str) -> str:
    """Return a statement with $1, $2, ... in the place of its question marks."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", statement)


@cache
def _array_insertion(table: sa.Table, replace: bool) -> str:
    """Return a statement that takes one array per column."""
    names = table.columns.keys()
    arrays = ", ".join(f"${n}::{_TYPES[type(column.type)]}[]" for n, column in enumerate(table.columns, 1))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})"  # noqa: S608
    return statement + (on_conflict(table) if replace else "")


@cache
def _insertion(table: sa.Table, replace: bool) -> str:
    names = table.columns.keys()
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    return statement + (on_conflict(table) if replace else "")
