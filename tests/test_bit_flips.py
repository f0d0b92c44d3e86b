"""Bits that flip in the file of a store, page by page: each is harmless, or `verify` finds it.

A flip is harmless if every unit has the arm it had, and the status and the log are what they were. It is found if
`verify`, or opening the store for it, raises an error of ours, which says what is wrong. Anything else is silent
damage, or an error that nobody can read.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from datetime import UTC, datetime
from random import Random

import pytest
from endurance import short_and_full

import equipoise as eq

PAGE = 4096
HARMLESS, FOUND, SILENT = "harmless", "found", "silent"


def at():
    return datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def small_store(tmp_path_factory):
    """The file of a store with a hundred units; nothing of it is elsewhere."""
    path = tmp_path_factory.mktemp("small") / "store.db"
    with eq.open_store(f"sqlite:///{path}", clock=at) as store:
        experiment = eq.Experiment.create(
            store,
            "small",
            arms=["line", "pie", "none"],
            policy=eq.ForcingBalance(reward_weight=0.6),
            missing=eq.WaitForReward(window_seconds=1e6),
            seed=3,
        )
        units = [f"pupil-{number}" for number in range(100)]
        experiment.ask_many([(unit, {"class": "4b"}) for unit in units])
        experiment.tell_many({unit: float(place % 7) for place, unit in enumerate(units[:70])})
        for unit in units[:10]:
            experiment.correct(unit, 9.0, "misread")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # a file of its own, without a log of writes
    return path, units


def observed(path, units):
    """Return everything that a user of the store can see, and raise if `verify` finds anything."""
    with eq.open_store(f"sqlite:///{path}", clock=at) as store:
        experiment = eq.Experiment.open(store, "small")
        experiment.verify()
        return (
            experiment.status(),
            experiment.describe(),
            list(experiment.events()),
            [experiment.unit(unit) for unit in units],
            experiment.ask_many(units),
        )


def owner_of_pages(path):
    """Return the table or index of each page, where SQLite can say."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            return dict(connection.execute("SELECT pageno, name FROM dbstat"))
        except sqlite3.OperationalError:  # SQLite was built without this table
            return {}


def outcome_of(path, units, expected):
    try:
        found = observed(path, units)
    except eq.EquipoiseError:
        return FOUND
    except Exception as error:  # noqa: BLE001  (an error, though not one that says what is wrong)
        return f"{type(error).__name__}: {error}"
    return HARMLESS if found == expected else SILENT


@pytest.mark.parametrize("flips_per_page", short_and_full(5, 150))
def test_a_flipped_bit_is_harmless_or_found(small_store, tmp_path, flips_per_page):
    original, units = small_store
    content = original.read_bytes()
    path = tmp_path / "store.db"
    shutil.copy(original, path)
    expected = observed(path, units)
    rng, outcomes, silent = Random(5), Counter(), defaultdict(list)
    for page in range(len(content) // PAGE):
        for place in sorted(rng.sample(range(PAGE), flips_per_page)):
            for other in tmp_path.glob("store.db*"):
                other.unlink()
            damaged = bytearray(content)
            damaged[page * PAGE + place] ^= 1 << rng.randrange(8)
            path.write_bytes(damaged)
            outcome = outcome_of(path, units, expected)
            outcomes[outcome] += 1
            if outcome == SILENT:
                silent[page + 1].append(place)
    owners = owner_of_pages(original)
    print(dict(outcomes), {f"page {page}, {owners.get(page)}": places for page, places in silent.items()})
    assert set(outcomes) == {HARMLESS, FOUND}


def test_changed_answers_would_be_found_out(small_store, tmp_path):
    """The negative control: answers that differ without an error count as silent damage."""
    original, units = small_store
    path = tmp_path / "store.db"
    shutil.copy(original, path)
    expected = observed(path, units)
    assert outcome_of(path, units, expected) == HARMLESS
    assert outcome_of(path, units, ()) == SILENT
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET arm = (arm + 1) % 3 WHERE number = 50")
        connection.commit()
    assert outcome_of(path, units, expected) == FOUND
