"""The dial between reward and accuracy, as parameters that policies share: a weight, or the information to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.kernels.rules import CRITERIA, STATED_WEIGHT
from equipoise.policies.compiled import CompiledPolicy

if TYPE_CHECKING:
    from equipoise.stats import ArmStats

INFORMATION_ABOUT = tuple(CRITERIA)
"""What information can be kept about: the average error, every arm, or which arm is best."""

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
        state = (stats.n_assigned + 1, stats.pulls, stats.mean, stats.std)
        _, weight = write_target(rule, self.per_arm(n_arms), *state, work, target)
        return None if math.isnan(weight) else weight

    def _check_dial(self) -> None:
        """Check the dial; raise unless exactly one of weight and information is given."""
        check_one_dial(self.reward_weight, self.information_kept)
        if self.reward_weight is not None:
            self._check("reward_weight")
        else:
            self._set(information_kept=checked_share(self.information_kept))
        self._set(information_about=checks.one_of("information_about", self.information_about, INFORMATION_ABOUT))
        if self.reward_weight is not None and self.information_about != "average":
            raise InvalidInput.of("information_about", "goes with information_kept", self.information_about)
        if self.smallest_difference is not None:
            if self.information_about != "best-arm":
                raise InvalidInput.of(
                    "smallest_difference", "goes with information_about 'best-arm'", self.smallest_difference
                )
            self._set(smallest_difference=checked_difference(self.smallest_difference))

    def _dial(self) -> dict[str, Any]:
        """Return the fields of the rule that the dial sets."""
        if self.information_kept is None:
            return {"criterion": STATED_WEIGHT, "reward_weight": self.reward_weight}
        return {
            "criterion": CRITERIA[self.information_about],
            "information_kept": self.information_kept,
            "smallest_difference": self.smallest_difference or 0.0,
        }


def check_one_dial(reward_weight: Any, information_kept: Any) -> None:
    """Raise unless exactly one of the two is given."""
    if (reward_weight is None) == (information_kept is None):
        got = "neither" if reward_weight is None else f"both ({reward_weight!r} and {information_kept!r})"
        raise InvalidInput(
            f"give a reward_weight or information_kept, not both; got {got}",
            hint="information_kept=0.7 is as accurate as the best design with 70 of 100 people, at the most reward",
        )


def checked_share(information_kept: Any) -> float:
    """Return the share of the information to keep; raise unless it is in (0, 1]."""
    return checks.number_between("information_kept", information_kept, 0, 1, open_low=True)


def checked_difference(smallest_difference: Any) -> float:
    """Return the smallest difference of means that matters; raise unless it is positive."""
    return checks.number_between("smallest_difference", smallest_difference, 0, math.inf, open_low=True)
