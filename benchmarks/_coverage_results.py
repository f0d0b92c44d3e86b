"""Measure coverage and width from the runs of `coverage.py`, and keep the figures in a file."""

from __future__ import annotations

import json
import math
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from _coverage_instances import Instance, choosing, judging
from _coverage_runs import (
    APART,
    ARMS,
    AVERAGED,
    BEST,
    FORMER,
    FORMER_APART,
    GUARANTEED,
    JOINT,
    PAIRS,
    Played,
    play,
    write_former_intervals,
)
from _timing import machine, seconds_per_call
from scipy import stats

import equipoise as eq
from equipoise._types import FloatArray
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.fixed_sample import differences_at_end, means_at_end
from equipoise.kernels import arm_evidence
from equipoise.kernels.arm_evidence import COUNT, MEAN, ROWS, SKEW, STD, write_differences, write_intervals
from equipoise.stats import ArmStats

SEED, FAILURE = 15, 0.05
RUNS_FOR_WIDTHS, RUNS_FOR_JOINT_WIDTHS, RUNS_AT_END = 1_000, 40, 2_000
"""Widths vary little from run to run, so fewer runs do; joint intervals take long to solve."""

Result = dict[str, Any]


def measure(path: Path, runs: int, workers: int | None, only: str = "", *, smoke: bool = False) -> Result:
    """Return the results of all instances: those in the file, and those played now."""
    state = _state()
    done = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = {one["name"]: one for one in done.get("instances", ())} if done.get("state") == state else {}
    wanted, start = [one for one in choosing() + judging() if only in one.name], time.perf_counter()
    found: list[Result] = []
    head = {
        "version": eq.__version__,
        "machine": machine(),
        "seed": SEED,
        "failure_probability": FAILURE,
        "runs": runs,
        "state": state,
    }
    for place, one in enumerate(wanted):
        n_runs = max(10, round(runs * one.share))
        result = known.get(one.name)
        if result is None or result["runs"] != n_runs:
            result = study(one, n_runs, workers or os.cpu_count() or 1)
            spent = time.perf_counter() - start
            print(f"{place + 1}/{len(wanted)} {one.name}, {n_runs} runs, {spent:.0f} s", file=sys.stderr, flush=True)
        found.append(result)
        names = {some["name"] for some in found}
        _save(path, head | {"look_ms": None}, [*found, *(some for some in known.values() if some["name"] not in names)])
    results = head | {"look_ms": look_milliseconds(0.02 if smoke else 1.0)}
    _save(path, results, found)
    return results | {"instances": found}


def study(one: Instance, runs: int, workers: int) -> Result:
    """Return the figures of one instance."""
    played = play(one, runs, seed=SEED, failure=FAILURE, workers=workers)
    n_pairs = one.n_arms * (one.n_arms - 1) / 2
    threshold = {
        ARMS: math.log(2.0 * one.n_arms / FAILURE),
        FORMER: 1.0,
        PAIRS: math.log(2.0 * n_pairs / FAILURE),
        JOINT: math.log(2.0 * n_pairs / FAILURE),
        BEST: -math.log(FAILURE),
    }
    looks = []
    for place, people in enumerate(one.checkpoints):
        missed = (played.peaks[:, place] >= [threshold[k] for k in range(len(threshold))]).mean(axis=0)
        row: Result = {"people": people, "arms_missed": missed[ARMS], "former_missed": missed[FORMER]}
        row |= widths(played.snapshots[:RUNS_FOR_WIDTHS, place], FAILURE / one.n_arms)
        if one.of_pairs:
            row["pairs_missed"] = missed[PAIRS]
            row |= pair_widths(played.snapshots[:RUNS_FOR_WIDTHS, place], FAILURE / n_pairs, False, "pairs")
            if one.is_bounded:
                row["guaranteed_pairs_missed"] = missed[JOINT]
                few = played.snapshots[:RUNS_FOR_JOINT_WIDTHS, place]
                row |= pair_widths(few, FAILURE / n_pairs, True, "guaranteed_pairs")
        if one.of_best:
            row["best_missed"] = missed[BEST]
        row |= at_end(one, played.snapshots[:RUNS_AT_END, place])
        looks.append({name: _rounded(value) for name, value in row.items()})
    result: Result = {"name": one.name, "group": one.group, "n_arms": one.n_arms, "reward_weight": one.weight}
    result |= {"runs": runs, "range": [one.low, one.high] if one.is_bounded else None, "looks": looks}
    if one.of_best:
        result["certified"] = certified(played)
    return result


def certified(played: Played) -> Result:
    """Return the median number of people until the best arm is certified, by each way; None if half never were."""
    ways = {"evidence": AVERAGED, "guaranteed": GUARANTEED, "former_apart": FORMER_APART, "apart": APART}
    found: Result = {}
    for name, which in ways.items():
        times = played.certified[:, which].astype(float)
        times[times == 0] = np.inf
        median = float(np.median(times))
        found[name] = median if math.isfinite(median) else None
        found[f"{name}_share"] = _rounded(np.isfinite(times).mean())
    return found


def columns(snapshots: FloatArray) -> FloatArray:
    """Return the moments of all runs side by side, as one set of arms."""
    return np.ascontiguousarray(snapshots.transpose(1, 0, 2).reshape(ROWS, -1))


