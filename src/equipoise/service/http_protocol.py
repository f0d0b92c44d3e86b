"""Extend uvicorn's HTTP protocol: timeouts against slow clients (slowloris), and short answers in one write.

`send_whole` uses uvicorn's private `RequestResponseCycle`, which gains a fifth of the throughput. If a release of
uvicorn changes it, delete `send_whole` and its call in `middleware.py`: answers then go out in two writes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from equipoise.service.error_responses import SAFE_HEADERS, failure_body

_MOST_HEAD_BYTES = 65_536
"""Largest head of a request, and largest trailers; one that arrives in one piece may be a little larger."""
_NO_TRAILERS: Any = deque(maxlen=0)
"""Takes the trailers of a chunked request and keeps none: they must not count as headers (RFC 9110, 6.5.1)."""


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(name + b": " + value + b"\r\n" for name, value in headers)


_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_JSON_LINES = _lines([(b"content-type", b"application/json"), *SAFE_HEADERS])


_known_lines: tuple[Any, bytes] = (None, b"")


def _server_lines(headers: Any) -> bytes:
    """Return uvicorn's own headers, such as the date, as bytes; cached, since uvicorn renews the list every second."""
    global _known_lines
    known, lines = _known_lines
    if known is not headers:
        lines = _lines(headers)
        _known_lines = headers, lines
    return lines


def _refusal(status: int, error: str, hint: str) -> bytes:
    """Return a complete error answer to data that is not a request yet, so that no handler can answer it."""
    body = failure_body(error, hint)
    return (
        _STATUS_LINES[status] + _JSON_LINES + b"x-equipoise-error: InvalidInput\r\n"
        b"x-request-id: " + secrets.token_hex(8).encode() + b"\r\nconnection: close\r\n"
        b"content-length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )


def send_whole(send: Any, status: int, body: bytes, request_id: bytes) -> bool:
    """Send a JSON answer with one system call and return True; return False if that is not possible here.

    `send` must be uvicorn's own, unwrapped, and the connection in its normal state. uvicorn sends the head and then the
    body; for a short answer that is half of its cost.
    """
    cycle = getattr(send, "__self__", None)
    if type(cycle) is not RequestResponseCycle:
        return False
    if cycle.disconnected or cycle.response_started or cycle.flow.write_paused or not cycle.keep_alive:
        return False
    if cycle.scope["method"] == "HEAD":  # its answer has no body
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


class _Parser(httptools.HttpRequestParser):
    """A parser that goes on after a request with `Upgrade`; httptools would take its body for another protocol."""

    def __init__(self, protocol: PatientProtocol) -> None:
        super().__init__(protocol)
        self._protocol = protocol

    def feed_data(self, data: Any) -> None:
        """Parse data, up to the head of a request with `Upgrade`."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._protocol.parse_head_again(memoryview(data)[upgrade.args[0] :])


class PatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a limit on how long a request may take to arrive.

    uvicorn closes connections that are idle between requests. This class also closes connections that never send a
    whole request (slowloris; a few thousand would exhaust the server) or never read an answer. It ignores trailers and
    `Upgrade`, as a server may (RFC 9110, 6.5.1 and 7.8): Java's HttpClient, for one, asks for HTTP/2 in every request.
    """

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _between_requests = True
    _in_head = False
    _moved_on = False
    """Whether a request began, or part of its body came, in the piece of data being parsed."""
    _head_bytes = 0
    """Bytes since the request began, or since the last part of its body."""
    _unparsed: tuple[bytes, memoryview] | None = None
    """After a head with `Upgrade`: the same head without it, and the data that follows."""
    _ended = False

    def __init__(self, seconds: float, unread_seconds: float, *details: Any, **more: Any) -> None:
        """Set how long a request may take to arrive and an answer be left unread; the rest is for uvicorn."""
        super().__init__(*details, **more)
        self._seconds = seconds
        self._unread_seconds = unread_seconds
        self.parser = _Parser(self)

    def data_received(self, data: bytes) -> None:
        """Parse data; close the connection if the head or the trailers of a request are too large."""
        if self._ended:
            return
        self._moved_on = False
        super().data_received(data)
        while self._unparsed is not None:
            (head, rest), self._unparsed = self._unparsed, None
            super().data_received(head)
            super().data_received(rest)  # type: ignore[arg-type]  # (the parser takes any buffer)
        if not self._between_requests and not self._ended:
            # If a piece ends one request and begins the next, we cannot tell how much of it is the head.
            self._head_bytes += 0 if self._moved_on and self.cycle is not None else len(data)
            if self._head_bytes > _MOST_HEAD_BYTES:
                self._hang_up(_refusal(431, "the head or the trailers of the request are too large", "send less"))

    def parse_head_again(self, rest: memoryview) -> None:
        """Have the head that was just parsed parsed again without `Upgrade`, and then the rest."""
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        self._unparsed = line + _lines(one for one in self.headers if one[0] != b"upgrade") + b"\r\n", rest
        self.parser = _Parser(self)

    def send_400_response(self, msg: str) -> None:
        """Refuse a malformed request, in the shape of all our errors."""
        self._hang_up(_refusal(400, "this is no HTTP request", "send HTTP/1.1"))

    def connection_made(self, transport: Any) -> None:
        """Start the timeout for the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self._seconds, self._give_up)

    def on_message_begin(self) -> None:
        """Start the timeout for later requests on the connection."""
        super().on_message_begin()
        self._between_requests, self._in_head, self._moved_on, self._head_bytes = False, True, True, 0
        if self._late is None:
            self._late = self.loop.call_later(self._seconds, self._give_up)

    def on_headers_complete(self) -> None:
        """Begin to answer the request."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":  # what follows is not HTTP
                raise httptools.HttpParserError("this is no proxy")
            return
        self._in_head = False
        super().on_headers_complete()
        self.headers = _NO_TRAILERS

    def on_body(self, body: bytes) -> None:
        """Take part of a body."""
        self._moved_on, self._head_bytes = True, 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timeout."""
        if self.parser.should_upgrade():
            return
        self._between_requests = True
        self._stop_clock()
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the write timeout: shutdown would otherwise wait for a client that never reads."""
        super().pause_writing()
        self._await_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stop the write timeout: the client reads again."""
        if self._unread is not None:
            self._unread.cancel()
        super().resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Stop all timeouts."""
        self._stop_clock()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(error)

    def _await_reading(self, unread: int) -> None:
        self._unread = self.loop.call_later(self._unread_seconds, self._look_at_reading, unread)

    def _look_at_reading(self, before: int) -> None:
        """Close if the client read nothing; writing resumes only after all of a large answer, so compare bytes."""
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
        """Close the connection, with a 408 if a request had begun."""
        self._late = None
        if self._between_requests:
            self.transport.close()
        else:
            self._hang_up(_refusal(408, "the request took too long to arrive", "send it again"))

    def _hang_up(self, reason: bytes) -> None:
        """Send the reason and close; not while another request awaits its answer: it would be taken for that."""
        self._ended = True
        self._stop_clock()
        if self.transport.is_closing():
            return
        cycle: Any = self.cycle  # this request's if its head is complete, else the previous one's
        if cycle is None or cycle.response_complete:
            self.transport.write(reason)
        elif self._in_head or self._between_requests:
            cycle.keep_alive = False  # uvicorn closes after that answer
            return
        elif not self.pipeline and not cycle.response_started:
            self.transport.write(reason)
        self.transport.close()
