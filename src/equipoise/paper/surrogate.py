"""Derive the 64-arm surrogate: constants of the printed table, then arms with its aggregates  [Fig. 6].

The data of the educational experiment were never published. The printed numbers still say a great deal about them, and
every step from there to a set of arms is a function here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from equipoise._types import FloatArray
from equipoise.arms import Gaussian
from equipoise.objective import error, optimal_allocation, reward
from equipoise.paper import educational_runs as fig6

# Constants: what the largest mean and the largest standard deviation must be


class Constants(NamedTuple):
    """The largest mean and the largest standard deviation of the 64 arms."""

    mean_max: float
    std_max: float


CONSTANTS = Constants(12.335, 4.292)
"""Found by `solve_constants`, to the digits that the table supports."""


@dataclass(frozen=True, kw_only=True)
class RowEquation:
    """What a row says about the two constants: of_mean * mean_max + of_std * std_max = regret, to rounding.

    The rescaled regret is sqrt(n) times how far a row is below the optimum in w * reward - (1 - w) * error. The table
    prints rewards as multiples of one constant and errors as multiples of the other.

    Attributes
    ----------
    of_mean, of_std, regret : Printed
        Each with its largest possible error, since all the numbers in it are rounded.
    """

    row: str
    reward_weight: float
    of_mean: fig6.Printed
    of_std: fig6.Printed
    regret: fig6.Printed

    def left_side(self, constants: Constants = CONSTANTS) -> float:
        """Return the regret that the constants imply for the row."""
        return self.of_mean.value * constants.mean_max + self.of_std.value * constants.std_max

    def slack(self, constants: Constants = CONSTANTS) -> float:
        """Return the largest difference between the two sides that rounding alone explains."""
        of_mean, of_std = self.of_mean.rounding, self.of_std.rounding
        return of_mean * constants.mean_max + of_std * constants.std_max + self.regret.rounding

    def holds(self, constants: Constants = CONSTANTS) -> bool:
        """Return whether the row agrees with the constants, to rounding."""
        return abs(self.left_side(constants) - self.regret.value) <= self.slack(constants)


def row_equation(row: str, reward_weight: float) -> RowEquation:
    """Return the equation of a row of the table.

    Examples
    --------
    >>> uniform = row_equation("Uniform", 0.95)
    >>> round(uniform.left_side(), 2), uniform.regret.value
    (20.57, 20.49)
    """
    root = math.sqrt(fig6.HORIZON)
    best, own = ({c: fig6.printed(r, c, reward_weight) for c in ("reward", "error")} for r in (fig6.OPTIMUM, row))

    def lost(column: str, factor: float) -> fig6.Printed:
        difference = best[column].value - own[column].value
        return fig6.Printed(factor * difference, abs(factor) * (best[column].rounding + own[column].rounding))

    return RowEquation(
        row=row,
        reward_weight=reward_weight,
        of_mean=lost("reward", root * reward_weight),
        of_std=lost("error", -root * (1 - reward_weight)),
        regret=fig6.printed(row, "regret", reward_weight),
    )


def baseline_equations() -> tuple[RowEquation, ...]:
    """Return the equations of UCB, GAFS and Uniform at both weights: six for two unknowns."""
    return tuple(row_equation(row, weight) for weight in fig6.WEIGHTS for row in fig6.BASELINES)


def solve_constants(equations: Sequence[RowEquation]) -> Constants:
    """Return the constants that fit the rows best, by least squares.

    Examples
    --------
    >>> mean_max, std_max = solve_constants(baseline_equations())
    >>> round(mean_max, 3), round(std_max, 3)
    (12.335, 4.292)
    """
    matrix = np.array([[equation.of_mean.value, equation.of_std.value] for equation in equations])
    right = np.array([equation.regret.value for equation in equations])
    mean_max, std_max = np.linalg.lstsq(matrix, right)[0].tolist()
    return Constants(mean_max, std_max)


def possible_constants(equations: Sequence[RowEquation]) -> tuple[Constants, ...]:
    """Return the corners of the polygon of constants that agree with every row to rounding; empty if none do.

    Each row allows a strip of the plane: its two sides may differ by a slack that is linear in the constants.

    Examples
    --------
    >>> corners = possible_constants(baseline_equations())
    >>> [round(corner.std_max, 3) for corner in corners]
    [4.285, 4.286, 4.299, 4.298, 4.297]
    """
    bounds: list[tuple[float, float, float]] = []
    for one in equations:
        for sign in (1, -1):
            slope = [sign * of.value - of.rounding for of in (one.of_mean, one.of_std)]
            bounds.append((slope[0], slope[1], sign * one.regret.value + one.regret.rounding))
    sides, limits = np.array([bound[:2] for bound in bounds]), np.array([bound[2] for bound in bounds])
    corners = []
    for pair in combinations(range(len(bounds)), 2):
        chosen = list(pair)
        if abs(np.linalg.det(sides[chosen])) < 1e-9:
            continue
        corner = np.linalg.solve(sides[chosen], limits[chosen])
        if (sides @ corner <= limits + 1e-9).all():
            corners.append(corner)
    if not corners:
        return ()
    centre = np.mean(corners, axis=0)
    corners.sort(key=lambda corner: math.atan2(corner[1] - centre[1], corner[0] - centre[0]))
    return tuple(Constants(float(corner[0]), float(corner[1])) for corner in corners)


# Aggregates: what the rows say about all arms together


@cache
def printed_aggregates() -> dict[str, fig6.Printed]:
    """Return the numbers of the table that depend on the arms alone: the ones a surrogate must match.

    The rows of UCB and ForcingBalance are not among them, so they can test a surrogate.

    Examples
    --------
    >>> list(printed_aggregates())  # doctest: +ELLIPSIS
    ['Uniform reward', 'Uniform error', 'GAFS reward', 'GAFS error', 'optimum reward, w = 0.95', ...]
    """
    found = {
        f"{row} {column}": fig6.printed(row, column, fig6.WEIGHTS[0])
        for row in (fig6.UNIFORM, fig6.GAFS)
        for column in ("reward", "error")
    }
    for weight in fig6.WEIGHTS:
        found |= {
            f"optimum {column}, w = {weight:g}": fig6.printed(fig6.OPTIMUM, column, weight)
            for column in ("reward", "error")
        }
    return found


def aggregates(mean: FloatArray, std: FloatArray) -> dict[str, float]:
    """Return the same numbers for some arms, by formula; nothing is simulated.

    GAFS aims at shares proportional to std^(2/3). It knows a std only to a relative error of 1 / sqrt(2 pulls), so its
    shares are off by 2/3 of that, and the average error is larger than the least by sum(std / share^(3/2)) / (12 K n).

    Examples
    --------
    >>> from equipoise.paper.instances import treefrog_surrogate
    >>> arms = treefrog_surrogate()
    >>> round(aggregates(arms.mean, arms.std)["optimum error, w = 0.95"], 3)
    6.553
    """
    equal = np.full(mean.size, 1 / mean.size)
    accurate = optimal_allocation(mean, std, reward_weight=0)
    unsure = float((std / accurate**1.5).mean()) / (12 * fig6.HORIZON)
    best = [optimal_allocation(mean, std, reward_weight=weight) for weight in fig6.WEIGHTS]
    pairs = [(reward(shares, mean), error(shares, std)) for shares in (equal, accurate, *best)]
    pairs[1] = (pairs[1][0], pairs[1][1] + unsure)
    values = [value for pair in pairs for value in (pair[0] / mean.max(), pair[1] / std.max())]
    return dict(zip(printed_aggregates(), map(float, values), strict=True))


def misfit(mean: FloatArray, std: FloatArray) -> FloatArray:
    """Return how far each aggregate of some arms is from the printed one, in units of its rounding."""
    value, rounding = np.array(list(printed_aggregates().values())).T
    ours = np.array(list(aggregates(mean, std).values()))
    return np.asarray((ours - value) / rounding)


def sum_of_squares(arms: Gaussian) -> float:
    """Return the sum of the squares of the misfit."""
    return float((misfit(arms.mean, arms.std) ** 2).sum())


# The fit: arms that have the aggregates

KNOTS = 6
"""Knots over the ranks of the arms where gaps between means, and stds, are free; in between they are interpolated."""

PULL = (0.5, 0.1)
"""How far logarithms of gaps and of stds go from equal ones at the price of one unit of rounding.

