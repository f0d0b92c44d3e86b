"""Decode JSON bodies and queries into the structs of the API table, and encode answers as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidInput, visible
from equipoise.experiment.names import DEEPEST_DATA, LARGEST_ATTRIBUTES
from equipoise.http_api import SMALL_BODY
from equipoise.service.error_responses import Refused

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_QUERY_TYPES: dict[Any, Callable[[str], Any]] = {
    int: int,
    float: float,
    bool: {"true": True, "false": False}.__getitem__,
}
"""How a query parameter that is not text is read."""

_DEEPEST = 2 * DEEPEST_DATA
"""Nesting limit: above that of free data inside a body, and below the limit of any JSON parser."""
_UNITS = frozenset(("units", "rewards"))
"""Fields that hold a list of units."""
_MOST_VALUES = 300_000
"""Most values of a body: 30 for each of 10,000 units, or 100,000 arms with their floors."""
_VALUES_AT_ONCE = 10_000
"""Values of a long list to encode at a time; this many take a millisecond."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_INNERMOST = re.compile(rb"\[\]|\{\}")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_UNSEEN: Any = object()
"""Stands for the data of a body that is too large to be decoded for an error message."""
_TOKEN = re.compile(r"\.([^.\[]+)|\[([^\]]+)\]")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.*)`")
_JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def decode_body(decoder: msgspec.json.Decoder[_Struct], body: bytes, most_units: int) -> _Struct:
    """Decode a body into the struct of its endpoint.

    Examples
    --------
    >>> from equipoise.http_api import NewReward
    >>> decode_body(msgspec.json.Decoder(NewReward), b'{"reward": "high"}', 10)
    Traceback (most recent call last):
    ...
    equipoise.errors.InvalidInput: reward: expected number; got 'high'
    """
    if not body:
        raise InvalidInput("the body: field required")
    _refuse_many_values(body, most_units)
    try:
        found = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        if len(body) > SMALL_BODY and isinstance(error, msgspec.ValidationError):
            # Not worth decoding it all once more: name the type of what was got instead of its value.
            raise InvalidInput(_sentence(error, _UNSEEN, decoder.type)) from None
        data = _decode_any(body)
        if isinstance(data, dict):
            _check_units(data, most_units)
        raise InvalidInput(_sentence(error, data, decoder.type)) from None
    if not _UNITS.isdisjoint(found.__struct_fields__):
        _check_units(found, most_units)  # first, since what follows takes longer the more there are
        _refuse_many_attributes(found, len(body))
    if body.count(b":") > 1:  # a single colon means a single key, and no nesting
        _refuse_deep(body)
        _refuse_duplicate_keys(body)
    return found


def decode_query(kind: type[_Struct], given: Mapping[str, str]) -> _Struct:
    """Convert query parameters to a struct.

    Examples
    --------
    >>> from equipoise.http_api import Points
    >>> decode_query(Points, {"points": "20"}).points
    20
    """
    data: dict[str, Any] = dict(given)
    for name, hint in get_type_hints(kind).items():
        read = next((_QUERY_TYPES[one] for one in (hint, *get_args(hint)) if one in _QUERY_TYPES), None)
        if name in data and read is not None:
            try:
                data[name] = read(data[name])
            except (ValueError, KeyError):
                continue  # the struct refuses it below
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(_sentence(error, given, kind)) from None


def _decode_any(body: bytes) -> Any:
    """Decode a body of any shape; refuse it if it is not JSON."""
    try:
        data = msgspec.json.decode(body)
    except UnicodeDecodeError:
        raise _not_json("it is not UTF-8") from None
    except msgspec.DecodeError as error:
        text = str(error).removeprefix("JSON is malformed: ").split(" - at ")[0]
        raise _not_json(text[:1].lower() + text[1:]) from None
    except RecursionError:
        raise _too_deep() from None
    _refuse_deep(body)
    _refuse_duplicate_keys(body)
    return data


def _not_json(reason: str) -> Refused:
    return Refused(400, f"the body must be JSON; {visible(reason)}")


def _refuse_many_values(body: bytes, most_units: int) -> None:
    """Refuse a body with more values than can be decoded quickly: decoding holds the GIL, so everybody waits."""
    most = max(_MOST_VALUES, most_units * _MOST_VALUES // 10_000)
    if len(body) > most:
        n_values = body.count(b",") + body.count(b"[") + body.count(b"{")
        if n_values > most:
            raise InvalidInput(
                f"a body may have at most {most:,} values; got about {n_values:,}", hint="send several smaller requests"
            )


def _too_deep() -> Refused:
    return _not_json(f"it is nested deeper than {_DEEPEST}")


def _refuse_deep(body: bytes) -> None:
    """Refuse JSON that is nested too deeply; few bodies have enough brackets to be."""
    if body.count(b"{") + body.count(b"[") > _DEEPEST and is_deep(body, _DEEPEST):
        raise _too_deep()


def is_deep(body: bytes, most: int) -> bool:
    """Return whether JSON is nested deeper than `most` levels, without decoding it.

    Examples
    --------
    >>> is_deep(b'{"a": [1, {}], "]": "[["}', 3), is_deep(b'{"a": [1, {}]}', 2)
    (False, True)
    """
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    for _ in range(most):
        if not brackets:
            return False
        brackets = _INNERMOST.sub(b"", brackets)
    return bool(brackets)


def _refuse_duplicate_keys(body: bytes) -> None:
    """Refuse a key that occurs twice in one object: no two parsers agree on its value."""
    found = duplicate_key(body)
    if found is not None:
        raise _not_json(f"duplicate key {found!r} in an object")


def duplicate_key(body: bytes) -> str | None:
    """Return a key that occurs twice in one object, if any; the body must be JSON.

    Examples
    --------
    >>> duplicate_key(b'{"unit": "a", "attributes": {"unit": "b"}}'), duplicate_key(b'[{"a": 1, "a": 1}]')
    (None, 'a')
    """
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) < len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    found.append(name)
                    break
                seen.add(name)

    json.loads(body, object_pairs_hook=look)
    return found[0] if found else None


def _check_units(data: Any, most: int) -> None:
    """Refuse more units than one request may have."""
    for name in _UNITS:
        units = data.get(name) if isinstance(data, dict) else getattr(data, name, None)
        if isinstance(units, list) and len(units) > most:
            raise InvalidInput(f"a request may have at most {most:,} units; got {len(units):,}")


def _refuse_many_attributes(data: Any, n_bytes: int) -> None:
    """Refuse attributes that must be too long, by the number of their values.

    What follows would hold the GIL for ten times as long as decoding did.
    """
    units = getattr(data, "units", ())
    if not isinstance(units, list) or n_bytes <= LARGEST_ATTRIBUTES * len(units):
        return  # a number of units, or as in all requests for many units that are meant
    for unit in units:
        if not isinstance(unit, str) and _has_more_values(unit.attributes, LARGEST_ATTRIBUTES // 3):
            raise InvalidInput.of(
                "attributes", f"must take at most {LARGEST_ATTRIBUTES:,} characters as JSON; got many more"
            )


def _has_more_values(value: Any, most: int) -> bool:
    """Return whether data has more than `most` values; looks at little more than that many.

    Examples
    --------
    >>> _has_more_values({"a": [1, {"b": 2}]}, 4), _has_more_values({"a": [1, {"b": 2}]}, 3)
    (False, True)
    """
    left, n_values = [value], 0
    while left:
        one = left.pop()
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        n_values += len(inner)
        if n_values > most:
            return True
        left.extend(inner)
    return False


def _sentence(error: Exception, data: Any, kind: Any) -> str:
    """Rewrite a msgspec error as our own: where it is, what was expected, what was got."""
    text, _, path = str(error).partition(" - at `$")
    place, value = "", data
    for name, index in _TOKEN.findall(path.rstrip("`")):
        if index.isdigit():
            place, value = f"{place}[{index}]", value if value is _UNSEEN else value[int(index)]
            continue
        if value is _UNSEEN:
            place = f"{place}.{name}" if place and name else place or name
            continue
        # Only floors are a dictionary of numbers, and msgspec does not say which value is not a number.
        key = name or next(one for one, number in value.items() if type(number) not in (int, float))
        place, value = f"{place}.{key}" if place else key, value[key]
    if field := _FIELD.fullmatch(text):
        where = f"{place}.{field[2]}" if place else field[2]
        return visible(f"{where}: {'field required' if field[1] == 'missing required' else 'unknown field'}")
    if text.startswith("Invalid enum value"):
        text = f"Expected {' or '.join(map(repr, _choices(get_type_hints(kind)[place])))}"
    text, _, kind_got = re.sub(r"`(.*?)`", lambda types: _json_types(types[1]), text).partition(", got ")
    got = (kind_got or "something else") if value is _UNSEEN else _short(value)
    return visible(f"{place or 'the body'}: {text[:1].lower()}{text[1:]}; got {got}")


