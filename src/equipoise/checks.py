"""Validate arguments: turn what a caller passed into numbers and arrays, or say what was expected."""

from __future__ import annotations

import math
import operator
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from equipoise.errors import Hint, InvalidInput
from equipoise.kernels.rules import CRITERIA

# Functions for arrays import NumPy when they are called: clients of the service check numbers and have no arrays.
if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise._types import FloatArray

LARGEST_COUNT = 10**15
"""Larger counts are rejected; they would not be whole numbers as doubles."""

LARGEST_REWARD = 1e100
"""Larger rewards are rejected: the square of their sum would overflow a double."""

INFORMATION_ABOUT = tuple(CRITERIA)
"""What information can be kept about: the average error, every arm, or which arm is best."""


def number_between(name: str, value: Any, low: float, high: float, *, open_low: bool = False) -> float:
    """Return `value` as a float in [low, high], or in (low, high] when `open_low`.

    Examples
    --------
    >>> number_between("reward_weight", 0.5, 0, 1)
    0.5
    >>> number_between("reward_weight", 1.3, 0, 1)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: reward_weight must be in [0, 1]; got 1.3
    """
    number = value if type(value) is float else _as_float(name, value)
    if not (low < number if open_low else low <= number) or not number <= high or math.isinf(number):
        opening = "(" if open_low or math.isinf(low) else "["
        closing = ")" if math.isinf(high) else "]"
        raise InvalidInput.of(name, f"must be in {opening}{low:g}, {high:g}{closing}", value)
    return number


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return `value` as an int of at least `low` (and at most `high`)."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or is_bool(value):
        raise InvalidInput.of(name, "must be a whole number", value)
    if number < low:
        raise InvalidInput.of(name, f"must be at least {low}", number)
    if high is not None and number > high:
        raise InvalidInput.of(name, f"must be at most {high}", number)
    return number


def is_bool(value: Any) -> bool:
    """Return whether `value` is a boolean, of Python or of NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> is_bool(True), is_bool(np.False_), is_bool(1)
    (True, True, False)
    """
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", None) == "b"


def boolean(name: str, value: Any) -> bool:
    """Return a boolean; nothing else is taken for one.

    Examples
    --------
    >>> boolean("paused", "no")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: paused must be true or false; got 'no'
    """
    if not is_bool(value):
        raise InvalidInput.of(name, "must be true or false", value)
    return bool(value)


def checked_reward(reward: Any) -> float:
    """Return a reward as a finite float of reasonable size."""
    try:
        value = float("" if isinstance(reward, (str, bytes)) else reward)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput.of("reward", "must be a number", reward) from None
    if not -LARGEST_REWARD <= value <= LARGEST_REWARD:
        raise InvalidInput.of("reward", f"must be finite and at most {LARGEST_REWARD:g} in size", reward)
    return value


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the allowed words, else raise."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidInput.of(name, f"must be one of {', '.join(allowed)}", value)
    return value


class Dial(NamedTuple):
    """The dial between reward and accuracy: a weight, or the information to keep; the other is None."""

    reward_weight: float | None
    information_kept: float | None
    information_about: str
    smallest_difference: float | None


def dial(reward_weight: Any, information_kept: Any, information_about: Any, smallest_difference: Any) -> Dial:
    """Return the dial; raise unless it is set in exactly one way, with what belongs to it.

    Examples
    --------
    >>> dial(None, 0.7, "every-arm", None).information_kept
    0.7
    >>> dial(0.5, None, "every-arm", None)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: information_about goes with information_kept; got 'every-arm'
    """
    one_dial(reward_weight, information_kept)
    if reward_weight is not None:
        reward_weight = number_between("reward_weight", reward_weight, 0, 1)
    else:
        information_kept = share_kept("information_kept", information_kept)
    one_of("information_about", information_about, INFORMATION_ABOUT)
    if reward_weight is not None and information_about != "average":
        raise InvalidInput.of("information_about", "goes with information_kept", information_about)
    difference = smallest_difference_for("information_about", information_about, smallest_difference)
    return Dial(reward_weight, information_kept, information_about, difference)


def one_dial(reward_weight: Any, information_kept: Any) -> None:
    """Raise unless exactly one of the two is given."""
    if (reward_weight is None) == (information_kept is None):
        got = "neither" if reward_weight is None else f"both ({reward_weight!r} and {information_kept!r})"
        raise InvalidInput(f"give either reward_weight or information_kept; got {got}", hint=Hint.SET_DIAL)


