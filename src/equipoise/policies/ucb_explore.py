"""UCBExplore, in the spirit of Liu et al. 2014: error measured by confidence intervals  [as Sect. 2 describes it]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise import checks
from equipoise.kernels.rules import UCB_EXPLORE, Rule
from equipoise.policies.compiled import CompiledPolicy
from equipoise.stats import LARGEST_REWARD


@dataclass(frozen=True, kw_only=True, repr=False)
class UCBExplore(CompiledPolicy):
    """Follow the optimum of reward against the average half-width of Hoeffding intervals at the horizon.

    The half-width after n pulls is ``scale * sqrt(log(2 / failure_probability) / (2 n))`` for arms of any spread, so
    accuracy alone asks for equal shares; means enter by their upper bounds. The result mixes Uniform and UCB, and the
    mixture depends on the horizon: a short one is spent exploring, a long one mostly on reward.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and interval width (0).
    horizon : int
        Number of pulls after which the intervals are judged.
    failure_probability : float, default 0.05
        One minus the level of the intervals.
    scale : float, default 1.0
        Range of the rewards.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.

    References
    ----------
    Liu, Mandel, Brunskill, Popović (2014). Trading off scientific knowledge and user learning with multi-armed bandits.
    EDM. This follows the description in Erraqabi et al. (2017), Sect. 2, not the original code.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([50, 50], [0.2, 0.4], [0.3, 0.1])
    >>> for horizon in (100, 10_000):
    ...     print(UCBExplore(reward_weight=0.5, horizon=horizon).target(stats).round(3))
    [0.262 0.738]
    [0.065 0.935]
    """

    reward_weight: float
    horizon: int
    failure_probability: float = 0.05
    scale: float = 1.0
    floor: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "floor")
        self._set(
            horizon=checks.whole_number("horizon", self.horizon, 1, 10**15),
            scale=checks.number_between("scale", self.scale, 0, LARGEST_REWARD, open_low=True),
        )

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=UCB_EXPLORE,
            rewards_needed=1,
            reward_weight=self.reward_weight,
            horizon=float(self.horizon),
            failure_probability=self.failure_probability,
            scale=self.scale,
        )
