"""Whether a policy's class left methods as they are: what a user overrides, the compiled loop must not pass over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.policies import Policy


def keeps(policy: Policy, kind: type, methods: tuple[str, ...]) -> bool:
    """Say whether a policy's class left the methods as they are in `kind`."""
    return all(getattr(type(policy), method) is getattr(kind, method) for method in methods)
