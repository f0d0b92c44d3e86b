"""Tables of a real experiment that was played again: gains and losses, regrets, and the arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.objective import optimal_allocation
from equipoise.paper.findings import Table
from equipoise.paper.gains_and_losses import BALANCE, BANDIT, THOMPSON, TRIAL

if TYPE_CHECKING:
    from equipoise.paper.findings import Cell
    from equipoise.paper.gains_and_losses import Results


def tables(results: Results) -> list[Table]:
    """Return all tables of an experiment."""
    return [_main_table(results), _regret_table(results), _arms_table(results)]


def _main_table(results: Results) -> Table:
    experiment = results.replay.experiment
    outcome = experiment.outcome
    columns = {
        "policy": "",
        "w": "g",
        "price of 1%": ",.0f",
        f"more {outcome}": "+,.0f",
        "s.e. of that": ",.0f",
        "gain (%)": "+.2f",
        "larger error (%)": "+.1f",
        "s.e. of the error (%)": ".1f",
        "by formula (%)": "+.1f",
        "worst arm (%)": "+.1f",
        "RelDCG": ".3f",
        "RankErr": ".2f",
        "replications": "d",
    }
    rows: list[list[Cell]] = [
        [
            row.policy if row.bonus is None else f"{row.policy}, bonus {row.bonus:.3g} sd",
            row.reward_weight,
            None if not row.reward_weight else results.replay.price(row.reward_weight),
            row.gain.value,
            row.gain.standard_error,
            100 * row.relative_gain.value,
            100 * row.loss.value,
            100 * row.loss.standard_error,
            100 * row.formula_loss.value,
            100 * row.worst_loss.value,
            row.relative_dcg.value,
            row.rank_error.value,
            row.n_replications,
        ]
        for row in results.rows
    ]
    return Table(
        key="gains-and-losses",
        title=f"What participants gain and researchers lose ({experiment.citation})",
        columns=list(columns),
        rows=rows,
        digits={column: digits for column, digits in columns.items() if digits},
        note=(
            f"All against the experiment as it was run. Price of 1%: how many {outcome} a weight gives up to make "
            "the average standard error one percent smaller. Larger error: of the arms' means, on average, as it "
            "was over replications; by formula: the average of sigma / sqrt(pulls) (Eq. 2); worst arm: the largest "
            "of these. The bonus of UCB is in standard deviations, of which it is told the largest; sqrt(2) is that "
            "of UCB1."
        ),
    )


def _regret_table(results: Results) -> Table:
    names = [BALANCE, TRIAL, BANDIT, THOMPSON]
    rows: list[list[Cell]] = []
    for weight in results.replay.reward_weights:
        regrets = results.replay.regrets(weight)
        rows.append([weight, *(number for name in names for number in regrets[name])])
    return Table(
        key="regret",
        title=f"Rescaled regret at each weight ({results.replay.experiment.citation})",
        columns=["w", *(column for name in names for column in (name, f"s.e., {name}"))],
        rows=rows,
        digits={"w": "g"},
        note="The regret is against the optimum of each weight, times the square root of the number of pulls.",
    )


def _arms_table(results: Results) -> Table:
    experiment = results.replay.experiment
    arms = experiment.arms
    weights = [weight for weight in results.replay.reward_weights if 0.5 <= weight < 1]
    best = [optimal_allocation(arms.mean, arms.std, reward_weight=weight) for weight in weights]
    rows: list[list[Cell]] = [
        [
            name,
            int(experiment.people[k]),
            float(arms.mean[k]),
            float(arms.std[k] * np.sqrt(experiment.group)),
            *(100 * float(shares[k]) for shares in best),
        ]
        for k, name in enumerate(experiment.names)
    ]
    share_columns = [f"best share, w = {weight:g} (%)" for weight in weights]
    return Table(
        key="arms",
        title=f"The arms and their best shares ({experiment.citation})",
        columns=["arm", "people", "mean", "standard deviation", *share_columns],
        rows=rows,
        digits={"people": ",d"} | dict.fromkeys(share_columns, ".1f"),
    )
