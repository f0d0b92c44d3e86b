"""Play the people of a simulated experiment through a live one, with a clock: for tests, the demo and doubts."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.planner.population import Population

START = datetime(2027, 3, 1, tzinfo=UTC)
MOST_TOGETHER = 500
"""People per transaction."""


class Clock:
    """The time in a simulated experiment, which only moves when told to."""

    def __init__(self, start: datetime = START) -> None:
        self.start = self.now = start

    def __call__(self) -> datetime:
        """Return the time."""
        return self.now

    def turn_to(self, at: int) -> None:
        """Turn to a time in microseconds from the start; never back."""
        self.now = max(self.now, self.start + timedelta(microseconds=at))


class LivePlay:
    """People who come to a live experiment and answer later or never.

    Its store, or the service in front of it, must use the clock. Played `together`, all who come or answer until a time
    are assigned or told at that time; otherwise each at their own, as in `planner.trials`, and with the same arms.

    Examples
    --------
    >>> import equipoise as eq
    >>> from equipoise.planner.population import Population
    >>> from equipoise.planner.worlds import new_world
    >>> people = Population(new_world([0.3, 0.5], per_day=[20, 20], delay=3600, missing=0.05), seed=1)
    >>> clock = Clock()
    >>> store, seed = eq.open_store("memory:", clock=clock), people.experiment_seed
    >>> experiment = eq.Experiment.create(store, "flu", arms=["plain", "prize"], reward_weight=0.9, seed=seed)
    >>> live = LivePlay(experiment, clock, people)
    >>> live.play_until(people.end)
    >>> status = experiment.status()
    >>> clock.now.isoformat(), status.n_assigned, status.n_rewarded
    ('2027-03-03T00:00:00+00:00', 45, 41)
    """

    def __init__(self, experiment: Experiment, clock: Clock, people: Population) -> None:
        self.experiment, self.people, self.clock = experiment, people, clock
        self.arms: list[int] = []
        """The arm of each person so far, by position."""
        described, settings = experiment.describe(), experiment.configuration
        self._positions = {arm["name"]: place for place, arm in enumerate(described["arms"])}
        self._expected: list[tuple[int, int]] = []  # when, who
        self._n_people = min(people.n_people, settings.most_units or people.n_people)

    @property
    def is_over(self) -> bool:
        """Whether everybody has come and every answer that will ever come is told."""
        return len(self.arms) == self._n_people and not self._expected

    @property
    def _end(self) -> int | None:
        """When the last window passes; None if answers are waited for all the same, or nobody comes."""
        rule = self.experiment.configuration.missing
        if rule.window_microseconds is None or not rule.gives_up or not self._n_people:
            return None
        return int(self.people.arrived[self._n_people - 1]) + rule.window_microseconds

    def play_until(self, at: int, *, together: bool = False) -> None:
        """Let everything happen until a time, in microseconds from the start."""
        if together:
            self.clock.turn_to(at)
            for group in _groups([person for _, person in self._told_until(at)]):
                self.experiment.tell_many([(unit_of(person), self._reward(person)) for person in group])
            for group in _groups(self._arrived_until(at)):
                self._assign(group)
            return
        while True:
            arrival = self._next_arrival()
            told = self._expected[0][0] if self._expected else None
            if told is not None and told <= at and (arrival is None or told <= arrival):
                self.clock.turn_to(told)
                known = [(unit_of(person), self._reward(person)) for _, person in self._told_until(told)]
                self.experiment.tell_many(known)
            elif arrival is not None and arrival <= at:
                self.clock.turn_to(arrival)
                self._assign([len(self.arms)])
            else:
                break
        self.clock.turn_to(at)
        self.experiment.settle()

    def play(self) -> None:
        """Let everything happen until the end: until all answers have come, or the last window has passed."""
        end = self._end
        while not self.is_over:
            arrival = self._next_arrival()
            upcoming = [one for one in (arrival, self._expected[0][0] if self._expected else None) if one is not None]
            if end is not None and min(upcoming) > end:
                break
            self.play_until(max(upcoming) if end is None else min(max(upcoming), end))
        window = self.experiment.configuration.missing.window_microseconds
        if window is not None and self._n_people:
            self.clock.turn_to(int(self.people.arrived[self._n_people - 1]) + window)
        self.experiment.settle()

    def _next_arrival(self) -> int | None:
        """Return when the next person comes."""
        return int(self.people.arrived[len(self.arms)]) if len(self.arms) < self._n_people else None

    def _arrived_until(self, at: int) -> list[int]:
        """Return who comes until a time."""
        last = int(self.people.arrived[: self._n_people].searchsorted(at, side="right"))
        return list(range(len(self.arms), last))

    def _told_until(self, at: int) -> list[tuple[int, int]]:
        """Return who answers until a time, in order, and expect them no longer."""
        found = []
        while self._expected and self._expected[0][0] <= at:
            found.append(heapq.heappop(self._expected))
        return found

    def _assign(self, people: list[int]) -> None:
        """Assign people who come now."""
        for person, found in zip(people, self.experiment.ask_many([unit_of(one) for one in people]), strict=True):
            arm = self._positions[found.arm]
            self.arms.append(arm)
            told = self.people.told_at(person, arm)
            if told is not None:
                heapq.heappush(self._expected, (told, person))

    def _reward(self, person: int) -> float:
        return self.people.reward(person, self.arms[person])


def unit_of(person: int) -> str:
    """Return the name of a person."""
    return f"person-{person + 1}"


def _groups(people: list[int]) -> Iterator[list[int]]:
    """Return people in groups for one transaction each."""
    for start in range(0, len(people), MOST_TOGETHER):
        yield people[start : start + MOST_TOGETHER]
