"""Experiments beyond the contract: many processes, broken databases, policies of one's own, files."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import multiprocessing
import os
import sqlite3
import sys
import threading
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import psycopg
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from own_policies import Curious, CuriousCompiled, DOptimal, LeastAssigned
from store_worker import work

import equipoise as eq
from equipoise.experiment import Ask, Correct, Finish, Settle, Tell
from equipoise.experiment.configuration import checked_arms
from equipoise.experiment.decider import Decider, restricted
from equipoise.experiment.state import State
from equipoise.experiment.transitions import transition
from equipoise.store import Store, sqlite
from equipoise.testing.unit_contract import StoppedClock

ARMS = ["line", "pie", "none"]
BALANCE = eq.ForcingBalance(reward_weight=0.6)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgresql_url")


@pytest.fixture
def store(url):
    with eq.open_store(url) as opened:
        yield opened


def create(store, name="fractions", **chosen):
    return eq.Experiment.create(store, name, **{"arms": ARMS, "policy": BALANCE, "seed": 7, **chosen})


class TestManyProcesses:
    def test_eight_processes_on_one_and_on_several_experiments(self, url, monkeypatch):
        """No lost update, no unit with two arms, no error; the log replays."""
        with eq.open_store(url) as store:
            shared = create(store, "shared")
            for worker in range(8):
                create(store, f"own-{worker}", missing=eq.WaitForReward(window_seconds=1e6))
        # The server that forks the processes does not take over our path.
        monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["store_worker"])
        with context.Pool(8) as pool:
            seen = pool.starmap(work, [(url, worker) for worker in range(8)])
        with eq.open_store(url) as store:
            shared = eq.Experiment.open(store, "shared")
            arms = {}
            for assignments in seen:
                for unit, arm in assignments:
                    assert arms.setdefault(unit, arm) == arm
            status = shared.status()
            assert status.n_assigned == len(arms) == 4 * 15 + 8 * 16
            assert status.n_rewarded == 4 * 15
            for one in eq.Experiment.list(store):
                eq.Experiment.open(store, one.name).verify()


class TestBrokenDatabases:
    def test_a_file_that_another_process_writes_to_is_waited_for(self, tmp_path):
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = create(store)
            other = sqlite3.connect(tmp_path / "store.db", isolation_level=None, check_same_thread=False)
            other.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
            timer.start()
            assert experiment.ask("a").new
            timer.join()
            other.close()

    def test_a_lock_that_is_never_released_is_told_plainly(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.02)
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = create(store)
            with contextlib.closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                with pytest.raises(eq.StoreUnavailable, match="another process has been writing") as refused:
                    experiment.ask("a")
                assert "locked" not in str(refused.value)
                assert experiment.status().n_assigned == 0  # readers do not wait
                other.execute("ROLLBACK")
            assert experiment.ask("a").new

    def test_a_full_disk_is_told_and_nothing_is_lost(self, tmp_path):
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = create(store)

            def fill_up(connection, _):
                pages = connection.execute("PRAGMA page_count").fetchone()[0]
                connection.execute(f"PRAGMA max_page_count = {pages + 3}")

            engine = store.database.engine
            sa.event.listen(engine, "connect", fill_up)
            engine.dispose()
            kept = 0

            def ask_on():
                nonlocal kept
                while True:
                    experiment.ask_many([f"unit-{kept}-{i}" for i in range(20)])
                    kept += 1

            with pytest.raises(eq.StoreUnavailable, match="full"):
                ask_on()
            assert kept
            assert experiment.status().n_assigned == 20 * kept
            sa.event.remove(engine, "connect", fill_up)
            engine.dispose()
            experiment.ask("after")
            assert experiment.verify().n_decisions == 20 * kept + 1

    def test_a_file_that_may_not_be_written_is_told(self, tmp_path):
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = create(store)
            sa.event.listen(
                store.database.engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = 1")
            )
            store.database.engine.dispose()
            with pytest.raises(eq.StoreUnavailable, match="readonly"):
                experiment.ask("a")

    def test_a_server_that_goes_away_and_comes_back(self, postgresql, postgresql_url):
        with eq.open_store(postgresql_url) as store:
            experiment = create(store)
            experiment.ask("a")
            with psycopg.connect(postgresql, autocommit=True) as connection:
                for _ in range(2):
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                        " AND backend_type = 'client backend' AND application_name = %s",
                        (store.database.application_name,),
                    )
                    assert experiment.ask("b").unit == "b"
                    assert experiment.status().n_assigned == 2
            experiment.verify()

    def test_a_server_that_stays_away_is_told(self):
        with pytest.raises(eq.StoreUnavailable, match="cannot be reached") as refused:
            eq.open_store("postgresql://localhost:1/school")
        assert refused.value.hint

    def test_without_the_driver_the_hint_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(eq.MissingExtra, match=r"equipoise\[postgres\]"):
            eq.open_store("postgresql://localhost:1/school")

    @pytest.mark.parametrize("last", ["events", "arms", "pending", "advance"])
    def test_what_fails_half_way_leaves_nothing_behind(self, store, monkeypatch, last):
        experiment = create(store, missing=eq.WaitForReward(window_seconds=60))
        experiment.ask_many(["a", "b"])
        before = list(experiment.events())
        with monkeypatch.context() as patch:
            kind, method = store.read(type), "advance" if last == "advance" else "put"
            original = getattr(kind, method)

            def fail(transaction, *arguments):
                original(transaction, *arguments)
                if method == "advance" or arguments[0].name == last:
                    raise RuntimeError("pulled the plug")

            patch.setattr(kind, method, fail)
            with pytest.raises(RuntimeError, match="pulled the plug"):
                experiment.ask_many(["c", "d"])
        assert list(experiment.events()) == before
        assert [one.number for one in experiment.ask_many(["d", "c"])] == [2, 3]
        experiment.verify()


def test_experiments_in_postgresql_do_not_wait_for_each_other(postgresql_url):
    with eq.open_store(postgresql_url) as store:
        first, second = create(store, "first"), create(store, "second")
        entered, leave = threading.Event(), threading.Event()

        def hold(transaction):
            entered.set()
            assert leave.wait(20)

        thread = threading.Thread(target=store.change, args=(first.number, hold))
        thread.start()
        assert entered.wait(20)
        assert second.ask("a").new  # while the first is locked
        assert first.status().n_assigned == 0  # reading needs no lock
        leave.set()
        thread.join()


class TestPoliciesOfOnesOwn:
    @pytest.mark.parametrize(
        "policy",
        [
            LeastAssigned(patience=2),
            Curious(),
            CuriousCompiled(),
            eq.ForcingBalance(reward_weight=0.6, objective=DOptimal()),
        ],
        ids=lambda policy: type(policy).__name__,
    )
    def test_are_logged_and_replayed_like_ours(self, policy):
        experiment = create("memory:", policy=policy, floor=0.05, warm_up=2)
        for number in range(60):
            experiment.ask(f"unit-{number}")
            if number % 3:
                experiment.tell(f"unit-{number}", math.sin(number))
            if number == 40:
                experiment.pause_arm("pie")
        assert experiment.verify().n_decisions == 60
        store = experiment.store
        store.change(
            None, lambda t: t.connection.exec_driver_sql("UPDATE events SET probability = 0.3 WHERE number = 50")
        )
        with pytest.raises(eq.VerificationFailed, match="event 50 "):
            experiment.verify()

    def test_a_policy_that_cannot_be_written_down_is_refused(self):
        with pytest.raises(eq.InvalidInput, match="JSON and back"):
            create("memory:", policy=Curious(patience={1, 2}))


BUILT_IN = [
    BALANCE,
    eq.ForcingBalance(reward_weight=0.5, tracking="windowed", floor=(0.1, 0.0, 0.2)),
    eq.ForcingBalance(reward_weight=0.5, objective=eq.PowerObjective(importance=(1.0, 2.0, 3.0))),
    eq.Fixed(allocation=(0.2, 0.3, 0.5), tracking="sample"),
    eq.EpsilonGreedy(exploration=0.3),
    eq.ThompsonBalance(reward_weight=0.5),
    eq.UCB(),
    eq.GAFS(),
    eq.GAFSMax(),
    eq.OptimisticBalance(reward_weight=0.5),
    eq.ForcingBalance(reward_weight=0.5, tracking="ratio"),
    eq.PooledBalance(reward_weight=0.5),
    eq.PooledBalance(reward_weight=0.5, tracking="windowed"),
    *(
        kind(information_kept=0.6, information_about=about, tracking="windowed")
        for kind in (eq.ForcingBalance, eq.PooledBalance)
        for about in ("average", "every-arm", "best-arm")
    ),
]


@pytest.mark.parametrize("policy", BUILT_IN, ids=repr)
@pytest.mark.parametrize("tracked_from", [None, [40, 10, 0]])
@pytest.mark.parametrize("paused", [False, True])
def test_compiled_and_interpreted_decisions_are_equal(policy, paused, tracked_from):
    """The compiled path is the interpreted one, bit for bit, with shares, warm-up, an arm that is out or new."""
    configuration = configure(policy=policy, warm_up=3)
    stats, rng = eq.ArmStats(3), np.random.default_rng(3)
    for arm, count in enumerate(tracked_from or ()):
        for reward in rng.normal(arm, 1.0, count).tolist():
            stats.assign(arm)
            stats.update(arm, reward)
    states = ["active", "paused" if paused else "active", "active"]
    began = None if tracked_from is None else np.array(tracked_from)
    decider = Decider(configuration, states, [0.1, 0.05, 0.0], began)
    assert decider.is_compiled
    interpreted = decider._interpreted()
    drawn = set()
    for index in range(150):
        choice = decider.decide(stats, index)
        assert choice[:3] == interpreted(stats, index)[:3]  # a policy written in Python solves for no weight
        drawn.add(choice)
        stats.assign(choice[0])
        if rng.random() < 0.7:
            stats.update(choice[0], rng.normal(choice[0], 1.0))
    assert len(drawn) > 2


POLICIES_WITH_A_TARGET = [
    BALANCE,
    eq.ForcingBalance(reward_weight=0.6, tracking="ratio"),
    eq.ForcingBalance(reward_weight=0.6, tracking="windowed"),
    eq.ForcingBalance(reward_weight=0.6, objective=DOptimal()),
    eq.ThompsonBalance(reward_weight=0.6),
    eq.OptimisticBalance(reward_weight=0.6),
    eq.GAFS(),
]


@pytest.mark.parametrize("policy", POLICIES_WITH_A_TARGET, ids=repr)
def test_an_arm_added_late_gets_about_its_target_and_not_everybody(policy):
    """All arms are alike, so its target is a quarter, whatever the weight; before, it took all of the next hundreds."""
    experiment, rng = create("memory:", policy=policy), np.random.default_rng(5)

    def play(label, count):
        got = []
        for first in range(0, count, 20):
            new = experiment.ask_many([f"{label}-{i}" for i in range(first, first + 20)])
            experiment.tell_many([(one.unit, float(rng.normal(1.0, 1.0))) for one in new])
            got += [one.arm for one in new]
        return got

    play("before", 900)
    experiment.add_arm("cake")
    play("forced", 60)  # the rewards that its estimates need, and forcing, come first
    share = play("after", 300).count("cake") / 300
    assert 0.1 < share < 0.5
    experiment.verify()


def test_forcing_counts_every_assignment_there_was():
    """An arm with many people is not forced again because others came into play."""
    stats = eq.ArmStats.from_summary([400, 400, 0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    decider = Decider(configure(), ["active"] * 3, [0.0] * 3, np.array([400, 400, 0]))
    for index in range(29):  # the least number whose square is more than the number of assignments
        arm, _, forced, _ = decider.decide(stats, index)
        assert (arm, forced) == (2, True)
        stats.assign(2)
        stats.update(2, 1.0 + index % 2)
    assert not decider.decide(stats, 29)[2]


def test_a_policy_loses_the_parameters_of_arms_that_are_out():
    active = np.array([0, 2])
    assert restricted(BUILT_IN[1], active, 3).floor == (0.1, 0.2)
    assert restricted(BUILT_IN[2], active, 3).objective.importance == (1.0, 3.0)
    assert restricted(BUILT_IN[3], active, 3).allocation == pytest.approx((2 / 7, 5 / 7))
    assert restricted(BALANCE, active, 3) is BALANCE


def configure(**chosen):
    return create("memory:", **chosen).configuration


requests = st.lists(
    st.one_of(
        st.builds(Ask, st.sampled_from("abcdef")),
        st.builds(Tell, st.sampled_from("abcdef"), st.sampled_from([0.0, 1.0])),
        st.builds(Correct, st.sampled_from("abcdef"), st.sampled_from([0.0, 1.0]), st.just("why")),
        st.just(Settle()),
    ),
    max_size=30,
)
rules = st.sampled_from(
    [
        eq.WaitForReward(),
        eq.WaitForReward(window_seconds=1, hold=True),
        eq.DefaultReward(value=0.5, window_seconds=1),
        eq.DefaultReward(value=0.5, window_seconds=1, hold=True, late="ignore"),
        eq.DropUnit(window_seconds=1, late="ignore"),
        eq.DropUnit(window_seconds=1),
    ]
)


@given(requests, st.lists(st.integers(1, 10), min_size=1), rules)
@settings(max_examples=40)
def test_batches_of_any_size_give_what_single_requests_give(sequence, sizes, missing):
    """Planning is pure, and the grouping of requests into transactions shows in no event or result."""

    def play(pieces):
        clock = StoppedClock()
        with eq.open_store("memory:", clock=lambda: clock.now) as store:
            experiment = create(store, policy=eq.EpsilonGreedy(), missing=missing)
            results = []
            for piece in pieces:
                results += experiment.apply(piece)
            clock.advance(2)
            results += experiment.apply(sequence[:5])
            experiment.verify()
            return [repr(one) for one in results], [event.to_dict() for event in experiment.events()]

    pieces, rest = [], sequence
    for size in sizes:
        pieces, rest = [*pieces, rest[:size]], rest[size:]
    assert play([*pieces, rest]) == play([[one] for one in sequence])


def test_a_transition_changes_nothing_it_was_given():
    state = State("x", 0, configure())
    state.set_arms(ARMS, ["active"] * 3, [0.0] * 3)
    made = transition(state, {}, (), [Ask("a"), Tell("a", 1.0), Ask("b")], 5)
    assert (state.n_events, state.n_decisions, state.stats.n_assigned) == (0, 0, 0)
    assert (made.state.n_events, made.state.n_decisions, len(made.events)) == (3, 2, 3)
    assert made.touched == {0, 1}


def test_parquet_holds_the_same_as_csv(tmp_path):
    experiment = create("memory:")
    assert experiment.export(tmp_path / "none.parquet") == 0
    assert pl.read_parquet(tmp_path / "none.parquet").shape == (0, 12)
    experiment.ask_many([f"unit-{i}" for i in range(12_000)])
    experiment.ask("new", {"a": 1})
    experiment.tell_many({f"unit-{i}": i / 7 for i in range(0, 12_000, 2)})
    for ending in ("parquet", "csv", "jsonl"):
        assert experiment.export(tmp_path / f"out.{ending}") == 12_001
    frame, table = pl.read_parquet(tmp_path / "out.parquet"), pl.read_csv(tmp_path / "out.csv", try_parse_dates=True)
    assert frame.columns == table.columns
    assert frame["reward"].sum() == table["reward"].sum()
    assert frame["assigned_at"].dtype == pl.Datetime("us", "UTC")
    assert frame["attributes"][-1] == '{"a": 1}'
    with pytest.raises(eq.InvalidInput, match=r"\.csv"):
        experiment.export(tmp_path / "out.xlsx")
    with pytest.raises(eq.InvalidInput, match="format must be"):
        experiment.export(tmp_path / "out.csv", "xml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["none.parquet", "out.csv", "out.jsonl", "out.parquet"]


def test_an_export_has_units_exactly_as_they_were_given(tmp_path):
    """What a spreadsheet would take for a formula is no exception; the documentation says so."""
    units = ['=HYPERLINK("http://evil.example/","x")', "+1", "-1", "@SUM(A1)", "'quoted", 'a,"b"', "007"]
    experiment = create("memory:")
    experiment.ask_many([(unit, {"note": unit}) for unit in units])
    for ending in ("csv", "jsonl", "parquet"):
        experiment.export(tmp_path / f"out.{ending}")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        found = [(row["unit"], json.loads(row["attributes"])["note"]) for row in csv.DictReader(file)]
    assert found == [(unit, unit) for unit in units]
    assert [json.loads(line)["unit"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == units
    assert pl.read_parquet(tmp_path / "out.parquet")["unit"].to_list() == units


def test_a_status_reads_back_from_json():
    clock = StoppedClock()
    with eq.open_store("memory:", clock=clock) as store:
        rules = [eq.Budget(units=2), eq.Precision(half_width=0.1), eq.Deadline(at=clock.now + timedelta(days=1))]
        experiment = create(store, stopping=rules, missing=eq.DropUnit(window_seconds=60))
        experiment.ask_many(["a", "b"])
        data = json.loads(json.dumps(experiment.status().to_dict()))
        assert data["stopping"][0] == {"rule": "budget", "met": True, "now": 2, "goal": 2}
        assert data["stopping"][1] == {"rule": "precision", "met": False, "now": None, "goal": 0.1}
        assert data["missing"].startswith("drop after 1 minute; ")
        assert data["arms"][0]["mean"] is None
        assert data["at"].endswith("+00:00")


def test_intervals_without_a_range_need_thirty_rewards_that_differ():
    experiment = create("memory:", policy=eq.Uniform(), arms=["a", "b"])
    experiment.ask_many([str(i) for i in range(80)])
    experiment.tell_many({str(i): 1.0 if i % 2 else i / 80 for i in range(80)})
    status = experiment.status()
    varied, constant = status.arms
    assert status.interval == "asymptotic"
    assert varied.low < varied.mean < varied.high
    assert constant.half_width is None


def test_arms_are_given_floors_in_three_ways():
    assert checked_arms(["a", "b"], 0.1, None, 0.0) == [("a", 0.1), ("b", 0.1)]
    assert checked_arms(["a", "b"], [0.1, 0.2], "a", 0.3) == [("a", 0.3), ("b", 0.2)]
    assert checked_arms(["a", "b"], {"b": 0.1}, None, 0.0) == [("a", 0.0), ("b", 0.1)]


def test_a_seed_that_is_not_given_is_drawn_and_kept():
    with eq.open_store("memory:") as store:
        seeds = {create(store, f"x{i}", seed=None).configuration.seed for i in range(3)}
        assert len(seeds) == 3


def test_finishing_settles_all_that_is_due_however_many():
    clock = StoppedClock()
    store = eq.open_store("memory:", clock=clock)
    missing = eq.DropUnit(window_seconds=60)
    experiment = eq.Experiment.create(store, "exam", arms=ARMS, policy=eq.Uniform(), missing=missing)
    experiment.ask_many([str(number) for number in range(2500)])
    clock.advance(120)
    experiment.finish()
    assert (experiment.status().n_dropped, experiment.status().n_pending) == (2500, 0)
    experiment.verify()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stopping": 5}, "stopping must hold rules"),
        ({"metadata": [1]}, "metadata must be a dictionary"),
        ({"failure_probability": 0}, r"failure_probability must be in \(0, 1\); got 0"),
        ({"failure_probability": 1}, r"failure_probability must be in \(0, 1\); got 1"),
    ],
)
def test_settings_of_the_wrong_kind_are_told_apart_from_bugs(settings, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.Experiment.create("memory:", "exam", arms=ARMS, policy=eq.Uniform(), **settings)


class TestSharesDuringWarmUp:
    """Shares kept for arms hold from the first decision on: p = f + (1 - sum f) q, with q the rule of the warm-up."""

    @pytest.mark.parametrize("policy", [BALANCE, LeastAssigned(patience=2)], ids=lambda policy: type(policy).__name__)
    def test_the_probability_is_the_share_plus_the_rest_of_the_warm_up(self, policy):
        experiment = create("memory:", policy=policy, floor=0.1, control="none", control_share=0.3, warm_up=20)
        counts, kept = dict.fromkeys(ARMS, 0), {"line": 0.1, "pie": 0.1, "none": 0.3}
        drawn_by_share = 0
        for number in range(100):
            assignment = experiment.ask(f"unit-{number}")
            fewest = min(counts.values())
            if fewest >= 20:
                break
            fair = [arm for arm in ARMS if counts[arm] == fewest]
            chance = 1 / len(fair) if assignment.arm in fair else 0.0
            assert assignment.probability == pytest.approx(kept[assignment.arm] + 0.5 * chance, rel=1e-12)
            assert not (assignment.forced and not chance)
            drawn_by_share += not assignment.forced
            counts[assignment.arm] += 1
        assert min(counts.values()) == 20
        assert drawn_by_share > 10
        experiment.verify()

    def test_the_logged_probability_is_the_true_one(self):
        """Over many seeds, an arm is drawn as often as its probability says, at every step of the warm-up."""
        hits, expected, variance = 0, 0.0, 0.0
        for seed in range(600):
            decider = Decider(configure(seed=seed, warm_up=3), ["active"] * 3, [0.2, 0.1, 0.0])
            stats = eq.ArmStats(3)
            for index in range(5):
                fair = stats.assigned == stats.assigned.min()
                chances = decider.share + (1 - decider.share.sum()) * fair / fair.sum()
                arm, probability, _, _ = decider.decide(stats, index)
                assert probability == pytest.approx(chances[arm], rel=1e-12)
                hits, expected = hits + (arm == 0), expected + chances[0]
                variance += chances[0] * (1 - chances[0])
                stats.assign(arm)
        assert abs(hits - expected) < 4 * math.sqrt(variance)


class TestRebuild:
    def test_other_processes_take_over_what_was_rebuilt(self, url):
        with eq.open_store(url) as here, eq.open_store(url) as there:
            experiment = create(here, who="ann")
            experiment.ask_many(["a", "b", "c"])
            experiment.tell("a", 1.0)
            right = experiment.status().arms
            here.change(
                None, lambda t: t.connection.exec_driver_sql("UPDATE arms SET assigned = 9, name = name || '!'")
            )
            other = eq.Experiment.open(there, "fractions")
            assert other.ask("a").arm == "line!"  # it has read the spoilt table
            assert other.status().arms != right
            assert experiment.rebuild()
            assert other.status().arms == right
            last = list(other.events())[-1]
            assert (last.kind, last.who) == ("rebuilt", "ann")
            other.ask("d")
            other.verify()
            assert not experiment.rebuild()

    def test_a_decision_that_differs_changes_no_table(self):
        """What was decided is believed; if the tables say the same, there is nothing to write."""
        experiment = create("memory:")
        experiment.ask_many(["a", "b", "c"])
        experiment.store.change(
            None, lambda t: t.connection.exec_driver_sql("UPDATE events SET probability = 0.3 WHERE number = 3")
        )
        with pytest.raises(eq.VerificationFailed):
            experiment.verify()
        assert not experiment.rebuild()
        assert experiment.status().n_events == 4


class TestLostAnswers:
    """A connection that is lost while committing makes a store run the work again, on what it has written."""

    @pytest.fixture
    def twice(self, monkeypatch):
        """Run everything that is changed twice, as after a commit whose answer was lost."""
        once = Store.change

        def change(store, *arguments, **options):
            once(store, *arguments, **options)
            return once(store, *arguments, **options)

        return lambda: monkeypatch.setattr(Store, "change", change)

    def test_an_arm_is_added_once(self, twice):
        experiment = create("memory:")
        twice()
        experiment.add_arm("cake", floor=0.1)
        assert [arm.arm for arm in experiment.status().arms] == [*ARMS, "cake"]
        assert experiment.status().n_events == 2

    def test_an_arm_that_is_there_may_be_added_again_if_it_is_the_same(self):
        experiment = create("memory:")
        experiment.add_arm("cake", floor=0.1)
        experiment.add_arm("cake", floor=0.1)
        assert experiment.status().n_events == 2
        with pytest.raises(eq.InvalidInput, match=r"has an arm 'cake' already, with floor 0\.1"):
            experiment.add_arm("cake")
        experiment.pause_arm("cake")
        with pytest.raises(eq.InvalidInput, match="already, and it is paused"):
            experiment.add_arm("cake", floor=0.1)

    def test_an_experiment_is_copied_once(self, url, twice):
        with eq.open_store("memory:") as here, eq.open_store(url) as there:
            experiment = create(here)
            experiment.ask_many(["a", "b"])
            twice()
            copied = experiment.copy_to(there)
            assert copied.verify().n_events == 3
            assert experiment.copy_to(there).verify().n_events == 3  # also on purpose
            copied.ask("c")
            with pytest.raises(eq.ExperimentExists):
                experiment.copy_to(there)
            experiment.ask("c")  # as many events, but at another time
            with pytest.raises(eq.ExperimentExists):
                experiment.copy_to(there)

    def test_a_copy_into_the_same_store_is_refused(self, url):
        with eq.open_store(url) as store, eq.open_store(url) as again:
            experiment = create(store)
            for target in (store, again, url):
                with pytest.raises(eq.ExperimentExists, match="is where 'fractions' is already"):
                    experiment.copy_to(target)


class TestFinishing:
    def test_is_refused_while_rewards_are_held(self):
        clock = StoppedClock()
        with eq.open_store("memory:", clock=clock) as store:
            experiment = create(store, missing=eq.WaitForReward(window_seconds=86_400, hold=True))
            first = experiment.ask("a")
            clock.advance(3600)
            second = experiment.ask("b")
            experiment.ask("c")
            experiment.tell_many({"a": 1.0, "b": 0.0})
            last = second.at + timedelta(days=1)
            with pytest.raises(eq.RewardsHeld, match="holds back 2 rewards") as refused:
                experiment.finish()
            assert f"{last:%Y-%m-%d %H:%M}" in refused.value.message
            assert experiment.status().state == "enrolling"
            clock.now = first.at + timedelta(days=1)
            with pytest.raises(eq.RewardsHeld, match="has 2 units whose window is open and holds back 1 reward;"):
                experiment.finish()
            clock.now = last
            experiment.finish()
            assert experiment.status().n_rewarded == 2
            experiment.verify()

    @pytest.mark.parametrize(
        "missing",
        [
            eq.WaitForReward(window_seconds=60),
            eq.DefaultReward(value=0, window_seconds=60),
            eq.DropUnit(window_seconds=60),
            eq.DropUnit(window_seconds=60, hold=True),
        ],
        ids=repr,
    )
    def test_is_refused_while_a_window_is_open(self, missing):
        clock = StoppedClock()
        with eq.open_store("memory:", clock=clock) as store:
            experiment = create(store, missing=missing)
            last = experiment.ask("a").at + timedelta(seconds=60)
            with pytest.raises(eq.WindowsOpen, match="has 1 unit whose window is open; ") as refused:
                experiment.finish()
            assert not isinstance(refused.value, eq.RewardsHeld)
            assert f"{last:%Y-%m-%d %H:%M:%S} UTC" in refused.value.message
            clock.now = last
            experiment.finish()
            assert experiment.status().state == "finished"
            experiment.verify()

    def test_waits_for_no_unit_that_was_rewarded_and_none_without_a_window(self):
        experiment = create("memory:", missing=eq.DropUnit(window_seconds=60))
        experiment.ask("a")
        experiment.tell("a", 1.0)
        experiment.finish()
        experiment = create("memory:", missing=eq.WaitForReward())
        experiment.ask("a")
        experiment.finish()
        assert experiment.status().n_pending == 1

    def test_counts_what_was_told_in_the_same_batch(self):
        experiment = create("memory:", missing=eq.WaitForReward(window_seconds=60, hold=True))
        *_, answer = experiment.apply([Ask("a"), Tell("a", 1.0), Finish()])
        assert isinstance(answer, eq.RewardsHeld)

    def test_can_be_had_anyway(self):
        experiment = create("memory:", missing=eq.WaitForReward(window_seconds=60, hold=True))
        experiment.ask("a")
        experiment.tell("a", 1.0)
        experiment.finish(anyway=True)
        status = experiment.status()
        assert (status.state, status.n_rewarded, status.n_held) == ("finished", 0, 1)
        experiment.finish()
        experiment.verify()


def test_a_dropped_unit_stays_dropped():
    clock = StoppedClock()
    with eq.open_store("memory:", clock=clock) as store:
        experiment = create(store, missing=eq.DropUnit(window_seconds=60))
        experiment.ask("a")
        clock.advance(61)
        assert not experiment.tell("a", 1.0).counted
        status = experiment.status()
        assert (status.n_dropped, status.n_rewarded) == (1, 0)
        assert status.missing == "drop after 1 minute; late rewards are only logged"


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        (eq.WaitForReward(), "wait for ever"),
        (
            eq.WaitForReward(window_seconds=60, hold=True),
            "wait for ever; overdue after 1 minute; rewards are held until then",
        ),
        (eq.DefaultReward(value=0, window_seconds=60), "count 0 after 1 minute; late rewards replace it"),
        (
            eq.DropUnit(window_seconds=60, hold=True, late="count"),
            "drop after 1 minute; late rewards count; rewards are held until then",
        ),
    ],
)
def test_a_rule_for_missing_rewards_says_all_it_does(missing, words):
    assert missing.describe() == words


class TestStoresThatAreNoLongerThere:
    def test_a_closed_store_in_memory_says_so(self):
        store = eq.open_store("memory:")
        experiment = create(store)
        store.close()
        for use in (lambda: experiment.ask("a"), experiment.status, lambda: eq.Experiment.list(store)):
            with pytest.raises(eq.StoreError, match="is closed"):
                use()

    @pytest.mark.parametrize("what", ["deleted", "replaced"])
    def test_a_file_that_is_gone_takes_no_more_writes(self, tmp_path, what):
        path = tmp_path / "store.db"
        with eq.open_store(f"sqlite:///{path}") as store:
            experiment = create(store)
            experiment.ask("a")
            kept = tmp_path / "kept.db"
            path.rename(kept)
            if what == "replaced":
                with eq.open_store(f"sqlite:///{tmp_path}/another.db") as other:
                    create(other, "another")
                (tmp_path / "another.db").rename(path)
            for _ in range(2):
                with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
                    experiment.ask("b")
                with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
                    create(store, "new")
            store.database.engine.dispose()  # new connections must not make a new file, or use another one
            with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
                experiment.status()
            assert path.exists() == (what == "replaced")
            kept.rename(path)
            assert experiment.ask("b").number == 1
            experiment.verify()

    @pytest.mark.parametrize("what", ["deleted", "replaced"])
    def test_a_log_of_the_file_that_is_gone_gives_no_more_answers(self, tmp_path, what):
        """SQLite would go on in the file without a name, where `verify` finds all in order, and lose it in the end."""
        path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
        with eq.open_store(f"sqlite:///{path}") as store:
            experiment = create(store)
            kept = experiment.ask("a")
            log.unlink()
            if what == "replaced":
                log.touch()
            for _ in range(2):
                with pytest.raises(eq.StoreUnavailable, match=r"store\.db-wal was deleted or replaced") as refused:
                    experiment.ask("b")
                with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
                    create(store, "new")
                for read in (lambda: experiment.unit("a"), experiment.status, experiment.verify):
                    with pytest.raises(eq.StoreUnavailable, match="was deleted or replaced"):
                        read()
            assert "stop every program" in refused.value.hint
        with eq.open_store(f"sqlite:///{path}") as store:
            experiment = eq.Experiment.open(store, experiment.name)
            assert experiment.ask("a").arm == kept.arm
            assert experiment.ask("b").number == 1
            experiment.verify()

    def test_a_store_that_was_closed_makes_a_new_log(self, tmp_path):
        with eq.open_store(f"sqlite:///{tmp_path}/store.db") as store:
            experiment = create(store)
            store.close()
            assert not (tmp_path / "store.db-wal").exists()
            experiment.ask("a")
            experiment.verify()


class TestAddresses:
    def test_options_of_a_file_are_refused(self, tmp_path):
        with pytest.raises(eq.InvalidInput, match=r"takes no options; got \?mode=ro"):
            eq.open_store(f"sqlite:///{tmp_path}/x.db?mode=ro")
        assert not list(tmp_path.iterdir())

    def test_the_home_directory_is_found(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        with eq.open_store("sqlite:///~/x.db") as store:
            assert store.url == f"sqlite:///{tmp_path}/x.db"
        assert (tmp_path / "x.db").exists()


class TestExportTargets:
    def test_a_folder_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(eq.InvalidInput, match=r"the folder .*/nowhere does not exist") as refused:
            create("memory:").export(tmp_path / "nowhere" / "out.csv")
        assert "partial" not in str(refused.value)
        (tmp_path / "out.csv").mkdir()
        with pytest.raises(eq.InvalidInput, match=r"out\.csv is a folder"):
            create("memory:").export(tmp_path / "out.csv")

    def test_an_open_file_needs_a_format_and_the_right_kind(self):
        experiment = create("memory:")
        experiment.ask("a")
        with pytest.raises(eq.InvalidInput, match="csv, jsonl or parquet"):
            experiment.export(io.StringIO())
        with pytest.raises(eq.InvalidInput, match="opened as text"):
            experiment.export(io.BytesIO(), "csv")
        with pytest.raises(eq.InvalidInput, match="opened as binary"):
            experiment.export(io.StringIO(), "parquet")
        with pytest.raises(eq.InvalidInput, match="a path or an open file; got 5"):
            experiment.export(5, "csv")
        target = io.BytesIO()
        assert experiment.export(target, "parquet") == 1
        target.seek(0)
        assert pl.read_parquet(target)["unit"].to_list() == ["a"]


def test_a_default_outside_the_range_is_named():
    missing = eq.DefaultReward(value=5, window_seconds=60)
    with pytest.raises(eq.InvalidInput, match=r"missing.value must be in \[0, 1\].*got 5"):
        create("memory:", missing=missing, reward_range=(0, 1))


@pytest.mark.parametrize("now", [datetime(2027, 1, 1), "2027-01-01", None])
def test_a_clock_without_a_zone_is_refused(now):
    with eq.open_store("memory:", clock=lambda: now) as store, pytest.raises(eq.InvalidInput, match="clock must"):
        create(store)


def test_attributes_can_be_given_to_many_at_once():
    experiment = create("memory:")
    experiment.ask_many([("a", {"class": "4b"}), "b", ("c", None)])
    experiment.ask_many({"d": {"class": "5c"}, "e": None})
    details = [event.details.get("attributes") for event in experiment.events() if event.kind == "assigned"]
    assert details == [{"class": "4b"}, None, None, {"class": "5c"}, None]
    for units in ([("a", "b", "c")], {"f": 1.0}):
        with pytest.raises(eq.InvalidInput):
            experiment.ask_many(units)


@pytest.mark.parametrize("text", [" ", "\u2003", " a", "a ", "a\u00a0"])
def test_blanks_around_names_are_refused(text):
    experiment = create("memory:")
    for use in (
        lambda: experiment.ask(text),
        lambda: experiment.add_arm(text),
        lambda: create(experiment.store, text),
        lambda: create(experiment.store, "new", arms=["a", text]),
    ):
        with pytest.raises(eq.InvalidInput, match=r"must not (begin or end with|be) blanks?"):
            use()
    assert experiment.ask("a b").new


def test_what_experiments_return_can_be_named():
    experiment = create("memory:")
    experiment.tell_many({one.unit: float(one.number) for one in experiment.ask_many(str(i) for i in range(9))})
    assert isinstance(experiment.history(), eq.experiment.History)
    assert isinstance(experiment.what_if(0.9), eq.experiment.WhatIf)
    assert isinstance(experiment.verify(), eq.experiment.Verification)


@pytest.mark.parametrize("dots", [".", ".."])
def test_names_that_no_url_can_hold_are_refused_for_what_is_new_and_stay_readable(tmp_path, monkeypatch, dots):
    url, told = f"sqlite:///{tmp_path}/x.db", r"must not be \. or \.\., which no URL can hold; got '\.+'$"
    with monkeypatch.context() as earlier:
        earlier.setattr("equipoise.experiment.names._DOTS", frozenset())
        with eq.open_store(url) as store:
            old = eq.Experiment.create(store, dots, arms=[dots, "b"], policy=eq.Uniform(), seed=1)
            arm = old.ask(dots).arm
    with eq.open_store(url) as store:
        old = eq.Experiment.open(store, dots)
        assert old.ask(dots).arm == arm and old.tell(dots, 0.5).new and old.unit(dots).reward == 0.5
        old.pause_arm(dots)
        assert old.verify().n_decisions == 1 and old.events_page(0, 10)[1].unit == dots
        new = eq.Experiment.create(store, "new", arms=["a", "b"], policy=eq.Uniform(), seed=1)
        for refused in (
            lambda: new.ask(dots),
            lambda: new.ask_many(["ada", dots]),
            lambda: new.add_arm(dots),
            lambda: eq.Experiment.create(store, "newer", arms=["a", dots], policy=eq.Uniform()),
            lambda: eq.Experiment.create(store, dots, arms=["a"], policy=eq.Uniform()),
        ):
            with pytest.raises(eq.InvalidInput, match=told):
                refused()
        assert new.status().n_assigned == 0 and len(new.describe()["arms"]) == 2
        assert new.ask("...").new
