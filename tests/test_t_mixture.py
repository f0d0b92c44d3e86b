"""The evidence of a t statistic is a mixture of Lai's martingales, and Hall's transform takes skewness out of it."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats

from equipoise.kernels import t_mixture
from equipoise.kernels.t_mixture import log_t_evidence, t_radius, with_skewness, without_skewness

SCALES = np.array(t_mixture._G)
WEIGHTS = np.exp(t_mixture._LOG_WEIGHT)
nasty = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e-300, 1e160, 1e300, math.inf, -math.inf])


def evidence(n, t):
    """The formula of docs/evidence.md, for an array of statistics."""
    r, square = SCALES / (SCALES + n), np.asarray(t)[..., None] ** 2 / (n - 1)
    return (np.sqrt(r) * ((1 + square) / (1 + r * square)) ** (n / 2)) @ WEIGHTS


def t_statistic(x):
    return math.sqrt(len(x)) * np.mean(x) / np.std(x, ddof=1)


@pytest.mark.parametrize("x", [[0.3, 1.1], [2.0, -0.5, 1.0], [0.4, 0.9, 1.6, -0.2, 0.7]])
def test_each_part_averages_the_likelihood_over_means_and_spreads(x):
    """Against 'the mean is 0': mean / spread is normal with variance 1 / g, and log spread is uniform."""
    n, mean, squares = len(x), mp.mpf(float(np.mean(x))), mp.mpf(float(np.sum(np.square(x))))
    expected = 0.0
    for weight, g in zip(WEIGHTS, SCALES, strict=True):

        def of_spread(s, g=float(g)):
            # Over the mean, which is s times a normal variable of variance 1 / g, in closed form.
            shrunk = mp.exp(-(squares - n * n * mean**2 / (n + g)) / (2 * s * s))
            return mp.sqrt(g / (g + n)) * shrunk * s ** (-n - 1)

        whole = mp.quad(of_spread, [0, 0.2, 1, 5, mp.inf])
        null = mp.quad(lambda s: mp.exp(-squares / (2 * s * s)) * s ** (-n - 1), [0, 0.2, 1, 5, mp.inf])
        expected += float(weight) * whole / null
    assert log_t_evidence(float(n), t_statistic(x)) == pytest.approx(float(mp.log(expected)), rel=1e-8)


def test_the_mean_of_a_normal_prior_is_integrated_right():
    """The closed form above, for one spread, against an integral over the mean."""
    x, g, s = np.array([2.0, -0.5, 1.0]), 3.0, 0.8
    likelihood = lambda d: np.exp(-((x - s * d) ** 2).sum() / (2 * s * s)) * stats.norm.pdf(d, 0, g**-0.5)  # noqa: E731
    integral = integrate.quad(likelihood, -20, 20)[0]
    closed = math.sqrt(g / (g + 3)) * math.exp(-((x**2).sum() - 9 * x.mean() ** 2 / (3 + g)) / (2 * s * s))
    assert integral == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("n", [2, 3, 5, 20, 100, 3000])
def test_the_evidence_is_one_on_average_if_the_mean_is_right(n):
    def density(t):
        return math.exp(log_t_evidence(float(n), t) + stats.t.logpdf(t, n - 1))

    # Tails are heavy, so integrate over the probability of |t| up to the median, and over log t from there.
    middle = integrate.quad(density, 0, 1, epsabs=1e-11)[0]
    tail = integrate.quad(lambda y: density(math.exp(y)) * math.exp(y), 0, 200, limit=2000, epsabs=1e-11)[0]
    assert 2 * (middle + tail) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("n", [2, 7.5, 40, 1000])
def test_the_kernel_computes_the_formula(n):
    t = np.array([0.0, 0.3, 1.0, 3.0, 8.0])
    assert [log_t_evidence(float(n), x) for x in t] == pytest.approx(np.log(evidence(n, t)), rel=1e-10, abs=1e-12)


def test_the_evidence_is_a_martingale_for_gaussian_rewards():
    """Its mean stays 1, also where it stops at the first value of 2 or more."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20_000, 100))
    total, squares = x.cumsum(axis=1), (x * x).cumsum(axis=1)
    stopped, running = np.ones(len(x)), np.ones(len(x), bool)
    for n in range(2, 101):
        spread = np.sqrt((squares[:, n - 1] - total[:, n - 1] ** 2 / n) / (n - 1))
        stopped[running] = evidence(n, total[running, n - 1] / math.sqrt(n) / spread[running])
        running &= stopped < 2
        if n in (5, 20, 100):
            assert abs(stopped.mean() - 1) <= 4 * stopped.std() / math.sqrt(len(x))
    assert 0.15 <= (~running).mean() <= 0.5  # Ville's inequality


