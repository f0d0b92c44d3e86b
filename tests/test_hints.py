"""What the library advises to call is said as a request over HTTP, as a call by the client, and as a command."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import equipoise as eq
from equipoise.cli.app import ARM_COMMANDS, COMMANDS, KEY_COMMANDS
from equipoise.hints import HINTS, in_calls, in_commands, in_requests
from equipoise.service.openapi import document

SOURCE = Path(eq.__file__).parent
BEHIND_THE_SERVICE = ("experiment", "service", "store", "policies", "keys.py", "checks.py", "stats.py", "values.py")
"""What a request can reach, and so whose hints a service may have to tell."""
PYTHON = re.compile(r"\w\(|\w=|\bTrue\b")
NEVER_SAID = {
    "pass str({})": "what must be text is checked to be text before the library sees it",
    "datetime.now(UTC)": "instants are given by who starts the service or makes keys, not by requests",
    "decorate the class with @dataclass(frozen=True, kw_only=True)": "for authors of policies",
    "name a new file or database, or another schema with ?options=-csearch_path%3Dequipoise": "when a store is opened",
}
"""Hints in words of Python that no request brings up."""


def test_every_hint_that_speaks_of_python_has_words_for_requests():
    """Whoever adds a hint such as `settle() counts them` has to say what that is over HTTP."""
    found = dict(_hints())
    speaking = [hint for hint in found if PYTHON.search(in_requests(hint))]
    assert {hint: found[hint] for hint in speaking if hint not in NEVER_SAID} == {}
    assert set(NEVER_SAID) <= set(speaking)
    assert {"ask(unit) comes first", "rebuild() writes the tables anew from the log"} <= set(found)


def test_every_advice_put_into_other_words_is_still_given():
    text = "\n".join(file.read_text() for file in SOURCE.rglob("*.py") if file.name != "hints.py")
    given_by_the_client = {"Client.list() shows those it has", "give a key: Client(url, key)"}
    for call, words in HINTS.items():
        assert (words.request if call in given_by_the_client else call) in text, call


@pytest.mark.parametrize("call", HINTS)
def test_a_client_says_what_the_library_does(call):
    with_more = f"now; or, {call}\nand again"
    same = "Client.list() shows those it has" if call.startswith("Experiment.list") else call
    assert in_calls(in_requests(with_more)) == with_more.replace(call, same)
    assert in_commands(with_more) == f"now; or, {HINTS[call].command}\nand again"
    assert in_requests("a changed arm is a new arm") == "a changed arm is a new arm"


def test_the_requests_and_commands_of_the_hints_exist():
    paths = document()["paths"]
    requests = [found for words in HINTS.values() for found in re.findall(r"([A-Z]{3,}) (/\S+)", words.request)]
    assert len(requests) >= 8
    for method, path in requests:
        assert method.lower() in paths[path], (method, path)
    functions = [*ARM_COMMANDS, *KEY_COMMANDS, *(one for group in COMMANDS.values() for one in group)]
    names = {one.__name__.rstrip("_").replace("_", "-") for one in functions}
    for words in HINTS.values():
        assert set(re.findall(r"equipoise (\w+)", words.command)) <= names, words.command


def _hints():
    """Every hint in the code that a service may meet, with {} for what is filled in, and where it is."""
    for place in BEHIND_THE_SERVICE:
        files = [SOURCE / place] if place.endswith(".py") else sorted((SOURCE / place).rglob("*.py"))
        assert files
        for file in files:
            for node in ast.walk(ast.parse(file.read_text())):
                for text in _texts(node):
                    yield text, f"{file.relative_to(SOURCE)}:{node.lineno}"


def _texts(node):
    if isinstance(node, ast.Call):
        values = [one.value for one in node.keywords if one.arg == "hint"]
    elif isinstance(node, ast.Assign) and any(getattr(one, "id", "").lower().endswith("hint") for one in node.targets):
        values = [node.value]
    else:
        return
    for value in values:
        for part in [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                yield part.value
            elif isinstance(part, ast.JoinedStr):
                yield "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in part.values)
