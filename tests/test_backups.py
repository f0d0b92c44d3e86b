"""Backups: complete while others write, verified, never half a file; and back again without losing what was there."""

from __future__ import annotations

import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from command_runner import Result, Runner
from patience import HANGS

import equipoise as eq
from equipoise.experiment import backup, restore
from equipoise.experiment.backups import dump_commands, restore_commands

STORE = "sqlite:///school.db"
COMMAND = [sys.executable, "-m", "equipoise.cli"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(eq.__file__).parents[1])}
WRITER = """
import sqlite3, sys
connection = sqlite3.connect("school.db", timeout=60, isolation_level=None)
connection.execute("PRAGMA synchronous = OFF")
number = 0
while True:
    number += 1
    connection.execute("UPDATE ballast SET x = ? WHERE rowid = 1", [number])
    if number == 1:
        print("writing", flush=True)
"""
"""Commits as fast as it can. It writes to a table of its own, so that the experiment stays as it was."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Runner:
    monkeypatch.setenv("EQUIPOISE_STORE", STORE)
    monkeypatch.chdir(tmp_path)
    return Runner(monkeypatch, capsys)


@pytest.fixture
def school(run: Runner) -> None:
    """A store with one experiment of eight units."""
    with eq.open_store(STORE) as store:
        experiment = eq.Experiment.create(store, "exam", arms=["line", "pie"], policy=eq.Uniform(), seed=1)
        experiment.ask_many([f"unit-{i}" for i in range(8)])


def assigned(url: str) -> int:
    with eq.open_store(url, create=False) as store:
        return eq.Experiment.open(store, "exam").verify().n_decisions


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


@pytest.mark.usefixtures("school")
def test_a_backup_has_what_was_committed_though_the_store_is_in_use(run: Runner) -> None:
    with eq.open_store(STORE) as store:
        experiment = eq.Experiment.open(store, "exam")
        experiment.ask("the last one")  # it is in the write-ahead log only
        done = run("backup", "--to", "backup.db")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("backup.db: 0.")
        assert done.out.endswith(" MB; 1 experiment with 10 events verified\n")
    assert files() == {"school.db", "backup.db"}, "the backup is one file"
    assert assigned("sqlite:///backup.db") == 9


@pytest.mark.usefixtures("school")
def test_a_backup_ends_while_another_process_writes_all_the_time(run: Runner) -> None:
    with closing(sqlite3.connect("school.db")) as connection, connection:
        connection.execute("CREATE TABLE ballast (x)")
        connection.executemany("INSERT INTO ballast VALUES (?)", [("x" * 3000,)] * 6_000)
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            steps: list[tuple[int, int]] = []
            done: list[object] = []
            thread = threading.Thread(
                target=lambda: done.append(backup(STORE, "backup.db", progress=lambda *step: steps.append(step))),
                daemon=True,
            )
            thread.start()
            thread.join(HANGS)
            assert done, "SQLite started again after every write"
        finally:
            writer.kill()
    assert len(steps) > 3, "it was copied in steps, between which the other process wrote"
    assert steps == sorted(steps), "no step was repeated"
    assert steps[-1][0] == steps[-1][1] == Path("backup.db").stat().st_size
    assert assigned("sqlite:///backup.db") == 8


@pytest.mark.usefixtures("school")
def test_a_backup_replaces_nothing_unless_forced(run: Runner) -> None:
    Path("backup.db").write_text("precious")
    refused = run("backup", "--to", "backup.db")
    assert refused == Result(1, "", "error: backup.db exists already\nhint: choose another name; --force replaces it\n")
    assert Path("backup.db").read_text() == "precious"
    assert run.data("backup", "--to", "backup.db", "--force")["n_experiments"] == 1
    assert assigned("sqlite:///backup.db") == 8
    assert run("backup", "--to", "school.db", "--force").code == 2, "the store itself"
    assert run("backup", "--to", "no/such/folder.db").code == 1


@pytest.mark.usefixtures("school")
def test_a_store_that_does_not_verify_gives_no_backup(run: Runner) -> None:
    with closing(sqlite3.connect("school.db")) as connection, connection:
        connection.execute("UPDATE events SET arm = 1 - arm WHERE number = 3")
    before = files()
    refused = run("backup", "--to", "backup.db")
    assert (refused.code, refused.out) == (1, "")
    assert "event 3" in refused.err
    assert files() == before


@pytest.mark.usefixtures("school")
def test_control_c_leaves_no_half_file(run: Runner) -> None:
    before = files()

    def interrupt(n_bytes: int, total: int) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        backup(STORE, "backup.db", progress=interrupt)
    assert files() == before
    with pytest.raises(KeyboardInterrupt):
        backup(STORE, "backup.db", progress=interrupt)
    Path("whole.db").write_bytes(Path("school.db").read_bytes())
    kept = files() | {"school.db"}
    with pytest.raises(KeyboardInterrupt):
        restore("whole.db", STORE, replace=True, progress=interrupt)
    assert files() == kept, "nor is the store touched"
    assert assigned(STORE) == 8


@pytest.mark.usefixtures("school")
def test_the_command_reports_control_c(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    from equipoise.store import sqlite_backups

    monkeypatch.setattr(sqlite_backups, "check_pages", lambda path: signal.raise_signal(signal.SIGINT))
    assert run("backup", "--to", "backup.db") == Result(130, "", "interrupted; nothing is written\n")
    assert files() == {"school.db"}


def test_a_store_of_an_older_version_is_backed_up_before_it_is_upgraded(run: Runner) -> None:
    old = Path(__file__).parent / "data" / "schema_1.db"
    Path("school.db").write_bytes(old.read_bytes())
    done = run("backup", "--to", "backup.db")
    assert done.code == 0
    assert "not replayed: it is of an older version" in done.out
    assert run("upgrade").code == 0
    assert run("verify").code == 0


@pytest.mark.usefixtures("school")
def test_a_backup_is_restored_where_there_is_no_store(run: Runner) -> None:
    backup(STORE, "backup.db")
    done = run("restore", "backup.db", "--store", "sqlite:///new.db")
    assert done == Result(0, "new.db: restored from backup.db; 1 experiment with 9 events verified\n", "")
    assert assigned("sqlite:///new.db") == assigned("sqlite:///backup.db") == 8


@pytest.mark.usefixtures("school")
def test_a_store_is_replaced_only_if_forced_and_its_file_is_kept(run: Runner) -> None:
    backup(STORE, "backup.db")
    eq.Experiment.open(STORE, "exam").ask("after the backup")
    refused = run("restore", "backup.db")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: school.db exists already\nhint: ")
    assert assigned(STORE) == 9
    done = run.data_and_notes("restore", "backup.db", "--force")
    assert assigned(STORE) == 8
    kept = str(done["replaced"])
    assert kept.startswith("school.db.replaced-")
    assert assigned(f"sqlite:///{kept}") == 9


@pytest.mark.usefixtures("school")
def test_restore_asks_at_a_terminal_for_the_name_of_the_file(run: Runner) -> None:
    backup(STORE, "backup.db")
    declined = run.at_terminal("restore", "backup.db", answer="y\n")
    assert declined.code == 1
    assert "Stop every service and program that uses it first." in declined.err
    assert declined.err.endswith("type school.db to go on: nothing was changed\n")
    assert files() == {"school.db", "backup.db"}
    done = run.at_terminal("restore", "backup.db", "--quiet", answer="school.db\n")
    assert done.code == 0
    assert len(files()) == 3


@pytest.mark.usefixtures("school")
def test_a_store_in_use_is_not_replaced(run: Runner) -> None:
    backup(STORE, "backup.db")
    with eq.open_store(STORE) as store:
        eq.Experiment.open(store, "exam").ask("ana")
        refused = run("restore", "backup.db", "--force")
        assert (refused.code, refused.out) == (1, "")
        assert refused.err.startswith("error: another program has school.db open\nhint: stop every service")
        eq.Experiment.open(store, "exam").ask("bob")
    assert assigned(STORE) == 10


@pytest.mark.usefixtures("school")
def test_what_a_deleted_store_left_behind_is_no_part_of_the_restored_one(run: Runner) -> None:
    backup(STORE, "backup.db")
    with closing(sqlite3.connect("school.db")) as other:
        other.execute("SELECT 1 FROM events").fetchone()
        eq.Experiment.open(STORE, "exam").ask("ana")
        Path("school.db").unlink()
        assert Path("school.db-wal").stat().st_size
        left = {name: Path(name).read_bytes() for name in ("school.db-wal",)}
    for name, data in left.items():
        Path(name).write_bytes(data)
    assert run("restore", "backup.db").code == 0
    assert not Path("school.db-wal").exists()
    assert assigned(STORE) == 8


@pytest.mark.usefixtures("school")
def test_a_damaged_store_is_replaced_by_its_backup(run: Runner) -> None:
    backup(STORE, "backup.db")
    Path("school.db").write_bytes(b"no database at all" * 100)
    assert run("restore", "backup.db", "--force").code == 0
    assert assigned(STORE) == 8


@pytest.mark.parametrize("damage", ["missing", "empty", "other", "cut"])
@pytest.mark.usefixtures("school")
def test_what_is_no_backup_is_not_restored(run: Runner, damage: str) -> None:
    bad = Path("bad.db")
    backup(STORE, bad)
    if damage == "missing":
        bad.unlink()
    elif damage == "empty":
        bad.write_bytes(b"")
    elif damage == "other":
        bad.unlink()
        with closing(sqlite3.connect(bad)) as other:
            other.execute("CREATE TABLE bookmarks (url)")
    else:
        data = bytearray(bad.read_bytes())
        data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
        bad.write_bytes(data)
    before = files()
    refused = run("restore", "bad.db", "--force")
    assert (refused.code, refused.out) == (1, "")
    assert files() == before
    assert assigned(STORE) == 8


def test_for_postgresql_the_commands_are_named_without_the_password(run: Runner) -> None:
    url = "postgresql://ada:s3cret@db.example/school?sslpassword=s3cret"
    refused = run("backup", "--to", "school.dump", "--store", url)
    assert (refused.code, refused.out) == (2, "")
    command = "pg_dump --format=custom --file=school.dump --dbname=postgresql://ada@db.example/school"
    assert command in refused.err
    assert "s3cret" not in refused.err
    refused = run("restore", "school.dump", "--store", url)
    assert refused.code == 2
    assert "pg_restore --clean --if-exists --single-transaction" in refused.err


def test_the_commands_for_postgresql_back_up_and_restore_a_store(postgresql_url: str, tmp_path: Path) -> None:
    with psycopg.connect(postgresql_url) as connection:
        # The programs must not be older than the server; this one says where its own are.
        [(programs,)] = connection.execute("SELECT setting FROM pg_config WHERE name = 'BINDIR'").fetchall()

    def call(command: str) -> None:
        name, *arguments = shlex.split(command)
        done = subprocess.run([Path(programs) / name, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    with eq.open_store(postgresql_url) as store:
        experiment = eq.Experiment.create(store, "exam", arms=["line", "pie"], policy=eq.Uniform(), seed=1)
        experiment.ask_many(["ana", "bob"])
    call(dump_commands(postgresql_url, f"{tmp_path}/school.dump"))
    with eq.open_store(postgresql_url) as store:
        eq.Experiment.open(store, "exam").ask("after the backup")
    call(restore_commands(postgresql_url, f"{tmp_path}/school.dump"))
    assert assigned(postgresql_url) == 2
