"""Every surface gives the library's hints in its own terms: as a call, as a request over HTTP, as a command."""

from __future__ import annotations

import ast
import copy
import re
from pathlib import Path

import pytest

import equipoise as eq
from equipoise import errors
from equipoise.cli.app import COMMANDS, GROUPS
from equipoise.errors import Hint, hint_in
from equipoise.service.openapi import document

SOURCE = Path(eq.__file__).parent
BEHIND_THE_SERVICE = ("experiment", "service", "store", "policies", "checks.py", "stats.py", "serialization.py")
"""What a request can reach, and so whose hints a service may have to give."""
PYTHON = re.compile(r"\w\(|\w=|\bTrue\b")
NEVER_SAID = {
    "pass str({})": "what must be text is checked to be text before the library sees it",
    "datetime.now(UTC)": "instants are given by who starts the service or makes keys, not by requests",
    "if this is a standby, name the primary in the URL, or both with target_session_attrs=read-write": "for operators",
    "decorate the class with @dataclass(frozen=True, kw_only=True)": "for authors of policies",
    "name a new file or database, or another schema with ?options=-csearch_path%3Dequipoise": "when a store is opened",
}
"""Hints in Python terms that no request brings up."""


def test_every_free_hint_reads_the_same_on_all_surfaces():
    """A hint such as `settle() counts them` must be a `Hint`, with words for HTTP and the command line."""
    found = dict(_hints())
    speaking = {hint: place for hint, place in found.items() if PYTHON.search(hint)}
    assert {hint: place for hint, place in speaking.items() if hint not in NEVER_SAID} == {}
    assert set(NEVER_SAID) <= set(speaking)


def test_every_hint_is_given_somewhere():
    text = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    assert [hint.name for hint in Hint if f"Hint.{hint.name}" not in text] == []


@pytest.mark.parametrize("hint", Hint)
def test_a_hint_survives_the_way_through_a_service(hint):
    assert Hint.from_code(hint.code) is hint
    assert re.fullmatch("[a-z-]+", hint.code)
    assert not PYTHON.search(hint.request)
    assert not PYTHON.search(hint.command)
    assert str(eq.InvalidInput("no", hint=hint)) == f"no\nhint: {hint.call}"


def test_free_hints_and_codes_of_other_versions():
    assert hint_in("a changed arm is a new arm", "request") == "a changed arm is a new arm"
    assert Hint.from_code("settle") is Hint.from_code("") is None


def test_the_requests_and_commands_of_the_hints_exist():
    paths = document()["paths"]
    requests = [found for hint in Hint for found in re.findall(r"([A-Z]{3,}) (/\S+)", hint.request)]
    assert len(requests) >= 8
    for method, path in requests:
        assert method.lower() in paths[path], (method, path)
    names = {*GROUPS, *(name for commands in COMMANDS.values() for name in commands)}
    for hint in Hint:
        assert set(re.findall(r"equipoise (\w+)", hint.command)) <= names, hint.command


def test_an_error_knows_its_parameter():
    with pytest.raises(eq.InvalidInput) as raised:
        eq.ForcingBalance(reward_weight=1.3)
    error = raised.value
    assert (error.parameter, error.expected, error.got) == (("reward_weight",), "must be in [0, 1]", 1.3)
    assert error.message_about("--reward-weight") == "--reward-weight must be in [0, 1]; got 1.3"
    again = copy.copy(error)  # as pickle makes one in another process
    assert (str(again), again.parameter, again.got) == (str(error), error.parameter, error.got)


def test_an_error_counts_arms_as_its_reader_does():
    with pytest.raises(eq.InvalidInput) as raised:
        eq.Gaussian(mean=[1, 2], std=[1, -2])
    assert str(raised.value) == "std must not be negative; got -2.0 for arm 1"
    assert raised.value.message_about("--std") == "--std must not be negative; got -2.0 for arm 2"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"name": "GAFS", "forcing": -1}, r"study\.policies\[0\]\.forcing must be in \[0, inf\); got -1"),
        ({"name": "Gafs"}, r"study\.policies\[0\]: unknown policy 'Gafs'; known are "),
    ],
)
def test_an_error_says_where_its_parameter_is(policy, message):
    with pytest.raises(eq.InvalidInput, match=message) as raised, errors.within("study"), errors.within("policies", 0):
        eq.Policy.from_dict(policy)
    assert raised.value.parameter[:3] == ("study", "policies", 0)


def _hints():
    """Every free hint in the code that a service may meet, with {} for what is filled in, and where it is."""
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
