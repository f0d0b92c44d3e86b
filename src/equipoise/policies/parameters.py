"""What the parameters that several policies share may be, by their names."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.stats import LARGEST_REWARD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TRACKINGS = ("difference", "ratio", "sample", "windowed")
"""Ways to turn a target into a pull, in the order of their codes in the kernel."""


def checked(policy: Any, *names: str) -> dict[str, Any]:
    """Return parameters of a policy as it keeps them, or say what was expected.

    Examples
    --------
    >>> from equipoise.policies import GAFS
    >>> checked(GAFS(forcing=2), "forcing")
    {'forcing': 2.0}
    """
    return {name: _CHECKS[name](name, getattr(policy, name)) for name in names}


def _floor(name: str, floor: float | Sequence[float]) -> float | tuple[float, ...]:
    if np.ndim(floor) == 0:
        return checks.number_between(name, floor, 0, 1)
    shares = checks.non_negative(name, floor)
    return tuple(checks.floors(shares, shares.size).tolist())


def _number(low: float, high: float, *, open_low: bool = False) -> Callable[[str, Any], float]:
    return lambda name, value: checks.number_between(name, value, low, high, open_low=open_low)


_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "draws": lambda name, value: checks.whole_number(name, value, 1, 1_000_000),
    "failure_probability": _number(0, 1, open_low=True),
    "floor": _floor,
    "forcing": _number(0, math.inf),
    "mixing": _number(0, 1),
    "reward_weight": _number(0, 1),
    "scale": _number(0, LARGEST_REWARD),
    "smallest_std": _number(0, LARGEST_REWARD),
    "tracking": lambda name, value: checks.one_of(name, value, TRACKINGS),
    "window": _number(1, math.inf),
}
