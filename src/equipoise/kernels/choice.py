"""The next decision of any built-in policy: a pure function of its rule and the statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.kernels import compiled
from equipoise.kernels.margins import follow_margins
from equipoise.kernels.pooling import believe
from equipoise.kernels.posterior import draw_posterior, state_key
from equipoise.kernels.rules import (
    EPSILON_GREEDY,
    POOLED_BALANCE,
    THOMPSON_BALANCE,
    THOMPSON_SAMPLING,
    UCB,
    UNIFORM,
    Rule,
)
from equipoise.kernels.targets import solve_for, write_target
from equipoise.kernels.tracking import DIFFERENCE, RANDOM, WINDOWED, track

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray


@compiled
def _lacks_rewards(rule: Rule, pulls: IntArray) -> bool:
    for i in range(pulls.size):
        if pulls[i] < rule.rewards_needed:
            return True
    return False


@compiled
def forced_arm(rule: Rule, t: int, assigned: IntArray, pulls: IntArray) -> int:
    """Return the arm that must be pulled whatever the estimates say, or -1.

    Until every arm has the rewards its estimates need, arms take turns; after that an arm is forced while it has
    fewer than forcing * sqrt(t) pulls [Fig. 2 line 4]. Both count assignments, so that rewards on their way do not
    draw more people to the same arm.
    """
    fewest = 0
    for i in range(assigned.size):
        if assigned[i] < assigned[fewest]:
            fewest = i
    if _lacks_rewards(rule, pulls) or assigned[fewest] < rule.forcing * math.sqrt(t):
        return fewest
    return -1


@compiled
def _force_at_random(
    rule: Rule, arm: int, t: int, assigned: IntArray, pulls: IntArray, target: FloatArray, probability: FloatArray
) -> None:
    """Write chances that lead to what is forced, yet leave every arm possible, so that nobody can know the next one.

    Until every arm has the rewards it needs, that is towards equal numbers of those who come (since arms changed);
    after that towards the arm that has too few.
    """
    if _lacks_rewards(rule, pulls):
        for i in range(target.size):
            target[i] = 1.0 / target.size
        track(WINDOWED, rule.window, rule.mixing, t, target, assigned, probability)
        return
    for i in range(probability.size):
        probability[i] = rule.mixing / probability.size
    probability[arm] += 1.0 - rule.mixing


@compiled
def _largest(values: FloatArray) -> int:
    arm = 0
    for i in range(values.size):
        if values[i] > values[arm]:
            arm = i
    return arm


@compiled
def decide(
    rule: Rule,
    per_arm: FloatArray,
    t: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    target: FloatArray,
    probability: FloatArray,
) -> tuple[int, bool]:
    """Return (arm, forced), where the arm is `RANDOM` if it is to be drawn from the probabilities written."""
    return decide_since(rule, per_arm, t, assigned, pulls, mean, std, t, assigned, work, target, probability)


@compiled
def decide_since(
    rule: Rule,
    per_arm: FloatArray,
    t: int,
    assigned: IntArray,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    tracked_t: int,
    tracked: IntArray,
    work: FloatArray,
    target: FloatArray,
    probability: FloatArray,
) -> tuple[int, bool]:
    """Decide like `decide`, but track by the assignments since some step only; all else counts every one."""
    n_arms = assigned.size
    arm = forced_arm(rule, t, assigned, pulls)
    if arm >= 0 and rule.kind == POOLED_BALANCE and rule.tracking == WINDOWED:
        _force_at_random(rule, arm, tracked_t, tracked, pulls, work[0], probability)
        return RANDOM, True
    if arm >= 0:
        return arm, True
    if rule.kind == UNIFORM:
        for i in range(n_arms):
            probability[i] = -float(assigned[i])
        return _largest(probability), False
    if rule.kind == UCB:
        log_t = math.log(t)
        for i in range(n_arms):
            probability[i] = mean[i] + rule.scale * math.sqrt(log_t / assigned[i])
        return _largest(probability), False
    if rule.kind == EPSILON_GREEDY:
        for i in range(n_arms):
            probability[i] = rule.exploration / n_arms
        probability[_largest(mean)] += 1.0 - rule.exploration
        return RANDOM, False
    if rule.kind == THOMPSON_SAMPLING or rule.kind == THOMPSON_BALANCE:
        key = state_key(t, mean, std, work[0])
        believed_mean, believed_std = work[-2], work[-1]
        for i in range(n_arms):
            probability[i] = 0.0
        for k in range(rule.draws):
            for i in range(n_arms):
                believed_mean[i], believed_std[i] = draw_posterior(key, k, i, pulls, mean, std)
            if rule.kind == THOMPSON_SAMPLING:
                arm = _largest(believed_mean)
            else:
                solve_for(rule, per_arm, believed_mean, believed_std, work, target)
                arm = track(rule.tracking, rule.window, rule.mixing, tracked_t, target, tracked, probability)
            probability[arm] += 1.0 / rule.draws
        return RANDOM, False
    if rule.kind == POOLED_BALANCE and rule.tracking != DIFFERENCE:
        believed_mean, believed_std = work[-2], work[-1]
        believe(rule.pooling, rule.caution, pulls, mean, std, work, believed_mean, believed_std)
        arm = follow_margins(rule, per_arm, tracked_t, tracked, believed_mean, believed_std, work[0], probability)
        return arm, False
    write_target(rule, per_arm, t, pulls, mean, std, work, target)
    return track(rule.tracking, rule.window, rule.mixing, tracked_t, target, tracked, probability), False
