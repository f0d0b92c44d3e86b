"""The HTTP service over a real socket: every route, what it answers, what it refuses, and that retries are harmless."""

from __future__ import annotations

import io
import itertools
import json
import sqlite3
from contextlib import closing

import polars as pl
import pytest
from service_api import Api, path_of
from service_runner import running_service, serving_here

import equipoise as eq
from equipoise.service import Settings
from equipoise.service.api_keys import create_key

ARMS = ["line", "pie", "none"]
_counter = itertools.count()


@pytest.fixture(scope="module")
def store_url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('service')}/service.db"


@pytest.fixture(scope="module")
def store(store_url):
    with eq.open_store(store_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def service(store_url, store):
    with running_service(store_url, "--most-units", "50", "--most-bytes", "300000") as service:
        yield service
        assert "unexpected error" not in service.said
        assert "Traceback" not in service.said


@pytest.fixture(scope="module")
def key(store):
    return create_key(store, role="admin", name="the office")[1]


@pytest.fixture(scope="module")
def api(service, key):
    api = Api(service.url, key)
    yield api
    api.close()


@pytest.fixture
def name(api):
    """An experiment that is there."""
    name = f"fractions {next(_counter)}"
    api.data("POST", "/experiments", {"name": name, "arms": ARMS, "reward_weight": 0.5, "seed": 7})
    return name


# Routes, and what they refuse


def test_an_experiment_is_made_with_all_that_the_library_takes(api, store):
    policy = eq.ForcingBalance(reward_weight=0.6, tracking="windowed")
    settings = {
        "arms": ARMS,
        "seed": 7,
        "floor": {"none": 0.05},
        "control": "pie",
        "control_share": 0.1,
        "warm_up": 1,
        "direction": "minimise",
        "failure_probability": 0.1,
        "metadata": {"school": "été", "classes": [4, 5]},
    }
    missing, stopping = eq.WaitForReward(window_seconds=3600), [eq.Budget(units=500)]
    body = settings | {
        "name": "with everything",
        "policy": policy.to_dict(),
        "reward_range": [0, 10],
        "missing": missing.to_dict(),
        "stopping": [rule.to_dict() for rule in stopping],
    }
    made = api("POST", "/experiments", body)
    assert made.status_code == 201
    twin = eq.Experiment.create(
        store, "its twin", policy=policy, reward_range=(0, 10), missing=missing, stopping=stopping, **settings
    )
    apart = {"name", "created_at"}
    assert {k: v for k, v in made.json().items() if k not in apart} == {
        k: v for k, v in twin.describe().items() if k not in apart
    }
    assert api.data("GET", path_of("with everything")) == made.json()


def test_making_the_same_again_is_a_retry_and_making_another_is_not(api):
    body = {"name": "twice", "arms": ARMS, "reward_weight": 0.5, "floor": [0.1, 0, 0], "metadata": {"a": 1.0}}
    first, again = api("POST", "/experiments", body), api("POST", "/experiments", body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert api("POST", "/experiments", body | {"seed": first.json()["configuration"]["seed"]}).status_code == 200
    for other in (
        {"arms": ["line", "pie", "x"]},
        {"reward_weight": 0.6},
        {"seed": 1},
        {"floor": 0.1},
        {"metadata": {}},
    ):
        assert "twice" in api.refused(409, "ExperimentExists", "POST", "/experiments", body | other)


def test_an_experiment_that_was_changed_since_is_still_the_one_that_was_made(api):
    body = {"name": "changed since", "arms": ARMS, "reward_weight": 0.5, "seed": 3}
    assert api("POST", "/experiments", body).status_code == 201
    api.data("PUT", path_of("changed since", "weight"), {"reward_weight": 0.9})
    api.data("POST", path_of("changed since", "arms"), {"name": "later"})
    now = api.data("POST", path_of("changed since", "pause"))
    again = api("POST", "/experiments", body)
    assert (again.status_code, again.json()) == (200, now)
    for other in ({"reward_weight": 0.9}, {"arms": [*ARMS, "later"]}):
        api.refused(409, "ExperimentExists", "POST", "/experiments", body | other)


@pytest.mark.parametrize(
    ("change", "place", "got"),
    [
        ({"arms": []}, "arms", "[]"),
        ({"arms": ["a", "a"]}, "arm", "'a'"),
        ({"arms": "abc"}, "arms", "'abc'"),
        ({"arms": ["a", 3]}, "arms[1]", "3"),
        ({"arms": ["a", "x" * 201]}, "arms[1]", "xxx"),
        ({"name": ""}, "name", "''"),
        ({"name": " a"}, "name", "' a'"),
        ({"name": "a\0b"}, "name", r"a\x00b"),
        ({"name": "x" * 201}, "name", "xxx"),
        ({"name": None}, "name", "None"),
        ({"reward_weight": 1.5}, "reward_weight", "1.5"),
        ({"reward_weight": "0.5"}, "reward_weight", "'0.5'"),
        ({"reward_weight": True}, "reward_weight", "True"),
        ({"reward_weight": None}, "reward_weight", "neither"),
        ({"policy": {"name": "UCB"}}, "reward_weight", "both"),
        ({"reward_weight": None, "policy": {"name": "Best"}}, "policy", "'Best'"),
        ({"reward_weight": None, "policy": {}}, "policy", "{}"),
        ({"reward_weight": None, "policy": {"name": "UCB", "scale": "x"}}, "scale", "'x'"),
        ({"reward_weight": None, "policy": {"name": "UCB", "scales": 1}}, "scales", "scales"),
        ({"floor": 2}, "floor", "6 for 3 arms"),
        ({"floor": {"nobody": 0.1}}, "floor", "'nobody'"),
        ({"floor": [0.1]}, "floor", "1"),
        ({"floor": "much"}, "floor", "'much'"),
        ({"control": "nobody", "control_share": 0.1}, "control", "'nobody'"),
        ({"seed": -1}, "seed", "-1"),
        ({"seed": 2**70}, "seed", str(2**70)),
        ({"seed": 1.5}, "seed", "1.5"),
        ({"warm_up": -1}, "warm_up", "-1"),
        ({"warm_up": 10**30}, "warm_up", str(10**30)),
        ({"reward_range": [1]}, "reward_range", "[1]"),
        ({"reward_range": [1, 0]}, "reward_range", "0"),
        ({"direction": "up"}, "direction", "'up'"),
        ({"missing": {"name": "Forget"}}, "Forget", "DropUnit"),
        ({"missing": {}}, "missing", "{}"),
        ({"missing": {"name": "DropUnit", "window_seconds": -1}}, "window_seconds", "-1"),
        ({"stopping": [{"name": "Bored"}]}, "Bored", "Budget"),
        ({"stopping": {"name": "Budget"}}, "stopping", "Budget"),
        ({"failure_probability": 0}, "failure_probability", "0"),
        ({"metadata": []}, "metadata", "[]"),
        ({"metadata": {"x": "y" * 100_001}}, "metadata", "100,0"),
        ({"colour": "red"}, "colour", "unknown field"),
    ],
)
def test_what_is_wrong_about_a_new_experiment_is_told_with_its_place_and_what_was_got(api, change, place, got):
    body = {"name": "wrong", "arms": ARMS, "reward_weight": 0.5} | change
    body = {name: value for name, value in body.items() if value is not None or name == "name"}
    answer = api("POST", "/experiments", body)
    assert answer.status_code == 422, answer.text
    told = answer.json()["error"]
    assert place in told and got in told
    assert "\x00" not in told


def test_experiments_are_listed_oldest_first_with_their_counts(api, name):
    for unit in "abc":
        api.data("POST", path_of(name, "assignments"), {"unit": unit})
    api.data("PUT", path_of(name, "assignments", "a", "reward"), {"reward": 1})
    listed = api.data("GET", "/experiments")["experiments"]
    assert [one["created_at"] for one in listed] == sorted(one["created_at"] for one in listed)
    [found] = [one for one in listed if one["name"] == name]
    assert (found["n_arms"], found["n_assigned"], found["n_rewarded"], found["state"]) == (3, 3, 1, "enrolling")
    assert found["policy"] == api.data("GET", path_of(name))["configuration"]["policy"]


def test_a_unit_keeps_its_arm_and_only_the_first_answer_says_new(api, name, store):
    first = api("POST", path_of(name, "assignments"), {"unit": "ada", "attributes": {"age": 9}})
    again = api("POST", path_of(name, "assignments"), {"unit": "ada", "attributes": {"age": 9}})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() | {"new": True}
    assert (first.json()["unit"], first.json()["number"], again.json()["new"]) == ("ada", 0, False)
    assert first.json()["arm"] == eq.Experiment.open(store, name).assignment("ada").arm


def test_many_units_get_what_as_many_single_requests_would_give(api):
    for name in ("one by one", "together"):
        api.data("POST", "/experiments", {"name": name, "arms": ARMS, "reward_weight": 0.5, "seed": 7})
    units = [f"u{i}" for i in range(20)]
    singly = [api.data("POST", path_of("one by one", "assignments"), {"unit": unit}) for unit in units]
    units[3:5] = [{"unit": "u3"}, {"unit": "u4", "attributes": {"x": [1, {"y": None}]}}]
    together = api.data("POST", path_of("together", "assignments", "many"), {"units": units})["assignments"]
    assert [one | {"at": ""} for one in together] == [one | {"at": ""} for one in singly]
    again = api.data("POST", path_of("together", "assignments", "many"), {"units": units})["assignments"]
    assert again == [one | {"new": False} for one in together]
    assert api.data("POST", path_of("together", "assignments", "many"), {"units": []}) == {"assignments": []}
    assert api.data("POST", path_of("together", "assignments", "many"), {"units": ["u1"]})["assignments"] == [again[1]]


def test_a_reward_counts_once_and_another_value_is_refused(api, name):
    api.data("POST", path_of(name, "assignments"), {"unit": "ada"})
    place = path_of(name, "assignments", "ada", "reward")
    first, again = api.data("PUT", place, {"reward": 0.5}), api.data("PUT", place, {"reward": 0.5})
    assert first == again | {"new": True} and again["new"] is False
    told = api.refused(409, "RewardConflict", "PUT", place, {"reward": 0.75})
    assert "0.5" in told and "0.75" in told and "correct" in told
    status = api.data("GET", path_of(name, "status"))
    assert (status["n_rewarded"], status["average_reward"]) == (1, 0.5)
    api.refused(404, "UnknownUnit", "PUT", path_of(name, "assignments", "bob", "reward"), {"reward": 0.5})


def test_many_rewards_are_recorded_all_or_none(api, name):
    units = ["ada", "bob", "eve"]
    api.data("POST", path_of(name, "assignments", "many"), {"units": units})
    rewards = [{"unit": unit, "reward": i / 2} for i, unit in enumerate(units)]
    place = path_of(name, "rewards", "many")
    api.refused(404, "UnknownUnit", "POST", place, {"rewards": [*rewards, {"unit": "nobody", "reward": 1}]})
    assert api.data("GET", path_of(name, "status"))["n_rewarded"] == 0
    first, again = (api.data("POST", place, {"rewards": rewards})["rewards"] for _ in range(2))
    assert again == [one | {"new": False} for one in first] and all(one["new"] for one in first)
    api.refused(409, "RewardConflict", "POST", place, {"rewards": [{"unit": "ada", "reward": 7}]})
    assert api.data("POST", place, {"rewards": []}) == {"rewards": []}
    assert api.data("GET", path_of(name, "status"))["n_rewarded"] == 3


def test_a_correction_replaces_a_reward_and_may_be_sent_again(api, name):
    api.data("POST", path_of(name, "assignments", "many"), {"units": ["ada", "bob"]})
    api.data("PUT", path_of(name, "assignments", "ada", "reward"), {"reward": 0.5})
    place = path_of(name, "assignments", "ada", "corrections")
    first, again = (api.data("POST", place, {"reward": 0.75, "reason": "typed wrong"}) for _ in range(2))
    assert first == again | {"new": True} and first["reward"] == 0.75
    assert api.data("GET", path_of(name, "status"))["average_reward"] == 0.75
    assert [one["kind"] for one in api.data("GET", path_of(name, "events"))["events"]].count("corrected") == 1
    api.refused(
        409, "NotRewarded", "POST", path_of(name, "assignments", "bob", "corrections"), {"reward": 1, "reason": "x"}
    )
    assert "reason" in api.refused(422, "InvalidInput", "POST", place, {"reward": 1})
    assert "reason" in api.refused(422, "InvalidInput", "POST", place, {"reward": 1, "reason": ""})


def test_a_unit_is_looked_up_with_its_reward_and_state(api, name, store):
    api.refused(404, "UnknownUnit", "GET", path_of(name, "assignments", "ada"))
    assigned = api.data("POST", path_of(name, "assignments"), {"unit": "ada"})
    found = api.data("GET", path_of(name, "assignments", "ada"))
    assert found == assigned | {"new": False, "state": found["state"], "reward": None, "counted": False}
    api.data("PUT", path_of(name, "assignments", "ada", "reward"), {"reward": 2})
    after = api.data("GET", path_of(name, "assignments", "ada"))
    assert (after["reward"], after["counted"], after["state"]) == (2.0, True, "counted")
    assert after["state"] == eq.Experiment.open(store, name).unit("ada").state


def test_enrolment_pauses_resumes_stops_and_finishes_and_each_verb_may_be_sent_again(api, name):
    for verb, state in (("pause", "paused"), ("resume", "enrolling"), ("stop", "stopped"), ("finish", "finished")):
        if verb == "finish":
            api.refused(409, "EnrolmentClosed", "POST", path_of(name, "assignments"), {"unit": "late"})
        for _ in range(2):
            assert api.data("POST", path_of(name, verb))["state"] == state
        if verb == "pause":
            api.refused(409, "EnrolmentClosed", "POST", path_of(name, "assignments"), {"unit": "early"})
            many = {"units": ["early"]}
            api.refused(409, "EnrolmentClosed", "POST", path_of(name, "assignments", "many"), many)
    for method, *rest, body in (
        ("PUT", "weight", {"reward_weight": 0.1}),
        ("POST", "arms", {"name": "new"}),
        ("POST", "arms", "pie", "pause", None),
    ):
        api.refused(409, "ExperimentFinished", method, path_of(name, *rest), body)


def test_finishing_waits_for_rewards_that_are_held_unless_told_anyway(api):
    missing = eq.WaitForReward(window_seconds=3600, hold=True).to_dict()
    body = {"name": "held", "arms": ARMS, "reward_weight": 0.5, "missing": missing}
    api.data("POST", "/experiments", body)
    api.data("POST", path_of("held", "assignments"), {"unit": "ada"})
    told = api.data("PUT", path_of("held", "assignments", "ada", "reward"), {"reward": 1})
    assert told["counted"] is False
    assert api.data("POST", path_of("held", "settle"))["state"] == "enrolling"
    assert api.refused(409, "RewardsHeld", "POST", path_of("held", "finish")).endswith('or now with {"anyway": true}')
    api.refused(409, "RewardsHeld", "POST", path_of("held", "finish"), {"anyway": False})
    assert "anyway" in api.refused(422, "InvalidInput", "POST", path_of("held", "finish"), {"anyway": "yes"})
    body = {"name": "open", "arms": ARMS, "reward_weight": 0.5}
    api.data("POST", "/experiments", body | {"missing": eq.DropUnit(window_seconds=3600).to_dict()})
    api.data("POST", path_of("open", "assignments"), {"unit": "ada"})
    api.refused(409, "WindowsOpen", "POST", path_of("open", "finish"))
    assert api.data("POST", path_of("open", "finish"), {"anyway": True})["state"] == "finished"
    assert api.data("POST", path_of("held", "finish"), {"anyway": True})["state"] == "finished"


def test_arms_are_added_paused_resumed_and_retired(api, name):
    added = api.data("POST", path_of(name, "arms"), {"name": "a/b %☃", "floor": 0.05})
    assert added["arms"][3] == {"name": "a/b %☃", "state": "active", "floor": 0.05}
    assert "a/b" in api.refused(422, "InvalidInput", "POST", path_of(name, "arms"), {"name": "a/b %☃"})
    for verb, state in (("pause", "paused"), ("resume", "active"), ("retire", "retired")):
        for _ in range(2):
            assert api.data("POST", path_of(name, "arms", "a/b %☃", verb))["arms"][3]["state"] == state
        told = api.refused(404, "UnknownArm", "POST", path_of(name, "arms", "nobody", verb))
        assert "nobody" in told and "pie" in told
    assert "floor" in api.refused(422, "InvalidInput", "POST", path_of(name, "arms"), {"name": "x", "floor": 1.5})
    api.refused(422, "InvalidInput", "POST", path_of(name, "arms"), {"name": "x", "floor": 1})


def test_the_weight_is_turned_and_may_be_turned_again(api, name):
    for weight in (0.9, 0.9, 0, 1):
        described = api.data("PUT", path_of(name, "weight"), {"reward_weight": weight})
        assert described["configuration"]["policy"]["reward_weight"] == weight
    assert "1.1" in api.refused(422, "InvalidInput", "PUT", path_of(name, "weight"), {"reward_weight": 1.1})
    uniform = {"name": "no dial", "arms": ARMS, "policy": eq.Uniform().to_dict()}
    api.data("POST", "/experiments", uniform)
    api.refused(422, "InvalidInput", "PUT", path_of("no dial", "weight"), {"reward_weight": 0.5})


def test_status_history_what_if_and_verify_say_what_the_library_says(api, name, store):
    assert "reward" in api.refused(409, "TooFewRewards", "GET", path_of(name, "what-if"), params={"reward_weight": 0.9})
    units = [f"u{i}" for i in range(30)]
    api.data("POST", path_of(name, "assignments", "many"), {"units": units})
    rewards = [{"unit": unit, "reward": i % 7} for i, unit in enumerate(units)]
    api.data("POST", path_of(name, "rewards", "many"), {"rewards": rewards})
    experiment = eq.Experiment.open(store, name)
    expected = json.loads(json.dumps(experiment.status().to_dict()))
    assert api.data("GET", path_of(name, "status")) | {"at": ""} == expected | {"at": ""}
    history, expected = api.data("GET", path_of(name, "history"), params={"points": 5}), experiment.history(5)
    assert history["number"] == list(expected.number) and history["assigned"] == expected.assigned.tolist()
    assert history["mean"][-1] == expected.mean[-1].tolist()
    assert None in history["mean"][0]  # an arm without a reward has no mean
    found = api.data("GET", path_of(name, "what-if"), params={"reward_weight": 0.9})
    assert found["allocation"] == pytest.approx(experiment.what_if(0.9).allocation)
    assert (found["reward_weight"], found["present_weight"]) == (0.9, 0.5)
    prices = api.data("GET", path_of(name, "prices"), params={"people_per_day": 40})
    expected = json.loads(json.dumps(experiment.prices(people_per_day=40).to_dict()))
    assert prices | {"at": ""} == expected | {"at": ""} and len(prices["positions"]) > 10
    assert api.data("GET", path_of(name, "verify"))["n_decisions"] == 30
    assert api.data("POST", path_of(name, "rebuild")) == {"changed": False}
    for page, query in (("history", {"points": 0}), ("history", {"points": "x"}), ("what-if", {"reward_weight": 2})):
        ((parameter, value),) = query.items()
        told = api.refused(422, "InvalidInput", "GET", path_of(name, page), params=query)
        assert parameter in told and f"got '{value}'" in told
    assert "reward_weight" in api.refused(422, "InvalidInput", "GET", path_of(name, "what-if"))


def test_the_log_is_read_page_by_page_and_says_whose_key_it_was(api, name, store, service):
    other = Api(service.url, create_key(store, role="assigner", name="web site ☃")[1])
    other.data("POST", path_of(name, "assignments"), {"unit": "ada"})  # the first goes the long way, as the name is new
    other.data("POST", path_of(name, "assignments"), {"unit": "bob"})
    other.data("PUT", path_of(name, "assignments", "ada", "reward"), {"reward": 1})
    other.data("POST", path_of(name, "assignments", "many"), {"units": ["eve", "dan"]})
    other.data("POST", path_of(name, "rewards", "many"), {"rewards": [{"unit": "eve", "reward": 1}]})
    other.close()
    api.data("POST", path_of(name, "assignments", "ada", "corrections"), {"reward": 2, "reason": "typo"})
    api.data("POST", path_of(name, "pause"))
    expected = [event.to_dict() for event in eq.Experiment.open(store, name).events()]
    read, after = [], 0
    while page := api.data("GET", path_of(name, "events"), params={"after": after, "limit": 3})["events"]:
        assert len(page) <= 3
        read += page
        after = page[-1]["number"]
    assert read == expected
    assert [one["who"] for one in read] == ["the office", *["web site ☃"] * 6, "the office", "the office"]
    at_the_end = api.data("GET", path_of(name, "events"), params={"after": after})
    assert at_the_end == {"events": [], "next": after}
    assert api.data("GET", path_of(name, "events"), params={"limit": 4})["next"] == read[3]["number"]
    for query in ({"limit": 0}, {"limit": 10_001}, {"after": -1}, {"after": "x"}, {"after": 2**63}):
        assert next(iter(query)) in api.refused(422, "InvalidInput", "GET", path_of(name, "events"), params=query)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_an_export_streams_what_the_library_exports(api, name, store, form, tmp_path):
    units = [{"unit": f"ünit, {i}", "attributes": {"i": i}} for i in range(40)]
    api.data("POST", path_of(name, "assignments", "many"), {"units": units})
    rewards = [{"unit": f"ünit, {i}", "reward": i / 3} for i in range(0, 40, 2)]
    api.data("POST", path_of(name, "rewards", "many"), {"rewards": rewards})
    answer = api("GET", path_of(name, "export"), params={"format": form})
    assert answer.status_code == 200
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["content-disposition"] == f'attachment; filename="export.{form}"'
    file = tmp_path / f"export.{form}"
    eq.Experiment.open(store, name).export(file)
    if form == "parquet":
        assert pl.read_parquet(io.BytesIO(answer.content)).equals(pl.read_parquet(file))
    else:
        assert answer.content.decode() == file.read_text(encoding="utf-8")


def test_an_export_of_nothing_and_in_no_format(api, name):
    assert api("GET", path_of(name, "export")).text.startswith("decision,unit,arm")
    assert api("GET", path_of(name, "export"), params={"format": "jsonl"}).content == b""
    empty = pl.read_parquet(io.BytesIO(api("GET", path_of(name, "export"), params={"format": "parquet"}).content))
    assert empty.shape == (0, 12)
    assert "'xls'" in api.refused(422, "InvalidInput", "GET", path_of(name, "export"), params={"format": "xls"})


EVERY_PLACE = [
    ("GET", "", None),
    ("GET", "/status", None),
    ("GET", "/history", None),
    ("GET", "/events", None),
    ("GET", "/export", None),
    ("GET", "/what-if?reward_weight=0.5", None),
    ("GET", "/prices", None),
    ("GET", "/verify", None),
    ("POST", "/rebuild", None),
    ("POST", "/assignments", {"unit": "a"}),
    ("POST", "/assignments/many", {"units": ["a"]}),
    ("POST", "/assignments/many", {"units": []}),
    ("GET", "/assignments/a", None),
    ("PUT", "/assignments/a/reward", {"reward": 1}),
    ("POST", "/rewards/many", {"rewards": [{"unit": "a", "reward": 1}]}),
    ("POST", "/assignments/a/corrections", {"reward": 1, "reason": "x"}),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("POST", "/stop", None),
    ("POST", "/settle", None),
    ("POST", "/finish", None),
    ("PUT", "/weight", {"reward_weight": 0.5}),
    ("POST", "/arms", {"name": "x"}),
    ("POST", "/arms/x/pause", None),
    ("POST", "/arms/x/resume", None),
    ("POST", "/arms/x/retire", None),
]


@pytest.mark.parametrize(("method", "rest", "body"), EVERY_PLACE)
def test_an_experiment_that_is_not_there_is_not_found(api, method, rest, body):
    assert "'nobody'" in api.refused(404, "UnknownExperiment", method, path_of("nobody") + rest, body)


def test_hints_name_requests_and_no_calls_of_python(api, name):
    """By the lean routes and by the others; `equipoise.Client` turns them back into calls."""
    place = "/experiments/{name}"
    told, reward = path_of(name, "assignments", "ada", "reward"), {"reward": 0.5}

    def hint(method, path, body=None):
        return api(method, path, body).json()["hint"]

    check = f"check the spelling and the experiment; GET {place}/export lists its units"
    assert hint("PUT", told, reward) == check
    assert hint("GET", path_of(name, "assignments", "ada")) == check
    many = {"rewards": [{"unit": "ada"} | reward]}
    assert hint("POST", path_of(name, "rewards", "many"), many) == check
    api.data("POST", path_of(name, "assignments"), {"unit": "ada"})
    correction = reward | {"reason": "x"}
    corrections = path_of(name, "assignments", "ada", "corrections")
    assert hint("POST", corrections, correction) == f"PUT {place}/assignments/{{unit}}/reward"
    api.data("PUT", told, reward)
    replaces = f"POST {place}/assignments/{{unit}}/corrections replaces it, and logs why"
    assert hint("PUT", told, {"reward": 0.75}) == replaces
    api.data("POST", path_of(name, "pause"))
    assert hint("POST", path_of(name, "assignments"), {"unit": "bob"}) == f"POST {place}/resume takes new units again"
    for arm in ARMS[:2]:
        api.data("POST", path_of(name, "arms", arm, "pause"))
    assert hint("POST", path_of(name, "arms", ARMS[2], "pause")) == f"POST {place}/pause or POST {place}/stop instead"
    body = {"name": "no control", "arms": ARMS, "reward_weight": 0.5, "control_share": 0.1}
    assert hint("POST", "/experiments", body) == 'give "control": ...'


# Names


@pytest.mark.parametrize(
    "text",
    [
        "a/b",
        "50%",
        "%2F",
        "a b",
        "😀 👩‍👩‍👧",
        "?x=1#y",
        "..a",
        "+",
        "a;b&c=d",
        "é",
        "e\u0301",
        "\\",
        "'\"",
        "many",
        "x" * 200,
        "☃" * 200,
    ],
)
def test_any_text_may_be_a_name_an_arm_and_a_unit(api, store, text):
    name, unit = f"{text} e"[-200:], text * (500 // len(text)) if len(text) >= 200 else text
    api.data("POST", "/experiments", {"name": name, "arms": [text, "pie"], "reward_weight": 0.5})
    assigned = api.data("POST", path_of(name, "assignments"), {"unit": unit})
    assert assigned["unit"] == unit
    assert api.data("PUT", path_of(name, "assignments", unit, "reward"), {"reward": 1})["unit"] == unit
    assert api.data("GET", path_of(name, "assignments", unit))["arm"] == assigned["arm"]
    assert api.data("POST", path_of(name, "arms", text, "pause"))["arms"][0] == {
        "name": text,
        "state": "paused",
        "floor": 0,
    }
    api.data("POST", path_of(name, "assignments", unit, "corrections"), {"reward": 2, "reason": text})
    assert eq.Experiment.open(store, name).unit(unit).reward == 2


def test_units_of_500_characters_are_the_longest(api, name):
    for unit in ("x" * 500, "😀" * 500):
        assert api.data("POST", path_of(name, "assignments"), {"unit": unit})["unit"] == unit
        api.data("PUT", path_of(name, "assignments", unit, "reward"), {"reward": 1})
        longer = unit + unit[0]
        assert "500" in api.refused(422, "InvalidInput", "POST", path_of(name, "assignments"), {"unit": longer})
        assert "500" in api.refused(
            422, "InvalidInput", "POST", path_of(name, "assignments", "many"), {"units": [longer]}
        )
        place = path_of(name, "assignments", longer, "reward")
        assert "500" in api.refused(422, "InvalidInput", "PUT", place, {"reward": 1})
        assert "500" in api.refused(422, "InvalidInput", "GET", path_of(name, "assignments", longer))


@pytest.mark.parametrize("unit", ["", " a", "a\0", "a\n", "\x7f"])
def test_what_cannot_be_a_unit_is_refused_wherever_it_stands(api, name, unit):
    api.refused(422, "InvalidInput", "POST", path_of(name, "assignments"), {"unit": unit})
    api.refused(422, "InvalidInput", "POST", path_of(name, "assignments", "many"), {"units": ["fine", unit]})
    api.refused(
        422, "InvalidInput", "POST", path_of(name, "rewards", "many"), {"rewards": [{"unit": unit, "reward": 1}]}
    )
    if unit:
        api.refused(422, "InvalidInput", "PUT", path_of(name, "assignments", unit, "reward"), {"reward": 1})
    assert api.data("GET", path_of(name, "status"))["n_assigned"] == 0


def test_a_path_that_is_not_utf8_is_refused(api, name):
    place = f"/experiments/{name}/assignments/%ff/reward"
    assert "%ff" in api.refused(422, "InvalidInput", "PUT", place, {"reward": 1})
    assert "%ff" in api.refused(422, "InvalidInput", "GET", "/experiments/%ff/status")


# Limits, and one failing experiment


def test_a_request_may_have_so_many_units_and_no_more(api, name):
    units = [f"u{i}" for i in range(51)]
    told = api.refused(422, "InvalidInput", "POST", path_of(name, "assignments", "many"), {"units": units})
    assert "50" in told and "51" in told
    assert api.data("GET", path_of(name, "status"))["n_assigned"] == 0
    assert len(api.data("POST", path_of(name, "assignments", "many"), {"units": units[:50]})["assignments"]) == 50
    rewards = [{"unit": unit, "reward": 1} for unit in units]
    assert "51" in api.refused(422, "InvalidInput", "POST", path_of(name, "rewards", "many"), {"rewards": rewards})
    assert api.data("GET", path_of(name, "status"))["n_rewarded"] == 0


@pytest.mark.parametrize("damage", ["not json", '{"format": "equipoise-experiment/99"}', "[]", "{}"])
def test_a_damaged_experiment_fails_alone(tmp_path, damage, caplog):
    """What is wrong with one is answered for it, and only for it; also lists and metrics go on."""
    path, places = (
        tmp_path / "service.db",
        [place for place in EVERY_PLACE if place[1] != "/rebuild" and place[2] != {"units": []}],
    )
    store = eq.open_store(f"sqlite:///{path}")
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings()) as here, closing(Api(here.url, key)) as api:
        for name in ("damaged", "whole"):
            api.data("POST", "/experiments", {"name": name, "arms": ARMS, "reward_weight": 0.5})
            api.data("POST", path_of(name, "assignments"), {"unit": "ada"})
        with closing(sqlite3.connect(path)) as database, database:
            # As if another process had configured it anew, so that the server does not go by what it remembers.
            database.execute(
                "UPDATE experiments SET configuration = ?, configured = n_events + 1, n_events = n_events + 1 "
                "WHERE name = 'damaged'",
                (damage,),
            )
        for method, rest, body in places:
            answer = api(method, path_of("damaged") + rest, body)
            assert (answer.status_code, "logged" in answer.text) == (500, True), rest
        assert "the configuration of experiment 'damaged' is damaged" in str(
            [record.__dict__.get("data") for record in caplog.records]
        )
        listed = api.data("GET", "/experiments")["experiments"]
        assert "whole" in [one["name"] for one in listed]
        assert 'equipoise_units{experiment="whole",state="assigned"} 1' in api("GET", "/metrics").text
        assert api.data("POST", path_of("whole", "assignments"), {"unit": "bob"})["new"]
        assert api.data("GET", path_of("whole", "verify"))["n_decisions"] == 2
        api.data("GET", "/readyz")
        api("POST", path_of("damaged", "rebuild"))
        assert api("GET", path_of("whole", "status")).status_code == 200
