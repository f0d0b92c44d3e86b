"""Arms as the compiled loop sees them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray


class Drawing(NamedTuple):
    """Arms as the compiled loop sees them: a kind and four numbers per arm, and a pool of rewards to resample."""

    kind: IntArray
    shape: FloatArray
    pool: FloatArray


def drawing_of(kind: int, *numbers: ArrayLike) -> Drawing:
    """Return arms of one kind; each of its numbers comes as one per arm."""
    rows = [np.asarray(row, dtype=np.float64) for row in numbers]
    shape = np.zeros((reward_kernel().SHAPE_ROWS, rows[0].size))
    for k, row in enumerate(rows):
        shape[k] = row
    return Drawing(np.full(rows[0].size, kind, dtype=np.int64), shape, np.zeros(0))


@cache
def reward_kernel() -> ModuleType:
    """Return the module that draws rewards; numba takes its time to load, so only now."""
    from equipoise.kernels import rewards

    return rewards
