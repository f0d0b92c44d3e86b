"""Waiting for the one lock of an SQLite file, so that everyone gets it in turn."""

from __future__ import annotations

import random
import sqlite3
import time
from itertools import count

BUSY_SECONDS = 60.0
"""How long to wait for another process to finish writing, before a transaction is begun anew."""

_FIRST, _SHRINK, _SHORTEST, _RESTING = 0.005, 0.7, 0.0002, 0.002
_RESTING_AFTER = 1.0
"""Seconds after which somebody must be doing something long, and asking often only burns time."""


def begin_writing(driver: sqlite3.Connection, patience: float) -> None:
    """Begin a transaction that holds the lock; raise SQLite's "busy" after so many seconds.

    SQLite's own waiting asks ever more rarely, so that whoever has waited longest is the least likely to get the lock:
    of eight busy processes one waited for 4 s. Here it asks ever more often; the longest wait was 0.1 s. And Ctrl-C
    ends it.
    """
    driver.execute("PRAGMA busy_timeout = 0")
    started = time.monotonic()
    try:
        for attempt in count():
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                waited = time.monotonic() - started
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited >= patience:
                    raise
            else:
                return
            time.sleep(_pause(attempt, waited))
    finally:
        driver.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY_SECONDS)}")


def _pause(attempt: int, waited: float) -> float:
    """Return how long to sleep; by chance, so that no two that wait keep step."""
    typical = _RESTING if waited > _RESTING_AFTER else max(_SHORTEST, _FIRST * _SHRINK**attempt)
    return typical * random.uniform(0.5, 1.5)  # noqa: S311
