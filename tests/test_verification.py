"""What `verify` proves, and what a running process does when its store is no longer the one it knew."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from service_api import Api
from service_runner import serving_here

import equipoise as eq
from equipoise.experiment import hash_chain
from equipoise.service import Settings
from equipoise.store.schema import REVISION

DATA = Path(__file__).parent / "data"
UNITS = [f"unit-{number:02}" for number in range(40)]


def create(store, name="x", **settings):
    settings = {"policy": eq.ForcingBalance(reward_weight=0.5, tracking="windowed"), "seed": 1} | settings
    return eq.Experiment.create(store, name, arms=["a", "b", "c"], **settings)


def fill(experiment, units=UNITS):
    for number, unit in enumerate(units):
        experiment.ask(unit, {"class": "4b"})
        if number % 3:
            experiment.tell(unit, number / 40)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x.db"


@pytest.fixture
def url(path):
    return f"sqlite:///{path}"


def change(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def put_back(backup, path):
    """Replace the content of a store by that of a backup, as an operator would under running processes."""
    with contextlib.closing(sqlite3.connect(backup)) as source, contextlib.closing(sqlite3.connect(path)) as target:
        source.backup(target)


@pytest.mark.parametrize("kind", [eq.ForcingBalance, eq.PooledBalance])
def test_decisions_with_a_floor_that_decreases_replay(url, kind):
    policy = kind(reward_weight=0.95, floor=0.25, floor_decay=0.2, tracking="windowed", forcing=0.1)
    with eq.open_store(url) as store:
        experiment = create(store, policy=policy)
        fill(experiment)
        experiment.verify()
    with eq.open_store(url) as store:
        assert eq.Experiment.open(store, "x").configuration.policy == policy


# --- the hash chain ---------------------------------------------------------------------------------------------------


def test_the_chain_covers_every_event_and_its_last_hash_stands_for_the_log(url):
    experiment = create(url)
    fill(experiment)
    found = experiment.verify()
    assert found.n_chained == found.n_events
    assert len(found.last_hash) == 32
    experiment.ask("one more")
    assert experiment.verify().last_hash != found.last_hash


def test_a_hash_is_a_wire_format():
    event = (7, "assigned", 1_789_000_000_000_000, "ann", "ada", 1, 3, None, 0.25, 0, None, None, '{"attributes": {}}')
    first = hash_chain._hash(None, event, b"01234567", None)
    assert first.hex() == "c00661c74a74e571d40c28ef22474c34"
    told = (8, "rewarded", 1_789_000_000_000_001, None, "ada", 1, 3, -0.0, None, None, 1, None, None)
    assert hash_chain._hash(first, told, None, None).hex() == "1277f2e92ccdfa500da8b2e9ec0230c6"
    assert hash_chain._hash(first, (*told[:7], 0.0, *told[8:]), None, None).hex() == "1277f2e92ccdfa500da8b2e9ec0230c6"
    solved = hash_chain._hash(None, event, b"01234567", None, 0.875)
    assert solved.hex() == "9d4854ec3b755afd271ab8c87fabbc35"


@pytest.mark.parametrize(
    "change_of",
    [
        "who = 'eve'",
        "at = at + 1",
        'details = \'{"attributes": {"class": "5a"}}\'',
        "salt = x'0000000000000000'",
        "hash = NULL",
        "commitment = x'00', salt = NULL",
    ],
)
def test_a_changed_event_is_named(url, path, change_of):
    experiment = create(url)
    fill(experiment)
    number = next(event.number for event in experiment.events() if event.unit == "unit-07")
    change(path, f"UPDATE events SET {change_of} WHERE number = {number}")  # noqa: S608
    with pytest.raises(eq.VerificationFailed, match=f"event {number} does not fit its hash") as failed:
        experiment.verify()
    assert failed.value.event == number


def test_the_chain_covers_a_weight_that_was_solved_for(url, path):
    """Also where the replay does not look at it: at an event that is no decision."""
    experiment = create(url, policy=eq.ForcingBalance(information_kept=0.6, tracking="windowed"))
    fill(experiment)
    number = next(event.number for event in experiment.events() if event.kind == "rewarded")
    change(path, f"UPDATE events SET reward_weight = 0.5 WHERE number = {number}")  # noqa: S608
    with pytest.raises(eq.VerificationFailed, match=f"event {number} does not fit its hash"):
        experiment.verify()


def test_the_chain_of_schema_3_holds_after_its_upgrade(path, url):
    """Hashes of events without a weight are what they were before there was one."""
    from equipoise.store import upgrade

    shutil.copy(DATA / "schema_3.db", path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        before = dict(connection.execute("SELECT name, hash FROM experiments"))
    assert upgrade(url) == ("3", REVISION)
    for name in before:
        found = eq.Experiment.open(url, name).verify()
        assert (found.n_chained, found.last_hash) == (found.n_events, before[name].hex())
    experiment = eq.Experiment.open(url, "recommended")
    fill(experiment, [f"later-{number}" for number in range(10)])
    experiment.verify()
    assert {event.reward_weight for event in experiment.events()} == {None}


def test_a_missing_end_is_noticed(url, path):
    experiment = create(url, policy=eq.Uniform())
    experiment.ask("ada")
    before = experiment.verify().last_hash
    experiment.pause()
    change(
        path,
        "DELETE FROM events WHERE kind = 'paused'",
        "UPDATE experiments SET n_events = n_events - 1, state = 'enrolling'",
    )
    with pytest.raises(eq.VerificationFailed, match="its end is missing"):
        experiment.verify()
    change(path, f"UPDATE experiments SET hash = x'{before}'")  # noqa: S608
    assert experiment.verify().last_hash == before


def test_a_wrong_row_of_the_experiment_is_rebuilt_from_the_log(url, path):
    with eq.open_store(url) as store:
        fill(create(store))
    for damage in ("hash = x'00', n_decisions = 7", "hash = x'00'"):
        change(path, f"UPDATE experiments SET {damage}")  # noqa: S608
        with eq.open_store(url) as store:
            experiment = eq.Experiment.open(store, "x")
            with pytest.raises(eq.VerificationFailed):
                experiment.verify()
            assert experiment.rebuild()
            experiment.verify()
            experiment.ask(f"after {damage[:4]} {experiment.status().n_events}")
            experiment.verify()


@pytest.mark.parametrize("schema", ["schema_1", "schema_2"])
def test_the_chain_of_an_older_experiment_begins_with_its_next_event(schema, path, url):
    from equipoise.store import upgrade

    shutil.copy(DATA / f"{schema}.db", path)
    upgrade(url)
    old = eq.Experiment.open(url, "old")
    found = old.verify()
    assert (found.n_chained, found.last_hash) == (0, None)
    old.ask("new")
    found = old.verify()
    assert found.n_chained == 1 and found.last_hash is not None
    change(path, "UPDATE experiments SET chained_from = chained_from + 1 WHERE name = 'old'")
    with pytest.raises(eq.VerificationFailed, match="does not fit its hash"):
        old.verify()


def test_a_copy_keeps_the_chain(url, tmp_path):
    experiment = create(url)
    fill(experiment)
    copied = experiment.copy_to(f"sqlite:///{tmp_path / 'copy.db'}")
    assert copied.verify().last_hash == experiment.verify().last_hash
    copied.ask("one more")
    copied.verify()


# --- erasing ----------------------------------------------------------------------------------------------------------


def test_what_is_erased_is_in_no_file_of_the_store(url, path):
    """Neither in free space, nor in the write-ahead log, nor as a row of units that wait for their reward."""
    missing = eq.DefaultReward(value=0.0, window_seconds=1e6)
    with eq.open_store(url) as store:
        experiment = create(store, missing=missing)
        fill(experiment)
        experiment.ask("zoe@school.example", {"teacher": "Quentin"})
        experiment.withdraw("zoe@school.example", "Quentin said so")
        experiment.erase("zoe@school.example")
        for file in path.parent.glob("x.db*"):
            content = file.read_bytes()
            assert b"zoe@school" not in content
            assert b"Quentin" not in content
        assert experiment.ask("unit-01").new is False
        experiment.verify()


def test_a_unit_of_a_finished_experiment_can_be_erased(url):
    experiment = create(url)
    fill(experiment)
    experiment.finish()
    before = experiment.status().average_reward
    experiment.erase("unit-07")
    assert experiment.unit("unit-07") is None
    assert experiment.status().average_reward == before
    experiment.verify()


# --- stickiness -------------------------------------------------------------------------------------------------------


def test_one_flipped_bit_of_a_unit_is_found_wherever_it_is(url, path):
    with eq.open_store(url) as store:
        experiment = create(store)
        fill(experiment)
    whole = path.read_bytes()
    places = []
    at = whole.find(b"unit-07")
    while at >= 0:
        places.append(at)
        at = whole.find(b"unit-07", at + 1)
    assert len(places) >= 4  # two events, each in the table and in the index
    for place in places:
        damaged = bytearray(whole)
        damaged[place + 6] ^= 1
        path.write_bytes(damaged)
        with eq.open_store(url) as store, pytest.raises((eq.VerificationFailed, eq.StoreMismatch)):
            eq.Experiment.open(store, "x").verify()
    path.write_bytes(whole)
    with eq.open_store(url) as store:
        eq.Experiment.open(store, "x").verify()


LATER = [f"later-{number}" for number in range(10)]


def page_of_units(path):
    """Return where the file has the index of units, which fits into one page, and what it has there now."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'one_event_of_a_kind_per_unit'")
        [(size,)] = connection.execute("PRAGMA page_size")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    place = (page - 1) * size
    return place, path.read_bytes()[place : place + size]


