"""Draw quantities over the number of pulls: a metric of policies, and shares of arms  [Sect. 5, Fig. 3, 7, 8]."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray, IntArray
from equipoise.charts import style
from equipoise.charts.frontiers import ERROR_TITLE, REWARD_TITLE
from equipoise.errors import InvalidInput
from equipoise.objective import optimal_allocation
from equipoise.simulation.runs import Runs, weights_of

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.policies import Policy


class _Metric(NamedTuple):
    title: str
    is_weighted: bool = False
    from_zero: bool = True


_METRICS = {
    "rescaled_regret": _Metric("regret times the square root of pulls", is_weighted=True),
    "regret": _Metric("regret", is_weighted=True),
    "tradeoff": _Metric("trade-off of reward and error", is_weighted=True, from_zero=False),
    "reward": _Metric(REWARD_TITLE, from_zero=False),
    "error": _Metric(ERROR_TITLE),
    "realised_error": _Metric("error that the estimates had, times the square root of pulls"),
    "frequency_distance": _Metric("largest distance of a share from its optimum", is_weighted=True),
    "target_distance": _Metric("largest distance of a target from its optimum", is_weighted=True),
    "relative_dcg": _Metric("gain lost by ranking the arms by their estimates (percent)"),
    "rank_error": _Metric("average error of an arm's rank by the estimates"),
}
METRICS = tuple(_METRICS)
"""Metrics of runs that can be drawn over time."""


@dataclass(frozen=True)
class CurvesRecord:
    """A metric of some policies over time; the band's arrays are (n_policies, n_steps)."""

    metric: str
    reward_weight: float | None
    policies: tuple[str, ...]
    step: IntArray
    value: style.Band
    quantiles: tuple[float, float]
    n_replications: int


def curves_record(
    runs: Runs,
    metric: str = "rescaled_regret",
    *,
    reward_weight: float | None = None,
    policies: Sequence[Policy] | None = None,
    names: Sequence[str] | None = None,
    quantiles: tuple[float, float] = style.QUANTILES,
) -> CurvesRecord:
    """Return a metric at every checkpoint: its mean over replications and a lower and an upper quantile.

    Parameters
    ----------
    runs : Runs
    metric : str
        One of `METRICS`.
    reward_weight : float, optional
        Needed by metrics that compare with the optimum: all but reward, errors and ranking.
    policies : sequence of Policy, optional
        Policies to show, in this order; all by default.
    names : sequence of str, optional
        Names of the policies; by default their class names, with the parameters in which they differ.
    quantiles : pair of float

    Examples
    --------
    >>> import equipoise as eq
    >>> arms = eq.Gaussian(mean=[1, 2], std=[1, 1])
    >>> runs = eq.simulate(eq.Uniform(), arms, 100, replications=3, checkpoints=[10, 100])
    >>> record = curves_record(runs, "regret", reward_weight=0.5)
    >>> record.policies, record.step, record.value.mean.round(4)
    (('Uniform',), array([ 10, 100]), array([[0.0521, 0.0521]]))
    """
    about = _METRICS[checks.one_of("metric", metric, METRICS)]
    shown = runs.select(policies=policies)
    weight = None
    if about.is_weighted:
        if reward_weight is None:
            raise InvalidInput(f"reward_weight must be given for {metric}: it compares with the optimum at that weight")
        weight = checks.number_between("reward_weight", reward_weight, 0, 1)
    options = {} if weight is None else {"reward_weight": weight}
    values = getattr(shown, metric)(**options)
    if values.ndim == 2:  # already one number for all replications
        values = values[:, None]
    return CurvesRecord(
        metric=metric,
        reward_weight=weight,
        policies=style.policy_names(shown.policies, names),
        step=runs.checkpoints,
        value=style.band_of(values, quantiles),
        quantiles=quantiles,
        n_replications=int(runs.replications.size),
    )


