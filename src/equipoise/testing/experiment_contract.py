"""Contract tests that every experiment must pass, in a store or in a service."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from equipoise import errors
from equipoise.experiment import Budget, Deadline, Decided, DefaultReward, Experiment, Precision
from equipoise.policies import Fixed, ThompsonBalance, Uniform
from equipoise.testing.description_contract import Descriptions
from equipoise.testing.past_contract import Past
from equipoise.testing.unit_contract import INFORMED, RANDOM, ExperimentCase, MissingRewards, Shares, Units, refused
from equipoise.testing.unit_list_contract import UnitLists


class Life(ExperimentCase):
    """Changes while an experiment runs, and the reports about them."""

    def test_enrolment_can_pause_resume_stop_and_the_experiment_finish(self) -> None:
        """Assigned units keep their arms, and rewards are accepted until the experiment is finished."""
        experiment = self.create()
        experiment.ask_many(["a", "b", "c"])
        experiment.pause()
        experiment.pause()
        with refused(errors.EnrolmentClosed, "paused", "resume()"):
            experiment.ask("new")
        assert not experiment.ask("a").new
        experiment.resume()
        assert experiment.ask("new").new
        experiment.stop()
        with refused(errors.EnrolmentClosed, "stopped"):
            experiment.ask_many(["a", "newer"])
        with refused(errors.EnrolmentClosed):
            experiment.resume()
        assert experiment.tell("a", 1.0).new
        experiment.finish()
        experiment.finish()
        assert not experiment.tell("a", 1.0).new
        for change in (
            lambda: experiment.tell("b", 1.0),
            lambda: experiment.correct("a", 2.0, "misread"),
            lambda: experiment.change_weight(0.1),
            lambda: experiment.change_dial(information_kept=0.5),
            lambda: experiment.add_arm("cake"),
            lambda: experiment.pause_arm("pie"),
            experiment.resume,
            experiment.pause,
            experiment.stop,
        ):
            with refused(errors.ExperimentFinished):
                change()
        assert experiment.status().state == "finished"
        kinds = [event.kind for event in experiment.events()]
        assert [kind for kind in kinds if kind not in ("assigned", "rewarded")] == [
            "created",
            "paused",
            "resumed",
            "stopped",
            "finished",
        ]
        experiment.verify()

    def test_a_range_may_have_an_open_end(self) -> None:
        """It refuses what is beyond the other one; an infinite end is an open one."""
        for name, given, refuses in (("amounts", (0, math.inf), -0.5), ("losses", (None, 1), 1.5)):
            experiment = self.create(name, reward_range=given)
            experiment.ask("a")
            with refused(errors.InvalidInput, "reward must be in", "inf", "the declared range"):
                experiment.tell("a", refuses)
            assert experiment.tell("a", -1e6 * refuses).counted
            again = self.reopened(experiment)
            assert again.configuration.reward_range == ((0.0, None) if name == "amounts" else (None, 1.0))
            assert again.status().interval == ("low guaranteed" if name == "amounts" else "high guaranteed")
            experiment.verify()

    def test_huge_rewards_count_as_the_cap(self) -> None:
        """The log keeps them as reported, and corrections and withdrawals take out what was counted."""
        for direction in ("maximise", "minimise"):
            settings: dict[str, Any] = {"arms": ["a"], "reward_cap": 10, "direction": direction}
            experiment = self.create(direction, reward_range=(0, None), **settings)
            plain = self.create(f"plain {direction}", **settings | {"reward_cap": None})
            units = [f"unit-{number}" for number in range(6)]
            for one in (experiment, plain):
                one.ask_many(units)
            told = dict(zip(units, [1.0, 1e9, 4.0, 12.0, 10.0, 1e50], strict=True))
            experiment.tell_many(told)
            plain.tell_many({unit: min(reward, 10.0) for unit, reward in told.items()})
            assert experiment.unit("unit-1").reward == 1e9  # type: ignore[union-attr]
            for one in (experiment, self.reopened(experiment)):
                assert one.status().arms[0].mean == plain.status().arms[0].mean == 7.5
            assert [arm.std for arm in experiment.status().arms] == [arm.std for arm in plain.status().arms]
            assert experiment.status().interval == "guaranteed"
            experiment.correct("unit-1", 11.0, "misread")
            assert experiment.status().arms[0].mean == 7.5
            experiment.correct("unit-1", 3.0, "misread")
            experiment.withdraw("unit-3", "asked to")
            assert experiment.status().arms[0].mean == (1 + 3 + 4 + 10 + 10) / 5
            assert experiment.configuration.reward_cap == 10.0
            experiment.verify()

    def test_nobody_is_assigned_beyond_the_limit(self) -> None:
        """A limit is refused for new units only, within one request too; all are or none."""
        experiment = self.create(most_units=3)
        experiment.ask_many(["a", "b"])
        with refused(errors.EnrolmentClosed, "all of its 3 units"):
            experiment.ask_many(["c", "d"])
        assert experiment.ask("c").new
        with refused(errors.EnrolmentClosed, "all of its 3 units"):
            self.reopened(experiment).ask("d")
        assert not experiment.ask("a").new
        assert experiment.tell("a", 1.0).new
        assert experiment.configuration.most_units == 3
        experiment.verify()

    def test_an_experiment_made_by_mistake_can_be_deleted(self) -> None:
        """One that has rewards cannot; the name is free afterwards, and nothing is left of it."""
        experiment, other = self.create("mistake"), self.create("other")
        other.ask("a")
        other.tell("a", 1.0)
        with refused(errors.HasRewards, "'other'", "finish() closes it"):
            other.delete()
        experiment.ask("a")
        experiment.delete()
        assert [one.name for one in self.listed()] == ["other"]
        again = self.create("mistake")
        assert again.status().n_assigned == 0
        assert again.ask("a").new
        other.verify()
        again.verify()

    def test_arms_come_and_go(self) -> None:
        """No unit is assigned to a paused or retired arm; its rewards still count."""
        experiment = self.create(policy=RANDOM)
        self.play(experiment, 30)
        experiment.pause_arm("pie")
        assert "pie" not in {one.arm for one in experiment.ask_many([f"a-{i}" for i in range(20)])}
        experiment.resume_arm("pie")
        experiment.add_arm("cake", floor=0.2)
        arms = [one.arm for one in experiment.ask_many([f"b-{i}" for i in range(30)])]
        assert {"cake", "pie"} <= set(arms)
        experiment.retire_arm("line")
        assert "line" not in {one.arm for one in experiment.ask_many([f"c-{i}" for i in range(20)])}
        units = [experiment.unit(f"unit-{i}") for i in range(30)]
        waiting = next(one.unit for one in units if one and one.arm == "line" and one.reward is None)
        assert experiment.tell(waiting, 1.0).counted
        with refused(errors.InvalidInput, "retired"):
            experiment.resume_arm("line")
        with refused(errors.UnknownArm, "'tart'", "line, pie, none, cake"):
            experiment.pause_arm("tart")
        with refused(errors.InvalidInput, "already"):
            experiment.add_arm("cake")
        experiment.retire_arm("pie")
        experiment.pause_arm("cake")
        with refused(errors.InvalidInput, "last one in play"):
            experiment.retire_arm("none")
        assert [arm.state for arm in experiment.status().arms] == ["retired", "retired", "active", "paused"]
        again = self.reopened(experiment)
        assert again.ask("again").arm == "none"
        again.verify()

    def test_an_arm_that_comes_late_gets_its_share_of_those_who_come_after(self) -> None:
        """It does not get every unit until it has its share of all; nor does an arm after a pause."""
        experiment = self.create(policy=Fixed(allocation=(0.25, 0.25, 0.5)))
        experiment.pause_arm("none")
        experiment.ask_many([f"a-{i}" for i in range(400)])
        experiment.resume_arm("none")
        shares = [one.arm for one in experiment.ask_many([f"b-{i}" for i in range(200)])]
        assert [shares.count(arm) for arm in ("line", "pie", "none")] == [50, 50, 100]
        again = self.reopened(experiment)
        shares = [one.arm for one in again.ask_many([f"c-{i}" for i in range(200)])]
        assert [shares.count(arm) for arm in ("line", "pie", "none")] == [50, 50, 100]
        again.pause_arm("pie")
        again.retire_arm("pie")  # the arms in play do not change: tracking goes on
        again.ask("d")
        again.verify()

    def test_arms_of_a_policy_with_parameters_per_arm(self) -> None:
        """A paused arm's share goes to the others; an arm without a parameter of the policy is refused."""
        experiment = self.create(policy=Fixed(allocation=(0.5, 0.25, 0.25), tracking="sample"))
        experiment.pause_arm("line")
        assert experiment.ask("a").probability == 0.5
        with refused(errors.InvalidInput):
            experiment.add_arm("cake")
        experiment.resume_arm("line")
        experiment.ask("b")
        experiment.verify()

    def test_the_weight_can_change_and_the_log_says_when(self) -> None:
        """Past decisions replay with the weight of their time."""
        experiment = self.create()
        self.play(experiment, 40)
        before = experiment.status().arms
        experiment.change_weight(0.99)
        experiment.change_weight(0.99)
        assert experiment.configuration.reward_weight == 0.99
        assert [arm.target_share for arm in experiment.status().arms] != [arm.target_share for arm in before]
        self.play(experiment, 20, first=40, seed=2)
        [event] = [event for event in experiment.events() if event.kind == "weight_changed"]
        assert event.details == {"reward_weight": 0.99, "was": 0.6}
        experiment.verify()
        self.reopened(experiment).ask("again")
        experiment.verify()
        with refused(errors.InvalidInput):
            experiment.change_weight(1.5)
        with refused(errors.InvalidInput, "no reward_weight"):
            self.create("other", policy=Uniform()).change_weight(0.5)

    def test_every_change_can_have_a_reason_and_the_log_keeps_it(self) -> None:
        """A change that changes nothing is not logged; a reason must be text."""
        experiment = self.create()
        experiment.ask("a")
        changes: list[tuple[str, Any]] = [
            ("paused", lambda reason: experiment.pause(reason=reason)),
            ("resumed", lambda reason: experiment.resume(reason=reason)),
            ("arm_added", lambda reason: experiment.add_arm("cake", floor=0.1, reason=reason)),
            ("arm_paused", lambda reason: experiment.pause_arm("cake", reason=reason)),
            ("arm_resumed", lambda reason: experiment.resume_arm("cake", reason=reason)),
            ("arm_retired", lambda reason: experiment.retire_arm("cake", reason=reason)),
            ("weight_changed", lambda reason: experiment.change_weight(0.7, reason=reason)),
            ("dial_changed", lambda reason: experiment.change_dial(information_kept=0.7, reason=reason)),
            ("stopped", lambda reason: experiment.stop(reason=reason)),
            ("finished", lambda reason: experiment.finish(reason=reason)),
        ]
        for kind, change in changes:
            for wrong in ("", 5, "x" * 2_001):
                with refused(errors.InvalidInput, "reason"):
                    change(wrong)
            change(f"why it was {kind}")
            if kind != "finished":
                change("a repeat changes nothing")
        logged = [(event.kind, event.details["reason"]) for event in experiment.events() if "reason" in event.details]
        assert logged == [(kind, f"why it was {kind}") for kind, _ in changes]
        experiment.verify()
        assert self.reopened(experiment).configuration == experiment.configuration

    def test_a_change_can_expect_that_nothing_was_changed_meanwhile(self) -> None:
        """It is refused with who changed what; notes and people do not count, nor does a repeat of the change."""
        experiment = self.create()
        experiment.change_weight(0.7, expected_change=1, reason="pie is ahead")
        experiment.change_weight(0.7, expected_change=1)  # as after a lost answer
        experiment.note("all is well")
        experiment.ask_many(["a", "b"])
        changes: list[Any] = [
            lambda known: experiment.pause(expected_change=known),
            lambda known: experiment.stop(expected_change=known),
            lambda known: experiment.finish(expected_change=known),
            lambda known: experiment.add_arm("cake", expected_change=known),
            lambda known: experiment.pause_arm("pie", expected_change=known),
            lambda known: experiment.retire_arm("pie", expected_change=known),
            lambda known: experiment.change_weight(0.8, expected_change=known),
            lambda known: experiment.change_dial(information_kept=0.8, expected_change=known),
        ]
        words = (f"since event 1: {self.author} set the weight to 0.7 (was 0.6): 'pie is ahead' (event 2", "changes")
        for change in changes:
            with refused(errors.StaleChange, *words) as caught:
                change(1)
            assert getattr(caught[0], "event", None) == 2
            with refused(errors.InvalidInput, "expected_change"):
                change(-1)
        assert experiment.status().n_events == 5
        experiment.pause(expected_change=2)
        with refused(errors.StaleChange, "paused enrolment"):
            experiment.resume(expected_change=5)
        experiment.resume(expected_change=experiment.status().n_events)
        experiment.verify()

    def test_notes_and_decisions_stand_in_the_log(self) -> None:
        """Also of a finished experiment; they change nothing, and a repeat at once is a retry."""
        experiment = self.create()
        self.play(experiment, 10)
        before = experiment.status()
        for _ in range(2):
            experiment.note("the teacher was ill\non Monday")
        experiment.note("we take 'pie'", "decision")
        experiment.note("the teacher was ill\non Monday")
        experiment.ask("later")
        experiment.finish()
        experiment.note("a note on the end")
        experiment.note("a note on the end", "decision")
        noted = [event for event in experiment.events() if event.kind == "noted"]
        monday = {"text": "the teacher was ill\non Monday", "kind": "note"}
        assert [event.details for event in noted] == [
            monday,
            {"text": "we take 'pie'", "kind": "decision"},
            monday,
            {"text": "a note on the end", "kind": "note"},
            {"text": "a note on the end", "kind": "decision"},
        ]
        assert {event.who for event in noted} == {self.author}
        assert [arm.mean for arm in experiment.status().arms] == [arm.mean for arm in before.arms]
        wrong: list[tuple[Any, Any, str]] = [
            ("", "note", "text"),
            (" ", "note", "text"),
            ("a\x00b", "note", "text"),
            ("x" * 5_001, "note", "text"),
            (5, "note", "text"),
            ("fine", "wish", "kind"),
        ]
        for text, kind, word in wrong:
            with refused(errors.InvalidInput, word):
                experiment.note(text, kind)
        experiment.verify()

    def test_the_log_can_be_read_from_its_end_and_by_kind(self) -> None:
        """Page by page, with nothing twice and nothing left out; changes by themselves."""
        experiment = self.create()
        self.play(experiment, 20)
        experiment.pause(reason="a holiday")
        experiment.resume()
        self.play(experiment, 20, first=20, seed=2)
        experiment.correct(next(e.unit for e in experiment.events() if e.kind == "rewarded") or "", 0.25, "misread")
        experiment.note("half of the term is over")
        log = list(experiment.events())
        assert list(experiment.events(newest_first=True)) == log[::-1]
        assert list(experiment.events(5, before=30)) == log[5:29]
        assert list(experiment.events(5, before=30, newest_first=True)) == log[28:4:-1]
        assert experiment.events_page(3, 4, newest_first=True) == log[:-5:-1]
        for kinds in (["corrected"], ["rewarded", "noted"], ["paused", "resumed"], ["stopped"]):
            chosen = [event for event in log if event.kind in kinds]
            assert list(experiment.events(kinds=kinds)) == chosen
            assert list(experiment.events(kinds=kinds, newest_first=True)) == chosen[::-1]
            assert experiment.events_page(0, 1, kinds=kinds) == chosen[:1]
            assert experiment.changes(kinds=kinds) == [event for event in chosen[::-1] if event.unit is None]
        changes = [event for event in log[::-1] if event.unit is None]
        assert [event.kind for event in changes] == ["noted", "resumed", "paused", "created"]
        assert experiment.changes() == changes
        assert experiment.changes(1) == changes[:1]
        assert experiment.changes(2, before=changes[0].number) == changes[1:3]
        assert experiment.events_page(0, 5, before=1) == experiment.events_page(len(log), 5) == []
        with refused(errors.InvalidInput, "kinds", "'nonsense'", "corrected"):
            experiment.changes(kinds=["nonsense"])
        with refused(errors.InvalidInput, "kinds must be a list"):
            experiment.events_page(0, 1, kinds="noted")
        with refused(errors.InvalidInput, "before"):
            experiment.events_page(0, 1, before=0)

    def test_a_weight_that_was_solved_for_is_logged_with_its_decision(self) -> None:
        """It moves with the estimates; forced decisions need none, nor do those of a stated weight."""
        experiment = self.create(policy=INFORMED)
        self.play(experiment, 60)
        experiment.ask_many([f"later-{i}" for i in range(5)])
        assigned = [event for event in experiment.events() if event.kind == "assigned"]
        assert [event.reward_weight is None for event in assigned] == [event.forced for event in assigned]
        weights = {event.reward_weight for event in assigned} - {None}
        assert len(weights) > 10
        assert all(weight is not None and 0 <= weight <= 1 for weight in weights)
        file = io.StringIO()
        experiment.export(file, "jsonl")
        rows = [json.loads(line) for line in file.getvalue().splitlines()]
        assert [row["reward_weight"] for row in rows] == [event.reward_weight for event in assigned]
        experiment.verify()
        self.reopened(experiment).verify()
        other = self.create("stated")
        self.play(other, 20)
        assert {event.reward_weight for event in other.events()} == {None}

    def test_the_dial_can_be_set_in_any_way_and_the_log_says_when(self) -> None:
        """From a weight to information and back; past decisions replay with the dial of their time."""
        experiment = self.create()
        self.play(experiment, 30)
        experiment.change_dial(information_kept=0.5, information_about="best-arm", smallest_difference=0.1)
        self.play(experiment, 10, first=30, seed=2)
        experiment.change_dial(information_kept=0.7)  # about the same thing as before
        experiment.change_dial(information_kept=0.7)
        assert experiment.status().information_about == "best-arm"
        self.play(experiment, 10, first=40, seed=3)
        experiment.change_dial(information_kept=0.7, information_about="average")
        self.play(experiment, 10, first=50, seed=4)
        experiment.change_weight(0.9)
        self.play(experiment, 10, first=60, seed=5)
        experiment.change_dial(reward_weight=0.8)
        experiment.change_dial(reward_weight=0.8)
        best = {"information_about": "best-arm", "smallest_difference": 0.1}
        steps: list[dict[str, Any]] = [
            {"reward_weight": 0.6},
            {"information_kept": 0.5} | best,
            {"information_kept": 0.7} | best,
            {"information_kept": 0.7, "information_about": "average"},
            {"reward_weight": 0.9},
        ]
        events = [event for event in experiment.events() if event.kind in ("weight_changed", "dial_changed")]
        assert [(event.details["was"], event.details["dial"]) for event in events[:-1]] == list(pairwise(steps))
        assert (events[-1].kind, events[-1].details) == ("weight_changed", {"reward_weight": 0.8, "was": 0.9})
        assert experiment.configuration.dial == {"reward_weight": 0.8}
        experiment.verify()
        again = self.reopened(experiment)
        self.play(again, 5, first=70, seed=6)
        again.verify()

    def test_a_dial_that_cannot_be_set_is_refused(self) -> None:
        """The message says what was expected; nothing is written."""
        experiment = self.create()
        wrong: list[tuple[dict[str, Any], tuple[str, ...]]] = [
            ({}, ("reward_weight or information_kept", "neither")),
            ({"reward_weight": 0.5, "information_kept": 0.7}, ("reward_weight or information_kept", "0.5 and 0.7")),
            ({"information_kept": 0}, ("information_kept", "got 0")),
            ({"information_kept": 1.1}, ("information_kept", "got 1.1")),
            ({"information_kept": "most"}, ("information_kept", "'most'")),
            ({"information_kept": 0.5, "information_about": "all"}, ("information_about", "every-arm", "'all'")),
            ({"information_kept": 0.5, "smallest_difference": 0.1}, ("smallest_difference", "best-arm")),
            ({"reward_weight": 0.5, "information_about": "every-arm"}, ("information_about", "information_kept")),
            ({"half_width": 0.1}, ("units is missing",)),
            ({"half_width": 0.1, "units": 100, "reward_weight": 0.5}, ("half_width must be left out", "reward_weight")),
            ({"half_width": 0.1, "units": 100, "information_about": "best-arm"}, ("every-arm, average", "best-arm")),
        ]
        for dial, words in wrong:
            with refused(errors.InvalidInput, *words):
                experiment.change_dial(**dial)
            with refused(errors.InvalidInput, *words):
                experiment.what_if(**dial)
            with refused(errors.InvalidInput, *words):
                self.create("never", policy=None, **dial)
        with refused(errors.InvalidInput, "give a policy or information_kept"):
            self.create("never", information_kept=0.7)
        with refused(errors.TooFewRewards):
            experiment.change_dial(half_width=0.1, units=100)
        assert experiment.status().n_events == 1
        assert len(self.listed()) == 1
        for policy in (Uniform(), ThompsonBalance(reward_weight=0.5)):
            other = self.create(type(policy).__name__, policy=policy)
            with refused(errors.InvalidInput, "has no information_kept that could be changed"):
                other.change_dial(information_kept=0.5)
        other.change_dial(reward_weight=0.7)
        assert other.configuration.reward_weight == 0.7

    def test_a_goal_becomes_the_information_that_it_takes(self) -> None:
        """At first by the widest spreads that the range allows, later by the estimates; or it is refused."""
        goal: dict[str, Any] = {"half_width": 0.05, "units": 1200}
        wide: dict[str, Any] = {"policy": None, "reward_range": (0, 1)}
        experiment = self.create(**wide, **goal)
        # 1.96^2 * 3 * 0.25 / (1200 * 0.05^2)
        assert math.isclose(experiment.configuration.dial["information_kept"], 0.960365, rel_tol=1e-5)
        assert experiment.configuration.dial["information_about"] == "every-arm"
        with refused(errors.GoalOutOfReach, "half_width must be at least 0.0537", "1,000 units", "1,153 units"):
            self.create("never", **wide, half_width=0.05, units=1000)
        with refused(errors.InvalidInput, "half_width needs the range of rewards", "reward_range"):
            self.create("never", policy=None, **goal)
        with refused(errors.InvalidInput, "half_width needs both ends of the range of rewards", "reward_range"):
            self.create("never", policy=None, reward_range=(0, None), **goal)
        capped = self.create("capped", policy=None, reward_range=(0, None), reward_cap=1, **goal)
        assert capped.configuration.dial == experiment.configuration.dial
        for number in range(60):
            experiment.tell(experiment.ask(f"unit-{number}").unit, 0.4 + 0.1 * (number % 3))
        std = [arm.std or 0.0 for arm in experiment.status().arms]
        with refused(errors.GoalOutOfReach, "half_width must be at least"):
            experiment.change_dial(half_width=0.001, units=1200)
        with refused(errors.InvalidInput, "units must be at least 60, the units so far"):
            experiment.change_dial(half_width=0.05, units=59)
        tried = experiment.what_if(half_width=0.02, units=300)
        experiment.change_dial(half_width=0.02, units=300)
        kept = 1.959964**2 * math.fsum(one**2 for one in std) / (300 * 0.02**2)
        assert math.isclose(experiment.configuration.dial["information_kept"], kept, rel_tol=1e-5)
        assert tried.dial == experiment.configuration.dial
        last = list(experiment.events())[-1]
        assert (last.kind, last.details["goal"]) == ("dial_changed", {"half_width": 0.02, "units": 300})
        experiment.verify()

    def test_the_status_shows_the_dial(self) -> None:
        """A weight as stated, or as it is solved for to keep the information about the average."""
        experiment = self.create(policy=INFORMED)
        status = experiment.status()
        assert (status.reward_weight, status.information_kept, status.information_about) == (None, 0.6, "average")
        self.play(experiment, 60)
        weight = experiment.status().reward_weight
        experiment.ask("next")
        assert list(experiment.events())[-1].reward_weight == weight is not None
        experiment.change_dial(information_kept=0.6, information_about="every-arm")
        status = experiment.status()
        assert (status.reward_weight, status.information_kept, status.information_about) == (None, 0.6, "every-arm")
        experiment.change_weight(0.3)
        status = experiment.status()
        assert (status.reward_weight, status.information_kept, status.information_about) == (0.3, None, None)

    def test_an_outlook_says_when_rules_will_be_met(self) -> None:
        """Further people follow from the rules; dates follow from the pace, which takes an hour to be known."""
        rules = [Budget(units=200), Deadline(at="2100-01-01T00:00Z"), Precision(half_width=0.2), Decided()]
        experiment = self.create(stopping=rules, reward_range=(-50, 50))
        budget, deadline, precision, decided = experiment.outlook().rules
        assert (budget.people, budget.met, budget.expected_at) == (200, False, None)
        assert (deadline.expected_at, deadline.reason) == (datetime(2100, 1, 1, tzinfo=UTC), "")
        assert (precision.people, precision.reason) == (None, "there are too few rewards yet")
        assert decided.reason == "it depends on how different the arms turn out to be"
        self.play(experiment, 90)
        found, status = experiment.outlook(), experiment.status()
        assert (found.name, found.n_events) == (status.name, status.n_events)
        assert [one.goal for one in found.rules] == [one.goal for one in status.stopping]
        assert found.rules[0].people == 110
        assert (found.rules[2].people or 0) > 0
        if found.people_per_day is not None:
            assert math.isclose(found.rules[0].days or 0, 110 / found.people_per_day)
        json.dumps(found.to_dict(), allow_nan=False)
        experiment.stop()
        assert experiment.outlook().people_per_day is None
        assert experiment.outlook().rules[0].reason == "nobody is enrolled now"

    def test_every_position_of_the_dial_has_a_price(self) -> None:
        """The present one is among them; more for people costs more people, and what is missing is said before."""
        experiment = self.create()
        assert experiment.prices().needs.startswith("needs 4 rewards of each arm")
        assert experiment.prices().positions == ()
        self.play(experiment, 90)
        prices = experiment.prices(people_per_day=30)
        assert prices.needs == ""
        assert prices.present is not None
        here = prices.positions[prices.present]
        assert here.dial == experiment.configuration.dial
        assert (here.gain.low, here.gain.per_100, here.gain.high, here.people_ratio) == (0.0, 0.0, 0.0, 1.0)
        other = experiment.what_if(**here.dial)
        assert all(map(math.isclose, here.shares, (other.allocation[arm] for arm in prices.arms)))
        best = prices.arms.index(str(prices.best))
        shares = [one.shares[best] for one in prices.positions]
        assert shares == sorted(shares)
        assert len(shares) > 10
        assert all(sum(one.next_100) == 100 for one in prices.positions)
        assert all(one.gain.low <= one.gain.per_100 <= one.gain.high for one in prices.positions)
        last = prices.positions[-1]
        assert last.gain.per_100 > 0
        assert (last.people_ratio or math.inf) > 1
        for preset in prices.presets:
            assert 0 <= preset.position < len(shares)
        with refused(errors.InvalidInput, "people_per_day"):
            experiment.prices(people_per_day=0)
        fixed = self.create("fixed", policy=Uniform())
        with refused(errors.InvalidInput, "Uniform has no dial"):
            fixed.prices()

    def test_another_dial_can_be_tried_out(self) -> None:
        """Less information means more reward, at a price in units that is shown."""
        experiment = self.create(policy=INFORMED)
        with refused(errors.TooFewRewards):
            experiment.what_if(information_kept=0.3)
        self.play(experiment, 90)
        before = experiment.status().n_events
        for about in ("average", "every-arm", "best-arm"):
            more, less = (experiment.what_if(information_kept=kept, information_about=about) for kept in (0.9, 0.3))
            assert more.information[about] > less.information[about]
            if about == "average":  # about single arms, a policy allows for the noise of its estimates
                assert math.isclose(more.information[about], 0.9, rel_tol=1e-6)
                assert math.isclose(less.information[about], 0.3, rel_tol=1e-6)
            assert less.reward > more.reward
            assert less.dial == {"information_kept": 0.3, "information_about": about}
            assert (less.reward_weight is None) == (about != "average")
        assert math.isclose(less.present_information["average"], 0.6, rel_tol=1e-6)
        assert less.present_dial == {"information_kept": 0.6, "information_about": "average"}
        stated = experiment.what_if(less.present_weight)
        assert stated.dial == {"reward_weight": less.present_weight}
        assert all(
            math.isclose(share, stated.present_allocation[arm], rel_tol=1e-6)
            for arm, share in stated.allocation.items()
        )
        best = experiment.what_if(information_kept=1.0)
        assert math.isclose(best.information["average"], 1.0, rel_tol=1e-9)
        assert experiment.status().n_events == before

    def test_another_weight_can_be_tried_out(self) -> None:
        """More weight on reward means more reward and more error."""
        experiment = self.create()
        with refused(errors.TooFewRewards):
            experiment.what_if(0.9)
        self.play(experiment, 60)
        other = experiment.what_if(0.95)
        assert other.present_weight == 0.6
        assert math.isclose(sum(other.allocation.values()), 1)
        assert other.reward_change >= 0
        assert other.error_ratio >= 1
        shown = {arm.arm: arm.target_share for arm in experiment.status().arms}
        assert other.present_allocation == shown
        assert experiment.configuration.reward_weight == 0.6

    def test_stopping_rules_are_reported_and_never_applied(self) -> None:
        """Each reports its progress and whether it is met."""
        rules = [Budget(units=4), Deadline(at=self.clock.now + timedelta(hours=1)), Precision(half_width=0.45)]
        experiment = self.create(stopping=rules, reward_range=(0, 1), policy=Uniform())
        assert [rule.met for rule in experiment.status().stopping] == [False] * 3
        experiment.ask_many([f"unit-{i}" for i in range(120)])
        assert [rule.met for rule in experiment.status().stopping] == [True, False, False]
        self.clock.advance(3601)
        experiment.tell_many({f"unit-{i}": 0.5 for i in range(120)})
        status = experiment.status()
        assert [(rule.rule, rule.met) for rule in status.stopping] == [
            ("budget", True),
            ("deadline", True),
            ("precision", True),
        ]
        assert (status.state, status.interval, status.confidence) == ("enrolling", "guaranteed", 0.95)
        assert experiment.ask("more").new


