"""Compute the next decision of any built-in policy, as a pure function of its rule and the statistics.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.information_solver import WORK_ROWS as INFORMATION_ROWS
from equipoise.kernels.information_solver import allocate_for_information
from equipoise.kernels.pooling import believe
from equipoise.kernels.posterior import (
    add_chances_to_be_best,
    best_rate,
    chance_of_small_difference,
    describe,
    draw_beliefs,
    expect,
    keep_floors,
)
from equipoise.kernels.random import draw_posterior, state_key
from equipoise.kernels.rules import (
    ALLOCATION,
    AVERAGE,
    BALANCE,
    BEST_ARM,
    CONFIDENCE_BALANCE,
    DIFFERENCE,
    EPSILON_GREEDY,
    EVERY_ARM,
    FIXED,
    FLOOR,
    IMPORTANCE,
    MARGINAL,
    NEYMAN_RATE,
    PER_ARM_ROWS,
    POOLED_BALANCE,
    POST_DIFF,
    SAMPLE,
    STATED_WEIGHT,
    STATIC_RATE,
    THOMPSON_BALANCE,
    THOMPSON_SAMPLING,
    UCB,
    UCB_EXPLORE,
    UNIFORM,
    VARIANCE_SHARES,
    WINDOWED,
    Rule,
)
from equipoise.kernels.solver import COLD, allocate

RANDOM = -1
"""Returned instead of an arm when the arm is to be drawn from the probabilities."""

MOST_AHEAD = 100.0
"""What the window of `PooledBalance` grows to, whose every pull is looked for."""

_STANDARD_ERRORS = 2.0
"""By how much beliefs are changed where information is kept about single arms; see `allow_for_noise`."""

_FLOOR_ROWS = INFORMATION_ROWS
WORK_ROWS = _FLOOR_ROWS + PER_ARM_ROWS + 5
"""Rows of scratch a decision needs: those of `kernels.information_solver`, the numbers per arm with floors that decay,
two of posteriors, the target, and the means and stds to solve for."""

MARGIN_ROWS = 6
"""Rows of scratch `follow_margins` needs."""


@inlined
def is_forced(rule: Rule, t: int, fewest_assigned: int, fewest_rewards: int) -> bool:
    """Return whether an arm must be pulled at step t, whatever the estimates say.

    Until every arm has the rewards its estimates need, arms take turns; after that an arm is forced while it has fewer
    than forcing * sqrt(t) pulls [Fig. 2 line 4]. This counts assignments, so that pending rewards do not draw more
    units to the same arm.
    """
    return fewest_rewards < rule.rewards_needed or fewest_assigned < rule.forcing * math.sqrt(t)


@inlined
def has_growing_window(rule: Rule) -> bool:
    """Return whether the window grows; experiments that began before version 4 of the kernels keep theirs constant."""
    return rule.version >= 4 and rule.window_growth > 0.0


@inlined
def window_at(rule: Rule, t: int) -> float:
    """Return the window at step t: the stated one, until a share of the steps so far is longer.

    With a constant window most arms have no more than their part of `mixing` at most steps, which leaves estimates from
    logged probabilities noisy for ever. One that grows moves each arm's share by a part of it that stays as small.
    """
    if not has_growing_window(rule):
        return rule.window
    grown = rule.window_growth * t
    if rule.kind == POOLED_BALANCE:
        grown = min(grown, MOST_AHEAD)
    return max(rule.window, grown)


@inlined
def _fewest(counts: IntArray) -> int:
    """Return the position of the smallest count, the first on a tie."""
    arm = 0
    for i in range(counts.size):
        if counts[i] < counts[arm]:
            arm = i
    return arm


@compiled
def forced_arm(rule: Rule, t: int, assigned: IntArray, pulls: IntArray) -> int:
    """Return the arm to force, the first of those assigned least, or -1."""
    arm = _fewest(assigned)
    return arm if is_forced(rule, t, assigned[arm], pulls[_fewest(pulls)]) else -1


@compiled
def _force_at_random(
    rule: Rule, arm: int, t: int, assigned: IntArray, pulls: IntArray, target: FloatArray, probability: FloatArray
) -> None:
    """Write probabilities that favour the forced arm but leave every arm possible, so that the next cannot be guessed.

    Until every arm has the rewards it needs, they favour equal numbers of units per arm (since the set of arms
    changed); after that, the arm that has too few.
    """
    if pulls[_fewest(pulls)] < rule.rewards_needed:
        for i in range(target.size):
            target[i] = 1.0 / target.size
        track(WINDOWED, window_at(rule, t), rule.mixing, t, target, assigned, probability)
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
    tracked_t: int,
    tracked: IntArray,
    work: FloatArray,
    probability: FloatArray,
) -> tuple[int, bool, float]:
    """Return (arm, forced, weight), where the arm is `RANDOM` if it is to be drawn from the probabilities written.

    The weight is the one solved for to keep the stated information, or NaN if none was.

    The next arm is decided only here: `policies.compiled` calls this for `Bandit` and for live experiments in Python,
    `kernels.assignment` for live experiments, and `kernels.play` for simulations, after a faster copy of some cases.

    Tracking compares a target with `tracked`, the assignments since the set of arms changed, at step `tracked_t`; all
    else counts every assignment. If the set never changed they equal `assigned` and `t`.
    """
    n_arms, target = assigned.size, work[-3]
    arm = forced_arm(rule, t, assigned, pulls)
    if arm >= 0 and rule.kind == POOLED_BALANCE and rule.tracking == WINDOWED:
        _force_at_random(rule, arm, tracked_t, tracked, pulls, work[0], probability)
        return RANDOM, True, np.nan
    if arm >= 0:
        return arm, True, np.nan
    if rule.kind == UNIFORM:
        for i in range(n_arms):
            probability[i] = -float(assigned[i])
        return _largest(probability), False, np.nan
    if rule.kind == UCB:
        log_t = math.log(t)
        for i in range(n_arms):
            probability[i] = mean[i] + rule.scale * math.sqrt(log_t / assigned[i])
        return _largest(probability), False, np.nan
    if rule.kind == EPSILON_GREEDY:
        for i in range(n_arms):
            probability[i] = rule.exploration / n_arms
        probability[_largest(mean)] += 1.0 - rule.exploration
        return RANDOM, False, np.nan
    if rule.floor_decay > 0.0:
        stated, per_arm = per_arm, work[_FLOOR_ROWS : _FLOOR_ROWS + PER_ARM_ROWS]
        decay_floors(rule.floor_decay, t, stated, per_arm)
    if rule.kind == THOMPSON_SAMPLING or rule.kind == THOMPSON_BALANCE:
        key = state_key(t, mean, std, work[0])
        believed_mean, believed_std, first, second = work[-2], work[-1], work[-4], work[-5]
        success = describe(pulls, mean, std, first, second) if rule.version >= 3 else 0.0
        for i in range(n_arms):
            probability[i] = 0.0
        for k in range(rule.draws):
            for i in range(n_arms):
                if rule.version >= 3:
                    believed_mean[i], believed_std[i] = draw_beliefs(
                        key, k, i, success, pulls[i], mean[i], first[i], second[i]
                    )
                else:
                    believed_mean[i], believed_std[i] = draw_posterior(key, k, i, pulls, mean, std)
            if rule.kind == THOMPSON_SAMPLING:
                arm = _largest(believed_mean)
            else:
                solve_for(rule, per_arm, believed_mean, believed_std, 1.0, work, target)
                window = window_at(rule, tracked_t)
                arm = track(rule.tracking, window, rule.mixing, tracked_t, target, tracked, probability)
            probability[arm] += 1.0 / rule.draws
        if rule.kind == THOMPSON_SAMPLING:
            keep_floors(per_arm[FLOOR], probability)
        return RANDOM, False, np.nan
    if rule.kind == POST_DIFF or rule.kind == STATIC_RATE or rule.kind == NEYMAN_RATE:
        _mix_with_posterior_sampling(rule, t, pulls, mean, std, work, probability)
        return RANDOM, False, np.nan
    by_weight = rule.criterion == STATED_WEIGHT or rule.criterion == AVERAGE
    if rule.kind == POOLED_BALANCE and rule.tracking != DIFFERENCE and by_weight:
        believed_mean, believed_std = work[-2], work[-1]
        unit = _believe(rule, pulls, mean, std, work, believed_mean, believed_std)
        weight = rule.reward_weight
        if rule.criterion == AVERAGE:
            weight = solve_for(rule, per_arm, believed_mean, believed_std, unit, work, target)
        arm = follow_margins(rule, weight, per_arm, tracked_t, tracked, believed_mean, believed_std, work, probability)
        return arm, False, weight if rule.criterion == AVERAGE else np.nan
    _, weight = _write_target(rule, per_arm, t, pulls, mean, std, work, target)
    # Margins exist for a weight only: a target is followed by its differences.
    tracking = DIFFERENCE if rule.tracking == MARGINAL else rule.tracking
    arm = track(tracking, window_at(rule, tracked_t), rule.mixing, tracked_t, target, tracked, probability)
    return arm, False, weight


@compiled
def _mix_with_posterior_sampling(
    rule: Rule, t: int, pulls: IntArray, mean: FloatArray, std: FloatArray, work: FloatArray, probability: FloatArray
) -> None:
    """Write probabilities of which a part follows an allocation for accuracy, and the rest is Thompson sampling."""
    n_arms, allocation, first, second = pulls.size, work[-3], work[-4], work[-5]
    key = state_key(t, mean, std, work[0])
    success = describe(pulls, mean, std, first, second)
    for i in range(n_arms):
        allocation[i] = 1.0 / n_arms
    if rule.kind == POST_DIFF:
        rate = chance_of_small_difference(rule.scale, key, rule.draws, success, pulls, mean, first, second)
    else:
        expected_mean, expected_std = work[-2], work[-1]
        expect(success, mean, first, second, expected_mean, expected_std)
        if rule.kind == NEYMAN_RATE:
            total = 0.0
            for i in range(n_arms):
                total += expected_std[i]
            for i in range(n_arms):
                allocation[i] = expected_std[i] / total
        rate = best_rate(rule.reward_weight, expected_mean, expected_std, allocation)
    for i in range(n_arms):
        probability[i] = rate * allocation[i]
    if rate < 1.0:
        add_chances_to_be_best(1.0 - rate, key, rule.draws, success, pulls, mean, first, second, probability)


@compiled
def decay_floors(decay: float, t: int, per_arm: FloatArray, now: FloatArray) -> None:
    """Write a policy's numbers per arm with the floors of step t: t^-decay times the stated ones  [Remark 2]."""
    # t^decay from the binary digits of the decay, by square roots, which are the same on every machine.
    root, rest, power = float(t), decay, 1.0
    for _ in range(60):
        root, rest = math.sqrt(root), 2.0 * rest
        if rest >= 1.0:
            rest -= 1.0
            power *= root
        if rest == 0.0:
            break
    for k in range(PER_ARM_ROWS):
        for i in range(now.shape[1]):
            now[k, i] = per_arm[k, i] / power if k == FLOOR else per_arm[k, i]


