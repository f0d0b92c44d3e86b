"""The frontier of reward and error, and the shares along it  [Sect. 2, Fig. 3 right]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise.charts.drawing import BANDS, BLUE, VERMILION, altair, arm_names, labels, log_ticks, styled, titled
from equipoise.errors import InvalidInput
from equipoise.goals import Frontier, frontier
from equipoise.objective import error, reward

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray
    from equipoise.charts.drawing import AnyChart

ERROR_TITLE = "error (average error of the means, times the square root of pulls)"
REWARD_TITLE = "average reward per pull"

MOST_BANDS = 12
"""Arms up to which the bands of `shares_chart` can be told apart."""


@dataclass(frozen=True)
class FrontierRecord:
    """The frontier at some weights, to be marked, and on a grid fine enough for a smooth curve."""

    arms: tuple[str, ...]
    mean: FloatArray
    std: FloatArray
    marked: Frontier
    curve: Frontier
    equal_reward: float
    equal_error: float


def frontier_record(
    mean: ArrayLike,
    std: ArrayLike,
    *,
    reward_weights: ArrayLike | None = None,
    floor: ArrayLike = 0.0,
    arms: Sequence[str] | None = None,
    up_to_weight: float = 0.99,
) -> FrontierRecord:
    """Return the frontier at the given weights (0, 0.1, ..., 1 by default), its curve, and what equal shares give.

    The curve goes at least to `up_to_weight` and to the largest given weight below 1.

    Examples
    --------
    >>> record = frontier_record([1, 2], [1, 1], reward_weights=[0, 0.5])
    >>> record.marked.error.round(3), record.equal_reward, round(record.equal_error, 3)
    (array([1.414, 1.498]), 1.5, 1.414)
    """
    means, stds = checks.means_and_stds(mean, std)
    weights = np.linspace(0, 1, 11) if reward_weights is None else reward_weights
    marked = frontier(means, stds, reward_weights=weights, floor=floor)
    # The error grows without end as the weight goes to 1, so the grid is even in log(1 - weight) and stops before.
    last = max(up_to_weight, marked.reward_weight[marked.reward_weight < 1].max(initial=0))
    grid = np.append(1 - np.geomspace(1, 1 - last, 200), 1.0)
    equal = np.full(means.size, 1 / means.size)
    return FrontierRecord(
        arms=arm_names(arms, means.size),
        mean=means,
        std=stds,
        marked=marked,
        curve=frontier(means, stds, reward_weights=grid, floor=floor),
        equal_reward=reward(equal, means),
        equal_error=error(equal, stds),
    )


def frontier_chart(record: FrontierRecord) -> AnyChart:
    """Draw reward against error: the best that can be had, with weights on the curve, and equal shares below it."""
    return styled(_frontier(record))


def shares_chart(record: FrontierRecord) -> AnyChart:
    """Draw the optimal share of each arm as a band, from accuracy only (weight 0) to reward only (weight 1)."""
    if len(record.arms) > MOST_BANDS:
        raise InvalidInput(f"shares_chart can show at most {MOST_BANDS} arms; got {len(record.arms)}")
    return styled(_shares(record))


def frontier_and_shares_chart(record: FrontierRecord) -> AnyChart:
    """Draw the frontier and, unless there are too many arms, the shares beside it."""
    charts = [_frontier(record), _shares(record)] if len(record.arms) <= MOST_BANDS else [_frontier(record)]
    return styled(altair().hconcat(*charts, spacing=40))


def _frontier(record: FrontierRecord) -> AnyChart:
    alt = altair()
    x, y, layers = curve_layers(record)
    if math.isfinite(record.equal_error):
        equal = {"reward": record.equal_reward, "error": record.equal_error, "label": "equal shares"}
        place = alt.Chart(alt.Data(values=[equal])).encode(x=x, y=y)
        layers.append(place.mark_point(color=VERMILION, filled=True, opacity=1, size=90, shape="square"))
        layers.append(place.mark_text(align="left", dx=9, dy=5, color="black").encode(text="label:N"))
    return titled(
        alt.layer(*layers).properties(width=460, height=320),
        "The most reward at each error",
        "Numbers on the curve are reward weights",
    )


def curve_layers(
    record: FrontierRecord, other_errors: Sequence[float] = (), *, colour: str = BLUE, size: float = 60, gap: float = 6
) -> tuple[Any, ...]:
    """Return axes of error and reward that also hold other errors, and the layers of the curve with its weights."""
    alt = altair()
    line = _finite_rows(record.curve)
    if not line:
        raise InvalidInput("there is no frontier to draw: the floors leave an arm with spread no share at any weight")
    errors = [*(row["error"] for row in line), *other_errors]
    kind = "log" if max(errors) > 10 * min(errors) > 0 else "linear"
    x = alt.X(
        "error:Q",
        title=ERROR_TITLE,
        scale=alt.Scale(type=kind, zero=False, padding=40, nice=kind == "linear"),
        axis=alt.Axis(values=log_ticks(min(errors), max(errors))) if kind == "log" else alt.Axis(tickCount=6),
    )
    y = alt.Y("reward:Q", title=REWARD_TITLE, scale=alt.Scale(zero=False, padding=20))
    tooltip = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("reward_weight", "reward", "error")]

    curve = alt.Chart(alt.Data(values=line)).mark_line(color=colour).encode(x=x, y=y, order="reward_weight:Q")
    marked = _spread_out(_finite_rows(record.marked), kind)
    marks = alt.Chart(alt.Data(values=marked)).encode(x=x, y=y, tooltip=tooltip)
    points = marks.mark_point(color=colour, filled=True, opacity=1, size=size)
    # Nothing lies above a frontier, so that is where its labels go.
    weights = marks.mark_text(align="right", dx=-gap, dy=-gap, color="black").encode(text=alt.Text("reward_weight:Q"))
    return x, y, [curve, points, weights]


def _shares(record: FrontierRecord) -> AnyChart:
    alt = altair()
    weights, shares = record.curve.reward_weight, record.curve.allocation
    rows = [
        {"arm": name, "place": place, "reward_weight": float(weight), "share": float(share)}
        for place, name in enumerate(record.arms)
        for weight, share in zip(weights, shares[:, place], strict=True)
    ]
    top = 1 - np.cumsum(shares, axis=1) + shares
    # A band is named where it is widest, away from the edges of the picture.
    inside = np.flatnonzero((weights >= 0.04) & (weights <= 0.7))
    widest = [int(inside[shares[inside, place].argmax()]) for place in range(len(record.arms))]
    names = labels(record.arms)
    named = [
        {
            "name": name,
            "reward_weight": float(weights[at]),
            "middle": float(top[at, place] - shares[at, place] / 2),
        }
        for place, (name, at) in enumerate(zip(names, widest, strict=True))
        if shares[at, place] >= 0.04
    ]
    x = alt.X("reward_weight:Q", title="reward weight", scale=alt.Scale(domain=[0, 1], nice=False))
    colours = [BANDS[place % len(BANDS)] for place in range(len(record.arms))]
    bands = (
        alt.Chart(alt.Data(values=rows))
        .mark_area(stroke="white", strokeWidth=1.5)
        .encode(
            x=x,
            y=alt.Y("share:Q", title="share of pulls", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
            color=alt.Color("arm:N", legend=None, scale=alt.Scale(domain=list(record.arms), range=colours)),
            order=alt.Order("place:Q", sort="descending"),
            tooltip=["arm:N", alt.Tooltip("reward_weight:Q", format=".3~f"), alt.Tooltip("share:Q", format=".4~g")],
        )
    )
    texts = (
        alt.Chart(alt.Data(values=named))
        .mark_text(align="left", dx=2, color="black", limit=130)
        .encode(x=x, y="middle:Q", text="name:N")
    )
    narrow = sorted(set(names) - {row["name"] for row in named}, key=names.index)
    return titled(
        (bands + texts).properties(width=460, height=320),
        "Who gets the pulls, from accuracy (0) to reward (1)",
        "Each band is an arm" + (f"; too narrow to be named: {', '.join(narrow)}" if narrow else ""),
    )


def _finite_rows(curve: Frontier) -> list[dict[str, float]]:
    """Return the points of a frontier in the order of their weights, without those of infinite error."""
    columns = zip(curve.reward_weight, curve.reward, curve.error, strict=True)
    return [
        {"reward_weight": round(float(weight), 6), "reward": float(reward), "error": float(error)}
        for weight, reward, error in sorted(columns)
        if math.isfinite(error)
    ]


def _spread_out(rows: list[dict[str, float]], kind: str) -> list[dict[str, float]]:
    """Return those rows that lie far enough from the one before for their labels not to touch."""
    scale = math.log if kind == "log" else float
    points = np.array([(scale(row["error"]), row["reward"]) for row in rows]).reshape(-1, 2)
    extent = np.ptp(points, axis=0) if rows else np.ones(2)
    points = points / np.where(extent > 0, extent, 1)
    kept: list[int] = []
    for i, point in enumerate(points):
        if not kept or np.hypot(*(point - points[kept[-1]])) >= 0.06:
            kept.append(i)
    return [rows[i] for i in kept]
