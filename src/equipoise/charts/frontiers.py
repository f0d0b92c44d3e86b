"""Draw the frontier of reward and error, the shares along it, and policies against it  [Sect. 2, Fig. 3 right]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.charts import style
from equipoise.errors import InvalidInput, NoSuchWeight
from equipoise.information import weight_for_information
from equipoise.objective import error, reward
from equipoise.pareto import Frontier, frontier, weight_for_error
from equipoise.simulation.runs import Runs, place_of

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.policies import Policy

ERROR_TITLE = "error (average error of the means, times the square root of pulls)"
REWARD_TITLE = "average reward per pull"

MOST_BANDS = 12
"""Largest number of arms for which the bands of `shares_chart` can be told apart."""


@dataclass(frozen=True)
class FrontierRecord:
    """The frontier at some marked weights, and on a grid fine enough for a smooth curve."""

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
    """Return the frontier at the given weights (0, 0.1, ..., 1 by default), its curve, and the point of equal shares.

    The curve extends at least to `up_to_weight` and to the largest given weight below 1.

    Examples
    --------
    >>> record = frontier_record([1, 2], [1, 1], reward_weights=[0, 0.5])
    >>> record.marked.error.round(3), record.equal_reward, round(record.equal_error, 3)
    (array([1.414, 1.498]), 1.5, 1.414)
    """
    means, stds = checks.means_and_stds(mean, std)
    weights = np.linspace(0, 1, 11) if reward_weights is None else reward_weights
    marked = frontier(means, stds, reward_weights=weights, floor=floor)
    # The error grows without bound as the weight goes to 1, so the grid is even in log(1 - weight) and stops before.
    last = max(up_to_weight, marked.reward_weight[marked.reward_weight < 1].max(initial=0))
    grid = np.append(1 - np.geomspace(1, 1 - last, 200), 1.0)
    equal = np.full(means.size, 1 / means.size)
    return FrontierRecord(
        arms=style.arm_names(arms, means.size),
        mean=means,
        std=stds,
        marked=marked,
        curve=frontier(means, stds, reward_weights=grid, floor=floor),
        equal_reward=reward(equal, means),
        equal_error=error(equal, stds),
    )


def frontier_chart(record: FrontierRecord) -> AnyChart:
    """Draw reward against error: the optimum as a curve marked with weights, and equal shares below it."""
    return style.styled(_frontier(record))


def shares_chart(record: FrontierRecord) -> AnyChart:
    """Draw the optimal share of each arm as a band, from accuracy only (weight 0) to reward only (weight 1)."""
    if len(record.arms) > MOST_BANDS:
        raise InvalidInput(f"shares_chart can show at most {MOST_BANDS} arms; got {len(record.arms)}")
    return style.styled(_shares(record))


def frontier_and_shares_chart(record: FrontierRecord) -> AnyChart:
    """Draw the frontier and, unless there are too many arms, the shares beside it."""
    charts = [_frontier(record), _shares(record)] if len(record.arms) <= MOST_BANDS else [_frontier(record)]
    return style.styled(style.altair().hconcat(*charts, spacing=40))


def _frontier(record: FrontierRecord) -> AnyChart:
    alt = style.altair()
    x, y, layers = curve_layers(record)
    if math.isfinite(record.equal_error):
        equal = {"reward": record.equal_reward, "error": record.equal_error, "label": "equal shares"}
        place = style.chart_of([equal]).encode(x=x, y=y)
        layers.append(place.mark_point(color=style.VERMILION, filled=True, opacity=1, size=90, shape="square"))
        layers.append(place.mark_text(align="left", dx=9, dy=5, color="black").encode(text="label:N"))
    return style.titled(
        alt.layer(*layers).properties(width=460, height=320),
        "The most reward at each error",
        "Numbers on the curve are reward weights",
    )


def curve_layers(
    record: FrontierRecord,
    other_errors: Sequence[float] = (),
    *,
    colour: str = style.BLUE,
    size: float = 60,
    gap: float = 6,
) -> tuple[Any, ...]:
    """Return axes of error and reward with room for further errors, and the layers of the curve with its weights."""
    alt = style.altair()
    line = _finite_rows(record.curve)
    if not line:
        raise InvalidInput("there is no frontier to draw: the floors leave an arm with spread no share at any weight")
    errors = [*(row["error"] for row in line), *other_errors]
    kind = "log" if max(errors) > 10 * min(errors) > 0 else "linear"
    x = alt.X(
        "error:Q",
        title=ERROR_TITLE,
        scale=alt.Scale(type=kind, zero=False, padding=40, nice=kind == "linear"),
        axis=alt.Axis(values=style.log_ticks(min(errors), max(errors))) if kind == "log" else alt.Axis(tickCount=6),
    )
    y = alt.Y("reward:Q", title=REWARD_TITLE, scale=alt.Scale(zero=False, padding=20))
    curve = style.chart_of(line).mark_line(color=colour).encode(x=x, y=y, order="reward_weight:Q")
    marked = _spread_out(_finite_rows(record.marked), kind)
    marks = style.chart_of(marked).encode(x=x, y=y, tooltip=style.numbers("reward_weight", "reward", "error"))
    points = marks.mark_point(color=colour, filled=True, opacity=1, size=size)
    # Nothing lies above a frontier, so its labels go there.
    weights = marks.mark_text(align="right", dx=-gap, dy=-gap, color="black").encode(text=alt.Text("reward_weight:Q"))
    return x, y, [curve, points, weights]


def _shares(record: FrontierRecord) -> AnyChart:
    alt = style.altair()
    weights, shares = record.curve.reward_weight, record.curve.allocation
    rows = [
        {"arm": name, "place": place, "reward_weight": float(weight), "share": float(share)}
        for place, name in enumerate(record.arms)
        for weight, share in zip(weights, shares[:, place], strict=True)
    ]
    top = 1 - np.cumsum(shares, axis=1) + shares
    # Label a band where it is widest, away from the edges of the picture.
    inside = np.flatnonzero((weights >= 0.04) & (weights <= 0.7))
    widest = [int(inside[shares[inside, place].argmax()]) for place in range(len(record.arms))]
    names = style.labels(record.arms)
    named = [
        {"name": name, "reward_weight": float(weights[at]), "middle": float(top[at, place] - shares[at, place] / 2)}
        for place, (name, at) in enumerate(zip(names, widest, strict=True))
        if shares[at, place] >= 0.04
    ]
    x = alt.X("reward_weight:Q", title="reward weight", scale=alt.Scale(domain=[0, 1], nice=False))
    areas = style.chart_of(rows).mark_area(stroke="white", strokeWidth=1.5)
    bands = areas.encode(
        x=x,
        y=alt.Y("share:Q", title="share of pulls", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=alt.Color("arm:N", legend=None, scale=style.in_turn(record.arms, style.BANDS)),
        order=alt.Order("place:Q", sort="descending"),
        tooltip=["arm:N", *style.numbers("reward_weight", digits=".3~f"), *style.numbers("share")],
    )
    texts = style.chart_of(named).mark_text(align="left", dx=2, color="black", limit=130)
    narrow = sorted(set(names) - {row["name"] for row in named}, key=names.index)
    return style.titled(
        (bands + texts.encode(x=x, y="middle:Q", text="name:N")).properties(width=460, height=320),
        "Who gets the pulls, from accuracy (0) to reward (1)",
        "Each band is an arm" + (f"; too narrow to be named: {', '.join(narrow)}" if narrow else ""),
    )


def _finite_rows(curve: Frontier) -> list[dict[str, float]]:
    """Return the points of a frontier in order of weight, without those of infinite error."""
    columns = zip(curve.reward_weight, curve.reward, curve.error, strict=True)
    return [
        {"reward_weight": round(float(weight), 6), "reward": float(reward), "error": float(error)}
        for weight, reward, error in sorted(columns)
        if math.isfinite(error)
    ]


def _spread_out(rows: list[dict[str, float]], kind: str) -> list[dict[str, float]]:
    """Return the rows that lie far enough from the previous one for their labels not to touch."""
    scale = math.log if kind == "log" else float
    points = np.array([(scale(row["error"]), row["reward"]) for row in rows]).reshape(-1, 2)
    extent = np.ptp(points, axis=0) if rows else np.ones(2)
    points = points / np.where(extent > 0, extent, 1)
    kept: list[int] = []
    for i, point in enumerate(points):
        if not kept or np.hypot(*(point - points[kept[-1]])) >= 0.06:
            kept.append(i)
    return [rows[i] for i in kept]


@dataclass(frozen=True)
class PolicyFrontierRecord:
    """The frontier of the optimum, and mean reward and error of policies: arrays (n_policies, n_steps).

    Policies with the same name in `series` belong together: they differ only in their reward weight.
    """

    frontier: FrontierRecord
    series: tuple[str, ...]
    labels: tuple[str, ...]
    step: IntArray
    reward: FloatArray
    error: FloatArray
    n_replications: int


def policy_frontier_record(
    runs: Runs,
    *,
    steps: Sequence[int] | None = None,
    reward_weights: ArrayLike | None = None,
    policies: Sequence[Policy] | None = None,
    names: Sequence[str] | None = None,
) -> PolicyFrontierRecord:
    """Return mean reward and error of policies at some checkpoints, with the frontier of the optimum.

    Parameters
    ----------
    runs : Runs
    steps : sequence of int, optional
        Checkpoints to show; the last by default.
    reward_weights : array, optional
        Weights to mark on the frontier; those of the policies by default, or 0, 0.1, ..., 1 if they have none.
    policies : sequence of Policy, optional
        Policies to show; all by default.
    names : sequence of str, optional
        Names of the policies; policies with the same name are joined by a line.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> policies = [eq.ForcingBalance(reward_weight=w) for w in (0.1, 0.5)] + [eq.Uniform()]
    >>> record = policy_frontier_record(eq.simulate(policies, arms, 1000, 20, seed=1))
    >>> record.series, record.reward[:, 0].round(2), record.error[:, 0].round(2)
    (('ForcingBalance', 'ForcingBalance', 'Uniform'), array([1.53, 1.69, 1.5 ]), array([1.42, 1.5 , 1.41]))
    """
    shown = runs.select(policies=policies)
    places = sorted({place_of(runs, step) for step in steps}) if steps is not None else [place_of(runs, None)]
    if not places:
        raise InvalidInput("steps must be at least one of the checkpoints; got none")
    weights = sorted({weight for policy in shown.policies for weight in _weight_of(policy, runs)})
    errors = shown.error()[:, :, places].mean(axis=1)
    return PolicyFrontierRecord(
        frontier=frontier_record(
            runs.true_mean,
            runs.true_std,
            reward_weights=(weights or None) if reward_weights is None else reward_weights,
            up_to_weight=_weight_beyond(errors, runs),
        ),
        series=style.short_names(shown.policies, without=("reward_weight", "information_kept"))
        if names is None
        else style.one_each(shown.policies, names),
        labels=shown.labels,
        step=runs.checkpoints[places],
        reward=shown.reward()[:, :, places].mean(axis=1),
        error=errors,
        n_replications=int(runs.replications.size),
    )


def _weight_of(policy: Policy, runs: Runs) -> list[float]:
    """Return the weight of a policy, or the one that keeps its information on the true arms; none if it has neither."""
    weight, kept = getattr(policy, "reward_weight", None), getattr(policy, "information_kept", None)
    if weight is None and kept is not None and getattr(policy, "information_about", None) == "average":
        weight = round(weight_for_information(runs.true_mean, runs.true_std, information_kept=kept), 4)
    return [] if weight is None else [weight]


def policy_frontier_chart(record: PolicyFrontierRecord) -> AnyChart:
    """Draw the frontier with its weights, and a mark for each policy at each step.

    Policies that belong together are joined by a line at each step; a single policy is joined over the steps, and its
    marks grow with them. A policy with infinite error cannot be drawn and is named below the title.
    """
    alt = style.altair()
    names = list(dict.fromkeys(record.series))
    rows: list[dict[str, Any]] = [
        {
            "policy": record.series[k],
            "label": record.labels[k],
            "step": int(step),
            "order": k * record.step.size + j,
            "line": f"{record.series[k]} {step if record.series.count(record.series[k]) > 1 else ''}",
            "reward": float(record.reward[k, j]),
            "error": float(record.error[k, j]),
        }
        for k in range(len(record.series))
        for j, step in enumerate(record.step)
        if np.isfinite(record.error[k, j])
    ]
    x, y, layers = curve_layers(record.frontier, [row["error"] for row in rows], colour="black", size=30, gap=9)
    width = 520
    looks = style.told_apart("policy", names, width, points=True)
    base = style.chart_of(rows).encode(x=x, y=y, color=looks["color"])
    joined = base.mark_line(strokeWidth=1.2).encode(detail="line:N", order="order:Q")
    # Open marks, under the curve: several policies may coincide on the curve.
    marks = base.mark_point(opacity=1, strokeWidth=2).encode(
        shape=looks["shape"], tooltip=["label:N", *style.numbers("step", "reward", "error", digits=",.4~g")]
    )
    size = alt.value(90)
    if record.step.size > 1:
        range_ = np.linspace(30, 150, record.step.size).tolist()
        sizes = alt.Scale(type="ordinal", domain=record.step.tolist(), range=range_)
        steps = alt.Legend(title="pulls", format=",", symbolStrokeColor=style.GREY, symbolStrokeWidth=2)
        size = alt.Size("step:O", scale=sizes, legend=steps)
    return style.finished(
        alt.layer(joined, marks.encode(size=size), *layers).properties(width=width, height=340),
        "How close policies come to the most reward at each error",
        _notes(record),
    )


def _weight_beyond(errors: FloatArray, runs: Runs) -> float:
    """Return a weight up to which the curve covers the policies' errors."""
    largest = float(errors[np.isfinite(errors)].max(initial=0.0))
    try:
        return max(0.99, min(weight_for_error(runs.true_mean, runs.true_std, error=largest), 1 - 1e-12))
    except NoSuchWeight:
        return 0.99


def _notes(record: PolicyFrontierRecord) -> list[str]:
    """Return the lines below the title: what is drawn, and what could not be drawn."""
    replications = (
        "one replication" if record.n_replications == 1 else f"mean of {record.n_replications:,} replications"
    )
    after = f" after {style.pulls_words(int(record.step[0]))}" if record.step.size == 1 else ""
    notes = [f"black curve: the optimum, with reward weights; marks: {replications}{after}"]
    lost = ~np.isfinite(record.error)
    if lost.any():
        names = dict.fromkeys(record.series[k] for k in np.flatnonzero(lost.any(axis=1)))
        notes.append(f"not shown where an arm was never pulled, which makes the error infinite: {', '.join(names)}")
    return notes
