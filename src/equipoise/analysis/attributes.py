"""Attributes of units: a number or a category for each, from values of any source, refused where types are mixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise._types import FloatArray, IntArray
from equipoise.errors import InvalidInput

NUMBER, CATEGORY = "number", "category"
"""Kinds of attributes."""

_TYPES: dict[type, tuple[type, ...]] = {float: (int, float, np.integer, np.floating, Decimal), str: (str,)}
_WORDS = {float: "the number", str: "the text", bool: ""}
"""What values can be, and what to call them in an error; truth values need no word."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """What is known of every unit under one name, NaN where it is missing.

    Attributes
    ----------
    name : str
    kind : {"number", "category"}
    values : float array (n,)
        The numbers, or the positions of the categories.
    categories : tuple of str
        In alphabetical order; empty for a number.

    Examples
    --------
    >>> school = Attribute.of("school", ["north", None, "east"])
    >>> school.kind, school.categories, school.values
    ('category', ('east', 'north'), array([ 1., nan,  0.]))
    >>> Attribute.of("age", [9, 10, 8.5]).values
    array([ 9. , 10. ,  8.5])
    >>> Attribute.of("age", [9, True])
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: attribute 'age' must be of one type; got the number 9 (row 0) and True (row 1)
    hint: convert the column, or leave it out: everything else is reported without it
    """

    name: str
    kind: str
    values: FloatArray
    categories: tuple[str, ...] = ()

    @property
    def known(self) -> NDArray[np.bool_]:
        """Whether each unit has it: an array (n,)."""
        return ~np.isnan(self.values)

    @property
    def codes(self) -> IntArray:
        """Positions of the categories, -1 where it is missing: an array (n,)."""
        if self.kind == NUMBER:
            raise InvalidInput(f"attribute {self.name!r} is a number and has no categories", hint="use as_category()")
        return np.where(self.known, self.values, -1.0).astype(np.int64)

    def taken(self, order: IntArray) -> Attribute:
        """Return the attribute of other units: entry i is the present order[i]."""
        return Attribute(self.name, self.kind, self.values[order], self.categories)

    def as_category(self, *, most: int = 20) -> Attribute:
        """Return the attribute with its numbers as categories, in ascending order; refuse more than `most`.

        Examples
        --------
        >>> grade = Attribute.of("grade", [10, 9, None, 10]).as_category()
        >>> grade.categories, grade.codes
        (('9', '10'), array([ 1,  0, -1,  1]))
        """
        values, categories, known = self.values, self.categories, self.known
        n_values = len(categories)
        if self.kind == NUMBER:
            distinct, place = np.unique(values[known], return_inverse=True)
            n_values, values = distinct.size, np.full(values.size, np.nan)
            values[known] = place
            categories = tuple(map(number_text, distinct[: most + 1].tolist()))
        if n_values > most:
            raise InvalidInput(
                f"attribute {self.name!r} has {n_values:,} different values; at most {most} can make groups",
                hint="log or give a coarser attribute, such as an age group instead of an age",
            )
        return Attribute(self.name, CATEGORY, values, categories)

    @classmethod
    def of(cls, name: str, values: Any, where: Callable[[int], str] = "row {}".format) -> Attribute:
        """Return the attribute with these values, one per unit: all of one type, or missing (None or NaN).

        `where` names a unit in errors, by its row or its name.
        """
        array = array_of(values)
        if array.dtype.kind in "fiu":
            return cls(name, NUMBER, _finite(name, array.astype(np.float64), where))
        items = array.tolist()
        types = set(map(type, items)) - {type(None)}
        if not (types <= {int, float} or types in ({str}, {bool})):
            items, types = _of_one_type(name, items, where)
        if types in ({str}, {bool}):
            texts = items if types == {str} else [None if item is None else _TRUTH[item] for item in items]
            categories = tuple(sorted(set(texts) - {None}))
            place = {category: float(i) for i, category in enumerate(categories)} | {None: math.nan}
            return cls(name, CATEGORY, np.array([place[text] for text in texts], np.float64), categories)
        return cls(name, NUMBER, _finite(name, np.array(items, np.float64), where))

    @classmethod
    def mostly(cls, name: str, values: Any, where: Callable[[int], str] = "row {}".format) -> tuple[Attribute, str]:
        """Return the attribute with the few values of another type taken as missing, and a note on them.

        A log keeps what was mistyped once; it must not cost what is known of everybody else. `of` says what is wrong if
        less than nine tenths of the values are of one type.

        Examples
        --------
        >>> age, note = Attribute.mostly("age", [9, 10, 8, 9, 9, 11, 10, 8, 9, 10, "ten"])
        >>> age.known.sum(), note
        (np.int64(10), "attribute 'age': 1 value is no number, and counts as missing: 'ten' (row 10)")
        """
        try:
            return cls.of(name, values, where), ""
        except InvalidInput as error:
            refused = error
        items = array_of(values).tolist()
        kinds = [None if is_missing(item) else _kind(item) for item in items]
        known = [kind for kind, item in zip(kinds, items, strict=True) if not is_missing(item)]
        usual = max(_KINDS, key=known.count)
        odd = [i for i, kind in enumerate(kinds) if kind is not usual and not is_missing(items[i])]
        if not odd or len(odd) > _MOST_ODD * len(known):
            raise refused
        kept = [item if kind is usual else None for item, kind in zip(items, kinds, strict=True)]
        first = f"{items[odd[0]]!r} ({where(odd[0])})"
        count = "1 value is" if len(odd) == 1 else f"{len(odd):,} values are"
        counts = "counts" if len(odd) == 1 else "count"
        note = f"attribute {name!r}: {count} {_KINDS[usual]}, and {counts} as missing: {first}"
        return cls.of(name, kept, where), note + ("" if len(odd) == 1 else " and others")


_TRUTH = {True: "true", False: "false"}
_KINDS: dict[type, str] = {float: "no number", str: "no text", bool: "neither true nor false"}
_MOST_ODD = 0.1
"""Which part of an attribute's values may be of another type than the others."""


