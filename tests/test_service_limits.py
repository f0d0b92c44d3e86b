"""Slow, idle and vanishing clients: they are cut off in time, and nobody else notices them."""

from __future__ import annotations

import json
import resource
import select
import socket
import statistics
import threading
import time
from contextlib import ExitStack, closing, suppress

import pytest
from endurance import short_and_full
from patience import BUSY, wait_until
from service_api import Api, path_of
from service_runner import running_service, serving_here

import equipoise as eq
from equipoise.service import Settings, ThreadedService, json_bodies, streaming
from equipoise.service.api_keys import create_key

SECONDS = 0.5


@pytest.fixture(scope="module")
def here():
    store = eq.open_store("memory:")
    with serving_here(store, Settings(body_seconds=SECONDS, idle_seconds=1)) as here:
        yield here


def connected(here):
    return socket.create_connection(("127.0.0.1", here.port), timeout=10)


def dribbled(connection, pieces, pause):
    """Send pieces one after another until the other side hangs up; return what it said and after how long."""
    started, said, hung_up = time.monotonic(), b"", False
    for piece in pieces:
        try:
            connection.sendall(piece)
        except OSError:
            hung_up = True
            break
        if select.select([connection], [], [], pause)[0]:
            break
    while not hung_up:
        try:
            piece = connection.recv(65_536)
        except ConnectionError:
            break
        said += piece
        hung_up = not piece
    return said, time.monotonic() - started


def letters(text):
    return [text[i : i + 1] for i in range(len(text))]


HEAD = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: " + b"y" * 200
PUT = b"POST /experiments HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def test_a_head_that_dribbles_in_is_cut_off(here):
    with connected(here) as connection:
        said, seconds = dribbled(connection, letters(HEAD), 0.05)
    assert said.startswith(b"HTTP/1.1 408 ") and SECONDS * 0.8 < seconds < SECONDS + BUSY


def test_a_service_in_a_thread_waits_no_longer_than_its_settings_say():
    settings = Settings(open=True, body_seconds=SECONDS)
    with (
        ThreadedService(eq.open_store("memory:"), settings) as service,
        socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])), timeout=10) as connection,
    ):
        connection.sendall(HEAD)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("framing", [b"content-length: 10000\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"])
def test_a_large_body_of_nobody_in_particular_is_not_waited_for(here, framing):
    with connected(here) as connection:
        connection.sendall(PUT + framing)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 401 ")


def test_short_bodies_that_never_come_keep_nobody_out_who_has_a_key():
    store = eq.open_store("memory:")
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings(requests_in_flight=5)) as here, ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(connected(here))
            connection.sendall(PUT + b"content-length: 9999\r\n\r\n{")
        with closing(Api(here.url, key)) as api:
            assert api.data("GET", "/experiments") == {"experiments": []}
        assert here.service.metrics.in_flight == 0


MANY = range(20_000)
CREATE = {"name": "new", "arms": ["a", "b"], "reward_weight": 0.5}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (path_of("x", "assignments", "many"), {"units": [0] * 10_000}),
        (path_of("x", "assignments", "many"), {"units": [0] * 500_000}),
        (path_of("x", "assignments", "many"), {"units": ["a", {"unit": "b"} | {f"{i}": 0 for i in MANY}]}),
        (path_of("x", "rewards", "many"), {"rewards": [0] * 10_000}),
        (path_of("x", "rewards", "many"), {"rewards": [{"unit": 0, "reward": "x"}] * 10_000}),
        (path_of("x", "rewards", "many"), {"rewards": []} | {f"{i}": 0 for i in MANY}),
        ("/experiments", CREATE | {"arms": [0 for _ in MANY]}),
        ("/experiments", CREATE | {"floor": ["" for _ in MANY]}),
        ("/experiments", CREATE | {"floor": {f"{i}": "" for i in MANY}}),
        ("/experiments", CREATE | {"stopping": [0 for _ in MANY]}),
        ("/experiments", CREATE | {f"{i}": 0 for i in MANY}),
    ],
)
def test_of_all_that_is_wrong_with_a_body_only_the_first_is_reported(path, body):
    with serving_here(eq.open_store("memory:"), Settings(open=True)) as here, closing(Api(here.url)) as api:
        assert len(api.refused(422, "InvalidInput", "POST", path, body)) < 300


