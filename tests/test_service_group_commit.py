"""Group commit: who shares a transaction, that no answer comes before it is durable, and that nobody spoils it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
import pytest
import sqlalchemy as sa
from patience import BUSY, wait_until
from service_api import Api, path_of
from service_runner import serving_here

import equipoise as eq
from equipoise.experiment import Ask
from equipoise.experiment import execution as carrying_out
from equipoise.service import Settings, group_commit
from equipoise.service.api_keys import create_key, list_keys, revoke_key
from equipoise.service.error_responses import Overloaded

ASK = path_of("x", "assignments")


class Commits:
    """Holds back the commits of a store while it is closed, as a slow disk would."""

    def __init__(self, store):
        self._writing = store.database.writing
        self.open = threading.Event()
        self.open.set()
        self.arrived = threading.Semaphore(0)
        store.database.writing = self.writing

    @contextmanager
    def writing(self, *arguments, **options):
        with self._writing(*arguments, **options) as transaction:
            yield transaction
            if not self.open.is_set():
                self.arrived.release()
                assert self.open.wait(30)


class Bench:
    """A server whose commits can be held, and people who ask it at the same time."""

    def __init__(self, here, api, commits, path):
        self.here, self.api, self.commits, self.path = here, api, commits, path
        self.people = ThreadPoolExecutor(64)

    def ask(self, unit, name="x", **more):
        return self.people.submit(self.api, "POST", path_of(name, "assignments"), {"unit": unit, **more})

    def tell(self, unit, reward):
        return self.people.submit(self.api, "PUT", path_of("x", "assignments", unit, "reward"), {"reward": reward})

    def hold_one(self, unit="first"):
        """Hold commits, and let one request be written as far as that."""
        self.commits.open.clear()
        first = self.ask(unit)
        assert self.commits.arrived.acquire(timeout=10)
        return first

    def wait_for(self, number):
        """Wait until so many requests are inside."""
        wait_until(lambda: self.here.service.metrics.in_flight >= number)

    def transactions(self):
        """How many transactions there were for how many requests, as Prometheus is told."""
        lines = dict(line.rsplit(" ", 1) for line in self.api("GET", "/metrics").text.splitlines() if line[0] != "#")
        return int(lines["equipoise_batch_requests_count"]), float(lines["equipoise_batch_requests_sum"])

    def written(self):
        """How many units another process finds in the file."""
        with closing(sqlite3.connect(self.path)) as database:
            return database.execute("SELECT count(*) FROM events WHERE kind = 'assigned'").fetchone()[0]


@contextmanager
def bench_of(path, **settings):
    store = eq.open_store(f"sqlite:///{path}")
    key = create_key(store, role="admin")[1]
    for name in ("x", "y"):
        made = eq.Experiment.create(store, name, arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
        made.ask("ada")
    commits = Commits(store)
    with serving_here(store, Settings(**settings)) as here, closing(Api(here.url, key)) as api:
        for name in ("x", "y"):
            api("POST", path_of(name, "assignments"), {"unit": "ada"})
        bench = Bench(here, api, commits, path)
        try:
            yield bench
        finally:
            commits.open.set()
            bench.people.shutdown()


@pytest.fixture
def bench(tmp_path):
    with bench_of(tmp_path / "x.db") as bench:
        yield bench


def test_requests_that_arrive_while_a_transaction_runs_share_the_next(bench):
    before = bench.transactions()
    first = bench.hold_one()
    others = [bench.ask(f"u{i}") for i in range(40)]
    bench.wait_for(41)
    bench.commits.open.set()
    answers = [first.result(), *(other.result() for other in others)]
    assert {answer.status_code for answer in answers} == {201}
    assert sorted(answer.json()["number"] for answer in answers) == list(range(1, 42))
    count, total = bench.transactions()
    assert (count - before[0], total - before[1]) == (2, 41)
    assert bench.api.data("GET", path_of("x", "verify"))["n_decisions"] == 42


def test_nobody_is_answered_before_the_commit(bench):
    first = bench.hold_one()
    others = [bench.ask(f"u{i}") for i in range(5)] + [bench.tell("ada", 1)]
    bench.wait_for(7)
    assert bench.api.data("GET", "/healthz")  # a request that came later, and is answered
    assert not first.done() and not any(other.done() for other in others)
    assert bench.written() == 2
    bench.commits.open.set()
    assert first.result().status_code == 201
    assert {other.result().status_code for other in others} == {200, 201}
    assert bench.written() == 8


def test_a_bad_request_gets_its_own_error_and_the_others_their_answers(bench):
    first, before = bench.hold_one(), bench.transactions()
    good = [bench.ask(f"u{i}") for i in range(5)] + [bench.tell("ada", 1)]
    bench.wait_for(7)
    bad = [
        (404, bench.tell("nobody", 1)),
        (422, bench.ask("big", attributes={"x": "y" * 10_001})),
        (422, bench.ask("with\nbreak")),
    ]
    bench.wait_for(10)
    bad.append((409, bench.tell("ada", 2)))
    bench.wait_for(11)
    bench.commits.open.set()
    assert first.result().status_code == 201
    assert [one.result().status_code for one in good] == [201] * 5 + [200]
    assert [one.result().status_code for _, one in bad] == [status for status, _ in bad]
    assert bench.transactions()[0] - before[0] <= 2
    assert bench.api.data("GET", path_of("x", "verify"))["n_decisions"] == 7


def test_an_error_nobody_expected_hits_only_the_request_that_causes_it(bench, monkeypatch, caplog):
    transition = carrying_out.transition

    def poisoned(state, units, due, requests, *more):
        if any(getattr(request, "unit", None) == "poison" for request in requests):
            raise ZeroDivisionError("a bug")
        return transition(state, units, due, requests, *more)

    monkeypatch.setattr(carrying_out, "transition", poisoned)
    first = bench.hold_one()
    others = [bench.ask(unit) for unit in ("u0", "poison", "u1", "u2")]
    bench.wait_for(5)
    bench.commits.open.set()
    answers = [first.result(), *(other.result() for other in others)]
    assert [answer.status_code for answer in answers] == [201, 201, 500, 201, 201]
    assert "ZeroDivisionError" not in answers[2].text and "logged" in answers[2].text
    assert "ZeroDivisionError: a bug" in caplog.text
    assert bench.api.data("GET", path_of("x", "verify"))["n_decisions"] == 5


def test_while_another_process_writes_the_event_loop_goes_on(bench):
    with closing(sqlite3.connect(bench.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        waiting = [bench.ask(f"u{i}") for i in range(5)]
        bench.wait_for(5)
        assert bench.api.data("GET", "/healthz") == {"status": "ok"}
        assert not any(one.done() for one in waiting)
        other.execute("ROLLBACK")
    assert {one.result().status_code for one in waiting} == {201}


def test_while_another_process_writes_nothing_else_waits_for_it(tmp_path):
    with bench_of(tmp_path / "x.db", wait_seconds=0.5) as bench:
        with closing(sqlite3.connect(bench.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = [bench.people.submit(bench.api, "POST", path_of("x", "pause")) for _ in range(10)]
            told = [one.result() for one in waiting]
            assert {answer.status_code for answer in told} == {503}
            assert "not known" in told[0].json()["error"]
            started = time.monotonic()
            assert bench.api("GET", "/readyz").status_code == 200
            assert bench.api("GET", path_of("x", "status")).status_code == 200
            assert time.monotonic() - started < BUSY
            other.execute("ROLLBACK")
        wait_until(lambda: bench.api.data("GET", path_of("x", "status"))["state"] == "paused")


def test_what_has_not_begun_when_it_is_given_up_never_does(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.service.service._MOST_THREADS", 1)
    with bench_of(tmp_path / "x.db", wait_seconds=0.5) as bench:
        with closing(sqlite3.connect(bench.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            begun = bench.people.submit(bench.api, "POST", path_of("x", "arms", "a", "pause"))
            bench.wait_for(1)
            waiting = [bench.people.submit(bench.api, "POST", path_of("x", "pause")) for _ in range(3)]
            assert "not known" in begun.result().json()["error"]
            assert all("not begun" in one.result().json()["error"] for one in waiting)
            other.execute("ROLLBACK")
        wait_until(lambda: '"paused"' in bench.api("GET", path_of("x")).text)
        assert bench.api.data("GET", path_of("x"))["state"] == "enrolling"


def test_requests_that_wait_for_the_store_are_not_collected_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("equipoise.service.service._MOST_WAITING", 3)
    with bench_of(tmp_path / "x.db", wait_seconds=5) as bench:
        with closing(sqlite3.connect(bench.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            waiting = [bench.people.submit(bench.api, "POST", path_of("x", "pause")) for _ in range(3)]
            wait_until(lambda: bench.here.service._threads._n_of.total() == 3)
            assert "too many" in bench.api("GET", path_of("x", "status")).json()["error"]
            assert bench.api("GET", "/readyz").status_code == 200
            other.execute("ROLLBACK")
        assert {one.result().status_code for one in waiting} == {200}
        assert bench.api("GET", path_of("x", "status")).status_code == 200


def test_keys_are_read_again_after_an_error_that_nobody_expected(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("equipoise.service.service._KEYS_SECONDS", 0.1)
    with bench_of(tmp_path / "x.db") as bench:
        read = bench.here.service.keys.read
        monkeypatch.setattr(bench.here.service.keys, "read", lambda **_: 1 / 0)
        wait_until(lambda: "keys could not be read" in caplog.text)
        monkeypatch.setattr(bench.here.service.keys, "read", read)
        [key] = list_keys(bench.here.service.store)
        revoke_key(bench.here.service.store, key.id)
        wait_until(lambda: bench.api("GET", "/experiments").status_code == 401)


def test_a_store_that_fails_fails_the_whole_batch_which_may_be_sent_again(bench, monkeypatch):
    first = bench.hold_one()
    others = [bench.ask(f"u{i}") for i in range(4)]
    bench.wait_for(5)
    bench.path.rename(bench.path.with_suffix(".away"))
    bench.commits.open.set()
    assert {one.result().status_code for one in (first, *others)} == {503}
    bench.path.with_suffix(".away").rename(bench.path)
    assert [bench.ask(f"u{i}").result().status_code for i in range(4)] == [201] * 4
    assert bench.api.data("GET", path_of("x", "verify"))["n_decisions"] == 5


def test_a_bulk_request_is_all_or_nothing_whoever_comes_with_it(bench):
    first = bench.hold_one()
    place, rewards = path_of("x", "rewards", "many"), [{"unit": "ada", "reward": 1}, {"unit": "nobody", "reward": 1}]
    bulk = bench.people.submit(bench.api, "POST", place, {"rewards": rewards})
    many = bench.people.submit(bench.api, "POST", ASK + "/many", {"units": ["u1", "u2", "u3"]})
    single = bench.ask("u4")
    bench.wait_for(4)
    bench.commits.open.set()
    assert [one.result().status_code for one in (first, bulk, many, single)] == [201, 404, 200, 201]
    status = bench.api.data("GET", path_of("x", "status"))
    assert (status["n_assigned"], status["n_rewarded"]) == (6, 0)


def test_two_experiments_in_one_file_take_turns(bench):
    first = bench.hold_one()
    of_x = [bench.ask(f"u{i}") for i in range(10)]
    of_y = [bench.ask(f"u{i}", "y") for i in range(10)]
    bench.wait_for(21)
    bench.commits.open.set()
    assert {one.result().status_code for one in (first, *of_x, *of_y)} == {201}
    for name, expected in (("x", 12), ("y", 11)):
        assert bench.api.data("GET", path_of(name, "verify"))["n_decisions"] == expected


def test_too_many_requests_at_once_are_told_to_come_again(tmp_path):
    with bench_of(tmp_path / "x.db", requests_in_flight=5) as bench:
        held = [bench.hold_one(), *(bench.ask(f"u{i}") for i in range(4))]
        bench.wait_for(5)
        for _ in range(3):
            refused = bench.ask("one too many").result()
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "5 requests" in refused.json()["error"] and "safe" in refused.json()["hint"]
        with closing(Api(bench.here.url)) as nobody:
            assert nobody.data("GET", "/healthz") == {"status": "ok"}
        bench.commits.open.set()
        assert {one.result().status_code for one in held} == {201}
        assert bench.ask("one too many").result().status_code == 201
        assert bench.here.service.metrics.in_flight == 0


def test_who_waits_too_long_is_told_so_and_may_ask_again(tmp_path):
    with bench_of(tmp_path / "x.db", wait_seconds=0.3) as bench:
        started = time.monotonic()
        begun = bench.hold_one("begun")
        waiting = [bench.ask(f"u{i}") for i in range(3)]
        answers = [begun.result(), *(one.result() for one in waiting)]
        assert 0.3 <= time.monotonic() - started < 0.5 + BUSY
        assert {answer.status_code for answer in answers} == {503}
        assert "not known" in answers[0].json()["error"]
        assert all("not begun" in answer.json()["error"] for answer in answers[1:])
        bench.commits.open.set()
        assert bench.ask("begun").result().status_code == 200  # it came to be after all
        assert bench.written() == 3
        assert bench.ask("u0").result().status_code == 201  # it did not


def test_experiments_do_not_wait_for_each_other_on_postgresql(postgresql_url):
    """One row is locked by hand, as a slow process elsewhere might; the other experiment does not notice."""
    store = eq.open_store(postgresql_url)
    key = create_key(store, role="admin")[1]
    for name in ("slow", "quick"):
        eq.Experiment.create(store, name, arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    with (
        serving_here(store, Settings()) as here,
        closing(Api(here.url, key)) as api,
        psycopg.connect(postgresql_url) as holder,
        ThreadPoolExecutor(64) as people,
    ):
        for name in ("slow", "quick"):
            api.data("POST", path_of(name, "assignments"), {"unit": "ada"})
        holder.execute("SELECT 1 FROM experiments WHERE name = 'slow' FOR UPDATE")
        held = [people.submit(api, "POST", path_of("slow", "assignments"), {"unit": f"u{i}"}) for i in range(20)]
        held += [people.submit(api, "POST", path_of("slow", verb)) for verb in ("settle",) * 4 + ("resume",) * 12]
        wait_until(lambda: here.service.metrics.in_flight == len(held))
        started = time.monotonic()
        for i in range(10):
            assert api.data("POST", path_of("quick", "assignments"), {"unit": f"u{i}"})["new"]
            api.data("PUT", path_of("quick", "assignments", f"u{i}", "reward"), {"reward": 1})
        api.data("POST", path_of("quick", "pause"))
        api.data("GET", path_of("quick", "status"))
        api.data("GET", path_of("slow", "status"))
        api.data("GET", "/experiments")
        assert time.monotonic() - started < 5
        assert not any(one.done() for one in held)
        holder.commit()
        assert {one.result().status_code for one in held} == {200, 201}
        assert api.data("GET", path_of("slow", "verify"))["n_decisions"] == 21


def test_more_locked_experiments_than_threads_keep_nobody_else_waiting_on_postgresql(postgresql_url):
    store, n_locked = eq.open_store(postgresql_url), 40
    for name in ("free", *(f"locked {i}" for i in range(n_locked))):
        eq.Experiment.create(store, name, arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with (
        serving_here(store, Settings(open=True, wait_seconds=60)) as here,
        closing(Api(here.url)) as api,
        psycopg.connect(postgresql_url) as holder,
        ThreadPoolExecutor(2 * n_locked) as people,
    ):
        api.http.timeout = 120
        api.data("POST", path_of("free", "assignments"), {"unit": "first"})
        holder.execute("SELECT 1 FROM experiments WHERE name LIKE 'locked%' FOR UPDATE")
        held = []
        for number in range(n_locked):
            name = f"locked {number}"
            held.append(people.submit(api, "POST", path_of(name, "assignments"), {"unit": "ada"}))
            held.append(people.submit(api, "POST", path_of(name, "assignments", "many"), {"units": ["bob", "eve"]}))
        commit = here.service.group_commit
        wait_until(lambda: sum(queue.is_busy for queue in list(commit._queues.values())) == n_locked)
        for number in range(5):  # with all threads taken, these would wait until the lock is given up after 150 s
            assert api.data("POST", path_of("free", "assignments"), {"unit": f"u{number}"})["new"]
        assert not any(one.done() for one in held)
        holder.commit()
        assert {one.result().status_code for one in held} == {200, 201}
        for one in held[::2]:
            assert one.result().json()["new"]


def test_what_postgresql_says_of_a_row_it_does_not_take_is_not_logged(postgresql_url, caplog):
    """Such as a rule that somebody added, which nobody expects: the log is to tell of it, and not of the unit."""
    store = eq.open_store(postgresql_url)
    key = create_key(store, role="admin")[1]
    eq.Experiment.create(store, "x", arms=["a", "b"], policy=eq.Uniform(), seed=1)
    with psycopg.connect(postgresql_url) as other:
        other.execute("ALTER TABLE events ADD CONSTRAINT no_more_units CHECK (kind <> 'assigned')")
        other.execute("ALTER TABLE keys ADD CONSTRAINT no_more_readers CHECK (role <> 'reader')")
    asked = {"unit": "Ada Lovelace", "attributes": {"born": "in London"}}
    with serving_here(store, Settings()) as here, closing(Api(here.url, key)) as api:
        assert api("POST", ASK, asked).status_code == 500
        assert api("POST", ASK + "/many", {"units": [asked]}).status_code == 500
        assert api("POST", ASK + "/many", {"units": [asked, "Grace Hopper"]}).status_code == 500
    assert caplog.text.count("unexpected error") == 3
    assert caplog.text.count("CheckViolation: new row for relation") >= 3
    assert "no_more_units" in caplog.text and "23514" in caplog.text
    assert [word for word in ("Lovelace", "London", "Hopper", "DETAIL") if word in caplog.text] == []
    with pytest.raises(sa.exc.IntegrityError, match="no_more_readers") as caught:  # which goes through SQLAlchemy
        create_key(store, role="reader", name="Ada Lovelace")
    for error in (caught.value, caught.value.__cause__):
        assert [word for word in ("Lovelace", "DETAIL") if word in str(error)] == []
    store.close()


def test_two_servers_on_one_postgresql_never_give_a_unit_two_arms(postgresql_url):
    stores = [eq.open_store(postgresql_url) for _ in range(2)]
    key = create_key(stores[0], role="admin")[1]
    eq.Experiment.create(stores[0], "x", arms=["a", "b"], policy=eq.ForcingBalance(reward_weight=0.5), seed=1)
    units = [f"u{i % 60}" for i in range(240)]
    with (
        serving_here(stores[0], Settings()) as one,
        serving_here(stores[1], Settings()) as other,
        closing(Api(one.url, key)) as first,
        closing(Api(other.url, key)) as second,
        ThreadPoolExecutor(16) as people,
    ):
        answers = list(people.map(lambda api, unit: api("POST", ASK, {"unit": unit}), [first, second] * 120, units))
        assert {answer.status_code for answer in answers} == {200, 201}
        assert sum(answer.json()["new"] for answer in answers) == 60
        assert len({(answer.json()["unit"], answer.json()["arm"]) for answer in answers}) == 60
        assert second.data("GET", path_of("x", "verify"))["n_decisions"] == 60


class Turns:
    """A queue of one of two processes that write to an experiment; gathering takes as long as a test wants."""

    def __init__(self, url, monkeypatch, longest=None):
        self.store, self.other_store = eq.open_store(url), eq.open_store(url)
        self.experiment = eq.Experiment.create(self.store, "turns", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        self.other = eq.Experiment.open(self.other_store, "turns")
        self.batches, self.gathered = [], []
        self.commits = group_commit.GroupCommit(
            self.store, batch_requests=100, wait_seconds=30, observe=lambda _, n, __: self.batches.append(n)
        )
        gather = group_commit._Queue._gather

        def noted(queue, expected, seconds):
            self.gathered.append((expected, seconds))
            gather(queue, expected, seconds if longest is None else longest)

        monkeypatch.setattr(group_commit._Queue, "_gather", noted)

    def ask(self, *units):
        return [self.commits.submit(self.experiment, [Ask(unit)]) for unit in units]

    def is_writing(self):
        return any(queue._running for queue in self.commits._queues.values())

    def run(self, story):
        async def told():
            try:
                await asyncio.wait_for(story(), 30)
            finally:
                await self.commits.close(5)

        with self.store, self.other_store:
            asyncio.run(told())
            assert self.experiment.verify().n_decisions == self.experiment.status().n_assigned


@pytest.fixture(params=["sqlite", "postgresql"])
def shared_url(request, tmp_path):
    return f"sqlite:///{tmp_path}/turns.db" if request.param == "sqlite" else request.getfixturevalue("postgresql_url")


def test_where_others_write_requests_gather_until_those_answered_last_are_back(shared_url, monkeypatch):
    turns = Turns(shared_url, monkeypatch, longest=25)

    async def story():
        await asyncio.gather(*turns.ask("a", "b"))
        assert turns.gathered == []
        turns.other.ask("elsewhere")
        await asyncio.gather(*turns.ask("c", "d"))
        [(expected, seconds)] = turns.gathered
        assert expected == 2 and 0 < seconds <= 0.005
        [early] = turns.ask("e")
        await asyncio.to_thread(turns.other.status)  # as long as a transaction takes
        assert not early.done()
        await asyncio.gather(early, *turns.ask("f"))
        assert turns.batches == [2, 2, 2]
        await asyncio.gather(*turns.ask("g"))
        assert len(turns.gathered) == 1  # nobody else wrote since

    turns.run(story)


def test_who_is_not_back_in_time_is_not_waited_for(shared_url, monkeypatch):
    turns = Turns(shared_url, monkeypatch)

    async def story():
        await asyncio.gather(*turns.ask("a", "b"))
        turns.other.ask("elsewhere")
        await asyncio.gather(*turns.ask("c", "d"))
        await asyncio.gather(*turns.ask("e"))
        assert len(turns.gathered) == 1
        await asyncio.gather(*turns.ask("f"))
        assert turns.batches == [2, 2, 1, 1]

    turns.run(story)


def test_closing_carries_out_what_gathers(shared_url, monkeypatch):
    turns = Turns(shared_url, monkeypatch, longest=0.5)

    async def story():
        await asyncio.gather(*turns.ask("a", "b"))
        turns.other.ask("elsewhere")
        await asyncio.gather(*turns.ask("c", "d"))
        [late] = turns.ask("e")
        await turns.commits.close(5)
        assert late.done() and late.result().unit == "e"

    turns.run(story)


def test_what_comes_after_the_end_is_refused_and_leaves_no_trace(shared_url, monkeypatch):
    turns = Turns(shared_url, monkeypatch)

    async def story():
        await asyncio.gather(*turns.ask("a"), *turns.ask("b"))
        await turns.commits.close(5)
        with pytest.raises(Overloaded, match="not begun"):
            await turns.ask("late")[0]
        turns.other.ask("elsewhere")  # nothing is locked
        assert turns.other.assignment("late") is None

    turns.run(story)


def test_everyone_who_still_waits_at_the_end_is_told(tmp_path, monkeypatch):
    turns = Turns(f"sqlite:///{tmp_path}/turns.db", monkeypatch)
    others = [eq.Experiment.create(turns.store, name, arms=["a", "b"], policy=eq.Uniform()) for name in ("y", "z")]

    async def story():
        await asyncio.gather(*turns.ask("a"))
        with closing(sqlite3.connect(tmp_path / "turns.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            begun = turns.ask("b")
            while not turns.is_writing():
                await asyncio.sleep(0)
            late = [turns.commits.submit(other, [Ask(unit)]) for other in others for unit in "cd"]
            await turns.commits.close(0.1)
            writer.execute("ROLLBACK")
        assert [answer.unit for answer in await asyncio.gather(*begun)] == ["b"]
        told = await asyncio.gather(*late, return_exceptions=True)
        assert [str(one).split(":")[0] for one in told] == ["the service is ending"] * 4

    turns.run(story)
