"""Databases of other times and other people: opened, upgraded on request, or refused with a clear word."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import shutil
import sqlite3
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from own_policies import DOptimal

import equipoise as eq
from equipoise.experiment.state import load_state
from equipoise.store import migrations, schema, upgrade
from equipoise.store.database import database_at

DATA = Path(__file__).parent / "data"
PRESENT = schema.REVISION
NEXT = str(int(PRESENT) + 1)


def file_url(path):
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return file_url(tmp_path / "store.db")
    return request.getfixturevalue("postgresql_url")


def fill(store):
    """Make an experiment of every kind of event; the first code of a schema made a file in `tests/data` with it."""
    settings = {"policy": eq.ForcingBalance(reward_weight=0.7, tracking="windowed"), "seed": 7}
    experiment = eq.Experiment.create(
        store, "old", arms=["line", "pie", "none"], floor=0.05, warm_up=2, reward_range=(0, 1), who="ann", **settings
    )
    for number in range(20):
        experiment.ask(f"unit-{number}", {"class": "4b"})
        if number % 4:
            experiment.tell(f"unit-{number}", number / 20)
    experiment.correct("unit-1", 0.75, "misread")
    experiment.change_weight(0.9)
    experiment.add_arm("cake", floor=0.1)
    experiment.pause_arm("pie")
    experiment.ask_many([f"more-{number}" for number in range(10)])
    missing = eq.DefaultReward(value=0.0, window_seconds=1e-6)
    other = eq.Experiment.create(store, "missing", arms=["a", "b"], policy=eq.Uniform(), missing=missing, seed=7)
    other.ask_many(["x", "y", "z"])
    other.settle()
    held = eq.WaitForReward(window_seconds=1e9, hold=True)
    third = eq.Experiment.create(store, "held", arms=["a", "b"], policy=eq.Uniform(), missing=held, seed=7)
    third.ask_many(["x", "y", "z"])
    third.tell("x", 1.0)
    third.stop()


def fill_with_changing_arms(store):
    """Make an experiment whose tracking shows in which way it counts once arms have come and gone."""
    policy = eq.ForcingBalance(reward_weight=0.7, forcing=0.5)
    experiment = eq.Experiment.create(store, "arms", arms=["line", "pie", "none"], policy=policy, seed=7)

    def go_on(count):
        for number in range(count):
            unit = f"unit-{experiment.status().n_assigned}"
            experiment.ask(unit)
            experiment.tell(unit, number % 7 / 7)

    go_on(60)
    experiment.add_arm("cake")
    go_on(30)
    experiment.pause_arm("pie")
    go_on(10)
    experiment.resume_arm("pie")
    go_on(20)


def fill_with_posterior_sampling(store):
    """Make experiments in which the second version of the kernels gave up an arm whose first rewards were equal."""
    for name, policy in (("sampling", eq.ThompsonSampling()), ("balance", eq.ThompsonBalance(reward_weight=0.8))):
        experiment = eq.Experiment.create(store, name, arms=["line", "pie", "none"], policy=policy, seed=7)
        for number in range(60):
            arm = experiment.ask(f"unit-{number}").arm
            experiment.tell(f"unit-{number}", float(number % {"line": 2, "pie": 3, "none": 5}[arm] == 0))


def fill_with_corrections(store):
    """Make experiments in which rewards were corrected, replaced defaults, expired and left, on both scales."""
    for direction in ("maximise", "minimise"):
        rule = eq.DefaultReward(value=0.125, window_seconds=1e-6, late="count")
        policy = eq.PooledBalance(reward_weight=0.8, tracking="windowed")
        arms = ["line", "pie", "none"]
        made = eq.Experiment.create(
            store, direction, arms=arms, policy=policy, floor=0.05, seed=7, missing=rule, direction=direction
        )
        for number in range(60):
            made.ask(f"unit-{number}")
            if number % 5:
                made.tell(f"unit-{number}", {7: 1e18, 8: -3e80, 9: 1e-100}.get(number, (number * 37 % 101 - 20) / 100))
            if number in (27, 28):
                made.correct(f"unit-{number - 20}", 0.25, "misread")
        made.settle()
        made.tell("unit-0", 0.75)
        made.withdraw("unit-11", "asked to")
        made.pause_arm("none")
        made.ask_many([f"more-{number}" for number in range(20)])
        made.tell_many({f"more-{number}": number / 7 for number in range(15)})
    old = eq.Experiment.open(store, "mistake")
    old.ask_many([f"later-{number}" for number in range(5)])
    old.tell("later-1", 0.375)
    old.correct("later-1", 0.625, "misread")


WINDOWED = {
    "pooled": eq.PooledBalance(reward_weight=0.4, tracking="windowed", window=1),
    "forcing": eq.ForcingBalance(reward_weight=0.4, tracking="windowed", window=2),
    "own": eq.ForcingBalance(reward_weight=0.4, tracking="windowed", window=2, objective=DOptimal()),
}


def fill_with_windows(store):
    """Make experiments with windows so small that growing ones would differ; before version 4 they stayed constant."""
    for name, policy in WINDOWED.items():
        experiment = eq.Experiment.create(store, name, arms=["line", "pie", "none"], policy=policy, seed=7)
        for number in range(12):
            units = [f"unit-{10 * number + k}" for k in range(10)]
            arms = [one.arm for one in experiment.ask_many(units)]
            rewards = {"line": 0.5, "pie": 0.7, "none": 0.9}
            told = {unit: rewards[arm] + 0.1 * (k % 3) for k, (unit, arm) in enumerate(zip(units, arms, strict=True))}
            experiment.tell_many(told)


@pytest.fixture(params=["schema_1", "schema_2", "schema_3", "schema_5"])
def old_file(request, tmp_path):
    """A file that was written long ago, brought to the present schema."""
    path = tmp_path / "old.db"
    shutil.copy(DATA / f"{request.param}.db", path)
    assert upgrade(file_url(path)) == (request.param[-1], schema.REVISION)
    return path


def test_files_of_older_schemas_open_and_go_on(old_file):
    with eq.open_store(file_url(old_file)) as store:
        names = [one.name for one in eq.Experiment.list(store)]
        assert names[:3] == ["old", "missing", "held"]
        for name in names:
            eq.Experiment.open(store, name).verify()
        old = eq.Experiment.open(store, "old")
        assert old.ask("unit-3") == old.assignment("unit-3")
        assert [arm.assigned for arm in old.status().arms] == [8, 5, 9, 8]
        assert old.ask("new").new
        old.resume_arm("pie")
        old.ask_many([f"after-{number}" for number in range(30)])
        old.verify()
        assert not old.rebuild()


def test_sums_of_four_powers_come_from_the_log(tmp_path):
    """The file has corrected and replaced rewards, on both scales, and an experiment that kept no exact sums at all."""
    path = tmp_path / "old.db"
    shutil.copy(DATA / "schema_4.db", path)
    assert upgrade(file_url(path)) == ("4", schema.REVISION)
    with eq.open_store(file_url(path)) as store:
        check_corrections(store)


def test_sums_of_four_powers_come_from_the_log_on_postgresql(tmp_path, postgresql_url, monkeypatch):
    """As version 4 left a database: two sums, or none."""
    shutil.copy(DATA / "schema_4.db", tmp_path / "old.db")
    upgrade(file_url(tmp_path / "old.db"))
    with eq.open_store(file_url(tmp_path / "old.db")) as source, eq.open_store(postgresql_url) as store:
        for one in eq.Experiment.list(source):
            eq.Experiment.open(source, one.name).copy_to(store)
        with store.database.engine.connect() as connection:
            two_or_none = "CASE WHEN position > 0 THEN substring(exact_sums FROM '^[^ ]+ [^ ]+') END"
            connection.execute(sa.text(f"UPDATE arms SET exact_sums = {two_or_none}"))  # noqa: S608
            connection.execute(sa.text("ALTER TABLE arms DROP COLUMN drift_sums"))
            of_revision_6 = "sessions, rollups, checkpoints, alerts, leases, refusals, verifications"
            connection.execute(sa.text(f"DROP TABLE {of_revision_6}"))
            connection.execute(sa.text("DROP INDEX changes_of_an_experiment"))
            connection.execute(sa.text("DROP INDEX closed_windows"))
            connection.execute(sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '4'"))  # noqa: S608
            connection.commit()
    with pytest.raises(eq.UpgradeNeeded):
        eq.open_store(postgresql_url)
    assert upgrade(postgresql_url) == ("4", schema.REVISION)
    with eq.open_store(postgresql_url) as store:
        check_corrections(store)


def check_corrections(store):
    """Check the sums of `fill_with_corrections` against the rewards in the log, and go on."""
    for name in ("maximise", "minimise", "mistake"):
        experiment = eq.Experiment.open(store, name)
        state = store.read(lambda transaction, e=experiment: load_state(store, transaction, e.number, e.name))
        counted, sign = counted_rewards(experiment), state.configuration.sign
        for position, arm in enumerate(state.names):
            rewards = [Fraction(sign * reward) for reward in counted[arm]]
            for power, total in enumerate(state.stats.exact_sums(position), 1):
                # Powers of 1e-100 are cut off where the smallest double ends.
                assert abs(total - 2**1074 * sum(x**power for x in rewards)) <= 6
        experiment.verify()
        assert not experiment.rebuild()
        units = [f"new-{number}" for number in range(6)]
        experiment.ask_many(units)
        experiment.tell_many(dict.fromkeys(units, 1e20))
        for unit in units:
            experiment.correct(unit, 0.5, "misread")
        experiment.verify()


def counted_rewards(experiment):
    """Return the rewards in the estimates of each arm, as exported."""
    file, found = io.StringIO(), defaultdict(list)
    experiment.export(file, format="jsonl")
    for row in map(json.loads, file.getvalue().splitlines()):
        if row["counted_reward"] is not None:
            found[row["arm"]].append(row["counted_reward"])
    return found


def test_an_upgrade_refuses_a_log_with_words_for_rewards(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "schema_4.db", path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE events SET reward = 'seven' WHERE kind = 'corrected'")
        connection.commit()
    with pytest.raises(eq.StoreMismatch, match="is damaged: could not convert"):
        upgrade(file_url(path))


def test_an_experiment_keeps_the_rule_of_tracking_that_it_began_with(tmp_path):
    """The first schema's arms caught up with all that had happened before them; its logs replay by that rule only."""
    path = tmp_path / "old.db"
    shutil.copy(DATA / "schema_1_arms.db", path)
    upgrade(file_url(path))
    with eq.open_store(file_url(path)) as store:
        arms = eq.Experiment.open(store, "arms")
        arms.verify()
        arms.retire_arm("none")
        arms.ask_many(["after-1", "after-2", "after-3"])
        arms.verify()
        assert not arms.rebuild()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            assert connection.execute("SELECT DISTINCT tracked_from FROM arms").fetchall() == [(0,)]
            connection.execute(
                "UPDATE events SET details = json_set(details, '$.configuration.fresh_tracking', json('true')) "
                "WHERE kind = 'created'"
            )
            connection.commit()
        with pytest.raises(eq.VerificationFailed, match="should assign") as failed:
            arms.verify()
        assert failed.value.event > next(one.number for one in arms.events() if one.kind == "arm_added")


