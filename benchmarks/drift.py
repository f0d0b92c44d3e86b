"""What a trend over time does to estimates, and what differences over the same people make good: coverage and width.

    python benchmarks/drift.py [--smoke] [--runs 1000] [--out drift.json]

Rewards of all arms rise linearly by a multiple of their standard deviation over the experiment, so differences between
arms stay what they are. Every policy of `PLAYERS` meets the same rewards; add another there to compare it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _timing import machine
from _trend_play import play

import equipoise as eq
from equipoise.analysis.drift import over_the_same_people, trend
from equipoise.analysis.fixed_sample import differences_at_end
from equipoise.analysis.t_quantiles import upper_quantile
from equipoise.kernels.t_mixture import t_radius

STD, STEPS, DELTA = 0.3, 4_000, 0.05
TRENDS = (0.0, 1 / 3, 1.0, 3.3)
"""In standard deviations over the experiment."""
ARMS = {"2 arms": (0.0, 0.1), "5 arms": (0.0, 0.025, 0.05, 0.075, 0.1)}
LOOKS = 30
"""How often intervals that hold at all times are looked at, and the check for drift."""

POLICIES = {
    "PooledBalance, w = 0.9": eq.PooledBalance(reward_weight=0.9, tracking="windowed"),
    "the same, drift declared": eq.PooledBalance(reward_weight=0.9, tracking="windowed", drift="declared"),
    "the same, drift detected": eq.PooledBalance(reward_weight=0.9, tracking="windowed", drift="detected"),
}
PLAYERS: dict[str, Callable[[Any, Any, int], tuple[Any, Any, Any]]] = {
    name: partial(play, policy) for name, policy in POLICIES.items()
}
"""Each takes the means at every step, the deviations of each arm's rewards and a seed; see `_trend_play.play`."""


def examine(means: Any, arms: Any, rewards: Any, probability: Any, looks: Any) -> dict[str, float]:
    """Return what is right and wrong in one experiment; averages over pairs where there are several."""
    n_arms = len(means)
    pairs = [(a, b) for a in range(n_arms) for b in range(a)]
    truth = np.array([means[a] - means[b] for a, b in pairs])
    found: dict[str, float] = {}
    pulls = np.bincount(arms, minlength=n_arms)
    mean = np.bincount(arms, rewards, n_arms) / pulls
    std = np.sqrt(np.bincount(arms, (rewards - mean[arms]) ** 2, n_arms) / (pulls - 1))
    plain = differences_at_end(pulls, mean, std, failure_probability=DELTA, simultaneous=False)
    same = over_the_same_people(arms, rewards, probability, failure_probability=DELTA, simultaneous=False).differences
    chosen = over_the_same_people(
        arms, rewards, probability[np.arange(arms.size), arms], failure_probability=DELTA, simultaneous=False
    ).differences
    periods = over_the_same_people(arms, rewards, failure_probability=DELTA, simultaneous=False).differences
    plain_width = np.array([one.high - one.low for one in plain])
    for name, some in (("same", same), ("chosen", chosen), ("periods", periods)):
        low, high = (np.array([getattr(one, end) for one in some]) for end in ("low_at_end", "high_at_end"))
        found[f"{name}: covers"] = float(np.mean((low <= truth) & (truth <= high)))
        found[f"{name}: bias"] = float(np.mean([one.difference for one in some] - truth))
        found[f"{name}: width"] = float(np.mean((high - low) / plain_width))
        found[f"{name}: wrong sign"] = float(some[pairs.index((n_arms - 1, 0))].difference < 0)
    low, high = (np.array([getattr(one, end) for one in plain]) for end in ("low", "high"))
    found["plain: covers"] = float(np.mean((low <= truth) & (truth <= high)))
    found["plain: bias"] = float(np.mean([one.difference for one in plain] - truth))
    found["plain: wrong sign"] = float(plain[pairs.index((n_arms - 1, 0))].difference < 0)
    found["on the best arm"] = float(pulls[-1] / arms.size)
    # At all times: has any look missed so far?
    missed, plain_missed, spoken, z_spoken = np.zeros(len(pairs), bool), np.zeros(len(pairs), bool), False, False
    threshold = -math.log(DELTA)
    for n in looks:
        now = over_the_same_people(
            arms[:n], rewards[:n], probability[:n], failure_probability=DELTA, simultaneous=False, n_arms=n_arms
        ).differences
        missed |= [not one.low <= value <= one.high for one, value in zip(now, truth, strict=True)]
        count = np.bincount(arms[:n], minlength=n_arms)
        average = np.bincount(arms[:n], rewards[:n], n_arms) / np.maximum(count, 1)
        spread = np.sqrt(
            np.bincount(arms[:n], (rewards[:n] - average[arms[:n]]) ** 2, n_arms) / np.maximum(count - 1, 1)
        )
        for k, one in enumerate(differences_at_end(count, average, spread, simultaneous=False)):
            if min(count[one.arm], count[one.other]) >= 30:
                radius = one.standard_error * t_radius(one.degrees_of_freedom + 1, threshold)
                plain_missed[k] |= abs(one.difference - truth[k]) > radius
        check = trend(arms[:n], rewards[:n], n_arms=n_arms)
        spoken |= check.speaks
        z_spoken |= abs(check.z) > 3.9
    found["same: ever missed"] = float(missed.mean())
    found["plain: ever missed"] = float(plain_missed.mean())
    found["same: width at all times"] = float(
        np.mean(
            [
                (one.high - one.low) / (2 * upper_quantile(DELTA / 2)[0]) / p.standard_error
                for one, p in zip(same, plain, strict=True)
            ]
        )
    )
    found["check: spoke"], found["check: |z| > 3.9"] = float(spoken), float(z_spoken)
    return found


