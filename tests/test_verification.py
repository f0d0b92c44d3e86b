"""What `verify` proves, and what a running process does when its store is no longer the one it knew."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from pathlib import Path

import pytest
from service_api import Api
from service_runner import serving_here

import equipoise as eq
from equipoise.experiment import hash_chain
from equipoise.service import Settings

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
    assert upgrade(url) == ("3", "4")
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
