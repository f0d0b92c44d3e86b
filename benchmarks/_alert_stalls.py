"""People who come by the hour of the week, for `alerts.py`: how often the check of enrolment rings, and how soon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.monitoring.arrival_checks import FEWEST_PEOPLE, SHORTEST_HOURS, stall_evidence
from equipoise.monitoring.stalls import critical_silence

_HOURS = 60 * 24


@dataclass(frozen=True)
class Arrivals:
    """100 people a day with a profile over the week; from `stop` on, in hours, nobody comes any more."""

    name: str
    profile: str = "even"
    people: float = 100.0
    stop: float | None = None
    first: int = 10
    """Hour of the week in which it starts."""
    spread: float = 0.0
    """Standard deviation of the logarithm of each day's rate: busy and quiet days."""


ENROLMENT_WORLDS = (
    Arrivals("even, all alike"),
    Arrivals("days and nights, quiet week-ends", "office"),
    Arrivals("working hours only", "school"),
    Arrivals("working hours only, 1,000 a day", "school", people=1_000.0),
    Arrivals("busy and quiet days", "office", spread=0.3),
    Arrivals("10 people a day", people=10.0),
    Arrivals("even, stops on day 30 at noon", stop=30 * 24 + 12.0),
    Arrivals("working hours only, stops on day 30 at noon", "school", stop=30 * 24 + 2.0),
)


def stalls(world: Arrivals, n: int) -> tuple[int, float | None]:
    """Return in how many of n experiments the check rang, and after how many hours without anybody (median)."""
    rng = np.random.default_rng([3, *world.name.encode()])
    hour = np.arange(_HOURS) + world.first
    profile = _profile(world.profile, hour)
    usual = world.people * 7 * profile / profile[:168].sum()
    rang, delays = 0, []
    for _ in range(n):
        busy = np.exp(world.spread * rng.standard_normal(61))[(np.arange(_HOURS) + world.first) // 24]
        rate = usual * busy
        if world.stop is not None:
            rate = np.where(np.arange(_HOURS) >= world.stop, 0.0, rate)
        counts = rng.poisson(rate).astype(float)
        delay = _first_ring(world, usual, counts, rng)
        if delay is not None:
            rang += 1
            delays.append(delay)
    return rang, float(np.median(delays)) if delays and world.stop is not None else None


def _profile(kind: str, hour: NDArray[np.int64]) -> NDArray[np.float64]:
    of_day, weekend = hour % 24, hour % 168 >= 120
    if kind == "even":
        return np.ones(hour.size)
    awake = np.where((of_day >= 8) & (of_day < 22), 1.0, 0.05)
    if kind == "office":
        return awake * np.where(weekend, 0.3, 1.0)
    return np.where((of_day >= 8) & (of_day < 16) & ~weekend, 1.0, 0.0)


def _first_ring(
    world: Arrivals, usual: NDArray[np.float64], counts: NDArray[np.float64], rng: np.random.Generator
) -> float | None:
    """Return the hours of the first silence that rang, from gaps between arrivals at uniform times in their hours."""
    some = np.flatnonzero(counts)
    if not some.size:
        return None
    people = counts.cumsum()
    # The last arrival of an hour, and the first of the next hour with any.
    last = some + rng.random(some.size) ** (1.0 / counts[some])
    following = some[1:] + 1.0 - rng.random(some.size - 1) ** (1.0 / counts[some[1:]])
    ends = np.r_[following, _HOURS if world.stop is not None else last[-1]]
    due = np.interp(np.r_[last, ends], np.arange(_HOURS + 1), np.r_[0.0, usual.cumsum()]).reshape(2, -1)
    # A silence in which so few usually come cannot ring: the budget of a day is far below exp(-8).
    long = (due[1] - due[0] > 8.0) & (ends - last >= SHORTEST_HOURS)
    for begin, end in zip(last[long], ends[long], strict=True):
        if people[int(begin) - 1] < FEWEST_PEOPLE:
            continue
        for look in np.unique(np.r_[np.arange(begin + 0.25, end, 0.25 if world.stop else 6.0), end]):
            day = int(look // 24)
            if day < 1:
                continue
            found = stall_evidence(counts[: int(begin)], world.first, world.first + begin, world.first + look)
            if found is None:
                continue
            recent = counts[: int(begin)][-14 * 24 :]
            per_day = recent.sum() / max(min(recent.size, 14 * 24) / 24, 1.0)
            if found[0] < critical_silence(day, per_day):
                return float(look - begin)
    return None
