"""What the demo shows while it runs: a live table on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from equipoise.demo.population import DAYS
from equipoise.experiment_tables import Line, status_lines, styled_text

if TYPE_CHECKING:
    from typing import Self

    from equipoise.experiment import Status

_FRAME_SECONDS = 0.05
"""How long each picture stays on a terminal: the run itself would be over in a few seconds."""
_HOURS_PER_FRAME = 3
_SNAPSHOT_DAYS = (1, 2, 4, 7, 10, DAYS)


class Show:
    """The status while the experiment runs, on stderr."""

    def __init__(self) -> None:
        self._console: Any = None
        self._screen: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        if self._console.is_terminal:
            self._screen = Live(console=self._console, transient=True, auto_refresh=False)
            self._screen.start()
        return self

    def __exit__(self, *details: object) -> None:
        if self._screen is not None:
            self._screen.stop()

    def is_due(self, hour: int) -> bool:
        """Return whether the status of this hour is worth computing."""
        return hour % _HOURS_PER_FRAME == 0

    def show(self, hour: int, status: Status) -> None:
        """Show the status of an hour."""
        if self._screen is None:
            if hour % 24 == 0 and hour // 24 in _SNAPSHOT_DAYS:
                say(snapshot(hour // 24, status))
            return
        width, height = self._console.width, self._console.height
        day = f"day {min(hour // 24 + 1, DAYS)} of {DAYS}" if hour < 24 * DAYS else "the last answers come in"
        lines = [Line(day, "cyan"), Line(""), *status_lines(status, width=width, height=height - 3)]
        self._screen.update(styled_text(lines), refresh=True)
        time.sleep(_FRAME_SECONDS)


def snapshot(day: int, status: Status) -> str:
    """Return the status in one line."""
    first, second = sorted(status.arms, key=lambda arm: -arm.assigned)[:2]
    # At the beginning there is no such arm: nobody has come, or several have as many.
    most = f"; most to {first.arm!r}" if first.assigned > second.assigned else ""
    average = "-" if status.average_reward is None else f"{status.average_reward:,.0f}"
    return (
        f"day {day:2}: {status.n_assigned:,} assigned, {status.n_rewarded:,} rewarded, {status.n_pending:,} pending, "
        f"{status.n_dropped:,} dropped; average {average}{most}"
    )


def say(text: str) -> None:
    """Say something on stderr."""
    print(text, file=sys.stderr, flush=True)
