"""A PostgreSQL connection that sends several statements in one message (pipelining) and times out without a reply.

psycopg's own pipelines take 1.85 ms of CPU time for one of our transactions, this takes 0.66 ms, and it hands Python's
lock (GIL) to other threads twice instead of a dozen times. It uses psycopg's public wrapper of libpq, below cursors.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.waiting import Ready, Wait

if TYPE_CHECKING:
    from psycopg.abc import PQGen

Result = TypeVar("Result")

SILENCE_SECONDS = 60.0
"""Read timeout: seconds without a byte from the server after which we give up a connection.

Keepalives detect a machine that is gone, but not a proxy that accepts our bytes and forwards nothing. It is longer than
any statement of ours runs or waits for a lock (`LOCK_SECONDS` in `postgresql.py`).
"""

_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)


class Statement:
    """A statement with placeholders `$1` and so on, and their values in PostgreSQL's text format.

    It is prepared once per connection, unless `prepare` is false; then it is planned each time.
    """

    __slots__ = ("name", "text", "values")

    def __init__(self, text: str, *values: bytes | None, prepare: bool = True) -> None:
        self.text = text
        self.values = values
        self.name = _name(text) if prepare else b""


@cache
def _name(text: str) -> bytes:
    """Return the name of a prepared statement: the same text has the same name in every process, and no other text."""
    return b"equipoise_" + hashlib.sha256(text.encode()).hexdigest()[:32].encode()


# The server's default may be another isolation level. A writer must see what was committed while it waited for its
# lock; a reader must see one state.
WRITE = Statement("BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE")
SNAPSHOT = Statement("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")


class Connection(psycopg.Connection[Any]):
    """A psycopg connection with `send`, and with a read timeout that covers cursors and commits too."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._statement_names: set[bytes] = set()
        self.settings: Statement | None = None
        """Sets what we depend on, with every BEGIN, where a pooler lends us another session for each transaction.

        Nothing is prepared there: the statement would stay with the session.
        """

    def send(self, *statements: Statement, begin: Statement = WRITE) -> list[Sequence[Sequence[Any]]]:
        """Run statements and return the rows of each; the first failure stops the rest and is raised.

        Begins a transaction if none is open.
        """
        server: Any = self.pgconn
        first: tuple[Statement, ...] = ()
        if server.transaction_status == pq.TransactionStatus.IDLE:
            first = (begin,) if self.settings is None else (begin, self.settings)
        prepare = self.settings is None
        new: list[bytes | None] = []  # for each expected result, the statement name that it prepares
        server.enter_pipeline_mode()
        for one in (*first, *statements):
            if not (one.name and prepare):
                server.send_query_params(one.text.encode(), one.values)
            else:
                if one.name not in self._statement_names and one.name not in new:
                    server.send_prepare(one.name, one.text.encode())
                    new.append(one.name)
                server.send_query_prepared(one.name, one.values)
            new.append(None)
        server.pipeline_sync()
        results = self.wait(self._exchange())
        server.exit_pipeline_mode()
        rows: list[Sequence[Sequence[Any]]] = []
        for name, result in zip(new, results, strict=True):
            if result.status not in _GOOD:
                raise error_from_result(result)
            if name is not None:
                self._statement_names.add(name)
            else:
                rows.append(self._rows(result))
        return rows[len(first) :]

    def _rows(self, result: Any) -> Sequence[Sequence[Any]]:
        if not result.ntuples:
            return ()
        transformer = Transformer(self)
        transformer.set_pgresult(result)
        found: Sequence[Sequence[Any]] = transformer.load_rows(0, result.ntuples, tuple)
        return found

    def _exchange(self) -> PQGen[list[Any]]:
        """Send what is buffered and return one result per statement, up to the sync at the end."""
        server: Any = self.pgconn
        while server.flush():  # the server may have to send a reply before it reads on
            if (yield Wait.RW) & Ready.R:
                server.consume_input()
        results: list[Any] = []
        n_nothings = 0
        while True:
            while server.is_busy():
                yield Wait.R
                server.consume_input()
            result = server.get_result()
            if result is None:  # the end of a statement; twice means no more results
                n_nothings += 1
                if n_nothings > 1:
                    raise psycopg.OperationalError("the connection was lost")
                continue
            n_nothings = 0
            if result.status == pq.ExecStatus.PIPELINE_SYNC:
                return results
            results.append(result)

    def wait(self, gen: PQGen[Result], *limits: Any, **more_limits: Any) -> Result:
        """Wait like psycopg, with a read timeout; psycopg and `send` do all their waiting here."""
        return super().wait(self._listen(gen), *limits, **more_limits)

    def _listen(self, gen: PQGen[Result]) -> PQGen[Result]:
        """Pass on psycopg's socket events, ten times a second; close the connection after the read timeout."""
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > SILENCE_SECONDS:
                    self.close()
                    raise psycopg.OperationalError(f"no reply for {SILENCE_SECONDS:g} seconds")
                wanted = gen.send(ready)
        except StopIteration as end:
            found: Result = end.value
            return found


def as_text(value: Any) -> bytes | None:
    """Return a value in PostgreSQL's text format."""
    if value is None:
        return None
    if type(value) is bytes:
        return b"\\x" + value.hex().encode()
    return value.encode() if type(value) is str else str(value).encode()


def as_array(values: Sequence[Any]) -> bytes:
    """Return numbers or texts as an array literal; Python's shortest form of a float reads back to the same bits."""
    first = values[0]
    if type(first) is not float and values.count(first) == len(values):  # as most columns of a batch; 0.0 == -0.0
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
    if type(value) is bytes:
        return f'"\\\\x{value.hex()}"'
    return str(value)
