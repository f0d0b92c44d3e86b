"""Simulate clients, processes, clocks, a network and a store with faults, all of it driven by one seed.

The store is a real one, on an SQLite file. Everything else is simulated on one thread: a process is a `Store` with its
caches, a crash throws it away, a message is an entry in a queue. So a seed gives the same history every time, and a
history that goes wrong can be shrunk step by step.
"""

from __future__ import annotations

import heapq
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import sqlalchemy as sa
from history_checker import Call, History, Loss, Seen, what_is_left

import equipoise as eq
from equipoise.experiment.backends import StoreBackend
from equipoise.store import Store, sqlite, store

N_PROCESSES = 3
MOST_ATTEMPTS = 2
UNITS = tuple("abcdef")
WINDOW = 60.0
START = datetime(2027, 1, 1, tzinfo=UTC)

BEFORE_COMMIT, AFTER_COMMIT = "crash before the commit", "crash after the commit"
DISK_ERROR, LOST_CONNECTION, SLOW_COMMIT = "disk error", "connection lost after the commit", "slow commit"
STORE_FAULTS = (BEFORE_COMMIT, AFTER_COMMIT, DISK_ERROR, LOST_CONNECTION, SLOW_COMMIT)
"""What may happen to a transaction."""
NETWORK, CLOCKS, RESTARTS = "network", "clocks", "restarts"
PUT_BACK_STOPPED, PUT_BACK_RUNNING = "backup put back while stopped", "backup put back while running"
"""Putting a backup back: with every process stopped, as documented, or under processes that keep their caches."""
ALL_FAULTS = frozenset({*STORE_FAULTS, NETWORK, CLOCKS, RESTARTS, PUT_BACK_STOPPED, PUT_BACK_RUNNING})

POLICIES = (
    eq.ForcingBalance(reward_weight=0.6),
    eq.ForcingBalance(reward_weight=0.6, tracking="windowed"),
    eq.EpsilonGreedy(exploration=0.3),
)
RULES = (
    eq.WaitForReward(),
    eq.WaitForReward(window_seconds=WINDOW, hold=True),
    eq.DefaultReward(window_seconds=WINDOW, value=0.5),
    eq.DropUnit(window_seconds=WINDOW, late="ignore"),
)


class Step(NamedTuple):
    """One thing that happens: a call with its faults, or something that happens to the world."""

    verb: str
    sent: tuple[tuple[str, float | None], ...] = ()
    process: int = 0
    fault: str | None = None
    delay: int = 0
    """Steps until the request arrives, and again until the answer does."""
    again: int | None = None
    """Steps until the network delivers a copy of the request."""
    lost_answers: int = 0
    seconds: float = 0.0
    """How far a clock jumps."""

    @property
    def plain(self) -> Step:
        """The same call without any fault."""
        return Step(self.verb, self.sent, self.process, seconds=self.seconds)


@dataclass(frozen=True)
class Scenario:
    """A history to play: settings of the experiment, and steps."""

    policy: int
    rule: int
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        default = Step("")._asdict()
        lines = [
            f"  {step.verb} "
            + ", ".join(f"{k}={v!r}" for k, v in step._asdict().items() if k != "verb" and v != default[k])
            for step in self.steps
        ]
        return "\n".join([f"{POLICIES[self.policy]!r}, {RULES[self.rule]!r}", *lines])


def scenario(seed: int, faults: frozenset[str] = ALL_FAULTS, n_steps: int = 14) -> Scenario:
    """Draw a scenario."""
    rng = Random(seed)
    corrections = count(100)
    steps = tuple(_drawn_step(rng, faults, corrections) for _ in range(n_steps))
    return Scenario(rng.randrange(len(POLICIES)), rng.randrange(len(RULES)), steps)


def create_template(path: Path) -> None:
    """Create a store with an experiment for every policy and rule; each history begins with a copy."""
    with eq.open_store(f"sqlite:///{path}", clock=lambda: START) as opened:
        for policy in range(len(POLICIES)):
            for rule in range(len(RULES)):
                eq.Experiment.create(
                    opened,
                    _name(policy, rule),
                    arms=["line", "pie", "none"],
                    policy=POLICIES[policy],
                    missing=RULES[rule],
                    seed=rule,
                    warm_up=1,
                )


