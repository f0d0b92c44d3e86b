"""Measure how long an analysis takes: a look at the arms, a comparison, and a report on a million decisions.

    python benchmarks/analysis.py [--units 1000000] [--smoke]

A look is what `status` needs of the evidence: intervals of all arms, and which may be best. Its floor is one interval
per arm as SciPy computes it for a fixed number of rewards. The floor of a report is reading the rows of the log.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
from _timing import duration, machine, seconds_per_call
from scipy import stats as scipy_stats

import equipoise as eq
from equipoise.analysis.best_arm import may_be_best
from equipoise.analysis.comparisons import compare
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import arm_failures

BATCH = 5_000


def look(stats: eq.ArmStats) -> Any:
    """Return what a status says of the arms."""
    evidence = Evidence.of(stats, reward_range=(0, 1))
    failures = arm_failures(0.05, stats.n_arms, stats.n_arms)
    return evidence.intervals(failures), may_be_best(evidence, 0.05)


def ordinary(stats: eq.ArmStats) -> Any:
    """Return the t interval of every arm."""
    error = stats.std / np.sqrt(stats.pulls)
    return scipy_stats.t.interval(0.95, stats.pulls - 1, loc=stats.mean, scale=error)


def measured_arms(n_arms: int, rewards: int) -> eq.ArmStats:
    """Return the statistics of arms with rates from 2 to 30 %."""
    rng = np.random.default_rng(1)
    arm = np.repeat(np.arange(n_arms), rewards)
    reward = rng.random(arm.size) < np.repeat(np.linspace(0.02, 0.3, n_arms), rewards)
    return eq.ArmStats.from_rewards(arm, reward.astype(float), n_arms)


def filled_experiment(units: int) -> eq.Experiment:
    """Return an experiment with five arms and this many units, all of them rewarded, in memory."""
    experiment = eq.Experiment.create(
        "memory:", "report", arms=list("abcde"), reward_weight=0.5, seed=1, reward_range=(0, 1)
    )
    rng, rates = np.random.default_rng(2), dict(zip("abcde", (0.1, 0.15, 0.2, 0.25, 0.3), strict=True))
    for first in range(0, units, BATCH):
        asked = experiment.ask_many([f"u{i}" for i in range(first, min(first + BATCH, units))])
        chance = rng.random(len(asked))
        experiment.tell_many([(one.unit, float(chance[i] < rates[one.arm])) for i, one in enumerate(asked)])
    return experiment


def read_rows(experiment: eq.Experiment) -> int:
    """Read all rows of the log, as any pass over it must."""
    statement = "SELECT kind, arm, decision, reward, probability, at FROM events WHERE experiment = ? ORDER BY number"
    return experiment.store.read(
        lambda transaction: sum(len(rows) for rows in transaction.stream(statement, experiment.number))
    )


def once(call: Any) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--units", type=int, default=1_000_000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    units, budget = (2_000, 0.05) if options.smoke else (options.units, 2.0)
    rows = []
    for n_arms in (2, 5, 22):
        stats = measured_arms(n_arms, 500)
        names = [f"arm {i}" for i in range(n_arms)]
        floor = seconds_per_call(lambda stats=stats: ordinary(stats), budget=budget)
        seen = seconds_per_call(lambda stats=stats: look(stats), budget=budget)
        evidence = Evidence.of(stats, reward_range=(0, 1))
        compared = seconds_per_call(lambda e=evidence, n=names: compare(e, n), budget=budget)
        rows += [(f"a look at {n_arms} arms", seen, floor), (f"a comparison of {n_arms} arms", compared, floor)]
    experiment = filled_experiment(units)
    small = filled_experiment(200)
    small.report()  # loads and compiles what it needs
    floor = once(lambda: read_rows(experiment))
    rows.append((f"a report on {units:,} decisions, 5 arms", once(experiment.report), floor))
    print("| | time | floor | ratio |\n|---|---:|---:|---:|")
    for what, seconds, least in rows:
        print(f"| {what} | {duration(seconds)} | {duration(least)} | {seconds / least:.2g} |")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"largest memory {memory:,.0f} MiB; {machine()}")


if __name__ == "__main__":
    main()
