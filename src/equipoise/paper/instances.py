"""The arms of the paper's experiments, and the simulations that several items share  [Sect. 2, Sect. 5, App. C]."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.arms import Arms, Gaussian
from equipoise.policies import ForcingBalance, Policy
from equipoise.simulation import simulate
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
    """Return 64 arms built to match the aggregates that the paper prints of its educational experiment.

    The data of that experiment were never published: this is a surrogate, derived in `equipoise.paper.surrogate`.

    Examples
    --------
    >>> arms = treefrog_surrogate()
    >>> arms.n_arms, arms.mean.max(), arms.std.max()
    (64, np.float64(12.3352), np.float64(4.292))
    """
    rows = read_rows("treefrog64_surrogate.csv")
    return Gaussian(mean=column_of(rows, "mean"), std=column_of(rows, "std"))


def read_rows(name: str) -> list[dict[str, str]]:
    """Read a CSV file that comes with this package; lines that start with # are comments."""
    text = files("equipoise.paper").joinpath("data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))


def column_of(rows: list[dict[str, str]], name: str) -> FloatArray:
    """Return a column of numbers."""
    return np.array([float(row[name]) for row in rows])


SEED = 2017
"""Seed of every simulation here: the year of the paper, not tuned."""


class Work:
    """Simulate for the items, each simulation only once.

    Parameters
    ----------
    quick : bool
        Whether to take a tenth of the replications, at least 20.
    workers : int, optional
        Threads; one per core by default.
    treefrog : Gaussian, optional
        The 64 arms of the educational experiment, if you have them.

    Attributes
    ----------
    n_steps : int
        Steps simulated so far.
    on_progress : function of int
        Called with the number of steps simulated so far.
    """

    def __init__(self, *, quick: bool = False, workers: int | None = None, treefrog: Gaussian | None = None) -> None:
        self.quick, self.workers, self.given_treefrog = quick, workers, treefrog
        self.n_steps = 0
        self.on_progress: Callable[[int], None] = lambda _: None
        self._played: dict[str, Runs] = {}

    def replications(self, full: int) -> int:
        """Return the number of replications to play, given that of the full reproduction."""
        return min(full, max(20, full // 10)) if self.quick else full

    def simulate(
        self,
        policies: Policy | Sequence[Policy],
        arms: Arms,
        horizon: int,
        replications: int,
        *,
        checkpoints: Sequence[int] | None = None,
    ) -> Runs:
        """Return runs as `equipoise.simulate` does; `replications` are those of the full reproduction."""
        # One policy at a time: another item may need it alone, or with others.
        chosen = [policies] if isinstance(policies, Policy) else policies
        options = {"horizon": horizon, "replications": self.replications(replications), "checkpoints": checkpoints}
        return Runs.stacked([self._play(policy, arms, **options) for policy in chosen])

    def _play(self, policy: Policy, arms: Arms, **options: Any) -> Runs:
        key = json.dumps([policy.to_dict(), arms.to_dict(), options])
        if key not in self._played:
            before = self.n_steps
            self._played[key] = simulate(
                policy,
                arms,
                seed=SEED,
                workers=self.workers,
                progress=lambda done, _: self.on_progress(before + done),
                **options,
            )
            self.n_steps = before + options["horizon"] * options["replications"]
        return self._played[key]


WEIGHT = 0.9
REPLICATIONS = 200
"""The number that the paper averages over."""

TRACKED = ForcingBalance(reward_weight=WEIGHT, forcing=1.0)
SAMPLED = ForcingBalance(reward_weight=WEIGHT, forcing=1.0, tracking="sample")

LONG = 100_000
SHORT = 20_000
"""Horizon of the rule that draws arms at random, which solves from scratch at every step and is slow."""

STEPS = (50, 200, 1_000, 5_000, 20_000)
"""Steps at which an independent simulation provides the rescaled regret."""


def checkpoints(horizon: int) -> list[int]:
    """Return steps evenly spaced on a log scale, including those that numbers and claims need.

    They start at the fifth pull: an arm without pulls has an infinite error.
    """
    rounds = [*range(5, 51, 5), *(50 * 2**k for k in range(11)), *STEPS]
    steps = np.union1d(np.rint(np.geomspace(5, LONG, 110)).astype(int), [*rounds, LONG])
    return [int(step) for step in steps if step <= horizon]


def tracked_runs(work: Work) -> Runs:
    """Return the long runs of the paper's ForcingBalance."""
    return work.simulate(TRACKED, FIVE_ARMS, LONG, REPLICATIONS, checkpoints=checkpoints(LONG))


def tracked_and_sampled_runs(work: Work) -> Runs:
    """Return shorter runs with both tracking rules."""
    return work.simulate([TRACKED, SAMPLED], FIVE_ARMS, SHORT, REPLICATIONS, checkpoints=checkpoints(SHORT))
