"""Alerts of real experiments: what rings, opens once, closes once, is muted with a reason, and survives restarts."""

from __future__ import annotations

import multiprocessing
import sqlite3
from datetime import timedelta

import alert_worker
import numpy as np
import pytest
from live_clock import MONDAY, TurnedClock, go_on

import equipoise as eq
from equipoise.experiment.alert_episodes import unsent_messages
from equipoise.health_table import health_lines
from equipoise.monitoring.check_names import CHECKS, FACTS
from equipoise.service.api_keys import create_key
from equipoise.status_table import status_lines
from equipoise.store import schema

RULE = eq.DropUnit(window_seconds=86_400)
FIRM = {"reward_weight": 0.5, "seed": 1, "reward_range": (0, 1), "floor": 0.1, "missing": RULE}


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return request.getfixturevalue("postgresql_url")


@pytest.fixture
def clock():
    return TurnedClock()


@pytest.fixture
def store(clock):
    with eq.open_store("memory:", clock=clock) as opened:
        yield opened


def create(store, name="messages", **settings):
    return eq.Experiment.create(store, name, arms=["plain", "prize", "late"], who="Ada", **FIRM | settings)


def rows(store):
    """All alerts there ever were: check, whether they opened, whether they closed."""
    found = store.read(
        lambda transaction: transaction.execute("SELECT check_name, opened_at, closed_at FROM alerts ORDER BY seen_at")
    )
    return [(check, opened is not None, closed is not None) for check, opened, closed in found]


def states(health):
    return {(one.check, one.arm): one.state for one in health.checks}


def names(alerts):
    return [(one.check, one.arm) for one in alerts]


def messages(store):
    return [
        (one.kind, one.alert.check)
        for one in store.read(lambda transaction: unsent_messages(transaction, store.now(), timedelta(hours=24)))
    ]


def test_a_healthy_experiment_has_no_alert_and_its_checks_are_those_of_its_log(store, clock):
    experiment = create(store)
    go_on(experiment, clock, 15 * 24)
    health = experiment.health()
    assert health.alerts == ()
    assert (health.state, health.sentence) == ("ok", "No problem was found.")
    assert health.day == 14
    assert {one.check for one in health.checks} == set(CHECKS) - {"off plan"}
    assert {one.state for one in health.checks if one.check not in FACTS} == {"ok"}
    # The share missing is counted again from the log: of the whole days of people whose window was over at the last
    # change of the day.
    begin = next(experiment.events(kinds=["assigned"])).at.replace(minute=0, second=0)
    end = begin + timedelta(days=health.day - 1)
    told = {event.unit for event in experiment.events(kinds=["rewarded"])}
    for arm in ("plain", "prize", "late"):
        units = [one.unit for one in experiment.events(kinds=["assigned"]) if one.arm == arm and one.at < end]
        found = next(one for one in health.checks if (one.check, one.arm) == ("missing by arm", arm))
        assert found.value == pytest.approx(np.mean([unit not in told for unit in units]))
    assert rows(store) == []
    assert experiment.status().alerts == ()


def test_shares_wanted_are_those_that_were_steered_towards(store, clock):
    experiment = create(store)
    go_on(experiment, clock, 9 * 24)
    found = {one.arm: one for one in experiment.health().checks if one.check == "shares as wanted"}
    given = sum(experiment.timeline("day").assigned[-8:])
    assert sum(one.expected for one in found.values()) == pytest.approx(1)
    assert found["plain"].value == pytest.approx(given[0] / given.sum(), abs=0.03)
    target = experiment.status().arms[0].target_share
    assert found["plain"].expected == pytest.approx(target, abs=0.12)
    # After a change of the dial, only whole days with the new one are compared.
    experiment.change_weight(0.95)
    clock.turn(minutes=1)
    assert [one.state for one in experiment.health().checks if one.check == "shares as wanted"] == ["not enough yet"]


def test_an_alert_opens_once_and_closes_once_over_restarts(url, clock):
    with eq.open_store(url, clock=clock) as store:
        experiment = create(store)
        go_on(experiment, clock, 9 * 24)
        assert experiment.health().alerts == ()
        clock.turn(hours=12)
        [alert] = experiment.health().alerts
        assert (alert.check, alert.severity, alert.experiment) == ("enrolment", "problem", "messages")
        assert alert.opened_at == clock.now
        assert alert.opened_event == experiment.status().n_events
        assert alert.since == clock.now - timedelta(hours=12)
        assert messages(store) == [("opened", "enrolment")]
    clock.turn(hours=1)
    with eq.open_store(url, clock=clock) as store:
        experiment = eq.Experiment.open(store, "messages")
        assert experiment.status().alerts == (alert,)
        [again] = experiment.health().alerts
        assert (again.id, again.opened_at) == (alert.id, alert.opened_at)
        assert again.sentence != alert.sentence  # an hour more
        assert experiment.status().alerts == (again,)
        assert messages(store) == [("opened", "enrolment")]
        go_on(experiment, clock, 2, first=1)
        assert experiment.health().alerts == ()
        assert rows(store) == [("enrolment", True, True)]
        clock.turn(hours=13)
        [another] = experiment.health().alerts
        assert another.id != alert.id
        assert rows(store) == [("enrolment", True, True), ("enrolment", True, False)]
        assert "'enrolment'" not in str(experiment.changes(50))  # alerts are no events of the experiment
        assert experiment.verify().n_events == experiment.status().n_events


