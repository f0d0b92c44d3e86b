"""How far a simulation is: told to a function, or drawn as a bar with steps per second and time left."""

from __future__ import annotations

import math
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from equipoise.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    Progress = Callable[[int, int], None]


def reporter(progress: Progress | bool | None, total: int) -> Reporter:
    """Return what shows the progress of `total` steps: nothing, a bar (True) or a function of (done, total)."""
    if progress is None or progress is False:
        return Reporter()
    if progress is True:
        return StepBar(total)
    if not callable(progress):
        raise InvalidInput(f"progress must be True, False or a function of (done, total); got {progress!r}")
    return _Called(progress, total)


class Reporter:
    """Progress that nobody wants to see."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        """Show nothing more."""

    def show(self, done: int) -> None:
        """Show the number of steps done."""


class _Called(Reporter):
    """Progress told to a function."""

    def __init__(self, function: Progress, total: int) -> None:
        self.function, self.total = function, total

    def show(self, done: int) -> None:
        """Call the function."""
        self.function(done, self.total)


class Pace:
    """How fast a simulation is, from the first to the last time that it told its steps.

    Rich's own speed goes by the last steps told alone: wrong where workers tell thousands at once.

    Examples
    --------
    >>> pace = Pace()
    >>> for done, now in ((500, 10.0), (700, 10.1), (2500, 12.0)):
    ...     pace.tell(done, now)
    >>> pace.steps_per_second, pace.seconds_left(4500, now=13.0)
    (1000.0, 1.0)
    """

    SHORTEST = 0.5
    """Seconds before which a speed would be a guess."""

    def __init__(self) -> None:
        self._first: tuple[int, float] | None = None
        self._last = (0, 0.0)

    def tell(self, done: int, now: float) -> None:
        """Take note of the number of steps done; those of the first time were done before."""
        if self._first is None:
            self._first = self._last = (done, now)
        elif done > self._last[0]:
            self._last = (done, now)

    @property
    def steps_per_second(self) -> float | None:
        """The speed, or None if it is too early to say."""
        if self._first is None or self._last[1] - self._first[1] < self.SHORTEST:
            return None
        return (self._last[0] - self._first[0]) / (self._last[1] - self._first[1])

    def seconds_left(self, total: int, now: float) -> float | None:
        """Return how long the rest will take, or None if it is too early to say."""
        speed = self.steps_per_second
        return None if speed is None else max(0.0, (total - self._last[0]) / speed - (now - self._last[1]))


class StepBar(Reporter):
    """A bar over a known number of steps, on stderr; silent where that is no terminal."""

    def __init__(self, total: int, label: str = "simulating", noun: str = "steps") -> None:
        self.total, self.label, self.noun = total, label, noun
        self._bar: Any = None
        self._task: Any = None
        self._pace = Pace()

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
        )
        from rich.text import Text

        pace, noun = self._pace, self.noun

        class Speed(ProgressColumn):
            def render(self, task: Any) -> Text:
                speed, left = pace.steps_per_second, pace.seconds_left(task.total, time.monotonic())
                return Text("" if speed is None or left is None else f"{speed_text(speed, noun)}  {time_text(left)}")

        console = Console(file=sys.stderr)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            Speed(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bar.start()
        self._task = self._bar.add_task(self.label, total=self.total)
        return self

    def __exit__(self, *details: object) -> None:
        if not self._bar.disable:  # stopping a bar that was never drawn would leave an empty line
            self._bar.stop()

    def show(self, done: int) -> None:
        """Move the bar to the number of steps done; the first call starts the clock."""
        self._pace.tell(done, time.monotonic())
        self._bar.update(self._task, completed=done)

    def turn_to(self, label: str, total: int) -> None:
        """Say what is being done now, and how many steps there will be in all."""
        self._bar.update(self._task, description=label, total=total)

    @contextmanager
    def away(self) -> Iterator[None]:
        """Take the bar off the screen while something else is written there."""
        self.__exit__()
        try:
            yield
        finally:
            self._bar.start()


def speed_text(steps_per_second: float, noun: str = "steps") -> str:
    """Return a speed as people read it.

    Examples
    --------
    >>> speed_text(6_543_210), speed_text(21_700)
    ('6.5 million steps/s', '21,700 steps/s')
    """
    if steps_per_second < 1e6:
        return f"{steps_per_second:,.0f} {noun}/s"
    return f"{steps_per_second / 1e6:.1f} million {noun}/s"


def time_text(seconds: float) -> str:
    """Return how much time is left as people read it.

    Examples
    --------
    >>> time_text(4.2), time_text(75), time_text(7322)
    ('0:05', '1:15', '2:02:02')
    """
    minutes, rest = divmod(math.ceil(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
