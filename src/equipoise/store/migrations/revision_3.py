"""Revision 3: a hash chain over the events, exact sums of rewards, withdrawn units, and limits of keys."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns; existing experiments keep their arithmetic, and their chains begin with the next event."""
    op.add_column("experiments", sa.Column("hash", sa.LargeBinary))
    op.add_column("experiments", sa.Column("chained_from", sa.BigInteger, nullable=False, server_default=sa.text("0")))
    op.execute("UPDATE experiments SET chained_from = n_events")
    for name in ("salt", "commitment", "hash"):
        op.add_column("events", sa.Column(name, sa.LargeBinary))
    op.add_column("keys", sa.Column("limits", sa.Text))
    op.add_column("arms", sa.Column("exact_sums", sa.Text))
    op.add_column("arms", sa.Column("withdrawn", sa.BigInteger, nullable=False, server_default=sa.text("0")))
