"""How long a simulated person of a plan takes: ours beside the strict rule, equal shares and the live experiment.

    python benchmarks/planner.py [--smoke]

Everything a live experiment has is simulated: people who come at random, a delay of 8 hours, 5 % missing rewards, 40
looks with intervals of all arms. Times of one thread are processor time, so that other processes count little; those of
two threads go by the clock on the wall. The peer takes every decision by the strict rule, as an experiment does.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import numpy as np
from _timing import duration, ratio, show, verdict

import equipoise as eq
from equipoise.planner import trials
from equipoise.planner.live_play import Clock, LivePlay
from equipoise.planner.paths import Paths
from equipoise.planner.population import Population
from equipoise.planner.trials import Way, default_looks, play
from equipoise.planner.worlds import World, new_world

HOURS = 3600.0
RATES = [0.30, 0.33, 0.42, 0.50, 0.36]
MOST_PER_PERSON = 1.2e-6
MOST_SECONDS, MOST_TRIALS_SECONDS, MOST_MEGABYTES = 10.0, 5.0, 200.0


def world_of(n_arms: int, n_people: int) -> World:
    """Return a world of yes/no arms that answer after eight hours, or in one of twenty cases never."""
    rates = RATES[:n_arms] if n_arms <= len(RATES) else np.linspace(0.3, 0.5, n_arms)
    return new_world(rates, per_day=[100] * (n_people // 100), delay=8 * HOURS, missing=0.05)


def settings_of(n_arms: int, **dial: Any) -> dict[str, Any]:
    """Return the settings of a way to assign."""
    return {"arms": [f"arm {i}" for i in range(n_arms)], "reward_range": (0, 1)} | dial


WAYS: dict[str, dict[str, Any]] = {
    "equal shares": {"policy": eq.Uniform()},
    "recommended, weight 0.9": {"reward_weight": 0.9},
    "recommended, all information kept": {"information_kept": 1.0},
    "recommended, 0.7 of the information kept": {"information_kept": 0.7},
    "`ForcingBalance`, windowed": {"policy": eq.ForcingBalance(reward_weight=0.9, tracking="windowed")},
}


def person_time(n_arms: int, way: dict[str, Any], n_people: int, *, looks: bool, strict: bool = False) -> float:
    """Return seconds of processor time per person; the median of three runs after one that loads the kernels."""
    world, plain = world_of(n_arms, n_people), Way.for_kernel

    def by_the_strict_rule(self: Way) -> Any:
        rule, design, setting, lives = plain(self)
        return rule, design, setting._replace(strict=True), lives

    at = default_looks(world.per_day.size) if looks else np.array([np.inf])
    times = []
    try:
        trials.Way.for_kernel = by_the_strict_rule if strict else plain  # type: ignore[method-assign]
        for seed in range(4):
            start = time.process_time()
            paths = play([world] * 10, [settings_of(n_arms, **way)], seed=seed, look_seconds=at, workers=1)
            times.append((time.process_time() - start) / int(paths.arrived[:, -1].sum()))
    finally:
        trials.Way.for_kernel = plain  # type: ignore[method-assign]
    return float(np.median(times[1:]))


def live_time(n_arms: int, n_people: int) -> float:
    """Return seconds per person of the same experiment, played through `Experiment` on a store in memory."""
    world, clock = world_of(n_arms, n_people), Clock()
    people = Population(world, seed=1)
    store = eq.open_store("memory:", clock=clock)
    settings = settings_of(n_arms, reward_weight=0.9)
    experiment = eq.Experiment.create(store, "plan", seed=people.experiment_seed, **settings)
    live = LivePlay(experiment, clock, people)
    start = time.process_time()
    live.play()
    return (time.process_time() - start) / people.n_people


def wall_time(
    n_arms: int, n_people: int, ways: list[dict[str, Any]], n_replications: int
) -> tuple[float, float, Paths]:
    """Return seconds on two threads by the clock on the wall, their processor time, and the paths."""
    worlds = [world_of(n_arms, n_people)] * n_replications
    start, processor = time.perf_counter(), time.process_time()
    paths = play(worlds, [settings_of(n_arms, **way) for way in ways], seed=1, workers=2)
    return time.perf_counter() - start, time.process_time() - processor, paths


def memory() -> float:
    """Return the most memory that the process had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    smoke = "--smoke" in sys.argv
    n_people, n_replications, n_trials = (300, 4, 10) if smoke else (3_000, 400, 1_000)
    rows, found = [], {}
    for n_arms in (3, 5, 20):
        for name, way in WAYS.items():
            plain = person_time(n_arms, way, n_people, looks=False)
            found[n_arms, name] = plain
            with_looks = person_time(n_arms, way, n_people, looks=True)
            strict = person_time(n_arms, way, n_people, looks=False, strict=True)
            floor = ratio(plain, found[n_arms, "equal shares"])
            times = [duration(one) for one in (plain, with_looks, strict)]
            rows.append([f"{n_arms} arms, {name}", *times[:2], floor, times[2], ratio(strict, plain)])
    columns = ["what", "a person", "with 40 looks", "equal shares' time", "strict rule", "strict / ours"]
    show(f"One simulated person of a plan, {n_people:,} people", columns, rows)
    ours, live = found[5, "recommended, weight 0.9"], live_time(5, 100 if smoke else 1_000)
    print(f"the same person through Experiment, in memory: {duration(live)}, {ratio(live, ours)} ours")

    ways = [WAYS["equal shares"], *({"information_kept": share} for share in (1.0, 0.9, 0.7, 0.5, 0.25))]
    first, _, _ = wall_time(5, n_people, ways, max(1, n_replications // 20))
    before = memory()
    whole, processor, _ = wall_time(5, n_people, ways, n_replications)
    more = memory() - before
    many, many_processor, _ = wall_time(3, 200 if smoke else 2_000, [{"reward_weight": 0.9}], n_trials)
    print(f"6 ways, {n_people:,} people: {max(1, n_replications // 20)} replications {first:.2f} s on two threads")
    print(f"  {n_replications} replications {whole:.2f} s, {processor:.2f} s of processors; {more:.0f} MiB more")
    print(f"{n_trials:,} trials of 2,000 people, three arms: {many:.2f} s, {many_processor:.2f} s of processors")
    verdict("microseconds a person, 5 arms, recommended", ours * 1e6, MOST_PER_PERSON * 1e6, at_most=True)
    verdict("seconds for 400 replications of 6 ways of 3,000 people", whole, MOST_SECONDS, at_most=True)
    verdict("seconds for 1,000 trials of 2,000 people", many, MOST_TRIALS_SECONDS, at_most=True)
    verdict("MiB for what is simulated", more, MOST_MEGABYTES, at_most=True)


if __name__ == "__main__":
    main()
