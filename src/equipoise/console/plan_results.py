"""Show what a plan will bring: the recommendation, what each way costs, charts, stopping rules, and what is assumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from equipoise.charts.pages import WIDE, Picture, Table
from equipoise.console import plan_form
from equipoise.console.addresses import address
from equipoise.console.pictures import width_of
from equipoise.console.plan_draft import is_field
from equipoise.console.plan_fields import fields_of, holds_all
from equipoise.console.plan_list import AT_WORK, state_words
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import UnknownPlan
from equipoise.planner.plan import Plan

if TYPE_CHECKING:
    from equipoise.forecast_contents import ForecastContents

PATH = "plans/{id}"
CHARTS = ("price", "chance", "precision", "shares", "effects", "experiment")
"""The charts that a forecast may have."""
MOST_COLUMNS, MOST_ROWS = 12, 24
"""Of the table beside a chart."""


@dataclass(frozen=True)
class PlanPicture:
    """A chart on the page: its words, and its numbers as a table, of many columns the first."""

    key: str
    title: str
    note: str
    data: Table
    n_more_columns: int


@dataclass(frozen=True)
class PlanView:
    """A plan and its forecast."""

    id: str
    state: str
    words: str
    is_at_work: bool
    replications: int
    contents: ForecastContents
    is_by_formula: bool
    """Whether nothing is simulated yet."""
    pictures: tuple[PlanPicture, ...]
    ways: tuple[str, ...]
    """The ways that an experiment can be made with."""
    change: str
    """Query of the form with this plan."""
    is_whole: bool
    """Whether the form holds all that the plan says."""


def show(visit: Visit) -> Shown:
    """Show a plan; one that is not kept any more is shown as the form that its address holds."""
    identity = visit.names["id"]
    found = visit.plans.find(identity)
    if found is None and any(is_field(name) for name in visit.query):
        return plan_form.show(visit)
    found = visit.plans.get(identity)
    plan = Plan.from_dict(found["plan"])
    contents = visit.plans.contents(identity)
    is_by_formula = contents is None
    if contents is None:
        from equipoise.forecast_contents import contents_of

        contents = contents_of(plan.formulas())
    fields = fields_of(plan)
    view = PlanView(
        id=identity,
        state=found["state"],
        words=state_words(found),
        is_at_work=found["state"] in AT_WORK,
        replications=found["replications"],
        contents=contents,
        is_by_formula=is_by_formula,
        pictures=tuple(map(_picture, visit.plans.pictures(identity))),
        ways=tuple(visit.plans.bands(identity)) if visit.viewer.changes else (),
        change=urlencode(fields),
        is_whole=holds_all(plan, fields),
    )
    return Shown("plan.html", view, contents.paragraphs[0][0] if contents.paragraphs else contents.title)


def act(visit: Visit) -> Redirect:
    """End the work on the plan, or forget it; who wanted to end work that is done meanwhile forgets nothing."""
    identity = visit.names["id"]
    found = visit.plans.get(identity)
    if visit.form.get("do") == "forget" or found["state"] in AT_WORK:
        visit.plans.cancel(identity)
    is_kept = visit.plans.find(identity) is not None
    return Redirect(address(PATH, id=found["id"]) if is_kept else "plans")


def change(visit: Visit) -> int:
    """Return a number that changes when the forecast does."""
    return visit.plans.change_of(visit.names["id"])


def chart(key: str, visit: Visit) -> dict[str, Any]:
    """Return a chart as wide as there is room for."""
    for picture in visit.plans.pictures(visit.names["id"]):
        if picture.key == key:
            return picture.wide if width_of(visit) >= WIDE else picture.narrow
    raise UnknownPlan("this plan is not kept any more, or has no such chart", hint="look at the plan again")


def _picture(picture: Picture) -> PlanPicture:
    data = picture.data
    note = " ".join(f"{one[:1].upper()}{one[1:].rstrip('.')}." for one in picture.notes)
    columns = data.columns[:MOST_COLUMNS]
    rows = [row[:MOST_COLUMNS] for row in data.rows[:MOST_ROWS]]
    return PlanPicture(
        picture.key, picture.title, note, Table(data.caption, columns, rows), len(data.columns) - len(columns)
    )
