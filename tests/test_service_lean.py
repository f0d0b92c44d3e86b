"""The lean routes answer exactly as the validated ones do: status, headers, body, and what is in the log after it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.service import Settings, create_app
from equipoise.service.keys import create_key

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMES = ("x", "a/b %", "closed", "ranged")


class Side:
    """A service on a store of its own, called without a socket so that thousands of requests take seconds."""

    def __init__(self, loop, *, lean):
        self.loop, self.store = loop, eq.open_store("memory:", clock=lambda: NOON)
        for name in NAMES:
            options = {"reward_range": (0, 1)} if name == "ranged" else {}
            made = eq.Experiment.create(
                self.store, name, arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1, **options
            )
            made.ask("ada")
            if name == "closed":
                made.finish()
        self.keys = {
            role: create_key(self.store, role=role, name=f"the {role}")[1] for role in ("reader", "assigner", "admin")
        }
        for name in ("x", "closed"):
            self.keys[f"for {name}"] = create_key(self.store, role="assigner", name="bound", experiment=name)[1]
        self.app = create_app(self.store, Settings(body_bytes=100_000))
        self.lean_answers = 0
        if lean:
            begin = self.app._lean.begin

            def counting(*arguments):
                begun = begin(*arguments)
                self.lean_answers += begun is not None
                return begun

            self.app._lean.begin = counting
        else:
            self.app._lean.match = lambda *_: None
        loop.run_until_complete(self.app._core.start())
        for name in NAMES:  # known to the service, as after the first request
            self.app._core.experiment(name, self.app._core.keys.find(self.keys["admin"]))

    def send(self, method, path, body, key, headers):
        """Return status, headers and body of an answer."""
        given = [(b"content-type", b"application/json"), (b"host", b"localhost"), *headers]
        if key is not None:
            given.append((b"authorization", b"Bearer " + self.keys.get(key, key).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path.decode("latin-1"),
            "raw_path": path,
            "query_string": b"",
            "headers": given if not any(name == b"content-type" for name, _ in headers) else given[1:],
            "client": ("127.0.0.1", 1),
            "scheme": "http",
            "root_path": "",
        }
        sent = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message):
            sent.append(message)

        self.loop.run_until_complete(self.app(scope, receive, send))
        start, *pieces = sent
        assert start["type"] == "http.response.start"
        found = {name.lower(): value for name, value in start["headers"]}
        assert found.pop(b"x-request-id")
        return start["status"], found, b"".join(piece.get("body", b"") for piece in pieces)

    def close(self):
        self.loop.run_until_complete(self.app._core.stop())


class Pair:
    """Both sides; every request goes to both."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.lean, self.validated = Side(self.loop, lean=True), Side(self.loop, lean=False)

    def both(self, method, path, body=b"", key="admin", headers=()):
        """Return the answer, which both gave."""
        answers = [
            side.send(method, path, body if isinstance(body, bytes) else json.dumps(body).encode(), key, list(headers))
            for side in (self.lean, self.validated)
        ]
        assert answers[0] == answers[1], (method, path, body)
        return answers[0]

    def close(self):
        for name in NAMES:
            logs = [list(eq.Experiment.open(side.store, name).events()) for side in (self.lean, self.validated)]
            assert logs[0] == logs[1]
        assert self.validated.lean_answers == 0
        self.lean.close()
        self.validated.close()
        self.loop.close()


@pytest.fixture(scope="module")
def pair():
    pair = Pair()
    yield pair
    pair.close()


def ask(name=b"x"):
    return b"/experiments/" + name + b"/assignments"


def tell(unit=b"ada", name=b"x"):
    return ask(name) + b"/" + unit + b"/reward"


