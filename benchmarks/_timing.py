"""What the benchmarks share: timing, the machine's description, and a table with ratios."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def seconds_per_call(call: Callable[[], object], *, budget: float, rounds: int = 5) -> float:
    """Return the median over rounds of the time of one call; each round repeats it to fill its part of the budget."""
    call()  # loads and compiles what it needs
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-9)
    repeats = max(1, int(budget / rounds / once))
    times = []
    for _ in range(rounds if once < budget else 1):
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        times.append((time.perf_counter() - start) / repeats)
    return statistics.median(times)


def machine() -> str:
    """Describe the machine in one line."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            model = next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def duration(seconds: float | None) -> str:
    """Return a time with a unit that suits it."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def ratio(slow: float | None, fast: float) -> str:
    """Return how many times faster the second is."""
    return "-" if slow is None else f"{slow / fast:,.0f}x" if slow / fast >= 10 else f"{slow / fast:.2g}x"


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table and the machine it was measured on."""
    console = Console(width=110)
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print(f"Measured on {machine()}", highlight=False)


def verdict(what: str, value: float, wanted: float, *, at_most: bool = False) -> None:
    """Print whether a goal was reached; nothing in a smoke run."""
    if "--smoke" in sys.argv:  # too short to judge by
        return
    reached = value <= wanted if at_most else value >= wanted
    sign = "at most" if at_most else "at least"
    print(f"{'reached' if reached else 'MISSED '}  {what}: {value:,.2f} (goal: {sign} {wanted:,g})")
