"""A live experiment for charts and pages: four messages, or many, over some days, with changes on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np

import equipoise as eq
from equipoise import charts

FOUR = {"plain": 0.3, "prize": 0.5, "personal": 0.42, "social": 0.33}


class Clock:
    """A clock to turn."""

    def __init__(self) -> None:
        self.now = datetime(2027, 3, 1, 8, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def rates_of(n_arms: int) -> dict[str, float]:
    """Return the messages and how often they work."""
    if n_arms <= len(FOUR):
        return dict(list(FOUR.items())[:n_arms])
    return {f"message {k}": 0.2 + 0.3 * (k % 7) / 7 for k in range(n_arms)}


def played(
    rates: dict[str, float], *, hours: int = 96, each: int = 4, people: float = 15.0, **settings: object
) -> tuple[eq.Experiment, list[eq.experiment.Status]]:
    """Return an experiment after some hours, and its status every few of them."""
    clock, rng = Clock(), np.random.default_rng(1)
    given = {"reward_weight": 0.8, "seed": 1, "reward_range": (0, 1), "control": next(iter(rates))} | settings
    experiment = eq.Experiment.create(
        eq.open_store("memory:", clock=clock),
        "messages",
        arms=list(rates),
        **given,  # type: ignore[arg-type]
    )
    found = []
    for hour in range(0, hours, each):
        clock.now += timedelta(hours=each)
        asked = experiment.ask_many([f"{hour}-{k}" for k in range(int(rng.poisson(people)))])
        experiment.tell_many([(one.unit, float(rng.random() < rates[one.arm])) for one in asked])
        found.append(experiment.status())
    return experiment, found


def course_of(statuses: list[eq.experiment.Status], *marks: charts.Mark) -> charts.Course:
    """Return how an experiment went, from what was read of it on the way."""

    def numbers(name: str) -> np.ndarray:
        rows = [[getattr(arm, name) for arm in status.arms] for status in statuses]
        return np.array(rows, np.float64)  # None becomes NaN

    return charts.Course(
        arms=tuple(arm.arm for arm in statuses[-1].arms),
        at=tuple(status.at for status in statuses),
        assigned=numbers("assigned").astype(np.int64),
        rewarded=numbers("rewarded").astype(np.int64),
        wanted=numbers("target_share"),
        mean=numbers("mean"),
        low=numbers("low"),
        high=numbers("high"),
        direction=statuses[-1].direction,
        confidence=statuses[-1].confidence,
        marks=marks,
    )
