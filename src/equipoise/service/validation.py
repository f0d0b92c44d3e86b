"""What the validation of a body found, in one sentence of the shape that all our errors have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from equipoise.errors import visible

if TYPE_CHECKING:
    from collections.abc import Sequence


_TYPES = frozenset(("float", "int", "str", "constrained-str", "constrained-float", "constrained-int", "dict"))


def told(found: Sequence[Any]) -> str:
    """Return the first thing that is wrong: where, what was expected, what was got.

    Examples
    --------
    >>> told([{"loc": ("body", "rewards", 2, "reward"), "msg": "Input should be a valid number", "input": "x"}])
    "rewards[2].reward: input should be a valid number; got 'x'"
    """
    # A field that may be of several types reports one complaint for each; the deepest came closest to fitting.
    first = max(found, key=lambda one: (len(one["loc"]), one["type"] == "extra_forbidden") if "type" in one else 0)
    place = ""
    for part in first["loc"][1:]:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part not in _TYPES and "[" not in part and not part[:1].isupper():  # names of types are not places
            place += f".{part}" if place else part
    message = str(first["msg"])
    message = message[:1].lower() + message[1:]
    text = f"{place or 'the body'}: {message}"
    if first.get("type") not in ("missing", "extra_forbidden") and "input" in first:
        shown = repr(first["input"])
        text += f"; got {shown if len(shown) <= 60 else shown[:57] + '...'}"
    more = f" (and {len(found) - 1} more)" if len({one["loc"][:2] for one in found}) > 1 else ""
    return visible(text) + more
