"""Where the parts of a sweep run: threads and processes here, or a Ray or Dask cluster, all through joblib."""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Iterator

BACKENDS = ("threads", "processes", "ray", "dask")
"""Where a sweep can run."""

CONNECT_SECONDS = 10.0
"""How long to wait for the scheduler of a cluster."""

CLOSE_SECONDS = 0.5
"""How long to wait until a scheduler has heard that we leave; if it does not answer, it will notice by itself."""


@contextmanager
def parallel_calls(backend: str, workers: int | None, scheduler: str | None) -> Iterator[tuple[Any, int]]:
    """Give a function that makes joblib calls and yields what they return as it comes, and how many run at once."""
    import joblib

    checks.one_of("backend", backend, BACKENDS)
    on_cluster = backend in ("ray", "dask")
    if scheduler is not None and not on_cluster:
        raise InvalidInput(f"scheduler is for the backends ray and dask; got it for {backend}")
    if workers is not None and on_cluster:
        raise InvalidInput(f"workers is for the backends threads and processes; the {backend} cluster has its own")
    n_jobs = -1 if workers is None else checks.whole_number("workers", workers, 1)
    options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
    if not on_cluster:
        name = {"threads": "threading", "processes": "loky"}[backend]
        with joblib.parallel_config(backend=name, n_jobs=n_jobs):
            yield joblib.Parallel(**options), joblib.effective_n_jobs(n_jobs)
        return
    connected = _ray(scheduler) if backend == "ray" else _dask(scheduler)
    with connected as parameters, joblib.parallel_config(n_jobs=n_jobs, **parameters):
        # All at once, so that a cluster that grows with demand sees the demand.
        yield joblib.Parallel(pre_dispatch="all", **options), joblib.effective_n_jobs(n_jobs)


@contextmanager
def _dask(scheduler: str | None) -> Iterator[dict[str, Any]]:
    dask, distributed = _module("dask", extra="dask"), _module("distributed", extra="dask")
    address, security = scheduler or dask.config.get("scheduler-address", None), None
    if address is None:
        try:
            known = distributed.default_client()
        except ValueError:
            raise InvalidInput(
                "the backend dask needs the address of a scheduler", hint="--scheduler tcp://host:8786"
            ) from None
        address, security = known.scheduler.address, known.security
    # A client of our own, also where one is open: when it leaves, the scheduler drops its tasks and no others.
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError) as error:
        raise EquipoiseError(f"no dask scheduler answers at {address}", hint="start one: dask scheduler") from error
    try:
        yield {"backend": "dask", "client": client}
    finally:
        with suppress(TimeoutError), _unlogged("tornado.application", distributed.comm.CommClosedError):
            client.close(timeout=CLOSE_SECONDS)


@contextmanager
def _unlogged(name: str, kind: type[Exception]) -> Iterator[None]:
    """Keep errors of a kind out of a log: a result that was on its way when we left is no news."""

    def other(record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], kind)

    logger = logging.getLogger(name)
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


@contextmanager
def _ray(scheduler: str | None) -> Iterator[dict[str, Any]]:
    ray = _module("ray", extra="ray")
    ours = not ray.is_initialized()
    if ours:
        try:
            ray.init(address=scheduler or "auto", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f" at {scheduler}" if scheduler else ""
            raise EquipoiseError(f"no ray cluster answers{where}", hint="start one: ray start --head") from error
    try:
        yield {"backend": _ray_backend(ray, cancel=not ours)}
    finally:
        if ours:
            ray.shutdown()


def _ray_backend(ray: Any, *, cancel: bool) -> Any:
    """Return a joblib backend that makes each call a task of Ray; `cancel` if the connection outlives the calls.

    Ray's own (`ray.util.joblib`) hands results over only when all are there, too late to keep them when a sweep is
    interrupted, and deals calls out to actors in turn whether those are free or not.
    """
    from joblib.parallel import ParallelBackendBase

    class RayTasks(ParallelBackendBase):  # type: ignore[misc]
        supports_retrieve_callback = True

        def effective_n_jobs(self, n_jobs: int | None) -> int:
            return max(1, int(ray.cluster_resources().get("CPU", 1)))

        def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
            self.parallel = parallel
            self._call = ray.remote(_called)
            self._waiting: dict[Any, Any] = {}
            return self.effective_n_jobs(n_jobs)

        def submit(self, func: Any, callback: Any = None) -> Any:
            reference = self._call.remote(func)
            future = reference.future()
            self._waiting[future] = reference
            future.add_done_callback(callback)
            return future

        def retrieve_result_callback(self, future: Any) -> Any:
            self._waiting.pop(future, None)
            return future.result()

        def abort_everything(self, ensure_ready: bool = True) -> None:
            if cancel:  # else they end with the connection, all at once
                for reference in list(self._waiting.values()):
                    ray.cancel(reference, force=True)
            self._waiting.clear()

    return RayTasks(nesting_level=0)


def _called(call: Any) -> Any:
    return call()


def _module(name: str, *, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(f"the backend {extra} needs {name}", hint=f"pip install 'equipoise[{extra}]'") from error
