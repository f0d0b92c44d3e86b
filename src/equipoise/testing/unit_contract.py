"""Contract tests about units, missing rewards and floors, and the fixtures that all contract tests share."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from equipoise import errors
from equipoise.bandit import Bandit
from equipoise.experiment import DefaultReward, DropUnit, Experiment, ExperimentSummary, ToldReward, WaitForReward
from equipoise.policies import EpsilonGreedy, Fixed, ForcingBalance, ThompsonBalance, Uniform

BALANCE = ForcingBalance(reward_weight=0.6)
RANDOM = ForcingBalance(reward_weight=0.6, tracking="windowed")
INFORMED = ForcingBalance(information_kept=0.6, tracking="windowed")


class StoppedClock:
    """A clock that moves only on `advance`, and one microsecond per call."""

    def __init__(self) -> None:
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the time; no two calls return the same."""
        self.now += timedelta(microseconds=1)
        return self.now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


class ExperimentCase:
    """Creates experiments and compares them, for the tests; subclasses say where the experiments live."""

    author = "ann"
    """Author in the log."""

    def setup_method(self) -> None:
        """Start with a stopped clock."""
        self.clock = StoppedClock()

    def create(self, name: str = "fractions", **settings: Any) -> Experiment:
        """Create an experiment, with three arms by default."""
        chosen: dict[str, Any] = {"arms": ["line", "pie", "none"], "policy": BALANCE, "seed": 7, **settings}
        return self.new(name, **chosen)

    def new(self, name: str, **settings: Any) -> Experiment:
        """Create an experiment by `author`, with the arguments of `Experiment.create`."""
        raise NotImplementedError

    def find(self, name: str) -> Experiment:
        """Open the experiment of that name."""
        raise NotImplementedError

    def listed(self) -> list[ExperimentSummary]:
        """List all experiments."""
        raise NotImplementedError

    def reopened(self, experiment: Experiment) -> Experiment:
        """Return the experiment as a new process would find it."""
        return self.find(experiment.name)

    def play(self, experiment: Experiment, n_units: int, *, seed: int = 1, first: int = 0) -> None:
        """Assign units one by one and record most of their rewards, some of them late."""
        rng = np.random.default_rng(seed)
        waiting: list[str] = []
        for number in range(first, first + n_units):
            waiting.append(experiment.ask(f"unit-{number}").unit)
            if rng.random() < 0.6:
                unit = waiting.pop(int(rng.integers(len(waiting))))
                experiment.tell(unit, float(rng.normal(1.0, 0.5)))

    def counts(self, experiment: Experiment) -> tuple[int, ...]:
        """Return assigned, rewarded, pending, held, overdue, defaulted and dropped, over all arms."""
        status = experiment.status()
        names = ("assigned", "rewarded", "pending", "held", "overdue", "defaulted", "dropped")
        return tuple(getattr(status, f"n_{name}") for name in names)

    def compare_export(self, experiment: Experiment) -> None:
        """Compare the totals of the export with the status, in both text formats."""
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


@contextmanager
def refused(kind: type[errors.EquipoiseError], *words: str) -> Iterator[list[errors.EquipoiseError]]:
    """Expect an error whose message contains the words; yield a list that will hold the error."""
    caught: list[errors.EquipoiseError] = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    assert caught, f"expected {kind.__name__}"
    missing = [word for word in words if word not in str(caught[0])]
    assert not missing, f"{missing} not in: {caught[0]}"


