"""Read the timeline of an experiment from its rollup."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import arm_failures
from equipoise.errors import EquipoiseError, InvalidInput, StoreMismatch
from equipoise.experiment.course import DELAY_NAMES, PERIODS, Timeline
from equipoise.experiment.inference import tightest_at
from equipoise.experiment.rollup import DELAYS, HOUR, Rollup
from equipoise.experiment.state import FINISHED, State, apply_change, created_state
from equipoise.stats import ArmStats
from equipoise.store.schema import instant, microseconds

if TYPE_CHECKING:
    from equipoise.experiment.checkpoints import KeptRollup

MOST_PERIODS = 10_000
MOST_CELLS = 1_000_000
"""Most periods times arms of one timeline, which then takes some 200 MB."""
_MOST_ENDS = 20_000
_MONDAY = 96
"""Hours from the beginning of 1970 to its first Monday."""


class Phase(NamedTuple):
    """A time in which the arms in play and the dial stayed the same, with the state from its first event on.

    Of the state, the arms, the settings and what can be computed from them are right; it has no statistics.
    """

    at: int
    state: State


def phases(kept: KeptRollup) -> list[Phase]:
    """Return the phases of an experiment up to the event that its rollup reaches."""
    found: tuple[int, list[Phase]] = kept.derived.get("phases", (0, []))
    n_read, known = found
    if n_read == len(kept.changes):
        return known
    known = list(known)
    for number, kind, at, arm, details in kept.changes[n_read:]:
        try:
            data = {} if details is None else json.loads(details)
            if not known:
                state = created_state(kept.name, at, data)
            else:
                state = known[-1].state.copy()
                apply_change(state, kind, arm, data)
        except (EquipoiseError, ValueError, TypeError, LookupError) as error:
            what = f"event {number} of experiment {kept.name!r} cannot be read: {error}"
            raise StoreMismatch(what, hint="equipoise verify tells more") from error
        known.append(Phase(at, state))
    kept.derived["phases"] = len(kept.changes), known
    return known


def timeline_of(kept: KeptRollup, now: datetime, every: str, since: datetime | None) -> Timeline:
    """Compute the timeline from a rollup that reaches the end of the log."""
    rollup = _rollup(kept)
    known = phases(kept)
    state = known[-1].state
    periods = _periods(rollup, state, microseconds(now), every, since)
    n_arms = len(state.names)
    place = np.clip(periods.of(rollup.hour) + 1, 0, periods.n) * n_arms + rollup.arm

    def table(values: NDArray[Any]) -> FloatArray:
        """Add up cells by period and arm; the first row is all that came before."""
        sums = np.bincount(place, values.astype(np.float64), (periods.n + 1) * n_arms).astype(np.float64)
        return sums.reshape(periods.n + 1, n_arms)

    def within(name: str) -> IntArray:
        return table(rollup.count(name)).astype(np.int64)[1:]

    def so_far(values: NDArray[Any]) -> FloatArray:
        sums: FloatArray = table(values).cumsum(axis=0)[1:]
        return sums

    def as_count(values: FloatArray) -> IntArray:
        return values.astype(np.int64)

    assigned = within("assigned")
    assigned_so_far = as_count(so_far(rollup.count("assigned")))
    counted = so_far(rollup.count("counted") - rollup.count("removed"))
    moments = _moments(rollup, counted, so_far)
    together = assigned.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share_given = assigned / together
    settled = _settled(rollup, state, microseconds(now), as_count, table)
    wanted, low, high = _ends_of_periods(kept, known, periods, assigned_so_far, moments)
    return Timeline(
        name=kept.name,
        every=every,
        at=now,
        event=kept.event,
        arms=tuple(state.names),
        start=tuple(instant(int(hour) * HOUR) for hour in periods.hours()),
        assigned=assigned,
        assigned_so_far=assigned_so_far,
        counted_so_far=as_count(counted),
        mean=moments.mean,
        std=moments.std,
        low=low,
        high=high,
        share_given=share_given,
        share_wanted=wanted,
        answered=within("cohort_rewarded"),
        delays=DELAY_NAMES,
        **{name: within(name) for name in ("rewarded", "corrected", "expired", "withdrawn")},
        **settled,
    )


def _rollup(kept: KeptRollup) -> Rollup:
    assert kept.rollup is not None  # noqa: S101
    return kept.rollup


class _Periods(NamedTuple):
    """Periods of some hours; `first` is the index of the first one, and `n` their number."""

    size: int
    shift: int
    first: int
    n: int

    def of(self, hour: NDArray[Any]) -> IntArray:
        """Return the index of the period of each hour."""
        found: IntArray = (hour - self.shift) // self.size - self.first
        return found

    def hours(self) -> IntArray:
        """Return the hour in which each period begins."""
        return (self.first + np.arange(self.n)) * self.size + self.shift


def _periods(rollup: Rollup, state: State, now: int, every: str, since: datetime | None) -> _Periods:
    """Return the periods from the creation, or `since`, to now, or to the last event of a finished experiment."""
    size, shift = PERIODS[every], _MONDAY if every == "week" else 0
    hours = rollup.hour
    first = min([state.created_at // HOUR, *([int(hours.min())] if hours.size else [])])
    if since is not None:
        first = max(first, microseconds(since) // HOUR)
    ends = [first, *([int(hours.max())] if hours.size else [])]
    if state.state != FINISHED:
        ends.append(now // HOUR)
    low, high = (first - shift) // size, (max(ends) - shift) // size
    n = high - low + 1
    if n > MOST_PERIODS or n * len(state.names) > MOST_CELLS:
        raise InvalidInput(
            f"a timeline has at most {MOST_PERIODS:,} periods, and {MOST_CELLS:,} periods times arms; every {every} "
            f"gives {n:,} periods of {len(state.names):,} arm{'s' * (len(state.names) != 1)}",
            hint="choose longer periods, or a later beginning",
        )
    return _Periods(size, shift, low, n)


class _Moments(NamedTuple):
    """Moments of the rewards in the estimates, by period and arm; the last two are NaN where they are not known."""

    counted: FloatArray
    mean: FloatArray
    std: FloatArray
    skewness: FloatArray
    kurtosis: FloatArray


def _moments(rollup: Rollup, counted: FloatArray, so_far: Any) -> _Moments:
    """Return the moments of what is in the estimates, from sums of powers of distances from the centre.

    Of rewards that were replaced only two powers are summed, so arms with some have two moments.
    """
    centre = rollup.mark.centre or 0.0
    total = so_far(rollup.sum("sums") - rollup.sum("removed_sums"))
    squares = so_far(rollup.sum("squares") - rollup.sum("removed_squares"))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first, second, third, fourth = (
            powers / counted for powers in (total, squares, so_far(rollup.sum("cubes")), so_far(rollup.sum("fourths")))
        )
        variance = np.maximum(second - first * first, 0.0)
        skewness = (third - 3.0 * first * second + 2.0 * first**3) / variance**1.5
        kurtosis = (fourth - 4.0 * first * third + 6.0 * first**2 * second - 3.0 * first**4) / variance**2
        is_known = (so_far(rollup.count("removed")) == 0) & np.isfinite(skewness) & np.isfinite(kurtosis)
        return _Moments(
            counted,
            np.where(counted > 0, centre + first, np.nan),
            np.where(counted > 1, np.sqrt(variance * counted / (counted - 1)), np.nan),
            np.where(is_known, skewness, np.nan),
            np.where(is_known, kurtosis, np.nan),
        )


def _settled(rollup: Rollup, state: State, now: int, as_count: Any, table: Any) -> dict[str, IntArray]:
    """Return what became of the units of each period: missing after their window, and rewarded within each delay."""
    end, silent = (rollup.hour + 1) * HOUR, rollup.count("cohort_silent")
    stayed = rollup.count("assigned") - silent

    def by_age(name: str, age: float) -> tuple[IntArray, IntArray]:
        old = end + age <= now
        return as_count(table(np.where(old, stayed, 0)))[1:], as_count(table(np.where(old, rollup.count(name), 0)))[1:]

    window = state.configuration.missing.window_microseconds
    matured, in_time = by_age("cohort_window", np.inf if window is None else window)
    aged = [by_age(f"cohort_{name}", DELAYS[name]) for name in DELAY_NAMES]
    return {
        "matured": matured,
        "missing": matured - in_time,
        "old_enough": np.stack([old for old, _ in aged], axis=2),
        "rewarded_within": np.stack([told for _, told in aged], axis=2),
    }


def _ends_of_periods(
    kept: KeptRollup, known: Sequence[Phase], periods: _Periods, assigned: IntArray, moments: _Moments
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the shares that the policy wanted at the end of each period, and both ends of all intervals then."""
    found = np.full((3, *assigned.shape), np.nan)
    cache: dict[Any, FloatArray] = kept.derived.setdefault("ends of periods", {})
    if len(cache) > _MOST_ENDS:
        cache.clear()
    began = list(accumulate((phase.at for phase in known), max))
    for row, hour in enumerate(periods.hours().tolist()):
        phase = bisect_left(began, (hour + periods.size) * HOUR) - 1
        if phase < 0:
            continue
        then = _Moments(*(one[row] for one in moments))
        key = phase, assigned[row].tobytes(), *(one.tobytes() for one in then)
        if key not in cache:
            cache[key] = _end_of_period(known[phase].state, assigned[row], then)
        ends = cache[key]
        found[:, row, : ends.shape[1]] = ends
    return found[0], found[1], found[2]