def share_kept(name: str, information_kept: Any) -> float:
    """Return the share of the information to keep; raise unless it is in (0, 1]."""
    return number_between(name, information_kept, 0, 1, open_low=True)


def smallest_difference_for(parameter: str, about: str, smallest_difference: Any) -> float | None:
    """Return the smallest difference of means that matters, if one is given; raise unless it is positive and used."""
    if smallest_difference is None:
        return None
    if about != "best-arm":
        raise InvalidInput.of("smallest_difference", f"goes with {parameter} 'best-arm'", smallest_difference)
    return number_between("smallest_difference", smallest_difference, 0, math.inf, open_low=True)


def vector(name: str, values: ArrayLike, *, size: int | None = None) -> FloatArray:
    """Return a one-dimensional array of finite floats, one per arm."""
    import numpy as np

    try:
        given = np.asarray(values)
        array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput.of(name, "must be one number per arm", values) from error
    if given.dtype.kind not in "fiu":  # neither text that looks like numbers, nor booleans
        raise InvalidInput.of(name, "must be one number per arm", values)
    if given.ndim != 1:
        raise InvalidInput.of(name, f"must be one number per arm; got an array of shape {given.shape}")
    if size is not None and array.size != size:
        raise InvalidInput.of(name, f"must have {size} entries, one per arm", array.size)
    if array.size == 0:
        raise InvalidInput.of(name, "must have at least one arm; got none")
    if not np.isfinite(array).all():
        arm = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InvalidInput.of(name, "must be finite", float(array[arm]), arm=arm)
    return array


def non_negative(name: str, values: ArrayLike, *, size: int | None = None) -> FloatArray:
    """Return a `vector` without negative entries."""
    array = vector(name, values, size=size)
    if array.min() < 0:
        arm = int(array.argmin())
        raise InvalidInput.of(name, "must not be negative", float(array[arm]), arm=arm)
    return array


def means_and_stds(mean: ArrayLike, std: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations of the same arms."""
    import numpy as np

    # Fast path: one compiled pass accepts nearly every call; otherwise the checks below say what is wrong.
    if type(mean) is np.ndarray and type(std) is np.ndarray and mean.dtype == std.dtype == np.float64:
        means, stds = np.ascontiguousarray(mean), np.ascontiguousarray(std)
        if means.ndim == stds.ndim == 1 and 0 < means.size == stds.size and _kernel().are_arms(means, stds):
            return means, stds
    means = vector("mean", mean)
    return means, non_negative("std", std, size=means.size)


def floors(floor: Any, n_arms: int) -> FloatArray:
    """Return one floor per arm, from one number for all arms or one per arm.

    Examples
    --------
    >>> floors(0.1, 3)
    array([0.1, 0.1, 0.1])
    >>> floors(0.5, 3)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: floor must add up to at most 1 over all arms; got 1.5 for 3 arms
    """
    import numpy as np

    if type(floor) is float or np.ndim(floor) == 0:
        share = number_between("floor", floor, 0, 1)
        array, total = np.zeros(n_arms), n_arms * share
        array += share
    else:
        array = non_negative("floor", floor, size=n_arms)
        total = float(array.sum())
    # 1/K summed K times may exceed 1 by rounding; such floors leave nothing to choose, but they are valid.
    if total > 1 + 1e-12:
        raise InvalidInput.of("floor", f"must add up to at most 1 over all arms; got {total:g} for {n_arms} arms")
    return array


def allocation(name: str, shares: ArrayLike, *, size: int | None = None) -> FloatArray:
    """Return a point of the simplex: non-negative shares that add up to 1."""
    array = non_negative(name, shares, size=size)
    total = float(array.sum())
    if abs(total - 1) > 1e-9:
        raise InvalidInput.of(name, f"must add up to 1; got {total:.12g}")
    return array


def _as_float(name: str, value: Any) -> float:
    if isinstance(value, (str, bytes)) or is_bool(value) or getattr(value, "ndim", 0) != 0:
        raise InvalidInput.of(name, "must be a number", value)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput.of(name, "must be a number", value) from None


@cache
def _kernel() -> ModuleType:
    from equipoise.kernels import solver as shares

    return shares
