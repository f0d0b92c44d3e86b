"""Arms to simulate with: what their rewards are drawn from, and their true means and standard deviations."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from abc import ABC, abstractmethod
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise.errors import EquipoiseError, InvalidInput

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
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
    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""

    @cached_property
    def drawing(self) -> Drawing:
        """The arms as the compiled loop sees them, made once."""
        return self.make_drawing()

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards that belong to uniform numbers in (0, 1), for arms that only Python can draw from."""
        raise InvalidInput(f"arm {arm} of {type(self).__name__} is drawn in compiled code")

    def rewards(self, arm: int, *, seed: int, replication: int = 0, first: int = 0, count: int = 1) -> FloatArray:
        """Return the rewards numbered first, ..., first + count - 1 of an arm in a replication.

        They are those that `simulate` hands out, to every policy.

        Examples
        --------
        >>> arms = Gaussian(mean=[1.0, 2.0], std=[0.1, 0.2])
        >>> arms.rewards(1, seed=7, count=3).round(3)
        array([2.149, 1.859, 1.991])
        >>> arms.rewards(1, seed=7, first=2).round(3)
        array([1.991])
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
        kernel, (kind, shape, pool) = _kernel(), self.drawing
        kernel.fill_rewards(int(kind[arm]), shape, pool, seed, replication, arm, first, out)
        if kind[arm] == kernel.EXTERNAL:
            # Many a quantile function is infinite, or outside its support, at exactly 0.
            out[:] = self.external_rewards(arm, np.maximum(out, 2.0**-54))
            if not np.isfinite(out).all():
                got = out[~np.isfinite(out)][0]
                raise InvalidInput(f"rewards must be finite; got {got} from arm {arm} of {type(self).__name__}")

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

    def make_drawing(self) -> Drawing:
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

    def make_drawing(self) -> Drawing:
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

    def make_drawing(self) -> Drawing:
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
        a = _positive("a", self.a)
        b = _positive("b", self.b, size=a.size)
        low, high = (
            np.full(a.size, checks.number_between(name, bound, -np.inf, np.inf)) if np.ndim(bound) == 0 else bound
            for name, bound in (("low", self.low), ("high", self.high))
        )
        low, high = _interval(low, high, size=a.size)
        width, total = high - low, a + b
        _set(self, a=a, b=b, low=low, high=high)
        _set(self, mean=low + width * a / total, std=width * np.sqrt(a * b / (total + 1)) / total)

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return _drawing(_kernel().BETA, self.a, self.b, self.low, self.high)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Empirical(Arms):
    """Arms that resample, with replacement, the rewards seen in an experiment.

    Parameters
    ----------
    values : sequence of arrays
        The rewards of each arm; arms need not have equally many.
    names : sequence of str, optional
        What the arms are called.

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
        if isinstance(self.values, str | bytes) or not hasattr(self.values, "__len__"):  # type: ignore[redundant-expr]
            example = "[[0, 1, 1], [2, 4]]"
            raise InvalidInput(f"values must be the rewards of each arm, such as {example}; got {self.values!r}")
        if len(self.values) == 0:
            raise InvalidInput("values must have at least one arm; got none")
        values = tuple(_rewards_of(arm, rewards) for arm, rewards in enumerate(self.values))
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
            A file with a header line. Other columns and blank lines are passed over; what is wrong is told with its
            line.
        arm, reward : str
            Columns that hold the arm's name and the reward. Arms are numbered in the order in which they appear.
        """
        data = Path(path).read_bytes()
        try:
            text = data.decode("utf-8-sig")  # spreadsheets put a byte order mark before the first name
        except UnicodeDecodeError as error:
            line = data[: error.start].count(b"\n") + 1
            message = f"{path}, line {line}: expected text in UTF-8; got the byte {data[error.start]:#04x}"
            raise EquipoiseError(message, hint="save the file as CSV in UTF-8") from error
        rows = csv.DictReader(io.StringIO(text, newline=""))
        header = rows.fieldnames or []
        if arm not in header or reward not in header:
            got = ", ".join(header) or "an empty file"
            raise EquipoiseError(f"{path}, line 1: expected the columns {arm} and {reward}; got {got}")
        return cls._from_pairs(
            ((f"{path}, line {rows.line_num}", row[arm], row[reward]) for row in rows), reward=reward, source=str(path)
        )

    @classmethod
    def from_frame(cls, frame: Any, *, arm: str = "arm", reward: str = "reward") -> Empirical:
        """Return arms with the rewards of a frame with one row per participant.

        Parameters
        ----------
        frame : polars or pandas frame, or mapping of column names to sequences
        arm, reward : str
            Columns that hold the arm's name and the reward. Arms are numbered in the order in which they appear.

        Examples
        --------
        >>> frame = {"arm": ["pie", "line", "pie"], "reward": [0.5, 1.0, 0.7]}
        >>> arms = Empirical.from_frame(frame)
        >>> arms.names, arms.mean
        (('pie', 'line'), array([0.6, 1. ]))
        """
        columns = list(frame.columns if hasattr(frame, "columns") else frame)
        if arm not in columns or reward not in columns:
            got = ", ".join(map(str, columns)) or "none"
            raise InvalidInput(f"expected the columns {arm} and {reward}; got {got}")
        names, rewards = list(frame[arm]), list(frame[reward])
        if len(names) != len(rewards):
            raise InvalidInput(f"columns must be equally long; got {len(names)} arms and {len(rewards)} rewards")
        rows = enumerate(zip(names, rewards, strict=True))
        return cls._from_pairs(((f"row {k}", name, value) for k, (name, value) in rows), reward=reward, source="frame")

    @classmethod
    def _from_pairs(cls, rows: Any, *, reward: str, source: str) -> Empirical:
        """Return arms from (place, arm, reward) rows; the place is what errors call the row."""
        rewards: dict[str, list[float]] = {}
        for place, name, given in rows:
            if name is None or not str(name).strip():
                raise EquipoiseError(f"{place}: each row needs the name of its arm; got none")
            try:
                value = float(given)
            except (TypeError, ValueError):
                value = math.nan
            if not math.isfinite(value):
                raise EquipoiseError(f"{place}: {reward} must be a finite number; got {given!r}")
            rewards.setdefault(str(name).strip(), []).append(value)
        if not rewards:
            raise EquipoiseError(f"{source}: expected at least one row; got none")
        return cls.from_rows(rewards)

    @classmethod
    def from_rows(cls, rewards: Mapping[str, Sequence[float]]) -> Empirical:
        """Return arms from a mapping of arm names to rewards.

        Examples
        --------
        >>> Empirical.from_rows({"pie": [0.5, 0.7], "line": [1.0]}).n_arms
        2
        """
        return cls(values=tuple(np.asarray(x, dtype=float) for x in rewards.values()), names=tuple(rewards))

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        counts = np.array([rewards.size for rewards in self.values], dtype=np.float64)
        first = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        return _drawing(_kernel().EMPIRICAL, first, counts)._replace(pool=np.concatenate(self.values))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Distributions(Arms):
    """Arms with any distributions that have `mean()`, `std()` and `ppf(uniform)`, such as scipy's frozen ones.

    Rewards are made 256 at a time in Python, which is slower than the other kinds of arms but no less exact.

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
        if not hasattr(self.distributions, "__len__") or len(self.distributions) == 0:
            raise InvalidInput(
                f"distributions must be a list with one distribution per arm; got {self.distributions!r}"
            )
        for distribution in self.distributions:
            if not all(hasattr(distribution, name) for name in ("mean", "std", "ppf")):
                raise InvalidInput(f"a distribution must have mean, std and ppf; got {distribution!r}")
        mean = [float(distribution.mean()) for distribution in self.distributions]
        std = [float(distribution.std()) for distribution in self.distributions]
        mean, std = checks.means_and_stds(mean, std)  # type: ignore[assignment]
        _set(self, distributions=tuple(self.distributions), mean=mean, std=std)

    def make_drawing(self) -> Drawing:
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

    Parameters
    ----------
    parts : sequence of Arms

    Examples
    --------
    >>> Mixed(parts=[Gaussian(mean=[1.0], std=[0.5]), Bernoulli(mean=[0.2, 0.5])]).n_arms
    3
    """

    parts: tuple[Arms, ...]
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.parts
        if not hasattr(given, "__len__") or not len(given) or not all(isinstance(part, Arms) for part in given):
            raise InvalidInput(f"parts must be arms such as Gaussian(mean=[1], std=[1]); got {self.parts!r}")
        mean, std = (np.concatenate([getattr(part, name) for part in self.parts]) for name in ("mean", "std"))
        _set(self, parts=tuple(self.parts), mean=mean, std=std)

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        shapes, pooled = [], 0
        for kind, shape, pool in (part.drawing for part in self.parts):
            # A stretch of the pool starts where it did, after the pools of the parts before.
            moved = shape.copy()
            moved[0, kind == _kernel().EMPIRICAL] += pooled
            shapes.append(moved)
            pooled += pool.size
        return Drawing(
            np.concatenate([part.drawing.kind for part in self.parts]),
            np.concatenate(shapes, axis=1),
            np.concatenate([part.drawing.pool for part in self.parts]),
        )

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


def _positive(name: str, values: ArrayLike, *, size: int | None = None) -> FloatArray:
    array = checks.vector(name, values, size=size)
    if array.min() <= 0:
        arm = int(array.argmin())
        raise InvalidInput(f"{name} must be positive; got {array[arm]} for arm {arm}")
    return array


def _rewards_of(arm: int, rewards: ArrayLike) -> FloatArray:
    try:
        array = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"values of arm {arm} must be numbers; got {rewards!r}") from None
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise InvalidInput(f"values of arm {arm} must be at least one finite reward; got {rewards!r}")
    return array


def _interval(low: ArrayLike, high: ArrayLike, *, size: int | None = None) -> tuple[FloatArray, FloatArray]:
    lows = checks.vector("low", low, size=size)
    highs = checks.vector("high", high, size=lows.size)
    if (lows > highs).any():
        arm = int(np.argmax(lows > highs))
        raise InvalidInput(f"low must not exceed high; got {lows[arm]} and {highs[arm]} for arm {arm}")
    return lows, highs


def _set(arms: Arms, **values: Any) -> None:
    # Arrays are copied, so that nobody changes the arms from outside.
    for name, value in values.items():
        object.__setattr__(arms, name, value.copy() if isinstance(value, np.ndarray) else value)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(x) for x in value] if isinstance(value, tuple) else value


@cache
def _kernel() -> ModuleType:
    from equipoise.kernels import rewards

    return rewards
