"""Four ways to turn a wanted allocation into the next pull  [Fig. 2 line 8, App. C; the windowed one is ours]."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray


DIFFERENCE, RATIO, SAMPLE, WINDOWED = 0, 1, 2, 3
MARGINAL = 4
"""Needs no target, but what is believed of the arms; `kernels.margins` has it."""
RANDOM = -1
"""Returned in place of an arm when the arm is to be drawn from the probabilities."""


@compiled
def track(
    tracking: int,
    window: float,
    mixing: float,
    t: int,
    target: FloatArray,
    assigned: IntArray,
    probability: FloatArray,
) -> int:
    """Return the arm to pull at step t, or `RANDOM` after writing the probabilities it is to be drawn with."""
    if tracking == SAMPLE:
        for i in range(target.size):
            probability[i] = target[i]
        return RANDOM
    if tracking == WINDOWED:
        # What each arm still lacks if the target is to be met `window` pulls from now; these add up to at least window.
        total = 0.0
        for i in range(target.size):
            lack = (t - 1 + window) * target[i] - assigned[i]
            probability[i] = lack if lack > 0.0 else 0.0
            total += probability[i]
        for i in range(target.size):
            probability[i] = mixing / target.size + (1.0 - mixing) * probability[i] / total
        return RANDOM
    arm = 0
    best = -np.inf
    for i in range(target.size):
        frequency = assigned[i] / max(t - 1, 1)
        if tracking == DIFFERENCE:
            score = target[i] - frequency
        elif frequency > 0.0:
            score = target[i] / frequency
        else:
            score = np.inf if target[i] > 0.0 else 0.0
        if score > best:
            best = score
            arm = i
    return arm


@compiled
def draw(probability: FloatArray, uniform: float) -> int:
    """Return the arm on which a uniform number in [0, 1) falls; never one of probability 0."""
    arm = 0
    below = 0.0
    for i in range(probability.size):
        if probability[i] > 0.0:
            arm = i
            below += probability[i]
            if uniform < below:
                break
    return arm
