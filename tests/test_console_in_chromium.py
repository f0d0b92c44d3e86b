"""The console in a real browser: what it complains of, what it asks for, and who can use it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromium_driver import Browser, Page

WIDTHS = (320, 768, 1280)
PATHS = ("", "help", "e/messages", "e/messages/log", "e/messages/health", "e/messages/health/mute?check=enrolment")


@pytest.fixture(scope="module")
def signed_in(browser: Browser) -> Iterator[tuple[Page, str]]:
    """A page of an admin, and the address of the console."""
    store = eq.open_store("memory:")
    experiment = eq.Experiment.create(
        store, "messages", arms=["plain", "prize", "personal"], reward_weight=0.6, seed=7, reward_range=(0, 1)
    )
    chance = random.Random(3)
    rates = {"plain": 0.3, "prize": 0.5, "personal": 0.42}
    assigned = experiment.ask_many([f"person-{k}" for k in range(400)])
    experiment.tell_many([(one.unit, float(chance.random() < rates[one.arm])) for one in assigned])
    key = create_key(store, role="admin", name="Ada")[1]
    with serving_here(store, Settings()) as here, browser.page() as page:
        page.open(f"{here.url}/console/")
        page.type(key)
        with page.loading():
            page.press("Enter")
        yield page, f"{here.url}/console/"


@pytest.mark.parametrize("path", PATHS)
def test_pages_are_accessible_fit_and_ask_nobody_else(signed_in: tuple[Page, str], path: str) -> None:
    page, console = signed_in
    page.complaints.clear()
    page.requests.clear()
    for is_dark in (False, True):
        page.theme(dark=is_dark)
        for width in WIDTHS:
            page.size(width)
            page.open(console + path)
            page.wait_for_charts()
            where = f"{path or 'list'}, {width} px, {'dark' if is_dark else 'light'}"
            assert page.overflow <= 0, where
            assert page.violations() == [], where
    assert page.complaints == []
    assert {one for one in page.requests if not one.startswith(console)} == set()


def test_the_sign_in_page_is_accessible(browser: Browser, signed_in: tuple[Page, str]) -> None:
    with browser.page(width=320) as page:
        page.open(signed_in[1])
        assert page.focused == "Key"
        assert page.violations() == []
        assert page.complaints == []
