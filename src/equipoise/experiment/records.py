"""Records that an experiment returns: the same from a store and from a service.

The service serialises them to JSON by their annotations, and the client reads them back.
"""

import dataclasses
import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.analysis.results import ArmEstimate as ArmEstimate
from equipoise.analysis.results import Comparison as Comparison
from equipoise.analysis.results import Difference as Difference
from equipoise.analysis.results import Report as Report
from equipoise.experiment.course import Outlook as Outlook
from equipoise.experiment.course import RuleOutlook as RuleOutlook
from equipoise.experiment.course import Timeline as Timeline
from equipoise.experiment.description import NOT_DESCRIBED
from equipoise.experiment.description import ExperimentDescription as ExperimentDescription
from equipoise.experiment.price_records import DialPosition as DialPosition
from equipoise.experiment.price_records import DialPreset as DialPreset
from equipoise.experiment.price_records import Gain as Gain
from equipoise.experiment.price_records import PrecisionReached as PrecisionReached
from equipoise.experiment.price_records import Prices as Prices
from equipoise.monitoring.health_records import Alert as Alert
from equipoise.monitoring.health_records import Check as Check
from equipoise.monitoring.health_records import Health as Health
from equipoise.monitoring.health_records import LastVerification as LastVerification
from equipoise.monitoring.health_records import RefusedCalls as RefusedCalls
from equipoise.unit_lifecycle import STATES

if TYPE_CHECKING:  # NumPy is a third of what a client would import, and only histories use it
    from equipoise._types import FloatArray, IntArray

UNIT_STATES = tuple(dict.fromkeys(meaning.name for meaning in STATES.values()))
"""The states of a unit, in words."""


class Assignment(NamedTuple):
    """The arm of a unit, and how it was chosen.

    Attributes
    ----------
    unit, arm : str
        The unit, and the arm it was assigned to.
    number : int
        Index of the decision in the experiment, from 0.
    probability : float
        Probability of this arm when it was chosen, given everything known then.
    forced : bool
        Whether warm-up or the policy's forcing chose, not the estimates.
    at : datetime
        Time of the assignment, in UTC.
    new : bool
        Whether this call assigned the unit; False if it was assigned before.
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

    `counted` says whether it is in the estimates now; `new` is False for a repeat that changed nothing.
    """

    unit: str
    arm: str
    reward: float
    counted: bool
    new: bool


@dataclass(frozen=True)
class UnitStatus:
    """One unit: its assignment, and the state of its reward.

    Attributes
    ----------
    unit, arm : str
        The unit, and the arm it was assigned to.
    number : int
        Index of the decision in the experiment, from 0.
    probability : float
        Probability of this arm when it was chosen, given everything known then.
    forced : bool
        Whether warm-up or the policy's forcing chose, not the estimates.
    at : datetime
        Time of the assignment, in UTC.
    state : str
        waiting, held (reported, but not counted until the window has passed), counted, overdue, defaulted or
        dropped.
    reward : float or None
        As reported, or as last corrected.
    counted : bool
        Whether that reward is in the estimates; False while a default is counted instead.
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
        """Return the unit as plain data that JSON can hold."""
        return dataclasses.asdict(self) | {"at": self.at.isoformat()}


@dataclass(frozen=True)
class UnitPage:
    """Some units of a list, and where the list goes on.

    Attributes
    ----------
    units : tuple of UnitStatus
        The units, as they are now.
    next : str or None
        Pass it as `after` to go on; None at the end. A page may have fewer units than its limit, even none, before the
        end: finding rare units among very many takes several pages.
    """

    units: tuple[UnitStatus, ...]
    next: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the page as plain data that JSON can hold."""
        return {"units": [one.to_dict() for one in self.units], "next": self.next}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an experiment's log.

    Attributes
    ----------
    number : int
        Position in the log of the experiment, from 1.
    kind : str
        created, assigned, rewarded, counted, expired, corrected, withdrawn, paused, resumed, stopped, finished,
        arm_added, arm_paused, arm_resumed, arm_retired, weight_changed, dial_changed, described, noted, muted, unmuted
        or rebuilt.
    at : datetime
        Time of the event, in UTC.
    who : str or None
        Author of the change, if given.
    unit, arm, decision : str, str, int, or None
        The unit or arm concerned, and the index of the decision that assigned the unit.
    reward : float or None
        The reward as reported, corrected or counted, or the default.
    probability, forced
        As in `Assignment`; of assignments only.
    counted : bool or None
        Whether the reward entered the estimates with this event.
    replaced : float or None
        The reward that left the estimates with this event.
    details : dict
        Attributes of an assignment, reason of a correction or a change, settings of a new experiment or a change.
    reward_weight : float or None
        The weight that the policy solved for to decide this assignment; None where it was stated, or none was needed.
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
    reward_weight: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data that JSON can hold."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return data | {"at": self.at.isoformat()}


