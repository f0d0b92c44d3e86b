"""Tracking afresh, for a policy that is partly written in Python; what the compiled decision does by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.policies.overriding import keeps

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.arrays import FloatArray, IntArray
    from equipoise.policies import Policy
    from equipoise.stats import ArmStats

    Choose = Callable[[ArmStats, float], tuple[int, float, bool]]
    Probabilities = Callable[[ArmStats], FloatArray]


def tracking_since(policy: Policy, tracked_from: IntArray) -> tuple[Choose, Probabilities]:
    """Return `choose` and `probabilities` of a policy that tracks its target by the assignments since some moment.

    `tracked_from` is how often each arm had been assigned then. A policy that has no target, or a choice of its own, is
    asked as it is: only its author knows which assignments it should count.
    """
    from equipoise.kernels.choice import forced_arm
    from equipoise.kernels.tracking import RANDOM, draw, track

    if not isinstance(policy, CompiledPolicy) or not _tracks_by_the_kernel(policy):
        return policy.prepare(tracked_from.size), policy.probabilities
    rule, probability = policy.rule(), np.zeros(tracked_from.size)

    def decide(stats: ArmStats) -> tuple[int, bool]:
        arm = forced_arm(rule, stats.n_assigned + 1, stats.assigned, stats.pulls)
        forced = arm >= 0
        if not forced:
            target, tracked = policy.target(stats), stats.assigned - tracked_from
            assert target is not None  # noqa: S101  (until then, arms are forced)
            t = int(tracked.sum()) + 1
            arm = track(rule.tracking, rule.window, rule.mixing, t, target, tracked, probability)
        if arm != RANDOM:
            probability[:] = 0.0
            probability[arm] = 1.0
        return arm, forced

    def choose(stats: ArmStats, uniform: float) -> tuple[int, float, bool]:
        arm, forced = decide(stats)
        if arm == RANDOM:
            arm = draw(probability, uniform)
        return arm, float(probability[arm]), forced

    def probabilities(stats: ArmStats) -> FloatArray:
        decide(stats)
        return probability

    return choose, probabilities


def _tracks_by_the_kernel(policy: CompiledPolicy) -> bool:
    from equipoise.kernels import rules

    with_a_target = (rules.FIXED, rules.BALANCE, rules.VARIANCE_SHARES, rules.CONFIDENCE_BALANCE, rules.UCB_EXPLORE)
    kind = ForcingBalance if isinstance(policy, ForcingBalance) else CompiledPolicy
    untouched = keeps(policy, kind, ("prepare", "choose", "probabilities", "target", "_decider"))
    return untouched and policy.rule().kind in with_a_target
