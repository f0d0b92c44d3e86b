"""Settings of an experiment, validated from user input; only its dial, arms and description can change later."""

from __future__ import annotations

import dataclasses
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import numpy as np

from equipoise import checks, kernels
from equipoise.checks import LARGEST_COUNT, LARGEST_REWARD, checked_reward
from equipoise.errors import Hint, InvalidInput, UnknownName
from equipoise.experiment.commands import plain_reward
from equipoise.experiment.description import (
    NOT_DESCRIBED,
    ExperimentDescription,
    checked_description,
    described_in,
    require_arms,
)
from equipoise.experiment.dial import DIAL, POLICY_DIAL, kept_for_goal, settled_dial, stated_dial
from equipoise.experiment.missing_rewards import MissingReward, WaitForReward
from equipoise.experiment.names import LARGEST_METADATA, LONGEST_NAME, checked_data, checked_new_name, checked_text
from equipoise.experiment.stopping import StoppingRule
from equipoise.kernels.rules import DRIFTS
from equipoise.policies import Policy
from equipoise.policies.compiled import recorded_policy
from equipoise.policies.dial_policy import DialPolicy
from equipoise.policies.pooled_balance import policy_or_recommended, recommended
from equipoise.theory.assumptions import checked_probability

FORMAT = "equipoise-experiment/1"
MOST_ARMS = 100_000
DIRECTIONS = ("maximise", "minimise")


def _checked_policy(_name: str, policy: Any) -> Policy:
    if not isinstance(policy, Policy):
        raise InvalidInput.of("policy", "must be a Policy such as ForcingBalance(reward_weight=0.8)", policy)
    try:
        again = Policy.from_json(policy.to_json())
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"a policy must go to JSON and back, to be replayed; {policy!r} does not: {error}"
        ) from error
    if again != policy:
        raise InvalidInput(f"a policy must go to JSON and back, to be replayed; {policy!r} became {again!r}")
    return policy


def _checked_seed(name: str, seed: Any) -> int:
    return secrets.randbits(63) if seed is None else checks.whole_number(name, seed, 0, 2**63 - 1)


def _checked_limit(name: str, limit: Any) -> int | None:
    return None if limit is None else checks.whole_number(name, limit, 1, LARGEST_COUNT)


def _checked_range(name: str, reward_range: Any) -> tuple[float | None, float | None] | None:
    """Return both ends, None for an open one, which may be given as infinite."""
    if reward_range is None:
        return None
    expected = "must be a lowest and a highest reward, of which one may be open (None or infinite)"
    try:
        low, high = reward_range
        low = None if low is None or low == -math.inf else checked_reward(low) + 0.0
        high = None if high is None or high == math.inf else checked_reward(high) + 0.0
    except (TypeError, ValueError):
        raise InvalidInput.of(name, expected, reward_range) from None
    if (low is None and high is None) or not _low(low) < _high(high):
        raise InvalidInput.of(name, expected, reward_range)
    return low, high


def _low(end: float | None) -> float:
    return -math.inf if end is None else end


def _high(end: float | None) -> float:
    return math.inf if end is None else end


def _checked_cap(name: str, cap: Any) -> float | None:
    return None if cap is None else checks.number_between(name, cap, -LARGEST_REWARD, LARGEST_REWARD) + 0.0


def _checked_missing(name: str, missing: Any) -> MissingReward:
    rule = WaitForReward() if missing is None else missing
    if not isinstance(rule, MissingReward):
        raise InvalidInput.of(name, f"must be one of {', '.join(MissingReward.names())}", missing)
    return rule


def _checked_stopping(name: str, stopping: Any) -> tuple[StoppingRule, ...]:
    rules = tuple(stopping) if isinstance(stopping, (list, tuple)) else (stopping,)
    for rule in rules:
        if not isinstance(rule, StoppingRule):
            raise InvalidInput.of(name, f"must hold rules of {', '.join(StoppingRule.names())}", rule)
    return rules


def _checked_failure(_name: str, probability: Any) -> float:
    return checked_probability(probability)


def _checked_metadata(name: str, metadata: Any) -> dict[str, Any]:
    plain = dict(metadata) if isinstance(metadata, Mapping) else metadata
    return checked_data(name, plain, LARGEST_METADATA) or {}


