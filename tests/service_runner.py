"""Start a real server: as `equipoise serve` does, to be stopped or killed, or on a thread of this process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import equipoise as eq

if TYPE_CHECKING:
    from collections.abc import Iterator

    from equipoise.service import Settings
    from equipoise.service.service import Service as Served
    from equipoise.store import Store

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1])}


_SERVE = """
import sys
from equipoise.service import Settings
from equipoise.service.server import serve
settings = Settings.from_json(sys.argv[2])
say = lambda line: print(line, file=sys.stderr, flush=True)
serve(sys.argv[1], host="127.0.0.1", port=0, workers=1, settings=settings, log_format="text", say=say)
"""


class Service:
    """A server process, with everything it wrote to stderr."""

    def __init__(self, store_url: str, *options: str, port: int = 0, settings: Settings | None = None) -> None:
        serve = [sys.executable, "-m", "equipoise.cli", "serve", "--new"]
        command = [*serve, "--store", store_url, "--port", str(port), *options]
        if settings is not None:  # of which not all have an option
            command = [sys.executable, "-c", _SERVE, store_url, settings.to_json()]
        # A session of its own, so that a kill reaches all processes of the server and nobody else.
        self.process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, start_new_session=True
        )
        self.lines: list[str] = []
        self.url = self._address()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def said(self) -> str:
        """All it wrote."""
        return "".join(self.lines)

    def _address(self) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"listens on (http://\S+);", line)
            if found:
                return found[1]
        code = self.process.wait()
        self.process.stderr.close()
        raise AssertionError(f"the server ended with {code}: {self.said}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        with suppress(ValueError):
            self.lines.extend(self.process.stderr)

    def kill(self) -> None:
        """Kill every process of the server at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(10)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(60)
        self._reader.join(10)
        return code


@contextmanager
def running_service(
    store_url: str, *options: str, port: int = 0, settings: Settings | None = None
) -> Iterator[Service]:
    service = Service(store_url, *options, port=port, settings=settings)
    try:
        yield service
    finally:
        service.kill()
        assert service.process.stderr is not None
        service.process.stderr.close()


class Here(NamedTuple):
    """A server on a thread of this process, with what is inside."""

    url: str
    port: int
    service: Served
    connections: set[Any]


@contextmanager
def serving_here(store: Store, settings: Settings) -> Iterator[Here]:
    """Serve a store over a real socket until the block ends; the store is closed then, as every server does."""
    import uvicorn

    from equipoise.service import create_app
    from equipoise.service.processes import open_port, server_config

    app = create_app(store, settings)
    server, listening = uvicorn.Server(server_config(lambda: app, settings)), open_port("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        port = listening.getsockname()[1]
        inner = getattr(app, "app", app)  # there is a layer around it if other origins are allowed
        yield Here(f"http://127.0.0.1:{port}", port, inner.service, server.server_state.connections)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive()
