"""The client of a service: the verbs of `Experiment`, retries on real sockets, and secrets that stay so."""

from __future__ import annotations

import asyncio
import inspect
import io
import json
import logging
import re
import runpy
import ssl
import subprocess
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import polars
import pytest
from both_clients import KINDS, connecting, members, remote
from flaky_server import OVERLOADED, REFUSED, RESET, SILENCE, FlakyServer, answer, half
from tools import need

import equipoise as eq
from equipoise import http_api
from equipoise.client import AsyncClient, AsyncRemoteExperiment, Client, RemoteExperiment, http_backend
from equipoise.client import retries as attempts
from equipoise.client import transport as senders
from equipoise.experiment import ToldReward

KEY = "eq_7_verysecret"
TOLD = {"unit": "ada", "arm": "line", "reward": 0.5, "counted": True, "new": True}
DONE = answer(200, TOLD)


@pytest.fixture(params=KINDS)
def connect(request):
    with connecting(request.param) as connect:
        yield connect


@pytest.fixture
def waits(monkeypatch):
    """The waits before other attempts, which are noted instead of waited for."""
    noted = []

    async def note(seconds):
        noted.append(seconds)

    monkeypatch.setattr(senders, "time", SimpleNamespace(sleep=noted.append, monotonic=lambda: sum(noted)))
    monkeypatch.setattr(senders, "asyncio", SimpleNamespace(sleep=note, Semaphore=asyncio.Semaphore))
    return noted


# --- the same verbs ---------------------------------------------------------------------------------------------------


def test_the_asynchronous_experiment_is_generated_from_the_experiment():
    path = Path(__file__).parents[1] / "scripts/generate_async_experiment.py"
    script = runpy.run_path(str(path))
    assert script["TARGET"].read_text(encoding="utf-8") == script["generated"](), f"run python {path.name}"
    not_verbs = script["NOT_VERBS"]
    assert set(members(AsyncRemoteExperiment)) == set(members(eq.Experiment)) - not_verbs | {"as_of"}
    assert len(members(AsyncRemoteExperiment)) >= 24
    assert AsyncRemoteExperiment.add_arm.__doc__ == eq.Experiment.add_arm.__doc__


def test_every_verb_of_the_asynchronous_client_is_awaited():
    for kind in (AsyncClient, AsyncRemoteExperiment):
        for name, member in members(kind).items():
            function = member.fget if isinstance(member, property) else member
            awaited = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
            assert awaited == (name not in ("url", "as_of")), name  # those send no request


def test_a_service_logs_the_name_of_the_key_as_author():
    with pytest.raises(eq.InvalidInput, match="who must be left out"):
        Client("http://127.0.0.1:1").create("fractions", arms=["a", "b"], reward_weight=0.5, who="ada")


def test_every_endpoint_is_a_method():
    for endpoint in http_api.ENDPOINTS:
        if endpoint.path.startswith("/experiments"):
            assert hasattr(RemoteExperiment if endpoint.path_names else Client, endpoint.verb), endpoint.verb


def test_what_needs_the_store_says_so():
    experiment = Client("http://127.0.0.1:1").open("fractions")
    for use in (
        lambda: experiment.store,
        lambda: experiment.number,
        lambda: experiment.apply([]),
        lambda: experiment.apply_all([]),
        lambda: experiment.copy_to("memory:"),
    ):
        with pytest.raises(eq.InvalidInput, match=r"needs the store of experiment 'fractions'.*\nhint: open the store"):
            use()
    assert isinstance(experiment, eq.Experiment)
    assert (experiment.name, experiment.who) == ("fractions", None)
    assert repr(experiment) == "Client('http://127.0.0.1:1').open('fractions')"


def test_a_client_loads_neither_the_database_nor_the_compiler_nor_numpy():
    script = """
import sys, equipoise as eq
print(eq.Client(sys.argv[1]).open("exam").tell("ada", 0.5).reward)
print(sorted({"numba", "numpy", "sqlalchemy", "equipoise.policies", "equipoise.store"} & set(sys.modules)))
"""
    with FlakyServer(DONE) as server:
        done = subprocess.run([sys.executable, "-c", script, server.url], capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.stderr) == ("0.5\n[]\n", "")
        assert len(server.received) == 1  # opening an experiment is no request


# --- trying again -----------------------------------------------------------------------------------------------------

