"""Read an experiment's log as columns of decisions, with the probabilities of all arms, by replaying it once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec
import numpy as np

from equipoise.analysis.attributes import Attribute
from equipoise.analysis.observations import Observations
from equipoise.errors import Hint, InvalidInput, VerificationFailed
from equipoise.experiment.state import FINISHED, State
from equipoise.experiment.verification import EVENTS, Replay
from equipoise.kernels import log_replay
from equipoise.store import Transaction
from equipoise.unit_lifecycle import (
    ASSIGNED,
    DEFAULT_VALUE,
    HELD,
    OTHER,
    OVERDUE,
    REWARD,
    REWARDED,
    STATES,
    UNIT_EVENTS,
    WAITING,
)

LARGEST_TABLE = 50_000_000
"""Most probabilities that are kept, decisions times arms: 400 MB."""

_ESTIMATE = np.array([STATES[state].estimate for state in range(len(STATES))])

# Of an event, one whole number for its kind, its arm or its decision, and whether its reward counts; a value, its
# probability or its reward; and its time. Nearly all of the time goes into making objects for Python, so that the
# twelve columns that `verify` reads take twice as long.
_CODES = " ".join(
    f"WHEN '{name}' THEN {'COALESCE(arm, -1)' if code == ASSIGNED else '(decision * 2 + counted)'} * 8 + {code}"
    for name, code in UNIT_EVENTS.items()
)
OBSERVED = f"""
SELECT CASE kind {_CODES} ELSE {OTHER} END, COALESCE(probability, reward), at{{details}}
FROM events WHERE experiment = ? AND number > ? AND number <= ?
"""  # noqa: S608
_ONE_EVENT = f"{EVENTS} AND number = ?"
_DETAILS = ", CASE WHEN kind = 'assigned' THEN details END"


def read_observations(
    transaction: Transaction,
    experiment: int,
    name: str,
    *,
    attributes: Sequence[str] | None = (),
    optional: Collection[str] = (),
    now: int | None = None,
) -> Observations:
    """Replay a log and return its decisions.

    Decisions that this version of the package cannot replay are read without the probabilities of all arms, and the
    result's `notes` say so.

    Parameters
    ----------
    transaction : Transaction
        Where to read.
    experiment, name : int, str
        The experiment's number in the store, and its name for errors.
    attributes : sequence of str, optional
        Attributes of units to read; None for all that there are. A few values of another type than the others count as
        missing, and are noted. An attribute of mixed types, or that no unit has, is an error if it was named.
    optional : collection of str
        Those of them that are left out instead, and noted.
    now : int, optional
        The time in microseconds: units whose window has passed by then are overdue. The last event's by default.

    Raises
    ------
    VerificationFailed
        If the log contradicts itself, or its decisions are not those that the policy takes.
    """
    log = observed_log(transaction, experiment, name, attributes=attributes, optional=optional)
    return log.observations(now, lambda at: unit_at(transaction, experiment, at))


def observed_log(
    transaction: Transaction,
    experiment: int,
    name: str,
    *,
    attributes: Sequence[str] | None = (),
    optional: Collection[str] = (),
    last: int | None = None,
) -> ObservedLog:
    """Replay a log, the whole of it or up to an event; the other parameters are those of `read_observations`."""
    log = ObservedLog(name, None if attributes is None else tuple(dict.fromkeys(attributes)), optional)
    return log.read(transaction, experiment, last)


def unit_at(transaction: Transaction, experiment: int, decision: int) -> str:
    """Return how to name the unit of a decision in an error."""
    statement = "SELECT unit FROM events WHERE experiment = ? AND kind = 'assigned' AND decision = ?"
    return f"unit {transaction.execute(statement, experiment, decision)[0][0]!r}"


class ObservedLog(Replay):
    """A replay that keeps each decision's time, rewards and their times, and the probabilities of all arms.

    It compares arms and probabilities, states of units and what counts. `verify` compares everything else too.

    Parameters
    ----------
    name : str
        Name of the experiment.
    attributes : tuple of str or None
        Attributes of units to keep; None for all.
    optional : collection of str
        Those of them that are left out, and noted, if they cannot be used.
    compare : bool, default True
        Whether to recompute every decision; otherwise the probabilities of all arms are left out.
    """

    def __init__(
        self,
        name: str,
        attributes: tuple[str, ...] | None = (),
        optional: Collection[str] = (),
        *,
        compare: bool = True,
    ) -> None:
        super().__init__(name, compare=compare)
        self._attributes = _AttributeColumns(attributes, optional)
        self._notes: list[str] = []
        self.last_at = 0
        """Time of the last event, in microseconds."""

    def read(self, transaction: Transaction, experiment: int, last: int | None = None) -> ObservedLog:
        """Replay a log, the whole of it or up to an event."""
        head = transaction.head(experiment)
        n_events = head.n_events if last is None else min(last, head.n_events)
        self.make_room(min(head.n_decisions, n_events), len(transaction.arms(experiment)))
        wants_details = self._attributes.wanted != ()
        statement = OBSERVED.format(details=_DETAILS if wants_details else "")
        for rows in transaction.stream(f"{statement} ORDER BY number", experiment, 0, n_events):
            self.read_rows(rows, lambda number: self._event(transaction, experiment, number), wants_details)
        self.finish()
        if self.n_events != n_events or (n_events == head.n_events and self.n_decisions != head.n_decisions):
            self._refuse_length(self.n_events, self.n_decisions)
        return self

    def finish(self) -> None:
        """Complete the state, when all events are read."""
        state = self.state
        state.n_events, state.n_decisions = self.n_events, self.n_decisions
        state.stats.n_assigned = int(state.stats.assigned.sum())

    def _refuse_length(self, n_events: int, n_decisions: int) -> NoReturn:
        raise VerificationFailed(
            f"the log of experiment {self.name!r} and its row in the store differ: {n_events:,} events with "
            f"{n_decisions:,} decisions were read, and other numbers are recorded",
            hint=Hint.VERIFY,
        )

    def _event(self, transaction: Transaction, experiment: int, number: int) -> Sequence[Any]:
        """Return the columns of one event that `verify` reads of all."""
        found = transaction.execute(_ONE_EVENT, experiment, number)
        if not found:
            self._differ(number, "is not in the log", "others after it")
        return found[0]

    def make_room(self, n_decisions: int, n_arms: int) -> None:
        """Make room for the whole log at once: growing step by step would take twice the memory."""
        size = max(n_decisions, 1)
        self.units = log_replay.new_units(size)
        self._at, self._rewarded_at = np.zeros(size, np.int64), np.full(size, -1, np.int64)
        self._probability, self._first_reward = np.zeros(size), np.full(size, np.nan)
        self._counted_after, self._counted_event = np.full(size, -1, np.int64), np.zeros(size, np.int64)
        if not self.compare:
            return
        if size * n_arms <= LARGEST_TABLE:
            self.chances = np.zeros((size, n_arms))
        else:
            self._leave_chances(f"{n_decisions:,} decisions among {n_arms:,} arms are too many to keep in memory")

    def read_rows(
        self, rows: Sequence[Sequence[Any]], event: Callable[[int], Sequence[Any]], has_details: bool = False
    ) -> None:
        """Replay the next events; `event` returns all columns of the one of a number."""
        columns = tuple(zip(*rows, strict=True))
        first, before = self.n_events, self.n_decisions
        try:
            code = np.array(columns[0], np.int64)
            value = np.array(columns[1], np.float64)
            at = np.array(columns[2], np.int64)
        except (OverflowError, TypeError, ValueError):
            raise VerificationFailed(
                f"events {first + 1:,} to {first + len(rows):,} of experiment {self.name!r} should have numbers in "
                "their places; got a value of another type",
                hint=Hint.VERIFY,
            ) from None
        kind, rest = code & 7, code >> 3
        assigned = kind == ASSIGNED
        taken = np.cumsum(assigned)
        decision = np.where(assigned, before + taken - 1, rest >> 1)
        counted = np.where(assigned | (kind == OTHER), 0, rest & 1)
        if before + taken[-1] > self._at.size:
            self._refuse_length(first + len(rows), before + int(taken[-1]))
        no_numbers, nothing = np.empty(0, np.int64), np.empty(0)
        events = log_replay.Events(
            kind=kind,
            unit=no_numbers,
            arm=np.where(assigned, rest, 0),
            decision=decision,
            reward=value,
            probability=value,
            forced=no_numbers,
            counted=counted,
            replaced=nothing,
            weight=nothing,
        )
        self.follow(events, lambda place: event(first + place + 1))
        self.last_at = int(at[-1])
        own = decision[assigned]
        self._at[own], self._probability[own] = at[assigned], value[assigned]
        if has_details:
            self._attributes.read([text for text, is_new in zip(columns[3], assigned.tolist(), strict=True) if is_new])
        told = kind == REWARDED
        own = decision[told]
        self._rewarded_at[own], self._first_reward[own] = at[told], value[told]
        counts = counted == 1
        own = decision[counts]  # a unit may be here twice; the last stays
        self._counted_after[own] = before + taken[counts]
        self._counted_event[own] = first + 1 + np.flatnonzero(counts)

    def _prepare(self, state: State) -> None:
        super()._prepare(state)
        if len(self.chances) and state.stats.n_arms > self.chances.shape[1]:
            raise VerificationFailed(
                f"the log of experiment {self.name!r} has {state.stats.n_arms} arms, and the table of arms fewer",
                hint=Hint.REBUILD,
            )

    def _check_version(self, version: Any) -> None:
        """Trust the decisions of other versions, and leave the probabilities out."""
        try:
            super()._check_version(version)
        except VerificationFailed as error:
            self.compare = False
            self._leave_chances(error.message)

    def _leave_chances(self, why: str) -> None:
        self.chances = np.zeros((0, 0))
        self._notes.append(f"the probabilities of all arms are not known: {why}")

    def _compare(self, events: log_replay.Events, row: Callable[[int], Sequence[Any]], at: int) -> None:
        """Compare one decision of a policy written in Python, and keep the probabilities that it gives."""
        state, arm, probability = self.state, events.arm.item(at), events.probability.item(at)
        if state.decider.decide(state.stats, self.n_decisions)[:2] != (arm, probability):
            self._explain(row(at), log_replay.BAD_ARM)
        if not len(self.chances):
            return
        chances = state.decider.chances(state.stats)
        if chances[arm] == probability:
            self.chances[self.n_decisions, : chances.size] = chances
        else:
            policy = type(state.configuration.policy).__name__
            self._leave_chances(f"{policy}.probabilities says otherwise than {policy}.choose")

    def windows(self, now: int) -> tuple[dict[int, int], int | None]:
        """Return how many units of each arm are due at a time without a reward, and when the last window passes."""
        window, n = self.state.configuration.missing.window_microseconds, self.n_decisions
        if window is None:
            return {}, None
        due_at, unit_state = self._at[:n] + window, self.units.state[:n]
        is_due = (unit_state == WAITING) & (due_at <= now)
        n_due = np.bincount(self.units.arm[:n][is_due])
        is_open = np.isin(unit_state, (WAITING, HELD)) & (due_at > now)
        last = int(due_at[is_open].max()) if is_open.any() else None
        return {arm: count for arm, count in enumerate(n_due.tolist()) if count}, last

    def observations(self, now: int | None = None, where: Callable[[int], str] = "decision {}".format) -> Observations:
        """Return what was read; `where` names the unit of a decision in errors."""
        state, n = self.state, self.n_decisions
        configuration, missing = state.configuration, state.configuration.missing
        at, told_at, window = self._at[:n], self._rewarded_at[:n], missing.window_microseconds
        until = self.last_at if now is None or state.state == FINISHED else max(now, self.last_at)
        unit_state = self.units.state[:n].copy()
        if window is not None:
            unit_state[(unit_state == WAITING) & (at + window <= until)] = OVERDUE
        estimate = _ESTIMATE[unit_state]
        default = np.nan if missing.default is None else missing.default
        cap = np.inf if configuration.reward_cap is None else configuration.reward_cap
        reward = np.where(estimate == REWARD, np.minimum(self.units.reward[:n], cap), np.nan)
        reward[estimate == DEFAULT_VALUE] = default
        counts = ~np.isnan(reward)
        order = np.argsort(self._counted_event[:n], kind="stable")
        attributes, notes = self._attributes.finished(n, self.name, where)
        return Observations(
            arms=tuple(state.names),
            arm=self.units.arm[:n],
            reward=reward,
            probability=self._probability[:n],
            probabilities=self.chances[:n, : len(state.names)] if len(self.chances) else None,
            at=at / 1e6,
            rewarded_at=np.where(told_at < 0, np.nan, told_at / 1e6),
            counted_after=np.where(counts, self._counted_after[:n], -1),
            counted_order=order[counts[order]],
            state=unit_state,
            first_reward=np.minimum(self._first_reward[:n], cap),
            attributes=MappingProxyType(attributes),
            reward_range=configuration.counted_range,
            default=missing.default,
            direction=configuration.direction,
            window_seconds=missing.window_seconds,
            hold=missing.hold,
            until=until / 1e6,
            notes=(*self._notes, *notes),
        )


class _AttributeColumns:
    """Attributes of units, one list of values for each name, from the details of assignments."""

    def __init__(self, wanted: tuple[str, ...] | None, optional: Collection[str]) -> None:
        self.wanted = wanted
        self._optional = optional
        self._values: dict[str, list[Any]] = {} if wanted is None else {name: [] for name in wanted}
        self._n_read = 0
        kind: Any = dict[str, Any]
        if wanted is not None:  # a decoder that passes over all other names takes half of the time
            fields = [(f"field_{i}", Any, None) for i in range(len(wanted))]
            kind = msgspec.defstruct("Wanted", fields, rename=dict(zip((f[0] for f in fields), wanted, strict=True)))
        details: Any = msgspec.defstruct("Details", [("attributes", kind | None, None)])
        self._decoder = msgspec.json.Decoder(details)

    def read(self, details: Sequence[str | None]) -> None:
        """Read the details of the next assignments."""
        decode, values = self._decoder.decode, self._values
        try:
            found = [None if text is None else decode(text).attributes for text in details]
        except msgspec.DecodeError as error:
            raise VerificationFailed(f"details of an assignment cannot be read: {error}") from error
        if self.wanted is None:
            for place, attributes in enumerate(found, self._n_read):
                for name, value in (attributes or {}).items():
                    column = values.setdefault(name, [])
                    column.extend([None] * (place - len(column)))
                    column.append(value)
        else:
            for i, name in enumerate(self.wanted):
                field = attrgetter(f"field_{i}")
                values[name].extend([None if one is None else field(one) for one in found])
        self._n_read += len(details)

    def finished(
        self, n_decisions: int, experiment: str, where: Callable[[int], str]
    ) -> tuple[dict[str, Attribute], list[str]]:
        """Return the attributes, and notes on what cannot be used of them."""
        attributes, notes = {}, []
        for name, values in self._values.items():
            values.extend([None] * (n_decisions - len(values)))
            try:
                attribute, note = Attribute.mostly(name, values, where)
                if self.wanted is not None and n_decisions and not attribute.known.any():
                    raise InvalidInput(
                        f"no unit of experiment {experiment!r} has an attribute {name!r}", hint=Hint.LOG_ATTRIBUTES
                    )
            except InvalidInput as error:
                if self.wanted is not None and name not in self._optional:
                    raise
                notes.append(error.message)
                continue
            if note:
                notes.append(note)
            attributes[name] = attribute
        return attributes, notes
