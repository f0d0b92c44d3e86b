"""The queries and writes of one open transaction; rows are plain tuples."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from equipoise.errors import StoreChanged
from equipoise.store import schema
from equipoise.store.schema import ARM_COLUMNS, EVENT_COLUMNS, PENDING_COLUMNS

if TYPE_CHECKING:
    from equipoise.store.database import Database

_experiments, _keys, _sessions = schema.experiments, schema.keys, schema.sessions

_LOWEST_NUMBER, _HIGHEST_NUMBER = 2**40, 2**62
"""Range of the numbers of experiments; those of stores before revision 3 were 1, 2, 3, ..."""


class Head(NamedTuple):
    """The part of an experiment's row that every transaction reads."""

    id: int
    name: str
    state: str
    configured: int
    n_events: int
    n_decisions: int
    hash: bytes | None
    seen_hash: bytes | None
    """Hash of the event numbered `seen`, which tells whether a state cached after that event is still a valid one."""
    seen: int


class Summary(NamedTuple):
    """One experiment in the list of all."""

    name: str
    state: str
    created_at: int
    configuration: str
    n_arms: int
    assigned: int
    pulls: int


class Key(NamedTuple):
    """An API key, with the hash of its secret; instants are in microseconds."""

    id: str
    hash: str
    role: str
    name: str
    experiment: str | None
    created_at: int
    created_by: str | None = None
    expires_at: int | None = None
    revoked_at: int | None = None
    last_used_at: int | None = None
    limits: str | None = None


class Session(NamedTuple):
    """A session of the console, with the hash of its secret; instants are in microseconds."""

    hash: str
    key: str
    created_at: int
    expires_at: int


class Checkpoint(NamedTuple):
    """How far the rollups of an experiment reach; instants are in microseconds."""

    version: int
    event: int
    hash: bytes | None
    saved_at: int
    centre: float | None
    last_assigned_at: int | None
    last_rewarded_at: int | None


HEAD = """
SELECT id, name, state, configured, n_events, n_decisions, hash,
    (SELECT hash FROM events WHERE experiment = ? AND number = ?)
FROM experiments WHERE id = ?
"""
_ADVANCE = "UPDATE experiments SET state = ?, n_events = ?, n_decisions = ?, hash = ? WHERE id = ?"
_ARMS = f"SELECT {', '.join(ARM_COLUMNS)} FROM arms WHERE experiment = ? AND changed > ? ORDER BY position"  # noqa: S608
_DUE = (
    f"SELECT {', '.join(PENDING_COLUMNS)} FROM pending WHERE experiment = ? AND due_at <= ? "  # noqa: S608
    "ORDER BY due_at, decision LIMIT ?"
)
_N_DUE = "SELECT arm, count(*) FROM pending WHERE experiment = ? AND due_at <= ? AND reward IS NULL GROUP BY arm"
_CHANGES = """
SELECT number, kind, at, arm, details FROM events {by_change}
WHERE experiment = ? AND unit IS NULL AND number > ? AND number <= ? ORDER BY number
"""
_CHECKPOINT = f"SELECT {', '.join(Checkpoint._fields)} FROM checkpoints WHERE experiment = ?"  # noqa: S608
_ROLLUP_MARKS = """
SELECT e.name, e.n_events, coalesce(c.event, 0) FROM experiments AS e LEFT JOIN checkpoints AS c ON c.experiment = e.id
WHERE e.state <> 'finished' ORDER BY e.id
"""
_LEASE = "SELECT holder, expires_at FROM leases WHERE experiment = ? AND name = ?"
_EVENTS = f"SELECT {', '.join(EVENT_COLUMNS)} FROM events WHERE experiment = ? AND number > ? ORDER BY number LIMIT ?"  # noqa: S608
_FORGET = sa.text("DELETE FROM pending WHERE experiment = :experiment AND due_at = :due AND decision = :of")
_CONFIGURE = "UPDATE experiments SET configuration = ?, configured = ? WHERE id = ?"
_SUMMARIES = """
SELECT e.name, e.state, e.created_at, e.configuration, count(*), CAST(sum(a.assigned) AS BIGINT),
    CAST(sum(a.pulls) AS BIGINT)
FROM experiments AS e JOIN arms AS a ON a.experiment = e.id GROUP BY e.id ORDER BY e.created_at, e.id
"""
_UNFINISHED = (
    "SELECT id, name, created_at, configuration, n_events FROM experiments WHERE state <> 'finished' ORDER BY id"
)
_UNFINISHED_ARMS = f"""
SELECT a.experiment, {", ".join(f"a.{name}" for name in ARM_COLUMNS)},
    (SELECT count(*) FROM pending AS p
     WHERE p.experiment = e.id AND p.due_at <= ? AND p.reward IS NULL AND p.arm = a.position)
FROM experiments AS e JOIN arms AS a ON a.experiment = e.id WHERE e.state <> 'finished' ORDER BY e.id, a.position
"""  # noqa: S608
_KEYS = f"SELECT {', '.join(Key._fields)} FROM keys ORDER BY created_at, id"  # noqa: S608
_KEYS_MARK = """
SELECT count(*), count(revoked_at), count(expires_at), max(created_at), max(revoked_at), max(expires_at) FROM keys
"""
_REVOKE = sa.text("UPDATE keys SET revoked_at = :at WHERE id = :of AND revoked_at IS NULL")
_TOUCH = sa.text("UPDATE keys SET last_used_at = :at WHERE id = :of AND (last_used_at IS NULL OR last_used_at < :at)")
_TOUCH_VERSION = f"UPDATE {schema.VERSION_TABLE} SET version_num = version_num"  # noqa: S608
UNIT_COLUMNS = "unit, kind, arm, decision, at, reward, probability, forced, counted"


