"""What to expect of an experiment before anybody is assigned: figures for every way, and what follows from them."""

from __future__ import annotations

import html
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from equipoise.planner.figures import Range
from equipoise.planner.paths import Paths
from equipoise.planner.question import Question
from equipoise.planner.recommendation import Sentence, recommendation
from equipoise.planner.sensitivity import Effect, effects_of
from equipoise.planner.stopping_choice import Alternatives, StoppingChoice, alternatives_of, stopping_choices
from equipoise.planner.way_forecast import Readings, WayForecast, way_forecasts
from equipoise.serialization import json_data

if TYPE_CHECKING:
    from equipoise.experiment import Experiment
    from equipoise.planner.plan import Plan
    from equipoise.store import Store


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """What to expect of each way to assign people, read off simulated experiments.

    Ranges hold 8 in 10 simulated experiments. They include what one does not know: every simulated experiment draws its
    truth from the guesses. `luck_alone` of a way has the ranges if all guesses are right.

    Attributes
    ----------
    question : Question
        What was asked: the goal, the deadline, the arms.
    ways : dict of WayForecast
        By the name of the way.
    replications : int
        Simulated experiments per way with drawn truths.
    luck_replications : int
        Those with every guess right; 0 where no guess has a range.
    stopping : tuple of StoppingChoice
        Per way, what to declare.
    effects : tuple of Effect
        Which guesses matter, the most important first.
    by_formula : bool
        Whether the figures are by formula, before the cost of learning, instead of from simulations.
    interrupted : bool
        Whether Ctrl-C ended the simulations early.
    """

    question: Question
    ways: dict[str, WayForecast]
    replications: int
    luck_replications: int = 0
    stopping: tuple[StoppingChoice, ...] = ()
    effects: tuple[Effect, ...] = ()
    alternatives: Alternatives | None = None
    by_formula: bool = False
    interrupted: bool = False
    seconds: float = 0.0
    plan: Plan | None = field(default=None, repr=False)
    paths: Paths | None = field(default=None, repr=False)

    @property
    def equal_shares(self) -> WayForecast:
        """The forecast of equal shares."""
        return self.ways[self.question.ways[self.question.equal_shares]]

    @cached_property
    def _sentences(self) -> tuple[Sentence, ...]:
        return recommendation(self)

    def recommendation(self) -> list[Sentence]:
        """Return what to do, in plain sentences, each with the numbers in it, the most important first."""
        return list(self._sentences)

    def sensitivity(self) -> list[Effect]:
        """Return which guesses matter, the most important first."""
        return list(self.effects)

    def is_settled(self, *, of_days: float = 0.03, of_gain: float = 0.05) -> bool:
        """Return whether further simulations would change little: by the standard errors of median days and gains.

        Parameters
        ----------
        of_days : float
            Standard error of median days, relative to them.
        of_gain : float
            Standard error of the median gain per 100 people, relative to the largest gain of all ways.
        """
        gains = [abs(way.gain_per_100.median) for way in self.ways.values()]
        largest = max(gains, default=0.0)
        for way in self.ways.values():
            days = way.days
            if math.isfinite(days.median) and not days.median_error <= of_days * days.median:
                return False
            if largest > 0 and not way.gain_per_100.median_error <= of_gain * largest:
                return False
        return True

    def table(self) -> list[dict[str, Any]]:
        """Return the price list as rows of plain values, one per way; None where the goal is not met."""
        rows = []
        for way in self.ways.values():
            row: dict[str, Any] = {"way": way.name}
            for name, found in (("days", way.days), ("people", way.people)):
                row |= _three(name, found)
            row["chance"] = json_data(way.chance.value)
            alone = way.luck_alone or way
            row |= {"days_luck_low": json_data(alone.days.low), "days_luck_high": json_data(alone.days.high)}
            row |= _three("gain_per_100", way.gain_per_100) | _three("gain", way.gain)
            row["best_share"] = json_data(way.best_share.median)
            row["worse_than_control"] = None if way.worse_than_control is None else way.worse_than_control.median
            row["chance_worse"] = None if way.chance_worse is None else way.chance_worse.value
            row["widest"] = json_data(way.widest.median)
            row["names_best"] = json_data(way.names_best.value)
            row["coverage"] = json_data(way.coverage.value)
            row["cost"] = None if way.cost is None else json_data(way.cost.median)
            rows.append(row)
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return everything as data that JSON can hold; what is never reached is None."""
        ways = {}
        for name, way in self.ways.items():
            ways[name] = json_data(way)
        question: dict[str, Any] = json_data(self.question)
        return {
            "question": question,
            "replications": self.replications,
            "luck_replications": self.luck_replications,
            "by_formula": self.by_formula,
            "interrupted": self.interrupted,
            "ways": ways,
            "stopping": json_data(self.stopping),
            "effects": json_data(self.effects),
            "alternatives": json_data(self.alternatives),
            "recommendation": json_data(self._sentences),
        }

    def create(self, store: Store | str, name: str, *, way: str | None = None, **settings: Any) -> Experiment:
        """Create the experiment that this is about, and keep with it what was planned.

        Parameters
        ----------
        store, name : Store or str, and str
            As in `Experiment.create`.
        way : str, optional
            Which way to assign people; the recommended one by default.
        **settings
            More arguments of `Experiment.create`, such as `seed` or `metadata`.
        """
        from equipoise.planner.planned_experiment import create_experiment

        return create_experiment(self, store, name, way=way, **settings)

    def to_json(self) -> str:
        """Return everything as JSON text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def _repr_html_(self) -> str:
        """Show the recommendation and the price list in a notebook."""
        heads = ("", "days until the goal", "in time", "gain per 100", "with the best arm", "widest ±")
        cells = [
            (
                way.name,
                _text(way.days, 0),
                f"{100 * way.chance.value:.0f} %" if math.isfinite(way.chance.value) else "",
                _text(way.gain_per_100, 2, sign=True),
                f"{100 * way.best_share.median:.0f} %",
                f"{way.widest.median:.3g}" if math.isfinite(way.widest.median) else "",
            )
            for way in self.ways.values()
        ]
        said = " ".join(html.escape(sentence.text) for sentence in self._sentences)
        head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
        rows = "".join("<tr>" + "".join(f"<td>{html.escape(one)}</td>" for one in row) + "</tr>" for row in cells)
        source = "By formula, before the cost of learning." if self.by_formula else self._source
        return f"<p>{said}</p><table><tr>{head}</tr>{rows}</table><p>{source}</p>"

    @property
    def _source(self) -> str:
        return f"From {self.replications + self.luck_replications} simulated experiments per way; ranges hold 8 in 10."

    def __str__(self) -> str:
        """Return the recommendation as text."""
        return "\n".join(sentence.text for sentence in self._sentences)

    def __repr__(self) -> str:
        kind = "by formula" if self.by_formula else f"{self.replications} simulated experiments each"
        return f"Forecast({len(self.ways)} ways, {len(self.question.arms)} arms, {kind})"


