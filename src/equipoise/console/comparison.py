"""Show which arms differ, which can be ruled out, what may be said, and what choosing one costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from equipoise import charts, quantities
from equipoise.analysis.decisions import Decision, decision_of
from equipoise.analysis.result_tables import MOST_ARMS, differences_section, rank_text, shown_pairs
from equipoise.charts.vega_lite import decimals_of, interval_text, number_text
from equipoise.console.addresses import address
from equipoise.console.pictures import Picture, drawn_for, picture
from equipoise.console.visits import Shown, Visit
from equipoise.errors import InvalidInput, UnknownArm
from equipoise.experiment.records import Comparison

MOST_LISTED = 100
"""Arms to choose the control from in a list; of more, one types its name."""
ALL_PAIRS = "*"
"""As the control: all pairs."""


@dataclass(frozen=True)
class Choice:
    """What is compared, as the address says: the control or all pairs, the confidence, and whether for any rewards."""

    control: str
    """Name of an arm; "*" for all pairs."""
    confidence: str
    guaranteed: bool

    @property
    def query(self) -> dict[str, str]:
        """The same as an address has it."""
        given = {"control": self.control, "confidence": self.confidence}
        found = {name: value for name, value in given.items() if value}
        return found | ({"guaranteed": "1"} if self.guaranteed else {})

    @property
    def asked(self) -> dict[str, Any]:
        """The same as arguments of `Experiment.compare`."""
        found: dict[str, Any] = {}
        if self.control == ALL_PAIRS:
            found["all_pairs"] = True
        elif self.control:
            found["control"] = self.control
        if self.confidence:
            found["confidence"] = quantities.fraction(self.confidence)
        return found | ({"guaranteed": True} if self.guaranteed else {})


@dataclass(frozen=True)
class ArmLine:
    """A row of the table of arms, as texts."""

    arm: str
    is_control: bool
    rewards: int
    mean: str
    interval: str
    standing: str
    rank: str
    most_lost: str


@dataclass(frozen=True)
class DifferenceLine:
    """A row of the table of differences, as texts."""

    arm: str
    other: str
    difference: str
    interval: str
    verdict: str
    lift: str
    kind: str


@dataclass(frozen=True)
class ComparisonView:
    """Which arms differ, and what follows."""

    choice: Choice
    comparison: Comparison | None
    """None if the address asks for something that cannot be compared; `problem` says why."""
    problem: str
    decision: Decision | None
    arms: tuple[ArmLine, ...]
    n_more_arms: int
    differences: tuple[DifferenceLine, ...]
    differences_title: str
    notes: tuple[str, ...]
    differences_picture: Picture | None
    names: tuple[str, ...]
    """Arms to choose the control from; none if there are too many."""
    has_range: bool
    """Whether differences can be guaranteed: that needs a declared range of rewards."""
    json_query: str
    at: str = ""
    """The event of the past that it is about."""


def show(visit: Visit) -> Shown:
    """Show a comparison."""
    configuration = visit.description["configuration"]
    names = tuple(arm["name"] for arm in visit.description["arms"])
    choice = _choice(visit, configuration)
    problem, found = "", None
    try:
        found = visit.the.compare(**choice.asked)
    except (InvalidInput, UnknownArm) as error:
        problem = f"{error.message[0].upper()}{error.message[1:]}."
    bounds = configuration.get("reward_range")
    view = view_of(
        found,
        choice,
        problem=problem,
        names=names if len(names) <= MOST_LISTED else (),
        has_range=bounds is not None and None not in bounds,
        source=address("e/{name}/compare/differences.json", name=visit.names["name"]),
        at=visit.past_query,
    )
    title = "Compare" if found is None or not found.sentences else found.sentences[0]
    return Shown("compare.html", view, title, 200 if found is not None else 422)


def differences_chart(visit: Visit) -> dict[str, Any]:
    """Return the chart of the differences."""
    found = visit.the.compare(**_choice(visit, visit.description["configuration"]).asked)
    return drawn_for(visit, lambda width: charts.live_differences_chart(found, width=width))


def _choice(visit: Visit, configuration: dict[str, Any]) -> Choice:
    query = visit.query
    return Choice(
        control=query.get("control", configuration.get("control") or ""),
        confidence=query.get("confidence", "").strip(),
        guaranteed=query.get("guaranteed") == "1",
    )


def view_of(
    found: Comparison | None,
    choice: Choice,
    *,
    source: str,
    at: dict[str, str] | None = None,
    problem: str = "",
    names: tuple[str, ...] = (),
    has_range: bool = False,
) -> ComparisonView:
    """Return what the page shows of a comparison."""
    past = at or {}
    pairs, notes = ([], []) if found is None else shown_pairs(found, found.differences)
    pairs = [pair for pair in pairs if pair.difference is not None]
    decimals = decimals_of([(pair.low, pair.high) for pair in pairs])
    return ComparisonView(
        choice=choice,
        comparison=found,
        problem=problem,
        decision=None if found is None else decision_of(found),
        arms=() if found is None else _arm_lines(found),
        n_more_arms=0 if found is None else max(0, len(found.arms) - MOST_ARMS),
        differences=tuple(
            DifferenceLine(
                arm=str(pair.arm),
                other=str(pair.other),
                difference=_text(pair.difference, decimals, sign=True),
                interval=interval_text(pair.low, pair.high, decimals),
                verdict=pair.verdict,
                lift=_lift(pair.lift, pair.lift_low, pair.lift_high),
                kind=pair.interval,
            )
            for pair in pairs
        ),
        differences_title="" if found is None else differences_section(found).title,
        notes=tuple(notes),
        differences_picture=None
        if found is None
        else picture("differences", source, lambda: charts.live_differences_chart(found), choice.query | past),
        names=names,
        has_range=has_range,
        json_query=urlencode(choice.query | past | {"format": "json"}),
        at=past.get("at", ""),
    )


def _arm_lines(found: Comparison) -> tuple[ArmLine, ...]:
    up = 1.0 if found.direction == "maximise" else -1.0
    ranked = sorted(found.arms, key=lambda arm: (arm.mean is None, -up * (arm.mean or 0.0)))[:MOST_ARMS]
    decimals = decimals_of([(arm.low, arm.high) for arm in found.arms])
    best = "is best" if found.best is not None else "may be best"
    return tuple(
        ArmLine(
            arm=arm.arm,
            is_control=arm.arm == found.control,
            rewards=arm.rewarded,
            mean=_text(arm.mean, decimals),
            interval=interval_text(arm.low, arm.high, decimals),
            standing="retired" if arm.retired else best if arm.may_be_best else "ruled out",
            rank=rank_text(arm, " to "),
            most_lost=_text(arm.most_lost, decimals),
        )
        for arm in ranked
    )


def _text(value: float | None, decimals: int | None, *, sign: bool = False) -> str:
    return "-" if value is None else number_text(value, decimals, sign=sign)


def _lift(lift: float | None, low: float | None, high: float | None) -> str:
    if lift is None or low is None:
        return "-"
    text = f"{lift:+.0%} (from {low:+.0%})" if high is None else f"{lift:+.0%} ({low:+.0%} to {high:+.0%})"
    return text.replace("-", "\N{MINUS SIGN}")
