"""The educational table: its printed numbers, its policies played on 64 arms, and the order of its rows  [Fig. 6]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise._types import FloatArray
from equipoise.objective import error, optimal_allocation, reward
from equipoise.paper.findings import Claim, expected_numbers
from equipoise.paper.instances import Work, treefrog_surrogate
from equipoise.policies import ForcingBalance, Policy, Uniform, gafs
from equipoise.policies import optimistic as ucb

if TYPE_CHECKING:
    from equipoise.arms import Gaussian
    from equipoise.simulation.runs import Runs

N_ARMS = 64
HORIZON = 25_000
REPLICATIONS = 100
WEIGHTS = (0.95, 0.6)

OPTIMUM, FORCING_BALANCE, UCB, GAFS, UNIFORM = "optimum", "ForcingBalance", "UCB", "GAFS", "Uniform"
ROWS = (OPTIMUM, FORCING_BALANCE, UCB, GAFS, UNIFORM)
BASELINES = (UCB, GAFS, UNIFORM)
"""Rows that do not depend on the reward weight, except in their regret."""

COLUMNS = {
    "error": "error/std",
    "reward": "reward/mean",
    "regret": "rescaled regret",
    "dcg": "RelDCG",
    "rank": "RankErr",
}
"""Short names of the columns, and their headings; mean and std are the largest ones."""

UCB_SCALE = 4.0
"""Width of UCB's bonus on the surrogate. The paper does not give it; this one has about the printed reward."""

SCALES = (3.5, 4.0, 4.5)
WIDE_SCALES = (2.0, 3.0, 4.0, 5.0, 6.0)
"""Widths to try, to find the one that reproduces a printed number: on the surrogate, and on given arms."""


class Printed(NamedTuple):
    """A number of the table, and half a unit of its last digit: every number has four, zeros at the end left out."""

    value: float
    rounding: float


def key_of(row: str, column: str, reward_weight: float) -> str:
    """Return the key in `expected.toml` of a number of the table.

    Examples
    --------
    >>> key_of("ForcingBalance", "error", 0.6), key_of("UCB", "error", 0.6), key_of("UCB", "regret", 0.6)
    ('fig6.forcing-balance-0.6.error', 'fig6.ucb.error', 'fig6.ucb.regret-0.6')
    """
    if row in BASELINES:
        return f"fig6.{row.lower()}.{column}" + (f"-{reward_weight:g}" if column == "regret" else "")
    name = "forcing-balance" if row == FORCING_BALANCE else row
    return f"fig6.{name}-{reward_weight:g}.{column}"


def columns_of(row: str) -> tuple[str, ...]:
    """Return the columns a row has numbers in: the optimum has no regret and no estimates."""
    return ("error", "reward") if row == OPTIMUM else tuple(COLUMNS)


def printed(row: str, column: str, reward_weight: float) -> Printed:
    """Return a number as printed.

    Examples
    --------
    >>> printed("Uniform", "regret", 0.95)
    Printed(value=20.49, rounding=0.005)
    """
    number = expected_numbers()[key_of(row, column, reward_weight)]
    if number.paper is None:
        raise ValueError(f"{number.key} is not printed in the paper")
    return Printed(number.paper, number.rounding)


@dataclass(frozen=True, kw_only=True)
class EducationalRuns:
    """The table on some arms.

    Attributes
    ----------
    arms : Gaussian
    is_given : bool
        Whether a user provided the arms; otherwise they are the surrogate.
    ucb_scale : float
    runs : Runs
        ForcingBalance at each of the weights, UCB, GAFS and Uniform, recorded after the last pull.
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
        """Name of the arms."""
        return "given arms" if self.is_given else "surrogate"

    def mean(self, row: str, column: str, reward_weight: float) -> float:
        """Return an entry of the table."""
        return float(self.values[row, column, reward_weight].mean())

    def standard_error(self, row: str, column: str, reward_weight: float) -> float | None:
        """Return the standard error of an entry; None where nothing is random."""
        values = self.values[row, column, reward_weight]
        # Uniform pulls the same arms in every replication: any difference is rounding.
        if values.size < 2 or np.ptp(values) <= 1e-9 * abs(values.mean()):
            return None
        return float(values.std(ddof=1) / np.sqrt(values.size))

    def step_up(self, lower: str, upper: str, column: str, reward_weight: float) -> tuple[float, float]:
        """Return how far a row's entry is above another's, and its standard error, paired by replication."""
        difference = self.values[upper, column, reward_weight] - self.values[lower, column, reward_weight]
        # Two rows that are the same in every replication differ by a number that is known exactly.
        spread = difference.std(ddof=1) / np.sqrt(difference.size) if difference.size > 1 else 0.0
        return float(difference.mean()), float(spread)


def policies(ucb_scale: float) -> dict[tuple[str, float | None], Policy]:
    """Return the policies by row of the table and reward weight; baselines have none."""
    found: dict[tuple[str, float | None], Policy] = {
        (FORCING_BALANCE, weight): ForcingBalance(reward_weight=weight, forcing=1.0) for weight in WEIGHTS
    }
    baselines = {UCB: ucb.UCB(scale=ucb_scale), GAFS: gafs.GAFS(forcing=1.0), UNIFORM: Uniform()}
    return found | {(row, None): policy for row, policy in baselines.items()}


def educational_runs(work: Work) -> EducationalRuns:
    """Play the table on the given arms, or on the surrogate."""
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
    """Return for each printed number of UCB the bonus width that reproduces it on some arms, to one decimal.

    Numbers change monotonically with the width, so values between the widths played are interpolated.
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
    """Return row, column and weight of every distinct number; baselines depend on the weight in their regret only."""
    return [
        (row, column, weight)
        for weight in WEIGHTS
        for row in ROWS
        for column in columns_of(row)
        if row not in BASELINES or column == "regret" or weight == WEIGHTS[0]
    ]


