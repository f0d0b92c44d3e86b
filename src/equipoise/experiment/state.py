"""The in-memory state of an experiment, all that the next decision needs, and the changes that events make to it.

Also the cache of states per store. The handlers of commands that change the experiment or its arms are in `changes`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.errors import EquipoiseError, Hint, InvalidInput, StoreMismatch, TooFewRewards, UnknownArm, UnknownName
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.decider import Decider
from equipoise.experiment.dial import kept_for_goal, settled_dial
from equipoise.experiment.event_kinds import CHANGES_NOTHING, DESCRIBED, KINDS
from equipoise.kernels import exact_digits, removes_exactly
from equipoise.kernels.exact_digits import ExactSums
from equipoise.stats import ArmStats
from equipoise.store.schema import EVENT_COLUMNS
from equipoise.unit_lifecycle import COUNTERS, N_DEFAULTED, N_DROPPED, N_HELD, N_OVERDUE, N_WITHDRAWN

if TYPE_CHECKING:
    from equipoise.store import Store, Transaction

log = logging.getLogger(__name__)

ENROLLING, PAUSED, STOPPED, FINISHED = "enrolling", "paused", "stopped", "finished"
ACTIVE, RETIRED = "active", "retired"
"""States of an experiment and of an arm; an arm may be paused too."""


class State:
    """State of an experiment after an event. Committed states are shared and never changed; commands change a `copy`.

    `stats` is on the policy's scale, where large rewards are good; `counters` has one row each for rewards held, units
    overdue, defaulted, dropped and withdrawn; `tracked_from` is `stats.assigned` as of the last change of the arms in
    play. It and the lists may be shared with copies: replace them, never change them in place.
    """

    def __init__(self, name: str, created_at: int, configuration: Configuration) -> None:
        self.name = name
        self.created_at = created_at
        self.configuration = configuration
        self.state = ENROLLING
        self.n_events = 0
        self.n_decisions = 0
        self.n_first = 1
        """How many arms there were at first."""
        self.hash: bytes | None = None
        """Hash of the last event."""
        self.names: list[str] = []
        self.arm_states: list[str] = []
        self.floors: list[float] = []
        self.positions: dict[str, int] = {}
        exact, weighted = removes_exactly(configuration.kernels), configuration.policy.weighs_rewards
        self.stats: ArmStats = ArmStats(1, exact=exact, weighted=weighted)
        self.counters: IntArray = np.zeros((COUNTERS, 1), np.int64)
        self.tracked_from: IntArray = np.zeros(1, np.int64)
        self._decider: Decider | None = None

    @property
    def decider(self) -> Decider:
        """The decider for the arms in play."""
        if self._decider is None:
            self._decider = Decider(self.configuration, self.arm_states, self.floors, self.tracked_from)
        return self._decider

    def copy(self) -> State:
        """Return a copy to change."""
        twin = object.__new__(State)
        twin.__dict__.update(self.__dict__)
        twin.stats, twin.counters = self.stats.copy(), self.counters.copy()
        return twin

    def position(self, arm: Any) -> int:
        """Return the position of an arm given by its name."""
        found = self.positions.get(arm) if isinstance(arm, str) else None
        if found is None:
            known = ", ".join(self.names[:12]) + (", ..." if len(self.names) > 12 else "")
            raise UnknownArm(f"unknown arm {arm!r}; the arms are {known}")
        return found

    def set_arms(self, names: list[str], arm_states: list[str], floors: list[float]) -> None:
        """Set the arms, perhaps more than before, and everything that depends on them."""
        more = len(names) - self.stats.n_arms
        if more:
            self.stats = self.stats.extended(len(names))
            self.counters = np.pad(self.counters, ((0, 0), (0, more)))
            self.tracked_from = np.pad(self.tracked_from, (0, more))
        self.names, self.arm_states, self.floors = names, arm_states, floors
        self.positions = {name: position for position, name in enumerate(names)}
        self._decider = None

    def change_arms(self, names: list[str], arm_states: list[str], floors: list[float]) -> None:
        """Set the arms as an event changes them; if the arms in play change, tracking restarts."""
        before = self.arms_in_play
        self.set_arms(names, arm_states, floors)
        if self.configuration.fresh_tracking and self.arms_in_play != before:
            self.tracked_from = self.stats.assigned.copy()

    @property
    def arms_in_play(self) -> list[int]:
        """Positions of the arms that new units may be assigned to."""
        return [position for position, state in enumerate(self.arm_states) if state == ACTIVE]

    @property
    def n_open_windows(self) -> int:
        """Number of units whose window has not passed, with or without a held reward."""
        if self.configuration.missing.window_seconds is None:
            return 0
        closed = self.counters[[N_OVERDUE, N_DROPPED, N_WITHDRAWN]].sum(axis=0)
        return int((self.stats.assigned - self.stats.pulls - closed).sum())

    def set_configuration(self, configuration: Configuration) -> None:
        """Set the configuration and everything that depends on it."""
        self.configuration = configuration
        self._decider = None

    def arm_row(self, position: int, changed: int) -> tuple[Any, ...]:
        """Return an arm as a row of the store; sums are of rewards as reported."""
        stats, sign = self.stats, self.configuration.sign
        reward_high, reward_low, square_high, square_low = stats.sums[:, position].tolist()
        counters = self.counters[:, position].tolist()
        digits = stats.digits[position]
        return (
            position,
            self.names[position],
            self.arm_states[position],
            self.floors[position],
            stats.assigned.item(position),
            stats.pulls.item(position),
            sign * reward_high,
            sign * reward_low,
            square_high,
            square_low,
            *(counters[row] for row in (N_HELD, N_OVERDUE, N_DEFAULTED, N_DROPPED)),
            changed,
            self.tracked_from.item(position),
            _exact_text(None if digits is None else digits.tobytes(), sign),
            counters[N_WITHDRAWN],
            None if stats.drift_sums is None else _drift_text(stats.drift_sums[:, position], sign),
        )

    def read_arms(self, rows: Sequence[Sequence[Any]]) -> None:
        """Load the arms from rows of the store."""
        names, arm_states, floors = list(self.names), list(self.arm_states), list(self.floors)
        for position, name, state, floor, *_ in rows:
            if position >= len(names):
                names.append(name)
                arm_states.append(state)
                floors.append(floor)
            names[position], arm_states[position], floors[position] = name, state, floor
        if (names, arm_states, floors) != (self.names, self.arm_states, self.floors):
            self.set_arms(names, arm_states, floors)
        sign, tracked_from = self.configuration.sign, self.tracked_from.copy()
        for position, _, _, _, assigned, pulls, high, low, square_high, square_low, *rest in rows:
            *counters, _, tracked_from[position], text, self.counters[N_WITHDRAWN, position], drift = rest
            exact = None if text is None else _signed(_exact_sums(self.name, text), sign)
            sums = sign * high, sign * low, square_high, square_low
            self.stats.put(position, assigned, pulls, sums, exact, _drift_of(drift, sign))
            for row, value in zip((N_HELD, N_OVERDUE, N_DEFAULTED, N_DROPPED), counters, strict=True):
                self.counters[row, position] = value
        if (tracked_from != self.tracked_from).any():
            self.tracked_from, self._decider = tracked_from, None


_OF_REWARDS = (4, 5, 12, 13)
"""Rows of `ArmStats.drift_sums` that change their sign with the rewards."""


def _drift_text(sums: FloatArray, sign: float) -> str:
    """Return an arm's sums under drift, of rewards as reported, in digits from which they can be read back exactly."""
    values = sums.tolist()
    for row in _OF_REWARDS:
        values[row] *= sign
    return json.dumps(values)