def widths(snapshots: FloatArray, failure: float) -> Result:
    """Return half-widths as multiples of the t interval's for one look, averaged over arms and runs.

    An arm counts where both have an interval.
    """
    arms, (runs, _, n_arms) = columns(snapshots), snapshots.shape
    low, high, former_low, former_high = (np.full(arms.shape[1], np.nan) for _ in range(4))
    write_intervals(arms, np.full(arms.shape[1], failure), low, high)
    write_former_intervals(arms, failure, former_low, former_high)
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = stats.t.ppf(1.0 - failure / 2.0, arms[COUNT] - 1.0) * arms[STD] / np.sqrt(arms[COUNT])
        ours, former = 0.5 * (high - low), 0.5 * (former_high - former_low)
        ratio = np.where(usual > 0, ours / usual, np.nan)
        former_ratio = np.where((usual > 0) & np.isfinite(former), former / usual, np.nan)
        of_former = np.where(np.isfinite(former), ours / former, np.nan)
    shown = np.isfinite(ratio)
    return {
        "shown": shown.mean(),
        "width": _mean(ratio),
        "width_se": _error(ratio.reshape(runs, n_arms)),
        "former_width": _mean(former_ratio),
        "width_of_former": _mean(of_former),
        "width_of_former_se": _error(of_former.reshape(runs, n_arms)),
    }


def pair_widths(snapshots: FloatArray, failure: float, guaranteed: bool, name: str) -> Result:
    """Return half-widths of all differences as multiples of Welch's interval for one look."""
    n_arms = snapshots.shape[2]
    first, second = (part.astype(np.int64) for part in np.triu_indices(n_arms, 1))
    ratios, ends = [], np.empty((4, first.size))
    for arms in snapshots:
        arms = np.ascontiguousarray(arms)
        write_differences(arms, first, second, np.full(first.size, failure), guaranteed, ends)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise = arms[STD] ** 2 / arms[COUNT]
            freedom = (noise[first] + noise[second]) ** 2 / (
                noise[first] ** 2 / (arms[COUNT, first] - 1) + noise[second] ** 2 / (arms[COUNT, second] - 1)
            )
            usual = stats.t.ppf(1.0 - failure / 2.0, freedom) * np.sqrt(noise[first] + noise[second])
            ratios.append(np.where(usual > 0, 0.5 * (ends[1] - ends[0]) / usual, np.nan))
    ratio = np.array(ratios)
    ratio[~np.isfinite(ratio)] = np.nan
    return {
        f"{name}_shown": np.isfinite(ratio).mean(),
        f"{name}_width": _mean(ratio),
        f"{name}_width_se": _error(ratio),
    }


def at_end(one: Instance, snapshots: FloatArray) -> Result:
    """Return how often the intervals for a number of people declared beforehand cover the truth."""
    truth, n_arms = np.array(one.mean), one.n_arms
    values = (0.0, 1.0) if "Bernoulli" in one.name else None
    hits, pair_hits, all_hits, all_pairs_hits = [], [], [], []
    settings: dict[str, Any] = {"failure_probability": FAILURE, "two_values": values}
    for arms in snapshots:
        summary = arms[COUNT], arms[MEAN], arms[STD]
        for simultaneous, found, found_pairs in ((False, hits, pair_hits), (True, all_hits, all_pairs_hits)):
            means = means_at_end(*summary, skewness=arms[SKEW], simultaneous=simultaneous, **settings)
            found.append([mean.low <= truth[mean.arm] <= mean.high for mean in means])
            if n_arms <= 5:
                gaps = differences_at_end(*summary, simultaneous=simultaneous, **settings)
                found_pairs.append([gap.low <= truth[gap.arm] - truth[gap.other] <= gap.high for gap in gaps])
    found: Result = {"end_covered": np.mean(hits), "end_all_covered": np.all(all_hits, axis=1).mean()}
    if pair_hits:
        found |= {
            "end_pairs_covered": np.mean(pair_hits),
            "end_all_pairs_covered": np.all(all_pairs_hits, axis=1).mean(),
        }
    return found


def look_milliseconds(budget: float) -> float:
    """Return how long one look at 22 arms takes: their evidence, from exact sums, and simultaneous intervals."""
    rng, n_arms = np.random.default_rng(SEED), 22
    status = ArmStats(n_arms)
    for arm in range(n_arms):
        for reward in rng.beta(2.0, 5.0, 300):
            status.update(arm, float(reward))
    each = np.full(n_arms, FAILURE / n_arms)
    seconds = seconds_per_call(lambda: Evidence.of(status, reward_range=(0.0, 1.0)).intervals(each), budget=budget)
    return float(f"{1e3 * seconds:.3g}")


def _mean(values: FloatArray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _error(values: FloatArray) -> float:
    """Return the standard error of the mean; rows are runs, whose arms depend on each other."""
    known = np.isfinite(values)
    deviations = np.where(known, values - _mean(values), 0.0).sum(axis=1)
    return float(np.sqrt((deviations**2).sum()) / max(known.sum(), 1))


def _rounded(value: Any) -> Any:
    if isinstance(value, (int, np.integer)):
        return int(value)
    return float(f"{value:.5g}") if np.isfinite(value) else None


def _state() -> int:
    """Return a number that changes with the kernels of the evidence, on which all results depend."""
    folder = Path(arm_evidence.__file__).parent
    names = ("arm_evidence.py", "t_mixture.py", "wealth.py", "decision.py")
    return zlib.crc32(b"".join((folder / name).read_bytes() for name in names))


def _save(path: Path, head: Result, instances: list[Result]) -> None:
    partial = path.with_suffix(".partial")
    lines = ",\n".join(json.dumps(one) for one in instances)
    partial.write_text(f'{json.dumps(head)[:-1]}, "instances": [\n{lines}\n]}}\n', encoding="utf-8")
    partial.replace(path)
