"""The policies of the educational table played on 64 arms, and what every entry of the table is on them  [Fig. 6]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.objective import error, optimal_allocation, reward
from equipoise.paper.educational_rows import (
    BASELINES,
    FORCING_BALANCE,
    GAFS,
    HORIZON,
    OPTIMUM,
    REPLICATIONS,
    ROWS,
    UCB,
    UNIFORM,
    WEIGHTS,
    columns_of,
    printed,
)
from equipoise.paper.instances import treefrog_surrogate
from equipoise.policies import ForcingBalance, Uniform, gafs, ucb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.arms import Gaussian
    from equipoise.arrays import FloatArray
    from equipoise.paper.work import Work
    from equipoise.policies import Policy
    from equipoise.runs import Runs

UCB_SCALE = 4.0
"""How wide UCB's bonus is on the surrogate: the paper does not say, and this gives about the reward it prints."""

SCALES = (3.5, 4.0, 4.5)
WIDE_SCALES = (2.0, 3.0, 4.0, 5.0, 6.0)
"""Widths of the bonus that are tried to find the one that has a printed number: on the surrogate, and on given arms."""


@dataclass(frozen=True, kw_only=True)
class EducationalRuns:
    """The table on some arms.

    Attributes
    ----------
    arms : Gaussian
    is_given : bool
        Whether a user gave the arms; they are the surrogate otherwise.
    ucb_scale : float
    runs : Runs
        ForcingBalance at each of the weights, UCB, GAFS and Uniform, looked at after the last pull.
    values : dict
        An array over replications for each row, column and reward weight; one entry where nothing is random.
    """

    arms: Gaussian
    is_given: bool
    ucb_scale: float
    runs: Runs
    values: dict[tuple[str, str, float], FloatArray]

    @property
    def name(self) -> str:
        """What to call the arms."""
        return "given arms" if self.is_given else "surrogate"

    def mean(self, row: str, column: str, reward_weight: float) -> float:
        """Return an entry of the table."""
        return float(self.values[row, column, reward_weight].mean())

    def standard_error(self, row: str, column: str, reward_weight: float) -> float | None:
        """Return the standard error of an entry; None where nothing is random."""
        values = self.values[row, column, reward_weight]
        # Uniform pulls the same arms in every replication: what is left is rounding.
        if values.size < 2 or np.ptp(values) <= 1e-9 * abs(values.mean()):
            return None
        return float(values.std(ddof=1) / np.sqrt(values.size))

    def step_up(self, lower: str, upper: str, column: str, reward_weight: float) -> tuple[float, float]:
        """Return by how much a row's entry is above another's, and the standard error, paired by replication."""
        difference = self.values[upper, column, reward_weight] - self.values[lower, column, reward_weight]
        # Two rows that are the same in every replication differ by a number that is known exactly.
        spread = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else 0.0
        return float(difference.mean()), float(spread)


def policies(ucb_scale: float) -> dict[tuple[str, float | None], Policy]:
    """Return the policies by row of the table, with the reward weight of those that have one."""
    found: dict[tuple[str, float | None], Policy] = {
        (FORCING_BALANCE, weight): ForcingBalance(reward_weight=weight, forcing=1.0) for weight in WEIGHTS
    }
    baselines = {UCB: ucb.UCB(scale=ucb_scale), GAFS: gafs.GAFS(forcing=1.0), UNIFORM: Uniform()}
    return found | {(row, None): policy for row, policy in baselines.items()}


def educational_runs(work: Work) -> EducationalRuns:
    """Play the table on the arms that the work was given, or on the surrogate."""
    arms = work.given_treefrog or treefrog_surrogate()
    is_given = work.given_treefrog is not None
    scale = matching_scales(work, arms, WIDE_SCALES)["reward", WEIGHTS[0]] if is_given else UCB_SCALE
    runs = work.simulate(list(policies(scale).values()), arms, HORIZON, REPLICATIONS, checkpoints=[HORIZON])
    values: dict[tuple[str, str, float], FloatArray] = {}
    for weight in WEIGHTS:
        columns = columns_on(runs, weight)
        for place, (row, own_weight) in enumerate(policies(scale)):
            if own_weight in (None, weight):
                values |= {(row, column, weight): entries[place] for column, entries in columns.items()}
        best = optimal_allocation(arms.mean, arms.std, reward_weight=weight)
        values[OPTIMUM, "reward", weight] = np.array([reward(best, arms.mean) / arms.mean.max()])
        values[OPTIMUM, "error", weight] = np.array([error(best, arms.std) / arms.std.max()])
    return EducationalRuns(arms=arms, is_given=is_given, ucb_scale=scale, runs=runs, values=values)


def columns_on(runs: Runs, reward_weight: float) -> dict[str, FloatArray]:
    """Return the columns of the table after the last pull: arrays (policy, replication)."""
    columns = {
        "error": runs.error() / runs.true_std.max(),
        "reward": runs.reward() / runs.true_mean.max(),
        "regret": runs.rescaled_regret(reward_weight=reward_weight),
        "dcg": runs.relative_dcg(),
        "rank": runs.rank_error(),
    }
    return {name: values[:, :, -1] for name, values in columns.items()}


def matching_scales(work: Work, arms: Gaussian, scales: Sequence[float] = SCALES) -> dict[tuple[str, float], float]:
    """Return for each printed number of UCB the width of its bonus that gives it on some arms, to one decimal.

    Numbers change steadily with the width, so what lies between the widths that are played is interpolated.
    """
    tried = [ucb.UCB(scale=scale) for scale in scales]
    runs = work.simulate(tried, arms, HORIZON, REPLICATIONS, checkpoints=[HORIZON])
    found = {}
    for weight in WEIGHTS:
        for column in ("reward", "error", "regret", "rank"):
            means = columns_on(runs, weight)[column].mean(axis=1)
            order = np.argsort(means)
            width = np.interp(printed(UCB, column, weight).value, means[order], np.array(scales)[order])
            found[column, weight] = round(float(width), 1)
    return found


def entries() -> list[tuple[str, str, float]]:
    """Return row, column and weight of every different number of the table: baselines differ in their regret alone."""
    return [
        (row, column, weight)
        for weight in WEIGHTS
        for row in ROWS
        for column in columns_of(row)
        if row not in BASELINES or column == "regret" or weight == WEIGHTS[0]
    ]