def test_nobody_waits_while_a_large_body_is_refused():
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    body = b'{"units": [' + b"0," * 1_000_000 + b"0]}"
    settings = Settings(open=True, units_per_request=2_000_000)
    with serving_here(store, settings) as here, closing(Api(here.url)) as large, closing(Api(here.url)) as api:
        large.http.timeout = 120
        refusing = threading.Thread(target=large, args=("POST", path_of("x", "assignments", "many"), body))
        refusing.start()
        took = []
        while refusing.is_alive():
            started = time.monotonic()
            api.data("POST", path_of("x", "assignments"), {"unit": f"u{len(took)}"})
            took.append(time.monotonic() - started)
        refusing.join()
    assert max(took) < 2 * BUSY


MOST = 300_000


@pytest.fixture(params=[2 * BUSY])
def tight(request):
    """A service that holds one large body, who may use it, and a request with as much of that body as is wanted."""
    store = eq.open_store("memory:")
    made = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    made.ask("bob")  # so that nobody has to wait for the compiler
    key = create_key(store, role="assigner")[1]
    settings = Settings(body_bytes=MOST, bytes_in_flight=MOST, body_seconds=request.param)
    with serving_here(store, settings) as here, closing(Api(here.url, key)) as api:

        def with_body(n_bytes):
            start = PUT.replace(b"/experiments", path_of("x", "assignments", "many").encode())
            start += b"authorization: Bearer " + key.encode() + b"\r\ncontent-length: %d\r\n\r\n" % MOST
            return start + (b'{"units": ["ada"]' + b" " * (MOST - 18) + b"}")[:n_bytes]

        yield here, api, with_body


def answer_to_the_largest(here, request):
    with connected(here) as connection:
        connection.sendall(request(MOST))
        return connection.recv(65_536)


def becomes_free(here, request):
    wait_until(lambda: answer_to_the_largest(here, request).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 ")))


def test_bodies_that_are_too_much_together_are_refused_and_small_ones_are_not(tight):
    here, api, request = tight
    with connected(here) as connection:
        connection.sendall(request(MOST - 1))
        until = time.monotonic() + 10
        while not (refused := answer_to_the_largest(here, request)).startswith(b"HTTP/1.1 503 "):
            assert time.monotonic() < until  # not all of the first was there yet
        assert b"\r\nretry-after: 1\r\n" in refused and b"more than 300,000 bytes of requests at once" in refused
        assert api("POST", path_of("x", "assignments"), {"unit": "eve"}).status_code == 201
        connection.sendall(b"}")
        assert connection.recv(65_536).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))
    becomes_free(here, request)


def test_bodies_are_forgotten_however_their_requests_end(tight):
    here, api, request = tight
    for _ in range(2):  # answered, and answered again
        assert answer_to_the_largest(here, request).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))
    with connected(here) as connection:  # the client leaves
        connection.sendall(request(200_000))
    becomes_free(here, request)
    # Too much of it comes, it is no JSON, or not what is expected.
    chunked = {"content": iter([b" " * 200_000] * 2), "headers": {"content-type": "application/json"}}
    api.refused(413, "InvalidInput", "POST", path_of("x", "assignments", "many"), **chunked)
    api.refused(400, "InvalidInput", "POST", path_of("x", "assignments", "many"), b" " * 200_000)
    api.refused(422, "InvalidInput", "POST", path_of("x", "assignments", "many"), b'"%b"' % (b"x" * 200_000))
    becomes_free(here, request)
    # One that was refused for the sake of others; it may be sent again on the same connection.
    with connected(here) as first, connected(here) as second:
        first.sendall(request(MOST - 1))
        while True:
            second.sendall(request(MOST))
            if (said := second.recv(65_536)).startswith(b"HTTP/1.1 503 "):
                break
            assert said.startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))
        first.sendall(b"}")
        assert first.recv(65_536).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))
        second.sendall(request(MOST))
        assert second.recv(65_536).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 201 "))


@pytest.mark.parametrize("tight", [0.5], indirect=True)
def test_a_body_that_takes_too_long_is_forgotten(tight):
    here, _, request = tight
    with connected(here) as connection:
        connection.sendall(request(200_000))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408 ")
    becomes_free(here, request)


