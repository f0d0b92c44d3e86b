"""What a set of 64 arms says of rows of the printed table that no fit has seen  [Fig. 6]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from equipoise.arrays import FloatArray
from equipoise.paper.educational_rows import FORCING_BALANCE, HORIZON, UCB
from equipoise.paper.educational_runs import UCB_SCALE, columns_on, policies

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.paper.work import Work

Predictions: TypeAlias = dict[tuple[str, float, str], FloatArray]
"""Values over replications by row, weight and column."""

PREDICTED = (
    (FORCING_BALANCE, 0.95, "regret"),
    (FORCING_BALANCE, 0.6, "regret"),
    (FORCING_BALANCE, 0.95, "rank"),
    (UCB, 0.95, "reward"),
    (UCB, 0.95, "error"),
)
"""Entries of rows that no fit has seen."""


def predict(work: Work, arms: Gaussian, replications: int) -> Predictions:
    """Play the policies of those rows on the arms."""
    known = policies(UCB_SCALE)
    chosen = {(row, weight): known[row, weight if row == FORCING_BALANCE else None] for row, weight, _ in PREDICTED}
    runs = work.simulate(list(chosen.values()), arms, HORIZON, replications, checkpoints=[HORIZON])
    places = {key: place for place, key in enumerate(chosen)}
    return {
        (row, weight, column): columns_on(runs, weight)[column][places[row, weight]]
        for row, weight, column in PREDICTED
    }


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean over replications."""
    return float(values.std(ddof=1) / math.sqrt(values.size))
