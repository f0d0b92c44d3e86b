"""The allocation each policy wants, given what it has seen so far  [Fig. 2 line 7, Eq. 5, App. C]."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.kernels import compiled
from equipoise.kernels.pooling import believe
from equipoise.kernels.rules import (
    ALLOCATION,
    BALANCE,
    CONFIDENCE_BALANCE,
    FIXED,
    FLOOR,
    IMPORTANCE,
    POOLED_BALANCE,
    UCB_EXPLORE,
    VARIANCE_SHARES,
    Rule,
)
from equipoise.kernels.shares import COLD, allocate

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray


@compiled
def solve_for(
    rule: Rule, per_arm: FloatArray, mean: FloatArray, std: FloatArray, work: FloatArray, target: FloatArray
) -> None:
    """Write the optimal allocation for these means and standard deviations."""
    importance, floor = per_arm[IMPORTANCE], per_arm[FLOOR]
    allocate(mean, std, importance, floor, rule.reward_weight, rule.power, COLD, work, target)


@compiled
def write_target(
    rule: Rule,
    per_arm: FloatArray,
    t: int,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    target: FloatArray,
) -> bool:
    """Write the wanted allocation and return True, or return False for a policy that wants none."""
    n_arms = mean.size
    believed_mean, believed_std = work[-2], work[-1]
    if rule.kind == FIXED:
        for i in range(n_arms):
            target[i] = per_arm[ALLOCATION, i]
        return True
    if rule.kind == VARIANCE_SHARES:
        total = 0.0
        for i in range(n_arms):
            target[i] = std[i] * std[i]
            total += target[i]
        for i in range(n_arms):
            target[i] = target[i] / total if total > 0.0 else 1.0 / n_arms
        return True
    if rule.kind == BALANCE:
        for i in range(n_arms):
            believed_mean[i], believed_std[i] = mean[i], std[i]
    elif rule.kind == POOLED_BALANCE:
        believe(rule.pooling, rule.caution, pulls, mean, std, work, believed_mean, believed_std)
    elif rule.kind == CONFIDENCE_BALANCE:
        # Prop. 1: the radii hold for all arms and steps at once with probability 1 - failure_probability.
        log_inverse_failure = math.log(4.0 * n_arms * t * (t + 1.0)) - math.log(rule.failure_probability)
        for i in range(n_arms):
            believed_mean[i] = mean[i] + rule.scale * math.sqrt(log_inverse_failure / (2.0 * pulls[i]))
            radius = rule.scale * math.sqrt(2.0 * (math.log(2.0) + log_inverse_failure) / pulls[i])
            believed_std[i] = max(rule.smallest_std, std[i] + rule.std_bound * radius)
    elif rule.kind == UCB_EXPLORE:
        # Hoeffding's radius for n pulls is width / sqrt(n): the same for arms of any variance.
        width = rule.scale * math.sqrt((math.log(2.0) - math.log(rule.failure_probability)) / 2.0)
        for i in range(n_arms):
            believed_mean[i] = mean[i] + width / math.sqrt(pulls[i])
            believed_std[i] = width / math.sqrt(rule.horizon)
    else:
        return False
    solve_for(rule, per_arm, believed_mean, believed_std, work, target)
    return True
