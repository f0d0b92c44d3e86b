"""Read off simulated experiments when stopping rules are met: for every precision at once, without a search.

Enrolment goes on in a simulated experiment whatever the rules say. So each path has the first passage of any goal, and
a rule can be chosen after the simulation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.experiment.provisional import MOST_MISSING, MOST_MOVED
from equipoise.planner.paths import Paths

BoolArray = NDArray[np.bool_]


class Passages(NamedTuple):
    """When a goal is first met, per way and replication, and per precision before these if there are several."""

    look: IntArray
    """The first look at which it is met; the number of looks if it never is."""
    part: FloatArray
    """When between the look before and this one, from 0 to 1."""
    seconds: FloatArray
    """From the start; infinite if never."""
    people: FloatArray
    """People assigned by then; infinite if never."""

    @property
    def is_met(self) -> BoolArray:
        """Whether it is ever met."""
        met: BoolArray = np.isfinite(self.seconds)
        return met


def half_widths(paths: Paths) -> FloatArray:
    """Return the larger distance from each estimate to an end of its interval; infinite while unknown."""
    with np.errstate(invalid="ignore"):
        width = np.maximum(paths.estimate - paths.low, paths.high - paths.estimate)
    return np.where(np.isfinite(width), width, np.inf)


def widest(paths: Paths, of: str = "arms") -> FloatArray:
    """Return what `Precision` compares with its goal, per way, replication and look; infinite while unknown."""
    if of == "differences":
        return np.where(np.isnan(paths.widest_difference), np.inf, paths.widest_difference)
    found: FloatArray = half_widths(paths).max(axis=-1)
    return found


def provisional(
    paths: Paths, *, holds: bool = False, reward_range: tuple[float | None, float | None] | None = None
) -> BoolArray:
    """Return whether the numbers are provisional at each look, as `experiment.provisional` says.

    Parameters
    ----------
    holds : bool
        Whether the rule for missing rewards holds rewards back until their window has passed.
    reward_range : pair, optional
        The range that rewards are counted in, None for an open end.
    """
    assigned = np.maximum(paths.assigned, 1)
    found = np.asarray((paths.missing > MOST_MISSING * assigned).any(axis=-1))
    if holds:
        return found
    width = half_widths(paths)
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = _span(paths, reward_range) * paths.open / (paths.counted + paths.open)
        is_open = (paths.open > 0) & np.isfinite(width) & ~np.isnan(paths.estimate) & (moved > MOST_MOVED * width)
    result: BoolArray = found | is_open.any(axis=-1)
    return result


def waited_in_vain(paths: Paths, *, reward_range: tuple[float | None, float | None] | None = None) -> BoolArray:
    """Return at which looks numbers would stay provisional if enrolment ended then: for rewards that never come.

    Without a window, they stay open for ever. Their share is that at the very end.
    """
    never = paths.open[:, :, -1:] / np.maximum(paths.assigned[:, :, -1:], 1)
    width = half_widths(paths)
    is_stuck = np.isfinite(width) & (_span(paths, reward_range) * never > MOST_MOVED * width)
    return np.asarray(is_stuck.any(axis=-1))


def _span(paths: Paths, reward_range: tuple[float | None, float | None] | None) -> FloatArray:
    """Return how far open rewards may be from each estimate."""
    spread = np.nan_to_num(paths.spread, nan=0.0)
    span = np.zeros_like(paths.estimate)
    for end in reward_range or (None, None):
        span = np.maximum(span, 2.0 * spread if end is None else np.abs(end - paths.estimate))
    return span


def look_times(paths: Paths) -> FloatArray:
    """Return when each look was, (ways, replications, looks) in seconds: the last when all rewards had come."""
    n_ways, n_replications, n_looks = paths.n_may_be_best.shape
    times = np.broadcast_to(paths.look_seconds, (n_ways, n_replications, n_looks)).copy()
    before = times[:, :, -2] if n_looks > 1 else np.zeros((n_ways, n_replications))
    last = np.maximum(paths.last_reward_seconds, before)
    times[:, :, -1] = np.where(np.isfinite(times[:, :, -1]), times[:, :, -1], last)
    return times


def precision_passages(
    paths: Paths, goals: ArrayLike, provisional: BoolArray, times: FloatArray, *, of: str = "arms"
) -> Passages:
    """Return when each half-width is reached, arrays (goals, ways, replications).

    Between two looks, the width is taken to fall as one over the square root of the people since. Where it was small
    before, but provisional, the goal is taken to be met half-way.

    Parameters
    ----------
    goals : array (goals,)
        Half-widths.
    provisional : array (ways, replications, looks)
        As `provisional` returns it.
    times : array (ways, replications, looks)
        As `look_times` returns them.
    of : {"arms", "differences"}
        As in `Precision`.
    """
    width = widest(paths, of)
    read = np.where(provisional, np.inf, width)
    least = np.minimum.accumulate(read, axis=-1)
    wanted = np.atleast_1d(np.asarray(goals, np.float64))[:, None, None]
    look = np.stack([(~(least <= goal)).sum(axis=-1) for goal in wanted.ravel()])
    n_looks = width.shape[-1]
    before, after = _around(width, look, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        start, end = before**-2.0, after**-2.0
        part = (wanted**-2.0 - start) / (end - start)
    # A width of 0 is known exactly at once; one that was small enough before was provisional.
    part = np.where(np.isfinite(part) & (before > wanted), np.clip(part, 0.0, 1.0), 0.5)
    return _passages(paths, times, look, part, n_looks)


def decided_passages(paths: Paths, margin: float, provisional: BoolArray, times: FloatArray) -> Passages:
    """Return when it is clear which arm to choose, as `Decided` reads it: half-way between the looks around it."""
    met = paths.n_may_be_best == 1
    if margin:
        met = met | (np.where(np.isnan(paths.most_lost), np.inf, paths.most_lost) <= margin)
    ever = np.logical_or.accumulate(met & ~provisional, axis=-1)
    look = (~ever).sum(axis=-1)
    return _passages(paths, times, look, np.full(look.shape, 0.5), met.shape[-1])


def later(first: Passages, second: Passages) -> Passages:
    """Return when both of two goals are met."""
    is_second = (second.look > first.look) | ((second.look == first.look) & (second.part > first.part))
    return Passages(*(np.where(is_second, b, a) for a, b in zip(first, second, strict=True)))


def between(values: FloatArray, look: IntArray, part: FloatArray) -> FloatArray:
    """Return values (ways, replications, looks, ...) at a time between two looks; they start at 0.

    Parameters
    ----------
    look, part : arrays (ways, replications)
        As in `Passages`; from the last look on, the last values.
    """
    before, after = _around(values, look, 0.0)
    weight = part.reshape(part.shape + (1,) * (before.ndim - part.ndim))
    weight = np.where((look >= values.shape[2]).reshape(weight.shape), 1.0, weight)
    found: FloatArray = before + weight * (after - before)
    return found


def _around(values: FloatArray, look: IntArray, first: float) -> tuple[FloatArray, FloatArray]:
    """Return the values at the look before, or what they start from, and at the look."""
    n_ways, n_replications, n_looks = values.shape[:3]
    way, replication = np.ogrid[:n_ways, :n_replications]
    after = values[way, replication, np.minimum(look, n_looks - 1)]
    before = values[way, replication, np.clip(look - 1, 0, n_looks - 1)]
    is_first = (look == 0).reshape(look.shape + (1,) * (before.ndim - look.ndim))
    return np.where(is_first, first, before), after


def _passages(paths: Paths, times: FloatArray, look: IntArray, part: FloatArray, n_looks: int) -> Passages:
    people = paths.assigned.sum(axis=-1).astype(np.float64)
    is_met = look < n_looks
    at = []
    for values in (times, people):
        before, after = _around(values, look, 0.0)
        at.append(np.where(is_met, before + part * (after - before), np.inf))
    return Passages(look, part, *at)
