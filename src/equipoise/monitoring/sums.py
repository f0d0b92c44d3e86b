"""What is watched: sums of an experiment by hour and arm, and what they come to by days."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.monitoring.jumps import Moments, kurtosis

AGES = (1, 6, 24, 72, 168)
"""Ages in hours by which rewards are counted."""

DAY = 24


@dataclass(frozen=True, kw_only=True)
class HourlySums:
    """Sums by hour and arm, arrays (hours, K), from the hour of the first person to now.

    Attributes
    ----------
    first_hour : int
        Hours since 1970 of the first row.
    assigned, rewarded : float array
        People assigned, and rewards reported, in the hour.
    inverses, inverse_squares : float array
        Sums over the people assigned of 1 / p and 1 / p^2, of the probability of their arm.
    counted, totals, squares, cubes, fourths : float array
        Rewards that entered the estimates in the hour, and sums of the powers of their distances from some centre.
    removed, removed_totals, removed_squares : float array
        Those that left them.
    told : float array (hours, K, ages)
        People assigned in the hour whose reward was reported within each of the `AGES`.
    told_in_window : float array
        The same before the window passed.
    silent : float array
        People assigned in the hour who were withdrawn without a reward.
    in_play : bool array
        Whether the arm could be given during the whole hour.
    """

    first_hour: int
    assigned: FloatArray
    rewarded: FloatArray
    inverses: FloatArray
    inverse_squares: FloatArray
    counted: FloatArray
    totals: FloatArray
    squares: FloatArray
    cubes: FloatArray
    fourths: FloatArray
    removed: FloatArray
    removed_totals: FloatArray
    removed_squares: FloatArray
    told: FloatArray
    told_in_window: FloatArray
    silent: FloatArray
    in_play: FloatArray

    @property
    def n_hours(self) -> int:
        """How many hours there are."""
        return int(self.assigned.shape[0])

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return int(self.assigned.shape[1])

    @cached_property
    def days(self) -> IntArray:
        """The day of every hour, counted from the first person: an array (hours,)."""
        return np.arange(self.n_hours) // DAY

    def begin(self, hour: float) -> datetime:
        """Return the time at which a row begins."""
        return datetime.fromtimestamp((self.first_hour + hour) * 3600, UTC)

    def hour_of(self, at: datetime) -> float:
        """Return a time in hours since the first row began."""
        return (at - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(hours=1) - self.first_hour

    def by_day(self, values: FloatArray, hours: int) -> FloatArray:
        """Return the sums of the first hours by day: an array (days, K)."""
        n_days = max(-(-hours // DAY), 1)
        padded = np.zeros((n_days * DAY, *values.shape[1:]))
        padded[:hours] = values[:hours]
        return np.asarray(padded.reshape(n_days, DAY, *values.shape[1:]).sum(axis=1))

    def moments(self, begin: int, end: int) -> Moments:
        """Return the rewards that entered the estimates in some hours, less those that left them."""
        rows = slice(max(begin, 0), max(end, 0))
        return Moments(
            *(
                (added[rows] - taken[rows]).sum(axis=0)
                for added, taken in (
                    (self.counted, self.removed),
                    (self.totals, self.removed_totals),
                    (self.squares, self.removed_squares),
                )
            )
        )

    @cached_property
    def kurtosis(self) -> FloatArray:
        """The kurtosis of all rewards of each arm: an array (K,); see `jumps.kurtosis`."""
        every = (self.counted, self.totals, self.squares, self.cubes, self.fourths)
        return kurtosis(*(one.sum(axis=0) for one in every))


def hours_of(seconds: float) -> int:
    """Return a duration in hours, rounded up.

    Examples
    --------
    >>> hours_of(3600), hours_of(90 * 60)
    (1, 2)
    """
    return math.ceil(seconds / 3600)
