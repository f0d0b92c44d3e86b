"""Forecast by formula, while one types: expected shares at the guesses, and the intervals that so many rewards give.

It is before the cost of learning: as if the policy knew the guesses to be right from the first person on. A simulation
says what that costs, what luck adds, and what the intervals do while rewards are open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.analysis.best_arm import loss_of_choosing, may_be_best
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import arm_failures
from equipoise.experiment.provisional import MOST_MISSING, MOST_MOVED
from equipoise.planner.figures import Mean, Range
from equipoise.planner.forecast import Forecast
from equipoise.planner.question import SECONDS_A_DAY, Question
from equipoise.planner.refinement import question_of
from equipoise.planner.stopping_choice import Alternatives, fewer_arms, round_up
from equipoise.planner.trials import Way as SimulatedWay
from equipoise.planner.way_forecast import WayForecast, compared
from equipoise.planner.worlds import BETA, EMPIRICAL, GAMMA, YES_NO
from equipoise.policies import Uniform
from equipoise.stats import ArmStats

if TYPE_CHECKING:
    from equipoise.planner.plan import Plan
    from equipoise.planner.worlds import World

_STEPS = 22
_NORMAL = NormalDist()
_MOST_PEOPLE = 1e9
_UNKNOWN = Range(*[math.nan] * 6)
_NO_MEAN = Mean(math.nan, math.nan)
_MANY = 1_000_000


def forecast_by_formula(plan: Plan) -> Forecast:
    """Return the forecast of a plan by formula, without ranges.

    Ways whose policy has no shares to steer towards are left out.
    """
    question = question_of(plan)
    world, _ = plan.world(None)
    calendar = _Calendar.of(plan, world)
    ways, settings, needed = {}, [], {}
    for place, way in enumerate(plan.ways):
        shares = _shares(SimulatedWay.of(plan.settings(way)), world)
        if shares is None:
            continue
        settings.append(place)
        ways[way.label] = _way(question, place, shares, world, calendar)
        if question.precision is not None:
            needed[way.label] = _needed(question, shares * calendar.answers, world) / calendar.in_time(question)
    equal = settings.index(question.equal_shares)
    question = replace(
        question, ways=tuple(ways), settings=tuple(question.settings[place] for place in settings), equal_shares=equal
    )
    return Forecast(
        question=question,
        ways=ways,
        replications=0,
        alternatives=_alternatives(question, ways, needed, _stays_provisional(question, world, calendar), calendar),
        by_formula=True,
        plan=plan,
    )


def people_for(plan: Plan, half_width: float) -> float:
    """Return about how many people it takes to know every arm to a half-width with equal shares; inf if none do."""
    question = replace(question_of(plan), precision=half_width, precision_of="arms", margin=None)
    world, _ = plan.world(None)
    equal = _shares(SimulatedWay.of(plan.settings(plan.ways[question.equal_shares])), world)
    return math.inf if equal is None else _needed(question, equal * _Calendar.of(plan, world).answers, world)


def _alternatives(
    question: Question,
    ways: dict[str, WayForecast],
    needed: dict[str, float],
    stays_provisional: tuple[bool, bool],
    calendar: _Calendar,
) -> Alternatives | None:
    """Return what would bring a precision within reach, or None where some way reaches it."""
    if not question.has_goal or any(way.chance.value > 0 for way in ways.values()):
        return None
    best = min(ways.values(), key=lambda way: way.widest.median)
    reached = best.widest.median
    missing, is_open = map(float, stays_provisional)
    if (
        question.precision is None
        or not math.isfinite(reached)
        or reached <= question.precision
        or any(stays_provisional)
    ):
        width = reached if math.isfinite(reached) and question.precision is not None else None
        share = float(calendar.missing.max()) if missing else None
        return Alternatives(way=best.name, reached=width, missing=missing, open=is_open, missing_share=share)
    arms, width = fewer_arms(len(question.arms), reached, question.precision, 1.0 - question.confidence)
    factor = needed[best.name]
    return Alternatives(
        way=best.name,
        reached=reached,
        people_factor=factor if 1.0 < factor < math.inf else None,
        arms=arms,
        arms_half_width=width,
        precision=round_up(reached),
        chance=1.0,
    )


def _shares(way: SimulatedWay, world: World) -> FloatArray | None:
    """Return the shares that a way steers towards if the guesses are right, floors included."""
    sign = way.configuration.sign
    stats = ArmStats.from_summary(np.full(world.mean.size, _MANY), sign * world.mean, world.std)
    decider = way.decider()
    if isinstance(decider.policy, Uniform):
        shares: FloatArray = decider.share + (1.0 - decider.share.sum()) / world.mean.size
        return shares
    return decider.target(stats)


@dataclass(frozen=True)
class _Calendar:
    """When people come and rewards are known, on average."""

    people: FloatArray
    """Expected people until the end of each day, from 0 on."""
    wait: float
    """Days from a person to the reward that counts."""
    last_wait: float
    """Days from the last person to the end, when nothing more is waited for."""
    answers: FloatArray
    """Share of each arm's people whose reward counts."""
    missing: FloatArray
    """Share of each arm's people that are left out for good."""
    open: FloatArray
    """Share of each arm's people whose reward never comes, and is waited for."""

    @classmethod
    def of(cls, plan: Plan, world: World) -> _Calendar:
        most = float(plan.most_people) if plan.most_people is not None else math.inf
        people = np.minimum(np.concatenate([[0.0], np.cumsum(world.per_day)]), most)
        rule = plan.rewards.rule
        wait = float(np.max(world.delay)) if np.isfinite(world.delay).all() else math.inf
        if getattr(rule, "hold", False) and rule.window_seconds is not None:
            wait = rule.window_seconds
        wait += 0.5 * world.batch_seconds
        last_wait = wait if rule.default is None else max(rule.window_seconds or 0.0, wait)
        times = (wait / SECONDS_A_DAY, last_wait / SECONDS_A_DAY)
        good = world.mean if plan.is_yes_no else np.full(world.mean.size, 0.5)
        missing = good * world.missing_after_good + (1.0 - good) * world.missing_after_bad
        never = np.zeros_like(missing)
        if rule.window_seconds is not None:
            missing = 1.0 - (1.0 - missing) * _in_time(world, rule.window_seconds)
        if rule.default is not None:
            return cls(people, *times, 1.0 - never, never, never)
        waits = rule.window_seconds is None
        left_out, waited_for = (never, missing) if waits else (missing, never)
        return cls(people, *times, 1.0 - missing, left_out, waited_for)

    @property
    def total(self) -> float:
        """People until the end."""
        return float(self.people[-1])

    def in_time(self, question: Question) -> float:
        """Return how many have come whose reward is known by the deadline."""
        limit = question.deadline_days
        return self.total if limit is None else self.people_by(max(limit - self.wait, 0.0))

    def days(self, people: float) -> float:
        """Return after how many days so many have come; inf if never."""
        if people > self.total * (1 + 1e-12):
            return math.inf
        return float(np.interp(people, self.people, np.arange(self.people.size)))

    def people_by(self, days: float) -> float:
        """Return how many have come after so many days."""
        return float(np.interp(days, np.arange(self.people.size), self.people))


