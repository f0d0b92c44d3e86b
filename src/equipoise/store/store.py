"""A store: transactions on one database that are tried again when that is safe, and a place for cached states."""

from __future__ import annotations

import sys
import time
import weakref
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.store.transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    import sqlalchemy as sa

    from equipoise.store.database import Database

Result = TypeVar("Result")


class Store:
    """A database of experiments, made by `open_store`.

    Usable from several threads, and after a fork. Close it, or use it in a `with` block, to give its connections back.

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
        """The last committed state of each experiment that was used; whoever puts one here never changes it."""
        self._clock = clock or _utc_now
        weakref.finalize(self, database.close)  # for those who never close it

    @property
    def url(self) -> str:
        """Where the store is, without a password."""
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
        self, experiment: int | None, work: Callable[[Transaction], Result], units: list[str] | None = None
    ) -> Result:
        """Return what `work` returns after its transaction is durable.

        `work` runs while no other writer of the experiment can (None: no other change of the schema and no creation).
        It may run again after a lost connection or lock, so it must change nothing but the transaction. If it will look
        up `units`, that may save a question to the database.
        """
        locked = _locked(experiment, work, units)
        return self._attempt(lambda: self.database.writing(experiment), locked, self.database.attempts)

    def prepare(
        self, experiment: int, work: Callable[[Transaction], Result], units: list[str] | None = None
    ) -> Prepared[Result] | None:
        """Do `work` now, on this thread, and leave the commit to be made, on any; None if that is not possible now.

        It never waits. Where it returns None, because somebody else is writing or something is wrong, nothing is
        written, and `change` waits or tells what is wrong.
        """
        if not self.database.answers_at_once:
            return None
        try:
            with ExitStack() as stack:
                connection = stack.enter_context(self.database.writing(experiment, at_once=True))
                stack.enter_context(_given_up_when_interrupted(connection))
                result = _locked(experiment, work, units)(Transaction(self.database, connection))
                return Prepared(stack.pop_all(), result)
        except Exception:  # noqa: BLE001
            return None

    def read(self, work: Callable[[Transaction], Result], *, repeatable: bool = True) -> Result:
        """Return what `work` returns; it sees one state of the database and waits for no writer.

        Unless it is repeatable, such as writing to a file, it is not run again after a lost connection.
        """
        return self._attempt(self.database.reading, work, self.database.attempts if repeatable else 1)

    def _attempt(
        self,
        begin: Callable[[], AbstractContextManager[sa.Connection]],
        work: Callable[[Transaction], Result],
        attempts: int,
    ) -> Result:
        before = sys.exc_info()[1]
        for attempt in range(1, attempts + 1):
            try:
                with begin() as connection, _given_up_when_interrupted(connection):
                    return work(Transaction(self.database, connection))
            except EquipoiseError:
                raise
            except Exception as error:
                interrupt = _interrupt_behind(error, before)
                if interrupt is not None:
                    raise interrupt from None
                told, again = self.database.failure(error)
                self._forget_values(error, before)
                if told is None:
                    raise
                if not again or attempt == attempts:
                    raise told from error
            time.sleep(0.05 * attempt)
        raise AssertionError("unreachable")

    def _forget_values(self, error: BaseException, before: BaseException | None) -> None:
        # A variable of the caller would keep the error, and all that its traceback holds, until somebody collects it.
        for one in _chain(error, before):
            self.database.forget_values(one)

    def close(self) -> None:
        """Close all connections."""
        self.states.clear()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"open_store({self.url!r})"


class Prepared(Generic[Result]):
    """Work that is written, but not durable: others wait until `commit` or `undo` is called."""

    def __init__(self, transaction: ExitStack, result: Result) -> None:
        self._transaction = transaction
        self._result = result

    def commit(self) -> Result:
        """Return what the work returned, once it is durable; if this raises, it is undone."""
        self._transaction.close()
        return self._result

    def undo(self) -> None:
        """Leave no trace."""
        with suppress(_Undone):
            self._transaction.__exit__(_Undone, _Undone(), None)


class _Undone(Exception):
    """Ends a transaction that is not wanted any more."""


def _locked(
    experiment: int | None, work: Callable[[Transaction], Result], units: list[str] | None
) -> Callable[[Transaction], Result]:
    def locked(transaction: Transaction) -> Result:
        if experiment is not None:
            transaction.lock(experiment, units or [])
        return work(transaction)

    return locked


@contextmanager
def _given_up_when_interrupted(connection: sa.Connection) -> Iterator[None]:
    """Close a connection after Ctrl-C: it may be in the middle of a statement, and is not asked to undo anything."""
    try:
        yield
    except Exception:
        raise
    except BaseException:
        if not connection.closed:
            connection.invalidate()
        raise


def _interrupt_behind(error: BaseException, before: BaseException | None) -> BaseException | None:
    """Return the Ctrl-C in whose handling an error came up, unless it was being handled `before` we were called."""
    return next((one for one in _chain(error, before) if isinstance(one, (KeyboardInterrupt, SystemExit))), None)


def _chain(error: BaseException, before: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and what led to it, up to what was being handled `before`."""
    cause: BaseException | None = error
    while cause is not None and cause is not before:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _utc_now() -> datetime:
    return datetime.now(UTC)
