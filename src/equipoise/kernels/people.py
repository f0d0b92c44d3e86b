"""Draw simulated people: when they come, their reward under each arm, when it is known, and whether it ever is.

Everything about a person is a function of the seed, the replication and the person, never of the arms of others. So
ways to assign are compared on the same people, and a person who does well under one arm does well under the others.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.random import log_gamma_draw, normal, philox, unit
from equipoise.kernels.world import EMPIRICAL, GAMMA, NORMAL, YES_NO

_PERSON, _GAMMA, _FIRST_BETA, _SECOND_BETA, _EXPERIMENT = (np.uint64(16 + k) for k in range(5))
"""Purposes of random numbers; see `kernels.random`."""

MICROSECONDS = 1e6
DAY = 86_400 * 1_000_000
NEVER = 1 << 62
"""A time that does not come, in microseconds."""


class People(NamedTuple):
    """The people of one replication, in the order in which they come.

    When they come, in microseconds from the start; a uniform number for the reward under any arm; a standard normal
    number for the delay; and a uniform number for whether the reward is missing.
    """

    arrived: IntArray
    reward: FloatArray
    delay: FloatArray
    missing: FloatArray


def new_people(size: int) -> People:
    """Allocate space for this many people."""
    return People(np.empty(size, np.int64), np.empty(size), np.empty(size), np.empty(size))


@compiled
def experiment_seed(seed: int, replication: int) -> int:
    """Return the seed of the simulated experiment with this number, the same for every way to assign."""
    zero = np.uint64(0)
    words = philox(np.uint64(seed), np.uint64(replication), zero, zero, _EXPERIMENT, zero)
    return int(words[0] >> np.uint64(1))


@compiled
def draw_people(seed: int, replication: int, per_day: FloatArray, is_exact: bool, people: People) -> int:
    """Write everyone who comes, up to the size of the arrays; return their number.

    Arrivals are a Poisson process, or if `is_exact` as many as expected and evenly spread.
    """
    arrived, rewards, delays, missing = people.arrived, people.reward, people.delay, people.missing
    key_0, key_1, zero = np.uint64(seed), np.uint64(replication), np.uint64(0)
    day, before, expected = 0, 0.0, -0.5 if is_exact else 0.0
    for i in range(arrived.size):
        words = philox(key_0, key_1, np.uint64(i), zero, _PERSON, zero)
        expected += 1.0 if is_exact else -math.log(1.0 - unit(words[3]))
        while day < per_day.size and before + per_day[day] <= expected:
            before += per_day[day]
            day += 1
        if day == per_day.size:
            return i
        arrived[i] = day * DAY + int((expected - before) / per_day[day] * DAY)
        rewards[i], missing[i] = unit(words[0]), unit(words[2])
        delays[i] = normal(unit(words[1]))
    return arrived.size


@compiled
def _reward_with(
    kind: int,
    p0: float,
    p1: float,
    p2: float,
    p3: float,
    pool: FloatArray,
    seed: int,
    replication: int,
    person: int,
    uniform: float,
) -> float:
    """Return a reward without drift and rounding."""
    if kind == NORMAL:
        return p0 + p1 * normal(uniform)
    if kind == EMPIRICAL:
        return float(pool[int(p0) + int(uniform * p1)] * p2 + p3)
    key_0, key_1, number, zero = np.uint64(seed), np.uint64(replication), np.uint64(person), np.uint64(0)
    if kind == GAMMA:
        log_x, _ = log_gamma_draw(p0, key_0, key_1, number, zero, _GAMMA, 0)
        return math.exp(log_x) * p1
    log_x, _ = log_gamma_draw(p0, key_0, key_1, number, zero, _FIRST_BETA, 0)
    log_y, _ = log_gamma_draw(p1, key_0, key_1, number, zero, _SECOND_BETA, 0)
    # x / (x + y), written so that the exponential cannot overflow.
    small = math.exp(-abs(log_x - log_y))
    return p2 + (p3 - p2) * ((1.0 if log_x > log_y else small) / (1.0 + small))


@inlined
def reward_of(
    kind: IntArray,
    shape: FloatArray,
    pool: FloatArray,
    rounded_to: float,
    lowest: float,
    highest: float,
    level: float,
    seed: int,
    replication: int,
    person: int,
    arm: int,
    uniform: float,
) -> float:
    """Return the reward of a person under an arm, `level` higher than without drift."""
    if kind[arm] == YES_NO:
        return 1.0 if uniform < shape[0, arm] + level else 0.0
    value = level + _reward_with(
        kind[arm], shape[0, arm], shape[1, arm], shape[2, arm], shape[3, arm], pool, seed, replication, person, uniform
    )
    if rounded_to > 0.0:
        value = rounded_to * math.floor(value / rounded_to + 0.5)
    return min(max(value, lowest), highest) + 0.0


@inlined
def level_at(at: int, drift_per_second: float, step: float, step_at: float) -> float:
    """Return how much higher rewards are at a time, in microseconds, than without drift."""
    seconds = at / MICROSECONDS
    return drift_per_second * seconds + (step if seconds >= step_at else 0.0)


@inlined
def is_good(kind: int, reward: float, mean: float) -> bool:
    """Return whether a reward is above the mean: yes, for yes/no rewards."""
    return reward > 0.5 if kind == YES_NO else reward > mean


@inlined
def delay_of(median: float, spread: float, standard_normal: float) -> int:
    """Return after how many microseconds a reward is there; `NEVER` if it does not come."""
    seconds = median * math.exp(spread * standard_normal) if spread > 0.0 else median
    return int(seconds * MICROSECONDS + 0.5) if seconds < 1e11 else NEVER


@compiled
def told_at(
    due: int, person: int, arrived: IntArray, n_people: int, batch_people: int, batch: int, first_batch: int, end: int
) -> int:
    """Return when the experiment gets to know a reward that is there at `due`; see `World` on batches."""
    if due >= NEVER:
        return NEVER
    if batch_people > 0:
        after, until = person + 1, n_people
        while after < until:  # the first later person who comes when the reward is there
            middle = (after + until) // 2
            if arrived[middle] >= due:
                until = middle
            else:
                after = middle + 1
        after = ((after + batch_people) // batch_people) * batch_people - 1
        return int(arrived[after]) if after < n_people else max(due, end)
    if batch > 0:
        return max(first_batch, first_batch - ((first_batch - due) // batch) * batch)
    return due


@compiled
def write_told(
    median: float,
    spread: float,
    people: People,
    n_people: int,
    batch_people: int,
    batch: int,
    first_batch: int,
    end: int,
    out: IntArray,
) -> None:
    """Write when each person's reward is known, if that is the same for all arms."""
    arrived, delays = people.arrived, people.delay
    for i in range(n_people):
        due = arrived[i] + delay_of(median, spread, delays[i])
        out[i] = told_at(due, i, arrived, n_people, batch_people, batch, first_batch, end)
