"""Play adaptive experiments and look at the evidence after every reward: the loops of `coverage.py`.

Instead of solving for intervals at every step, the evidence is computed against the true means and differences: an
interval excludes the truth exactly when this reaches its threshold. So the largest evidence of a run says whether the
interval ever missed, at every failure probability.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from _former_intervals import former_asymptotic_factor, former_bounded_radius, former_log_wealth

import equipoise as eq
from equipoise._types import FloatArray, IntArray
from equipoise.kernels.arm_evidence import (
    COUNT,
    HIGH,
    HIGH_P1,
    HIGH_P2,
    HIGH_Y1,
    HIGH_Y2,
    LOW,
    LOW_P1,
    LOW_P2,
    LOW_Y1,
    LOW_Y2,
    MEAN,
    ROWS,
    SCALE,
    SKEW,
    STD,
    TUNED,
    is_narrow,
    log_above,
    log_below,
    log_larger,
    write_intervals,
    write_log_beaten,
)
from equipoise.kernels.compiler import allocating, compiled
from equipoise.kernels.decision import RANDOM, WORK_ROWS, decide, draw
from equipoise.kernels.moments import SUM_ROWS, add_reward
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.wealth import points

if TYPE_CHECKING:
    from _coverage_instances import Instance

ARMS, FORMER, PAIRS, JOINT, BEST = range(5)
PEAKS = 5
"""Peaks: of the arms' evidence against their means; of the former method's, as a share of its threshold; of the pairs'
against their differences, narrow and guaranteed; of the evidence that the best arm is beaten."""

AVERAGED, GUARANTEED, FORMER_APART, APART = range(4)
CERTIFICATES = 4
"""First steps at which the leader is certified: by averaged evidence, narrow and guaranteed; and by intervals that no
longer overlap, former and present ones."""

LOOK_EVERY = 10
"""For certificates only; all else is looked at after every reward."""
_SMALLEST_JOINT = 2.0


@compiled
def count_reward(
    arms: FloatArray, powers: FloatArray, arm: int, reward: float, origin: float, mean: float, std: float
) -> None:
    """Add a reward to running sums of powers, and write the arm's column of moments; mean and std are at hand."""
    low, high = arms[LOW, arm], arms[HIGH, arm]
    from_low, from_high = low > -np.inf, high < np.inf
    x = reward - origin
    u = (reward - low) / arms[SCALE, arm] if from_low else 0.0
    v = (high - reward) / arms[SCALE, arm] if from_high else 0.0
    power_x, power_u, power_v = 1.0, 1.0, 1.0
    for j in range(4):
        power_x, power_u, power_v = power_x * x, power_u * u, power_v * v
        powers[j, arm] += power_x
        powers[4 + j, arm] += power_u
        powers[8 + j, arm] += power_v
    arms[COUNT, arm] += 1.0
    n = arms[COUNT, arm]
    m1, m2, m3 = powers[0, arm] / n, powers[1, arm] / n, powers[2, arm] / n
    second, third = m2 - m1 * m1, m3 - 3.0 * m1 * m2 + 2.0 * m1 * m1 * m1
    if not std > 0.0 or second <= 1e-13 * m2:
        second = 0.0
    arms[MEAN, arm], arms[STD, arm] = mean, std
    arms[SKEW, arm] = third / (second * math.sqrt(second)) if second > 0.0 else 0.0
    if from_low:
        y1, p1, y2, p2 = points(powers[4, arm] / n, powers[5, arm] / n, powers[6, arm] / n, powers[7, arm] / n)
        arms[LOW_Y1, arm], arms[LOW_P1, arm], arms[LOW_Y2, arm], arms[LOW_P2, arm] = y1, p1, y2, p2
    if from_high:
        y1, p1, y2, p2 = points(powers[8, arm] / n, powers[9, arm] / n, powers[10, arm] / n, powers[11, arm] / n)
        arms[HIGH_Y1, arm], arms[HIGH_P1, arm], arms[HIGH_Y2, arm], arms[HIGH_P2, arm] = y1, p1, y2, p2


@compiled
def former_share(arms: FloatArray, arm: int, truth: float, failure: float) -> float:
    """Return how far the former interval was from excluding the truth, as a share of its threshold."""
    n, std, distance = arms[COUNT, arm], arms[STD, arm], abs(arms[MEAN, arm] - truth)
    scale = arms[SCALE, arm]
    if arms[LOW, arm] > -np.inf and arms[HIGH, arm] < np.inf:
        return former_log_wealth(n, std / scale, distance / scale) / math.log(2.0 / failure)
    factor = former_asymptotic_factor(n, failure)
    return distance / (std * factor) if factor < np.inf and std > 0.0 else 0.0


