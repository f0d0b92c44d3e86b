"""The picture at the top of the README: `python -m equipoise.paper.readme_picture docs/images` draws it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from equipoise.charts.gains_and_losses import DIAL, OTHER, START, GainsAndLossesRecord, WayToRun, gains_and_losses_chart
from equipoise.paper.findings import Figure
from equipoise.paper.html_report import write_figure
from equipoise.paper.instances import Work
from equipoise.paper.real_experiments import BANDIT, BONUS, THOMPSON, GainAndLoss, Replay, replay_flu

SHOWN_WEIGHTS = (0.95, 0.98, 0.99, 0.995)
"""Few enough to read at a glance, and far enough apart."""


def readme_replay() -> Replay:
    """Replay the part of the flu trial that the picture shows; it takes about ten seconds."""
    return replay_flu(Work(), SHOWN_WEIGHTS, (BONUS,))


def readme_figure(replay: Replay) -> Figure:
    """Return the chart at the top of the README: few points, large letters."""
    experiment = replay.experiment

    def words(row: GainAndLoss) -> str:
        return f"{row.gain.rounded} more, error {row.loss.value:+.0%}"

    ways = [
        WayToRun(START, "A/B test", "the trial as it was run, with equal shares", 0.0, 0.0),
        *(
            WayToRun(DIAL, f"Equipoise at {weight:g}", words(row), row.gain.value, row.loss.value)
            for weight in SHOWN_WEIGHTS
            for row in [replay.at(weight)]
        ),
        *(
            WayToRun(OTHER, name, words(row), row.gain.value, row.loss.value, name_left=name == THOMPSON)
            for name, row in (("UCB bandit", replay.of(BANDIT)), (THOMPSON, replay.of(THOMPSON)))
        ),
    ]
    record = GainsAndLossesRecord(
        title="More people vaccinated than with a bandit, and better estimates",
        subtitle=[
            f"22 texts about a flu shot, or none: a trial with {experiment.n_people:,} people ({experiment.citation}), "
            "simulated.",
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
        caption=f"A trial of messages about a flu shot ({experiment.citation}), played again: an A/B test and each "
        "bandit are one point, Equipoise is the curve from which an experimenter chooses.",
        chart=gains_and_losses_chart(record, big=True).to_dict(),
    )


def main(arguments: list[str]) -> None:
    """Write the picture as SVG and PNG."""
    if len(arguments) != 1:
        sys.exit("usage: python -m equipoise.paper.readme_picture FOLDER")
    write_figure(readme_figure(readme_replay()), Path(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