def test_posterior_sampling_keeps_the_version_of_the_kernels_that_it_began_with(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "kernels_2_thompson.db", path)
    upgrade(file_url(path))
    with eq.open_store(file_url(path)) as store:
        for name, assigned in (("sampling", [48, 2, 10]), ("balance", [45, 2, 13])):
            experiment = eq.Experiment.open(store, name)
            assert [arm.assigned for arm in experiment.status().arms] == assigned
            experiment.verify()
            experiment.ask_many(["after-1", "after-2", "after-3"])
            experiment.verify()
            assert not experiment.rebuild()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "UPDATE events SET details = json_set(details, '$.configuration.kernels', 3) WHERE kind = 'created'"
            )
            connection.commit()
        for name in ("sampling", "balance"):
            with pytest.raises(eq.VerificationFailed):
                eq.Experiment.open(store, name).verify()


def test_windows_stay_constant_in_experiments_that_began_before_they_grew(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "kernels_3_windowed.db", path)
    upgrade(file_url(path))
    with eq.open_store(file_url(path)) as store:
        for name, policy in WINDOWED.items():
            experiment = eq.Experiment.open(store, name)
            experiment.verify()
            assert experiment.configuration.policy == dataclasses.replace(policy, window_growth=0.0)
            for number in range(80):
                known = [(arm.assigned, arm.mean, arm.std) for arm in experiment.status().arms]
                stats = eq.ArmStats.from_summary(*zip(*known, strict=True))
                one = experiment.ask(f"after-{number}")
                if name == "pooled":  # the best pull alone, and not one of the next ten of 200
                    assert one.probability == pytest.approx(0.02 / 3 + 0.98) or one.probability == pytest.approx(
                        0.02 / 3
                    )
                elif not one.forced:
                    lack = np.maximum((stats.n_assigned + policy.window) * policy.target(stats) - stats.assigned, 0)
                    chances = 0.02 / 3 + 0.98 * lack / lack.sum()
                    assert one.probability == pytest.approx(chances[["line", "pie", "none"].index(one.arm)], rel=1e-6)
                experiment.tell(one.unit, 0.5 + 0.1 * (number % 5))
            experiment.change_weight(0.6)
            experiment.ask_many(["last-1", "last-2", "last-3"])
            experiment.verify()
            assert not experiment.rebuild()
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "UPDATE events SET details = json_set(details, '$.configuration.kernels', 4, "
                "'$.configuration.policy.window_growth', 0.05) WHERE kind = 'created'"
            )
            connection.commit()
        for name in WINDOWED:
            with pytest.raises(eq.VerificationFailed):
                eq.Experiment.open(store, name).verify()


