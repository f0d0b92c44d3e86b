"""The arms of `coverage.py`: those whose results may choose constants, and those that judge them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from equipoise._types import FloatArray

Draw = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
"""Draws rewards; one row per arm."""

CHOOSING, JUDGING = "choosing", "judging"
"""Whether constants may be chosen by an instance's results."""


@dataclass(frozen=True)
class Instance:
    """Arms, the policy's dial, and how many people there are."""

    name: str
    draw: Draw
    mean: Sequence[float]
    checkpoints: tuple[int, ...]
    group: str = CHOOSING
    low: float = -math.inf
    high: float = math.inf
    weight: float = 0.9
    of_pairs: bool = False
    of_best: bool = False
    share: float = 1.0
    """Share of the runs to play, below 1 where they take long."""

    @property
    def n_arms(self) -> int:
        return len(self.mean)

    @property
    def number(self) -> int:
        """What tells its random numbers from those of others."""
        return zlib.crc32(self.name.encode())

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.high - self.low)

    def rewards(self, rng: np.random.Generator, most: int) -> FloatArray:
        """Return the rewards of each arm, in the order in which they come."""
        return self.draw(rng, (self.n_arms, most))


def column(values: Sequence[float]) -> FloatArray:
    return np.array(values, float)[:, None]


def bernoulli(rates: Sequence[float]) -> Draw:
    return lambda rng, size: (rng.random(size) < column(rates)).astype(float)


def moved(standard: Draw, mean: Sequence[float], std: Sequence[float]) -> Draw:
    """Rewards of mean 0 and spread 1, moved and scaled."""
    return lambda rng, size: column(mean) + column(std) * standard(rng, size)


def scaled(standard: Draw, factor: Sequence[float]) -> Draw:
    """Rewards times a factor, as amounts of money differ."""
    return lambda rng, size: column(factor) * standard(rng, size)


def gaussian(rng: np.random.Generator, size: tuple[int, int]) -> FloatArray:
    return rng.standard_normal(size)


def lognormal(sigma: float) -> Draw:
    """Mean 1."""
    return lambda rng, size: np.exp(sigma * rng.standard_normal(size) - 0.5 * sigma * sigma)


def beta(a: Sequence[float], b: Sequence[float]) -> Draw:
    return lambda rng, size: rng.beta(column(a), column(b), size)


PAPER_MEAN, PAPER_STD = (1.0, 1.5, 2.0, 4.0, 5.0), tuple(np.sqrt([0.05, 0.1, 0.2, 4.0, 0.5]))
FACTORS = (1.0, 1.1, 1.2, 1.3, 1.4)
RATES_22 = tuple(np.linspace(0.02, 0.3, 22).round(4))
RATES_10 = (*np.linspace(0.1, 0.16, 9).round(4), 0.2)
QUIZ_A, QUIZ_B = (8.0, 6.0, 9.0, 5.0), (3.0, 3.0, 3.0, 3.0)
RANGE = {"low": 0.0, "high": 1.0}
BOTH = {"of_pairs": True, "of_best": True}


def choosing() -> list[Instance]:
    """Return the instances that constants were chosen on."""
    quiz = [a / (a + b) for a, b in zip(QUIZ_A, QUIZ_B, strict=True)]
    few, rare = (0.1, 0.3, 0.5), (0.01, 0.02, 0.03)
    paper = moved(gaussian, PAPER_MEAN, PAPER_STD)
    return [
        Instance("3 Bernoulli, 0.1 to 0.5", bernoulli(few), few, (300, 1_000, 3_000), **RANGE, **BOTH),
        Instance("3 Bernoulli, 0.01 to 0.03", bernoulli(rare), rare, (1_000, 3_000), of_pairs=True, **RANGE),
        Instance("22 Bernoulli, 0.02 to 0.3", bernoulli(RATES_22), RATES_22, (2_200, 11_000), of_pairs=True, **RANGE),
        Instance("4 quiz scores", beta(QUIZ_A, QUIZ_B), quiz, (400, 1_000, 4_000), of_pairs=True, **RANGE),
        Instance("5 Gaussian of the paper, w = 0.9", paper, PAPER_MEAN, (1_000, 5_000), **BOTH),
        Instance("5 Gaussian of the paper, w = 0.4", paper, PAPER_MEAN, (1_000, 5_000), weight=0.4, **BOTH),
        Instance("5 lognormal(1)", scaled(lognormal(1.0), FACTORS), FACTORS, (1_000, 3_000), **BOTH),
        Instance("5 lognormal(1.5)", scaled(lognormal(1.5), FACTORS), FACTORS, (1_000, 3_000), **BOTH),
        Instance("2 Gaussian", moved(gaussian, (0.0, 0.2), (1.0, 1.0)), (0.0, 0.2), (1_000, 5_000), **BOTH),
        Instance(
            "5 Gaussian, one better by 0.3",
            moved(gaussian, (0, 0, 0, 0, 0.3), (1,) * 5),
            (0, 0, 0, 0, 0.3),
            (1_000, 5_000),
            **BOTH,
        ),
        Instance("5 equal Gaussian", gaussian, (0.0,) * 5, (1_000, 5_000), of_pairs=True),
        Instance(
            "10 Bernoulli, 0.1 to 0.2", bernoulli(RATES_10), RATES_10, (5_000, 20_000), **RANGE, **BOTH, share=0.1
        ),
    ]


def standardised(draw: Draw, mean: float, std: float) -> Draw:
    return lambda rng, size: (draw(rng, size) - mean) / std


