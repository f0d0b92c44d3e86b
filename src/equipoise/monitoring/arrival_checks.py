"""Checks of whether people and rewards still come."""

from __future__ import annotations

from datetime import datetime

import numpy as np

from equipoise._types import FloatArray
from equipoise.monitoring.check_names import ENROLMENT, REWARDS
from equipoise.monitoring.health_records import NOT_ENOUGH, OK, PROBLEM, Check
from equipoise.monitoring.stalls import critical_silence, day_to_day, silence, usual_arrivals
from equipoise.monitoring.sums import AGES, DAY, HourlySums
from equipoise.monitoring.watched import Watched, duration

SHORTEST_HOURS = 0.25
"""A stall lasts at least this long."""
FEWEST_PEOPLE, FEWEST_WAITING = 100, 50

_CAUTION, _UNKNOWN = 2.0, 0.5
"""Days are taken to differ this much more than the few that were seen do, and besides by so much for one day seen, half
as much for two, and so on: before a week is over, how much they differ is hardly known."""

_MONDAY = 4 * DAY
"""The first Monday, in hours since 1970."""


def stall_evidence(counts: FloatArray, first: int, begin: float, end: float) -> tuple[float, float] | None:
    """Return the log probability of nothing in a stretch, and how many usually come in it; None if it is not known.

    Parameters are those of `stalls.usual_arrivals`.
    """
    found = usual_arrivals(counts, first, begin, end)
    if found is None:
        return None
    seen, times = found
    differing = _CAUTION * day_to_day(counts, first) + _UNKNOWN / max(counts.shape[0] // DAY, 1)
    return silence(seen, times, differing), seen / times


def check_enrolment(watched: Watched) -> Check:
    """Check whether people have stopped coming."""
    if not watched.enrolling:
        return Check(ENROLMENT, None, OK, "No new people are taken at present.")
    sums, last = watched.sums, watched.last_assigned_at
    assert sums is not None  # noqa: S101
    counts = sums.assigned.sum(axis=1)
    if watched.day < 1 or counts.sum() < FEWEST_PEOPLE or last is None:
        return Check(ENROLMENT, None, NOT_ENOUGH, f"Fewer than {FEWEST_PEOPLE} people, or less than a day.")
    return _judged(watched, ENROLMENT, counts, last, None, "Nobody", "people", _PEOPLE_ADVICE)


def check_rewards(watched: Watched) -> Check:
    """Check whether rewards have stopped coming, although people wait for theirs."""
    if not watched.open:
        return Check(REWARDS, None, OK, "No more rewards are taken.")
    sums, last = watched.sums, watched.last_rewarded_at
    assert sums is not None  # noqa: S101
    counts = sums.rewarded.sum(axis=1)
    if watched.day < 1 or counts.sum() < FEWEST_PEOPLE or last is None:
        return Check(REWARDS, None, NOT_ENOUGH, f"Fewer than {FEWEST_PEOPLE} rewards, or less than a day.")
    expected, waiting = expected_rewards(sums, sums.hour_of(last), sums.hour_of(watched.now))
    if waiting < FEWEST_WAITING:
        return Check(REWARDS, None, OK, f"Rewards of {waiting:.0f} people are still likely to come.")
    return _judged(watched, REWARDS, counts, last, -expected, "No reward", "rewards", _REWARDS_ADVICE)


_PEOPLE_ADVICE = "See whether the page or client that assigns people runs and reaches the service, and what it logs."
_REWARDS_ADVICE = "See whether what reports rewards runs and reaches the service; the rewards can be reported later."


def expected_rewards(sums: HourlySums, begin: float, end: float) -> tuple[float, float]:
    """Return how many rewards people of their ages would bring in a stretch, and how many were still to come before.

    The share of people with a reward by each age is taken from those who are old enough, and grows evenly between.
    """
    ages, shares = [0.0], [0.0]
    for place, age in enumerate(AGES):
        rows = min(int(end) - age - 1, sums.n_hours)
        units = sums.assigned[: max(rows, 0)].sum()
        if units < FEWEST_PEOPLE:
            break
        ages.append(float(age))
        shares.append(max(float(sums.told[:rows, :, place].sum() / units), shares[-1]))
    middle = np.arange(sums.n_hours) + 0.5
    people = sums.assigned.sum(axis=1)
    then, now = (np.interp(at - middle, ages, shares) for at in (begin, end))
    return float(people @ (now - then)), float(people @ (shares[-1] - then))


def _judged(
    watched: Watched,
    check: str,
    counts: FloatArray,
    last: datetime,
    other: float | None,
    who: str,
    what: str,
    advice: str,
) -> Check:
    sums = watched.sums
    assert sums is not None  # noqa: S101
    first = sums.first_hour - _MONDAY
    begin, end = (first + sums.hour_of(at) for at in (last, watched.now))
    before = counts[: max(int(begin - first), 0)]
    gap = max(end - begin, 0.0)
    found = stall_evidence(before, first, begin, end)
    if gap < SHORTEST_HOURS:
        return Check(check, None, OK, _not_unusual(gap), gap)
    if found is None:
        return Check(check, None, NOT_ENOUGH, "There were no such hours of the week yet to compare with.")
    evidence, usual = found
    if other is not None:
        evidence, usual = max(evidence, other), min(usual, -other)
    per_day = float(before[-14 * DAY :].sum()) / max(min(before.size, 14 * DAY) / DAY, 1.0)
    stalled = evidence < critical_silence(watched.day, per_day)
    shown = f"{usual:.0f}" if usual >= 1 else "fewer than 1"
    return Check(
        check,
        None,
        PROBLEM if stalled else OK,
        f"{who} came for {duration(gap)}; usually {shown} {what} would have in that time."
        if stalled
        else _not_unusual(gap),
        0.0 if stalled else gap,
        usual if stalled else None,
        advice if stalled else "",
        last if stalled else None,
    )


def _not_unusual(gap: float) -> str:
    return f"The last came {duration(gap)} ago, which is not unusual."