def _in_time(world: World, window: float) -> FloatArray:
    """Return the share of each arm's rewards that come within a window."""
    shares = np.ones(world.delay.size)
    for arm, (median, spread) in enumerate(zip(world.delay.tolist(), world.delay_spread.tolist(), strict=True)):
        if median > 0:
            away = math.log(window / median) if math.isfinite(median) else -math.inf
            shares[arm] = _NORMAL.cdf(away / spread) if spread > 0 else float(away >= 0)
    return shares


def _stays_provisional(question: Question, world: World, calendar: _Calendar) -> tuple[bool, bool]:
    """Return whether numbers stay provisional as rewards are missing, and as rewards that never come are waited for."""
    missing = bool((calendar.missing > MOST_MISSING).any())
    if question.precision is None or question.holds:
        return missing, False
    span = np.zeros(world.mean.size)
    for end in question.reward_range or (None, None):
        span = np.maximum(span, 2.0 * world.std if end is None else np.abs(end - world.mean))
    return missing, bool((span * calendar.open > MOST_MOVED * question.precision).any())


def _evidence(question: Question, counted: FloatArray, world: World) -> Evidence:
    skewness, kurtosis = _tails(world)
    return Evidence.from_summary(
        counted,
        world.mean,
        world.std,
        skewness=skewness,
        kurtosis=kurtosis,
        reward_range=question.reward_range,
        tightest_at=question.tightest_at,
    )


