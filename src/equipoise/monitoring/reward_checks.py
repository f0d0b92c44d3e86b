"""Checks of whether rewards come: missing by arm and overall, their delays over time and by arm."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.monitoring.budget import critical_evidence, critical_z
from equipoise.monitoring.check_names import DELAY_BY_ARM, DELAY_DRIFT, MISSING, MISSING_BY_ARM
from equipoise.monitoring.health_records import NOT_ENOUGH, OK, Check
from equipoise.monitoring.proportions import Excess, Tally, change, evidence_of_more, excess, tally
from equipoise.monitoring.sums import AGES, DAY, hours_of
from equipoise.monitoring.watched import LEVELS, Watched, duration, percent

_USUAL_WINDOW = 7 * 24 * 3600.0
"""Where no window is declared, people without a reward after 7 days count as missing."""

_RECENT_DAYS, _RECENT_HOURS, _BEFORE_HOURS, _WEEK = 7, 72, 14 * 24, 168


def missing_by_arm_level(found: Excess, evidence: FloatArray, sums: Tally) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the level of each arm, 0 to 2, and whether there are enough people: arrays (..., K)."""
    enough = sums.expected >= 5.0
    evident = enough & (evidence > critical_evidence(evidence.shape[-1]))
    return _level(evident, found.difference, 0.02, 0.03), enough


def missing_level(found: Excess, units: FloatArray, before: FloatArray, day: int) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the level of the missing rewards of the last days against those before, and whether there are enough."""
    enough = (units >= 100) & (before >= 100)
    evident = enough & (found.z > critical_z(day))
    return _level(evident, found.difference, 0.05, 0.05), enough


def delay_drift_level(
    found: Excess, weekly: Excess, units: FloatArray, before: FloatArray, day: int
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the level of a change of delays at each age: arrays (..., ages).

    `weekly` compares with the same hours of the two weeks before, which a week-end does not change. Both must be
    evident: if people answer more slowly at week-ends, the first often is.
    """
    enough = (units >= 100) & (before >= 100)
    critical = critical_z(day, found.z.shape[-1])
    agree = (np.sign(weekly.z) == np.sign(found.z)) & (np.minimum(np.abs(found.z), np.abs(weekly.z)) > critical)
    size = np.minimum(np.abs(found.difference), np.abs(weekly.difference))
    return _level(enough & agree, size, 0.10, 0.10), enough


def delay_by_arm_level(
    found: Excess, evidence: FloatArray, units: FloatArray, others: FloatArray
) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the level of each age and arm, from the evidence that fewer have a reward: arrays (..., ages, K)."""
    enough = (units >= 100) & (others >= 100)
    evident = enough & (evidence > critical_evidence(found.z.shape[-1] * len(AGES)))
    return _level(evident, -found.difference, 0.15, 0.15), enough


def _level(evident: NDArray[np.bool_], size: FloatArray, note: float, problem: float) -> IntArray:
    return np.where(evident, (size >= note).astype(np.int64) + (size >= problem), 0)


def check_missing_by_arm(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether rewards of its people are missing more often than those of the others."""
    if watched.default is not None:
        yield Check(
            MISSING_BY_ARM, None, OK, f"People without a reward count as {watched.default:g}: none are missing."
        )
        return
    window = watched.window_seconds or _USUAL_WINDOW
    after = f"within {duration(window / 3600)}"
    if len(watched.arms) < 2:
        yield Check(MISSING_BY_ARM, None, OK, "There is one arm only, so arms cannot differ.")
        return
    assert watched.sums is not None  # noqa: S101
    rows = watched.days_final(hours_of(window)) * DAY
    units, missing = (watched.sums.by_day(one, rows) for one in _hourly_missing(watched, rows))
    sums = tally(units, missing).summed()
    found = excess(sums)
    level, enough = missing_by_arm_level(found, evidence_of_more(units, missing)[-1], sums)
    for arm, name in enumerate(watched.arms):
        if not enough[arm]:
            expected = sums.expected.item(arm)
            yield Check(
                MISSING_BY_ARM,
                name,
                NOT_ENOUGH,
                f"Too few rewards of {name!r} are missing or would be: {expected:.1f} of the 5 needed.",
            )
            continue
        rate, others = found.rate.item(arm), max(found.others.item(arm), 0.0)
        yield Check(
            MISSING_BY_ARM,
            name,
            LEVELS[level[arm]],
            f"{percent(rate)} of the people with {name!r} have no reward {after}; of the others {percent(others)}.",
            rate,
            others,
            f"The mean of {name!r} is that of the people who answered, and may flatter it. See who the others are; "
            "consider a default value for them in a new experiment."
            if level[arm]
            else "",
        )


def check_missing(watched: Watched) -> Check:
    """Check whether more rewards are missing of the people of the last days than before."""
    if watched.default is not None:
        return Check(MISSING, None, OK, f"People without a reward count as {watched.default:g}: none are missing.")
    assert watched.sums is not None  # noqa: S101
    rows = watched.rows_final(hours_of(watched.window_seconds or _USUAL_WINDOW))
    units, missing = (one.sum(axis=1) for one in _hourly_missing(watched, rows))
    split = max(rows - _RECENT_DAYS * DAY, 0)
    counts = [
        np.asarray(one)
        for part in (slice(split, rows), slice(split))
        for one in (units[part].sum(), missing[part].sum())
    ]
    found = change(*counts)
    level, enough = missing_level(found, counts[0], counts[2], watched.day)
    if not enough:
        return Check(
            MISSING, None, NOT_ENOUGH, "Fewer than 100 people on either side of the last 7 days can be compared."
        )
    rate, others = float(found.rate), float(found.others)
    return Check(
        MISSING,
        None,
        LEVELS[int(level)],
        f"{percent(rate)} of the people of the last 7 days have no reward; of those before {percent(others)}.",
        rate,
        others,
        "Fewer answers come in. See whether what reports rewards still runs, and whether other people come."
        if level
        else "",
        watched.sums.begin(split) if level else None,
    )


