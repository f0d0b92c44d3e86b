"""What is not a good request: bodies that are no JSON, wrong methods and addresses, pages of strangers."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import sqlite3
import subprocess
import time
from contextlib import closing, suppress

import httpx
import pytest
import sqlalchemy as sa
from patience import BUSY
from service_api import Api, checked, path_of
from service_runner import serving_here
from tools import need

import equipoise as eq
from equipoise.http_api import SMALL_BODY
from equipoise.service import Settings, middleware
from equipoise.service.api_keys import create_key
from equipoise.service.json_bodies import duplicate_key

ASK, TELL = path_of("x", "assignments"), path_of("x", "assignments", "ada", "reward")


def experiment(store):
    made = eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    made.ask("ada")


@pytest.fixture(scope="module")
def here():
    store = eq.open_store("memory:")
    experiment(store)
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings(body_bytes=250_000)) as here, closing(Api(here.url, key)) as api:
        api.data("GET", path_of("x", "assignments", "ada"))
        yield here, key


@pytest.fixture(scope="module")
def api(here):
    with closing(Api(here[0].url, here[1])) as api:
        yield api


def raw(here, request: bytes) -> bytes:
    """What a server sends back to bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        connection.sendall(request)
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
    return b"".join(pieces)


def test_a_misspelt_parameter_is_refused_and_told_what_there_is(api):
    told = api.refused(422, "InvalidInput", "GET", path_of("x", "events"), params={"limt": 5})
    assert "has the parameters after, limit, before, kinds, newest_first, at; got 'limt'" in told and "/docs" in told
    told = api.refused(422, "InvalidInput", "GET", path_of("x", "status"), params={"limit": 5})
    assert "has the parameters at; got 'limit'" in told
    told = api.refused(422, "InvalidInput", "GET", path_of("x", "history"), params={"points": 2, "a\x1b" * 50: ""})
    assert "got 'a\\x1ba" in told and len(told) < 400
    api.data("GET", path_of("x", "events"), params={"limit": 5, "after": 0})


def test_no_address_with_a_key_ignores_a_parameter(api):
    """Those that are hot are no exception, and nothing is recorded by what is refused."""
    bodies = {ASK: {"unit": "misspelt"}, TELL: {"reward": 0.5}}
    for path, methods in api.data("GET", "/openapi.json")["paths"].items():
        place = path.format(name="x", unit="ada", arm="a", id="0" * 64)
        for method, operation in methods.items():
            if "security" in operation:
                body = bodies.get(place) if method != "get" else None
                told = api.refused(422, "InvalidInput", method.upper(), place, body, params={"nonsense": 1})
                assert "got 'nonsense'" in told
    api.refused(404, "UnknownUnit", "GET", path_of("x", "assignments", "misspelt"))
    assert api.data("GET", path_of("x", "assignments", "ada"))["reward"] is None


def test_monitors_and_browsers_may_put_what_they_like_behind_an_address_that_needs_no_key(api):
    for place in ("/", "/healthz", "/readyz", "/docs", "/openapi.json", "/docs/swagger-ui.css"):
        assert api("GET", place, params={"now": 1}).status_code == 200


@pytest.mark.parametrize(("method", "place"), [("POST", path_of("x", "settle")), ("GET", path_of("x", "status"))])
def test_a_body_where_none_is_taken_is_refused_unless_it_is_empty(api, method, place):
    for body in (b'{"anyway": true}', b"[1]", b"junk", b"\xff" * 500, b'"settle"'):
        told = api.refused(422, "InvalidInput", method, place, body)
        assert "takes no body" in told and len(told) < 300
    assert api.data("GET", path_of("x"))["state"] == "enrolling"
    for body in (b"", b"{}", b" {}\n", b"null"):
        api.data(method, place, body)
    api.data("POST", path_of("x", "resume"))


