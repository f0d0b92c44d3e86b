"""Several statements in one message to PostgreSQL, past the driver's cursors, and what to do when no answer comes.

psycopg's own pipelines take ten times as much processor time for a transaction of ours, and hand Python's lock to other
threads a dozen times where twice is enough. This uses what psycopg offers of libpq below them.
"""

from __future__ import annotations

import select
import time
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg.abc import PQGen

Result = TypeVar("Result")

PATIENCE = 5.0
"""Seconds of silence after which another connection asks the server whether it is at work for us."""
LONGEST_SILENCE = 30.0
"""Seconds of silence after which a connection is lost if the server cannot be asked either."""
_ASKING = 5
"""Seconds that it may take to connect in order to ask."""
_UNDER_WAY = 1.0
"""Seconds that an answer may be under way which the server says it has given."""

_PREPARED = "equipoise_prepared"
_READING, _WRITING = 1, 2
_GOOD = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)
_WHO_AM_I = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
# Every process of the server that has nothing to do waits for its client. So does one whose answer nobody takes.
_IS_AT_WORK = (
    "SELECT wait_event_type IS DISTINCT FROM 'Client' FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
)
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
_names: dict[str, bytes] = {}
_numbers = count()


class Connection(psycopg.Connection[Any]):
    """A connection that notices when it is lost in silence, whoever waits for it: `send`, a cursor, a commit.

    A row lock of somebody else may keep us waiting for minutes, so silence alone means nothing, and a limit on the time
    of a statement would be wrong. TCP tells that a machine does not answer, but not that something in between, such as
    a proxy that takes our bytes and forwards nothing, has forgotten the connection. So now and then, while we wait, a
    connection made for the purpose asks the server what its process for us does. While that is at work we wait on. If
    it waits for us, as we do for it, or is gone, the connection is lost; the process is ended, as its transaction may
    hold the lock that the next attempt needs.
    """

    backend: tuple[int, Any] | None = None
    """The server's process for us and when it began; a pooler tells another number than the server's own."""
    streams: list[Any]
    """Cursors that are read piece by piece, to be closed when their transaction ends."""
    _address: tuple[tuple[Any, ...], dict[str, Any]]

    @classmethod
    def connect(cls, *address: Any, **options: Any) -> Connection:
        """Connect as psycopg does, and remember how that was done."""
        made = super().connect(*address, **options)
        made.streams = []
        made._address = address, options
        return made

    def identify(self) -> None:
        """Ask the server by what others find our process."""
        with self.cursor() as cursor:
            self.backend = cursor.execute(_WHO_AM_I).fetchone()

    def wait(self, gen: PQGen[Result], *limits: Any, **more_limits: Any) -> Result:
        """Wait for what a cursor or a commit waits for."""
        return super().wait(_Listened(gen, self), *limits, **more_limits)  # type: ignore[arg-type]

    def check(self, silence: float) -> None:
        """Close the connection and raise if it is lost, after so many seconds of silence."""
        try:
            if not self._is_lost():
                return
            why = "the connection fell silent"
        except psycopg.Error as error:
            if silence < LONGEST_SILENCE:
                return
            why = f"the server fell silent: {error}"
        self.close()
        raise psycopg.OperationalError(why)

    def _is_lost(self) -> bool:
        """Ask the server, over another connection, and hang up there too if it waits for us; raise if it is away."""
        if self.backend is None:
            raise psycopg.OperationalError("no other connection can ask for this one")
        address, options = self._address
        with Connection.connect(*address, **options | {"connect_timeout": _ASKING, "autocommit": True}) as other:
            row = other.execute(_IS_AT_WORK, self.backend).fetchone()
            if (row is not None and row[0]) or _ready(self.pgconn.socket, seconds=_UNDER_WAY):
                return False
            other.execute(_END, self.backend)
            return True


class _Listened:
    """What psycopg waits with, asking ten times in a second whether there is something; this counts the silence."""

    def __init__(self, gen: PQGen[Any], connection: Connection) -> None:
        self._gen = gen
        self._connection = connection
        self._heard = self._checked = time.monotonic()

    def __iter__(self) -> _Listened:
        return self

    def __next__(self) -> Any:
        return next(self._gen)

    def send(self, ready: Any) -> Any:
        """Pass on what can be read or written."""
        now = time.monotonic()
        if ready:
            self._heard = self._checked = now
        elif now - self._checked >= PATIENCE:
            self._connection.check(now - self._heard)
            self._checked = time.monotonic()
        return self._gen.send(ready)


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
        if _wait(connection, writing=True):
            server.consume_input()


def _results(connection: Connection) -> list[Any]:
    """Return one result per statement, up to the mark at the end of the message."""
    server: Any = connection.pgconn
    results: list[Any] = []
    n_nothings = 0
    while True:
        while server.is_busy():
            _wait(connection)
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


def _wait(connection: Connection, *, writing: bool = False) -> bool:
    """Wait until something can be read, or written too; return whether it is the first."""
    began = time.monotonic()
    while not (found := _ready(connection.pgconn.socket, writing=writing, seconds=PATIENCE)):
        connection.check(time.monotonic() - began)
    return found & _READING != 0


def _ready(socket: int, *, writing: bool = False, seconds: float) -> int:
    """Return what a socket is ready for, which is nothing if that takes longer."""
    if not hasattr(select, "poll"):  # Windows
        readable, writable, _ = select.select([socket], [socket] if writing else [], [], seconds)
        return _READING * len(readable) | _WRITING * len(writable)
    poll = select.poll()
    poll.register(socket, select.POLLIN | (select.POLLOUT if writing else 0))
    found = 0
    for _, event in poll.poll(1000 * seconds):  # an error is found by reading
        found = (_READING if event & ~select.POLLOUT else 0) | (_WRITING if event & select.POLLOUT else 0)
    return found


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
