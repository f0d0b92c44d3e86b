"""Give intervals of ordinary width at the end of an experiment whose number of people was declared beforehand.

For a weight below 1 the shares of arms converge to fixed numbers. Then the numbers of rewards are as good as fixed, and
the usual central limit theorem holds for plain means however the policy chose (Anscombe 1952; Lai and Wei 1982, Annals
of Statistics 10). It holds at that one moment; `refusals` says when it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.analysis.results import DifferenceAtEnd, MeanAtEnd, Method
from equipoise.analysis.t_quantiles import upper_quantile, upper_tail
from equipoise.errors import InvalidInput
from equipoise.theory.assumptions import checked_probability

if TYPE_CHECKING:
    from equipoise.analysis.results import Trend

SKEWED = 0.1
"""From this skewness over sqrt(n) on, the interval of a mean takes the skewness out  (Hall 1992, JRSS B 54, p. 221)."""

FEWEST = 10
"""With fewer rewards nothing is said of an arm: what is unusual about its rewards cannot be seen yet."""
FEWEST_OF_EACH, FEWEST_OF_EACH_OF_MANY, MANY_ARMS = 5, 10, 10
"""Rewards of the rarer of two values that each arm needs, the last of how many arms the first is for.

With fewer, Wilson's interval misses up to twice as often as it says at 1 %, and up to seven times at 0.2 %, which is
what each of 25 arms is left with (exact binomial probabilities, 200 to 1,000 rewards)."""
_MOST_LISTED = 3

PER_SQUARED_SKEWNESS, PER_SQUARED_SKEWNESS_OF_DIFFERENCES = 9.0, 25.0
"""Skewed rewards need this many times the squared skewness; for differences more, where nothing takes it out."""

LARGEST_WEIGHT = 0.95
"""With a larger weight on reward, shares settle too late where arms are nearly equal."""

LARGEST_SHARE_SPREAD = 0.1
"""Largest standard deviation, between simulated runs, of the share of an arm."""

RefusalCode: TypeAlias = Literal[
    "rare",
    "reward-weight",
    "policy",
    "stopped-early",
    "drift",
    "pending",
    "missing",
    "few-rewards",
    "no-spread",
    "skewed",
    "shares",
]

_HALVINGS = 60


@dataclass(frozen=True)
class Refusal:
    """A reason why the intervals at the end would not hold.

    Attributes
    ----------
    code : str
        What it is about, for programs.
    sentence : str
        The same for people.
    arms : tuple of int
        Positions of the arms it is about; empty if it is about all.
    """

    code: RefusalCode
    sentence: str
    arms: tuple[int, ...] = ()


def means_at_end(
    pulls: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    failure_probability: float = 0.05,
    skewness: ArrayLike | None = None,
    two_values: tuple[float, float] | None = None,
    reward_range: tuple[float | None, float | None] | None = None,
    simultaneous: bool = True,
) -> tuple[MeanAtEnd, ...]:
    """Return the interval of every arm's mean at the end, of ordinary width.

    Parameters
    ----------
    pulls, mean, std : array (n_arms,)
        Rewards, their averages and standard deviations (n - 1).
    failure_probability : float, default 0.05
        That some interval misses; of each interval if they need not hold together.
    skewness : array (n_arms,), optional
        Of the rewards; 0 where it is not known.
    two_values : pair of float, optional
        The two values that rewards take, if there are no others. 0 and one other value are recognised.
    reward_range : pair, optional
        Lowest and highest reward, None for an open end: intervals end there.
    simultaneous : bool, default True
        Whether all intervals hold together (Bonferroni).

    Examples
    --------
    >>> for found in means_at_end([400, 100], [0.3, 0.01], [0.459, 0.1], two_values=(0, 1)):
    ...     print(found.method, round(found.low, 3), round(found.high, 3))
    wilson 0.251 0.354
    wilson 0.001 0.065
    >>> [found] = means_at_end([400], [12.0], [3.0], skewness=[4.0])
    >>> found.method, round(found.low, 3), round(found.high, 3)
    ('hall', 11.741, 12.352)
    """
    from equipoise.kernels.t_mixture import with_skewness

    counts, means, stds = _summary(pulls, mean, std)
    delta = checked_probability(failure_probability) / (counts.size if simultaneous else 1)
    skews = np.zeros(counts.size) if skewness is None else _skewness(skewness, counts)
    lowest, highest = _ends(reward_range)
    values = two_values if two_values is not None else _two_values(counts, means, stds)
    with np.errstate(invalid="ignore", divide="ignore"):
        errors = stds / np.sqrt(counts)
    low, high = np.full(counts.size, lowest), np.full(counts.size, highest)
    method: list[Method] = ["none"] * counts.size
    usual = (counts > 1) & (stds > 0)
    if values is not None:
        seen = counts > 0
        low[seen], high[seen] = _wilson(counts[seen], means[seen], values, float(upper_quantile(delta / 2)[0]))
        method = ["wilson" if some else "none" for some in seen]
    else:
        at_end = (counts > 0) & ~usual & ((means == lowest) | (means == highest))
        if at_end.any() and math.isfinite(highest - lowest):
            # Rewards that were all at one end: of all rewards in the range, those of two values show least.
            z = float(upper_quantile(delta / 2)[0])
            low[at_end], high[at_end] = _wilson(counts[at_end], means[at_end], (lowest, highest), z)
            for arm in np.flatnonzero(at_end):
                method[arm] = "wilson"
        quantile = np.full(counts.size, np.nan)
        quantile[usual] = upper_quantile(delta / 2, counts[usual] - 1)
        for arm in np.flatnonzero(usual):
            skew = skews[arm] / math.sqrt(counts[arm])
            below, above = quantile[arm], -quantile[arm]
            method[arm] = "t"
            if abs(skew) > SKEWED:
                below, above = with_skewness(below, skew), with_skewness(above, skew)
                method[arm] = "hall"
            low[arm] = means[arm] - errors[arm] * below
            high[arm] = means[arm] - errors[arm] * above
    low, high = np.maximum(low, lowest), np.minimum(high, highest)
    return tuple(
        MeanAtEnd(
            arm, float(means[arm]), float(errors[arm]), float(low[arm]), float(high[arm]), int(counts[arm]), method[arm]
        )
        for arm in range(counts.size)
    )


def differences_at_end(
    pulls: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    failure_probability: float = 0.05,
    control: int | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    two_values: tuple[float, float] | None = None,
    simultaneous: bool = True,
) -> tuple[DifferenceAtEnd, ...]:
    """Return the differences between arms at the end, with intervals of ordinary width: Welch's.

    For rewards of two values they are Newcombe's (1998, Statistics in Medicine 17, method 10), made of Wilson's.

    Parameters
    ----------
    pulls, mean, std : array (n_arms,)
        Rewards, their averages and standard deviations (n - 1).
    failure_probability : float, default 0.05
        That some interval misses; of each interval if they need not hold together.
    control : int, optional
        The arm that all others are compared with.
    pairs : sequence of pairs, optional
        The pairs (arm, other) to compare, declared beforehand. Without both, all pairs are compared, later arms with
        earlier ones.
    two_values : pair of float, optional
        The two values that rewards take, if there are no others. 0 and one other value are recognised.
    simultaneous : bool, default True
        Whether all intervals hold together (Bonferroni).

    Examples
    --------
    >>> for found in differences_at_end([300, 900, 300], [1.0, 1.3, 1.02], [1.0, 1.1, 0.9], control=0):
    ...     print(found.arm, found.other, round(found.low, 2), round(found.high, 2), round(found.p_adjusted, 4))
    1 0 0.15 0.45 0.0
    2 0 -0.15 0.19 1.0
    """
    counts, means, stds = _summary(pulls, mean, std)
    compared = compared_pairs(counts.size, control=control, pairs=pairs)
    if not compared:
        return ()
    delta = checked_probability(failure_probability) / (len(compared) if simultaneous else 1)
    values = two_values if two_values is not None else _two_values(counts, means, stds)
    a, b = np.array(compared).T
    difference = means[a] - means[b]
    with np.errstate(invalid="ignore", divide="ignore"):
        part_a, part_b = stds[a] ** 2 / counts[a], stds[b] ** 2 / counts[b]
        error = np.sqrt(part_a + part_b)
        freedom = (part_a + part_b) ** 2 / (part_a**2 / (counts[a] - 1) + part_b**2 / (counts[b] - 1))
    low, high = np.full(a.size, -np.inf), np.full(a.size, np.inf)
    p_value = np.ones(a.size)
    known = (counts[a] > 1) & (counts[b] > 1) & (error > 0)
    method: Method = "welch"
    if values is None:
        freedom = np.where(known, freedom, np.nan)
        radius = error[known] * upper_quantile(delta / 2, freedom[known])
        low[known], high[known] = difference[known] - radius, difference[known] + radius
        p_value[known] = np.minimum(1.0, 2 * upper_tail(np.abs(difference[known]) / error[known], freedom[known]))
    else:
        method, freedom = "newcombe", np.full(a.size, np.inf)
        known = (counts[a] > 0) & (counts[b] > 0)
        a_known, b_known = a[known], b[known]

        def ends(z: float | FloatArray) -> tuple[FloatArray, FloatArray]:
            low_a, high_a = _wilson(counts[a_known], means[a_known], values, z)
            low_b, high_b = _wilson(counts[b_known], means[b_known], values, z)
            below = np.hypot(means[a_known] - low_a, high_b - means[b_known])
            above = np.hypot(high_a - means[a_known], means[b_known] - low_b)
            return difference[known] - below, difference[known] + above

        low[known], high[known] = ends(float(upper_quantile(delta / 2)[0]))
        # The p-value is the failure probability at which the interval just reaches 0; it grows with z.
        inside, outside = np.full(a_known.size, 40.0), np.zeros(a_known.size)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            below, above = ends(middle)
            covers = (below <= 0) & (above >= 0)
            inside, outside = np.where(covers, middle, inside), np.where(covers, outside, middle)
        p_value[known] = np.minimum(1.0, 2 * upper_tail(outside))
    adjusted = np.minimum(1.0, p_value * (len(compared) if simultaneous else 1))
    return tuple(
        DifferenceAtEnd(
            arm=int(a[k]),
            other=int(b[k]),
            difference=float(difference[k]),
            standard_error=float(error[k]),
            low=float(low[k]),
            high=float(high[k]),
            degrees_of_freedom=float(freedom[k]),
            p_value=float(p_value[k]),
            p_adjusted=float(adjusted[k]),
            method=method if known[k] else "none",
        )
        for k in range(a.size)
    )


def compared_pairs(
    n_arms: int, *, control: int | None = None, pairs: Sequence[tuple[int, int]] | None = None
) -> list[tuple[int, int]]:
    """Return the pairs (arm, other) to compare: those given, all arms with a control, or all pairs.

    Examples
    --------
    >>> compared_pairs(3)
    [(1, 0), (2, 0), (2, 1)]
    >>> compared_pairs(3, control=1)
    [(0, 1), (2, 1)]
    """
    if pairs is not None and control is not None:
        raise InvalidInput("give control or pairs, not both")
    if pairs is not None:
        for arm, other in pairs:
            for one in (arm, other):
                checks.whole_number("pairs", one, 0, n_arms - 1)
            if arm == other:
                raise InvalidInput.of("pairs", "must be of two different arms", (arm, other))
        return [(int(arm), int(other)) for arm, other in pairs]
    if control is not None:
        checks.whole_number("control", control, 0, n_arms - 1)
        return [(arm, control) for arm in range(n_arms) if arm != control]
    return [(arm, other) for arm in range(n_arms) for other in range(arm)]


def _wilson(
    counts: FloatArray, means: FloatArray, two_values: tuple[float, float], z: float | FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval (1927) of means of rewards of two values."""
    first, second = two_values
    rate = (means - first) / (second - first)
    square = z * z / counts
    centre = (rate + 0.5 * square) / (1 + square)
    # Written so that a rate of 0 has exactly 0 for its lower end.
    radius = np.sqrt(np.maximum(square * (rate * (1 - rate) + 0.25 * square), 0)) / (1 + square)
    low, high = np.clip(centre - radius, 0, rate), np.clip(centre + radius, rate, 1)
    low, high = np.where(rate <= 0, 0.0, low), np.where(rate >= 1, 1.0, high)
    one, other = first + (second - first) * low, first + (second - first) * high
    return np.minimum(one, other), np.maximum(one, other)


