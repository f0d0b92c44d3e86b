"""The middleware: the ASGI layer around every request, inside CORS.

It refuses foreign origins, authenticates, applies backpressure, reads the body, dispatches and sends the answer. It
also assigns request ids, counts and logs requests, and turns every error into an answer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from equipoise.errors import EquipoiseError, StoreChanged
from equipoise.service.dispatch import Answer, Application, Exchange, Message, Receive, Router, Scope, Send
from equipoise.service.error_responses import KIND, SAFE_HEADERS, Overloaded, Refused, answer_to
from equipoise.service.http_protocol import send_whole
from equipoise.service.streaming import send_pieces

if TYPE_CHECKING:
    from equipoise.service.api_keys import Key
    from equipoise.service.console_routes import Console
    from equipoise.service.key_limits import Limits
    from equipoise.service.service import Service

log = logging.getLogger("equipoise.service")

_PUBLIC = frozenset((b"/healthz", b"/readyz", b"/", b"/docs", b"/openapi.json"))
"""Paths that need no key; the last three reveal only what the project's documentation says."""
_PUBLIC_FILES = b"/docs/"
_MOST_DISCARDED, _DISCARD_SECONDS = 4 * 2**20, 0.25
"""Bytes of a body that is too large, and seconds, to read and throw away before it is refused."""
MOST_FORM_BYTES = 262_144
"""Largest form of the console; plans and lists of arms may be long."""
_SMALL_BODY = 16_384
"""Bytes of a body not worth counting when they arrive in one piece, as in all frequent requests."""
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LOOPBACK = re.compile(r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_JSON = b"application/json"
_JSON_HEADERS = [(b"content-type", _JSON), *SAFE_HEADERS]
_LIKE_JSON = re.compile(rb"application/([\w.+-]+\+)?json\s*(;.*)?", re.IGNORECASE)
_CLOSE = {"connection": "close"}
"""Closes the connection when the rest of a body is not worth reading."""
_UNLOGGED = frozenset(
    f"/experiments/{{name}}/{path}"
    for path in ("assignments", "assignments/many", "assignments/{unit}/reward", "rewards/many")
)
"""Routes not logged by default, since the experiment's own log records these requests."""


class Middleware:
    """The ASGI application, except for CORS."""

    def __init__(self, service: Service, router: Router, lifespan: Application, console: Console | None = None) -> None:
        self.service = service
        self._router = router
        self._lifespan = lifespan
        self._console = console
        self._prefix, self._count = secrets.token_hex(4), itertools.count(1)
        self._bytes_held = 0
        self._bytes_held_of: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        metrics = self.service.metrics
        exchange = Exchange(scope, receive)
        try:
            await self._answer(exchange, scope, send)
        finally:
            metrics.in_flight -= exchange.entered
            if exchange.bytes_held:
                self._release(exchange)
            seconds = time.perf_counter() - exchange.started
            metrics.observe_request(exchange.method, exchange.route, exchange.status, seconds)
            if exchange.names:
                error = exchange.error
                self.service.observe_call(exchange.method, exchange.route, exchange.names[0], exchange.status, error)
            if self.service.settings.access_log or exchange.status >= 500 or exchange.route not in _UNLOGGED:
                self._log(exchange, scope, seconds)

    async def _answer(self, exchange: Exchange, scope: Scope, send: Send) -> None:
        path: bytes = scope["raw_path"]
        content_type, encoding, host, origin, length = b"", b"", b"", None, None
        for name, value in scope["headers"]:
            if name == b"authorization":
                exchange.authorization = value
            elif name == b"content-type":
                content_type = value
            elif name == b"content-length":
                length = value
            elif name == b"content-encoding" and value.lower() != b"identity":
                encoding = value
            elif name == b"host":
                host = value
            elif name == b"origin":
                origin = value
            elif name == b"accept":
                exchange.accept = value
            elif name == b"x-request-id" and REQUEST_ID.fullmatch(value):
                exchange.request_id = value
        exchange.request_id = exchange.request_id or f"{self._prefix}-{next(self._count):x}".encode()
        try:
            service = self.service
            if service.settings.open:
                self._check_origin(host, origin)
            if self._console is not None and (path == b"/console" or path.startswith(b"/console/")):
                # It has keys, errors and limits of its own; the cookies of its sessions count nowhere else.
                self._admit(exchange)
                read_form = partial(self._read_body, exchange, length, MOST_FORM_BYTES)
                await self._send(exchange, send, await self._console.answer(exchange, scope, read_form))
                return
            if path not in _PUBLIC and not path.startswith(_PUBLIC_FILES):
                # Authenticate first: a client without a key must not make us wait for its body or take up capacity.
                authorization = exchange.authorization
                exchange.key = service.key_now(authorization) or await service.key(authorization)
                self._admit(exchange)
            parts = path.split(b"/")
            route = self._router.match(exchange.method, parts)
            route.admit(exchange, parts)
            if exchange.key is not None and exchange.key.limits is not None:
                self._spend(exchange.key, exchange.key.limits, length)
            exchange.body = await self._read_body(exchange, length, service.most_bytes(route.endpoint))
            if length is None and exchange.body and exchange.key is not None and exchange.key.limits is not None:
                service.budgets.take(exchange.key.id, exchange.key.limits, "bytes", len(exchange.body))
            if exchange.body and content_type != _JSON and not _LIKE_JSON.fullmatch(content_type):
                raise Refused(415, "a body must be JSON", hint="send Content-Type: application/json")
            if exchange.body and encoding:
                raise Refused(415, "a body must not be compressed", hint="send it without Content-Encoding")
            answer = await route.call(service, exchange)
        except Exception as error:  # noqa: BLE001
            answer = self._failure(exchange, error)
        except asyncio.CancelledError:
            # The server is shutting down, and the grace period is over.
            answer = self._failure(exchange, Overloaded("the service ends; whether this was recorded is not known"))
        await self._send(exchange, send, answer)

    def _check_origin(self, host: bytes, origin: bytes | None) -> None:
        """Refuse pages of other origins, which could call a service without keys through its owner's browser."""
        if not _LOOPBACK.fullmatch(host.decode("latin-1")):  # DNS rebinding: the page's own host name points here
            raise Refused(421, "a service without keys answers to localhost only")
        if origin is None or _LOOPBACK.fullmatch(origin.decode("latin-1")):
            return
        allowed = self.service.settings.cors_origins
        if "*" not in allowed and origin.decode("latin-1") not in allowed:
            raise Refused(403, "pages of this site may not call the service", hint="--cors-origin names sites that may")

    def _admit(self, exchange: Exchange) -> None:
        """Count a request as in flight, or refuse it if there are too many: backpressure."""
        metrics, most = self.service.metrics, self.service.settings.requests_in_flight
        if metrics.in_flight >= most:
            raise Overloaded(f"more than {most:,} requests at once")
        metrics.in_flight += 1
        exchange.entered = True

    def _spend(self, key: Key, limits: Limits, length: bytes | None) -> None:
        """Count a request, and its body if its length is known, towards the limits of its key."""
        self.service.budgets.take(key.id, limits, "requests", 1)
        if length is not None and length.isdigit():
            self.service.budgets.take(key.id, limits, "bytes", int(length))

    async def _read_body(self, exchange: Exchange, length: bytes | None, most: int) -> bytes:
        """Read the body; refuse it if it, or all bodies in flight, are too large. `PatientProtocol` limits the time."""
        if length is not None and length.isdigit() and int(length) > most:
            raise _too_large(most, f"{int(length):,}")
        message = await exchange.receive()
        piece: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body") and most >= len(piece) <= _SMALL_BODY:
            return piece
        body = bytearray()
        while True:
            body += piece
            if len(body) > most:
                await _discard(exchange, message)
                raise _too_large(most, "more")
            self._hold(exchange, len(piece))
            if message["type"] == "http.disconnect":
                raise Refused(400, "the request did not arrive whole", headers=_CLOSE)
            if not message.get("more_body"):
                return bytes(body)
            message = await exchange.receive()
            piece = message.get("body", b"")

    def _hold(self, exchange: Exchange, n_bytes: int) -> None:
        """Count bytes of a body until its request ends; refuse too many, of all clients or of one: backpressure."""
        exchange.bytes_held += n_bytes
        self._bytes_held += n_bytes
        settings = self.service.settings
        if exchange.key is not None:
            self._bytes_held_of[exchange.key.id] += n_bytes
        if self._bytes_held > settings.bytes_in_flight:
            raise Overloaded(f"more than {settings.bytes_in_flight:,} bytes of requests at once")
        if exchange.key is not None and self._bytes_held_of[exchange.key.id] > settings.bytes_of_one_key:
            raise Overloaded(f"more than {settings.bytes_of_one_key:,} bytes of requests at once with this key")

    def _release(self, exchange: Exchange) -> None:
        """Stop counting the bytes of a request's body."""
        self._bytes_held -= exchange.bytes_held
        if exchange.key is not None:
            self._bytes_held_of -= Counter({exchange.key.id: exchange.bytes_held})  # drops counts of zero

    def _failure(self, exchange: Exchange, error: Exception) -> Answer:
        status, headers, body = answer_to(error)
        exchange.error = headers.get(KIND)
        if isinstance(error, StoreChanged):
            self.service.forget_experiments()
        if not isinstance(error, EquipoiseError):
            data = {"request_id": exchange.request_id.decode(), "route": exchange.route}
            log.error("unexpected error", exc_info=error, extra={"data": data})
        return Answer(status, body, headers)

    async def _send(self, exchange: Exchange, send: Send, answer: Answer) -> None:
        status, body, extra = answer
        exchange.status = status
        headers = _JSON_HEADERS
        if extra:
            given = [(name.encode(), value.encode()) for name, value in extra.items()]
            headers = [*(one for one in headers if one[0].decode() not in extra), *given]
        elif isinstance(body, bytes) and send_whole(send, status, body, exchange.request_id):
            return
        lines = [*headers, (b"x-request-id", exchange.request_id)]
        if isinstance(body, bytes):
            lines.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": lines})
        if isinstance(body, bytes):
            await send({"type": "http.response.body", "body": body})
            return
        try:
            await send_pieces(body, exchange, send)
        except Exception:  # part of it is sent; raising closes the connection, so it is not taken for whole
            log.exception("an answer broke off", extra={"data": {"request_id": exchange.request_id.decode()}})
            raise

    def _log(self, exchange: Exchange, scope: Scope, seconds: float) -> None:
        """Log a request without its body or secret, and its route instead of its path: a unit may name a person."""
        data = {
            "request_id": exchange.request_id.decode(),
            "method": exchange.method,
            "route": exchange.route,
            "status": exchange.status,
            "milliseconds": round(1000 * seconds, 2),
        }
        if exchange.key is not None:
            data["key"] = exchange.key.id
        client = scope.get("client")
        if client:
            data["client"] = client[0]
        quiet = exchange.route in ("/healthz", "/readyz", "/metrics") and exchange.status < 400
        log.log(logging.DEBUG if quiet else logging.INFO, "request", extra={"data": data})


async def _discard(exchange: Exchange, message: Message) -> None:
    """Read the rest of a body without keeping it: a client that is still sending would not see the answer."""
    n_bytes = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while message.get("more_body") and n_bytes < _MOST_DISCARDED:
                message = await exchange.receive()
                n_bytes += len(message.get("body", b""))


def _too_large(most: int, got: str) -> Refused:
    return Refused(
        413,
        f"the body of this request may have at most {most:,} bytes; got {got}",
        hint="send several smaller requests",
        headers=_CLOSE,
    )
