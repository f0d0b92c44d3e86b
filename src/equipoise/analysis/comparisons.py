"""Compare arms: differences and relative lifts with intervals that hold together, and what follows for a decision."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.analysis.best_arm import chance_of_best, facing_up, may_be_best, most_lost, rank_bounds
from equipoise.analysis.evidence import Evidence
from equipoise.analysis.multiplicity import arm_failures, control_failures, discoveries, pair_failures
from equipoise.analysis.observations import DIRECTIONS
from equipoise.analysis.results import ArmEstimate, Comparison, Difference
from equipoise.analysis.sentences import assumed, comparison_sentences, standing
from equipoise.errors import InvalidInput, UnknownArm

MOST_FOR_ALL_PAIRS = 40
"""With more arms than this, only the arm of the best mean is compared with the others, unless a control is named."""
_MOST_LIFTS = 60
_LARGEST_EVIDENCE = 700.0


def compare(
    evidence: Evidence,
    names: Sequence[str],
    *,
    confidence: float = 0.95,
    control: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    guaranteed: bool = False,
    direction: str = "maximise",
    n_first: int | None = None,
    retired: Collection[str] = (),
    name: str | None = None,
    at: datetime | None = None,
    provisional: tuple[str, ...] = (),
) -> Comparison:
    """Compare arms by the evidence about them.

    Parameters
    ----------
    evidence : Evidence
        About each arm.
    names : sequence of str
        Names of the arms.
    confidence : float, default 0.95
        Of the intervals of all arms together, and of all differences together.
    control : str, optional
        Compare the other arms with this one, instead of all pairs: fewer comparisons, narrower intervals.
    pairs : sequence of pairs of str, optional
        Or only these pairs, declared before there were data.
    guaranteed : bool, default False
        Whether differences shall hold for any rewards in the declared range and any way to assign, not asymptotically.
    direction : {"maximise", "minimise"}
        Whether large or small rewards are good.
    n_first : int, optional
        How many arms there were at first, if more may be added later.
    retired : collection of str
        Arms that can no longer be chosen: they are compared, but the best one is sought among the others.
    name, at, provisional
        For the record: the experiment, the time, and reasons why the numbers may change systematically.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400, 400], [0.1, 0.4, 0.45], [0.3, 0.49, 0.5], reward_range=(0, 1))
    >>> found = compare(evidence, ["plain", "prize", "personal"])
    >>> for sentence in found.sentences:
    ...     print(sentence)
    'personal' is better than 'plain', by 0.25 to 0.45. 'prize' may still be best.
    """
    delta, up = checked_confidence(confidence), checks.one_of("direction", direction, DIRECTIONS) == "maximise"
    compared, first, second, failures = _pairs(evidence, list(names), delta, control, pairs, n_first, up)
    low, high = evidence.intervals(arm_failures(delta, evidence.n_arms, n_first))
    ends, above, below = _differences(evidence, first, second, failures, guaranteed)
    p_values = np.minimum(1.0, 2.0 * np.minimum(above, below))
    # By the share of each difference, so that p is at most delta where the interval leaves 0 out, and only there.
    adjusted = np.minimum(1.0, p_values * (delta / failures))
    n_arms, mean, std = evidence.n_arms, evidence.mean, evidence.std
    in_play = _in_play(names, retired)
    of_best: Any = {"larger_is_better": up, "n_first": n_first, "in_play": in_play}
    still = may_be_best(evidence, delta, **of_best)
    known = (first, second, above, below) if compared == "all" else None
    ranked = _ranks(evidence, delta, up, n_first, in_play, still, known)
    nothing = np.full(n_arms, np.nan)
    lost = most_lost(evidence, delta, **of_best) if n_arms <= MOST_FOR_ALL_PAIRS else nothing
    chances = nothing.copy()
    if n_arms <= _MOST_LIFTS:
        places = np.flatnonzero(in_play)
        chances[places] = chance_of_best(evidence.only(places.tolist()), larger_is_better=up)
    lifts = first.size <= _MOST_LIFTS
    arms = tuple(
        ArmEstimate(
            arm=names[i],
            rewarded=int(evidence.pulls[i]),
            mean=finite(mean[i]),
            std=finite(std[i]),
            low=finite(low[i]),
            high=finite(high[i]),
            half_width=half_width(mean[i], low[i], high[i]),
            may_be_best=bool(still[i]),
            most_lost=finite(lost[i]),
            rank_low=int(ranked[0][i]) or None,
            rank_high=int(ranked[1][i]) or None,
            chance_of_best=finite(chances[i]),
            retired=not in_play[i],
        )
        for i in range(n_arms)
    )
    differences = tuple(
        Difference(
            arm=names[a],
            other=names[b],
            difference=finite(mean[a] - mean[b]),
            low=finite(ends[0, k]),
            high=finite(ends[1, k]),
            interval=_kind(evidence, a, b, guaranteed, ends[:, k]),
            p_value=float(p_values[k]),
            p_adjusted=float(adjusted[k]),
            verdict=_verdict(ends[0, k], ends[1, k], up),
            **(_lift(evidence, a, b, float(failures[k])) if lifts else {}),
        )
        for k, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
    )
    remaining = tuple(names[i] for i in np.flatnonzero(still).tolist())
    best = remaining[0] if len(remaining) == 1 and np.count_nonzero(in_play) > 1 else None
    found = Comparison(
        name=name,
        at=at,
        direction=direction,
        confidence=confidence,
        interval=evidence.kind,
        compared=compared,
        control=control,
        arms=arms,
        differences=differences,
        best=best,
        may_be_best=remaining,
        better_than_control=_better(evidence, list(names), control, delta, up),
        provisional=provisional,
        sentences=(),
        assumptions=assumed(evidence, differences),
    )
    return dataclasses.replace(found, sentences=comparison_sentences(found))


def standing_sentence(
    evidence: Evidence,
    names: Sequence[str],
    may_be_best: Sequence[str],
    *,
    failure_probability: float,
    control: str | None,
    n_first: int | None,
    retired: Collection[str],
    up: bool,
) -> str:
    """Return in one sentence or two what the arm with the best mean is better than, and which may still be best.

    It reads the same differences as `compare`, so that both say the same.
    """
    from equipoise.kernels.arm_evidence import least_difference, log_larger

    found = facing_up(evidence, up)
    leader = leading(found, _in_play(names, retired))
    if leader is None:
        return "There are no rewards yet."
    _, first, second, failures = _pairs(evidence, list(names), failure_probability, control, None, n_first, up)
    gaps = {}
    for a, b, failure in zip(first.tolist(), second.tolist(), failures.tolist(), strict=True):
        other = b if a == leader else a
        if leader not in (a, b) or names[other] in retired:
            continue
        threshold = math.log(2.0 / failure)
        if log_larger(found.moments, leader, other, 0.0, False) >= threshold:
            low = least_difference(found.moments, leader, other, threshold, False)
            gaps[names[other]] = low, -least_difference(found.moments, other, leader, threshold, False)
    return standing(names[leader], gaps, may_be_best, [name for name in names if name not in retired], retired)


def leading(facing: Evidence, in_play: NDArray[np.bool_]) -> int | None:
    """Return which arm in play has the best mean, of evidence in which large means are good; None without rewards."""
    known = np.flatnonzero(in_play & (facing.pulls > 0))
    return int(known[np.argmax(facing.mean[known])]) if known.size else None


def _in_play(names: Sequence[str], retired: Collection[str]) -> NDArray[np.bool_]:
    return np.array([name not in retired for name in names], bool)


def half_width(mean: float, low: float, high: float) -> float | None:
    """Return the larger distance from a mean to an end of its interval, or None without an interval."""
    return finite(max(mean - low, high - mean))


def checked_confidence(confidence: Any) -> float:
    """Return 1 minus the confidence; raise unless both are in (0, 1)."""
    is_number = isinstance(confidence, (int, float, np.floating)) and not isinstance(confidence, bool)
    if not is_number or not 0 < confidence < 1:
        raise InvalidInput.of("confidence", "must be in (0, 1), such as 0.95", confidence)
    return 1.0 - float(confidence)


def _pairs(
    evidence: Evidence,
    names: list[str],
    delta: float,
    control: str | None,
    pairs: Sequence[tuple[str, str]] | None,
    n_first: int | None,
    up: bool,
) -> tuple[str, IntArray, IntArray, FloatArray]:
    """Return which pairs are compared, the positions of both arms, and the failure probability of each difference."""
    n_arms = evidence.n_arms
    if len(names) != n_arms:
        raise InvalidInput.of("names", f"must have {n_arms} entries, one per arm", len(names))
    if len(set(names)) < n_arms:
        raise InvalidInput.of("names", "must be different", names)
    if control is not None and pairs is not None:
        raise InvalidInput.of("pairs", "must be left out where a control is named", pairs)
    if pairs is not None:
        places = [tuple(position(names, arm) for arm in _checked_pair(pair)) for pair in pairs]
        if not places:
            raise InvalidInput.of("pairs", "must have at least one pair of arms", pairs)
        if len({frozenset(place) for place in places}) < len(places):
            raise InvalidInput.of("pairs", "must hold each pair once", pairs)
        chosen = np.array(places, np.int64)
        return "pair", chosen[:, 0], chosen[:, 1], np.full(len(places), delta / len(places))
    if control is not None:
        place = position(names, control, parameter="control")
        others = np.array([i for i in range(n_arms) if i != place], np.int64)
        failures = control_failures(delta, others, n_first, control=place, n_arms=n_arms)
        return "control", others, np.full(others.size, place, np.int64), failures
    if n_arms <= MOST_FOR_ALL_PAIRS:
        first, second = np.triu_indices(n_arms, 1)
        first, second = first.astype(np.int64), second.astype(np.int64)
        compared = "all"
    else:
        found = facing_up(evidence, up)
        leader = int(np.nanargmax(found.mean)) if (found.pulls > 0).any() else 0
        second = np.array([i for i in range(n_arms) if i != leader], np.int64)
        first, compared = np.full(second.size, leader, np.int64), "leader"
    return compared, first, second, pair_failures(delta, first, second, n_first, n_arms=n_arms)


def _checked_pair(pair: Any) -> tuple[str, str]:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2 or pair[0] == pair[1]:
        raise InvalidInput.of("pairs", "must hold pairs of two different arms", pair)
    return pair[0], pair[1]


def position(names: Sequence[str], arm: Any, *, parameter: str = "arm") -> int:
    """Return the position of an arm; raise `UnknownArm` if there is none of this name."""
    if arm not in names:
        known = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise UnknownArm.of(parameter, f"must be one of the arms, {known}", arm)
    return list(names).index(arm)


def _differences(
    evidence: Evidence, first: IntArray, second: IntArray, failures: FloatArray, guaranteed: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return both ends for each pair, and the p-values of its first mean being above and below its second."""
    from equipoise.kernels.arm_evidence import write_differences

    out = np.full((4, first.size), np.nan)
    write_differences(evidence.moments, first, second, failures, guaranteed, out)
    p_values = np.exp(-np.clip(out[2:], 0.0, _LARGEST_EVIDENCE))
    return out[:2], p_values[0], p_values[1]


