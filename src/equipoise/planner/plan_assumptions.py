"""Say what a plan assumes, in words: its arms, people, rewards and goals."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.planner.guesses import SHARE, Guess
from equipoise.planner.plan_words import day_of, out_of, percent, width
from equipoise.quantities import duration_text

if TYPE_CHECKING:
    from equipoise.planner.plan import Plan
    from equipoise.planner.planned_arms import Delay, PlannedArm


class Assumption(NamedTuple):
    """What is assumed of a subject, such as an arm or the people who come."""

    subject: str
    words: str


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def assumptions(plan: Plan) -> list[Assumption]:
    """Return what a plan assumes, the arms first.

    Examples
    --------
    >>> from equipoise.planner import Plan
    >>> plan = Plan(arms={"plain": "30%", "prize": "50% (40% to 60%)"}, people=3000, control="plain", goals=0.05)
    >>> for subject, words in assumptions(plan):
    ...     print(f"{subject}: {words}")
    arm 'plain': rate 30%; the control
    arm 'prize': rate 50% (8 in 10 sure: 40% to 60%)
    people: at most 3,000
    rewards: known at once; if one is missing: wait for ever
    goal: every arm known to ±0.05, in 8 of 10 experiments; all intervals together hold in 95%
    seed: 1
    """
    found = [Assumption(f"arm {arm.name!r}", _arm(plan, arm)) for arm in plan.arms]
    found.append(Assumption("people", _people(plan)))
    found.append(Assumption("rewards", _rewards(plan)))
    found += [
        Assumption(*one) for one in (("drift", _drift(plan)), ("goal", _goal(plan)), ("costs", _costs(plan))) if one[1]
    ]
    extras = [(way.label, _way(way)) for way in plan.ways]
    found += [Assumption(f"way {label!r}", words) for label, words in extras if words]
    return [*found, Assumption("seed", f"{plan.seed}")]


def guess_in_words(guess: Guess) -> str:
    """Return a guess, with its range if it has one.

    Examples
    --------
    >>> guess_in_words(Guess("50% (40% to 60%)")), guess_in_words(Guess(96)), guess_in_words(Guess(96, 80, 112))
    ('50% (8 in 10 sure: 40% to 60%)', '96', '96 (8 in 10 sure: 80 to 112)')
    """
    if guess.low is None or guess.high is None:
        return _number(guess, guess.value)
    return f"{_number(guess, guess.value)} (8 in 10 sure: {_number(guess, guess.low)} to {_number(guess, guess.high)})"


def _number(guess: Guess, value: float) -> str:
    if guess.scale == SHARE:
        return percent(value).text
    if guess.scale.is_duration:
        return duration_text(value)
    return f"{value:,.6g}"


def _arm(plan: Plan, arm: PlannedArm) -> str:
    if arm.rate is not None:
        words = [f"rate {guess_in_words(arm.rate)}"]
    else:
        words = [f"mean {guess_in_words(arm.mean)}"]
        if arm.std is not None:
            words.append(f"standard deviation {guess_in_words(arm.std)}")
    if arm.rewards is not None:
        words.append(f"drawn from {len(arm.rewards):,} rewards of a pilot")
    if arm.delay is not None:
        words.append(f"rewards known {_delay(arm.delay)}")
    if arm.missing is not None:
        words.append(f"{guess_in_words(arm.missing)} of its rewards never come")
    if arm.name == plan.control:
        words.append("the control")
    return "; ".join(words)


def _people(plan: Plan) -> str:
    people, words = plan.people, []
    if people.per_day is not None:
        words.append(f"{guess_in_words(people.per_day)} a day")
    if people.counts is not None:
        words.append(f"{sum(people.counts):,.6g} in all, by day as in the plan")
    if people.most is not None:
        words.append(f"at most {people.most:,}")
    if people.start is not None:
        words.append(f"from {day_of(people.first_day, None).text}")
    if people.until is not None:
        words.append(f"until {day_of(people.until, None).text}")
    elif people.days is not None:
        words.append(f"for {people.days:,} days")
    if people.weekdays is not None:
        busy = ", ".join(f"{day} {one:g}" for day, one in zip(_WEEKDAYS, people.weekdays, strict=True))
        words.append(f"days of the week compared with each other: {busy}")
    if people.ramp:
        words.append(f"all of them only after {duration_text(people.ramp.total_seconds())}")
    if people.exact:
        words.append("exactly so many, evenly over the day")
    return "; ".join(words)


def _delay(delay: Delay) -> str:
    if delay.nine_of_ten is None:
        return f"after {guess_in_words(delay.median)}"
    return f"half of them after {guess_in_words(delay.median)}, nine of ten after {guess_in_words(delay.nine_of_ten)}"


def _rewards(plan: Plan) -> str:
    rewards = plan.rewards
    words = [f"known {_delay(rewards.delay)}" if rewards.delay else "known at once"]
    if rewards.batches is not None:
        in_lots = f"every {rewards.batches:,} people" if isinstance(rewards.batches, int) else str(rewards.batches)
        words.append(f"in lots, {in_lots}")
    if not (rewards.missing.is_sure and rewards.missing.value == 0):
        words.append(f"{guess_in_words(rewards.missing)} never come")
        if not (rewards.missing_ratio.is_sure and rewards.missing_ratio.value == 1):
            words.append(f"{guess_in_words(rewards.missing_ratio)} times as often after bad outcomes")
    words.append(f"if one is missing: {rewards.rule.describe()}")
    if not plan.is_yes_no and plan.reward_range is not None:
        low, high = ("" if end is None else f"{end:g}" for end in plan.reward_range)
        words.append(f"from {low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}")
    if rewards.cap is not None:
        words.append(f"a larger one counts as {rewards.cap:g}")
    if rewards.direction == "minimise":
        words.append("small ones are good")
    return "; ".join(words)


def _drift(plan: Plan) -> str:
    drift, words = plan.drift, []
    if drift.per_week:
        words.append(f"all rewards change by {drift.per_week:+g} a week")
    if drift.step:
        on = drift.step_on
        when = f"on {on}" if isinstance(on, date) else f"after {duration_text(on.total_seconds())}"
        words.append(f"they jump by {drift.step:+g} {when}")
    return "; ".join(words)


def _goal(plan: Plan) -> str:
    goals, words = plan.goals, []
    if goals.precision is not None:
        what = "every arm" if goals.precision_of == "arms" else "every difference between arms"
        words.append(f"{what} known to ±{width(goals.precision).text}")
    if goals.margin is not None:
        words.append("know which arm is best" + (f", to within {width(goals.margin).text}" if goals.margin else ""))
    by = "" if goals.deadline is None else f" by {day_of(goals.deadline, None).text}"
    sure, of = out_of(goals.by)
    first = f"{' and '.join(words)}{by}, in {sure.text} of {of.text} experiments; " if words else ""
    return f"{first}all intervals together hold in {percent(1.0 - goals.failure_probability).text}"


def _costs(plan: Plan) -> str:
    costs = plan.costs
    parts = ((costs.per_person, "a person"), (costs.per_day, "a day"))
    return ", ".join(f"{amount:,g} {what}" for amount, what in parts if amount)


def _way(way: Any) -> str:
    words = []
    if way.floor:
        floor = way.floor
        words.append("at least " + (percent(floor).text if isinstance(floor, float) else str(floor)) + " for every arm")
    if way.control_share:
        words.append(f"{percent(way.control_share).text} for the control")
    if way.warm_up:
        words.append(f"{way.warm_up:,} people for every arm first")
    return "; ".join(words)
