"""The uvicorn protocol: time limits against slow clients (slowloris), and short answers in one piece.

`send_whole` uses the private `RequestResponseCycle` of uvicorn, which buys a fifth of the throughput. If a release of
uvicorn changes it, delete `send_whole` and its call in `middleware.py`: answers then go out in two pieces.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from equipoise.service.error_responses import SAFE_HEADERS, failure_body

_UNREAD_SECONDS = 40.0
"""How long a client may take nothing of an answer; what writes one in pieces gives up a little earlier, and says so."""
_MOST_HEAD_BYTES = 65_536
"""Largest head of a request; what arrives in one piece may be a little larger."""


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in headers)


_UPGRADE = re.compile(rb"\r\n(?:upgrade:[^\r\n]*\r\n)+", re.IGNORECASE)
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_JSON_LINES = _lines([(b"content-type", b"application/json"), *SAFE_HEADERS])


_known_lines: tuple[Any, bytes] = (None, b"")


def _server_lines(headers: Any) -> bytes:
    """Return the lines of the server's own headers, such as the date: a list that is made anew every second."""
    global _known_lines
    known, lines = _known_lines
    if known is not headers:
        lines = _lines(headers)
        _known_lines = headers, lines
    return lines


def _refusal(status: int, error: str, hint: str) -> bytes:
    """Return an answer to what is no request yet, so that nothing else can answer it."""
    body = failure_body(error, hint)
    return (
        _STATUS_LINES[status] + _JSON_LINES + b"x-equipoise-error: InvalidInput\r\n"
        b"x-request-id: " + secrets.token_hex(8).encode() + b"\r\nconnection: close\r\n"
        b"content-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )


def send_whole(send: Any, status: int, body: bytes, request_id: bytes) -> bool:
    """Send an answer of JSON with one call of the system, and return True, if that is possible here.

    `send` must come from uvicorn as it is, and nothing be special about the connection. uvicorn sends the head and then
    the body; for a short answer that is half of what it costs.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle:
        return False
    if cycle.disconnected or cycle.response_started or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    if cycle.scope["method"] == "HEAD":  # whose answer has no body
        return False
    cycle.response_started = cycle.response_complete = True
    length = str(len(body)).encode()
    cycle.transport.write(
        b"%b%b%bcontent-length: %b\r\nx-request-id: %b\r\n\r\n%b"
        % (_STATUS_LINES[status], _server_lines(cycle.default_headers), _JSON_LINES, length, request_id, body)
    )
    cycle.message_event.set()
    cycle.on_response()
    return True


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on the time that a request may take to arrive.

    uvicorn closes connections that are idle between requests. This class closes those that never send the whole of a
    request (slowloris), of which a few thousand would use up everything, and those that never read an answer. It
    ignores `Upgrade` (RFC 9110, 7.8); uvicorn would parse the body as the next request.
    """

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _between_requests = True
    _in_head = False
    _begun_here = False
    """Whether the request began in the piece of data that is being read."""
    _head_bytes = 0
    _ended = False

    def __init__(self, seconds: float, *details: Any, **more: Any) -> None:
        """Take how long a request may take to arrive, and what uvicorn tells every connection."""
        super().__init__(*details, **more)
        self._seconds = seconds

    def data_received(self, data: bytes) -> None:
        """Hang up on a head without end."""
        if self._ended:
            return
        if self._between_requests and (b"pgrade" in data or b"PGRADE" in data):
            data = _without_upgrade(data)
        self._begun_here = False
        super().data_received(data)
        if self.parser.should_upgrade() and not self._ended:
            self._end_after_answer()
        if self._in_head and not self._ended:
            # Of a piece with the end of one request and the beginning of the next nobody knows how much is the head.
            self._head_bytes += 0 if self._begun_here and self.cycle is not None else len(data)
            if self._head_bytes > _MOST_HEAD_BYTES:
                self._hang_up(_refusal(431, "the head of the request is too large", "send less"))

    def _end_after_answer(self) -> None:
        """Read nothing more: what follows is no HTTP, or a body that the parser did not see as one."""
        self._ended = True
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
        else:
            cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Say it in the shape that all errors have."""
        self._hang_up(_refusal(400, "this is no HTTP request", "send HTTP/1.1"))

    def connection_made(self, transport: Any) -> None:
        """Start the clock."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self._seconds, self._give_up)

    def on_message_begin(self) -> None:
        """Start the clock, for the second request of a connection and those after it."""
        super().on_message_begin()
        self._between_requests, self._in_head, self._begun_here, self._head_bytes = False, True, True, 0
        if self._late is None:
            self._late = self.loop.call_later(self._seconds, self._give_up)

    def on_headers_complete(self) -> None:
        """Count no more."""
        self._in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Stop the clock."""
        self._between_requests = True
        self._stop_clock()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the write timeout: shutdown would otherwise wait for a client that never reads."""
        super().pause_writing()
        self._await_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Go on with an answer that is read again."""
        if self._unread is not None:
            self._unread.cancel()
        super().resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop the clocks."""
        self._stop_clock()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(error)

    def _await_reading(self, unread: int) -> None:
        self._unread = self.loop.call_later(_UNREAD_SECONDS, self._look_at_reading, unread)

    def _look_at_reading(self, before: int) -> None:
        """Cut off who took nothing; a large answer is one piece, and nobody resumes before all of it is taken."""
        unread = self.transport.get_write_buffer_size()
        if unread < before:
            self._await_reading(unread)
        else:
            self.transport.abort()

    def _stop_clock(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        """Say so, unless nothing was asked, and hang up."""
        self._late = None
        if self._between_requests:
            self.transport.close()
        else:
            self._hang_up(_refusal(408, "the request took too long to arrive", "send it again"))

    def _hang_up(self, reason: bytes) -> None:
        """Say why; but not while another request waits for its answer, as it would be taken for that."""
        self._ended = True
        self._stop_clock()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # of this request, if its head is complete, and of the one before otherwise
        if cycle is None or cycle.response_complete:
            self.transport.write(reason)
        elif self._in_head or self._between_requests:
            cycle.keep_alive = False  # it is closed after that answer
            return
        elif not self.pipeline and not cycle.response_started:
            self.transport.write(reason)
        self.transport.close()


def _without_upgrade(data: bytes) -> bytes:
    """Return data without the wish for another protocol in the first head, which a server may ignore (RFC 9110, 7.8).

    Java's HttpClient, for one, asks for HTTP/2 in every request over plain HTTP.
    """
    end = data.find(b"\r\n\r\n")
    return data if end < 0 else _UPGRADE.sub(b"\r\n", data[: end + 2]) + data[end + 2 :]
