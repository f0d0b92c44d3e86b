"""Sums by hour beside the log: equal to sums over the log, wherever it is cut and whoever is killed meanwhile."""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import rollup_worker
from endurance import short_and_full
from hypothesis import given, settings
from hypothesis import strategies as st

import equipoise as eq
from equipoise.experiment import checkpoints, rollup
from equipoise.store.schema import ROLLUP_COLUMNS, microseconds

START = datetime(2026, 1, 1, tzinfo=UTC)
WINDOW_HOURS = 5
DELAYS = {"1h": 1, "6h": 6, "1d": 24, "3d": 72, "7d": 168, "window": WINDOW_HOURS}

rules = st.sampled_from(
    [
        eq.WaitForReward(),
        *(
            kind(window_seconds=3600 * WINDOW_HOURS, hold=hold, **more)
            for kind, more in ((eq.DefaultReward, {"value": -1.5}), (eq.DropUnit, {}), (eq.WaitForReward, {}))
            for hold in (False, True)
        ),
        eq.DefaultReward(window_seconds=3600 * WINDOW_HOURS, value=2.0, late="ignore"),
    ]
)
steps = st.lists(
    st.tuples(
        st.sampled_from(["ask", "tell", "tell", "correct", "withdraw", "settle", "erase", "pause", "arm"]),
        st.integers(0, 9),
        st.sampled_from([0.0, 0.1, 1.0, -7.25, 1e17, 1e-3]),
        st.sampled_from([0, 0, 1, 20, 70, 400, 4000, -30]),
    ),
    max_size=60,
)


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def play(store, clock, rule, history, **more):
    """Play a history of operations; those that are refused leave no trace."""
    settings = {"policy": eq.ForcingBalance(reward_weight=0.6), "seed": 3, "missing": rule} | more
    experiment = eq.Experiment.create(store, "one", arms=["a", "b", "c"], **settings)
    for what, unit, reward, minutes in history:
        clock.now = max(clock.now + timedelta(minutes=minutes), START)
        unit = f"unit-{unit}"
        try:
            if what == "ask":
                experiment.ask_many([unit, f"{unit}-{clock.now.isoformat()}"])
            elif what == "tell":
                experiment.tell(unit, reward)
            elif what == "correct":
                experiment.correct(unit, reward, "misread")
            elif what == "withdraw":
                experiment.withdraw(unit, "asked to")
            elif what == "erase":
                experiment.erase(unit)
            elif what == "settle":
                experiment.settle()
            elif what == "pause":
                experiment.pause_arm("b")
            elif experiment.status().n_assigned < 30:
                experiment.add_arm(f"arm-{len(experiment.describe()['arms'])}")
        except eq.EquipoiseError:
            pass
    return experiment


