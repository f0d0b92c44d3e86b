"""A PostgreSQL server that says nothing any more: a lost connection is noticed, one that waits is left alone."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from contextlib import contextmanager, suppress

import psycopg
import pytest
import sqlalchemy as sa
from patience import BUSY

import equipoise as eq
from equipoise.errors import StoreUnavailable
from equipoise.service.keys import create_key, list_keys
from equipoise.store import connection as silence

PATIENCE, LONGEST_SILENCE = 0.3, 1.0


class Proxy:
    """Something between us and the server that can forget connections without telling anybody."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._frozen: set[int] = set()
        self._stuck: set[tuple[int, str]] = set()
        self._closed = False
        self.n_connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> None:
        """Take what comes on the present connections, and forward nothing in either direction; new ones work."""
        self._frozen.update(range(self.n_connections))

    def stop_taking(self, *sides: str) -> None:
        """Take nothing more from these sides of the present connections, so that buffers fill up."""
        self._stuck.update((number, side) for number in range(self.n_connections) for side in sides)

    def refuse(self) -> None:
        """Let nobody in any more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def close(self) -> None:
        self._closed = True
        for one in (self._listening, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._sockets += (client, server)
                for ends in (("client", client, server), ("server", server, client)):
                    threading.Thread(target=self._pump, args=(self.n_connections, *ends), daemon=True).start()
                self.n_connections += 1

    def _pump(self, number: int, side: str, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                while (number, side) in self._stuck and not self._closed:
                    time.sleep(0.02)
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


@pytest.fixture
def store(postgresql_url, proxy, monkeypatch):
    monkeypatch.setattr(silence, "PATIENCE", PATIENCE)
    monkeypatch.setattr(silence, "LONGEST_SILENCE", LONGEST_SILENCE)
    monkeypatch.setattr(silence, "_UNDER_WAY", 0.1)
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


def in_time(action, seconds=8.0):
    """Return what an action gives; a test that waits for ever would say nothing."""
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
def locked(postgresql_url, experiment, seconds):
    """Somebody else has the experiment's row for a while."""
    with psycopg.connect(postgresql_url) as other:
        other.execute("SELECT 1 FROM experiments WHERE id = %s FOR UPDATE", (experiment.number,))
        timer = threading.Timer(seconds, other.rollback)
        timer.start()
        yield
        timer.join()


def test_an_assignment_goes_on_by_a_new_connection(proxy, experiment):
    proxy.freeze()
    assert in_time(lambda: experiment.ask("second")).new
    before = proxy.n_connections
    assert in_time(lambda: experiment.ask("third"), 1).new  # and only the first has to wait
    assert proxy.n_connections == before


def test_keys_are_read_by_a_new_connection(proxy, store):
    create_key(store, role="admin", name="anna")
    proxy.freeze()
    assert [key.name for key in in_time(lambda: list_keys(store))] == ["anna"]


def test_an_export_breaks_off(proxy, experiment, tmp_path):
    class Freezing:
        def write(self, text):
            proxy.freeze()
            return len(text)

    with pytest.raises(StoreUnavailable, match="fell silent"):
        in_time(lambda: experiment.export(Freezing(), "csv"))


@pytest.mark.parametrize("by", ["our statements", "cursors"])
def test_what_is_lost_with_the_lock_gives_the_lock_back(proxy, store, experiment, by):
    """Otherwise the second attempt would wait for the first, of which the server believes that it goes on."""
    attempts = []

    def work(transaction):
        attempts.append(1)
        if len(attempts) == 1:
            proxy.freeze()
        if by == "cursors":
            return transaction.connection.execute(sa.text("SELECT 7")).scalar()
        return transaction.database.execute(transaction.connection, "SELECT 7")[0][0]

    assert in_time(lambda: store.change(experiment.number, work)) == 7
    assert len(attempts) == 2


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_message_that_gets_stuck_halfway_is_lost(proxy, store, experiment, side):
    """A statement that nobody takes, or an answer: the server is at it, and waits for us as we wait for it."""
    attempts = []

    def work(transaction):
        attempts.append(1)
        if len(attempts) == 1:
            proxy.stop_taking(side)
        statement, text = "SELECT repeat(?::text, 2)", "x" * 10_000_000
        return len(transaction.database.execute(transaction.connection, statement, text)[0][0])

    assert in_time(lambda: store.change(experiment.number, work), 20) == 20_000_000
    assert len(attempts) == 2


@pytest.mark.parametrize("seconds", [PATIENCE * 2, LONGEST_SILENCE * 2.5])
def test_a_lock_of_somebody_else_is_waited_for(postgresql_url, proxy, store, experiment, seconds):
    attempts = []

    def work(transaction):
        attempts.append(1)
        return transaction.connection.execute(sa.text("SELECT 7")).scalar()

    before = proxy.n_connections
    with locked(postgresql_url, experiment, seconds):
        started = time.monotonic()
        assert in_time(lambda: store.change(experiment.number, work), seconds + 8) == 7
    assert time.monotonic() - started >= seconds * 0.9
    assert len(attempts) == 1
    assert proxy.n_connections > before  # somebody asked


def test_a_long_statement_is_waited_for(store):
    began = time.monotonic()
    assert store.read(lambda t: t.connection.execute(sa.text("SELECT 7 FROM pg_sleep(2)")).scalar()) == 7
    assert store.read(lambda t: t.database.execute(t.connection, "SELECT 7 FROM pg_sleep(2)")) == [(7,)]
    assert 4 <= time.monotonic() - began < 4 + BUSY


@pytest.mark.parametrize("by", ["our statements", "cursors"])
def test_a_server_that_cannot_be_asked_is_given_up(proxy, store, experiment, by):
    proxy.refuse()
    proxy.freeze()
    started = time.monotonic()
    with pytest.raises(StoreUnavailable):
        in_time(lambda: experiment.ask("second") if by == "our statements" else list_keys(store))
    assert time.monotonic() - started >= LONGEST_SILENCE


def test_a_server_that_cannot_be_asked_may_still_answer(postgresql_url, proxy, store, experiment, monkeypatch):
    """As when it has no connection left to give."""
    monkeypatch.setattr(silence, "LONGEST_SILENCE", 60)
    proxy.refuse()
    with locked(postgresql_url, experiment, 4 * PATIENCE):
        assert in_time(lambda: experiment.ask("second")).new


def test_a_machine_that_does_not_answer_is_noticed_by_tcp(store):
    with store.database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(driver.pgconn.socket)) as ours:
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            found = [
                ours.getsockopt(socket.IPPROTO_TCP, option)
                for option in (
                    socket.TCP_KEEPIDLE,
                    socket.TCP_KEEPINTVL,
                    socket.TCP_KEEPCNT,
                    socket.TCP_USER_TIMEOUT,
                )
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
