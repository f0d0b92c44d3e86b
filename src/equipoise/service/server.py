"""Start a server: `serve` for the command line, `ThreadedService` for tests and notebooks."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import shlex
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from equipoise._version import __version__
from equipoise.errors import Hint, InvalidInput, StoreError, StoreUnavailable
from equipoise.service import logs
from equipoise.service.asgi import create_app, has_console, require_console, require_extra
from equipoise.service.processes import (
    LOG_FORMAT,
    SETTINGS,
    URL,
    compile_kernels,
    open_port,
    raise_limit_of_files,
    run_here,
    run_several,
    server_config,
)
from equipoise.service.settings import Settings
from equipoise.terminal import announce_compiling

if TYPE_CHECKING:
    import socket

    from equipoise.store import Store


def serve(
    url: str,
    *,
    host: str,
    port: int,
    workers: int,
    settings: Settings,
    log_format: str,
    say: Callable[[str], None],
    create: bool = False,
) -> None:
    """Check the arguments, the port and the store, print the address, and serve until a signal.

    With `create`, a store is created where there is none.
    """
    require_extra()
    if not settings.api:
        require_console()
    if settings.open and not is_loopback(host):
        raise InvalidInput(
            f"a service without keys may listen on this machine only; got host {host}",
            hint="use 127.0.0.1 with --open, or keys without it",
        )
    if url.startswith("memory:") and (workers > 1 or not settings.open):
        raise InvalidInput(
            "a store in memory belongs to one process, and no key can be made for it",
            hint="use a file, sqlite:///school.db; or one process with --open",
        )
    # Open the port first, so that a port in use leaves nothing behind.
    with contextlib.closing(open_port(host, port, workers)) as listening:
        _look(url, settings, say, create=create or url.startswith("memory:"))
        announce_compiling()
        compile_kernels()
        raise_limit_of_files()
        os.environ |= {URL: url, SETTINGS: settings.to_json(), LOG_FORMAT: log_format}
        _run(listening, _address(listening, host), workers, settings, say)


def _run(listening: socket.socket, where: str, workers: int, settings: Settings, say: Callable[[str], None]) -> None:
    config = server_config("equipoise.service.processes:application", settings, workers)

    def say_where() -> None:
        say(f"Equipoise {__version__} listens on {where}; Ctrl-C ends it")
        if settings.api:
            say(f"documentation: {where}/docs")
        if has_console(settings):
            say(f"console: {where}/console/")
        if settings.webhook is not None:
            signed = "" if settings.webhook.secret is not None else ", not signed: there is no --webhook-secret"
            say(f"alerts are sent to {settings.webhook.shown}{signed}")
        if settings.console and not has_console(settings):
            say("no console: it needs the package jinja2; pip install 'equipoise[console]'")

    if workers == 1:
        say_where()
        run_here(config, listening)
        return
    from equipoise.service.plan_queue import PLANS, PlanQueue
    from equipoise.service.prometheus import SHARED

    with tempfile.TemporaryDirectory(prefix="equipoise-") as directory:
        os.environ[SHARED] = directory
        plans = Path(directory) / "plans"
        plans.mkdir()
        os.environ[PLANS] = str(plans)
        logs.set_up(os.environ[LOG_FORMAT])
        try:
            run_several(config, listening, say_where)
        finally:
            PlanQueue(plans).close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _look(url: str, settings: Settings, say: Callable[[str], None], *, create: bool) -> None:
    """Open the store once, so that its errors are reported here and not in a loop of restarts."""
    from equipoise.service.api_keys import list_keys

    with _opened(url, create) as store:
        now = store.now()
        valid = [key for key in list_keys(store) if key.state(now) == "valid"]
        say(f"store: {store.url}")
        if settings.open:
            say("open: everybody on this machine may do everything; for a laptop only")
        elif not valid:
            say(f"no key yet; {_how_to_make_a_key(url, store.url)}")


def _opened(url: str, create: bool) -> Store:
    from equipoise.store import open_store

    try:
        return open_store(url, create=create)
    except StoreError as error:
        if error.hint is Hint.NO_STORE:
            error.hint = "check --store; with --new, equipoise serve makes the store"
        raise


def _how_to_make_a_key(url: str, shown: str) -> str:
    """Return the command that creates the first key, given a store's URL and its printable form.

    Examples
    --------
    >>> _how_to_make_a_key("sqlite:///school.db", "sqlite:///school.db")
    'make one in another terminal: equipoise keys create --role admin --store sqlite:///school.db'
    >>> _how_to_make_a_key("postgresql://ada:secret@db/school", "postgresql://ada:***@db/school")
    "make one in another terminal, with this service's --store as URL: equipoise keys create --role admin --store URL"
    """
    command = "equipoise keys create --role admin"
    if "***" not in shown:
        return f"make one in another terminal: {command} --store {shlex.quote(shown)}"
    if os.environ.get("EQUIPOISE_STORE") == url:
        return f"make one in another terminal, with EQUIPOISE_STORE set as here: {command}"
    return f"make one in another terminal, with this service's --store as URL: {command} --store URL"


def _address(listening: socket.socket, host: str) -> str:
    port = listening.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


_START_SECONDS = 30.0


class ThreadedService:
    """Run a service on a thread, at `url` on this machine, for the duration of a `with` block.

    Parameters
    ----------
    store : Store
        Holds the experiments and keys; closed at the end.
    settings : Settings, optional
        Limits and options.
    port : int
        Port to listen on; 0 for any free one.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.service import Settings, ThreadedService
    >>> with ThreadedService(eq.open_store("memory:"), Settings(open=True)) as service:
    ...     eq.Client(service.url).list()
    []
    """

    def __init__(self, store: Store, settings: Settings | None = None, *, port: int = 0) -> None:
        import uvicorn

        settings = settings or Settings()
        app = create_app(store, settings)
        self._listening = open_port("127.0.0.1", port)
        self._server = uvicorn.Server(server_config(lambda: app, settings))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listening],), name="equipoise-service", daemon=True
        )
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        waited = 0.0
        while not self._server.started:
            self._thread.join(0.01)
            waited += 0.01
            if not self._thread.is_alive() or waited > _START_SECONDS:
                raise StoreUnavailable(f"the service at {self.url} did not start")
        return self

    def __exit__(self, *details: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()
