"""Test whether rewards that are good, or those of some arms, come faster: without holding back, that misleads."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.observations import Observations
from equipoise.analysis.results import NewsCheck
from equipoise.unit_lifecycle import GONE

SPEAKS_AT = 3.9
"""Size of z from which a check speaks: 1 in 10,000 by chance, so that it may be looked at now and then."""

_MOST_AGES = 1_000


@dataclass(frozen=True)
class ArrivalCheck:
    """Whether the rewards of some arms come faster, or more of them come.

    Attributes
    ----------
    z : tuple of float
        By arm, of a log-rank test against the others; positive if its rewards come faster. NaN without units.
    speaks : bool
        Whether one is larger than chance explains, with an allowance for their number.
    arms : tuple of str
    fastest, slowest : str
        The arms with the largest and the smallest z.
    age : float array (ages,)
        Ages of units, in seconds.
    reported : float array (arms, ages)
        Share of each arm's units whose reward has been reported by each age (Kaplan-Meier); NaN beyond the oldest
        unit, unless all have been reported.
    """

    z: tuple[float, ...]
    speaks: bool
    arms: tuple[str, ...]
    fastest: str
    slowest: str
    age: FloatArray
    reported: FloatArray

    def reported_by(self, age: float) -> FloatArray:
        """Return the share of each arm's units whose reward has been reported by an age: an array (arms,)."""
        place = int(np.searchsorted(self.age, age, side="right"))
        return np.zeros(len(self.arms)) if place == 0 else self.reported[:, place - 1]


def check_news(observations: Observations) -> NewsCheck | None:
    """Test whether delay and reward are related within arms; None without times of decisions and rewards.

    Spearman's rank correlation r of each arm with n rewards has variance 1 / (n - 1) if they are not, and the arms add
    up: ``z = sum r (n - 1) / sqrt(sum (n - 1))``. Rewards are those reported first, before corrections.

    Examples
    --------
    >>> frame = {"arm": ["a", "b"] * 30, "reward": [1, 1, 0, 0] * 15, "at": range(60), "told": [*range(60)]}
    >>> frame["told"] = [at + (1 if reward else 5) for at, reward in zip(frame["at"], frame["reward"])]
    >>> found = check_news(Observations.from_frame(frame, at="at", rewarded_at="told"))
    >>> round(found.z, 2), found.good_first, found.median_good, found.median_other
    (-7.62, True, 1.0, 5.0)
    """
    if observations.at is None or observations.rewarded_at is None:
        return None
    reward = observations.reward if observations.first_reward is None else observations.first_reward
    delay = observations.rewarded_at - observations.at
    usable = ~np.isnan(reward) & ~np.isnan(delay)
    total, weight, n_rewards = 0.0, 0, 0
    good: list[FloatArray] = []
    other: list[FloatArray] = []
    for arm in range(observations.n_arms):
        here = usable & (observations.arm == arm)
        delays, rewards = delay[here], observations.sign * reward[here]
        if delays.size < 3:
            continue
        n_rewards += delays.size
        first, second = (ranks - ranks.mean() for ranks in (_ranks(delays), _ranks(rewards)))
        spread = float(np.sqrt((first @ first) * (second @ second)))
        if spread > 0:
            total += float(first @ second) / spread * (delays.size - 1)
            weight += delays.size - 1
        # With yes and no, the median is one of them, and the better half is whatever lies above the other.
        middle = np.median(rewards)
        better = rewards > middle if (rewards > middle).any() else rewards >= middle
        if better.all():
            continue
        good.append(delays[better])
        other.append(delays[~better])
    if weight == 0:
        return None
    signed = total / np.sqrt(weight)
    z = observations.sign * signed
    medians = [float(np.median(np.concatenate(parts))) if parts else np.nan for parts in (good, other)]
    return NewsCheck(float(z), bool(abs(z) > SPEAKS_AT), bool(signed < 0), n_rewards, *medians)


