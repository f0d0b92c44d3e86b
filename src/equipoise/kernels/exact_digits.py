"""Lay out exact sums in digits, and convert them to whole numbers and text.

A sum of doubles is a whole number of the smallest double, 2^-1074. Compiled code keeps it in digits of 32 bits, the
lowest first: every digit is from 0 to 2^32 - 1 except the highest, which is the sign. So each sum has one form.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from equipoise._types import IntArray

DIGITS = 78
"""Digits of a sum. That of 1e15 fourth powers of 1e100 takes 77; the highest digit is the sign, 0 or -1."""
BITS = 32
REWARDS, SQUARES, CUBES, FOURTHS = range(4)
"""Rows of an arm's exact sums; the last two are missing where cubes and fourth powers are unknown."""
SMALLEST_EXPONENT = -1074
"""The unit of a sum is 2 to this power."""

_BYTES = BITS * DIGITS // 8
_NUMBER = re.compile("(-?[0-9a-f]+)p(-?[0-9]{1,4})")

ExactSums = tuple[int, ...]
"""The sums of an arm's rewards, their squares, cubes and fourth powers, in units of 2^-1074.

Only the first two where rewards are known by count, mean and spread alone.
"""


def new_digits(rows: int = 4) -> IntArray:
    """Return the digits of an arm without rewards."""
    return np.zeros((rows, DIGITS), np.int64)


def to_digits(sums: ExactSums) -> IntArray:
    """Return the digits of an arm's sums; raise `OverflowError` if they are too large."""
    digits = new_digits(len(sums))
    for row, number in zip(digits, sums, strict=True):
        row[:] = np.frombuffer(number.to_bytes(_BYTES, "little", signed=True), "<u4")
        row[-1] = -(number < 0)
    return digits


def from_digits(digits: IntArray) -> ExactSums:
    """Return the sums that digits stand for."""
    data = digits.astype("<u4").tobytes()  # in which -1 is the highest number
    return tuple([int.from_bytes(data[at : at + _BYTES], "little", signed=True) for at in range(0, len(data), _BYTES)])


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
    parts = text.split(" ") if isinstance(text, str) else []
    if len(parts) not in (2, 4):
        raise ValueError(f"exact sums must be text such as '-5p-1 19p-2', of two or four numbers; got {text!r}")
    return tuple([_number_from_text(part) for part in parts])


def _number_to_text(number: int) -> str:
    if number == 0:
        return "0p0"
    zeros = (number & -number).bit_length() - 1
    return f"{number >> zeros:x}p{zeros + SMALLEST_EXPONENT}"


def _number_from_text(text: str) -> int:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"exact sums must be text such as '-5p-1 19p-2'; got {text!r}")
    number, zeros = found[1], int(found[2]) - SMALLEST_EXPONENT
    if zeros < 0 or zeros + 4 * len(number) > BITS * (DIGITS - 1):
        raise ValueError(f"exact sums must be within the range of digits; got {text!r}")
    return int(number, 16) << zeros
