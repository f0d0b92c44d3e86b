"""Draw an arm's share over time: target and frequency against the optimum  [Sect. 5, Fig. 3 centre, Fig. 8]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.charts import bands, style
from equipoise.objective import optimal_allocation

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.policies import Policy
    from equipoise.simulation.runs import Runs


@dataclass(frozen=True)
class ArmShareRecord:
    """The share of one arm over time; the bands' arrays are (n_policies, n_steps)."""

    arm: str
    reward_weight: float
    optimum: float
    policies: tuple[str, ...]
    step: IntArray
    target: bands.Band
    frequency: bands.Band
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
    quantiles: tuple[float, float] = bands.QUANTILES,
) -> ArmShareRecord:
    """Return target and frequency of an arm at every checkpoint, with its optimal share.

    Parameters
    ----------
    runs : Runs
    arm : int
        Index of the arm, from 0.
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
    shown = runs.select(policies=policies)
    place = checks.whole_number("arm", arm, 0, runs.true_mean.size - 1)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    return ArmShareRecord(
        arm=style.arm_names(runs.arm_names if arms is None else arms, runs.true_mean.size)[place],
        reward_weight=weight,
        optimum=float(optimal_allocation(runs.true_mean, runs.true_std, reward_weight=weight)[place]),
        policies=style.policy_names(shown.policies, names),
        step=runs.checkpoints,
        target=bands.band_of(shown.target[..., place], quantiles),
        frequency=bands.band_of(shown.frequency[..., place], quantiles),
        quantiles=quantiles,
        n_replications=int(runs.replications.size),
    )


def arm_share_chart(record: ArmShareRecord, *, log_scale: bool = False) -> AnyChart:
    """Draw for each policy an arm's target and frequency over time, against the optimum."""
    alt = style.altair()
    lowest = 0.0 if log_scale else -np.inf
    best = np.full_like(record.target.mean, record.optimum)
    nothing = np.full_like(best, np.nan)
    shares = (bands.Band(best, nothing, nothing), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {
            "policy": name,
            "step": int(step),
            "kind": kind,
            "share": bands.finite(share.mean[k, j], above=lowest),
            "low": bands.finite(share.low[k, j], above=lowest),
            "high": bands.finite(share.high[k, j], above=lowest),
        }
        for kind, share in zip(KINDS, shares, strict=True)
        for k, name in enumerate(record.policies)
        for j, step in enumerate(record.step)
    ]
    count = len(record.policies)
    columns = style.even_columns(count, most=3)
    width = {1: 520, 2: 300}.get(columns, 220)
    is_drawn = record.frequency.has_width or record.target.has_width
    axis = alt.Axis(format="~%", tickCount=6)
    drawn = [row[key] for row in rows for key in ("share", "low") if row[key]]
    y = log_share_axis(min(drawn, default=0.01)) if log_scale else alt.Y("share:Q", title="share of pulls", axis=axis)
    base = alt.Chart().encode(x=style.pulls_axis(record.step))
    lines = kind_lines(
        base, width=width * columns, tooltip=["policy:N"], points=record.step.size < style.FEW_STEPS
    ).encode(y=y)
    areas = bands.band_areas(base, "kind", KINDS, alt.Y("low:Q")) if is_drawn else []
    data = alt.Data(values=rows)
    picture = alt.layer(*areas, lines, data=data).properties(width=width, height=240)
    (name,) = style.labels((record.arm,))
    return style.styled(
        style.titled(
            style.panels(picture, "policy", record.policies, columns=columns),
            f"Share of {name} over time (reward weight {record.reward_weight:.4g})",
            bands.band_words(record.n_replications, record.quantiles, mean="line", band="band", is_drawn=is_drawn),
        )
    )


KINDS = {
    "best, if means and spreads were known": "black",
    "aimed at, from the estimates": style.VERMILION,
    "given so far": style.BLUE,
}
"""Three kinds of share of an arm, by their names in a picture, with their colours."""


@dataclass(frozen=True)
class TrackingRecord:
    """A run at some of its steps: each arm's optimal share, target and frequency."""

    arms: tuple[str, ...]
    step: IntArray
    target: FloatArray
    frequency: FloatArray
    optimum: FloatArray
    reward_weight: float


def tracking_chart(record: TrackingRecord) -> AnyChart:
    """Draw for each arm its target and frequency over time, against the optimum."""
    alt = style.altair()
    names = style.labels(record.arms)
    shares = (np.broadcast_to(record.optimum, record.target.shape), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {"arm": name, "step": int(step), "kind": kind, "share": float(share)}
        for kind, by_arm in zip(KINDS, shares, strict=True)
        for place, name in enumerate(names)
        for step, share in zip(record.step, by_arm[:, place], strict=True)
        if share > 0  # a logarithmic axis has no 0; NaN means no target yet
    ]
    lines = kind_lines(
        alt.Chart(alt.Data(values=rows)), width=750, tooltip=["arm:N"], points=record.step.size < style.FEW_STEPS
    ).encode(x=style.pulls_axis(record.step), y=log_share_axis(min(row["share"] for row in rows)))
    return style.styled(
        style.titled(
            style.panels(lines.properties(width=150, height=190), "arm", names, columns=5),
            f"Shares over time, beside the best ones (reward weight {record.reward_weight:.4g})",
            "Nothing was known of the arms in the beginning; both axes are logarithmic",
        )
    )


def kind_lines(chart: Any, *, width: float, tooltip: list[Any], points: bool) -> Any:
    """Return a line for each of the three kinds of share; the caller sets x and y."""
    alt = style.altair()
    kinds = list(KINDS)
    colours = alt.Scale(domain=kinds, range=list(KINDS.values()))
    times_and_shares = [alt.Tooltip("step:Q", format=","), alt.Tooltip("share:Q", format=".4~g")]
    return chart.mark_line(point=points).encode(
        color=alt.Color("kind:N", legend=style.legend(kinds, width), scale=colours),
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=[[2, 2], [6, 3], [1, 0]])),
        strokeWidth=alt.StrokeWidth("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[1.2, 1.6, 2.4])),
        tooltip=[*tooltip, "kind:N", *times_and_shares],
    )


def log_share_axis(smallest: float) -> Any:
    """Return a logarithmic y axis of shares, from the smallest drawn up to 100%."""
    alt = style.altair()
    return alt.Y(
        "share:Q",
        title="share of pulls",
        scale=alt.Scale(type="log", nice=False, domainMax=1),
        axis=alt.Axis(values=style.log_ticks(smallest, 1), format="~%"),
    )
