"""Arms to simulate with: what their rewards are drawn from, and their true means and standard deviations."""

from __future__ import annotations

import csv
import dataclasses
from abc import ABC, abstractmethod
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput

if TYPE_CHECKING:
    import os
    from types import ModuleType

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray


class Drawing(NamedTuple):
    """Arms as the compiled loop sees them: a kind and four numbers per arm, and a pool of rewards to resample."""

    kind: IntArray
    shape: FloatArray
    pool: FloatArray


class Arms(ABC):
    """A set of arms. The s-th reward of an arm in a replication depends on (seed, replication, arm, s) alone.

    Attributes
    ----------
    mean, std : array (n_arms,)
        What an experiment tries to find out.
    """

    mean: FloatArray
    std: FloatArray

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return self.mean.size

    @abstractmethod
    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards that belong to uniform numbers, for arms that only Python can draw from."""
        raise InvalidInput(f"arm {arm} of {type(self).__name__} is drawn in compiled code")

    def rewards(self, arm: int, *, seed: int, replication: int = 0, first: int = 0, count: int = 1) -> FloatArray:
        """Return the rewards numbered first, ..., first + count - 1 of an arm in a replication.

        Examples
        --------
        >>> arms = Gaussian(mean=[1.0, 2.0], std=[0.1, 0.2])
        >>> arms.rewards(1, seed=7, count=3).round(3)
        array([2.149, 1.859, 1.991])
        >>> arms.rewards(1, seed=7, first=2).round(3)
        array([1.991])
        """
        arm = checks.whole_number("arm", arm, 0, self.n_arms - 1)
        first, count = checks.whole_number("first", first, 0), checks.whole_number("count", count, 0)
        start = first - first % 4
        drawn = np.empty((first + count - start + 3) // 4 * 4)
        self.fill(arm, seed, replication, start, drawn)
        return drawn[first - start : first - start + count]

    def fill(self, arm: int, seed: int, replication: int, first: int, out: FloatArray) -> None:
        """Write the rewards numbered first, first + 1, ...; `first` and the size of `out` are multiples of 4."""
        kernel, (kind, shape, pool) = _kernel(), self.drawing()
        kernel.fill_rewards(int(kind[arm]), shape, pool, seed, replication, arm, first, out)
        if kind[arm] == kernel.EXTERNAL:
            out[:] = self.external_rewards(arm, out)

    def to_dict(self) -> dict[str, Any]:
        """Return what the arms are as plain data, for records of a simulation."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {"name": type(self).__name__} | {field.name: _plain(getattr(self, field.name)) for field in fields}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.n_arms))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Gaussian(Arms):
    """Arms with Gaussian rewards.

    Examples
    --------
    >>> Gaussian(mean=[1, 2], std=[0.5, 1]).n_arms
    2
    """

    mean: FloatArray
    std: FloatArray

    def __post_init__(self) -> None:
        mean, std = checks.means_and_stds(self.mean, self.std)
        _set(self, mean=mean, std=std)

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().GAUSSIAN, self.mean, self.std)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Bernoulli(Arms):
    """Arms that pay 1 with a probability, their mean, and 0 otherwise.

    Examples
    --------
    >>> Bernoulli(mean=[0.2, 0.5]).std
    array([0.4, 0.5])
    """

    mean: FloatArray
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        mean = _probabilities(self.mean)
        _set(self, mean=mean, std=np.sqrt(mean * (1 - mean)))

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().BERNOULLI, self.mean)


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

    def __post_init__(self) -> None:
        low, high = _interval(self.low, self.high)
        _set(self, low=low, high=high, mean=(low + high) / 2, std=(high - low) / np.sqrt(12))

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().UNIFORM, self.low, self.high)


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

    def __post_init__(self) -> None:
        a = checks.non_negative("a", self.a)
        b = checks.non_negative("b", self.b, size=a.size)
        if min(a.min(), b.min()) <= 0:
            raise InvalidInput(f"a and b must be positive; got {a.tolist()} and {b.tolist()}")
        low, high = _interval(*(np.broadcast_to(np.asarray(x, dtype=float), a.shape) for x in (self.low, self.high)))
        width, total = high - low, a + b
        _set(self, a=a, b=b, low=low, high=high)
        _set(self, mean=low + width * a / total, std=width * np.sqrt(a * b / (total + 1)) / total)

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().BETA, self.a, self.b, self.low, self.high)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Empirical(Arms):
    """Arms that resample the rewards seen in an experiment.

    Examples
    --------
    >>> arms = Empirical(values=[[0, 1, 1], [2, 4]])
    >>> arms.mean.round(3), arms.std.round(3)
    (array([0.667, 3.   ]), array([0.471, 1.   ]))
    """

    values: tuple[FloatArray, ...]
    names: tuple[str, ...] | None = None
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.values) == 0:
            raise InvalidInput("values must have at least one arm; got none")
        values = tuple(checks.vector(f"values of arm {k}", rewards) for k, rewards in enumerate(self.values))
        if self.names is not None and len(self.names) != len(values):
            raise InvalidInput(f"names must have {len(values)} entries, one per arm; got {len(self.names)}")
        # The rewards resampled are all there is, so their spread has the divisor n.
        mean, std = (np.array([measure(rewards) for rewards in values]) for measure in (np.mean, np.std))
        _set(self, values=values, names=None if self.names is None else tuple(self.names), mean=mean, std=std)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], *, arm: str = "arm", reward: str = "reward") -> Empirical:
        """Return arms with the rewards of a CSV file that has one row per participant.

        Parameters
        ----------
        path : path
            A file with a header line.
        arm, reward : str
            Columns that hold the arm's name and the reward.
        """
        rewards: dict[str, list[float]] = {}
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            missing = [column for column in (arm, reward) if column not in (rows.fieldnames or [])]
            if missing:
                got = ", ".join(rows.fieldnames or []) or "none"
                raise EquipoiseError(f"{path}: expected the columns {arm} and {reward}; got {got}")
            for row in rows:
                try:
                    value = float(row[reward] or "")
                except ValueError:
                    raise EquipoiseError(
                        f"{path}, line {rows.line_num}: {reward} must be a number; got {row[reward]!r}"
                    ) from None
                rewards.setdefault(row[arm] or "", []).append(value)
        return cls.from_rows(rewards)

    @classmethod
    def from_frame(cls, frame: Any, *, arm: str = "arm", reward: str = "reward") -> Empirical:
        """Return arms with the rewards of a frame (polars, pandas, or a mapping of columns)."""
        rewards: dict[str, list[float]] = {}
        for name, value in zip(frame[arm], frame[reward], strict=True):
            rewards.setdefault(str(name), []).append(float(value))
        return cls.from_rows(rewards)

    @classmethod
    def from_rows(cls, rewards: dict[str, list[float]]) -> Empirical:
        """Return arms from a mapping of arm names to rewards."""
        return cls(values=tuple(np.array(x) for x in rewards.values()), names=tuple(rewards))

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        counts = np.array([rewards.size for rewards in self.values], dtype=np.float64)
        first = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        return _drawing(_kernel().EMPIRICAL, first, counts)._replace(pool=np.concatenate(self.values))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Distributions(Arms):
    """Arms with any distributions that have `mean()`, `std()` and `ppf(uniform)`, such as scipy's frozen ones.

    Examples
    --------
    >>> from scipy import stats
    >>> Distributions(distributions=[stats.expon(scale=2.0), stats.gamma(4.0)]).mean
    array([2., 4.])
    """

    distributions: tuple[Any, ...]
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        for distribution in self.distributions:
            if not all(hasattr(distribution, name) for name in ("mean", "std", "ppf")):
                raise InvalidInput(f"a distribution must have mean, std and ppf; got {distribution!r}")
        mean = [float(distribution.mean()) for distribution in self.distributions]
        std = [float(distribution.std()) for distribution in self.distributions]
        mean, std = checks.means_and_stds(mean, std)  # type: ignore[assignment]
        _set(self, distributions=tuple(self.distributions), mean=mean, std=std)

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().EXTERNAL, np.zeros(self.n_arms))

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the quantiles that belong to uniform numbers."""
        return np.asarray(self.distributions[arm].ppf(uniform), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Return what the arms are, as far as plain data can say it."""
        described = [
            f"{getattr(getattr(d, 'dist', d), 'name', type(d).__name__)}"
            f"({', '.join(map(repr, getattr(d, 'args', ())))}, {getattr(d, 'kwds', {})})"
            for d in self.distributions
        ]
        return {"name": "Distributions", "distributions": described, "mean": _plain(self.mean), "std": _plain(self.std)}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Mixed(Arms):
    """Arms of several kinds, one after another.

    Examples
    --------
    >>> Mixed(parts=[Gaussian(mean=[1.0], std=[0.5]), Bernoulli(mean=[0.2, 0.5])]).n_arms
    3
    """

    parts: tuple[Arms, ...]
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Arms) for part in self.parts):
            raise InvalidInput(f"parts must be arms such as Gaussian(mean=[1], std=[1]); got {self.parts!r}")
        mean, std = (np.concatenate([getattr(part, name) for part in self.parts]) for name in ("mean", "std"))
        _set(self, parts=tuple(self.parts), mean=mean, std=std)

    def drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        drawings = [part.drawing() for part in self.parts]
        pooled = 0
        for drawing in drawings:
            # A stretch of the pool starts where it did, after the pools of the parts before.
            drawing.shape[0, drawing.kind == _kernel().EMPIRICAL] += pooled
            pooled += drawing.pool.size
        kind, shape, pool = (np.concatenate(x, axis=-1) for x in zip(*drawings, strict=True))
        return Drawing(kind, shape, pool)

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards of the part the arm belongs to."""
        for part in self.parts:
            if arm < part.n_arms:
                return part.external_rewards(arm, uniform)
            arm -= part.n_arms
        raise InvalidInput(f"there is no such arm; the last is {self.n_arms - 1}")

    def to_dict(self) -> dict[str, Any]:
        """Return the parts as plain data."""
        return {"name": "Mixed", "parts": [part.to_dict() for part in self.parts]}


def _drawing(kind: int, *numbers: ArrayLike) -> Drawing:
    rows = [np.asarray(row, dtype=np.float64) for row in numbers]
    shape = np.zeros((_kernel().SHAPE_ROWS, rows[0].size))
    for k, row in enumerate(rows):
        shape[k] = row
    return Drawing(np.full(rows[0].size, kind, dtype=np.int64), shape, np.zeros(0))


def _probabilities(mean: ArrayLike) -> FloatArray:
    probability = checks.non_negative("mean", mean)
    if probability.max() > 1:
        arm = int(probability.argmax())
        raise InvalidInput(f"mean must be a probability in [0, 1]; got {probability[arm]} for arm {arm}")
    return probability


def _interval(low: ArrayLike, high: ArrayLike) -> tuple[FloatArray, FloatArray]:
    lows = checks.vector("low", low)
    highs = checks.vector("high", high, size=lows.size)
    if (lows > highs).any():
        arm = int(np.argmax(lows > highs))
        raise InvalidInput(f"low must not exceed high; got {lows[arm]} and {highs[arm]} for arm {arm}")
    return lows, highs


def _set(arms: Arms, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(arms, name, value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(x) for x in value] if isinstance(value, tuple) else value


@cache
def _kernel() -> ModuleType:
    from equipoise.kernels import rewards

    return rewards
