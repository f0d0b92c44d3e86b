"""What a prior of how far apart arms are is worth to PooledBalance, and what a wrong one costs, on real experiments.

    python benchmarks/prior.py [--smoke] [--runs 200] [--reward-weight 0.9] [--workers 1]

Arms have the means and standard deviations of real arms: of effort, persuasion, flu and clicks, in groups of 2, 3, 4, 6
and 10 drawn from each without replacement, and all together; and the 22 experiments of ASSISTments, with two arms each.
The right prior is how far apart all arms of the kind are, of which a group is a sample; "earlier" is what
`ArmPrior.from_experiments` makes of the published figures of the kind's other groups, with their noise. Rewards are
paired. Regrets are ratios to that of the paper's rule, eta = 1.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from _beyond_instances import _columns
from _timing import machine

import equipoise as eq
from equipoise.paper.real_experiments import effort_experiment, flu_experiment

if TYPE_CHECKING:
    from equipoise.arms import Arms

SIZES, GROUPS = (2, 3, 4, 6, 10), 3
ROUNDS, MOST_STEPS = (10, 30, 100, 500), 6_000
OFF, SPREADS = 3.0, (0.05, 3.0)


@dataclass(frozen=True)
class Kind:
    """Arms of one kind: counts, means and stds as published; rewards are yes or no if there are no stds."""

    name: str
    n: np.ndarray
    mean: np.ndarray
    std: np.ndarray | None
    experiments: tuple[np.ndarray, ...] = ()
    """Positions of the arms of each experiment, if the arms come from several."""

    def arms(self, places: np.ndarray) -> Arms:
        """Return some of the arms."""
        if self.std is None:
            return eq.Bernoulli(mean=self.mean[places])
        return eq.Gaussian(mean=self.mean[places], std=self.std[places])

    def figures(self, places: np.ndarray) -> eq.ArmStats:
        """Return the published figures of some of the arms."""
        n, mean = self.n[places].astype(int), self.mean[places]
        if self.std is not None:
            return eq.ArmStats.from_summary(n, mean, self.std[places])
        rate = np.round(mean * n) / n
        return eq.ArmStats.from_summary(n, rate, np.sqrt(rate * (1 - rate) * n / (n - 1)))

    def groups(self) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        """Return the arms of each setting, and the groups of other arms that were earlier experiments."""
        if self.experiments:
            places = range(len(self.experiments))
            return [(self.experiments[k], [self.experiments[j] for j in places if j != k]) for k in places]
        order, found = np.random.default_rng(len(self.name)).permutation(self.mean.size), []
        for size in (*SIZES, self.mean.size):
            all_groups = [order[k * size : (k + 1) * size] for k in range(order.size // size)]
            for k, group in enumerate(all_groups[:GROUPS]):
                found.append((group, [other for j, other in enumerate(all_groups) if j != k]))
        return found

    def right(self) -> eq.ArmPrior:
        """Return how far apart all arms of the kind are."""
        groups = self.experiments or (np.arange(self.mean.size),)
        means, logarithms = [], []
        for places in groups:
            mean = self.mean[places]
            std = (
                np.full(places.size, math.sqrt(mean.mean() * (1 - mean.mean())))
                if self.std is None
                else self.std[places]
            )
            means.append(np.var(mean / np.exp(np.log(std).mean()), ddof=1))
            logarithms.append(np.var(np.log(std**2), ddof=1))
        return _prior(math.sqrt(np.mean(means)), math.sqrt(np.mean(logarithms)))


def kinds() -> list[Kind]:
    effort, flu = effort_experiment(), flu_experiment()
    persuasion, assistments, clicks = (_columns(f"{name}.csv") for name in ("persuasion", "assistments", "clicks"))
    pairs = tuple(np.arange(44).reshape(22, 2))
    return [
        Kind("effort", effort.people, effort.arms.mean, effort.arms.std),
        Kind("persuasion", persuasion["n"], persuasion["mean"], persuasion["sd"]),
        Kind("flu", flu.people, flu.arms.mean, None),
        # Half a click more in one view more: items that nobody clicked would have no spread at all.
        Kind("clicks", clicks["n"], (clicks["clicks"] + 0.5) / (clicks["n"] + 1), None),
        Kind("assistments", assistments["n"], assistments["mean"], assistments["sd"], pairs),
    ]


def _prior(means_apart: float, spreads_apart: float) -> eq.ArmPrior:
    return eq.ArmPrior(means_apart=means_apart, spreads_apart=float(np.clip(spreads_apart, *SPREADS)))


def priors(kind: Kind, others: list[np.ndarray]) -> dict[str, eq.ArmPrior | None]:
    """Return the priors to compare."""
    right = kind.right()
    small, large = (_prior(right.means_apart * k, right.spreads_apart * k) for k in (1 / OFF, OFF))
    earlier = eq.ArmPrior.from_experiments([kind.figures(group) for group in others]) if others else right
    return {"none": None, "right": right, "earlier": earlier, "a third": small, "three times": large}


@dataclass(frozen=True)
class Found:
    """Regrets of one setting: of every prior at every checkpoint in every run, and of the paper's rule."""

    kind: str
    n_arms: int
    regret: dict[str, np.ndarray]
    paper: np.ndarray

    def ratio(self, name: str) -> float:
        """Return the regret over that of the paper's rule, as a geometric mean over checkpoints."""
        return float(np.exp(np.log(self.regret[name].mean(axis=0) / self.paper.mean(axis=0)).mean()))


