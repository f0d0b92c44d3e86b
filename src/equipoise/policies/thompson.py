"""Posterior sampling with a Beta or a Student posterior: ThompsonSampling and ThompsonBalance  [Sect. 6]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels.rules import THOMPSON_BALANCE, THOMPSON_SAMPLING, Rule
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

    >>> stats = ArmStats.from_summary([5, 100], [0.0, 0.1], [0.0, 0.301511])
    >>> ThompsonSampling(draws=2000).probabilities(stats).round(1)
    array([0.2, 0.8])
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

    def __post_init__(self) -> None:
        self._check("reward_weight", "draws", "floor")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=THOMPSON_BALANCE, reward_weight=self.reward_weight, draws=self.draws)
