"""The state that all requests of a process share: store, keys, experiments, group commit, metrics and thread pools."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from equipoise.errors import EquipoiseError, Hint, NotAuthenticated, StoreError, UnknownExperiment
from equipoise.experiment import Experiment
from equipoise.experiment.backends import StoreBackend
from equipoise.service.api_keys import OPEN, Key, KeyRing
from equipoise.service.error_responses import CLIENT_GONE, Overloaded, Refused
from equipoise.service.group_commit import GroupCommit
from equipoise.service.key_limits import Budgets
from equipoise.service.plan_queue import PLANS, PlanQueue
from equipoise.service.prometheus import Metrics
from equipoise.service.recent_traffic import RecentTraffic
from equipoise.service.refused_calls import ABOUT_UNITS, COUNTED, RefusedCalls
from equipoise.service.threads import Threads
from equipoise.service.watching import Watch

if TYPE_CHECKING:
    from equipoise.http_api import Endpoint
    from equipoise.service.settings import Settings
    from equipoise.store import Store

Result = TypeVar("Result")

log = logging.getLogger("equipoise.service")

_KEYS_SECONDS = 2.0
"""Most seconds that cached keys are used: a revoked key still works that long."""
_USES_SECONDS = 30.0
_MOST_THREADS, _MOST_WAITING = 24, 200
"""Threads for calls that wait for the store, and most calls that run or wait for a thread: backpressure."""
_MOST_LONG_THREADS, _MOST_LONG, _MOST_LONG_OF_ONE = 8, 24, 5
"""The same for calls that may take minutes, and most of them for one experiment, to leave threads for others."""
_MOST_LARGE_REQUESTS = 4
"""Requests with a large body that are at work: a decoded body takes many times its size until its answer is sent."""
_LOOK_SECONDS, _WRITTEN_SECONDS = 2.0, 1.0
"""How long a check of readiness waits for the store, and for how long one write shows that it can be written."""
_MOST_LOOKED_UP = 10
"""Rate limit: unknown keys looked up per second."""


class Service:
    """The service in one process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.metrics = Metrics(store)
        self.traffic = RecentTraffic(self.metrics)
        self.keys = KeyRing(store)
        self.group_commit = GroupCommit(
            store,
            batch_requests=settings.batch_requests,
            wait_seconds=settings.wait_seconds,
            observe=self.metrics.observe_batch,
        )
        self.budgets = Budgets(time.monotonic)
        self._threads = Threads("equipoise-work", _MOST_THREADS, _MOST_WAITING)
        self._long_threads = Threads("equipoise-long-work", _MOST_LONG_THREADS, _MOST_LONG, _MOST_LONG_OF_ONE)
        self._scrape = self._threads.shared(self.metrics.text)
        # One body at a time: decoding holds the GIL most of the time, and takes up to thirty times the body in memory.
        self._decoding = Threads("equipoise-decode", 1, _MOST_WAITING)
        self._large_requests = asyncio.Semaphore(_MOST_LARGE_REQUESTS)
        # Dedicated threads: keys must be read and health reported even while all other threads are busy.
        self._key_thread = ThreadPoolExecutor(1, "equipoise-keys")
        looks = self._looks = Threads("equipoise-look", 2, 2)
        self._read_check = looks.shared(lambda: self.store.read(lambda transaction: transaction.find("-")))
        self._write_check = looks.shared(self._write)
        self._written_at = -_WRITTEN_SECONDS
        self._own_plans: tempfile.TemporaryDirectory[str] | None = None
        self.more_threads: list[Threads] = []
        """Thread pools of others, such as the console, which end with the service."""
        self.draining = False
        """Whether the service will close its port soon."""
        self._numbers: dict[str, int] = {}
        self._keeper: asyncio.Task[None] | None = None
        self.refused = RefusedCalls(store, self.metrics.refused)
        self._watch = Watch(
            store,
            seconds=settings.watch_seconds,
            refused=self.refused,
            number_of=self._numbers.get,
            webhook=settings.webhook,
            observe=self.metrics.observe_message,
        )
        self._looked_up_at: list[float] = []

    async def start(self) -> None:
        """Read the keys now and periodically; a store that is unavailable may come back."""
        with contextlib.suppress(StoreError):
            await self._read_keys()
        self._keeper = asyncio.get_running_loop().create_task(self._keep_keys())
        self._watch.start()

    async def stop(self) -> None:
        """Finish accepted work, record the uses of keys, and close the store."""
        if self._keeper is not None:
            self._keeper.cancel()
        await self._watch.stop(self.settings.ending_seconds)
        await self.group_commit.close(self.settings.ending_seconds)
        with contextlib.suppress(StoreError, TimeoutError):
            await asyncio.wait_for(self._read_keys(note_uses=True), self.settings.ending_seconds)
        if self._own_plans is not None:
            self.plans.close()
            self._own_plans.cleanup()
        for crowd in (self._threads, self._long_threads, self._decoding, self._looks, *self.more_threads):
            crowd.shut_down()
        self._key_thread.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    @cached_property
    def plans(self) -> PlanQueue:
        """The plans that are simulated, in a directory that the processes of a server share, or one of its own."""
        shared = os.environ.get(PLANS)
        if shared is None:
            self._own_plans = tempfile.TemporaryDirectory(prefix="equipoise-plans-")
            shared = self._own_plans.name
        return PlanQueue(Path(shared))

    # Keys

    def key_now(self, authorization: bytes | None) -> Key | None:
        """Return the key of a request from the cache, if it is valid."""
        if self.settings.open:
            return OPEN
        if authorization is None or authorization[:7].lower() != b"bearer ":
            return None
        return self.keys.find(authorization[7:].decode("latin-1").strip())

    async def key(self, authorization: bytes | None) -> Key:
        """Return the key of a request, looking up one that may be new; raise `NotAuthenticated` if it is not valid."""
        if authorization is None:
            raise self.keys.why_not(None)
        scheme, _, rest = authorization.partition(b" ")
        if scheme.lower() != b"bearer":  # do not echo it: it may be a secret
            raise NotAuthenticated("the scheme of Authorization must be Bearer", hint=Hint.SEND_KEY)
        token = rest.decode("latin-1").strip()
        if self.keys.is_new(token) and self._may_look_up():
            await asyncio.get_running_loop().run_in_executor(self._key_thread, self.keys.look_up, token)
        found = self.keys.find(token)
        if found is None:
            raise self.keys.why_not(token)
        return found

    def _may_look_up(self) -> bool:
        """Return whether the rate limit for unknown keys allows another look-up."""
        now = time.monotonic()
        self._looked_up_at = [at for at in self._looked_up_at if at > now - 1]
        if len(self._looked_up_at) >= _MOST_LOOKED_UP:
            return False
        self._looked_up_at.append(now)
        return True

    async def _read_keys(self, *, note_uses: bool = False) -> None:
        read = partial(self.keys.read, note_uses=note_uses)
        await asyncio.get_running_loop().run_in_executor(self._key_thread, read)

    async def _keep_keys(self) -> None:
        noted = time.monotonic()
        while True:
            await asyncio.sleep(_KEYS_SECONDS)
            self.metrics.share()
            self.traffic.sample()
            due = time.monotonic() - noted > _USES_SECONDS
            try:
                await self._read_keys(note_uses=due)
            except EquipoiseError as error:
                log.warning("keys could not be read", extra={"data": {"error": error.message}})
            except Exception:  # if this task ended, revoked keys would stay valid
                log.exception("keys could not be read")
            else:
                noted = time.monotonic() if due else noted

    # Experiments

    def known_experiment(self, name: str, key: Key) -> Experiment | None:
        """Return an experiment from the cache, if present."""
        number = self._numbers.get(name)
        return None if number is None else Experiment(StoreBackend(self.store, number, name, key.name))

    def experiment(self, name: str, key: Key) -> Experiment:
        """Return an experiment; this may read the store."""
        found = self.known_experiment(name, key)
        if found is None:
            try:
                found = Experiment.open(self.store, name, who=key.name)
            except UnknownExperiment:  # its message reveals where the store is
                raise UnknownExperiment(f"the service has no experiment {name!r}", hint=Hint.LIST_EXPERIMENTS) from None
            self._numbers[name] = found.number
        return found

    def observe_call(self, method: str, route: str, name: str, status: int, error: str | None) -> None:
        """Count a call about units of an experiment that is known here, and the class of the error that refused it."""
        if (method, route) in ABOUT_UNITS and name in self._numbers:
            self.refused.observe(name, error if status in COUNTED else None)

    def forget(self, name: str) -> None:
        """Forget where an experiment was; this worker alone, others find out when they use it."""
        self._numbers.pop(name, None)

    def forget_experiments(self) -> None:
        """Look experiments up by their names again: the store is no longer the one they were found in."""
        log.warning("the store was replaced or restored; looking its experiments up again")
        self._numbers.clear()

    async def work(self, name: str, key: Key, action: Callable[[Experiment], Result]) -> Result:
        """Run a short action on an experiment, on the thread pool."""
        return await self.elsewhere(lambda: action(self.experiment(name, key)))

    async def long_work(
        self, name: str, key: Key, action: Callable[[Experiment], Result], gone: Callable[[], Awaitable[None]]
    ) -> Result:
        """Run an action that may take minutes; cancel it if the caller is `gone` before it begins."""
        found = self._long_threads.carry_out(lambda: action(self.experiment(name, key)), of=name)
        working, leaving = asyncio.ensure_future(found), asyncio.ensure_future(gone())
        try:
            await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise Refused(CLIENT_GONE, "the client did not wait for its answer")
            return working.result()
        finally:
            working.cancel()
            leaving.cancel()

    def begin_long(self, name: str, action: Callable[[], None]) -> None:
        """Begin an action on an experiment that may take minutes, and do not wait for it."""
        self._long_threads.begin(action, of=name)

    async def elsewhere(self, action: Callable[[], Result]) -> Result:
        """Run an action that may wait for the store, on the thread pool, for at most `wait_seconds`."""
        return await self._threads.carry_out(action, seconds=self.settings.wait_seconds)

    def most_bytes(self, endpoint: Endpoint) -> int:
        """Return the largest body that an endpoint takes."""
        largest, most = self.settings.body_bytes, endpoint.body_bytes
        return largest if most is None or most > largest else most

    async def with_large_body(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the work of a request with a large body, after waiting for at most `wait_seconds` for others to end."""
        try:
            await asyncio.wait_for(self._large_requests.acquire(), self.settings.wait_seconds)
        except TimeoutError:
            raise Overloaded("too much to do: too many requests with large bodies") from None
        try:
            return await work()
        finally:
            self._large_requests.release()

    async def decode(self, action: Callable[[], Result]) -> Result:
        """Decode a large body, one at a time and not on the event loop."""
        return await self._decoding.carry_out(action, seconds=self.settings.wait_seconds)

    async def numbers(self) -> str:
        """Return the Prometheus metrics; concurrent scrapes share one read of the store."""
        return await self._scrape(self.settings.wait_seconds)

    async def look(self) -> None:
        """Check readiness: raise if the service drains, or unless the store answers within two seconds and is written.

        A write that has to wait for another writer is not refused, so it does not count.
        """
        if self.draining:
            raise Overloaded("the service is about to end")
        await self._read_check(_LOOK_SECONDS)
        if time.monotonic() - self._written_at > _WRITTEN_SECONDS:
            with contextlib.suppress(Overloaded):
                await self._write_check(_LOOK_SECONDS)

    def _write(self) -> None:
        self.store.change(None, lambda transaction: transaction.touch_version())
        self._written_at = time.monotonic()