def check_delay_drift(watched: Watched) -> Check:
    """Check whether rewards take longer, or less long, than before."""
    sums = watched.sums
    assert sums is not None  # noqa: S101
    ages = _ages(watched)
    counts, weekly = [], []
    for place, age in ages:
        rows = watched.rows_final(age)
        units, told = sums.assigned[:rows].sum(axis=1), sums.told[:rows, :, place].sum(axis=1)
        split = max(rows - _RECENT_HOURS, 0)
        recent, before = slice(split, rows), slice(max(split - _BEFORE_HOURS, 0), split)
        counts.append([units[recent].sum(), told[recent].sum(), units[before].sum(), told[before].sum()])
        same = [slice(split - back, rows - back) for back in (_WEEK, 2 * _WEEK) if split - back >= 0]
        weekly.append([*counts[-1][:2], *(sum(one[part].sum() for part in same) for one in (units, told))])
    if not counts:
        return Check(DELAY_DRIFT, None, NOT_ENOUGH, "Nobody is old enough yet.")
    columns = np.array(counts, dtype=float).T
    found = change(*columns)
    level, enough = delay_drift_level(
        found, change(*np.array(weekly, dtype=float).T), columns[0], columns[2], watched.day
    )
    if not enough.any():
        return Check(
            DELAY_DRIFT, None, NOT_ENOUGH, "Fewer than 100 people on either side of the last 3 days can be compared."
        )
    size = np.where(enough, np.abs(found.difference) + level, -1.0)
    worst = int(size.argmax())
    rate, others = float(found.rate[worst]), float(found.others[worst])
    return Check(
        DELAY_DRIFT,
        None,
        LEVELS[int(level[worst])],
        f"{percent(rate)} of the people of the last 3 days had a reward within {duration(ages[worst][1])}; "
        f"in the two weeks before {percent(others)}.",
        rate,
        others,
        _drift_advice(rate < others, watched.hold) if level[worst] else "",
        sums.begin(max(watched.rows_final(ages[worst][1]) - _RECENT_HOURS, 0)) if level[worst] else None,
    )


def _drift_advice(later: bool, hold: bool) -> str:
    how = f"Rewards come {'later' if later else 'sooner'} than they did. "
    if hold:
        return how + "They count when the window has passed, so no arm is favoured."
    return how + (
        "Until they are in, arms are judged by the quick. If arms differ in that, hold rewards back in a new one."
    )


def check_delay_by_arm(watched: Watched) -> Iterator[Check]:
    """Yield, for each arm, whether its rewards come later than those of the others, where they count as they come."""
    if watched.hold:
        yield Check(
            DELAY_BY_ARM, None, OK, "Rewards are held until the window has passed, so that no quick arm is favoured."
        )
        return
    sums = watched.sums
    assert sums is not None  # noqa: S101
    ages = _ages(watched)
    if not ages or len(watched.arms) < 2:
        yield Check(DELAY_BY_ARM, None, NOT_ENOUGH, "Nothing can be compared yet.")
        return
    found, evidence, compared = [], [], []
    for place, age in ages:
        rows = watched.days_final(age) * DAY
        units, told = sums.by_day(sums.assigned, rows), sums.by_day(sums.told[:, :, place], rows)
        counts = tally(units, told).summed()
        found.append(excess(counts))
        evidence.append(evidence_of_more(units, units - told)[-1])
        compared.append([counts.units, counts.all_units - counts.units])
    every = Excess(*(np.stack(parts) for parts in zip(*found, strict=True)))
    counts_of = np.array(compared)
    level, enough = delay_by_arm_level(every, np.stack(evidence), counts_of[:, 0], counts_of[:, 1])
    for arm, name in enumerate(watched.arms):
        if not enough[:, arm].any():
            yield Check(
                DELAY_BY_ARM, name, NOT_ENOUGH, f"Fewer than 100 people with {name!r} or without it can be compared."
            )
            continue
        worst = int(np.where(enough[:, arm], level[:, arm] - every.difference[:, arm], -9.0).argmax())
        rate, others = every.rate.item(worst, arm), every.others.item(worst, arm)
        yield Check(
            DELAY_BY_ARM,
            name,
            LEVELS[int(level[worst, arm])],
            f"{percent(rate)} of the people with {name!r} had a reward within {duration(ages[worst][1])}; "
            f"of the others {percent(max(others, 0.0))}.",
            rate,
            others,
            f"Answers of {name!r} come later or never, and rewards count as they come: the arms are compared by their "
            "quick answers. In a new experiment, hold rewards back until the window has passed."
            if level[worst, arm]
            else "",
        )


def _ages(watched: Watched) -> list[tuple[int, int]]:
    """Return the places and hours of the ages that matter: those within the window that somebody has reached."""
    window = (watched.window_seconds or _USUAL_WINDOW) / 3600
    return [(place, age) for place, age in enumerate(AGES) if age <= window and watched.days_final(age) > 0]


def _hourly_missing(watched: Watched, rows: int) -> tuple[FloatArray, FloatArray]:
    """Return the people of the first rows who stayed, and those of them whose window passed without a reward."""
    sums = watched.sums
    assert sums is not None  # noqa: S101
    units = (sums.assigned - sums.silent)[:rows]
    told = sums.told_in_window if watched.window_seconds is not None else sums.told[:, :, AGES.index(168)]
    return units, units - told[:rows]
