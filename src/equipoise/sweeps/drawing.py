"""The policies of a sweep as curves over time: regret at the weights that its table has, or reward without one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.sweeps.summaries import weights_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.charts import CurvesRecord
    from equipoise.runs import Runs


def sweep_curves(results: Sequence[Runs], *, report_weight: float | None = None) -> CurvesRecord:
    """Return the rescaled regret of each policy over the longest horizon, or the reward if no weight is known.

    Examples
    --------
    >>> import equipoise as eq
    >>> policies = [eq.ForcingBalance(reward_weight=w) for w in (0.5, 0.9)] + [eq.Uniform()]
    >>> runs = eq.simulate(policies, eq.Gaussian(mean=[1, 2], std=[1, 1]), 100, 2)
    >>> sweep_curves([runs]).policies
    ('ForcingBalance, reward weight 0.5', 'ForcingBalance, reward weight 0.9', 'Uniform, at 0.5', 'Uniform, at 0.9')
    """
    from equipoise.charts import Band, curves_record

    runs = max(results, key=lambda runs: runs.horizon)
    pairs = [
        (k, weight)
        for k, policy in enumerate(runs.policies)
        for weight in weights_of(policy, runs.policies, report_weight)
    ]
    if any(weight is None for _, weight in pairs):
        return curves_record(runs, "reward")
    weights = sorted({weight for _, weight in pairs if weight is not None})
    records = {weight: curves_record(runs, reward_weight=weight) for weight in weights}
    first = records[weights[0]]
    if len(weights) == 1:
        return first
    names = first.policies
    bands: dict[str, Any] = {
        name: np.array([getattr(records[weight].value, name)[k] for k, weight in pairs if weight is not None])
        for name in ("mean", "low", "high")
    }
    return dataclasses.replace(
        first,
        reward_weight=None,  # each has its own, which is in its name
        policies=tuple(
            names[k] if "reward weight" in names[k] else f"{names[k]}, at {weight:g}" for k, weight in pairs
        ),
        value=Band(**bands),
    )
