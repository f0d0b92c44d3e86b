"""Records that an analysis returns, the same in Python, over HTTP and as JSON."""

import dataclasses
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from equipoise.errors import InvalidInput

Method: TypeAlias = Literal["t", "hall", "wilson", "welch", "newcombe", "none"]
"""How an interval at the end is computed."""

Basis: TypeAlias = Literal["probabilities", "chosen-probabilities", "periods"]
"""What differences over the same people rest on."""


@dataclass(frozen=True)
class ArmEstimate:
    """What is known of one arm.

    Attributes
    ----------
    arm : str
        Its name.
    rewarded : int
        Rewards counted.
    mean, std : float or None
        Of the rewards, as reported.
    low, high : float or None
        Interval for the mean. Those of all arms hold together, at all times; None where nothing can be said yet.
    half_width : float or None
        The larger distance from the mean to an end.
    may_be_best : bool
        Whether it has not been ruled out as the best arm; False for a retired one.
    most_lost : float or None
        How much smaller than the best mean its mean is at most (larger, where small rewards are good); None for a
        retired arm.
    rank_low, rank_high : int or None
        The best and the worst place that its mean may have among the arms that are not retired; 1 is the best. From all
        pairs, and from which arms may be best; each of the two holds with the confidence of the comparison.
    chance_of_best : float or None
        Chance that it is the best, as a belief: from the same pooled normal estimates that PooledBalance decides by.
        Not a guarantee.
    retired : bool
        Whether it can no longer be chosen: the best arm is sought among the others.
    """

    arm: str
    rewarded: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    half_width: float | None
    may_be_best: bool
    most_lost: float | None
    rank_low: int | None
    rank_high: int | None
    chance_of_best: float | None
    retired: bool = False


@dataclass(frozen=True)
class Difference:
    """The difference between two arms: the mean of `arm` minus the mean of `other`.

    Attributes
    ----------
    difference, low, high : float or None
        The difference of the means, and its interval. Those of all pairs compared hold together, at all times.
    interval : str
        "guaranteed" for any rewards in the declared range; "asymptotic", narrower, where both arms have enough rewards
        for Welch's statistic; "none" while nothing can be said.
    p_value : float
        For this pair alone, valid at all times.
    p_adjusted : float
        The same times the number of pairs compared, or rather over the share of the failure probability that this pair
        has: it is at most 1 - confidence if the interval leaves 0 out, and only then.
    verdict : str
        "better", "worse" or "undecided": what the interval says of `arm`, by the direction of the rewards.
    lift, lift_low, lift_high : float or None
        The mean of `arm` divided by that of `other`, minus 1, with its interval; for rewards that are not negative.
    """

    arm: str
    other: str
    difference: float | None
    low: float | None
    high: float | None
    interval: str
    p_value: float
    p_adjusted: float
    verdict: str
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Which arms differ, which can be ruled out, and what choosing one can cost, at one time.

    Attributes
    ----------
    name, at : str and datetime, or None
        The experiment, and when; None for other data.
    direction : str
        "maximise" if large rewards are good, otherwise "minimise".
    confidence : float
        Confidence of the intervals of all arms together, of all differences together, and of each of the other
        statements.
    interval : str
        Which ends of the arms' intervals are guaranteed: "guaranteed" (both), "low guaranteed", "high guaranteed" or
        "asymptotic".
    compared : str
        Which pairs: "all", "control", "pair", or "leader" (all pairs with the arm of the best mean).
    control : str or None
        The arm that others are compared with.
    best : str or None
        The best arm, if all others are ruled out; retired arms aside.
    may_be_best : tuple of str
        Arms that are neither ruled out nor retired.
    better_than_control : tuple of str
        Arms that are better than the control, of which on average at most 1 - confidence are false.
    provisional : tuple of str
        Reasons why the numbers may change systematically; empty if there are none.
    sentences : tuple of str
        What may be said, in plain words.
    assumptions : tuple of str
        What it assumes.
    """

    name: str | None
    at: datetime | None
    direction: str
    confidence: float
    interval: str
    compared: str
    control: str | None
    arms: tuple[ArmEstimate, ...]
    differences: tuple[Difference, ...]
    best: str | None
    may_be_best: tuple[str, ...]
    better_than_control: tuple[str, ...]
    provisional: tuple[str, ...]
    sentences: tuple[str, ...]
    assumptions: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data that JSON can hold."""
        return dataclasses.asdict(self) | {"at": None if self.at is None else self.at.isoformat()}

    def to_frame(self, of: Literal["differences", "arms"] = "differences") -> Any:
        """Return a polars frame with one row per difference, or per arm.

        Examples
        --------
        >>> from equipoise.analysis import Evidence, compare
        >>> evidence = Evidence.from_summary([400, 400], [0.25, 0.5], [0.43, 0.5], reward_range=(0, 1))
        >>> found = compare(evidence, ["plain", "prize"])
        >>> found.to_frame().select("arm", "other", "difference", "verdict").rows()
        [('plain', 'prize', -0.25, 'worse')]
        >>> found.to_frame("arms").select("arm", "rewarded", "mean", "may_be_best").rows()
        [('plain', 400, 0.25, False), ('prize', 400, 0.5, True)]
        """
        from equipoise.analysis.result_tables import record_frame

        if of not in ("differences", "arms"):
            raise InvalidInput.of("of", "must be differences or arms", of)
        return record_frame(self.arms, ArmEstimate) if of == "arms" else record_frame(self.differences, Difference)

    def __str__(self) -> str:
        """Return what may be said, and tables of arms and differences, as the command prints them."""
        from equipoise.analysis.result_tables import comparison_sections, text_of

        return text_of(comparison_sections(self))

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        from equipoise.analysis.result_tables import comparison_sections, html_of

        return html_of(comparison_sections(self))


