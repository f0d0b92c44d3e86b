"""How long pages of the console take with a million units, and whether people who look keep assignments waiting.

    python benchmarks/console.py [--smoke] [--units 1000000] [--postgresql] [--rounds 7] [--seconds 10]

A server process holds an experiment with this many units. Every page is asked for again and again, each time after one
more person, so that no rendering kept from before helps; and once more without, as all but the first viewer of an event
get it. Then units are assigned at 500 a second on an open schedule (a late answer counts from when it was due), with
and without 20 viewers whose pages keep themselves up to date as `live.js` does; both take turns, so that a slow minute
hits both, and the median of the ratios counts.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import random
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
from _databases import databases
from _timing import machine, verdict
from service import server

import equipoise as eq
from equipoise.console.page_table import PAGES
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from multiprocessing.synchronize import Event

NAME, ARMS, RATES = "messages", list("abcde"), (0.1, 0.15, 0.2, 0.25, 0.3)
DAYS, BATCH = 30, 5_000
"""They come evenly over a month, so that there are charts over time."""
MOST_PAGE, MOST_OVERVIEW, MOST_POLL, MOST_COLD, MOST_TIMES = 100.0, 30.0, 5.0, 1_000.0, 1.2
"""Goals in milliseconds: the 95th percentile of pages, of the overview and of a poll, and the first overview of a new
process; and how many times as long the 99th percentile of assignments may be with viewers."""
VIEWERS, VIEWED = 20, ("", "/compare", "/dial", "/log")
PER_SECOND, CONNECTIONS = 500, 32
SAME_ORIGIN = {"sec-fetch-site": "same-origin"}


def fill(url: str, units: int) -> str:
    """Make an experiment with this many units, nearly all of them rewarded, and return a key."""
    now = [datetime.now(UTC) - timedelta(days=DAYS)]
    with eq.open_store(url, clock=lambda: now[0]) as store:
        experiment = eq.Experiment.create(
            store, NAME, arms=ARMS, information_kept=0.7, reward_range=(0, 1), control="a", seed=1, floor=0.02
        )
        rng, rates, began = np.random.default_rng(2), dict(zip(ARMS, RATES, strict=True)), time.perf_counter()
        for first in range(0, units, BATCH):
            now[0] += timedelta(days=DAYS * min(BATCH, units - first) / units)
            asked = experiment.ask_many([f"u{i}" for i in range(first, min(first + BATCH, units))])
            chance = rng.random(len(asked))
            answered = asked[: max(1, round(0.98 * len(asked)))]
            experiment.tell_many([(one.unit, float(chance[i] < rates[one.arm])) for i, one in enumerate(answered)])
        experiment.timeline()  # readers keep sums by hour; a service in use has them
        print(f"{units:,} units made in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        return create_key(store, role="admin", name="pages")[1]


def visitor(address: str, key: str) -> httpx.Client:
    """Return a client that has signed in."""
    web = httpx.Client(base_url=f"{address}/console/", timeout=60)
    answer = web.post("sign-in", data={"key": key, "next": ""}, headers=SAME_ORIGIN)
    if answer.status_code != 303:
        raise RuntimeError(f"cannot sign in: {answer.status_code}")
    return web


def paths() -> list[str]:
    """Return the addresses of all pages that need no form before."""
    fill_in = {"name": NAME, "unit": "u77", "act": "stop", "verb": "stop"}
    found = []
    for page in PAGES:
        try:
            found.append(page.path.format(**fill_in))
        except (KeyError, IndexError):
            continue
    return [*found, f"e/{NAME}/people?list=waiting", f"e/{NAME}/people?prefix=u77", f"e/{NAME}/live?after=0"]


class Assigner:
    """Somebody who assigns one more unit at a time."""

    def __init__(self, address: str, key: str) -> None:
        self.client = httpx.Client(base_url=address, headers={"authorization": f"Bearer {key}"}, timeout=60)
        self.n = 0

    def one_more(self) -> None:
        self.n += 1
        self.client.post(f"/experiments/{NAME}/assignments", json={"unit": f"new{self.n}"}).raise_for_status()


def page_times(address: str, key: str, rounds: int) -> dict[str, tuple[float, float, float]]:
    """Return median and 95th percentile in milliseconds after one more person, and the median without."""
    web, assigner, found = visitor(address, key), Assigner(address, key), {}
    for path in paths():
        first = web.get(path)
        if first.status_code not in (200, 204):
            print(f"{path}: {first.status_code}", file=sys.stderr)
            continue
        fresh, kept = [], []
        for _ in range(rounds):
            assigner.one_more()
            for times in (fresh, kept):
                start = time.perf_counter()
                web.get(path).raise_for_status()
                times.append(1e3 * (time.perf_counter() - start))
        found[path] = (*(float(np.quantile(fresh, q)) for q in (0.5, 0.95)), statistics.median(kept))
    return found


async def _assign(address: str, key: str, seconds: float, per_second: int, prefix: str) -> list[float]:
    """Assign on an open schedule; return the milliseconds from when each request was due to its answer."""
    host, port = address.removeprefix("http://").split(":")
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection(host, int(port)))
    times: list[float] = []

    async def one(k: int, due: float) -> None:
        reader, writer = await free.get()
        body = b'{"unit":"%s-%d"}' % (prefix.encode(), k)
        head = f"POST /experiments/{NAME}/assignments HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
        writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        times.append(1e3 * (time.perf_counter() - due))
        if not answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 201")):
            raise RuntimeError(answer.decode())
        free.put_nowait((reader, writer))

    began, tasks = time.perf_counter() + 0.1, []
    for k in range(round(seconds * per_second)):
        due = began + k / per_second
        await asyncio.sleep(max(due - time.perf_counter(), 0.0))
        tasks.append(asyncio.create_task(one(k, due)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait()[1].close()
    return times


async def _view(address: str, key: str, until: Event) -> int:
    """Look at pages as their script does, and return how many were fetched."""
    fetched = 0

    async def viewer(number: int) -> None:
        nonlocal fetched
        page, event = f"e/{NAME}{VIEWED[number % len(VIEWED)]}", 0
        async with httpx.AsyncClient(base_url=f"{address}/console/", timeout=60, cookies=cookies) as web:
            await asyncio.sleep(2.0 * random.random())  # noqa: S311
            while not until.is_set():
                answer = await web.get(f"e/{NAME}/live", params={"after": event})
                if answer.status_code == 200:
                    (await web.get(page, headers={"x-equipoise-live": "1"})).raise_for_status()
                    event, fetched = answer.json()["event"], fetched + 1
                await asyncio.sleep(2.0 * (0.8 + 0.4 * random.random()))  # noqa: S311

    cookies = dict(visitor(address, key).cookies)
    await asyncio.gather(*(viewer(number) for number in range(VIEWERS)))
    return fetched


def view(address: str, key: str, until: Event, fetched: Any) -> None:
    """Be the viewers, in a process of their own."""
    fetched.value += asyncio.run(_view(address, key, until))


def with_and_without(address: str, key: str, rounds: int, seconds: float, per_second: int) -> None:
    """Print how much longer assignments take while somebody looks."""
    context = multiprocessing.get_context("spawn")
    quiet, watched, fetched = [], [], context.Value("i", 0)

    def worst(name: str) -> float:
        return float(np.quantile(asyncio.run(_assign(address, key, seconds, per_second, name)), 0.99))

    worst("warm")
    for number in range(rounds):
        quiet.append(worst(f"quiet{number}"))
        until = context.Event()
        viewers = context.Process(target=view, args=(address, key, until, fetched))
        viewers.start()
        time.sleep(min(seconds, 3.0))
        watched.append(worst(f"watched{number}"))
        until.set()
        viewers.join()
    ratios = [b / a for a, b in zip(quiet, watched, strict=True)]
    print(f"\n{per_second} assignments a second, {rounds} rounds of {seconds:g} s; p99 from when each was due:")
    print(f"  {statistics.median(quiet):.1f} ms; with {VIEWERS} viewers of {len(VIEWED)} pages ", end="")
    print(f"{statistics.median(watched):.1f} ms ({fetched.value:,} pages fetched)")
    print(f"  ratio {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    verdict("times as long with viewers", statistics.median(ratios), MOST_TIMES, at_most=True)


def measure(name: str, url: str, given: argparse.Namespace) -> None:
    """Print the figures of one database."""
    key = fill(url, given.units)
    with server(url) as address:
        web = visitor(address, key)
        start = time.perf_counter()
        web.get(f"e/{NAME}").raise_for_status()
        cold = 1e3 * (time.perf_counter() - start)
    print(f"\n{name}, {given.units:,} units; milliseconds of a page, as its client sees it\n")
    print("| page | after one more person, median | 95th percentile | again, median |\n|---|---:|---:|---:|")
    with server(url) as address:
        found = page_times(address, key, given.repeats)
        for path, (median, high, kept) in found.items():
            print(f"| `{path}` | {median:.1f} | {high:.1f} | {kept:.1f} |")
        print(f"\nThe first overview of a new process takes {cold:.0f} ms.")
        polls = {path: high for path, (_, high, _) in found.items() if "/live" in path}
        verdict(
            "ms, the slowest page (95th percentile)", max(one[1] for one in found.values()), MOST_PAGE, at_most=True
        )
        verdict("ms, the overview (95th percentile)", found[f"e/{NAME}"][1], MOST_OVERVIEW, at_most=True)
        verdict("ms, a poll (95th percentile)", max(polls.values()), MOST_POLL, at_most=True)
        verdict("ms, the first overview", cold, MOST_COLD, at_most=True)
        with_and_without(address, key, given.rounds, given.seconds, given.per_second)
        if url.startswith("sqlite"):
            wal = Path(url.removeprefix("sqlite:///") + "-wal")
            print(f"  WAL then: {wal.stat().st_size / 2**20:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=60, help="requests of each page")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--per-second", type=int, default=PER_SECOND)
    parser.add_argument("--postgresql", action="store_true", help="measure PostgreSQL too")
    given = parser.parse_args()
    if given.smoke:
        given.units, given.repeats, given.rounds, given.seconds, given.per_second = 300, 2, 1, 0.3, 50
    with tempfile.TemporaryDirectory() as directory, databases(Path(directory)) as made:
        for name, make in made.items():
            if name == "SQLite" or given.postgresql:
                measure(name, make("console"), given)
    print(f"Measured on {machine()}")


if __name__ == "__main__":
    main()
