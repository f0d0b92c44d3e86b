"""Gather what the checks of an experiment read: its sums by hour, its status and its settings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.experiment.rollup import DELAYS, HOUR, Rollup
from equipoise.experiment.state import ENROLLING, FINISHED, State
from equipoise.experiment.timeline import Phase, phases, wanted_shares
from equipoise.monitoring.jumps import Moments, influence
from equipoise.monitoring.sums import DAY, HourlySums
from equipoise.monitoring.value_checks import NOTE_INFLUENCE
from equipoise.monitoring.watched import Extreme, Watched
from equipoise.store.schema import instant, microseconds

if TYPE_CHECKING:
    from equipoise.experiment.checkpoints import KeptRollup
    from equipoise.experiment.records import Status
    from equipoise.store import Transaction

MOST_HOURS = 400 * DAY
"""Only the last 400 days are looked at, so that years take no longer than one."""
MOST_ARMS, MOST_CELLS = 500, 500_000
"""Most arms, and most hours times arms, some 100 MB; with more, only the checks of all arms together are made."""
_WANTED_DAYS = 8
"""Days whose wanted shares are computed: the check reads the last 7, and each needs the end of the one before."""
_FURTHEST = 4
"""Rewards furthest from the mean that are looked at, of each arm."""
_USUAL_WIDTH = 4.0
"""Half-width in standard errors where there is no interval: one reward far out makes rewards too skewed for one."""
_STEERING = frozenset(("arm_added", "arm_paused", "arm_resumed", "arm_retired", "weight_changed", "dial_changed"))
"""Changes after which the policy wants other shares."""
_PLACES = "SELECT number, unit FROM events WHERE experiment = ? AND number IN ({places})"


def watched_of(kept: KeptRollup, state: State, status: Status, now: datetime) -> Watched:
    """Return an experiment as its checks see it, from a rollup that reaches the end of the log."""
    rollup = kept.rollup
    assert rollup is not None  # noqa: S101
    at = _end(rollup, state, now)
    names, active = tuple(state.names), tuple(one == "active" for one in state.arm_states)
    missing = state.configuration.missing
    settings: dict[str, Any] = {
        "now": at,
        "enrolling": state.state == ENROLLING and not _is_full(state),
        "open": state.state != FINISHED,
        "window_seconds": missing.window_seconds,
        "default": missing.default,
        "hold": missing.hold,
        "last_assigned_at": _instant(rollup.mark.last_assigned_at),
        "last_rewarded_at": _instant(rollup.mark.last_rewarded_at),
    }
    some = rollup.count("assigned") > 0
    if not some.any():
        return Watched(arms=names, active=active, sums=None, **settings)
    last = max(microseconds(at) // HOUR, int(rollup.hour.max()))
    begin = int(rollup.hour[some].min())
    first = max(begin, last - MOST_HOURS + 1)
    n_hours = last - first + 1
    if len(names) > MOST_ARMS or n_hours * len(names) > MOST_CELLS:
        sums = _sums(rollup, first, n_hours, 1, np.zeros(rollup.n_cells, np.int64), np.ones((n_hours, 1)))
        return Watched(arms=("all arms",), active=(any(active),), sums=sums, by_arm=False, **settings)
    known = phases(kept)
    in_play = _in_play(known, first, n_hours, len(names))
    sums = _sums(rollup, first, n_hours, len(names), rollup.arm, in_play)
    mean, std, width = (_numbers(status, name) for name in ("mean", "std", "half_width"))
    rewarded = np.array([float(arm.rewarded) for arm in status.arms])
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.where(np.isfinite(width), width, _USUAL_WIDTH * std / np.sqrt(rewarded))
    return Watched(
        arms=names,
        active=active,
        sums=sums,
        floors=np.array(state.floors),
        rewarded=rewarded,
        mean=mean,
        std=std,
        half_width=width,
        extremes=_extremes(rollup, mean, std, width, rewarded),
        wanted=_wanted(kept, known, sums) if first == begin else None,
        **settings,
    )


def far_out(watched: Watched) -> list[int]:
    """Return the events of rewards that could move a mean, whose units have to be looked up.

    A correction or withdrawal takes a reward out of the estimates, but the sums by hour keep that it was the furthest.
    """
    found = []
    for one in watched.extremes:
        count, std = float(watched.rewarded[one.arm]), float(watched.std[one.arm])
        around = Moments(*(np.array(value) for value in (count, 0.0, (count - 1.0) * std * std)))
        moved = influence(around, np.array(one.reward - watched.mean[one.arm]), np.array(watched.half_width[one.arm]))
        if float(moved) > NOTE_INFLUENCE / 2:
            found.append(one.event)
    return found


def gone_from_estimates(transaction: Transaction, experiment: int, events: Sequence[int]) -> frozenset[int]:
    """Return those of some events whose reward was corrected or withdrawn later."""
    if not events:
        return frozenset()
    places = ", ".join("?" * len(events))
    units = transaction.execute(_PLACES.format(places=places), experiment, *events)
    named = {unit: number for number, unit in units if unit is not None}
    later = {
        unit: kind
        for unit, kind, *_ in transaction.unit_events(experiment, list(named))
        if kind in ("corrected", "withdrawn")
    }
    corrected = {unit for unit, kind in later.items() if kind == "corrected"}
    last = _last_of_kind(transaction, experiment, corrected) if corrected else {}
    return frozenset(
        number
        for unit, number in named.items()
        if unit in later and (later[unit] == "withdrawn" or last.get(unit, 0) > number)
    )


def _last_of_kind(transaction: Transaction, experiment: int, units: set[str]) -> dict[str, int]:
    """Return the number of the last correction of each unit."""
    statement = (
        f"SELECT max(number) FROM events {transaction.database.by_unit} "  # noqa: S608
        "WHERE experiment = ? AND unit = ? AND kind = 'corrected'"
    )
    return {unit: int(transaction.execute(statement, experiment, unit)[0][0]) for unit in units}


def _end(rollup: Rollup, state: State, now: datetime) -> datetime:
    """Return the time of the checks: the present, or the end of the hour in which a finished experiment last moved."""
    if state.state != FINISHED or not rollup.n_cells:
        return now
    return min(now, instant((int(rollup.hour.max()) + 1) * HOUR))


def _is_full(state: State) -> bool:
    most = state.configuration.most_units
    return most is not None and state.n_decisions >= most


def _instant(at: int | None) -> datetime | None:
    return None if at is None else instant(at)


def _numbers(status: Status, name: str) -> FloatArray:
    return np.array([getattr(arm, name) for arm in status.arms], np.float64)  # None becomes NaN


def _sums(rollup: Rollup, first: int, n_hours: int, n_arms: int, arm: IntArray, in_play: FloatArray) -> HourlySums:
    place = (rollup.hour - first) * n_arms + arm
    inside = place >= 0  # what came before the last 400 days is left out
    place = place[inside]

    def dense(values: NDArray[Any]) -> FloatArray:
        found = np.bincount(place, values[inside].astype(np.float64), n_hours * n_arms).astype(np.float64)
        return found.reshape(n_hours, n_arms)

    def count(name: str) -> FloatArray:
        return dense(rollup.count(name))

    def total(name: str) -> FloatArray:
        return dense(rollup.sum(name))

    return HourlySums(
        first_hour=first,
        assigned=count("assigned"),
        rewarded=count("rewarded"),
        inverses=total("inverses"),
        inverse_squares=total("inverse_squares"),
        counted=count("counted"),
        totals=total("sums"),
        squares=total("squares"),
        cubes=total("cubes"),
        fourths=total("fourths"),
        removed=count("removed"),
        removed_totals=total("removed_sums"),
        removed_squares=total("removed_squares"),
        told=np.stack([count(f"cohort_{name}") for name in DELAYS], axis=-1),
        told_in_window=count("cohort_window"),
        silent=count("cohort_silent"),
        in_play=in_play,
    )


def _in_play(known: Sequence[Phase], first: int, n_hours: int, n_arms: int) -> FloatArray:
    """Return 1 where an arm could be given during the whole hour, else 0: an array (hours, K)."""
    found = np.ones((n_hours, n_arms))
    ends = [phase.at for phase in known[1:]] + [(first + n_hours) * HOUR]
    for phase, end in zip(known, ends, strict=True):
        active = np.zeros(n_arms)
        active[phase.state.arms_in_play] = 1.0
        if active.all():
            continue
        begin, stop = max(phase.at // HOUR - first, 0), -(-end // HOUR) - first
        found[begin : max(stop, begin)] *= active
    return found


def _wanted(kept: KeptRollup, known: Sequence[Phase], sums: HourlySums) -> FloatArray:
    """Return the shares that the policy wanted on each whole day, on average of its begin and end; NaN if not known.

    A day in which the arms or the dial changed is left out, and so are those before.
    """
    n_days, n_arms = sums.n_hours // DAY, sums.n_arms
    wanted = np.full((n_days, n_arms), np.nan)
    steered_at = max((row[2] for row in kept.changes if row[1] in _STEERING), default=0)
    begin = max(n_days - _WANTED_DAYS, 0)
    if begin >= n_days:
        return wanted
    assigned = sums.by_day(sums.assigned, n_days * DAY).cumsum(axis=0)
    counted, total, squares = (
        sums.by_day(added - taken, n_days * DAY).cumsum(axis=0)
        for added, taken in (
            (sums.counted, sums.removed),
            (sums.totals, sums.removed_totals),
            (sums.squares, sums.removed_squares),
        )
    )
    assert kept.rollup is not None  # noqa: S101
    centre, state = kept.rollup.mark.centre or 0.0, known[-1].state
    before: FloatArray | None = None
    for day in range(begin, n_days):
        if (sums.first_hour + day * DAY) * HOUR < steered_at:
            continue
        moments = Moments(counted[day], total[day], squares[day])
        key = day, sums.first_hour, assigned[day].tobytes(), counted[day].tobytes(), total[day].tobytes()
        cache: dict[Any, FloatArray | None] = kept.derived.setdefault("wanted by day", {})
        if key not in cache:
            if len(cache) > 10 * _WANTED_DAYS:
                cache.clear()
            cache[key] = wanted_shares(
                state,
                assigned[day].astype(np.int64),
                moments.n.astype(np.int64),
                centre + moments.mean,
                np.sqrt(moments.variance),
            )
        after = cache[key]
        if after is not None:
            wanted[day, : after.size] = after if before is None else (before + after) / 2.0
        before = after
    return wanted


def _extremes(
    rollup: Rollup, mean: FloatArray, std: FloatArray, width: FloatArray, rewarded: FloatArray
) -> tuple[Extreme, ...]:
    """Return the rewards furthest from the mean of each arm that has an interval."""
    found = []
    values = np.concatenate([rollup.sum("lowest"), rollup.sum("highest")])
    events = np.concatenate([rollup.count("lowest_event"), rollup.count("highest_event")])
    arms = np.tile(rollup.arm, 2)
    with np.errstate(invalid="ignore"):
        distance = np.abs(values - mean[arms])
    known = np.isfinite(width) & (std > 0) & (rewarded > 1)
    places = np.flatnonzero(known[arms] & ~np.isnan(distance))
    order = places[np.lexsort((-distance[places], arms[places]))]
    taken: dict[int, list[int]] = {}
    # Twice as many as are kept: the only reward of its hour is both the lowest and the highest.
    rank = np.arange(order.size) - np.searchsorted(arms[order], arms[order])
    for place in order[rank < 2 * _FURTHEST].tolist():
        seen = taken.setdefault(int(arms[place]), [])
        event = int(events[place])
        if event not in seen and len(seen) < _FURTHEST:
            seen.append(event)
            found.append(Extreme(arm=int(arms[place]), reward=float(values[place]), event=event))
    return tuple(found)


def without(watched: Watched, gone: frozenset[int]) -> tuple[Extreme, ...]:
    """Return the extremes of an experiment that are still in its estimates."""
    return tuple(one for one in watched.extremes if one.event not in gone)
