"""Every event of a log as a sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import equipoise as eq
from equipoise.experiment import sentence_of
from equipoise.experiment.event_kinds import KINDS
from equipoise.experiment.records import Event


@pytest.fixture
def log():
    """The log of a short experiment with every kind of event but `rebuilt`, by nobody and by Ben."""

    def made(who):
        now = datetime(2027, 1, 1, tzinfo=UTC)
        store = eq.open_store("memory:", clock=lambda: now)
        missing = eq.DefaultReward(value=0, window_seconds=60, hold=True)
        experiment = eq.Experiment.create(
            store, "mail", arms=["plain", "prize"], reward_weight=0.6, seed=1, missing=missing, who=who
        )
        experiment.ask_many(["ada", "bob", "eve"])
        experiment.tell("ada", 0.5)
        experiment.correct("ada", 0.75, "misread")
        now += timedelta(seconds=61)
        experiment.settle()
        experiment.withdraw("eve", "asked to leave")
        experiment.pause(reason="a holiday")
        experiment.resume()
        experiment.add_arm("cake", floor=0.1)
        experiment.pause_arm("cake")
        experiment.resume_arm("cake")
        experiment.retire_arm("cake", reason="too sweet")
        experiment.change_weight(0.8, reason="prize is clearly ahead")
        experiment.change_dial(information_kept=0.7)
        experiment.note("Monday was\n  a holiday")
        experiment.note("all get 'prize'", "decision")
        experiment.mute("enrolment", until="2027-01-03T00:00:00Z", reason="a week-end")
        experiment.mute("missing by arm", arm="prize", until="2027-02-01T01:30:00+01:00", reason="known")
        experiment.unmute("enrolment")
        experiment.stop()
        experiment.finish()
        return [sentence_of(event) for event in experiment.events() if event.kind != "assigned" or event.unit == "ada"]

    return made


def test_a_sentence_says_who_did_what_and_why(log):
    assert log("Ben") == [
        "Ben created the experiment with 2 arms",
        "'ada' got 'plain', with probability 0.5",
        "Ben recorded the reward 0.5 of 'ada'; it is not in the estimates",
        "Ben corrected the reward of 'ada' to 0.75: 'misread'",
        "The window of 'ada' passed: the reward 0.75 counts",
        "The window of 'bob' passed without a reward; 0 counts instead",
        "The window of 'eve' passed without a reward; 0 counts instead",
        "Ben withdrew 'eve': 'asked to leave'",
        "Ben paused enrolment: 'a holiday'",
        "Ben resumed enrolment",
        "Ben added the arm 'cake' with a floor of 0.1",
        "Ben paused the arm 'cake'",
        "Ben resumed the arm 'cake'",
        "Ben retired the arm 'cake': 'too sweet'",
        "Ben set the weight to 0.8 (was 0.6): 'prize is clearly ahead'",
        "Ben set the dial to 70% of the information kept about the arms on average (was reward weight 0.8)",
        "Ben noted: 'Monday was a holiday'",
        "Ben decided: 'all get 'prize''",
        "Ben muted alerts about 'enrolment' until 2027-01-03 00:00 UTC: 'a week-end'",
        "Ben muted alerts about 'missing by arm' of the arm 'prize' until 2027-02-01 00:30 UTC: 'known'",
        "Ben unmuted alerts about 'enrolment'",
        "Ben stopped enrolment",
        "Ben finished the experiment",
    ]


def test_where_nobody_is_named_a_sentence_says_what_was_done(log):
    said = log(None)
    assert said[0] == "The experiment was created with 2 arms"
    assert said[2:4] == [
        "The reward 0.5 of 'ada' was recorded; it is not in the estimates",
        "The reward of 'ada' was corrected to 0.75: 'misread'",
    ]
    assert said[7:9] == ["'eve' was withdrawn: 'asked to leave'", "Enrolment was paused: 'a holiday'"]
    assert said[14] == "The weight was set to 0.8 (was 0.6): 'prize is clearly ahead'"
    assert said[16:18] == ["Note: 'Monday was a holiday'", "Decision: 'all get 'prize''"]


def test_every_kind_has_a_sentence_and_an_unknown_one_is_named():
    for kind in (*KINDS, "moved_house"):
        details = {
            "reward_weight": 1.0,
            "was": {"reward_weight": 0.5} if kind == "dial_changed" else {} if kind == "described" else 0.5,
            "dial": {"reward_weight": 1.0},
            "description": {"title": "Letters"},
            "check": "enrolment",
            "until": "2027-01-03T00:00:00+00:00",
        }
        event = Event(
            9, kind, datetime(2027, 1, 1, tzinfo=UTC), "Ben", "ada", "a", 0, 1.0, 0.5, False, True, 1, details
        )
        assert sentence_of(event)[0].isupper() or sentence_of(event).startswith(("'", "moved house, about 'ada'"))
