"""OptimisticBalance, upper bounds on both means and spreads  [the second direction of Sect. 6]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels.rules import CONFIDENCE_BALANCE, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class OptimisticBalance(CompiledPolicy):
    """Follow the optimum for upper bounds on the means and upper bounds on the standard deviations.

    An arm of which little is known looks both rewarding and uncertain, so it is pulled and becomes known: the trap of
    `NaiveUCB` is gone. What is optimised is then neither an upper nor a lower bound on the trade-off.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    failure_probability : float, default 0.1
        Probability that some bound of Prop. 1 fails.
    scale : float, default 1.0
        Range of the rewards, by which the bounds for rewards in [0, 1] are multiplied.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.

    References
    ----------
    Erraqabi et al. (2017), Sect. 6, names it as future work.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([400, 20], [1.0, 1.0], [1.0, 2.0])
    >>> OptimisticBalance(reward_weight=0.0).target(stats).round(3)
    array([0.348, 0.652])
    """

    reward_weight: float
    failure_probability: float = 0.1
    scale: float = 1.0
    floor: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "scale", "floor")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=CONFIDENCE_BALANCE,
            reward_weight=self.reward_weight,
            failure_probability=self.failure_probability,
            scale=self.scale,
            std_bound=1.0,
        )