@compiled
def former_radius(arms: FloatArray, arm: int, failure: float) -> float:
    """Return the radius of the former interval."""
    n, std, scale = arms[COUNT, arm], arms[STD, arm], arms[SCALE, arm]
    if arms[LOW, arm] > -np.inf and arms[HIGH, arm] < np.inf:
        return scale * former_bounded_radius(n, std / scale, failure)
    factor = former_asymptotic_factor(n, failure)
    return std * factor if factor < np.inf and std > 0.0 else np.inf


@compiled
def write_former_intervals(arms: FloatArray, failure: float, low: FloatArray, high: FloatArray) -> None:
    """Write both ends of the former intervals, within the declared range."""
    for a in range(arms.shape[1]):
        radius = former_radius(arms, a, failure)
        low[a] = max(arms[MEAN, a] - radius, arms[LOW, a])
        high[a] = min(arms[MEAN, a] + radius, arms[HIGH, a])


@compiled
def pair_evidence(
    arms: FloatArray,
    a: int,
    b: int,
    difference: float,
    above: FloatArray,
    below: FloatArray,
    guaranteed: bool,
    peak: float,
) -> float:
    """Return the evidence that mean a - mean b is above the true difference, or the peak so far if it is no higher.

    Joint evidence is the least over all values of the second mean, so at most that at the true one, which is at hand.
    """
    if not guaranteed and is_narrow(arms, a, b):
        return max(peak, log_larger(arms, a, b, difference, False))
    if above[a] + below[b] <= max(peak, _SMALLEST_JOINT):
        return peak
    return max(peak, log_larger(arms, a, b, difference, guaranteed))


@compiled
def is_certified(
    arms: FloatArray, threshold: float, guaranteed: bool, everyone: IntArray, one: IntArray, found: FloatArray
) -> bool:
    """Return whether all arms but the leader are beaten; the likeliest to hold out comes first."""
    n_arms, leader, second = everyone.size, 0, -1
    for i in range(1, n_arms):
        if arms[MEAN, i] > arms[MEAN, leader]:
            leader = i
    for i in range(n_arms):
        if i != leader and (second < 0 or arms[MEAN, i] > arms[MEAN, second]):
            second = i
    for k in range(-1, n_arms):
        one[0] = second if k < 0 else k
        if k in (leader, second):
            continue
        write_log_beaten(arms, one, everyone, n_arms - 1, guaranteed, found)
        if found[0] < threshold:
            return False
    return True


@compiled
def is_apart(arms: FloatArray, low: FloatArray, high: FloatArray) -> bool:
    """Return whether the leader's interval lies above all others."""
    leader = 0
    for i in range(1, low.size):
        if arms[MEAN, i] > arms[MEAN, leader]:
            leader = i
    n_below = 0
    for i in range(low.size):
        n_below += 1 if low[leader] > high[i] else 0
    return n_below == low.size - 1


