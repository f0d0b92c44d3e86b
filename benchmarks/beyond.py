"""PooledBalance against ForcingBalance and others on some 240 instances: where it is better, and where worse.

    python benchmarks/beyond.py [--smoke] [--runs 200] [--workers 2] [--out beyond.json]

Plays what the file of results lacks (so it can be stopped and started again), writes it, and prints the tables of
docs/pooled-balance.md. Rewards are paired: every policy meets the same.
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
from _beyond_instances import JUDGING, PAPER, TUNING, Instance, all_instances
from _beyond_tables import print_tables

import equipoise as eq
from equipoise.paper.items.outlook import RIVALS, rivals

SEED, HORIZON = 1, 25_000
OURS, PAPERS = "PooledBalance", "eta = 1"
FORCINGS = (1.0, 0.3, 0.1)
RANDOMISED = "PooledBalance, windowed"
ABLATIONS: dict[str, dict[str, Any]] = {
    "PooledBalance, as it is": {},
    "without pooling": {"pooling": False},
    "difference tracking": {"tracking": "difference"},
    "without caution": {"caution": 0.0},
    "without curiosity": {"curiosity": 0.0},
    "3 first rewards": {"first_rewards": 3},
    "8 first rewards": {"first_rewards": 8},
    "without forcing": {"forcing": 0.0},
}
N_ABLATED, ABLATED_RUNS = 20, 50
"""Ablations are played on so many of the judging instances in so many runs."""
SAMPLED = ("ThompsonBalance", *RIVALS)
FEW, SAMPLED_RUNS, FEW_SAMPLED = 20, 50, 10
"""Runs, outside the paper's arms, of rivals that take ten times as long as the others; none where rules were tuned.
Those that sample take another three times as long, and have their own numbers on the paper's arms and elsewhere."""


def policies(instance: Instance, number: int) -> dict[str, eq.Policy]:
    """Return the policies to play on an instance."""
    weight = {"reward_weight": instance.reward_weight}
    found: dict[str, eq.Policy] = {f"eta = {eta:g}": eq.ForcingBalance(**weight, forcing=eta) for eta in FORCINGS}
    found[OURS] = eq.PooledBalance(**weight)
    if instance.group == TUNING:
        return found
    found[RANDOMISED] = eq.PooledBalance(**weight, tracking="windowed")
    found["ThompsonBalance"] = eq.ThompsonBalance(**weight, draws=1)
    found |= rivals(instance.arms, instance.reward_weight)
    found["OptimisticBalance"] = eq.OptimisticBalance(**weight)
    found["NaiveUCB"] = eq.NaiveUCB(**weight)
    found["UCBExplore"] = eq.UCBExplore(**weight, horizon=HORIZON, scale=4 * float(instance.arms.std.max()))
    if instance.group == JUDGING and number % 100 < N_ABLATED:
        found |= {name: eq.PooledBalance(**weight, **changed) for name, changed in ABLATIONS.items()}
    return found


def runs_of(name: str, instance: Instance, runs: int) -> int:
    """Return in how many runs a policy is played on an instance."""
    if name in ABLATIONS:
        return min(runs, ABLATED_RUNS)
    if name in SAMPLED:
        return min(runs, SAMPLED_RUNS if instance.group == PAPER else FEW_SAMPLED)
    if name in (OURS, *(f"eta = {eta:g}" for eta in FORCINGS)) or instance.group == PAPER:
        return runs
    return min(runs, FEW)


def play(
    instance: Instance,
    wanted: dict[str, eq.Policy],
    known: dict[str, Any],
    runs: int,
    horizon: int,
    workers: int | None,
) -> dict[str, Any]:
    """Return the figures of all policies on one instance; differences are to the paper's rule, run by run.

    Figures that are known already are kept.
    """
    steps = instance.checkpoints(horizon)
    regret = {}
    for name, policy in wanted.items():
        if name != PAPERS and name in known:
            continue
        count = runs_of(name, instance, runs)
        played = eq.simulate(policy, instance.arms, steps[-1], count, seed=SEED, checkpoints=steps, workers=workers)
        regret[name] = played.rescaled_regret(reward_weight=instance.reward_weight)[0]
    found = {name: _figures(values, regret[PAPERS][: len(values)]) for name, values in regret.items()}
    figures = {name: found[name] if name in found else known[name] for name in wanted}
    return {
        "name": instance.name,
        "group": instance.group,
        "n_arms": instance.arms.n_arms,
        "reward_weight": instance.reward_weight,
        "smallest_share": instance.smallest_share,
        "runs": runs,
        "checkpoints": steps,
        "policies": figures,
    }


def _figures(regret: Any, paper: Any) -> dict[str, Any]:
    difference, n = regret - paper, len(regret)
    draws = np.random.default_rng(0).integers(n, size=(200, n))
    tails = np.quantile(regret[draws], 0.95, axis=1) - np.quantile(paper[draws], 0.95, axis=1)
    rows = {
        "mean": regret.mean(axis=0),
        "quantile": np.quantile(regret, 0.95, axis=0),
        "difference": difference.mean(axis=0),
        "difference_se": difference.std(axis=0, ddof=1) / np.sqrt(n),
        "quantile_difference_se": tails.std(axis=0, ddof=1),
    }
    return {"runs": n} | {name: [float(f"{value:.4g}") for value in values] for name, values in rows.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=200, help="of each instance")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--out", type=Path, default=Path("beyond.json"))
    chosen = parser.parse_args()
    instances, horizon = all_instances(), HORIZON
    if chosen.smoke:
        chosen.runs, horizon = 4, 300
        chosen.out = Path(tempfile.mkdtemp()) / "beyond.json"
        some = ("five", "two", "flu", "random 1,", "random 302,")
        instances = [one for one in instances if one.name.startswith(some)]
    done = json.loads(chosen.out.read_text(encoding="utf-8"))["instances"] if chosen.out.exists() else []
    known, start = {one["name"]: one for one in done}, time.perf_counter()
    results = []
    for place, instance in enumerate(instances):
        number = int(instance.name.split(",")[0].split()[1]) if instance.name.startswith("random") else 0
        wanted, found = policies(instance, number), known.get(instance.name)
        if found is None or found["runs"] != chosen.runs or not wanted.keys() <= found["policies"].keys():
            before = found["policies"] if found is not None and found["runs"] == chosen.runs else {}
            found = play(instance, wanted, before, chosen.runs, horizon, chosen.workers)
            spent = time.perf_counter() - start
            print(f"{place + 1}/{len(instances)} {instance.name}, {spent:.0f} s", file=sys.stderr, flush=True)
        results.append(found)
        # Those of before that are still to come are kept as well: this may be stopped at any moment.
        names = {one["name"] for one in results}
        kept = [one for one in done if one["name"] not in names]
        _save(chosen.out, {"seed": SEED, "horizon": horizon, "instances": [*results, *kept]})
    print_tables(results, OURS, PAPERS, RANDOMISED, list(ABLATIONS))


def _save(path: Path, data: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    lines = ",\n".join(json.dumps(one) for one in data["instances"])
    head = json.dumps({key: value for key, value in data.items() if key != "instances"})[:-1]
    partial.write_text(f'{head}, "instances": [\n{lines}\n]}}\n', encoding="utf-8")
    partial.replace(path)


if __name__ == "__main__":
    main()
