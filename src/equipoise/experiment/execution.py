"""Execute commands: check, read, plan and write them in one transaction of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from equipoise import kernels
from equipoise.errors import EquipoiseError, ExperimentExists, Hint, InvalidInput
from equipoise.experiment import commands
from equipoise.experiment.commands import Request, UnitRequest
from equipoise.experiment.event_log import read_units
from equipoise.experiment.names import checked_who
from equipoise.experiment.plan import HANDLERS, MOST_SETTLED, Plan, plan
from equipoise.experiment.state import FINISHED, created_state, keep_state, load_state
from equipoise.store import Prepared, Store, Transaction, schema
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.experiment.configuration import Configuration


def carry_out(store: Store, experiment: int, requests: Sequence[Request], *, together: bool) -> Plan:
    """Execute commands and return the plan once it is durable; with `together`, the first error rolls all back."""
    planned = store.change(experiment, *_work(store, experiment, requests, together))
    keep_state(store, experiment, planned.state)
    return planned


def prepare(store: Store, experiment: int, requests: Sequence[Request]) -> PreparedRequests | None:
    """Do everything but the commit, without waiting; return None if that is impossible and `carry_out` is needed.

    For a server: planning takes microseconds and runs on the event loop, while the wait for the disk is in a thread.
    """
    prepared = store.prepare(experiment, *_work(store, experiment, requests, False))
    return None if prepared is None else PreparedRequests(store, experiment, prepared)


class PreparedRequests:
    """Commands planned and written but not yet durable; other writers wait until `commit` or `undo`."""

    def __init__(self, store: Store, experiment: int, prepared: Prepared[Plan]) -> None:
        self._store = store
        self._experiment = experiment
        self._prepared = prepared

    def commit(self) -> Plan:
        """Commit and return the plan once it is durable; if this raises, nothing happened."""
        planned = self._prepared.commit()
        keep_state(self._store, self._experiment, planned.state)
        return planned

    def undo(self) -> None:
        """Roll back."""
        self._prepared.undo()


def _work(
    store: Store, experiment: int, requests: Sequence[Request], together: bool
) -> tuple[Callable[[Transaction], Plan], list[str]]:
    """Return the function to run in a transaction, and the units it concerns."""
    checked: Any = [_checked(request) for request in requests]
    if together:
        _raise_first(checked)
    units = list(dict.fromkeys(request.unit for request in checked if isinstance(request, UnitRequest)))

    def work(transaction: Transaction) -> Plan:
        last = store.states.get(experiment)
        state = load_state(store, transaction, experiment)
        missing = state.configuration.missing
        now = microseconds(store.now())
        windowed = missing.window_seconds is not None and state.state != FINISHED
        due = transaction.due(experiment, now, MOST_SETTLED) if windowed else ()
        known = read_units(transaction.unit_events(experiment, units), missing) if units else {}
        finishing = any(type(request) is commands.Finish for request in checked)
        last_held = transaction.last_held(experiment) if finishing else None
        planned = plan(state, known, due, checked, now, last_held)
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
    transaction.put(schema.events, experiment, plan.events)
    if plan.touched:
        rows = [state.arm_row(position, state.n_events) for position in sorted(plan.touched)]
        transaction.put(schema.arms, experiment, rows)
    if plan.put_pending:
        transaction.put(schema.pending, experiment, list(plan.put_pending.values()))
    transaction.advance(experiment, state.state, state.n_events, state.n_decisions)


def create(
    store: Store, name: str, configuration: Configuration, arms: Sequence[tuple[str, float]], who: str | None
) -> int:
    """Write a new experiment, whose arms come with their floors, and return its number."""
    details: dict[str, Any] = {
        "configuration": configuration.to_dict(),
        "arms": [{"name": arm, "floor": share} for arm, share in arms],
        "kernels": kernels.VERSION,
    }
    state = created_state(name, microseconds(store.now()), details)
    state.decider  # noqa: B018  (raises if the policy does not fit the arms)
    first = Plan(state, touched=set(range(len(state.names))))
    text = state.configuration.to_json()
    created = (1, "created", state.created_at, checked_who(who), *[None] * 8, json.dumps(details, allow_nan=False))
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
