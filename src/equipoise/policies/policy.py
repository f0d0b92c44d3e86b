"""Define what a policy is: a value that turns statistics and one uniform number into the next choice."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from equipoise._types import FloatArray
from equipoise.errors import InvalidInput
from equipoise.serialization import Value

if TYPE_CHECKING:
    from equipoise.stats import ArmStats

Chooser: TypeAlias = "Callable[[ArmStats, float], Choice]"


class Choice(NamedTuple):
    """One decision: the arm, the probability with which it was chosen, and whether forcing left no choice."""

    arm: int
    probability: float
    forced: bool = False


class Policy(Value):
    """A rule that chooses the next arm.

    Policies are frozen dataclasses without state. To write one, subclass this and return the probabilities of the next
    arm; everything else (bandit, simulator, JSON by name) works with that.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, equipoise as eq
    >>> @dataclass(frozen=True, kw_only=True, repr=False)
    ... class LeastKnown(eq.Policy):
    ...     patience: int = 1
    ...     def probabilities(self, stats):
    ...         chance = 1.0 / (self.patience + stats.assigned)
    ...         return chance / chance.sum()
    >>> bandit = eq.Bandit(LeastKnown(patience=3), n_arms=2, seed=1)
    >>> bandit.ask(6)
    [0, 0, 1, 1, 1, 0]
    """

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops know this policy's rule and can decide for it."""
        return False

    @property
    def weighs_rewards(self) -> bool:
        """Whether choices read rewards weighted by their probability; see `ArmStats`."""
        return False

    @property
    def steering(self) -> int:
        """What choices read, as the kernels know it: `PLAIN`, unless rewards are weighted."""
        return 0

    @abstractmethod
    def probabilities(self, stats: ArmStats) -> FloatArray:
        """Return the probability of each arm to be the next choice."""

    def choose(self, stats: ArmStats, uniform: float) -> Choice:
        """Return the choice for these statistics; `uniform` is a random number in [0, 1)."""
        probability = np.asarray(self.probabilities(stats), dtype=np.float64)
        if probability.shape != (stats.n_arms,) or not probability.min() >= 0 or abs(probability.sum() - 1) > 1e-9:
            raise InvalidInput(
                f"{type(self).__name__}.probabilities must give {stats.n_arms} probabilities that add up to 1; "
                f"got {probability}"
            )
        arm = int(np.searchsorted(np.cumsum(probability), uniform, side="right"))
        if arm >= stats.n_arms or probability[arm] == 0:  # the cumulative sum may end a rounding below 1
            arm = int(np.flatnonzero(probability)[-1])
        return Choice(arm, float(probability[arm]))

    def target(self, stats: ArmStats) -> FloatArray | None:
        """Return the allocation the policy steers towards, or None if it has none (yet)."""
        return None

    def check_arms(self, n_arms: int) -> None:
        """Raise if the parameters do not fit this number of arms."""

    def prepare(self, n_arms: int) -> Chooser:
        """Return `choose`, prepared for many calls with this number of arms."""
        self.check_arms(n_arms)
        return self.choose


def inherits(policy: Policy, kind: type, methods: tuple[str, ...]) -> bool:
    """Return whether a policy's class leaves these methods as `kind` defines them."""
    return all(getattr(type(policy), method) is getattr(kind, method) for method in methods)
