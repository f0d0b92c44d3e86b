"""Both clients against a real server: every verb gives what `Experiment` gives, errors and log included."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import itertools
import threading
import time

import numpy as np
import pytest
from both_clients import KINDS, connecting, members, serving

import equipoise as eq
from equipoise.client import AsyncClient, Client, RemoteExperiment
from equipoise.errors import EquipoiseError
from equipoise.service.keys import create_key, revoke_key

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


class Noting:
    """Something whose members that were used are noted."""

    def __init__(self, inner, used):
        self._inner, self._used = inner, used

    def __getattr__(self, name):
        self._used.add(name)
        return getattr(self._inner, name)


def outcome(step, experiment):
    """What a step gives, or the error it meets, without times and who did it."""
    try:
        return comparable(step(experiment))
    except EquipoiseError as error:
        return type(error), error.message, error.hint


def comparable(value):
    if isinstance(value, list):
        return [comparable(one) for one in value]
    if isinstance(value, eq.experiment.History):
        arrays = {one.name: getattr(value, one.name) for one in dataclasses.fields(value) if one.name != "at"}
        return {key: np.nan_to_num(one, nan=-1).tolist() if key != "arms" else one for key, one in arrays.items()}
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if key != "created_at"}
    times = {"at": None, "created_at": None, "who": None, "seconds": None, "now": None}
    if hasattr(value, "_replace"):
        return value._replace(**{key: one for key, one in times.items() if key in value._fields})
    if dataclasses.is_dataclass(value):
        given = {key: one for key, one in times.items() if key in value.__dataclass_fields__}
        if "stopping" in value.__dataclass_fields__ and "arms" in value.__dataclass_fields__:
            given["stopping"] = tuple((one.rule, one.met, one.goal) for one in value.stopping)
        return dataclasses.replace(value, **given)
    return value


UNITS = [f"unit {i}" for i in range(12)]
STEPS = [
    lambda one: one.what_if(0.9),  # too early
    lambda one: one.ask("ada"),
    lambda one: one.ask("ada"),
    lambda one: one.ask("a/b%2F?#..", {"class": "4b", "ages": [9, 10]}),
    lambda one: one.ask("."),
    lambda one: one.ask_many(["ada", ("..", {"x": 1}), *UNITS]),
    lambda one: one.ask_many({"bob": {"x": 2}, "eve": None}),
    lambda one: one.tell("ada", 0.5),
    lambda one: one.tell("ada", 0.5),
    lambda one: one.tell("ada", np.float32(0.25)),
    lambda one: one.tell("nobody", 1),
    lambda one: one.tell("ada", 11),
    lambda one: one.tell("a/b%2F?#..", 1),
    lambda one: one.tell("..", 1.5),
    lambda one: one.tell(".", np.int64(2)),
    lambda one: one.tell_many([("bob", 2.5), ("nobody", 1)]),
    lambda one: one.tell_many((unit, i % 5) for i, unit in enumerate(UNITS)),
    lambda one: one.tell_many({"bob": 2.5}),
    lambda one: one.correct("bob", 3, "typing error"),
    lambda one: one.correct("eve", 3, "typing error"),
    lambda one: one.correct("..", 3, "dots"),
    lambda one: one.assignment("a/b%2F?#.."),
    lambda one: one.assignment("nobody"),
    lambda one: one.unit("bob"),
    lambda one: one.unit("eve"),
    lambda one: one.unit("nobody"),
    lambda one: one.what_if(0.9),
    lambda one: one.what_if(1.0),
    lambda one: one.change_weight(0.7),
    lambda one: one.add_arm("new/arm", floor=0.02),
    lambda one: one.add_arm("new/arm", floor=0.02),
    lambda one: one.add_arm("new/arm"),
    lambda one: one.pause_arm("new/arm"),
    lambda one: one.pause_arm("no arm"),
    lambda one: one.ask_many(["c", "d", "e"]),
    lambda one: one.resume_arm("new/arm"),
    lambda one: one.ask_many(["f", "g", "h"]),
    lambda one: one.retire_arm("new/arm"),
    lambda one: one.resume_arm("new/arm"),
    lambda one: one.pause(),
    lambda one: one.ask("late"),
    lambda one: one.resume(),
    lambda one: one.settle(),
    lambda one: one.describe(),
    lambda one: one.configuration,
    lambda one: one.status(),
    lambda one: one.history(5),
    lambda one: one.history(),
    lambda one: list(one.events()),
    lambda one: list(one.events(20)),
    lambda one: one.events_page(3, 4),
    lambda one: one.verify(),
    lambda one: one.rebuild(),
    lambda one: one.stop(),
    lambda one: one.resume(),
    lambda one: one.finish(),
    lambda one: one.finish(anyway=True),
    lambda one: one.tell("c", 1),
    lambda one: one.add_arm("more"),
]


def test_every_verb_gives_what_an_experiment_gives(client, name):
    remote, local = client.create(name, **SETTINGS), eq.Experiment.create("memory:", name, **SETTINGS)
    used = set()
    for number, step in enumerate(STEPS):
        expected = outcome(step, local)
        assert outcome(step, Noting(remote, used)) == expected, f"step {number}"
    refused = [outcome(step, local) for step in STEPS[-2:]]
    assert [one[0] for one in refused] == [eq.ExperimentFinished] * 2
    assert used >= set(members(RemoteExperiment)) - {"export"}


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
    assert comparable(remote.status()) == comparable(stored.status())
    assert remote.status().created_at == stored.status().created_at
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


def test_rewards_that_are_held_back_keep_an_experiment_from_its_end(client, name):
    missing = eq.DropUnit(window_seconds=3600, hold=True)
    remote = client.create(name, arms=["a", "b"], policy=eq.Uniform(), missing=missing)
    assert not remote.tell(remote.ask("ada").unit, 1).counted
    with pytest.raises(eq.RewardsHeld, match="holds back 1 reward"):
        remote.finish()
    assert remote.unit("ada").state == "held"
    remote.finish(anyway=True)
    assert remote.status().state == "finished"


def test_many_units_are_assigned_as_one_by_one(client, name):
    settings = {"arms": ["a", "b", "c"], "policy": eq.Uniform(), "seed": 3}
    remote, local = client.create(name, **settings), eq.Experiment.create("memory:", name, **settings)
    units = [f"unit-{i}" for i in range(2_500)]
    assert [one.arm for one in remote.ask_many(units)] == [one.arm for one in local.ask_many(units)]
    assert sum(one.counted for one in remote.tell_many(dict.fromkeys(units, 1.0))) == 2_500
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
        client.open("no such thing")
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
        connect(service.url).open(name)
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
