"""Baseline policies: uniform turns, a fixed allocation, and epsilon-greedy  [Sect. 5]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.kernels.rules import ALLOCATION, EPSILON_GREEDY, FIXED, TRACKINGS, UNIFORM, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class Uniform(CompiledPolicy):
    """Pull the arm with the fewest pulls, the first on a tie: a classical balanced experiment.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> Uniform().choose(ArmStats.from_summary([9, 8], [1.0, 2.0], [1.0, 1.0]), uniform=0.0).arm
    1
    """

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=UNIFORM, rewards_needed=0)


@dataclass(frozen=True, kw_only=True, repr=False)
class Fixed(CompiledPolicy):
    """Follow an allocation that is fixed in advance.

    Parameters
    ----------
    allocation : sequence of float
        One share per arm, adding up to 1.
    tracking, window, window_growth, mixing
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
    window_growth: float = 0.05
    mixing: float = 0.02

    def __post_init__(self) -> None:
        shares = checks.allocation("allocation", self.allocation)
        self._set(allocation=tuple(shares.tolist()))
        self._check("tracking", "window", "window_growth", "mixing")

    def per_arm(self, n_arms: int) -> FloatArray:
        """Return the allocation in its row of the numbers per arm."""
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
            window_growth=self.window_growth,
            mixing=self.mixing,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class EpsilonGreedy(CompiledPolicy):
    """Pull the arm with the largest mean, except for a share of pulls drawn evenly from all arms.

    Parameters
    ----------
    exploration : float, default 0.1
        Share of pulls drawn evenly; the epsilon of the name.

    References
    ----------
    Sutton and Barto (2018). Reinforcement Learning, 2nd ed., Sect. 2.2.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> EpsilonGreedy(exploration=0.2).probabilities(ArmStats.from_summary([9, 9], [1.0, 2.0], [1.0, 1.0]))
    array([0.1, 0.9])
    """

    exploration: float = 0.1

    def __post_init__(self) -> None:
        self._set(exploration=checks.number_between("exploration", self.exploration, 0, 1))

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=EPSILON_GREEDY, rewards_needed=1, exploration=self.exploration)
