"""Answers as large as an experiment is: they keep nobody waiting, and are what the document says of them."""

from __future__ import annotations

import json
import threading
from contextlib import closing

import msgspec
import numpy as np
import pytest
from endurance import given_short_and_full
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.experiment import Event, History
from equipoise.service import Settings, dispatch, handlers, json_bodies
from equipoise.service.json_bodies import encode

ARMS = [f"arm {i}" for i in range(12)]


@pytest.fixture(scope="module")
def store():
    store = eq.open_store("memory:")
    made = eq.Experiment.create(store, "x", arms=ARMS, policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    made.ask_many([(f"u{i}", {"number": i}) for i in range(300)])
    made.tell_many([(f"u{i}", i / 7) for i in range(200)])
    return store


@pytest.fixture(scope="module")
def here(store):
    with serving_here(store, Settings(open=True)) as here:
        yield here


@pytest.fixture
def api(here):
    with closing(Api(here.url)) as api:
        yield api


# Nobody waits


def test_others_are_answered_while_a_page_of_the_log_is_put_together(here, api, monkeypatch):
    _others_are_answered_meanwhile(here, api, monkeypatch, Event, "to_dict", path_of("x", "events"))


def test_others_are_answered_while_a_status_is_put_together(here, api, monkeypatch):
    _others_are_answered_meanwhile(here, api, monkeypatch, eq.experiment.Status, "to_dict", path_of("x", "status"))


@pytest.mark.parametrize(
    "path", ["/experiments", path_of("x"), *(path_of("x", what) for what in ("status", "history", "events"))]
)
def test_others_are_answered_while_an_answer_is_encoded(here, api, monkeypatch, path):
    _others_are_answered_meanwhile(here, api, monkeypatch, json_bodies, "encode_value", path)


def _others_are_answered_meanwhile(here, api, monkeypatch, owner, name, path):
    """Hold what makes an answer until somebody else has theirs."""
    begun, go_on, inner = threading.Event(), threading.Event(), getattr(owner, name)

    def held(*arguments):
        begun.set()
        assert go_on.wait(20)
        return inner(*arguments)

    monkeypatch.setattr(owner, name, held)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(api("GET", path)))
    asking.start()
    try:
        assert begun.wait(20)
        with closing(Api(here.url)) as other:
            assert other("GET", "/healthz", timeout=10).status_code == 200
        assert not answers
    finally:
        go_on.set()
        asking.join()
    assert answers[0].status_code == 200


GROWING = [
    ("GET", "/experiments", None),
    ("GET", path_of("x"), None),
    ("GET", path_of("x", "status"), None),
    ("GET", path_of("x", "history"), None),
    ("GET", path_of("x", "events"), None),
    ("GET", path_of("x", "what-if") + "?reward_weight=0.9", None),
    ("PUT", path_of("x", "weight"), {"reward_weight": 0.5}),
    ("POST", path_of("x", "settle"), None),
    ("POST", path_of("x", "assignments", "many"), {"units": ["u0", "u1"]}),
    ("POST", path_of("x", "rewards", "many"), {"rewards": [{"unit": "u7", "reward": 1}]}),
]


def test_a_large_body_is_read_elsewhere(here, api, monkeypatch):
    read, inner = [], dispatch.decode_body

    def noting(*given):
        read.append(threading.current_thread().name)
        return inner(*given)

    monkeypatch.setattr(dispatch, "decode_body", noting)
    for n_units in (1, 9_000):
        units = [f"nobody knows {i}" for i in range(n_units)]
        rewards = [{"unit": unit, "reward": 1} for unit in units]
        api.refused(404, "UnknownUnit", "POST", path_of("x", "rewards", "many"), {"rewards": rewards})
    large = b'{"rewards": [' + b" " * 200_000
    assert "JSON" in api.refused(400, "InvalidInput", "POST", path_of("x", "rewards", "many"), large)
    assert [name.startswith("equipoise-decode") for name in read] == [False, True, True]


def test_who_sends_a_large_body_when_there_is_too_much_to_do_is_told_to_come_again(here, api, monkeypatch):
    monkeypatch.setattr(here.service._decoding, "_most", 0)
    large = {"rewards": [{"unit": f"nobody knows {i}", "reward": 1} for i in range(9_000)]}
    answer = api("POST", path_of("x", "rewards", "many"), large)
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), answer.text
    assert answer.json()["error"].startswith("too much to do")


# What they say


def listed(values):
    """Return an array or a tuple as JSON has it."""
    if isinstance(values, (tuple, list)):
        return [one.isoformat() if hasattr(one, "isoformat") else listed(one) for one in values]
    if isinstance(values, np.ndarray):
        return listed(values.tolist())
    return None if isinstance(values, float) and np.isnan(values) else values


@pytest.mark.parametrize(("method", "path", "body"), GROWING, ids=[f"{method} {path}" for method, path, _ in GROWING])
def test_answers_are_what_the_document_says(api, method, path, body):
    document = api.data("GET", "/openapi.json")
    place = path.partition("?")[0].replace("/experiments/x", "/experiments/{name}")
    schema = document["paths"][place][method.lower()]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = api(method, path, body)
    assert answer.headers["content-type"] == "application/json"
    Draft202012Validator(schema | {"components": document["components"]}).validate(answer.json())


