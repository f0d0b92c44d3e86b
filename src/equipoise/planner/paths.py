"""What simulated experiments recorded along the way, for every way to assign people: arrays to read forecasts from."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from equipoise._types import FloatArray, IntArray


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
    mean: FloatArray
    """(R, K) True means, without drift."""
    std: FloatArray
    """(R, K)."""
    arrived: IntArray
    """(R, L) People so far; the same under every way."""
    assigned: IntArray
    """(W, R, L, K)."""
    counted: IntArray
    """(W, R, L, K) Rewards in the estimates."""
    open: IntArray
    """(W, R, L, K) Units whose reward may still come and would count at once."""
    held: IntArray
    """(W, R, L, K) Units whose reward is held back."""
    missing: IntArray
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
    n_may_be_best: IntArray
    """(W, R, L) Number of arms that may still be best."""
    most_lost: FloatArray
    """(W, R, L) What choosing the arm with the best mean can cost at most; NaN while unknown, or not asked for."""
    last_reward_seconds: FloatArray
    """(W, R) When the last reward came."""

    @property
    def n_replications(self) -> int:
        """Number of simulated experiments per way."""
        return int(self.mean.shape[0])

    def joined(self, other: Paths) -> Paths:
        """Return the paths of both, replications one after the other."""
        values = {}
        for field in fields(self):
            ours, theirs = getattr(self, field.name), getattr(other, field.name)
            if field.name == "look_seconds":
                values[field.name] = ours
            elif field.name == "drawn":
                values[field.name] = {name: np.concatenate([ours[name], theirs[name]]) for name in ours}
            else:
                axis = 0 if field.name in ("mean", "std", "arrived") else 1
                values[field.name] = np.concatenate([ours, theirs], axis=axis)
        return Paths(**values)
