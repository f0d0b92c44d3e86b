"""The arms of a plan: what one expects of their rewards, and how long these take."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from equipoise import checks, quantities
from equipoise.errors import InvalidInput, within
from equipoise.experiment.names import checked_new_name
from equipoise.planner.guesses import ANY, DURATION, POSITIVE, SHARE, Guess, Scale
from equipoise.planner.plan_parts import Part, check_keys

_COMMA = re.compile(r",(?!\d{3}(?!\d))")
"""A comma between a median and nine_of_ten, not between thousands."""


@dataclass(frozen=True, kw_only=True)
class Delay(Part):
    """How long a reward takes: the median, and the time after which nine of ten that come at all are there.

    Between the two, delays have a log-normal distribution. Without `nine_of_ten` all rewards take the same time.

    Parameters
    ----------
    median, nine_of_ten : duration or Guess
        "8h", "2 days", a guess with a range such as "6h to 10h", or "at once".

    Examples
    --------
    >>> Delay(median="8h", nine_of_ten="2 days")
    Delay(median=Guess(value=28800.0, low=None, high=None), nine_of_ten=Guess(value=172800.0, low=None, high=None))
    """

    _name = "delay"
    median: Any
    nine_of_ten: Any = None

    def __post_init__(self) -> None:
        median = Guess.of("median", 0.0 if self.median == "at once" else self.median, DURATION)
        last = None if self.nine_of_ten is None else Guess.of("nine_of_ten", self.nine_of_ten, DURATION, at_ends=False)
        if last is not None and last.value <= median.value:
            hint = "leave nine_of_ten out if all rewards take the same time"
            words = f"must be longer than the median, {quantities.duration_text(median.value)}"
            raise InvalidInput.of("nine_of_ten", words, self.nine_of_ten, hint=hint)
        self._set(median=median, nine_of_ten=last)

    @classmethod
    def optional(cls, name: str, given: Any) -> Delay | None:
        """Return the delay in any of its forms; None if nothing is said."""
        if given is None or isinstance(given, cls):
            return given
        with within(name):
            if isinstance(given, Mapping) and not {"guess", "low", "high"} & set(given):
                if "median" not in given:
                    raise InvalidInput.of("median", "is missing: a delay has a median, and perhaps nine_of_ten")
                check_keys(given, cls.keys())
                return cls(**given)
            if isinstance(given, str):
                parts = [part.strip() for part in _COMMA.split(given)]
                given = tuple(parts) if len(parts) == 2 else given
            if isinstance(given, (list, tuple)) and len(given) == 2:
                return cls(median=given[0], nine_of_ten=given[1])
        try:
            return cls(median=given)
        except InvalidInput as error:
            expected = "must be a duration such as 8h, or a median and nine_of_ten such as 8h, 2 days"
            raise InvalidInput.of(name, expected, given, hint=error.hint) from None


@dataclass(frozen=True, kw_only=True)
class PlannedArm(Part):
    """An arm, and what one expects of its rewards: a rate, a mean and a spread, or the rewards of a pilot.

    Parameters
    ----------
    name : str
        Its name.
    rate : Guess, optional
        Of yes/no rewards: how often yes is expected, such as "30%" or "25% to 35%". The spread follows.
    mean, std : Guess, optional
        Of other rewards. They have a normal distribution if `Rewards.range` is not given, a gamma distribution if it is
        ``(0, None)``, and a beta distribution between its ends otherwise.
    rewards : sequence of float, optional
        The rewards of a pilot, which simulated people draw from. Its mean with its standard error is the guess, unless
        `rate` or `mean` says otherwise. Rewards are then moved to the drawn mean: shifted without a range, otherwise
        shrunk towards the end of the range that is on the way, so that they stay within it.
    delay, missing : optional
        Of this arm's rewards, if they differ from those of the others; see `Rewards`.

    Examples
    --------
    >>> PlannedArm(name="prize", rate="40% to 60%").rate
    Guess(value=0.5, low=0.4, high=0.6)
    """

    _name = "arms"
    name: str
    rate: Any = None
    mean: Any = None
    std: Any = None
    rewards: Any = None
    delay: Any = None
    missing: Any = None

    def __post_init__(self) -> None:
        self._set(name=checked_new_name("arm", self.name))
        with within("arms", self.name):
            self._check()

    def _check(self) -> None:
        rewards = None if self.rewards is None else self._checked_rewards()
        rate = self.rate
        if rate is not None:
            for name in ("mean", "std"):
                if getattr(self, name) is not None:
                    reason = "a yes/no arm needs no spread" if name == "std" else "an arm has a rate or a mean"
                    raise InvalidInput.of(name, f"must be left out: {reason}", getattr(self, name))
            rate = Guess.of("rate", rate, SHARE)
        elif self.mean is None and rewards is None:
            raise InvalidInput("needs a rate such as 30%, or a mean and a std, or the rewards of a pilot")
        elif self.mean is not None and self.std is None and rewards is None:
            hint = "for yes/no rewards give a rate, which needs no std"
            raise InvalidInput.of("std", "is missing: rewards other than yes/no have a mean and a std", hint=hint)
        elif self.mean is None and self.std is not None:
            raise InvalidInput.of("mean", "is missing: rewards other than yes/no have a mean and a std")
        self._set(
            rewards=rewards,
            rate=rate,
            mean=None if self.mean is None else Guess.of("mean", self.mean, ANY),
            std=None if self.std is None else Guess.of("std", self.std, POSITIVE, at_ends=False),
            delay=Delay.optional("delay", self.delay),
            missing=None if self.missing is None else Guess.of("missing", self.missing, SHARE),
        )

    def _checked_rewards(self) -> tuple[float, ...]:
        values = checks.vector("rewards", self.rewards)
        if values.size < 2:
            raise InvalidInput.of("rewards", "must be at least 2, to know their spread; give a mean and a std", 1)
        return tuple(values.tolist())

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return an arm from a table."""
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or "name" not in given:
            raise InvalidInput.of("arms", "must have names with rates, or tables with a name", given)
        with within("arms", str(given["name"])):
            check_keys(given, cls.keys())
        return cls(**given)

    @property
    def is_yes_no(self) -> bool:
        """Whether rewards are 0 and 1, as far as this arm knows."""
        return self.rate is not None or (
            self.mean is None and self.rewards is not None and set(self.rewards) <= {0.0, 1.0}
        )


