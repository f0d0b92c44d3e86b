"""Compare four objectives on the same arms: the best shares of each, and those of ForcingBalance after 5,000 pulls.

python examples/other_objectives.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import equipoise as eq

if TYPE_CHECKING:
    from equipoise._types import FloatArray

MEAN = np.array([1.0, 1.5, 2.0])
STD = np.array([0.5, 1.0, 2.0])
REWARD_WEIGHT = 0.3


@dataclass(frozen=True, kw_only=True, repr=False)
class RewardAndInformation(eq.SeparableObjective):
    """Reward against the average logarithm of the shares, the criterion of D-optimal designs."""

    def derivative(self, share: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float) -> FloatArray:
        """Return the derivative of each arm's term."""
        return reward_weight * mean + (1 - reward_weight) / mean.size / share

    def inverse_derivative(self, slope: float, mean: FloatArray, std: FloatArray, reward_weight: float) -> FloatArray:
        """Return the share at which the derivative is `slope`; no share reaches a slope below the arm's reward."""
        excess = slope - reward_weight * mean
        return np.where(excess > 0, (1 - reward_weight) / mean.size / np.where(excess > 0, excess, 1.0), np.inf)


def play(objective: eq.Objective, pulls: int = 5_000) -> FloatArray:
    """Play ForcingBalance and return its shares of the pulls."""
    bandit = eq.Bandit(eq.ForcingBalance(reward_weight=REWARD_WEIGHT, objective=objective), n_arms=3, seed=1)
    rng = np.random.default_rng(1)
    for _ in range(pulls):
        arm = bandit.index(bandit.ask())
        bandit.tell(arm, rng.normal(MEAN[arm], STD[arm]))
    return bandit.stats.pulls / pulls


def main() -> None:
    objectives = {
        "root-mean-square error (the paper)": eq.ROOT_MEAN_SQUARE,
        "mean-square error": eq.MEAN_SQUARE,
        "first arm three times as important": eq.PowerObjective(importance=(3, 1, 1)),
        "information (D-optimality)": RewardAndInformation(),
    }
    print(f"{'objective':36}{'best shares':24}shares given")
    for name, objective in objectives.items():
        best = eq.optimal_allocation(MEAN, STD, reward_weight=REWARD_WEIGHT, objective=objective)
        print(f"{name:36}{np.array2string(best, precision=3):24}{np.array2string(play(objective), precision=3)}")


if __name__ == "__main__":
    main()