@compiled
def solve_for(
    rule: Rule,
    per_arm: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    unit: float,
    work: FloatArray,
    target: FloatArray,
) -> float:
    """Write the optimal allocation for means and standard deviations in some unit; return the weight solved for."""
    importance, floor = per_arm[IMPORTANCE], per_arm[FLOOR]
    if rule.criterion == STATED_WEIGHT:
        allocate(mean, std, importance, floor, rule.reward_weight, rule.power, COLD, work, target)
        return np.nan
    kept, smallest = rule.information_kept, rule.smallest_difference / unit
    return allocate_for_information(
        rule.criterion, kept, smallest, rule.power, mean, std, importance, floor, work, target
    )


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
) -> tuple[bool, float]:
    """Write the target allocation; return whether the policy has one, and the weight solved for or NaN."""
    if rule.floor_decay > 0.0:
        stated, per_arm = per_arm, work[_FLOOR_ROWS : _FLOOR_ROWS + PER_ARM_ROWS]
        decay_floors(rule.floor_decay, t, stated, per_arm)
    return _write_target(rule, per_arm, t, pulls, mean, std, work, target)


@compiled
def _write_target(
    rule: Rule,
    per_arm: FloatArray,
    t: int,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    target: FloatArray,
) -> tuple[bool, float]:
    """Do as `write_target`, with the floors of step t."""
    n_arms, unit = mean.size, 1.0
    believed_mean, believed_std = work[-2], work[-1]
    if rule.kind == FIXED:
        for i in range(n_arms):
            target[i] = per_arm[ALLOCATION, i]
        return True, np.nan
    if rule.kind == VARIANCE_SHARES:
        total = 0.0
        for i in range(n_arms):
            target[i] = std[i] * std[i]
            total += target[i]
        for i in range(n_arms):
            target[i] = target[i] / total if total > 0.0 else 1.0 / n_arms
        return True, np.nan
    if rule.kind == BALANCE:
        for i in range(n_arms):
            believed_mean[i], believed_std[i] = mean[i], std[i]
    elif rule.kind == POOLED_BALANCE:
        unit = _believe(rule, pulls, mean, std, work, believed_mean, believed_std)
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
        return False, np.nan
    allow_for_noise(rule, pulls, believed_mean, believed_std)
    return True, solve_for(rule, per_arm, believed_mean, believed_std, unit, work, target)


