"""How well a stated share of the information is kept, and how much reward is reached: the study of docs/dial-study.md.

    python benchmarks/dial.py [--smoke] [--runs 24] [--random 20] [--workers 2] [--out dial.json]

Plays what the file of results lacks (so it can be stopped and started again), writes it, and prints the tables of
docs/dial-study.md. Arms are those of `beyond.py`; rewards are paired, every policy meets the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _beyond_instances import PAPER, REAL, UNSEEN, paper_instances, random_instance, real_instances

import equipoise as eq
from equipoise.information import information_kept, weight_for_information

SEED, HORIZON = 2, 25_000
SHARES = (0.9, 0.7, 0.5, 0.25)
ABOUT = ("average", "every-arm", "best-arm")
OURS, PAPERS, FIXED = "PooledBalance", "ForcingBalance", "PooledBalance, true weight"
CHECKPOINTS = (4, 10, 20, 50)
"""Pulls per arm at which to look, besides round numbers."""
ALLOWED = 0.05
"""By how much the limit on the error may be exceeded on average, from 20 pulls per arm on."""


def policies(about: str, share: float, arms: Any) -> dict[str, eq.Policy]:
    """Return the policies to play: the recommended one, the paper's, and one that knows the right weight."""
    dial: dict[str, Any] = {"information_kept": share, "information_about": about}
    found: dict[str, eq.Policy] = {
        OURS: eq.PooledBalance(**dial, tracking="windowed"),
        PAPERS: eq.ForcingBalance(**dial),
    }
    if about == "average":
        weight = weight_for_information(arms.mean, arms.std, information_kept=share)
        found[FIXED] = eq.PooledBalance(reward_weight=weight, tracking="windowed")
    return found


def play(name: str, arms: Any, runs: int, horizon: int, workers: int | None) -> dict[str, Any]:
    """Return the figures of one instance."""
    n_arms = arms.n_arms
    rounds = {k * n_arms for k in CHECKPOINTS} | {1_000, 2_500, 5_000, 10_000, 25_000}
    steps = sorted(step for step in rounds if 4 * n_arms <= step <= horizon)
    rows = []
    for about in ABOUT:
        design = eq.optimal_allocation(arms.mean, arms.std, information_kept=1.0, information_about=about)
        for share in SHARES:
            best = eq.optimal_allocation(arms.mean, arms.std, information_kept=share, information_about=about)
            possible = float((best - design) @ arms.mean)
            for policy_name, policy in policies(about, share, arms).items():
                played = eq.simulate(policy, arms, steps[-1], runs, seed=SEED, checkpoints=steps, workers=workers)
                shares = played.pulls[0] / np.array(steps)[:, None]
                kept = information_kept(shares, arms.mean, arms.std, about=about)
                with np.errstate(divide="ignore"):
                    excess = np.sqrt(share / kept) - 1.0
                shortfall = (best - shares) @ arms.mean
                row = {
                    "about": about,
                    "information_kept": share,
                    "policy": policy_name,
                    "excess": _rounded(excess.mean(axis=0)),
                    "excess_se": _rounded(excess.std(axis=0, ddof=1) / np.sqrt(runs)),
                    "kept": _rounded(kept.mean(axis=0)),
                    "gain": _rounded(1.0 - shortfall.mean(axis=0) / possible if possible > 0 else shortfall[0] * 0 + 1),
                    "shortfall": _rounded((shortfall * np.sqrt(steps)).mean(axis=0) / float(np.mean(arms.std))),
                }
                if about == "average":
                    weight = weight_for_information(arms.mean, arms.std, information_kept=share)
                    regret = played.rescaled_regret(reward_weight=weight)[0]
                    row["regret"] = _rounded(regret.mean(axis=0))
                rows.append(row)
    return {"name": name, "n_arms": n_arms, "runs": runs, "checkpoints": steps, "rows": rows}


def _rounded(values: Any) -> list[float | None]:
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def instances(n_random: int) -> dict[str, tuple[str, Any]]:
    """Return group and arms by name; the instances of `beyond.py`, each once instead of once a weight."""
    chosen = [*paper_instances(), *real_instances(), *(random_instance(number) for number in UNSEEN[:n_random])]
    found: dict[str, tuple[str, Any]] = {}
    for one in chosen:
        found.setdefault(one.name.rsplit(",", 1)[0], (one.group, one.arms))
    return found


