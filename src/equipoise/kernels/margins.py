"""The pull that raises the trade-off most, and chances that follow the next few such pulls.

The trade-off is linear in means and stds, so with expected ones in their places it is the expected trade-off.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.rules import FLOOR, IMPORTANCE, Rule
from equipoise.kernels.tracking import RANDOM, WINDOWED

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray


@compiled
def best_pull(
    reward_weight: float,
    curiosity: float,
    per_arm: FloatArray,
    t: int,
    counts: FloatArray,
    mean: FloatArray,
    std: FloatArray,
) -> int:
    """Return the arm whose pull, the t-th, raises the trade-off most; one that lacks its floor comes first.

    A mean counts for `curiosity` more stds divided by the pulls: an arm that few pulls made look bad may be good.
    """
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    arm, most = -1, 0.0
    for i in range(counts.size):
        lack = floor[i] * t - counts[i]
        if lack > most:
            arm, most = i, lack
    if arm >= 0:
        return arm
    # Of w * reward - (1 - w) * error for t pulls, times t: what one pull more of an arm adds. The error's part is
    # taken at the middle of that pull, half a pull after the last: within 1% of the difference from four pulls on, and
    # finite at none.
    coefficient = 0.5 * (1.0 - reward_weight) * t * math.sqrt(t)
    arm, most = 0, -np.inf
    for i in range(counts.size):
        middle = counts[i] + 0.5
        hoped = mean[i] + curiosity * std[i] / middle
        gain = reward_weight * hoped + coefficient * importance[i] * std[i] / (middle * math.sqrt(middle))
        if gain > most:
            arm, most = i, gain
    return arm


@compiled
def follow_margins(
    rule: Rule,
    per_arm: FloatArray,
    t: int,
    assigned: IntArray,
    mean: FloatArray,
    std: FloatArray,
    counts: FloatArray,
    probability: FloatArray,
) -> int:
    """Return the best pull at step t; or with windowed tracking `RANDOM`, after writing the chances of each arm.

    Chances follow how often an arm is among the next `window` best pulls. `counts` is a row of scratch.
    """
    for i in range(counts.size):
        counts[i] = assigned[i]
    if rule.tracking != WINDOWED:
        return best_pull(rule.reward_weight, rule.exploration, per_arm, t, counts, mean, std)
    window = int(rule.window)
    for i in range(counts.size):
        probability[i] = rule.mixing / counts.size
    for k in range(window):
        arm = best_pull(rule.reward_weight, rule.exploration, per_arm, t + k, counts, mean, std)
        counts[arm] += 1.0
        probability[arm] += (1.0 - rule.mixing) / window
    return RANDOM
