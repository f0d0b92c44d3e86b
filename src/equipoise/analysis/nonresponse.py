"""Say what missing rewards can do: whether arms differ in silence, the worst case, and what corrections changed."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise._types import IntArray
from equipoise.analysis.comparisons import compare
from equipoise.analysis.evidence import TIGHTEST_AT, Evidence, RewardRange
from equipoise.analysis.observations import Observations
from equipoise.analysis.results import Corrections, ResponseCheck, WorstCase
from equipoise.errors import InvalidInput
from equipoise.stats import ArmStats
from equipoise.unit_lifecycle import DROPPED, GONE, IN_ESTIMATES, LATE_DROPPED, OVERDUE, WAITING


def missing_rewards(observations: Observations) -> NDArray[np.bool_]:
    """Return which units are without a reward in a way that may depend on what it would have been: an array (n,).

    They are those overdue, dropped or withdrawn. Those still waiting are among them if rewards count as they come;
    where they are held back, all units of the same age are waiting, whatever their rewards. In a data frame they are
    the rows without a reward.
    """
    if observations.state is None:
        return ~observations.counted
    missing: NDArray[np.bool_] = np.isin(observations.state, (DROPPED, LATE_DROPPED, GONE))
    if observations.default is None:
        missing |= observations.state == OVERDUE
    if not observations.hold:
        missing |= observations.state == WAITING
    return missing


def check_responses(observations: Observations) -> ResponseCheck | None:
    """Test whether arms differ in how many rewards come; None if no unit is past its window, or there is none.

    A unit whose window has passed counts 1 if its reward was reported in it, else 0, and the rates are compared like
    means of any rewards from 0 to 1. In a data frame every row counts.

    Examples
    --------
    >>> frame = {"arm": ["a", "b"] * 200, "reward": [0.5, 0.5, 0.5, None] * 100}
    >>> found = check_responses(Observations.from_frame(frame))
    >>> found.rate, found.least, found.p_value < 1e-6
    ((1.0, 0.5), 'b', True)
    """
    due, answered = _responses(observations)
    n_due, n_answered = observations.per_arm(due), observations.per_arm(due & answered)
    seen = np.flatnonzero(n_due).tolist()
    if not seen:
        return None
    rate = np.full(observations.n_arms, np.nan)
    rate[seen] = n_answered[seen] / n_due[seen]
    p_value = 1.0
    if len(seen) > 1:
        counts, rates = n_due[seen], rate[seen]
        std = np.sqrt(rates * (1 - rates) * counts / np.maximum(counts - 1, 1))
        evidence = Evidence.from_summary(counts, rates, std, reward_range=(0, 1))
        pairs = compare(evidence, [observations.arms[i] for i in seen]).differences
        p_value = min(pair.p_adjusted for pair in pairs)
    return ResponseCheck(
        arms=observations.arms,
        due=tuple(n_due.astype(int).tolist()),
        answered=tuple(n_answered.astype(int).tolist()),
        rate=tuple(rate.tolist()),
        most=observations.arms[int(np.nanargmax(rate))],
        least=observations.arms[int(np.nanargmin(rate))],
        p_value=p_value,
    )


def _responses(observations: Observations) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which units should have a reward by now, and which have one that came in time."""
    if observations.state is None:
        return np.ones(observations.n_decisions, bool), observations.counted
    at, rewarded_at, window = observations.at, observations.rewarded_at, observations.window_seconds
    if at is None or rewarded_at is None or window is None or observations.until is None:
        return np.zeros(observations.n_decisions, bool), observations.counted
    # Instants are whole microseconds; half of one absorbs the rounding of seconds.
    return at + window <= observations.until + 5e-7, rewarded_at <= at + window + 5e-7


