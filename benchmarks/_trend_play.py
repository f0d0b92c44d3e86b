"""Play a policy on arms whose means move with time, in compiled code: what the studies of drift share."""

from __future__ import annotations

from typing import Any

import numpy as np

import equipoise as eq
from equipoise.kernels.compiler import compiled
from equipoise.kernels.decision import RANDOM, WORK_ROWS, decide, draw
from equipoise.kernels.drift_sums import DRIFT_ROWS, add_weighted, write_estimates
from equipoise.kernels.moments import SUM_ROWS, add_reward
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rules import PLAIN


@compiled
def _play(
    rule: Any,
    per_arm: Any,
    seed: int,
    level: Any,
    noise: Any,
    pulls: Any,
    mean: Any,
    std: Any,
    sums: Any,
    work: Any,
    arms: Any,
    rewards: Any,
    probability: Any,
    steering: int,
    everyone: Any,
    drift: Any,
    seen_pulls: Any,
    seen_mean: Any,
    seen_std: Any,
) -> None:
    """Fill arms, rewards and the probabilities of all arms; `level` has the mean of every arm at every step."""
    n_arms = pulls.size
    seen, read = (seen_pulls, seen_mean, seen_std), (pulls, mean, std)
    for t in range(arms.size):
        if steering != PLAIN:
            write_estimates(steering, rule.rewards_needed, everyone, pulls, mean, std, sums, drift, *seen)
            read = seen
        arm, _, _ = decide(rule, per_arm, t + 1, pulls, *read, t + 1, pulls, work, probability[t])
        if arm == RANDOM:
            arm = draw(probability[t], decision_uniform(seed, 0, t))
        else:
            for i in range(n_arms):
                probability[t, i] = 1.0 if i == arm else 0.0
        rewards[t] = level[t, arm] + noise[pulls[arm], arm]
        arms[t] = arm
        add_reward(arm, rewards[t], 1.0, pulls, mean, std, sums)
        if steering != PLAIN:
            add_weighted(arm, rewards[t], probability[t, arm], t, 1.0, pulls, drift)


def play(policy: eq.Policy, level: Any, noise: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return the arms, rewards and probabilities (steps, arms) of one experiment with rewards that come at once.

    `level` (steps, arms) are the means at every step; `noise` (steps, arms) has each arm's deviations in the order of
    its pulls, so that all policies meet the same.
    """
    steps, n_arms = level.shape
    arms, rewards, probability = np.zeros(steps, np.int64), np.zeros(steps), np.zeros((steps, n_arms))
    pulls, mean, std = np.zeros(n_arms, np.int64), np.full(n_arms, np.nan), np.full(n_arms, np.nan)
    sums, work = np.zeros((SUM_ROWS, n_arms)), np.zeros((WORK_ROWS, n_arms))
    _play(
        policy.rule(),
        policy.per_arm(n_arms),
        seed,
        np.ascontiguousarray(level),
        np.ascontiguousarray(noise),
        pulls,
        mean,
        std,
        sums,
        work,
        arms,
        rewards,
        probability,
        policy.steering,
        np.arange(n_arms),
        np.zeros((DRIFT_ROWS, n_arms)),
        np.zeros(n_arms, np.int64),
        np.zeros(n_arms),
        np.zeros(n_arms),
    )
    return arms, rewards, probability
