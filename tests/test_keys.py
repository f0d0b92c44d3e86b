"""Keys to the service: made once, kept as hashes, bound, expiring, revoked; and the commands for them."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from command_runner import Runner

import equipoise as eq
from equipoise.http_api import ADMIN, ASSIGNER, READER
from equipoise.service.api_keys import KeyRing, create_key, list_keys, revoke_key
from equipoise.store import Transaction

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    def __init__(self):
        self.now = NOON

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["memory:", "postgresql"])
def store(request, clock):
    url = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else request.param
    with eq.open_store(url, clock=clock) as store:
        yield store


def ring_of(store):
    ring = KeyRing(store)
    ring.read()
    return ring


def test_a_key_is_listed_with_what_it_was_made_for_and_never_with_its_secret(store):
    until = NOON + timedelta(days=1)
    key, text = create_key(store, role=ASSIGNER, name="web site", experiment="a/b ☃", expires_at=until, who="ada")
    assert (key.name, key.role, key.experiment, key.created_by) == ("web site", "assigner", "a/b ☃", "ada")
    assert (key.created_at, key.expires_at, key.revoked_at, key.last_used_at) == (NOON, until, None, None)
    assert re.fullmatch(rf"eq_{key.id}_[\w-]{{43}}", text)
    assert list_keys(store) == [key]
    assert text not in repr(key) and text.split("_", 2)[2] not in json.dumps(key.to_dict())
    [row] = store.read(lambda transaction: transaction.keys())
    assert row.hash == hashlib.sha256(text.split("_", 2)[2].encode()).hexdigest()


def test_every_key_is_another_one(store):
    made = [create_key(store, role=READER) for _ in range(20)]
    assert len({key.id for key, _ in made}) == len({text.split("_", 2)[2] for _, text in made}) == 20
    assert [key.name for key, _ in made] == [f"reader {key.id}" for key, _ in made]
    assert {key.id for key in list_keys(store)} == {key.id for key, _ in made}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"role": "owner"}, "role"),
        ({"role": None}, "role"),
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"experiment": " a"}, "experiment"),
        ({"expires_at": NOON}, "future"),
        ({"expires_at": datetime(2027, 1, 1)}, "zone"),
        ({"expires_at": "tomorrow"}, "zone"),
        ({"who": "a\0"}, "who"),
    ],
)
def test_what_cannot_be_a_key_is_refused_and_not_made(store, wrong, told):
    with pytest.raises(eq.InvalidInput, match=told):
        create_key(store, **{"role": READER} | wrong)
    assert list_keys(store) == []


def test_a_ring_finds_keys_until_they_expire_or_are_revoked(store, clock):
    lasting, lasting_text = create_key(store, role=ADMIN)
    passing, passing_text = create_key(store, role=READER, expires_at=NOON + timedelta(seconds=10))
    revoked, revoked_text = create_key(store, role=READER)
    ring = ring_of(store)
    assert [ring.find(text) for text in (lasting_text, passing_text, revoked_text)] == [lasting, passing, revoked]
    revoke_key(store, revoked.id)
    assert ring.find(revoked_text) == revoked  # it does not know yet
    ring.read()
    assert ring.find(revoked_text) is None
    clock.now += timedelta(seconds=9.999)
    assert ring.find(passing_text) == passing
    clock.now = NOON + timedelta(seconds=10)
    assert ring.find(passing_text) is None  # without reading anew
    assert ring.find(lasting_text) == lasting
    states = {key.id: key.state(store.now()) for key in list_keys(store)}
    assert states == {lasting.id: "valid", passing.id: "expired", revoked.id: "revoked"}


def test_a_key_is_revoked_whatever_the_clock_that_recorded_it(store, clock):
    key, text = create_key(store, role=READER, expires_at=NOON + timedelta(days=365))
    clock.now += timedelta(days=1)  # a machine whose clock is ahead
    revoke_key(store, key.id)
    clock.now = NOON
    ring = ring_of(store)
    assert ring.find(text) is None
    assert ring.why_not(text).message == f"the key {key.id} is revoked"
    assert list_keys(store)[0].state(clock.now) == "revoked"


def test_a_key_made_by_a_machine_whose_clock_is_ahead_is_valid_at_once(store, clock):
    clock.now += timedelta(days=1)
    key, text = create_key(store, role=READER)
    clock.now = NOON
    assert ring_of(store).find(text) == key


def test_revoking_again_keeps_the_first_instant_and_an_unknown_key_is_told(store, clock):
    key, _ = create_key(store, role=READER)
    first = revoke_key(store, key.id)
    clock.now += timedelta(days=1)
    assert revoke_key(store, key.id).revoked_at == first.revoked_at == NOON
    with pytest.raises(eq.UnknownKey, match="no key 'nobody'"):
        revoke_key(store, "nobody")


def test_what_is_no_key_is_not_found_and_only_its_holder_learns_why(store):
    key, text = create_key(store, role=ADMIN)
    wrong = text[:-1] + ("A" if text[-1] != "A" else "Q")
    ring = ring_of(store)
    assert (ring.find(""), ring.why_not("").message) == (None, "the key is empty")
    for nobody in ("eq_", text[:-1], text + "x", text.upper(), f" {text}", f"{text}\n", wrong, "é" * 60, key.id):
        assert ring.find(nobody) is None
        why = ring.why_not(nobody)
        assert isinstance(why, eq.NotAuthenticated) and why.message == "this is no key of this service"
    assert "needs a key" in ring.why_not(None).message
    revoke_key(store, key.id)
    ring.read()
    assert ring.why_not(text).message == f"the key {key.id} is revoked"
    assert ring.why_not(wrong).message == "this is no key of this service"


def test_a_ring_reads_all_keys_only_when_one_was_made_or_revoked(store, clock, monkeypatch):
    first, first_text = create_key(store, role=READER)
    ring, reads, read = ring_of(store), [], Transaction.keys
    monkeypatch.setattr(Transaction, "keys", lambda transaction: reads.append(1) or read(transaction))
    for _ in range(3):
        ring.read()
    assert (len(reads), ring.find(first_text)) == (0, first)
    second, second_text = create_key(store, role=READER, expires_at=NOON + timedelta(days=1))
    ring.read()
    assert (len(reads), ring.find(second_text)) == (1, second)
    for key, text in ((first, first_text), (second, second_text)):  # at one instant, which the clock stands still at
        revoke_key(store, key.id)
        ring.read()
        assert ring.find(text) is None
        assert ring.why_not(text).message == f"the key {key.id} is revoked"
    assert len(reads) == 3
    with store.database.writing(None) as transaction:  # by hand, which is noticed when uses are written down
        transaction.connection.exec_driver_sql("UPDATE keys SET revoked_at = NULL, role = 'admin'")
    ring.read(note_uses=True)
    assert ring.find(first_text).role == "admin"


def test_one_key_is_looked_up_alone_and_says_why_it_is_not_valid(store, clock):
    ring = ring_of(store)
    made = [create_key(store, role=READER, expires_at=NOON + timedelta(days=1)) for _ in range(3)]
    (key, text), (revoked, revoked_text), (_, other_text) = made
    revoke_key(store, revoked.id)
    nobody = f"eq_{'0' * 12}_{'B' * 43}"
    assert [ring.is_new(one) for one in (text, revoked_text, nobody)] == [True] * 3
    assert [ring.is_new(one) for one in ("x", "", text + "x", text.upper(), key.id)] == [False] * 5
    for one in (text, revoked_text, nobody, "x"):
        ring.look_up(one)
    assert (ring.find(text), ring.find(other_text)) == (key, None)
    assert [ring.is_new(one) for one in (text, revoked_text, other_text)] == [False, False, True]
    assert ring.why_not(revoked_text).message == f"the key {revoked.id} is revoked"
    clock.now += timedelta(days=1)
    assert ring.find(text) is None
    assert ring.why_not(text).message == f"the key {key.id} is expired"


def test_uses_are_written_when_asked_for_and_never_lost(store, clock, monkeypatch):
    _, text = create_key(store, role=READER)
    ring = ring_of(store)
    clock.now += timedelta(minutes=5)
    ring.find(text)
    ring.read()
    assert list_keys(store)[0].last_used_at is None
    with monkeypatch.context() as patch:

        def away(*_):
            raise eq.StoreUnavailable("away")

        patch.setattr(store, "change", away)
        with pytest.raises(eq.StoreUnavailable):
            ring.read(note_uses=True)
    ring.read(note_uses=True)
    assert list_keys(store)[0].last_used_at == NOON + timedelta(minutes=5)
    clock.now -= timedelta(minutes=1)  # another server, whose clock is behind or which writes later
    other = ring_of(store)
    other.find(text)
    other.read(note_uses=True)
    assert list_keys(store)[0].last_used_at == NOON + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("role", "bound", "roles", "experiment", "allowed"),
    [
        (READER, None, (READER, ADMIN), "x", True),
        (READER, None, (READER, ADMIN), None, True),
        (READER, None, (ADMIN,), "x", False),
        (READER, "x", (READER,), "x", True),
        (READER, "x", (READER,), "y", False),
        (READER, "x", (READER,), None, False),
        (READER, "x", (READER,), "X", False),
        (ADMIN, "x", (ADMIN,), "x", True),
        (ASSIGNER, None, (READER, ADMIN), "x", False),
        (ADMIN, None, (), "x", False),
    ],
)
def test_a_key_is_for_its_role_and_its_experiment(role, bound, roles, experiment, allowed):
    with eq.open_store("memory:") as store:
        key, _ = create_key(store, role=role, experiment=bound)
    if allowed:
        key.require(roles, experiment)
    else:
        with pytest.raises(eq.NotAllowed):
            key.require(roles, experiment)


# Commands


@pytest.fixture
def run(monkeypatch, capsys):
    return Runner(monkeypatch, capsys)


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    eq.open_store(url).close()
    return url


def test_the_key_alone_is_on_stdout(run, url):
    made = run("keys", "create", "--role", "assigner", "--name", "web site", "--store", url, "--experiment", "x")
    assert made.code == 0
    with eq.open_store(url) as store:
        [key] = list_keys(store)
        assert ring_of(store).find(made.out.removesuffix("\n")) == key
    assert (key.name, key.role, key.experiment) == ("web site", "assigner", "x")
    assert key.id in made.err and "cannot be shown again" in made.err
    assert made.out.strip() not in made.err


def test_a_public_key_says_its_limits(run, url):
    made = run(
        "keys", "create", "--role", "assigner", "--experiment", "x", "--public", "--limit", "units=50", "--store", url
    )
    assert made.code == 0 and "20,000 requests/h, 20,000,000 bytes/h, 50 units/h" in made.err
    assert run("keys", "create", "--role", "admin", "--public", "--store", url).code != 0
    with eq.open_store(url) as store:
        assert len(list_keys(store)) == 1


@pytest.mark.parametrize(("text", "seconds"), [("90d", 90 * 86_400), ("12h", 43_200), ("30m", 1_800)])
def test_a_key_expires_after_a_duration(run, url, text, seconds):
    made = run.data("keys", "create", "--role", "reader", "--store", url, "--expires", text)
    lasts = datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"])
    assert abs(lasts.total_seconds() - seconds) < 60


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2127-06-30T18:00+02:00", "2127-06-30T16:00:00+00:00"), ("2127-06-30", "2127-06-30T00:00:00+00:00")],
)
def test_a_key_expires_at_an_instant(run, url, text, expected):
    assert run.data("keys", "create", "--role", "reader", "--store", url, "--expires", text)["expires_at"] == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--role", "owner"], "role"),
        (["--role", "reader", "--expires", "soon"], "soon"),
        (["--role", "reader", "--expires", "2020-01-01"], "future"),
        (["--role", "reader", "--expires", "99999999999999d"], "99999999999999d"),
        (["--role", "reader", "--name", ""], "name"),
        (["--role", "reader", "--store", "http://localhost:1"], "the address of a service"),
        ([], "--role"),
    ],
)
def test_a_key_that_cannot_be_made_is_told(run, url, arguments, told):
    store = [] if "--store" in arguments else ["--store", url]
    done = run("keys", "create", *arguments, *store)
    assert done.code in (1, 2) and done.out == ""
    assert told in done.err


@pytest.mark.parametrize("arguments", [["--role", "king"], ["--role", "admin", "--expires", "soon"]])
def test_a_key_that_cannot_be_made_makes_no_file(run, tmp_path, arguments):
    assert run("keys", "create", *arguments, "--store", f"sqlite:///{tmp_path}/x.db").code == 2
    assert list(tmp_path.iterdir()) == []


def test_keys_are_listed_with_their_state_and_revoked_by_id_or_whole(run, url):
    first = run.data("keys", "create", "--role", "admin", "--store", url, "--name", "the office")
    second = run.data("keys", "create", "--role", "reader", "--store", url)
    listed = run("keys", "list", "--store", url)
    assert listed.code == 0 and first["id"] in listed.out and "the office" in listed.out
    assert first["key"] not in listed.out and first["key"].split("_", 2)[2] not in listed.out
    revoked = run("keys", "revoke", first["id"], "--store", url)
    assert revoked.code == 0 and "the office" in revoked.out + revoked.err
    assert run.data("keys", "revoke", second["key"], "--store", url)["id"] == second["id"]
    states = {one["id"]: one["state"] for one in run.data("keys", "list", "--store", url)["keys"]}
    assert states == {first["id"]: "revoked", second["id"]: "revoked"}
    unknown = run("keys", "revoke", "nobody", "--store", url)
    assert unknown.code == 1  # as for an experiment that is not there; 2 is for options
    assert unknown.err == f"error: {url} has no key 'nobody'\nhint: equipoise keys list shows those it has\n"


def test_listing_makes_no_database(run, tmp_path):
    done = run("keys", "list", "--store", f"sqlite:///{tmp_path}/none.db")
    assert done.code in (1, 2)
    assert not (tmp_path / "none.db").exists()


def test_a_store_without_keys_says_how_to_make_one(run, url):
    eq.open_store(url).close()
    done = run("keys", "list", "--store", url)
    assert done.code == 0 and "equipoise keys create" in done.err
