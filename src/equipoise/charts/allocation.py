"""The best allocation as bars, beside the means and spreads that explain it  [Sect. 2, Fig. 4]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise import checks
from equipoise.charts.drawing import BLUE, GREY, VERMILION, altair, arm_names, styled, titled
from equipoise.objective import error, optimal_allocation, optimal_pulls, reward, tradeoff

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray
    from equipoise.charts.drawing import AnyChart

MOST_BARS = 80
"""Arms that are shown; of more, those with the largest shares."""


@dataclass(frozen=True)
class AllocationRecord:
    """The best allocation for some arms and what it is worth."""

    arms: tuple[str, ...]
    mean: FloatArray
    std: FloatArray
    share: FloatArray
    reward_weight: float
    reward: float
    error: float
    tradeoff: float
    horizon: int | None = None
    pulls: IntArray | None = None
    error_at_horizon: float | None = None
    """Average root-mean-square error of the arms' means after the whole-number pulls."""


def allocation_record(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float,
    floor: ArrayLike = 0.0,
    horizon: int | None = None,
    arms: Sequence[str] | None = None,
) -> AllocationRecord:
    """Return the optimal allocation with all that the chart and the command show of it.

    Parameters
    ----------
    mean, std, reward_weight, floor
        As in `equipoise.optimal_allocation`.
    horizon : int, optional
        Number of pulls to divide into whole numbers.
    arms : sequence of str, optional
        Names of the arms; "1", "2", ... by default.

    Examples
    --------
    >>> record = allocation_record([1, 2], [1, 1], reward_weight=0.5, horizon=100)
    >>> record.arms, record.pulls, round(record.error_at_horizon, 4)
    (('1', '2'), array([31, 69]), 0.15)
    """
    means, stds = checks.means_and_stds(mean, std)
    share = optimal_allocation(means, stds, reward_weight=reward_weight, floor=floor)
    pulls = error_at_horizon = None
    if horizon is not None:
        pulls = optimal_pulls(means, stds, horizon=horizon, reward_weight=reward_weight, floor=floor)
        error_at_horizon = error(pulls / horizon, stds) / math.sqrt(horizon)
    return AllocationRecord(
        arms=arm_names(arms, means.size),
        mean=means,
        std=stds,
        share=share,
        reward_weight=float(reward_weight),
        reward=reward(share, means),
        error=error(share, stds),
        tradeoff=tradeoff(share, means, stds, reward_weight=reward_weight),
        horizon=horizon,
        pulls=pulls,
        error_at_horizon=error_at_horizon,
    )


def allocation_chart(record: AllocationRecord) -> AnyChart:
    """Draw the shares as bars, largest first, beside the means and spreads that explain them."""
    alt = altair()
    largest_first = np.argsort(-record.share, kind="stable")[:MOST_BARS].tolist()
    # Three digits of the largest share.
    decimals = max(1, 2 - math.floor(math.log10(100 * record.share.max())))
    rows = [
        {
            "arm": record.arms[i],
            "mean": float(record.mean[i]),
            "std": float(record.std[i]),
            "low": float(record.mean[i] - record.std[i]),
            "high": float(record.mean[i] + record.std[i]),
            "share": float(record.share[i]),
            "percent": f"{record.share[i]:.{decimals}%}",
            "pulls": None if record.pulls is None else int(record.pulls[i]),
        }
        for i in largest_first
    ]
    tooltip = [alt.Tooltip("arm:N"), *(alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("mean", "std", "share"))]
    if record.pulls is not None:
        tooltip.append(alt.Tooltip("pulls:Q", format=","))
    base = alt.Chart(alt.Data(values=rows)).encode(tooltip=tooltip)
    height = alt.Step(24 if len(rows) <= 12 else 14)

    order = [row["arm"] for row in rows]
    arm_axis = alt.Axis(
        labelLimit=180, ticks=False, labelPadding=6, titleAngle=0, titleAlign="right", titleY=-8, titleX=-6
    )
    arm = alt.Y("arm:N", sort=order, title="arm", axis=arm_axis)
    share = alt.X("share:Q", title="share of pulls", axis=alt.Axis(format="%", tickCount=5))
    bars = base.mark_bar(color=BLUE).encode(y=arm, x=share)
    percent = base.mark_text(align="left", dx=4, color="black").encode(y=arm, x=share, text="percent:N")

    same_arm = alt.Y("arm:N", sort=order, title=None, axis=None)
    range_title = "mean reward, and one standard deviation each way"
    low = alt.X("low:Q", title=range_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    spread = base.mark_rule(color=GREY, strokeWidth=2).encode(y=same_arm, x=low, x2="high:Q")
    mean = base.mark_point(color=VERMILION, filled=True, opacity=1, size=45).encode(y=same_arm, x="mean:Q")

    left_out = len(record.arms) - len(rows)
    worth = f"reward {record.reward:.4g}, error {record.error:.4g}"
    return styled(
        titled(
            alt.hconcat(
                (bars + percent).properties(width=340, height=height), (spread + mean).properties(height=height)
            ),
            f"Where the pulls go at reward weight {record.reward_weight:.4g}",
            f"{worth}; the {len(rows)} largest shares, {left_out} more arms not shown" if left_out else worth,
        )
    )
