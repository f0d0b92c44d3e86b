"""What an experiment reads and writes in one open transaction; rows are plain tuples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa

from equipoise.store import schema
from equipoise.store.schema import ARM_COLUMNS, EVENT_COLUMNS, PENDING_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from equipoise.store.database import Database

_experiments, _arms, _events, _pending = schema.experiments, schema.arms, schema.events, schema.pending
_keys = schema.keys


class Head(NamedTuple):
    """The part of an experiment's row that every transaction reads."""

    id: int
    state: str
    configured: int
    n_events: int
    n_decisions: int


class Summary(NamedTuple):
    """An experiment in a list of all."""

    name: str
    state: str
    created_at: int
    configuration: str
    n_arms: int
    assigned: int
    pulls: int


class Key(NamedTuple):
    """A key of the service, with the hash of its secret; instants are in microseconds."""

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


HEAD = f"SELECT {', '.join(Head._fields)} FROM experiments WHERE id = ?"  # noqa: S608
_ADVANCE = "UPDATE experiments SET state = ?, n_events = ?, n_decisions = ? WHERE id = ?"
_CONFIGURATION = sa.select(_experiments.c.name, _experiments.c.created_at, _experiments.c.configuration).where(
    _experiments.c.id == sa.bindparam("experiment")
)
_ARMS = f"SELECT {', '.join(ARM_COLUMNS)} FROM arms WHERE experiment = ? AND changed > ? ORDER BY position"  # noqa: S608
_DUE = (
    sa.select(*(_pending.c[name] for name in PENDING_COLUMNS))
    .where(_pending.c.experiment == sa.bindparam("experiment"), _pending.c.due_at <= sa.bindparam("now"))
    .order_by(_pending.c.due_at, _pending.c.decision)
    .limit(sa.bindparam("limit"))
)
_N_DUE = (
    sa.select(_pending.c.arm, sa.func.count())
    .where(
        _pending.c.experiment == sa.bindparam("experiment"),
        _pending.c.due_at <= sa.bindparam("now"),
        _pending.c.reward.is_(None),
    )
    .group_by(_pending.c.arm)
)
_LAST_HELD = sa.select(sa.func.max(_pending.c.due_at)).where(
    _pending.c.experiment == sa.bindparam("experiment"), _pending.c.reward.is_not(None)
)
_CONFIGURE = (
    sa.update(_experiments)
    .where(_experiments.c.id == sa.bindparam("experiment"))
    .values({name: sa.bindparam(f"new_{name}") for name in ("configuration", "configured")})
)
_FORGET = sa.delete(_pending).where(
    _pending.c.experiment == sa.bindparam("experiment"),
    _pending.c.due_at == sa.bindparam("due"),
    _pending.c.decision == sa.bindparam("of"),
)
_REVOKE = (
    sa.update(_keys)
    .where(_keys.c.id == sa.bindparam("of"), _keys.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("at"))
)
_TOUCH = (
    sa.update(_keys)
    .where(
        _keys.c.id == sa.bindparam("of"),
        sa.or_(_keys.c.last_used_at.is_(None), _keys.c.last_used_at < sa.bindparam("at")),
    )
    .values(last_used_at=sa.bindparam("at"))
)
UNIT_COLUMNS = "unit, kind, arm, decision, at, reward, probability, forced, counted"


