"""Write everything that is kept from the log anew: the log is the truth, the tables are caches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.errors import VerificationFailed
from equipoise.experiment.replaying import Replay
from equipoise.experiment.verifying import compare_tables
from equipoise.log_codes import HELD, WAITING

if TYPE_CHECKING:
    from equipoise.store import Transaction

_ASSIGNED = "SELECT decision, at, unit, arm FROM events WHERE experiment = ? AND kind = 'assigned' ORDER BY number"


def rebuild(transaction: Transaction, experiment: int, name: str, now: int, who: str | None) -> bool:
    """Rebuild an experiment's tables from its log; return whether that changed anything.

    Decisions are believed, since they were taken; a log that contradicts itself is refused. A change is logged, so that
    other processes see that there is something to read again.
    """
    replay = Replay(name, compare=False).read(transaction, experiment)
    try:
        compare_tables(transaction, experiment, replay)
    except VerificationFailed:
        pass
    else:
        return False
    state = replay.state
    state.n_events += 1
    transaction.append(experiment, [(state.n_events, "rebuilt", now, who, *[None] * 9)])
    transaction.put_arms(experiment, [state.arm_row(i, state.n_events) for i in range(len(state.names))])
    transaction.configure(experiment, state.configuration.to_json(), state.n_events)
    transaction.forget_all_pending(experiment)
    window = state.configuration.missing.window_microseconds
    if window is not None:
        states = replay.units.state[: replay.n_decisions]
        is_open = (states == WAITING) | (states == HELD)
        for rows in transaction.stream(_ASSIGNED, experiment):
            pending = []
            for decision, at, unit, arm in rows:
                if is_open[decision]:
                    told = replay.units.reward[decision].item()
                    pending.append((at + window, decision, unit, arm, None if np.isnan(told) else told))
            if pending:
                transaction.put_pending(experiment, pending)
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions)
    return True