TROUBLE = {
    "reset": RESET,
    "overloaded": OVERLOADED,
    "no service behind the proxy": answer(502, b"<html>Bad Gateway</html>"),
    "no answer from it": answer(504, b""),
    "half an answer": half(DONE),
    "half a head": b"HTTP/1.1 20",
    "closed without a word": b"",
}


@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE.keys())
def test_what_may_pass_is_tried_again(connect, waits, trouble):
    with FlakyServer(trouble, trouble, DONE) as server:
        assert remote(connect(server.url, KEY)).tell("ada", 0.5) == ToldReward(**TOLD)
    assert len(waits) == 2
    assert len(server.received) == 3
    assert len({(one.line, one.body) for one in server.received}) == 1
    assert {one.headers["authorization"] for one in server.received} == {f"Bearer {KEY}"}


def test_a_server_that_says_nothing_is_tried_again(connect, waits):
    with FlakyServer(SILENCE, DONE) as server:
        assert remote(connect(server.url, timeout_seconds=0.2)).tell("ada", 0.5).reward == 0.5
    assert len(waits) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422, 429, 500, 501])
def test_what_will_not_pass_is_not_tried_again(connect, waits, status):
    with FlakyServer(answer(status, {"error": "no", "hint": None}), DONE) as server:
        with pytest.raises(eq.ServiceError, match=f"{server.url} answered {status} X: .*no"):
            remote(connect(server.url)).tell("ada", 0.5)
        assert (len(server.received), waits) == (1, [])


@pytest.mark.parametrize("trouble", [RESET, OVERLOADED], ids=["reset", "overloaded"])
def test_after_the_last_attempt_the_store_is_unavailable(connect, waits, caplog, trouble):
    caplog.set_level(logging.DEBUG)
    with FlakyServer(trouble) as server:
        client = connect(server.url, KEY, attempts=4)
        with pytest.raises(eq.StoreUnavailable, match="tried 4 times") as raised:
            remote(client).tell("ada", 0.5)
        assert len(server.received) == 4
    told = str(raised.value)
    assert server.url in told or "too much to do" in told
    assert raised.value.hint
    shown = "".join([caplog.text, repr(client), repr(remote(client)), *traceback.format_exception(raised.value)])
    assert "trying again in" in shown
    assert "verysecret" not in shown


def test_nobody_at_the_address(connect, waits):
    with FlakyServer(DONE) as server:
        pass
    with pytest.raises(eq.StoreUnavailable, match=f"{server.url} cannot be reached: .*; tried [0-9]+ times"):
        remote(connect(server.url)).status()
    assert sum(waits) == pytest.approx(30)
    assert len(waits) >= 9


def test_retries_outlast_a_restart_of_twenty_seconds(connect, monkeypatch):
    """The service is away until twenty seconds have been waited; the clock and the sleep are ours."""
    with FlakyServer(DONE) as server:
        pass
    noted, started = [], []

    def sleep(seconds):
        noted.append(seconds)
        if sum(noted) >= 20 and not started:
            started.append(FlakyServer(DONE, port=int(server.url.rsplit(":")[-1])))

    async def sleep_too(seconds):
        sleep(seconds)

    monkeypatch.setattr(senders, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: sum(noted)))
    monkeypatch.setattr(senders, "asyncio", SimpleNamespace(sleep=sleep_too, Semaphore=asyncio.Semaphore))
    remote(connect(server.url)).tell("ada", 0.5)
    with started[0]:
        assert 20 <= sum(noted) <= 24 + attempts.FIRST_WAIT
        assert len(started[0].received) == 1


def test_time_before_the_first_failure_is_not_held_against_the_call(connect, monkeypatch):
    now = [0.0]

    def answers(*_):
        now[0] += 40
        return now[0]

    monkeypatch.setattr(senders, "time", SimpleNamespace(sleep=lambda seconds: None, monotonic=answers))
    monkeypatch.setattr(senders, "asyncio", SimpleNamespace(sleep=asyncio.sleep, Semaphore=asyncio.Semaphore))
    monkeypatch.setattr(attempts.random, "uniform", lambda low, high: 0.0)
    with FlakyServer(OVERLOADED, DONE) as server:
        remote(connect(server.url)).tell("ada", 0.5)
        assert len(server.received) == 2


