"""Ten thousand random sequences of operations on an experiment, each compared with a model made of plain dicts.

The model knows nothing of events, tables, sums or windows kept in a list: it remembers for every unit what happened to
it and counts anew whenever it is asked. Only which arm a new unit gets is taken from the experiment, and checked: that
decisions are right is for `verify`, which ends every sequence.
"""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from endurance import short_and_full
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import equipoise as eq

N_PARTS, N_SEQUENCES = 8, 1_250
"""Ten thousand sequences, in parts that the processes of a test run share out."""
N_SHORT = 150
"""Sequences of each of the first two parts in a short run."""

WINDOW = 10.0
LOW, HIGH = 0.0, 4.0
DEFAULT = 1.0

names = st.sampled_from("abcdef")
rewards = st.sampled_from([0.1, 0.7, 4.0])
impossible_rewards = st.sampled_from([4.5, -1, math.nan, math.inf, "1", None, True])
arm_names = st.sampled_from(["line", "pie", "none", "cake"])
rules_for_missing = st.sampled_from(
    [
        eq.WaitForReward(),
        eq.WaitForReward(window_seconds=WINDOW),
        eq.WaitForReward(window_seconds=WINDOW, hold=True),
        *(
            kind(window_seconds=WINDOW, hold=hold, late=late, **more)
            for kind, more in ((eq.DefaultReward, {"value": DEFAULT}), (eq.DropUnit, {}))
            for hold in (False, True)
            for late in ("count", "ignore")
        ),
    ]
)
policies = st.sampled_from(
    [
        eq.ForcingBalance(reward_weight=0.5),
        eq.ForcingBalance(reward_weight=0.5, tracking="windowed"),
        eq.ForcingBalance(information_kept=0.6, forcing=0.1),
        eq.PooledBalance(information_kept=0.6, tracking="windowed", first_rewards=3),
        eq.EpsilonGreedy(exploration=0.5),
    ]
)


class Model:
    """What an experiment should be, the plainest way: one dict per unit, one per arm."""

    def __init__(self, missing, warm_up):
        self.kind = type(missing).__name__
        self.window = None if missing.window_seconds is None else timedelta(seconds=missing.window_seconds)
        self.hold, self.late = missing.hold, missing.late
        self.warm_up = warm_up
        self.state = "enrolling"
        self.dial = None
        self.arms = {name: {"state": "active", "assigned": 0} for name in ("line", "pie", "none")}
        self.units = {}
        self.n_events = 1

    def is_due(self, unit, now):
        return self.window is not None and unit["state"] in ("waiting", "held") and unit["at"] + self.window <= now

    def settle(self, now):
        """What falls due happens before anything else does, unless the experiment is over."""
        if self.state == "finished":
            return
        for unit in self.units.values():
            if self.is_due(unit, now):
                after = {"WaitForReward": "overdue", "DefaultReward": "defaulted", "DropUnit": "dropped"}[self.kind]
                unit["state"] = "counted" if unit["state"] == "held" else after
                self.n_events += 1

    def refuses_tell(self, name, reward):
        """Return the error that telling a reward gives, or None."""
        unit = self.units.get(name)
        if unit is None:
            return eq.UnknownUnit
        if isinstance(reward, (str, bool, type(None))) or not LOW <= reward <= HIGH:
            return eq.InvalidInput
        if unit["told"] is not None:
            return None if reward in (unit["told"], unit["reward"]) else eq.RewardConflict
        return eq.ExperimentFinished if self.state == "finished" else None

    def tell(self, name, reward):
        """Return whether that changed anything."""
        unit = self.units[name]
        if unit["told"] is not None:
            return False
        unit["told"] = unit["reward"] = reward
        self.n_events += 1
        if unit["state"] == "waiting":
            unit["state"] = "held" if self.hold else "counted"
        elif unit["state"] == "overdue" or self.late == "count":
            unit["state"] = "counted"
        return True

    def refuses_correct(self, name, reward):
        unit = self.units.get(name)
        if unit is None:
            return eq.UnknownUnit
        if unit["reward"] is None:
            return eq.NotRewarded
        return eq.ExperimentFinished if self.state == "finished" else None

    def correct(self, name, reward):
        unit = self.units[name]
        new = unit["reward"] != reward
        unit["reward"] = reward
        self.n_events += new
        return new

    def assign(self, name, arm, at):
        self.units[name] = {
            "arm": arm,
            "number": len(self.units),
            "at": at,
            "state": "waiting",
            "told": None,
            "reward": None,
        }
        self.arms[arm]["assigned"] += 1
        self.n_events += 1

    def possible_arms(self):
        """Return the arms a new unit may get: those in play, and during the warm-up those with the fewest units."""
        counts = {name: arm["assigned"] for name, arm in self.arms.items() if arm["state"] == "active"}
        fewest = min(counts.values())
        return {name for name, count in counts.items() if fewest >= self.warm_up or count == fewest}

    def refuses_arm_change(self, name, after):
        """Return the error that bringing an arm into a state gives, or None."""
        if self.state == "finished":
            return eq.ExperimentFinished
        if name not in self.arms:
            return eq.UnknownArm
        now = self.arms[name]["state"]
        if now == after:
            return None
        in_play = [arm for arm in self.arms.values() if arm["state"] == "active"]
        if now == "retired" or (now == "active" and len(in_play) == 1):
            return eq.InvalidInput
        return None

    def counted_reward(self, unit):
        if unit["state"] == "counted":
            return unit["reward"]
        return DEFAULT if unit["state"] == "defaulted" else None

    def counts(self, name, now):
        """Return what the status should say of an arm."""
        mine = [unit for unit in self.units.values() if unit["arm"] == name]
        states = [unit["state"] for unit in mine]
        values = [self.counted_reward(unit) for unit in mine]
        values = [value for value in values if value is not None]
        not_settled = sum(unit["state"] == "waiting" and self.is_due(unit, now) for unit in mine)
        return {
            "state": self.arms[name]["state"],
            "assigned": len(mine),
            "rewarded": len(values),
            "pending": len(mine) - len(values) - states.count("dropped"),
            "held": states.count("held"),
            "overdue": states.count("overdue") + not_settled,
            "defaulted": states.count("defaulted"),
            "dropped": states.count("dropped"),
        }, values


