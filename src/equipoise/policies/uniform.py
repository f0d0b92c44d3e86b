"""Uniform: arms take turns  [Sect. 5]."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.kernels.rules import UNIFORM, Rule
from equipoise.policies.compiled import CompiledPolicy


@dataclass(frozen=True, kw_only=True, repr=False)
class Uniform(CompiledPolicy):
    """Pull the arm that was pulled least, the first of them on a tie: a classical balanced experiment.

    Examples
    --------
    >>> from equipoise.stats import ArmStats
    >>> Uniform().choose(ArmStats.from_summary([9, 8], [1.0, 2.0], [1.0, 1.0]), uniform=0.0).arm
    1
    """

    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""
        return Rule(kind=UNIFORM, rewards_needed=0)
