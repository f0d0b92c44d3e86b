"""Two experiments that were run with equal shares, played again on the dial  [beyond the paper]."""

from __future__ import annotations

from dataclasses import dataclass
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
from equipoise.objective import optimal_allocation
from equipoise.paper.findings import Claim, Figure, Finding, Table
from equipoise.paper.gains_and_losses import BALANCE, BANDIT, BONUS, THOMPSON, TRIAL, WIDER, replay
from equipoise.paper.item import Item
from equipoise.paper.real_experiments import effort_experiment, flu_experiment
from equipoise.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.paper.findings import Cell
    from equipoise.paper.gains_and_losses import GainAndLoss, Mean, Replay
    from equipoise.paper.work import Work

EFFORT_WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
FLU_WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
HERO_WEIGHTS = (0.95, 0.98, 0.99, 0.995)
"""Few enough to be read at a glance, and far enough apart."""

EFFORT_REPLICATIONS, FLU_REPLICATIONS, QUICK_FLU_REPLICATIONS = 200, 40, 8
EFFORT_THOMPSON, FLU_THOMPSON, QUICK_THOMPSON = 60, 20, 6
"""Replications of Thompson sampling, which draws from a posterior of every arm at every step and is slow."""


@dataclass(frozen=True)
class Results:
    """Every policy against the experiment as it was run, by name and weight."""

    replay: Replay
    rows: list[GainAndLoss]

    def at(self, reward_weight: float) -> GainAndLoss:
        """Return ForcingBalance at a weight."""
        return next(row for row in self.rows if row.reward_weight == reward_weight)

    def of(self, policy: str) -> GainAndLoss:
        """Return a policy without a weight."""
        return next(row for row in self.rows if row.policy == policy)  # of UCB, the one with the usual bonus

    @property
    def dial(self) -> list[GainAndLoss]:
        """ForcingBalance at all weights."""
        return [row for row in self.rows if row.policy == BALANCE]

    @property
    def bandits(self) -> list[GainAndLoss]:
        """UCB with all bonuses, the usual one first."""
        return [row for row in self.rows if row.policy == BANDIT]

    def above(self, row: GainAndLoss) -> float:
        """Return how much more ForcingBalance gains than a policy at the same loss, between its weights."""
        loss, gain = ([getattr(one, name).value for one in self.dial] for name in ("loss", "gain"))
        return float(np.interp(row.loss.value, np.maximum.accumulate(loss), gain)) - row.gain.value


def effort_results(work: Work) -> Results:
    """Play the 18 incentives with the 9,861 people they had."""
    played = replay(
        work,
        effort_experiment(),
        EFFORT_WEIGHTS,
        replications=EFFORT_REPLICATIONS,
        thompson_replications=QUICK_THOMPSON if work.quick else EFFORT_THOMPSON,
    )
    return Results(played, played.compared())


def flu_results(
    work: Work, reward_weights: Sequence[float] = FLU_WEIGHTS, bonuses: tuple[float, ...] = (BONUS, *WIDER)
) -> Results:
    """Play the 22 messages and the usual care with the 689,693 people they had, ten at a time."""
    played = replay(
        work,
        flu_experiment(),
        reward_weights,
        replications=QUICK_FLU_REPLICATIONS if work.quick else FLU_REPLICATIONS,
        thompson_replications=QUICK_THOMPSON if work.quick else FLU_THOMPSON,
        bonuses=bonuses,
    )
    return Results(played, played.compared())


