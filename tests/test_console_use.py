"""How the console is used: without scripts, by keyboard, below a prefix, while people keep coming."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
from console_visitor import Visitor
from service_runner import running_service, serving_here
from tools import need

import equipoise as eq
from equipoise.console import rendering
from equipoise.console.addresses import address
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser, Page


class Console(NamedTuple):
    """A service with an experiment, and an admin's key."""

    url: str
    experiment: eq.Experiment
    key: str


@pytest.fixture
def console() -> Iterator[Console]:
    store = eq.open_store("memory:")
    experiment = eq.Experiment.create(
        store, "messages", arms=["plain", "prize"], reward_weight=0.6, seed=7, reward_range=(0, 1)
    )
    for k, one in enumerate(experiment.ask_many([f"person-{k}" for k in range(40)])):
        experiment.tell(one.unit, float(k % 3 == 0))
    key = create_key(store, role="admin", name="Ada")[1]
    with serving_here(store, Settings()) as here:
        yield Console(here.url, experiment, key)


def sign_in(page: Page, console: str, key: str) -> None:
    page.open(console)
    page.type(key)
    with page.loading():
        page.press("Enter")


def test_everything_can_be_read_and_done_without_scripts(console: Console, browser: Browser) -> None:
    with browser.page(scripts=False) as page:
        sign_in(page, f"{console.url}/console/e/messages", console.key)
        text = page.text()
        assert "40 people" in text
        for arm in console.experiment.status().arms:
            assert f"{arm.mean:.2f}" in text
        page.open(f"{console.url}/console/{address('e/{name}/settings/{act}', name='messages', act='pause')}")
        page.evaluate("document.querySelector('main form button').focus()")
        with page.loading():
            page.press("Enter")
        assert console.experiment.status().state == "paused"
        page.open(f"{console.url}/console/help")
        page.evaluate("[...document.querySelectorAll('footer button')].find(one => one.value === 'dark').focus()")
        with page.loading():
            page.press("Enter")
        assert page.address == f"{console.url}/console/help"
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
        assert page.complaints == []


def test_signing_in_and_finding_an_experiment_by_keyboard_alone(console: Console, browser: Browser) -> None:
    with browser.page() as page:
        sign_in(page, f"{console.url}/console/", console.key)
        page.press("Tab")
        assert page.focused == "Skip to the content"
        page.press("Enter")
        page.tab_to("messages")
        with page.loading():
            page.press("Enter")
        page.tab_to("Log")
        with page.loading():
            page.press("Enter")
        assert page.address.endswith("/console/e/messages/log")
        page.tab_to("sign out")
        with page.loading():
            page.press("Enter")
        page.wait_for("document.activeElement.matches('[autofocus]')")
        assert page.focused == "Key"


def test_a_page_keeps_itself_up_to_date_until_it_is_held(console: Console, browser: Browser) -> None:
    with browser.page() as page:
        sign_in(page, f"{console.url}/console/e/messages", console.key)
        page.evaluate("window.isTheSamePage = true")
        page.tab_to("people", most=40)
        console.experiment.ask("one-more")
        page.wait_for("document.querySelector('#facts').innerText.includes('41 people')")
        assert page.evaluate("window.isTheSamePage")
        assert page.focused == "people"  # inside of what changed: it waits until the focus is elsewhere
        page.click("#hold")
        assert page.evaluate("document.querySelector('#hold').getAttribute('aria-pressed')") == "true"
        n_requests = len(page.requests)
        console.experiment.ask("and-another")
        page.evaluate("new Promise(done => setTimeout(done, 3000))")
        assert len(page.requests) == n_requests
        page.click("#hold")
        page.wait_for("document.querySelector('#facts').innerText.includes('42 people')")
        assert page.complaints == []


def test_the_page_stays_when_the_service_is_away(browser: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'one.db'}"
    with eq.open_store(url) as store:
        eq.Experiment.create(store, "messages", arms=["plain", "prize"], reward_weight=0.6, seed=7)
        key = create_key(store, role="reader")[1]
    with running_service(url) as service, browser.page() as page:
        sign_in(page, f"{service.url}/console/e/messages", key)
        service.kill()
        page.wait_for("!document.getElementById('away').hidden")
        assert "No answer since" in page.text("#away")
        assert "Nobody has been assigned yet" in page.text("h1")


def test_live_says_nothing_while_nothing_happens(console: Console) -> None:
    with Visitor(console.url, console.key) as visitor:
        found = visitor.get("e/messages/live?after=0")
        assert found.status_code == 200
        event = found.json()["event"]
        assert visitor.get(f"e/messages/live?after={event}").status_code == 204
        console.experiment.ask("one-more")
        assert visitor.get(f"e/messages/live?after={event}").json()["event"] == event + 1


