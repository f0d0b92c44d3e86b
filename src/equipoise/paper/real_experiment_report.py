"""Build charts, tables and claims of a replayed experiment: what the dial gains and costs, and who is assigned what."""

from __future__ import annotations

import numpy as np

from equipoise.charts import final_shares_chart, final_shares_record, gains_and_losses
from equipoise.objective import optimal_allocation
from equipoise.paper.findings import Cell, Claim, Figure, Table
from equipoise.paper.real_experiments import BALANCE, BANDIT, THOMPSON, TRIAL, GainAndLoss, Mean, Replay
from equipoise.simulation.runs import Runs


def dial_figure(
    replay: Replay, item: str, subject: str, arms: str, *, named: tuple[float, ...], relative: bool
) -> Figure:
    """Draw gains and losses of all policies; `named` weights get labels, and gains may be relative to the trial's.

    The caption calls the experiment `subject`, and the things it compares `arms`.
    """
    experiment = replay.experiment
    had = float(experiment.shares @ experiment.arms.mean) * experiment.n_people if relative else 1.0

    def way(kind: str, name: str, row: GainAndLoss, **options: bool) -> gains_and_losses.WayToRun:
        gain = f"{row.relative_gain.value:+.1%}" if relative else f"{row.gain.value:+,.0f}"
        return gains_and_losses.WayToRun(
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
    best_loss, best_gain = replay.optimum(weights.tolist())
    record = gains_and_losses.GainsAndLossesRecord(
        title=f"What the dial gains and costs: {experiment.outcome}, and accuracy",
        subtitle=[
            f"{experiment.arms.n_arms} arms, {experiment.n_people:,} people ({experiment.citation}); means of "
            f"{replay.dial[0].n_replications} replications, {replay.of(THOMPSON).n_replications} of Thompson sampling",
            "blue: ForcingBalance at reward weights w; triangles: UCB with bonuses of sqrt(2), 2, 3, 4 and 6 standard",
            "deviations; thin lines: one standard error; dashed curve: had the arms been known beforehand",
        ],
        ways=(
            gains_and_losses.WayToRun(gains_and_losses.START, "the trial: equal shares", "", 0.0, 0.0),
            *(
                way(gains_and_losses.DIAL, f"w = {row.reward_weight:g}", row, is_named=row.reward_weight in named)
                for row in replay.dial
            ),
            *(
                way(gains_and_losses.RIVAL, BANDIT if k == 0 else f"UCB, bonus {row.bonus:g}", row, is_named=k == 0)
                for k, row in enumerate(replay.ucb)
            ),
            way(gains_and_losses.OTHER, THOMPSON, replay.of(THOMPSON), name_left=relative),
        ),
        gain_title=f"What participants gain: {experiment.outcome}, more than in the trial",
        gain_format="+.0%" if relative else "+,.0f",
        best_gain=best_gain / had,
        best_loss=best_loss,
    )
    return Figure(
        key=f"{item}-gain-and-loss",
        caption=f"What participants gain and researchers lose in the {subject} experiment ({experiment.citation}): "
        "ForcingBalance at weights 0 to 1, UCB and Thompson sampling, all against the trial; thin lines are one "
        f"standard error. Dashed: the best shares, had the {arms} been known beforehand.",
        chart=gains_and_losses.gains_and_losses_chart(record).to_dict(),
    )


def shares_figure(replay: Replay, name: str, weights: tuple[float, float]) -> Figure:
    """Return the shares of the arms in the trial, at two weights and with UCB."""
    experiment = replay.experiment
    places = [replay.reward_weights.index(weight) for weight in weights]
    dial, ucb = replay.dial_runs.select(policies=places), replay.ucb_runs.select(policies=[0])
    runs = Runs.stacked([replay.trial_runs, dial, ucb])
    names = ["the trial", *(f"w = {weight:g}" for weight in weights), BANDIT]
    chart = final_shares_chart(
        final_shares_record(runs, reward_weight=weights[-1], names=names, arms=list(experiment.names))
    )
    return Figure(
        key=f"{name}-shares",
        caption=f"Who is assigned what ({experiment.citation}): the trial, ForcingBalance at two weights, and UCB; "
        f"black bars are the optimal shares for w = {weights[-1]:g}.",
        chart=chart.to_dict(),
    )


def tables(replay: Replay) -> list[Table]:
    """Return all tables of an experiment."""
    return [_main_table(replay), _regret_table(replay), _arms_table(replay)]


def _main_table(replay: Replay) -> Table:
    experiment = replay.experiment
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
            None if not row.reward_weight else replay.price(row.reward_weight),
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
        for row in replay.rows
    ]
    return Table(
        key="gains-and-losses",
        title=f"What participants gain and researchers lose ({experiment.citation})",
        columns=list(columns),
        rows=rows,
        digits={column: digits for column, digits in columns.items() if digits},
        note=f"All against the experiment as it was run. Price of 1%: how many {outcome} a weight gives up to make the "
        "average standard error one percent smaller. Larger error: of the arms' means, on average, as it was over "
        "replications; by formula: the average of sigma / sqrt(pulls) (Eq. 2); worst arm: the largest of these. The "
        "bonus of UCB is in standard deviations, of which it knows the largest; UCB1 has sqrt(2).",
    )