def arms_of(given: Any) -> tuple[PlannedArm, ...]:
    """Return arms from a mapping of names to rates or tables, or from a list of arms."""
    if isinstance(given, Mapping):
        tables = []
        for name, one in given.items():
            is_table = isinstance(one, Mapping) and not {"guess", "low", "high"} & set(one)
            if isinstance(one, PlannedArm):
                tables.append(dataclasses.replace(one, name=name))
                continue
            tables.append(PlannedArm.of({"name": name} | (dict(one) if is_table else {"rate": one})))
        found = tuple(tables)
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        found = tuple(PlannedArm.of(one) for one in given)
    else:
        raise InvalidInput.of("arms", "must be arms by name, such as {'plain': '30%', 'prize': '40% to 60%'}", given)
    if len(found) < 2:
        raise InvalidInput.of("arms", f"must be at least two, as an experiment compares them; got {len(found)}")
    names = [arm.name for arm in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput.of("arms", f"must have different names; got {name!r} more than once")
    return found


def scale_of(reward_range: tuple[float | None, float | None] | None) -> Scale:
    """Return the scale of means of rewards in a range."""
    if reward_range is None:
        return ANY
    low, high = reward_range
    examples = ANY.examples if low is None or high is None else (f"{0.5 * (low + high):g}", f"{low:g} to {high:g}")
    return Scale(low, high, examples)