@allocating
def follow(
    rule: eq.kernels.rules.Rule,
    per_arm: FloatArray,
    seed: int,
    run: int,
    rewards: FloatArray,
    truth: FloatArray,
    low: float,
    high: float,
    tuned: float,
    failure: float,
    of_pairs: bool,
    of_best: bool,
    checkpoints: IntArray,
    snapshots: FloatArray,
    peaks: FloatArray,
    certified: IntArray,
) -> None:
    """Play one run; write the moments and the peaks of evidence at each checkpoint, and when the best was certified."""
    n_arms = truth.size
    pulls, mean, std = np.zeros(n_arms, np.int64), np.full(n_arms, np.nan), np.full(n_arms, np.nan)
    sums, work, probability = np.zeros((SUM_ROWS, n_arms)), np.empty((WORK_ROWS, n_arms)), np.zeros(n_arms)
    arms, powers = np.zeros((ROWS, n_arms)), np.zeros((12, n_arms))
    above, below = np.zeros(n_arms), np.zeros(n_arms)
    everyone, one, found = np.arange(n_arms), np.zeros(1, np.int64), np.zeros(1)
    lows, highs, each = np.empty(n_arms), np.empty(n_arms), np.full(n_arms, failure / n_arms)
    scale = high - low if high - low < np.inf else 1.0
    best = 0
    for a in range(n_arms):
        arms[LOW, a], arms[HIGH, a], arms[SCALE, a], arms[TUNED, a] = low, high, scale, tuned
        arms[MEAN, a] = arms[STD, a] = arms[SKEW, a] = np.nan
        if truth[a] > truth[best]:
            best = a
    peak, passed = np.zeros(PEAKS), 0
    bounded = low > -np.inf and high < np.inf
    for t in range(1, checkpoints[-1] + 1):
        arm, _, _ = decide(rule, per_arm, t, pulls, pulls, mean, std, t, pulls, work, probability)
        if arm == RANDOM:
            arm = draw(probability, decision_uniform(seed, run, t - 1))
        reward = rewards[arm, pulls[arm]]
        add_reward(arm, reward, 1.0, pulls, mean, std, sums)
        count_reward(arms, powers, arm, reward, truth[arm], mean[arm], std[arm])
        above[arm], below[arm] = log_above(arms, arm, truth[arm]), log_below(arms, arm, truth[arm])
        peak[ARMS] = max(peak[ARMS], above[arm], below[arm])
        peak[FORMER] = max(peak[FORMER], former_share(arms, arm, truth[arm], failure / n_arms))
        if of_pairs:
            for other in range(n_arms):
                if other == arm or pulls[other] == 0:
                    continue
                gap = truth[arm] - truth[other]
                peak[PAIRS] = pair_evidence(arms, arm, other, gap, above, below, False, peak[PAIRS])
                peak[PAIRS] = pair_evidence(arms, other, arm, -gap, above, below, False, peak[PAIRS])
                if bounded:
                    peak[JOINT] = pair_evidence(arms, arm, other, gap, above, below, True, peak[JOINT])
                    peak[JOINT] = pair_evidence(arms, other, arm, -gap, above, below, True, peak[JOINT])
        if of_best and t % LOOK_EVERY == 0:
            one[0] = best
            write_log_beaten(arms, one, everyone, n_arms - 1, False, found)
            peak[BEST] = max(peak[BEST], found[0])
            for k in range(2):
                if certified[k] > 0 or (k == GUARANTEED and not bounded):
                    continue
                if is_certified(arms, -math.log(failure), k == GUARANTEED, everyone, one, found):
                    certified[k] = t
            if certified[FORMER_APART] == 0:
                write_former_intervals(arms, failure / n_arms, lows, highs)
                certified[FORMER_APART] = t if is_apart(arms, lows, highs) else 0
            if certified[APART] == 0:
                write_intervals(arms, each, lows, highs)
                certified[APART] = t if is_apart(arms, lows, highs) else 0
        if t == checkpoints[passed]:
            for a in range(n_arms):
                for row in range(ROWS):
                    snapshots[passed, row, a] = arms[row, a]
            for k in range(PEAKS):
                peaks[passed, k] = peak[k]
            passed += 1


@dataclass(frozen=True)
class Played:
    """What runs of one instance left: runs first, then checkpoints."""

    snapshots: FloatArray
    peaks: FloatArray
    certified: IntArray


def play(
    one: Instance, runs: int, *, seed: int, failure: float, workers: int, first: int = 0, tuned: float = 500.0
) -> Played:
    """Play runs of an instance, each a function of the seed and its number, whatever the number of threads."""
    policy = eq.PooledBalance(reward_weight=one.weight, tracking="windowed")
    rule, per_arm, truth = policy.rule(), policy.per_arm(one.n_arms), np.array(one.mean, float)
    steps = np.array(one.checkpoints, np.int64)
    snapshots = np.empty((runs, steps.size, ROWS, one.n_arms))
    peaks, certified = np.zeros((runs, steps.size, PEAKS)), np.zeros((runs, CERTIFICATES), np.int64)

    def play_one(run: int) -> None:
        rewards = one.rewards(np.random.default_rng([seed, one.number, first + run]), int(steps[-1]))
        follow(
            rule,
            per_arm,
            seed,
            first + run,
            rewards,
            truth,
            one.low,
            one.high,
            tuned,
            failure,
            one.of_pairs,
            one.of_best,
            steps,
            snapshots[run],
            peaks[run],
            certified[run],
        )

    play_one(0)  # compiles, which threads must not do at the same time
    certified[0] = 0
    with ThreadPoolExecutor(workers) as pool:
        for _ in pool.map(play_one, range(runs)):
            pass
    return Played(snapshots, peaks, certified)


def missed(played: Played, which: int, threshold: float) -> FloatArray:
    """Return for each run and checkpoint whether the truth was ever excluded."""
    return np.asarray(played.peaks[:, :, which] >= threshold)
