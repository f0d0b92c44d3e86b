"""Counts and shares of all unfinished experiments, read with two statements however many there are."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from equipoise.experiment.state import State, read_configuration
from equipoise.store.schema import ARM_COLUMNS, microseconds

if TYPE_CHECKING:
    from equipoise.store import Store

log = logging.getLogger("equipoise.experiment")

_TARGET_SECONDS = 0.2
"""Most CPU time that one reading spends on target shares; those that are missing then come with later ones."""
_NAME, _ASSIGNED, _PULLS, _OVERDUE, _DROPPED, _WITHDRAWN = map(
    ARM_COLUMNS.index, ("name", "assigned", "pulls", "overdue", "dropped", "withdrawn")
)


@dataclass(frozen=True)
class Overview:
    """Units by state and shares of arms of one experiment.

    Attributes
    ----------
    units : dict of str to int
        Units assigned, rewarded, pending, overdue and dropped.
    arms : list of str
        Names of the arms.
    actual, target : list of float or None
        Shares of the arms; None if there are none, or not yet.
    """

    name: str
    units: dict[str, int]
    arms: list[str]
    actual: list[float] | None
    target: list[float] | None


class Overviews:
    """Reads overviews of a store, and keeps the target shares of experiments that have not changed since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._targets: dict[int, tuple[int, list[float] | None]] = {}

    def read(self) -> Iterator[Overview]:
        """Yield an overview of each unfinished experiment, oldest first."""
        now = microseconds(self._store.now())
        experiments, arms = self._store.read(lambda transaction: transaction.unfinished(now))
        rows_of = {number: [row[1:] for row in rows] for number, rows in groupby(arms, itemgetter(0))}
        last = time.thread_time() + _TARGET_SECONDS
        for experiment in experiments:
            number, name, _, _, n_events = experiment
            rows = rows_of.get(number, [])
            if self._targets.get(number, (None,))[0] != n_events and time.thread_time() < last:
                self._targets[number] = n_events, _targets(experiment, [row[:-1] for row in rows])
            yield _overview(name, rows, self._targets.get(number, (0, None))[1])


def _overview(name: str, rows: list[Sequence[Any]], target: list[float] | None) -> Overview:
    assigned = sum(row[_ASSIGNED] for row in rows)
    rewarded, dropped = sum(row[_PULLS] for row in rows), sum(row[_DROPPED] for row in rows)
    units = {
        "assigned": assigned,
        "rewarded": rewarded,
        "pending": assigned - rewarded - dropped - sum(row[_WITHDRAWN] for row in rows),
        "overdue": sum(row[_OVERDUE] + row[-1] for row in rows),
        "dropped": dropped,
    }
    actual = [row[_ASSIGNED] / assigned for row in rows] if assigned else None
    return Overview(name, units, [row[_NAME] for row in rows], actual, target)


def _targets(experiment: Sequence[Any], rows: list[Sequence[Any]]) -> list[float] | None:
    """Return the target shares of the arms; a damaged experiment has none, and does not hide the others."""
    _, name, created_at, text, _ = experiment
    try:
        state = State(name, created_at, read_configuration(name, text))
        state.read_arms(rows)
        found = state.decider.target(state.stats)
    except Exception:
        log.exception("no target shares of an experiment", extra={"data": {"experiment": name}})
        return None
    return None if found is None else found.tolist()
