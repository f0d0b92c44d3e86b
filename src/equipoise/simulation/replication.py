"""One replication to be played: its place among all, the arena it is played in and the rows it fills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.arms import Arms
    from equipoise.arrays import FloatArray, IntArray
    from equipoise.kernels.play import Arena

    Mover = Callable[[int], bool]
    """Plays up to a step; returns False if it needs something first, such as rewards that only Python can draw."""
    Outputs = tuple[IntArray, FloatArray, FloatArray, FloatArray]
    """Pulls, mean, std and target, one row per checkpoint."""


AnyArray = TypeVar("AnyArray", bound="np.ndarray[Any, Any]")


class Replication(NamedTuple):
    """All that decides how a replication goes, besides the policy."""

    arms: Arms
    seed: int
    number: int
    checkpoints: IntArray
    arena: Arena
    outputs: Outputs


def new_replication(arms: Arms, seed: int, number: int, checkpoints: IntArray, outputs: Outputs) -> Replication:
    """Return a replication before its first step."""
    from equipoise.kernels.play import new_arena

    arena = new_arena(*arms.drawing, buffered=_buffer_size(arms.n_arms, arms.drawing.kind))
    return Replication(arms, seed, number, checkpoints, arena, outputs)


def empty_replication(arms: Arms) -> Replication:
    """Return a replication without checkpoints, to be played for no steps."""
    counts, numbers = np.zeros((0, arms.n_arms), dtype=np.int64), np.zeros((0, arms.n_arms))
    return new_replication(arms, 0, 0, np.zeros(0, dtype=np.int64), (counts, numbers, numbers, numbers))


def read_only(array: AnyArray) -> AnyArray:
    """Return a view that shows what is in an array and refuses to change it: a policy looks at statistics only."""
    view = array.view()
    view.flags.writeable = False
    return view


def or_nan(target: FloatArray | None) -> FloatArray | float:
    """Return a target as it is recorded."""
    return np.nan if target is None else target


def _buffer_size(n_arms: int, kind: IntArray) -> int:
    """Return how many rewards per arm to make at a time: more for few arms, and where Python has to make them."""
    from equipoise.kernels.rewards import EXTERNAL

    if (kind == EXTERNAL).any():
        return 256
    size = 64
    while size > 4 and size * n_arms > 8192:
        size //= 2
    return size
