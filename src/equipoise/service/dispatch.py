"""Route requests by the API table: match the path, check the role, decode the request, call the handler."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from equipoise.errors import InvalidInput
from equipoise.service.error_responses import Refused
from equipoise.service.json_bodies import decode_body, decode_query

if TYPE_CHECKING:
    from equipoise.http_api import Endpoint
    from equipoise.service.api_keys import Key
    from equipoise.service.service import Service

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Handler: TypeAlias = Callable[["Service", "Exchange"], Awaitable["Answer"]]

_LARGE_BODY = 16_384
"""Bytes; a larger body may take milliseconds to decode, so that is not done on the event loop."""


class Answer(NamedTuple):
    """Status, body, and headers beyond the default ones; None lets a JSON answer go out in one write."""

    status: int
    body: bytes | AsyncGenerator[bytes, None]
    headers: dict[str, str] | None = None


class Exchange:
    """The state of one request, from its arrival to the status of its answer."""

    __slots__ = (
        "accept",
        "authorization",
        "body",
        "bytes_held",
        "data",
        "entered",
        "error",
        "key",
        "method",
        "names",
        "query_string",
        "receive",
        "request_id",
        "route",
        "started",
        "status",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.method: str = scope["method"]
        self.query_string: bytes = scope["query_string"]
        self.receive = receive
        self.started = time.perf_counter()
        self.request_id = b""
        self.route = "unknown"
        self.status = 0
        self.key: Key | None = None
        self.entered = False
        self.error: str | None = None
        """Class of the error that refused it."""
        self.authorization: bytes | None = None
        self.accept = b""
        self.body = b""
        self.bytes_held = 0
        self.names: list[str] = []
        self.data: Any = None
        """The decoded body or query."""

    async def gone(self) -> None:
        """Wait for the client to disconnect."""
        while (await self.receive())["type"] != "http.disconnect":
            pass


class Route:
    """An endpoint and its handler."""

    def __init__(self, endpoint: Endpoint, handler: Handler) -> None:
        self.endpoint = endpoint
        self.handler = handler
        self._places = [i for i, part in enumerate(endpoint.path.split("/")) if part.startswith("{")]
        self._has_name = endpoint.path_names[:1] == ("name",)
        self._decoder = None if endpoint.body is None else msgspec.json.Decoder(endpoint.body)
        self._optional = endpoint.body is not None and not any(
            field.required for field in msgspec.structs.fields(endpoint.body)
        )
        self._parameters = () if endpoint.query is None else endpoint.query.__struct_fields__

    def admit(self, exchange: Exchange, parts: list[bytes]) -> None:
        """Check what there is of a request before its body: the path, the key's role and the query."""
        endpoint = self.endpoint
        exchange.route = endpoint.path
        exchange.names = names = [_decoded(parts[i]) for i in self._places]
        if not endpoint.roles:
            return
        key = exchange.key
        assert key is not None  # noqa: S101
        # If the path names no experiment, the handler decides what a key for one experiment may see.
        key.require(endpoint.roles, names[0] if self._has_name else key.experiment)
        # Public endpoints returned above: monitors and browsers add query parameters of their own to them.
        if exchange.query_string or self._parameters:
            self._decode_query(exchange)

    def call(self, service: Service, exchange: Exchange) -> Awaitable[Answer]:
        """Decode the body of an admitted request, and return its handler's awaitable answer."""
        body = exchange.body
        if self._decoder is not None:
            if len(body) > _LARGE_BODY:
                return service.with_large_body(partial(self._call_large, service, exchange))
            exchange.data = self._decode_body(body, service.settings.units_per_request)
        elif body and self.endpoint.roles and body.strip() not in (b"", b"{}", b"null"):
            got = _short(body[:100].decode("utf-8", "replace"))
            raise InvalidInput(f"this address takes no body; got {got}", hint="send it without one")
        return self.handler(service, exchange)

    async def _call_large(self, service: Service, exchange: Exchange) -> Answer:
        """Decode a large body on a thread, and do not hold it longer than that."""
        body, exchange.body = exchange.body, b""
        exchange.data = await service.decode(partial(self._decode_body, body, service.settings.units_per_request))
        del body
        return await self.handler(service, exchange)

    def _decode_body(self, body: bytes, most_units: int) -> Any:
        assert self._decoder is not None  # noqa: S101
        if self._optional and not body.strip():
            body = b"{}"
        return decode_body(self._decoder, body, most_units)

    def _decode_query(self, exchange: Exchange) -> None:
        """Decode the query; refuse unknown parameters, since a misspelt one would have no effect."""
        given = dict(parse_qsl(exchange.query_string.decode("latin-1"), keep_blank_values=True))
        for name in given:
            if name not in self._parameters:
                known = ", ".join(self._parameters)
                takes = f"has the parameters {known}" if known else "has no parameters"
                raise InvalidInput(f"this address {takes}; got {_short(name)}", hint="see /docs for what there is")
        if self.endpoint.query is not None:
            exchange.data = decode_query(self.endpoint.query, given)


class Router:
    """A tree of path segments; names are matched before percent-decoding, since they may contain a slash.

    Examples
    --------
    >>> from equipoise.http_api import ENDPOINTS
    >>> router = Router(Route(endpoint, print) for endpoint in ENDPOINTS)
    >>> router.match("GET", b"/experiments/4b%2Fspring/status".split(b"/")).endpoint.verb
    'status'
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root: dict[Any, Any] = {}
        for route in routes:
            node = self._root
            for part in route.endpoint.path.split("/")[1:]:
                node = node.setdefault(_NAME if part.startswith("{") else part.encode(), {})
            node.setdefault(_METHODS, {})[route.endpoint.method] = route
        _inherit(self._root)

    def match(self, method: str, parts: list[bytes]) -> Route:
        """Return the route for a method and the segments of a path; raise `Refused` (404 or 405) if there is none."""
        node: dict[Any, Any] = self._root
        for part in parts[1:]:
            node = node.get(part) or (node.get(_NAME) if part else None) or _NOWHERE
        methods: dict[str, Route] | None = node.get(_METHODS)
        if methods is None:
            raise Refused(404, "there is nothing at this address", hint="see /docs for what there is")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = sorted([*methods, "HEAD"] if "GET" in methods else methods)
            raise Refused(405, "this address does not take this method", headers={"allow": ", ".join(allowed)})
        return route


_NOWHERE: dict[Any, Any] = {}
_NAME, _METHODS = "{}", "methods"
"""Special keys of the tree, text because segments are bytes: the child for any name, and the routes that end here."""


def _inherit(node: dict[Any, Any]) -> None:
    """Let a fixed segment match as a name too: `GET .../assignments/many` looks up the unit `many`."""
    named = node.get(_NAME, {})
    for part, child in node.items():
        if isinstance(part, bytes):
            _merge(child, named)
        if part != _METHODS:
            _inherit(child)


def _merge(node: dict[Any, Any], other: dict[Any, Any]) -> None:
    for part, child in other.items():
        if isinstance(child, dict):
            _merge(node.setdefault(part, {}), child)
        else:
            node.setdefault(part, child)


def _decoded(segment: bytes) -> str:
    """Decode a percent-encoded name from a path.

    Examples
    --------
    >>> _decoded(b"4b%2Fspring%C3%A9")
    '4b/springé'
    """
    try:
        return (unquote_to_bytes(segment) if b"%" in segment else segment).decode()
    except UnicodeDecodeError:
        shown = segment.decode("latin-1")
        raise InvalidInput(f"names in a path must be UTF-8, percent-encoded; got {shown!r}") from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
