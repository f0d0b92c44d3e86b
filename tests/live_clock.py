"""A clock to turn, and an experiment that people come to hour by hour."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np

import equipoise as eq

MONDAY = datetime(2027, 3, 1, 8, tzinfo=UTC)


class TurnedClock:
    """A clock that stands still until it is turned."""

    def __init__(self, now: datetime = MONDAY) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **length: float) -> None:
        self.now += timedelta(**length)


def go_on(
    experiment: eq.Experiment,
    clock: TurnedClock,
    hours: int,
    *,
    people: float = 6.0,
    answers: Callable[[str], float] = lambda _arm: 0.95,
    delay: int = 2,
    first: int = 0,
) -> None:
    """Let people come for some hours, evenly, and most of them answer `delay` hours later with yes or no."""
    rng = np.random.default_rng([first, hours])
    waiting: dict[int, dict[str, float]] = {}
    for hour in range(hours):
        clock.turn(hours=1)
        asked = experiment.ask_many([f"{first}-{hour}-{k}" for k in range(int(rng.poisson(people)))])
        due = {one.unit: float(rng.random() < 0.4) for one in asked if rng.random() < answers(one.arm)}
        waiting[hour + delay] = due
        experiment.tell_many(waiting.pop(hour, {}))
