"""The page about the health of an experiment: the same as the API, muting with a reason, verifying beside the pages."""

from __future__ import annotations

import html
import re
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import pytest
from console_visitor import Visitor
from live_clock import TurnedClock, go_on
from patience import wait_until
from service_runner import serving_here

import equipoise as eq
from equipoise.console.addresses import address
from equipoise.service import Settings
from equipoise.service.api_keys import create_key
from equipoise.store import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser

HOSTILE = "<script>alert(1)</script>\"'>{{7*7}}&amp;\u202eRTL\u202c"


class Console(NamedTuple):
    url: str
    experiment: eq.Experiment
    clock: TurnedClock
    keys: dict[str, str]


@pytest.fixture
def console() -> Iterator[Console]:
    """An experiment to which nobody came for half a day."""
    clock = TurnedClock()
    store = eq.open_store("memory:", clock=clock)
    experiment = eq.Experiment.create(
        store,
        "messages",
        arms=["plain", HOSTILE],
        reward_weight=0.5,
        seed=1,
        reward_range=(0, 1),
        missing=eq.DropUnit(window_seconds=86_400),
    )
    go_on(experiment, clock, 9 * 24)
    clock.turn(hours=12)
    keys = {role: create_key(store, role=role, name="Ada")[1] for role in ("reader", "assigner", "admin")}
    with serving_here(store, Settings()) as here:
        yield Console(here.url, experiment, clock, keys)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


