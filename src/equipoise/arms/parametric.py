"""Arms with parametric distributions: Gaussian, uniform, beta and Bernoulli."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.arms.arms import Arms, Drawing, checked_names, drawing_of, keep, keep_moments, reward_kernel
from equipoise.errors import InvalidInput


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Gaussian(Arms):
    """Arms with Gaussian rewards.

    Examples
    --------
    >>> Gaussian(mean=[1, 2], std=[0.5, 1]).n_arms
    2
    """

    mean: FloatArray
    std: FloatArray
    names: tuple[str, ...] | None = None

    if TYPE_CHECKING:  # accepts lists; the fields hold arrays

        def __init__(self, *, mean: ArrayLike, std: ArrayLike, names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        mean, std = checks.means_and_stds(self.mean, self.std)
        keep_moments(self, mean, std)
        keep(self, names=checked_names(self.names, mean.size))

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        return drawing_of(reward_kernel().GAUSSIAN, self.mean, self.std)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UniformBetween(Arms):
    """Arms with uniform rewards, each on its own interval.

    Examples
    --------
    >>> UniformBetween(low=[0, 0], high=[1, 2]).mean
    array([0.5, 1. ])
    """

    low: FloatArray
    high: FloatArray
    names: tuple[str, ...] | None = None
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # accepts lists; the fields hold arrays

        def __init__(self, *, low: ArrayLike, high: ArrayLike, names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        low, high = _interval(self.low, self.high)
        keep(self, low=low, high=high, names=checked_names(self.names, low.size))
        with np.errstate(over="ignore"):
            keep_moments(self, (low + high) / 2, (high - low) / np.sqrt(12))

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        return drawing_of(reward_kernel().UNIFORM, self.low, self.high)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Beta(Arms):
    """Arms with beta-distributed rewards, each scaled to its own interval; [0, 1] by default.

    Examples
    --------
    >>> Beta(a=[2, 1], b=[2, 3]).mean
    array([0.5 , 0.25])
    """

    a: FloatArray
    b: FloatArray
    low: FloatArray | float = 0.0
    high: FloatArray | float = 1.0
    names: tuple[str, ...] | None = None
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # accepts lists; the fields hold arrays

        def __init__(
            self,
            *,
            a: ArrayLike,
            b: ArrayLike,
            low: ArrayLike = 0.0,
            high: ArrayLike = 1.0,
            names: Sequence[str] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        a = _positive("a", self.a)
        b = _positive("b", self.b, size=a.size)
        low, high = (
            np.full(a.size, checks.number_between(name, bound, -np.inf, np.inf)) if np.ndim(bound) == 0 else bound
            for name, bound in (("low", self.low), ("high", self.high))
        )
        low, high = _interval(low, high, size=a.size)
        keep(self, a=a, b=b, low=low, high=high, names=checked_names(self.names, a.size))
        keep_moments(self, *_beta_moments(a, b, low, high))

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        return drawing_of(reward_kernel().BETA, self.a, self.b, self.low, self.high)


def _beta_moments(a: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means and standard deviations, even where the product of a and b overflows or underflows."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        width, total, product = high - low, a + b, a * b
        mean, std = low + width * a / total, width * np.sqrt(product / (total + 1)) / total
        ordinary = (product > 1e-290) & (product < 1e290) & (total < 1e290)
        # With tiny or huge numbers only the quotients are safe; they round slightly differently.
        share, rest = 1 / (1 + b / a), 1 / (1 + a / b)
        stable = width * np.sqrt(share) * np.sqrt(rest) / (np.sqrt(2) * np.sqrt(a / 2 + b / 2 + 0.5))
        return np.where(ordinary, mean, low + width * share), np.where(ordinary, std, stable)


def _positive(name: str, values: ArrayLike, *, size: int | None = None) -> FloatArray:
    array = checks.vector(name, values, size=size)
    if array.min() <= 0:
        arm = int(array.argmin())
        raise InvalidInput.of(name, "must be positive", float(array[arm]), arm=arm)
    return array


def _interval(low: ArrayLike, high: ArrayLike, *, size: int | None = None) -> tuple[FloatArray, FloatArray]:
    lows = checks.vector("low", low, size=size)
    highs = checks.vector("high", high, size=lows.size)
    if (lows > highs).any():
        arm = int(np.argmax(lows > highs))
        raise InvalidInput.of("low", f"must not exceed high; got {lows[arm]} and {highs[arm]}", arm=arm)
    return lows, highs


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bernoulli(Arms):
    """Arms with reward 1 with a probability, their mean, and 0 otherwise.

    Examples
    --------
    >>> Bernoulli(mean=[0.2, 0.5]).std
    array([0.4, 0.5])
    """

    mean: FloatArray
    names: tuple[str, ...] | None = None
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # accepts lists; the fields hold arrays

        def __init__(self, *, mean: ArrayLike, names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        mean = _probabilities(self.mean)
        keep_moments(self, mean, np.sqrt(mean * (1 - mean)))
        keep(self, names=checked_names(self.names, mean.size))

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        return drawing_of(reward_kernel().BERNOULLI, self.mean)


def _probabilities(mean: ArrayLike) -> FloatArray:
    probability = checks.non_negative("mean", mean)
    if probability.max() > 1:
        arm = int(probability.argmax())
        raise InvalidInput.of("mean", "must be a probability in [0, 1]", float(probability[arm]), arm=arm)
    return probability
