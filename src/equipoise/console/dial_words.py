"""Say in words what each position of the dial gives people and costs; the page and its script show the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from equipoise.experiment.gain_words import GainWords, gain_words
from equipoise.experiment.records import DialPosition, Prices, Status

MOST_ARMS = 12
"""Arms that are shown one by one; the others are shown together."""
MOST_TIMES = 8.0
"""Positions that take more times as many people are off the chart."""
_NEAR = 1.005


@dataclass(frozen=True)
class ArmRow:
    """An arm in the table of the next 100 people."""

    arm: str
    is_best: bool
    people: int
    now: int


@dataclass(frozen=True)
class PositionWords:
    """A position of the dial in words, as the page shows it; scripts get one for every position.

    Attributes
    ----------
    number : str
        What tells it from others in an address: the weight, or the share of the information.
    dial : dict of str to str
        Fields of the form that sets it.
    gain, gain_of, gain_range : str
        What people gain, in large type, and below.
    best, best_of, best_now : str
        How many of 100 get the best arm.
    cost, cost_of, cost_now : str
        What it costs.
    sentence : str
        All of it in one sentence.
    spoken : str
        The position as a screen reader says it.
    option : str
        It as an entry of a list.
    button : str
        What the button says that sets it.
    people : list of int
        Of the next 100 people, how many get each row of the table.
    times, gain_per_100 : float or None
        Where it is on the chart.
    """

    number: str
    dial: dict[str, str]
    gain: str
    gain_of: str
    gain_range: str
    best: str
    best_of: str
    best_now: str
    cost: str
    cost_of: str
    cost_now: str
    sentence: str
    spoken: str
    option: str
    button: str
    people: tuple[int, ...]
    times: float | None
    gain_per_100: float


def gain_words_of(prices: Prices, status: Status, description: dict[str, Any]) -> GainWords:
    """Return how the gains of an experiment are said."""
    widest = max((abs(one.gain.per_100) for one in prices.positions), default=0.0)
    return gain_words(status, widest, str(description.get("outcome") or ""), str(description.get("reward_unit") or ""))


def words_of(prices: Prices, status: Status, description: dict[str, Any]) -> tuple[PositionWords, ...]:
    """Return every position in words."""
    if prices.present is None:
        return ()
    words, now = gain_words_of(prices, status, description), prices.positions[prices.present]
    return tuple(_position(prices, words, k, now) for k in range(len(prices.positions)))


def _position(prices: Prices, words: GainWords, k: int, now: DialPosition) -> PositionWords:
    one, is_now = prices.positions[k], k == prices.present
    best = prices.arms.index(str(prices.best))
    gain, ratio = one.gain, one.people_ratio
    cost, cost_of, cost_now = _cost(one, now, is_now)
    share = f"{one.next_100[best]} of 100 get {prices.best}"
    sentence = "The dial is here now." if is_now else f"{words.sentence(gain.per_100)}{_in_return(gain.per_100, ratio)}"
    number = f"{one.dial.get('reward_weight', one.dial.get('information_kept')):.12g}"
    label = _label(one)
    brief = f"{share}, {words.amount(gain.per_100)}, {cost} {cost_of}"
    return PositionWords(
        number=number,
        dial={name: f"{value:.12g}" if isinstance(value, float) else str(value) for name, value in one.dial.items()},
        gain=words.amount(gain.per_100),
        gain_of=f"{words.of}, compared with now",
        gain_range="this is where it is now" if is_now else words.range(gain),
        best=f"{one.next_100[best]} of 100",
        best_of=f"get {prices.best}, the best so far",
        best_now=f"now {now.next_100[best]} of 100",
        cost=cost,
        cost_of=cost_of,
        cost_now=cost_now,
        sentence=sentence,
        spoken=f"{label}: {brief}" + (", where it is now" if is_now else ""),
        option=f"{label}: {share}, {words.amount(gain.per_100)}" + (" (now)" if is_now else ""),
        button="No change" if is_now else f"Use this from now on ({label})",
        people=tuple(row.people for row in arm_rows(prices, k)),
        times=ratio if ratio is not None and ratio <= MOST_TIMES else None,
        gain_per_100=gain.per_100 * chart_factor(words),
    )


def chart_factor(words: GainWords) -> float:
    """Return what turns a gain per 100 into what the chart shows: amounts are per person, and down is less."""
    return (1.0 if words.counts else 0.01) * (1.0 if words.up else -1.0)


def _cost(one: DialPosition, now: DialPosition, is_now: bool) -> tuple[str, str, str]:
    """Return what a position costs: days or people until the declared precision, or times as many people."""
    times = _times(one.people_ratio)
    goal = next((k for k, found in enumerate(one.precisions) if found.rule == "precision"), None)
    if goal is None:
        average = "" if one.error_ratio is None else f"the average error is {one.error_ratio:.2g} times as large"
        if is_now:
            average = "this is where it is now"
        of = "until every arm is known as well"
        return (times, f"as many people {of}", average) if one.people_ratio is not None else ("never", of, average)
    reached, before = one.precisions[goal], now.precisions[goal]
    of = f"from now until every arm is known to ±{reached.half_width:g}"
    if reached.people == 0:
        return "reached", f"every arm is known to ±{reached.half_width:g}", ""
    in_days = reached.days is not None
    value, was = (
        (_days(reached.days), _days(before.days)) if in_days else (_count(reached.people), _count(before.people))
    )
    note = "this is where it is now" if is_now else f"now {was}; {times} as many people"
    return value, of, note


def _label(one: DialPosition) -> str:
    """Return a dial in few words."""
    if "reward_weight" in one.dial:
        return f"weight {one.dial['reward_weight']:g}"
    return f"{100 * one.dial['information_kept']:.4g}% of the information kept"


def _days(days: float | None) -> str:
    if days is None:
        return "never"
    whole = round(days)
    return "1 day" if whole == 1 else f"{whole:,} days"


def _count(people: int | None) -> str:
    if people is None:
        return "never"
    return "1 person" if people == 1 else f"{people:,} people"


def _times(ratio: float | None) -> str:
    return "never" if ratio is None else f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"


def _in_return(gain: float, ratio: float | None) -> str:
    """Return what a gain costs, or what is got for a loss, as the second half of a sentence."""
    if ratio is None:
        return "; in return some arm will never be known any better."
    if 1 / _NEAR < ratio < _NEAR:
        return "; it takes as many people as now to know every arm as well."
    if ratio > 1:
        link = "in return" if gain > 0 else "and"
        return f"; {link} it takes {ratio:.{1 if ratio < 10 else 0}f} times as many people to know every arm as well."
    link = "in return" if gain < 0 else "and"
    return f"; {link} {100 * (1 - ratio):.0f} % fewer people are needed to know every arm as well."


def arm_rows(prices: Prices, place: int) -> tuple[ArmRow, ...]:
    """Return the arms with how many of the next 100 people each gets, most first as it is now."""
    assert prices.present is not None  # noqa: S101
    now, then = prices.positions[prices.present].next_100, prices.positions[place].next_100
    order = sorted(range(len(prices.arms)), key=lambda i: (-now[i], i))
    best = prices.arms.index(str(prices.best))
    shown = order[:MOST_ARMS]
    if best not in shown:
        shown[-1] = best
    rows = [ArmRow(prices.arms[i], i == best, then[i], now[i]) for i in shown]
    if prices.n_arms > len(shown):
        rest = [100 - sum(getattr(row, which) for row in rows) for which in ("people", "now")]
        rows.append(ArmRow(f"{prices.n_arms - len(shown):,} others", False, *rest))
    return tuple(rows)
