"""A trial of messages about a flu shot that was run with equal shares, played again on the dial  [beyond the paper]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts.gains_and_losses import DIAL, OTHER, START, GainsAndLossesRecord, WayToRun, gains_and_losses_chart
from equipoise.paper.findings import Claim, Figure, Finding
from equipoise.paper.item import Item
from equipoise.paper.real_experiment_report import (
    better_on_both,
    better_ranking,
    dial_chart,
    limits,
    percent,
    rounded,
    shares_figure,
    smallest_regret,
    tables,
    wider_bonuses,
)
from equipoise.paper.real_experiments import BANDIT, BONUS, THOMPSON, WIDER, Results, flu_experiment, replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.paper.item import Work
    from equipoise.paper.real_experiments import GainAndLoss

WEIGHTS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0)
HERO_WEIGHTS = (0.95, 0.98, 0.99, 0.995)
"""Few enough to be read at a glance, and far enough apart."""

REPLICATIONS, QUICK_REPLICATIONS = 40, 8
THOMPSON_REPLICATIONS, QUICK_THOMPSON_REPLICATIONS = 20, 6
"""Of Thompson sampling, which draws from a posterior of every arm at every step and is slow."""


def play(
    work: Work, reward_weights: Sequence[float] = WEIGHTS, bonuses: tuple[float, ...] = (BONUS, *WIDER)
) -> Results:
    """Play the 22 messages and the usual care with the 689,693 people they had, ten at a time."""
    played = replay(
        work,
        flu_experiment(),
        reward_weights,
        replications=QUICK_REPLICATIONS if work.quick else REPLICATIONS,
        thompson_replications=QUICK_THOMPSON_REPLICATIONS if work.quick else THOMPSON_REPLICATIONS,
        bonuses=bonuses,
    )
    return Results(played, played.compared())


def compute(work: Work) -> Finding:
    """Play the flu experiment again, compare, and draw the chart for the top of the README."""
    results = play(work)
    experiment = results.replay.experiment
    low, middle, high, top = (results.at(weight) for weight in HERO_WEIGHTS)
    bandit, thompson = results.of(BANDIT), results.of(THOMPSON)
    return Finding(
        item=ITEM.name,
        found=[
            f"{experiment.n_people:,} people were sent one of 22 texts about a flu shot, or none, in nearly equal "
            f"shares ({experiment.citation}). With the dial at 0.95, {rounded(low.gain.value)} more of them would have "
            f"been vaccinated and the average error of an arm's rate would have been {percent(low.loss)} larger; at "
            f"0.98 {rounded(middle.gain.value)} more ({percent(middle.loss)}), at 0.99 {rounded(high.gain.value)} more "
            f"({percent(high.loss)}), at 0.995 {rounded(top.gain.value)} more ({percent(top.loss)}).",
            f"UCB would have had {rounded(bandit.gain.value)} more vaccinated with an error {percent(bandit.loss)} "
            f"larger, Thompson sampling {rounded(thompson.gain.value)} more with {percent(thompson.loss)}: for each "
            "there is a position of the dial that is better on both counts.",
            wider_bonuses(results),
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
            *limits(results),
        ],
        claims=[
            Claim(
                key="health.cheap-gain",
                text="At w = 0.95 more than 500 more people are vaccinated, for an error larger by less than 10%.",
                holds=low.gain.value > 500 and low.loss.value < 0.1,
                evidence=(
                    f"{low.gain.value:,.0f} more (s.e. {low.gain.standard_error:,.0f}), error {percent(low.loss)}"
                ),
            ),
            better_on_both("health.better-than-ucb", high, bandit),
            better_on_both("health.better-than-thompson", top, thompson),
            smallest_regret(results, ITEM.name, up_to=0.99),
            better_ranking(results, ITEM.name, 0.98),
        ],
        tables=tables(results),
        figures=[
            hero_figure(results),
            Figure(
                key="health-gain-and-loss",
                caption=(
                    f"What participants gain and researchers lose in the flu experiment ({experiment.citation}): "
                    "ForcingBalance at weights 0 to 1, UCB and Thompson sampling, all against the trial; thin lines "
                    "are one standard error. Dashed: the best shares, had the messages been known beforehand."
                ),
                chart=dial_chart(results, named=(*HERO_WEIGHTS, 1.0), relative=False).to_dict(),
            ),
            shares_figure(results, ITEM.name, (0.95, 0.99)),
        ],
    )


def hero_figure(results: Results) -> Figure:
    """Return the chart at the top of the README: few points, large letters."""
    experiment = results.replay.experiment

    def words(row: GainAndLoss) -> str:
        return f"{rounded(row.gain.value)} more, error {row.loss.value:+.0%}"

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


ITEM = Item(
    name="health",
    title="22 messages about a flu shot, 689,693 people",
    place="beyond the paper",
    claim=(
        "The same in a trial whose arms differ little: more people vaccinated at a small cost in accuracy, and "
        "better on both counts than a bandit."
    ),
    compute=compute,
    n_steps=42_800_000,
)