@inlined
def _believe(
    rule: Rule,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    believed_mean: FloatArray,
    believed_std: FloatArray,
) -> float:
    """Write the beliefs of `PooledBalance`, with its prior if it has one; return their unit."""
    prior = rule.prior_weight, rule.prior_means, rule.prior_spreads
    return believe(rule.pooling, rule.caution, pulls, mean, std, work, believed_mean, believed_std, *prior)


@compiled
def allow_for_noise(rule: Rule, pulls: IntArray, mean: FloatArray, std: FloatArray) -> None:
    """Change beliefs to what may well be the case, two standard errors off, if information is kept about single arms.

    An arm whose spread or mean is underestimated would get too few pulls to show it soon. So spreads are raised if
    every arm is to be known, and the other means are raised towards the best if that is to be found.
    """
    if rule.criterion == EVERY_ARM:
        for i in range(pulls.size):
            std[i] *= 1.0 + _STANDARD_ERRORS / math.sqrt(2.0 * pulls[i])
    elif rule.criterion == BEST_ARM:
        best = _largest(mean)
        highest = np.nextafter(mean[best], -np.inf)
        noise = std[best] * std[best] / pulls[best]
        for i in range(pulls.size):
            if i != best:
                hoped = mean[i] + _STANDARD_ERRORS * math.sqrt(std[i] * std[i] / pulls[i] + noise)
                mean[i] = min(hoped, highest)


