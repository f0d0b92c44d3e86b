"""Adjustment for attributes: against least squares, and by simulation of adaptive experiments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.analysis.attributes import Attribute
from equipoise.analysis.covariates import CovariateSums, adjusted, columns_of
from equipoise.analysis.fixed_sample import differences_at_end

seeds = st.integers(0, 2**32 - 1)


def data(seed, n=200, n_arms=3, p=3):
    rng = np.random.default_rng(seed)
    arm, matrix = rng.integers(n_arms, size=n), rng.normal(size=(n, p)) * [1, 10, 0.1][:p] + [0, 100, 3][:p]
    reward = arm + matrix @ np.array([1.0, 0.05, -3.0])[:p] + rng.normal(0, 1 + arm, n)
    return arm, reward, matrix


def sums(arm, reward, matrix, n_arms=3):
    return CovariateSums.of(arm, reward, matrix, columns=[f"x{k}" for k in range(matrix.shape[1])], n_arms=n_arms)


@given(seeds)
def test_differences_are_those_of_least_squares(seed):
    """An intercept per arm and common slopes; the ridge changes some 1e-8 of them."""
    arm, reward, matrix = data(seed)
    found = adjusted(sums(arm, reward, matrix))
    design = np.column_stack([arm == 0, arm == 1, arm == 2, matrix - matrix.mean(axis=0)]).astype(float)
    solution, *_ = np.linalg.lstsq(design, reward, rcond=None)
    np.testing.assert_allclose(found.coefficients, solution[3:], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose([one.mean for one in found.means], solution[:3], rtol=1e-5, atol=1e-6)
    residual = reward - design @ solution
    for one in found.means:
        own = residual[arm == one.arm]
        assert one.residual_std == pytest.approx(math.sqrt(own @ own / one.degrees_of_freedom), rel=1e-5)
    # All arms together lose one degree of freedom each, and one per column.
    assert sum(one.degrees_of_freedom for one in found.means) == pytest.approx(200 - 3 - 3)
    for one in found.differences:
        assert one.difference == pytest.approx(solution[one.arm] - solution[one.other], rel=1e-5, abs=1e-6)
        assert one.plain_difference == pytest.approx(reward[arm == one.arm].mean() - reward[arm == one.other].mean())


def test_standard_errors_are_those_of_least_squares_where_spreads_are_equal():
    rng = np.random.default_rng(1)
    arm, matrix = rng.integers(2, size=40_000), rng.normal(size=(40_000, 2))
    reward = matrix @ [1.0, 2.0] + rng.normal(size=arm.size)
    design = np.column_stack([np.ones(arm.size), arm, matrix])
    residual = reward - design @ np.linalg.lstsq(design, reward, rcond=None)[0]
    error = math.sqrt(residual @ residual / (arm.size - 4) * np.linalg.inv(design.T @ design)[1, 1])
    [found] = adjusted(sums(arm, reward, matrix, 2)).differences
    assert found.standard_error == pytest.approx(error, rel=0.01)


@given(seeds)
def test_without_columns_it_is_a_plain_comparison(seed):
    arm, reward, _ = data(seed)
    found = adjusted(sums(arm, reward, np.zeros((arm.size, 0))))
    count = np.bincount(arm)
    mean = np.array([reward[arm == a].mean() for a in range(3)])
    std = np.array([reward[arm == a].std(ddof=1) for a in range(3)])
    for one, plain in zip(found.differences, differences_at_end(count, mean, std), strict=True):
        assert (one.low_at_end, one.high_at_end) == pytest.approx((plain.low, plain.high), rel=1e-9)
        assert one.low < one.low_at_end < one.high_at_end < one.high
    assert found.explained == pytest.approx(0)


@given(seeds, st.integers(0, 200))
def test_sums_can_be_merged_and_come_in_any_order(seed, cut):
    arm, reward, matrix = data(seed)
    whole = sums(arm, reward, matrix)
    order = np.random.default_rng(seed).permutation(arm.size)
    first, second = order[:cut], order[cut:]
    merged = sums(arm[first], reward[first], matrix[first]).merged(sums(arm[second], reward[second], matrix[second]))
    np.testing.assert_array_equal(merged.count, whole.count)
    np.testing.assert_allclose(merged.average, whole.average, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(merged.products, whole.products, rtol=1e-7, atol=1e-7)


@given(seeds, st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_units_of_columns_do_not_matter(seed, shift, scale):
    arm, reward, matrix = data(seed)
    here, there = (adjusted(sums(arm, reward, some)) for some in (matrix, shift + scale * matrix))
    for one, other in zip(here.differences, there.differences, strict=True):
        assert other.difference == pytest.approx(one.difference, abs=1e-6)
        assert other.standard_error == pytest.approx(one.standard_error, rel=1e-5)


def test_columns_that_say_nothing_or_the_same_do_no_harm():
    arm, reward, matrix = data(3)
    plain = adjusted(sums(arm, reward, matrix))
    more = np.column_stack([matrix, matrix[:, 0], np.full(arm.size, 7.0), arm == 1])
    for one, other in zip(plain.differences, adjusted(sums(arm, reward, more)).differences, strict=True):
        assert other.difference == pytest.approx(one.difference, rel=1e-5)
        assert other.standard_error == pytest.approx(one.standard_error, rel=0.02)


def test_units_with_something_missing_are_left_out():
    arm, reward, matrix = data(4)
    reward[::5], matrix[1::7, 1] = np.nan, np.nan
    known = ~np.isnan(reward) & ~np.isnan(matrix).any(axis=1)
    here, there = sums(arm, reward, matrix), sums(arm[known], reward[known], matrix[known])
    np.testing.assert_array_equal(here.products, there.products)
    assert here.count.sum() == known.sum()


def test_adaptive_experiments_are_covered_with_narrower_intervals():
    """Shares follow rewards but not the attribute, which explains 60 % of the variance."""
    runs, steps, explained = 400, 600, 0.6
    truth, covered, always, width = 0.3, 0, 0, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        attribute = rng.normal(size=steps)
        noise = math.sqrt(explained) * attribute + math.sqrt(1 - explained) * rng.normal(size=steps)
        arm, total, count = [], [0.0, 0.0], [0, 0]
        for uniform, one in zip(rng.random(steps).tolist(), noise.tolist(), strict=True):
            ahead = min(count) > 5 and total[1] / count[1] > total[0] / count[0]
            chosen = int(uniform < (0.75 if ahead else 0.4))
            total[chosen] += one + truth * chosen
            count[chosen] += 1
            arm.append(chosen)
        arms = np.array(arm)
        reward = noise + truth * arms
        [found] = adjusted(sums(arms, reward, attribute[:, None], 2)).differences
        [plain] = adjusted(sums(arms, reward, np.zeros((steps, 0)), 2)).differences
        covered += found.low_at_end <= truth <= found.high_at_end
        always += found.low <= truth <= found.high
        width.append(found.standard_error / plain.standard_error)
    assert abs(covered / runs - 0.95) <= 0.01 + 2 * math.sqrt(0.05 * 0.95 / runs)
    assert always / runs >= 0.98
    assert np.mean(width) == pytest.approx(math.sqrt(1 - explained), rel=0.03)


def test_means_are_about_everyone():
    """An arm with all the units has its plain mean and error: there is nobody to compare with."""
    arm, reward, matrix = data(5, n_arms=1)
    [found] = adjusted(sums(arm, reward, matrix, 1)).means
    assert found.mean == pytest.approx(reward.mean())
    assert found.standard_error == pytest.approx(reward.std(ddof=1) / math.sqrt(arm.size), rel=0.02)


def test_too_few_rewards_have_no_interval():
    found = adjusted(CovariateSums.of([0, 1, 1], [1.0, 2.0, 3.0], [[1.0], [2.0], [4.0]], columns=["x"], n_arms=3))
    assert all((one.low, one.high_at_end) == (-math.inf, math.inf) for one in found.differences)
    assert all((one.low, one.high) == (-math.inf, math.inf) for one in found.means)


def test_attributes_become_columns():
    school = Attribute.of("school", ["north", "east", "east", None, "west"])
    names, matrix = columns_of([Attribute.of("age", [9, 10, None, 11, 10]), school, Attribute.of("none", [None] * 5)])
    assert names == ("age", "age is missing", "school = north", "school = west", "school is missing")
    assert matrix[:, 0].tolist() == [9, 10, 10, 11, 10]
    assert matrix[:, 2:].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_too_many_columns_are_refused():
    with pytest.raises(eq.InvalidInput, match="at most 20 columns"):
        columns_of([Attribute.of("city", [f"city {k}" for k in range(30)])])
    with pytest.raises(eq.InvalidInput, match="at most 20"):
        sums(*data(1)[:2], np.zeros((200, 21)))
    with pytest.raises(eq.InvalidInput, match="shape"):
        CovariateSums.of([0, 1], [1.0, 2.0], [1.0, 2.0], columns=["x"], n_arms=2)
    with pytest.raises(eq.InvalidInput, match="finite"):
        CovariateSums.of([0, 1], [1.0, math.inf], [[1.0], [2.0]], columns=["x"], n_arms=2)
    with pytest.raises(eq.InvalidInput, match="same columns"):
        sums(*data(1)).merged(sums(*data(1, p=2)))