def difference_ends(
    evidence: Evidence,
    names: Sequence[str],
    *,
    failure_probability: float,
    control: str | None = None,
    direction: str = "maximise",
    n_first: int | None = None,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the pairs that `compare` compares, first and second, and both ends of their differences.

    Examples
    --------
    >>> evidence = Evidence.from_summary([400, 400], [0.1, 0.4], [0.3, 0.49], reward_range=(0, 1))
    >>> *pair, low, high = difference_ends(evidence, ["plain", "prize"], failure_probability=0.05)
    >>> low.round(3), high.round(3)
    (array([-0.393]), array([-0.207]))
    """
    up = checks.one_of("direction", direction, DIRECTIONS) == "maximise"
    _, first, second, failures = _pairs(evidence, list(names), failure_probability, control, None, n_first, up)
    ends, _, _ = _differences(evidence, first, second, failures, False)
    return first, second, ends[0], ends[1]


def _ranks(
    evidence: Evidence,
    delta: float,
    up: bool,
    n_first: int | None,
    in_play: NDArray[np.bool_],
    still: NDArray[np.bool_],
    known: tuple[IntArray, IntArray, FloatArray, FloatArray] | None,
) -> tuple[IntArray, IntArray]:
    """Return the best and the worst rank of each arm in play, 0 for the others.

    All pairs decide, and which arms may be best: all comparisons at once find the best arm before each does by itself.
    `known` are all pairs with their p-values, if these are known already.
    """
    n_arms, places = evidence.n_arms, np.flatnonzero(in_play)
    low, high = np.where(in_play, 1, 0), np.where(in_play, places.size, 0)
    if 1 < places.size <= MOST_FOR_ALL_PAIRS:
        if known is None:
            first, second = (places[one].astype(np.int64) for one in np.triu_indices(places.size, 1))
            _, above, below = _differences(evidence, first, second, np.full(first.size, delta), False)
        else:
            chosen = in_play[known[0]] & in_play[known[1]]
            first, second = known[0][chosen], known[1][chosen]
            above, below = known[2][chosen], known[3][chosen]
        better, worse = (above, below) if up else (below, above)
        low, high = rank_bounds(first, second, better, worse, delta, n_arms=n_arms, n_first=n_first)
    if np.count_nonzero(still) == 1:
        high = np.where(still, 1, high)
        low = np.where(still, 1, low)
    return np.where(in_play & ~still, np.maximum(low, 2), low), high


def _kind(evidence: Evidence, a: int, b: int, guaranteed: bool, ends: FloatArray) -> str:
    from equipoise.kernels.arm_evidence import is_narrow

    if np.isnan(ends).all():
        return "none"
    if not guaranteed and is_narrow(evidence.moments, a, b):
        return "asymptotic"
    return "guaranteed" if evidence.kind == "guaranteed" else "asymptotic"


def _verdict(low: float, high: float, up: bool) -> str:
    if low > 0 or high < 0:
        return "better" if (low > 0) == up else "worse"
    return "undecided"


def _lift(evidence: Evidence, a: int, b: int, failure: float) -> dict[str, float | None]:
    """Return the relative lift of a over b with its interval, where it means something: rewards are not negative."""
    from equipoise.kernels.arm_evidence import LOW, least_ratio

    moments, mean = evidence.moments, evidence.mean
    if not (moments[LOW, 0] >= 0 and mean[a] > 0 and mean[b] > 0):
        return {}
    threshold = math.log(2.0 / failure)
    low, inverse = least_ratio(moments, a, b, threshold), least_ratio(moments, b, a, threshold)
    high = 1.0 / inverse - 1.0 if inverse > 0 else math.inf
    return {"lift": finite(mean[a] / mean[b] - 1.0), "lift_low": finite(low - 1.0), "lift_high": finite(high)}


def _better(evidence: Evidence, names: list[str], control: str | None, delta: float, up: bool) -> tuple[str, ...]:
    """Return the arms better than a control, with the false-discovery rate at most delta."""
    if control is None:
        return ()
    from equipoise.kernels.arm_evidence import is_narrow, log_larger

    found, place = facing_up(evidence, up), position(names, control, parameter="control")
    others = [i for i in range(evidence.n_arms) if i != place]
    values = []
    for i in others:
        log_evidence = min(float(log_larger(found.moments, i, place, 0.0, False)), _LARGEST_EVIDENCE)
        if is_narrow(found.moments, i, place):  # whose p-values are valid at all times, and whose evidence is not
            log_evidence = 0.5 * log_evidence - math.log(2.0)
        values.append(math.exp(log_evidence))
    return tuple(names[others[k]] for k in discoveries(values, delta))


def finite(value: float) -> float | None:
    """Return a number as JSON can hold it: None if it is not finite."""
    return float(value) + 0.0 if math.isfinite(value) else None
