"""Show what each position of the dial gives people and costs, and let admins turn it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from equipoise import charts
from equipoise.charts.vega_lite import WIDTH
from equipoise.console.addresses import address
from equipoise.console.dial_change import DONE
from equipoise.console.dial_words import (
    MOST_TIMES,
    ArmRow,
    PositionWords,
    arm_rows,
    chart_factor,
    gain_words_of,
    words_of,
)
from equipoise.console.pictures import Picture, drawn_for, picture
from equipoise.console.visits import Redirect, Shown, Visit
from equipoise.errors import EquipoiseError, InvalidInput
from equipoise.experiment.dial import POLICY_DIAL, dial_words
from equipoise.experiment.gain_words import GainWords
from equipoise.experiment.records import Prices, Status

PATH = "e/{name}/dial"
LONGEST_REASON = 2000
_NARROW = 400
_TEXTS = ("information_about",)


@dataclass(frozen=True)
class PresetLink:
    """A named position."""

    name: str
    number: str
    place: int


@dataclass(frozen=True)
class DialView:
    """The dial, at one position."""

    prices: Prices
    place: int
    """The position shown."""
    here: PositionWords | None
    options: tuple[PositionWords, ...]
    arms: tuple[ArmRow, ...]
    presets: tuple[PresetLink, ...]
    picture: Picture | None
    present: str
    needs: str
    field: str
    """The field of the form that is a number: reward_weight or information_kept."""
    present_number: str
    is_open: bool
    """Whether anybody may come whom the dial matters to."""
    reason: str
    problem: str
    longest_reason: int = LONGEST_REASON


@dataclass(frozen=True)
class NoDialView:
    """An experiment whose policy has no dial."""

    policy: str


@dataclass(frozen=True)
class Positions:
    """All positions, as the script of the page moves through them."""

    present: int
    positions: tuple[PositionWords, ...]


def show(visit: Visit) -> Shown:
    """Show the dial at the position that the address names, or where it is."""
    return _shown(visit)


def act(visit: Visit) -> Redirect | Shown:
    """Turn the dial."""
    try:
        visit.the.change_dial(**stated(visit.form), reason=visit.form.get("reason", "").strip() or None)
    except EquipoiseError as error:
        return _shown(visit, f"{error.message[0].upper()}{error.message[1:]}.")
    return Redirect(f"{address('e/{name}', name=visit.the.name)}?{DONE}")


def positions(visit: Visit) -> Positions:
    """Return all positions in words."""
    prices = visit.the.prices()
    words = words_of(prices, visit.status, _description(visit))
    return Positions(prices.present or 0, words)


def prices_chart(visit: Visit) -> dict[str, Any]:
    """Return the chart of gain against people, with a place for the position that is looked at."""
    prices = visit.the.prices()
    words = gain_words_of(prices, visit.status, _description(visit))
    return drawn_for(visit, lambda width: chart_of(prices, words, width))


def _shown(visit: Visit, problem: str = "") -> Shown:
    status, dial = visit.status, visit.the.configuration.dial
    if not dial:
        policy = type(visit.the.configuration.policy).__name__
        return Shown("no-dial.html", NoDialView(policy), "No dial")
    prices = visit.the.prices()
    view = view_of(
        prices,
        status,
        _description(visit),
        at=visit.query.get("at", "") or _number_in(visit.form.get(_field(dial), "")),
        source=address(f"{PATH}/prices.json", name=visit.the.name),
        dial=dial,
        reason=visit.form.get("reason", ""),
        problem=problem,
    )
    return Shown("dial.html", view, "Who should get what works?", 422 if problem else 200)


def _number_in(text: str) -> str:
    """Return a text if it is a number, to show a form again where it was."""
    try:
        return text if math.isfinite(float(text)) else ""
    except ValueError:
        return ""


def _field(dial: dict[str, Any]) -> str:
    """Return which number of a dial is turned."""
    return "information_kept" if "information_kept" in dial else "reward_weight"


def _description(visit: Visit) -> dict[str, Any]:
    found = visit.description.get("description")
    return found if isinstance(found, dict) else {}


def view_of(
    prices: Prices,
    status: Status,
    description: dict[str, Any],
    *,
    at: str = "",
    source: str = "",
    dial: dict[str, Any],
    reason: str = "",
    problem: str = "",
) -> DialView:
    """Return the page at the position whose number is nearest to `at`."""
    options = words_of(prices, status, description)
    place = nearest(options, at) if at and options else prices.present or 0
    words = gain_words_of(prices, status, description)
    drawn = picture("prices", source, lambda: chart_of(prices, words, WIDTH)) if options else None
    field = _field(dial)
    return DialView(
        prices=prices,
        place=place,
        here=options[place] if options else None,
        options=options,
        arms=arm_rows(prices, place) if options else (),
        presets=tuple(
            PresetLink(preset.name, options[preset.position].number, preset.position) for preset in prices.presets
        ),
        picture=drawn,
        present=dial_words(dial),
        needs=prices.needs,
        field=field,
        present_number=f"{dial[field]:.12g}",
        is_open=status.state in ("enrolling", "paused"),
        reason=reason,
        problem=problem,
    )


def nearest(options: tuple[PositionWords, ...], at: str) -> int:
    """Return the place of the position whose number is nearest."""
    try:
        wanted = float(at)
    except ValueError:
        wanted = math.nan
    if not math.isfinite(wanted) or not options:
        raise InvalidInput.of("at", "must be the number of a position of the dial", at)
    return min(range(len(options)), key=lambda k: abs(float(options[k].number) - wanted))


def chart_of(prices: Prices, words: GainWords, width: int) -> dict[str, Any]:
    """Return the chart of gain against people, with an empty layer for the position that is looked at."""
    if prices.present is None:
        raise InvalidInput("there is no chart to draw: there are no prices yet")
    by_weight = all(one.reward_weight is not None for one in prices.positions)
    factor = chart_factor(words)
    points = []
    for k, one in enumerate(prices.positions):
        if one.people_ratio is None:
            continue
        low, high = sorted((factor * one.gain.low, factor * one.gain.high))
        weight = one.reward_weight if by_weight and one.reward_weight is not None else float(k)
        points.append(charts.PricePoint(weight, factor * one.gain.per_100, low, high, one.people_ratio))
    present = prices.positions[prices.present].reward_weight if by_weight else float(prices.present)
    return charts.live_prices_chart(
        points,
        present=present if present is not None else float(prices.present),
        most_times=MOST_TIMES,
        gain_title=f"more {words.of}" if words.up else f"change {words.of} (less is better)",
        people_title=f"times as many people{'' if width < _NARROW else ' until every arm is known as well'}",
        position_title="weight" if by_weight else "position",
        place_to_look_at="here",
        width=width,
    )


def stated(form: Any) -> dict[str, Any]:
    """Return the dial that a form states."""
    found: dict[str, Any] = {}
    for name in POLICY_DIAL:
        text = form.get(name, "").strip()
        if not text:
            continue
        if name in _TEXTS:
            found[name] = text
            continue
        try:
            found[name] = float(text)
        except ValueError:
            raise InvalidInput.of(name, "must be a number", text) from None
    return found
