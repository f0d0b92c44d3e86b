"""Read an experiment from options and a TOML file; errors name the option, or the file and the key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise import files
from equipoise.errors import InvalidInput, within
from equipoise.experiment import Budget, Deadline, Decided, Experiment, MissingReward, Precision, StoppingRule
from equipoise.experiment.dial import DIAL, POLICY_DIAL
from equipoise.experiment.missing_rewards import RULE_KEYS, missing_rule
from equipoise.policies import Policy
from equipoise.quantities import read_percentages
from equipoise.simulation.study_file import policies_from, policy_from_text

if TYPE_CHECKING:
    from equipoise.cli.stores import StoredExperiments
    from equipoise.client import Client

KEYS = ("name", "arms", *(key for key in Experiment.create.__kwdefaults__ or {} if key != "who"))
"""Keys that a file may have; as in `Experiment.create`, except for `missing`, `stopping` and `policy`."""
STOPPING_RULES: dict[str, tuple[Callable[..., StoppingRule], str]] = {
    "budget": (Budget, "units"),
    "deadline": (Deadline, "at"),
    "precision": (Precision, "half_width"),
    "precision_of_differences": (partial(Precision, of="differences"), "half_width"),
    "decided": (Decided, "margin"),
}
"""Keys of the table `stopping`, with the rule that each makes and the parameter that it sets."""
_INSTEAD_OF = {
    "policy": DIAL,
    "reward_weight": DIAL,
    "information_kept": ("reward_weight", "half_width", "units"),
    "half_width": ("reward_weight", "information_kept", "smallest_difference"),
}
"""Keys of a file about the dial that no longer count where an option sets it in another way."""
_SHARES = frozenset(
    (
        *("reward_weight", "information_kept", "smallest_difference", "half_width"),
        *("floor", "control_share", "failure_probability", "precision", "precision_of_differences", "decided"),
    )
)
"""Keys whose values may be percentages, in the tables of a file too."""


class Description:
    """An experiment described by a file and options; options override the file."""

    def __init__(self, path: Path | None, given: dict[str, Any]) -> None:
        data = {} if path is None else files.parse_toml(files.read_text(path), str(path))
        texts = {key: data[key] for key in ("name", "description", "metadata") if key in data}
        data = read_percentages(data, _SHARES) | texts
        for table in ("missing", "stopping", "description", "metadata"):
            if isinstance(data.get(table), dict) and isinstance(given.get(table), dict):
                given = given | {table: data[table] | given[table]}
        for option, keys in _INSTEAD_OF.items():
            for key in keys if option in given else ():
                data.pop(key, None)
        self._path, self._given = path, given
        self._data = data | given

    def create_in(self, experiments: StoredExperiments | Client) -> Experiment:
        """Create the experiment."""
        if self._path is None:
            return _created(experiments, self._data)
        with files.errors_in(str(self._path), unless=self._given):
            return _created(experiments, self._data)


def _created(experiments: StoredExperiments | Client, data: dict[str, Any]) -> Experiment:
    files.check_keys(data, KEYS)
    for key, hint in (("name", "equipoise create NAME ..."), ("arms", "give --arms A,B,C, or arms in a --file")):
        if key not in data:
            raise InvalidInput.of(key, "is missing", hint=hint)
    arms, floors = _arms(data["arms"])
    settings = {key: value for key, value in data.items() if key not in ("name", "arms")}
    if floors is not None:
        if "floor" in data:
            raise InvalidInput.of("floor", "must be left out where the tables of the arms have floors; got both")
        settings["floor"] = floors
    if "policy" in data:
        settings["policy"] = _policy(data)
        for key in POLICY_DIAL:
            settings.pop(key, None)  # it is in the policy now
    elif not any(key in data for key in DIAL):
        hint = "give --information-kept Q or --reward-weight W for PooledBalance, or --policy NAME:parameter=value"
        raise InvalidInput.of("policy", "is missing", hint=hint)
    settings["missing"] = _missing(data.get("missing", {}))
    settings["stopping"] = _stopping(data.get("stopping", {}))
    return experiments.create(data["name"], arms=arms, **settings)


def _arms(entries: Any) -> tuple[Any, list[float] | None]:
    """Return the names, and the floors if the arms are tables that have them."""
    if not isinstance(entries, list) or not any(isinstance(entry, dict) for entry in entries):
        return entries, None
    for place, entry in enumerate(entries):
        with within("arms", place):
            files.check_keys(entry, ("name", "floor"), needed=("name",))
    floors = [entry.get("floor", 0.0) for entry in entries]
    return [entry["name"] for entry in entries], floors if any("floor" in entry for entry in entries) else None


def _policy(data: dict[str, Any]) -> Policy:
    """Return the policy; a dial beside it applies to a policy that takes one and has none of its own."""
    table = data["policy"]
    if isinstance(table, str):
        table = policy_from_text(table)
    shared = {key: data[key] for key in POLICY_DIAL if key in data}
    beside: dict[str, Any] = {}
    if isinstance(table, dict) and not any(key in table for key in POLICY_DIAL):
        fields = Policy.fields_of(table["name"]) if table.get("name") in Policy.names() else {}
        beside = {key: value for key, value in shared.items() if key in fields}
    try:
        found = policies_from({"policies": [table | beside if beside else table]})
    except InvalidInput as error:
        if error.parameter[:2] == ("policies", 0):
            error.parameter = error.parameter[2:]
            place = () if error.parameter[:1] and error.parameter[0] in beside else ("policy",)
            raise error.within(*place) from None
        raise
    if len(found) != 1:
        raise InvalidInput("an experiment has one policy; lists of values are for equipoise simulate").within("policy")
    policy = found[0][1]
    for key, value in shared.items():
        if getattr(policy, key, None) != value:
            own = hasattr(policy, key)
            reason = "the policy sets its own" if own else f"{type(policy).__name__} takes none"
            raise InvalidInput.of(key, f"must be left out: {reason}")
    return policy


def _missing(table: Any) -> MissingReward:
    with within("missing", names={"window_seconds": "window", "reward": "value"}):
        files.check_keys(table, RULE_KEYS)
        return missing_rule(table)


def _stopping(table: Any) -> list[StoppingRule]:
    with within("stopping"):
        files.check_keys(table, tuple(STOPPING_RULES))
    rules = []
    for key, value in table.items():
        kind, parameter = STOPPING_RULES[key]
        with within("stopping", names={parameter: key}):
            rules.append(kind(**{parameter: value}))
    return rules