def judging() -> list[Instance]:
    """Return the instances that no constant was chosen on."""
    gaps = (0.0, 0.1, 0.2, 0.3, 0.4)

    def five(name: str, draw: Draw, mean: float, std: float) -> Instance:
        """Five arms that differ by tenths of the spread."""
        arms = moved(standardised(draw, mean, std), gaps, (1.0,) * 5)
        return Instance(f"5 {name}", arms, gaps, (1_000, 3_000), JUDGING, **BOTH)

    def spread_of_zero_inflated() -> float:
        return math.sqrt(0.05 * math.exp(1.0) - 0.05**2)

    skewed = math.sqrt(math.e - 1.0)
    found = [
        five("exponential", lambda rng, size: rng.standard_exponential(size), 1.0, 1.0),
        five("gamma(0.5)", lambda rng, size: rng.standard_gamma(0.5, size), 0.5, math.sqrt(0.5)),
        five("Poisson(0.3)", lambda rng, size: rng.poisson(0.3, size).astype(float), 0.3, math.sqrt(0.3)),
        five("t, 3 degrees of freedom", lambda rng, size: rng.standard_t(3, size), 0.0, math.sqrt(3.0)),
        five("t, 5 degrees of freedom", lambda rng, size: rng.standard_t(5, size), 0.0, math.sqrt(5.0 / 3.0)),
        five("Laplace", lambda rng, size: rng.laplace(size=size), 0.0, math.sqrt(2.0)),
        five("Pareto(3.5)", lambda rng, size: rng.pareto(3.5, size), 0.4, math.sqrt(3.5 / (2.5**2 * 1.5))),
        five(
            "zero-inflated lognormal(1), 5 % buy",
            lambda rng, size: (rng.random(size) < 0.05) * lognormal(1.0)(rng, size),
            0.05,
            spread_of_zero_inflated(),
        ),
        five(
            "ratings 1 to 5",
            lambda rng, size: RATINGS[np.searchsorted(RATING_STEPS, rng.random(size))],
            4.15,
            RATING_STD,
        ),
        five(
            "bimodal",
            lambda rng, size: np.where(rng.random(size) < 0.2, 3.0, 0.0) + 0.3 * rng.standard_normal(size),
            0.6,
            math.sqrt(0.16 * 9.0 + 0.09),
        ),
        five("negative lognormal(1)", lambda rng, size: -lognormal(1.0)(rng, size), -1.0, skewed),
        five(
            "least of three exponentials, negative",
            lambda rng, size: -rng.weibull(0.8, size),
            -math.gamma(2.25),
            math.sqrt(math.gamma(3.5) - math.gamma(2.25) ** 2),
        ),
        Instance(
            "5 Bernoulli 0.01 to 0.05, range not declared",
            bernoulli((0.01, 0.02, 0.03, 0.04, 0.05)),
            (0.01, 0.02, 0.03, 0.04, 0.05),
            (1_000, 3_000),
            JUDGING,
            of_pairs=True,
        ),
        Instance("5 equal lognormal(1)", lognormal(1.0), (1.0,) * 5, (1_000, 3_000), JUDGING, **BOTH),
    ]
    within = [
        (
            "5 Beta(0.3, 3)",
            beta((0.3, 0.35, 0.4, 0.45, 0.5), (3.0,) * 5),
            [a / (a + 3.0) for a in (0.3, 0.35, 0.4, 0.45, 0.5)],
        ),
        (
            "5 uniform",
            lambda rng, size: column((0.5, 0.6, 0.7, 0.8, 0.9)) * rng.random(size),
            [0.25, 0.3, 0.35, 0.4, 0.45],
        ),
        ("5 Bernoulli, 0.9 to 0.99", bernoulli((0.9, 0.93, 0.95, 0.97, 0.99)), (0.9, 0.93, 0.95, 0.97, 0.99)),
        (
            "5 ratings 1 to 5, as a share",
            lambda rng, size: (RATINGS[np.searchsorted(RATING_STEPS, rng.random(size))] - 1.0) / 4.0,
            (3.15 / 4.0,) * 5,
        ),
        (
            "5 bimodal",
            lambda rng, size: (
                np.where(rng.random(size) < column((0.1, 0.2, 0.3, 0.4, 0.5)), 0.9, 0.1)
                + 0.1 * (rng.random(size) - 0.5)
            ),
            [0.1 + 0.8 * p for p in (0.1, 0.2, 0.3, 0.4, 0.5)],
        ),
        (
            "5 rare amounts, 2 % of up to 1",
            lambda rng, size: (rng.random(size) < 0.02) * rng.beta(1.0, 3.0, size),
            (0.02 * 0.25,) * 5,
        ),
    ]
    found += [
        Instance(f"{name}, in [0, 1]", draw, tuple(mean), (1_000, 3_000), JUDGING, **RANGE, of_pairs=True)
        for name, draw, mean in within
    ]
    return [replace(one, share=SHARE_OF_JUDGING) for one in found]


SHARE_OF_JUDGING = 0.2
"""They are many, and a fifth of the runs tells 5 % from 6 %."""


RATINGS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
RATING_SHARES = np.array([0.06, 0.04, 0.10, 0.29, 0.51])
RATING_STEPS = np.cumsum(RATING_SHARES)[:-1]
RATING_STD = math.sqrt(float(RATING_SHARES @ RATINGS**2 - (RATING_SHARES @ RATINGS) ** 2))
