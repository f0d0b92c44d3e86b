"""Random numbers as pure functions of a key and a counter: Philox 4x64 with ten rounds (Salmon et al. 2011).

Nothing is remembered between calls, so the k-th decision or the s-th reward is the same whoever asks for it, in any
order and on any number of workers. `numpy.random.Philox` gives the same words.
"""

from __future__ import annotations

import numpy as np

from equipoise.kernels import compiled
from equipoise.kernels.instructions import high_product

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_KEY_STEP_0 = np.uint64(0x9E3779B97F4A7C15)
_KEY_STEP_1 = np.uint64(0xBB67AE8584CAA73B)
_UNUSED_BITS = np.uint64(11)

DECISION = np.uint64(1)
POSTERIOR = np.uint64(2)
"""What a number is for; part of the counter, so that streams for different ends never meet."""


@compiled
def philox(
    key_0: np.uint64, key_1: np.uint64, c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the block of four words that belongs to a key and a counter."""
    for _ in range(10):
        high_0, low_0 = high_product(_MULTIPLIER_0, c0), _MULTIPLIER_0 * c0
        high_1, low_1 = high_product(_MULTIPLIER_1, c2), _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high_1 ^ c1 ^ key_0, low_1, high_0 ^ c3 ^ key_1, low_0
        key_0 = key_0 + _KEY_STEP_0
        key_1 = key_1 + _KEY_STEP_1
    return c0, c1, c2, c3


@compiled
def unit(word: np.uint64) -> float:
    """Turn a word into a number in [0, 1) with 53 random bits."""
    return float(word >> _UNUSED_BITS) * 2.0**-53


@compiled
def decision_uniform(seed: int, replication: int, index: int) -> float:
    """Return the uniform number of one decision; a live experiment is replication 0 of its seed."""
    zero = np.uint64(0)
    words = philox(np.uint64(seed), np.uint64(replication), np.uint64(index), zero, DECISION, zero)
    return unit(words[0])
