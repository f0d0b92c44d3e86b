"""Backends, where an experiment lives: the interface that `Experiment` uses, and its implementation for a store."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from equipoise.errors import (
    ExperimentExists,
    HasRewards,
    Hint,
    InvalidInput,
    StoreChanged,
    StoreError,
    UnknownExperiment,
    UnknownUnit,
    VerificationFailed,
)
from equipoise.experiment import commands
from equipoise.experiment.alert_episodes import open_alerts
from equipoise.experiment.checkpoints import kept_rollup
from equipoise.experiment.course import period_between
from equipoise.experiment.event_log import read_event, read_history, read_unit
from equipoise.experiment.execution import carry_out, create
from equipoise.experiment.fidelity import fidelity_of
from equipoise.experiment.full_report import MOST_CHANGES, FullReport
from equipoise.experiment.hash_chain import erase_unit
from equipoise.experiment.inference import comparison_of, report_of, report_settings
from equipoise.experiment.names import LONGEST_NAME, checked_new_name, checked_text, checked_who
from equipoise.experiment.pace import outlook_of, pace_of
from equipoise.experiment.prices import prices_of
from equipoise.experiment.state import FINISHED, State, load_state
from equipoise.experiment.status import describe, read_status, summaries, what_if
from equipoise.experiment.timeline import timeline_of
from equipoise.experiment.transitions import MOST_SETTLED, Transition
from equipoise.experiment.unit_lists import read_unit_events, read_unit_page
from equipoise.store import Store, Transaction, open_store, schema
from equipoise.store.schema import instant, microseconds

if TYPE_CHECKING:
    from equipoise.analysis.observations import Observations
    from equipoise.experiment.commands import Request
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.records import (
        Comparison,
        Event,
        ExperimentSummary,
        Fidelity,
        Health,
        History,
        Outlook,
        Prices,
        Report,
        Status,
        Timeline,
        UnitPage,
        UnitStatus,
        Verification,
        WhatIf,
    )


class Backend(Protocol):
    """What `Experiment` needs of the backend of one experiment.

    `equipoise.experiment.backends.StoreBackend` works on a store, and `equipoise.client.http_backend.HttpBackend`
    sends requests to a service. Methods that change something return when the change is durable.
    """

    @property
    def name(self) -> str:
        """The name of the experiment."""

    @property
    def who(self) -> str | None:
        """The author of changes, for the log; None if unknown, or if the service fills it in from the key."""

    def run(self, command: Request) -> Any:
        """Run one command and return its result, or raise the error that refuses it."""

    def run_all(self, commands: Sequence[Request]) -> list[Any]:
        """Run several asks, or several tells, and return their results.

        A store runs them in one transaction. Over HTTP they go out in groups of at most 1,000 units, each group in a
        transaction of its own: if one is refused, the groups before it are kept. The call is idempotent.
        """

    def unit(self, unit: str) -> UnitStatus | None:
        """Return the record of a unit, or None if it was never assigned."""

    def units(self, state: str | None, prefix: str | None, limit: int, after: str | None) -> UnitPage:
        """Return a page of the units in a state, or with a prefix."""

    def unit_events(self, unit: str) -> list[Event]:
        """Return the events of a unit."""

    def configuration(self) -> Configuration:
        """Return the current settings."""

    def as_of(self, event: int) -> Backend:
        """Return the backend of the experiment as it was after an event."""

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms, description and settings as plain data."""

    def status(self) -> Status:
        """Return the status."""

    def events_page(self, after: int, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Return up to `limit` events after the one numbered `after`, as selected."""

    def changes(self, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Return the latest events that are not about a unit, newest first, as selected."""

    def history(self, points: int) -> History:
        """Return counts and means at up to `points` events."""

    def timeline(self, every: str, since: datetime | None) -> Timeline:
        """Return what happened in each period since an instant, or since the creation."""

    def outlook(self) -> Outlook:
        """Return the pace, and when stopping rules will be met."""

    def what_if(self, dial: dict[str, Any]) -> WhatIf:
        """Compare another dial, as stated and checked, with the current one."""

    def prices(self, settings: dict[str, Any]) -> Prices:
        """Return the price of every position of the dial."""

    def compare(self, settings: dict[str, Any]) -> Comparison:
        """Compare the arms."""

    def report(self, settings: dict[str, Any]) -> Report:
        """Report on everything that can be said."""

    def full_report(self, settings: dict[str, Any]) -> FullReport:
        """Return everything as of one event."""

    def fidelity(self) -> Fidelity:
        """Compare the experiment with its plan."""

    def health(self) -> Health:
        """Make the checks, and open and close alerts by them."""

    def verify(self) -> Verification:
        """Replay the log and compare it with the tables."""

    def rebuild(self) -> bool:
        """Restore the tables from the log; return whether anything changed."""

    def erase(self, unit: str) -> None:
        """Erase the name and attributes of a withdrawn unit."""

    def delete(self) -> None:
        """Delete the experiment, if it has no rewards."""

    def export(self, target: str | os.PathLike[str] | IO[str] | IO[bytes], form: str | None) -> int:
        """Write the table of units and return the number of rows."""


Result = TypeVar("Result")

_TOGETHER = 50_000
"""Numbers of events that one query looks through for those of some kinds: it takes some 10 ms."""


class StoreBackend:
    """One experiment of a store, by its number there; `who` is written to the log."""

    def __init__(self, store: Store, number: int, name: str, who: str | None = None) -> None:
        self.store = store
        self.number = number
        self.name = name
        self.who = who

    @classmethod
    def create(
        cls,
        store: Store | str,
        name: str,
        configuration: Configuration,
        arms: Sequence[tuple[str, float]],
        who: str | None,
        *,
        paused: bool,
    ) -> StoreBackend:
        """Create an experiment whose arms come with their floors."""
        opened, checked_name = _opened(store), checked_new_name("name", name)
        return cls(opened, create(opened, checked_name, configuration, arms, who, paused=paused), name, who)

    @classmethod
    def open(cls, store: Store | str, name: str, who: str | None) -> StoreBackend:
        """Open an experiment by its name."""
        opened = _opened(store)
        checked_text("name", name, LONGEST_NAME)
        number = opened.read(lambda transaction: transaction.find(name))
        if number is None:
            raise UnknownExperiment(f"{opened.url} has no experiment {name!r}", hint=Hint.LIST_EXPERIMENTS)
        return cls(opened, number, name, checked_who(who))

    def run(self, command: commands.Request) -> Any:
        """Run one command; settling and finishing take one transaction per `MOST_SETTLED` due units."""
        if isinstance(command, (commands.Settle, commands.Finish)):
            while len(self._carry_out([commands.Settle()], together=True).events) >= MOST_SETTLED:
                pass
        return self.run_all([command])[0]

    def run_all(self, requests: Sequence[commands.Request]) -> list[Any]:
        """Run commands in one transaction, all or none."""
        for request in requests:
            request.who = self.who
        return self.apply(requests, together=True)

    def apply(self, requests: Sequence[commands.Request], *, together: bool) -> list[Any]:
        """Run commands of any authors in one transaction; with `together`, raise the first error."""
        return self._carry_out(requests, together=together).results if requests else []

    def _carry_out(self, requests: Sequence[commands.Request], *, together: bool) -> Transition:
        return carry_out(self.store, self.number, self.name, requests, together=together)

    def unit(self, unit: str) -> UnitStatus | None:
        """Read a unit's events."""
        now = microseconds(self.store.now())
        return self._read(lambda transaction, state: read_unit(transaction, self.number, state, unit, now))

    def units(self, state: str | None, prefix: str | None, limit: int, after: str | None) -> UnitPage:
        """Read a bounded part of an index."""
        now = microseconds(self.store.now())

        def read(transaction: Transaction, found: State) -> UnitPage:
            return read_unit_page(transaction, self.number, found, state, prefix, limit, after, now)

        return self._read(read)

    def unit_events(self, unit: str) -> list[Event]:
        """Read a unit's events by the index of units."""
        return self._read(lambda transaction, state: read_unit_events(transaction, self.number, state, unit))

    def as_of(self, event: int) -> StoreBackend:
        """Return the experiment as it was after an event."""
        from equipoise.experiment.past_backend import PastBackend

        return PastBackend(self.store, self.number, self.name, event)

    def configuration(self) -> Configuration:
        """Return the current settings."""
        return self._state().configuration

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms, description and settings as plain data."""
        return describe(self._state())

    def status(self) -> Status:
        """Return the status, counting units that fell due since the last event."""
        state, status = self._standing()
        if self._last() is not None:  # alerts are of the present
            return status
        alerts = self.store.read(
            lambda transaction: open_alerts(transaction, self.number, self.name, state.names, status.at)
        )
        told = tuple(alert for alert in alerts if not alert.is_muted)
        return dataclasses.replace(status, alerts=told) if told else status

    def _now(self) -> datetime:
        return self.store.now()

    def _state(self) -> State:
        return self._read(lambda _, state: state)

    def _standing(self) -> tuple[State, Status]:
        now = self._now()
        return self._read(lambda transaction, state: (state, read_status(transaction, self.number, state, now)))

    def _last(self) -> int | None:
        """Return the last event to read; None for the end of the log."""
        return None

    def events_page(self, after: int, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Read a page of the log; one of few kinds takes many short transactions."""
        chosen = dict(selected)
        before = chosen.pop("before", None)
        if not chosen:
            return self._events(after, before, limit, {})
        end = self._read(lambda _, state: state.n_events) + 1
        before = end if before is None else min(before, end)
        found: list[Event] = []
        while len(found) < limit and after + 1 < before:
            low, high = after, before
            if chosen.get("newest_first"):
                before = max(after, before - _TOGETHER) + 1
                low = before - 1
            else:
                after = min(before, after + _TOGETHER) - 1
                high = after + 1
            found += self._events(low, high, limit - len(found), chosen)
        return found

    def changes(self, limit: int, selected: dict[str, Any]) -> list[Event]:
        """Read the latest changes, which have an index."""
        chosen = dict(selected)
        return self._events(0, chosen.pop("before", None), limit, chosen | {"changes_only": True, "newest_first": True})

    def _events(self, after: int, before: int | None, limit: int, chosen: dict[str, Any]) -> list[Event]:
        def read(transaction: Transaction, state: State) -> list[Event]:
            rows = transaction.selected_events(self.number, after, before, limit, **chosen)
            return [read_event(row, state.names) for row in rows]

        return self._read(read)

    def history(self, points: int) -> History:
        """Sum the log up to evenly spaced events."""
        return self._read(lambda transaction, state: read_history(transaction, self.number, state, points))

    def timeline(self, every: str, since: datetime | None) -> Timeline:
        """Add up the rollup, after bringing it up to date."""
        with kept_rollup(self.store, self.number, self.name) as kept:
            return timeline_of(kept, self.store.now(), every, since)

    def outlook(self) -> Outlook:
        """Look ahead from the sums by hour and the present estimates."""
        state, status = self._standing()
        return outlook_of(state, status, self._pace(state, status.at))

    def _pace(self, state: State, now: datetime) -> float | None:
        with kept_rollup(self.store, self.number, self.name) as kept:
            return pace_of(kept.rollup, state, now)

    def what_if(self, dial: dict[str, Any]) -> WhatIf:
        """Compare two dials on the present estimates."""
        return what_if(self._state(), dial)

    def prices(self, settings: dict[str, Any]) -> Prices:
        """Price every position of the dial by the present estimates."""
        now, state = self._now(), self._state()
        return prices_of(state, now, settings.get("people_per_day") or self._pace(state, now))

    def compare(self, settings: dict[str, Any]) -> Comparison:
        """Compare the arms by their sums."""
        return comparison_of(*self._standing(), settings)

    def report(self, settings: dict[str, Any]) -> Report:
        """Read the log and analyse it."""
        chosen = report_settings(self._state(), settings)
        return report_of(*self._observed(chosen, self._last()), chosen)

    def _observed(self, chosen: dict[str, Any], last: int | None) -> tuple[State, Status, Observations]:
        """Replay the log up to an event; return the state and the status after it, and its decisions."""
        from equipoise.experiment.observed_log import observed_log, unit_at
        from equipoise.experiment.past import status_at

        names = {"attributes": (*chosen["adjust"], *chosen["by"]), "optional": chosen["optional"]}
        now = self._now()

        def read(transaction: Transaction, _: State) -> tuple[State, Status, Observations]:
            log = observed_log(transaction, self.number, self.name, **names, last=last)
            where = partial(unit_at, transaction, self.number)
            return log.state, status_at(log, now), log.observations(microseconds(now), where)

        return self._read_once(read)

    def full_report(self, settings: dict[str, Any]) -> FullReport:
        """Put together what is known as of one event: the last one of the timeline."""
        given = dict(settings)
        reads_log, is_verified = given.pop("log", True), given.pop("verify", True)
        first = self._state()
        chosen = report_settings(first, given)
        try:
            every = period_between(instant(first.created_at), self._now())
            timeline: Timeline | None = self.timeline(every, None)
        except InvalidInput:  # too many arms
            timeline = None
        last = self._last()
        event = last or (first.n_events if timeline is None else timeline.event)
        report = None
        if reads_log:
            state, status, observations = self._observed(chosen, event)
            report = report_of(state, status, observations, chosen)
        else:  # at once, however long the log is; where events came meanwhile, the timeline may lack the last few
            state, status = self._standing()
            event = state.n_events
        if last is None:  # alerts are of the present, and not in the log
            status = dataclasses.replace(status, alerts=self.status().alerts)
        compared = {name: chosen[name] for name in ("control", "confidence")}
        changes = self.changes(MOST_CHANGES + 1, {"before": event + 1})
        found = self._read(lambda transaction, _: transaction.head(self.number, event).seen_hash)
        return FullReport(
            name=self.name,
            event=event,
            hash=None if found is None else found.hex(),
            at=status.at,
            made_at=status.at if last is None else self.store.now(),
            settings=describe(state),
            status=status,
            comparison=comparison_of(state, status, compared) if report is None else report.comparison,
            report=report,
            timeline=timeline,
            changes=tuple(changes[MOST_CHANGES - 1 :: -1]),
            has_earlier_changes=len(changes) > MOST_CHANGES,
            fidelity=_fidelity_if_planned(status, state),
            verification=self.verify() if is_verified else None,
        )

    def fidelity(self) -> Fidelity:
        """Compare the status with the plan in the metadata."""
        state, status = self._standing()
        return fidelity_of(status, state.configuration.metadata)

    def health(self) -> Health:
        """Look at the experiment now."""
        from equipoise.experiment.health import look_at

        return look_at(self.store, self.number, self.name)

    def verify(self) -> Verification:
        """Check the database, then replay the log, and keep what that found beside it."""
        from equipoise.experiment.verification import verify

        self.store.read(self.store.database.check_integrity)
        began = time.perf_counter()
        try:
            found = self._read_once(lambda transaction, _: verify(transaction, self.number, self.name))
        except VerificationFailed as error:
            self._keep_verification(time.perf_counter() - began, None, error.message)
            raise
        self._keep_verification(found.seconds, found.n_events, None)
        return found

    def _keep_verification(self, seconds: float, n_events: int | None, error: str | None) -> None:
        """Keep what a verification found, for the checks; a store that cannot be written is still verified."""
        at = microseconds(self.store.now())

        def work(transaction: Transaction) -> None:
            transaction.require_name(self.number, self.name)
            read = transaction.head(self.number).n_events if n_events is None else n_events
            transaction.put(schema.verifications, self.number, [(at, read, seconds, error)])

        with suppress(StoreError):
            self.store.change(self.number, work)

    def rebuild(self) -> bool:
        """Rebuild the tables, and drop the cached state that was read from them."""
        from equipoise.experiment.verification import rebuild

        now, who = microseconds(self.store.now()), checked_who(self.who)

        def work(transaction: Transaction) -> bool:
            transaction.require_name(self.number, self.name)
            return rebuild(transaction, self.number, self.name, now, who)

        changed = self.store.change(self.number, work)
        self.store.states.pop(self.number, None)
        return changed

    def erase(self, unit: str) -> None:
        """Erase a unit from the log."""
        tried = False

        def work(transaction: Transaction) -> None:
            nonlocal tried
            transaction.require_name(self.number, self.name)
            kinds = {kind for _, kind, *_ in transaction.unit_events(self.number, [unit])}
            if not kinds:
                if tried:  # by this call, whose connection was lost during the commit
                    return
                raise UnknownUnit(f"unit {unit!r} was never assigned in experiment {self.name!r}, or is erased")
            if "withdrawn" not in kinds and transaction.head(self.number).state != FINISHED:
                raise InvalidInput(f"unit {unit!r} must be withdrawn before it is erased", hint=Hint.WITHDRAW)
            tried = True
            erase_unit(transaction, self.number, unit)

        self.store.change(self.number, work)
        self.store.database.discard_old_pages()

    def delete(self) -> None:
        """Delete the experiment from all tables; a repeat finds nothing to do."""

        def work(transaction: Transaction) -> None:
            transaction.require_name(self.number, self.name)
            if transaction.has_rewards(self.number):
                raise HasRewards(
                    f"experiment {self.name!r} has rewards, and what was measured is not deleted", hint=Hint.FINISH
                )
            transaction.delete(self.number)

        with suppress(StoreChanged):  # a retry after the connection was lost during the commit
            self.store.change(self.number, work)
        self.store.states.pop(self.number, None)

    def export(self, target: str | os.PathLike[str] | IO[str] | IO[bytes], form: str | None) -> int:
        """Stream the table of units to a file."""
        from equipoise.experiment.export import export

        return self._read_once(lambda transaction, state: export(transaction, self.number, state, target, form))

    def copy_to(self, store: Store | str, progress: Callable[[int, int], None] | None) -> StoreBackend:
        """Copy the experiment to another store in one transaction there."""
        from equipoise.experiment.verification import copy

        opened = _opened(store)
        if opened is self.store:  # an in-memory store would deadlock with itself
            raise ExperimentExists(f"{opened.url} is where {self.name!r} is already", hint="copy to another store")
        number = self._read_once(
            lambda source, _: opened.change(
                None, lambda target: copy(source, self.number, self.name, target, opened.url, progress)
            )
        )
        return StoreBackend(opened, number, self.name, self.who)

    def _read(self, work: Callable[[Transaction, State], Result], *, repeatable: bool = True) -> Result:
        return self.store.read(
            lambda transaction: work(transaction, load_state(self.store, transaction, self.number, self.name)),
            repeatable=repeatable,
        )

    def _read_once(self, work: Callable[[Transaction, State], Result]) -> Result:
        """Run a long read once: load the state first, in a transaction that can be retried."""
        self._read(lambda _, state: state)
        return self._read(work, repeatable=False)


def _fidelity_if_planned(status: Status, state: State) -> Fidelity | None:
    try:
        return fidelity_of(status, state.configuration.metadata)
    except InvalidInput:  # it was not made from a plan
        return None


def list_experiments(store: Store | str) -> list[ExperimentSummary]:
    """Return all experiments of a store, oldest first."""
    return summaries(_opened(store))


def _opened(store: Store | str) -> Store:
    return store if isinstance(store, Store) else open_store(store)
