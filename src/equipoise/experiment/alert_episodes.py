"""Open and close the alerts of an experiment, once each, and read those that are open or not yet sent.

Any reader that looked at the checks does this, as with the sums by hour. Only what changes is written, in a transaction
of the experiment, by one process at a time: a lease keeps two that look at different seconds from taking turns.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from equipoise.errors import StoreError
from equipoise.experiment.event_kinds import MUTED, UNMUTED
from equipoise.monitoring.check_names import CHECKS, OFF_PLAN
from equipoise.monitoring.health_records import NOTE, PROBLEM, Alert, Check
from equipoise.store import Store, Transaction, schema
from equipoise.store.schema import ALERT_COLUMNS, instant, microseconds

if TYPE_CHECKING:
    from equipoise.store.transaction import Head

log = logging.getLogger("equipoise.experiment")

LEASE, LEASE_SECONDS = "alerts", 10.0
LASTING = {OFF_PLAN: timedelta(days=3)}
"""Findings that open an alert only if they last."""
_HOLDER = secrets.token_hex(8)
"""Who we are, for leases; a fork is somebody else."""
_MOST_MUTES = 1_000

_COLUMNS = ", ".join(ALERT_COLUMNS)
_OPEN = f"SELECT {_COLUMNS} FROM alerts WHERE experiment = ? AND closed_at IS NULL ORDER BY seen_at, id"  # noqa: S608
_EXPERIMENTS_WITH_ALERTS = """
SELECT id, name FROM experiments WHERE EXISTS
    (SELECT 1 FROM alerts WHERE alerts.experiment = experiments.id AND closed_at IS NULL AND opened_at IS NOT NULL)