def curves_chart(record: CurvesRecord, *, log_scale: bool = False, band: bool = True) -> AnyChart:
    """Draw a line for each policy over a logarithmic axis of pulls, with gaps where a mean is infinite.

    Parameters
    ----------
    log_scale : bool
        Whether the metric's axis is logarithmic too.
    band : bool
        Whether to draw the bands between the quantiles; many of them hide each other.
    """
    alt = style.altair()
    about, names = _METRICS[record.metric], list(record.policies)
    lowest = 0.0 if log_scale else -np.inf
    drawable = np.isfinite(record.value.mean) & (record.value.mean > lowest)
    wanted = "finite and positive" if log_scale else "finite"
    if not drawable.any():
        raise InvalidInput(f"there is nothing to draw: {record.metric} is nowhere {wanted}")
    lows = record.value.low[drawable]
    bottom = max(float(lows[lows > lowest].min(initial=np.inf)), float(record.value.mean[drawable].min()) / 10)
    rows = [
        {
            "policy": name,
            "step": int(step),
            "value": style.finite(record.value.mean[k, j], above=lowest),
            # A band that reaches down to zero ends at the lower edge of a logarithmic axis.
            "low": style.finite(max(record.value.low[k, j], bottom) if log_scale else record.value.low[k, j]),
            "high": style.finite(record.value.high[k, j], above=lowest),
        }
        for k, name in enumerate(names)
        for j, step in enumerate(record.step)
    ]
    width = 520
    is_drawn = band and record.value.has_width
    colours = dict(zip(names, cycle(style.LINES), strict=False))
    scale = alt.Scale(type="log", nice=False) if log_scale else alt.Scale(zero=about.from_zero)
    highest = float(record.value.high[np.isfinite(record.value.high)].max(initial=record.value.mean[drawable].max()))
    axis = alt.Axis(values=style.log_ticks(bottom, highest)) if log_scale else alt.Axis(tickCount=6)
    base = style.chart_of(rows).encode(x=style.pulls_axis(record.step[drawable.any(axis=0)]))
    lines = base.mark_line(strokeWidth=2, point=record.step.size < style.FEW_STEPS).encode(
        y=alt.Y("value:Q", title=about.title, scale=scale, axis=axis),
        **style.told_apart("policy", names, width),
        tooltip=["policy:N", *style.numbers("step", digits=","), *style.numbers("value", "low", "high")],
    )
    areas = style.band_areas(base, "policy", colours, alt.Y("low:Q", scale=scale)) if is_drawn else []
    notes = [style.band_words(record.n_replications, record.quantiles, mean="line", band="band", is_drawn=is_drawn)]
    lost = [name for k, name in enumerate(names) if not drawable[k].any()]
    if lost:
        notes.append(f"no line where the mean is not {wanted}: {', '.join(lost)}")
    what = record.metric.replace("_", " ").replace("dcg", "DCG")
    at = "" if record.reward_weight is None else f" (reward weight {record.reward_weight:.4g})"
    who = f"{names[0]}: {what}" if len(names) == 1 else what.capitalize()
    picture = alt.layer(*areas, lines).properties(width=width, height=320)
    return style.finished(picture, f"{who} over time{at}", notes)


def sweep_curves(results: Sequence[Runs], *, report_weight: float | None = None) -> CurvesRecord:
    """Return the rescaled regret of each policy over the longest horizon, or the reward if no weight is known.

    Examples
    --------
    >>> import equipoise as eq
    >>> policies = [eq.ForcingBalance(reward_weight=w) for w in (0.5, 0.9)] + [eq.Uniform()]
    >>> runs = eq.simulate(policies, eq.Gaussian(mean=[1, 2], std=[1, 1]), 100, 2)
    >>> sweep_curves([runs]).policies
    ('ForcingBalance, reward weight 0.5', 'ForcingBalance, reward weight 0.9', 'Uniform, at 0.5', 'Uniform, at 0.9')
    """
    runs = max(results, key=lambda runs: runs.horizon)
    pairs = [
        (k, weight)
        for k, policy in enumerate(runs.policies)
        for weight in weights_of(policy, runs.policies, report_weight)
    ]
    if any(weight is None for _, weight in pairs):
        return curves_record(runs, "reward")
    weights = sorted({weight for _, weight in pairs if weight is not None})
    records = {weight: curves_record(runs, reward_weight=weight) for weight in weights}
    first = records[weights[0]]
    if len(weights) == 1:
        return first
    names = first.policies
    arrays: dict[str, Any] = {
        name: np.array([getattr(records[weight].value, name)[k] for k, weight in pairs if weight is not None])
        for name in ("mean", "low", "high")
    }
    return dataclasses.replace(
        first,
        reward_weight=None,  # each has its own, which is in its name
        policies=tuple(
            names[k] if "reward weight" in names[k] else f"{names[k]}, at {weight:g}" for k, weight in pairs
        ),
        value=style.Band(**arrays),
    )