@dataclass(frozen=True)
class NewsCheck:
    """Whether good rewards come faster or slower than others of the same arm.

    Attributes
    ----------
    z : float
        Of the rank correlations of delay and reward within arms; negative if large rewards come faster.
    speaks : bool
        Whether it is larger than chance explains.
    good_first : bool
        Whether rewards that are good come faster.
    n_rewards : int
        Rewards with a delay, of arms with at least three.
    median_good, median_other : float
        Median delay, in seconds, of rewards better than their arm's median, and of the others; NaN without any.
    """

    z: float
    speaks: bool
    good_first: bool
    n_rewards: int
    median_good: float
    median_other: float


@dataclass(frozen=True)
class Trend:
    """The check for a linear change of rewards over time, within arms.

    Attributes
    ----------
    speaks : bool
        Whether there is evidence of drift.
    change, standard_error : float
        By how much rewards changed from the first decision to the last, the same for all arms.
    change_in_stds : float
        The same in standard deviations of rewards within arms.
    z : float
        `change` over its standard error, as for one look.
    arm_z : tuple of float
        The same for each arm by itself; NaN where it has too few rewards.
    log_evidence : float
        Logarithm of the evidence, valid at all times.
    p_value : float
        Of no drift, valid at all times.
    n_used : int
        Rewards it rests on.
    """

    speaks: bool
    change: float
    standard_error: float
    change_in_stds: float
    z: float
    arm_z: tuple[float, ...]
    log_evidence: float
    p_value: float
    n_used: int


@dataclass(frozen=True)
class SameDifference:
    """The difference of two arms' means over the same people.

    Attributes
    ----------
    arm, other : int or str
        Positions of the arms, or their names in a report: `difference` is the mean of `arm` minus that of `other`.
    difference, standard_error : float
        The difference, and its standard error.
    mean, other_mean : float
        The means it is the difference of.
    low, high : float
        Ends of an interval that holds at all times; infinite until both arms have 30 rewards.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    n_used : int
        Decisions it rests on.
    n_without_reward : int
        Decisions left out because their reward is missing or still to come.
    n_left_out : int
        Decisions left out because an arm was not in play or nearly impossible.
    n_rewards, n_other_rewards : int
        Rewards of the two arms among the decisions used.
    """

    arm: int | str
    other: int | str
    difference: float
    standard_error: float
    mean: float
    other_mean: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float
    n_used: int
    n_without_reward: int
    n_left_out: int
    n_rewards: int
    n_other_rewards: int


