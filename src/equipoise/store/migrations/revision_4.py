"""Revision 4: the reward weight that a policy solved for, with the decision that it led to."""

import sqlalchemy as sa
from alembic import op

revision = "4"
down_revision = "3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column; no decision before it was taken by a weight that had to be solved for."""
    op.add_column("events", sa.Column("reward_weight", sa.Double))
