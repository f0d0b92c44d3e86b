"""What the processes do that are killed: ask and tell without end, and note every answer once they have it."""

from __future__ import annotations

import json
import random
import resource
import time
import zlib

import psycopg  # noqa: F401  (loaded before the processes are forked)
import sqlalchemy.dialects.postgresql.psycopg
import sqlalchemy.dialects.sqlite  # noqa: F401
import store_worker  # noqa: F401  (compiles what decides)

import equipoise as eq
from equipoise.experiment import execution as module

N_CONTESTED = 40
PAUSE = 0.03


def reward_of(unit):
    """Every process would tell the same reward of a unit."""
    return zlib.crc32(unit.encode()) % 1000 / 100


def live(url, tag, seed, path, steps=None, early=False):
    """Ask and tell, some units alone and some together; for ever, or as many steps as are given.

    Units of one transaction are called `tag/number/place/size`, so that a half of one would show. With `early`, answers
    are noted before they are committed, which is wrong: the negative control.
    """
    rng = random.Random(seed)
    # Without a buffer: what was written survives the process, as it would had it gone to a client.
    with open(path, "ab", buffering=0) as file:  # noqa: PTH123

        def note(kind, name, pairs):
            file.write(json.dumps([kind, name, pairs]).encode() + b"\n")

        try:
            store = patiently(lambda: eq.open_store(url))
            if early:
                acknowledge_before_commit(note)
            experiments = [patiently(lambda name=name: eq.Experiment.open(store, name)) for name in ("one", "other")]
            number = 0
            while steps is None or number < steps:
                number += 1
                step(rng.choice(experiments), rng, f"{tag}/{number}", (lambda *_: None) if early else note)
        except BaseException as error:  # noqa: BLE001  (shown by the test)
            note("error", repr(error), [])


def step(experiment, rng, tag, note):
    size = rng.choice([1, 1, 2, 5])
    units = [f"{tag}/{place}/{size}" for place in range(size)]
    if rng.random() < 0.3:  # units that others ask for too, in another order
        units = rng.sample([f"contested-{i}" for i in range(N_CONTESTED)], size)
    told = {unit: reward_of(unit) for unit in units}
    if size == 1:
        assigned = [patiently(lambda: experiment.ask(units[0]))]
    else:
        assigned = patiently(lambda: experiment.ask_many(units))
    note("asked", experiment.name, [(one.unit, one.arm) for one in assigned])
    if rng.random() < 0.8:
        patiently(lambda: experiment.tell_many(told))
        note("told", experiment.name, list(told.items()))
        if size == 1 and units[0].startswith(tag) and rng.random() < 0.3:
            patiently(lambda: experiment.correct(units[0], 50.0, "misread"))
            note("corrected", experiment.name, [(units[0], 50.0)])


def patiently(call):
    """Try again for as long as the database is away, as a client would."""
    while True:
        try:
            return call()
        except eq.StoreUnavailable:
            time.sleep(0.02)


def acknowledge_before_commit(note):
    """Answer too early, and take a moment over the commit, so that hardly any kill misses it."""
    write = module.write_transition

    def write_and_note(transaction, number, made):
        write(transaction, number, made)
        state = made.state
        for _, kind, _, _, unit, arm, _, reward, *_ in made.events:
            word = {"assigned": "asked", "rewarded": "told", "corrected": "corrected"}[kind]
            note(word, state.name, [(unit, state.names[arm] if kind == "assigned" else reward)])
        time.sleep(PAUSE)

    module.write_transition = write_and_note


def fill_the_disk(url, results):
    """Ask until files may not grow any more, then make room and go on; put what was seen in a queue."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept, refused = [], []
    with eq.open_store(url) as store:
        experiment = eq.Experiment.open(store, "one")
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, hard))
        for number in range(1000):
            try:
                kept += [one.unit for one in experiment.ask_many([f"{number}-{i}" for i in range(20)])]
            except eq.StoreUnavailable as error:
                refused.append(str(error))
                if len(refused) == 3:
                    break
        while_full = experiment.status().n_assigned
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        kept.append(experiment.ask("after").unit)
        experiment.verify()
    results.put((kept, refused, while_full))
