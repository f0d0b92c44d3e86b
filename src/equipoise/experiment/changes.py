"""Events that change the experiment itself, not a unit: what each does to the state, live and in a replay alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput
from equipoise.experiment.configuration import Configuration
from equipoise.experiment.state import ACTIVE, ENROLLING, FINISHED, PAUSED, RETIRED, STOPPED, State

if TYPE_CHECKING:
    from collections.abc import Callable

_STATE_AFTER = {"paused": PAUSED, "resumed": ENROLLING, "stopped": STOPPED, "finished": FINISHED}
_ARM_STATE_AFTER = {"arm_paused": PAUSED, "arm_resumed": ACTIVE, "arm_retired": RETIRED}
UNIT_KINDS = ("assigned", "rewarded", "counted", "expired", "corrected")
KINDS = ("created", *UNIT_KINDS, *_STATE_AFTER, "arm_added", *_ARM_STATE_AFTER, "weight_changed", "rebuilt")
"""Every kind of event in a log."""


def created_state(name: str, at: int, details: dict[str, Any]) -> State:
    """Return the state after the first event of a log."""
    state = State(name, at, Configuration.from_dict(details["configuration"]))
    names, floors = [arm["name"] for arm in details["arms"]], [float(arm["floor"]) for arm in details["arms"]]
    state.set_arms(names, [ACTIVE] * len(names), floors)
    state.n_events = 1
    return state


def apply_change(state: State, kind: str, arm: int | None, details: dict[str, Any]) -> None:
    """Change a state as an event of this kind does."""
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
        state.set_configuration(state.configuration.with_weight(details["reward_weight"]))
    elif kind != "rebuilt":  # which tells other processes to read the tables again, and changes nothing else
        raise InvalidInput(f"unknown kind of event {kind!r}; known are {', '.join(KINDS)}")


def checked_change(state: State, make: Callable[[State], None]) -> None:
    """Apply a change only if decisions can be taken after it."""
    twin = state.copy()
    make(twin)
    twin.decider  # noqa: B018  (raises if the policy does not fit the arms)
    make(state)


def _known(arm: int | None, n_arms: int) -> int:
    if arm is None or not 0 <= arm < n_arms:
        raise InvalidInput(f"an event names arm {arm}; there are {n_arms}")
    return arm