ORDER BY id
"""
_ARMS = "SELECT name FROM arms WHERE experiment = ? ORDER BY position"
_FORGET = "DELETE FROM alerts WHERE experiment = ? AND id = ?"


def holder() -> str:
    """Return the name of this process on leases."""
    return f"{_HOLDER}-{os.getpid()}"


class Episode(NamedTuple):
    """A row of the table of alerts; instants are in microseconds."""

    id: str
    check_name: str
    arm: int | None
    severity: str
    seen_at: int
    opened_at: int | None
    opened_event: int | None
    closed_at: int | None
    closed_event: int | None
    value: float | None
    expected: float | None
    sentence: str
    advice: str
    since: int | None
    event: int | None
    opening_sent_at: int | None
    closing_sent_at: int | None

    @property
    def place(self) -> tuple[str, int | None]:
        """What it is about: one alert of a check and an arm is open at a time."""
        return self.check_name, self.arm

    def now(self, finding: Check) -> Episode:
        """Return the episode with what was found now."""
        return self._replace(
            severity=finding.state,
            value=finding.value,
            expected=finding.expected,
            sentence=finding.sentence,
            advice=finding.advice,
            since=None if finding.since is None else microseconds(finding.since),
            event=finding.event,
        )


class Mute(NamedTuple):
    """That alerts of a check are muted: of one arm, or of all."""

    check: str
    arm: str | None
    until: datetime | None
    """None if they no longer are."""
    by: str | None
    reason: str | None


def follow(
    store: Store,
    number: int,
    name: str,
    arms: Sequence[str],
    findings: Iterable[Check],
    *,
    undecided: frozenset[str] = frozenset(),
    event: int,
    now: datetime,
) -> tuple[Alert, ...]:
    """Open and close alerts by what was found, and return those that are open: problems first, muted ones last.

    Parameters
    ----------
    store, number, name : Store, int, str
        The experiment.
    arms : sequence of str
        Names of its arms.
    findings : iterable of Check
        Those that are a problem or worth a note.
    undecided : frozenset of str
        Checks that could not be made, whose alerts stay as they are.
    event, now : int and datetime
        The last event, and the time of the checks.
    """
    positions = {arm: position for position, arm in enumerate(arms)}
    found = {(one.check, None if one.arm is None else positions[one.arm]): one for one in findings}
    at = microseconds(now)

    def read(transaction: Transaction) -> tuple[list[Episode], list[Mute]]:
        return read_episodes(transaction, number), mutes_of(transaction, number, arms)

    episodes, mutes = store.read(read)
    made = _differences(episodes, found, undecided, event, at)
    if made.changed or made.gone:
        written = _written(store, number, name, found, undecided, event, at)
        episodes = episodes if written is None else written
    return in_order(_alert(one, name, arms, mutes, now) for one in episodes if one.opened_at is not None)


def _written(
    store: Store,
    number: int,
    name: str,
    found: dict[tuple[str, int | None], Check],
    undecided: frozenset[str],
    event: int,
    at: int,
) -> list[Episode] | None:
    """Write what changes, and return the alerts that are open; None if another process does, or nobody can."""

    def work(transaction: Transaction) -> list[Episode] | None:
        head: Head = transaction.head(number)
        if head.name != name:
            transaction.require_name(number, name)
        if not transaction.take_lease(number, LEASE, holder(), at, at + int(LEASE_SECONDS * 1_000_000)):
            return None
        # Read again: another process may have written them since.
        changed, gone, still_open = _differences(read_episodes(transaction, number), found, undecided, event, at)
        for one in gone:
            transaction.execute(_FORGET, number, one.id)
        closed = [one for one in changed if one.closed_at is not None]
        rest = [one for one in changed if one.closed_at is None]
        for rows in (closed, rest):  # closed ones first: one alert of a check and an arm is open at a time
            if rows:
                transaction.put(schema.alerts, number, rows)
        return still_open

    try:
        return store.change(number, work)
    except StoreError as error:
        log.info("the alerts of experiment %r were not written: %s", name, error)
        return _differences(store.read(lambda one: read_episodes(one, number)), found, undecided, event, at).still_open


class _Differences(NamedTuple):
    """What findings change: rows to write, those to forget, and those that are open afterwards."""

    changed: list[Episode]
    gone: list[Episode]
    still_open: list[Episode]


def _differences(
    episodes: Sequence[Episode],
    found: dict[tuple[str, int | None], Check],
    undecided: frozenset[str],
    event: int,
    at: int,
) -> _Differences:
    changed, gone, still_open = made = _Differences([], [], [])
    for one in episodes:
        finding = found.get(one.place)
        if finding is None and one.check_name in undecided:
            still_open.append(one)
        elif finding is None and one.opened_at is None:
            gone.append(one)
        elif finding is None:
            changed.append(one._replace(closed_at=at, closed_event=event))
        elif (one.severity, finding.state) == (NOTE, PROBLEM) and one.opened_at is not None:
            # What became worse is told as an alert of its own; that the note is over is not worth a message.
            sent = one.opening_sent_at or at
            changed.append(one._replace(closed_at=at, closed_event=event, opening_sent_at=sent, closing_sent_at=at))
            still_open.append(_opened(one.place, finding, event, at))
            changed.append(still_open[-1])
        else:
            present = one.now(finding)
            if present.opened_at is None and at - present.seen_at >= _lasting(one.check_name):
                present = present._replace(opened_at=at, opened_event=event)
            still_open.append(present)
            if present != one:
                changed.append(present)
    known = {one.place for one in episodes}
    for place, finding in found.items():
        if place not in known:
            still_open.append(_opened(place, finding, event, at))
            changed.append(still_open[-1])
    return made


def _opened(place: tuple[str, int | None], finding: Check, event: int, at: int) -> Episode:
    lasts = _lasting(place[0]) == 0
    empty = Episode(
        secrets.token_hex(8),
        *place,
        finding.state,
        at,
        at if lasts else None,
        event if lasts else None,
        *(None,) * 4,
        "",
        "",
        *(None,) * 4,
    )
    return empty.now(finding)


def _lasting(check: str) -> int:
    return LASTING.get(check, timedelta()) // timedelta(microseconds=1)


def read_episodes(transaction: Transaction, number: int) -> list[Episode]:
    """Return the rows of an experiment that are not closed."""
    return [Episode(*row) for row in transaction.execute(_OPEN, number)]


def mutes_of(transaction: Transaction, number: int, arms: Sequence[str]) -> list[Mute]:
    """Return what was muted and no longer muted, the latest first, from the log."""
    rows = transaction.selected_events(
        number, 0, None, _MOST_MUTES, kinds=(MUTED, UNMUTED), changes_only=True, newest_first=True
    )
    found = []
    for _, kind, _, who, _, arm, *_, details, _, _, _, _ in rows:
        data = json.loads(details)
        until = datetime.fromisoformat(data["until"]) if kind == MUTED else None
        found.append(Mute(data["check"], None if arm is None else arms[arm], until, who, data.get("reason")))
    return found


def mute_of(mutes: Iterable[Mute], check: str, arm: str | None, now: datetime) -> Mute | None:
    """Return what mutes alerts of a check and an arm now; the latest that was said of them counts."""
    for one in mutes:
        if one.check == check and one.arm in (None, arm):
            return one if one.until is not None and one.until > now else None
    return None


def open_alerts(transaction: Transaction, number: int, name: str, arms: Sequence[str], now: datetime) -> list[Alert]:
    """Return the open alerts of an experiment: problems first, muted ones last."""
    episodes = [one for one in read_episodes(transaction, number) if one.opened_at is not None]
    mutes = mutes_of(transaction, number, arms) if episodes else []
    return list(in_order(_alert(one, name, arms, mutes, now) for one in episodes))


def n_alert_changes(transaction: Transaction, number: int | None = None) -> int:
    """Return how often alerts of an experiment, or of all, opened or closed; it only grows."""
    statement = "SELECT count(opened_at) + count(closed_at) FROM alerts"
    if number is None:
        return int(transaction.execute(statement)[0][0])
    return int(transaction.execute(f"{statement} WHERE experiment = ?", number)[0][0])


def alerts_of_all(transaction: Transaction, now: datetime) -> list[Alert]:
    """Return the open alerts of all experiments that are not muted."""
    found: list[Alert] = []
    for number, name in transaction.execute(_EXPERIMENTS_WITH_ALERTS):
        arms = [one for (one,) in transaction.execute(_ARMS, number)]
        found += [one for one in open_alerts(transaction, number, name, arms, now) if not one.is_muted]
    return found


def in_order(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """Return alerts in the order in which they are shown."""

    def place(one: Alert) -> tuple[bool, bool, datetime, int, str]:
        return one.is_muted, one.severity != PROBLEM, one.opened_at, _PLACES.get(one.check, 0), one.arm or ""

    return tuple(sorted(alerts, key=place))


_PLACES = {check: place for place, check in enumerate(CHECKS)}


def _alert(episode: Episode, name: str, arms: Sequence[str], mutes: Sequence[Mute], now: datetime) -> Alert:
    assert episode.opened_at is not None  # noqa: S101
    assert episode.opened_event is not None  # noqa: S101
    arm = None if episode.arm is None else arms[episode.arm]
    found = Alert(
        id=episode.id,
        experiment=name,
        check=episode.check_name,
        arm=arm,
        severity=episode.severity,
        opened_at=instant(episode.opened_at),
        opened_event=episode.opened_event,
        closed_at=None if episode.closed_at is None else instant(episode.closed_at),
        closed_event=episode.closed_event,
        value=episode.value,
        expected=episode.expected,
        sentence=episode.sentence,
        advice=episode.advice,
        since=None if episode.since is None else instant(episode.since),
        event=episode.event,
    )
    mute = mute_of(mutes, found.check, arm, now)
    if mute is None:
        return found
    return replace(found, muted_until=mute.until, muted_by=mute.by, mute_reason=mute.reason)


# Messages


class Message(NamedTuple):
    """A message that is to be sent: that an alert opened, or that it closed."""

    number: int
    """Of the experiment in the store."""
    kind: str
    alert: Alert
    due_at: datetime


OPENED, CLOSED = "opened", "closed"
_UNSENT = f"""
SELECT experiment, {_COLUMNS} FROM alerts
WHERE opened_at IS NOT NULL AND (closed_at IS NULL OR closed_at > ?)
    AND (opening_sent_at IS NULL OR (closed_at IS NOT NULL AND closing_sent_at IS NULL))