@dataclass(frozen=True)
class ArmShareRecord:
    """The share of one arm over time; the bands' arrays are (n_policies, n_steps)."""

    arm: str
    reward_weight: float
    optimum: float
    policies: tuple[str, ...]
    step: IntArray
    target: style.Band
    frequency: style.Band
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
    quantiles: tuple[float, float] = style.QUANTILES,
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
        target=style.band_of(shown.target[..., place], quantiles),
        frequency=style.band_of(shown.frequency[..., place], quantiles),
        quantiles=quantiles,
        n_replications=int(runs.replications.size),
    )


def arm_share_chart(record: ArmShareRecord, *, log_scale: bool = False) -> AnyChart:
    """Draw for each policy an arm's target and frequency over time, against the optimum."""
    alt = style.altair()
    lowest = 0.0 if log_scale else -np.inf
    best = np.full_like(record.target.mean, record.optimum)
    nothing = np.full_like(best, np.nan)
    shares = (style.Band(best, nothing, nothing), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {
            "policy": name,
            "step": int(step),
            "kind": kind,
            "share": style.finite(share.mean[k, j], above=lowest),
            "low": style.finite(share.low[k, j], above=lowest),
            "high": style.finite(share.high[k, j], above=lowest),
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
    y = _log_share_axis(min(drawn, default=0.01)) if log_scale else alt.Y("share:Q", title="share of pulls", axis=axis)
    base = alt.Chart().encode(x=style.pulls_axis(record.step))
    lines = _kind_lines(base, "policy", record.step, width=width * columns).encode(y=y)
    areas = style.band_areas(base, "kind", KINDS, alt.Y("low:Q")) if is_drawn else []
    picture = alt.layer(*areas, lines, data=alt.Data(values=rows)).properties(width=width, height=240)
    (name,) = style.labels((record.arm,))
    return style.finished(
        style.panels(picture, "policy", record.policies, columns=columns),
        f"Share of {name} over time (reward weight {record.reward_weight:.4g})",
        style.band_words(record.n_replications, record.quantiles, mean="line", band="band", is_drawn=is_drawn),
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
    names = style.labels(record.arms)
    shares = (np.broadcast_to(record.optimum, record.target.shape), record.target, record.frequency)
    rows: list[dict[str, Any]] = [
        {"arm": name, "step": int(step), "kind": kind, "share": float(share)}
        for kind, by_arm in zip(KINDS, shares, strict=True)
        for place, name in enumerate(names)
        for step, share in zip(record.step, by_arm[:, place], strict=True)
        if share > 0  # a logarithmic axis has no 0; NaN means no target yet
    ]
    lines = _kind_lines(style.chart_of(rows), "arm", record.step, width=750).encode(
        x=style.pulls_axis(record.step), y=_log_share_axis(min(row["share"] for row in rows))
    )
    return style.finished(
        style.panels(lines.properties(width=150, height=190), "arm", names, columns=5),
        f"Shares over time, beside the best ones (reward weight {record.reward_weight:.4g})",
        "Nothing was known of the arms in the beginning; both axes are logarithmic",
    )


def _kind_lines(chart: Any, panel: str, step: IntArray, *, width: float) -> Any:
    """Return a line for each of the three kinds of share, with panels by a field; the caller sets x and y."""
    alt = style.altair()
    kinds = list(KINDS)
    colours = alt.Scale(domain=kinds, range=list(KINDS.values()))
    return chart.mark_line(point=step.size < style.FEW_STEPS).encode(
        color=alt.Color("kind:N", legend=style.legend(kinds, width), scale=colours),
        strokeDash=alt.StrokeDash("kind:N", scale=alt.Scale(domain=kinds, range=[[2, 2], [6, 3], [1, 0]])),
        strokeWidth=alt.StrokeWidth("kind:N", legend=None, scale=alt.Scale(domain=kinds, range=[1.2, 1.6, 2.4])),
        tooltip=[f"{panel}:N", "kind:N", *style.numbers("step", digits=","), *style.numbers("share")],
    )


def _log_share_axis(smallest: float) -> Any:
    """Return a logarithmic y axis of shares, from the smallest drawn up to 100%."""
    alt = style.altair()
    return alt.Y(
        "share:Q",
        title="share of pulls",
        scale=alt.Scale(type="log", nice=False, domainMax=1),
        axis=alt.Axis(values=style.log_ticks(smallest, 1), format="~%"),
    )