class Transaction(ABC):
    """One open transaction.

    The few statements that every ask and tell runs are in the driver's own words, past SQLAlchemy, in a subclass for
    each kind of database.
    """

    def __init__(self, database: Database, connection: sa.Connection) -> None:
        self.database = database
        self.connection = connection
        self.driver: Any = connection.connection.driver_connection
        """The driver's connection: for one statement SQLAlchemy takes as long as SQLite itself."""
        self._locked: Head | None = None

    # In the driver's own words

    @abstractmethod
    def execute(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement and return its rows; `?` is a placeholder in it."""

    @abstractmethod
    def unit_events(self, experiment: int, units: list[str]) -> Sequence[Sequence[Any]]:
        """Return the `UNIT_COLUMNS` of units' events; those of one unit in the order of the log."""

    @abstractmethod
    def put(self, table: sa.Table, experiment: int, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, all columns but the experiment; they replace rows with the same key, except in the log."""

    @abstractmethod
    def stream(self, statement: str, *values: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of a query in chunks; `?` is a placeholder in the statement."""

    def buffer_writes(self) -> None:  # noqa: B027  (SQLite gains nothing by it)
        """Promise that only `put` and `advance` follow, so that they may be sent with the commit."""

    # Reading

    def find(self, name: str) -> int | None:
        """Return the number of the experiment with this name."""
        found = self.connection.execute(sa.select(_experiments.c.id).where(_experiments.c.name == name)).scalar()
        return None if found is None else int(found)

    def summaries(self) -> list[Summary]:
        """Return all experiments, oldest first."""
        statement = (
            sa.select(
                _experiments.c.name,
                _experiments.c.state,
                _experiments.c.created_at,
                _experiments.c.configuration,
                sa.func.count(),
                sa.cast(sa.func.sum(_arms.c.assigned), sa.BigInteger),
                sa.cast(sa.func.sum(_arms.c.pulls), sa.BigInteger),
            )
            .join_from(_experiments, _arms, _arms.c.experiment == _experiments.c.id)
            .group_by(_experiments.c.id)
            .order_by(_experiments.c.id)
        )
        return [Summary(*row) for row in self.connection.execute(statement)]

    def head(self, experiment: int) -> Head:
        """Return where an experiment stands."""
        if self._locked is not None and self._locked.id == experiment:
            return self._locked
        [row] = self.execute(HEAD, experiment)
        return Head(*row)

    def configuration(self, experiment: int) -> tuple[str, int, str]:
        """Return name, time of creation and configuration of an experiment."""
        name, created_at, configuration = self.connection.execute(_CONFIGURATION, {"experiment": experiment}).one()
        return name, created_at, configuration

    def arms(self, experiment: int, after: int = -1) -> Sequence[Sequence[Any]]:
        """Return the arms that an event later than `after` changed, in order."""
        return self.execute(_ARMS, experiment, after)

    def due(self, experiment: int, now: int, limit: int) -> Sequence[Sequence[Any]]:
        """Return the pending rows that are due, oldest first."""
        return self.connection.execute(_DUE, {"experiment": experiment, "now": now, "limit": limit}).fetchall()

    def n_due(self, experiment: int, now: int) -> dict[int, int]:
        """Return for each arm the number of units without a reward that are due and not settled."""
        rows = self.connection.execute(_N_DUE, {"experiment": experiment, "now": now})
        return {int(arm): int(count) for arm, count in rows}

    def last_held(self, experiment: int) -> int | None:
        """Return when the window of the last held-back reward closes, if there is one."""
        found = self.connection.execute(_LAST_HELD, {"experiment": experiment}).scalar()
        return None if found is None else int(found)

    def events(self, experiment: int, after: int, limit: int) -> Sequence[Sequence[Any]]:
        """Return a page of the log, all columns but the experiment."""
        statement = (
            sa.select(*(_events.c[name] for name in EVENT_COLUMNS))
            .where(_events.c.experiment == experiment, _events.c.number > after)
            .order_by(_events.c.number)
            .limit(limit)
        )
        return self.connection.execute(statement).fetchall()

    def keys(self) -> list[Key]:
        """Return all keys, oldest first."""
        statement = sa.select(*(_keys.c[name] for name in Key._fields)).order_by(_keys.c.created_at, _keys.c.id)
        return [Key(*row) for row in self.connection.execute(statement)]

    def key(self, key: str) -> Key | None:
        """Return a key by its id, if there is one."""
        statement = sa.select(*(_keys.c[name] for name in Key._fields)).where(_keys.c.id == key)
        row = self.connection.execute(statement).one_or_none()
        return None if row is None else Key(*row)

    def keys_mark(self) -> Sequence[Any]:
        """Return a fingerprint of the keys, cheaper than reading them, that a new or revoked key changes."""
        counts = (sa.func.count(), sa.func.count(_keys.c.revoked_at), sa.func.count(_keys.c.expires_at))
        last = (sa.func.max(_keys.c[name]) for name in ("created_at", "revoked_at", "expires_at"))
        return tuple(self.connection.execute(sa.select(*counts, *last).select_from(_keys)).one())

    # Writing

    def create(self, name: str, state: str, created_at: int, configuration: str) -> int:
        """Insert an experiment without arms or events and return its number."""
        values = {
            "name": name,
            "state": state,
            "created_at": created_at,
            "configuration": configuration,
            "configured": 0,
            "n_events": 0,
            "n_decisions": 0,
        }
        key = self.connection.execute(sa.insert(_experiments).values(values)).inserted_primary_key
        return int(key[0])  # type: ignore[index]

    def forget_pending(self, experiment: int, keys: Sequence[tuple[int, int]]) -> None:
        """Delete pending rows, by due time and decision."""
        self.connection.execute(_FORGET, [{"experiment": experiment, "due": due, "of": of} for due, of in keys])

    def forget_all_pending(self, experiment: int) -> None:
        """Delete all pending rows of an experiment."""
        self.connection.execute(sa.delete(_pending).where(_pending.c.experiment == experiment))

    def advance(self, experiment: int, state: str, n_events: int, n_decisions: int) -> None:
        """Write where the experiment stands now."""
        self._locked = None
        self.execute(_ADVANCE, state, n_events, n_decisions, experiment)

    def configure(self, experiment: int, configuration: str, event: int) -> None:
        """Write a new configuration, and the event that changed it."""
        values = {"new_configuration": configuration, "new_configured": event}
        self.connection.execute(_CONFIGURE, {"experiment": experiment, **values})

    def add_key(self, key: Sequence[Any]) -> None:
        """Write a new key."""
        self.connection.execute(sa.insert(_keys).values(Key(*key)._asdict()))

    def revoke_key(self, key: str, at: int) -> None:
        """Write when a key was revoked; the first time stands."""
        self.connection.execute(_REVOKE, {"of": key, "at": at})

    def touch_keys(self, uses: Sequence[tuple[str, int]]) -> None:
        """Write when keys were last used; an earlier use changes nothing."""
        if uses:
            self.connection.execute(_TOUCH, [{"of": key, "at": at} for key, at in uses])
