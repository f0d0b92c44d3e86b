"""What a plan is to find out, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, cast

from equipoise import checks, quantities
from equipoise.errors import InvalidInput, within
from equipoise.planner.plan_parts import Part, amount, checked_date
from equipoise.theory.assumptions import checked_probability


@dataclass(frozen=True, kw_only=True)
class Goals(Part):
    """What the experiment is to find out, by when, and how sure one wants to be that it does.

    Parameters
    ----------
    precision : float, optional
        The half-width to know every arm's mean with: 0.06, or "6%".
    precision_of : {"arms", "differences"}
        Whether that is of every arm, or of the differences between arms (from the control, if there is one).
    margin : float, optional
        To know an arm that is at most this much worse than the best; 0 for the best arm itself.
    deadline : date, optional
        When the goal is to be reached; the end of enrolment by default.
    by : float, default 0.8
        The probability wanted of reaching the goal by the deadline.
    failure_probability : float, default 0.05
        That any of the intervals is wrong: 1 minus their confidence.

    Examples
    --------
    >>> Goals(precision="6%")
    Goals(precision=0.06, precision_of='arms', margin=None, deadline=None, by=0.8, failure_probability=0.05)
    """

    _name = "goals"
    precision: float | None = None
    precision_of: str = "arms"
    margin: float | None = None
    deadline: Any = None
    by: float = 0.8
    failure_probability: float = 0.05

    def __post_init__(self) -> None:
        with within("goals"):
            self._set(
                precision=amount("precision", self.precision, open_low=True),
                precision_of=checks.one_of("precision_of", self.precision_of, ("arms", "differences")),
                margin=amount("margin", self.margin),
                deadline=None if self.deadline is None else checked_date("deadline", self.deadline),
            )
            by = quantities.share(self.by, "by")
            if not 0 < by < 1:
                raise InvalidInput.of("by", "must be between 0 and 1: nothing is certain", self.by, hint="0.8 is usual")
            failure = checked_probability(quantities.share(self.failure_probability, "failure_probability"))
            self._set(by=by, failure_probability=failure)

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return goals from a table, or from a precision."""
        if isinstance(given, (int, float, str)) and not isinstance(given, bool):
            return cls(precision=cast(Any, given))
        return super().of(given)


@dataclass(frozen=True, kw_only=True)
class Costs(Part):
    """What the experiment costs, in any currency.

    Examples
    --------
    >>> Costs(per_person=2.5, per_day=100)
    Costs(per_person=2.5, per_day=100.0)
    """

    _name = "costs"
    per_person: float = 0.0
    per_day: float = 0.0

    def __post_init__(self) -> None:
        with within("costs"):
            for name in ("per_person", "per_day"):
                self._set(**{name: amount(name, getattr(self, name))})
