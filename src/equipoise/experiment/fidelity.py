"""Set what was planned for an experiment beside what happened so far: its fidelity to the plan.

An experiment that was made from a plan keeps the plan's bands in its metadata: for some days, between which values a
figure lay in 8 of 10 simulated experiments. What is measured now is compared with the bands of the present day.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput
from equipoise.experiment.records import Fidelity, PlannedFigure

if TYPE_CHECKING:
    from equipoise.experiment.records import Status

PLAN = "plan"
"""Key of the plan in an experiment's metadata."""

PEOPLE, REWARDS, MISSING, WIDEST, BEST_SHARE, AVERAGE, ARM_SHARE, ARM_MEAN = (
    "people",
    "rewards",
    "missing",
    "widest",
    "best share",
    "average reward",
    "share of arm",
    "mean of arm",
)
FIGURES = {
    PEOPLE: "people assigned",
    REWARDS: "rewards counted",
    MISSING: "share of people without a reward for good",
    WIDEST: "widest plus or minus",
    BEST_SHARE: "share of people with the arm of the best mean",
    AVERAGE: "average reward",
    ARM_SHARE: "share of people with",
    ARM_MEAN: "mean of",
}
"""The figures that have bands, in words; the last two are of one arm each."""
SHARES = (MISSING, BEST_SHARE, ARM_SHARE)

_SECONDS_PER_DAY = 86_400.0
_FIRST_DAY = 1.0
"""Before this day is over, nothing is compared: bands are by day, and few people have come."""
_EARLY = "The first day has not passed: there is nothing to compare yet."


def fidelity_of(status: Status, metadata: Mapping[str, Any]) -> Fidelity:
    """Return planned bands and present figures of an experiment that was made from a plan.

    Parameters
    ----------
    status : Status
        Where the experiment stands.
    metadata : dict
        Of the experiment; its plan has the days of the bands, and for every figure, or figure and arm, the low, middle
        and high end on each day.
    """
    plan: Any = metadata.get(PLAN)
    if not _is_plan(plan):
        raise InvalidInput(
            f"experiment {status.name!r} was not made from a plan, so there is nothing to compare it with",
            hint="`equipoise plan` plans an experiment, and `equipoise create NAME --plan FILE` makes it from a plan",
        )
    began = status.created_at
    if plan.get("start") is not None:
        start = datetime.fromisoformat(plan["start"])
        began = max(began, start if start.tzinfo is not None else start.replace(tzinfo=UTC))
    days: list[float] = plan["days"]
    day = max((status.at - began).total_seconds() / _SECONDS_PER_DAY, 0.0)
    is_over = status.state in ("stopped", "finished") or day >= days[-1]
    is_early = day < _FIRST_DAY and not is_over
    found = measured(status)
    figures = []
    for band in plan["bands"]:
        low, middle, high = (_on_day(days, band[end], day) for end in ("low", "middle", "high"))
        actual = found.get((band["figure"], band.get("arm")))
        is_known = not is_early and actual is not None and low is not None and high is not None
        inside = low <= actual <= high if is_known else None  # type: ignore[operator]
        figures.append(PlannedFigure(band["figure"], band.get("arm"), low, middle, high, actual, inside))
    known = [figure for figure in figures if figure.inside is not None]
    outside = [figure for figure in known if not figure.inside]
    return Fidelity(
        name=status.name,
        at=status.at,
        plan=plan["digest"],
        way=plan["way"],
        day=day,
        last_day=days[-1],
        figures=tuple(figures),
        sentences=(_EARLY,) if is_early else tuple(_sentences(known, outside, day, is_over)),
    )


def is_planned(metadata: Mapping[str, Any]) -> bool:
    """Return whether an experiment with this metadata was made from a plan."""
    return _is_plan(metadata.get(PLAN))


def is_off_plan(figures: Sequence[PlannedFigure]) -> bool:
    """Return whether so few figures lie in their bands that the plan is not what happens: fewer than 6 of 10."""
    known = [figure.inside for figure in figures if figure.inside is not None]
    return bool(known) and sum(known) < 0.6 * len(known)


def _is_plan(plan: Any) -> bool:
    return isinstance(plan, Mapping) and {"days", "bands", "digest", "way"} <= plan.keys() and bool(plan["days"])


def measured(status: Status) -> dict[tuple[str, str | None], float]:
    """Return what a status says about the figures, by figure and arm; those that are not known yet are left out."""
    missing = status.n_dropped + status.n_withdrawn + sum(arm.overdue for arm in status.arms)
    widths = [arm.half_width for arm in status.arms if arm.state != "retired"]
    known = {arm.arm: arm.mean for arm in status.arms if arm.mean is not None}
    found: dict[tuple[str, str | None], float | None] = {
        (PEOPLE, None): float(status.n_assigned),
        (REWARDS, None): float(status.n_rewarded),
        (MISSING, None): missing / status.n_assigned if status.n_assigned else None,
        (WIDEST, None): None if None in widths else max((width for width in widths if width is not None), default=None),
        (AVERAGE, None): status.average_reward,
    }
    if known:
        best = (max if status.direction == "maximise" else min)(known, key=lambda arm: known[arm])
        found[BEST_SHARE, None] = next(arm.actual_share for arm in status.arms if arm.arm == best)
    for arm in status.arms:
        found[ARM_SHARE, arm.arm] = arm.actual_share
        found[ARM_MEAN, arm.arm] = arm.mean
    return {place: value for place, value in found.items() if value is not None}


def _on_day(days: Sequence[float], values: Sequence[float | None], day: float) -> float | None:
    """Return a band's end on a day, between the days it is known for by a straight line; the last one's after them."""
    place = bisect_right(days, day)
    if place == 0:
        return values[0]
    if place == len(days):
        return values[-1]
    before, after = values[place - 1], values[place]
    if before is None or after is None:
        return None
    part = (day - days[place - 1]) / (days[place] - days[place - 1])
    return before + part * (after - before)


def _sentences(known: list[PlannedFigure], outside: list[PlannedFigure], day: float, is_over: bool) -> Iterator[str]:
    """Return sentences about what left its band, and one about how many did not."""
    for figure in outside:
        assert figure.actual is not None  # noqa: S101
        what = FIGURES[figure.figure] + ("" if figure.arm is None else f" {figure.arm!r}")
        middle, low, high = (figure_text(figure.figure, value) for value in (figure.middle, figure.low, figure.high))
        now = figure_text(figure.figure, figure.actual)
        yield f"{what[0].upper()}{what[1:]}: {now}; planned: {middle} ({low} to {high})."
    n_known, n_inside = len(known), len(known) - len(outside)
    figures = "figure" if n_known == 1 else "figures"
    if n_known == 0:
        yield "Nothing that was planned can be compared yet."
    elif is_over:
        yield f"Of {n_known} planned {figures}, {n_inside} ended inside their 8-in-10 range."
    elif not outside:
        yield f"On day {day:.0f} everything is as planned: {n_known} {figures} are inside their 8-in-10 range."
    else:
        yield f"On day {day:.0f}, {n_inside} of {n_known} planned {figures} are inside their 8-in-10 range."
    if is_off_plan(known):
        yield "About 8 of 10 figures lie inside if an experiment goes as planned: plan again from here."


def figure_text(figure: str, value: float | None) -> str:
    """Format a figure for people."""
    if value is None or not math.isfinite(value):
        return "-"
    if figure in SHARES:
        return f"{value:.1%}" if value < 0.1 else f"{value:.0%}"
    return f"{value:,.0f}" if figure in (PEOPLE, REWARDS) else f"{value:.3g}"
