"""What `beyond.py` plays on: the paper's arms, real experiments by the figures of their arms, and random arms."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import equipoise as eq
from equipoise.paper.instances import FIVE_ARMS, TWO_ARMS, treefrog_surrogate
from equipoise.paper.real_experiments import effort_experiment, flu_experiment

if TYPE_CHECKING:
    from equipoise.arms import Arms

DATA = Path(__file__).parent / "data"
ROWS = Path(os.environ.get("EQUIPOISE_EXPERIMENT_ROWS", Path(__file__).parents[2] / "shared" / "data"))
"""Rows of the experiments, which are not ours to publish; without them those instances are left out."""

PAPER, REAL, TUNING, JUDGING = "paper", "real", "tuning", "judging"
SEEN, UNSEEN = range(100), range(300, 400)
"""Numbers of random instances: the first were looked at while the rule was made (so were some up to 299), these not."""


@dataclass(frozen=True)
class Instance:
    """Arms and the weight to play them with."""

    name: str
    group: str
    arms: Arms
    reward_weight: float

    @property
    def smallest_share(self) -> float:
        """The smallest optimal share."""
        shares = eq.optimal_allocation(self.arms.mean, self.arms.std, reward_weight=self.reward_weight)
        return float(shares.min())

    def checkpoints(self, horizon: int) -> list[int]:
        """Return steps at full rounds over the arms, and round numbers."""
        n_arms = self.arms.n_arms
        steps = {2 * n_arms, 3 * n_arms, 5 * n_arms, 10 * n_arms, 20 * n_arms, 1_000, 2_500, 5_000, 10_000, 25_000}
        return sorted(step for step in steps if 2 * n_arms <= step <= horizon)


def all_instances() -> list[Instance]:
    """Return every instance, in the order of the study."""
    return [*paper_instances(), *real_instances(), *(random_instance(number) for number in (*UNSEEN, *SEEN))]


def paper_instances() -> list[Instance]:
    surrogate = treefrog_surrogate()
    # Its arms are sorted by their means, so that a round over the arms that is cut short pulls the best of them.
    order = np.random.default_rng(64).permutation(surrogate.n_arms)
    shuffled = eq.Gaussian(mean=surrogate.mean[order], std=surrogate.std[order])
    return [
        *(Instance(f"five arms, {w}", PAPER, FIVE_ARMS, w) for w in (0.4, 0.9, 0.95)),
        *(Instance(f"two arms {k + 1}, 0.4", PAPER, arms, 0.4) for k, arms in enumerate(TWO_ARMS)),
        *(Instance(f"surrogate, {w}", PAPER, shuffled, w) for w in (0.6, 0.95)),
    ]


def real_instances() -> list[Instance]:
    flu, clicks = flu_experiment(), _columns("clicks.csv")
    # Half a click more in one view more: items that nobody clicked would have no spread at all.
    rate = (clicks["clicks"] + 0.5) / (clicks["n"] + 1)
    persuasion, assistments = _columns("persuasion.csv"), _columns("assistments.csv")
    found: dict[str, Arms] = {
        "effort": effort_experiment().arms,
        "persuasion": eq.Gaussian(mean=persuasion["mean"], std=persuasion["sd"]),
        "assistments": eq.Gaussian(mean=assistments["mean"], std=assistments["sd"]),
        "flu": eq.Gaussian(mean=flu.arms.mean, std=np.sqrt(flu.arms.mean * (1 - flu.arms.mean))),
        "flu, yes or no": eq.Bernoulli(mean=flu.arms.mean),
        "clicks": eq.Gaussian(mean=rate, std=np.sqrt(rate * (1 - rate))),
        "clicks, yes or no": eq.Bernoulli(mean=rate),
    }
    for name, file in (("effort, rows", "effort_mturk.csv.gz"), ("persuasion, rows", "llm_persuasion.csv.gz")):
        if (ROWS / file).is_file():
            found[name] = _resampled(ROWS / file)
    return [Instance(f"{name}, {w}", REAL, arms, w) for name, arms in found.items() for w in (0.4, 0.9, 0.95)]


def random_instance(number: int) -> Instance:
    """Return one of infinitely many random instances.

    From 2 to 200 arms, uniform in the logarithm; a weight of 0.2, 0.4, 0.6, 0.8, 0.9, 0.95 or 0.98. Half of them have
    Gaussian rewards, a quarter shifted exponential ones, a quarter ones of 0 or 1. Stds are log-normal with a sigma of
    0.05, 0.2, 0.5, 1 or 1.5; means are Gaussian or t with 3 degrees of freedom, times a factor from 0.05 to 5, uniform
    in its logarithm. Rates of 0 or 1 are logistic: Gaussian around -3.5, -2 or 0, with a std of 0.1, 0.3 or 1.
    """
    rng = np.random.default_rng([2026, number])
    n_arms = round(float(np.exp(rng.uniform(np.log(2), np.log(200)))))
    weight = (0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98)[rng.integers(7)]
    kind = ("gaussian", "gaussian", "yes or no", "exponential")[rng.integers(4)]
    group = JUDGING if number in UNSEEN else TUNING
    name = f"random {number}, {kind}, {n_arms} arms, {weight}"
    if kind == "yes or no":
        centre, spread = rng.choice([-3.5, -2.0, 0.0]), rng.choice([0.1, 0.3, 1.0])
        rate = 1 / (1 + np.exp(-(centre + spread * rng.standard_normal(n_arms))))
        return Instance(name, group, eq.Bernoulli(mean=rate), weight)
    spread = rng.choice([0.05, 0.2, 0.5, 1.0, 1.5])
    distance = np.exp(rng.uniform(np.log(0.05), np.log(5)))
    std = np.exp(spread * rng.standard_normal(n_arms))
    mean = distance * (rng.standard_normal(n_arms) if rng.random() < 0.5 else rng.standard_t(3, size=n_arms))
    if kind == "gaussian":
        return Instance(name, group, eq.Gaussian(mean=mean, std=std), weight)
    shape = -np.log1p(-(np.arange(999) + 0.5) / 999)
    shape = (shape - shape.mean()) / shape.std()
    return Instance(name, group, eq.Empirical(values=[m + s * shape for m, s in zip(mean, std, strict=True)]), weight)


def _columns(name: str) -> dict[str, np.ndarray]:
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()[1:]
    rows = list(csv.DictReader(lines))
    return {column: np.array([float(row[column]) for row in rows]) for column in rows[0] if column != "arm"}


def _resampled(path: Path) -> eq.Empirical:
    values: dict[str, list[float]] = {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values.setdefault(row["arm"], []).append(float(row["reward"]))
    return eq.Empirical(values=list(values.values()))
