"""An export as a stream: written on a thread as fast as the client reads, and never all in memory."""

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
"""How many exports a process writes at once: each holds a connection, and keeps the database from tidying up."""
STALL_SECONDS = 30.0
"""How long a client may take nothing of an export before that is given up.

What it takes is seen in steps as large as a third of the system's buffer for its connection, of up to some megabytes.
"""

_WAITING = 16
"""Pieces that may wait for a slow client."""
_PIECE = 65_536
"""Bytes of a piece at most: a client that is slow takes one of these in time."""

_running: set[threading.Thread] = set()
_counting = threading.Lock()


class _GoneAway(Exception):
    """Nobody takes what the thread writes."""


class _Stalled(Exception):
    """The client is there, and takes nothing."""


class _Pipe:
    """A file that a thread writes to and a coroutine reads from."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        self._closed = threading.Event()

    def write(self, piece: str | bytes) -> int:
        """Hand text or bytes over in small pieces; called on the thread."""
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
        """Say that nothing follows, or what went wrong; called on the thread."""
        if self._closed.is_set():
            raise _GoneAway
        self._hand_over(error)

    def _hand_over(self, piece: bytes | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._pieces.put_nowait, piece)
        except RuntimeError:  # the loop is closed: the service has ended
            raise _GoneAway from None

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Yield the pieces."""
        try:
            while (piece := await self._pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
                self._room.release()
        finally:
            self._closed.set()
            self._room.release()  # whoever waits for room sees that there is no use


class _Binary(_Pipe):
    """The same, for those who look whether text is welcome."""

    def write(self, piece: Any) -> int:
        """Take bytes only."""
        if isinstance(piece, str):
            raise TypeError("bytes only")
        return super().write(piece)


async def export_pieces(experiment: Experiment, form: str) -> AsyncGenerator[bytes, None]:
    """Return the pieces of an export; errors from the start are raised before the first one."""
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
    """Send an answer in pieces as fast as the client reads; break off when it leaves, or takes nothing for too long."""
    leaving = asyncio.ensure_future(exchange.gone())
    try:
        async for piece in pieces:
            if leaving.done():
                return
            async with asyncio.timeout(STALL_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
    except (_Stalled, TimeoutError):
        # It ends here, incomplete, whereupon the server closes the connection. Nothing unexpected has happened.
        log.warning("an export broke off, as its client took nothing of it")
    finally:
        leaving.cancel()
        await pieces.aclose()


def _start(experiment: Experiment, pipe: _Pipe, form: str) -> None:
    """Write on a thread of its own, unless too many do."""
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
    """Write an export; whatever happens, its reader learns of it, and others may have one."""
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
