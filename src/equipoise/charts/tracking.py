"""A run over time: the share of each arm aimed at and given, against the best  [Sect. 5, Fig. 3 centre]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise.charts.drawing import BLUE, VERMILION, altair, labels, styled, titled

if TYPE_CHECKING:
    from equipoise.arrays import FloatArray, IntArray
    from equipoise.charts.drawing import AnyChart


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
    kinds = {
        "best, if means and spreads were known": np.broadcast_to(record.optimum, record.target.shape),
        "aimed at, from the estimates": record.target,
        "given so far": record.frequency,
    }
    rows = [
        {"arm": name, "step": int(step), "kind": kind, "share": float(share)}
        for kind, shares in kinds.items()
        for place, name in enumerate(names)
        for step, share in zip(record.step, shares[:, place], strict=True)
        if share > 0  # there is no 0 on a logarithmic axis; NaN is the time before there is a target
    ]
    times = [float(record.step.min()), float(max(record.step.max(), 10))]
    powers = [10**k for k in range(19) if times[0] <= 10**k <= times[1]]
    x = alt.X(
        "step:Q",
        title="pulls so far",
        scale=alt.Scale(type="log", domain=times, nice=False),
        axis=alt.Axis(values=powers, format="~s"),
    )
    y = alt.Y(
        "share:Q",
        title="share of pulls",
        scale=alt.Scale(type="log", nice=False, domainMax=1),
        axis=alt.Axis(values=[10.0**-k for k in range(10)], format="~%"),
    )
    legend = alt.Legend(title=None, orient="top", labelLimit=300, symbolSize=500, columnPadding=24)
    domain = list(kinds)
    lines = (
        alt.Chart(alt.Data(values=rows))
        .mark_line()
        .encode(
            x=x,
            y=y,
            color=alt.Color("kind:N", legend=legend, scale=alt.Scale(domain=domain, range=["black", VERMILION, BLUE])),
            strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=domain, range=[[2, 2], [6, 3], [1, 0]])),
            strokeWidth=alt.StrokeWidth("kind:N", legend=None, scale=alt.Scale(domain=domain, range=[1.2, 1.6, 2.4])),
            tooltip=["arm:N", "kind:N", alt.Tooltip("step:Q", format=","), alt.Tooltip("share:Q", format=".4~g")],
        )
        .properties(width=150, height=190)
    )
    panels = lines.facet(facet=alt.Facet("arm:N", title=None, sort=list(names)), columns=5)
    return styled(
        titled(
            panels,
            f"ForcingBalance finds the best shares while it plays (reward weight {record.reward_weight:.4g})",
            "It starts without knowing anything of the arms; both axes are logarithmic",
        )
    )