def _name(policy: int, rule: int) -> str:
    return f"policy {policy}, rule {rule}"


def _drawn_step(rng: Random, faults: frozenset[str], corrections: Iterator[int]) -> Step:
    process = rng.randrange(N_PROCESSES)
    world = [("jump", CLOCKS), ("restart", RESTARTS), ("snapshot", None), ("snapshot", None)]
    world += [("restore", PUT_BACK_STOPPED), ("restore in place", PUT_BACK_RUNNING)]
    if rng.random() < 0.3:
        verb, fault = rng.choice(world)
        if fault in faults or (verb == "snapshot" and faults & {PUT_BACK_STOPPED, PUT_BACK_RUNNING}):
            return Step(verb, process=process, seconds=rng.choice([-100.0, -1.0, 10.0, WINDOW, 500.0]))
    verb = rng.choice(["ask"] * 4 + ["ask_many"] * 2 + ["tell"] * 4 + ["correct", "settle", *["unit"] * 4, "status"])
    sent: tuple[tuple[str, float | None], ...] = ()
    if verb == "ask_many":
        sent = tuple((unit, None) for unit in rng.sample(UNITS, rng.randint(2, 4)))
    elif verb not in ("settle", "status"):
        unit = rng.choice(UNITS)
        # Every client reports the same reward of a unit; no two corrections are the same.
        sent = ((unit, {"tell": reward_of(unit), "correct": float(next(corrections))}.get(verb)),)
    step = Step(verb, sent, process)
    if rng.random() < 0.4:
        step = step._replace(fault=rng.choice([fault for fault in STORE_FAULTS if fault in faults] or [None]))
    if NETWORK in faults and rng.random() < 0.4:
        again = rng.choice([None, None, 1, 5])
        step = step._replace(delay=rng.choice([0, 1, 3]), again=again, lost_answers=rng.choice([0, 0, 1, 2]))
    return step


def reward_of(unit: str) -> float:
    """Return the reward of a unit."""
    return UNITS.index(unit) / 4


class Crash(BaseException):
    """The process ends here; nothing of it runs on."""


class LostConnection(Exception):
    """The server committed, and the answer did not arrive."""


class FaultyDatabase(sqlite.FileDatabase):
    """An SQLite file whose next transaction meets a fault."""

    fault: str | None = None

    def __init__(self, path: Path, meanwhile: Callable[[], None]) -> None:
        super().__init__(sa.make_url(f"sqlite:///{path}"), path)
        self._meanwhile = meanwhile
        # These histories kill processes, not the machine, so nothing has to reach the disk.
        sa.event.listen(self.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))

    @contextmanager
    def writing(self, experiment: int | None, *more: Any) -> Iterator[sqlite.SQLiteTransaction]:
        """Meet the fault shortly before or after the commit."""
        with super().writing(experiment, *more) as transaction:
            yield transaction
            fault, self.fault = self.fault, None
            if fault == BEFORE_COMMIT:
                raise Crash
            if fault == DISK_ERROR:
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR
                raise error
            if fault == SLOW_COMMIT:
                self._meanwhile()
        if fault == AFTER_COMMIT:
            raise Crash
        if fault == LOST_CONNECTION:
            raise LostConnection

    def failure(self, error: Exception) -> tuple[eq.StoreError | None, bool]:
        """Retry after a lost connection, as PostgreSQL does."""
        if isinstance(error, LostConnection):
            return eq.StoreUnavailable("connection lost", hint="try again"), True
        return super().failure(error)