Aggregates do not determine arms. Among those that fit, the fit prefers arms that differ little from evenly spaced ones.
"""


def fit_surrogate(*, noisiest: int = 4) -> Gaussian:
    """Return 64 arms, best first, with the largest mean and std of the table and its aggregates as close as possible.

    The averages of means and stds match Uniform's row exactly. The other aggregates are fitted by least squares, in
    units of their rounding. It takes about a second and is deterministic.

    Parameters
    ----------
    noisiest : int, default 4
        Which arm has the largest std, counted from the best; the table does not say.

    Examples
    --------
    >>> arms = fit_surrogate()
    >>> arms.n_arms, arms.mean.max(), arms.std.max(), round(float(arms.mean.mean() / arms.mean.max()), 4)
    (64, np.float64(12.335), np.float64(4.292), 0.9168)
    """
    free = [2, 3, 4, 5, 6, 7]  # the averages, which come first, hold by construction
    widths = np.repeat(PULL, KNOTS)

    def residuals(logarithms: FloatArray) -> FloatArray:
        return np.concatenate([misfit(*_arms_of(logarithms, noisiest))[free], logarithms / widths])

    mean, std = _arms_of(_least_squares(residuals, np.zeros(2 * KNOTS)), noisiest)
    return Gaussian(mean=mean.round(4), std=std.round(4))


def _arms_of(logarithms: FloatArray, noisiest: int) -> tuple[FloatArray, FloatArray]:
    """Return means and stds; the gaps between ranked means and the stds are given by logarithms at knots."""
    at = np.linspace(0, 1, KNOTS)
    gaps = np.exp(np.interp(np.linspace(0, 1, fig6.N_ARMS - 1), at, logarithms[:KNOTS]))
    fall = np.concatenate([[0.0], np.cumsum(gaps)])
    average_mean = fig6.printed(fig6.UNIFORM, "reward", fig6.WEIGHTS[0]).value
    mean = 1 - fall * (1 - average_mean) / fall.mean()
    std = np.exp(np.interp(np.linspace(0, 1, fig6.N_ARMS), at, logarithms[KNOTS:]))
    others = np.arange(fig6.N_ARMS) != noisiest - 1
    # Equal shares of 1 / K make the error sqrt(K) times the average std.
    total = fig6.printed(fig6.UNIFORM, "error", fig6.WEIGHTS[0]).value / math.sqrt(fig6.N_ARMS) * fig6.N_ARMS
    std[others] *= (total - 1) / std[others].sum()
    std[~others] = 1.0
    return CONSTANTS.mean_max * mean, CONSTANTS.std_max * std


def _least_squares(residuals: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """Minimise the sum of squares by the Levenberg-Marquardt method with numerical derivatives."""
    step, damping = 1e-6, 1e-2
    place, now = start, residuals(start)
    for _ in range(200):
        slopes = np.array([(residuals(place + move) - now) / step for move in step * np.eye(place.size)]).T
        curvature, downhill = slopes.T @ slopes, -slopes.T @ now
        while damping < 1e12:
            move = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), downhill)
            then = residuals(place + move)
            if then @ then < now @ now:
                break
            damping *= 4
        else:
            return place
        gained = 1 - (then @ then) / (now @ now)
        place, now, damping = place + move, then, damping / 5
        if gained < 1e-5:
            break
    return place
