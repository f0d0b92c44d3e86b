"""How often the ranges of `Experiment.prices` and of the gain in `status` hold the truth: docs/dial-study.md.

    python benchmarks/price_ranges.py [--smoke] [--experiments 1000] [--out ranges.json]

Plays experiments with the decisions of live ones, asks for prices after some numbers of people, and counts how often
the true gain lies in its range. Prints the table of docs/dial-study.md, with standard errors, and beside it how often
ranges around plain averages would have held it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _timing import machine

import equipoise as eq
from equipoise.experiment.prices import gain_so_far, prices_of
from equipoise.experiment.state import State

PEOPLE = (100, 500, 2000)
NOW = datetime(2027, 1, 1, tzinfo=UTC)
END = 1.2815516
"""Standard errors from the middle to an end of an 8-in-10 range of a normal estimate."""


class Arms(NamedTuple):
    """Arms of one experiment: their true means, and one reward of each at a time."""

    mean: np.ndarray
    draw: Callable[[np.random.Generator, int], float]


def yes_no(rates: Any) -> Arms:
    """Return arms whose rewards are yes or no."""
    rate = np.clip(np.asarray(rates, float), 0.001, 0.999)
    return Arms(rate, lambda rng, arm: float(rng.random() < rate[arm]))


def scores(mean: Any, std: Any) -> Arms:
    """Return arms with Gaussian rewards."""
    means, stds = np.asarray(mean, float), np.broadcast_to(np.asarray(std, float), np.shape(mean))
    return Arms(means, lambda rng, arm: float(means[arm] + stds[arm] * rng.standard_normal()))


def amounts(mean: Any) -> Arms:
    """Return arms with exponential rewards, whose spread is as large as their mean."""
    means = np.asarray(mean, float)
    return Arms(means, lambda rng, arm: float(rng.exponential(means[arm])))


KINDS: dict[str, tuple[dict[str, Any], Callable[[np.random.Generator], Arms]]] = {
    "2 messages, 20 and 25 % answer": ({"reward_weight": 0.6}, lambda _: yes_no([0.2, 0.25])),
    "3 messages, 35 to 45 %, drawn": ({"reward_weight": 0.6}, lambda rng: yes_no(rng.uniform(0.35, 0.45, 3))),
    "4 messages, 30, 33, 42, 50 %": ({"reward_weight": 0.6}, lambda _: yes_no([0.3, 0.33, 0.42, 0.5])),
    "4 messages, all 40 %": ({"reward_weight": 0.6}, lambda _: yes_no([0.4] * 4)),
    "5 messages, 30 to 50 %, drawn; 0.7 kept": (
        {"information_kept": 0.7},
        lambda rng: yes_no(rng.uniform(0.3, 0.5, 5)),
    ),
    "4 offers, 1 to 3 %, drawn": ({"reward_weight": 0.6}, lambda rng: yes_no(rng.uniform(0.01, 0.03, 4))),
    "10 lessons, scores 60 +- 5, spread 20": ({"reward_weight": 0.6}, lambda rng: scores(rng.normal(60, 5, 10), 20)),
    "5 lessons, spreads 5 to 30": (
        {"reward_weight": 0.3},
        lambda rng: scores(rng.normal(60, 4, 5), [5, 10, 15, 20, 30]),
    ),
    "5 amounts, skewed, 20 +- 3": ({"reward_weight": 0.6}, lambda rng: amounts(rng.normal(20, 3, 5))),
    "4 waiting times, skewed, minimise": (
        {"reward_weight": 0.6, "direction": "minimise"},
        lambda rng: amounts(rng.normal(8, 1, 4)),
    ),
}
"""Kinds of experiments: how the dial is set, and which arms an experiment has."""


def play(settings: dict[str, Any], arms: Arms, seed: int, rng: np.random.Generator) -> dict[tuple[int, str], Any]:
    """Play an experiment; return for each number of people and figure whether its range holds the truth.

    With each comes whether a range around plain averages does, and how wide both are.
    """
    names = [f"arm {k}" for k in range(arms.mean.size)]
    made = eq.Experiment.create("memory:", "x", arms=names, seed=seed, **settings)
    sign = made.configuration.sign
    state = State("x", 0, made.configuration)
    state.set_arms(names, ["active"] * len(names), [0.0] * len(names))
    decider, stats, found = state.decider, state.stats, {}
    for number in range(max(PEOPLE)):
        arm = decider.decide(stats, number)[0]
        stats.assign(arm)
        stats.update(arm, sign * arms.draw(rng, arm))
        if number + 1 in PEOPLE:
            for figure, gain, contrast in gains(state):
                truth = 100.0 * sign * float(contrast @ arms.mean)
                error = END * 100.0 * float(np.sqrt(contrast**2 @ (stats.std**2 / stats.pulls)))
                plain = 100.0 * float(contrast @ stats.mean)
                found[number + 1, figure] = (
                    gain.low <= truth <= gain.high,
                    abs(truth - plain) <= error,
                    gain.high - gain.low,
                    2.0 * error,
                    gain.per_100 - truth,
                    plain - truth,
                )
    return found


def gains(state: State) -> list[tuple[str, Any, np.ndarray]]:
    """Return the gains that prices and status show, each with the weights of the arms that it is about."""
    prices, stats = prices_of(state, NOW), state.stats
    so_far = gain_so_far(state)
    if prices.present is None or so_far is None:
        return []
    here = np.array(prices.positions[prices.present].shares)
    named = {preset.name: prices.positions[preset.position] for preset in prices.presets}
    more = named.get("mostly reward", prices.positions[-1])
    shares = np.array(more.shares)
    return [
        ("more reward, against now", more.gain, shares - here),
        ("more reward, against equal shares", more.gain_over_equal_shares, shares - 1.0 / here.size),
        ("so far, against equal shares", so_far, stats.assigned / stats.n_assigned - 1.0 / here.size),
    ]


def main() -> None:
    """Play, write the figures and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="three experiments of each kind")
    parser.add_argument("--experiments", type=int, default=1000, help="of each kind")
    parser.add_argument("--out", type=Path, help="write all figures to this file")
    parser.add_argument("--kind", help="only kinds with this text in their name")
    options = parser.parse_args()
    n, started, rows = 3 if options.smoke else options.experiments, time.process_time(), []
    print("| arms | people | figure | holds the truth | plain averages would | width against theirs |")
    print("|---|---:|---|---:|---:|---:|")
    for place, (kind, (settings, make)) in enumerate(KINDS.items()):
        if options.kind and options.kind not in kind:
            continue
        found: dict[tuple[int, str], list[Any]] = defaultdict(list)
        for k in range(n):
            rng = np.random.default_rng([7, place, k])
            for key, value in play(settings, make(rng), k, rng).items():
                found[key].append(value)
        for (people, figure), values in found.items():
            table = np.array(values, float)
            held, plain = table[:, 0].mean(), table[:, 1].mean()
            row = {
                "arms": kind,
                "people": people,
                "figure": figure,
                "experiments": len(table),
                "held": held,
                "held_se": float(np.sqrt(held * (1 - held) / len(table))),
                "plain_held": plain,
                "plain_held_se": float(np.sqrt(plain * (1 - plain) / len(table))),
                "width_ratio": float(np.median(table[:, 2] / np.maximum(table[:, 3], 1e-300))),
                "bias": float(table[:, 4].mean()),
                "plain_bias": float(table[:, 5].mean()),
            }
            rows.append(row)
            print(
                f"| {kind} | {people:,} | {figure} | {100 * held:.1f} ± {100 * row['held_se']:.1f} % "
                f"| {100 * plain:.1f} ± {100 * row['plain_held_se']:.1f} % | {row['width_ratio']:.2f} |",
                flush=True,
            )
    print(f"\n{n:,} experiments of each kind; {machine()}; {time.process_time() - started:.0f} s of processor time.")
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