def _tails(world: World) -> tuple[FloatArray, FloatArray]:
    """Return the skewness of each arm's rewards and their kurtosis."""
    skewness = np.zeros(world.mean.size)
    kurtosis = np.full(world.mean.size, 3.0)
    for arm, kind in enumerate(world.kind.tolist()):
        a, b = world.shape[:2, arm].tolist()
        if kind == YES_NO:
            spread = max(a * (1.0 - a), 1e-12)
            skewness[arm], kurtosis[arm] = (1.0 - 2.0 * a) / math.sqrt(spread), 1.0 / spread - 3.0
            continue
        if kind == GAMMA:
            skewness[arm], kurtosis[arm] = 2.0 / math.sqrt(a), 3.0 + 6.0 / a
        elif kind == BETA:
            c = a + b
            skewness[arm] = 2.0 * (b - a) * math.sqrt(c + 1.0) / ((c + 2.0) * math.sqrt(a * b))
            above = (a - b) ** 2 * (c + 1.0) - a * b * (c + 2.0)
            kurtosis[arm] = 3.0 + 6.0 * above / (a * b * (c + 2.0) * (c + 3.0))
        elif kind == EMPIRICAL:
            rewards = world.pool[int(a) : int(a) + int(b)]
            if rewards.std() > 0:
                scaled = (rewards - rewards.mean()) / rewards.std()
                skewness[arm], kurtosis[arm] = float((scaled**3).mean()), float((scaled**4).mean())
    return skewness, kurtosis


def _possible(question: Question, world: World) -> float:
    """Return the widest half-width that rewards in their range allow."""
    ends = [math.inf if end is None else float(np.abs(world.mean - end).max()) for end in question.reward_range or ()]
    return max(ends, default=math.inf)


def _widest(widths: FloatArray, errors: FloatArray, possible: float = math.inf) -> float:
    """Return the median of the widest of some half-widths, each known up to a relative standard error.

    Spreads are estimates, so the widest of several intervals is wider than each is expected to be, up to what is
    possible.

    Examples
    --------
    >>> [round(_widest(np.full(n, 0.1), np.full(n, 0.02)), 4) for n in (1, 2, 10)]
    [0.1, 0.1011, 0.103]
    """
    largest = float(widths.max())
    if not math.isfinite(largest) or not (errors > 0).any():
        return largest
    low, high = largest * (1.0 - 4.0 * float(errors.max())), largest * (1.0 + 4.0 * float(errors.max()))
    for _ in range(30):
        middle = 0.5 * (low + high)
        chance = 1.0
        for width, error in zip(widths.tolist(), errors.tolist(), strict=True):
            chance *= _NORMAL.cdf((middle / width - 1.0) / max(error, 1e-12))
        low, high = (middle, high) if chance < 0.5 else (low, middle)
    return min(high, possible)


def _spread_errors(counted: FloatArray, world: World) -> FloatArray:
    """Return the relative standard error of each arm's estimated standard deviation."""
    _, kurtosis = _tails(world)
    return np.minimum(np.sqrt(np.maximum(kurtosis - 1.0, 0.0) / (4.0 * np.maximum(counted, 1.0))), 0.3)


def _half_widths(question: Question, counted: FloatArray, world: World) -> FloatArray:
    """Return the half-width of each arm's interval after so many rewards."""
    delta, n_arms = 1.0 - question.confidence, counted.size
    low, high = _evidence(question, counted, world).intervals(arm_failures(delta, n_arms, n_arms))
    width = np.maximum(world.mean - low, high - world.mean)
    return np.where(np.isfinite(width), width, math.inf)


def _difference_widths(question: Question, counted: FloatArray, world: World) -> dict[str, float]:
    from equipoise.kernels.arm_evidence import write_differences

    pairs, failures = compared(question)
    evidence = _evidence(question, counted, world)
    first, second = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    out = np.full((4, first.size), math.nan)
    write_differences(evidence.moments, first, second, failures, False, out)
    difference = world.mean[first] - world.mean[second]
    width = np.nan_to_num(np.maximum(difference - out[0], out[1] - difference), nan=math.inf)
    names = [f"{question.arms[a]} - {question.arms[b]}" for a, b in pairs]
    return dict(zip(names, width.tolist(), strict=True))


def _widest_for_goal(question: Question, counted: FloatArray, world: World) -> float:
    """Return the widest half-width that the goal reads."""
    if question.precision_of == "arms":
        return _widest(
            _half_widths(question, counted, world), _spread_errors(counted, world), _possible(question, world)
        )
    return max(_difference_widths(question, counted, world).values(), default=math.inf)


