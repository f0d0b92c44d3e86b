"""Say gains in words that fit what is measured: more of 100 people, more per person, or less where small is good."""

from __future__ import annotations

import math
from dataclasses import dataclass

from equipoise.experiment.records import Gain, Status

_ROUNDING = 1e-6


@dataclass(frozen=True)
class GainWords:
    """How gains of one experiment are said.

    Attributes
    ----------
    counts : bool
        Whether rewards are yes or no, so that gains are people of 100; otherwise they are amounts per person.
    up : bool
        Whether large rewards are good.
    what : str
        What these people do, such as "come", or what is measured, such as "points"; "" if nobody said.
    decimals : int
        Of the numbers.

    Examples
    --------
    >>> words = GainWords(True, True, "come", 1)
    >>> words.amount(3.52), words.of, words.range(Gain(3.52, 2.61, 4.5))
    ('3.5 more', 'of 100 people come', 'likely 2.6 to 4.5 more')
    >>> GainWords(False, False, "days", 2).sentence(310.0)
    '3.10 days less per person'
    >>> words.range(Gain(0.4, -0.5, 1.2))
    'likely 0.5 fewer to 1.2 more'
    """

    counts: bool
    up: bool
    what: str
    decimals: int

    @property
    def of(self) -> str:
        """What the amount is of."""
        if self.counts:
            return f"of 100 people {self.what or ('succeed' if self.up else 'have a 1')}"
        return f"{self.what} per person".strip()

    def number(self, per_100: float) -> str:
        """Return a gain without its sign."""
        return f"{abs(per_100) / (1 if self.counts else 100):,.{self.decimals}f}"

    def direction(self, per_100: float) -> str:
        """Return "more", or "fewer" or "less"."""
        return "more" if (per_100 >= 0) == self.up else "fewer" if self.counts else "less"

    def is_zero(self, per_100: float) -> bool:
        """Return whether a gain is none, as it is shown."""
        return not float(self.number(per_100).replace(",", ""))

    def amount(self, per_100: float) -> str:
        """Return a gain with its direction."""
        return "no change" if self.is_zero(per_100) else f"{self.number(per_100)} {self.direction(per_100)}"

    def range(self, gain: Gain) -> str:
        """Return the range of a gain."""
        if self.is_zero(gain.low) and self.is_zero(gain.high):
            return "likely no change"
        low, high = sorted((gain.low, gain.high), key=lambda end: end if self.up else -end)
        ends = sorted((low, high), key=abs) if (gain.low >= 0) == (gain.high >= 0) else [low, high]
        first, last = (self.direction(end) for end in ends)
        if self.is_zero(ends[0]) or first == last:
            return f"likely {self.number(ends[0])} to {self.number(ends[1])} {last}"
        return f"likely {self.number(ends[0])} {first} to {self.number(ends[1])} {last}"

    def sentence(self, per_100: float) -> str:
        """Return a gain as the beginning of a sentence."""
        if self.is_zero(per_100):
            return f"About as many {self.of}" if self.counts else f"About as much {self.of}"
        if self.counts:
            return f"{self.amount(per_100)} {self.of}"
        return f"{self.number(per_100)} {self.what} {self.direction(per_100)} per person".replace("  ", " ")


def gain_words(status: Status, widest: float, what: str = "", unit: str = "") -> GainWords:
    """Return how to say the gains of an experiment.

    Parameters
    ----------
    status : Status
        Of the experiment.
    widest : float
        The largest gain per 100 people that will be said.
    what, unit : str
        What people do whose reward is 1, as its description says, and the unit of other rewards.
    """
    up, counts = status.direction == "maximise", is_yes_no(status)
    if counts:
        return GainWords(True, up, what, 1)
    size = abs(widest) / 100
    decimals = max(0, 1 - math.floor(math.log10(size))) if size > 0 else 1
    return GainWords(False, up, unit, min(decimals, 12))


def gain_sentence(status: Status, gain: Gain) -> str:
    """Return what people gained so far compared with equal shares, in the words of the experiment."""
    described = status.description
    words = gain_words(status, gain.per_100, described.outcome, described.reward_unit)
    compared = "as with" if words.is_zero(gain.per_100) else "than with"
    return f"{words.sentence(gain.per_100)} {compared} equal shares of all arms ({words.range(gain)})."


def is_yes_no(status: Status) -> bool:
    """Return whether all rewards so far are 0 or 1, by their means and standard deviations."""
    known = [arm for arm in status.arms if arm.rewarded >= 2 and arm.mean is not None and arm.std is not None]
    for arm in known:
        n, mean, std = arm.rewarded, arm.mean or 0.0, arm.std or 0.0
        ones = n * mean
        squares = n * mean * (1.0 - mean)
        is_whole = abs(ones - round(ones)) <= _ROUNDING * n and 0.0 <= mean <= 1.0
        if not is_whole or abs((n - 1) * std * std - squares) > _ROUNDING * max(squares, 1.0):
            return False
    return bool(known)
