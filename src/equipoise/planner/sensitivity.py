"""Which guess matters: days and gain, regressed on the truths that the same simulated experiments drew."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from equipoise._types import FloatArray
from equipoise.planner.way_forecast import Readings

CLEAR = 3.0
"""An effect is shown if it is at least so many standard errors."""
SMALLEST_PART = 0.02
"""And if it explains this part of the variance that draws cause, or more."""
MOST_KNOWN = 0.8
"""Effects are read off only if the figure is known in this part of the experiments."""
_SPARE = 10
_ENDS = 2.563
"""Standard deviations of a normal distribution in the range that holds 8 in 10."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """What changes if a guess is off.

    Attributes
    ----------
    guess : str
        Its place in the plan, such as ``arms.prize.rate``.
    way : str
        Under which way.
    figure : {"days", "gain_per_100"}
    step : float
        By how much more than guessed: a round number near one standard deviation of what is believed.
    change : float
        Of the figure, for that step. Days are as if enrolment could go on until the goal.
    error : float
        Its standard error.
    explained : float
        Part of the variance of the figure over simulated experiments, all luck included.
    """

    guess: str
    way: str
    figure: str
    step: float
    change: float
    error: float
    explained: float


def effects_of(readings: Readings) -> tuple[Effect, ...]:
    """Return the effects that are clear, by the part of the variance that they explain."""
    drawn = {name: values for name, values in readings.paths.drawn.items() if np.ptp(values) > 0}
    n = readings.paths.n_replications
    if not drawn or n < len(drawn) + _SPARE:
        return ()
    values = np.stack(list(drawn.values()), axis=1)
    gain = 100.0 * readings.gain_at(readings.stop) / np.maximum(readings.assigned_at(readings.stop).sum(axis=-1), 1.0)
    found = []
    for way, name in enumerate(readings.question.ways):
        figures = {"gain_per_100": gain[way]}
        if readings.question.has_goal:
            figures["days"] = readings.days_if_longer[way]
        for figure, response in figures.items():
            if figure == "gain_per_100" and way == readings.question.equal_shares:
                continue
            known = np.isfinite(response)
            if known.mean() < MOST_KNOWN or known.sum() < len(drawn) + _SPARE or np.ptp(response[known]) == 0:
                continue
            slopes, errors, parts = regressed(values[known], response[known])
            for k, guess in enumerate(drawn):
                if abs(slopes[k]) < CLEAR * errors[k] or parts[k] < SMALLEST_PART:
                    continue
                step = _step(values[:, k])
                found.append(
                    Effect(
                        guess=guess,
                        way=name,
                        figure=figure,
                        step=step,
                        change=float(slopes[k] * step),
                        error=float(errors[k] * step),
                        explained=float(parts[k]),
                    )
                )
    return tuple(sorted(found, key=lambda effect: -effect.explained))


def regressed(values: FloatArray, response: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return slopes, their standard errors, and the part of the variance that each column explains.

    Standard errors allow for an unequal spread of the rest (HC1); columns are drawn independently, so their parts add.

    Examples
    --------
    >>> x = np.arange(20.0)[:, None]
    >>> slopes, errors, parts = regressed(x, 3 * x[:, 0] + 1)
    >>> slopes.round(6), bool(errors[0] < 1e-9), parts.round(6)
    (array([3.]), True, array([1.]))
    """
    n, k = values.shape
    centred = values - values.mean(axis=0)
    scale = centred.std(axis=0)
    design = centred / scale
    own = response - response.mean()
    slopes, *_ = np.linalg.lstsq(design, own, rcond=None)
    rest = own - design @ slopes
    inverse = np.linalg.pinv(design.T @ design)
    meat = design.T @ (design * rest[:, None] ** 2)
    errors = np.sqrt(np.clip(np.diag(inverse @ meat @ inverse), 0.0, None) * n / max(n - k - 1, 1))
    return slopes / scale, errors / scale, np.minimum(slopes**2 / max(float(own.var()), 1e-300), 1.0)


def _step(values: FloatArray) -> float:
    """Return a round number near one standard deviation of what is believed, by the range that holds 8 in 10."""
    low, high = np.quantile(values, [0.1, 0.9])
    spread = float(high - low) / _ENDS or float(values.std())
    return float(f"{spread:.0e}") if math.isfinite(spread) and spread > 0 else 1.0
