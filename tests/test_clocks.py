"""Clocks that are wrong, differ or step back: what the log says holds, and one clock counts for each comparison."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import equipoise as eq

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Clock:
    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def machines(request, tmp_path, clock):
    """Two handles of one store; the clock of the second is three hours ahead."""
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else f"sqlite:///{tmp_path}/s.db"
    with eq.open_store(url, clock=clock) as right, eq.open_store(url, clock=lambda: clock.now + 3 * HOUR) as ahead:
        yield right, ahead


def on(stores, **settings):
    """Create an experiment and return it as each machine has it."""
    eq.Experiment.create(stores[0], "x", arms=["a", "b"], policy=eq.Uniform(), seed=1, **settings)
    return [eq.Experiment.open(store, "x") for store in stores]


@pytest.mark.parametrize(("late", "n_counted"), [("count", 1), ("ignore", 0)])
def test_whoever_writes_first_after_the_end_of_a_window_closes_it_for_all(machines, clock, late, n_counted):
    right, ahead = on(machines, missing=eq.DropUnit(window_seconds=3600, late=late))
    right.ask("early")
    ahead.ask("other")  # by its clock, the window of the first unit has passed
    kinds = [event.kind for event in right.events()]
    assert kinds == ["created", "assigned", "expired", "assigned"]
    told = right.tell("early", 1.0)  # late, although it is still noon here: the log decides
    assert told.new
    assert [arm.mean for arm in right.status().arms if arm.mean is not None] == [1.0] * n_counted
    assert right.verify().n_events == ahead.verify().n_events == 5


def test_a_window_that_opened_on_a_clock_that_is_ahead_closes_later(machines, clock):
    right, ahead = on(machines, missing=eq.DropUnit(window_seconds=3600))
    ahead.ask("unit")
    clock.now += 3 * HOUR
    right.settle()
    assert right.status().n_pending == 1
    clock.now += HOUR
    right.settle()
    assert right.status().n_pending == 0
    right.verify()


def test_a_clock_that_steps_back_changes_no_decision_and_no_order(machines, clock, tmp_path):
    right, _ = on(machines, missing=eq.WaitForReward(window_seconds=3600, hold=True))
    with eq.open_store("memory:", clock=lambda: NOON) as store:
        [steady] = on([store], missing=eq.WaitForReward(window_seconds=3600, hold=True))
        for number in range(10):
            assert right.ask(f"unit-{number}").arm == steady.ask(f"unit-{number}").arm
            clock.now -= 24 * HOUR
            right.tell(f"unit-{number}", number / 3)
    events = list(right.events())
    assert [event.number for event in events] == list(range(1, 22))
    assert events[-1].at < events[0].at
    clock.now = NOON + HOUR
    right.settle()
    assert right.status().n_rewarded == 10
    right.verify()
    assert not right.rebuild()
    assert right.export(tmp_path / "units.csv") == 10


def test_a_deadline_is_judged_by_the_clock_of_the_machine_that_reads(machines, clock):
    right, ahead = on(machines, stopping=eq.Deadline(at=NOON + HOUR))
    assert [one.status().stopping[0].met for one in (right, ahead)] == [False, True]
    assert right.ask("unit").new and ahead.ask("another").new  # reported; it stops nothing by itself
