"""Two trials that were run with equal shares, replayed on the dial: effort and flu shots  [beyond the paper]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.paper import real_experiment_report as report
from equipoise.paper.findings import Claim, Finding, Item
from equipoise.paper.readme_picture import SHOWN_WEIGHTS, readme_figure
from equipoise.paper.real_experiment_report import percent, rounded
from equipoise.paper.real_experiments import BANDIT, THOMPSON, replay_effort, replay_flu

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
            report.wider_bonuses(replay),
        ],
        differs=[
            "The paper has no such experiment. Rewards are Gaussian with the mean and standard deviation of each "
            "incentive; the presses themselves are skewed.",
            *report.limits(replay),
        ],
        claims=[
            Claim(
                key="effort.half-the-gain",
                text="With w = 0.9 participants get at least 45% of what UCB gains, for less than a fifth of its loss.",
                holds=half.gain.value > 0.45 * bandit.gain.value and half.loss.value < 0.2 * bandit.loss.value,
                evidence=f"gain {percent(half.relative_gain)} against {percent(bandit.relative_gain)}, error "
                f"{percent(half.loss)} against {percent(bandit.loss)}",
            ),
            Claim(
                key="effort.free-gain",
                text="With w = 0.5 there is more reward at the same accuracy: an error larger by less than one "
                "percent.",
                holds=free.gain.value > 3 * free.gain.standard_error and free.formula_loss.value < 0.01,
                evidence=f"gain {percent(free.relative_gain)}, standard error by formula {percent(free.formula_loss)}",
            ),
            report.smallest_regret(replay, EFFORT.name, up_to=0.99),
            report.better_ranking(replay, EFFORT.name, 0.9),
            Claim(
                key="effort.formula-understates-bandits",
                text="The error that UCB's estimates have exceeds the formula's by a fifth; ForcingBalance's stays "
                "within a tenth at every weight.",
                holds=report.excess(bandit) > 1.2 and all(report.excess(row) < 1.1 for row in replay.dial),
                evidence=f"UCB {report.excess(bandit):.2f} times the formula; ForcingBalance at most "
                f"{max(report.excess(row) for row in replay.dial):.2f} times",
            ),
        ],
        tables=report.tables(replay),
        figures=[
            report.dial_figure(
                replay, EFFORT.name, "effort", "incentives", named=(0.8, 0.9, 0.95, 0.99), relative=True
            ),
            report.shares_figure(replay, EFFORT.name, (0.5, 0.9)),
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
            f"shares ({experiment.citation}). With the dial at 0.95, {rounded(low.gain.value)} more of them would have "
            f"been vaccinated and the average error of an arm's rate would have been {percent(low.loss)} larger; at "
            f"0.98 {rounded(middle.gain.value)} more ({percent(middle.loss)}), at 0.99 {rounded(high.gain.value)} more "
            f"({percent(high.loss)}), at 0.995 {rounded(top.gain.value)} more ({percent(top.loss)}).",
            f"UCB would have had {rounded(bandit.gain.value)} more vaccinated with an error {percent(bandit.loss)} "
            f"larger, Thompson sampling {rounded(thompson.gain.value)} more with {percent(thompson.loss)}: for each "
            "there is a position of the dial that is better on both counts.",
            report.wider_bonuses(replay),
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
            *report.limits(replay),
        ],
        claims=[
            Claim(
                key="health.cheap-gain",
                text="At w = 0.95 more than 500 more people are vaccinated, for an error larger by less than 10%.",
                holds=low.gain.value > 500 and low.loss.value < 0.1,
                evidence=f"{low.gain.value:,.0f} more (s.e. {low.gain.standard_error:,.0f}), error {percent(low.loss)}",
            ),
            report.better_on_both("health.better-than-ucb", high, bandit),
            report.better_on_both("health.better-than-thompson", top, thompson),
            report.smallest_regret(replay, HEALTH.name, up_to=0.99),
            report.better_ranking(replay, HEALTH.name, 0.98),
        ],
        tables=report.tables(replay),
        figures=[
            readme_figure(replay),
            report.dial_figure(replay, HEALTH.name, "flu", "messages", named=(*SHOWN_WEIGHTS, 1.0), relative=False),
            report.shares_figure(replay, HEALTH.name, (0.95, 0.99)),
        ],
    )


HEALTH = Item(
    name="health",
    title="22 messages about a flu shot, 689,693 people",
    place="beyond the paper",
    claim="The same in a trial whose arms differ little: more people vaccinated at a small cost in accuracy, and "
    "better on both counts than a bandit.",
    compute=compute_health,
    n_steps=42_800_000,
)
