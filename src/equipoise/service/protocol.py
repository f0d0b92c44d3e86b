"""A connection that does not wait for ever: a client has so many seconds to send a request."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from equipoise.service.failures import SAFE_HEADERS, failure_body

if TYPE_CHECKING:
    import asyncio

_MOST_HEAD_BYTES = 65_536
"""Largest head of a request; what arrives in one piece may be a little larger."""


def _refusal(status: bytes, error: str, hint: str) -> bytes:
    """Return an answer to what is no request yet, so that nothing else can answer it."""
    body = failure_body(error, hint)
    safe = b"".join(name + b": " + value + b"\r\n" for name, value in SAFE_HEADERS)
    return (
        b"HTTP/1.1 " + status + b"\r\ncontent-type: application/json\r\nx-equipoise-error: InvalidInput\r\n"
        b"x-request-id: " + secrets.token_hex(8).encode() + b"\r\n" + safe + b"connection: close\r\n"
        b"content-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on the time that a request may take to arrive.

    uvicorn closes connections that are idle between requests. What is left are connections that never send the whole
    of a request, of which a few thousand would use up everything.
    """

    seconds = 15.0
    """How long a request may take to arrive; set once per process."""

    _late: asyncio.TimerHandle | None = None
    _head_bytes: int | None = 0

    def data_received(self, data: bytes) -> None:
        """Hang up on a head without end."""
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > _MOST_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(
                    _refusal(
                        b"431 Request Header Fields Too Large", "the head of the request is too large", "send less"
                    )
                )
                self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Say it in the shape that all errors have."""
        self.transport.write(_refusal(b"400 Bad Request", "this is no HTTP request", "send HTTP/1.1"))
        self.transport.close()

    def on_headers_complete(self) -> None:
        """Count no more."""
        self._head_bytes = None
        super().on_headers_complete()

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.seconds, self._give_up)

    def on_message_begin(self) -> None:
        """Start the clock, for the second request of a connection and those after it."""
        super().on_message_begin()
        self._head_bytes = 0
        if self._late is None:
            self._late = self.loop.call_later(self.seconds, self._give_up)

    def on_message_complete(self) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().on_message_complete()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clock."""
        self._stop_clock()
        super().connection_lost(error)

    def _stop_clock(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        """Say so, unless an answer is under way or nothing was asked, and hang up."""
        self._late = None
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # None before the first request
        if cycle is not None and not cycle.response_started:
            self.transport.write(
                _refusal(b"408 Request Timeout", "the request took too long to arrive", "send it again")
            )
        self.transport.close()
