"""How an experiment went, at evenly spaced points of its log, for charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.experiment.instants import instant

if TYPE_CHECKING:
    from datetime import datetime

    from equipoise.arrays import FloatArray, IntArray
    from equipoise.experiment.state import State
    from equipoise.store import Transaction

# Rewards are summed as differences from one value close to all of them, so that squares do not lose their digits.
# The centre is part of the text, as a literal; both databases read the digits that Python writes exactly.
_SELECT = """
SELECT (number - 1) / {step} AS point, COALESCE(arm, -1), MAX(number), MAX(at),
    SUM(CASE WHEN kind = 'assigned' THEN 1 ELSE 0 END),
    SUM(COALESCE(counted, 0) - CASE WHEN replaced IS NULL THEN 0 ELSE 1 END),
    SUM(CASE WHEN counted = 1 THEN reward - ({centre}) ELSE 0.0 END - COALESCE(replaced - ({centre}), 0.0)),
    SUM(CASE WHEN counted = 1 THEN (reward - ({centre})) * (reward - ({centre})) ELSE 0.0 END
        - COALESCE((replaced - ({centre})) * (replaced - ({centre})), 0.0))
FROM events WHERE experiment = ? AND number <= ?
GROUP BY (number - 1) / {step}, COALESCE(arm, -1)
"""


@dataclass(frozen=True)
class History:
    """An experiment at some of its events.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    number : int array (points,)
        The event after which things were as given.
    at : tuple of datetime
        When that was.
    assigned, rewarded : int array (points, arms)
        Units assigned and rewards in the estimates.
    mean, std : float array (points, arms)
        Of the rewards in the estimates, as they were told; NaN where there are too few.
    """

    arms: tuple[str, ...]
    number: IntArray
    at: tuple[datetime, ...]
    assigned: IntArray
    rewarded: IntArray
    mean: FloatArray
    std: FloatArray

    @property
    def average_reward(self) -> FloatArray:
        """The average of all rewards so far, at each point."""
        total = np.where(self.rewarded > 0, self.mean, 0.0) * self.rewarded
        with np.errstate(invalid="ignore"):
            return np.asarray(total.sum(axis=1) / self.rewarded.sum(axis=1))


def read_history(transaction: Transaction, experiment: int, state: State, points: int) -> History:
    """Return the history of an experiment in at most this many points; the last is the present."""
    step = max(1, -(-state.n_events // points))
    n_points, n_arms = -(-state.n_events // step), len(state.names)
    pulls = state.stats.pulls
    centre = state.configuration.sign * float(state.stats.sums[0].sum() / pulls.sum()) if pulls.any() else 0.0
    counts = np.zeros((2, n_points, n_arms), np.int64)
    sums = np.zeros((2, n_points, n_arms))
    number, at = np.zeros(n_points, np.int64), np.zeros(n_points, np.int64)
    statement = _SELECT.format(step=step, centre=f"CAST('{centre!r}' AS DOUBLE PRECISION)")
    for rows in transaction.stream(statement, experiment, state.n_events):
        for point, arm, last, when, assigned, rewarded, total, squares in rows:
            number[point], at[point] = max(number[point], last), max(at[point], when)
            if arm >= 0:
                counts[:, point, arm] = int(assigned), int(rewarded)
                sums[:, point, arm] = total, squares
    (assigned, rewarded), (total, squares) = counts.cumsum(axis=1), sums.cumsum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(rewarded > 0, centre + total / rewarded, np.nan)
        variance = (squares - total**2 / rewarded) / (rewarded - 1)
        std = np.where(rewarded > 1, np.sqrt(np.maximum(variance, 0.0)), np.nan)
    return History(
        tuple(state.names), number, tuple(instant(when) for when in at.tolist()), assigned, rewarded, mean, std
    )
