"""Tell whether people or rewards stopped coming, by how many came at the same hours of the week before."""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.monitoring.budget import spent

WEEK = 168
"""Hours."""

_WEEKS = 4
"""Weeks that the profile looks back."""


def usual_arrivals(counts: FloatArray, first: int, begin: float, end: float) -> tuple[float, float] | None:
    """Return how many came in the same hours before, and how many times those hours were seen; None if never.

    Hours are compared with the same hours of the week in up to four weeks before. Before two weeks are over they are
    compared with the same hours of working days, or of week-ends; on the first week-end nothing is known.

    Parameters
    ----------
    counts : int array (hours,)
        Arrivals by hour, from the first hour on, up to and without the hour in which the stall begins.
    first : int
        The first hour, counted from a Monday at 00:00.
    begin, end : float
        When the stall begins and ends, in hours of the same count.

    Returns
    -------
    pair of float
        Arrivals, and the times that the stretch was seen: the smallest number of any of its hours.
    """
    seen, times = 0.0, math.inf
    hour = math.floor(begin)
    n_hours = counts.shape[0]
    while hour < end:
        part = min(end, hour + 1.0) - max(begin, hour)
        same = _same_hours(hour, first, n_hours)
        if not same.size:
            return None
        times = min(times, same.size)
        seen += part * float(counts[same].mean())
        hour += 1
    return None if not math.isfinite(times) else (seen * times, times)


def _same_hours(hour: int, first: int, n_hours: int) -> IntArray:
    """Return the places in the record of the hours that one hour is compared with."""
    place = hour - first
    weeks = np.arange(1, _WEEKS + 1) * WEEK
    same = place - weeks[(place - weeks >= 0) & (place - weeks < n_hours)]
    if same.size >= 2:
        return same
    days = place - 24 * np.arange(1, 15)
    days = days[(days >= 0) & (days < n_hours)]
    weekend = hour % WEEK >= 5 * 24
    return np.asarray(days[(((days + first) % WEEK) >= 5 * 24) == weekend])


def silence(seen: float, times: float, dispersion: float = 0.0) -> float:
    """Return the log probability that nobody comes in a stretch in which so many came before.

    If `seen` came in `times` such stretches, at a rate that is not known otherwise, the next has none with probability
    ``(times / (times + 1)) ^ seen``: the rate's uncertainty is in it. Where days are busy and quiet, the rate of the
    day is drawn from a gamma distribution besides.

    Examples
    --------
    >>> round(silence(40, 2), 1), round(silence(40, 4), 1), round(silence(40, 2, dispersion=0.1), 1)
    (-16.2, -8.9, -9.6)
    """
    expected = -seen * math.log(times / (times + 1.0))
    return -expected if dispersion == 0.0 else -math.log1p(dispersion * expected) / dispersion


def day_to_day(counts: FloatArray, first: int) -> float:
    """Return how much the rates of days differ beyond chance: the squared coefficient of variation, 0 if not at all.

    Working days are compared with working days of the last four weeks, and week-ends with week-ends.

    Parameters
    ----------
    counts : int array (hours,)
        Arrivals by hour.
    first : int
        The first hour, counted from a Monday at 00:00.

    Examples
    --------
    >>> even = np.full(24 * 14, 4.0)
    >>> round(day_to_day(even, 0), 3), round(day_to_day(even * np.repeat([0.5, 1.5], 24 * 7), 0), 3)
    (0.0, 0.283)
    """
    skip = -first % 24
    n_days = (counts.shape[0] - skip) // 24
    days = counts[skip : skip + 24 * n_days].reshape(n_days, 24).sum(axis=1)[-7 * _WEEKS :]
    weekend = ((np.arange(n_days)[-7 * _WEEKS :] + (first + skip) // 24) % 7) >= 5
    beyond, weight = 0.0, 0.0
    for part in (days[weekend], days[~weekend]):
        if part.size > 1:
            beyond += float(((part - part.mean()) ** 2).sum()) * part.size / (part.size - 1) - float(part.sum())
            weight += part.size * float(part.mean()) ** 2
    return max(beyond / weight, 0.0) if weight else 0.0


def critical_silence(day: int, per_day: float) -> float:
    """Return the log probability below which a silence is a stall: a day's budget, divided by the gaps of the day.

    Examples
    --------
    >>> round(critical_silence(14, 100), 1)
    -17.3
    """
    return math.log(spent(day)) - math.log(max(per_day, 1.0))
