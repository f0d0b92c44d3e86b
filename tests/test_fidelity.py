"""An experiment beside its plan: figures inside and outside of their bands, on the day of the look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import equipoise as eq
from equipoise.errors import InvalidInput

START = datetime(2027, 3, 1, tzinfo=UTC)
BANDS = [
    {"figure": "people", "low": [0, 80, 160], "middle": [0, 100, 200], "high": [0, 120, 240]},
    {"figure": "missing", "low": [None, 0.0, 0.0], "middle": [None, 0.02, 0.02], "high": [None, 0.1, 0.1]},
    {"figure": "mean of arm", "arm": "prize", "low": [None, 0.2, 0.3], "middle": [None] * 3, "high": [None, 0.6, 0.5]},
    {"figure": "best share", "low": [None, 0.4, 0.4], "middle": [None, 0.5, 0.5], "high": [None, 0.6, 0.6]},
]
PLAN = {"digest": "d1", "way": "equal shares", "start": START.isoformat(), "days": [0, 1, 2], "bands": BANDS}


class Clock:
    now = START

    def __call__(self):
        return self.now


def planned(clock, plan=PLAN, **settings):
    store = eq.open_store("memory:", clock=clock)
    arms = ["plain", "prize"]
    return eq.Experiment.create(
        store, "flu", arms=arms, policy=eq.Uniform(), seed=1, reward_range=(0, 1), metadata={"plan": plan}, **settings
    )


def play(experiment, n, rates):
    for i, one in enumerate(experiment.ask_many([f"p{i}" for i in range(n)])):
        experiment.tell(one.unit, float(i % 10 < 10 * rates[one.arm]))


def test_figures_are_compared_with_the_bands_of_the_present_day():
    clock = Clock()
    experiment = planned(clock)
    play(experiment, 60, {"plain": 0.1, "prize": 0.8})
    clock.now = START + timedelta(hours=12)
    found = {(one.figure, one.arm): one for one in experiment.fidelity().figures}
    people = found["people", None]
    assert (people.low, people.middle, people.high, people.actual, people.inside) == (40, 50, 60, 60, None), (
        "bands are by day: nothing is compared before the first is over"
    )
    assert found["missing", None].inside is None  # no band between a day without one and a day with one
    clock.now = START + timedelta(days=1.5)
    fidelity = experiment.fidelity()
    assert [(one.figure, one.arm) for one in fidelity.outside] == [("people", None), ("mean of arm", "prize")]
    assert fidelity.sentences == (
        "People assigned: 60; planned: 150 (120 to 180).",
        "Mean of 'prize': 0.8; planned: - (0.25 to 0.55).",
        "On day 2, 2 of 4 planned figures are inside their 8-in-10 range.",
        "About 8 of 10 figures lie inside if an experiment goes as planned: plan again from here.",
    )


def test_what_is_as_planned_is_said_in_one_sentence_and_counted_at_the_end():
    clock = Clock()
    experiment = planned(clock)
    play(experiment, 100, {"plain": 0.1, "prize": 0.4})
    clock.now = START + timedelta(hours=23)
    early = experiment.fidelity()
    assert early.sentences == ("The first day has not passed: there is nothing to compare yet.",)
    assert all(figure.inside is None for figure in early.figures)
    clock.now = START + timedelta(days=1)
    assert experiment.fidelity().sentences == (
        "On day 1 everything is as planned: 4 figures are inside their 8-in-10 range.",
    )
    experiment.stop()
    assert experiment.fidelity().sentences == ("Of 4 planned figures, 4 ended inside their 8-in-10 range.",)


def test_days_count_from_the_planned_start_or_from_the_beginning_if_that_was_later():
    clock = Clock()
    late = planned(clock, PLAN | {"start": (START + timedelta(days=3)).isoformat()})
    clock.now = START + timedelta(days=4)
    assert late.fidelity().day == 1
    assert planned(clock).fidelity().day == 0


@pytest.mark.parametrize("metadata", [{}, {"plan": "mine"}, {"plan": {"days": []}}])
def test_without_a_plan_there_is_nothing_to_compare_with(metadata):
    experiment = eq.Experiment.create("memory:", "flu", arms=["a", "b"], policy=eq.Uniform(), metadata=metadata)
    with pytest.raises(InvalidInput, match="'flu' was not made from a plan"):
        experiment.fidelity()
