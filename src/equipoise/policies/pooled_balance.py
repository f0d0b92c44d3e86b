"""PooledBalance, the default policy: pool what the arms have in common, pull what helps most  [ours]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput, within
from equipoise.kernels.rules import DRIFTS, POOLED_BALANCE, TRACKINGS, Rule
from equipoise.policies.arm_prior import ArmPrior
from equipoise.policies.dial_policy import DialPolicy

if TYPE_CHECKING:
    from equipoise.policies.policy import Policy
    from equipoise.stats import ArmStats

_PULL_TRACKINGS = ("marginal", "difference", "windowed")
"""Ways to choose the next pull; see the parameter `tracking`."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PooledBalance(DialPolicy):
    """Estimate each arm from its own rewards and those of the others; pull what raises the trade-off most.

    A few rewards say little about one arm, but all arms together show how much arms differ. Spreads are shrunk towards
    the typical one and means towards their average, as far as their differences may be noise (empirical Bayes); with
    more rewards an arm's own data dominate. The trade-off is linear in means and spreads, so with these expectations it
    is the expected trade-off, and each pull goes to the arm that raises it most. A little-known arm keeps a spread that
    calls for pulls, so nothing needs forcing or tuning.

    Parameters
    ----------
    reward_weight : float
        The dial between reward (1) and accuracy (0); w in the paper.
    information_kept : float
        The dial in other words, instead of `reward_weight`: the most reward such that the experiment stays as accurate
        as the best design with this share of the people. 1 is all accuracy, towards 0 all reward.
    information_about : {"average", "every-arm", "best-arm"}
        What that accuracy is about: the average error of the arms, every arm, or which arm is best.
    smallest_difference : float, optional
        For "best-arm": differences between means below this count as this; a twentieth of the typical spread by
        default.
    floor : float or one per arm, default 0.0
        Smallest share of every arm.
    floor_decay : float, default 0.0
        At step t the floor is ``floor * t**-floor_decay``: it decreases, as Remark 2 of the paper proposes; below 1.
    tracking : {"marginal", "difference", "windowed"}
        Which arm is pulled: the one that raises the expected trade-off most; the one furthest below the optimal
        share, as in the paper; or one drawn at random from the next pulls that raise it most, as many as the window
        is long. The last has a probability to log, and its next arm cannot be guessed.
    window : int, default 10
        For "windowed": how many pulls ahead the draw looks, at least.
    window_growth : float, default 0.05
        For "windowed": at step t the draw looks ``window_growth * t`` pulls ahead, at most 100, if that is more than
        `window`. Longer windows give probabilities that are worth more to estimates which divide by them, and follow
        the best shares less closely, so they come later. 0 keeps the window constant.
    mixing : float, default 0.02
        For "windowed": the share of pulls spread evenly, so that no arm has probability 0.
    forcing : float, default 0.1
        Insurance: an arm with fewer than ``forcing * sqrt(t)`` pulls is pulled whatever its estimate. That is 16 pulls
        of 25,000; it matters for a weight of 1, where nothing else explores.
    first_rewards : int, default 4
        Rewards of every arm before estimates are used; until then arms take turns.
    caution : float, default 2.0
        Number of standard deviations by which differences between many arms must exceed their noise to count.
    curiosity : float, default 2.0
        A bonus of this many standard deviations, divided by its pulls, is added to an arm's estimated mean: an arm
        with a few bad rewards gets another chance.
    pooling : bool, default True
        Whether to compare arms to learn how much they differ. Without it each is estimated almost from its own rewards
        alone.

    drift : {"none", "declared", "detected"}
        What to do about levels that rise or fall with time, by which the arm pulled last looks best. "declared" weights
        each reward by 1 / its probability, so that every arm is averaged over the same people; "detected" does so while
        a check finds that rewards change with time within arms. Both need tracking="windowed"; without drift the
        weights cost accuracy. `ArmStats` must keep them, as `Bandit`, experiments and the simulator see to.
    prior : ArmPrior, optional
        How far apart means and spreads of arms usually are, where earlier experiments or guesses say so. What the arms
        show is added to it, also where there are only two or three; `caution` then has no effect.

    References
    ----------
    Smyth (2004), Stat. Appl. Genet. Mol. Biol. 3(1), for the spreads; Morris (1983), J. Am. Stat. Assoc. 78, and Paule
    and Mandel (1982), J. Res. Natl. Bur. Stand. 87, for the means. The objective is that of Erraqabi et al. (2017).

    Examples
    --------
    After five rewards each, differences between spreads are mostly noise; after five hundred they are not:

    >>> from equipoise.stats import ArmStats
    >>> mean, std = [1.0, 1.2, 0.9, 1.1, 1.0, 1.3], [1.1, 0.3, 0.8, 1.2, 2.2, 0.9]
    >>> policy = PooledBalance(reward_weight=0.5)
    >>> policy.target(ArmStats.from_summary([5] * 6, mean, std)).round(3)
    array([0.165, 0.143, 0.154, 0.169, 0.212, 0.158])
    >>> policy.target(ArmStats.from_summary([500] * 6, mean, std)).round(3)
    array([0.167, 0.078, 0.129, 0.186, 0.269, 0.171])
    """

    floor: float | tuple[float, ...] = 0.0
    floor_decay: float = 0.0
    tracking: str = "marginal"
    window: int = 10
    window_growth: float = 0.05
    mixing: float = 0.02
    forcing: float = 0.1
    first_rewards: int = 4
    caution: float = 2.0
    curiosity: float = 2.0
    pooling: bool = True
    drift: str = "none"
    prior: ArmPrior | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.pooling, bool):
            raise InvalidInput.of("pooling", "must be true or false", self.pooling)
        self._set(
            tracking=checks.one_of("tracking", self.tracking, _PULL_TRACKINGS),
            window=checks.whole_number("window", self.window, 1, 1_000),
            first_rewards=checks.whole_number("first_rewards", self.first_rewards, 3),
            caution=checks.number_between("caution", self.caution, 0, 100),
            curiosity=checks.number_between("curiosity", self.curiosity, 0, 100),
        )
        self._set(drift=checks.one_of("drift", self.drift, tuple(DRIFTS)))
        if self.weighs_rewards and self.tracking != "windowed":
            raise InvalidInput.of(
                "drift",
                'can only be handled with tracking="windowed", which has a probability to weight each reward by',
                self.drift,
            )
        self._set(prior=self._checked_prior())
        self._check_dial()
        self._check("floor", "floor_decay", "window_growth", "mixing", "forcing")

    @property
    def weighs_rewards(self) -> bool:
        """Whether choices read rewards weighted by their probability."""
        return self.drift != "none"

    @property
    def steering(self) -> int:
        """What choices read, as the kernels know it."""
        return DRIFTS[self.drift]

    def to_dict(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data; `drift` if there may be any, and `prior` if there is one.

        Logs written before there were any must read the same.
        """
        data = super().to_dict()
        if self.drift == "none":
            del data["drift"]
        del data["prior"]
        return data if self.prior is None else data | {"prior": self.prior.to_dict()}

    def _checked_prior(self) -> ArmPrior | None:
        """Return the prior, read from plain data if it is given as such."""
        prior: Any = self.prior
        if isinstance(prior, dict):
            with within("prior"):
                prior = ArmPrior.from_dict(prior)
        if prior is not None and not isinstance(prior, ArmPrior):
            raise InvalidInput.of("prior", "must be an ArmPrior", prior)
        if prior is not None and not self.pooling:
            raise InvalidInput.of("prior", "says how much arms have in common, and needs pooling=True", prior)
        return prior

    def _estimates(self, stats: ArmStats) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return what choices read: weighted estimates under drift."""
        if self.drift == "none" or stats.drift_sums is None:
            return stats.pulls, stats.mean, stats.std
        from equipoise.kernels.drift_sums import write_estimates

        n_arms = stats.n_arms
        read = np.empty(n_arms, np.int64), np.empty(n_arms), np.empty(n_arms)
        arms, known = np.arange(n_arms), (stats.pulls, stats.mean, stats.std, stats.sums, stats.drift_sums)
        write_estimates(self.steering, self.first_rewards, arms, *known, *read)
        return read

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        prior = self.prior
        return Rule(
            kind=POOLED_BALANCE,
            floor_decay=self.floor_decay,
            tracking=TRACKINGS[self.tracking],
            rewards_needed=self.first_rewards,
            forcing=self.forcing,
            **self._dial(),
            window=float(self.window),
            window_growth=self.window_growth,
            mixing=self.mixing,
            pooling=int(self.pooling),
            caution=self.caution,
            exploration=self.curiosity,
            prior_weight=0.0 if prior is None else prior.weight,
            prior_means=0.0 if prior is None else prior.means_apart**2,
            prior_spreads=0.0 if prior is None else prior.spreads_apart**2,
        )


def recommended(reward_weight: float | None = None, **dial: Any) -> Policy:
    """Return the policy for an experiment of which only the dial between reward and accuracy is given.

    It draws pulls at random, so that the next one cannot be guessed and every probability can be logged.

    Examples
    --------
    >>> recommended(0.8)
    PooledBalance(reward_weight=0.8, tracking='windowed')
    >>> recommended(information_kept=0.7, information_about="every-arm")
    PooledBalance(information_kept=0.7, information_about='every-arm', tracking='windowed')
    """
    return PooledBalance(reward_weight=reward_weight, tracking="windowed", **dial)


def policy_or_recommended(policy: Policy | None, **dial: Any) -> Policy:
    """Return the given policy, or the recommended one for the given dial; exactly one must be given."""
    given = {name: value for name, value in dial.items() if value is not None}
    if policy is None and given:
        return recommended(**given)
    if policy is not None and not given:
        return policy
    if policy is None:
        checks.one_dial(None, None)
    raise InvalidInput(f"give a policy or {' and '.join(given)}, which sets the recommended one; got both")
