"""Prepare the table of arms: people, shares, means with marks of their intervals, and what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from equipoise.charts.vega_lite import decimals_of, interval_text, number_text
from equipoise.console.interval_marks import Axis, IntervalMark, axis_of
from equipoise.experiment.records import ArmStatus, Status

ROWS = 50
"""Arms of a page; of more, the first page has those with the best means and those with the most people."""


@dataclass(frozen=True)
class ArmRow:
    """A row of the table of arms, as texts and places."""

    arm: str
    notes: tuple[str, ...]
    people: int
    share: float
    """Part of the people of the arm that got most."""
    given: float | None
    wanted: float | None
    mean: str
    interval: str
    mark: IntervalMark | None
    may_be_best: bool
    waiting: int
    missing: float | None


@dataclass(frozen=True)
class ArmTable:
    """The table of arms."""

    rows: tuple[ArmRow, ...]
    axis: Axis | None
    n_arms: int
    found: int
    """Arms that the search found; all without one."""
    sort: str
    search: str
    page: int
    n_pages: int
    is_selection: bool
    """Whether only the best and the most assigned arms are shown."""
    average: str
    n_waiting: int
    has_missing: bool


def arm_table(status: Status, control: str | None, query: dict[str, str] | Any) -> ArmTable:
    """Return the table of arms, sorted and searched as the query of the address says."""
    search = query.get("q", "").strip()
    sort = query.get("sort", "")
    sort = sort if sort in SORTS else ""
    arms = [arm for arm in status.arms if search.casefold() in arm.arm.casefold()]
    best_first = sorted(arms, key=_by_mean(status))
    is_selection = len(arms) > ROWS and not sort and not search and "page" not in query
    n_pages = max(1, -(-len(arms) // ROWS))
    page = min(n_pages, int(query["page"])) if query.get("page", "").isdecimal() and len(query["page"]) < 8 else 1
    page = max(1, page)
    if is_selection:
        most = sorted(arms, key=lambda arm: -arm.assigned)[: ROWS // 2]
        chosen = {arm.arm for arm in [*best_first[: ROWS // 2], *most]}
        shown = [arm for arm in best_first if arm.arm in chosen]
    else:
        key = SORTS[sort](status) if sort else None
        in_order = sorted(arms, key=key) if key is not None else best_first if len(arms) > ROWS else arms
        shown = in_order[ROWS * (page - 1) : ROWS * page]
    values = [value for arm in shown for value in (arm.mean, arm.low, arm.high) if value is not None]
    axis = axis_of(values)
    decimals = decimals_of([(arm.low, arm.high) for arm in status.arms])
    most_people = max((arm.assigned for arm in status.arms), default=0)
    leader = best_first[0].arm if best_first and best_first[0].mean is not None and not search else None
    return ArmTable(
        rows=tuple(_row(arm, status, control, leader, axis, decimals, most_people) for arm in shown),
        axis=axis,
        n_arms=len(status.arms),
        found=len(arms),
        sort=sort,
        search=search,
        page=page,
        n_pages=n_pages,
        is_selection=is_selection,
        average=_number(status.average_reward, decimals),
        n_waiting=status.n_pending,
        has_missing=any(_missing(arm) is not None for arm in status.arms),
    )


def _row(
    arm: ArmStatus,
    status: Status,
    control: str | None,
    leader: str | None,
    axis: Axis | None,
    decimals: int | None,
    most_people: int,
) -> ArmRow:
    may_be_best = arm.arm in status.may_be_best or not status.may_be_best
    notes = []
    if arm.arm == control:
        notes.append("control")
    if arm.arm == leader and len(status.arms) > 1:
        notes.append("is best" if status.may_be_best == (arm.arm,) else "best so far")
    elif not may_be_best and arm.state != "retired":
        notes.append("not the best")
    if arm.state != "active":
        notes.append(arm.state)
    interval = "" if arm.low is None and arm.high is None else interval_text(arm.low, arm.high, decimals)
    return ArmRow(
        arm=arm.arm,
        notes=tuple(notes),
        people=arm.assigned,
        share=arm.assigned / most_people if most_people else 0.0,
        given=arm.actual_share,
        wanted=arm.target_share,
        mean=_number(arm.mean, decimals),
        interval=interval,
        mark=None if axis is None else axis.mark(arm.mean, arm.low, arm.high),
        may_be_best=may_be_best,
        waiting=arm.pending - arm.overdue,
        missing=_missing(arm),
    )


def _missing(arm: ArmStatus) -> float | None:
    """Return the share of people past their window who never had a reward; None where there is no window."""
    without = arm.overdue + arm.defaulted + arm.dropped
    over = arm.assigned - arm.pending + arm.overdue - arm.withdrawn
    return without / over if without and over else None


def _by_mean(status: Status) -> Callable[[ArmStatus], Any]:
    sign = -1.0 if status.direction == "maximise" else 1.0
    return lambda arm: (arm.mean is None, 0.0 if arm.mean is None else sign * arm.mean)


SORTS: dict[str, Callable[[Status], Callable[[ArmStatus], Any]]] = {
    "arm": lambda _: lambda arm: arm.arm.casefold(),
    "people": lambda _: lambda arm: -arm.assigned,
    "mean": _by_mean,
}
"""What the table can be sorted by."""


def _number(value: float | None, decimals: int | None) -> str:
    return "" if value is None else number_text(value, decimals)
