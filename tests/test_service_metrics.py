"""Numbers for Prometheus: they parse, and they are those of what was sent (by several processes: see serving)."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from patience import wait_until
from prometheus_client.parser import text_string_to_metric_families
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service import prometheus as metrics_module
from equipoise.service.api_keys import create_key
from equipoise.service.prometheus import Metrics
from equipoise.store.postgresql import PostgreSQLTransaction
from equipoise.store.sqlite import SQLiteTransaction

ASSIGN, REWARD = "/experiments/{name}/assignments", "/experiments/{name}/assignments/{unit}/reward"


@pytest.fixture(autouse=True)
def _time_for_all_targets(monkeypatch):
    """The first may have to wait for the compiler; a server is warmed up before."""
    monkeypatch.setattr("equipoise.experiment.overview._TARGET_SECONDS", 600)


def samples(text):
    """Every number by its name and labels; each may be there once."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("counter", "gauge", "histogram")
        for sample in family.samples:
            place = sample.name, frozenset(sample.labels.items())
            assert place not in found
            found[place] = sample.value
    return found


def value(found, name, **labels):
    return found[name, frozenset(labels.items())]


def requests(found):
    """How many requests by method, route and status."""
    return Counter(
        {
            (labels["method"], labels["route"], int(labels["status"])): int(number)
            for (name, frozen), number in found.items()
            for labels in [dict(frozen)]
            if name == "equipoise_requests_total"
        }
    )


