"""The page that explains the service: it opens without a network and shows every operation."""

from __future__ import annotations

import re
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urljoin

import httpx
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


@pytest.fixture(scope="module", params=["a host of its own", "a prefix"])
def address(request, here):
    """The service as a browser sees it: at an address of its own, or below others behind a proxy."""
    if request.param == "a host of its own":
        yield here.url
        return

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self):
            if not self.path.startswith("/tools/equipoise/"):
                self.send_error(404)
                return
            place = here.url + self.path.removeprefix("/tools/equipoise")
            answer = httpx.get(place, headers=dict(self.headers) | {"accept-encoding": "identity"})
            self.send_response(answer.status_code)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{proxy.server_port}/tools/equipoise"
        proxy.shutdown()


def test_the_bare_address_leads_a_browser_to_the_page_and_tells_programs_where_things_are(api):
    browser = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    sent_on = api("GET", "/", headers=browser)
    assert (sent_on.status_code, sent_on.headers["location"]) == (307, "docs")
    for headers in (None, {"accept": "application/json"}, {"accept": "*/*"}):
        found = api.data("GET", "/", headers=headers)
        assert (found["name"], found["version"]) == ("equipoise", eq.__version__)
        assert set(found["links"].values()) == {"docs", "openapi.json", "healthz"}
        assert all(api("GET", place).status_code == 200 for place in found["links"].values())
    assert api("POST", "/").status_code == 405


def test_the_page_and_all_it_needs_come_from_the_service(api):
    page = api("GET", "/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    needed = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert {"docs/swagger-ui.css", "docs/swagger-ui-bundle.js"} <= set(needed)
    for address in needed:
        if not address.startswith("data:"):
            file = api("GET", urljoin("/docs", address))
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


def test_links_lead_to_the_service_wherever_it_is(address):
    for headers in ({"accept": "text/html"}, {"accept": "*/*"}):
        found = httpx.get(address + "/", headers=headers, follow_redirects=True).raise_for_status()
    for place in found.json()["links"].values():
        assert httpx.get(urljoin(address + "/", place)).status_code == 200
    place = address + "/openapi.json"
    document = httpx.get(place).json()
    server = urljoin(place, document["servers"][0]["url"]).rstrip("/")
    assert server == address
    assert httpx.get(server + "/readyz").json() == {"status": "ok"}


def test_a_browser_without_a_network_shows_every_operation(address, api, tmp_path):
    opened = open_page(address + "/docs", tmp_path)
    assert opened.complaints == []
    assert opened.requests and all(place.startswith(address + "/") for place in opened.requests)
    for path, methods in api.data("GET", "/openapi.json")["paths"].items():
        for method, operation in methods.items():
            shown = rf'opblock-{method}"[^§]*?data-path="{re.escape(path)}"'
            assert re.search(shown, opened.dom), (method, path)
            assert operation["summary"] in opened.dom