@dataclass(frozen=True)
class SameMean:
    """The mean of one arm over the same people as those of all others.

    Attributes
    ----------
    arm : int or str
        Position of the arm; its name in a report.
    mean, standard_error : float
        The mean and its standard error.
    n_used : int
        Decisions it rests on: those at which all arms were in play.
    """

    arm: int | str
    mean: float
    standard_error: float
    n_used: int


@dataclass(frozen=True)
class OverTheSamePeople:
    """Differences over the same people, and what they rest on.

    Attributes
    ----------
    basis : str
        "probabilities" of all arms, "chosen-probabilities", or "periods" where there are none.
    assumes : str
        What this assumes, in words.
    differences : tuple of SameDifference
        One per pair.
    means : tuple of SameMean
        One per arm; empty for periods.
    """

    basis: Basis
    assumes: str
    differences: tuple[SameDifference, ...]
    means: tuple[SameMean, ...]


@dataclass(frozen=True)
class MeanAtEnd:
    """The mean of one arm at the end.

    Attributes
    ----------
    arm : int or str
        Position of the arm; its name in a report.
    mean, standard_error, low, high : float
        The average reward, its standard error, and the ends of the interval; infinite ends say nothing.
    n_used : int
        Rewards it rests on.
    method : str
        "wilson" for rewards of two values, "hall" for skewed ones, else "t"; "none" if nothing can be said.
    """

    arm: int | str
    mean: float
    standard_error: float
    low: float
    high: float
    n_used: int
    method: Method


@dataclass(frozen=True)
class DifferenceAtEnd:
    """The difference of two arms' means at the end.

    Attributes
    ----------
    arm, other : int or str
        Positions of the arms, or their names in a report: `difference` is the mean of `arm` minus that of `other`.
    difference, standard_error, low, high : float
        The difference, its standard error, and the ends of the interval.
    degrees_of_freedom : float
        Of Welch's t; infinite for rewards of two values, whose intervals are Newcombe's.
    p_value : float
        Of no difference, for this pair alone.
    p_adjusted : float
        The same times the number of pairs, if intervals hold together: it is at most 1 - confidence if the interval
        leaves 0 out, and only then.
    method : str
        "newcombe" for rewards of two values, else "welch"; "none" if nothing can be said.
    """

    arm: int | str
    other: int | str
    difference: float
    standard_error: float
    low: float
    high: float
    degrees_of_freedom: float
    p_value: float
    p_adjusted: float
    method: Method


@dataclass(frozen=True)
class ResponseCheck:
    """Whether units of all arms are as likely to have a reward by the end of their window.

    Attributes
    ----------
    arms : tuple of str
    due, answered : tuple of int
        Units whose window has passed, and those of them whose reward was reported in it.
    rate : tuple of float
        The share that answered; NaN where none is due.
    most, least : str
        The arms with the largest and the smallest rate.
    p_value : float
        Of the difference of two rates, the smallest of all pairs, adjusted for their number; it holds at all times.
    """

    arms: tuple[str, ...]
    due: tuple[int, ...]
    answered: tuple[int, ...]
    rate: tuple[float, ...]
    most: str
    least: str
    p_value: float


