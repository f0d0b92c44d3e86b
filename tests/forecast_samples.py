"""Small forecasts of known paths, for tests of what shows them."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from synthetic_paths import paths_of, question

from equipoise.planner.forecast import Forecast, forecast_of

FIVE_ARMS = ("plain", "letter", "call", "prize", "gift")
FIVE_MEANS = (0.30, 0.33, 0.42, 0.50, 0.36)
_FIVE = [[0.2] * 5, [0.15, 0.15, 0.2, 0.35, 0.15], [0.05, 0.05, 0.1, 0.75, 0.05]]
_TWO = [[0.5, 0.5], [0.35, 0.65], [0.15, 0.85]]
_N = 40
_UNTIL = 122 * 86_400.0


def forecast_with(*, shares: Any = _TWO, means: Any = (0.3, 0.5), luck: bool = False, **asked: Any) -> Forecast:
    """Return a forecast of equal shares and two weights, of a question about so much."""
    rng = np.random.default_rng(1)
    drawn = rng.normal(0.5, 0.06, _N)
    noise = np.clip(2.0 + rng.normal(0, 0.1, _N) + 8.0 * (drawn - 0.5), 1.0, 3.5) if luck else 2.0
    settings = ({"policy": "Uniform()"}, {"reward_weight": 0.5}, {"reward_weight": 0.9})
    given = {"start": datetime.date(2027, 3, 1), "deadline_seconds": _UNTIL, "control": 0} | asked
    known = question(3, settings=settings, ways=("equal shares", "weight 0.5", "weight 0.9"), **given)
    sizes: dict[str, Any] = {"days": 122, "per_day": 96.0, "n_replications": _N}
    paths = paths_of(shares, means, noise=noise, drawn={"arms.prize.rate": drawn} if luck else None, **sizes)
    alone = paths_of(shares, means, noise=np.linspace(1.95, 2.05, _N), **sizes) if luck else None
    return forecast_of(known, paths, alone)


def five_arms(arms: tuple[str, ...] = FIVE_ARMS, **asked: Any) -> Forecast:
    """Return a forecast of five arms with drawn truths."""
    return forecast_with(
        shares=_FIVE, means=FIVE_MEANS, luck=True, **{"precision": 0.06, "arms": arms, "title": "Reminders"} | asked
    )
