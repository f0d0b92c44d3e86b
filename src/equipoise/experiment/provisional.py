"""Reasons why the numbers of an experiment are provisional: rewards that come by their value, never, or drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.experiment.configuration import Configuration
    from equipoise.experiment.records import ArmStatus, Status

MOST_MISSING = 0.05
"""Share of an arm's units that may be missing for good before its numbers are provisional."""
MOST_MOVED = 0.1
"""By what part of its half-width an arm's mean may move when rewards that are still open come in."""


def provisional_reasons(status: Status, configuration: Configuration, *, drifts: bool = False) -> tuple[str, ...]:
    """Return the reasons as sentences; none if what is counted does not depend on what it is.

    Intervals hold whatever the policy does, as long as whether a reward counts does not depend on its value. That fails
    where rewards count as they come while others are open, if good news is quick or silence means no, and where units
    are missing for good. A few open rewards cannot move a mean by much; they are no reason. It also fails where rewards
    change over time, and arms were assigned at different times: `drifts` says whether that was found.
    """
    reasons = []
    if drifts:
        reasons.append(
            "Rewards change over time, so the arms' means are of different people: a report compares the arms over the "
            "same people."
        )
    if not configuration.missing.hold:
        open_arms = [arm for arm in status.arms if _is_open(arm, configuration)]
        if open_arms:
            worst = max(open_arms, key=lambda arm: _n_open(arm) / max(arm.assigned, 1))
            reasons.append(
                f"{_n_open(worst):,} of {worst.assigned:,} units of {worst.arm!r} have no reward yet, and rewards "
                "count as they come: if good ones come sooner, or no reward means a bad one, the means are too high."
            )
    missing = [arm for arm in status.arms if _n_missing(arm, configuration) > MOST_MISSING * max(arm.assigned, 1)]
    if missing:
        worst = max(missing, key=lambda arm: _n_missing(arm, configuration) / max(arm.assigned, 1))
        reasons.append(
            f"{_n_missing(worst, configuration):,} of {worst.assigned:,} units of {worst.arm!r} are without a reward "
            "for good: the means are those of the others."
        )
    return tuple(reasons)


def _n_open(arm: ArmStatus) -> int:
    """Return the units whose reward may still come and would count at once."""
    return arm.pending - arm.held


def _n_missing(arm: ArmStatus, configuration: Configuration) -> int:
    """Return the units that are left out of the estimates for good, as far as is known."""
    overdue = arm.overdue if configuration.missing.default is None else 0
    return arm.dropped + arm.withdrawn + overdue


def _is_open(arm: ArmStatus, configuration: Configuration) -> bool:
    """Return whether the open rewards of an arm may move its mean by a noticeable part of its interval."""
    n_open = _n_open(arm)
    if n_open == 0 or arm.half_width is None or arm.mean is None:
        return False
    ends = configuration.counted_range or (None, None)
    spans = [2.0 * (arm.std or 0.0) if end is None else abs(end - arm.mean) for end in ends]
    moved = max(spans) * n_open / (arm.rewarded + n_open)
    return moved > MOST_MOVED * arm.half_width