@dataclass(frozen=True)
class WorstCase:
    """What the mean of an arm can be, whatever the rewards are that are missing.

    Attributes
    ----------
    arm : str
    counted, missing : int
        Rewards that count, and rewards that are missing.
    low_mean, high_mean : float
        The mean if all that are missing were the lowest reward, or the highest; infinite where the range is open.
    low, high : float
        Interval for the mean of all units, valid at all times: the lower end as if all were the lowest, the upper end
        as if all were the highest. Infinite where the range is open.
    """

    arm: str
    counted: int
    missing: int
    low_mean: float
    high_mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Corrections:
    """What corrections of rewards changed.

    Attributes
    ----------
    arms : tuple of str
    corrected : tuple of int
        Rewards that count with another value than the one reported first.
    mean, first_mean : tuple of float
        Means of the rewards that count now, and with the values reported first instead; NaN without rewards.
    """

    arms: tuple[str, ...]
    corrected: tuple[int, ...]
    mean: tuple[float, ...]
    first_mean: tuple[float, ...]

    @property
    def changed(self) -> tuple[float, ...]:
        """By how much the corrections moved each arm's mean."""
        return tuple(now - first for now, first in zip(self.mean, self.first_mean, strict=True))

    def difference_changed(self, arm: str, other: str) -> float:
        """Return by how much they moved the mean of one arm minus that of another."""
        changed = dict(zip(self.arms, self.changed, strict=True))
        return changed[arm] - changed[other]


@dataclass(frozen=True)
class DrawCheck:
    """Evidence against the probabilities on record.

    Attributes
    ----------
    p_value : float
        1 over the largest evidence there ever was. It holds at all times together: with right probabilities it ever
        falls below any level with at most that probability, however often it is looked at.
    log_e_value : float
        Logarithm of the evidence now; its expectation is at most 1, also at a time that depends on the data.
    basis : {"all arms", "chosen arm"}
        Which probabilities there were. With those of the chosen arm only, an arm shows that is chosen too often, not
        one that is chosen too seldom: then others are chosen too often.
    n_decisions, n_drawn : int
        Decisions, and those in which more than one arm could be chosen. Without the latter the check says nothing.
    arm : str
        The arm with most evidence.
    observed, expected : float
        How often it was chosen, and how often by the probabilities. For an attribute that is a number: the mean of the
        units with the arm, and the mean that they should have. With the probabilities of the chosen arm only: the sum
        of the arm's inverse probabilities, and the number of decisions, which is its expectation.
    attribute, group : str or None
        The attribute whose balance was checked, and the group with most evidence.
    """

    p_value: float
    log_e_value: float
    basis: str
    n_decisions: int
    n_drawn: int
    arm: str
    observed: float
    expected: float
    attribute: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class AdjustedMean:
    """The mean of an arm, had it been assigned units like those of the whole experiment.

    Attributes
    ----------
    arm : int or str
        Position of the arm; its name in a report.
    mean, standard_error : float
        The adjusted mean and its standard error.
    plain_mean : float
        The average reward as it is.
    residual_std : float
        Standard deviation of rewards that the attributes leave; with the means, input of evidence about differences.
    degrees_of_freedom : float
        Of that standard deviation.
    low, high : float
        Ends of an interval that holds at all times; infinite until the arm has 30 rewards.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    n_used : int
        Units it rests on.
    """

    arm: int | str
    mean: float
    standard_error: float
    plain_mean: float
    residual_std: float
    degrees_of_freedom: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float
    n_used: int


@dataclass(frozen=True)
class AdjustedDifference:
    """The difference of two adjusted means.

    Attributes
    ----------
    arm, other : int or str
        Positions of the arms, or their names in a report: `difference` is the mean of `arm` minus that of `other`.
    difference, standard_error, degrees_of_freedom : float
        The difference, its standard error, and Welch's degrees of freedom.
    plain_difference : float
        The difference of plain means.
    low, high : float
        Ends of an interval that holds at all times; infinite until both arms have 30 rewards.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    """

    arm: int | str
    other: int | str
    difference: float
    standard_error: float
    degrees_of_freedom: float
    plain_difference: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float


@dataclass(frozen=True)
class Adjusted:
    """Means and differences adjusted for attributes.

    Attributes
    ----------
    columns : tuple of str
        What was adjusted for.
    coefficients : tuple of float
        By how much a reward grows with each column, within arms.
    explained : float
        Which part of the variance within arms the columns explain; intervals are narrower by sqrt(1 - explained).
    means : tuple of AdjustedMean
        One per arm.
    differences : tuple of AdjustedDifference
        One per pair.
    """

    columns: tuple[str, ...]
    coefficients: tuple[float, ...]
    explained: float
    means: tuple[AdjustedMean, ...]
    differences: tuple[AdjustedDifference, ...]