def play(weight: float, runs: int, most_steps: int, workers: int) -> Iterator[Found]:
    """Play all settings."""
    for kind in kinds():
        for places, others in kind.groups():
            most = max(most_steps, ROUNDS[0] * places.size)
            steps = sorted({min(rounds * places.size, most) for rounds in ROUNDS})

            known: dict[str, Any] = {"arms": kind.arms(places), "horizon": steps[-1], "replications": runs}
            known |= {"seed": 1, "checkpoints": steps, "workers": workers}

            def regret(policy: eq.Policy, known: Any = known) -> np.ndarray:
                return np.asarray(eq.simulate(policy, **known).rescaled_regret(reward_weight=weight)[0])

            regrets = {
                name: regret(eq.PooledBalance(reward_weight=weight, prior=prior))
                for name, prior in priors(kind, others).items()
            }
            yield Found(kind.name, places.size, regrets, regret(eq.ForcingBalance(reward_weight=weight)))


def summary(some: list[Found], name: str, rng: np.random.Generator) -> str:
    """Return the geometric mean of the ratios with its standard error, over runs; and the ratio of sums."""

    def both(chosen: Any) -> tuple[float, float]:
        ours = [one.regret[name][chosen].mean(axis=0) for one in some]
        paper = [one.paper[chosen].mean(axis=0) for one in some]
        logs = [np.log(a / b).mean() for a, b in zip(ours, paper, strict=True)]
        return math.exp(np.mean(logs)), sum(map(np.sum, ours)) / sum(map(np.sum, paper))

    runs = len(some[0].paper)
    geometric, total = both(slice(None))
    # Runs share their seeds over settings, so the same are drawn in all.
    drawn = np.array([both(rng.integers(runs, size=runs)) for _ in range(100)]).std(axis=0, ddof=1)
    return f"{geometric:.3f} ({drawn[0]:.3f}) | {total:.3f} ({drawn[1]:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--reward-weight", type=float, default=0.9)
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    runs, most_steps = (3, 60) if chosen.smoke else (chosen.runs, MOST_STEPS)
    start = time.process_time()
    found = list(play(chosen.reward_weight, runs, most_steps, chosen.workers))
    names = list(found[0].regret)
    print("| arms | settings | prior | geometric mean | sum | worse than none | by more than a tenth |")
    print("|---|---:|---|---:|---:|---:|---:|")
    for label, low, high in (("2", 2, 2), ("3", 3, 3), ("4 or more", 4, 99)):
        some = [one for one in found if low <= one.n_arms <= high]
        for name in names:
            worse = [one.ratio(name) / one.ratio("none") for one in some]
            counts = f"{sum(x > 1 for x in worse)} | {sum(x > 1.1 for x in worse)}"
            print(f"| {label} | {len(some)} | {name} | {summary(some, name, np.random.default_rng(0))} | {counts} |")
    print("\n| kind | arms | " + " | ".join(names) + " |")
    print("|---|---|" + "---:|" * len(names))
    for kind in dict.fromkeys(one.kind for one in found):
        for label, low, high in (("2 or 3", 2, 3), ("4 or more", 4, 99)):
            some = [one for one in found if one.kind == kind and low <= one.n_arms <= high]
            if some:
                means = [math.exp(np.mean([math.log(one.ratio(name)) for one in some])) for name in names]
                print(f"| {kind} | {label} | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    spent = time.process_time() - start
    print(f"\nweight {chosen.reward_weight:g}, {runs} runs, {machine()}, {spent:.0f} s of processor time")


if __name__ == "__main__":
    main()
