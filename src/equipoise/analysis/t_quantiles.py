"""Compute tails and quantiles of Student's t distribution, and of the normal one as its limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray
from equipoise.errors import InvalidInput

_AS_NORMAL = 1e30
"""With more degrees of freedom than this, the distribution is the normal one to the last digit of a double."""


def upper_tail(t: ArrayLike, degrees_of_freedom: ArrayLike = np.inf) -> FloatArray:
    """Return the probability of a value beyond t; with infinitely many degrees of freedom, of the normal distribution.

    Examples
    --------
    >>> upper_tail([0.0, 2.0, -2.0], 10).round(4)
    array([0.5   , 0.0367, 0.9633])
    >>> upper_tail([1.96]).round(4)
    array([0.025])
    """
    from equipoise.kernels.student import write_upper_tails

    values, freedom = _checked("t", t, degrees_of_freedom)
    tail = np.full(values.size, np.nan)
    known = ~np.isnan(values) & ~np.isnan(freedom)
    some = np.empty(int(known.sum()))
    write_upper_tails(values[known], freedom[known], some)
    tail[known] = some
    return tail


def upper_quantile(probability: ArrayLike, degrees_of_freedom: ArrayLike = np.inf) -> FloatArray:
    """Return the t beyond which there is this probability; of the normal distribution, if no freedom is given.

    Examples
    --------
    >>> upper_quantile(0.025, [1, 10, 1_000]).round(4)
    array([12.7062,  2.2281,  1.9623])
    >>> upper_quantile([0.025, 0.975]).round(4)
    array([ 1.96, -1.96])
    """
    from equipoise.kernels.student import write_upper_quantiles

    chances, freedom = _checked("probability", probability, degrees_of_freedom)
    if not ((chances > 0) & (chances < 1)).all():
        raise InvalidInput.of("probability", "must be in (0, 1)", probability)
    quantile = np.full(chances.size, np.nan)
    known = ~np.isnan(freedom)
    some = np.empty(int(known.sum()))
    write_upper_quantiles(chances[known], freedom[known], some)
    quantile[known] = some
    return quantile


def _checked(name: str, values: ArrayLike, degrees_of_freedom: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return both as arrays of one size; NaN stands for what is not known."""
    try:
        given, freedom = np.broadcast_arrays(
            np.atleast_1d(np.asarray(values, dtype=np.float64)),
            np.atleast_1d(np.asarray(degrees_of_freedom, dtype=np.float64)),
        )
    except (TypeError, ValueError):
        raise InvalidInput.of(name, "must be numbers, as many as there are degrees of freedom", values) from None
    if (freedom <= 0).any():
        raise InvalidInput.of("degrees_of_freedom", "must be positive", degrees_of_freedom)
    return np.ascontiguousarray(given), np.minimum(freedom, _AS_NORMAL)