def test_a_change_shows_at_once_although_pages_are_kept(console: Console) -> None:
    with Visitor(console.url, console.key) as visitor:
        assert "enrolling</span>" in visitor.page("e/messages")
        console.experiment.pause()
        assert "paused</span>" in visitor.page("e/messages")


def test_the_list_is_searched_and_kept_as_csv(console: Console) -> None:
    for name in ("=1+1", "letters"):
        eq.Experiment.create(console.experiment.store, name, arms=["a", "b"], reward_weight=0.6, seed=7)
    with Visitor(console.url, console.key) as visitor:
        assert "letters</a>" in visitor.page("?q=LETT")
        assert "messages</a>" not in visitor.page("?q=LETT")
        assert "No experiment is found" in visitor.page("?state=finished")
        lines = visitor.get("list.csv").text.splitlines()
    assert len(lines) == 4
    assert any(line.startswith("'=1+1,enrolling,") for line in lines)  # no formula for a spreadsheet


def test_the_log_goes_back_by_pages_and_as_json_lines(console: Console) -> None:
    with Visitor(console.url, console.key) as visitor:
        first = visitor.page("e/messages/log?kind=all")
        numbers = [int(one) for one in re.findall(r'<li value="(\d+)"', first)]
        assert numbers == sorted(numbers, reverse=True)
        assert len(numbers) == 50
        older = re.search(r'href="\.\./\.\./([^"]*)">older', first)
        assert older is not None
        again = [int(one) for one in re.findall(r'<li value="(\d+)"', visitor.page(older[1].replace("&amp;", "&")))]
        assert max(again) == min(numbers) - 1
        lines = visitor.get("e/messages/log.jsonl?kind=all").text.splitlines()
        assert len(lines) == 50
        assert visitor.page("e/messages/log").count("<li value=") == 1


def test_forms_have_a_limit(console: Console) -> None:
    with Visitor(console.url, console.key) as visitor:
        headers = {"sec-fetch-site": "same-origin"}
        assert visitor.web.post("theme", data={"theme": "x" * 300_000}, headers=headers).status_code == 413
        assert visitor.web.post("theme", json={"theme": "dark"}, headers=headers).status_code == 415
        headers["content-type"] = "application/x-www-form-urlencoded"
        assert visitor.web.post("theme", content=b"theme=%ff", headers=headers).status_code == 422


def test_a_session_ends_after_its_hours() -> None:
    from datetime import UTC, datetime, timedelta

    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    store = eq.open_store("memory:", clock=lambda: now[0])
    key = create_key(store, role="reader")[1]
    with serving_here(store, Settings(console_hours=2)) as here, Visitor(here.url, key) as visitor:
        visitor.page()
        now[0] += timedelta(hours=1, minutes=59)
        visitor.page()
        now[0] += timedelta(minutes=2)
        assert visitor.get().headers["location"] == "./sign-in"


def test_an_address_to_go_to_after_signing_in_stays_inside(console: Console) -> None:
    with Visitor(console.url) as visitor:
        for to, goes in (
            ("e/messages/log?kind=all", "./e/messages/log?kind=all"),
            ("//evil.example", "./"),
            ("https://evil.example", "./"),
            ("/\\evil.example", "./"),
            ("javascript:alert(1)", "./"),
            ("e/x\r\nset-cookie: a=b", "./"),
        ):
            assert visitor.sign_in(console.key, to).headers["location"] == goes, to


def test_a_console_that_is_open_shows_it_and_takes_forms_of_its_own_pages_only() -> None:
    store = eq.open_store("memory:")
    with serving_here(store, Settings(open=True)) as here, Visitor(here.url) as visitor:
        assert "Open to everybody on this machine" in visitor.page()
        fields = {"theme": "dark", "back": ""}
        assert visitor.send("theme", fields, drawn_on="").status_code == 303
        assert visitor.web.post("theme", data=fields, headers={"sec-fetch-site": "same-origin"}).status_code == 403
        assert visitor.send("theme", fields, drawn_on="", headers={"sec-fetch-site": "same-site"}).status_code == 403
        assert visitor.get("", headers={"host": "evil.example"}).status_code == 421


