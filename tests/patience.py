"""How long tests wait: for events, and for what a machine that is busy with other tests may add to promised times."""

import time
from collections.abc import Callable

BUSY = 3.0
"""Seconds. What the limits guard against, such as an interrupt that nobody looks for, takes much longer."""

HANGS = 120.0
"""Seconds after which something that should be over soon hangs, however busy the machine is."""


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something that will be so soon, unless there is a bug."""
    until = time.monotonic() + HANGS
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.005)
