"""Make an experiment from a forecast: the way that was chosen, and the bands that it is compared with later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._types import FloatArray
from equipoise.errors import InvalidInput, UnknownName
from equipoise.experiment import Experiment
from equipoise.experiment.fidelity import (
    ARM_MEAN,
    ARM_SHARE,
    AVERAGE,
    BEST_SHARE,
    MISSING,
    PEOPLE,
    PLAN,
    REWARDS,
    WIDEST,
)
from equipoise.experiment.names import LONGEST_NAME
from equipoise.planner.figures import bands_of
from equipoise.planner.first_passages import half_widths
from equipoise.planner.question import SECONDS_A_DAY
from equipoise.planner.recommendation import chosen_way

if TYPE_CHECKING:
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.paths import Paths
    from equipoise.planner.plan import Plan
    from equipoise.store import Store

MOST_DAYS = 16
"""Bands are kept for this many days, evenly spread: metadata is small, and between them they are nearly straight."""
MOST_ARMS = 20
"""Of more arms than this, bands of single arms are not kept."""
_DIGITS = 5


def create_experiment(
    forecast: Forecast, store: Store | str, name: str, *, way: str | None = None, **settings: Any
) -> Experiment:
    """Create the experiment that a forecast is about, and keep with it what was planned.

    Parameters
    ----------
    forecast : Forecast
        Of simulations; one by formula has no bands.
    store, name : Store or str, and str
        As in `Experiment.create`.
    way : str, optional
        Which way to assign people; the one that the forecast recommends by default.
    **settings
        More arguments of `Experiment.create`, such as `seed` or `metadata`.
    """
    _, settings = creation_settings(forecast, way, settings)
    return Experiment.create(store, name, **settings)


def creation_settings(
    forecast: Forecast, way: str | None, more: Mapping[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    """Return the way that is taken, and the arguments of `Experiment.create`."""
    chosen = way or _recommended(forecast)
    if chosen not in forecast.ways:
        raise UnknownName(f"way must be one of {', '.join(map(repr, forecast.ways))}; got {chosen!r}")
    given = dict(more or {})
    metadata = dict(given.pop("metadata", None) or {})
    plan, metadata[PLAN] = _plan_of(forecast)[0], planned_bands(forecast, chosen)
    texts = {"title": plan.title, "outcome": plan.outcome}
    words = {name: text.strip()[:LONGEST_NAME] for name, text in texts.items() if text is not None}
    description = words | dict(given.pop("description", None) or {})
    return chosen, plan.settings(chosen) | given | {"description": description, "metadata": metadata}


def _plan_of(forecast: Forecast) -> tuple[Plan, Paths]:
    if forecast.plan is None or forecast.paths is None:
        raise InvalidInput("an experiment is made from a forecast of simulations; this one is by formula")
    return forecast.plan, forecast.paths


def _recommended(forecast: Forecast) -> str:
    found = chosen_way(forecast)
    if found is None:
        raise InvalidInput(
            "no way meets the goal by the deadline, so none is recommended",
            hint=f"say which way to take all the same: one of {', '.join(map(repr, forecast.ways))}",
        )
    return found.name


def planned_bands(forecast: Forecast, way: str) -> dict[str, Any]:
    """Return what an experiment keeps of its plan: its digest and inputs, the way, and the bands by day."""
    plan, paths = _plan_of(forecast)
    place = forecast.question.ways.index(way)
    timed = np.flatnonzero(np.isfinite(paths.look_seconds))
    timed = timed[np.unique(np.linspace(0, timed.size - 1, min(MOST_DAYS, timed.size)).round().astype(int))]
    names = {(figure, arm): values for figure, arm, values in _figures(forecast, paths, place, timed)}
    bands = []
    for (figure, arm), values in names.items():
        at_first = 0.0 if figure in (PEOPLE, REWARDS) else None
        ends = dict(zip(("low", "middle", "high"), bands_of(values), strict=True))
        band: dict[str, Any] = {"figure": figure} | {name: [at_first, *_plain(end)] for name, end in ends.items()}
        bands.append(band if arm is None else band | {"arm": arm})
    start = plan.people.start
    return {
        "digest": plan.digest,
        "way": way,
        "start": None if start is None else start.isoformat(),
        "replications": paths.n_replications,
        "days": [0.0, *_plain(paths.look_seconds[timed] / SECONDS_A_DAY)],
        "bands": bands,
        "inputs": plan.to_dict(),
    }


def _figures(
    forecast: Forecast, paths: Paths, way: int, timed: np.ndarray[Any, Any]
) -> list[tuple[str, str | None, FloatArray]]:
    """Return each figure with its values (replications, days), as `experiment.fidelity.measured` reads a status."""
    assigned = paths.assigned[way][:, timed].astype(np.float64)
    counted = paths.counted[way][:, timed].astype(np.float64)
    missing = paths.missing[way][:, timed].sum(axis=-1)
    estimate = paths.estimate[way][:, timed]
    people, rewards = assigned.sum(axis=-1), counted.sum(axis=-1)
    sign = forecast.question.sign
    known = np.isfinite(estimate)
    leader = np.argmax(np.where(known, sign * estimate, -np.inf), axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = assigned / people[..., None]
        leading = np.take_along_axis(share, leader[..., None], axis=-1)[..., 0]
        average = np.where(counted > 0, counted * np.nan_to_num(estimate), 0.0).sum(axis=-1) / rewards
        gone = missing / people
    leading[~known.any(axis=-1)] = np.nan
    width = half_widths(paths)[way][:, timed].max(axis=-1)
    found: list[tuple[str, str | None, FloatArray]] = [
        (PEOPLE, None, people),
        (REWARDS, None, rewards),
        (MISSING, None, gone),
        (WIDEST, None, width),
        (BEST_SHARE, None, leading),
        (AVERAGE, None, average),
    ]
    if len(forecast.question.arms) <= MOST_ARMS:
        for k, arm in enumerate(forecast.question.arms):
            found += [(ARM_SHARE, arm, share[..., k]), (ARM_MEAN, arm, estimate[..., k])]
    return found


def _plain(values: FloatArray) -> list[float | None]:
    return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]