def test_the_console_alone_has_no_api(console: Console) -> None:
    store = console.experiment.store
    with serving_here(store, Settings(api=False)) as here:
        headers = {"authorization": f"Bearer {console.key}"}
        assert httpx.get(f"{here.url}/experiments", headers=headers).status_code == 404
        assert httpx.get(f"{here.url}/").headers["location"] == "console/"
        with Visitor(here.url, console.key) as visitor:
            assert "../docs" not in visitor.page("e/messages")


def test_without_the_console_there_are_no_pages(console: Console) -> None:
    with serving_here(console.experiment.store, Settings(console=False)) as here:
        assert httpx.get(f"{here.url}/console/").status_code in (401, 404)


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def below_a_prefix(port: int, folder: Path) -> Iterator[str]:
    """Run nginx, which shows a service below a path of its own."""
    program = need("nginx")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listening = free.getsockname()[1]
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    settings = folder / "nginx.conf"
    settings.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} "
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{listening}; "
        f"location /lab/ {{ proxy_pass http://127.0.0.1:{port}/; proxy_set_header Host $http_host; }} }} }}"
    )
    process = subprocess.Popen([program, "-c", settings, "-e", folder / "error.log"], stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 60
        while not answers(listening):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listening}/lab/"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def test_it_works_behind_nginx_below_a_prefix(console: Console, browser: Browser, tmp_path: Path) -> None:
    port = int(console.url.rpartition(":")[2])
    with below_a_prefix(port, tmp_path) as lab, browser.page() as page:
        sign_in(page, f"{lab}console", console.key)
        assert page.address == f"{lab}console/"
        page.tab_to("messages")
        with page.loading():
            page.press("Enter")
        assert page.address == f"{lab}console/e/messages"
        page.wait_for_charts()
        assert page.evaluate("getComputedStyle(document.querySelector('.top')).borderBottomStyle") == "solid"
        page.open(f"{lab}console/help")
        with page.loading():
            page.evaluate("[...document.querySelectorAll('footer button')].find(one => one.value === 'light').click()")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        with page.loading():
            page.evaluate("[...document.querySelectorAll('footer button')].at(-1).click()")
        assert page.address == f"{lab}console/sign-in"
        assert page.complaints == []
        assert {one for one in page.requests if not one.startswith(lab)} == set()


# Weights and rules of what is sent


def own_files(ending: str) -> dict[str, str]:
    folder = files("equipoise.console").joinpath("static")
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(ending)}


def test_scripts_are_few_and_put_in_text_only() -> None:
    scripts = own_files(".js")
    assert sum(text.count("\n") for text in scripts.values()) <= 500
    assert sum(len(text.encode()) for text in scripts.values()) <= 30_000
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\bFunction\(|style\s*=|\bon\w+\s*=|https?:"
    )
    for name, text in scripts.items():
        code = text.replace("http://www.w3.org/2000/svg", "")
        assert re.findall(forbidden, code) == [], name


def test_templates_hold_no_style_or_script() -> None:
    folder = files("equipoise.console").joinpath("templates")
    for one in folder.iterdir():
        text = one.read_text(encoding="utf-8")
        assert re.findall(r"\sstyle=|<style|\son\w+=|javascript:|<script(?![^>]*\ssrc=)|\|\s*safe", text) == [], (
            one.name
        )


def test_the_style_sheet_is_light(console: Console) -> None:
    with Visitor(console.url, console.key) as visitor:
        path = visitor.page().split('<link rel="stylesheet" href="./')[1].split('"')[0]
        answer = visitor.get(path)
    assert answer.headers["content-encoding"] == "gzip"
    sent = int(answer.headers["content-length"])
    assert sent <= 15_000, sent


def test_viewers_share_a_recent_page_while_people_come_by_the_hundred(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "_REFRESH_SECONDS", 3_600.0)
    refreshing = {"x-equipoise-live": "1"}
    with Visitor(console.url, console.key) as ada, Visitor(console.url, console.key) as ben:

        def events(visitor: Visitor, headers: dict[str, str]) -> int:
            page = visitor.get("e/messages", headers=headers).text
            return int(re.search(r'data-event="(\d+)"', page)[1])  # type: ignore[index]

        first = events(ada, {})
        console.experiment.ask("new-1")
        assert events(ada, refreshing) == events(ben, refreshing) == first
        # Who opens a page, or comes back to it from a form, gets the present; then refreshes have it too.
        assert events(ben, {}) == first + 1 == events(ada, refreshing)
        console.experiment.pause()
        assert events(ada, refreshing) == first + 2
        console.experiment.resume()
        monkeypatch.setattr(rendering, "_REFRESH_SECONDS", 0.0)
        console.experiment.ask("new-2")
        assert events(ben, refreshing) == first + 4