def test_the_numbers_are_those_of_what_was_sent():
    store = eq.open_store("memory:")
    key = create_key(store, role="admin")[1]
    name, arms = 'a "quoted"\\ name/☃', ['a"b', "c\\d"]
    with serving_here(store, Settings()) as here, closing(Api(here.url, key)) as api:
        body = {
            "name": name,
            "arms": arms,
            "reward_weight": 0.5,
            "seed": 1,
            "missing": {"name": "DropUnit", "window_seconds": 600},
        }
        api.data("POST", "/experiments", body)
        for i in range(7):
            api.data("POST", path_of(name, "assignments"), {"unit": f"u{i}"})
        for i in range(3):
            api.data("PUT", path_of(name, "assignments", f"u{i}", "reward"), {"reward": 1})
        api.refused(409, "RewardConflict", "PUT", path_of(name, "assignments", "u0", "reward"), {"reward": 2})
        api.refused(404, "UnknownUnit", "GET", path_of(name, "assignments", "nobody"))
        api.refused(404, None, "GET", "/wp-login.php")
        api.refused(422, "InvalidInput", "POST", path_of(name, "assignments"), {})
        api.data("POST", path_of(name, "assignments", "many"), {"units": ["u7", "u8", "u9"]})
        with closing(Api(here.url)) as nobody:
            nobody.refused(401, "NotAuthenticated", "GET", "/metrics")
        answer = api("GET", "/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = samples(answer.text)
        assert requests(found) == {
            ("POST", "/experiments", 201): 1,
            ("POST", ASSIGN, 201): 7,
            ("POST", ASSIGN, 422): 1,
            ("PUT", REWARD, 200): 3,
            ("PUT", REWARD, 409): 1,
            ("GET", "/experiments/{name}/assignments/{unit}", 404): 1,
            ("POST", ASSIGN + "/many", 200): 1,
            ("GET", "unknown", 404): 1,
            ("GET", "unknown", 401): 1,
        }
        assert value(found, "equipoise_request_seconds_count", method="POST", route=ASSIGN) == 8
        assert 0 < value(found, "equipoise_request_seconds_sum", method="POST", route=ASSIGN) < 60
        assert value(found, "equipoise_request_seconds_bucket", method="POST", route=ASSIGN, le="+Inf") == 8
        assert value(found, "equipoise_requests_in_flight") == 1  # this one
        assert value(found, "equipoise_batch_requests_sum") == 14  # 7 assignments, 4 rewards, 3 in one go
        assert value(found, "equipoise_batch_requests_count") == 12
        assert value(found, "equipoise_batch_seconds_count") == 12
        units = {
            state: value(found, "equipoise_units", experiment=name, state=state) for state in ("assigned", "rewarded")
        }
        assert units == {"assigned": 10, "rewarded": 3}
        status = api.data("GET", path_of(name, "status"))
        shares = [value(found, "equipoise_arm_share", experiment=name, arm=arm, kind="actual") for arm in arms]
        assert shares == [arm["actual_share"] for arm in status["arms"]]
        assert sum(shares) == pytest.approx(1)
        assert not [place for place in found if "u0" in str(place)]


def test_buckets_only_grow_and_end_with_the_count():
    store = eq.open_store("memory:")
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        for _ in range(20):
            api.data("GET", "/readyz")
        found = samples(api("GET", "/metrics").text)
        buckets = sorted(
            (float(dict(labels)["le"]), number)
            for (name, labels), number in found.items()
            if name == "equipoise_request_seconds_bucket" and ("route", "/readyz") in labels
        )
        numbers = [number for _, number in buckets]
        assert numbers == sorted(numbers)
        assert numbers[-1] == 20 == value(found, "equipoise_request_seconds_count", method="GET", route="/readyz")


def test_scrapers_that_come_at_the_same_time_cause_one_look_into_the_store(monkeypatch):
    """Also when it takes longer than they wait."""
    looks, go_on, lines = [], threading.Event(), metrics_module._gauge_lines

    def held(overviews):
        looks.append(1)
        go_on.wait(60)
        yield from lines(overviews)

    monkeypatch.setattr(metrics_module, "_gauge_lines", held)
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with (
        serving_here(store, Settings(open=True, wait_seconds=0.5)) as here,
        closing(Api(here.url)) as api,
        ThreadPoolExecutor(12) as scrapers,
    ):
        try:
            late = [scrapers.submit(api, "GET", "/metrics") for _ in range(6)]
            assert {one.result().status_code for one in late} == {503}
            here.service.settings = Settings(open=True, wait_seconds=60)
            waiting = [scrapers.submit(api, "GET", "/metrics") for _ in range(6)]
            wait_until(lambda: here.service.metrics.in_flight >= 6)
        finally:
            go_on.set()
        answers = [one.result() for one in waiting]
    assert len(looks) == 1
    assert {answer.status_code for answer in answers} == {200}
    assert all('equipoise_units{experiment="x",state="assigned"} 0' in answer.text for answer in answers)


def test_requests_are_counted_while_the_numbers_are_read():
    """On another thread; here one of a new kind arrives whenever one is read, so that it always comes to that."""
    metrics = Metrics(eq.open_store("memory:"))
    arrived = []

    class Route(tuple):
        def __iter__(self):
            arrived.append(f"/new/{len(arrived)}")
            metrics.observe_request("GET", arrived[-1], 200, 0.1)
            metrics.observe_batch("x", 1, 0.1)
            return super().__iter__()

    for i in range(5):
        metrics.requests[Route(("GET", f"/old/{i}", 200))] = 1
        metrics.latency[Route(("GET", f"/old/{i}"))].observe(0.1)
    read = samples(metrics.text())
    assert arrived
    assert value(read, "equipoise_requests_total", method="GET", route="/old/4", status="200") == 1
    counts = metrics._counts()
    metrics.observe_batch("x", 1, 0.1)
    assert sum(counts["batch_size"][0]) == sum(metrics.batch_size.counts) - 1


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/x.db" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


def test_experiments_are_read_with_as_many_statements_however_many_there_are(url, monkeypatch):
    ran = []
    with eq.open_store(url) as store:

        def scrape():
            ran.clear()
            return samples(Metrics(store).text())

        kind = {"sqlite": SQLiteTransaction, "postgresql": PostgreSQLTransaction}[url.partition(":")[0]]
        inner = kind.execute
        monkeypatch.setattr(kind, "execute", lambda self, *given: ran.append(given[0]) or inner(self, *given))
        for number in range(20):
            made = eq.Experiment.create(
                store,
                f"x{number}",
                arms=["a", "b", "c"],
                policy=eq.ForcingBalance(reward_weight=0.5),
                missing=eq.WaitForReward(window_seconds=1e-3) if number % 2 else None,
                seed=1,
            )
            made.ask_many([f"u{i}" for i in range(number)])
            made.tell_many([(f"u{i}", i % 3) for i in range(0, number, 2)])
            if number in (0, 19):
                found = scrape()
                assert (
                    len(ran) == 5
                )  # of experiments, their arms, open alerts, the size of the store, and how far sums reach
        size = store.size()
        assert value(found, "equipoise_store_bytes", part="data") <= size.data
        assert (("equipoise_store_bytes", frozenset({("part", "log")})) in found) == (size.log is not None)
        assert value(found, "equipoise_oldest_read_seconds") == 0
        assert (
            value(found, "equipoise_rollup_lag_events", experiment="x19")
            == eq.Experiment.open(store, "x19").status().n_events
        )
        for listed in eq.Experiment.list(store):
            status = eq.Experiment.open(store, listed.name).status()
            for state in ("assigned", "rewarded", "pending", "overdue", "dropped"):
                shown = value(found, "equipoise_units", experiment=listed.name, state=state)
                assert shown == getattr(status, f"n_{state}"), (listed.name, state)
            for arm in status.arms:
                for shares, share in (("actual", arm.actual_share), ("target", arm.target_share)):
                    labels = {"experiment": listed.name, "arm": arm.arm, "kind": shares}
                    assert found.get(("equipoise_arm_share", frozenset(labels.items()))) == share


def test_a_damaged_experiment_hides_no_other():
    with eq.open_store("memory:") as store:
        for name in ("damaged", "fine"):
            eq.Experiment.create(store, name, arms=["a", "b"], policy=eq.Uniform(), seed=1).ask("ada")
        store.change(None, lambda one: one.execute("UPDATE experiments SET configuration = '{' WHERE name = 'damaged'"))
        found = samples(Metrics(store).text())
    assert value(found, "equipoise_units", experiment="fine", state="assigned") == 1
    assert value(found, "equipoise_units", experiment="damaged", state="assigned") == 1
