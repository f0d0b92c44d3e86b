"""Arms of several kinds in one experiment."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.arms.arms import Arms, Drawing, checked_names, keep, keep_moments, reward_kernel
from equipoise.errors import InvalidInput
from equipoise.serialization import plain


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Mixed(Arms):
    """Arms of several kinds, concatenated.

    Parameters
    ----------
    parts : sequence of Arms
    names : sequence of str, optional
        Names of the arms; by default those of the parts, if all have names and no two are the same.

    Examples
    --------
    >>> from equipoise.arms import Bernoulli, Gaussian
    >>> Mixed(parts=[Gaussian(mean=[1.0], std=[0.5]), Bernoulli(mean=[0.2, 0.5])]).n_arms
    3
    """

    parts: tuple[Arms, ...]
    names: tuple[str, ...] | None = None
    mean: FloatArray = dataclasses.field(init=False, repr=False)
    std: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        given = self.parts
        if not hasattr(given, "__len__") or not len(given) or not all(isinstance(part, Arms) for part in given):
            raise InvalidInput.of("parts", "must be arms such as Gaussian(mean=[1], std=[1])", self.parts)
        mean, std = (np.concatenate([getattr(part, name) for part in self.parts]) for name in ("mean", "std"))
        keep(self, parts=tuple(self.parts))
        keep(self, names=self._names_of_parts() if self.names is None else checked_names(self.names, mean.size))
        keep_moments(self, mean, std)

    def _names_of_parts(self) -> tuple[str, ...] | None:
        names = tuple(name for part in self.parts for name in part.names or ())
        return names if len(set(names)) == sum(part.n_arms for part in self.parts) else None

    def make_drawing(self) -> Drawing:
        """Return the arms in the form that the compiled loop reads."""
        shapes, pooled = [], 0
        for kind, shape, pool in (part.drawing for part in self.parts):
            # Shift slices of the pool by the size of the pools before.
            moved = shape.copy()
            moved[0, kind == reward_kernel().EMPIRICAL] += pooled
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
        """Return the parts as plain data, and the names unless they are those of the parts."""
        data = {"name": "Mixed", "parts": [part.to_dict() for part in self.parts]}
        return data if self.names == self._names_of_parts() else data | {"names": plain(self.names)}
