"""What steering by weighted estimates costs without drift, and what it gains where rewards drift: people and regret.

    python benchmarks/steering.py [--smoke] [--runs 300] [--window 100 10]

All policies meet the same rewards, with standard deviation 0.3 and differences between arms that stay what they are,
while the level of all arms rises, or jumps halfway, by a multiple of the standard deviation.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from _timing import machine
from _trend_play import play

import equipoise as eq

STD, STEPS, WEIGHT = 0.3, 4_000, 0.9
ARMS = {"2": (0.0, 0.1), "5": (0.0, 0.025, 0.05, 0.075, 0.1)}
MODES = ("none", "declared", "detected")


def levels(steps: int) -> dict[str, Any]:
    """Return how far the level has moved at each step, in standard deviations."""
    line = np.linspace(0, 1, steps)
    trends = {f"{name} sd": size * line for name, size in (("0", 0.0), ("1/3", 1 / 3), ("1", 1.0), ("3.3", 3.3))}
    return trends | {"jump of 1 sd": np.where(line < 0.5, 0.0, 1.0)}


def examine(policy: eq.Policy, means: tuple[float, ...], level: Any, runs: int) -> dict[str, Any]:
    """Return each run's people on the worst and the best arm, and its rescaled regret."""
    n_arms, steps = len(means), level.size
    best = eq.optimal_allocation(list(means), [STD] * n_arms, reward_weight=WEIGHT)
    moving = np.add.outer(level * STD, np.array(means))

    def value(shares: Any) -> float:
        return WEIGHT * float(shares @ means) - (1 - WEIGHT) * float(np.mean(STD / np.sqrt(shares)))

    shares = []
    for run in range(runs):
        noise = np.random.default_rng([run, n_arms]).normal(0, STD, (steps, n_arms))
        shares.append(np.bincount(play(policy, moving, noise, run)[0], minlength=n_arms) / steps)
    return {
        "worst arm": np.array([one[0] for one in shares]),
        "best arm": np.array([one[-1] for one in shares]),
        "regret": math.sqrt(steps) * np.array([value(best) - value(one) for one in shares]),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--window", type=int, nargs="+", default=[100])
    chosen = parser.parse_args()
    runs, steps = (3, 300) if chosen.smoke else (chosen.runs, STEPS)
    print("| window | arms | trend | drift | worst arm | best arm | rescaled regret | standard error |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for window in chosen.window:
        for arms, means in ARMS.items():
            for trend, level in levels(steps).items():
                for mode in MODES:
                    policy = eq.PooledBalance(reward_weight=WEIGHT, tracking="windowed", window=window, drift=mode)
                    found = examine(policy, means, level, runs)
                    error = found["regret"].std(ddof=1) / math.sqrt(runs)
                    where = f"| {window} | {arms} | {trend} | {mode}"
                    shares = f"| {found['worst arm'].mean():.1%} | {found['best arm'].mean():.1%}"
                    print(f"{where} {shares} | {found['regret'].mean():.3f} | {error:.3f} |", flush=True)
    print(f"{runs:,} runs of {steps:,} people on {machine()}")


if __name__ == "__main__":
    main()
