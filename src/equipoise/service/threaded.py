"""The service in a thread of this process, for a demonstration or a notebook; `equipoise serve` is for all else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from equipoise.errors import StoreUnavailable
from equipoise.service.application import create_app
from equipoise.service.listening import open_port
from equipoise.service.processes import server_config
from equipoise.service.settings import Settings

if TYPE_CHECKING:
    from typing import Self

    from equipoise.store import Store

_START_SECONDS = 30.0


class ThreadedService:
    """A service on this machine, at `url`, from `with` to the end of its block.

    Parameters
    ----------
    store : Store
        Where experiments and keys are; closed at the end.
    settings : Settings, optional
        Limits and choices.
    port : int
        Where to listen; 0 for any that is free.

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
