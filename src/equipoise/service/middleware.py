"""The outermost layer, through which every request comes and every answer goes.

It counts, limits, names and logs requests, reads their bodies, checks keys, sends the answers that the lean routes
give, and turns whatever else goes wrong into an answer.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.service.error_responses import SAFE_HEADERS, Overloaded, Refused, answer_to
from equipoise.service.lean import ASSIGN, REWARD, LeanRoutes, encoded_assignment, encoded_reward
from equipoise.service.protocol import send_whole

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from equipoise.service.keys import Key
    from equipoise.service.service import Core

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

log = logging.getLogger("equipoise.service")

PUBLIC = ("/healthz", "/readyz", "/", "/docs", "/openapi.json")
"""What needs no key; the last three tell what any reader of the project's pages knows."""

_PUBLIC = frozenset(path.encode() for path in PUBLIC)
_PUBLIC_FILES = b"/docs/"
_PUBLIC_BODY_BYTES = 1_024
_SMALL_BODY = 16_384
"""Bytes of a body that are not worth counting when they come in one piece, as those of all hot requests do."""
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_LOOPBACK = re.compile(r"(https?://)?(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?")
_JSON = re.compile(rb"application/([\w.+-]+\+)?json\s*(;.*)?", re.IGNORECASE)
_JSON_TYPE = (b"content-type", b"application/json")
_HOT = frozenset(
    (ASSIGN, REWARD, "/experiments/{name}/assignments/many", "/experiments/{name}/rewards/many")
)  # what the experiment's own log tells of


class Exchange:
    """One request and what is known of its answer."""

    __slots__ = (
        "authorization",
        "body",
        "bytes_held",
        "entered",
        "key",
        "method",
        "receive",
        "request_id",
        "route",
        "started",
        "status",
    )

    def __init__(self, method: str, request_id: bytes) -> None:
        self.method = method
        self.request_id = request_id
        self.started = time.perf_counter()
        self.route = "unknown"
        self.status = 0
        self.key: Key | None = None
        self.entered = False
        self.authorization: bytes | None = None
        self.body = b""
        self.bytes_held = 0
        self.receive: Receive | None = None

    async def gone(self) -> None:
        """Wait until the client is gone, which is all that there is to hear of it once the body was read."""
        while self.receive is not None and (await self.receive())["type"] != "http.disconnect":
            pass


