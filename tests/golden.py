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
