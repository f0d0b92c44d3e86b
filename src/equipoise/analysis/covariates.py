"""Adjust means and differences for what was known of units beforehand, which takes away the noise that it explains.

Means are compared as if all arms had been assigned units with the same attributes: the slope of rewards on attributes
is estimated within arms and pooled (analysis of covariance; CUPED where the attribute is the same quantity measured
before). It is valid under any policy that does not see the attributes, and they must not be affected by the arm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise._types import FloatArray
from equipoise.analysis.attributes import NUMBER, Attribute
from equipoise.analysis.fixed_sample import compared_pairs
from equipoise.analysis.results import Adjusted, AdjustedDifference, AdjustedMean
from equipoise.analysis.t_quantiles import upper_quantile
from equipoise.errors import InvalidInput
from equipoise.theory.assumptions import checked_probability

MOST_COLUMNS = 20
"""Numbers and categories to adjust for; more would fit noise in small experiments."""

_RIDGE = 1e-8
"""Added to the squares of standardised columns, so that columns that say the same do no harm."""

FEWEST = 30
"""Rewards of both arms from which on there is an interval that holds at all times."""


@dataclass(frozen=True, eq=False)
class CovariateSums:
    """Counts, averages and products of columns and rewards per arm: what adjusted means need of any number of units.

    Attributes
    ----------
    columns : tuple of str
        Names of the p columns.
    count : array (n_arms,)
        Units with a reward.
    average : array (n_arms, p + 1)
        Averages of the columns, and of the reward in the last place.
    products : array (n_arms, p + 1, p + 1)
        Sums of products of their distances from these averages.
    """

    columns: tuple[str, ...]
    count: FloatArray
    average: FloatArray
    products: FloatArray

    @classmethod
    def of(
        cls, arm: ArrayLike, reward: ArrayLike, matrix: ArrayLike, *, columns: Sequence[str], n_arms: int
    ) -> CovariateSums:
        """Return the sums of these units; those without a reward (NaN) or with a column missing are left out."""
        arms, rewards, values = np.asarray(arm), np.asarray(reward, np.float64), np.asarray(matrix, np.float64)
        if values.shape != (arms.size, len(columns)) or rewards.shape != arms.shape:
            raise InvalidInput.of(
                "matrix", f"must have a row per unit and a column per name, shape ({arms.size}, {len(columns)})"
            )
        if len(columns) > MOST_COLUMNS:
            raise InvalidInput.of("columns", f"must be at most {MOST_COLUMNS}, counting all categories", len(columns))
        together = np.column_stack([values, rewards])
        if np.isinf(together).any():
            raise InvalidInput.of("matrix", "must be finite, or NaN where a value is missing")
        known = ~np.isnan(together).any(axis=1)
        size = len(columns) + 1
        count, average, products = np.zeros(n_arms), np.zeros((n_arms, size)), np.zeros((n_arms, size, size))
        for a in range(n_arms):
            own = together[known & (arms == a)]
            count[a] = len(own)
            if len(own):
                average[a] = own.mean(axis=0)
                own -= average[a]
                products[a] = own.T @ own
        return cls(tuple(columns), count, average, products)

    def merged(self, other: CovariateSums) -> CovariateSums:
        """Return the sums of both sets of units."""
        if self.columns != other.columns or self.count.size != other.count.size:
            raise InvalidInput("sums can be merged if they are of the same columns and arms")
        count = self.count + other.count
        share = np.where(count > 0, other.count / np.maximum(count, 1), 0.0)
        gap = other.average - self.average
        weight = self.count * share
        products = self.products + other.products + weight[:, None, None] * gap[:, :, None] * gap[:, None, :]
        return CovariateSums(self.columns, count, self.average + share[:, None] * gap, products)


def columns_of(attributes: Sequence[Attribute]) -> tuple[tuple[str, ...], FloatArray]:
    """Return names and columns to adjust for: numbers as they are, and one column per category but the most frequent.

    A missing number becomes the average, and a column says that it was missing; a missing category is one of its own.

    Examples
    --------
    >>> names, matrix = columns_of([Attribute.of("age", [9, None, 11]), Attribute.of("school", ["x", "x", "y"])])
    >>> names
    ('age', 'age is missing', 'school = y')
    >>> matrix.tolist()
    [[9.0, 0.0, 0.0], [10.0, 1.0, 0.0], [11.0, 0.0, 1.0]]
    """
    names: list[str] = []
    columns: list[FloatArray] = []

    def add(name: str, column: NDArray[np.bool_] | FloatArray) -> None:
        names.append(name)
        columns.append(np.asarray(column, np.float64))

    for one in attributes:
        known = one.known
        if not known.any():
            continue
        if one.kind == NUMBER:
            add(one.name, np.where(known, one.values, one.values[known].mean()))
            if not known.all():
                add(f"{one.name} is missing", ~known)
            continue
        codes = one.codes
        counts = np.bincount(codes[known], minlength=len(one.categories))
        for code, category in enumerate(one.categories):
            if code != counts.argmax() and counts[code]:
                add(f"{one.name} = {category}", codes == code)
        if not known.all():
            add(f"{one.name} is missing", ~known)
    if len(names) > MOST_COLUMNS:
        raise InvalidInput(
            f"attributes to adjust for must make at most {MOST_COLUMNS} columns, one for a number and one per "
            f"category; got {len(names)}",
            hint="adjust for fewer attributes, or for coarser ones",
        )
    return tuple(names), np.column_stack(columns) if columns else np.zeros(
        (len(attributes[0].values) if attributes else 0, 0)
    )


def adjusted(
    sums: CovariateSums,
    *,
    control: int | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    failure_probability: float = 0.05,
    simultaneous: bool = True,
) -> Adjusted:
    """Return means and differences adjusted for attributes.

    Parameters
    ----------
    sums : CovariateSums
        Of the units and their attributes.
    control : int, optional
        The arm that all others are compared with.
    pairs : sequence of pairs, optional
        The pairs (arm, other) to compare. Without both, all pairs are compared, later arms with earlier ones.
    failure_probability : float, default 0.05
        That some interval of means misses, and that some of differences does; of each if they need not hold together.
    simultaneous : bool, default True
        Whether intervals hold together (Bonferroni).

    References
    ----------
    Deng, Xu, Kohavi, Walker (2013), CUPED, WSDM. Lindon, Ham, Tingley, Bojinov (2022), arXiv:2210.08589, for intervals
    that hold at all times.

    Examples
    --------
    A score before the course explains two thirds of the score after it:

    >>> rng = np.random.default_rng(0)
    >>> arm, before = rng.integers(2, size=600), rng.normal(size=600)
    >>> after = 0.2 * arm + before + rng.normal(0, 0.7, 600)
    >>> found = adjusted(CovariateSums.of(arm, after, before[:, None], columns=["before"], n_arms=2))
    >>> round(found.explained, 2), [round(one, 2) for one in found.coefficients]
    (0.64, [1.0])
    >>> [difference] = found.differences
    >>> round(difference.difference, 2), round(difference.low_at_end, 2), round(difference.high_at_end, 2)
    (0.18, 0.07, 0.3)
    """
    n_arms, p = sums.count.size, len(sums.columns)
    compared = compared_pairs(n_arms, control=control, pairs=pairs)
    delta = checked_probability(failure_probability)
    slope, covariance = _slope(sums)
    count, total = sums.count, float(sums.count.sum())
    squares = sums.products[:, p, p]
    # What is left of each arm's squares around its own average, once the pooled slope is taken out.
    left = (
        squares - 2 * sums.products[:, :p, p] @ slope + np.einsum("i,aij,j->a", slope, sums.products[:, :p, :p], slope)
    )
    used_up = np.linalg.matrix_rank(covariance) if p else 0
    freedom = count - 1 - used_up * count / max(total, 1)
    usable = (freedom > 0) & (squares > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(usable, np.maximum(left, 0) / freedom, np.nan)
        everyone = count @ sums.average[:, :p] / total if total else np.zeros(p)
        between = sums.average[:, :p] - everyone
        mean = sums.average[:, p] - between @ slope
        # Of the attributes of all units: means are about the people they are a sample of.
        spread_all = sums.products[:, :p, :p].sum(axis=0) + (between * count[:, None]).T @ between
        of_people = float(slope @ spread_all @ slope) / max(total - 1, 1) / max(total, 1)
        of_slope = np.einsum("ai,ij,aj->a", between, covariance, between) * float(
            np.nanmean(np.append(variance, 0)) if p else 0
        )
        error = np.sqrt(variance / count + of_people + of_slope)
    within = float(squares.sum())
    explained = 1.0 - float(left.sum()) / within if within > 0 else 0.0
    share = delta / (n_arms if simultaneous else 1)
    means = []
    for a in range(n_arms):
        ends = _ends(float(mean[a]), float(error[a]), float(freedom[a]), float(count[a]), share)
        means.append(
            AdjustedMean(
                a,
                float(mean[a]) if count[a] else math.nan,
                float(error[a]),
                float(sums.average[a, p]) if count[a] else math.nan,
                float(np.sqrt(variance[a])),
                float(freedom[a]),
                *ends,
                int(count[a]),
            )
        )
    share = delta / (max(len(compared), 1) if simultaneous else 1)
    differences = []
    for a, b in compared:
        part_a, part_b = variance[a] / max(count[a], 1), variance[b] / max(count[b], 1)
        apart = sums.average[a, :p] - sums.average[b, :p]
        typical = (variance[a] * count[a] + variance[b] * count[b]) / max(count[a] + count[b], 1)
        spread = math.sqrt(part_a + part_b + float(apart @ covariance @ apart) * typical)
        welch = (
            (part_a + part_b) ** 2 / (part_a**2 / freedom[a] + part_b**2 / freedom[b])
            if usable[[a, b]].all()
            else math.nan
        )
        difference = float(mean[a] - mean[b]) if count[a] and count[b] else math.nan
        differences.append(
            AdjustedDifference(
                a,
                b,
                difference,
                spread,
                float(welch),
                float(sums.average[a, p] - sums.average[b, p]) if count[a] and count[b] else math.nan,
                *_ends(difference, spread, float(welch), float(min(count[a], count[b])), share),
            )
        )
    return Adjusted(sums.columns, tuple(slope.tolist()), explained, tuple(means), tuple(differences))


def _slope(sums: CovariateSums) -> tuple[FloatArray, FloatArray]:
    """Return the pooled slope within arms, and the inverse of the squares of columns, by which its variance grows."""
    p = len(sums.columns)
    squares, products = sums.products[:, :p, :p].sum(axis=0), sums.products[:, :p, p].sum(axis=0)
    scale = np.sqrt(np.diag(squares))
    # A column that never varies within arms, but for rounding, says nothing.
    size = np.sqrt(sums.count @ (sums.average[:, :p] ** 2)) if p else scale
    varies = scale > 1e-12 * np.maximum(size, 1e-300)
    slope, inverse = np.zeros(p), np.zeros((p, p))
    if varies.any():
        unit = scale[varies]
        standardised = squares[np.ix_(varies, varies)] / np.outer(unit, unit) + _RIDGE * np.eye(unit.size)
        inverted = np.linalg.inv(standardised)
        slope[varies] = inverted @ (products[varies] / unit) / unit
        inverse[np.ix_(varies, varies)] = inverted / np.outer(unit, unit)
    return slope, inverse


def _ends(centre: float, error: float, freedom: float, n: float, delta: float) -> tuple[float, float, float, float]:
    """Return the ends of the interval at all times and of that at the end; infinite where nothing is known."""
    from equipoise.kernels.t_mixture import t_radius

    if not (math.isfinite(centre) and error > 0 and freedom > 0):
        return -math.inf, math.inf, -math.inf, math.inf
    at_end = error * float(upper_quantile(delta / 2, freedom)[0])
    always = error * float(t_radius(freedom + 1, -math.log(delta))) if n >= FEWEST else math.inf
    return centre - always, centre + always, centre - at_end, centre + at_end
