"""Lists of units by state or by how their names begin, a page at a time: a page reads a bounded part of an index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import InvalidInput
from equipoise.experiment.event_log import read_event, read_units
from equipoise.experiment.names import LONGEST_UNIT
from equipoise.experiment.records import Event, UnitPage, UnitStatus
from equipoise.experiment.state import FINISHED
from equipoise.store.schema import EVENT_COLUMNS
from equipoise.unit_lifecycle import EXPIRED, REWARDED, STATES, WAITING

if TYPE_CHECKING:
    from equipoise.experiment.state import State
    from equipoise.store import Transaction

MOST_EVENTS = 10_000
"""Most events of one unit that are returned, the last ones: only corrections can be many."""

_MOST_READS = 10
"""Most reads of an index for one page: one that has found too few units then ends, and says where to go on."""
_NAMES, _ROWS, _EVENTS = 200, 1_000, 4_000
"""What one read covers: units by name, rows of an index by time, or events."""
_FIRST, _LAST = -1, 2**62
"""Before and after every instant and every number."""

_NAMED = """
SELECT unit FROM events {by_unit}
WHERE experiment = ? AND unit >= ? AND unit < ? AND kind = 'assigned' ORDER BY unit LIMIT ?
"""
_PENDING = """
SELECT due_at, decision, unit, reward IS NULL FROM pending
WHERE experiment = ? AND due_at <= ? AND (due_at, decision) > (?, ?) ORDER BY due_at, decision LIMIT ?
"""
_REWARDED = """
(SELECT count(*) FROM events AS later {by_unit} WHERE later.experiment = e.experiment AND later.unit = e.unit
    AND later.kind IN ('rewarded', 'withdrawn'))
