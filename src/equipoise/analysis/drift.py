"""Notice that rewards change over time, and compare arms over the same people when they do.

A policy that adapts assigns different arms at different times. Where the level of rewards changes, plain means are then
about different people, and their differences are wrong however many there are. `trend` notices; differences of weighted
scores (`kernels.weighted_scores`) stay right, as every arm is judged at the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.analysis.fixed_sample import PER_SQUARED_SKEWNESS_OF_DIFFERENCES, compared_pairs
from equipoise.analysis.results import Basis, OverTheSamePeople, SameDifference, SameMean, Trend
from equipoise.analysis.t_quantiles import upper_quantile
from equipoise.errors import InvalidInput
from equipoise.theory.assumptions import checked_probability

FALSE_ALARMS = 0.01
"""The check for drift speaks without one in at most this share of experiments, however often it is looked at."""

LEAST_PROBABILITY = 0.001
"""Decisions at which an arm had less are left out: a single reward would count for a thousand."""

FEWEST = 30
"""Rewards of both arms from which on there is an interval that holds at all times; more if they are skewed."""

ASSUMES: dict[Basis, str] = {
    "probabilities": "Units are independent of each other, and the probabilities of all arms are those that were used.",
    "chosen-probabilities": (
        "Units are independent of each other, and the probabilities are those that were used. As only those of the "
        "chosen arms are known, all decisions weigh the same, and intervals are wider than they need be."
    ),
    "periods": (
        "Within a period neither the level of rewards nor the shares of the arms changed. Where shares follow rewards "
        "within periods, as they do in adaptive experiments, the differences are biased: use logged probabilities."
    ),
}
"""What each basis assumes, in words."""

# The check mixes over how steep the trend may be: each part is best at one number of rewards. Information about a slope
# grows with the cube of that number, and the 11.5 is what a failure probability of 1 % asks for, as in `t_mixture`.
_TREND_COUNTS = 32.0 * 4.0 ** np.arange(10, dtype=np.float64)
_TREND_PRECISION = _TREND_COUNTS**3 / 12.0 / 11.5
_AWAY = np.log(_TREND_COUNTS / 2_000.0) / math.log(4.0)
_TREND_LOG_WEIGHT = -np.log1p(0.25 * _AWAY**2)
_TREND_LOG_WEIGHT -= math.log(float(np.exp(_TREND_LOG_WEIGHT).sum()))


def trend(arm: ArrayLike, reward: ArrayLike, *, n_arms: int | None = None, false_alarms: float = FALSE_ALARMS) -> Trend:
    """Return whether rewards change over time within arms.

    The statistic is a pooled slope: arms weigh by how well theirs is known. Half of the evidence is about one change
    that all arms share, the other half about changes of single arms. Both mix over how steep the trend may be, so the
    check may be looked at every day: without drift it ever speaks in at most one of a hundred experiments.

    Parameters
    ----------
    arm : array (n_decisions,)
        The arm chosen at each decision, in the order of decisions, which is taken for the time.
    reward : array (n_decisions,)
        Its reward, NaN where it is missing or still to come.
    n_arms : int, optional
        Number of arms; by default as many as occur.
    false_alarms : float, default 0.01
        Share of experiments without drift in which it may ever speak.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arm = rng.integers(2, size=1_000)
    >>> steady = trend(arm, rng.normal(arm, 1.0))
    >>> steady.speaks, round(steady.p_value, 2)
    (False, 1.0)
    >>> rising = trend(arm, rng.normal(arm + np.linspace(0, 1, 1_000), 1.0))
    >>> rising.speaks, round(rising.change, 2), round(rising.standard_error, 2)
    (True, 0.98, 0.11)
    """
    from equipoise.kernels.weighted_scores import PRODUCTS, REWARD_SQUARES, TIME_SQUARES, TREND_ROWS, N, add_to_trends

    arms, rewards, n = _columns(arm, reward, n_arms)
    allowed = checked_probability(false_alarms)
    sums = np.zeros((TREND_ROWS, n))
    add_to_trends(arms, rewards, np.arange(arms.size, dtype=np.float64), sums)
    counts = sums[N]
    known = (counts > 2) & (sums[TIME_SQUARES] > 0) & (sums[REWARD_SQUARES] > 0)
    variance = np.where(known, sums[REWARD_SQUARES] / np.maximum(counts - 1, 1), np.nan)
    # An arm whose spread is only rounding error would outweigh all others.
    known &= variance > 1e-18 * np.nanmax(np.append(variance, 0.0))
    own_z = np.full(n, np.nan)
    n_used = int(counts.sum())
    if not known.any():
        return Trend(False, math.nan, math.inf, math.nan, 0.0, tuple(own_z.tolist()), 0.0, 1.0, n_used)
    clock = sums[TIME_SQUARES][known]
    own_z[known] = sums[PRODUCTS][known] / np.sqrt(variance[known] * clock)
    precision = float((clock / variance[known]).sum())
    slope = float((sums[PRODUCTS][known] / variance[known]).sum()) / precision
    z = slope * math.sqrt(precision)
    freedom = float(counts[known].sum()) - known.sum() - 1
    parts = [_log_trend_evidence(z, float(clock.sum()), freedom)]
    parts += [
        _log_trend_evidence(one, own, count - 2)
        for one, own, count in zip(own_z[known], clock, counts[known], strict=True)
    ]
    shares = np.array([0.5, *([0.5 / (len(parts) - 1)] * (len(parts) - 1))])
    largest = max(parts)
    log_evidence = largest + math.log(float((shares * np.exp(np.array(parts) - largest)).sum()))
    span = max(arms.size - 1, 1)
    # The standard deviation within arms, weighed as the slopes are.
    std = math.sqrt(float(clock.sum()) / precision)
    return Trend(
        speaks=log_evidence >= -math.log(allowed),
        change=slope * span,
        standard_error=span / math.sqrt(precision),
        change_in_stds=slope * span / std,
        z=z,
        arm_z=tuple(own_z.tolist()),
        log_evidence=log_evidence,
        p_value=math.exp(-max(log_evidence, 0.0)),
        n_used=n_used,
    )


def _log_trend_evidence(z: float, clock: float, freedom: float) -> float:
    """Return the log evidence of a slope: a t mixture over slopes, mixed over their sizes."""
    square = z * z / freedom
    r = _TREND_PRECISION / (_TREND_PRECISION + clock)
    parts = _TREND_LOG_WEIGHT + 0.5 * np.log(r) + 0.5 * (freedom + 1) * (math.log1p(square) - np.log1p(r * square))
    largest = float(parts.max())
    return largest + math.log(float(np.exp(parts - largest).sum()))


def over_the_same_people(
    arm: ArrayLike,
    reward: ArrayLike,
    probability: ArrayLike | None = None,
    *,
    counted_after: ArrayLike | None = None,
    n_arms: int | None = None,
    control: int | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    in_play: ArrayLike | None = None,
    failure_probability: float = 0.05,
    simultaneous: bool = True,
    n_periods: int = 10,
) -> OverTheSamePeople:
    """Return differences between arms over the same people, which a drift does not bias.

    Each estimates the average over decisions of the difference between two arms, with the same weights for both; more
    weight goes to decisions at which both were probable. A decision whose reward is missing is left out for both arms:
    right if missing rewards depend on time but not on the arm or the reward.

    Parameters
    ----------
    arm : array (n_decisions,)
        The arm chosen at each decision, in the order of decisions.
    reward : array (n_decisions,)
        Its reward, NaN where it is missing or still to come.
    probability : array (n_decisions, n_arms) or (n_decisions,), optional
        The probabilities of all arms at each decision, 0 or NaN for an arm that was not in play; or of the chosen arm
        only. Without them, means per period are compared: see `ASSUMES`.
    counted_after : array of int (n_decisions,), optional
        How many decisions had been taken when the reward was counted in the estimates, -1 if it never was. By default
        every reward was counted before the next decision.
    n_arms : int, optional
        Number of arms; by default as many as have probabilities, or as occur.
    control : int, optional
        The arm that all others are compared with.
    pairs : sequence of pairs, optional
        The pairs (arm, other) to compare. Without both, all pairs are compared, later arms with earlier ones.
    in_play : array of int (2, n_arms), optional
        First decision at which each arm was in play, and the first at which it no longer was. Where only the chosen
        arm's probability is known, the first is by default the one after its first assignment.
    failure_probability : float, default 0.05
        That some interval misses; of each interval if they need not hold together.
    simultaneous : bool, default True
        Whether all intervals hold together (Bonferroni).
    n_periods : int, default 10
        Without probabilities: how many periods of equally many decisions.

    References
    ----------
    Robins, Rotnitzky, Zhao (1994), J. Am. Stat. Assoc. 89. Hadad, Hirshberg, Zhan, Wager, Athey (2021), PNAS 118, for
    weights that stabilise the variance; theirs differ between arms.

    Examples
    --------
    The second arm is better by 0.1, but was mostly assigned early, when rewards were low:

    >>> rng = np.random.default_rng(1)
    >>> early = np.arange(4_000) < 2_000
    >>> probability = np.column_stack([np.where(early, 0.2, 0.8), np.where(early, 0.8, 0.2)])
    >>> arm = (rng.random(4_000) < probability[:, 1]).astype(int)
    >>> reward = rng.normal(np.where(early, 0.0, 1.0) + 0.1 * arm, 0.3)
    >>> print(round(reward[arm == 1].mean() - reward[arm == 0].mean(), 2))
    -0.49
    >>> [found] = over_the_same_people(arm, reward, probability).differences
    >>> round(found.difference, 2), round(found.low, 2), round(found.high, 2)
    (0.09, 0.05, 0.13)
    """
    chances = None if probability is None else _numbers("probability", probability)
    if n_arms is None and chances is not None and chances.ndim == 2:
        n_arms = chances.shape[1]
    arms, rewards, n = _columns(arm, reward, n_arms)
    compared = np.array(compared_pairs(n, control=control, pairs=pairs), dtype=np.int64).reshape(-1, 2)
    delta = checked_probability(failure_probability) / (max(len(compared), 1) if simultaneous else 1)
    if chances is None:
        periods = checks.whole_number("n_periods", n_periods, 1)
        found = _by_period(arms, rewards, compared, delta, periods)
        return OverTheSamePeople("periods", ASSUMES["periods"], found, ())
    chances = _checked_probabilities(chances, arms, n)
    return _scored(arms, rewards, chances, counted_after, _in_play(in_play, arms, n, chances), compared, delta)


def _scored(
    arms: IntArray,
    rewards: FloatArray,
    chances: FloatArray,
    counted_after: ArrayLike | None,
    in_play: IntArray,
    compared: IntArray,
    delta: float,
) -> OverTheSamePeople:
    """Return the differences of weighted scores."""
    from equipoise.kernels import weighted_scores as kernel

    n_arms = in_play.shape[1]
    counted, order = _counting(counted_after, rewards)

    def fresh() -> tuple[FloatArray, FloatArray, FloatArray]:
        return np.zeros((n_arms, kernel.LATEST)), np.zeros((kernel.FORECAST_ROWS, n_arms)), np.zeros(n_arms)

    # Without the common level, sums of squares lose no digits.
    seen = rewards[~np.isnan(rewards)]
    level = float(seen.mean()) if seen.size else 0.0
    centred = rewards - level
    latest, state, forecast = fresh()
    kernel.measure_noise(arms, centred, order, latest, state, forecast)
    enough = state[kernel.N_COUNTED] > 1
    variance = np.where(enough, state[kernel.SQUARES] / np.maximum(state[kernel.N_COUNTED] - 1, 1), np.nan)
    typical = float(np.nanmean(variance)) if enough.any() else 0.0
    # Only the weights depend on it, so an arm whose rewards were all the same, or are unknown, may have a rough one.
    typical = typical if typical > 0 else 1.0
    variance = np.where(enough, np.maximum(variance, 1e-3 * typical), typical)
    pair_sums = np.zeros((len(compared), kernel.PAIR_SUMS))
    pair_counts = np.zeros((len(compared), kernel.PAIR_COUNTS), np.int64)
    arm_sums = np.zeros((kernel.ARM_SUMS, n_arms))
    group = np.arange(n_arms)
    kernel.add_scores(
        arms,
        centred,
        chances,
        counted,
        order,
        LEAST_PROBABILITY,
        variance,
        in_play[0],
        in_play[1],
        compared,
        group,
        *fresh(),
        pair_sums,
        pair_counts,
        arm_sums,
        np.empty(n_arms),
        np.empty(n_arms),
    )
    weight, score, other_score, w2, w2_gap, w2_gap2 = pair_sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        mean, other_mean = score / weight, other_score / weight
        gap = mean - other_mean
        error = np.sqrt(np.maximum(w2_gap2 - 2 * gap * w2_gap + gap**2 * w2, 0)) / weight
        arm_weight, arm_score, a2, a2_score, a2_score2, used = arm_sums
        theta = arm_score / arm_weight
        theta_error = np.sqrt(np.maximum(a2_score2 - 2 * theta * a2_score + theta**2 * a2, 0)) / arm_weight
    columns = pair_counts.T
    fewest = np.minimum(columns[kernel.ARM_REWARDS], columns[kernel.OTHER_REWARDS])
    differences = _with_intervals(
        compared,
        _skewness(arms, rewards, n_arms),
        gap,
        error,
        mean + level,
        other_mean + level,
        fewest,
        delta,
        columns[[kernel.USED, kernel.WITHOUT_REWARD, kernel.IMPROBABLE, kernel.ARM_REWARDS, kernel.OTHER_REWARDS]],
    )
    means = tuple(SameMean(a, float(theta[a] + level), float(theta_error[a]), int(used[a])) for a in range(n_arms))
    basis: Basis = "probabilities" if chances.shape[1] == n_arms else "chosen-probabilities"
    return OverTheSamePeople(basis, ASSUMES[basis], differences, means)


def _by_period(
    arms: IntArray, rewards: FloatArray, compared: IntArray, delta: float, n_periods: int
) -> tuple[SameDifference, ...]:
    """Return differences of means within periods, averaged over periods by their numbers of decisions."""
    n_arms = int(compared.max(initial=0)) + 1
    period = np.arange(arms.size) * n_periods // max(arms.size, 1)
    seen = ~np.isnan(rewards)
    n_arms = max(n_arms, int(arms.max(initial=0)) + 1)
    cell = (period * n_arms + arms)[seen]
    size, shape = n_periods * n_arms, (n_periods, n_arms)
    flat_counts = np.bincount(cell, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        flat_means = np.bincount(cell, rewards[seen], size) / flat_counts
        squares = np.bincount(cell, (rewards[seen] - flat_means[cell]) ** 2, size)
        noise = (squares / (flat_counts - 1) / flat_counts).reshape(shape)
    counts, means = flat_counts.reshape(shape), flat_means.reshape(shape)
    in_period, answered = np.bincount(period, minlength=n_periods), np.bincount(period[seen], minlength=n_periods)
    rows = []
    for a, b in compared:
        usable = (counts[:, a] > 1) & (counts[:, b] > 1)
        share = in_period[usable] / max(in_period[usable].sum(), 1)
        known = bool(usable.any())
        rows.append(
            (
                float(share @ means[usable, a]) if known else math.nan,
                float(share @ means[usable, b]) if known else math.nan,
                math.sqrt(float(share**2 @ (noise[usable, a] + noise[usable, b]))) if known else math.nan,
                int(answered[usable].sum()),
                int((in_period - answered)[usable].sum()),
                int(in_period[~usable].sum()),
                int(counts[usable, a].sum()),
                int(counts[usable, b].sum()),
            )
        )
    if not rows:
        return ()
    mean, other_mean, error, *numbers = np.array(rows).T
    fewest = np.minimum(numbers[-2], numbers[-1])
    whole = np.array(numbers).astype(np.int64)
    skewness = _skewness(arms, rewards, n_arms)
    return _with_intervals(compared, skewness, mean - other_mean, error, mean, other_mean, fewest, delta, whole)


def _skewness(arms: IntArray, rewards: FloatArray, n_arms: int) -> FloatArray:
    """Return the skewness of each arm's rewards; infinite where they were all the same, so nothing is known of it."""
    seen = ~np.isnan(rewards)
    arms, rewards = arms[seen], rewards[seen]
    counts = np.maximum(np.bincount(arms, minlength=n_arms), 1)
    distance = rewards - (np.bincount(arms, rewards, n_arms) / counts)[arms]
    square, cube = (np.bincount(arms, distance**power, n_arms) / counts for power in (2, 3))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(square > 0, cube / square**1.5, np.inf)


