"""Charts of a real experiment that was played again: what the dial gains and costs, and who is assigned what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.charts.final_shares import final_shares_chart, final_shares_record
from equipoise.charts.gains_and_losses import (
    DIAL,
    OTHER,
    RIVAL,
    START,
    GainsAndLossesRecord,
    WayToRun,
    gains_and_losses_chart,
)
from equipoise.paper.findings import Figure
from equipoise.paper.gains_and_losses import BANDIT, THOMPSON
from equipoise.runs import Runs

if TYPE_CHECKING:
    from equipoise.paper.gains_and_losses import GainAndLoss, Results


def dial_chart(results: Results, *, named: tuple[float, ...], relative: bool) -> Any:
    """Draw gains and losses of all policies, with the weights to name; gains are relative to the trial, or people."""
    experiment = results.replay.experiment
    had = float(experiment.shares @ experiment.arms.mean) * experiment.n_people if relative else 1.0

    def way(kind: str, name: str, row: GainAndLoss, **options: bool) -> WayToRun:
        gain = f"{row.relative_gain.value:+.1%}" if relative else f"{row.gain.value:+,.0f}"
        return WayToRun(
            kind,
            name,
            f"{gain}, error {row.loss.value:+.0%}",
            row.gain.value / had,
            row.loss.value,
            row.gain.standard_error / had,
            row.loss.standard_error,
            **options,
        )

    weights = np.concatenate([np.linspace(0, 0.9, 46), 1 - np.geomspace(0.1, 1e-4, 120)])
    best_loss, best_gain = results.replay.optimum(weights.tolist())
    record = GainsAndLossesRecord(
        title=f"What the dial gains and costs: {experiment.outcome}, and accuracy",
        subtitle=[
            f"{experiment.arms.n_arms} arms, {experiment.n_people:,} people ({experiment.citation}); means of "
            f"{results.dial[0].n_replications} replications, {results.of(THOMPSON).n_replications} of Thompson "
            "sampling",
            "blue: ForcingBalance at reward weights w; triangles: UCB with bonuses of sqrt(2), 2, 3, 4 and 6 standard",
            "deviations; thin lines: one standard error; dashed curve: had the arms been known beforehand",
        ],
        ways=(
            WayToRun(START, "the trial: equal shares", "", 0.0, 0.0),
            *(
                way(DIAL, f"w = {row.reward_weight:g}", row, is_named=row.reward_weight in named)
                for row in results.dial
            ),
            *(
                way(RIVAL, BANDIT if k == 0 else f"UCB, bonus {row.bonus:g}", row, is_named=k == 0)
                for k, row in enumerate(results.bandits)
            ),
            way(OTHER, THOMPSON, results.of(THOMPSON), name_left=relative),
        ),
        gain_title=f"What participants gain: {experiment.outcome}, more than in the trial",
        gain_format="+.0%" if relative else "+,.0f",
        best_gain=best_gain / had,
        best_loss=best_loss,
    )
    return gains_and_losses_chart(record)


def shares_figure(results: Results, name: str, weights: tuple[float, float]) -> Figure:
    """Return the shares of the arms in the trial, at two weights and with UCB."""
    played, experiment = results.replay, results.replay.experiment
    places = [played.reward_weights.index(weight) for weight in weights]
    runs = Runs.stacked([played.trial, played.balance.select(policies=places), played.bandit])
    names = ["the trial", *(f"w = {weight:g}" for weight in weights), BANDIT]
    chart = final_shares_chart(
        final_shares_record(runs, reward_weight=weights[-1], names=names, arms=list(experiment.names))
    )
    return Figure(
        key=f"{name}-shares",
        caption=(
            f"Who is assigned what ({experiment.citation}): the trial, ForcingBalance at two weights, and UCB; black "
            f"bars are the optimal shares for w = {weights[-1]:g}."
        ),
        chart=chart.to_dict(),
    )
