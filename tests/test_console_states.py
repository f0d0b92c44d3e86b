"""Every page of the console for every state, number of people and role, with names of all kinds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from console_visitor import SAME_ORIGIN, Visitor, hidden_fields
from patience import HANGS
from service_runner import serving_here

import equipoise as eq
from equipoise.console.addresses import address
from equipoise.console.page_table import DATA, PAGES, Page
from equipoise.service import Settings
from equipoise.service.api_keys import ROLES, create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser

STATES = ("enrolling", "paused", "stopped", "finished")
PEOPLE = (0, 1, 29, 1500)
MARKS = "\u202eRTL\u202c"
HOSTILE = f"<script>alert(1)</script>\"'>{{{{7*7}}}}&amp;{MARKS}"
LONG = "N" * 200


class Console(NamedTuple):
    """A service with many experiments, a key of each role, and a plan that is simulated."""

    url: str
    keys: dict[str, str]
    plan: str
    """The plan's id."""
    key: str
    """A key's id."""


def played(store: eq.Store, name: str, n_people: int, state: str, arms: list[str]) -> eq.Experiment:
    """Return an experiment with so many people, most with a reward, in a state."""
    experiment = eq.Experiment.create(
        store,
        name,
        arms=arms,
        reward_weight=0.6,
        seed=7,
        control=arms[0],
        reward_range=(0, 1),
        missing=eq.DropUnit(window_seconds=3600),
        stopping=[eq.Budget(units=1000), eq.Precision(half_width=0.06), eq.Decided()],
        who=HOSTILE,
    )
    if n_people:
        assigned = experiment.ask_many([f"{HOSTILE}{k}" for k in range(n_people)])
        experiment.tell_many([(one.unit, float(k % 3 == 0)) for k, one in enumerate(assigned) if k % 10 or not k])
    if state == "paused":
        experiment.pause(reason=HOSTILE)
    elif state == "stopped":
        experiment.stop(reason=HOSTILE)
    elif state == "finished":
        experiment.stop()
        experiment.finish(anyway=True)
    return experiment


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    store = eq.open_store("memory:")
    for state in STATES:
        for n_people in PEOPLE:
            played(store, f"{state} {n_people}", n_people, state, ["plain", "prize"])
    hostile = played(store, HOSTILE, 29, "enrolling", [HOSTILE, LONG[:199], "prize"])
    hostile.note(f"{HOSTILE}\n{LONG}", "decision")
    played(store, LONG, 1, "enrolling", ["a/b", "c%2Fd"])
    keys = {role: create_key(store, role=role, name=f"{HOSTILE} {role}")[1] for role in ROLES}
    with serving_here(store, Settings()) as here:
        yield Console(here.url, keys, simulated_plan(here.url, keys["reader"]), keys["reader"].split("_")[1])


def simulated_plan(url: str, key: str) -> str:
    """Have a plan with names of all kinds simulated, and return its id."""
    plan = eq.Plan(
        arms={HOSTILE: "30%", LONG[:199]: "40% to 60%"},
        people=60,
        control=HOSTILE,
        goals=0.2,
        ways={"weights": [0.9]},
        title=HOSTILE,
        outcome=LONG,
    )
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60) as web:
        found = web.post("/plans", json={"plan": plan.to_dict(), "seconds": 0.2}).json()
        end = time.monotonic() + 10 * HANGS  # the simulation has the processor only where nobody else wants it
        while (found := web.get(f"/plans/{found['id']}").json())["state"] != "done":
            assert found["state"] in ("waiting", "working"), found
            assert time.monotonic() < end, found["state"]
            time.sleep(0.1)
    return str(found["id"])


def filled(path: str, name: str, console: Console | None = None) -> str:
    """Return an address of a page, with what is there in place of its names; of a console, its plan and a key."""
    identity = 64 * "0" if console is None else console.plan if path.startswith("plans") else console.key
    values = {"unit": f"{HOSTILE}0", "act": "pause", "arm": "plain", "id": identity}
    names = {one: values.get(one, "x") for one in _names(path)} | {"name": name}
    return address(path, **names)


