"""Rules for missing rewards: wait, count a default value, or drop the unit; an experiment has one of them."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from equipoise import checks, unit_lifecycle
from equipoise.checks import checked_reward
from equipoise.errors import Hint, InvalidInput
from equipoise.quantities import duration_seconds, duration_text
from equipoise.serialization import Value

LONGEST_WINDOW = 100 * 365 * 86_400.0


class MissingReward(Value):
    """Base class of the rules for missing rewards.

    A window starts at the assignment. With `hold`, no reward counts before the window has passed, so that arms whose
    rewards come fast are not favoured while other rewards are still on their way.
    """

    _kind: ClassVar[str] = unit_lifecycle.WAIT
    window_seconds: Any
    hold: bool
    late: str = "count"

    @abstractmethod
    def describe(self) -> str:
        """Return the rule in words."""

    @property
    def window_microseconds(self) -> int | None:
        """The window in microseconds, the store's unit of time, or None if there is none."""
        return None if self.window_seconds is None else round(self.window_seconds * 1e6)

    @property
    def gives_up(self) -> bool:
        """Whether a unit is waited for no longer than its window: it is dropped then, or counts with a default."""
        return self._kind != unit_lifecycle.WAIT

    @property
    def life(self) -> unit_lifecycle.Life:
        """The transitions of a unit under this rule."""
        return unit_lifecycle.LIVES[self._kind, self.late, self.hold]

    @property
    def default(self) -> float | None:
        """The value counted for a unit whose window has passed without a reward, if any."""
        return None

    def _held(self) -> str:
        return "; rewards are held until then" if self.hold else ""

    def _check(self) -> None:
        if self.window_seconds is not None:
            window = checks.number_between("window_seconds", self.window_seconds, 0, LONGEST_WINDOW, open_low=True)
            self._set(window_seconds=window)
        if not isinstance(self.hold, bool):
            raise InvalidInput.of("hold", "must be True or False", self.hold)
        if self.hold and self.window_seconds is None:
            raise InvalidInput.of("hold", "needs a window after which rewards are counted", hint=Hint.GIVE_WINDOW)
        checks.one_of("late", self.late, ("count", "ignore"))


@dataclass(frozen=True, kw_only=True, repr=False)
class WaitForReward(MissingReward):
    """Wait without limit; with a window, units past it are shown as overdue.

    Examples
    --------
    >>> WaitForReward(window_seconds=86_400).describe()
    'wait for ever; overdue after 1 day'
    """

    window_seconds: float | None = None
    hold: bool = False

    def __post_init__(self) -> None:
        self._check()

    def describe(self) -> str:
        """Return the rule in words."""
        overdue = "" if self.window_seconds is None else f"; overdue after {duration_text(self.window_seconds)}"
        return f"wait for ever{overdue}{self._held()}"


@dataclass(frozen=True, kw_only=True, repr=False)
class DefaultReward(MissingReward):
    """Count a default value once the window has passed: no answer within a week counts as 0, say.

    Parameters
    ----------
    value : float
        The reward of units without one.
    window_seconds : float
        How long to wait.
    hold : bool, default False
        Whether to count no reward before the window has passed.
    late : {"count", "ignore"}
        Whether a later reward replaces the default, or is only logged.

    Examples
    --------
    >>> DefaultReward(value=0, window_seconds=7 * 86_400).describe()
    'count 0 after 7 days; late rewards replace it'
    """

    _kind = unit_lifecycle.DEFAULT
    value: float
    window_seconds: float
    hold: bool = False
    late: str = "count"

    def __post_init__(self) -> None:
        self._check()
        self._set(value=checked_reward(self.value) + 0.0)

    @property
    def default(self) -> float:
        """The value."""
        return self.value

    def describe(self) -> str:
        """Return the rule in words."""
        late = "replace it" if self.late == "count" else "are only logged"
        return f"count {self.value:g} after {duration_text(self.window_seconds)}; late rewards {late}{self._held()}"


@dataclass(frozen=True, kw_only=True, repr=False)
class DropUnit(MissingReward):
    """Leave a unit without a reward out of the estimates once the window has passed.

    Parameters
    ----------
    window_seconds : float
        How long to wait.
    hold : bool, default False
        Whether to count no reward before the window has passed.
    late : {"ignore", "count"}
        Whether a later reward is only logged and the unit stays dropped, or brings the unit back.

    Examples
    --------
    >>> DropUnit(window_seconds=3600).describe()
    'drop after 1 hour; late rewards are only logged'
    """

    _kind = unit_lifecycle.DROP
    window_seconds: float
    hold: bool = False
    late: str = "ignore"

    def __post_init__(self) -> None:
        self._check()

    def describe(self) -> str:
        """Return the rule in words."""
        late = "count" if self.late == "count" else "are only logged"
        return f"drop after {duration_text(self.window_seconds)}; late rewards {late}{self._held()}"


MISSING_RULES: dict[str, type[MissingReward]] = {"wait": WaitForReward, "default": DefaultReward, "drop": DropUnit}
"""Words for the rules, in files and options."""
RULE_KEYS = ("rule", "value", "window", "window_seconds", "hold", "late")
"""Keys of a table that describes a rule."""


def missing_rule(table: Mapping[str, Any]) -> MissingReward:
    """Return the rule that a table with some of `RULE_KEYS` describes.

    Examples
    --------
    >>> missing_rule({"rule": "drop", "window": "2 days"})
    DropUnit(window_seconds=172800.0)
    """
    if "window" in table and "window_seconds" in table:
        raise InvalidInput.of("window", "must be left out where window_seconds is given", table["window"])
    rule = checks.one_of("rule", table.get("rule", "wait"), tuple(MISSING_RULES))
    kind = MISSING_RULES[rule]
    values = {key: table[key] for key in ("value", "hold", "late") if key in table}
    for key in ("window", "window_seconds"):
        if key in table:
            values["window_seconds"] = duration_seconds(table[key], key)
    fields = MissingReward.fields_of(kind.__name__)
    for key in values:
        if key not in fields:
            raise InvalidInput.of(key, f"must be left out: the rule {rule} takes none", values[key])
    missing = [key for key, field in fields.items() if key not in values and field.default is dataclasses.MISSING]
    if missing:
        words = "is missing" if len(missing) == 1 else "and window are missing"
        raise InvalidInput.of(missing[0], f"{words}; the rule {rule} needs {'it' if len(missing) == 1 else 'both'}")
    return kind(**values)
