"""Replay a log from nothing: decisions taken again and compared, or only counted, in compiled code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import log_codes
from equipoise.errors import EquipoiseError, VerificationFailed
from equipoise.experiment.changes import UNIT_KINDS, apply_change, created_state
from equipoise.experiment.missing import DefaultReward, DropUnit
from equipoise.experiment.state import ENROLLING
from equipoise.kernels import replay as kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.experiment.state import State
    from equipoise.store import Transaction

_CODES = dict(
    zip(
        UNIT_KINDS,
        (log_codes.ASSIGNED, log_codes.REWARDED, log_codes.COUNTED, log_codes.EXPIRED, log_codes.CORRECTED),
        strict=True,
    )
)
_SELECT = """
SELECT number, kind, unit, COALESCE(arm, -1), COALESCE(decision, -1), reward, probability, COALESCE(forced, 0),
    COALESCE(counted, 0), replaced, CASE WHEN unit IS NULL THEN details END, at
FROM events WHERE experiment = ? ORDER BY number
"""


class Replay:
    """What a log says: the experiment's state after it, and the state of every unit by its decision.

    Parameters
    ----------
    name : str
        Of the experiment.
    compare : bool
        Whether to take every decision again; differences are raised as `VerificationFailed`.
    """

    def __init__(self, name: str, *, compare: bool) -> None:
        self.name = name
        self.compare = compare
        self.n_events = 0
        self.n_decisions = 0
        self.configured = 0
        self.units = kernel.new_units(1024)
        self._state: State | None = None

    @property
    def state(self) -> State:
        """The state after the events so far."""
        if self._state is None:
            raise VerificationFailed(f"the log of experiment {self.name!r} is empty", event=1)
        return self._state

    def read(self, transaction: Transaction, experiment: int) -> Replay:
        """Replay a whole log."""
        for rows in transaction.stream(_SELECT, experiment):
            self.feed(rows)
        state = self.state
        state.n_events, state.n_decisions = self.n_events, self.n_decisions
        state.stats.n_assigned = int(state.stats.assigned.sum())
        return self

    def feed(self, rows: Sequence[Sequence[Any]]) -> None:
        """Replay the next events."""
        columns = tuple(zip(*rows, strict=True))
        number, kind, unit, arm, decision, reward, probability, forced, counted, replaced, _, _ = columns
        if self.n_events + 1 != number[0] or number[-1] - number[0] + 1 != len(rows):
            expected = np.arange(self.n_events + 1, self.n_events + 1 + len(rows))
            at = int(np.flatnonzero(expected != np.array(number))[0])
            self._differ(int(expected[at]), "is not in the log", f"the next is event {number[at]}")
        events = kernel.Events(
            np.array([_CODES.get(name, log_codes.OTHER) for name in kind], np.int64),
            np.array(list(map(hash, unit)), np.int64),
            np.array(arm, np.int64),
            np.array(decision, np.int64),
            np.array(reward, np.float64),
            np.array(probability, np.float64),
            np.array(forced, np.int64),
            np.array(counted, np.int64),
            np.array(replaced, np.float64),
        )
        self._make_room(len(rows))
        at = 0
        while at < len(rows):
            at = self._advance(events, rows, at)
        self.n_events += len(rows)

    def _advance(self, events: kernel.Events, rows: Sequence[Sequence[Any]], at: int) -> int:
        """Replay from one event on, up to the next that changes the experiment, and that too."""
        if self._state is None or events.kind[at] == log_codes.OTHER:
            self._change(rows[at])
            return at + 1
        interpreted = self.compare and not self._state.decider.is_compiled
        mode = kernel.PAUSE if interpreted else kernel.COMPARE if self.compare else kernel.TRUST
        at, why = self._run(events, at, len(rows), mode)
        if why == kernel.SPECIAL and events.kind[at] == log_codes.ASSIGNED:
            self._compare(rows[at])
            at, why = self._run(events, at, at + 1, kernel.TRUST)
        if why not in (kernel.SAME, kernel.SPECIAL):
            self._explain(rows[at], why)
        return at

    def _run(self, events: kernel.Events, first: int, last: int, mode: int) -> tuple[int, int]:
        state = self.state
        at, why, self.n_decisions = kernel.replay(
            events,
            first,
            last,
            mode,
            self.n_decisions,
            state.state == ENROLLING,
            self._rule,
            self._design,
            state.configuration.warm_up,
            state.configuration.seed,
            self._missing,
            self.units,
            self._tally,
        )
        return at, why

    def _change(self, row: Sequence[Any]) -> None:
        """Apply an event that changes the experiment."""
        number, kind, _, arm, *_, details, at = row
        try:
            data = {} if details is None else json.loads(details)
            if self._state is None:
                if kind != "created":
                    self._differ(number, "should be the creation", f"it is {kind!r}")
                self._state = created_state(self.name, at, data)
            else:
                apply_change(self._state, kind, arm, data)
            if kind == "weight_changed":
                self.configured = number
            self._prepare(self._state)
        except VerificationFailed:
            raise
        except (EquipoiseError, LookupError, TypeError, ValueError) as error:
            self._differ(number, "cannot be replayed", f"{kind}: {error}")

    def _prepare(self, state: State) -> None:
        """Bring what the compiled replay reads up to date."""
        stats, missing = state.stats, state.configuration.missing
        self._rule, self._design = state.decider.for_kernel()
        self._tally = kernel.Tally(stats.assigned, stats.pulls, stats.mean, stats.std, stats.sums, state.counters)
        default = isinstance(missing, DefaultReward)
        self._missing = kernel.Missing(
            log_codes.DEFAULT if default else log_codes.DROP if isinstance(missing, DropUnit) else log_codes.WAIT,
            missing.value if isinstance(missing, DefaultReward) else 0.0,
            missing.late == "count",
            missing.hold,
            state.configuration.sign,
        )

    def _make_room(self, more: int) -> None:
        needed, size = self.n_decisions + more, self.units.arm.size
        if needed > size:
            larger = kernel.new_units(max(needed, 2 * size))
            for new, old in zip(larger, self.units, strict=True):
                new[:size] = old
            self.units = larger

    def _compare(self, row: Sequence[Any]) -> None:
        """Compare one decision of a policy that is written in Python."""
        _, _, _, arm, decision, _, probability, forced, *_ = row
        if decision != self.n_decisions:
            return  # the compiled part says so
        state = self.state
        if (arm, probability, bool(forced)) != state.decider.decide(state.stats, decision):
            self._explain(row, kernel.BAD_ARM)

    def _explain(self, row: Sequence[Any], why: int) -> None:
        """Raise with what was expected and what was got."""
        number, kind, unit, arm, decision, reward, probability, forced, counted, replaced, _, _ = row
        state = self.state
        where = f"({kind}, unit {unit!r})"
        if why in (kernel.BAD_ARM, kernel.BAD_PROBABILITY, kernel.BAD_FORCED) and kind == "assigned":
            wanted, chance, was_forced = state.decider.decide(state.stats, self.n_decisions)
            got = f"{self._arm(arm)} with probability {probability!r}{', forced' * bool(forced)}"
            expected = f"{self._arm(wanted)} with probability {chance!r}{', forced' * was_forced}"
            self._differ(number, f"{where} should assign {expected}", got)
        if why == kernel.BAD_ARM:
            known = 0 <= decision < self.n_decisions
            expected = self._arm(int(self.units.arm[decision])) if known else "an arm that exists"
            self._differ(number, f"{where} should be about {expected}", self._arm(arm))
        expected, got = {
            kernel.BAD_NUMBER: (f"should have decision number {self.n_decisions}", decision),
            kernel.BAD_UNIT: ("should belong to a decision for its unit", f"decision {decision}"),
            kernel.BAD_STATE: ("does not fit what happened to the unit before", reward),
            kernel.BAD_COUNTED: (f"should{' not' * bool(counted)} count its reward", f"counted = {counted}"),
            kernel.BAD_REPLACED: ("takes the wrong reward out of the estimates", replaced),
            kernel.BAD_REWARD: ("counts the wrong reward", reward),
            kernel.CLOSED: (f"comes while the experiment is {state.state}", "an assignment"),
        }[why]
        self._differ(number, f"{where} {expected}", got)

    def _arm(self, position: int) -> str:
        names = self.state.names
        return repr(names[position]) if 0 <= position < len(names) else f"arm {position}"

    def _differ(self, number: int, expected: str, got: Any) -> None:
        raise VerificationFailed(
            f"event {number} of experiment {self.name!r} {expected}; got {got}",
            event=number,
            hint="the log was changed from outside, or the code that decides is another",
        )
