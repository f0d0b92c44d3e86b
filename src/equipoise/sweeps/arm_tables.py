"""Arms as people write them: a table of a study file with a kind and its numbers, or a list of such tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise import arms as arm_kinds
from equipoise import tables
from equipoise.errors import EquipoiseError
from equipoise.sweeps.places import Misplaced, blaming

if TYPE_CHECKING:
    from pathlib import Path

    from equipoise.sweeps.places import Place


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
            known = tables.read_arms(str(file))
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
