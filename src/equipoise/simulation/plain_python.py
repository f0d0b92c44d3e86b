"""Play any policy by asking it in Python, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.simulation.replication import or_nan
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.policies import Policy
    from equipoise.simulation.replication import Mover, Replication


def python_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by asking the policy in Python."""
    from equipoise.kernels.play import CHECKPOINT, STEP
    from equipoise.kernels.random import decision_uniform

    arms, seed, number, checkpoints, arena, outputs = replication
    stats, choose = ArmStats(arms.n_arms), policy.prepare(arms.n_arms)
    counters, buffer = arena.counters, arena.buffer

    def move(until: int) -> bool:
        while counters[STEP] < until:
            arm = choose(stats, decision_uniform(seed, number, stats.n_assigned)).arm
            stats.assign(arm)
            place = int(stats.pulls[arm]) % buffer.shape[1]
            if place == 0:
                arms.fill(arm, seed, number, int(stats.pulls[arm]), buffer[arm])
            stats.update(arm, float(buffer[arm, place]))
            counters[STEP] += 1
            passed = int(counters[CHECKPOINT])
            if passed < checkpoints.size and counters[STEP] == checkpoints[passed]:
                row = (stats.pulls, stats.mean, stats.std, or_nan(policy.target(stats)))
                for output, value in zip(outputs, row, strict=True):
                    output[passed] = value
                counters[CHECKPOINT] += 1
        return True

    return move
