"""Contract tests that every store must pass, whatever its database; subclass `StoreContract` to test your own.

Do so in a pytest module and return the URL of an empty database; pytest finds the tests::

    class TestMine(StoreContract):
        def new_url(self):
            return f"sqlite:///{tempfile.mkdtemp()}/store.db"
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from equipoise import errors
from equipoise.experiment import (
    AddArm,
    Ask,
    Assignment,
    Correct,
    DropUnit,
    Experiment,
    ExperimentSummary,
    Tell,
    ToldReward,
    WaitForReward,
)
from equipoise.policies import Fixed, ForcingBalance, Uniform
from equipoise.store import Store, Transaction, open_store
from equipoise.store.schema import events as events_table
from equipoise.store.transaction import Key
from equipoise.testing.experiment_contract import ExperimentContract
from equipoise.testing.unit_contract import BALANCE, INFORMED, RANDOM, ExperimentCase, refused


class StoreCase(ExperimentCase):
    """Experiments in an empty store."""

    def new_url(self) -> str:
        """Return the URL of an empty database; `memory:` is a new one every time."""
        raise NotImplementedError

    @property
    def is_shared(self) -> bool:
        """Whether opening the URL again opens the same store."""
        return True

    def setup_method(self) -> None:
        """Start with an empty store."""
        super().setup_method()
        self.url = self.new_url()
        self.opened: list[Store] = []
        self.store = self.open()

    def teardown_method(self) -> None:
        """Close all connections."""
        for store in self.opened:
            store.close()

    def open(self) -> Store:
        """Open the store, or open it again."""
        store = open_store(self.url, clock=self.clock)
        self.opened.append(store)
        return store

    def new(self, name: str, **settings: Any) -> Experiment:
        """Create an experiment in the store."""
        return Experiment.create(self.store, name, who=self.author, **settings)

    def find(self, name: str) -> Experiment:
        """Open an experiment of the store."""
        return Experiment.open(self.store, name)

    def listed(self) -> list[ExperimentSummary]:
        """List the experiments of the store."""
        return Experiment.list(self.store)

    def reopened(self, experiment: Experiment) -> Experiment:
        """Return the experiment as a new process would find it."""
        if not self.is_shared:
            self.store.states.clear()
            return experiment
        return Experiment.open(self.open(), experiment.name)

    def tamper(self, statement: str, experiment: Experiment) -> None:
        """Change a table behind the experiment's back."""
        key = "id" if " experiments " in statement else "experiment"
        joint = " AND " if " WHERE " in statement else " WHERE "

        def work(transaction: Any) -> None:
            transaction.connection.exec_driver_sql(f"{statement}{joint}{key} = {experiment.number}")

        self.store.change(None, work)
        self.store.states.clear()


