"""Report the progress of a simulation: to a function, or as a progress bar with steps per second and time left."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from equipoise.errors import InvalidInput

Progress = Callable[[int, int], None]


def reporter(progress: Progress | bool | None, total: int) -> Reporter:
    """Return a reporter for `total` steps: none, a progress bar (True) or a function of (done, total)."""
    if progress is None or progress is False:
        return Reporter()
    if progress is True:
        return StepBar(total)
    if not callable(progress):
        raise InvalidInput(f"progress must be True, False or a function of (done, total); got {progress!r}")
    return _Called(progress, total)


class Reporter:
    """Base class of reporters; shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        """Show nothing more."""

    def show(self, done: int) -> None:
        """Show that `done` steps are done."""


class _Called(Reporter):
    """Reports progress to a function."""

    def __init__(self, function: Progress, total: int) -> None:
        self.function, self.total = function, total

    def show(self, done: int) -> None:
        """Call the function with (done, total)."""
        self.function(done, self.total)


class StepBar(Reporter):
    """A progress bar over a known number of steps, on stderr; silent if that is not a terminal."""

    def __init__(self, total: int, label: str = "simulating", noun: str = "steps") -> None:
        self.total, self.label, self.noun = total, label, noun
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn
        from rich.text import Text

        noun = self.noun

        class Speed(ProgressColumn):
            def render(self, task: Any) -> Text:
                speed, left = task.speed, task.time_remaining
                return Text("" if not speed or left is None else f"{speed_text(speed, noun)}  {time_text(left)}")

        console = Console(file=sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            Speed(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
            speed_estimate_period=math.inf,  # average over the whole run: workers report thousands of steps at once
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=self.total)
        return self

    def __exit__(self, *details: object) -> None:
        if not self._bar.disable:  # stopping a bar that was never drawn would leave an empty line
            self._bar.stop()

    def show(self, done: int) -> None:
        """Move the bar to `done` steps."""
        self._bar.update(self._task, completed=done)

    def turn_to(self, label: str, total: int) -> None:
        """Set the label and the total number of steps."""
        self._bar.update(self._task, description=label, total=total)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Hide the bar while something else is written to the screen."""
        self.__exit__()
        try:
            yield
        finally:
            self._bar.start()


def speed_text(steps_per_second: float, noun: str = "steps") -> str:
    """Format a speed for people.

    Examples
    --------
    >>> speed_text(6_543_210), speed_text(21_700)
    ('6.5 million steps/s', '21,700 steps/s')
    """
    if steps_per_second < 1e6:
        return f"{steps_per_second:,.0f} {noun}/s"
    return f"{steps_per_second / 1e6:.1f} million {noun}/s"


def time_text(seconds: float) -> str:
    """Format the time left for people.

    Examples
    --------
    >>> time_text(4.2), time_text(75), time_text(7322)
    ('0:05', '1:15', '2:02:02')
    """
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
