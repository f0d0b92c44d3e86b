"""Sums over the log by hour and arm, from which charts over time, pace and health are read.

A rollup reaches an event and can be extended by the events after it, in slices of any size: every sum is added to in
the order of the log, so it is the same bit for bit wherever the log was cut. Columns are by the hour in which something
happened; those that begin with `cohort_` are by the hour in which the unit was assigned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.errors import StoreMismatch
from equipoise.store.schema import ROLLUP_COLUMNS, rollups
from equipoise.unit_lifecycle import ASSIGNED, CORRECTED, EXPIRED, OTHER, REWARDED, UNIT_EVENTS, WITHDRAWN

if TYPE_CHECKING:
    from equipoise.experiment.configuration import Configuration
    from equipoise.store import Transaction

VERSION = 1
"""Raise it when a sum changes its meaning: a rollup of another version is computed again."""

HOUR = 3_600_000_000
"""Microseconds of an hour."""
DELAYS = {"1h": HOUR, "6h": 6 * HOUR, "1d": 24 * HOUR, "3d": 72 * HOUR, "7d": 168 * HOUR}
"""Delays, in microseconds, within which the rewards of a cohort are counted."""

SUMS = tuple(name for name in ROLLUP_COLUMNS if isinstance(rollups.c[name].type, sa.Double))
COUNTS = tuple(name for name in ROLLUP_COLUMNS[2:] if name not in SUMS)
"""The columns that are real numbers, and those that are whole numbers."""
_ROW = {name: row for names in (SUMS, COUNTS) for row, name in enumerate(names)}
_EXTREMES = tuple(_ROW[name] for name in ("lowest", "highest"))
_ARMS = 1 << 20
"""More than the arms of any experiment: one whole number names an hour and an arm."""

# By each unit's own events, so that erasing a unit changes nothing. The scalar queries match all of the index of units.
_OF_UNIT = (
    "FROM events AS u {by_unit} WHERE u.experiment = e.experiment AND u.unit = e.unit AND u.kind = '{kind}' "
    "AND (CASE WHEN u.kind = 'corrected' THEN u.number ELSE 0 END) = 0"
)
_SLICE = f"""
SELECT e.number, e.kind, e.at, e.arm, e.reward, e.probability, e.counted, e.replaced,
    CASE WHEN e.kind IN ('rewarded', 'expired', 'withdrawn') THEN (SELECT u.at {_OF_UNIT}) END,
    CASE WHEN e.kind = 'withdrawn' THEN (SELECT count(*) {_OF_UNIT.replace("{kind}", "{other}")}) END
