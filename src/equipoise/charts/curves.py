"""Draw policies over time: a metric against the number of pulls, with a band  [Sect. 5, Fig. 3 left, 7, 8]."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from equipoise import checks
from equipoise._types import IntArray
from equipoise.charts import bands, style
from equipoise.charts.frontiers import ERROR_TITLE, REWARD_TITLE
from equipoise.errors import InvalidInput
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
    value: bands.Band
    quantiles: tuple[float, float]
    n_replications: int


def curves_record(
    runs: Runs,
    metric: str = "rescaled_regret",
    *,
    reward_weight: float | None = None,
    policies: Sequence[Policy] | None = None,
    names: Sequence[str] | None = None,
    quantiles: tuple[float, float] = bands.QUANTILES,
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
        value=bands.band_of(values, quantiles),
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
            "value": bands.finite(record.value.mean[k, j], above=lowest),
            # A band that reaches down to zero ends at the lower edge of a logarithmic axis.
            "low": bands.finite(max(record.value.low[k, j], bottom) if log_scale else record.value.low[k, j]),
            "high": bands.finite(record.value.high[k, j], above=lowest),
        }
        for k, name in enumerate(names)
        for j, step in enumerate(record.step)
    ]
    width = 520
    is_drawn = band and record.value.has_width
    dashes = alt.Scale(domain=names, range=style.taken_in_turn(style.DASHES, len(names)))
    key = None if len(names) == 1 else style.legend(names, width)
    colours = dict(zip(names, style.taken_in_turn(style.LINES, len(names)), strict=True))
    scale = alt.Scale(type="log", nice=False) if log_scale else alt.Scale(zero=about.from_zero)
    highest = float(record.value.high[np.isfinite(record.value.high)].max(initial=record.value.mean[drawable].max()))
    axis = alt.Axis(values=style.log_ticks(bottom, highest)) if log_scale else alt.Axis(tickCount=6)
    number = [alt.Tooltip(f"{name}:Q", format=".4~g") for name in ("value", "low", "high")]
    base = alt.Chart(alt.Data(values=rows)).encode(x=style.pulls_axis(record.step[drawable.any(axis=0)]))
    lines = base.mark_line(strokeWidth=2, point=record.step.size < style.FEW_STEPS).encode(
        y=alt.Y("value:Q", title=about.title, scale=scale, axis=axis),
        color=alt.Color("policy:N", scale=alt.Scale(domain=names, range=list(colours.values())), legend=key),
        strokeDash=alt.StrokeDash("policy:N", scale=dashes, legend=key),
        tooltip=["policy:N", alt.Tooltip("step:Q", format=","), *number],
    )
    areas = bands.band_areas(base, "policy", colours, alt.Y("low:Q", scale=scale)) if is_drawn else []
    notes = [bands.band_words(record.n_replications, record.quantiles, mean="line", band="band", is_drawn=is_drawn)]
    lost = [name for k, name in enumerate(names) if not drawable[k].any()]
    if lost:
        notes.append(f"no line where the mean is not {wanted}: {', '.join(lost)}")
    what = record.metric.replace("_", " ").replace("dcg", "DCG")
    at = "" if record.reward_weight is None else f" (reward weight {record.reward_weight:.4g})"
    who = f"{names[0]}: {what}" if len(names) == 1 else what.capitalize()
    return style.styled(
        style.titled(alt.layer(*areas, lines).properties(width=width, height=320), f"{who} over time{at}", notes)
    )


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
        value=bands.Band(**arrays),
    )
