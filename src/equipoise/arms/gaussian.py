"""Gaussian arms, those of the paper's experiments  [Sect. 5]."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from equipoise import checks
from equipoise.arms.arms import Arms, Drawing, checked_names, drawing_of, keep, keep_moments, reward_kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise._types import FloatArray


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

    if TYPE_CHECKING:  # lists are welcome; the fields hold arrays

        def __init__(self, *, mean: ArrayLike, std: ArrayLike, names: Sequence[str] | None = None) -> None: ...

    def __post_init__(self) -> None:
        mean, std = checks.means_and_stds(self.mean, self.std)
        keep_moments(self, mean, std)
        keep(self, names=checked_names(self.names, mean.size))

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return drawing_of(reward_kernel().GAUSSIAN, self.mean, self.std)
