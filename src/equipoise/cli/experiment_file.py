"""Experiments as people write them: options or a TOML file; what is wrong is told with file and line."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment import (
    Budget,
    Deadline,
    DefaultReward,
    DropUnit,
    MissingReward,
    Precision,
    StoppingRule,
    WaitForReward,
)
from equipoise.policies.pooled_balance import recommended
from equipoise.simulation.study_file import Misplaced, blaming, line_of, policies_from, policy_from_text

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.cli.stores import AnyExperiment, StoredExperiments
    from equipoise.client import Client
    from equipoise.policies import Policy
    from equipoise.simulation.study_file import Place

_AS_THEY_ARE = (
    "seed",
    "floor",
    "control",
    "control_share",
    "warm_up",
    "reward_range",
    "direction",
    "failure_probability",
    "metadata",
)
KEYS = ("name", "arms", "policy", "reward_weight", *_AS_THEY_ARE, "missing", "stopping")
"""What a file may say; but for `missing`, `stopping` and `policy`, as in `Experiment.create`."""
MISSING_RULES = {"wait": WaitForReward, "default": DefaultReward, "drop": DropUnit}
STOPPING_RULES: dict[str, tuple[type[Any], str]] = {
    "budget": (Budget, "units"),
    "deadline": (Deadline, "at"),
    "precision": (Precision, "half_width"),
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]*)\s*")
_SECONDS = {"": 1, "s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
_SECONDS |= {"d": 86_400, "day": 86_400, "w": 604_800, "week": 604_800}


class Description:
    """What a file and options say of an experiment; options take the place of the file's words."""

    def __init__(self, path: Path | None, given: dict[str, Any]) -> None:
        self._path = path
        self._text = "" if path is None else _read(path)
        data = _parsed(self._text, str(path))
        for table in ("missing", "stopping", "metadata"):
            if isinstance(data.get(table), dict) and isinstance(given.get(table), dict):
                given = given | {table: data[table] | given[table]}
        if "policy" in given:
            data.pop("reward_weight", None)  # which was for the policy of the file
        self._given = given
        self._data = data | given

    def create_in(self, experiments: StoredExperiments | Client) -> AnyExperiment:
        """Make the experiment."""
        try:
            return _created(experiments, self._data)
        except Misplaced as wrong:
            if self._path is None or (wrong.place and wrong.place[0] in self._given):
                raise InvalidInput(wrong.message, hint=wrong.hint) from None
            line = line_of(wrong.place, self._text)
            where = str(self._path) if line is None else f"{self._path}, line {line}"
            raise EquipoiseError(f"{where}: {wrong.message}", hint=wrong.hint) from None


