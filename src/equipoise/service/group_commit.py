"""Group commit: requests that arrive while a transaction runs share the next one, and are answered after its commit.

There is one queue per lock: the SQLite file, or an experiment's row in PostgreSQL. A queue runs one transaction at a
time and takes all waiting requests of an experiment into the next. While one transaction is written to disk, the next
one fills, so there is no timer, unless other processes write to the same experiment. Then processes take turns. One
that began its transaction at once would wait for its turn with few requests in hand while more arrive, so it first
gathers requests for as long as its last turn took. Transactions run on threads, so that none blocks the event loop; one
that somebody else keeps from the experiment's lock gives its thread back, and is tried again a little later.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, StoreBusy, StoreError
from equipoise.experiment.execution import carry_out
from equipoise.service.error_responses import Overloaded

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.experiment.commands import Request
    from equipoise.store import Store

_MOST_THREADS = 16
_LOCK_SECONDS, _FIRST_REST, _LONGEST_REST = 0.25, 0.1, 2.0
"""How long a batch waits for an experiment that somebody else has locked, and how long its queue then rests.

Waiting takes one of the threads, of which other experiments need some: with 100 locked experiments, 11 are taken.
"""
_LONGEST_GATHERING = 0.005
"""Seconds at most that requests gather before a transaction when other processes write too."""


class Submission:
    """The requests of one caller; several of them succeed or fail together."""

    __slots__ = ("answer", "arrived", "experiment", "requests")

    def __init__(self, experiment: Experiment, requests: Sequence[Request], answer: asyncio.Future[Any]) -> None:
        self.experiment = experiment
        self.requests = requests
        self.answer = answer
        self.arrived = time.monotonic()

    @property
    def is_single(self) -> bool:
        """Whether it can share a transaction with other submissions."""
        return len(self.requests) == 1


class GroupCommit:
    """All queues of a process; use it from one event loop only.

    Parameters
    ----------
    store : Store
        Holds the experiments.
    batch_requests : int
        Most requests that share a transaction.
    wait_seconds : float
        How long a request may wait for its answer.
    observe : function of (experiment, requests, seconds), optional
        Called after every transaction.
    """

    def __init__(
        self,
        store: Store,
        *,
        batch_requests: int,
        wait_seconds: float,
        observe: Callable[[str, int, float], None] | None = None,
    ) -> None:
        self._one_lock = not store.database.locks_rows
        self._batch_requests = batch_requests
        self._wait_seconds = wait_seconds
        self._observe = observe or (lambda *_: None)
        self._queues: dict[str | None, _Queue] = {}
        self._threads = ThreadPoolExecutor(1 if self._one_lock else _MOST_THREADS, "equipoise-commit")
        self._watch: asyncio.Task[None] | None = None

    def submit(self, experiment: Experiment, requests: Sequence[Request]) -> asyncio.Future[Any]:
        """Queue requests; return a future of their results (of one request, its result), set once they are durable."""
        loop = asyncio.get_running_loop()
        if self._watch is None:
            self._watch = loop.create_task(self._give_up_on_late_ones())
        key = None if self._one_lock else experiment.name
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _Queue(loop, self._threads, self._batch_requests, self._observe)
        submission = Submission(experiment, requests, loop.create_future())
        queue.add(submission)
        return submission.answer

    async def close(self, patience: float) -> None:
        """Finish accepted requests, for at most `patience` seconds."""
        last = time.monotonic() + patience
        while any(queue.is_busy for queue in self._queues.values()) and time.monotonic() < last:
            await asyncio.sleep(0.005)
        if self._watch is not None:
            self._watch.cancel()
        self._threads.shutdown(wait=False)  # each queue's last batch was accepted and still runs

    async def _give_up_on_late_ones(self) -> None:
        """Answer requests that waited too long; one being written may still commit, but a retry is idempotent."""
        while True:
            await asyncio.sleep(min(0.25, self._wait_seconds / 4))
            last = time.monotonic() - self._wait_seconds
            for queue in self._queues.values():
                queue.give_up(last)


class _Queue:
    """The submissions that wait for one lock, by experiment, and the batch being written."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        threads: ThreadPoolExecutor,
        batch_requests: int,
        observe: Callable[[str, int, float], None],
    ) -> None:
        self._loop = loop
        self._threads = threads
        self._batch_requests = batch_requests
        self._observe = observe
        self._waiting: OrderedDict[str, deque[Submission]] = OrderedDict()
        self._running: list[Submission] = []
        self._starting = False
        self._gathering: asyncio.TimerHandle | None = None
        self._rest = 0.0
        """Seconds that the queue rested last, since somebody else had locked the experiment."""
        self._expected = 0
        """While requests gather: how many callers of the last batch have not sent their next request yet."""

    @property
    def is_busy(self) -> bool:
        """Whether any submission waits or is being written."""
        return bool(self._running or self._waiting)

    def add(self, submission: Submission) -> None:
        """Queue a submission for the next transaction, which begins now unless one is running."""
        name = submission.experiment.name
        waiting = self._waiting.get(name)
        if waiting is None:
            waiting = self._waiting[name] = deque()
        waiting.append(submission)
        if self._gathering is not None:
            self._expected -= 1
            if self._expected > 0:
                return
            self._gathering.cancel()
            self._gathering, self._starting = None, False
        if not self._running and not self._starting:
            # Not at once: the first of several simultaneous requests would go alone, and the others wait for it.
            self._starting = True
            self._loop.call_soon(self._start)

    def give_up(self, last: float) -> None:
        """Fail submissions that arrived before the instant `last`."""
        for submission in self._running:
            if submission.arrived < last:
                _fail(submission, Overloaded("the store takes too long; whether this was recorded is not known yet"))
        for name in list(self._waiting):
            waiting = self._waiting[name]
            while waiting and waiting[0].arrived < last:
                _fail(waiting.popleft(), Overloaded("too much to do: this waited too long and was not begun"))
            if not waiting:
                del self._waiting[name]

    def _start(self) -> None:
        """Begin the next transaction, if any submission waits; experiments take turns."""
        self._starting, self._gathering = False, None
        batch = self._running = self._next()
        if batch:
            try:
                self._threads.submit(self._write, batch)
            except RuntimeError:  # the service is shutting down, and the thread pool is closed
                self._running = []
                while batch:
                    for submission in batch:
                        _fail(submission, Overloaded("the service is ending: this was not begun"))
                    batch = self._next()

    def _next(self) -> list[Submission]:
        while self._waiting:
            name, waiting = self._waiting.popitem(last=False)
            batch: list[Submission] = []
            while waiting and len(batch) < self._batch_requests:
                if waiting[0].answer.done():  # cancelled by its caller
                    waiting.popleft()
                    continue
                if not waiting[0].is_single:
                    if not batch:
                        batch.append(waiting.popleft())
                    break
                batch.append(waiting.popleft())
            if waiting:
                self._waiting[name] = waiting  # to the end of the line
            if batch:
                return batch
        return []

    def _write(self, batch: list[Submission]) -> None:
        """Write a batch, on a thread; every caller gets an answer, even after an error."""
        started, after_others = time.perf_counter(), False
        try:
            results, after_others = _carried_out(batch)
        except StoreBusy:
            self._loop.call_soon_threadsafe(self._put_back, batch)
            return
        except BaseException as error:  # noqa: BLE001
            results = [error] * len(batch)
        seconds = time.perf_counter() - started
        self._loop.call_soon_threadsafe(self._finish, batch, results, seconds, after_others)

    def _put_back(self, batch: list[Submission]) -> None:
        """Put a batch whose experiment is locked back to the front, and try it again after a rest."""
        name = batch[0].experiment.name
        self._waiting.setdefault(name, deque()).extendleft(reversed(batch))
        self._waiting.move_to_end(name, last=False)
        self._rest = min(_LONGEST_REST, 2 * self._rest or _FIRST_REST)
        self._running, self._starting = [], True
        self._loop.call_later(self._rest, self._start)

    def _finish(self, batch: list[Submission], results: list[Any], seconds: float, after_others: bool) -> None:
        self._rest = 0.0
        if after_others and sum(map(len, self._waiting.values())) < self._batch_requests:
            self._gather(len(batch), min(seconds, _LONGEST_GATHERING))
        else:
            self._start()  # first, so that the disk is busy while answers are sent
        for submission, result in zip(batch, results, strict=True):
            if submission.answer.done():
                continue
            if isinstance(result, BaseException):
                submission.answer.set_exception(result)
            else:
                submission.answer.set_result(result)
        self._observe(batch[0].experiment.name, sum(len(submission.requests) for submission in batch), seconds)

    def _gather(self, expected: int, seconds: float) -> None:
        """Begin the next transaction after `seconds`, or as soon as `expected` requests have arrived."""
        self._running, self._starting, self._expected = [], True, expected
        self._gathering = self._loop.call_later(seconds, self._start)


