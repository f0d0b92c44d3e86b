"""What logged probabilities are worth, and what a growing window costs: windowed tracking with and without growth.

    python benchmarks/logged_probabilities.py [--smoke] [--runs 400] [--growth 0.05]

Standard error of differences between two arms estimated from logged probabilities, over that of the difference of plain
means, with people who do not change over time, so that both are right. The estimate is augmented inverse-probability
weighting with weights common to both arms: at step t an arm's score is f + 1{pulled} (reward - f) / e, with its
probability e and the mean f of its last 25 rewards before; steps are weighted by (v_a / e_a + v_b / e_b)^(-1/2), with
the arms' variances v, and left out if a probability is below 0.001; a pair of which nothing is left gives NaN. Then the
price: mean rescaled regret.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from typing import Any

import numba
import numpy as np
from _timing import show, verdict

import equipoise as eq
from equipoise.kernels.decision import RANDOM, WORK_ROWS, decide, draw
from equipoise.kernels.moments import SUM_ROWS, add_reward
from equipoise.kernels.random import decision_uniform

RECENT = 25
"""Rewards of which an arm's score takes the mean as its expectation."""
LEAST = 0.001
"""Steps at which an arm has a lower probability are left out."""
MOST = 1.10
"""What the standard error over that of plain means should not exceed with two arms."""
TWO = eq.Gaussian(mean=[0.0, 0.1], std=[0.3, 0.3])
PAPER = eq.Gaussian(mean=[1, 1.5, 2, 4, 5], std=np.sqrt([0.05, 0.1, 0.2, 4, 0.5]))
RATES = eq.Bernoulli(mean=np.linspace(0.02, 0.3, 22))


@numba.njit
def _play(rule, per_arm, seed, rewards, work, chances, arms, given, expected):  # type: ignore[no-untyped-def]
    """Play one run, and write each step's probabilities, arm, reward, and expectations of all arms."""
    n_arms, steps = rewards.shape
    pulls, sums, recent = np.zeros(n_arms, np.int64), np.zeros((SUM_ROWS, n_arms)), np.zeros((n_arms, RECENT))
    mean, std = np.full(n_arms, np.nan), np.full(n_arms, np.nan)
    for k in range(steps):
        t, chance = k + 1, chances[k]
        arm, _, _ = decide(rule, per_arm, t, pulls, pulls, mean, std, t, pulls, work, chance)
        if arm == RANDOM:
            arm = draw(chance, decision_uniform(seed, 0, k))
        else:
            for i in range(n_arms):
                chance[i] = 0.0
            chance[arm] = 1.0
        for i in range(n_arms):
            count = min(pulls[i], RECENT)
            expected[k, i] = recent[i, :count].mean() if count else 0.0
        reward = rewards[arm, pulls[arm]]
        recent[arm, pulls[arm] % RECENT] = reward
        arms[k], given[k] = arm, reward
        add_reward(arm, reward, 1.0, pulls, mean, std, sums)
    return mean


def errors(policy: eq.Policy, true: eq.Arms, steps: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of both estimates of the difference of each pair of arms: (runs, pairs) each."""
    n_arms = true.n_arms
    pairs = np.array(list(combinations(range(n_arms), 2)))
    a, b = pairs.T
    work, chances, expected = np.empty((WORK_ROWS, n_arms)), np.empty((steps, n_arms)), np.empty((steps, n_arms))
    arms, given = np.empty(steps, np.int64), np.empty(steps)
    variance, effect = np.asarray(true.std) ** 2, np.asarray(true.mean)[b] - np.asarray(true.mean)[a]
    weighted, plain = np.empty((runs, len(pairs))), np.empty((runs, len(pairs)))
    for run in range(runs):
        rewards = np.array([true.rewards(i, seed=1, replication=run, count=steps) for i in range(n_arms)])
        mean = _play(policy.rule(), policy.per_arm(n_arms), run, rewards, work, chances, arms, given, expected)
        score, place = expected.copy(), np.arange(steps)
        score[place, arms] += (given - expected[place, arms]) / chances[place, arms]
        with np.errstate(divide="ignore"):
            noise = variance / chances
        usable = chances >= LEAST
        for k, (i, j) in enumerate(pairs):
            used = usable[:, i] & usable[:, j]
            if not used.any():
                weighted[run, k] = np.nan
                continue
            weight = 1.0 / np.sqrt(noise[used, i] + noise[used, j])
            weighted[run, k] = weight @ (score[used, j] - score[used, i]) / weight.sum()
        weighted[run] -= effect
        plain[run] = mean[b] - mean[a] - effect
    return weighted, plain


def policies(growth: float) -> dict[str, eq.Policy]:
    """Return both windowed policies; little forcing, since a forced step of `ForcingBalance` leaves other arms out."""
    windowed: dict[str, Any] = {"reward_weight": 0.9, "tracking": "windowed", "window_growth": growth}
    return {"PooledBalance": eq.PooledBalance(**windowed), "ForcingBalance": eq.ForcingBalance(**windowed, forcing=0.1)}


def price(policy: eq.Policy, runs: int) -> list[str]:
    """Return the mean rescaled regret on the paper's arms at 200, 1,000 and 5,000 steps, with standard errors."""
    played = eq.simulate(policy, PAPER, 5_000, runs, seed=3, checkpoints=[200, 1_000, 5_000])
    regret = played.rescaled_regret(reward_weight=0.9)[0]
    noise = regret.std(axis=0, ddof=1) / np.sqrt(runs)
    return [f"{mean:.3f} ({error:.3f})" for mean, error in zip(regret.mean(axis=0), noise, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--growth", type=float, default=0.05)
    given = parser.parse_args()
    runs, shorter = (4, 10) if given.smoke else (given.runs, 1)
    rows, reached = [], {}
    for what, true, steps, played in (
        ("2 arms, n = 4,000", TWO, 4_000, runs),
        ("the paper's 5 arms, 5,000", PAPER, 5_000, runs),
        ("22 arms, yes or no, 11,000", RATES, 11_000, runs // 4),
    ):
        for growth in (0.0, given.growth):
            for name, policy in policies(growth).items():
                weighted, plain = errors(policy, true, steps // shorter, played)
                ratio = np.sqrt((weighted**2).mean(axis=0) / (plain**2).mean(axis=0))
                rows.append([what, name, f"{growth:g}", f"{np.median(ratio):.2f}", f"{ratio.max():.2f}"])
                if true is TWO and growth > 0.0:
                    reached[name] = float(ratio[0])
    title = f"Standard error of a difference from logged probabilities over that of plain means, {runs} runs"
    show(title, ["arms", "windowed", "growth", "median pair", "worst pair"], rows)
    rows = [
        [name, f"{growth:g}", *price(policy, 10 * runs)]
        for growth in (0.0, given.growth)
        for name, policy in policies(growth).items()
    ]
    title = f"Mean rescaled regret on the paper's arms, weight 0.9 (standard errors), {10 * runs} runs"
    show(title, ["windowed", "growth", "n = 200", "1,000", "5,000"], rows)
    for name, ratio in reached.items():
        verdict(f"{name}, 2 arms, standard error against plain means", ratio, MOST, at_most=True)


if __name__ == "__main__":
    main()
