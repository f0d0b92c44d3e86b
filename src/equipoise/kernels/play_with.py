"""One replication of a policy whose choice is a user's compiled function.

Not cached on disk: numba cannot cache a loop that takes a function, so each new process compiles it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from equipoise.kernels.moments import add_reward
from equipoise.kernels.play import CHECKPOINT, EMPTY, STEP, Arena
from equipoise.kernels.random import decision_uniform
from equipoise.kernels.rewards import EXTERNAL, fill_rewards
from equipoise.kernels.tracking import draw

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray

INVALID = -1
"""In the place of an arm out of rewards: the function did not fill probabilities."""


@numba.njit(nogil=True, error_model="numpy", fastmath=False)
def advance_with(
    filler: Any,
    parameters: Any,
    seed: int,
    replication: int,
    until: int,
    checkpoints: IntArray,
    arena: Arena,
    out_pulls: IntArray,
    out_mean: FloatArray,
    out_std: FloatArray,
    out_target: FloatArray,
) -> bool:
    """Play up to step `until`; return False if an external arm is out of rewards first.

    Also return False, with the counter `EMPTY` below 0, if what the function filled are no probabilities.
    """
    kind, shape, pool, buffer = arena.kind, arena.shape, arena.pool, arena.buffer
    pulls, mean, std, sums, probability = arena.pulls, arena.mean, arena.std, arena.sums, arena.score
    counters, buffered = arena.counters, arena.buffer.shape[1]
    passed = counters[CHECKPOINT]
    for t in range(counters[STEP] + 1, until + 1):
        for i in range(pulls.size):
            probability[i] = 0.0
        filler(parameters, t, pulls, pulls, mean, std, probability)
        total, smallest = 0.0, 0.0
        for i in range(pulls.size):
            total += probability[i]
            smallest = min(smallest, probability[i])
        if not (smallest >= 0.0 and abs(total - 1.0) <= 1e-9):
            counters[STEP], counters[CHECKPOINT], counters[EMPTY] = t - 1, passed, INVALID
            return False
        arm = draw(probability, decision_uniform(seed, replication, t - 1))
        place = pulls[arm] & (buffered - 1)
        if place == 0 and counters[EMPTY] != arm + 1:
            if kind[arm] == EXTERNAL:
                counters[STEP], counters[CHECKPOINT], counters[EMPTY] = t - 1, passed, arm + 1
                return False
            fill_rewards(kind[arm], shape, pool, seed, replication, arm, pulls[arm], buffer[arm])
        counters[EMPTY] = 0
        add_reward(arm, buffer[arm, place], 1.0, pulls, mean, std, sums)
        if passed < checkpoints.size and t == checkpoints[passed]:
            for i in range(pulls.size):
                out_pulls[passed, i], out_mean[passed, i], out_std[passed, i] = pulls[i], mean[i], std[i]
                out_target[passed, i] = np.nan
            passed += 1
    counters[STEP], counters[CHECKPOINT] = until, passed
    return True


def is_compiled(function: Any) -> bool:
    """Say whether numba compiled a function; with the compiler switched off, any function will do."""
    return isinstance(function, type(advance_with)) if hasattr(advance_with, "py_func") else callable(function)
