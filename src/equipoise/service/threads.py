"""A thread pool for calls that wait for the store, with limits on how many run or wait: backpressure.

`anyio.to_thread` does not fit: its limiter gives the slot of a cancelled call to the next one while the thread still
works, so a store that hangs would get a new thread for every request that timed out. Here a call counts until it ends.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from equipoise.service.error_responses import Overloaded

Result = TypeVar("Result")


class Threads:
    """A thread pool with a limit on its calls.

    Parameters
    ----------
    name : str
        Prefix of the thread names.
    n_threads : int
        Number of threads.
    most : int
        Most calls that run or wait; more are refused.
    most_of_one : int, optional
        Most of these for one experiment.
    """

    def __init__(self, name: str, n_threads: int, most: int, most_of_one: int | None = None) -> None:
        self._threads = ThreadPoolExecutor(n_threads, name)
        self._most, self._most_of_one = most, most_of_one or most
        self._n_of: Counter[str] = Counter()
        self._counting = threading.Lock()

    def begin(self, action: Callable[[], Result], *, of: str = "") -> Future[Result]:
        """Submit `action` and return its future; it occupies a slot until it ends or is cancelled."""
        with self._counting:
            if self._n_of[of] >= self._most_of_one:
                raise Overloaded("too much to do: too many long calls of this experiment are under way")
            if self._n_of.total() >= self._most:
                raise Overloaded("too much to do: too many requests wait for the store")
            self._n_of[of] += 1
        try:
            work = self._threads.submit(action)
        except BaseException:
            self._done(of)
            raise
        work.add_done_callback(lambda _: self._done(of))
        return work

    async def carry_out(self, action: Callable[[], Result], *, of: str = "", seconds: float | None = None) -> Result:
        """Run `action` and return its result; cancel it if the caller leaves before it has begun.

        A running thread cannot be cancelled: an action that has begun counts until it is done, awaited or not.
        """
        work = self.begin(action, of=of)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(work), seconds)
        except TimeoutError:
            if work.cancel():
                raise Overloaded("the store takes too long; this was not begun, so nothing was recorded") from None
            raise Overloaded("the store takes too long; whether this was recorded is not known yet") from None

    def shared(self, action: Callable[[], Result]) -> Callable[[float], Awaitable[Result]]:
        """Wrap `action` so that concurrent callers share one run; each waits at most the seconds it passes."""
        under_way: Future[Result] | None = None

        async def result(seconds: float) -> Result:
            nonlocal under_way
            if under_way is None or under_way.done():
                under_way = self.begin(action)
            try:
                # Shielded, since a caller that leaves must not cancel what others wait for.
                return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(under_way)), seconds)
            except TimeoutError:
                raise Overloaded("the store takes too long") from None

        return result

    def shut_down(self) -> None:
        """Cancel waiting calls and accept no more; do not wait for running ones."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _done(self, of: str) -> None:
        with self._counting:
            self._n_of[of] -= 1
            if not self._n_of[of]:
                del self._n_of[of]
