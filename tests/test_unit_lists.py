"""Lists of units read a bounded part of an index for each page, and go on where they ended."""

from __future__ import annotations

import pytest

import equipoise as eq
from equipoise.experiment import DefaultReward, WaitForReward, unit_lists
from equipoise.testing.unit_contract import StoppedClock


@pytest.fixture
def few(monkeypatch):
    """Reads that cover little, so that a small experiment takes many."""
    for name in ("_NAMES", "_ROWS", "_EVENTS", "_MOST_READS"):
        monkeypatch.setattr(unit_lists, name, 2)


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def experiment(clock):
    """Forty people, of whom few are waiting, held or overdue among those who answered."""
    store = eq.open_store("memory:", clock=clock)
    missing = WaitForReward(window_seconds=60, hold=True)
    made = eq.Experiment.create(store, "rare", arms=["a", "b"], policy=eq.Uniform(), seed=1, missing=missing)
    units = [f"unit-{i:02d}" for i in range(40)]
    made.ask_many(units[:20])
    made.tell_many([(unit, 1.0) for unit in units[:9]])
    clock.advance(61)
    made.settle()
    made.tell_many([(unit, 1.0) for unit in units[10:19]])
    made.ask_many(units[20:])
    made.tell_many([(unit, 1.0) for unit in units[21:30] + units[32:]])
    return made


def pages(experiment, state, **filters):
    found, after = [experiment.units(state, **filters)], None
    while (after := found[-1].next) is not None:
        found.append(experiment.units(state, after=after, **filters))
    return found


@pytest.mark.parametrize("limit", [1, 3, 50])
@pytest.mark.usefixtures("few")
def test_short_pages_lead_to_the_end(experiment, clock, limit):
    def names(state, **filters):
        return [one.unit for page in pages(experiment, state, limit=limit, **filters) for one in page.units]

    assert names("waiting") == ["unit-20", "unit-30", "unit-31"]
    assert names("overdue") == ["unit-09", "unit-19"]
    assert names("waiting", prefix="unit-3") == ["unit-30", "unit-31"]
    assert len(names("held")) == 17
    assert len(names("counted")) == 18
    clock.advance(61)
    assert names("waiting") == []
    assert names("overdue") == ["unit-09", "unit-19", "unit-20", "unit-30", "unit-31"]
    assert names(None) == [f"unit-{i:02d}" for i in range(40)]


@pytest.mark.usefixtures("few")
def test_a_page_may_be_empty_before_the_end(experiment):
    found = pages(experiment, "overdue", limit=1)
    assert () in [page.units for page in found[:-1]]
    assert found[0].to_dict()["units"] == [one.to_dict() for one in found[0].units]


def test_a_place_of_another_list_is_refused(experiment):
    waiting = experiment.units("waiting", limit=1)
    with pytest.raises(eq.InvalidInput, match="after must be `next` of a page with the same filters"):
        experiment.units("overdue", after=waiting.next)


def test_units_of_another_rule_are_found(clock):
    store = eq.open_store("memory:", clock=clock)
    missing = DefaultReward(value=0.0, window_seconds=60, late="ignore")
    made = eq.Experiment.create(store, "late", arms=["a", "b"], policy=eq.Uniform(), seed=1, missing=missing)
    made.ask_many(["x", "y", "z"])
    clock.advance(61)
    assert [one.unit for one in made.units("overdue").units] == ["x", "y", "z"]
    made.settle()
    made.tell("y", 1.0)
    made.withdraw("z", "left")
    assert [one.unit for one in made.units("defaulted").units] == ["x", "y"]
    assert [made.units(state).units for state in ("overdue", "dropped")] == [(), ()]
