"""The contract every store must keep: what an experiment promises, whatever database it lives in.

Subclass `StoreContract` in a pytest module and say how to get an empty database; pytest finds the rest::

    class TestMine(StoreContract):
        def new_url(self):
            return f"sqlite:///{tempfile.mkdtemp()}/store.db"
"""

from __future__ import annotations

import csv
import io
import json
import math
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from equipoise import errors
from equipoise.bandit import Bandit
from equipoise.experiment import (
    AddArm,
    Ask,
    Assignment,
    Budget,
    Correct,
    Deadline,
    DefaultReward,
    DropUnit,
    Experiment,
    Precision,
    Tell,
    ToldReward,
    WaitForReward,
)
from equipoise.policies import EpsilonGreedy, Fixed, ForcingBalance, ThompsonBalance, Uniform
from equipoise.store import Store, open_store
from equipoise.store.schema import events as events_table

if TYPE_CHECKING:
    from collections.abc import Iterator

_BALANCE = ForcingBalance(reward_weight=0.6)
_RANDOM = ForcingBalance(reward_weight=0.6, tracking="windowed")


class StoppedClock:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time; no two calls at the same."""
        self.now += timedelta(microseconds=1)
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


class StoreContract:
    """What must hold for every store."""

    def new_url(self) -> str:
        """Return the URL of an empty database; `memory:` is new every time."""
        raise NotImplementedError

    @property
    def is_shared(self) -> bool:
        """Whether opening the URL again gives the same store."""
        return True

    def setup_method(self) -> None:
        """Start with an empty store and a clock that stands still."""
        self.clock = StoppedClock()
        self.url = self.new_url()
        self.opened: list[Store] = []
        self.store = self.open()

    def teardown_method(self) -> None:
        """Give connections back."""
        for store in self.opened:
            store.close()

    def open(self) -> Store:
        """Open the store, once more if it was opened before."""
        store = open_store(self.url, clock=self.clock)
        self.opened.append(store)
        return store

    def create(self, name: str = "fractions", **settings: Any) -> Experiment:
        """Make an experiment with three arms unless told otherwise."""
        chosen: dict[str, Any] = {"arms": ["line", "pie", "none"], "policy": _BALANCE, "seed": 7, **settings}
        return Experiment.create(self.store, name, **chosen)

    def play(self, experiment: Experiment, n_units: int, *, seed: int = 1, first: int = 0) -> None:
        """Assign units one by one and tell most of their rewards, some of them late."""
        rng = np.random.default_rng(seed)
        waiting: list[str] = []
        for number in range(first, first + n_units):
            waiting.append(experiment.ask(f"unit-{number}").unit)
            if rng.random() < 0.6:
                unit = waiting.pop(int(rng.integers(len(waiting))))
                experiment.tell(unit, float(rng.normal(1.0, 0.5)))

    # Asking

    def test_a_unit_keeps_its_arm(self) -> None:
        """Asking again gives the same assignment, and says that it is not new."""
        experiment = self.create(policy=_RANDOM)
        first = experiment.ask("student-42", {"class": "4b"})
        again = experiment.ask("student-42", {"class": "5c"})
        assert (first.new, again.new) == (True, False)
        assert (again.arm, again.number, again.probability, again.at) == (
            first.arm,
            first.number,
            first.probability,
            first.at,
        )
        assert experiment.assignment("student-42") == again
        assert experiment.assignment("student-43") is None
        assert first.at.tzinfo is not None
        [_, event] = experiment.events()
        assert event.details == {"attributes": {"class": "4b"}}

    def test_decisions_are_those_of_a_bandit(self) -> None:
        """The same policy, seed and rewards give the same arms with the same probabilities."""
        for number, policy in enumerate([_BALANCE, _RANDOM, EpsilonGreedy(), ThompsonBalance(reward_weight=0.5)]):
            experiment = self.create(f"parity-{number}", policy=policy, seed=11)
            bandit = Bandit(policy, arms=["line", "pie", "none"], seed=11)
            for step in range(40):
                assignment = experiment.ask(f"unit-{step}")
                assert assignment.arm == bandit.ask(), policy
                assert bandit.last_choice is not None
                assert assignment.probability == bandit.last_choice.probability, policy
                assert assignment.forced == bandit.last_choice.forced, policy
                if step % 3:
                    experiment.tell(f"unit-{step}", math.sin(step))
                    bandit.tell(assignment.arm, math.sin(step))
            assert experiment.verify().n_decisions == 40

    def test_a_batch_is_as_many_single_asks(self) -> None:
        """Also with repeats, of units in the batch and of units assigned before."""
        together, single = self.create("together", policy=_RANDOM), self.create("single", policy=_RANDOM)
        for experiment in (together, single):
            self.play(experiment, 15)
        units = ["a", "unit-3", "b", "a", "c", *(f"more-{i}" for i in range(20))]
        batch = together.ask_many(units)
        assert [(one.arm, one.probability, one.new) for one in batch] == [
            (one.arm, one.probability, one.new) for one in (single.ask(unit) for unit in units)
        ]
        assert together.ask_many([]) == []
        together.verify()

    # Telling

    def test_rewards_come_late_in_any_order_and_again(self) -> None:
        """Statistics are those of the rewards, whatever the order; repeats change nothing."""
        one, other = self.create("one", policy=Uniform()), self.create("other", policy=Uniform())
        rewards = {f"unit-{i}": math.cos(i) * 10.0 ** (i % 5) for i in range(30)}
        for experiment, order in ((one, list(rewards)), (other, list(rewards)[::-1])):
            experiment.ask_many(list(rewards))
            for unit in order:
                assert experiment.tell(unit, rewards[unit]).new
                assert not experiment.tell(unit, rewards[unit]).new
        for left, right in zip(one.status().arms, other.status().arms, strict=True):
            assert left == right
            mine = [rewards[unit] for i, unit in enumerate(rewards) if i % 3 == one.status().arms.index(left)]
            assert math.isclose(left.mean or 0, math.fsum(mine) / 10, rel_tol=1e-14)
            assert math.isclose(left.std or 0, float(np.std(mine, ddof=1)), rel_tol=1e-12)
        assert one.verify().n_events == 61

    def test_another_reward_is_a_conflict_until_it_is_corrected(self) -> None:
        """A correction is explicit, has a reason, and counts as if it had been told at once."""
        experiment, right = self.create("mistake", who="ann"), self.create("right")
        for one, reward in ((experiment, 75.0), (right, 0.75)):
            one.ask_many(["a", "b", "c"])
            one.tell_many({"a": 0.5, "b": reward, "c": 0.25})
        with refused(errors.RewardConflict, "75.0", "0.75", "correct("):
            experiment.tell("b", 0.75)
        assert experiment.correct("b", 0.75, "typed in percent") == ToldReward("b", "pie", 0.75, True, True)
        assert not experiment.correct("b", 0.75, "again").new
        assert not experiment.tell("b", 75.0).new  # a retry of what was told first is still harmless
        assert not experiment.tell("b", 0.75).new
        assert experiment.status().arms == right.status().arms
        last = list(experiment.events())[-1]
        assert (last.kind, last.reward, last.replaced, last.details) == (
            "corrected",
            0.75,
            75.0,
            {"reason": "typed in percent"},
        )
        assert last.who == "ann"
        assert experiment.verify().n_events == 8

    def test_what_cannot_be_told_is_refused_and_leaves_no_trace(self) -> None:
        """Unknown units, rewards that are no numbers or out of range, corrections of nothing."""
        experiment = self.create(reward_range=(0, 1))
        experiment.ask("known")
        with refused(errors.UnknownUnit, "'unknown'", "ask(unit)"):
            experiment.tell("unknown", 1.0)
        with refused(errors.UnknownUnit):
            experiment.correct("unknown", 1.0, "why")
        with refused(errors.NotRewarded, "tell("):
            experiment.correct("known", 1.0, "why")
        for reward in (math.nan, math.inf, -math.inf, 1e308, "1", "", None, True, [1], 1.0001, -1e-9, 10**400, 1j):
            with refused(errors.InvalidInput, "reward must be"):
                experiment.tell("known", reward)  # type: ignore[arg-type]
        assert experiment.status().n_events == 2
        experiment.tell("known", 1)
        experiment.verify()

    def test_many_rewards_are_recorded_together_or_not_at_all(self) -> None:
        """And `apply` is for those who want each on its own."""
        experiment = self.create()
        experiment.ask_many(["a", "b"])
        with refused(errors.UnknownUnit):
            experiment.tell_many([("a", 1.0), ("x", 1.0)])
        assert experiment.status().n_rewarded == 0
        answers = experiment.apply(
            [
                Tell("a", 1.0),
                Tell("x", 1.0),
                Ask("x"),
                Tell("x", 2.0),
                Tell("x", 3.0),
                Ask("a\0"),
                Correct("x", 3.0, "misread"),
                AddArm("line", 0.1),
                "nonsense",  # type: ignore[list-item]
                Ask("b"),
            ]
        )
        kinds = [type(answer) for answer in answers]
        assert kinds == [
            ToldReward,
            errors.UnknownUnit,
            Assignment,
            ToldReward,
            errors.RewardConflict,
            errors.InvalidInput,
            ToldReward,
            errors.InvalidInput,
            errors.InvalidInput,
            Assignment,
        ]
        assert experiment.status().n_rewarded == 2
        experiment.verify()

    # Missing rewards

    def test_waiting_for_ever_shows_what_is_overdue(self) -> None:
        """Nothing else happens to those units; a late reward counts as any."""
        experiment = self.create(missing=WaitForReward(window_seconds=60), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(6)])
        experiment.tell("unit-0", 1.0)
        assert self.counts(experiment) == (6, 1, 5, 0, 0, 0, 0)
        self.clock.advance(61)
        assert self.counts(experiment) == (6, 1, 5, 0, 5, 0, 0)
        experiment.ask("late")
        assert self.counts(experiment) == (7, 1, 6, 0, 5, 0, 0)
        experiment.tell("unit-1", 1.0)
        assert self.counts(experiment) == (7, 2, 5, 0, 4, 0, 0)
        assert [event.kind for event in experiment.events()].count("expired") == 5
        experiment.verify()

    def test_a_default_is_counted_after_the_window(self) -> None:
        """A reward that comes later takes its place, or is only logged; as was declared."""
        for late, after in (("count", (3, 3, 0, 0, 0, 1, 0)), ("ignore", (3, 3, 0, 0, 0, 2, 0))):
            missing = DefaultReward(value=0.0, window_seconds=60, late=late)
            experiment = self.create(f"default-{late}", missing=missing, policy=Uniform())
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            self.clock.advance(61)
            experiment.settle()
            assert self.counts(experiment) == (3, 3, 0, 0, 0, 2, 0)
            told = experiment.tell("b", 0.5)
            assert told.counted == (late == "count")
            assert self.counts(experiment) == after
            assert experiment.status().average_reward == (0.5 if late == "count" else 1 / 3)
            assert not experiment.tell("b", 0.5).new
            experiment.correct("b", 0.25, "misread")
            assert experiment.status().average_reward == (1.25 / 3 if late == "count" else 1 / 3)
            experiment.verify()
            self.compare_export(experiment)

    def test_a_unit_is_dropped_after_the_window(self) -> None:
        """It no longer counts as pending; a late reward brings it back, or is only logged."""
        for late, after in (("count", (3, 2, 0, 0, 0, 0, 1)), ("ignore", (3, 1, 0, 0, 0, 0, 2))):
            missing = DropUnit(window_seconds=60, late=late)
            experiment = self.create(f"drop-{late}", missing=missing, policy=Uniform())
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            self.clock.advance(61)
            # Telling settles first, so the reward is late although nothing else happened since.
            assert experiment.tell("b", 0.5).counted == (late == "count")
            assert self.counts(experiment) == after
            experiment.verify()
            self.compare_export(experiment)

    def test_rewards_can_be_held_until_everyone_had_the_same_time(self) -> None:
        """No arm is favoured for answering fast; corrections of what is held count when it does."""
        missing = DefaultReward(value=0.0, window_seconds=60, hold=True)
        experiment = self.create(missing=missing, policy=Uniform())
        experiment.ask_many(["a", "b", "c"])
        assert not experiment.tell("a", 1.0).counted
        assert not experiment.correct("a", 2.0, "misread").counted
        experiment.tell("b", 1.0)
        assert self.counts(experiment) == (3, 0, 3, 2, 0, 0, 0)
        experiment.verify()
        self.compare_export(experiment)
        self.clock.advance(61)
        assert self.counts(experiment) == (3, 0, 3, 2, 1, 0, 0)
        experiment.settle()
        assert self.counts(experiment) == (3, 3, 0, 0, 0, 1, 0)
        assert [arm.mean for arm in experiment.status().arms] == [2.0, 1.0, 0.0]
        experiment.verify()
        self.compare_export(experiment)

    def test_many_units_falling_due_at_once_are_settled_in_pieces(self) -> None:
        """Each transaction deals with some; a unit it did not reach is settled when its reward comes."""
        experiment = self.create(missing=DropUnit(window_seconds=60, late="ignore"), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(1100)])
        self.clock.advance(61)
        assert not experiment.tell("unit-1090", 1.0).counted
        assert self.counts(experiment)[-1] == 1001
        experiment.settle()
        assert self.counts(experiment) == (1100, 0, 0, 0, 0, 0, 1100)
        experiment.verify()

    # Shares

    def test_shares_kept_for_arms_are_added_and_logged(self) -> None:
        """An arm's probability is its share plus what all shares leave, times the policy's."""
        experiment = self.create(
            policy=Fixed(allocation=(0.2, 0.3, 0.5), tracking="sample"),
            floor={"line": 0.1, "pie": 0.05},
            control="none",
            control_share=0.25,
        )
        expected = {"line": 0.1 + 0.6 * 0.2, "pie": 0.05 + 0.6 * 0.3, "none": 0.25 + 0.6 * 0.5}
        drawn = experiment.ask_many([f"unit-{i}" for i in range(2000)])
        for arm, probability in expected.items():
            mine = [one for one in drawn if one.arm == arm]
            assert all(math.isclose(one.probability, probability, rel_tol=1e-12) for one in mine)
            deviation = abs(len(mine) / 2000 - probability)
            assert deviation < 4 * math.sqrt(probability * (1 - probability) / 2000)
        target = {arm.arm: arm.target_share for arm in experiment.status().arms}
        assert all(math.isclose(target[arm] or 0, share, rel_tol=1e-12) for arm, share in expected.items())
        experiment.verify()

    def test_shares_keep_every_arm_alive_under_a_policy_that_would_not(self) -> None:
        """Forcing is only forced where the policy chose; its probability is what is left."""
        experiment = self.create(policy=ForcingBalance(reward_weight=1.0, forcing=0.0), floor=0.1)
        for number in range(150):
            assignment = experiment.ask(f"unit-{number}")
            assert min(abs(assignment.probability - 0.1), abs(assignment.probability - 0.8)) < 1e-12
            assert not assignment.forced or assignment.probability > 0.5
            experiment.tell(assignment.unit, {"line": 0.0, "pie": 1.0, "none": 0.5}[assignment.arm] + number % 2)
        assert min(arm.assigned for arm in experiment.status().arms) >= 5
        experiment.verify()

    def test_shares_that_leave_nothing_are_refused(self) -> None:
        """When the experiment is made, and when an arm is added."""
        too_much: list[dict[str, Any]] = [
            {"floor": 1 / 3},
            {"floor": [0.5, 0.5, 0.0]},
            {"floor": 0.3, "control": "pie", "control_share": 0.4},
        ]
        for settings in too_much:
            with refused(errors.InvalidInput, "less than 1"):
                self.create("never", **settings)
        nonsense: list[dict[str, Any]] = [
            {"floor": -0.1},
            {"floor": {"cake": 0.1}},
            {"control": "cake"},
            {"control_share": 0.1},
        ]
        for settings in nonsense:
            with refused(errors.InvalidInput):
                self.create("never", **settings)
        experiment = self.create(floor=0.3)
        with refused(errors.InvalidInput, "less than 1"):
            experiment.add_arm("cake", floor=0.1)
        assert [one.name for one in Experiment.list(self.store)] == ["fractions"]

    def test_warm_up_gives_every_arm_its_units_in_random_order(self) -> None:
        """In each round over the arms every arm comes once."""
        experiment = self.create(warm_up=4, policy=ForcingBalance(reward_weight=1.0, forcing=0.0))
        assigned = experiment.ask_many([f"unit-{i}" for i in range(13)])
        rounds = [[one.arm for one in assigned[i : i + 3]] for i in range(0, 12, 3)]
        assert all(sorted(arms) == ["line", "none", "pie"] for arms in rounds)
        assert len({tuple(arms) for arms in rounds}) > 1
        assert [one.probability for one in assigned[:12]] == [1 / 3, 1 / 2, 1.0] * 4
        assert all(one.forced for one in assigned[:12])
        experiment.verify()

    def test_small_rewards_can_be_the_good_ones(self) -> None:
        """The policy sees them negated, people see them as they were told."""
        small, large = self.create("small", direction="minimise"), self.create("large")
        for number in range(60):
            one, other = small.ask(f"unit-{number}"), large.ask(f"unit-{number}")
            assert one.arm == other.arm
            reward = {"line": 1.0, "pie": 2.0, "none": 3.0}[one.arm] + math.sin(number)
            small.tell(one.unit, reward)
            large.tell(other.unit, -reward)
        for left, right in zip(small.status().arms, large.status().arms, strict=True):
            assert left.mean == -(right.mean or 0)
            assert (left.std, left.target_share) == (right.std, right.target_share)
        assert small.status().arms[0].assigned > small.status().arms[2].assigned
        small.correct("unit-0", 1.5, "misread")
        small.verify()

    # The experiment's life

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
        experiment = self.create(policy=_RANDOM)
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

    # Reading

    def test_status_export_and_log_agree(self) -> None:
        """The screen and the files show the same totals."""
        experiment = self.create(policy=_RANDOM, metadata={"school": "Müller"})
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
            experiment = self.create(f"tampered-{number}", policy=_BALANCE, missing=missing)
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("b", 0.5)
            experiment.verify()
            self.tamper(statement, experiment)
            with refused(errors.VerificationFailed, words) as failed:
                experiment.verify()
            assert failed[0].event == event, statement  # type: ignore[attr-defined]

    def test_rebuild_writes_what_the_log_says(self) -> None:
        """Tables that were spoilt are as before."""
        experiment = self.create(policy=_RANDOM, missing=DropUnit(window_seconds=100, hold=True))
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
        experiment = self.create(policy=_RANDOM, missing=WaitForReward(window_seconds=1000))
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

    # Many writers

    def test_the_schema_forbids_two_assignments_and_two_rewards(self) -> None:
        """Even to code that does not go through us."""
        experiment = self.create()
        experiment.ask("a")
        experiment.tell("a", 1.0)
        for kind in ("assigned", "rewarded"):
            row = {"experiment": experiment._id, "number": 99, "kind": kind, "at": 0, "unit": "a", "arm": 0}
            with self.store.database.engine.connect() as connection:
                try:
                    connection.execute(sa.insert(events_table).values(row))
                except sa.exc.IntegrityError:
                    connection.rollback()
                    continue
            raise AssertionError(f"two events {kind} for one unit")

    def test_two_handles_see_each_other(self) -> None:
        """What one commits, the other plans with, arms and settings included."""
        if not self.is_shared:
            return
        here = self.create(policy=_RANDOM)
        there = Experiment.open(self.open(), "fractions")
        single = self.create("single", policy=_RANDOM)
        for number in range(30):
            for one in (there if number % 3 == 0 else here, single):
                one.tell(one.ask(f"unit-{number}").unit, math.sin(number))
                if number == 10:
                    one.change_weight(0.9)
                if number == 15:
                    one.add_arm("cake")
                if number == 20:
                    one.pause_arm("pie")
        assert here.status().arms == there.status().arms == single.status().arms
        here.verify()

    def test_threads_take_turns(self) -> None:
        """No lost update and no error, on one experiment and on several."""
        shared, own = self.create("shared"), [self.create(f"own-{i}") for i in range(4)]
        problems: list[BaseException] = []

        def work(worker: int) -> None:
            try:
                for number in range(10):
                    # Workers race for the same units too.
                    shared.tell(shared.ask(f"unit-{number}-{worker % 2}").unit, float(number))
                    own[worker].ask_many([f"{number}-a", f"{number}-b"])
            except BaseException as problem:  # noqa: BLE001  (told below)
                problems.append(problem)

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not problems
        assert (shared.status().n_assigned, shared.status().n_rewarded) == (20, 20)
        for experiment in (shared, *own):
            experiment.verify()

    # What comes from outside

    def test_any_text_is_a_name(self) -> None:
        """Names and units are kept as they are, in any script; SQL is text."""
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
            "a" * 200,
        ]
        experiment = self.create("'; DROP TABLE experiments; --", arms=texts, policy=Uniform())
        assigned = experiment.ask_many(texts)
        assert [one.arm for one in assigned] == texts
        assert [experiment.assignment(text).unit for text in texts] == texts  # type: ignore[union-attr]
        experiment.tell_many(dict.fromkeys(texts, 1.0))
        experiment.ask("x" * 500)
        experiment.ask("y", {"text": "\0 \ud800 né", "nested": [1, {"a": None}]})
        again = self.reopened(experiment)
        assert [arm.arm for arm in again.status().arms] == texts
        assert list(again.events())[-1].details["attributes"]["text"] == "\0 \ud800 né"
        again.verify()
        self.compare_export(again)

    def test_what_is_no_text_or_too_much_is_refused(self) -> None:
        """With a message that does not repeat a megabyte."""
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
                lambda text=text: Experiment.open(self.store, text),
            ):
                with refused(errors.InvalidInput) as refusal:
                    attempt()
                assert len(str(refusal[0])) < 300
        for attributes in ("text", {1: 2}, {"a": math.nan}, {"a": object()}, {"a": "x" * 10_001}):
            with refused(errors.InvalidInput, "attributes"):
                experiment.ask("unit", attributes)  # type: ignore[arg-type]
        for units in ("abc", 5):
            with refused(errors.InvalidInput, "units must be a list"):
                experiment.ask_many(units)  # type: ignore[arg-type]
        assert experiment.status().n_events == 1

    def test_settings_that_make_no_sense_are_refused(self) -> None:
        """Before anything is written."""
        nonsense: list[dict[str, Any]] = [
            {"arms": []},
            {"arms": ["a", "a"]},
            {"arms": "ab"},
            {"policy": "ForcingBalance"},
            {"policy": Fixed(allocation=(0.5, 0.5))},
            {"seed": -1},
            {"warm_up": 1.5},
            {"reward_range": (1, 0)},
            {"reward_range": 3},
            {"direction": "up"},
            {"missing": "drop"},
            {"missing": DefaultReward(value=5, window_seconds=1), "reward_range": (0, 1)},
            {"stopping": ["budget"]},
            {"failure_probability": 0},
            {"metadata": {"a": math.inf}},
        ]
        for settings in nonsense:
            with refused(errors.InvalidInput):
                self.create("never", **settings)
        assert Experiment.list(self.store) == []

    def test_ten_thousand_arms(self) -> None:
        """Work, if not as fast as three."""
        arms = [f"arm {i}" for i in range(10_000)]
        experiment = self.create(arms=arms, policy=ForcingBalance(reward_weight=0.9), floor=1e-5)
        experiment.ask_many([f"unit-{i}" for i in range(300)])
        experiment.tell_many({f"unit-{i}": float(i) for i in range(300)})
        experiment.ask("one more")
        again = self.reopened(experiment)
        assert again.ask("and one").new
        assert again.status().n_assigned == 302
        again.verify()

    # Help for the tests above

    def reopened(self, experiment: Experiment) -> Experiment:
        """Return the experiment as a new process would find it."""
        if not self.is_shared:
            self.store.states.clear()
            return experiment
        return Experiment.open(self.open(), experiment.name)

    def counts(self, experiment: Experiment) -> tuple[int, ...]:
        """Return assigned, rewarded, pending, held, overdue, defaulted and dropped, over all arms."""
        status = experiment.status()
        names = ("assigned", "rewarded", "pending", "held", "overdue", "defaulted", "dropped")
        return tuple(getattr(status, f"n_{name}") for name in names)

    def compare_export(self, experiment: Experiment) -> None:
        """Compare totals of the export with the status, in both text formats."""
        files = {form: io.StringIO() for form in ("csv", "jsonl")}
        status = experiment.status()
        for form, file in files.items():
            assert experiment.export(file, form) == status.n_assigned
        rows = [json.loads(line) for line in files["jsonl"].getvalue().splitlines()]
        table = list(csv.DictReader(io.StringIO(files["csv"].getvalue(), newline="")))
        assert [row["unit"] for row in table] == [row["unit"] for row in rows]
        for arm in status.arms:
            mine = [row for row in rows if row["arm"] == arm.arm]
            rewards = [row["counted_reward"] for row in mine if row["counted_reward"] is not None]
            assert (len(mine), len(rewards)) == (arm.assigned, arm.rewarded)
            assert not rewards or math.isclose(math.fsum(rewards) / len(rewards), arm.mean or 0, abs_tol=1e-12)
            for state in ("held", "overdue", "defaulted", "dropped"):
                assert sum(row["state"] == state for row in mine) == getattr(arm, state), state

    def tamper(self, statement: str, experiment: Experiment) -> None:
        """Change a table behind the experiment's back."""
        key = "id" if " experiments " in statement else "experiment"
        joint = " AND " if " WHERE " in statement else " WHERE "

        def work(transaction: Any) -> None:
            transaction.connection.exec_driver_sql(f"{statement}{joint}{key} = {experiment._id}")

        self.store.change(None, work)
        self.store.states.clear()


@contextmanager
def refused(kind: type[errors.EquipoiseError], *words: str) -> Iterator[list[errors.EquipoiseError]]:
    """Expect an error whose message holds the words; gives a list that will hold the error."""
    caught: list[errors.EquipoiseError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"expected {kind.__name__}"
    missing = [word for word in words if word not in str(caught[0])]
    assert not missing, f"{missing} not in: {caught[0]}"
