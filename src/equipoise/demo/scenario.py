"""The scenario of the demo: simulated people arrive hour by hour, are assigned an arm, and answer later or never."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.charts import TrackingRecord
from equipoise.experiment import Budget, DropUnit, Precision, Status
from equipoise.objective import optimal_allocation
from equipoise.policies.pooled_balance import recommended

if TYPE_CHECKING:
    from equipoise.paper.real_experiments import RealExperiment

NAME = "effort"
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
DAYS = 14
"""How long people keep coming."""

MISSING = 0.05
"""Share of people who never answer."""

MEAN_DELAY_HOURS, LONGEST_DELAY_HOURS = 8.0, 96.0
"""How long an answer takes, on average and at most."""

WINDOW = timedelta(days=2)
"""How long the experiment waits for an answer before it counts a person as missing; some answer later."""

PRECISION = 200.0
"""The experiment is to know every arm to within this many presses."""

_BATCH = 500
"""People per transaction."""


class Population:
    """Simulated people: when they arrive, when they answer, and what they do under each incentive.

    Presses have gamma distributions, which are never negative, with the published mean and spread of each arm. They
    depend only on the seed, the person and the incentive.

    Examples
    --------
    >>> from equipoise.paper.real_experiments import effort_experiment
    >>> people = Population(effort_experiment(), 1000, seed=1)
    >>> round(float(np.isnan(people.answered).mean()), 2), people.presses(0, 0)
    (0.05, 2437.0)
    """

    def __init__(self, experiment: RealExperiment, n_people: int, *, seed: int) -> None:
        rng = np.random.default_rng([seed, n_people])
        self.n_people = n_people
        self.mean, self.std = np.asarray(experiment.arms.mean), np.asarray(experiment.arms.std)
        self.arrived: FloatArray = np.sort(rng.uniform(0, 24 * DAYS, n_people))
        """Hours after the start, in order."""
        delay = np.minimum(rng.exponential(MEAN_DELAY_HOURS, n_people), LONGEST_DELAY_HOURS)
        self.answered: FloatArray = np.where(rng.random(n_people) < MISSING, np.nan, self.arrived + delay)
        """Hours after the start; NaN for people who never answer."""
        self._seed = seed

    def presses(self, person: int, arm: int) -> float:
        """Return how often a person presses the keys under an incentive."""
        mean, variance = self.mean[arm], self.std[arm] ** 2
        draw = np.random.default_rng([self._seed, 1, person]).gamma(mean**2 / variance, variance / mean)
        return float(round(draw))


class Clock:
    """The time in the demo, which runs faster than real time."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now


class Trial:
    """A live experiment on a `Population`.

    `create` makes the experiment, in a store or through a service; both must use the same `clock`.

    Examples
    --------
    >>> from functools import partial
    >>> import equipoise as eq
    >>> from equipoise.paper.real_experiments import effort_experiment
    >>> clock = Clock()
    >>> create = partial(eq.Experiment.create, eq.open_store("memory:", clock=clock))
    >>> trial = Trial(create, clock, effort_experiment(), 300, reward_weight=0.9, seed=1)
    >>> for _ in trial.hours():
    ...     pass
    >>> status = trial.experiment.status()
    >>> status.state, status.n_assigned, status.n_pending
    ('stopped', 300, 0)
    """

    def __init__(
        self,
        create: Callable[..., Any],
        clock: Clock,
        real: RealExperiment,
        n_people: int,
        *,
        reward_weight: float,
        seed: int,
    ) -> None:
        self.real, self.n_people = real, n_people
        self._clock = clock
        self.experiment = create(
            NAME,
            arms=real.names,
            policy=recommended(reward_weight),
            seed=seed,
            missing=DropUnit(window_seconds=WINDOW.total_seconds(), late="count"),
            stopping=[Budget(units=n_people), Precision(half_width=PRECISION)],
            metadata={"source": real.citation, "outcome": real.outcome},
        )
        self._people = Population(real, n_people, seed=seed)
        self._weight = reward_weight
        self._next = 0
        self._expected: list[tuple[float, int, int]] = []  # when, who, arm
        self._notes: list[tuple[int, FloatArray, FloatArray]] = []

    def hours(self) -> Iterator[int]:
        """Advance hour by hour until everyone has arrived and every answer has come in."""
        positions = {name: place for place, name in enumerate(self.real.names)}
        hour = 0
        while self._next < self.n_people or self._expected:
            hour += 1
            self._clock.now = START + timedelta(hours=hour)
            self._answer(hour)
            self._arrive(hour, positions)
            if hour == 24 * DAYS:
                self.experiment.stop()
            yield hour
        self._clock.now = max(self._clock.now, START + timedelta(days=DAYS) + WINDOW)
        self.experiment.settle()
        if self.experiment.status().state != "stopped":
            self.experiment.stop()

    def take_note(self, status: Status) -> None:
        """Keep the current shares for the chart."""
        if status.n_assigned and (not self._notes or self._notes[-1][0] < status.n_assigned):
            shares = [[arm.target_share, arm.actual_share] for arm in status.arms]
            target, actual = np.array(shares, dtype=np.float64).T  # None becomes NaN
            self._notes.append((status.n_assigned, target, actual))

    def record(self) -> TrackingRecord:
        """Return the notes as a record to draw."""
        steps, targets, frequencies = zip(*self._notes, strict=True)
        return TrackingRecord(
            arms=self.real.names,
            step=np.array(steps),
            target=np.array(targets),
            frequency=np.array(frequencies),
            optimum=optimal_allocation(self.real.arms.mean, self.real.arms.std, reward_weight=self._weight),
            reward_weight=self._weight,
        )

    def _answer(self, hour: int) -> None:
        due = []
        while self._expected and self._expected[0][0] <= hour:
            due.append(heapq.heappop(self._expected))
        for start in range(0, len(due), _BATCH):
            group = due[start : start + _BATCH]
            self.experiment.tell_many([(_unit(person), self._people.presses(person, arm)) for _, person, arm in group])

    def _arrive(self, hour: int, positions: dict[str, int]) -> None:
        last = int(np.searchsorted(self._people.arrived, hour, side="right"))
        while self._next < last:
            people = range(self._next, min(last, self._next + _BATCH))
            for person, found in zip(people, self.experiment.ask_many(map(_unit, people)), strict=True):
                when = float(self._people.answered[person])
                if not np.isnan(when):
                    heapq.heappush(self._expected, (when, person, positions[found.arm]))
            self._next = people.stop


def _unit(person: int) -> str:
    return f"person-{person + 1}"
