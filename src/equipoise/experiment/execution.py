"""Execute commands: check, read, work out what changes and write it in one transaction of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput
from equipoise.experiment import commands
from equipoise.experiment.commands import Request, UnitRequest
from equipoise.experiment.event_log import latest_changes, read_units
from equipoise.experiment.hash_chain import append_events
from equipoise.experiment.names import checked_who
from equipoise.experiment.state import FINISHED, apply_change, created_state, keep_state, load_state
from equipoise.experiment.transitions import HANDLERS, MOST_SETTLED, Transition, transition
from equipoise.store import Store, Transaction, schema
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.experiment.configuration import Configuration


def carry_out(
    store: Store,
    experiment: int,
    name: str,
    requests: Sequence[Request],
    *,
    together: bool,
    lock_seconds: float | None = None,
) -> Transition:
    """Execute commands and return the transition once it is durable; with `together`, the first error rolls all back.

    With `lock_seconds`, raise `StoreBusy` if another writer has the experiment's lock for that long.
    """
    made = store.change(experiment, *_work(store, experiment, name, requests, together), lock_seconds=lock_seconds)
    keep_state(store, experiment, made.state)
    return made


def _work(
    store: Store, experiment: int, name: str, requests: Sequence[Request], together: bool
) -> tuple[Callable[[Transaction], Transition], list[str]]:
    """Return the function to run in a transaction, and the units it concerns."""
    checked: Any = [_checked(request) for request in requests]
    if together:
        _raise_first(checked)
    units = list(dict.fromkeys(request.unit for request in checked if isinstance(request, UnitRequest)))

    def work(transaction: Transaction) -> Transition:
        last = store.states.get(experiment)
        state = load_state(store, transaction, experiment, name)
        missing = state.configuration.missing
        now = microseconds(store.now())
        windowed = missing.window_seconds is not None and state.state != FINISHED
        due = transaction.due(experiment, now, MOST_SETTLED) if windowed else ()
        names = units
        if state.stats.drift_sums is not None:  # whose weights need the probability of each unit
            names = list(dict.fromkeys((*units, *(row[2] for row in due))))
        known = read_units(transaction.unit_events(experiment, names), missing) if names else {}
        finishing = any(type(request) is commands.Finish for request in checked)
        last_window = transaction.last_window(experiment) if finishing else None
        latest = latest_changes(transaction, experiment) if any(map(_looks_back, checked)) else ()
        made = transition(state, known, due, checked, now, last_window, latest)
        made.after_others = last is not None and last is not state
        if together:
            _raise_first(made.results)
        write_transition(transaction, experiment, made)
        return made

    return work, units


def _checked(request: Any) -> Any:
    if type(request) not in HANDLERS:
        return InvalidInput(f"a request must be one of Ask, Tell, Correct, ...; got {request!r}")
    try:
        request.check()
    except EquipoiseError as error:
        return error
    return request


def _looks_back(request: Any) -> bool:
    """Return whether a command depends on the changes before it."""
    if isinstance(request, commands.Change):
        return request.expected_change is not None
    return isinstance(request, (commands.Note, commands.Mute, commands.Unmute))


def _raise_first(results: Iterable[Any]) -> None:
    for result in results:
        if isinstance(result, EquipoiseError):
            raise result


def write_transition(transaction: Transaction, experiment: int, made: Transition) -> None:
    """Write the changes of a transition, without committing."""
    if not made.events:
        return
    state = made.state
    if made.forget_pending:
        transaction.forget_pending(experiment, made.forget_pending)
    if made.configured is not None:
        transaction.configure(experiment, state.configuration.to_json(), made.configured)
    transaction.buffer_writes()
    append_events(transaction, experiment, state, made.events)
    if made.touched:
        rows = [state.arm_row(position, state.n_events) for position in sorted(made.touched)]
        transaction.put(schema.arms, experiment, rows)
    if made.put_pending:
        transaction.put(schema.pending, experiment, list(made.put_pending.values()))
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions, state.hash)


def create(
    store: Store,
    name: str,
    configuration: Configuration,
    arms: Sequence[tuple[str, float]],
    who: str | None,
    *,
    paused: bool,
) -> int:
    """Write a new experiment, whose arms come with their floors, paused at once or not, and return its number."""
    details: dict[str, Any] = {
        "configuration": configuration.to_dict(),
        "arms": [{"name": arm, "floor": share} for arm, share in arms],
    }
    state = created_state(name, microseconds(store.now()), details)
    state.decider  # noqa: B018  (raises if the policy does not fit the arms)
    first = Transition(state, touched=set(range(len(state.names))))
    text = state.configuration.to_json()
    text_of_details = json.dumps(details, allow_nan=False)
    author = checked_who(who)
    first.events.append((1, "created", state.created_at, author, *[None] * 8, text_of_details, None))
    if paused:
        apply_change(state, "paused", None, {})
        state.n_events = 2
        first.events.append((2, "paused", state.created_at, author, *[None] * 10))

    def work(transaction: Transaction) -> int:
        number = transaction.find(name)
        if number is not None:
            # A retry after the connection was lost during the commit may find the experiment it has written itself.
            if transaction.configuration(number) == (name, state.created_at, text):
                return number
            raise ExperimentExists(f"{store.url} has an experiment {name!r} already", hint=Hint.ANOTHER_NAME)
        number = transaction.create(name, state.state, state.created_at, text)
        write_transition(transaction, number, first)
        return number

    return store.change(None, work)
