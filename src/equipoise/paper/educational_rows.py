"""The printed table of the educational experiment: its rows and columns, and the digits it has  [Fig. 6]."""

from __future__ import annotations

from typing import NamedTuple

from equipoise.paper.expected import expected_numbers

N_ARMS = 64
HORIZON = 25_000
REPLICATIONS = 100
WEIGHTS = (0.95, 0.6)

OPTIMUM, FORCING_BALANCE, UCB, GAFS, UNIFORM = "optimum", "ForcingBalance", "UCB", "GAFS", "Uniform"
ROWS = (OPTIMUM, FORCING_BALANCE, UCB, GAFS, UNIFORM)
BASELINES = (UCB, GAFS, UNIFORM)
"""Rows that do not depend on the reward weight, but for their regret."""

COLUMNS = {
    "error": "error/std",
    "reward": "reward/mean",
    "regret": "rescaled regret",
    "dcg": "RelDCG",
    "rank": "RankErr",
}
"""Short names of the columns, and their headings; mean and std are the largest ones."""


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
    """Return the columns that a row has numbers in: the optimum has no regret, and nothing is estimated for it."""
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
