"""Play a policy of the package: the compiled loop knows its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.policies import Policy
    from equipoise.simulation.replication import Mover, Replication


def built_in_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by the policy's rule."""
    from equipoise.kernels.play import advance

    arms, seed, number, checkpoints, arena, outputs = replication
    rule, per_arm = policy.rule(), policy.per_arm(arms.n_arms)  # type: ignore[attr-defined]

    def move(until: int) -> bool:
        return advance(rule, per_arm, seed, number, until, checkpoints, arena, *outputs)

    return move
