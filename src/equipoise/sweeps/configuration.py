"""Studies as people write them: a TOML file whose lists are swept; what is wrong is told with file and line."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.sweeps.arm_tables import arms_from
from equipoise.sweeps.places import Misplaced, blaming, line_of
from equipoise.sweeps.policy_tables import policies_from
from equipoise.sweeps.study import Study

if TYPE_CHECKING:
    import os

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
