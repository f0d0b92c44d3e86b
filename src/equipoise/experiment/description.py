"""What an experiment is about, in words: its title, question, outcome, owner, and what each arm is."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.errors import InvalidInput, within
from equipoise.experiment.names import LONGEST_NAME, LONGEST_REASON, checked_lines

LONGEST_QUESTION, LONGEST_REWARD_UNIT = 1_000, 50
LONGEST_OF_ARMS = 100_000
"""Most characters of the texts of all arms together."""


@dataclass(frozen=True)
class ExperimentDescription:
    """What an experiment is about, in the words of those who run it; "" where nobody said.

    Attributes
    ----------
    title : str
        What to call it on pages and reports, besides its name.
    question : str
        What it is to find out.
    outcome : str
        What people do whose reward is 1, such as "came to the appointment", or what other rewards measure.
    reward_unit : str
        The unit of rewards that are not yes or no, such as "points" or "minutes".
    owner : str
        Who is responsible.
    arms : dict of str by arm
        What each arm is, as far as it is described.
    """

    title: str = ""
    question: str = ""
    outcome: str = ""
    reward_unit: str = ""
    owner: str = ""
    arms: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the texts as plain data, without those that are empty.

        Examples
        --------
        >>> ExperimentDescription(title="Reminders", arms={"prize": "a draw among those who come"}).to_dict()
        {'title': 'Reminders', 'arms': {'prize': 'a draw among those who come'}}
        """
        return {name: text for name, text in vars(self).items() if text}

    def changed(self, change: Mapping[str, Any]) -> ExperimentDescription:
        """Return the description after a change, in which an empty text removes what was there.

        Examples
        --------
        >>> first = ExperimentDescription(title="Reminders", arms={"plain": "the date", "prize": "a draw"})
        >>> first.changed({"title": "", "arms": {"plain": ""}}).to_dict()
        {'arms': {'prize': 'a draw'}}
        """
        arms = self.arms | dict(change.get("arms", {}))
        plain = {name: text for name, text in change.items() if name != "arms"}
        return dataclasses.replace(self, **plain, arms={arm: text for arm, text in arms.items() if text})

    def difference(self, change: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what a change really changes, and what that was before.

        Examples
        --------
        >>> first = ExperimentDescription(title="Reminders", owner="Ada")
        >>> first.difference({"title": "Letters", "owner": "Ada", "arms": {"prize": "a draw"}})
        ({'title': 'Letters', 'arms': {'prize': 'a draw'}}, {'title': 'Reminders', 'arms': {'prize': ''}})
        """
        new = {name: text for name, text in change.items() if name != "arms" and text != getattr(self, name)}
        old = {name: getattr(self, name) for name in new}
        arms = {arm: text for arm, text in change.get("arms", {}).items() if text != self.arms.get(arm, "")}
        if arms:
            new["arms"], old["arms"] = arms, {arm: self.arms.get(arm, "") for arm in arms}
        return new, old


NOT_DESCRIBED = ExperimentDescription()
TEXTS = tuple(one.name for one in dataclasses.fields(ExperimentDescription) if one.name != "arms")
"""The texts of a description about the experiment as a whole."""
_LONGEST = {"question": LONGEST_QUESTION, "reward_unit": LONGEST_REWARD_UNIT}


def checked_description(name: str, value: Any) -> ExperimentDescription:
    """Return a description from a mapping of texts, checked; None is an empty one."""
    given = value.to_dict() if isinstance(value, ExperimentDescription) else {} if value is None else value
    if not isinstance(given, Mapping):
        raise InvalidInput.of(name, f"must be a dictionary with {', '.join((*TEXTS, 'arms'))}", given)
    with within(name):
        return ExperimentDescription().changed(checked_change(given))


def described_in(metadata: Mapping[str, Any]) -> ExperimentDescription:
    """Return the description of an experiment that was made before there were any: its console kept two texts.

    Examples
    --------
    >>> described_in({"outcome": "came", "class": "4b"}).to_dict()
    {'outcome': 'came'}
    """
    question, outcome = (
        text if isinstance(text, str) else "" for text in (metadata.get("question"), metadata.get("outcome"))
    )
    return ExperimentDescription(question=question, outcome=outcome)


def checked_change(change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a change of a description, checked: texts by what they are about, and those of arms by arm.

    Examples
    --------
    >>> checked_change({"title": "Reminders", "owner": None, "arms": {"plain": ""}})
    {'title': 'Reminders', 'arms': {'plain': ''}}
    """
    found: dict[str, Any] = {}
    for name, text in change.items():
        if name not in (*TEXTS, "arms"):
            raise InvalidInput.of(str(name), f"is not known; a description has {', '.join((*TEXTS, 'arms'))}")
        if text is None:
            continue
        if name == "arms":
            found[name] = _checked_arms(text)
        else:
            found[name] = _checked(name, text, _LONGEST.get(name, LONGEST_NAME))
    return found


def _checked_arms(texts: Any) -> dict[str, str]:
    if not isinstance(texts, Mapping):
        raise InvalidInput.of("arms", "must be a dictionary of texts by arm", texts)
    with within("arms"):
        return {arm: _checked(str(arm), text, LONGEST_REASON) for arm, text in texts.items() if text is not None}


def _checked(what: str, text: Any, longest: int) -> str:
    return "" if text == "" else checked_lines(what, text, longest)


def require_arms(description: ExperimentDescription, arms: Collection[str]) -> None:
    """Raise unless all arms that are described are there, and the texts are not too long together."""
    known = set(arms)
    for arm in description.arms:
        if arm not in known:
            raise InvalidInput.of("arms", "must be arms of the experiment", arm).within("description")
    size = sum(map(len, (*description.arms, *description.arms.values())))
    if size > LONGEST_OF_ARMS:
        raise InvalidInput.of(
            "arms", f"must have at most {LONGEST_OF_ARMS:,} characters together; got {size:,}"
        ).within("description")
