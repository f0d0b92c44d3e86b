"""Numbers that stand for kinds of events and states of units, where a log is compiled, replayed or looked up.

They are here, and not with the kernel that replays, as most who need them need no compiler.
"""

ASSIGNED, REWARDED, COUNTED, EXPIRED, CORRECTED, OTHER = 0, 1, 2, 3, 4, 5
"""Kinds of events; the last is for those that change the experiment and not a unit."""

WAITING, HELD, IN_ESTIMATES, OVERDUE, DEFAULTED, DROPPED, LATE_DEFAULTED, LATE_DROPPED = 0, 1, 2, 3, 4, 5, 6, 7
"""States of a unit. The last two: a reward came too late and is logged, but does not count."""

WAIT, DEFAULT, DROP = 0, 1, 2
"""What happens to a unit without a reward when its window has passed."""

N_HELD, N_OVERDUE, N_DEFAULTED, N_DROPPED = 0, 1, 2, 3
COUNTERS = 4
"""Rows of counters per arm."""
