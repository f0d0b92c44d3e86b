"""Read the figures of each way to assign people off its simulated experiments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import control_failures, pair_failures
from equipoise.planner.figures import Mean, Range, bands_of, mean_of, quantile, range_of, share_of
from equipoise.planner.first_passages import (
    BoolArray,
    Passages,
    between,
    decided_passages,
    half_widths,
    later,
    look_times,
    precision_passages,
    provisional,
    widest,
)
from equipoise.planner.paths import Paths
from equipoise.planner.question import SECONDS_A_DAY, Question

MOST_FOR_DIFFERENCES = 30
"""Differences at the end are computed for so many simulated experiments: their widths hardly vary."""
_MOST_PAIRS = 45
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True, kw_only=True)
class Bands:
    """What is to be expected by day, as lists with one entry per day; each figure as its low end, median and high end.

    8 of 10 simulated experiments are within the ends. They are what a live experiment is compared with.
    """

    days: FloatArray
    people: tuple[FloatArray, FloatArray, FloatArray]
    rewards: tuple[FloatArray, FloatArray, FloatArray]
    missing: tuple[FloatArray, FloatArray, FloatArray]
    widest: tuple[FloatArray, FloatArray, FloatArray]
    best_share: tuple[FloatArray, FloatArray, FloatArray]
    """Share of people with the arm that is truly best."""
    leading_share: tuple[FloatArray, FloatArray, FloatArray]
    """Share of people with the arm whose mean is best so far, which a live experiment knows."""
    average_reward: tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, kw_only=True)
class WayForecast:
    """What to expect of one way to assign people.

    "At the stop" is when the goal is first met; or else at the end, when everything has come, or at the deadline if
    enrolment goes on after it. Ranges hold 8 in 10 simulated experiments, which draw their truth from the guesses;
    `luck_alone` has the same figures with every guess exactly right.
    """

    name: str
    setting: dict[str, Any]
    replications: int
    days: Range
    """Days until the goal; infinite where it is never met. Without a goal, until the end."""
    people: Range
    """People assigned until the goal."""
    chance: Mean
    """Probability of meeting the goal by the deadline."""
    days_for_sure: float
    """Days within which the goal is met with the wanted probability."""
    last_person_day: Range
    """When the last person is assigned, if enrolment stops at the goal."""
    last_reward_day: Range
    """When the last reward comes."""
    stop_people: Range
    """People assigned at the stop."""
    gain_per_100: Range
    """Expected reward per 100 people at the stop, above that of equal shares; more is better in either direction."""
    gain: Range
    """The same in all."""
    gain_per_100_at_end: Range
    """If enrolment goes on until the end."""
    gain_at_end: Range
    chance_worse: Mean | None
    """Probability that people did worse than with equal shares; None for equal shares."""
    best_share: Range
    """Share of people with the best arm."""
    best_people: Range
    worse_than_control: Range | None
    """People given an arm that is truly worse than the control; None without a control."""
    shares: dict[str, Range]
    """Share of people per arm."""
    widest: Range
    """The widest half-width that the goal reads, at the deadline."""
    half_widths: dict[str, Range]
    """Per arm, at the deadline."""
    differences: dict[str, Range]
    """Half-widths of the differences from the control, or of all pairs, at the end."""
    names_best: Mean
    """Probability that the arm with the best mean at the stop is the best."""
    names_within_margin: Mean | None
    """Probability that it is at most the goal's margin worse."""
    coverage: Mean
    """Probability that all intervals hold the true means at the stop."""
    bias: dict[str, Mean]
    """Average of estimate minus true mean at the stop, per arm."""
    most_pending: Range
    """Most rewards that are open at once."""
    cost: Range | None
    bands: Bands | None = None
    luck_alone: WayForecast | None = None


