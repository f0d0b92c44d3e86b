"""The policy to take unless there is a reason for another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.errors import InvalidInput
from equipoise.policies.pooled_balance import PooledBalance

if TYPE_CHECKING:
    from equipoise.policies.policy import Policy


def recommended(reward_weight: float) -> Policy:
    """Return the policy of an experiment for which only a weight between reward and accuracy is given.

    Its pulls are drawn at random, so that nobody can guess the next one and every probability can be logged.

    Examples
    --------
    >>> recommended(0.8)
    PooledBalance(reward_weight=0.8, tracking='windowed')
    """
    return PooledBalance(reward_weight=reward_weight, tracking="windowed")


def policy_or_recommended(policy: Policy | None, reward_weight: float | None) -> Policy:
    """Return the policy that was given, or the one for the weight that was given; it must be one of the two."""
    if policy is not None and reward_weight is None:
        return policy
    if policy is None and reward_weight is not None:
        return recommended(reward_weight)
    raise InvalidInput(f"give a policy or a reward_weight; got {'neither' if policy is None else 'both'}")