"""
"""A count, which PostgreSQL looks up for each row; for EXISTS it may read the whole log instead, to join it."""
_EXPIRED = f"""
SELECT number, unit, {_REWARDED} FROM events AS e
WHERE experiment = ? AND kind = 'expired' AND number > ? ORDER BY number LIMIT ?
"""  # noqa: S608
_UNREWARDED = f"""
SELECT number, unit FROM events AS e
WHERE experiment = ? AND number > ? AND number <= ? AND kind = 'assigned' AND {_REWARDED} = 0 ORDER BY number
"""  # noqa: S608
_OF_UNIT = "SELECT {columns} FROM events {by_unit} WHERE experiment = ? AND unit = ? ORDER BY number + 0 DESC LIMIT ?"


class _Reading(NamedTuple):
    """What is read, of which experiment."""

    transaction: Transaction
    experiment: int

    def rows(self, statement: str, *values: Any) -> Sequence[Sequence[Any]]:
        """Run a statement about the experiment."""
        by_unit = self.transaction.database.by_unit
        return self.transaction.execute(statement.format(by_unit=by_unit), self.experiment, *values)


class _Found(NamedTuple):
    """Units that may be wanted, each after its place in an index, and the place to go on from if there is more."""

    units: list[tuple[str, str]]
    following: str | None


class _ByName(NamedTuple):
    """Units whose names begin with a prefix, in the order of their names."""

    prefix: str
    size: int

    @property
    def first(self) -> str:
        """The place before all."""
        return ""

    def read(self, reading: _Reading, after: str) -> _Found:
        """Read up to `size` units."""
        first = f"{after}\1" if after else self.prefix  # names have no control characters
        rows = reading.rows(_NAMED, first, _after_all(self.prefix), self.size)
        names = [name for (name,) in rows]
        return _Found([(name, name) for name in names], names[-1] if len(names) == self.size else None)


class _ByWindow(NamedTuple):
    """Units whose windows are to be closed, in the order in which they pass: those with a reward, or those without."""

    held: bool
    since: int
    until: int

    @property
    def first(self) -> str:
        """The place before all."""
        return f"{self.since}.{_LAST}"

    def read(self, reading: _Reading, after: str) -> _Found:
        """Read some rows of pending units."""
        rows = reading.rows(_PENDING, self.until, *_numbers(after, 2), _ROWS)
        places = [f"{due_at}.{decision}" for due_at, decision, *_ in rows]
        units = [(place, row[2]) for place, row in zip(places, rows, strict=True) if bool(row[3]) != self.held]
        return _Found(units, places[-1] if len(rows) == _ROWS else None)


class _ByExpiry(NamedTuple):
    """Units whose windows were closed without a reward, in that order; with `still`, those that have none now."""

    still: bool

    @property
    def first(self) -> str:
        """The place before all."""
        return "0"

    def read(self, reading: _Reading, after: str) -> _Found:
        """Read some events of units that expired."""
        rows = reading.rows(_EXPIRED, *_numbers(after, 1), _ROWS)
        units = [(str(number), name) for number, name, closed in rows if not (self.still and closed)]
        return _Found(units, str(rows[-1][0]) if len(rows) == _ROWS else None)


class _ByAssignment(NamedTuple):
    """Units without a reward, in the order of their assignments."""

    n_events: int

    @property
    def first(self) -> str:
        """The place before all."""
        return "0"

    def read(self, reading: _Reading, after: str) -> _Found:
        """Read some events."""
        [number] = _numbers(after, 1)
        last = number + _EVENTS
        units = [(str(place), name) for place, name in reading.rows(_UNREWARDED, number, last)]
        return _Found(units, str(last) if last < self.n_events else None)


def read_unit_page(
    transaction: Transaction,
    experiment: int,
    state: State,
    wanted: str | None,
    prefix: str | None,
    limit: int,
    after: str | None,
    now: int,
) -> UnitPage:
    """Return up to `limit` units as they are at `now`, in the state `wanted`, from the place `after` on."""
    reading = _Reading(transaction, experiment)
    sources = _sources(state, wanted, prefix, limit, now)
    if not sources:
        return UnitPage((), None)
    source, place = (0, sources[0].first) if after is None else _start(after, len(sources))
    found: list[tuple[str, UnitStatus]] = []
    missing = state.configuration.missing
    for _ in range(_MOST_READS):
        units, following = sources[source].read(reading, place)
        for start in range(0, len(units), limit + 1):
            group = units[start : start + limit + 1]
            known = read_units(transaction.unit_events(experiment, [name for _, name in group]), missing)
            for at, name in group:
                if name in known:
                    status = known[name].status(name, state.names, missing, now)
                    if wanted in (None, status.state):
                        found.append((f"{source}.{at}", status))
            if len(found) > limit:
                return UnitPage(tuple(one for _, one in found[:limit]), found[limit - 1][0])
        if following is None:
            source += 1
            if source == len(sources):
                return UnitPage(tuple(one for _, one in found), None)
            following = sources[source].first
        place = following
    return UnitPage(tuple(one for _, one in found), f"{source}.{place}")


def _sources(
    state: State, wanted: str | None, prefix: str | None, limit: int, now: int
) -> Sequence[_ByName | _ByWindow | _ByExpiry | _ByAssignment]:
    """Return the indexes that together have all units in a state, each with its part; no unit is in two of them."""
    has_table = state.configuration.missing.window_seconds is not None and state.state != FINISHED
    if prefix is not None or wanted in (None, "counted", "withdrawn") or (wanted == "held" and not has_table):
        return [_ByName(prefix or "", limit + 1 if wanted is None else max(_NAMES, limit + 1))]
    if wanted == "held":
        return [_ByWindow(held=True, since=_FIRST, until=_LAST)]
    if wanted == "waiting":
        return [_ByWindow(held=False, since=now, until=_LAST) if has_table else _ByAssignment(state.n_events)]
    if wanted == "overdue" and state.configuration.missing.window_seconds is None:
        return []
    if wanted == "overdue" and not has_table:
        return [_ByAssignment(state.n_events)]
    life = state.configuration.missing.life
    closed = life.after(WAITING, EXPIRED)
    by_expiry = _ByExpiry(still=STATES[life.after(closed, REWARDED)].name != wanted)
    closed_now = [by_expiry] if STATES[closed].name == wanted else []
    if wanted == "overdue":
        return [*closed_now, _ByWindow(held=False, since=_FIRST, until=now)]
    return closed_now


def _start(after: str, n_sources: int) -> tuple[int, str]:
    """Return the index and the place in it that a page ended at."""
    source, dot, place = after.partition(".")
    if not dot or not source.isdecimal() or int(source) >= n_sources:
        raise _no_place(after)
    return int(source), place


def _numbers(place: str, count: int) -> list[int]:
    parts = place.split(".")
    if len(parts) != count or not all(part.removeprefix("-").isdecimal() and len(part) < 20 for part in parts):
        raise _no_place(place)
    return [min(int(part), _LAST) for part in parts]


def _no_place(text: str) -> InvalidInput:
    return InvalidInput.of("after", "must be `next` of a page with the same filters", text)


def _after_all(prefix: str) -> str:
    """Return a text after all that begin with the prefix; texts are in the order of their code points.

    Examples
    --------
    >>> _after_all("class 4"), _after_all("") > "z"
    ('class 5', True)
    """
    for end in range(len(prefix), 0, -1):
        following = ord(prefix[end - 1]) + 1
        if following < _END_OF_TEXT:
            return prefix[: end - 1] + chr(following if not 0xD800 <= following < 0xE000 else 0xE000)
    return chr(_END_OF_TEXT) * (LONGEST_UNIT + 1)


_END_OF_TEXT = 0x10FFFF
"""The last code point, which no text begins with that means anything: Unicode reserves it."""


def read_unit_events(transaction: Transaction, experiment: int, state: State, unit: str) -> list[Event]:
    """Return the events of a unit in the order of the log, at most the last `MOST_EVENTS`."""
    columns = ", ".join(EVENT_COLUMNS)
    statement = _OF_UNIT.format(columns=columns, by_unit=transaction.database.by_unit)
    rows = transaction.execute(statement, experiment, unit, MOST_EVENTS)
    return [read_event(row, state.names) for row in reversed(rows)]
