"""Say in plain words what an analysis found, and what it assumes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.analysis.evidence import Evidence
    from equipoise.analysis.results import Comparison, Difference

_MOST_NAMED = 3
"""More arms than this are counted instead of named."""


def comparison_sentences(found: Comparison) -> tuple[str, ...]:
    """Return what a comparison allows to say, the most important first."""
    if len(found.arms) < 2:
        return ()
    lines = [_standing(found)]
    if found.provisional:
        lines[0] = f"Provisional: {lines[0]}"
        lines += found.provisional
    if found.control is not None and found.better_than_control:
        lines.append(
            f"Better than the control {found.control!r}: {listed([repr(arm) for arm in found.better_than_control])}."
        )
    return tuple(lines)


def _standing(found: Comparison) -> str:
    """Return which arms are better than which, and which may still be best."""
    up = found.direction == "maximise"
    in_play = [arm for arm in found.arms if not arm.retired]
    retired = [arm.arm for arm in found.arms if arm.retired]
    means = {arm.arm: arm.mean for arm in in_play if arm.mean is not None}
    if not means:
        return "There are no rewards yet."
    leader = max(means, key=lambda arm: means[arm] if up else -means[arm])
    gaps = {}
    for pair in found.differences:
        for arm, other, verdict in ((pair.arm, pair.other, "better"), (pair.other, pair.arm, "worse")):
            if arm != leader or pair.verdict != verdict or other in retired or pair.low is None or pair.high is None:
                continue
            gaps[other] = min(abs(pair.low), abs(pair.high)), max(abs(pair.low), abs(pair.high))
    return standing(leader, gaps, found.may_be_best, [arm.arm for arm in in_play], retired)


def standing(
    leader: str,
    gaps: dict[str, tuple[float, float]],
    may_be_best: Sequence[str],
    arms: Sequence[str],
    retired: Collection[str] = (),
) -> str:
    """Return one sentence or two: what the arm with the best mean is better than, and which others may be best.

    Parameters
    ----------
    leader : str
        The arm with the best mean.
    gaps : dict of pairs by arm
        By how much the leader is better than each arm that it is surely better than, at least and at most.
    may_be_best, arms : sequence of str
        The arms not ruled out, and all of which one can be chosen.
    retired : collection of str
        The arms that can no longer be chosen.

    Examples
    --------
    >>> standing("prize", {"plain": (0.12, 0.27)}, ["prize", "personal"], ["plain", "prize", "personal"])
    "'prize' is better than 'plain', by 0.12 to 0.27. 'personal' may still be best."
    >>> standing("b", {"a": (0.1, 0.3)}, ["b"], ["a", "b"])
    "'b' is the best arm: better than 'a', by 0.10 to 0.30."
    >>> standing("b", {}, ["b"], ["a", "b"], ["c"])
    "'b' is the best arm. 'c' is retired and left out."
    """
    aside = f" {_counted([*retired])} {_is_are([*retired])} retired and left out." if retired else ""
    return _standing_in_play(leader, gaps, may_be_best, arms) + aside


def _standing_in_play(
    leader: str, gaps: dict[str, tuple[float, float]], may_be_best: Sequence[str], arms: Sequence[str]
) -> str:
    if len(arms) == 1:
        return f"{leader!r} is the only arm in play."
    others = [arm for arm in may_be_best if arm != leader]
    out = [arm for arm in arms if arm not in may_be_best]
    better = ""
    if gaps:
        nearest = min(gaps, key=lambda arm: gaps[arm])
        if len(gaps) <= _MOST_NAMED:
            parts = [f"{arm!r}, by {between(*gap)}" for arm, gap in sorted(gaps.items(), key=itemgetter(1))]
            better = "better than " + (parts[0] if len(parts) == 1 else "; than ".join(parts))
        else:
            least, _ = gaps[nearest]
            which = "all" if len(gaps) == len(arms) - 1 else f"{len(gaps)} of the"
            better = f"better than {which} {len(arms) - 1} others, by at least {least:.{decimals_for(least)}f}"
    if not others:
        return f"{leader!r} is the best arm" + (f": {better}." if better else ".")
    if not out and not gaps:
        return "No arm can be ruled out as the best yet."
    lines = []
    if better:
        lines.append(f"{leader!r} is {better}.")
    ruled_out = [arm for arm in out if arm not in gaps]
    if ruled_out:
        lines.append(f"{_counted(ruled_out)} {_is_are(ruled_out)} not the best.")
    if others:
        if gaps:
            still = _counted(others)
        else:
            still = listed([repr(arm) for arm in [leader, *others]]) if len(others) < _MOST_NAMED else ""
            still = still or f"{leader!r} and {_counted(others)}"
        lines.append(f"{still} may still be best.")
    return " ".join(lines)


def _counted(arms: Sequence[str]) -> str:
    return listed([repr(arm) for arm in arms]) if len(arms) <= _MOST_NAMED else f"{len(arms)} other arms"


def _is_are(arms: Sequence[str]) -> str:
    return "is" if len(arms) == 1 else "are"


def listed(parts: Sequence[str], word: str = "and") -> str:
    """Return parts as a list in words.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *most, last = parts
    return f"{', '.join(most)} {word} {last}" if most else last


def between(low: float, high: float) -> str:
    """Return an interval in words, with as many decimals as two digits of its width take.

    Examples
    --------
    >>> between(0.1204, 0.2741), between(0.0013, 0.2741)
    ('0.12 to 0.27', '0.001 to 0.274')
    """
    decimals = decimals_beside_zero(decimals_for(high - low), (low, high))
    return f"{round(low, decimals) + 0.0:.{decimals}f} to {round(high, decimals) + 0.0:.{decimals}f}"


def decimals_beside_zero(decimals: int, ends: Iterable[float]) -> int:
    """Return one decimal more, or two, if an end that is not zero would be shown as zero: it decides a comparison.

    Examples
    --------
    >>> decimals_beside_zero(2, [0.0013, 0.27]), decimals_beside_zero(2, [0.1, 0.27]), decimals_beside_zero(2, [0.0])
    (3, 2, 2)
    """
    smallest = min((abs(end) for end in ends if end), default=math.inf)
    return next((more for more in (decimals, decimals + 1) if round(smallest, more)), decimals + 2)


def decimals_for(width: float) -> int:
    """Return the number of decimals that shows two digits of a width."""
    if not 1e-9 < width < 1e9:
        return 3
    return max(0, 1 - math.floor(math.log10(width)))


def assumed(evidence: Evidence, differences: Sequence[Difference]) -> tuple[str, ...]:
    """Return what the numbers of a comparison assume."""
    lines = [
        "Units are independent of each other: one person is one unit.",
        "Rewards of an arm do not change over time (a report checks this).",
        "Whether and when a reward comes does not depend on what it is.",
    ]
    kinds = {pair.interval for pair in differences}
    if evidence.kind == "guaranteed":
        lines.append("Intervals of arms hold for any rewards in the declared range, at all times together.")
    elif evidence.kind == "asymptotic":
        lines.append(
            "Intervals of arms are asymptotic: they need rewards without rare, huge values; declare reward_range or "
            "reward_cap for a guarantee."
        )
    else:
        end = evidence.kind.split()[0]
        lines.append(f"The {end} ends of arms' intervals hold for any rewards in the range; the others are asymptotic.")
    if "asymptotic" in kinds:
        lines.append("Differences are asymptotic, by Welch's statistic: they need shares that settle.")
    return tuple(lines)
