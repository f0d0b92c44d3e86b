"""Plan again from here: what an experiment measured so far becomes the guesses for the people still to come."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, TooFewRewards
from equipoise.experiment.stopping import Budget, Deadline, Decided, Precision
from equipoise.planner.guesses import ANY, DURATION, POSITIVE, SHARE, Guess
from equipoise.planner.plan import Plan
from equipoise.planner.plan_parts import DAY
from equipoise.planner.planned_arms import Delay, PlannedArm, scale_of
from equipoise.planner.planned_goals import Costs, Goals
from equipoise.planner.planned_people import People
from equipoise.planner.planned_rewards import Rewards
from equipoise.planner.planned_ways import Way, ways_of

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.experiment.configuration import Configuration

AS_NOW = "as now"
"""Label of the way in which the experiment assigns people now."""
_FEWEST_REWARDS = 2
_FEWEST_DELAYS = 10
_FEWEST_DAYS = 7
_AT_ONCE = 1.0
"""Delays of less than a second are none."""


def plan_of(experiment: Experiment, **instead: Any) -> Plan:
    """Return the plan of what is left of an experiment.

    Arms have the means and spreads measured so far, with their standard errors as ranges; people, delays and missing
    rewards are as they were, too; what came in less than a day counts as a day's. Those assigned already are taken off
    the most people and the budget, and the plan begins today. The first way, "as now", has the experiment's policy,
    floors and control share; it stands for the default way that is the same. Retired and paused arms are left out.

    The simulated experiments start without rewards: what is known already enters the guesses, not the intervals. So
    they tell how long further people take to reach a precision by themselves, which is longer than together with those
    before. `Experiment.prices` counts those before, and shrinks the differences between arms, which were luck in part.

    Parameters
    ----------
    experiment : Experiment
        In a store, or of a service.
    **instead
        Parts of `Plan` that replace what was measured.

    Examples
    --------
    >>> import equipoise as eq
    >>> experiment = eq.Experiment.create(
    ...     "memory:", "mail", arms=["plain", "prize"], information_kept=0.7, seed=1, most_units=900
    ... )
    >>> for i, one in enumerate(experiment.ask_many([f"person-{i}" for i in range(300)])):
    ...     told = experiment.tell(one.unit, float(i % 10 < (3 if one.arm == "plain" else 6)))
    >>> plan = Plan.from_experiment(experiment)
    >>> plan.people.most, [way.label for way in plan.ways][:3], plan.arms[1].name
    (600, ['equal shares', 'as now', 'information kept 1'], 'prize')
    """
    status, configuration = experiment.status(), experiment.configuration
    described = experiment.describe()
    names = [arm.arm for arm in status.arms if arm.state == "active"]
    rows = _Rows.read(experiment)
    range_ = configuration.counted_range
    arms = []
    for arm in status.arms:
        if arm.arm not in names:
            continue
        values = rows.counted(arm.arm)
        if values.size < _FEWEST_REWARDS:
            raise TooFewRewards(
                f"a plan from an experiment needs rewards of every arm; {arm.arm!r} has {values.size}",
                hint="wait for rewards, pause the arm, or write a plan with guesses of your own",
            )
        arms.append((arm.arm, values))
    is_yes_no = configuration.reward_cap is None and all(set(values.tolist()) <= {0.0, 1.0} for _, values in arms)
    is_yes_no = is_yes_no and range_ in (None, (0.0, 1.0))
    as_they_were = is_yes_no or configuration.reward_cap is not None  # capped rewards have no usual distribution
    planned = [_arm(name, values, as_they_were, range_) for name, values in arms]
    control = configuration.control if configuration.control in names else None
    floors = {arm["name"]: arm["floor"] for arm in described["arms"] if arm["name"] in names and arm["floor"]}
    as_now = Way(label=AS_NOW, policy=configuration.policy, floor=floors)
    parts: dict[str, Any] = {
        "title": f"{status.description.title or experiment.name}, from here",
        "outcome": status.description.outcome or None,
        "arms": planned,
        "control": control,
        "people": _people(configuration, rows, max(status.at, rows.latest)),
        "rewards": _rewards(configuration, rows, is_yes_no),
        "goals": _goals(configuration),
        "ways": _ways(as_now),
        "costs": Costs(),
    }
    return Plan(**parts | instead)


def _ways(as_now: Way) -> list[Way]:
    """Return the default ways with the present one after equal shares, but none twice."""
    equal, *others = ways_of({})
    return [equal, as_now, *(one for one in others if dataclasses.replace(one, label=AS_NOW) != as_now)]


@dataclasses.dataclass(frozen=True)
class _Rows:
    """What became of each unit. Times are in seconds since 1970, NaN where there is none."""

    arm: Sequence[str]
    at: FloatArray
    rewarded_at: FloatArray
    reward: FloatArray
    state: Sequence[str]

    @classmethod
    def read(cls, experiment: Experiment) -> _Rows:
        """Read the table that `export` writes, from a store and from a service alike."""
        file = io.StringIO()
        experiment.export(file, "jsonl")
        rows = [json.loads(line) for line in file.getvalue().splitlines()]
        return cls(
            arm=[row["arm"] for row in rows],
            at=np.array([_seconds(row["assigned_at"]) for row in rows]),
            rewarded_at=np.array([_seconds(row["rewarded_at"]) for row in rows]),
            reward=np.array([math.nan if row["counted_reward"] is None else row["counted_reward"] for row in rows]),
            state=[row["state"] for row in rows],
        )

    @property
    def latest(self) -> datetime:
        """When the last of it happened."""
        return datetime.fromtimestamp(float(np.nanmax([self.at, self.rewarded_at])), UTC)

    def counted(self, arm: str) -> FloatArray:
        """Return the rewards of an arm that people reported and that count."""
        mine = np.array([name == arm for name in self.arm], bool)
        return self.reward[mine & ~np.isnan(self.reward) & ~np.isnan(self.rewarded_at)]


def _seconds(text: str | None) -> float:
    return math.nan if text is None else datetime.fromisoformat(text).timestamp()


def _arm(name: str, values: FloatArray, as_they_were: bool, range_: Any) -> PlannedArm:
    if as_they_were:
        return PlannedArm(name=name, rewards=values)
    low, high = range_ or (None, None)
    mean, std = float(values.mean()), float(values.std(ddof=1))
    if (low is None) != (high is None) or std == 0.0:
        return PlannedArm(name=name, rewards=values)
    # The spread of n normal rewards is known to within a part of 1 / sqrt(2 n).
    spread = Guess.measured(std, std / math.sqrt(2 * values.size), POSITIVE)
    guess = Guess.measured(mean, std / math.sqrt(values.size), scale_of(range_) if range_ else ANY)
    return PlannedArm(name=name, mean=guess, std=spread)


def _people(configuration: Configuration, rows: _Rows, now: datetime) -> People:
    n_assigned = len(rows.arm)
    first, last = float(np.min(rows.at)), float(now.timestamp())
    days = max((last - first) / DAY, 1.0)  # what came in less than a day says nothing about the rest of it
    pace = n_assigned / days
    error = math.sqrt(n_assigned) / days
    if days >= _FEWEST_DAYS:  # days differ by more than chance, such as at weekends
        counts = np.bincount(((rows.at - first) // DAY).astype(int), minlength=int(days))[: int(days)]
        error = max(error, float(counts.std(ddof=1)) / math.sqrt(int(days)))
    limits = [rule.units for rule in configuration.stopping if isinstance(rule, Budget)]
    limits += [] if configuration.most_units is None else [configuration.most_units]
    deadlines = [datetime.fromisoformat(str(rule.at)) for rule in configuration.stopping if isinstance(rule, Deadline)]
    start, until = now.date(), None
    if deadlines:
        until = (min(deadlines) - timedelta(microseconds=1)).astimezone(now.tzinfo).date()
        if until < start:
            raise InvalidInput.of("until", f"must not be before today, {start}", until.isoformat())
    most = None
    if limits:
        most = min(limits) - n_assigned
        if most < 1:
            raise InvalidInput(f"nobody is left to plan for: {n_assigned:,} people are assigned, of {min(limits):,}")
    is_planned = (
        until is not None or most is not None or any(isinstance(rule, Precision) for rule in configuration.stopping)
    )
    days_left = None if is_planned else max(1, math.ceil(days))  # as long again
    per_day = Guess.measured(pace, error, POSITIVE)
    return People(per_day=per_day, start=start, until=until, most=most, days=days_left)


def _rewards(configuration: Configuration, rows: _Rows, is_yes_no: bool) -> Rewards:
    delay, missing = _delay_and_missing(configuration, rows)
    range_ = configuration.reward_range
    low, high = range_ or (None, None)
    return Rewards(
        delay=delay,
        missing=missing,
        rule=configuration.missing,
        range=None if is_yes_no or (low is None and high is None) else range_,
        cap=configuration.reward_cap,
        direction=configuration.direction,
    )


def _delay_and_missing(configuration: Configuration, rows: _Rows) -> tuple[Delay | None, Guess]:
    """Return how long rewards take, and which share never comes, from all that were and were not reported.

    The share reported by each age is that of Kaplan and Meier; what never comes is the rest, at the largest delay
    seen among units that are that old.
    """
    gone = np.array([state == "withdrawn" for state in rows.state], bool)
    told = ~np.isnan(rows.rewarded_at) & ~gone
    if np.count_nonzero(told) < _FEWEST_DELAYS:
        return None, Guess(0.0, scale=SHARE)
    now = max(float(np.nanmax(rows.rewarded_at)), float(np.nanmax(rows.at)))
    age = np.where(told, rows.rewarded_at - rows.at, now - rows.at)[~gone]
    came = told[~gone]
    order = np.lexsort((~came, age))
    at_risk = np.arange(age.size, 0, -1)
    waiting = np.cumprod(np.where(came[order], 1.0 - 1.0 / at_risk, 1.0))
    delays, reported = age[order][came[order]], 1.0 - waiting[came[order]]
    window = configuration.missing.window_seconds
    enough = float(np.quantile(delays, 0.9)) * 3.0 if window is None else float(window)
    old = ~gone & (now - rows.at >= enough)
    n_old, n_missing = int(np.count_nonzero(old)), int(np.count_nonzero(old & ~told))
    part = (n_missing + 0.5) / (n_old + 1)
    error = math.sqrt(part * (1 - part) / (n_old + 1))
    share = Guess.measured(part, error, SHARE) if n_missing else Guess(0.0, scale=SHARE)
    of_all = reported / reported[-1]
    median, last = (float(delays[min(np.searchsorted(of_all, q), delays.size - 1)]) for q in (0.5, 0.9))
    if last < _AT_ONCE:
        return None, share
    median = max(median, 1e-3)
    nine_of_ten = Guess(last, scale=DURATION) if last > median else None
    return Delay(median=Guess(median, scale=DURATION), nine_of_ten=nine_of_ten), share


def _goals(configuration: Configuration) -> Goals:
    found: dict[str, Any] = {"failure_probability": configuration.failure_probability}
    for rule in configuration.stopping:
        if isinstance(rule, Precision) and rule.half_width < found.get("precision", math.inf):
            found |= {"precision": rule.half_width, "precision_of": rule.of}
        elif isinstance(rule, Decided):
            found["margin"] = rule.margin
    return Goals(**found)