def _is_met(question: Question, counted: FloatArray, world: World) -> bool:
    if question.precision is not None and not _widest_for_goal(question, counted, world) <= question.precision:
        return False
    if question.margin is None:
        return True
    evidence, delta, up = _evidence(question, counted, world), 1.0 - question.confidence, question.sign > 0
    first: dict[str, Any] = {"larger_is_better": up, "n_first": evidence.n_arms}
    if int(may_be_best(evidence, delta, **first).sum()) == 1:
        return True
    leader = int(np.argmax(question.sign * world.mean))
    return bool(question.margin and loss_of_choosing(evidence, leader, delta, **first) <= question.margin)


def _needed(question: Question, share: FloatArray, world: World) -> float:
    """Return how many people with a known reward the goal takes."""

    def met(people: float) -> bool:
        return _is_met(question, np.maximum(people * share, 1e-9), world)

    low, high = 1.0, _MOST_PEOPLE
    if not (share > 0).all() or not met(high):
        return math.inf
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def _way(question: Question, place: int, shares: FloatArray, world: World, calendar: _Calendar) -> WayForecast:
    counted_share = shares * calendar.answers
    days = people = math.inf
    if question.has_goal and any(_stays_provisional(question, world, calendar)):
        pass
    elif question.has_goal:
        last_needed = _needed(question, counted_share, world)
        days = calendar.days(last_needed) + calendar.wait
        people = calendar.people_by(days) if math.isfinite(days) else math.inf
    else:
        days, people = calendar.people.size - 1 + calendar.wait, calendar.total
    limit = question.deadline_days
    is_in_time = math.isfinite(days) and (limit is None or days <= limit)
    by_then = calendar.in_time(question)
    widths = _half_widths(question, np.maximum(by_then * counted_share, 1e-9), world)
    at_end = np.maximum(calendar.total * counted_share, 1e-9)
    differences = _difference_widths(question, at_end, world) if len(question.arms) <= 10 else {}
    widest = _widest_for_goal(question, np.maximum(by_then * counted_share, 1e-9), world)
    stop = people if math.isfinite(people) else calendar.total
    advantage = question.sign * (world.mean - world.mean.mean())
    per_person = float(shares @ advantage)
    is_best = advantage == advantage.max()
    best = float(shares[is_best].sum())
    worse = None
    if question.control is not None:
        worse = _exactly(stop * float(shares[advantage < advantage[question.control]].sum()))
    ended = calendar.days(stop) if math.isfinite(calendar.days(stop)) else calendar.people.size - 1.0
    cost = None
    if question.cost_per_person is not None or question.cost_per_day is not None:
        until = days if math.isfinite(days) else ended + calendar.last_wait
        cost = _exactly((question.cost_per_person or 0.0) * stop + (question.cost_per_day or 0.0) * until)
    return WayForecast(
        name=question.ways[place],
        setting=question.setting(place),
        replications=0,
        days=_exactly(days),
        people=_exactly(people),
        chance=Mean(float(is_in_time), 0.0),
        days_for_sure=math.nan,
        last_person_day=_exactly(ended),
        last_reward_day=_exactly(ended + calendar.last_wait),
        stop_people=_exactly(stop),
        gain_per_100=_exactly(100.0 * per_person),
        gain=_exactly(stop * per_person),
        possible_gain_per_100=_exactly(100.0 * float(advantage.max())),
        gain_per_100_at_end=_exactly(100.0 * per_person),
        gain_at_end=_exactly(calendar.total * per_person),
        chance_worse=None,
        best_share=_exactly(best),
        best_people=_exactly(stop * best),
        worse_than_control=worse,
        shares={arm: _exactly(share) for arm, share in zip(question.arms, shares.tolist(), strict=True)},
        widest=_exactly(widest),
        half_widths={arm: _exactly(one) for arm, one in zip(question.arms, widths.tolist(), strict=True)},
        differences={name: _exactly(one) for name, one in differences.items()},
        names_best=_NO_MEAN,
        names_within_margin=None,
        coverage=_NO_MEAN,
        bias={},
        most_pending=_UNKNOWN,
        cost=cost,
    )


def _exactly(value: float) -> Range:
    """Return a figure without a range."""
    return Range(value, value, value, 0.0, 0.0, 0.0)
