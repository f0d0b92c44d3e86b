"""The page that explains the service: it opens without a network and shows every operation."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from browser import open_page
from service_api import Api
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings


@pytest.fixture(scope="module")
def here():
    with serving_here(eq.open_store("memory:"), Settings()) as here:
        yield here


@pytest.fixture(scope="module")
def api(here):
    with closing(Api(here.url)) as api:
        yield api


def test_the_bare_address_leads_a_browser_to_the_page_and_tells_programs_where_things_are(api):
    browser = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    sent_on = api("GET", "/", headers=browser)
    assert (sent_on.status_code, sent_on.headers["location"]) == (307, "/docs")
    for headers in (None, {"accept": "application/json"}, {"accept": "*/*"}):
        found = api.data("GET", "/", headers=headers)
        assert (found["name"], found["version"]) == ("equipoise", eq.__version__)
        assert set(found["links"].values()) == {"/docs", "/openapi.json", "/healthz"}
        assert all(api("GET", place).status_code == 200 for place in found["links"].values())
    assert api("POST", "/").status_code == 405


def test_the_page_and_all_it_needs_come_from_the_service(api):
    page = api("GET", "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    needed = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {"/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"} <= set(needed)
    for address in needed:
        if not address.startswith("data:"):
            assert address.startswith("/docs/")
            file = api("GET", address)
            assert file.status_code == 200 and len(file.content) > 10_000
            assert file.headers["content-type"].split(";")[0] in ("text/css", "text/javascript")
            assert file.headers["cache-control"] == "max-age=86400"
    assert api("GET", "/openapi.json").json()["info"]["title"] == "Equipoise"


def test_nothing_else_is_served_beside_the_page(api):
    for file in (
        "redoc.standalone.js",
        "nothing.js",
        "..%2f..%2f__init__.py",
        "%2e%2e%2f__init__.py",
        "%2fetc%2fpasswd",
    ):
        api.refused(404, None, "GET", f"/docs/{file}")


def test_a_browser_without_a_network_shows_every_operation(here, api, tmp_path):
    opened = open_page(here.url + "/docs", tmp_path)
    assert opened.complaints == []
    assert opened.requests and all(address.startswith(here.url + "/") for address in opened.requests)
    for path, methods in api.data("GET", "/openapi.json")["paths"].items():
        for method, operation in methods.items():
            shown = rf'opblock-{method}"[^§]*?data-path="{re.escape(path)}"'
            assert re.search(shown, opened.dom), (method, path)
            assert operation["summary"] in opened.dom
