"""Records of how experiments go over time: the timeline, the pace, and when stopping rules will be met."""

import dataclasses
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import InvalidInput

if TYPE_CHECKING:  # NumPy is a third of what a client would import, and only timelines use it
    from equipoise._types import FloatArray, IntArray

DELAY_NAMES = ("1h", "6h", "1d", "3d", "7d")
"""Delays within which a timeline counts rewards."""
PERIODS = {"hour": 1, "6 hours": 6, "day": 24, "week": 168}
"""Lengths of the periods of a timeline, in hours."""


_LENGTHS = (("hour", timedelta(days=4)), ("6 hours", timedelta(days=30)), ("day", timedelta(days=400)))
"""Periods by how long an experiment took, so that there are at most some hundred points or four hundred days."""


def period_between(began: datetime, ended: datetime) -> str:
    """Return the length of the periods by which a time is best drawn.

    Examples
    --------
    >>> [period_between(datetime(2027, 3, 1), datetime(2027, 3, day)) for day in (5, 6, 31)]
    ['hour', '6 hours', '6 hours']
    """
    return next((name for name, most in _LENGTHS if ended - began <= most), "week")


def checked_period(every: Any) -> str:
    """Return the name of a period."""
    return checks.one_of("every", every, tuple(PERIODS))


def checked_instant(name: str, value: Any) -> datetime | None:
    """Return an instant given as a datetime with a zone or as ISO 8601 text; None stays None.

    Examples
    --------
    >>> checked_instant("since", "2027-06-30T18:00:00+02:00").isoformat()
    '2027-06-30T16:00:00+00:00'
    """
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        if not isinstance(found, datetime) or found.tzinfo is None:
            raise ValueError("no zone")
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        expected = "must be an instant with a zone, such as 2027-06-30T18:00:00+02:00"
        raise InvalidInput.of(name, expected, value) from None


@dataclass(frozen=True)
class Timeline:
    """An experiment over time, by period and arm; periods begin at full hours, midnights or Mondays in UTC.

    Attributes
    ----------
    name, every : str
        The experiment, and the length of a period.
    at : datetime
        When it was read, in UTC.
    event : int
        The last event in it.
    arms : tuple of str
        Names of the arms.
    start : tuple of datetime
        Beginning of each period.
    assigned, rewarded, corrected, expired, withdrawn : int array (periods, arms)
        What happened in the period: units assigned, rewards reported, rewards corrected, windows that passed without a
        reward, units withdrawn.
    assigned_so_far, counted_so_far : int array (periods, arms)
        Units assigned, and rewards in the estimates, at the end of the period.
    mean, std : float array (periods, arms)
        Of the rewards in the estimates at the end of the period, as reported; NaN where there are too few.
    low, high : float array (periods, arms)
        Both ends of the interval of each mean, as `status` had them at the end of the period; NaN where there was none.
        If rewards were corrected, they may be wider than they were.
    share_given : float array (periods, arms)
        Share of the units of the period that the arm got; NaN without units.
    share_wanted : float array (periods, arms)
        Share that the policy steered towards at the end of the period, floors included; NaN if it had none.
    answered : int array (periods, arms)
        Of the units assigned in the period, those with a reward by now.
    matured, missing : int array (periods, arms)
        Of the units assigned in the period, those whose window has passed; of these, those without a reward within it,
        except units that were withdrawn without one. Zero in experiments without a window.
    delays : tuple of str
        Delays after the assignment: 1 hour, 6 hours, 1, 3 and 7 days.
    old_enough, rewarded_within : int array (periods, arms, delays)
        Of the units assigned in the period, those that were assigned at least that long ago; of these, those rewarded
        within the delay.
    """

    name: str
    every: str
    at: datetime
    event: int
    arms: tuple[str, ...]
    start: tuple[datetime, ...]
    assigned: "IntArray"
    rewarded: "IntArray"
    corrected: "IntArray"
    expired: "IntArray"
    withdrawn: "IntArray"
    assigned_so_far: "IntArray"
    counted_so_far: "IntArray"
    mean: "FloatArray"
    std: "FloatArray"
    low: "FloatArray"
    high: "FloatArray"
    share_given: "FloatArray"
    share_wanted: "FloatArray"
    answered: "IntArray"
    matured: "IntArray"
    missing: "IntArray"
    delays: tuple[str, ...]
    old_enough: "IntArray"
    rewarded_within: "IntArray"

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain data that JSON can hold; NaN is None."""
        data: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "tolist"):
                value = _plain(value.tolist())
            data[field.name] = value
        return data | {"at": self.at.isoformat(), "start": [start.isoformat() for start in self.start]}


@dataclass(frozen=True)
class RuleOutlook:
    """When a stopping rule will be met, if everything goes on as it does.

    Attributes
    ----------
    rule, met, goal
        As in `Progress`.
    people : int or None
        Further people until then; 0 if it is met.
    days : float or None
        Days until so many have come.
    expected_at : datetime or None
        The day and time that these lead to, in UTC; a deadline's own.
    reason : str
        Why there is no date, in words; empty if there is one, or if the rule is met.
    """

    rule: str
    met: bool
    goal: int | float | str
    people: int | None
    days: float | None
    expected_at: datetime | None
    reason: str


@dataclass(frozen=True)
class Outlook:
    """What lies ahead of an experiment if everything goes on as it does.

    Attributes
    ----------
    name : str
        The experiment.
    at : datetime
        When this was computed, in UTC.
    n_events : int
        The last event that it knows of.
    people_per_day : float or None
        The pace of the last seven days, or since the first person; None before the first hour has passed, and while
        nobody is enrolled.
    rules : tuple of RuleOutlook
        One for each stopping rule.
    """

    name: str
    at: datetime
    n_events: int
    people_per_day: float | None
    rules: tuple[RuleOutlook, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the outlook as plain data that JSON can hold."""
        rules = []
        for one in self.rules:
            expected_at = None if one.expected_at is None else one.expected_at.isoformat()
            rules.append(dataclasses.asdict(one) | {"expected_at": expected_at})
        return dataclasses.asdict(self) | {"at": self.at.isoformat(), "rules": rules}


def _plain(rows: Any) -> Any:
    if isinstance(rows, list):
        return [_plain(row) for row in rows]
    return None if rows != rows else rows
