"""What is said of an experiment's health: checks, alerts, and both together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

OK, NOTE, PROBLEM, NOT_ENOUGH = "ok", "note", "problem", "not enough yet"
"""States of a check, from nothing to do to something to do; the last says that nothing can be decided yet."""

SEVERITIES = (PROBLEM, NOTE)
"""States that open an alert, the worst first."""


@dataclass(frozen=True)
class Check:
    """One check of an experiment, or of one of its arms.

    Attributes
    ----------
    check : str
        What is checked, such as "missing by arm".
    arm : str or None
        The arm that the finding is about.
    state : str
        ok, note, problem or not enough yet.
    sentence : str
        What was found, in words.
    value, expected : float or None
        The number found, and what it would be if nothing were the matter.
    advice : str
        What to do about it; empty if there is nothing to do.
    since : datetime or None
        When it began, as far as is known.
    event : int or None
        The event that the finding is about.
    """

    check: str
    arm: str | None
    state: str
    sentence: str
    value: float | None = None
    expected: float | None = None
    advice: str = ""
    since: datetime | None = None
    event: int | None = None


def alike(checks: Iterable[Check]) -> list[list[Check]]:
    """Return checks in groups to show together: those of several arms of which there is nothing to say.

    Examples
    --------
    >>> checks = [Check("delay by arm", arm, state, "...") for arm, state in (("a", OK), ("b", PROBLEM), ("c", OK))]
    >>> [[one.arm for one in group] for group in alike(checks)]
    [['a', 'c'], ['b']]
    """
    groups: dict[tuple[str, str, str | None], list[Check]] = {}
    for one in checks:
        groups.setdefault((one.check, one.state, one.arm if one.state in SEVERITIES else None), []).append(one)
    return list(groups.values())


@dataclass(frozen=True)
class Alert:
    """A finding that somebody should know of, from when it opened until it closed.

    Attributes
    ----------
    id : str
        Of this episode.
    experiment : str
        The experiment.
    check, arm, severity : str, str or None, str
        The check, the arm that it is about, and "note" or "problem".
    opened_at, closed_at : datetime, and datetime or None
        Times, in UTC; not closed while it is open.
    opened_event, closed_event : int, and int or None
        The last event of the log at those times.
    value, expected, sentence, advice, since, event
        As in `Check`: of now while it is open, and of the last look before it closed.
    muted_until, muted_by, mute_reason
        Until when it is muted, by whom and why; None if it is not.
    """

    id: str
    experiment: str
    check: str
    arm: str | None
    severity: str
    opened_at: datetime
    opened_event: int
    closed_at: datetime | None
    closed_event: int | None
    value: float | None
    expected: float | None
    sentence: str
    advice: str
    since: datetime | None = None
    event: int | None = None
    muted_until: datetime | None = None
    muted_by: str | None = None
    mute_reason: str | None = None

    @property
    def is_muted(self) -> bool:
        """Whether it is muted."""
        return self.muted_until is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the alert as plain data that JSON can hold."""
        return _plain(dataclasses.asdict(self))


@dataclass(frozen=True)
class RefusedCalls:
    """Calls about units that the service refused with one class of error.

    Attributes
    ----------
    error : str
        The class, as in `equipoise.errors`.
    recent, day : int
        Calls in this hour and the one before, and in the last 24 hours.
    """

    error: str
    recent: int
    day: int


@dataclass(frozen=True)
class LastVerification:
    """When an experiment was verified last, and what that found.

    Attributes
    ----------
    at : datetime
        When it ended, in UTC.
    n_events : int
        How many events the log had.
    seconds : float
        How long it took.
    error : str or None
        The first difference; None if there was none.
    """

    at: datetime
    n_events: int
    seconds: float
    error: str | None


@dataclass(frozen=True)
class Health:
    """The health of an experiment at one time: what was checked, and which alerts are open.

    Attributes
    ----------
    name : str
        The experiment.
    at : datetime
        Time of the checks, in UTC.
    n_events : int
        The last event that they know of.
    day : int
        Whole days since the first person; checks that are repeated are decided once on each.
    state : str
        problem, note or ok: the worst alert that is open and not muted.
    sentence : str
        How it stands, in words.
    checks : tuple of Check
        All checks, problems first.
    alerts : tuple of Alert
        Those that are open, problems first and muted ones last.
    refused : tuple of RefusedCalls
        Calls that the service refused, by class of error, most first.
    verified : LastVerification or None
        The last verification; None if there was none.
    """

    name: str
    at: datetime
    n_events: int
    day: int
    state: str
    sentence: str
    checks: tuple[Check, ...]
    alerts: tuple[Alert, ...]
    refused: tuple[RefusedCalls, ...] = ()
    verified: LastVerification | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the health as plain data that JSON can hold."""
        data = _plain(dataclasses.asdict(self))
        data |= {name: [_plain(one) for one in data[name]] for name in ("checks", "alerts")}
        return data | {"verified": None if self.verified is None else _plain(data["verified"])}


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in data.items()}
