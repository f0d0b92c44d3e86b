"""The budget of false alarms: what chance may explain over the whole life of an experiment, spent day by day."""

from __future__ import annotations

import math
from statistics import NormalDist

LIFETIME = 0.001
"""Most probability that one check ever raises a false alarm in an experiment, however long it runs."""

_NORMAL = NormalDist()


def spent(day: int, parts: int = 1) -> float:
    """Return the probability of a false alarm that a check may spend on a day, in each of its parts.

    Day k gets a share of 6 / (pi^2 k^2), and these add up to 1 for ever. Parts are what is tested side by side, such
    as arms.

    Examples
    --------
    >>> f"{spent(1):.2e} {spent(30, parts=5):.2e}"
    '6.08e-04 1.35e-07'
    """
    return LIFETIME * 6.0 / (math.pi * max(day, 1)) ** 2 / max(parts, 1)


def critical_evidence(parts: int = 1) -> float:
    """Return how large log evidence that holds at all times must be: it needs no daily shares of the budget.

    Examples
    --------
    >>> round(critical_evidence(5), 2)
    8.52
    """
    return math.log(parts / LIFETIME)


def critical_z(day: int, parts: int = 1) -> float:
    """Return how large z must be on a day, in either direction.

    Examples
    --------
    >>> round(critical_z(1, parts=5), 2), round(critical_z(30, parts=5), 2)
    (3.84, 5.27)
    """
    return -_NORMAL.inv_cdf(spent(day, parts) / 2.0)
