"""The service as an ASGI application."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from equipoise._version import __version__
from equipoise.errors import EquipoiseError, MissingExtra
from equipoise.service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from equipoise.service.middleware import Application
    from equipoise.store import Store

DESCRIPTION = """
Experiments that treat people well and measure every arm accurately, with one dial between the two.

Send a key as `Authorization: Bearer KEY`. Every verb can be sent again when its answer was lost: a unit keeps its arm,
a reward counts once. Errors are `{"error": ..., "hint": ...}`. Names in paths are percent-encoded.
"""


def create_app(store: Store, settings: Settings | None = None) -> Application:
    """Return the service over a store; whoever runs it closes it by the lifespan protocol, as every server does.

    Parameters
    ----------
    store : Store
        Where experiments and keys are.
    settings : Settings, optional
        Limits and choices.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.service import Settings, create_app
    >>> app = create_app(eq.open_store("memory:"), Settings(open=True))
    """
    try:
        import fastapi  # noqa: F401
        import msgspec  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"the service needs the package {error.name}", hint="pip install 'equipoise[service]'"
        ) from error
    from equipoise.service.middleware import Gate
    from equipoise.service.service import Core

    core = Core(store, settings or Settings())
    inner: Any = _routes(core)
    if core.settings.cors_origins:
        from equipoise.service.cors import Origins

        return Origins(
            Gate(core, inner),
            allow_origins=core.settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "x-equipoise-error", "x-equipoise-event", "retry-after"],
            max_age=600,
        )
    return Gate(core, inner)


def _routes(core: Any) -> Any:
    from fastapi import FastAPI
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    from equipoise.service.documentation import add_documentation
    from equipoise.service.routes import experiments, operations, records, units

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await core.start()
        yield
        await core.stop()

    app = FastAPI(
        title="Equipoise",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # of which generators make the names of methods
    )
    app.state.core = core
    for module in (units, experiments, records, operations):
        app.include_router(module.router)
    for kind, handler in (
        (EquipoiseError, _equipoise_error),
        (RequestValidationError, _validation_error),
        (HTTPException, _http_error),
    ):
        app.add_exception_handler(kind, handler)  # type: ignore[arg-type]
    add_documentation(app)
    app.openapi()  # which prepares all routes; otherwise the first request would wait for that, and all others with it
    return app


async def _equipoise_error(_request: Any, error: EquipoiseError) -> Any:
    from starlette.responses import Response

    from equipoise.service.error_responses import answer_to

    status, headers, body = answer_to(error)
    return Response(body, status, headers, media_type="application/json")


async def _validation_error(request: Any, error: Any) -> Any:
    """Tell the first thing that is wrong, where it is, and what was got."""
    from equipoise.errors import InvalidInput
    from equipoise.service.validation import told

    return await _equipoise_error(request, InvalidInput(told(error.errors())))


async def _http_error(request: Any, error: Any) -> Any:
    from equipoise.service.error_responses import Refused

    words = {404: "there is nothing at this address", 405: "this address does not take this method"}
    hints = {404: "see /docs for what there is"}
    refused = Refused(
        error.status_code, words.get(error.status_code, str(error.detail)), hint=hints.get(error.status_code)
    )
    answer = await _equipoise_error(request, refused)
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    if error.status_code == 405:
        answer.headers["allow"] = ", ".join(_methods(request))
    return answer


def _methods(request: Any) -> list[str]:
    """Return what an address takes; each of its methods is a route of its own, and the framework names those of one."""
    from starlette.routing import Match

    def is_taken(method: str) -> bool:
        asked = {"type": "http", "method": method, "path": request.scope["path"], "headers": []}
        return any(route.matches(dict(asked))[0] is Match.FULL for route in request.app.routes)

    taken = [method for method in ("GET", "POST", "PUT", "PATCH", "DELETE") if is_taken(method)]
    return sorted([*taken, "HEAD"]) if "GET" in taken else taken