class Process:
    """A program that uses the store, with caches and a clock of its own."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.ahead = 0.0
        self.busy = False
        self.start()

    def start(self) -> None:
        """Open the store."""
        self.database = FaultyDatabase(self._simulation.path, self._simulation.meanwhile)
        self.store = Store(self.database, lambda: self._simulation.now() + timedelta(seconds=self.ahead))
        self.experiment: eq.Experiment | None = None

    def stop(self) -> None:
        """Forget everything."""
        self.store.close()

    def call(self, call: Call, fault: str | None) -> dict[str, Any]:
        """Answer a call; the result is what becomes known of it."""
        if self.experiment is None:
            self.experiment = self._simulation.experiment(self.store)
        self.database.fault, self.busy = fault, True
        try:
            return _answer(self.experiment, call)
        finally:
            self.database.fault, self.busy = None, False


def _answer(experiment: eq.Experiment, call: Call) -> dict[str, Any]:
    units = [unit for unit, _ in call.sent]
    reward = call.sent[0][1] if call.sent else None
    if call.verb == "ask":
        found = experiment.ask_many(units) if len(units) > 1 else [experiment.ask(units[0])]
        return {"seen": tuple(Seen(one.unit, one.arm, None, one.number, one.at, one.new) for one in found)}
    if call.verb in ("tell", "correct"):
        arguments = (units[0], reward) if call.verb == "tell" else (units[0], reward, "misread")
        told = getattr(experiment, call.verb)(*arguments)
        return {"seen": (Seen(told.unit, told.arm, told.reward),)}
    if call.verb == "unit":
        unit = experiment.unit(units[0])
        return {"seen": (Seen(units[0]) if unit is None else Seen(unit.unit, unit.arm, unit.reward),)}
    if call.verb == "settle":
        experiment.settle()
        return {}
    return {"n_assigned": experiment.status().n_assigned}


class Message(NamedTuple):
    """A request on its way: the number of its call, and its step."""

    call: int
    step: Step
    attempt: int = 0


@cache
def _numbers(template: Path) -> dict[str, int]:
    with closing(sqlite3.connect(template)) as connection:
        return dict(connection.execute("SELECT name, id FROM experiments"))


class Simulation:
    """The world of one history."""

    def __init__(self, scenario: Scenario, template: Path, directory: Path) -> None:
        self.scenario = scenario
        self.path, self._backup = directory / "store.db", directory / "backup.db"
        for path in directory.glob("*.db*"):
            path.unlink()
        shutil.copy(template, self.path)
        self._template = template
        self._tick = count(1)
        self._order = count()
        self._queue: list[tuple[int, int, Callable[[], None] | Step | Message]] = []
        self._step = 0
        self._seconds = 0.0
        self.calls: list[Call] = []
        self._losses: list[Loss] = []
        self._copied: int | None = None
        self.processes = [Process(self) for _ in range(N_PROCESSES)]

    def experiment(self, store: Store) -> eq.Experiment:
        """Return the scenario's experiment; its number is known, as looking up its name takes longer than all else."""
        name = _name(self.scenario.policy, self.scenario.rule)
        return eq.Experiment(StoreBackend(store, _numbers(self._template)[name], name))

    def now(self) -> datetime:
        """The time, as a clock shows it that is right."""
        return START + timedelta(seconds=self._seconds)

    def sleep(self, seconds: float) -> None:
        """Let time pass; at least a while, so that nobody waits for the lock of a file in many small naps."""
        self._seconds += max(seconds, 25.0)

    def play(self) -> History:
        """Play all steps and what follows from them; return what clients saw, and what is left."""
        for number, step in enumerate(self.scenario.steps):
            self._schedule(number, step)
        # Sleeping and waiting go by the simulated time, too.
        simulated = SimpleNamespace(sleep=self.sleep, monotonic=lambda: self._seconds)
        with mock.patch.object(store, "time", simulated), mock.patch.object(sqlite, "time", simulated):
            while self._queue:
                self._happen()
            for process in self.processes:
                process.stop()
            left = Process(self)
            log, arms, verify = what_is_left(self.experiment(left.store))
            left.stop()
        return History(tuple(self.calls), log, arms, verify, tuple(self._losses))

    def _schedule(self, at: int, what: Callable[[], None] | Step | Message) -> None:
        heapq.heappush(self._queue, (at, next(self._order), what))

    def _happen(self, *, only_calls: bool = False) -> None:
        """Let the next thing happen; while a process is in a transaction, only calls of others and their answers."""
        at, order, what = heapq.heappop(self._queue)
        if only_calls and isinstance(what, Step) and not hasattr(eq.Experiment, what.verb):
            heapq.heappush(self._queue, (at, order, what))
            return
        self._step = max(self._step, at)
        self._seconds += 1.0
        if isinstance(what, Step):
            if hasattr(eq.Experiment, what.verb):
                self._send(what)
            else:
                getattr(self, what.verb.replace(" ", "_"))(what)
        elif isinstance(what, Message):
            self._deliver(what)
        else:
            what()

    def meanwhile(self) -> None:
        """Let others go on while a process commits."""
        for _ in range(4):
            if self._queue:
                self._happen(only_calls=True)

    # Calls

    def _send(self, step: Step) -> None:
        number = len(self.calls)
        verb = "ask" if step.verb == "ask_many" else step.verb
        self.calls.append(Call(verb, step.sent, next(self._tick)))
        if step.again is not None:
            self._change(number, deliveries=2)
            self._schedule(self._step + step.again, Message(number, step._replace(fault=None), MOST_ATTEMPTS))
        message = Message(number, step)
        if step.delay:
            self._schedule(self._step + step.delay, message)
        else:
            self._deliver(message)

    def _deliver(self, message: Message) -> None:
        number, step, attempt = message
        process = self.processes[(step.process + attempt) % N_PROCESSES]
        if process.busy:
            self._schedule(self._step + 1, message)
            return
        try:
            answer = process.call(self.calls[number], step.fault if attempt == 0 else None)
        except Crash:
            process.stop()
            process.start()
            self._try_again(message)
        except eq.StoreUnavailable:
            self._try_again(message)
        except (eq.EquipoiseError, sa.exc.SQLAlchemyError, sqlite3.Error) as error:
            self._answer(message, {"error": type(error).__name__})
        else:
            self._answer(message, answer)

    def _try_again(self, message: Message) -> None:
        """Send the request again, unless that was tried often enough: then nobody knows what became of it."""
        number, _, attempt = message
        if attempt < MOST_ATTEMPTS:
            self._change(number, deliveries=self.calls[number].deliveries + 1)
            self._schedule(self._step + 1, message._replace(attempt=attempt + 1))

    def _answer(self, message: Message, answer: dict[str, Any]) -> None:
        number, step, attempt = message
        if attempt < step.lost_answers:
            self._try_again(message)
        elif step.delay:
            self._schedule(self._step + step.delay, lambda: self._receive(number, answer))
        else:
            self._receive(number, answer)

    def _receive(self, number: int, answer: dict[str, Any]) -> None:
        """Take the first answer to a call; later ones, to its copies, go unread."""
        if self.calls[number].returned == float("inf"):
            self._change(number, returned=next(self._tick), **answer)

    def _change(self, number: int, **what: Any) -> None:
        self.calls[number] = replace(self.calls[number], **what)

    # The world

    def jump(self, step: Step) -> None:
        """Let one process's clock jump."""
        self.processes[step.process].ahead += step.seconds

    def restart(self, step: Step) -> None:
        """End a process and start it again."""
        self.processes[step.process].stop()
        self.processes[step.process].start()

    def snapshot(self, step: Step) -> None:
        """Make a backup."""
        self._copy(self.path, self._backup)
        self._copied = next(self._tick)

    def restore(self, step: Step) -> None:
        """Put the last backup back, with every process stopped meanwhile."""
        if self._copied is not None:
            for process in self.processes:
                process.stop()
            for path in self.path.parent.glob("store.db*"):
                path.unlink()
            shutil.copy(self._backup, self.path)
            self._lose(self._copied)
            for process in self.processes:
                process.start()

    def restore_in_place(self, step: Step) -> None:
        """Put the last backup back into the file that processes have open; they keep what they remember."""
        if self._copied is not None:
            self._copy(self._backup, self.path)
            self._lose(self._copied)

    def _lose(self, since: int) -> None:
        now = next(self._tick)
        self._losses.append(Loss(since, now, now))

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
            read.backup(written)


def shrink(scenario: Scenario, fails: Callable[[Scenario], bool]) -> Scenario:
    """Return a scenario that still fails, with as few steps and faults as trying one by one can reach."""
    smaller = True
    while smaller:
        smaller = False
        for other in _smaller(scenario):
            if fails(other):
                scenario, smaller = other, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    steps: Sequence[Step] = scenario.steps
    for size in (8, 4, 2, 1):
        for start in range(0, len(steps), size):
            yield replace(scenario, steps=(*steps[:start], *steps[start + size :]))
    for place, step in enumerate(steps):
        if step != step.plain:
            yield replace(scenario, steps=(*steps[:place], step.plain, *steps[place + 1 :]))
