"""Verify an experiment: what its log says, replayed, against every decision and every table."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import VerificationFailed
from equipoise.log_codes import HELD, WAITING
from equipoise.store.schema import ARM_COLUMNS

if TYPE_CHECKING:
    from equipoise.experiment.replaying import Replay
    from equipoise.store import Transaction

_CHANGED = ARM_COLUMNS.index("changed")  # no log says it
_HINT = "rebuild() writes the tables anew from the log"
_PENDING = """
SELECT p.decision, p.reward, p.due_at - a.at, CASE WHEN p.unit = a.unit AND p.arm = a.arm THEN 1 ELSE 0 END
FROM pending AS p LEFT JOIN events AS a {by_unit}
ON a.experiment = p.experiment AND a.unit = p.unit AND a.kind = 'assigned' AND a.decision = p.decision
WHERE p.experiment = ?
"""


@dataclass(frozen=True)
class Verification:
    """A log that gave what is recorded: how long it was, and how long the replay took."""

    n_events: int
    n_decisions: int
    seconds: float


def verify(transaction: Transaction, experiment: int, name: str) -> Verification:
    """Replay a log and compare; raise `VerificationFailed` at the first difference."""
    from equipoise.experiment.replaying import Replay  # which loads the compiler

    started = time.perf_counter()
    replay = Replay(name, compare=True).read(transaction, experiment)
    compare_tables(transaction, experiment, replay)
    return Verification(replay.n_events, replay.n_decisions, time.perf_counter() - started)


def compare_tables(transaction: Transaction, experiment: int, replay: Replay) -> None:
    """Compare what is kept beside the log with what it says; raise `VerificationFailed` at the first difference."""
    _compare_heads(transaction, experiment, replay)
    _compare_arms(transaction, experiment, replay)
    _compare_pending(transaction, experiment, replay)


def _compare_heads(transaction: Transaction, experiment: int, replay: Replay) -> None:
    head, state = transaction.head(experiment), replay.state
    name, created_at, configuration = transaction.configuration(experiment)
    for what, expected, got in (
        ("name", state.name, name),
        ("created_at", state.created_at, created_at),
        ("state", state.state, head.state),
        ("n_events", state.n_events, head.n_events),
        ("n_decisions", state.n_decisions, head.n_decisions),
        ("configuration", state.configuration.to_json(), configuration),
    ):
        if expected != got:
            _differ(f"{what} of experiment {replay.name!r}", expected, got)


def _compare_arms(transaction: Transaction, experiment: int, replay: Replay) -> None:
    rows, state = transaction.arms(experiment), replay.state
    if len(rows) != len(state.names):
        _differ(f"the number of arms of experiment {replay.name!r}", len(state.names), len(rows))
    for position, row in enumerate(rows):
        expected = state.arm_row(position, row[_CHANGED])
        for column, wanted, got in zip(ARM_COLUMNS, expected, row, strict=True):
            if wanted != got:
                _differ(f"{column} of arm {state.names[position]!r}", wanted, got)


def _compare_pending(transaction: Transaction, experiment: int, replay: Replay) -> None:
    """Every unit with an open window is on the list of what is pending, once and rightly, and nobody else is."""
    window = replay.state.configuration.missing.window_microseconds
    states = replay.units.state[: replay.n_decisions]
    is_open = np.zeros(0, bool) if window is None else (states == WAITING) | (states == HELD)
    listed = 0
    for rows in transaction.stream(_PENDING.format(by_unit=transaction.database.by_unit), experiment):
        for decision, reward, after, fits in rows:
            told = replay.units.reward[decision] if 0 <= decision < is_open.size else None
            if told is None or not is_open[decision] or after != window or not fits:
                _differ("what is pending", "units with an open window", f"decision {decision}")
            if (None if states[decision] == WAITING else told) != reward:
                _differ(f"the reward held back of decision {decision}", told, reward)
        listed += len(rows)
    if listed != is_open.sum():
        _differ("the number of units pending", int(is_open.sum()), listed)


def _differ(what: str, expected: Any, got: Any) -> None:
    raise VerificationFailed(f"{what} should be {expected!r} by the log; got {got!r}", hint=_HINT)
