"""Facts about curves over pulls that claims are decided by: when a curve settles, and how steep it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def settled_from(step: ArrayLike, value: ArrayLike, bound: float) -> int | None:
    """Return the first step from which on the curve stays below a bound; None if it ends above it.

    Examples
    --------
    >>> settled_from([10, 20, 30, 40], [0.5, 0.1, 0.4, 0.2], 0.3), settled_from([10, 20], [1, 2], 0.3)
    (40, None)
    """
    steps, is_above = np.asarray(step), ~(np.asarray(value) < bound)
    place = int(np.flatnonzero(is_above)[-1]) + 1 if is_above.any() else 0
    return int(steps[place]) if place < steps.size else None


def growth_power(step: ArrayLike, value: ArrayLike) -> float:
    """Return the power of the number of pulls that a curve grows with: a least-squares line on logarithmic axes.

    Examples
    --------
    >>> round(growth_power([100, 200, 400], [10, 20, 40]), 6), round(growth_power([1, 4], [1, 2]), 6)
    (1.0, 0.5)
    """
    slope, _ = np.polyfit(np.log(np.asarray(step, dtype=float)), np.log(np.asarray(value, dtype=float)), 1)
    return float(slope)
