"""The dial between reward and accuracy, as parameters that policies share: a weight, or the information to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.kernels.rules import CRITERIA, STATED_WEIGHT
from equipoise.policies.compiled import CompiledPolicy

if TYPE_CHECKING:
    from equipoise.stats import ArmStats

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
