"""Student's t distribution: against mpmath and SciPy, to the last digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import equipoise as eq
from equipoise.analysis.t_quantiles import upper_quantile, upper_tail


def exact_tail(t, freedom):
    """The tail beyond t > 0 with 40 digits."""
    with mpmath.workdps(40):
        t, freedom = mpmath.mpf(t), mpmath.mpf(freedom)
        return mpmath.betainc(freedom / 2, mpmath.mpf(1) / 2, 0, freedom / (freedom + t * t), regularized=True) / 2


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 7.25, 39.0, 41.0, 1234.5, 1e6, 1e8])
def test_quantiles_invert_the_exact_tail(freedom):
    for probability in (0.5, 0.4999, 0.45, 0.3, 0.21, 0.19, 0.1, 0.025, 1e-3, 1e-6, 1e-12):
        t = float(upper_quantile(probability, freedom)[0])
        error = abs(exact_tail(t, freedom) - mpmath.mpf(probability)) / stats.t.pdf(t, freedom)
        assert error <= 1e-13 * t


@given(st.lists(st.tuples(st.floats(-3, 2), st.floats(0, 8)), min_size=1, max_size=50))
def test_tails_and_quantiles_agree_with_scipy(powers):
    t, freedom = 10.0 ** np.array(powers).T
    tail = special.stdtr(freedom, -t)
    own = upper_tail(t, freedom)
    some = tail > 1e-290
    np.testing.assert_allclose(own[some], tail[some], rtol=1e-11)
    back = upper_quantile(own[some], freedom[some])
    # Near a half, what is left of it in a double limits the accuracy.
    np.testing.assert_allclose(back, t[some], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("freedom", [1, 2.5, 30, 1e4, 1e8])
@pytest.mark.parametrize("probability", [1e-12, 1e-6, 0.025, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_it_agrees_with_scipy(probability, freedom):
    assert float(upper_quantile(probability, freedom)[0]) == pytest.approx(stats.t.isf(probability, freedom), rel=1e-9)


def test_without_degrees_of_freedom_it_is_normal():
    chances = [1e-300, 1e-20, 0.025, 0.5, 0.8]
    np.testing.assert_allclose(upper_quantile(chances), stats.norm.isf(chances), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(upper_tail([-8.0, 0.0, 1.96, 30.0]), stats.norm.sf([-8.0, 0.0, 1.96, 30.0]), rtol=1e-11)


def test_what_is_not_known_stays_unknown():
    assert np.isnan(upper_quantile(0.025, [np.nan, 5])).tolist() == [True, False]
    assert np.isnan(upper_tail([np.nan, 1.0], 5)).tolist() == [True, False]
    assert upper_tail([np.inf, -np.inf], 5).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("probability", "freedom"), [(0, 5), (1, 5), (0.1, 0), (0.1, -1), ("a", 1), ([0.1, 0.2], [1, 2, 3])]
)
def test_what_makes_no_sense_is_refused(probability, freedom):
    with pytest.raises(eq.InvalidInput):
        upper_quantile(probability, freedom)
