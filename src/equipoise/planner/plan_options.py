"""Plans from plain options, as `plan` and the command line take them: rates, people, precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from equipoise.errors import InvalidInput
from equipoise.experiment.missing_rewards import DefaultReward, MissingReward
from equipoise.planner.measured_plans import AS_NOW
from equipoise.planner.plan import Plan
from equipoise.planner.plan_file import on_top_of
from equipoise.planner.planned_ways import ways_of

_PEOPLE = ("per_day", "weekdays", "ramp", "start", "until", "days", "exact")
_REWARDS = (
    "delay",
    "missing",
    "missing_ratio",
    "window",
    "value",
    "hold",
    "late",
    "batches",
    "rounded_to",
    "direction",
)
_GOALS = ("precision", "precision_of", "margin", "deadline", "by", "failure_probability")
_WAYS = (
    *("weights", "information_kept", "information_about", "smallest_difference", "policies"),
    *("floor", "control_share", "warm_up"),
)
_COSTS = {"cost_per_person": "per_person", "cost_per_day": "per_day"}
_WHOLE = ("control", "drift", "title", "outcome", "seed")
OPTIONS = (
    *("rates", "means", "stds", "names", "people", "reward_range", "reward_cap", "rule", "ways"),
    *(*_PEOPLE, *_REWARDS, *_GOALS, *_WAYS, *_COSTS, *_WHOLE),
)
"""Names of all options."""
_OPTION_OF = {"people.most": "people", "rewards.range": "reward_range", "rewards.cap": "reward_cap"}
_OPTION_OF |= {f"costs.{name}": option for option, name in _COSTS.items()}
_OPTION_OF |= {"rate": "rates", "mean": "means", "std": "stds"}


def plan_from_options(**options: Any) -> Plan:
    """Return the plan of plain options; errors name the option.

    Parameters
    ----------
    rates : str, sequence or mapping
        "10%,12%,14%", "plain=30%,prize=40% to 60%", or a list or mapping of guesses.
    means, stds : str, sequence or mapping
        Of rewards other than yes/no, instead of rates; one std is for all arms.
    names : str or sequence, optional
        Names of the arms; A, B, C, ... by default.
    people : int, optional
        How many people there are at most.
    reward_range, reward_cap, rule : optional
        `Rewards.range`, `Rewards.cap` and `Rewards.rule`.
    **options
        Parameters of `People`, `Rewards`, `Goals` and `Plan` by their names; `weights`, `information_kept`, `policies`,
        `floor`, `control_share` and `warm_up` as in the table of ways; `cost_per_person` and `cost_per_day`.

    Examples
    --------
    >>> plan = plan_from_options(rates="10%,12%,14% to 16%", people=3000, precision=0.05)
    >>> plan.arm_names, plan.arms[2].rate.ends, plan.goals.precision
    (('A', 'B', 'C'), (0.14, 0.16), 0.05)
    >>> plan_from_options(rates="10%,120%", people=3000)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: rates of arm B must be from 0 to 1; got '120%'
    """
    given = _given(options)
    try:
        return _plan(given)
    except InvalidInput as error:
        raise _about_option(error, given) from None


def plan_with_options(plan: Plan, **options: Any) -> Plan:
    """Return a plan in which options replace what it says; its arms stay.

    Parameters
    ----------
    plan : Plan
        Of a file, or of what an experiment measured. Where ways are given, "as now" stays among them.
    **options
        As in `plan_from_options`, except for those of the arms.

    Examples
    --------
    >>> plan = plan_from_options(rates="10%,12%", people=3000, precision=0.05)
    >>> changed = plan_with_options(plan, precision="4%", weights="0.9")
    >>> changed.goals.precision, [way.label for way in changed.ways], changed.people.most
    (0.04, ['equal shares', 'weight 0.9'], 3000)
    """
    given = _given(options)
    for name in ("rates", "means", "stds", "names"):
        if name in given:
            raise InvalidInput.of(name, "must be left out: the plan has its arms", given[name])
    try:
        tables = {name: table for name, table in _tables(given).items() if table}
        if "ways" in tables:
            first, *rest = ways_of(tables["ways"])
            now = [way for way in plan.ways if way.label == AS_NOW]
            tables["ways"] = [way.table() for way in (first, *now, *rest)]
        return Plan.from_dict(on_top_of(plan.tables(), tables))
    except InvalidInput as error:
        raise _about_option(error, given) from None


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS:
            raise InvalidInput.of(name, "is unknown; known are " + ", ".join(OPTIONS))
    return {name: value for name, value in options.items() if value is not None}


def _plan(given: dict[str, Any]) -> Plan:
    arms = _arms(given)
    if not {"people", "per_day"} & set(given):
        raise InvalidInput.of(
            "people", "is missing", hint="give people: how many there are at most, or per_day: how many come a day"
        )
    return Plan(arms=arms, **_tables(given))


def rule_of_options(given: Mapping[str, Any], plan: Plan | None) -> str | None:
    """Return the rule that `window` and `value` mean if none is named: drop, or default; None if the plan's stays."""
    now = None if plan is None else plan.rewards.rule
    if "rule" in given:
        return str(given["rule"])
    if "value" in given:
        return None if isinstance(now, DefaultReward) else "default"
    return "drop" if "window" in given and (now is None or now.window_seconds is None) else None