def _choices(hint: Any) -> list[str]:
    """Return the texts that a field takes, which may be one part of a union."""
    return [text for part in (hint, *get_args(hint)) for text in get_args(part) if isinstance(text, str)]


def _json_types(types: str) -> str:
    return " or ".join(_JSON_TYPES.get(one, one) for one in types.split(" | "))


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def encode(data: Mapping[str, Any]) -> bytes:
    """Encode data as JSON; NaN becomes null.

    Examples
    --------
    >>> encode({"arms": ("a", "b"), "mean": [[0.5, float("nan")]]})
    b'{"arms":["a","b"],"mean":[[0.5,null]]}'
    """
    return b"".join(_pieces(data))


def _pieces(data: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the JSON of data, long lists in parts: encoding a value holds the GIL, so other threads wait."""
    yield b"{"
    for place, (name, value) in enumerate(data.items()):
        yield (b"," if place else b"") + encode_value(name) + b":"
        if isinstance(value, (list, tuple, np.ndarray)):
            yield b"["
            yield from _parts(value)
            yield b"]"
        else:
            yield encode_value(value)
    yield b"}"


def _parts(rows: Sequence[Any] | NDArray[Any]) -> Iterator[bytes]:
    """Yield the JSON between the brackets of a list."""
    if not len(rows):
        return
    width = len(rows[0]) if hasattr(rows[0], "__len__") else 1  # roughly the values per row
    step = max(1, _VALUES_AT_ONCE // max(1, width))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        listed = part.tolist() if isinstance(part, np.ndarray) else part
        yield (b"," if start else b"") + encode_value(listed)[1:-1]


def encode_value(value: Any) -> bytes:
    """Encode a value as JSON."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate, which free data may hold; JSON can escape it
        return json.dumps(value).encode()
