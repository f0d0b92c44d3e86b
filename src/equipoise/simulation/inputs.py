"""What a simulation is asked for, checked: policies, replications and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.policies import Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import IntArray

LARGEST_HORIZON = 10**15


def checked_policies(policies: Any) -> tuple[Policy, ...]:
    """Return the policies, from one or several that differ."""
    values = (policies,) if isinstance(policies, Policy) or not hasattr(policies, "__iter__") else tuple(policies)
    if not values or not all(isinstance(policy, Policy) for policy in values):
        raise InvalidInput(f"policies must be policies such as ForcingBalance(reward_weight=0.9); got {policies!r}")
    labels = []
    for policy in values:
        policy.to_dict()  # one that cannot be recorded is refused now, not when the work is done
        labels.append(repr(policy))
    twice = next((label for k, label in enumerate(labels) if label in labels[:k]), None)
    if twice is not None:  # it would take the same decisions again, and share its label in frames
        raise InvalidInput(f"policies must differ from each other; got {twice} more than once")
    return values


def default_checkpoints(horizon: int) -> IntArray:
    """Return about 40 steps from 1 to the horizon, evenly spaced on a log scale.

    Examples
    --------
    >>> default_checkpoints(1000)[::6]
    array([   1,    7,   20,   59,  170,  492])
    """
    return np.unique(np.rint(np.geomspace(1, horizon, 40)).astype(np.int64))


def checked_checkpoints(checkpoints: ArrayLike | None, horizon: int) -> IntArray:
    """Return checkpoints in increasing order, each once, none beyond the horizon."""
    if checkpoints is None:
        return default_checkpoints(horizon)
    steps = _whole_numbers(checkpoints)
    if steps is None or steps.min() < 1 or steps.max() > horizon:
        raise InvalidInput(f"checkpoints must be whole numbers from 1 to {horizon}, the horizon; got {checkpoints!r}")
    return np.unique(steps)


def replication_numbers(replications: int | Sequence[int]) -> IntArray:
    """Return the numbers of the replications to play."""
    if not hasattr(replications, "__len__"):
        return np.arange(checks.whole_number("replications", replications, 1), dtype=np.int64)
    numbers = _whole_numbers(replications)
    if numbers is None or numbers.min() < 0 or np.unique(numbers).size != numbers.size:
        raise InvalidInput(
            f"replications must be how many, or which: different whole numbers from 0; got {replications!r}"
        )
    return numbers


def _whole_numbers(values: Any) -> IntArray | None:
    """Return a one-dimensional array of integers, or None if that is not what the values are."""
    try:
        array = np.atleast_1d(np.asarray(values))
    except ValueError:  # rows of different lengths
        return None
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        return None
    # Floats such as 1e3 or those of numpy.geomspace(...).round() are whole numbers too.
    if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.rint(array))).all():
        return None
    return array.astype(np.int64) if array.min() >= -(2**63) and array.max() < 2**63 else None
