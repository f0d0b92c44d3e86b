"""Correct for the luck of the winner: shrink estimates towards their average by the part of them that is noise.

The largest of many estimates is probably too large. Intervals that hold for all arms together hold for whichever arm is
looked at; its average reward, as a single number, is replaced by a shrunken one (Morris 1983).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput


@dataclass(frozen=True)
class Shrunken:
    """Estimates shrunk towards their average.

    Attributes
    ----------
    estimate : tuple of float
        One per arm or group; NaN where there was none.
    standard_error : tuple of float
        How far each may be off, as a belief: no interval follows from it that holds in repeated experiments.
    kept : tuple of float
        Which part of each estimate's distance from the average was kept.
    centre : float
        The average towards which they were shrunk.
    spread : float
        Standard deviation of the true values, as estimated; NaN if there is only one.
    """

    estimate: tuple[float, ...]
    standard_error: tuple[float, ...]
    kept: tuple[float, ...]
    centre: float
    spread: float


def shrink(estimate: ArrayLike, standard_error: ArrayLike) -> Shrunken:
    """Return estimates moved towards their weighted average g, to g + (estimate - g) spread^2 / (spread^2 + error^2).

    The spread is the one at which the weighted squares are as large as expected (Paule and Mandel 1982).

    Parameters
    ----------
    estimate, standard_error : array (n,)
        The estimates and their standard errors; NaN for one that is not known, which is left out.

    References
    ----------
    Morris (1983), J. Am. Stat. Assoc. 78. Paule and Mandel (1982), J. Res. Natl. Bur. Stand. 87.

    Examples
    --------
    Six arms that hardly differ by more than noise, and one that is little known:

    >>> found = shrink([0.31, 0.28, 0.35, 0.30, 0.29, 0.50], [0.02, 0.02, 0.02, 0.02, 0.02, 0.20])
    >>> [round(one, 3) for one in found.estimate], round(found.spread, 3)
    ([0.308, 0.295, 0.326, 0.304, 0.299, 0.308], 0.018)
    """
    estimates, errors = (np.asarray(values, dtype=np.float64) for values in (estimate, standard_error))
    if estimates.ndim != 1 or estimates.shape != errors.shape:
        raise InvalidInput.of("standard_error", f"must have one entry per estimate; got shape {errors.shape}")
    if np.isinf(estimates).any() or np.isinf(errors).any() or (errors < 0).any():
        raise InvalidInput("estimates must be finite, and their standard errors finite and not negative")
    some = np.isfinite(estimates) & np.isfinite(errors)
    shrunken, belief, kept = (np.full(estimates.size, np.nan) for _ in range(3))
    if not some.any():
        return Shrunken(tuple(shrunken.tolist()), tuple(belief.tolist()), tuple(kept.tolist()), np.nan, np.nan)
    own = checks.vector("estimate", estimates[some])
    noise = errors[some] ** 2
    if own.size == 1:
        centre, between, share = (
            float(own[0]),
            np.nan,
            np.ones(1),
        )  # one estimate says nothing of how much others differ
    elif (noise > 0).all():
        centre, between = normal_prior(own, noise)
        share = between / (between + noise)
    else:
        # What is known without noise stays, and says how much estimates differ.
        centre, between = float(own.mean()), float(own.var(ddof=1))
        share = np.where(noise > 0, between / np.where(noise > 0, between + noise, 1.0), 1.0)
    doubt = 0.0 if own.size == 1 else 1.0 / float((1.0 / np.maximum(noise + between, 1e-300)).sum())
    shrunken[some] = centre + share * (own - centre)
    # What is left of the noise, and of the doubt about the centre.
    belief[some] = np.sqrt(share * noise + (1 - share) ** 2 * doubt)
    kept[some] = share
    return Shrunken(
        estimate=tuple(shrunken.tolist()),
        standard_error=tuple(belief.tolist()),
        kept=tuple(kept.tolist()),
        centre=centre,
        spread=float(np.sqrt(between)),
    )


def normal_prior(mean: FloatArray, noise: FloatArray) -> tuple[float, float]:
    """Return the centre of the arms' means and their variance beyond noise, by Paule and Mandel (1982).

    Two arms say little about how much arms differ, so the expected sum of squares is K - 1, as in their paper.
    """
    low, high = 0.0, float(np.ptp(mean)) ** 2 + float(noise.max())

    def excess(between: float) -> tuple[float, float]:
        weight = 1.0 / (noise + between)
        centre = float(weight @ mean / weight.sum())
        return float(weight @ (mean - centre) ** 2) - (mean.size - 1), centre

    if excess(0.0)[0] <= 0:
        between = 0.0
    else:
        while excess(high)[0] > 0:
            high *= 2
        for _ in range(100):
            between = 0.5 * (low + high)
            low, high = (between, high) if excess(between)[0] > 0 else (low, between)
    # With few arms that may well be 0 by chance; a part of the noise keeps beliefs from collapsing.
    between = max(between, float(noise.min()) / mean.size)
    return excess(between)[1], between
