"""What all requests share: the store, the keys, experiments by name, and threads for short and long calls."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from equipoise.errors import EquipoiseError, Hint, NotAuthenticated, StoreError, UnknownExperiment
from equipoise.experiment import Experiment
from equipoise.experiment.backends import StoreBackend
from equipoise.service.error_responses import CLIENT_GONE, Overloaded, Refused
from equipoise.service.group_commit import GroupCommit
from equipoise.service.keys import OPEN, Key, KeyRing
from equipoise.service.prometheus import Metrics
from equipoise.service.threads import Threads

if TYPE_CHECKING:
    from equipoise.service.settings import Settings
    from equipoise.store import Store

Result = TypeVar("Result")

log = logging.getLogger("equipoise.service")

_KEYS_SECONDS = 2.0
"""Age of the keys in memory at most: a revoked key may still be used that long."""
_USES_SECONDS = 30.0
_MOST_THREADS, _MOST_WAITING = 24, 200
"""Threads for calls that wait for the store, and calls that may run or wait for a thread: backpressure."""
_MOST_LONG_THREADS, _MOST_LONG, _MOST_LONG_OF_ONE = 8, 24, 5
"""The same for calls that may take minutes, and how many may be of one experiment, to leave threads for others."""
_LOOK_SECONDS = 2.0
_ENDING_SECONDS = 5.0
"""Patience with unfinished work at shutdown, after the grace period of requests."""
_MOST_LOOKED_UP = 10
"""Rate limit: unknown keys looked up per second."""


class Service:
    """One service of one process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self.metrics = Metrics(store)
        self.keys = KeyRing(store)
        self.group_commit = GroupCommit(
            store,
            batch_requests=settings.batch_requests,
            wait_seconds=settings.wait_seconds,
            observe=self.metrics.observe_batch,
        )
        self._threads = Threads("equipoise-work", _MOST_THREADS, _MOST_WAITING)
        self._long_threads = Threads("equipoise-long-work", _MOST_LONG_THREADS, _MOST_LONG, _MOST_LONG_OF_ONE)
        self._scrape = self._threads.shared(self.metrics.text)
        # Threads of their own: keys are read and health is reported while everything else waits.
        self._key_thread = ThreadPoolExecutor(1, "equipoise-keys")
        self._look_thread = ThreadPoolExecutor(1, "equipoise-look")
        self._numbers: dict[str, int] = {}
        self._keeper: asyncio.Task[None] | None = None
        self._looked_up_at: list[float] = []

    async def start(self) -> None:
        """Read the keys, and go on doing so; a store that is away now may come back."""
        with contextlib.suppress(StoreError):
            await self._read_keys()
        self._keeper = asyncio.get_running_loop().create_task(self._keep_keys())

    async def stop(self) -> None:
        """Finish what was accepted, and give the connections back."""
        if self._keeper is not None:
            self._keeper.cancel()
        await self.group_commit.close(_ENDING_SECONDS)
        with contextlib.suppress(StoreError, TimeoutError):
            await asyncio.wait_for(self._read_keys(note_uses=True), _ENDING_SECONDS)
        for crowd in (self._threads, self._long_threads):
            crowd.shut_down()
        for thread in (self._key_thread, self._look_thread):
            thread.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    # Keys

    def key_now(self, authorization: bytes | None) -> Key | None:
        """Return the key of a request, by what is known of keys now."""
        if self.settings.open:
            return OPEN
        if authorization is None or authorization[:7].lower() != b"bearer ":
            return None
        return self.keys.find(authorization[7:].decode("latin-1").strip())

    async def key(self, authorization: bytes | None) -> Key:
        """Return the key of a request, made perhaps a moment ago; raise `NotAuthenticated` if there is none."""
        if authorization is None:
            raise self.keys.why_not(None)
        scheme, _, rest = authorization.partition(b" ")
        if scheme.lower() != b"bearer":  # whatever it is, and it may be a secret
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
            due = time.monotonic() - noted > _USES_SECONDS
            try:
                await self._read_keys(note_uses=due)
            except EquipoiseError as error:
                log.warning("keys could not be read", extra={"data": {"error": error.message}})
            except Exception:  # if this ended, revoked keys would be good for ever
                log.exception("keys could not be read")
            else:
                noted = time.monotonic() if due else noted

    # Experiments

    def known_experiment(self, name: str, key: Key) -> Experiment | None:
        """Return an experiment that was used before: experiments are never removed or renamed."""
        number = self._numbers.get(name)
        return None if number is None else Experiment(StoreBackend(self.store, number, name, key.name))

    def experiment(self, name: str, key: Key) -> Experiment:
        """Return an experiment, which may take a look into the store."""
        found = self.known_experiment(name, key)
        if found is None:
            try:
                found = Experiment.open(self.store, name, who=key.name)
            except UnknownExperiment:  # whose message says where the store is
                raise UnknownExperiment(f"the service has no experiment {name!r}", hint=Hint.LIST_EXPERIMENTS) from None
            self._numbers[name] = found.number
        return found

    async def work(self, name: str, key: Key, action: Callable[[Experiment], Result]) -> Result:
        """Run a short action on an experiment, on a thread."""
        return await self.elsewhere(lambda: action(self.experiment(name, key)))

    async def long_work(
        self, name: str, key: Key, action: Callable[[Experiment], Result], gone: Callable[[], Awaitable[None]]
    ) -> Result:
        """Run an action that may take minutes; it is not begun for a caller that is `gone` by then."""
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

    async def elsewhere(self, action: Callable[[], Result]) -> Result:
        """Run an action that may wait for the store, for `wait_seconds` at most, on a thread."""
        return await self._threads.carry_out(action, seconds=self.settings.wait_seconds)

    async def numbers(self) -> str:
        """Return the numbers for Prometheus; those who ask at the same time cause one look into the store."""
        return await self._scrape(self.settings.wait_seconds)

    async def look(self) -> None:
        """Raise unless the store answers soon."""

        def look() -> None:
            self.store.read(lambda transaction: transaction.find("-"))

        looking = asyncio.get_running_loop().run_in_executor(self._look_thread, look)
        try:
            await asyncio.wait_for(looking, _LOOK_SECONDS)
        except TimeoutError:
            raise Overloaded(f"the store did not answer within {_LOOK_SECONDS:g} seconds") from None