def look(results: list[dict[str, Any]], about: str, policy: str, at: Any) -> dict[str, np.ndarray]:
    """Return the figures of all instances and shares at the last checkpoint that `at(n_arms)` does not exceed."""
    columns: dict[str, list[float]] = {"excess": [], "gain": [], "regret": [], "information_kept": []}
    for one in results:
        wanted = at(one["n_arms"])
        if wanted > one["checkpoints"][-1] or wanted < one["checkpoints"][0]:
            continue
        place = max(k for k, step in enumerate(one["checkpoints"]) if step <= wanted)
        for row in one["rows"]:
            if row["about"] == about and row["policy"] == policy:
                for name in ("excess", "gain", "regret"):
                    value = row.get(name, [None] * (place + 1))[place]
                    columns[name].append(np.nan if value is None else value)
                columns["information_kept"].append(row["information_kept"])
    return {name: np.array(values) for name, values in columns.items()}


def print_tables(results: list[dict[str, Any]]) -> None:
    """Print the tables of docs/dial-study.md."""
    moments = {
        "4 K": lambda k: 4 * k,
        "20 K": lambda k: 20 * k,
        "n = 1,000": lambda k: 1_000 if k <= 50 else 10**9,
        "n = 5,000": lambda _: 5_000,
        "n = 25,000": lambda _: 25_000,
    }
    for policy in (OURS, PAPERS):
        print(f"\n{policy}\n")
        print("| about | people so far | limit exceeded by, mean | median | within 5% | reward reached, median |")
        print("|---|---:|---:|---:|---:|---:|")
        for about in ABOUT:
            for words, at in moments.items():
                found = look(results, about, policy, at)
                if not found["excess"].size:
                    continue
                excess, gain = found["excess"], found["gain"]
                within = f"{np.mean(excess <= ALLOWED):.0%} of {excess.size}"
                finite = excess[np.isfinite(excess)]
                typical = f"{finite.mean():+.1%} | {np.median(finite):+.1%}"
                print(f"| {about} | {words} | {typical} | {within} | {np.nanmedian(gain):.2f} |")
    print("\nBy share, PooledBalance\n")
    print("| about | information kept | 20 K: exceeded by, mean | n = 25,000: mean | reward reached, 25,000, median |")
    print("|---|---:|---:|---:|---:|")
    for about in ABOUT:
        early, late = (look(results, about, OURS, moments[words]) for words in ("20 K", "n = 25,000"))
        for share in SHARES if late["excess"].size else ():
            first, last = (some["excess"][some["information_kept"] == share] for some in (early, late))
            gain = np.nanmedian(late["gain"][late["information_kept"] == share])
            print(f"| {about} | {share} | {np.nanmean(first):+.1%} | {np.nanmean(last):+.1%} | {gain:.2f} |")
    print("\nRescaled regret at the true weight: solved weight / known weight\n")
    print("| people so far | solved, median | known, median | median ratio |")
    print("|---:|---:|---:|---:|")
    for words, at in moments.items():
        solved, known = (look(results, "average", policy, at)["regret"] for policy in (OURS, FIXED))
        if solved.size:
            ratio = np.nanmedian(solved / np.maximum(known, 1e-12))
            print(f"| {words} | {np.nanmedian(solved):.3f} | {np.nanmedian(known):.3f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=24, help="of each instance, share and policy")
    parser.add_argument("--random", type=int, default=20, help="how many random instances")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("dial.json"))
    chosen = parser.parse_args()
    arms, horizon = instances(chosen.random), HORIZON
    if chosen.smoke:
        chosen.runs, horizon = 4, 300
        chosen.out = Path(tempfile.mkdtemp()) / "dial.json"
        arms = {name: one for name, one in arms.items() if name.startswith(("five", "flu"))}
    done = json.loads(chosen.out.read_text(encoding="utf-8"))["instances"] if chosen.out.exists() else []
    known, start, results = {one["name"]: one for one in done}, time.perf_counter(), []
    for place, (name, (group, some)) in enumerate(arms.items()):
        found = known.get(name)
        if found is None or found["runs"] != chosen.runs:
            found = play(name, some, chosen.runs, horizon, chosen.workers) | {"group": group}
            spent = time.perf_counter() - start
            print(f"{place + 1}/{len(arms)} {name}, {spent:.0f} s", file=sys.stderr, flush=True)
        results.append(found)
        names = {one["name"] for one in results}
        _save(chosen.out, [*results, *(one for one in done if one["name"] not in names)], horizon)
    for group in (PAPER, REAL, "judging"):
        some_results = [one for one in results if one["group"] == group]
        if some_results and not chosen.smoke:
            print(f"\n## {group}: {len(some_results)} instances")
            print_tables(some_results)
    print("\n## All instances")
    print_tables(results)


def _save(path: Path, results: list[dict[str, Any]], horizon: int) -> None:
    partial = path.with_suffix(".partial")
    head = json.dumps({"seed": SEED, "horizon": horizon})[:-1]
    lines = ",\n".join(json.dumps(one) for one in results)
    partial.write_text(f'{head}, "instances": [\n{lines}\n]}}\n', encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    main()
