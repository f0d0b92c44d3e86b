"""Paths of simulated experiments whose first passages are known exactly, for tests of what is read off them."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.planner.paths import Paths
from equipoise.planner.question import SECONDS_A_DAY, Question


def paths_of(
    shares: Any,
    means: Any,
    *,
    noise: Any = 1.0,
    days: int = 40,
    per_day: float = 100.0,
    n_replications: int = 40,
    spread: float = 0.5,
    delay_days: float = 0.0,
    pace: Any = None,
    bias: float = 0.0,
    drawn: Any = None,
    best_from_day: Any = None,
    looks: Any = None,
) -> Paths:
    """Return paths on which arm k of a way has its share of the people, and intervals of half-width a / sqrt(n).

    Parameters
    ----------
    shares : array (ways, arms)
    means : array (arms,) or (replications, arms)
    noise : float or array (replications,)
        The factor a.
    pace : array (replications,), optional
        How many times as many people come.
    """
    shares = np.atleast_2d(np.asarray(shares, float))
    n_ways, n_arms = shares.shape
    means = np.broadcast_to(np.asarray(means, float), (n_replications, n_arms))
    noise = np.broadcast_to(np.asarray(noise, float), (n_replications,))
    pace = np.broadcast_to(np.asarray(1.0 if pace is None else pace, float), (n_replications,))
    look_days = np.arange(1, days + 1, dtype=float) if looks is None else np.asarray(looks, float)
    times = np.append(look_days, days + delay_days)
    people = np.minimum(times, days) * per_day * pace[:, None]
    known = np.clip(times - delay_days, 0, days) * per_day * pace[:, None]
    assigned = people[None, :, :, None] * shares[:, None, None, :]
    counted = known[None, :, :, None] * shares[:, None, None, :]
    with np.errstate(divide="ignore"):
        width = np.where(counted > 0, noise[None, :, None, None] / np.sqrt(np.maximum(counted, 1e-12)), np.nan)
    estimate = np.broadcast_to(means[None, :, None, :] + bias, counted.shape).copy()
    estimate[counted == 0] = np.nan
    base = Paths.empty(n_ways, n_replications, np.append(look_days * SECONDS_A_DAY, np.inf), n_arms)
    left = np.full(counted.shape[:3], n_arms)
    if best_from_day is not None:
        left[times[None, None, :] >= np.asarray(best_from_day)[:, :, None]] = 1
    values: dict[str, Any] = {name: getattr(base, name) for name in base.__dataclass_fields__}
    values |= {
        "drawn": dict(drawn or {}),
        "mean": means.copy(),
        "std": np.full(means.shape, spread),
        "arrived": people,
        "assigned": assigned,
        "counted": counted,
        "open": np.zeros(counted.shape),
        "held": assigned - counted,
        "estimate": estimate,
        "spread": np.full(counted.shape, spread),
        "low": estimate - width,
        "high": estimate + width,
        "widest_difference": 1.5 * width.max(axis=-1),
        "n_may_be_best": left,
        "last_reward_seconds": np.full((n_ways, n_replications), (days + delay_days) * SECONDS_A_DAY),
    }
    return Paths(**values)


def question(n_ways: int = 1, **given: Any) -> Question:
    """Return a question about two arms, or those given."""
    settings = ({"policy": "Uniform()"}, *({"information_kept": round(1 - 0.2 * k, 2)} for k in range(1, n_ways)))
    names = ("equal shares", *(f"information kept {one['information_kept']:g}" for one in settings[1:]))
    return Question(**{"ways": names, "settings": settings, "arms": ("plain", "prize"), "holds": True} | given)
