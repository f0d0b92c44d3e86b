"""PostgreSQL servers as their administrators set them up: all that is legal gives the same decisions, or is refused."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import sqlalchemy as sa
from tools import need

import equipoise as eq
from equipoise.store import postgresql as postgresql_store
from equipoise.store import postgresql_session
from equipoise.store.libpq import Connection

AWKWARD = [0.1 + 0.2, 1 / 3, 5e-324, -0.0, 1e100 / 3, -2 / 3, 1e-17, 2.2250738585072014e-308]
SETTINGS = {
    "all digits are cut": {"extra_float_digits": "0"},
    "most digits are cut": {"extra_float_digits": "-15"},
    "repeatable read": {"default_transaction_isolation": "repeatable read"},
    "serializable": {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on"},
    "read-only by default": {"default_transaction_read_only": "on"},
    "no NULL in arrays": {"array_nulls": "off"},
    "backslashes in strings": {"standard_conforming_strings": "off", "backslash_quote": "off"},
    "another place": {"timezone": "Asia/Kathmandu", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard"},
    "another language": {"client_encoding": "LATIN1", "bytea_output": "escape"},
    "impatient": {"statement_timeout": "60000", "lock_timeout": "1", "idle_in_transaction_session_timeout": "1"},
}


@contextmanager
def database(server_url, options=""):
    """Create a database and yield its URL."""
    name = f"d{uuid.uuid4().hex}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        try:
            yield str(sa.make_url(server_url).set(database=name))
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def database_with(server_url, settings):
    """Create a database whose sessions start with these settings, and yield its URL."""
    with database(server_url, "ENCODING 'UTF8'") as url:
        name = sa.make_url(url).database
        with psycopg.connect(server_url, autocommit=True) as connection:
            for setting, value in settings.items():
                connection.execute(f"ALTER DATABASE {name} SET {setting} = {_quoted(value)}")
        yield url


def _quoted(value):
    return ", ".join(f"'{part.strip()}'" for part in value.split(","))


def played(*urls):
    """Play an experiment in the stores in turn, each of which reads what the others wrote, and return its record."""
    policy = eq.ForcingBalance(reward_weight=0.6, tracking="windowed")
    missing = eq.DropUnit(window_seconds=1e6, hold=True)
    with ExitStack() as stack:
        stores = [stack.enter_context(eq.open_store(url)) for url in urls]
        eq.Experiment.create(stores[0], "é ' \\", arms=["NULL", '"pie" \\', "雪"], policy=policy, seed=7)
        eq.Experiment.create(stores[0], "held", arms=["a", "b"], policy=eq.Uniform(), missing=missing, seed=7)
        turns = [[eq.Experiment.open(store, name) for name in ("é ' \\", "held")] for store in stores]
        for number in range(24):
            for experiment in turns[number % len(turns)]:
                experiment.ask(f"null {number}", {"\\": "'雪"})
                experiment.ask_many([f"{number} \\'\"", f"NULL{number}"])
                experiment.tell(f"null {number}", AWKWARD[number % len(AWKWARD)])
                experiment.tell_many({f"{number} \\'\"": AWKWARD[-1 - number % len(AWKWARD)], f"NULL{number}": 1.0})
        records = []
        for experiment in turns[-1]:
            experiment.verify()
            units = [(event.unit, event.arm, event.reward, event.probability) for event in experiment.events()]
            records.append((repr(units), repr(experiment.status().arms)))
        assert [one.name for one in eq.Experiment.list(stores[-1])] == ["é ' \\", "held"]
        return records


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('settings')}/store.db"
    return played(url, url)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_settings_of_the_server_change_no_decision(postgresql, expected, settings):
    with database_with(postgresql, settings) as url:
        assert played(url, url) == expected


@pytest.mark.parametrize(
    "options", ["ENCODING 'UTF8' LOCALE 'C'", "ENCODING 'UTF8' LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'"]
)
def test_the_order_of_letters_changes_no_decision(postgresql, expected, options):
    with database(postgresql, options) as url:
        assert played(url, url) == expected


def test_options_in_the_url_change_no_decision(postgresql_url, expected):
    settings = ("extra_float_digits%3D0", "array_nulls%3Doff", "default_transaction_isolation%3Dserializable")
    url = postgresql_url + "".join(f"%20-c{setting}" for setting in settings)
    assert played(url, postgresql_url) == expected


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_database_that_cannot_hold_every_text_is_refused(postgresql, encoding):
    with database(postgresql, f"ENCODING '{encoding}' LOCALE 'C'") as url:
        with pytest.raises(eq.StoreMismatch, match=f"encoding UTF8; got {encoding}") as refused:
            eq.open_store(url)
        assert "CREATE DATABASE" in refused.value.hint


def test_a_server_that_changes_values_is_refused(postgresql, monkeypatch):
    monkeypatch.delitem(postgresql_session._SETTINGS, "extra_float_digits")
    with (
        database_with(postgresql, {"extra_float_digits": "0"}) as url,
        pytest.raises(eq.StoreMismatch, match=r"expected \[0.30000000000000004, .*; got \[0.3, "),
    ):
        eq.open_store(url)


@pytest.mark.parametrize("default", ["read committed", "repeatable read", "serializable"])
def test_writers_read_what_is_committed_and_readers_a_snapshot(postgresql, default):
    def levels(transaction):
        names = ("transaction_isolation", "transaction_read_only")
        return [transaction.execute(f"SHOW {name}")[0][0] for name in names]

    settings = {"default_transaction_isolation": default, "default_transaction_read_only": "on"}
    with database_with(postgresql, settings) as url, eq.open_store(url) as store:
        experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        assert store.change(experiment.number, levels) == ["read committed", "off"]
        assert store.change(None, levels) == ["read committed", "off"]
        assert store.read(levels) == ["repeatable read", "on"]


def test_a_connection_is_set_up_in_one_message(postgresql_url, monkeypatch):
    waits = []
    wait = Connection.wait
    monkeypatch.setattr(Connection, "wait", lambda *all, **more: waits.append(all) or wait(*all, **more))
    with Connection.connect(postgresql_url) as connection:
        waits.clear()
        postgresql_session.set_up(connection, "here", {"lock_timeout": 1.5}, check_clock=True)
        assert len(waits) == 1
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.execute("SHOW lock_timeout").fetchone() == ("1500ms",)


def test_a_standby_is_read_and_its_writers_learn_where_to_go(own_postgresql):
    server, signal = own_postgresql, own_postgresql.pgdata / "standby.signal"
    url = server.get_uri()
    with eq.open_store(url) as store:
        eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1).ask("a")
    server.stop()
    signal.touch()
    try:
        server.ensure_postgres_running()
        with eq.open_store(url) as store:
            experiment = eq.Experiment.open(store, "x")
            assert experiment.verify().n_decisions == 1
            with pytest.raises(eq.StoreUnavailable, match="cannot be written: cannot set transaction") as refused:
                experiment.ask("b")
            assert "target_session_attrs=read-write" in refused.value.hint
    finally:
        server.stop()
        signal.unlink()
        server.ensure_postgres_running()


# Clocks


@pytest.mark.parametrize(("hours", "words"), [(3, "seconds ahead of"), (-3, "seconds behind")])
def test_a_machine_whose_clock_is_far_off_is_refused(postgresql_url, monkeypatch, hours, words):
    wrong = SimpleNamespace(time=lambda: time.time() + 3600 * hours)
    with eq.open_store(postgresql_url) as store:
        experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        monkeypatch.setattr(postgresql_session, "time", wrong)
        with pytest.raises(eq.StoreUnavailable, match=words) as refused:
            eq.open_store(postgresql_url)
        assert "synchronise" in refused.value.hint
        experiment.ask("a")  # on the connection that it has
    with eq.open_store(postgresql_url, clock=store.now) as store:  # a clock of the caller's own is theirs to answer for
        eq.Experiment.open(store, "x").ask("b")


# Poolers


@contextmanager
def pooler(server_url, mode):
    """Run PgBouncer in front of a server with two sessions per database, and yield a function from URL to URL."""
    program = need("pgbouncer")
    host = sa.make_url(server_url).query["host"]
    with tempfile.TemporaryDirectory(prefix="equipoise-") as home:
        Path(home).chmod(0o777)
        file = Path(home) / "pgbouncer.ini"
        file.write_text(
            f"[databases]\n* = host={host} user=postgres\n[pgbouncer]\nauth_type = any\nlisten_addr =\n"
            f"listen_port = 6432\nunix_socket_dir = {home}\npool_mode = {mode}\ndefault_pool_size = 2\n"
        )
        file.chmod(0o644)
        # PgBouncer does not run as root, and only the server's user may open its socket.
        user = {"user": Path(host).stat().st_uid} if os.getuid() == 0 else {}
        output = (Path(home) / "output").open("w+")
        process = subprocess.Popen([program, str(file)], stdout=output, stderr=output, **user)
        try:
            while not listens(f"{home}/.s.PGSQL.6432"):
                assert process.poll() is None, Path(output.name).read_text()
                time.sleep(0.01)
            yield lambda url: str(sa.make_url(url).set(host=None, query={"host": home, "port": "6432"}))
        finally:
            process.terminate()
            process.wait()
            output.close()


def listens(path):
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(path) == 0


def spoil(url, *settings):
    """Change settings of the sessions of a pool, as another program might."""
    with psycopg.connect(url, autocommit=True) as one, psycopg.connect(url, autocommit=True) as other:
        for connection in (one, other):  # each has a session while its transaction is open
            connection.execute("BEGIN")
        for connection in (one, other):
            for setting in settings:
                connection.execute(f"SET {setting}")
            connection.execute("COMMIT")


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_changes_no_decision(postgresql, expected, mode):
    with database(postgresql, "ENCODING 'UTF8'") as url, pooler(postgresql, mode) as through:
        pooled = through(url)
        if mode == "transaction":
            spoil(pooled, "extra_float_digits = 0", "array_nulls = off", "default_transaction_isolation = serializable")
        assert played(pooled, url) == expected


def test_sessions_of_a_pool_are_durable_here_and_unchanged_for_others(postgresql):
    with database(postgresql, "ENCODING 'UTF8'") as url, pooler(postgresql, "transaction") as through:
        pooled = through(url)
        spoil(pooled, "synchronous_commit = off", "statement_timeout = '5min'")
        names = ("synchronous_commit", "extra_float_digits", "statement_timeout", "enable_seqscan")

        def settings(transaction):
            return [transaction.execute(f"SHOW {name}")[0][0] for name in names]

        with eq.open_store(pooled) as store:
            experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
            experiment.ask("a")
            assert store.change(experiment.number, settings) == store.read(settings) == ["on", "3", "0", "off"]
        with psycopg.connect(pooled) as one, psycopg.connect(pooled) as other:
            for connection in (one, other):
                found = [connection.execute(f"SHOW {name}").fetchone()[0] for name in names]
                assert found == ["off", "1", "5min", "on"]
                assert connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_pooler_that_hides_itself_is_refused(postgresql, monkeypatch):
    def deceived(connection, *arguments, **options):
        postgresql_session.set_up(connection, *arguments, **options)
        connection.settings = None

    monkeypatch.setattr(postgresql_store, "set_up", deceived)
    with database(postgresql, "ENCODING 'UTF8'") as url, pooler(postgresql, "transaction") as through:
        pooled = through(url)
        with eq.open_store(pooled) as store, psycopg.connect(pooled) as other:
            experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
            experiment.ask("a")
            other.execute("BEGIN")  # takes the session that knows the statements
            with pytest.raises(eq.StoreMismatch, match="a pooler") as refused:
                experiment.ask("b")
            assert "session mode" in refused.value.hint
