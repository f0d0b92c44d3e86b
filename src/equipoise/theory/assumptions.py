"""Check the assumptions that the bounds make about their input."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.errors import InvalidInput

LARGEST_FORCING = 21.0
"""Theorem 1 is stated for a forcing parameter (eta) of at most this."""

LARGEST_HORIZON = 10**300
"""Larger horizons do not fit a float."""


def checked_pulls(pulls: ArrayLike, horizon: int, reward_range: float) -> tuple[FloatArray, int, float]:
    """Check that pulls fit the horizon; return pulls, horizon and reward range."""
    counts = checks.non_negative("pulls", pulls)
    steps = checked_horizon(horizon)
    if counts.sum() > steps * (1 + 1e-9):
        raise InvalidInput.of("pulls", f"must add up to at most horizon, {steps}; got {counts.sum():g}")
    return counts, steps, checked_range(reward_range)


def checked_horizon(horizon: int) -> int:
    """Return the horizon; raise unless it fits a float."""
    steps = checks.whole_number("horizon", horizon, 1)
    if steps > LARGEST_HORIZON:
        raise InvalidInput.of("horizon", f"must be at most {LARGEST_HORIZON:.0e}; got {steps.bit_length()} bits")
    return steps


def checked_range(reward_range: float) -> float:
    """Return the length of the interval of rewards; raise unless it is positive."""
    return checks.number_between("reward_range", reward_range, 0, math.inf, open_low=True)


def checked_probability(failure_probability: float) -> float:
    """Return the probability; raise unless it is strictly between 0 and 1."""
    delta = checks.number_between("failure_probability", failure_probability, -math.inf, math.inf)
    if not 0 < delta < 1:
        raise InvalidInput.of("failure_probability", "must be in (0, 1)", failure_probability)
    return delta


def weight_below_one(reward_weight: float) -> float:
    """Return the weight; raise unless the trade-off is strongly concave for it."""
    weight = checks.number_between("reward_weight", reward_weight, -math.inf, math.inf)
    if not 0 <= weight < 1:
        # At 1 the trade-off is linear: no strong concavity, so neither Lemma 3 nor Theorem 1.
        raise InvalidInput.of("reward_weight", "must be in [0, 1)", reward_weight)
    return weight


def checked_forcing(forcing: float) -> float:
    """Return the forcing parameter; raise unless Theorem 1 covers it."""
    return checks.number_between("forcing", forcing, 0, LARGEST_FORCING, open_low=True)


def positive_floor(floor: float, n_arms: int) -> float:
    """Return the floor; raise unless it is positive and leaves room for every arm."""
    share = checks.number_between("floor", floor, 0, 1, open_low=True)
    checks.floors(share, n_arms)
    return share


def positive_stds(std: ArrayLike) -> FloatArray:
    """Return the standard deviations; raise unless all are positive."""
    stds = checks.vector("std", std)
    if stds.min() <= 0:
        arm = int(stds.argmin())
        raise InvalidInput.of("std", f"must be positive for every arm (Lemma 1); got {stds[arm]:g}", arm=arm)
    return stds


def largest_radius(name: str, radius: ArrayLike, n_arms: int) -> float:
    """Return the largest radius; infinity is allowed, as for an arm without rewards."""
    try:
        radii = np.asarray(radius, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput.of(name, f"must be {n_arms} numbers, one per arm", radius) from error
    if radii.shape != (n_arms,) or np.isnan(radii).any() or radii.min() < 0:
        raise InvalidInput.of(name, f"must be {n_arms} numbers of at least 0, one per arm", radius)
    return float(radii.max())
