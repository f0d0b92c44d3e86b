"""Lay out exact sums in digits, and convert them to whole numbers and text.

A sum of doubles is a whole number of the smallest double, 2^-1074. Compiled code keeps it in digits of 32 bits, the
lowest first: every digit is from 0 to 2^32 - 1 except the highest, which carries the sign. So each sum has one form.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from equipoise._types import IntArray

DIGITS = 58
"""Digits of a sum. That of 1e15 squares of 1e100 takes 56, and the highest digit has room for 2^63 times more."""
BITS = 32
REWARDS, SQUARES = 0, 1
"""Rows of an arm's exact sums."""
SMALLEST_EXPONENT = -1074
"""The unit of a sum is 2 to this power."""

_REST_BITS = BITS * (DIGITS - 1)
_TEXT = re.compile("(-?[0-9a-f]+)p(-?[0-9]{1,4}) (-?[0-9a-f]+)p(-?[0-9]{1,4})")

ExactSums = tuple[int, int]
"""The sums of an arm's rewards and of their squares, in units of 2^-1074."""


def new_digits() -> IntArray:
    """Return the digits of an arm without rewards."""
    return np.zeros((2, DIGITS), np.int64)


def to_digits(sums: ExactSums) -> IntArray:
    """Return the digits of an arm's sums; raise `OverflowError` if they are too large."""
    digits = new_digits()
    for row, number in zip(digits, sums, strict=True):
        rest = (number & ((1 << _REST_BITS) - 1)).to_bytes(_REST_BITS // 8, "little")
        row[:-1] = np.frombuffer(rest, "<u4")
        row[-1] = number >> _REST_BITS
    return digits


def from_digits(digits: IntArray) -> ExactSums:
    """Return the sums that digits stand for."""
    rests = digits[:, :-1].astype("<u4").tobytes()
    half, tops = len(rests) // 2, digits[:, -1].tolist()
    return (
        int.from_bytes(rests[:half], "little") + (tops[REWARDS] << _REST_BITS),
        int.from_bytes(rests[half:], "little") + (tops[SQUARES] << _REST_BITS),
    )


def units(value: float) -> int:
    """Return a double in units of 2^-1074.

    Examples
    --------
    >>> units(5e-324), units(-1e-323)
    (1, -2)
    """
    numerator, denominator = value.as_integer_ratio()
    return numerator << (1 - SMALLEST_EXPONENT - denominator.bit_length())


def to_text(sums: ExactSums) -> str:
    """Return sums as text: each in hexadecimal, times a power of two.

    Examples
    --------
    >>> to_text((units(-2.5), units(6.25)))
    '-5p-1 19p-2'
    """
    return " ".join(map(_number_to_text, sums))


def from_text(text: Any) -> ExactSums:
    """Return the sums that a text stands for; raise `ValueError` if it cannot be from `to_text`.

    Examples
    --------
    >>> from_text('-5p-1 19p-2') == (units(-2.5), units(6.25))
    True
    """
    found = _TEXT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"exact sums must be text such as '-5p-1 19p-2'; got {text!r}")
    rewards, rewards_exponent, squares, squares_exponent = found.groups()
    return _shifted(rewards, rewards_exponent, text), _shifted(squares, squares_exponent, text)


def _number_to_text(number: int) -> str:
    if number == 0:
        return "0p0"
    zeros = (number & -number).bit_length() - 1
    return f"{number >> zeros:x}p{zeros + SMALLEST_EXPONENT}"


def _shifted(number: str, exponent: str, text: str) -> int:
    zeros = int(exponent) - SMALLEST_EXPONENT
    if zeros < 0 or zeros + 4 * len(number) > BITS * (DIGITS + 1):
        raise ValueError(f"exact sums must be within the range of digits; got {text!r}")
    return int(number, 16) << zeros
