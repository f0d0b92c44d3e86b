"""The picture at the top of the README: `python -m equipoise.paper.readme_picture docs/images` draws it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from equipoise.charts.gains_and_losses import DIAL, OTHER, START, GainsAndLossesRecord, WayToRun, gains_and_losses_chart
from equipoise.paper.findings import Figure
from equipoise.paper.html_report import write_figure
from equipoise.paper.instances import Work
from equipoise.paper.real_experiments import BANDIT, BONUS, THOMPSON, GainAndLoss, Replay, flu_replications, replay_flu
from equipoise.policies import PooledBalance

SHOWN = (0.9, 0.7, 0.5, 0.25)
"""Shares of the information to keep: few enough to read at a glance, and far enough apart."""


class Picture(NamedTuple):
    """What the picture shows: the flu trial played again, and positions of the dial compared with it."""

    replay: Replay
    dial: tuple[GainAndLoss, ...]


def readme_picture(work: Work, replay: Replay) -> Picture:
    """Play the positions of the dial on the flu trial, and compare each with the trial as it was run."""
    policies = [PooledBalance(information_kept=share) for share in SHOWN]
    horizon = replay.experiment.n_pulls
    runs = work.simulate(policies, replay.experiment.arms, horizon, flu_replications(work)[0], checkpoints=[horizon])
    names = (f"keep {share:.0%} of the information" for share in SHOWN)
    return Picture(replay, tuple(replay.compare(runs.select(policies=[k]), name) for k, name in enumerate(names)))


def readme_figure(picture: Picture) -> Figure:
    """Return the chart at the top of the README: few points, large letters."""
    replay, dial = picture
    experiment = replay.experiment

    def way(kind: str, name: str, row: GainAndLoss, *, name_left: bool = False) -> WayToRun:
        # An error shrinks with the square root of the number of people.
        people = (1 + row.loss.value) ** 2 - 1
        words = f"{row.gain.rounded} more, {people:+.0%} people"
        return WayToRun(kind, name, words, row.gain.value, people, name_left=name_left)

    ways = [
        WayToRun(START, "A/B test", "the trial as it was run, with equal shares", 0.0, 0.0),
        *(way(DIAL, row.policy, row) for row in dial),
        way(OTHER, "UCB bandit", replay.of(BANDIT)),
        way(OTHER, THOMPSON, replay.of(THOMPSON), name_left=True),
    ]
    record = GainsAndLossesRecord(
        title="More people vaccinated than with a bandit, and better estimates",
        subtitle=[
            f"22 texts about a flu shot, or none: a trial with {experiment.n_people:,} people ({experiment.citation}), "
            "simulated.",
            "Equipoise has a dial: how much of the information to keep. Each blue point is one position.",
        ],
        ways=tuple(ways),
        gain_title="What participants gain: people vaccinated, more than in the trial",
        gain_format="+,.0f",
        best_gain=np.array([]),
        best_loss=np.array([]),
        loss_title="What it costs: how many more people the same accuracy takes than in the trial",
    )
    return Figure(
        key="hero",
        caption=f"A trial of messages about a flu shot ({experiment.citation}), played again: an A/B test and each "
        "bandit are one point, Equipoise is the curve from which an experimenter chooses.",
        chart=gains_and_losses_chart(record, big=True).to_dict(),
    )


def main(arguments: list[str]) -> None:
    """Write the picture as SVG and PNG."""
    if len(arguments) != 1:
        sys.exit("usage: python -m equipoise.paper.readme_picture FOLDER")
    work = Work()
    picture = readme_picture(work, replay_flu(work, (0.98,), (BONUS,)))  # a replay has at least one weight
    write_figure(readme_figure(picture), Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
