"""Two trials that were run with equal shares, replayed on the dial: effort and flu shots  [beyond the paper]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts import final_shares_chart, final_shares_record, gains_and_losses
from equipoise.objective import optimal_allocation
from equipoise.paper.findings import Cell, Claim, Figure, Finding, Item, Table
from equipoise.paper.readme_picture import readme_figure, readme_picture
from equipoise.paper.real_experiments import (
    BALANCE,
    BANDIT,
    THOMPSON,
    TRIAL,
    GainAndLoss,
    Replay,
    replay_effort,
    replay_flu,
)
from equipoise.simulation.runs import Runs

if TYPE_CHECKING:
    from equipoise.paper.instances import Work


def compute_effort(work: Work) -> Finding:
    """Replay the effort experiment and compare."""
    replay = replay_effort(work)
    experiment = replay.experiment
    half, bandit, thompson, most = replay.at(0.9), replay.of(BANDIT), replay.of(THOMPSON), replay.at(1.0)
    free = replay.at(0.5)
    return Finding(
        item=EFFORT.name,
        found=[
            f"{experiment.n_people:,} people pressed buttons for ten minutes under one of {experiment.arms.n_arms} "
            f"incentives, in equal random shares ({experiment.citation}). ForcingBalance with w = 0.9 would have had "
            f"{half.gain.rounded} more presses ({half.relative_gain.percent}), and the average error of an "
            f"incentive's mean would have been {half.loss.percent} larger. UCB would have gained "
            f"{bandit.relative_gain.percent} and made the error {bandit.loss.percent} larger.",
            f"w = 0.5 costs next to nothing ({free.formula_loss.percent} by formula) and gains "
            f"{free.relative_gain.percent}; the dial has effect above that. Near w = 1 the forced pulls set the "
            f"limit: with w = 1 ForcingBalance gains {most.relative_gain.percent}, less than UCB and Thompson "
            f"sampling ({thompson.relative_gain.percent}), which need not keep every arm alive.",
            "The formula understates what a bandit does to the estimates: by it the error of UCB would be "
            f"{bandit.formula_loss.percent} larger, over replications it is {bandit.loss.percent}. An arm whose "
            "first rewards are low is left alone and keeps its wrong mean. We therefore show the error that the "
            "estimates had.",
            _wider_bonuses(replay),
        ],
        differs=[
            "The paper has no such experiment. Rewards are Gaussian with the mean and standard deviation of each "
            "incentive; the presses themselves are skewed.",
            *_limits(replay),
        ],
        claims=[
            Claim(
                key="effort.half-the-gain",
                text="With w = 0.9 participants get at least 45% of what UCB gains, for less than a fifth of its loss.",
                holds=half.gain.value > 0.45 * bandit.gain.value and half.loss.value < 0.2 * bandit.loss.value,
                evidence=f"gain {half.relative_gain.percent} against {bandit.relative_gain.percent}, error "
                f"{half.loss.percent} against {bandit.loss.percent}",
            ),
            Claim(
                key="effort.free-gain",
                text="With w = 0.5 there is more reward at the same accuracy: an error larger by less than one "
                "percent.",
                holds=free.gain.value > 3 * free.gain.standard_error and free.formula_loss.value < 0.01,
                evidence=f"gain {free.relative_gain.percent}, standard error by formula {free.formula_loss.percent}",
            ),
            _smallest_regret(replay, EFFORT.name, up_to=0.99),
            _better_ranking(replay, EFFORT.name, 0.9),
            Claim(
                key="effort.formula-understates-bandits",
                text="The error that UCB's estimates have exceeds the formula's by a fifth; ForcingBalance's stays "
                "within a tenth at every weight.",
                holds=bandit.excess > 1.2 and all(row.excess < 1.1 for row in replay.dial),
                evidence=f"UCB {bandit.excess:.2f} times the formula; ForcingBalance at most "
                f"{max(row.excess for row in replay.dial):.2f} times",
            ),
        ],
        tables=_tables(replay),
        figures=[
            _dial_figure(replay, EFFORT.name, "effort", "incentives", named=(0.8, 0.9, 0.95, 0.99), relative=True),
            _shares_figure(replay, EFFORT.name, (0.5, 0.9)),
        ],
    )


EFFORT = Item(
    name="effort",
    title="18 incentives, 9,861 people",
    place="beyond the paper",
    claim="If the trade-off is worth its name, a real experiment with equal shares could have given its participants "
    "much of what a bandit gives them, and kept most of its accuracy.",
    compute=compute_effort,
    n_steps=26_200_000,
)


SHOWN_WEIGHTS = (0.95, 0.98, 0.99, 0.995)
"""Weights at which the messages about a flu shot differ visibly."""


def compute_health(work: Work) -> Finding:
    """Replay the flu experiment and compare."""
    replay = replay_flu(work)
    experiment = replay.experiment
    low, middle, high, top = (replay.at(weight) for weight in SHOWN_WEIGHTS)
    bandit, thompson = replay.of(BANDIT), replay.of(THOMPSON)
    return Finding(
        item=HEALTH.name,
        found=[
            f"{experiment.n_people:,} people were sent one of 22 texts about a flu shot, or none, in nearly equal "
            f"shares ({experiment.citation}). With the dial at 0.95, {low.gain.rounded} more of them would have "
            f"been vaccinated and the average error of an arm's rate would have been {low.loss.percent} larger; at "
            f"0.98 {middle.gain.rounded} more ({middle.loss.percent}), at 0.99 {high.gain.rounded} more "
            f"({high.loss.percent}), at 0.995 {top.gain.rounded} more ({top.loss.percent}).",
            f"UCB would have had {bandit.gain.rounded} more vaccinated with an error {bandit.loss.percent} "
            f"larger, Thompson sampling {thompson.gain.rounded} more with {thompson.loss.percent}: for each "
            "there is a position of the dial that is better on both counts.",
            _wider_bonuses(replay),
            "A weight close to 1 is no extreme here. The messages differ little, by a few people in a hundred, while "
            "one person's answer is yes or no; so the table also gives what the weight means: how many vaccinated "
            f"people it gives up for one percent of accuracy. That is {replay.price(0.5):,.0f} at w = 0.5, which no "
            f"one would pay, {replay.price(0.95):,.0f} at 0.95 and {replay.price(0.99):,.0f} at 0.99.",
        ],
        differs=[
            f"The paper has no such experiment. All {experiment.n_people:,} people take part, {experiment.group} at a "
            "time with the same message: the estimates are as accurate as with one at a time, and a replication is ten "
            f"times shorter. A pull is the share vaccinated of {experiment.group}, which is close to Gaussian. The "
            "weight is that of such groups; for single people the same price has 1 / w - 1 smaller by the square root "
            f"of {experiment.group}.",
            "Here each group's outcome is known before the next is assigned. In the trial it took until the end of the "
            "year, so an adaptive one would have had to send its texts in waves, and would have gained less.",
            *_limits(replay),
        ],
        claims=[
            Claim(
                key="health.cheap-gain",
                text="At w = 0.95 more than 500 more people are vaccinated, for an error larger by less than 10%.",
                holds=low.gain.value > 500 and low.loss.value < 0.1,
                evidence=f"{low.gain.value:,.0f} more (s.e. {low.gain.standard_error:,.0f}), error {low.loss.percent}",
            ),
            _better_on_both("health.better-than-ucb", high, bandit),
            _better_on_both("health.better-than-thompson", top, thompson),
            _smallest_regret(replay, HEALTH.name, up_to=0.99),
            _better_ranking(replay, HEALTH.name, 0.98),
        ],
        tables=_tables(replay),
        figures=[
            readme_figure(readme_picture(work, replay)),
            _dial_figure(replay, HEALTH.name, "flu", "messages", named=(*SHOWN_WEIGHTS, 1.0), relative=False),
            _shares_figure(replay, HEALTH.name, (0.95, 0.99)),
        ],
    )


HEALTH = Item(
    name="health",
    title="22 messages about a flu shot, 689,693 people",
    place="beyond the paper",
    claim="The same in a trial whose arms differ little: more people vaccinated at a small cost in accuracy, and "
    "better on both counts than a bandit.",
    compute=compute_health,
    n_steps=53_800_000,
)


def _dial_figure(
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


def _shares_figure(replay: Replay, name: str, weights: tuple[float, float]) -> Figure:
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


def _tables(replay: Replay) -> list[Table]:
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


def _better_on_both(key: str, dial: GainAndLoss, other: GainAndLoss) -> Claim:
    """Claim that a weight gains more than another policy and loses less."""
    return Claim(
        key=key,
        text=f"At w = {dial.reward_weight:g} participants gain more than with {other.policy}, and the error is "
        "smaller.",
        holds=dial.gain.value > other.gain.value and dial.loss.value < other.loss.value,
        evidence=f"{dial.gain.value:,.0f} (s.e. {dial.gain.standard_error:,.0f}) against {other.gain.value:,.0f} "
        f"({other.gain.standard_error:,.0f}) more; error {dial.loss.percent} (s.e. "
        f"{100 * dial.loss.standard_error:.0f}) against {other.loss.percent} ({100 * other.loss.standard_error:.0f})",
    )


def _smallest_regret(replay: Replay, item: str, *, up_to: float) -> Claim:
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


def _better_ranking(replay: Replay, item: str, weight: float) -> Claim:
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


def _wider_bonuses(replay: Replay) -> str:
    """Compare the dial with UCB, whose bonus acts as a dial too."""
    differences = [f"{replay.above(row) / row.gain.value:+.0%} (bonus {row.bonus:.3g})" for row in replay.ucb]
    return (
        "A wider bonus makes UCB a dial of a kind, from a bandit to equal shares. At the same error the gain of "
        f"ForcingBalance differs from that of UCB by {', '.join(differences)}: a cautious UCB comes close. But what a "
        "bonus costs and gains shows afterwards only, while a weight says beforehand what a percent of accuracy is "
        "worth."
    )


def _limits(replay: Replay) -> list[str]:
    """State the limits of a replay."""
    experiment = replay.experiment
    return [
        f"The means of the trial are taken for true. About {experiment.noise_share:.0%} of the variance between them "
        "is its own noise, by their standard errors, so the true differences, and what can be gained by them, are "
        "likely smaller by about as much."
    ]
