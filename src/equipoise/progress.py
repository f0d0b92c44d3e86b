"""A progress bar for simulations: share done, steps per second, time left; on stderr, and only on a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


class StepBar:
    """A bar over a known number of steps; silent where stderr is no terminal."""

    def __init__(self, total: int, label: str = "simulating") -> None:
        self.total, self.label = total, label
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class Speed(ProgressColumn):
            def render(self, task: Any) -> Text:
                return Text(f"{task.speed / 1e6:.1f} million steps/s" if task.speed else "")

        console = Console(file=sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            Speed(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=self.total)
        return self

    def __exit__(self, *details: object) -> None:
        self._bar.stop()

    def show(self, done: int) -> None:
        """Move the bar to the number of steps done."""
        self._bar.update(self._task, completed=done)