def miss_units(url, path):
    """Assign units that the index of units does not have: on SQLite as in a torn copy of the file."""
    if url.startswith("sqlite"):
        place, before = page_of_units(path)
        with eq.open_store(url) as store:
            eq.Experiment.open(store, "x").ask_many(LATER)
        assert page_of_units(path)[1] != before
        with path.open("r+b") as file:
            file.seek(place)
            file.write(before)
        return
    index = "indexrelid = 'one_event_of_a_kind_per_unit'::regclass"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"UPDATE pg_index SET indisready = false WHERE {index}")  # noqa: S608
        with eq.open_store(url) as store:
            eq.Experiment.open(store, "x").ask_many(LATER)
        connection.execute(f"UPDATE pg_index SET indisready = true WHERE {index}")  # noqa: S608


@pytest.fixture(params=["sqlite", "postgresql"])
def damaged(request, tmp_path):
    """The URL of a store whose index misses units that were assigned."""
    path = tmp_path / "x.db"
    is_file = request.param == "sqlite"
    url = f"sqlite:///{path}" if is_file else request.getfixturevalue("postgresql_url")
    with eq.open_store(url) as store:
        create(store).ask_many(UNITS[:20])
    miss_units(url, path)
    return url


def test_sqlite_itself_finds_an_index_that_misses_units(url, path):
    with eq.open_store(url) as store:
        create(store).ask_many(UNITS[:20])
    miss_units(url, path)
    with eq.open_store(url) as store, pytest.raises(eq.VerificationFailed, match=r"is damaged: .*index") as failed:
        eq.Experiment.open(store, "x").verify()
    assert "backup" in failed.value.hint


