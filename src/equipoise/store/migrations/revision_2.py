"""Revision 2: API keys, and the count from which each arm is tracked."""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table and a column; 0 is right for existing arms, which the first rule tracked from the beginning."""
    word = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("arms", sa.Column("tracked_from", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.create_table(
        "keys",
        sa.Column("id", word, primary_key=True),
        sa.Column("hash", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("experiment", word),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("created_by", sa.Text),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
    )
