"""Forecasts of all kinds, read off paths that are known exactly: what their recommendations must say is in `data`."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
from synthetic_paths import paths_of, question

from equipoise.planner.forecast import Forecast, forecast_of

START = datetime.date(2027, 3, 1)
UNTIL = 122 * 86_400.0
EVEN, TILTED, STEEP = [0.5, 0.5], [0.35, 0.65], [0.15, 0.85]
N = 100


def _noise(seed: int = 0, spread: float = 0.1) -> Any:
    return np.clip(np.random.default_rng(seed).normal(2.0, spread, N), 1.0, 3.0)


def _forecast(
    goal: dict[str, Any],
    *,
    shares: Any = (EVEN, TILTED, STEEP),
    means: Any = (0.3, 0.5),
    luck: bool = False,
    question_of: dict[str, Any] | None = None,
    change: Callable[[Any], Any] | None = None,
    **given: Any,
) -> Forecast:
    asked = {"start": START, "deadline_seconds": UNTIL, "control": 0} | goal | (question_of or {})
    settings = {"days": 122, "per_day": 96.0, "n_replications": N, "noise": _noise()} | given
    paths = paths_of(shares, means, **settings)
    paths = paths if change is None else change(paths)
    alone = paths_of(shares, (0.3, 0.5), **settings | {"noise": _noise(1, 0.02), "drawn": None}) if luck else None
    return forecast_of(question(len(shares), **asked), paths, alone)


def _drawn(seed: int = 3) -> Any:
    return np.random.default_rng(seed).normal(0.5, 0.06, N)


def _with_drawn(name: str, factor: float) -> Forecast:
    drawn = _drawn()
    means = np.stack([np.full(N, 0.3), drawn], axis=1)
    noise = _noise() + factor * (drawn - 0.5)
    values = {"people.per_day": 96 + 300 * (0.5 - drawn), "rewards.delay.median": 86_400 * 4 * drawn}
    return _forecast({"precision": 0.06}, means=means, noise=noise, drawn={name: values.get(name, drawn)}, luck=True)


def _provisional(paths: Any, *, at: str, last: float = 0.1) -> Any:
    values = getattr(paths, at).copy()
    values[...] = 0.1 * paths.assigned
    values[:, :, -1] = last * paths.assigned[:, :, -1]
    return dataclasses.replace(paths, **{at: values})


def _weights(count: int) -> dict[str, Any]:
    settings = ({"policy": "Uniform()"}, *({"reward_weight": (0.5, 0.9)[k]} for k in range(count - 1)))
    names = ("equal shares", *(f"weight {one['reward_weight']:g}" for one in settings[1:]))
    return {"settings": settings, "ways": names}


def _decided(day: float, last: float) -> Any:
    since = np.full((3, N), day)
    since[1], since[2] = 1.2 * day, last
    return since


FIVE = [[0.2] * 5, [0.15, 0.15, 0.2, 0.35, 0.15], [0.05, 0.05, 0.1, 0.75, 0.05]]
FIVE_MEANS = (0.30, 0.33, 0.42, 0.50, 0.36)
FIVE_ARMS = {"arms": ("plain", "letter", "call", "prize", "gift")}

CASES: dict[str, Callable[[], Forecast]] = {
    "two arms within reach": lambda: _forecast({"precision": 0.06}),
    "a free way": lambda: _forecast({"precision": 0.06}, shares=(EVEN, [0.485, 0.515], STEEP), noise=_noise(0, 0.3)),
    "a gain too small to matter": lambda: _forecast({"precision": 0.06}, shares=(EVEN, [0.499, 0.501], STEEP)),
    "a free way that is not the one to take": lambda: _forecast(
        {"precision": 0.06}, shares=(EVEN, [0.485, 0.515], TILTED, STEEP), noise=_noise(0, 0.3)
    ),
    "a loose goal": lambda: _forecast({"precision": 0.2}),
    "a goal that all but the steepest way meet": lambda: _forecast({"precision": 0.045}),
    "a goal out of reach": lambda: _forecast({"precision": 0.02}),
    "a goal far out of reach": lambda: _forecast({"precision": 0.001}),
    "a goal almost within reach": lambda: _forecast({"precision": 0.026}),
    "no goal": lambda: _forecast({}),
    "no goal and no dates": lambda: _forecast({"start": None, "deadline_seconds": None}),
    "no deadline": lambda: _forecast({"precision": 0.06, "deadline_seconds": None}),
    "no dates": lambda: _forecast({"precision": 0.06, "start": None}),
    "no dates, out of reach": lambda: _forecast({"precision": 0.02, "start": None}),
    "no calendar": lambda: _forecast(
        {"precision": 0.06, "start": None, "deadline_seconds": None, "has_calendar": False}
    ),
    "no calendar, out of reach": lambda: _forecast(
        {"precision": 0.02, "start": None, "deadline_seconds": None, "has_calendar": False}
    ),
    "one arm equal to the control": lambda: _forecast(
        {"precision": 0.08}, shares=FIVE, means=(0.3, 0.3, 0.42, 0.5, 0.36), question_of=FIVE_ARMS
    ),
    "all arms equal": lambda: _forecast({"precision": 0.06}, means=(0.4, 0.4)),
    "five arms within reach": lambda: _forecast(
        {"precision": 0.1}, shares=FIVE, means=FIVE_MEANS, question_of=FIVE_ARMS
    ),
    "five arms out of reach": lambda: _forecast(
        {"precision": 0.035}, shares=FIVE, means=FIVE_MEANS, question_of=FIVE_ARMS
    ),
    "no control": lambda: _forecast({"precision": 0.06, "control": None}),
    "the control is best": lambda: _forecast({"precision": 0.06, "control": 1}),
    "the control may be best": lambda: _forecast(
        {"precision": 0.06}, means=np.stack([np.full(N, 0.5), np.where(np.arange(N) < 60, 0.52, 0.48)], axis=1)
    ),
    "small rewards are good": lambda: _forecast(
        {"precision": 0.06, "direction": "minimise"}, shares=(EVEN, TILTED[::-1], STEEP[::-1])
    ),
    "means instead of rates": lambda: _forecast(
        {"precision": 1.5, "is_yes_no": False, "outcome": "minutes"}, means=(12.0, 15.0), noise=_noise() * 25
    ),
    "means, small ones are good": lambda: _forecast(
        {"precision": 1.5, "is_yes_no": False, "direction": "minimise"}, means=(15.0, 12.0), noise=_noise() * 25
    ),
    "an outcome in words": lambda: _forecast({"precision": 0.06, "outcome": "came to the appointment"}),
    "weights": lambda: _forecast({"precision": 0.06}, question_of=_weights(3)),
    "differences": lambda: _forecast({"precision": 0.1, "precision_of": "differences"}),
    "which arm is best": lambda: _forecast({"margin": 0.0}, best_from_day=_decided(30.0, 40.0)),
    "an arm that is good enough": lambda: _forecast({"margin": 0.02}, best_from_day=_decided(50.0, np.inf)),
    "never decided": lambda: _forecast({"margin": 0.0}),
    "precision and a decision": lambda: _forecast(
        {"precision": 0.06, "margin": 0.02}, best_from_day=_decided(50.0, 90.0)
    ),
    "a guess that matters for days": lambda: _with_drawn("arms.prize.rate", 8.0),
    "a guess that matters for the gain": lambda: _with_drawn("arms.prize.rate", 0.0),
    "pace matters": lambda: _with_drawn("people.per_day", 8.0),
    "delay matters": lambda: _with_drawn("rewards.delay.median", 8.0),
    "rewards that come late": lambda: _forecast({"precision": 0.06}, delay_days=14.0),
    "too many rewards missing": lambda: _forecast(
        {"precision": 0.06}, change=lambda paths: _provisional(paths, at="missing")
    ),
    "rewards that are open, and come": lambda: _forecast(
        {"precision": 0.06, "holds": False}, change=lambda paths: _provisional(paths, at="open", last=0.0)
    ),
    "too many rewards waited for in vain": lambda: _forecast(
        {"precision": 0.06, "holds": False}, change=lambda paths: _provisional(paths, at="open")
    ),
    "intervals that do not hold": lambda: _forecast({"precision": 0.06, "reward_range": None}, bias=0.07),
    "means that are off": lambda: _forecast({"precision": 0.06, "reward_range": (0.0, 1.0)}, bias=-0.02),
    "some miss the goal": lambda: _forecast({"precision": 0.035, "sureness": 0.7}, noise=_noise(0, 0.45)),
    "costs": lambda: _forecast({"precision": 0.06, "cost_per_person": 2.5, "cost_per_day": 100.0}),
    "a deadline before the end of enrolment": lambda: _forecast(
        {"precision": 0.045, "deadline_seconds": 40 * 86_400.0}
    ),
}
