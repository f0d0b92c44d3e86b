"""UCB, the classical policy for reward alone  [Sect. 5]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels import rules
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class UCB(CompiledPolicy):
    """Pull the arm with the largest mean + scale * sqrt(log(t) / pulls).

    Assignments whose reward is still to come count as pulls in the bonus, so that a batch spreads over arms.

    Parameters
    ----------
    scale : float, default 1.0
        Width of the bonus, in units of reward; sqrt(2) is UCB1 for rewards in [0, 1].

    References
    ----------
    Auer, Cesa-Bianchi, Fischer (2002). Finite-time analysis of the multiarmed bandit problem. Machine Learning 47.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([90, 10], [1.0, 0.6], [1.0, 1.0])
    >>> UCB(scale=0.5).choose(stats, uniform=0.0).arm, UCB(scale=1.0).choose(stats, uniform=0.0).arm
    (0, 1)
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        self._check("scale")

    def rule(self) -> rules.Rule:
        """Return the policy as the record the kernel reads."""
        return rules.Rule(kind=rules.UCB, rewards_needed=1, scale=self.scale)