class Units(ExperimentCase):
    """Ask and tell are idempotent: a unit keeps its arm, a reward counts once."""

    # Asking

    def test_a_unit_keeps_its_arm(self) -> None:
        """Asking again returns the same assignment, marked as not new."""
        experiment = self.create(policy=RANDOM)
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
        """The same policy, seed and rewards lead to the same arms with the same probabilities."""
        for number, policy in enumerate([BALANCE, RANDOM, EpsilonGreedy(), ThompsonBalance(reward_weight=0.5)]):
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
        """Also with repeats, within the batch and of units assigned before."""
        together, single = self.create("together", policy=RANDOM), self.create("single", policy=RANDOM)
        for experiment in (together, single):
            self.play(experiment, 15)
        units = ["a", "unit-3", "b", "a", "c", *(f"more-{i}" for i in range(20))]
        batch = together.ask_many(units)
        assert [(one.arm, one.probability, one.new) for one in batch] == [
            (one.arm, one.probability, one.new) for one in (single.ask(unit) for unit in units)
        ]
        assert together.ask_many([]) == []
        together.verify()

    def test_a_unit_can_be_looked_up(self) -> None:
        """Its assignment, its reward and its state, at every stage; nothing is written."""
        experiment = self.create(missing=DropUnit(window_seconds=100, hold=True, late="ignore"))
        assigned = experiment.ask("a")
        experiment.ask("b")
        found = experiment.unit("a")
        assert found is not None
        assert tuple(getattr(found, name) for name in assigned._fields[:-1]) == assigned[:-1]
        assert (found.state, found.reward, found.counted) == ("waiting", None, False)
        experiment.tell("a", 1.5)
        assert self.became(experiment, "a") == ("held", 1.5, False)
        n_events = experiment.status().n_events
        self.clock.advance(101)
        assert self.became(experiment, "b") == ("overdue", None, False)
        assert experiment.unit("c") is None
        assert experiment.assignment("c") is None
        assert experiment.status().n_events == n_events
        experiment.settle()
        assert self.became(experiment, "a") == ("counted", 1.5, True)
        assert self.became(experiment, "b") == ("dropped", None, False)
        experiment.correct("a", 2.5, "misread")
        experiment.tell("b", 3.0)
        assert self.became(experiment, "a") == ("counted", 2.5, True)
        assert self.became(experiment, "b") == ("dropped", 3.0, False)
        with refused(errors.InvalidInput, "unit must be text"):
            experiment.unit(5)  # type: ignore[arg-type]

    def became(self, experiment: Experiment, unit: str) -> tuple[str, float | None, bool]:
        """Return the state of a unit, its reward and whether that is counted."""
        found = experiment.unit(unit)
        assert found is not None
        return found.state, found.reward, found.counted

    # Telling

    def test_rewards_come_late_in_any_order_and_again(self) -> None:
        """Statistics do not depend on the order of rewards; repeats change nothing."""
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
        """A correction is explicit, has a reason, and counts as if it had been reported at once."""
        experiment, right = self.create("mistake"), self.create("right")
        for one, reward in ((experiment, 75.0), (right, 0.75)):
            one.ask_many(["a", "b", "c"])
            one.tell_many({"a": 0.5, "b": reward, "c": 0.25})
        with refused(errors.RewardConflict, "75.0", "0.75", "correct("):
            experiment.tell("b", 0.75)
        assert experiment.correct("b", 0.75, "typed in percent") == ToldReward("b", "pie", 0.75, True, True)
        assert not experiment.correct("b", 0.75, "again").new
        assert not experiment.tell("b", 75.0).new  # a retry with the first reward is still idempotent
        assert not experiment.tell("b", 0.75).new
        assert experiment.status().arms == right.status().arms
        last = list(experiment.events())[-1]
        assert (last.kind, last.reward, last.replaced, last.details) == (
            "corrected",
            0.75,
            75.0,
            {"reason": "typed in percent"},
        )
        assert last.who == self.author
        assert experiment.verify().n_events == 8

    def test_what_cannot_be_told_is_refused_and_leaves_no_trace(self) -> None:
        """Unknown units, rewards that are not numbers or out of range, corrections of nothing."""
        experiment = self.create(reward_range=(0, 1))
        experiment.ask("known")
        with refused(errors.UnknownUnit, "'unknown'", "check the spelling"):
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
        """The error of the first refused reward is raised."""
        experiment = self.create()
        experiment.ask_many(["a", "b"])
        with refused(errors.UnknownUnit):
            experiment.tell_many([("a", 1.0), ("x", 1.0)])
        assert experiment.status().n_rewarded == 0


