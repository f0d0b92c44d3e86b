"""Settings of an experiment, validated from user input; only the weight and the arms can change once there are data."""

from __future__ import annotations

import dataclasses
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from equipoise import checks, kernels
from equipoise.checks import LARGEST_COUNT, checked_reward
from equipoise.errors import Hint, InvalidInput, UnknownName
from equipoise.experiment.commands import plain_reward
from equipoise.experiment.missing_rewards import MissingReward, WaitForReward
from equipoise.experiment.names import LARGEST_METADATA, checked_data, checked_new_name
from equipoise.experiment.stopping import StoppingRule
from equipoise.policies import Policy
from equipoise.policies.pooled_balance import policy_or_recommended
from equipoise.theory.assumptions import checked_probability

FORMAT = "equipoise-experiment/1"
MOST_ARMS = 100_000
DIRECTIONS = ("maximise", "minimise")


class Settings(TypedDict, total=False):
    """Keyword arguments of `Experiment.create` besides the arms, for functions that pass them on."""

    policy: Policy | None
    reward_weight: float | None
    seed: int | None
    floor: float | Sequence[float] | Mapping[str, float]
    control: str | None
    control_share: float
    warm_up: int
    most_units: int | None
    reward_range: tuple[float, float] | None
    direction: str
    missing: MissingReward | None
    stopping: StoppingRule | Sequence[StoppingRule]
    failure_probability: float
    metadata: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Settings of an experiment; `Experiment.create` documents them."""

    policy: Policy
    seed: int
    warm_up: int
    control: str | None
    control_share: float
    reward_range: tuple[float, float] | None
    direction: str
    missing: MissingReward
    stopping: tuple[StoppingRule, ...]
    failure_probability: float
    metadata: dict[str, Any]
    most_units: int | None = None
    fresh_tracking: bool = False
    """Whether tracking restarts when the set of arms in play changes; False in experiments of the first schema."""
    kernels: int = kernels.OLDEST_VERSION
    """Version of the kernels that decides; the first experiments record none."""

    @property
    def sign(self) -> float:
        """Factor from rewards to the policy's scale, on which large rewards are good."""
        return 1.0 if self.direction == "maximise" else -1.0

    @property
    def reward_weight(self) -> float | None:
        """The weight between reward and accuracy, if the policy has one."""
        weight: float | None = getattr(self.policy, "reward_weight", None)
        return weight

    def with_weight(self, reward_weight: float) -> Configuration:
        """Return a copy of the configuration with another weight between reward and accuracy."""
        if self.reward_weight is None:
            raise InvalidInput(f"{type(self.policy).__name__} has no reward_weight that could be changed")
        policy = dataclasses.replace(self.policy, reward_weight=reward_weight)  # type: ignore[type-var]
        return dataclasses.replace(self, policy=policy)

    def checked_reward(self, reward: Any) -> float:
        """Return a reward as a float; raise if it is outside the declared range."""
        value = plain_reward(reward) + 0.0  # -0.0 becomes 0.0: the databases do not keep its sign
        if self.reward_range is not None and not self.reward_range[0] <= value <= self.reward_range[1]:
            low, high = self.reward_range
            raise InvalidInput.of("reward", f"must be in [{low:g}, {high:g}], the declared range", value)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        data: dict[str, Any] = {"format": FORMAT}
        data |= {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for field in _ADDED:
            if data[field.name] == field.default:  # as written before the setting existed
                del data[field.name]
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
            policy = Policy.from_dict(data["policy"])
        except UnknownName as error:
            raise UnknownName(error.message, hint="import the module that defines the policy first") from None
        data = {field.name: field.default for field in _ADDED} | data
        values = {field.name: data[field.name] for field in dataclasses.fields(cls)} | {
            "policy": policy,
            "missing": MissingReward.from_dict(data["missing"]),
            "stopping": tuple(StoppingRule.from_dict(rule) for rule in data["stopping"]),
            "reward_range": None if data["reward_range"] is None else tuple(data["reward_range"]),
        }
        return cls(**values)


_ADDED = tuple(field for field in dataclasses.fields(Configuration) if field.default is not dataclasses.MISSING)
"""Settings that the first configurations lack."""


def checked_settings(
    *, arms: Any, policy: Any, reward_weight: Any, floor: Any, control: Any, control_share: Any, **others: Any
) -> tuple[Configuration, list[tuple[str, float]]]:
    """Return a configuration, and arms with their floors, from the arguments of `Experiment.create`."""
    chosen = policy_or_recommended(policy, reward_weight=reward_weight)
    configuration = checked_configuration(policy=chosen, control=control, control_share=control_share, **others)
    return configuration, checked_arms(arms, floor, control, configuration.control_share)


def checked_configuration(
    *,
    policy: Any,
    seed: Any,
    warm_up: Any,
    most_units: Any = None,
    control: Any,
    control_share: Any,
    reward_range: Any,
    direction: Any,
    missing: Any,
    stopping: Any,
    failure_probability: Any,
    metadata: Any,
) -> Configuration:
    """Validate user input and return a configuration; errors say what was expected."""
    bounds = _checked_range(reward_range)
    rule = WaitForReward() if missing is None else missing
    if not isinstance(rule, MissingReward):
        raise InvalidInput.of("missing", f"must be one of {', '.join(MissingReward.names())}", missing)
    rules = tuple(stopping) if isinstance(stopping, (list, tuple)) else (stopping,)
    for one in rules:
        if not isinstance(one, StoppingRule):
            raise InvalidInput.of("stopping", f"must hold rules of {', '.join(StoppingRule.names())}", one)
    delta = checked_probability(failure_probability)
    share = checks.number_between("control_share", control_share, 0, 1)
    if share and control is None:
        raise InvalidInput.of("control_share", "needs the name of the control arm", hint=Hint.GIVE_CONTROL)
    configuration = Configuration(
        policy=_checked_policy(policy),
        seed=secrets.randbits(63) if seed is None else checks.whole_number("seed", seed, 0, 2**63 - 1),
        warm_up=checks.whole_number("warm_up", warm_up, 0, LARGEST_COUNT),
        most_units=None if most_units is None else checks.whole_number("most_units", most_units, 1, LARGEST_COUNT),
        control=control,
        control_share=share,
        reward_range=bounds,
        direction=checks.one_of("direction", direction, DIRECTIONS),
        missing=rule,
        stopping=rules,
        failure_probability=delta,
        metadata=checked_data("metadata", _as_dict(metadata), LARGEST_METADATA) or {},
        fresh_tracking=True,
        kernels=kernels.VERSION,
    )
    if hasattr(rule, "value") and bounds is not None and not bounds[0] <= rule.value <= bounds[1]:
        raise InvalidInput.of(
            "value", f"must be in [{bounds[0]:g}, {bounds[1]:g}], the declared range", rule.value
        ).within("missing")
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


def _as_dict(metadata: Any) -> Any:
    """Convert any mapping to a dict, which JSON can hold."""
    return dict(metadata) if isinstance(metadata, Mapping) else metadata


def _checked_policy(policy: Any) -> Policy:
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


def _checked_range(reward_range: Any) -> tuple[float, float] | None:
    if reward_range is None:
        return None
    try:
        low, high = (checked_reward(bound) + 0.0 for bound in reward_range)
    except (TypeError, ValueError):
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward", reward_range) from None
    if not low < high:
        raise InvalidInput.of("reward_range", "must be a lowest and a highest reward", reward_range)
    return low, high
