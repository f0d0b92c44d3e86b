"""Do reports keep their promise on real rewards? Replay experiments adaptively, by resampling their rows, and count.

    python benchmarks/real_rewards.py DIRECTORY [--runs 300] [--people 3000] [--out real.json]
    python benchmarks/real_rewards.py --smoke

DIRECTORY has CSV files, perhaps compressed, with the columns `arm` and `reward`, one row per person. The rows of each
arm are taken for the whole population, so its mean is known. PooledBalance assigns people whose rewards are drawn from
them, and `eq.analyse` reports on what it sees. A promise is kept in a run if all intervals of a kind hold together.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from _timing import machine
from _trend_play import play

import equipoise as eq
from equipoise.analysis.report import analyse

MOST_ARMS = 25
CONFIDENCE = 0.95
SETTINGS = {"w = 0.5": {"reward_weight": 0.5}, "70 % of the information": {"information_kept": 0.7}}


def opened(path: Path) -> Any:
    """Open a file of text, compressed or not."""
    return gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="")


def read_rewards(path: Path) -> dict[str, Any]:
    """Return the rewards of each arm; of many arms, those with most rows."""
    found = defaultdict(list)
    with opened(path) as file:
        for row in csv.DictReader(file):
            if row.get("reward", "") != "":
                found[row["arm"]].append(float(row["reward"]))
    largest = sorted(found, key=lambda arm: -len(found[arm]))[:MOST_ARMS]
    return {arm: np.array(found[arm]) for arm in largest if len(found[arm]) > 1}


def has_rows(path: Path) -> bool:
    """Return whether a file has one row per person."""
    with opened(path) as file:
        return {"arm", "reward"} <= set(next(csv.reader(file), []))


def kept(report: Any, truth: dict[str, float]) -> dict[str, bool]:
    """Return which promises a report kept."""

    def holds(low: float | None, high: float | None, value: float) -> bool:
        return (low is None or low <= value) and (high is None or value <= high)

    def gaps(pairs: Any) -> bool:
        return all(holds(pair.low, pair.high, truth[pair.arm] - truth[pair.other]) for pair in pairs)

    found = {
        "means": all(holds(arm.low, arm.high, truth[arm.arm]) for arm in report.comparison.arms),
        "differences": gaps(report.comparison.differences),
        "differences over the same people": gaps(report.same_people.differences),
        "best arm": max(truth, key=lambda arm: truth[arm]) in report.comparison.may_be_best,
    }
    if not report.at_end.refused:
        found["means at the end"] = all(holds(one.low, one.high, truth[one.arm]) for one in report.at_end.means)
        found["differences at the end"] = gaps(report.at_end.differences)
    return found


def study(name: str, rewards: dict[str, Any], runs: int, people: int) -> list[dict[str, Any]]:
    """Return how often each promise was kept, with and without a declared range."""
    names = list(rewards)
    truth = {arm: float(values.mean()) for arm, values in rewards.items()}
    pooled = np.concatenate(list(rewards.values()))
    bounds = float(pooled.min()), float(pooled.max())
    rows = []
    for words, dial in SETTINGS.items():
        policy = eq.PooledBalance(tracking="windowed", **dial)
        counts: dict[tuple[str, str], list[bool]] = defaultdict(list)
        for run in range(runs):
            rng = np.random.default_rng([run, len(names)])
            draws = np.column_stack([rng.choice(values, people) for values in rewards.values()])
            arm, reward, chances = play(policy, np.zeros((people, len(names))), draws, run)
            frame = {"arm": [names[i] for i in arm], "reward": reward}
            frame |= {f"p{i}": chances[:, i] for i in range(len(names))}
            columns = {one: f"p{i}" for i, one in enumerate(names)}
            for declared, reward_range in (("range declared", bounds), ("no range", None)):
                report = analyse(
                    frame, probabilities=columns, arms=names, reward_range=reward_range, budget=people, **_weight(dial)
                )
                for promise, holds in kept(report, truth).items():
                    counts[declared, promise].append(holds)
        for (declared, promise), values in counts.items():
            share = float(np.mean(values))
            rows.append(
                {
                    "data": name,
                    "arms": len(names),
                    "dial": words,
                    "range": declared,
                    "promise": promise,
                    "kept": share,
                    "standard_error": math.sqrt(max(share * (1 - share), 1e-12) / len(values)),
                    "runs": len(values),
                }
            )
    return rows


def _weight(dial: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in dial.items() if name == "reward_weight"}


def made_up() -> dict[str, dict[str, Any]]:
    """Return rewards to try the study on without data."""
    rng = np.random.default_rng(0)
    return {
        "made up": {name: np.round(100 * rng.beta(shape, 3, 500)) for name, shape in (("a", 2), ("b", 3), ("c", 4))}
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--people", type=int, default=3_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    if options.smoke:
        options.runs, options.people = 2, 300
    if options.directory is None and not options.smoke:
        parser.error("give the directory with the data, or --smoke")
    data = made_up()
    if options.directory is not None:
        paths = [path for path in sorted(options.directory.iterdir()) if ".csv" in path.suffixes and has_rows(path)]
        data = {path.name.split(".")[0]: read_rewards(path) for path in paths}
    rows = []
    for name, rewards in data.items():
        rows += study(name, rewards, options.runs, options.people)
        for row in [one for one in rows if one["data"] == name]:
            error = f"{100 * row['kept']:5.1f} % +- {100 * row['standard_error']:.1f}"
            print(f"{name:16} {row['dial']:24} {row['range']:15} {row['promise']:34} {error}", flush=True)
    if options.out:
        options.out.write_text(json.dumps({"machine": machine(), "confidence": CONFIDENCE, "rows": rows}, indent=1))
    bad = [row for row in rows if row["kept"] + 3 * row["standard_error"] < CONFIDENCE]
    print(f"{len(bad)} of {len(rows)} promises kept in less than {CONFIDENCE:.0%} of runs, by three standard errors")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