@compiled
def track(
    tracking: int, window: float, mixing: float, t: int, target: FloatArray, assigned: IntArray, probability: FloatArray
) -> int:
    """Return the arm to pull at step t, or `RANDOM` after writing the probabilities it is to be drawn with."""
    if tracking == SAMPLE:
        for i in range(target.size):
            probability[i] = target[i]
        return RANDOM
    if tracking == WINDOWED:
        # How many pulls each arm lacks to meet the target `window` pulls from now; these add up to at least window.
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
    """Return the arm that a uniform number in [0, 1) falls on; never one of probability 0."""
    arm = 0
    below = 0.0
    for i in range(probability.size):
        if probability[i] > 0.0:
            arm = i
            below += probability[i]
            if uniform < below:
                break
    return arm


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
    """Return the arm whose pull, the t-th, raises the trade-off most; arms below their floor come first.

    A bonus of `curiosity` stds, divided by the pulls, is added to a mean: an arm with a few bad rewards may be good.
    """
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    arm, most = -1, 0.0
    for i in range(counts.size):
        lack = floor[i] * t - counts[i]
        if lack > most:
            arm, most = i, lack
    if arm >= 0:
        return arm
    # What one more pull of an arm adds to w * reward - (1 - w) * error for t pulls, times t. The error's part is taken
    # at the middle of that pull, half a pull after the last: within 1% of the difference from four pulls on, and finite
    # at none.
    coefficient = _error_coefficient(reward_weight, t)
    arm, most = 0, -np.inf
    for i in range(counts.size):
        worth, power = _pull_worth(reward_weight, curiosity, counts[i], mean[i], std[i])
        gain = worth + coefficient * importance[i] * std[i] / power
        if gain > most:
            arm, most = i, gain
    return arm


