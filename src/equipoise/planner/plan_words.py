"""Put numbers into sentences, rounded as one says them, and keep what was shown as data."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

_PLURAL_OF_ONE = re.compile(r"(?<![\d.,])1 (day|hour|point|arm|reward)s\b")
_PERSON = re.compile(r"(?<![\d.,])1 people\b")

Shown = float | int | str
"""A number as it is shown, or a date in ISO format."""


class Part(NamedTuple):
    """A number in a sentence: its text, and the value that the text shows."""

    text: str
    value: Shown


@dataclass(frozen=True)
class Sentence:
    """A sentence about a forecast, with every number in it.

    Attributes
    ----------
    text : str
    numbers : dict
        By what they mean; rounded as in the text.
    about : str
        What it is about, such as "way", "goal", "gain" or "declare".
    """

    text: str
    numbers: dict[str, Shown]
    about: str

    def __str__(self) -> str:
        return self.text


def sentence(about: str, template: str, parts: Mapping[str, Part | str] | None = None) -> Sentence:
    """Return a sentence; texts among the parts have no numbers of their own. A unit after 1 is singular.

    Examples
    --------
    >>> print(sentence("doubt", "It takes {days} days and {people} people.", {"days": whole(1.2), "people": whole(1)}))
    It takes 1 day and 1 person.
    >>> sentence("goal", "It takes {days} days.", {"days": whole(67.3)})
    Sentence(text='It takes 67 days.', numbers={'days': 67}, about='goal')
    """
    given = parts or {}
    texts = {name: part if isinstance(part, str) else part.text for name, part in given.items()}
    used = set(re.findall(r"{(\w+)}", template))
    numbers = {name: part.value for name, part in given.items() if isinstance(part, Part) and name in used}
    text = _PLURAL_OF_ONE.sub(r"1 \1", _PERSON.sub("1 person", template.format(**texts)))
    return Sentence(text, numbers, about)


def whole(value: float) -> Part:
    """Return a number in words without decimals."""
    rounded = round(value)
    return Part(f"{rounded:,}", rounded)


def days(value: float) -> Part:
    """Return days, with a decimal if there are fewer than ten.

    Examples
    --------
    >>> days(67.3).text, days(4.26).text
    ('67', '4.3')
    """
    return whole(value) if value >= 9.95 else number(value, 1)


def number(value: float, decimals: int) -> Part:
    """Return a number with at most so many decimals, without trailing zeros."""
    rounded = round(value, decimals) + 0.0
    text = f"{rounded:,.{decimals}f}"
    return Part(text.rstrip("0").rstrip(".") if "." in text else text, rounded)


def about(value: float, digits: int = 2) -> Part:
    """Return a number with two digits, as one says after "about".

    Examples
    --------
    >>> about(6423.0).text, about(0.0382).text, about(38.4).text
    ('6,400', '0.038', '38')
    """
    if value == 0 or not math.isfinite(value):
        return Part(f"{value:g}", value)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    if decimals <= 0:
        return Part(f"{rounded:,.0f}", round(rounded))
    return number(rounded, decimals)


def width(value: float) -> Part:
    """Return a half-width: with the digits it was given with, and three at most."""
    is_plain = value == 0 or 1e-4 <= abs(value) < 1e3
    text = f"{value:.3g}" if is_plain else f"{value:,.0f}" if value >= 1e3 else f"{value:.2e}"
    return Part(text, float(text.replace(",", "")))


def percent(share: float) -> Part:
    """Return a share as a percentage.

    Examples
    --------
    >>> percent(0.7).text, percent(0.125).text
    ('70%', '12.5%')
    """
    value = float(f"{100 * share:.3g}")
    return Part(f"{value:g}%", value)


def out_of(share: float) -> tuple[Part, Part]:
    """Return a share as so many of 10, or of 100 where that says more.

    Examples
    --------
    >>> [part.text for part in out_of(0.81)], [part.text for part in out_of(0.97)], [part.text for part in out_of(1.0)]
    (['8', '10'], ['97', '100'], ['10', '10'])
    """
    tenths = 10.0 * share
    if share in (0.0, 1.0) or (abs(tenths - round(tenths)) <= 0.25 and 0 < round(tenths) < 10):
        return Part(f"{round(tenths)}", round(tenths)), Part("10", 10)
    hundredths = min(max(round(100 * share), 0), 100)
    if hundredths in (0, 100):
        thousandths = min(max(round(1000 * share), 1), 999)
        return Part(f"{thousandths}", thousandths), Part("1,000", 1000)
    return Part(f"{hundredths}", hundredths), Part("100", 100)


def day_of(when: date, start: date | None) -> Part:
    """Return a date in words, with its year if that is not the year of the start.

    Examples
    --------
    >>> day_of(date(2027, 5, 7), date(2027, 3, 1))
    Part(text='7 May', value='2027-05-07')
    """
    year = "" if start is not None and when.year == start.year else f" {when.year}"
    return Part(f"{when.day} {when:%B}{year}", when.isoformat())


def numbers_in(text: str) -> list[str]:
    """Return the numbers in a text as they are written; names in quotes are left out.

    Examples
    --------
    >>> numbers_in("'arm 2' takes 1,020 days, or ±0.05, by 7 May.")
    ['1,020', '0.05', '7']
    """
    return re.findall(r"\d[\d,]*\.?\d*(?<![.,])", re.sub(r"'[^']*'", "", text))