def checked_attributes(name: str, attributes: Any) -> tuple[str, ...]:
    """Return names of attributes, all different."""
    if isinstance(attributes, str) or not hasattr(attributes, "__iter__"):
        raise InvalidInput.of(name, "must be a list of names of attributes", attributes)
    names = tuple(checked_text(name, one, LONGEST_NAME) for one in attributes)
    if len(set(names)) < len(names):
        raise InvalidInput.of(name, "must have different names", list(names))
    return names


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Settings of an experiment, each with the function that checks it; `Experiment.create` documents them."""

    policy: Annotated[Policy, _checked_policy]
    seed: Annotated[int, _checked_seed]
    warm_up: Annotated[int, partial(checks.whole_number, low=0, high=LARGEST_COUNT)]
    control: str | None
    control_share: Annotated[float, partial(checks.number_between, low=0, high=1)]
    reward_range: Annotated[tuple[float | None, float | None] | None, _checked_range]
    """Lowest and highest reward; None for an end that is open."""
    direction: Annotated[str, partial(checks.one_of, allowed=DIRECTIONS)]
    missing: Annotated[MissingReward, _checked_missing]
    stopping: Annotated[tuple[StoppingRule, ...], _checked_stopping]
    failure_probability: Annotated[float, _checked_failure]
    metadata: Annotated[dict[str, Any], _checked_metadata]
    most_units: Annotated[int | None, _checked_limit] = None
    reward_cap: Annotated[float | None, _checked_cap] = None
    covariates: Annotated[tuple[str, ...], checked_attributes] = ()
    description: Annotated[ExperimentDescription, checked_description] = NOT_DESCRIBED
    fresh_tracking: bool = False
    """Whether tracking restarts when the set of arms in play changes; False in experiments of the first schema."""
    kernels: int = kernels.OLDEST_VERSION
    """Version of the kernels that decides; the first experiments record none."""

    @property
    def sign(self) -> float:
        """Factor from rewards to the policy's scale, on which large rewards are good."""
        return 1.0 if self.direction == "maximise" else -1.0

    @property
    def counted_range(self) -> tuple[float | None, float | None] | None:
        """The range of what can be in the estimates: `reward_range`, up to the cap."""
        low, high = self.reward_range or (None, None)
        if self.reward_cap is not None:
            high = min(_high(high), self.reward_cap)
        return None if low is None and high is None else (low, high)

    def counted(self, reward: float) -> float:
        """Return what a reward counts as in the estimates: itself, or the cap if that is less."""
        return reward if self.reward_cap is None else min(reward, self.reward_cap)

    def allows(self, reward: float) -> bool:
        """Return whether a reward is in the declared range."""
        return self.reward_range is None or _low(self.reward_range[0]) <= reward <= _high(self.reward_range[1])

    @property
    def range_text(self) -> str:
        """The declared range in words.

        Examples
        --------
        >>> import equipoise as eq
        >>> made = eq.Experiment.create("memory:", "ride", arms=["a"], policy=eq.Uniform(), reward_range=(0, None))
        >>> made.configuration.range_text
        '[0, inf), the declared range'
        """
        low, high = self.reward_range or (None, None)
        start = "(-inf" if low is None else f"[{low:g}"
        return f"{start}, inf), the declared range" if high is None else f"{start}, {high:g}], the declared range"

    @property
    def reward_weight(self) -> float | None:
        """The weight between reward and accuracy, if the policy has one."""
        weight: float | None = getattr(self.policy, "reward_weight", None)
        return weight

    @property
    def dial(self) -> dict[str, Any]:
        """The policy's dial between reward and accuracy, as far as it is set; {} if it has none."""
        found = {name: getattr(self.policy, name, None) for name in POLICY_DIAL}
        if found["information_kept"] is None:
            found = {"reward_weight": found["reward_weight"]}
        return {name: value for name, value in found.items() if value is not None}

    def with_dial(self, dial: Mapping[str, Any]) -> Configuration:
        """Return a copy of the configuration whose policy has this dial, in the form of `dial`."""
        return dataclasses.replace(self, policy=policy_with_dial(self.policy, dial))

    def with_description(self, change: Mapping[str, Any]) -> Configuration:
        """Return a copy of the configuration after a change of its description."""
        return dataclasses.replace(self, description=self.description.changed(change))

    def checked_reward(self, reward: Any) -> float:
        """Return a reward as a float; raise if it is outside the declared range."""
        value = plain_reward(reward) + 0.0  # -0.0 becomes 0.0: the databases do not keep its sign
        if not self.allows(value):
            raise InvalidInput.of("reward", f"must be in {self.range_text}", value)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        data: dict[str, Any] = {"format": FORMAT}
        data |= {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for field in _ADDED:
            if data[field.name] == field.default:  # as written before the setting existed
                del data[field.name]
        if self.description != described_in(self.metadata):
            data["description"] = self.description.to_dict()
        else:
            data.pop("description", None)
        return data | {
            "policy": self.policy.to_dict(),
            "missing": self.missing.to_dict(),
            "stopping": [rule.to_dict() for rule in self.stopping],
            "reward_range": None if self.reward_range is None else list(self.reward_range),
        }

    def to_json(self) -> str:
        """Return the settings as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Configuration:
        """Read a configuration that `to_dict` wrote."""
        if data.get("format") != FORMAT:
            raise InvalidInput(f"expected a configuration in the format {FORMAT}; got {data.get('format')!r}")
        try:
            policy = recorded_policy(data["policy"])
        except UnknownName as error:
            raise UnknownName(error.message, hint="import the module that defines the policy first") from None
        texts = data.get("description")
        data = {field.name: field.default for field in _ADDED} | data
        values = {field.name: data[field.name] for field in dataclasses.fields(cls)} | {
            "policy": policy,
            "missing": MissingReward.from_dict(data["missing"]),
            "stopping": tuple(StoppingRule.from_dict(rule) for rule in data["stopping"]),
            "reward_range": None if data["reward_range"] is None else tuple(data["reward_range"]),
            "covariates": tuple(data["covariates"]),
            "description": described_in(data["metadata"]) if texts is None else ExperimentDescription(**texts),
        }
        return cls(**values)


_ADDED = tuple(field for field in dataclasses.fields(Configuration) if field.default is not dataclasses.MISSING)
"""Settings that the first configurations lack."""
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    name: get_args(kind)[1]
    for name, kind in get_type_hints(Configuration, include_extras=True).items()
    if get_origin(kind) is Annotated
}


def checked_settings(
    *, arms: Any, policy: Any, floor: Any, **others: Any
) -> tuple[Configuration, list[tuple[str, float]]]:
    """Return a configuration, and arms with their floors, from the arguments of `Experiment.create`."""
    given = {name: others.pop(name) for name in DIAL}
    dial = {name: value for name, value in given.items() if value is not None}
    drift = others.pop("drift")
    if policy is not None and drift is not None:
        raise InvalidInput.of("drift", "sets the recommended policy, and must be left out where one is given", drift)
    more: dict[str, Any] = {} if drift is None else {"drift": checks.one_of("drift", drift, tuple(DRIFTS))}
    if policy is not None or not dial:
        configuration = checked_configuration(policy=policy_or_recommended(policy, **dial), **others)
        return configuration, _arms_of(configuration, arms, floor)
    stated = stated_dial(dial)
    # What a goal takes is known only when all the rest is checked; until then, keep everything.
    first = settled_dial(stated, {}, lambda _: 1.0)
    configuration = checked_configuration(policy=recommended(**first, **more), **others)
    pairs = _arms_of(configuration, arms, floor)

    def kept_for(about: str) -> float:
        return _kept_at_first(configuration, [share for _, share in pairs], stated, about)

    return configuration.with_dial(settled_dial(stated, {}, kept_for)), pairs


def _arms_of(configuration: Configuration, arms: Any, floor: Any) -> list[tuple[str, float]]:
    pairs = checked_arms(arms, floor, configuration.control, configuration.control_share)
    require_arms(configuration.description, [name for name, _ in pairs])
    return pairs


def _kept_at_first(configuration: Configuration, floors: list[float], goal: dict[str, Any], about: str) -> float:
    """Return the information that a goal takes if all arms spread as widely as the declared range allows."""
    low, high = configuration.counted_range or (None, None)
    if low is None or high is None:
        ends = "" if configuration.reward_range is None else "both ends of "
        raise InvalidInput.of(
            "half_width", f"needs {ends}the range of rewards", goal["half_width"], hint=Hint.GIVE_RANGE
        )
    return kept_for_goal(
        np.full(len(floors), 0.5 * high - 0.5 * low),
        np.array(floors),
        half_width=goal["half_width"],
        units=goal["units"],
        about=about,
        failure_probability=configuration.failure_probability,
    )


def checked_configuration(**given: Any) -> Configuration:
    """Validate user input and return a configuration; errors say what was expected."""
    checked = {name: check(name, given[name]) for name, check in _CHECKS.items()}
    configuration = Configuration(**given | checked, fresh_tracking=True, kernels=kernels.VERSION)
    if configuration.control_share and configuration.control is None:
        raise InvalidInput.of("control_share", "needs the name of the control arm", hint=Hint.GIVE_CONTROL)
    cap, (low, _) = configuration.reward_cap, configuration.reward_range or (None, None)
    if cap is not None and low is not None and cap <= low:
        raise InvalidInput.of("reward_cap", f"must be above {low:g}, the lowest reward", cap)
    default = configuration.missing.default
    if default is not None and not configuration.allows(default):
        raise InvalidInput.of("value", f"must be in {configuration.range_text}", default).within("missing")
    if default is not None and default != configuration.counted(default):
        raise InvalidInput.of("value", f"must be at most {cap:g}, the reward_cap", default).within("missing")
    return configuration


def checked_arms(arms: Any, floor: Any, control: str | None, control_share: float) -> list[tuple[str, float]]:
    """Return each arm's name with its floor, the share kept for it."""
    if isinstance(arms, (str, bytes)) or not hasattr(arms, "__iter__"):
        raise InvalidInput.of("arms", "must be a list of names", arms)
    names = [checked_new_name("arm", name) for name in arms]
    if not 1 <= len(names) <= MOST_ARMS:
        raise InvalidInput.of("arms", f"must be 1 to {MOST_ARMS:,} names; got {len(names):,}")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidInput.of("arms", f"must have different names; got {name!r} more than once")
        seen.add(name)
    if hasattr(floor, "items"):  # also mappings other than dict, such as a pandas Series
        by_name = dict(floor.items())
        unknown = [name for name in by_name if name not in seen]
        if unknown:
            raise InvalidInput.of("floor", f"names an unknown arm {unknown[0]!r}; the arms are {', '.join(names[:10])}")
        floor = [by_name.get(name, 0.0) for name in names]
    shares = checks.non_negative("floor", [floor] * len(names) if np.ndim(floor) == 0 else floor, size=len(names))
    if control is not None:
        if control not in seen:
            raise InvalidInput.of("control", "must be one of the arms", control)
        place = names.index(control)
        shares[place] = max(shares[place], control_share)
    check_shares(shares.tolist())
    return list(zip(names, shares.tolist(), strict=True))


def check_shares(shares: Sequence[float]) -> None:
    """Raise unless the floors leave something for the policy to decide."""
    total = float(np.sum(shares))
    if not total < 1 - 1e-9:  # three times 0.3 plus 0.1 must not pass by rounding
        raise InvalidInput.of(
            "floor",
            f"and control_share must add up to less than 1 over all arms; got {total:g} for {len(shares)} arms",
            hint="what they leave is what the policy can decide about",
        )


def policy_with_dial(policy: Policy, dial: Mapping[str, Any]) -> Policy:
    """Return a copy of a policy with this dial, in the form of `Configuration.dial`."""
    changed, known = dict(dial), cast("Any", policy)
    if isinstance(policy, DialPolicy):
        changed = {one.name: one.default for one in dataclasses.fields(policy) if one.name in POLICY_DIAL} | changed
    else:
        for name in changed:
            if getattr(policy, name, None) is None:
                raise InvalidInput(f"{type(policy).__name__} has no {name} that could be changed")
    return cast("Policy", dataclasses.replace(known, **changed))
