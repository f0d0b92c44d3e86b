"""Replay what a process did to the files of a store up to any moment, as the disk may hold it after a power loss.

`power_loss.c` records writes and syncs. What was written to a file since it was last synced may be on the disk or not,
in any combination, and one write may be there in part. Names of files that were created or removed last until the
directory is synced.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa
from history_checker import Call, History, Seen, violations, what_is_left

import equipoise as eq

NAME = "traced"
ANSWERS = "-answers"
"""What follows the name of the store in the name of the file in which the process notes what it was answered."""
SHARED_MEMORY = "-shm"
SECTORS = (512, 4096)
_HEADER = struct.Struct("c31sqq")


class Action(NamedTuple):
    """One record of a trace; see `power_loss.c` for the kinds."""

    kind: str
    name: str
    offset: int
    data: bytes


class Change(NamedTuple):
    """A write to a file that is not synced yet, or without data the new size of the file."""

    file: int
    offset: int
    data: bytes | None


class Way(NamedTuple):
    """Which of the unsynced writes are on the disk, and whether unsynced names are.

    All; the first `k`; the first `k` and the start of the next, or its end, cut at `size`; all without number `k`.
    """

    kind: str
    k: int
    size: int = 0
    all_names: bool = False


@dataclass
class Disk:
    """The files of a store during a trace: what is synced, and what is not."""

    contents: dict[int, bytearray] = field(default_factory=dict)
    """What of each file is synced; a file keeps its number when it loses its name."""
    changes: list[Change] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    synced_names: dict[str, int] = field(default_factory=dict)
    answers: bytes = b""

    def apply(self, action: Action) -> None:
        """Take over the next record."""
        kind, name, offset, data = action
        if kind == "D":
            self.synced_names = dict(self.names)
        elif name == ANSWERS:
            self.answers += data
        elif name == SHARED_MEMORY:
            pass  # nobody reads it after a restart
        elif kind == "C":
            self.names[name] = len(self.contents)
            self.contents[len(self.contents)] = bytearray()
        elif kind == "U":
            del self.names[name]
        elif kind == "S":
            file = self.names[name]
            for change in self.changes:
                if change.file == file:
                    _write(self.contents[file], change)
            self.changes = [change for change in self.changes if change.file != file]
        else:
            self.changes.append(Change(self.names[name], offset, data if kind == "W" else None))

    def ways(self, last: Action) -> list[Way]:
        """Return the ways in which the power may fail after an action; after a write, only those that it adds."""
        n = len(self.changes)
        wrote = last.kind in ("W", "T") and last.name != ANSWERS
        ways = [Way("all", n)]
        for k in range(n):
            data = self.changes[k].data
            if not wrote or k == n - 1:
                ways.append(Way("first", k))
                ways += [
                    Way(kind, k, size)
                    for size in SECTORS
                    for kind in ("start", "end")
                    if data is not None and len(data) > size
                ]
            if k < n - 1:
                ways.append(Way("without", k))
        if self.names != self.synced_names:
            ways += [way._replace(all_names=True) for way in ways]
        return ways

    def image(self, way: Way) -> dict[str, bytes]:
        """Return what the disk then holds: files by what follows the name of the store."""
        changes, (kind, k, size, all_names) = self.changes, way
        kept = list(changes) if kind == "all" else changes[:k]
        if kind == "without":
            kept += changes[k + 1 :]
        elif kind in ("start", "end"):
            file, offset, data = changes[k]
            kept.append(
                Change(file, offset, data[:size]) if kind == "start" else Change(file, offset + size, data[size:])
            )
        contents = {file: bytearray(data) for file, data in self.contents.items()}
        for change in kept:
            _write(contents[change.file], change)
        names = self.names if all_names else self.synced_names
        return {name: bytes(contents[file]) for name, file in names.items()}


def _write(content: bytearray, change: Change) -> None:
    if change.data is None:
        del content[change.offset :]
        content.extend(bytes(max(0, change.offset - len(content))))
        return
    end = change.offset + len(change.data)
    content.extend(bytes(max(0, end - len(content))))
    content[change.offset : end] = change.data


def compiled_recorder(compiler: str, directory: Path) -> Path:
    """Compile the recorder."""
    target = directory / "power_loss.so"
    source = Path(__file__).with_suffix(".c")
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", target, source, "-ldl"], check=True)
    return target


def recorded(recorder: Path, directory: Path, *pragmas: str) -> list[Action]:
    """Let a process work on a store, with settings of SQLite that differ from ours, and return its trace."""
    trace = directory / "trace"
    environment = os.environ | {"LD_PRELOAD": str(recorder), "TRACED": str(directory / "store.db"), "TRACE": str(trace)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*map(str, sys.path)]))
    subprocess.run([sys.executable, __file__, directory / "store.db", *pragmas], env=environment, check=True)
    return list(_actions(trace.read_bytes()))


def _actions(trace: bytes) -> Iterator[Action]:
    place = 0
    while place < len(trace):
        kind, name, offset, length = _HEADER.unpack_from(trace, place)
        place += _HEADER.size
        size = length if kind == b"W" else 0
        yield Action(kind.decode(), name.rstrip(b"\0").decode(), offset, trace[place : place + size])
        place += size


class Moment(NamedTuple):
    """A state of the disk that a power loss may leave, and what had been answered by then."""

    number: int
    way: Way
    files: dict[str, bytes]
    answers: bytes


def n_moments(actions: list[Action]) -> int:
    """Return how many moments there are."""
    disk, n = Disk(), 0
    for action in actions:
        disk.apply(action)
        n += len(disk.ways(action))
    return n


def moments(actions: list[Action], chosen: Collection[int]) -> Iterator[Moment]:
    """Yield those of the states that a power loss may leave whose places in their row are chosen; equal ones once."""
    disk, places, seen = Disk(), count(), set()
    for number, action in enumerate(actions):
        disk.apply(action)
        for way in disk.ways(action):
            if next(places) in chosen:
                moment = Moment(number, way, disk.image(way), disk.answers)
                key = hash((moment.answers, *sorted(moment.files.items())))
                if key not in seen:
                    seen.add(key)
                    yield moment


def problems(moment: Moment, directory: Path) -> list[str]:
    """Start from a state of the disk and return what is wrong: what was answered and is not there, or `verify`."""
    for path in directory.iterdir():
        path.unlink()
    for name, content in moment.files.items():
        (directory / f"store.db{name}").write_bytes(content)
    answers = [json.loads(line) for line in moment.answers.splitlines()]
    calls = [
        Call(verb, tuple(map(tuple, sent)), 2 * place, 2 * place + 1, tuple(Seen(*one) for one in seen))
        for place, (verb, sent, seen) in enumerate(answers)
        if verb != "create"
    ]
    try:
        with eq.open_store(f"sqlite:///{directory}/store.db") as store:
            if not answers and not eq.Experiment.list(store):
                return []
            experiment = eq.Experiment.open(store, NAME)
            found = [*violations(_history(calls, *what_is_left(experiment)))]
            experiment.tell(experiment.ask("after").unit, 1.0)
            experiment.verify()
    except (eq.EquipoiseError, sa.exc.SQLAlchemyError) as error:
        found = [f"{type(error).__name__}: {error}"]
    return [f"after action {moment.number}, {moment.way}: {one}" for one in found]


def _history(calls: list[Call], log: Any, arms: Any, verify: str | None) -> History:
    """Return the history; the call that had no answer yet is one of those that the process makes next."""
    done = {(call.verb, call.sent) for call in calls}
    more = [Call(verb, sent, 1e9) for verb, sent in script() if (verb, sent) not in done]
    return History((*calls, *more), log, arms, verify)


Sent = tuple[tuple[str, float | None], ...]


def script() -> list[tuple[str, Sent]]:
    """Return what the process calls: asks alone and together, rewards, corrections."""
    calls: list[tuple[str, Sent]] = []
    for number in range(4):
        units = [f"{number}-{place}" for place in range(4)]
        calls.append(("ask", ((units[0], None),)))
        calls.append(("ask", tuple((unit, None) for unit in units[1:])))
        calls += [("tell", ((unit, float(place + number)),)) for place, unit in enumerate(units[:3])]
        calls.append(("correct", ((units[0], 10.0 + number),)))
    return calls


def work(path: str, pragmas: list[str]) -> None:
    """Work on a store and note every answer; close the store half-way, which removes its log of writes."""
    with open(f"{path}{ANSWERS}", "ab", buffering=0) as file:  # noqa: PTH123

        def note(verb: str, sent: Any, seen: Any) -> None:
            file.write(json.dumps([verb, sent, seen]).encode() + b"\n")

        with eq.open_store(f"sqlite:///{path}") as store:
            store.close()

            def set_up(connection: Any, _record: Any) -> None:
                # Checkpoints come after a thousand pages; here they come every few calls.
                for pragma in ("wal_autocheckpoint = 12", *pragmas):
                    connection.execute(f"PRAGMA {pragma}")

            sa.event.listen(store.database.engine, "connect", set_up)
            experiment = eq.Experiment.create(
                store,
                NAME,
                arms=["line", "pie", "none"],
                policy=eq.ForcingBalance(reward_weight=0.6),
                missing=eq.WaitForReward(window_seconds=1e6),
                seed=3,
            )
            note("create", [], [])
            calls = script()
            for place, (verb, sent) in enumerate(calls):
                if place == len(calls) // 2:
                    store.close()
                units = [unit for unit, _ in sent]
                if verb == "ask":
                    answers = experiment.ask_many(units) if len(units) > 1 else [experiment.ask(units[0])]
                    note(verb, sent, [(one.unit, one.arm) for one in answers])
                else:
                    reason = ("misread",) if verb == "correct" else ()
                    told = getattr(experiment, verb)(*sent[0], *reason)
                    note(verb, sent, [(told.unit, told.arm, told.reward)])


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2:])
