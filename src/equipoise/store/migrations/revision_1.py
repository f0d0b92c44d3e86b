"""Revision 1: experiments, their arms, the append-only log, and pending units."""

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    word = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    # Rows of these two are updated with every event: free space on their pages lets PostgreSQL do that in place.
    op.create_table(
        "experiments",
        sa.Column("id", key, primary_key=True),
        sa.Column("name", word, nullable=False, unique=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("configuration", sa.Text, nullable=False),
        sa.Column("configured", sa.BigInteger, nullable=False),
        sa.Column("n_events", sa.BigInteger, nullable=False),
        sa.Column("n_decisions", sa.BigInteger, nullable=False),
        postgresql_with={"fillfactor": 20},
    )
    op.create_table(
        "arms",
        sa.Column("experiment", sa.BigInteger, sa.ForeignKey("experiments.id"), primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True),
        sa.Column("name", word, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("floor", sa.Double, nullable=False),
        sa.Column("assigned", sa.BigInteger, nullable=False),
        sa.Column("pulls", sa.BigInteger, nullable=False),
        sa.Column("reward_high", sa.Double, nullable=False),
        sa.Column("reward_low", sa.Double, nullable=False),
        sa.Column("square_high", sa.Double, nullable=False),
        sa.Column("square_low", sa.Double, nullable=False),
        sa.Column("held", sa.BigInteger, nullable=False),
        sa.Column("overdue", sa.BigInteger, nullable=False),
        sa.Column("defaulted", sa.BigInteger, nullable=False),
        sa.Column("dropped", sa.BigInteger, nullable=False),
        sa.Column("changed", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("experiment", "name", name="arms_have_names_of_their_own"),
        sqlite_with_rowid=False,
        postgresql_with={"fillfactor": 20},
    )
    op.create_table(
        "events",
        sa.Column("experiment", sa.BigInteger, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("kind", word, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text),
        sa.Column("unit", word),
        sa.Column("arm", sa.Integer),
        sa.Column("decision", sa.BigInteger),
        sa.Column("reward", sa.Double),
        sa.Column("probability", sa.Double),
        sa.Column("forced", sa.SmallInteger),
        sa.Column("counted", sa.SmallInteger),
        sa.Column("replaced", sa.Double),
        sa.Column("details", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "one_event_of_a_kind_per_unit",
        "events",
        ["experiment", "unit", "kind", sa.text("(CASE WHEN kind = 'corrected' THEN number ELSE 0 END)")],
        unique=True,
        sqlite_where=sa.text("unit IS NOT NULL"),
        postgresql_where=sa.text("unit IS NOT NULL"),
    )
    op.create_table(
        "pending",
        sa.Column("experiment", sa.BigInteger, primary_key=True),
        sa.Column("due_at", sa.BigInteger, primary_key=True),
        sa.Column("decision", sa.BigInteger, primary_key=True),
        sa.Column("unit", word, nullable=False),
        sa.Column("arm", sa.Integer, nullable=False),
        sa.Column("reward", sa.Double),
        sqlite_with_rowid=False,
    )
