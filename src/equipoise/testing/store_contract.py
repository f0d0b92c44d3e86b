"""The contract every store must keep: what an experiment promises, whatever database it lives in.

Subclass `StoreContract` in a pytest module and say how to get an empty database; pytest finds the rest::

    class TestMine(StoreContract):
        def new_url(self):
            return f"sqlite:///{tempfile.mkdtemp()}/store.db"
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from equipoise import errors
from equipoise.experiment import DefaultReward, Experiment
from equipoise.policies import Fixed, ForcingBalance, Uniform
from equipoise.store.schema import events as events_table
from equipoise.store.transaction import Key
from equipoise.testing.experiment_contract import Life, Replaying
from equipoise.testing.store_case import RANDOM, StoreCase, refused
from equipoise.testing.unit_contract import MissingRewards, Shares, Units

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.store import Transaction


class Outside(StoreCase):
    """Whatever comes from outside: a clear error, or correct work."""

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


class ManyWriters(StoreCase):
    """Several writers at once."""

    def test_the_schema_forbids_two_assignments_and_two_rewards(self) -> None:
        """Even to code that does not go through us."""
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
        """What one commits, the other plans with, arms and settings included."""
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


class Keys(StoreCase):
    """The keys of the service, which live in the store."""

    def test_keys_are_kept_used_and_revoked(self) -> None:
        """The last use and the first revocation stand, in whatever order they are told."""
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
        """A second key of the same id is an error, and the first stays."""
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
        """Alone, with all that is known of it."""
        keys = [Key(f"k-{i}", "ab" * 32, "reader", "ann", None, 10, expires_at=9) for i in range(3)]
        for key in keys:
            self.write(lambda transaction, key=key: transaction.add_key(key))  # type: ignore[misc]
        self.write(lambda transaction: transaction.revoke_key("k-1", 40))
        found = [self.store.read(lambda transaction, i=i: transaction.key(f"k-{i}")) for i in (1, 2, 3)]  # type: ignore[misc]
        assert found == [keys[1]._replace(revoked_at=40), keys[2], None]

    def test_new_and_revoked_keys_leave_a_mark(self) -> None:
        """Also at the same instant; a use leaves none."""
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
        """Return the mark of the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys_mark())

    def keys(self) -> list[Key]:
        """Return the keys in the store."""
        return self.store.read(lambda transaction: transaction.keys())

    def write(self, work: Callable[[Transaction], None]) -> None:
        """Write in a transaction of its own."""
        self.store.change(None, work)


class StoreContract(Units, MissingRewards, Shares, Life, Replaying, ManyWriters, Outside, Keys):
    """What must hold for every store."""
