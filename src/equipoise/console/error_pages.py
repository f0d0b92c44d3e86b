"""Show the pages that belong to no experiment: signing in, and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from equipoise.console.visits import Shown

TITLES = {
    401: "Sign in first",
    403: "This is not for you",
    404: "There is nothing here",
    405: "This cannot be done here",
    409: "Look again",
    413: "This is too large",
    415: "This is no form",
    422: "Something is not right yet",
    429: "That was enough for this hour",
    500: "Something went wrong",
    503: "Just now this does not work",
}


class Link(NamedTuple):
    """A link of an error page."""

    address: str
    text: str


@dataclass(frozen=True)
class SignInView:
    """The page to sign in: where to go then, and why it did not work."""

    next: str
    problem: str | None


@dataclass(frozen=True)
class ErrorView:
    """What went wrong, what helps, and where to go."""

    title: str
    message: str
    hint: str | None
    links: tuple[Link, ...]


def error_view(status: int, message: str, hint: str | None, links: Sequence[Link]) -> Shown:
    """Show an error."""
    title = TITLES.get(status, "This did not work")
    return Shown("error.html", ErrorView(title, _sentence(message), _sentence(hint or "") or None, tuple(links)), title)


def _sentence(text: str) -> str:
    """Return a message as a sentence.

    Examples
    --------
    >>> _sentence("there is no arm 'x'")
    "There is no arm 'x'."
    """
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?' else '.'}" if text else ""