@dataclass(frozen=True)
class History:
    """An experiment over time, at some of its events.

    Attributes
    ----------
    arms : tuple of str
        Names of the arms.
    number : int array (points,)
        The event after which each point was taken.
    at : tuple of datetime
        Time of that event.
    assigned, rewarded : int array (points, arms)
        Units assigned, and rewards in the estimates.
    mean, std : float array (points, arms)
        Of the rewards in the estimates, as reported; NaN where there are too few.
    """

    arms: tuple[str, ...]
    number: "IntArray"
    at: tuple[datetime, ...]
    assigned: "IntArray"
    rewarded: "IntArray"
    mean: "FloatArray"
    std: "FloatArray"

    @property
    def average_reward(self) -> "FloatArray":
        """The average of all rewards so far, at each point."""
        import numpy as np

        total = np.where(self.rewarded > 0, self.mean, 0.0) * self.rewarded
        with np.errstate(invalid="ignore"):
            return np.asarray(total.sum(axis=1) / self.rewarded.sum(axis=1))


@dataclass(frozen=True)
class ExperimentSummary:
    """An experiment in a listing."""

    name: str
    state: str
    created_at: datetime
    policy: dict[str, Any]
    n_arms: int
    n_assigned: int
    n_rewarded: int


@dataclass(frozen=True)
class ArmStatus:
    """One arm of an experiment.

    Attributes
    ----------
    arm, state : str
        Its name, and whether it is active, paused or retired.
    assigned, rewarded, pending : int
        Units assigned; rewards in the estimates; units whose reward is still to enter them. `assigned` is the sum of
        the other two, `dropped` and `withdrawn`.
    held, overdue : int
        Pending units by reason: reported but held back until the window has passed; past the window without a reward.
    defaulted, dropped : int
        Units past their window: counted with the default value (part of `rewarded`); left out of the estimates.
    withdrawn : int
        Units that were taken out for good.
    mean, std : float or None
        Of the rewards, as reported.
    target_share, actual_share : float or None
        The share the policy steers towards, floors included; the share the arm has got so far.
    low, high : float or None
        Interval for the mean. Those of all arms hold together and at all times, however often they are read; see
        `Status.interval`. None where nothing can be said yet.
    half_width : float or None
        The larger distance from the mean to an end.
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
    withdrawn: int
    mean: float | None
    std: float | None
    target_share: float | None
    actual_share: float | None
    low: float | None
    high: float | None
    half_width: float | None


@dataclass(frozen=True)
class Progress:
    """Progress of a stopping rule: whether it is met, its current value and its goal."""

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
        "guaranteed" for any rewards in the declared range; "low guaranteed" or "high guaranteed" if that range is open
        at the other end; otherwise "asymptotic", which needs 30 rewards, or more if they are skewed.
    confidence : float
        Confidence of the intervals of all arms together, and of what is said about the best arm, at all times.
    average_reward : float or None
        Average of all rewards in the estimates.
    reward_weight : float or None
        The weight between reward and accuracy now: as stated, or as solved for to keep the stated information. None if
        the policy has none, if no weight leads to its shares, or before there are estimates.
    information_kept, information_about : float and str, or None
        The share of the information to keep, and about what, if that is how the dial is set.
    may_be_best : tuple of str
        The arms that are not ruled out as the best.
    provisional : tuple of str
        Reasons why means, intervals and all that follows may be wrong: rewards that come by their value, or are
        missing. Empty if there are none. No stopping rule that reads intervals is met meanwhile.
    sentence : str
        What may be said of the arms now, in plain words.
    gain_over_equal_shares : Gain or None
        What 100 people gained so far compared with equal shares of the arms in play, since these last changed; None
        before every arm in play has four rewards.
    most_lost, widest_difference : float or None
        What choosing the arm with the best mean can cost at most, and the widest half-width of differences between
        arms; only where a stopping rule reads them. `Experiment.compare` has all.
    last_window_at : datetime or None
        When the last window passes in which a reward is awaited or held; None if no window is open.
    description : ExperimentDescription
        What the experiment is about, in the words of those who run it.
    alerts : tuple of Alert
        Alerts that are open and not muted, problems first: as of the last look at the checks, which `Experiment.health`
        and every minute a service take.
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
    n_withdrawn: int
    average_reward: float | None
    interval: str
    confidence: float
    arms: tuple[ArmStatus, ...]
    stopping: tuple[Progress, ...]
    reward_weight: float | None = None
    information_kept: float | None = None
    information_about: str | None = None
    may_be_best: tuple[str, ...] = ()
    provisional: tuple[str, ...] = ()
    sentence: str = ""
    most_lost: float | None = None
    widest_difference: float | None = None
    gain_over_equal_shares: Gain | None = None
    last_window_at: datetime | None = None
    description: ExperimentDescription = NOT_DESCRIBED
    alerts: tuple[Alert, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain data that JSON can hold."""
        last = None if self.last_window_at is None else self.last_window_at.isoformat()
        times = {"created_at": self.created_at.isoformat(), "at": self.at.isoformat(), "last_window_at": last}
        return dataclasses.asdict(self) | times | {"alerts": [alert.to_dict() for alert in self.alerts]}


