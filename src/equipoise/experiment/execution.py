"""Execute commands: check, read, plan and write them in one transaction of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput
from equipoise.experiment import commands
from equipoise.experiment.commands import Request, UnitRequest
from equipoise.experiment.event_log import read_units
from equipoise.experiment.hash_chain import append_events
from equipoise.experiment.names import checked_who
from equipoise.experiment.plan import HANDLERS, MOST_SETTLED, Plan, plan
from equipoise.experiment.state import FINISHED, created_state, keep_state, load_state
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
) -> Plan:
    """Execute commands and return the plan once it is durable; with `together`, the first error rolls all back.

    With `lock_seconds`, raise `StoreBusy` if another writer has the experiment's lock for that long.
    """
    planned = store.change(experiment, *_work(store, experiment, name, requests, together), lock_seconds=lock_seconds)
    keep_state(store, experiment, planned.state)
    return planned


def _work(
    store: Store, experiment: int, name: str, requests: Sequence[Request], together: bool
) -> tuple[Callable[[Transaction], Plan], list[str]]:
    """Return the function to run in a transaction, and the units it concerns."""
    checked: Any = [_checked(request) for request in requests]
    if together:
        _raise_first(checked)
    units = list(dict.fromkeys(request.unit for request in checked if isinstance(request, UnitRequest)))

    def work(transaction: Transaction) -> Plan:
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
        planned = plan(state, known, due, checked, now, last_window)
        planned.after_others = last is not None and last is not state
        if together:
            _raise_first(planned.results)
        write_plan(transaction, experiment, planned)
        return planned

    return work, units


def _checked(request: Any) -> Any:
    if type(request) not in HANDLERS:
        return InvalidInput(f"a request must be one of Ask, Tell, Correct, ...; got {request!r}")
    try:
        request.check()
    except EquipoiseError as error:
        return error
    return request


def _raise_first(results: Iterable[Any]) -> None:
    for result in results:
        if isinstance(result, EquipoiseError):
            raise result


def write_plan(transaction: Transaction, experiment: int, plan: Plan) -> None:
    """Write the changes of a plan, without committing."""
    if not plan.events:
        return
    state = plan.state
    if plan.forget_pending:
        transaction.forget_pending(experiment, plan.forget_pending)
    if plan.configured is not None:
        transaction.configure(experiment, state.configuration.to_json(), plan.configured)
    transaction.buffer_writes()
    append_events(transaction, experiment, state, plan.events)
    if plan.touched:
        rows = [state.arm_row(position, state.n_events) for position in sorted(plan.touched)]
        transaction.put(schema.arms, experiment, rows)
    if plan.put_pending:
        transaction.put(schema.pending, experiment, list(plan.put_pending.values()))
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions, state.hash)


def create(
    store: Store, name: str, configuration: Configuration, arms: Sequence[tuple[str, float]], who: str | None
) -> int:
    """Write a new experiment, whose arms come with their floors, and return its number."""
    details: dict[str, Any] = {
        "configuration": configuration.to_dict(),
        "arms": [{"name": arm, "floor": share} for arm, share in arms],
    }
    state = created_state(name, microseconds(store.now()), details)
    state.decider  # noqa: B018  (raises if the policy does not fit the arms)
    first = Plan(state, touched=set(range(len(state.names))))
    text = state.configuration.to_json()
    text_of_details = json.dumps(details, allow_nan=False)
    created = (1, "created", state.created_at, checked_who(who), *[None] * 8, text_of_details, None)
    first.events.append(created)

    def work(transaction: Transaction) -> int:
        number = transaction.find(name)
        if number is not None:
            # A retry after the connection was lost during the commit may find the experiment it has written itself.
            if transaction.configuration(number) == (name, state.created_at, text):
                return number
            raise ExperimentExists(f"{store.url} has an experiment {name!r} already", hint=Hint.ANOTHER_NAME)
        number = transaction.create(name, state.state, state.created_at, text)
        write_plan(transaction, number, first)
        return number

    return store.change(None, work)
