"""Read studies from TOML files, whose lists are swept; errors name the file and the path of the key."""

from __future__ import annotations

import itertools
import math
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from equipoise import arm_tables, checks, files
from equipoise import arms as arm_kinds
from equipoise.errors import EquipoiseError, InvalidInput, within
from equipoise.policies import Policy
from equipoise.quantities import fraction, read_percentages
from equipoise.simulation.study import Study

_DIALS = ("reward_weight", "information_kept")
_SHARED = {"reward_weight": 1.0, "information_kept": 1.0, "forcing": math.inf}
"""Parameters that a study can set for all policies, with their largest values."""
_NEEDED = ("horizon", "arms", "policies")
_PERCENTAGES = frozenset(("reward_weight", "information_kept", "smallest_difference", "floor", "mean", "std", "rate"))
"""Keys whose values may be percentages, in the tables of a study too."""
_KEYS = ("horizon", "replications", "seed", "checkpoints", *_SHARED, "information_about", "arms", "policies", "report")


def read_study(path: str | os.PathLike[str], **instead: Any) -> Study:
    """Read a study from a TOML file.

    Parameters
    ----------
    path : path
        Files of arms are relative to its folder.
    **instead
        Values that replace the file's, such as ``replications=20``.
    """
    file = Path(path)
    return parse_study(files.read_text(file), str(file), folder=file.parent, **instead)


def parse_study(text: str, source: str = "study", *, folder: Path | None = None, **instead: Any) -> Study:
    r"""Parse a study from TOML text; errors call it `source`.

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
    equipoise.errors.EquipoiseError: study.toml: policies[0].reward_weight must be in [0, 1]; got 9
    """
    instead = {key: value for key, value in instead.items() if value is not None}
    data = read_percentages(files.parse_toml(text, source), _PERCENTAGES) | instead
    with files.errors_in(source, unless=instead):
        return study_from_dict(data, folder=folder)


def study_from_dict(data: dict[str, Any], *, folder: Path | None = None) -> Study:
    """Build a study from plain data, with the keys of a TOML file.

    Examples
    --------
    >>> arms = {"mean": [1, 2], "std": [1, 1]}
    >>> study_from_dict({"horizon": 100, "arms": arms, "policies": [{"name": "GAFS", "forcing": [0.3, 1]}]}).policies
    (GAFS(forcing=0.3), GAFS())
    """
    files.check_keys(data, _KEYS, needed=_NEEDED)
    report = data.get("report", {})
    with within("report"):
        files.check_keys(report, ("reward_weight",))
        for weight in report.values():
            checks.number_between("reward_weight", weight, 0, 1)
    # Check these even if no policy uses them.
    shared = {
        key: [
            checks.number_between(key, value, 0, high, open_low=key == "information_kept")
            for value in _some(key, _as_list(data[key]))
        ]
        for key, high in _SHARED.items()
        if key in data
    }
    for about in _as_list(data.get("information_about", [])):
        checks.one_of("information_about", about, checks.INFORMATION_ABOUT)
    if "information_about" in data and "information_kept" not in data:
        raise InvalidInput.of("information_about", "goes with information_kept", data["information_about"])
    arms = _arms(data["arms"], folder or Path())
    policies = []
    for k, policy in policies_from(data):
        with within("policies", k):
            policy.check_arms(arms.n_arms)
        policies.append(policy)
    values: dict[str, Any] = {key: data[key] for key in ("replications", "seed") if key in data}
    if "checkpoints" in data:
        values["checkpoints"] = _as_list(data["checkpoints"])
    weights = shared.get("reward_weight", [])
    if report:
        values["report_weight"] = report["reward_weight"]
    elif len(weights) == 1 and not any(hasattr(policy, "reward_weight") for policy in policies):
        values["report_weight"] = weights[0]  # no policy uses the weight, so it must be for the report
    return Study(policies=tuple(policies), arms=arms, horizons=tuple(_as_list(data["horizon"])), **values)


class _ArmKind(NamedTuple):
    make: Callable[..., arm_kinds.Arms]
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()


_ARM_KINDS = {
    "gaussian": _ArmKind(arm_kinds.Gaussian, ("mean", "std"), ("names", "file")),
    "bernoulli": _ArmKind(arm_kinds.Bernoulli, ("mean",), ("names",)),
    "uniform": _ArmKind(arm_kinds.UniformBetween, ("low", "high"), ("names",)),
    "beta": _ArmKind(arm_kinds.Beta, ("a", "b"), ("low", "high", "names")),
    "empirical": _ArmKind(arm_kinds.Empirical.from_csv, ("file",), ("arm", "reward")),
}


def _arms(data: Any, folder: Path) -> arm_kinds.Arms:
    """Build the arms that a table, or a list of tables of several kinds, describes."""
    if isinstance(data, arm_kinds.Arms):
        return data
    if not isinstance(data, list) or not data:
        with within("arms"):
            return _one_kind(data, folder)
    parts = []
    for k, part in enumerate(data):
        with within("arms", k):
            parts.append(_one_kind(part, folder))
    return parts[0] if len(parts) == 1 else arm_kinds.Mixed(parts=tuple(parts))


