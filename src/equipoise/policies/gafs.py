"""GAFS and GAFSMax: active exploration by greedy allocation with forced selection  [Sect. 5]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels.rules import BALANCE, RATIO, VARIANCE_SHARES, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class GAFS(CompiledPolicy):
    """Measure all arms as accurately as possible on average, whatever their rewards.

    The target is proportional to std^(2/3), the optimum for reward weight 0; the arm with the largest ratio of target
    to frequency is pulled, and arms with fewer than ``forcing * sqrt(t)`` pulls are forced.

    Parameters
    ----------
    forcing : float, default 1.0
        As in `ForcingBalance`.

    References
    ----------
    Antos, Grover, Szepesvári (2010). Active learning in heteroscedastic noise. Theor. Comput. Sci. 411. Their GAFS-MAX
    is `GAFSMax`; this is the paper's adaptation to the average error.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> GAFS().target(ArmStats.from_summary([50, 50], [1.0, 2.0], [1.0, 8.0])).round(3)
    array([0.2, 0.8])
    """

    forcing: float = 1.0

    def __post_init__(self) -> None:
        self._check("forcing")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=BALANCE, tracking=RATIO, forcing=self.forcing)


@dataclass(frozen=True, kw_only=True, repr=False)
class GAFSMax(CompiledPolicy):
    """Minimise the error of the worst-measured arm.

    The target is proportional to the variance, which gives all arms the same error; tracking and forcing are as in
    `GAFS`.

    Parameters
    ----------
    forcing : float, default 1.0
        As in `ForcingBalance`.

    References
    ----------
    Antos, Grover, Szepesvári (2010). Active learning in heteroscedastic noise. Theor. Comput. Sci. 411.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> GAFSMax().target(ArmStats.from_summary([50, 50], [1.0, 2.0], [1.0, 2.0])).round(3)
    array([0.2, 0.8])
    """

    forcing: float = 1.0

    def __post_init__(self) -> None:
        self._check("forcing")

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=VARIANCE_SHARES, tracking=RATIO, forcing=self.forcing)
