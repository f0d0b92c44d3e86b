"""Verify an experiment by replaying its log; rebuild its tables from the log; copy it to another store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from equipoise import kernels
from equipoise._types import FloatArray
from equipoise._version import __version__
from equipoise.errors import EquipoiseError, ExperimentExists, Hint, VerificationFailed
from equipoise.experiment.checkpoints import checkpoint_of, write_rollup
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.event_kinds import DESCRIBED
from equipoise.experiment.hash_chain import append_events, verify_chain
from equipoise.experiment.records import Verification
from equipoise.experiment.rollup import HOUR, VERSION, Rollup, rollup_of_log
from equipoise.experiment.state import ENROLLING, State, apply_change, created_state
from equipoise.kernels import exact_digits, log_replay
from equipoise.stats import ArmStats
from equipoise.store import Transaction, schema
from equipoise.store.database import RESTORE
from equipoise.store.schema import ARM_COLUMNS
from equipoise.unit_lifecycle import ASSIGNED, OTHER, STATES, UNIT_EVENTS, WAITING

_IS_OPEN = np.array([STATES[state].is_open for state in range(len(STATES))])
_COUNTER_OF = np.array(
    [-1 if (row := STATES[state].counter) is None else row for state in range(len(STATES))], np.int64
)
"""Columns of `STATES` by state, for whole arrays of states and for compiled code; -1 means no counter."""

_CHANGED = ARM_COLUMNS.index("changed")  # not recorded in any log
_PENDING = """
SELECT p.decision, p.reward, p.due_at - a.at, CASE WHEN p.unit = a.unit AND p.arm = a.arm THEN 1 ELSE 0 END
FROM pending AS p LEFT JOIN events AS a {by_unit}
ON a.experiment = p.experiment AND a.unit = p.unit AND a.kind = 'assigned' AND a.decision = p.decision
WHERE p.experiment = ?
"""


def verify(transaction: Transaction, experiment: int, name: str) -> Verification:
    """Replay a log and compare it with the tables; raise `VerificationFailed` at the first difference."""
    started = time.perf_counter()
    replay = Replay(name, compare=True).read(transaction, experiment)
    compare_tables(transaction, experiment, replay)
    compare_rollups(transaction, experiment, replay)
    chain = verify_chain(transaction, experiment)
    _verify_assignments(transaction, experiment, replay, chain.n_unit_events)
    n_chained = replay.n_events - transaction.chained_from(experiment)
    last = None if chain.last is None else chain.last.hex()
    return Verification(replay.n_events, replay.n_decisions, time.perf_counter() - started, n_chained, last)


def _verify_assignments(transaction: Transaction, experiment: int, replay: Replay, n_unit_events: int) -> None:
    """Check that every unit has one assignment, and that the index of units, by which asks look it up, finds it.

    An index that misses a row would give its unit a second assignment, perhaps to another arm.
    """
    if np.unique(replay.units.unit[: replay.n_decisions]).size != replay.n_decisions:
        _refuse_second_assignments(transaction, experiment)
    n_found = 0
    for rows in transaction.stream(_ASSIGNED, experiment):
        expected = {unit: (decision, arm) for decision, _, unit, arm in rows}
        events = transaction.unit_events(experiment, list(expected))
        n_found += len(events)
        found = {unit: (decision, arm) for unit, kind, arm, decision, *_ in events if kind == "assigned"}
        if found != expected:
            unit = next(unit for unit in expected if found.get(unit) != expected[unit])
            _damaged(f"the index of units does not find the assignment of unit {unit!r}")
    if n_found != n_unit_events:
        _damaged(f"the index of units finds {n_found:,} events of units; the log has {n_unit_events:,}")


def _refuse_second_assignments(transaction: Transaction, experiment: int) -> None:
    """Raise if a unit was assigned twice; two units whose hashes are equal by chance are no reason."""
    seen: set[str] = set()
    for rows in transaction.stream(_ASSIGNED, experiment):
        for _, _, unit, _ in rows:
            if unit in seen:
                _damaged(f"unit {unit!r} was assigned twice")
            seen.add(unit)


def _damaged(what: str) -> None:
    raise VerificationFailed(what, hint=RESTORE)


def compare_tables(transaction: Transaction, experiment: int, replay: Replay) -> None:
    """Compare the tables beside the log with a replay; raise `VerificationFailed` at the first difference."""
    _compare_heads(transaction, experiment, replay)
    _compare_arms(transaction, experiment, replay)
    _compare_pending(transaction, experiment, replay)


def compare_rollups(transaction: Transaction, experiment: int, replay: Replay) -> None:
    """Compare the sums by hour with the log, up to where they reach; raise `VerificationFailed` if they differ."""
    checkpoint = transaction.checkpoint(experiment)
    if checkpoint is None or checkpoint.version != VERSION:
        return  # nobody reads them
    head = transaction.head(experiment, checkpoint.event)
    if checkpoint.event > replay.n_events or checkpoint.hash != head.seen_hash:
        _differ("the event that the sums by hour reach", replay.n_events, checkpoint.event)
    expected = rollup_of_log(transaction, experiment, replay.state.configuration, checkpoint.event)
    mark = expected.mark._replace(hash=checkpoint.hash)
    wanted = checkpoint_of(mark, checkpoint.saved_at)
    if checkpoint != wanted:
        _differ("the checkpoint of the sums by hour", tuple(wanted), tuple(checkpoint))
    saved = Rollup(replay.state.configuration).load(transaction, experiment, mark)
    for right, found in zip_longest(expected.all_rows(), saved.all_rows()):
        if right != found:
            hour, arm = (right or found or (0, 0))[:2]
            when = schema.instant(hour * HOUR)
            _differ(f"the sums of arm {arm} in the hour of {when:%Y-%m-%d %H:%M}", right, found)


def _compare_heads(transaction: Transaction, experiment: int, replay: Replay) -> None:
    head, state = transaction.head(experiment), replay.state
    name, created_at, configuration = transaction.configuration(experiment)
    for what, expected, got in (
        ("name", state.name, name),
        ("created_at", state.created_at, created_at),
        ("state", state.state, head.state),
        ("n_events", state.n_events, head.n_events),
        ("n_decisions", state.n_decisions, head.n_decisions),
        ("configuration", state.configuration.to_json(), _with_defaults(configuration)),
    ):
        if expected != got:
            _differ(f"{what} of experiment {replay.name!r}", expected, got)


def _with_defaults(configuration: str) -> str:
    """Return a recorded configuration as this version writes it: with what was added since, at its defaults."""
    try:
        return Configuration.from_dict(json.loads(configuration)).to_json()
    except (EquipoiseError, ValueError, TypeError, LookupError):
        return configuration  # the comparison will say what is wrong with it


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
    """Check that the pending table lists every unit with an open window once, correctly, and no other unit."""
    window = replay.state.configuration.missing.window_microseconds
    states = replay.units.state[: replay.n_decisions]
    is_open = np.zeros(0, bool) if window is None else _IS_OPEN[states]
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
    raise VerificationFailed(f"{what} should be {expected!r} by the log; got {got!r}", hint=Hint.REBUILD)


EVENTS = """
SELECT number, kind, unit, COALESCE(arm, -1), COALESCE(decision, -1), reward, probability, COALESCE(forced, 0),
    COALESCE(counted, 0), replaced, reward_weight, CASE WHEN unit IS NULL THEN details END, at
