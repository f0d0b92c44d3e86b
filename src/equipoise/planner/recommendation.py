"""Say in plain sentences which way to take, what it costs, what to declare and what to doubt, by stated rules.

The way to take is the one with the largest gain of those that meet the goal by the deadline with the wanted probability
and take at most 1.5 times as long as equal shares. Without a goal, it is the one with the largest gain of those whose
widest interval at the end is at most that of equal shares with two thirds of the people. A gain that is less than two
standard errors above 0, or less than a fiftieth of what people would gain if all had the best arm, is none: then it is
equal shares. The rest of the sentences say what follows from the figures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from equipoise.experiment.provisional import MOST_MISSING
from equipoise.planner.figures import Range
from equipoise.planner.plan_words import (
    Part,
    Sentence,
    about,
    day_of,
    days,
    number,
    out_of,
    percent,
    sentence,
    whole,
    width,
)
from equipoise.planner.question import Question
from equipoise.planner.way_forecast import WayForecast

if TYPE_CHECKING:
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.plan import Plan
    from equipoise.planner.sensitivity import Effect
    from equipoise.planner.stopping_choice import Alternatives, StoppingChoice

LONGEST = 1.5
"""The way to take needs at most this many times the days of equal shares."""
FREE = 1.02
"""A way is free if it needs at most this many times the days of equal shares, or is within the errors."""
CLEAR = 2.0
"""Standard errors that make a difference clear."""
SMALLEST_GAIN = 0.02
"""A gain is told if it is at least this part of what people would gain if all had the best arm."""
USEFUL = 0.1
"""If people are too few to learn anything, it is said how many it takes to know arms to this part of the range."""
FEW = 10
"""Guesses that come from fewer rewards than this are warned of."""
VAGUE = 0.5
"""So are rates whose range is longer than this."""
FEWEST_FOR_HALF = 4
"""What half of some simulated experiments do is said of this many at least."""
MOST_TIMES = 100.0
"""Nobody is advised to take more than this many times as many people."""
LARGE_BIAS = 0.1
"""A bias is told if it is clearly more than this part of a half-width."""
__all__ = ["Sentence", "chosen_way", "effect_in_words", "goal_in_words", "recommendation"]

Parts = dict[str, Part | str]


def chosen_way(forecast: Forecast) -> WayForecast | None:
    """Return the way to take by the rules; None if no way meets the goal by the deadline."""
    question, equal = forecast.question, forecast.equal_shares
    within_reach = [way for way in forecast.ways.values() if _is_within_reach(way, question)]
    if not within_reach:
        return None
    ways = [way for way in within_reach if _is_quick(way, equal, question)] or [min(within_reach, key=_days)]
    best = max(ways, key=lambda way: way.gain_per_100.median)
    if best is not equal and not _gains(best):
        return equal if equal in ways else min(ways, key=_days)
    return best


def _is_within_reach(way: WayForecast, question: Question) -> bool:
    return not question.has_goal or way.chance.value >= question.sureness


def _days(way: WayForecast) -> float:
    return way.days.median


def _is_quick(way: WayForecast, equal: WayForecast, question: Question) -> bool:
    """Return whether a way takes at most 1.5 times the days of equal shares, or is as accurate as that in the end."""
    if question.has_goal:
        limit = equal.days.median
        return not math.isfinite(limit) or way.days.median <= LONGEST * limit
    limit = equal.widest.median
    return not math.isfinite(limit) or way.widest.median <= math.sqrt(LONGEST) * limit


def recommendation(forecast: Forecast) -> tuple[Sentence, ...]:
    """Return the sentences, the most important first."""
    if not forecast.question.has_goal and not _is_telling(forecast):
        return (*_too_few(forecast), *_few_rewards(forecast), *_source(forecast))
    way = chosen_way(forecast)
    if way is None:
        return (
            *_not_within_reach(forecast),
            *_doubts(forecast, forecast.equal_shares),
            *_few_rewards(forecast),
            *_source(forecast),
        )
    return (
        _take(way),
        *_goal(forecast, way),
        *_gain(forecast, way),
        *_control(forecast, way),
        *_cost(forecast, way),
        *_declare(forecast, way),
        *_free(forecast, way),
        *_next(forecast, way),
        *_honesty(forecast, way),
        *_doubts(forecast, way),
        *_few_rewards(forecast),
        *_source(forecast),
    )


def _is_telling(forecast: Forecast) -> bool:
    """Return whether some way tells anything about every arm in the end."""
    return any(forecast.question.is_telling(way.widest.median) for way in forecast.ways.values())


def _too_few(forecast: Forecast) -> list[Sentence]:
    """Say that next to nothing would be learnt, and what would be enough."""
    question, best = forecast.question, min(forecast.ways.values(), key=lambda way: way.widest.median)
    low, high = question.reward_range or (0.0, 1.0)
    parts: Parts = {"people": about(best.stop_people.median), "widest": _near(best.widest.median)}
    parts |= {"low": width(low or 0.0), "high": width(high or 0.0)}
    words = (
        "{people} people are too few: some arm would be known to ±{widest} at best, of rewards from {low} to {high}."
    )
    return [sentence("too few", words, parts), *_enough(forecast, USEFUL * question.span)]


def _enough(forecast: Forecast, half_width: float) -> list[Sentence]:
    """Say how many people would be enough for a half-width, by formula."""
    from equipoise.planner.formulas import people_for

    if forecast.plan is None:
        return []
    people = people_for(forecast.plan, half_width)
    if not math.isfinite(people):
        return []
    words = "With equal shares it takes about {enough} people to know every arm to ±{useful}."
    return [sentence("enough", words, {"enough": about(people), "useful": width(half_width)})]


def _take(way: WayForecast) -> Sentence:
    kept, weight = way.setting.get("information_kept"), way.setting.get("reward_weight")
    if kept == 1:
        return sentence("way", "Keep all of the information.")
    if kept is not None:
        return sentence("way", "Keep {kept} of the information.", {"kept": percent(kept)})
    if weight is not None:
        return sentence("way", "Take weight {weight}.", {"weight": width(weight)})
    return sentence("way", "Take {way}.", {"way": _called(way)})


def _called(way: WayForecast) -> str:
    return way.name if way.name == "equal shares" else f"'{way.name}'"


def _way_words(way: WayForecast) -> tuple[str, Parts]:
    """Return how a way is called in a sentence, as a template with its parts."""
    kept, weight = way.setting.get("information_kept"), way.setting.get("reward_weight")
    if kept == 1:
        return "keeping all of the information", {}
    if kept is not None:
        return "keeping {kept} of the information", {"kept": percent(kept)}
    if weight is not None:
        return "weight {weight}", {"weight": width(weight)}
    return "{way}", {"way": _called(way)}


def _start(template: str) -> str:
    """Begin a sentence with this template."""
    return template if template.startswith("{") else template[0].upper() + template[1:]


def _goal_words(question: Question) -> tuple[str, Parts]:
    """Return what one will know, as a template with its parts."""
    parts: Parts = {}
    words: list[str] = []
    if question.precision is not None:
        parts["precision"] = width(question.precision)
        what = "every arm" if question.precision_of == "arms" else "every difference"
        words.append(f"{what} to ±{{precision}}")
    if question.margin is not None:
        parts["margin"] = width(question.margin)
        words.append("which arm is best" if not question.margin else "an arm that is best to within {margin}")
    return " and ".join(words), parts


def goal_in_words(question: Question) -> str:
    """Return what one will know, such as "every arm to ±0.06"; nothing without a goal.

    Examples
    --------
    >>> goal_in_words(Question(ways=("equal shares",), arms=("a", "b"), precision=0.06, margin=0.0))
    'every arm to ±0.06 and which arm is best'
    """
    template, parts = _goal_words(question)
    return _filled(template, parts)


def _filled(template: str, parts: Parts) -> str:
    return template.format(**{name: part if isinstance(part, str) else part.text for name, part in parts.items()})


def _goal(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    question, equal = forecast.question, forecast.equal_shares
    if not question.has_goal:
        parts: Parts = {"widest": _near(way.widest.median), "equal": _near(equal.widest.median)}
        if not math.isfinite(way.widest.median):
            return [sentence("goal", "There will be too few rewards for an interval of every arm.")]
        words = "In the end you will know every arm to ±{widest}"
        words += "." if way is equal or not math.isfinite(equal.widest.median) else "; with equal shares to ±{equal}."
        return [sentence("goal", words, parts)]
    known, parts = _goal_words(question)
    words = f"You will know {known}"
    if not math.isfinite(way.days.median):
        return [sentence("goal", f"Fewer than half of the simulated experiments get to know {known}.", parts)]
    parts |= {"people": about(way.people.median)}
    words += " after about {people} people"
    if question.has_calendar:
        span, more = _span("days", way.days)
        words += f": {span}"
        parts |= more
        alone = way.luck_alone
        if alone is not None and _is_wider(way.days, alone.days):
            words += ", or {luck_low} to {luck_high} if your guesses are right"
            parts |= {"luck_low": days(alone.days.low), "luck_high": days(alone.days.high)}
        by = None if not math.isfinite(way.days_for_sure) else question.date_of(way.days_for_sure)
        if by is not None:
            sure, of = out_of(question.sureness)
            words += "; {sure} of {of} by {by}"
            parts |= {"sure": sure, "of": of, "by": day_of(by, question.start)}
    found = [sentence("goal", words + ".", parts)]
    if way is not equal:
        if not math.isfinite(equal.days.median):
            found.append(sentence("equal", "Most of the experiments with equal shares would not get there."))
        elif question.has_calendar:
            found.append(sentence("equal", "Equal shares would take {equal} days.", {"equal": days(equal.days.median)}))
        else:
            words = "Equal shares would take about {equal} people."
            found.append(sentence("equal", words, {"equal": about(equal.people.median)}))
    lag = way.last_reward_day.median - way.last_person_day.median
    last = question.date_of(way.last_reward_day.median)
    if question.has_calendar and lag >= 1.0 and last is not None:
        words = (
            "The last rewards come by {last}."
            if question.holds
            else "End enrolment then; the last rewards come by {last}."
        )
        found.append(sentence("last", words, {"last": day_of(last, question.start)}))
    return found


def _span(name: str, found: Range) -> tuple[str, Parts]:
    """Return a template for a range, which may have no end."""
    parts: Parts = {name: days(found.median), f"{name}_low": days(found.low)}
    if found.low == found.high:
        return f"{{{name}}} days", {name: days(found.median)}
    if math.isfinite(found.high):
        return f"{{{name}}} days ({{{name}_low}} to {{{name}_high}})", parts | {f"{name}_high": days(found.high)}
    return f"{{{name}}} days ({{{name}_low}} or more)", parts


def _is_wider(whole: Range, luck: Range) -> bool:
    """Return whether guesses add noticeably to luck."""
    if not (math.isfinite(luck.low) and math.isfinite(luck.high)):
        return False
    return not math.isfinite(whole.high) or whole.high - whole.low > 1.3 * (luck.high - luck.low)


def _gain(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    question, equal = forecast.question, forecast.equal_shares
    if way is equal:
        gains = [other for other in forecast.ways.values() if other is not equal]
        if gains and not any(map(_gains, gains)):
            return [sentence("gain", "If your guesses are right, no other way is clearly better for people.")]
        return []
    per, more = way.gain_per_100, "more" if question.direction == "maximise" else "less"
    if question.is_yes_no:
        more = "more" if question.direction == "maximise" else "fewer"
        parts: Parts = {"gain": _gain_part(per.median), "hundred": Part("100", 100)}
        parts |= {"all": about(way.gain.median), "low": about(way.gain.low), "high": about(way.gain.high)}
        outcome = f" ('{question.outcome}')" if question.outcome else ""
        span = "" if parts["low"] == parts["high"] else " ({low} to {high})"
        template = (
            f"{{gain}} {more} of every {{hundred}} people{outcome} than with equal shares: some {{all}} in all{span}."
        )
    else:
        parts = {"gain": about(per.median / 100), "low": about(per.low / 100), "high": about(per.high / 100)}
        parts |= {"all": about(way.gain.median)}
        span = "" if parts["low"] == parts["high"] else " ({low} to {high})"
        template = f"Each person gets {{gain}}{span} {more} on average than with equal shares: some {{all}} in all."
    best: Parts = {"best": whole(100 * way.best_share.median), "hundred": Part("100", 100)}
    best["equal"] = whole(100 * equal.best_share.median)
    found = [
        sentence("gain", template, parts),
        sentence("best", "{best} of {hundred} get the best arm instead of {equal}.", best),
    ]
    if way.chance_worse is not None and way.chance_worse.value >= 0.05:
        happened, of = out_of(way.chance_worse.value)
        words = "In {happened} of {of} simulated experiments people do worse than with equal shares."
        found.append(sentence("worse", words, {"happened": happened, "of": of}))
    return found


def _gain_part(value: float) -> Part:
    return number(value, 1) if abs(value) >= 0.95 else about(value)


def _gains_words(way: WayForecast, question: Question) -> tuple[str, Parts]:
    """Return what a way gains, as a template with its parts."""
    gain = way.gain_per_100.median
    if question.is_yes_no:
        return "gains {gain} per {hundred} people", {"gain": _gain_part(gain), "hundred": Part("100", 100)}
    return "gains {gain} a person", {"gain": about(gain / 100)}


def _cost(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    ours, theirs = way.cost, forecast.equal_shares.cost
    if ours is None or theirs is None or not math.isfinite(ours.median):
        return []
    parts: Parts = {"cost": about(ours.median), "high": about(ours.high), "equal": about(theirs.median)}
    words = "It costs about {cost}"
    words += "" if ours.low == ours.high else ", and at most {high} in {sure} of {of} experiments"
    words += "." if way is forecast.equal_shares else "; equal shares {equal}."
    return [sentence("cost", words, parts | {"sure": Part("9", 9), "of": Part("10", 10)})]


def _control(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    question, equal = forecast.question, forecast.equal_shares
    ours, theirs = way.worse_than_control, equal.worse_than_control
    if ours is None or theirs is None or not ours.high > 0 or question.control is None:
        return []
    compared = theirs.median if ours.median else theirs.high
    parts: Parts = {"ours": about(ours.median), "high": about(ours.high), "equal": about(compared)}
    words = "About {ours} people get something worse than the control"
    words += "" if ours.low == ours.high else ", and at most {high} in {sure} of {of} experiments"
    if ours.median == 0:
        words = "At most {high} people get something worse than the control, in {sure} of {of} experiments"
    words += "." if way is equal else "; with equal shares {equal}."
    return [sentence("control", words, parts | {"sure": Part("9", 9), "of": Part("10", 10)})]


def _choice(forecast: Forecast, way: WayForecast) -> StoppingChoice | None:
    return next((choice for choice in forecast.stopping if choice.way == way.name), None)


def _declare(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    question, choice = forecast.question, _choice(forecast, way)
    if choice is None:
        return []
    parts: Parts = {}
    words = []
    precision = question.precision if question.has_goal else choice.precision
    if precision is not None:
        parts["precision"] = width(precision)
        words.append("precision {precision}")
    if question.margin is not None:
        parts["margin"] = width(question.margin)
        words.append("a decision to within {margin}" if question.margin else "a decision")
    budget = choice.budget if choice.budget is not None else question.most_people
    if budget is not None:
        parts["budget"] = whole(budget if question.most_people is None else min(budget, question.most_people))
        words.append("at most {budget} people")
    limit = None if question.deadline_days is None else question.date_of(question.deadline_days - 1e-6)
    if limit is not None:
        parts["deadline"] = day_of(limit, question.start)
        words.append("until {deadline}")
    if not words:
        return []
    ended, of = out_of(way.chance.value if question.has_goal else choice.chance.value)
    parts |= {"ended": ended, "of": of}
    template = "Declare: " + ", ".join(words)
    if precision is not None or question.margin is not None:
        what = "the goal" if question.has_goal else "that precision"
        in_time = "" if limit is None else " in time"
        template += f": {{ended}} of {{of}} simulated experiments met {what}{in_time}"
    found = [sentence("declare", template + ".", parts)]
    if choice.rest_width is not None and choice.rest >= 0.02 and question.precision is not None:
        missed, of = out_of(choice.rest)
        rest = _near(choice.rest_width)
        rest = width(choice.rest_width) if rest.value == question.precision else rest
        missing = "{missed} of {of} end without it, half of them with ±{rest} or better."
        if choice.rest * forecast.replications < FEWEST_FOR_HALF:
            missing = "{missed} of {of} end without it."
        if choice.rest_width <= question.precision:
            missing = "{missed} of {of} end without it, most of them as too many rewards are missing."
        found.append(sentence("rest", missing, {"missed": missed, "of": of, "rest": rest}))
    if choice.precision is not None and question.precision is not None and choice.precision < 0.99 * question.precision:
        reached, of = out_of(choice.chance.value)
        finer = "You could ask for as little as ±{finer}: {reached} of {of} reach it"
        finer += " in time." if question.deadline_seconds is not None else "."
        found.append(sentence("finer", finer, {"finer": width(choice.precision), "reached": reached, "of": of}))
    return found


def _free(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    """Say up to where the dial costs nothing."""
    equal, question = forecast.equal_shares, forecast.question
    if not question.has_goal or not math.isfinite(equal.days.median):
        return []
    free = [one for one in forecast.ways.values() if one is not equal and _is_free(one, equal) and _gains(one)]
    if not free:
        return []
    most = max(free, key=lambda one: one.gain_per_100.median)
    words, parts = _way_words(most)
    if most is way:
        time = "no day longer" if question.has_calendar else "no more people"
        return [sentence("free", f"It is free: {time} than equal shares.")]
    gains, more = _gains_words(most, question)
    parts |= more
    parts |= {"days": days(most.days.median), "people": about(most.people.median)}
    took = "{days} days" if question.has_calendar else "{people} people"
    return [sentence("free", f"{_start(words)} is free ({took}), and {gains}.", parts)]


def _gains(way: WayForecast) -> bool:
    gain = way.gain_per_100
    return gain.median > max(CLEAR * gain.median_error, SMALLEST_GAIN * way.possible_gain_per_100.median)


def _is_free(way: WayForecast, equal: WayForecast) -> bool:
    error = math.hypot(way.days.median_error, equal.days.median_error)
    return way.days.median <= max(FREE * equal.days.median, equal.days.median + min(error, 0.05 * equal.days.median))


def _next(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    """Say what the next larger gain costs."""
    question = forecast.question
    larger = [
        one for one in forecast.ways.values() if one.gain_per_100.median > way.gain_per_100.median and one is not way
    ]
    larger = [one for one in larger if _gains(one)]
    if not larger:
        return []
    following = min(larger, key=lambda one: one.gain_per_100.median)
    words, parts = _way_words(following)
    gains, more = _gains_words(following, question)
    parts |= more
    if not question.has_goal:
        if not math.isfinite(following.widest.median):
            return []
        parts["widest"] = _near(following.widest.median)
        return [sentence("next", f"{_start(words)} {gains}, and ends with ±{{widest}}.", parts)]
    if not math.isfinite(following.days.median):
        return [sentence("next", f"{_start(words)} {gains}, but most experiments do not reach the goal.", parts)]
    if question.has_calendar:
        parts["days"] = days(following.days.median)
        took = "takes {days} days"
    else:
        parts["people"] = about(following.people.median)
        took = "takes about {people} people"
    if following.chance.value < question.sureness:
        met, of = out_of(following.chance.value)
        parts |= {"met": met, "of": of}
        took += " and meets the goal in {met} of {of}"
    return [sentence("next", f"{_start(words)} {gains}, and {took}.", parts)]


def _honesty(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    """Say if intervals do not hold as often as they should, or if means are off."""
    question, found = forecast.question, []
    coverage, wanted = way.coverage, question.confidence
    if coverage.value + CLEAR * coverage.error < wanted:
        parts: Parts = {
            "held": whole(100 * coverage.value),
            "hundred": Part("100", 100),
            "wanted": number(100 * wanted, 1),
        }
        words = "All intervals hold together at the stop in {held} of {hundred} simulated experiments, not in {wanted}"
        if question.reward_range is None or None in question.reward_range:
            words += ": declare a range of rewards, or ask for more confidence"
        found.append(sentence("honesty", words + ".", parts))
    return found + _bias(forecast, way)


def _bias(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    """Say which means are clearly off at the stop, and what moves them."""
    biased = {
        arm: bias.value
        for arm, bias in way.bias.items()
        if math.isfinite(half := way.half_widths[arm].median)
        and abs(bias.value) - CLEAR * bias.error > LARGE_BIAS * half
    }
    if not biased:
        return []
    worst = max(biased, key=lambda arm: abs(biased[arm]))
    parts: Parts = {"bias": about(abs(biased[worst])), "arm": f"'{worst}'", "arms": whole(len(biased))}
    side = "below" if biased[worst] < 0 else "above"
    words = f"The mean of {{arm}} ends {{bias}} {side} the truth on average"
    if len(biased) > 1:
        words = (
            f"The means of {{arms}} arms are off on average; that of {{arm}} most: it ends {{bias}} {side} the truth"
        )
    cause = "" if forecast.plan is None else _cause_of_bias(forecast.plan)
    return [sentence("bias", words + (f", because {cause}" if cause else "") + ".", parts)]


def _cause_of_bias(plan: Plan) -> str:
    rewards, drift = plan.rewards, plan.drift
    if drift.per_week or drift.step:
        return "rewards drift"
    if rewards.rule.default is not None:
        return "missing rewards count as the default value"
    if rewards.missing_ratio.value != 1 or not rewards.missing_ratio.is_sure:
        return "rewards are missing more often after some outcomes than after others"
    return ""


def _few_rewards(forecast: Forecast) -> list[Sentence]:
    """Warn of guesses that come from hardly any rewards, or say hardly anything."""
    for arm in () if forecast.plan is None else forecast.plan.arms:
        parts: Parts = {"arm": f"'{arm.name}'"}
        if arm.rewards is not None and len(arm.rewards) < FEW:
            words = "What is guessed of {arm} comes from {rewards} rewards: too few to trust any figure here."
            return [sentence("few", words, parts | {"rewards": whole(len(arm.rewards))})]
        if arm.rate is not None and arm.rate.ends[1] - arm.rate.ends[0] > VAGUE:
            low, high = map(percent, arm.rate.ends)
            words = "Next to nothing is known of {arm}, a rate of {low} to {high}: trust no figure here."
            return [sentence("few", words, parts | {"low": low, "high": high})]
    return []


def _doubts(forecast: Forecast, way: WayForecast) -> list[Sentence]:
    """Say which guess matters most for days, or else for the gain."""
    own = [effect for effect in forecast.effects if effect.way == way.name]
    for figure in ("days", "people", "gain_per_100"):
        effects = [effect for effect in own if effect.figure == figure]
        if effects:
            return [_doubt(effects[0], forecast.question)]
    return []


def _doubt(effect: Effect, question: Question) -> Sentence:
    what, parts = _guess_words(effect)
    if effect.figure == "days":
        parts["change"] = days(abs(effect.change))
        result = "it would take {change} days " + ("more" if effect.change > 0 else "less")
    elif effect.figure == "people":
        parts["change"] = about(abs(effect.change))
        result = "it would take {change} people " + ("more" if effect.change > 0 else "fewer")
    else:
        side = "larger" if effect.change > 0 else "smaller"
        if question.is_yes_no:
            parts |= {"change": _gain_part(abs(effect.change)), "hundred": Part("100", 100)}
            result = f"the gain would be {{change}} per {{hundred}} people {side}"
        else:
            parts["change"] = about(abs(effect.change) / 100)
            result = f"the gain would be {{change}} a person {side}"
    return sentence("doubt", f"What you are least sure of: if {what}, {result}.", parts)


def effect_in_words(effect: Effect) -> str:
    """Return a guess that is off, in words.

    Examples
    --------
    >>> from equipoise.planner.sensitivity import Effect
    >>> effect = Effect(guess="arms.prize.rate", way="", figure="days", step=0.05, change=8, error=1, explained=0.5)
    >>> effect_in_words(effect)
    "the rate of 'prize' were 5 points higher"
    """
    return _filled(*_guess_words(effect))


def _guess_words(effect: Effect) -> tuple[str, Parts]:
    """Return a guess that is off as a template with its parts."""
    place, step = effect.guess.split("."), effect.step
    last = place[-1]
    arm = f"'{'.'.join(place[1:-1])}'" if place[0] == "arms" and len(place) > 2 else ""
    parts: Parts = {"arm": arm}
    if last == "rate":
        parts["step"] = number(100 * step, 2)
        return "the rate of {arm} were {step} points higher", parts
    if last == "mean":
        parts["step"] = about(step)
        return "the mean of {arm} were {step} higher", parts
    if last == "std":
        parts["step"] = about(step)
        return "the spread of {arm} were {step} larger", parts
    if last == "per_day":
        parts["step"] = about(step)
        return "{step} more people came a day", parts
    if "missing" in last:
        parts["step"] = number(100 * step, 2)
        of = " of {arm}" if arm else ""
        return f"{{step}} points more of the rewards{of} were missing", parts
    if "delay" in effect.guess or last in ("median", "nine_of_ten"):
        parts["step"] = about(step / 3600.0)
        of = " of {arm}" if arm else ""
        return f"rewards{of} took {{step}} hours longer", parts
    return f"'{effect.guess}' were {{step}} larger", parts | {"step": about(step)}


def _near(half_width: float) -> Part:
    """Return a half-width that was read off simulations, with two digits."""
    return width(float(f"{half_width:.2g}"))


def _above(half_width: float, goal: float | None) -> Part:
    """Return a half-width with two digits, or with as many as show that it is above the goal."""
    if goal is None or half_width <= goal:
        return _near(half_width)
    found = next((one for digits in (2, 3, 4, 5) if (one := float(f"{half_width:.{digits}g}")) > goal), half_width)
    return Part(f"{found:g}", found)


def _rounded_up(factor: float) -> Part:
    """Return a factor that suffices, with two digits."""
    unit = 10.0 ** (math.floor(math.log10(factor)) - 1)
    return about(math.ceil(factor / unit * (1 - 1e-9)) * unit)


def _not_within_reach(forecast: Forecast) -> list[Sentence]:
    question, found = forecast.question, forecast.alternatives
    known, parts = _goal_words(question)
    limit = None if question.deadline_days is None else question.date_of(question.deadline_days - 1e-6)
    by = ""
    if limit is not None:
        by, parts["deadline"] = " by {deadline}", day_of(limit, question.start)
    elif question.has_calendar and question.deadline_days is not None:
        by, parts["deadline"] = " in {deadline} days", days(question.deadline_days)
    closest = max(forecast.ways.values(), key=lambda way: way.chance.value)
    met, of = out_of(closest.chance.value)
    parts |= {"met": met, "of": of}
    subject = "±{precision}" if question.precision is not None and question.margin is None else f"To know {known}"
    words = f"{subject} is not within reach{by}"
    words += ": {met} of {of} simulated experiments get there at best." if closest.chance.value > 0 else "."
    reach = sentence("reach", words, parts)
    if found is None:
        return [reach]
    is_narrow = question.precision is None or (found.reached is not None and found.reached <= question.precision)
    is_cause = is_narrow and max(found.missing, found.open) >= 0.5
    why = _why_provisional(forecast, found, leads=is_cause)
    said = [*why, *_closest(forecast, found, is_narrow=is_cause)] if is_cause else [reach]
    said += [] if is_cause else [*_closest(forecast, found, is_narrow=False), *why]
    options: list[str] = []
    parts = {}
    if found.missing >= 0.1:
        if question.late >= 0.005:
            options.append("wait longer for rewards ({late} of {hundred} come after their window)")
            parts |= {"late": whole(100 * question.late), "hundred": Part("100", 100)}
        options += [
            "see to it that fewer rewards are missing",
            "count a default value for those that are (rule 'default')",
        ]
    if found.open >= 0.1:
        options += ["give rewards a window", "count a default value for those that never come (rule 'default')"]
    if found.later_days is not None and question.deadline_days is not None:
        when = question.date_of(found.later_days)
        sure, of = out_of(question.sureness)
        late = days(found.later_days) if when is None else day_of(when, question.start)
        parts |= {"later": late, "late_sure": sure, "late_of": of}
        until = "for {later} days" if when is None else "until {later}"
        options.append(f"wait {until}, by when {{late_sure}} of {{late_of}} get there")
    if found.people_factor is not None and found.people_factor <= MOST_TIMES and _scales(forecast, found):
        options.append("take {factor} times as many people")
        parts["factor"] = _rounded_up(found.people_factor)
    if found.arms is not None and found.arms_half_width is not None and question.is_telling(found.arms_half_width):
        dropped = len(question.arms) - found.arms
        options.append("drop {dropped} of the {arms} arms (about ±{arms_width})")
        parts |= {"dropped": whole(dropped), "arms": whole(len(question.arms))}
        parts["arms_width"] = _near(found.arms_half_width)
    if found.precision is not None and found.chance is not None and question.is_telling(found.precision):
        reached, of = out_of(found.chance)
        parts |= {"precision": width(found.precision), "reached": reached, "of": of}
        option = "ask for ±{precision}"
        option += "" if forecast.by_formula else " ({reached} of {of}"
        date = None if found.days is None or not math.isfinite(found.days) else question.date_of(found.days)
        if date is not None:
            sure, sure_of = out_of(question.sureness)
            option = "ask for ±{precision} ({sure} of {sure_of} by {date}"
            parts |= {"date": day_of(date, question.start), "sure": sure, "sure_of": sure_of}
        options.append(option if forecast.by_formula else option + ")")
    if question.margin is not None and (question.precision is None or not options) and found.missing + found.open < 0.1:
        options += ["take more people", "be content with an arm that is a little worse than the best"]
    if options:
        listed = ", ".join(options[:-1]) + (", or " if len(options) > 1 else "") + options[-1]
        said.append(sentence("options", f"You could {listed}.", parts))
    elif question.precision is not None and question.precision_of == "arms":
        said += _enough(forecast, question.precision)
    return said


def _scales(forecast: Forecast, found: Alternatives) -> bool:
    """Return whether the factor of people is known: by formula, or as the square of widths far from their limit."""
    return forecast.by_formula or found.reached is None or forecast.question.is_telling(found.reached)


def _closest(forecast: Forecast, found: Alternatives, *, is_narrow: bool) -> list[Sentence]:
    """Say how well arms are known at best."""
    question, way = forecast.question, forecast.ways[found.way]
    if found.reached is None:
        return []
    called, parts = _way_words(way)
    people = ""
    if math.isfinite(way.stop_people.median):
        people, parts["people"] = "With about {people} people the", about(way.stop_people.median)
    sure, of = out_of(question.sureness)
    often = "" if forecast.by_formula else ", in {sure} of {of} experiments"
    start = f"{people or 'The'} intervals are narrow enough:" if is_narrow else f"{people or 'The'} best is"
    words = f"{start} ±{{reached}}{often} ({called})"
    if not question.is_telling(found.reached):
        words += ", which tells next to nothing"
    reached = _above(found.reached, question.precision)
    return [sentence("closest", words + ".", parts | {"reached": reached, "sure": sure, "of": of})]


def _why_provisional(forecast: Forecast, found: Alternatives, *, leads: bool) -> list[Sentence]:
    """Say what keeps numbers provisional; first of all, where nothing else is in the way."""
    said = []
    for share, why in (
        (found.missing, "too many rewards are missing"),
        (found.open, "too many rewards never come and are waited for"),
    ):
        if share < 0.1:
            continue
        happened, of = out_of(share)
        parts: Parts = {"happened": happened, "of": of}
        words = f"The goal would not count as met: {why}"
        if not forecast.by_formula and not leads:
            what = "the intervals are narrow enough" if forecast.question.margin is None else "one would know enough"
            words = f"In {{happened}} of {{of}} {what} by then, but {why}"
        if share == found.missing and found.missing_share is not None:
            words += ", {gone} of {hundred} where at most {most} may be"
            gone = whole(max(100 * found.missing_share, 100 * MOST_MISSING + 1))
            parts |= {"gone": gone, "hundred": Part("100", 100), "most": whole(100 * MOST_MISSING)}
        said.append(sentence("provisional", words + ".", parts))
    return said


def _source(forecast: Forecast) -> list[Sentence]:
    if forecast.by_formula:
        return [sentence("source", "By formula, before the cost of learning.")]
    n = forecast.replications + forecast.luck_replications
    return [sentence("source", "From {n} simulated experiments of each way.", {"n": whole(n)})]
