"""Put everything that can be said of an experiment into one report, and analyse data collected anywhere."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.analysis.comparisons import compare, position
from equipoise.analysis.covariates import CovariateSums, adjusted, columns_of
from equipoise.analysis.delays import check_news
from equipoise.analysis.drift import over_the_same_people, trend
from equipoise.analysis.evidence import TIGHTEST_AT, Evidence, tightest_for
from equipoise.analysis.fixed_sample import differences_at_end, means_at_end, refusals
from equipoise.analysis.multiplicity import arm_failures
from equipoise.analysis.nonresponse import check_responses, corrections, missing_rewards, worst_cases
from equipoise.analysis.observations import Observations
from equipoise.analysis.randomisation import check_balance, check_draws
from equipoise.analysis.report_findings import report_checks, report_sentences
from equipoise.analysis.results import Adjusted, AtEnd, Comparison, Report, Winner
from equipoise.analysis.sentences import listed
from equipoise.analysis.shrinkage import shrink
from equipoise.analysis.subgroups import by_subgroup, explore
from equipoise.errors import InvalidInput
from equipoise.stats import ArmStats
from equipoise.unit_lifecycle import HELD, WAITING

Record = TypeVar("Record")


@dataclass(frozen=True, kw_only=True)
class Design:
    """What a report must know of how the data came about, besides the data.

    Attributes
    ----------
    name : str or None
        The experiment.
    control : str or None
        The arm that others are compared with, if one was declared.
    declared : frozenset of str or None
        Attributes that were declared for the analysis before there were data; None if all that are asked for were.
    n_first : int or None
        How many arms there were at first, if more may be added later.
    retired : tuple of str
        Arms that can no longer be chosen.
    stopped_by_budget : bool
        Whether enrolment ended at a number of people declared beforehand.
    reward_weight : float or None
        The dial of the policy.
    shares_converge : bool
        Whether the shares of the arms converge to positive numbers.
    simulated_shares : function, optional
        Returns shares of the arms in simulations of the same design at the estimates: an array (runs, n_arms).
    provisional : tuple of str
        Reasons why the numbers may change systematically.
    tightest_at : float
        The number of rewards per arm at which intervals are narrowest.
    """

    name: str | None = None
    control: str | None = None
    declared: frozenset[str] | None = None
    n_first: int | None = None
    retired: tuple[str, ...] = ()
    stopped_by_budget: bool = False
    reward_weight: float | None = None
    shares_converge: bool = True
    simulated_shares: Callable[[], ArrayLike] | None = None
    provisional: tuple[str, ...] = ()
    tightest_at: float = TIGHTEST_AT


def report_on(
    observations: Observations,
    design: Design | None = None,
    *,
    stats: ArmStats | None = None,
    control: str | None = None,
    adjust: Sequence[str] = (),
    by: Sequence[str] = (),
    confidence: float = 0.95,
    at: datetime | None = None,
) -> Report:
    """Return everything that can be said of decisions and their rewards.

    Parameters
    ----------
    observations : Observations
        The decisions and rewards.
    design : Design, optional
        How they came about.
    stats : ArmStats, optional
        The sums of the rewards that count, if they are at hand, on the scale on which large rewards are good.
    control : str, optional
        The arm that others are compared with; that of the design by default.
    adjust : sequence of str
        Attributes whose effect on rewards is taken out.
    by : sequence of str
        Attributes to compare arms within the values of.
    confidence : float, default 0.95
        Of all intervals of one kind together.
    at : datetime, optional
        The time of the report.
    """
    design = Design() if design is None else design
    names, n_arms = observations.arms, observations.n_arms
    control = design.control if control is None else control
    place = None if control is None else position(names, control, parameter="control")
    _refuse_unknown(observations, [*adjust, *by])
    sums = stats_of(observations) if stats is None else stats
    evidence = Evidence.of(
        sums, reward_range=observations.reward_range, sign=observations.sign, tightest_at=design.tightest_at
    )
    compared: Comparison = compare(
        evidence,
        names,
        confidence=confidence,
        control=control,
        direction=observations.direction,
        n_first=design.n_first,
        retired=design.retired,
        name=design.name,
        at=at,
        provisional=design.provisional,
    )
    delta = 1.0 - confidence
    found_trend = trend(observations.arm, observations.reward, n_arms=n_arms)
    same = None
    if n_arms > 1:
        same = over_the_same_people(
            observations.arm,
            observations.reward,
            observations.probability if observations.probabilities is None else observations.probabilities,
            counted_after=observations.counted_after,
            n_arms=n_arms,
            control=place,
            failure_probability=delta,
        )
    missing = observations.per_arm(missing_rewards(observations)).astype(np.int64)
    report = Report(
        name=design.name,
        at=at,
        direction=observations.direction,
        confidence=confidence,
        n_decisions=observations.n_decisions,
        n_rewarded=int(observations.counted.sum()),
        since=_instant(observations.at, 0),
        until=None if observations.until is None else datetime.fromtimestamp(observations.until, UTC),
        comparison=compared,
        trend=found_trend,
        same_people=None if same is None else _named_all(same, names),
        at_end=_at_end(observations, design, evidence, found_trend, missing, place, delta),
        worst_cases=()
        if not missing.any()
        else worst_cases(
            sums,
            names,
            missing,
            reward_range=observations.reward_range,
            failure_probability=arm_failures(delta, n_arms, design.n_first),
            sign=observations.sign,
            tightest_at=design.tightest_at,
        ),
        responses=check_responses(observations),
        corrections=corrections(observations),
        draws=check_draws(observations),
        balance=tuple(found for name in observations.attributes if (found := check_balance(observations, name))),
        news=check_news(observations),
        winner=_winner(compared, evidence),
        adjusted=_adjusted(observations, adjust, place, delta),
        **_groups(observations, by, design.declared, place, delta),
        checks=(),
        sentences=(),
        notes=observations.notes,
    )
    report = dataclasses.replace(report, checks=report_checks(report, observations))
    return dataclasses.replace(report, sentences=report_sentences(report))


def analyse(
    frame: Any,
    *,
    arm: str = "arm",
    reward: str = "reward",
    probability: str | None = None,
    probabilities: Mapping[str, str | float] | None = None,
    at: str | None = None,
    rewarded_at: str | None = None,
    arms: Sequence[str] | None = None,
    reward_range: tuple[float | None, float | None] | None = None,
    direction: str = "maximise",
    control: str | None = None,
    adjust: Sequence[str] = (),
    by: Sequence[str] = (),
    exploratory: Sequence[str] = (),
    budget: int | None = None,
    reward_weight: float | None = None,
    shares_settle: bool = True,
    confidence: float = 0.95,
) -> Report:
    """Analyse data collected anywhere: one row per person, with the arm and the reward.

    What else is known makes it say more: probabilities, so that a change over time does no harm; times, so that delays
    are checked; attributes, so that differences become more precise. `Report.notes` says what could not be had.

    Parameters
    ----------
    frame : pandas, polars or Arrow table, mapping of columns, sequence of mappings, or path of a CSV file
        The data, in the order in which people were assigned, or with a column `at`.
    arm, reward, probability, probabilities, at, rewarded_at, arms, reward_range, direction
        See `analysis.Observations.from_frame`.
    control : str, optional
        The arm that others are compared with; all pairs are compared by default.
    adjust, by : sequence of str
        Columns of attributes known before the assignment: to take out their effect on rewards, and to compare arms
        within their values.
    exploratory : sequence of str
        Those of them that were not chosen before there were data.
    budget : int, optional
        The number of people declared beforehand, if enrolment ended there: then there are intervals of ordinary width.
    reward_weight : float, optional
        The dial of the policy, if it had one.
    shares_settle : bool, default True
        Whether the shares of the arms settle at positive numbers, as they do with fixed shares. With Thompson sampling,
        UCB and other bandits they need not, and there are no intervals of ordinary width.
    confidence : float, default 0.95
        Of all intervals of one kind together.

    Examples
    --------
    >>> frame = {"arm": ["plain", "prize"] * 300, "reward": [0, 1, 0, 1, 1, 1] * 100}
    >>> report = analyse(frame, reward_range=(0, 1))
    >>> print(report.sentences[0])
    'prize' is the best arm: better than 'plain', by 0.58 to 0.76.
    >>> report.comparison.arms[0].low < 1 / 3 < report.comparison.arms[0].high
    True
    """
    adjust, by, exploratory = (
        _columns(name, columns, arm, reward)
        for name, columns in (("adjust", adjust), ("by", by), ("exploratory", exploratory))
    )
    if arm == reward:
        raise InvalidInput.of("reward", "must be another column than that of the arm", reward)
    if reward_weight is not None:
        reward_weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    observations = Observations.from_frame(
        frame,
        arm=arm,
        reward=reward,
        probability=probability,
        probabilities=probabilities,
        at=at,
        rewarded_at=rewarded_at,
        attributes=tuple(dict.fromkeys([*adjust, *by])),
        reward_range=reward_range,
        direction=direction,
        arms=arms,
    )
    unknown = [name for name in exploratory if name not in (*adjust, *by)]
    if unknown:
        raise InvalidInput.of("exploratory", "must hold attributes of `adjust` or `by`", unknown[0])
    if budget is not None and observations.n_decisions != budget:
        raise InvalidInput.of("budget", f"must be the number of rows, {observations.n_decisions:,}", budget)
    design = Design(
        control=control,
        declared=frozenset({*adjust, *by} - set(exploratory)),
        tightest_at=tightest_for([] if budget is None else [budget], observations.n_arms),
        stopped_by_budget=budget is not None,
        reward_weight=reward_weight,
        shares_converge=shares_settle,
    )
    report = report_on(observations, design, adjust=adjust, by=by, confidence=confidence)
    return dataclasses.replace(report, notes=(*report.notes, *_taken_for_granted(report), *_without(observations)))


def _taken_for_granted(report: Report) -> Iterator[str]:
    """Say what intervals at the end rest on that data collected elsewhere cannot show."""
    if report.at_end.means:
        yield (
            "The intervals at the number of units declared beforehand hold if the shares of the arms settle, as fixed "
            "ones do. Say `shares_settle=False` of data from Thompson sampling, UCB or another bandit."
        )


def _without(observations: Observations) -> Iterator[str]:
    """Say what data collected elsewhere would need for the parts of a report that are missing."""
    if observations.n_arms > 1 and observations.probabilities is None and observations.probability is None:
        yield (
            "No probabilities are given: if rewards change over time, differences over the same people are estimated "
            "within periods, and whether arms were drawn as planned is not checked. Give every arm's probability for "
            "each person (`probabilities`), or the shares if they were constant."
        )
    lacking = [
        (f"times of {what}", f"`{name}`")
        for what, name, times in (
            ("assignments", "at", observations.at),
            ("rewards", "rewarded_at", observations.rewarded_at),
        )
        if times is None
    ]
    if lacking:
        names, parameters = zip(*lacking, strict=True)
        yield (
            f"No {listed(names)} are given: whether good rewards come faster than others is not checked. Give the "
            f"columns of the {listed(names)} ({listed(parameters)})."
        )


def _columns(parameter: str, columns: Any, arm: str, reward: str) -> tuple[str, ...]:
    """Return names of columns of attributes, which the arm and the reward are not."""
    if isinstance(columns, str) or not hasattr(columns, "__iter__"):
        raise InvalidInput.of(parameter, "must be a list of names of columns", columns)
    names = tuple(columns)
    for name in names:
        if name in (arm, reward):
            raise InvalidInput.of(parameter, "must hold what was known before the assignment", name)
    return names


def _adjusted(observations: Observations, adjust: Sequence[str], control: int | None, delta: float) -> Adjusted | None:
    """Return means and differences without the effect of attributes; None if there are none or no rewards."""
    columns, matrix = columns_of([observations.attributes[name] for name in adjust])
    if not columns or not observations.counted.any():
        return None
    sums = CovariateSums.of(observations.arm, observations.reward, matrix, columns=columns, n_arms=observations.n_arms)
    found: Adjusted = _named_all(adjusted(sums, control=control, failure_probability=delta), observations.arms)
    return found


def _groups(
    observations: Observations, by: Sequence[str], declared: frozenset[str] | None, control: int | None, delta: float
) -> dict[str, Any]:
    """Return comparisons within groups: by attributes declared before, and what others show, as exploratory."""
    columns = observations.arm, observations.reward
    confirmed = [name for name in by if declared is None or name in declared]
    others = [observations.attributes[name].as_category() for name in by if name not in confirmed]
    shared: dict[str, Any] = {"n_arms": observations.n_arms, "control": control}
    subgroups = tuple(
        by_subgroup(
            *columns, observations.attributes[name].as_category(), failure_probability=delta / len(confirmed), **shared
        )
        for name in confirmed
    )
    explored = explore(*columns, others, false_discoveries=delta, **shared) if others else ()
    names = observations.arms
    return {"subgroups": _named_all(subgroups, names), "explored": _named_all(tuple(explored), names)}


def _winner(compared: Comparison, evidence: Evidence) -> Winner | None:
    """Return the arm with the best mean, with its mean shrunk towards the others'."""
    in_play = np.array([not arm.retired for arm in compared.arms])
    if evidence.n_arms < 2 or not (evidence.pulls > 1).all() or not (evidence.std > 0).any():
        return None
    errors = evidence.std / np.sqrt(evidence.pulls)
    sign = 1.0 if compared.direction == "maximise" else -1.0
    best = int(np.argmax(np.where(in_play, sign * evidence.mean, -np.inf)))
    arm = compared.arms[best]
    shrunken = shrink(evidence.mean, errors).estimate[best]
    return Winner(arm.arm, float(evidence.mean[best]), float(errors[best]), shrunken, arm.low, arm.high)


