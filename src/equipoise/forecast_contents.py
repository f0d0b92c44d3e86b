"""Collect what pages show of a forecast: recommendation, price list, stopping rules, charts, assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.charts import forecasts, simulated_experiments
from equipoise.charts.forecasts import deadline_text
from equipoise.charts.pages import NARROW, WIDE, Cell, Picture, Table, plain_specification
from equipoise.planner.plan_assumptions import Assumption, assumptions
from equipoise.planner.plan_words import out_of, whole, width
from equipoise.planner.recommendation import chosen_way, goal_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from equipoise._types import FloatArray
    from equipoise.planner.figures import Range
    from equipoise.planner.forecast import Forecast
    from equipoise.planner.recommendation import Sentence
    from equipoise.planner.way_forecast import WayForecast

PARAGRAPHS = (
    ("way", "goal", "equal", "last", "reach", "closest", "provisional"),
    ("gain", "best", "worse", "cost", "control"),
    ("declare", "rest", "finer", "options"),
    ("free", "next"),
    ("honesty", "bias", "doubt"),
)
"""Which sentences of a recommendation stand together, by what they are about; any other ones come last."""
_MOST_DAYS = 13


@dataclass(frozen=True)
class ForecastContents:
    """What a page shows of a forecast besides its charts."""

    title: str
    lead: str
    """The question in a sentence."""
    paragraphs: list[list[str]]
    """The recommendation."""
    prices: Table
    chosen: str | None
    """The way that is recommended."""
    rules: Table | None
    """Stopping rules to declare."""
    assumptions: list[Assumption]
    source: list[str]
    """Where the figures come from."""
    plan_text: str | None
    """The plan as a file."""
    digest: str | None


def contents_of(forecast: Forecast) -> ForecastContents:
    """Return what a page shows of a forecast besides its charts, which take longer."""
    chosen, plan = chosen_way(forecast), forecast.plan
    return ForecastContents(
        title=forecast.question.title or "Forecast of an experiment",
        lead=lead(forecast),
        paragraphs=paragraphs(forecast.recommendation()),
        prices=price_list(forecast),
        chosen=None if chosen is None else chosen.name,
        rules=stopping_rules(forecast),
        assumptions=[] if plan is None else assumptions(plan),
        source=source(forecast),
        plan_text=None if plan is None else plan.to_toml(),
        digest=None if plan is None else plan.digest,
    )


def lead(forecast: Forecast) -> str:
    """Return the question in a sentence.

    Examples
    --------
    >>> import equipoise as eq
    >>> lead(eq.plan(rates="10%,12%", people=3000, precision=0.05, information_kept=[0.7], replications=20))
    'How to assign people to 2 arms, to know every arm to ±0.05?'
    """
    question = forecast.question
    outcome = f", where the reward is '{question.outcome}'" if question.outcome else ""
    goal = f", to know {goal_in_words(question)}" if question.has_goal else ""
    by = deadline_text(question)
    return f"How to assign people to {len(question.arms):,} arms{outcome}{goal}{f' by {by}' if by else ''}?"


def source(forecast: Forecast) -> list[str]:
    """Return where the figures come from, and what their ranges say."""
    if forecast.by_formula:
        return ["By formula, before the cost of learning. Simulate for ranges."]
    n = forecast.replications + forecast.luck_replications
    found = [f"From {n:,} simulated experiments of each way. Ranges hold 8 in 10 of them."]
    if forecast.luck_replications:
        found.append(
            f"In {forecast.replications:,} the truth is drawn from the guesses, so that ranges hold what one "
            f"does not know. In {forecast.luck_replications:,} every guess is right: ranges by luck alone are narrower."
        )
    if forecast.interrupted:
        found.append("The simulations were interrupted early: more of them would make the figures more certain.")
    return found


def paragraphs(sentences: Sequence[Sentence]) -> list[list[str]]:
    """Return the sentences in paragraphs, without the source, which stands elsewhere on the page."""
    known = {about for group in PARAGRAPHS for about in group} | {"source"}
    groups = [[one.text for one in sentences if one.about in group] for group in PARAGRAPHS]
    groups.append([one.text for one in sentences if one.about not in known])
    return [group for group in groups if group]


# Tables


def price_list(forecast: Forecast) -> Table:
    """Return what every way brings, as a table."""
    question, ways = forecast.question, list(forecast.ways.values())
    goal, by = goal_in_words(question), deadline_text(question)
    columns: list[tuple[str, Callable[[WayForecast], Cell]]] = []
    if question.has_goal and question.has_calendar:
        columns.append(("days until the goal", lambda way: _range(way, lambda one: one.days, _days)))
    if question.has_goal:
        columns.append(("people until the goal", lambda way: _range(way, lambda one: one.people, _people)))
        columns.append((f"meets it by {by}" if by else "meets it", lambda way: Cell(_of_100(way.chance.value))))
    columns.append(
        (
            "gain per 100 people",
            lambda way: Cell("0") if way is forecast.equal_shares else _range(way, lambda one: one.gain_per_100, _gain),
        )
    )
    columns.append(("with the best arm", lambda way: _range(way, lambda one: one.best_share, _share)))
    if question.control is not None:
        columns.append(("people worse off", lambda way: _range(way, lambda one: one.worse_than_control, _people)))
    columns.append(
        (f"widest ± by {by}" if by else "widest ± in the end", lambda way: _range(way, lambda one: one.widest, _width))
    )
    columns.append(("names the best arm", lambda way: Cell(_of_100(way.names_best.value))))
    if any(way.cost is not None for way in ways):
        columns.append(("costs", lambda way: _range(way, lambda one: one.cost, _people)))
    by_luck = "; in brackets: by luck alone" if forecast.luck_replications else ""
    shown = [(head, [cell(way) for way in ways]) for head, cell in columns]
    shown = [(head, cells) for head, cells in shown if any(cell.text for cell in cells)]  # unknown by formula
    figures = "By formula" if forecast.by_formula else f"Medians, with ranges below them that hold 8 in 10{by_luck}"
    return Table(
        f"{figures}.{f' The goal: to know {goal}.' if goal else ''}",
        ("way", *(head for head, _ in shown)),
        [(Cell(way.name), *(cells[k] for _, cells in shown)) for k, way in enumerate(ways)],
    )


def _range(way: WayForecast, figure: Callable[[WayForecast], Range | None], text: Callable[[float], str]) -> Cell:
    """Return a figure with its range, and the range if every guess is right."""
    found = figure(way)
    if found is None or math.isnan(found.median):
        return Cell("")
    notes = []
    if found.low != found.high and math.isfinite(found.low):
        notes.append(_ends(found, text))
    alone = None if way.luck_alone is None else figure(way.luck_alone)
    if alone is not None and notes and math.isfinite(alone.low):
        notes.append(f"({_ends(alone, text)})")
    return Cell(text(found.median), tuple(notes))


def _ends(found: Range, text: Callable[[float], str]) -> str:
    if not math.isfinite(found.high):
        return f"{text(found.low)} or more" if math.isfinite(found.low) else ""
    low, high = text(found.low), text(found.high).removeprefix("\u00b1")
    return low if low.removeprefix("\u00b1") == high else f"{low} to {high}"


def _days(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "not reached"


def _people(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "not reached"


def _gain(value: float) -> str:
    digits = 1 if abs(value) >= 0.95 else 2
    return f"{value:+.{digits}f}".replace("-", "\u2212") if round(value, digits) else "0"


def _share(value: float) -> str:
    return f"{100 * value:.0f}%"


def _width(value: float) -> str:
    return f"\u00b1{value:#.2g}" if math.isfinite(value) else "unknown"


def _of_100(value: float) -> str:
    if not math.isfinite(value):
        return ""
    happened, of = out_of(value)
    return f"{happened.text} of {of.text}"


def stopping_rules(forecast: Forecast) -> Table | None:
    """Return what to declare for each way; None without simulated experiments."""
    question = forecast.question
    if not forecast.stopping:
        return None
    by = deadline_text(question)
    columns = ["way", f"finest precision by {by}" if by else "finest precision", "reached by"]
    columns += ["in days"] if question.has_calendar else []
    columns.append("people that suffice")
    columns += ["the rest end with"] if question.precision is not None else []
    rows = []
    for choice in forecast.stopping:
        none = choice.precision is None
        row = [Cell(choice.way), Cell("none" if choice.precision is None else f"\u00b1{width(choice.precision).text}")]
        row.append(Cell("" if none else _of_100(choice.chance.value)))
        if question.has_calendar:
            row.append(Cell("" if none else _days(choice.days.median), () if none else (_ends(choice.days, _days),)))
        row.append(Cell("more than come" if choice.budget is None else whole(choice.budget).text))
        if question.precision is not None:
            rest = "" if choice.rest_width is None else f"half of them \u00b1{choice.rest_width:.2g} or better"
            row.append(Cell(f"{_of_100(choice.rest)}: {rest}" if rest else ""))
        rows.append(tuple(row))
    kept = [k for k in range(len(columns)) if any(row[k].text for row in rows)]
    columns, rows = [columns[k] for k in kept], [tuple(row[k] for k in kept) for row in rows]
    sure, of = out_of(question.sureness)
    caption = (
        f"The finest round precision that {sure.text} of {of.text} experiments reach, and people that suffice for "
    )
    caption += "the goal" if question.has_goal else "it"
    return Table(f"{caption} in 9 of 10.", tuple(columns), rows)


# Charts


def pictures(forecast: Forecast) -> list[Picture]:
    """Return the charts that a forecast has data for."""
    found = [_price(forecast)]
    if forecast.stopping:
        found.append(_chance(forecast))
    if all(way.bands is not None for way in forecast.ways.values()):
        found.append(_precision(forecast))
    if forecast.paths is not None:
        found.append(_shares(forecast))
    effects = forecasts.effects_record(forecast)
    if effects.guesses:
        found.append(_effects(effects))
    if forecast.paths is not None:
        found.append(_experiment(forecast))
    return found


def _picture(key: str, draw: Callable[[int], Any], data: Table) -> Picture:
    """Return a picture in both widths; its title becomes a heading of the page."""
    wide, narrow = (plain_specification(draw(pixels).to_dict()) for pixels in (WIDE, NARROW))
    title = wide["title"]
    notes = title["subtitle"]
    for one in (wide, narrow):
        del one["title"]
        one["config"]["padding"] = 4
    return Picture(key, title["text"], [notes] if isinstance(notes, str) else notes, wide, narrow, data)


def _price(forecast: Forecast) -> Picture:
    record = forecasts.price_record(forecast)
    text = {"days": _days, "people": _people, "half-width": _width}[record.unit]
    rows = [
        (Cell(way), *_three(record.taken, k, text), *_three(record.gain, k, _gain)) for k, way in enumerate(record.ways)
    ]
    unit = "widest \u00b1" if record.unit == "half-width" else record.unit
    columns = ("way", unit, "from", "to", "gain per 100", "from", "to")
    return _picture(
        "price",
        lambda pixels: forecasts.price_chart(record, width=pixels),
        Table("Medians and 8-in-10 ranges", columns, rows),
    )


def _three(ends: forecasts.Ends, k: int, text: Callable[[float], str]) -> list[Cell]:
    return [Cell(text(float(end[k]))) for end in ends]


def _chance(forecast: Forecast) -> Picture:
    record = forecasts.chance_record(forecast)
    is_telling = (record.chance.max(axis=0) > 0) & (record.chance.min(axis=0) < 1)
    places = _some(np.flatnonzero(is_telling) if is_telling.any() else np.arange(record.half_width.size))
    rows = [
        (
            Cell(f"\u00b1{width(float(record.half_width[j])).text}"),
            *(Cell(_share(float(one))) for one in record.chance[:, j]),
        )
        for j in places
    ]
    caption = "Share of simulated experiments that reach each precision"
    data = Table(caption, ("precision", *record.ways), rows)
    return _picture("chance", lambda pixels: forecasts.chance_chart(record, width=pixels), data)


def _some(places: Any) -> list[int]:
    """Return some of many places, evenly."""
    kept = np.unique(np.linspace(0, places.size - 1, min(places.size, _MOST_DAYS)).round().astype(int))
    return [int(one) for one in places[kept]]


def _precision(forecast: Forecast) -> Picture:
    record = forecasts.precision_record(forecast)
    places = _some(np.flatnonzero(np.isfinite(record.median).any(axis=0)))
    rows = [
        (Cell(_people(record.time[record.equal_shares, j])), *(Cell(_width(float(one))) for one in record.median[:, j]))
        for j in places
    ]
    data = Table("Median of the widest \u00b1", (_unit(record.unit), *record.ways), rows)
    return _picture("precision", lambda pixels: forecasts.precision_chart(record, width=pixels), data)


def _unit(unit: str) -> str:
    return "day" if unit == "days" else unit


def _shares(forecast: Forecast) -> Picture:
    record = simulated_experiments.shares_over_time_record(forecast)
    rows = _rows(record.time, record.share, _share)
    data = Table("Of those who come then, the share of each arm", (_unit(record.unit), *record.arms), rows)
    return _picture("shares", lambda pixels: simulated_experiments.shares_over_time_chart(record, width=pixels), data)


def _rows(time: FloatArray, values: FloatArray, text: Callable[[float], str]) -> list[tuple[Cell, ...]]:
    return [
        (Cell(_people(time[j])), *(Cell(text(float(one))) for one in values[j])) for j in _some(np.arange(time.size))
    ]


def _effects(record: forecasts.EffectsRecord) -> Picture:
    unit = "days" if record.figure == "days" else "gain per 100 people"
    rows = [
        (Cell(guess), Cell(_gain(float(change))), Cell(f"{error:.2g}"))
        for guess, change, error in zip(record.guesses, record.change, record.error, strict=True)
    ]
    data = Table(f"Change of the {unit}", ("guess", unit, "standard error"), rows)
    return _picture("effects", lambda pixels: forecasts.effects_chart(record, width=pixels), data)


def _experiment(forecast: Forecast) -> Picture:
    record = simulated_experiments.simulated_experiment_record(forecast)
    rows = []
    for j in _some(np.arange(record.time.size)):
        cells = (
            Cell("") if math.isnan(mean) else Cell(f"{mean:.3g}", (f"{low:.3g} to {high:.3g}",))
            for mean, low, high in zip(record.mean[j], record.low[j], record.high[j], strict=True)
        )
        rows.append((Cell(_people(record.time[j])), *cells))
    data = Table("Means so far, with their intervals", (_unit(record.unit), *record.arms), rows)
    return _picture(
        "experiment", lambda pixels: simulated_experiments.simulated_experiment_chart(record, width=pixels), data
    )
