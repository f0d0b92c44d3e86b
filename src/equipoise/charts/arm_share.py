"""One arm's share over time: aimed at and given, on average over replications  [Sect. 5, Fig. 3 centre, Fig. 8]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.charts.drawing import (
    FEW_STEPS,
    altair,
    arm_names,
    band_areas,
    even_columns,
    labels,
    panels,
    pulls_axis,
    styled,
    titled,
)
from equipoise.charts.replications import QUANTILES, Band, band_of, band_words, chosen, finite, policy_names
from equipoise.charts.tracking import KINDS, kind_lines, log_share_axis
from equipoise.objective import optimal_allocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from equipoise.arrays import IntArray
    from equipoise.charts.drawing import AnyChart
    from equipoise.policies import Policy
    from equipoise.runs import Runs


@dataclass(frozen=True)
class ArmShareRecord:
    """The share of one arm over time; the bands' arrays are (n_policies, n_steps)."""

    arm: str
    reward_weight: float
    optimum: float
    policies: tuple[str, ...]
    step: IntArray
    target: Band
    frequency: Band
    quantiles: tuple[float, float]
    n_replications: int


def arm_share_record(
    runs: Runs,
    arm: int,
    *,
    reward_weight: float,
    policies: Sequence[Policy] | None = None,
    names: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    quantiles: tuple[float, float] = QUANTILES,
) -> ArmShareRecord:
    """Return target and frequency of an arm at every checkpoint, with its optimal share.

    Parameters
    ----------
    runs : Runs
    arm : int
        Place of the arm, from 0.
    reward_weight : float
    policies, names, quantiles
        As in `curves_record`.
    arms : sequence of str, optional
        Names of all arms; those of the runs by default, or "1", "2", ... if they have none.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> runs = eq.simulate(eq.ForcingBalance(reward_weight=0.5), arms, 1000, replications=20, seed=1)
    >>> record = arm_share_record(runs, 1, reward_weight=0.5)
    >>> record.arm, round(record.optimum, 4), record.frequency.mean[:, -1].round(2)
    ('2', 0.6885, array([0.69]))
    """
    shown = chosen(runs, policies)
    place = checks.whole_number("arm", arm, 0, runs.true_mean.size - 1)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    return ArmShareRecord(
        arm=arm_names(runs.arm_names if arms is None else arms, runs.true_mean.size)[place],
        reward_weight=weight,
        optimum=float(optimal_allocation(runs.true_mean, runs.true_std, reward_weight=weight)[place]),
        policies=policy_names(shown.policies, names),
        step=runs.checkpoints,
        target=band_of(shown.target[..., place], quantiles),
        frequency=band_of(shown.frequency[..., place], quantiles),
        quantiles=quantiles,
        n_replications=int(runs.replications.size),
    )


def arm_share_chart(record: ArmShareRecord, *, log_scale: bool = False) -> AnyChart:
    """Draw for each policy the share aimed at and the share given over time, against the optimum."""
    alt = altair()
    lowest = 0.0 if log_scale else -np.inf
    best = np.full_like(record.target.mean, record.optimum)
    nothing = np.full_like(best, np.nan)
    shares = (Band(best, nothing, nothing), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {
            "policy": name,
            "step": int(step),
            "kind": kind,
            "share": finite(share.mean[k, j], above=lowest),
            "low": finite(share.low[k, j], above=lowest),
            "high": finite(share.high[k, j], above=lowest),
        }
        for kind, share in zip(KINDS, shares, strict=True)
        for k, name in enumerate(record.policies)
        for j, step in enumerate(record.step)
    ]
    count = len(record.policies)
    columns = even_columns(count, most=3)
    width = {1: 520, 2: 300}.get(columns, 220)
    is_drawn = record.frequency.has_width or record.target.has_width
    axis = alt.Axis(format="~%", tickCount=6)
    drawn = [row[key] for row in rows for key in ("share", "low") if row[key]]
    y = log_share_axis(min(drawn, default=0.01)) if log_scale else alt.Y("share:Q", title="share of pulls", axis=axis)
    base = alt.Chart().encode(x=pulls_axis(record.step))
    lines = kind_lines(base, width=width * columns, tooltip=["policy:N"], points=record.step.size < FEW_STEPS).encode(
        y=y
    )
    areas = band_areas(base, "kind", KINDS, alt.Y("low:Q")) if is_drawn else []
    data = alt.Data(values=rows)
    picture = alt.layer(*areas, lines, data=data).properties(width=width, height=240)
    (name,) = labels((record.arm,))
    return styled(
        titled(
            panels(picture, "policy", record.policies, columns=columns),
            f"Share of {name} over time (reward weight {record.reward_weight:.4g})",
            band_words(record.n_replications, record.quantiles, mean="line", band="band", is_drawn=is_drawn),
        )
    )