@inlined
def _error_coefficient(reward_weight: float, t: int) -> float:
    """Return what the error's part of a gain is multiplied by at step t; it grows with t."""
    return 0.5 * (1.0 - reward_weight) * t * math.sqrt(t)


@inlined
def _pull_worth(reward_weight: float, curiosity: float, count: float, mean: float, std: float) -> tuple[float, float]:
    """Return the part of a pull's gain that is the same at every step, and what the error's part is divided by."""
    middle = count + 0.5
    hoped = mean + curiosity * std / middle
    return reward_weight * hoped, middle * math.sqrt(middle)


@compiled
def follow_margins(
    rule: Rule,
    reward_weight: float,
    per_arm: FloatArray,
    t: int,
    assigned: IntArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    probability: FloatArray,
) -> int:
    """Return the best pull at step t; with windowed tracking, write probabilities and return `RANDOM`.

    Probabilities follow how often an arm is among the next `window` best pulls. `work` has `MARGIN_ROWS` of scratch.
    If the window grows, these are the best pulls for its last step, in any order; if not, each is the best at its own.
    """
    counts = work[0]
    for i in range(counts.size):
        counts[i] = assigned[i]
    if rule.tracking != WINDOWED:
        return best_pull(reward_weight, rule.exploration, per_arm, t, counts, mean, std)
    window = int(window_at(rule, t))
    for i in range(counts.size):
        probability[i] = rule.mixing / counts.size
    share = (1.0 - rule.mixing) / window
    if has_growing_window(rule):
        last = t + window - 1
        _plan_pulls(reward_weight, rule.exploration, per_arm, last, window, counts, mean, std, work)
        for i in range(counts.size):
            probability[i] += share * (counts[i] - assigned[i])
        return RANDOM
    if not _pull_candidates(
        reward_weight, rule.exploration, per_arm, t, window, share, counts, mean, std, work, probability
    ):
        for k in range(window):
            arm = best_pull(reward_weight, rule.exploration, per_arm, t + k, counts, mean, std)
            counts[arm] += 1.0
            probability[arm] += share
    return RANDOM


@compiled
def _plan_pulls(
    reward_weight: float,
    curiosity: float,
    per_arm: FloatArray,
    last: int,
    window: int,
    counts: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
) -> None:
    """Add the best pulls of a window that ends at step `last` to the counts.

    The same pulls as those of `best_pull` at that step, one by one: a pull changes the gain of its own arm only, so an
    arm below as many others as there are pulls left gets none.
    """
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    gain, candidate = work[1], work[2]
    n_arms, n_candidates = counts.size, 0
    while window > 0:
        arm, most = -1, 0.0
        for i in range(n_arms):
            lack = floor[i] * last - counts[i]
            if lack > most:
                arm, most = i, lack
        if arm < 0:
            break
        counts[arm] += 1.0
        window -= 1
    coefficient = _error_coefficient(reward_weight, last)
    for i in range(n_arms):
        worth, power = _pull_worth(reward_weight, curiosity, counts[i], mean[i], std[i])
        gain[i] = worth + coefficient * importance[i] * std[i] / power
    bar = _bar_below(gain, window)
    for i in range(n_arms):
        if gain[i] >= bar:
            candidate[n_candidates] = i
            gain[n_candidates] = gain[i]
            n_candidates += 1
    for _ in range(window):
        arm, place, most = 0, -1, -np.inf
        for j in range(n_candidates):
            if gain[j] > most:
                place, most = j, gain[j]
        if place >= 0:
            arm = int(candidate[place])
        counts[arm] += 1.0
        if place >= 0:
            worth, power = _pull_worth(reward_weight, curiosity, counts[arm], mean[arm], std[arm])
            gain[place] = worth + coefficient * importance[arm] * std[arm] / power


