"""PostgreSQL: one writer per experiment at a time, by a lock on the experiment's row; many machines."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from equipoise.errors import MissingExtra, StoreError, StoreUnavailable
from equipoise.store import addresses
from equipoise.store.database import Database
from equipoise.store.sqlite import on_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PIECE = 10_000
_WORTH_COPYING = 4
_PIPELINE = "equipoise_pipeline"
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
    for_update = "FOR UPDATE"

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
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise MissingExtra(
                "a PostgreSQL store needs the package psycopg", hint="pip install 'equipoise[postgres]'"
            ) from error
        engine = sa.create_engine(
            self._url,
            pool_size=16,
            max_overflow=48,
            pool_timeout=300,
            connect_args={
                "connect_timeout": 10,
                "client_encoding": "utf8",
                "application_name": self.application_name,
            },
        )
        sa.event.listen(engine, "connect", _set_up)
        return engine

    @contextmanager
    def writing(self, experiment: int | None) -> Iterator[sa.Connection]:
        """Begin; `Transaction.lock` locks the experiment's row. None locks the schema and all new experiments."""
        engine = self.engine
        # Threads of this process queue up here, so that they do not use up the connections while they wait.
        with self._lanes[experiment], engine.begin() as connection, self._watched(connection):
            if experiment is None:
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
            yield connection
            if self._is_pipelined(connection):
                _driver(connection).commit()  # goes with the statements before it

    @contextmanager
    def _watched(self, connection: sa.Connection) -> Iterator[None]:
        """Leave the pipeline in any case; after a lost connection forget all others too, as SQLAlchemy would."""
        try:
            yield
        except BaseException:
            if connection.invalidated:  # closed already, and there is nothing to ask it any more
                raise
            driver = _driver(connection)
            with suppress(Exception):  # what went wrong is known already
                self._leave_pipeline(connection)
            if driver.closed or driver.broken:
                connection.invalidate()
                self.engine.dispose()
            raise
        self._leave_pipeline(connection)

    def begin_last_writes(self, connection: sa.Connection) -> None:
        """Wait for no answer until the commit: all goes to the server in one message, and one comes back."""
        pipeline = _driver(connection).pipeline()
        pipeline.__enter__()
        connection.info[_PIPELINE] = pipeline

    def _is_pipelined(self, connection: sa.Connection) -> bool:
        return _PIPELINE in connection.info

    def _leave_pipeline(self, connection: sa.Connection) -> None:
        pipeline = connection.info.pop(_PIPELINE, None)
        if pipeline is not None:
            pipeline.__exit__(None, None, None)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read a snapshot."""
        with self.engine.begin() as connection:
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
        from psycopg import InterfaceError, InternalError, OperationalError
        from psycopg.errors import InsufficientPrivilege, InvalidSchemaName

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

    def execute(self, connection: sa.Connection, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Go past SQLAlchemy, and send a query together with the BEGIN that may precede it."""
        driver, text = _driver(connection), statement.replace("?", "%s")
        if not statement.startswith("SELECT"):
            driver.execute(text, values)
            return ()
        with driver.pipeline(), driver.cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(text, values).fetchall()
        return rows

    def unit_events(
        self, connection: sa.Connection, experiment: int, units: list[str], columns: str
    ) -> Sequence[Sequence[Any]]:
        """Look every unit up in the index of units.

        Until the server has looked at the table by itself, it takes a log to be short and would rather read all of it.
        OFFSET 0 makes it go unit by unit, and a plan is made each time, as one for a short log would be kept.
        """
        statement = (
            "SELECT found.* FROM unnest(%s::text[]) AS wanted(name) CROSS JOIN LATERAL "  # noqa: S608
            f"(SELECT {columns} FROM events WHERE experiment = %s AND unit = wanted.name "
            "ORDER BY number OFFSET 0) AS found"
        )
        with _driver(connection).cursor() as cursor:
            rows: list[tuple[Any, ...]] = cursor.execute(statement, (units, experiment), prepare=False).fetchall()
        return rows

    def put(
        self,
        connection: sa.Connection,
        table: sa.Table,
        experiment: int,
        rows: Sequence[Sequence[Any]],
        *,
        replace: bool,
    ) -> None:
        """Copy many new rows in, which takes a third of the time of inserting them; send others in one go."""
        with _driver(connection).cursor() as cursor:
            if self._is_pipelined(connection):  # where nothing can be copied; columns as arrays are almost as quick
                columns = map(list, zip(*rows, strict=True))
                cursor.execute(_array_insertion(table, replace), [[experiment] * len(rows), *columns])
                return
            given = [(experiment, *row) for row in rows]
            if replace or len(rows) < _WORTH_COPYING:
                cursor.executemany(_insertion(table, replace), given)
                return
            with cursor.copy(f"COPY {table.name} ({', '.join(table.columns.keys())}) FROM STDIN") as copy:
                for row in given:
                    copy.write_row(row)

    def stream(self, connection: sa.Connection, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Read through a cursor of the server, so that a long log never has to fit into memory."""
        with _driver(connection).cursor(name="equipoise_stream") as cursor:
            cursor.execute(statement.replace("?", "%s"), values, binary=True)
            while piece := cursor.fetchmany(_PIECE):
                yield piece


def _set_up(connection: Any, _record: Any) -> None:
    """Prepare a new connection."""
    with connection.cursor() as cursor:
        # A plan made while a table was small is kept when it is large; going by the index is right for both.
        cursor.execute("SET enable_seqscan = off")
        cursor.execute("SET jit = off")
        # Durable before acknowledged, whatever the server's default; a stricter setting is left alone.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
    connection.commit()


def _driver(connection: sa.Connection) -> Any:
    """Return the connection below SQLAlchemy's."""
    return connection.connection.driver_connection


@cache
def _array_insertion(table: sa.Table, replace: bool) -> str:
    """Return a statement that takes one array per column."""
    names = table.columns.keys()
    arrays = ", ".join(f"%s::{_TYPES[type(column.type)]}[]" for column in table.columns)
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})"  # noqa: S608
    return statement + (on_conflict(table) if replace else "")


@cache
def _insertion(table: sa.Table, replace: bool) -> str:
    names = table.columns.keys()
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))})"  # noqa: S608
    return statement + (on_conflict(table) if replace else "")
