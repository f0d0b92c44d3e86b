"""Arms with arbitrary distributions, sampled by their quantile functions."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.arms.arms import Arms, Drawing, checked_names, drawing_of, keep, keep_moments, reward_kernel
from equipoise.errors import InvalidInput
from equipoise.serialization import plain

_GRID = np.concatenate([[1e-6, 1e-3], (np.arange(32) + 0.5) / 32, [1 - 1e-3, 1 - 1e-6]])
"""Where distributions are compared. Never change it: saved runs would no longer match their arms."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Distributions(Arms):
    """Arms with any distributions that have `mean()`, `std()` and `ppf(uniform)`, such as scipy's frozen ones.

    Rewards are drawn in Python, 256 at a time, which is slower than the other kinds of arms but no less exact.

    Parameters
    ----------
    distributions : sequence
        One per arm. Arms are equal if the distributions have the same names, parameters, means, standard deviations
        and quantiles, the last to nine digits.
    names : sequence of str, optional
        Names of the arms.

    Examples
    --------
    >>> from scipy import stats
    >>> Distributions(distributions=[stats.expon(scale=2.0), stats.gamma(4.0)]).mean
    array([2., 4.])
    """

    distributions: tuple[Any, ...]
    names: tuple[str, ...] | None = None
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # accepts lists; the fields hold tuples

        def __init__(self, *, distributions: Sequence[Any], names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        if not hasattr(self.distributions, "__len__") or len(self.distributions) == 0:
            raise InvalidInput(
                f"distributions must be a list with one distribution per arm; got {self.distributions!r}"
            )
        for distribution in self.distributions:
            if not all(hasattr(distribution, name) for name in ("mean", "std", "ppf")):
                raise InvalidInput(f"a distribution must have mean, std and ppf; got {distribution!r}")
        given = tuple(self.distributions)
        mean, std = ([_number(d, name, arm) for arm, d in enumerate(given)] for name in ("mean", "std"))
        keep(self, distributions=given, names=checked_names(self.names, len(given)))
        keep_moments(self, *checks.means_and_stds(mean, std))
        self._described  # noqa: B018  (find a broken quantile function now)

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        return drawing_of(reward_kernel().EXTERNAL, np.zeros(self.n_arms))

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the quantiles at the given uniform numbers."""
        rewards = np.asarray(self.distributions[arm].ppf(uniform), dtype=np.float64)
        if rewards.shape != uniform.shape:
            raise InvalidInput(
                f"ppf of arm {arm} must give one quantile for each number it gets; "
                f"got an array of shape {rewards.shape} for {uniform.size} numbers"
            )
        return rewards

    def to_dict(self) -> dict[str, Any]:
        """Return the arms as far as plain data can describe them: names, parameters and a digest of quantiles."""
        data: dict[str, Any] = {"name": "Distributions", "distributions": list(self._described)}
        data |= {"mean": plain(self.mean), "std": plain(self.std)}
        return data if self.names is None else data | {"names": plain(self.names)}

    @cached_property
    def _described(self) -> tuple[str, ...]:
        return tuple(
            f"{_words(distribution)}, quantiles {_digest(self.external_rewards(arm, _GRID))}"
            for arm, distribution in enumerate(self.distributions)
        )


def _number(distribution: Any, name: str, arm: int) -> float:
    value = np.asarray(getattr(distribution, name)())
    if value.ndim != 0 or value.dtype.kind not in "fiu":
        raise InvalidInput(
            f"{name}() of a distribution must be a number; got {value.tolist()!r} for arm {arm}",
            hint="give one distribution per arm, such as [norm(loc=0), norm(loc=1)]",
        )
    return float(value)


def _words(distribution: Any) -> str:
    """Return a distribution's name and parameters; if it is not scipy's, its class name."""
    family = getattr(distribution, "dist", None)
    if family is None:
        return type(distribution).__name__
    parameters = [repr(value) for value in getattr(distribution, "args", ())]
    parameters += [f"{name}={value!r}" for name, value in getattr(distribution, "kwds", {}).items()]
    return f"{getattr(family, 'name', type(family).__name__)}({', '.join(parameters)})"


def _digest(quantiles: FloatArray) -> str:
    """Return a fingerprint of quantiles, to nine digits: further digits differ between versions of scipy."""
    # Adding 0 makes -0 and 0 the same.
    return hashlib.sha256(" ".join(f"{x + 0.0:.8e}" for x in quantiles.tolist()).encode()).hexdigest()[:16]