def _names(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("state", STATES)
def test_pages_render_for_every_state_and_number_of_people(console: Console, state: str, role: str) -> None:
    with Visitor(console.url, console.keys[role]) as visitor:
        for n_people in PEOPLE:
            for page in PAGES:
                path = filled(page.path, f"{state} {n_people}", console)
                answer = visitor.get(path, follow_redirects=True)
                where = f"{path} for {role}"
                if role not in page.roles and page.path:
                    assert answer.status_code == 403, where
                    continue
                has_unit = n_people or "{unit}" not in page.path
                allowed = {200, 409, 422} if "{act}" in page.path or page.path.startswith("new") else {200}
                assert answer.status_code in (allowed if has_unit else {404}), where
                assert "</html>" in answer.text, where
                assert len(answer.content) <= 60_000, where


def test_names_with_markup_are_shown_as_they_are(console: Console) -> None:
    with Visitor(console.url, console.keys["admin"]) as visitor:
        for name in (HOSTILE, LONG):
            for page in PAGES:
                path = filled(page.path, name, console)
                text = visitor.get(path, follow_redirects=True).text
                assert "<script>alert" not in text, path
                assert "49&amp;" not in text, path  # no template in a name is filled in
                assert "\"'>{{" not in text, path


def test_names_with_markup_do_nothing_in_a_browser_and_fit(console: Console, browser: Browser) -> None:
    with browser.page(width=320) as page:
        page.open(f"{console.url}/console/")
        page.type(console.keys["admin"])
        with page.loading():
            page.press("Enter")
        for name in (HOSTILE, LONG):
            plans = ("plans", f"plans/{console.plan}", f"plans/new?arm1={quote(name)}&title={quote(name)}")
            for path in ("", *plans, "service", filled("e/{name}", name), filled("e/{name}/log", name)):
                page.open(f"{console.url}/console/{path}")
                assert page.overflow <= 0, path
                assert page.evaluate("document.querySelectorAll('script:not([src])').length") == 0, path
                assert page.evaluate("document.querySelectorAll('main script, main style').length") == 0, path
        assert page.complaints == []


@pytest.mark.parametrize("role", ROLES)
def test_every_route_asks_for_its_role(console: Console, role: str) -> None:
    name = "enrolling 29"
    with Visitor(console.url, console.keys[role]) as visitor:
        token = hidden_fields(visitor.page("help"))["token"]
        for page in PAGES:
            answer = visitor.web.post(filled(page.path, name), data={"token": token}, headers=SAME_ORIGIN)
            where = f"POST {page.path} for {role}"
            if role not in page.roles:
                assert answer.status_code == 403, where
            elif page.act is None:
                assert answer.status_code == 405, where
            elif role not in page.act_roles:
                assert answer.status_code == 403, where
            elif page.is_stale_checked and "{name}" in page.path:
                assert answer.status_code == 409, where  # it says no state of settings
            else:
                assert answer.status_code not in (401, 403, 405, 500), where
        for data in DATA:
            status = visitor.get(filled(data.path, name, console)).status_code
            assert (status == 403) == (role not in data.roles), (data.path, role, status)
            assert status != 500, data.path


def test_nothing_is_shown_or_done_without_a_session(console: Console) -> None:
    rows: list[Any] = [*PAGES, *DATA]
    for row in rows:
        path = f"{console.url}/console/{filled(row.path, 'enrolling 29')}"
        answer = httpx.get(path)
        if row.path == "help":
            assert answer.status_code == 200
        elif isinstance(row, Page):
            assert answer.headers["location"].startswith("../" * row.path.count("/") or "./"), path
            assert "sign-in" in answer.headers["location"], path
            posted = httpx.post(path, data={"token": ""}, headers=SAME_ORIGIN)
            assert posted.status_code == 303, path
            assert "sign-in" in posted.headers["location"], path
        else:
            assert answer.status_code in (303, 401), path


def test_a_form_drawn_before_another_change_is_refused(console: Console) -> None:
    path = address("e/{name}/settings/{act}", name="paused 1", act="resume")
    with Visitor(console.url, console.keys["admin"]) as ada, Visitor(console.url, console.keys["admin"]) as ben:
        drawn = hidden_fields(ada.page(path))
        assert ben.send(path, {}).status_code == 303
        answer = ada.web.post(path, data=drawn, headers=SAME_ORIGIN)
    assert answer.status_code == 409
    assert "resumed enrolment" in answer.text
    assert "nothing was done" in answer.text


def test_ten_thousand_arms_are_a_page_of_fifty() -> None:
    store = eq.open_store("memory:")
    arms = [f"arm {k}" for k in range(10_000)]
    eq.Experiment.create(store, "many", arms=arms, policy=eq.Uniform(), seed=1)
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings()) as here, Visitor(here.url, key) as visitor:
        for path in ("", "e/many", "e/many?sort=mean&page=200", "e/many?q=arm+777", "e/many/log"):
            page = visitor.page(path)
            assert len(page) <= 60_000, path
        assert "arm 7777" in visitor.page("e/many?q=arm+777")
