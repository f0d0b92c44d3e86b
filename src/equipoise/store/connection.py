"""A connection to PostgreSQL that notices when no answer will come."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg

if TYPE_CHECKING:
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

_READING, _WRITING = 1, 2
_WHO_AM_I = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
# Every process of the server that has nothing to do waits for its client. So does one whose answer nobody takes.
_IS_AT_WORK = (
    "SELECT wait_event_type IS DISTINCT FROM 'Client' FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"
)
_END = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND backend_start = %s"


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

    def await_socket(self, *, writing: bool = False) -> bool:
        """Wait until something can be read, or written too; return whether it is the first."""
        began = time.monotonic()
        while not (found := _ready(self.pgconn.socket, writing=writing, seconds=PATIENCE)):
            self.check(time.monotonic() - began)
        return found & _READING != 0

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
