"""Guesses with ranges: a value, and two ends between which one is 8 in 10 sure that it lies."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import NormalDist
from typing import Any, NamedTuple, cast

from equipoise import quantities
from equipoise.errors import InvalidInput, within

_NORMAL = NormalDist()
NINE_OF_TEN = _NORMAL.inv_cdf(0.9)
"""Standard deviations from the median to the ends of a range that holds 8 in 10."""
_SMALLEST = 2.0**-53
_TEXT = re.compile(r"\s*(?:(?P<guess>[^()]+?)\s*\(\s*)?(?P<low>[^()]+?)\s+to\s+(?P<high>[^()]+?)\s*(?P<end>\)?)\s*")
_FORMS = "must be a guess such as {0}, or a range that is 8 in 10 sure such as {1}"


class Scale(NamedTuple):
    """Values that are possible, and how ranges are read on them.

    Between two ends the scale is the logit, above one the logarithm; without ends it is the value itself.
    """

    low: float | None = None
    high: float | None = None
    examples: tuple[str, str] = ("12", "10 to 14")
    is_duration: bool = False

    def to(self, value: float) -> float:
        """Return the place of a value, which is infinite at the ends."""
        if self.low is None and self.high is None:
            return value
        above = math.inf if self.low is None else value - self.low
        below = math.inf if self.high is None else self.high - value
        if above <= 0 or below <= 0:
            return -math.inf if above <= 0 else math.inf
        return (math.log(above) if self.low is not None else 0.0) - (math.log(below) if self.high is not None else 0.0)

    def back(self, place: float) -> float:
        """Return the value at a place."""
        if self.low is None and self.high is None:
            return place
        if self.low is None or self.high is None:
            distance = math.exp(min(place if self.high is None else -place, 700.0))
            return self.low + distance if self.low is not None else (self.high or 0.0) - distance
        share = 1.0 / (1.0 + math.exp(-place)) if place >= 0 else math.exp(place) / (1.0 + math.exp(place))
        return self.low + (self.high - self.low) * share

    def steepness(self, value: float) -> float:
        """Return by how much the place changes with the value."""
        slope = 0.0 if self.low is None else 1.0 / (value - self.low)
        slope += 0.0 if self.high is None else 1.0 / (self.high - value)
        return slope or 1.0

    @property
    def words(self) -> str:
        """Where values may be, in words."""
        if self.low is not None and self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        if self.low is not None:
            return f"above {self.low:g}"
        return "any number" if self.high is None else f"below {self.high:g}"


SHARE = Scale(0.0, 1.0, ("10%", "8% to 12%"))
POSITIVE = Scale(0.0, None, ("96", "80 to 110"))
DURATION = Scale(0.0, None, ("8h", "6h to 10h"), is_duration=True)
ANY = Scale()


@dataclass(frozen=True)
class Guess:
    """What one believes of a number: a guess, and a range that one is 8 in 10 sure of.

    One in ten thinks it is below `low`, one in ten that it is above `high`. Simulated experiments draw their truth from
    it: normal on both sides of the guess, on the scale of the logit for shares, of the logarithm for quantities that
    are positive, and as it is for means. Without a range, the truth is always the guess.

    Parameters
    ----------
    value : float or str
        The guess, the median of what one believes: 0.1, "10%", "8h"; or all in one, "40% to 60%" or "50% (40% to 65%)".
        The middle of the range, on its scale, if it is left out.
    low, high : float or str, optional
        The range.

    Examples
    --------
    >>> Guess("50%", "40%", "65%")
    Guess(value=0.5, low=0.4, high=0.65)
    >>> Guess("40% to 60%")
    Guess(value=0.5, low=0.4, high=0.6)
    >>> [round(Guess("50% (40% to 65%)").draw(uniform), 3) for uniform in (0.1, 0.5, 0.9)]
    [0.4, 0.5, 0.65]
    """

    value: float = None  # type: ignore[assignment]
    low: float | None = None
    high: float | None = None
    scale: Scale = field(default=ANY, repr=False, compare=False)

    def __post_init__(self) -> None:
        given: tuple[Any, Any, Any] = (self.value, self.low, self.high)
        if isinstance(self.value, str) and self.low is None and self.high is None:
            given = _parts(self.value)
        value, low, high = (
            None if one is None else _number(name, one) for name, one in zip(_NAMES, given, strict=True)
        )
        scale = self.scale
        if scale == ANY and low is not None and high is not None and isinstance(given[1], str) and "%" in given[1]:
            scale = SHARE
        if (low is None) != (high is None):
            missing, other = ("low", "high") if low is None else ("high", "low")
            raise InvalidInput.of(missing, f"is missing: a range has both ends; got only {other}")
        if low is not None and high is not None:
            if not low < high:
                hint = f"turn them round: {high:g} to {low:g}" if low > high else "leave the range out"
                raise InvalidInput.of("low", f"must be less than high, which is {high:g}", low, hint=hint)
            for name, end in (("low", low), ("high", high)):
                if not math.isfinite(scale.to(end)):
                    raise InvalidInput.of(
                        name,
                        f"must be {scale.words}, as one in ten lies beyond it",
                        end,
                        hint="move that end inwards, or give the guess without a range",
                    )
            if value is None:
                value = float(f"{scale.back(0.5 * (scale.to(low) + scale.to(high))):.12g}")
            if not low <= value <= high:
                raise InvalidInput.of("guess", f"must be within its range, {low:g} to {high:g}", value)
        elif value is None:
            raise InvalidInput.of("guess", "is missing", hint="give a guess, or a range")
        for name, one in zip(_NAMES, (value, low, high), strict=True):
            object.__setattr__(self, name if name != "guess" else "value", one)
        object.__setattr__(self, "scale", scale)

    @classmethod
    def of(cls, name: str, given: Any, scale: Scale, *, at_ends: bool = True) -> Guess:
        """Return a guess on a scale from whatever people write; errors call it `name`.

        Parameters
        ----------
        name : str
            For errors.
        given : float, str, Guess, pair, triple or mapping
            "40% to 60%", ``(low, high)``, ``(low, guess, high)`` or ``{"guess": ..., "low": ..., "high": ...}``.
        scale : Scale
            Of the value.
        at_ends : bool
            Whether a guess without a range may be an end of the scale.

        Examples
        --------
        >>> Guess.of("rate", {"low": 0.2, "high": 0.5}, SHARE)
        Guess(value=0.333333333333, low=0.2, high=0.5)
        >>> Guess.of("rate", "60% to 40%", SHARE)
        Traceback (most recent call last):
        ...
        equipoise.errors.InvalidInput: rate.low must be less than high, which is 0.4; got 0.6
        hint: turn them round: 0.4 to 0.6
        """
        try:
            places = zip(_NAMES, _given(given), strict=True)
            is_read = isinstance(given, Guess)
            read = _duration if scale.is_duration and not is_read else _number
            value, low, high = (None if one is None else read(part, one) for part, one in places)
        except InvalidInput as error:
            if error.parameter[0] in _NAMES:
                hint = error.hint or _with_to(given)
                raise InvalidInput.of(name, _FORMS.format(*scale.examples), given, hint=hint) from None
            raise error.within(name) from None
        if value is None and low is None and high is None:
            raise InvalidInput.of(name, _FORMS.format(*scale.examples), given)
        with within(name):
            found = cls(cast(float, value), low, high, scale)
        is_end = math.isinf(scale.to(found.value)) and not (
            (scale.low is not None and found.value < scale.low) or (scale.high is not None and found.value > scale.high)
        )
        if math.isinf(scale.to(found.value)) and not (at_ends and is_end):
            words = scale.words
            if at_ends and scale.low is not None:
                words = f"at least {scale.low:g}" if scale.high is None else f"from {scale.low:g} to {scale.high:g}"
            hint = quantities.of_a_hundred(given) if scale == SHARE else None
            got = given.plain() if isinstance(given, Guess) else given
            raise InvalidInput.of(name, f"must be {words}", got, hint=hint)
        return found

    @classmethod
    def measured(cls, value: float, standard_error: float, scale: Scale) -> Guess:
        """Return what a measurement with a standard error says, symmetric on the scale.

        Examples
        --------
        >>> [round(end, 3) for end in Guess.measured(10.0, 1.0, ANY).ends]
        [8.718, 11.282]
        """
        place = scale.to(value)
        if not standard_error > 0 or not math.isfinite(standard_error) or not math.isfinite(place):
            return cls(value, scale=scale)
        away = NINE_OF_TEN * standard_error * scale.steepness(value)
        low, high = scale.back(place - away), scale.back(place + away)
        if not low < value < high or not math.isfinite(scale.to(low)) or not math.isfinite(scale.to(high)):
            return cls(value, scale=scale)
        return cls(value, low, high, scale)

    @property
    def is_sure(self) -> bool:
        """Whether there is no range."""
        return self.low is None

    @property
    def ends(self) -> tuple[float, float]:
        """The range, or the guess twice."""
        return (self.value, self.value) if self.low is None or self.high is None else (self.low, self.high)

    def draw(self, uniform: float) -> float:
        """Return the quantile at a uniform number: `low` at 0.1, the guess at 0.5, `high` at 0.9."""
        if self.low is None or self.high is None:
            return self.value
        z = _NORMAL.inv_cdf(min(max(uniform, _SMALLEST), 1.0 - _SMALLEST)) / NINE_OF_TEN
        middle, end = self.scale.to(self.value), self.scale.to(self.low if z < 0 else self.high)
        return self.scale.back(middle + abs(z) * (end - middle))

    def sure(self) -> Guess:
        """Return the guess without its range."""
        return Guess(self.value, scale=self.scale)

    def times(self, factor: float) -> Guess:
        """Return the guess and its range, times a factor."""
        low, high = (None if end is None else end * factor for end in (self.low, self.high))
        return Guess(self.value * factor, low, high, self.scale)

    def plain(self) -> Any:
        """Return the guess as a number or as a table; durations as text with their unit."""
        if self.low is None or self.high is None:
            return self._plain(self.value)
        return {"guess": self._plain(self.value), "low": self._plain(self.low), "high": self._plain(self.high)}

    def _plain(self, value: float) -> float | str:
        return plain_duration(value) if self.scale.is_duration and value else value


_NAMES = ("guess", "low", "high")


def plain_duration(seconds: float) -> str:
    """Return a duration as text from which exactly the same is read.

    Examples
    --------
    >>> plain_duration(28_800), plain_duration(0.1 + 0.2)
    ('8 hours', '0.30000000000000004 seconds')
    """
    text = quantities.duration_text(seconds)
    if "e" not in text.split()[0] and quantities.duration_seconds(text) == seconds:
        return text
    return f"{Decimal(repr(float(seconds))):f} seconds"


def _parts(text: str) -> tuple[Any, Any, Any]:
    """Return guess, low and high in a text."""
    found = _TEXT.fullmatch(text)
    if found is None or bool(found["guess"]) != bool(found["end"]):
        return text, None, None
    return found["guess"], _with_unit(found["low"], found["high"]), found["high"]


def _with_to(given: Any) -> str | None:
    """Return the hint for a range that was written with a dash."""
    ends = re.fullmatch(r"\s*(\d[\d.,]*\s*[%A-Za-z]*)\s*[-\u2013]\s*(\d[\d.,]*\s*[%A-Za-z]*)\s*", str(given))
    return None if ends is None else f"write {_with_unit(ends[1].strip(), ends[2])} to {ends[2].strip()}"


def _with_unit(low: str, high: str) -> str:
    """Return the low end of a range with the unit of the high one, if it has none: 6 to 10h, 8 to 12%."""
    unit = re.search(r"[%A-Za-z]+$", high.strip())
    return low + unit[0] if unit and re.fullmatch(r"[\d.,\s]+", low) else low


def _number(name: str, given: Any) -> float:
    try:
        return quantities.fraction(given, name)
    except InvalidInput as error:
        if not isinstance(given, str):
            raise
        try:
            return quantities.duration_seconds(given, name)
        except InvalidInput:
            raise error from None


def _duration(name: str, given: Any) -> float:
    return quantities.duration_seconds(given, name, needs_unit=True)


def _given(given: Any) -> tuple[Any, Any, Any]:
    if isinstance(given, Guess):
        return given.value, given.low, given.high
    if isinstance(given, str):
        return _parts(given)
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in _NAMES]
        if unknown:
            raise InvalidInput.of(str(unknown[0]), "is unknown; a guess has guess, low and high")
        return given.get("guess"), given.get("low"), given.get("high")
    if isinstance(given, (list, tuple)) and len(given) in (2, 3):
        return (given[1] if len(given) == 3 else None), given[0], given[-1]
    return given, None, None