DEEP = 100_000
NOT_JSON = [
    b"{",
    b"}",
    b"not json",
    b"{'unit': 'a'}",
    b'{"unit": "a"',
    b'{"unit": "a"} x',
    b'{"unit": "a",}',
    b'{"unit": "a", "unit": "b"}',
    b'{"unit": "a", "attributes": {"b": 1, "b": 1}}',
    b'{"unit": NaN, "reward": NaN}',
    b'{"unit": "a", "reward": Infinity}',
    b'{"unit": "a", "reward": -Infinity}',
    b'{"unit": "a", "reward": 1e400}',
    b'{"unit": "a", "attributes": {"b": NaN}}',
    b'{"unit": "a", "attributes": {"b": 1e400}}',
    b'{"reward": ' + b"9" * 5_000 + b"}",
    b'{"unit": "\xff"}',
    b'{"unit": "\xed\xa0\x80"}',
    b'{"unit": "\\ud800"}',
    b'{"unit": "a\x00"}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b"\x00",
    b"[" * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b'{"a":' * (DEEP // 3) + b"1" + b"}" * (DEEP // 3),
    b'{"unit": "a", "attributes": ' + b'{"a":' * 30_000 + b"1" + b"}" * 30_001,
    *(b'{"unit": "a", "attributes": ' + b'{"a":' * n + b"1" + b"}" * n + b"}" for n in (200, *range(900, 1_000, 5))),
]
"""What no route may take for JSON, or choke on."""

WITH_BODIES = [
    ("POST", "/experiments"),
    ("POST", ASK),
    ("POST", ASK + "/many"),
    ("PUT", TELL),
    ("POST", path_of("x", "rewards", "many")),
    ("POST", path_of("x", "assignments", "ada", "corrections")),
    ("POST", path_of("x", "arms")),
    ("PUT", path_of("x", "weight")),
    ("POST", path_of("x", "finish")),
    ("POST", path_of("x", "pause")),
]
NEED_NO_BODY = ("finish", "pause")


@pytest.mark.parametrize(("method", "path"), WITH_BODIES)
def test_a_body_that_is_no_json_is_refused_and_said_so(api, method, path):
    for body in NOT_JSON:
        if len(body) > SMALL_BODY:  # too large for most, and otherwise only the first that is wrong with it is reported
            assert api(method, path, body).status_code in (400, 413, 422)
            continue
        told = api.refused(400, "InvalidInput", method, path, body)
        assert told.startswith("the body must be JSON; "), body[:50]
        assert len(told) < 200
    assert api.data("GET", path_of("x", "status"))["n_assigned"] == 1


def test_a_name_that_stands_twice_among_many_is_found_in_one_pass():
    names = [f'"{i}":0' for i in range(100_000)]
    started = time.monotonic()
    assert duplicate_key(f"{{{','.join(names)},{names[-1]}}}".encode()) == "99999"
    assert time.monotonic() - started < 2 * BUSY  # to compare each with each takes minutes


@pytest.mark.parametrize(("method", "path"), WITH_BODIES)
@pytest.mark.parametrize("body", [b"null", b"[]", b'"ada"', b"1", b"true", b'{"extra": 1}', b'[{"unit": "a"}]'])
def test_json_that_is_not_what_is_expected_is_refused_with_what_was_got(api, method, path, body):
    if path.endswith(NEED_NO_BODY) and body == b"null":
        return  # which is nothing, as it may be
    told = api.refused(422, "InvalidInput", method, path, body)
    assert "expected" in told or "required" in told or "unknown field" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(("method", "path"), [pair for pair in WITH_BODIES if not pair[1].endswith(NEED_NO_BODY)])
def test_no_body_is_not_enough(api, method, path):
    told = api.refused(422, "InvalidInput", method, path, b"")
    assert told == "the body: field required"


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("POST", ASK, {"unit": 42}, "unit: expected string; got 42"),
        ("POST", ASK, {"unit": "a", "attributes": []}, "attributes: expected object or null; got []"),
        ("POST", ASK, {"units": "a"}, "unit"),
        ("POST", ASK, {"unit": "a", "attributes": {"x": "y" * 10_000}}, "attributes must take at most 10,000"),
        ("PUT", TELL, {"reward": "1"}, "reward: expected number; got '1'"),
        ("PUT", TELL, {"reward": None}, "reward: expected number; got None"),
        ("PUT", TELL, {"reward": True}, "reward: expected number; got True"),
        ("PUT", TELL, {"reward": 10**400}, "reward: "),
        ("PUT", TELL, {"reward": 1, "unit": "ada"}, "unit: unknown field"),
        ("POST", ASK + "/many", {"units": ["a", 1]}, "units[1]"),
        ("POST", ASK + "/many", {"units": ["a", {"unit": 1}]}, "units[1].unit"),
        ("POST", ASK + "/many", {"units": ["a", {"unit": "b", "x": 1}]}, "units[1].x"),
        ("POST", ASK + "/many", {"units": "abc"}, "units: expected array; got 'abc'"),
        ("POST", path_of("x", "rewards", "many"), {"rewards": [{"unit": "ada", "reward": "x"}]}, "rewards[0].reward"),
        ("POST", path_of("x", "rewards", "many"), {"rewards": {"ada": 1}}, "rewards: expected array"),
    ],
)
def test_validation_names_the_place_and_what_was_got(api, method, path, body, told):
    content = json.dumps(body).encode() if body != {"reward": 10**400} else b'{"reward": 1' + b"0" * 400 + b"}"
    assert told in api.refused(422, "InvalidInput", method, path, content)


