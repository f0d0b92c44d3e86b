"""What lies ahead of an experiment: the pace of the last week, the dates that follow, and charts of how it went."""

from __future__ import annotations

import math
from datetime import timedelta

import numpy as np
import pytest
from console_visitor import Visitor
from live_courses import FOUR, Clock, played
from service_runner import serving_here

import equipoise as eq
from equipoise import charts
from equipoise.service import Settings


def people(experiment: eq.Experiment, clock: Clock, number: int, hours: float) -> None:
    """Let people come at the same pace for some hours."""
    for k in range(number):
        clock.now += timedelta(hours=hours / number)
        experiment.ask(f"{clock.now.isoformat()}-{k}")


def new(**settings: object) -> tuple[eq.Experiment, Clock]:
    clock = Clock()
    store = eq.open_store("memory:", clock=clock)
    return eq.Experiment.create(store, "exam", arms=["a", "b"], reward_weight=0.5, seed=1, **settings), clock


def test_the_pace_is_that_of_the_last_seven_days() -> None:
    experiment, clock = new()
    assert experiment.outlook().people_per_day is None
    people(experiment, clock, 10, 0.5)
    assert experiment.outlook().people_per_day is None  # not an hour yet
    people(experiment, clock, 70, 23.5)
    assert experiment.outlook().people_per_day == pytest.approx(80, rel=0.02)
    people(experiment, clock, 14 * 30, 14 * 24)
    assert experiment.outlook().people_per_day == pytest.approx(30, rel=0.02)
    clock.now += timedelta(days=3.5)
    assert experiment.outlook().people_per_day == pytest.approx(15, rel=0.02)
    experiment.pause()
    assert experiment.outlook().people_per_day is None


def test_the_day_of_a_precision_is_about_when_it_is_reached() -> None:
    rng, (experiment, clock) = (
        np.random.default_rng(4),
        new(reward_range=(0, 1), stopping=[eq.Precision(half_width=0.08)]),
    )
    expected = None
    for k in range(4_000):
        clock.now += timedelta(minutes=15)
        one = experiment.ask(f"p{k}")
        experiment.tell(one.unit, float(rng.random() < (0.3 if one.arm == "a" else 0.5)))
        if k == 300:
            (rule,) = experiment.outlook().rules
            expected = rule.expected_at
            assert rule.days == pytest.approx((rule.people or 0) / 96, rel=0.02)
        if k > 300 and experiment.status().stopping[0].met:
            break
    assert experiment.outlook().rules[0].people == 0
    assert expected is not None
    took = (clock.now - experiment.status().created_at).total_seconds()
    assert (expected - experiment.status().created_at).total_seconds() == pytest.approx(took, rel=0.1)


def test_intervals_over_time_are_those_that_status_had() -> None:
    for reward_range in ((0, 1), None):
        experiment, statuses = played(FOUR, hours=72, each=24, people=200.0, reward_range=reward_range)
        timeline = experiment.timeline("day", statuses[0].created_at)
        at = {start.date(): row for row, start in enumerate(timeline.start)}
        for status in statuses:
            row = at[(status.at - timedelta(hours=1)).date()]
            if timeline.assigned_so_far[row].sum() != status.n_assigned:
                continue  # the period goes on after it
            for name in ("low", "high"):
                told = [getattr(arm, name) if getattr(arm, name) is not None else math.nan for arm in status.arms]
                assert np.allclose(getattr(timeline, name)[row], told, rtol=1e-6, equal_nan=True)
        assert timeline.low[-1].tolist() == pytest.approx([arm.low for arm in statuses[-1].arms], rel=1e-6)


def test_the_course_of_an_experiment_is_its_timeline_with_marks_at_changes() -> None:
    experiment, statuses = played(FOUR, hours=48)
    experiment.change_weight(0.5, reason="the board asked")
    experiment.note("we go on", kind="decision")
    experiment.note("nothing special")
    course = charts.course_of(experiment)
    assert [mark.text.split(":")[0] for mark in course.marks] == ["The weight was set to 0.5 (was 0.8)", "Decision"]
    assert course.assigned[-1].tolist() == [arm.assigned for arm in statuses[-1].arms]
    assert course.low[-1].tolist() == pytest.approx([arm.low for arm in statuses[-1].arms], rel=1e-6)
    assert charts.title_of(charts.live_shares_chart(course)).startswith("'prize' has got ")


def test_the_overview_draws_what_the_timeline_says_and_dates_the_rules() -> None:
    rules = [eq.Precision(half_width=0.05), eq.Budget(units=5_000), eq.Decided()]
    experiment, _ = played(FOUR, hours=24 * 8, each=4, people=6.0, stopping=rules)
    with serving_here(experiment.store, Settings(open=True)) as here, Visitor(here.url) as visitor:
        page = visitor.page("e/messages")
        for one in experiment.outlook().rules[:2]:
            assert one.expected_at is not None
            assert f"about {one.expected_at:%-d %B %Y}, after {one.people:,} more people" in page
        assert "No date yet: it depends on how different the arms turn out to be." in page
        timeline = experiment.timeline(charts.period_for(experiment.status()))
        rows = {
            name: visitor.get(f"e/messages/{name}.json?rows").json()["rows"] for name in ("shares", "means", "pace")
        }
        shares = [row["given"] for row in rows["shares"] if row["arm"] == "prize"]
        place = timeline.arms.index("prize")
        people = timeline.assigned_so_far.sum(axis=1)
        given = timeline.assigned_so_far[people > 0, place] / people[people > 0]
        assert shares == pytest.approx(given.tolist(), rel=1e-5)
        ends = [row["low"] for row in rows["means"] if row["arm"] == "prize"]
        assert ends[-1] == pytest.approx(timeline.low[-1, place], rel=1e-5)
        assert sum(row["people"] for row in rows["pace"]) == experiment.status().n_assigned
        assert page.count("<figure>") == 4