def _one_kind(data: Any, folder: Path) -> arm_kinds.Arms:
    if not isinstance(data, dict):
        raise InvalidInput(f"expected a table with kind and its numbers; got {data!r}")
    if "rate" in data and "kind" not in data:
        data = data | {"kind": "bernoulli"}
    name = checks.one_of("kind", data.get("kind", "gaussian"), tuple(_ARM_KINDS))
    make, needed, optional = _ARM_KINDS[name]
    if name == "bernoulli" and "rate" in data:
        make, needed = _yes_or_no, ("rate",)
    if name == "gaussian" and "file" in data:
        make, needed, optional = _gaussian_from_csv, ("file",), ()
    files.check_keys(data, ("kind", *needed, *optional), needed=needed)
    values = {key: value for key, value in data.items() if key != "kind"}
    if "file" not in needed:
        return make(**values)
    for key, value in values.items():
        if not isinstance(value, str):
            raise InvalidInput.of(key, "must be text", value)
    file = folder / values.pop("file")
    try:
        return make(file, **values)
    except OSError as error:
        raise InvalidInput(f"cannot read {file}: {error.strerror or error}").within("file") from error
    except EquipoiseError as error:
        raise InvalidInput(error.message, hint=error.hint).within("file") from error


def _yes_or_no(rate: Any, names: Any = None) -> arm_kinds.Arms:
    """Return arms with yes/no rewards, by their rates."""
    try:
        return arm_kinds.Bernoulli(mean=rate) if names is None else arm_kinds.Bernoulli(mean=rate, names=names)
    except InvalidInput as error:
        if error.parameter == ("mean",):
            error.parameter = ()
            raise error.within("rate") from None
        raise


def _gaussian_from_csv(file: Path) -> arm_kinds.Arms:
    """Return the arms of a CSV file: Gaussian, or with yes/no rewards if it has their rates."""
    known = arm_tables.read_arms(str(file))
    if known.are_rates:
        return arm_kinds.Bernoulli(mean=known.mean, names=known.arms)
    return arm_kinds.Gaussian(mean=known.mean, std=known.std, names=known.arms)


def policy_from_text(text: str) -> dict[str, Any]:
    """Parse a policy's table from a name, a colon and comma-separated parameters, with values as in TOML.

    Examples
    --------
    >>> policy_from_text("ForcingBalance:reward_weight=[0.6,0.9],tracking=sample")
    {'name': 'ForcingBalance', 'reward_weight': [0.6, 0.9], 'tracking': 'sample'}
    >>> policy_from_text("PooledBalance:information_kept=70%")
    {'name': 'PooledBalance', 'information_kept': 0.7}
    >>> policy_from_text("Uniform")
    {'name': 'Uniform'}
    """
    name, _, parameters = text.partition(":")
    # Accept words without the quotation marks that TOML requires, and numbers without the leading zero.
    parameters = re.sub(r"=\s*((?!(?:true|false|inf|nan)\b)[A-Za-z_][\w-]*)", r'="\1"', parameters)
    parameters = re.sub(r"(?<![\w.])\.(?=\d)", "0.", parameters)
    parameters = re.sub(r"(?<![\w.])\d+(?:\.\d*)?\s*%", lambda found: repr(fraction(found[0])), parameters)
    try:
        table = tomllib.loads(f"policy = {{{parameters}}}")["policy"] if "\n" not in parameters else None
    except tomllib.TOMLDecodeError:
        table = None
    if not isinstance(table, dict) or "name" in table or not name.strip():
        raise InvalidInput.of("policy", "must be NAME or NAME:parameter=value,parameter=value", text)
    return {"name": name.strip()} | table


def policies_from(data: dict[str, Any]) -> list[tuple[int, Policy]]:
    """Return every policy that the tables of a study describe, each with the index of its table."""
    entries = data["policies"]
    if not isinstance(entries, list) or not entries:
        raise InvalidInput.of("policies", "must be tables [[policies]] with a name", entries)
    found: list[tuple[int, Policy]] = []
    for k, entry in enumerate(entries):
        try:
            found += [(k, policy) for policy in _policies(entry, data)]
        except InvalidInput as error:
            if error.parameter[:1] and error.parameter[0] not in entry and error.parameter[0] in data:
                raise  # a value for all policies is set at the top, not in the policy's table
            raise error.within("policies", k) from None
    return found


def _policies(entry: Any, data: dict[str, Any]) -> list[Policy]:
    """Return the policies of one table: one for each combination of the values in its lists."""
    if not isinstance(entry, dict) or entry.get("name") not in Policy.names():
        return [Policy.from_dict(entry)]  # raises a precise error
    fields = Policy.fields_of(entry["name"])
    shared = {key: data[key] for key in _SHARED if key in data and key in fields and key not in entry}
    # A policy has one dial: its own, or in turn each of those that are set for all.
    dials = [key for key in _DIALS if key in shared and not any(dial in entry for dial in _DIALS)]
    others = {key: value for key, value in shared.items() if key not in _DIALS} | entry
    per_arm = {key for key, field in fields.items() if "tuple" in str(field.type)}
    policies = []
    for dial in dials or [""]:
        given = ({dial: shared[dial]} if dial else {}) | others
        if dial == "information_kept" and "information_about" in data and "information_about" not in entry:
            given["information_about"] = data["information_about"]
        alternatives = [
            [(key, choice) for choice in _some(key, _alternatives(value, per_arm=key in per_arm))]
            for key, value in given.items()
        ]
        policies += [Policy.from_dict(dict(parameters)) for parameters in itertools.product(*alternatives)]
    return policies


def _some(key: str, values: list[Any]) -> list[Any]:
    if not values:
        raise InvalidInput.of(key, "must be a value or a list of values; got an empty list")
    return values


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _alternatives(value: Any, *, per_arm: bool) -> list[Any]:
    """Return the values to sweep: those of a list, or of a list of lists if a single value is a list per arm."""
    if not isinstance(value, list):
        return [value]
    if per_arm and value and not any(isinstance(part, list) for part in value):
        return [value]
    return value