class Readings:
    """What is read off the paths of all ways at once; arrays (ways, replications)."""

    def __init__(self, paths: Paths, question: Question) -> None:
        self.paths, self.question = paths, question

    @cached_property
    def times(self) -> FloatArray:
        """When each look was."""
        return look_times(self.paths)

    @cached_property
    def provisional(self) -> BoolArray:
        """Whether too many rewards are missing for good at each look.

        Rewards that are open do not stand in the way of a goal: enrolment ends when intervals are narrow enough, and
        the last rewards are waited for. `all_known` says when they have come.
        """
        return provisional(self.paths, holds=True)

    @cached_property
    def widest(self) -> FloatArray:
        """The widest half-width that the goal reads, at each look."""
        return widest(self.paths, self.question.precision_of)

    def for_precisions(self, goals: FloatArray) -> Passages:
        """Return when each of these half-widths is reached."""
        of = self.question.precision_of
        return precision_passages(self.paths, goals, self.provisional, self.times, of=of)

    @cached_property
    def at_end(self) -> tuple[IntArray, FloatArray]:
        """Look and part at the end: the last look, or the deadline if enrolment goes on after it."""
        shape, n_looks = self.times.shape[:2], self.times.shape[2]
        deadline = self.question.deadline_seconds
        assigned = self.paths.assigned.sum(axis=-1)
        look, part = np.full(shape, n_looks), np.ones(shape)
        if deadline is None:
            return look, part
        cut, cut_part = self._at(deadline)
        so_far = np.take_along_axis(assigned, np.minimum(cut, n_looks - 1)[..., None], axis=-1)[..., 0]
        goes_on = (cut < n_looks) & (so_far < assigned[..., -1])
        return np.where(goes_on, cut, look), np.where(goes_on, cut_part, part)

    def _at(self, seconds: float) -> tuple[IntArray, FloatArray]:
        """Return the look and part at a time."""
        look = (self.times < seconds).sum(axis=-1)
        n_looks = self.times.shape[-1]
        after = np.take_along_axis(self.times, np.minimum(look, n_looks - 1)[..., None], axis=-1)[..., 0]
        before = np.take_along_axis(self.times, np.maximum(look - 1, 0)[..., None], axis=-1)[..., 0]
        before = np.where(look == 0, 0.0, before)
        gap = after - before
        part = np.where(gap > 0, (seconds - before) / np.where(gap > 0, gap, 1.0), 1.0)
        return look, np.clip(part, 0.0, 1.0)

    @cached_property
    def goal(self) -> Passages:
        """When the goal is met; without one, at the end."""
        question = self.question
        found = []
        if question.precision is not None:
            known = self.for_precisions(np.array([question.precision]))
            found.append(Passages(*(one[0] for one in known)))
        if question.margin is not None:
            found.append(decided_passages(self.paths, question.margin, self.provisional, self.times))
        if found:
            return found[0] if len(found) == 1 else later(*found)
        look, part = self.at_end
        people = between(self.paths.assigned.sum(axis=-1).astype(np.float64), look, part)
        seconds = np.minimum(between(self.times, look, part), self.paths.last_reward_seconds)
        return Passages(look, part, seconds, people)

    @cached_property
    def in_time(self) -> BoolArray:
        """Whether the goal is met by the deadline."""
        deadline = self.question.deadline_seconds
        return self.goal.is_met & (self.goal.seconds <= (math.inf if deadline is None else deadline))

    @cached_property
    def stop(self) -> tuple[IntArray, FloatArray]:
        """Look and part at the stop."""
        look, part = self.at_end
        met, met_part = self.goal.look, self.goal.part
        is_first = (met < look) | ((met == look) & (met_part <= part))
        is_first &= self.goal.is_met
        return np.where(is_first, met, look), np.where(is_first, met_part, part)

    @cached_property
    def stop_look(self) -> IntArray:
        """The look whose estimates are those at the stop."""
        found: IntArray = np.minimum(self.stop[0], self.times.shape[-1] - 1)
        return found

    def at_stop(self, values: FloatArray) -> FloatArray:
        """Return values (ways, replications, looks, arms) at the look of the stop."""
        n_ways, n_replications = self.stop_look.shape
        way, replication = np.ogrid[:n_ways, :n_replications]
        found: FloatArray = values[way, replication, self.stop_look]
        return found

    @cached_property
    def deadline_look(self) -> IntArray:
        """The last look by the deadline; the first if none is."""
        deadline = self.question.deadline_seconds
        n_looks = self.times.shape[-1]
        if deadline is None:
            return np.full(self.times.shape[:2], n_looks - 1)
        found: IntArray = np.maximum((self.times <= deadline + 1.0).sum(axis=-1) - 1, 0)
        return found

    def at_deadline(self, values: NDArray[Value]) -> NDArray[Value]:
        """Return values (ways, replications, looks, ...) at the last look by the deadline."""
        n_ways, n_replications = self.deadline_look.shape
        way, replication = np.ogrid[:n_ways, :n_replications]
        found: NDArray[Value] = values[way, replication, self.deadline_look]
        return found

    def assigned_at(self, moment: tuple[IntArray, FloatArray]) -> FloatArray:
        """Return people per arm at a moment, (ways, replications, arms)."""
        return between(self.paths.assigned.astype(np.float64), *moment)

    @cached_property
    def advantage(self) -> FloatArray:
        """How much better each arm truly is than the average of all, (replications, arms)."""
        mean = self.question.sign * self.paths.mean
        found: FloatArray = mean - mean.mean(axis=-1, keepdims=True)
        return found

    @cached_property
    def is_best(self) -> BoolArray:
        """Which arms are truly best, (replications, arms)."""
        best: BoolArray = self.advantage == self.advantage.max(axis=-1, keepdims=True)
        return best

    def gain_at(self, moment: tuple[IntArray, FloatArray]) -> FloatArray:
        """Return the expected reward above that of equal shares, in all."""
        assigned = self.assigned_at(moment)
        gain = (assigned * self.advantage).sum(axis=-1)
        rounding = 1e-12 * np.abs(self.paths.mean).max(axis=-1) * assigned.sum(axis=-1)
        found: FloatArray = np.where(np.abs(gain) <= rounding, 0.0, gain)
        return found

    @cached_property
    def last_person(self) -> FloatArray:
        """Seconds until the last person comes, at the pace until the look before."""
        people = self.paths.assigned.sum(axis=-1).astype(np.float64)
        complete = (people < people[..., -1:]).sum(axis=-1)
        before = between(people, complete, np.zeros(complete.shape))
        start, end = (between(self.times, complete, np.full(complete.shape, part)) for part in (0.0, 1.0))
        pace = np.where(start > 0, before / np.where(start > 0, start, 1.0), 0.0)
        left = people[..., -1] - before
        found: FloatArray = np.where(pace > 0, start + left / np.where(pace > 0, pace, 1.0), end)
        latest: FloatArray = np.minimum(found, end)
        return latest

    @cached_property
    def last_assigned(self) -> FloatArray:
        """Seconds until the last person is assigned, if enrolment ends at the stop."""
        found: FloatArray = np.minimum(between(self.times, *self.stop), self.last_person)
        return found

    @cached_property
    def all_known(self) -> FloatArray:
        """Seconds until the last reward comes, if enrolment ends at the stop: as long after the last person."""
        lag = np.maximum(self.paths.last_reward_seconds - self.last_person, 0.0)
        found: FloatArray = self.last_assigned + lag
        return found

    @cached_property
    def ends(self) -> FloatArray:
        """Seconds until the experiment ends: at the goal, or when all is known that will be."""
        found: FloatArray = np.minimum(self.goal.seconds, self.all_known)
        return found

    @cached_property
    def shortfall(self) -> FloatArray:
        """How many times as many people the goal takes as come until the end, by width; infinite while unknown.

        The widest interval falls as one over the square root of the people.
        """
        if self.question.precision is None:
            return np.full(self.times.shape[:2], math.nan)
        factor: FloatArray = (self.at_deadline(self.widest) / self.question.precision) ** 2.0
        return factor

    @cached_property
    def days_if_longer(self) -> FloatArray:
        """Days until the goal if enrolment could go on for as long as it takes; for comparisons, not for promises.

        Infinite where more people would not help: where intervals are narrow enough, but numbers are provisional.
        """
        longer = np.where(self.shortfall > 1.0, self.last_person * self.shortfall, np.inf)
        return np.where(self.goal.is_met, self.goal.seconds, longer) / SECONDS_A_DAY


