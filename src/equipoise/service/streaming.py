"""An export as a stream: written on a thread as fast as the client reads, and never all in memory."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from equipoise.experiment import Experiment

_WAITING = 4
"""Pieces that may wait for a slow client."""


class _GoneAway(Exception):
    """The client is gone, so the thread has nobody to write for."""


class _Pipe:
    """A file that a thread writes to and a coroutine reads from."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.pieces: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(_WAITING)
        self.closed = threading.Event()

    def write(self, piece: str | bytes) -> int:
        """Hand a piece over, waiting while too many wait already; called on the thread."""
        data = piece.encode() if isinstance(piece, str) else bytes(piece)
        if data:
            self.put(data)
        return len(piece)

    def put(self, piece: bytes | BaseException | None) -> None:
        """Hand over what is next: a piece, an error, or None for the end."""
        handed = asyncio.run_coroutine_threadsafe(self.pieces.put(piece), self.loop)
        while True:
            try:
                handed.result(timeout=0.5)
            except TimeoutError:
                if self.closed.is_set():
                    handed.cancel()
                    raise _GoneAway from None
            else:
                return

    async def read(self) -> AsyncIterator[bytes]:
        """Yield the pieces."""
        try:
            while (piece := await self.pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self.closed.set()


class _Binary(_Pipe):
    """The same, for those who look whether text is welcome."""

    def write(self, piece: Any) -> int:
        """Take bytes only."""
        if isinstance(piece, str):
            raise TypeError("bytes only")
        return super().write(piece)


async def exported(experiment: Experiment, form: str) -> AsyncIterator[bytes]:
    """Return the pieces of an export; what is wrong from the start is raised before the first one."""
    pipe = _Binary() if form == "parquet" else _Pipe()

    def work() -> None:
        try:
            experiment.export(pipe, form)  # type: ignore[arg-type]
            pipe.put(None)
        except _GoneAway:
            return
        except BaseException as error:  # noqa: BLE001
            pipe.put(error)

    threading.Thread(target=work, name="equipoise-export", daemon=True).start()
    pieces = pipe.read()
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        first = b""

    async def all_of_it() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_of_it()
