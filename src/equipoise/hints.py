"""The library's hints, in the words of those who do not call Python: requests over HTTP, and commands.

The library advises in its own words, `ask(unit) comes first`. A service says them as requests, its client turns those
back into calls, and the command line says either as commands; all by this one table.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Words(NamedTuple):
    """How others say what the library advises to call."""

    request: str
    command: str


_EXPERIMENT = "/experiments/{name}"
_UNIT = f"{_EXPERIMENT}/assignments/{{unit}}"

HINTS = {
    "ask(unit) comes first": Words(
        f"POST {_EXPERIMENT}/assignments comes first", "equipoise ask NAME UNIT comes first"
    ),
    "tell(unit, reward)": Words(f"PUT {_UNIT}/reward", "equipoise tell NAME UNIT REWARD"),
    "correct(unit, reward, reason) replaces it, and logs why": Words(
        f"POST {_UNIT}/corrections replaces it, and logs why", "equipoise correct replaces it, and logs why"
    ),
    "resume() takes new units again": Words(
        f"POST {_EXPERIMENT}/resume takes new units again", "equipoise resume NAME takes new units again"
    ),
    "pause() or stop() the experiment instead": Words(
        f"POST {_EXPERIMENT}/pause or POST {_EXPERIMENT}/stop instead", "equipoise pause or stop the experiment instead"
    ),
    "anyway=True (--anyway)": Words('{"anyway": true}', "--anyway"),
    "rebuild() writes the tables anew from the log": Words(
        f"POST {_EXPERIMENT}/rebuild writes the tables anew from the log",
        "equipoise rebuild NAME writes the tables anew from the log",
    ),
    "give control=...": Words('give "control": ...', "give --control ARM"),
    "choose another name, or open it": Words(f"choose another name, or GET {_EXPERIMENT}", "choose another name"),
    "Experiment.list(store) shows those it has": Words(
        "GET /experiments lists those it has", "equipoise list shows those it has"
    ),
    # The client's own, for what a service says; of two calls for one request, it says the later.
    "Client.list() shows those it has": Words(
        "GET /experiments lists those it has", "equipoise list shows those it has"
    ),
    "give a key: Client(url, key)": Words(
        "send Authorization: Bearer KEY; equipoise keys create makes one", "set EQUIPOISE_KEY, or give --key"
    ),
}
"""What is advised to call, and the same in other words; a hint may have more around it."""

_REQUESTS = {call: words.request for call, words in HINTS.items()}
_COMMANDS = {call: words.command for call, words in HINTS.items()}
_CALLS = {words.request: call for call, words in HINTS.items()}


def in_requests(hint: str) -> str:
    """Return a hint of the library as a service gives it.

    Examples
    --------
    >>> in_requests("ask(unit) comes first")
    'POST /experiments/{name}/assignments comes first'
    """
    return _said(hint, _REQUESTS)


def in_calls(hint: str) -> str:
    """Return a hint of a service as its client for Python gives it.

    Examples
    --------
    >>> in_calls("POST /experiments/{name}/assignments comes first")
    'ask(unit) comes first'
    """
    return _said(hint, _CALLS)


def in_commands(hint: str) -> str:
    """Return a hint of the library or the client as the command line gives it.

    Examples
    --------
    >>> in_commands("ask(unit) comes first")
    'equipoise ask NAME UNIT comes first'
    """
    return _said(hint, _COMMANDS)


def _said(hint: str, words: Mapping[str, str]) -> str:
    return re.sub("|".join(map(re.escape, words)), lambda found: words[found[0]], hint)
