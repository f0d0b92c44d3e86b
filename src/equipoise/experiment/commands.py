"""Commands: changes requested of an experiment, as values that are handled in the order they come."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise import checks
from equipoise.checks import checked_reward
from equipoise.errors import InvalidInput
from equipoise.experiment.course import checked_instant
from equipoise.experiment.description import TEXTS, checked_change
from equipoise.experiment.dial import DIAL, stated_dial
from equipoise.experiment.names import (
    LARGEST_ATTRIBUTES,
    LONGEST_NOTE,
    LONGEST_REASON,
    checked_data,
    checked_lines,
    checked_new_name,
    checked_text,
    checked_unit,
    checked_who,
)
from equipoise.monitoring.check_names import CHECKS


@dataclass(slots=True, kw_only=True)
class Request:
    """Base class of all commands; `who` is written to the log."""

    verb: ClassVar[str]
    """Name of the method of `Experiment` that runs the command, and of its row in the table of the HTTP API."""
    who: str | None = None

    def __init_subclass__(cls) -> None:
        cls.verb = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()

    def check(self) -> None:
        """Raise for errors that can be found without knowing the experiment."""
        checked_who(self.who)


@dataclass(slots=True)
class UnitRequest(Request):
    """A command about one unit."""

    unit: str

    def check(self) -> None:
        """Check the author and the unit's name."""
        if self.who is not None:
            checked_who(self.who)
        checked_unit(self.unit)


@dataclass(slots=True)
class Ask(UnitRequest):
    """Ask for the arm of a unit; the result is an `Assignment`."""

    attributes: dict[str, Any] | None = None

    def check(self) -> None:
        """Check the unit and its attributes."""
        UnitRequest.check(self)
        if self.attributes is not None:
            checked_data("attributes", self.attributes, LARGEST_ATTRIBUTES)

    @classmethod
    def many(cls, units: Any) -> list[Ask]:
        """Return an `Ask` for each unit: a name, a pair of a name and attributes, or an item of a mapping.

        Examples
        --------
        >>> [(one.unit, one.attributes) for one in Ask.many(["ada", ("bob", {"class": "4b"})])]
        [('ada', None), ('bob', {'class': '4b'})]
        """
        given: Iterable[Any] = units.items() if isinstance(units, Mapping) else _listed("units", units)
        return [cls(*one) if type(one) is tuple and len(one) == 2 else cls(one) for one in given]


@dataclass(slots=True)
class Tell(UnitRequest):
    """Report the reward of a unit, within the experiment's range; the result is a `ToldReward`."""

    reward: float

    @classmethod
    def many(cls, rewards: Any) -> list[Tell]:
        """Return a `Tell` for each pair of a unit and its reward, also from a mapping or a pandas Series.

        Examples
        --------
        >>> [(one.unit, one.reward) for one in Tell.many({"ada": 0.5})]
        [('ada', 0.5)]
        """
        pairs = rewards.items() if hasattr(rewards, "items") else _listed("rewards", rewards)
        try:
            return [cls(unit, reward) for unit, reward in pairs]
        except (TypeError, ValueError):
            raise InvalidInput("rewards must be pairs of a unit and its reward") from None


@dataclass(slots=True)
class Correct(UnitRequest):
    """Replace a reward and log the reason; the result is a `ToldReward`."""

    reward: float
    reason: str

    def check(self) -> None:
        """Check the unit and the reason."""
        UnitRequest.check(self)
        checked_text("reason", self.reason, LONGEST_REASON, trimmed=False)


@dataclass(slots=True)
class Withdraw(UnitRequest):
    """Take a unit out of the estimates for good and log the reason; the result is a `UnitStatus`."""

    reason: str

    def check(self) -> None:
        """Check the unit and the reason."""
        UnitRequest.check(self)
        checked_text("reason", self.reason, LONGEST_REASON, trimmed=False)


@dataclass(slots=True)
class Settle(Request):
    """Settle units whose window has passed; every other command settles some as well."""


@dataclass(slots=True, kw_only=True)
class Change(Request):
    """A change of the experiment or its arms, with the reason for it, which the log keeps.

    With `expected_change`, the number of an event, it is refused if the experiment was changed after that event.
    """

    reason: str | None = None
    expected_change: int | None = None

    def check(self) -> None:
        """Check the author, the reason and the expected change."""
        Request.check(self)
        if self.reason is not None:
            checked_text("reason", self.reason, LONGEST_REASON, trimmed=False)
        if self.expected_change is not None:
            self.expected_change = checks.whole_number("expected_change", self.expected_change, 0, checks.LARGEST_COUNT)


@dataclass(slots=True)
class Pause(Change):
    """Accept no new units for a while."""


@dataclass(slots=True)
class Resume(Change):
    """Accept new units again after a pause."""


