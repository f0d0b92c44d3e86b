"""Play a policy of the package: the compiled loop knows its rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.separable import PowerObjective
from equipoise.simulation.overriding import keeps

if TYPE_CHECKING:
    from equipoise.policies import Policy
    from equipoise.simulation.replication import Mover, Replication


def is_compiled(policy: Policy) -> bool:
    """Say whether the compiled loop knows the policy's rule; not so for an objective or a method written in Python."""
    if isinstance(policy, ForcingBalance) and not isinstance(policy.objective, PowerObjective):
        return False
    kind = ForcingBalance if isinstance(policy, ForcingBalance) else CompiledPolicy
    return isinstance(policy, kind) and keeps(
        policy, kind, ("prepare", "choose", "probabilities", "target", "_decider")
    )


def built_in_mover(policy: Policy, replication: Replication) -> Mover:
    """Return a function that plays up to a step by the policy's rule."""
    from equipoise.kernels.play import advance

    arms, seed, number, checkpoints, arena, outputs = replication
    rule, per_arm = policy.rule(), policy.per_arm(arms.n_arms)  # type: ignore[attr-defined]

    def move(until: int) -> bool:
        return advance(rule, per_arm, seed, number, until, checkpoints, arena, *outputs)

    return move
