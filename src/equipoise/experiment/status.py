"""The state of an experiment as people and programs read it: per arm, in total, and against its stopping rules."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from equipoise.experiment.instants import instant, microseconds
from equipoise.log_codes import N_DEFAULTED, N_DROPPED, N_HELD, N_OVERDUE
from equipoise.theory.sequences import asymptotic_mean_radius, bounded_mean_radius

if TYPE_CHECKING:
    from datetime import datetime

    from equipoise.arrays import FloatArray
    from equipoise.experiment.state import State
    from equipoise.experiment.stopping import Progress
    from equipoise.store import Transaction


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
