"""Policies whose decision is taken by the compiled kernel: the class says the rule, the kernel does the rest."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from equipoise import checks
from equipoise.policies.policy import Choice, Policy, inherits

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise._types import FloatArray
    from equipoise.kernels.rules import Rule
    from equipoise.policies.policy import Chooser
    from equipoise.stats import ArmStats

    Decider = Callable[[ArmStats], tuple[int, bool]]


DECIDING_METHODS = ("prepare", "choose", "probabilities", "target", "_decider")
"""What the compiled loops do in place of the policy; an override of any of them must be called."""


class CompiledPolicy(Policy):
    """A policy known to the compiled kernel by its rule."""

    @abstractmethod
    def rule(self) -> Rule:
        """Return the policy as the record the kernel reads."""

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled loops decide as this policy does: not so where a subclass overrides a method."""
        return inherits(self, CompiledPolicy, DECIDING_METHODS)

    def per_arm(self, n_arms: int) -> FloatArray:
        """Return the policy's numbers per arm: floor, importance and allocation."""
        floor = checks.floors(getattr(self, "floor", 0.0), n_arms)
        return np.array([floor, np.full(n_arms, 1.0 / n_arms), np.zeros(n_arms)])

    def check_arms(self, n_arms: int) -> None:
        """Raise if the parameters do not fit this number of arms."""
        self.per_arm(n_arms)

    def prepare(self, n_arms: int) -> Chooser:
        """Return a chooser with its scratch space allocated; `choose` itself if a subclass has its own."""
        self.check_arms(n_arms)
        if type(self).choose is not CompiledPolicy.choose:
            return self.choose
        return self._chooser(n_arms)

    def _chooser(self, n_arms: int) -> Chooser:
        """Return a chooser that goes by the kernel, or by the probabilities of a subclass that has its own."""
        if type(self).probabilities is not CompiledPolicy.probabilities:
            return super().choose
        from equipoise.kernels.decision import RANDOM, draw

        probability = np.zeros(n_arms)
        decider = self._decider(n_arms, probability)

        def chooser(stats: ArmStats, uniform: float) -> Choice:
            arm, forced = decider(stats)
            if arm != RANDOM:
                return Choice(arm, 1.0, forced)
            arm = draw(probability, uniform)
            return Choice(arm, float(probability[arm]), forced)

        return chooser

    def choose(self, stats: ArmStats, uniform: float) -> Choice:
        """Return the choice for these statistics; `uniform` is a random number in [0, 1)."""
        # A subclass that calls this from a `choose` of its own must not be sent back there.
        prepare = self.prepare if type(self).choose is CompiledPolicy.choose else self._chooser
        return prepare(stats.n_arms)(stats, uniform)

    def probabilities(self, stats: ArmStats) -> FloatArray:
        """Return the probability of each arm to be the next choice."""
        from equipoise.kernels.decision import RANDOM

        probability = np.zeros(stats.n_arms)
        arm, _ = self._decider(stats.n_arms, probability)(stats)
        if arm != RANDOM:
            probability[:] = 0.0
            probability[arm] = 1.0
        return probability

    def target(self, stats: ArmStats) -> FloatArray | None:
        """Return the allocation the policy steers towards, or None if it has none (yet)."""
        from equipoise.kernels.decision import write_target

        rule, (work, target) = self.rule(), _scratch(stats.n_arms)
        if stats.pulls.min() < rule.rewards_needed:
            return None
        t = stats.n_assigned + 1
        state = (stats.pulls, stats.mean, stats.std)
        return target if write_target(rule, self.per_arm(stats.n_arms), t, *state, work, target) else None

    def _decider(self, n_arms: int, probability: FloatArray) -> Decider:
        """Return the function that names the next arm, or fills `probability` and says it is random."""
        from equipoise.kernels.decision import decide

        rule, per_arm, (work, target) = self.rule(), self.per_arm(n_arms), _scratch(n_arms)

        def decider(stats: ArmStats) -> tuple[int, bool]:
            state = (stats.assigned, stats.pulls, stats.mean, stats.std)
            return decide(rule, per_arm, stats.n_assigned + 1, *state, work, target, probability)

        return decider


def _scratch(n_arms: int) -> tuple[FloatArray, FloatArray]:
    from equipoise.kernels.rules import WORK_ROWS

    return np.empty((WORK_ROWS, n_arms)), np.empty(n_arms)
