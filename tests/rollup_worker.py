"""What the processes do that are killed while they save sums by hour: add up the log and save it, again and again."""

from __future__ import annotations

import equipoise as eq
from equipoise.experiment import checkpoints


def save_often(slice_events):
    """Save after every slice, however short."""
    checkpoints.SLICE_EVENTS = slice_events
    checkpoints.SAVE_SECONDS = 0.0
    checkpoints.LEAST_EVENTS = 1


def add_up(url, name, working):
    """Add up a log from the start, for ever."""
    save_often(40)
    while True:
        with eq.open_store(url) as store:
            experiment = eq.Experiment.open(store, name)
            with checkpoints.kept_rollup(store, experiment.number, name):
                pass
            working.set()
            number = experiment.number
            store.change(number, lambda transaction, number=number: transaction.forget_rollups(number))
