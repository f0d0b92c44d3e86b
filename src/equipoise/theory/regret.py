"""Compute the regret bound of Theorem 1 and its three phases  [Sect. 4, App. B]."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise.errors import InvalidInput
from equipoise.objective import optimal_allocation, smoothness, strong_concavity
from equipoise.theory.assumptions import (
    LARGEST_HORIZON,
    checked_forcing,
    checked_horizon,
    checked_probability,
    checked_range,
    positive_floor,
    positive_stds,
    weight_below_one,
)
from equipoise.theory.confidence import log_inverse_failure
from equipoise.theory.lemmas import exploration_bound

STEP_8_CONSTANT = 4.0**8
"""C of Theorem 1, from step 8 of its proof."""


class RegretBound(NamedTuple):
    """The bound of Theorem 1 at one horizon.

    Attributes
    ----------
    phase : int
        1 while arms are explored uniformly, 2 while every arm is only known to have about `forcing * sqrt(n)` pulls,
        3 once every arm has its share of the pulls.
    value : float
        Upper bound on the regret, with probability `1 - failure_probability`.
    """

    phase: int
    value: float


def regret_bound(
    horizon: int,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: float,
    forcing: float = 1.0,
    failure_probability: float = 0.05,
    reward_range: float = 1.0,
    constant: float = STEP_8_CONSTANT,
) -> RegretBound:
    """Return the bound of Theorem 1 on the regret of ForcingBalance after `horizon` steps.

    With L = log(2/delta_n) and the constants of Lemma 1 it is ::

        1                                                                            n <= n_0
        43 K^(5/2) smoothness / strong_concavity sqrt(L / (eta floor)) n^(-1/4)      n_0 < n <= n_2
        153 K^(5/2) smoothness / strong_concavity sqrt(L / (floor share)) n^(-1/2)   n > n_2

    where share is the smallest of the optimal allocation, n_0 is `exploration_bound` and n_2 is
    `third_phase_threshold`. Nothing is capped: the second line is far above 1 at any practical horizon.

    Parameters
    ----------
    horizon : int
        The number of steps n.
    mean, std : array (n_arms,)
        True means and standard deviations of at least two arms; stds are positive.
    reward_weight : float
        w, in [0, 1).
    floor : float
        lambda_min, positive and at most the smallest optimal share (Asm. 1).
    forcing : float
        eta, in (0, 21].
    failure_probability : float
        delta, in (0, 1).
    reward_range : float
        Length of the interval the rewards lie in.
    constant : float
        C in n_2.

    Examples
    --------
    >>> arms = {"mean": [0.4, 0.6], "std": [0.4, 0.5], "reward_weight": 0.5, "floor": 0.25}
    >>> regret_bound(8, **arms)
    RegretBound(phase=1, value=1.0)
    >>> phase, value = regret_bound(10**24, **arms)
    >>> phase, round(value, 7)
    (3, 1.2e-06)
    """
    steps = checked_horizon(horizon)
    problem = _problem(mean, std, reward_weight, floor, reward_range, constant)
    eta = checked_forcing(forcing)
    delta = checked_probability(failure_probability)
    log_term = math.log(2) + log_inverse_failure(steps, problem.n_arms, delta)
    shape = problem.n_arms**2.5 * problem.smoothness / problem.strong_concavity
    if steps <= exploration_bound(problem.n_arms, forcing=eta):
        return RegretBound(1, problem.reward_range)
    if steps <= _n_2(steps, problem, delta):
        value = 43 * shape * math.sqrt(log_term / (eta * problem.floor)) * float(steps) ** -0.25
        return RegretBound(2, value * problem.reward_range)
    value = 153 * shape * math.sqrt(log_term / (problem.floor * problem.smallest_share)) / math.sqrt(steps)
    return RegretBound(3, value * problem.reward_range)


def third_phase_threshold(
    horizon: int,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: float,
    failure_probability: float = 0.05,
    reward_range: float = 1.0,
    constant: float = STEP_8_CONSTANT,
) -> float:
    """Return n_2 of Theorem 1, which depends on the horizon through delta_n (App. B step 8).

    That is `constant K^10 log(1/delta_n)^2 / (share^8 strong_concavity^4 floor^2)`, where share is the smallest of the
    optimal allocation. Parameters are those of `regret_bound`.

    Examples
    --------
    >>> n_2 = third_phase_threshold(10**20, [0.4, 0.6], [0.4, 0.5], reward_weight=0.5, floor=0.25)
    >>> f"{n_2:.3e}"
    '9.601e+20'
    """
    problem = _problem(mean, std, reward_weight, floor, reward_range, constant)
    return _n_2(checked_horizon(horizon), problem, checked_probability(failure_probability))


def third_phase_start(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: float,
    failure_probability: float = 0.05,
    reward_range: float = 1.0,
    constant: float = STEP_8_CONSTANT,
) -> int:
    """Return the first horizon in the third phase: the smallest n above its own n_2 (App. B step 8).

    Found on the integers by bisection; exact for n_2 as computed in double precision, so accurate to about 15 digits.
    Parameters are those of `regret_bound`.

    Examples
    --------
    >>> n = third_phase_start([0.4, 0.6], [0.4, 0.5], reward_weight=0.5, floor=0.25)
    >>> f"{n:.3e}"
    '1.055e+21'
    """
    problem = _problem(mean, std, reward_weight, floor, reward_range, constant)
    delta = checked_probability(failure_probability)
    low, high = 0, 1
    # n / log(1/delta_n)^2 rises wherever it is not tiny, so n overtakes n_2 once and stays above.
    while high <= _n_2(high, problem, delta):
        if high > LARGEST_HORIZON:
            raise InvalidInput(
                f"the third phase must start before {LARGEST_HORIZON:.0e} steps; "
                f"got a smallest optimal share of {problem.smallest_share:.3g}",
                hint="lower reward_weight, or leave out arms with a tiny std",
            )
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if middle > _n_2(middle, problem, delta) else (middle, high)
    return high


class _Problem(NamedTuple):
    """What Theorem 1 needs of the arms, with rewards rescaled to an interval of length 1."""

    n_arms: int
    strong_concavity: float
    smoothness: float
    smallest_share: float
    floor: float
    reward_range: float
    constant: float


def _problem(
    mean: ArrayLike, std: ArrayLike, reward_weight: float, floor: float, reward_range: float, constant: float
) -> _Problem:
    means, stds = checks.means_and_stds(mean, std)
    if means.size < 2:
        raise InvalidInput(f"mean must have at least 2 entries, one per arm (Theorem 1); got {means.size}")
    positive_stds(stds)
    weight = weight_below_one(reward_weight)
    share = positive_floor(floor, means.size)
    scale = checked_range(reward_range)
    factor = checks.number_between("constant", constant, 0, math.inf, open_low=True)
    # In an interval of length R the std is at most R/2, and two means are at most R apart.
    needed = max(2 * float(stds.max()), float(means.max() - means.min()))
    if needed > scale * (1 + 1e-9):
        raise InvalidInput(
            f"reward_range must be at least {needed:g} for these means and stds; got {reward_range!r}",
            hint="pass the length of the interval that holds all rewards",
        )
    smallest = float(np.min(optimal_allocation(means, stds, reward_weight=weight)))
    if share > smallest * (1 + 1e-9):
        raise InvalidInput(f"floor must be at most the smallest optimal share, {smallest:.6g} (Asm. 1); got {floor!r}")
    stds = stds / scale
    return _Problem(
        n_arms=means.size,
        strong_concavity=strong_concavity(stds, reward_weight=weight),
        smoothness=smoothness(stds, reward_weight=weight, floor=share),
        smallest_share=smallest,
        floor=share,
        reward_range=scale,
        constant=factor,
    )


def _n_2(steps: int, problem: _Problem, delta: float) -> float:
    # In logarithms: the eighth and tenth powers overflow long before the arms become unusual.
    log_n_2 = (
        math.log(problem.constant)
        + 10 * math.log(problem.n_arms)
        - 8 * math.log(problem.smallest_share)
        - 4 * math.log(problem.strong_concavity)
        - 2 * math.log(problem.floor)
        + 2 * math.log(log_inverse_failure(steps, problem.n_arms, delta))
    )
    return math.exp(log_n_2) if log_n_2 < 709 else math.inf
