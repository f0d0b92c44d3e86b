"""Build the service as an ASGI application, for any ASGI server to run."""

from __future__ import annotations

import asyncio
import signal
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from equipoise.errors import MissingExtra
from equipoise.service.settings import Settings

if TYPE_CHECKING:
    from types import FrameType

    from equipoise.service.console_routes import Console
    from equipoise.service.dispatch import Application, Receive, Route, Scope, Send
    from equipoise.service.service import Service
    from equipoise.store import Store

OPERATIONS_ALONE = ("/healthz", "/readyz", "/metrics")
"""What a service without the API still answers."""


def create_app(store: Store, settings: Settings | None = None) -> Application:
    """Return an ASGI application that serves a store; lifespan shutdown stops the service and closes the store.

    Parameters
    ----------
    store : Store
        Holds the experiments and keys.
    settings : Settings, optional
        Limits and options.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.service import Settings, create_app
    >>> app = create_app(eq.open_store("memory:"), Settings(open=True))
    """
    require_extra()
    from equipoise.service import handlers, openapi
    from equipoise.service.cors import Cors
    from equipoise.service.dispatch import Router
    from equipoise.service.middleware import Middleware
    from equipoise.service.service import Service

    service = Service(store, settings or Settings())
    api = [*handlers.routes(), *openapi.pages()]
    routes = api if service.settings.api else [*(one for one in api if one.endpoint.path in OPERATIONS_ALONE), _home()]
    app = Middleware(service, Router(routes), _lifespan(service), _console(service))
    return Cors(app, service.settings.cors_origins) if service.settings.cors_origins else app


def _home() -> Route:
    """Return the route that leads from the root of a service without the API to the console."""
    from equipoise.http_api import PUBLIC, Endpoint
    from equipoise.service.dispatch import Answer, Exchange, Route

    async def home(_service: Service, _exchange: Exchange) -> Answer:
        return Answer(303, b"", {"location": "console/"})

    return Route(Endpoint(verb="", method="GET", path="/", roles=PUBLIC, tag="", summary="", text=""), home)


def has_console(settings: Settings) -> bool:
    """Return whether the console is served: if it is wanted, and the package that its templates need is installed."""
    return settings.console and find_spec("jinja2") is not None


def require_console() -> None:
    """Raise `MissingExtra` unless the package that the console needs is installed."""
    if find_spec("jinja2") is None:
        raise MissingExtra("the console needs the package jinja2", hint="pip install 'equipoise[console]'")


def _console(service: Service) -> Console | None:
    if not has_console(service.settings):
        return None
    from equipoise.service.console_routes import Console

    return Console(service)


def require_extra() -> None:
    """Raise `MissingExtra` unless the packages that the service needs are installed."""
    try:
        import httptools  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"the service needs the package {error.name}", hint="pip install 'equipoise[service]'"
        ) from error


def drain_on_signal(service: Service) -> None:
    """Let the first SIGTERM make the service unready, and pass it on to the server `drain_seconds` later.

    The server has set its own handler by now, on the main thread; on another thread there are no signals to handle.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    passed_on: Any = signal.getsignal(signal.SIGTERM)
    loop, seconds = asyncio.get_running_loop(), service.settings.drain_seconds
    if not callable(passed_on):
        return

    def drain(number: int, frame: FrameType | None) -> None:
        if service.draining or not seconds:
            service.draining = True
            passed_on(number, frame)
            return
        service.draining = True
        loop.call_soon_threadsafe(loop.call_later, seconds, passed_on, number, None)

    signal.signal(signal.SIGTERM, drain)


def _lifespan(service: Service) -> Application:
    """Return an application that handles lifespan events and closes websockets."""

    async def lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close"})
            return
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await service.start()
                drain_on_signal(service)
                await send({"type": "lifespan.startup.complete"})
            else:
                await service.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    return lifespan
