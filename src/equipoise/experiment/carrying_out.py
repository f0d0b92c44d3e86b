"""Carry requests out: check, read, plan and write them in one transaction of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment import requests as ask_for
from equipoise.experiment.instants import microseconds
from equipoise.experiment.planning import HANDLERS, plan
from equipoise.experiment.requests import UnitRequest
from equipoise.experiment.settling import MOST_SETTLED
from equipoise.experiment.state import FINISHED, keep_state, load_state
from equipoise.experiment.units import read_units
from equipoise.experiment.writing import write_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from equipoise.experiment.draft import Plan
    from equipoise.experiment.requests import Request
    from equipoise.store import Prepared, Store, Transaction


def carry_out(store: Store, experiment: int, requests: Sequence[Request], *, together: bool) -> Plan:
    """Return what was done, once it is durable; with `together` an error of one is raised and nothing is written."""
    planned = store.change(experiment, *_work(store, experiment, requests, together))
    keep_state(store, experiment, planned.state)
    return planned


def prepare(store: Store, experiment: int, requests: Sequence[Request]) -> PreparedRequests | None:
    """Do all but the commit, without waiting; return None where that is not possible, and `carry_out` is to be used.

    For a server: what takes microseconds is done where requests come in, and what waits for the disk elsewhere.
    """
    prepared = store.prepare(experiment, *_work(store, experiment, requests, False))
    return None if prepared is None else PreparedRequests(store, experiment, prepared)


class PreparedRequests:
    """Requests that are planned and written, but not durable; other writers wait until `commit` or `undo`."""

    def __init__(self, store: Store, experiment: int, prepared: Prepared[Plan]) -> None:
        self._store = store
        self._experiment = experiment
        self._prepared = prepared

    def commit(self) -> Plan:
        """Return what was done, once it is durable; if this raises, nothing of it happened."""
        planned = self._prepared.commit()
        keep_state(self._store, self._experiment, planned.state)
        return planned

    def undo(self) -> None:
        """Leave no trace."""
        self._prepared.undo()


def _work(
    store: Store, experiment: int, requests: Sequence[Request], together: bool
) -> tuple[Callable[[Transaction], Plan], list[str]]:
    """Return what is to be done in a transaction, and the units it is about."""
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
        finishing = any(type(request) is ask_for.Finish for request in checked)
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
