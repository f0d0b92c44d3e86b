"""Draw shares as bars and dots: the optimal allocation, and the final shares of runs  [Sect. 2, Fig. 4]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.analysis.evidence import RewardRange
from equipoise.analysis.expected_widths import expected_half_widths
from equipoise.charts import style
from equipoise.information import information_kept as measure_information
from equipoise.information import weight_for_information
from equipoise.objective import error, optimal_allocation, optimal_pulls, reward, tradeoff
from equipoise.simulation.runs import Runs, place_of

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.policies import Policy

MOST_BARS = 80
"""Largest number of arms shown; of more, those with the largest shares."""


@dataclass(frozen=True)
class AllocationRecord:
    """The optimal allocation for some arms, and its value.

    Without a weight that leads to it (information about every arm, or the best), `reward_weight` and `tradeoff` are
    None.
    """

    arms: tuple[str, ...]
    mean: FloatArray
    std: FloatArray
    share: FloatArray
    reward_weight: float | None
    reward: float
    error: float
    tradeoff: float | None
    information_kept: float
    information_about: str
    is_kept: bool = False
    """Whether the information to keep was stated, and not a weight."""
    horizon: int | None = None
    pulls: IntArray | None = None
    error_at_horizon: float | None = None
    """Average root-mean-square error of the arms' means after the whole-number pulls."""
    half_width: FloatArray | None = None
    """Of each arm, as `status` will show it after the whole-number pulls; NaN where it will show none."""
    failure_probability: float = 0.05
    """Of the intervals of all arms together, at all times."""
    reward_range: tuple[float | None, float | None] | None = None
    """The range that the intervals take as declared."""

    @property
    def widest_half_width(self) -> float | None:
        """The largest half-width; None where an arm will have no interval."""
        if self.half_width is None or np.isnan(self.half_width).any():
            return None
        return float(self.half_width.max())


def allocation_record(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weight: float | None = None,
    information_kept: float | None = None,
    information_about: str = "average",
    smallest_difference: float | None = None,
    floor: ArrayLike = 0.0,
    horizon: int | None = None,
    arms: Sequence[str] | None = None,
    reward_range: RewardRange = None,
    failure_probability: float = 0.05,
) -> AllocationRecord:
    """Return the optimal allocation with everything that the chart and the command show.

    Parameters
    ----------
    mean, std, reward_weight, information_kept, information_about, smallest_difference, floor
        As in `equipoise.optimal_allocation`.
    horizon : int, optional
        Number of pulls to split into whole numbers.
    arms : sequence of str, optional
        Names of the arms; "1", "2", ... by default.
    reward_range, failure_probability
        Of the experiment for which half-widths are predicted, as in `analysis.expected_widths.expected_half_widths`.

    Examples
    --------
    >>> record = allocation_record([1, 2], [1, 1], reward_weight=0.5, horizon=100)
    >>> record.arms, record.pulls, round(record.error_at_horizon, 4), record.half_width.round(2)
    (('1', '2'), array([31, 69]), 0.15, array([0.75, 0.45]))
    """
    means, stds = checks.means_and_stds(mean, std)
    dial = checks.dial(reward_weight, information_kept, information_about, smallest_difference)
    share = optimal_allocation(means, stds, **dial._asdict(), floor=floor)
    weight, kept = dial.reward_weight, dial.information_kept
    if kept is not None and dial.information_about == "average":
        weight = weight_for_information(means, stds, information_kept=kept, floor=floor)
    measured: dict[str, Any] = {"about": dial.information_about, "smallest_difference": dial.smallest_difference}
    pulls = error_at_horizon = widths = None
    if horizon is not None:
        pulls = optimal_pulls(means, stds, horizon=horizon, **dial._asdict(), floor=floor)
        error_at_horizon = error(pulls / horizon, stds) / math.sqrt(horizon)
        intervals: dict[str, Any] = {"reward_range": reward_range, "failure_probability": failure_probability}
        widths = expected_half_widths(pulls, means, stds, **intervals)
    return AllocationRecord(
        arms=style.arm_names(arms, means.size),
        mean=means,
        std=stds,
        share=share,
        reward_weight=weight,
        reward=reward(share, means),
        error=error(share, stds),
        tradeoff=None if weight is None else tradeoff(share, means, stds, reward_weight=weight),
        information_kept=kept or measure_information(share, means, stds, floor=floor, **measured),
        information_about=dial.information_about,
        is_kept=kept is not None,
        horizon=horizon,
        pulls=pulls,
        error_at_horizon=error_at_horizon,
        half_width=widths,
        failure_probability=failure_probability,
        reward_range=reward_range,
    )