def test_a_new_experiment_records_that_its_window_grows(tmp_path):
    with eq.open_store(file_url(tmp_path / "new.db")) as store:
        policy = eq.ForcingBalance(reward_weight=0.4, tracking="windowed", window=2)
        experiment = eq.Experiment.create(store, "new", arms=["a", "b"], policy=policy)
        experiment.ask_many([f"unit-{number}" for number in range(300)])
        created = next(iter(experiment.events()))
        assert created.details["configuration"]["policy"]["window_growth"] == 0.05
        assert created.details["configuration"]["kernels"] == 4
        experiment.verify()


def test_a_table_of_someone_else_stands_in_the_way_of_an_upgrade(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(DATA / "schema_1.db", path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE keys (id INTEGER)")
    with pytest.raises(eq.StoreMismatch, match="tables called keys that equipoise did not make"):
        upgrade(file_url(path))


def test_migrations_make_the_schema_of_the_code(tmp_path):
    """Statement by statement, on SQLite, which keeps them as they were."""
    migrated, direct = file_url(tmp_path / "migrated.db"), sa.create_engine(file_url(tmp_path / "direct.db"))
    eq.open_store(migrated).close()
    schema.metadata.create_all(direct)
    direct.dispose()
    assert statements(tmp_path / "migrated.db") == statements(tmp_path / "direct.db")
    assert ScriptDirectory(migrations.DIRECTORY, version_locations=[migrations.DIRECTORY]).get_heads() == [
        schema.REVISION
    ]


def statements(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return {name: " ".join(sql.split()) for name, sql in rows if name != schema.VERSION_TABLE}


def test_migrations_make_the_schema_of_the_code_on_postgresql(postgresql_url):
    with eq.open_store(postgresql_url) as store, store.database.engine.connect() as connection:
        # Alembic cannot compare an index on an expression.
        options = {"version_table": schema.VERSION_TABLE, "include_name": lambda name, kind, _: kind != "index"}
        context = MigrationContext.configure(connection, opts=options)
        indexed = [one for one in compare_metadata(context, schema.metadata) if one[0] != "add_index"]
        assert indexed == []
        names = {index["name"] for index in sa.inspect(connection).get_indexes("events")}
        assert names == {"one_event_of_a_kind_per_unit", "changes_of_an_experiment", "closed_windows"}
        names = {index["name"] for index in sa.inspect(connection).get_indexes("alerts")}
        assert names == {"one_open_alert_of_a_check_per_arm"}


@pytest.fixture
def next_revision(tmp_path, monkeypatch):
    """A package with one more revision than ours."""
    later = tmp_path / "migrations"
    shutil.copytree(migrations.DIRECTORY, later)
    (later / f"revision_{NEXT}.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision, branch_labels, depends_on = '{NEXT}', '{PRESENT}', None, None\n"
        "def upgrade():\n    op.add_column('experiments', sa.Column('colour', sa.Text))\n"
    )

    def install():
        monkeypatch.setattr(migrations, "DIRECTORY", later)
        monkeypatch.setattr(schema, "REVISION", NEXT)

    return install


def has_colour(url):
    engine = database_at(url).engine
    found = "colour" in {column["name"] for column in sa.inspect(engine).get_columns("experiments")}
    engine.dispose()
    return found


def test_an_older_database_without_experiments_is_brought_up_to_date(url, next_revision):
    eq.open_store(url).close()
    next_revision()
    eq.open_store(url).close()
    assert has_colour(url)


def test_an_older_database_with_experiments_is_changed_on_request_only(url, next_revision):
    with eq.open_store(url) as store:
        fill(store)
    next_revision()
    with pytest.raises(eq.UpgradeNeeded, match="equipoise upgrade --store"):
        eq.open_store(url)
    assert not has_colour(url)
    assert upgrade(url) == (PRESENT, NEXT)
    assert upgrade(url) == (NEXT, NEXT)
    assert has_colour(url)
    with eq.open_store(url) as store:
        eq.Experiment.open(store, "old").verify()


def test_a_newer_database_is_refused(url, next_revision, monkeypatch):
    eq.open_store(url).close()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "REVISION", schema.REVISION)
        next_revision()
        upgrade(url)
    monkeypatch.undo()
    with pytest.raises(eq.StoreMismatch, match=f"revision {NEXT}; this version of equipoise knows up to {PRESENT}"):
        eq.open_store(url)


def test_a_database_of_someone_else_is_left_alone(url):
    engine = database_at(url).engine
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE events (id INTEGER)"))
        connection.commit()
    engine.dispose()
    with pytest.raises(eq.StoreMismatch, match="tables called events that equipoise did not make"):
        eq.open_store(url)
    with pytest.raises(eq.StoreMismatch):
        upgrade(url)


def test_what_is_no_store_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("no database at all, but long enough to look like a header of one" * 20)
    with pytest.raises(eq.StoreMismatch, match="no SQLite database"):
        eq.open_store(file_url(tmp_path / "text.db"))
    with pytest.raises(eq.StoreUnavailable, match="does not exist"):
        eq.open_store(file_url(tmp_path / "nowhere" / "store.db"))
    with pytest.raises(eq.StoreUnavailable, match="is a directory"):
        eq.open_store(file_url(tmp_path))
    for url in ("", "store.db", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:", None, 5):
        with pytest.raises(eq.InvalidInput, match=r"sqlite:///file\.db"):
            eq.open_store(url)


def test_a_password_is_never_shown():
    with pytest.raises(eq.StoreUnavailable) as refused:
        eq.open_store("postgresql://ann:secret@localhost:1/school")
    assert "secret" not in str(refused.value)
    assert "ann:***@localhost" in str(refused.value)


def test_a_schema_that_does_not_exist_is_told(postgresql):
    with pytest.raises(eq.StoreUnavailable, match="CREATE SCHEMA"):
        eq.open_store(f"{postgresql}&options=-csearch_path%3Dnowhere")


def test_a_file_keeps_what_makes_it_safe(tmp_path):
    url = file_url(tmp_path / "store.db")
    with eq.open_store(url) as store, store.database.reading() as transaction:
        connection = transaction.connection
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
    with contextlib.closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