def duration(value: Any) -> float:
    """Return seconds from a number, or from text with a unit.

    Examples
    --------
    >>> duration("7 days"), duration("36h"), duration(90), duration("1.5 min")
    (604800.0, 129600.0, 90.0, 90.0)
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    unit = found[2].lower() if found else ""
    seconds = _SECONDS.get(unit, _SECONDS.get(unit.removesuffix("s")))
    if found is None or seconds is None:
        raise InvalidInput(f"window must be a duration such as 7 days, 36h or 90 (seconds); got {value!r}")
    return float(found[1]) * seconds


def _read(path: Path) -> str:
    from equipoise.files import decoded

    try:
        return decoded(path.read_bytes(), str(path))
    except OSError as error:
        raise EquipoiseError(f"cannot read {path}: {error.strerror or error}") from error


def _parsed(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message, line = str(error), len(text.rstrip().split("\n"))
        told = re.fullmatch(r"(.*?) \(at line (\d+), column (\d+)\)", message, re.DOTALL)
        if told:
            message, line = f"{told[1]} (column {told[3]})", int(told[2])
        raise EquipoiseError(f"{source}, line {line}: expected TOML; {message}") from error


def _created(experiments: StoredExperiments | Client, data: dict[str, Any]) -> AnyExperiment:
    for key in data:
        if key not in KEYS:
            raise Misplaced((key,), f"unknown key {key!r}; allowed are {', '.join(KEYS)}")
    for key, hint in (
        ("name", "equipoise create NAME ..."),
        ("arms", "give --arms A,B,C, or arms in a --file"),
    ):
        if key not in data:
            raise Misplaced((), f"{key} is missing", hint)
    arms, floors = _arms(data["arms"])
    settings = {key: data[key] for key in _AS_THEY_ARE if key in data}
    if floors is not None:
        if "floor" in data:
            raise Misplaced(("floor",), "give floors either by floor or in the tables of the arms; got both")
        settings["floor"] = floors
    settings["policy"] = _policy(data)
    settings["missing"] = _missing(data.get("missing", {}))
    settings["stopping"] = _stopping(data.get("stopping", {}))
    made: AnyExperiment = blaming((), lambda: experiments.create(data["name"], arms=arms, **settings), keys=data)
    return made


def _arms(entries: Any) -> tuple[Any, list[float] | None]:
    """Return names, and floors where the arms are tables that have them."""
    if not isinstance(entries, list) or not any(isinstance(entry, dict) for entry in entries):
        return entries, None
    for place, entry in enumerate(entries):
        if not isinstance(entry, dict) or "name" not in entry or not set(entry) <= {"name", "floor"}:
            raise Misplaced(("arms", place), f"an arm must be a table with name and, if you like, floor; got {entry!r}")
    floors = [entry.get("floor", 0.0) for entry in entries]
    return [entry["name"] for entry in entries], floors if any("floor" in entry for entry in entries) else None


def _policy(data: dict[str, Any]) -> Policy:
    """Return the one policy; a weight beside it is for a policy that takes one and has none of its own."""
    table = data.get("policy")
    if table is None:
        if "reward_weight" not in data:
            raise Misplaced(
                (),
                "policy is missing",
                "give --reward-weight W for PooledBalance, or --policy NAME:parameter=value",
            )
        policy: Policy = blaming((), lambda: recommended(data["reward_weight"]), keys=data)
        return policy
    if isinstance(table, str):
        table = blaming(("policy",), lambda: policy_from_text(data["policy"]), keys={})
    shared = {key: data[key] for key in ("reward_weight",) if key in data}
    try:
        found = [policy for _, policy in policies_from({"policies": [table]} | shared)]
    except Misplaced as wrong:
        place: Place = ("policy", *wrong.place[2:]) if wrong.place[:1] == ("policies",) else wrong.place
        raise Misplaced(place, wrong.message, wrong.hint) from None
    if len(found) != 1:
        raise Misplaced(("policy",), "an experiment has one policy; lists of values are for equipoise simulate")
    if shared and getattr(found[0], "reward_weight", None) != shared["reward_weight"]:
        own = hasattr(found[0], "reward_weight")
        reason = "the policy sets its own" if own else f"{type(found[0]).__name__} takes none"
        raise Misplaced(("reward_weight",), f"reward_weight must be left out: {reason}")
    return found[0]


def _missing(table: Any) -> MissingReward:
    if not isinstance(table, dict):
        raise Misplaced(("missing",), f"missing must be a table with rule and window; got {table!r}")
    place: Place = ("missing",)
    allowed = ("rule", "value", "window", "hold", "late")
    for key in table:
        if key not in allowed:
            raise Misplaced((*place, key), f"unknown key {key!r} in missing; allowed are {', '.join(allowed)}")
    rule = table.get("rule", "wait")
    if rule not in MISSING_RULES:
        raise Misplaced((*place, "rule"), f"missing must be one of {', '.join(MISSING_RULES)}; got {rule!r}")
    values = {key: table[key] for key in ("value", "hold", "late") if key in table}
    if "window" in table:
        values["window_seconds"] = blaming((*place, "window"), lambda: duration(table["window"]), keys={})
    try:
        return MissingReward.from_dict({"name": MISSING_RULES[rule].__name__} | values)
    except InvalidInput as error:
        name = MISSING_RULES[rule].__name__
        words = {name: f"the rule {rule}", "window_seconds": "window", "the parameter value": "a default value"}
        told = error.message, error.hint or ""
        for library, ours in words.items():
            told = told[0].replace(library, ours), told[1].replace(library, ours)
        raise Misplaced(place, told[0], told[1] or None) from None


def _stopping(table: Any) -> list[StoppingRule]:
    if not isinstance(table, dict):
        raise Misplaced(("stopping",), f"stopping must be a table; got {table!r}")
    rules = []
    for key, value in table.items():
        if key not in STOPPING_RULES:
            raise Misplaced(("stopping", key), f"unknown stopping rule {key!r}; known are {', '.join(STOPPING_RULES)}")
        kind, parameter = STOPPING_RULES[key]
        try:
            rules.append(kind(**{parameter: value}))
        except InvalidInput as error:
            message = re.sub(rf"^{parameter}\b", key, error.message)
            raise Misplaced(("stopping", key), message, error.hint) from None
    return rules