def test_a_call_is_not_retried_earlier_than_the_server_asks_nor_later_than_the_caller_allows(connect, waits):
    with FlakyServer(answer(503, REFUSED, error="StoreUnavailable", Retry_After="20"), DONE) as server:
        with pytest.raises(eq.StoreUnavailable):
            remote(connect(server.url, retry_seconds=10)).tell("ada", 0.5)
        assert (len(server.received), waits) == (1, [])
    with FlakyServer(OVERLOADED, DONE) as server:
        with pytest.raises(eq.StoreUnavailable):
            remote(connect(server.url, retry_seconds=0)).tell("ada", 0.5)
        assert (len(server.received), waits) == (1, [])


@pytest.fixture(scope="module")
def self_made_certificate(tmp_path_factory):
    need("openssl")
    folder = tmp_path_factory.mktemp("certificate")
    made = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 1 -subj /CN=localhost"
    subprocess.run(["openssl", *made.split()], cwd=folder, check=True, capture_output=True)  # noqa: S607
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context


def test_a_certificate_that_nobody_trusts_is_told_at_once(connect, waits, self_made_certificate):
    with FlakyServer(DONE, tls=self_made_certificate) as server:
        with pytest.raises(eq.StoreUnavailable, match="cannot be reached") as raised:
            remote(connect(server.url, KEY)).status()
        assert (server.n_connections, server.received, waits) == (1, [], [])
    assert "certificate" in raised.value.hint


def test_waits_grow_and_are_spread(connect, waits, monkeypatch):
    spans = []
    monkeypatch.setattr(attempts.random, "uniform", lambda low, high: spans.append((low, high)) or high)
    with FlakyServer(RESET) as server, pytest.raises(eq.StoreUnavailable):
        remote(connect(server.url, attempts=9, retry_seconds=600)).status()
    assert spans == [(0, longest) for longest in (0.25, 0.5, 1, 2, 4, 4, 4, 4)]
    assert waits == [high for _, high in spans]


