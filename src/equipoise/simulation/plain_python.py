"""Play any policy by asking it in Python, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.policies import NumbaPolicy
from equipoise.policies.compiled import CompiledPolicy
from equipoise.simulation.replication import or_nan, read_only
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.policies import Policy
    from equipoise.simulation.replication import Mover, Replication


def python_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by asking the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    arms, seed, number, checkpoints, arena, outputs = replication
    stats, choose = ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    # A policy that writes into what it is shown must not change the run.
    shown, show = _guarded(stats, copied=isinstance(policy, CompiledPolicy | NumbaPolicy))
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            arm = choose(shown, decision_uniform(seed, number, stats.n_assigned)).arm
            stats.assign(arm)
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, number, int(stats.pulls[arm]), buffer[arm])
            stats.update(arm, float(buffer[arm, place]))
            show()
            counters[STEP] += 1
            passed = int(counters[CHECKPOINT])
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                row = (stats.pulls, stats.mean, stats.std, or_nan(policy.target(shown)))
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move


def _guarded(stats: ArmStats, *, copied: bool) -> tuple[ArmStats, Callable[[], None]]:
    """Return statistics to show to a policy, and the function that brings them up to date.

    They are read-only views, or copies for compiled functions, which were compiled for arrays that can be written.
    """
    shown = ArmStats(stats.n_arms)
    names = ("assigned", "pulls", "mean", "std", "_sums")
    pairs = [(getattr(shown, name), getattr(stats, name)) for name in names]
    if not copied:
        for name in names:
            setattr(shown, name, read_only(getattr(stats, name)))

    def show() -> None:
        shown.n_assigned = stats.n_assigned
        if copied:
            for copy, original in pairs:
                copy[...] = original

    return shown, show
