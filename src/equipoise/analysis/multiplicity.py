"""Share a failure probability among statements that shall hold together, and adjust p-values and e-values for it.

Arms may be added while an experiment runs. So the statements about the first arms share nine tenths of the failure
probability, and the j-th arm added later brings statements that share one tenth divided by j (j + 1). However many
come, that adds up to no more than the whole, and nothing that was shown before becomes wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray, IntArray

KEPT_FOR_LATER = 0.1
"""Share of the failure probability kept for arms that are added later."""


def arm_failures(delta: float, n_arms: int, n_first: int | None = None) -> FloatArray:
    """Return the failure probability of each arm's interval, such that all hold together with 1 - delta.

    Parameters
    ----------
    delta : float
        For all arms together.
    n_arms : int
        Number of arms.
    n_first : int, optional
        How many of them there were at first; the others were added later, and more may be. If it is left out, none will
        be added.

    Examples
    --------
    >>> arm_failures(0.05, 4)
    array([0.0125, 0.0125, 0.0125, 0.0125])
    >>> arm_failures(0.05, 4, n_first=2).round(5)
    array([0.0225 , 0.0225 , 0.0025 , 0.00083])
    """
    return _shares(delta, np.arange(n_arms), n_arms if n_first is None else n_first, n_first is None, _one_each)


def control_failures(delta: float, others: ArrayLike, n_first: int | None = None, *, n_arms: int) -> FloatArray:
    """Return the failure probability of the difference of each of these arms from a control, for all together.

    Examples
    --------
    >>> control_failures(0.05, [1, 2, 3, 4], n_arms=5)
    array([0.0125, 0.0125, 0.0125, 0.0125])
    """
    newest = np.asarray(others, np.int64)
    first = n_arms if n_first is None else n_first
    n_at_first = max(first - 1, 1)
    kept = 0.0 if n_first is None else KEPT_FOR_LATER
    later = np.maximum(newest - first + 1, 1)
    return np.where(newest < first, (1.0 - kept) * delta / n_at_first, kept * delta / (later * (later + 1)))


def pair_failures(
    delta: float, first: ArrayLike, second: ArrayLike, n_first: int | None = None, *, n_arms: int
) -> FloatArray:
    """Return the failure probability of each pair's difference, such that those of all pairs hold together.

    Examples
    --------
    >>> pair_failures(0.06, [0, 0, 1], [1, 2, 2], n_arms=3)
    array([0.02, 0.02, 0.02])
    """
    newest = np.maximum(first, second)
    return _shares(delta, newest, n_arms if n_first is None else n_first, n_first is None, _pairs)


def _one_each(n_arms: ArrayLike) -> FloatArray:
    return np.asarray(n_arms, np.float64)


def _pairs(n_arms: ArrayLike) -> FloatArray:
    n = np.asarray(n_arms, np.float64)
    return 0.5 * n * (n - 1.0)


def _shares(delta: float, newest: IntArray, n_first: int, is_closed: bool, count: object) -> FloatArray:
    """Return the shares of statements whose newest arm is given, if n arms have `count(n)` statements."""
    counted: FloatArray = count(np.arange(max(int(newest.max(initial=0)) + 2, n_first + 1)))  # type: ignore[operator]
    kept = 0.0 if is_closed else KEPT_FOR_LATER
    later = np.maximum(newest - n_first + 1, 1)
    brought = np.maximum(counted[newest + 1] - counted[newest], 1.0)  # by the newest arm
    at_first = (1.0 - kept) * delta / max(float(counted[n_first]), 1.0)
    return np.where(newest < n_first, at_first, kept * delta / (later * (later + 1) * brought))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number: claims at most alpha are all true with probability 1 - alpha.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda k: p_values[k])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for place, k in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * p_values[k]))
        adjusted[k] = largest
    return adjusted


def discoveries(e_values: Sequence[float], alpha: float) -> list[int]:
    """Return the positions of claims of which, on average, at most a share alpha is false, from their e-values.

    References
    ----------
    Wang and Ramdas (2022), False discovery rate control with e-values. JRSS B 84.

    Examples
    --------
    >>> discoveries([100.0, 1.0, 45.0, 3.0], alpha=0.05)
    [0, 2]
    """
    order = sorted(range(len(e_values)), key=lambda k: -e_values[k])
    n_found = 0
    for place, k in enumerate(order, start=1):
        if e_values[k] * alpha * place >= len(order):
            n_found = place
    return sorted(order[:n_found])