def check_arrivals(observations: Observations) -> ArrivalCheck | None:
    """Test whether units of all arms are as likely to have their reward reported at any age; None without times.

    A unit's age counts from its assignment until its first reward, or until the data were read. Of the units that are
    waiting at an age, those reported at it should be spread over the arms by chance (log-rank test). Ages are grouped
    at a thousand quantiles if there are more.

    References
    ----------
    Mantel (1966). Evaluation of survival data and two new rank order statistics. Cancer Chemotherapy Reports 50.

    Examples
    --------
    >>> frame = {"arm": ["a", "b"] * 40, "reward": [1.0] * 80, "at": [0] * 80, "told": [1, 3, 2, 4] * 20}
    >>> found = check_arrivals(Observations.from_frame(frame, at="at", rewarded_at="told"))
    >>> found.fastest, [round(z, 2) for z in found.z], found.reported_by(2)
    ('a', [8.94, -8.94], array([1., 0.]))
    """
    if observations.at is None or observations.rewarded_at is None or observations.until is None:
        return None
    age = observations.rewarded_at - observations.at
    told = ~np.isnan(age)
    arm, oldest = observations.arm, observations.until - observations.at
    if observations.state is not None:  # a unit withdrawn before its reward could not report one any more
        kept = told | (observations.state != GONE)
        age, told, arm, oldest = age[kept], told[kept], arm[kept], oldest[kept]
    ages = np.unique(age[told])
    if not ages.size:
        return None
    if ages.size > _MOST_AGES:
        ages = np.unique(np.quantile(age[told], np.linspace(0, 1, _MOST_AGES + 1)[1:], method="higher"))
    n_arms, n_ages = observations.n_arms, ages.size
    # The ages that a unit has lived through to their ends: whatever happened to it later, also in the same group of
    # ages, is left out for all units alike.
    lived = np.searchsorted(ages, oldest, side="right")
    group = np.where(told, np.searchsorted(ages, np.where(told, age, 0.0), side="left"), n_ages)
    seen = group < lived
    leaves = np.where(seen, group + 1, lived)
    events = _table(arm[seen], group[seen], n_arms, n_ages)
    left = _table(arm, leaves, n_arms, n_ages + 1)
    at_risk = left.sum(axis=1)[:, None] - np.cumsum(left, axis=1)[:, :n_ages]
    all_events, all_at_risk = events.sum(axis=0), at_risk.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = at_risk / all_at_risk
        expected = np.nansum(all_events * share, axis=1)
        left_over = np.where(all_at_risk > 1, (all_at_risk - all_events) / (all_at_risk - 1), 0.0)
        variance = np.nansum(all_events * share * (1 - share) * left_over, axis=1)
        z = (events.sum(axis=1) - expected) / np.sqrt(variance)
        waiting = np.cumprod(np.where(at_risk > 0, 1 - events / at_risk, 1.0), axis=1)
    reported = np.where((at_risk == 0) & (waiting > 0), np.nan, 1 - waiting)
    z[variance <= 0] = np.nan
    if np.isnan(z).all():
        return None
    compared = np.count_nonzero(~np.isnan(z))
    normal = NormalDist()
    limit = -normal.inv_cdf(normal.cdf(-SPEAKS_AT) / (1 if compared == 2 else compared))
    fastest, slowest = int(np.nanargmax(z)), int(np.nanargmin(z))
    return ArrivalCheck(
        tuple(z.tolist()),
        bool(np.nanmax(np.abs(z)) > limit),
        observations.arms,
        observations.arms[fastest],
        observations.arms[slowest],
        ages,
        reported,
    )


def _ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 1, averaged over ties."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return np.asarray((last - (count - 1) / 2.0)[place])


def _table(arm: IntArray, column: IntArray, n_arms: int, n_columns: int) -> FloatArray:
    """Return how often each arm comes with each column: an array (arms, columns)."""
    counts = np.bincount(arm * n_columns + column, minlength=n_arms * n_columns)
    return counts.reshape(n_arms, n_columns).astype(np.float64)
