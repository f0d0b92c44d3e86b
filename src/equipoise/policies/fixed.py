"""Fixed: a given allocation, tracked. With the optimal allocation it is the oracle that regret compares with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.kernels.rules import ALLOCATION, FIXED, TRACKINGS, Rule
from equipoise.policies.compiled import CompiledPolicy

if TYPE_CHECKING:
    from equipoise._types import FloatArray


@dataclass(frozen=True, kw_only=True, repr=False)
class Fixed(CompiledPolicy):
    """Follow an allocation that is known beforehand.

    Parameters
    ----------
    allocation : sequence of float
        One share per arm, adding up to 1.
    tracking, window, mixing
        As in `ForcingBalance`; "sample" is a classical experiment with unequal random assignment.

    Examples
    --------
    >>> import equipoise as eq
    >>> bandit = eq.Bandit(eq.Fixed(allocation=[0.25, 0.75]), n_arms=2)
    >>> bandit.ask(8)
    [1, 0, 1, 1, 0, 1, 1, 1]
    """

    allocation: tuple[float, ...]
    tracking: str = "difference"
    window: float = 10.0
    mixing: float = 0.02

    def __post_init__(self) -> None:
        shares = checks.allocation("allocation", self.allocation)
        self._set(allocation=tuple(shares.tolist()))
        self._check("tracking", "window", "mixing")

    def per_arm(self, n_arms: int) -> FloatArray:
        """Return the allocation in its place among the numbers per arm."""
        rows = super().per_arm(n_arms)
        rows[ALLOCATION] = checks.allocation("allocation", self.allocation, size=n_arms)
        return rows

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(
            kind=FIXED,
            rewards_needed=0,
            tracking=TRACKINGS[self.tracking],
            window=self.window,
            mixing=self.mixing,
        )
