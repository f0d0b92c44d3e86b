"""Numbers known independently of this package: exact optima to all digits shown, and what the paper prints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FIVE_MEANS = [1.0, 1.5, 2.0, 4.0, 5.0]
FIVE_STDS = np.sqrt([0.05, 0.1, 0.2, 4.0, 0.5])


class Optimum(NamedTuple):
    mean: list[float]
    variance: list[float]
    reward_weight: float
    allocation: list[float]
    tradeoff: float


_FIVE = (FIVE_MEANS, [0.05, 0.1, 0.2, 4.0, 0.5])

OPTIMA = [
    Optimum(*_FIVE, 0.0, [0.0969873, 0.1221964, 0.1539578, 0.4179057, 0.2089528], -1.4806164136),
    Optimum(*_FIVE, 0.9, [0.0072685, 0.0100081, 0.0139701, 0.0785530, 0.8902003], 3.9848346259),
    Optimum(*_FIVE, 0.95, [0.0044206, 0.0060876, 0.0084989, 0.0478988, 0.9330941], 4.4218594060),
    # Table 1 of the paper: two arms, so the second share is one minus the first.
    Optimum([1.5, 1.0], [1.0, 1.0], 0.4, [0.5759381, 1 - 0.5759381], -0.3408060397),
    Optimum([2.0, 1.0], [1.0, 2.0], 0.4, [0.5689364, 1 - 0.5689364], -0.4163543476),
    Optimum([1.1, 1.0], [0.1, 2.0], 0.4, [0.2853755, 1 - 0.2853755], -0.2680497019),
    Optimum([3.0, 1.0], [0.1, 0.1], 0.4, [0.8551008, 1 - 0.8551008], 0.7322657710),
]

PAPER_FIVE_AT_09 = [0.0073, 0.01, 0.014, 0.0794, 0.8893]
"""Fig. 4 prints these; its solver stopped early, with a trade-off lower by 6.7e-6."""


class Kept(NamedTuple):
    mean: list[float]
    variance: list[float]
    about: str
    kept: float
    allocation: list[float]
    reward_weight: float | None = None


KEPT = [
    Kept(
        *_FIVE,
        "average",
        0.7,
        [0.0342882754965, 0.0469811239803, 0.0651561121585, 0.336803393934, 0.51677109443],
        0.454406947085,
    ),
    Kept(
        *_FIVE,
        "average",
        0.25,
        [0.0103106236604, 0.0141942753402, 0.0198085550891, 0.111004561242, 0.844681984669],
        0.8416892934,
    ),
    Kept(
        *_FIVE, "every-arm", 0.7, [0.00721649484536, 0.0144329896907, 0.0288659793814, 0.577319587629, 0.372164948454]
    ),
    Kept(
        *_FIVE, "every-arm", 0.25, [0.00257731958763, 0.00515463917526, 0.0103092783505, 0.20618556701, 0.775773195876]
    ),
    Kept(
        *_FIVE,
        "best-arm",
        0.7,
        [0.000298622903431, 0.000781301832612, 0.00213203856388, 0.414066322727, 0.582721713973],
    ),
    Kept(
        *_FIVE,
        "best-arm",
        0.25,
        [0.000106238307572, 0.000277625426661, 0.000756198713353, 0.138551463069, 0.860308474483],
    ),
]
"""The most reward that keeps a share of the information, by plain bisection in 40-digit arithmetic."""
