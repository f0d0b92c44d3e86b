"""A share of the information kept means what it says: as accurate as the best design with that share of the units."""

from __future__ import annotations

import math

import golden
import numpy as np
import pytest
import reference
from endurance import short_and_full
from hypothesis import assume, given
from hypothesis import strategies as st

import equipoise as eq

ABOUT = ["average", "every-arm", "best-arm"]
Z = 1.959963984540054


@pytest.mark.parametrize("about", ["every-arm", "average"])
def test_a_half_width_is_met_exactly_by_the_share_it_takes(about):
    std = np.array([0.1, 0.5, 0.4, 0.3])
    kept = eq.information_for_half_width(std, half_width=0.04, units=3000, about=about)
    best = std**2 if about == "every-arm" else np.cbrt(std**2)
    width = Z * std / np.sqrt(kept * 3000 * best / best.sum())
    assert (width.max() if about == "every-arm" else width.mean()) == pytest.approx(0.04, rel=1e-12)


@pytest.mark.parametrize("about", ["every-arm", "average"])
def test_a_half_width_out_of_reach_says_what_is_feasible(about):
    std = np.array([0.1, 0.5, 0.4, 0.3])
    with pytest.raises(eq.GoalOutOfReach) as caught:
        eq.information_for_half_width(std, half_width=0.01, units=3000, about=about)
    error = caught.value
    assert error.parameter == ("half_width",)
    assert eq.information_for_half_width(std, half_width=error.smallest_half_width, units=3000, about=about) == 1.0
    printed = float(error.expected.split()[4])
    assert printed == pytest.approx(error.smallest_half_width, rel=2e-3)
    assert eq.information_for_half_width(std, half_width=printed, units=3000, about=about) <= 1.0
    assert 0.999 < eq.information_for_half_width(std, half_width=0.01, units=error.units_needed, about=about) <= 1.0
    with pytest.raises(eq.GoalOutOfReach):
        eq.information_for_half_width(std, half_width=0.01, units=error.units_needed - 1, about=about)


def test_a_half_width_that_no_number_of_units_reaches_has_no_units_needed():
    with pytest.raises(eq.GoalOutOfReach) as caught:
        eq.information_for_half_width([1e100], half_width=1e-100, units=5)
    assert caught.value.units_needed is None
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"half_width": 0.0}, r"half_width must be in \(0, inf\)"),
        ({"units": 0}, "units must be at least 1"),
        ({"units": 2.5}, "units must be a whole number"),
        ({"about": "best-arm"}, "about must be one of every-arm, average"),
        ({"failure_probability": 1.0}, r"failure_probability must be in \(0, 1\)"),
        ({"failure_probability": 0.0}, r"failure_probability must be in \(0, 1\)"),
        ({"std": [0.0, 0.0]}, "std must be positive for at least one arm"),
        ({"std": [1.0, -1.0]}, "std must not be negative"),
    ],
)
def test_a_half_width_is_checked(changed, message):
    given = {"std": [1.0, 2.0], "half_width": 1.0, "units": 100} | changed
    with pytest.raises(eq.InvalidInput, match=message):
        eq.information_for_half_width(given.pop("std"), **given)


def test_a_half_width_may_be_wide_or_improbable():
    assert 0 < eq.information_for_half_width([1e-200], half_width=1e200, units=10) < 1e-300
    assert math.isfinite(eq.information_for_half_width([1.0], half_width=9, units=1000, failure_probability=5e-324))