def test_the_page_says_what_the_api_says(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as visitor, eq.Client(console.url, console.keys["reader"]) as web:
        page = visitor.page("e/messages/health")
        text = text_of(page)
        health = web.open("messages").health()
        assert [one.check for one in health.alerts] == ["enrolment"]
        [alert] = health.alerts
        assert "<title>\u25cf 1 problem - messages" in page
        assert f"Problem: enrolment {alert.sentence} What to do: {alert.advice}" in text
        for check in health.checks:
            if check.state in ("problem", "note") or check.arm is None:
                assert check.sentence in text
        assert "mute" not in text.replace("muted", "")  # a reader may not
        data = visitor.get("e/messages/health?format=json").json()
        assert data["alerts"][0]["sentence"] == alert.sentence
        # On top of the overview and of the list, with a dot in the title.
        overview = visitor.page("e/messages")
        assert f"Problem: {alert.sentence}" in text_of(overview)
        assert "<title>\u25cf " in overview
        listed = visitor.page("")
        assert f"Problem: {alert.sentence}" in text_of(listed)
        assert "<title>\u25cf Experiments: 1 problem" in listed
        assert visitor.get("e/messages/health/mute?check=enrolment").status_code == 403


def test_an_alert_that_opens_without_an_event_is_noticed_by_pages_that_are_open(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as visitor:
        before = visitor.get("e/messages/live").json()["event"]
        of_all = visitor.get("live").json()["event"]
        assert visitor.get(f"e/messages/live?after={before}").status_code == 204
        console.experiment.health()
        assert visitor.get(f"e/messages/live?after={before}").json()["event"] == before + 1
        assert visitor.get(f"live?after={of_all}").json()["event"] == of_all + 1


def test_a_check_is_muted_with_a_reason_and_told_again(console: Console) -> None:
    path = "e/messages/health/mute?check=enrolment"
    with Visitor(console.url, console.keys["admin"]) as visitor:
        assert "Mute \u2018enrolment\u2019?" in text_of(visitor.page(path))
        refused = visitor.send(path, {"days": "7", "until": "", "reason": " "})
        assert refused.status_code == 422
        assert "The reason is missing: it goes into the log." in text_of(refused.text)
        refused = visitor.send(path, {"days": "7", "until": "yesterday", "reason": "holidays"})
        assert refused.status_code == 422
        assert 'value="holidays"' in refused.text
        assert visitor.send(path, {"days": "7", "until": "2020-01-01", "reason": "x"}).status_code == 422
        done = visitor.send(path, {"days": "7", "until": "", "reason": "school holidays"})
        assert done.status_code == 303
        page = text_of(visitor.page("e/messages/health?done=muted"))
        assert "Muted. The log says until when, and why." in page
        assert "by Ada : school holidays" in page.replace("\u201c", "").replace("\u201d", "")
        assert "\u25cf" not in page
        event = console.experiment.changes(1)[0]
        assert (event.kind, event.who) == ("muted", "Ada")
        assert event.details["until"] == (console.clock.now + timedelta(days=7)).isoformat()
        assert "Problem" not in text_of(visitor.page("e/messages"))
        assert visitor.send("e/messages/health/unmute?check=enrolment", {"reason": ""}).status_code == 303
        assert "Problem: enrolment" in text_of(visitor.page("e/messages/health"))
        by_day = visitor.send(path, {"days": "1", "until": "2027-04-01", "reason": "until April"})
        assert by_day.status_code == 303
        assert console.experiment.changes(1)[0].details["until"] == "2027-04-01T00:00:00+00:00"


@pytest.mark.parametrize("query", ["", "?check=nonsense", "?check=enrolment&arm=nobody"])
def test_what_is_no_check_cannot_be_muted(console: Console, query: str) -> None:
    with Visitor(console.url, console.keys["admin"]) as visitor:
        fields = {"days": "7", "until": "", "reason": "x"}
        answer = visitor.send(f"e/messages/health/mute{query}", fields, drawn_on="e/messages/health")
        assert answer.status_code in (404, 422)
        assert console.experiment.changes(1)[0].kind == "created"


@pytest.mark.endurance
def test_the_log_is_verified_beside_the_pages(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as visitor:
        assert "was never replayed" in text_of(visitor.page("e/messages/health"))
        assert visitor.send("e/messages/health", {"do": "nothing"}).status_code == 422
        assert visitor.send("e/messages/health", {"do": "verify"}).status_code == 303
        wait_until(lambda: "events verified" in text_of(visitor.page("e/messages/health")))
        number = console.experiment.number
        damage = "UPDATE arms SET pulls = pulls + 1 WHERE experiment = ? AND position = 0"
        console.experiment.store.change(number, lambda one: one.execute(damage, number))
        console.experiment.store.states.clear()
        console.clock.turn(minutes=1)
        visitor.send("e/messages/health", {"do": "verify"})
        wait_until(lambda: "should be" in text_of(visitor.page("e/messages/health")))
        assert "Problem: verification" in text_of(visitor.page("e/messages/health"))


def test_hostile_alerts_are_shown_as_they_are_and_lead_to_the_person(console: Console, browser: Browser) -> None:
    experiment = console.experiment
    experiment.health()
    person = experiment.ask(HOSTILE)
    event = experiment.status().n_events
    row = ("x", "unusual reward", 1, "problem", 1, 1, 1, None, None, 0.9, 0.0, f"Look: {HOSTILE}", HOSTILE, None, event)
    experiment.store.change(
        experiment.number, lambda one: one.put(schema.alerts, experiment.number, [(*row, None, None)])
    )
    experiment.mute("unusual reward", arm=HOSTILE, until=console.clock.now + timedelta(days=1), reason=HOSTILE)
    # The check finds nothing and would close it: somebody else holds the lease.
    experiment.store.change(
        experiment.number, lambda one: one.put(schema.leases, experiment.number, [("alerts", "another", 4 * 10**15)])
    )
    with browser.page(width=320) as page:
        page.open(f"{console.url}/console/e/messages/health")
        page.type(console.keys["admin"])
        with page.loading():
            page.press("Enter")
        for dark in (False, True):
            page.theme(dark=dark)
            for width in (320, 768, 1280):
                page.size(width)
                page.open(f"{console.url}/console/e/messages/health")
                assert page.overflow <= 0
                assert page.violations() == []
        assert HOSTILE in page.text("#alerts")
        there = page.evaluate(
            "[...document.querySelectorAll('#alerts a')].find(one => one.href.includes('people')).href"
        )
        assert there.endswith(address("e/{name}/people/{unit}", name="messages", unit=person.unit))
        assert page.evaluate("document.querySelectorAll('main script, main style').length") == 0
        page.tab_to("mute enrolment")
        with page.loading():
            page.press("Enter")
        page.tab_to("Why?")
        page.type("holidays")
        with page.loading():
            page.press("Enter")
        assert "Muted." in page.text()
        assert page.complaints == []
    assert experiment.changes(1)[0].details["reason"] == "holidays"
