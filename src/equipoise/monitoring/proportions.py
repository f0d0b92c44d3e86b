"""Compare how often something happens to the people of one arm and of the others, on the same days."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from equipoise._types import FloatArray


class Tally(NamedTuple):
    """Sums from which arms are compared; those of several days are added up.

    Attributes
    ----------
    units, events : float array (..., K)
        People, and those of them to whom it happened.
    expected, variance : float array (..., K)
        Of the events, if the arm makes no difference: given the day's people and events, chance alone decides whose
        they are.
    comparable : float array (..., K)
        How many pairs of people from the arm and from the others a difference is measured on, in people.
    all_events, all_units : float array (..., K)
        Events and people of all arms together on the days on which this arm had people, and others did.
    """

    units: FloatArray
    events: FloatArray
    expected: FloatArray
    variance: FloatArray
    comparable: FloatArray
    all_events: FloatArray
    all_units: FloatArray

    def summed(self) -> Tally:
        """Return the sums over the days, which are the axis before the last."""
        return Tally(*(one.sum(axis=-2) for one in self))

    def running(self) -> Tally:
        """Return the sums up to every day."""
        return Tally(*(one.cumsum(axis=-2) for one in self))


class Excess(NamedTuple):
    """How an arm differs from the others.

    Attributes
    ----------
    z : float array (..., K)
        In standard errors; 0 where nothing can be said.
    rate, others : float array (..., K)
        Its rate, and what the rate would be if it were like the others on the same days; NaN without people.
    """

    z: FloatArray
    rate: FloatArray
    others: FloatArray

    @property
    def difference(self) -> FloatArray:
        """The rate of the arm minus that of the others, 0 where there are none."""
        return np.nan_to_num(self.rate - self.others)


def tally(units: FloatArray, events: FloatArray) -> Tally:
    """Return what each day adds to the comparison of every arm with the others (Mantel and Haenszel).

    Comparing within days keeps apart what the arm does and what the time does: the shares of adaptive experiments
    change, and so may everything else.

    Parameters
    ----------
    units, events : array (..., days, K)
        People of each day and arm, and how many of them it happened to.

    References
    ----------
    Mantel and Haenszel (1959). Statistical aspects of the analysis of data from retrospective studies of disease.
    """
    all_units = units.sum(axis=-1, keepdims=True)
    all_events = events.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(all_units > 0, units / all_units, 0.0)
        spread = share * (1.0 - share)
        variance = np.where(all_units > 1, all_events * (all_units - all_events) / (all_units - 1.0), 0.0) * spread
    compared = spread > 0
    return Tally(
        units * compared,
        events * compared,
        share * all_events * compared,
        variance,
        spread * all_units,
        all_events * compared,
        all_units * compared,
    )


_TILTS = np.array([0.1, 0.2, 0.4, 0.8, 1.6])
"""Log odds that are bet on: from a tenth more than expected to five times as many."""


def evidence_of_more(units: FloatArray, events: FloatArray) -> FloatArray:
    """Return the log evidence, after every day, that it happens more often to the people of an arm: (..., days, K).

    Given the people and events of a day, an arm that makes no difference has a hypergeometric number of the events, o
    of m with the arm's share q of the people. So ``exp(t o) / (1 + q (exp(t) - 1))^m`` is at most 1 on average
    (Hoeffding), its product over days is a bet that cannot be expected to win, and the average of several bets exceeds
    1 / alpha at any time with a probability of at most alpha (Ville). It may be looked at whenever one likes.

    Examples
    --------
    >>> units, events = np.tile([90.0, 10.0], (30, 1)), np.tile([4.5, 1.5], (30, 1))
    >>> evidence_of_more(units, events)[[9, 29]].round(1)
    array([[-2.2,  3.9],
           [-4.3, 13.6]])

    References
    ----------
    Hoeffding (1963). Probability inequalities for sums of bounded random variables. Journal of the American Statistical
    Association 58, section 6.
    """
    all_units, all_events = (one.sum(axis=-1, keepdims=True) for one in (units, events))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(all_units > 0, units / all_units, 0.0)[..., None]
    won = _TILTS * events[..., None] - all_events[..., None] * np.log1p(share * np.expm1(_TILTS))
    bets = won.cumsum(axis=-3)
    largest = bets.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(bets - largest[..., None]).mean(axis=-1)))


def excess(sums: Tally) -> Excess:
    """Return how each arm differs from the others, from sums over days.

    z is the signed root of twice the log likelihood ratio of the events that fell to the arm, with a correction for
    continuity, scaled to the variance within days. Unlike a difference divided by its standard error, it stays right
    far out in the tails with a dozen events, where false alarms of one in a million are decided.

    Examples
    --------
    >>> units, events = np.array([[1000.0, 1000.0, 100.0]]), np.array([[50.0, 50.0, 15.0]])
    >>> found = excess(tally(units, events).summed())
    >>> found.z.round(2), found.rate.round(3), found.others.round(3)
    (array([-0.82, -0.82,  3.4 ]), array([0.05, 0.05, 0.15]), array([0.059, 0.059, 0.05 ]))
    """
    units, events, expected, variance, comparable, all_events, all_units = sums
    # The rarer of "it happened" and "it did not" is what decides how skewed chance is.
    flip = 2.0 * all_events > all_units
    seen = np.where(flip, units - events, events)
    mean = np.where(flip, units - expected, expected)
    total = np.where(flip, all_units - all_events, all_events)
    z = signed_root(seen, mean, total, variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = events / units
        difference = (events - expected) / comparable
    return Excess(np.where(flip, -z, z), rate, rate - difference)


def signed_root(seen: FloatArray, mean: FloatArray, total: FloatArray, variance: FloatArray) -> FloatArray:
    """Return z of the events that were seen, of so many in total, where the mean is expected; 0 if it is not known."""
    gap = seen - mean
    nearer = mean + np.sign(gap) * np.maximum(np.abs(gap) - 0.5, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = 2.0 * (_term(nearer, mean) + _term(total - nearer, total - mean))
        binomial = mean * (1.0 - mean / total)
        z = np.sign(gap) * np.sqrt(np.maximum(deviance, 0.0) * binomial / variance)
    return np.where(np.isfinite(z), z, 0.0)


def change(units: FloatArray, events: FloatArray, before_units: FloatArray, before_events: FloatArray) -> Excess:
    """Compare people of some days with those of the days before: arrays (...) to an `Excess` of the same shape.

    Examples
    --------
    >>> found = change(np.array(200.0), np.array(60.0), np.array(800.0), np.array(80.0))
    >>> round(float(found.z), 1), float(found.rate), round(float(found.others), 3)
    (6.5, 0.3, 0.1)
    """
    two = np.stack([units, before_units], axis=-1)[..., None, :]
    happened = np.stack([events, before_events], axis=-1)[..., None, :]
    found = excess(tally(two.astype(float), happened.astype(float)).summed())
    return Excess(found.z[..., 0], found.rate[..., 0], found.others[..., 0])


def _term(value: FloatArray, mean: FloatArray) -> FloatArray:
    return np.where(value > 0, value * np.log(np.where(value > 0, value, 1.0) / mean), 0.0)
