"""The state of an experiment as people and programs read it: per arm, in total, and against its stopping rules."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.errors import TooFewRewards
from equipoise.experiment.decider import Decider
from equipoise.objective_families import ROOT_MEAN_SQUARE
from equipoise.store.schema import instant, microseconds
from equipoise.theory.confidence_sequences import asymptotic_mean_radius, bounded_mean_radius
from equipoise.unit_lifecycle import N_DEFAULTED, N_DROPPED, N_HELD, N_OVERDUE

if TYPE_CHECKING:
    from datetime import datetime

    from equipoise._types import FloatArray
    from equipoise.experiment.state import State
    from equipoise.experiment.stopping import Progress
    from equipoise.store import Store, Transaction


@dataclass(frozen=True)
class ArmStatus:
    """One arm.

    Attributes
    ----------
    arm, state : str
        Its name, and whether it is active, paused or retired.
    assigned, rewarded, pending : int
        Units assigned; rewards in the estimates; units whose reward is still to come into them. The first is the sum of
        the other two and `dropped`.
    held, overdue : int
        Of those pending: told but held back until the window has passed; past their window without a reward.
    defaulted, dropped : int
        Units past their window: of those rewarded, with the default value; left out of the estimates.
    mean, std : float or None
        Of the rewards, as they were told.
    target_share, actual_share : float or None
        What the policy steers towards, with kept shares; what the arm got so far.
    low, high, half_width : float or None
        Interval for the mean that holds at all times at once, however often one looks; see `Status.interval`.
    """

    arm: str
    state: str
    assigned: int
    rewarded: int
    pending: int
    held: int
    overdue: int
    defaulted: int
    dropped: int
    mean: float | None
    std: float | None
    target_share: float | None
    actual_share: float | None
    low: float | None
    high: float | None
    half_width: float | None


@dataclass(frozen=True)
class Status:
    """A whole experiment at one time.

    Attributes
    ----------
    interval : str
        "empirical Bernstein" where a reward range was declared; "asymptotic" otherwise, which needs 30 rewards.
    confidence : float
        Of each arm's interval, for all times together.
    average_reward : float or None
        Of all rewards in the estimates.
    """

    name: str
    state: str
    created_at: datetime
    at: datetime
    policy: dict[str, Any]
    direction: str
    missing: str
    n_events: int
    n_assigned: int
    n_rewarded: int
    n_pending: int
    n_held: int
    n_overdue: int
    n_defaulted: int
    n_dropped: int
    average_reward: float | None
    interval: str
    confidence: float
    arms: tuple[ArmStatus, ...]
    stopping: tuple[Progress, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain data that JSON can hold."""
        data = dataclasses.asdict(self)
        return data | {"created_at": self.created_at.isoformat(), "at": self.at.isoformat()}


def read_status(transaction: Transaction, experiment: int, state: State, now: datetime) -> Status:
    """Return the status of an experiment in a store, units that fell due since its last event included."""
    windowed = state.configuration.missing.window_seconds is not None
    return status_of(state, now, transaction.n_due(experiment, microseconds(now)) if windowed else {})


def describe(state: State) -> dict[str, Any]:
    """Return name, state, arms and settings as plain data that JSON can hold."""
    rows = zip(state.names, state.arm_states, state.floors, strict=True)
    return {
        "name": state.name,
        "state": state.state,
        "created_at": instant(state.created_at).isoformat(),
        "arms": [{"name": arm, "state": arm_state, "floor": floor} for arm, arm_state, floor in rows],
        "configuration": state.configuration.to_dict(),
    }


def status_of(state: State, now: datetime, n_due: dict[int, int]) -> Status:
    """Return the status of a state; `n_due` are the units of each arm that fell due since the last event."""
    configuration, stats, counters = state.configuration, state.stats, state.counters
    radius = _radii(state)
    targets = state.decider.target(stats)
    total = stats.n_assigned
    arms = []
    for i, name in enumerate(state.names):
        assigned, pulls = stats.assigned.item(i), stats.pulls.item(i)
        dropped = counters[N_DROPPED].item(i)
        mean = _finite(configuration.sign * stats.mean.item(i))
        low, high, half_width = _interval(mean, radius.item(i), configuration.reward_range)
        arms.append(
            ArmStatus(
                arm=name,
                state=state.arm_states[i],
                assigned=assigned,
                rewarded=pulls,
                pending=assigned - pulls - dropped,
                held=counters[N_HELD].item(i),
                overdue=counters[N_OVERDUE].item(i) + n_due.get(i, 0),
                defaulted=counters[N_DEFAULTED].item(i),
                dropped=dropped,
                mean=None if mean is None else mean + 0.0,
                std=_finite(stats.std.item(i)),
                target_share=None if targets is None else targets.item(i),
                actual_share=assigned / total if total else None,
                low=low,
                high=high,
                half_width=half_width,
            )
        )
    n_rewarded = int(stats.pulls.sum())
    rewards = configuration.sign * math.fsum(stats.sums[:2].ravel().tolist())
    status = Status(
        name=state.name,
        state=state.state,
        created_at=instant(state.created_at),
        at=now,
        policy=configuration.policy.to_dict(),
        direction=configuration.direction,
        missing=configuration.missing.describe(),
        n_events=state.n_events,
        n_assigned=total,
        n_rewarded=n_rewarded,
        **{
            f"n_{name}": sum(getattr(arm, name) for arm in arms)
            for name in ("pending", "held", "overdue", "defaulted", "dropped")
        },
        average_reward=rewards / n_rewarded if n_rewarded else None,
        interval="asymptotic" if configuration.reward_range is None else "empirical Bernstein",
        confidence=1 - configuration.failure_probability,
        arms=tuple(arms),
        stopping=(),
    )
    return dataclasses.replace(status, stopping=tuple(rule.progress(status) for rule in configuration.stopping))