@dataclass(frozen=True)
class GroupMean:
    """The mean of one arm within one group.

    Attributes
    ----------
    group : str
        Value of the attribute.
    arm : int or str
        Position of the arm; its name in a report.
    mean, standard_error : float
        The average reward and its standard error.
    shrunken : float
        The mean moved towards that of all groups, by the part of it that is noise.
    low, high : float
        Ends of an interval that holds at all times.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    n_used : int
        Rewards it rests on.
    """

    group: str
    arm: int | str
    mean: float
    standard_error: float
    shrunken: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float
    n_used: int


@dataclass(frozen=True)
class GroupDifference:
    """The difference of two arms within one group.

    Attributes
    ----------
    group : str
        Value of the attribute.
    arm, other : int or str
        Positions of the arms, or their names in a report: `difference` is the mean of `arm` minus that of `other`.
    difference, standard_error : float
        The difference and its standard error.
    shrunken : float
        The difference moved towards that of all groups, by the part of it that is noise.
    low, high : float
        Ends of an interval that holds at all times.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    n_used : int
        Rewards it rests on.
    """

    group: str
    arm: int | str
    other: int | str
    difference: float
    standard_error: float
    shrunken: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float
    n_used: int


@dataclass(frozen=True)
class Interaction:
    """By how much the difference of two arms is larger in one group than in all others.

    Attributes
    ----------
    attribute, group : str
        The attribute and the group's value of it; with two groups there is one interaction, of the second.
    arm, other : int or str
        Positions of the arms, or their names in a report.
    difference, standard_error : float
        The difference in the group minus that in the others, and its standard error.
    low, high : float
        Ends of an interval that holds at all times.
    low_at_end, high_at_end : float
        Ends of a narrower one, for a single look at a time fixed beforehand.
    p_value : float
        Of no interaction, valid at all times, for this one alone.
    is_discovery : bool
        Whether it is among the discoveries, at most a stated share of which is false on average.
    """

    attribute: str
    group: str
    arm: int | str
    other: int | str
    difference: float
    standard_error: float
    low: float
    high: float
    low_at_end: float
    high_at_end: float
    p_value: float
    is_discovery: bool


@dataclass(frozen=True)
class Subgroups:
    """Arms within the groups of one attribute.

    Attributes
    ----------
    attribute : str
        Its name.
    groups : tuple of str
        Its values.
    means : tuple of GroupMean
        One per group and arm; the intervals hold together.
    differences : tuple of GroupDifference
        One per group and pair; the intervals hold together.
    interactions : tuple of Interaction
        One per group and pair; the intervals hold together.
    n_left_out : int
        Units with a reward of which the attribute is not known.
    """

    attribute: str
    groups: tuple[str, ...]
    means: tuple[GroupMean, ...]
    differences: tuple[GroupDifference, ...]
    interactions: tuple[Interaction, ...]
    n_left_out: int


@dataclass(frozen=True)
class Winner:
    """The arm with the best mean, and what its mean is worth after the luck of being best.

    Attributes
    ----------
    arm : str
        Its name.
    mean, standard_error : float
        Of its rewards.
    shrunken : float
        The mean, shrunk towards those of the other arms as far as the differences may be luck. Quote this one.
    low, high : float or None
        The arm's interval, which holds for whichever arm is looked at.
    """

    arm: str
    mean: float
    standard_error: float
    shrunken: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class AtEnd:
    """Intervals of ordinary width, for a number of people declared beforehand.

    Attributes
    ----------
    refused : tuple of str
        Why there are none; empty if there are.
    means, differences : tuple of records
        Of the arms, and between them; those of one kind hold together.
    """

    refused: tuple[str, ...]
    means: tuple[MeanAtEnd, ...]
    differences: tuple[DifferenceAtEnd, ...]


