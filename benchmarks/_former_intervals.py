"""The two confidence sequences that Equipoise had before, to compare with: for rewards in a range, and for any.

Both are a radius around the sample mean, from count and standard deviation alone. For rewards in a range it is an
empirical-Bernstein sequence, Fan, Grama and Liu's inequality mixed over 44 bets; without one it is Robbins' normal
mixture with an estimated spread (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas 2024, Ann. Stat.), tightest at 500.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled

FEWEST_FOR_ASYMPTOTICS, TIGHTEST_AT = 30, 500

_NUMBER = np.arange(44)
_BETS: FloatArray = 0.58 * 1.5**-_NUMBER
_LOG_WEIGHTS: FloatArray = np.log(5.0 / ((_NUMBER + 5.0) * (_NUMBER + 6.0)))
_PSI: FloatArray = -np.log1p(-_BETS) - _BETS


@compiled
def former_log_wealth(n: float, std: float, distance: float) -> float:
    """Return the log wealth of bets against a mean at this distance, for rewards within a range of 1.

    The interval excluded a mean once this reached log(2 / failure probability).
    """
    deviations = (n - 1.0) * std * std if n > 1.0 else 0.0
    best, total = -np.inf, 0.0
    for k in range(_BETS.size):
        wealth = _LOG_WEIGHTS[k] + n * _BETS[k] * distance - _PSI[k] * (deviations + n * distance * distance)
        if wealth > best:
            total = 1.0 + (total * math.exp(best - wealth) if total > 0.0 else 0.0)
            best = wealth
        else:
            total += math.exp(wealth - best)
    return best + math.log(total)


@compiled
def former_bounded_radius(n: float, std: float, failure_probability: float) -> float:
    """Return the radius for rewards within a range of 1."""
    if n <= 0.0:
        return np.inf
    threshold, near, far = math.log(2.0 / failure_probability), 0.0, 1.0
    for _ in range(52):
        middle = 0.5 * (near + far)
        if former_log_wealth(n, std, middle) >= threshold:
            far = middle
        else:
            near = middle
    return far


@compiled
def former_asymptotic_factor(n: float, failure_probability: float) -> float:
    """Return the radius for rewards of any size, in standard deviations; infinite for fewer than 30."""
    if n < FEWEST_FOR_ASYMPTOTICS:
        return np.inf
    doubled = -2.0 * math.log(failure_probability)
    rho_squared = (doubled + math.log1p(doubled)) / TIGHTEST_AT
    grown = n * rho_squared + 1.0
    return math.sqrt(2.0 * grown / (n * n * rho_squared) * (0.5 * math.log(grown) - math.log(failure_probability)))