def way_forecasts(readings: Readings, luck: Readings | None = None) -> tuple[WayForecast, ...]:
    """Return the forecast of every way.

    Parameters
    ----------
    readings : Readings
        Of experiments whose truth is drawn from the guesses.
    luck : Readings, optional
        Of experiments in which every guess is right; left out where guesses have no ranges.
    """
    found = []
    for way, name in enumerate(readings.question.ways):
        alone = None if luck is None else _way_forecast(luck, way, name, None, in_full=False)
        found.append(_way_forecast(readings, way, name, alone, in_full=True))
    return tuple(found)


def _way_forecast(
    readings: Readings, way: int, name: str, luck_alone: WayForecast | None, *, in_full: bool
) -> WayForecast:
    question, paths = readings.question, readings.paths
    goal, stop = readings.goal, readings.stop
    days = goal.seconds[way] / SECONDS_A_DAY
    at_stop = readings.assigned_at(stop)[way]
    people = at_stop.sum(axis=-1)
    per_person = np.maximum(people, 1.0)
    gain = readings.gain_at(stop)[way]
    at_end = readings.assigned_at(readings.at_end)[way].sum(axis=-1)
    gain_at_end = readings.gain_at(readings.at_end)[way]
    best_people = (at_stop * readings.is_best).sum(axis=-1)
    pending = (paths.open[way] + paths.held[way]).sum(axis=-1)
    by_then = np.arange(pending.shape[-1]) <= readings.stop_look[way][:, None]
    estimates = readings.at_stop(paths.estimate)[way]
    low, high = readings.at_stop(paths.low)[way], readings.at_stop(paths.high)[way]
    is_missed = (low > paths.mean) | (high < paths.mean)
    named = _named(question.sign * estimates)
    lost = readings.advantage.max(axis=-1) - np.take_along_axis(readings.advantage, named[:, None], axis=-1)[:, 0]
    widths = readings.at_deadline(half_widths(paths))[way]
    is_equal = way == question.equal_shares
    return WayForecast(
        name=name,
        setting=question.setting(way),
        replications=int(days.size),
        days=range_of(days),
        people=range_of(goal.people[way]),
        chance=share_of(readings.in_time[way]),
        days_for_sure=quantile(days, question.sureness),
        last_person_day=range_of(readings.last_assigned[way] / SECONDS_A_DAY),
        last_reward_day=range_of(readings.all_known[way] / SECONDS_A_DAY),
        stop_people=range_of(people),
        gain_per_100=range_of(100.0 * gain / per_person),
        gain=range_of(gain),
        gain_per_100_at_end=range_of(100.0 * gain_at_end / np.maximum(at_end, 1.0)),
        gain_at_end=range_of(gain_at_end),
        chance_worse=None if is_equal else share_of(gain < 0.0),
        best_share=range_of(best_people / per_person),
        best_people=range_of(best_people),
        worse_than_control=_worse_than_control(readings, at_stop),
        shares={arm: range_of(at_stop[:, k] / per_person) for k, arm in enumerate(question.arms)},
        widest=range_of(readings.at_deadline(readings.widest)[way]),
        half_widths={arm: range_of(widths[:, k]) for k, arm in enumerate(question.arms)},
        differences=_differences(readings, way) if in_full else {},
        names_best=share_of(lost <= 0.0),
        names_within_margin=None if question.margin is None else share_of(lost <= question.margin),
        coverage=share_of(~is_missed.any(axis=-1)),
        bias={arm: mean_of(estimates[:, k] - paths.mean[:, k]) for k, arm in enumerate(question.arms)},
        most_pending=range_of(np.where(by_then, pending, 0).max(axis=-1).astype(np.float64)),
        cost=_cost(question, people, readings.ends[way] / SECONDS_A_DAY),
        bands=_bands(readings, way) if in_full else None,
        luck_alone=luck_alone,
    )


