"""Generate random numbers as pure functions of a key and a counter: Philox 4x64-10 (Salmon et al. 2011).

There is no state between calls, so the k-th decision or the s-th reward is the same for every caller, in any order and
on any number of workers. `numpy.random.Philox` returns the same words.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import allocating, compiled, high_product, inlined

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_KEY_STEP_0 = np.uint64(0x9E3779B97F4A7C15)
_KEY_STEP_1 = np.uint64(0xBB67AE8584CAA73B)
_UNUSED_BITS = np.uint64(11)

DECISION = np.uint64(1)
POSTERIOR = np.uint64(2)
"""Purpose of a number; part of the counter, so that streams for different purposes never overlap."""


@compiled
def philox(
    key_0: np.uint64, key_1: np.uint64, c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the block of four words for a key and a counter."""
    for _ in range(10):
        high_0, low_0 = high_product(_MULTIPLIER_0, c0), _MULTIPLIER_0 * c0
        high_1, low_1 = high_product(_MULTIPLIER_1, c2), _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = high_1 ^ c1 ^ key_0, low_1, high_0 ^ c3 ^ key_1, low_0
        key_0 = key_0 + _KEY_STEP_0
        key_1 = key_1 + _KEY_STEP_1
    return c0, c1, c2, c3


@compiled
def unit(word: np.uint64) -> float:
    """Turn a word into a number in [0, 1) with 53 random bits."""
    return float(word >> _UNUSED_BITS) * 2.0**-53


@compiled
def decision_uniform(seed: int, replication: int, index: int) -> float:
    """Return the uniform number of one decision; a live experiment is replication 0 of its seed."""
    zero = np.uint64(0)
    words = philox(np.uint64(seed), np.uint64(replication), np.uint64(index), zero, DECISION, zero)
    return unit(words[0])


_CENTRE = 0.425
_HALF_STEP = 2.0**-54


@inlined
def _central_quantile(q: float) -> float:
    """Return the number whose distribution function is 0.5 + q, for |q| <= 0.425."""
    r = _CENTRE * _CENTRE - q * q
    above = 2.5090809287301226727e3
    above = above * r + 3.3430575583588128105e4
    above = above * r + 6.7265770927008700853e4
    above = above * r + 4.5921953931549871457e4
    above = above * r + 1.3731693765509461125e4
    above = above * r + 1.9715909503065514427e3
    above = above * r + 1.3314166789178437745e2
    above = above * r + 3.3871328727963666080e0
    below = 5.2264952788528545610e3
    below = below * r + 2.8729085735721942674e4
    below = below * r + 3.9307895800092710610e4
    below = below * r + 2.1213794301586595867e4
    below = below * r + 5.3941960214247511077e3
    below = below * r + 6.8718700749205790830e2
    below = below * r + 4.2313330701600911252e1
    below = below * r + 1.0
    return q * above / below


@inlined
def _tail_quantile(q: float) -> float:
    """Return the number whose distribution function is 0.5 + q, for 0.425 <= |q| < 0.5."""
    r = math.sqrt(-math.log(0.5 - abs(q)))
    if r <= 5.0:
        r -= 1.6
        above = 7.74545014278341407640e-4
        above = above * r + 2.27238449892691845833e-2
        above = above * r + 2.41780725177450611770e-1
        above = above * r + 1.27045825245236838258e0
        above = above * r + 3.64784832476320460504e0
        above = above * r + 5.76949722146069140550e0
        above = above * r + 4.63033784615654529590e0
        above = above * r + 1.42343711074968357734e0
        below = 1.05075007164441684324e-9
        below = below * r + 5.47593808499534494600e-4
        below = below * r + 1.51986665636164571966e-2
        below = below * r + 1.48103976427480074590e-1
        below = below * r + 6.89767334985100004550e-1
        below = below * r + 1.67638483018380384940e0
        below = below * r + 2.05319162663775882187e0
        below = below * r + 1.0
    else:
        r -= 5.0
        above = 2.01033439929228813265e-7
        above = above * r + 2.71155556874348757815e-5
        above = above * r + 1.24266094738807843860e-3
        above = above * r + 2.65321895265761230930e-2
        above = above * r + 2.96560571828504891230e-1
        above = above * r + 1.78482653991729133580e0
        above = above * r + 5.46378491116411436990e0
        above = above * r + 6.65790464350110377720e0
        below = 2.04426310338993978564e-15
        below = below * r + 1.42151175831644588870e-7
        below = below * r + 1.84631831751005468180e-5
        below = below * r + 7.86869131145613259100e-4
        below = below * r + 1.48753612908506148525e-2
        below = below * r + 1.36929880922735805310e-1
        below = below * r + 5.99832206555887937690e-1
        below = below * r + 1.0
    return math.copysign(above / below, q)


