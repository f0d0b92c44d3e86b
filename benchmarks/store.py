"""What durable experiments cost: asks and tells beside bare statements that write the same rows, in one run.

    python benchmarks/store.py [--smoke]

On SQLite (WAL, synchronous=FULL) and on a PostgreSQL server started for it (fsync and synchronous_commit on). The bare
side holds the same locks, reads and writes the same rows of the same tables with prepared tuples, and commits as often;
it decides nothing, checks nothing and builds no answer. Both take turns, so that a slow minute hits both. If strace is
there, it watches that SQLite has synced its log before each answer.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _databases import databases
from _store_sides import BarePostgreSQL, BareSQLite, Ours
from _syncs import watch_syncs
from _timing import duration, show, verdict

import equipoise as eq

if TYPE_CHECKING:
    from collections.abc import Callable

    from _store_sides import Bare

GROUP = 64


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
