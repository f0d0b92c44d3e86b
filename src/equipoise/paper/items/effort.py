"""An experiment on effort that was run with equal shares, played again on the dial  [beyond the paper]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper.findings import Claim, Figure, Finding
from equipoise.paper.item import Item
from equipoise.paper.real_experiment_report import (
    better_ranking,
    dial_chart,
    excess,
    limits,
    percent,
    rounded,
    shares_figure,
    smallest_regret,
    tables,
    wider_bonuses,
)
from equipoise.paper.real_experiments import BANDIT, THOMPSON, Results, effort_experiment, replay

if TYPE_CHECKING:
    from equipoise.paper.item import Work

WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0)

REPLICATIONS = 200
THOMPSON_REPLICATIONS, QUICK_THOMPSON_REPLICATIONS = 60, 6
"""Of Thompson sampling, which draws from a posterior of every arm at every step and is slow."""


def play(work: Work) -> Results:
    """Play the 18 incentives with the 9,861 people they had."""
    played = replay(
        work,
        effort_experiment(),
        WEIGHTS,
        replications=REPLICATIONS,
        thompson_replications=QUICK_THOMPSON_REPLICATIONS if work.quick else THOMPSON_REPLICATIONS,
    )
    return Results(played, played.compared())


def compute(work: Work) -> Finding:
    """Play the effort experiment again and compare."""
    results = play(work)
    experiment = results.replay.experiment
    half, bandit, thompson, most = results.at(0.9), results.of(BANDIT), results.of(THOMPSON), results.at(1.0)
    free = results.at(0.5)
    return Finding(
        item=ITEM.name,
        found=[
            f"{experiment.n_people:,} people pressed buttons for ten minutes under one of {experiment.arms.n_arms} "
            f"incentives, in equal random shares ({experiment.citation}). ForcingBalance with w = 0.9 would have had "
            f"{rounded(half.gain.value)} more presses ({percent(half.relative_gain)}), and the average error of an "
            f"incentive's mean would have been {percent(half.loss)} larger. UCB would have gained "
            f"{percent(bandit.relative_gain)} and made the error {percent(bandit.loss)} larger.",
            f"w = 0.5 costs next to nothing ({percent(free.formula_loss)} by formula) and gains "
            f"{percent(free.relative_gain)}; the dial has effect above that. Near w = 1 the forced pulls set the "
            f"limit: with w = 1 ForcingBalance gains {percent(most.relative_gain)}, less than UCB and Thompson "
            f"sampling ({percent(thompson.relative_gain)}), which need not keep every arm alive.",
            "The formula understates what a bandit does to the estimates: by it the error of UCB would be "
            f"{percent(bandit.formula_loss)} larger, over replications it is {percent(bandit.loss)}. An arm whose "
            "first rewards are low is left alone and keeps its wrong mean. We therefore show the error that the "
            "estimates had.",
            wider_bonuses(results),
        ],
        differs=[
            "The paper has no such experiment. Rewards are Gaussian with the mean and standard deviation of each "
            "incentive; the presses themselves are skewed.",
            *limits(results),
        ],
        claims=[
            Claim(
                key="effort.half-the-gain",
                text="With w = 0.9 participants get at least 45% of what UCB gains, for less than a fifth of its loss.",
                holds=half.gain.value > 0.45 * bandit.gain.value and half.loss.value < 0.2 * bandit.loss.value,
                evidence=(
                    f"gain {percent(half.relative_gain)} against {percent(bandit.relative_gain)}, error "
                    f"{percent(half.loss)} against {percent(bandit.loss)}"
                ),
            ),
            Claim(
                key="effort.free-gain",
                text=(
                    "With w = 0.5 there is more reward at the same accuracy: an error larger by less than one percent."
                ),
                holds=free.gain.value > 3 * free.gain.standard_error and free.formula_loss.value < 0.01,
                evidence=(
                    f"gain {percent(free.relative_gain)}, standard error by formula {percent(free.formula_loss)}"
                ),
            ),
            smallest_regret(results, ITEM.name, up_to=0.99),
            better_ranking(results, ITEM.name, 0.9),
            Claim(
                key="effort.formula-understates-bandits",
                text="The error that UCB's estimates have exceeds the formula's by a fifth; ForcingBalance's stays "
                "within a tenth at every weight.",
                holds=excess(bandit) > 1.2 and all(excess(row) < 1.1 for row in results.dial),
                evidence=(
                    f"UCB {excess(bandit):.2f} times the formula; ForcingBalance at most "
                    f"{max(excess(row) for row in results.dial):.2f} times"
                ),
            ),
        ],
        tables=tables(results),
        figures=[
            Figure(
                key="effort-gain-and-loss",
                caption=(
                    f"What participants gain and researchers lose in the effort experiment ({experiment.citation}): "
                    "ForcingBalance at weights 0 to 1, UCB and Thompson sampling, all against the trial; thin lines "
                    "are one standard error. Dashed: the best shares, had the incentives been known beforehand."
                ),
                chart=dial_chart(results, named=(0.8, 0.9, 0.95, 0.99), relative=True).to_dict(),
            ),
            shares_figure(results, ITEM.name, (0.5, 0.9)),
        ],
    )


ITEM = Item(
    name="effort",
    title="18 incentives, 9,861 people",
    place="beyond the paper",
    claim=(
        "If the trade-off is worth its name, a real experiment with equal shares could have given its participants "
        "much of what a bandit gives them, and kept most of its accuracy."
    ),
    compute=compute,
    n_steps=26_200_000,
)
