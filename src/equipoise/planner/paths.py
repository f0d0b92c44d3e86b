"""What simulated experiments recorded along the way, for every way to assign people: arrays to read forecasts from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise._types import FloatArray, IntArray

CountArray: TypeAlias = NDArray[np.int32]
"""Counts of people, in half the memory."""


@dataclass(frozen=True, kw_only=True)
class Paths:
    """Records of ways (W), replications (R), looks (L) and arms (K).

    Replication r has the same world and the same people under every way. Looks are at fixed times; the last is after
    all rewards that will ever come. Enrolment goes on to the end of the world's days, whatever a stopping rule says:
    rules are read off the paths.
    """

    look_seconds: FloatArray
    """(L,) From the start; infinite for the last."""
    drawn: dict[str, FloatArray]
    """(R,) The guesses drawn, by their place in the plan: ``arms.prize.rate``, ``people.per_day``."""
    replication: IntArray
    """(R,) Numbers of the replications."""
    mean: FloatArray
    """(R, K) True means, without drift."""
    std: FloatArray
    """(R, K)."""
    arrived: CountArray
    """(R, L) People so far; the same under every way."""
    assigned: CountArray
    """(W, R, L, K)."""
    counted: CountArray
    """(W, R, L, K) Rewards in the estimates."""
    open: CountArray
    """(W, R, L, K) Units whose reward may still come and would count at once."""
    held: CountArray
    """(W, R, L, K) Units whose reward is held back."""
    missing: CountArray
    """(W, R, L, K) Units left out of the estimates for good, as `provisional` counts them."""
    estimate: FloatArray
    """(W, R, L, K) Means so far."""
    spread: FloatArray
    """(W, R, L, K) Standard deviations so far."""
    low: FloatArray
    """(W, R, L, K) Lower ends of the intervals that hold together and at all times, as `status` shows them; NaN while
    nothing can be said."""
    high: FloatArray
    """(W, R, L, K)."""
    widest_difference: FloatArray
    """(W, R, L) As `Precision(of="differences")` reads it; NaN while unknown, or if it was not asked for."""
    n_may_be_best: CountArray
    """(W, R, L) Number of arms that may still be best; 0 if it was not asked for."""
    most_lost: FloatArray
    """(W, R, L) What choosing the arm with the best mean can cost at most; NaN while unknown, or not asked for."""
    last_reward_seconds: FloatArray
    """(W, R) When the last reward or default value counted."""

    @property
    def n_replications(self) -> int:
        """Number of simulated experiments per way."""
        return int(self.mean.shape[0])

    @classmethod
    def empty(cls, n_ways: int, n_replications: int, look_seconds: FloatArray, n_arms: int, *, first: int = 0) -> Self:
        """Return paths to be filled in, of replications numbered from `first` on."""
        arms, looks = (n_ways, n_replications, look_seconds.size, n_arms), (n_ways, n_replications, look_seconds.size)
        counts = ("assigned", "counted", "open", "held", "missing")
        numbers = ("estimate", "spread", "low", "high")
        made: dict[str, Any] = {name: np.zeros(arms, np.int32) for name in counts}
        made |= {name: np.full(arms, np.nan) for name in numbers}
        return cls(
            look_seconds=look_seconds,
            drawn={},
            replication=first + np.arange(n_replications, dtype=np.int64),
            mean=np.full((n_replications, n_arms), np.nan),
            std=np.full((n_replications, n_arms), np.nan),
            arrived=np.zeros((n_replications, look_seconds.size), np.int32),
            **made,
            widest_difference=np.full(looks, np.nan),
            n_may_be_best=np.zeros(looks, np.int32),
            most_lost=np.full(looks, np.nan),
            last_reward_seconds=np.zeros((n_ways, n_replications)),
        )

    def joined(self, other: Paths) -> Paths:
        """Return the paths of both, replications one after the other."""
        values: dict[str, Any] = {"look_seconds": self.look_seconds}
        values["drawn"] = {name: np.concatenate([self.drawn[name], other.drawn[name]]) for name in self.drawn}
        for name, axis in _AXIS.items():
            values[name] = np.concatenate([getattr(self, name), getattr(other, name)], axis=axis)
        return Paths(**values)

    def only(self, places: ArrayLike) -> Paths:
        """Return some of the replications, by their places."""
        chosen = np.asarray(places, np.int64)
        values: dict[str, Any] = {"look_seconds": self.look_seconds}
        values["drawn"] = {name: drawn[chosen] for name, drawn in self.drawn.items()}
        for name, axis in _AXIS.items():
            values[name] = np.take(getattr(self, name), chosen, axis=axis)
        return Paths(**values)

    def with_drawn(self, drawn: Mapping[str, FloatArray]) -> Paths:
        """Return the same paths with the guesses drawn for them."""
        return replace(self, drawn=dict(drawn))


_BY_REPLICATION = ("replication", "mean", "std", "arrived")
_AXIS = {
    field.name: 0 if field.name in _BY_REPLICATION else 1
    for field in fields(Paths)
    if field.name not in ("look_seconds", "drawn")
}
"""The axis of the replications in each array."""
