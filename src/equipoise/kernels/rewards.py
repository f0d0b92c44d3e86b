"""Generate rewards as pure functions: an arm's s-th reward depends on (seed, replication, arm, s) alone.

Four consecutive rewards share one block of random words; kinds of arms differ in how they turn words into rewards.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray
from equipoise.kernels.compiler import compiled
from equipoise.kernels.random import log_gamma_draw, make_normal, philox, unit

GAUSSIAN, BERNOULLI, UNIFORM, BETA, EMPIRICAL, EXTERNAL = 0, 1, 2, 3, 4, 5
"""Kinds of arms. Python draws the rewards of an external arm from uniform numbers."""

SHAPE_ROWS = 4
"""Numbers that describe an arm: mean and std, probability, bounds, beta's parameters, or a slice of the pool."""

REWARD = np.uint64(3)
_BETA_REWARD = np.uint64(4)
PER_BLOCK = 4


@compiled
def fill_rewards(
    kind: int, shape: FloatArray, pool: FloatArray, seed: int, replication: int, arm: int, first: int, out: FloatArray
) -> None:
    """Write the rewards numbered first, first + 1, ... of an arm; `first` and the size of `out` are multiples of 4."""
    key_0, key_1 = np.uint64(seed), np.uint64(replication)
    zero = np.uint64(0)
    p0, p1, p2, p3 = shape[0, arm], shape[1, arm], shape[2, arm], shape[3, arm]
    for k in range(0, out.size, PER_BLOCK):
        if kind == BETA:
            for j in range(k, k + PER_BLOCK):
                # The two gammas count their attempts from far-apart numbers, so that no run of rejections makes them
                # overlap.
                index, number = np.uint64(first + j), np.uint64(arm)
                log_x, _ = log_gamma_draw(p0, key_0, key_1, index, number, _BETA_REWARD, 0)
                log_y, _ = log_gamma_draw(p1, key_0, key_1, index, number, _BETA_REWARD, 1 << 40)
                # x / (x + y), written so that the exponential cannot overflow.
                small = math.exp(-abs(log_x - log_y))
                out[j] = p2 + (p3 - p2) * ((1.0 if log_x > log_y else small) / (1.0 + small))
            continue
        words = philox(key_0, key_1, np.uint64((first + k) // PER_BLOCK), np.uint64(arm), REWARD, zero)
        out[k], out[k + 1], out[k + 2], out[k + 3] = unit(words[0]), unit(words[1]), unit(words[2]), unit(words[3])
        if kind == BERNOULLI:
            for j in range(k, k + PER_BLOCK):
                out[j] = 1.0 if out[j] < p0 else 0.0
        elif kind == UNIFORM:
            for j in range(k, k + PER_BLOCK):
                out[j] = p0 + (p1 - p0) * out[j]
        elif kind == EMPIRICAL:
            for j in range(k, k + PER_BLOCK):
                out[j] = pool[int(p0) + int(out[j] * p1)]
    if kind == GAUSSIAN:
        make_normal(out, p0, p1)
