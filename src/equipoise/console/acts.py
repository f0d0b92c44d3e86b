"""Describe a page that asks before something is done: what will happen, in sentences with numbers, and a form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from equipoise.console.visits import Shown
from equipoise.experiment.names import LONGEST_REASON

TEMPLATE = "act.html"


@dataclass(frozen=True)
class Sentence:
    """A sentence, with an instant between its two parts if it has one."""

    text: str
    at: datetime | None = None
    rest: str = ""


@dataclass(frozen=True)
class Input:
    """A field of a form.

    Attributes
    ----------
    name, label, value, hint : str
        What it is called in the form and on the page, what stands in it, and what is written below.
    kind : {"text", "number", "long", "check", "choice"}
        A line, a number, some lines, a box to tick, or one of several.
    options : tuple of (str, str)
        Of a choice: values and their words.
    """

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: str = "text"
    is_required: bool = False
    longest: int = 200
    low: float | None = None
    high: float | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ActView:
    """A page that says what will happen, and does it when its button is pressed.

    Attributes
    ----------
    heading : str
        What is to be done.
    sentences : tuple of Sentence
        What will happen.
    button : str
        What the button says.
    inputs : tuple of Input
        What else has to be said.
    hidden : tuple of (str, str)
        Fields that the form carries.
    typed : str or None
        The name that must be typed, for what cannot be undone.
    is_danger : bool
        Whether the button is red.
    back : str
        Where to go instead, below the console.
    problem : str or None
        Why it was not done.
    """

    heading: str
    sentences: tuple[Sentence, ...]
    button: str
    inputs: tuple[Input, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    typed: str | None = None
    is_danger: bool = False
    back: str = ""
    problem: str | None = None

    def shown(self, status: int = 200) -> Shown:
        """Return the page."""
        return Shown(TEMPLATE, self, self.heading, status)


def reason_input(value: str = "", *, is_required: bool = False) -> Input:
    """Return the field for the reason, which goes into the log."""
    hint = "Goes into the log, with your name."
    label = "Why?" if is_required else "Why? (may be left empty)"
    return Input("reason", label, value, hint, is_required=is_required, longest=LONGEST_REASON)


def quoted(name: str) -> str:
    """Return a name in quotation marks, as sentences have it."""
    return f"\N{LEFT SINGLE QUOTATION MARK}{name}\N{RIGHT SINGLE QUOTATION MARK}"
