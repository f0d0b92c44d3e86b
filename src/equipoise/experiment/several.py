"""Several units or rewards at once, as users give them, turned into one request each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput
from equipoise.experiment.requests import Ask, Tell

if TYPE_CHECKING:
    from collections.abc import Iterable


def asks(units: Any, who: str | None) -> list[Ask]:
    """Return an ask for each unit: a name, or a pair of a name and attributes, or an item of a mapping.

    Examples
    --------
    >>> [(one.unit, one.attributes) for one in asks(["ada", ("bob", {"class": "4b"})], None)]
    [('ada', None), ('bob', {'class': '4b'})]
    """
    given = units.items() if isinstance(units, Mapping) else _listed("units", units)
    return [_ask(one, who) for one in given]


def tells(rewards: Any, who: str | None) -> list[Tell]:
    """Return a tell for each pair of a unit and its reward, or for each item of what maps one to the other."""
    pairs = rewards.items() if hasattr(rewards, "items") else _listed("rewards", rewards)
    try:
        return [Tell(unit, reward, who=who) for unit, reward in pairs]
    except (TypeError, ValueError):
        raise InvalidInput("rewards must be pairs of a unit and its reward") from None


def _ask(one: Any, who: str | None) -> Ask:
    if type(one) is tuple and len(one) == 2:
        return Ask(one[0], one[1], who=who)
    return Ask(one, who=who)


def _listed(what: str, values: Any) -> Iterable[Any]:
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise InvalidInput(f"{what} must be a list; got {values!r}")
    found: Iterable[Any] = values
    return found
