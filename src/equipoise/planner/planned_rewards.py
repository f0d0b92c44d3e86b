"""How the rewards of a plan come: their range, delay, batches, what is missing; and how their level drifts."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Self

from equipoise import checks, quantities
from equipoise.errors import InvalidInput, within
from equipoise.experiment.configuration import DIRECTIONS
from equipoise.experiment.missing_rewards import MISSING_RULES, RULE_KEYS, MissingReward, WaitForReward, missing_rule
from equipoise.planner.guesses import POSITIVE, SHARE, Guess, plain_duration
from equipoise.planner.plan_parts import DAY, Part, amount, checked_date
from equipoise.planner.planned_arms import Delay
from equipoise.planner.planned_people import LONGEST_DAYS

_RULE_NAMES = {"window_seconds": "window", "reward": "value"}
_DAILY = re.compile(r"\s*daily(?:\s+at\s+(\d{1,2})(?::(\d{2}))?)?\s*")
_EVERY = re.compile(r"\s*every\s+([\d,]+)(?:\s+people)?\s*")


@dataclass(frozen=True, kw_only=True)
class Rewards(Part):
    """How rewards come, or do not come, and how they count.

    Parameters
    ----------
    delay : Delay, duration or pair, optional
        How long until a reward is known: "8h", a median and nine of ten as in "8h, 2 days" or ``("8h", "2 days")``, or
        a `Delay`. At once by default. Every duration of a plan has its unit.
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
                if "window" in rule:
                    rule["window"] = quantities.duration_seconds(rule["window"], "window", needs_unit=True)
                table["rule"] = missing_rule(rule)
        return cls(**table)

    def _check(self) -> None:
        self._set(
            delay=Delay.optional("delay", self.delay),
            missing=Guess.of("missing", self.missing, SHARE),
            missing_ratio=Guess.of("missing_ratio", self.missing_ratio, POSITIVE, at_ends=False),
            direction=checks.one_of("direction", self.direction, DIRECTIONS),
            range=_checked_range(self.range),
            rounded_to=amount("rounded_to", self.rounded_to, open_low=True),
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
    def _instant(given: Any) -> date | timedelta:
        if isinstance(given, date) or (isinstance(given, str) and re.match(r"\d{4}-", given)):
            return checked_date("step_on", given)
        seconds = quantities.duration_seconds(given, "step_on", needs_unit=True)
        return timedelta(seconds=checks.number_between("step_on", seconds, 0, LONGEST_DAYS * DAY))
