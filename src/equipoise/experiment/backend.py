"""The interface between an experiment and the place it lives in: a store, or a service over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import IO

    from equipoise.experiment.commands import Request
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.records import Event, History, Status, UnitStatus, Verification, WhatIf


class Backend(Protocol):
    """What `Experiment` needs of the place where one experiment lives.

    `equipoise.experiment.store_backend.StoreBackend` works on a store, and `equipoise.client.http_backend.HttpBackend`
    sends requests to a service. Whatever changes something returns when the change is durable.
    """

    @property
    def name(self) -> str:
        """The name of the experiment."""

    @property
    def who(self) -> str | None:
        """The author of changes, for the log; None if unknown, or if the service fills it in from the key."""

    def run(self, command: Request) -> Any:
        """Carry out one command and return its result, or raise the error that refuses it."""

    def run_all(self, commands: Sequence[Request]) -> list[Any]:
        """Carry out several asks, or several tells, and return their results.

        A store runs them in one transaction. Over HTTP they go out in groups of at most 1,000 units, each group in a
        transaction of its own: if one is refused, the groups before it stand. Repeating the call is safe.
        """

    def unit(self, unit: str) -> UnitStatus | None:
        """Return what is known of a unit, or None if it was never assigned."""

    def configuration(self) -> Configuration:
        """Return the current settings."""

    def describe(self) -> dict[str, Any]:
        """Return name, state, arms and settings as plain data."""

    def status(self) -> Status:
        """Return the status."""

    def events_page(self, after: int, limit: int) -> list[Event]:
        """Return up to `limit` events after the one numbered `after`."""

    def history(self, points: int) -> History:
        """Return counts and means at up to `points` events."""

    def what_if(self, reward_weight: float) -> WhatIf:
        """Compare another weight with the current one."""

    def verify(self) -> Verification:
        """Replay the log and compare."""

    def rebuild(self) -> bool:
        """Restore the tables from the log; return whether anything changed."""

    def export(self, target: str | os.PathLike[str] | IO[str] | IO[bytes], form: str | None) -> int:
        """Write the table of units and return the number of rows."""
