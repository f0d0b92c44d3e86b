"""Compute, describe and draw the mean and quantile band of a quantity over replications."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise import metrics
from equipoise._types import FloatArray
from equipoise.charts.style import altair
from equipoise.errors import InvalidInput

QUANTILES = (0.05, 0.95)


@dataclass(frozen=True)
class Band:
    """A quantity over replications: its mean, and a lower and an upper quantile."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def has_width(self) -> bool:
        """Whether there is a band to draw; with one replication there is not."""
        return bool((self.high > self.low).any())


def band_of(values: FloatArray, quantiles: Sequence[float]) -> Band:
    """Return mean and quantiles over the second axis; not finite where a replication's value is not."""
    if len(quantiles) != 2 or not quantiles[0] <= quantiles[1]:
        raise InvalidInput(f"quantiles must be a lower and an upper one, such as {QUANTILES}; got {quantiles!r}")
    summary = metrics.summarise(values, quantiles=quantiles)
    return Band(summary.mean, summary.quantiles[0], summary.quantiles[1])


def band_words(count: int, quantiles: tuple[float, float], *, mean: str, band: str, is_drawn: bool) -> str:
    """Return a subtitle that describes the line and the band.

    Examples
    --------
    >>> band_words(200, (0.05, 0.95), mean="line", band="band", is_drawn=True)
    'line: mean of 200 replications; band: from the 5% to the 95% quantile'
    """
    if count == 1:
        return f"{mean}: one replication"
    words = f"{mean}: mean of {count:,} replications"
    return (
        f"{words}; {band}: from the {100 * quantiles[0]:g}% to the {100 * quantiles[1]:g}% quantile"
        if is_drawn
        else words
    )


def band_areas(chart: Any, field: str, colours: dict[str, str], y: Any) -> list[Any]:
    """Return one layer per value of a field, in its colour: the area between low and high.

    A single layer with a colour scale would be shorter, but its legend would merge with that of the lines and lose the
    dashes.
    """
    only = altair().FieldEqualPredicate
    return [
        chart.transform_filter(only(field=field, equal=name))
        .mark_area(opacity=0.18, color=colour)
        .encode(y=y, y2="high:Q")
        for name, colour in colours.items()
    ]


def finite(value: float, *, above: float = -np.inf) -> float | None:
    """Return a number for a chart; None, which leaves a gap, if it is not finite or not above a bound."""
    number = float(value)
    return number if np.isfinite(number) and number > above else None