ORDER BY opened_at, id
"""  # noqa: S608
_SENT = {
    OPENED: "UPDATE alerts SET opening_sent_at = ? WHERE experiment = ? AND id = ? AND opening_sent_at IS NULL",
    CLOSED: "UPDATE alerts SET closing_sent_at = ? WHERE experiment = ? AND id = ? AND closing_sent_at IS NULL",
}


def unsent_messages(transaction: Transaction, now: datetime, patience: timedelta) -> list[Message]:
    """Return the messages of all experiments that are due and were not sent, the oldest first.

    Each is due for a limited time. One of a muted alert is not due before it is no longer muted; if it closes first,
    nothing is said of it. That it closed is said only if it was said that it opened.
    """
    found: list[Message] = []
    experiments: dict[int, tuple[str, list[str], list[Mute]]] = {}
    for number, *row in transaction.execute(_UNSENT, microseconds(now - patience)):
        if number not in experiments:
            name = transaction.configuration(number)[0]
            arms = [one for (one,) in transaction.execute(_ARMS, number)]
            experiments[number] = name, arms, mutes_of(transaction, number, arms)
        name, arms, mutes = experiments[number]
        episode = Episode(*row)
        alert = _alert(episode, name, arms, mutes, now)
        if episode.opening_sent_at is None:
            due_at = _due_at(alert, mutes)
            if due_at is not None and due_at > now - patience:
                found.append(Message(number, OPENED, replace(alert, closed_at=None, closed_event=None), due_at))
        elif alert.closed_at is not None:
            found.append(Message(number, CLOSED, alert, alert.closed_at))
    return sorted(found, key=lambda one: one.due_at)


def _due_at(alert: Alert, mutes: Sequence[Mute]) -> datetime | None:
    """Return when the opening of an alert is or was due; None while it is muted, or if it was until it closed."""
    if alert.is_muted:
        return None
    last = next((one for one in mutes if one.check == alert.check and one.arm in (None, alert.arm)), None)
    if last is None or last.until is None or last.until <= alert.opened_at:
        return alert.opened_at
    return None if alert.closed_at is not None and alert.closed_at <= last.until else last.until


def mark_sent(store: Store, message: Message, now: datetime) -> None:
    """Record that a message was accepted."""
    statement = _SENT[message.kind]
    at = microseconds(now)
    store.change(message.number, lambda one: one.execute(statement, at, message.number, message.alert.id))
