"""The scenario of the demo: simulated people arrive hour by hour, are assigned an arm, and answer later or never."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.charts import TrackingRecord
from equipoise.experiment import Budget, DropUnit, Precision, Status
from equipoise.objective import optimal_allocation
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.population import Population
from equipoise.planner.worlds import GAMMA, World, new_world
from equipoise.policies.pooled_balance import recommended

if TYPE_CHECKING:
    from equipoise.paper.real_experiments import RealExperiment

NAME = "effort"
START = datetime(2026, 3, 2, 8, tzinfo=UTC)
_HOUR = 3_600_000_000
"""In microseconds."""
DAYS = 14
"""How long people keep coming."""

MISSING = 0.02
"""Share of people who never answer."""

MEAN_DELAY_HOURS, DELAY_SPREAD = 8.0, 0.8
"""How long an answer takes on average, and the standard deviation of its logarithm."""

WINDOW = timedelta(days=2)
"""How long the experiment waits for an answer before it counts a person as missing; some answer later."""

PRECISION = 300.0
"""The experiment is to know every arm to within this many presses, some 15 % of what people press."""

CONTROL = "no extra pay"
"""The arm that others are compared with."""


def world_of(real: RealExperiment, n_people: int) -> World:
    """Return what is true in the demo: this many people, who press as often as was published.

    Presses have gamma distributions, which are never negative, with the published mean and spread of each arm.

    Examples
    --------
    >>> from equipoise.paper.real_experiments import effort_experiment
    >>> people = Population(world_of(effort_experiment(), 1000), seed=1)
    >>> people.n_people, people.reward(person=0, arm=0)
    (1000, 2442.0)
    """
    return new_world(
        real.arms.mean,
        real.arms.std,
        kind=GAMMA,
        rounded_to=1.0,
        per_day=[n_people / DAYS] * DAYS,
        is_exact=True,
        delay=MEAN_DELAY_HOURS * 3600 * math.exp(-0.5 * DELAY_SPREAD**2),
        delay_spread=DELAY_SPREAD,
        missing=MISSING,
    )


class Trial:
    """A live experiment on a `Population`.

    `create` makes the experiment, in a store or through a service; both must use the same `clock`. The people are those
    of the planner, who all come or answer at full hours.

    Examples
    --------
    >>> from functools import partial
    >>> import equipoise as eq
    >>> from equipoise.paper.real_experiments import effort_experiment
    >>> clock = Clock(START)
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
        people = Population(world_of(real, n_people), seed=seed)
        self.experiment = create(
            NAME,
            arms=real.names,
            policy=recommended(reward_weight),
            seed=people.experiment_seed,
            missing=DropUnit(window_seconds=WINDOW.total_seconds(), late="count"),
            stopping=[Budget(units=n_people), Precision(half_width=PRECISION)],
            control=CONTROL,
            description={
                "question": f"Which of {len(real.names)} incentives brings the most {real.outcome}?",
                "reward_unit": real.outcome,
            },
            metadata={"source": real.citation},
        )
        self.play = LivePlay(self.experiment, clock, people)
        self._weight = reward_weight
        self._notes: list[tuple[int, FloatArray, FloatArray]] = []

    def hours(self) -> Iterator[int]:
        """Advance hour by hour until everyone has arrived and every answer has come in."""
        hour = 0
        while not self.play.is_over:
            hour += 1
            self.play.play_until(hour * _HOUR, together=True)
            if hour == 24 * DAYS:
                self.experiment.stop()
            yield hour
        self._clock.turn_to(24 * DAYS * _HOUR + round(WINDOW.total_seconds() * 1e6))
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
