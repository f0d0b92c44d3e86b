"""Look at the health of all experiments once a minute, in one process of all, and send what the webhook is to be told.

It runs on a thread of its own and rests after each experiment for as long as that took, so that it is never in the way
of assignments. Leases in the store say which process looks, and which one sends.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from equipoise.errors import EquipoiseError, StoreError
from equipoise.experiment.alert_episodes import holder
from equipoise.experiment.health import look_at
from equipoise.service.webhook import Outbox, Webhook
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.service.refused_calls import RefusedCalls
    from equipoise.store import Store, Transaction

log = logging.getLogger("equipoise.service")

LOOKING, SENDING = "health", "webhook"
"""Names of the leases, which are about the whole store."""
_OF_STORE = 0
_QUIET_ROUNDS = 5
"""An experiment in which nothing happened is looked at in every round of so many: time passes in it all the same."""
_WATCHED = """
SELECT id, name, n_events FROM experiments WHERE state <> 'finished' OR EXISTS
    (SELECT 1 FROM alerts WHERE alerts.experiment = experiments.id AND alerts.closed_at IS NULL)
ORDER BY id
"""
_DROP_LEASE = "DELETE FROM leases WHERE experiment = ? AND name = ? AND holder = ?"
_LEASE = "SELECT holder, expires_at FROM leases WHERE experiment = ? AND name = ?"


class Lease:
    """A lease about the whole store; renewed when half of its time is over, and given back at the end."""

    def __init__(self, store: Store, name: str, seconds: float) -> None:
        self._store, self._name = store, name
        self._length = timedelta(seconds=seconds)
        self._until: datetime | None = None

    def take(self) -> bool:
        """Return whether this process has the lease, and take it if nobody has."""
        now = self._store.now()
        if self._until is not None and now < self._until - self._length / 2:
            return True
        rows = self._store.read(lambda transaction: transaction.execute(_LEASE, _OF_STORE, self._name))
        if rows and rows[0][0] != holder() and rows[0][1] > microseconds(now):
            self._until = None
            return False
        until = now + self._length

        def work(transaction: Transaction) -> bool:
            return transaction.take_lease(_OF_STORE, self._name, holder(), microseconds(now), microseconds(until))

        taken = self._store.change(None, work)
        self._until = until if taken else None
        return taken

    def give_back(self) -> None:
        """Let another process have it at once."""
        if self._until is None:
            return
        self._until = None
        with suppress(StoreError):
            self._store.change(None, lambda one: one.execute(_DROP_LEASE, _OF_STORE, self._name, holder()))


class Watch:
    """The looks at the experiments of a store, and the messages that follow from them.

    Parameters
    ----------
    store : Store
        Holds the experiments.
    seconds : float
        Time between two looks at an experiment.
    refused : RefusedCalls
        What this process refused, which is written before every look.
    number_of : function
        Returns the number of an experiment by its name, if this process knows it.
    webhook : Webhook, optional
        Where alerts are sent.
    observe : function, optional
        Called with what became of each attempt to send.
    """

    def __init__(
        self,
        store: Store,
        *,
        seconds: float,
        refused: RefusedCalls,
        number_of: Callable[[str], int | None],
        webhook: Webhook | None = None,
        observe: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store, self._seconds = store, seconds
        self._refused, self._number_of = refused, number_of
        self._looking = Lease(store, LOOKING, 2.5 * seconds)
        self._sending = Lease(store, SENDING, 2.5 * seconds)
        self._outbox = None if webhook is None else Outbox(store, webhook, observe)
        self._thread = ThreadPoolExecutor(1, "equipoise-watch")
        self._seen: dict[int, tuple[int, int]] = {}
        """For each experiment, its last event and the round of the last look."""
        self._round = 0
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the loop that runs now; the first look is as far away as the second is from it."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self, seconds: float) -> None:
        """End soon: finish the experiment under way, and give the leases back."""
        self._ending = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        with suppress(TimeoutError, EquipoiseError):
            await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(self._thread, self._give_back), seconds)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _give_back(self) -> None:
        for lease in (self._looking, self._sending):
            lease.give_back()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        rest = min(self._seconds, 5.0)
        looked = loop.time()
        while True:
            await asyncio.sleep(rest)
            try:
                if loop.time() - looked >= self._seconds:
                    looked = loop.time()
                    await loop.run_in_executor(self._thread, self.look)
                if self._outbox is not None:
                    await self._outbox.send_due(self._sending.take)
            except EquipoiseError as error:
                log.warning("experiments could not be looked at", extra={"data": {"error": error.message}})
            except Exception:  # if this task ended, no alert would be told any more
                log.exception("experiments could not be looked at")

    def look(self) -> None:
        """Write what was refused, and look at all experiments if this process is to."""
        self._refused.write(self._number_of)
        if not self._looking.take():
            return
        self._round += 1
        experiments = self._store.read(lambda transaction: transaction.execute(_WATCHED))
        self._seen = {number: self._seen[number] for number, *_ in experiments if number in self._seen}
        for number, name, n_events in experiments:
            event, last = self._seen.get(number, (-1, 0))
            if self._ending or (event == n_events and self._round - last < _QUIET_ROUNDS):
                continue
            began = time.perf_counter()
            try:
                look_at(self._store, number, name)
            except EquipoiseError as error:
                data = {"experiment": name, "error": error.message}
                log.warning("an experiment could not be looked at", extra={"data": data})
            self._seen[number] = n_events, self._round
            time.sleep(min(time.perf_counter() - began, 1.0))
            if not self._looking.take():
                return
