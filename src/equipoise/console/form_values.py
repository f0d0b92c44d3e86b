"""Read what people write into forms: numbers and lines, with errors that name the field."""

from __future__ import annotations

import math
from collections.abc import Mapping

from equipoise.errors import EquipoiseError, InvalidInput


def text_in(form: Mapping[str, str], name: str) -> str:
    """Return what stands in a field, without blanks around it."""
    return form.get(name, "").strip()


def optional_text(form: Mapping[str, str], name: str) -> str | None:
    """Return what stands in a field, or None if that is nothing."""
    return text_in(form, name) or None


def lines_in(form: Mapping[str, str], name: str) -> list[str]:
    r"""Return the lines of a field that are not blank.

    Examples
    --------
    >>> lines_in({"arms": "plain\r\n\r\n prize "}, "arms")
    ['plain', 'prize']
    """
    return [line.strip() for line in form.get(name, "").splitlines() if line.strip()]


def number_in(form: Mapping[str, str], name: str, label: str) -> float:
    """Return the number in a field; raise if there is none.

    Examples
    --------
    >>> number_in({"reward": " 0.5 "}, "reward", "the reward"), number_in({"weight": "70%"}, "weight", "the weight")
    (0.5, 0.7)
    >>> number_in({"reward": "0,5"}, "reward", "the reward")
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: the reward must be a number, such as 0.5; got '0,5'
    """
    text = text_in(form, name)
    plain = text.replace("\N{MINUS SIGN}", "-")
    try:
        value = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{label} must be a number, such as 0.5; got {text!r}" if text else f"{label} is missing")
    return value


def optional_number(form: Mapping[str, str], name: str, label: str) -> float | None:
    """Return the number in a field, or None if nothing stands there."""
    return number_in(form, name, label) if text_in(form, name) else None


def optional_count(form: Mapping[str, str], name: str, label: str) -> int | None:
    """Return the whole number in a field, or None if nothing stands there."""
    text = text_in(form, name).replace(",", "")
    if not text:
        return None
    if not text.isdecimal() or len(text) > 15:
        raise InvalidInput(f"{label} must be a whole number; got {text!r}")
    return int(text)


def problem_in(error: EquipoiseError) -> str:
    """Return an error as a sentence for the page; its hint is for programs."""
    text = error.message
    return f"{text[:1].upper()}{text[1:]}{'' if text[-1:] in '.!?' else '.'}"
