"""Arms on their way to the workers: packed once, sent to each once, and described by a digest on the way back."""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.arms import Arms

if TYPE_CHECKING:
    from equipoise.arms.drawing import Drawing
    from equipoise.arrays import FloatArray

SMALL = 100_000
"""Bytes that go with every task, which is simpler and outlives a lost worker; more are sent to each worker once."""


class DescribedArms(Arms):
    """Arms that play as they do and say of themselves a few words only, so that results of a task are small."""

    def __init__(self, arms: Arms, description: dict[str, Any]) -> None:
        self.mean, self.std, self.names = arms.mean, arms.std, arms.names
        self._arms, self._description = arms, description

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return self._arms.drawing

    def external_rewards(self, arm: int, uniform: FloatArray) -> FloatArray:
        """Return the rewards that belong to uniform numbers."""
        return self._arms.external_rewards(arm, uniform)

    def fill(self, arm: int, seed: int, replication: int, first: int, out: FloatArray) -> None:
        """Write rewards."""
        self._arms.fill(arm, seed, replication, first, out)

    def to_dict(self) -> dict[str, Any]:
        """Return the few words."""
        return self._description

    def __repr__(self) -> str:
        return f"DescribedArms({self._description})"


class Parcel:
    """Something pickled once, for workers that each open it once.

    Parameters
    ----------
    key : str
        Different for different contents.
    content : array of bytes, or a reference to it in Ray
    """

    def __init__(self, key: str, content: Any) -> None:
        self.key, self.content = key, content

    @classmethod
    def of(cls, thing: Any) -> Parcel:
        """Return a parcel with something in it."""
        try:  # it takes classes that only the script here knows, too
            import cloudpickle  # type: ignore[import-untyped]
        except ImportError:  # joblib before 1.6 has its own
            from joblib.externals import cloudpickle

        data = cloudpickle.dumps(thing)
        return cls(hashlib.sha256(data).hexdigest(), np.frombuffer(data, dtype=np.uint8))

    @property
    def is_small(self) -> bool:
        """Whether it may go with every task."""
        return bool(self.content.size <= SMALL)

    def opened(self) -> Any:
        """Return what is in it; a worker keeps what it opened last."""
        found = _OPENED.get(self.key)
        if found is None:
            content = self.content
            if not isinstance(content, np.ndarray):
                import ray

                content = ray.get(content)
            found = pickle.loads(content.tobytes())  # noqa: S301  (we packed it)
            _OPENED.clear()
            _OPENED[self.key] = found
        return found


_OPENED: dict[str, Any] = {}