def test_long_input_is_not_sent_back_whole(api):
    long = {"unit": "a", "attributes": "b" * 60_000}
    assert len(api.refused(422, "InvalidInput", "POST", ASK, long)) < 300
    told = api.refused(422, "InvalidInput", "POST", f"{ASK}/many", {"units": ["a", long, *["b" * 400] * 300]})
    assert told == "units[1].attributes: expected object or null; got string"


def test_bodies_must_say_that_they_are_json(api):
    for method, path in WITH_BODIES:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "jsonp", ""):
            told = api.refused(415, "InvalidInput", method, path, b'{"unit": "q"}', headers={"content-type": kind})
            assert "application/json" in told
    for kind in (
        "application/json; charset=utf-8",
        "APPLICATION/JSON",
        "application/vnd.x+json",
        "application/json ;x",
    ):
        answer = api("POST", ASK, b'{"unit": "ada"}', headers={"content-type": kind})
        assert answer.status_code == 200


def test_a_compressed_body_is_refused_and_said_so(api):
    for method, path in WITH_BODIES:
        for headers in ({"content-encoding": "gzip"}, {"content-encoding": "gzip", "content-type": "application/json"}):
            told = api.refused(415, "InvalidInput", method, path, gzip.compress(b'{"unit": "q"}'), headers=headers)
            assert told == "a body must not be compressed\nsend it without Content-Encoding"


