"""The tables: an append-only log of events, which is the source of truth, and tables derived from it.

The derived tables save replaying the log, and can be rebuilt from it. API keys, sessions, alerts, leases, refused
calls and verifications have tables of their own.
Instants are whole microseconds since 1970 in UTC, which both databases store and compare exactly.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

REVISION = "6"
"""The revision that this code reads and writes: the newest file in `migrations`."""

VERSION_TABLE = "equipoise_version"
"""Where Alembic keeps the revision; not its default name, which another application in the database may use."""

metadata = sa.MetaData()
"""The tables; `info` has the revision that created a table, if not the first."""

# Compare bytes: faster than a locale's collation, and a system update cannot change the order.
_word = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_key = sa.BigInteger().with_variant(sa.Integer, "sqlite")  # only INTEGER is assigned automatically in SQLite

experiments = sa.Table(
    "experiments",
    metadata,
    sa.Column("id", _key, primary_key=True),
    sa.Column("name", _word, nullable=False, unique=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("configuration", sa.Text, nullable=False),
    sa.Column("configured", sa.BigInteger, nullable=False),  # last event that changed the configuration
    sa.Column("n_events", sa.BigInteger, nullable=False),
    sa.Column("n_decisions", sa.BigInteger, nullable=False),
    sa.Column("hash", sa.LargeBinary),  # of the last event
    sa.Column("chained_from", sa.BigInteger, nullable=False, server_default=sa.text("0")),  # events before the chain
)

arms = sa.Table(
    "arms",
    metadata,
    sa.Column("experiment", sa.BigInteger, sa.ForeignKey("experiments.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("name", _word, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("floor", sa.Double, nullable=False),
    sa.Column("assigned", sa.BigInteger, nullable=False),
    sa.Column("pulls", sa.BigInteger, nullable=False),
    # Sums of rewards and their squares, each a pair of doubles high + low: what decisions read.
    sa.Column("reward_high", sa.Double, nullable=False),
    sa.Column("reward_low", sa.Double, nullable=False),
    sa.Column("square_high", sa.Double, nullable=False),
    sa.Column("square_low", sa.Double, nullable=False),
    sa.Column("held", sa.BigInteger, nullable=False),
    sa.Column("overdue", sa.BigInteger, nullable=False),
    sa.Column("defaulted", sa.BigInteger, nullable=False),
    sa.Column("dropped", sa.BigInteger, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),  # last event that changed this row
    # `assigned` when the set of arms in play last changed; the policy tracks its target from there.
    sa.Column("tracked_from", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    # The sums of rewards, squares, cubes and fourth powers without any rounding, as text.
    sa.Column("exact_sums", sa.Text),
    sa.Column("withdrawn", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    # Sums of weighted rewards and of times, each a pair of doubles, as text; none unless the policy reads them.
    sa.Column("drift_sums", sa.Text),
    sa.UniqueConstraint("experiment", "name", name="arms_have_names_of_their_own"),
    sqlite_with_rowid=False,
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True),
    sa.Column("number", sa.BigInteger, primary_key=True),
    sa.Column("kind", _word, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("who", sa.Text),
    sa.Column("unit", _word),
    sa.Column("arm", sa.Integer),
    sa.Column("decision", sa.BigInteger),  # number of the unit's assignment, on all its events
    sa.Column("reward", sa.Double),
    sa.Column("probability", sa.Double),
    sa.Column("forced", sa.SmallInteger),
    sa.Column("counted", sa.SmallInteger),  # whether this event added the reward to the estimates
    sa.Column("replaced", sa.Double),  # the reward that this event removed from the estimates
    sa.Column("details", sa.Text),
    # The hash chain: see `equipoise.experiment.hash_chain`. None in events older than the chain.
    sa.Column("salt", sa.LargeBinary),
    sa.Column("commitment", sa.LargeBinary),  # only if unit and details were erased
    sa.Column("hash", sa.LargeBinary),
    sa.Column("reward_weight", sa.Double),  # that a policy solved for to decide; none where the weight is stated
    sqlite_with_rowid=False,
)

_changes = sa.text("unit IS NULL")
sa.Index(
    # Events that change the experiment instead of a unit are few; this finds them without reading the others.
    "changes_of_an_experiment",
    events.c.experiment,
    events.c.number,
    sqlite_where=_changes,
    postgresql_where=_changes,
)

sa.Index(
    # A unit is assigned once, rewarded once, expires once; only corrections may repeat.
    "one_event_of_a_kind_per_unit",
    events.c.experiment,
    events.c.unit,
    events.c.kind,
    sa.text("(CASE WHEN kind = 'corrected' THEN number ELSE 0 END)"),
    unique=True,
    sqlite_where=sa.text("unit IS NOT NULL"),
    postgresql_where=sa.text("unit IS NOT NULL"),
)

sa.Index(
    # Windows that closed without a reward, from which lists of units are read.
    "closed_windows",
    events.c.experiment,
    events.c.number,
    sqlite_where=sa.text("kind = 'expired'"),
    postgresql_where=sa.text("kind = 'expired'"),
)

pending = sa.Table(
    "pending",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True),
    sa.Column("due_at", sa.BigInteger, primary_key=True),
    sa.Column("decision", sa.BigInteger, primary_key=True),
    sa.Column("unit", _word, nullable=False),
    sa.Column("arm", sa.Integer, nullable=False),
    sa.Column("reward", sa.Double),  # reported early: held until due
    sqlite_with_rowid=False,
)

keys = sa.Table(
    "keys",
    metadata,
    sa.Column("id", _word, primary_key=True),
    sa.Column("hash", sa.Text, nullable=False),  # SHA-256 of the secret, in hexadecimal; the secret is not stored
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),  # the author in the log
    sa.Column("experiment", _word),  # the only experiment the key is valid for
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by", sa.Text),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("revoked_at", sa.BigInteger),
    sa.Column("last_used_at", sa.BigInteger),
    sa.Column("limits", sa.Text),  # what the key may use per hour, as JSON; none by default
    info={"since": 2},
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("hash", _word, primary_key=True),  # SHA-256 of the secret in the browser's cookie, in hexadecimal
    sa.Column("key", _word, nullable=False),  # the key it was opened with, and ends with
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    info={"since": 6},
)

rollups = sa.Table(
    # Sums over the events of an hour about an arm, up to the checkpoint: `equipoise.experiment.rollup`.
    "rollups",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),  # since 1970
    sa.Column("arm", sa.Integer, primary_key=True),
    # By the hour of the event
    sa.Column("assigned", sa.BigInteger, nullable=False),
    sa.Column("inverses", sa.Double),  # sum of 1 / probability
    sa.Column("inverse_squares", sa.Double),
    sa.Column("rewarded", sa.BigInteger, nullable=False),  # rewards reported, whether they count or not
    sa.Column("corrected", sa.BigInteger, nullable=False),
    sa.Column("expired", sa.BigInteger, nullable=False),
    sa.Column("withdrawn", sa.BigInteger, nullable=False),
    sa.Column("counted", sa.BigInteger, nullable=False),  # rewards and defaults that entered the estimates
    sa.Column("sums", sa.Double),  # of their distances from the checkpoint's centre, as of the powers; none is NaN
    sa.Column("squares", sa.Double),
    sa.Column("cubes", sa.Double),
    sa.Column("fourths", sa.Double),
    sa.Column("removed", sa.BigInteger, nullable=False),  # those that left them
    sa.Column("removed_sums", sa.Double),
    sa.Column("removed_squares", sa.Double),
    sa.Column("lowest", sa.Double),  # of those that entered
    sa.Column("lowest_event", sa.BigInteger),
    sa.Column("highest", sa.Double),
    sa.Column("highest_event", sa.BigInteger),
    # By the hour in which the unit was assigned
    sa.Column("cohort_1h", sa.BigInteger, nullable=False),  # rewards reported within 1 hour of the assignment
    sa.Column("cohort_6h", sa.BigInteger, nullable=False),
    sa.Column("cohort_1d", sa.BigInteger, nullable=False),
    sa.Column("cohort_3d", sa.BigInteger, nullable=False),
    sa.Column("cohort_7d", sa.BigInteger, nullable=False),
    sa.Column("cohort_window", sa.BigInteger, nullable=False),  # before the window passed; all, without a window
    sa.Column("cohort_rewarded", sa.BigInteger, nullable=False),  # at any time
    sa.Column("cohort_expired", sa.BigInteger, nullable=False),
    sa.Column("cohort_withdrawn", sa.BigInteger, nullable=False),
    sa.Column("cohort_silent", sa.BigInteger, nullable=False),  # withdrawn without a reward
    info={"since": 6},
    sqlite_with_rowid=False,
)

checkpoints = sa.Table(
    # How far the rollups of an experiment reach.
    "checkpoints",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, nullable=False),  # of the sums; another version computes them again
    sa.Column("event", sa.BigInteger, nullable=False),  # the last one in the sums
    sa.Column("hash", sa.LargeBinary),  # of that event
    sa.Column("saved_at", sa.BigInteger, nullable=False),
    sa.Column("centre", sa.Double),  # the first reward that counted
    sa.Column("last_assigned_at", sa.BigInteger),
    sa.Column("last_rewarded_at", sa.BigInteger),
    info={"since": 6},
    sqlite_with_rowid=False,
)

alerts = sa.Table(
    "alerts",
    metadata,
    sa.Column("experiment", sa.BigInteger, nullable=False),
    sa.Column("id", _word, primary_key=True),  # random
    sa.Column("check_name", _word, nullable=False),
    sa.Column("arm", sa.Integer),  # its position
    sa.Column("severity", sa.Text, nullable=False),
    sa.Column("seen_at", sa.BigInteger, nullable=False),
    sa.Column("opened_at", sa.BigInteger),  # none while the finding has to last first
    sa.Column("opened_event", sa.BigInteger),
    sa.Column("closed_at", sa.BigInteger),
    sa.Column("closed_event", sa.BigInteger),
    sa.Column("value", sa.Double),
    sa.Column("expected", sa.Double),
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("advice", sa.Text, nullable=False),
    sa.Column("since", sa.BigInteger),  # when what was found began, if that is known
    sa.Column("event", sa.BigInteger),  # that it is about
    # When the webhook's receiver accepted the messages.
    sa.Column("opening_sent_at", sa.BigInteger),
    sa.Column("closing_sent_at", sa.BigInteger),
    info={"since": 6},
)

sa.Index(
    "one_open_alert_of_a_check_per_arm",
    alerts.c.experiment,
    alerts.c.check_name,
    sa.text("(COALESCE(arm, -1))"),
    unique=True,
    sqlite_where=sa.text("closed_at IS NULL"),
    postgresql_where=sa.text("closed_at IS NULL"),
)

leases = sa.Table(
    # What one process does for all, until the lease expires.
    "leases",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True),  # 0 if it is about the store
    sa.Column("name", _word, primary_key=True),
    sa.Column("holder", _word, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    info={"since": 6},
    sqlite_with_rowid=False,
)

refusals = sa.Table(
    # Calls about units that the service refused, by hour and class of the error; all calls have an empty class.
    "refusals",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True),
    sa.Column("hour", sa.BigInteger, primary_key=True),  # since 1970
    sa.Column("error", _word, primary_key=True),
    sa.Column("count", sa.BigInteger, nullable=False),
    info={"since": 6},
    sqlite_with_rowid=False,
)

verifications = sa.Table(
    # What the last verification of an experiment found.
    "verifications",
    metadata,
    sa.Column("experiment", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("n_events", sa.BigInteger, nullable=False),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Column("error", sa.Text),  # none if it passed
    info={"since": 6},
    sqlite_with_rowid=False,
)

EVENT_COLUMNS = tuple(column.name for column in events.columns)[1:]
ARM_COLUMNS = tuple(column.name for column in arms.columns)[1:]
PENDING_COLUMNS = tuple(column.name for column in pending.columns)[1:]
ROLLUP_COLUMNS = tuple(column.name for column in rollups.columns)[1:]
ALERT_COLUMNS = tuple(column.name for column in alerts.columns)[1:]
"""The columns of rows that the store accepts and returns, in order, without the experiment."""
BESIDE_THE_LOG = (rollups, checkpoints, alerts, leases, refusals, verifications)
"""Tables of an experiment that assigning and rewarding units neither reads nor writes."""


def on_conflict(table: sa.Table) -> str:
    """Return the upsert clause of an INSERT, for both databases; empty for the log, which is append-only."""
    if table is events:
        return ""
    changes = ", ".join(f"{one.name} = excluded.{one.name}" for one in table.columns if not one.primary_key)
    return f" ON CONFLICT ({', '.join(table.primary_key.columns.keys())}) DO UPDATE SET {changes}"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    """Convert an instant to microseconds since 1970.

    Examples
    --------
    >>> microseconds(datetime(1970, 1, 2, tzinfo=UTC))
    86400000000
    """
    return (instant - _EPOCH) // _MICROSECOND


def instant(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to an instant in UTC.

    Examples
    --------
    >>> instant(86_400_000_000).isoformat()
    '1970-01-02T00:00:00+00:00'
    """
    return _EPOCH + timedelta(microseconds=microseconds)
