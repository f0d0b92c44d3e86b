"""The command `equipoise demo`: watch a policy learn."""

from pathlib import Path
from typing import Annotated

import typer

from equipoise.cli.options import option

Steps = Annotated[int, typer.Option(help="How many pulls to play.", min=1)]
Seed = Annotated[int, typer.Option(help="The same seed gives the same run.", min=0)]
Weight = Annotated[float, typer.Option(help="The dial: 0 is accuracy only, 1 reward only.")]
ChartFile = Annotated[Path | None, option("--out", "Output", "FILE", "Chart file; demo-output/demo.html by default.")]


def demo(steps: Steps = 20_000, seed: Seed = 1, reward_weight: Weight = 0.9, out: ChartFile = None) -> None:
    """Watch ForcingBalance learn the five arms of the paper and find their best shares."""
    from equipoise.demo import run

    raise typer.Exit(run(steps=steps, seed=seed, reward_weight=reward_weight, out=out))