@pytest.mark.parametrize("points", [1, 7, 100, 100_000 // 12])
def test_a_history_is_that_of_the_experiment(api, store, points):
    found = api.data("GET", path_of("x", "history"), params={"points": points})
    past = vars(eq.Experiment.open(store, "x").history(points))
    assert found == {name: listed(values) for name, values in past.items()}
    if points > 1:
        assert found["mean"][0].count(None) >= 11  # of which nothing is known after the first event


def test_the_log_is_that_of_the_experiment_in_pages_of_any_size(api, store):
    expected = [event.to_dict() for event in eq.Experiment.open(store, "x").events()]
    for limit in (100, 10_000):
        found, after = [], 0
        while page := api.data("GET", path_of("x", "events"), params={"after": after, "limit": limit}):
            found, after = found + page["events"], page["next"]
            if not page["events"]:
                break
        assert found == expected
        assert after == len(expected)


def test_a_page_of_events_with_much_to_tell_ends_early_and_the_next_goes_on(api, store):
    long = eq.Experiment.create(store, "long", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    long.ask_many((f"u{i}", {"note": "x" * 9_000}) for i in range(1_200))
    found, after, sizes = [], 0, []
    while page := api.data("GET", path_of("long", "events"), params={"after": after, "limit": 10_000})["events"]:
        found += page
        after = page[-1]["number"]
        sizes.append(len(page))
    assert sizes == [500, 500, 201]
    assert found == [event.to_dict() for event in long.events()]


def test_attributes_that_are_no_text_do_not_make_the_log_unreadable(api, store):
    """An experiment takes halves of surrogate pairs in free data; no UTF-8 can hold them, but JSON can."""
    attributes = {"half": "\ud83d", "large": 10**40}
    eq.Experiment.create(store, "odd", arms=["a", "b"], policy=eq.Uniform()).ask("ada", attributes)
    events = api.data("GET", path_of("odd", "events"))["events"]
    assert events[-1]["details"]["attributes"] == attributes


def test_a_history_has_only_so_many_points_times_arms(api, monkeypatch):
    def history(points):
        return "GET", f"{path_of('x', 'history')}?points={points}"

    monkeypatch.setattr(handlers, "MOST_POINTS", 600)
    assert len(api.data(*history(50))["number"]) <= 50
    told = api.refused(422, "InvalidInput", *history(51))
    assert told.startswith("points must be at most 50 for 12 arms; got 51\n") and "600" in told
    monkeypatch.setattr(handlers, "MOST_POINTS", 5)
    assert len(api.data(*history(1))["number"]) == 1  # whatever an experiment has, where it stands is told


def test_of_many_arms_fewer_points_are_allowed(api, store):
    eq.Experiment.create(store, "wide", arms=[str(i) for i in range(5_000)], policy=eq.Uniform())
    path = path_of("wide", "history")
    api.data("GET", path)
    told = api.refused(422, "InvalidInput", "GET", path, params={"points": 201})
    assert "at most 200 for 5,000 arms" in told


# In pieces

VALUES = st.floats() | st.none() | st.integers(-5, 5) | st.text(max_size=3)
ROWS = st.lists(VALUES | st.dictionaries(st.text(max_size=2), st.booleans()) | st.lists(VALUES), max_size=30)


@given_short_and_full(
    60,
    200,
    st.dictionaries(st.text(max_size=3), ROWS | ROWS.map(tuple) | st.integers() | st.text(max_size=5), max_size=4),
)
def test_in_pieces_it_is_the_same(data):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_bodies, "_VALUES_AT_ONCE", 7)
        assert encode(data) == msgspec.json.encode(data)


@pytest.mark.parametrize("shape", [(0,), (1,), (9,), (10,), (11,), (0, 3), (7, 3), (2, 40), (3, 0)])
def test_arrays_are_encoded_as_lists(shape, monkeypatch):
    monkeypatch.setattr(json_bodies, "_VALUES_AT_ONCE", 10)
    counts = np.arange(np.prod(shape)).reshape(shape)
    means = np.where(counts % 4 == 1, np.nan, counts / 7)
    assert json.loads(encode({"counts": counts, "means": means})) == {"counts": listed(counts), "means": listed(means)}


def test_a_long_list_is_encoded_a_part_at_a_time(monkeypatch):
    """While one is encoded no other thread has a turn, so none may be as long as an experiment is."""
    parts, inner = [], json_bodies.encode_value
    monkeypatch.setattr(json_bodies, "encode_value", lambda value: parts.append(np.size(value)) or inner(value))
    past = History(
        arms=tuple(map(str, range(100))),
        number=np.arange(5_000),
        at=(),
        assigned=np.ones((5_000, 100), np.int64),
        rewarded=np.ones((5_000, 100), np.int64),
        mean=np.full((5_000, 100), 0.5),
        std=np.full((5_000, 100), np.nan),
    )
    assert len(encode(vars(past))) > 5_000_000
    assert len(parts) > 200
    assert max(parts) <= 10_000