@dataclass(frozen=True)
class Check:
    """One check of what the numbers assume.

    Attributes
    ----------
    name : str
        What was checked, for programs.
    speaks : bool
        Whether it found something.
    sentence : str
        What it found, and what follows.
    p_value : float or None
        Of there being nothing, where it is a test.
    """

    name: str
    speaks: bool
    sentence: str
    p_value: float | None = None


@dataclass(frozen=True)
class Report:
    """Everything that can be said of an experiment, from its decisions and rewards.

    Attributes
    ----------
    name, at : str and datetime, or None
        The experiment, and when the report was made.
    direction : str
        "maximise" if large rewards are good, otherwise "minimise".
    confidence : float
        Of all intervals of one kind together.
    n_decisions, n_rewarded : int
        Units assigned, and those with a reward that counts.
    since, until : datetime or None
        The time of the first decision, and of the last thing known.
    sentences : tuple of str
        What may be said, in plain words, the most important first.
    comparison : Comparison
        Arms and differences, valid at all times.
    checks : tuple of Check
        What the numbers assume, checked.
    at_end : AtEnd
        Intervals of ordinary width, or why there are none.
    trend : Trend
        Whether rewards change over time.
    same_people : OverTheSamePeople or None
        Differences over the same people, which a change over time does not bias.
    worst_cases : tuple of WorstCase
        What means can be, whatever the missing rewards are; empty if none is missing.
    winner : Winner or None
        The arm with the best mean; None with one arm, or before every arm has two rewards.
    adjusted : Adjusted or None
        Means and differences without the effect of the covariates, if there are any.
    subgroups : tuple of Subgroups
        One for each attribute to split by that was declared before there were data.
    explored : tuple of Interaction
        Of attributes that were not: where a difference between arms differs between groups. Exploratory.
    responses, corrections, draws, balance, news
        What the checks rest on; None where they say nothing.
    notes : tuple of str
        What could not be had, and why.
    """

    name: str | None
    at: datetime | None
    direction: str
    confidence: float
    n_decisions: int
    n_rewarded: int
    since: datetime | None
    until: datetime | None
    sentences: tuple[str, ...]
    comparison: Comparison
    checks: tuple[Check, ...]
    at_end: AtEnd
    trend: Trend
    same_people: OverTheSamePeople | None
    worst_cases: tuple[WorstCase, ...]
    responses: ResponseCheck | None
    corrections: Corrections | None
    draws: DrawCheck | None
    balance: tuple[DrawCheck, ...]
    news: NewsCheck | None
    winner: Winner | None
    adjusted: Adjusted | None
    subgroups: tuple[Subgroups, ...]
    explored: tuple[Interaction, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold: numbers that are not finite become None."""
        found: dict[str, Any] = plain(self)
        return found

    def to_frame(self) -> Any:
        """Return a polars frame with one row per arm and per difference of every section.

        The column `section` says which; `estimate` is a mean, or the mean of `arm` minus that of `other`.

        Examples
        --------
        >>> import equipoise as eq
        >>> report = eq.analyse({"arm": ["a", "b"] * 200, "reward": [0, 1, 1, 1] * 100}, reward_range=(0, 1))
        >>> report.to_frame().select("section", "arm", "other", "n", "estimate").rows()[:3]
        [('arms', 'a', None, 200, 0.5), ('arms', 'b', None, 200, 1.0), ('differences', 'a', 'b', None, -0.5)]
        """
        from equipoise.analysis.result_tables import ROW_COLUMNS, frame_of, report_rows

        return frame_of(report_rows(self), ROW_COLUMNS)

    def __str__(self) -> str:
        """Return what may be said, what was checked, and tables, as the command prints them."""
        from equipoise.analysis.result_tables import report_sections, text_of

        return text_of(report_sections(self))

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        from equipoise.analysis.result_tables import html_of, report_sections

        return html_of(report_sections(self))


def plain(value: Any) -> Any:
    """Return records as plain data that JSON can hold."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