class MissingRewards(ExperimentCase):
    """Rewards that are late or never come."""

    def test_waiting_for_ever_shows_what_is_overdue(self) -> None:
        """Nothing else happens to those units; a late reward counts like any other."""
        experiment = self.create(missing=WaitForReward(window_seconds=60), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(6)])
        experiment.tell("unit-0", 1.0)
        assert self.counts(experiment) == (6, 1, 5, 0, 0, 0, 0)
        last = experiment.status().last_window_at
        assert last is not None
        assert last == (experiment.assignment("unit-5") or experiment.ask("unit-5")).at + timedelta(seconds=60)
        self.clock.advance(61)
        assert experiment.status().last_window_at is None
        assert self.counts(experiment) == (6, 1, 5, 0, 5, 0, 0)
        experiment.ask("late")
        assert self.counts(experiment) == (7, 1, 6, 0, 5, 0, 0)
        experiment.tell("unit-1", 1.0)
        assert self.counts(experiment) == (7, 2, 5, 0, 4, 0, 0)
        assert [event.kind for event in experiment.events()].count("expired") == 5
        experiment.verify()

    def test_a_default_is_counted_after_the_window(self) -> None:
        """A later reward replaces it or is only logged, as declared."""
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

    def test_a_withdrawn_unit_leaves_the_estimates_for_good(self) -> None:
        """In every state; the others' statistics are as if its reward had never come."""
        missing = DefaultReward(value=0.5, window_seconds=100)
        experiment, other = self.create("with", missing=missing), self.create("without", missing=missing)
        for one in (experiment, other):
            one.ask_many(["told", "waiting", "defaulted", "stays"])
            one.tell("stays", 0.75)
        experiment.tell("told", 1e18)
        assert experiment.withdraw("told", "left").state == "withdrawn"
        experiment.withdraw("waiting", "left")
        experiment.withdraw("waiting", "left again")
        told = experiment.unit("told")
        assert told is not None
        assert (told.state, told.reward, told.counted) == ("withdrawn", None, False)
        self.clock.advance(101)
        experiment.settle()
        experiment.withdraw("defaulted", "left")
        other.settle()
        assert experiment.status().n_withdrawn == 3
        assert (experiment.status().n_rewarded, experiment.status().n_pending) == (1, 0)
        for unit in ("told", "waiting", "defaulted"):
            with refused(errors.UnitWithdrawn, repr(unit)):
                experiment.tell(unit, 0.5)
            with refused(errors.UnitWithdrawn):
                experiment.correct(unit, 0.5, "misread")
            assert not experiment.ask(unit).new
        arm = experiment.ask("stays").arm
        [found] = [one for one in experiment.status().arms if one.arm == arm]
        assert (found.rewarded, found.mean) == (1, 0.75)
        assert [event.kind for event in experiment.events()].count("withdrawn") == 3
        with refused(errors.UnknownUnit):
            experiment.withdraw("nobody", "left")
        experiment.finish()
        experiment.verify()
        assert not experiment.rebuild()

    def test_a_withdrawn_unit_can_be_erased_and_the_log_still_verifies(self) -> None:
        """Its name, its attributes and the reasons are nowhere; everything else stays."""
        experiment = self.create()
        experiment.ask("zoe@school.example", {"age": 9})
        experiment.tell("zoe@school.example", 0.5)
        experiment.correct("zoe@school.example", 0.75, "Zoe misread it")
        self.play(experiment, 10)
        with refused(errors.InvalidInput, "must be withdrawn before", "withdraw(unit, reason)"):
            experiment.erase("zoe@school.example")
        experiment.withdraw("zoe@school.example", "Zoe left")
        before = experiment.verify().last_hash
        experiment.erase("zoe@school.example")
        text = repr([event.to_dict() for event in experiment.events()])
        for word in ("zoe@", "Zoe", "'age'"):
            assert word not in text
        assert experiment.unit("zoe@school.example") is None
        with refused(errors.UnknownUnit):
            experiment.erase("zoe@school.example")
        assert experiment.verify().last_hash == before
        assert not experiment.rebuild()
        assert experiment.ask("zoe@school.example").new
        experiment.verify()

    def test_a_unit_is_dropped_after_the_window(self) -> None:
        """It is no longer pending; a late reward brings it back or is only logged, as declared."""
        for late, after in (("count", (3, 2, 0, 0, 0, 0, 1)), ("ignore", (3, 1, 0, 0, 0, 0, 2))):
            missing = DropUnit(window_seconds=60, late=late)
            experiment = self.create(f"drop-{late}", missing=missing, policy=Uniform())
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            self.clock.advance(61)
            # `tell` settles first, so the reward is late although nothing else has happened since.
            assert experiment.tell("b", 0.5).counted == (late == "count")
            assert self.counts(experiment) == after
            experiment.verify()
            self.compare_export(experiment)

    def test_rewards_can_be_held_until_everyone_had_the_same_time(self) -> None:
        """No arm is favoured for answering fast; a correction of a held reward counts when the reward does."""
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
        """Each transaction settles some; a unit it did not reach is settled when its reward comes."""
        experiment = self.create(missing=DropUnit(window_seconds=60, late="ignore"), policy=Uniform())
        experiment.ask_many([f"unit-{i}" for i in range(1100)])
        self.clock.advance(61)
        assert not experiment.tell("unit-1090", 1.0).counted
        assert self.counts(experiment)[-1] == 1001
        experiment.settle()
        assert self.counts(experiment) == (1100, 0, 0, 0, 0, 0, 1100)
        experiment.verify()