def _with_intervals(
    compared: IntArray,
    skewness: FloatArray,
    gap: FloatArray,
    error: FloatArray,
    mean: FloatArray,
    other_mean: FloatArray,
    fewest: FloatArray | IntArray,
    delta: float,
    numbers: IntArray,
) -> tuple[SameDifference, ...]:
    """Return the records; the arm with fewer rewards says how well the standard error is known.

    An interval needs as many rewards as the skewness of the more skewed arm asks for, as for differences of means: an
    arm whose rare rewards have not come yet looks as if it had no noise.
    """
    from equipoise.kernels.arm_evidence import PER_SQUARED_SKEWNESS
    from equipoise.kernels.t_mixture import t_radius

    found = []
    for k, (a, b) in enumerate(compared):
        n, spread = float(fewest[k]), float(error[k])
        squared = float(max(skewness[a] ** 2, skewness[b] ** 2))
        known = n > 1 and spread > 0
        is_enough_at_end = known and n >= PER_SQUARED_SKEWNESS_OF_DIFFERENCES * squared
        at_end = spread * float(upper_quantile(delta / 2, n - 1)[0]) if is_enough_at_end else math.inf
        is_enough = known and n >= max(FEWEST, PER_SQUARED_SKEWNESS * squared)
        always = spread * float(t_radius(n, -math.log(delta))) if is_enough else math.inf
        centre = float(gap[k]) if math.isfinite(gap[k]) else math.nan
        around = centre if math.isfinite(centre) else 0.0
        used, without_reward, left_out, rewards_a, rewards_b = (int(number) for number in numbers[:, k])
        found.append(
            SameDifference(
                arm=int(a),
                other=int(b),
                difference=centre,
                standard_error=spread,
                mean=float(mean[k]),
                other_mean=float(other_mean[k]),
                low=around - always,
                high=around + always,
                low_at_end=around - at_end,
                high_at_end=around + at_end,
                n_used=used,
                n_without_reward=without_reward,
                n_left_out=left_out,
                n_rewards=rewards_a,
                n_other_rewards=rewards_b,
            )
        )
    return tuple(found)


