"""Which stopping rule to declare: the finest precision within reach, a budget that suffices, and what else works."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from equipoise._types import FloatArray
from equipoise.planner.figures import Mean, Range, quantile, range_of, share_of
from equipoise.planner.first_passages import BoolArray, provisional
from equipoise.planner.question import SECONDS_A_DAY
from equipoise.planner.way_forecast import Readings

STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
"""Round precisions are these times powers of ten."""
BUDGET_SUFFICES = 0.9
"""The budget offered is enough for so many experiments."""
_POINTS_PER_DECADE = 24


@dataclass(frozen=True, kw_only=True)
class StoppingChoice:
    """What to declare for one way.

    Attributes
    ----------
    way : str
    precision : float, optional
        The finest round half-width, or the goal, that enough experiments reach by the deadline; None if there is none.
    chance : Mean
        Probability of reaching it by the deadline.
    days : Range
        Days until then.
    budget : float, optional
        People that suffice for the goal, or for that precision if there is no goal, in 9 of 10 experiments.
    rest : float
        Share of the experiments that do not meet the goal by the deadline.
    rest_width : float, optional
        The widest half-width that the median one of them has then.
    goal_chances : FloatArray
        Probability by the deadline for each half-width of `half_widths`.
    goal_days : FloatArray
        Median days for each of them.
    """

    way: str
    precision: float | None
    chance: Mean
    days: Range
    budget: float | None
    rest: float
    rest_width: float | None
    half_widths: FloatArray
    goal_chances: FloatArray
    goal_days: FloatArray


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """What would bring the goal within reach by the deadline, if nothing does as planned.

    Attributes
    ----------
    way : str
        The way that comes closest.
    reached : float, optional
        The half-width that enough experiments of that way reach by the deadline.
    people_factor : float, optional
        How many times as many people it takes.
    arms : int, optional
        The largest number of arms that it can be reached with; or the fewest, two, if none does.
    arms_half_width : float, optional
        About the half-width with so many arms.
    precision : float, optional
        A round half-width within reach.
    chance : float, optional
        Probability of that by the deadline.
    days : float, optional
        Days within which enough experiments have it.
    later_days : float, optional
        Days within which enough experiments meet the goal after the deadline, when the last rewards have come.
    missing, open : float
        Share of the experiments that would meet the goal by the deadline, were it not for too many rewards that are
        missing for good, or that never come and are waited for.
    missing_share : float, optional
        In the former, the average share of units without a reward for good, of the arm with most of them.
    """

    way: str
    reached: float | None = None
    people_factor: float | None = None
    arms: int | None = None
    arms_half_width: float | None = None
    precision: float | None = None
    chance: float | None = None
    days: float | None = None
    later_days: float | None = None
    missing: float = 0.0
    open: float = 0.0
    missing_share: float | None = None


def round_up(width: float) -> float:
    """Return the finest round half-width that is not below this one.

    Examples
    --------
    >>> round_up(0.0312), round_up(0.05), round_up(7.4)
    (0.04, 0.05, 8.0)
    """
    return _round(width, up=True)


def _round(width: float, *, up: bool) -> float:
    exponent = math.floor(math.log10(width))
    grid = [float(f"{step:g}e{power}") for power in (exponent - 1, exponent, exponent + 1) for step in STEPS]
    if up:
        return min(one for one in grid if one >= width * (1.0 - 1e-9))
    return max(one for one in grid if one <= width * (1.0 + 1e-9))


def precisions(readings: Readings) -> FloatArray:
    """Return the half-widths to be judged: round ones, the goal, and others between them, coarsest first."""
    known = readings.widest[np.isfinite(readings.widest) & (readings.widest > 0)]
    if known.size == 0:
        return np.empty(0)
    # Early intervals are as wide as the range; nothing coarser than at a tenth of the looks is of interest.
    early = readings.widest[..., max(readings.widest.shape[-1] // 20, 0)]
    early = early[np.isfinite(early)]
    low, high = float(known.min()), float(np.median(early)) if early.size else float(known.max())
    high = max(high, 1.01 * low)
    rounds, width = [], _round(low, up=False)
    while width <= round_up(high):
        rounds.append(width)
        width = round_up(width * 1.0001)
    n_between = min(max(int(_POINTS_PER_DECADE * math.log10(high / low)), 2), 100)
    own = [] if readings.question.precision is None else [readings.question.precision]
    return np.unique(np.concatenate([rounds, np.geomspace(low, high, n_between), own]))[::-1].copy()


def stopping_choices(readings: Readings) -> tuple[StoppingChoice, ...]:
    """Return what to declare for each way."""
    question = readings.question
    widths = precisions(readings)
    limit = math.inf if question.deadline_seconds is None else question.deadline_seconds
    if widths.size == 0:
        return ()
    passages = readings.for_precisions(widths)
    in_time = passages.is_met & (passages.seconds <= limit)
    is_offered = np.array([width == question.precision or math.isclose(round_up(width), width) for width in widths])
    found = []
    for way, name in enumerate(question.ways):
        chances = in_time[:, way].mean(axis=-1)
        days = passages.seconds[:, way] / SECONDS_A_DAY
        enough = np.flatnonzero(is_offered & (chances >= question.sureness))
        place = int(enough[-1]) if enough.size else None
        needed = readings.goal.people[way] if question.has_goal or place is None else passages.people[place, way]
        budget = quantile(needed, BUDGET_SUFFICES)
        missed = ~readings.in_time[way] if question.has_goal else np.zeros(days.shape[-1], bool)
        rest = readings.at_deadline(readings.widest)[way][missed]
        found.append(
            StoppingChoice(
                way=name,
                precision=None if place is None else float(widths[place]),
                chance=Mean(0.0, 0.0) if place is None else share_of(in_time[place, way]),
                days=range_of(np.full(1, math.nan) if place is None else days[place]),
                budget=_rounded_up(budget) if math.isfinite(budget) else None,
                rest=float(missed.mean()),
                rest_width=float(np.median(rest)) if rest.size and math.isfinite(float(np.median(rest))) else None,
                half_widths=widths,
                goal_chances=chances,
                goal_days=np.array([quantile(one, 0.5) for one in days]),
            )
        )
    return tuple(found)


def _rounded_up(people: float) -> float:
    """Return a number of people with two digits that is at least this one."""
    if people < 100:
        return math.ceil(people)
    unit = 10.0 ** (math.floor(math.log10(people)) - 1)
    return math.ceil(people / unit) * unit


def alternatives_of(readings: Readings) -> Alternatives | None:
    """Return what would bring the goal within reach, or None where some way reaches it, or there is no goal."""
    question = readings.question
    chances = readings.in_time.mean(axis=-1)
    if not question.has_goal or (chances >= question.sureness).any():
        return None
    limit = math.inf if question.deadline_seconds is None else question.deadline_seconds
    widths = readings.at_deadline(readings.widest)
    reached = np.array([quantile(one, question.sureness) for one in widths])
    has_width = question.precision is not None and bool(np.isfinite(reached).any())
    best = int(np.argmin(reached)) if has_width else int(np.argmax(readings.is_ready.mean(axis=-1)))
    is_ready = readings.is_ready[best]
    too_many, in_vain = (is_ready & one[best] for one in _provisional(readings))
    paths = readings.paths
    gone = readings.at_deadline(paths.missing / np.maximum(paths.assigned, 1))[best][too_many]
    later = quantile(readings.goal.seconds[best], question.sureness) / SECONDS_A_DAY
    found = Alternatives(
        way=question.ways[best],
        reached=float(reached[best]) if has_width else None,
        later_days=later if math.isfinite(later) and question.has_calendar else None,
        missing=float(too_many.mean()),
        open=float(in_vain.mean()),
        missing_share=float(gone.mean(axis=0).max()) if gone.size else None,
    )
    if not has_width or question.precision is None or (widths[best] <= question.precision).mean() >= question.sureness:
        return found  # more people or fewer arms would not help, or nobody knows
    width = float(reached[best])
    offered, days, chance = _within_reach(readings, best, max(width, question.precision), limit)
    factor = quantile(readings.shortfall[best], question.sureness)
    arms, arms_width = fewer_arms(len(question.arms), width, question.precision, 1.0 - question.confidence)
    return replace(
        found,
        people_factor=factor if factor > 1.0 and math.isfinite(factor) else None,
        arms=arms,
        arms_half_width=arms_width,
        precision=offered,
        chance=chance,
        days=days,
    )


def _provisional(readings: Readings) -> tuple[BoolArray, BoolArray]:
    """Return where too many rewards are missing at the deadline, and where others are waited for in vain."""
    is_provisional = readings.at_deadline(readings.provisional)
    missing = readings.at_deadline(provisional(readings.paths, holds=True))
    return missing, is_provisional & ~missing


def _within_reach(
    readings: Readings, way: int, width: float, limit: float
) -> tuple[float | None, float | None, float | None]:
    """Return a round half-width that enough experiments reach in time, in how many days, and how many do."""
    sureness = readings.question.sureness
    first = round_up(width)
    offered = np.array([first, round_up(1.0001 * first)])
    passages = readings.for_precisions(offered)
    in_time = (passages.is_met & (passages.seconds <= limit))[:, way].mean(axis=-1)
    enough = np.flatnonzero(in_time >= sureness)
    if enough.size == 0:
        return None, None, None
    place = int(enough[0])
    days = quantile(passages.seconds[place, way], sureness) / SECONDS_A_DAY
    return float(offered[place]), days, float(in_time[place])


def fewer_arms(n_arms: int, reached: float, wanted: float, delta: float) -> tuple[int | None, float | None]:
    """Return with how many arms the half-width is about reached, or two, and how wide it then is.

    People per arm grow as arms are dropped, and fewer intervals have to hold together.
    """
    if n_arms <= 2:
        return None, None
    for kept in range(n_arms - 1, 1, -1):
        width = reached * math.sqrt(kept / n_arms * math.log(2.0 * kept / delta) / math.log(2.0 * n_arms / delta))
        if width <= wanted or kept == 2:
            return kept, width
    return None, None
