"""Compare arms within the values of an attribute, and say whether they differ more in some than in others.

Many subgroups make chance findings. So those of a declared attribute share one failure probability, every estimate
stands beside one that is shrunk towards that of all groups, and undeclared attributes are explored with a limit on the
share of false findings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray, IntArray
from equipoise.analysis.attributes import CATEGORY, Attribute
from equipoise.analysis.fixed_sample import compared_pairs
from equipoise.analysis.multiplicity import discoveries
from equipoise.analysis.results import GroupDifference, GroupMean, Interaction, Subgroups
from equipoise.analysis.shrinkage import shrink
from equipoise.analysis.t_quantiles import upper_quantile
from equipoise.errors import InvalidInput
from equipoise.theory.assumptions import checked_probability

FEWEST = 30
"""Rewards of every mean that takes part from which on there is an interval that holds at all times."""


def by_subgroup(
    arm: ArrayLike,
    reward: ArrayLike,
    attribute: Attribute,
    *,
    n_arms: int,
    control: int | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    failure_probability: float = 0.05,
) -> Subgroups:
    """Return means and differences within the groups of an attribute that was declared beforehand.

    Parameters
    ----------
    arm : array (n,)
        Position of each unit's arm.
    reward : array (n,)
        Its reward, NaN where it is missing or still to come.
    attribute : Attribute
        A category of each unit, of at most 20 values; see `Attribute.as_category` for numbers.
    n_arms : int
        Number of arms.
    control : int, optional
        The arm that all others are compared with.
    pairs : sequence of pairs, optional
        The pairs (arm, other) to compare. Without both, all pairs are compared, later arms with earlier ones.
    failure_probability : float, default 0.05
        That some interval misses: of the means, of the differences, and of the interactions.

    Examples
    --------
    The second arm helps in the north only:

    >>> rng = np.random.default_rng(0)
    >>> arm, north = rng.integers(2, size=2_000), rng.random(2_000) < 0.5
    >>> reward = rng.normal(0.5 * (arm == 1) * north, 1.0)
    >>> school = Attribute.of("school", ["north" if one else "east" for one in north])
    >>> found = by_subgroup(arm, reward, school, n_arms=2)
    >>> [(one.group, round(one.difference, 2), round(one.shrunken, 2)) for one in found.differences]
    [('east', 0.04, 0.04), ('north', 0.52, 0.52)]
    >>> [one] = found.interactions
    >>> one.group, round(one.low, 2), round(one.high, 2)
    ('north', 0.2, 0.78)
    """
    compared = compared_pairs(n_arms, control=control, pairs=pairs)
    delta = checked_probability(failure_probability)
    arms, rewards, groups, codes = _checked(arm, reward, attribute, n_arms)
    count, mean, squares = _moments(arms, rewards, codes, n_arms, len(groups))
    noise = _noise(count, squares)
    share = delta / max(n_arms * len(groups), 1)
    means: list[GroupMean] = []
    for a in range(n_arms):
        shrunken = _shrunken(mean[:, a], np.sqrt(noise[:, a]))
        for g, group in enumerate(groups):
            own = _combined(mean[g, [a]], noise[g, [a]], count[g, [a]], np.ones(1), share)
            ends = own.low, own.high, own.low_at_end, own.high_at_end
            means.append(GroupMean(group, a, own.centre, own.error, shrunken[g], *ends, int(count[g, a])))
    share = delta / max(len(compared) * len(groups), 1)
    differences: list[GroupDifference] = []
    for a, b in compared:
        gaps = [_combined(mean[g, [a, b]], noise[g, [a, b]], count[g, [a, b]], _GAP, share) for g in range(len(groups))]
        shrunken = _shrunken(np.array([one.centre for one in gaps]), np.array([one.error for one in gaps]))
        for g, one in enumerate(gaps):
            ends, used = (one.low, one.high, one.low_at_end, one.high_at_end), int(count[g, a] + count[g, b])
            differences.append(GroupDifference(groups[g], a, b, one.centre, one.error, shrunken[g], *ends, used))
    found = _interactions(attribute.name, groups, count, mean, squares, compared, delta)
    left_out = int((~np.isnan(rewards) & (codes < 0)).sum())
    return Subgroups(attribute.name, groups, tuple(means), tuple(differences), tuple(found), left_out)


def explore(
    arm: ArrayLike,
    reward: ArrayLike,
    attributes: Sequence[Attribute],
    *,
    n_arms: int,
    control: int | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
    false_discoveries: float = 0.05,
) -> tuple[Interaction, ...]:
    """Return the interactions of arms with attributes that nobody declared, the clearest first.

    Each interval is for that interaction alone, at the stated rate. On average at most that share of those marked as
    discoveries is false (e-BH with e = 1 / (2 sqrt(p))), whatever depends on what; the others are ideas to test.

    Parameters
    ----------
    arm, reward, n_arms, control, pairs
        As in `by_subgroup`.
    attributes : sequence of Attribute
        Categories of each unit.
    false_discoveries : float, default 0.05
        Largest average share of false discoveries.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> arm, noise = rng.integers(2, size=2_000), rng.integers(4, size=(2_000, 5))
    >>> reward = rng.normal(np.where(noise[:, 0] == 2, arm, 0.0), 1.0)
    >>> attributes = [Attribute.of(f"question {k}", [f"answer {one}" for one in noise[:, k]]) for k in range(5)]
    >>> [(one.attribute, one.group) for one in explore(arm, reward, attributes, n_arms=2) if one.is_discovery]
    [('question 0', 'answer 2')]
    """
    compared = compared_pairs(n_arms, control=control, pairs=pairs)
    rate = checked_probability(false_discoveries)
    found: list[Interaction] = []
    for attribute in attributes:
        arms, rewards, groups, codes = _checked(arm, reward, attribute, n_arms)
        count, mean, squares = _moments(arms, rewards, codes, n_arms, len(groups))
        found += _interactions(attribute.name, groups, count, mean, squares, compared, rate, simultaneous=False)
    chosen = set(discoveries([0.5 / math.sqrt(max(one.p_value, 1e-300)) for one in found], rate)) if found else set()
    marked = [Interaction(**vars(one) | {"is_discovery": k in chosen}) for k, one in enumerate(found)]
    return tuple(sorted(marked, key=lambda one: one.p_value))


class _Combined(NamedTuple):
    """A sum of means with signs, and what is known of it."""

    centre: float
    error: float
    low: float = -math.inf
    high: float = math.inf
    low_at_end: float = -math.inf
    high_at_end: float = math.inf
    p_value: float = 1.0


_GAP = np.array([1.0, -1.0])
_GAP_OF_GAPS = np.array([1.0, -1.0, -1.0, 1.0])


def _interactions(
    name: str,
    groups: tuple[str, ...],
    count: FloatArray,
    mean: FloatArray,
    squares: FloatArray,
    compared: list[tuple[int, int]],
    delta: float,
    *,
    simultaneous: bool = True,
) -> list[Interaction]:
    """Return the interactions of each group with all others."""
    if len(groups) < 2:
        return []
    which = range(len(groups)) if len(groups) > 2 else (1,)
    share = delta / (max(len(compared) * len(which), 1) if simultaneous else 1)
    noise, found = _noise(count, squares), []
    for g in which:
        rest = np.arange(len(groups)) != g
        rest_count = count[rest].sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            rest_mean = np.nansum(count[rest] * np.nan_to_num(mean[rest]), axis=0) / rest_count
            between = (count[rest] * (np.nan_to_num(mean[rest]) - rest_mean) ** 2).sum(axis=0)
        rest_noise = _noise(rest_count, squares[rest].sum(axis=0) + between)
        for a, b in compared:
            one = _combined(
                np.concatenate([mean[g, [a, b]], rest_mean[[a, b]]]),
                np.concatenate([noise[g, [a, b]], rest_noise[[a, b]]]),
                np.concatenate([count[g, [a, b]], rest_count[[a, b]]]),
                _GAP_OF_GAPS,
                share,
            )
            is_discovery = simultaneous and (one.low > 0 or one.high < 0)
            found.append(
                Interaction(
                    attribute=name,
                    group=groups[g],
                    arm=a,
                    other=b,
                    difference=one.centre,
                    standard_error=one.error,
                    low=one.low,
                    high=one.high,
                    low_at_end=one.low_at_end,
                    high_at_end=one.high_at_end,
                    p_value=one.p_value,
                    is_discovery=is_discovery,
                )
            )
    return found


def _combined(mean: FloatArray, noise: FloatArray, count: FloatArray, signs: FloatArray, delta: float) -> _Combined:
    """Return a sum of means with signs, its error, both intervals, and the p-value of 0 that holds at all times."""
    from equipoise.kernels.t_mixture import log_t_evidence, t_radius

    if not (count > 0).all():
        return _Combined(math.nan, math.nan)
    centre = float(signs @ mean)
    if not ((count > 1).all() and noise.sum() > 0):
        return _Combined(centre, math.nan)
    error = math.sqrt(float(noise.sum()))
    freedom = float(noise.sum()) ** 2 / float((noise**2 / (count - 1)).sum())
    at_end = error * float(upper_quantile(delta / 2, freedom)[0])
    if count.min() < FEWEST:
        return _Combined(centre, error, low_at_end=centre - at_end, high_at_end=centre + at_end)
    always = error * float(t_radius(freedom + 1, -math.log(delta)))
    p_value = math.exp(-max(float(log_t_evidence(freedom + 1, centre / error)), 0.0))
    return _Combined(centre, error, centre - always, centre + always, centre - at_end, centre + at_end, p_value)


def _moments(
    arms: IntArray, rewards: FloatArray, codes: IntArray, n_arms: int, n_groups: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts, means (NaN without rewards) and squares around them, each of shape (groups, arms)."""
    known = ~np.isnan(rewards) & (codes >= 0)
    cell, size, shape = (codes * n_arms + arms)[known], n_groups * n_arms, (n_groups, n_arms)
    count = np.bincount(cell, minlength=size).astype(np.float64)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(cell, rewards[known], size) / count
    squares = np.bincount(cell, (rewards[known] - mean[cell]) ** 2, size).astype(np.float64)
    return count.reshape(shape), mean.reshape(shape), squares.reshape(shape)


