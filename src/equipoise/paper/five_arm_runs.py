"""Runs of ForcingBalance on the five arms that several figures are made from, and the steps they are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.paper.instances import FIVE_ARMS
from equipoise.policies import ForcingBalance

if TYPE_CHECKING:
    from equipoise.paper.work import Work
    from equipoise.runs import Runs

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