def _columns(arm: ArrayLike, reward: ArrayLike, n_arms: int | None) -> tuple[IntArray, FloatArray, int]:
    """Return arms, rewards (NaN for those missing) and the number of arms."""
    given = np.asarray(arm)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InvalidInput.of("arm", "must be positions of arms, one whole number per decision", arm)
    arms = np.ascontiguousarray(given, dtype=np.int64)
    rewards = _numbers("reward", reward)
    if rewards.shape != arms.shape:
        raise InvalidInput.of("reward", f"must have {arms.size} entries, one per decision; got shape {rewards.shape}")
    if np.isinf(rewards).any():
        raise InvalidInput.of("reward", "must be finite, or NaN where it is missing")
    n = checks.whole_number("n_arms", n_arms, 1) if n_arms is not None else int(arms.max(initial=0)) + 1
    if arms.size and not 0 <= arms.min() <= arms.max() < n:
        raise InvalidInput.of("arm", f"must be from 0 to {n - 1}")
    return arms, rewards, n


def _numbers(name: str, values: ArrayLike) -> FloatArray:
    """Return values as floats, one per decision at least."""
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput.of(name, "must be numbers, one per decision", values) from None


def _checked_probabilities(chances: FloatArray, arms: IntArray, n_arms: int) -> FloatArray:
    """Return probabilities with a column per arm, or a single one for the chosen arms."""
    if chances.shape == arms.shape and n_arms > 1:
        chosen, chances = chances, chances[:, None]
    elif chances.shape == (arms.size, n_arms):
        chosen = chances[np.arange(arms.size), arms]
        if ((chances < 0) | (chances > 1)).any():
            raise InvalidInput.of("probability", "must be in [0, 1], or NaN for an arm that was not in play")
        total = np.nansum(chances, axis=1)
        if (np.abs(total - 1) > 1e-6).any():
            at = int(np.argmax(np.abs(total - 1)))
            raise InvalidInput.of("probability", f"must add up to 1 over the arms; got {total[at]:g} at decision {at}")
    else:
        raise InvalidInput.of(
            "probability",
            f"must have shape ({arms.size}, {n_arms}), all arms at every decision, or ({arms.size},), the chosen arms; "
            f"got shape {chances.shape}",
        )
    if not ((chosen > 0) & (chosen <= 1)).all():
        at = int(np.flatnonzero(~((chosen > 0) & (chosen <= 1)))[0])
        raise InvalidInput.of(
            "probability", f"must be in (0, 1] for the chosen arm; got {chosen[at]:g} at decision {at}"
        )
    return chances


