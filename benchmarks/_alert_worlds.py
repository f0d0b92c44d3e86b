"""Simulated experiments for `alerts.py`, thousands at once: people, arms, delays, rewards, and what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from equipoise.monitoring.sums import AGES

FloatArray = NDArray[np.float64]

SHARES = (0.30, 0.25, 0.20, 0.15, 0.10)
WINDOW_HOURS = 48.0
FLOOR = 0.1


@dataclass(frozen=True)
class World:
    """One kind of experiment: 100 people a day for 60 days, five arms, and at most one thing that goes wrong."""

    name: str
    people: float = 100.0
    days: int = 60
    missing: tuple[float, ...] = (0.05,) * 5
    later_missing: float | None = None
    """Of all arms, from `since` on."""
    hours: tuple[float, ...] = (9.0,) * 5
    """Median time to a reward."""
    later_hours: float | None = None
    rewards: str = "yes or no"
    shift: tuple[float, ...] = (0.0,) * 5
    """By how many standard deviations the mean of an arm jumps."""
    widen: tuple[float, ...] = (1.0,) * 5
    """By what its spread is multiplied."""
    outlier: float | None = None
    """One reward of the last arm, in standard deviations."""
    bias: float = 1.0
    """How many times as often the last arm is given as on record."""
    adaptive: bool = False
    weekly: bool = False
    """Whether a third of the usual number come at week-ends, and answer half as fast."""
    since: int = 30


@dataclass
class Days:
    """Sums by experiment, day and arm: arrays (n, days, K)."""

    assigned: FloatArray
    due_missing: FloatArray
    told: FloatArray
    inverses: FloatArray
    inverse_squares: FloatArray
    counted: FloatArray
    totals: FloatArray
    squares: FloatArray
    cubes: FloatArray
    fourths: FloatArray
    lowest: FloatArray
    low: FloatArray
    high: FloatArray
    highest: FloatArray
    wanted: FloatArray = field(default_factory=lambda: np.zeros(0))


def play(world: World, n: int, rng: np.random.Generator) -> Days:
    """Play n experiments of a world."""
    k, shape = len(SHARES), (n, world.days, len(SHARES))
    sums = {name: np.zeros(shape) for name in Days.__dataclass_fields__}
    sums["told"] = np.zeros((*shape, len(AGES)))
    sums |= {name: np.full(shape, np.inf) for name in ("lowest", "low", "high", "highest")}
    found = Days(**sums)
    outlying = np.zeros(n, bool)
    for day in range(world.days):
        late = day >= world.since
        weekend = world.weekly and day % 7 >= 5
        shares = _shares(world, found, day)
        found.wanted[:, day] = shares
        experiment = np.repeat(np.arange(n), rng.poisson(world.people * (0.33 if weekend else 1.0), n))
        given = _given(shares, world.bias if late else 1.0)
        arm = (rng.random(experiment.size)[:, None] > given.cumsum(axis=1)[experiment]).sum(axis=1).clip(max=k - 1)
        cell = (experiment * world.days + day) * k + arm
        p = shares[experiment, arm]
        _add(found.assigned, cell, 1.0)
        _add(found.inverses, cell, 1 / p)
        _add(found.inverse_squares, cell, 1 / p**2)
        missing = np.array(world.missing)[arm]
        if late and world.later_missing is not None:
            missing = np.full(arm.size, world.later_missing)
        hours = np.array(world.hours)[arm] * (2.0 if weekend else 1.0)
        if late and world.later_hours is not None:
            hours = np.full(arm.size, world.later_hours)
        answers = rng.random(arm.size) >= missing
        delay = hours * np.exp(rng.standard_normal(arm.size))
        delay = np.where(answers, np.minimum(delay, WINDOW_HOURS - 0.01), np.inf)
        _add(found.due_missing, cell, ~answers)
        for place, age in enumerate(AGES):
            _add(found.told[..., place], cell, delay <= age)
        at = day * 24.0 + rng.random(arm.size) * 24.0 + np.where(answers, delay, 0.0)
        told_day = (at // 24.0).astype(np.int64)
        seen = answers & (told_day < world.days)
        reward = _rewards(world, rng, arm, told_day >= world.since)
        if world.outlier is not None and late:
            first = np.full(n, arm.size)
            last_arm = np.flatnonzero((arm == k - 1) & seen)
            np.minimum.at(first, experiment[last_arm], last_arm)
            chosen = first[(first < arm.size) & ~outlying]
            reward[chosen] = world.outlier
            outlying[experiment[chosen]] = True
        cell = ((experiment * world.days + told_day) * k + arm)[seen]
        reward = reward[seen]
        for name, power in (("counted", 0), ("totals", 1), ("squares", 2), ("cubes", 3), ("fourths", 4)):
            _add(getattr(found, name), cell, reward**power)
        _keep_two(found.lowest.reshape(-1), found.low.reshape(-1), cell, reward)
        _keep_two(found.highest.reshape(-1), found.high.reshape(-1), cell, -reward)
    found.high, found.highest = -found.high, -found.highest
    return found


def _keep_two(lowest: FloatArray, low: FloatArray, cell: NDArray[np.int64], values: FloatArray) -> None:
    """Keep the two lowest values of each cell."""
    order = np.lexsort((values, cell))
    cells, values = cell[order], values[order]
    rank = np.arange(cells.size) - np.searchsorted(cells, cells)
    for place in (0, 1):
        new, at = values[rank == place], cells[rank == place]
        low[at] = np.minimum(low[at], np.maximum(lowest[at], new))
        lowest[at] = np.minimum(lowest[at], new)


def _shares(world: World, found: Days, day: int) -> FloatArray:
    n = found.assigned.shape[0]
    if not world.adaptive or day == 0:
        return np.broadcast_to(np.array(SHARES), (n, len(SHARES))).copy()
    count, total = found.counted[:, :day].sum(axis=1), found.totals[:, :day].sum(axis=1)
    mean = total / np.maximum(count, 1.0)
    tilt = np.exp(6.0 * (mean - mean.max(axis=1, keepdims=True)))
    return FLOOR + (1 - FLOOR * len(SHARES)) * tilt / tilt.sum(axis=1, keepdims=True)


def _given(shares: FloatArray, bias: float) -> FloatArray:
    given = shares.copy()
    given[:, -1] *= bias
    return given / given.sum(axis=1, keepdims=True)


def _rewards(world: World, rng: np.random.Generator, arm: NDArray[np.int64], late: NDArray[np.bool_]) -> FloatArray:
    """Return rewards with standard deviations of about 1, or yes and no."""
    shift = np.where(late, np.array(world.shift)[arm], 0.0)
    if world.rewards == "yes or no":
        return (rng.random(arm.size) < 0.3 + shift * 0.46).astype(float)
    if world.rewards == "rare yes":
        return (rng.random(arm.size) < 0.03).astype(float)
    if world.rewards == "normal":
        base = rng.standard_normal(arm.size)
    elif world.rewards == "waiting times":
        base = rng.exponential(size=arm.size)
    else:
        base = rng.lognormal(sigma=1.0, size=arm.size) / 2.16
    return base * np.where(late, np.array(world.widen)[arm], 1.0) + shift


def _add(sums: FloatArray, cell: NDArray[np.int64], value: FloatArray | NDArray[np.bool_] | float) -> None:
    weights = np.broadcast_to(np.asarray(value, float), cell.shape)
    flat = np.bincount(cell, weights=weights, minlength=int(np.prod(sums.shape)))
    sums += flat.reshape(sums.shape)