def stats_of(observations: Observations) -> ArmStats:
    """Return the sums of the rewards that count, on the scale on which large rewards are good."""
    counts = observations.counted
    stats = ArmStats.from_rewards(
        observations.arm[counts], observations.sign * observations.reward[counts], observations.n_arms
    )
    stats.assigned[:] = observations.per_arm().astype(np.int64)
    stats.n_assigned = observations.n_decisions
    return stats


def _at_end(
    observations: Observations,
    design: Design,
    evidence: Evidence,
    found_trend: Any,
    missing: Any,
    control: int | None,
    delta: float,
) -> AtEnd:
    """Return intervals of ordinary width, or the reasons why there are none."""
    names, pulls, mean, std = observations.arms, evidence.pulls, evidence.mean, evidence.std
    two_values = two_values_of(observations)
    reasons = refusals(
        pulls,
        np.nan_to_num(std),
        stopped_by_budget=design.stopped_by_budget,
        reward_weight=design.reward_weight,
        shares_converge=design.shares_converge,
        trend=found_trend,
        pending=None
        if observations.state is None
        else observations.per_arm(np.isin(observations.state, (WAITING, HELD))),
        missing=missing,
        skewness=np.nan_to_num(evidence.skewness),
        rarer=None if two_values is None else _of_rarer_value(pulls, mean, two_values),
        of_differences=True,
        simulated_shares=design.simulated_shares,
        names=names,
    )
    if reasons:
        return AtEnd(tuple(reason.sentence for reason in reasons), (), ())
    means = means_at_end(
        pulls,
        mean,
        std,
        failure_probability=delta,
        skewness=evidence.skewness,
        two_values=two_values,
        reward_range=observations.reward_range,
    )
    differences = (
        differences_at_end(pulls, mean, std, failure_probability=delta, control=control, two_values=two_values)
        if len(names) > 1
        else ()
    )
    return AtEnd((), _named_all(means, names), _named_all(differences, names))


