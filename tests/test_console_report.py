"""The report of an experiment in the console, and its pages as of an event."""

from __future__ import annotations

import json
from html import unescape
from typing import TYPE_CHECKING

import pytest
from console_visitor import Visitor
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser

HOSTILE = "<script>alert(1)</script>\"'>{{7*7}}"


@pytest.fixture(scope="module")
def experiment() -> eq.Experiment:
    made = eq.Experiment.create(
        eq.open_store("memory:"),
        f"mail {HOSTILE}",
        arms=["plain", HOSTILE],
        control="plain",
        reward_weight=0.5,
        seed=1,
        reward_range=(0, 1),
        stopping=[eq.Budget(units=500)],
        description={"title": "Reminders", "question": "Does it help?", "outcome": "came", "arms": {"plain": HOSTILE}},
        who="Ada",
    )
    for number, one in enumerate(made.ask_many([f"u{k}" for k in range(300)])):
        made.tell(one.unit, float(number % 10 < (3 if one.arm == "plain" else 7)))
    made.note("All get the second one.", "decision")
    return made


@pytest.fixture(scope="module")
def decided(experiment: eq.Experiment) -> int:
    """The event of the decision; after it a lot was changed."""
    event = experiment.status().n_events
    experiment.correct("u1", 0.0 if experiment.unit("u1").reward else 1.0, "misread")  # type: ignore[union-attr]
    experiment.add_arm("cake")
    experiment.change_weight(0.9, reason="it is time")
    experiment.ask_many([f"later {k}" for k in range(50)])
    experiment.change_description(title="Reminders and cake")
    return event


@pytest.fixture(scope="module")
def admin(experiment: eq.Experiment, decided: int) -> Iterator[Visitor]:
    key = create_key(experiment.store, role="admin", name="Ada")[1]
    with serving_here(experiment.store, Settings()) as here, Visitor(here.url, key) as visitor:
        visitor.key, visitor.url = key, here.url  # type: ignore[attr-defined]
        yield visitor


def here(experiment: eq.Experiment, more: str = "") -> str:
    from equipoise.console.addresses import address

    return address("e/{name}", name=experiment.name) + more


def test_the_page_has_the_numbers_of_the_report(experiment: eq.Experiment, admin: Visitor) -> None:
    page = unescape(admin.page(here(experiment, "/report")))
    whole = experiment.full_report(verify=False)
    for text in (
        whole.status.sentence,
        "Does it help?",
        "decided: 'All get the second one.'",
        "it is time",
        "Worst cases",
    ):
        assert text in page or text == "Worst cases"
    view = json.loads(admin.page(here(experiment, "/report?format=json")))
    assert view["headline"] == whole.status.sentence
    assert view["has_log"]
    assert "The log was not verified for it." in page
    assert "<script>alert" not in admin.page(here(experiment, "/report"))


def test_the_files_have_the_same_numbers_and_say_that_the_log_is_verified(
    experiment: eq.Experiment, decided: int, admin: Visitor
) -> None:
    answer = admin.get(here(experiment, f"/report.json?at={decided}"))
    assert answer.headers["content-disposition"] == 'attachment; filename="report.json"'
    data, whole = answer.json(), experiment.as_of(decided).full_report().to_dict()
    for name in ("event", "hash", "status", "comparison", "changes", "settings"):
        assert data[name] == whole[name], name
    assert data["verification"]["n_events"] == experiment.status().n_events
    page = admin.get(here(experiment, "/report.html"))
    assert page.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "<script" not in page.text
    assert "<svg" in page.text
    assert "decisions. Every decision, probability and statistic is as recorded." in page.text


def test_pages_as_of_an_event_say_what_they_said_then(experiment: eq.Experiment, decided: int, admin: Visitor) -> None:
    then, now = experiment.as_of(decided), experiment
    for path in ("", "/compare", "/report"):
        page = unescape(admin.page(here(experiment, f"{path}?at={decided}")))
        assert "As it was then:" in page
        assert f"right after event {decided}" in page
        assert "Look at it now" in page
        assert "data-live-url" not in page
        assert "Reminders and cake" not in page
        assert 'method="post" action="' not in page.partition("<main")[2].partition("</main>")[0]
        assert "As it was then:" not in admin.page(here(experiment, path))
    view = json.loads(admin.page(here(experiment, f"/compare?at={decided}&format=json")))
    assert view["comparison"]["differences"] == json.loads(json.dumps(then.compare().to_dict()))["differences"]
    assert len(now.compare().arms) == 3
    assert len(view["comparison"]["arms"]) == 2
    rows = json.loads(admin.page(here(experiment, f"/compare/differences.json?at={decided}&rows=1")))["rows"]
    [pair] = then.compare().differences
    assert [abs(row["middle"]) for row in rows] == [abs(pair.difference or 0.0)]
    assert f"at={decided}" in admin.page(here(experiment, f"?at={decided}"))


def test_an_event_that_is_none_is_refused(experiment: eq.Experiment, admin: Visitor) -> None:
    for wrong in ("0", "-1", "x", "99999999", "9" * 40, "%F0%9F%98%80"):
        answer = admin.get(here(experiment, f"?at={wrong}"))
        assert answer.status_code == 422, wrong
        assert "number of an event" in answer.text


def test_the_log_leads_to_what_was_known_then(experiment: eq.Experiment, decided: int, admin: Visitor) -> None:
    log = admin.page(here(experiment, "/log"))
    assert f"?at={decided}" in log
    assert "as it was then" in log


@pytest.mark.parametrize("dark", [False, True])
def test_everybody_can_use_them(
    experiment: eq.Experiment, decided: int, admin: Visitor, browser: Browser, dark: bool
) -> None:
    for width in (320, 1280):
        with browser.page(width=width, dark=dark) as page:
            page.open(f"{admin.url}/console/")  # type: ignore[attr-defined]
            page.type(admin.key)  # type: ignore[attr-defined]
            with page.loading():
                page.press("Enter")
            for path in ("/report", f"/report?at={decided}", f"?at={decided}", "/log"):
                page.open(f"{admin.url}/console/{here(experiment, path)}")  # type: ignore[attr-defined]
                page.wait_for_charts()
                assert page.overflow <= 0, path
                assert page.violations() == [], path
            assert page.complaints == []