def _regret_table(replay: Replay) -> Table:
    names = [BALANCE, TRIAL, BANDIT, THOMPSON]
    rows: list[list[Cell]] = []
    for weight in replay.reward_weights:
        regrets = replay.regrets(weight)
        rows.append([weight, *(number for name in names for number in regrets[name])])
    return Table(
        key="regret",
        title=f"Rescaled regret at each weight ({replay.experiment.citation})",
        columns=["w", *(column for name in names for column in (name, f"s.e., {name}"))],
        rows=rows,
        digits={"w": "g"},
        note="The regret is against the optimum of each weight, times the square root of the number of pulls.",
    )


def _arms_table(replay: Replay) -> Table:
    experiment = replay.experiment
    arms = experiment.arms
    weights = [weight for weight in replay.reward_weights if 0.5 <= weight < 1]
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


def better_on_both(key: str, dial: GainAndLoss, other: GainAndLoss) -> Claim:
    """Claim that a weight gains more than another policy and loses less."""
    return Claim(
        key=key,
        text=f"At w = {dial.reward_weight:g} participants gain more than with {other.policy}, and the error is "
        "smaller.",
        holds=dial.gain.value > other.gain.value and dial.loss.value < other.loss.value,
        evidence=f"{dial.gain.value:,.0f} (s.e. {dial.gain.standard_error:,.0f}) against {other.gain.value:,.0f} "
        f"({other.gain.standard_error:,.0f}) more; error {percent(dial.loss)} (s.e. "
        f"{100 * dial.loss.standard_error:.0f}) against {percent(other.loss)} ({100 * other.loss.standard_error:.0f})",
    )


def smallest_regret(replay: Replay, item: str, *, up_to: float) -> Claim:
    """Claim that ForcingBalance has the smallest regret at every weight up to one."""
    weights = [weight for weight in replay.reward_weights if weight <= up_to]
    regrets = [replay.regrets(weight) for weight in weights]
    ratios = [min(m.value for name, m in some.items() if name != BALANCE) / some[BALANCE].value for some in regrets]
    return Claim(
        key=f"{item}.smallest-regret",
        text=f"At every weight up to {up_to:g} ForcingBalance has a smaller regret than equal shares, UCB and Thompson "
        "sampling.",
        holds=min(ratios) > 1,
        evidence="the best of the others has "
        + ", ".join(f"{ratio:.3g} (w = {weight:g})" for ratio, weight in zip(ratios, weights, strict=True))
        + " times its regret",
    )


def better_ranking(replay: Replay, item: str, weight: float) -> Claim:
    """Claim that at a weight the arms are ranked better than by the bandits."""
    dial, others = replay.at(weight), [replay.of(BANDIT), replay.of(THOMPSON)]
    return Claim(
        key=f"{item}.better-ranking",
        text=f"At w = {weight:g} the estimates rank the arms better than those of UCB and Thompson sampling.",
        holds=all(dial.rank_error.value < other.rank_error.value for other in others),
        evidence=f"RankErr {dial.rank_error.value:.2f} against "
        + " and ".join(f"{other.rank_error.value:.2f}" for other in others)
        + f"; equal shares have {replay.of(TRIAL).rank_error.value:.2f}",
    )


def wider_bonuses(replay: Replay) -> str:
    """Compare the dial with UCB, whose bonus acts as a dial too."""
    differences = [f"{replay.above(row) / row.gain.value:+.0%} (bonus {row.bonus:.3g})" for row in replay.ucb]
    return (
        "A wider bonus makes UCB a dial of a kind, from a bandit to equal shares. At the same error the gain of "
        f"ForcingBalance differs from that of UCB by {', '.join(differences)}: a cautious UCB comes close. But what a "
        "bonus costs and gains shows afterwards only, while a weight says beforehand what a percent of accuracy is "
        "worth."
    )


def limits(replay: Replay) -> list[str]:
    """State the limits of a replay."""
    experiment = replay.experiment
    return [
        f"The means of the trial are taken for true. About {experiment.noise_share:.0%} of the variance between them "
        "is its own noise, by their standard errors, so the true differences, and what can be gained by them, are "
        "likely smaller by about as much."
    ]


def excess(row: GainAndLoss) -> float:
    """Return the ratio of the estimates' error to the error by formula."""
    return (1 + row.loss.value) / (1 + row.formula_loss.value)


def percent(mean: Mean) -> str:
    """Format a share in percent, with a decimal if it is below 10%."""
    value = 100 * mean.value
    return f"{value:.1f}%" if abs(value) < 10 else f"{value:.0f}%"


def rounded(value: float) -> str:
    """Format a count with as many digits as its noise justifies.

    Examples
    --------
    >>> rounded(1933.2), rounded(1_000_598)
    ('1,930', '1.00 million')
    """
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{round(value, -1):,.0f}"
