"""What a process does while its database fails over: ask and tell, and note every call with its times."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import crash_worker  # noqa: F401  (loads and compiles everything before processes are forked)
from history_checker import Call, Seen

import equipoise as eq

NAME = "replicated"
N_CONTESTED = 12


def live(url: str, tag: str, path: Path, end: Path) -> None:
    """Call until there is a file that says to end; try again for as long as the database is away."""
    rng = random.Random(tag)
    # Without a buffer, as the test counts the lines.
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123
        try:
            store = _patiently(lambda: eq.open_store(url))
            experiment = _patiently(lambda: eq.Experiment.open(store, NAME))
            number = 0
            while not end.exists():
                number += 1
                contested = rng.random() < 0.3
                unit = f"contested-{rng.randrange(N_CONTESTED)}" if contested else f"{tag}/{number}"
                _note(file, "ask", unit, None, lambda unit=unit: experiment.ask(unit))
                if rng.random() < 0.7:
                    _note(file, "tell", unit, reward_of(unit), lambda unit=unit: experiment.tell(unit, reward_of(unit)))
            store.close()
        except BaseException as error:  # noqa: BLE001  (shown by the test)
            file.write(json.dumps({"failed": repr(error)}).encode() + b"\n")


def reward_of(unit: str) -> float:
    """Every process reports the same reward of a unit."""
    return float(sum(unit.encode()) % 10)


def _note(file, verb, unit, reward, call):
    """Note what is sent before it is, and the answer when it is there."""
    invoked, error, seen = time.monotonic(), None, []
    file.write(json.dumps({"sent": [verb, unit, reward, invoked]}).encode() + b"\n")
    try:
        answer = _patiently(call)
        number, at, new = (answer.number, answer.at.isoformat(), answer.new) if verb == "ask" else (None, None, False)
        seen = [unit, answer.arm, None if verb == "ask" else answer.reward, number, at, new]
    except eq.EquipoiseError as refused:
        error = type(refused).__name__
    file.write(json.dumps({"answer": [time.monotonic(), seen, error]}).encode() + b"\n")


def _patiently(call):
    while True:
        try:
            return call()
        except eq.StoreUnavailable:
            time.sleep(0.02)


def calls_in(path: Path) -> list[Call]:
    """Return the calls that a process has noted."""
    calls: list[Call] = []
    for line in path.read_bytes().split(b"\n")[:-1]:  # the last one may have been cut short
        [(kind, found)] = json.loads(line).items()
        if kind == "sent":
            verb, unit, reward, invoked = found
            # How often the store tried again is not known.
            calls.append(Call(verb, ((unit, reward),), invoked, deliveries=2))
        else:
            assert kind == "answer", found
            returned, seen, error = found
            if seen:
                *some, at, new = seen
                seen = [Seen(*some, None if at is None else datetime.fromisoformat(at), new)]
            calls[-1] = replace(calls[-1], returned=returned, seen=tuple(seen), error=error)
    return calls