@inlined
def _centred(uniform: float) -> float:
    """Return uniform - 0.5, moved by half a step of the 2^53 that uniform numbers have: never 0, never -0.5 or 0.5."""
    return (uniform - 0.5) + _HALF_STEP


@inlined
def normal(uniform: float) -> float:
    """Return the standard normal quantile of a uniform number in [0, 1) with 53 random bits."""
    q = _centred(uniform)
    return _central_quantile(q) if abs(q) <= _CENTRE else _tail_quantile(q)


@allocating
def make_normal(values: FloatArray, mean: float, std: float) -> None:
    """Turn uniform numbers into mean + std * `normal`, in place."""
    # Three passes without a branch on random data: mispredicted branches would double the time.
    place = np.empty(values.size, dtype=np.int64)
    outer = np.empty(values.size)
    n_outer = 0
    for i in range(values.size):
        q = _centred(values[i])
        place[n_outer], outer[n_outer] = i, q
        n_outer += 1 if abs(q) > _CENTRE else 0
    for i in range(values.size):
        values[i] = mean + std * _central_quantile(_centred(values[i]))
    for k in range(n_outer):
        values[place[k]] = mean + std * _tail_quantile(outer[k])


@compiled
def log_gamma_draw(
    shape: float,
    key_0: np.uint64,
    key_1: np.uint64,
    c0: np.uint64,
    c1: np.uint64,
    purpose: np.uint64,
    first_attempt: int,
) -> tuple[float, float]:
    """Return the logarithm of a gamma draw, and a uniform number that is independent of it.

    The logarithm, because with a small shape the draw itself is often too small for a double.
    """
    # The method needs shape >= 1; for a smaller one draw with shape + 1 and correct afterwards.
    boosted = shape < 1.0
    d = (shape + 1.0 if boosted else shape) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    attempt = first_attempt
    while True:
        words = philox(key_0, key_1, c0, c1, purpose, np.uint64(attempt))
        attempt += 1
        x = normal(unit(words[0]))
        cube = (1.0 + c * x) ** 3
        # 1 - u is in (0, 1], where the logarithm is finite.
        if cube > 0.0 and math.log(1.0 - unit(words[1])) < 0.5 * x * x + d - d * cube + d * math.log(cube):
            break
    draw = math.log(d * cube) + (math.log(1.0 - unit(words[2])) / shape if boosted else 0.0)
    return draw, unit(words[3])


@compiled
def state_key(t: int, mean: FloatArray, std: FloatArray, scratch: FloatArray) -> np.uint64:
    """Return a key derived from the estimates, so that two experiments at the same step draw independently."""
    scratch[0] = 0.0
    for i in range(mean.size):
        scratch[0] += mean[i] + std[i]
    bits = scratch.view(np.uint64)[0]
    words = philox(bits, np.uint64(t), np.uint64(0), np.uint64(0), POSTERIOR, np.uint64(0))
    return words[0]


@compiled
def draw_posterior(
    key: np.uint64, index: int, arm: int, pulls: IntArray, mean: FloatArray, std: FloatArray
) -> tuple[float, float]:
    """Return one posterior draw of (mean, std) of an arm with at least two rewards."""
    shape = 0.5 * (pulls[arm] - 1)
    log_gamma, spare = log_gamma_draw(shape, key, np.uint64(0), np.uint64(arm), np.uint64(index), POSTERIOR, 1)
    # The chi-square of the density above is twice this gamma; avoid dividing by a draw too small for a double.
    sampled_std = std[arm] * math.sqrt(shape / max(math.exp(log_gamma), 1e-300))
    return mean[arm] + sampled_std / math.sqrt(pulls[arm]) * normal(spare), sampled_std