class Replaying(StoreCase):
    """Verify, rebuild and copy, also with damaged tables."""

    def test_verify_names_the_first_difference(self) -> None:
        """Whatever was tampered with: a decision, a probability, a reward, a statistic, a missing event."""
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
        """Damaged tables are restored."""
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
        """Its log, statistics and pending units are copied; the next decisions are the same."""
        experiment = self.create(policy=RANDOM, missing=WaitForReward(window_seconds=1000))
        self.play(experiment, 30)
        with open_store("memory:", clock=self.clock) as other:
            there = experiment.copy_to(other)
            assert there.status().arms == experiment.status().arms
            for number in range(10):
                assert there.ask(f"new-{number}").arm == experiment.ask(f"new-{number}").arm
            there.verify()
            with refused(errors.ExperimentExists):
                experiment.copy_to(other)  # the two copies have diverged
            back = Experiment.create(other, "back", arms=["a", "b"], policy=Uniform(), seed=1)
            back.ask_many(["x", "y"])
            back.copy_to(self.store).verify()

    def test_a_weight_that_was_solved_for_is_kept_and_verified(self) -> None:
        """It is compared with the one that the replay solves for, and copied; where none is needed there is none."""
        experiment = self.create(policy=INFORMED)
        self.play(experiment, 60)
        solved = {one.number: one.reward_weight for one in experiment.events() if one.reward_weight is not None}
        assert 30 < len(solved) < 60
        first = min(solved)
        experiment.verify()
        assert not experiment.rebuild()
        with open_store("memory:", clock=self.clock) as other:
            there = experiment.copy_to(other)
            assert {e.number: e.reward_weight for e in there.events() if e.reward_weight is not None} == solved
            there.verify()
        forced = next(one.number for one in experiment.events() if one.forced)
        for number, value in ((first, "NULL"), (first, repr(math.nextafter(solved[first], 1.0))), (forced, "0.5")):
            self.tamper(f"UPDATE events SET reward_weight = {value} WHERE number = {number}", experiment)  # noqa: S608
            with refused(errors.VerificationFailed, "should be decided by", "reward weight") as failed:
                experiment.verify()
            assert failed[0].event == number  # type: ignore[attr-defined]
            self.tamper(
                f"UPDATE events SET reward_weight = {solved.get(number)!r} WHERE number = {number}".replace(  # noqa: S608
                    "None", "NULL"
                ),
                experiment,
            )
            experiment.verify()

    def test_verify_knows_where_tracking_began(self) -> None:
        """It is recorded with each arm."""
        experiment = self.create(policy=Fixed(allocation=(0.25, 0.25, 0.5)))
        experiment.pause_arm("none")
        experiment.ask_many([f"a-{i}" for i in range(40)])
        experiment.resume_arm("none")
        experiment.ask("b")
        self.tamper("UPDATE arms SET tracked_from = tracked_from + 1 WHERE position = 0", experiment)
        with refused(errors.VerificationFailed, "tracked_from of arm 'line'"):
            experiment.verify()
        assert experiment.rebuild()
        experiment.verify()

    def test_each_request_can_succeed_or_fail_alone(self) -> None:
        """With `apply`, still in one transaction."""
        experiment = self.create()
        experiment.ask_many(["a", "b"])
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

    def test_attributes_may_hold_half_a_character(self) -> None:
        """Python can write a lone surrogate as JSON, although a service cannot read it."""
        experiment = self.create()
        experiment.ask("a", {"text": "\ud800"})
        again = self.reopened(experiment)
        assert list(again.events())[-1].details["attributes"] == {"text": "\ud800"}
        again.verify()
        self.compare_export(again)

    def test_ten_thousand_arms(self) -> None:
        """It works, if not as fast as three arms."""
        arms = [f"arm {i}" for i in range(10_000)]
        experiment = self.create(arms=arms, policy=ForcingBalance(reward_weight=0.9), floor=1e-5)
        experiment.ask_many([f"unit-{i}" for i in range(300)])
        experiment.tell_many({f"unit-{i}": float(i) for i in range(300)})
        experiment.ask("one more")
        again = self.reopened(experiment)
        assert again.ask("and one").new
        assert again.status().n_assigned == 302
        again.verify()


class ManyWriters(StoreCase):
    """Several writers at once."""

    def test_the_schema_forbids_two_assignments_and_two_rewards(self) -> None:
        """Even for code that bypasses this package."""
        experiment = self.create()
        experiment.ask("a")
        experiment.tell("a", 1.0)
        for kind in ("assigned", "rewarded"):
            row = {"experiment": experiment.number, "number": 99, "kind": kind, "at": 0, "unit": "a", "arm": 0}
            with self.store.database.engine.connect() as connection:
                try:
                    connection.execute(sa.insert(events_table).values(row))
                except sa.exc.IntegrityError:
                    connection.rollback()
                    continue
            raise AssertionError(f"two events {kind} for one unit")

    def test_two_handles_see_each_other(self) -> None:
        """Each plans with what the other has committed, arms and settings included."""
        if not self.is_shared:
            return
        here = self.create(policy=RANDOM)
        there = Experiment.open(self.open(), "fractions")
        single = self.create("single", policy=RANDOM)
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
        """There is no lost update and no error, on one experiment and on several."""
        shared, own = self.create("shared"), [self.create(f"own-{i}") for i in range(4)]
        problems: list[BaseException] = []

        def work(worker: int) -> None:
            try:
                for number in range(10):
                    # Workers race for the same units too.
                    shared.tell(shared.ask(f"unit-{number}-{worker % 2}").unit, float(number))
                    own[worker].ask_many([f"{number}-a", f"{number}-b"])
            except BaseException as problem:  # noqa: BLE001  (checked below)
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


