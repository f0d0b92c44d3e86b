"""The processes of a server: what each runs, how one or several are started, and how they end."""

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
"""How the processes of a server learn what to serve."""

GRACE_SECONDS = 20
"""How long requests that were accepted may take to be finished at shutdown."""

END_SECONDS = 3
"""How long threads may take after that."""

log = logging.getLogger("equipoise.service")


def server_config(factory: str | Callable[[], Any], settings: Settings, workers: int = 1) -> Any:
    """Return how uvicorn is to run what a factory makes."""
    import uvicorn

    from equipoise.service.protocol import PatientProtocol

    return uvicorn.Config(
        factory,
        factory=True,
        workers=workers,
        http=partial(PatientProtocol, settings.body_seconds),  # type: ignore[arg-type]  # (it is called like a class)
        loop="uvloop" if sys.platform != "win32" else "asyncio",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=GRACE_SECONDS,
        backlog=BACKLOG,
    )


def run_here(config: Any, listening: socket.socket) -> None:
    """Run a server in this process until a signal ends it, and return when all it accepted is finished."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Shut down at a signal; uvicorn would raise it again afterwards, and the exit code would be an error."""
            numbers = (signal.SIGINT, signal.SIGTERM)
            before = {number: signal.signal(number, self.handle_exit) for number in numbers}
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    Server(config).run(sockets=[listening])


def application() -> Application:
    """Return the application of one process of a server."""
    from equipoise.store import open_store

    logs.set_up(os.environ[LOG_FORMAT])
    settings = Settings.from_json(os.environ[SETTINGS])
    raise_limit_of_files()
    compile_kernels()
    app = _ending_for_sure(create_app(open_store(os.environ[URL]), settings))
    _collect_rarely()
    return _ending_with_parent(app) if os.environ.get("EQUIPOISE_SERVICE_PARENT") else app


def _collect_rarely() -> None:
    """Keep the collector of garbage from looking through all modules again and again, 50 ms at a time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


def compile_kernels() -> None:
    """Take one decision of each kind, so that no request has to wait for the compiler."""
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
    """Allow as many connections as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def run_several(config: Any, listening: socket.socket, when_ready: Callable[[], None] = lambda: None) -> None:
    """Run several processes at one port; one that dies is started anew."""
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
            """Wait until the first process answers, and return whether one does."""
            while not self.signal_queue and any(process.process.is_alive() for process in self.processes):
                with contextlib.suppress(OSError), socket.create_connection(listening.getsockname()[:2], timeout=5):
                    return True
                time.sleep(0.05)
            return False

    os.environ["EQUIPOISE_SERVICE_PARENT"] = str(os.getpid())
    with contextlib.suppress(KeyboardInterrupt):
        Processes(config, sockets=[listening]).run()


def _ending_for_sure(app: Application) -> Application:
    """Return the application, whose process ends soon after it, whatever a thread may still be waiting for."""

    async def ending(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)
        if scope["type"] == "lifespan":  # all is done that could be done in time
            ender = threading.Timer(END_SECONDS, os._exit, (0,))
            ender.daemon = True
            ender.start()

    return ending


def _ending_with_parent(app: Application) -> Application:
    """Return the application, which ends its process when the one that started it was killed.

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
"""How many connections may wait to be taken up."""


class Port(socket.socket):
    """A port that is ours until this is closed."""

    _reservation: socket.socket | None = None

    def reserve(self) -> None:
        """Keep other servers from the port even while nobody listens at it, or all who do share it.

        Linux would let two servers that start at the same time have one port. A name that is no file can be had once,
        and is free when its owner ends, however that comes.
        """
        if sys.platform == "linux":
            self._reservation = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._reservation.bind("\0equipoise {} {}".format(*self.getsockname()[:2]))

    def close(self) -> None:
        """Leave the port to others."""
        super().close()
        if self._reservation is not None:
            self._reservation.close()


class SharedPort(Port):
    """A port at which nobody answers; in a process that this is sent to, it becomes a socket of one's own."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _own, (self.family, self.getsockname())


def open_port(host: str, port: int, processes: int = 1) -> Port:
    """Return the port for the processes of a server, so that it is known and a taken one is told.

    From a socket that processes share, whoever is quickest takes all connections that come at once. On Linux each
    therefore listens at a socket of its own at the same port, and the system deals connections out evenly.
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
            # Only now: a port that may be shared would be had even where another server listens.
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
    """Return a socket that listens as soon as its process is ready to answer."""
    return _bound(_shareable(Port(family, socket.SOCK_STREAM)), address)


def _bound(port: Port, address: Any) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind(address)
    return port


def _shareable(port: Port) -> Port:
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return port
