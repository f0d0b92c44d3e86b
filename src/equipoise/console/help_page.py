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
    Word("alert", "Something that looks wrong and needs somebody, such as rewards that stopped coming."),
    Word("arm", "What a person is assigned to, such as one of four messages."),
    Word(
        "best so far",
        "The arm with the best average reward until now. Another one may still turn out better, unless ruled out.",
    ),
    Word(
        "control",
        "The arm that others are compared with, such as what is done today. A share of people can be reserved for it.",
    ),
    Word(
        "decision",
        "A note in the log that says what was decided, and why. Also what waits for you when a stopping rule is met.",
    ),
    Word("desk", "The page for people who assign by hand: it gives one person an arm, and takes one reward."),
    Word(
        "dial",
        "How much weight the reward of people now has against learning about every arm. Further to reward, more people "
        "get the best arm, and it takes more people until every arm is known as well.",
    ),
    Word("dropped", "A person who never had a reward within the window, and is left out of the averages."),
    Word(
        "enrolling", "The experiment takes new people. Paused: not at the moment. Stopped: no more, but rewards come."
    ),
    Word(
        "event", "One entry of the log. Nothing in the log is ever changed; everything on these pages follows from it."
    ),
    Word("finished", "The experiment is over: no new people, no more rewards, no corrections."),
    Word("held", "A reward that is known but not yet counted, so that quick and slow answers weigh the same."),
    Word(
        "interval",
        "Where the true average of an arm lies, with the confidence that is stated. The intervals of all arms hold "
        "together and at all times: look as often as you like, and stop whenever you like.",
    ),
    Word("missing", "The share of people whose window has passed without a reward."),
    Word("overdue", "A person whose window has passed without a reward, and who is not settled yet."),
    Word(
        "plan",
        "What is expected of an experiment before anybody is assigned: guesses, played many times, say how long it "
        "takes and what each position of the dial brings and costs.",
    ),
    Word("provisional", "Not final: rewards are still to come or are missing, and may change what the page says."),
    Word("ruled out", "An arm that is not the best, as far as the intervals say. It is marked with a hollow circle."),
    Word("reward", "The number recorded for a person: whether they came, a score, minutes."),
    Word("share", "The part of all people that an arm got until now, and the part that it is wanted to get."),
    Word("stopping rule", "What was declared before as a reason to end: a precision, a number of people, a date."),
    Word("window", "How long a reward may take after the assignment."),
)


@dataclass(frozen=True)
class HelpView:
    """The help page."""

    words: tuple[Word, ...]


def show(_visit: Visit) -> Shown:
    """Show the words."""
    return show_words()


def show_words() -> Shown:
    """Show the words, to whoever it is."""
    return Shown("help.html", HelpView(WORDS), "What the words mean")