class Gate:
    """An ASGI application around another one."""

    def __init__(self, core: Core, inner: Application) -> None:
        self._core = core
        self._inner = inner
        self._lean = LeanRoutes(core)
        self._prefix, self._count = secrets.token_hex(4), itertools.count(1)
        self._bytes_held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Deal with one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        metrics = self._core.metrics
        exchange = Exchange(scope["method"], b"")
        try:
            await self._answer(exchange, scope, receive, send)
        finally:
            metrics.in_flight -= exchange.entered
            self._bytes_held -= exchange.bytes_held
            seconds = time.perf_counter() - exchange.started
            metrics.observe_request(exchange.method, exchange.route, exchange.status, seconds)
            if self._core.settings.access_log or exchange.status >= 500 or exchange.route not in _HOT:
                self._log(exchange, scope, seconds)

    async def _answer(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        raw_path: bytes = scope["raw_path"]
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
            elif name == b"x-request-id" and REQUEST_ID.fullmatch(value):
                exchange.request_id = value
        exchange.request_id = exchange.request_id or f"{self._prefix}-{next(self._count):x}".encode()
        try:
            if self._core.settings.open:
                self._check_neighbours(host, origin)
            if raw_path in _PUBLIC or raw_path.startswith(_PUBLIC_FILES):
                exchange.body = await self._read(exchange, receive, length, _PUBLIC_BODY_BYTES)
            else:
                # First of all, so that nobody without a key keeps us waiting for a body, or anybody else for us.
                authorization = exchange.authorization
                exchange.key = self._core.key_now(authorization) or await self._core.key(authorization)
                self._enter(exchange)
                exchange.body = await self._read(exchange, receive, length, self._core.settings.body_bytes)
                hot = self._lean.match(exchange.method, raw_path)
                plain = not encoding and not scope["query_string"] and _JSON.fullmatch(content_type)
                if hot is not None and plain:
                    exchange.route = hot[0]
                    begun = self._lean.begin(hot, exchange)
                    if begun is not None:
                        found: Any = await begun
                        encoded = encoded_assignment if hot[0] is ASSIGN else encoded_reward
                        await self._send(exchange, send, *encoded(found))
                        return
            if exchange.body and not _JSON.fullmatch(content_type):
                raise Refused(415, "a body must be JSON", hint="send Content-Type: application/json")
            if exchange.body and encoding:
                raise Refused(415, "a body must not be compressed", hint="send it without Content-Encoding")
        except Exception as error:  # noqa: BLE001
            await self._fail(exchange, send, error)
            return
        except asyncio.CancelledError:
            # The server ends, and this had its time.
            await self._fail(exchange, send, Overloaded("the service ends; whether this was recorded is not known"))
            return
        await self._pass_on(exchange, scope, receive, send)

    def _enter(self, exchange: Exchange) -> None:
        """Count a request among those that are worked on, unless there are too many."""
        metrics, most = self._core.metrics, self._core.settings.requests_in_flight
        if metrics.in_flight >= most:
            raise Overloaded(f"more than {most:,} requests at once")
        metrics.in_flight += 1
        exchange.entered = True

    def _check_neighbours(self, host: bytes, origin: bytes | None) -> None:
        """Refuse pages of strangers, which would speak through the browser of whoever runs a service without keys."""
        if not _LOOPBACK.fullmatch(host.decode("latin-1")):  # a name that a page has given to this machine's address
            raise Refused(421, "a service without keys answers to localhost only")
        if origin is None or _LOOPBACK.fullmatch(origin.decode("latin-1")):
            return
        allowed = self._core.settings.cors_origins
        if "*" not in allowed and origin.decode("latin-1") not in allowed:
            raise Refused(403, "pages of this site may not call the service", hint="--cors-origin names sites that may")

    async def _pass_on(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer."""
        begun = False

        async def replay() -> Message:
            nonlocal begun
            if begun:
                return await receive()  # that the client is gone
            begun = True
            return {"type": "http.request", "body": exchange.body, "more_body": False}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                given = list(message.get("headers", ()))
                named = {name.lower() for name, _ in given}
                extra = [header for header in SAFE_HEADERS if header[0] not in named]
                message["headers"] = [*given, *extra, (b"x-request-id", exchange.request_id)]
            await send(message)

        exchange.receive = receive
        # Names may hold a slash, so routes are matched against the path as it was sent, and names decoded afterwards.
        scope["path"] = scope["raw_path"].decode("latin-1")
        scope.setdefault("state", {})["exchange"] = exchange
        if exchange.method == "HEAD":  # which is GET to everybody but the server, who leaves the body out
            scope = {**scope, "method": "GET"}
        try:
            await self._inner(scope, replay, send_with_headers)
        except asyncio.CancelledError:
            if exchange.status:
                raise
            await self._fail(exchange, send, Overloaded("the service ends; whether this was recorded is not known"))
        except Exception as error:
            if exchange.status:  # half an answer is out; the connection is closed, so that nobody takes it for whole
                log.exception("an answer broke off", extra={"data": {"request_id": exchange.request_id.decode()}})
                raise
            await self._fail(exchange, send, error)

    async def _read(self, exchange: Exchange, receive: Receive, length: bytes | None, most: int) -> bytes:
        """Return the body, unless it is too large, alone or with all others; its pace is up to the connection."""
        if length is not None and length.isdigit() and int(length) > most:
            raise _too_large(most)
        message = await receive()
        piece: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body") and most >= len(piece) <= _SMALL_BODY:
            return piece
        body = bytearray()
        while True:
            body += piece
            if len(body) > most:
                raise _too_large(most)
            self._hold(exchange, len(piece))
            if message["type"] == "http.disconnect":
                raise Refused(400, "the request did not arrive whole")
            if not message.get("more_body"):
                return bytes(body)
            message = await receive()
            piece = message.get("body", b"")

    def _hold(self, exchange: Exchange, n_bytes: int) -> None:
        """Count bytes of a body until its request ends, unless there are too many."""
        exchange.bytes_held += n_bytes
        self._bytes_held += n_bytes
        most = self._core.settings.bytes_in_flight
        if self._bytes_held > most:
            raise Overloaded(f"more than {most:,} bytes of requests at once")

    async def _fail(self, exchange: Exchange, send: Send, error: Exception) -> None:
        status, headers, body = answer_to(error)
        if not isinstance(error, EquipoiseError):
            data = {"request_id": exchange.request_id.decode(), "route": exchange.route}
            log.error("unexpected error", exc_info=error, extra={"data": data})
        extra = [(name.encode(), value.encode()) for name, value in headers.items()]
        if status in (400, 408, 413):
            extra.append((b"connection", b"close"))  # what is left of the body is not worth reading
        await self._send(exchange, send, status, body, extra)

    async def _send(
        self, exchange: Exchange, send: Send, status: int, body: bytes, extra: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        exchange.status = status
        if not extra and send_whole(send, status, body, exchange.request_id):
            return
        headers = [
            _JSON_TYPE,
            (b"content-length", str(len(body)).encode()),
            (b"x-request-id", exchange.request_id),
            *SAFE_HEADERS,
            *(extra or ()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _log(self, exchange: Exchange, scope: Scope, seconds: float) -> None:
        """Log a request: no body, no key, and of the path only the route, as a unit may be a person."""
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


def _too_large(most: int) -> Refused:
    return Refused(413, f"a body may have at most {most:,} bytes", hint="send several smaller requests")
