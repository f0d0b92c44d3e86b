"""Look at the health of an experiment: make all checks, and open and close its alerts by what they find.

This is the only place where both happen: pages, API, command line, metrics and webhook show what it found.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from equipoise.errors import StoreMismatch
from equipoise.experiment.alert_episodes import follow
from equipoise.experiment.checkpoints import kept_rollup
from equipoise.experiment.fact_checks import fact_checks, last_verification
from equipoise.experiment.rollup import HOUR
from equipoise.experiment.state import FINISHED, load_state
from equipoise.experiment.status import read_status
from equipoise.experiment.watched_experiment import far_out, gone_from_estimates, watched_of, without
from equipoise.monitoring.check_names import FROM_SUMS, SUMS_BY_HOUR, VERIFICATION
from equipoise.monitoring.health_checks import checks_of
from equipoise.monitoring.health_records import NOTE, OK, PROBLEM, SEVERITIES, Alert, Check, Health, RefusedCalls
from equipoise.monitoring.refusal_checks import check_refused
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.experiment.records import Status
    from equipoise.experiment.state import State
    from equipoise.store import Store, Transaction
    from equipoise.store.transaction import Key

GRACE_DAYS, GRACE_PEOPLE = 1, 100
"""Nothing that chance may explain is reported before this many days are over and this many people have come."""
_RECENT_HOURS, _DAY_HOURS = 2, 24
_ORDER = {state: place for place, state in enumerate((PROBLEM, NOTE, OK))}

REFUSALS = "SELECT hour, error, count FROM refusals WHERE experiment = ? AND hour > ?"
_VERIFIED = "SELECT at, n_events, seconds, error FROM verifications WHERE experiment = ?"


class _Known(NamedTuple):
    """What is read of an experiment in one transaction."""

    state: State
    status: Status
    keys: list[Key]
    refusals: Sequence[Sequence[int | str]]
    verified: Sequence[Sequence[object]]


def look_at(store: Store, number: int, name: str) -> Health:
    """Make the checks of an experiment, follow its alerts, and return both."""
    now = store.now()

    def read(transaction: Transaction) -> _Known:
        state = load_state(store, transaction, number, name)
        since = microseconds(now) // HOUR - _DAY_HOURS
        return _Known(
            state,
            read_status(transaction, number, state, now),
            transaction.keys(),
            transaction.execute(REFUSALS, number, since),
            transaction.execute(_VERIFIED, number),
        )

    known = store.read(read)
    state, status = known.state, known.status
    found, damage, day = _from_sums(store, number, name, known, now)
    refused, n_calls = _refused(known.refusals, microseconds(now) // HOUR)
    verified = last_verification(known.verified)
    metadata = state.configuration.metadata
    checks = (*found, check_refused(refused, n_calls), *fact_checks(status, metadata, known.keys, verified, damage))
    ready = day >= GRACE_DAYS and status.n_assigned >= GRACE_PEOPLE
    alerts = follow(
        store,
        number,
        name,
        state.names,
        _findings(checks, ready=ready, is_finished=state.state == FINISHED),
        undecided=frozenset(FROM_SUMS) if damage is not None else frozenset(),
        event=status.n_events,
        now=now,
    )
    return Health(
        name=name,
        at=now,
        n_events=status.n_events,
        day=day,
        state=_worst(alerts),
        sentence=_sentence(alerts, ready=ready or state.state == FINISHED),
        checks=tuple(sorted(checks, key=lambda one: _ORDER.get(one.state, len(_ORDER)))),
        alerts=alerts,
        refused=refused,
        verified=verified,
    )


def _from_sums(
    store: Store, number: int, name: str, known: _Known, now: datetime
) -> tuple[tuple[Check, ...], str | None, int]:
    """Return the checks of the sums by hour, why they could not be made, and the whole days since the first person."""
    try:
        with kept_rollup(store, number, name) as kept:
            watched = watched_of(kept, known.state, known.status, now)
    except StoreMismatch as error:
        return (), error.message, 0
    suspects = far_out(watched)
    if suspects:
        gone = store.read(lambda transaction: gone_from_estimates(transaction, number, suspects))
        watched = dataclasses.replace(watched, extremes=without(watched, gone))
    return checks_of(watched), None, watched.day


def _refused(rows: Iterable[Sequence[int | str]], this_hour: int) -> tuple[tuple[RefusedCalls, ...], int]:
    """Return refused calls by class, most first, and the number of all calls in this hour and the one before."""
    recent: dict[str, int] = {}
    day: dict[str, int] = {}
    for hour, error, count in rows:
        day[str(error)] = day.get(str(error), 0) + int(count)
        if int(hour) > this_hour - _RECENT_HOURS:
            recent[str(error)] = recent.get(str(error), 0) + int(count)
    n_calls = recent.get("", 0)
    found = [RefusedCalls(error, recent.get(error, 0), n) for error, n in day.items() if error]
    return tuple(sorted(found, key=lambda one: (-one.recent, -one.day, one.error))), n_calls


def _findings(checks: Iterable[Check], *, ready: bool, is_finished: bool) -> list[Check]:
    """Return what opens alerts; of a finished experiment, only what is wrong with its records."""
    return [
        one
        for one in checks
        if one.state in SEVERITIES
        and (ready or one.check not in FROM_SUMS)
        and (not is_finished or one.check in (SUMS_BY_HOUR, VERIFICATION))
    ]


def _worst(alerts: Iterable[Alert]) -> str:
    told = {one.severity for one in alerts if not one.is_muted}
    return next((severity for severity in SEVERITIES if severity in told), OK)


def _sentence(alerts: Sequence[Alert], *, ready: bool) -> str:
    """Return how an experiment stands, in words."""
    told = [one for one in alerts if not one.is_muted]
    n_muted = len(alerts) - len(told)
    muted = f" {n_muted} alert{' is' if n_muted == 1 else 's are'} muted." if n_muted else ""
    problems, notes = (sum(one.severity == severity for one in told) for severity in SEVERITIES)
    if told:
        counts = [_counted(problems, "problem"), _counted(notes, "note")]
        return f"{' and '.join(one for one in counts if one)}: {told[0].sentence}{muted}"
    if not ready:
        return (
            f"Nothing is known to be wrong. Most checks begin after {GRACE_DAYS * 24} hours and {GRACE_PEOPLE} "
            f"people.{muted}"
        )
    return f"No problem was found.{muted}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}" if number else ""
