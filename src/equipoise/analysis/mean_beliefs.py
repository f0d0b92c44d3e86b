"""What rewards say of the means of arms together: a mixture over how far apart the arms may lie.

The arm that did best so far did so partly by luck, and a policy that follows it acts on that luck. So ranges around
plain averages leave out the truth far too often where arms are alike: in a quarter to all of the cases with 2 to 10
arms, instead of a fifth. Here nothing is assumed of how far apart arms lie, and what is unknown of it stays in the
ranges; see `docs/dial-study.md` for how often these hold.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from equipoise._types import FloatArray

if TYPE_CHECKING:
    from equipoise.stats import ArmStats

REWARDS_NEEDED = 4
"""Rewards of every arm from which on something can be believed of it."""
EIGHT_IN_TEN = 0.1
"""What lies beyond each end of a range that holds the truth in 8 of 10 cases."""
_DISTANCES, _CLOSEST, _FURTHEST = 48, 0.05, 100.0
_NEGLIGIBLE = 1e-4
_HALVINGS = 14
_SPREADS_TO_END = 1.2815516


class MeanBeliefs:
    """Beliefs about the means of arms, by what all of them have shown.

    With the standard deviation t of means between arms they are normal around a common centre that is unknown; and of t
    every value is as likely, before any reward. (A flat prior for t, not for its square or logarithm, held the truth
    about as often as it should for any number of arms, however much they differed.)

    Parameters
    ----------
    mean : array (n_arms,)
        Average rewards.
    variance : array (n_arms,)
        Squares of their standard errors; positive.
    usually_apart : float, optional
        Standard deviation between the means of such arms, where something is known of it.
    worth : float, default 1.0
        How many arms that are known without noise that knowledge is worth.

    Examples
    --------
    Two arms, and ten, of which the best is three standard errors above the others:

    >>> two, ten = np.array([0.0, 3.0]), np.array([0.0] * 9 + [3.0])
    >>> for mean in (two, ten):
    ...     best_against_others = np.append(np.full(mean.size - 1, -1.0 / (mean.size - 1)), 1.0)
    ...     print([round(float(x), 2) for x in MeanBeliefs(mean, np.ones(mean.size)).ranges(best_against_others)])
    [2.8, 0.91, 4.66]
    [0.68, -0.05, 1.85]
    """

    def __init__(
        self, mean: FloatArray, variance: FloatArray, *, usually_apart: float | None = None, worth: float = 1.0
    ) -> None:
        smallest, largest = math.sqrt(float(variance.min())), math.sqrt(float(variance.max()))
        furthest = _FURTHEST * largest + 10.0 * float(np.ptp(mean))
        expected = math.inf if usually_apart is None else usually_apart
        apart = np.append(0.0, np.geomspace(_CLOSEST * min(smallest, expected), furthest, _DISTANCES))
        between = (apart * apart)[:, None]
        weight = 1.0 / (variance + between)
        total = weight.sum(axis=1)
        centre = weight @ mean / total
        log_likelihood = 0.5 * np.log(weight).sum(axis=1) - 0.5 * np.log(total)
        log_likelihood -= 0.5 * (weight * (mean - centre[:, None]) ** 2).sum(axis=1)
        if usually_apart is not None:
            some = apart[1:]
            log_likelihood[0] = -np.inf
            log_likelihood[1:] -= (worth + 1.0) * np.log(some) + 0.5 * worth * (expected / some) ** 2
        chance = np.exp(log_likelihood - log_likelihood.max()) * np.gradient(apart)
        likely = chance > _NEGLIGIBLE * chance.max()
        self._chance = chance[likely] / chance[likely].sum()
        self._total, kept = total[likely], (between * weight)[likely]
        self._lost = 1.0 - kept
        self._expected = mean * kept + self._lost * centre[likely, None]
        self._variance = variance * kept

    @classmethod
    def of(cls, stats: ArmStats, usually_apart: float | None = None, worth: float = 1.0) -> MeanBeliefs:
        """Return what the rewards of arms say of their means, in the unit of `spreads`; each needs four rewards.

        How far arms are usually apart is in units of the typical standard deviation of rewards.
        """
        std, unit = spreads(stats)
        mean = (stats.mean - float(stats.mean.mean())) / unit
        typical = math.sqrt(float(np.mean(std * std)))
        apart = None if usually_apart is None else usually_apart * typical
        return cls(mean, std * std / stats.pulls, usually_apart=apart, worth=worth)

    def ranges(self, weights: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the expectation of a weighted sum of means, and the ends of its 8-in-10 range.

        Parameters
        ----------
        weights : array (..., n_arms)
            They must add up to 0, as those of a difference do: nothing is believed of the level of all arms.
        """
        rows = np.atleast_2d(weights)
        expected = self._expected @ rows.T
        variance = self._variance @ (rows * rows).T + (self._lost @ rows.T) ** 2 / self._total[:, None]
        spread = np.sqrt(np.maximum(variance, 0.0))
        middle = self._chance @ expected
        # An end of the mixture's range lies among those of its parts. Both ends at once, on the first axis.
        each = expected + np.array([-1.0, 1.0])[:, None, None] * (_SPREADS_TO_END * spread)
        low, high = each.min(axis=1), each.max(axis=1)
        sought = np.array([[EIGHT_IN_TEN], [1.0 - EIGHT_IN_TEN]])
        closeness = 1.0 / np.maximum(spread, np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # a part may have no spread
            for _ in range(_HALVINGS):
                at = 0.5 * (low + high)
                is_above = self._chance @ _below((at[:, None, :] - expected) * closeness) > sought
                high, low = np.where(is_above, at, high), np.where(is_above, low, at)
        first, last = 0.5 * (low + high)
        shape = np.shape(weights)[:-1]
        return middle.reshape(shape), first.reshape(shape), last.reshape(shape)


def _below(x: FloatArray) -> FloatArray:
    """Return the chance of a standard normal number below x, to within 0.0002."""
    x = np.minimum(np.maximum(x, -6.0), 6.0)
    found: FloatArray = 1.0 / (1.0 + np.exp(x * (-1.5976 - 0.07056 * x * x)))
    return found


def spreads(stats: ArmStats) -> tuple[FloatArray, float]:
    """Return the standard deviations of arms as pooled policies believe them, and the unit they are in.

    Examples
    --------
    An arm whose four rewards were all 0 is not known without noise:

    >>> from equipoise.stats import ArmStats
    >>> std, unit = spreads(ArmStats.from_rewards([0] * 4 + [1] * 4, [0, 0, 0, 0, 1, 0, 1, 0], n_arms=2))
    >>> (std * unit).round(2)
    array([0.29, 0.49])
    """
    from equipoise.kernels.pooling import believe

    work, mean, std = np.empty((2, stats.n_arms)), np.empty(stats.n_arms), np.empty(stats.n_arms)
    unit = believe(1, 2.0, stats.pulls, stats.mean, stats.std, work, mean, std)
    return std, unit