def amcheck(code, message):
    """Return the statements that make what looks like the extension, in a schema that is not in our search path."""
    body = f"BEGIN IF $2 THEN RAISE EXCEPTION '%', '{message}' USING ERRCODE = '{code}'; END IF; END"
    return (
        'CREATE SCHEMA "Elsewhere"',
        f'CREATE FUNCTION "Elsewhere".bt_index_check(regclass, boolean) RETURNS void LANGUAGE plpgsql AS $${body}$$',
        "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion) "
        "SELECT 1, 'amcheck', 10, oid, true, '1.3' FROM pg_namespace WHERE nspname = 'Elsewhere'",
    )


@pytest.mark.parametrize(
    ("code", "error"),
    [("XX002", eq.VerificationFailed), ("XX001", eq.VerificationFailed), ("57P01", eq.StoreUnavailable)],
)
def test_postgresql_is_asked_for_damaged_indexes_where_it_can_tell(own_postgresql, code, error):
    """The server that comes with the tests has no amcheck."""
    name = f"amcheck_{code.lower()}"
    with psycopg.connect(own_postgresql.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = str(sa.make_url(own_postgresql.get_uri()).set(database=name))
    with eq.open_store(url) as store:
        experiment = create(store)
        experiment.verify()
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in amcheck(code, "heap tuple lacks matching index tuple"):
                connection.execute(statement)
        with pytest.raises(error, match="heap tuple lacks matching index tuple"):
            experiment.verify()


def test_units_that_the_index_misses_are_found_without_the_check_of_the_database(damaged, monkeypatch):
    with eq.open_store(damaged) as store:
        monkeypatch.setattr(store.database, "check_integrity", lambda transaction: None)
        experiment = eq.Experiment.open(store, "x")
        with pytest.raises(eq.VerificationFailed, match=r"the index of units does not find .* unit 'later-0'"):
            experiment.verify()
        assert experiment.ask("later-3").new  # what the check is for
        with pytest.raises(eq.VerificationFailed, match="unit 'later-3' was assigned twice"):
            experiment.verify()


def test_a_value_of_the_wrong_type_is_damage(url, path):
    """SQLite keeps any value in any column; one flipped bit makes a text of a number."""
    with eq.open_store(url) as store:
        experiment = create(store)
        fill(experiment)
        number = next(event.number for event in experiment.events() if event.kind == "rewarded")
    whole = path.read_bytes()
    for damage in ("counted = ''", "arm = x''", "reward = 'high'", "salt = 7", "unit = x'ff'"):
        change(path, f"UPDATE events SET {damage} WHERE number = {number}")  # noqa: S608
        with eq.open_store(url) as store, pytest.raises(eq.VerificationFailed, match=f"event {number} "):
            eq.Experiment.open(store, "x").verify()
        path.write_bytes(whole)
    change(path, f"UPDATE events SET details = CAST(x'7b80227d' AS TEXT) WHERE number = {number}")  # noqa: S608
    with eq.open_store(url) as store, pytest.raises(eq.StoreMismatch, match="a text that is not UTF-8") as refused:
        eq.Experiment.open(store, "x").verify()
    assert "\x80" not in repr(refused.value.__cause__) and "\ufffd" not in str(refused.value.__cause__)
    path.write_bytes(whole)
    change(path, "UPDATE arms SET held = '' WHERE position = 1")
    with eq.open_store(url) as store:
        experiment = eq.Experiment.open(store, "x")
        for read in (experiment.verify, experiment.status):
            with pytest.raises(eq.StoreMismatch, match="the arms of experiment 'x' are damaged"):
                read()
        assert experiment.rebuild()
        experiment.verify()


def test_events_of_a_unit_without_its_assignment_say_that_the_store_is_damaged(url, path):
    experiment = create(url)
    fill(experiment)
    change(path, "UPDATE events SET unit = 'other' WHERE unit = 'unit-07' AND kind = 'assigned'")
    with pytest.raises(eq.StoreMismatch, match=r"no assignment of unit 'unit-07'.*damaged"):
        experiment.ask("unit-07")


# --- a store that went back in time -----------------------------------------------------------------------------------


def test_decisions_rest_on_what_is_in_the_log_after_a_restore(url, path, tmp_path, caplog):
    backup = tmp_path / "backup.db"
    with eq.open_store(url) as store, eq.open_store(url) as other:
        experiment, there = create(store), eq.Experiment.open(other, "x")
        fill(experiment, UNITS[:10])
        experiment.verify()
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(backup)) as target:
            source.backup(target)
        for unit in UNITS[10:20]:
            experiment.ask(unit)
            experiment.tell(unit, 1.0)
        put_back(backup, path)
        # Another process goes on until the counts are those that the first one remembers.
        for unit in UNITS[20:30]:
            there.ask(unit)
            there.tell(unit, 0.0)
        assert there.status().n_events == 1 + 16 + 20
        with caplog.at_level(logging.WARNING):
            assert experiment.ask(UNITS[10]).new
        assert "went back in time" in caplog.text
        fill(experiment, UNITS[30:])
        assert experiment.status().n_rewarded == there.status().n_rewarded
        experiment.verify()
        assert not experiment.rebuild()


