"""The command `equipoise demo`: watch an experiment run."""

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.options import option

Steps = Annotated[
    int | None,
    typer.Option(
        help="How many people take part; 9,861 by default, as in the real one.",
        min=1,
        max=1_000_000,
        show_default=False,
        metavar="N",
    ),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same run.", min=0, max=2**63 - 1, metavar="N")]
Weight = Annotated[float, typer.Option(help="The dial: 0 is accuracy only, 1 reward only.", metavar="W")]
ChartFile = Annotated[Path | None, option("--out", "Output", "FILE", "Chart file; demo-output/demo.html by default.")]
Stay = Annotated[bool, option("--stay", "Output", None, "Keep the service running at the end, until Ctrl-C.")]


def demo(
    steps: Steps = None, seed: Seed = 1, reward_weight: Weight = 0.9, out: ChartFile = None, stay: Stay = False
) -> None:
    """Watch a live experiment with 18 real incentives, through the service: people come, and answer late or never."""
    from equipoise.demo import run

    raise typer.Exit(run(steps=steps, seed=seed, reward_weight=reward_weight, out=out, stay=stay))