class Transaction(ABC):
    """One open transaction.

    `execute` and the other abstract methods bypass SQLAlchemy, in a subclass for each kind of database: for one
    statement, SQLAlchemy takes as long as SQLite itself. Untrusted text goes through SQLAlchemy unless it was checked.
    """

    def __init__(self, database: Database, connection: sa.Connection) -> None:
        self.database = database
        self.connection = connection
        self.driver: Any = connection.connection.driver_connection
        """The driver's own connection."""
        self._locked: Head | None = None

    # Bypassing SQLAlchemy

    @abstractmethod
    def execute(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement, with `?` as placeholder, and return its rows."""

    @abstractmethod
    def unit_events(self, experiment: int, units: list[str]) -> Sequence[Sequence[Any]]:
        """Return the `UNIT_COLUMNS` of the events of units; events of one unit are in the order of the log."""

    @abstractmethod
    def put(self, table: sa.Table, experiment: int, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, without the experiment column; they replace rows with the same key, except in the log."""

    @abstractmethod
    def stream(self, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query, with `?` as placeholder, and yield its rows in chunks."""

    def buffer_writes(self) -> None:  # noqa: B027  (no gain on SQLite)
        """Promise that only `put` and `advance` follow, so that they can be sent with the commit."""

    # Reading

    def find(self, name: str) -> int | None:
        """Return the number of the experiment with this name, if there is one."""
        found = self.connection.execute(sa.select(_experiments.c.id).where(_experiments.c.name == name)).scalar()
        return None if found is None else int(found)

    def summaries(self) -> list[Summary]:
        """Return all experiments, oldest first."""
        return [Summary(*row) for row in self.execute(_SUMMARIES)]

    def n_events(self) -> int:
        """Return the number of events of all experiments."""
        return int(self.execute("SELECT coalesce(sum(n_events), 0) FROM experiments")[0][0])

    def unfinished(self, now: int) -> tuple[Sequence[Sequence[Any]], Sequence[Sequence[Any]]]:
        """Return all unfinished experiments, and their arms with the number of units that are due but not settled."""
        return self.execute(_UNFINISHED), self.execute(_UNFINISHED_ARMS, now)

    def head(self, experiment: int, seen: int = 0) -> Head:
        """Return the state and counters of an experiment, and the hash of its event numbered `seen`."""
        if self._locked is not None and (self._locked.id, self._locked.seen) == (experiment, seen):
            return self._locked
        return self.read_head(self.execute(HEAD, experiment, seen, experiment), seen)

    def read_head(self, rows: Sequence[Sequence[Any]], seen: int) -> Head:
        """Return the head from the rows of its query, or raise `StoreChanged` if there are none."""
        if not rows:
            raise self._gone()
        return Head._make((*rows[0], seen))

    def require_name(self, experiment: int, name: str) -> None:
        """Raise `StoreChanged` if the experiment with this number has another name, as it may in another store."""
        if self.head(experiment).name != name:
            raise self._gone()

    def _gone(self) -> StoreChanged:
        return StoreChanged(
            f"an experiment that was opened is no longer in {self.database.shown_url}: it was deleted, or the "
            "store was replaced, restored from a backup, or failed over to a server without it",
            hint="see which experiments are there, and open it again by its name",
        )

    def configuration(self, experiment: int) -> tuple[str, int, str]:
        """Return the name, creation time and configuration of an experiment."""
        statement = "SELECT name, created_at, configuration FROM experiments WHERE id = ?"
        [(name, created_at, configuration)] = self.execute(statement, experiment)
        return name, created_at, configuration

    def arms(self, experiment: int, after: int = -1) -> Sequence[Sequence[Any]]:
        """Return the arms that an event later than `after` changed, in order."""
        return self.execute(_ARMS, experiment, after)

    def due(self, experiment: int, now: int, limit: int) -> Sequence[Sequence[Any]]:
        """Return the pending rows that are due, oldest first."""
        return self.execute(_DUE, experiment, now, limit)

    def n_due(self, experiment: int, now: int) -> dict[int, int]:
        """Return, for each arm, the number of units without a reward that are due but not settled."""
        return dict(self.execute(_N_DUE, experiment, now))  # type: ignore[arg-type]

    def last_window(self, experiment: int) -> int | None:
        """Return when the last open window closes, if there is one."""
        statement = "SELECT max(due_at) FROM pending WHERE experiment = ?"
        found: int | None = self.execute(statement, experiment)[0][0]
        return found

    def events(self, experiment: int, after: int, limit: int) -> Sequence[Sequence[Any]]:
        """Return a page of the log, without the experiment column."""
        return self.execute(_EVENTS, experiment, after, limit)

    def selected_events(
        self,
        experiment: int,
        after: int,
        before: int | None,
        limit: int,
        *,
        kinds: Sequence[str] = (),
        changes_only: bool = False,
        newest_first: bool = False,
    ) -> Sequence[Sequence[Any]]:
        """Return events between two numbers, of some kinds or not about units, oldest or newest first."""
        values: list[Any] = [experiment, after]
        where = "experiment = ? AND number > ?"
        if before is not None:
            where += " AND number < ?"
            values.append(before)
        index = ""
        if changes_only:
            where += " AND unit IS NULL"
            index = self.database.by_change
        if kinds:
            where += f" AND kind IN ({', '.join('?' * len(kinds))})"
        order = "number DESC" if newest_first else "number"
        columns = ", ".join(EVENT_COLUMNS)
        statement = f"SELECT {columns} FROM events {index} WHERE {where} ORDER BY {order} LIMIT ?"  # noqa: S608
        return self.execute(statement, *values, *kinds, limit)

    def changes(self, experiment: int, after: int, last: int) -> Sequence[Sequence[Any]]:
        """Return number, kind, time, arm and details of the events without a unit, after one up to another."""
        return self.execute(_CHANGES.format(by_change=self.database.by_change), experiment, after, last)

    def checkpoint(self, experiment: int) -> Checkpoint | None:
        """Return how far the rollups of an experiment reach, if it has any."""
        rows = self.execute(_CHECKPOINT, experiment)
        return Checkpoint(*rows[0]) if rows else None

    def rollup_marks(self) -> Sequence[Sequence[Any]]:
        """Return name, number of events and the event that the rollups reach of each unfinished experiment."""
        return self.execute(_ROLLUP_MARKS)

    def keys(self) -> list[Key]:
        """Return all keys, oldest first."""
        return [Key(*row) for row in self.execute(_KEYS)]

    def key(self, key: str) -> Key | None:
        """Return a key by its id, if there is one."""
        statement = sa.select(*(_keys.c[name] for name in Key._fields)).where(_keys.c.id == key)
        row = self.connection.execute(statement).one_or_none()
        return None if row is None else Key(*row)

    def keys_mark(self) -> Sequence[Any]:
        """Return a fingerprint of the keys, cheaper than reading them, that changes when one is added or revoked."""
        return self.execute(_KEYS_MARK)[0]

    def session(self, hashed: str) -> Session | None:
        """Return the session with this hash, if there is one."""
        statement = sa.select(*(_sessions.c[name] for name in Session._fields)).where(_sessions.c.hash == hashed)
        row = self.connection.execute(statement).one_or_none()
        return None if row is None else Session(*row)

    # Writing

    def create(self, name: str, state: str, created_at: int, configuration: str) -> int:
        """Insert an experiment without arms or events and return its number."""
        # Random, so that after a restore no other experiment can have the number that a running process knows.
        number = secrets.randbelow(_HIGHEST_NUMBER - _LOWEST_NUMBER) + _LOWEST_NUMBER
        values = {"id": number, "name": name, "state": state, "created_at": created_at, "configuration": configuration}
        counts = {"configured": 0, "n_events": 0, "n_decisions": 0}
        self.connection.execute(sa.insert(_experiments).values(values | counts))
        return number

    def has_rewards(self, experiment: int) -> bool:
        """Return whether any unit of an experiment was ever rewarded."""
        statement = "SELECT 1 FROM events WHERE experiment = ? AND kind = 'rewarded' LIMIT 1"
        return bool(self.execute(statement, experiment))

    def delete(self, experiment: int) -> None:
        """Delete an experiment from all tables."""
        self._locked = None
        for table in (schema.pending, schema.events, schema.arms, *schema.BESIDE_THE_LOG):
            self.execute(f"DELETE FROM {table.name} WHERE experiment = ?", experiment)  # noqa: S608
        self.execute("DELETE FROM experiments WHERE id = ?", experiment)

    def take_lease(self, experiment: int, name: str, holder: str, now: int, expires_at: int) -> bool:
        """Take a lease that is free, expired or the holder's own; return False if another holder has it."""
        found = self.execute(_LEASE, experiment, name)
        if found and found[0][0] != holder and found[0][1] > now:
            return False
        self.put(schema.leases, experiment, [(name, holder, expires_at)])
        return True

    def forget_rollups(self, experiment: int) -> None:
        """Delete the rollups of an experiment, with their checkpoint."""
        for table in (schema.rollups, schema.checkpoints):
            self.execute(f"DELETE FROM {table.name} WHERE experiment = ?", experiment)  # noqa: S608

    def forget_pending(self, experiment: int, keys: Sequence[tuple[int, int]]) -> None:
        """Delete pending rows, by due time and decision."""
        self.connection.execute(_FORGET, [{"experiment": experiment, "due": due, "of": of} for due, of in keys])

    def forget_all_pending(self, experiment: int) -> None:
        """Delete all pending rows of an experiment."""
        self.execute("DELETE FROM pending WHERE experiment = ?", experiment)

    def advance(self, experiment: int, state: str, n_events: int, n_decisions: int, hash: bytes | None) -> None:  # noqa: A002
        """Update the state and counters of an experiment, and the hash of its last event."""
        self._locked = None
        self.execute(_ADVANCE, state, n_events, n_decisions, hash, experiment)

    def last_hash(self, experiment: int) -> bytes | None:
        """Return the hash of the last event in the log."""
        statement = "SELECT hash FROM events WHERE experiment = ? ORDER BY number DESC LIMIT 1"
        rows = self.execute(statement, experiment)
        found: bytes | None = rows[0][0] if rows else None
        return found

    def chained_from(self, experiment: int) -> int:
        """Return the number of the last event before the hash chain began; 0 if the chain covers the whole log."""
        return int(self.execute("SELECT chained_from FROM experiments WHERE id = ?", experiment)[0][0])

    def chain_from(self, experiment: int, number: int) -> None:
        """Record that the hash chain begins after an event."""
        self.execute("UPDATE experiments SET chained_from = ? WHERE id = ?", number, experiment)

    def configure(self, experiment: int, configuration: str, event: int) -> None:
        """Update the configuration, with the event that changed it."""
        self.execute(_CONFIGURE, configuration, event, experiment)

    def touch_version(self) -> None:
        """Write the schema's revision again, which changes nothing: a write that shows whether writes are possible."""
        self.execute(_TOUCH_VERSION)

    def add_key(self, key: Sequence[Any]) -> None:
        """Insert a key."""
        self.connection.execute(sa.insert(_keys).values(Key(*key)._asdict()))

    def revoke_key(self, key: str, at: int) -> None:
        """Record when a key was revoked; idempotent, the first time remains."""
        self.connection.execute(_REVOKE, {"of": key, "at": at})

    def touch_keys(self, uses: Sequence[tuple[str, int]]) -> None:
        """Record when keys were last used; an earlier use changes nothing."""
        if uses:
            self.connection.execute(_TOUCH, [{"of": key, "at": at} for key, at in uses])

    def add_session(self, session: Session, now: int) -> None:
        """Insert a session, and delete those that have expired."""
        self.connection.execute(sa.delete(_sessions).where(_sessions.c.expires_at <= now))
        self.connection.execute(sa.insert(_sessions).values(session._asdict()))

    def end_session(self, hashed: str) -> None:
        """Delete a session; idempotent."""
        self.connection.execute(sa.delete(_sessions).where(_sessions.c.hash == hashed))
