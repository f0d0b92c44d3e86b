"""Draw simulated experiments of one way: who gets which arm as time goes by, and one of them as it would look live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise import checks
from equipoise._types import FloatArray
from equipoise.charts import style
from equipoise.charts.forecasts import NARROW, WIDTH, shown_way
from equipoise.charts.vega_lite import spread_apart
from equipoise.errors import InvalidInput
from equipoise.planner.question import SECONDS_A_DAY
from equipoise.planner.way_forecast import Readings

if TYPE_CHECKING:
    from equipoise.charts.style import AnyChart
    from equipoise.planner.forecast import Forecast

MOST_ARMS = 8
"""Arms shown one by one; the others are added up, or left out."""
MOST_STEPS = 24
"""Points in time at which shares are shown: more would show noise."""
_TITLES = {"days": "days", "people": "people"}


@dataclass(frozen=True)
class SharesOverTimeRecord:
    """Of those who come at a time, the share that gets each arm, on average over simulated experiments.

    `share` is (n_times, n_arms): of the people between the time before and this one.
    """

    way: str
    arms: tuple[str, ...]
    unit: str
    """Of time: "days" or "people"."""
    time: FloatArray
    share: FloatArray
    met: float | None
    """When the median experiment meets the goal."""


def shares_over_time_record(forecast: Forecast, way: str | None = None) -> SharesOverTimeRecord:
    """Return who gets what over time under a way, by default the recommended one.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(arms={"plain": "10%", "prize": "20%"}, people=3000, goals=0.06, ways={"weights": [0.9]})
    >>> record = shares_over_time_record(plan.simulate(replications=20), "weight 0.9")
    >>> record.arms, bool(record.share[-1, 1] > 0.6), bool(np.allclose(record.share.sum(axis=1), 1))
    (('plain', 'prize'), True, True)
    """
    readings, place, name = _way_of(forecast, way)
    question, paths = forecast.question, readings.paths
    total = paths.assigned[place].sum(axis=0, dtype=np.float64)
    people = total.sum(axis=-1) / paths.n_replications
    goes_on = np.diff(people, prepend=0.0) > 0.005 * people[-1]
    looks = np.flatnonzero(goes_on)
    chosen = looks[np.unique(np.linspace(0, looks.size - 1, MOST_STEPS).round().astype(int))]
    new = np.diff(total[chosen], axis=0, prepend=0.0)
    has_days = question.has_calendar
    times = readings.times[place].mean(axis=0) / SECONDS_A_DAY if has_days else people
    met = forecast.ways[name].days.median if has_days else forecast.ways[name].people.median
    return SharesOverTimeRecord(
        way=name,
        arms=question.arms,
        unit="days" if has_days else "people",
        time=times[chosen],
        share=new / new.sum(axis=-1, keepdims=True),
        met=float(met) if question.has_goal and np.isfinite(met) else None,
    )


def _way_of(forecast: Forecast, way: str | None) -> tuple[Readings, int, str]:
    """Return simulated experiments, and the place and name of a way among them."""
    if forecast.paths is None:
        raise InvalidInput("there is no chart to draw: the forecast has no simulated experiments")
    name = shown_way(forecast, way).name
    return Readings(forecast.paths, forecast.question), forecast.question.ways.index(name), name


def shares_over_time_chart(
    forecast: Forecast | SharesOverTimeRecord, *, way: str | None = None, width: int = WIDTH
) -> AnyChart:
    """Draw who gets what over time as stacked areas, named at the right; of many arms, the smallest together."""
    record = forecast if isinstance(forecast, SharesOverTimeRecord) else shares_over_time_record(forecast, way)
    alt = style.altair()
    names, share = _largest(style.labels(record.arms), record.share)
    texts = [f"{name}, {100 * last:.0f}" for name, last in zip(names, share[-1], strict=True)]
    height = 260
    room = min(round(6.6 * max(map(len, texts))) + 8, round(0.4 * width))
    width -= room  # for the names
    top = np.cumsum(share, axis=1)
    # The first people come before the first look.
    time = np.concatenate([[0.0], record.time])
    rows = [
        {
            "arm": name,
            "time": float(time[j]),
            "of_100": 100.0 * float(share[max(j - 1, 0), k]),
            "from": 100.0 * float(top[max(j - 1, 0), k] - share[max(j - 1, 0), k]),
            "to": 100.0 * float(top[max(j - 1, 0), k]),
        }
        for k, name in enumerate(names)
        for j in range(time.size)
    ]
    colours = [style.BANDS[k % len(style.BANDS)] for k in range(len(names))]
    x = alt.X(
        "time:Q",
        title=f"{record.unit} so far" if record.unit == "people" else "day",
        scale=alt.Scale(domain=[0, float(time[-1])], nice=False),
        axis=alt.Axis(
            tickCount=6 if width >= NARROW else 4, format=",.3~r" if record.unit == "days" else "~s", grid=False
        ),
    )
    y = alt.Y(
        "from:Q",
        title="of 100 people who come then",
        scale=alt.Scale(domain=[0, 100], nice=False),
        axis=alt.Axis(values=[0, 25, 50, 75, 100]),
    )
    tooltip = [alt.Tooltip("arm:N"), *style.numbers("time", digits=",.0f"), *style.numbers("of_100", digits=".1f")]
    base = style.chart_of(rows)
    layers: list[Any] = [
        base.mark_area(opacity=0.9, stroke="white", strokeWidth=1).encode(
            x=x,
            y=y,
            y2="to:Q",
            color=alt.Color("arm:N", legend=None, scale=alt.Scale(domain=list(names), range=colours)),
            tooltip=tooltip,
        )
    ]
    middles = 100.0 * (top[-1] - 0.5 * share[-1])
    spots = spread_apart((height * (1.0 - middles / 100.0)).tolist(), 15.0, height)
    for text, spot in zip(texts, spots, strict=True):
        label = style.chart_of([{"text": text}]).mark_text(align="left", baseline="middle", limit=room - 4)
        layers.append(label.encode(x=alt.value(width + 6), y=alt.value(spot), text="text:N"))
    if record.met is not None and record.met <= time[-1]:
        rule = style.chart_of([{"time": record.met, "text": "goal met (median)"}]).encode(x="time:Q")
        side = "right" if record.met > 0.5 * time[-1] else "left"
        layers += [
            rule.mark_rule(color="black", strokeDash=[5, 3], strokeWidth=1.2),
            rule.mark_text(align=side, baseline="bottom", color=style.GREY).encode(y=alt.value(-3), text="text:N"),
        ]
    picture = alt.layer(*layers).properties(width=width, height=height)
    notes = ["average over simulated experiments; at the right: of 100 people in the end"]
    return style.finished(picture, f"Who gets what: {record.way}", notes)


def _largest(names: tuple[str, ...], share: FloatArray) -> tuple[tuple[str, ...], FloatArray]:
    """Return the arms with the largest shares in the end, and the others added up."""
    if len(names) <= MOST_ARMS:
        return names, share
    order = np.argsort(-share[-1], kind="stable")
    shown, rest = np.sort(order[: MOST_ARMS - 1]), order[MOST_ARMS - 1 :]
    sums = share[:, rest].sum(axis=1, keepdims=True)
    return (*(names[k] for k in shown), f"{rest.size} others"), np.concatenate([share[:, shown], sums], axis=1)


@dataclass(frozen=True)
class SimulatedExperimentRecord:
    """Means with their intervals in one simulated experiment; arrays are (n_looks, n_arms), NaN while unknown."""

    way: str
    replication: int
    arms: tuple[str, ...]
    unit: str
    """Of time: "days" or "people"."""
    time: FloatArray
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    people: FloatArray
    truth: FloatArray
    """(n_arms,) The means that this experiment drew."""
    met: float | None
    """When the goal is met; None if it never is."""
    confidence: float


def simulated_experiment_record(
    forecast: Forecast, way: str | None = None, *, replication: int | None = None
) -> SimulatedExperimentRecord:
    """Return one simulated experiment to watch.

    Parameters
    ----------
    forecast : Forecast
    way : str, optional
        By default the recommended one.
    replication : int, optional
        Which experiment; by default the one in the middle, by the time for the goal or by the precision in the end.

    Examples
    --------
    >>> import equipoise as eq
    >>> plan = eq.Plan(arms={"plain": "10%", "prize": "20%"}, people=3000, goals=0.06, ways={"weights": [0.5]})
    >>> record = simulated_experiment_record(plan.simulate(replications=20), "weight 0.5", replication=3)
    >>> record.arms, record.truth, bool(record.met < 3000)
    (('plain', 'prize'), array([0.1, 0.2]), True)
    """
    readings, place, name = _way_of(forecast, way)
    question, paths = forecast.question, readings.paths
    if replication is None:
        which = _middle(readings, place)
    else:
        which = checks.whole_number("replication", replication, 0, paths.n_replications - 1)
    assigned = paths.assigned[place, which].astype(np.float64)
    has_days = question.has_calendar
    times = readings.times[place, which] / SECONDS_A_DAY if has_days else assigned.sum(axis=-1)
    goal = readings.goal
    met = goal.seconds[place, which] / SECONDS_A_DAY if has_days else goal.people[place, which]
    return SimulatedExperimentRecord(
        way=name,
        replication=int(paths.replication[which]),
        arms=question.arms,
        unit="days" if has_days else "people",
        time=times,
        mean=paths.estimate[place, which],
        low=paths.low[place, which],
        high=paths.high[place, which],
        people=assigned,
        truth=paths.mean[which],
        met=float(met) if question.has_goal and np.isfinite(met) else None,
        confidence=question.confidence,
    )


def _middle(readings: Readings, way: int) -> int:
    """Return the replication in the middle: by when it meets the goal, or else by how precise it is at the deadline."""
    values = readings.goal.seconds[way] if readings.question.has_goal else readings.at_deadline(readings.widest)[way]
    if not np.isfinite(np.median(values)):
        values = readings.at_deadline(readings.widest)[way]
    return int(np.argsort(values, kind="stable")[(values.size - 1) // 2])


def simulated_experiment_chart(
    forecast: Forecast | SimulatedExperimentRecord, *, way: str | None = None, width: int = WIDTH
) -> AnyChart:
    """Draw means with their intervals over time, a panel per arm, and the truth that the experiment does not know.

    Of many arms, those with the most people.
    """
    record = forecast if isinstance(forecast, SimulatedExperimentRecord) else simulated_experiment_record(forecast, way)
    alt = style.altair()
    names = style.labels(record.arms)
    shown = np.sort(np.argsort(-record.people[-1], kind="stable")[:MOST_ARMS]).tolist()
    columns = style.even_columns(len(shown), 2 if width < NARROW else 3)
    panel = (width - 28 * (columns - 1)) // columns
    low, high = _ends(record)
    rows = _experiment_rows(record, names, shown, low, high)
    x = alt.X(
        "time:Q",
        title=_TITLES[record.unit],
        axis=alt.Axis(tickCount=max(2, panel // 45), format="~s" if record.unit == "people" else ",.3~r"),
    )
    y = alt.Y(
        "mean:Q", title="mean reward", scale=alt.Scale(domain=[low, high], nice=False), axis=alt.Axis(tickCount=5)
    )
    so_far = alt.Chart().transform_filter("datum.kind == 'so far'").encode(x=x)
    layers = [
        so_far.mark_area(opacity=0.25, color=style.BLUE, clip=True).encode(
            y=alt.Y("low:Q", title="mean reward"), y2="high:Q"
        ),
        so_far.mark_line(color=style.BLUE, strokeWidth=2, clip=True).encode(
            y=y,
            tooltip=[
                alt.Tooltip("arm:N"),
                *style.numbers("time", "people", digits=",.0f"),
                *style.numbers("mean", "low", "high", digits=".3~g"),
            ],
        ),
        alt.Chart()
        .transform_filter("datum.kind == 'truth'")
        .mark_rule(color=style.VERMILION, strokeDash=[6, 3])
        .encode(y=y),
    ]
    notes = [
        f"line and band: mean so far, and {100 * record.confidence:g}% intervals for all arms together",
        "dashed: the truth, which the experiment does not know",
    ]
    if record.met is not None:
        met = alt.Chart().transform_filter("datum.kind == 'met'")
        layers.append(met.mark_rule(color="black", strokeDash=[2, 3]).encode(x=x))
        when = f"day {record.met:,.0f}" if record.unit == "days" else f"{record.met:,.0f} people"
        notes.append(f"dotted: the goal is met, {when}")
    picture = alt.layer(*layers, data=alt.Data(values=rows)).properties(width=panel, height=130)
    chart = style.panels(picture, "arm", [names[k] for k in shown], columns=columns)
    return style.finished(chart, f"One simulated experiment to watch: {record.way}", notes)


def _experiment_rows(
    record: SimulatedExperimentRecord, names: tuple[str, ...], shown: list[int], low: float, high: float
) -> list[dict[str, Any]]:
    """Return what is drawn of each arm; an interval without an end runs to the edge."""
    rows: list[dict[str, Any]] = []
    for k in shown:
        shared = {"arm": names[k]}
        rows.append(shared | {"kind": "truth", "mean": float(record.truth[k])})
        if record.met is not None:
            rows.append(shared | {"kind": "met", "time": record.met})
        rows += [
            shared
            | {
                "kind": "so far",
                "time": float(record.time[j]),
                "mean": float(record.mean[j, k]),
                "low": float(np.nan_to_num(record.low[j, k], nan=low, neginf=low)),
                "high": float(np.nan_to_num(record.high[j, k], nan=high, posinf=high)),
                "people": float(record.people[j, k]),
            }
            for j in np.flatnonzero(np.isfinite(record.mean[:, k])).tolist()
        ]
    return rows


def _ends(record: SimulatedExperimentRecord) -> tuple[float, float]:
    """Return the ends of the axis of means: those of the intervals after a tenth of the looks, as they start wide."""
    later = slice(record.time.size // 10, None)
    values = np.concatenate([record.low[later].ravel(), record.high[later].ravel(), record.truth])
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    edge = 0.04 * (high - low) or 0.5
    return low - edge, high + edge