class Reports(ExperimentCase):
    """Status, log, history and export."""

    def test_status_export_and_log_agree(self) -> None:
        """The screen and the files show the same totals."""
        experiment = self.create(policy=RANDOM, metadata={"school": "Müller"})
        self.play(experiment, 60)
        experiment.correct(next(e.unit for e in experiment.events() if e.kind == "rewarded") or "", 9.0, "misread")
        self.compare_export(experiment)
        status = experiment.status()
        assert status.n_assigned == 60 == sum(arm.assigned for arm in status.arms)
        assert math.isclose(sum(arm.actual_share or 0 for arm in status.arms), 1)
        json.dumps(status.to_dict(), allow_nan=False)
        assert experiment.configuration.metadata == {"school": "Müller"}
        timeline = experiment.timeline(every="hour", since=status.created_at)
        assert timeline.assigned_so_far[-1].tolist() == [arm.assigned for arm in status.arms]
        assert timeline.counted_so_far[-1].tolist() == [arm.rewarded for arm in status.arms]
        assert np.allclose(timeline.mean[-1], [arm.mean or 0 for arm in status.arms], rtol=1e-12)
        assert np.allclose(timeline.share_wanted[-1], [arm.target_share or 0 for arm in status.arms], rtol=1e-9)
        ends = [[end if end is not None else math.nan for end in (arm.low, arm.high)] for arm in status.arms]
        corrected = timeline.corrected.sum(axis=0) > 0
        for found, end in ((timeline.low[-1], 0), (timeline.high[-1], 1)):
            expected = np.array([pair[end] for pair in ends])
            assert np.allclose(found[~corrected], expected[~corrected], rtol=1e-6, equal_nan=True)
        assert (timeline.event, len(timeline.start)) == (status.n_events, len(timeline.assigned))
        history = experiment.history(points=7)
        assert history.number[-1] == status.n_events
        assert len(history.number) <= 7
        assert history.assigned[-1].tolist() == [arm.assigned for arm in status.arms]
        assert history.rewarded[-1].tolist() == [arm.rewarded for arm in status.arms]
        assert np.allclose(history.mean[-1], [arm.mean or 0 for arm in status.arms], rtol=1e-12)
        assert np.allclose(history.std[-1], [arm.std or 0 for arm in status.arms], rtol=1e-9)
        assert math.isclose(float(history.average_reward[-1]), status.average_reward or 0, rel_tol=1e-12)

    def test_the_log_can_be_read_from_anywhere(self) -> None:
        """Events are numbered from 1 without a gap."""
        experiment = self.create()
        experiment.ask_many([f"unit-{i}" for i in range(1500)])
        numbers = [event.number for event in experiment.events()]
        assert numbers == list(range(1, 1502))
        assert [event.number for event in experiment.events(after=1499)] == [1500, 1501]
        first = next(experiment.events())
        assert (first.kind, first.who, first.at) == ("created", self.author, experiment.status().created_at)
        assert first.details["arms"][0] == {"name": "line", "floor": 0.0}
        json.dumps(first.to_dict())

    def test_experiments_are_found_by_name(self) -> None:
        """A name is unique; an unknown one is an error."""
        self.create("one")
        self.create("two", arms=["x"])
        assert [(one.name, one.n_arms) for one in self.listed()] == [("one", 3), ("two", 1)]
        with refused(errors.ExperimentExists, "'one'"):
            self.create("one")
        with refused(errors.UnknownExperiment, "'three'"):
            self.find("three").ask("a")  # a service raises only now
        assert self.find("two").ask("a").arm == "x"

    def test_the_history_is_what_the_log_says_at_each_point(self) -> None:
        """Counts, means and spreads at evenly spaced events, without replaced rewards."""
        experiment = self.create(policy=RANDOM, missing=DefaultReward(value=5.0, window_seconds=100))
        self.play(experiment, 40)
        self.clock.advance(101)
        experiment.settle()
        late = experiment.unit("unit-0") or experiment.unit("unit-1")
        for number in range(40):
            unit = experiment.unit(f"unit-{number}")
            if unit is not None and unit.state == "defaulted" and unit.reward is None:
                experiment.tell(unit.unit, 1.5)
        assert late is not None
        experiment.correct(late.unit, 2.5, "misread")
        events = list(experiment.events())
        for points in (1, 7, len(events), 1000):
            history = experiment.history(points)
            step = -(-len(events) // min(points, len(events)))
            assert history.number.tolist() == [min(n, len(events)) for n in range(step, len(events) + step, step)]
            for place, number in enumerate(history.number.tolist()):
                assert history.at[place] == events[number - 1].at
                for arm, name in enumerate(history.arms):
                    mine = [event for event in events[:number] if event.arm == name]
                    rewards = [event.reward for event in mine if event.counted and event.reward is not None]
                    for event in mine:
                        if event.replaced is not None:
                            rewards.remove(event.replaced)
                    assert history.assigned[place, arm] == sum(event.kind == "assigned" for event in mine)
                    assert history.rewarded[place, arm] == len(rewards)
                    mean = np.mean(rewards) if rewards else math.nan
                    std = np.std(rewards, ddof=1) if len(rewards) > 1 else math.nan
                    np.testing.assert_allclose(history.mean[place, arm], mean, rtol=1e-9)
                    np.testing.assert_allclose(history.std[place, arm], std, rtol=1e-9, atol=1e-9)


class Outside(ExperimentCase):
    """Any input from outside either works correctly or raises a clear error."""

    def test_any_text_is_a_name(self) -> None:
        """Names and units are kept unchanged, in any script; SQL in them is just text."""
        texts = [
            "élève",
            "学生",
            "👩🏽‍🚀",
            "e\u0301",
            "é",
            "'; DROP TABLE events; --",
            '"x"',
            "%s ? :a",
            "a b\u2028c",
            "...",
            "a/b?c#d%2F",
            "a" * 200,
        ]
        experiment = self.create("'; DROP TABLE experiments; --", arms=texts, policy=Uniform())
        assigned = experiment.ask_many(texts)
        assert [one.arm for one in assigned] == texts
        assert [experiment.assignment(text).unit for text in texts] == texts  # type: ignore[union-attr]
        experiment.tell_many(dict.fromkeys(texts, 1.0))
        experiment.ask("x" * 500)
        experiment.ask("y", {"text": "\0 né", "nested": [1, {"a": None}]})
        again = self.reopened(experiment)
        assert [arm.arm for arm in again.status().arms] == texts
        assert list(again.events())[-1].details["attributes"]["text"] == "\0 né"
        again.verify()
        self.compare_export(again)

    def test_what_is_no_text_or_too_much_is_refused(self) -> None:
        """The message does not repeat a megabyte."""
        experiment = self.create()
        for text in (
            "",
            " ",
            "a ",
            "\u2028a",
            "a\0b",
            "a\nb",
            "\x1b[31m",
            "\ud800",
            "a" * 501,
            "a" * 10**6,
            42,
            None,
            b"a",
            ["a"],
        ):
            for attempt in (
                lambda text=text: experiment.ask(text),
                lambda text=text: experiment.tell(text, 1.0),
                lambda text=text: experiment.add_arm(text),
                lambda text=text: self.create(text),
                lambda text=text: self.create("never", arms=["a", text]),
                lambda text=text: self.find(text),
            ):
                with refused(errors.InvalidInput) as refusal:
                    attempt()
                assert len(str(refusal[0])) < 300
        deep: dict[str, Any] = {}
        for _ in range(100):
            deep = {"a": deep}
        for attributes in ("text", {1: 2}, {"a": math.nan}, {"a": object()}, {"a": "x" * 10_001}, deep):
            with refused(errors.InvalidInput, "attributes"):
                experiment.ask("unit", attributes)  # type: ignore[arg-type]
        for units in ("abc", 5):
            with refused(errors.InvalidInput, "units must be a list"):
                experiment.ask_many(units)  # type: ignore[arg-type]
        assert experiment.status().n_events == 1

    def test_settings_that_make_no_sense_are_refused(self) -> None:
        """They are refused before anything is written."""
        nonsense: list[dict[str, Any]] = [
            {"arms": []},
            {"arms": ["a", "a"]},
            {"arms": "ab"},
            {"policy": "ForcingBalance"},
            {"policy": Fixed(allocation=(0.5, 0.5))},
            {"seed": -1},
            {"warm_up": 1.5},
            {"most_units": 0},
            {"reward_range": (1, 0)},
            {"reward_range": 3},
            {"reward_range": (None, None)},
            {"reward_range": (-math.inf, math.inf)},
            {"reward_range": (math.inf, None)},
            {"reward_range": (0, math.nan)},
            {"reward_cap": math.inf},
            {"reward_cap": "7"},
            {"reward_cap": 0, "reward_range": (0, 1)},
            {"missing": DefaultReward(value=5, window_seconds=1), "reward_cap": 4},
            {"missing": DefaultReward(value=-5, window_seconds=1), "reward_range": (0, None)},
            {"direction": "up"},
            {"missing": "drop"},
            {"missing": DefaultReward(value=5, window_seconds=1), "reward_range": (0, 1)},
            {"stopping": ["budget"]},
            {"failure_probability": 0},
            {"covariates": "age"},
            {"covariates": ["age", "age"]},
            {"metadata": {"a": math.inf}},
        ]
        for settings in nonsense:
            with refused(errors.InvalidInput):
                self.create("never", **settings)
        assert self.listed() == []


class Findings(ExperimentCase):
    """What an experiment found: comparisons and reports, which only read."""

    MEANS: ClassVar[dict[str, float]] = {"line": 0.2, "pie": 0.8, "none": 0.75}

    def found(self, **settings: Any) -> Experiment:
        """Return an experiment in which 'pie' and 'none' are much better than 'line'."""
        chosen = {"policy": RANDOM, "reward_range": (0, 1), "covariates": ["age"], **settings}
        experiment, rng = self.create(**chosen), np.random.default_rng(1)
        for start in range(0, 300, 100):
            units = {
                f"unit-{i}": {"age": i % 7, "class": "4b" if i % 2 else "4a, west"} for i in range(start, start + 100)
            }
            arms = {one.unit: one.arm for one in experiment.ask_many(units)}
            experiment.tell_many({unit: float(rng.random() < self.MEANS[arm]) for unit, arm in arms.items()})
        return experiment

    def test_a_comparison_says_which_arms_differ(self) -> None:
        """Of all pairs, with a control, or of one pair; with intervals that agree with the status."""
        experiment = self.found()
        status, compared = experiment.status(), experiment.compare()
        for one, same in zip(compared.arms, status.arms, strict=True):
            assert (one.arm, one.mean, one.rewarded) == (same.arm, same.mean, same.rewarded)
            assert math.isclose(one.low or 0, same.low or 0, rel_tol=1e-9)
            assert math.isclose(one.high or 0, same.high or 0, rel_tol=1e-9)
        assert compared.may_be_best == status.may_be_best == ("pie", "none")
        assert (compared.compared, compared.control, compared.best) == ("all", None, None)
        assert {pair.verdict for pair in compared.differences if "line" in (pair.arm, pair.other)} <= {
            "better",
            "worse",
        }
        against = experiment.compare(control="line", confidence=0.9)
        assert [(pair.arm, pair.other, pair.verdict) for pair in against.differences] == [
            ("pie", "line", "better"),
            ("none", "line", "better"),
        ]
        assert (against.compared, against.control, against.confidence) == ("control", "line", 0.9)
        assert against.better_than_control == ("pie", "none")
        [pair] = experiment.compare(arm="none", other="pie").differences
        [sure] = experiment.compare(arm="none", other="pie", guaranteed=True).differences
        assert (sure.interval, sure.difference) == ("guaranteed", pair.difference)
        assert None not in (pair.low, pair.high, sure.low, sure.high)
        assert (sure.high or 0) - (sure.low or 0) > (pair.high or 0) - (pair.low or 0)

    def test_the_declared_control_is_compared_with_unless_all_pairs_are_wanted(self) -> None:
        """As by `create`."""
        experiment = self.found(control="line")
        assert [pair.other for pair in experiment.compare().differences] == ["line", "line"]
        assert len(experiment.compare(all_pairs=True).differences) == 3
        assert experiment.report().comparison.control == "line"

    def test_a_report_has_everything_and_changes_nothing(self) -> None:
        """Adjusted for what was declared, by what is asked for; the log is as before."""
        experiment = self.found()
        before = experiment.status()
        report = experiment.report(by=["class"])
        assert (report.n_decisions, report.n_rewarded, report.name) == (300, 300, experiment.name)
        assert dataclasses.replace(report.comparison, at=None) == dataclasses.replace(experiment.compare(), at=None)
        assert report.adjusted is not None
        assert report.adjusted.columns == ("age",)
        assert report.subgroups == ()  # not declared, so it is exploratory
        assert {one.attribute for one in report.explored} == {"class"}
        assert not any(check.speaks for check in report.checks)
        assert report.at_end.refused
        assert report.same_people is not None
        assert report.same_people.basis == "probabilities"
        assert experiment.report(adjust=[]).adjusted is None
        assert experiment.status().n_events == before.n_events
        assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["n_decisions"] == 300
        experiment.verify()

    def test_before_there_are_rewards_nothing_is_claimed(self) -> None:
        """Neither of no units nor of units without rewards."""
        experiment = self.create(reward_range=(0, 1))
        for _ in range(2):
            report, compared = experiment.report(), experiment.compare()
            assert compared.sentences == ("There are no rewards yet.",)
            assert report.sentences[0] == "There are no rewards yet."
            assert compared.may_be_best == ("line", "pie", "none")
            assert {pair.verdict for pair in compared.differences} == {"undecided"}
            assert str(report)
            experiment.ask_many(["a", "b", "c", "d"])

    def test_what_cannot_be_compared_or_reported_is_refused(self) -> None:
        """With what was expected."""
        experiment = self.create()
        wrong: list[tuple[dict[str, Any], tuple[str, ...]]] = [
            ({"control": "cake"}, ("control must be one of the arms", "line, pie, none", "'cake'")),
            ({"confidence": 1.0}, ("confidence", "1.0")),
            ({"confidence": 0.0}, ("confidence", "0.0")),
        ]
        for settings, words in wrong:
            for verb in (experiment.compare, experiment.report):
                with refused(errors.InvalidInput, *words):
                    verb(**settings)
        pairs: list[tuple[dict[str, Any], tuple[str, ...]]] = [
            ({"arm": "pie"}, ("other must be given too",)),
            ({"other": "pie"}, ("arm must be given too",)),
            ({"arm": "pie", "other": "pie"}, ("other must be given too", "'pie'")),
            ({"arm": "cake", "other": "pie"}, ("arm must be one of the arms", "'cake'")),
            ({"arm": "pie", "other": "cake"}, ("other must be one of the arms", "'cake'")),
            ({"arm": "pie", "other": "line", "control": "none"}, ("arm must be left out",)),
            ({"all_pairs": True, "control": "none"}, ("control must be left out",)),
        ]
        for settings, words in pairs:
            with refused(errors.InvalidInput, *words):
                experiment.compare(**settings)
        attributes: list[tuple[dict[str, Any], str]] = [
            ({"adjust": "age"}, "adjust must be a list"),
            ({"by": "age"}, "by must be a list"),
            ({"adjust": ["age", "age"]}, "adjust must have different names"),
            ({"by": ["age", "age"]}, "by must have different names"),
        ]
        for settings, word in attributes:
            with refused(errors.InvalidInput, word):
                experiment.report(**settings)
        experiment.ask("ada", {"age": 9})
        experiment.ask("bob", {"age": "ten"})
        with refused(errors.InvalidInput, "no unit", "'school'"):
            experiment.report(adjust=["school"])
        with refused(errors.InvalidInput, "'age' must be of one type", "'ada'", "'bob'"):
            experiment.report(by=["age"])


class ExperimentContract(
    Units, UnitLists, MissingRewards, Shares, Life, Descriptions, Past, Reports, Findings, Outside
):
    """All contract tests for an experiment, in a store or in a service."""
