"""A chart of the educational table: its rows in the plane of error and reward, ours and the printed ones  [Fig. 6]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.charts.drawing import LINES, SHAPES, altair, legend, styled, taken_in_turn, titled
from equipoise.goals import frontier
from equipoise.paper.educational_rows import BASELINES, FORCING_BALANCE, HORIZON, OPTIMUM, ROWS, WEIGHTS, printed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from equipoise.charts.drawing import AnyChart
    from equipoise.paper.educational_runs import EducationalRuns

PAPER = "paper"
CORNER = ((5.852, 5.866), (0.916, 0.921))
"""Errors and rewards of the crowded corner, which has a panel of its own."""


def plane_chart(table: EducationalRuns) -> AnyChart:
    """Draw the frontier of the optimum with the rows of the table: ours filled, the paper's open."""
    alt = altair()
    rows = [_row(table, source, row, weight) for source in (table.name, PAPER) for row, weight in _drawn()]
    # Even in log(1 - weight), which spreads the points over the curve.
    best = frontier(table.arms.mean, table.arms.std, reward_weights=1 - np.geomspace(1, 0.005, 200))
    curve = [
        {"error": float(error / table.arms.std.max()), "reward": float(reward / table.arms.mean.max()), "order": k}
        for k, (error, reward) in enumerate(zip(best.error, best.reward, strict=True))
    ]
    names = list(dict.fromkeys(str(row["policy"]) for row in rows))

    def panel(title: str, width: int, x_range: tuple[float, float], y_range: tuple[float, float]) -> Any:
        x = alt.X(
            "error:Q",
            title="error / largest std",
            scale=alt.Scale(domain=x_range, nice=False),
            axis=alt.Axis(tickCount=5),
        )
        y = alt.Y(
            "reward:Q",
            title="reward / largest mean",
            scale=alt.Scale(domain=y_range, nice=False),
            axis=alt.Axis(tickCount=6, format=".3f"),
        )
        key = legend(names, 800, points=True)
        # What lies far outside the panel is not seen, but makes drawing slow.
        seen = [row for row in rows if _is_in(row, x_range, y_range)]
        near = [
            curve[k]
            for k in range(len(curve))
            if any(_is_in(p, x_range, y_range) for p in curve[max(k - 1, 0) : k + 2])
        ]
        line = alt.Chart(alt.Data(values=near)).mark_line(color="black", clip=True).encode(x=x, y=y, order="order:Q")
        shapes = alt.Scale(domain=names, range=taken_in_turn(SHAPES, len(names)))
        colours = alt.Scale(domain=names, range=taken_in_turn(LINES, len(names)))
        marks = (
            alt.Chart(alt.Data(values=seen))
            .mark_point(clip=True, size=110, strokeWidth=2, opacity=1)
            .encode(
                x=x,
                y=y,
                shape=alt.Shape("policy:N", scale=shapes, legend=key),
                color=alt.Color("policy:N", scale=colours, legend=key),
                fillOpacity=alt.FillOpacity(
                    "source:N", scale=alt.Scale(domain=[table.name, PAPER], range=[1, 0]), legend=None
                ),
                fill=alt.Fill("policy:N", scale=colours, legend=None),
                tooltip=["policy:N", "source:N", *(alt.Tooltip(f"{c}:Q", format=".4f") for c in ("error", "reward"))],
            )
        )
        weights = (
            alt.Chart(alt.Data(values=[row for row in seen if row["policy"] == OPTIMUM and row["source"] != PAPER]))
            .mark_text(clip=True, align="right", dx=-10, dy=-6)
            .encode(x=x, y=y, text="weight:N")
        )
        return alt.layer(line, marks, weights).properties(width=width, height=330, title=alt.Title(title, fontSize=13))

    most = max(float(row["error"]) for row in rows)
    parts = [
        panel("All policies", 400, (5.2, 1.04 * most), (0.91, 0.98)),
        panel("The lower left corner, enlarged", 300, *CORNER),
    ]
    return styled(
        titled(
            alt.hconcat(*parts, spacing=36),
            "UCB buys reward with error, GAFS and Uniform the reverse; ForcingBalance stays near the best",
            [
                f"filled marks: on the {table.name}, means of {table.runs.replications.size} runs of {HORIZON:,} "
                "pulls; open marks: as printed in the paper",
                f"black curve: the best that can be had on the {table.name}; numbers on it: w",
            ],
        )
    )


def _drawn() -> list[tuple[str, float]]:
    """Return the rows to draw: those that do not depend on the weight once."""
    return [(row, weight) for row in ROWS for weight in WEIGHTS if row not in BASELINES or weight == WEIGHTS[0]]


def _row(table: EducationalRuns, source: str, row: str, weight: float) -> dict[str, Any]:
    def entry(column: str) -> float:
        return printed(row, column, weight).value if source == PAPER else table.mean(row, column, weight)

    name = f"{row}, w = {weight:g}" if row == FORCING_BALANCE else row
    return {
        "policy": name,
        "source": source,
        "weight": f"{weight:g}",
        "error": entry("error"),
        "reward": entry("reward"),
    }


def _is_in(point: Mapping[str, Any], errors: tuple[float, float], rewards: tuple[float, float]) -> bool:
    inside = errors[0] <= point["error"] <= errors[1] and rewards[0] <= point["reward"] <= rewards[1]
    return bool(inside)
