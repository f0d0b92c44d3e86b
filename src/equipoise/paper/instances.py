"""The arms that the paper's experiments are played on  [Sect. 2, Sect. 5, App. C]."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from equipoise.arms import Gaussian
from equipoise.policies import ForcingBalance

if TYPE_CHECKING:
    from equipoise._types import FloatArray
    from equipoise.paper.item import Work
    from equipoise.simulation.runs import Runs

FIGURE_1 = Gaussian(mean=[1.0, 2.0], std=[1.0, 1.0])
"""Two arms that differ in their mean alone  [Fig. 1]."""

FIVE_ARMS = Gaussian(mean=[1.0, 1.5, 2.0, 4.0, 5.0], std=np.sqrt([0.05, 0.1, 0.2, 4.0, 0.5]))
"""The synthetic setting of Sect. 5.1: the best arm and the noisiest one are different arms  [Fig. 4]."""

TWO_ARMS = (
    Gaussian(mean=[1.5, 1.0], std=[1.0, 1.0]),
    Gaussian(mean=[2.0, 1.0], std=np.sqrt([1.0, 2.0])),
    Gaussian(mean=[1.1, 1.0], std=np.sqrt([0.1, 2.0])),
    Gaussian(mean=[3.0, 1.0], std=np.sqrt([0.1, 0.1])),
)
"""The four settings of App. C, to be played with weight 0.4  [Table 1]."""


def treefrog_surrogate() -> Gaussian:
    """Return 64 arms made to have the aggregates that the paper prints of its educational experiment.

    The data of that experiment were never published: this is a surrogate, derived in `equipoise.paper.surrogate`.

    Examples
    --------
    >>> arms = treefrog_surrogate()
    >>> arms.n_arms, arms.mean.max(), arms.std.max()
    (64, np.float64(12.3352), np.float64(4.292))
    """
    columns = read_columns("treefrog64_surrogate.csv", ("mean", "std"))
    return Gaussian(mean=columns["mean"], std=columns["std"])


def read_columns(name: str, columns: tuple[str, ...]) -> dict[str, FloatArray]:
    """Return columns of numbers of a CSV file that comes with this package; lines that start with # are comments."""
    import csv

    text = files("equipoise.paper").joinpath("data", name).read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    return {column: np.array([float(row[column]) for row in rows]) for column in columns}


WEIGHT = 0.9
REPLICATIONS = 200
"""As many as the paper averages over."""

TRACKED = ForcingBalance(reward_weight=WEIGHT, forcing=1.0)
SAMPLED = ForcingBalance(reward_weight=WEIGHT, forcing=1.0, tracking="sample")

LONG = 100_000
SHORT = 20_000
"""Up to here for the rule that draws arms at random, which is solved from scratch at every step and slow."""

STEPS = (50, 200, 1_000, 5_000, 20_000)
"""Where an independent simulation gives the rescaled regret."""


def checkpoints(horizon: int) -> list[int]:
    """Return steps evenly spaced on a log scale, with those that numbers and claims need.

    Nothing is looked at before the fifth pull: an arm without pulls has an infinite error.
    """
    rounds = [*range(5, 51, 5), *(50 * 2**k for k in range(11)), *STEPS]
    steps = np.union1d(np.rint(np.geomspace(5, LONG, 110)).astype(int), [*rounds, LONG])
    return [int(step) for step in steps if step <= horizon]


def tracked_runs(work: Work) -> Runs:
    """Return the long runs of ForcingBalance as the paper has it."""
    return work.simulate(TRACKED, FIVE_ARMS, LONG, REPLICATIONS, checkpoints=checkpoints(LONG))


def tracked_and_sampled_runs(work: Work) -> Runs:
    """Return shorter runs with both ways to follow the target."""
    return work.simulate([TRACKED, SAMPLED], FIVE_ARMS, SHORT, REPLICATIONS, checkpoints=checkpoints(SHORT))
