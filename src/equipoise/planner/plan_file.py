"""Read plans from TOML files, and write them so that reading gives the same plan; errors name the file and the key."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import files
from equipoise.arms import Empirical
from equipoise.errors import EquipoiseError, InvalidInput, within
from equipoise.planner.plan import Plan

if TYPE_CHECKING:
    from equipoise.planner.planned_ways import Way

_TABLES = ("people", "rewards", "drift", "goals", "costs")


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a TOML file.

    Its tables and keys are those of `Plan` and its parts. Besides, ``pilot = "pilot.csv"`` reads the rewards of each
    arm from a file with the columns arm and reward, ``counts = "people.csv"`` people per day from one with the column
    people, and ``from = "sqlite:///old.db#messages"`` takes what an experiment in a store measured for whatever the
    file leaves out. Files are relative to the folder of the plan, stores to the working directory.
    """
    file = Path(path)
    return parse_plan(files.read_text(file), str(file), folder=file.parent)


def parse_plan(text: str, source: str = "plan", *, folder: Path | None = None, reads_files: bool = True) -> Plan:
    r"""Parse a plan from TOML text; errors call it `source`. Without `reads_files`, one that names files is refused.

    Examples
    --------
    >>> text = '''
    ... people = {per_day = 96, days = 60}
    ... goals = {precision = 0.06}
    ... [[arms]]
    ... name = "plain"
    ... control = true
    ... rate = {guess = 0.30, low = 0.25, high = 0.35}
    ... [[arms]]
    ... name = "prize"
    ... rate = "40% to 60%"
    ... '''
    >>> plan = parse_plan(text)
    >>> plan.control, plan.arms[1].rate, parse_plan(plan.to_toml()) == plan
    ('plain', Guess(value=0.5, low=0.4, high=0.6), True)
    >>> parse_plan(text.replace("40% to", "70% to"), "plan.toml")
    Traceback (most recent call last):
    ...
    equipoise.errors.EquipoiseError: plan.toml: arms.prize.rate.low must be less than high, which is 0.6; got 0.7
    hint: turn them round: 0.6 to 0.7
    """
    data = files.parse_toml(text, source)
    with files.errors_in(source):
        if not reads_files:
            _refuse_files(data)
        return plan_from_tables(data, folder=folder)


def _refuse_files(data: Mapping[str, Any]) -> None:
    """Raise if a plan reads files or stores: one that came over a network must not."""
    people = data.get("people")
    counts = people.get("counts") if isinstance(people, Mapping) else None
    for name, is_given in (("from", "from" in data), ("pilot", "pilot" in data), ("counts", isinstance(counts, str))):
        if is_given:
            raise InvalidInput.of(name, "must be left out: a plan that is sent to a service reads no files")


def plan_from_tables(data: Mapping[str, Any], *, folder: Path | None = None) -> Plan:
    """Return the plan of the tables of a file, whose own files are relative to a folder."""
    tables, here = dict(data), folder or Path()
    origin, pilot = tables.pop("from", None), tables.pop("pilot", None)
    people = tables.get("people")
    if isinstance(people, dict) and isinstance(people.get("counts"), str):
        with within("people"):
            tables["people"] = people | {"counts": _counts(here / people["counts"])}
    if origin is not None:
        tables = on_top_of(_plan_in_store(origin).tables(), tables)
    if pilot is not None:
        if not isinstance(pilot, str):
            raise InvalidInput.of("pilot", "must be the name of a CSV file with the columns arm and reward", pilot)
        with within("pilot"):
            tables["arms"] = _merged_arms(_pilot(here / pilot), tables.get("arms", []))
    return Plan.from_dict(tables)


def _pilot(path: Path) -> list[dict[str, Any]]:
    try:
        arms = Empirical.from_csv(path)
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except EquipoiseError as error:
        raise InvalidInput(error.message, hint=error.hint) from None
    return [
        {"name": name, "rewards": rewards.tolist()} for name, rewards in zip(arms.names or (), arms.values, strict=True)
    ]


def _counts(path: Path) -> list[float]:
    try:
        rows = files.CsvRows(files.read_text(path), str(path), ("people",))
        counts = []
        for (cell,) in rows:
            count = files.number_in(cell)
            if count is None or count < 0:
                raise rows.wrong(f"people must be a number; got {cell!r}")
            counts.append(count)
    except EquipoiseError as error:
        raise InvalidInput(error.message, hint=error.hint).within("counts") from None
    return counts


