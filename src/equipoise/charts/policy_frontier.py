"""Policies against the frontier of reward and error: how close their pulls come to it  [Sect. 5, Fig. 3 right]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.charts.drawing import GREY, LINES, SHAPES, altair, legend, styled, taken_in_turn, titled
from equipoise.charts.frontier import FrontierRecord, curve_layers, frontier_record
from equipoise.charts.replications import chosen, one_each, place_of, pulls_words, short_names
from equipoise.errors import InvalidInput, NoSuchWeight
from equipoise.goals import weight_for_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from equipoise.arrays import FloatArray, IntArray
    from equipoise.charts.drawing import AnyChart
    from equipoise.policies import Policy
    from equipoise.runs import Runs


@dataclass(frozen=True)
class PolicyFrontierRecord:
    """The frontier of the optimum, and mean reward and error of policies: arrays (n_policies, n_steps).

    Policies with the same name in `series` belong together: those that differ in their reward weight alone.
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
        Those to show; all by default.
    names : sequence of str, optional
        What to call each of them; policies with the same name are joined by a line.

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> policies = [eq.ForcingBalance(reward_weight=w) for w in (0.1, 0.5)] + [eq.Uniform()]
    >>> record = policy_frontier_record(eq.simulate(policies, arms, 1000, 20, seed=1))
    >>> record.series, record.reward[:, 0].round(2), record.error[:, 0].round(2)
    (('ForcingBalance', 'ForcingBalance', 'Uniform'), array([1.53, 1.69, 1.5 ]), array([1.42, 1.5 , 1.41]))
    """
    shown = chosen(runs, policies)
    places = sorted({place_of(runs, step) for step in steps}) if steps is not None else [place_of(runs, None)]
    if not places:
        raise InvalidInput("steps must be at least one of the checkpoints; got none")
    weights = sorted({policy.reward_weight for policy in shown.policies if hasattr(policy, "reward_weight")})
    errors = shown.error()[:, :, places].mean(axis=1)
    return PolicyFrontierRecord(
        frontier=frontier_record(
            runs.true_mean,
            runs.true_std,
            reward_weights=(weights or None) if reward_weights is None else reward_weights,
            up_to_weight=_weight_beyond(errors, runs),
        ),
        series=short_names(shown.policies, without="reward_weight")
        if names is None
        else one_each(shown.policies, names),
        labels=shown.labels,
        step=runs.checkpoints[places],
        reward=shown.reward()[:, :, places].mean(axis=1),
        error=errors,
        n_replications=int(runs.replications.size),
    )


def policy_frontier_chart(record: PolicyFrontierRecord) -> AnyChart:
    """Draw the frontier with its weights, and a mark for each policy at each of the steps.

    Policies that belong together are joined by a line at each step; one that stands alone is joined over the steps,
    and its marks grow with them. A policy of infinite error has no place on the chart and is named below the title.
    """
    alt = altair()
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
    key = legend(names, width, points=True)
    colours = alt.Scale(domain=names, range=taken_in_turn(LINES, len(names)))
    shapes = alt.Scale(domain=names, range=taken_in_turn(SHAPES, len(names)))
    base = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y)
    base = base.encode(color=alt.Color("policy:N", scale=colours, legend=key))
    joined = base.mark_line(strokeWidth=1.2).encode(detail="line:N", order="order:Q")
    # Open marks, under the curve: several policies may be at the same place, and that is the curve's.
    marks = base.mark_point(opacity=1, strokeWidth=2).encode(
        shape=alt.Shape("policy:N", scale=shapes, legend=key),
        tooltip=["label:N", *(alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("step", "reward", "error"))],
    )
    if record.step.size > 1:
        sizes = alt.Scale(
            type="ordinal", domain=record.step.tolist(), range=np.linspace(30, 150, record.step.size).tolist()
        )
        steps = alt.Legend(title="pulls", format=",", symbolStrokeColor=GREY, symbolStrokeWidth=2)
        marks = marks.encode(size=alt.Size("step:O", scale=sizes, legend=steps))
    else:
        marks = marks.encode(size=alt.value(90))
    return styled(
        titled(
            alt.layer(joined, marks, *layers).properties(width=width, height=340),
            "How close policies come to the most reward at each error",
            _notes(record),
        )
    )


def _weight_beyond(errors: FloatArray, runs: Runs) -> float:
    """Return a weight at which the curve is at least as long as the policies' errors need."""
    largest = float(errors[np.isfinite(errors)].max(initial=0.0))
    try:
        return max(0.99, min(weight_for_error(runs.true_mean, runs.true_std, error=largest), 1 - 1e-12))
    except NoSuchWeight:
        return 0.99


def _notes(record: PolicyFrontierRecord) -> list[str]:
    """Return the lines below the title: what is drawn, and what could not be."""
    replications = (
        "one replication" if record.n_replications == 1 else f"mean of {record.n_replications:,} replications"
    )
    after = f" after {pulls_words(int(record.step[0]))}" if record.step.size == 1 else ""
    notes = [f"black curve: the optimum, with reward weights; marks: {replications}{after}"]
    lost = ~np.isfinite(record.error)
    if lost.any():
        names = dict.fromkeys(record.series[k] for k in np.flatnonzero(lost.any(axis=1)))
        notes.append(f"not shown where an arm was never pulled, which makes the error infinite: {', '.join(names)}")
    return notes