def study(runs: int, steps: int, looks: int) -> dict[str, dict[str, float]]:
    """Return averages over runs, by policy, arms and trend."""
    results: dict[str, dict[str, float]] = {}
    for player_name, player in PLAYERS.items():
        for arms_name, means in ARMS.items():
            for rise in TRENDS:
                start = time.perf_counter()
                level = np.array(means) + rise * STD * np.linspace(0, 1, steps)[:, None]
                at = np.unique(np.geomspace(max(60, 12 * len(means)), steps, looks).astype(int))
                sums: dict[str, list[float]] = defaultdict(list)
                for run in range(runs):
                    noise = np.random.default_rng([run, len(means)]).normal(0, STD, (steps, len(means)))
                    for name, value in examine(means, *player(level, noise, run), at).items():
                        sums[name].append(value)
                averages = {name: float(np.mean(values)) for name, values in sums.items()}
                results[f"{player_name} | {arms_name} | {rise:.2f} sd"] = averages
                print(f"{arms_name}, {rise:.2f} sd: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return results


def print_tables(results: dict[str, dict[str, float]]) -> None:
    """Print what was found as tables."""
    columns = {
        "best arm's share": ("on the best arm", ".0%"),
        "plain: bias": ("plain: bias", "+.3f"),
        "covers at the end": ("plain: covers", ".1%"),
        "ever missed": ("plain: ever missed", ".1%"),
        "wrong sign": ("plain: wrong sign", ".1%"),
        "same people: bias": ("same: bias", "+.4f"),
        "covers at the end ": ("same: covers", ".1%"),
        "ever missed ": ("same: ever missed", ".1%"),
        "wrong sign ": ("same: wrong sign", ".1%"),
        "width / plain": ("same: width", ".2f"),
        "at all times / z": ("same: width at all times", ".2f"),
        "chosen's probability only: covers": ("chosen: covers", ".1%"),
        "width / plain ": ("chosen: width", ".2f"),
        "periods: covers": ("periods: covers", ".1%"),
        "check speaks": ("check: spoke", ".1%"),
        "z beyond 3.9": ("check: |z| > 3.9", ".1%"),
    }
    print("| policy | arms | trend | " + " | ".join(columns) + " |")
    print("|---|---|---|" + "---:|" * len(columns))
    for name, found in results.items():
        print(f"| {name} | " + " | ".join(format(found[key], style) for key, style in columns.values()) + " |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=1_000)
    parser.add_argument("--out", type=Path, default=None, help="a file for the figures, JSON")
    chosen = parser.parse_args()
    runs, steps, looks = (3, 300, 3) if chosen.smoke else (chosen.runs, STEPS, LOOKS)
    results = study(runs, steps, looks)
    print_tables(results)
    print(f"{runs:,} runs of {steps:,} people, {looks} looks, on {machine()}")
    if chosen.out is not None:
        chosen.out.write_text(
            json.dumps({"runs": runs, "steps": steps, "results": results}, indent=1), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
