"""Plan requests: a pure function from a state and requests in the order they came to events and the next state.

Nothing here reads a clock or a database. A batch gives exactly what its requests would give one by one, repeats
included, and a request that is refused leaves no trace in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError
from equipoise.experiment import planning_changes, planning_units
from equipoise.experiment import requests as ask_for
from equipoise.experiment.draft import Draft, Plan
from equipoise.experiment.settling import settle
from equipoise.experiment.state import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from equipoise.experiment.state import State
    from equipoise.experiment.units import Unit


def plan(
    state: State,
    units: dict[str, Unit],
    due: Iterable[Sequence[Any]],
    requests: Sequence[ask_for.Request | EquipoiseError],
    now: int,
    last_held: int | None = None,
) -> Plan:
    """Return events, next state and results.

    Parameters
    ----------
    state : State
        Where the experiment stands; it is not changed.
    units : dict of Unit by name
        What is known of the units that the requests name; brought up to date in place.
    due : rows of the table of what is pending
        Units whose window has passed, in the order in which it did.
    requests : requests, or errors in the place of those that were refused before
        In the order they came.
    now : int
        The time, in microseconds.
    last_held : int, optional
        When the last window of a reward held back passes; needed to finish only.
    """
    draft = Draft(Plan(state.copy()), units, requests, now, last_held)
    if state.state != FINISHED:
        for row in due:
            settle(draft, *row)
    for draft.place, request in enumerate(requests):
        result: Any = request
        if not isinstance(request, EquipoiseError):
            try:
                result = HANDLERS[type(request)](draft, request)
            except EquipoiseError as error:
                result = error
        draft.plan.results.append(result)
    return draft.plan


def _only_settle(draft: Draft, request: ask_for.Settle) -> None:
    """Do nothing more: what is due was settled first."""


HANDLERS: dict[type, Callable[[Draft, Any], Any]] = {
    ask_for.Ask: planning_units.ask,
    ask_for.Tell: planning_units.tell,
    ask_for.Correct: planning_units.correct,
    ask_for.Settle: _only_settle,
    ask_for.Pause: planning_changes.pause,
    ask_for.Resume: planning_changes.resume,
    ask_for.Stop: planning_changes.stop,
    ask_for.Finish: planning_changes.finish,
    ask_for.AddArm: planning_changes.add_arm,
    ask_for.PauseArm: planning_changes.pause_arm,
    ask_for.ResumeArm: planning_changes.resume_arm,
    ask_for.RetireArm: planning_changes.retire_arm,
    ask_for.ChangeWeight: planning_changes.change_weight,
}
