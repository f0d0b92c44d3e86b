"""Options that say in words what an experiment is about."""

from typing import Annotated

from equipoise.cli.options import option
from equipoise.errors import InvalidInput

_WORDS = "Description"
Title = Annotated[str | None, option("--title", _WORDS, "TEXT", "What to call it on pages and reports.")]
Question = Annotated[str | None, option("--question", _WORDS, "TEXT", "What it is to find out.")]
Outcome = Annotated[
    str | None, option("--outcome", _WORDS, "TEXT", "What people do whose reward is 1: came to the appointment.")
]
RewardUnit = Annotated[
    str | None, option("--reward-unit", _WORDS, "TEXT", "The unit of other rewards, as points or minutes.")
]
Owner = Annotated[str | None, option("--owner", _WORDS, "TEXT", "Who is responsible.")]
ArmTexts = Annotated[list[str] | None, option("--arm-text", _WORDS, "ARM=TEXT", "What an arm is. Repeatable.")]


def texts_of_arms(entries: list[str] | None) -> dict[str, str] | None:
    """Return the text of each arm."""
    return named_texts("arm_text", "ARM", entries)


def named_texts(parameter: str, what: str, entries: list[str] | None) -> dict[str, str] | None:
    """Return texts by what stands before the first equals sign.

    Examples
    --------
    >>> named_texts("metadata", "KEY", ["class=4b", "note=a=b"])
    {'class': '4b', 'note': 'a=b'}
    """
    if not entries:
        return None
    pairs = [entry.partition("=") for entry in entries]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InvalidInput.of(parameter, f"must be {what}=TEXT", key)
    return {key: value for key, _, value in pairs}
