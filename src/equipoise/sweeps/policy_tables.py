"""Policies as people write them: tables of a study file, or words on the command line, whose lists are swept."""

from __future__ import annotations

import dataclasses
import itertools
import re
import tomllib
from typing import TYPE_CHECKING, Any, cast

from equipoise.errors import InvalidInput
from equipoise.policies import Policy
from equipoise.sweeps.places import Misplaced, named_place

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from equipoise.sweeps.places import Place

_SHARED = ("reward_weight", "forcing")


def policy_from_text(text: str) -> dict[str, Any]:
    """Return a policy's table from a name, a colon and parameters separated by commas, with values as in TOML.

    Examples
    --------
    >>> policy_from_text("ForcingBalance:reward_weight=[0.6,0.9],tracking=sample")
    {'name': 'ForcingBalance', 'reward_weight': [0.6, 0.9], 'tracking': 'sample'}
    >>> policy_from_text("Uniform")
    {'name': 'Uniform'}
    """
    name, _, parameters = text.partition(":")
    # Words may come without the quotation marks that TOML wants, and numbers without the zero.
    parameters = re.sub(r"=\s*((?!(?:true|false|inf|nan)\b)[A-Za-z_][\w-]*)", r'="\1"', parameters)
    parameters = re.sub(r"(?<![\w.])\.(?=\d)", "0.", parameters)
    try:
        table = tomllib.loads(f"policy = {{{parameters}}}")["policy"] if "\n" not in parameters else None
    except tomllib.TOMLDecodeError:
        table = None
    if not isinstance(table, dict) or "name" in table or not name.strip():
        raise InvalidInput(f"a policy must be NAME or NAME:parameter=value,parameter=value; got {text!r}")
    return {"name": name.strip()} | table


def policies_from(data: dict[str, Any]) -> list[tuple[Place, Policy]]:
    """Return every policy that the tables of a study describe, each with the place of its table."""
    entries = data["policies"]
    if not isinstance(entries, list) or not entries:
        raise Misplaced(("policies",), f"policies must be tables [[policies]] with a name; got {entries!r}")
    found: list[tuple[Place, Policy]] = []
    for k, entry in enumerate(entries):
        place: Place = ("policies", k)
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise Misplaced(place, f"a policy needs a name; known are {', '.join(Policy.names())}")
        name = entry["name"]
        if name not in Policy.names():
            raise Misplaced((*place, "name"), f"unknown policy {name!r}; known are {', '.join(Policy.names())}")
        fields = {field.name: str(field.type) for field in _fields(name)}
        for key in entry:
            if key != "name" and key not in fields:
                allowed = ", ".join(fields) or "none"
                raise Misplaced((*place, key), f"{name} has no parameter {key}; allowed are {allowed}")
        given = {key: data[key] for key in _SHARED if key in data and key in fields and key not in entry} | entry
        alternatives = []
        for key, value in given.items():
            choices = _alternatives(value, per_arm="tuple" in fields.get(key, ""))
            if not choices:
                at: Place = (*place, key) if key in entry else (key,)
                raise Misplaced(at, f"{key} must be a value or a list of values; got an empty list")
            alternatives.append([(key, choice) for choice in choices])
        for parameters in itertools.product(*alternatives):
            # A value that stands at the top for all policies is wrong there, not in the policy's table.
            blamed: Place = place
            try:
                found.append((place, Policy.from_dict(dict(parameters))))
            except InvalidInput as error:
                blamed = named_place(place, given, error.message)
                if len(blamed) > len(place) and blamed[len(place)] not in entry:
                    blamed = blamed[len(place) :]
                raise Misplaced(blamed, error.message, error.hint) from error
    return found


def _fields(name: str) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(cast("type[DataclassInstance]", Policy._family[name]))


def _alternatives(value: Any, *, per_arm: bool) -> list[Any]:
    """Return the values to sweep: those of a list, or of a list of lists where one value is a list per arm."""
    if not isinstance(value, list):
        return [value]
    if per_arm and value and not any(isinstance(part, list) for part in value):
        return [value]
    return value
