"""The order of the policies in each column of the educational table: what the paper has, and what holds  [Fig. 6]."""

from __future__ import annotations

import math
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

from equipoise.paper.educational_rows import (
    COLUMNS,
    FORCING_BALANCE,
    GAFS,
    OPTIMUM,
    REPLICATIONS,
    ROWS,
    UCB,
    UNIFORM,
    WEIGHTS,
    columns_of,
    printed,
)
from equipoise.paper.findings import Claim

if TYPE_CHECKING:
    from equipoise.paper.educational_runs import EducationalRuns

Order = tuple[tuple[str, ...], ...]
"""Rows from the smallest entry to the largest; those of a group are too close to tell, or not in the paper's order."""

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
"""Paired standard errors that a difference must have in the full number of replications to count."""


def order_claims(table: EducationalRuns) -> list[Claim]:
    """Return a claim for each column and weight: the order of the rows in it."""
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
    """Return, in words, pairs of rows that are the other way round here, and pairs that are too close to tell."""
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
    # Steps in the order of the paper need not be seen where a user's own arms decide: they must not be contradicted.
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
    """Return how clear a difference must be: with fewer replications the same one is less so."""
    return CLEAR * math.sqrt(min(1.0, table.runs.replications.size / REPLICATIONS))


def _values(table: EducationalRuns, lower: str, upper: str, column: str, weight: float) -> str:
    theirs = [printed(row, column, weight).value for row in (lower, upper)]
    ours = [table.mean(row, column, weight) for row in (lower, upper)]
    return f"printed {theirs[0]:.4g} and {theirs[1]:.4g}, here {ours[0]:.4g} and {ours[1]:.4g}"