@pytest.mark.parametrize("people", [0.5, 6.0])
def test_nothing_rings_before_a_day_is_over_and_a_hundred_people_came(store, clock, people):
    experiment = create(store)
    go_on(experiment, clock, 6 * 24 if people < 1 else 22, people=people)
    clock.turn(hours=1.5 if people >= 1 else 60)
    health = experiment.health()
    assert health.alerts == ()
    assert health.sentence.startswith("Nothing is known to be wrong. Most checks begin after 24 hours and 100 people.")


@pytest.mark.parametrize("work", [alert_worker.look_at_moments, alert_worker.look_without_leases])
def test_processes_that_look_at_the_same_moment_open_and_close_one_alert(url, work):
    """Three look at a deadline that has passed, and then at an experiment that is stopped."""
    clock = TurnedClock()
    moments = [MONDAY + timedelta(hours=2), MONDAY + timedelta(hours=3)]
    context = multiprocessing.get_context("spawn")
    ready, begins = context.Semaphore(0), [context.Event() for _ in moments]
    with eq.open_store(url, clock=clock) as store:
        experiment = create(store, stopping=eq.Deadline(at=MONDAY + timedelta(hours=1)))
        given = (url, "messages", [moment.isoformat() for moment in moments], ready, begins)
        crowd = [context.Process(target=work, args=given, daemon=True) for _ in range(3)]
        for one in crowd:
            one.start()
        for _ in crowd:
            ready.acquire()
        begins[0].set()
        for _ in crowd:  # all have looked, and are ready for the second moment
            ready.acquire()
        clock.now = moments[1]
        assert rows(store) == [("deadline passed", True, False)]
        [alert] = experiment.status().alerts
        assert alert.sentence == "The deadline 2027-03-01T09:00:00+00:00 has passed, and the experiment is enrolling."
        experiment.stop()
        begins[1].set()
        for one in crowd:
            one.join()
        assert [one.exitcode for one in crowd] == [0] * len(crowd)
        assert sorted(rows(store)) == [("deadline passed", True, True), ("windows over", True, False)]


def test_while_another_process_writes_alerts_they_are_shown_as_it_wrote_them(store, clock):
    experiment = create(store, stopping=eq.Deadline(at=MONDAY + timedelta(hours=1)))
    later = 4_000_000_000_000_000
    store.change(experiment.number, lambda one: one.take_lease(experiment.number, "alerts", "another", 0, later))
    clock.turn(hours=2)
    assert states(experiment.health())["deadline passed", None] == "note"
    assert experiment.health().alerts == ()
    assert rows(store) == []


def test_a_store_that_cannot_be_written_shows_what_would_ring(tmp_path, clock):
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with eq.open_store(url, clock=clock) as store:
        create(store, stopping=eq.Deadline(at=MONDAY + timedelta(hours=1)))
        experiment = eq.Experiment.open(store, "messages")
        clock.turn(hours=2)
        store.change = lambda *_, **__: (_ for _ in ()).throw(eq.StoreUnavailable("the disk is full"))
        assert names(experiment.health().alerts) == [("deadline passed", None)]
        assert rows(store) == []


