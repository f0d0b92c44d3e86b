"""Say what a comparison means for a decision: what may be said, what may not yet, and what choosing an arm costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from equipoise.analysis.sentences import between, decimals_for, listed

if TYPE_CHECKING:
    from equipoise.analysis.results import ArmEstimate, Comparison

MOST_NAMED = 8
"""More arms than this are counted instead of named, and of more only the first are priced."""
_MOST_PRICED = 3
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Decision:
    """What a comparison means for a decision.

    Attributes
    ----------
    leader : str or None
        The arm with the best mean; None without rewards.
    best : str or None
        The best arm, if all others are ruled out.
    may_be_best, ruled_out : tuple of str
        Arms that are not ruled out as the best, and those that are; retired ones are in neither.
    most_lost : float or None
        What choosing the leader can cost at most, a person.
    may_be_said : tuple of str
        What may be said, in plain words.
    cost : tuple of str
        What choosing an arm costs, in plain words.
    not_yet : tuple of str
        What may not be said yet.
    """

    leader: str | None
    best: str | None
    may_be_best: tuple[str, ...]
    ruled_out: tuple[str, ...]
    most_lost: float | None
    may_be_said: tuple[str, ...]
    cost: tuple[str, ...]
    not_yet: tuple[str, ...]


def decision_of(found: Comparison) -> Decision:
    """Return what a comparison means for a decision.

    Examples
    --------
    >>> from equipoise.analysis import Evidence, compare
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> decision = decision_of(compare(evidence, ["plain", "prize", "personal"]))
    >>> for sentence in (*decision.may_be_said, *decision.cost):
    ...     print(sentence)
    'personal' is better than 'plain', by 0.25 to 0.45. 'prize' may still be best.
    'prize' is better than 'plain', by 0.20 to 0.40.
    Ruled out as the best: 'plain'.
    Choosing 'personal' costs at most 0.06 a person: no other arm's mean is larger by more than that.
    Choosing 'prize' costs at most 0.16 a person.
    >>> decision.not_yet[0].partition(":")[0]
    "It cannot be said yet that 'personal' is better than 'prize'"
    """
    up = 1.0 if found.direction == "maximise" else -1.0
    in_play = [arm for arm in found.arms if not arm.retired]
    known = sorted((arm for arm in in_play if arm.mean is not None), key=lambda arm: -up * _mean(arm))
    out = tuple(arm.arm for arm in in_play if not arm.may_be_best)
    if not known or len(in_play) < 2:
        return Decision(
            leader=known[0].arm if known else None,
            best=found.best,
            may_be_best=found.may_be_best,
            ruled_out=out,
            most_lost=None,
            may_be_said=found.sentences or ("One arm: there is nothing to compare it with.",),
            cost=(),
            not_yet=(),
        )
    leader = known[0]
    said = [*found.sentences, *_other_differences(found, leader.arm)]
    if out and found.best is None:
        said.append(f"Ruled out as the best: {_named(out)}.")
    return Decision(
        leader=leader.arm,
        best=found.best,
        may_be_best=found.may_be_best,
        ruled_out=out,
        most_lost=leader.most_lost,
        may_be_said=tuple(said),
        cost=tuple(_costs(found, known)),
        not_yet=tuple(_undecided(found, leader.arm)),
    )


def _mean(arm: ArmEstimate) -> float:
    return math.nan if arm.mean is None else arm.mean


def _named(arms: tuple[str, ...]) -> str:
    return listed([repr(arm) for arm in arms]) if len(arms) <= MOST_NAMED else f"{len(arms):,} arms"


def _other_differences(found: Comparison, leader: str) -> list[str]:
    """Return which arms are better than which, besides the leader, whose differences are in the first sentence."""
    lines = []
    for pair in found.differences:
        if pair.verdict == "undecided" or leader in (pair.arm, pair.other) or pair.low is None or pair.high is None:
            continue
        better, worse = (pair.arm, pair.other) if pair.verdict == "better" else (pair.other, pair.arm)
        ends = sorted((abs(pair.low), abs(pair.high)))
        lines.append(f"{better!r} is better than {worse!r}, by {between(*ends)}.")
    most = 2 * MOST_NAMED
    return lines if len(lines) <= most else [f"{len(lines):,} more pairs differ: see the table."]


def _costs(found: Comparison, ranked: list[ArmEstimate]) -> list[str]:
    """Return what choosing the leader, and other arms that may be best, can cost."""
    if found.best is not None:
        return [f"Choosing {found.best!r} costs nothing: all other arms are ruled out as the best."]
    lines: list[str] = []
    widths = [arm.high - arm.low for arm in ranked if arm.low is not None and arm.high is not None]
    decimals = decimals_for(min(widths, default=0.0))
    larger = "larger" if found.direction == "maximise" else "smaller"
    for arm in [arm for arm in ranked if arm.may_be_best][:_MOST_PRICED]:
        if arm.most_lost is None:
            continue
        line = f"Choosing {arm.arm!r} costs at most {arm.most_lost:.{decimals}f} a person"
        lines.append(f"{line}." if lines else f"{line}: no other arm's mean is {larger} by more than that.")
    return lines


def _undecided(found: Comparison, leader: str) -> list[str]:
    """Return which differences between the leader and other arms that may be best are not decided."""
    lines: list[str] = []
    for pair in found.differences:
        if pair.verdict != "undecided" or leader not in (pair.arm, pair.other):
            continue
        other = pair.other if pair.arm == leader else pair.arm
        if other not in found.may_be_best:
            continue
        if pair.low is None or pair.high is None:
            lines.append(f"It cannot be said yet that {leader!r} is better than {other!r}: there are too few rewards.")
            continue
        low, high = (pair.low, pair.high) if pair.arm == leader else (-pair.high, -pair.low)
        lines.append(
            f"It cannot be said yet that {leader!r} is better than {other!r}: the difference is from "
            f"{between(low, high).replace('-', MINUS)}."
        )
    if len(lines) > MOST_NAMED:
        return [f"It cannot be said yet that {leader!r} is better than {len(lines):,} of the others."]
    return lines
