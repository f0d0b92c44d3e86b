"""Hints in the terms of one surface, by their text; `errors.hint_in` does it by value."""

from __future__ import annotations

from equipoise.errors import Hint, hint_in


def in_requests(hint: str) -> str:
    """Return a hint of the library as a service gives it."""
    return hint_in(_known(hint), "request")


def in_calls(hint: str) -> str:
    """Return a hint of a service as its client for Python gives it."""
    return next((one for one in Hint if one.request == hint), hint)


def in_commands(hint: str) -> str:
    """Return a hint of the library or the client as the command line gives it."""
    return hint_in(_known(hint), "command")


def _known(hint: str) -> str:
    return next((one for one in Hint if hint == one), hint)