class Keys(StoreCase):
    """The keys of the service, which live in the store."""

    def test_keys_are_kept_used_and_revoked(self) -> None:
        """The last use and the first revocation are kept, in whatever order they arrive."""
        old = Key("k-1", "ab" * 32, "reader", "ann", "fractions", 10, "root", 99)
        new = Key("k-2", "cd" * 32, "owner", "bob", None, 20)
        self.write(lambda transaction: transaction.add_key(new))
        self.write(lambda transaction: transaction.add_key(tuple(old)))
        assert self.keys() == [old, new]
        self.write(lambda transaction: transaction.touch_keys([("k-1", 30), ("k-2", 31), ("nobody", 32)]))
        self.write(lambda transaction: transaction.touch_keys([("k-1", 29), ("k-2", 35)]))
        self.write(lambda transaction: transaction.touch_keys([]))
        self.write(lambda transaction: transaction.revoke_key("k-1", 40))
        self.write(lambda transaction: transaction.revoke_key("k-1", 41))
        assert self.keys() == [old._replace(last_used_at=30, revoked_at=40), new._replace(last_used_at=35)]

    def test_no_two_keys_have_one_name(self) -> None:
        """A second key of the same id is an error, and the first is kept."""
        key = Key("k-1", "ab" * 32, "reader", "ann", None, 10)
        self.write(lambda transaction: transaction.add_key(key))
        try:
            self.write(lambda transaction: transaction.add_key(key._replace(role="owner")))
        except sa.exc.IntegrityError:
            pass
        else:
            raise AssertionError("two keys with one id")
        assert self.keys() == [key]

    def test_a_key_is_found_by_its_id(self) -> None:
        """A single key is read with all its fields."""
        keys = [Key(f"k-{i}", "ab" * 32, "reader", "ann", None, 10, expires_at=9) for i in range(3)]
        for key in keys:
            self.write(lambda transaction, key=key: transaction.add_key(key))  # type: ignore[misc]
        self.write(lambda transaction: transaction.revoke_key("k-1", 40))
        found = [self.store.read(lambda transaction, i=i: transaction.key(f"k-{i}")) for i in (1, 2, 3)]  # type: ignore[misc]
        assert found == [keys[1]._replace(revoked_at=40), keys[2], None]

    def test_new_and_revoked_keys_leave_a_mark(self) -> None:
        """Also at the same instant; using a key does not change the fingerprint."""
        marks = [self.mark()]
        for key in (Key("k-1", "ab" * 32, "reader", "ann", None, 10), Key("k-2", "ab" * 32, "reader", "ann", None, 10)):
            self.write(lambda transaction, key=key: transaction.add_key(key))  # type: ignore[misc]
            marks.append(self.mark())
        for name in ("k-1", "k-2"):
            self.write(lambda transaction, name=name: transaction.revoke_key(name, 40))  # type: ignore[misc]
            marks.append(self.mark())
        assert len(set(marks)) == len(marks)
        self.write(lambda transaction: transaction.touch_keys([("k-1", 50)]))
        assert self.mark() == marks[-1]

    def mark(self) -> object:
        """Return the fingerprint of the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys_mark())

    def keys(self) -> list[Key]:
        """Return the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys())

    def write(self, work: Callable[[Transaction], None]) -> None:
        """Write in a separate transaction."""
        self.store.change(None, work)


class StoreContract(Replaying, ManyWriters, Keys, ExperimentContract):
    """All contract tests for a store."""
