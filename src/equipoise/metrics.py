"""Evaluate runs by reward, error, regret, distance to the optimum and ranking; average over replications  [Sect. 5].

Arrays have arms on their last axis; other axes (policy, replication, checkpoint) are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.information import share_of_information
from equipoise.objective import checked_problem
from equipoise.objective_families import ROOT_MEAN_SQUARE, Objective, PowerObjective


def reward(frequency: FloatArray, true_mean: FloatArray) -> FloatArray:
    """Return the expected reward per pull (rho, Eq. 1).

    Examples
    --------
    >>> reward(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array([1.0, 2.0]))
    array([1.5 , 1.75])
    """
    return np.asarray(frequency @ true_mean)


def error(frequency: FloatArray, true_std: FloatArray) -> FloatArray:
    """Return the average error of the arms' means times sqrt(n), by formula (epsilon, Eq. 2).

    Examples
    --------
    >>> error(np.array([[0.25, 0.75], [0.0, 1.0]]), np.array([1.0, 1.0])).round(3)
    array([1.577,   inf])
    """
    return np.asarray(ROOT_MEAN_SQUARE.error(frequency, true_std))


def realised_error(estimate: FloatArray, true_mean: FloatArray, checkpoints: IntArray) -> FloatArray:
    """Return the average over arms of the root-mean-square error over replications, times sqrt(n).

    Parameters
    ----------
    estimate : array (n_policies, n_replications, n_checkpoints, n_arms)
        Estimated means; an arm that was never pulled makes the error infinite.

    Examples
    --------
    >>> realised_error(np.array([[[[1.0]], [[3.0]]]]), np.array([2.0]), np.array([4]))
    array([[2.]])
    """
    squared = np.where(np.isnan(estimate), np.inf, (estimate - true_mean) ** 2)
    return np.asarray(np.sqrt(checkpoints) * np.sqrt(squared.mean(axis=1)).mean(axis=-1))


def tradeoff(
    frequency: FloatArray,
    true_mean: FloatArray,
    true_std: FloatArray,
    *,
    reward_weight: float,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> FloatArray:
    """Return the trade-off of shares of pulls (f_w, Eq. 3), or their value under another objective."""
    means, stds, weight = checked_problem(true_mean, true_std, reward_weight, objective)
    return np.asarray(objective.value(frequency, means, stds, weight))


def regret(
    frequency: FloatArray,
    true_mean: FloatArray,
    true_std: FloatArray,
    *,
    reward_weight: float,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> FloatArray:
    """Return how far shares of pulls fall short of the allocation that is optimal for an objective (R_n).

    Examples
    --------
    >>> regret(np.array([[0.5, 0.5], [0.4, 0.6]]), np.array([1.0, 2.0]), np.ones(2), reward_weight=0.5).round(4)
    array([0.0521, 0.0131])
    """
    means, stds, weight = checked_problem(true_mean, true_std, reward_weight, objective)
    best = objective.solve(means, stds, weight, np.zeros(means.size))
    if type(objective).value is PowerObjective.value:
        # Shifting the means does not change the difference, and small means lose no digits to a reward that all arms
        # share.
        means = means - means.max()
    return np.asarray(objective.value(best, means, stds, weight) - objective.value(frequency, means, stds, weight))


def distance(
    shares: FloatArray,
    true_mean: FloatArray,
    true_std: FloatArray,
    *,
    reward_weight: float,
    objective: Objective = ROOT_MEAN_SQUARE,
) -> FloatArray:
    """Return the largest difference from the optimal share over the arms (sup-norm).

    Examples
    --------
    >>> distance(np.array([0.5, 0.5]), np.array([1.0, 2.0]), np.ones(2), reward_weight=0.5).round(4)
    np.float64(0.1885)
    """
    means, stds, weight = checked_problem(true_mean, true_std, reward_weight, objective)
    best = objective.solve(means, stds, weight, np.zeros(means.size))
    return np.asarray(np.abs(shares - best).max(axis=-1))


def reward_shortfall(
    frequency: FloatArray,
    true_mean: FloatArray,
    true_std: FloatArray,
    *,
    information_kept: float,
    information_about: str = "average",
    smallest_difference: float | None = None,
) -> FloatArray:
    """Return the most reward that keeps this share of the information, minus the reward of shares of pulls.

    Means and spreads are the true ones. It is negative where the shares keep less information: see `error_excess`.

    Examples
    --------
    >>> shares = np.array([[0.5, 0.5], [0.1, 0.9]])
    >>> reward_shortfall(shares, np.array([1.0, 2.0]), np.ones(2), information_kept=0.5).round(4)
    array([ 0.384, -0.016])
    """
    dial = checks.dial(None, information_kept, information_about, smallest_difference)
    means, stds, _ = checked_problem(true_mean, true_std, 0.0, ROOT_MEAN_SQUARE)
    kept, about, difference = checks.share_kept("information_kept", information_kept), dial[2], dial[3]
    best, _ = ROOT_MEAN_SQUARE.solve_for_information(means, stds, kept, about, difference, np.zeros(means.size))
    loss = means - means.max()  # small differences lose no digits to a reward that all arms share
    return np.asarray(best @ loss - frequency @ loss)


def error_excess(
    frequency: FloatArray,
    true_mean: FloatArray,
    true_std: FloatArray,
    *,
    information_kept: float,
    information_about: str = "average",
    smallest_difference: float | None = None,
) -> FloatArray:
    """Return by which part the error of shares of pulls exceeds the limit for this share of the information.

    The error is the average error, the largest of the arms, or the noise in the least sure comparison with the best
    arm, relative to the difference; the limit is the smallest possible, for the true means and spreads, divided by
    sqrt(information_kept). Negative within the limit, infinite where an arm that matters was not pulled.

    Examples
    --------
    >>> shares = np.array([[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]])
    >>> error_excess(shares, np.array([1.0, 2.0]), np.ones(2), information_kept=0.5).round(4)
    array([-0.2929,  0.0541,     inf])
    """
    dial = checks.dial(None, information_kept, information_about, smallest_difference)
    means, stds, _ = checked_problem(true_mean, true_std, 0.0, ROOT_MEAN_SQUARE)
    kept = share_of_information(frequency, means, stds, *dial[2:], np.zeros(means.size))
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(dial.information_kept / kept) - 1)


def relative_dcg(estimate: FloatArray, true_mean: FloatArray) -> FloatArray:
    """Return 100 (DCG* - DCG) / |DCG*|, with gains the true means and discount 1 / log(rank + 1)  [Sect. 5.2].

    The absolute value keeps a loss positive where means are negative. Arms without an estimate are ranked last.

    Examples
    --------
    >>> relative_dcg(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, 2.0])).round(2)
    array([ 0.  , 14.03])
    """
    discount = 1 / np.log(np.arange(2, true_mean.size + 2))
    best = np.sort(true_mean)[::-1] @ discount
    with np.errstate(divide="ignore", invalid="ignore"):  # with all means 0 a percentage is undefined
        return np.asarray(100 * (best - true_mean[_ranking(estimate)] @ discount) / abs(best))


def rank_error(estimate: FloatArray, true_mean: FloatArray) -> FloatArray:
    """Return the average over arms of |true rank - estimated rank|  [Sect. 5.2].

    Arms with equal estimates are ranked in their order, arms without an estimate last. Arms with equal true means share
    their ranks: the order of their estimates does not count as an error.

    Examples
    --------
    >>> rank_error(np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0]))
    array(1.33333333)
    >>> rank_error(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0]))
    array(1.)
    """
    rank, ascending = np.argsort(_ranking(estimate), axis=-1), np.sort(true_mean)
    best = true_mean.size - np.searchsorted(ascending, true_mean, side="right")
    worst = true_mean.size - 1 - np.searchsorted(ascending, true_mean, side="left")
    return np.asarray((np.maximum(best - rank, 0) + np.maximum(rank - worst, 0)).mean(axis=-1))


def _ranking(mean: FloatArray) -> IntArray:
    """Return the arms from best to worst; ties in their order, arms without an estimate last."""
    return np.argsort(-np.where(np.isnan(mean), -np.inf, mean), axis=-1, kind="stable")


class Summary(NamedTuple):
    """A metric over replications: arrays without the replication axis; quantiles have an extra first axis."""

    mean: FloatArray
    standard_error: FloatArray
    quantiles: FloatArray


def summarise(values: FloatArray, *, quantiles: Sequence[float] = (0.05, 0.5, 0.95), axis: int = 1) -> Summary:
    """Return mean, standard error and quantiles of a metric over replications.

    Parameters
    ----------
    values : array
        A metric with replications on `axis`, such as (policy, replication, checkpoint).
    quantiles : sequence of float
    axis : int, default 1

    Examples
    --------
    >>> summary = summarise(np.array([[1.0, 2.0, 3.0, 4.0]]), quantiles=[0.5])
    >>> summary.mean, summary.standard_error.round(3), summary.quantiles
    (array([2.5]), array([0.645]), array([[2.5]]))
    """
    levels = [checks.number_between("quantiles", level, 0, 1) for level in quantiles]
    count = values.shape[axis]
    # A metric that is infinite in places (an error before every arm was pulled) has a mean but no standard error, and
    # quantiles that interpolation between infinities would turn into NaN.
    with np.errstate(invalid="ignore"):
        mean = values.mean(axis=axis)
        spread = values.std(axis=axis, ddof=1) if count > 1 else np.full_like(mean, np.nan)
        between = np.quantile(values, levels, axis=axis)
    if np.isnan(between).any():
        between = np.where(np.isnan(between), np.quantile(values, levels, axis=axis, method="higher"), between)
    return Summary(mean, spread / np.sqrt(count), between)