def compute_effort(work: Work) -> Finding:
    """Play the effort experiment again and compare."""
    results = effort_results(work)
    experiment = results.replay.experiment
    half, bandit, thompson, most = results.at(0.9), results.of(BANDIT), results.of(THOMPSON), results.at(1.0)
    free = results.at(0.5)
    return Finding(
        item=EFFORT.name,
        found=[
            f"{experiment.n_people:,} people pressed buttons for ten minutes under one of {experiment.arms.n_arms} "
            f"incentives, in equal random shares ({experiment.citation}). ForcingBalance with w = 0.9 would have had "
            f"{_more(half.gain.value)} more presses ({_percent(half.relative_gain)}), and the average error of an "
            f"incentive's mean would have been {_percent(half.loss)} larger. UCB would have gained "
            f"{_percent(bandit.relative_gain)} and made the error {_percent(bandit.loss)} larger.",
            f"w = 0.5 costs next to nothing ({_percent(free.formula_loss)} by formula) and gains "
            f"{_percent(free.relative_gain)}; the dial has effect above that. Near w = 1 the forced pulls set the "
            f"limit: with w = 1 ForcingBalance gains {_percent(most.relative_gain)}, less than UCB and Thompson "
            f"sampling ({_percent(thompson.relative_gain)}), which need not keep every arm alive.",
            "The formula understates what a bandit does to the estimates: by it the error of UCB would be "
            f"{_percent(bandit.formula_loss)} larger, over replications it is {_percent(bandit.loss)}. An arm whose "
            "first rewards are low is left alone and keeps its wrong mean. We therefore show the error that the "
            "estimates had.",
            _wider_bonuses(results),
        ],
        differs=[
            "The paper has no such experiment. Rewards are Gaussian with the mean and standard deviation of each "
            "incentive; the presses themselves are skewed.",
            *_limits(results),
        ],
        claims=[
            Claim(
                key="effort.half-the-gain",
                text="With w = 0.9 participants get at least 45% of what UCB gains, for less than a fifth of its loss.",
                holds=half.gain.value > 0.45 * bandit.gain.value and half.loss.value < 0.2 * bandit.loss.value,
                evidence=(
                    f"gain {_percent(half.relative_gain)} against {_percent(bandit.relative_gain)}, error "
                    f"{_percent(half.loss)} against {_percent(bandit.loss)}"
                ),
            ),
            Claim(
                key="effort.free-gain",
                text=(
                    "With w = 0.5 there is more reward at the same accuracy: an error larger by less than one percent."
                ),
                holds=free.gain.value > 3 * free.gain.standard_error and free.formula_loss.value < 0.01,
                evidence=(
                    f"gain {_percent(free.relative_gain)}, standard error by formula {_percent(free.formula_loss)}"
                ),
            ),
            _regret_claim(results, EFFORT.name, up_to=0.99),
            _ranking_claim(results, EFFORT.name, 0.9),
            Claim(
                key="effort.formula-understates-bandits",
                text="The error that UCB's estimates have exceeds the formula's by a fifth; ForcingBalance's stays "
                "within a tenth at every weight.",
                holds=_excess(bandit) > 1.2 and all(_excess(row) < 1.1 for row in results.dial),
                evidence=(
                    f"UCB {_excess(bandit):.2f} times the formula; ForcingBalance at most "
                    f"{max(_excess(row) for row in results.dial):.2f} times"
                ),
            ),
        ],
        tables=_tables(results),
        figures=[
            Figure(
                key="effort-gain-and-loss",
                caption=(
                    f"What participants gain and researchers lose in the effort experiment ({experiment.citation}): "
                    "ForcingBalance at weights 0 to 1, UCB and Thompson sampling, all against the trial; thin lines "
                    "are one standard error. Dashed: the best shares, had the incentives been known beforehand."
                ),
                chart=_chart(results, named=(0.8, 0.9, 0.95, 0.99), relative=True).to_dict(),
            ),
            _shares_figure(results, EFFORT.name, (0.5, 0.9)),
        ],
    )