def _kind(item: Any) -> type | None:
    """Return the type that a value is an instance of: float for any number, str or bool; None for others."""
    if isinstance(item, (bool, np.bool_)):
        return bool
    return next((kind for kind, types in _TYPES.items() if isinstance(item, types)), None)


def array_of(values: Any) -> NDArray[Any]:
    """Return a column as an array whose values have kept their types: of numbers, truth values, times or objects."""
    if not hasattr(values, "dtype"):
        items = list(values)
        types = set(map(type, items))
        if types and types <= {int, float}:
            values = np.array(items, np.float64)
        elif types == {bool}:
            values = np.array(items)
        else:  # from which numpy would make texts, if there is one
            values = np.empty(len(items), object)
            values[:] = items
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind in "US" else array


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN or NaT (unequal to themselves), or NA of pandas (no truth value)."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):
        return not hasattr(value, "__len__")  # what has a length is a list or an array in a cell


def _of_one_type(name: str, items: list[Any], where: Callable[[int], str]) -> tuple[list[Any], set[type]]:
    """Return values as plain floats, texts or truth values, None where missing, and that one type."""
    first: dict[type, int] = {}
    plain: list[Any] = []
    for i, item in enumerate(items):
        if is_missing(item):
            plain.append(None)
            continue
        kind = _kind(item)
        if kind is None:
            raise InvalidInput(
                f"attribute {name!r} must be numbers, texts, or true and false; got {item!r} ({where(i)})"
            )
        first.setdefault(kind, i)
        plain.append(kind(item))
    if len(first) > 1:
        got = " and ".join(f"{_WORDS[kind]} {items[i]!r} ({where(i)})".strip() for kind, i in list(first.items())[:2])
        raise InvalidInput(
            f"attribute {name!r} must be of one type; got {got}",
            hint="convert the column, or leave it out: everything else is reported without it",
        )
    return plain, set(first)


def _finite(name: str, numbers: FloatArray, where: Callable[[int], str]) -> FloatArray:
    infinite = np.isinf(numbers)
    if infinite.any():
        at = int(infinite.argmax())
        raise InvalidInput(f"attribute {name!r} must be finite numbers; got {numbers[at]} ({where(at)})")
    return numbers


def number_text(value: float) -> str:
    """Return a number as text, a whole one without a point."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