def _of_rarer_value(pulls: FloatArray, mean: FloatArray, two_values: tuple[float, float]) -> FloatArray:
    """Return how many rewards of the rarer value each arm has."""
    low, high = two_values
    larger = np.rint(pulls * (np.nan_to_num(mean, nan=low) - low) / (high - low))
    return np.asarray(np.minimum(larger, pulls - larger))


def two_values_of(observations: Observations) -> tuple[float, float] | None:
    """Return the two values that rewards take, if they take no other."""
    rewards = observations.reward[observations.counted]
    if rewards.size == 0:
        return None
    low, high = float(rewards.min()), float(rewards.max())
    return (low, high) if low < high and ((rewards == low) | (rewards == high)).all() else None


def _refuse_unknown(observations: Observations, wanted: Sequence[str]) -> None:
    for name in wanted:
        if name not in observations.attributes:
            known = ", ".join(observations.attributes) or "none"
            raise InvalidInput(f"no unit has an attribute {name!r}; the attributes read are: {known}")


def _named_all(value: Any, names: Sequence[str]) -> Any:
    """Return records, or tuples of them, with the names of arms instead of their positions."""
    if isinstance(value, tuple):
        return tuple(_named_all(one, names) for one in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changed = {}
    for one in dataclasses.fields(value):
        held = getattr(value, one.name)
        if one.name in ("arm", "other") and isinstance(held, int):
            changed[one.name] = names[held]
        elif isinstance(held, tuple) or dataclasses.is_dataclass(held):
            changed[one.name] = _named_all(held, names)
    return dataclasses.replace(value, **changed)


def _instant(at: FloatArray | None, place: int) -> datetime | None:
    return None if at is None or not at.size or math.isnan(at[place]) else datetime.fromtimestamp(float(at[place]), UTC)