class ExperimentMachine(RuleBasedStateMachine):
    """Operations in any order; each is refused or answered as the model says."""

    shared_store = None
    n_made = 0

    @initialize(
        missing=rules_for_missing,
        policy=policies,
        warm_up=st.integers(0, 2),
        seed=st.integers(0, 3),
        units=st.lists(names, min_size=3, max_size=6, unique=True),
    )
    def create(self, missing, policy, warm_up, seed, units):
        """Make an experiment with some units, or most of what follows would be about units that nobody knows."""
        kind = type(self)
        kind.n_made += 1
        self.name = f"experiment {kind.n_made}"
        self.now = kind.clock
        self.experiment = eq.Experiment.create(
            kind.shared_store,
            self.name,
            arms=["line", "pie", "none"],
            policy=policy,
            missing=missing,
            warm_up=warm_up,
            seed=seed,
            reward_range=(LOW, HIGH),
        )
        self.model = Model(missing, warm_up)
        if not isinstance(policy, eq.EpsilonGreedy):
            kept = policy.information_kept
            self.model.dial = (policy.reward_weight,) if kept is None else (kept, policy.information_about)
        self.ask(units, one_by_one=False)

    def attempt(self, error, call):
        """Make a call that must raise an error of this very kind, or must not raise; return what it returns."""
        if error is None:
            self.model.settle(self.now.now)
            return call()
        with pytest.raises(error) as refused:
            call()
        assert type(refused.value) is error
        return None

    # Units

    @rule(units=st.lists(names, min_size=1, max_size=5), one_by_one=st.booleans())
    def ask_again(self, units, one_by_one):
        self.ask(units, one_by_one)

    def ask(self, units, one_by_one):
        model = self.model
        unknown = any(unit not in model.units for unit in units)
        error = eq.EnrolmentClosed if unknown and model.state != "enrolling" else None
        if one_by_one:
            units = units[:1]
            error = eq.EnrolmentClosed if units[0] not in model.units and model.state != "enrolling" else None
            answers = self.attempt(error, lambda: [self.experiment.ask(units[0])])
        else:
            answers = self.attempt(error, lambda: self.experiment.ask_many(units))
        for unit, answer in zip(units, answers or (), strict=False):
            assert answer.unit == unit
            assert answer.new == (unit not in model.units)
            if answer.new:
                assert answer.arm in model.possible_arms()
                assert 0 < answer.probability <= 1
                model.assign(unit, answer.arm, self.now.now)
            known = model.units[unit]
            assert (answer.arm, answer.number, answer.at) == (known["arm"], known["number"], known["at"])

    @rule(unit=names, reward=st.one_of(rewards, rewards, rewards, impossible_rewards))
    def tell(self, unit, reward):
        answer = self.attempt(self.model.refuses_tell(unit, reward), lambda: self.experiment.tell(unit, reward))
        self.check_told(answer, unit, lambda: self.model.tell(unit, reward))

    @rule(told=st.dictionaries(names, rewards, min_size=1, max_size=4))
    def tell_many(self, told):
        """All of them, or none if any is refused."""
        errors = [self.model.refuses_tell(unit, reward) for unit, reward in told.items()]
        error = next((one for one in errors if one is not None), None)
        answers = self.attempt(error, lambda: self.experiment.tell_many(told))
        for answer, (unit, reward) in zip(answers or (), told.items(), strict=False):
            self.check_told(answer, unit, lambda unit=unit, reward=reward: self.model.tell(unit, reward))

    @rule(unit=names, reward=rewards)
    def correct(self, unit, reward):
        error = self.model.refuses_correct(unit, reward)
        answer = self.attempt(error, lambda: self.experiment.correct(unit, reward, "misread"))
        self.check_told(answer, unit, lambda: self.model.correct(unit, reward))

    def check_told(self, answer, unit, change):
        if answer is not None:
            new, known = change(), self.model.units[unit]
            assert answer.unit == unit
            assert (answer.new, answer.arm, answer.reward) == (new, known["arm"], known["reward"])
            assert answer.counted == (known["state"] == "counted")

    # Time

    @rule(seconds=st.sampled_from([1.0, WINDOW / 2, WINDOW]))
    def wait(self, seconds):
        self.now.now += timedelta(seconds=seconds)

    @rule()
    def settle(self):
        self.attempt(None, self.experiment.settle)

    # The experiment

    @rule(
        what=st.one_of(
            st.tuples(st.just("state"), st.sampled_from(["paused", "enrolling", "stopped", "finished"])),
            st.tuples(st.just("add"), arm_names),
            st.tuples(st.just("arm"), arm_names, st.sampled_from(["paused", "active", "retired"])),
            st.tuples(st.just("weight"), st.sampled_from([0.5, 0.9])),
            st.tuples(st.just("dial"), st.sampled_from([0.4, 0.6]), st.sampled_from(["average", "best-arm"])),
        )
    )
    def administer(self, what):
        """One rule for all of these: as many rules of their own would leave little room for asking and telling."""
        kind, *arguments = what
        changes = {
            "state": self.change_state,
            "add": self.add_arm,
            "arm": self.change_arm,
            "weight": self.change_weight,
            "dial": self.change_dial,
        }
        changes[kind](*arguments)

    def change_state(self, after):
        model, experiment = self.model, self.experiment
        calls = {
            "paused": experiment.pause,
            "enrolling": experiment.resume,
            "stopped": experiment.stop,
            "finished": experiment.finish,
        }
        error = None
        if model.state == "finished" and after != "finished":
            error = eq.ExperimentFinished
        elif model.state == "stopped" and after in ("paused", "enrolling"):
            error = eq.EnrolmentClosed
        elif model.state != "finished" and after == "finished":
            model.settle(self.now.now)  # which is kept even if finishing is refused
            states = {unit["state"] for unit in model.units.values()}
            if "held" in states:
                error = eq.RewardsHeld
            elif "waiting" in states and model.window is not None:
                error = eq.WindowsOpen
        self.attempt(error, calls[after])
        if error is None:
            model.n_events += model.state != after
            model.state = after

    def add_arm(self, name):
        model = self.model
        known = model.arms.get(name)
        error = None
        if model.state == "finished":
            error = eq.ExperimentFinished
        elif known is not None and known["state"] != "active":
            error = eq.InvalidInput
        self.attempt(error, lambda: self.experiment.add_arm(name))
        if error is None and known is None:  # a repetition changes nothing
            model.arms[name] = {"state": "active", "assigned": 0}
            model.n_events += 1

    def change_arm(self, name, after):
        model, experiment = self.model, self.experiment
        calls = {"paused": experiment.pause_arm, "active": experiment.resume_arm, "retired": experiment.retire_arm}
        error = model.refuses_arm_change(name, after)
        self.attempt(error, lambda: calls[after](name))
        if error is None:
            model.n_events += model.arms[name]["state"] != after
            model.arms[name]["state"] = after

    def change_weight(self, weight):
        self.turn((weight,), lambda: self.experiment.change_weight(weight))

    def change_dial(self, kept, about):
        self.turn((kept, about), lambda: self.experiment.change_dial(information_kept=kept, information_about=about))

    def turn(self, dial, call):
        model = self.model
        error = eq.ExperimentFinished if model.state == "finished" else None
        if error is None and model.dial is None:
            error = eq.InvalidInput  # this policy has none
        self.attempt(error, call)
        if error is None:
            model.n_events += model.dial != dial
            model.dial = dial

    # Reading

    @rule(elsewhere=st.booleans())
    def look(self, elsewhere):
        """Compare, perhaps as another process would, which remembers nothing, and go on there."""
        if elsewhere:
            self.experiment = self.reopened()
        self.check_status()

    def reopened(self):
        self.shared_store.states.clear()
        return eq.Experiment.open(self.shared_store, self.name)

    def check_status(self):
        """Counts, means and spreads are those of the model, to the last unit."""
        model, status = self.model, self.experiment.status()
        assert (status.state, status.n_events) == (model.state, model.n_events)
        assert [arm.arm for arm in status.arms] == list(model.arms)
        everything = []
        for arm in status.arms:
            expected, values = model.counts(arm.arm, self.now.now)
            assert {name: getattr(arm, name) for name in expected} == expected
            everything += values
            n = len(values)
            mean = math.fsum(values) / n if n else None
            assert_close(arm.mean, mean)
            spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
            if spread is not None:
                assert_close(arm.std, spread)
        for name in ("assigned", "rewarded", "pending", "held", "overdue", "defaulted", "dropped"):
            assert getattr(status, f"n_{name}") == sum(getattr(arm, name) for arm in status.arms)
        assert_close(status.average_reward, math.fsum(everything) / len(everything) if everything else None)

    def check_export(self):
        """The export is the model, row by row."""
        file = io.StringIO()
        assert self.experiment.export(file, "jsonl") == len(self.model.units)
        rows = [json.loads(line) for line in file.getvalue().splitlines()]
        assert [
            (row["unit"], row["arm"], row["decision"], row["state"], row["reward"], row["counted_reward"])
            for row in rows
        ] == [
            (name, unit["arm"], unit["number"], unit["state"], unit["reward"], self.model.counted_reward(unit))
            for name, unit in self.model.units.items()
        ]

    def teardown(self):
        if hasattr(self, "model"):
            self.check_status()
            self.check_export()
            verified = self.experiment.verify()
            assert (verified.n_events, verified.n_decisions) == (self.model.n_events, len(self.model.units))


