"""Whether the compiled loops do what a policy does: what a user overrides, they must not pass over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.policies.compiled import CompiledPolicy
from equipoise.policies.forcing_balance import ForcingBalance
from equipoise.separable import PowerObjective

if TYPE_CHECKING:
    from equipoise.policies import Policy


def keeps(policy: Policy, kind: type, methods: tuple[str, ...]) -> bool:
    """Say whether a policy's class left the methods as they are in `kind`."""
    return all(getattr(type(policy), method) is getattr(kind, method) for method in methods)


def is_compiled(policy: Policy) -> bool:
    """Say whether the compiled loop knows the policy's rule; not so for an objective or a method written in Python."""
    if isinstance(policy, ForcingBalance) and not isinstance(policy.objective, PowerObjective):
        return False
    kind = ForcingBalance if isinstance(policy, ForcingBalance) else CompiledPolicy
    return isinstance(policy, kind) and keeps(
        policy, kind, ("prepare", "choose", "probabilities", "target", "_decider")
    )
