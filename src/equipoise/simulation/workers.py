"""Where the parts of a sweep run: threads and processes here, or a Ray or Dask cluster, all through joblib."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import socket
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from equipoise import checks
from equipoise.arms import Arms
from equipoise.errors import EquipoiseError, InvalidInput, MissingExtra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from equipoise._types import FloatArray
    from equipoise.arms.arms import Drawing

BACKENDS = ("threads", "processes", "ray", "dask")
"""Where a sweep can run."""

CONNECT_SECONDS = 10.0
"""How long to wait for the scheduler of a cluster."""

PROBE_SECONDS = 3.0
"""How long to wait until something takes a connection at all: the clusters' own ways to fail are long and loud."""

CLOSE_SECONDS = 0.5
"""How long to wait until a scheduler has heard that we leave; if it does not answer, it will notice by itself."""


class Workers(NamedTuple):
    """Where calls are made."""

    parallel: Any
    """A function that makes joblib calls and yields what they return as it comes."""
    n_at_once: int
    """How many run at once."""
    share: Callable[[Parcel], Any]
    """Brings a parcel to all workers and returns what to pass to calls in its place."""


@contextmanager
def parallel_calls(backend: str, workers: int | None, scheduler: str | None) -> Iterator[Workers]:
    """Give the workers of a backend while it is connected."""
    import joblib

    checks.one_of("backend", backend, BACKENDS)
    on_cluster = backend in ("ray", "dask")
    if scheduler is not None and not on_cluster:
        raise InvalidInput.of("scheduler", f"is for the backends ray and dask; got it for {backend}")
    if workers is not None and on_cluster:
        raise InvalidInput.of(
            "workers", f"is for the backends threads and processes; the {backend} cluster has its own"
        )
    n_jobs = -1 if workers is None else checks.whole_number("workers", workers, 1)
    options: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1}
    if not on_cluster:
        name = {"threads": "threading", "processes": "loky"}[backend]
        with joblib.parallel_config(backend=name, n_jobs=n_jobs):
            # joblib itself lets processes share a large array.
            yield Workers(joblib.Parallel(**options), joblib.effective_n_jobs(n_jobs), lambda parcel: parcel)
        return
    connected = _ray(scheduler) if backend == "ray" else _dask(scheduler)
    with connected as (parameters, share), joblib.parallel_config(n_jobs=n_jobs, **parameters):
        # All at once, so that a cluster that grows with demand sees the demand.
        parallel = joblib.Parallel(pre_dispatch="all", **options)
        count = _n_workers(backend, n_jobs)
        yield Workers(parallel, count, lambda parcel: parcel if parcel.is_small else share(parcel))


def _n_workers(backend: str, n_jobs: int) -> int:
    import joblib

    try:
        count: int = joblib.effective_n_jobs(n_jobs)
    except TimeoutError as error:
        raise EquipoiseError(f"the {backend} cluster has no workers", hint="start some first") from error
    return count


@contextmanager
def _dask(scheduler: str | None) -> Iterator[tuple[dict[str, Any], Callable[[Parcel], Any]]]:
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
    if isinstance(address, str):
        _expect_answer("dask", address, example="tcp://host:8786", hint="start one: dask scheduler")
    # A client of our own, also where one is open: when it leaves, the scheduler drops its tasks and no others.
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, security=security)
    except (OSError, ValueError) as error:
        raise EquipoiseError(f"no dask scheduler answers at {address}", hint="start one: dask scheduler") from error
    try:
        # To all workers, so that it is not lost with one of them.
        yield {"backend": "dask", "client": client}, lambda parcel: client.scatter([parcel], broadcast=True)[0]
    finally:
        with suppress(TimeoutError), _unlogged("tornado.application", distributed.comm.CommClosedError):
            client.close(timeout=CLOSE_SECONDS)


def _expect_answer(kind: str, address: str, *, example: str, hint: str) -> None:
    """Raise if an address is none, or nothing takes connections there."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is no number
        host, port = None, None
    if address.startswith("inproc://"):  # dask's way within one process has no port
        return
    if not host or port is None:
        raise InvalidInput.of("scheduler", f"must be the address of a {kind} cluster, such as {example}", address)
    try:
        socket.create_connection((host, port), timeout=PROBE_SECONDS).close()
    except OSError as error:
        what = "dask scheduler" if kind == "dask" else "ray cluster"
        raise EquipoiseError(f"no {what} answers at {address}: {error.strerror or error}", hint=hint) from error


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
def _ray(scheduler: str | None) -> Iterator[tuple[dict[str, Any], Callable[[Parcel], Any]]]:
    ray = _module("ray", extra="ray")
    ours = not ray.is_initialized()
    if ours:
        address, hint = scheduler or os.environ.get("RAY_ADDRESS") or "auto", "start one: ray start --head"
        if address not in ("auto", "local"):
            _expect_answer("ray", address, example="host:6379", hint=hint)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = "" if address == "auto" else f" at {address}"
            raise EquipoiseError(f"no ray cluster answers{where}", hint=hint) from error
        except ray.exceptions.RayError as error:
            reason = str(error).strip().split("\n")[0]
            raise EquipoiseError(f"the ray cluster does not let us in: {reason}") from error
    try:
        yield (
            {"backend": _ray_backend(ray, cancel=not ours)},
            lambda parcel: Parcel(parcel.key, ray.put(parcel.content)),
        )
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


SMALL = 100_000
"""Bytes that go with every task, which is simpler and outlives a lost worker; more are sent to each worker once."""


class DescribedArms(Arms):
    """Arms that play as they do and say of themselves a few words only, so that results of a task are small."""

    def __init__(self, arms: Arms, description: dict[str, Any]) -> None:
        self.mean, self.std, self.names = arms.mean, arms.std, arms.names
        self._arms, self._description = arms, description

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return self._arms.drawing

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards that belong to uniform numbers."""
        return self._arms.external_rewards(arm, uniform)

    def fill(self, arm: int, seed: int, replication: int, first: int, out: FloatArray) -> None:
        """Write rewards."""
        self._arms.fill(arm, seed, replication, first, out)

    def to_dict(self) -> dict[str, Any]:
        """Return the few words."""
        return self._description

    def __repr__(self) -> str:
        return f"DescribedArms({self._description})"


class Parcel:
    """Something pickled once, for workers that each open it once.

    Parameters
    ----------
    key : str
        Different for different contents.
    content : array of bytes, or a reference to it in Ray
    """

    def __init__(self, key: str, content: Any) -> None:
        self.key, self.content = key, content

    @classmethod
    def of(cls, thing: Any) -> Parcel:
        """Return a parcel with something in it."""
        try:  # it takes classes that only the script here knows, too
            import cloudpickle  # type: ignore[import-untyped]
        except ImportError:  # joblib before 1.6 has its own
            from joblib.externals import cloudpickle

        data = cloudpickle.dumps(thing)
        return cls(hashlib.sha256(data).hexdigest(), np.frombuffer(data, dtype=np.uint8))

    @property
    def is_small(self) -> bool:
        """Whether it may go with every task."""
        return bool(self.content.size <= SMALL)

    def opened(self) -> Any:
        """Return what is in it; a worker keeps what it opened last."""
        found = _OPENED.get(self.key)
        if found is None:
            content = self.content
            if not isinstance(content, np.ndarray):
                import ray

                content = ray.get(content)
            found = pickle.loads(content.tobytes())  # noqa: S301  (we packed it)
            _OPENED.clear()
            _OPENED[self.key] = found
        return found


_OPENED: dict[str, Any] = {}
