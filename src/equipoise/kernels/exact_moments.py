"""Compute moments from exact sums, in whole numbers: whatever cancels, the result is the nearest double.

Fourth powers of rewards around 1e9 need 120 digits before they can be subtracted. Python's whole numbers have them, and
take some ten microseconds for an arm.
"""

from __future__ import annotations

import math

from equipoise.kernels import exact_digits
from equipoise.kernels.exact_digits import SMALLEST_EXPONENT, ExactSums

Moments = tuple[float, float, float, float]
"""Averages of the first to fourth powers of a quantity; NaN where they are unknown."""

_UNKNOWN: Moments = (math.nan, math.nan, math.nan, math.nan)


def central_moments(count: int, sums: ExactSums) -> Moments:
    """Return the mean of some rewards, and the averages of the 2nd to 4th powers of their distances from it."""
    if count == 0:
        return _UNKNOWN
    bits, sums = _shortened(sums)
    first, second = sums[:2]
    # Powers of `count` times the distances, so that they are whole numbers, added up and divided by `count`.
    square = first * first
    twos = count * second - square
    threes = fours = None
    if len(sums) > 2:
        third, fourth = sums[2:]
        threes = count * (count * third - 3 * first * second) + 2 * first * square
        fours = count * (count * (count * fourth - 4 * first * third) + 6 * square * second) - 3 * square * square
        if fours < twos * twos:  # impossible, but for tiny rewards whose fourth powers are cut off
            threes = fours = None
    unit = count << bits
    return _quotient(first, unit), _quotient(twos, unit**2), _quotient(threes, unit**3), _quotient(fours, unit**4)


def moments_within(count: int, sums: ExactSums, low: float, high: float) -> tuple[Moments, Moments]:
    """Return the averages of the powers of u = (reward - low) / (high - low), and of those of 1 - u."""
    if count == 0:
        return _UNKNOWN, _UNKNOWN
    start, end = exact_digits.units(low), exact_digits.units(high)
    bits, sums = _shortened(sums, start | end)
    start, end = _in_units_of(start, bits), _in_units_of(end, bits)
    return _scaled(count, sums, start, end - start), _scaled(count, sums, end, start - end)


def _scaled(count: int, sums: ExactSums, start: int, unit: int) -> Moments:
    """Return the averages of the powers of (reward - start) / unit."""
    first, second = sums[:2]
    ones, twos = first - count * start, second - start * (2 * first - count * start)
    threes = fours = None
    if len(sums) > 2:
        third, fourth = sums[2:]
        threes = third - start * (3 * second - start * (3 * first - count * start))
        fours = fourth - start * (4 * third - start * (6 * second - start * (4 * first - count * start)))
        if count * fours < twos * twos:
            threes = fours = None
    square = unit * unit
    return (
        _quotient(ones, count * unit),
        _quotient(twos, count * square),
        _quotient(threes, count * square * unit),
        _quotient(fours, count * square * square),
    )


def _shortened(sums: ExactSums, other: int = 0) -> tuple[int, ExactSums]:
    """Return k, and the sums of j-th powers in units of 2^-jk, for a k that loses nothing of them and of the other.

    Whole numbers of some hundred bits are much faster than those of thousands.
    """
    bits = _bits(other)
    for power, number in enumerate(sums, 1):
        bits = max(bits, -(-_bits(number) // power))
    return bits, tuple([_in_units_of(number, power * bits) for power, number in enumerate(sums, 1)])


def _bits(number: int) -> int:
    """Return the binary places after the point of what is a number of units of 2^-1074."""
    return max(0, 1 - SMALLEST_EXPONENT - (number & -number).bit_length()) if number else 0


def _in_units_of(number: int, bits: int) -> int:
    """Return what is a number of units of 2^-1074 in units of 2^-bits."""
    shift = bits + SMALLEST_EXPONENT
    return number << shift if shift >= 0 else number >> -shift


def _quotient(numerator: int | None, denominator: int) -> float:
    """Return the nearest double; NaN for None, infinity beyond the largest."""
    if numerator is None:
        return math.nan
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if (numerator > 0) == (denominator > 0) else -math.inf