def compute_health(work: Work) -> Finding:
    """Play the flu experiment again, compare, and draw the chart for the top of the README."""
    results = flu_results(work)
    experiment = results.replay.experiment
    low, middle, high, top = (results.at(weight) for weight in HERO_WEIGHTS)
    bandit, thompson = results.of(BANDIT), results.of(THOMPSON)
    return Finding(
        item=HEALTH.name,
        found=[
            f"{experiment.n_people:,} people were sent one of 22 texts about a flu shot, or none, in nearly equal "
            f"shares ({experiment.citation}). With the dial at 0.95, {_more(low.gain.value)} more of them would have "
            f"been vaccinated and the average error of an arm's rate would have been {_percent(low.loss)} larger; at "
            f"0.98 {_more(middle.gain.value)} more ({_percent(middle.loss)}), at 0.99 {_more(high.gain.value)} more "
            f"({_percent(high.loss)}), at 0.995 {_more(top.gain.value)} more ({_percent(top.loss)}).",
            f"UCB would have had {_more(bandit.gain.value)} more vaccinated with an error {_percent(bandit.loss)} "
            f"larger, Thompson sampling {_more(thompson.gain.value)} more with {_percent(thompson.loss)}: for each "
            "there is a position of the dial that is better on both counts.",
            _wider_bonuses(results),
            "A weight close to 1 is no extreme here. The messages differ little, by a few people in a hundred, "
            "while one person's answer is yes or no; so the table also gives what the weight means: how many "
            f"vaccinated people it gives up for one percent of accuracy. That is {results.replay.price(0.5):,.0f} at "
            f"w = 0.5, which no one would pay, {results.replay.price(0.95):,.0f} at 0.95 and "
            f"{results.replay.price(0.99):,.0f} at 0.99.",
        ],
        differs=[
            f"The paper has no such experiment. All {experiment.n_people:,} people take part, {experiment.group} at "
            "a time with the same message: the estimates are as accurate as with one at a time, and a replication "
            f"is ten times shorter. A pull is the share vaccinated of {experiment.group}, which is close to "
            "Gaussian. The weight is that of such groups; for single people the same price has 1 / w - 1 smaller by "
            f"the square root of {experiment.group}.",
            "Here each group's outcome is known before the next is assigned. In the trial it took until the end of "
            "the year, so an adaptive one would have had to send its texts in waves, and would have gained less.",
            *_limits(results),
        ],
        claims=[
            Claim(
                key="health.cheap-gain",
                text="At w = 0.95 more than 500 more people are vaccinated, for an error larger by less than 10%.",
                holds=low.gain.value > 500 and low.loss.value < 0.1,
                evidence=(
                    f"{low.gain.value:,.0f} more (s.e. {low.gain.standard_error:,.0f}), error {_percent(low.loss)}"
                ),
            ),
            _better_on_both("health.better-than-ucb", high, bandit),
            _better_on_both("health.better-than-thompson", top, thompson),
            _regret_claim(results, HEALTH.name, up_to=0.99),
            _ranking_claim(results, HEALTH.name, 0.98),
        ],
        tables=_tables(results),
        figures=[
            hero_figure(results),
            Figure(
                key="health-gain-and-loss",
                caption=(
                    f"What participants gain and researchers lose in the flu experiment ({experiment.citation}): "
                    "ForcingBalance at weights 0 to 1, UCB and Thompson sampling, all against the trial; thin lines "
                    "are one standard error. Dashed: the best shares, had the messages been known beforehand."
                ),
                chart=_chart(results, named=(*HERO_WEIGHTS, 1.0), relative=False).to_dict(),
            ),
            _shares_figure(results, HEALTH.name, (0.95, 0.99)),
        ],
    )


def hero_figure(results: Results) -> Figure:
    """Return the chart at the top of the README: few points, large letters."""
    experiment = results.replay.experiment

    def words(row: GainAndLoss) -> str:
        return f"{_more(row.gain.value)} more, error {row.loss.value:+.0%}"

    ways = [
        WayToRun(START, "A/B test", "the trial as it was run, with equal shares", 0.0, 0.0),
        *(
            WayToRun(DIAL, f"Equipoise at {weight:g}", words(row), row.gain.value, row.loss.value)
            for weight in HERO_WEIGHTS
            for row in [results.at(weight)]
        ),
        *(
            WayToRun(OTHER, name, words(row), row.gain.value, row.loss.value, name_left=name == THOMPSON)
            for name, row in (("UCB bandit", results.of(BANDIT)), (THOMPSON, results.of(THOMPSON)))
        ),
    ]
    record = GainsAndLossesRecord(
        title="More people vaccinated than with a bandit, and better estimates",
        subtitle=[
            f"22 texts about a flu shot, or none: a trial with {experiment.n_people:,} people "
            f"({experiment.citation}), simulated.",
            "Equipoise has a dial from knowledge (0) to benefit (1): each blue point is one position.",
        ],
        ways=tuple(ways),
        gain_title="What participants gain: people vaccinated, more than in the trial",
        gain_format="+,.0f",
        best_gain=np.array([]),
        best_loss=np.array([]),
    )
    return Figure(
        key="hero",
        caption=(
            f"A trial of messages about a flu shot ({experiment.citation}), played again: an A/B test and each "
            "bandit are one point, Equipoise is the curve from which an experimenter chooses."
        ),
        chart=gains_and_losses_chart(record, big=True).to_dict(),
    )