@pytest.mark.parametrize("path", [b"/", b"/healthz", b"/docs", b"/docs/x", b"/openapi.json"])
def test_what_is_open_to_all_takes_no_large_bodies(here, path):
    for framing in (b"content-length: 2000\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n7d0\r\n" + b"x" * 2000):
        with connected(here) as connection:
            connection.sendall(b"GET " + path + b" HTTP/1.1\r\nhost: localhost\r\n" + framing)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 413 ")


def test_only_what_is_named_is_open_to_all(here):
    with closing(Api(here.url)) as nobody:
        assert nobody("GET", "/docs-not-there").status_code == 401
        assert nobody("GET", "/healthz/x").status_code == 401
        assert nobody("GET", "/docs").status_code == 200


@pytest.fixture
def large_answer(monkeypatch, unread_seconds):
    """A server, a connection whose client has little room, and a request whose answer has over thirteen megabytes."""
    monkeypatch.setattr("equipoise.service.handlers.MOST_DETAILS", 10**9)
    store = eq.open_store("memory:")
    key = create_key(store, role="admin")[1]
    experiment = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    experiment.ask_many((f"u{i}", {"note": "x" * 9_900}) for i in range(1_350))
    with serving_here(store, Settings(unread_seconds=unread_seconds)) as here, connected(here) as connection:
        head = f"GET {path_of('x', 'events')}?limit=1350 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        connection.settimeout(60)
        yield here, connection, head.encode()


@pytest.mark.parametrize("unread_seconds", [0.5])
def test_who_does_not_read_an_answer_is_cut_off(large_answer):
    here, connection, request = large_answer
    connection.sendall(request)
    read = len(connection.recv(1))  # it has begun
    wait_until(lambda: not here.connections)
    with suppress(ConnectionError):
        while piece := connection.recv(2**20):
            read += len(piece)
    assert read < 13_000_000


# What is taken shows in steps of a megabyte or two, which come every second.
@pytest.mark.parametrize("unread_seconds", [1 + BUSY])
def test_who_reads_an_answer_slowly_but_steadily_gets_all_of_it(large_answer, unread_seconds):
    _, connection, request = large_answer
    seconds = 1.5 * unread_seconds
    connection.sendall(request)
    started, read = time.monotonic(), 0
    while read < 13_000_000:
        piece = connection.recv(100_000)
        assert piece, f"cut off after {read:,} bytes"
        read += len(piece)
        time.sleep(max(0.0, started + seconds * read / 13_000_000 - time.monotonic()))


def test_a_connection_that_says_nothing_is_cut_off(here):
    with connected(here) as connection:
        said, seconds = dribbled(connection, [], 0)
    assert said == b"" and SECONDS * 0.8 < seconds < SECONDS + BUSY


def test_the_second_request_of_a_connection_has_as_little_time(here):
    with connected(here) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        _, seconds = dribbled(connection, letters(HEAD), 0.05)
    assert SECONDS * 0.8 < seconds < SECONDS + BUSY


@pytest.mark.parametrize("framing", [b"content-length: 200\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"])
def test_a_body_that_dribbles_in_is_cut_off_and_told_why(here, framing):
    pieces = letters(b"{" + b" " * 200) if b"length" in framing else [b"1\r\n \r\n"] * 200
    # Without a key, a body whose length is not known would not be waited for.
    key = create_key(here.service.store, role="admin")[1].encode()
    with connected(here) as connection:
        connection.sendall(PUT + b"authorization: Bearer " + key + b"\r\n" + framing)
        said, seconds = dribbled(connection, pieces, 0.05)
    assert SECONDS * 0.8 < seconds < SECONDS + BUSY
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"x-request-id" in head.lower() and b"x-content-type-options: nosniff" in head.lower()
    assert set(json.loads(body)) == {"error", "hint"}


def test_a_client_that_takes_long_but_not_too_long_is_answered(here):
    with connected(here) as connection:
        for piece in (b"GET /heal", b"thz HTTP/1.1\r\nhost:", b" localhost\r\n", b"\r\n"):
            connection.sendall(piece)
            time.sleep(SECONDS / 8)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_a_connection_that_is_idle_between_requests_is_closed_after_a_while(here):
    with connected(here) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        started = time.monotonic()
        assert connection.recv(1) == b""
    assert 0.8 < time.monotonic() - started < 1 + BUSY


