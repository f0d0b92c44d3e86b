"""Draws from the posterior of an arm's mean and standard deviation, for the Thompson-style policies.

With the reference prior (density 1 / variance) and Gaussian rewards, variance given data is (n - 1) std^2 / chi2(n - 1)
and mean given variance is Gaussian around the sample mean with variance / n.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.gamma import log_gamma_draw
from equipoise.kernels.normal import normal
from equipoise.kernels.random import POSTERIOR, philox

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
    shape = 0.5 * (pulls[arm] - 1)
    log_gamma, spare = log_gamma_draw(shape, key, np.uint64(0), np.uint64(arm), np.uint64(index), POSTERIOR, 1)
    # The chi-square of the density above is twice this gamma; a draw too small for a double must not divide.
    sampled_std = std[arm] * math.sqrt(shape / max(math.exp(log_gamma), 1e-300))
    return mean[arm] + sampled_std / math.sqrt(pulls[arm]) * normal(spare), sampled_std