def _noise(count: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the squared standard errors of means; NaN with fewer than two rewards."""
    noise: FloatArray = np.where(count > 1, squares / np.maximum(count - 1, 1) / np.maximum(count, 1), np.nan)
    return noise


def _shrunken(estimate: FloatArray, error: FloatArray) -> list[float]:
    """Return shrunken estimates; those without a standard error as they are."""
    known = np.isfinite(estimate) & np.isfinite(error)
    shrunken = shrink(np.where(known, estimate, np.nan), np.where(known, error, np.nan)).estimate
    return [one if here else float(plain) for one, here, plain in zip(shrunken, known, estimate, strict=True)]


def _checked(
    arm: ArrayLike, reward: ArrayLike, attribute: Attribute, n_arms: int
) -> tuple[IntArray, FloatArray, tuple[str, ...], IntArray]:
    """Return arms, rewards, the attribute's values and each unit's, -1 where it is missing."""
    if attribute.kind != CATEGORY:
        raise InvalidInput(
            f"attribute {attribute.name!r} must be a category to make groups; got numbers",
            hint="Attribute.as_category makes groups of up to 20 numbers; log a coarser attribute for more",
        )
    arms, rewards = np.asarray(arm, np.int64), np.asarray(reward, np.float64)
    if rewards.shape != arms.shape or attribute.values.shape != arms.shape:
        raise InvalidInput.of("reward", f"and the attribute must have {arms.size} entries, one per unit")
    if arms.size and not 0 <= arms.min() <= arms.max() < n_arms:
        raise InvalidInput.of("arm", f"must be from 0 to {n_arms - 1}")
    return arms, rewards, attribute.categories, attribute.codes
