"""Naive-UCB, the straightforward optimistic policy that the paper shows to fail  [Eq. 5, App. C, Fig. 7]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels.rules import CONFIDENCE_BALANCE, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class NaiveUCB(CompiledPolicy):
    """Follow the optimum for upper bounds on the means and *lower* bounds on the standard deviations.

    Together they bound the trade-off from above, but an arm whose spread was underestimated is hardly pulled again and
    so never corrected. There is no forcing.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    failure_probability : float, default 0.1
        Probability that some bound of Prop. 1 fails; delta in the paper.
    scale : float, default 1.0
        Range of the rewards, by which the bounds for rewards in [0, 1] are multiplied.
    smallest_std : float, default 0.01
        Lower bounds are cut off here, as in the paper's experiments.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.

    References
    ----------
    Erraqabi et al. (2017), Eq. 5. We keep the factor 1/K of the trade-off that Eq. 5 drops.

    Examples
    --------
    The arm with the larger spread is pulled less, because little is known of it:

    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([400, 10], [1.0, 1.0], [1.0, 2.0])
    >>> NaiveUCB(reward_weight=0.0).target(stats).round(3)
    array([0.738, 0.262])
    """

    reward_weight: float
    failure_probability: float = 0.1
    scale: float = 1.0
    smallest_std: float = 0.01
    floor: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "scale", "smallest_std", "floor")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=CONFIDENCE_BALANCE,
            reward_weight=self.reward_weight,
            failure_probability=self.failure_probability,
            scale=self.scale,
            std_bound=-1.0,
            smallest_std=self.smallest_std,
        )
