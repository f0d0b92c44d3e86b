"""Who may do what: every endpoint for every kind of key, and what is known of keys where."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from service_api import Api, path_of
from service_runner import running_service, serving_here

import equipoise as eq
from equipoise.service import Settings, handlers, openapi
from equipoise.service.api_keys import create_key, list_keys, revoke_key

# Written down by hand, and not taken from the service: who may use what.
READER, ASSIGNER, ADMIN = {"reader", "admin"}, {"assigner", "admin"}, {"admin"}
ALL, PUBLIC = {"reader", "assigner", "admin"}, None
E = "/experiments/{name}"
PLAN = {
    "toml": "people = {most = 20}\nways = {weights = [0.5]}\ngoals = {precision = 0.3}\n"
    "[[arms]]\nname = 'a'\nrate = 0.1\n[[arms]]\nname = 'b'\nrate = 0.3\n",
    "seconds": 0.1,
}
TOMORROW = (datetime.now(UTC) + timedelta(days=1)).isoformat()
PLANNED = {"digest": "d1", "way": "weight 0.5", "start": None, "days": [0, 1], "bands": []}


class Row(NamedTuple):
    """An endpoint, who may use it, and a request that succeeds however often it is sent."""

    method: str
    route: str
    roles: set[str] | None
    body: object = None
    rest: str = ""


TABLE = [
    Row("GET", "/healthz", PUBLIC),
    Row("GET", "/readyz", PUBLIC),
    Row("GET", "/", PUBLIC),
    Row("GET", "/openapi.json", PUBLIC),
    Row("GET", "/docs", PUBLIC),
    Row("GET", "/docs/{file}", PUBLIC),
    Row("GET", "/metrics", READER),
    Row("GET", "/plans", READER),
    Row("POST", "/plans", READER, PLAN),
    Row("GET", "/plans/{id}", READER),
    Row("DELETE", "/plans/{id}", READER),
    Row("GET", "/experiments", READER),
    Row("POST", "/experiments", ADMIN),
    Row("GET", E, READER),
    Row("GET", E + "/status", READER),
    Row("GET", E + "/history", READER),
    Row("GET", E + "/events", READER, rest="?newest_first=true&kinds=created"),
    Row("GET", E + "/changes", READER, rest="?limit=3"),
    Row("POST", E + "/notes", READER, {"text": "x"}),
    Row("GET", E + "/timeline", READER),
    Row("GET", E + "/outlook", READER),
    Row("GET", E + "/export", READER),
    Row("GET", E + "/what-if", READER, rest="?reward_weight=0.5"),
    Row("GET", E + "/prices", READER, rest="?people_per_day=40"),
    Row("GET", E + "/comparison", READER, rest="?control=b&all_pairs=false"),
    Row("GET", E + "/report", READER, rest="?confidence=0.9"),
    Row("GET", E + "/report/full", READER, rest="?verify=false&at=1"),
    Row("GET", E + "/fidelity", READER),
    Row("GET", E + "/health", READER),
    Row("POST", E + "/health/mute", ADMIN, {"check": "enrolment", "until": TOMORROW, "reason": "x"}),
    Row("POST", E + "/health/unmute", ADMIN, {"check": "enrolment"}),
    Row("GET", E + "/verify", READER),
    Row("POST", E + "/rebuild", ADMIN),
    Row("DELETE", E, ADMIN),
    Row("POST", E + "/assignments", ASSIGNER, {"unit": "bob"}),
    Row("POST", E + "/assignments/many", ASSIGNER, {"units": ["bob", "eve"]}),
    Row("GET", E + "/assignments", READER, rest="?state=waiting&limit=2"),
    Row("GET", E + "/assignments/{unit}", ALL),
    Row("GET", E + "/assignments/{unit}/events", READER),
    Row("PUT", E + "/assignments/{unit}/reward", ASSIGNER, {"reward": 1}),
    Row("POST", E + "/rewards/many", ASSIGNER, {"rewards": [{"unit": "ada", "reward": 1}]}),
    Row("POST", E + "/assignments/{unit}/corrections", ADMIN, {"reward": 1, "reason": "x"}),
    Row("POST", E + "/assignments/{unit}/withdrawal", ADMIN, {"reason": "x"}),
    Row("DELETE", E + "/assignments/{unit}", ADMIN),
    Row("POST", E + "/pause", ADMIN),
    Row("POST", E + "/resume", ADMIN),
    Row("POST", E + "/stop", ADMIN),
    Row("POST", E + "/settle", ADMIN),
    Row("POST", E + "/finish", ADMIN),
    Row("PUT", E + "/weight", ADMIN, {"reward_weight": 0.9}),
    Row("PUT", E + "/dial", ADMIN, {"information_kept": 0.7}),
    Row("PUT", E + "/description", ADMIN, {"title": "Fractions"}),
    Row("POST", E + "/arms", ADMIN, {"name": "new"}),
    Row("POST", E + "/arms/{arm}/pause", ADMIN),
    Row("POST", E + "/arms/{arm}/resume", ADMIN),
    Row("POST", E + "/arms/{arm}/retire", ADMIN),
]
FOR_ALL_EXPERIMENTS = {"/metrics", "/plans", "/plans/{id}"}
"""What tells of all experiments, so that a key for one is not enough."""
FILTERED = {("GET", "/experiments")}
"""What tells a key for one experiment of that one."""
POLICY = eq.ForcingBalance(reward_weight=0.5)


def is_asked(row, kind):
    """The status to expect, by this table alone; 0 for success."""
    role, _, where = kind.partition(" ")
    if row.roles is PUBLIC:
        return 0
    if role not in ALL or where in ("expired", "revoked"):
        return 401
    if role not in row.roles:
        return 403
    if where == "elsewhere" and (row.method, row.route) not in FILTERED:
        return 403
    if where and row.route in FOR_ALL_EXPERIMENTS:
        return 403
    return 0


def make_experiment(store, name):
    made = eq.Experiment.create(store, name, arms=["a", "b"], policy=POLICY, seed=1, metadata={"plan": PLANNED})
    made.ask_many(["ada", *"0123456789"])
    made.tell_many(dict.fromkeys(["ada", *"0123456789"], 1.0))


def test_every_route_of_the_application_has_a_row():
    """A route that nobody thought of here fails."""
    endpoints = [route.endpoint for route in (*handlers.routes(), *openapi.pages())]
    found = sorted((endpoint.method, endpoint.path) for endpoint in endpoints)
    assert found == sorted((row.method, row.route) for row in TABLE)


@pytest.fixture(scope="module")
def here():
    store = eq.open_store("memory:")
    make_experiment(store, "elsewhere")
    with serving_here(store, Settings()) as here:
        yield here


@pytest.fixture(scope="module")
def keys(here):
    """A key of every kind that is not for the experiment at hand, by what it is called in the matrix."""
    store, tomorrow = here.service.store, datetime.now(UTC) + timedelta(days=1)
    keys = {"nobody": None, "garbage": "garbage", "stranger": f"eq_{'0' * 12}_{'A' * 43}"}
    for role in sorted(ALL):
        keys[role] = create_key(store, role=role, expires_at=tomorrow)[1]
        keys[f"{role} elsewhere"] = create_key(store, role=role, experiment="elsewhere")[1]
        revoked, keys[f"{role} revoked"] = create_key(store, role=role)
        revoke_key(store, revoked.id)
        soon = datetime.now(UTC) + timedelta(seconds=0.1)
        keys[f"{role} expired"] = create_key(store, role=role, expires_at=soon)[1]
    keys["almost"] = keys["admin"][:-1] + ("A" if keys["admin"][-1] != "A" else "Q")
    time.sleep(0.2)
    return keys


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.method} {row.route}")
def test_every_kind_of_key_may_do_what_its_role_says_and_nothing_else(here, keys, row):
    store, name = here.service.store, f"{row.method} {row.route}"
    if (row.method, row.route) != ("DELETE", E):
        make_experiment(store, name)
    before = len(list(eq.Experiment.open(store, "elsewhere").events()))
    bound = {f"{role} here": create_key(store, role=role, experiment=name)[1] for role in sorted(ALL)}
    here.service.keys.read()
    place = path_of(name) + row.route.removeprefix(E) if row.route.startswith(E) else row.route
    place = place.replace("{unit}", "ada").replace("{arm}", "a").replace("{file}", "swagger-ui.css") + row.rest
    for number, (kind, key) in enumerate((keys | bound).items()):
        body = row.body
        if (row.method, row.route) == ("DELETE", E):  # only without rewards, and each time another
            with contextlib.suppress(eq.UnknownExperiment):
                eq.Experiment.open(store, name).delete()
            eq.Experiment.create(store, name, arms=["a", "b"], policy=POLICY, seed=1)
        if (row.method, row.route) == ("POST", "/experiments"):
            settings = {"arms": ["a", "b"], "policy": POLICY.to_dict(), "seed": 1}
            body = {"name": name, **settings, "metadata": {"plan": PLANNED}}
        elif row.route.endswith("/arms"):
            body = {"name": f"new {number}"}
        if row.route == "/plans/{id}":  # a GET finds it however often, and a DELETE forgets it
            with closing(Api(here.url, keys["admin"])) as api:
                place = f"/plans/{api.data('POST', '/plans', PLAN)['id']}"
        if (row.method, row.route) == ("DELETE", E + "/assignments/{unit}"):  # only once it is withdrawn
            experiment = eq.Experiment.open(store, name)
            experiment.ask("ada")
            experiment.withdraw("ada", "left")
        with closing(Api(here.url, key)) as api:
            answer = api(row.method, place, body)
            expected = is_asked(row, kind)
            if expected:
                assert answer.status_code == expected, (kind, answer.text)
                kinds = {401: "NotAuthenticated", 403: "NotAllowed"}
                assert answer.headers["x-equipoise-error"] == kinds[expected]
            else:
                assert answer.status_code in (200, 201, 202), (kind, answer.text)
            if row.route.startswith(E) and row.roles:
                # The same for what does not exist: who may not look does not learn whether it is there.
                absent = api(row.method, place.replace(path_of(name), path_of("absent")), body)
                wanted = expected or (403 if kind.endswith("here") else 404)
                assert absent.status_code == wanted, (kind, absent.text)
    assert len(list(eq.Experiment.open(store, "elsewhere").events())) == before


def test_a_key_for_one_experiment_sees_only_that_in_the_list(here):
    store = here.service.store
    make_experiment(store, "mine")
    keys = {name: create_key(store, role="reader", experiment=name)[1] for name in ("mine", "not made yet")}
    here.service.keys.read()
    for name, key in keys.items():
        with closing(Api(here.url, key)) as api:
            listed = [one["name"] for one in api.data("GET", "/experiments")["experiments"]]
            assert listed == (["mine"] if name == "mine" else [])


def test_an_administrator_of_one_experiment_may_make_that_one_and_no_other(here):
    key = create_key(here.service.store, role="admin", experiment="to be made")[1]
    here.service.keys.read()
    body = {"arms": ["a", "b"], "reward_weight": 0.5}
    with closing(Api(here.url, key)) as api:
        assert "'to be made'" in api.refused(403, "NotAllowed", "POST", "/experiments", body | {"name": "another"})
        assert api("POST", "/experiments", body | {"name": "to be made"}).status_code == 201


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Basic {key}", "{key}", "Bearer {key}x", "Bearer x{key}", "Bearer {key} {key}", "Bearer é"]
)
def test_a_key_that_is_sent_wrongly_is_no_key(here, header):
    key = create_key(here.service.store, role="admin")[1]
    here.service.keys.read()
    with closing(Api(here.url)) as api:
        sent = header.format(key=key).encode("latin-1")
        assert "Bearer" in api.refused(401, "NotAuthenticated", "GET", "/experiments", headers={"authorization": sent})
        for fine in (f"Bearer {key}", f"bearer {key}", f"BEARER   {key}"):
            assert api("GET", "/experiments", headers={"authorization": fine}).status_code == 200


@pytest.mark.parametrize("scheme", ["Apikey", "Basic ", "Digest", "Bearer:"])
def test_another_scheme_is_told_so_and_the_key_in_it_is_not_told(here, scheme):
    key, text = create_key(here.service.store, role="admin")
    here.service.keys.read()
    with closing(Api(here.url)) as api:
        headers = {"authorization": f"{scheme} {text}"}
        told = api.refused(401, "NotAuthenticated", "GET", "/experiments", headers=headers)
    assert told.startswith("the scheme of Authorization must be Bearer\n")
    assert key.id not in told and "valid" not in told


def test_who_has_a_key_learns_why_it_does_not_work_and_nobody_else_does(here):
    store = here.service.store
    key, text = create_key(store, role="admin")
    revoke_key(store, key.id)
    here.service.keys.read()
    with closing(Api(here.url, text)) as api:
        assert "revoked" in api.refused(401, "NotAuthenticated", "GET", "/experiments")
    guess = text[:-1] + ("A" if text[-1] != "A" else "Q")
    with closing(Api(here.url, guess)) as api:
        told = api.refused(401, "NotAuthenticated", "GET", "/experiments")
        assert "revoked" not in told and key.id not in told


# A running server


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("roles") / "roles.db"
    with eq.open_store(f"sqlite:///{path}") as store:
        make_experiment(store, "x")
        yield store


@pytest.mark.endurance
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_server_notices_new_and_revoked_keys_and_tells_no_secrets(store, form):
    """A new key works at once, a revoked one not for longer than two seconds; uses are recorded, secrets nowhere."""
    early, early_text = create_key(store, role="admin", name=f"early {form}")
    unit, sensitive = f"Ada Lovelace {form}", []
    with running_service(store.url, "--log-format", form, "--access-log") as service:
        key, text = create_key(store, role="admin", name=f"late {form}")
        sensitive += [unit, early_text, text, text.split("_", 2)[2], unit.replace(" ", "%20")]
        with closing(Api(service.url, early_text)) as old, closing(Api(service.url, text)) as new:
            assert old("POST", path_of("x", "assignments"), {"unit": unit}).status_code == 201
            assert new.data("PUT", path_of("x", "assignments", unit, "reward"), {"reward": 1})["new"]
            for api in (old, new):
                for row in TABLE:
                    names = {"name": "x", "unit": unit.replace(" ", "%20"), "arm": "a", "id": "none"}
                    names["file"] = "swagger-ui.css"
                    place = row.route.format(**names)
                    spared = ("finish", "stop", "pause", "retire", "docs", ".css", "withdrawal")
                    if row.method != "DELETE" and not place.endswith(spared):
                        api(row.method, place + row.rest, row.body)
                api("PUT", path_of("x", "assignments", unit, "reward"), {"reward": 5})  # a conflict
                api("PUT", path_of("x", "assignments", unit + "?", "reward"), {"reward": 5})  # not found
                api("POST", path_of("x", "assignments"), {"unit": unit + "\n"})
                api("POST", path_of("x", "assignments"), {"unit": [unit]})
                api("POST", path_of("x", "assignments"), f'{{"unit": "{unit}'.encode())
                api("POST", path_of("x", "assignments"), {"unit": unit, unit: 1})
                api("GET", path_of("x", "nothing", unit))
                api("GET", f"/experiments/x/events?after={unit}")
            with closing(Api(service.url, text + "x")) as wrong:
                wrong("POST", path_of("x", "assignments"), {"unit": unit})
            if form == "json":  # once is enough
                revoke_key(store, key.id)
                revoked_at = time.monotonic()
                while (status := new("GET", "/experiments").status_code) == 200:
                    assert time.monotonic() - revoked_at < 4
                    time.sleep(0.05)
                assert status == 401
                assert old("GET", "/experiments").status_code == 200
        assert service.stop() == 0
        said = service.said
    found = {one.id: one for one in list_keys(store)}
    for one in (early, key):
        assert one.last_used_at is None
        assert found[one.id].last_used_at >= one.created_at
    for secret in sensitive:
        assert secret not in said
    assert key.id in said and "/experiments/{name}/assignments/{unit}/reward" in said
    assert "Traceback" not in said
    if form == "json":
        lines = [json.loads(line) for line in service.lines if line.startswith("{")]
        assert {(line["method"], line["route"], line["status"]) for line in lines if line["event"] == "request"} >= {
            ("PUT", "/experiments/{name}/assignments/{unit}/reward", 409),
            ("POST", "/experiments/{name}/assignments", 201),
            ("GET", "unknown", 401),
        }
        assert len({line["request_id"] for line in lines}) == len(lines)
    # By another process: closing a file gives up all locks of this one on it, those of SQLite as well.
    contents = subprocess.check_output(["/bin/cat", *store.database.path.parent.iterdir()])
    for whole in (early_text, text):
        assert whole.encode() not in contents
        assert whole.split("_", 2)[2].encode() not in contents
        assert whole.split("_", 2)[1].encode() in contents  # the ids are there, so we looked at the right bytes


def asked(here, monkeypatch):
    """Return a list that grows with every question about keys to the store."""
    questions = []
    for name in ("read", "look_up"):
        original = getattr(here.service.keys, name)

        def noted(*given, original=original, name=name, **options):
            questions.append(name)
            return original(*given, **options)

        monkeypatch.setattr(here.service.keys, name, noted)
    return questions


def test_a_flood_of_unknown_keys_does_not_make_the_server_look_them_up_again_and_again(here, monkeypatch):
    monkeypatch.setattr("equipoise.service.service.time", SimpleNamespace(monotonic=lambda: 0.0))  # all in one second
    questions = asked(here, monkeypatch)
    with closing(Api(here.url, f"eq_{'0' * 12}_{'B' * 43}")) as api:
        for _ in range(60):
            assert api("GET", "/experiments").status_code == 401
    assert questions.count("look_up") <= 10


@pytest.mark.parametrize("sent", ["x", "Bearer x", "Bearer", "Basic {key}", "Bearer {wrong}", "Bearer {revoked}"])
def test_what_cannot_be_a_new_key_asks_nothing_of_the_store(here, monkeypatch, sent):
    store = here.service.store
    key = create_key(store, role="admin")[1]
    revoked, revoked_text = create_key(store, role="admin")
    revoke_key(store, revoked.id)
    here.service.keys.read()
    questions = asked(here, monkeypatch)
    wrong = key[:-1] + ("A" if key[-1] != "A" else "Q")
    headers = {"authorization": sent.format(key=key, wrong=wrong, revoked=revoked_text)}
    with closing(Api(here.url)) as api:
        for _ in range(20):
            assert api("GET", "/experiments", headers=headers).status_code == 401
    assert "look_up" not in questions
    assert questions.count("read") < 8  # every two seconds keys are read whatever comes