def _named(estimates: FloatArray) -> IntArray:
    """Return the arm with the best estimate of each row; the first if none is known."""
    found: IntArray = np.argmax(np.where(np.isnan(estimates), -np.inf, estimates), axis=-1)
    return found


def _worse_than_control(readings: Readings, assigned: FloatArray) -> Range | None:
    control = readings.question.control
    if control is None:
        return None
    is_worse = readings.advantage < readings.advantage[:, control : control + 1]
    return range_of((assigned * is_worse).sum(axis=-1))


def _cost(question: Question, people: FloatArray, days: FloatArray) -> Range | None:
    per_person, per_day = question.cost_per_person, question.cost_per_day
    if per_person is None and per_day is None:
        return None
    return range_of((per_person or 0.0) * people + (per_day or 0.0) * days)


def compared(question: Question) -> tuple[list[tuple[int, int]], FloatArray]:
    """Return which differences are shown, as pairs of positions, and the failure probability of each."""
    n_arms, delta = len(question.arms), 1.0 - question.confidence
    if question.control is not None:
        others = [arm for arm in range(n_arms) if arm != question.control]
        newest = np.maximum(others, question.control)
        return [(arm, question.control) for arm in others], control_failures(delta, newest, n_arms, n_arms=n_arms)
    first, second = np.triu_indices(n_arms, 1)
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    return pairs, pair_failures(delta, first, second, n_arms, n_arms=n_arms)