def _drift_of(text: str | None, sign: float) -> list[float] | None:
    """Return an arm's sums under drift, on the policy's scale; None if its experiment keeps none."""
    if text is None:
        return None
    values: list[float] = list(map(float, json.loads(text)))
    for row in _OF_REWARDS:
        values[row] *= sign
    return values


@lru_cache(maxsize=1024)
def _exact_text(digits: bytes | None, sign: float) -> str:
    """Return an arm's exact sums of rewards as reported; cached, since most transactions assign and change no sum."""
    if digits is None:
        return exact_digits.to_text((0, 0, 0, 0))
    rows = np.frombuffer(digits, np.int64).reshape(-1, exact_digits.DIGITS)
    return exact_digits.to_text(_signed(exact_digits.from_digits(rows), sign))


def _signed(sums: ExactSums, sign: float) -> ExactSums:
    """Return exact sums of rewards times 1 or -1: odd powers change their sign."""
    return tuple(-one if sign < 0 and row % 2 == 0 else one for row, one in enumerate(sums))


def _exact_sums(name: str, text: str) -> ExactSums:
    """Return the exact sums that the store has of an arm."""
    try:
        return exact_digits.from_text(text)
    except ValueError as error:
        raise StoreMismatch(f"the arms of experiment {name!r} are damaged: {error}", hint=Hint.REBUILD) from error


def load_state(store: Store, transaction: Transaction, experiment: int, name: str) -> State:
    """Return the state that a transaction sees; reads only what changed since the cached one.

    Name and number are checked together: in another store, the number may be that of another experiment.
    """
    cached: State | None = store.states.get(experiment)
    head = transaction.head(experiment, 0 if cached is None else cached.n_events)
    if head.name != name:
        store.states.pop(experiment, None)
        transaction.require_name(experiment, name)
    if cached is not None and (cached.n_events > head.n_events or cached.hash != head.seen_hash):
        log.warning(
            "the store went back in time: experiment %r had %d events and has others now; reading it again",
            cached.name,
            cached.n_events,
        )
        store.states.pop(experiment, None)
        cached = None
    if cached is not None and cached.n_events == head.n_events:
        return cached
    if cached is None:
        _, created_at, text = transaction.configuration(experiment)
        state, after = State(name, created_at, read_configuration(name, text)), -1
        n_first = _n_first_arms(transaction, experiment)
    else:
        state, after = cached.copy(), cached.n_events
        n_first = state.n_first
        if head.configured > after:
            state.set_configuration(read_configuration(state.name, transaction.configuration(experiment)[2]))
    try:
        state.read_arms(transaction.arms(experiment, after))
    except (LookupError, OverflowError, TypeError, ValueError) as error:  # SQLite's columns hold values of any type
        raise StoreMismatch(f"the arms of experiment {state.name!r} are damaged", hint=Hint.REBUILD) from error
    state.n_first = len(state.names) if n_first is None else n_first
    state.state, state.n_events, state.n_decisions = head.state, head.n_events, head.n_decisions
    state.hash = head.hash
    return state


