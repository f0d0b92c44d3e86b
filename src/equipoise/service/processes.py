"""Run the server's processes: the uvicorn configuration, start-up and warm-up, shutdown, and the port they share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from equipoise.errors import StoreUnavailable
from equipoise.service import logs
from equipoise.service.asgi import create_app
from equipoise.service.settings import Settings

if TYPE_CHECKING:
    from equipoise.service.dispatch import Application

URL, SETTINGS, LOG_FORMAT = "EQUIPOISE_SERVICE_STORE", "EQUIPOISE_SERVICE_SETTINGS", "EQUIPOISE_SERVICE_LOGS"
"""Environment variables that pass the configuration to the server's processes."""

END_SECONDS = 3
"""How long threads may take after shutdown before the process exits."""

log = logging.getLogger("equipoise.service")


def server_config(factory: str | Callable[[], Any], settings: Settings, workers: int = 1) -> Any:
    """Return the uvicorn configuration for an application factory."""
    import uvicorn

    from equipoise.service.http_protocol import PatientProtocol

    protocol = partial(PatientProtocol, settings.body_seconds, settings.unread_seconds)
    return uvicorn.Config(
        factory,
        factory=True,
        workers=workers,
        http=protocol,  # type: ignore[arg-type]  # (called like a class)
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.grace_seconds,
        backlog=BACKLOG,
    )


def run_here(config: Any, listening: socket.socket) -> None:
    """Run a server in this process until a signal, and return when it has finished all accepted requests."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Shut down on a signal; uvicorn would raise it again afterwards, and the exit code would be an error."""
            numbers = (signal.SIGINT, signal.SIGTERM)
            before = {number: signal.signal(number, self.handle_exit) for number in numbers}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    Server(config).run(sockets=[listening])


def application() -> Application:
    """Create the application in a process of the server (uvicorn's factory)."""
    from equipoise.store import open_store

    logs.set_up(os.environ[LOG_FORMAT])
    settings = Settings.from_json(os.environ[SETTINGS])
    raise_limit_of_files()
    compile_kernels()
    app = _ending_for_sure(create_app(open_store(os.environ[URL]), settings))
    _collect_rarely()
    return _ending_with_parent(app) if os.environ.get("EQUIPOISE_SERVICE_PARENT") else app


def _collect_rarely() -> None:
    """Freeze start-up objects: a full garbage collection would pause the server for 50 ms."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def compile_kernels() -> None:
    """Warm up: make one decision of each kind, so that no request waits for the compiler."""
    from equipoise.experiment import Experiment
    from equipoise.policies.pooled_balance import recommended
    from equipoise.store import open_store

    with open_store("memory:") as store:
        trial = Experiment.create(store, "warm-up", arms=["a", "b"], policy=recommended(0.5), seed=0)
        for unit in "abcdef":
            trial.tell(trial.ask(unit).unit, 0.5)
        trial.ask_many(["g", "h", "i"])
        trial.status()


def raise_limit_of_files() -> None:
    """Raise the limit on open files, and so on connections, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run_several(config: Any, listening: socket.socket, when_ready: Callable[[], None] = lambda: None) -> None:
    """Run several processes on one port; restart one that dies."""
    from uvicorn.supervisors import Multiprocess

    class Processes(Multiprocess):
        def init_processes(self) -> None:
            super().init_processes()
            if self._answered():
                when_ready()

        def keep_subprocess_alive(self) -> None:
            before = list(self.processes)
            super().keep_subprocess_alive()
            for old, new in zip(before, self.processes, strict=True):
                if old is not new:
                    data = {"pid": old.pid, "exit_code": old.exitcode, "new_pid": new.pid}
                    log.error("a process died and was restarted", extra={"data": data})

        def _answered(self) -> bool:
            """Wait until a process accepts connections; return False if all have died or a signal came."""
            while not self.signal_queue and any(process.process.is_alive() for process in self.processes):
                with contextlib.suppress(OSError), socket.create_connection(listening.getsockname()[:2], timeout=5):
                    return True
                time.sleep(0.05)
            return False

    os.environ["EQUIPOISE_SERVICE_PARENT"] = str(os.getpid())
    with contextlib.suppress(KeyboardInterrupt):
        Processes(config, sockets=[listening]).run()


def _ending_for_sure(app: Application) -> Application:
    """Wrap the application so that its process exits soon after shutdown, even if a thread hangs."""

    async def ending(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        if scope["type"] == "lifespan":  # shutdown is complete, as far as time allowed
            ender = threading.Timer(END_SECONDS, os._exit, (0,))
            ender.daemon = True
            ender.start()

    return ending


def _ending_with_parent(app: Application) -> Application:
    """Wrap the application so that its process ends when its parent is killed.

    Otherwise it would keep the port, and the next server could not start.
    """
    parent = int(os.environ["EQUIPOISE_SERVICE_PARENT"])

    async def watch() -> None:
        while os.getppid() == parent:
            await asyncio.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    watching: list[asyncio.Task[None]] = []

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            watching.append(asyncio.get_running_loop().create_task(watch()))
        await app(scope, receive, send)

    return watched


BACKLOG = 4096
"""How many connections may wait to be accepted."""


class Port(socket.socket):
    """A listening socket that can reserve its port until it is closed."""

    _reservation: socket.socket | None = None

    def reserve(self) -> None:
        """Keep other servers off the port, even while no process listens on it or while all sockets share it.

        Linux would let two servers that start at the same time share one port. A Unix socket with an abstract name (not
        a file) can be bound only once, and is released when its owner exits, even if it is killed.
        """
        if sys.platform == "linux":
            self._reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._reservation.bind("\0equipoise {} {}".format(*self.getsockname()[:2]))
            except OSError:
                self.close()
                raise

    def close(self) -> None:
        """Release the port."""
        super().close()
        if self._reservation is not None:
            self._reservation.close()


class SharedPort(Port):
    """A bound socket that does not listen; pickled to another process, it becomes that process's own socket."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _own, (self.family, self.getsockname())


def open_port(host: str, port: int, processes: int = 1) -> Port:
    """Open the port for the server's processes, so that its number is known and a port in use is an error here.

    If processes share one socket, the quickest takes all connections that arrive at once. On Linux each process
    therefore listens on its own socket at the same port (SO_REUSEPORT), and the system distributes connections evenly.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {host}: {error.strerror or error}", hint="choose another with --host"
        ) from None
    try:
        listening = _bound(Port(family, socket.SOCK_STREAM), (host, port))
        if processes > 1 and sys.platform == "linux":
            # Only now: with SO_REUSEPORT, binding would succeed even if another server listens there.
            listening.close()
            listening = _bound(_shareable(SharedPort(family, socket.SOCK_STREAM)), (host, port))
            listening.reserve()
            return listening
        listening.reserve()
        listening.listen(BACKLOG)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot listen on {host} port {port}: {error.strerror or error}", hint="choose another with --port"
        ) from None
    listening.set_inheritable(True)
    return listening


def _own(family: int, address: Any) -> socket.socket:
    """Return a socket for one process, which listens once the process is ready to answer."""
    return _bound(_shareable(Port(family, socket.SOCK_STREAM)), address)


def _bound(port: Port, address: Any) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        port.bind(address)
    except OSError:
        port.close()
        raise
    return port


def _shareable(port: Port) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return port
