"""All checks of an experiment that are computed from its sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from equipoise.monitoring.arrival_checks import check_enrolment, check_rewards
from equipoise.monitoring.draw_checks import check_draws, check_tracking
from equipoise.monitoring.health_records import NOT_ENOUGH, Check
from equipoise.monitoring.reward_checks import (
    check_delay_by_arm,
    check_delay_drift,
    check_missing,
    check_missing_by_arm,
)
from equipoise.monitoring.value_checks import check_jumps, check_unusual
from equipoise.monitoring.watched import Watched

PEOPLE, ARMS = "people", "arms"


def checks_of(watched: Watched) -> tuple[Check, ...]:
    """Return what the checks of an experiment find, in a fixed order."""
    if watched.sums is None:
        return (Check(PEOPLE, None, NOT_ENOUGH, "Nobody has been assigned yet."),)
    return tuple(replace(one, value=_number(one.value), expected=_number(one.expected)) for one in _checks(watched))


def _number(value: float | None) -> float | None:
    """Return a number as Python's own; None if it is not finite, as where rewards have no spread."""
    return None if value is None or not math.isfinite(value) else float(value)


def _checks(watched: Watched) -> Iterator[Check]:
    yield check_missing(watched)
    yield check_delay_drift(watched)
    yield check_enrolment(watched)
    yield check_rewards(watched)
    if not watched.by_arm:
        yield Check(ARMS, None, NOT_ENOUGH, "There are too many arms to check each by itself.")
        return
    yield from check_missing_by_arm(watched)
    yield from check_delay_by_arm(watched)
    yield from check_jumps(watched)
    yield from check_unusual(watched)
    yield from check_draws(watched)
    yield from check_tracking(watched)
