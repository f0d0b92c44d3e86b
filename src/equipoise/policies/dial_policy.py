"""The dial between reward and accuracy, as parameters that policies share: a weight, or the information to keep."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.kernels.rules import AVERAGE, CRITERIA, EVERY_ARM, FLOOR, STATED_WEIGHT
from equipoise.policies.compiled import CompiledPolicy

if TYPE_CHECKING:
    from equipoise.stats import ArmStats

_SCALE_FREE = (STATED_WEIGHT, AVERAGE, EVERY_ARM)
"""Dials that need no unit of rewards."""
_INFORMATION = ("information_kept", "information_about", "smallest_difference")


@dataclass(frozen=True, kw_only=True, repr=False)
class DialPolicy(CompiledPolicy):
    """A policy between reward and accuracy: `reward_weight` or `information_kept` sets the dial."""

    reward_weight: float | None = None
    information_kept: float | None = None
    information_about: str = "average"
    smallest_difference: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the name and all parameters as plain data; of the dial, what is set."""
        unset = _INFORMATION if self.information_kept is None else ("reward_weight",)
        return {name: value for name, value in super().to_dict().items() if name not in unset}

    def weight(self, stats: ArmStats) -> float | None:
        """Return the reward weight at these statistics: the stated one, or the one that keeps the stated information.

        None if too few rewards are known yet, or if the information is about something that no weight leads to.
        """
        from equipoise.kernels.decision import WORK_ROWS, write_target

        if self.reward_weight is not None:
            return self.reward_weight
        rule, n_arms = self.rule(), stats.n_arms
        if stats.pulls.min() < rule.rewards_needed:
            return None
        work, target = np.empty((WORK_ROWS, n_arms)), np.empty(n_arms)
        state = (stats.n_assigned + 1, *self._estimates(stats))
        _, weight = write_target(rule, self.per_arm(n_arms), *state, work, target)
        return None if math.isnan(weight) else weight

    def targets(self, stats: ArmStats) -> Callable[[float], FloatArray] | None:
        """Return the target as a function of the number on the dial; what is believed is computed once.

        None if there are too few rewards yet, or if targets must be computed one by one.

        Examples
        --------
        >>> import equipoise as eq
        >>> stats = eq.ArmStats.from_summary([50, 50], [1.0, 1.2], [1.0, 1.0])
        >>> target = eq.PooledBalance(reward_weight=0.5).targets(stats)
        >>> for weight in (0.0, 0.9):
        ...     print(target(weight).round(2))
        [0.5 0.5]
        [0.24 0.76]
        """
        from equipoise.kernels.decision import WORK_ROWS, solve_for, write_target

        rule, n_arms = self.rule(), stats.n_arms
        if not self.is_compiled or stats.pulls.min() < rule.rewards_needed or rule.criterion not in _SCALE_FREE:
            return None
        step, work, target = stats.n_assigned + 1, np.empty((WORK_ROWS, n_arms)), np.empty(n_arms)
        write_target(rule, self.per_arm(n_arms), step, *self._estimates(stats), work, target)
        is_weight = self.information_kept is None
        mean, std, per_arm = work[-2].copy(), work[-1].copy(), self.per_arm(n_arms)
        per_arm[FLOOR] = self.floors_at(step, n_arms)

        def solved(dial: float) -> FloatArray:
            shares = np.empty(n_arms)
            stated = rule._replace(reward_weight=dial) if is_weight else rule._replace(information_kept=dial)
            solve_for(stated, per_arm, mean, std, 1.0, work, shares)
            return shares

        return solved

    def _check_dial(self) -> checks.Dial:
        """Check the dial and return it; raise unless exactly one of weight and information is given."""
        dial = checks.dial(self.reward_weight, self.information_kept, self.information_about, self.smallest_difference)
        self._set(**dial._asdict())
        return dial

    def _dial(self) -> dict[str, Any]:
        """Return the fields of the rule that the dial sets."""
        if self.information_kept is None:
            return {"criterion": STATED_WEIGHT, "reward_weight": self.reward_weight}
        return {
            "criterion": CRITERIA[self.information_about],
            "information_kept": self.information_kept,
            "smallest_difference": self.smallest_difference or 0.0,
        }
