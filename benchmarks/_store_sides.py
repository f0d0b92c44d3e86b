"""The two sides that `store.py` compares: our asks and tells, and bare statements that write the same rows."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import equipoise as eq
from equipoise.store import schema

ARMS = ["number line", "pie", "fraction wall", "story", "none"]
EVENT_COLUMNS = ", ".join(schema.events.columns.keys())
N_EVENT_COLUMNS = len(schema.events.columns)


def create(store: eq.Store, name: str) -> eq.Experiment:
    return eq.Experiment.create(store, name, arms=ARMS, policy=eq.ForcingBalance(reward_weight=0.9), seed=1)


class Ours:
    """Asks and tells of one experiment, one after another."""

    def __init__(self, store: eq.Store, name: str = "speed") -> None:
        self.experiment = create(store, name)
        self.n_asked = self.n_told = 0

    def ask(self, count: int) -> None:
        first, self.n_asked = self.n_asked, self.n_asked + count
        if count == 1:
            self.experiment.ask(f"unit-{first}")
        else:
            self.experiment.ask_many([f"unit-{number}" for number in range(first, self.n_asked)])

    def tell(self, count: int) -> None:
        first, self.n_told = self.n_told, self.n_told + count
        if count == 1:
            self.experiment.tell(f"unit-{first}", float(first % 7))
        else:
            self.experiment.tell_many([(f"unit-{number}", float(number % 7)) for number in range(first, self.n_told)])


class Bare:
    """The same rows in the same tables by the fewest statements that could be written by hand."""

    mark = "?"
    lock = "SELECT n_events, n_decisions FROM experiments WHERE id = {number}"
    read = ""

    def __init__(self, store: eq.Store) -> None:
        self.number = create(store, "bare").number
        self.n_asked = self.n_told = 0
        self.n_events = 1

    def ask(self, count: int) -> None:
        self.write("assigned", range(self.n_asked, self.n_asked + count))
        self.n_asked += count

    def tell(self, count: int) -> None:
        self.write("rewarded", range(self.n_told, self.n_told + count))
        self.n_told += count

    def write(self, kind: str, numbers: range) -> None:
        units, now = [f"unit-{number}" for number in numbers], 1_800_000_000_000_000
        events: list[tuple[Any, ...]] = []
        for number, unit in zip(numbers, units, strict=True):
            self.n_events += 1
            told: tuple[Any, ...] = (None, 1.0, 0, None) if kind == "assigned" else (float(number % 7), None, None, 1)
            events.append(
                (
                    self.number,
                    self.n_events,
                    kind,
                    now,
                    None,
                    unit,
                    number % 5,
                    number,
                    *told,
                    None,
                    None,
                    b"salt" * 2,
                    None,
                    b"hash" * 4,
                    None,
                )
            )
        arms = [
            (number, number, 1.5, 1e-17, 2.5, 1e-17, self.n_events, number % 5)
            for number in range(numbers[0], numbers[0] + min(5, len(numbers)))
        ]
        self.transaction(units, events, arms, (self.n_events, self.n_asked))

    def transaction(self, units: list[str], events: list[Any], arms: list[Any], head: tuple[int, int]) -> None:
        raise NotImplementedError

    def statements(self) -> tuple[str, str, str]:
        """Return what inserts events, updates arms and updates the experiment."""
        insert = f"INSERT INTO events ({EVENT_COLUMNS}) VALUES ({', '.join([self.mark] * N_EVENT_COLUMNS)})"  # noqa: S608
        names = ("assigned", "pulls", "reward_high", "reward_low", "square_high", "square_low", "changed")
        changes = ", ".join(f"{name} = {self.mark}" for name in names)
        update = f"UPDATE arms SET {changes} WHERE experiment = {self.number} AND position = {self.mark}"  # noqa: S608
        advance = f"UPDATE experiments SET n_events = {self.mark}, n_decisions = {self.mark} WHERE id = {self.number}"  # noqa: S608
        return insert, update, advance


class BareSQLite(Bare):
    """Through the sqlite3 module."""

    read = (
        "SELECT unit, kind, arm, decision, at, reward FROM json_each(?) AS wanted "
        "CROSS JOIN events INDEXED BY one_event_of_a_kind_per_unit WHERE experiment = {number} AND unit = wanted.value"
    )

    def __init__(self, url: str) -> None:
        with eq.open_store(url) as store:
            super().__init__(store)
        self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        self.connection.execute("PRAGMA synchronous = FULL")
        assert self.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        self.insert, self.update, self.advance = self.statements()
        self.lock, self.read = self.lock.format(number=self.number), self.read.format(number=self.number)

    def transaction(self, units: list[str], events: list[Any], arms: list[Any], head: tuple[int, int]) -> None:
        run = self.connection.execute
        run("BEGIN IMMEDIATE")
        run(self.lock).fetchone()
        run(self.read, (json.dumps(units),)).fetchall()
        self.connection.executemany(self.insert, events)
        self.connection.executemany(self.update, arms)
        run(self.advance, head)
        run("COMMIT")


class BarePostgreSQL(Bare):
    """Through psycopg, with COPY where that is faster."""

    mark = "%s"
    lock = Bare.lock + " FOR UPDATE"
    # Unit by unit and planned each time, as ours is: a plan that was made for a short log and kept would be slow.
    read = (
        "SELECT found.* FROM unnest(%s::text[]) AS wanted(name) CROSS JOIN LATERAL (SELECT unit, kind, arm, decision, "
        "at, reward FROM events WHERE experiment = {number} AND unit = wanted.name OFFSET 0) AS found"
    )

    def __init__(self, url: str) -> None:
        import psycopg

        with eq.open_store(url) as store:
            super().__init__(store)
        self.connection = psycopg.connect(url)
        self.connection.execute("SET enable_seqscan = off")
        self.connection.commit()
        self.insert, self.update, self.advance = self.statements()
        self.lock, self.read = self.lock.format(number=self.number), self.read.format(number=self.number)

    def transaction(self, units: list[str], events: list[Any], arms: list[Any], head: tuple[int, int]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(self.lock).fetchone()
            cursor.execute(self.read, (units,), prepare=False).fetchall()
            if len(events) == 1:
                cursor.execute(self.insert, events[0])
                cursor.execute(self.update, arms[0])
            else:
                with cursor.copy(f"COPY events ({EVENT_COLUMNS}) FROM STDIN") as copy:
                    for event in events:
                        copy.write_row(event)
                cursor.executemany(self.update, arms)
            cursor.execute(self.advance, head)
        self.connection.commit()