@dataclass(frozen=True)
class WhatIf:
    """Another dial compared with the present one, on the present estimates.

    Attributes
    ----------
    reward_weight, present_weight : float or None
        The other weight, and that of the experiment: as stated, or as solved for to keep the stated information; None
        if no weight leads to the allocation.
    allocation, present_allocation : dict of float by arm
        Shares that each dial asks for, floors included.
    reward, present_reward : float
        Expected reward per unit under each, in the unit of the rewards.
    error, present_error : float
        The objective's error under each; times 1 / sqrt(units) it is the expected error of an arm's mean.
    dial, present_dial : dict
        How each is set: `reward_weight`, or `information_kept` and `information_about`.
    information, present_information : dict of float
        The share of the information that each allocation keeps about "average", "every-arm" and "best-arm", compared
        with the best design for it. Divide 1 by it for the price: how many times as many units take the same accuracy.
    more_units : int
        Number of further units after which half-widths are predicted.
    half_widths, present_half_widths : dict of float by arm
        The half-width that `status` is expected to show then, with each dial; None where it will show no interval.
        Rewards are taken to go on, and to be missing, as they were.
    """

    reward_weight: float | None
    present_weight: float | None
    allocation: dict[str, float]
    present_allocation: dict[str, float]
    reward: float
    present_reward: float
    error: float
    present_error: float
    dial: dict[str, Any] = dataclasses.field(default_factory=dict)
    present_dial: dict[str, Any] = dataclasses.field(default_factory=dict)
    information: dict[str, float] = dataclasses.field(default_factory=dict)
    present_information: dict[str, float] = dataclasses.field(default_factory=dict)
    more_units: int = 0
    half_widths: dict[str, float | None] = dataclasses.field(default_factory=dict)
    present_half_widths: dict[str, float | None] = dataclasses.field(default_factory=dict)

    @property
    def reward_change(self) -> float:
        """Gain in reward per unit under the other dial."""
        return self.reward - self.present_reward

    @property
    def error_ratio(self) -> float:
        """Error under the other dial, as a multiple of the present one."""
        return self.error / self.present_error if self.present_error else math.inf


@dataclass(frozen=True)
class PlannedFigure:
    """A figure that was planned, on the present day: between which values it was to lie, and what it is.

    Attributes
    ----------
    figure, arm : str, and str or None
        What it is: people, rewards, missing, widest, best share, average reward, share of arm or mean of arm; and of
        which arm, for the last two.
    low, middle, high : float or None
        The ends of the band in which 8 of 10 simulated experiments lay on this day, and the middle one; None while
        most of them had no such figure yet.
    actual : float or None
        What it is now, if it is known.
    inside : bool or None
        Whether that lies in the band.
    """

    figure: str
    arm: str | None
    low: float | None
    middle: float | None
    high: float | None
    actual: float | None
    inside: bool | None


@dataclass(frozen=True)
class Fidelity:
    """How an experiment goes compared with the plan it was made from.

    Attributes
    ----------
    name : str
        The experiment.
    at : datetime
        Time of the comparison, in UTC.
    plan, way : str
        Digest of the plan, and the way of assigning people that was chosen from it.
    day, last_day : float
        Days since the start, and the last day of the plan.
    figures : tuple of PlannedFigure
        All figures.
    sentences : tuple of str
        What left its band, in words, and how many figures did not.
    """

    name: str
    at: datetime
    plan: str
    way: str
    day: float
    last_day: float
    figures: tuple[PlannedFigure, ...]
    sentences: tuple[str, ...]

    @property
    def outside(self) -> tuple[PlannedFigure, ...]:
        """The figures that left their bands."""
        return tuple(figure for figure in self.figures if figure.inside is False)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data that JSON can hold."""
        return dataclasses.asdict(self) | {"at": self.at.isoformat()}


@dataclass(frozen=True)
class Verification:
    """A successful verification.

    Attributes
    ----------
    n_events, n_decisions : int
        Events and decisions replayed.
    seconds : float
        How long it took.
    n_chained : int
        The last events of the log that are in the hash chain; fewer than `n_events` if the experiment is older than it.
    last_hash : str or None
        Hash of the last event, in hexadecimal, which stands for the whole chain.
    """

    n_events: int
    n_decisions: int
    seconds: float
    n_chained: int = 0
    last_hash: str | None = None
