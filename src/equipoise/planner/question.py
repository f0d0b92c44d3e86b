"""What is asked of simulated experiments: the goal, the deadline, what counts as good, and how ways are called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

SECONDS_A_DAY = 86_400.0
TELLING = 0.3
"""Half-widths above this part of the range of rewards tell nothing worth knowing."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of simulated experiments.

    Attributes
    ----------
    ways : tuple of str
        Names of the ways to assign people, as tables show them.
    settings : tuple of dict
        The setting of the dial of each way, or its policy.
    equal_shares : int
        Which of the ways is equal shares.
    arms : tuple of str
    control : int, optional
        Position of the control.
    direction : {"maximise", "minimise"}
    is_yes_no : bool
        Whether rewards are 1 or 0.
    confidence : float
        Of the intervals of all arms together.
    holds : bool
        Whether the rule for missing rewards holds them back until their window has passed.
    reward_range : pair, optional
        The range that rewards are counted in.
    precision, precision_of : float and {"arms", "differences"}
        The goal of a half-width, if there is one.
    margin : float, optional
        The goal of knowing which arm to choose, to within this much; 0 for exactly. Of two goals, both are to be met.
    deadline_seconds : float, optional
        From the start; without one, the goal has time until everything has come.
    sureness : float
        With which probability the goal is to be met by the deadline.
    start : date, optional
        The first day, for dates instead of numbers of days.
    cost_per_person, cost_per_day : float, optional
    title, outcome : str
    late : float
        Share of the rewards that come after their window, if the guesses are right.
    has_calendar : bool
        Whether days mean anything: not if all that is known is a number of people.
    most_people : int, optional
        Nobody is assigned after this many people, if the plan says so.
    """

    ways: tuple[str, ...]
    settings: tuple[dict[str, Any], ...] = ()
    equal_shares: int = 0
    arms: tuple[str, ...]
    control: int | None = None
    direction: str = "maximise"
    is_yes_no: bool = True
    confidence: float = 0.95
    holds: bool = False
    reward_range: tuple[float | None, float | None] | None = None
    tightest_at: float = 500.0
    precision: float | None = None
    precision_of: str = "arms"
    margin: float | None = None
    deadline_seconds: float | None = None
    sureness: float = 0.8
    start: date | None = None
    cost_per_person: float | None = None
    cost_per_day: float | None = None
    title: str = ""
    outcome: str = ""
    late: float = 0.0
    has_calendar: bool = True
    most_people: int | None = None

    @property
    def sign(self) -> float:
        """1 if large rewards are good, -1 if small ones are."""
        return 1.0 if self.direction == "maximise" else -1.0

    @property
    def has_goal(self) -> bool:
        """Whether there is a goal to be met."""
        return self.precision is not None or self.margin is not None

    def is_telling(self, half_width: float) -> bool:
        """Return whether an interval this wide says more than the range of rewards does already.

        Examples
        --------
        >>> question = Question(ways=("equal shares",), arms=("a", "b"), reward_range=(0.0, 1.0))
        >>> question.is_telling(0.05), question.is_telling(0.9)
        (True, False)
        """
        return not half_width > TELLING * self.span

    @property
    def span(self) -> float:
        """How far apart rewards can be; infinite without a range."""
        low, high = self.reward_range or (None, None)
        return math.inf if low is None or high is None else high - low

    @property
    def deadline_days(self) -> float | None:
        """Days until the deadline."""
        return None if self.deadline_seconds is None else self.deadline_seconds / SECONDS_A_DAY

    def date_of(self, days: float) -> date | None:
        """Return the date that lies this many days after the start; the first day is day 0 to 1.

        Examples
        --------
        >>> question = Question(ways=("equal shares",), arms=("a", "b"), start=date(2027, 3, 1))
        >>> question.date_of(0.5), question.date_of(66.3)
        (datetime.date(2027, 3, 1), datetime.date(2027, 5, 6))
        """
        return None if self.start is None or not days < 1e6 else self.start + timedelta(days=int(days))

    def setting(self, way: int) -> dict[str, Any]:
        """Return the setting of the dial of a way, or its policy."""
        return self.settings[way] if self.settings else {}
