"""Turn what a report found into checks with a verdict, and into sentences, the most important first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise.analysis.delays import check_arrivals
from equipoise.analysis.results import Check
from equipoise.analysis.sentences import between, listed
from equipoise.unit_lifecycle import WAITING

if TYPE_CHECKING:
    from equipoise.analysis.observations import Observations
    from equipoise.analysis.results import DrawCheck, Report

SPEAKS_AT = 0.01
"""Tests that hold at all times speak at this p-value: in at most 1 of 100 experiments without reason."""
_NOTABLE_SHARE = 0.01
"""Share of missing rewards that is worth a sentence."""
_NOTABLE_CORRECTION = 0.1
"""By what part of its half-width corrections must move a mean to be worth a sentence."""
_MOST_NAMED = 3


def report_checks(report: Report, observations: Observations) -> tuple[Check, ...]:
    """Return the checks of what the numbers of a report assume."""
    found = [_drift(report), *_draws(report), *_responses(report), *_news(report, observations)]
    found += [*_arrivals(observations), *_missing(report), *_corrections(report)]
    return tuple(found)


def report_sentences(report: Report) -> tuple[str, ...]:
    """Return what a report allows to say."""
    lines = []
    if report.trend.speaks and report.same_people is not None:
        lines += _same_people(report)
    plain = report.comparison.sentences
    if report.trend.speaks and len(report.comparison.arms) > 1:
        plain = tuple(f"By plain means, of different people: {sentence}" for sentence in plain)
    lines += plain
    if report.at_end.differences:
        lines += _at_end(report)
    lines += [check.sentence for check in report.checks if check.speaks and check.sentence not in lines]
    return tuple(lines)


def _drift(report: Report) -> Check:
    found = report.trend
    if not found.speaks:
        return Check("drift", False, "No sign that rewards change over time.", found.p_value)
    rose = "rose" if found.change > 0 else "fell"
    sentence = (
        f"Rewards {rose} by about {abs(found.change):.3g} from the first person to the last "
        f"({abs(found.change_in_stds):.2g} standard deviations): the arms' means are about different people, so read "
        "the differences over the same people."
    )
    return Check("drift", True, sentence, found.p_value)


def _same_people(report: Report) -> list[str]:
    assert report.same_people is not None  # noqa: S101
    up = report.direction == "maximise"
    lines = []
    for pair in report.same_people.differences:
        if not pair.low > 0 and not pair.high < 0:
            continue
        arm, other = (pair.arm, pair.other) if (pair.low > 0) == up else (pair.other, pair.arm)
        ends = sorted((abs(pair.low), abs(pair.high)))
        lines.append(f"Over the same people, {arm!r} is better than {other!r}, by {between(*ends)}.")
    if not lines:
        lines = ["Over the same people, no two arms differ for certain."]
    if len(lines) > _MOST_NAMED:
        lines = [*lines[:_MOST_NAMED], f"{len(lines) - _MOST_NAMED} more pairs of arms differ over the same people."]
    return lines


def _at_end(report: Report) -> list[str]:
    up, lines = report.direction == "maximise", []
    for pair in report.at_end.differences:
        if pair.low > 0 or pair.high < 0:
            arm, other = (pair.arm, pair.other) if (pair.low > 0) == up else (pair.other, pair.arm)
            ends = sorted((abs(pair.low), abs(pair.high)))
            lines.append(f"{arm!r} is better than {other!r}, by {between(*ends)}")
    if not lines:
        return ["At the number of people declared beforehand no two arms differ for certain."]
    more = f"; and {len(lines) - _MOST_NAMED} more pairs differ" if len(lines) > _MOST_NAMED else ""
    return [f"At the number of people declared beforehand: {'; '.join(lines[:_MOST_NAMED])}{more}."]


def _draws(report: Report) -> list[Check]:
    found = []
    if report.draws is not None:
        draws = report.draws
        if draws.p_value <= SPEAKS_AT:
            sentence = (
                f"The arms were not assigned with the probabilities on record: {_seen(draws)}. Find out how units were "
                "assigned, or which are left out."
            )
        else:
            sentence = "The arms were assigned with the probabilities on record, as far as can be seen."
        found.append(Check("draws", draws.p_value <= SPEAKS_AT, sentence, draws.p_value))
    for balance in report.balance:
        speaks = balance.p_value <= SPEAKS_AT / len(report.balance)
        what = f"{balance.attribute!r}" + (f" ({balance.group})" if balance.group is not None else "")
        sentence = f"Arms got people who differ in {what}: {_seen(balance)}."
        if not speaks:
            sentence = f"The arms got people alike in {balance.attribute!r}, as far as can be seen."
        found.append(Check("balance", speaks, sentence, balance.p_value))
    return found


def _seen(check: DrawCheck) -> str:
    if check.attribute is not None and check.group is None:
        return f"their mean is {check.observed:.3g} with {check.arm!r}, and should be {check.expected:.3g}"
    return f"{check.arm!r} was chosen {check.observed:,.0f} times, expected were {check.expected:,.0f}"


def _responses(report: Report) -> list[Check]:
    found = report.responses
    if found is None:
        return []
    rates = dict(zip(found.arms, found.rate, strict=True))
    speaks = found.p_value <= SPEAKS_AT
    sentence = "The arms do not differ in how many rewards come, as far as can be seen."
    if speaks:
        sentence = (
            f"Arms differ in how many rewards come: {rates[found.most]:.0%} of the units of {found.most!r} have a "
            f"reward in time, {rates[found.least]:.0%} of those of {found.least!r}. Means of those who answered need "
            "not be those of all."
        )
    return [Check("silence", speaks, sentence, found.p_value)]


def _news(report: Report, observations: Observations) -> list[Check]:
    found = report.news
    if found is None:
        return []
    speaks = found.speaks and _is_open(observations)
    sentence = "Good rewards come as fast as others, as far as can be seen."
    if found.speaks:
        faster = "faster" if found.good_first else "more slowly"
        follows = "while rewards are open the means are off; hold rewards back until a window has passed"
        if not speaks:
            follows = "none is open, or they are held back, so this does no harm now"
        sentence = f"Good rewards come {faster} than others: {follows}."
    return [Check("quick news", speaks, sentence)]


def _arrivals(observations: Observations) -> list[Check]:
    found = check_arrivals(observations)
    if found is None:
        return []
    sentence = "The rewards of all arms come equally fast, as far as can be seen."
    if found.speaks:
        sentence = (
            f"The rewards of {found.fastest!r} come faster than those of {found.slowest!r}; while many are open, the "
            "policy knows more of the first."
        )
    return [Check("delays", found.speaks and _is_open(observations), sentence)]


def _is_open(observations: Observations) -> bool:
    """Return whether rewards count as they come, and enough are still to come for their delays to matter."""
    if observations.state is None or observations.hold:
        return False
    return float(np.mean(observations.state == WAITING)) > _NOTABLE_SHARE


def _missing(report: Report) -> list[Check]:
    n_missing = sum(one.missing for one in report.worst_cases)
    if not n_missing:
        return []
    share = n_missing / max(report.n_decisions, 1)
    worst = max(report.worst_cases, key=lambda one: one.missing / max(one.missing + one.counted, 1))
    have = "has" if n_missing == 1 else "have"
    sentence = f"{n_missing:,} of {report.n_decisions:,} units {have} no reward ({share:.1%})."
    if math.isfinite(worst.low) and math.isfinite(worst.high):
        sentence += (
            f" Whatever these would have been, the mean of {worst.arm!r}, where most are missing, is "
            f"{between(worst.low, worst.high)}."
        )
    else:
        sentence += " Nothing bounds what these would have been: declare reward_range."
    return [Check("missing", share > _NOTABLE_SHARE, sentence)]


def _corrections(report: Report) -> list[Check]:
    found = report.corrections
    if found is None or not sum(found.corrected):
        return []
    widths = {arm.arm: arm.half_width for arm in report.comparison.arms}
    moved = {
        arm: now - first
        for arm, now, first in zip(found.arms, found.mean, found.first_mean, strict=True)
        if abs(now - first) > _NOTABLE_CORRECTION * (widths.get(arm) or math.inf)
    }
    n_corrected = sum(found.corrected)
    sentence = f"{n_corrected:,} reward{'s were' if n_corrected > 1 else ' was'} corrected"
    if moved:
        parts = [f"of {arm!r} by {change:+.3g}" for arm, change in list(moved.items())[:_MOST_NAMED]]
        return [Check("corrections", True, f"{sentence}, which moved the mean {listed(parts)}.")]
    return [Check("corrections", False, f"{sentence}; no mean moved by a notable part of its interval.")]