def _end_of_period(state: State, assigned: IntArray, then: _Moments) -> FloatArray:
    """Return the shares that the policy wants, and the low and high ends of the intervals, of the arms there are."""
    n_arms = len(state.names)
    ends = np.full((3, n_arms), np.nan)
    counted = then.counted.astype(np.int64)
    shares = wanted_shares(state, assigned, counted, then.mean, then.std)
    if shares is not None:
        ends[0] = shares
    ends[1:] = _intervals(state, _Moments(*(one[:n_arms] for one in then)))
    return ends


def _intervals(state: State, then: _Moments) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the intervals, as `status` has them with these moments."""
    configuration, n_arms = state.configuration, len(state.names)
    bounds = configuration.counted_range
    mean = np.where(then.counted > 0, then.mean, 0.0)
    if bounds is not None:  # sums are rounded
        least, most = (np.inf * sign if end is None else end for end, sign in zip(bounds, (-1, 1), strict=True))
        mean = np.where(then.counted > 0, np.clip(mean, least, most), 0.0)
    has_shape = np.isfinite(then.skewness) | (then.counted < 2) | (then.std == 0)
    shape: dict[str, FloatArray] = {}
    if has_shape.all():
        skewness = np.where(np.isfinite(then.skewness), then.skewness, 0.0)
        shape = {"skewness": skewness, "kurtosis": np.fmax(then.kurtosis, 1.0 + skewness**2)}
    evidence = Evidence.from_summary(
        then.counted,
        mean,
        np.where(then.counted > 1, then.std, 0.0),
        **shape,
        reward_range=bounds,
        tightest_at=tightest_at(configuration, state.n_first),
    )
    return evidence.intervals(arm_failures(configuration.failure_probability, n_arms, state.n_first))


def wanted_shares(
    state: State, assigned: IntArray, counted: IntArray, mean: FloatArray, std: FloatArray
) -> FloatArray | None:
    """Return the shares that the policy wants with these estimates, as reported; None if it wants none, or not yet.

    A policy that weighs rewards by their age reads more than these, so its shares in the past are not known.
    """
    configuration, n_arms = state.configuration, len(state.names)
    if configuration.policy.weighs_rewards:
        return None
    values = (np.where(np.isnan(one[:n_arms]), 0.0, one[:n_arms]) for one in (configuration.sign * mean, std))
    stats = ArmStats.from_summary(counted[:n_arms], *values)
    stats.assigned[:] = assigned[:n_arms]
    stats.n_assigned = int(stats.assigned.sum())
    return state.decider.target(stats)
