"""Draws from the posterior of an arm's mean and standard deviation, for the Thompson-style policies.

With the reference prior (density 1 / variance) and Gaussian rewards, variance given data is (n - 1) std^2 / chi2(n - 1)
and mean given variance is Gaussian around the sample mean with variance / n.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.random import POSTERIOR, philox, unit

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray


@compiled
def state_key(t: int, mean: FloatArray, std: FloatArray, scratch: FloatArray) -> np.uint64:
    """Return a key that depends on the estimates, so that two experiments at the same step draw independently."""
    scratch[0] = 0.0
    for i in range(mean.size):
        scratch[0] += mean[i] + std[i]
    bits = scratch.view(np.uint64)[0]
    words = philox(bits, np.uint64(t), np.uint64(0), np.uint64(0), POSTERIOR, np.uint64(0))
    return words[0]


@compiled
def draw_posterior(
    key: np.uint64, index: int, arm: int, pulls: IntArray, mean: FloatArray, std: FloatArray
) -> tuple[float, float]:
    """Return one posterior draw of (mean, std) of an arm with at least two rewards."""
    # Gamma(shape) by Marsaglia and Tsang (2000), which wants shape >= 1; smaller shapes borrow one and pay it back.
    shape = 0.5 * (pulls[arm] - 1)
    boosted = shape < 1.0
    d = (shape + 1.0 if boosted else shape) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = 0
    while True:
        words = philox(key, np.uint64(0), np.uint64(arm), np.uint64(index), POSTERIOR, np.uint64(attempt + 1))
        attempt += 1
        # 1 - u is in (0, 1], where the logarithm is finite.
        radius = math.sqrt(-2.0 * math.log(1.0 - unit(words[0])))
        angle = 2.0 * math.pi * unit(words[1])
        normal = radius * math.cos(angle)
        cube = (1.0 + c * normal) ** 3
        if cube <= 0.0:
            continue
        if math.log(1.0 - unit(words[2])) < 0.5 * normal * normal + d - d * cube + d * math.log(cube):
            break
    gamma = d * cube
    if boosted:
        gamma *= (1.0 - unit(words[3])) ** (1.0 / shape)
    # The chi-square of the density above is twice this gamma; a draw of 0 (probability 2^-53) must not divide.
    sampled_std = std[arm] * math.sqrt(shape / max(gamma, 1e-300))
    # The sine half of Box-Muller is independent of the cosine half that made the gamma.
    sampled_mean = mean[arm] + sampled_std / math.sqrt(pulls[arm]) * radius * math.sin(angle)
    return sampled_mean, sampled_std