def test_slow_clients_are_forgotten_and_delay_nobody(here):
    with ExitStack() as stack, closing(Api(here.url)) as api:
        for i in range(200):
            connection = stack.enter_context(connected(here))
            connection.sendall(HEAD if i % 2 else PUT + b"content-length: 200\r\n\r\n{")
        took = []
        for _ in range(20):
            started = time.monotonic()
            api.data("GET", "/healthz")
            took.append(time.monotonic() - started)
        assert max(took) < 0.5
        wait_until(lambda: here.service.metrics.in_flight == 0)


def test_a_client_that_leaves_in_the_middle_of_its_body_is_forgotten(here):
    for _ in range(20):
        with connected(here) as connection:
            connection.sendall(PUT + b"content-length: 200\r\n\r\n{")
    wait_until(lambda: here.service.metrics.in_flight == 0)


class Replays:
    """Replays of the log of "x" that take until they are let go."""

    def __init__(self, monkeypatch):
        self.begun, self.go_on = [], threading.Event()
        verify = eq.Experiment.verify

        def held(experiment):
            if experiment.name == "x":
                self.begun.append(1)
                self.go_on.wait(60)
            return verify(experiment)

        monkeypatch.setattr(eq.Experiment, "verify", held)


@pytest.fixture
def replays(monkeypatch):
    replays = Replays(monkeypatch)
    yield replays
    replays.go_on.set()


VERIFY = ("GET", "/experiments/{name}/verify")


def two_experiments():
    store = eq.open_store("memory:")
    for name in ("x", "y"):
        eq.Experiment.create(store, name, arms=["a", "b"], policy=eq.Uniform(), seed=1)
    return store, create_key(store, role="reader")[1], create_key(store, role="admin")[1]


def calls_of_verify(stack, here, key, number):
    connections = [stack.enter_context(connected(here)) for _ in range(number)]
    for connection in connections:
        head = f"GET {path_of('x', 'verify')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\n\r\n"
        connection.sendall(head.encode())
    return connections


def test_long_calls_of_one_experiment_keep_nobody_else_out(replays):
    store, reader, admin = two_experiments()
    with serving_here(store, Settings()) as here, ExitStack() as stack, closing(Api(here.url, admin)) as api:
        requests = here.service.metrics.requests
        connections = calls_of_verify(stack, here, reader, 220)
        wait_until(lambda: requests[*VERIFY, 503] == 215)
        wait_until(lambda: len(replays.begun) == 5)
        refused = api("GET", path_of("x", "verify"))
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "too many long calls of this experiment" in refused.json()["error"]
        for connection in connections:
            connection.close()
        assert api("GET", "/metrics").status_code == 200
        assert len(api.data("GET", "/experiments")["experiments"]) == 2
        for name in ("x", "y"):
            assert api.data("GET", path_of(name, "status"))["state"] == "enrolling"
            assert api.data("POST", path_of(name, "pause"))["state"] == "paused"
        for verb in ("verify", "history"):
            assert api("GET", path_of("y", verb)).status_code == 200
        wait_until(lambda: requests[*VERIFY, 499] == 5)
        assert api("GET", path_of("x", "verify")).status_code == 503  # threads go on, and count, until they are done
        replays.go_on.set()
        wait_until(lambda: api("GET", path_of("x", "verify")).status_code == 200)


def test_a_long_call_that_has_not_begun_ends_with_its_client(replays, monkeypatch):
    monkeypatch.setattr("equipoise.service.service._MOST_LONG_THREADS", 1)
    store, reader, _ = two_experiments()
    with serving_here(store, Settings()) as here, ExitStack() as stack:
        first = calls_of_verify(stack, here, reader, 1)[0]
        wait_until(lambda: replays.begun)
        others = calls_of_verify(stack, here, reader, 4)
        wait_until(lambda: here.service.metrics.in_flight == 5)
        for connection in others:
            connection.close()
        wait_until(lambda: here.service.metrics.requests[*VERIFY, 499] == 4)
        waiting = calls_of_verify(stack, here, reader, 1)[0]
        wait_until(lambda: here.service.metrics.in_flight == 2)
        replays.go_on.set()
        for connection in (first, waiting):
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        assert len(replays.begun) == 2