def allocation_chart(record: AllocationRecord) -> AnyChart:
    """Draw the shares as bars, largest first, beside the means and spreads that explain them."""
    alt = style.altair()
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
    pulls = [] if record.pulls is None else style.numbers("pulls", digits=",")
    base = style.chart_of(rows).encode(tooltip=[alt.Tooltip("arm:N"), *style.numbers("mean", "std", "share"), *pulls])
    height = alt.Step(24 if len(rows) <= 12 else 14)

    order = [row["arm"] for row in rows]
    arm_axis = alt.Axis(
        labelLimit=180, ticks=False, labelPadding=6, titleAngle=0, titleAlign="right", titleY=-8, titleX=-6
    )
    arm = alt.Y("arm:N", sort=order, title="arm", axis=arm_axis)
    share = alt.X("share:Q", title="share of pulls", axis=alt.Axis(format="%", tickCount=5))
    bars = base.mark_bar(color=style.BLUE).encode(y=arm, x=share)
    percent = base.mark_text(align="left", dx=4, color="black").encode(y=arm, x=share, text="percent:N")

    same_arm = alt.Y("arm:N", sort=order, title=None, axis=None)
    range_title = "mean reward, and one standard deviation each way"
    low = alt.X("low:Q", title=range_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    spread = base.mark_rule(color=style.GREY, strokeWidth=2).encode(y=same_arm, x=low, x2="high:Q")
    mean = base.mark_point(color=style.VERMILION, filled=True, opacity=1, size=45).encode(y=same_arm, x="mean:Q")

    left_out = len(record.arms) - len(rows)
    worth = f"reward {record.reward:.4g}, error {record.error:.4g}"
    return style.finished(
        alt.hconcat((bars + percent).properties(width=340, height=height), (spread + mean).properties(height=height)),
        f"Where the pulls go {_dial(record)}",
        f"{worth}; the {len(rows)} largest shares, {left_out} more arms not shown" if left_out else worth,
    )


def _dial(record: AllocationRecord) -> str:
    if record.is_kept or record.reward_weight is None:
        about = {"average": "the average", "every-arm": "every arm", "best-arm": "the best arm"}
        return f"to keep {record.information_kept:.4g} of the information about {about[record.information_about]}"
    return f"at reward weight {record.reward_weight:.4g}"


@dataclass(frozen=True)
class FinalSharesRecord:
    """Shares of all arms after some pulls; the band's arrays are (n_policies, n_arms)."""

    arms: tuple[str, ...]
    reward_weight: float
    optimum: FloatArray
    policies: tuple[str, ...]
    step: int
    share: style.Band
    quantiles: tuple[float, float]
    n_replications: int


def final_shares_record(
    runs: Runs,
    *,
    reward_weight: float,
    policies: Sequence[Policy] | None = None,
    names: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    step: int | None = None,
    quantiles: tuple[float, float] = style.QUANTILES,
) -> FinalSharesRecord:
    """Return the share of pulls of every arm at the last checkpoint, or at `step`, with the optimal shares.

    Parameters
    ----------
    runs : Runs
    reward_weight : float
    policies, names, quantiles
        As in `curves_record`.
    arms : sequence of str, optional
        Names of the arms; those of the runs by default, or "1", "2", ... if they have none.
    step : int, optional
        Another checkpoint instead of the last.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> runs = eq.simulate([eq.ForcingBalance(reward_weight=0.5), eq.Uniform()], arms, 1000, 20, seed=1)
    >>> record = final_shares_record(runs, reward_weight=0.5)
    >>> record.optimum.round(2), record.share.mean.round(2)
    (array([0.31, 0.69]), array([[0.31, 0.69], [0.5 , 0.5 ]]))
    """
    shown, place = runs.select(policies=policies), place_of(runs, step)
    weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    return FinalSharesRecord(
        arms=style.arm_names(runs.arm_names if arms is None else arms, runs.true_mean.size),
        reward_weight=weight,
        optimum=optimal_allocation(runs.true_mean, runs.true_std, reward_weight=weight),
        policies=style.policy_names(shown.policies, names),
        step=int(runs.checkpoints[place]),
        share=style.band_of(shown.frequency[:, :, place], quantiles),
        quantiles=quantiles,
        n_replications=int(runs.replications.size),
    )


def final_shares_chart(record: FinalSharesRecord) -> AnyChart:
    """Draw a panel for each policy: a dot and a line for each arm's share, and the optimal share as a black bar.

    Arms are ordered by optimal share. The axis is logarithmic if shares differ by a factor of ten or more and all
    optimal ones are positive; an arm without pulls has a cross at the left edge.
    """
    alt = style.altair()
    largest_first = np.argsort(-record.optimum, kind="stable")[:MOST_BARS].tolist()
    share = record.share
    drawn = np.concatenate([record.optimum[None], share.mean, share.low, share.high])[:, largest_first]
    smallest, largest = float(drawn[drawn > 0].min()), float(drawn.max())
    is_log = largest > 10 * smallest and bool((record.optimum > 0).all())
    edge = smallest / 1.6 if is_log else 0.0
    rows = [
        {
            "policy": name,
            "arm": record.arms[i],
            "share": float(share.mean[k, i]),
            "low": max(float(share.low[k, i]), edge),
            "high": max(float(share.high[k, i]), edge),
            "optimum": float(record.optimum[i]),
            "place": max(float(share.mean[k, i]), edge),
            "mark": "pulled" if share.mean[k, i] > 0 else "never pulled",
        }
        for k, name in enumerate(record.policies)
        for i in largest_first
    ]
    few = len(largest_first) <= 12
    # Panels of many arms are tall enough already.
    columns = style.even_columns(len(record.policies), most=4 if few else 6)
    width = {1: 460, 2: 280, 3: 200}.get(columns, 150)
    step = 24 if few else 12
    kind = alt.Scale(type="log", domain=[edge, min(1.2 * largest, 1)], nice=False) if is_log else alt.Scale(zero=True)
    axis = alt.Axis(format="~%", values=style.log_ticks(edge, 1)) if is_log else alt.Axis(format="~%", tickCount=4)
    x = alt.X("place:Q", title="share of pulls", scale=kind, axis=axis)
    arm_axis = alt.Axis(labelLimit=180, ticks=False, labelPadding=6, labelFontSize=12 if few else 10, grid=True)
    y = alt.Y("arm:N", sort=[record.arms[i] for i in largest_first], title="arm", axis=arm_axis)
    numbers = style.numbers("share", "low", "high", "optimum")
    base = alt.Chart().encode(y=y, tooltip=["policy:N", "arm:N", *numbers])
    best = base.mark_tick(color="black", opacity=1, thickness=2.5, size=0.7 * step).encode(x=alt.X("optimum:Q"))
    spread = base.mark_rule(color=style.BLUE, strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q")
    shapes = alt.Scale(domain=["pulled", "never pulled"], range=["circle", "cross"])
    dots = base.mark_point(color=style.BLUE, filled=True, opacity=1, size=2.5 * step).encode(
        x=x, shape=alt.Shape("mark:N", scale=shapes, legend=None)
    )
    layers = [best, spread, dots] if share.has_width else [best, dots]
    picture = alt.layer(*layers, data=alt.Data(values=rows)).properties(width=width, height=alt.Step(step))
    is_drawn = share.has_width
    words = style.band_words(record.n_replications, record.quantiles, mean="dot", band="blue line", is_drawn=is_drawn)
    left_out = len(record.arms) - len(largest_first)
    notes = ["black bar: optimal share", words]
    if any(row["mark"] == "never pulled" for row in rows):
        notes.append("cross: never pulled")
    if left_out:
        notes.append(f"the {len(largest_first)} largest optimal shares, {left_out} more arms not shown")
    return style.finished(
        style.panels(picture, "policy", record.policies, columns=columns),
        f"Shares after {style.pulls_words(record.step)} (reward weight {record.reward_weight:.4g})",
        "; ".join(notes),
    )