def _radii(state: State) -> FloatArray:
    configuration, stats = state.configuration, state.stats
    delta = configuration.failure_probability
    if configuration.reward_range is None:
        return asymptotic_mean_radius(stats.pulls, stats.std, failure_probability=delta)
    low, high = configuration.reward_range
    return bounded_mean_radius(stats.pulls, stats.std, failure_probability=delta, reward_range=high - low)


def _interval(
    mean: float | None, radius: float, reward_range: tuple[float, float] | None
) -> tuple[float | None, float | None, float | None]:
    """Return the ends and half the length, cut to the declared range."""
    if mean is None or not math.isfinite(radius):
        return None, None, None
    low, high = mean - radius, mean + radius
    if reward_range is not None:
        low, high = max(low, reward_range[0]), min(high, reward_range[1])
    return low, high, 0.5 * (high - low)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class WhatIf:
    """Two weights compared, on the present estimates.

    Attributes
    ----------
    reward_weight, present_weight : float
        The weight that was asked about, and that of the experiment.
    allocation, present_allocation : dict of float by arm
        Shares they ask for, those kept for arms included.
    reward, present_reward : float
        Expected reward per unit under each, as rewards are told.
    error, present_error : float
        The objective's error under each; times 1 / sqrt(units) it is the expected error of an arm's mean.
    """

    reward_weight: float
    present_weight: float
    allocation: dict[str, float]
    present_allocation: dict[str, float]
    reward: float
    present_reward: float
    error: float
    present_error: float

    @property
    def reward_change(self) -> float:
        """How much more reward per unit the other weight gives."""
        return self.reward - self.present_reward

    @property
    def error_ratio(self) -> float:
        """How many times the present error the other weight has."""
        return self.error / self.present_error if self.present_error else np.inf


def what_if(state: State, reward_weight: float) -> WhatIf:
    """Return what another weight would ask for now."""
    configuration = state.configuration.with_weight(reward_weight)
    other = _measured(state, Decider(configuration, state.arm_states, state.floors))
    present = _measured(state, state.decider)
    weights = float(reward_weight), float(state.configuration.reward_weight or 0.0)
    (allocation, reward, error), (present_allocation, present_reward, present_error) = other, present
    return WhatIf(*weights, allocation, present_allocation, reward, present_reward, error, present_error)


def _measured(state: State, decider: Decider) -> tuple[dict[str, float], float, float]:
    """Return the allocation a decider steers towards, and its reward and error."""
    target = decider.target(state.stats)
    if target is None:
        raise TooFewRewards(f"experiment {state.name!r} has too few rewards yet to estimate every arm in play")
    active = decider.active
    shares, mean, std = target[active], state.stats.mean[active], state.stats.std[active]
    objective = getattr(decider.policy, "objective", ROOT_MEAN_SQUARE)
    error = float(objective.error(shares, std)) if hasattr(objective, "error") else np.nan
    allocation = dict(zip(state.names, target.tolist(), strict=True))
    return allocation, state.configuration.sign * float(shares @ mean), error


@dataclass(frozen=True)
class ExperimentSummary:
    """An experiment as it is listed."""

    name: str
    state: str
    created_at: datetime
    policy: dict[str, Any]
    n_arms: int
    n_assigned: int
    n_rewarded: int


def summaries(store: Store) -> list[ExperimentSummary]:
    """Return all experiments of a store, oldest first."""
    return [
        ExperimentSummary(name, state, instant(created_at), _policy(configuration), n_arms, assigned, pulls)
        for name, state, created_at, configuration, n_arms, assigned, pulls in store.read(
            lambda transaction: transaction.summaries()
        )
    ]


def _policy(configuration: str) -> dict[str, Any]:
    """Return the policy in a configuration; of one that is damaged nothing, as it must not hide the others."""
    try:
        return dict(json.loads(configuration)["policy"])
    except (ValueError, TypeError, LookupError):
        return {}
