"""Independent computations to compare with: textbook formulas, high-precision bisection, a conic solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

if TYPE_CHECKING:
    from equipoise._types import FloatArray


def tradeoff(allocation: Any, mean: Any, std: Any, reward_weight: float) -> float:
    """Eq. 4 in extended precision, term by term."""
    share, mu, sigma = (np.asarray(x, dtype=np.longdouble) for x in (allocation, mean, std))
    noisy = sigma > 0
    weight = np.longdouble(reward_weight)
    with np.errstate(divide="ignore"):
        error = (sigma[noisy] / np.sqrt(share[noisy])).sum() / mu.size if noisy.any() else np.longdouble(0)
    return float(weight * (share * mu).sum() - (0 if weight == 1 else (1 - weight) * error))


def stationarity_gap(
    allocation: FloatArray, mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray
) -> float:
    """How far the optimality conditions are violated, relative to the size of the terms in them.

    Above its floor an arm's derivative equals the multiplier, on its floor it is at most that.
    """
    share, mu, sigma = (np.asarray(x, dtype=np.longdouble) for x in (allocation, mean, std))
    weight = np.longdouble(reward_weight)
    gap = weight * (mu.max() - mu)
    steepness = np.where(sigma > 0, (1 - weight) * sigma / (2 * mu.size) / np.maximum(share, 1e-300) ** 1.5, 0)
    derivative, size = steepness - gap, steepness + gap
    above = allocation > floor * (1 + 1e-12)
    # The multiplier is read off the arm with the smallest terms, where rounding blurs it least.
    level = derivative[above][size[above].argmin()]
    violation = (derivative - level) / (size + abs(level) + np.longdouble(1e-300))
    return float(max(abs(violation[above]).max(), violation.max()))


def optimum_to_fifty_digits(mean: Any, std: Any, reward_weight: float, floor: float = 0.0) -> list[Any]:
    """Optimal shares by plain bisection on the multiplier in 50-digit arithmetic; all stds positive, weight below 1."""
    with mpmath.workdps(50):
        weight, low_share = mpmath.mpf(reward_weight), mpmath.mpf(floor)
        mu, sigma = [mpmath.mpf(float(x)) for x in mean], [mpmath.mpf(float(x)) for x in std]
        cost = [(1 - weight) * s / (2 * len(mu)) for s in sigma]

        def shares(multiplier: Any) -> list[Any]:
            two_thirds = mpmath.mpf(2) / 3
            return [
                max(low_share, (c / (multiplier - weight * m)) ** two_thirds) for c, m in zip(cost, mu, strict=True)
            ]

        low = max(weight * m + c for c, m in zip(cost, mu, strict=True))
        high = low + sum(c for c in cost) * len(mu) + 1
        while sum(shares(high)) > 1:
            high = low + 2 * (high - low)
        for _ in range(400):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(shares(middle)) > 1 else (low, middle)
        return shares(high)


def conic_optimum(
    mean: FloatArray, std: FloatArray, reward_weight: float, floor: FloatArray, power: float = 0.5
) -> FloatArray:
    """Optimal shares by cvxpy with Clarabel, put back onto the floored simplex they left by its tolerance."""
    import cvxpy as cp

    share = cp.Variable(mean.size)
    spread = std ** (2 * power) / mean.size
    value = reward_weight * (mean @ share)
    if reward_weight < 1 and spread.any():
        value = value - (1 - reward_weight) * (spread[spread > 0] @ cp.power(share[spread > 0], -power))
    cp.Problem(cp.Maximize(value), [cp.sum(share) == 1, share >= floor]).solve(solver=cp.CLARABEL)
    found = np.maximum(np.asarray(share.value), floor)
    spare = found - floor
    return np.asarray(floor + spare * (1 - floor.sum()) / spare.sum())


def conic_optimum_for_information(
    mean: FloatArray, std: FloatArray, kept: float, about: str, floor: FloatArray, power: float = 0.5
) -> FloatArray:
    """The most reward that keeps a share of the information, by cvxpy: two problems in people instead of shares.

    The fewest people for a fixed accuracy are the best design; then the most reward with 1 / kept times as many. With
    all the information kept, the best design.
    Accuracies are convex in the people of each arm, and these keep a size that suits the solver at any share kept.
    """
    import cvxpy as cp

    size = std / std.max()
    noisy, best = np.flatnonzero(size), int(mean.argmax())
    unit = np.ones(mean.size)  # people of each arm in units of about what it needs
    if about == "best-arm":
        gaps = squared_gaps(mean, std)
        unit = 2 * size**2 / np.where(np.arange(mean.size) == best, np.delete(gaps, best).min(), gaps)
        unit = np.maximum(unit / unit.sum(), 1e-9 + (size == 0) / mean.size)
    amount = cp.Variable(mean.size)
    people = cp.multiply(unit, amount)
    if about == "average":
        cost = size[noisy] ** (2 * power)
        limit = (cost ** (1 / (1 + power))).sum() ** (1 + power)
        accurate = [(cost / limit) @ cp.power(people[noisy], -power) <= 1]
    elif about == "every-arm":
        accurate = [people >= size**2 / (size**2).sum()]
    else:
        largest = (size**2 / (gaps * unit))[noisy].max()
        others = [i for i in range(mean.size) if i != best and size[i] + size[best] > 0]
        accurate = []
        for i in others:
            parts = [(size[k] ** 2 / (gaps[i] * unit[k]) / largest, k) for k in (i, best) if size[k] > 0]
            accurate.append(sum(part * cp.inv_pos(amount[k]) for part, k in parts) <= 1)
    reserved = [people >= floor * cp.sum(people), people >= 0]
    design = cp.Problem(cp.Minimize(cp.sum(people)), [*accurate, *reserved])
    fewest = float(design.solve(solver=cp.CLARABEL))
    if kept < 1:
        loss = (mean.max() - mean) / (np.ptp(mean) or 1.0)
        total = [cp.sum(people) == fewest / kept]
        cp.Problem(cp.Minimize(loss @ people), [*accurate, *reserved, *total]).solve(solver=cp.CLARABEL)
    if amount.value is None:
        raise cp.SolverError("no solution found")
    found = np.maximum(np.asarray(people.value), 0)
    return np.asarray(found / found.sum())


def squared_gaps(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Squared differences to the best mean, in units of the largest std; a twentieth of the typical std at least."""
    size = std / std.max()
    return np.asarray(np.maximum((mean.max() - mean) / std.max(), 0.05 * np.sqrt((size**2).mean())) ** 2)


def surety(allocation: FloatArray, mean: FloatArray, std: FloatArray) -> float:
    """How surely the best arm is told from the others: the smallest squared difference in units of its noise."""
    best, size = int(mean.argmax()), std / std.max()
    with np.errstate(divide="ignore", invalid="ignore"):
        noise = np.where(size > 0, size**2 / allocation, 0.0)
        sure = squared_gaps(mean, std) / (noise + noise[best])
    return float(np.delete(sure, best).min(initial=np.inf))