BODIES = [
    {"unit": "bob"},
    {"unit": "bob"},
    {"unit": "eve", "attributes": {"age": 9, "of": [1, 2.5, None, True, {"x": "é"}]}},
    {"unit": "dan", "attributes": None},
    {"unit": 'quo"te', "attributes": {}},
    {"unit": "back\\slash"},
    {"unit": "😀"},
    {"unit": "x" * 500},
    {"unit": "x" * 501},
    {"unit": ""},
    {"unit": " a"},
    {"unit": "a\0"},
    {"unit": 1},
    {"unit": None},
    {"unit": ["a"]},
    {"unit": "a", "attributes": []},
    {"unit": "a", "attributes": "x"},
    {"unit": "a", "attributes": {"x": "y" * 20_000}},
    {"unit": "a", "attributes": {"x": 10**40}},
    {"unit": "a", "more": 1},
    {"units": ["a"]},
    {"reward": 1},
    {"reward": 1.0},
    {"reward": 2},
    {"reward": -1e308},
    {"reward": 1e-320},
    {"reward": 0.1},
    {"reward": 10**30},
    {"reward": -(10**400)},
    {"reward": True},
    {"reward": "1"},
    {"reward": None},
    {"reward": [1]},
    {"reward": 1, "unit": "ada"},
    {},
    [],
    "ada",
    None,
    1,
    b"",
    b"{",
    b'{"unit": "bob"',
    b'{"unit": "bob"} ',
    b' \n{"unit"\t:"bob"}',
    b'{"unit": "b\\u006fb"}',
    b'{"un\\u0069t": "bob"}',
    b'{"unit": "bob", "unit": "bob"}',
    b'{"unit": "bob", "un\\u0069t": "eve"}',
    b'{"unit": "bob", "attributes": {"a": 1, "a": 2}}',
    b'{"reward": 1, "reward": 1}',
    b'{"reward": 1, "rew\\u0061rd": 1}',
    b'{"rew\\u0061rd": 1}',
    b'{"reward": 1e999}',
    b'{"reward": 1E+2}',
    b'{"reward": 01}',
    b'{"reward": -0}',
    b'{"reward": -0.0}',
    b'{"reward": 1.}',
    b'{"reward": NaN}',
    b'{"reward": Infinity}',
    b'{"reward": 1, }',
    b'{"unit": "\xff"}',
    b'{"unit": "\\ud83d\\ude00"}',
    b'{"unit": "\\ud83d"}',
    b"\xef\xbb\xbf{}",
    b"[" * 50_000,
    b"x" * 100_001,
    *(b'{"unit": "deep%d", "attributes": ' % n + b'{"a":' * n + b"1" + b"}" * n + b"}" for n in (100, 101, 200, 970)),
]


@pytest.mark.parametrize("name", [b"x", b"a%2Fb%20%25", b"closed", b"ranged", b"nobody", b"%ff", b""])
def test_bodies_of_all_kinds(pair, name):
    statuses = set()
    for body in BODIES:
        statuses |= {pair.both("POST", ask(name), body)[0], pair.both("PUT", tell(name=name), body)[0]}
        pair.both("PUT", tell(b"bob", name), body)
    if name == b"x":
        assert statuses >= {200, 201, 400, 409, 413, 422}
        assert pair.lean.lean_answers > 20


def test_units_in_paths(pair):
    for unit in (
        "bob",
        "😀",
        "quo%22te",
        "%F0%9F%98%80",
        "back%5cslash",
        "back%5Cslash",
        "x" * 500,
        "x" * 501,
        "nobody",
    ):
        for value in (1, 1, 2):
            pair.both("PUT", tell(unit.encode()), {"reward": value})
    for unit in (
        b"",
        b"%",
        b"%2",
        b"%zz",
        b"%ff",
        b"%00",
        b"a%20",
        b"%20a",
        b"+",
        b"a+b",
        b"..",
        b"%2e%2e",
        b"many",
        b"a//b",
    ):
        pair.both("PUT", tell(unit), {"reward": 1})


@pytest.mark.parametrize(
    "key", ["reader", "assigner", "for x", "for closed", None, "garbage", f"eq_{'0' * 12}_{'A' * 43}"]
)
def test_keys_of_all_kinds(pair, key):
    for name in (b"x", b"closed", b"nobody"):
        assert pair.both("POST", ask(name), {"unit": "kim"}, key)[0] in (200, 201, 401, 403, 404, 409)
        pair.both("PUT", tell(name=name), {"reward": 3}, key)
        pair.both("POST", ask(name), b"{", key)
        pair.both("PUT", tell(name=name), {"reward": "x"}, key)


