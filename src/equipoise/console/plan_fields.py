"""Write a plan as the fields of a form, from which the same plan is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from equipoise.console.plan_draft import ARM_FIELDS, MOST_ARMS, ArmRow, PlanDraft, of_100
from equipoise.errors import InvalidInput
from equipoise.experiment.missing_rewards import DefaultReward, DropUnit
from equipoise.planner import Delay, Guess, Plan, PlannedArm
from equipoise.planner.measured_plans import AS_NOW
from equipoise.quantities import duration_text


def fields_of(plan: Plan) -> dict[str, str]:
    """Return the fields of a plan; what the form has no field for is left out.

    Examples
    --------
    >>> plan = Plan(arms={"plain": "30%", "prize": "50% (40% to 60%)"}, people={"per_day": 96, "days": 90}, goals=0.06)
    >>> fields = fields_of(plan)
    >>> fields["guess2"], fields["at_least2"], fields["per_day"], holds_all(plan, fields)
    ('50', '40', '96', True)
    """
    found = dict(_texts(plan))
    for number, arm in enumerate(plan.arms[:MOST_ARMS], 1):
        found |= {f"{name}{number}": text for name, text in zip(ARM_FIELDS, _row(plan, arm), strict=True)}
    return {name: text for name, text in found.items() if text}


def holds_all(plan: Plan, fields: Mapping[str, str]) -> bool:
    """Return whether the fields say everything that the plan says, whatever its ways are called."""
    try:
        return _unnamed(PlanDraft(fields).plan) == _unnamed(plan)
    except InvalidInput:
        return False


def _unnamed(plan: Plan) -> Plan:
    return replace(plan, ways=tuple(replace(way, label="") for way in plan.ways))


def _row(plan: Plan, arm: PlannedArm) -> ArmRow:
    if plan.is_yes_no:
        return ArmRow(arm.name, *_ends(arm.rate, _hundredfold))
    return ArmRow(arm.name, *_ends(arm.mean, repr_of), repr_of(_spread(arm)))


def _spread(arm: PlannedArm) -> float:
    return float(np.std(arm.rewards, ddof=1)) if arm.std is None else float(arm.std.value)


def guess_line(plan: Plan, arm: PlannedArm) -> str:
    """Return what is guessed of an arm in a line, as a new experiment has it.

    Examples
    --------
    >>> plan = Plan(arms={"plain": "30%", "prize": "50% (40% to 60%)"}, people=100)
    >>> [guess_line(plan, arm) for arm in plan.arms]
    ['30%', '50% (40% to 60%)']
    """
    if plan.is_yes_no:
        return of_100(_in_one(arm.rate, _hundredfold))
    return f"{repr_of(arm.mean.value)} \N{PLUS-MINUS SIGN} {repr_of(_spread(arm))}"


def _texts(plan: Plan) -> Iterator[tuple[str, str]]:
    people, rewards, goals = plan.people, plan.rewards, plan.goals
    yield "title", plan.title or ""
    yield "outcome", plan.outcome or ""
    yield "control", plan.control or ""
    low, high = plan.reward_range or (None, None)
    if not plan.is_yes_no:
        yield "rewards", "open" if low is None or high is None else "range"
        yield "low", "" if low is None else repr_of(low)
        yield "high", "" if high is None else repr_of(high)
    yield "good", "small" if rewards.direction == "minimise" else ""
    if people.per_day is not None:
        yield from zip(("per_day", "per_day_low", "per_day_high"), _ends(people.per_day, repr_of), strict=True)
    yield "people", "" if people.most is None else str(people.most)
    yield "start", "" if people.start is None else people.start.isoformat()
    yield "until", "" if people.until is None else people.until.isoformat()
    yield "days", "" if people.days is None else str(people.days)
    yield from _delays(rewards.delay)
    yield "missing", "" if rewards.missing == Guess(0.0) else _in_one(rewards.missing, _hundredfold)
    yield from rule_fields(rewards.rule)
    lots = rewards.batches
    yield "batches", "" if lots is None else f"every {lots} people" if isinstance(lots, int) else str(lots)
    yield from _way_texts(plan)
    yield "half_width", "" if goals.precision is None else repr_of(goals.precision)
    yield "decided", "" if goals.margin is None else "yes"
    yield "margin", repr_of(goals.margin) if goals.margin else ""
    yield "by", "" if goals.by == 0.8 else repr_of(goals.by)


def _delays(delay: Delay | None) -> Iterator[tuple[str, str]]:
    if delay is not None:
        yield "delay", _in_one(delay.median, duration_text)
        yield "nine_of_ten", "" if delay.nine_of_ten is None else _in_one(delay.nine_of_ten, duration_text)


def rule_fields(rule: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of a rule for missing rewards."""
    yield "window", "" if rule.window_seconds is None else duration_text(rule.window_seconds)
    yield "silence", "default" if isinstance(rule, DefaultReward) else "drop" if isinstance(rule, DropUnit) else ""
    yield "default_value", repr_of(rule.value) if isinstance(rule, DefaultReward) else ""
    yield "hold", "yes" if rule.hold else ""


def _way_texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield the fields of the ways: the shares of information that are compared, and what they have in common."""
    others = [way for way in plan.ways if way.label != AS_NOW][1:]
    kept = [way for way in others if getattr(way.policy, "information_kept", None) is not None]
    yield "ways", ", ".join(f"{way.policy.information_kept:g}" for way in kept)
    if kept:
        yield "about", kept[0].policy.information_about
    if others:
        first = others[0]
        yield "control_share", repr_of(first.control_share) if first.control_share else ""
        yield "floor", repr_of(first.floor) if isinstance(first.floor, float) and first.floor else ""
    for way in plan.ways:
        if way.label == AS_NOW:
            yield "now", json.dumps(way.table())


def _ends(guess: Guess, text: Callable[[float], str]) -> tuple[str, str, str]:
    """Return a guess and its range in three fields."""
    if guess.low is None or guess.high is None:
        return text(guess.value), "", ""
    return text(guess.value), text(guess.low), text(guess.high)


def _in_one(guess: Guess, text: Callable[[float], str]) -> str:
    """Return a guess with its range in one field."""
    middle, low, high = _ends(guess, text)
    return f"{middle} ({low} to {high})" if low else middle


def repr_of(value: float) -> str:
    """Return a number as people write it, without losing anything of it.

    Examples
    --------
    >>> repr_of(96.0), repr_of(0.06), repr_of(1e-7)
    ('96', '0.06', '0.0000001')
    """
    return _plain(Decimal(repr(float(value))))


def _hundredfold(value: float) -> str:
    return _plain(Decimal(repr(float(value))).scaleb(2))


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
