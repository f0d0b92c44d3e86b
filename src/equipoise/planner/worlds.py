"""Make worlds: what is true in one simulated experiment, with everything that is not stated left out of it.

A plan has guesses; each simulated experiment draws a world from them. `kernels.world` describes the fields.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray
from equipoise.kernels.world import BETA, EMPIRICAL, GAMMA, NORMAL, SHAPE_ROWS, YES_NO, World

__all__ = ["BETA", "EMPIRICAL", "GAMMA", "NORMAL", "SHAPE_ROWS", "YES_NO", "World", "new_world"]

DAY = 86_400.0
UNLIMITED = 2**53
"""More people than will ever come."""


def new_world(
    mean: ArrayLike,
    std: ArrayLike | None = None,
    *,
    kind: int = YES_NO,
    per_day: ArrayLike,
    ends: tuple[float, float] = (0.0, 1.0),
    pilot: Sequence[ArrayLike] | None = None,
    rounded_to: float = 0.0,
    reward_range: tuple[float | None, float | None] | None = None,
    delay: ArrayLike = 0.0,
    delay_spread: ArrayLike = 0.0,
    missing: ArrayLike = 0.0,
    missing_after_good: ArrayLike | None = None,
    is_exact: bool = False,
    most_people: int = UNLIMITED,
    batch_people: int = 0,
    batch_seconds: float = 0.0,
    batch_at: float = 0.0,
    drift_per_day: float = 0.0,
    step: float = 0.0,
    step_at: float = 0.0,
) -> World:
    """Return a world of arms with rewards of one kind; values per arm may be one for all.

    Parameters
    ----------
    mean : array (n_arms,)
        True means: rates of yes/no rewards.
    std : array (n_arms,), optional
        True standard deviations; those of yes/no rewards follow from their rates.
    kind : int
        `YES_NO`, `NORMAL`, `GAMMA`, `BETA` or `EMPIRICAL`.
    per_day : array (days,)
        How many people come on each day, on average.
    ends : (float, float)
        Of the rewards of `BETA`.
    pilot : one array per arm, optional
        For `EMPIRICAL`: rewards to draw from, moved and stretched to the mean and std.
    reward_range : (float or None, float or None), optional
        Rewards beyond it are moved to its ends.
    missing : array (n_arms,)
        Probability that no reward comes; after a bad one, if `missing_after_good` is given too.

    Examples
    --------
    >>> world = new_world([0.3, 0.5], per_day=[100] * 30, delay=8 * 3600, missing=0.05)
    >>> world.std.round(3), world.missing_after_good
    (array([0.458, 0.5  ]), array([0.05, 0.05]))
    """
    means = np.array(mean, np.float64, ndmin=1)
    n_arms = means.size

    def each(value: ArrayLike) -> FloatArray:
        return np.array(np.broadcast_to(np.asarray(value, np.float64), (n_arms,)))

    shape, pool = np.zeros((SHAPE_ROWS, n_arms)), np.zeros(0)
    stds = np.sqrt(means * (1.0 - means)) if kind == YES_NO else each(0.0 if std is None else std)
    if kind == YES_NO:
        shape[0] = means
    elif kind == NORMAL:
        shape[0], shape[1] = means, stds
    elif kind == GAMMA:
        shape[0], shape[1] = (means / stds) ** 2, stds**2 / means
    elif kind == BETA:
        width = ends[1] - ends[0]
        rate, variance = (means - ends[0]) / width, (stds / width) ** 2
        strength = rate * (1.0 - rate) / variance - 1.0
        shape[0], shape[1], shape[2], shape[3] = rate * strength, (1.0 - rate) * strength, ends[0], ends[1]
    else:
        samples = [np.sort(np.asarray(one, np.float64)) for one in pilot or ()]
        pool = np.concatenate(samples)
        for i, sample in enumerate(samples):
            spread = float(sample.std())
            factor = 1.0 if std is None or spread == 0.0 else stds[i] / spread
            first = sum(one.size for one in samples[:i])
            shape[:, i] = first, sample.size, factor, means[i] - factor * sample.mean()
            stds[i] = factor * spread
    low, high = reward_range or (None, None)
    after_bad = each(missing)
    return World(
        kind=np.full(n_arms, kind, np.int64),
        shape=shape,
        pool=pool,
        rounded_to=float(rounded_to),
        lowest=-math.inf if low is None else float(low),
        highest=math.inf if high is None else float(high),
        mean=means,
        std=stds,
        delay=each(delay),
        delay_spread=each(delay_spread),
        missing_after_good=after_bad if missing_after_good is None else each(missing_after_good),
        missing_after_bad=after_bad,
        per_day=np.array(per_day, np.float64, ndmin=1),
        is_exact=bool(is_exact),
        most_people=int(most_people),
        batch_people=int(batch_people),
        batch_seconds=float(batch_seconds),
        batch_at=float(batch_at),
        drift_per_second=drift_per_day / DAY,
        step=float(step),
        step_at=float(step_at),
    )