FROM events WHERE experiment = ?
"""
_SELECT = f"{EVENTS} ORDER BY number"

_MAYBE_TEXT, _MAYBE_NUMBER = str | None, float | int | None
_COLUMN_TYPES = (
    *(int, str, _MAYBE_TEXT, int, int, _MAYBE_NUMBER, _MAYBE_NUMBER, int),
    *(int, _MAYBE_NUMBER, _MAYBE_NUMBER, _MAYBE_TEXT, int),
)
"""The types of the columns of `_SELECT`."""


class Replay:
    """Replay of a log: the experiment's state after it, and the state of every unit by its decision.

    Parameters
    ----------
    name : str
        Name of the experiment.
    compare : bool
        Whether to recompute every decision; a difference raises `VerificationFailed`.
    """

    def __init__(self, name: str, *, compare: bool) -> None:
        self.name = name
        self.compare = compare
        self.n_events = 0
        self.n_decisions = 0
        self.configured = 0
        self.units = log_replay.new_units(1024)
        self.chances: FloatArray = np.zeros((0, 0))
        """Probabilities of all arms at each decision; without rows they are not recorded."""
        self._digits = np.zeros((0, *exact_digits.new_digits().shape), np.int64)
        self._state: State | None = None

    @property
    def state(self) -> State:
        """The state after the events replayed so far."""
        if self._state is None:
            raise VerificationFailed(f"the log of experiment {self.name!r} is empty", event=1)
        return self._state

    def read(self, transaction: Transaction, experiment: int) -> Replay:
        """Replay a whole log."""
        for rows in transaction.stream(_SELECT, experiment):
            try:
                self.feed(rows)
            except (OverflowError, TypeError, ValueError):
                self._refuse_wrong_types(rows)
                raise
        state = self.state
        state.n_events, state.n_decisions = self.n_events, self.n_decisions
        state.stats.n_assigned = int(state.stats.assigned.sum())
        return self

    def feed(self, rows: Sequence[Sequence[Any]]) -> None:
        """Replay the next events."""
        columns = tuple(zip(*rows, strict=True))
        number, kind, unit, arm, decision, reward, probability, forced, counted, replaced, weight, _, _ = columns
        if self.n_events + 1 != number[0] or number[-1] - number[0] + 1 != len(rows):
            expected = np.arange(self.n_events + 1, self.n_events + 1 + len(rows))
            at = int(np.flatnonzero(expected != np.array(number))[0])
            self._differ(int(expected[at]), "is not in the log", f"the next is event {number[at]}")
        events = log_replay.Events(
            np.array([UNIT_EVENTS.get(name, OTHER) for name in kind], np.int64),
            np.array(list(map(hash, unit)), np.int64),
            np.array(arm, np.int64),
            np.array(decision, np.int64),
            np.array(reward, np.float64),
            np.array(probability, np.float64),
            np.array(forced, np.int64),
            np.array(counted, np.int64),
            np.array(replaced, np.float64),
            np.array(weight, np.float64),
        )
        self.follow(events, rows.__getitem__)

    def follow(self, events: log_replay.Events, row: Callable[[int], Sequence[Any]]) -> None:
        """Replay the next events, given as arrays; `row` returns the columns of `_SELECT` of one of them."""
        size = events.kind.size
        self._make_room(int(np.count_nonzero(events.kind == ASSIGNED)))
        at = 0
        while at < size:
            at = self._advance(events, row, at)
        self.n_events += size

    def _refuse_wrong_types(self, rows: Sequence[Sequence[Any]]) -> None:
        """Raise `VerificationFailed` if a value is not of the type of its column, as SQLite does not ensure."""
        for row in rows:
            if not all(map(isinstance, row, _COLUMN_TYPES)):
                self._differ(row[0], "should have numbers and texts in their places", "a value of another type")

    def _advance(self, events: log_replay.Events, row: Callable[[int], Sequence[Any]], at: int) -> int:
        """Apply an event that changes the experiment, or replay up to the next one; return the position after."""
        if self._state is None or events.kind[at] == OTHER:
            self._change(row(at))
            return at + 1
        interpreted = self.compare and not self._state.decider.is_compiled
        mode = log_replay.PAUSE if interpreted else log_replay.COMPARE if self.compare else log_replay.TRUST
        at, why = self._run(events, at, events.kind.size, mode)
        if why == log_replay.SPECIAL and events.kind[at] == ASSIGNED:
            self._compare(events, row, at)
            at, why = self._run(events, at, at + 1, log_replay.TRUST)
        if why not in (log_replay.SAME, log_replay.SPECIAL):
            self._explain(row(at), why)
        return at

    def _run(self, events: log_replay.Events, first: int, last: int, mode: int) -> tuple[int, int]:
        state = self.state
        at, why, self.n_decisions = log_replay.replay(
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
            self._lives,
            self.units,
            self._tally,
            self.chances,
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
                if self.compare:
                    self._check_version(self._state.configuration.kernels)
            else:
                apply_change(self._state, kind, arm, data)
            if kind in ("weight_changed", "dial_changed", DESCRIBED):
                self.configured = number
            self._prepare(self._state)
        except VerificationFailed:
            raise
        except (EquipoiseError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._differ(number, "cannot be replayed", f"{kind}: {error}")

    def _check_version(self, version: Any) -> None:
        """Raise if a version of the kernels took the decisions whose rules or arithmetic are not known here."""
        if isinstance(version, int) and kernels.OLDEST_VERSION <= version <= kernels.VERSION:
            return
        newer = isinstance(version, int) and version > kernels.VERSION
        which = "a newer equipoise" if newer else "the equipoise that the experiment was made with"
        raise VerificationFailed(
            f"the decisions of experiment {self.name!r} were taken by version {version!r} of the kernels; "
            f"equipoise {__version__} has version {kernels.VERSION} and may decide otherwise",
            event=1,
            hint=f"verify with {which}; rebuilding and exporting work with this one too",
        )

    def _prepare(self, state: State) -> None:
        """Update the arrays that the compiled replay reads."""
        stats, configuration, missing = state.stats, state.configuration, state.configuration.missing
        self._rule, self._design = state.decider.for_kernel()
        self._make_digits(stats)
        drift = np.zeros((0, stats.n_arms)) if stats.drift_sums is None else stats.drift_sums
        self._tally = log_replay.Tally(
            stats.assigned, stats.pulls, stats.mean, stats.std, stats.sums, self._digits, state.counters, drift
        )
        default = np.nan if missing.default is None else missing.default
        cap = np.inf if configuration.reward_cap is None else configuration.reward_cap
        self._lives = log_replay.Lives(missing.life.array, _COUNTER_OF, default, cap, configuration.sign, stats.exact)

    def _make_digits(self, stats: ArmStats) -> None:
        """Keep the exact sums of all arms in one array, which the compiled replay changes in place."""
        if stats.n_arms == len(self._digits):
            return
        larger = np.zeros((stats.n_arms, *self._digits.shape[1:]), np.int64)
        larger[: len(self._digits)] = self._digits
        self._digits = larger
        for arm, digits in enumerate(larger):
            stats.digits[arm] = digits

    def _make_room(self, more: int) -> None:
        needed, size = self.n_decisions + more, self.units.arm.size
        if needed > size:
            larger = log_replay.new_units(max(needed, 2 * size))
            for new, old in zip(larger, self.units, strict=True):
                new[:size] = old
            self.units = larger

    def _compare(self, events: log_replay.Events, row: Callable[[int], Sequence[Any]], at: int) -> None:
        """Compare one decision of a policy written in Python."""
        _, _, _, arm, decision, _, probability, forced, _, _, weight, *_ = found = row(at)
        if decision != self.n_decisions:
            return  # the compiled replay reports this
        state = self.state
        *expected, solved = state.decider.decide(state.stats, decision)
        if [arm, probability, bool(forced)] != expected:
            self._explain(found, log_replay.BAD_ARM)
        if weight != solved:
            self._explain(found, log_replay.BAD_WEIGHT)

    def _explain(self, row: Sequence[Any], why: int) -> None:
        """Raise `VerificationFailed` with the expected value and the one found."""
        number, kind, unit, arm, decision, reward, probability, forced, counted, replaced, weight, _, _ = row
        state = self.state
        where = f"({kind}, unit {unit!r})"
        if why in (log_replay.BAD_ARM, log_replay.BAD_PROBABILITY, log_replay.BAD_FORCED) and kind == "assigned":
            wanted, chance, was_forced, _ = state.decider.decide(state.stats, self.n_decisions)
            got = f"{self._arm(arm)} with probability {probability!r}{', forced' * bool(forced)}"
            expected = f"{self._arm(wanted)} with probability {chance!r}{', forced' * was_forced}"
            self._differ(number, f"{where} should assign {expected}", got)
        if why == log_replay.BAD_WEIGHT:
            *_, solved = state.decider.decide(state.stats, self.n_decisions)
            self._differ(number, f"{where} should be decided by {_weight(solved)}", _weight(weight))
        if why == log_replay.BAD_ARM:
            known = 0 <= decision < self.n_decisions
            expected = self._arm(int(self.units.arm[decision])) if known else "an arm that exists"
            self._differ(number, f"{where} should be about {expected}", self._arm(arm))
        expected, got = {
            log_replay.BAD_NUMBER: (f"should have decision number {self.n_decisions}", decision),
            log_replay.BAD_UNIT: ("should belong to a decision for its unit", f"decision {decision}"),
            log_replay.BAD_STATE: ("does not fit what happened to the unit before", reward),
            log_replay.BAD_COUNTED: (f"should{' not' * bool(counted)} count its reward", f"counted = {counted}"),
            log_replay.BAD_REPLACED: ("takes the wrong reward out of the estimates", replaced),
            log_replay.BAD_REWARD: ("counts the wrong reward", reward),
            log_replay.CLOSED: (f"comes while the experiment is {state.state}", "an assignment"),
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


def _weight(weight: float | None) -> str:
    return "no reward weight that was solved for" if weight is None else f"reward weight {weight!r}"


_ASSIGNED = "SELECT decision, at, unit, arm FROM events WHERE experiment = ? AND kind = 'assigned' ORDER BY number"


def rebuild(transaction: Transaction, experiment: int, name: str, now: int, who: str | None) -> bool:
    """Rebuild an experiment's tables from its log; return whether that changed anything.

    Decisions are trusted, since units were assigned by them; a log that contradicts itself is refused. A change is
    logged, so that other processes reload the tables.
    """
    replay = Replay(name, compare=False).read(transaction, experiment)
    last = transaction.last_hash(experiment)
    try:
        compare_tables(transaction, experiment, replay)
        compare_rollups(transaction, experiment, replay)
        if transaction.head(experiment).hash == last:
            return False
    except VerificationFailed:
        pass
    state = replay.state
    state.n_events += 1
    state.hash = last
    append_events(transaction, experiment, state, [(state.n_events, "rebuilt", now, who, *[None] * 10)])
    transaction.put(schema.arms, experiment, [state.arm_row(i, state.n_events) for i in range(len(state.names))])
    transaction.configure(experiment, state.configuration.to_json(), state.n_events)
    transaction.forget_all_pending(experiment)
    window = state.configuration.missing.window_microseconds
    if window is not None:
        states = replay.units.state[: replay.n_decisions]
        is_open = _IS_OPEN[states]
        for rows in transaction.stream(_ASSIGNED, experiment):
            pending = []
            for decision, at, unit, arm in rows:
                if is_open[decision]:
                    told = replay.units.reward[decision].item()
                    pending.append((at + window, decision, unit, arm, None if np.isnan(told) else told))
            if pending:
                transaction.put(schema.pending, experiment, pending)
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions, state.hash)
    rollup = rollup_of_log(transaction, experiment, state.configuration, state.n_events)
    checkpoint = checkpoint_of(rollup.mark._replace(hash=state.hash), now)
    write_rollup(transaction, experiment, rollup, checkpoint, everything=True)
    return True


_COPIED = (
    (schema.events, "number"),
    (schema.pending, "decision"),
    (schema.rollups, "hour, arm"),
    (schema.checkpoints, "event"),
    (schema.alerts, "id"),
)
"""What a copy has besides the experiment and its arms, and in which order."""


def copy(
    source: Transaction,
    experiment: int,
    name: str,
    target: Transaction,
    url: str,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Copy an experiment from one transaction to another and return its number there.

    `progress` is called with the number of events written and the total.
    """
    if source.database.identity(source.connection) == target.database.identity(target.connection):
        raise ExperimentExists(f"{url} is where {name!r} is already", hint="copy to another store")
    found = target.find(name)
    if found is not None:
        # A retry after the connection was lost during the commit may find the copy it has written itself.
        if _summary(source, experiment) == _summary(target, found):
            return found
        raise ExperimentExists(f"{url} has an experiment {name!r} already", hint="copy to another store")
    head = source.head(experiment)
    _, created_at, configuration = source.configuration(experiment)
    number = target.create(name, head.state, created_at, configuration)
    target.put(schema.arms, number, source.arms(experiment))
    for table, order in _COPIED:
        columns = ", ".join(table.columns.keys()[1:])
        statement = f"SELECT {columns} FROM {table.name} WHERE experiment = ? ORDER BY {order}"  # noqa: S608
        for rows in source.stream(statement, experiment):
            target.put(table, number, rows)
            if progress is not None and table is schema.events:
                progress(rows[-1][0], head.n_events)
    target.configure(number, configuration, head.configured)
    target.chain_from(number, source.chained_from(experiment))
    target.advance(number, head.state, head.n_events, head.n_decisions, head.hash)
    return number


def _summary(transaction: Transaction, experiment: int) -> tuple[Any, ...]:
    """Return a fingerprint that is equal for two copies of an experiment and differs once either has gone on."""
    head = transaction.head(experiment)
    last = [tuple(row) for row in transaction.events(experiment, head.n_events - 1, 1)]
    arms = [tuple(row) for row in transaction.arms(experiment)]
    return head[1:], transaction.configuration(experiment), arms, last
