"""Arms that succeed or fail."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from equipoise import checks
from equipoise.arms.arms import Arms, checked_names, keep, keep_moments
from equipoise.arms.drawing import Drawing, drawing_of, reward_kernel
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bernoulli(Arms):
    """Arms that pay 1 with a probability, their mean, and 0 otherwise.

    Examples
    --------
    >>> Bernoulli(mean=[0.2, 0.5]).std
    array([0.4, 0.5])
    """

    mean: FloatArray
    names: tuple[str, ...] | None = None
    std: FloatArray = dataclasses.field(init=False, repr=False)

    if TYPE_CHECKING:  # lists are welcome; the fields hold arrays

        def __init__(self, *, mean: ArrayLike, names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        mean = _probabilities(self.mean)
        keep_moments(self, mean, np.sqrt(mean * (1 - mean)))
        keep(self, names=checked_names(self.names, mean.size))

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return drawing_of(reward_kernel().BERNOULLI, self.mean)


def _probabilities(mean: ArrayLike) -> FloatArray:
    probability = checks.non_negative("mean", mean)
    if probability.max() > 1:
        arm = int(probability.argmax())
        raise InvalidInput(f"mean must be a probability in [0, 1]; got {probability[arm]} for arm {arm}")
    return probability