def _chart(results: Results, *, named: tuple[float, ...], relative: bool) -> Any:
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


def _shares_figure(results: Results, name: str, weights: tuple[float, float]) -> Figure:
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


def _tables(results: Results) -> list[Table]:
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


def _better_on_both(key: str, dial: GainAndLoss, other: GainAndLoss) -> Claim:
    return Claim(
        key=key,
        text=(
            f"At w = {dial.reward_weight:g} participants gain more than with {other.policy}, and the error is smaller."
        ),
        holds=dial.gain.value > other.gain.value and dial.loss.value < other.loss.value,
        evidence=(
            f"{dial.gain.value:,.0f} (s.e. {dial.gain.standard_error:,.0f}) against {other.gain.value:,.0f} "
            f"({other.gain.standard_error:,.0f}) more; error {_percent(dial.loss)} (s.e. "
            f"{100 * dial.loss.standard_error:.0f}) against {_percent(other.loss)} "
            f"({100 * other.loss.standard_error:.0f})"
        ),
    )


def _regret_claim(results: Results, item: str, *, up_to: float) -> Claim:
    weights = [weight for weight in results.replay.reward_weights if weight <= up_to]
    regrets = [results.replay.regrets(weight) for weight in weights]
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


def _ranking_claim(results: Results, item: str, weight: float) -> Claim:
    dial, others = results.at(weight), [results.of(BANDIT), results.of(THOMPSON)]
    return Claim(
        key=f"{item}.better-ranking",
        text=f"At w = {weight:g} the estimates rank the arms better than those of UCB and Thompson sampling.",
        holds=all(dial.rank_error.value < other.rank_error.value for other in others),
        evidence=f"RankErr {dial.rank_error.value:.2f} against "
        + " and ".join(f"{other.rank_error.value:.2f}" for other in others)
        + f"; equal shares have {results.of(TRIAL).rank_error.value:.2f}",
    )


def _wider_bonuses(results: Results) -> str:
    more = [f"{results.above(row) / row.gain.value:+.0%} (bonus {row.bonus:.3g})" for row in results.bandits]
    return (
        "A wider bonus makes UCB a dial of a kind, from a bandit to equal shares. At the same error the gain of "
        f"ForcingBalance differs from that of UCB by {', '.join(more)}: a cautious UCB comes close. But what a bonus "
        "costs and gains shows afterwards only, while a weight says beforehand what a percent of accuracy is worth."
    )


def _limits(results: Results) -> list[str]:
    experiment = results.replay.experiment
    return [
        f"The means of the trial are taken for true. About {experiment.noise_share:.0%} of the variance between them "
        "is its own noise, by their standard errors, so the true differences, and what can be gained by them, are "
        "likely smaller by about as much.",
    ]


def _excess(row: GainAndLoss) -> float:
    """Return how many times the error by formula the error of the estimates was."""
    return (1 + row.loss.value) / (1 + row.formula_loss.value)


def _percent(mean: Mean) -> str:
    value = 100 * mean.value
    return f"{value:.1f}%" if abs(value) < 10 else f"{value:.0f}%"


def _more(value: float) -> str:
    """Return a count with as many digits as its noise leaves.

    Examples
    --------
    >>> _more(1933.2), _more(1_000_598)
    ('1,930', '1.00 million')
    """
    return f"{value / 1e6:.2f} million" if value >= 1e6 else f"{round(value, -1):,.0f}"


EFFORT = Item(
    name="effort",
    title="18 incentives, 9,861 people",
    place="beyond the paper",
    claim=(
        "If the trade-off is worth its name, a real experiment with equal shares could have given its participants "
        "much of what a bandit gives them, and kept most of its accuracy."
    ),
    compute=compute_effort,
    n_steps=26_200_000,
)

HEALTH = Item(
    name="health",
    title="22 messages about a flu shot, 689,693 people",
    place="beyond the paper",
    claim=(
        "The same in a trial whose arms differ little: more people vaccinated at a small cost in accuracy, and "
        "better on both counts than a bandit."
    ),
    compute=compute_health,
    n_steps=42_800_000,
)
