"""Look ahead: the pace at which people come, and when stopping rules will be met if everything goes on as it does."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from equipoise.experiment.course import Outlook, RuleOutlook
from equipoise.experiment.rewards_ahead import people_until
from equipoise.experiment.rollup import HOUR, Rollup
from equipoise.experiment.state import ENROLLING
from equipoise.experiment.stopping import Budget, Deadline, Precision, StoppingRule
from equipoise.store.schema import microseconds

if TYPE_CHECKING:
    from equipoise.experiment.records import Progress, Status
    from equipoise.experiment.state import State

_PACE_HOURS = 7 * 24
"""A whole week, since people come on some days of it and not on others."""
_HOURS_A_DAY = 24
_LAST = datetime(9000, 1, 1, tzinfo=UTC)


def pace_of(rollup: Rollup | None, state: State, now: datetime) -> float | None:
    """Return how many people came a day in the last seven days, or since the first person.

    None before the first hour has passed, and while nobody is enrolled.
    """
    if rollup is None or state.state != ENROLLING:
        return None
    hour, assigned = rollup.hour, rollup.count("assigned")
    came = assigned > 0
    if not came.any():
        return None
    at = microseconds(now) / HOUR
    hours = min(at - float(hour[came].min()), float(_PACE_HOURS))
    if hours < 1.0:
        return None
    # Sums are by whole hours, so the first one is counted in part.
    covered = np.clip(hour + 1.0 - (at - hours), 0.0, 1.0)
    return float((assigned * covered).sum()) / hours * _HOURS_A_DAY


def outlook_of(state: State, status: Status, people_per_day: float | None) -> Outlook:
    """Return when each stopping rule will be met."""
    rules = zip(state.configuration.stopping, status.stopping, strict=True)
    return Outlook(
        name=status.name,
        at=status.at,
        n_events=status.n_events,
        people_per_day=people_per_day,
        rules=tuple(_rule_outlook(rule, progress, state, status, people_per_day) for rule, progress in rules),
    )


def _rule_outlook(
    rule: StoppingRule, progress: Progress, state: State, status: Status, people_per_day: float | None
) -> RuleOutlook:
    people, at, reason = None, None, ""
    if progress.met:
        people = 0
    elif isinstance(rule, Deadline):
        at = datetime.fromisoformat(str(rule.at))
    elif isinstance(rule, Budget):
        people = rule.units - status.n_assigned
    elif isinstance(rule, Precision):
        people, reason = _until_precise(rule, state)
    else:
        reason = "it depends on how different the arms turn out to be"
    days = None
    if people and not progress.met:
        days = people / people_per_day if people_per_day else None
        at = None if days is None else _after(status.at, days)
        reason = reason or _without_pace(status, days)
    if people == 0 and not progress.met:
        reason = "the numbers are provisional" if status.provisional else "rewards are still to come"
    return RuleOutlook(progress.rule, progress.met, progress.goal, people, days, at, reason)


def _until_precise(rule: Precision, state: State) -> tuple[int | None, str]:
    """Return the further people until a precision is reached with the present shares, or why nobody can say."""
    shares = state.decider.target(state.stats)
    if shares is None:
        since = state.stats.assigned[state.decider.active]
        if not since.sum():
            return None, "there are too few rewards yet"
        shares = np.zeros(state.stats.n_arms)
        shares[state.decider.active] = since / since.sum()
    found = float(people_until(state, rule, shares[None, :])[0])
    if math.isnan(found):
        return None, "there are too few rewards yet"
    if math.isinf(found):
        return None, "it will not be reached with the present shares"
    return int(found), ""


def _without_pace(status: Status, days: float | None) -> str:
    if days is not None:
        return ""
    if status.state != ENROLLING:
        return "nobody is enrolled now"
    return "it is too early to know how many people come a day"


def _after(now: datetime, days: float) -> datetime | None:
    return now + timedelta(days=days) if days < (_LAST - now).days else None