@compiled
def _bar_below(values: FloatArray, n: int) -> float:
    """Return a number that at least n values reach, if that many are numbers, and not many more."""
    if values.size <= n:
        return -np.inf
    low, high = np.inf, -np.inf
    for i in range(values.size):
        low = values[i] if values[i] < low else low
        high = values[i] if values[i] > high else high
    for _ in range(12):
        middle, reached = 0.5 * (low + high), 0
        for i in range(values.size):
            reached += 1 if values[i] >= middle else 0
        if reached >= n:
            low = middle
        else:
            high = middle
        if n <= reached <= n + n // 4:
            break
    return float(low)


@compiled
def _pull_candidates(
    reward_weight: float,
    curiosity: float,
    per_arm: FloatArray,
    t: int,
    window: int,
    share: float,
    counts: FloatArray,
    mean: FloatArray,
    std: FloatArray,
    work: FloatArray,
    probability: FloatArray,
) -> bool:
    """Do as `_plan_pulls` for a constant window: each pull is weighed as at its own step.

    Add `share` to the probability of each of the next best pulls; return False, with nothing done, if floors matter.

    The same pulls as those of `best_pull`, one by one, from one pass over the arms. A pull only lowers the gain of its
    own arm, and later steps only raise gains; rounded operations keep both orders. So an arm's gain is never above its
    gain now with the window's last coefficient, and unpulled never below that with the first. An arm whose highest gain
    is below the lowest of `window` other arms is never the best: at any time one of these has not been pulled.
    """
    floor, importance = per_arm[FLOOR], per_arm[IMPORTANCE]
    worth, power, lowest, highest, candidate = work[1], work[2], work[3], work[4], work[5]
    n_arms = counts.size
    first, last = _error_coefficient(reward_weight, t), _error_coefficient(reward_weight, t + window - 1)
    # Short loops without a branch: compilers vectorise these, and a division per arm is what the pass costs.
    for i in range(n_arms):
        worth[i], power[i] = _pull_worth(reward_weight, curiosity, counts[i], mean[i], std[i])
    for i in range(n_arms):
        lowest[i] = worth[i] + first * importance[i] * std[i] / power[i]
    for i in range(n_arms):
        highest[i] = worth[i] + last * importance[i] * std[i] / power[i]
    n_plain = 0
    for i in range(n_arms):
        n_plain += 1 if (floor[i] <= 0.0) & (lowest[i] <= highest[i]) else 0  # not if a gain is not a number
    if n_plain < n_arms:
        return False
    bar = _nth_largest(lowest, window, candidate) if n_arms > window else -np.inf
    n_candidates = 0
    for i in range(n_arms):
        if highest[i] >= bar:
            candidate[n_candidates] = i
            n_candidates += 1
    for k in range(window):
        coefficient = _error_coefficient(reward_weight, t + k)
        arm, most = 0, -np.inf
        for j in range(n_candidates):
            i = int(candidate[j])
            gain = worth[i] + coefficient * importance[i] * std[i] / power[i]
            if gain > most:
                arm, most = i, gain
        counts[arm] += 1.0
        probability[arm] += share
        worth[arm], power[arm] = _pull_worth(reward_weight, curiosity, counts[arm], mean[arm], std[arm])
    return True


@compiled
def _nth_largest(values: FloatArray, n: int, scratch: FloatArray) -> float:
    """Return the n-th largest of more than n values; `scratch` receives the n largest, the smallest first."""
    for i in range(n):
        scratch[i] = -np.inf
    for i in range(values.size):
        if values[i] > scratch[0]:
            place = 0
            while place + 1 < n and scratch[place + 1] < values[i]:
                scratch[place] = scratch[place + 1]
                place += 1
            scratch[place] = values[i]
    return float(scratch[0])