def test_an_export_that_nobody_reads_ends_with_its_client(tmp_path):
    """A thread that writes for nobody, and the transaction it reads in, would be there for ever."""
    store = eq.open_store(f"sqlite:///{tmp_path}/x.db")
    key = create_key(store, role="admin")[1]
    made = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    made.ask_many((f"u{i}", {"x": "y" * 8_000}) for i in range(1_500))

    def exports():
        return list(streaming._running)

    with serving_here(store, Settings()) as here, closing(Api(here.url, key)) as api:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", here.port))
            connection.sendall(
                f"GET /experiments/x/export HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n".encode()
            )
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
            assert api.data("POST", path_of("x", "assignments"), {"unit": "new"})["new"]  # nobody waits for it
            assert len(exports()) == 1  # and it waits for its reader
        wait_until(lambda: not exports())
        whole = api("GET", path_of("x", "export"), params={"format": "jsonl"}).content
        assert whole.count(b"\n") == 1_501


@pytest.mark.parametrize("most", short_and_full(200, 10_000))
def test_idle_connections_delay_nobody(tmp_path, capsys, most):
    """Or as many as the system lets a process have: every connection has had a request and stays open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = min(most, hard - 500)
    assert number >= min(most, 1_000), "raise the hard limit of open files to run this test"
    store_url = f"sqlite:///{tmp_path}/x.db"
    with eq.open_store(store_url) as store:
        key = create_key(store, role="admin")[1]
        eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with running_service(store_url) as service, closing(Api(service.url, key)) as api, ExitStack() as stack:
            idle = []
            while len(idle) < number:
                several = [stack.enter_context(socket.socket()) for _ in range(min(500, number - len(idle)))]
                for connection in several:
                    connection.connect(("127.0.0.1", service.port))
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                for connection in several:
                    said = b""
                    while not said.endswith(b"}"):
                        said += connection.recv(65_536)
                    assert said.startswith(b"HTTP/1.1 200")
                idle += several
            took = []
            for i in range(60):
                started = time.monotonic()
                assert api.data("POST", path_of("x", "assignments"), {"unit": f"u{i}"})["new"]
                took.append(time.monotonic() - started)
            assert statistics.median(took) < 1  # a queue behind them would take longer even on a busy machine
            for connection in idle:  # all of them are still open, and are answered too
                connection.setblocking(False)
                with pytest.raises(BlockingIOError):
                    connection.recv(1, socket.MSG_PEEK)
            for connection in idle[:: number // 50]:
                connection.setblocking(True)
                connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with capsys.disabled():
        print(f" {number:,} idle connections")


def test_large_bodies_are_decoded_one_at_a_time_and_never_where_others_are_answered(monkeypatch):
    """While somebody sends nothing but large bodies, at most one of them is being decoded, on a thread of its own."""
    from equipoise.service import dispatch

    inner, counting = dispatch.decode_body, threading.Lock()
    at_once, most_at_once, threads = 0, 0, set()

    def noting(decoder, body, most):
        nonlocal at_once, most_at_once
        if len(body) > 16_384:
            with counting:
                at_once += 1
                most_at_once = max(most_at_once, at_once)
                threads.add(threading.current_thread().name)
        try:
            return inner(decoder, body, most)
        finally:
            if len(body) > 16_384:
                with counting:
                    at_once -= 1

    monkeypatch.setattr(dispatch, "decode_body", noting)
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    large = b'{"units": [{"unit": "a", "attributes": {' + b",".join(b'"%d": 0' % i for i in range(50_000)) + b"}}]}"
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:

        def send():
            with closing(Api(here.url)) as large_api:
                for _ in range(3):
                    assert large_api("POST", path_of("x", "assignments", "many"), large).status_code in (422, 503)
                    assert large_api("POST", path_of("x", "assignments"), large).status_code == 413

        senders = [threading.Thread(target=send) for _ in range(6)]
        for sender in senders:
            sender.start()
        while any(sender.is_alive() for sender in senders):
            assert api("POST", path_of("x", "assignments"), {"unit": "ada"}).status_code in (200, 201)
        for sender in senders:
            sender.join()
    assert most_at_once == 1 and all(name.startswith("equipoise-decode") for name in threads)


def test_a_body_of_very_many_values_is_refused_without_being_decoded(monkeypatch):
    with serving_here(eq.open_store("memory:"), Settings(open=True)) as here, closing(Api(here.url)) as api:
        for body in (b'{"units": [' + b"[]," * 200_000, b'{"units": [' + b'"a",' * 400_000 + b'"a"]}'):
            told = api.refused(422, "InvalidInput", "POST", path_of("x", "assignments", "many"), body)
            assert told.startswith("a body may have at most 300,000 values; got about 4")


@pytest.mark.parametrize("nested", [b"%b", b'{"a": [%b]}'])
def test_attributes_of_very_many_values_are_refused_without_being_looked_through(monkeypatch, nested):
    """Looking for names that stand twice, and for the length as JSON, takes ten times as long as decoding."""

    def look(body):
        raise AssertionError("the body was looked through")

    monkeypatch.setattr(json_bodies, "duplicate_key", look)
    many = nested % (b"{" + b",".join(b'"%d": 0' % i for i in range(4_000)) + b"}")
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        body = b'{"units": ["bob", {"unit": "ada", "attributes": %b}]}' % many
        told = api.refused(422, "InvalidInput", "POST", path_of("x", "assignments", "many"), body)
        assert told == "attributes must take at most 10,000 characters as JSON; got many more"


def test_bodies_with_one_key_leave_room_for_those_with_others():
    store = eq.open_store("memory:")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1).ask("ada")
    keys = [create_key(store, role="assigner")[1] for _ in range(2)]
    most = 100_000
    body = b'{"units": ["ada"]' + b" " * (most - 18) + b"}"
    settings = Settings(body_bytes=most, bytes_in_flight=4 * most, body_seconds=2 * BUSY)
    with serving_here(store, settings) as here, ExitStack() as stack:

        def begun(key, n_bytes):
            connection = stack.enter_context(connected(here))
            head = PUT.replace(b"/experiments", path_of("x", "assignments", "many").encode())
            connection.sendall(head + b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n" % (key.encode(), most))
            connection.sendall(body[:n_bytes])
            return connection

        begun(keys[0], most - 1)
        wait_until(lambda: begun(keys[0], most).recv(65_536).startswith(b"HTTP/1.1 503 "))
        assert begun(keys[1], most).recv(65_536).startswith(b"HTTP/1.1 200 ")


@pytest.mark.endurance
def test_others_hardly_notice_who_sends_large_bodies_all_the_time(tmp_path):
    """Compared with as many small requests of that client, others wait at most some times longer.

    When large bodies were read on every route and decoded on the event loop, they waited for up to 6.5 seconds.
    """
    store = eq.open_store(f"sqlite:///{tmp_path}/x.db")
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1).ask("ada")
    keys = [create_key(store, role="assigner")[1] for _ in range(2)]
    large = b'{"units": [{"unit": "a", "attributes": {' + b",".join(b'"%x": 0' % i for i in range(290_000)) + b"}}]}"
    path = path_of("x", "assignments")
    with serving_here(store, Settings()) as here:

        def waits(misbehave):
            over = threading.Event()

            def busy():
                with closing(Api(here.url, keys[0])) as api:
                    while not over.is_set():
                        misbehave(api)

            busy_ones = [threading.Thread(target=busy) for _ in range(4)]
            for one in busy_ones:
                one.start()
            took = []
            with closing(Api(here.url, keys[1])) as api:
                for number in range(300):
                    started = time.monotonic()
                    assert api("POST", path, {"unit": f"u{number}"}).status_code in (200, 201)
                    took.append(time.monotonic() - started)
            over.set()
            for one in busy_ones:
                one.join()
            return statistics.quantiles(took, n=100)[98]

        usual = waits(lambda api: api("POST", path, {"unit": "ada"}))
        wrong_place = waits(lambda api: api("POST", path, large))
        bulk = waits(lambda api: api("POST", f"{path}/many", large))
    print(
        f"p99 of others: {usual:.3f} s, {wrong_place:.3f} s with large bodies refused, {bulk:.3f} s with some decoded"
    )
    assert wrong_place < 5 * usual + 1.0 and bulk < 5 * usual + 2.0
