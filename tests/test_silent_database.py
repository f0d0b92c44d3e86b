"""A PostgreSQL server that does not answer: a lost connection is noticed, a held lock is waited for."""

from __future__ import annotations

import gc
import os
import socket
import threading
from contextlib import contextmanager, suppress

import psycopg
import pytest
import sqlalchemy as sa

import equipoise as eq
from equipoise.service.api_keys import create_key, list_keys
from equipoise.store import libpq, postgresql

USUAL_SILENCE = libpq.SILENCE_SECONDS


class Proxy:
    """Something between us and the server that can forget connections without closing them."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._frozen: set[int] = set()
        self._stuck: set[int] = set()
        self._closed = threading.Event()
        self.n_connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Take what comes on the present connections, and forward nothing in either direction; new ones work."""
        self._frozen.update(range(self.n_connections))
        libpq.SILENCE_SECONDS = 0.5

    def stop_taking(self) -> None:
        """Take nothing more from clients of the present connections, so that buffers fill up."""
        self._stuck.update(range(self.n_connections))
        libpq.SILENCE_SECONDS = 0.5

    def refuse(self) -> None:
        """Accept no more connections."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def close(self) -> None:
        self._closed.set()
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                libpq.SILENCE_SECONDS = USUAL_SILENCE  # a new connection has all the time of a slow machine
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += (client, server)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(self.n_connections, *ends), daemon=True).start()
                self.n_connections += 1

    def _pump(self, number: int, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if number in self._stuck:
                    self._closed.wait()
                if number not in self._frozen:
                    target.sendall(data)
            if number not in self._frozen:
                target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(postgresql_url):
    with psycopg.connect(postgresql_url) as connection:
        where = f"{connection.info.host}/.s.PGSQL.{connection.info.port}"
    proxy = Proxy(where)
    yield proxy
    proxy.close()
    libpq.SILENCE_SECONDS = USUAL_SILENCE


@pytest.fixture
def store(postgresql_url, proxy, monkeypatch):
    monkeypatch.setattr(postgresql, "IDLE_SECONDS", 2)
    url = sa.make_url(postgresql_url)
    options = url.query["options"]
    through = url.set(host="127.0.0.1", port=proxy.port, query={"options": options, "sslmode": "disable"})
    with eq.open_store(through.render_as_string(hide_password=False)) as store:
        yield store


@pytest.fixture
def experiment(store):
    made = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.8), seed=1)
    made.ask("first")
    return made


def in_time(action, seconds=40.0):
    """Return what an action returns; a test that waits for ever would say nothing."""
    results = []

    def act():
        try:
            results.append((action(), None))
        except BaseException as error:  # noqa: BLE001
            results.append((None, error))

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, f"nothing came in {seconds} seconds"
    [(result, error)] = results
    if error is not None:
        raise error
    return result


@contextmanager
def locked(postgresql_url, experiment):
    """Somebody else has the experiment's row; yields what ends that, and what waits until somebody waits for it."""
    with psycopg.connect(postgresql_url) as other, psycopg.connect(postgresql_url, autocommit=True) as observer:
        other.execute("SELECT 1 FROM experiments WHERE id = %s FOR UPDATE", (experiment.number,))

        def await_waiting():
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while not observer.execute(waiting).fetchone()[0]:
                pass

        yield other.rollback, await_waiting


def test_silence_is_noticed_after_a_minute_and_lock_waits_end_before():
    assert USUAL_SILENCE == 60
    assert postgresql.LOCK_SECONDS < USUAL_SILENCE <= postgresql.IDLE_SECONDS
    # A lost transaction's lock is free before others that wait for it give up.
    assert postgresql.PostgreSQLDatabase.attempts * postgresql.LOCK_SECONDS > postgresql.IDLE_SECONDS


def test_an_assignment_goes_on_by_a_new_connection(proxy, experiment):
    proxy.freeze()
    assert in_time(lambda: experiment.ask("second")).new
    before = proxy.n_connections
    assert in_time(lambda: experiment.ask("third")).new
    assert proxy.n_connections == before


