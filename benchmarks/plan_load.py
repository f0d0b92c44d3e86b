"""Whether planning slows the service down: latency of assignments with and without a plan at work beside them.

    python benchmarks/plan_load.py [--smoke] [--rounds 10] [--seconds 5] [--per-second 100]

A server on SQLite assigns a steady stream of new units over HTTP, one connection, while a plan is simulated and while
none is; both take turns, so that a slow minute hits both. What counts is the median, over rounds, of the ratio of the
99th percentiles, beside that of two stretches without a plan, which shows how much of it is chance. Then the plan is
cancelled, and the time until its process is gone is measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from _timing import machine, verdict
from service import server

import equipoise as eq
from equipoise.service.api_keys import create_key

MOST_TIMES, MOST_SECONDS = 1.3, 1.0


def large_plan(seed: int) -> eq.Plan:
    """Return a plan that keeps the process busy for longer than a round."""
    rates = {"plain": "25% to 35%", "call": "30% to 50%", "prize": "40% to 60%"}
    people = eq.People(per_day=200, start="2027-03-01", until="2027-12-31")
    return eq.Plan(arms=rates, people=people, goals=0.03, seed=seed)


class Service:
    """A server, as those who assign and those who plan use it."""

    def __init__(self, address: str, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        self.client = httpx.Client(base_url=address, headers=headers, timeout=60)
        self.n_units = 0

    def assign(self, seconds: float, per_second: float) -> float:
        """Return the 99th percentile of the latency of assignments at a steady pace, in milliseconds."""
        times, began = [], time.perf_counter()
        for k in range(max(round(seconds * per_second), 20)):
            time.sleep(max(began + k / per_second - time.perf_counter(), 0.0))
            self.n_units += 1
            start = time.perf_counter()
            self.client.post("/experiments/speed/assignments", json={"unit": f"u{self.n_units}"}).raise_for_status()
            times.append(1e3 * (time.perf_counter() - start))
        return float(np.quantile(times, 0.99))

    def plan(self, seed: int) -> str:
        """Submit a plan, and wait until its process is at work, which takes only what others leave."""
        answer = self.client.post("/plans", json={"plan": large_plan(seed).to_dict(), "seconds": 60})
        answer.raise_for_status()
        identity = str(answer.json()["id"])
        for _ in range(600):
            if self.client.get(f"/plans/{identity}").json()["state"] == "working":
                time.sleep(1.0)
                return identity
            time.sleep(0.5)
        raise TimeoutError("the plan did not start")

    def cancel(self, identity: str) -> float:
        """Cancel a plan, and return the seconds until the answer, which comes when its process has been ended."""
        start = time.perf_counter()
        self.client.delete(f"/plans/{identity}").raise_for_status()
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--per-second", type=float, default=100.0)
    given = parser.parse_args()
    rounds, seconds = (1, 0.2) if given.smoke else (given.rounds, given.seconds)
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory) / 'speed.db'}"
        with eq.open_store(url) as store:
            eq.Experiment.create(store, "speed", arms=["a", "b", "c"], information_kept=0.7, seed=1)
            key = create_key(store, role="admin", name="speed")[1]
        with server(url) as address:
            service = Service(address, key)
            service.assign(seconds, given.per_second)
            quiet, again, planning, cancelled = [], [], [], []
            for number in range(rounds):
                quiet.append(service.assign(seconds, given.per_second))
                again.append(service.assign(seconds, given.per_second))
                identity = service.plan(number)
                planning.append(service.assign(seconds, given.per_second))
                cancelled.append(service.cancel(identity))
    times, chance = ([b / a for a, b in zip(quiet, one, strict=True)] for one in (planning, again))
    print(f"99th percentile of assignments, {rounds} rounds of {seconds:g} s at {given.per_second:g} a second:")
    print(f"  without a plan {statistics.median(quiet):.1f} ms, with one at work {statistics.median(planning):.1f} ms")
    for name, ratios in (("with a plan over without", times), ("without over without", chance)):
        print(f"  {name}: {statistics.median(ratios):.2f} times, from {min(ratios):.2f} to {max(ratios):.2f}")
    print(f"  cancelled in {1e3 * statistics.median(cancelled):.0f} ms, at most {1e3 * max(cancelled):.0f} ms")
    print(f"Measured on {machine()}")
    verdict("times as long at the 99th percentile", statistics.median(times), MOST_TIMES, at_most=True)
    verdict("seconds until a plan is cancelled", max(cancelled), MOST_SECONDS, at_most=True)


if __name__ == "__main__":
    main()
