"""Arms that draw from any distribution with a quantile function."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.arms.arms import Arms, keep, plain
from equipoise.arms.drawing import Drawing, drawing_of, reward_kernel
from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray


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
        keep(self, distributions=tuple(self.distributions), mean=mean, std=std)

    def make_drawing(self) -> Drawing:
        """Return the arms as the compiled loop sees them."""
        return drawing_of(reward_kernel().EXTERNAL, np.zeros(self.n_arms))

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
        return {"name": "Distributions", "distributions": described, "mean": plain(self.mean), "std": plain(self.std)}
