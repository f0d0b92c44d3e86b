"""A run over time: the share of each arm aimed at and given, against the best  [Sect. 5, Fig. 3 centre]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.charts.drawing import (
    BLUE,
    FEW_STEPS,
    VERMILION,
    altair,
    labels,
    legend,
    log_ticks,
    panels,
    pulls_axis,
    styled,
    titled,
)

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray
    from equipoise.charts.drawing import AnyChart

KINDS = {
    "best, if means and spreads were known": "black",
    "aimed at, from the estimates": VERMILION,
    "given so far": BLUE,
}
"""Three kinds of share of an arm, as a picture calls them, with their colours."""


@dataclass(frozen=True)
class TrackingRecord:
    """A run looked at now and then: what each arm's share should be, is aimed at, and is."""

    arms: tuple[str, ...]
    step: IntArray
    target: FloatArray
    frequency: FloatArray
    optimum: FloatArray
    reward_weight: float


def tracking_chart(record: TrackingRecord) -> AnyChart:
    """Draw for each arm the share aimed at and the share given over time, against the optimum."""
    alt = altair()
    names = labels(record.arms)
    shares = (np.broadcast_to(record.optimum, record.target.shape), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {"arm": name, "step": int(step), "kind": kind, "share": float(share)}
        for kind, by_arm in zip(KINDS, shares, strict=True)
        for place, name in enumerate(names)
        for step, share in zip(record.step, by_arm[:, place], strict=True)
        if share > 0  # there is no 0 on a logarithmic axis; NaN is the time before there is a target
    ]
    lines = kind_lines(
        alt.Chart(alt.Data(values=rows)), width=750, tooltip=["arm:N"], points=record.step.size < FEW_STEPS
    ).encode(x=pulls_axis(record.step), y=log_share_axis(min(row["share"] for row in rows)))
    return styled(
        titled(
            panels(lines.properties(width=150, height=190), "arm", names, columns=5),
            f"Shares over time, beside the best ones (reward weight {record.reward_weight:.4g})",
            "Nothing was known of the arms in the beginning; both axes are logarithmic",
        )
    )


def kind_lines(chart: Any, *, width: float, tooltip: list[Any], points: bool) -> Any:
    """Return a line for each of the three kinds of share; x and y are still to be given."""
    alt = altair()
    kinds = list(KINDS)
    colours = alt.Scale(domain=kinds, range=list(KINDS.values()))
    times_and_shares = [alt.Tooltip("step:Q", format=","), alt.Tooltip("share:Q", format=".4~g")]
    return chart.mark_line(point=points).encode(
        color=alt.Color("kind:N", legend=legend(kinds, width), scale=colours),
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=[[2, 2], [6, 3], [1, 0]])),
        strokeWidth=alt.StrokeWidth("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[1.2, 1.6, 2.4])),
        tooltip=[*tooltip, "kind:N", *times_and_shares],
    )


def log_share_axis(smallest: float) -> Any:
    """Return a logarithmic y axis of shares, from the smallest drawn up to 100%."""
    alt = altair()
    return alt.Y(
        "share:Q",
        title="share of pulls",
        scale=alt.Scale(type="log", nice=False, domainMax=1),
        axis=alt.Axis(values=log_ticks(smallest, 1), format="~%"),
    )
