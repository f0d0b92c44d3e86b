"""How a route is made: who may use it is checked before anything else of the request is looked at."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote_to_bytes

import msgspec
import numpy as np
from fastapi import Depends, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from equipoise.errors import EquipoiseError, InvalidInput, visible
from equipoise.experiment.names import LONGEST_NAME, LONGEST_UNIT
from equipoise.service.bodies import NotJson, check_size, decoded_body
from equipoise.service.error_responses import Refused, answer_to
from equipoise.service.keys import ADMIN, ASSIGNER, READER, Key
from equipoise.service.models import Failure
from equipoise.service.service import Core
from equipoise.service.validation import told

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence

    from fastapi._compat import ModelField
    from numpy.typing import NDArray

    from equipoise.experiment import Experiment

log = logging.getLogger("equipoise.service")

READERS, ASSIGNERS, ADMINS = (READER, ADMIN), (ASSIGNER, ADMIN), (ADMIN,)
EVERY_KEY, NO_KEY = (READER, ASSIGNER, ADMIN), ()

_REASONS = {
    400: "The request is not JSON, or did not arrive whole.",
    401: "No key, or one that is not valid.",
    403: "The key's role or experiment does not cover this, or a page of another site may not call the service.",
    404: "No such experiment, unit or arm.",
    408: "The request took too long to arrive.",
    409: "It contradicts what is recorded, or what state the experiment is in.",
    413: "The body is too large.",
    415: "The body is not JSON, or it is compressed.",
    421: "A service without keys answers to `localhost` only.",
    422: "Something in it is outside what is allowed.",
    431: "The head of the request is too large.",
    500: "Something went wrong here that nobody expected; it was logged with the request's id.",
    501: "The server lacks an optional package for this.",
    503: "Too much to do, or the store is away; trying again is safe.",
}

_ALWAYS = (400, 403, 408, 413, 415, 421, 431, 500, 503)
_LARGE_BODY = 100_000
"""Bytes that take a few milliseconds to read."""
_VALUES_AT_ONCE = 10_000
"""How much of a long list is encoded at a time, which takes a millisecond."""

_ERROR = {"description": "Class of the error in `equipoise.errors`.", "schema": {"type": "string"}}
_EVENT = {"description": "First event that differs, if a log does not verify.", "schema": {"type": "integer"}}
_RETRY = {"description": "Seconds to wait before sending it again.", "schema": {"type": "integer"}}


def failures(*statuses: int, public: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says of the failures of a route; some can always happen."""
    more = {409: {"X-Equipoise-Event": _EVENT}, 503: {"Retry-After": _RETRY}}
    return {
        status: {
            "model": Failure,
            "description": _REASONS[status],
            "headers": {"X-Equipoise-Error": _ERROR} | more.get(status, {}),
        }
        for status in sorted({*statuses, *_ALWAYS, *(() if public else (401, 422))})
    }


def allow(*roles: str) -> Callable[[Any], Any]:
    """Say which roles may use a route; every route must say so."""

    def mark(endpoint: Any) -> Any:
        endpoint.roles = roles
        return endpoint

    return mark


class ReadRequest(Request):
    """A request whose body was read and checked already.

    The framework would do both where all requests come in, and take any trouble with the body for a bad request.
    """

    def __init__(self, scope: Any, receive: Any, data: Any) -> None:
        super().__init__(scope, receive)
        self._data = data

    async def json(self) -> Any:
        """Return the body, as the endpoint takes it."""
        return self._data


def read_body(body: bytes, field: ModelField, most_units: int) -> Any:
    """Return a body as an endpoint takes it, read as the lean routes read it: no NaN, no second value of a name."""
    try:
        data = decoded_body(body)
    except NotJson as error:
        raise Refused(400, f"the body must be JSON; {visible(str(error))}") from None
    check_size(data, most_units)
    checked, found = field.validate(data, loc=("body",))
    if found:
        raise InvalidInput(told(found))
    return checked


