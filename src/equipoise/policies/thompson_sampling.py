"""ThompsonSampling, posterior sampling for reward alone, with Gaussian rewards of unknown variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.parameters import checked

if TYPE_CHECKING:
    from equipoise.kernels.rules import Rule


@dataclass(frozen=True, kw_only=True, repr=False)
class ThompsonSampling(CompiledPolicy):
    """Pull each arm with the probability that its mean is the largest.

    The decision is taken for `draws` posterior samples and one of them is picked at random, as in `ThompsonBalance`.
    Spreads are estimated, so rewards may be on any scale.

    Parameters
    ----------
    draws : int, default 16
        Posterior samples per decision; more cost time and make the logged probability finer.

    References
    ----------
    Thompson (1933). Biometrika 25. Honda and Takemura (2014), AISTATS, analyse the Gaussian case of unknown variance.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> stats = ArmStats.from_summary([100, 100], [1.0, 1.2], [1.0, 1.0])
    >>> ThompsonSampling(draws=2000).probabilities(stats).round(1)
    array([0.1, 0.9])
    """

    draws: int = 16

    def __post_init__(self) -> None:
        self._set(**checked(self, "draws"))

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        from equipoise.kernels.rules import THOMPSON_SAMPLING, Rule

        return Rule(kind=THOMPSON_SAMPLING, draws=self.draws)
