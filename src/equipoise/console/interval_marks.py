"""Place arms' means and intervals on one axis, for the marks that the server draws in the rows of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 240
"""Width of a mark in the units of its drawing."""
_EDGE = 8.0


@dataclass(frozen=True)
class IntervalMark:
    """Where a mean and the ends of its interval lie, from 0 to `WIDTH`; an end that is open lies at the edge."""

    low: float
    middle: float
    high: float
    has_interval: bool


@dataclass(frozen=True)
class Axis:
    """An axis that all marks of a table share: round ticks, with their places."""

    ticks: tuple[tuple[float, str], ...]
    first: float
    last: float

    def place(self, value: float) -> float:
        """Return where a value lies, from 0 to `WIDTH`."""
        inside = (value - self.first) / (self.last - self.first)
        return round(_EDGE + (WIDTH - 2 * _EDGE) * min(1.0, max(0.0, inside)), 1)

    def mark(self, mean: float | None, low: float | None, high: float | None) -> IntervalMark | None:
        """Return the mark of a mean; None without a mean."""
        if mean is None:
            return None
        known = low is not None or high is not None
        return IntervalMark(
            self.place(low) if low is not None else 0.0 if known else self.place(mean),
            self.place(mean),
            self.place(high) if high is not None else float(WIDTH) if known else self.place(mean),
            known,
        )


def axis_of(values: Sequence[float]) -> Axis | None:
    """Return an axis on which all values fit, with some four round ticks; None without values.

    Examples
    --------
    >>> axis = axis_of([0.31, 0.56])
    >>> [text for _, text in axis.ticks]
    ['0.3', '0.4', '0.5', '0.6']
    >>> axis.mark(0.5, 0.44, 0.56).middle > axis.place(0.44)
    True
    """
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    spread = (high - low) or abs(high) or 1.0
    step = _round_step(spread / 3)
    first, last = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if first == last:
        last = first + step
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    axis = Axis((), first, last)
    n_steps = round((last - first) / step)
    values = [first + k * step for k in range(n_steps + 1)]
    ticks = tuple((axis.place(value), _text(value, decimals)) for value in values)
    return Axis(ticks, first, last)


def _round_step(size: float) -> float:
    """Return 1, 2 or 5 times a power of ten, at least this size."""
    power = 10.0 ** math.floor(math.log10(size))
    return next(float(times * power) for times in (1, 2, 5, 10) if times * power >= size * (1 - 1e-9))


def _text(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}" if abs(value) < 1e9 else f"{value:.3g}"
    return "0" if float(text.replace(",", "")) == 0 else text.replace("-", "\u2212")