class GuardedRoute(APIRoute):
    """A route that knows who may use it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.roles: tuple[str, ...] = endpoint.roles  # type: ignore[attr-defined]
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler, roles, route, field = super().get_route_handler(), self.roles, self.path_format, self.body_field
        parameters = tuple(parameter.alias for parameter in self.dependant.query_params)

        async def guarded(request: Request) -> Response:
            exchange = request.scope["state"]["exchange"]
            exchange.route = route
            if roles:
                name = request.path_params.get("name")
                key: Key = exchange.key
                # Without an experiment in the path, what a key for one experiment may see is up to the route.
                key.require(roles, key.experiment if name is None else decoded(name))
                # What needs no key is asked for by monitors and browsers, which put things of their own behind it.
                _check_nothing_else(request, parameters, exchange.body if field is None else None)
            try:
                data, body = None, exchange.body
                if field is not None and body:
                    core = _core(request)
                    read = partial(read_body, body, field, core.settings.units_per_request)
                    # A large one on a thread, as nobody else should wait for it.
                    data = read() if len(body) <= _LARGE_BODY else await core.elsewhere(read)
                return await handler(ReadRequest(request.scope, request.receive, data))
            except (EquipoiseError, HTTPException, RequestValidationError):
                raise
            except Exception as error:  # noqa: BLE001
                # Left to the framework, it would be answered in another shape, and the connection closed.
                return unexpected(error, exchange.request_id, route)

        return guarded


def _check_nothing_else(request: Request, parameters: tuple[str, ...], unwanted: bytes | None) -> None:
    """Refuse what would be ignored: a parameter that is not known is misspelt, and somebody waits for its effect.

    An empty object is welcome where no body is: it says nothing, and some programs always send one.
    """
    for name in request.query_params:
        if name not in parameters:
            takes = f"has the parameters {', '.join(parameters)}" if parameters else "has no parameters"
            raise InvalidInput(f"this address {takes}; got {_short(name)}", hint="see /docs for what there is")
    if unwanted is not None and unwanted.strip() not in (b"", b"{}", b"null"):
        got = _short(unwanted[:100].decode("utf-8", "replace"))
        raise InvalidInput(f"this address takes no body; got {got}", hint="send it without one")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


async def answer(
    core: Core, name: str, key: Key, data: Callable[[Experiment], Mapping[str, Any]], gone: Gone | None = None
) -> Response:
    """Return the answer that tells what is known of an experiment, put together and encoded on a thread.

    One that may take minutes is told when its client is `gone`.

    An answer may be as large as an experiment has arms or events. Left to the framework, it would be checked and
    encoded where all requests come in, and keep everybody waiting.
    """

    def work(experiment: Experiment) -> bytes:
        return encoded(data(experiment))

    content = await (core.work(name, key, work) if gone is None else core.long_work(name, key, work, gone))
    return Response(content, media_type="application/json")


def encoded(data: Mapping[str, Any]) -> bytes:
    """Return data as JSON, where what is not finite becomes null.

    Examples
    --------
    >>> encoded({"arms": ("a", "b"), "mean": [[0.5, float("nan")]]})
    b'{"arms":["a","b"],"mean":[[0.5,null]]}'
    """
    return b"".join(_pieces(data))


def _pieces(data: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the JSON of data, long lists a part at a time, as no other thread has a turn while one is encoded."""
    yield b"{"
    for place, (name, value) in enumerate(data.items()):
        yield (b"," if place else b"") + _encoded(name) + b":"
        if isinstance(value, (list, tuple, np.ndarray)):
            yield b"["
            yield from _parts(value)
            yield b"]"
        else:
            yield _encoded(value)
    yield b"}"


def _parts(rows: Sequence[Any] | NDArray[Any]) -> Iterator[bytes]:
    """Yield what stands between the brackets of a list."""
    if not len(rows):
        return
    width = len(rows[0]) if hasattr(rows[0], "__len__") else 1  # about how many values there are in one
    step = max(1, _VALUES_AT_ONCE // max(1, width))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        listed = part.tolist() if isinstance(part, np.ndarray) else part
        yield (b"," if start else b"") + _encoded(listed)[1:-1]


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair, which free data may hold; escaped, JSON may hold it too
        return json.dumps(value).encode()


def unexpected(error: Exception, request_id: bytes, route: str) -> Response:
    """Log an error that nobody expected, and return the answer, which tells nothing of it."""
    log.error("unexpected error", exc_info=error, extra={"data": {"request_id": request_id.decode(), "route": route}})
    status, headers, body = answer_to(error)
    return Response(body, status, headers, media_type="application/json")


def decoded(segment: str) -> str:
    """Return a name from its place in a path.

    Examples
    --------
    >>> decoded("4b%2Fspring%C3%A9")
    '4b/springé'
    """
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()  # the gate made text of the bytes like this
    except UnicodeDecodeError:
        raise InvalidInput(f"names in a path must be UTF-8, percent-encoded; got {segment!r}") from None


def _core(request: Request) -> Core:
    core: Core = request.app.state.core
    return core


def _key(request: Request) -> Key:
    key: Key = request.scope["state"]["exchange"].key
    return key


def _gone(request: Request) -> Callable[[], Awaitable[None]]:
    gone: Callable[[], Awaitable[None]] = request.scope["state"]["exchange"].gone
    return gone


Service = Annotated[Core, Depends(_core)]
Caller = Annotated[Key, Depends(_key)]
Gone = Annotated[Callable[[], Awaitable[None]], Depends(_gone)]


def _place(description: str, example: str, longest: int) -> Any:
    """Return a name in a path, with what its length may be once decoded; as it is sent, it may be longer."""
    lengths = {"minLength": 1, "maxLength": longest}
    return Path(description=description, examples=[example], json_schema_extra=lengths)


def _name(name: Annotated[str, _place("The experiment.", "fractions", LONGEST_NAME)]) -> str:
    return decoded(name)


def _unit(unit: Annotated[str, _place("Who was assigned.", "student-42", LONGEST_UNIT)]) -> str:
    return decoded(unit)


def _arm(arm: Annotated[str, _place("The arm.", "pie", LONGEST_NAME)]) -> str:
    return decoded(arm)


ExperimentName = Annotated[str, Depends(_name)]
UnitName = Annotated[str, Depends(_unit)]
ArmName = Annotated[str, Depends(_arm)]
