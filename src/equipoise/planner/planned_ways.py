"""The ways to assign people that a plan compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise import checks, quantities
from equipoise.checks import LARGEST_COUNT
from equipoise.errors import InvalidInput, within
from equipoise.planner.plan_parts import Part, check_keys
from equipoise.policies import Policy, Uniform
from equipoise.policies.pooled_balance import recommended
from equipoise.simulation.study_file import policies_from, policy_from_text


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidInput.of(name, "must be text", value)
    return value


@dataclass(frozen=True, kw_only=True)
class Way(Part):
    """A way to assign people to arms, which a forecast compares with others.

    Parameters
    ----------
    policy : Policy, or its name
        How to assign.
    label : str, optional
        What to call it; by default what the policy is: "information kept 0.7", "weight 0.8", "equal shares".
    floor, control_share, warm_up
        As in `Experiment.create`.

    Examples
    --------
    >>> import equipoise as eq
    >>> Way(policy=eq.Uniform()).label, Way.keeping(0.7).label, Way(policy="ThompsonSampling", floor="2%").floor
    ('equal shares', 'information kept 0.7', 0.02)
    """

    _name = "ways"
    policy: Any
    label: str = ""
    floor: Any = 0.0
    control_share: float = 0.0
    warm_up: int = 0

    def __post_init__(self) -> None:
        policy = self.policy if isinstance(self.policy, Policy) else _policy(self.policy)
        label = _text("label", self.label) or _label(policy)
        self._set(
            policy=policy,
            label=label,
            floor=_floor(self.floor),
            control_share=quantities.share(self.control_share, "control_share"),
            warm_up=checks.whole_number("warm_up", self.warm_up, 0, LARGEST_COUNT),
        )

    @classmethod
    def keeping(cls, information_kept: float, **others: Any) -> Way:
        """Return the recommended policy that keeps a share of the information."""
        about = {key: others.pop(key) for key in ("information_about", "smallest_difference") if key in others}
        return cls(policy=recommended(information_kept=information_kept, **about), **others)

    @classmethod
    def weighing(cls, reward_weight: float, **others: Any) -> Way:
        """Return the recommended policy with a weight between reward (1) and accuracy (0)."""
        return cls(policy=recommended(reward_weight), **others)

    def table(self) -> dict[str, Any]:
        """Return what differs from the defaults as plain data."""
        found = super().table()
        found["policy"] = _without_none(self.policy.to_dict())
        if isinstance(self.floor, tuple) and isinstance(self.floor[0], tuple):
            found["floor"] = dict(self.floor)
        if self.label == _label(self.policy):
            found.pop("label")
        return found


def _without_none(data: Any) -> Any:
    """Return plain data without what is None, which files cannot hold and which is the default."""
    if isinstance(data, dict):
        return {key: _without_none(one) for key, one in data.items() if one is not None}
    return data


def _floor(given: Any) -> Any:
    if isinstance(given, Mapping):
        if not given:
            return 0.0
        return tuple((str(name), quantities.share(one, "floor")) for name, one in given.items())
    if isinstance(given, (list, tuple)):
        if given and all(isinstance(one, (list, tuple)) for one in given):
            return tuple((str(name), quantities.share(one, "floor")) for name, one in given)
        return tuple(quantities.share(one, "floor") for one in given)
    return quantities.share(given, "floor")


def _policy(given: Any) -> Policy:
    table = policy_from_text(given) if isinstance(given, str) else given
    if isinstance(table, Mapping):
        table = dict(table)
    try:
        found = policies_from({"policies": [table]})
    except InvalidInput as error:
        if error.parameter[:2] == ("policies", 0):
            error.parameter = error.parameter[2:]
            raise error.within("policy") from None
        raise
    if len(found) != 1:
        raise InvalidInput.of("policy", "must have one value for each parameter", given, hint="give several ways")
    return found[0][1]


def _label(policy: Policy) -> str:
    if policy == Uniform():
        return EQUAL_SHARES
    weight, kept = (getattr(policy, name, None) for name in ("reward_weight", "information_kept"))
    if weight is not None and policy == recommended(weight):
        return f"weight {weight:g}"
    if kept is not None:
        about = getattr(policy, "information_about", "average")
        difference = getattr(policy, "smallest_difference", None)
        if policy == recommended(information_kept=kept, information_about=about, smallest_difference=difference):
            words = "" if about == "average" else f" about {about}"
            within_words = "" if difference is None else f" to within {difference:g}"
            return f"information kept {kept:g}{words}{within_words}"
    return repr(policy).removesuffix("()")


EQUAL_SHARES = "equal shares"
DEFAULT_KEPT = (1.0, 0.9, 0.7, 0.5, 0.25)
"""The shares of information kept that a plan compares if it does not say which."""
_SHORT = (
    *("weights", "information_kept", "information_about", "smallest_difference", "policies"),
    *("floor", "control_share", "warm_up"),
)


def ways_of(given: Any) -> tuple[Way, ...]:
    """Return ways, equal shares among them, from a list of them or from a table of lists.

    Examples
    --------
    >>> [way.label for way in ways_of({"weights": [0.5, 0.9], "policies": ["ThompsonSampling"], "floor": 0.02})]
    ['equal shares', 'weight 0.5', 'weight 0.9', 'ThompsonSampling']
    """
    if given is None or isinstance(given, Mapping):
        with within("ways"):
            found = _ways_of_table({} if given is None else given)
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        ways = []
        for place, one in enumerate(given):
            with within("ways", place):
                ways.append(_way(one))
        found = ways
    else:
        raise InvalidInput.of("ways", "must be a list of ways, or a table with weights or information_kept", given)
    if not any(way.policy == Uniform() for way in found):
        found = [Way(policy=Uniform()), *found]
    labels = [way.label for way in found]
    for label in labels:
        if labels.count(label) > 1:
            hint = "give them different labels" if isinstance(given, (list, tuple)) else None
            raise InvalidInput.of("ways", f"must be different; got {label!r} more than once", hint=hint)
    return tuple(found)


def _way(given: Any) -> Way:
    if isinstance(given, Way):
        return given
    if isinstance(given, (Policy, str)):
        return Way(policy=given)
    if not isinstance(given, Mapping):
        hint = 'shares of information go into a table: {"information_kept": [0.9, 0.5]}'
        raise InvalidInput.of("policy", "must be a policy, its name, or a Way", given, hint=hint)
    check_keys(given, Way.keys())
    if "policy" not in given:
        raise InvalidInput.of("policy", "is missing", hint="such as ThompsonSampling")
    return Way(**given)


def _ways_of_table(table: Mapping[str, Any]) -> list[Way]:
    check_keys(table, _SHORT)
    shared = {key: table[key] for key in ("floor", "control_share", "warm_up") if key in table}
    about = {key: table[key] for key in ("information_about", "smallest_difference") if key in table}
    kept = table.get("information_kept")
    if kept is None and not ("weights" in table or "policies" in table):
        kept = DEFAULT_KEPT
    if kept is None and about:
        raise InvalidInput.of(next(iter(about)), "goes with information_kept", next(iter(about.values())))
    found: list[Way] = []
    for name, values, make in (
        (
            "information_kept",
            kept,
            lambda share: Way.keeping(quantities.share(share, "information_kept"), **about, **shared),
        ),
        ("weights", table.get("weights"), lambda weight: Way.weighing(quantities.share(weight, "weights"), **shared)),
        ("policies", table.get("policies"), lambda policy: Way(policy=policy, **shared)),
    ):
        made: Callable[[Any], Way] = make
        for place, value in enumerate(_as_list(values)):
            try:
                found.append(made(value))
            except InvalidInput as error:
                if error.parameter[:1] in (("reward_weight",), ("information_kept",), ("weights",)):
                    raise InvalidInput.of(name, error.expected or "", value, hint=error.hint) from None
                raise error.within(name, place) if name == "policies" else error from None
    return found


def _as_list(values: Any) -> list[Any]:
    if values is None:
        return []
    return list(values) if isinstance(values, (list, tuple)) else [values]
