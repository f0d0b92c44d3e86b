"""Limits of a key: what it may use per hour, and that nobody else notices who has used it up."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key, list_keys
from equipoise.service.error_responses import Refused
from equipoise.service.key_limits import PUBLIC, Bucket, Budgets, Limits

ASK = path_of("x", "assignments")


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@given(
    per_hour=st.integers(1, 10_000), uses=st.lists(st.tuples(st.integers(1, 5_000), st.floats(0, 2_000)), max_size=40)
)
def test_a_bucket_never_gives_more_than_is_due_and_says_when_there_will_be_enough(per_hour, uses):
    bucket, now, taken = Bucket(per_hour, 0.0), 0.0, 0
    for n_tokens, pause in uses:
        now += pause
        wait = bucket.take(n_tokens, now)
        taken += n_tokens if not wait else 0
        assert taken <= per_hour * (1 + now / 3600) + 1e-6
        if wait and n_tokens <= per_hour:
            now += wait + 1e-6
            assert bucket.take(n_tokens, now) == 0.0
            taken += n_tokens


def test_budgets_are_of_one_key_and_one_kind_and_refill():
    clock = Clock()
    budgets, limits = Budgets(clock), Limits(requests=2)
    for _ in range(2):
        budgets.take("a", limits, "requests", 1)
    with pytest.raises(Refused, match="2 requests per hour") as refused:
        budgets.take("a", limits, "requests", 1)
    assert (refused.value.status, refused.value.headers) == (429, {"retry-after": "1800"})
    budgets.take("b", limits, "requests", 2)
    budgets.take("a", limits, "bytes", 10**9)
    clock.now = 1800.0
    budgets.take("a", limits, "requests", 1)
    budgets.give_back("a", limits, "requests", 1)
    budgets.take("a", limits, "requests", 1)
    budgets.take("a", Limits(requests=50), "requests", 50)  # as changed since


def test_what_is_no_limit_is_refused():
    for texts in (["requests"], ["requests=x"], ["rows=5"], ["units=0"], ["units=5", "units=6"], ["bytes=-1"]):
        with pytest.raises(eq.InvalidInput):
            Limits.parse(texts)
    assert Limits.from_json('{"units": 5, "of a newer version": 1}') == Limits(units=5)


def test_limits_are_listed_and_existing_keys_have_none():
    with eq.open_store("memory:") as store:
        create_key(store, role="admin")
        create_key(store, role="assigner", limits=Limits(requests=1000, units=5))
        plain, limited = list_keys(store)
    assert plain.limits is None and plain.to_dict()["limits"] is None
    assert limited.limits == Limits(requests=1000, units=5) and str(limited.limits) == "1,000 requests/h, 5 units/h"
    assert json.loads(json.dumps(limited.to_dict()))["limits"] == {"requests": 1000, "bytes": None, "units": 5}


def test_a_public_key_has_limits_unless_it_is_given_others():
    with eq.open_store("memory:") as store:
        plain, _ = create_key(store, role="assigner", experiment="x", public=True)
        own, _ = create_key(store, role="assigner", experiment="x", public=True, limits=Limits(units=5))
        assert plain.limits == PUBLIC == Limits(requests=20_000, bytes=20_000_000, units=2_000)
        assert own.limits == Limits(requests=20_000, bytes=20_000_000, units=5)
        for role, experiment in (("assigner", None), ("reader", "x"), ("admin", "x")):
            with pytest.raises(eq.InvalidInput, match="a public key must be an assigner's for one experiment"):
                create_key(store, role=role, experiment=experiment, public=True)
        assert len(list_keys(store)) == 2


@pytest.fixture
def here():
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with serving_here(store, Settings()) as here:
        yield here


def test_a_key_that_has_used_up_its_requests_is_refused_until_later_and_no_other(here):
    store = here.service.store
    limited, other = (create_key(store, role="assigner", limits=limits)[1] for limits in (Limits(requests=3), None))
    with closing(Api(here.url, limited)) as api, closing(Api(here.url, other)) as free:
        for _ in range(3):
            assert api("POST", ASK, {"unit": "ada"}).status_code in (200, 201)
        for method, path in (("POST", ASK), ("GET", path_of("x", "assignments", "ada"))):
            answer = api(method, path, {"unit": "ada"} if method == "POST" else None)
            assert answer.status_code == 429 and 1 <= int(answer.headers["retry-after"]) <= 1200
            assert "3 requests per hour" in answer.json()["error"]
        for _ in range(5):
            assert free("POST", ASK, {"unit": "ada"}).status_code == 200


def test_only_new_units_count_and_what_was_not_assigned_is_given_back(here):
    key = create_key(here.service.store, role="assigner", limits=Limits(units=3))[1]
    with closing(Api(here.url, key)) as api:
        for _ in range(5):
            assert api("POST", ASK, {"unit": "ada"}).status_code in (200, 201)
        assert api("POST", ASK, {"unit": "."}).status_code == 422
        assert api("POST", f"{ASK}/many", {"units": ["ada", "bob"]}).status_code == 200
        assert api("POST", f"{ASK}/many", {"units": ["eve", "kim"]}).status_code == 429
        assert api("POST", ASK, {"unit": "eve"}).status_code == 201
        assert api("POST", ASK, {"unit": "kim"}).status_code == 429
        assert api("POST", ASK, {"unit": "ada"}).status_code == 200  # who has an arm is never refused it
        assert api("POST", f"{ASK}/many", {"units": ["ada", "bob", "eve", "ada"]}).status_code == 200
        assert api("PUT", path_of("x", "assignments", "ada", "reward"), {"reward": 1}).status_code == 200


def test_more_than_a_bucket_holds_is_never_given():
    bucket = Bucket(5, 0.0)
    assert bucket.take(6, 0.0) == 3600 and bucket.take(6, 10_000.0) == 3600 and bucket.take(5, 10_000.0) == 0


def test_bytes_are_counted_with_a_length_and_without(here):
    key = create_key(here.service.store, role="assigner", limits=Limits(bytes=50_000))[1]
    with closing(Api(here.url, key)) as api:
        body = b'{"unit": "ada"' + b" " * 29_000 + b"}"
        assert api("POST", ASK, body).status_code == 201
        refused = api("POST", ASK, body)
        assert refused.status_code == 429 and "50,000 bytes per hour" in refused.json()["error"]
        assert api("POST", ASK, {"unit": "ada"}).status_code == 200
        json_type = {"content-type": "application/json"}
        assert api("POST", ASK, content=iter([body]), headers=json_type).status_code == 429
        assert here.service.metrics.in_flight == 0
