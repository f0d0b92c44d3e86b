"""The commands on live experiments work on a service as on a database, with a key that nobody gets to see."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from both_clients import serving

import equipoise as eq
from equipoise.client import transport as senders
from equipoise.service.api_keys import create_key


@pytest.fixture(scope="module")
def store_url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('service')}/service.db"


@pytest.fixture(scope="module")
def key(store_url):
    with eq.open_store(store_url) as store:
        return create_key(store, role="admin", name="anna")[1]


@pytest.fixture(scope="module")
def service(store_url, key):
    with serving(store_url) as running:
        yield running


SCRIPT = """
create exam --arms line,pie,none --reward-weight 0.6 --seed 7 --range 0,1 --window 1h --budget 100
create exam --arms line,pie --reward-weight 0.6
create bad --arms line,pie --reward-weight 1.6
create --file study.toml
create --file wrong.toml
list
list --json
ask exam ada
ask exam ada --json
ask exam bob --attributes {"class":"4b"}
ask exam --file units.txt
ask exam --file units.txt --json --quiet
tell exam ada 0.5
tell exam ada 0.7
tell exam nobody 0.7
tell exam --file rewards.csv
tell exam --file wrong.csv
tell exam --file wrong.csv --keep-going --json
correct exam ada 0.25 --reason second-marker
unit exam ada
unit exam ada --json
unit exam nobody
status exam
status exam --json
what-if exam 0.9
outlook exam
outlook exam --json
prices exam
prices exam --all --people-per-day 40
what-if exam 0.9 --json
weight exam 0.7
what-if exam --information-kept 0.7 --json
dial exam --information-kept 0.7 --information-about every-arm
dial exam
dial exam --reward-weight 0.7 --json
arm add exam blocks --floor 0.05
arm pause exam blocks
arm resume exam blocks --json
arm retire exam blocks
arm retire exam nothing
pause exam
ask exam late
resume exam
events exam --last 4
events exam --after 3 --csv
events exam --json
export exam
export exam --json
export exam --out table.csv
export exam --out table.txt
verify exam
verify exam --json
verify exam nothing
rebuild exam
stop exam
finish exam
finish exam --anyway --json
tell exam bob 1
status exam --watch --json
"""


def prepare(folder: Path) -> None:
    (folder / "units.txt").write_text("".join(f"unit-{i}\n" for i in range(700)))
    (folder / "rewards.csv").write_text("unit,reward\n" + "".join(f"unit-{i},{i / 1000}\n" for i in range(650)))
    (folder / "wrong.csv").write_text("unit,reward\nunit-660,1\nstranger,1\nunit-661,0.5\n")
    (folder / "study.toml").write_text('name = "study"\narms = ["a", "b"]\nreward_weight = 0.5\nseed = 1\n')
    (folder / "wrong.toml").write_text('name = "wrong"\narms = ["a", "b"]\n\nreward_weight = 0.5\nwarm_up = -1\n')


def without_times_and_places(text: str, *places: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?", "(time)", text)
    text = re.sub(r'"seconds": [-+.e\d]+', '"seconds": 0', text)
    text = re.sub(r'"last_hash": "\w+"', '"last_hash": ""', text)  # salts are random
    for place in ("the service", *places):
        text = text.replace(place, "(store)")
    return text


def test_every_command_does_on_a_service_what_it_does_on_a_database(
    run, service, key, store_url, tmp_path, monkeypatch
):
    monkeypatch.setattr("getpass.getuser", lambda: "anna")  # as the key is called
    prepare(tmp_path)
    local, codes = f"sqlite:///{tmp_path}/local.db", []
    for line in SCRIPT.strip().splitlines():
        arguments = line.split(" ")
        monkeypatch.setenv("EQUIPOISE_STORE", local)
        expected = run(*arguments)
        table = Path("table.csv").read_text() if "table.csv" in line else ""
        monkeypatch.setenv("EQUIPOISE_STORE", service.url)
        monkeypatch.setenv("EQUIPOISE_KEY", key)
        found = run(*arguments)
        places = (local, service.url, store_url)
        for ours, theirs in zip(found[1:], expected[1:], strict=True):
            assert without_times_and_places(ours, *places) == without_times_and_places(theirs, *places), line
        assert found.code == expected.code, line
        assert key not in found.out + found.err
        if table:
            now = Path("table.csv").read_text()
            assert without_times_and_places(now) == without_times_and_places(table)
        codes.append(found.code)
    assert codes.count(0) == 44
    assert {event.who for event in eq.Experiment.open(store_url, "exam").events()} == {"anna"}


def test_a_key_may_be_given_as_an_option(run, service, key):
    assert run("list", "--store", service.url, "--key", key, "--json").code == 0
    refused = run("list", "--store", service.url, "--key", "eq_wrong_verysecret")
    assert (refused.code, refused.out) == (1, "")
    assert "verysecret" not in refused.err
    assert run("list", "--store", service.url).err.startswith("error: ")
    assert run("list", "--store", service.url, "--key", "very secret").err == (
        "error: --key must be text as `equipoise keys create` prints it, without blanks\n"
    )


def test_the_help_shows_no_key(run, monkeypatch):
    monkeypatch.setenv("EQUIPOISE_KEY", "eq_1_verysecret")
    text = run("ask", "--help").out
    assert "--key" in text
    assert "verysecret" not in text


def test_who_did_it_is_up_to_the_key(run, service, key):
    refused = run("pause", "exam", "--store", service.url, "--key", key, "--who", "ben")
    assert refused.code == 2
    assert "a service writes the name of the key" in refused.err


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["copy", "--to", "sqlite:///x.db", "--store"], "works on"),
        (["copy", "--to"], "--to must be"),
        (["upgrade", "--store"], "works on"),
    ],
)
def test_what_needs_a_database_says_so(run, arguments, what):
    eq.open_store("sqlite:///equipoise.db").close()
    result = run(*arguments, "http://127.0.0.1:1")
    assert result.code == 2
    assert f"{what} a database; got the address of a service" in result.err


def test_a_service_that_is_not_there_is_told(run, monkeypatch):
    waits = []
    monkeypatch.setattr(senders, "time", SimpleNamespace(sleep=waits.append, monotonic=lambda: sum(waits)))
    result = run("status", "exam", "--store", "http://127.0.0.1:1", "--key", "eq_1_verysecret")
    assert result.code == 1
    assert sum(waits) == pytest.approx(30)
    note, error, _ = result.err.splitlines()
    assert note.startswith("note: trying again in 0.")
    assert error.startswith("error: http://127.0.0.1:1 cannot be reached: ")
    assert "hint: check the address" in result.err


def test_a_key_sent_in_the_open_is_warned_of(run, monkeypatch):
    waits = []
    monkeypatch.setattr(senders, "time", SimpleNamespace(sleep=waits.append, monotonic=lambda: sum(waits)))
    result = run("status", "exam", "--store", "http://nowhere.invalid", "--key", "eq_1_verysecret")
    assert result.err.startswith("warning: the key is sent to nowhere.invalid unencrypted")
    assert "verysecret" not in result.err


def test_an_assigner_can_feed_files_and_is_told_at_once_what_it_may_not(run, service, store_url, key, tmp_path):
    with eq.open_store(store_url) as store:
        assigner = create_key(store, role="assigner", name="game")[1]
        reader = create_key(store, role="reader", name="report")[1]
    prepare(tmp_path)
    run("create", "fed", "--arms", "a,b", "--reward-weight", "0.5", "--store", service.url, "--key", key)
    arguments = ("ask", "fed", "--file", "units.txt", "--store", service.url, "--key")
    assert run(*arguments, assigner).err.endswith("700 units: 700 assigned now, 0 before\n")
    refused = run(*arguments, reader, "--keep-going", "--quiet")
    assert refused.code == 1
    assert refused.err.count("\n") == 1  # not once for every line of the file
    assert "role" in refused.err


def test_an_ask_is_one_request_also_for_a_key_that_may_only_assign(run, service, store_url, key, monkeypatch):
    with eq.open_store(store_url) as store:
        assigner = create_key(store, role="assigner", name="quiz")[1]
    run("create", "asked", "--arms", "a,b", "--reward-weight", "0.5", "--store", service.url, "--key", key)
    sent, send = [], httpx.Client.send

    def note_and_send(self, request, **more):
        sent.append(request)
        return send(self, request, **more)

    monkeypatch.setattr(httpx.Client, "send", note_and_send)
    assert run("ask", "asked", "ada", "--store", service.url, "--key", assigner).code == 0
    assert [(one.method, one.url.path) for one in sent] == [("POST", "/experiments/asked/assignments")]


def test_the_command_as_a_program(service, key):
    command = [sys.executable, "-m", "equipoise.cli", "list", "--json"]
    environment = {"EQUIPOISE_STORE": service.url, "EQUIPOISE_KEY": key, "PATH": "/usr/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "experiments" in json.loads(done.stdout)
