"""The parts of a plan: arms, people, rewards, drift, ways to assign, goals and costs, each checked when it is made."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from types import NoneType
from typing import Any, Self, cast

import numpy as np

from equipoise import checks, quantities
from equipoise._types import FloatArray
from equipoise.checks import LARGEST_COUNT
from equipoise.errors import InvalidInput, UnknownName, within
from equipoise.experiment.configuration import DIRECTIONS
from equipoise.experiment.missing_rewards import MISSING_RULES, RULE_KEYS, MissingReward, WaitForReward, missing_rule
from equipoise.experiment.names import checked_new_name
from equipoise.planner.guesses import ANY, DURATION, POSITIVE, SHARE, Guess, Scale, plain_duration
from equipoise.policies import Policy, Uniform
from equipoise.policies.pooled_balance import recommended
from equipoise.simulation.study_file import policies_from, policy_from_text
from equipoise.theory.assumptions import checked_probability

DAY = 86_400.0
WEEK = 7
LONGEST_DAYS = 36_525
MOST_PEOPLE = 10**7
"""Most people that a plan may have: those of one simulated experiment are kept in memory."""
_RULE_NAMES = {"window_seconds": "window", "reward": "value"}
_DAILY = re.compile(r"\s*daily(?:\s+at\s+(\d{1,2})(?::(\d{2}))?)?\s*")
_EVERY = re.compile(r"\s*every\s+([\d,]+)(?:\s+people)?\s*")


class Part:
    """A part of a plan, which can be written as a mapping with the same keys."""

    _name: str

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the part that was given, or make it from a mapping; errors name keys that do not exist."""
        return given if isinstance(given, cls) else cls(**cls._checked_table(given, cls.keys()))

    @classmethod
    def _checked_table(cls, given: Any, allowed: Sequence[str]) -> dict[str, Any]:
        with within(cls._name):
            if not isinstance(given, (Mapping, NoneType)):
                raise InvalidInput(f"must be a table with {', '.join(allowed)}; got {given!r}")
            check_keys(given or {}, allowed)
        return dict(given or {})

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys that a mapping may have."""
        return tuple(field.name for field in dataclasses.fields(cast(Any, cls)) if field.init)

    def table(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data, to be read by `of`."""
        found = {}
        for field in dataclasses.fields(cast(Any, self)):
            value = getattr(self, field.name)
            is_required = field.default is dataclasses.MISSING
            if is_required or plain(value) != plain(field.default):
                found[field.name] = plain(value)
        return found

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)


