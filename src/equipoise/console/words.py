"""Say what the words on the pages mean, and show them on the help page."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.console.visits import Shown, Visit

STATES = {"enrolling": "enrolling", "paused": "paused", "stopped": "stopped", "finished": "finished"}
"""How pages call the states of an experiment."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "arm"), counted(1500, "person", "people")
    ('1 arm', '1,500 people')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


@dataclass(frozen=True)
class Word:
    """A word and what it means."""

    word: str
    meaning: str


WORDS = (
    Word("arm", "What a person is assigned to, such as one of four messages."),
    Word("reward", "The number recorded for a person: whether they came, a score, minutes."),
    Word("share", "The part of all people that an arm got, or that the policy wants it to get."),
)


@dataclass(frozen=True)
class HelpView:
    """The help page."""

    words: tuple[Word, ...]


def show(_visit: Visit) -> Shown:
    """Show the words."""
    return Shown("help.html", HelpView(WORDS), "What the words mean")