def test_keys_are_read_by_a_new_connection(proxy, store):
    """Through a cursor. If this fails after an update of psycopg, see what `Connection.wait` became there."""
    create_key(store, role="admin", name="anna")
    proxy.freeze()
    assert [key.name for key in in_time(lambda: list_keys(store))] == ["anna"]


def test_an_export_breaks_off(proxy, experiment):
    class Freezing:
        def write(self, text):
            proxy.freeze()
            return len(text)

    with pytest.raises(eq.StoreUnavailable, match=r"no reply for 0\.5 seconds"):
        in_time(lambda: experiment.export(Freezing(), "csv"))


@pytest.mark.parametrize("by", ["our statements", "cursors", "a message that gets stuck halfway"])
def test_what_is_lost_with_the_lock_gives_the_lock_back(proxy, store, experiment, by):
    """The server ends the first attempt's transaction, or the second would wait for its lock."""
    attempts = []

    def work(transaction):
        attempts.append(1)
        if len(attempts) == 1:
            (proxy.stop_taking if "stuck" in by else proxy.freeze)()
        if by == "cursors":
            return transaction.connection.execute(sa.text("SELECT 7")).scalar()
        return len(transaction.execute("SELECT repeat(?::text, 1)", "x" * 10_000_000)[0][0]) // 10_000_000 * 7

    assert in_time(lambda: store.change(experiment.number, work)) == 7
    assert len(attempts) == 2


def test_a_lock_of_somebody_else_is_waited_for(postgresql_url, store, experiment):
    attempts = []
    with locked(postgresql_url, experiment) as (release, await_waiting):
        waiting = threading.Thread(target=store.change, args=(experiment.number, attempts.append))
        waiting.start()
        await_waiting()
        assert not attempts
        release()
        waiting.join(40)
    assert len(attempts) == 1


def test_a_lock_that_is_never_released_is_reported(postgresql_url, store, experiment, monkeypatch):
    monkeypatch.setattr(postgresql, "LOCK_SECONDS", 0.1)
    store.database.engine.dispose()  # for connections with the new limit
    with (
        locked(postgresql_url, experiment),
        pytest.raises(eq.StoreUnavailable, match=r"been writing to .* for 0\.3 sec"),
    ):
        in_time(lambda: experiment.ask("second"))
    assert experiment.ask("second").new


@pytest.mark.parametrize("by", ["our statements", "cursors"])
def test_a_server_that_cannot_be_reached_again_is_given_up(proxy, store, experiment, by):
    proxy.refuse()
    proxy.freeze()
    with pytest.raises(eq.StoreUnavailable):
        in_time(lambda: experiment.ask("second") if by == "our statements" else list_keys(store))


def test_a_machine_that_does_not_answer_is_noticed_by_tcp(store):
    with store.database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as ours:
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            found = [
                ours.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
            ]
    assert found == [15, 5, 3, 30_000]


def test_a_number_in_the_address_wins(postgresql_url):
    with eq.open_store(f"{postgresql_url}&keepalives_idle=99") as store, store.database.engine.connect() as connection:
        assert "keepalives_idle=99" in connection.connection.driver_connection.info.dsn


def test_rows_that_were_not_read_to_the_end_are_closed_with_their_transaction(store):
    """Closed later, they would end the transaction of whoever has the connection then."""
    kept = []

    def break_off(transaction):
        rows = transaction.stream("SELECT * FROM generate_series(1, 20000)")
        next(rows)
        raise ZeroDivisionError

    def another(transaction):
        first = transaction.connection.execute(sa.text("SELECT 1")).scalar()
        kept.clear()
        gc.collect()
        return first, transaction.connection.execute(sa.text("SELECT 2")).scalar()

    try:
        store.read(break_off, repeatable=False)
    except ZeroDivisionError as error:
        kept.append(error)
    assert store.read(another, repeatable=False) == (1, 2)