def _carried_out(batch: list[Submission]) -> tuple[list[Any], bool]:
    """Run a batch; return each submission's result or error, and whether another process wrote since our last turn."""
    experiment = batch[0].experiment
    if not batch[0].is_single:
        return [_alone(batch[0], _LOCK_SECONDS)], False
    try:
        requests = [submission.requests[0] for submission in batch]
        made = carry_out(
            experiment.store, experiment.number, experiment.name, requests, together=False, lock_seconds=_LOCK_SECONDS
        )
    except StoreError:
        raise
    except Exception:
        # Any of them may have caused this, so give each its own transaction and its own answer.
        if len(batch) == 1:
            raise
        return [_alone(submission) for submission in batch], False
    return made.results, made.after_others


def _alone(submission: Submission, lock_seconds: float | None = None) -> Any:
    experiment = submission.experiment
    try:
        made = carry_out(
            experiment.store,
            experiment.number,
            experiment.name,
            submission.requests,
            together=True,
            lock_seconds=lock_seconds,
        )
    except StoreBusy:
        raise
    except Exception as error:  # noqa: BLE001
        return error
    return made.results[0] if submission.is_single else made.results


def _fail(submission: Submission, error: EquipoiseError) -> None:
    if not submission.answer.done():
        submission.answer.set_exception(error)
