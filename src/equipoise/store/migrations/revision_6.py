"""Revision 6: sessions, sums by hour and arm, alerts, leases, refusals, verifications; two indexes of the log."""

import sqlalchemy as sa
from alembic import op

revision = "6"
down_revision = "5"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables and indexes."""
    expired = sa.text("kind = 'expired'")
    op.create_index(
        "closed_windows", "events", ["experiment", "number"], sqlite_where=expired, postgresql_where=expired
    )
    word = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "sessions",
        sa.Column("hash", word, primary_key=True),
        sa.Column("key", word, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
    )
    changes = sa.text("unit IS NULL")
    op.create_index(
        "changes_of_an_experiment", "events", ["experiment", "number"], sqlite_where=changes, postgresql_where=changes
    )
    op.create_table(
        "rollups",
        sa.Column("experiment", sa.BigInteger, primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True),
        sa.Column("arm", sa.Integer, primary_key=True),
        sa.Column("assigned", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("inverses", "inverse_squares")),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("rewarded", "corrected", "expired", "withdrawn", "counted")
        ),
        *(sa.Column(name, sa.Double) for name in ("sums", "squares", "cubes", "fourths")),
        sa.Column("removed", sa.BigInteger, nullable=False),
        *(sa.Column(name, sa.Double) for name in ("removed_sums", "removed_squares")),
        sa.Column("lowest", sa.Double),
        sa.Column("lowest_event", sa.BigInteger),
        sa.Column("highest", sa.Double),
        sa.Column("highest_event", sa.BigInteger),
        *(
            sa.Column(f"cohort_{name}", sa.BigInteger, nullable=False)
            for name in ("1h", "6h", "1d", "3d", "7d", "window", "rewarded", "expired", "withdrawn", "silent")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "checkpoints",
        sa.Column("experiment", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("event", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.LargeBinary),
        sa.Column("saved_at", sa.BigInteger, nullable=False),
        sa.Column("centre", sa.Double),
        sa.Column("last_assigned_at", sa.BigInteger),
        sa.Column("last_rewarded_at", sa.BigInteger),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "alerts",
        sa.Column("experiment", sa.BigInteger, nullable=False),
        sa.Column("id", word, primary_key=True),
        sa.Column("check_name", word, nullable=False),
        sa.Column("arm", sa.Integer),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
        sa.Column("opened_at", sa.BigInteger),
        sa.Column("opened_event", sa.BigInteger),
        sa.Column("closed_at", sa.BigInteger),
        sa.Column("closed_event", sa.BigInteger),
        sa.Column("value", sa.Double),
        sa.Column("expected", sa.Double),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("advice", sa.Text, nullable=False),
        sa.Column("since", sa.BigInteger),
        sa.Column("event", sa.BigInteger),
        sa.Column("opening_sent_at", sa.BigInteger),
        sa.Column("closing_sent_at", sa.BigInteger),
    )
    still_open = sa.text("closed_at IS NULL")
    op.create_index(
        "one_open_alert_of_a_check_per_arm",
        "alerts",
        ["experiment", "check_name", sa.text("(COALESCE(arm, -1))")],
        unique=True,
        sqlite_where=still_open,
        postgresql_where=still_open,
    )
    op.create_table(
        "leases",
        sa.Column("experiment", sa.BigInteger, primary_key=True),
        sa.Column("name", word, primary_key=True),
        sa.Column("holder", word, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "refusals",
        sa.Column("experiment", sa.BigInteger, primary_key=True),
        sa.Column("hour", sa.BigInteger, primary_key=True),
        sa.Column("error", word, primary_key=True),
        sa.Column("count", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "verifications",
        sa.Column("experiment", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("n_events", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("error", sa.Text),
        sqlite_with_rowid=False,
    )