def test_muted_alerts_are_silent_until_the_date_and_the_log_says_why(store, clock):
    experiment = create(store)
    go_on(experiment, clock, 12 * 24, answers=lambda arm: 0.5 if arm == "late" else 0.95)
    told = names(experiment.health().alerts)
    assert ("missing by arm", "late") in told
    until = clock.now + timedelta(days=3)
    experiment.mute("missing by arm", arm="late", until=until, reason="the sheets come on Friday")
    health = experiment.health()
    [muted] = [one for one in health.alerts if one.is_muted]
    assert (muted.check, muted.arm, muted.muted_until) == ("missing by arm", "late", until)
    assert (muted.muted_by, muted.mute_reason) == ("Ada", "the sheets come on Friday")
    assert health.alerts[-1] == muted
    assert health.sentence.endswith("1 alert is muted.")
    assert ("missing by arm", "late") not in names(experiment.status().alerts)
    event = experiment.changes(1)[0]
    assert (event.kind, event.who, event.arm, event.details["check"]) == ("muted", "Ada", "late", "missing by arm")
    assert ("opened", "missing by arm") not in messages(store)
    # Said again at once it is a retry; of another arm nothing is muted; and it can be taken back.
    experiment.mute("missing by arm", arm="late", until=until, reason="the sheets come on Friday")
    assert experiment.changes(1)[0].number == event.number
    experiment.unmute("missing by arm", arm="late")
    assert ("missing by arm", "late") in names(experiment.status().alerts)
    experiment.mute("missing by arm", until=until, reason="all of them")
    assert ("missing by arm", "late") not in names(experiment.status().alerts)
    clock.now = until
    assert ("missing by arm", "late") in names(experiment.status().alerts)
    assert ("opened", "missing by arm") in messages(store)  # it is told when it is no longer muted
    assert experiment.verify().n_events == experiment.status().n_events


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"check": "nonsense"}, "check must be one of"),
        ({"until": MONDAY - timedelta(days=1)}, "until must be in the future, and at most a year away"),
        ({"until": MONDAY + timedelta(days=400)}, "until must be in the future, and at most a year away"),
        ({"until": "tomorrow"}, "until must be an instant with a zone"),
        ({"reason": ""}, "reason must not be empty"),
        ({"arm": "nobody"}, "unknown arm 'nobody'"),
    ],
)
def test_what_cannot_be_muted_is_refused_before_anything_is_written(store, changed, words):
    experiment = create(store)
    given = {"check": "enrolment", "until": MONDAY + timedelta(days=2), "reason": "holidays", "arm": None} | changed
    with pytest.raises(eq.InvalidInput, match=words):
        experiment.mute(given.pop("check"), **given)
    assert experiment.status().n_events == 1


def test_a_note_that_becomes_a_problem_is_told_once_more(store, clock):
    """Two points more are missing: a note. Then five: a problem, with a message of its own."""
    experiment = create(store)
    clock.turn(hours=1)
    number = experiment.number
    alert = ("x", "missing by arm", 2, "note", 1, 1, 1, None, None, 0.05, 0.03, "A note.", "", None, None, 1, None)
    store.change(number, lambda transaction: transaction.put(schema.alerts, number, [alert]))
    go_on(experiment, clock, 12 * 24, answers=lambda arm: 0.4 if arm == "late" else 0.95)
    experiment.health()
    assert ("opened", "missing by arm") in messages(store)
    assert ("closed", "missing by arm") not in messages(store)
    assert [row for row in rows(store) if row[0] == "missing by arm"] == [
        ("missing by arm", True, True),
        ("missing by arm", True, False),
    ]


def test_a_plan_that_is_left_for_three_days_is_worth_a_note(store, clock):
    days = [float(day) for day in range(61)]
    band = {
        "low": [10.0 * day for day in days],
        "middle": [11.0 * day for day in days],
        "high": [12.0 * day for day in days],
    }
    plan = {"digest": "ab", "way": "equal shares", "days": days, "bands": [{"figure": "people", "arm": None} | band]}
    experiment = create(store, metadata={"plan": plan})
    go_on(experiment, clock, 24, people=1.0)
    health = experiment.health()
    assert states(health)["off plan", None] == "note"
    assert health.alerts == ()
    for day in range(3):
        go_on(experiment, clock, 24, people=1.0, first=1 + day)
        found = names(experiment.health().alerts)
    assert found == [("off plan", None)]
    assert rows(store) == [("off plan", True, False)]


def test_a_plan_that_is_kept_again_leaves_nothing_behind(store, clock):
    band = {"low": [0.0, 10.0, 10.0], "middle": [0.0, 11.0, 11.0], "high": [0.0, 400.0, 400.0]}
    plan = {
        "digest": "ab",
        "way": "equal",
        "days": [0.0, 1.0, 9.0],
        "bands": [{"figure": "people", "arm": None} | band],
    }
    experiment = create(store, metadata={"plan": plan})
    clock.turn(days=1)
    assert states(experiment.health())["off plan", None] == "note"
    assert rows(store) == [("off plan", False, False)]
    go_on(experiment, clock, 24)
    experiment.health()
    assert rows(store) == []


def test_one_reward_far_out_is_named_until_it_is_corrected(store, clock):
    experiment = create(store, reward_range=None)
    go_on(experiment, clock, 6 * 24)
    asked = experiment.ask("typist")
    experiment.tell("typist", 700.0)
    event = experiment.status().n_events
    [alert] = experiment.health().alerts
    assert (alert.check, alert.arm, alert.event) == ("unusual reward", asked.arm, event)
    assert "typist" not in str(alert)
    experiment.correct("typist", 0.7, "a point was missing")
    assert experiment.health().alerts == ()
    other = experiment.ask("leaver")
    experiment.tell("leaver", -900.0)
    assert names(experiment.health().alerts) == [("unusual reward", other.arm)]
    experiment.withdraw("leaver", "asked to")
    assert experiment.health().alerts == ()


