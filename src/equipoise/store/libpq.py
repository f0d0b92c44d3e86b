"""Several statements in one message to PostgreSQL, past the driver's cursors.

psycopg's own pipelines take ten times as much processor time for a transaction of ours, and hand Python's lock to other
threads a dozen times where twice is enough. This uses what psycopg offers of libpq below them.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from equipoise.store.connection import Connection

_PREPARED = "equipoise_prepared"
_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_names: dict[str, bytes] = {}
_numbers = count()


class Statement:
    """A statement with its values as PostgreSQL's texts; `$1` and so on stand for them.

    It is prepared once per connection, unless its plan should be made anew each time.
    """

    __slots__ = ("name", "text", "values")

    def __init__(self, text: str, *values: bytes | None, prepare: bool = True) -> None:
        self.text = text
        self.values = values
        self.name = _names.setdefault(text, b"equipoise_%d" % next(_numbers)) if prepare else b""


def send(
    connection: Connection, info: dict[str, Any], statements: Sequence[Statement]
) -> list[Sequence[Sequence[Any]]]:
    """Return the rows of each statement; all are carried out up to the first that fails, whose error is raised.

    A transaction is begun if none is. `info` keeps what is known of a `connection` as long as that lives.
    """
    server: Any = connection.pgconn
    prepared: set[bytes] = info.setdefault(_PREPARED, set())
    if server.transaction_status == pq.TransactionStatus.IDLE:
        statements = [Statement("BEGIN"), *statements]
        begun = 1
    else:
        begun = 0
    new: list[bytes | None] = []  # for each result to come, the name that it prepares
    server.enter_pipeline_mode()
    for one in statements:
        if not one.name:
            server.send_query_params(one.text.encode(), one.values)
        else:
            if one.name not in prepared and one.name not in new:
                server.send_prepare(one.name, one.text.encode())
                new.append(one.name)
            server.send_query_prepared(one.name, one.values)
        new.append(None)
    server.pipeline_sync()
    _flush(connection)
    results = _results(connection)
    server.exit_pipeline_mode()
    rows: list[Sequence[Sequence[Any]]] = []
    for name, result in zip(new, results, strict=True):
        if result.status not in _GOOD:
            raise error_from_result(result)
        if name is not None:
            prepared.add(name)
        else:
            rows.append(_rows(connection, result))
    return rows[begun:]


def _rows(connection: Any, result: Any) -> Sequence[Sequence[Any]]:
    if not result.ntuples:
        return ()
    transformer = Transformer(connection)
    transformer.set_pgresult(result)
    found: Sequence[Sequence[Any]] = transformer.load_rows(0, result.ntuples, tuple)
    return found


def _flush(connection: Connection) -> None:
    server: Any = connection.pgconn
    while server.flush():  # the server may have to get rid of an answer before it reads on
        if connection.await_socket(writing=True):
            server.consume_input()


def _results(connection: Connection) -> list[Any]:
    """Return one result per statement, up to the mark at the end of the message."""
    server: Any = connection.pgconn
    results: list[Any] = []
    n_nothings = 0
    while True:
        while server.is_busy():
            connection.await_socket()
            server.consume_input()
        result = server.get_result()
        if result is None:  # the end of a statement; twice means that there is no more to come
            n_nothings += 1
            if n_nothings > 1:
                raise psycopg.OperationalError("the connection was lost")
            continue
        n_nothings = 0
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            return results
        results.append(result)


# Values as texts


def as_text(value: Any) -> bytes | None:
    """Return a value as PostgreSQL reads it."""
    return None if value is None else value.encode() if type(value) is str else str(value).encode()


def as_array(values: Sequence[Any]) -> bytes:
    """Return an array of numbers or texts; Python's shortest form of a float is read back to the same bits."""
    first = values[0]
    if type(first) is not float and values.count(first) == len(values):  # as most columns of a batch; 0.0 equals -0.0
        elements: Iterable[str] = [_element(first)] * len(values)
    else:
        elements = map(_element, values)
    return ("{" + ",".join(elements) + "}").encode()


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if type(value) is str:
        if "\\" in value or '"' in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    return str(value)