def _two_values(counts: FloatArray, means: FloatArray, stds: FloatArray) -> tuple[float, float] | None:
    """Return 0 and the other value that rewards take, if the moments show that there are no others."""
    from equipoise.kernels.pooling import common_success

    some = counts > 0
    spreads = np.where(counts > 1, stds, 0.0)[some]
    if not (spreads > 0).any():  # a single value says nothing about others
        return None
    success = float(common_success(counts[some].astype(np.int64), means[some], spreads))
    if success == 0.0 or not math.isfinite(success) or not (counts[some] * means[some] / success >= 0.5).any():
        return None
    return 0.0, success


def _summary(pulls: ArrayLike, mean: ArrayLike, std: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts, means and standard deviations, NaN where there are too few rewards for them."""
    counts = checks.non_negative("pulls", pulls)
    one_each = [np.asarray(values, dtype=np.float64) for values in (mean, std)]
    for name, values in zip(("mean", "std"), one_each, strict=True):
        if values.shape != counts.shape:
            raise InvalidInput.of(name, f"must have {counts.size} entries, one per arm; got shape {values.shape}")
    means = checks.vector("mean", np.where(counts > 0, one_each[0], 0.0))
    stds = checks.non_negative("std", np.where(counts > 1, one_each[1], 0.0))
    return counts, np.where(counts > 0, means, np.nan), np.where(counts > 1, stds, np.nan)


def _skewness(skewness: ArrayLike, counts: FloatArray) -> FloatArray:
    given = np.asarray(skewness, dtype=np.float64)
    if given.shape != counts.shape:
        raise InvalidInput.of("skewness", f"must have {counts.size} entries, one per arm; got shape {given.shape}")
    return np.nan_to_num(given, nan=0.0)


def _ends(reward_range: tuple[float | None, float | None] | None) -> tuple[float, float]:
    low, high = reward_range if reward_range is not None else (None, None)
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def refusals(
    pulls: ArrayLike,
    std: ArrayLike,
    *,
    stopped_by_budget: bool,
    reward_weight: float | None = None,
    shares_converge: bool = True,
    trend: Trend | None = None,
    pending: ArrayLike | None = None,
    missing: ArrayLike | None = None,
    skewness: ArrayLike | None = None,
    rarer: ArrayLike | None = None,
    of_differences: bool = False,
    simulated_shares: ArrayLike | Callable[[], ArrayLike] | None = None,
    names: Sequence[str] | None = None,
) -> tuple[Refusal, ...]:
    """Return the reasons why intervals at the end would not hold; none if they may be used.

    Parameters
    ----------
    pulls, std : array (n_arms,)
        Rewards of each arm and their standard deviations.
    stopped_by_budget : bool
        Whether enrolment ended because the number of people declared beforehand was reached.
    reward_weight : float, optional
        The dial of the policy, or the weight it solved for last.
    shares_converge : bool, default True
        Whether the policy's shares converge to positive numbers even where arms are equal, as those of the optimal
        allocations do. Those of Thompson sampling and UCB do not.
    trend : Trend, optional
        The check for drift; see `analysis.drift.trend`.
    pending, missing : array (n_arms,), optional
        Units whose reward may still come, and units whose reward will never come.
    skewness : array (n_arms,), optional
        Of the rewards.
    rarer : array (n_arms,), optional
        Of rewards that take two values only: how many of the rarer value each arm has. Their skewness does no harm.
    of_differences : bool, default False
        Whether differences are to be shown; nothing takes the skewness out of these.
    simulated_shares : array (runs, n_arms) or function, optional
        Shares of the arms at the end of simulations of the same experiment, with the estimates as the truth. A function
        that returns them is called only if nothing else is wrong.
    names : sequence of str, optional
        Names of the arms.

    Examples
    --------
    >>> [reason] = refusals([400, 4], [1.0, 0.8], stopped_by_budget=True, reward_weight=0.5, names=["plain", "prize"])
    >>> print(reason.code, "-", reason.sentence)
    few-rewards - 'prize' has 4 rewards; intervals at the end need 10 of every arm.
    """
    counts = checks.non_negative("pulls", pulls)
    stds = np.asarray(std, dtype=np.float64)
    called = [f"arm {arm}" for arm in range(counts.size)] if names is None else [repr(name) for name in names]
    found: list[Refusal] = []
    if reward_weight is not None and reward_weight > LARGEST_WEIGHT:
        found.append(
            Refusal(
                "reward-weight",
                f"The reward weight is {reward_weight:g}; above {LARGEST_WEIGHT:g} the shares of nearly equal "
                "arms do not settle in time, and means lose their normal distribution.",
            )
        )
    if not shares_converge:
        found.append(
            Refusal("policy", "The shares of this policy need not settle, and means then have no normal distribution.")
        )
    if not stopped_by_budget:
        found.append(
            Refusal(
                "stopped-early",
                "Enrolment did not end at a number of people declared beforehand; an end chosen by looking at "
                "results makes intervals for one look miss too often.",
            )
        )
    if trend is not None and trend.speaks:
        found.append(
            Refusal(
                "drift", "Rewards changed over time, and the arms were not assigned to the same people at all times."
            )
        )
    for code, units, words in (
        ("pending", pending, "the reward may still come, and early rewards may differ from late ones"),
        ("missing", missing, "the reward is missing, and what is missing may differ from what came"),
    ):
        if units is not None:
            some = checks.non_negative(code, units, size=counts.size)
            which = tuple(int(arm) for arm in np.flatnonzero(some > 0))
            # Up to a hundredth missing is shown with bounds, not refused.
            if which and (code == "pending" or some.sum() > 0.01 * (counts.sum() + some.sum())):
                number = int(some.sum())
                found.append(Refusal(code, f"Of {number:,} {'unit' if number == 1 else 'units'} {words}.", which))  # type: ignore[arg-type]
    few = tuple(int(arm) for arm in np.flatnonzero(counts < FEWEST))
    if few:
        said = _listed(
            [f"{called[arm]} has {int(counts[arm])} {'reward' if counts[arm] == 1 else 'rewards'}" for arm in few]
        )
        found.append(Refusal("few-rewards", f"{said}; intervals at the end need {FEWEST} of every arm.", few))
    same = tuple(int(arm) for arm in np.flatnonzero((counts >= FEWEST) & ~(stds > 0)))
    if same and rarer is None:
        said = _listed([called[arm] for arm in same])
        found.append(Refusal("no-spread", f"All rewards of {said} were the same, so their spread is unknown.", same))
    if rarer is not None:
        needed_of_each = FEWEST_OF_EACH if counts.size <= MANY_ARMS else FEWEST_OF_EACH_OF_MANY
        numbers = checks.non_negative("rarer", rarer, size=counts.size)
        rare = tuple(int(arm) for arm in np.flatnonzero((counts >= FEWEST) & (numbers < needed_of_each)))
        if rare:
            said = _listed([f"{called[arm]} has {int(numbers[arm])}" for arm in rare[:_MOST_LISTED]])
            more = f" and {len(rare) - _MOST_LISTED} other arms fewer" if len(rare) > _MOST_LISTED else ""
            found.append(
                Refusal(
                    "rare",
                    f"Of the rarer of two values, {said}{more}; intervals at the end need {needed_of_each} of each.",
                    rare,
                )
            )
    elif skewness is not None:
        needed = _rewards_needed(_skewness(skewness, counts), of_differences)
        skewed = tuple(int(arm) for arm in np.flatnonzero((counts >= FEWEST) & (counts < needed)))
        if skewed:
            said = _listed([f"{called[arm]} needs {needed[arm]:,.0f} and has {counts[arm]:,.0f}" for arm in skewed])
            found.append(
                Refusal(
                    "skewed",
                    f"A few large rewards dominate; with such rewards {said}. Declare a range or a cap.",
                    skewed,
                )
            )
    if simulated_shares is not None and not found:
        shares = np.asarray(simulated_shares() if callable(simulated_shares) else simulated_shares, dtype=np.float64)
        if shares.ndim != 2 or shares.shape[1] != counts.size or len(shares) < 2:
            raise InvalidInput.of("simulated_shares", f"must have shape (runs, {counts.size}), of at least two runs")
        spread = shares.std(axis=0, ddof=1)
        which = tuple(int(arm) for arm in np.flatnonzero(spread > LARGEST_SHARE_SPREAD))
        if which:
            said = _listed([called[arm] for arm in which])
            found.append(
                Refusal(
                    "shares",
                    f"In simulations of this experiment the share of {said} differs by {spread.max():.2f} from run to "
                    f"run; above {LARGEST_SHARE_SPREAD:g} it has not settled, and intervals miss too often.",
                    which,
                )
            )
    return tuple(found)


def _rewards_needed(skewness: FloatArray, of_differences: bool) -> FloatArray:
    """Return how many rewards the normal approximation needs."""
    per_square = PER_SQUARED_SKEWNESS_OF_DIFFERENCES if of_differences else PER_SQUARED_SKEWNESS
    needed: FloatArray = np.ceil(per_square * skewness**2)
    return needed


def _listed(parts: Sequence[str]) -> str:
    """Join words as people do."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
