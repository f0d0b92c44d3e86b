"""Plans of experiments: arms, people, rewards, ways to assign and goals, as guesses that simulated experiments draw."""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks, quantities
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, UnknownName, within
from equipoise.experiment.stopping import Budget, Deadline, Decided, Precision, StoppingRule
from equipoise.planner.guesses import SHARE, Guess
from equipoise.planner.plan_parts import DAY, check_keys
from equipoise.planner.planned_arms import Delay, PlannedArm, arms_of, scale_of
from equipoise.planner.planned_goals import Costs, Goals
from equipoise.planner.planned_people import LONGEST_DAYS, MOST_PEOPLE, People
from equipoise.planner.planned_rewards import Drift, Rewards
from equipoise.planner.planned_ways import Way, ways_of
from equipoise.quantities import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from equipoise.experiment import Experiment
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.worlds import World
    from equipoise.progress import Progress

_PLACES = {"missing": "rewards", "reward_cap": "rewards", "reward_range": "rewards"}
_NAMES = {"reward_cap": "cap", "reward_range": "range"}
"""Where a plan has settings of an experiment that are the same under every way, and what they are called there."""
SCENARIOS = ("as guessed", "no difference", "half the differences", "another arm is best", "half as many people")
"""Named scenarios, in which arms are exactly as said; the rest of the guesses keep their ranges."""
_SLACK = 4
"""If nothing says when enrolment ends: so many times the people that equal shares take for the goal, by formula."""
_NEEDS_DAYS, _SAY_PER_DAY = "takes time, of which this plan knows nothing", "give per_day: how many people come a day"
_ENROLMENT_LOOKS, _LATER_LOOKS, _SLOW_LOOKS = 48, 8, 12


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A planned experiment: guesses of what is true, ways to assign people, and goals.

    `simulate` forecasts what each way will bring. Parts can be given as values, or as mappings with the same keys.

    Parameters
    ----------
    arms : mapping or sequence of PlannedArm
        At least two: names with rates, such as ``{"plain": "30%", "prize": "40% to 60%"}``, or with tables such as
        ``{"plain": {"mean": 12, "std": 4}}``.
    people : People, mapping or int
        Who comes; a number is how many in all.
    rewards : Rewards or mapping, optional
        How rewards come.
    control : str, optional
        The arm that others are compared with.
    goals : Goals, mapping or float, optional
        What to find out; a number is the precision.
    ways : sequence of Way, or mapping, optional
        What to compare: `Way`, policies, or a table such as ``{"information_kept": [0.9, 0.5], "weights": [0.8]}``.
        Equal shares are always among them. By default they are compared with information kept 1, 0.9, 0.7, 0.5, 0.25.
    drift, costs : Drift and Costs, or mappings, optional
    title, outcome : str, optional
        What the experiment is called, and what a reward is.
    seed : int, default 1
        What is drawn depends on it, and on the number of the replication.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(
    ...     arms={"plain": "30%", "prize": "40% to 60%"},
    ...     people=eq.People(per_day=96, start="2027-03-01", until="2027-06-30"),
    ...     rewards=eq.Rewards(delay=("8h", "2 days"), missing="5%", rule=eq.DropUnit(window_seconds=172_800)),
    ...     control="plain",
    ...     goals=eq.Goals(precision=0.06),
    ... )
    >>> plan.expected_people, [way.label for way in plan.ways][:3]
    (11712.0, ['equal shares', 'information kept 1', 'information kept 0.9'])
    >>> world, drawn = plan.world(0)
    >>> {path: round(value, 3) for path, value in drawn.items()}, world.mean.round(3)
    ({'arms.prize.rate': 0.498}, array([0.3  , 0.498]))
    """

    arms: Any
    people: Any
    rewards: Any = None
    control: str | None = None
    goals: Any = None
    ways: Any = None
    drift: Any = None
    costs: Any = None
    title: str | None = None
    outcome: str | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("title", "outcome"):
            if not isinstance(getattr(self, name), (str, type(None))):
                raise InvalidInput.of(name, "must be text", getattr(self, name))
        self._set(
            arms=arms_of(self.arms),
            people=People.of(self.people),
            rewards=Rewards.of(self.rewards),
            goals=Goals.of(self.goals),
            ways=ways_of(self.ways),
            drift=Drift.of(self.drift),
            costs=Costs.of(self.costs),
            seed=checks.whole_number("seed", self.seed, 0, 2**63 - 1),
        )
        self._check_control()
        for name in ("cap", "rounded_to"):
            value = getattr(self.rewards, name)
            if self.is_yes_no and value is not None:
                words = "must be left out: yes/no rewards are 0 and 1"
                raise InvalidInput.of(name, words, value).within("rewards")
        self._set(arms=tuple(self._placed(arm) for arm in self.arms))
        self._check_times()
        self._check_goals()
        self._check_drift()
        self._check_missing()
        self._check_ways()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    # Checks

    def _check_control(self) -> None:
        if self.control is not None and self.control not in self.arm_names:
            raise InvalidInput.of("control", f"must be one of the arms, {', '.join(self.arm_names[:10])}", self.control)

    def _placed(self, arm: PlannedArm) -> PlannedArm:
        """Return an arm with its guesses on their scales, now that the range of rewards is known."""
        with within("arms", arm.name):
            if self.is_yes_no:
                if arm.rate is None and not arm.is_yes_no:
                    raise InvalidInput.of("rate", "is missing: some arms have a rate, so all need one")
                if self.rewards.range not in (None, (0.0, 1.0)):
                    raise InvalidInput.of("rate", "goes with rewards from 0 to 1, which are their range")
                rate = arm.rate if arm.rate is not None else _measured_rate(arm.rewards)
                return dataclasses.replace(arm, rate=rate, rewards=None)
            if arm.rate is not None:
                raise InvalidInput.of(
                    "rate", "must be left out: other arms have means, so all need one", arm.rate.plain()
                )
            scale = scale_of(self.rewards.range)
            measured = None if arm.rewards is None else np.array(arm.rewards)
            mean, std = arm.mean, arm.std
            if measured is not None:
                self._check_rewards(measured)
                spread = float(measured.std(ddof=1))
                if mean is None:
                    mean = Guess.measured(float(measured.mean()), spread / math.sqrt(measured.size), scale)
                if std is not None:
                    raise InvalidInput.of("std", "must be left out: the rewards say it", std.plain())
            mean = Guess.of("mean", mean, scale, at_ends=measured is not None)
            if std is not None:
                self._check_spread(mean.value, std)
            return dataclasses.replace(arm, mean=mean)

    def _check_rewards(self, measured: FloatArray) -> None:
        low, high = self.rewards.range or (None, None)
        for end, wrong in ((low, measured < (low or 0.0)), (high, measured > (high or 0.0))):
            if end is not None and wrong.any():
                worst = float(measured[int(wrong.argmax())])
                raise InvalidInput.of("rewards", f"must be within {list(self.rewards.range)}, the range", worst)

    def _check_spread(self, mean: float, std: Guess) -> None:
        low, high = self.rewards.range or (None, None)
        if low is None and high is None:
            return
        if low is None or (high is None and low != 0):
            raise InvalidInput.of(
                "mean", "and std fit a range with both ends, [0, inf], or none", hint="or give the rewards of a pilot"
            )
        if high is None:
            return
        most = math.sqrt((mean - low) * (high - mean))
        if std.value >= most:
            words = f"must be less than {most:.4g}: no rewards from {low:g} to {high:g} with this mean spread more"
            raise InvalidInput.of("std", words, std.value)

    def _check_times(self) -> None:
        people, rule = self.people, self.rewards.rule
        delays = [("rewards", self.rewards.delay)] + [(f"arms.{arm.name}", arm.delay) for arm in self.arms]
        given = [(place, delay) for place, delay in delays if delay is not None and delay.median.value > 0]
        if not people.has_calendar:
            for place, delay in given:
                text = duration_text(delay.median.value)
                raise InvalidInput.of("delay", _NEEDS_DAYS, text, hint=_SAY_PER_DAY).within(place)
            if rule.window_seconds is not None:
                text = duration_text(rule.window_seconds)
                raise InvalidInput.of("window", _NEEDS_DAYS, text, hint=_SAY_PER_DAY).within("rewards")
            if not math.isnan(self.rewards.batch_seconds):
                wrong = InvalidInput.of("batches", _NEEDS_DAYS, self.rewards.batches, hint=_SAY_PER_DAY)
                raise wrong.within("rewards")
        days = self.enrolment_days
        if self.expected_people > MOST_PEOPLE:
            words = (
                f"must be given: {self.expected_people:,.0f} are expected, and at most {MOST_PEOPLE:,} can be simulated"
            )
            raise InvalidInput.of("most", words).within("people")
        for place, delay in given:
            if delay.median.value >= days * DAY and people.has_calendar:
                raise InvalidInput.of(
                    "delay",
                    f"must be shorter than the {days:,} days that people are assigned: nothing would be learnt in time",
                    duration_text(delay.median.value),
                    hint="assign people for longer, or look at an outcome that is known sooner",
                ).within(place)
        deadline = self.goals.deadline
        if deadline is not None:
            if people.start is None:
                raise InvalidInput.of("start", "is missing: without it, goals.deadline has no meaning").within("people")
            if deadline < people.first_day:
                first = f"must not be before the start, {people.first_day}"
                raise InvalidInput.of("deadline", first, deadline.isoformat()).within("goals")

    def _check_goals(self) -> None:
        precision, (low, high) = self.goals.precision, self.reward_range or (None, None)
        if high is not None and self.rewards.cap is not None:
            high = min(high, self.rewards.cap)
        if low is not None and high is not None:
            times = 1 if self.goals.precision_of == "differences" else 0.5
            widest = times * (high - low)
            for name, value in (("precision", precision), ("margin", self.goals.margin)):
                limit = high - low if name == "margin" else widest
                if value is not None and value >= limit:
                    words = f"must be less than {limit:g}, which the range of rewards says already"
                    share = quantities.of_a_hundred(value) if self.is_yes_no else None
                    raise InvalidInput.of(name, words, value, hint=share).within("goals")

    def _check_drift(self) -> None:
        (low, high), drift = self.reward_range or (None, None), self.drift
        if low is None or high is None or (drift.per_week == 0 and drift.step == 0):
            return
        change = drift.per_week * self.enrolment_days / 7 + drift.step
        for arm in self.arms:
            mean = (arm.rate or arm.mean).value
            if not low <= mean + change <= high:
                words = f"must leave the mean of {arm.name!r} from {low:g} to {high:g}; in the end it would be"
                raise InvalidInput.of("drift", f"{words} {mean + change:.4g}")
        if self.people.start is None and isinstance(drift.step_on, date):
            raise InvalidInput.of("start", "is missing: without it, drift.step_on has no meaning").within("people")

    def _check_missing(self) -> None:
        from equipoise.planner.plan_worlds import missing_by_outcome

        ratio: float = self.rewards.missing_ratio.value
        for arm in self.arms:
            share: Guess = arm.missing or self.rewards.missing
            good = arm.rate.value if arm.rate is not None else 0.5
            if max(missing_by_outcome(share.value, ratio, good)) > 1:
                most = min((good + ratio * (1 - good)) / ratio, good + ratio * (1 - good))
                words = f"must be at most {most:.3g} for {arm.name!r} with a missing_ratio of {ratio:g}"
                hint = "at more, rewards would be missing after all bad outcomes and then some"
                raise InvalidInput.of("missing", words, share.value, hint=hint).within("rewards")

    def _check_ways(self) -> None:
        from equipoise.experiment.configuration import checked_settings

        unset = dict.fromkeys(("reward_weight", "information_kept", "information_about"))
        unset |= dict.fromkeys(("smallest_difference", "half_width", "units", "drift", "description", "metadata"))
        for way in self.ways:
            try:
                checked_settings(**unset, **self.settings(way), seed=0, covariates=())
                way.policy.check_arms(len(self.arms))
            except InvalidInput as error:
                place = _PLACES.get(str(error.parameter[0])) if error.parameter else None
                if place is None:
                    raise error.within("ways", way.label) from None
                error.parameter = error.parameter[-1:]
                raise error.within(place, names=_NAMES) from None

    # What it says

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Names of the arms."""
        return tuple(arm.name for arm in self.arms)

    @cached_property
    def is_yes_no(self) -> bool:
        """Whether rewards are 0 and 1."""
        if any(arm.rate is not None for arm in self.arms):
            return True
        return all(arm.is_yes_no for arm in self.arms) and self.rewards.range in (None, (0.0, 1.0))

    @property
    def reward_range(self) -> tuple[float | None, float | None] | None:
        """The range of rewards: as declared, or (0, 1) for yes/no."""
        declared: tuple[float | None, float | None] | None = self.rewards.range
        return (0.0, 1.0) if self.is_yes_no else declared

    @property
    def guesses(self) -> dict[str, Guess]:
        """All guesses, by their place in the plan: ``arms.prize.rate``, ``people.per_day``."""
        found: dict[str, Guess] = {}

        def add(place: str, part: Any, *names: str) -> None:
            for name in names:
                value = getattr(part, name)
                if isinstance(value, Guess):
                    found[f"{place}.{name}"] = value
                elif isinstance(value, Delay):
                    add(f"{place}.delay", value, "median", "nine_of_ten")

        for arm in self.arms:
            add(f"arms.{arm.name}", arm, "rate", "mean", "std", "delay", "missing")
        add("people", self.people, "per_day")
        add("rewards", self.rewards, "delay", "missing", "missing_ratio")
        return found

    @property
    def most_people(self) -> int | None:
        """How many people there are at most, if the plan says so, or if nothing but the goal says when it ends."""
        most: int | None = self.people.most
        return most if most is not None or self.people.enrolment_days is not None else self._enough_people

    @cached_property
    def _enough_people(self) -> int:
        goals = self.goals
        width = goals.precision if goals.precision is not None else goals.margin
        if not width:
            hint = "give people.until, days or most, or goals.precision"
            raise InvalidInput.of("until", "is missing: nothing says when the experiment ends", hint=hint).within(
                "people"
            )
        pairs = goals.precision is None or goals.precision_of == "differences"
        spread = max(self._spread(arm) for arm in self.arms)
        n_arms = len(self.arms)
        # Intervals at all times are some 1.4 times as wide as those of a fixed number of people.
        sure = 1.4 * NormalDist().inv_cdf(1 - goals.failure_probability / (2 * n_arms))
        needed = n_arms * (sure * spread / width) ** 2 * (2 if pairs else 1)
        missing = max((arm.missing or self.rewards.missing).value for arm in self.arms)
        enough: int = math.ceil(_SLACK * max(needed / (1 - missing), 50 * n_arms))
        if enough > MOST_PEOPLE:
            reached = width * math.sqrt(enough / MOST_PEOPLE)
            name = "precision" if goals.precision is not None else "margin"
            words = f"takes some {enough / _SLACK:,.0f} people with equal shares, too many to simulate"
            hint = f"{reached:.2g} is within reach; or say how many people there are: people.most or until"
            raise InvalidInput.of(name, words, width, hint=hint).within("goals")
        return enough

    def _spread(self, arm: PlannedArm) -> float:
        if arm.rate is not None:
            return math.sqrt(arm.rate.value * (1 - arm.rate.value))
        return arm.std.value if arm.std is not None else float(np.std(arm.rewards, ddof=1))

    @cached_property
    def enrolment_days(self) -> int:
        """How many days people are assigned, at the guesses; 1 where there is no calendar."""
        return self.days_at(None if self.people.per_day is None else self.people.per_day.value)

    def days_at(self, per_day: float | None) -> int:
        """Return how many days people are assigned at some pace."""
        people: People = self.people
        stated = people.enrolment_days
        if stated is not None or not people.has_calendar:
            return stated or 1
        most, pace = self.most_people or 0, per_day or 0.0
        # A random number of people may be less than expected: as many days as it takes almost surely.
        enough = most if people.exact else most + 5 * math.sqrt(most) + 5
        days = min(math.ceil(enough / pace), LONGEST_DAYS)
        while days < LONGEST_DAYS and people.expected(pace, days).sum() < enough * (1 - 1e-9):
            days = min(days + max(1, days // 20), LONGEST_DAYS)
        if people.expected(pace, days).sum() < enough * (1 - 1e-9):
            words = f"must be more: {most:,} people would take over 100 years"
            raise InvalidInput.of("per_day", words, pace).within("people")
        return days

    @property
    def expected_people(self) -> float:
        """How many people are expected, at the guesses."""
        people: People = self.people
        if not people.has_calendar:
            return float(people.most)
        pace = 0.0 if people.per_day is None else people.per_day.value
        total = float(people.expected(pace, self.enrolment_days).sum())
        return total if self.most_people is None else min(total, float(self.most_people))

    @property
    def deadline(self) -> datetime | None:
        """When the goal is to be reached, if dates say that."""
        people: People = self.people
        starts, stated = people.starts_at, self.goals.deadline
        if starts is None:
            return None
        if stated is not None:
            return starts + timedelta(days=(stated - people.first_day).days + 1)
        return people.deadline

    @property
    def deadline_seconds(self) -> float:
        """The deadline in seconds from the start; the end of enrolment if dates do not say it, inf without any."""
        deadline, starts = self.deadline, People.of(self.people).starts_at
        if deadline is not None and starts is not None:
            return (deadline - starts).total_seconds()
        stated: int | None = self.people.enrolment_days
        return math.inf if stated is None else stated * DAY

    def way(self, label: str | Way) -> Way:
        """Return the way with this label."""
        found: Way
        for found in self.ways:
            if label in (found, found.label):
                return found
        raise UnknownName(f"no way is called {label!r}; the ways are {', '.join(way.label for way in self.ways)}")

    # Worlds

    def world(self, replication: int | None) -> tuple[World, dict[str, float]]:
        """Return the truth of one replication, and the guesses that it drew, by their place in the plan.

        A function of the seed and the replication; what one guess draws does not depend on the others. For None,
        everything is exactly as guessed: what differs between replications then is luck alone.
        """
        from equipoise.planner.plan_worlds import make_world

        return make_world(self, replication)

    def at_guesses(self) -> tuple[World, dict[str, float]]:
        """Return the world exactly as guessed."""
        return self.world(None)

    def look_seconds(self) -> FloatArray:
        """Return when simulated experiments are looked at, in seconds from the start; the last is at the very end.

        Evenly over enrolment at the guesses, then until the last rewards. If a slower pace may take longer, ever more
        rarely until then.
        """
        end = self.enrolment_days * DAY
        looks = [end * (k + 1) / _ENROLMENT_LOOKS for k in range(_ENROLMENT_LOOKS)]
        per_day = self.people.per_day
        slow = None if per_day is None else per_day.draw(0.01)
        last = self.days_at(slow) * DAY
        if last > end:
            looks += [end * (last / end) ** ((k + 1) / _SLOW_LOOKS) for k in range(_SLOW_LOOKS)]
        wait = self._longest_wait()
        looks += [last + wait * (k + 1) / _LATER_LOOKS for k in range(_LATER_LOOKS) if wait > 0]
        return np.array([*sorted(set(looks)), math.inf])

    def _longest_wait(self) -> float:
        """Return how long after the end of enrolment almost all is known."""
        delays = [self.rewards.delay, *(arm.delay for arm in self.arms)]
        ends = [one.ends[1] for delay in delays if delay for one in (delay.median, delay.nine_of_ten) if one]
        wait = max(ends, default=0.0)
        window = self.rewards.rule.window_seconds or 0.0
        return max(wait, window) + (0.0 if math.isnan(self.rewards.batch_seconds) else DAY)

    # Experiments

    def settings(self, way: str | Way) -> dict[str, Any]:
        """Return the arguments of `Experiment.create` for the experiment that assigns people in this way.

        The goals are its stopping rules: `Precision`, `Decided` and `Deadline`, and `Budget` if the plan says how many
        people there are at most.

        Examples
        --------
        >>> plan = Plan(arms={"a": "30%", "b": "40%"}, people=3000, goals=0.05)
        >>> settings = plan.settings("information kept 0.7")
        >>> settings["stopping"], settings["reward_range"]
        ([Budget(units=3000), Precision(half_width=0.05)], (0.0, 1.0))
        """
        chosen = way if isinstance(way, Way) else self.way(way)
        floor = chosen.floor
        if isinstance(floor, tuple):
            floor = dict(floor) if isinstance(floor[0], tuple) else list(floor)
        return {
            "arms": list(self.arm_names),
            "policy": chosen.policy,
            "floor": floor,
            "control": self.control,
            "control_share": chosen.control_share,
            "warm_up": chosen.warm_up,
            "most_units": self.people.most,
            "reward_range": self.reward_range,
            "reward_cap": self.rewards.cap,
            "direction": self.rewards.direction,
            "missing": self.rewards.rule,
            "stopping": self._stopping(),
            "failure_probability": self.goals.failure_probability,
        }

    def _stopping(self) -> list[StoppingRule]:
        goals, rules = self.goals, list[StoppingRule]()
        if self.people.most is not None:
            rules.append(Budget(units=self.people.most))
        if self.deadline is not None:
            rules.append(Deadline(at=self.deadline))
        if goals.precision is not None:
            rules.append(Precision(half_width=goals.precision, of=goals.precision_of))
        if goals.margin is not None:
            rules.append(Decided(margin=goals.margin))
        return rules

    def scenario(self, name: str) -> Plan:
        """Return the plan in a named scenario: what if things are otherwise than guessed.

        Parameters
        ----------
        name : str
            "as guessed", "no difference" (all arms are like the average of them), "half the differences" (half as far
            from it), "another arm is best" (the best arm and the control change places; the best and the second, if the
            control is the best or there is none), "half as many people".

        Examples
        --------
        >>> plan = Plan(arms={"a": "30%", "b": "40% to 60%"}, people=3000)
        >>> [arm.rate.value for arm in plan.scenario("half the differences").arms]
        [0.35, 0.45]
        """
        checks.one_of("scenario", name, SCENARIOS)
        if name == "half as many people":
            return dataclasses.replace(self, people=self.people.slower(0.5))
        key = "rate" if self.is_yes_no else "mean"
        means = np.array([getattr(arm, key).value for arm in self.arms])
        average = float(means.mean())
        if name == "no difference":
            means[:] = average
        elif name == "half the differences":
            means = 0.5 * (means + average)
        elif name == "another arm is best":
            ranked = np.argsort(means if self.rewards.direction == "minimise" else -means, kind="stable")
            best = int(ranked[0])
            other = (
                int(ranked[1]) if self.control in (None, self.arms[best].name) else self.arm_names.index(self.control)
            )
            means[[best, other]] = means[[other, best]]
        arms = tuple(
            dataclasses.replace(arm, **{key: value}) for arm, value in zip(self.arms, means.tolist(), strict=True)
        )
        return dataclasses.replace(self, arms=arms)

    # Forecasts

    def simulate(
        self,
        *,
        replications: int | None = None,
        seconds: float | None = None,
        progress: Progress | bool | None = None,
        on_partial: Callable[[Forecast], object] | None = None,
        workers: int | None = None,
        backend: str = "threads",
        scheduler: str | None = None,
    ) -> Forecast:
        """Forecast by simulation what each way will bring.

        It begins with 20 simulated experiments per way and doubles them until ranges are narrow or time is up; Ctrl-C
        returns what is done. Replication r is the same in every run.

        Parameters
        ----------
        replications : int, optional
            Simulate this number with truths drawn from the guesses, and half as many exactly as guessed.
        seconds : float, optional
            At most about so long: 60 by default, without limit if `replications` is given.
        progress : bool or callable, optional
            True shows a bar; a function is called with (done, total).
        on_partial : callable, optional
            Called with the forecast so far after each round but the last.
        workers : int, optional
            Threads or processes; by default one per available processor.
        backend : {"threads", "processes", "ray", "dask"}
            Where to simulate.
        scheduler : str, optional
            Address of the cluster for "ray" and "dask".

        Examples
        --------
        >>> ways = {"information_kept": [0.9, 0.5]}
        >>> plan = Plan(arms={"plain": "30%", "prize": "50%"}, people=2000, goals=0.1, ways=ways)
        >>> forecast = plan.simulate(replications=20)
        >>> print(forecast.recommendation()[0])
        Keep 90% of the information.
        """
        from equipoise.planner.refinement import simulate

        return simulate(
            self,
            replications=replications,
            seconds=seconds,
            progress=progress,
            on_partial=on_partial,
            workers=workers,
            backend=backend,
            scheduler=scheduler,
        )

    def formulas(self) -> Forecast:
        """Forecast by formula, in milliseconds: as if the policy knew the guesses to be right from the start.

        Examples
        --------
        >>> ways = {"information_kept": [0.9, 0.5]}
        >>> forecast = Plan(arms={"plain": "30%", "prize": "50%"}, people=5000, goals=0.08, ways=ways).formulas()
        >>> [(name, round(way.people.median, -1)) for name, way in forecast.ways.items()]
        [('equal shares', 950.0), ('information kept 0.9', 1420.0), ('information kept 0.5', 3990.0)]
        """
        from equipoise.planner.formulas import forecast_by_formula

        return forecast_by_formula(self)

    # Plain data

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data that JSON can hold."""
        found: dict[str, Any] = json_plain(self.tables())
        return found

    def tables(self) -> dict[str, Any]:
        """Return the plan as the tables of a file; dates stay dates."""
        found: dict[str, Any] = {}
        for name in ("title", "outcome", "seed"):
            value = getattr(self, name)
            if value is not None and (name, value) != ("seed", 1):
                found[name] = value
        for name in ("people", "rewards", "drift", "goals", "costs"):
            table = getattr(self, name).table()
            if table:
                found[name] = table
        found["arms"] = [
            {"name": arm.name} | ({"control": True} if arm.name == self.control else {}) | arm.table()
            for arm in self.arms
        ]
        found["ways"] = [way.table() for way in self.ways]
        return found

    @classmethod
    def from_dict(cls, data: Any) -> Plan:
        """Read a plan that `to_dict` wrote, or the tables of a file."""
        names = tuple(field.name for field in dataclasses.fields(cls))
        if not isinstance(data, Mapping):
            raise InvalidInput(f"expected a plan with {', '.join(names)}; got {data!r}")
        check_keys(data, names)
        for name in ("arms", "people"):
            if name not in data:
                raise InvalidInput.of(name, "is missing: a plan needs arms and people")
        values = dict(data)
        arms = values["arms"]
        if isinstance(arms, list):
            controls = [
                one["name"] for one in arms if isinstance(one, Mapping) and one.get("control") and "name" in one
            ]
            if len(controls) + ("control" in data) > 1:
                raise InvalidInput.of("control", "must be one arm", ", ".join(map(str, controls)))
            if controls:
                values["control"] = controls[0]
            values["arms"] = [
                {key: one[key] for key in one if key != "control"} if isinstance(one, Mapping) else one for one in arms
            ]
        return cls(**values)

    def to_json(self) -> str:
        """Return the plan as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @property
    def digest(self) -> str:
        """What identifies the plan: a hash of all that it says."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __str__(self) -> str:
        """Return what the plan assumes as text."""
        from equipoise.planner.plan_assumptions import assumptions

        lines = [f"{one.subject}: {one.words}" for one in assumptions(self)]
        return "\n".join(
            [*([self.title] if self.title else []), *lines, f"ways: {', '.join(way.label for way in self.ways)}"]
        )

    def _repr_html_(self) -> str:
        """Show in a notebook what the plan assumes."""
        from equipoise.planner.plan_assumptions import assumptions

        rows = "".join(
            f"<tr><th scope='row'>{html.escape(one.subject)}</th><td>{html.escape(one.words)}</td></tr>"
            for one in assumptions(self)
        )
        ways = html.escape(", ".join(way.label for way in self.ways))
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f"<table>{title}{rows}<tr><th scope='row'>ways</th><td>{ways}</td></tr></table>"

    def to_toml(self) -> str:
        """Return the plan as the text of a file; `read_plan` reads the same plan from it."""
        from equipoise.planner.plan_file import plan_text

        return plan_text(self)

    @classmethod
    def from_experiment(cls, experiment: Experiment, **instead: Any) -> Plan:
        """Return the plan of what is left of an experiment, with what was measured so far as guesses.

        See `equipoise.planner.measured_plans.plan_of`.
        """
        from equipoise.planner.measured_plans import plan_of

        return plan_of(experiment, **instead)


def json_plain(value: Any) -> Any:
    """Return plain data with dates, and what is infinite, as text."""
    if isinstance(value, dict):
        return {key: json_plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_plain(one) for one in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value.isoformat() if isinstance(value, date) else value


def _measured_rate(rewards: tuple[float, ...]) -> Guess:
    """Return the rate of yes/no rewards with its range, also if all are the same (Agresti and Coull)."""
    n, yes = len(rewards), sum(rewards)
    rate = (yes + 0.5) / (n + 1)
    return Guess.measured(rate, math.sqrt(rate * (1 - rate) / (n + 1)), SHARE)
