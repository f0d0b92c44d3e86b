"""Count the calls about units that the service refuses, by experiment and class of error, and keep the counts."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from equipoise.http_api import ENDPOINTS
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.store import Store, Transaction

_HOUR = 3_600_000_000
_KEPT_HOURS, _RECENT_HOURS = 8 * 24, 2
ALL = ""
"""The class under which all calls are counted, refused or not."""
_ADD = """
INSERT INTO refusals (experiment, hour, error, count) VALUES (?, ?, ?, ?)
ON CONFLICT (experiment, hour, error) DO UPDATE SET count = refusals.count + excluded.count
"""
_FORGET = "DELETE FROM refusals WHERE experiment = ? AND hour < ?"

ABOUT_UNITS = frozenset(
    (endpoint.method, endpoint.path) for endpoint in ENDPOINTS if endpoint.tag == "Units" and endpoint.method != "GET"
)
"""Methods and routes of the calls that are counted."""
COUNTED = (404, 409, 422)
"""Statuses of refusals that say something about the client; others are about the service."""


class RefusedCalls:
    """The refused calls of one process, by hour until they are written to the store.

    Nothing is written for an experiment while none of its calls are refused. `total` counts refusals by experiment and
    class of error, for metrics.
    """

    def __init__(self, store: Store, total: Counter[tuple[str, str]]) -> None:
        self._store, self._total = store, total
        self._pending: Counter[tuple[str, int, str]] = Counter()
        self._troubled: dict[str, int] = {}
        """The last hour with a refusal, of experiments that had one."""
        self._hour = self._now()
        self._counting = threading.Lock()

    def _now(self) -> int:
        return microseconds(self._store.now()) // _HOUR

    def observe(self, experiment: str, error: str | None) -> None:
        """Count a call, and the class of the error if it was refused."""
        with self._counting:
            self._pending[experiment, self._hour, ALL] += 1
            if error is not None:
                self._pending[experiment, self._hour, error] += 1
                self._total[experiment, error] += 1
                self._troubled[experiment] = self._hour

    def write(self, number_of: Callable[[str], int | None]) -> None:
        """Add the counts of experiments with refusals to the store; forget those of others when they are old."""
        hour = self._hour = self._now()
        with self._counting:
            self._troubled = {name: at for name, at in self._troubled.items() if at > hour - _RECENT_HOURS}
            ready = {key: n for key, n in self._pending.items() if key[0] in self._troubled}
            old = [key for key in self._pending if key[0] not in self._troubled and key[1] <= hour - _RECENT_HOURS]
            for key in [*ready, *old]:
                del self._pending[key]
        for name in {name for name, _, _ in ready}:
            number = number_of(name)
            if number is not None:
                rows = [(at, error, n) for (of, at, error), n in ready.items() if of == name]
                self._add(number, rows, hour)

    def _add(self, number: int, rows: list[tuple[int, str, int]], hour: int) -> None:
        def work(transaction: Transaction) -> None:
            transaction.execute(_FORGET, number, hour - _KEPT_HOURS)
            for row in rows:
                transaction.execute(_ADD, number, *row)

        self._store.change(number, work)