@pytest.mark.parametrize("n", [5.0, 37.5, 1000.0])
@pytest.mark.parametrize("delta", [0.2, 0.05, 0.001])
def test_the_mixture_is_at_most_as_wide_as_each_part_alone_with_its_weight(n, delta):
    """A part has the radius sqrt(nu (1 - q) / (q - r)), q = (r delta^2)^(1 / (nu + 1)) (Lindon et al. 2022, avlm)."""
    for weight, g in zip(WEIGHTS, SCALES, strict=True):
        r = g / (g + n)
        q = (r * (delta * weight) ** 2) ** (1 / n)
        if q > r:
            radius = math.sqrt((n - 1) * (1 - q) / (q - r))
            part = math.sqrt(r) * ((1 + radius**2 / (n - 1)) / (1 + r * radius**2 / (n - 1))) ** (n / 2)
            assert weight * part == pytest.approx(1 / delta, rel=1e-9)
            assert t_radius(n, -math.log(delta)) <= radius * (1 + 1e-9)


@settings(max_examples=80)
@given(st.floats(1.5, 1e9), st.floats(0.5, 30))
def test_the_evidence_reaches_the_threshold_at_the_radius(n, threshold):
    radius = t_radius(n, threshold)
    if radius == math.inf:
        assert log_t_evidence(n, 1e90) <= threshold
    else:
        assert log_t_evidence(n, radius) == pytest.approx(threshold, rel=1e-6)
        assert log_t_evidence(n, 0.99 * radius) < threshold


@settings(max_examples=80)
@given(st.floats(2, 1e9), st.floats(1.0001, 3), st.floats(0.5, 30))
def test_more_rewards_bring_narrower_intervals(n, times, threshold):
    fewer, more = t_radius(n, threshold) / math.sqrt(n), t_radius(times * n, threshold) / math.sqrt(times * n)
    assert more <= fewer * (1 + 1e-9)


@settings(max_examples=80)
@given(st.floats(1.5, 1e9), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_evidence_grows_with_the_distance_alone(n, one, other):
    near, far = sorted((one, other), key=abs)
    assert log_t_evidence(n, near) <= log_t_evidence(n, far) + 1e-9 * (1 + abs(log_t_evidence(n, far)))
    assert log_t_evidence(n, one) == log_t_evidence(n, -one)
    assert log_t_evidence(n, 0.0) <= 0


@pytest.mark.parametrize(
    ("n", "delta", "times"), [(100, 0.05, 1.8), (1000, 0.05, 1.75), (1000, 0.01, 1.55), (1e6, 0.05, 2)]
)
def test_intervals_are_less_than_twice_those_of_one_look(n, delta, times):
    assert t_radius(float(n), -math.log(delta)) < times * stats.t.ppf(1 - delta / 2, n - 1)


def test_a_few_rewards_prove_nothing():
    assert t_radius(1.0, 3.0) == t_radius(2.0, 10.0) == math.inf
    assert log_t_evidence(1.0, 1e9) == log_t_evidence(0.0, 5.0) == 0.0


@settings(max_examples=80)
@given(st.floats(-0.33, 0.33), st.floats(-40, 40))
def test_halls_transform_and_its_inverse(skew, t):
    h = without_skewness(t, skew)
    assert with_skewness(h, skew) == pytest.approx(t, rel=1e-7, abs=1e-7)
    assert without_skewness(t + 0.1, skew) >= h


def test_halls_transform_takes_the_first_order_of_skewness_out():
    """Tail probabilities of exponential rewards' t statistics: 60 rewards, both sides, against the normal ones."""
    rng = np.random.default_rng(8)
    x = rng.exponential(size=(40_000, 60)) - 1
    t = math.sqrt(60) * x.mean(axis=1) / x.std(axis=1, ddof=1)
    skew = stats.skew(x, axis=1) / math.sqrt(60)
    h = np.array([without_skewness(a, c) for a, c in zip(t, skew, strict=True)])
    plain, mended = ((v < -1.96).mean() - (v > 1.96).mean() for v in (t, h))
    assert plain > 0.03
    assert abs(mended) < 0.4 * plain


def test_the_weights_are_those_of_a_mixture():
    assert WEIGHTS.sum() == pytest.approx(1.0, rel=1e-12)


def test_each_part_is_the_narrowest_of_all_scales_at_its_own_number_of_rewards():
    """At a failure probability of 1 %; the formula behind it is for many rewards."""
    for count, scale in zip(t_mixture._COUNT[2:], SCALES[2:], strict=True):

        def radius(g, n=count):
            r = g / (g + n)
            q = (r * 0.01**2) ** (1 / n)
            return math.sqrt((1 - q) / (q - r)) if q > r else 9.0

        best = optimize.minimize_scalar(lambda y, f=radius: f(math.exp(y)), bounds=(-3, 14), method="bounded")
        assert radius(scale) <= 1.005 * best.fun


@settings(max_examples=80)
@given(nasty, nasty, nasty)
def test_numbers_that_are_no_statistics_end_in_an_answer(n, t, threshold):
    log_t_evidence(n, t)
    assert not t_radius(n, threshold) < 0
    with_skewness(t, threshold)
    without_skewness(t, threshold)
