"""The page for operators: the counts are those of Prometheus, and a key is revoked after its name was typed."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from html import unescape
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest
from console_visitor import Visitor
from patience import wait_until
from prometheus_client.parser import text_string_to_metric_families
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import Key, create_key, list_keys
from equipoise.service.prometheus import LATENCIES, Histogram, Metrics
from equipoise.service.recent_traffic import RecentTraffic, quantile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "<b>Ada</b> & 'Ben'"


class Console(NamedTuple):
    """A service on a file, and an admin's key."""

    url: str
    store: eq.Store
    key: str


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    store = eq.open_store(f"sqlite:///{tmp_path}/one.db")
    experiment = eq.Experiment.create(store, "messages", arms=["plain", "prize"], reward_weight=0.6, seed=7)
    experiment.ask_many([f"person-{k}" for k in range(20)])
    key = create_key(store, role="admin", name="Cleo")[1]
    with serving_here(store, Settings()) as here:
        yield Console(here.url, store, key)


def text_of(page: str) -> str:
    main = page.split('<main id="main"')[1].split("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def test_what_the_page_counts_is_what_prometheus_counts(console: Console) -> None:
    headers = {"authorization": f"Bearer {console.key}"}
    for unit in ("a", "b", ""):
        httpx.post(f"{console.url}/experiments/messages/assignments", json={"unit": unit}, headers=headers)
    with Visitor(console.url, console.key) as visitor:
        page = visitor.page("service")
        view = visitor.get("service?format=json").json()
    scraped = httpx.get(f"{console.url}/metrics", headers=headers).text
    counts: dict[str, float] = {}
    sizes: dict[str, float] = {}
    for family in text_string_to_metric_families(scraped):
        for sample in family.samples:
            if sample.name == "equipoise_requests_total" and "assignments" in sample.labels["route"]:
                counts[sample.labels["status"]] = sample.value
            elif sample.name == "equipoise_store_bytes":
                sizes[sample.labels["part"]] = sample.value
    [route] = [one for one in view["traffic"]["routes"] if "assignments" in one["route"]]
    assert counts == {"201": 2, "422": 1}
    assert (route["requests"], route["refused"], route["failed"]) == (3, 1, 0)
    assert route["median_seconds"] <= route["p99_seconds"] <= LATENCIES[-1]
    assert view["store"]["n_bytes"] <= sizes["data"]
    assert view["store"]["log_bytes"] <= sizes["log"]
    said = text_of(page)
    assert f"{route['method']} {route['route']} 3 " in said
    assert "messages : 23 of 23 events" in said  # nobody has looked at charts, so no sums are kept
    assert view["traffic"]["in_flight"] == 1  # this one
    [refused] = view["traffic"]["refused"]
    assert (refused["experiment"], refused["calls"]) == ("messages", 1)
    assert f"messages : {refused['error']} 1 time" in said
    labels = f'experiment="messages",error="{refused["error"]}"'
    assert f"equipoise_refused_total{{{labels}}} 1" in scraped


def test_sums_that_were_read_are_not_behind(console: Console) -> None:
    eq.Experiment.open(console.store, "messages").timeline()
    behind = {name: n_events - event for name, n_events, event in console.store.rollup_marks()}
    with Visitor(console.url, console.key) as visitor:
        said = text_of(visitor.page("service"))
    assert ("all reach the log's end" in said) == (behind == {"messages": 0})


def test_a_key_is_revoked_after_its_name_was_typed(console: Console) -> None:
    key, text = create_key(console.store, role="reader", name=NAME)
    with Visitor(console.url, console.key) as visitor, Visitor(console.url, text) as reader:
        assert NAME in text_of(visitor.page("service"))
        assert f"<bdi>{NAME}" not in visitor.page("service")
        path = f"service/keys/{key.id}"
        asked = text_of(visitor.page(path))
        assert f"the reader key {key.id}, for every experiment" in asked
        assert visitor.send(path, {"typed": "Ada"}).status_code == 422
        assert [one.state(console.store.now()) for one in list_keys(console.store)] == ["valid", "valid"]
        assert visitor.send(path, {"typed": NAME}).headers["location"] == "../../service?done=revoked"
        assert "The key is revoked." in text_of(visitor.page("service?done=revoked"))
        assert visitor.get(path).status_code == 422  # it is revoked already
        assert visitor.get("service/keys/none").status_code == 404
        wait_until(lambda: reader.get("").status_code == 303)
        assert "sign-in" in reader.get("").headers["location"]


def test_own_keys_and_keys_that_end_soon_are_marked(console: Console) -> None:
    now = console.store.now()
    create_key(console.store, role="reader", name="soon", expires_at=now + timedelta(days=2))
    create_key(console.store, role="reader", name="later", expires_at=now + timedelta(days=90))
    with Visitor(console.url, console.key) as visitor:
        page = visitor.page("service")
        own = next(one for one in list_keys(console.store) if one.name == "Cleo")
        assert "you will be signed out" in text_of(visitor.page(f"service/keys/{own.id}"))
    rows = {unescape(row.split("<bdi>")[1].split("</bdi>")[0]): row for row in page.split("<tr>") if "<bdi>" in row}
    assert 'class="is-decision"' in rows["soon"]
    assert 'class="is-decision"' not in rows["later"]
    assert ["yours" in rows[name] for name in ("Cleo", "soon")] == [True, False]


@pytest.mark.parametrize(("role", "experiment", "status"), [("reader", None, 403), ("admin", "messages", 404)])
def test_others_do_not_operate(console: Console, role: str, experiment: str | None, status: int) -> None:
    key, text = create_key(console.store, role=role, experiment=experiment)
    with Visitor(console.url, text) as visitor:
        for path in ("service", f"service/keys/{key.id}"):
            assert visitor.get(path).status_code == status
        assert "Service</a>" not in visitor.page("help")


def test_traffic_is_that_of_the_last_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with eq.open_store("memory:") as store:
        metrics = Metrics(store)
        for _ in range(5):
            metrics.observe_request("GET", "/old", 200, 0.002)
        traffic = RecentTraffic(metrics)
        for _ in range(60):
            clock[0] += 10
            metrics.observe_request("GET", "/new", 200, 0.002)
            metrics.observe_request("GET", "/new", 503, 2.0)
            traffic.sample()
        found = traffic.read()
    assert found.seconds == 300
    routes = {one.route: one for one in found.routes}
    assert (routes["/old"].requests, routes["/old"].median_seconds) == (0, None)
    assert (routes["/new"].requests, routes["/new"].failed, routes["/new"].refused) == (60, 30, 0)
    assert routes["/new"].per_second == pytest.approx(0.2)
    assert found.per_second == pytest.approx(0.2)


def test_quantiles_are_those_of_prometheus() -> None:
    latency = Histogram((0.1, 0.5, 1.0))
    for seconds in (0.05, 0.2, 0.3, 0.4, 0.9, 2.0):
        latency.observe(seconds)
    # histogram_quantile(0.5, ...): rank 3 of 6, in the bucket from 0.1 to 0.5 as the second of three
    assert quantile(latency, 0.5) == pytest.approx(0.1 + 0.4 * 2 / 3)
    assert quantile(latency, 0.99) == 1.0


def test_a_read_is_old_while_it_lasts() -> None:
    with eq.open_store("memory:") as store:
        assert store.oldest_read_seconds == 0
        assert store.read(lambda _: store.oldest_read_seconds) > 0
        assert store.oldest_read_seconds == 0


def test_lines_of_keys_hold_no_secret() -> None:
    from equipoise.console.operations import KeyLine

    assert not {name for name in KeyLine.__dataclass_fields__ if name in ("hash", "secret", "text")}
    assert "hash" not in Key.__dataclass_fields__
