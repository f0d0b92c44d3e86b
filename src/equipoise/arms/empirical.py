"""Arms that resample the rewards of an experiment, read from a CSV file, a frame or rows."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.arms.arms import Arms, keep
from equipoise.arms.drawing import Drawing, drawing_of, reward_kernel
from equipoise.errors import EquipoiseError, InvalidInput, visible

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray


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
        keep(self, values=values, names=None if self.names is None else tuple(self.names), mean=mean, std=std)

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
            got = visible(", ".join(header)) or "an empty file"
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
            got = visible(", ".join(map(str, columns))) or "none"
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
        return drawing_of(reward_kernel().EMPIRICAL, first, counts)._replace(pool=np.concatenate(self.values))


def _rewards_of(arm: int, rewards: ArrayLike) -> FloatArray:
    try:
        array = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"values of arm {arm} must be numbers; got {rewards!r}") from None
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise InvalidInput(f"values of arm {arm} must be at least one finite reward; got {rewards!r}")
    return array