def assert_close(got, expected):
    assert (got is None) == (expected is None)
    assert got is None or math.isclose(got, expected, rel_tol=1e-12, abs_tol=1e-15)


class Clock:
    """A clock that stands still until a sequence lets it go on."""

    def __init__(self):
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


def play(url, n_sequences, n_steps, part=0):
    """Run sequences on a store of their own and return how many there were."""
    clock = Clock()
    with eq.open_store(url, clock=clock) as store:

        @seed(part)
        class Machine(ExperimentMachine):
            pass

        Machine.shared_store, Machine.clock = store, clock
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=n_sequences, stateful_step_count=n_steps, suppress_health_check=list(HealthCheck)
            ),
        )
        return Machine.n_made


@pytest.mark.parametrize(
    ("part", "n_sequences"),
    [(part, N_SHORT) for part in range(2)]
    + [pytest.param(part, N_SEQUENCES, marks=pytest.mark.endurance) for part in range(N_PARTS)],
)
def test_sequences_give_what_a_simple_model_gives(part, n_sequences):
    assert play("memory:", n_sequences, 10, part) >= n_sequences


@pytest.mark.parametrize("n_sequences", short_and_full(15, 60))
def test_long_sequences_in_a_file_give_what_a_simple_model_gives(n_sequences, tmp_path):
    assert play(f"sqlite:///{tmp_path}/store.db", n_sequences, 40) >= n_sequences
