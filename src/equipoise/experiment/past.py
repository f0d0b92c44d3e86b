"""Read an experiment as it was right after one of its events, by replaying its log up to there.

The replay trusts the decisions in the log, as `rebuild` does; `verify` compares them. What was found for the last few
events that were asked for is kept: the past does not change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import InvalidInput
from equipoise.experiment.observed_log import OBSERVED, ObservedLog
from equipoise.experiment.status import status_of
from equipoise.experiment.verification import EVENTS
from equipoise.store.schema import instant, microseconds

if TYPE_CHECKING:
    from equipoise.experiment.records import Status
    from equipoise.experiment.state import State
    from equipoise.store import Store, Transaction
    from equipoise.store.transaction import Head

SLICE_EVENTS = 50_000
"""Events read in one transaction, which takes some 50 ms."""
MOST_KEPT = 16


class Past(NamedTuple):
    """An experiment right after an event: its state, and its status at the time of the event."""

    state: State
    status: Status


def past_of(store: Store, number: int, name: str, event: int) -> Past:
    """Return an experiment as it was after an event."""

    def begin(transaction: Transaction) -> tuple[Head, list[Sequence[Any]]]:
        transaction.require_name(number, name)
        head = transaction.head(number, event)
        if event > head.n_events:
            expected = f"must be the number of an event, from 1 to {head.n_events:,}"
            raise InvalidInput.of("at", expected, event)
        kept = store.pasts.get((number, event))
        if kept is not None and kept.state.hash == head.seen_hash:
            return head, []
        statement = EVENTS.replace("FROM events", f"FROM events {transaction.database.by_change}")
        return head, list(transaction.execute(f"{statement} AND unit IS NULL AND number <= ?", number, event))

    head, changes = store.read(begin)
    if not changes:
        found: Past = store.pasts[number, event]
        return found
    past = _replayed(store, number, name, head, changes, event)
    for key in list(store.pasts)[: 1 - MOST_KEPT]:
        store.pasts.pop(key, None)
    store.pasts[number, event] = past
    return past


def _replayed(store: Store, number: int, name: str, head: Head, changes: list[Sequence[Any]], event: int) -> Past:
    known = {row[0]: row for row in changes}

    def one(of: int) -> Sequence[Any]:
        rows = [known[of]] if of in known else store.read(lambda t: t.execute(f"{EVENTS} AND number = ?", number, of))
        return rows[0]

    log = ObservedLog(name, compare=False)
    log.make_room(min(head.n_decisions, event), 0)
    statement = f"{OBSERVED.format(details='')} ORDER BY number"
    for first in range(0, event, SLICE_EVENTS):
        last = min(first + SLICE_EVENTS, event)
        log.read_rows(store.read(lambda t, to=last, of=first: t.execute(statement, number, of, to)), one)  # type: ignore[misc]
    log.finish()
    log.state.hash = head.seen_hash
    return Past(log.state, status_at(log, instant(log.last_at)))


def status_at(log: ObservedLog, now: datetime) -> Status:
    """Return the status after what was replayed of a log, at a time."""
    n_due, last = log.windows(microseconds(now))
    status = status_of(log.state, now, n_due)
    return dataclasses.replace(status, last_window_at=None if last is None else instant(last))
