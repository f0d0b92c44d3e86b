"""Signing in to the console, and what protects it: sessions, roles, forms of other sites, headers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
from console_visitor import SAME_ORIGIN, Visitor, hidden_fields
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key, revoke_key

if TYPE_CHECKING:
    from collections.abc import Iterator


class Console(NamedTuple):
    """A service with an experiment and a key of each role."""

    url: str
    store: eq.Store
    keys: dict[str, str]


@pytest.fixture(scope="module")
def console() -> Iterator[Console]:
    store = eq.open_store("memory:")
    for name in ("messages", "letters"):
        eq.Experiment.create(store, name, arms=["plain", "prize"], reward_weight=0.6, seed=7)
    keys = {role: create_key(store, role=role, name=f"Ada {role}")[1] for role in ("reader", "assigner", "admin")}
    keys["one"] = create_key(store, role="reader", experiment="messages")[1]
    with serving_here(store, Settings()) as here:
        yield Console(here.url, store, keys)


def test_a_key_opens_the_list_and_signing_out_closes_it(console: Console) -> None:
    with Visitor(console.url) as visitor:
        assert visitor.get().headers["location"] == "./sign-in"
        answer = visitor.sign_in(console.keys["reader"])
        assert answer.status_code == 303
        cookie = answer.headers["set-cookie"]
        assert cookie.endswith("; HttpOnly; SameSite=Lax")
        assert "path=" not in cookie.lower()
        assert "messages" in visitor.page()
        assert "Ada reader (reader)" in visitor.page("e/messages")
        assert visitor.send("sign-out", {}, drawn_on="").headers["location"] == "./sign-in"
        visitor.web.cookies.clear()
        visitor.web.headers["cookie"] = cookie.partition(";")[0]
        assert visitor.get().headers["location"] == "./sign-in"


def test_a_wrong_key_is_refused_on_the_page(console: Console) -> None:
    with Visitor(console.url) as visitor:
        answer = visitor.sign_in("eq_" + 12 * "0" + "_" + 43 * "A")
    assert answer.status_code == 401
    assert "no key of this service" in answer.text
    assert "set-cookie" not in answer.headers


def test_cookies_do_not_count_for_the_api_nor_keys_in_headers_for_the_console(console: Console) -> None:
    with Visitor(console.url, console.keys["admin"]) as visitor:
        cookies = dict(visitor.web.cookies.items())
    assert httpx.get(f"{console.url}/experiments", cookies=cookies).status_code == 401
    headers = {"authorization": f"Bearer {console.keys['admin']}"}
    assert httpx.get(f"{console.url}/console/", headers=headers).status_code == 303


def test_a_form_needs_the_same_origin_and_the_token(console: Console) -> None:
    with Visitor(console.url, console.keys["admin"]) as visitor:
        fields = hidden_fields(visitor.page()) | {"theme": "dark", "back": ""}
        host = console.url.removeprefix("http://")
        for headers, status in (
            ({"sec-fetch-site": "cross-site"}, 403),
            ({"sec-fetch-site": "same-site"}, 403),
            ({"sec-fetch-site": "none"}, 403),
            ({"origin": "http://evil.example"}, 403),
            ({"origin": "null"}, 403),
            ({}, 403),
            ({"origin": f"http://{host}"}, 303),
            (SAME_ORIGIN, 303),
        ):
            assert visitor.web.post("theme", data=fields, headers=headers).status_code == status, headers
        for token in ("", "0" * 64, fields["token"][:-1] + "\u00e9"):
            sent = fields | {"token": token}
            assert visitor.web.post("theme", data=sent, headers=SAME_ORIGIN).status_code == 403, token


def test_a_key_for_one_experiment_sees_no_other(console: Console) -> None:
    with Visitor(console.url, console.keys["one"]) as visitor:
        assert visitor.get().headers["location"] == "./e/messages"
        assert "letters" not in visitor.page("e/messages")
        other, none = visitor.get("e/letters"), visitor.get("e/nothing")
        assert other.status_code == none.status_code == 404
        assert (
            other.text.replace("letters", "nothing").split("<footer")[0].split("Request")[0]
            == (none.text.split("<footer")[0].split("Request")[0])
        )


def test_a_session_ends_with_its_key(console: Console) -> None:
    key, text = create_key(console.store, role="reader")
    with Visitor(console.url, text) as visitor:
        visitor.page()
        revoke_key(console.store, key.id)
        end = time.monotonic() + 60
        while visitor.get().status_code == 200 and time.monotonic() < end:
            time.sleep(0.05)
        assert visitor.get().headers["location"] == "./sign-in"


def test_every_answer_has_the_policy(console: Console) -> None:
    with Visitor(console.url, console.keys["reader"]) as visitor:
        static = visitor.page().split('<link rel="stylesheet" href="./')[1].split('"')[0]
        for path in ("", "e/messages", "e/messages/log", "help", "nothing", "sign-in", "live?after=0", static):
            headers = visitor.get(path).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy, path
            assert headers["referrer-policy"] == "no-referrer", path
            kept = "public, max-age=31536000, immutable" if path == static else "no-store"
            assert headers["cache-control"] == kept, path
