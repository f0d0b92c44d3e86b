"""Several writers at once."""

from __future__ import annotations

import math
import threading

import sqlalchemy as sa

from equipoise.experiment import Experiment
from equipoise.store.schema import events as events_table
from equipoise.testing.stores.case import RANDOM, StoreCase


class ManyWriters(StoreCase):
    """Several writers at once."""

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
