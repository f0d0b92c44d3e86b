"""Everything that the checks of an experiment read, and how a level becomes a finding."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import numpy as np

from equipoise._types import FloatArray
from equipoise.monitoring.health_records import NOTE, OK, PROBLEM
from equipoise.monitoring.sums import DAY, HourlySums

LEVELS = (OK, NOTE, PROBLEM)
"""States by level: 0, 1, 2."""


@dataclass(frozen=True, kw_only=True)
class Extreme:
    """A reward far from the mean of its arm, and the event that brought it."""

    arm: int
    reward: float
    event: int


@dataclass(frozen=True, kw_only=True)
class Watched:
    """An experiment as its checks see it.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    active : tuple of bool
        Whether an arm can be given now.
    sums : HourlySums or None
        None before the first person.
    now : datetime
        The present, in UTC.
    enrolling, open : bool
        Whether new people are taken, and whether rewards are.
    window_seconds : float or None
        How long a reward may take.
    default : float or None
        What counts for people without a reward.
    hold : bool
        Whether rewards count only when the window has passed.
    floors : float array (K,)
        The least probability of each arm that is active.
    rewarded, mean, std, half_width : float array (K,)
        Of the estimates now; NaN where they are unknown. Where rewards are too skewed for an interval, the half-width
        is what is usual.
    last_assigned_at, last_rewarded_at : datetime or None
        When somebody was assigned last, and when a reward was reported last.
    extremes : tuple of Extreme
        The rewards furthest out that are in the estimates.
    wanted : float array (days, K) or None
        The shares that the policy steered towards on each whole day; NaN where they are not known.
    by_arm : bool
        Whether there is one column for each arm; False if all arms are added up, as they are too many.
    """

    arms: tuple[str, ...]
    active: tuple[bool, ...]
    sums: HourlySums | None
    now: datetime
    enrolling: bool = True
    open: bool = True
    window_seconds: float | None = None
    default: float | None = None
    hold: bool = False
    floors: FloatArray = field(default_factory=lambda: np.zeros(0))
    rewarded: FloatArray = field(default_factory=lambda: np.zeros(0))
    mean: FloatArray = field(default_factory=lambda: np.zeros(0))
    std: FloatArray = field(default_factory=lambda: np.zeros(0))
    half_width: FloatArray = field(default_factory=lambda: np.zeros(0))
    last_assigned_at: datetime | None = None
    last_rewarded_at: datetime | None = None
    extremes: tuple[Extreme, ...] = ()
    wanted: FloatArray | None = None
    by_arm: bool = True

    @cached_property
    def day(self) -> int:
        """Whole days since the hour of the first person: what repeats is decided once on each."""
        return 0 if self.sums is None else max(int(self.sums.hour_of(self.now) // DAY), 0)

    @property
    def decided_at(self) -> int:
        """The hour, counted from the first person's, at which the last whole day ended."""
        return self.day * DAY

    def rows_final(self, hours: int) -> int:
        """Return of how many rows everybody had been there for so many hours when the last whole day ended."""
        assert self.sums is not None  # noqa: S101
        return max(min(self.decided_at - hours, self.sums.n_hours), 0)

    def days_final(self, hours: int) -> int:
        """Return how many whole days of people had done so."""
        return self.rows_final(hours) // DAY


def percent(share: float) -> str:
    """Format a share for a sentence.

    Examples
    --------
    >>> percent(0.123), percent(0.0123), percent(0)
    ('12%', '1.2%', '0%')
    """
    return f"{share:.0%}" if share >= 0.0995 or share == 0 else f"{share:.1%}"


def duration(hours: float) -> str:
    """Format a duration for a sentence.

    Examples
    --------
    >>> duration(0.4), duration(1), duration(9), duration(50), duration(72)
    ('24 minutes', '1 hour', '9 hours', '2.1 days', '3 days')
    """
    if hours < 1:
        number, unit = round(hours * 60), "minute"
    elif hours < 48:
        number, unit = round(hours), "hour"
    else:
        days = round(hours / 24, 1)
        return f"{days:g} days"
    return f"{number} {unit}{'' if number == 1 else 's'}"
