"""Define what all kinds of arms share: the base class, its checks, and the form that compiled loops read."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.checks import LARGEST_REWARD
from equipoise.errors import InvalidInput
from equipoise.serialization import plain


class Arms(ABC):
    """A set of arms. The s-th reward of an arm in a replication depends on (seed, replication, arm, s) alone.

    Attributes
    ----------
    mean, std : array (n_arms,)
        The true values, which an experiment estimates.
    names : tuple of str or None
        Names of the arms, if any; charts and frames use them.
    """

    mean: FloatArray
    std: FloatArray
    names: tuple[str, ...] | None = None

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @abstractmethod
    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""

    @cached_property
    def drawing(self) -> Drawing:
        """The arms in the form that the compiled loop reads, built once."""
        return self.make_drawing()

    def __getstate__(self) -> dict[str, Any]:
        # Rebuild the drawing after unpickling: arrays from a pickle may be read-only, and kernels are compiled for
        # writable arrays.
        return {name: value for name, value in vars(self).items() if name != "drawing"}

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards for uniform numbers in (0, 1), for arms that only Python can draw from."""
        raise InvalidInput(f"arm {arm} of {type(self).__name__} is drawn in compiled code")

    def rewards(self, arm: int, *, seed: int, replication: int = 0, first: int = 0, count: int = 1) -> FloatArray:
        """Return the rewards numbered first, ..., first + count - 1 of an arm in a replication.

        They are the ones that `simulate` gives to every policy.

        Examples
        --------
        >>> from equipoise.arms import Gaussian
        >>> arms = Gaussian(mean=[1.0, 2.0], std=[0.1, 0.2])
        >>> arms.rewards(1, seed=7, count=3).round(3)
        array([1.955, 2.234, 1.807])
        >>> arms.rewards(1, seed=7, first=2).round(3)
        array([1.807])
        """
        arm = checks.whole_number("arm", arm, 0, self.n_arms - 1)
        seed = checks.whole_number("seed", seed, 0, 2**63 - 1)
        replication = checks.whole_number("replication", replication, 0, 2**63 - 1)
        first, count = checks.whole_number("first", first, 0), checks.whole_number("count", count, 0)
        start = first - first % 4
        drawn = np.empty((first + count - start + 3) // 4 * 4)
        self.fill(arm, seed, replication, start, drawn)
        return drawn[first - start : first - start + count]

    def fill(self, arm: int, seed: int, replication: int, first: int, out: FloatArray) -> None:
        """Write the rewards numbered first, first + 1, ...; `first` and the size of `out` are multiples of 4."""
        kernel, (kind, shape, pool) = reward_kernel(), self.drawing
        kernel.fill_rewards(int(kind[arm]), shape, pool, seed, replication, arm, first, out)
        if kind[arm] == kernel.EXTERNAL:
            # Many a quantile function is infinite, or outside its support, at exactly 0.
            rewards = np.asarray(self.external_rewards(arm, np.maximum(out, 2.0**-54)))
            if rewards.shape != out.shape:
                got = f"an array of shape {rewards.shape} for {out.size} numbers from arm {arm}"
                raise InvalidInput(f"there must be one reward for each uniform number; got {got}")
            out[:] = rewards
            if not np.isfinite(out).all():
                got = out[~np.isfinite(out)][0]
                raise InvalidInput.of("rewards", f"must be finite; got {got} from arm {arm} of {type(self).__name__}")

    def to_dict(self) -> dict[str, Any]:
        """Return the arms as plain data, for records of a simulation."""
        values = {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        if self.names is None:  # keeps records of arms without names as they were before names existed
            values.pop("names", None)
        return {"name": type(self).__name__} | values

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n_arms))

    def __repr__(self) -> str:
        given = [field.name for field in dataclasses.fields(self) if field.init]  # type: ignore[arg-type]
        shown = (f"{name}={getattr(self, name)!r}" for name in given if name != "names" or self.names is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


def keep(arms: Arms, **values: Any) -> None:
    """Store checked values in their fields, for `__post_init__` only; arrays are copied, so that they cannot change."""
    for name, value in values.items():
        object.__setattr__(arms, name, value.copy() if isinstance(value, np.ndarray) else value)


def keep_moments(arms: Arms, mean: FloatArray, std: FloatArray) -> None:
    """Store means and standard deviations, for `__post_init__` only; raise if statistics could not hold them."""
    for name, values in (("mean", mean), ("std", std)):
        # Written so that NaN is rejected too.
        wrong = ~(np.abs(values) <= LARGEST_REWARD)
        if wrong.any():
            arm = int(wrong.argmax())
            raise InvalidInput.of(
                name, f"must be finite and at most {LARGEST_REWARD:g} in size", float(values[arm]), arm=arm
            )
    keep(arms, mean=mean, std=std)


def checked_names(names: Any, n_arms: int) -> tuple[str, ...] | None:
    """Return the arms' names, or None; raise unless there is one per arm and all differ."""
    if names is None:
        return None
    if isinstance(names, str | bytes) or not hasattr(names, "__iter__"):
        raise InvalidInput.of("names", "must be a list with one name per arm", names)
    given = tuple(names)
    if not all(isinstance(name, str) and name.strip() for name in given):
        raise InvalidInput.of("names", "must be text, one per arm", list(given))
    if len(given) != n_arms:
        raise InvalidInput.of("names", f"must have {n_arms} entries, one per arm", len(given))
    if len(set(given)) != n_arms:
        twice = next(name for k, name in enumerate(given) if name in given[:k])
        raise InvalidInput.of("names", f"must differ from each other; got {twice!r} more than once")
    return tuple(map(str, given))


class Drawing(NamedTuple):
    """Arms in the form that the compiled loop reads: a kind and four numbers per arm, and a pool to resample."""

    kind: IntArray
    shape: FloatArray
    pool: FloatArray


def drawing_of(kind: int, *numbers: ArrayLike) -> Drawing:
    """Return arms of one kind; each argument has one value per arm."""
    rows = [np.asarray(row, dtype=np.float64) for row in numbers]
    shape = np.zeros((reward_kernel().SHAPE_ROWS, rows[0].size))
    for k, row in enumerate(rows):
        shape[k] = row
    return Drawing(np.full(rows[0].size, kind, dtype=np.int64), shape, np.zeros(0))


@cache
def reward_kernel() -> ModuleType:
    """Return the module that draws rewards, imported on first use because numba loads slowly."""
    from equipoise.kernels import rewards

    return rewards
