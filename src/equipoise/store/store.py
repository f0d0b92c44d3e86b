"""Open or upgrade a store, and run transactions on it, with retries where they are safe."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from equipoise.errors import EquipoiseError, Hint, InvalidInput, StoreMismatch
from equipoise.store import migrations, schema
from equipoise.store.database import Database, StoreSize, database_at

if TYPE_CHECKING:
    from equipoise.store.transaction import Transaction

Result = TypeVar("Result")


def open_store(url: str, *, clock: Callable[[], datetime] | None = None, create: bool = True) -> Store:
    """Open a store of experiments; create its tables if the database is empty.

    Parameters
    ----------
    url : str
        ``sqlite:///file.db`` for a file that needs no server, ``postgresql://user@host/database`` for many
        machines, or ``memory:`` for a test or a notebook.
    clock : function, optional
        Returns the time as a datetime with a zone; the system clock by default.
    create : bool, default True
        Whether to create a store where there is none. With False a mistyped URL is an error, and changes nothing.

    Examples
    --------
    >>> import equipoise as eq
    >>> store = eq.open_store("memory:")
    >>> experiment = eq.Experiment.create(
    ...     store, "fractions", arms=["number line", "pie"], policy=eq.ForcingBalance(reward_weight=0.8), seed=1
    ... )
    >>> experiment.ask("student-42").arm
    'number line'
    """
    store = Store(database_at(url), clock)
    try:
        if store._revision(create) != schema.REVISION:
            store._migrate(even_with_experiments=False)
    except BaseException:
        store.close()
        raise
    return store


def upgrade(url: str, *, create: bool = True) -> tuple[str | None, str]:
    """Upgrade a database to the current schema and return its revision before and after.

    Where there is no store, one is created, unless `create` is False.

    Examples
    --------
    >>> upgrade("memory:")
    (None, '6')
    """
    with Store(database_at(url)) as store:
        store._revision(create)
        return store._migrate(even_with_experiments=True)


class Store:
    """A database of experiments, from `open_store`.

    It can be used from several threads, and after a fork. Close it, or use it in a `with` block.

    Examples
    --------
    >>> import equipoise as eq
    >>> with eq.open_store("memory:") as store:
    ...     eq.Experiment.list(store)
    []
    """

    def __init__(self, database: Database, clock: Callable[[], datetime] | None = None) -> None:
        self.database = database
        self.states: dict[int, Any] = {}
        """Cache: the last committed state of each experiment, by its number, shared by all users of the store.

        It belongs to `equipoise.experiment.state`; it is here to end with the store. Never mutate a state in it.
        """
        self.rollups: dict[tuple[int, int], Any] = {}
        """Cache of `equipoise.experiment.checkpoints`: the sums by hour of each experiment, by process and number."""
        self._reads: dict[object, float] = {}
        """When each read of this process began."""
        self.past_rollups: dict[tuple[int, int, int], Any] = {}
        """The same up to an event of the past, by process, number and event."""
        self.pasts: dict[tuple[int, int], Any] = {}
        """Cache of `equipoise.experiment.past`: experiments as they were after an event, by number and event."""
        self._clock = clock or _utc_now
        database.checks_clock = clock is None
        weakref.finalize(self, database.close)  # if it is never closed

    @property
    def url(self) -> str:
        """The URL of the store, without passwords."""
        return self.database.shown_url

    def now(self) -> datetime:
        """Return the time in UTC by the store's clock."""
        now: Any = self._clock()
        if not isinstance(now, datetime) or now.utcoffset() is None:
            raise InvalidInput(
                f"a store's clock must return a datetime with a zone; got {now!r}", hint="datetime.now(UTC)"
            )
        return now.astimezone(UTC)

    def change(
        self,
        experiment: int | None,
        work: Callable[[Transaction], Result],
        units: list[str] | None = None,
        *,
        lock_seconds: float | None = None,
    ) -> Result:
        """Run `work` in a write transaction and return its result once it is durable.

        `work` holds the lock of the experiment (None: of the schema and of new experiments). It is retried after a lost
        connection or lock, so it must change nothing but the transaction. If it will look up `units`, naming them here
        may save a round trip. With `lock_seconds`, raise `StoreBusy` if another writer of the experiment has its lock
        for that long; SQLite, which has one lock for all, ignores it.
        """
        cached = None if experiment is None else self.states.get(experiment)
        seen = 0 if cached is None else cached.n_events
        begin = partial(self.database.writing, experiment, units, seen, lock_seconds)
        return self._retry(begin, work, self.database.attempts)

    def read(self, work: Callable[[Transaction], Result], *, repeatable: bool = True) -> Result:
        """Run `work` on one snapshot of the database, without waiting for writers, and return its result.

        If it is not `repeatable`, for example because it writes to a file, it is not retried after a lost connection.
        """
        token = object()
        self._reads[token] = time.monotonic()
        try:
            return self._retry(self.database.reading, work, self.database.attempts if repeatable else 1)
        finally:
            del self._reads[token]

    @property
    def oldest_read_seconds(self) -> float:
        """For how long this process has been in its oldest read; 0 if it reads nothing."""
        began = min(list(self._reads.values()), default=None)
        return 0.0 if began is None else max(time.monotonic() - began, 0.0)

    def size(self) -> StoreSize:
        """Return how many bytes the store takes."""
        return self.read(self.database.size)

    def rollup_marks(self) -> list[tuple[str, int, int]]:
        """Return the name of each experiment, how many events it has, and up to which its sums by hour are kept."""
        return [(str(name), int(n), int(event)) for name, n, event in self.read(lambda found: found.rollup_marks())]

    def _retry(
        self,
        begin: Callable[[], AbstractContextManager[Transaction]],
        work: Callable[[Transaction], Result],
        attempts: int,
    ) -> Result:
        before = sys.exc_info()[1]
        for attempt in range(1, attempts + 1):
            try:
                with begin() as transaction:
                    return work(transaction)
            except EquipoiseError:
                raise
            except Exception as error:
                interrupt = _interrupt_behind(error, before)
                if interrupt is not None:
                    raise interrupt from None
                failure, again = self.database.failure(error)
                self._forget_values(error, before)
                if failure is None:
                    raise
                if not again or attempt == attempts:
                    raise failure from error
            time.sleep(0.05 * attempt)
        raise AssertionError("unreachable")

    def _forget_values(self, error: BaseException, before: BaseException | None) -> None:
        # A separate method: a loop variable in the caller would keep the error and its traceback's locals alive.
        for one in _chain(error, before):
            self.database.forget_values(one)

    def _revision(self, create: bool) -> str | None:
        """Return the schema revision; raise if there is no store, unless it may be created."""
        if not create:
            self.database.require_store()
        found = self.read(lambda transaction: migrations.revision_of(transaction.connection))
        if found is None and not create:
            raise StoreMismatch(f"there is no store in {self.url}", hint=Hint.NO_STORE)
        return found

    def _migrate(self, *, even_with_experiments: bool) -> tuple[str | None, str]:
        def work(transaction: Transaction) -> tuple[str | None, str]:
            return migrations.migrate(transaction.connection, self.url, even_with_experiments=even_with_experiments)

        return self.change(None, work)

    def close(self) -> None:
        """Close all connections."""
        self.states.clear()
        self.rollups.clear()
        self.pasts.clear()
        self.past_rollups.clear()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"open_store({self.url!r})"


def _interrupt_behind(error: BaseException, before: BaseException | None) -> BaseException | None:
    """Return the Ctrl-C during whose handling an error was raised, unless it was being handled `before` our call."""
    return next((one for one in _chain(error, before) if isinstance(one, (KeyboardInterrupt, SystemExit))), None)


def _chain(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and its causes, up to the one being handled `before` our call."""
    cause: BaseException | None = error
    while cause is not None and cause is not before:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _utc_now() -> datetime:
    return datetime.now(UTC)
