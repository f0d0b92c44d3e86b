"""Exports that nobody reads: they are few, they end in time, and nobody else notices them."""

from __future__ import annotations

import gc
import logging
import socket
import sys
import threading
import time
import uuid
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from patience import wait_until
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.service import Settings, streaming

STALL = 0.6
N_UNITS, CHUNK = 2_000, 900


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def url(request, tmp_path_factory):
    """A store with an experiment whose export no buffer of the system can hold, nor one piece of what is read."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('exports')}/x.db"
    else:
        server = request.getfixturevalue("postgresql")
        schema = f"s{uuid.uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        url = f"{server}&options=-csearch_path%3D{schema}"
    with eq.open_store(url) as store:
        made = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        made.ask_many((f"u{i}", {"x": "y" * 9_000}) for i in range(N_UNITS))
    return url


@pytest.fixture
def store(url, monkeypatch):
    for database in ("sqlite", "postgresql"):
        monkeypatch.setattr(f"equipoise.store.{database}._CHUNK_ROWS", CHUNK)
    return eq.open_store(url)  # whoever serves it closes it


@pytest.fixture
def lines():
    """What the service logs."""
    found = []

    class Kept(logging.Handler):
        def emit(self, record):
            found.append(record)

    logger, handler = logging.getLogger("equipoise.service"), Kept()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield found
    logger.removeHandler(handler)
    logger.setLevel(level)


@contextmanager
def asking(here, form="csv", room=4096):
    """A client that asks for an export and takes nothing of it but the beginning."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", here.port))
        connection.sendall(f"GET /experiments/x/export?format={form} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        yield connection


def exports():
    return list(streaming._running)


def rest_of(connection):
    """Read all that comes until the other side hangs up."""
    pieces = []
    while piece := connection.recv(1_000_000):
        pieces.append(piece)
    return b"".join(pieces)


def n_in_use(store):
    return store.database.engine.pool.checkedout()


def test_more_than_a_few_at_once_are_refused_and_everything_else_goes_on(store):
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api, ExitStack() as stack:
        clients = [stack.enter_context(asking(here)) for _ in range(streaming.MOST_EXPORTS)]
        assert len(exports()) == streaming.MOST_EXPORTS
        refused = api("GET", path_of("x", "export"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "4 exports are under way" in refused.json()["error"]
        assert api.data("POST", path_of("x", "assignments"), {"unit": "u1"})["unit"] == "u1"
        assert api.data("GET", path_of("x", "status"))["n_assigned"] == N_UNITS
        wait_until(lambda: n_in_use(store) == 0)  # all is written, though nobody has read it
        assert len(exports()) == streaming.MOST_EXPORTS
        clients[0].close()  # the others are as they were, and there is room for one
        wait_until(lambda: len(exports()) < streaming.MOST_EXPORTS)
        whole = api("GET", path_of("x", "export")).content
        assert whole.count(b"\n") == N_UNITS + 1


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_one_that_stalls_gives_its_connection_back_and_is_not_taken_for_whole(store, lines, monkeypatch, form):
    monkeypatch.setattr(streaming, "STALL_SECONDS", STALL)
    with serving_here(store, Settings(open=True)) as here, asking(here, form) as connection:
        began = time.monotonic()
        wait_until(lambda: not exports())
        assert time.monotonic() - began > STALL / 2
        wait_until(lambda: n_in_use(store) == 0)
        wait_until(lambda: here.service.metrics.in_flight == 0)
        assert not rest_of(connection).endswith(b"\r\n0\r\n\r\n")
    told = [record for record in lines if "export" in record.getMessage()]
    assert sorted(record.getMessage() for record in told) == [
        "an export broke off, as its client took nothing of it",
        "an export was given up",
    ]
    assert not any(record.exc_info for record in lines)


def test_a_client_that_is_slow_gets_all_of_it(store, monkeypatch):
    monkeypatch.setattr(streaming, "STALL_SECONDS", slow := 1.5)
    with serving_here(store, Settings(open=True)) as here, asking(here, room=65_536) as connection:
        began = time.monotonic()
        while time.monotonic() - began < 2 * slow:
            connection.recv(40_000)
            time.sleep(0.015)
        assert exports()
        assert rest_of_chunks(connection).endswith(b"\r\n0\r\n\r\n")


def rest_of_chunks(connection):
    """Read to the end of the answer; the connection stays open for the next request."""
    last = b""
    while not last.endswith(b"\r\n0\r\n\r\n"):
        piece = connection.recv(1_000_000)
        assert piece
        last = (last + piece)[-100:]
    return last


@pytest.mark.parametrize("who", ["the client leaves", "the service ends"])
def test_one_that_is_given_up_says_so_in_one_line_and_prints_nothing(store, lines, monkeypatch, capfd, who):
    """No thread and no finalizer may fail: Python would print that past the log."""
    failed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: failed.append(told.exc_value))
    monkeypatch.setattr(threading, "excepthook", failed.append)
    with serving_here(store, Settings(open=True, grace_seconds=1)) as here, ExitStack() as stack:
        clients = [stack.enter_context(asking(here)) for _ in range(3)]
        if who == "the service ends":
            stack.pop_all()
        else:
            for client in clients:
                client.close()
            wait_until(lambda: not exports())
    wait_until(lambda: not exports())
    for client in clients:
        client.close()
    gc.collect()
    # That a connection was left to the collector is a warning, which nobody sees who does not ask for it.
    assert [error for error in failed if not isinstance(error, ResourceWarning)] == []
    assert [record.getMessage() for record in lines].count("an export was given up") == 3
    assert "Traceback" not in capfd.readouterr().err
    store.close()


def test_an_export_that_cannot_be_written_is_refused_and_leaves_room(store, monkeypatch):

    def fail(*_):
        raise eq.MissingExtra("Parquet needs the package polars", hint="pip install 'equipoise[frames]'")

    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        with monkeypatch.context() as patch:
            patch.setattr(eq.Experiment, "export", fail)
            for _ in range(2 * streaming.MOST_EXPORTS):
                api.refused(501, "MissingExtra", "GET", path_of("x", "export"))
        wait_until(lambda: not exports())
        assert api("GET", path_of("x", "export")).status_code == 200


@pytest.mark.parametrize("form", ["csv", "jsonl"])  # a Parquet file of this table fits into the connection's buffers
def test_the_transaction_ends_before_a_slow_client_has_read(store, form):
    """It would keep SQLite from recycling its WAL, however much is written meanwhile."""
    database = store.database
    with serving_here(store, Settings(open=True)) as here, asking(here, form):
        wait_until(lambda: [one._ended for one in exports()] == [True])
        wait_until(lambda: n_in_use(store) == 0)
        if database.locks_rows:
            return
        other, wal = eq.open_store(store.url), Path(f"{database.path}-wal")
        with other:
            made = eq.Experiment.create(other, f"writer {form}", arms=["a", "b"], policy=eq.Uniform(), seed=1)
            written = 0
            for number in range(12):
                made.ask_many((f"u{number}-{i}", {"x": "y" * 2_000}) for i in range(1_000))
                written += 1_000 * 2_000
        assert wal.stat().st_size < written / 2  # checkpoints begin after four megabytes
        assert len(exports()) == 1


def test_an_export_without_room_is_refused_and_leaves_no_file_open(store, monkeypatch):
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        with monkeypatch.context() as patch:
            patch.setattr(streaming, "LEAST_FREE_BYTES", 2**62)
            api.refused(503, "StoreUnavailable", "GET", path_of("x", "export"))
            wait_until(lambda: not exports())
        assert api("GET", path_of("x", "export")).content.count(b"\n") == N_UNITS + 1
        wait_until(lambda: not exports())
