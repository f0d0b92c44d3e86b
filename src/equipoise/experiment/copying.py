"""Copy an experiment from one store to another, with its whole log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import ExperimentExists
from equipoise.store.schema import EVENT_COLUMNS, PENDING_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.store import Transaction


def copy(
    source: Transaction,
    experiment: int,
    name: str,
    target: Transaction,
    url: str,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write an experiment read in one transaction in another, and return its number there.

    `progress` is told how many events are written, and of how many.
    """
    if source.database.identity(source.connection) == target.database.identity(target.connection):
        raise ExperimentExists(f"{url} is where {name!r} is already", hint="copy to another store")
    found = target.find(name)
    if found is not None:
        # After a connection was lost while committing, what is found may be what was written.
        if _summary(source, experiment) == _summary(target, found):
            return found
        raise ExperimentExists(f"{url} has an experiment {name!r} already", hint="copy to another store")
    head = source.head(experiment)
    _, created_at, configuration = source.configuration(experiment)
    number = target.create(name, head.state, created_at, configuration)
    target.put_arms(number, source.arms(experiment))
    for columns, table, order, put in (
        (EVENT_COLUMNS, "events", "number", target.append),
        (PENDING_COLUMNS, "pending", "decision", target.put_pending),
    ):
        statement = f"SELECT {', '.join(columns)} FROM {table} WHERE experiment = ? ORDER BY {order}"  # noqa: S608
        for rows in source.stream(statement, experiment):
            put(number, rows)
            if progress is not None and table == "events":
                progress(rows[-1][0], head.n_events)
    target.configure(number, configuration, head.configured)
    target.advance(number, head.state, head.n_events, head.n_decisions)
    return number


def _summary(transaction: Transaction, experiment: int) -> tuple[Any, ...]:
    """Return what two copies of an experiment agree in, and two that went on by themselves do not."""
    head = transaction.head(experiment)
    last = [tuple(row) for row in transaction.events(experiment, head.n_events - 1, 1)]
    arms = [tuple(row) for row in transaction.arms(experiment)]
    return head[1:], transaction.configuration(experiment), arms, last
