"""Share a failure probability among statements that shall hold together, and adjust p-values and e-values for it.

Arms may be added while an experiment runs. So the statements about the first arms share nine tenths of the failure
probability, and the j-th arm added later brings statements that share one tenth divided by j (j + 1). However many
come, that adds up to no more than the whole, and nothing that was shown before becomes wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray, IntArray


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
    return _shares(delta, np.arange(n_arms), n_first, n_arms, lambda n: n.astype(np.float64))


def control_failures(
    delta: float, others: ArrayLike, n_first: int | None = None, *, control: int = 0, n_arms: int
) -> FloatArray:
    """Return the failure probability of the difference of each of these arms from a control, for all together.

    A control that was added later itself brings the differences from all arms before it, which share what it has.

    Examples
    --------
    >>> control_failures(0.05, [1, 2, 3, 4], n_arms=5)
    array([0.0125, 0.0125, 0.0125, 0.0125])
    >>> control_failures(0.05, [0, 1, 3], n_first=2, control=2, n_arms=4).round(5)
    array([0.00125, 0.00125, 0.00083])
    """
    newest = np.maximum(np.asarray(others, np.int64), control)
    return _shares(delta, newest, n_first, n_arms, lambda n: np.where(n > control, n - 1.0, 0.0))


def pair_failures(
    delta: float, first: ArrayLike, second: ArrayLike, n_first: int | None = None, *, n_arms: int
) -> FloatArray:
    """Return the failure probability of each pair's difference, such that those of all pairs hold together.

    Examples
    --------
    >>> pair_failures(0.06, [0, 0, 1], [1, 2, 2], n_arms=3)
    array([0.02, 0.02, 0.02])
    """
    newest = np.maximum(np.asarray(first, np.int64), second)
    return _shares(delta, newest, n_first, n_arms, lambda n: 0.5 * n * (n - 1.0))


def best_arm_failures(delta: float, best: int, n_first: int | None = None, *, n_arms: int) -> FloatArray:
    """Return the failure probability of what is said of each other arm if `best` is the best arm; 0 for itself.

    Only statements about the best arm can be wrong: that another is better, or how much worse another is at most. So
    those of one arm share the failure probability, and there is no union over all pairs.

    Examples
    --------
    >>> best_arm_failures(0.05, 0, n_arms=5)
    array([0.    , 0.0125, 0.0125, 0.0125, 0.0125])
    >>> best_arm_failures(0.05, 0, n_first=3, n_arms=5).round(5)
    array([0.     , 0.0225 , 0.0225 , 0.0025 , 0.00083])
    """
    if n_first is None:
        shares = np.full(n_arms, 1.0 / max(n_arms - 1, 1))
    else:
        share = _kernel().share_of_other
        shares = np.array([0.0 if other == best else share(best, other, n_first - 1) for other in range(n_arms)])
    shares[best] = 0.0
    return delta * shares


def _shares(
    delta: float, newest: IntArray, n_first: int | None, n_arms: int, count: Callable[[IntArray], FloatArray]
) -> FloatArray:
    """Return the shares of statements whose newest arm is given, if n arms have `count(n)` statements."""
    kept = 0.0 if n_first is None else _kernel().KEPT_FOR_LATER
    n_at_first = n_arms if n_first is None else n_first
    counted = count(np.arange(max(int(newest.max(initial=0)) + 2, n_at_first + 1)))
    later = np.maximum(newest - n_at_first + 1, 1)
    brought = np.maximum(counted[newest + 1] - counted[newest], 1.0)  # by the newest arm
    at_first = (1.0 - kept) * delta / max(float(counted[n_at_first]), 1.0)
    return np.where(newest < n_at_first, at_first, kept * delta / (later * (later + 1) * brought))


@cache
def _kernel() -> ModuleType:
    """Import the kernel on first use."""
    from equipoise.kernels import arm_evidence

    return arm_evidence


def holm(p_values: Sequence[float], shares: ArrayLike | None = None, whole: float | None = None) -> list[float]:
    """Return p-values adjusted for their number: claims at most alpha are all true with probability 1 - alpha.

    Parameters
    ----------
    p_values : sequence of float
        One per claim.
    shares : array, optional
        Which part of the failure probability each claim has; the same for all by default.
    whole : float, optional
        What these are parts of, if more than their sum: what is kept for claims that may be added later.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.

    Examples
    --------
    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    >>> [round(p, 6) for p in holm([0.01, 0.04, 0.03], [0.8, 0.1, 0.1])]
    [0.0125, 0.06, 0.06]
    """
    parts = [1.0] * len(p_values) if shares is None else np.asarray(shares, np.float64).tolist()
    left = math.fsum(parts) if whole is None else whole
    order = sorted(range(len(p_values)), key=lambda k: p_values[k] / parts[k])
    adjusted, largest = [1.0] * len(p_values), 0.0
    for k in order:
        largest = max(largest, min(1.0, max(left / parts[k], 1.0) * p_values[k]))
        adjusted[k] = largest
        left -= parts[k]
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