@pytest.mark.parametrize(
    "kind",
    [b"", b"text/plain", b"application/json; charset=latin-1", b"Application/JSON", b"application/x+json", b"json"],
)
def test_types_of_all_kinds(pair, kind):
    for body in (b'{"unit": "lee"}', b"", b"{"):
        pair.both("POST", ask(), body, headers=[(b"content-type", kind)])
    pair.both("PUT", tell(b"lee"), b'{"reward": 1}', headers=[(b"content-type", kind)])


def test_encodings_of_all_kinds(pair):
    kind = (b"content-type", b"application/json")
    for encoding, status in ((b"gzip", 415), (b"br", 415), (b"identity", 200), (b"Identity", 200)):
        headers = [kind, (b"content-encoding", encoding)]
        assert pair.both("POST", ask(), b'{"unit": "ada"}', headers=headers)[0] == status
        assert pair.both("PUT", tell(), b'{"reward": 1}', headers=headers)[0] == status


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods_and_addresses_nearby(pair, method):
    for path in (
        ask(),
        tell(),
        ask() + b"/",
        tell() + b"/",
        b"/experiments/x/reward",
        b"/experiments//assignments",
        b"/experiments/assignments",
        b"/experiments/x/y/assignments",
        b"/experiments/x/y/ada/reward",
        b"/experiment/x/assignments",
        b"//experiments/x/assignments",
        b"/experiments/x/assignments/ada/bob/reward",
    ):
        for body in (b'{"unit": "max"}', b'{"reward": 1}'):
            if (method, path, body[:3]) != ("POST", ask(), b'{"u'):
                answer = pair.both(method, path, body)
                assert answer[0] >= 400 or method == "PUT"


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_fields = {"unit": st.text(max_size=5) | JSON, "attributes": JSON, "reward": SCALARS, "more": JSON}
OBJECTS = st.fixed_dictionaries({}, optional=_fields)


@settings(max_examples=150)
@given(body=OBJECTS | JSON, cut=st.none() | st.integers(0, 20), tells=st.booleans())
def test_generated_bodies(pair, body, cut, tells):
    encoded = json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
    pair.both("PUT" if tells else "POST", tell() if tells else ask(), encoded[:cut])


@settings(max_examples=150)
@given(body=st.binary(max_size=12).map(lambda found: b'{"unit": "' + found + b'"}') | st.binary(max_size=20))
def test_generated_bytes(pair, body):
    pair.both("POST", ask(), body)
    pair.both("PUT", tell(), body.replace(b'"unit"', b'"reward"'))


@settings(max_examples=100)
@given(reward=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**70), 2**70), number=st.integers(0, 5))
def test_generated_rewards(pair, reward, number):
    unit = f"unit {number}"
    pair.both("POST", ask(b"ranged"), {"unit": unit})
    pair.both("PUT", tell(unit.replace(" ", "%20").encode(), b"ranged"), {"reward": reward})


@settings(max_examples=100)
@given(segment=st.text("%/.ab2Fé\x00 ", max_size=6))
def test_generated_paths(pair, segment):
    encoded = segment.encode()
    for path in (ask(encoded), tell(encoded), tell(name=encoded)):
        pair.both("PUT", path, {"reward": 1})
        pair.both("POST", path, {"unit": "pat"})


def test_good_requests_take_the_short_way_on_one_side_only(pair):
    """Otherwise everything above would compare the validated routes with themselves."""
    before = pair.lean.lean_answers
    for i in range(20):
        assert pair.both("POST", ask(), {"unit": f"good {i}", "attributes": {"i": i}})[0] == 201
        assert pair.both("PUT", tell(f"good%20{i}".encode()), {"reward": i / 7})[0] == 200
    assert pair.lean.lean_answers == before + 40
    assert pair.validated.lean_answers == 0
