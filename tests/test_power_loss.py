"""A power loss after any write: the store opens, everything that was answered is there, and `verify` is green.

A process works on a store while a recorder notes its writes and syncs. From the notes come the states that the disk may
be left in: after every action, with the unsynced writes there, gone, out of order or cut off in the middle.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from endurance import short_and_full
from power_loss import compiled_recorder, moments, n_moments, problems, recorded
from tools import need

N_SHORT = 300


@pytest.fixture(scope="module")
def recorder(tmp_path_factory):
    return compiled_recorder(need("gcc"), tmp_path_factory.mktemp("recorder"))


@pytest.fixture(scope="module")
def trace(recorder, tmp_path_factory):
    """What a process did that works on a store with our own settings."""
    return recorded(recorder, tmp_path_factory.mktemp("traced"))


@pytest.fixture
def found_wrong(tmp_path):
    """What returns what is wrong at some of the moments of a trace, or at all; it says how many it checked."""

    def found_wrong(trace, n=None):
        place = tmp_path / "disk"
        place.mkdir()
        everything = range(n_moments(trace))
        chosen = everything if n is None else set(Random(2).sample(everything, n))
        found, n_checked = [], 0
        for moment in moments(trace, chosen):
            found += problems(moment, place)
            n_checked += 1
            if found:
                break
        print(f"{n_checked} different states of {len(everything)} ways to lose power checked")
        return found

    return found_wrong


@pytest.mark.parametrize("n", short_and_full(N_SHORT, None))
def test_nothing_answered_is_lost_whenever_the_power_fails(trace, found_wrong, n):
    assert found_wrong(trace, n) == []


def test_a_trace_has_what_a_power_loss_can_spoil(trace):
    kinds = Counter((action.kind, action.name) for action in trace)
    assert kinds["S", "-wal"] > 20
    assert kinds["S", ""] > 5  # checkpoints
    assert kinds["W", "-answers"] == 25
    assert kinds["U", "-wal"] == 3  # when the store was closed: after it was made, half-way and at the end


@pytest.mark.parametrize("setting", ["synchronous = NORMAL", "synchronous = OFF"])
def test_a_store_that_does_not_sync_would_be_found_out(recorder, tmp_path, found_wrong, setting):
    """The negative control: answers that are not on the disk yet."""
    directory = tmp_path / "traced"
    directory.mkdir()
    assert found_wrong(recorded(recorder, directory, setting), N_SHORT) != []
