"""A share of the information kept means what it says: as accurate as the best design with that share of the units."""

from __future__ import annotations

import math

import numpy as np
import pytest

import equipoise as eq

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
