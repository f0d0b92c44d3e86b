"""Both clients against a real server: experiments keep the contract that they keep in a store."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import io
import itertools
import tempfile
import threading
import time

import pytest
from both_clients import KINDS, connecting, serving

import equipoise as eq
from equipoise.client import AsyncClient, Client
from equipoise.service import ThreadedService
from equipoise.service.api_keys import create_key, revoke_key
from equipoise.testing.experiment_contract import ExperimentContract
from equipoise.testing.unit_contract import Units

SETTINGS = {
    "arms": ["line", "pie", "none"],
    "policy": eq.ForcingBalance(reward_weight=0.6, tracking="windowed"),
    "seed": 7,
    "floor": {"none": 0.05},
    "control": "pie",
    "control_share": 0.1,
    "warm_up": 1,
    "reward_range": (0, 10),
    "direction": "minimise",
    "missing": eq.WaitForReward(window_seconds=3600),
    "stopping": [eq.Budget(units=500), eq.Deadline(at="2127-06-30T18:00:00+02:00"), eq.Precision(half_width=0.5)],
    "failure_probability": 0.1,
    "metadata": {"school": "été", "classes": [4, 5]},
}
_counter = itertools.count()


@pytest.fixture(scope="module")
def store_url(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('service')}/service.db"


@pytest.fixture(scope="module")
def store(store_url):
    with eq.open_store(store_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def admin(store):
    return create_key(store, role="admin", name="the tests")[1]


@pytest.fixture(scope="module")
def service(store_url, admin):
    with serving(store_url) as running:
        yield running


@pytest.fixture(params=KINDS)
def connect(request):
    with connecting(request.param) as connect:
        yield connect


@pytest.fixture
def client(connect, service, admin):
    return connect(service.url, admin)


@pytest.fixture
def name():
    """A name for an experiment that a path could trip over, another for every test."""
    return f"4b/spring & 50% off?#{next(_counter)} ☃"


UNITS = [f"unit {i}" for i in range(12)]


class Series:
    """As those of pandas: iterating gives values, and only `items` gives pairs."""

    def __init__(self, values):
        self.items = values.items

    def __iter__(self):
        return (value for _, value in self.items())


class ServiceCase:
    """Experiments of a service whose store has the stopped clock."""

    def setup_method(self):
        super().setup_method()
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            store = stack.enter_context(eq.open_store(f"sqlite:///{folder}/service.db", clock=self.clock))
            key = create_key(store, role="admin", name=self.author)[1]
            service = stack.enter_context(ThreadedService(store))
            self.client = stack.enter_context(connecting(self.kind))(service.url, key)
            self.closing = stack.pop_all()

    def teardown_method(self):
        self.closing.close()

    def new(self, name, **settings):
        return self.client.create(name, **settings)

    def find(self, name):
        return self.client.open(name)

    def listed(self):
        return self.client.list()


class TestExperimentContract(ServiceCase, ExperimentContract):
    kind = "sync"


class TestAsynchronously(ServiceCase, Units):
    kind = "async"


def test_a_log_that_does_not_verify_is_told_with_the_event(client, store, name):
    remote = client.create(name, **SETTINGS)
    remote.ask_many(UNITS)
    stored = eq.Experiment.open(store, name)
    number = next(event.number for event in stored.events() if event.unit == UNITS[-1])
    change = "UPDATE events SET probability = 0.3 WHERE unit = ? AND experiment = ?"
    values = (UNITS[-1], stored.number)
    store.change(None, lambda transaction: transaction.execute(change, *values))
    with pytest.raises(eq.VerificationFailed) as told:
        remote.verify()
    assert told.value.event == number
    assert f"event {number} " in told.value.message


def test_what_is_read_is_what_is_in_the_store(client, store, name, tmp_path):
    remote = client.create(name, **SETTINGS)
    remote.ask_many([(unit, {"class": "4b, été\n"}) for unit in UNITS])
    remote.tell_many((unit, i / 7) for i, unit in enumerate(UNITS[:-2]))
    remote.correct(UNITS[0], 2, "typing error")
    stored = eq.Experiment.open(store, name)
    assert list(remote.events()) == list(stored.events())
    assert {event.who for event in stored.events()} == {"the tests"}
    assert dataclasses.replace(remote.status(), at=None, stopping=()) == dataclasses.replace(
        stored.status(), at=None, stopping=()
    )
    assert [(one.rule, one.met, one.goal) for one in remote.status().stopping] == [
        (one.rule, one.met, one.goal) for one in stored.status().stopping
    ]
    assert remote.history().at == stored.history().at
    assert remote.unit(UNITS[0]) == stored.unit(UNITS[0])
    assert remote.describe() == stored.describe()
    assert remote.configuration == stored.configuration
    assert remote.verify().n_events == stored.verify().n_events
    for form in ("csv", "jsonl", "parquet"):
        ours, theirs = tmp_path / f"ours.{form}", tmp_path / f"theirs.{form}"
        assert remote.export(ours) == stored.export(theirs) == len(UNITS)
        assert ours.read_bytes() == theirs.read_bytes()
        file = io.BytesIO() if form == "parquet" else io.StringIO()
        assert remote.export(file, form) == len(UNITS)
        written = file.getvalue()
        assert (written if form == "parquet" else written.encode()) == theirs.read_bytes()
    (listed,) = [one for one in client.list() if one.name == name]
    assert [listed] == [one for one in eq.Experiment.list(store) if one.name == name]


def test_many_units_are_assigned_as_one_by_one(client, name):
    settings = {"arms": ["a", "b", "c"], "policy": eq.Uniform(), "seed": 3}
    remote, local = client.create(name, **settings), eq.Experiment.create("memory:", name, **settings)
    units = [f"unit-{i}" for i in range(2_500)]
    assert [one.arm for one in remote.ask_many(units)] == [one.arm for one in local.ask_many(units)]
    assert sum(one.counted for one in remote.tell_many(Series(dict.fromkeys(units, 1.0)))) == 2_500
    assert len(list(remote.events())) == 5_001


def test_making_finding_and_listing(client, name):
    settings = {"arms": ["a", "b"], "policy": eq.Uniform(), "seed": 1}
    assert client.create(name, **settings).name == name
    with pytest.raises(eq.ExperimentExists):  # as an experiment in a store would, although the service could not know
        client.create(name, **settings)
    for seed in (2, None):
        with pytest.raises(eq.ExperimentExists):
            client.create(name, **settings | {"seed": seed})
    assert client.open(name).ask("ada") == client.open(name).assignment("ada")._replace(new=True)
    with pytest.raises(eq.UnknownExperiment, match="no such thing"):
        client.open("no such thing").ask("ada")
    with pytest.raises(eq.InvalidInput, match="name must not be empty"):
        client.open("")
    with pytest.raises(eq.InvalidInput, match="floor and control_share must add up to less than 1"):
        client.create("never", **settings, floor=0.5)


def test_keys_open_what_they_are_for(connect, service, store, admin, name):
    made = connect(service.url, admin).create(name, arms=["a", "b"], policy=eq.Uniform())
    assigner = create_key(store, role="assigner", experiment=name, name="game")[1]
    reader = create_key(store, role="reader", name="report")[1]
    game = connect(service.url, assigner).open(name)
    game.tell(game.ask("ada").unit, 1)
    assert [event.who for event in made.events()] == ["the tests", "game", "game"]
    with pytest.raises(eq.NotAllowed):
        game.status()
    with pytest.raises(eq.NotAllowed):
        connect(service.url, assigner).open("another").ask("ada")
    report = connect(service.url, reader).open(name)
    assert report.status().n_rewarded == 1
    with pytest.raises(eq.NotAllowed):
        report.ask("bob")
    with pytest.raises(eq.NotAuthenticated):
        connect(service.url).open(name).status()
    revoke_key(store, reader.split("_")[1])
    deadline = time.monotonic() + 20
    with pytest.raises(eq.NotAuthenticated) as raised:  # noqa: PT012  (the server notices within seconds)
        while time.monotonic() < deadline:
            report.status()
    assert reader.split("_", 2)[2] not in str(raised.value)


def test_a_client_waits_for_a_server_that_comes_back(connect, tmp_path, name):
    url = f"sqlite:///{tmp_path}/service.db"
    with serving(url, "--open") as first:
        remote = connect(first.url, attempts=30).create(name, arms=["a", "b"], policy=eq.Uniform())
        before = remote.ask("ada")
    answered = threading.Event()

    def come_back():
        with serving(url, "--open", port=first.port):
            answered.wait(60)

    later = threading.Thread(target=come_back)
    later.start()
    try:
        assert remote.ask("ada") == before._replace(new=False)
        assert remote.ask("bob").new
    finally:
        answered.set()
        later.join()


def test_many_coroutines_share_a_client(service, admin, name):
    async def work():
        async with AsyncClient(service.url, admin) as client:
            remote = await client.create(name, arms=["a", "b"], policy=eq.Uniform())
            asked = await asyncio.gather(*(remote.ask(f"unit-{i}") for i in range(200)))
            await asyncio.gather(*(remote.tell(one.unit, 1.0) for one in asked))
            return [one.number for one in asked], await remote.status(), [one.number async for one in remote.events()]

    numbers, status, events = asyncio.run(work())
    assert sorted(numbers) == list(range(200))
    assert (status.n_assigned, status.n_rewarded) == (200, 200)
    assert events == list(range(1, 402))


def test_many_threads_share_a_client(service, admin, name):
    with Client(service.url, admin) as client:
        remote = client.create(name, arms=["a", "b"], policy=eq.Uniform())
        found = []
        threads = [
            threading.Thread(target=lambda i=i: found.extend(remote.ask(f"unit-{i}-{j}").number for j in range(20)))
            for i in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(found) == list(range(160))
