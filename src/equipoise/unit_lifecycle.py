"""The life cycle of a unit, in two tables: its state after each event under each rule, and what each state means.

To see what a late reward does, read the last column of `OUTCOMES`, in the row of the experiment's rule for missing
rewards. To see whether it is in the estimates then, read the row of that state in `STATES`. The planner of commands,
the reader of units, the export and the compiled replay of logs all follow these tables, through `LIVES`.
"""

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from equipoise._types import IntArray

ASSIGNED, REWARDED, COUNTED, EXPIRED, CORRECTED, WITHDRAWN, OTHER = range(7)
"""Kinds of events; the last is for events that change the experiment instead of a unit."""

UNIT_EVENTS = {
    "assigned": ASSIGNED,
    "rewarded": REWARDED,  # a reward is reported, in time or late
    "counted": COUNTED,  # the window of a held reward has passed
    "expired": EXPIRED,  # the window has passed without a reward
    "corrected": CORRECTED,
    "withdrawn": WITHDRAWN,  # the unit leaves the estimates for good
}
"""The events of a unit's life by their names in the log."""

WAITING, HELD, IN_ESTIMATES, OVERDUE, DEFAULTED, DROPPED, LATE_DEFAULTED, LATE_DROPPED, GONE = range(9)
"""States of a unit. In the two before the last, a reward came too late: it is logged but does not count."""

WAIT, DEFAULT, DROP = "wait", "default", "drop"
"""What happens to a unit without a reward when its window has passed."""

# fmt: off
OUTCOMES = {
    # rule    late      hold     reward in time   no reward in time   late reward
    (WAIT,    "count",  False): (IN_ESTIMATES,    OVERDUE,            IN_ESTIMATES),
    (WAIT,    "count",  True):  (HELD,            OVERDUE,            IN_ESTIMATES),
    (DEFAULT, "count",  False): (IN_ESTIMATES,    DEFAULTED,          IN_ESTIMATES),
    (DEFAULT, "count",  True):  (HELD,            DEFAULTED,          IN_ESTIMATES),
    (DEFAULT, "ignore", False): (IN_ESTIMATES,    DEFAULTED,          LATE_DEFAULTED),
    (DEFAULT, "ignore", True):  (HELD,            DEFAULTED,          LATE_DEFAULTED),
    (DROP,    "count",  False): (IN_ESTIMATES,    DROPPED,            IN_ESTIMATES),
    (DROP,    "count",  True):  (HELD,            DROPPED,            IN_ESTIMATES),
    (DROP,    "ignore", False): (IN_ESTIMATES,    DROPPED,            LATE_DROPPED),
    (DROP,    "ignore", True):  (HELD,            DROPPED,            LATE_DROPPED),
}
"""The state after the first reward or the end of the window, whichever comes first, and after a later reward.

A rule is its class and the parameters `late` and `hold`. Under all rules, a held reward enters the estimates once its
window has passed, a correction does not change the state, and a unit that is withdrawn is gone.
"""

NOTHING, DEFAULT_VALUE, REWARD = range(3)
"""What is in the estimates for a unit."""

N_HELD, N_OVERDUE, N_DEFAULTED, N_DROPPED, N_WITHDRAWN = range(5)
COUNTERS = 5
"""Rows of counters per arm."""


class Meaning(NamedTuple):
    """What a state means: its name for people, its counter, what is in the estimates, and whether more is to come."""

    name: str
    counter: int | None
    estimate: int
    is_open: bool = False
    """Whether the unit is in the pending table, if there is a window, until it has passed."""


STATES = {
    WAITING:        Meaning("waiting",   None,        NOTHING,       is_open=True),
    HELD:           Meaning("held",      N_HELD,      NOTHING,       is_open=True),
    IN_ESTIMATES:   Meaning("counted",   None,        REWARD),
    OVERDUE:        Meaning("overdue",   N_OVERDUE,   NOTHING),
    DEFAULTED:      Meaning("defaulted", N_DEFAULTED, DEFAULT_VALUE),
    DROPPED:        Meaning("dropped",   N_DROPPED,   NOTHING),
    LATE_DEFAULTED: Meaning("defaulted", N_DEFAULTED, DEFAULT_VALUE),
    LATE_DROPPED:   Meaning("dropped",   N_DROPPED,   NOTHING),
    GONE:           Meaning("withdrawn", N_WITHDRAWN, NOTHING),
}
# fmt: on


class Step(NamedTuple):
    """The effect of an event on a unit in some state."""

    after: int
    """The next state."""
    counts: bool
    """Whether the event's value, a reward or the default, goes into the estimates."""
    replaces: int
    """What leaves the estimates in exchange: `NOTHING`, the `DEFAULT_VALUE` or the previous `REWARD`."""


class Life:
    """Transitions under one rule: the effect of every event in every state in which it can happen.

    `steps` has a `Step` by (state, event). `array[state, event]` holds the same three numbers for compiled code, with
    -1 as the next state if the event cannot happen.
    """

    def __init__(self, in_time: int, without_reward: int, late: int) -> None:
        after = {
            (WAITING, REWARDED): in_time,
            (WAITING, EXPIRED): without_reward,
            (HELD, COUNTED): IN_ESTIMATES,
            (without_reward, REWARDED): late,
            **{(state, CORRECTED): state for state in (HELD, IN_ESTIMATES, LATE_DEFAULTED, LATE_DROPPED)},
            **{(state, WITHDRAWN): GONE for state in STATES if state != GONE},
        }
        self.steps = {(state, event): _step(state, next_state) for (state, event), next_state in after.items()}

    @cached_property
    def array(self) -> "IntArray":
        """The steps for compiled code; made when a log is replayed, so that clients need no NumPy."""
        import numpy as np

        array = np.full((len(STATES), OTHER, len(Step._fields)), -1, np.int64)
        for place, step in self.steps.items():
            array[place] = step
        return array

    def after(self, state: int, event: int) -> int:
        """Return the next state; an event that cannot happen changes nothing (`verify` reports it)."""
        step = self.steps.get((state, event))
        return state if step is None else step.after


def _step(state: int, after: int) -> Step:
    """Return the effect of a transition on the estimates: what the next state has in them goes in, or all goes out."""
    before, then = STATES[state].estimate, STATES[after].estimate
    counts = then == REWARD or (then == DEFAULT_VALUE and before != DEFAULT_VALUE)
    return Step(after, counts, before if counts or then == NOTHING else NOTHING)


LIVES = {rule: Life(*outcomes) for rule, outcomes in OUTCOMES.items()}
"""The transitions under every rule."""
