"""Count and remove rewards without rounding, so that a mistake of any size leaves no trace once it is corrected.

The pairs of `moments` hold 106 bits. Next to a reward of 1e18 by mistake, whose square is 1e36, they hold nothing below
1e4 of the squares, and removing it cannot bring back what was never kept. So each arm has exact sums besides: whole
numbers of the smallest double, in digits (`exact_digits`; Kulisch 1971, Neal 2015, arXiv:1505.05571). A double is a
whole number of 53 bits, shifted, so that adding or removing one is integer arithmetic. Therefore:

- The digits depend on the rewards that count now, and on nothing else.
- A reward is added to the pairs as in `moments`, with the same result to the last bit. That rounds by 2^-104 of sums in
  which every reward still counts.
- A removal does not subtract from the pairs: it rounds them from the digits. So no rounding outlives the rewards it
  comes from, and any way to the same rewards gives the same statistics up to the roundings of one pass over them.

Without removals nothing differs from `moments` alone, which is why the simulator needs no digits.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.exact_digits import BITS, DIGITS, REWARDS, SMALLEST_EXPONENT, SQUARES
from equipoise.kernels.moments import add_pairs, add_reward, product_error, refresh

_MASK = 2**BITS - 1
_MANTISSA_BITS = 53
_WORTH: FloatArray = np.ldexp(1.0, BITS * np.arange(DIGITS) + SMALLEST_EXPONENT)
"""What 1 is worth in each digit."""


@inlined
def add_exactly(digits: IntArray, value: float) -> None:
    """Add a double of either sign to a sum."""
    fraction, exponent = math.frexp(value)
    mantissa = int(fraction * 2.0**_MANTISSA_BITS)
    shift = exponent - _MANTISSA_BITS - SMALLEST_EXPONENT
    if shift < 0:  # a subnormal, to which frexp has appended zeros
        mantissa >>= -shift
        shift = 0
    place = shift // BITS
    shift -= place * BITS
    # The shifted mantissa has up to 84 bits, so it goes in two parts; the higher carries the sign.
    low = (mantissa & _MASK) << shift
    high = (mantissa >> BITS) << shift
    carry = digits[place] + (low & _MASK)
    digits[place] = carry & _MASK
    carry = (carry >> BITS) + digits[place + 1] + (low >> BITS) + high
    digits[place + 1] = carry & _MASK
    carry >>= BITS
    place += 2
    while carry != 0 and place < DIGITS - 1:
        carry += digits[place]
        digits[place] = carry & _MASK
        carry >>= BITS
        place += 1
    digits[DIGITS - 1] += carry


@inlined
def rounded(digits: IntArray) -> tuple[float, float]:
    """Return a sum as a pair high + low, to 2^-100 of it."""
    high, low = 0.0, 0.0
    # From the top: the leading digits of a negative sum cancel, exactly, before anything is rounded.
    for place in range(DIGITS - 1, -1, -1):
        if digits[place] != 0:
            high, low = add_pairs(high, low, digits[place] * _WORTH[place], 0.0)
    return high, low


@compiled
def add_reward_exactly(
    arm: int,
    reward: float,
    sign: float,
    pulls: IntArray,
    mean: FloatArray,
    std: FloatArray,
    sums: FloatArray,
    digits: IntArray,
) -> None:
    """Count a reward (sign 1.0) or remove it again (sign -1.0); `digits` are the arm's own."""
    add_exactly(digits[REWARDS], sign * reward)
    add_exactly(digits[SQUARES], sign * (reward * reward))
    add_exactly(digits[SQUARES], sign * product_error(reward, reward))
    if sign > 0.0:
        add_reward(arm, reward, sign, pulls, mean, std, sums)
        return
    pulls[arm] -= 1
    sums[0, arm], sums[1, arm] = rounded(digits[REWARDS])
    sums[2, arm], sums[3, arm] = rounded(digits[SQUARES])
    refresh(arm, pulls, mean, std, sums)
    if pulls[arm] == 0:
        for row in range(digits.shape[0]):
            for place in range(DIGITS):
                digits[row, place] = 0
