"""How often the alerts of healthy experiments ring, and how soon those of sick ones do: see docs/live/alerts.md.

    python benchmarks/alerts.py [--smoke] [--experiments 10000] [--sick 1000] [--out alerts.json]

Plays whole experiments, thousands at once, and decides every check once a day as `Experiment.health` does, with the
same functions. Prints how many healthy experiments ever had a problem or a note, by
check, and after how many days those in which something is wrong had a problem.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _alert_stalls import ENROLMENT_WORLDS, stalls
from _alert_worlds import FLOOR, WINDOW_HOURS, Days, World, play
from numpy.typing import NDArray

from equipoise.analysis.evidence import Evidence
from equipoise.monitoring.draw_checks import DRAWS, LASTING_DAYS, TRACKING, draws_level, tracking_level
from equipoise.monitoring.draws import draw_evidence
from equipoise.monitoring.jumps import Moments, influence, kurtosis, mean_jump, variance_jump
from equipoise.monitoring.proportions import Excess, change, evidence_of_more, excess, tally
from equipoise.monitoring.reward_checks import (
    DELAY_BY_ARM,
    DELAY_DRIFT,
    MISSING,
    MISSING_BY_ARM,
    delay_by_arm_level,
    delay_drift_level,
    missing_by_arm_level,
    missing_level,
)
from equipoise.monitoring.sums import AGES
from equipoise.monitoring.value_checks import REWARD_JUMP, UNUSUAL_REWARD, influence_level, jump_level

CHECKS = (MISSING_BY_ARM, MISSING, DELAY_DRIFT, DELAY_BY_ARM, REWARD_JUMP, UNUSUAL_REWARD, DRAWS, TRACKING)
NULL = (
    World("all alike, 5 % missing"),
    World("20 % missing", missing=(0.2,) * 5),
    World("adaptive shares", adaptive=True),
    World("adaptive shares, weeks", adaptive=True, weekly=True, missing=(0.2,) * 5),
    World("normal rewards, adaptive", rewards="normal", adaptive=True),
    World("waiting times", rewards="waiting times"),
    World("rare yes", rewards="rare yes"),
    World("20 people a day", people=20.0),
)
HEAVY = World("log-normal rewards (not in the budget)", rewards="log-normal")
SICK = (
    (MISSING_BY_ARM, World("smallest arm 15 % missing, others 5 %", missing=(0.05,) * 4 + (0.15,))),
    (MISSING_BY_ARM, World("smallest arm 30 % missing, others 5 %", missing=(0.05,) * 4 + (0.30,))),
    (MISSING_BY_ARM, World("largest arm 10 % missing, others 5 %", missing=(0.10,) + (0.05,) * 4)),
    (MISSING, World("missing 5 %, from day 30 15 %", later_missing=0.15)),
    (DELAY_DRIFT, World("rewards after 9 h, from day 30 31 h", later_hours=31.0)),
    (DELAY_BY_ARM, World("smallest arm answers after 31 h, others 9 h", hours=(9.0,) * 4 + (31.0,))),
    (REWARD_JUMP, World("smallest arm varies twice as much from day 30", rewards="normal", widen=(1.0,) * 4 + (2.0,))),
    (REWARD_JUMP, World("largest arm 0.6 sd higher from day 30", rewards="normal", shift=(0.6,) + (0.0,) * 4)),
    (UNUSUAL_REWARD, World("one reward 100 sd away on day 30", rewards="normal", outlier=100.0)),
    (DRAWS, World("smallest arm given 1.3 times as often as on record", bias=1.3, since=0)),
    (DRAWS, World("smallest arm given 0.7 times as often as on record", bias=0.7, since=0)),
    (TRACKING, World("smallest arm given 3 times as often as wanted", bias=3.0, since=0)),
)
_CHUNK = 500


def first_days(days: Days, least: int) -> dict[str, NDArray[np.float64]]:
    """Return the day on which each check of each experiment first reached a level; infinity if it never did.

    `least` is the level: 1 for a note or a problem, 2 for a problem.
    """
    n, n_days, _ = days.assigned.shape
    first = {check: np.full(n, np.inf) for check in CHECKS}
    final = int(WINDOW_HOURS // 24)
    missing = tally(days.assigned, days.due_missing).running()
    more_missing = evidence_of_more(days.assigned, days.due_missing)
    by_age = [
        (
            tally(days.assigned, days.told[..., place]).running(),
            evidence_of_more(days.assigned, days.assigned - days.told[..., place]),
        )
        for place in range(len(AGES))
    ]
    for day in range(1, n_days + 1):
        found = {
            MISSING_BY_ARM: _missing_by_arm(missing, more_missing, day, final) >= least,
            MISSING: _missing(days, day, final) >= least,
            DELAY_DRIFT: _delay_drift(days, day) >= least,
            DELAY_BY_ARM: _delay_by_arm(by_age, day) >= least,
            REWARD_JUMP: _jumps(days, day) >= least,
            UNUSUAL_REWARD: _unusual(days, day) >= least,
            DRAWS: _draws(days, day) >= least,
            TRACKING: _tracking(days, day) >= least,
        }
        for check, problem in found.items():
            first[check] = np.minimum(first[check], np.where(problem, day, np.inf))
    # The grace period: nothing is said before a day is over and 100 people came.
    people = days.assigned.sum(axis=2).cumsum(axis=1)
    ready = 1 + (people < 100).sum(axis=1)
    return {check: np.where(np.isfinite(found), np.maximum(found, ready), np.inf) for check, found in first.items()}


def _missing_by_arm(running: Any, evidence: NDArray[np.float64], day: int, final: int) -> NDArray[np.int64]:
    last = day - final - 1
    if last < 0:
        return np.zeros(running.units.shape[0], np.int64)
    sums = type(running)(*(one[:, last] for one in running))
    level, _ = missing_by_arm_level(excess(sums), evidence[:, last], sums)
    return level.max(axis=-1)


def _missing(days: Days, day: int, final: int) -> NDArray[np.int64]:
    end = max(day - final, 0)
    split = max(end - 7, 0)
    units, missing = days.assigned.sum(axis=2), days.due_missing.sum(axis=2)
    counts = [
        part.sum(axis=1) for rows in (slice(split, end), slice(split)) for part in (units[:, rows], missing[:, rows])
    ]
    level, _ = missing_level(change(*counts), counts[0], counts[2], day)
    return level


def _final(age: int, day: int) -> int:
    """Return how many days of people are old enough, as hours of arrival are counted."""
    return max(day - -(-age // 24), 0)


def _delay_drift(days: Days, day: int) -> NDArray[np.int64]:
    units = days.assigned.sum(axis=2)
    counts, weekly = [], []
    for place, age in enumerate(AGES):
        end = _final(age, day)
        if age > WINDOW_HOURS or end == 0:
            continue
        told = days.told[..., place].sum(axis=2)
        split = max(end - 3, 0)
        begin = max(split - 14, 0)
        recent, before = slice(split, end), slice(begin, split)
        counts.append([one[:, rows].sum(axis=1) for rows in (recent, before) for one in (units, told)])
        same = [slice(split - back, end - back) for back in (7, 14) if split - back >= 0]
        usual = [sum((one[:, rows].sum(axis=1) for rows in same), np.zeros(units.shape[0])) for one in (units, told)]
        weekly.append([*counts[-1][:2], *usual])
    if not counts:
        return np.zeros(units.shape[0], np.int64)
    columns, same_hours = (np.moveaxis(np.array(one), 0, -1) for one in (counts, weekly))
    level, _ = delay_drift_level(change(*columns), change(*same_hours), columns[0], columns[2], day)
    return level.max(axis=-1)


def _delay_by_arm(by_age: list[tuple[Any, NDArray[np.float64]]], day: int) -> NDArray[np.int64]:
    found, evidence, units, others = [], [], [], []
    for (running, wealth), age in zip(by_age, AGES, strict=True):
        end = _final(age, day)
        if age > WINDOW_HOURS or end == 0:
            continue
        sums = type(running)(*(one[:, end - 1] for one in running))
        found.append(excess(sums))
        evidence.append(wealth[:, end - 1])
        units.append(sums.units)
        others.append(sums.all_units - sums.units)
    if not found:
        return np.zeros(by_age[0][1].shape[0], np.int64)
    every = Excess(*(np.stack(parts, axis=-2) for parts in zip(*found, strict=True)))
    level, _ = delay_by_arm_level(every, *(np.stack(one, axis=-2) for one in (evidence, units, others)))
    return level.max(axis=(-1, -2))


def _moments(days: Days, rows: slice) -> Moments:
    return Moments(*(one[:, rows].sum(axis=1) for one in (days.counted, days.totals, days.squares)))


def _jumps(days: Days, day: int) -> NDArray[np.int64]:
    split = max(day - 7, 0)
    recent, before = _moments(days, slice(split, day)), _moments(days, slice(split))
    every = (days.counted, days.totals, days.squares, days.cubes, days.fourths)
    spread = variance_jump(recent, before, kurtosis(*(one[:, :day].sum(axis=1) for one in every)))
    mean_level, spread_level, _ = jump_level(mean_jump(recent, before), spread, recent, before)
    return np.maximum(mean_level, spread_level).max(axis=-1)


def _unusual(days: Days, day: int) -> NDArray[np.int64]:
    rewards = _moments(days, slice(day))
    n, n_arms = rewards.n.shape
    level = np.zeros((n, n_arms), np.int64)
    # The two rewards furthest out on either side of each day, by their distance from the mean; the experiment keeps the
    # furthest of each hour.
    ends = np.concatenate([one[:, :day] for one in (days.lowest, days.low, days.high, days.highest)], axis=1)
    with np.errstate(invalid="ignore"):
        distance = np.where(np.isfinite(ends), np.abs(ends - rewards.mean[:, None]), -1.0)
    order = np.argsort(distance, axis=1)[:, -2:]
    extreme = np.take_along_axis(ends, order[:, -1:], axis=1)[:, 0]
    furthest, following = (np.take_along_axis(distance, order[:, [one]], axis=1)[:, 0] for one in (-1, -2))
    with np.errstate(divide="ignore", invalid="ignore"):
        lead = np.where(following > 0, furthest / following, np.inf)
    known = (furthest >= 0) & (rewards.n >= 30)
    extreme = np.where(known, extreme, 0.0)
    # Intervals take long, and are at least two standard errors wide: most rewards need none.
    with np.errstate(divide="ignore", invalid="ignore"):
        least = 2.0 * np.sqrt(rewards.variance / rewards.n)
    near = known & (influence_level(influence(rewards, extreme, least), rewards.n, lead) >= 1)
    if near.any():
        picked = Moments(*(one[near] for one in rewards))
        evidence = Evidence.from_summary(picked.n, picked.mean, np.sqrt(picked.variance))
        low, high = evidence.intervals(0.05 / n_arms)
        moved = influence(picked, extreme[near], np.maximum(high - picked.mean, picked.mean - low))
        level[near] = influence_level(moved, picked.n, lead[near])
    return level.max(axis=-1)


def _draws(days: Days, day: int) -> NDArray[np.int64]:
    decisions = days.assigned[:, :day].sum(axis=(1, 2))[:, None] * np.ones(days.assigned.shape[2])
    inverse, squares = days.inverses[:, :day].sum(axis=1), days.inverse_squares[:, :day].sum(axis=1)
    evidence = draw_evidence(decisions, inverse, squares, np.full(decisions.shape[1], FLOOR))
    return draws_level(evidence, decisions, inverse)[0].max(axis=-1)


def _tracking(days: Days, day: int) -> NDArray[np.int64]:
    rows, last = slice(max(day - 7, 0), day), slice(max(day - LASTING_DAYS, 0), day)
    given = days.assigned[:, rows]
    people, wanted = given.sum(axis=2, keepdims=True), days.wanted[:, rows]
    variance = (people * wanted * (1 - wanted)).sum(axis=1)
    every = days.assigned[:, :day].cumsum(axis=1)[:, last]
    so_far = every / every.sum(axis=2, keepdims=True) - days.wanted[:, last]
    return tracking_level(given.sum(axis=1), (people * wanted).sum(axis=1), variance, so_far, day).max(axis=-1)


def rings(world: World, n: int, seed: int, least: int) -> dict[str, NDArray[np.float64]]:
    """Return the first days of n experiments of a world."""
    rng = np.random.default_rng([seed, *world.name.encode()])
    parts = [first_days(play(world, min(_CHUNK, n - done), rng), least) for done in range(0, n, _CHUNK)]
    return {check: np.concatenate([part[check] for part in parts]) for check in CHECKS}


def main() -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--experiments", type=int, default=10_000)
    parser.add_argument("--sick", type=int, default=1_000)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    healthy, sick = (50, 20) if chosen.smoke else (chosen.experiments, chosen.sick)
    results: dict[str, Any] = {"healthy": {}, "sick": {}, "stalls": {}}
    started = time.perf_counter()
    print(f"Healthy experiments that ever had a problem or a note, of {healthy:,}:")
    for world in (*NULL[: 2 if chosen.smoke else None], HEAVY):
        found = rings(world, healthy, 1, 1)
        counts = {check: int(np.isfinite(days).sum()) for check, days in found.items()}
        counts["any"] = int(np.isfinite(np.array(list(found.values()))).any(axis=0).sum())
        results["healthy"][world.name] = counts
        print(f"  {world.name:40} " + "  ".join(f"{check} {count}" for check, count in counts.items()), flush=True)
    print(f"Experiments in which something is wrong, {sick:,} of each: found in 60 days, median day")
    for check, world in SICK[: 3 if chosen.smoke else None]:
        days = rings(world, sick, 2, 2)[check]
        share, median = float(np.isfinite(days).mean()), float(np.median(days))
        before = float((days <= world.since).mean()) if world.since and median > world.since else 0.0
        results["sick"][world.name] = {"check": check, "found": share, "median": median, "before": before}
        print(f"  {world.name:55} {check:18} {share:7.2%}  day {median:g}", flush=True)
    print("Enrolment, hour by hour:")
    for stall_world in ENROLMENT_WORLDS:
        count, delay = stalls(stall_world, healthy if stall_world.stop is None else sick)
        results["stalls"][stall_world.name] = {"rang": count, "hours": delay}
        print(f"  {stall_world.name:55} rang in {count:,}" + (f", after {delay:.1f} h" if delay else ""), flush=True)
    print(f"{time.perf_counter() - started:.0f} s")
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(results, indent=1) + "\n")
    within = all(
        count <= 0.001 * healthy or chosen.smoke
        for counts in list(results["healthy"].values())[:-1]
        for check, count in counts.items()
        if check != "any"
    )
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
