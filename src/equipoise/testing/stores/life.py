"""What may change while an experiment runs, and what is reported."""

from __future__ import annotations

import math
from datetime import timedelta

from equipoise import errors
from equipoise.experiment import Budget, Deadline, Precision, Tell
from equipoise.policies import Fixed, Uniform
from equipoise.testing.stores.case import RANDOM, StoreCase, refused


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