@pytest.mark.parametrize(
    ("path", "before", "after", "what"),
    [
        (ASK, b'{"unit": "deep", "attributes":', b"}", "attributes"),
        (ASK + "/many", b'{"units": [{"unit": "deep", "attributes":', b"}]}", "attributes"),
        ("/experiments", b'{"name": "deep", "arms": ["a"], "reward_weight": 1, "metadata":', b"}", "metadata"),
    ],
)
def test_free_data_may_be_nested_so_deep_and_no_deeper(path, before, after, what):
    store = eq.open_store("memory:")
    experiment(store)
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        for inner in (b'{"a":' * 101 + b"1" + b"}" * 101, b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"):
            told = api.refused(422, "InvalidInput", "POST", path, before + inner + after)
            assert told == f"{what} must not be nested deeper than 100"
        assert api.data("POST", path, before + b'{"a":' * 50 + b"[" * 50 + b"]" * 50 + b"}" * 50 + after)


def test_addresses_and_methods_that_do_not_exist(api):
    for path in ("/nothing", "/experiments/", "/experiments/x/", "/experiments//status", "/experiments/x/nothing"):
        assert "/docs" in api.refused(404, None, "GET", path)
    for method, path, allowed in (
        ("PUT", "/experiments/x", {"DELETE", "GET", "HEAD"}),
        ("PATCH", ASK, {"GET", "HEAD", "POST"}),
        ("POST", TELL, {"PUT"}),
        ("PUT", "/experiments", {"GET", "HEAD", "POST"}),
        ("PUT", "/experiments/x/reward", None),
        ("OPTIONS", "/experiments", {"GET", "HEAD", "POST"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("DELETE", "/", {"GET", "HEAD"}),
    ):
        answer = api(method, path, b'{"unit": "wrong way", "reward": 1}')
        assert answer.status_code == (404 if allowed is None else 405)
        if allowed is not None:
            assert set(answer.headers["allow"].split(", ")) == allowed
    assert api("GET", path_of("x", "assignments", "wrong way")).status_code == 404


def test_a_body_that_is_too_large_is_refused_before_and_while_it_arrives(here, api):
    body = json.dumps({"unit": "a", "attributes": {"x": "y" * 250_000}}).encode()
    for size in (body, body * 40):
        for path, most in ((ASK, "65,536"), (TELL, "65,536"), (f"{ASK}/many", "250,000")):
            told = api.refused(413, "InvalidInput", "PUT" if path == TELL else "POST", path, size)
            assert f"may have at most {most} bytes; got {len(size):,}" in told
    assert "at most 1,024 bytes" in api.refused(413, "InvalidInput", "POST", path_of("x", "settle"), b" " * 2_000)
    connection = http.client.HTTPConnection("127.0.0.1", here[0].port, timeout=10)
    with closing(connection):
        headers = {"authorization": f"Bearer {here[1]}", "content-type": "application/json"}
        connection.request("POST", ASK, iter([b"x" * 100_000] * 3), headers, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_a_body_just_small_enough_is_read_whole(api):
    for path, body, most in ((ASK, b'{"unit": "ada"', 65_536), (f"{ASK}/many", b'{"units": ["ada"]', 250_000)):
        fill = most - len(body) - 1
        assert api("POST", path, body + b" " * fill + b"}").status_code == 200
        assert api("POST", path, body + b" " * (fill + 1) + b"}").status_code == 413


def test_a_unit_with_the_longest_of_everything_fits_however_it_is_written(api):
    body = {"unit": "\U0001f9d1" * 500, "attributes": {"\U0001f9d1" * 10: "\U0001f9d1" * 820}}
    assert api("POST", ASK, json.dumps(body, indent=4).encode()).status_code == 201
    path = path_of("x", "assignments", body["unit"])
    api.data("PUT", f"{path}/reward", {"reward": 0.5})
    api.data("POST", f"{path}/corrections", json.dumps({"reward": 0.25, "reason": "\U0001f9d1" * 2_000}).encode())


def test_who_may_not_do_it_is_refused_before_the_body_is_waited_for(here):
    store = here[0].service.store
    reader = create_key(store, role="reader")[1]
    for key, path, status in (
        (reader, ASK, b"403"),
        (here[1], "/nowhere", b"404"),
        (here[1], "/experiments/x", b"405"),
    ):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 9999\r\n\r\n"
        with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
            connection.sendall(head.encode())
            assert connection.recv(65_536).startswith(b"HTTP/1.1 " + status)


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n",
        b"POST /experiments HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST /experiments HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\nhello",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    ],
)
def test_what_is_no_http_is_refused_in_the_same_shape(here, request_):
    head, _, body = raw(here, request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert set(json.loads(body)) == {"error", "hint"}
    assert b"x-content-type-options: nosniff" in head.lower()


def test_a_head_without_end_is_cut_off(here):
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\n")
        sent = 0
        with suppress(ConnectionError):
            for i in range(20_000):
                sent += connection.send(f"x-{i}: {'y' * 1000}\r\n".encode())
    assert sent < 10_000_000  # what the buffers of the system hold, and not a hundred times as much


def test_a_large_head_is_refused_in_the_same_shape(here):
    for head in (b"x-long: " + b"y" * 70_000, b"\r\n".join(b"x-%d: y" % i for i in range(10_000))):
        answer = raw(here, b"GET /healthz HTTP/1.1\r\n" + head)
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert set(json.loads(answer.partition(b"\r\n\r\n")[2])) == {"error", "hint"}


def _head_and_body(answer: bytes) -> tuple[bytes, set[bytes], dict]:
    head, body = answer.split(b"\r\n\r\n", 1)
    line, *headers = head.split(b"\r\n")
    # The date may differ by a second, and whether the connection closes is what is asked for here.
    kept = {header for header in headers if not header.startswith((b"date:", b"connection:"))}
    return line, kept, json.loads(body)


def test_an_answer_sent_in_one_piece_is_the_one_sent_in_two(here):
    """A connection that is to be closed gets it from uvicorn, head first; one that stays gets it from us."""
    start = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {here[1]}\r\nX-Request-Id: same\r\n".encode()
    body = b'Content-Type: application/json\r\nContent-Length: 15\r\n\r\n{"unit": "ada"}'
    in_two = raw(here, start + b"Connection: close\r\n" + body)
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        answers = []
        for _ in range(3):
            connection.sendall(start + body)
            answers.append(connection.recv(65_536))
    assert b"connection: close" in in_two
    assert all(_head_and_body(answer) == _head_and_body(in_two) for answer in answers)
    assert all(b"\r\ndate: " in answer for answer in answers)


def test_short_answers_go_out_in_one_piece(api, monkeypatch):
    """If a release of uvicorn breaks this: `protocol.py` says what to do, at the price of a fifth of the throughput."""
    whole, inner = [], middleware.send_whole
    monkeypatch.setattr(middleware, "send_whole", lambda *given: whole.append(inner(*given)) or whole[-1])
    assert api("POST", ASK, {"unit": "ada"}).status_code == 200
    assert whole == [True]


def _request(here, unit, *more, method="POST"):
    body = json.dumps({"unit": unit}).encode()
    lines = [
        f"{method} {ASK} HTTP/1.1".encode(),
        b"Host: localhost",
        f"Authorization: Bearer {here[1]}".encode(),
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(body),
        *more,
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n", body


UPGRADE = (b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAEAAEAAAAIAAAAB")


@pytest.mark.parametrize("upgrade", [UPGRADE, (b"CONNECTION: UPGRADE", b"UPGRADE: H2C")])
@pytest.mark.parametrize("pause", [0, 0.1])
def test_a_wish_for_another_protocol_is_not_heard(here, pause, upgrade):
    """As Java's HttpClient and curl --http2 have it; the body may come in a packet of its own."""
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        for number in range(3):
            head, body = _request(here, f"upgrade-{len(upgrade)}-{pause}-{number}", *upgrade)
            if pause:
                connection.sendall(head)
                time.sleep(pause)
                connection.sendall(body)
            else:
                connection.sendall(head + body)
            line, _, found = _head_and_body(connection.recv(65_536))
            assert line == b"HTTP/1.1 201 Created" and found["unit"].endswith(f"{pause}-{number}")


def test_curl_may_ask_for_http_2(here):
    need("curl")
    command = ["curl", "--silent", "--http2", "--header", f"Authorization: Bearer {here[1]}"]
    command += ["--header", "Content-Type: application/json", "--data", '{"unit": "curl"}', here[0].url + ASK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["unit"] == "curl"


@pytest.mark.parametrize("step", [1, 50, 10_000])
def test_such_wishes_among_requests_sent_without_waiting_lose_no_answer(here, step):
    """Before, between and after others, with a body and without, in pieces of any size."""
    requests, units = b"", []
    for number, more in enumerate([UPGRADE, (), UPGRADE, UPGRADE, (), UPGRADE]):
        units.append(f"among-{step}-{number}")
        requests += b"".join(_request(here, units[-1], *more))
        requests += b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    requests += b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for start in range(0, len(requests), step):
            connection.sendall(requests[start : start + step])
        said = b""
        while piece := connection.recv(65_536):
            said += piece
    answers = [_head_and_body(b"HTTP/1.1 " + answer) for answer in said.split(b"HTTP/1.1 ")[1:]]
    assert [body.get("unit", "ok") for _, _, body in answers] == [
        *(one for unit in units for one in (unit, "ok")),
        "ok",
    ]


def test_a_body_that_looks_like_a_request_stays_a_body_whoever_wishes_for_another_protocol(here):
    inside = f"GET /experiments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {here[1]}\r\n\r\n".encode()
    head, _ = _request(here, "x", *UPGRADE, b"Connection: close")
    head = head.replace(b"Content-Length: 13", b"Content-Length: %d" % len(inside))
    for pieces in ([head + inside], [head[:50], head[50:], inside]):
        with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
            said = b""
            for piece in pieces:
                connection.sendall(piece)
            while piece := connection.recv(65_536):
                said += piece
        assert said.startswith(b"HTTP/1.1 400 ") and said.count(b"HTTP/1.1 ") == 1


def test_a_tunnel_is_refused(here):
    for target in (b"localhost:443", b"/healthz"):
        answer = raw(here, b"CONNECT %b HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01" % target)
        assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1


# Trailers

CHUNKED = b"Host: x\r\nTransfer-Encoding: chunked\r\n"


def _chunked(head, body, trailers):
    chunk = b"%x\r\n%b\r\n0\r\n" % (len(body), body)
    return b"POST %b HTTP/1.1\r\n" % ASK.encode() + CHUNKED + head + b"\r\n" + chunk + trailers + b"\r\n"


def test_trailers_do_not_count_as_headers(here):
    body, key = b'{"unit": "trailer"}', f"Authorization: Bearer {here[1]}\r\n".encode()
    kind, close = b"Content-Type: application/json\r\n", b"Connection: close\r\n"
    assert raw(here, _chunked(kind + close, body, key)).startswith(b"HTTP/1.1 401 ")
    assert raw(here, _chunked(key + close, body, kind)).startswith(b"HTTP/1.1 415 ")
    named = raw(here, _chunked(key + kind + close, body, b"X-Request-Id: chosen\r\nContent-Encoding: gzip\r\n"))
    assert named.startswith(b"HTTP/1.1 201 ") and b"chosen" not in named
    two = _chunked(key + kind, body, b"Upgrade: h2c\r\nConnection: Upgrade\r\n") + _chunked(
        key + kind + close, body, b""
    )
    assert raw(here, two).count(b"HTTP/1.1 200 OK") == 2


def test_trailers_without_end_are_cut_off(here):
    """Nobody needs a key for them: the answer is long given."""
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=10) as connection:
        connection.sendall(_chunked(b"", b"{}", b"X-Long: ")[:-2])
        sent = 0
        with suppress(OSError):
            while sent < 100_000_000:
                sent += connection.send(b"x" * 100_000)
    assert sent < 100_000_000


def test_an_answer_to_head_has_no_body():
    store = eq.open_store("memory:")
    with serving_here(store, Settings(open=True)) as open_here:
        head = b"HEAD /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        with socket.create_connection(("127.0.0.1", open_here.port), timeout=10) as connection:
            for _ in range(3):
                connection.sendall(head)
                time.sleep(0.1)
                answer = connection.recv(65_536)
                assert answer.startswith(b"HTTP/1.1 421 ") and answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/", "/docs", "/experiments", "/experiments/x/export"])
def test_head_is_answered_like_get_without_the_body(here, path):
    def lines(method):
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {here[1]}\r\nX-Request-Id: same\r\n"
        head, _, body = raw(here, head.encode() + b"Connection: close\r\n\r\n").partition(b"\r\n\r\n")
        return [line for line in head.split(b"\r\n") if not line.startswith(b"date:")], body

    (told, nothing), (wanted, body) = lines("HEAD"), lines("GET")
    assert wanted[0] == b"HTTP/1.1 200 OK" and body
    assert (set(wanted) - set(told), nothing) in ((set(), b""), ({b"transfer-encoding: chunked"}, b""))


def test_the_beginning_of_the_next_request_does_not_spoil_an_answer(here):
    """A large body and the start of a head in one piece; and half a head while an answer is still due."""
    units = json.dumps({"units": [f"unit-{number:06}" for number in range(8_000)]}).encode()
    many = _request(here, "x")[0].replace(b"/assignments ", b"/assignments/many ")
    many = many.replace(b"Content-Length: 13", b"Content-Length: %d" % len(units))
    with socket.create_connection(("127.0.0.1", here[0].port), timeout=20) as connection:
        connection.sendall(many + units + b"GET /healthz HTTP/1.1\r\nHost: loc")
        connection.sendall(b"alhost\r\nConnection: close\r\n\r\n")
        said = b""
        while piece := connection.recv(2**20):
            said += piece
    assert said.startswith(b"HTTP/1.1 200 OK") and said.count(b"HTTP/1.1 200 OK") == 2
    assert said.endswith(b'{"status":"ok"}')


def test_half_a_request_does_not_take_the_place_of_an_answer_that_is_due(tmp_path):
    path = tmp_path / "x.db"
    store = eq.open_store(f"sqlite:///{path}")
    experiment(store)
    key = create_key(store, role="admin")[1]
    with serving_here(store, Settings(body_seconds=0.3)) as slow, closing(sqlite3.connect(path)) as other:
        head, body = _request((slow, key), "late")
        other.isolation_level = None
        other.execute("BEGIN IMMEDIATE")
        with socket.create_connection(("127.0.0.1", slow.port), timeout=10) as connection:
            connection.sendall(head + body + b"GET /heal")
            time.sleep(0.8)
            other.execute("ROLLBACK")
            said = b""
            while piece := connection.recv(65_536):
                said += piece
        assert said.startswith(b"HTTP/1.1 201 Created") and said.count(b"HTTP/1.1 ") == 1


def test_requests_sent_without_waiting_are_answered_in_order(here):
    start = f"POST {ASK} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {here[1]}\r\n".encode()
    requests = b""
    for number in range(20):
        body = json.dumps({"unit": f"in-a-row-{number}"}).encode()
        last = b"Connection: close\r\n" if number == 19 else b""
        head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        requests += start + last + head + body
    answers = raw(here, requests).split(b"HTTP/1.1 201 Created\r\n")[1:]
    units = [json.loads(answer.split(b"\r\n\r\n", 1)[1])["unit"] for answer in answers]
    assert units == [f"in-a-row-{number}" for number in range(20)]


def test_a_client_names_its_request_or_the_server_does(api):
    assert api("GET", "/healthz", headers={"x-request-id": "abc-1.2_3"}).headers["x-request-id"] == "abc-1.2_3"
    seen = {api("GET", "/healthz").headers["x-request-id"] for _ in range(5)}
    assert len(seen) == 5
    for bad in ("a b", "a\tb", "x" * 65, "<script>"):
        assert api("GET", "/healthz", headers={"x-request-id": bad}).headers["x-request-id"] != bad


def test_health_needs_no_key_and_readiness_tells_of_the_store(tmp_path):
    store = eq.open_store(f"sqlite:///{tmp_path}/x.db")
    key = create_key(store, role="admin")[1]
    experiment(store)
    with serving_here(store, Settings()) as here, closing(Api(here.url)) as nobody, closing(Api(here.url, key)) as api:
        assert nobody.data("GET", "/healthz") == nobody.data("GET", "/readyz") == {"status": "ok"}
        (tmp_path / "x.db").rename(tmp_path / "y.db")
        for _ in range(2):
            assert "cannot be reached" in api.refused(503, "StoreUnavailable", "POST", ASK, {"unit": "bob"})
        assert nobody.data("GET", "/healthz") == {"status": "ok"}
        here.service._written_at = float("-inf")  # else a write of the last second would do
        assert "cannot be reached or written" in nobody.refused(503, "StoreUnavailable", "GET", "/readyz")
        assert api("GET", path_of("x", "assignments", "bob")).status_code in (404, 503)
        (tmp_path / "y.db").rename(tmp_path / "x.db")
        assert api.data("POST", ASK, {"unit": "bob"})["new"]
        assert nobody.data("GET", "/readyz") == {"status": "ok"}


def test_a_store_that_can_only_be_read_is_not_ready(tmp_path):
    store = eq.open_store(f"sqlite:///{tmp_path}/x.db")
    with serving_here(store, Settings()) as here, closing(Api(here.url)) as nobody:
        assert nobody.data("GET", "/readyz") == {"status": "ok"}
        sa.event.listen(store.database.engine, "checkout", lambda driver, *_: driver.execute("PRAGMA query_only = 1"))
        here.service._written_at = float("-inf")
        nobody.refused(503, "StoreUnavailable", "GET", "/readyz")


def test_a_store_that_somebody_else_writes_to_is_ready(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.service.service._LOOK_SECONDS", 0.3)
    store = eq.open_store(f"sqlite:///{tmp_path}/x.db")
    with serving_here(store, Settings()) as here, closing(Api(here.url)) as nobody:
        nobody.data("GET", "/readyz")
        with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            here.service._written_at = float("-inf")
            assert [nobody.data("GET", "/readyz") for _ in range(3)] == [{"status": "ok"}] * 3
            other.execute("ROLLBACK")


# Pages of strangers


def test_pages_of_other_sites_may_not_call_by_default(api):
    answer = api("GET", "/experiments", headers={"origin": "https://school.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    preflight = api(
        "OPTIONS", ASK, headers={"origin": "https://school.example", "access-control-request-method": "POST"}
    )
    assert preflight.status_code == 405
    assert not [name for name in preflight.headers if name.startswith("access-control")]


def test_pages_of_a_named_site_may_call():
    store = eq.open_store("memory:")
    experiment(store)
    key, school = create_key(store, role="admin")[1], "https://school.example"
    with (
        serving_here(store, Settings(cors_origins=(school,))) as here,
        closing(Api(here.url)) as nobody,
        closing(Api(here.url, key)) as api,
    ):
        asked = {
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type",
        }
        preflight = nobody("OPTIONS", ASK, headers={"origin": school} | asked)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == school
        assert {"GET", "HEAD", "POST", "PUT"} <= set(preflight.headers["access-control-allow-methods"].split(", "))
        allowed = preflight.headers["access-control-allow-headers"].lower()
        assert "authorization" in allowed and "content-type" in allowed
        stranger = httpx.options(here.url + ASK, headers={"origin": "https://evil.example"} | asked)
        assert stranger.status_code == 403 and "access-control-allow-origin" not in stranger.headers
        checked(stranger)
        for answer in (
            api("POST", ASK, {"unit": "ada"}, headers={"origin": school}),
            api("GET", path_of("x", "export"), headers={"origin": school}),
            api("GET", path_of("y"), headers={"origin": school}),
            nobody("GET", "/experiments", headers={"origin": school}),
        ):
            assert answer.headers["access-control-allow-origin"] == school
            assert "x-equipoise-error" in answer.headers["access-control-expose-headers"].lower()
        answer = api("POST", ASK, {"unit": "ada"}, headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in answer.headers


def test_a_site_may_be_named_in_other_letters_and_with_the_port_it_has_anyway():
    named = ("HTTPS://School.Example", "https://a.example:443", "http://b.example:8080", "http://[::1]:80", "*")
    wanted = ("https://school.example", "https://a.example", "http://b.example:8080", "http://[::1]", "*")
    settings = Settings(cors_origins=named)
    assert settings.cors_origins == wanted
    assert Settings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost.evil.example"])
def test_pages_of_strangers_may_not_use_an_open_service(origin):
    store = eq.open_store("memory:")
    experiment(store)
    with serving_here(store, Settings(open=True, cors_origins=("https://school.example",))) as open_here:
        place = open_here.url + path_of("x", "pause")
        refused = httpx.post(place, headers={"Origin": origin})
        assert refused.status_code == 403 and "--cors-origin" in refused.json()["hint"]
        assert eq.Experiment.open(store, "x").status().state == "enrolling"
        for friend in ("http://localhost:3000", "https://school.example"):
            assert httpx.post(place, headers={"Origin": friend}).status_code == 200


def test_an_open_service_answers_only_to_its_own_name():
    """A page that gives its own name this machine's address must not speak through the user's browser."""
    store = eq.open_store("memory:")
    experiment(store)
    with serving_here(store, Settings(open=True)) as here, closing(Api(here.url)) as api:
        assert api("POST", ASK, {"unit": "ada"}).status_code == 200
        assert api.data("POST", path_of("x", "pause"))["state"] == "paused"
        for host in ("localhost", f"localhost:{here.port}", "127.0.0.1:1", "127.1.2.3", "[::1]:80"):
            assert api("GET", "/experiments", headers={"host": host}).status_code == 200
        for host in (
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost:80@evil",
            "10.0.0.1",
            "",
        ):
            api.refused(421, None, "GET", "/experiments", headers={"host": host})
            api.refused(421, None, "POST", ASK, {"unit": "ada"}, headers={"host": host})
            api.refused(421, None, "GET", "/healthz", headers={"host": host})