def worst_cases(
    stats: ArmStats,
    arms: tuple[str, ...],
    missing: ArrayLike,
    *,
    reward_range: RewardRange,
    failure_probability: ArrayLike,
    sign: float = 1.0,
    tightest_at: float = TIGHTEST_AT,
) -> tuple[WorstCase, ...]:
    """Return what each arm's mean can be whatever the missing rewards are (Manski's bounds), a function of sums.

    The interval of all units lies within, if those that are missing had the lowest reward or the highest. So it holds
    for any dependence of what is missing on what it would have been.

    Parameters
    ----------
    stats : ArmStats
        Sums of the rewards that count.
    arms : tuple of str
        Names of the arms.
    missing : int array (n_arms,)
        How many rewards are missing of each arm; see `missing_rewards`.
    reward_range : pair
        The lowest and the highest reward, None for an open end.
    failure_probability : float or array (n_arms,)
        Of each arm's interval.
    sign : float, default 1.0
        -1 if the statistics are of rewards times -1.
    tightest_at : float, default 500
        Number of rewards per arm at which to be most precise.

    References
    ----------
    Manski (1990). Nonparametric bounds on treatment effects. American Economic Review 80.

    Examples
    --------
    >>> stats = ArmStats(2)
    >>> for arm, reward in [(0, 1.0), (0, 0.0), (1, 1.0)] * 100:
    ...     stats.update(arm, reward)
    >>> for found in worst_cases(stats, ("a", "b"), [50, 0], reward_range=(0, 1), failure_probability=0.05):
    ...     print(found.arm, found.low_mean, found.high_mean, round(found.low, 2), round(found.high, 2))
    a 0.4 0.6 0.3 0.7
    b 1.0 1.0 0.95 1.0
    """
    count = np.asarray(missing, np.int64)
    low_end, high_end = (None, None) if reward_range is None else reward_range
    ends = []
    for end, reading, open_end in ((low_end, 0, -math.inf), (high_end, 1, math.inf)):
        filled = stats if end is None else with_rewards(stats, count, sign * end)
        evidence = Evidence.of(filled, reward_range=reward_range, sign=sign, tightest_at=tightest_at)
        interval = evidence.intervals(failure_probability)[reading]
        unbounded = (count > 0) & (end is None)
        ends.append([np.where(unbounded, open_end, values) for values in (evidence.mean, interval)])
    (low_mean, low), (high_mean, high) = ends
    return tuple(
        WorstCase(
            arm=name,
            counted=int(stats.pulls[i]),
            missing=int(count[i]),
            low_mean=float(low_mean[i]),
            high_mean=float(high_mean[i]),
            low=float(low[i]),
            high=float(high[i]),
        )
        for i, name in enumerate(arms)
    )


def with_rewards(stats: ArmStats, count: IntArray, reward: float) -> ArmStats:
    """Return statistics with one reward counted that many times more for each arm.

    Examples
    --------
    >>> with_rewards(ArmStats(2), np.array([3, 0]), 0.5).mean
    array([0.5, nan])
    """
    found, power = stats, ArmStats(1)
    power.update(0, reward)
    for bit in range(int(count.max(initial=0)).bit_length()):
        part = ArmStats(stats.n_arms)
        for arm in np.flatnonzero(count >> bit & 1).tolist():
            part.put(arm, 0, int(power.pulls[0]), power.sums[:, 0].tolist(), power.exact_sums(0))
        found, power = found.merge(part), power.merge(power)  # sums are exact, so doubling them has no rounding
    return found


def tipping_point(n_units: int, total: float, n_missing: int, other_mean: float) -> float:
    """Return the mean of an arm's missing rewards at which the arm's mean equals another's.

    If it lies outside of the range of rewards, missing rewards cannot turn the comparison round.

    Parameters
    ----------
    n_units : int
        The arm's units, with those whose reward is missing.
    total : float
        The sum of its rewards that count.
    n_missing : int
        How many are missing.
    other_mean : float
        The mean to compare with.

    Examples
    --------
    80 of 100 answered and 40 said yes: 0.5 against 0.4. If no one of the other 20 would have, the arms are equal.

    >>> tipping_point(100, 40.0, 20, 0.4)
    0.0
    """
    if not 0 < n_missing <= n_units:
        raise InvalidInput.of("n_missing", "must be from 1 to n_units", n_missing)
    return (n_units * other_mean - total) / n_missing


def corrections(observations: Observations) -> Corrections | None:
    """Return what corrections changed; None where first rewards are not known.

    Examples
    --------
    >>> rewards = {"reward": [0.5, 1.0, 0.5], "first_reward": [0.5, 10.0, 0.5]}
    >>> found = corrections(Observations(arms=("a", "b"), arm=[0, 0, 1], **rewards))
    >>> found.corrected, found.mean, found.first_mean, found.difference_changed("a", "b")
    ((1, 0), (0.75, 0.5), (5.25, 0.5), -4.5)
    """
    if observations.first_reward is None:
        return None
    counted, reward, first = observations.counted, observations.reward, np.asarray(observations.first_reward)
    # A reward that came too late does not replace the default that counts.
    own = counted & ~np.isnan(first)
    if observations.state is not None:
        own &= observations.state == IN_ESTIMATES
    changed = own & (first != reward)
    count = observations.per_arm(counted)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = observations.per_arm(counted, reward) / count
        first_mean = observations.per_arm(counted, np.where(changed, first, reward)) / count
    return Corrections(
        observations.arms,
        tuple(observations.per_arm(changed).astype(int).tolist()),
        tuple(mean.tolist()),
        tuple(first_mean.tolist()),
    )