def test_a_write_never_lands_in_another_experiment(url, path, tmp_path):
    backup = tmp_path / "backup.db"
    with eq.open_store(url) as store:
        create(store, "one")
        with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(backup)) as target:
            source.backup(target)
        two = create(store, "two")
        two.ask("ada")
        put_back(backup, path)
        three = create(store, "three")
        for act in (lambda: two.ask("bob"), lambda: two.tell("ada", 1.0), two.status, two.verify, two.rebuild):
            with pytest.raises(eq.StoreChanged, match=r"no longer in sqlite.*\n.*open it again"):
                act()
        assert three.status().n_assigned == 0
        with pytest.raises(eq.UnknownExperiment):
            eq.Experiment.open(store, "two")


def test_a_number_that_another_store_uses_too_is_no_reason_to_write_there(url, path, tmp_path):
    """Stores of before revision 3 number their experiments 1, 2, 3, so that any two of them have equal numbers."""
    other = tmp_path / "other.db"
    for place, name in ((path, "two"), (other, "three")):
        with eq.open_store(f"sqlite:///{place}") as store:
            fill(create(store, name), UNITS[:10])
        change(place, *(f"UPDATE {table} SET experiment = 2" for table in ("arms", "events")))  # noqa: S608
        change(place, "UPDATE experiments SET id = 2")
    with eq.open_store(url) as store:
        two, unused = (eq.Experiment.open(store, "two") for _ in range(2))
        two.ask("ada")
        put_back(other, path)
        acts = (lambda: two.ask("bob"), lambda: unused.tell(UNITS[0], 1.0), two.status, two.verify, two.rebuild)
        for act in (*acts, lambda: two.erase(UNITS[0])):
            with pytest.raises(eq.StoreChanged, match="no longer in sqlite"):
                act()
        two.delete()  # of what is gone there is nothing to do
        three = eq.Experiment.open(store, "three")
        assert three.status().n_assigned == 10
        three.verify()


def test_a_service_notices_and_looks_experiments_up_again(url, path, tmp_path, caplog):
    backup = tmp_path / "backup.db"
    store = eq.open_store(url)
    create(store, "one").ask("ada")
    with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(backup)) as target:
        source.backup(target)
    with serving_here(store, Settings(open=True)) as here, contextlib.closing(Api(here.url)) as api:
        create(store, "two")
        assert api.data("POST", "/experiments/two/assignments", {"unit": "ada"})["new"]
        put_back(backup, path)
        api.refused(503, "StoreChanged", "POST", "/experiments/two/assignments", {"unit": "bob"})
        assert "restored" in caplog.text
        api.refused(404, "UnknownExperiment", "POST", "/experiments/two/assignments", {"unit": "bob"})
        assert not api.data("POST", "/experiments/one/assignments", {"unit": "ada"})["new"]
