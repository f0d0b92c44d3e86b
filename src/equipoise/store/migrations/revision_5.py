"""Revision 5: exact sums of cubes and fourth powers of rewards, for all experiments, computed from the log.

And sums of weighted rewards, which only policies made for drift have.
"""

from collections.abc import Iterator

import numpy as np
import sqlalchemy as sa
from alembic import op

from equipoise.errors import StoreMismatch
from equipoise.store.database import RESTORE

revision = "5"
down_revision = "4"
branch_labels = None
depends_on = None

_POSITIONS = sa.text("SELECT position FROM arms WHERE experiment = :experiment ORDER BY position")
_REWARDS = sa.text("""
SELECT arm, CASE WHEN counted = 1 THEN reward END, replaced FROM events
WHERE experiment = :experiment AND (counted = 1 OR replaced IS NOT NULL) AND arm >= 0 AND arm < :n_arms
""")
_PUT = sa.text("UPDATE arms SET exact_sums = :text WHERE experiment = :experiment AND position = :position")


def upgrade() -> None:
    """Write four sums for every arm where there were two, or none in the oldest experiments."""
    op.add_column("arms", sa.Column("drift_sums", sa.Text))
    connection = op.get_bind()
    for experiment in connection.scalars(sa.text("SELECT id FROM experiments ORDER BY id")).all():
        positions = connection.scalars(_POSITIONS, {"experiment": experiment}).all()
        texts = _texts(connection, experiment, max(positions, default=0) + 1)
        connection.execute(_PUT, [{"experiment": experiment, "position": one, "text": texts[one]} for one in positions])


def _texts(connection: sa.Connection, experiment: int, n_arms: int) -> list[str]:
    """Return the exact sums of each arm as text."""
    # Imported here, with numba: a store without experiments needs neither.
    from equipoise.kernels import exact_digits, exact_sums

    digits = np.zeros((n_arms, *exact_digits.new_digits().shape), np.int64)
    for arms, rewards, signs in _changes(connection, experiment, n_arms):
        exact_sums.add_rewards(rewards, signs, arms, digits)
    return [exact_digits.to_text(exact_digits.from_digits(one)) for one in digits]


def _changes(
    connection: sa.Connection, experiment: int, n_arms: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield what the log counted and removed, in chunks: arms, rewards as reported, and 1 or -1."""
    values = {"experiment": experiment, "n_arms": n_arms}
    with connection.execute(_REWARDS, values, execution_options={"yield_per": 10_000}) as rows:
        for chunk in rows.partitions():
            arms, counted, replaced = (np.array(column) for column in zip(*chunk, strict=True))
            try:
                both = np.concatenate((counted, replaced)).astype(np.float64)
            except (TypeError, ValueError) as error:
                raise StoreMismatch(f"the log of experiment {experiment} is damaged: {error}", hint=RESTORE) from error
            signs, some = np.repeat([1.0, -1.0], arms.size), ~np.isnan(both)
            yield np.tile(arms, 2)[some], both[some], signs[some]