Order = tuple[tuple[str, ...], ...]
"""Rows from the smallest entry to the largest; rows in a group are too close to tell, or not in the paper's order."""

REGRET: Order = ((FORCING_BALANCE,), (GAFS,), (UNIFORM,), (UCB,))
REWARD: Order = ((UNIFORM,), (GAFS,), (OPTIMUM, FORCING_BALANCE), (UCB,))

ON_THE_SURROGATE: dict[tuple[str, float], Order] = {
    ("error", 0.95): ((GAFS,), (UNIFORM,), (OPTIMUM, FORCING_BALANCE), (UCB,)),
    ("error", 0.6): ((GAFS,), (OPTIMUM,), (FORCING_BALANCE,), (UNIFORM,), (UCB,)),
    ("reward", 0.95): REWARD,
    ("reward", 0.6): REWARD,
    ("regret", 0.95): REGRET,
    ("regret", 0.6): REGRET,
    ("dcg", 0.95): ((FORCING_BALANCE,), (GAFS, UNIFORM, UCB)),
    ("dcg", 0.6): ((FORCING_BALANCE,), (UCB,)),
    ("rank", 0.95): ((GAFS, UNIFORM), (FORCING_BALANCE,), (UCB,)),
    ("rank", 0.6): ((GAFS, FORCING_BALANCE, UNIFORM), (UCB,)),
}

CLEAR = 2.0
"""How many paired standard errors a difference must have, with all replications, to count."""


def order_claims(table: EducationalRuns) -> list[Claim]:
    """Return a claim about the order of rows for each column and weight."""
    return [_claim(table, column, weight) for weight in WEIGHTS for column in COLUMNS]


def printed_order(column: str, reward_weight: float) -> Order:
    """Return the rows as the paper has them; equal entries are a group.

    Examples
    --------
    >>> printed_order("error", 0.6)
    (('optimum',), ('ForcingBalance', 'GAFS'), ('Uniform',), ('UCB',))
    """
    entries = {row: printed(row, column, reward_weight).value for row in ROWS if column in columns_of(row)}
    return tuple(tuple(row for row in entries if entries[row] == value) for value in sorted(set(entries.values())))


def not_as_printed(table: EducationalRuns, column: str, reward_weight: float) -> tuple[list[str], list[str]]:
    """Describe pairs of rows that are reversed here, and pairs that are too close to tell."""
    turned, close = [], []
    for low, high in combinations(printed_order(column, reward_weight), 2):
        for lower, upper in product(low, high):
            step, spread = table.step_up(lower, upper, column, reward_weight)
            if step < -_needed(table) * spread:
                turned.append(f"{lower} before {upper} ({_values(table, lower, upper, column, reward_weight)})")
            elif step <= _needed(table) * spread:
                close.append(f"{lower} and {upper}")
    return turned, close


def order_words(order: Order) -> str:
    """Return an order in words.

    Examples
    --------
    >>> order_words((("GAFS", "Uniform"), ("UCB",)))
    'GAFS and Uniform, then UCB'
    """
    return ", then ".join(" and ".join(group) for group in order)


def _claim(table: EducationalRuns, column: str, weight: float) -> Claim:
    # On a user's arms, the paper's order need not be confirmed, but it must not be contradicted.
    order = printed_order(column, weight) if table.is_given else ON_THE_SURROGATE[column, weight]
    least = -4.0 if table.is_given else _needed(table)
    steps = {
        (lower, upper): table.step_up(lower, upper, column, weight)
        for low, high in pairwise(order)
        for lower, upper in product(low, high)
    }

    def clearness(pair: tuple[str, str]) -> float:
        step, spread = steps[pair]
        return step / spread if spread > 0 else math.copysign(math.inf, step)

    lower, upper = closest = min(steps, key=clearness)
    step, spread = steps[closest]
    rows = [row for group in order for row in group]
    values = ", ".join(f"{row} {table.mean(row, column, weight):.4g}" for row in rows)
    left_out = [row for row in ROWS if column in columns_of(row) and row not in rows]
    besides = f"; {' and '.join(left_out)} are too close to place" if left_out else ""
    return Claim(
        key=f"fig6.order-of-{column}-{weight:g}",
        text=f"{COLUMNS[column]}, w = {weight:g}, from the smallest on: {order_words(order)}{besides}.",
        holds=clearness(closest) > least,
        evidence=f"{values}; the least clear step, from {lower} to {upper}, is {step:.2g} +/- {spread:.2g}.",
    )


def _needed(table: EducationalRuns) -> float:
    """Return how many standard errors a difference must have; fewer replications make it less clear."""
    return CLEAR * math.sqrt(min(1.0, table.runs.replications.size / REPLICATIONS))


def _values(table: EducationalRuns, lower: str, upper: str, column: str, weight: float) -> str:
    theirs = [printed(row, column, weight).value for row in (lower, upper)]
    ours = [table.mean(row, column, weight) for row in (lower, upper)]
    return f"printed {theirs[0]:.4g} and {theirs[1]:.4g}, here {ours[0]:.4g} and {ours[1]:.4g}"