def forecast_of(
    question: Question,
    paths: Paths,
    at_guesses: Paths | None = None,
    *,
    plan: Plan | None = None,
    interrupted: bool = False,
    seconds: float = 0.0,
) -> Forecast:
    """Return the forecast that simulated experiments give.

    Parameters
    ----------
    question : Question
    paths : Paths
        Of experiments whose truths are drawn from the guesses.
    at_guesses : Paths, optional
        Of experiments in which every guess is right; left out where no guess has a range.
    """
    readings = Readings(paths, question)
    luck = None if at_guesses is None else Readings(at_guesses, question)
    ways = way_forecasts(readings, luck)
    return Forecast(
        question=question,
        ways={way.name: way for way in ways},
        replications=paths.n_replications,
        luck_replications=0 if at_guesses is None else at_guesses.n_replications,
        stopping=stopping_choices(readings),
        effects=effects_of(readings),
        alternatives=alternatives_of(readings),
        interrupted=interrupted,
        seconds=seconds,
        plan=plan,
        paths=paths,
    )


def _three(name: str, found: Range) -> dict[str, float | None]:
    return {name: json_data(found.median), f"{name}_low": json_data(found.low), f"{name}_high": json_data(found.high)}


def _text(found: Range, digits: int, *, sign: bool = False) -> str:
    """Return a range in a cell."""
    if not math.isfinite(found.median):
        return "not reached"
    form = f"{'+' if sign else ''}.{digits if digits < 2 else 1}f"
    high = f"{found.high:{form}}" if math.isfinite(found.high) else "not reached"
    return f"{found.median:{form}} ({found.low:{form}} to {high})"