_DETAILS = EVENT_COLUMNS.index("details")


def _n_first_arms(transaction: Transaction, experiment: int) -> int | None:
    """Return how many arms an experiment was made with, from the first event of its log; None if it is damaged.

    `verify` finds the damage, and says where it is.
    """
    created = transaction.events(experiment, 0, 1)
    try:
        return len(json.loads(created[0][_DETAILS])["arms"])
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def read_configuration(name: str, text: str) -> Configuration:
    """Return the configuration in an experiment's row; raise `StoreMismatch` if it is damaged."""
    try:
        return Configuration.from_dict(json.loads(text))
    except UnknownName:  # the policy may well be defined in another program
        raise
    except (EquipoiseError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreMismatch(
            f"the configuration of experiment {name!r} is damaged, or of a newer version: {error}",
            hint="the event `created` in its log tells what it was",
        ) from error


def keep_state(store: Store, experiment: int, state: State) -> None:
    """Cache a committed state; a slower thread must not overwrite it with an older one."""
    cached = store.states.get(experiment)
    if cached is None or cached.n_events <= state.n_events:
        store.states[experiment] = state


_STATE_AFTER = {"paused": PAUSED, "resumed": ENROLLING, "stopped": STOPPED, "finished": FINISHED}
_ARM_STATE_AFTER = {"arm_paused": PAUSED, "arm_resumed": ACTIVE, "arm_retired": RETIRED}


def created_state(name: str, at: int, details: dict[str, Any]) -> State:
    """Return the state after the first event of a log."""
    state = State(name, at, Configuration.from_dict(details["configuration"]))
    names, floors = [arm["name"] for arm in details["arms"]], [float(arm["floor"]) for arm in details["arms"]]
    state.set_arms(names, [ACTIVE] * len(names), floors)
    state.n_events, state.n_first = 1, len(names)
    return state


def apply_change(state: State, kind: str, arm: int | None, details: dict[str, Any]) -> None:
    """Apply an event of this kind to a state."""
    if kind in _STATE_AFTER:
        state.state = _STATE_AFTER[kind]
    elif kind in _ARM_STATE_AFTER:
        arm_states = list(state.arm_states)
        arm_states[_known(arm, len(arm_states))] = _ARM_STATE_AFTER[kind]
        state.change_arms(state.names, arm_states, state.floors)
    elif kind == "arm_added":
        state.change_arms(
            [*state.names, details["name"]], [*state.arm_states, ACTIVE], [*state.floors, float(details["floor"])]
        )
    elif kind == "weight_changed":
        state.set_configuration(state.configuration.with_dial({"reward_weight": details["reward_weight"]}))
    elif kind == "dial_changed":
        state.set_configuration(state.configuration.with_dial(details["dial"]))
    elif kind == DESCRIBED:
        state.configuration = state.configuration.with_description(details["description"])
    elif kind not in CHANGES_NOTHING:  # `rebuilt` makes other processes reload the tables
        raise InvalidInput(f"unknown kind of event {kind!r}; known are {', '.join(KINDS)}")


def checked_change(state: State, make: Callable[[State], None]) -> None:
    """Apply a change only if the policy can still decide after it."""
    twin = state.copy()
    make(twin)
    twin.decider  # noqa: B018  (raises if the policy does not fit the arms)
    make(state)


def _known(arm: int | None, n_arms: int) -> int:
    if arm is None or not 0 <= arm < n_arms:
        raise InvalidInput(f"an event names arm {arm}; there are {n_arms}")
    return arm


def dial_from(state: State, stated: dict[str, Any]) -> dict[str, Any]:
    """Return the dial that a policy takes, from what is stated; a goal is judged by the present estimates."""

    def kept_for(about: str) -> float:
        half_width, units = stated["half_width"], stated["units"]
        if units < state.stats.n_assigned:
            raise InvalidInput.of("units", f"must be at least {state.stats.n_assigned:,}, the units so far", units)
        decider = state.decider
        std = state.stats.std[decider.active]
        if not np.isfinite(std).all():
            raise too_few_rewards(state)
        failure = state.configuration.failure_probability
        return kept_for_goal(
            std, decider.share, half_width=half_width, units=units, about=about, failure_probability=failure
        )

    return settled_dial(stated, state.configuration.dial, kept_for)


def too_few_rewards(state: State) -> TooFewRewards:
    """Return the error for a call that needs an estimate of every arm in play."""
    return TooFewRewards(f"experiment {state.name!r} has too few rewards yet to estimate every arm in play")