def sums_of_log(experiment):
    """Add up the events one by one, as plainly as can be."""
    names = [arm["arm"] if "arm" in arm else arm["name"] for arm in experiment.describe()["arms"]]
    cap = experiment.configuration.reward_cap
    counted = (lambda reward: reward) if cap is None else (lambda reward: min(reward, cap))
    has_window = experiment.configuration.missing.window_seconds is not None
    found = defaultdict(lambda: defaultdict(list))
    assigned, rewarded = {}, set()
    for event in experiment.events():
        if event.unit is None:
            continue
        here = found[microseconds(event.at) // rollup.HOUR, names.index(event.arm)]
        if event.kind == "assigned":
            assigned[event.unit] = event.at
            here["inverses"].append(1 / event.probability)
            here["inverse_squares"].append(1 / event.probability**2)
        if event.kind in ("assigned", "rewarded", "corrected", "expired", "withdrawn"):
            here[event.kind].append(1)
        if event.counted:
            here["values"].append(counted(event.reward))
        if event.replaced is not None:
            here["gone"].append(counted(event.replaced))
        cohort = found[microseconds(assigned[event.unit]) // rollup.HOUR, names.index(event.arm)]
        if event.kind == "rewarded":
            rewarded.add(event.unit)
            delay = event.at - assigned[event.unit]
            cohort["cohort_rewarded"].append(1)
            for name, hours in DELAYS.items():
                limit = timedelta(hours=hours) if name != "window" else timedelta(hours=hours, microseconds=-1)
                if delay <= limit or (name == "window" and not has_window):
                    cohort[f"cohort_{name}"].append(1)
        if event.kind == "expired":
            cohort["cohort_expired"].append(1)
        if event.kind == "withdrawn":
            cohort["cohort_withdrawn"].append(1)
            if event.unit not in rewarded:
                cohort["cohort_silent"].append(1)
    return found


def check_against_log(experiment, rows):
    expected = sums_of_log(experiment)
    values = [value for cell in expected.values() for value in cell["values"]]
    first = next((e for e in experiment.events() if e.counted), None)
    cap = experiment.configuration.reward_cap
    centre = 0.0 if first is None else first.reward if cap is None else min(first.reward, cap)
    size = max([1.0, *map(abs, values)])
    assert {row[:2] for row in rows} == set(expected)
    for row in rows:
        cell = dict(zip(ROLLUP_COLUMNS, row, strict=True))
        wanted = expected[row[:2]]
        for name in rollup.COUNTS:
            if name.endswith("_event"):
                continue
            key = {"counted": "values", "removed": "gone"}.get(name, name)
            assert cell[name] == len(wanted[key]), name
        for name in ("inverses", "inverse_squares"):
            assert math.isclose(cell[name], math.fsum(wanted[name]), rel_tol=1e-12)
        for power, name in enumerate(("sums", "squares", "cubes", "fourths"), 1):
            right = math.fsum((value - centre) ** power for value in wanted["values"])
            assert math.isclose(cell[name], right, rel_tol=1e-9, abs_tol=1e-9 * (2 * size) ** power)
        for power, name in enumerate(("removed_sums", "removed_squares"), 1):
            right = math.fsum((value - centre) ** power for value in wanted["gone"])
            assert math.isclose(cell[name], right, rel_tol=1e-9, abs_tol=1e-9 * (2 * size) ** power)
        for name, best in (("lowest", min), ("highest", max)):
            assert cell[name] == (best(wanted["values"]) if wanted["values"] else None)
    events = {event.number: event for event in experiment.events()}
    for row in rows:
        cell = dict(zip(ROLLUP_COLUMNS, row, strict=True))
        for name in ("lowest", "highest"):
            if cell[name] is not None:
                reward = events[cell[f"{name}_event"]].reward
                assert cell[name] == (reward if cap is None else min(reward, cap))


def rows_now(experiment):
    with checkpoints.kept_rollup(experiment.store, experiment.number, experiment.name) as kept:
        assert kept.is_complete
        return kept.rollup.all_rows()


def forget(store):
    """Forget what this process knows, as if it had just begun."""
    store.rollups.clear()


@settings(max_examples=60)
@given(rule=rules, history=steps, cuts=st.integers(1, 7), cap=st.sampled_from([None, 5.0]), reread=st.booleans())
def test_sums_equal_the_log_under_any_slicing(rule, history, cuts, cap, reread):
    clock = Clock()
    with eq.open_store("memory:", clock=clock) as store, pytest.MonkeyPatch.context() as patch:
        experiment = play(store, clock, rule, history, reward_cap=cap)
        whole = rows_now(experiment)
        check_against_log(experiment, whole)
        patch.setattr(checkpoints, "SLICE_EVENTS", cuts)
        patch.setattr(checkpoints.time, "sleep", lambda _: None)
        for least in (10**9, 1):  # in memory alone, then saved after every slice
            patch.setattr(checkpoints, "LEAST_EVENTS", least)
            patch.setattr(checkpoints, "SAVE_SECONDS", 0.0)
            forget(store)
            assert rows_now(experiment) == whole
            if reread:
                forget(store)
            assert rows_now(experiment) == whole
        experiment.verify()
        timeline = experiment.timeline("hour")
        check_timeline(experiment, timeline)


def check_timeline(experiment, timeline):
    status = experiment.status()
    assert timeline.assigned.sum(axis=0).tolist() == [arm.assigned for arm in status.arms]
    assert timeline.assigned_so_far[-1].tolist() == [arm.assigned for arm in status.arms]
    assert timeline.counted_so_far[-1].tolist() == [arm.rewarded for arm in status.arms]
    size = max([1.0, *(abs(arm.mean or 0) for arm in status.arms)])
    for place, arm in enumerate(status.arms):
        if arm.rewarded:
            assert math.isclose(timeline.mean[-1, place], arm.mean, rel_tol=1e-9, abs_tol=1e-6 * size)
    assert (timeline.missing >= 0).all()
    assert (timeline.matured <= timeline.assigned).all()
    assert (timeline.rewarded_within <= timeline.old_enough).all()
    assert (timeline.rewarded.sum(), timeline.answered.sum()) == (timeline.rewarded.sum(), timeline.rewarded.sum())


def long_history(store, clock, n=150):
    rng = Random(1)
    units = range(n)
    history = [("ask", unit, 0.0, rng.choice([0, 10, 50])) for unit in units]
    for _ in units:
        at = rng.randrange(len(history))
        history.insert(at, ("tell", rng.randrange(n), rng.random(), rng.choice([0, 5, 200])))
        history.insert(at, ("correct", rng.randrange(n), rng.random(), 1))
        history.insert(at, ("withdraw", rng.randrange(n), 0.0, 1))
    rule = eq.DefaultReward(window_seconds=3600 * WINDOW_HOURS, value=0.5, hold=True)
    return play(store, clock, rule, history)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    return request.getfixturevalue("postgresql_url")


def test_what_is_saved_is_read_by_the_next_process(url, monkeypatch):
    clock = Clock()
    with eq.open_store(url, clock=clock) as store:
        experiment = long_history(store, clock)
        monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
        rows = rows_now(experiment)
        check_against_log(experiment, rows)
        last = experiment.status().n_events
    with eq.open_store(url, clock=clock) as store:
        monkeypatch.setattr(checkpoints, "read_slice", None)  # nothing needs to be read from the log
        experiment = eq.Experiment.open(store, "one")
        assert rows_now(experiment) == rows
        assert experiment.timeline().event == last
        experiment.verify()
        assert not experiment.rebuild()


def test_verify_finds_wrong_sums_and_rebuild_restores_them(url, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    with eq.open_store(url, clock=clock) as store, eq.open_store(url, clock=clock) as other:
        experiment = long_history(store, clock, 30)
        rows = rows_now(experiment)
        for statement, what in (
            ("UPDATE rollups SET assigned = assigned + 1 WHERE experiment = ? AND arm = 1", "arm 1 in the hour of"),
            ("DELETE FROM rollups WHERE experiment = ? AND arm = 0", "arm 0 in the hour of"),
            ("UPDATE checkpoints SET event = event - 1 WHERE experiment = ?", "that the sums by hour reach"),
            ("UPDATE checkpoints SET last_assigned_at = 5 WHERE experiment = ?", "the checkpoint"),
        ):
            store.change(experiment.number, lambda transaction, s=statement: transaction.execute(s, experiment.number))
            again = eq.Experiment.open(other, "one")
            forget(other)
            if "event - 1" not in statement:  # which a reader would see and mend
                again.timeline()
            with pytest.raises(eq.VerificationFailed, match=what):
                experiment.verify()
            assert experiment.rebuild()
            experiment.verify()
            assert rows_now(again) == rows_now(experiment) == rows
        experiment.verify()


def test_sums_of_another_log_are_not_used(tmp_path, monkeypatch):
    """A store that is restored from a backup has other events from there on."""
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    clock = Clock()
    url = f"sqlite:///{tmp_path}/store.db"
    with eq.open_store(url, clock=clock) as store:
        experiment = long_history(store, clock, 20)
        kept = checkpoints.KeptRollup(experiment.number, "one")
        kept.catch_up(store, None)
        before = rows_now(experiment)
        kept.rollup.mark = kept.rollup.mark._replace(hash=b"of another log")
        kept.catch_up(store, None)
        assert kept.rollup.all_rows() == before
        store.change(
            experiment.number,
            lambda transaction: transaction.execute("UPDATE checkpoints SET hash = ?", b"of another log"),
        )
        forget(store)
        assert rows_now(experiment) == before
        experiment.ask("one-more")
        assert rows_now(experiment) != before
        experiment.verify()


def test_one_process_saves_and_the_others_keep_what_they_know_in_memory(url, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    with eq.open_store(url, clock=clock) as one, eq.open_store(url, clock=clock) as two:
        experiment = long_history(one, clock, 20)
        rows = rows_now(experiment)
        saved = one.read(lambda transaction: transaction.checkpoint(experiment.number))
        monkeypatch.setattr(checkpoints, "_HOLDER", "somebody else")
        again = eq.Experiment.open(two, "one")
        again.ask("one-more")
        more = rows_now(again)
        assert more != rows
        assert one.read(lambda transaction: transaction.checkpoint(experiment.number)) == saved
        clock.now += timedelta(seconds=checkpoints.SAVE_SECONDS)
        again.ask("another")
        two.rollups.clear()
        rows_now(again)
        assert one.read(lambda transaction: transaction.checkpoint(experiment.number)).event == saved.event + 2
        assert rows_now(experiment) == rows_now(again)
        experiment.verify()


def test_a_store_that_cannot_be_written_is_read_all_the_same(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    with eq.open_store("memory:", clock=clock) as store:
        experiment = long_history(store, clock, 10)
        attempts = []

        def refuse(*_args, **_more):
            attempts.append(1)
            raise eq.StoreUnavailable("a standby")

        monkeypatch.setattr(store, "change", refuse)
        rows = rows_now(experiment)
        rows_now(experiment)
        assert len(attempts) == 1
        check_against_log(experiment, rows)


def test_deleting_an_experiment_deletes_its_sums(url, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    with eq.open_store(url) as store:
        experiment = eq.Experiment.create(store, "one", arms=["a", "b"], policy=eq.Uniform())
        experiment.ask_many(["x", "y"])
        experiment.timeline()
        count = (
            "SELECT (SELECT count(*) FROM rollups), (SELECT count(*) FROM checkpoints), (SELECT count(*) FROM leases)"
        )
        assert tuple(store.read(lambda transaction: transaction.execute(count))[0])[1:] == (1, 1)
        experiment.delete()
        assert tuple(store.read(lambda transaction: transaction.execute(count))[0]) == (0, 0, 0)
        with pytest.raises(eq.StoreChanged):
            experiment.timeline()


def test_a_copy_takes_the_sums_along(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    clock = Clock()
    with eq.open_store("memory:", clock=clock) as store, eq.open_store("memory:", clock=clock) as other:
        experiment = long_history(store, clock, 10)
        rows = rows_now(experiment)
        again = experiment.copy_to(other)
        monkeypatch.setattr(checkpoints, "read_slice", None)
        assert rows_now(again) == rows
        again.verify()


def test_an_interruption_at_any_line_leaves_the_sums_right(tmp_path, monkeypatch):
    """Ctrl-C before each line of the two modules in turn; the next read is right, and so is what is saved."""
    monkeypatch.setattr(checkpoints, "LEAST_EVENTS", 1)
    monkeypatch.setattr(checkpoints, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "SLICE_EVENTS", 25)
    monkeypatch.setattr(checkpoints.time, "sleep", lambda _: None)
    clock = Clock()
    with eq.open_store("memory:", clock=clock) as store:
        experiment = long_history(store, clock, 12)
        right = rows_now(experiment)
        files = {checkpoints.__file__, rollup.__file__}
        line, interrupted = 0, True
        while interrupted:
            line += 29 if line > 60 else 3  # the later slices do what the first did
            store.change(experiment.number, lambda transaction: transaction.forget_rollups(experiment.number))
            forget(store)
            interrupted = interrupt_at(line, files, lambda: rows_now(experiment))
            assert rows_now(experiment) == right
            experiment.verify()
        assert line > 200


def interrupt_at(line, files, work):
    """Call a function and interrupt it before some line of these files; return whether it came that far."""
    left = line

    def trace(frame, what, _):
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        if what == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    try:
        sys.settrace(trace)
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("kills", short_and_full(2, 12))
def test_processes_killed_while_they_save_leave_the_sums_right(url, kills):
    clock = Clock()
    rng = Random(5)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rollup_worker"])
    with eq.open_store(url, clock=clock) as store:
        experiment = long_history(store, clock, 150)
        right = rows_now(experiment)
        reached = set()
        for _ in range(kills):
            working = context.Event()
            process = context.Process(target=rollup_worker.add_up, args=(url, "one", working))
            process.start()
            assert working.wait(60)
            time.sleep(rng.uniform(0, 0.2))
            process.kill()
            process.join()
            checkpoint = store.read(lambda transaction: transaction.checkpoint(experiment.number))
            reached.add(0 if checkpoint is None else checkpoint.event)
            experiment.verify()
            forget(store)
            assert rows_now(experiment) == right
        assert kills == 2 or len(reached) > 2  # killed in different places