def _in_play(in_play: ArrayLike | None, arms: IntArray, n_arms: int, chances: FloatArray) -> IntArray:
    """Return from and until which decision each arm was in play."""
    if in_play is not None:
        given = np.asarray(in_play)
        if given.shape != (2, n_arms) or given.dtype.kind not in "iu":
            raise InvalidInput.of("in_play", f"must be whole numbers of shape (2, {n_arms})", in_play)
        return np.ascontiguousarray(given, dtype=np.int64)
    found = np.zeros((2, n_arms), np.int64)
    found[1] = arms.size
    if chances.shape[1] != n_arms:
        for a in range(n_arms):
            own = np.flatnonzero(arms == a)
            # To begin after its first assignment depends on the past only; to begin with it would not be fair.
            found[0, a] = own[0] + 1 if own.size else arms.size
    return found


def _counting(counted_after: ArrayLike | None, rewards: FloatArray) -> tuple[IntArray, IntArray]:
    """Return when each reward was counted, and the decisions in the order in which their rewards were."""
    seen = ~np.isnan(rewards)
    if counted_after is None:
        return np.arange(1, rewards.size + 1), np.flatnonzero(seen)
    given = np.asarray(counted_after)
    if given.shape != rewards.shape or (given.size and given.dtype.kind not in "iu"):
        raise InvalidInput.of("counted_after", f"must be {rewards.size} whole numbers, one per decision", counted_after)
    counted = np.ascontiguousarray(given, dtype=np.int64)
    early = (counted >= 0) & (counted <= np.arange(counted.size))
    if early.any():
        at = int(np.flatnonzero(early)[0])
        raise InvalidInput.of(
            "counted_after", f"must be after the decision itself, {at + 1} or more; got {counted[at]} at decision {at}"
        )
    chosen = np.flatnonzero(seen & (counted >= 0))
    return counted, chosen[np.argsort(counted[chosen], kind="stable")]
