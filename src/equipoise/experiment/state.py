"""Where an experiment stands after its last event: all that the next decision needs, in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import EquipoiseError, StoreMismatch, UnknownArm, UnknownName
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.decider import Decider
from equipoise.stats import ArmStats
from equipoise.unit_lifecycle import COUNTERS, N_DEFAULTED, N_DROPPED, N_HELD, N_OVERDUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise._types import IntArray
    from equipoise.store import Store, Transaction

ENROLLING, PAUSED, STOPPED, FINISHED = "enrolling", "paused", "stopped", "finished"
ACTIVE, RETIRED = "active", "retired"
"""States of an experiment, and of an arm, which may be paused too."""


class State:
    """One state. Committed states are shared and never changed: plans are made on a `copy`.

    `stats` is in the policy's sense, where large rewards are good; `counters` has a row each for rewards held back,
    units overdue, defaulted and dropped; `tracked_from` is what `stats.assigned` was when the set of arms in play
    changed last. It and the lists may be shared with copies; whoever changes one replaces it.
    """

    def __init__(self, name: str, created_at: int, configuration: Configuration) -> None:
        self.name = name
        self.created_at = created_at
        self.configuration = configuration
        self.state = ENROLLING
        self.n_events = 0
        self.n_decisions = 0
        self.names: list[str] = []
        self.arm_states: list[str] = []
        self.floors: list[float] = []
        self.positions: dict[str, int] = {}
        self.stats: ArmStats = ArmStats(1)
        self.counters: IntArray = np.zeros((COUNTERS, 1), np.int64)
        self.tracked_from: IntArray = np.zeros(1, np.int64)
        self._decider: Decider | None = None

    @property
    def decider(self) -> Decider:
        """What takes decisions for the arms in play."""
        if self._decider is None:
            self._decider = Decider(self.configuration, self.arm_states, self.floors, self.tracked_from)
        return self._decider

    def copy(self) -> State:
        """Return a state to plan on."""
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
        """Set the arms, of which there may be more than before, and what depends on them."""
        more = len(names) - self.stats.n_arms
        if more:
            larger = ArmStats(len(names))
            for attribute in ("assigned", "pulls", "mean", "std", "sums"):
                getattr(larger, attribute)[..., : self.stats.n_arms] = getattr(self.stats, attribute)
            larger.n_assigned = self.stats.n_assigned
            self.stats = larger
            self.counters = np.pad(self.counters, ((0, 0), (0, more)))
            self.tracked_from = np.pad(self.tracked_from, (0, more))
        self.names, self.arm_states, self.floors = names, arm_states, floors
        self.positions = {name: position for position, name in enumerate(names)}
        self._decider = None

    def change_arms(self, names: list[str], arm_states: list[str], floors: list[float]) -> None:
        """Set the arms as an event changes them; with others in play than before, tracking begins anew."""
        before = self.arms_in_play
        self.set_arms(names, arm_states, floors)
        if self.configuration.fresh_tracking and self.arms_in_play != before:
            self.tracked_from = self.stats.assigned.copy()

    @property
    def arms_in_play(self) -> list[int]:
        """Positions of the arms that new units may get."""
        return [position for position, state in enumerate(self.arm_states) if state == ACTIVE]

    def set_configuration(self, configuration: Configuration) -> None:
        """Set the configuration and what depends on it."""
        self.configuration = configuration
        self._decider = None

    def arm_row(self, position: int, changed: int) -> tuple[Any, ...]:
        """Return an arm as the store keeps it: sums are of rewards as they were told."""
        stats, sign = self.stats, self.configuration.sign
        reward_high, reward_low, square_high, square_low = stats.sums[:, position].tolist()
        counters = self.counters[:, position].tolist()
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
        )

    def read_arms(self, rows: Sequence[Sequence[Any]]) -> None:
        """Take over arms as the store keeps them."""
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
            self.stats.put(position, assigned, pulls, (sign * high, sign * low, square_high, square_low))
            for row, value in zip((N_HELD, N_OVERDUE, N_DEFAULTED, N_DROPPED), rest[:4], strict=True):
                self.counters[row, position] = value
            tracked_from[position] = rest[-1]
        if (tracked_from != self.tracked_from).any():
            self.tracked_from, self._decider = tracked_from, None


def load_state(store: Store, transaction: Transaction, experiment: int) -> State:
    """Return the state an open transaction sees; only what changed since the cached one is read."""
    head = transaction.head(experiment)
    cached: State | None = store.states.get(experiment)
    if cached is not None and cached.n_events == head.n_events:
        return cached
    if cached is None or cached.n_events > head.n_events:  # the second: a backup was put in place of the file
        name, created_at, text = transaction.configuration(experiment)
        state, after = State(name, created_at, _configuration(name, text)), -1
    else:
        state, after = cached.copy(), cached.n_events
        if head.configured > after:
            state.set_configuration(_configuration(state.name, transaction.configuration(experiment)[2]))
    state.read_arms(transaction.arms(experiment, after))
    state.state, state.n_events, state.n_decisions = head.state, head.n_events, head.n_decisions
    return state


def _configuration(name: str, text: str) -> Configuration:
    try:
        return Configuration.from_dict(json.loads(text))
    except UnknownName:  # of a policy that may well exist elsewhere
        raise
    except (EquipoiseError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreMismatch(
            f"the configuration of experiment {name!r} is damaged, or of a newer version: {error}",
            hint="the event `created` in its log tells what it was",
        ) from error


def keep_state(store: Store, experiment: int, state: State) -> None:
    """Cache a state that is committed; a slower thread must not put an older one back."""
    cached = store.states.get(experiment)
    if cached is None or cached.n_events <= state.n_events:
        store.states[experiment] = state
