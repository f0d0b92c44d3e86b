"""List the pages of the console: path, roles, what shows them and what acts on their forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote_to_bytes

from equipoise.console import (
    comparison,
    course_pictures,
    desk,
    dial_page,
    experiment_acts,
    experiment_list,
    experiment_report,
    experiment_settings,
    health_page,
    help_page,
    log_page,
    new_experiment,
    operations,
    overview_page,
    people_page,
    plan_form,
    plan_list,
    plan_results,
)
from equipoise.console.addresses import address
from equipoise.console.plan_results import CHARTS
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.http_api import ADMINS, ASSIGNERS, EVERY_KEY, READERS


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    Attributes
    ----------
    path : str
        Below ``/console/``; ``{name}`` is the experiment, which must come first of the names.
    show : function
        Takes a `Visit` and returns what is `Shown`.
    roles : tuple of str
        Roles that see it.
    act : function, optional
        Takes the `Visit` of a form that was sent, changes something, and returns a `Redirect`, or what is `Shown`
        instead. Errors of the package become an error page; catch those that the form can show.
    act_roles : tuple of str
        Roles that may send its forms.
    tab : str, optional
        Its name among the tabs of an experiment; tabs have the order of the table.
    is_stale_checked : bool
        Whether forms are refused (409) if somebody changed the experiment since they were drawn.
    is_cached : bool
        Whether a rendering may be shared by all who look with the same role, until the next event.
    is_for_one : bool
        Whether a page without an experiment in its path is for keys of a single experiment too.
    has_past : bool
        Whether ``?at=EVENT`` shows the experiment as it was right after that event.
    event : function, optional
        Returns a number that changes when the page does, by default that of the last event; a row of data with the
        path of the page and ``/live``, and the same function, lets the page keep itself up to date.
    """

    path: str
    show: Callable[[Visit], Shown]
    roles: tuple[str, ...] = READERS
    act: Callable[[Visit], Redirect | Shown] | None = None
    act_roles: tuple[str, ...] = ADMINS
    tab: str | None = None
    is_stale_checked: bool = True
    is_cached: bool = True
    is_for_one: bool = False
    has_past: bool = False
    event: Callable[[Visit], int] | None = None


@dataclass(frozen=True, kw_only=True)
class Data:
    """Data that scripts fetch, such as a chart: a path that ends in ``.json``, roles, and what reads it.

    Without `read` it says whether there is something new: the number of the last event, or that of `event`. `has_past`
    is as in `Page`.
    """

    path: str
    read: Callable[[Visit], Any] | None = None
    roles: tuple[str, ...] = READERS
    has_past: bool = False
    event: Callable[[Visit], int] | None = None


PAGES: tuple[Page, ...] = (
    Page(path="", show=experiment_list.show, is_cached=False),
    *(
        Page(path=step.path, show=new_experiment.show, roles=ADMINS, act=act, is_cached=False)
        for step, act in zip(new_experiment.STEPS, (*4 * (None,), new_experiment.act), strict=True)
    ),
    Page(path="plans", show=plan_list.show, is_cached=False),
    Page(path=plan_form.PATH, show=plan_form.show, act=plan_form.act, act_roles=READERS, is_cached=False),
    Page(
        path=plan_results.PATH,
        show=plan_results.show,
        act=plan_results.act,
        act_roles=READERS,
        is_cached=False,
        event=plan_results.change,
    ),
    Page(path=operations.PATH, show=operations.show, roles=ADMINS, is_cached=False),
    Page(path=operations.KEY, show=operations.show_key, roles=ADMINS, act=operations.revoke, is_cached=False),
    Page(path="help", show=help_page.show, roles=EVERY_KEY, is_for_one=True),
    Page(path="e/{name}", show=overview_page.show, tab="Overview", has_past=True),
    Page(path=dial_page.PATH, show=dial_page.show, act=dial_page.act, tab="Dial"),
    Page(path="e/{name}/compare", show=comparison.show, tab="Compare", has_past=True),
    Page(
        path=health_page.PATH,
        show=health_page.show,
        act=health_page.act,
        act_roles=READERS,
        tab="Health",
        is_stale_checked=False,
    ),
    Page(
        path=health_page.ACT,
        show=health_page.show_act,
        roles=ADMINS,
        act=health_page.act_on_check,
        is_stale_checked=False,
    ),
    Page(path=people_page.PATH, show=people_page.show, tab="People"),
    Page(path=people_page.PERSON, show=people_page.show_person, act=people_page.act_on_person, is_stale_checked=False),
    Page(
        path=desk.PATH,
        show=desk.show,
        roles=ASSIGNERS,
        act=desk.act,
        act_roles=ASSIGNERS,
        tab="Desk",
        is_stale_checked=False,
        is_cached=False,
    ),
    Page(path="e/{name}/log", show=log_page.show, tab="Log"),
    Page(path=experiment_report.PATH, show=experiment_report.show, tab="Report", has_past=True),
    Page(path=experiment_settings.PATH, show=experiment_settings.show, tab="Settings"),
    Page(path=experiment_acts.PATH, show=experiment_acts.show, roles=ADMINS, act=experiment_acts.act),
)
"""All pages; a page more is a row here."""

DATA: tuple[Data, ...] = (
    Data(path="list.csv", read=experiment_list.as_csv),
    Data(path=f"{plan_results.PATH}/live", event=plan_results.change),
    *(Data(path=f"{plan_results.PATH}/{key}.json", read=partial(plan_results.chart, key)) for key in CHARTS),
    *(
        Data(path=f"e/{{name}}/{key}.json", read=partial(course_pictures.chart, key), has_past=True)
        for key in course_pictures.CHARTS
    ),
    Data(path="e/{name}/log.jsonl", read=log_page.as_lines),
    Data(path="e/{name}/compare/differences.json", read=comparison.differences_chart, has_past=True),
    Data(path=f"{experiment_report.PATH}/arms.json", read=experiment_report.arms_chart, has_past=True),
    Data(path=f"{experiment_report.PATH}.html", read=experiment_report.as_page, has_past=True),
    Data(path=f"{experiment_report.PATH}.json", read=experiment_report.as_numbers, has_past=True),
    Data(path=f"{dial_page.PATH}/prices.json", read=dial_page.prices_chart),
    Data(path=f"{dial_page.PATH}/positions.json", read=dial_page.positions),
)
"""All data; a chart more is a row here."""


def match(path: Sequence[bytes], rows: Sequence[Any]) -> tuple[Any, dict[str, str]] | None:
    """Return the row for the segments of a path, with the names in it; the first row that fits counts.

    Examples
    --------
    >>> page, names = match([b"e", b"4b%2Fspring", b"log"], PAGES)
    >>> page.path, names
    ('e/{name}/log', {'name': '4b/spring'})
    """
    for row in rows:
        parts = row.path.split("/")
        if len(parts) == len(path):
            names: dict[str, str] = {}
            for part, segment in zip(parts, path, strict=True):
                if part.startswith("{"):
                    if not segment:
                        break
                    try:
                        names[part[1:-1]] = unquote_to_bytes(segment).decode()
                    except UnicodeDecodeError:
                        break
                elif part.encode() != segment:
                    break
            else:
                return row, names
    return None


def home(role: str, experiment: str | None) -> str:
    """Return the address where somebody with this role begins, who may see one experiment or all."""
    desk = role not in READERS and any(page.path == "e/{name}/desk" for page in PAGES)
    if experiment is None:
        return "" if role in READERS else "help"
    return address("e/{name}/desk" if desk else "e/{name}" if role in READERS else "help", name=experiment)
