"""Posterior sampling: for reward, for the trade-off, and mixed with other assignments  [Sect. 6; beyond the paper]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise import checks
from equipoise.kernels.rules import NEYMAN_RATE, POST_DIFF, STATIC_RATE, THOMPSON_BALANCE, THOMPSON_SAMPLING, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class ThompsonSampling(CompiledPolicy):
    """Pull each arm with the probability that its mean is the largest.

    The decision is computed for `draws` posterior samples and one of them is picked at random, as in `ThompsonBalance`.
    If all rewards so far are 0 or one other value, an arm's rate has a Beta posterior; its prior has the mean of all
    arms and the weight of one success, or of one failure if that is rarer. Otherwise means have Student posteriors, and
    spreads are estimated, so rewards may be on any scale; the prior is one reward of typical spread. An arm whose first
    rewards are all the same stays uncertain and is pulled again.

    Parameters
    ----------
    draws : int, default 16
        Posterior samples per decision; more samples take longer and make the logged probability finer.

    References
    ----------
    Thompson (1933). Biometrika 25. Honda and Takemura (2014), AISTATS, analyse the Gaussian case of unknown variance,
    and that it needs a prior. The priors, learnt from all arms, are ours.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100], [1.0, 1.2], [1.0, 1.0])
    >>> ThompsonSampling(draws=2000).probabilities(stats).round(1)
    array([0.1, 0.9])

    No success in five trials is not the end of an arm:

    >>> stats = ArmStats.from_summary([5, 100], [0.0, 0.1], [0.0, (0.1 * 0.9 * 100 / 99) ** 0.5])
    >>> ThompsonSampling(draws=2000).probabilities(stats).round(1)
    array([0.3, 0.7])
    """

    draws: int = 16

    def __post_init__(self) -> None:
        self._check("draws")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=THOMPSON_SAMPLING, draws=self.draws)


@dataclass(frozen=True, kw_only=True, repr=False)
class ThompsonBalance(CompiledPolicy):
    """Draw means and spreads from their posterior, solve for the optimum of the draw, track it.

    Uncertainty about an arm makes its draws vary; there is no other exploration. The decision is computed for `draws`
    posterior samples and one of them is picked at random: marginally that is the same as drawing once, and the share of
    samples that agree with the pick is the probability to log.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    draws : int, default 16
        Posterior samples per decision; more samples take longer and make the logged probability finer.
    floor : float or one per arm, default 0.0
        Smallest share of every arm in the target.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.

    References
    ----------
    Thompson (1933). Biometrika 25. Erraqabi et al. (2017), Sect. 6, names the adaptation as future work. The posterior
    is that of `ThompsonSampling`.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([40, 60], [1.0, 2.0], [1.0, 1.0])
    >>> ThompsonBalance(reward_weight=0.4, draws=1000).probabilities(stats).round(1)
    array([0.1, 0.9])
    """

    reward_weight: float
    draws: int = 16
    floor: float | tuple[float, ...] = 0.0
    floor_decay: float = 0.0

    def __post_init__(self) -> None:
        self._check("reward_weight", "draws", "floor", "floor_decay")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=THOMPSON_BALANCE, reward_weight=self.reward_weight, draws=self.draws, floor_decay=self.floor_decay
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class ClippedThompson(CompiledPolicy):
    """Thompson sampling with a floor under the probability of every arm (probability clipping).

    Probabilities below the floor are raised to it, and the others scaled down. However bad an arm seems, it can be
    compared with the others later.

    Parameters
    ----------
    floor : float or one per arm
        Smallest probability of every arm; with 0, `ThompsonSampling`.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.
    draws : int, default 16
        Posterior samples per decision.

    References
    ----------
    Zhang, Janson, Murphy (2020), Inference for batched bandits, NeurIPS, need such a floor for their intervals.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100, 100], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    >>> ClippedThompson(floor=0.05, draws=2000).probabilities(stats).round(2)
    array([0.05, 0.47, 0.48])
    """

    floor: float | tuple[float, ...]
    floor_decay: float = 0.0
    draws: int = 16

    def __post_init__(self) -> None:
        self._check("floor", "floor_decay", "draws")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=THOMPSON_SAMPLING, draws=self.draws, floor_decay=self.floor_decay)


@dataclass(frozen=True, kw_only=True, repr=False)
class PostDiff(CompiledPolicy):
    """Assign evenly with the probability that all arms are about equally good; otherwise by Thompson sampling.

    Where arms hardly differ, even assignment costs next to nothing and leaves an experiment that can be analysed like
    any other. The chance of an even assignment is the posterior probability that no two arms differ by
    `small_difference` or more. Published for two arms; for more, the largest difference is what counts, as an even
    assignment costs at most that. The posterior is that of `ThompsonSampling`.

    Parameters
    ----------
    small_difference : float
        Difference of mean rewards below which it does not matter which arm a unit gets; 0 is `ThompsonSampling`.
    draws : int, default 16
        Posterior samples for the difference, and again for the choice.

    References
    ----------
    Li, Nogas, Song, Kumar, Durand, Rafferty, Deliu, Villar, Williams (2021). Algorithms for adaptive experiments that
    trade-off statistical analysis with reward: combining uniform random assignment and reward maximization.
    arXiv:2112.08507 (TS-PostDiff).

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100], [1.0, 1.2], [1.0, 1.0])
    >>> for small in (0.0, 0.2, 2.0):
    ...     print(PostDiff(small_difference=small, draws=2000).probabilities(stats).round(1))
    [0.1 0.9]
    [0.3 0.7]
    [0.5 0.5]
    """

    small_difference: float
    draws: int = 16

    def __post_init__(self) -> None:
        small = checks.number_between("small_difference", self.small_difference, 0, checks.LARGEST_REWARD)
        self._set(small_difference=small)
        self._check("draws")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=POST_DIFF, scale=self.small_difference, draws=self.draws)


@dataclass(frozen=True, kw_only=True, repr=False)
class SARP(CompiledPolicy):
    """Static-Allocation Rate Policy: a part of the pulls is spread evenly, the rest is Thompson sampling.

    The part, called the rate, is the one at which the trade-off is largest if all other pulls go to the best arm. It is
    computed from the estimates at every step: large where arms are noisy and alike, small where they differ.

    From its authors' abstract we have the names, that both policies interpolate linearly between any
    regret-minimising algorithm and an allocation for inference, and that the rate follows the instance. Our reading is
    the rest: equal shares as the static allocation, `ThompsonSampling` as the algorithm, and the trade-off of Erraqabi
    et al. as what the rate maximises; theirs weighs mean squared error against regret.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    draws : int, default 16
        Posterior samples per decision.

    References
    ----------
    Lin, Ham, Bojinov (2026). Benefits and costs of adaptive sampling. arXiv:2604.24652.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100, 100], [1.0, 2.0, 1.0], [1.0, 1.0, 3.0])
    >>> SARP(reward_weight=0.5, draws=2000).probabilities(stats).round(2)
    array([0.32, 0.35, 0.32])
    """

    reward_weight: float
    draws: int = 16

    def __post_init__(self) -> None:
        self._check("reward_weight", "draws")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=STATIC_RATE, reward_weight=self.reward_weight, draws=self.draws)


@dataclass(frozen=True, kw_only=True, repr=False)
class NARP(CompiledPolicy):
    """Neyman-Adaptive Rate Policy: a part of the pulls follows the estimated spreads, the rest is Thompson sampling.

    Like `SARP`, with shares proportional to the estimated standard deviations (Neyman allocation) instead of equal
    ones; there is also said what is its authors' and what is our reading. Spreads are estimated with the prior of
    `ThompsonSampling`, so that an arm whose first rewards are all the same keeps a share.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0).
    draws : int, default 16
        Posterior samples per decision.

    References
    ----------
    Lin, Ham, Bojinov (2026). Benefits and costs of adaptive sampling. arXiv:2604.24652. Neyman (1934), J. R. Stat. Soc.
    97.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100, 100], [1.0, 2.0, 1.0], [1.0, 1.0, 3.0])
    >>> NARP(reward_weight=0.5, draws=2000).probabilities(stats).round(2)
    array([0.16, 0.36, 0.48])
    """

    reward_weight: float
    draws: int = 16

    def __post_init__(self) -> None:
        self._check("reward_weight", "draws")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=NEYMAN_RATE, reward_weight=self.reward_weight, draws=self.draws)