@pytest.mark.parametrize(
    ("advice", "least"),
    [("3", 3), ("0", 0), ("86400", 30), ("soon", 0), ("nan", 0), ("-5", 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_the_advice_of_an_overloaded_server_is_followed_within_reason(connect, waits, advice, least):
    with FlakyServer(answer(503, REFUSED, error="StoreUnavailable", Retry_After=advice), DONE) as server:
        remote(connect(server.url)).tell("ada", 0.5)
    assert len(waits) == 1
    assert least <= waits[0] <= least + attempts.FIRST_WAIT


def test_a_store_of_another_version_is_told_at_once(connect, waits):
    with FlakyServer(answer(503, REFUSED, error="UpgradeNeeded")) as server, pytest.raises(eq.UpgradeNeeded):
        remote(connect(server.url)).status()
    assert waits == []


def test_a_new_experiment_is_known_again_after_a_lost_answer(connect, waits):
    settings = {"arms": ["a", "b"], "policy": eq.Uniform()}
    made = {"name": "exam", "state": "enrolling"}
    with FlakyServer(RESET, answer(200, made)) as server:
        assert connect(server.url).create("exam", **settings).name == "exam"
        bodies = [json.loads(one.body) for one in server.received]
    assert bodies[0] == bodies[1]
    assert bodies[0]["seed"] >= 0  # drawn here, so that the server can tell a repetition from another experiment
    with FlakyServer(answer(200, made)) as server, pytest.raises(eq.ExperimentExists, match="'exam' already"):
        connect(server.url).create("exam", seed=1, **settings)


def test_a_new_experiment_is_known_by_its_seed_if_a_proxy_sent_it_twice(connect, waits):
    with FlakyServer(answer(200, {"name": "exam", "state": "enrolling"})) as server:
        made = connect(server.url).create("exam", arms=["a", "b"], policy=eq.Uniform())
    assert (made.name, len(server.received), waits) == ("exam", 1, [])


def test_a_client_works_after_a_fork():
    script = """
import os, sys, equipoise as eq
client = eq.Client(sys.argv[1], attempts=1)
experiment, pool = client.open("exam"), client._transport._http
child = os.fork()
reward = experiment.tell("ada", 0.5).reward
print(reward, client._transport._http is pool, flush=True)
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    with FlakyServer(DONE) as server:
        command = [sys.executable, "-W", "ignore", "-c", script, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    # Both processes on the connections of one would mix their answers up.
    assert sorted(done.stdout.splitlines()) == ["0.5 False", "0.5 True"]


def test_threads_share_a_client():
    with FlakyServer(DONE) as server, Client(server.url) as client:
        found = []
        threads = [threading.Thread(target=lambda: found.append(remote(client).tell("ada", 0.5))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [ToldReward(**TOLD)] * 8


@pytest.mark.parametrize("kind", KINDS)
def test_waiting_for_a_turn_is_no_reason_to_give_up(kind, monkeypatch):
    monkeypatch.setattr(senders, "CONNECTIONS", 1)

    def all_at_once(server):
        with Client(server.url, timeout_seconds=0.5, attempts=1) as client, ThreadPoolExecutor(12) as pool:
            return list(pool.map(lambda i: remote(client).tell("ada", 0.5), range(12)))

    async def all_awaited(server):
        async with AsyncClient(server.url, timeout_seconds=0.5, attempts=1) as client:
            tells = (AsyncRemoteExperiment(client, "exam").tell("ada", 0.5) for _ in range(12))
            return await asyncio.gather(*tells)

    with FlakyServer(DONE, seconds=0.1) as server:
        told = all_at_once(server) if kind == "sync" else asyncio.run(all_awaited(server))
    assert told == [ToldReward(**TOLD)] * 12


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["RewardConflict", "UnknownUnit", "InvalidInput", "NotAllowed", "VerificationFailed", "MissingExtra"]
)
def test_errors_are_those_of_an_experiment(connect, name):
    body = {"error": "no such thing", "hint": "look again"}
    with FlakyServer(answer(409, body, error=name)) as server, pytest.raises(getattr(eq, name)) as raised:
        remote(connect(server.url)).tell("ada", 0.5)
    assert type(raised.value).__name__ == name
    assert (raised.value.message, raised.value.hint) == ("no such thing", "look again")


@pytest.mark.parametrize("name", ["SystemExit", "visible", "annotations", "__class__", "Nonsense"])
def test_a_header_names_errors_only(connect, name):
    with FlakyServer(answer(409, REFUSED, error=name)) as server, pytest.raises(eq.ServiceError, match="409"):
        remote(connect(server.url)).tell("ada", 0.5)


@pytest.mark.parametrize("body", [b"<html>Welcome!</html>", b"[]", b'{"unit": "ada"}', b"\xff"])
def test_an_answer_that_makes_no_sense_is_told(connect, body):
    with FlakyServer(answer(200, body)) as server, pytest.raises(eq.ServiceError, match=f"{server.url} answered some"):
        remote(connect(server.url)).tell("ada", 0.5)


def test_a_redirection_is_told_and_not_followed(connect):
    moved = answer(301, b"", Location="https://example.org/x")
    with FlakyServer(moved) as server, pytest.raises(eq.ServiceError) as raised:
        remote(connect(server.url, KEY)).status()
    assert "https://example.org/x" in raised.value.hint


def test_control_characters_of_a_server_are_shown_and_not_obeyed(connect):
    with FlakyServer(answer(418, b"\x1b[31mred")) as server, pytest.raises(eq.ServiceError) as raised:
        remote(connect(server.url)).status()
    assert "\\x1b[31mred" in str(raised.value)


NOTHING_SENT = {
    "unit must be text": lambda one: one.ask(7),
    "unit must not be blank": lambda one: one.tell("  ", 1),
    "attributes must be a dictionary": lambda one: one.ask("ada", [1]),
    "reward must be finite": lambda one: one.tell("ada", float("nan")),
    "reward must be a number": lambda one: one.tell_many({"ada": 1, "bob": "much"}),
    "rewards must be pairs": lambda one: one.tell_many(["ada"]),
    "units must be a list": lambda one: one.ask_many("ada"),
    "reason must not be empty": lambda one: one.correct("ada", 1, ""),
    "reward_weight must be in": lambda one: one.change_weight(1.3),
    "floor must be in": lambda one: one.add_arm("new", floor=2),
    "points must be": lambda one: one.history(0),
    "after must be": lambda one: next(one.events(-1)),
    "must end in .csv": lambda one: one.export("table.txt"),
    "needs a format": lambda one: one.export(io.StringIO()),
    "opened as text": lambda one: one.export(io.BytesIO(), "csv"),
    "does not exist": lambda one: one.export("nowhere/table.csv"),
}


@pytest.mark.parametrize("message", NOTHING_SENT)
def test_what_is_wrong_at_first_sight_is_not_sent(connect, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    local = eq.Experiment.create("memory:", "exam", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5))
    local.ask_many(["ada", "bob"])
    with FlakyServer(DONE) as server:
        with pytest.raises(eq.InvalidInput, match=message) as raised:
            NOTHING_SENT[message](remote(connect(server.url)))
        assert server.received == []
    with pytest.raises(eq.InvalidInput) as expected:
        NOTHING_SENT[message](local)
    assert re.sub("0x[0-9a-f]+", "", str(raised.value)) == re.sub("0x[0-9a-f]+", "", str(expected.value))


# --- what is sent -----------------------------------------------------------------------------------------------------


def test_names_cannot_be_taken_for_parts_of_a_path(connect):
    with FlakyServer(DONE) as server:
        client = connect(f"{server.url}/under/here/")
        for name, unit in (("a/b", "x?y#z"), ("50%", "%2F"), ("..", "."), ("été ☃", "a b")):
            remote(client, name).tell(unit, 0.5)
    assert [one.line.split()[1] for one in server.received] == [
        "/under/here/experiments/a%2Fb/assignments/x%3Fy%23z/reward",
        "/under/here/experiments/50%25/assignments/%252F/reward",
        "/under/here/experiments/%2E%2E/assignments/%2E/reward",
        "/under/here/experiments/%C3%A9t%C3%A9%20%E2%98%83/assignments/a%20b/reward",
    ]


def test_long_lists_are_sent_in_groups(connect):
    with FlakyServer(answer(200, {"rewards": [TOLD]})) as server:
        told = remote(connect(server.url)).tell_many((f"unit-{i}", i) for i in range(2_500))
        assert len(told) == 3
        groups = [json.loads(one.body)["rewards"] for one in server.received]
    assert [len(group) for group in groups] == [1000, 1000, 500]
    assert [one["reward"] for group in groups for one in group] == list(range(2_500))


def test_groups_stay_small_enough_for_a_proxy(connect):
    one = {"unit": "ada", "arm": "line", "number": 0, "probability": 1.0, "forced": True}
    made = one | {"at": "2027-01-01T00:00:00+00:00", "new": True}
    with FlakyServer(answer(200, {"assignments": [made]})) as server:
        remote(connect(server.url)).ask_many([(f"unit-{i}", {"note": "x" * 9_000}) for i in range(200)])
    assert sum(len(json.loads(one.body)["units"]) for one in server.received) == 200
    assert len(server.received) == 4
    assert max(len(one.body) for one in server.received) <= http_backend.MOST_BYTES + 1_000


def test_nothing_is_sent_for_nobody(connect):
    with FlakyServer(DONE) as server:
        assert remote(connect(server.url)).ask_many([]) == remote(connect(server.url)).tell_many({}) == []
        assert server.received == []


# --- keys and addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_key_is_shown_nowhere(kind):
    client = kind("https://example.org", KEY)
    assert repr(client) == f"{kind.__name__}('https://example.org')"
    assert "verysecret" not in repr(vars(client)) + repr(vars(client._transport)) + repr(client._transport.settings)


@pytest.mark.parametrize("key", ["", "  ", "verysecret\nX-Evil: 1", "verysecret key", "verysecreté", 7, b"verysecret"])
def test_a_key_that_is_none_is_refused_without_being_shown(key):
    with pytest.raises(eq.InvalidInput, match="key must be text") as raised:
        Client("https://example.org", key)
    assert "verysecret" not in str(raised.value)


def test_the_line_break_at_the_end_of_a_file_is_no_part_of_a_key(connect):
    with FlakyServer(DONE) as server:
        remote(connect(server.url, f"{KEY}\n")).tell("ada", 0.5)
    assert server.received[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org",
        "http://",
        "https://example.org?x=1",
        "http://[",
        "http://x:70000",
        7,
        None,
    ],
)
def test_an_address_must_be_one(url):
    with pytest.raises(eq.InvalidInput, match="url must be the address of a service"):
        Client(url)


@pytest.mark.parametrize("url", ["http://ana:verysecret@example.org", "http://ana:verysecret@exam ple.org:x"])
def test_an_address_with_a_password_is_refused_without_showing_it(url):
    with pytest.raises(eq.InvalidInput, match="url") as raised:
        Client(url)
    assert "verysecret" not in str(raised.value)


@pytest.mark.parametrize("setting", [{"timeout_seconds": 0}, {"attempts": 0}, {"timeout_seconds": "long"}])
def test_settings_are_checked(setting):
    with pytest.raises(eq.InvalidInput, match=next(iter(setting))):
        Client("https://example.org", **setting)


def test_a_key_sent_in_the_open_is_warned_of():
    with pytest.warns(UserWarning, match=r"sent to example\.org unencrypted") as caught:
        Client("http://example.org", KEY)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for url, key in (("https://example.org", KEY), ("http://localhost:1", KEY), ("http://example.org", None)):
            Client(url, key)


# --- export -----------------------------------------------------------------------------------------------------------

TABLE = b"decision,unit\n0,ada\n1,\xc3\xa9t\xc3\xa9\n"


def test_an_export_is_tried_again_before_its_first_byte(connect, waits, tmp_path):
    head = answer(200, TABLE)[: -len(TABLE)]
    with FlakyServer(RESET, OVERLOADED, head, answer(200, TABLE)) as server:
        assert remote(connect(server.url)).export(tmp_path / "table.csv") == 2
    assert (tmp_path / "table.csv").read_bytes() == TABLE
    assert len(waits) == 3
    assert {one.line.split()[1] for one in server.received} == {"/experiments/exam/export?format=csv"}


def test_an_export_that_breaks_off_leaves_the_file_that_was_there(connect, waits, tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("before")
    with FlakyServer(half(answer(200, TABLE)), answer(200, TABLE)) as server:
        with pytest.raises(eq.StoreUnavailable, match="broke off in the middle"):
            remote(connect(server.url)).export(target)
        assert len(server.received) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]
    assert target.read_text() == "before"


def test_an_export_that_is_refused_leaves_the_file_that_was_there(connect, tmp_path):
    target = tmp_path / "table.parquet"
    target.write_text("before")
    refusal = answer(501, REFUSED, error="MissingExtra")
    with FlakyServer(refusal) as server, pytest.raises(eq.MissingExtra, match="too much to do"):
        remote(connect(server.url)).export(target)
    assert [one.name for one in tmp_path.iterdir()] == ["table.parquet"]
    assert target.read_text() == "before"


def test_an_export_goes_to_an_open_file_too(connect):
    with FlakyServer(answer(200, TABLE)) as server:
        text = io.StringIO()
        assert remote(connect(server.url)).export(text, "csv") == 2
        assert text.getvalue() == TABLE.decode()


def test_a_table_in_parquet_is_handed_over_whole(connect, waits):
    made = io.BytesIO()
    polars.DataFrame({"unit": ["ada", "bob", "eve"]}).write_parquet(made)
    table = io.BytesIO()
    with FlakyServer(answer(200, made.getvalue())) as server:
        assert remote(connect(server.url)).export(table, "parquet") == 3
    assert table.getvalue() == made.getvalue()
    broken = io.BytesIO()
    with FlakyServer(half(answer(200, made.getvalue()))) as server, pytest.raises(eq.StoreUnavailable):
        remote(connect(server.url)).export(broken, "parquet")
    assert broken.getvalue() == b""


def test_looking_costs_no_httpx():
    code = "import sys, equipoise, equipoise.cli.app; sys.exit('httpx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# --- after the end ----------------------------------------------------------------------------------------------------


def test_a_client_that_was_closed_says_so(tmp_path):
    told = (
        r"^the client must be open; got that of http://127.0.0.1:1, which was closed\n"
        r"hint: make another, or call it inside its `with` block$"
    )
    client = eq.Client("http://127.0.0.1:1", KEY)
    experiment = RemoteExperiment(client, "fractions")
    client.close()
    client.close()  # which is harmless
    for verb in (
        client.list,
        lambda: experiment.ask("ada"),
        lambda: list(experiment.events()),
        lambda: experiment.export(tmp_path / "x.csv"),
    ):
        with pytest.raises(eq.InvalidInput, match=told):
            verb()
    assert list(tmp_path.iterdir()) == []


def test_an_asynchronous_client_that_was_closed_says_so(tmp_path):
    async def use():
        async with eq.AsyncClient("http://127.0.0.1:1", KEY) as client:
            experiment = AsyncRemoteExperiment(client, "fractions")
        for verb in (client.list(), experiment.ask("ada"), experiment.export(tmp_path / "x.csv")):
            with pytest.raises(eq.InvalidInput, match=r"open; got that of http://127.0.0.1:1, which was closed"):
                await verb

    asyncio.run(use())
    assert list(tmp_path.iterdir()) == []


def test_a_process_forked_from_one_that_closed_its_client_does_not_open_it_again(monkeypatch):
    client = eq.Client("http://127.0.0.1:1", KEY)
    client.close()
    monkeypatch.setattr(senders.os, "getpid", lambda: -1)
    with pytest.raises(eq.InvalidInput, match="which was closed"):
        client.list()
