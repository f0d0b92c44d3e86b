"""Run the tasks of a sweep on local threads or processes, or on a Dask or Ray cluster."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra

BACKENDS = ("threads", "processes", "ray", "dask")
"""Backends that a sweep can run on."""

CONNECT_SECONDS, PROBE_SECONDS, CLOSE_SECONDS = 10.0, 3.0, 0.5
"""Timeouts: to connect to a scheduler, to probe whether its port is open, and to disconnect."""


class Workers(NamedTuple):
    """Workers that are ready."""

    n_at_once: int
    """Number of tasks that run at once."""
    results: Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Any]
    """Calls a function with the shared object and each tuple of arguments; yields results as they arrive."""


@contextmanager
def connected(backend: str, workers: int | None, scheduler: str | None, shared: Any) -> Iterator[Workers]:
    """Yield the workers of a backend; each receives `shared`, which may be large, once instead of with every task."""
    checks.one_of("backend", backend, BACKENDS)
    on_cluster = backend in ("ray", "dask")
    if scheduler is not None and not on_cluster:
        raise InvalidInput.of("scheduler", f"is for the backends ray and dask; got it for {backend}")
    if workers is not None and on_cluster:
        raise InvalidInput.of(
            "workers", f"is for the backends threads and processes; the {backend} cluster has its own"
        )
    n_jobs = -1 if workers is None else checks.whole_number("workers", workers, 1)
    if backend == "ray":
        with _ray(scheduler, shared) as ready:
            yield ready
    elif backend == "dask":
        with _dask(scheduler) as client, _joblib(shared, n_jobs, backend="dask", client=client) as ready:
            yield ready
    else:
        # Threads share the object itself; joblib memory-maps its large arrays for processes.
        with _joblib(shared, n_jobs, backend="threading" if backend == "threads" else "loky") as ready:
            yield ready


@contextmanager
def _joblib(shared: Any, n_jobs: int, *, backend: str, **client: Any) -> Iterator[Workers]:
    import joblib

    with joblib.parallel_config(backend, n_jobs=n_jobs, **client):
        try:
            n_at_once = joblib.effective_n_jobs(n_jobs)
        except TimeoutError as error:
            raise EquipoiseError("the dask cluster has no workers", hint="start some first") from error
        options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
        if client:
            # Broadcast it to all workers, so that it is not lost with one of them; and submit all tasks, so that a
            # cluster that scales with demand sees the demand.
            shared = client["client"].scatter([shared], broadcast=True)[0]
            options["pre_dispatch"] = "all"
        parallel, delayed = joblib.Parallel(**options), joblib.delayed
        if client and n_at_once == 1:  # joblib would not use the cluster, and hand on the promise of what is shared
            yield Workers(1, lambda function, tasks: _one_at_a_time(client["client"], shared, function, tasks))
            return
        yield Workers(n_at_once, lambda function, tasks: parallel(delayed(function)(shared, *task) for task in tasks))


def _one_at_a_time(
    client: Any, shared: Any, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """Yield the results of tasks on the only worker of a Dask cluster."""
    waiting = [client.submit(function, shared, *task, pure=False) for task in tasks]
    try:
        while waiting:
            yield waiting.pop(0).result()
    finally:
        client.cancel(waiting)


@contextmanager
def _dask(scheduler: str | None) -> Iterator[Any]:
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
    hint = "start one: dask scheduler"
    if isinstance(address, str) and not address.startswith("inproc://"):  # in-process addresses have no port
        _expect_answer("dask scheduler", address, "tcp://host:8786", hint)
    # Use our own client even if one is open: when it closes, the scheduler drops its tasks and no others.
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError) as error:
        raise EquipoiseError(f"no dask scheduler answers at {address}", hint=hint) from error
    try:
        yield client
    finally:
        with suppress(TimeoutError), _unlogged("tornado.application", distributed.comm.CommClosedError):
            client.close(timeout=CLOSE_SECONDS)


@contextmanager
def _unlogged(name: str, kind: type[Exception]) -> Iterator[None]:
    """Filter errors of a kind from a log: a result still in flight when we disconnect is not worth reporting."""

    def other(record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], kind)

    logger = logging.getLogger(name)
    logger.addFilter(other)
    try:
        yield
    finally:
        logger.removeFilter(other)


@contextmanager
def _ray(scheduler: str | None, shared: Any) -> Iterator[Workers]:
    """Connect to Ray and use its tasks.

    Ray's joblib backend returns no results before all are done, so an interrupted sweep would lose them.
    """
    ray = _module("ray", extra="ray")
    ours = not ray.is_initialized()
    if ours:
        address, hint = scheduler or os.environ.get("RAY_ADDRESS") or "auto", "start one: ray start --head"
        if address not in ("auto", "local"):
            _expect_answer("ray cluster", address, "host:6379", hint)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = "" if address == "auto" else f" at {address}"
            raise EquipoiseError(f"no ray cluster answers{where}", hint=hint) from error
        except ray.exceptions.RayError as error:
            reason = str(error).strip().split("\n")[0]
            raise EquipoiseError(f"the ray cluster does not let us in: {reason}") from error

    def results(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        call, reference = ray.remote(function), ray.put(shared)
        waiting = [call.remote(reference, *task) for task in tasks]
        try:
            while waiting:
                (ready,), waiting = ray.wait(waiting)
                yield ray.get(ready)
        finally:
            for task in [] if ours else waiting:  # on our own connection they end when it closes
                ray.cancel(task, force=True)

    try:
        yield Workers(max(1, int(ray.cluster_resources().get("CPU", 1))), results)
    finally:
        if ours:
            ray.shutdown()


def _expect_answer(what: str, address: str, example: str, hint: str) -> None:
    """Raise if an address is invalid, or nothing accepts connections there.

    Measured: without this, Ray was still retrying after 100 seconds and filled the screen, and Dask leaves a client
    that complains when it is garbage-collected.
    """
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        place = (parts.hostname, parts.port)
    except ValueError:  # the port is not a number
        place = (None, None)
    if None in place:
        kind = what.partition(" ")[0]
        raise InvalidInput.of("scheduler", f"must be the address of a {kind} cluster, such as {example}", address)
    try:
        socket.create_connection(place, timeout=PROBE_SECONDS).close()
    except OSError as error:
        raise EquipoiseError(f"no {what} answers at {address}: {error.strerror or error}", hint=hint) from error


def _module(name: str, *, extra: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(f"the backend {extra} needs {name}", hint=f"pip install 'equipoise[{extra}]'") from error