def test_facts_ring_at_once_and_end_with_their_reason(store, clock):
    experiment = create(store, stopping=[eq.Budget(units=3), eq.Precision(half_width=0.01)])
    experiment.ask_many(["a", "b", "c"])
    create_key(store, role="assigner", name="web site", experiment="messages", expires_at=clock.now + timedelta(days=5))
    create_key(store, role="reader", name="other", experiment="another", expires_at=clock.now + timedelta(days=5))
    health = experiment.health()
    assert names(health.alerts) == [("rule met", None), ("key expires", None)]
    assert health.alerts[0].sentence == "A stopping rule is met: the budget of 3 people is reached."
    assert "'web site'" in health.alerts[1].sentence and "other" not in health.alerts[1].sentence
    assert (health.state, health.sentence[:8]) == ("note", "2 notes:")
    experiment.stop()
    clock.turn(days=6)
    experiment.settle()
    assert names(experiment.health().alerts) == [("windows over", None)]
    experiment.finish()
    assert experiment.health().alerts == ()
    assert {row[2] for row in rows(store)} == {True}


def test_an_experiment_that_does_not_verify_rings_until_it_does(tmp_path, clock):
    path = tmp_path / "store.db"
    with eq.open_store(f"sqlite:///{path}", clock=clock) as store:
        experiment = create(store)
        go_on(experiment, clock, 10)
        assert experiment.verify().n_events
        assert experiment.health().verified.error is None
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE arms SET pulls = pulls + 1 WHERE position = 0")
        connection.close()
        store.states.clear()
        with pytest.raises(eq.VerificationFailed):
            experiment.verify()
        health = experiment.health()
        assert names(health.alerts) == [("verification", None)]
        assert "pulls" in health.verified.error
        assert "pulls" not in health.alerts[0].sentence  # it may name a unit, and alerts are sent around
        assert experiment.rebuild()
        clock.turn(minutes=1)
        experiment.verify()
        assert experiment.health().alerts == ()


def test_sums_that_cannot_be_read_are_a_problem_and_close_nothing(tmp_path, clock):
    path = tmp_path / "store.db"
    with eq.open_store(f"sqlite:///{path}", clock=clock) as store:
        experiment = create(store)
        go_on(experiment, clock, 9 * 24)
        clock.turn(hours=12)
        assert names(experiment.health().alerts) == [("enrolment", None)]
        go_on(experiment, clock, 3, first=1)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE events SET arm = NULL WHERE number = (SELECT max(number) FROM events)")
        connection.close()
    with eq.open_store(f"sqlite:///{path}", clock=clock) as store:
        health = eq.Experiment.open(store, "messages").health()
        assert sorted(names(health.alerts)) == [("enrolment", None), ("sums by hour", None)]
        assert "damaged" in states_sentence(health, "sums by hour")


def states_sentence(health, check):
    return next(one.sentence for one in health.checks if one.check == check)


def test_many_arms_are_checked_together_and_take_no_longer(store, clock):
    arms = [f"arm {k}" for k in range(3_000)]
    experiment = eq.Experiment.create(store, "many", arms=arms, policy=eq.Uniform(), seed=1)
    go_on(experiment, clock, 9 * 24)
    clock.turn(hours=14)
    health = experiment.health()
    assert names(health.alerts) == [("enrolment", None)]
    assert states(health)["arms", None] == "not enough yet"


def test_the_status_and_the_health_are_tables_that_fit(store, clock):
    experiment = create(store)
    go_on(experiment, clock, 9 * 24)
    clock.turn(hours=12)
    experiment.health()
    text = [line.text for line in status_lines(experiment.status(), width=80)]
    assert any(line.startswith("problem (enrolment): Nobody came for 12 hours") for line in text)
    lines = [line.text for line in health_lines(experiment.health(), width=80)]
    assert lines[0].startswith("messages: problem. 1 problem: Nobody came for 12 hours")
    assert max(map(len, lines)) <= 80
    assert experiment.status().to_dict()["alerts"][0]["check"] == "enrolment"


def test_an_experiment_is_copied_and_deleted_with_its_alerts(store, clock):
    experiment = create(store, stopping=eq.Deadline(at=MONDAY + timedelta(hours=1)))
    clock.turn(hours=2)
    [alert] = experiment.health().alerts
    with eq.open_store("memory:", clock=clock) as other:
        assert experiment.copy_to(other).status().alerts == (alert,)
    experiment.delete()
    assert rows(store) == []
