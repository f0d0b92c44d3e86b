"""The people of one simulated experiment: when they come, their reward under each arm, when it is known, or never."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.kernels import people as kernel
from equipoise.kernels.people import MICROSECONDS, NEVER, People
from equipoise.planner.worlds import World

_UNLIKELY = 10.0
"""Nobody is left out unless more people come than expected by this many standard deviations, and a few."""


class Population:
    """Simulated people of one replication, a function of the world, the seed and the replication's number.

    Times are in microseconds from the start. `experiment_seed` is the seed of the experiment that assigns them, the
    same under every way.

    Examples
    --------
    >>> from equipoise.planner.worlds import new_world
    >>> world = new_world([0.3, 0.5], per_day=[20, 20], delay=3600, missing=0.05, is_exact=True)
    >>> people = Population(world, seed=1)
    >>> people.n_people, people.arrived[:2] / 60e6
    (40, array([ 36., 108.]))
    >>> person = 0
    >>> people.reward(person, arm=0), people.reward(person, arm=1), people.told_at(person, arm=1) / 60e6
    (0.0, 1.0, 96.0)
    """

    def __init__(self, world: World, *, seed: int, replication: int = 0) -> None:
        self.world = world
        self.seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
        self.replication = checks.whole_number("replication", replication, 0, 2**63 - 1)
        expected = float(world.per_day.sum())
        size = int(min(world.most_people, expected + _UNLIKELY * np.sqrt(expected) + 20))
        found = kernel.new_people(size)
        self.n_people = kernel.draw_people(self.seed, self.replication, world.per_day, world.is_exact, found)
        n = self.n_people
        self.people = People(found.arrived[:n], found.reward[:n], found.delay[:n], found.missing[:n])
        self.experiment_seed = kernel.experiment_seed(self.seed, self.replication)

    @property
    def arrived(self) -> IntArray:
        """(n_people,) When each person comes, in order."""
        return self.people.arrived

    @property
    def end(self) -> int:
        """When enrolment ends."""
        return self.world.per_day.size * kernel.DAY

    def reward(self, person: int, arm: int) -> float:
        """Return what the reward of a person is under an arm, whether it is ever known or not."""
        world = self.world
        level = kernel.level_at(int(self.arrived[person]), world.drift_per_second, world.step, world.step_at)
        return kernel.reward_of(
            world.kind,
            world.shape,
            world.pool,
            world.rounded_to,
            world.lowest,
            world.highest,
            level,
            self.seed,
            self.replication,
            person,
            arm,
            float(self.people.reward[person]),
        )

    def told_at(self, person: int, arm: int) -> int | None:
        """Return when the experiment gets to know the reward of a person under an arm; None for never."""
        world = self.world
        good = kernel.is_good(int(world.kind[arm]), self.reward(person, arm), float(world.mean[arm]))
        missing = world.missing_after_good if good else world.missing_after_bad
        if self.people.missing[person] < missing[arm]:
            return None
        delay = kernel.delay_of(
            float(world.delay[arm]), float(world.delay_spread[arm]), float(self.people.delay[person])
        )
        at = kernel.told_at(int(self.arrived[person]) + delay, person, self.arrived, self.n_people, *self._batches)
        return None if at >= NEVER else at

    @cached_property
    def told(self) -> tuple[IntArray, IntArray]:
        """When rewards are known that are not missing, and the people in that order; empty if it depends on the arm."""
        world = self.world
        nothing = np.empty(0, np.int64)
        if np.ptp(world.delay) > 0 or np.ptp(world.delay_spread) > 0 or not np.isfinite(world.delay[0]):
            return nothing, nothing
        at = np.empty(self.n_people, np.int64)
        median, spread = float(world.delay[0]), float(world.delay_spread[0])
        kernel.write_told(median, spread, self.people, self.n_people, *self._batches, at)
        return at, np.argsort(at, kind="stable")

    @property
    def _batches(self) -> tuple[int, int, int, int]:
        """What tells when rewards become known in batches."""
        world = self.world
        return world.batch_people, int(world.batch_seconds * MICROSECONDS), int(world.batch_at * MICROSECONDS), self.end

    @property
    def uniform(self) -> FloatArray:
        """(n_people,) Where each person stands among all people: rewards grow with it under every arm."""
        return self.people.reward