FROM events AS e WHERE e.experiment = ? AND e.number > ? AND e.number <= ? ORDER BY e.number
"""  # noqa: S608
_LOG = """
SELECT number, kind, at, arm, reward, probability, counted, replaced, decision
FROM events WHERE experiment = ? AND number <= ? ORDER BY number
"""
_ROLLUPS = f"SELECT {', '.join(ROLLUP_COLUMNS)} FROM rollups WHERE experiment = ? ORDER BY hour, arm"  # noqa: S608


def read_slice(transaction: Transaction, experiment: int, after: int, last: int) -> Sequence[Sequence[Any]]:
    """Return the events after one event up to another, as `Rollup.extend` takes them."""
    by_unit = transaction.database.by_unit
    return transaction.execute(
        _SLICE.format(by_unit=by_unit, kind="assigned", other="rewarded"), experiment, after, last
    )


class Mark(NamedTuple):
    """How far a rollup reaches, as its checkpoint says."""

    event: int = 0
    hash: bytes | None = None
    """Hash of that event, by which another log of the same length is recognised."""
    centre: float | None = None
    """The first reward that entered the estimates; the sums are of distances from it, which keeps their digits."""
    last_assigned_at: int | None = None
    last_rewarded_at: int | None = None


class Rollup:
    """The sums over the first events of a log.

    Attributes
    ----------
    mark : Mark
        How far it reaches.
    hour, arm : int array (cells,)
        Of each cell: hours since 1970, and the position of the arm. Cells are in the order in which they came up.
    changed : bool array (cells,)
        The cells that changed since they were last saved.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.mark = Mark()
        self._cap = configuration.reward_cap
        window = configuration.missing.window_microseconds
        self._limits = [*DELAYS.values(), np.inf if window is None else window - 1]
        self._cells: dict[int, int] = {}
        self._key: IntArray = np.zeros(0, np.int64)
        self._changed: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._counts: IntArray = np.zeros((len(COUNTS), 0), np.int64)
        self._sums: FloatArray = np.zeros((len(SUMS), 0))
        self._make_room(64)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self._cells)

    @property
    def hour(self) -> IntArray:
        """The hour of each cell."""
        return self._key[: self.n_cells] // _ARMS

    @property
    def arm(self) -> IntArray:
        """The arm of each cell."""
        return self._key[: self.n_cells] % _ARMS

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Whether each cell changed since it was last saved."""
        return self._changed[: self.n_cells]

    def count(self, name: str) -> IntArray:
        """Return a column of whole numbers."""
        return self._counts[_ROW[name], : self.n_cells]

    def sum(self, name: str) -> FloatArray:
        """Return a column of real numbers."""
        return self._sums[_ROW[name], : self.n_cells]

    def extend(self, rows: Sequence[Sequence[Any]], last_hash: bytes | None) -> None:
        """Add the next events, from `read_slice`."""
        if not rows:
            return
        number, kind, at, arm, reward, probability, counted, replaced, assigned_at, rewards = zip(*rows, strict=True)
        try:
            self._add(
                _Events(
                    np.array(number, np.int64),
                    np.array([UNIT_EVENTS.get(one, OTHER) for one in kind], np.int64),
                    np.array(at, np.int64),
                    np.array([-1 if one is None else one for one in arm], np.int64),
                    np.array(reward, np.float64),
                    np.array(probability, np.float64),
                    np.array([one == 1 for one in counted], np.bool_),
                    np.array(replaced, np.float64),
                    np.array(assigned_at, np.float64),
                    np.array([one == 0 for one in rewards], np.bool_),
                ),
                last_hash,
            )
        except (OverflowError, TypeError, ValueError) as error:  # SQLite's columns hold values of any type
            raise _damaged(number[0]) from error

    def _add(self, events: _Events, last_hash: bytes | None) -> None:
        if events.number[0] != self.mark.event + 1 or events.number[-1] - events.number[0] + 1 != events.number.size:
            raise _damaged(self.mark.event + 1)
        last = Mark(int(events.number[-1]), last_hash, *self.mark[2:])
        events = events.only(events.kind != OTHER)
        follows = np.isin(events.kind, (REWARDED, EXPIRED, WITHDRAWN))
        if (events.arm < 0).any() or np.isnan(events.assigned_at[follows]).any():
            raise _damaged(self.mark.event + 1)
        entered = np.where(events.counted, self._counted(events.reward), np.nan)
        if last.centre is None and events.counted.any():
            last = last._replace(centre=float(entered[events.counted.argmax()]))
        last = last._replace(
            last_assigned_at=_latest(last.last_assigned_at, events.at[events.kind == ASSIGNED]),
            last_rewarded_at=_latest(last.last_rewarded_at, events.at[events.kind == REWARDED]),
        )
        with np.errstate(over="ignore", invalid="ignore"):  # fourth powers of huge rewards
            self._add_by_event(events, entered, 0.0 if last.centre is None else last.centre)
        self._add_by_cohort(events.only(follows))
        self.mark = last

    def _add_by_event(self, events: _Events, entered: FloatArray, centre: float) -> None:
        cells = self._cells_of(events.at // HOUR * _ARMS + events.arm)
        for name, kind in (
            ("assigned", ASSIGNED),
            ("rewarded", REWARDED),
            ("corrected", CORRECTED),
            ("expired", EXPIRED),
            ("withdrawn", WITHDRAWN),
        ):
            np.add.at(self._counts[_ROW[name]], cells[events.kind == kind], 1)
        assigned = events.kind == ASSIGNED
        inverse = 1.0 / events.probability[assigned]
        self._add_powers(("inverses", "inverse_squares"), cells[assigned], inverse)
        enters = ~np.isnan(entered)
        np.add.at(self._counts[_ROW["counted"]], cells[enters], 1)
        self._add_powers(("sums", "squares", "cubes", "fourths"), cells[enters], entered[enters] - centre)
        self._add_extremes(cells[enters], entered[enters], events.number[enters])
        leaves = ~np.isnan(events.replaced)
        np.add.at(self._counts[_ROW["removed"]], cells[leaves], 1)
        gone = self._counted(events.replaced[leaves]) - centre
        self._add_powers(("removed_sums", "removed_squares"), cells[leaves], gone)

    def _add_by_cohort(self, events: _Events) -> None:
        cells = self._cells_of(events.assigned_at.astype(np.int64) // HOUR * _ARMS + events.arm)
        rewarded, delay = events.kind == REWARDED, events.at - events.assigned_at
        for name, limit in zip((*DELAYS, "window"), self._limits, strict=True):
            np.add.at(self._counts[_ROW[f"cohort_{name}"]], cells[rewarded & (delay <= limit)], 1)
        withdrawn = events.kind == WITHDRAWN
        for name, which in (
            ("rewarded", rewarded),
            ("expired", events.kind == EXPIRED),
            ("withdrawn", withdrawn),
            ("silent", withdrawn & events.without_reward),
        ):
            np.add.at(self._counts[_ROW[f"cohort_{name}"]], cells[which], 1)

    def _add_powers(self, names: Iterable[str], cells: IntArray, values: FloatArray) -> None:
        """Add the powers of values to the columns named, one after another in the order of the log."""
        power = np.ones_like(values)
        for name in names:
            power = power * values
            np.add.at(self._sums[_ROW[name]], cells, power)

    def _add_extremes(self, cells: IntArray, values: FloatArray, numbers: IntArray) -> None:
        """Keep the lowest and the highest value of each cell, each with the event that first brought it."""
        for row, name, sign in zip(_EXTREMES, ("lowest", "highest"), (1.0, -1.0), strict=True):
            order = np.lexsort((numbers, sign * values, cells))
            found, first = np.unique(cells[order], return_index=True)
            best, event = values[order][first], numbers[order][first]
            better = ~(sign * self._sums[row, found] <= sign * best)  # true of NaN, where there was none
            self._sums[row, found[better]] = best[better]
            self._counts[_ROW[f"{name}_event"], found[better]] = event[better]

    def _counted(self, rewards: FloatArray) -> FloatArray:
        """Return what rewards count as: themselves, or the cap if that is less."""
        return rewards if self._cap is None else np.minimum(rewards, self._cap)

    def _cells_of(self, keys: IntArray) -> IntArray:
        """Return the cells of keys, making those that are missing."""
        distinct, place = np.unique(keys, return_inverse=True)
        found = np.empty(distinct.size, np.int64)
        for at, key in enumerate(distinct.tolist()):
            cell = self._cells.get(key)
            if cell is None:
                cell = len(self._cells)
                if cell == self._key.size:
                    self._make_room(2 * cell)
                self._cells[key] = cell
                self._key[cell] = key
            found[at] = cell
        self._changed[found] = True
        cells: IntArray = found[place]
        return cells

    def _make_room(self, size: int) -> None:
        key, changed = np.zeros(size, np.int64), np.zeros(size, np.bool_)
        counts, sums = np.zeros((len(COUNTS), size), np.int64), np.zeros((len(SUMS), size))
        sums[_EXTREMES, :] = np.nan
        n = self.n_cells
        key[:n], changed[:n], counts[:, :n], sums[:, :n] = self._key, self._changed, self._counts, self._sums
        self._key, self._changed, self._counts, self._sums = key, changed, counts, sums

    # In the store

    def rows(self, cells: NDArray[Any]) -> list[tuple[Any, ...]]:
        """Return cells as rows of the store."""
        columns: list[list[Any]] = [self.hour[cells].tolist(), self.arm[cells].tolist()]
        for name in ROLLUP_COLUMNS[2:]:
            if name in SUMS:  # 0.0 instead of -0.0, and none instead of NaN, which SQLite cannot store
                columns.append([None if one != one else one for one in (self.sum(name)[cells] + 0.0).tolist()])
            else:
                columns.append(self.count(name)[cells].tolist())
        return list(zip(*columns, strict=True))

    def all_rows(self) -> list[tuple[Any, ...]]:
        """Return all cells as rows of the store, in its order."""
        return self.rows(np.lexsort((self.arm, self.hour)))

    def load(self, transaction: Transaction, experiment: int, mark: Mark) -> Rollup:
        """Read the sums that were saved with a mark."""
        for rows in transaction.stream(_ROLLUPS, experiment):
            hour, arm, *columns = zip(*rows, strict=True)
            try:
                cells = self._cells_of(np.array(hour, np.int64) * _ARMS + np.array(arm, np.int64))
                for name, column in zip(ROLLUP_COLUMNS[2:], columns, strict=True):
                    if name in SUMS:
                        self._sums[_ROW[name], cells] = np.array(column, np.float64)
                    else:
                        self._counts[_ROW[name], cells] = np.array(column, np.int64)
            except (OverflowError, TypeError, ValueError) as error:
                raise StoreMismatch("the sums by hour are damaged", hint="equipoise rebuild") from error
        self.saved()
        self.mark = mark
        return self

    def saved(self) -> None:
        """Remember that everything is saved."""
        self._changed[:] = False


def rollup_of_log(transaction: Transaction, experiment: int, configuration: Configuration, last: int) -> Rollup:
    """Return the rollup up to an event, read from the log alone, without its indexes."""
    found = Rollup(configuration)
    assigned_at: list[int] = []
    rewarded = bytearray()
    for rows in transaction.stream(_LOG, experiment, last):
        extended = []
        for *plain, decision in rows:
            number, kind, at, *_ = plain
            try:
                if kind == "assigned":
                    assigned_at.append(at)
                    rewarded.append(0)
                elif kind == "rewarded":
                    rewarded[decision] = 1
                of_unit = None if decision is None else assigned_at[decision]
                extended.append((*plain, of_unit, rewarded[decision] if kind == "withdrawn" else None))
            except (LookupError, TypeError) as error:
                raise _damaged(number) from error
        found.extend(extended, None)
    return found


class _Events(NamedTuple):
    """Events as arrays, with the time of the unit's assignment, and whether it had no reward when it was withdrawn."""

    number: IntArray
    kind: IntArray
    at: IntArray
    arm: IntArray
    reward: FloatArray
    probability: FloatArray
    counted: NDArray[np.bool_]
    replaced: FloatArray
    assigned_at: FloatArray
    without_reward: NDArray[np.bool_]

    def only(self, which: NDArray[np.bool_]) -> _Events:
        columns: Any = [column[which] for column in self]
        return _Events(*columns)


def _latest(known: int | None, at: IntArray) -> int | None:
    return max([*([] if known is None else [known]), *([int(at.max())] if at.size else [])], default=None)


def _damaged(event: int) -> StoreMismatch:
    return StoreMismatch(f"the log is damaged at event {event} or soon after", hint="equipoise verify tells more")
