"""Studies as people write them: a TOML file whose lists are swept; what is wrong is told with file and line."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from equipoise import arm_tables, checks
from equipoise import arms as arm_kinds
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.policies import Policy
from equipoise.simulation.study import Study

if TYPE_CHECKING:
    import os

    from _typeshed import DataclassInstance

_KEYS = ("horizon", "replications", "seed", "checkpoints", "reward_weight", "forcing", "arms", "policies", "report")


def read_study(path: str | os.PathLike[str], **instead: Any) -> Study:
    """Return the study that a TOML file describes.

    Parameters
    ----------
    path : path
        Files of arms are found relative to its folder.
    **instead
        Values that take the place of the file's, such as ``replications=20``.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise EquipoiseError(f"cannot read {file}: {error.strerror or error}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"{file}, line {line}: expected text in UTF-8; got the byte {data[error.start]:#04x}"
        raise EquipoiseError(message) from error
    return parse_study(text, str(file), folder=file.parent, **instead)


def parse_study(text: str, source: str = "study", *, folder: Path | None = None, **instead: Any) -> Study:
    r"""Return the study that TOML text describes; `source` is what errors call it.

    Examples
    --------
    >>> text = '''
    ... horizon = [100, 1000]
    ... arms = {mean = [1, 2], std = [1, 1]}
    ... [[policies]]
    ... name = "ForcingBalance"
    ... reward_weight = [0.5, 0.9]
    ... forcing = [0.3, 1.0]
    ... '''
    >>> study = parse_study(text)
    >>> len(study.policies), study.horizons
    (4, (100, 1000))
    >>> parse_study(text.replace("0.9", "9"), "study.toml")
    Traceback (most recent call last):
    ...
    equipoise.errors.EquipoiseError: study.toml, line 6: reward_weight must be in [0, 1]; got 9
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line = str(error), len(text.rstrip().split("\n"))
        told = re.fullmatch(r"(.*?) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
        if told:
            message, line = f"{told[1]} (column {told[3]})", int(told[2])
        raise EquipoiseError(f"{source}, line {line}: expected TOML; {message}") from error
    instead = {key: value for key, value in instead.items() if value is not None}
    try:
        return _study(data | instead, folder or Path())
    except Misplaced as wrong:
        if wrong.place and wrong.place[0] in instead:
            raise InvalidInput(wrong.message, hint=wrong.hint) from None
        number = line_of(wrong.place, text)
        where = source if number is None else f"{source}, line {number}"
        raise EquipoiseError(f"{where}: {wrong.message}", hint=wrong.hint) from None


def study_from_dict(data: dict[str, Any], *, folder: Path | None = None) -> Study:
    """Return the study that plain data describes, with the keys of a TOML file.

    Examples
    --------
    >>> arms = {"mean": [1, 2], "std": [1, 1]}
    >>> study_from_dict({"horizon": 100, "arms": arms, "policies": [{"name": "GAFS", "forcing": [0.3, 1]}]}).policies
    (GAFS(forcing=0.3), GAFS())
    """
    try:
        return _study(data, folder or Path())
    except Misplaced as wrong:
        raise InvalidInput(wrong.message, hint=wrong.hint) from None


def _study(data: dict[str, Any], folder: Path) -> Study:
    for key in data:
        if key not in _KEYS:
            raise Misplaced((key,), f"unknown key {key!r}; allowed are {', '.join(_KEYS)}")
    for key in ("horizon", "arms", "policies"):
        if key not in data:
            raise Misplaced((), f"{key} is missing; needed are horizon, arms and policies")
    report = data.get("report", {})
    if not isinstance(report, dict):
        raise Misplaced(("report",), f"report must be a table with reward_weight; got {report!r}")
    for key in report:
        if key != "reward_weight":
            raise Misplaced(("report", key), f"unknown key {key!r} in report; allowed is reward_weight")
    shared = {key: _shared(data, key, high) for key, high in (("reward_weight", 1), ("forcing", math.inf))}
    arms = arms_from(data["arms"], folder)
    policies = policies_from(data)
    for place, policy in policies:
        blaming(place, lambda policy=policy: policy.check_arms(arms.n_arms))
    values: dict[str, Any] = {key: data[key] for key in ("replications", "seed") if key in data}
    values["horizons"] = data["horizon"] if isinstance(data["horizon"], list) else [data["horizon"]]
    if "checkpoints" in data:
        values["checkpoints"] = data["checkpoints"] if isinstance(data["checkpoints"], list) else [data["checkpoints"]]
    if "reward_weight" in report:
        blaming(("report",), lambda: checks.number_between("reward_weight", report["reward_weight"], 0, 1))
        values["report_weight"] = report["reward_weight"]
    elif len(shared["reward_weight"]) == 1 and not any(hasattr(policy, "reward_weight") for _, policy in policies):
        values["report_weight"] = shared["reward_weight"][0]  # what else could a weight be for that no policy takes
    study: Study = blaming((), lambda: Study(policies=tuple(policy for _, policy in policies), arms=arms, **values))
    return study


def _shared(data: dict[str, Any], key: str, high: float) -> list[float]:
    """Return the values at the top for all policies, checked also if no policy takes them."""
    if key not in data:
        return []
    values = data[key] if isinstance(data[key], list) else [data[key]]
    if not values:
        raise Misplaced((key,), f"{key} must be a value or a list of values; got an empty list")
    return [blaming((), lambda value=value: checks.number_between(key, value, 0, high)) for value in values]


class _ArmKind(NamedTuple):
    make: Any
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


_ARM_KINDS = {
    "gaussian": _ArmKind(arm_kinds.Gaussian, ("mean", "std"), ("names",)),
    "bernoulli": _ArmKind(arm_kinds.Bernoulli, ("mean",), ("names",)),
    "uniform": _ArmKind(arm_kinds.UniformBetween, ("low", "high"), ("names",)),
    "beta": _ArmKind(arm_kinds.Beta, ("a", "b"), ("low", "high", "names")),
    "empirical": _ArmKind(arm_kinds.Empirical.from_csv, ("file",), ("arm", "reward")),
}


def arms_from(data: Any, folder: Path) -> arm_kinds.Arms:
    """Return the arms that a table, or a list of tables of several kinds, describes."""
    if isinstance(data, arm_kinds.Arms):
        return data
    if isinstance(data, list) and data:
        parts = [_one_kind(part, ("arms", k), folder) for k, part in enumerate(data)]
        return parts[0] if len(parts) == 1 else arm_kinds.Mixed(parts=tuple(parts))
    return _one_kind(data, ("arms",), folder)


def _one_kind(data: Any, place: Place, folder: Path) -> arm_kinds.Arms:
    if not isinstance(data, dict):
        raise Misplaced(place, f"arms must be a table with kind and its numbers; got {data!r}")
    name = data.get("kind", "gaussian")
    if not isinstance(name, str) or name not in _ARM_KINDS:
        raise Misplaced((*place, "kind"), f"kind must be one of {', '.join(_ARM_KINDS)}; got {name!r}")
    kind = _ARM_KINDS[name]
    from_table = name == "gaussian" and "file" in data
    needed, optional = (("file",), ()) if from_table else (kind.needed, kind.optional)
    for key in data:
        if key != "kind" and key not in needed + optional:
            more = (" or file",) if name == "gaussian" and not from_table else ("",)
            allowed = ", ".join(("kind", *needed, *optional)) + more[0]
            raise Misplaced((*place, key), f"unknown key {key!r} for {name} arms; allowed are {allowed}")
    missing = [key for key in needed if key not in data]
    if missing:
        raise Misplaced(place, f"{name} arms need {' and '.join(needed)}; {' and '.join(missing)} is missing")
    values = {key: value for key, value in data.items() if key != "kind"}
    if "file" not in needed:
        try:
            made: arm_kinds.Arms = blaming(place, lambda: kind.make(**values), values)
        except Misplaced as wrong:
            wrong.message = _counted_from_one(wrong.message)
            raise
        return made
    if not all(isinstance(value, str) for value in values.values()):
        raise Misplaced((*place, "file"), f"file and columns must be text; got {values!r}")
    file = folder / values.pop("file")
    try:
        if from_table:
            known = arm_tables.read_arms(str(file))
            return arm_kinds.Gaussian(mean=known.mean, std=known.std, names=known.arms)
        read: arm_kinds.Arms = kind.make(file, **values)
    except OSError as error:
        raise Misplaced((*place, "file"), f"cannot read {file}: {error.strerror or error}") from error
    except EquipoiseError as error:
        raise Misplaced((*place, "file"), error.message, error.hint) from error
    return read


def _counted_from_one(message: str) -> str:
    """Return a message of the library, which counts arms from 0, as files and commands count them."""
    return re.sub(r"\bfor arm (\d+)", lambda found: f"for arm {int(found[1]) + 1}", message)


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


Place = tuple[str | int, ...]
"""Keys and positions that lead to a value, such as ("policies", 0, "forcing")."""


class Misplaced(Exception):
    """Something is wrong at a place of the configuration; the file is named by who knows it."""

    def __init__(self, place: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place, self.message, self.hint = place, message, hint


def blaming(place: Place, call: Any, keys: dict[str, Any] | None = None) -> Any:
    """Return what a call returns; blame invalid input on the key that the message starts with, or on the place."""
    try:
        return call()
    except InvalidInput as error:
        raise Misplaced(named_place(place, keys, error.message), error.message, error.hint) from error


def named_place(place: Place, keys: dict[str, Any] | None, message: str) -> Place:
    """Return the place of the first of `keys` that a message names, or of its first word if no keys are known.

    A key in a table within, such as the power of an objective, is found too.
    """
    words = [{"floors": "floor"}.get(word, word) for word in re.findall(r"\w+", message.partition(";")[0])]
    if keys is None:
        return (*place, *words[:1])
    named: list[Place] = [(word,) for word in words if word in keys]
    named += [(key, word) for word in words for key, value in keys.items() if isinstance(value, dict) and word in value]
    return (*place, *named[0]) if named else place


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"[ \t]*(?:\"((?:\\.|[^\"\\])*)\"|'([^']*)'|([\w-]+))[ \t]*")
_STRING = re.compile(r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_OTHER = re.compile(r"[^,\]}\n#]*")


class _Reader:
    """Goes through valid TOML and notes the line of each table, key and element of a list."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Place, int] = {}
        self._counts: dict[Place, int] = {}

    def document(self) -> dict[Place, int]:
        table: Place = ()
        while self._next():
            if self._next() == "[":
                table = self._header()
            else:
                self._entry(table)
        return self.lines

    def _header(self) -> Place:
        """Read [a.b] or [[a.b]]; where a list of tables has the name, its last table is meant."""
        start, is_listed = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if is_listed else 1
        parts = self._keys()
        self.at = self.text.index("\n", self.at) if "\n" in self.text[self.at :] else len(self.text)
        place: Place = ()
        for k, part in enumerate(parts):
            place = (*place, part)
            if is_listed and k == len(parts) - 1:
                self._counts[place] = self._counts.get(place, -1) + 1
            if place in self._counts:
                self._note(place, start)
                place = (*place, self._counts[place])
            self._note(place, start)
        return place

    def _entry(self, table: Place) -> None:
        start, place = self.at, table
        for part in self._keys():
            place = (*place, part)
            self._note(place, start)
        self.at += 1  # the equals sign
        self._value(place)

    def _value(self, place: Place) -> None:
        kind = self._next()
        if kind in "[{":
            self._list(place) if kind == "[" else self._inline(place)
        else:
            found = _STRING.match(self.text, self.at) or _OTHER.match(self.text, self.at)
            self.at = found.end() if found else len(self.text)

    def _list(self, place: Place) -> None:
        self.at, k = self.at + 1, 0
        while self._next() not in ("]", ""):
            self._note((*place, k), self.at)
            self._value((*place, k))
            self._comma()
            k += 1
        self.at += 1

    def _inline(self, place: Place) -> None:
        self.at += 1
        while self._next() not in ("}", ""):
            self._entry(place)
            self._comma()
        self.at += 1

    def _comma(self) -> None:
        if self._next() == ",":
            self.at += 1

    def _keys(self) -> list[str]:
        """Read a key, dotted or not."""
        parts: list[str] = []
        while found := _KEY.match(self.text, self.at):
            parts.append(next(group for group in found.groups() if group is not None))
            self.at = found.end()
            if self.text[self.at : self.at + 1] != ".":
                break
            self.at += 1
        return parts

    def _next(self) -> str:
        """Return the next character that is not blank, or nothing at the end."""
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.text[self.at : self.at + 1]

    def _note(self, place: Place, at: int) -> None:
        self.lines.setdefault(place, self.text.count("\n", 0, at) + 1)


def line_of(place: Place, text: str) -> int | None:
    """Return the line of a place of valid TOML, or of the nearest place around it."""
    lines = _Reader(text).document()
    for length in range(len(place), 0, -1):
        if place[:length] in lines:
            return lines[place[:length]]
    return None