def _tables(given: dict[str, Any]) -> dict[str, Any]:
    """Return all that options say but the arms."""
    if "ways" in given:
        for name in _WAYS:
            if name in given:
                raise InvalidInput.of(name, "must be left out where ways are given", given[name])
    tables: dict[str, Any] = {
        "people": _some(given, _PEOPLE) | ({"most": given["people"]} if "people" in given else {}),
        "goals": _some(given, _GOALS),
        "costs": {name: given[option] for option, name in _COSTS.items() if option in given},
        "ways": given["ways"] if "ways" in given else _ways(given),
    }
    rewards = _some(given, _REWARDS)
    for option, name in (("reward_range", "range"), ("reward_cap", "cap"), ("rule", "rule")):
        if option in given:
            rewards[name] = given[option]
    if isinstance(rewards.get("rule"), MissingReward) and not {"window", "value", "hold", "late"} & set(rewards):
        rewards["rule"] = given["rule"]
    return {"rewards": rewards} | tables | _some(given, _WHOLE)


def _some(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _ways(given: Mapping[str, Any]) -> dict[str, Any]:
    found = _some(given, _WAYS)
    for name in ("weights", "information_kept", "policies"):
        if isinstance(found.get(name), str):
            found[name] = _split(found[name]) if name != "policies" else [found[name]]
    return found


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _listed(name: str, given: Any) -> dict[str, Any] | list[Any]:
    """Return values per arm by name, or in their order."""
    if isinstance(given, str):
        parts = _split(given)
        if any("=" in part for part in parts):
            pairs = [part.partition("=") for part in parts]
            if not all(middle for _, middle, _ in pairs):
                raise InvalidInput.of(name, "must name all arms or none, as in plain=30%,prize=50%", given)
            return {key.strip(): value.strip() for key, _, value in pairs}
        return list(parts)
    if isinstance(given, Mapping):
        return dict(given)
    if hasattr(given, "__iter__"):
        return list(given)
    return [given]


def _arms(given: dict[str, Any]) -> list[dict[str, Any]]:
    if ("rates" in given) == ("means" in given):
        words = "is missing" if "rates" not in given else "must be left out where means are given"
        hint = "give rates such as 10%,12% for yes/no rewards, or means and stds"
        raise InvalidInput.of("rates", words, hint=hint)
    if "rates" in given and "stds" in given:
        raise InvalidInput.of("stds", "must be left out: yes/no rewards need no spread", given["stds"])
    key = "rates" if "rates" in given else "means"
    values = _listed(key, given[key])
    names = _listed("names", given["names"]) if "names" in given else None
    if isinstance(values, dict):
        if names is not None:
            raise InvalidInput.of("names", f"must be left out where {key} have names", given["names"])
        names, values = list(values), list(values.values())
    if names is None:
        names = [chr(ord("A") + k) if len(values) <= 26 else f"arm {k + 1}" for k in range(len(values))]
    if len(names) != len(values):
        raise InvalidInput.of("names", f"must be {len(values)}, one for each of the {key}; got {len(names)}")
    arms = [{"name": name, key[:-1]: value} for name, value in zip(names, values, strict=True)]
    if key == "means":
        for arm, std in zip(arms, _stds(given, list(names)), strict=True):
            arm["std"] = std
    return arms


def _stds(given: dict[str, Any], names: list[str]) -> list[Any]:
    if "stds" not in given:
        hint = "one number for all arms, or one for each; for yes/no rewards give rates instead"
        raise InvalidInput.of("stds", "is missing: rewards other than yes/no have means and stds", hint=hint)
    stds = _listed("stds", given["stds"])
    if isinstance(stds, dict):
        missing = [name for name in names if name not in stds]
        if missing or len(stds) > len(names):
            raise InvalidInput.of("stds", "must name the same arms as means", given["stds"])
        return [stds[name] for name in names]
    if len(stds) == 1:
        return stds * len(names)
    if len(stds) != len(names):
        raise InvalidInput.of("stds", f"must be one, or {len(names)}: one for each arm; got {len(stds)}")
    return stds


def _about_option(error: InvalidInput, given: Mapping[str, Any]) -> InvalidInput:
    """Return an error about an option instead of about a place in the plan."""
    path = [str(part) for part in error.parameter]
    if not path or len(path) < 2:
        return error
    if path[0] == "arms":
        option, where = _OPTION_OF.get(path[2] if len(path) > 2 else "", path[-1]), f"of arm {path[1]} "
    else:
        option, where = _OPTION_OF.get(".".join(path[:2]), path[1]), ""
        if path[0] == "ways" and path[-1] in given:
            option = path[-1]
    if error.expected is None:
        error.parameter = (option,)
        return error
    end = f"({path[-1]}) " if path[-1] in ("low", "high") else ""
    got = (error.got,) if "got" in vars(error) else ()
    return InvalidInput.of(option, f"{where}{end}{error.expected}", *got, hint=error.hint)
