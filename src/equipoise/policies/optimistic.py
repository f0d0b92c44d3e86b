"""Policies that use confidence bounds: UCB, NaiveUCB, OptimisticBalance and UCBExplore  [Eq. 5, Sect. 2, 5, 6]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise import checks
from equipoise.checks import LARGEST_REWARD
from equipoise.kernels import rules
from equipoise.kernels.rules import CONFIDENCE_BALANCE, UCB_EXPLORE, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class UCB(CompiledPolicy):
    """Pull the arm with the largest mean + scale * sqrt(log(t) / pulls).

    Assignments with a pending reward count as pulls in the bonus, so that a batch spreads over arms.

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


@dataclass(frozen=True, kw_only=True, repr=False)
class NaiveUCB(CompiledPolicy):
    """Follow the optimum for upper bounds on the means and *lower* bounds on the standard deviations.

    Together they bound the trade-off from above, but an arm whose spread was underestimated is hardly pulled again, so
    the estimate is never corrected. There is no forcing.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    failure_probability : float, default 0.1
        Probability that some bound of Prop. 1 fails; delta in the paper.
    scale : float, default 1.0
        Range of the rewards; multiplies the bounds, which are for rewards in [0, 1].
    smallest_std : float, default 0.01
        Lower bounds are truncated here, as in the paper's experiments.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.

    References
    ----------
    Erraqabi et al. (2017), Eq. 5. We keep the factor 1/K of the trade-off that Eq. 5 drops.

    Examples
    --------
    The arm with the larger spread is pulled less, because it was pulled rarely so far:

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
    floor_decay: float = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "scale", "smallest_std", "floor", "floor_decay")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=CONFIDENCE_BALANCE,
            floor_decay=self.floor_decay,
            reward_weight=self.reward_weight,
            failure_probability=self.failure_probability,
            scale=self.scale,
            std_bound=-1.0,
            smallest_std=self.smallest_std,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class OptimisticBalance(CompiledPolicy):
    """Follow the optimum for upper bounds on the means and upper bounds on the standard deviations.

    A little-known arm looks both rewarding and uncertain, so it is pulled and becomes known, which avoids the trap of
    `NaiveUCB`. The optimised quantity is then neither an upper nor a lower bound on the trade-off.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    failure_probability : float, default 0.1
        Probability that some bound of Prop. 1 fails.
    scale : float, default 1.0
        Range of the rewards; multiplies the bounds, which are for rewards in [0, 1].
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.

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
    floor_decay: float = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "scale", "floor", "floor_decay")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=CONFIDENCE_BALANCE,
            floor_decay=self.floor_decay,
            reward_weight=self.reward_weight,
            failure_probability=self.failure_probability,
            scale=self.scale,
            std_bound=1.0,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class UCBExplore(CompiledPolicy):
    """Follow the optimum of reward against the average half-width of Hoeffding intervals at the horizon.

    The half-width after n pulls is ``scale * sqrt(log(2 / failure_probability) / (2 n))`` for arms of any spread, so
    accuracy alone asks for equal shares; means enter by their upper bounds. The result mixes Uniform and UCB, and the
    mixture depends on the horizon: a short one goes to exploration, a long one mostly to reward.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and interval width (0).
    horizon : int
        Number of pulls after which the intervals are evaluated.
    failure_probability : float, default 0.05
        One minus the level of the intervals.
    scale : float, default 1.0
        Range of the rewards.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.

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
    floor_decay: float = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "failure_probability", "floor", "floor_decay")
        self._set(
            horizon=checks.whole_number("horizon", self.horizon, 1, 10**15),
            scale=checks.number_between("scale", self.scale, 0, LARGEST_REWARD, open_low=True),
        )

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=UCB_EXPLORE,
            floor_decay=self.floor_decay,
            rewards_needed=1,
            reward_weight=self.reward_weight,
            horizon=float(self.horizon),
            failure_probability=self.failure_probability,
            scale=self.scale,
        )
