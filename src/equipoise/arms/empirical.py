"""Arms that resample the rewards of an experiment, read from a CSV file, a frame or rows."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise._types import FloatArray
from equipoise.arms.arms import Arms, Drawing, checked_names, drawing_of, keep, keep_moments, reward_kernel
from equipoise.errors import EquipoiseError, InvalidInput, visible
from equipoise.files import CsvRows, decoded


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Empirical(Arms):
    """Arms that resample, with replacement, the rewards seen in an experiment.

    Parameters
    ----------
    values : sequence of arrays
        The rewards of each arm; arms may have different numbers.
    names : sequence of str, optional
        Names of the arms.

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
            raise InvalidInput.of("values", f"must be the rewards of each arm, such as {example}", self.values)
        if len(self.values) == 0:
            raise InvalidInput.of("values", "must have at least one arm; got none")
        values = tuple(_rewards_of(arm, rewards) for arm, rewards in enumerate(self.values))
        keep(self, values=values, names=checked_names(self.names, len(values)))
        # The resampled rewards are the whole population, so the spread has the divisor n.
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = (np.array([measure(rewards) for rewards in values]) for measure in (np.mean, np.std))
        keep_moments(self, mean, std)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], *, arm: str = "arm", reward: str = "reward") -> Empirical:
        """Read arms from the rewards in a CSV file with one row per participant.

        Parameters
        ----------
        path : path
            A file with a header line. Other columns and blank lines are ignored; errors name the line.
        arm, reward : str
            Columns that hold the arm's name and the reward, matched case-insensitively. Arms are numbered in order of
            appearance.
        """
        rows = CsvRows(decoded(Path(path).read_bytes(), str(path)), str(path), (arm, reward))
        return cls._from_pairs(
            ((f"{path}, line {rows.line}", name, value) for name, value in rows), reward=reward, source=str(path)
        )

    @classmethod
    def from_frame(cls, frame: Any, *, arm: str = "arm", reward: str = "reward") -> Empirical:
        """Build arms from the rewards in a frame with one row per participant.

        Parameters
        ----------
        frame : polars or pandas frame, or mapping of column names to sequences
        arm, reward : str
            Columns that hold the arm's name and the reward. Arms are numbered in order of appearance.

        Examples
        --------
        >>> frame = {"arm": ["pie", "line", "pie"], "reward": [0.5, 1.0, 0.7]}
        >>> arms = Empirical.from_frame(frame)
        >>> arms.names, arms.mean
        (('pie', 'line'), array([0.6, 1. ]))
        """
        columns = list(frame.columns if hasattr(frame, "columns") else frame)
        if columns.count(arm) != 1 or columns.count(reward) != 1:
            got = visible(", ".join(map(str, columns))) or "none"
            raise InvalidInput(f"expected the columns {arm} and {reward}, each once; got {got}")
        names, rewards = list(frame[arm]), list(frame[reward])
        if len(names) != len(rewards):
            raise InvalidInput(f"columns must be equally long; got {len(names)} arms and {len(rewards)} rewards")
        rows = enumerate(zip(names, rewards, strict=True))
        return cls._from_pairs(((f"row {k}", name, value) for k, (name, value) in rows), reward=reward, source="frame")

    @classmethod
    def _from_pairs(cls, rows: Any, *, reward: str, source: str) -> Empirical:
        """Build arms from (place, arm, reward) rows; errors refer to a row by its place."""
        rewards: dict[str, list[float]] = {}
        for place, name, given in rows:
            if _is_missing(name) or not str(name).strip():
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
        """Build arms from a mapping of arm names to rewards.

        Examples
        --------
        >>> Empirical.from_rows({"pie": [0.5, 0.7], "line": [1.0]}).n_arms
        2
        """
        return cls(values=tuple(np.asarray(x, dtype=float) for x in rewards.values()), names=tuple(rewards))

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        counts = np.array([rewards.size for rewards in self.values], dtype=np.float64)
        first = np.concatenate([[0.0], np.cumsum(counts)[:-1]])
        return drawing_of(reward_kernel().EMPIRICAL, first, counts)._replace(pool=np.concatenate(self.values))


def _is_missing(name: Any) -> bool:
    """Return whether a frame's cell is empty: None, NaN (unequal to itself), or pandas' NA (no truth value)."""
    try:
        return name is None or bool(name != name)
    except TypeError:
        return True


def _rewards_of(arm: int, rewards: ArrayLike) -> FloatArray:
    try:
        array = np.array(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"values of arm {arm} must be numbers; got {rewards!r}") from None
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise InvalidInput(f"values of arm {arm} must be at least one finite reward; got {rewards!r}")
    return array
