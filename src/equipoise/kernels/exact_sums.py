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
- Third and fourth powers are in the digits alone. No decision reads them; evidence and intervals do.

Without removals nothing differs from `moments` alone, which is why the simulator needs no digits.

A wire format: if you change a result here, even by one rounding, raise `kernels.VERSION`.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise._types import FloatArray, IntArray
from equipoise.kernels.compiler import compiled, inlined
from equipoise.kernels.exact_digits import BITS, CUBES, DIGITS, FOURTHS, REWARDS, SMALLEST_EXPONENT, SQUARES
from equipoise.kernels.moments import add_pairs, add_reward, product_error, refresh

_MASK = 2**BITS - 1
_MANTISSA_BITS = 53
_HIGHEST_SHIFT = BITS * (DIGITS - 2) - 1
_ROUNDED_DIGITS = 57
"""Digits that sums of rewards and of squares need; those above repeat the sign, and are worth more than a double."""
_WORTH: FloatArray = np.ldexp(1.0, BITS * np.arange(_ROUNDED_DIGITS + 1) + SMALLEST_EXPONENT)
"""What 1 is worth in each digit."""


@inlined
def add_exactly(digits: IntArray, value: float, doublings: int) -> None:
    """Add a double of either sign, times 2 to the power of `doublings`, to a sum; bits below 2^-1074 are cut off."""
    fraction, exponent = math.frexp(value)
    mantissa = int(fraction * 2.0**_MANTISSA_BITS)
    shift = exponent + doublings - _MANTISSA_BITS - SMALLEST_EXPONENT
    if shift < 0:
        # Cut off towards 0, so that a removal takes away what was added. A subnormal loses only the zeros that frexp
        # has appended.
        size = abs(mantissa) >> min(-shift, 63)
        mantissa = -size if mantissa < 0 else size
        shift = 0
    elif shift > _HIGHEST_SHIFT:  # no reward that passed a check is as large, but a damaged log may hold one
        return
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
    """Return a sum of rewards or of squares as a pair high + low, to 2^-100 of it."""
    # From the top: the leading digits of a negative sum cancel, exactly, before anything is rounded.
    high, low = -_WORTH[_ROUNDED_DIGITS] if digits[DIGITS - 1] < 0 else 0.0, 0.0
    for place in range(_ROUNDED_DIGITS - 1, -1, -1):
        if digits[place] != 0:
            high, low = add_pairs(high, low, digits[place] * _WORTH[place], 0.0)
    return high, low


@compiled
def add_powers(reward: float, sign: float, digits: IntArray) -> None:
    """Add a reward and its powers to the exact sums of an arm (sign 1.0) or subtract them again (sign -1.0)."""
    add_exactly(digits[REWARDS], sign * reward, 0)
    add_exactly(digits[SQUARES], sign * (reward * reward), 0)
    add_exactly(digits[SQUARES], sign * product_error(reward, reward), 0)
    if digits.shape[0] <= CUBES:
        return
    # Of a number from 0.5 to 1, so that no product overflows, and no error of a product underflows.
    x, doublings = math.frexp(reward)
    square = x * x
    rest = product_error(x, x)
    for one in (square, rest):
        for part in (one * x, product_error(one, x)):
            add_exactly(digits[CUBES], sign * part, 3 * doublings)
    double = 2.0 * square
    for one, other in ((square, square), (double, rest), (rest, rest)):
        for part in (one * other, product_error(one, other)):
            add_exactly(digits[FOURTHS], sign * part, 4 * doublings)


@compiled
def add_rewards(rewards: FloatArray, signs: FloatArray, arms: IntArray, digits: IntArray) -> None:
    """Add many rewards and their powers to the exact sums of their arms, or subtract them, each by its sign."""
    for at in range(rewards.size):
        add_powers(rewards[at], signs[at], digits[arms[at]])


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
    exact: bool,
) -> None:
    """Count a reward (sign 1.0) or remove it again (sign -1.0); `digits` are the arm's own.

    Unless `exact`, a removal subtracts from the pairs, as in the first version.
    """
    add_powers(reward, sign, digits)
    if sign > 0.0 or not exact:
        add_reward(arm, reward, sign, pulls, mean, std, sums)
    else:
        pulls[arm] -= 1
        sums[0, arm], sums[1, arm] = rounded(digits[REWARDS])
        sums[2, arm], sums[3, arm] = rounded(digits[SQUARES])
        refresh(arm, pulls, mean, std, sums)
    if pulls[arm] == 0:
        for row in range(digits.shape[0]):
            for place in range(DIGITS):
                digits[row, place] = 0