class Shares(ExperimentCase):
    """Floors, warm-up, and the direction of rewards."""

    def test_shares_kept_for_arms_are_added_and_logged(self) -> None:
        """An arm's probability is its floor plus what all floors leave, times the policy's probability."""
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
        """A decision is forced only where the policy chose; its probability is what the floors leave."""
        experiment = self.create(policy=ForcingBalance(reward_weight=1.0, forcing=0.0), floor=0.1)
        for number in range(150):
            assignment = experiment.ask(f"unit-{number}")
            assert min(abs(assignment.probability - 0.1), abs(assignment.probability - 0.8)) < 1e-12
            assert not assignment.forced or assignment.probability > 0.5
            experiment.tell(assignment.unit, {"line": 0.0, "pie": 1.0, "none": 0.5}[assignment.arm] + number % 2)
        assert min(arm.assigned for arm in experiment.status().arms) >= 5
        experiment.verify()

    def test_shares_that_leave_nothing_are_refused(self) -> None:
        """When the experiment is created, and when an arm is added."""
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
        assert [one.name for one in self.listed()] == ["fractions"]

    def test_warm_up_gives_every_arm_its_units_in_random_order(self) -> None:
        """Each round over the arms has every arm once."""
        experiment = self.create(warm_up=4, policy=ForcingBalance(reward_weight=1.0, forcing=0.0))
        assigned = experiment.ask_many([f"unit-{i}" for i in range(13)])
        rounds = [[one.arm for one in assigned[i : i + 3]] for i in range(0, 12, 3)]
        assert all(sorted(arms) == ["line", "none", "pie"] for arms in rounds)
        assert len({tuple(arms) for arms in rounds}) > 1
        assert [one.probability for one in assigned[:12]] == [1 / 3, 1 / 2, 1.0] * 4
        assert all(one.forced for one in assigned[:12])
        experiment.verify()

    def test_small_rewards_can_be_the_good_ones(self) -> None:
        """The policy sees them negated, people see them as reported."""
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
