"""Gamma numbers from counter-based random words, by the method of Marsaglia and Tsang (2000)."""

from __future__ import annotations

import math

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.normal import normal
from equipoise.kernels.random import philox, unit


@compiled
def log_gamma_draw(
    shape: float,
    key_0: np.uint64,
    key_1: np.uint64,
    c0: np.uint64,
    c1: np.uint64,
    purpose: np.uint64,
    first_attempt: int,
) -> tuple[float, float]:
    """Return the logarithm of a gamma draw, and a uniform number that is independent of it.

    The logarithm, because with a small shape the draw itself is often too small for a double.
    """
    # The method wants shape >= 1; smaller shapes borrow one and pay it back.
    boosted = shape < 1.0
    d = (shape + 1.0 if boosted else shape) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = first_attempt
    while True:
        words = philox(key_0, key_1, c0, c1, purpose, np.uint64(attempt))
        attempt += 1
        x = normal(unit(words[0]))
        cube = (1.0 + c * x) ** 3
        # 1 - u is in (0, 1], where the logarithm is finite.
        if cube > 0.0 and math.log(1.0 - unit(words[1])) < 0.5 * x * x + d - d * cube + d * math.log(cube):
            break
    draw = math.log(d * cube) + (math.log(1.0 - unit(words[2])) / shape if boosted else 0.0)
    return draw, unit(words[3])
