"""Arms with rewards between two bounds: uniform and beta."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from equipoise import checks
from equipoise.arms.arms import Arms, keep
from equipoise.arms.drawing import Drawing, drawing_of, reward_kernel
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class UniformBetween(Arms):
    """Arms with rewards uniform on an interval each.

    Examples
    --------
    >>> UniformBetween(low=[0, 0], high=[1, 2]).mean
    array([0.5, 1. ])
    """

    low: FloatArray
    high: FloatArray
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # lists are welcome; the fields hold arrays

        def __init__(self, *, low: ArrayLike, high: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        low, high = _interval(self.low, self.high)
        keep(self, low=low, high=high, mean=(low + high) / 2, std=(high - low) / np.sqrt(12))

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return drawing_of(reward_kernel().UNIFORM, self.low, self.high)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Beta(Arms):
    """Arms with beta-distributed rewards, stretched to an interval each; [0, 1] by default.

    Examples
    --------
    >>> Beta(a=[2, 1], b=[2, 3]).mean
    array([0.5 , 0.25])
    """

    a: FloatArray
    b: FloatArray
    low: FloatArray | float = 0.0
    high: FloatArray | float = 1.0
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # lists are welcome; the fields hold arrays

        def __init__(self, *, a: ArrayLike, b: ArrayLike, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> None: ...

    def __post_init__(self) -> None:
        a = _positive("a", self.a)
        b = _positive("b", self.b, size=a.size)
        low, high = (
            np.full(a.size, checks.number_between(name, bound, -np.inf, np.inf)) if np.ndim(bound) == 0 else bound
            for name, bound in (("low", self.low), ("high", self.high))
        )
        low, high = _interval(low, high, size=a.size)
        width, total = high - low, a + b
        keep(self, a=a, b=b, low=low, high=high)
        keep(self, mean=low + width * a / total, std=width * np.sqrt(a * b / (total + 1)) / total)

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return drawing_of(reward_kernel().BETA, self.a, self.b, self.low, self.high)


def _positive(name: str, values: ArrayLike, *, size: int | None = None) -> FloatArray:
    array = checks.vector(name, values, size=size)
    if array.min() <= 0:
        arm = int(array.argmin())
        raise InvalidInput(f"{name} must be positive; got {array[arm]} for arm {arm}")
    return array


def _interval(low: ArrayLike, high: ArrayLike, *, size: int | None = None) -> tuple[FloatArray, FloatArray]:
    lows = checks.vector("low", low, size=size)
    highs = checks.vector("high", high, size=lows.size)
    if (lows > highs).any():
        arm = int(np.argmax(lows > highs))
        raise InvalidInput(f"low must not exceed high; got {lows[arm]} and {highs[arm]} for arm {arm}")
    return lows, highs
