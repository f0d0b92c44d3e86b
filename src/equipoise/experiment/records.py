"""What an experiment answers, as records: the same from a store and from a service.

The service writes them as JSON by their annotations, and the client reads them back.
"""

import dataclasses
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from equipoise._types import FloatArray, IntArray


class Assignment(NamedTuple):
    """The arm of a unit, and how it came to it.

    Attributes
    ----------
    unit, arm : str
        Who got what.
    number : int
        Which decision of the experiment it was, counted from 0.
    probability : float
        With which probability this arm was chosen, given all that was known.
    forced : bool
        Whether warm-up or the policy's forcing chose, and not the estimates.
    at : datetime
        When, in UTC.
    new : bool
        Whether it was made now; False for a unit that was assigned before.
    """

    unit: str
    arm: str
    number: int
    probability: float
    forced: bool
    at: datetime
    new: bool


class ToldReward(NamedTuple):
    """The reward of a unit, after it was reported or corrected.

    `counted` says whether it is in the estimates by now; `new` is False if it was known before and nothing changed.
    """

    unit: str
    arm: str
    reward: float
    counted: bool
    new: bool


@dataclass(frozen=True)
class UnitStatus:
    """One unit: its assignment, and what became of its reward.

    Attributes
    ----------
    unit, arm : str
        Who got what.
    number : int
        Which decision of the experiment it was, counted from 0.
    probability : float
        With which probability this arm was chosen, given all that was known.
    forced : bool
        Whether warm-up or the policy's forcing chose, and not the estimates.
    at : datetime
        When it was assigned, in UTC.
    state : str
        waiting, held (reported, but not counted before the window has passed), counted, overdue, defaulted or
        dropped.
    reward : float or None
        As reported, or as corrected since.
    counted : bool
        Whether that reward is in the estimates; a default that stands for it is not that reward.
    """

    unit: str
    arm: str
    number: int
    probability: float
    forced: bool
    at: datetime
    state: str
    reward: float | None
    counted: bool

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        return dataclasses.asdict(self) | {"at": self.at.isoformat()}


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes
    ----------
    number : int
        Its place in the log of the experiment, from 1.
    kind : str
        created, assigned, rewarded, counted, expired, corrected, paused, resumed, stopped, finished, arm_added,
        arm_paused, arm_resumed, arm_retired, weight_changed or rebuilt.
    at : datetime
        When, in UTC.
    who : str or None
        Who did it, if that was given.
    unit, arm, decision : str, str, int, or None
        Whom it is about, and the number of the decision that assigned the unit.
    reward : float or None
        The reward as reported, corrected, counted, or taken by default.
    probability, forced
        Of an assignment.
    counted : bool or None
        Whether the reward entered the estimates with this event.
    replaced : float or None
        The reward that left the estimates with this event.
    details : dict
        Attributes of an assignment, reason of a correction, settings of a creation or a change.
    """

    number: int
    kind: str
    at: datetime
    who: str | None
    unit: str | None
    arm: str | None
    decision: int | None
    reward: float | None
    probability: float | None
    forced: bool | None
    counted: bool | None
    replaced: float | None
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data that JSON can hold."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"at": self.at.isoformat()}


@dataclass(frozen=True)
class History:
    """An experiment at some of its events.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    number : int array (points,)
        The event after which things were as given.
    at : tuple of datetime
        When that was.
    assigned, rewarded : int array (points, arms)
        Units assigned and rewards in the estimates.
    mean, std : float array (points, arms)
        Of the rewards in the estimates, as reported; NaN where there are too few.
    """

    arms: tuple[str, ...]
    number: IntArray
    at: tuple[datetime, ...]
    assigned: IntArray
    rewarded: IntArray
    mean: FloatArray
    std: FloatArray

    @property
    def average_reward(self) -> FloatArray:
        """The average of all rewards so far, at each point."""
        total = np.where(self.rewarded > 0, self.mean, 0.0) * self.rewarded
        with np.errstate(invalid="ignore"):
            return np.asarray(total.sum(axis=1) / self.rewarded.sum(axis=1))


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
        Of those pending: reported but held back until the window has passed; past their window without a reward.
    defaulted, dropped : int
        Units past their window: of those rewarded, with the default value; left out of the estimates.
    mean, std : float or None
        Of the rewards, as reported.
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
class Progress:
    """How far a stopping rule is: whether it is met, where it stands and what it waits for."""

    rule: str
    met: bool
    now: int | float | str | None
    goal: int | float | str


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
        Expected reward per unit under each, in the unit of the rewards.
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
        return self.error / self.present_error if self.present_error else math.inf


@dataclass(frozen=True)
class Verification:
    """A log that gave what is recorded: how long it was, and how long the replay took."""

    n_events: int
    n_decisions: int
    seconds: float