def _plan_in_store(origin: Any) -> Plan:
    from equipoise.experiment import Experiment

    url, _, name = str(origin).rpartition("#")
    if not isinstance(origin, str) or not url or not name:
        raise InvalidInput.of("from", 'must be a store and an experiment, such as "sqlite:///old.db#messages"', origin)
    try:
        return Plan.from_experiment(Experiment.open(url, name))
    except InvalidInput as error:
        raise error.within("from") from None
    except EquipoiseError as error:
        raise InvalidInput(error.message, hint=error.hint).within("from") from None


def on_top_of(base: dict[str, Any], tables: dict[str, Any]) -> dict[str, Any]:
    """Return tables on top of those of another plan: what they leave out stays as it was."""
    found = base | {key: value for key, value in tables.items() if key not in ("arms", *_TABLES)}
    for name in _TABLES:
        own = tables.get(name)
        if isinstance(own, dict) and isinstance(base.get(name), dict):
            below = dict(base[name])
            for one, others in (("per_day", ("counts",)), ("days", ("until",)), ("until", ("days",)), ("rule", _RULE)):
                if one in own:
                    below = {key: value for key, value in below.items() if key not in others}
            found[name] = below | own
        elif own is not None:
            found[name] = own
    if "control" in tables:
        found["arms"] = [{key: one[key] for key in one if key != "control"} for one in found["arms"]]
    found["arms"] = _merged_arms(found["arms"], tables.get("arms", []))
    return found


_RULE = ("window", "hold", "late", "value")


def _merged_arms(base: list[dict[str, Any]], own: Any) -> Any:
    """Return arms with what a file says of those of the same name; others are added."""
    if not isinstance(own, list) or not all(isinstance(one, dict) for one in own):
        return own
    named = {one.get("name"): one for one in own}
    known = {one["name"] for one in base}
    found = []
    for one in base:
        more = named.get(one["name"], {})
        below = one
        if "rate" in more or "mean" in more:  # says what the arm's rewards are
            below = {key: value for key, value in one.items() if key not in ("rate", "mean", "std")}
        found.append(below | more)
    return found + [one for one in own if one.get("name") not in known]


def plan_text(plan: Plan) -> str:
    """Return a plan as TOML."""
    tables = plan.tables()
    arms, ways = tables.pop("arms"), tables.pop("ways")
    lines = [f"{key} = {toml_value(value)}" for key, value in tables.items() if not isinstance(value, dict)]
    for name in ("people",):
        lines += _table(f"[{name}]", tables.pop(name))
    for arm in arms:
        lines += _table("[[arms]]", arm)
    for name in ("rewards", "drift"):
        lines += _table(f"[{name}]", tables.pop(name, {}))
    short = _short_ways(plan.ways)
    if short is None:
        for way in ways:
            lines += _table("[[ways]]", way)
    else:
        lines += _table("[ways]", short)
    for name in ("goals", "costs"):
        lines += _table(f"[{name}]", tables.pop(name, {}))
    return "\n".join(lines).strip() + "\n"


def _table(head: str, table: Mapping[str, Any]) -> list[str]:
    return ["", head, *(f"{toml_key(key)} = {toml_value(value)}" for key, value in table.items())] if table else []


def _short_ways(ways: tuple[Way, ...]) -> dict[str, Any] | None:
    """Return the table of lists that means these ways, if there is one."""
    from equipoise.planner.planned_ways import ways_of

    others = ways[1:]
    if not others:
        return None
    found: dict[str, Any] = {}
    for way in others:
        for key, value in (
            ("information_kept", _dial(way, "information_kept")),
            ("weights", _dial(way, "reward_weight")),
        ):
            if value is not None:
                found.setdefault(key, []).append(value)
    about, difference = (_dial(others[0], key) for key in ("information_about", "smallest_difference"))
    if "information_kept" in found and about != "average":
        found["information_about"] = about
        if difference is not None:
            found["smallest_difference"] = difference
    first = others[0]
    floor = dict(first.floor) if isinstance(first.floor, tuple) and isinstance(first.floor[0], tuple) else first.floor
    for key, value in (("floor", floor), ("control_share", first.control_share), ("warm_up", first.warm_up)):
        if value:
            found[key] = list(value) if isinstance(value, tuple) else value
    try:
        return found if ways_of(found) == ways else None
    except InvalidInput:
        return None


def _dial(way: Way, name: str) -> Any:
    return getattr(way.policy, name, None)


def toml_key(key: str) -> str:
    """Return a key in TOML."""
    is_bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if is_bare else json.dumps(key, ensure_ascii=False)


def toml_value(value: Any) -> str:
    """Return a value in TOML, from which the same value is read."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{toml_key(key)} = {toml_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(one) for one in value) + "]"
    return str(value)
