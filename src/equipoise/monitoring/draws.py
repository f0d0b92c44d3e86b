"""Test the probabilities on record against the arms that were given, from sums alone."""

from __future__ import annotations

import numpy as np

from equipoise._types import FloatArray

_STAKES = np.array([0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9])
"""Bets, as parts of the largest that cannot lose everything."""


def draw_evidence(
    n_decisions: FloatArray, inverse: FloatArray, inverse_squares: FloatArray, least: FloatArray
) -> FloatArray:
    """Return the log evidence of each arm against the probabilities on record, which holds at all times.

    The sum of 1 / p over the people of an arm grows by 1 a decision on average, if the arm was given with the
    probabilities p. Bets on "more" and on "less" multiply ``1 + stake (x - 1)``; from the sums of 1 / p and of its
    square follows what they have won at least, as ``log(1 + s y) >= s y + y^2 (log(1 - s) + s)`` for y >= -1. What
    they won exceeds 1 / alpha at any time with a probability of at most alpha.

    Parameters
    ----------
    n_decisions : array (..., K)
        Decisions while the arm was in play.
    inverse, inverse_squares : array (..., K)
        Sums of 1 / p and 1 / p^2 over those decisions that gave the arm.
    least : array (..., K)
        The smallest probability that the arm can have, which is its floor; with 0 only "more" is bet on.

    References
    ----------
    Fan, Grama and Liu (2015). Exponential inequalities for martingales with applications. Electronic Journal of
    Probability 20.

    Examples
    --------
    >>> n = np.array([2000.0, 2000.0])
    >>> given, p = np.array([200.0, 120.0]), 0.1
    >>> draw_evidence(n, given / p, given / p**2, np.array([0.1, 0.1])).round(1)
    array([-1.3, 15.9])
    """
    gap = (inverse - n_decisions)[..., None]
    square = (inverse_squares - 2.0 * inverse + n_decisions)[..., None]
    reach = np.where(least > 0, 1.0 / np.where(least > 0, least, 1.0) - 1.0, np.inf)
    reach = np.maximum(reach, 1e-9)[..., None]
    drag = np.log1p(-_STAKES) + _STAKES
    more = gap * _STAKES + square * drag
    less = -gap / reach * _STAKES + square / reach**2 * drag
    bets = np.concatenate([more, less], axis=-1)
    largest = bets.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(bets - largest[..., None]).mean(axis=-1)))
