"""Stream an export: a thread writes it to a temporary file, and the client reads that at its own pace.

The thread goes as fast as the database, whoever reads: an open transaction keeps SQLite from recycling its WAL, and
PostgreSQL from cleaning up. The file has no name, so nothing is left behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import tempfile
import threading
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from equipoise.errors import StoreUnavailable
from equipoise.service.error_responses import Overloaded

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.service.dispatch import Exchange, Send

log = logging.getLogger("equipoise.service")

MOST_EXPORTS = 4
"""Most exports at once per process: each holds a temporary file until its client has read it."""
STALL_SECONDS = 30.0
"""Write timeout: how long a client may read nothing of an export before we give up.

Progress shows in steps of a third of the system's buffer for the connection, which may be several megabytes.
"""
LEAST_FREE_BYTES = 256 * 2**20
"""Room that exports leave on the disk of temporary files; the store may be on the same one."""

_PIECE = 65_536
"""Most bytes of a piece: small enough that even a slow client reads one in time."""

_running: set[_Spool] = set()
_counting = threading.Lock()


class _GoneAway(Exception):
    """The reader is gone, so the thread should stop writing."""


class _Spool:
    """A temporary file that a thread writes to while a coroutine reads from it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed by `_leave`)
        self._n_written = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = asyncio.Event()
        self._reader_gone = threading.Event()
        self._n_users = 2

    def write(self, piece: str | bytes) -> int:
        """Write text or bytes; called on the thread."""
        data = memoryview(piece.encode() if isinstance(piece, str) else piece)
        disk = os.fstatvfs(self._file.fileno())
        if disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES + len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        n_written = 0
        while n_written < len(data):  # an unbuffered file may take less than all
            if self._reader_gone.is_set():
                raise _GoneAway
            n_written += self._file.write(data[n_written:])
        self._notify(n_written)
        return len(piece)

    def end(self, error: BaseException | None) -> None:
        """Signal the end, or an error; called on the thread."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error = StoreUnavailable(f"no room for an export in {tempfile.gettempdir()}: {error.strerror}")
        self._notify(0, ended=True, error=error)

    def _notify(self, n_bytes: int, *, ended: bool = False, error: BaseException | None = None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._change, n_bytes, ended, error)
        except RuntimeError:  # the loop is closed: the service has ended
            raise _GoneAway from None

    def _change(self, n_bytes: int, ended: bool, error: BaseException | None) -> None:
        self._n_written += n_bytes
        self._ended, self._error = ended, error
        self._changed.set()

    async def read(self) -> AsyncGenerator[bytes, None]:
        """Yield the pieces, as far as they are written, until the end."""
        place = 0
        try:
            while place < self._n_written or not self._ended:
                if place == self._n_written:
                    self._changed.clear()
                    await self._changed.wait()
                    continue
                piece = await asyncio.to_thread(os.pread, self._file.fileno(), _PIECE, place)
                place += len(piece)
                yield piece
            if self._error is not None:
                raise self._error
        finally:
            self._reader_gone.set()
            self.leave()

    def leave(self) -> None:
        """Give up the file; both its users do, and with the second it is gone."""
        with _counting:
            self._n_users -= 1
            if self._n_users:
                return
            _running.discard(self)
        self._file.close()


async def export_pieces(experiment: Experiment, form: str) -> AsyncGenerator[bytes, None]:
    """Start an export and return its pieces; an error before the first piece is raised here."""
    pieces = _start(experiment, form).read()
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
    leaving, whole = asyncio.ensure_future(exchange.gone()), False
    try:
        async for piece in pieces:
            if leaving.done():
                return
            async with asyncio.timeout(STALL_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        whole = True
    except TimeoutError:
        # The answer stays incomplete, so the server closes the connection. This is not an unexpected error.
        log.warning("an export broke off, as its client took nothing of it")
    finally:
        leaving.cancel()
        await pieces.aclose()
        if not whole:
            log.info("an export was given up", extra={"data": {"request_id": exchange.request_id.decode()}})


def _start(experiment: Experiment, form: str) -> _Spool:
    """Start a thread that writes the export, or refuse if there are too many: backpressure."""
    with _counting:
        if len(_running) >= MOST_EXPORTS:
            raise Overloaded(f"{MOST_EXPORTS} exports are under way, and more at once are not made")
        spool = _Spool()
        _running.add(spool)
    thread = threading.Thread(target=_write, args=(experiment, spool, form), name="equipoise-export", daemon=True)
    try:
        thread.start()
    except BaseException:
        spool.leave()
        spool.leave()
        raise
    return spool


def _write(experiment: Experiment, spool: _Spool, form: str) -> None:
    """Write an export; always signal its end or error to the reader."""
    error: BaseException | None = None
    try:
        experiment.export(spool, form)  # type: ignore[arg-type]
    except _GoneAway:  # keep nothing of it: its traceback holds the transaction
        pass
    except BaseException as raised:  # noqa: BLE001
        error = raised
    with contextlib.suppress(_GoneAway):
        spool.end(error)
    spool.leave()