def arms(rng: np.random.Generator, n_arms: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Arms of very different kinds: some tie for the best mean, some have no spread."""
    size = int(rng.integers(1, 13)) if n_arms is None else n_arms
    mean = rng.normal(size=size) * rng.choice([1e-3, 0.1, 1, 10])
    std = np.exp(rng.normal(size=size) * rng.choice([0.1, 1, 3]))
    kind = rng.integers(8)
    if kind == 0:
        mean[:] = mean[0]
    elif kind == 1:
        mean = np.round(mean, 1)
    elif kind == 2:
        mean[mean.argmin()] = mean.max()
    elif kind == 3:
        std[rng.random(size) < 0.5] = 0
    elif kind == 4:
        std[mean.argmax()] = 0
    elif kind == 5 and rng.random() < 0.1:
        std[:] = 0
    return mean, std


def floors(rng: np.random.Generator, size: int) -> np.ndarray:
    """No floors, one, all, or floors that add up to 1."""
    kind = rng.integers(5)
    if kind == 0:
        return np.eye(size)[rng.integers(size)] * rng.random()
    if kind == 1:
        return rng.random(size) / size * rng.choice([0.02, 0.5, 0.99])
    if kind == 2 and rng.random() < 0.2:
        return rng.dirichlet(np.ones(size))
    return np.zeros(size)


SHARES = [1.0, 1 - 1e-12, 1 - 1e-6, 0.9, 0.7, 0.5, 0.25, 0.05, 1e-3, 1e-9]


@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("trials", short_and_full(500, 20_000))
def test_the_allocation_keeps_the_share_and_no_more_than_it_must(about, trials):
    rng = np.random.default_rng(11)
    for _ in range(trials):
        mean, std = arms(rng)
        floor, kept = floors(rng, mean.size), float(rng.choice(SHARES))
        share = eq.optimal_allocation(mean, std, information_kept=kept, information_about=about, floor=floor)
        assert abs(share.sum() - 1) < 1e-14 * mean.size
        assert (share >= floor - 1e-14).all()
        found = eq.information_kept(share, mean, std, about=about, floor=floor)
        assert found >= kept * (1 - 1e-14)
        # More information than asked for is left only where none can be sold: all is with the best arms already.
        sellable = (mean < mean.max()) & (std > 0) & (share > floor * (1 + 1e-9))
        if sellable.any() and kept < 1 and about != "best-arm":
            assert found == pytest.approx(kept, rel=1e-9)


@pytest.mark.parametrize("trials", short_and_full(500, 20_000))
def test_information_about_the_average_is_kept_by_an_optimum_of_the_trade_off(trials):
    rng = np.random.default_rng(12)
    for _ in range(trials):
        mean, std = arms(rng)
        floor, kept = floors(rng, mean.size), float(rng.choice(SHARES[3:-1]))
        share = eq.optimal_allocation(mean, std, information_kept=kept, floor=floor)
        weight = eq.weight_for_information(mean, std, information_kept=kept, floor=floor)
        if weight < 1 and floor.sum() < 1 - 1e-12 and std.max() > 0:
            assert reference.stationarity_gap(share, mean, std, weight, floor) < 1e-9 + 1e-15 / (1 - weight)


@pytest.mark.parametrize("trials", short_and_full(500, 20_000))
def test_information_about_the_best_arm_meets_the_conditions_of_its_optimum(trials):
    rng = np.random.default_rng(13)
    for _ in range(trials):
        mean, std = arms(rng, int(rng.integers(2, 13)))
        best, kept = int(mean.argmax()), float(rng.choice(SHARES))
        others = np.arange(mean.size) != best
        if std.min() == 0:
            continue
        size, gaps = std / std.max(), reference.squared_gaps(mean, std)
        design = eq.optimal_allocation(mean, std, information_kept=1, information_about="best-arm")
        share = eq.optimal_allocation(mean, std, information_kept=kept, information_about="best-arm")
        # Glynn and Juneja (2004): comparisons are equally sure, and sum share_i^2 / var_i = share_b^2 / var_b.
        balance = (design[others] ** 2 / size[others] ** 2).sum() / (design[best] ** 2 / size[best] ** 2)
        assert balance == pytest.approx(1, rel=1e-6)
        sure = gaps[others] / (size[others] ** 2 / share[others] + size[best] ** 2 / share[best])
        np.testing.assert_allclose(sure, kept * reference.surety(design, mean, std), rtol=1e-9)
        assert share[best] >= design[best] * (1 - 1e-12)


@pytest.mark.parametrize(("about", "power"), [*((about, 0.5) for about in ABOUT), ("average", 1.0)])
@pytest.mark.parametrize("trials", short_and_full(100, 1500))
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_never_beaten_by_a_conic_solver(about, power, trials):
    import cvxpy as cp

    rng, objective, agreed = np.random.default_rng(14), eq.PowerObjective(power=power), 0
    for _ in range(trials):
        mean, std = rng.normal(size=rng.integers(2, 13)), np.exp(rng.normal(size=12))
        std = std[: mean.size] * (rng.random(mean.size) > rng.choice([0, 0.2]))
        floor, kept = floors(rng, mean.size), float(rng.choice([0.95, 0.9, 0.7, 0.5, 0.25, 0.1, 0.01]))
        if std.max() == 0 or floor.sum() > 0.99:
            continue
        try:
            rival = reference.conic_optimum_for_information(mean, std, kept, about, floor, power)
        except cp.SolverError:
            continue
        dial = {"information_about": about, "floor": floor, "objective": objective}
        # The solver meets its constraints to within a tolerance: compare at what it really keeps.
        rival_kept = eq.information_kept(rival, mean, std, about=about, floor=floor, objective=objective)
        ours = eq.optimal_allocation(mean, std, information_kept=min(rival_kept, 1), **dial)
        assert (ours - rival) @ mean > -1e-6
        wanted = eq.optimal_allocation(mean, std, information_kept=kept, **dial)
        agreed += rival_kept > kept * (1 - 1e-4) and abs((wanted - rival) @ mean) < 1e-4
    # The solver stops early now and then, with less reward than it could have.
    assert agreed > 0.7 * trials


@pytest.mark.parametrize("about", ABOUT)
def test_never_beaten_by_a_random_allocation(about):
    rng = np.random.default_rng(15)
    for _ in range(200):
        mean, std = arms(rng)
        others = rng.dirichlet(np.full(mean.size, rng.choice([0.3, 1, 5])), size=50)
        kept = eq.information_kept(others, mean, std, about=about)
        assert kept.shape == (50,) and (kept <= 1).all()
        for rival, share in zip(others, kept, strict=True):
            if share > 0:
                ours = eq.optimal_allocation(mean, std, information_kept=share, information_about=about)
                assert (ours - rival) @ (mean - mean.max()) >= -1e-9 * np.ptp(mean)


@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize("exponent", [-150, -100, 100, 150])
def test_scaling_and_shifting_rewards_leaves_the_allocation(about, exponent):
    rng = np.random.default_rng(16)
    for _ in range(100):
        mean, std = arms(rng)
        dial = {
            "information_kept": float(rng.choice(SHARES[3:])),
            "information_about": about,
            "floor": floors(rng, mean.size),
        }
        plain = eq.optimal_allocation(mean, std, **dial)
        scale = 10.0**exponent
        np.testing.assert_allclose(eq.optimal_allocation(mean * scale, std * scale, **dial), plain, rtol=1e-9)
        kept = [eq.information_kept(plain, mean * s, std * s, about=about, floor=dial["floor"]) for s in (1, scale)]
        assert kept[1] == pytest.approx(kept[0], rel=1e-9)


@pytest.mark.parametrize("about", ABOUT)
@pytest.mark.parametrize(("mean_scale", "std_scale"), [(1e150, 1e-150), (1e-150, 1e150), (1e-20, 1.0), (1e20, 1.0)])
def test_differences_may_be_tiny_or_huge_compared_with_spreads(about, mean_scale, std_scale):
    rng = np.random.default_rng(17)
    for _ in range(100):
        mean, std = arms(rng)
        floor, kept = floors(rng, mean.size), float(rng.choice(SHARES[3:]))
        mean, std = mean * mean_scale, std * std_scale
        share = eq.optimal_allocation(mean, std, information_kept=kept, information_about=about, floor=floor)
        assert abs(share.sum() - 1) < 1e-12 and (share >= floor - 1e-14).all()
        assert eq.information_kept(share, mean, std, about=about, floor=floor) >= kept * (1 - 1e-12)


@pytest.mark.parametrize(
    ("mean", "std", "kept", "about", "floor", "expected"),
    [
        # every arm: the part kept in proportion to the variances, the rest to the best arm
        ([1, 2, 3], [1, 1, 1], 0.7, "every-arm", 0.0, [0.7 / 3, 0.7 / 3, 0.7 / 3 + 0.3]),
        ([1, 2, 3], [1, 2, 3], 0.7, "every-arm", 0.0, [0.05, 0.2, 0.75]),
        ([1, 2, 2], [1, 1, 0], 0.6, "every-arm", 0.0, [0.3, 0.5, 0.2]),
        ([1, 2, 3], [1, 1, 1], 0.3, "every-arm", [0.2, 0, 0], [0.2, 0.3 / 3, 0.7]),
        ([1, 2], [1, 3], 1.0, "every-arm", [0.4, 0], [0.4, 0.6]),
        # two equal arms: error (x^-1/2 + (1 - x)^-1/2) / 2 twice the smallest at kept 1/4
        ([1, 2], [1, 1], 1.0, "average", 0.0, [0.5, 0.5]),
        ([1, 2], [1, 8], 1.0, "average", 0.0, [0.2, 0.8]),
        ([1, 1], [1, 8], 0.3, "average", 0.0, [0.2, 0.8]),
        # a best arm without spread takes all that is not needed
        ([1, 2], [1, 0], 0.3, "average", 0.0, [0.3, 0.7]),
        ([1, 2, 2], [1, 0, 0], 0.3, "average", 0.0, [0.3, 0.35, 0.35]),
        ([1, 2], [1, 0], 0.3, "best-arm", 0.0, [0.3, 0.7]),
        ([1, 2], [0, 1], 0.3, "best-arm", 0.0, [0.0, 1.0]),
        # two arms: the best design is in proportion to the stds
        ([1, 2], [1, 3], 1.0, "best-arm", 0.0, [0.25, 0.75]),
        # 1 / x + 1 / (1 - x) = 4 / kept
        ([1, 2], [1, 1], 0.75, "best-arm", 0.0, [0.25, 0.75]),
        ([5, 5], [1, 1], 0.75, "best-arm", 0.0, [0.75, 0.25]),
        # nothing to measure: all to the best
        ([1, 2, 2], [0, 0, 0], 0.9, "average", 0.0, [0, 0.5, 0.5]),
        ([1, 2, 2], [0, 0, 0], 0.9, "every-arm", 0.0, [0, 0.5, 0.5]),
        ([1, 2, 3], [0, 0, 0], 0.9, "best-arm", 0.0, [0, 0, 1]),
        ([1, 2, 3], [0, 0, 0], 0.9, "average", 0.1, [0.1, 0.1, 0.8]),
        # floors that add up to 1 leave no choice
        ([1, 2], [1, 1], 0.5, "average", [0.3, 0.7], [0.3, 0.7]),
        ([1, 2], [1, 1], 0.5, "every-arm", [0.3, 0.7], [0.3, 0.7]),
        ([1, 2], [1, 1], 0.5, "best-arm", [0.3, 0.7], [0.3, 0.7]),
        ([1, 2, 3], [1, 1, 1], 0.5, "average", 1 / 3, [1 / 3, 1 / 3, 1 / 3]),
        ([4], [2], 0.5, "average", 0.0, [1]),
        ([4], [2], 0.5, "every-arm", 0.0, [1]),
        ([4], [2], 0.5, "best-arm", 0.0, [1]),
    ],
)
def test_cases_with_a_known_answer(mean, std, kept, about, floor, expected):
    share = eq.optimal_allocation(mean, std, information_kept=kept, information_about=about, floor=floor)
    np.testing.assert_allclose(share, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("case", golden.KEPT)
def test_golden_allocations(case):
    share = eq.optimal_allocation(
        case.mean, np.sqrt(case.variance), information_kept=case.kept, information_about=case.about
    )
    np.testing.assert_allclose(share, case.allocation, atol=5e-11)
    if case.reward_weight is not None:
        weight = eq.weight_for_information(case.mean, np.sqrt(case.variance), information_kept=case.kept)
        assert weight == pytest.approx(case.reward_weight, abs=5e-11)


def test_importance_and_power_say_which_average():
    mean, std = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]
    objective = eq.PowerObjective(power=1.0, importance=(4, 1, 1))
    design = eq.optimal_allocation(mean, std, information_kept=1.0, objective=objective)
    np.testing.assert_allclose(design, [0.5, 0.25, 0.25])
    share = eq.optimal_allocation(mean, std, information_kept=0.4, objective=objective)
    # The mean-square error may be 1 / 0.4 times the smallest.
    ratio = eq.error(share, std, objective=objective) / eq.error(design, std, objective=objective)
    assert ratio == pytest.approx(2.5)
    unimportant = eq.PowerObjective(importance=(0, 1, 1))
    assert eq.optimal_allocation(mean, std, information_kept=0.9, objective=unimportant)[0] == 0


def test_smallest_difference_says_when_arms_count_as_equally_good():
    mean, std = [1.0, 1.001, 0.0], [1.0, 1.0, 1.0]
    told, margin = (
        eq.optimal_allocation(
            mean, std, information_kept=0.9, information_about="best-arm", smallest_difference=difference
        )
        for difference in (1e-6, 0.5)
    )
    assert told[2] < 1e-5 < 0.05 < margin[2]
    # To within half a unit, the first arm is told from the best as easily as one half a unit below.
    lower = eq.optimal_allocation([0.501, 1.001, 0.0], std, information_kept=0.9, information_about="best-arm")
    np.testing.assert_allclose(margin, lower)
    assert eq.information_kept(told, mean, std, about="best-arm", smallest_difference=1e-6) == pytest.approx(0.9)


def test_a_tiny_smallest_difference():
    for floor in (0.0, 0.1):
        share = eq.optimal_allocation(
            [1, 1, 1],
            [1, 1, 1],
            information_kept=0.5,
            information_about="best-arm",
            smallest_difference=1e-80,
            floor=floor,
        )
        np.testing.assert_allclose(share[1], share[2])
        assert share[0] > 0.6
        kept = eq.information_kept(share, [1, 1, 1], [1, 1, 1], about="best-arm", smallest_difference=1e-80)
        assert kept == pytest.approx(0.5 if floor == 0 else 0.518, abs=1e-3)


@st.composite
def problems(draw):
    size = draw(st.integers(2, 6))
    number = st.floats(-10, 10, allow_subnormal=False)
    spread = st.floats(0.01, 10)
    mean, std = (draw(st.lists(kind, min_size=size, max_size=size)) for kind in (number, spread))
    return np.array(mean), np.array(std)


@given(problems(), st.floats(0.02, 0.98), st.sampled_from([0.0, 0.05, 1 / 8]))
def test_weight_share_and_multiplier_are_one_dial(problem, weight, floor):
    mean, std = problem
    assume(np.ptp(mean) > 1e-3)
    kept = eq.information_for_weight(mean, std, reward_weight=weight, floor=floor)
    back = eq.weight_for_information(mean, std, information_kept=kept, floor=floor)
    share = eq.optimal_allocation(mean, std, reward_weight=weight, floor=floor)
    again = eq.optimal_allocation(mean, std, information_kept=kept, floor=floor)
    # Close to 1, shares determine q to twice the digits that q determines shares with.
    np.testing.assert_allclose(again, share, atol=1e-7)
    assert eq.information_for_weight(mean, std, reward_weight=back, floor=floor) == pytest.approx(kept, rel=1e-7)
    if kept < 0.999 and np.ptp(mean[share > floor * 1.001]) > 1e-3:
        assert back == pytest.approx(weight, rel=1e-6)
        multiplier = eq.multiplier_for_information(mean, std, information_kept=kept, floor=floor)
        assert multiplier == pytest.approx((1 - weight) / weight, rel=1e-5)
        assert eq.information_for_multiplier(mean, std, multiplier=multiplier, floor=floor) == pytest.approx(kept)


@given(problems(), st.floats(0.05, 0.99), st.floats(0.01, 5))
def test_the_duality_is_strong(problem, kept, slip):
    mean, std = problem
    assume(np.ptp(mean) > 1e-3)
    share = eq.optimal_allocation(mean, std, information_kept=kept)
    limit = eq.error(share, std)
    multiplier = eq.multiplier_for_information(mean, std, information_kept=kept)

    def dual(m):
        """The largest value of the Lagrangian, which is the trade-off for the weight 1 / (1 + m)."""
        best = eq.optimal_allocation(mean, std, reward_weight=1 / (1 + m))
        return eq.reward(best, mean) - m * (eq.error(best, std) - limit)

    scale = np.ptp(mean) + multiplier * limit
    assert dual(multiplier) == pytest.approx(eq.reward(share, mean), abs=1e-7 * scale)
    for other in (multiplier * (1 + slip), multiplier / (1 + slip)):
        assert dual(other) >= eq.reward(share, mean) - 1e-9 * scale


@given(problems(), st.sampled_from(ABOUT), st.floats(0.01, 1), st.floats(0.01, 1))
def test_less_information_buys_more_reward(problem, about, first, second):
    mean, std = problem
    low, high = sorted([first, second])
    less, more = (
        eq.optimal_allocation(mean, std, information_kept=kept, information_about=about) for kept in (low, high)
    )
    assert (less - more) @ (mean - mean.max()) >= -1e-9 * np.ptp(mean)
    if about == "average" and np.ptp(mean) > 1e-3:
        weights = [eq.weight_for_information(mean, std, information_kept=kept) for kept in (low, high)]
        assert weights[0] >= weights[1] - 1e-12


def test_the_ends_of_the_dial():
    mean, std = [1, 2, 3], [1, 2, 1]
    assert eq.weight_for_information(mean, std, information_kept=1) == 0
    assert eq.multiplier_for_information(mean, std, information_kept=1) == math.inf
    assert eq.information_for_weight(mean, std, reward_weight=0) == 1
    assert eq.information_for_weight(mean, std, reward_weight=1) == 0
    assert eq.information_for_multiplier(mean, std, multiplier=0) == 0
    assert eq.weight_for_information(mean, [0, 0, 0], information_kept=0.5) == 1
    assert eq.multiplier_for_information(mean, [0, 0, 0], information_kept=0.5) == 0
    # The multiplier is known to all digits where the weight is 1 but for its last ones: loss ~ q, error ~ q^-1/2.
    tiny = [eq.multiplier_for_information(mean, std, information_kept=kept) for kept in (1e-12, 1e-14)]
    assert tiny[0] / tiny[1] == pytest.approx(1e3, rel=1e-3)


def test_prices_side_by_side():
    mean, std = [0.10, 0.11, 0.12, 0.14], [0.30, 0.31, 0.33, 0.35]
    rows = eq.dial_prices(mean, std, information_kept=[1, 0.5], floor=0.05)
    assert [(row.information_about, row.information_kept) for row in rows] == [
        (about, kept) for about in ABOUT for kept in (1.0, 0.5)
    ]
    for row in rows:
        assert row.units_needed == 1 / row.information_kept
        assert row.reward == pytest.approx(row.allocation @ mean)
        assert row.reward - row.gain_over_equal_shares == pytest.approx(np.mean(mean))
        assert row.best_arm_share == row.allocation[3]
        assert (row.gain_over_best_design == 0) == (row.information_kept == 1)
        assert row.allocation.min() >= 0.05


@pytest.mark.parametrize(
    ("dial", "message"),
    [
        ({}, "give either reward_weight or information_kept; got neither"),
        ({"reward_weight": 0.5, "information_kept": 0.5}, "information_kept; got both"),
        ({"information_kept": 0}, r"information_kept must be in \(0, 1\]; got 0"),
        ({"information_kept": 1.1}, r"information_kept must be in \(0, 1\]; got 1.1"),
        ({"information_kept": math.nan}, r"information_kept must be in \(0, 1\]; got nan"),
        ({"information_kept": "0.7"}, "information_kept must be a number"),
        ({"information_kept": 0.7, "information_about": "best"}, "information_about must be one of average, every-arm"),
        ({"reward_weight": 0.7, "information_about": "best-arm"}, "information_about goes with information_kept"),
        ({"information_kept": 0.7, "smallest_difference": 1}, "smallest_difference goes with information_about 'best"),
        (
            {"information_kept": 0.7, "information_about": "best-arm", "smallest_difference": 0},
            r"smallest_difference must be in \(0, inf\)",
        ),
        (
            {"information_kept": 0.7, "information_about": "every-arm", "objective": eq.MEAN_SQUARE},
            "objective goes with information_about 'average'",
        ),
    ],
)
def test_the_dial_is_set_in_one_way(dial, message):
    with pytest.raises(eq.InvalidInput, match=message):
        eq.optimal_allocation([1, 2], [1, 1], **dial)
    if "objective" not in dial:
        with pytest.raises(eq.InvalidInput, match=message):
            eq.optimal_pulls([1, 2], [1, 1], horizon=10, **dial)
    with pytest.raises(eq.InvalidInput, match=message):
        eq.ForcingBalance(**dial)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: eq.information_kept([1.0], [1, 2], [1, 1]), "allocation must have 2 entries"),
        (lambda: eq.information_kept([0.5, 0.5], [1, 2], [1, 1], about="all"), "about must be one of"),
        (
            lambda: eq.information_kept([0.5, 0.5], [1, 2], [1, 1], smallest_difference=1),
            "smallest_difference goes with about 'best-arm'",
        ),
        (lambda: eq.weight_for_information([1, 2], [1, 1], information_kept=0), "information_kept must be in"),
        (lambda: eq.information_for_weight([1, 2], [1, 1], reward_weight=2), "reward_weight must be in"),
        (lambda: eq.information_for_multiplier([1, 2], [1, 1], multiplier=-1), "multiplier must be in"),
        (lambda: eq.dial_prices([1, 2], [1, 1], information_about=["all"]), "information_about must be one of"),
        (lambda: eq.dial_prices([1, 2], [1, 1], information_kept=[0]), "information_kept must be in"),
    ],
)
def test_input_is_checked(call, message):
    with pytest.raises(eq.InvalidInput, match=message):
        call()


def test_whole_pulls_keep_the_information_as_well_as_whole_numbers_can():
    rng = np.random.default_rng(18)
    for _ in range(100):
        mean, std = arms(rng, 4)
        about, kept = str(rng.choice(ABOUT)), float(rng.choice([1, 0.9, 0.5, 0.1]))
        dial = {"information_kept": kept, "information_about": about}
        pulls = eq.optimal_pulls(mean, std, horizon=1000, **dial)
        lowest = (std > 0) / 1000
        share = eq.optimal_allocation(mean, std, **dial, floor=lowest)
        assert pulls.sum() == 1000
        assert (np.abs(pulls - 1000 * share) <= 1 + 1e-6).all()
        assert (pulls[std > 0] >= 1).all()
