"""The policy to take unless there is a reason for another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
