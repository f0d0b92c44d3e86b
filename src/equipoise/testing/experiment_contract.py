"""What may change while an experiment runs, and what is reported."""

from __future__ import annotations

import json
import math
from datetime import timedelta

import numpy as np

from equipoise import errors
from equipoise.experiment import Budget, Deadline, DefaultReward, DropUnit, Experiment, Precision, Tell, WaitForReward
from equipoise.policies import Fixed, Uniform
from equipoise.store import open_store
from equipoise.testing.store_case import BALANCE, RANDOM, StoreCase, refused


class Life(StoreCase):
    """What may change while an experiment runs, and what is reported."""

    def test_enrolment_can_pause_resume_stop_and_the_experiment_finish(self) -> None:
        """Known units keep their arms, and rewards are welcome until it is finished."""
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

    def test_arms_come_and_go(self) -> None:
        """Nobody is assigned to an arm that is paused or retired; its rewards still count."""
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
        unit = next(one.unit for one in experiment.ask_many([f"unit-{i}" for i in range(30)]) if one.arm == "line")
        experiment.apply([Tell(unit, 1.0)])
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
        """It does not take everybody until it has its share of all; nor does an arm after a pause."""
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
        again.retire_arm("pie")  # no arm comes into play or leaves it: tracking goes on
        again.ask("d")
        again.verify()
        self.tamper("UPDATE arms SET tracked_from = tracked_from + 1 WHERE position = 0", again)
        with refused(errors.VerificationFailed, "tracked_from of arm 'line'"):
            again.verify()
        assert again.rebuild()
        again.verify()

    def test_arms_of_a_policy_with_parameters_per_arm(self) -> None:
        """A paused arm's share goes to the others; an arm that the policy has no parameter for is refused."""
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

    def test_another_weight_can_be_tried_out(self) -> None:
        """More weight on reward gives more reward and more error."""
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
        """Each says where it stands and whether it is met."""
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
        assert (status.state, status.interval, status.confidence) == ("enrolling", "empirical Bernstein", 0.95)
        assert experiment.ask("more").new


class Replaying(StoreCase):
    """Reading, verifying, rebuilding and copying."""

    # Reading

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
        experiment = self.create(who="ann")
        experiment.ask_many([f"unit-{i}" for i in range(1500)])
        numbers = [event.number for event in experiment.events()]
        assert numbers == list(range(1, 1502))
        assert [event.number for event in experiment.events(after=1499)] == [1500, 1501]
        first = next(experiment.events())
        assert (first.kind, first.who, first.at) == ("created", "ann", experiment.status().created_at)
        assert first.details["arms"][0] == {"name": "line", "floor": 0.0}
        json.dumps(first.to_dict())

    def test_experiments_are_found_by_name(self) -> None:
        """A name is taken once; an unknown one is an error."""
        self.create("one")
        self.create("two", arms=["x"])
        assert [(one.name, one.n_arms) for one in Experiment.list(self.store)] == [("one", 3), ("two", 1)]
        with refused(errors.ExperimentExists, "'one'"):
            self.create("one")
        with refused(errors.UnknownExperiment, "'three'"):
            Experiment.open(self.store, "three")
        assert Experiment.open(self.store, "two").ask("a").arm == "x"

    def test_the_history_is_what_the_log_says_at_each_point(self) -> None:
        """Counts, means and spreads after every so many events, replaced rewards left out."""
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

    # Replaying

    def test_verify_names_the_first_difference(self) -> None:
        """Whatever was changed behind our back: a decision, a probability, a reward, a statistic, a missing event."""
        missing = WaitForReward(window_seconds=1e6)
        tampering = {
            "UPDATE events SET arm = 1 - arm WHERE number = 2": (2, "should assign 'line'"),
            "UPDATE events SET probability = 0.5 WHERE number = 4": (4, "with probability 1.0"),
            "UPDATE events SET forced = 0 WHERE number = 4": (4, "forced"),
            "UPDATE events SET reward = reward + 1 WHERE kind = 'rewarded'": (None, "should be"),
            "UPDATE events SET counted = 0 WHERE kind = 'rewarded'": (5, "count its reward"),
            "UPDATE events SET unit = 'x' WHERE number = 5": (5, "for its unit"),
            "UPDATE events SET decision = 9 WHERE number = 4": (4, "decision number 2"),
            "DELETE FROM events WHERE number = 3": (3, "not in the log"),
            "DELETE FROM events WHERE number = 1": (1, "not in the log"),
            "UPDATE arms SET pulls = pulls + 1 WHERE position = 1": (None, "pulls of arm 'pie'"),
            "UPDATE arms SET reward_low = 1e-30 WHERE position = 0": (None, "reward_low of arm 'line'"),
            "UPDATE arms SET overdue = 1": (None, "overdue"),
            "UPDATE experiments SET n_decisions = 1": (None, "n_decisions"),
            "UPDATE experiments SET state = 'paused'": (None, "state"),
            "UPDATE pending SET due_at = due_at + 1": (None, "pending"),
            "DELETE FROM pending": (None, "pending"),
        }
        for number, (statement, (event, words)) in enumerate(tampering.items()):
            experiment = self.create(f"tampered-{number}", policy=BALANCE, missing=missing)
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("b", 0.5)
            experiment.verify()
            self.tamper(statement, experiment)
            with refused(errors.VerificationFailed, words) as failed:
                experiment.verify()
            assert failed[0].event == event, statement  # type: ignore[attr-defined]

    def test_rebuild_writes_what_the_log_says(self) -> None:
        """Tables that were spoilt are as before."""
        experiment = self.create(policy=RANDOM, missing=DropUnit(window_seconds=100, hold=True))
        self.play(experiment, 30)
        self.clock.advance(101)
        self.play(experiment, 5, first=30)
        before = experiment.status()
        assert not experiment.rebuild()
        for statement in (
            "UPDATE arms SET assigned = 1, pulls = 0, reward_high = 3, held = 9",
            "DELETE FROM pending",
            "UPDATE experiments SET n_events = 3, n_decisions = 99, state = 'paused'",
        ):
            self.tamper(statement, experiment)
            assert experiment.rebuild()
            experiment.verify()
        after = experiment.status()
        assert (after.arms, after.state, after.n_events) == (before.arms, before.state, before.n_events + 3)
        assert [event.kind for event in experiment.events()][-3:] == ["rebuilt"] * 3
        experiment.ask("after")
        experiment.verify()

    def test_an_experiment_moves_to_another_store_and_goes_on(self) -> None:
        """Its log, statistics and what is pending come along; the next decisions are the same."""
        experiment = self.create(policy=RANDOM, missing=WaitForReward(window_seconds=1000))
        self.play(experiment, 30)
        with open_store("memory:", clock=self.clock) as other:
            there = experiment.copy_to(other)
            assert there.status().arms == experiment.status().arms
            for number in range(10):
                assert there.ask(f"new-{number}").arm == experiment.ask(f"new-{number}").arm
            there.verify()
            with refused(errors.ExperimentExists):
                experiment.copy_to(other)  # both have gone on since
            back = Experiment.create(other, "back", arms=["a", "b"], policy=Uniform(), seed=1)
            back.ask_many(["x", "y"])
            back.copy_to(self.store).verify()
