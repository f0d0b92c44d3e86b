"""Hold a plan while it is written in a form, and read its fields as a plan."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from equipoise.console.drafts import Draft, way_label
from equipoise.console.form_values import number_in, optional_count, optional_number, optional_text, text_in
from equipoise.errors import InvalidInput
from equipoise.experiment.missing_rewards import missing_rule
from equipoise.planner import Plan, Way, plan_from_options
from equipoise.planner.measured_plans import AS_NOW
from equipoise.planner.planned_ways import DEFAULT_KEPT, ways_of

MOST_ARMS = 64
"""As many as the service simulates."""
ARM_FIELDS = ("arm", "guess", "at_least", "at_most", "spread")
FIELDS = (
    *("title", "outcome", "control", "rewards", "low", "high", "good"),
    *("per_day", "per_day_low", "per_day_high", "people", "start", "until", "days"),
    *("delay", "nine_of_ten", "missing", "window", "silence", "default_value", "hold", "batches"),
    *("ways", "about", "control_share", "floor", "now"),
    *("half_width", "decided", "margin", "by"),
)
"""Names of the fields that are there once; those of the arms end with the number of the arm."""
_ARM_FIELD = re.compile(rf"({'|'.join(ARM_FIELDS)})([1-9][0-9]?)")
_PLAIN_NUMBER = re.compile(r"(?<![\w.%])\d+(?:\.\d*)?(?![\w.%])")
_WAYS = ", ".join(f"{kept:g}" for kept in DEFAULT_KEPT)
_LONGEST_NOW = 20_000


class ArmRow(NamedTuple):
    """An arm as it is written: its name, and what is guessed of its rewards."""

    arm: str = ""
    guess: str = ""
    at_least: str = ""
    at_most: str = ""
    spread: str = ""


def is_field(name: str) -> bool:
    """Return whether a form of plans has a field with this name.

    Examples
    --------
    >>> is_field("per_day"), is_field("guess12"), is_field("guess0"), is_field("token")
    (True, True, False, False)
    """
    return name in FIELDS or _ARM_FIELD.fullmatch(name) is not None


@dataclass(frozen=True)
class PlanDraft:
    """What is written of a plan; its parts raise `InvalidInput` where that makes no sense."""

    form: Mapping[str, str]

    @cached_property
    def rows(self) -> tuple[ArmRow, ...]:
        """The arms as they are written, without empty lines."""
        found: dict[int, dict[str, str]] = {}
        for name, value in self.form.items():
            field = _ARM_FIELD.fullmatch(name)
            if field is not None and value.strip():
                found.setdefault(int(field[2]), {})[field[1]] = value.strip()
        return tuple(ArmRow(**found[number]) for number in sorted(found))[:MOST_ARMS]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is written yet."""
        return not self.rows

    @cached_property
    def draft(self) -> Draft:
        """The fields that a new experiment has too."""
        for place, row in enumerate(self.rows):
            if not row.arm:
                raise InvalidInput(f"arm {place + 1} has no name")
        return Draft(dict(self.form) | {"arms": "\n".join(row.arm for row in self.rows)})

    @cached_property
    def plan(self) -> Plan:
        """The plan."""
        return plan_from_options(**{name: value for name, value in self._options() if value is not None})

    def _options(self) -> Iterator[tuple[str, Any]]:
        """Yield the options of a plan, as `plan_from_options` has them."""
        draft, form = self.draft, self.form
        names = draft.arms
        if draft.is_yes_no:
            yield "rates", {name: self._rate(row) for name, row in zip(names, self.rows, strict=True)}
        else:
            yield "means", {name: self._mean(row) for name, row in zip(names, self.rows, strict=True)}
            yield "stds", {name: self._spread(row) for name, row in zip(names, self.rows, strict=True)}
            yield "reward_range", draft.reward_range
        yield "direction", draft.direction
        yield "per_day", _guess(form, "per_day", "per_day_low", "per_day_high", "the number of people a day")
        yield "people", optional_count(form, "people", "the most people")
        yield "start", optional_text(form, "start")
        yield "until", optional_text(form, "until")
        yield "days", optional_count(form, "days", "the number of days")
        yield "delay", self._delay()
        missing = optional_text(form, "missing")
        yield "missing", None if missing is None else of_100(missing)
        yield "batches", optional_text(form, "batches")
        yield "rule", None if draft.missing == {"rule": "wait"} else missing_rule(draft.missing)
        control, share = draft.control
        yield "control", control
        yield "ways", self._ways(share)
        yield "precision", optional_number(form, "half_width", "how exactly each arm is to be known")
        if form.get("decided"):
            yield "margin", optional_number(form, "margin", "what choosing may cost") or 0.0
        yield "by", optional_text(form, "by")
        yield "title", optional_text(form, "title")
        yield "outcome", optional_text(form, "outcome")

    def _rate(self, row: ArmRow) -> Any:
        found = {
            name: of_100(text)
            for name, text in (("guess", row.guess), ("low", row.at_least), ("high", row.at_most))
            if text
        }
        if not found:
            raise InvalidInput(f"say how many of 100 {row.arm!r} brings: a guess, or at least and at most")
        return found["guess"] if found.keys() == {"guess"} else found

    def _mean(self, row: ArmRow) -> Any:
        given = {"guess": row.guess, "low": row.at_least, "high": row.at_most}
        found = {
            name: number_in({name: text}, name, f"what is guessed of {row.arm!r}")
            for name, text in given.items()
            if text
        }
        if not found:
            raise InvalidInput(f"say what {row.arm!r} brings on average: a guess, or at least and at most")
        return found["guess"] if found.keys() == {"guess"} else found

    def _spread(self, row: ArmRow) -> float:
        return number_in({"spread": row.spread}, "spread", f"the spread of {row.arm!r}")

    def _delay(self) -> Any:
        median, last = optional_text(self.form, "delay"), optional_text(self.form, "nine_of_ten")
        if median is None and last is not None:
            raise InvalidInput("say how long it takes until half of the answers are known, too")
        return (median, last) if last is not None else median

    def _ways(self, control_share: float) -> list[dict[str, Any]]:
        """Return the ways to compare, equal shares first."""
        kept = text_in(self.form, "ways") or _WAYS
        table: dict[str, Any] = {
            "information_kept": [one.strip() for one in re.split(r"[,\s]+", kept) if one.strip()],
            "information_about": self.draft.about,
            "control_share": control_share,
        }
        floor = optional_number(self.form, "floor", "the share of every arm")
        if floor:
            table["floor"] = floor
        first, *others = ways_of(table)
        now = [] if self._now is None else [self._now]
        named = [replace(way, label=way_label(way.policy.information_kept)) for way in others]
        return [way.table() for way in (first, *now, *named)]

    @cached_property
    def _now(self) -> Way | None:
        """How an experiment assigns people now, if the plan was made from one."""
        text = optional_text(self.form, "now")
        if text is None:
            return None
        try:
            return Way(**{"label": AS_NOW} | _table(json.loads(text[:_LONGEST_NOW])))
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput("how the experiment assigns people now cannot be read: plan again from it") from None

    @property
    def doubts(self) -> list[str]:
        """What is possible, but perhaps not meant."""
        guesses = [row.guess for row in self.rows if row.guess]
        if self.draft.is_yes_no and guesses and all(re.fullmatch(r"0?\.\d+", guess) for guess in guesses):
            return [f"A guess of {guesses[0]} means {guesses[0]} of 100. Write 30 for 30 of 100."]
        return []


def of_100(text: str) -> str:
    """Return a guess in numbers of 100 as a percentage; what has a percent sign stays.

    Examples
    --------
    >>> of_100("30"), of_100("3 to 8"), of_100("50 (40 to 60)"), of_100("0.5%"), of_100("few")
    ('30%', '3% to 8%', '50% (40% to 60%)', '0.5%', 'few')
    """
    return _PLAIN_NUMBER.sub(lambda found: f"{found[0]}%", text)


def _guess(form: Mapping[str, str], middle: str, low: str, high: str, label: str) -> Any:
    found = {
        name: number_in({name: text.replace(",", "")}, name, label)
        for name, field in (("guess", middle), ("low", low), ("high", high))
        if (text := text_in(form, field))
    }
    return found.get("guess") if found.keys() <= {"guess"} else found


def _table(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TypeError(data)
    return data