def _differences(readings: Readings, way: int) -> dict[str, Range]:
    """Return the half-widths of differences at the end, computed from two moments as those of published figures."""
    from equipoise.kernels.arm_evidence import write_differences

    question, paths = readings.question, readings.paths
    n_arms, n = len(question.arms), min(paths.n_replications, MOST_FOR_DIFFERENCES)
    pairs, failures = compared(question)
    if not pairs or len(pairs) > _MOST_PAIRS:
        return {}
    mean, spread = paths.estimate[way, :n, -1].ravel(), np.nan_to_num(paths.spread[way, :n, -1]).ravel()
    skewness = None
    if question.is_yes_no:
        rate = np.clip(np.nan_to_num(mean, nan=0.5), 1e-9, 1.0 - 1e-9)
        skewness = (1.0 - 2.0 * rate) / np.sqrt(rate * (1.0 - rate))
    evidence = Evidence.from_summary(
        paths.counted[way, :n, -1].ravel(),
        np.nan_to_num(mean),
        spread,
        skewness=skewness,
        reward_range=question.reward_range,
        tightest_at=question.tightest_at,
    )
    start = np.repeat(n_arms * np.arange(n), len(pairs))
    first, second = (start + np.tile([pair[side] for pair in pairs], n) for side in (0, 1))
    out = np.full((4, first.size), np.nan)
    write_differences(evidence.moments, first, second, np.tile(failures, n), False, out)
    difference = mean[first] - mean[second]
    width = np.maximum(difference - out[0], out[1] - difference).reshape(n, len(pairs))
    arms = question.arms
    return {f"{arms[a]} - {arms[b]}": range_of(width[:, k]) for k, (a, b) in enumerate(pairs)}


def _bands(readings: Readings, way: int) -> Bands:
    """Return what to expect at each look that has a time."""
    paths, question = readings.paths, readings.question
    timed = np.isfinite(paths.look_seconds)
    assigned, counted = paths.assigned[way][:, timed], paths.counted[way][:, timed]
    estimate = paths.estimate[way][:, timed]
    people, rewards = assigned.sum(axis=-1), counted.sum(axis=-1)
    leader = _named(question.sign * estimate)
    leading = np.take_along_axis(assigned, leader[..., None], axis=-1)[..., 0]
    best = (assigned * readings.is_best[:, None, :]).sum(axis=-1)
    total = np.where(counted > 0, counted * estimate, 0.0).sum(axis=-1)
    width = readings.widest[way][:, timed]
    with np.errstate(invalid="ignore", divide="ignore"):
        return Bands(
            days=paths.look_seconds[timed] / SECONDS_A_DAY,
            people=bands_of(people.astype(np.float64)),
            rewards=bands_of(rewards.astype(np.float64)),
            missing=bands_of(paths.missing[way][:, timed].sum(axis=-1).astype(np.float64)),
            widest=bands_of(width),
            best_share=bands_of(best / people),
            leading_share=bands_of(leading / people),
            average_reward=bands_of(total / rewards),
        )
