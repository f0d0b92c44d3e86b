"""Stream an export: a thread writes it as fast as the client reads, so it is never all in memory."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from equipoise.service.error_responses import Overloaded

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.service.dispatch import Exchange, Send

log = logging.getLogger("equipoise.service")

MOST_EXPORTS = 4
"""Most exports at once per process: each holds a connection, and its snapshot keeps the database from cleaning up."""
STALL_SECONDS = 30.0
"""Write timeout: how long a client may read nothing of an export before we give up.

Progress shows in steps of a third of the system's buffer for the connection, which may be several megabytes.
"""

_WAITING = 16
"""Most pieces that wait for a slow client."""
_PIECE = 65_536
"""Most bytes of a piece: small enough that even a slow client reads one in time."""

_running: set[threading.Thread] = set()
_counting = threading.Lock()


class _GoneAway(Exception):
    """The reader is gone, so the thread should stop writing."""


class _Stalled(Exception):
    """The client is connected but reads nothing."""


class _Pipe:
    """A file-like pipe that a thread writes to and a coroutine reads from."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        self._closed = threading.Event()

    def write(self, piece: str | bytes) -> int:
        """Write text or bytes in small pieces; called on the thread."""
        data = piece.encode() if isinstance(piece, str) else bytes(piece)
        for start in range(0, len(data), _PIECE):
            if not self._room.acquire(timeout=STALL_SECONDS):
                self._hand_over(_Stalled())
                raise _GoneAway
            if self._closed.is_set():
                raise _GoneAway
            self._hand_over(data[start : start + _PIECE])
        return len(piece)

    def end(self, error: BaseException | None) -> None:
        """Signal the end, or an error; called on the thread."""
        if self._closed.is_set():
            raise _GoneAway
        self._hand_over(error)

    def _hand_over(self, piece: bytes | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
        except RuntimeError:  # the loop is closed: the service has ended
            raise _GoneAway from None

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Yield the pieces, and tell the writer when the reader stops."""
        try:
            while (piece := await self._pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
                self._room.release()
        finally:
            self._closed.set()
            self._room.release()  # wake a writer that waits for room, so that it stops


class _Binary(_Pipe):
    """A pipe that refuses text, for libraries that probe whether a file is binary."""

    def write(self, piece: Any) -> int:
        """Write bytes; raise `TypeError` for text."""
        if isinstance(piece, str):
            raise TypeError("bytes only")
        return super().write(piece)


async def export_pieces(experiment: Experiment, form: str) -> AsyncGenerator[bytes, None]:
    """Start an export and return its pieces; an error before the first piece is raised here."""
    pipe = _Binary() if form == "parquet" else _Pipe()
    _start(experiment, pipe, form)
    pieces = pipe.read()
    first = await anext(pieces, b"")

    async def all_of_it() -> AsyncGenerator[bytes, None]:
        try:
            yield first
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()

    return all_of_it()


async def send_pieces(pieces: AsyncGenerator[bytes, None], exchange: Exchange, send: Send) -> None:
    """Send an answer in pieces as fast as the client reads; stop if it disconnects or hits the write timeout."""
    leaving = asyncio.ensure_future(exchange.gone())
    try:
        async for piece in pieces:
            if leaving.done():
                return
            async with asyncio.timeout(STALL_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except (_Stalled, TimeoutError):
        # The answer stays incomplete, so the server closes the connection. This is not an unexpected error.
        log.warning("an export broke off, as its client took nothing of it")
    finally:
        leaving.cancel()
        await pieces.aclose()


def _start(experiment: Experiment, pipe: _Pipe, form: str) -> None:
    """Start a thread that writes the export, or refuse if too many run: backpressure."""
    thread = threading.Thread(target=_write, args=(experiment, pipe, form), name="equipoise-export", daemon=True)
    with _counting:
        if len(_running) >= MOST_EXPORTS:
            raise Overloaded(f"{MOST_EXPORTS} exports are under way, and more at once are not made")
        _running.add(thread)
    try:
        thread.start()
    except BaseException:
        _running.discard(thread)
        raise


def _write(experiment: Experiment, pipe: _Pipe, form: str) -> None:
    """Write an export; always signal its end or error to the reader, and free its slot."""
    try:
        try:
            experiment.export(pipe, form)  # type: ignore[arg-type]
        except _GoneAway:
            raise
        except BaseException as error:  # noqa: BLE001
            pipe.end(error)
        else:
            pipe.end(None)
    except _GoneAway:
        log.info("an export was given up", extra={"data": {"experiment": experiment.name}})
    finally:
        _running.discard(threading.current_thread())