def plain(value: Any) -> Any:
    """Return a value of a plan as plain data; dates stay dates."""
    if isinstance(value, Guess):
        return value.plain()
    if isinstance(value, Part):
        return value.table()
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def check_keys(table: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Raise if a table has a key that is not allowed, and say which is meant."""
    import difflib

    for key in table:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean {near[0]}?" if near else None
            raise UnknownName(f"unknown key {key!r}; allowed are {', '.join(allowed)}", hint=hint)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput.of(name, "must be true or false", value)
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput.of(name, "must be text", value)
    return value


def _amount(name: str, value: Any, *, open_low: bool = False) -> float | None:
    if value is None:
        return None
    return checks.number_between(name, quantities.fraction(value, name), 0, math.inf, open_low=open_low)


def _people(name: str, value: Any) -> int:
    count = quantities.whole_number(value, name) if isinstance(value, str) else value
    return checks.whole_number(name, count, 1, MOST_PEOPLE)


def _date(name: str, value: Any) -> date:
    """Return a date, given as one or as text; a datetime gives its own date."""
    try:
        found = date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, date):
        raise InvalidInput.of(name, "must be a date such as 2027-06-30", value)
    return found.date() if isinstance(found, datetime) else found


@dataclass(frozen=True, kw_only=True)
class Delay(Part):
    """How long a reward takes: the median, and the time after which nine of ten that come at all are there.

    Between the two, delays have a log-normal distribution. Without `nine_of_ten` all rewards take the same time.

    Parameters
    ----------
    median, nine_of_ten : duration or Guess
        "8h", "2 days", a number of seconds, a guess with a range such as "6h to 10h", or "at once".

    Examples
    --------
    >>> Delay(median="8h", nine_of_ten="2 days")
    Delay(median=Guess(value=28800.0, low=None, high=None), nine_of_ten=Guess(value=172800.0, low=None, high=None))
    """

    _name = "delay"
    median: Any
    nine_of_ten: Any = None

    def __post_init__(self) -> None:
        median = Guess.of("median", 0.0 if self.median == "at once" else self.median, DURATION)
        last = None if self.nine_of_ten is None else Guess.of("nine_of_ten", self.nine_of_ten, DURATION, at_ends=False)
        if last is not None and last.value <= median.value:
            hint = "leave nine_of_ten out if all rewards take the same time"
            words = f"must be longer than the median, {quantities.duration_text(median.value)}"
            raise InvalidInput.of("nine_of_ten", words, self.nine_of_ten, hint=hint)
        self._set(median=median, nine_of_ten=last)

    @classmethod
    def optional(cls, name: str, given: Any) -> Delay | None:
        """Return the delay in any of its forms; None if nothing is said."""
        if given is None or isinstance(given, cls):
            return given
        with within(name):
            if isinstance(given, Mapping) and not {"guess", "low", "high"} & set(given):
                if "median" not in given:
                    raise InvalidInput.of("median", "is missing: a delay has a median, and perhaps nine_of_ten")
                check_keys(given, cls.keys())
                return cls(**given)
            if isinstance(given, (list, tuple)) and len(given) == 2:
                return cls(median=given[0], nine_of_ten=given[1])
        try:
            return cls(median=given)
        except InvalidInput as error:
            expected = "must be a duration such as 8h, or a median and nine_of_ten such as (8h, 2 days)"
            raise InvalidInput.of(name, expected, given, hint=error.hint) from None


@dataclass(frozen=True, kw_only=True)
class PlannedArm(Part):
    """An arm, and what one expects of its rewards: a rate, a mean and a spread, or the rewards of a pilot.

    Parameters
    ----------
    name : str
        Its name.
    rate : Guess, optional
        Of yes/no rewards: how often yes is expected, such as "30%" or "25% to 35%". The spread follows.
    mean, std : Guess, optional
        Of other rewards. They have a normal distribution if `Rewards.range` is not given, a gamma distribution if it is
        ``(0, None)``, and a beta distribution between its ends otherwise.
    rewards : sequence of float, optional
        The rewards of a pilot, which simulated people draw from. Its mean with its standard error is the guess, unless
        `rate` or `mean` says otherwise. Rewards are then moved to the drawn mean: shifted without a range, otherwise
        shrunk towards the end of the range that is on the way, so that they stay within it.
    delay, missing : optional
        Of this arm's rewards, if they differ from those of the others; see `Rewards`.

    Examples
    --------
    >>> PlannedArm(name="prize", rate="40% to 60%").rate
    Guess(value=0.5, low=0.4, high=0.6)
    """

    _name = "arms"
    name: str
    rate: Any = None
    mean: Any = None
    std: Any = None
    rewards: Any = None
    delay: Any = None
    missing: Any = None

    def __post_init__(self) -> None:
        self._set(name=checked_new_name("arm", self.name))
        with within("arms", self.name):
            self._check()

    def _check(self) -> None:
        rewards = None if self.rewards is None else self._checked_rewards()
        rate = self.rate
        if rate is not None:
            for name in ("mean", "std"):
                if getattr(self, name) is not None:
                    reason = "a yes/no arm needs no spread" if name == "std" else "an arm has a rate or a mean"
                    raise InvalidInput.of(name, f"must be left out: {reason}", getattr(self, name))
            rate = Guess.of("rate", rate, SHARE)
        elif self.mean is None and rewards is None:
            raise InvalidInput("needs a rate such as 30%, or a mean and a std, or the rewards of a pilot")
        elif self.mean is not None and self.std is None and rewards is None:
            hint = "for yes/no rewards give a rate, which needs no std"
            raise InvalidInput.of("std", "is missing: rewards other than yes/no have a mean and a std", hint=hint)
        elif self.mean is None and self.std is not None:
            raise InvalidInput.of("mean", "is missing: rewards other than yes/no have a mean and a std")
        self._set(
            rewards=rewards,
            rate=rate,
            mean=None if self.mean is None else Guess.of("mean", self.mean, ANY),
            std=None if self.std is None else Guess.of("std", self.std, POSITIVE, at_ends=False),
            delay=Delay.optional("delay", self.delay),
            missing=None if self.missing is None else Guess.of("missing", self.missing, SHARE),
        )

    def _checked_rewards(self) -> tuple[float, ...]:
        values = checks.vector("rewards", self.rewards)
        if values.size < 2:
            raise InvalidInput.of("rewards", "must be at least 2, to know their spread; give a mean and a std", 1)
        return tuple(values.tolist())

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return an arm from a table."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or "name" not in given:
            raise InvalidInput.of("arms", "must have names with rates, or tables with a name", given)
        with within("arms", str(given["name"])):
            check_keys(given, cls.keys())
        return cls(**given)

    @property
    def is_yes_no(self) -> bool:
        """Whether rewards are 0 and 1, as far as this arm knows."""
        return self.rate is not None or (
            self.mean is None and self.rewards is not None and set(self.rewards) <= {0.0, 1.0}
        )


def arms_of(given: Any) -> tuple[PlannedArm, ...]:
    """Return arms from a mapping of names to rates or tables, or from a list of arms."""
    if isinstance(given, Mapping):
        tables = []
        for name, one in given.items():
            is_table = isinstance(one, Mapping) and not {"guess", "low", "high"} & set(one)
            if isinstance(one, PlannedArm):
                tables.append(dataclasses.replace(one, name=name))
                continue
            tables.append(PlannedArm.of({"name": name} | (dict(one) if is_table else {"rate": one})))
        found = tuple(tables)
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        found = tuple(PlannedArm.of(one) for one in given)
    else:
        raise InvalidInput.of("arms", "must be arms by name, such as {'plain': '30%', 'prize': '40% to 60%'}", given)
    if len(found) < 2:
        raise InvalidInput.of("arms", f"must be at least two, as an experiment compares them; got {len(found)}")
    names = [arm.name for arm in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput.of("arms", f"must have different names; got {name!r} more than once")
    return found


@dataclass(frozen=True, kw_only=True)
class People(Part):
    """Who comes: how many a day, from when until when.

    Parameters
    ----------
    per_day : Guess, optional
        People on an average day.
    weekdays : seven numbers, optional
        How busy the days of the week are, Monday first, compared with each other; `per_day` is their average.
    ramp : duration, optional
        How long it takes at the start until all come, with steady growth.
    counts : sequence of float, optional
        People on each day, instead of `per_day`; enrolment ends with the last. A file names one with such a column.
    start : date, or datetime with a zone, optional
        The first day, which begins at midnight UTC or at the time given.
    until : date, optional
        The last day on which people are assigned.
    days : int, optional
        How many days people are assigned, instead of `until`.
    most : int, optional
        Nobody is assigned after this many people. Without `per_day`, this is all that is known: there is no calendar.
    exact : bool, default False
        Whether exactly so many come, evenly over the day, instead of a random (Poisson) number at random times.

    Examples
    --------
    >>> people = People(per_day="80 to 112", start="2027-03-01", until="2027-06-30")
    >>> people.enrolment_days, people.deadline.isoformat()
    (122, '2027-07-01T00:00:00+00:00')
    """

    _name = "people"
    per_day: Any = None
    weekdays: Any = None
    ramp: Any = None
    counts: Any = None
    start: Any = None
    until: Any = None
    days: Any = None
    most: Any = None
    exact: bool = False

    def __post_init__(self) -> None:
        with within("people"):
            self._check()

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return people from a table, or from their number."""
        if isinstance(given, (int, str)) and not isinstance(given, bool):
            return cls(most=given)
        return super().of(given)

    def _check(self) -> None:
        self._set(exact=_flag("exact", self.exact))
        if self.most is not None:
            self._set(most=_people("most", self.most))
        if self.per_day is not None:
            self._set(per_day=Guess.of("per_day", self.per_day, POSITIVE, at_ends=False))
        if self.counts is not None:
            self._set(counts=self._checked_counts())
        elif self.per_day is None and self.most is None:
            raise InvalidInput.of(
                "per_day", "is missing", hint="say how many people come a day, or most: how many in all"
            )
        if self.ramp is not None:
            ramp = quantities.duration_seconds(self.ramp, "ramp")
            self._set(ramp=checks.number_between("ramp", ramp, 0, LONGEST_DAYS * DAY, open_low=True))
        if self.weekdays is not None:
            factors = checks.non_negative("weekdays", self.weekdays)
            if factors.size != WEEK or not factors.any():
                raise InvalidInput.of("weekdays", "must be seven numbers, Monday first, not all 0", self.weekdays)
            self._set(weekdays=tuple(factors.tolist()))
        for name in ("weekdays", "ramp", "start", "until", "days"):
            if getattr(self, name) is not None and not self.has_calendar:
                raise InvalidInput.of(name, "needs per_day: how many people come a day", getattr(self, name))
        self._check_dates()

    def _checked_counts(self) -> tuple[float, ...]:
        for name in ("per_day", "weekdays", "ramp"):
            if getattr(self, name) is not None:
                raise InvalidInput.of(
                    name, "must be left out where counts say how many come each day", getattr(self, name)
                )
        if isinstance(self.counts, str):
            raise InvalidInput.of(
                "counts", "must be numbers, one for each day; read_plan reads them from a file", self.counts
            )
        counts = checks.non_negative("counts", self.counts)
        if not counts.any():
            raise InvalidInput.of("counts", "must not all be 0: nobody would come")
        return tuple(counts.tolist())

    def _check_dates(self) -> None:
        start = self.start
        if isinstance(start, str):
            try:
                start = date.fromisoformat(start) if len(start) == len("2027-03-01") else datetime.fromisoformat(start)
            except ValueError:
                start = None
        if self.start is not None:
            is_local = isinstance(start, datetime) and start.tzinfo is None
            if not isinstance(start, date) or is_local:
                expected = "must be a date such as 2027-03-01, or a time with a zone such as 2027-03-01T08:00+01:00"
                raise InvalidInput.of("start", expected, self.start)
            self._set(start=start)
        if self.until is not None:
            until = _date("until", self.until)
            if self.days is not None:
                raise InvalidInput.of("days", "must be left out where until is given", self.days)
            if self.start is None:
                raise InvalidInput.of("start", "is missing: without it, until has no meaning", hint="or give days")
            if until < self.first_day:
                raise InvalidInput.of("until", f"must not be before the start, {self.first_day}", until.isoformat())
            self._set(until=until)
        if self.days is not None:
            days = quantities.whole_number(self.days, "days") if isinstance(self.days, str) else self.days
            self._set(days=checks.whole_number("days", days, 1, LONGEST_DAYS))
        found = self.enrolment_days
        if found is not None and found > LONGEST_DAYS:
            raise InvalidInput.of("until", "must be within 100 years of the start", self.until.isoformat())
        if self.counts is not None:
            stated = self.days if self.days is not None else None if self.until is None else found
            if stated is not None and stated > len(self.counts):
                name = "days" if self.days is not None else "until"
                words = f"must be within the {len(self.counts)} days that counts has"
                raise InvalidInput.of(name, words, self.days or self.until.isoformat())
            if not any(self.counts[:found]):
                raise InvalidInput.of("counts", f"must not all be 0 in the {found} days until the end")

    @property
    def has_calendar(self) -> bool:
        """Whether it is known when people come, not only how many."""
        return self.per_day is not None or self.counts is not None

    @property
    def first_day(self) -> date:
        """The first day; a Monday if it is not known."""
        start: date | None = self.start
        if start is None:
            return date(2001, 1, 1)
        return start.date() if isinstance(start, datetime) else start

    @property
    def starts_at(self) -> datetime | None:
        """When the first day begins."""
        if self.start is None or isinstance(self.start, datetime):
            return self.start
        return datetime.combine(self.start, time(), UTC)

    @property
    def enrolment_days(self) -> int | None:
        """How many days people are assigned, if dates or counts say that."""
        if self.days is not None:
            return int(self.days)
        if self.until is not None:
            return int((self.until - self.first_day).days) + 1
        return None if self.counts is None else len(self.counts)

    @property
    def deadline(self) -> datetime | None:
        """When the last day ends, if dates say that."""
        if self.starts_at is None or self.enrolment_days is None:
            return None
        return self.starts_at + timedelta(days=self.enrolment_days)

    def expected(self, per_day: float, days: int) -> FloatArray:
        """Return how many people are expected on each of the first days, at this pace."""
        if self.counts is not None:
            return np.array(self.counts[:days])
        found = np.full(days, float(per_day))
        if self.weekdays is not None:
            factors = np.array(self.weekdays)
            found *= (factors / factors.mean())[(self.first_day.weekday() + np.arange(days)) % WEEK]
        if self.ramp is not None:
            found *= np.minimum((np.arange(days) + 0.5) * DAY / self.ramp, 1.0)
        return found

    def slower(self, factor: float) -> People:
        """Return the same with this part of the people a day; of the people in all, where nothing else is known."""
        if self.counts is not None:
            return dataclasses.replace(self, counts=tuple(factor * count for count in self.counts))
        if self.per_day is not None:
            return dataclasses.replace(self, per_day=self.per_day.times(factor))
        return dataclasses.replace(self, most=max(1, round(factor * self.most)))


@dataclass(frozen=True, kw_only=True)
class Rewards(Part):
    """How rewards come, or do not come, and how they count.

    Parameters
    ----------
    delay : Delay, duration or pair, optional
        How long until a reward is known: "8h", a median and nine of ten as in ``("8h", "2 days")``, or a `Delay`. At
        once by default.
    missing : Guess, default 0
        The share of people whose reward never comes.
    missing_ratio : Guess, default 1
        How many times likelier a reward is missing after a bad outcome (no, or on the wrong side of the mean) than
        after a good one.
    rule : MissingReward, optional
        What the experiment does about missing rewards: `WaitForReward` (the default), `DefaultReward` or `DropUnit`. In
        a mapping or a file, a word ("wait", "default" or "drop") with `window`, `hold`, `late` and `value` beside it.
    batches : int or str, optional
        When rewards become known in lots: after every so many people (``50``), or once a day (``"daily at 18:00"``,
        counted from the start of a day). One by one, as they come, by default.
    rounded_to : float, optional
        Rewards are multiples of this.
    range : (float, float), optional
        Lowest and highest reward, one of which may be open (None): ``(0, None)`` if never negative. Yes/no rewards have
        (0, 1).
    cap : float, optional
        A larger reward counts as this.
    direction : {"maximise", "minimise"}
        Whether large or small rewards are good.

    Examples
    --------
    >>> rewards = Rewards(delay=("8h", "2 days"), missing="5%", batches="daily at 18:00")
    >>> rewards.missing.value, rewards.batch_seconds
    (0.05, 64800.0)
    """

    _name = "rewards"
    delay: Any = None
    missing: Any = 0.0
    missing_ratio: Any = 1.0
    rule: Any = None
    batches: Any = None
    rounded_to: float | None = None
    range: Any = None
    cap: float | None = None
    direction: str = "maximise"

    def __post_init__(self) -> None:
        with within("rewards"):
            self._check()

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return rewards from a table, in which the rule's parameters stand beside it."""
        if isinstance(given, cls):
            return given
        table = cls._checked_table(given, (*cls.keys(), *RULE_KEYS[1:]))
        rule = {key: table.pop(key) for key in RULE_KEYS if key in table}
        if isinstance(rule.get("rule"), MissingReward) and len(rule) == 1:
            table |= rule
        elif rule:
            with within("rewards", names=_RULE_NAMES):
                table["rule"] = missing_rule(rule)
        return cls(**table)

    def _check(self) -> None:
        self._set(
            delay=Delay.optional("delay", self.delay),
            missing=Guess.of("missing", self.missing, SHARE),
            missing_ratio=Guess.of("missing_ratio", self.missing_ratio, POSITIVE, at_ends=False),
            direction=checks.one_of("direction", self.direction, DIRECTIONS),
            range=_checked_range(self.range),
            rounded_to=_amount("rounded_to", self.rounded_to, open_low=True),
            batches=_checked_batches(self.batches),
            rule=WaitForReward() if self.rule is None else self.rule,
        )
        if self.delay is not None and self.delay.median.value == 0:
            self._set(delay=None)
        if self.missing.value == 1:
            raise InvalidInput.of(
                "missing", "must be less than 100%: no reward would ever be known", self.missing.value
            )
        if self.cap is not None:
            self._set(cap=checks.checked_reward(quantities.number(self.cap, "cap")))
        if not isinstance(self.rule, MissingReward):
            hint = "in a mapping or a file, the rule is a word: wait, default or drop"
            raise InvalidInput.of("rule", f"must be one of {', '.join(MissingReward.names())}", self.rule, hint=hint)

    @property
    def batch_people(self) -> int:
        """After how many people rewards become known; 0 if not by their number."""
        return self.batches if isinstance(self.batches, int) else 0

    @property
    def batch_seconds(self) -> float:
        """At which time of the day rewards become known, in seconds; NaN if not once a day."""
        found = _DAILY.fullmatch(self.batches) if isinstance(self.batches, str) else None
        return math.nan if found is None else 3600.0 * int(found[1]) + 60.0 * int(found[2])

    def table(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data."""
        found = super().table()
        rule = found.pop("rule")
        if self.range is not None:
            found["range"] = [(-math.inf, math.inf)[k] if end is None else end for k, end in enumerate(self.range)]
        if rule != WaitForReward():
            data = rule.to_dict()
            found["rule"] = next(word for word, kind in MISSING_RULES.items() if kind.__name__ == data["name"])
            default = {one.name: one.default for one in dataclasses.fields(rule)}
            for name, value in data.items():
                if name != "name" and value != default[name]:
                    is_window = name == "window_seconds"
                    found["window" if is_window else name] = plain_duration(value) if is_window else value
        return found


def _checked_range(given: Any) -> tuple[float | None, float | None] | None:
    if given is None:
        return None
    expected = "must be a lowest and a highest reward, of which one may be open: [0, 10], or [0, inf]"
    try:
        low, high = (None if end is None else float(end) for end in given)
    except (TypeError, ValueError):
        raise InvalidInput.of("range", expected, given) from None
    low, high = (None if low == -math.inf else low), (None if high == math.inf else high)
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    if (low is None and high is None) or any(map(math.isnan, ends)):
        raise InvalidInput.of("range", expected, given)
    if not ends[0] < ends[1]:
        hint = f"turn it round: [{ends[1]:g}, {ends[0]:g}]" if ends[0] > ends[1] else None
        raise InvalidInput.of("range", expected, given, hint=hint)
    return low, high


def _checked_batches(given: Any) -> int | str | None:
    if given is None or given == "at once":
        return None
    if isinstance(given, str):
        every = _EVERY.fullmatch(given)
        if every is not None:
            given = int(every[1].replace(",", ""))
        else:
            daily = _DAILY.fullmatch(given)
            if daily is not None and int(daily[1] or 0) < 24 and int(daily[2] or 0) < 60:
                return f"daily at {int(daily[1] or 0)}:{int(daily[2] or 0):02d}"
    if isinstance(given, int) and not isinstance(given, bool) and given >= 1:
        return given
    raise InvalidInput.of("batches", 'must be a number of people such as 50, or text such as "daily at 18:00"', given)


@dataclass(frozen=True, kw_only=True)
class Drift(Part):
    """How the level of all arms changes while the experiment runs.

    Parameters
    ----------
    per_week : float
        By how much rewards rise every week.
    step : float
        By how much they jump ...
    step_on : date or duration
        ... on this date, or this long after the start.

    Examples
    --------
    >>> Drift(per_week="-1%").per_week
    -0.01
    """

    _name = "drift"
    per_week: float = 0.0
    step: float = 0.0
    step_on: Any = None

    def __post_init__(self) -> None:
        with within("drift"):
            self._set(
                per_week=quantities.fraction(self.per_week, "per_week"), step=quantities.fraction(self.step, "step")
            )
            if (self.step_on is None) != (self.step == 0):
                name, words = (
                    ("step", "is missing") if self.step == 0 else ("step_on", "is missing: when the step comes")
                )
                raise InvalidInput.of(name, words)
            if self.step_on is not None:
                self._set(step_on=self._instant(self.step_on))

    @staticmethod
    def _instant(given: Any) -> date | float:
        if isinstance(given, date) or (isinstance(given, str) and re.match(r"\d{4}-", given)):
            return _date("step_on", given)
        seconds = quantities.duration_seconds(given, "step_on")
        return checks.number_between("step_on", seconds, 0, LONGEST_DAYS * DAY)


@dataclass(frozen=True, kw_only=True)
class Goals(Part):
    """What the experiment is to find out, by when, and how sure one wants to be that it does.

    Parameters
    ----------
    precision : float, optional
        The half-width to know every arm's mean with: 0.06, or "6%".
    precision_of : {"arms", "differences"}
        Whether that is of every arm, or of the differences between arms (from the control, if there is one).
    margin : float, optional
        To know an arm that is at most this much worse than the best; 0 for the best arm itself.
    deadline : date, optional
        When the goal is to be reached; the end of enrolment by default.
    by : float, default 0.8
        The probability wanted of reaching the goal by the deadline.
    failure_probability : float, default 0.05
        That any of the intervals is wrong: 1 minus their confidence.

    Examples
    --------
    >>> Goals(precision="6%")
    Goals(precision=0.06, precision_of='arms', margin=None, deadline=None, by=0.8, failure_probability=0.05)
    """

    _name = "goals"
    precision: float | None = None
    precision_of: str = "arms"
    margin: float | None = None
    deadline: Any = None
    by: float = 0.8
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        with within("goals"):
            self._set(
                precision=_amount("precision", self.precision, open_low=True),
                precision_of=checks.one_of("precision_of", self.precision_of, ("arms", "differences")),
                margin=_amount("margin", self.margin),
                deadline=None if self.deadline is None else _date("deadline", self.deadline),
            )
            by = quantities.share(self.by, "by")
            if not 0 < by < 1:
                raise InvalidInput.of("by", "must be between 0 and 1: nothing is certain", self.by, hint="0.8 is usual")
            failure = checked_probability(quantities.share(self.failure_probability, "failure_probability"))
            self._set(by=by, failure_probability=failure)

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return goals from a table, or from a precision."""
        if isinstance(given, (int, float, str)) and not isinstance(given, bool):
            return cls(precision=cast(Any, given))
        return super().of(given)


@dataclass(frozen=True, kw_only=True)
class Costs(Part):
    """What the experiment costs, in any currency.

    Examples
    --------
    >>> Costs(per_person=2.5, per_day=100)
    Costs(per_person=2.5, per_day=100.0)
    """

    _name = "costs"
    per_person: float = 0.0
    per_day: float = 0.0

    def __post_init__(self) -> None:
        with within("costs"):
            for name in ("per_person", "per_day"):
                self._set(**{name: _amount(name, getattr(self, name))})


@dataclass(frozen=True, kw_only=True)
class Way(Part):
    """A way to assign people to arms, which a forecast compares with others.

    Parameters
    ----------
    policy : Policy, or its name
        How to assign.
    label : str, optional
        What to call it; by default what the policy is: "information kept 0.7", "weight 0.8", "equal shares".
    floor, control_share, warm_up
        As in `Experiment.create`.

    Examples
    --------
    >>> import equipoise as eq
    >>> Way(policy=eq.Uniform()).label, Way.keeping(0.7).label, Way(policy="ThompsonSampling", floor="2%").floor
    ('equal shares', 'information kept 0.7', 0.02)
    """

    _name = "ways"
    policy: Any
    label: str = ""
    floor: Any = 0.0
    control_share: float = 0.0
    warm_up: int = 0

    def __post_init__(self) -> None:
        policy = self.policy if isinstance(self.policy, Policy) else _policy(self.policy)
        label = _text("label", self.label) or _label(policy)
        self._set(
            policy=policy,
            label=label,
            floor=_floor(self.floor),
            control_share=quantities.share(self.control_share, "control_share"),
            warm_up=checks.whole_number("warm_up", self.warm_up, 0, LARGEST_COUNT),
        )

    @classmethod
    def keeping(cls, information_kept: float, **others: Any) -> Way:
        """Return the recommended policy that keeps a share of the information."""
        about = {key: others.pop(key) for key in ("information_about", "smallest_difference") if key in others}
        return cls(policy=recommended(information_kept=information_kept, **about), **others)

    @classmethod
    def weighing(cls, reward_weight: float, **others: Any) -> Way:
        """Return the recommended policy with a weight between reward (1) and accuracy (0)."""
        return cls(policy=recommended(reward_weight), **others)

    def table(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data."""
        found = super().table()
        found["policy"] = _without_none(self.policy.to_dict())
        if isinstance(self.floor, tuple) and isinstance(self.floor[0], tuple):
            found["floor"] = dict(self.floor)
        if self.label == _label(self.policy):
            found.pop("label")
        return found


def _without_none(data: Any) -> Any:
    """Return plain data without what is None, which files cannot hold and which is the default."""
    if isinstance(data, dict):
        return {key: _without_none(one) for key, one in data.items() if one is not None}
    return data


def _floor(given: Any) -> Any:
    if isinstance(given, Mapping):
        if not given:
            return 0.0
        return tuple((str(name), quantities.share(one, "floor")) for name, one in given.items())
    if isinstance(given, (list, tuple)):
        if given and all(isinstance(one, (list, tuple)) for one in given):
            return tuple((str(name), quantities.share(one, "floor")) for name, one in given)
        return tuple(quantities.share(one, "floor") for one in given)
    return quantities.share(given, "floor")


def _policy(given: Any) -> Policy:
    table = policy_from_text(given) if isinstance(given, str) else given
    if isinstance(table, Mapping):
        table = dict(table)
    try:
        found = policies_from({"policies": [table]})
    except InvalidInput as error:
        if error.parameter[:2] == ("policies", 0):
            error.parameter = error.parameter[2:]
            raise error.within("policy") from None
        raise
    if len(found) != 1:
        raise InvalidInput.of("policy", "must have one value for each parameter", given, hint="give several ways")
    return found[0][1]


def _label(policy: Policy) -> str:
    if policy == Uniform():
        return EQUAL_SHARES
    weight, kept = (getattr(policy, name, None) for name in ("reward_weight", "information_kept"))
    if weight is not None and policy == recommended(weight):
        return f"weight {weight:g}"
    if kept is not None:
        about = getattr(policy, "information_about", "average")
        difference = getattr(policy, "smallest_difference", None)
        if policy == recommended(information_kept=kept, information_about=about, smallest_difference=difference):
            words = "" if about == "average" else f" about {about}"
            within_words = "" if difference is None else f" to within {difference:g}"
            return f"information kept {kept:g}{words}{within_words}"
    return repr(policy).removesuffix("()")


EQUAL_SHARES = "equal shares"
DEFAULT_KEPT = (1.0, 0.9, 0.7, 0.5, 0.25)
"""The shares of information kept that a plan compares if it does not say which."""
_SHORT = (
    *("weights", "information_kept", "information_about", "smallest_difference", "policies"),
    *("floor", "control_share", "warm_up"),
)


def ways_of(given: Any) -> tuple[Way, ...]:
    """Return ways, equal shares among them, from a list of them or from a table of lists.

    Examples
    --------
    >>> [way.label for way in ways_of({"weights": [0.5, 0.9], "policies": ["ThompsonSampling"], "floor": 0.02})]
    ['equal shares', 'weight 0.5', 'weight 0.9', 'ThompsonSampling']
    """
    if given is None or isinstance(given, Mapping):
        with within("ways"):
            found = _ways_of_table({} if given is None else given)
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        ways = []
        for place, one in enumerate(given):
            with within("ways", place):
                ways.append(_way(one))
        found = ways
    else:
        raise InvalidInput.of("ways", "must be a list of ways, or a table with weights or information_kept", given)
    if not any(way.policy == Uniform() for way in found):
        found = [Way(policy=Uniform()), *found]
    labels = [way.label for way in found]
    for label in labels:
        if labels.count(label) > 1:
            hint = "give them different labels" if isinstance(given, (list, tuple)) else None
            raise InvalidInput.of("ways", f"must be different; got {label!r} more than once", hint=hint)
    return tuple(found)


def _way(given: Any) -> Way:
    if isinstance(given, Way):
        return given
    if isinstance(given, (Policy, str)):
        return Way(policy=given)
    if not isinstance(given, Mapping):
        hint = 'shares of information go into a table: {"information_kept": [0.9, 0.5]}'
        raise InvalidInput.of("policy", "must be a policy, its name, or a Way", given, hint=hint)
    check_keys(given, Way.keys())
    if "policy" not in given:
        raise InvalidInput.of("policy", "is missing", hint="such as ThompsonSampling")
    return Way(**given)


def _ways_of_table(table: Mapping[str, Any]) -> list[Way]:
    check_keys(table, _SHORT)
    shared = {key: table[key] for key in ("floor", "control_share", "warm_up") if key in table}
    about = {key: table[key] for key in ("information_about", "smallest_difference") if key in table}
    kept = table.get("information_kept")
    if kept is None and not ("weights" in table or "policies" in table):
        kept = DEFAULT_KEPT
    if kept is None and about:
        raise InvalidInput.of(next(iter(about)), "goes with information_kept", next(iter(about.values())))
    found: list[Way] = []
    for name, values, make in (
        (
            "information_kept",
            kept,
            lambda share: Way.keeping(quantities.share(share, "information_kept"), **about, **shared),
        ),
        ("weights", table.get("weights"), lambda weight: Way.weighing(quantities.share(weight, "weights"), **shared)),
        ("policies", table.get("policies"), lambda policy: Way(policy=policy, **shared)),
    ):
        made: Callable[[Any], Way] = make
        for place, value in enumerate(_as_list(values)):
            try:
                found.append(made(value))
            except InvalidInput as error:
                if error.parameter[:1] in (("reward_weight",), ("information_kept",), ("weights",)):
                    raise InvalidInput.of(name, error.expected or "", value) from None
                raise error.within(name, place) if name == "policies" else error from None
    return found


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]


def scale_of(reward_range: tuple[float | None, float | None] | None) -> Scale:
    """Return the scale of means of rewards in a range."""
    if reward_range is None:
        return ANY
    low, high = reward_range
    examples = ANY.examples if low is None or high is None else (f"{0.5 * (low + high):g}", f"{low:g} to {high:g}")
    return Scale(low, high, examples)
