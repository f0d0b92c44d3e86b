"""EpsilonGreedy: mostly the best arm so far, sometimes any arm."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise import checks
from equipoise.kernels.rules import EPSILON_GREEDY, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class EpsilonGreedy(CompiledPolicy):
    """Pull the arm with the largest mean, except that a share of pulls goes to an arm drawn evenly from all.

    Parameters
    ----------
    exploration : float, default 0.1
        Share of pulls drawn evenly; the epsilon of the name.

    References
    ----------
    Sutton and Barto (2018). Reinforcement Learning, 2nd ed., Sect. 2.2.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> EpsilonGreedy(exploration=0.2).probabilities(ArmStats.from_summary([9, 9], [1.0, 2.0], [1.0, 1.0]))
    array([0.1, 0.9])
    """

    exploration: float = 0.1

    def __post_init__(self) -> None:
        self._set(exploration=checks.number_between("exploration", self.exploration, 0, 1))

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=EPSILON_GREEDY, rewards_needed=1, exploration=self.exploration)