@dataclass(slots=True)
class Stop(Change):
    """Accept no more new units; rewards are still accepted."""


@dataclass(slots=True)
class Finish(Change):
    """Close the experiment: no new units, rewards or corrections; with `anyway` even while windows are open."""

    anyway: bool = False


@dataclass(slots=True)
class AddArm(Change):
    """Add an arm with its floor, the share kept for it."""

    name: str
    floor: float = 0.0

    def check(self) -> None:
        """Check the name and the floor."""
        Change.check(self)
        checked_new_name("arm", self.name)
        checks.number_between("floor", self.floor, 0, 1)


@dataclass(slots=True)
class ArmRequest(Change):
    """A command about one arm."""

    name: str


@dataclass(slots=True)
class PauseArm(ArmRequest):
    """Assign no units to an arm for a while."""


@dataclass(slots=True)
class ResumeArm(ArmRequest):
    """Assign units to an arm again after a pause."""


@dataclass(slots=True)
class RetireArm(ArmRequest):
    """Assign no more units to an arm; its rewards still count."""


@dataclass(slots=True)
class ChangeWeight(Change):
    """Change the weight between reward and accuracy for future decisions."""

    reward_weight: float

    def check(self) -> None:
        """Check the weight."""
        Change.check(self)
        checks.number_between("reward_weight", self.reward_weight, 0, 1)


@dataclass(slots=True)
class ChangeDial(Change):
    """Set the dial between reward and accuracy for future decisions: a weight, information to keep, or a goal."""

    reward_weight: float | None = None
    information_kept: float | None = None
    information_about: str | None = None
    smallest_difference: float | None = None
    half_width: float | None = None
    units: int | None = None

    def check(self) -> None:
        """Check that the dial is set in one way."""
        Change.check(self)
        self.stated()

    def stated(self) -> dict[str, Any]:
        """Return what is stated of the dial, checked."""
        return stated_dial({name: getattr(self, name) for name in DIAL})


@dataclass(slots=True)
class ChangeDescription(Change):
    """Change what an experiment is about, in words; None leaves a text as it is, and "" removes it."""

    title: str | None = None
    question: str | None = None
    outcome: str | None = None
    reward_unit: str | None = None
    owner: str | None = None
    arms: dict[str, str] | None = None

    def check(self) -> None:
        """Check the texts."""
        Change.check(self)
        self.texts()

    def texts(self) -> dict[str, Any]:
        """Return the texts that are given, checked."""
        return checked_change({name: getattr(self, name) for name in (*TEXTS, "arms")})


@dataclass(slots=True)
class Note(Request):
    """Write a note, or a decision, into the log."""

    text: str
    kind: str = "note"

    def check(self) -> None:
        """Check the author, the text and its kind."""
        Request.check(self)
        checked_lines("text", self.text, LONGEST_NOTE)
        checks.one_of("kind", self.kind, NOTES)


NOTES = ("note", "decision")
"""Kinds of notes."""


@dataclass(slots=True)
class Mute(Request):
    """Mute the alerts of a check until an instant, of one arm or of all, and log the reason."""

    check_name: str
    until: str
    reason: str
    arm: str | None = None

    def check(self) -> None:
        """Check the author, the check's name, the instant and the reason; the instant is kept in UTC."""
        Request.check(self)
        self.check_name = checked_check(self.check_name)
        until = checked_instant("until", self.until)
        if until is None:
            raise InvalidInput.of("until", "must be an instant, after which alerts are told again", self.until)
        self.until = until.isoformat()
        checked_text("reason", self.reason, LONGEST_REASON, trimmed=False)


@dataclass(slots=True)
class Unmute(Request):
    """Tell alerts of a check again that were muted."""

    check_name: str
    reason: str | None = None
    arm: str | None = None

    def check(self) -> None:
        """Check the author, the check's name and the reason."""
        Request.check(self)
        self.check_name = checked_check(self.check_name)
        if self.reason is not None:
            checked_text("reason", self.reason, LONGEST_REASON, trimmed=False)


def checked_check(name: Any) -> str:
    """Return the name of a check, which may be written with dashes.

    Examples
    --------
    >>> checked_check("missing-by-arm")
    'missing by arm'
    """
    spoken = name.replace("-", " ") if isinstance(name, str) else name
    return checks.one_of("check", spoken, CHECKS)


def plain_reward(reward: Any) -> float:
    """Return a reward as a finite float; a boolean is refused."""
    if reward is None or checks.is_bool(reward):
        hint = "write 1 for yes and 0 for no" if checks.is_bool(reward) else None
        raise InvalidInput.of("reward", "must be a number", reward, hint=hint)
    return checked_reward(reward)


def _listed(what: str, values: Any) -> Iterable[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput.of(what, "must be a list", values)
    found: Iterable[Any] = values
    return found
