"""Decide the next assignment: any policy, among the arms in play, with floors and warm-up."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput
from equipoise.policies.compiled import choosing_since

if TYPE_CHECKING:
    from equipoise.experiment.configuration import Configuration
    from equipoise.kernels.assignment import Design
    from equipoise.policies import Policy
    from equipoise.stats import ArmStats

    Decision = tuple[int, float, bool, float | None]
    Decide = Callable[[ArmStats, int], Decision]


class Decider:
    """Decisions for one set of arms in play.

    `decide(stats, index)` returns the arm, its probability, whether it was forced, and the reward weight that the
    policy solved for, or None.

    Attributes
    ----------
    policy : Policy
        The experiment's policy, restricted to the arms in play.
    active : int array
        Positions of the arms in play.
    share : float array
        Floor of each of them.
    tracked_from : int array
        Assignments of each arm when the present set of arms came into play. A policy steers the shares since then
        towards its target, not those since the beginning: an arm that was not in play has nothing to catch up on.
    """

    def __init__(
        self,
        configuration: Configuration,
        arm_states: list[str],
        floors: list[float],
        tracked_from: IntArray | None = None,
    ) -> None:
        self.active: IntArray = np.array([i for i, state in enumerate(arm_states) if state == "active"], dtype=np.int64)
        self.share: FloatArray = np.array(floors)[self.active]
        began = np.zeros(len(arm_states), np.int64) if tracked_from is None else tracked_from
        self.tracked_from: IntArray = began[self.active]
        configuration.policy.check_arms(len(arm_states))
        self.policy = restricted(configuration.policy, self.active, len(arm_states))
        self.policy.check_arms(self.active.size)
        self._n_arms = len(arm_states)
        self.warm_up, self.seed, self.kernels = configuration.warm_up, configuration.seed, configuration.kernels
        self.is_compiled = self.policy.is_compiled
        self.decide: Decide = self._compiled() if self.is_compiled else self._interpreted()

    def target(self, stats: ArmStats, policy: Policy | None = None) -> FloatArray | None:
        """Return the share each arm is steered towards, floors included; None if there is no target (yet)."""
        wanted = (policy or self.policy).target(stats.only(self.active))
        if wanted is None:
            return None
        shares = np.zeros(stats.n_arms)
        shares[self.active] = self.share + (1.0 - self.share.sum()) * wanted
        return shares

    def chances(self, stats: ArmStats) -> FloatArray:
        """Return the probability of every arm to be the next decision, 0 for arms that are not in play.

        Examples
        --------
        >>> import equipoise as eq
        >>> settings = {"policy": eq.Uniform(), "control": "b", "control_share": 0.5, "warm_up": 1}
        >>> experiment = eq.Experiment.create("memory:", "exam", arms=["a", "b"], seed=1, **settings)
        >>> decider = Decider(experiment.configuration, ["active", "active"], [0.0, 0.5])
        >>> decider.chances(eq.ArmStats(2))
        array([0.25, 0.75])
        """
        chances = np.zeros(stats.n_arms)
        if self.is_compiled:
            from equipoise.kernels.assignment import write_chances

            self.decide(stats, 0)
            write_chances(self._kernel[1], chances)
            return chances
        from equipoise.kernels.assignment import warm_up_chances

        own, policy = stats.only(self.active), np.empty(self.active.size)
        if not warm_up_chances(own.assigned, self.warm_up, policy):
            policy = np.asarray(self._probabilities(own), np.float64)
        chances[self.active] = self.share + (1.0 - self._kept) * policy
        return chances

    def decide_ahead(self, stats: ArmStats, index: int, count: int) -> list[Decision]:
        """Return up to `count` decisions from `index` on, valid as long as no reward or change comes in between."""
        if count == 1 or not self.is_compiled:
            return [self.decide(stats, index)]
        from equipoise.kernels.assignment import next_assignments

        arms, probabilities, forced = np.empty(count, np.int64), np.empty(count), np.empty(count, np.int64)
        weights = np.empty(count)
        rule, design = self._kernel
        assigned, (pulls, mean, std) = stats.assigned.copy(), self._estimates(stats)
        next_assignments(
            rule,
            design,
            self.warm_up,
            self.seed,
            index,
            assigned,
            pulls,
            mean,
            std,
            arms,
            probabilities,
            forced,
            weights,
        )
        solved = [None if math.isnan(weight) else weight for weight in weights.tolist()]
        return list(zip(arms.tolist(), probabilities.tolist(), map(bool, forced.tolist()), solved, strict=True))

    def for_kernel(self) -> tuple[Any, Design]:
        """Return the policy's rule and the design in the form that the compiled replay reads."""
        from equipoise.kernels.assignment import new_design
        from equipoise.kernels.rules import PER_ARM_ROWS, UNIFORM, Rule

        if not self.is_compiled:  # the replay reads neither
            nothing = np.zeros((PER_ARM_ROWS, self.active.size))
            return Rule(kind=UNIFORM), new_design(self.active, self.share, self.tracked_from, nothing)
        policy: Any = self.policy
        per_arm = policy.per_arm(self.active.size)
        return policy.rule()._replace(version=self.kernels), new_design(
            self.active, self.share, self.tracked_from, per_arm, policy.steering, self._n_arms
        )

    def sees_drift(self, stats: ArmStats) -> bool:
        """Return whether the sums that a policy keeps to steer under drift show that rewards change over time."""
        if stats.drift_sums is None:
            return False
        from equipoise.kernels.drift_sums import trend_speaks

        return bool(trend_speaks(self.active, stats.pulls, stats.std, stats.sums, stats.drift_sums))

    def _estimates(self, stats: ArmStats) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return what decisions read of all arms: numbers of rewards, means and stds."""
        drift = stats.drift_sums
        if drift is None:
            return stats.pulls, stats.mean, stats.std
        from equipoise.kernels.drift_sums import write_estimates

        rule, design = self._kernel
        read = design.seen_pulls, design.seen_mean, design.seen_std
        known = stats.pulls, stats.mean, stats.std, stats.sums, drift
        write_estimates(design.steering, rule.rewards_needed, design.active, *known, *read)
        return read

    def _compiled(self) -> Decide:
        from equipoise.kernels.assignment import next_assignment

        self._kernel = rule, design = self.for_kernel()
        warm_up, seed = self.warm_up, self.seed

        def decide(stats: ArmStats, index: int) -> Decision:
            arm, probability, forced, weight = next_assignment(
                rule, design, warm_up, seed, index, stats.assigned, *self._estimates(stats)
            )
            return arm, probability, forced, None if math.isnan(weight) else weight

        return decide

    def _interpreted(self) -> Decide:
        """Return `decide` for a policy written in Python; `kernels.assignment` explains each step."""
        from equipoise.kernels.assignment import warm_up_chances
        from equipoise.kernels.decision import draw
        from equipoise.kernels.random import decision_uniform

        choose, probabilities = choosing_since(self.policy, self.tracked_from)
        kept = 0.0
        for share in self.share.tolist():
            kept += share
        self._kept, self._probabilities = kept, probabilities

        def decide(stats: ArmStats, index: int) -> Decision:
            own = stats.only(self.active)
            uniform = decision_uniform(self.seed, 0, index)
            rest, forced = (uniform - kept) / (1.0 - kept), False
            chances = np.empty(self.active.size)
            if warm_up_chances(own.assigned, self.warm_up, chances):
                forced = uniform >= kept
                place = draw(chances, rest) if forced else draw(self.share, uniform)
                chance = float(chances[place])
            elif uniform < kept:
                place = draw(self.share, uniform)
                chance = float(probabilities(own)[place])
            else:
                place, chance, forced = choose(own, rest)
            return int(self.active[place]), float(self.share[place]) + (1.0 - kept) * chance, forced, None

        return decide


def restricted(policy: Policy, active: IntArray, n_arms: int) -> Policy:
    """Return the policy for some of the arms: per-arm parameters keep only the entries of these arms.

    Examples
    --------
    >>> import numpy as np, equipoise as eq
    >>> restricted(eq.Fixed(allocation=[0.5, 0.25, 0.25]), np.array([0, 1]), 3)
    Fixed(allocation=(0.6666666666666666, 0.3333333333333333))
    """
    if active.size == n_arms:
        return policy
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        if isinstance(value, tuple) and len(value) == n_arms:
            part = [value[i] for i in active]
            if field.name == "allocation":
                total = sum(part)
                if total <= 0:
                    raise InvalidInput("the arms that stay in play must have a share in the policy's allocation")
                part = [share / total for share in part]
            changed[field.name] = tuple(part)
        elif getattr(value, "importance", None) is not None and len(value.importance) == n_arms:
            importance = tuple(value.importance[i] for i in active)
            changed[field.name] = dataclasses.replace(value, importance=importance)
    return dataclasses.replace(policy, **changed) if changed else policy  # type: ignore[type-var]
