"""Keep the rollup of an experiment up to date with its log, in memory, and save it in the store now and then.

Any reader does this. It reads the log in short slices and pauses in between, so that it is never in the way of
assignments. One process at a time saves, by a lease, in a transaction like any other. Who cannot save, because another
process does or the store cannot be written, goes on in memory.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from equipoise.errors import StoreError
from equipoise.experiment.rollup import VERSION, Mark, Rollup, read_slice
from equipoise.experiment.state import read_configuration
from equipoise.store import Store, Transaction, schema
from equipoise.store.schema import microseconds
from equipoise.store.transaction import Checkpoint

if TYPE_CHECKING:
    from equipoise.store.transaction import Head

log = logging.getLogger("equipoise.experiment")

SLICE_EVENTS = 10_000
"""Events read in one transaction, which takes some 30 ms."""
SAVE_SECONDS, SAVE_EVENTS, SAVE_CELLS = 10.0, 50_000, 2_000
"""Save at most once in these seconds, unless this many events or cells have come together."""
LEAST_EVENTS = 1_000
"""Do not save for fewer events than this: adding them up again is quicker."""
LEASE = "rollup"
_MOST_PAST = 3
"""Rollups of the past that are kept in memory."""
_RETRY_SECONDS = 60.0
"""Seconds until the next attempt after the store could not be written."""
_HOLDER = secrets.token_hex(8)
"""Who we are, for the lease; a fork is somebody else."""
_HASH = "SELECT hash FROM events WHERE experiment = ? AND number = ?"


class KeptRollup:
    """The rollup of one experiment in this process, and the changes of the experiment so far.

    Attributes
    ----------
    lock : lock
        Held while the rollup is read or extended.
    changes : list of tuple
        Number, kind, time, arm and details of the events without a unit.
    derived : dict
        What readers computed from the changes and sums; emptied with them.
    """

    def __init__(self, number: int, name: str, until: int | None = None) -> None:
        self.number, self.name = number, name
        self.until = until
        """The event to end with; such a rollup is not saved."""
        self.lock = threading.Lock()
        self.rollup: Rollup | None = None
        """None before it is read, and after an interruption or a conflict."""
        self.changes: list[Sequence[Any]] = []
        self.derived: dict[Any, Any] = {}
        self.n_events = 0
        """How long the log was when it was last looked at."""
        self._checkpoint: Checkpoint | None = None
        self._is_fresh = True
        """Whether what is saved has nothing to do with the rollup, and must be deleted first."""
        self._is_stale = False
        """Whether to read what is saved again before going on."""
        self._saved_at = -SAVE_SECONDS
        self._rebuilt_at = 0
        """The last event `rebuilt` that was followed."""

    @property
    def event(self) -> int:
        """The event that the rollup reaches."""
        return 0 if self.rollup is None else self.rollup.mark.event

    @property
    def is_complete(self) -> bool:
        """Whether the rollup reaches the end of the log, as it was when it was last looked at."""
        return self.rollup is not None and self.event == self.n_events

    def catch_up(self, store: Store, seconds: float | None) -> None:
        """Extend the rollup to the end of the log, or for some seconds, and save it if it is time to."""
        started = time.monotonic()
        while True:
            began = time.perf_counter()
            more = self._step(store)
            took = time.perf_counter() - began
            self._save(store)
            if not more or (seconds is not None and time.monotonic() - started >= seconds):
                return
            time.sleep(took)

    def _step(self, store: Store) -> bool:
        """Read and add one slice; return whether there is more to read."""
        # Until it is complete again, nobody may see it: after Ctrl-C, half of a slice may be in it.
        rollup, self.rollup = None if self._is_stale else self.rollup, None
        if rollup is None:
            rollup = store.read(self._load)
            self._is_stale = False
        mark = rollup.mark

        def read(transaction: Transaction) -> tuple[Head, bytes | None, Sequence[Any], Sequence[Any]]:
            head = self._head(transaction, mark.event)
            if self.until is not None:
                head = head._replace(n_events=min(head.n_events, self.until))
            last = min(mark.event + SLICE_EVENTS, head.n_events)
            if head.seen_hash != mark.hash or mark.event > head.n_events or last == mark.event:
                return head, None, (), ()
            rows = read_slice(transaction, self.number, mark.event, last)
            changes = transaction.changes(self.number, mark.event, last)
            return head, _hash(transaction, self.number, last), rows, changes

        head, last_hash, rows, changes = store.read(read)
        self.n_events = head.n_events
        if head.n_events < mark.event or head.seen_hash != mark.hash:
            log.warning("the log of experiment %r is not the one that was added up; adding it up again", self.name)
            return True
        rebuilt = max((change[0] for change in changes if change[1] == "rebuilt"), default=0)
        if rebuilt > self._rebuilt_at and mark.event:  # what we read may have been damaged
            self._rebuilt_at = rebuilt
            return True
        rollup.extend(rows, last_hash)
        self.changes.extend(changes)
        self.rollup = rollup
        return rollup.mark.event < head.n_events

    def _load(self, transaction: Transaction) -> Rollup:
        """Return the rollup as it was saved last, or an empty one if none was, or if it is of another log."""
        self._head(transaction, 0)
        _, _, text = transaction.configuration(self.number)
        rollup = Rollup(read_configuration(self.name, text))
        checkpoint = self._checkpoint = transaction.checkpoint(self.number)
        self._is_fresh = checkpoint is None or checkpoint.version != VERSION
        if checkpoint is not None and not self._is_fresh:
            head = self._head(transaction, checkpoint.event)
            self._is_fresh = head.n_events < checkpoint.event or head.seen_hash != checkpoint.hash
            self._is_fresh |= self.until is not None and self.until < checkpoint.event
        self.derived = {}
        if checkpoint is None or self._is_fresh:
            self.changes = []
            return rollup
        self.changes = list(transaction.changes(self.number, 0, checkpoint.event))
        return rollup.load(transaction, self.number, _mark_of(checkpoint))

    def _head(self, transaction: Transaction, seen: int) -> Head:
        head = transaction.head(self.number, seen)
        if head.name != self.name:
            transaction.require_name(self.number, self.name)
        return head

    def _save(self, store: Store) -> None:
        """Save the rollup, if it is time to and nobody else does."""
        rollup = self.rollup
        if rollup is None or self.until is not None:
            return
        since = rollup.mark.event - (0 if self._is_fresh or self._checkpoint is None else self._checkpoint.event)
        is_much = since >= SAVE_EVENTS or int(rollup.changed.sum()) >= SAVE_CELLS
        now = time.monotonic()
        if since < LEAST_EVENTS or (now - self._saved_at < SAVE_SECONDS and not is_much) or now < self._saved_at:
            return
        self._saved_at = now
        at = microseconds(store.now())
        checkpoint = checkpoint_of(rollup.mark, at)
        try:
            saved = store.change(self.number, lambda transaction: self._write(transaction, rollup, checkpoint))
        except StoreError as error:
            log.info("the sums by hour of experiment %r were not saved: %s", self.name, error)
            self._saved_at = now + _RETRY_SECONDS
            return
        if saved is None:  # somebody else has saved more, or less: go on from there next time
            self._is_stale = True
        elif saved:
            self._checkpoint, self._is_fresh = checkpoint, False
            rollup.saved()

    def _write(self, transaction: Transaction, rollup: Rollup, checkpoint: Checkpoint) -> bool | None:
        """Write what changed; return False if another process holds the lease, None if it saved since we read."""
        head = self._head(transaction, checkpoint.event)
        if transaction.checkpoint(self.number) != self._checkpoint or head.seen_hash != checkpoint.hash:
            return None
        holder, now = f"{_HOLDER}-{os.getpid()}", checkpoint.saved_at
        if not transaction.take_lease(self.number, LEASE, holder, now, now + int(SAVE_SECONDS * 1_000_000)):
            return False
        write_rollup(transaction, self.number, rollup, checkpoint, everything=self._is_fresh)
        return True


def write_rollup(
    transaction: Transaction, experiment: int, rollup: Rollup, checkpoint: Checkpoint, *, everything: bool
) -> None:
    """Write the cells that changed, or all of them and no others, and the checkpoint."""
    if everything:
        transaction.forget_rollups(experiment)
    rows = rollup.all_rows() if everything else rollup.rows(rollup.changed.nonzero()[0])
    if rows:
        transaction.put(schema.rollups, experiment, rows)
    transaction.put(schema.checkpoints, experiment, [tuple(checkpoint)])


def checkpoint_of(mark: Mark, at: int) -> Checkpoint:
    """Return the checkpoint of a mark that is saved at this time."""
    return Checkpoint(VERSION, mark.event, mark.hash, at, *mark[2:])


def _mark_of(checkpoint: Checkpoint) -> Mark:
    return Mark(checkpoint.event, checkpoint.hash, *checkpoint[4:])


def _hash(transaction: Transaction, experiment: int, number: int) -> bytes | None:
    rows = transaction.execute(_HASH, experiment, number)
    return rows[0][0] if rows else None


@contextmanager
def kept_rollup(store: Store, number: int, name: str, *, seconds: float | None = None) -> Iterator[KeptRollup]:
    """Yield the rollup of an experiment, up to the end of its log, and hold its lock meanwhile.

    With `seconds`, give up after that long; then `is_complete` may be False.
    """
    key = (os.getpid(), number)  # in a fork, the lock may be held by a thread of the parent
    kept: KeptRollup = store.rollups.get(key) or store.rollups.setdefault(key, KeptRollup(number, name))
    with kept.lock:
        if kept.name != name:
            kept.name, kept.rollup = name, None
        kept.catch_up(store, seconds)
        yield kept


def past_rollup(store: Store, number: int, name: str, event: int) -> KeptRollup:
    """Return the rollup of an experiment up to an event; the last few that were asked for are kept."""
    key = (os.getpid(), number, event)
    kept: KeptRollup = store.past_rollups.get(key) or KeptRollup(number, name, until=event)
    with kept.lock:
        kept.catch_up(store, None)
    for one in list(store.past_rollups)[: 1 - _MOST_PAST]:
        store.past_rollups.pop(one, None)
    store.past_rollups[key] = kept
    return kept
